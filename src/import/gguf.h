/* GGUF, one file; sets of split files are put together by model_gguf. */
#ifndef HRY_IMPORT_GGUF_H
#define HRY_IMPORT_GGUF_H

#include "import/common.h"

/* The keys split.no, split.count, split.tensors.count; absent: HURRAY_NONE. */
typedef struct HryGgufSplit {
    uint64_t no, count, tensors;
} HryGgufSplit;

HurrayStatus hry_gguf_open(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                           HryCatalogue **out, HryGgufSplit *split, HurrayError *error);

#endif
