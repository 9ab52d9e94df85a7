#include "format/dense.h"

#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/codes.h"
#include "format/sparse.h"
#include "support/contents.h"

static HurrayLayout layout_of(uint8_t tag) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    layout.tag = tag;
    return layout;
}

static HurrayQuantization scheme_of(uint8_t scheme) {
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    q.scheme = scheme;
    return q;
}

static HurrayStatus open_status(const Contents *contents, uint8_t type, HurrayError *error) {
    HryDense dense;
    hry_error_clear(error);
    return hry_dense_open(&dense, contents->descriptor, contents->bytes, type, error);
}

/* The whole dense view; free() it. */
static void *whole(const Contents *contents, uint8_t type) {
    HryDense dense;
    HurrayError error;
    uint64_t elements, bytes;
    hry_error_clear(&error);
    if (hry_dense_plan(contents->descriptor, type, &elements, &bytes, &error) != HURRAY_OK) fail_msg("%s", error.message);
    if (hry_dense_open(&dense, contents->descriptor, contents->bytes, type, &error) != HURRAY_OK) fail_msg("%s", error.message);
    void *out = malloc(bytes ? bytes : 1);
    assert_non_null(out);
    memset(out, 0xA5, bytes);
    if (hry_dense_stretch(&dense, 0, elements, out, &error) != HURRAY_OK) fail_msg("%s", error.message);
    return out;
}

static HurrayStatus whole_status(const Contents *contents, uint8_t type, HurrayError *error) {
    HryDense dense;
    uint64_t bytes;
    hry_error_clear(error);
    HurrayStatus status = hry_dense_open(&dense, contents->descriptor, contents->bytes, type, error);
    if (status != HURRAY_OK) return status;
    assert_true(hry_dense_bytes(&dense, dense.elements, &bytes));
    void *out = malloc(bytes ? bytes : 1);
    assert_non_null(out);
    status = hry_dense_stretch(&dense, 0, dense.elements, out, error);
    free(out);
    return status;
}

/* ---- refusals ---- */

static void assert_refused(const Contents *contents, uint8_t type, const char *field, const char *says) {
    HurrayError error;
    uint64_t elements, bytes;
    hry_error_clear(&error);
    assert_int_equal(hry_dense_plan(contents->descriptor, type, &elements, &bytes, &error), HURRAY_ERR_UNSUPPORTED);
    assert_string_equal(error.field, field);
    if (!strstr(error.message, says)) fail_msg("\"%s\" does not say \"%s\"", error.message, says);
    assert_int_equal(open_status(contents, type, &error), HURRAY_ERR_UNSUPPORTED);
}

static void only_the_own_type_and_float32_are_offered(void **state) {
    (void)state;
    const uint64_t shape[] = {2};
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8, .rank = 1, .shape = shape, .sizes = {2}});
    assert_refused(&contents, HURRAY_TYPE_FLOAT16, "type", "float16");
    assert_refused(&contents, HURRAY_TYPE_INT8, "type", "int8");
    assert_refused(&contents, 0xFF, "type", "0xFF");
    contents_free(&contents);
}

static void complex_has_no_float32_but_its_own_bits(void **state) {
    (void)state;
    const uint64_t shape[] = {2};
    const float values[] = {1, 2, 3, 4};
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_COMPLEX64, .rank = 1, .shape = shape, .sizes = {16}, .data = {values}});
    assert_refused(&contents, HURRAY_TYPE_FLOAT32, "element_type", "complex64");
    void *own = whole(&contents, HRY_DENSE_OWN);
    assert_memory_equal(own, values, 16);
    free(own);
    contents_free(&contents);
}

static void a_dynamic_dimension_has_no_dense_view(void **state) {
    (void)state;
    const uint64_t shape[] = {HURRAY_DYNAMIC_DIMENSION, 2};
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8, .rank = 2, .shape = shape, .sizes = {64}});
    assert_refused(&contents, HRY_DENSE_OWN, "shape", "dynamic");
    contents_free(&contents);
}

static void sparse_tensors_with_more_elements_than_64_bits_are_refused(void **state) {
    (void)state;
    const uint64_t shape[] = {UINT64_C(1) << 40, UINT64_C(1) << 40}, wide[] = {UINT64_C(1) << 30, UINT64_C(1) << 33};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_COO);
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT32, .rank = 2, .shape = shape, .layout = &layout, .buffer_count = 2});
    assert_refused(&contents, HRY_DENSE_OWN, "shape", "64 bits");
    contents_free(&contents);
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT32, .rank = 2, .shape = wide, .layout = &layout, .buffer_count = 2});
    assert_refused(&contents, HRY_DENSE_OWN, "shape", "bytes");
    contents_free(&contents);
}

static HurrayExtensionType extension_of(uint32_t bits) {
    HurrayExtensionType x = HURRAY_EXTENSION_TYPE_INIT;
    x.bit_width = bits;
    x.packing_factor = (uint8_t)(bits < 8 ? 8 / bits : 1);
    return x;
}

static void private_types_move_but_have_no_values(void **state) {
    (void)state;
    const uint64_t shape[] = {2, 3};
    static const uint32_t widths[] = {4, 8, 24, 256};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_COLUMN_MAJOR);
    for (size_t w = 0; w < 4; w++) {
        HurrayExtensionType x = extension_of(widths[w]);
        uint64_t size = 6 * widths[w] / 8, seed = 5;
        Contents contents;
        contents_make(&contents,
                      &(ContentsSpec){.type = 0xF7, .rank = 2, .shape = shape, .layout = &layout, .extension_type = &x, .sizes = {size}});
        contents_fill_random(&contents, &seed);
        assert_refused(&contents, HURRAY_TYPE_FLOAT32, "element_type", "0xF7");
        uint8_t *own = whole(&contents, HRY_DENSE_OWN), a[32], b[32];
        for (int64_t i = 0; i < 2; i++)
            for (int64_t j = 0; j < 3; j++) {
                hry_codes_get(own, widths[w], i * 3 + j, 1, 1, a);
                hry_codes_get(contents.bytes[0].data, widths[w], j * 2 + i, 1, 1, b);
                assert_memory_equal(a, b, hry_code_bytes(widths[w]));
            }
        free(own);
        contents_free(&contents);
    }
}

static void heads_and_groups_have_no_buffers_to_view(void **state) {
    (void)state;
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_COMPOSITE);
    uint64_t shape[] = {4}, elements, bytes;
    HurrayDescriptor head = {.shape = shape, .rank = 1, .element_type = HURRAY_TYPE_FLOAT16, .layout_tag = HURRAY_LAYOUT_COMPOSITE};
    HurrayError error;
    HryDense dense;
    layout.rule = HURRAY_RULE_PARTITION;
    head.layout = layout;
    hry_error_clear(&error);
    assert_int_equal(hry_dense_plan(&head, HRY_DENSE_OWN, &elements, &bytes, &error), HURRAY_OK);
    assert_int_equal(bytes, 8);
    assert_int_equal(hry_dense_plan(&head, HURRAY_TYPE_FLOAT32, &elements, &bytes, &error), HURRAY_OK);
    assert_int_equal(bytes, 16);
    assert_int_equal(hry_dense_open(&dense, &head, NULL, HRY_DENSE_OWN, &error), HURRAY_ERR_UNSUPPORTED);
    head.layout.rule = HURRAY_RULE_GROUP;
    assert_int_equal(hry_dense_plan(&head, HRY_DENSE_OWN, &elements, &bytes, &error), HURRAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "group"));
}

static void a_short_buffer_is_named(void **state) {
    (void)state;
    const uint64_t shape[] = {2};
    Contents contents;
    HurrayError error;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8, .rank = 1, .shape = shape, .sizes = {2}});
    contents.bytes[0].size = 1;
    assert_int_equal(open_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(error.buffer_index, 0);
    contents_free(&contents);
}

static void a_stretch_past_the_end_is_refused(void **state) {
    (void)state;
    const uint64_t shape[] = {5};
    Contents contents;
    HurrayError error;
    HryDense dense;
    uint8_t out[8];
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8, .rank = 1, .shape = shape, .sizes = {5}});
    assert_int_equal(hry_dense_open(&dense, contents.descriptor, contents.bytes, HRY_DENSE_OWN, &error), HURRAY_OK);
    assert_int_equal(hry_dense_stretch(&dense, 3, 3, out, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hry_dense_stretch(&dense, UINT64_MAX, 2, out, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hry_dense_stretch(&dense, 5, 0, out, &error), HURRAY_OK);
    contents_free(&contents);
}

/* ---- own bits ---- */

static void padding_of_the_own_type_is_zero_even_over_dirty_slack(void **state) {
    (void)state;
    const uint64_t shape[] = {5};
    static const struct {
        uint8_t type, bytes[6], size, want[6];
    } cases[] = {{HURRAY_TYPE_BOOL, {0xFF}, 1, {0x1F}},
                 {HURRAY_TYPE_UINT2, {0xFF, 0xFF}, 2, {0xFF, 0x03}},
                 {HURRAY_TYPE_INT4, {0x21, 0x43, 0xF5}, 3, {0x21, 0x43, 0x05}},
                 {HURRAY_TYPE_FLOAT6_E2M3, {1, 2, 3, 0xFF, 0xFF, 0xFF}, 6, {1, 2, 3, 0x3F, 0, 0}}};
    for (size_t c = 0; c < 4; c++) {
        Contents contents;
        contents_make(&contents, &(ContentsSpec){
                                     .type = cases[c].type, .rank = 1, .shape = shape, .sizes = {cases[c].size}, .data = {cases[c].bytes}});
        uint8_t *own = whole(&contents, HRY_DENSE_OWN);
        assert_memory_equal(own, cases[c].want, cases[c].size);
        free(own);
        contents_free(&contents);
    }
}

static void small_types_in_other_orders_are_repacked(void **state) {
    (void)state;
    const uint64_t shape[] = {3, 45};
    static const uint8_t types[] = {HURRAY_TYPE_BOOL, HURRAY_TYPE_INT2, HURRAY_TYPE_FLOAT4_E2M1, HURRAY_TYPE_FLOAT6_E3M2};
    uint64_t seed = 11;
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_COLUMN_MAJOR);
    for (size_t t = 0; t < 4; t++) {
        uint32_t bits = hry_form_of_type(types[t]).bits;
        uint64_t size = bits == 6 ? 34 * 3 : (135 * bits + 7) / 8;
        Contents contents;
        contents_make(&contents, &(ContentsSpec){.type = types[t], .rank = 2, .shape = shape, .layout = &layout, .sizes = {size}});
        contents_fill_random(&contents, &seed);
        uint8_t *own = whole(&contents, HRY_DENSE_OWN), a, b, *values = whole(&contents, HURRAY_TYPE_FLOAT32);
        float table[256];
        HryForm form = hry_form_of_type(types[t]);
        hry_value_table(&form, table);
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < 45; j++) {
                hry_codes_get(own, bits, i * 45 + j, 1, 1, &a);
                hry_codes_get(contents.bytes[0].data, bits, j * 3 + i, 1, 1, &b);
                assert_int_equal(a, b);
                float value = hry_load_f32(values + 4 * (i * 45 + j));
                assert_true(value == table[b]);
            }
        free(own);
        free(values);
        contents_free(&contents);
    }
}

static void an_odd_destination_address_is_fine(void **state) {
    (void)state;
    const uint64_t shape[] = {3, 700};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_COLUMN_MAJOR);
    for (int order = 0; order < 2; order++) {
        Contents contents;
        HurrayError error;
        HryDense dense;
        uint64_t seed = 17;
        contents_make(
            &contents,
            &(ContentsSpec){.type = HURRAY_TYPE_INT16, .rank = 2, .shape = shape, .layout = order ? &layout : NULL, .sizes = {4200}});
        contents_fill_random(&contents, &seed);
        uint8_t *room = malloc(8401), *aligned = whole(&contents, HURRAY_TYPE_FLOAT32);
        assert_non_null(room);
        assert_int_equal(hry_dense_open(&dense, contents.descriptor, contents.bytes, HURRAY_TYPE_FLOAT32, &error), HURRAY_OK);
        assert_int_equal(hry_dense_stretch(&dense, 0, 2100, room + 1, &error), HURRAY_OK);
        assert_memory_equal(room + 1, aligned, 8400);
        free(room);
        free(aligned);
        contents_free(&contents);
    }
}

static void scalars_and_empty_tensors_have_dense_views(void **state) {
    (void)state;
    const uint64_t empty[] = {3, 0, 2};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_COLUMN_MAJOR);
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT16, .sizes = {2}, .data = {"\xFE\xFF"}});
    float *value = whole(&contents, HURRAY_TYPE_FLOAT32);
    assert_true(hry_load_f32(value) == -2);
    free(value);
    contents_free(&contents);
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT16, .rank = 3, .shape = empty, .layout = &layout, .sizes = {0}});
    free(whole(&contents, HURRAY_TYPE_FLOAT32));
    free(whole(&contents, HRY_DENSE_OWN));
    contents_free(&contents);
}

static void invalid_e8m0_elements_have_bits_but_no_value(void **state) {
    (void)state;
    const uint64_t shape[] = {2, 2};
    static const uint8_t bytes[] = {127, 1, 128, 0xFF};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_COLUMN_MAJOR);
    Contents contents;
    HurrayError error;
    for (int order = 0; order < 2; order++) {
        contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT8_E8M0,
                                                 .rank = 2,
                                                 .shape = shape,
                                                 .layout = order ? &layout : NULL,
                                                 .sizes = {4},
                                                 .data = {bytes}});
        free(whole(&contents, HRY_DENSE_OWN));
        assert_int_equal(whole_status(&contents, HURRAY_TYPE_FLOAT32, &error), HURRAY_ERR_INVALID_DATA);
        assert_non_null(strstr(error.message, "element 3"));
        contents_buffer(&contents, 0)[3] = 129;
        float *values = whole(&contents, HURRAY_TYPE_FLOAT32);
        assert_true(hry_load_f32(values) == 1 && hry_load_f32(values + 3) == 4);
        assert_true(hry_load_f32(values + (order ? 2 : 1)) == 0x1p-126f);
        free(values);
        contents_free(&contents);
    }
}

/* ---- arithmetic ---- */

static void the_callers_rounding_mode_changes_nothing_and_stays(void **state) {
    (void)state;
    const uint64_t shape[] = {1};
    const double value = 1 + 0x1p-25;
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT64, .rank = 1, .shape = shape, .sizes = {8}, .data = {&value}});
    assert_int_equal(fesetround(FE_UPWARD), 0);
    float *out = whole(&contents, HURRAY_TYPE_FLOAT32);
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
    HurrayQuantization q = scheme_of(HURRAY_QUANT_PER_TENSOR_AFFINE);
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
    HurrayQuantization q = scheme_of(HURRAY_QUANT_PER_TENSOR_AFFINE);
    q.scale = scale;
    q.zero_point = zero;
    Contents contents;
    contents_make(
        &contents,
        &(ContentsSpec){.type = HURRAY_TYPE_INT32, .rank = 1, .shape = shape, .quantization = &q, .sizes = {12}, .data = {stored}});
    uint8_t *values = whole(&contents, HURRAY_TYPE_FLOAT32);
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
                    HurrayQuantization q = scheme_of(scheme);
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
                    HurrayLayout layout = layout_of(layouts[variant % 2]);
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
                    uint8_t *values = whole(&contents, HURRAY_TYPE_FLOAT32);
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
    HurrayQuantization q = scheme_of(HURRAY_QUANT_PER_CHANNEL_AFFINE);
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
    uint8_t *values = whole(&contents, HURRAY_TYPE_FLOAT32);
    assert_true(hry_load_f32(values) == (float)(3 - (int64_t)INT32_MIN));
    assert_true(hry_load_f32(values + 4) == (float)(4 - INT64_C(16777217)));
    free(values);
    contents_free(&contents);
}

static void an_mxfp_scale_without_a_value_is_refused_by_block(void **state) {
    (void)state;
    const uint64_t shape[] = {32};
    HurrayQuantization q = scheme_of(HURRAY_QUANT_MXFP);
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
    assert_int_equal(whole_status(&contents, HURRAY_TYPE_FLOAT32, &error), HURRAY_ERR_INVALID_DATA);
    assert_non_null(strstr(error.message, "block 1"));
    assert_int_equal(error.buffer_index, 1);
    contents_free(&contents);
}

/* ---- GGML blocks ---- */

static void make_ggml(Contents *contents, uint32_t number, uint32_t elements, uint32_t bytes, uint64_t last, uint64_t size) {
    uint64_t shape[] = {2, last};
    uint8_t data[12];
    HurrayLayout layout = layout_of(HRY_GGML_LAYOUT_TAG);
    hry_store_u32(data, number);
    hry_store_u32(data + 4, elements);
    hry_store_u32(data + 8, bytes);
    layout.private_id = HRY_GGML_LAYOUT_ID;
    layout.private_data = data;
    layout.private_len = 12;
    contents_make(contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT32, .rank = 2, .shape = shape, .layout = &layout, .sizes = {size}});
}

static void ggml_blocks_are_decoded_whole_in_pieces_and_by_element(void **state) {
    (void)state;
    Contents contents;
    uint64_t seed = 31;
    make_ggml(&contents, 8, 32, 34, 96, 6 * 34);
    contents_fill_random(&contents, &seed);
    for (int b = 0; b < 6; b++) hry_store_u16(contents_buffer(&contents, 0) + 34 * b, (uint16_t)(0x3C00 + b));
    uint8_t *values = whole(&contents, HRY_DENSE_OWN), *again = whole(&contents, HURRAY_TYPE_FLOAT32), *room = malloc(4 * 192 + 1);
    assert_non_null(room);
    assert_memory_equal(values, again, 4 * 192);
    HryDense dense;
    HurrayError error;
    assert_int_equal(hry_dense_open(&dense, contents.descriptor, contents.bytes, HRY_DENSE_OWN, &error), HURRAY_OK);
    for (uint64_t at = 0, n; at < 192; at += n) {
        n = at * 5 % 70 + 1 < 192 - at ? at * 5 % 70 + 1 : 192 - at;
        assert_int_equal(hry_dense_stretch(&dense, at, n, room + 1 + 4 * at, &error), HURRAY_OK);
    }
    assert_memory_equal(room + 1, values, 4 * 192);
    for (uint64_t k = 0; k < 192; k++) {
        const uint64_t index[] = {k / 96, k % 96};
        uint8_t one[4];
        assert_int_equal(hry_dense_element(&dense, index, one, &error), HURRAY_OK);
        assert_memory_equal(one, values + 4 * k, 4);
    }
    free(values);
    free(again);
    free(room);
    contents_free(&contents);
}

static void ggml_layouts_that_do_not_fit_stay_opaque(void **state) {
    (void)state;
    static const struct {
        uint32_t number, elements, bytes;
        uint64_t last, size;
        const char *says;
    } cases[] = {{8, 32, 35, 64, 4 * 35, "not known"},   {8, 64, 34, 64, 2 * 34, "not known"},      {4, 32, 20, 64, 80, "not known"},
                 {8, 32, 34, 33, 2 * 34, "Q8_0 blocks"}, {8, 32, 34, 64, 4 * 34 + 1, "Q8_0"},       {8, 32, 34, 64, 4 * 34 - 1, "Q8_0"},
                 {16, 256, 66, 256, 2 * 66, "IQ2_XXS"},  {29, 256, 56, 256, 2 * 56, "lookup table"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        Contents contents;
        make_ggml(&contents, cases[c].number, cases[c].elements, cases[c].bytes, cases[c].last, cases[c].size);
        assert_refused(&contents, HURRAY_TYPE_FLOAT32, "layout", cases[c].says);
        assert_refused(&contents, HRY_DENSE_OWN, "layout", cases[c].says);
        contents_free(&contents);
    }
}

static void other_private_layouts_have_no_dense_view(void **state) {
    (void)state;
    const uint64_t shape[] = {32};
    HurrayLayout layout = layout_of(0xF3);
    layout.private_id = HRY_GGML_LAYOUT_ID;
    Contents contents;
    for (int c = 0; c < 3; c++) {
        if (c == 1) layout.tag = HRY_GGML_LAYOUT_TAG, layout.private_id = 7;
        if (c == 2) layout.private_id = HRY_GGML_LAYOUT_ID, layout.private_data = "abc", layout.private_len = 3;
        contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT32, .rank = 1, .shape = shape, .layout = &layout, .sizes = {64}});
        assert_refused(&contents, HRY_DENSE_OWN, "layout", c == 2 ? "3 bytes" : "private layout");
        contents_free(&contents);
    }
}

/* ---- block-paged ---- */

typedef struct Paged {
    uint64_t shape[3], pages;
    uint32_t page_size, sequences;
    uint8_t index_type;
    uint64_t table_entries;
} Paged;

static void make_paged(Contents *contents, const Paged *p, uint8_t type, const HurrayQuantization *q, uint64_t parameters) {
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_BLOCK_PAGED);
    uint64_t width = p->index_type ? 8 : 4, bits = hry_form_of_type(type).bits;
    layout.page_size = p->page_size;
    layout.num_pages = p->pages;
    layout.num_seqs = p->sequences;
    layout.index_type = p->index_type;
    layout.layer_index = HURRAY_NO_LAYER;
    contents_make(contents, &(ContentsSpec){.type = type,
                                            .rank = 3,
                                            .shape = p->shape,
                                            .layout = &layout,
                                            .quantization = q,
                                            .buffer_count = q ? 4 : 3,
                                            .sizes = {(p->pages * p->page_size * p->shape[1] * p->shape[2] * bits + 7) / 8,
                                                      p->table_entries * width, (p->sequences + 1) * width, parameters}});
}

static void put_entry(const Contents *contents, uint32_t buffer, uint64_t i, uint64_t value) {
    if (contents->descriptor->layout.index_type)
        hry_store_u64(contents_buffer(contents, buffer) + 8 * i, value);
    else
        hry_store_u32(contents_buffer(contents, buffer) + 4 * i, (uint32_t)value);
}

static void paged_tokens_are_found_through_the_block_table(void **state) {
    (void)state;
    for (uint8_t index_type = 0; index_type < 2; index_type++)
        for (int one_sequence = 0; one_sequence < 2; one_sequence++) {
            Paged p = {{one_sequence ? 5 : 6, 2, 3}, 5, 2, one_sequence ? 1 : 2, index_type, 4};
            static const uint64_t table[] = {4, 1, 4};
            Contents contents;
            make_paged(&contents, &p, HURRAY_TYPE_UINT16, NULL, 0);
            for (uint64_t k = 0; k < 3; k++) put_entry(&contents, 1, k, table[k]);
            put_entry(&contents, 1, 3, 99); /* slack of the table */
            put_entry(&contents, 2, 1, one_sequence ? 3 : 1);
            if (!one_sequence) put_entry(&contents, 2, 2, 3);
            for (uint64_t k = 0; k < contents.bytes[0].size / 2; k++) hry_store_u16(contents_buffer(&contents, 0) + 2 * k, (uint16_t)k);
            uint8_t *own = whole(&contents, HRY_DENSE_OWN), *values = whole(&contents, HURRAY_TYPE_FLOAT32);
            for (uint64_t k = 0; k < p.shape[0] * 6; k++) {
                uint64_t token = k / 6, want = (table[token / 2] * 2 + token % 2) * 6 + k % 6;
                assert_int_equal(hry_load_u16(own + 2 * k), want);
                assert_true(hry_load_f32(values + 4 * k) == (float)want);
            }
            free(own);
            free(values);
            contents_free(&contents);
        }
}

static void paged_scales_belong_to_page_slots(void **state) {
    (void)state;
    Paged p = {{4, 1, 2}, 3, 2, 1, 0, 2};
    HurrayQuantization q = scheme_of(HURRAY_QUANT_PER_BLOCK_AFFINE);
    q.block_size = 2;
    q.scale_buffer = 3;
    q.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    q.flags = HURRAY_QUANT_SYMMETRIC;
    q.scale_type = HURRAY_TYPE_FLOAT32;
    Contents contents;
    make_paged(&contents, &p, HURRAY_TYPE_INT8, &q, 4 * 6);
    put_entry(&contents, 1, 0, 2);
    put_entry(&contents, 1, 1, 0);
    put_entry(&contents, 2, 1, 2);
    for (int k = 0; k < 12; k++) contents_buffer(&contents, 0)[k] = 1;
    for (int k = 0; k < 6; k++) hry_store_f32(contents_buffer(&contents, 3) + 4 * k, (float)(k + 1));
    uint8_t *values = whole(&contents, HURRAY_TYPE_FLOAT32);
    static const float want[] = {5, 5, 6, 6, 1, 1, 2, 2};
    for (int k = 0; k < 8; k++) assert_true(hry_load_f32(values + 4 * k) == want[k]);
    free(values);
    contents_free(&contents);
}

static void paged_tensors_without_known_sequence_lengths_are_refused(void **state) {
    (void)state;
    Paged p = {{5, 1, 1}, 4, 2, 2, 0, 3};
    Contents contents;
    HurrayError error;
    make_paged(&contents, &p, HURRAY_TYPE_INT8, NULL, 0);
    put_entry(&contents, 2, 2, 3);
    assert_int_equal(open_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "5 tokens in 2 sequences"));
    contents_free(&contents);
    p.sequences = 1;
    p.shape[0] = 7;
    make_paged(&contents, &p, HURRAY_TYPE_INT8, NULL, 0);
    put_entry(&contents, 2, 1, 3);
    assert_int_equal(open_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_UNSUPPORTED);
    contents_free(&contents);
}

static void paged_contents_that_lead_outside_are_found(void **state) {
    (void)state;
    Paged p = {{4, 1, 1}, 4, 2, 1, 1, 2};
    Contents contents;
    HurrayError error;
    make_paged(&contents, &p, HURRAY_TYPE_INT8, NULL, 0);
    put_entry(&contents, 2, 1, 3);
    assert_int_equal(open_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_INVALID_DATA);
    assert_string_equal(error.field, "seq_ptr");
    put_entry(&contents, 2, 1, 2);
    put_entry(&contents, 2, 0, 1);
    assert_int_equal(open_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_INVALID_DATA);
    put_entry(&contents, 2, 0, 0);
    put_entry(&contents, 1, 1, 4);
    assert_int_equal(whole_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_INVALID_DATA);
    assert_string_equal(error.field, "block_table");
    assert_int_equal(whole_status(&contents, HURRAY_TYPE_FLOAT32, &error), HURRAY_ERR_INVALID_DATA);
    put_entry(&contents, 1, 1, UINT64_MAX);
    assert_int_equal(whole_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_INVALID_DATA);
    contents_free(&contents);
}

static void paged_schemes_without_meaning_have_codes_but_no_values(void **state) {
    (void)state;
    Paged p = {{4, 1, 16}, 4, 2, 1, 0, 2};
    HurrayQuantization q = scheme_of(HURRAY_QUANT_NF4);
    q.axis = 2;
    q.block_size = 8;
    q.scale_buffer = 3;
    Contents contents;
    HurrayError error;
    make_paged(&contents, &p, HURRAY_TYPE_UINT4, &q, 4);
    put_entry(&contents, 2, 1, 2);
    assert_int_equal(open_status(&contents, HURRAY_TYPE_FLOAT32, &error), HURRAY_ERR_UNSUPPORTED);
    assert_string_equal(error.field, "quantization");
    free(whole(&contents, HRY_DENSE_OWN));
    contents_free(&contents);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_own_type_and_float32_are_offered),
        cmocka_unit_test(complex_has_no_float32_but_its_own_bits),
        cmocka_unit_test(a_dynamic_dimension_has_no_dense_view),
        cmocka_unit_test(sparse_tensors_with_more_elements_than_64_bits_are_refused),
        cmocka_unit_test(private_types_move_but_have_no_values),
        cmocka_unit_test(heads_and_groups_have_no_buffers_to_view),
        cmocka_unit_test(a_short_buffer_is_named),
        cmocka_unit_test(a_stretch_past_the_end_is_refused),
        cmocka_unit_test(padding_of_the_own_type_is_zero_even_over_dirty_slack),
        cmocka_unit_test(small_types_in_other_orders_are_repacked),
        cmocka_unit_test(an_odd_destination_address_is_fine),
        cmocka_unit_test(scalars_and_empty_tensors_have_dense_views),
        cmocka_unit_test(invalid_e8m0_elements_have_bits_but_no_value),
        cmocka_unit_test(the_callers_rounding_mode_changes_nothing_and_stays),
#if defined(__SSE2__)
        cmocka_unit_test(flush_to_zero_of_the_caller_does_not_reach_the_values),
#endif
        cmocka_unit_test(differences_beyond_32_bits_are_exact_before_rounding),
        cmocka_unit_test(every_scheme_axis_and_storage_decodes_by_the_formula),
        cmocka_unit_test(a_zero_point_outside_its_type_still_counts_exactly),
        cmocka_unit_test(an_mxfp_scale_without_a_value_is_refused_by_block),
        cmocka_unit_test(ggml_blocks_are_decoded_whole_in_pieces_and_by_element),
        cmocka_unit_test(ggml_layouts_that_do_not_fit_stay_opaque),
        cmocka_unit_test(other_private_layouts_have_no_dense_view),
        cmocka_unit_test(paged_tokens_are_found_through_the_block_table),
        cmocka_unit_test(paged_scales_belong_to_page_slots),
        cmocka_unit_test(paged_tensors_without_known_sequence_lengths_are_refused),
        cmocka_unit_test(paged_contents_that_lead_outside_are_found),
        cmocka_unit_test(paged_schemes_without_meaning_have_codes_but_no_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
