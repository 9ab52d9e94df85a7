/* Stored payload checksums: the KV value `libhurray.crc32c` (docs/format.md 9.7). */
#ifndef HRY_FORMAT_SUMS_H
#define HRY_FORMAT_SUMS_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "hurray.h"

#define HRY_SUMS_KEY "libhurray.crc32c"
#define HRY_SUMS_KEY_LEN (sizeof HRY_SUMS_KEY - 1)

/* The stored sums of one file, or none (counts NULL). Tensors are numbered in write order. */
typedef struct HrySums {
    const uint8_t *counts; /* buffer_count of each tensor */
    const uint8_t *crcs;   /* unaligned little-endian u32 */
    uint64_t *first;       /* sums before tensor 256 x i */
    size_t first_count;
    uint64_t tensor_count;
    HurrayAllocator allocator;
} HrySums;

/* Takes up the value, which must outlive *out. OK with *out empty when entry is NULL or kind, version, tensor_count or length do not
 * fit: ignored, as if not stored. Fails only for want of memory. */
HurrayStatus hry_sums_open(const HurrayKvEntry *entry, uint64_t tensor_count, const HurrayAllocator *allocator, HrySums *out,
                           HurrayError *error);
void hry_sums_clear(HrySums *sums); /* safe on a zeroed one */

/* The sum of buffer k of the tensor at `place` in write order, whose descriptor has buffer_count buffers. False: none is stored, or
 * the stored count is another. */
bool hry_sums_find(const HrySums *sums, uint64_t place, uint32_t buffer_count, uint32_t k, uint32_t *out);

/* The value's bytes, in memory of exactly *len bytes from allocator. NULL and 0 with OK when nothing is to be stored: no sums, or a
 * value or tensor count beyond 32 bits. */
HurrayStatus hry_sums_encode(const uint8_t *counts, uint64_t tensor_count, const uint32_t *crcs, uint64_t crc_count,
                             const HurrayAllocator *allocator, uint8_t **bytes, size_t *len, HurrayError *error);

#endif
