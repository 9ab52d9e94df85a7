#include "format/value.h"

#include <string.h>

#include "base/endian.h"
#include "format/codes.h"
#include "format/half.h"

static uint64_t bits_of_f64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#define F64_FRACTION ((UINT64_C(1) << 52) - 1)

/* The largest finite code without its sign. */
static uint32_t largest_code(const HryForm *form) {
    uint32_t all_ones = (1u << (form->exponent_bits + form->mantissa_bits)) - 1;
    if (form->kind == HRY_FORM_SCALE) return 254;
    if (form->rule == HRY_FLOAT_IEEE) return (((1u << form->exponent_bits) - 1) << form->mantissa_bits) - 1;
    return form->rule == HRY_FLOAT_E4M3 ? all_ones - 1 : all_ones;
}

/* The code of infinity or of a value too great: infinity, else NaN, else the largest. */
static bool beyond(const HryForm *form, uint32_t sign, uint32_t *code) {
    if (form->kind == HRY_FORM_SCALE) return false;
    if (form->rule == HRY_FLOAT_FNUZ)
        *code = 0x80;
    else
        *code = sign | (form->rule == HRY_FLOAT_FINITE ? largest_code(form) : largest_code(form) + 1);
    return true;
}

static bool not_a_number(const HryForm *form, uint32_t sign, uint32_t *code) {
    if (form->rule == HRY_FLOAT_FINITE) return false; /* e8m0 too */
    if (form->rule == HRY_FLOAT_FNUZ)
        *code = 0x80;
    else
        *code = sign | ((1u << (form->exponent_bits + form->mantissa_bits)) - 1); /* quiet in every type */
    return true;
}

/* The code of a float of at most 32 bits nearest to value, ties to the even code. */
static bool encode_small(const HryForm *form, double value, uint32_t *code) {
    uint64_t raw = bits_of_f64(value), m = raw & F64_FRACTION;
    uint32_t sign = form->kind == HRY_FORM_SCALE ? 0 : (uint32_t)(raw >> 63) << (form->bits - 1);
    int e = (int)(raw >> 52 & 0x7FF);
    if (e == 0x7FF && m) return not_a_number(form, sign, code);
    if (form->kind == HRY_FORM_SCALE && (raw >> 63 || (e == 0 && m == 0))) return false;
    if (e == 0x7FF) return beyond(form, sign, code);
    if (e == 0) { /* zero, or far below half of the least value of every type here */
        *code = form->kind == HRY_FORM_SCALE ? 1 : form->rule == HRY_FLOAT_FNUZ ? 0 : sign;
        return true;
    }
    e -= 1023;
    m |= UINT64_C(1) << 52;
    int least = form->kind == HRY_FORM_SCALE ? -form->bias : 1 - form->bias; /* exponent of the least normal value */
    int drop = 52 - form->mantissa_bits + (e < least ? least - e : 0);
    uint64_t kept = drop > 54 ? 0 : m >> drop, result = kept;
    if (e >= least) result += (uint64_t)(e + form->bias) << form->mantissa_bits, result -= UINT64_C(1) << form->mantissa_bits;
    if (drop <= 54) {
        uint64_t rest = m - (kept << drop), half = UINT64_C(1) << (drop - 1);
        result += rest > half || (rest == half && (result & 1));
    }
    if (result > largest_code(form)) return beyond(form, sign, code);
    if (form->kind == HRY_FORM_SCALE && result == 0) result = 1; /* the nearest one that is valid */
    if (form->rule == HRY_FLOAT_FNUZ && result == 0) sign = 0;
    *code = sign | (uint32_t)result;
    return true;
}

static void store_small(const HryForm *form, uint32_t code, uint8_t *dst) {
    if (form->bits == 32)
        hry_store_u32(dst, code);
    else if (form->bits == 16)
        hry_store_u16(dst, (uint16_t)code);
    else
        *dst = (uint8_t)code;
}

/* float32 is exact in float128; a subnormal becomes normal. */
static void store_f128(float value, uint8_t *dst) {
    uint64_t raw = bits_of_f64((double)value), m = raw & F64_FRACTION, high = raw & UINT64_C(1) << 63;
    uint64_t e = raw >> 52 & 0x7FF;
    if (e == 0x7FF)
        high |= UINT64_C(0x7FFF) << 48;
    else if (e)
        high |= (e + (16383 - 1023)) << 48;
    hry_store_u64(dst, m << 60);
    hry_store_u64(dst + 8, high | m >> 4);
}

bool hry_values_from_f32(const HryForm *form, const float *values, size_t count, uint8_t *codes, size_t *bad) {
    uint32_t width = hry_code_bytes(form->bits), code;
    for (size_t i = 0; i < count; i++) {
        uint8_t *dst = codes + i * width;
        if (form->bits == 32) {
            hry_store_f32(dst, values[i]);
        } else if (form->bits == 64) {
            hry_store_f64(dst, (double)values[i]);
        } else if (form->bits == 128) {
            store_f128(values[i], dst);
        } else if (encode_small(form, (double)values[i], &code)) {
            store_small(form, code, dst);
        } else {
            *bad = i;
            return false;
        }
    }
    return true;
}

static void add_integers(const HryForm *form, uint8_t *sums, const uint8_t *codes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        switch (form->bits) {
        case 16: hry_store_u16(sums + 2 * i, (uint16_t)(hry_load_u16(sums + 2 * i) + hry_load_u16(codes + 2 * i))); break;
        case 32: hry_store_u32(sums + 4 * i, hry_load_u32(sums + 4 * i) + hry_load_u32(codes + 4 * i)); break;
        case 64: hry_store_u64(sums + 8 * i, hry_load_u64(sums + 8 * i) + hry_load_u64(codes + 8 * i)); break;
        default: sums[i] = (uint8_t)((sums[i] + codes[i]) & ((1u << form->bits) - 1)); break;
        }
    }
}

/* Narrower floats: float64 holds sums of two of them with so many bits to spare that rounding twice is rounding once. */
static bool add_small(const HryForm *form, const float *table, uint8_t *sum, const uint8_t *code) {
    float a, b;
    uint32_t result;
    size_t bad;
    if (!hry_values_f32(form, table, sum, 1, &a, &bad) || !hry_values_f32(form, table, code, 1, &b, &bad)) return false;
    if (!encode_small(form, (double)a + (double)b, &result)) return false;
    store_small(form, result, sum);
    return true;
}

#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 Quad;
#else
typedef long double Quad; /* 113 bits on the other 64-bit machines we know; else the sum is that type's */
#endif

static void add_f128(uint8_t *sum, const uint8_t *code) {
    Quad a, b;
    memcpy(&a, sum, sizeof a);
    memcpy(&b, code, sizeof b);
    a += b;
    memcpy(sum, &a, sizeof a);
}

static void add_f32(uint8_t *sums, const uint8_t *codes, size_t count) {
    for (size_t i = 0; i < count; i++) hry_store_f32(sums + 4 * i, hry_load_f32(sums + 4 * i) + hry_load_f32(codes + 4 * i));
}

static void add_f64(uint8_t *sums, const uint8_t *codes, size_t count) {
    for (size_t i = 0; i < count; i++) hry_store_f64(sums + 8 * i, hry_load_f64(sums + 8 * i) + hry_load_f64(codes + 8 * i));
}

bool hry_values_add(const HryForm *form, uint8_t *sums, const uint8_t *codes, size_t count, size_t *bad) {
    *bad = 0;
    if (form->kind == HRY_FORM_NONE) return false;
    if (form->kind == HRY_FORM_SIGNED || form->kind == HRY_FORM_UNSIGNED) {
        add_integers(form, sums, codes, count);
    } else if (form->kind == HRY_FORM_COMPLEX) {
        if (form->bits == 64)
            add_f32(sums, codes, 2 * count);
        else
            add_f64(sums, codes, 2 * count);
    } else if (form->bits == 32) {
        add_f32(sums, codes, count);
    } else if (form->bits == 64) {
        add_f64(sums, codes, count);
    } else if (form->bits == 128) {
        for (size_t i = 0; i < count; i++) add_f128(sums + 16 * i, codes + 16 * i);
    } else {
        float table[256];
        uint32_t width = hry_code_bytes(form->bits);
        if (form->bits <= 8) hry_value_table(form, table);
        for (size_t i = 0; i < count; i++)
            if (!add_small(form, table, sums + i * width, codes + i * width)) {
                *bad = i;
                return false;
            }
    }
    return true;
}
