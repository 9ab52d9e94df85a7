/* The stream writer's core: descriptor, buffers, descriptor, buffers, with nothing between them and no names. */
#ifndef HRY_CORE_STREAM_WRITER_H
#define HRY_CORE_STREAM_WRITER_H

#include "core/output.h"

/* What the public calls do, for drivers: the error goes to a record of theirs. */
HurrayStatus hry_stream_writer_tensor(HurrayStreamWriterCore *core, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices,
                                      size_t count, HurrayError *error);
HurrayStatus hry_stream_writer_composite(HurrayStreamWriterCore *core, const HurrayCompositeNode *nodes, size_t count, HurrayError *error);
/* May the stream end here? TORN_COMPOSITE while members are missing; UNUSABLE. Changes nothing: a stream has no footer. */
HurrayStatus hry_stream_writer_end(HurrayStreamWriterCore *core, HurrayError *error);
HryOutput *hry_stream_writer_output(HurrayStreamWriterCore *core);

#endif
