/* Between verify.c (elements, parameters, statistics) and verify_sparse.c (index arrays). */
#ifndef HRY_FORMAT_VERIFY_PART_H
#define HRY_FORMAT_VERIFY_PART_H

#include "format/verify.h"

typedef struct HryVerify {
    const HurrayDescriptor *descriptor;
    const HryBytes *ranges;
    const HurrayAllocator *allocator;
    HryFound found;
    void *ctx;
    HurrayError *error;
} HryVerify;

/* Reports one finding; what the caller's function answered. */
HurrayStatus hry_verify_report(const HryVerify *verify, uint32_t buffer, const char *field, uint64_t offset, const char *format, ...)
    HRY_PRINTF(5, 6);

HurrayStatus hry_verify_sparse(const HryVerify *verify);
HurrayStatus hry_verify_paged(const HryVerify *verify);

#endif
