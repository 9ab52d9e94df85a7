#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/descriptors.h"
#include "support/fail_alloc.h"

static const uint64_t shape_4x6[] = {4, 6}, shape_4x4[] = {4, 4}, shape_2x3x4[] = {2, 3, 4}, shape_16[] = {16}, shape_2x32[] = {2, 32};

static HurrayDescriptorSpec dense(uint8_t type, uint32_t rank, const uint64_t *shape) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    spec.element_type = type;
    spec.rank = rank;
    spec.shape = shape;
    return spec;
}

static HurrayLayout layout_of(uint8_t tag) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    layout.tag = tag;
    return layout;
}

/* Builds with planned buffers and asserts how large they are; through bytes and back. */
static HurrayDescriptor *build_planned(const HurrayDescriptorSpec *spec, size_t count, const uint64_t *sizes) {
    HurrayBufferHandle handles[HRY_MAX_PLANNED];
    size_t planned = HRY_MAX_PLANNED;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayStatus status = hurray_descriptor_plan_buffers(spec, handles, &planned, &error);
    if (status != HURRAY_OK) print_error("%s: %s\n", error.field, error.message);
    assert_int_equal(status, HURRAY_OK);
    assert_int_equal(planned, count);
    HurrayDescriptor *descriptor = descriptor_must_build(spec);
    assert_int_equal(descriptor->buffer_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(handles[i].byte_size, sizes[i]);
        assert_int_equal(handles[i].alignment, 64);
        assert_int_equal(handles[i].device_tag, HURRAY_DEVICE_CPU);
        assert_memory_equal(&handles[i], &descriptor->buffers[i], sizeof handles[i]);
    }
    HurrayDescriptor *decoded = descriptor_round_trip(descriptor);
    hry_descriptor_unref(descriptor);
    return decoded;
}

static void plan_and_forget(const HurrayDescriptorSpec *spec, size_t count, const uint64_t *sizes) {
    hry_descriptor_unref(build_planned(spec, count, sizes));
}

static void refuse_to_plan(const HurrayDescriptorSpec *spec, HurrayStatus status, const char *field) {
    HurrayBufferHandle handles[HRY_MAX_PLANNED];
    size_t count = HRY_MAX_PLANNED;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_descriptor_plan_buffers(spec, handles, &count, &error), status);
    assert_string_equal(error.field, field);
    assert_int_equal(count, HRY_MAX_PLANNED);
}

/* ---- layouts ---- */

static void a_layout_that_is_null_is_row_major(void **state) {
    (void)state;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x6);
    HurrayDescriptor *d = build_planned(&spec, 1, (uint64_t[]){96});
    assert_int_equal(d->layout_tag, HURRAY_LAYOUT_ROW_MAJOR);
    assert_int_equal(d->layout.tag, HURRAY_LAYOUT_ROW_MAJOR);
    assert_int_equal(d->shape[1], 6);
    hry_descriptor_unref(d);
}

static void a_scalar_has_one_element(void **state) {
    (void)state;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT64, 0, NULL);
    uint64_t n;
    HurrayDescriptor *d = build_planned(&spec, 1, (uint64_t[]){8});
    assert_true(hry_descriptor_elements(d, &n));
    assert_int_equal(n, 1);
    hry_descriptor_unref(d);
}

static void planned_sizes_follow_each_width(void **state) {
    (void)state;
    static const struct {
        uint8_t type;
        uint64_t bytes; /* of 5 elements */
    } rows[] = {{HURRAY_TYPE_BOOL, 1},        {HURRAY_TYPE_UINT2, 2},  {HURRAY_TYPE_INT4, 3},      {HURRAY_TYPE_FLOAT6_E2M3, 6},
                {HURRAY_TYPE_FLOAT8_E4M3, 5}, {HURRAY_TYPE_INT16, 10}, {HURRAY_TYPE_FLOAT128, 80}, {HURRAY_TYPE_COMPLEX64, 40}};
    const uint64_t shape[] = {5};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        HurrayDescriptorSpec spec = dense(rows[i].type, 1, shape);
        plan_and_forget(&spec, 1, &rows[i].bytes);
    }
}

static void a_byte_offset_is_planned_for(void **state) {
    (void)state;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 1, shape_16);
    spec.byte_offset = 100;
    plan_and_forget(&spec, 1, (uint64_t[]){116});
}

static void column_major_round_trips(void **state) {
    (void)state;
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_COLUMN_MAJOR);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x6);
    spec.layout = &layout;
    plan_and_forget(&spec, 1, (uint64_t[]){96});
}

static void strides_round_trip_and_may_be_negative(void **state) {
    (void)state;
    const int64_t strides[] = {-6, 1};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_STRIDED);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x6);
    layout.strides = strides;
    spec.layout = &layout;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "byte_offset");
    spec.byte_offset = 18 * 4;
    HurrayDescriptor *d = build_planned(&spec, 1, (uint64_t[]){96});
    assert_int_equal(d->layout.strides[0], -6);
    hry_descriptor_unref(d);
    layout.strides = NULL;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "layout.strides");
}

static void tiles_nest_by_level(void **state) {
    (void)state;
    const uint64_t outer[] = {4, 4}, inner[] = {2, 2};
    const int64_t strides[] = {2, 1};
    HurrayTileLevel tiles[2] = {
        {.tile_shape = outer, .outer = HURRAY_ORDER_STRIDED, .inner = HURRAY_ORDER_TILED, .outer_strides = strides},
        {.tile_shape = inner, .outer = HURRAY_ORDER_COLUMN_MAJOR, .inner = HURRAY_ORDER_ROW_MAJOR, .outer_strides = strides}};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_TILED);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x6);
    layout.tiles = tiles;
    layout.tile_count = 2;
    spec.layout = &layout;
    HurrayDescriptor *d = build_planned(&spec, 1, (uint64_t[]){128}); /* 1 x 2 tiles of 16 */
    assert_int_equal(d->layout.tile_count, 2);
    assert_int_equal(d->layout.tiles[0].outer_strides[0], 2);
    assert_null(d->layout.tiles[1].outer_strides);
    assert_int_equal(d->layout.tiles[1].tile_shape[1], 2);
    hry_descriptor_unref(d);

    tiles[0].outer_strides = NULL;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "layout.outer_strides");
    tiles[0].outer_strides = strides;
    tiles[1].inner = HURRAY_ORDER_TILED;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "layout.inner");
    tiles[1].inner = HURRAY_ORDER_STRIDED;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "layout.inner_strides");
    tiles[1].inner = HURRAY_ORDER_ROW_MAJOR;
    tiles[1].reserved[2] = 1;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "layout.reserved");
    tiles[1].reserved[2] = 0;
    tiles[1].tile_shape = NULL;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "layout.tile_shape");
    layout.tile_count = 9;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "layout.tile_count");
    layout.tile_count = 1;
    layout.tiles = NULL;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "layout.tiles");
}

static void a_writer_refuses_tiles_that_alias(void **state) {
    (void)state;
    const uint64_t outer[] = {4, 4}, inner[] = {3, 2};
    HurrayTileLevel tiles[2] = {{.tile_shape = outer, .outer = HURRAY_ORDER_ROW_MAJOR, .inner = HURRAY_ORDER_TILED},
                                {.tile_shape = inner, .outer = HURRAY_ORDER_ROW_MAJOR, .inner = HURRAY_ORDER_ROW_MAJOR}};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_TILED);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x4);
    layout.tiles = tiles;
    layout.tile_count = 2;
    spec.layout = &layout;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "layout.tiles");
}

static void morton_plans_for_all_ones_indices(void **state) {
    (void)state;
    const uint32_t even[] = {2, 2}, uneven[] = {1, 3};
    const uint64_t shape_2x8[] = {2, 8}, shape_2x5[] = {2, 5};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_MORTON);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 2, shape_4x4);
    layout.bits = even;
    spec.layout = &layout;
    plan_and_forget(&spec, 1, (uint64_t[]){16});
    layout.bits = uneven;
    spec.shape = shape_2x8;
    plan_and_forget(&spec, 1, (uint64_t[]){44});
    spec.shape = shape_2x5;
    plan_and_forget(&spec, 1, (uint64_t[]){44});
    HurrayBufferHandle least = {.byte_size = 34, .alignment = 64}; /* the last element is number 33 */
    spec.buffers = &least;
    spec.buffer_count = 1;
    hry_descriptor_unref(descriptor_must_build(&spec));
    least.byte_size = 33;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "buffers[0].byte_size");
    layout.bits = NULL;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "layout.bits");
}

static void hilbert_round_trips(void **state) {
    (void)state;
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_HILBERT);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT16, 2, shape_4x4);
    layout.order = 2;
    spec.layout = &layout;
    HurrayDescriptor *d = build_planned(&spec, 1, (uint64_t[]){32});
    assert_int_equal(d->layout.order, 2);
    hry_descriptor_unref(d);
}

static void sparse_layouts_plan_their_index_buffers(void **state) {
    (void)state;
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_COO);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x6);
    layout.nnz = 5;
    layout.is_sorted = 1;
    layout.page_size = 77; /* not COO's: left out */
    spec.layout = &layout;
    HurrayDescriptor *d = build_planned(&spec, 2, (uint64_t[]){20, 80});
    assert_int_equal(d->layout.is_sorted, 1);
    assert_int_equal(d->layout.page_size, 0);
    hry_descriptor_unref(d);
    layout.tag = HURRAY_LAYOUT_CSR;
    plan_and_forget(&spec, 3, (uint64_t[]){20, 40, 40});
    layout.tag = HURRAY_LAYOUT_CSC;
    plan_and_forget(&spec, 3, (uint64_t[]){20, 40, 56});
    spec.byte_offset = 4;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "byte_offset");
}

static void csf_and_block_tables_cannot_be_planned(void **state) {
    (void)state;
    const uint32_t order[] = {2, 0, 1}, twice[] = {2, 0, 2};
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_CSF);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 3, shape_2x3x4);
    layout.nnz = 2;
    layout.mode_order = order;
    spec.layout = &layout;
    refuse_to_plan(&spec, HURRAY_ERR_INVALID_ARGUMENT, "buffers[2].byte_size");
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_ARGUMENT, "buffers[2].byte_size");
    const HurrayBufferHandle csf[] = {{8, 64, 0, 0, 0, 0}, {16, 64, 0, 0, 0, 0}, {8, 64, 0, 0, 0, 0}, {16, 64, 0, 0, 0, 0},
                                      {8, 64, 0, 0, 0, 0}, {16, 64, 0, 0, 0, 0}, {16, 64, 0, 0, 0, 0}};
    spec.buffers = csf;
    spec.buffer_count = 7;
    HurrayDescriptor *made = descriptor_must_build(&spec), *d = descriptor_round_trip(made);
    assert_int_equal(d->layout.mode_order[0], 2);
    hry_descriptor_unref(made);
    hry_descriptor_unref(d);
    layout.mode_order = twice;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "layout.mode_order");
    layout.mode_order = NULL;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "layout.mode_order");

    const uint64_t tokens[] = {6, 2, 4};
    const HurrayBufferHandle paged[] = {{4 * 2 * 8, 64, 0, 0, 0, 0}, {12, 64, 0, 0, 0, 0}, {8, 64, 0, 0, 0, 0}};
    layout = layout_of(HURRAY_LAYOUT_BLOCK_PAGED);
    layout.page_size = 2;
    layout.num_pages = 4;
    layout.num_seqs = 1;
    layout.layer_index = HURRAY_NO_LAYER;
    spec = dense(HURRAY_TYPE_INT8, 3, tokens);
    spec.layout = &layout;
    refuse_to_plan(&spec, HURRAY_ERR_INVALID_ARGUMENT, "buffers[1].byte_size");
    spec.buffers = paged;
    spec.buffer_count = 3;
    made = descriptor_must_build(&spec), d = descriptor_round_trip(made);
    assert_int_equal(d->layout.layer_index, HURRAY_NO_LAYER);
    hry_descriptor_unref(made);
    hry_descriptor_unref(d);
}

static void a_private_layout_states_its_buffers(void **state) {
    (void)state;
    const HurrayBufferHandle two[] = {{5, 64, 0xF1, 0, 0xF2, 0}, {0, 1, 0xF1, 2, 0xF2, 0}};
    HurrayLayout layout = layout_of(0xF3);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_UINT8, 0, NULL);
    layout.private_id = 0x0102030405060708;
    layout.private_data = "abc";
    layout.private_len = 3;
    spec.layout = &layout;
    refuse_to_plan(&spec, HURRAY_ERR_INVALID_ARGUMENT, "buffers");
    spec.buffers = two;
    spec.buffer_count = 2;
    HurrayDescriptor *made = descriptor_must_build(&spec), *d = descriptor_round_trip(made);
    assert_int_equal(d->layout.private_id, 0x0102030405060708);
    assert_memory_equal(d->layout.private_data, "abc", 3);
    hry_descriptor_unref(made);
    hry_descriptor_unref(d);
    layout.private_data = NULL;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "layout.private_data");
    layout.private_data = "abc";
    layout.private_len = 3;
    spec.buffer_count = 256;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "buffer_count");
}

static void a_composite_head_has_no_buffers(void **state) {
    (void)state;
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_COMPOSITE);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x6);
    layout.rule = HURRAY_RULE_OVERLAY;
    layout.combine_op = HURRAY_COMBINE_ADD;
    layout.member_count = 3;
    spec.layout = &layout;
    HurrayDescriptor *d = build_planned(&spec, 0, NULL);
    assert_true(hry_descriptor_is_head(d));
    assert_int_equal(d->layout.member_count, 3);
    hry_descriptor_unref(d);
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    spec.composite_member = &member;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "composite_member");
}

static void a_dynamic_dimension_cannot_be_planned(void **state) {
    (void)state;
    const uint64_t shape[] = {HURRAY_DYNAMIC_DIMENSION, 4};
    const HurrayBufferHandle any = {3, 64, 0, 0, 0, 0};
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape);
    uint64_t n;
    refuse_to_plan(&spec, HURRAY_ERR_INVALID_ARGUMENT, "buffers[0].byte_size");
    spec.buffers = &any;
    spec.buffer_count = 1;
    HurrayDescriptor *d = descriptor_must_build(&spec);
    assert_true(hry_descriptor_is_dynamic(d));
    assert_false(hry_descriptor_elements(d, &n));
    hry_descriptor_unref(d);
}

/* ---- sections ---- */

static void a_private_type_takes_its_width_from_its_section(void **state) {
    (void)state;
    const uint64_t shape[] = {5};
    HurrayExtensionType type = HURRAY_EXTENSION_TYPE_INIT;
    HurrayDescriptorSpec spec = dense(0xF0, 1, shape);
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_TYPE, "element_type");
    type.bit_width = 24;
    type.packing_factor = 1;
    type.has_nan = 1; /* of an integer: left out */
    spec.extension_type = &type;
    HurrayDescriptor *d = build_planned(&spec, 1, (uint64_t[]){15});
    assert_int_equal(d->element_bits, 24);
    assert_int_equal(d->extension_type.has_nan, 0);
    hry_descriptor_unref(d);
    type.bit_width = 4;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "extension_type.packing_factor");
    type.packing_factor = 2;
    plan_and_forget(&spec, 1, (uint64_t[]){3});
    type.bit_width = 6;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "extension_type.bit_width");
    spec.element_type = HURRAY_TYPE_INT8;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_TYPE, "element_type");
}

static void each_scheme_plans_its_parameters(void **state) {
    (void)state;
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 2, shape_2x32);
    spec.quantization = &q;
    q.scheme = HURRAY_QUANT_PER_TENSOR_AFFINE;
    q.scale = 0.5f;
    q.zero_point = -3;
    q.axis = 9; /* not of this scheme: left out */
    HurrayDescriptor *d = build_planned(&spec, 1, (uint64_t[]){64});
    assert_int_equal(d->quantization.zero_point, -3);
    assert_int_equal(d->quantization.axis, 0);
    hry_descriptor_unref(d);

    q.scheme = HURRAY_QUANT_PER_CHANNEL_AFFINE;
    q.axis = 1;
    q.scale_type = HURRAY_TYPE_FLOAT32;
    q.scale_buffer = 1;
    q.zero_point_buffer = 2;
    d = build_planned(&spec, 3, (uint64_t[]){64, 128, 128});
    assert_true(d->quantization.scale == 0);
    hry_descriptor_unref(d);
    q.zero_point_buffer = 1; /* one buffer for both */
    plan_and_forget(&spec, 2, (uint64_t[]){64, 256});
    q.flags = HURRAY_QUANT_SYMMETRIC;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.zero_point_buffer");
    q.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    plan_and_forget(&spec, 2, (uint64_t[]){64, 128});

    q.scheme = HURRAY_QUANT_PER_BLOCK_AFFINE;
    q.block_size = 16;
    q.scale_type = HURRAY_TYPE_BFLOAT16;
    plan_and_forget(&spec, 2, (uint64_t[]){64, 8});
    q.flags = 0;
    q.scale_buffer = 2; /* zero points first */
    q.zero_point_buffer = 1;
    plan_and_forget(&spec, 3, (uint64_t[]){64, 16, 8});

    q.scale_buffer = 1;
    q.scheme = HURRAY_QUANT_NF4;
    spec.element_type = HURRAY_TYPE_UINT4;
    plan_and_forget(&spec, 2, (uint64_t[]){32, 16});

    q.scheme = HURRAY_QUANT_MXFP;
    spec.element_type = HURRAY_TYPE_FLOAT6_E3M2;
    plan_and_forget(&spec, 2, (uint64_t[]){48, 4});
}

static void quantization_refuses_with_the_field(void **state) {
    (void)state;
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 2, shape_2x32);
    spec.quantization = &q;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.scheme");
    q.scheme = HURRAY_QUANT_PER_TENSOR_AFFINE;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.scale");
    q.scale = 1;
    q.zero_point = 128;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.zero_point");
    q.flags = 1;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.flags");
    q.flags = 0;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_TYPE, "element_type");
    spec.element_type = HURRAY_TYPE_INT8;
    q.scheme = HURRAY_QUANT_PER_BLOCK_AFFINE;
    q.axis = 2;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.axis");
    q.axis = 0;
    q.block_size = 4;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.block_size");
    q.axis = 1;
    q.block_size = 12;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.block_size");
    q.block_size = 8;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.scale_type");
    q.scale_type = HURRAY_TYPE_FLOAT16;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.scale_buffer");
    q.scale_buffer = 1;
    q.zero_point_buffer = 7;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "quantization.zero_point_buffer");
}

static void a_shard_lies_inside_its_parent(void **state) {
    (void)state;
    uint64_t parent[] = {8, 6}, offset[] = {4, 0};
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x6);
    spec.shard = &shard;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "shard.parent_shape");
    shard.parent_shape = parent;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "shard.offset");
    shard.offset = offset;
    HurrayDescriptor *d = build_planned(&spec, 1, (uint64_t[]){96});
    assert_int_equal(d->shard.parent_shape[0], 8);
    assert_int_equal(d->shard.offset[0], 4);
    hry_descriptor_unref(d);
    offset[0] = 5;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "shard.offset");
    parent[1] = HURRAY_DYNAMIC_DIMENSION;
    offset[0] = 0;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "shard.parent_shape");
}

static void a_writer_refuses_statistics_out_of_range(void **state) {
    (void)state;
    HurrayStatistics s = HURRAY_STATISTICS_INIT;
    HurrayLayout layout = layout_of(HURRAY_LAYOUT_CSR);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x6);
    layout.nnz = 5;
    spec.layout = &layout;
    spec.statistics = &s;
    s.computed_mask = 63;
    s.nnz = 5;
    s.sparsity_ratio = 0.5;
    s.min = -1;
    s.max = s.abs_max = 2;
    s.stddev = 1;
    s.nm_n = 2;
    s.nm_m = 4;
    HurrayDescriptor *d = build_planned(&spec, 3, (uint64_t[]){20, 40, 40});
    assert_true(d->statistics.abs_max == 2);
    hry_descriptor_unref(d);
    s.nnz = 6;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "statistics.nnz");
    s.nnz = 5;
    s.sparsity_ratio = 1.5;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "statistics.sparsity_ratio");
    s.sparsity_ratio = 0;
    s.stddev = -1;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "statistics.stddev");
    s.stddev = 0;
    s.nm_n = 5;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "statistics.nm_n");
    s.nm_n = 0;
    s.has_nan = 2;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "statistics.has_nan");
    s.has_nan = 0;
    s.has_inf = 2;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "statistics.has_inf");
    s.computed_mask = 64;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "statistics.computed_mask");
    s.computed_mask = 0; /* then none of the fields means anything, and none is kept */
    s.stddev = -1;
    d = build_planned(&spec, 3, (uint64_t[]){20, 40, 40});
    assert_true(d->statistics.stddev == 0 && d->statistics.has_inf == 0);
    hry_descriptor_unref(d);
}

static void a_composite_member_has_a_role(void **state) {
    (void)state;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x6);
    member.role = HURRAY_ROLE_BASE;
    spec.composite_member = &member;
    HurrayDescriptor *d = build_planned(&spec, 1, (uint64_t[]){96});
    assert_int_equal(d->composite_member.role, HURRAY_ROLE_BASE);
    hry_descriptor_unref(d);
    member.role = 2;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "composite_member.role");
}

/* ---- the rest of the spec ---- */

static void stated_buffers_are_checked_one_by_one(void **state) {
    (void)state;
    HurrayBufferHandle handles[2] = {{96, 64, HURRAY_DEVICE_CUDA, HURRAY_SYNC_EVENT, HURRAY_MEMORY_STANDARD, 0}, {0, 1, 0, 0, 0, 0}};
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 2, shape_4x6);
    spec.buffer_count = 1;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "buffers");
    spec.buffers = handles;
    hry_descriptor_unref(descriptor_must_build(&spec));
    spec.buffer_count = 2;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "buffers[1].device_tag");
    handles[1].device_tag = HURRAY_DEVICE_CUDA;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "buffer_count");
    handles[1].memory_class = HURRAY_MEMORY_PEER;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "buffers[1].memory_class");
    handles[1].alignment = 0;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "buffers[1].alignment");
    handles[1].alignment = 3;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "buffers[1].alignment");
    spec.buffer_count = 0;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "buffer_count");
    spec.buffer_count = 1;
    handles[0].reserved = 1;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "buffers[0].reserved");
    handles[0].reserved = 0;
    handles[0].device_tag = HURRAY_DEVICE_CPU;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_SYNC_MODE, "buffers[0].sync_mode");
    handles[0].sync_mode = 0;
    spec.byte_offset = 97;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "byte_offset");
    spec.byte_offset = 1;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "buffers[0].byte_size");
}

static void header_fields_are_named(void **state) {
    (void)state;
    HurrayLayout layout = layout_of(0x41);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_FLOAT32, 65, shape_4x6);
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "rank");
    spec.rank = 2;
    spec.shape = NULL;
    descriptor_must_refuse(&spec, HURRAY_ERR_NULL_POINTER, "shape");
    spec.shape = shape_4x6;
    spec.element_type = 0;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_TYPE, "element_type");
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.layout = &layout;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "layout_tag");
    const uint64_t huge[] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
    spec = dense(HURRAY_TYPE_FLOAT32, 2, huge);
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "shape");
}

static void structs_of_another_release_are_checked(void **state) {
    (void)state;
    struct {
        HurrayDescriptorSpec spec;
        uint64_t tail;
    } newer = {HURRAY_DESCRIPTOR_SPEC_INIT, 0};
    newer.spec.struct_size = sizeof newer;
    newer.spec.element_type = HURRAY_TYPE_INT8;
    newer.spec.rank = 1;
    newer.spec.shape = shape_16;
    hry_descriptor_unref(descriptor_must_build(&newer.spec));
    newer.tail = 1;
    descriptor_must_refuse(&newer.spec, HURRAY_ERR_UNSUPPORTED, "HurrayDescriptorSpec");
    newer.spec.struct_size = 8;
    descriptor_must_refuse(&newer.spec, HURRAY_ERR_INVALID_ARGUMENT, "HurrayDescriptorSpec");
    HurrayLayout layout = {.tag = HURRAY_LAYOUT_ROW_MAJOR};
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 1, shape_16);
    spec.layout = &layout;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_ARGUMENT, "HurrayLayout");
}

static void null_arguments_are_named(void **state) {
    (void)state;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 1, shape_16);
    HurrayDescriptor *d;
    HurrayBufferHandle handle;
    HurrayError error = HURRAY_ERROR_INIT;
    size_t count = 0;
    assert_int_equal(hurray_descriptor_new(NULL, NULL, &d, &error), HURRAY_ERR_NULL_POINTER);
    assert_string_equal(error.field, "spec");
    assert_int_equal(hurray_descriptor_new(&spec, NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_string_equal(error.field, "out");
    assert_int_equal(hurray_descriptor_new(&spec, NULL, NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_plan_buffers(NULL, &handle, &count, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_plan_buffers(&spec, &handle, NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_plan_buffers(&spec, NULL, &count, &error), HURRAY_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(count, 1);
    assert_int_equal(hurray_descriptor_plan_buffers(&spec, NULL, &count, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_plan_buffers(&spec, &handle, &count, &error), HURRAY_OK);
    HurrayAllocator incomplete = HURRAY_ALLOCATOR_INIT;
    assert_int_equal(hurray_descriptor_new(&spec, &incomplete, &d, &error), HURRAY_ERR_INVALID_ARGUMENT);
}

static void the_callers_allocator_is_used_and_may_fail(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 1, shape_16);
    HurrayDescriptor *d = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    fail_alloc_init(&alloc);
    fail_alloc_arm(&alloc, 1, 0);
    assert_int_equal(hurray_descriptor_new(&spec, &alloc.allocator, &d, &error), HURRAY_ERR_NO_MEMORY);
    assert_null(d);
    assert_int_equal(hurray_descriptor_new(&spec, &alloc.allocator, &d, &error), HURRAY_OK);
    assert_int_equal(alloc.live, 1);
    hurray_descriptor_destroy(d);
    fail_alloc_assert_empty(&alloc);
}

static void a_private_payload_of_4_gib_does_not_fit(void **state) {
    (void)state;
    const HurrayBufferHandle one = {5, 64, 0, 0, 0, 0};
    HurrayLayout layout = layout_of(0xF3);
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_UINT8, 0, NULL);
    layout.private_data = "";
    layout.private_len = UINT32_MAX; /* refused before a byte of it is read */
    spec.layout = &layout;
    spec.buffers = &one;
    spec.buffer_count = 1;
    descriptor_must_refuse(&spec, HURRAY_ERR_INVALID_LAYOUT, "layout.private_len");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_that_is_null_is_row_major),
        cmocka_unit_test(a_scalar_has_one_element),
        cmocka_unit_test(planned_sizes_follow_each_width),
        cmocka_unit_test(a_byte_offset_is_planned_for),
        cmocka_unit_test(column_major_round_trips),
        cmocka_unit_test(strides_round_trip_and_may_be_negative),
        cmocka_unit_test(tiles_nest_by_level),
        cmocka_unit_test(a_writer_refuses_tiles_that_alias),
        cmocka_unit_test(morton_plans_for_all_ones_indices),
        cmocka_unit_test(hilbert_round_trips),
        cmocka_unit_test(sparse_layouts_plan_their_index_buffers),
        cmocka_unit_test(csf_and_block_tables_cannot_be_planned),
        cmocka_unit_test(a_private_layout_states_its_buffers),
        cmocka_unit_test(a_composite_head_has_no_buffers),
        cmocka_unit_test(a_dynamic_dimension_cannot_be_planned),
        cmocka_unit_test(a_private_type_takes_its_width_from_its_section),
        cmocka_unit_test(each_scheme_plans_its_parameters),
        cmocka_unit_test(quantization_refuses_with_the_field),
        cmocka_unit_test(a_shard_lies_inside_its_parent),
        cmocka_unit_test(a_writer_refuses_statistics_out_of_range),
        cmocka_unit_test(a_composite_member_has_a_role),
        cmocka_unit_test(stated_buffers_are_checked_one_by_one),
        cmocka_unit_test(header_fields_are_named),
        cmocka_unit_test(structs_of_another_release_are_checked),
        cmocka_unit_test(null_arguments_are_named),
        cmocka_unit_test(the_callers_allocator_is_used_and_may_fail),
        cmocka_unit_test(a_private_payload_of_4_gib_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
