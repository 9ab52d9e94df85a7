#include "format/value.h"

#include <math.h>
#include <string.h>

#include "base/endian.h"
#include "format/codes.h"
#include "format/element.h"
#include "format/half.h"

static HryForm float_form(uint32_t bits, int exponent_bits, int mantissa_bits, int bias, HryFloatRule rule) {
    return (HryForm){HRY_FORM_FLOAT, rule, bits, exponent_bits, mantissa_bits, bias};
}

HryForm hry_form_of_type(uint8_t tag) {
    HryForm form = {.bits = hry_element_bits(tag)};
    switch (tag) {
    case HURRAY_TYPE_FLOAT16: return float_form(16, 5, 10, 15, HRY_FLOAT_IEEE);
    case HURRAY_TYPE_BFLOAT16: return float_form(16, 8, 7, 127, HRY_FLOAT_IEEE);
    case HURRAY_TYPE_FLOAT32: return float_form(32, 8, 23, 127, HRY_FLOAT_IEEE);
    case HURRAY_TYPE_FLOAT64: return float_form(64, 11, 52, 1023, HRY_FLOAT_IEEE);
    case HURRAY_TYPE_FLOAT128: return float_form(128, 15, 112, 16383, HRY_FLOAT_IEEE);
    case HURRAY_TYPE_FLOAT8_E4M3: return float_form(8, 4, 3, 7, HRY_FLOAT_E4M3);
    case HURRAY_TYPE_FLOAT8_E5M2: return float_form(8, 5, 2, 15, HRY_FLOAT_IEEE);
    case HURRAY_TYPE_FLOAT6_E3M2: return float_form(6, 3, 2, 3, HRY_FLOAT_FINITE);
    case HURRAY_TYPE_FLOAT6_E2M3: return float_form(6, 2, 3, 1, HRY_FLOAT_FINITE);
    case HURRAY_TYPE_FLOAT4_E2M1: return float_form(4, 2, 1, 1, HRY_FLOAT_FINITE);
    default: break;
    }
    switch (hry_element_kind(tag)) {
    case HRY_ELEMENT_SIGNED: form.kind = HRY_FORM_SIGNED; break;
    case HRY_ELEMENT_UNSIGNED:
    case HRY_ELEMENT_BOOL: form.kind = HRY_FORM_UNSIGNED; break;
    case HRY_ELEMENT_COMPLEX: form.kind = HRY_FORM_COMPLEX; break;
    case HRY_ELEMENT_SCALE:
        form = float_form(8, 8, 0, 127, HRY_FLOAT_FINITE);
        form.kind = HRY_FORM_SCALE;
        break;
    default: break;
    }
    return form;
}

/* The two private types of our importers are told by tag and by every field of the section. */
static bool is_fnuz(const HurrayDescriptor *descriptor) {
    const HurrayExtensionType *x = &descriptor->extension_type;
    if (!descriptor->has_extension_type || x->bit_width != 8 || x->packing_factor != 1 || x->is_float != 1 || x->is_signed != 0 ||
        x->sign_bits != 1 || x->has_nan != 1 || x->has_inf != 0)
        return false;
    if (descriptor->element_type == 0xF0) return x->exponent_bits == 4 && x->mantissa_bits == 3 && x->exponent_bias == 8;
    return descriptor->element_type == 0xF1 && x->exponent_bits == 5 && x->mantissa_bits == 2 && x->exponent_bias == 16;
}

HryForm hry_form_of(const HurrayDescriptor *descriptor) {
    if (is_fnuz(descriptor)) {
        const HurrayExtensionType *x = &descriptor->extension_type;
        return float_form(8, x->exponent_bits, x->mantissa_bits, (int)x->exponent_bias, HRY_FLOAT_FNUZ);
    }
    HryForm form = hry_form_of_type(descriptor->element_type);
    if (descriptor->has_extension_type) form.bits = descriptor->extension_type.bit_width;
    return form;
}

static double f64_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* An exact power of two in the normal range of float64. */
static double power_of_two(int exponent) { return f64_of_bits((uint64_t)(exponent + 1023) << 52); }

/* The value of a float of at most 32 bits, exactly. */
static double small_float(const HryForm *form, uint32_t code) {
    uint32_t m = code & ((1u << form->mantissa_bits) - 1);
    uint32_t e = code >> form->mantissa_bits & ((1u << form->exponent_bits) - 1);
    uint32_t all_ones = (1u << form->exponent_bits) - 1;
    bool negative = form->kind == HRY_FORM_FLOAT && (code >> (form->bits - 1) & 1);
    double value;
    if (form->kind == HRY_FORM_SCALE) {
        if (code == 0 || code == 255) return (double)NAN;
    } else if (form->rule == HRY_FLOAT_IEEE && e == all_ones) {
        value = m ? (double)NAN : (double)INFINITY;
        return negative ? -value : value;
    } else if (form->rule == HRY_FLOAT_E4M3 && (code & 0x7F) == 0x7F) {
        return negative ? -(double)NAN : (double)NAN;
    } else if (form->rule == HRY_FLOAT_FNUZ && code == 0x80) {
        return (double)NAN;
    }
    if (e == 0 && form->kind == HRY_FORM_FLOAT)
        value = (double)m * power_of_two(1 - form->bias - form->mantissa_bits);
    else
        value = (double)((1u << form->mantissa_bits) + m) * power_of_two((int)e - form->bias - form->mantissa_bits);
    return negative ? -value : value;
}

/* float128 to the float64 whose last bit says "something was cut off" (rounding to odd): rounding that once more to float32 gives
 * what one rounding would have given. */
static double odd_f64_of_f128(const uint8_t *code) {
    uint64_t low = hry_load_u64(code), high = hry_load_u64(code + 8);
    uint64_t sign = high & UINT64_C(1) << 63, m = (high & ((UINT64_C(1) << 48) - 1)) << 4 | low >> 60;
    int e = (int)(high >> 48 & 0x7FFF) - 16383;
    bool rest = (low & ((UINT64_C(1) << 60) - 1)) != 0;
    if (e == 16384) return f64_of_bits(sign | UINT64_C(0x7FF) << 52 | m | (uint64_t)rest);
    if (e > 1023) return f64_of_bits(sign | UINT64_C(0x7FF) << 52);                /* beyond float32 anyway */
    if (e < -1000) return f64_of_bits(sign | (uint64_t)(e > -16383 || m || rest)); /* far below the least float32, or 0 */
    return f64_of_bits(sign | (uint64_t)(e + 1023) << 52 | m | (uint64_t)rest);
}

/* raw, below 2^bits, as the integer it stands for; fewer than 64 bits. */
static int64_t integer_of(const HryForm *form, uint64_t raw) {
    if (form->kind == HRY_FORM_SIGNED && raw >> (form->bits - 1) & 1) return (int64_t)(raw - (UINT64_C(1) << form->bits));
    return (int64_t)raw;
}

int64_t hry_value_integer(const HryForm *form, const uint8_t *code) {
    switch (form->bits) {
    case 16: return integer_of(form, hry_load_u16(code));
    case 32: return integer_of(form, hry_load_u32(code));
    case 64: return (int64_t)hry_load_u64(code);
    default: return integer_of(form, *code);
    }
}

void hry_value_table(const HryForm *form, float table[256]) {
    uint32_t count = form->bits <= 8 ? 1u << form->bits : 0;
    for (uint32_t code = 0; code < 256; code++) {
        if (code >= count || form->kind == HRY_FORM_NONE || form->kind == HRY_FORM_COMPLEX)
            table[code] = 0;
        else if (form->kind == HRY_FORM_SIGNED || form->kind == HRY_FORM_UNSIGNED)
            table[code] = (float)integer_of(form, code);
        else
            table[code] = (float)small_float(form, code);
    }
}

/* e8m0's codes without a value; looked for apart so that the decoding loop stays simple. */
static bool find_invalid_scale(const uint8_t *codes, size_t count, size_t *bad) {
    unsigned found = 0;
    for (size_t i = 0; i < count; i++) found |= (unsigned)(codes[i] == 0) | (unsigned)(codes[i] == 255);
    if (!found) return false;
    for (*bad = 0; codes[*bad] != 0 && codes[*bad] != 255;) ++*bad;
    return true;
}

static void floats_f32(const HryForm *form, const uint8_t *codes, size_t count, float *out) {
    switch (form->bits) {
    case 16:
        if (form->mantissa_bits == 10)
            for (size_t i = 0; i < count; i++) out[i] = hry_f32_of_half(hry_load_u16(codes + 2 * i));
        else
            for (size_t i = 0; i < count; i++) out[i] = hry_f32_of_bfloat16(hry_load_u16(codes + 2 * i));
        break;
    case 32:
        for (size_t i = 0; i < count; i++) out[i] = hry_load_f32(codes + 4 * i);
        break;
    case 64:
        for (size_t i = 0; i < count; i++) out[i] = (float)hry_load_f64(codes + 8 * i);
        break;
    default:
        for (size_t i = 0; i < count; i++) out[i] = (float)odd_f64_of_f128(codes + 16 * i);
        break;
    }
}

static void integers_f32(const HryForm *form, const uint8_t *codes, size_t count, float *out) {
    bool is_signed = form->kind == HRY_FORM_SIGNED;
    switch (form->bits) {
    case 16:
        if (is_signed)
            for (size_t i = 0; i < count; i++) out[i] = (float)(int16_t)hry_load_u16(codes + 2 * i);
        else
            for (size_t i = 0; i < count; i++) out[i] = (float)hry_load_u16(codes + 2 * i);
        break;
    case 32:
        if (is_signed)
            for (size_t i = 0; i < count; i++) out[i] = (float)(int32_t)hry_load_u32(codes + 4 * i);
        else
            for (size_t i = 0; i < count; i++) out[i] = (float)hry_load_u32(codes + 4 * i);
        break;
    default:
        if (is_signed)
            for (size_t i = 0; i < count; i++) out[i] = (float)(int64_t)hry_load_u64(codes + 8 * i);
        else
            for (size_t i = 0; i < count; i++) out[i] = (float)hry_load_u64(codes + 8 * i);
        break;
    }
}

bool hry_values_f32(const HryForm *form, const float *table, const uint8_t *codes, size_t count, float *out, size_t *bad) {
    if (form->kind == HRY_FORM_SCALE && find_invalid_scale(codes, count, bad)) return false;
    if (form->bits > 8) {
        if (form->kind == HRY_FORM_FLOAT)
            floats_f32(form, codes, count, out);
        else
            integers_f32(form, codes, count, out);
    } else if (form->bits == 8 && form->kind == HRY_FORM_SIGNED) {
        for (size_t i = 0; i < count; i++) out[i] = (float)(int8_t)codes[i];
    } else if (form->kind == HRY_FORM_UNSIGNED) {
        for (size_t i = 0; i < count; i++) out[i] = (float)codes[i];
    } else if (form->kind == HRY_FORM_SIGNED) {
        int sign = 1 << (form->bits - 1);
        for (size_t i = 0; i < count; i++) out[i] = (float)((codes[i] ^ sign) - sign);
    } else {
        for (size_t i = 0; i < count; i++) out[i] = table[codes[i]];
    }
    return true;
}
