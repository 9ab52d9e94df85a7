/* The public file reader core from inside: what the blocking handle and the importer need beyond hurray/core.h. */
#ifndef HRY_CORE_FILE_READER_H
#define HRY_CORE_FILE_READER_H

#include "core/file_fetch.h"
#include "hurray/core.h"

/* The transport's demand, passed on to destinations; before any job. */
void hry_file_reader_core_set_io_alignment(HurrayFileReaderCore *core, uint32_t io_alignment);
/* kind: HURRAY_STEP_DESCRIPTOR, _TENSOR or _COMPOSITE. As the begin calls by name; a descriptor that this core read last is not
 * read again. INDEX_OUT_OF_BOUNDS. */
HurrayStatus hry_file_reader_core_begin_at(HurrayFileReaderCore *core, uint32_t kind, uint64_t index);
/* After READY: the catalogue and what fetches use; borrowed. */
const HryFetchContext *hry_file_reader_core_context(const HurrayFileReaderCore *core);
/* A driver's failure: ends the job and goes to the core's record, with the source and the tensor (index HURRAY_NONE: the job's own,
 * if there is one). INVALID_REPORT makes the core unusable: nobody knows what such a transport did. Returns its code. */
HurrayStatus hry_file_reader_core_fail(HurrayFileReaderCore *core, const HurrayError *error, uint64_t index);

#endif
