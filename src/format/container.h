/* Header and trailer of a file, and the arithmetic of places between them (docs/format.md 9.1, 9.2, 9.5). */
#ifndef HRY_FORMAT_CONTAINER_H
#define HRY_FORMAT_CONTAINER_H

#include <stdbool.h>

#include "base/fail.h"
#include "hurray.h"

#define HRY_HEADER_SIZE 64u
#define HRY_TRAILER_SIZE 40u
#define HRY_SMALLEST_FILE 112u /* header, an index without entries, trailer */

#define HRY_FILE_HAS_KV 1u
#define HRY_FILE_SORTED_INDEX 2u
#define HRY_FILE_INDEX_CRC 4u

#define HRY_MIN_DATA_ALIGNMENT UINT32_C(4096)
#define HRY_MAX_DATA_ALIGNMENT UINT32_C(2097152)
#define HRY_PART_ALIGNMENT 8u /* of descriptors, KV and index */

typedef struct HryHeader {
    uint8_t major, minor;
    uint32_t flags, data_buffer_alignment;
    uint64_t first_descriptor_offset, tensor_count_hint;
} HryHeader;

typedef struct HryTrailer {
    uint64_t index_offset, index_length, kv_offset; /* kv_offset 0: no KV */
    uint32_t kv_length, index_crc32c;
} HryTrailer;

/* TRUNCATED below the smallest file. Asked before the header is read. */
HurrayStatus hry_container_check_size(uint64_t file_size, HurrayError *error);

/* HRY_HEADER_SIZE bytes; every rule of 9.1 that needs nothing else. */
HurrayStatus hry_header_decode(const uint8_t *bytes, HryHeader *out, HurrayError *error);
void hry_header_encode(const HryHeader *header, uint8_t *dst);

/* The last HRY_TRAILER_SIZE bytes of a file of file_size (>= HRY_SMALLEST_FILE); every rule of 9.5 and of KV against the header:
 * afterwards both sections lie in the file, KV before the index, both behind first_descriptor_offset. */
HurrayStatus hry_trailer_decode(const uint8_t *bytes, uint64_t file_size, const HryHeader *header, HryTrailer *out, HurrayError *error);
void hry_trailer_encode(const HryTrailer *trailer, uint8_t *dst);

/* CHECKSUM when the header promises a sum of the index and the bytes have another. */
HurrayStatus hry_container_check_index_sum(const HryHeader *header, const HryTrailer *trailer, const void *index, HurrayError *error);

/* Where the tensor region ends at the latest. */
static inline uint64_t hry_container_region_end(const HryTrailer *trailer) {
    return trailer->kv_offset ? trailer->kv_offset : trailer->index_offset;
}

/* File offset of buffer k when the first one lies at data_offset: each next at align_up(end, alignment). With k = count it is the
 * end of the last one (not aligned). False: does not fit 64 bits. */
bool hry_container_buffer_offset(const HurrayBufferHandle *handles, uint32_t count, uint64_t data_offset, uint64_t alignment, uint32_t k,
                                 uint64_t *out);

#endif
