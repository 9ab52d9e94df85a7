#include "format/dequant.h"

#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/codes.h"
#include "format/dense.h"
#include "support/contents.h"

static void the_callers_rounding_mode_changes_nothing_and_stays(void **state) {
    (void)state;
    const uint64_t shape[] = {1};
    const double value = 1 + 0x1p-25;
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT64, .rank = 1, .shape = shape, .sizes = {8}, .data = {&value}});
    assert_int_equal(fesetround(FE_UPWARD), 0);
    float *out = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
    assert_int_equal(fegetround(), FE_UPWARD);
    fesetround(FE_TONEAREST);
    assert_true(hry_load_f32(out) == 1);
    free(out);
    contents_free(&contents);
}

#if defined(__SSE2__)
#include <xmmintrin.h>
static void flush_to_zero_of_the_caller_does_not_reach_the_values(void **state) {
    (void)state;
    const uint64_t shape[] = {1};
    const uint8_t one[] = {2};
    HurrayQuantization q = contents_scheme(HURRAY_QUANT_PER_TENSOR_AFFINE);
    q.scale = 0x1p-140f;
    Contents contents;
    HryDense dense;
    HurrayError error;
    uint8_t out[4], element[4];
    const uint64_t index[] = {0};
    contents_make(&contents,
                  &(ContentsSpec){.type = HURRAY_TYPE_UINT8, .rank = 1, .shape = shape, .quantization = &q, .sizes = {1}, .data = {one}});
    unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040);
    HurrayStatus opened = hry_dense_open(&dense, contents.descriptor, contents.bytes, HURRAY_TYPE_FLOAT32, &error);
    HurrayStatus filled = hry_dense_stretch(&dense, 0, 1, out, &error);
    HurrayStatus taken = hry_dense_element(&dense, index, element, &error);
    unsigned after = _mm_getcsr();
    _mm_setcsr(saved);
    assert_int_equal(after & 0x8040, 0x8040);
    assert_int_equal(opened, HURRAY_OK);
    assert_int_equal(filled, HURRAY_OK);
    assert_int_equal(taken, HURRAY_OK);
    assert_true(hry_load_f32(out) == 0x1p-139f);
    assert_memory_equal(out, element, 4);
    contents_free(&contents);
}
#endif

static void differences_beyond_32_bits_are_exact_before_rounding(void **state) {
    (void)state;
    const uint64_t shape[] = {3};
    const int32_t stored[] = {INT32_MIN, 5, INT32_MAX}, zero = INT32_MAX;
    const float scale = 0.5f;
    HurrayQuantization q = contents_scheme(HURRAY_QUANT_PER_TENSOR_AFFINE);
    q.scale = scale;
    q.zero_point = zero;
    Contents contents;
    contents_make(
        &contents,
        &(ContentsSpec){.type = HURRAY_TYPE_INT32, .rank = 1, .shape = shape, .quantization = &q, .sizes = {12}, .data = {stored}});
    uint8_t *values = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
    for (int i = 0; i < 3; i++) assert_true(hry_load_f32(values + 4 * i) == scale * (float)((int64_t)stored[i] - zero));
    free(values);
    contents_free(&contents);
}

/* One element of any quantized dense tensor, from the sentences of section 4. */
static float literal_quantized(const Contents *contents, const uint64_t *index, const uint8_t *code) {
    const HurrayDescriptor *d = contents->descriptor;
    const HurrayQuantization *q = &d->quantization;
    HryForm form = hry_form_of(d);
    uint64_t p = index[q->axis], blocks = 0, count = d->shape[q->axis];
    if (q->scheme != HURRAY_QUANT_PER_CHANNEL_AFFINE) {
        blocks = (d->shape[q->axis] + q->block_size - 1) / q->block_size;
        uint64_t outer = 0;
        count = blocks;
        for (uint32_t k = 0; k < d->rank; k++) {
            if (k == q->axis) continue;
            outer = outer * d->shape[k] + index[k];
            count *= d->shape[k];
        }
        p = outer * blocks + index[q->axis] / q->block_size;
    }
    const uint8_t *scales = contents->bytes[q->scale_buffer].data;
    float scale;
    uint32_t width = 4;
    if (q->scheme == HURRAY_QUANT_MXFP) {
        float table[256], value;
        size_t bad;
        hry_value_table(&form, table);
        assert_true(hry_values_f32(&form, table, code, 1, &value, &bad));
        return ldexpf(1, scales[p] - 127) * value;
    }
    if (q->scale_type == HURRAY_TYPE_FLOAT32 || q->scheme == HURRAY_QUANT_NF4)
        scale = hry_load_f32(scales + 4 * p);
    else {
        HryForm scale_form = hry_form_of_type(q->scale_type);
        size_t bad;
        width = 2;
        hry_values_f32(&scale_form, NULL, scales + 2 * p, 1, &scale, &bad);
    }
    if (q->scheme == HURRAY_QUANT_NF4) {
        static const double levels[16] = {-1,
                                          -0.6961928009986877,
                                          -0.5250730514526367,
                                          -0.39491748809814453,
                                          -0.28444138169288635,
                                          -0.18477343022823334,
                                          -0.09105003625154495,
                                          0,
                                          0.07958029955625534,
                                          0.16093020141124725,
                                          0.24611230194568634,
                                          0.33791524171829224,
                                          0.44070982933044434,
                                          0.5626170039176941,
                                          0.7229568362236023,
                                          1};
        return scale * (float)levels[*code];
    }
    int64_t zero = 0;
    if (!(q->flags & HURRAY_QUANT_SYMMETRIC)) {
        uint64_t at = q->zero_point_buffer == q->scale_buffer ? count * width : 0;
        zero = (int32_t)hry_load_u32(contents->bytes[q->zero_point_buffer].data + at + 4 * p);
    }
    return scale * (float)(hry_value_integer(&form, code) - zero);
}

static void every_scheme_axis_and_storage_decodes_by_the_formula(void **state) {
    (void)state;
    const uint64_t shape[] = {6, 32, 17}, even[] = {32, 5, 64};
    static const uint8_t layouts[] = {HURRAY_LAYOUT_ROW_MAJOR, HURRAY_LAYOUT_COLUMN_MAJOR};
    static const uint8_t affine[] = {HURRAY_TYPE_INT8,  HURRAY_TYPE_UINT8, HURRAY_TYPE_INT4,   HURRAY_TYPE_UINT4, HURRAY_TYPE_INT2,
                                     HURRAY_TYPE_UINT2, HURRAY_TYPE_INT16, HURRAY_TYPE_UINT16, HURRAY_TYPE_INT32, HURRAY_TYPE_UINT32};
    static const uint8_t mxfp[] = {HURRAY_TYPE_FLOAT8_E4M3, HURRAY_TYPE_FLOAT8_E5M2, HURRAY_TYPE_FLOAT4_E2M1, HURRAY_TYPE_FLOAT6_E2M3,
                                   HURRAY_TYPE_FLOAT6_E3M2, HURRAY_TYPE_INT8,        HURRAY_TYPE_INT4};
    uint64_t seed = 23;
    unsigned compared = 0;
    for (uint8_t scheme = HURRAY_QUANT_PER_CHANNEL_AFFINE; scheme <= HURRAY_QUANT_MXFP; scheme++)
        for (uint32_t axis = 0; axis < 3; axis++)
            for (size_t t = 0; t < 10; t++)
                for (int variant = 0; variant < 6; variant++) { /* symmetric, own zero buffer, shared buffer; each in two orders */
                    HurrayQuantization q = contents_scheme(scheme);
                    uint8_t type = affine[t];
                    const uint64_t *dims = scheme == HURRAY_QUANT_MXFP ? even : shape;
                    bool is_affine = scheme <= HURRAY_QUANT_PER_BLOCK_AFFINE;
                    if (scheme == HURRAY_QUANT_PER_BLOCK_AFFINE && t >= 6) continue;
                    if (scheme == HURRAY_QUANT_MXFP && (t >= 7 || axis == 1)) continue;
                    if (scheme == HURRAY_QUANT_NF4 && (t > 0 || axis == 0)) continue;
                    if (!is_affine && variant > 1) continue;
                    if (scheme == HURRAY_QUANT_MXFP) type = mxfp[t];
                    if (scheme == HURRAY_QUANT_NF4) type = HURRAY_TYPE_UINT4;
                    q.axis = axis;
                    q.block_size = scheme == HURRAY_QUANT_PER_BLOCK_AFFINE ? 4
                                   : scheme == HURRAY_QUANT_NF4            ? 8
                                   : scheme == HURRAY_QUANT_MXFP           ? 16
                                                                           : 0;
                    uint64_t count = dims[axis], elements = dims[0] * dims[1] * dims[2], width = scheme == HURRAY_QUANT_MXFP ? 1 : 4, size;
                    if (q.block_size) count = (dims[axis] + q.block_size - 1) / q.block_size * (elements / dims[axis]);
                    q.scale_buffer = 1;
                    q.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
                    if (is_affine) q.scale_type = HURRAY_TYPE_FLOAT32;
                    if (scheme == HURRAY_QUANT_PER_BLOCK_AFFINE && t % 3) {
                        q.scale_type = t % 3 == 1 ? HURRAY_TYPE_FLOAT16 : HURRAY_TYPE_BFLOAT16;
                        width = 2;
                    }
                    HurrayLayout layout = contents_layout(layouts[variant % 2]);
                    uint32_t bits = hry_form_of_type(type).bits, mode = is_affine ? (uint32_t)variant / 2 : 0;
                    size = bits == 6 ? elements / 4 * 3 + 3 : (elements * bits + 7) / 8;
                    ContentsSpec spec = {.type = type,
                                         .rank = 3,
                                         .shape = dims,
                                         .layout = &layout,
                                         .quantization = &q,
                                         .buffer_count = 2,
                                         .sizes = {size, count * width, 4 * count}};
                    if (is_affine && mode == 0) q.flags = HURRAY_QUANT_SYMMETRIC;
                    if (mode == 1) q.zero_point_buffer = 2, spec.buffer_count = 3;
                    if (mode == 2) q.zero_point_buffer = 1, spec.sizes[1] += 4 * count;
                    if (spec.buffer_count == 2) spec.sizes[2] = 0;
                    Contents contents;
                    contents_make(&contents, &spec);
                    contents_fill_random(&contents, &seed);
                    for (uint64_t p = 0; p < count; p++) {
                        uint8_t *scale = contents_buffer(&contents, 1) + p * width;
                        float number = (float)(contents_random(&seed) % 2000 + 1) / 64;
                        if (width == 1) *scale = (uint8_t)(contents_random(&seed) % 254 + 1);
                        if (width == 2) hry_store_u16(scale, (uint16_t)(0x3000 + contents_random(&seed) % 0x1000));
                        if (width == 4) hry_store_f32(scale, p % 5 ? number : -number);
                    }
                    uint8_t *values = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
                    HryDense dense;
                    HurrayError error;
                    assert_int_equal(hry_dense_open(&dense, contents.descriptor, contents.bytes, HURRAY_TYPE_FLOAT32, &error), HURRAY_OK);
                    for (uint64_t k = 0; k < elements; k++) {
                        uint64_t index[3] = {k / (dims[1] * dims[2]), k / dims[2] % dims[1], k % dims[2]};
                        uint64_t o = variant % 2 ? index[0] + dims[0] * (index[1] + dims[1] * index[2]) : k;
                        uint8_t code[4], one[4];
                        hry_codes_get(contents.bytes[0].data, bits, (int64_t)o, 1, 1, code);
                        float want = literal_quantized(&contents, index, code), got = hry_load_f32(values + 4 * k);
                        if (memcmp(&want, &got, 4) != 0 && !(isnan(want) && isnan(got)))
                            fail_msg("scheme %u axis %u type %02X variant %d element %llu: %a, expected %a", scheme, axis, type, variant,
                                     (unsigned long long)k, (double)got, (double)want);
                        if (k % 37 != 0) continue;
                        assert_int_equal(hry_dense_element(&dense, index, one, &error), HURRAY_OK);
                        assert_memory_equal(one, values + 4 * k, 4);
                        compared++;
                    }
                    free(values);
                    contents_free(&contents);
                }
    assert_true(compared > 1000);
}

static void a_zero_point_outside_its_type_still_counts_exactly(void **state) {
    (void)state;
    const uint64_t shape[] = {2};
    const uint8_t codes[] = {3, 4};
    const float scales[] = {1, 1};
    const int32_t zeros[] = {INT32_MIN, 16777217};
    HurrayQuantization q = contents_scheme(HURRAY_QUANT_PER_CHANNEL_AFFINE);
    q.scale_type = HURRAY_TYPE_FLOAT32;
    q.scale_buffer = 1;
    q.zero_point_buffer = 2;
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_UINT8,
                                             .rank = 1,
                                             .shape = shape,
                                             .quantization = &q,
                                             .buffer_count = 3,
                                             .sizes = {2, 8, 8},
                                             .data = {codes, scales, zeros}});
    uint8_t *values = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
    assert_true(hry_load_f32(values) == (float)(3 - (int64_t)INT32_MIN));
    assert_true(hry_load_f32(values + 4) == (float)(4 - INT64_C(16777217)));
    free(values);
    contents_free(&contents);
}

static void an_mxfp_scale_without_a_value_is_refused_by_block(void **state) {
    (void)state;
    const uint64_t shape[] = {32};
    HurrayQuantization q = contents_scheme(HURRAY_QUANT_MXFP);
    q.block_size = 16;
    q.scale_buffer = 1;
    Contents contents;
    HurrayError error;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8,
                                             .rank = 1,
                                             .shape = shape,
                                             .quantization = &q,
                                             .buffer_count = 2,
                                             .sizes = {32, 2},
                                             .data = {NULL, "\x7F\xFF"}});
    assert_int_equal(contents_dense_status(&contents, HURRAY_TYPE_FLOAT32, &error), HURRAY_ERR_INVALID_DATA);
    assert_non_null(strstr(error.message, "block 1"));
    assert_int_equal(error.buffer_index, 1);
    contents_free(&contents);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_callers_rounding_mode_changes_nothing_and_stays),
#if defined(__SSE2__)
        cmocka_unit_test(flush_to_zero_of_the_caller_does_not_reach_the_values),
#endif
        cmocka_unit_test(differences_beyond_32_bits_are_exact_before_rounding),
        cmocka_unit_test(every_scheme_axis_and_storage_decodes_by_the_formula),
        cmocka_unit_test(a_zero_point_outside_its_type_still_counts_exactly),
        cmocka_unit_test(an_mxfp_scale_without_a_value_is_refused_by_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
