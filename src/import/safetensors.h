/* safetensors: types by name, and a header read with a filter (sharded models). */
#ifndef HRY_IMPORT_SAFETENSORS_H
#define HRY_IMPORT_SAFETENSORS_H

#include "import/common.h"

typedef struct HryStType {
    char name[12];
    uint8_t bits;                               /* in the file */
    uint8_t type_tag;                           /* of the format */
    uint8_t exponent_bits, mantissa_bits, bias; /* private types only */
} HryStType;

/* In the order in which a writer puts them; *count of them. */
const HryStType *hry_st_types(size_t *count);
/* The section that the private types carry. */
HurrayExtensionType hry_st_extension(const HryStType *type);

/* keep: is the tensor one of this shard's? NULL: all. dropped: how many were not, and the first of them. */
typedef struct HryStFilter {
    bool (*keep)(void *ctx, const uint8_t *name, size_t len);
    void *ctx;
    uint64_t dropped;
    char first_dropped[136];
} HryStFilter;

HurrayStatus hry_safetensors_open(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, HryStFilter *filter,
                                  const HurrayAllocator *allocator, HryCatalogue **out, HurrayError *error);

#endif
