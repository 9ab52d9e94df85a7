#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/element.h"
#include "format/quant.h"

/* Only what the rules read. */
static HurrayDescriptor parts(uint8_t type, uint32_t rank, const uint64_t *shape, uint32_t buffers, uint8_t scheme) {
    HurrayDescriptor d;
    memset(&d, 0, sizeof d);
    d.element_type = type;
    d.element_bits = hry_element_bits(type);
    d.layout_tag = d.layout.tag = HURRAY_LAYOUT_ROW_MAJOR;
    d.rank = rank;
    d.shape = shape;
    d.buffer_count = buffers;
    d.has_quantization = true;
    d.quantization = (HurrayQuantization)HURRAY_QUANTIZATION_INIT;
    d.quantization.scheme = scheme;
    d.quantization.scale = 1;
    d.quantization.scale_type = HURRAY_TYPE_FLOAT32;
    d.quantization.block_size = 16;
    d.quantization.scale_buffer = 1;
    d.quantization.zero_point_buffer = scheme == 2 || scheme == 3 ? 2 : HURRAY_QUANT_NO_ZERO_POINTS;
    return d;
}

static bool accepts(const HurrayDescriptor *d) {
    HurrayError error;
    return hry_quant_check(d, 0, &error) == HURRAY_OK;
}

static void refuses(const HurrayDescriptor *d, const char *field, uint64_t offset) {
    HurrayError error;
    assert_int_not_equal(hry_quant_check(d, 300, &error), HURRAY_OK);
    assert_string_equal(error.field, field);
    assert_int_equal(error.offset, offset);
    assert_true(error.message[0]);
}

static void each_scheme_stores_its_types_only(void **state) {
    (void)state;
    static const uint8_t integers[] = {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x48, 0x49, 0x4A, 0x4B},
                         small[] = {0x10, 0x11, 0x48, 0x49, 0x4A, 0x4B}, nf4[] = {0x49}, mx[] = {0x40, 0x41, 0x43, 0x44, 0x45, 0x10, 0x48};
    static const struct {
        const uint8_t *types;
        size_t count;
    } sets[] = {{NULL, 0}, {integers, 10}, {integers, 10}, {small, 6}, {nf4, 1}, {mx, 7}};
    const uint64_t shape[] = {32};
    for (uint8_t scheme = 1; scheme <= 5; scheme++)
        for (unsigned type = 0; type < 256; type++) {
            bool expected = memchr(sets[scheme].types, (int)type, sets[scheme].count) != NULL;
            HurrayDescriptor d = parts((uint8_t)type, 1, shape, 3, scheme);
            assert_int_equal(accepts(&d), expected);
            if (!expected) refuses(&d, "element_type", 304);
        }
}

static void schemes_are_one_to_five(void **state) {
    (void)state;
    const uint64_t shape[] = {32};
    for (unsigned scheme = 0; scheme < 256; scheme++) {
        if (scheme >= 1 && scheme <= 5) continue;
        HurrayDescriptor d = parts(HURRAY_TYPE_INT8, 1, shape, 3, (uint8_t)scheme);
        refuses(&d, "quantization.scheme", 304);
    }
}

static void only_affine_schemes_over_many_scales_may_be_symmetric(void **state) {
    (void)state;
    const uint64_t shape[] = {32};
    for (uint8_t scheme = 1; scheme <= 5; scheme++) {
        HurrayDescriptor d = parts(scheme == 4 ? HURRAY_TYPE_UINT4 : HURRAY_TYPE_INT8, 1, shape, 3, scheme);
        bool may = scheme == 2 || scheme == 3;
        d.quantization.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
        d.quantization.flags = HURRAY_QUANT_SYMMETRIC;
        assert_int_equal(accepts(&d), may);
        assert_int_equal(hry_quant_has_zero_points(&d.quantization), false);
        if (!may) refuses(&d, "quantization.flags", 306);
        d.quantization.flags = 2;
        refuses(&d, "quantization.flags", 306);
        d.quantization.flags = 0;
        if (may) refuses(&d, "quantization.zero_point_buffer", scheme == 2 ? 316 : 320);
    }
}

static void one_scale_is_finite_and_not_zero(void **state) {
    (void)state;
    const uint64_t shape[] = {4};
    const float bad[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN};
    HurrayDescriptor d = parts(HURRAY_TYPE_INT4, 1, shape, 1, HURRAY_QUANT_PER_TENSOR_AFFINE);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        d.quantization.scale = bad[i];
        refuses(&d, "quantization.scale", 308);
    }
    d.quantization.scale = -1e-45f;
    assert_true(accepts(&d));
    for (int32_t zero = -10; zero <= 10; zero++) {
        d.quantization.zero_point = zero;
        assert_int_equal(accepts(&d), zero >= -8 && zero <= 7);
        if (zero > 7) refuses(&d, "quantization.zero_point", 312);
    }
    d.element_type = HURRAY_TYPE_UINT32;
    d.quantization.zero_point = INT32_MAX;
    assert_true(accepts(&d));
    d.quantization.zero_point = -1;
    assert_false(accepts(&d));
}

static void block_sizes_are_powers_of_two_in_range(void **state) {
    (void)state;
    const uint64_t shape[] = {4096};
    static const struct {
        uint8_t scheme, type;
        uint32_t from, to;
    } rows[] = {{3, HURRAY_TYPE_INT8, 2, 4096}, {4, HURRAY_TYPE_UINT4, 8, 4096}, {5, HURRAY_TYPE_INT8, 16, 2048}};
    for (size_t i = 0; i < 3; i++) {
        HurrayDescriptor d = parts(rows[i].type, 1, shape, 3, rows[i].scheme);
        for (uint32_t block = 0; block < 8200; block += block < 20 ? 1 : block) {
            bool power = block && (block & (block - 1)) == 0;
            d.quantization.block_size = block;
            assert_int_equal(accepts(&d), power && block >= rows[i].from && block <= rows[i].to);
        }
        d.quantization.block_size = 0x80000000;
        refuses(&d, "quantization.block_size", 312);
    }
}

static void blocks_fit_their_axis(void **state) {
    (void)state;
    uint64_t shape[] = {3, 32};
    HurrayDescriptor d = parts(HURRAY_TYPE_INT8, 2, shape, 3, HURRAY_QUANT_PER_BLOCK_AFFINE);
    refuses(&d, "quantization.block_size", 312); /* 16 above 3 */
    d.quantization.axis = 1;
    assert_true(accepts(&d));
    shape[1] = 17;
    assert_true(accepts(&d));
    shape[1] = 0;
    assert_true(accepts(&d));
    shape[1] = HURRAY_DYNAMIC_DIMENSION;
    refuses(&d, "quantization.axis", 308);
    d.quantization.axis = 2;
    refuses(&d, "quantization.axis", 308);
    d = parts(HURRAY_TYPE_INT8, 2, shape, 2, HURRAY_QUANT_MXFP);
    d.quantization.axis = 1;
    shape[1] = 48;
    assert_true(accepts(&d));
    shape[1] = 40;
    refuses(&d, "quantization.block_size", 312);
    shape[1] = 0;
    refuses(&d, "quantization.block_size", 312);
}

static void parameter_buffers_lie_behind_the_layouts_own(void **state) {
    (void)state;
    const uint64_t shape[] = {4, 32};
    HurrayDescriptor d = parts(HURRAY_TYPE_INT8, 2, shape, 5, HURRAY_QUANT_PER_CHANNEL_AFFINE);
    d.layout_tag = HURRAY_LAYOUT_CSR;
    d.quantization.scale_buffer = 3;
    d.quantization.zero_point_buffer = 4;
    assert_true(accepts(&d));
    d.quantization.zero_point_buffer = 2;
    refuses(&d, "quantization.zero_point_buffer", 316);
    d.quantization.scale_buffer = 5;
    refuses(&d, "quantization.scale_buffer", 312);
    d.quantization.scale_buffer = 2;
    refuses(&d, "quantization.scale_buffer", 312);
    d.layout_tag = 0xF0;
    assert_true(accepts(&d));
    d.quantization.scale_buffer = 0;
    refuses(&d, "quantization.scale_buffer", 312);
    d.quantization.scale_buffer = 1;
    d.layout_tag = HURRAY_LAYOUT_COMPOSITE;
    refuses(&d, "quantization", 300);
}

static void scale_types_are_those_of_the_scheme(void **state) {
    (void)state;
    const uint64_t shape[] = {32};
    for (unsigned type = 0; type < 256; type++) {
        HurrayDescriptor channel = parts(HURRAY_TYPE_INT8, 1, shape, 3, 2), block = parts(HURRAY_TYPE_INT8, 1, shape, 3, 3);
        channel.quantization.scale_type = block.quantization.scale_type = (uint8_t)type;
        assert_int_equal(accepts(&channel), type == 3);
        assert_int_equal(accepts(&block), type >= 1 && type <= 3);
        if (type >= 1 && type <= 3) assert_int_equal(hry_quant_scale_bytes(&block.quantization), type == 3 ? 4 : 2);
        if (type > 3) refuses(&channel, "quantization.scale_type", 320);
        if (type > 3) refuses(&block, "quantization.scale_type", 324);
    }
}

static void block_paged_tensors_have_rules_of_their_own(void **state) {
    (void)state;
    const uint64_t shape[] = {3, 32, 64};
    HurrayDescriptor d = parts(HURRAY_TYPE_INT8, 3, shape, 5, HURRAY_QUANT_PER_CHANNEL_AFFINE);
    d.layout_tag = HURRAY_LAYOUT_BLOCK_PAGED;
    d.layout.page_size = 16;
    d.quantization.scale_buffer = 3;
    d.quantization.zero_point_buffer = 4;
    refuses(&d, "quantization.axis", 308);
    d.quantization.axis = 1;
    assert_true(accepts(&d));
    d.quantization.scheme = HURRAY_QUANT_PER_BLOCK_AFFINE;
    refuses(&d, "quantization.axis", 308);
    d.quantization.axis = 0; /* 16 above shape[0], which does not matter here */
    assert_true(accepts(&d));
    d.quantization.block_size = 8;
    refuses(&d, "quantization.block_size", 312);
}

static void each_scheme_goes_to_bytes_and_back(void **state) {
    (void)state;
    const uint64_t shape[] = {32};
    static const size_t sizes[] = {0, 16, 20, 24, 16, 16};
    for (uint8_t scheme = 1; scheme <= 5; scheme++) {
        HurrayDescriptor d = parts(HURRAY_TYPE_INT8, 1, shape, 3, scheme);
        d.quantization.zero_point = -5;
        hry_quant_normalize(&d.quantization);
        HryEmit measure = hry_emit(NULL, 0);
        hry_quant_encode(&measure, &d.quantization);
        assert_int_equal(measure.len, 4 + sizes[scheme]);
        uint8_t *bytes = malloc(measure.len);
        assert_non_null(bytes);
        HryEmit emit = hry_emit(bytes, measure.len);
        hry_quant_encode(&emit, &d.quantization);
        HurrayQuantization back;
        HurrayError error;
        HryCursor cursor = hry_cursor(bytes, measure.len, 0);
        assert_int_equal(hry_quant_decode(&cursor, &back, &error), HURRAY_OK);
        assert_int_equal(cursor.left, 0);
        assert_memory_equal(&back, &d.quantization, sizeof back);
        for (size_t cut = 0; cut < measure.len; cut++) {
            uint8_t *exact = malloc(cut ? cut : 1);
            assert_non_null(exact);
            memcpy(exact, bytes, cut);
            cursor = hry_cursor(exact, cut, 0);
            assert_int_equal(hry_quant_decode(&cursor, &back, &error), HURRAY_ERR_INVALID_LAYOUT);
            if (cut >= 4) { /* and with a length that says so */
                memcpy(exact, &(uint32_t){(uint32_t)(cut - 4)}, 4);
                cursor = hry_cursor(exact, cut, 0);
                assert_int_equal(hry_quant_decode(&cursor, &back, &error), HURRAY_ERR_INVALID_LAYOUT);
            }
            free(exact);
        }
        free(bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_scheme_stores_its_types_only),
        cmocka_unit_test(schemes_are_one_to_five),
        cmocka_unit_test(only_affine_schemes_over_many_scales_may_be_symmetric),
        cmocka_unit_test(one_scale_is_finite_and_not_zero),
        cmocka_unit_test(block_sizes_are_powers_of_two_in_range),
        cmocka_unit_test(blocks_fit_their_axis),
        cmocka_unit_test(parameter_buffers_lie_behind_the_layouts_own),
        cmocka_unit_test(scale_types_are_those_of_the_scheme),
        cmocka_unit_test(block_paged_tensors_have_rules_of_their_own),
        cmocka_unit_test(each_scheme_goes_to_bytes_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
