#include "format/ggml.h"

#include <stddef.h>

#include "base/endian.h"
#include "format/half.h"

/* Everything before the last operation of each formula is exact in float32, so neither order nor fusing changes a bit. */

static const int8_t nonlinear_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int8_t twice_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static float half_at(const uint8_t *p) { return hry_f32_of_half(hry_load_u16(p)); }
static int low(uint8_t b) { return b & 15; }
static int high(uint8_t b) { return b >> 4; }

static void decode_q4_0(const uint8_t *b, float *dst) {
    float d = half_at(b);
    for (int i = 0; i < 16; i++) {
        dst[i] = d * (float)(low(b[2 + i]) - 8);
        dst[16 + i] = d * (float)(high(b[2 + i]) - 8);
    }
}

static void decode_q4_1(const uint8_t *b, float *dst) {
    float d = half_at(b), m = half_at(b + 2);
    for (int i = 0; i < 16; i++) {
        dst[i] = d * (float)low(b[4 + i]) + m;
        dst[16 + i] = d * (float)high(b[4 + i]) + m;
    }
}

/* The fifth bits of Q5_0 and Q5_1: bit i of qh belongs to element i. */
static void five_bits(const uint8_t *qs, uint32_t qh, int *q) {
    for (unsigned i = 0; i < 16; i++) {
        q[i] = low(qs[i]) | (int)(qh >> i & 1) << 4;
        q[16 + i] = high(qs[i]) | (int)(qh >> (16 + i) & 1) << 4;
    }
}

static void decode_q5_0(const uint8_t *b, float *dst) {
    float d = half_at(b);
    int q[32];
    five_bits(b + 6, hry_load_u32(b + 2), q);
    for (int i = 0; i < 32; i++) dst[i] = d * (float)(q[i] - 16);
}

static void decode_q5_1(const uint8_t *b, float *dst) {
    float d = half_at(b), m = half_at(b + 2);
    int q[32];
    five_bits(b + 8, hry_load_u32(b + 4), q);
    for (int i = 0; i < 32; i++) dst[i] = d * (float)q[i] + m;
}

static void decode_q8_0(const uint8_t *b, float *dst) {
    float d = half_at(b);
    for (int i = 0; i < 32; i++) dst[i] = d * (float)(int8_t)b[2 + i];
}

static void decode_q8_1(const uint8_t *b, float *dst) {
    float d = half_at(b);
    for (int i = 0; i < 32; i++) dst[i] = d * (float)(int8_t)b[4 + i];
}

static void decode_q8_k(const uint8_t *b, float *dst) {
    float d = hry_load_f32(b);
    for (int i = 0; i < 256; i++) dst[i] = d * (float)(int8_t)b[4 + i];
}

static void decode_q2_k(const uint8_t *b, float *dst) {
    float d = half_at(b + 80), dmin = half_at(b + 82);
    for (int c = 0; c < 16; c++) { /* 16 elements share a scale */
        const uint8_t *qs = b + 16 + 32 * (c / 8) + 16 * (c & 1);
        int shift = 2 * (c % 8 / 2);
        float scale = d * (float)low(b[c]), least = dmin * (float)high(b[c]);
        for (int l = 0; l < 16; l++) dst[16 * c + l] = scale * (float)(qs[l] >> shift & 3) - least;
    }
}

static void decode_q3_k(const uint8_t *b, float *dst) {
    const uint8_t *mask = b, *scales = b + 96;
    float d = half_at(b + 108);
    for (int c = 0; c < 16; c++) {
        const uint8_t *qs = b + 32 + 32 * (c / 8) + 16 * (c & 1), *hm = mask + 16 * (c & 1);
        int shift = 2 * (c % 8 / 2), bit = c / 2;
        int s = (c < 8 ? low(scales[c]) : high(scales[c - 8])) | (scales[8 + c % 4] >> 2 * (c / 4) & 3) << 4;
        float scale = d * (float)(s - 32);
        for (int l = 0; l < 16; l++) {
            int q = (qs[l] >> shift & 3) - 4 + ((hm[l] >> bit & 1) << 2);
            dst[16 * c + l] = scale * (float)q;
        }
    }
}

/* The 6-bit scale and minimum of group g, in the 12 bytes that Q4_K and Q5_K share. */
static void six_bit_pair(const uint8_t *sc, int g, int *scale, int *least) {
    if (g < 4) {
        *scale = sc[g] & 63;
        *least = sc[g + 4] & 63;
    } else {
        *scale = low(sc[g + 4]) | sc[g - 4] >> 6 << 4;
        *least = high(sc[g + 4]) | sc[g] >> 6 << 4;
    }
}

static void decode_q4_k(const uint8_t *b, float *dst) {
    float d = half_at(b), dmin = half_at(b + 2);
    for (int g = 0; g < 8; g++) {
        const uint8_t *qs = b + 16 + 32 * (g / 2);
        int s, m, shift = 4 * (g & 1);
        six_bit_pair(b + 4, g, &s, &m);
        float scale = d * (float)s, least = dmin * (float)m;
        for (int l = 0; l < 32; l++) dst[32 * g + l] = scale * (float)(qs[l] >> shift & 15) - least;
    }
}

static void decode_q5_k(const uint8_t *b, float *dst) {
    float d = half_at(b), dmin = half_at(b + 2);
    for (int g = 0; g < 8; g++) {
        const uint8_t *qh = b + 16, *qs = b + 48 + 32 * (g / 2);
        int s, m, shift = 4 * (g & 1);
        six_bit_pair(b + 4, g, &s, &m);
        float scale = d * (float)s, least = dmin * (float)m;
        for (int l = 0; l < 32; l++) {
            int q = (qs[l] >> shift & 15) | (qh[l] >> g & 1) << 4;
            dst[32 * g + l] = scale * (float)q - least;
        }
    }
}

static void decode_q6_k(const uint8_t *b, float *dst) {
    float d = half_at(b + 208);
    for (int c = 0; c < 16; c++) {
        int n = c / 8, j = c % 8 / 2, in = 16 * (c & 1);
        const uint8_t *ql = b + 64 * n + 32 * (j & 1) + in, *qh = b + 128 + 32 * n + in;
        int shift = j < 2 ? 0 : 4;
        float scale = d * (float)(int8_t)b[192 + c];
        for (int l = 0; l < 16; l++) {
            int q = (ql[l] >> shift & 15) | (qh[l] >> 2 * j & 3) << 4;
            dst[16 * c + l] = scale * (float)(q - 32);
        }
    }
}

static void decode_iq4_nl(const uint8_t *b, float *dst) {
    float d = half_at(b);
    for (int i = 0; i < 16; i++) {
        dst[i] = d * (float)nonlinear_levels[low(b[2 + i])];
        dst[16 + i] = d * (float)nonlinear_levels[high(b[2 + i])];
    }
}

static void decode_iq4_xs(const uint8_t *b, float *dst) {
    float d = half_at(b);
    unsigned high_bits = hry_load_u16(b + 2);
    for (int g = 0; g < 8; g++) {
        const uint8_t *qs = b + 8 + 16 * g;
        int s = (b[4 + g / 2] >> 4 * (g & 1) & 15) | (int)(high_bits >> 2 * g & 3) << 4;
        float scale = d * (float)(s - 32);
        for (int i = 0; i < 16; i++) {
            dst[32 * g + i] = scale * (float)nonlinear_levels[low(qs[i])];
            dst[32 * g + 16 + i] = scale * (float)nonlinear_levels[high(qs[i])];
        }
    }
}

/* Five ternary digits a byte, most significant first: digit p of b, less one. */
static int ternary(uint8_t b, uint8_t power) { return (uint8_t)(b * power) * 3 >> 8; }

static void decode_tq1_0(const uint8_t *b, float *dst) {
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    float d = half_at(b + 52);
    for (int p = 0; p < 5; p++) {
        for (int l = 0; l < 32; l++) dst[32 * p + l] = d * (float)(ternary(b[l], powers[p]) - 1);
        for (int l = 0; l < 16; l++) dst[160 + 16 * p + l] = d * (float)(ternary(b[32 + l], powers[p]) - 1);
    }
    for (int p = 0; p < 4; p++)
        for (int l = 0; l < 4; l++) dst[240 + 4 * p + l] = d * (float)(ternary(b[48 + l], powers[p]) - 1);
}

static void decode_tq2_0(const uint8_t *b, float *dst) {
    float d = half_at(b + 64);
    for (int g = 0; g < 8; g++) {
        const uint8_t *qs = b + 32 * (g / 4);
        int shift = 2 * (g % 4);
        for (int l = 0; l < 32; l++) dst[32 * g + l] = d * (float)((qs[l] >> shift & 3) - 1);
    }
}

static void decode_mxfp4(const uint8_t *b, float *dst) {
    float scale = hry_f32_power_of_two(b[0] - 128);
    for (int i = 0; i < 16; i++) {
        dst[i] = scale * (float)twice_e2m1[low(b[1 + i])];
        dst[16 + i] = scale * (float)twice_e2m1[high(b[1 + i])];
    }
}

/* An unsigned 8-bit float: 0x7F, and only that, means 0; else bit 7 is ignored. */
static float unsigned_e4m3(uint8_t code) {
    int e = code >> 3 & 15, m = code & 7;
    if (code == 0x7F) return 0;
    return e ? (float)(8 + m) * hry_f32_power_of_two(e - 10) : (float)m * hry_f32_power_of_two(-9);
}

static void decode_nvfp4(const uint8_t *b, float *dst) {
    for (int s = 0; s < 4; s++) {
        const uint8_t *qs = b + 4 + 8 * s;
        float scale = unsigned_e4m3(b[s]) * .5f;
        for (int i = 0; i < 8; i++) {
            dst[16 * s + i] = scale * (float)twice_e2m1[low(qs[i])];
            dst[16 * s + 8 + i] = scale * (float)twice_e2m1[high(qs[i])];
        }
    }
}

static void decode_q1_0(const uint8_t *b, float *dst) {
    float d = half_at(b);
    for (int i = 0; i < 128; i++) dst[i] = b[2 + i / 8] >> i % 8 & 1 ? d : -d;
}

static void decode_q2_0(const uint8_t *b, float *dst) {
    float d = half_at(b);
    for (int i = 0; i < 64; i++) dst[i] = d * (float)((b[2 + i / 4] >> 2 * (i % 4) & 3) - 1);
}

typedef struct TypeRow {
    HryGgmlType type;
    void (*decode)(const uint8_t *block, float *dst);
} TypeRow;

#define ROW(number, name, elements, bytes, decode)                                                                                         \
    { {number, name, elements, bytes, (decode) != NULL}, decode }

static const TypeRow rows[] = {
    ROW(2, "Q4_0", 32, 18, decode_q4_0),     ROW(3, "Q4_1", 32, 20, decode_q4_1),        ROW(6, "Q5_0", 32, 22, decode_q5_0),
    ROW(7, "Q5_1", 32, 24, decode_q5_1),     ROW(8, "Q8_0", 32, 34, decode_q8_0),        ROW(9, "Q8_1", 32, 36, decode_q8_1),
    ROW(10, "Q2_K", 256, 84, decode_q2_k),   ROW(11, "Q3_K", 256, 110, decode_q3_k),     ROW(12, "Q4_K", 256, 144, decode_q4_k),
    ROW(13, "Q5_K", 256, 176, decode_q5_k),  ROW(14, "Q6_K", 256, 210, decode_q6_k),     ROW(15, "Q8_K", 256, 292, decode_q8_k),
    ROW(16, "IQ2_XXS", 256, 66, NULL),       ROW(17, "IQ2_XS", 256, 74, NULL),           ROW(18, "IQ3_XXS", 256, 98, NULL),
    ROW(19, "IQ1_S", 256, 50, NULL),         ROW(20, "IQ4_NL", 32, 18, decode_iq4_nl),   ROW(21, "IQ3_S", 256, 110, NULL),
    ROW(22, "IQ2_S", 256, 82, NULL),         ROW(23, "IQ4_XS", 256, 136, decode_iq4_xs), ROW(29, "IQ1_M", 256, 56, NULL),
    ROW(34, "TQ1_0", 256, 54, decode_tq1_0), ROW(35, "TQ2_0", 256, 66, decode_tq2_0),    ROW(39, "MXFP4", 32, 17, decode_mxfp4),
    ROW(40, "NVFP4", 64, 36, decode_nvfp4),  ROW(41, "Q1_0", 128, 18, decode_q1_0),      ROW(42, "Q2_0", 64, 18, decode_q2_0),
};

static const TypeRow *find_row(uint32_t number) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type.number == number) return &rows[i];
    return NULL;
}

const HryGgmlType *hry_ggml_find(uint32_t number) {
    const TypeRow *row = find_row(number);
    return row ? &row->type : NULL;
}

void hry_ggml_decode(const HryGgmlType *type, const uint8_t *blocks, uint64_t count, float *dst) {
    const TypeRow *row = find_row(type->number);
    if (!row || !row->decode) return;
    for (uint64_t k = 0; k < count; k++) row->decode(blocks + k * type->block_bytes, dst + k * type->block_elements);
}
