#include "format/ggml.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"

#define VECTORS HURRAY_SOURCE_DIR "/../shared/vectors/ggml/"

/* A whole file in a heap block of exactly its size. */
static uint8_t *slurp(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size > 0);
    rewind(file);
    uint8_t *bytes = malloc((size_t)size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    *len = (size_t)size;
    return bytes;
}

static void every_type_with_values_matches_the_vectors_bit_by_bit(void **state) {
    (void)state;
    unsigned compared = 0;
    for (uint32_t number = 0; number < 64; number++) {
        const HryGgmlType *type = hry_ggml_find(number);
        if (!type || !type->has_values) continue;
        char path[512];
        size_t len, expected_len;
        snprintf(path, sizeof path, VECTORS "%s.bin", type->name);
        uint8_t *blocks = slurp(path, &len);
        if (!blocks) {
            print_message("no vector for %s\n", type->name);
            continue;
        }
        snprintf(path, sizeof path, VECTORS "%s.f32", type->name);
        uint8_t *expected = slurp(path, &expected_len);
        assert_non_null(expected);
        assert_int_equal(len % type->block_bytes, 0);
        uint64_t count = len / type->block_bytes;
        assert_int_equal(expected_len, count * type->block_elements * 4);
        float *values = malloc(expected_len);
        assert_non_null(values);
        hry_ggml_decode(type, blocks, count, values);
        for (size_t i = 0; i < expected_len / 4; i++) {
            uint32_t got;
            memcpy(&got, values + i, 4);
            if (got != hry_load_u32(expected + 4 * i))
                fail_msg("%s element %zu: %08x, expected %08x", type->name, i, got, hry_load_u32(expected + 4 * i));
        }
        compared++;
        free(values);
        free(expected);
        free(blocks);
    }
    if (compared == 0) {
        print_message("skipped: no vectors at " VECTORS "\n");
        skip();
    }
    assert_int_equal(compared, 19);
}

static void the_table_has_all_27_block_types(void **state) {
    (void)state;
    unsigned count = 0, with_values = 0;
    for (uint32_t number = 0; number < 1000; number++) {
        const HryGgmlType *type = hry_ggml_find(number);
        if (!type) continue;
        count++;
        with_values += type->has_values;
        assert_int_equal(type->number, number);
        assert_true(type->block_elements <= HRY_GGML_MAX_BLOCK_ELEMENTS);
        assert_true(type->block_elements % 32 == 0);
    }
    assert_int_equal(count, 27);
    assert_int_equal(with_values, 20);
}

static void numbers_that_are_no_block_types_are_not_found(void **state) {
    (void)state;
    static const uint32_t none[] = {0, 1, 4, 5, 24, 25, 26, 27, 28, 30, 31, 32, 33, 36, 37, 38, 43, UINT32_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_null(hry_ggml_find(none[i]));
}

static void types_with_lookup_grids_have_sizes_but_no_values(void **state) {
    (void)state;
    static const struct { uint32_t number, bytes; } grids[] = {{16, 66}, {17, 74}, {18, 98}, {19, 50}, {21, 110}, {22, 82}, {29, 56}};
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        const HryGgmlType *type = hry_ggml_find(grids[i].number);
        assert_non_null(type);
        assert_false(type->has_values);
        assert_int_equal(type->block_bytes, grids[i].bytes);
        assert_int_equal(type->block_elements, 256);
        float untouched = 3;
        hry_ggml_decode(type, (const uint8_t *)"", 1, &untouched);
        assert_true(untouched == 3);
    }
}

static void q8_1_ignores_its_sum(void **state) {
    (void)state;
    uint8_t block[36] = {0x00, 0x40, 0xFF, 0x7F}; /* d = 2, s = NaN */
    float values[32];
    for (int i = 0; i < 32; i++) block[4 + i] = (uint8_t)(i - 16);
    hry_ggml_decode(hry_ggml_find(9), block, 1, values);
    for (int i = 0; i < 32; i++) assert_true(values[i] == 2.0f * (float)(i - 16));
}

static void infinite_and_nan_scales_pass_through(void **state) {
    (void)state;
    uint8_t block[34] = {0x00, 0x7C, 1, 0x80};
    float values[32];
    hry_ggml_decode(hry_ggml_find(8), block, 1, values);
    assert_true(isinf(values[0]) && values[0] > 0);
    assert_true(isinf(values[1]) && values[1] < 0);
    assert_true(isnan(values[2])); /* infinity times 0 */
    block[1] = 0x7E;
    hry_ggml_decode(hry_ggml_find(8), block, 1, values);
    assert_true(isnan(values[0]));
}

static void mxfp4_scales_are_plain_powers_at_both_ends(void **state) {
    (void)state;
    uint8_t block[17] = {0, 0x21};
    float values[32];
    hry_ggml_decode(hry_ggml_find(39), block, 1, values);
    assert_true(values[0] == ldexpf(1, -128));
    assert_true(values[16] == ldexpf(2, -128));
    block[0] = 255;
    hry_ggml_decode(hry_ggml_find(39), block, 1, values);
    assert_true(values[0] == ldexpf(1, 127));
    assert_true(isinf(values[16]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_with_values_matches_the_vectors_bit_by_bit),
        cmocka_unit_test(the_table_has_all_27_block_types),
        cmocka_unit_test(numbers_that_are_no_block_types_are_not_found),
        cmocka_unit_test(types_with_lookup_grids_have_sizes_but_no_values),
        cmocka_unit_test(q8_1_ignores_its_sum),
        cmocka_unit_test(infinite_and_nan_scales_pass_through),
        cmocka_unit_test(mxfp4_scales_are_plain_powers_at_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
