/* 16-bit floats widened to float32: exact, and right even where the processor flushes subnormal operands to zero. */
#ifndef HRY_FORMAT_HALF_H
#define HRY_FORMAT_HALF_H

#include <stdint.h>
#include <string.h>

static inline float hry_f32_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t hry_bits_of_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* NaN payloads move to the top of the wider mantissa. Masks instead of branches, so that loops over this vectorize. */
static inline float hry_f32_of_half(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = (uint32_t)(half & 0x7FFFu) << 13;
    /* m x 2^-24 as the difference of two normal numbers: no subnormal operand */
    uint32_t tiny = hry_bits_of_f32(hry_f32_of_bits(rest + (113u << 23)) - hry_f32_of_bits(113u << 23));
    uint32_t is_tiny = (uint32_t) - ((int32_t)rest < (1 << 23)), is_special = (uint32_t) - ((int32_t)rest >= (31 << 23));
    uint32_t normal = (rest + (112u << 23)) | (is_special & 0x7F800000u);
    return hry_f32_of_bits((tiny & is_tiny) | (normal & ~is_tiny) | sign);
}

static inline float hry_f32_of_bfloat16(uint16_t bits) { return hry_f32_of_bits((uint32_t)bits << 16); }

/* 2^exponent for -149 <= exponent <= 127, subnormal powers included. */
static inline float hry_f32_power_of_two(int exponent) {
    return hry_f32_of_bits(exponent >= -126 ? (uint32_t)(exponent + 127) << 23 : 1u << (exponent + 149));
}

#endif
