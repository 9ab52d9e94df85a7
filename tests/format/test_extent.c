#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "format/element.h"
#include "format/extent.h"

/* Only what extents read; no block behind it. */
static HurrayDescriptor parts(uint8_t type, uint8_t layout, uint32_t rank, const uint64_t *shape) {
    HurrayDescriptor d;
    memset(&d, 0, sizeof d);
    d.element_type = type;
    d.element_bits = hry_element_bits(type);
    d.layout_tag = d.layout.tag = layout;
    d.rank = rank;
    d.shape = shape;
    return d;
}

static void least_is(const HurrayDescriptor *d, uint32_t buffer, uint64_t least) {
    HryExtent extent;
    HurrayError error;
    assert_int_equal(hry_extent_buffer(d, buffer, false, &extent, &error), HURRAY_OK);
    assert_true(extent.known);
    assert_true(extent.least == least);
}

static void unknown(const HurrayDescriptor *d, uint32_t buffer, uint64_t bound) {
    HryExtent extent;
    HurrayError error;
    assert_int_equal(hry_extent_buffer(d, buffer, false, &extent, &error), HURRAY_OK);
    assert_false(extent.known);
    assert_true(extent.least == bound);
}

static void too_much(const HurrayDescriptor *d, uint32_t buffer) {
    HryExtent extent;
    HurrayError error;
    assert_int_equal(hry_extent_buffer(d, buffer, false, &extent, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_true(error.message[0]);
}

static void dense_elements_are_counted_from_the_byte_offset(void **state) {
    (void)state;
    const uint64_t shape[] = {3, 5}, empty[] = {UINT64_C(1) << 63, 0, 8}, dynamic[] = {HURRAY_DYNAMIC_DIMENSION, 5};
    HurrayDescriptor d = parts(HURRAY_TYPE_BOOL, HURRAY_LAYOUT_ROW_MAJOR, 2, shape);
    d.byte_offset = 10;
    least_is(&d, 0, 12);
    d = parts(HURRAY_TYPE_FLOAT6_E2M3, HURRAY_LAYOUT_COLUMN_MAJOR, 2, shape);
    least_is(&d, 0, 12);
    d = parts(HURRAY_TYPE_FLOAT32, HURRAY_LAYOUT_ROW_MAJOR, 3, empty);
    d.byte_offset = 7;
    least_is(&d, 0, 7);
    d = parts(HURRAY_TYPE_FLOAT32, HURRAY_LAYOUT_ROW_MAJOR, 2, dynamic);
    unknown(&d, 0, 0);
    d = parts(HURRAY_TYPE_FLOAT32, HURRAY_LAYOUT_ROW_MAJOR, 0, NULL);
    least_is(&d, 0, 4);
}

static void a_shape_beyond_64_bits_of_bytes_or_elements_is_refused(void **state) {
    (void)state;
    const uint64_t square[] = {UINT64_C(1) << 32, UINT64_C(1) << 32}, half[] = {UINT64_C(1) << 31, UINT64_C(1) << 32};
    const uint64_t line[] = {UINT64_MAX - 1}, long_one[] = {1, 2, 1, UINT64_C(1) << 63};
    HurrayDescriptor d = parts(HURRAY_TYPE_INT8, HURRAY_LAYOUT_ROW_MAJOR, 2, square);
    too_much(&d, 0);
    d = parts(HURRAY_TYPE_BOOL, HURRAY_LAYOUT_ROW_MAJOR, 2, square); /* 2^64 bits are few bytes, but too many elements */
    too_much(&d, 0);
    d = parts(HURRAY_TYPE_FLOAT4_E2M1, HURRAY_LAYOUT_COLUMN_MAJOR, 4, long_one);
    too_much(&d, 0);
    d = parts(HURRAY_TYPE_BOOL, HURRAY_LAYOUT_ROW_MAJOR, 2, half);
    least_is(&d, 0, UINT64_C(1) << 60);
    d = parts(HURRAY_TYPE_INT8, HURRAY_LAYOUT_ROW_MAJOR, 1, line);
    least_is(&d, 0, UINT64_MAX - 1);
    d.byte_offset = 2;
    too_much(&d, 0);
}

static void strides_reach_both_ways(void **state) {
    (void)state;
    const uint64_t shape[] = {3, 4};
    int64_t strides[] = {-4, 1}, least, greatest;
    HurrayDescriptor d = parts(HURRAY_TYPE_FLOAT32, HURRAY_LAYOUT_STRIDED, 2, shape);
    d.layout.strides = strides;
    too_much(&d, 0);
    d.byte_offset = 32;
    least_is(&d, 0, 48);
    assert_true(hry_extent_reach(&d, &least, &greatest));
    assert_int_equal(least, -8);
    assert_int_equal(greatest, 3);
    strides[0] = strides[1] = 0;
    d.byte_offset = 0;
    least_is(&d, 0, 4);
    strides[0] = INT64_MIN;
    too_much(&d, 0);
    assert_false(hry_extent_reach(&d, &least, &greatest));
    strides[0] = INT64_MAX;
    too_much(&d, 0);
    assert_false(hry_extent_reach(&d, &least, &greatest));
    d = parts(HURRAY_TYPE_INT4, HURRAY_LAYOUT_STRIDED, 2, shape); /* -3 is in byte -2 */
    strides[0] = -1;
    strides[1] = -1;
    d.layout.strides = strides;
    d.byte_offset = 2;
    too_much(&d, 0);
    d.byte_offset = 3;
    least_is(&d, 0, 4);
    d.element_bits = 6; /* -5 is in group -2 */
    d.byte_offset = 5;
    too_much(&d, 0);
    d.byte_offset = 6;
    least_is(&d, 0, 9);
}

static void tiles_take_whole_tiles(void **state) {
    (void)state;
    const uint64_t shape[] = {6, 8}, odd[] = {3, 3}, tile[] = {2, 4}, square[] = {2, 2}, half[] = {1, 2};
    HurrayTileLevel tiles[2] = {{.tile_shape = tile, .outer = 1, .inner = 1}, {.tile_shape = half, .outer = 2, .inner = 2}};
    HurrayDescriptor d = parts(HURRAY_TYPE_FLOAT32, HURRAY_LAYOUT_TILED, 2, shape);
    d.layout.tiles = tiles;
    d.layout.tile_count = 1;
    least_is(&d, 0, 192);
    d.shape = odd;
    least_is(&d, 0, 64);
    tiles[0].tile_shape = square;
    least_is(&d, 0, 64);
    tiles[0].inner = HURRAY_ORDER_TILED;
    d.layout.tile_count = 2;
    least_is(&d, 0, 64);
    const int64_t apart[] = {10, 1};
    tiles[0].outer = HURRAY_ORDER_STRIDED;
    tiles[0].outer_strides = apart;
    least_is(&d, 0, 4 * (11 * 4 + 4));
    tiles[1].inner = HURRAY_ORDER_STRIDED;
    tiles[1].inner_strides = apart; /* in a tile of [1,2]: reaches 1 further */
    least_is(&d, 0, 4 * (11 * 4 + 2 + 1 + 1));
    const uint64_t enormous[] = {UINT64_MAX, UINT64_MAX};
    tiles[1].tile_shape = enormous;
    tiles[1].inner = HURRAY_ORDER_ROW_MAJOR;
    too_much(&d, 0);
}

static void curves_take_their_codes(void **state) {
    (void)state;
    const uint64_t shape[] = {2, 8}, square[] = {4, 4}, last[] = {1, 1};
    uint32_t bits[] = {1, 3};
    HurrayDescriptor d = parts(HURRAY_TYPE_INT8, HURRAY_LAYOUT_MORTON, 2, shape);
    d.layout.bits = bits;
    least_is(&d, 0, 44);
    bits[0] = 1, bits[1] = 63;
    too_much(&d, 0);
    bits[1] = 62;
    least_is(&d, 0, UINT64_C(1) << 63);
    d.shape = last;
    bits[0] = bits[1] = 31;
    least_is(&d, 0, UINT64_C(1) << 62);
    HryExtent extent;
    HurrayError error;
    bits[0] = 1, bits[1] = 62; /* all-ones indices lie beyond 64 bits */
    assert_int_equal(hry_extent_buffer(&d, 0, true, &extent, &error), HURRAY_ERR_INVALID_LAYOUT);
    d = parts(HURRAY_TYPE_INT8, HURRAY_LAYOUT_HILBERT, 2, square);
    d.layout.order = 2;
    least_is(&d, 0, 16);
    d.layout.order = 32;
    too_much(&d, 0);
    d.layout.order = 31;
    least_is(&d, 0, UINT64_C(1) << 62);
}

static void sparse_buffers_follow_nnz_and_shape(void **state) {
    (void)state;
    const uint64_t shape[] = {2, 9}, dynamic[] = {HURRAY_DYNAMIC_DIMENSION, UINT64_MAX - 1}, cube[] = {2, 2, 2};
    HurrayDescriptor d = parts(HURRAY_TYPE_FLOAT16, HURRAY_LAYOUT_COO, 2, shape);
    d.layout.nnz = 3;
    assert_int_equal(hry_extent_buffer_count(&d), 2);
    least_is(&d, 0, 6);
    least_is(&d, 1, 48);
    d.layout.nnz = UINT64_C(1) << 60;
    too_much(&d, 1);
    d.layout.nnz = UINT64_C(1) << 63;
    too_much(&d, 0);
    too_much(&d, 1);
    d = parts(HURRAY_TYPE_FLOAT16, HURRAY_LAYOUT_CSR, 2, shape);
    d.layout.nnz = 3;
    least_is(&d, 1, 24);
    least_is(&d, 2, 24);
    d.shape = dynamic;
    unknown(&d, 2, 0);
    d.layout_tag = HURRAY_LAYOUT_CSC;
    too_much(&d, 2);
    d.shape = shape;
    least_is(&d, 2, 80);
    d.layout.nnz = UINT64_C(1) << 61;
    too_much(&d, 1);
    d = parts(HURRAY_TYPE_BOOL, HURRAY_LAYOUT_CSF, 3, cube);
    d.layout.nnz = 9;
    assert_int_equal(hry_extent_buffer_count(&d), 7);
    least_is(&d, 0, 2);
    least_is(&d, 1, 16);
    unknown(&d, 2, 0);
    unknown(&d, 3, 8);
    unknown(&d, 4, 0);
    unknown(&d, 5, 8);
    least_is(&d, 6, 72);
    d.layout.nnz = UINT64_C(1) << 61;
    too_much(&d, 6);
}

static void a_page_pool_holds_its_pages(void **state) {
    (void)state;
    const uint64_t shape[] = {9, 2, 3}, dynamic[] = {HURRAY_DYNAMIC_DIMENSION, 2, 3}, heads[] = {9, HURRAY_DYNAMIC_DIMENSION, 3};
    HurrayDescriptor d = parts(HURRAY_TYPE_INT4, HURRAY_LAYOUT_BLOCK_PAGED, 3, shape);
    d.layout.page_size = 5;
    d.layout.num_pages = 3;
    d.layout.num_seqs = 2;
    least_is(&d, 0, 45);
    unknown(&d, 1, 0);
    least_is(&d, 2, 12);
    d.layout.index_type = 1;
    least_is(&d, 2, 24);
    d.shape = dynamic;
    least_is(&d, 0, 45);
    d.shape = heads;
    unknown(&d, 0, 0);
    d.shape = shape;
    d.layout.num_pages = UINT64_C(1) << 62;
    too_much(&d, 0);
    d.layout.num_seqs = UINT32_MAX;
    least_is(&d, 2, UINT64_C(8) << 32);
}

static void parameters_have_exact_sizes(void **state) {
    (void)state;
    const uint64_t shape[] = {3, 20}, dynamic[] = {HURRAY_DYNAMIC_DIMENSION, 20}, huge[] = {UINT64_C(1) << 62, 20};
    HryExtent extent;
    HurrayError error;
    HurrayDescriptor d = parts(HURRAY_TYPE_INT8, HURRAY_LAYOUT_ROW_MAJOR, 2, shape);
    d.has_quantization = true;
    d.quantization.scheme = HURRAY_QUANT_PER_BLOCK_AFFINE;
    d.quantization.axis = 1;
    d.quantization.block_size = 8;
    d.quantization.scale_buffer = 1;
    d.quantization.zero_point_buffer = 2;
    d.quantization.scale_type = HURRAY_TYPE_FLOAT16;
    assert_int_equal(hry_extent_buffer_count(&d), 3);
    least_is(&d, 1, 18);
    least_is(&d, 2, 36);
    assert_int_equal(hry_extent_buffer(&d, 1, false, &extent, &error), HURRAY_OK);
    assert_true(extent.exact);
    d.quantization.zero_point_buffer = 1;
    assert_int_equal(hry_extent_buffer_count(&d), 2);
    assert_int_equal(hry_extent_buffer(&d, 1, false, &extent, &error), HURRAY_OK);
    assert_true(extent.known && !extent.exact && extent.least == 54);
    d.shape = dynamic;
    unknown(&d, 1, 0);
    d.shape = huge;
    too_much(&d, 1);
    d.shape = shape;
    d.quantization.scheme = HURRAY_QUANT_PER_CHANNEL_AFFINE;
    d.quantization.scale_type = HURRAY_TYPE_FLOAT32;
    least_is(&d, 1, 160);
    d.quantization.flags = HURRAY_QUANT_SYMMETRIC;
    least_is(&d, 1, 80);
    d.quantization.scheme = HURRAY_QUANT_MXFP;
    d.quantization.block_size = 4;
    least_is(&d, 1, 15);
    d.quantization.scheme = HURRAY_QUANT_PER_TENSOR_AFFINE;
    assert_int_equal(hry_extent_buffer_count(&d), 1);
}

static void paged_parameters_are_per_slot(void **state) {
    (void)state;
    const uint64_t shape[] = {9, 2, 3};
    HurrayDescriptor d = parts(HURRAY_TYPE_INT8, HURRAY_LAYOUT_BLOCK_PAGED, 3, shape);
    d.layout.page_size = 4;
    d.layout.num_pages = 5;
    d.has_quantization = true;
    d.quantization.scheme = HURRAY_QUANT_PER_BLOCK_AFFINE;
    d.quantization.flags = HURRAY_QUANT_SYMMETRIC;
    d.quantization.block_size = 4;
    d.quantization.scale_buffer = 3;
    d.quantization.scale_type = HURRAY_TYPE_FLOAT32;
    least_is(&d, 3, 80);
    d.layout.num_pages = UINT64_C(1) << 63;
    too_much(&d, 3);
    d.quantization.scheme = HURRAY_QUANT_NF4; /* no meaning there */
    unknown(&d, 3, 0);
}

static void private_layouts_have_no_sizes_but_their_parameters_have(void **state) {
    (void)state;
    const uint64_t shape[] = {8};
    HurrayDescriptor d = parts(HURRAY_TYPE_INT8, 0xF0, 1, shape);
    assert_int_equal(hry_extent_buffer_count(&d), 1);
    unknown(&d, 0, 0);
    unknown(&d, 1, 0);
    d.has_quantization = true;
    d.quantization.scheme = HURRAY_QUANT_PER_CHANNEL_AFFINE;
    d.quantization.flags = HURRAY_QUANT_SYMMETRIC;
    d.quantization.scale_type = HURRAY_TYPE_FLOAT32;
    d.quantization.scale_buffer = 2;
    unknown(&d, 1, 0);
    least_is(&d, 2, 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_elements_are_counted_from_the_byte_offset),
        cmocka_unit_test(a_shape_beyond_64_bits_of_bytes_or_elements_is_refused),
        cmocka_unit_test(strides_reach_both_ways),
        cmocka_unit_test(tiles_take_whole_tiles),
        cmocka_unit_test(curves_take_their_codes),
        cmocka_unit_test(sparse_buffers_follow_nnz_and_shape),
        cmocka_unit_test(a_page_pool_holds_its_pages),
        cmocka_unit_test(parameters_have_exact_sizes),
        cmocka_unit_test(paged_parameters_are_per_slot),
        cmocka_unit_test(private_layouts_have_no_sizes_but_their_parameters_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
