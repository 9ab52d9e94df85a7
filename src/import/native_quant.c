#include "import/native_quant.h"

#include <math.h>
#include <string.h>

#include "base/endian.h"
#include "format/half.h"

enum {
    Q4_0 = 2,
    Q5_0 = 6,
    Q8_0 = 8,
    Q3_K = 11,
    Q6_K = 14,
    Q8_K = 15,
    IQ4_NL = 20,
    IQ4_XS = 23,
    TQ1_0 = 34,
    TQ2_0 = 35,
    MXFP4 = 39,
    NVFP4 = 40,
    Q1_0 = 41,
    Q2_0 = 42
};

#define F16 HURRAY_TYPE_FLOAT16
#define F32 HURRAY_TYPE_FLOAT32

static const HryNative natives[] = {
    {Q8_0, HURRAY_TYPE_INT8, 8, 3, F16, 2, 32, false},       {Q4_0, HURRAY_TYPE_INT4, 4, 3, F16, 2, 32, false},
    {MXFP4, HURRAY_TYPE_FLOAT4_E2M1, 4, 5, 0, 1, 32, false}, {Q5_0, HURRAY_TYPE_INT8, 8, 3, F16, 2, 32, false},
    {IQ4_NL, HURRAY_TYPE_INT8, 8, 3, F16, 2, 32, false},     {NVFP4, HURRAY_TYPE_INT8, 8, 3, F16, 2, 16, false},
    {Q6_K, HURRAY_TYPE_INT8, 8, 3, F32, 4, 16, false},       {Q3_K, HURRAY_TYPE_INT4, 4, 3, F32, 4, 16, false},
    {IQ4_XS, HURRAY_TYPE_INT8, 8, 3, F32, 4, 32, false},     {Q8_K, HURRAY_TYPE_INT8, 8, 3, F32, 4, 256, false},
    {TQ1_0, HURRAY_TYPE_INT2, 2, 3, F16, 2, 256, false},     {Q1_0, HURRAY_TYPE_INT2, 2, 3, F16, 2, 128, false},
    {TQ2_0, HURRAY_TYPE_UINT2, 2, 3, F16, 2, 256, true},     {Q2_0, HURRAY_TYPE_UINT2, 2, 3, F16, 2, 64, true},
};

const HryNative *hry_native_find(uint32_t number) {
    for (size_t i = 0; i < sizeof natives / sizeof *natives; i++)
        if (natives[i].number == number) return &natives[i];
    return NULL;
}

static const int8_t nonlinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int8_t twice_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Low nibbles are the first h elements, high ones the rest. */
static uint32_t half_nibble(const uint8_t *bytes, uint32_t i, uint32_t h) { return i < h ? bytes[i] & 15u : bytes[i - h] >> 4; }

static uint32_t ternary(const uint8_t *block, uint32_t i) {
    static const uint8_t powers[] = {1, 3, 9, 27, 81};
    uint32_t b, p;
    if (i < 160)
        b = block[i % 32], p = i / 32;
    else if (i < 240)
        b = block[32 + (i - 160) % 16], p = (i - 160) / 16;
    else
        b = block[48 + (i - 240) % 4], p = (i - 240) / 4;
    return ((b * powers[p] % 256) * 3) >> 8;
}

static int32_t code_of(uint32_t number, const uint8_t *b, uint32_t i) {
    uint32_t n = i / 128, j = i % 128 / 32, l = i % 32, g = i / 32;
    switch (number) {
    case Q8_0: return (int8_t)b[2 + i];
    case Q8_K: return (int8_t)b[4 + i];
    case Q4_0: return (int32_t)half_nibble(b + 2, i, 16) - 8;
    case Q5_0: return (int32_t)(half_nibble(b + 6, i, 16) + 16 * ((hry_load_u32(b + 2) >> i) & 1)) - 16;
    case IQ4_NL: return nonlinear[half_nibble(b + 2, i, 16)];
    case IQ4_XS: return nonlinear[half_nibble(b + 8 + 16 * (size_t)g, l, 16)];
    case MXFP4: return (int32_t)half_nibble(b + 1, i, 16);
    case NVFP4: return twice_e2m1[half_nibble(b + 4 + 8 * (size_t)(i / 16), i % 16, 8)];
    case Q6_K: {
        uint8_t low = b[64 * n + 32 * (j & 1) + l];
        uint32_t high = (b[128 + 32 * n + l] >> (2 * j)) & 3u;
        return (int32_t)((j < 2 ? low & 15u : low >> 4) + 16 * high) - 32;
    }
    case Q3_K: return (int32_t)((b[32 + 32 * n + l] >> (2 * j)) & 3u) - ((b[l] >> g) & 1 ? 0 : 4);
    case TQ1_0: return (int32_t)ternary(b, i) - 1;
    case TQ2_0: return (b[32 * n + l] >> (2 * j)) & 3;
    case Q1_0: return (b[2 + i / 8] >> (i % 8)) & 1 ? 1 : -1;
    default: return (b[2 + i / 4] >> (2 * (i % 4))) & 3; /* Q2_0 */
    }
}

/* Half of an unsigned e4m3 as float16 bits: exact. */
static uint16_t half_of_e4m3(uint8_t b) {
    uint32_t exponent = (b >> 3) & 15u, m = b & 7u;
    if (b == 0 || b == 0x7F) return 0;
    if (exponent) return (uint16_t)((exponent + 7) << 10 | m << 7);
    if (m == 0) return 0;
    uint32_t k = m >= 4 ? 2 : m >= 2 ? 1 : 0;
    return (uint16_t)((k + 5) << 10 | (m - (1u << k)) << (10 - k));
}

/* The scale of scheme block `sub`: float16 bits or a float32. */
static uint16_t scale_half(uint32_t number, const uint8_t *b, uint32_t sub) {
    switch (number) {
    case NVFP4: return half_of_e4m3(b[sub]);
    case TQ1_0: return hry_load_u16(b + 52);
    case TQ2_0: return hry_load_u16(b + 64);
    default: return hry_load_u16(b);
    }
}

static float scale_float(uint32_t number, const uint8_t *b, uint32_t sub) {
    if (number == Q8_K) return hry_load_f32(b);
    if (number == Q6_K) return hry_f32_of_half(hry_load_u16(b + 208)) * (float)(int8_t)b[192 + sub];
    uint32_t s;
    if (number == Q3_K) {
        const uint8_t *sc = b + 96;
        s = (sub < 8 ? sc[sub] & 15u : (uint32_t)sc[sub - 8] >> 4) | (((uint32_t)sc[8 + sub % 4] >> (2 * (sub / 4))) & 3u) << 4;
        return hry_f32_of_half(hry_load_u16(b + 108)) * (float)((int32_t)s - 32);
    }
    uint32_t low = sub % 2 ? (uint32_t)b[4 + sub / 2] >> 4 : b[4 + sub / 2] & 15u; /* IQ4_XS */
    s = low + 16 * (((uint32_t)hry_load_u16(b + 2) >> (2 * sub)) & 3u);
    return hry_f32_of_half(hry_load_u16(b)) * (float)((int32_t)s - 32);
}

static HurrayStatus fail_scale(uint64_t block, const HryGgmlType *type, const char *what, HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_INVALID_DATA, "scale", HRY_NO_OFFSET,
                    "the scale of %s block %llu %s, which the format's own quantization cannot hold; keep the blocks", type->name,
                    (unsigned long long)block, what);
}

/* Writes the scale; *zero: all codes of this block become the zero point. */
static HurrayStatus put_scale(const HryNative *native, const HryGgmlType *type, const uint8_t *block, uint32_t sub, uint64_t at,
                              uint8_t *dst, bool *zero, HurrayError *error) {
    *zero = false;
    if (native->scheme == 5) {
        uint8_t e = block[0];
        bool zeros = true;
        for (uint32_t i = 0; i < 32; i++) zeros = zeros && (code_of(MXFP4, block, i) & 7) == 0;
        if (e == 0xFF || (e == 0 && !zeros)) return fail_scale(at, type, "is 2^-127 or NaN", error);
        dst[0] = e == 0 ? 127 : e;
        return HURRAY_OK;
    }
    if (native->scale_bytes == 2) {
        uint16_t half = scale_half(native->number, block, sub);
        if ((half & 0x7C00) == 0x7C00) return fail_scale(at, type, "is infinite or NaN", error);
        *zero = (half & 0x7FFF) == 0;
        hry_store_u16(dst, *zero ? 0x3C00 : half);
        return HURRAY_OK;
    }
    float scale = scale_float(native->number, block, sub);
    if (!isfinite(scale)) return fail_scale(at, type, "is infinite or NaN", error);
    *zero = scale == 0;
    hry_store_f32(dst, *zero ? 1.0f : scale);
    return HURRAY_OK;
}

HurrayStatus hry_native_convert(const HryNative *native, const HryGgmlType *type, const uint8_t *blocks, uint64_t count, uint8_t *codes,
                                uint8_t *scales, uint64_t first, HurrayError *error) {
    uint32_t subs = type->block_elements / native->block_size, per = 8u / native->bits, mask = (1u << native->bits) - 1;
    for (uint64_t k = 0; k < count; k++) {
        const uint8_t *block = blocks + k * type->block_bytes;
        for (uint32_t sub = 0; sub < subs; sub++) {
            bool zero;
            uint8_t unwanted[4];
            HurrayStatus status = put_scale(native, type, block, sub, first + k, scales ? scales : unwanted, &zero, error);
            if (status != HURRAY_OK) return status;
            if (scales) scales += native->scale_bytes;
            if (!codes) continue;
            uint32_t zero_code = native->has_zero_points ? 1 : 0;
            for (uint32_t i = 0; i < native->block_size; i += per) {
                uint32_t byte = 0;
                for (uint32_t p = 0; p < per; p++) {
                    uint32_t code = zero ? zero_code : (uint32_t)code_of(native->number, block, sub * native->block_size + i + p);
                    byte |= (code & mask) << (p * native->bits);
                }
                *codes++ = (uint8_t)byte;
            }
        }
    }
    return HURRAY_OK;
}
