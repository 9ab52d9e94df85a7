/* Moving the bits of elements (docs/format.md sections 2 and 3.3), whatever they mean. A code is an element taken out of its
 * packing: bits / 8 bytes as they lie in memory, or one byte for types below 8 bits. */
#ifndef HRY_FORMAT_CODES_H
#define HRY_FORMAT_CODES_H

#include <stdint.h>

static inline uint32_t hry_code_bytes(uint32_t bits) { return bits < 8 ? 1 : bits / 8; }

/* Where element o begins, counted from the byte of element 0; o may be negative. Packing is a stream of bits, least significant
 * first, in groups that end at whole bytes, so one formula serves 1, 2, 4 and 6 bits. */
typedef struct HryBitPlace {
    int64_t byte;
    unsigned shift; /* bits of that byte that belong to elements before it; 6-bit elements may reach into the next byte */
} HryBitPlace;

static inline HryBitPlace hry_bit_place(int64_t o, uint32_t bits) {
    if (bits >= 8) return (HryBitPlace){o * (int64_t)(bits / 8), 0};
    int64_t unit = bits == 6 ? 4 : 8 / (int64_t)bits; /* elements a group, a group being 3 bytes or 1 */
    int64_t within = o % unit, group = o / unit;
    if (within < 0) {
        within += unit;
        group--;
    }
    unsigned bit = (unsigned)within * bits;
    return (HryBitPlace){group * (bits == 6 ? 3 : 1) + bit / 8, bit % 8};
}

/* count codes from elements first, first + step, ... of an array whose element 0 begins at base. */
void hry_codes_get(const uint8_t *base, uint32_t bits, int64_t first, int64_t step, uint64_t count, uint8_t *codes);

/* count codes into elements first, first + 1, ... of a packed array; bits of other elements stay. */
void hry_codes_put(uint8_t *base, uint32_t bits, uint64_t first, uint64_t count, const uint8_t *codes);

/* count packed elements from element first on into a packed array's elements from 0 on; unused bits of the last byte (6 bits: of
 * the last three bytes) become 0. */
void hry_codes_copy(const uint8_t *base, uint32_t bits, uint64_t first, uint64_t count, uint8_t *dst);

#endif
