#include "format/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/codes.h"
#include "format/dense.h"
#include "support/contents.h"

static HurrayLayout layout_of(uint8_t tag) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    layout.tag = tag;
    return layout;
}

/* ---- a second, literal reading of section 3.3, one index at a time ---- */

static int64_t by_rows(const uint64_t *i, const uint64_t *shape, uint32_t rank) {
    int64_t o = 0;
    for (uint32_t k = 0; k < rank; k++) o = o * (int64_t)shape[k] + (int64_t)i[k];
    return o;
}

static int64_t by_columns(const uint64_t *i, const uint64_t *shape, uint32_t rank) {
    int64_t o = 0, step = 1;
    for (uint32_t k = 0; k < rank; k++) {
        o += step * (int64_t)i[k];
        step *= (int64_t)shape[k];
    }
    return o;
}

static int64_t by_strides(const uint64_t *i, const int64_t *strides, uint32_t rank) {
    int64_t o = 0;
    for (uint32_t k = 0; k < rank; k++) o += (int64_t)i[k] * strides[k];
    return o;
}

static int64_t literal_tiled(const HurrayTileLevel *level, const uint64_t *i, const uint64_t *shape, uint32_t rank) {
    uint64_t t[HURRAY_MAX_RANK], e[HURRAY_MAX_RANK], grid[HURRAY_MAX_RANK];
    int64_t per = 1, number, inner;
    for (uint32_t k = 0; k < rank; k++) {
        t[k] = i[k] / level->tile_shape[k];
        e[k] = i[k] % level->tile_shape[k];
        grid[k] = (shape[k] + level->tile_shape[k] - 1) / level->tile_shape[k];
        per *= (int64_t)level->tile_shape[k];
    }
    number = level->outer == 1   ? by_rows(t, grid, rank)
             : level->outer == 2 ? by_columns(t, grid, rank)
                                 : by_strides(t, level->outer_strides, rank);
    switch (level->inner) {
    case 1: inner = by_rows(e, level->tile_shape, rank); break;
    case 2: inner = by_columns(e, level->tile_shape, rank); break;
    case 3: inner = by_strides(e, level->inner_strides, rank); break;
    default: inner = literal_tiled(level + 1, e, level->tile_shape, rank); break;
    }
    return number * per + inner;
}

static int64_t literal_morton(const uint64_t *i, const uint32_t *bits, uint32_t rank) {
    int64_t o = 0;
    for (uint32_t b = 0; b < 21; b++)
        for (uint32_t d = 0; d < rank; d++)
            if (b < bits[d]) o |= (int64_t)(i[d] >> b & 1) << (b * rank + d);
    return o;
}

/* Fills buffer 0 (uint32) so that the element at offset o is o + 1000, walks the whole tensor and compares the address of each
 * index, the dense view whole, and the dense view in odd pieces. */
static void compare_everywhere(const Contents *contents, int64_t (*literal)(const HurrayDescriptor *, const uint64_t *)) {
    const HurrayDescriptor *d = contents->descriptor;
    uint64_t count, index[HURRAY_MAX_RANK];
    HurrayError error;
    HryDense dense;
    assert_true(hry_descriptor_elements(d, &count));
    int64_t first = (int64_t)(d->byte_offset / 4);
    for (uint64_t k = 0; k < contents->bytes[0].size / 4; k++)
        hry_store_u32(contents_buffer(contents, 0) + 4 * k, (uint32_t)((int64_t)k - first + 1000));
    uint8_t *whole = malloc(4 * count), *pieces = malloc(4 * count);
    assert_non_null(whole);
    assert_non_null(pieces);
    assert_int_equal(hry_dense_open(&dense, d, contents->bytes, HRY_DENSE_OWN, &error), HURRAY_OK);
    assert_int_equal(dense.elements, count);
    assert_int_equal(hry_dense_stretch(&dense, 0, count, whole, &error), HURRAY_OK);
    for (uint64_t at = 0, n; at < count; at += n) {
        n = at * 7 % 23 + 1 < count - at ? at * 7 % 23 + 1 : count - at;
        assert_int_equal(hry_dense_stretch(&dense, at, n, pieces + 4 * at, &error), HURRAY_OK);
    }
    assert_memory_equal(whole, pieces, 4 * count);
    for (uint64_t k = 0; k < count; k++) {
        uint8_t one[4];
        hry_index_of_linear(k, d->shape, d->rank, index);
        assert_int_equal(hry_index_linear(index, d->shape, d->rank), k);
        int64_t o = literal(d, index);
        assert_int_equal(hry_address_of(d, index), o);
        assert_int_equal(hry_load_u32(whole + 4 * k), (uint32_t)(o + 1000));
        assert_int_equal(hry_dense_element(&dense, index, one, &error), HURRAY_OK);
        assert_int_equal(hry_load_u32(one), (uint32_t)(o + 1000));
    }
    free(whole);
    free(pieces);
}

static int64_t literal_rows(const HurrayDescriptor *d, const uint64_t *i) { return by_rows(i, d->shape, d->rank); }
static int64_t literal_columns(const HurrayDescriptor *d, const uint64_t *i) { return by_columns(i, d->shape, d->rank); }
static int64_t literal_strides(const HurrayDescriptor *d, const uint64_t *i) { return by_strides(i, d->layout.strides, d->rank); }
static int64_t literal_tiles(const HurrayDescriptor *d, const uint64_t *i) { return literal_tiled(d->layout.tiles, i, d->shape, d->rank); }
static int64_t literal_bits(const HurrayDescriptor *d, const uint64_t *i) { return literal_morton(i, d->layout.bits, d->rank); }

static void row_and_column_major_are_addressed_as_written(void **state) {
    (void)state;
    static const uint64_t shapes[][4] = {{7, 1, 1, 1}, {5, 4, 1, 1}, {3, 50, 40, 1}, {2, 3, 1, 5}, {40, 33, 1, 1}, {100, 130, 1, 1}};
    static const uint32_t ranks[] = {1, 2, 3, 4, 2, 2};
    for (size_t s = 0; s < sizeof ranks / sizeof *ranks; s++) {
        uint64_t count = 1;
        for (uint32_t k = 0; k < ranks[s]; k++) count *= shapes[s][k];
        for (uint8_t tag = HURRAY_LAYOUT_ROW_MAJOR; tag <= HURRAY_LAYOUT_COLUMN_MAJOR; tag++) {
            HurrayLayout layout = layout_of(tag);
            Contents contents;
            contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_UINT32,
                                                     .rank = ranks[s],
                                                     .shape = shapes[s],
                                                     .layout = &layout,
                                                     .byte_offset = 12,
                                                     .sizes = {12 + 4 * count}});
            compare_everywhere(&contents, tag == HURRAY_LAYOUT_ROW_MAJOR ? literal_rows : literal_columns);
            contents_free(&contents);
        }
    }
}

static void strides_may_be_negative_zero_and_permuted(void **state) {
    (void)state;
    static const struct {
        uint64_t shape[3];
        int64_t strides[3];
        uint64_t before, elements; /* elements before the one at byte_offset, and in all */
    } cases[] = {
        {{4, 5, 6}, {1, 24, 4}, 0, 120},      {{4, 5, 6}, {-30, -6, -1}, 119, 120}, {{4, 5, 6}, {0, 6, 1}, 0, 30},
        {{4, 5, 6}, {0, 0, 0}, 0, 1},         {{3, 40, 70}, {1, 3, 120}, 0, 8400},  {{2, 3, 4}, {50, -10, 3}, 20, 81},
        {{37, 1, 41}, {1, 999, 37}, 0, 1517}, {{1, 64, 65}, {7, -1, 64}, 63, 4160},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        HurrayLayout layout = layout_of(HURRAY_LAYOUT_STRIDED);
        layout.strides = cases[c].strides;
        Contents contents;
        contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_UINT32,
                                                 .rank = 3,
                                                 .shape = cases[c].shape,
                                                 .layout = &layout,
                                                 .byte_offset = 4 * cases[c].before,
                                                 .sizes = {4 * cases[c].elements}});
        compare_everywhere(&contents, literal_strides);
        contents_free(&contents);
    }
}

static void the_tiled_example_of_the_format_is_29(void **state) {
    (void)state;
    const uint64_t shape[] = {6, 8}, tile[] = {2, 4}, index[] = {3, 5};
    HurrayTileLevel level = {.tile_shape = tile, .outer = 1, .inner = 1};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_TILED);
    layout.tiles = &level;
    layout.tile_count = 1;
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_UINT32, .rank = 2, .shape = shape, .layout = &layout, .sizes = {4 * 48}});
    assert_int_equal(hry_address_of(contents.descriptor, index), 29);
    contents_free(&contents);
}

static void tiles_of_every_order_and_depth_follow_the_formula(void **state) {
    (void)state;
    const uint64_t shape[] = {11, 7, 13};
    const uint64_t tile[] = {4, 3, 6}, inner_tile[] = {2, 3, 2}, innermost[] = {2, 1, 2};
    const int64_t outer_strides[] = {9, 3, 1}, inner_strides[] = {18, 6, 1}, deep_strides[] = {1, 2, 6}, backwards[] = {-1, -3, -9};
    for (uint8_t outer = 1; outer <= 3; outer++)
        for (uint8_t inner = 1; inner <= 4; inner++)
            for (uint8_t deep = 1; deep <= (inner == 4 ? 4 : 1); deep++) {
                HurrayTileLevel levels[3] = {{.tile_shape = tile, .outer = outer, .inner = inner},
                                             {.tile_shape = inner_tile, .outer = 2, .inner = deep},
                                             {.tile_shape = innermost, .outer = 1, .inner = 2}};
                if (outer == 3) levels[0].outer_strides = inner == 1 ? backwards : outer_strides;
                if (inner == 3) levels[0].inner_strides = inner_strides;
                if (deep == 3) levels[1].inner_strides = deep_strides;
                HurrayLayout layout = layout_of(HURRAY_LAYOUT_TILED);
                layout.tiles = levels;
                layout.tile_count = inner != 4 ? 1 : deep != 4 ? 2 : 3;
                Contents contents;
                contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_UINT32,
                                                         .rank = 3,
                                                         .shape = shape,
                                                         .layout = &layout,
                                                         .byte_offset = 4 * 2000,
                                                         .sizes = {4 * 5000}});
                compare_everywhere(&contents, literal_tiles);
                contents_free(&contents);
            }
}

static void a_tile_of_beyond_64_bits_with_strides_of_zero_is_one_element(void **state) {
    (void)state;
    const uint64_t shape[] = {3, 4}, tile[] = {UINT64_C(1) << 40, UINT64_C(1) << 40}, index[] = {2, 3};
    const int64_t strides[] = {0, 0};
    HurrayTileLevel level = {.tile_shape = tile, .inner_strides = strides, .outer = 1, .inner = 3};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_TILED);
    layout.tiles = &level;
    layout.tile_count = 1;
    HurrayDescriptor descriptor = {.shape = (uint64_t *)(uintptr_t)shape, .rank = 2, .layout_tag = HURRAY_LAYOUT_TILED, .layout = layout};
    assert_int_equal(hry_address_of(&descriptor, index), 0);
}

static void morton_codes_are_those_of_the_format(void **state) {
    (void)state;
    const struct {
        uint64_t shape[2], index[2], elements;
        uint32_t bits[2];
        int64_t o;
    } cases[] = {{{4, 4}, {2, 3}, 16, {2, 2}, 14}, {{2, 8}, {1, 7}, 44, {1, 3}, 43}};
    for (size_t c = 0; c < 2; c++) {
        HurrayLayout layout = layout_of(HURRAY_LAYOUT_MORTON);
        layout.bits = cases[c].bits;
        Contents contents;
        contents_make(
            &contents,
            &(ContentsSpec){
                .type = HURRAY_TYPE_UINT32, .rank = 2, .shape = cases[c].shape, .layout = &layout, .sizes = {4 * cases[c].elements}});
        assert_int_equal(hry_address_of(contents.descriptor, cases[c].index), cases[c].o);
        compare_everywhere(&contents, literal_bits);
        contents_free(&contents);
    }
}

static void hilbert_places_are_those_of_the_format(void **state) {
    (void)state;
    static const uint8_t path[16][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 3}, {1, 3}, {1, 2},
                                        {2, 2}, {2, 3}, {3, 3}, {3, 2}, {3, 1}, {2, 1}, {2, 0}, {3, 0}};
    const uint64_t shape[] = {4, 4};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_HILBERT);
    layout.order = 2;
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_UINT32, .rank = 2, .shape = shape, .layout = &layout, .sizes = {4 * 16}});
    for (int o = 0; o < 16; o++) {
        const uint64_t index[] = {path[o][0], path[o][1]};
        assert_int_equal(hry_address_of(contents.descriptor, index), o);
    }
    contents_free(&contents);
}

static void a_hilbert_curve_visits_every_place_once_and_steps_to_neighbours(void **state) {
    (void)state;
    const uint64_t shape[] = {8, 8, 8};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_HILBERT);
    layout.order = 3;
    Contents contents;
    uint64_t at[512][3];
    bool seen[512] = {false};
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_UINT32, .rank = 3, .shape = shape, .layout = &layout, .sizes = {4 * 512}});
    for (uint64_t k = 0; k < 512; k++) {
        uint64_t index[3];
        hry_index_of_linear(k, shape, 3, index);
        int64_t o = hry_address_of(contents.descriptor, index);
        assert_in_range(o, 0, 511);
        assert_false(seen[o]);
        seen[o] = true;
        memcpy(at[o], index, sizeof index);
    }
    for (int o = 1; o < 512; o++) {
        int distance = 0;
        for (int k = 0; k < 3; k++) distance += abs((int)at[o][k] - (int)at[o - 1][k]);
        assert_int_equal(distance, 1);
    }
    contents_free(&contents);
}

static void negative_places_of_small_types_count_down_from_the_byte(void **state) {
    (void)state;
    static const struct {
        int64_t o;
        uint32_t bits;
        int64_t byte;
        unsigned shift;
    } cases[] = {{-1, 4, -1, 4}, {-2, 4, -1, 0}, {-3, 4, -2, 4}, {-1, 1, -1, 7}, {-8, 1, -1, 0},  {-9, 1, -2, 7}, {-1, 2, -1, 6},
                 {-1, 6, -1, 2}, {-4, 6, -3, 0}, {-5, 6, -4, 2}, {5, 6, 3, 6},   {-3, 16, -6, 0}, {3, 4, 1, 4},   {13, 1, 1, 5}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        HryBitPlace place = hry_bit_place(cases[c].o, cases[c].bits);
        assert_int_equal(place.byte, cases[c].byte);
        assert_int_equal(place.shift, cases[c].shift);
    }
}

static void a_scalar_has_one_run_of_one(void **state) {
    (void)state;
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_UINT32, .rank = 0, .sizes = {4}});
    HryRun run = hry_address_run(contents.descriptor, NULL, 1);
    assert_int_equal(run.first, 0);
    assert_int_equal(run.count, 1);
    assert_true(hry_address_exists(contents.descriptor));
    contents_free(&contents);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_and_column_major_are_addressed_as_written),
        cmocka_unit_test(strides_may_be_negative_zero_and_permuted),
        cmocka_unit_test(the_tiled_example_of_the_format_is_29),
        cmocka_unit_test(tiles_of_every_order_and_depth_follow_the_formula),
        cmocka_unit_test(a_tile_of_beyond_64_bits_with_strides_of_zero_is_one_element),
        cmocka_unit_test(morton_codes_are_those_of_the_format),
        cmocka_unit_test(hilbert_places_are_those_of_the_format),
        cmocka_unit_test(a_hilbert_curve_visits_every_place_once_and_steps_to_neighbours),
        cmocka_unit_test(negative_places_of_small_types_count_down_from_the_byte),
        cmocka_unit_test(a_scalar_has_one_run_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
