#include "format/codes.h"

#include <stddef.h>
#include <string.h>

static unsigned read_small(const uint8_t *base, uint32_t bits, int64_t o) {
    HryBitPlace place = hry_bit_place(o, bits);
    const uint8_t *at = base + place.byte;
    unsigned word = *at;
    if (place.shift + bits > 8) word |= (unsigned)at[1] << 8;
    return word >> place.shift & ((1u << bits) - 1);
}

static void write_small(uint8_t *base, uint32_t bits, uint64_t o, unsigned code) {
    HryBitPlace place = hry_bit_place((int64_t)o, bits);
    uint8_t *at = base + place.byte;
    unsigned mask = ((1u << bits) - 1) << place.shift, word = code << place.shift;
    at[0] = (uint8_t)((at[0] & ~mask) | (word & mask));
    if (mask >> 8) at[1] = (uint8_t)((at[1] & ~(mask >> 8)) | (word & mask) >> 8);
}

/* Whole groups: 8 / bits elements a byte. `bits` is a constant at every call, so the loops unroll and vectorize. */
static inline void unpack_bytes(const uint8_t *src, unsigned bits, uint64_t bytes, uint8_t *codes) {
    const unsigned per = 8 / bits, mask = (1u << bits) - 1;
    for (uint64_t i = 0; i < bytes; i++)
        for (unsigned k = 0; k < per; k++) codes[i * per + k] = (uint8_t)(src[i] >> k * bits & mask);
}

static void unpack_sixes(const uint8_t *src, uint64_t groups, uint8_t *codes) {
    for (uint64_t i = 0; i < groups; i++, src += 3, codes += 4) {
        unsigned word = src[0] | (unsigned)src[1] << 8 | (unsigned)src[2] << 16;
        for (unsigned k = 0; k < 4; k++) codes[k] = (uint8_t)(word >> 6 * k & 63);
    }
}

static inline void pack_bytes(uint8_t *dst, unsigned bits, uint64_t bytes, const uint8_t *codes) {
    const unsigned per = 8 / bits, mask = (1u << bits) - 1;
    for (uint64_t i = 0; i < bytes; i++) {
        unsigned byte = 0;
        for (unsigned k = 0; k < per; k++) byte |= (codes[i * per + k] & mask) << k * bits;
        dst[i] = (uint8_t)byte;
    }
}

static void pack_sixes(uint8_t *dst, uint64_t groups, const uint8_t *codes) {
    for (uint64_t i = 0; i < groups; i++, dst += 3, codes += 4) {
        unsigned word = 0;
        for (unsigned k = 0; k < 4; k++) word |= (codes[k] & 63u) << 6 * k;
        dst[0] = (uint8_t)word;
        dst[1] = (uint8_t)(word >> 8);
        dst[2] = (uint8_t)(word >> 16);
    }
}

static uint64_t group_elements(uint32_t bits) { return bits == 6 ? 4 : 8 / bits; }

static void get_small(const uint8_t *base, uint32_t bits, int64_t first, int64_t step, uint64_t count, uint8_t *codes) {
    uint64_t k = 0;
    if (step == 1) {
        uint64_t unit = group_elements(bits);
        for (; k < count && (first + (int64_t)k) % (int64_t)unit != 0; k++) codes[k] = (uint8_t)read_small(base, bits, first + (int64_t)k);
        uint64_t groups = (count - k) / unit;
        const uint8_t *src = base + hry_bit_place(first + (int64_t)k, bits).byte;
        switch (groups ? bits : 0) {
        case 1: unpack_bytes(src, 1, groups, codes + k); break;
        case 2: unpack_bytes(src, 2, groups, codes + k); break;
        case 4: unpack_bytes(src, 4, groups, codes + k); break;
        case 6: unpack_sixes(src, groups, codes + k); break;
        default: break;
        }
        k += groups * unit;
    }
    for (; k < count; k++) codes[k] = (uint8_t)read_small(base, bits, first + (int64_t)k * step);
}

/* `width` is a constant at every call but the last. */
static inline void gather(const uint8_t *src, int64_t step, uint64_t count, size_t width, uint8_t *codes) {
    for (uint64_t k = 0; k < count; k++) memcpy(codes + k * width, src + (int64_t)k * step, width);
}

void hry_codes_get(const uint8_t *base, uint32_t bits, int64_t first, int64_t step, uint64_t count, uint8_t *codes) {
    if (count == 0) return;
    if (bits < 8) {
        get_small(base, bits, first, step, count, codes);
        return;
    }
    size_t width = bits / 8;
    const uint8_t *src = base + first * (int64_t)width;
    if (step == 1 || count == 1) { /* of one element nobody knows how large the step is */
        memcpy(codes, src, count * width);
        return;
    }
    int64_t byte_step = step * (int64_t)width;
    switch (width) {
    case 1: gather(src, byte_step, count, 1, codes); break;
    case 2: gather(src, byte_step, count, 2, codes); break;
    case 4: gather(src, byte_step, count, 4, codes); break;
    case 8: gather(src, byte_step, count, 8, codes); break;
    case 16: gather(src, byte_step, count, 16, codes); break;
    default: gather(src, byte_step, count, width, codes); break;
    }
}

void hry_codes_put(uint8_t *base, uint32_t bits, uint64_t first, uint64_t count, const uint8_t *codes) {
    if (count == 0) return;
    if (bits >= 8) {
        memcpy(base + first * (bits / 8), codes, count * (bits / 8));
        return;
    }
    uint64_t k = 0, unit = group_elements(bits);
    for (; k < count && (first + k) % unit != 0; k++) write_small(base, bits, first + k, codes[k]);
    uint64_t groups = (count - k) / unit;
    uint8_t *dst = base + hry_bit_place((int64_t)(first + k), bits).byte;
    switch (groups ? bits : 0) {
    case 1: pack_bytes(dst, 1, groups, codes + k); break;
    case 2: pack_bytes(dst, 2, groups, codes + k); break;
    case 4: pack_bytes(dst, 4, groups, codes + k); break;
    case 6: pack_sixes(dst, groups, codes + k); break;
    default: break;
    }
    for (k += groups * unit; k < count; k++) write_small(base, bits, first + k, codes[k]);
}

void hry_codes_copy(const uint8_t *base, uint32_t bits, uint64_t first, uint64_t count, uint8_t *dst) {
    if (count == 0) return;
    if (bits >= 8) {
        memcpy(dst, base + first * (bits / 8), count * (bits / 8));
        return;
    }
    uint64_t unit = group_elements(bits), unit_bytes = bits == 6 ? 3 : 1;
    uint64_t groups = count / unit, left = count % unit;
    if (first % unit == 0) {
        memcpy(dst, base + first / unit * unit_bytes, groups * unit_bytes);
    } else {
        uint8_t codes[256];
        for (uint64_t k = 0; k < groups * unit;) {
            uint64_t n = groups * unit - k < sizeof codes ? groups * unit - k : sizeof codes;
            get_small(base, bits, (int64_t)(first + k), 1, n, codes);
            hry_codes_put(dst, bits, k, n, codes);
            k += n;
        }
    }
    if (left) {
        uint8_t codes[8];
        memset(dst + groups * unit_bytes, 0, unit_bytes);
        get_small(base, bits, (int64_t)(first + groups * unit), 1, left, codes);
        hry_codes_put(dst, bits, groups * unit, left, codes);
    }
}
