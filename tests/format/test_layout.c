#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/layout.h"

static const uint64_t shape_8x8[] = {8, 8}, shape_3[] = {2, 3, 4};

static HurrayStatus check(const HurrayLayout *layout, uint32_t rank, const uint64_t *shape, HurrayError *error) {
    return hry_layout_check(layout, rank, shape, 1000, error);
}

static void refused(const HurrayLayout *layout, uint32_t rank, const uint64_t *shape, const char *field, uint64_t offset) {
    HurrayError error;
    assert_int_equal(check(layout, rank, shape, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_string_equal(error.field, field);
    assert_int_equal(error.offset, offset);
    assert_true(error.message[0]);
}

static void accepted(const HurrayLayout *layout, uint32_t rank, const uint64_t *shape) {
    HurrayError error;
    assert_int_equal(check(layout, rank, shape, &error), HURRAY_OK);
}

static HurrayLayout of(uint8_t tag) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    layout.tag = tag;
    return layout;
}

/* Decodes from a heap block of exactly the payload's size. */
static HurrayStatus decode(uint8_t tag, uint32_t rank, const void *bytes, size_t len, HurrayLayout *out, size_t *left, HurrayError *error) {
    static HryLayoutRoom room;
    uint8_t *exact = malloc(len ? len : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, len);
    HryCursor cursor = hry_cursor(exact, len, 500);
    HurrayStatus status = hry_layout_decode(&cursor, tag, rank, &room, out, error);
    *left = cursor.left;
    free(exact);
    return status;
}

static void tags_have_names_and_counts(void **state) {
    (void)state;
    static const struct {
        uint8_t tag;
        const char *name;
        uint32_t buffers; /* at rank 3 */
    } rows[] = {{1, "row-major", 1}, {2, "column-major", 1}, {3, "strided", 1},    {4, "tiled", 1},
                {5, "Morton", 1},    {6, "COO", 2},          {7, "CSR", 3},        {8, "CSC", 3},
                {9, "CSF", 7},       {10, "block-paged", 3}, {11, "composite", 0}, {0x40, "Hilbert", 1}};
    size_t next = 0;
    for (unsigned tag = 0; tag < 256; tag++) {
        bool expected = next < sizeof rows / sizeof *rows && rows[next].tag == tag;
        assert_int_equal(hry_layout_is_listed((uint8_t)tag), expected);
        if (!expected) {
            assert_string_equal(hry_layout_name((uint8_t)tag), tag >= 0xF0 && tag < 0xFF ? "private" : "unknown");
            continue;
        }
        assert_string_equal(hry_layout_name((uint8_t)tag), rows[next].name);
        assert_int_equal(hry_layout_buffer_count((uint8_t)tag, 3), rows[next++].buffers);
    }
    assert_int_equal(hry_layout_buffer_count(0xF0, 3), 0);
    assert_true(hry_layout_is_sparse(HURRAY_LAYOUT_CSF) && !hry_layout_is_sparse(HURRAY_LAYOUT_BLOCK_PAGED));
}

static void an_unknown_tag_is_refused(void **state) {
    (void)state;
    HurrayLayout layout = of(0x0C);
    refused(&layout, 2, shape_8x8, "layout_tag", 1000);
}

static void ranks_fit_the_layout(void **state) {
    (void)state;
    static const struct {
        uint8_t tag;
        uint8_t from, to;
    } rows[] = {{1, 0, 64}, {2, 1, 64}, {3, 1, 64}, {6, 1, 64}, {7, 2, 2}, {8, 2, 2}, {10, 3, 3}, {0xF0, 0, 64}};
    uint64_t shape[64];
    for (size_t k = 0; k < 64; k++) shape[k] = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t rank = 0; rank <= 64; rank++) {
            HurrayLayout layout = of(rows[i].tag);
            layout.page_size = 1;
            if (rank >= rows[i].from && rank <= rows[i].to)
                accepted(&layout, rank, shape);
            else
                refused(&layout, rank, shape, "rank", 1000);
        }
    HurrayLayout layout = of(HURRAY_LAYOUT_CSF);
    refused(&layout, 2, shape, "rank", 1000);
    layout = of(HURRAY_LAYOUT_HILBERT);
    refused(&layout, 1, shape, "rank", 1000);
    layout = of(HURRAY_LAYOUT_TILED);
    refused(&layout, 0, shape, "rank", 1000);
    layout = of(HURRAY_LAYOUT_MORTON);
    refused(&layout, 0, shape, "rank", 1000);
}

static void tile_levels_are_checked_each_at_its_byte(void **state) {
    (void)state;
    const int64_t strides[] = {1, 1};
    uint64_t outer[] = {4, 4}, inner[] = {2, 2};
    HurrayTileLevel tiles[] = {{.tile_shape = outer, .outer = 3, .inner = 4, .outer_strides = strides},
                               {.tile_shape = inner, .outer = 1, .inner = 2}};
    HurrayLayout layout = of(HURRAY_LAYOUT_TILED);
    layout.tiles = tiles;
    layout.tile_count = 2;
    accepted(&layout, 2, shape_8x8);
    inner[1] = 0; /* behind 16 + 4 + 16 bytes of the first level */
    refused(&layout, 2, shape_8x8, "layout.tiles[1].tile_shape", 1036 + 8);
    inner[1] = 2;
    tiles[0].outer = 4;
    refused(&layout, 2, shape_8x8, "layout.outer", 1016);
    tiles[0].outer = 0;
    refused(&layout, 2, shape_8x8, "layout.outer", 1016);
    tiles[0].outer = 3;
    tiles[1].inner = 5;
    refused(&layout, 2, shape_8x8, "layout.inner", 1036 + 17);
    tiles[1].inner = 4;
    refused(&layout, 2, shape_8x8, "layout.inner", 1036 + 17);
    tiles[0].inner = 1;
    refused(&layout, 2, shape_8x8, "layout.inner", 1017);
    layout.tile_count = 0;
    refused(&layout, 2, shape_8x8, "layout.tile_count", 1000);
    layout.tile_count = 9;
    refused(&layout, 2, shape_8x8, "layout.tile_count", 1000);
}

static void eight_tile_levels_are_read_and_a_ninth_is_not(void **state) {
    (void)state;
    uint8_t bytes[9 * 12];
    for (unsigned level = 0; level < 9; level++) {
        const uint8_t one[] = {1, 0, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0};
        memcpy(bytes + level * 12, one, sizeof one);
    }
    HurrayLayout layout;
    HurrayError error;
    size_t left;
    bytes[8 * 12 + 9] = 1;
    assert_int_equal(decode(HURRAY_LAYOUT_TILED, 1, bytes, sizeof bytes, &layout, &left, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_string_equal(error.field, "layout.tiles");
    bytes[7 * 12 + 9] = 1;
    assert_int_equal(decode(HURRAY_LAYOUT_TILED, 1, bytes, sizeof bytes, &layout, &left, &error), HURRAY_OK);
    assert_int_equal(layout.tile_count, 8);
    assert_int_equal(left, 12);
    uint32_t level, dim;
    assert_true(hry_layout_tiles_divide(&layout, 1, &level, &dim));
}

static void inner_tiles_that_do_not_divide_are_found(void **state) {
    (void)state;
    const uint64_t outer[] = {4, 6}, inner[] = {2, 4};
    const HurrayTileLevel tiles[] = {{.tile_shape = outer, .outer = 1, .inner = 4}, {.tile_shape = inner, .outer = 1, .inner = 1}};
    HurrayLayout layout = of(HURRAY_LAYOUT_TILED);
    uint32_t level = 0, dim = 0;
    layout.tiles = tiles;
    layout.tile_count = 2;
    assert_false(hry_layout_tiles_divide(&layout, 2, &level, &dim));
    assert_int_equal(level, 1);
    assert_int_equal(dim, 1);
}

static void every_payload_cut_short_is_refused(void **state) {
    (void)state;
    static const struct {
        uint8_t tag;
        uint32_t rank;
        size_t len;
    } rows[] = {{3, 2, 16}, {4, 2, 52},  {5, 2, 8},  {6, 2, 16},   {7, 2, 16},   {8, 2, 16},
                {9, 3, 28}, {10, 3, 32}, {11, 2, 8}, {0x40, 2, 8}, {0xF0, 2, 15}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[64] = {0};
        HurrayLayout layout;
        HurrayError error;
        size_t left;
        if (rows[i].tag == 4) bytes[16] = 3, bytes[17] = 3;
        if (rows[i].tag == 0x40) bytes[4] = 2;
        if (rows[i].tag == 0xF0) bytes[8] = 3;
        assert_int_equal(decode(rows[i].tag, rows[i].rank, bytes, rows[i].len, &layout, &left, &error), HURRAY_OK);
        assert_int_equal(left, 0);
        for (size_t cut = 0; cut < rows[i].len; cut++) {
            assert_int_equal(decode(rows[i].tag, rows[i].rank, bytes, cut, &layout, &left, &error), HURRAY_ERR_INVALID_LAYOUT);
            assert_true(error.offset >= 500 && error.offset <= 500 + cut);
            assert_true(error.message[0]);
        }
    }
}

static void reserved_payload_bytes_are_zero(void **state) {
    (void)state;
    static const struct {
        uint8_t tag;
        uint32_t rank;
        size_t len, first, last;
    } rows[] = {{4, 1, 12, 10, 11}, {6, 2, 16, 9, 15},   {7, 2, 16, 8, 15}, {8, 2, 16, 8, 15},
                {9, 3, 28, 20, 27}, {10, 3, 32, 26, 31}, {11, 2, 8, 2, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t at = rows[i].first; at <= rows[i].last; at++) {
            uint8_t bytes[32] = {0};
            HurrayLayout layout;
            HurrayError error;
            size_t left;
            bytes[at] = 1;
            assert_int_equal(decode(rows[i].tag, rows[i].rank, bytes, rows[i].len, &layout, &left, &error), HURRAY_ERR_INVALID_LAYOUT);
            assert_string_equal(error.field, "layout.reserved");
            assert_int_equal(error.offset, 500 + at);
        }
}

static void truth_values_and_the_hilbert_rank_are_checked_as_they_are_read(void **state) {
    (void)state;
    HurrayLayout layout;
    HurrayError error;
    size_t left;
    assert_int_equal(decode(6, 1, "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16, &layout, &left, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_string_equal(error.field, "layout.is_sorted");
    assert_int_equal(error.offset, 508);
    assert_int_equal(decode(0x40, 2, "\1\0\0\0\3\0\0\0", 8, &layout, &left, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_string_equal(error.field, "layout.hilbert_rank");
    assert_int_equal(error.offset, 504);
    layout = of(HURRAY_LAYOUT_COO);
    layout.is_sorted = 2;
    refused(&layout, 2, shape_8x8, "layout.is_sorted", 1008);
}

static void morton_bits_cover_the_shape(void **state) {
    (void)state;
    uint32_t bits[] = {3, 3};
    const uint64_t dynamic[] = {HURRAY_DYNAMIC_DIMENSION, 8}, huge[] = {UINT64_MAX - 1, 8};
    HurrayLayout layout = of(HURRAY_LAYOUT_MORTON);
    layout.bits = bits;
    accepted(&layout, 2, shape_8x8);
    accepted(&layout, 2, dynamic);
    refused(&layout, 2, huge, "layout.bits", 1000);
    bits[0] = 64;
    accepted(&layout, 2, huge);
    bits[1] = 2;
    refused(&layout, 2, shape_8x8, "layout.bits", 1004);
    bits[1] = 0;
    refused(&layout, 2, shape_8x8, "layout.bits", 1004);
}

static void a_mode_order_is_a_permutation(void **state) {
    (void)state;
    uint32_t order[] = {2, 0, 1};
    HurrayLayout layout = of(HURRAY_LAYOUT_CSF);
    layout.mode_order = order;
    accepted(&layout, 3, shape_3);
    order[2] = 0;
    refused(&layout, 3, shape_3, "layout.mode_order", 1016);
    order[2] = 3;
    refused(&layout, 3, shape_3, "layout.mode_order", 1016);
    order[0] = UINT32_MAX;
    refused(&layout, 3, shape_3, "layout.mode_order", 1008);
}

static void paged_fields_are_in_their_ranges(void **state) {
    (void)state;
    HurrayLayout layout = of(HURRAY_LAYOUT_BLOCK_PAGED);
    refused(&layout, 3, shape_3, "layout.page_size", 1000);
    layout.page_size = 1;
    accepted(&layout, 3, shape_3);
    layout.paged_axis = 1;
    refused(&layout, 3, shape_3, "layout.paged_axis", 1012);
    layout.paged_axis = 0;
    layout.kv_role = 3;
    refused(&layout, 3, shape_3, "layout.kv_role", 1020);
    layout.kv_role = 2;
    layout.index_type = 2;
    refused(&layout, 3, shape_3, "layout.index_type", 1025);
}

static void composite_fields_are_in_their_ranges(void **state) {
    (void)state;
    const uint64_t dynamic[] = {8, HURRAY_DYNAMIC_DIMENSION};
    HurrayLayout layout = of(HURRAY_LAYOUT_COMPOSITE);
    refused(&layout, 2, shape_8x8, "layout.rule", 1000);
    layout.rule = 4;
    refused(&layout, 2, shape_8x8, "layout.rule", 1000);
    layout.rule = HURRAY_RULE_GROUP;
    accepted(&layout, 2, dynamic);
    layout.combine_op = 1;
    refused(&layout, 2, shape_8x8, "layout.combine_op", 1001);
    layout.rule = HURRAY_RULE_OVERLAY;
    refused(&layout, 2, shape_8x8, "layout.member_count", 1004);
    layout.member_count = 1;
    accepted(&layout, 2, shape_8x8);
    refused(&layout, 2, dynamic, "shape", 1000);
    layout.combine_op = 3;
    refused(&layout, 2, shape_8x8, "layout.combine_op", 1001);
    layout.combine_op = 0;
    refused(&layout, 2, shape_8x8, "layout.combine_op", 1001);
    layout.rule = HURRAY_RULE_PARTITION;
    accepted(&layout, 2, shape_8x8);
    layout.member_count = UINT32_MAX;
    refused(&layout, 2, shape_8x8, "layout.member_count", 1004);
}

static void a_hilbert_cube_has_equal_powers_of_two(void **state) {
    (void)state;
    const uint64_t uneven[] = {8, 4}, dynamic[] = {8, HURRAY_DYNAMIC_DIMENSION};
    HurrayLayout layout = of(HURRAY_LAYOUT_HILBERT);
    refused(&layout, 2, shape_8x8, "layout.order", 1000);
    layout.order = 3;
    accepted(&layout, 2, shape_8x8);
    accepted(&layout, 2, dynamic);
    refused(&layout, 2, uneven, "layout.order", 1000);
    layout.order = 67;
    refused(&layout, 2, shape_8x8, "layout.order", 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_have_names_and_counts),
        cmocka_unit_test(an_unknown_tag_is_refused),
        cmocka_unit_test(ranks_fit_the_layout),
        cmocka_unit_test(tile_levels_are_checked_each_at_its_byte),
        cmocka_unit_test(eight_tile_levels_are_read_and_a_ninth_is_not),
        cmocka_unit_test(inner_tiles_that_do_not_divide_are_found),
        cmocka_unit_test(every_payload_cut_short_is_refused),
        cmocka_unit_test(reserved_payload_bytes_are_zero),
        cmocka_unit_test(truth_values_and_the_hilbert_rank_are_checked_as_they_are_read),
        cmocka_unit_test(morton_bits_cover_the_shape),
        cmocka_unit_test(a_mode_order_is_a_permutation),
        cmocka_unit_test(paged_fields_are_in_their_ranges),
        cmocka_unit_test(composite_fields_are_in_their_ranges),
        cmocka_unit_test(a_hilbert_cube_has_equal_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
