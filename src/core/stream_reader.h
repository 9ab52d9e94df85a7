/* The public stream reader core from inside: what the blocking handle needs beyond hurray/core.h. */
#ifndef HRY_CORE_STREAM_READER_H
#define HRY_CORE_STREAM_READER_H

#include "core/window.h"
#include "hurray/core.h"

const HurrayDestinationAlloc *hry_stream_reader_core_destination(const HurrayStreamReaderCore *core);
const HurrayAllocator *hry_stream_reader_core_allocator(const HurrayStreamReaderCore *core);
uint32_t hry_stream_reader_core_max_depth(const HurrayStreamReaderCore *core);
/* Puts a driver's failure into the core's record, with the source. Returns its code. */
HurrayStatus hry_stream_reader_core_fail(HurrayStreamReaderCore *core, const HurrayError *error);

#endif
