/* The file writer's core (docs/design: forward pass, index kept aside, an item commits at its last byte). */
#ifndef HRY_CORE_FILE_WRITER_H
#define HRY_CORE_FILE_WRITER_H

#include "core/output.h"

/* What the public calls do, for drivers: the error goes to a record of theirs. */
HurrayStatus hry_file_writer_header(HurrayFileWriterCore *core, HurrayError *error);
HurrayStatus hry_file_writer_tensor(HurrayFileWriterCore *core, const void *name, size_t len, const HurrayDescriptor *descriptor,
                                    const HurrayIoSlice *slices, size_t count, HurrayError *error);
HurrayStatus hry_file_writer_composite(HurrayFileWriterCore *core, const HurrayCompositeNode *nodes, size_t count, HurrayError *error);
HurrayStatus hry_file_writer_finish(HurrayFileWriterCore *core, const HurrayKvEntry *kv, size_t count, HurrayError *error);
HryOutput *hry_file_writer_output(HurrayFileWriterCore *core);
/* The footer is out. */
bool hry_file_writer_is_finished(const HurrayFileWriterCore *core);

#endif
