#include "format/value.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/codes.h"
#include "support/contents.h"

static float value_of(const HryForm *form, const void *code) {
    float table[256], value = 0;
    size_t bad;
    if (form->bits <= 8) hry_value_table(form, table);
    assert_true(hry_values_f32(form, table, code, 1, &value, &bad));
    return value;
}

/* Section 2's formula, literally, for floats of at most 16 bits. */
static double literal(uint32_t code, int exponent_bits, int mantissa_bits, int bias) {
    double m = ldexp((double)(code & ((1u << mantissa_bits) - 1)), -mantissa_bits);
    int e = (int)(code >> mantissa_bits & ((1u << exponent_bits) - 1));
    double value = e ? ldexp(1 + m, e - bias) : ldexp(m, 1 - bias);
    return code >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}

static void assert_same_float(float got, float want) {
    if (isnan(want))
        assert_true(isnan(got));
    else
        assert_memory_equal(&got, &want, sizeof got);
}

static void every_code_of_every_small_float_has_the_value_of_the_formula(void **state) {
    (void)state;
    static const struct {
        uint8_t tag;
        int exponent_bits, mantissa_bits, bias;
    } types[] = {{HURRAY_TYPE_FLOAT16, 5, 10, 15},    {HURRAY_TYPE_BFLOAT16, 8, 7, 127},  {HURRAY_TYPE_FLOAT8_E4M3, 4, 3, 7},
                 {HURRAY_TYPE_FLOAT8_E5M2, 5, 2, 15}, {HURRAY_TYPE_FLOAT6_E3M2, 3, 2, 3}, {HURRAY_TYPE_FLOAT6_E2M3, 2, 3, 1},
                 {HURRAY_TYPE_FLOAT4_E2M1, 2, 1, 1}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        HryForm form = hry_form_of_type(types[t].tag);
        uint32_t magnitude = (1u << (form.bits - 1)) - 1;
        for (uint32_t code = 0; code < 1u << form.bits; code++) {
            uint8_t bytes[2];
            hry_store_u16(bytes, (uint16_t)code);
            float want = (float)literal(code, types[t].exponent_bits, types[t].mantissa_bits, types[t].bias);
            uint32_t e = code >> types[t].mantissa_bits & ((1u << types[t].exponent_bits) - 1),
                     m = code & ((1u << types[t].mantissa_bits) - 1);
            if (form.rule == HRY_FLOAT_IEEE && e == (1u << types[t].exponent_bits) - 1) want = m ? NAN : copysignf(INFINITY, want);
            if (types[t].tag == HURRAY_TYPE_FLOAT8_E4M3 && (code & magnitude) == magnitude) want = NAN;
            assert_same_float(value_of(&form, bytes), want);
        }
    }
}

static void the_largest_values_are_those_of_the_table(void **state) {
    (void)state;
    static const struct {
        uint8_t tag, code;
        float value;
    } cases[] = {{HURRAY_TYPE_FLOAT8_E5M2, 0x7B, 57344},  {HURRAY_TYPE_FLOAT8_E4M3, 0x7E, 448},
                 {HURRAY_TYPE_FLOAT6_E3M2, 0x1F, 28},     {HURRAY_TYPE_FLOAT6_E2M3, 0x1F, 7.5f},
                 {HURRAY_TYPE_FLOAT4_E2M1, 7, 6},         {HURRAY_TYPE_FLOAT8_E8M0, 0xFE, 0x1p127f},
                 {HURRAY_TYPE_FLOAT8_E8M0, 1, 0x1p-126f}, {HURRAY_TYPE_FLOAT8_E5M2, 0xFC, -INFINITY}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        HryForm form = hry_form_of_type(cases[c].tag);
        assert_same_float(value_of(&form, &cases[c].code), cases[c].value);
    }
}

static void float16_and_bfloat16_keep_nan_payloads(void **state) {
    (void)state;
    HryForm half = hry_form_of_type(HURRAY_TYPE_FLOAT16), brain = hry_form_of_type(HURRAY_TYPE_BFLOAT16);
    uint8_t signalling[2] = {0x01, 0x7C}, payload[2] = {0xC1, 0xFF};
    float value = value_of(&half, signalling);
    uint32_t bits;
    memcpy(&bits, &value, 4);
    assert_int_equal(bits, 0x7F802000);
    value = value_of(&brain, payload);
    memcpy(&bits, &value, 4);
    assert_int_equal(bits, 0xFFC10000);
}

static void invalid_scales_are_named_by_place(void **state) {
    (void)state;
    HryForm form = hry_form_of_type(HURRAY_TYPE_FLOAT8_E8M0);
    float table[256], values[4];
    size_t bad = 9;
    hry_value_table(&form, table);
    assert_false(hry_values_f32(&form, table, (const uint8_t *)"\x01\x02\xFF\x00", 4, values, &bad));
    assert_int_equal(bad, 2);
    assert_false(hry_values_f32(&form, table, (const uint8_t *)"\x00", 1, values, &bad));
    assert_int_equal(bad, 0);
}

static void integers_of_every_width_become_the_nearest_float32(void **state) {
    (void)state;
    static const struct {
        uint8_t tag;
        uint64_t code;
        float value;
    } cases[] = {{HURRAY_TYPE_INT8, 0x80, -128},
                 {HURRAY_TYPE_UINT8, 0xFF, 255},
                 {HURRAY_TYPE_INT16, 0x8000, -32768},
                 {HURRAY_TYPE_UINT16, 0xFFFF, 65535},
                 {HURRAY_TYPE_INT32, 0x80000000, -0x1p31f},
                 {HURRAY_TYPE_INT32, 16777217, 16777216},
                 {HURRAY_TYPE_UINT32, 0xFFFFFFFF, 0x1p32f},
                 {HURRAY_TYPE_INT64, UINT64_C(0x8000000000000000), -0x1p63f},
                 {HURRAY_TYPE_UINT64, UINT64_MAX, 0x1p64f},
                 {HURRAY_TYPE_BOOL, 1, 1},
                 {HURRAY_TYPE_INT4, 8, -8},
                 {HURRAY_TYPE_INT4, 7, 7},
                 {HURRAY_TYPE_UINT4, 15, 15},
                 {HURRAY_TYPE_INT2, 2, -2},
                 {HURRAY_TYPE_INT2, 1, 1},
                 {HURRAY_TYPE_UINT2, 3, 3}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        HryForm form = hry_form_of_type(cases[c].tag);
        uint8_t code[8];
        hry_store_u64(code, cases[c].code);
        assert_same_float(value_of(&form, code), cases[c].value);
    }
    HryForm int4 = hry_form_of_type(HURRAY_TYPE_INT4), int64 = hry_form_of_type(HURRAY_TYPE_INT64);
    uint8_t least[8];
    hry_store_u64(least, UINT64_C(1) << 63);
    assert_int_equal(hry_value_integer(&int4, (const uint8_t *)"\x0F"), -1);
    assert_true(hry_value_integer(&int64, least) == INT64_MIN);
}

static void store_f128(uint8_t *code, unsigned sign, unsigned exponent, uint64_t high48, uint64_t low64) {
    hry_store_u64(code, low64);
    hry_store_u64(code + 8, (uint64_t)sign << 63 | (uint64_t)exponent << 48 | high48);
}

static void float64_and_float128_round_once_to_nearest_even(void **state) {
    (void)state;
    HryForm f64 = hry_form_of_type(HURRAY_TYPE_FLOAT64), f128 = hry_form_of_type(HURRAY_TYPE_FLOAT128);
    uint8_t code[16];
    hry_store_f64(code, 1 + 0x1p-24);
    assert_same_float(value_of(&f64, code), 1);
    hry_store_f64(code, 1 + 0x1p-24 + 0x1p-50);
    assert_same_float(value_of(&f64, code), 1 + FLT_EPSILON);
    hry_store_f64(code, 1e300);
    assert_same_float(value_of(&f64, code), INFINITY);
    /* 1 + 2^-24 + 2^-112: by way of float64 it would be a tie and round down */
    store_f128(code, 0, 16383, UINT64_C(1) << 24, 1);
    assert_same_float(value_of(&f128, code), 1 + FLT_EPSILON);
    store_f128(code, 0, 16383, UINT64_C(1) << 24, 0);
    assert_same_float(value_of(&f128, code), 1);
    store_f128(code, 1, 16383 + 5, UINT64_C(1) << 47, 0);
    assert_same_float(value_of(&f128, code), -48);
    store_f128(code, 1, 0, 0, 0);
    assert_same_float(value_of(&f128, code), -0.0f);
    store_f128(code, 0, 0, 0, 1);
    assert_same_float(value_of(&f128, code), 0);
    store_f128(code, 0, 16383 - 149, 0, 0);
    assert_same_float(value_of(&f128, code), 0x1p-149f);
    store_f128(code, 0, 16383 - 150, 0, 0); /* a tie between 0 and the least value */
    assert_same_float(value_of(&f128, code), 0);
    store_f128(code, 0, 16383 - 150, 0, 1);
    assert_same_float(value_of(&f128, code), 0x1p-149f);
    store_f128(code, 0, 16383 + 2000, 0, 0);
    assert_same_float(value_of(&f128, code), INFINITY);
    store_f128(code, 1, 0x7FFF, 0, 0);
    assert_same_float(value_of(&f128, code), -INFINITY);
    store_f128(code, 0, 0x7FFF, 0, 1);
    assert_same_float(value_of(&f128, code), NAN);
}

static Contents private_tensor(uint8_t tag, const HurrayExtensionType *extension) {
    static const uint64_t shape[] = {1};
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = tag, .rank = 1, .shape = shape, .extension_type = extension, .sizes = {64}});
    return contents;
}

static HurrayExtensionType fnuz(uint8_t exponent_bits, uint8_t mantissa_bits, uint32_t bias) {
    HurrayExtensionType x = HURRAY_EXTENSION_TYPE_INIT;
    x.bit_width = 8;
    x.packing_factor = x.is_float = x.sign_bits = x.has_nan = 1;
    x.exponent_bits = exponent_bits;
    x.mantissa_bits = mantissa_bits;
    x.exponent_bias = bias;
    return x;
}

static void fnuz_types_have_values_by_their_exact_section(void **state) {
    (void)state;
    HurrayExtensionType e4m3 = fnuz(4, 3, 8), e5m2 = fnuz(5, 2, 16);
    Contents contents = private_tensor(0xF0, &e4m3);
    HryForm form = hry_form_of(contents.descriptor);
    assert_int_equal(form.kind, HRY_FORM_FLOAT);
    for (uint32_t code = 0; code < 256; code++) {
        uint8_t byte = (uint8_t)code;
        assert_same_float(value_of(&form, &byte), code == 0x80 ? NAN : (float)literal(code, 4, 3, 8));
    }
    assert_same_float(value_of(&form, (const uint8_t *)"\x7F"), 240);
    contents_free(&contents);
    contents = private_tensor(0xF1, &e5m2);
    form = hry_form_of(contents.descriptor);
    assert_same_float(value_of(&form, (const uint8_t *)"\x7F"), 57344);
    assert_same_float(value_of(&form, (const uint8_t *)"\x80"), NAN);
    contents_free(&contents);
}

static void other_private_types_have_a_width_only(void **state) {
    (void)state;
    HurrayExtensionType e4m3 = fnuz(4, 3, 8), e5m2 = fnuz(5, 2, 16), changed;
    const struct {
        uint8_t tag;
        const HurrayExtensionType *section;
    } cases[] = {{0xF1, &e4m3}, {0xF0, &e5m2}, {0xF2, &e4m3}};
    for (size_t c = 0; c < 3; c++) {
        Contents contents = private_tensor(cases[c].tag, cases[c].section);
        HryForm form = hry_form_of(contents.descriptor);
        assert_int_equal(form.kind, HRY_FORM_NONE);
        assert_int_equal(form.bits, 8);
        contents_free(&contents);
    }
    for (int what = 0; what < 4; what++) {
        changed = e4m3;
        if (what == 0) changed.exponent_bias = 7;
        if (what == 1) changed.has_inf = 1;
        if (what == 2) changed.has_nan = 0;
        if (what == 3) changed.bit_width = 16;
        Contents contents = private_tensor(0xF0, &changed);
        assert_int_equal(hry_form_of(contents.descriptor).kind, HRY_FORM_NONE);
        assert_int_equal(hry_form_of(contents.descriptor).bits, changed.bit_width);
        contents_free(&contents);
    }
    assert_int_equal(hry_form_of_type(0xF0).kind, HRY_FORM_NONE);
    assert_int_equal(hry_form_of_type(0x99).bits, 0);
}

static const uint8_t narrow_floats[] = {HURRAY_TYPE_FLOAT16,     HURRAY_TYPE_BFLOAT16,    HURRAY_TYPE_FLOAT8_E4M3, HURRAY_TYPE_FLOAT8_E5M2,
                                        HURRAY_TYPE_FLOAT6_E3M2, HURRAY_TYPE_FLOAT6_E2M3, HURRAY_TYPE_FLOAT4_E2M1};

static uint32_t encode(const HryForm *form, float value) {
    uint8_t code[16] = {0};
    size_t bad;
    assert_true(hry_values_from_f32(form, &value, 1, code, &bad));
    return form->bits == 16 ? hry_load_u16(code) : code[0];
}

static void every_code_comes_back_and_ties_go_to_the_even_one(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof narrow_floats; t++) {
        HryForm form = hry_form_of_type(narrow_floats[t]);
        uint32_t sign = 1u << (form.bits - 1);
        float before = 0;
        for (uint32_t code = 0; code < 2 * sign; code++) {
            uint8_t bytes[2];
            hry_store_u16(bytes, (uint16_t)code);
            float value = value_of(&form, bytes);
            if (isnan(value)) continue;
            assert_int_equal(encode(&form, value), code);
            if ((code & (sign - 1)) != 0 && !isinf(value)) {
                float middle = before + (value - before) / 2; /* exact in float32 */
                assert_int_equal(encode(&form, middle), code & 1 ? code - 1 : code);
                assert_int_equal(encode(&form, nextafterf(middle, value)), code);
                assert_int_equal(encode(&form, nextafterf(middle, before)), code - 1);
            }
            before = value;
        }
    }
}

static void values_beyond_the_largest_become_infinity_nan_or_the_largest(void **state) {
    (void)state;
    static const struct {
        uint8_t tag;
        float value;
        uint32_t code;
    } cases[] = {
        {HURRAY_TYPE_FLOAT16, 65519.996f, 0x7BFF}, {HURRAY_TYPE_FLOAT16, 65520, 0x7C00},       {HURRAY_TYPE_FLOAT16, -1e10f, 0xFC00},
        {HURRAY_TYPE_FLOAT8_E5M2, 61440, 0x7C},    {HURRAY_TYPE_FLOAT8_E5M2, 61439.99f, 0x7B}, {HURRAY_TYPE_FLOAT8_E4M3, 464, 0x7E},
        {HURRAY_TYPE_FLOAT8_E4M3, 464.1f, 0x7F},   {HURRAY_TYPE_FLOAT8_E4M3, -INFINITY, 0xFF}, {HURRAY_TYPE_FLOAT6_E3M2, 1000, 0x1F},
        {HURRAY_TYPE_FLOAT6_E2M3, -1000, 0x3F},    {HURRAY_TYPE_FLOAT4_E2M1, INFINITY, 7},     {HURRAY_TYPE_FLOAT4_E2M1, -7, 15},
        {HURRAY_TYPE_BFLOAT16, FLT_MAX, 0x7F80},   {HURRAY_TYPE_FLOAT8_E8M0, 3, 128},          {HURRAY_TYPE_FLOAT8_E8M0, 6, 130},
        {HURRAY_TYPE_FLOAT8_E8M0, 0x1p-149f, 1},   {HURRAY_TYPE_FLOAT8_E8M0, 0x1p127f, 254},   {HURRAY_TYPE_FLOAT16, -1e-30f, 0x8000}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        HryForm form = hry_form_of_type(cases[c].tag);
        assert_int_equal(encode(&form, cases[c].value), cases[c].code);
    }
    HurrayExtensionType e4m3 = fnuz(4, 3, 8);
    Contents contents = private_tensor(0xF0, &e4m3);
    HryForm form = hry_form_of(contents.descriptor);
    assert_int_equal(encode(&form, 1e9f), 0x80);
    assert_int_equal(encode(&form, NAN), 0x80);
    assert_int_equal(encode(&form, -0.0f), 0);
    assert_int_equal(encode(&form, -1e-30f), 0);
    assert_int_equal(encode(&form, -240), 0xFF);
    contents_free(&contents);
}

static void values_without_a_code_are_named_by_place(void **state) {
    (void)state;
    static const struct {
        uint8_t tag;
        float value;
    } none[] = {{HURRAY_TYPE_FLOAT6_E3M2, NAN},      {HURRAY_TYPE_FLOAT6_E2M3, NAN},       {HURRAY_TYPE_FLOAT4_E2M1, NAN},
                {HURRAY_TYPE_FLOAT8_E8M0, NAN},      {HURRAY_TYPE_FLOAT8_E8M0, 0},         {HURRAY_TYPE_FLOAT8_E8M0, -1},
                {HURRAY_TYPE_FLOAT8_E8M0, INFINITY}, {HURRAY_TYPE_FLOAT8_E8M0, 0x1.9p127f}};
    for (size_t c = 0; c < sizeof none / sizeof *none; c++) {
        HryForm form = hry_form_of_type(none[c].tag);
        float values[2] = {1, none[c].value};
        uint8_t codes[2];
        size_t bad = 9;
        assert_false(hry_values_from_f32(&form, values, 2, codes, &bad));
        assert_int_equal(bad, 1);
    }
    static const uint8_t with_nan[] = {HURRAY_TYPE_FLOAT16, HURRAY_TYPE_BFLOAT16, HURRAY_TYPE_FLOAT8_E4M3, HURRAY_TYPE_FLOAT8_E5M2};
    for (size_t t = 0; t < sizeof with_nan; t++) {
        HryForm form = hry_form_of_type(with_nan[t]);
        uint8_t code[2];
        hry_store_u16(code, (uint16_t)encode(&form, NAN));
        assert_true(isnan(value_of(&form, code)));
    }
}

static void wider_floats_hold_float32_exactly(void **state) {
    (void)state;
    static const uint8_t wide[] = {HURRAY_TYPE_FLOAT32, HURRAY_TYPE_FLOAT64, HURRAY_TYPE_FLOAT128};
    static const float values[] = {0, -0.0f, 1, -1.5f, 0x1p-149f, -0x1.fffffep-127f, FLT_MAX, -INFINITY, NAN, 0x1p-126f, 3.1415927f};
    for (size_t t = 0; t < 3; t++) {
        HryForm form = hry_form_of_type(wide[t]);
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            uint8_t code[16];
            size_t bad;
            assert_true(hry_values_from_f32(&form, &values[v], 1, code, &bad));
            assert_same_float(value_of(&form, code), values[v]);
        }
    }
}

static void sums_of_narrow_floats_are_rounded_once(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (size_t t = 0; t < sizeof narrow_floats; t++) {
        HryForm form = hry_form_of_type(narrow_floats[t]);
        float table[256];
        hry_value_table(&form, table);
        for (int round = 0; round < 3000; round++) {
            uint8_t a[2] = {0}, b[2] = {0};
            size_t bad;
            uint32_t mask = (1u << form.bits) - 1;
            hry_store_u16(a, (uint16_t)(contents_random(&seed) >> 20 & mask));
            hry_store_u16(b, (uint16_t)(contents_random(&seed) >> 20 & mask));
            double exact = (double)value_of(&form, a) + (double)value_of(&form, b);
            assert_true(hry_values_add(&form, a, b, 1, &bad));
            float got = value_of(&form, a);
            if (isnan(exact)) {
                assert_true(isnan(got));
                continue;
            }
            /* no other code is nearer */
            for (uint32_t code = 0; code <= mask && form.bits <= 8; code++) {
                float near = table[code];
                if (isfinite(near) && isfinite(got)) assert_true(fabs((double)near - exact) >= fabs((double)got - exact));
            }
            if (form.bits == 16)
                assert_same_float(
                    got, value_of(&form, (uint8_t[2]){(uint8_t)encode(&form, (float)exact), (uint8_t)(encode(&form, (float)exact) >> 8)}));
        }
    }
}

static void sums_of_other_types_follow_their_own_arithmetic(void **state) {
    (void)state;
    uint8_t a[16], b[16];
    size_t bad;
    HryForm form = hry_form_of_type(HURRAY_TYPE_FLOAT32);
    hry_store_f32(a, 0x1p24f);
    hry_store_f32(b, 1);
    assert_true(hry_values_add(&form, a, b, 1, &bad));
    assert_true(hry_load_f32(a) == 0x1p24f);
    form = hry_form_of_type(HURRAY_TYPE_FLOAT64);
    hry_store_f64(a, 0x1p24);
    hry_store_f64(b, 1);
    assert_true(hry_values_add(&form, a, b, 1, &bad));
    assert_true(hry_load_f64(a) == 16777217.0);
    form = hry_form_of_type(HURRAY_TYPE_FLOAT128);
    store_f128(a, 0, 16383 + 60, 0, 0);
    store_f128(b, 0, 16383, 0, 0);
    assert_true(hry_values_add(&form, a, b, 1, &bad)); /* 2^60 + 1 */
    assert_int_equal(hry_load_u64(a), UINT64_C(1) << 52);
    form = hry_form_of_type(HURRAY_TYPE_COMPLEX64);
    hry_store_f32(a, 1);
    hry_store_f32(a + 4, 2);
    hry_store_f32(b, 10);
    hry_store_f32(b + 4, 20);
    assert_true(hry_values_add(&form, a, b, 1, &bad));
    assert_true(hry_load_f32(a) == 11 && hry_load_f32(a + 4) == 22);
    form = hry_form_of_type(HURRAY_TYPE_COMPLEX128);
    hry_store_f64(a, 1);
    hry_store_f64(a + 8, 2);
    hry_store_f64(b, 10);
    hry_store_f64(b + 8, 20);
    assert_true(hry_values_add(&form, a, b, 1, &bad));
    assert_true(hry_load_f64(a) == 11 && hry_load_f64(a + 8) == 22);
    static const struct {
        uint8_t tag;
        uint64_t a, b, sum;
    } integers[] = {{HURRAY_TYPE_INT8, 0x7F, 1, 0x80},
                    {HURRAY_TYPE_UINT8, 0xFF, 2, 1},
                    {HURRAY_TYPE_INT16, 0x7FFF, 1, 0x8000},
                    {HURRAY_TYPE_UINT32, 0xFFFFFFFF, 3, 2},
                    {HURRAY_TYPE_UINT64, UINT64_MAX, 1, 0},
                    {HURRAY_TYPE_UINT4, 9, 9, 2},
                    {HURRAY_TYPE_INT2, 1, 1, 2},
                    {HURRAY_TYPE_BOOL, 1, 1, 0}};
    for (size_t c = 0; c < sizeof integers / sizeof *integers; c++) {
        form = hry_form_of_type(integers[c].tag);
        hry_store_u64(a, integers[c].a);
        hry_store_u64(b, integers[c].b);
        assert_true(hry_values_add(&form, a, b, 1, &bad));
        uint64_t mask = form.bits == 64 ? UINT64_MAX : (UINT64_C(1) << form.bits) - 1;
        assert_int_equal(hry_load_u64(a) & mask, integers[c].sum);
    }
    form = hry_form_of_type(HURRAY_TYPE_FLOAT8_E8M0);
    assert_true(hry_values_add(&form, memcpy(a, "\x80", 1), (const uint8_t *)"\x80", 1, &bad));
    assert_int_equal(a[0], 0x81);
    assert_false(hry_values_add(&form, memcpy(a, "\xFE", 1), (const uint8_t *)"\xFE", 1, &bad));
    assert_false(hry_values_add(&form, memcpy(a, "\x80", 1), (const uint8_t *)"\x00", 1, &bad));
    form.kind = HRY_FORM_NONE;
    assert_false(hry_values_add(&form, a, b, 1, &bad));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_of_every_small_float_has_the_value_of_the_formula),
        cmocka_unit_test(the_largest_values_are_those_of_the_table),
        cmocka_unit_test(float16_and_bfloat16_keep_nan_payloads),
        cmocka_unit_test(invalid_scales_are_named_by_place),
        cmocka_unit_test(integers_of_every_width_become_the_nearest_float32),
        cmocka_unit_test(float64_and_float128_round_once_to_nearest_even),
        cmocka_unit_test(fnuz_types_have_values_by_their_exact_section),
        cmocka_unit_test(other_private_types_have_a_width_only),
        cmocka_unit_test(every_code_comes_back_and_ties_go_to_the_even_one),
        cmocka_unit_test(values_beyond_the_largest_become_infinity_nan_or_the_largest),
        cmocka_unit_test(values_without_a_code_are_named_by_place),
        cmocka_unit_test(wider_floats_hold_float32_exactly),
        cmocka_unit_test(sums_of_narrow_floats_are_rounded_once),
        cmocka_unit_test(sums_of_other_types_follow_their_own_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
