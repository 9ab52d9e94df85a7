#include "format/dense.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/codes.h"
#include "support/contents.h"

/* ---- refusals ---- */

static void assert_refused(const Contents *contents, uint8_t type, const char *field, const char *says) {
    HurrayError error;
    uint64_t elements, bytes;
    hry_error_clear(&error);
    assert_int_equal(hry_dense_plan(contents->descriptor, type, &elements, &bytes, &error), HURRAY_ERR_UNSUPPORTED);
    assert_string_equal(error.field, field);
    if (!strstr(error.message, says)) fail_msg("\"%s\" does not say \"%s\"", error.message, says);
    assert_int_equal(contents_open_status(contents, type, &error), HURRAY_ERR_UNSUPPORTED);
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
    void *own = contents_dense(&contents, HRY_DENSE_OWN);
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
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COO);
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
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COLUMN_MAJOR);
    for (size_t w = 0; w < 4; w++) {
        HurrayExtensionType x = extension_of(widths[w]);
        uint64_t size = 6 * widths[w] / 8, seed = 5;
        Contents contents;
        contents_make(&contents,
                      &(ContentsSpec){.type = 0xF7, .rank = 2, .shape = shape, .layout = &layout, .extension_type = &x, .sizes = {size}});
        contents_fill_random(&contents, &seed);
        assert_refused(&contents, HURRAY_TYPE_FLOAT32, "element_type", "0xF7");
        uint8_t *own = contents_dense(&contents, HRY_DENSE_OWN), a[32], b[32];
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
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COMPOSITE);
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
    assert_int_equal(contents_open_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_INVALID_ARGUMENT);
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
        uint8_t *own = contents_dense(&contents, HRY_DENSE_OWN);
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
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COLUMN_MAJOR);
    for (size_t t = 0; t < 4; t++) {
        uint32_t bits = hry_form_of_type(types[t]).bits;
        uint64_t size = bits == 6 ? 34 * 3 : (135 * bits + 7) / 8;
        Contents contents;
        contents_make(&contents, &(ContentsSpec){.type = types[t], .rank = 2, .shape = shape, .layout = &layout, .sizes = {size}});
        contents_fill_random(&contents, &seed);
        uint8_t *own = contents_dense(&contents, HRY_DENSE_OWN), a, b, *values = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
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

static void small_types_run_backwards_from_the_byte_at_byte_offset(void **state) {
    (void)state;
    static const struct {
        uint8_t type;
        uint64_t offset, size;
    } cases[] = {{HURRAY_TYPE_BOOL, 3, 4}, {HURRAY_TYPE_UINT2, 5, 6}, {HURRAY_TYPE_INT4, 10, 11}, {HURRAY_TYPE_FLOAT6_E2M3, 15, 18}};
    const uint64_t shape[] = {2, 10};
    const int64_t strides[] = {-10, -1};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_STRIDED);
    layout.strides = strides;
    for (size_t c = 0; c < 4; c++) {
        uint32_t bits = hry_form_of_type(cases[c].type).bits;
        uint64_t seed = 53;
        Contents contents;
        contents_make(&contents, &(ContentsSpec){.type = cases[c].type,
                                                 .rank = 2,
                                                 .shape = shape,
                                                 .layout = &layout,
                                                 .byte_offset = cases[c].offset,
                                                 .sizes = {cases[c].size}});
        contents_fill_random(&contents, &seed);
        uint8_t *own = contents_dense(&contents, HRY_DENSE_OWN), a, b;
        int64_t zero = (int64_t)cases[c].offset * 8 / bits; /* element [0, 0], counted from the buffer's first byte */
        for (int64_t k = 0; k < 20; k++) {
            hry_codes_get(own, bits, k, 1, 1, &a);
            hry_codes_get(contents.bytes[0].data, bits, zero - k, 1, 1, &b);
            assert_int_equal(a, b);
        }
        free(own);
        contents_free(&contents);
    }
}

/* A dimension of one element may have any stride: nothing is ever multiplied by it. */
static void strides_of_one_element_may_be_of_any_size(void **state) {
    (void)state;
    static const int64_t huge[] = {INT64_MIN, INT64_MAX, INT64_MAX / 2 + 3};
    for (size_t h = 0; h < sizeof huge / sizeof *huge; h++)
        for (uint64_t rows = 1; rows <= 9; rows += 4) {
            const uint64_t shape[] = {rows, 1};
            const int64_t strides[] = {rows > 1 ? 1 : huge[h], huge[h]};
            HurrayLayout layout = contents_layout(HURRAY_LAYOUT_STRIDED);
            layout.strides = strides;
            Contents contents;
            contents_make(&contents,
                          &(ContentsSpec){.type = HURRAY_TYPE_INT16, .rank = 2, .shape = shape, .layout = &layout, .sizes = {2 * rows}});
            for (uint64_t i = 0; i < rows; i++) contents_buffer(&contents, 0)[2 * i] = (uint8_t)(i + 1);
            uint8_t *own = contents_dense(&contents, HRY_DENSE_OWN);
            float *values = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
            for (uint64_t i = 0; i < rows; i++) {
                assert_int_equal(own[2 * i], i + 1);
                assert_true(values[i] == (float)(i + 1));
            }
            free(own);
            free(values);
            contents_free(&contents);
        }
}

static void an_odd_destination_address_is_fine(void **state) {
    (void)state;
    const uint64_t shape[] = {3, 700};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COLUMN_MAJOR);
    for (int order = 0; order < 2; order++) {
        Contents contents;
        HurrayError error;
        HryDense dense;
        uint64_t seed = 17;
        contents_make(
            &contents,
            &(ContentsSpec){.type = HURRAY_TYPE_INT16, .rank = 2, .shape = shape, .layout = order ? &layout : NULL, .sizes = {4200}});
        contents_fill_random(&contents, &seed);
        uint8_t *room = malloc(8401), *aligned = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
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
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COLUMN_MAJOR);
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT16, .sizes = {2}, .data = {"\xFE\xFF"}});
    float *value = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
    assert_true(hry_load_f32(value) == -2);
    free(value);
    contents_free(&contents);
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT16, .rank = 3, .shape = empty, .layout = &layout, .sizes = {0}});
    free(contents_dense(&contents, HURRAY_TYPE_FLOAT32));
    free(contents_dense(&contents, HRY_DENSE_OWN));
    contents_free(&contents);
}

static void invalid_e8m0_elements_have_bits_but_no_value(void **state) {
    (void)state;
    const uint64_t shape[] = {2, 2};
    static const uint8_t bytes[] = {127, 1, 128, 0xFF};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COLUMN_MAJOR);
    Contents contents;
    HurrayError error;
    for (int order = 0; order < 2; order++) {
        contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT8_E8M0,
                                                 .rank = 2,
                                                 .shape = shape,
                                                 .layout = order ? &layout : NULL,
                                                 .sizes = {4},
                                                 .data = {bytes}});
        free(contents_dense(&contents, HRY_DENSE_OWN));
        assert_int_equal(contents_dense_status(&contents, HURRAY_TYPE_FLOAT32, &error), HURRAY_ERR_INVALID_DATA);
        assert_non_null(strstr(error.message, "element 3"));
        contents_buffer(&contents, 0)[3] = 129;
        float *values = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
        assert_true(hry_load_f32(values) == 1 && hry_load_f32(values + 3) == 4);
        assert_true(hry_load_f32(values + (order ? 2 : 1)) == 0x1p-126f);
        free(values);
        contents_free(&contents);
    }
}

/* ---- GGML blocks ---- */

static void make_ggml(Contents *contents, uint32_t number, uint32_t elements, uint32_t bytes, uint64_t last, uint64_t size) {
    uint64_t shape[] = {2, last};
    uint8_t data[12];
    HurrayLayout layout = contents_layout(HRY_GGML_LAYOUT_TAG);
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
    uint8_t *values = contents_dense(&contents, HRY_DENSE_OWN), *again = contents_dense(&contents, HURRAY_TYPE_FLOAT32),
            *room = malloc(4 * 192 + 1);
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
    HurrayLayout layout = contents_layout(0xF3);
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
        cmocka_unit_test(small_types_run_backwards_from_the_byte_at_byte_offset),
        cmocka_unit_test(strides_of_one_element_may_be_of_any_size),
        cmocka_unit_test(an_odd_destination_address_is_fine),
        cmocka_unit_test(scalars_and_empty_tensors_have_dense_views),
        cmocka_unit_test(invalid_e8m0_elements_have_bits_but_no_value),
        cmocka_unit_test(ggml_blocks_are_decoded_whole_in_pieces_and_by_element),
        cmocka_unit_test(ggml_layouts_that_do_not_fit_stay_opaque),
        cmocka_unit_test(other_private_layouts_have_no_dense_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
