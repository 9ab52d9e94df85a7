#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/descriptors.h"

static const uint64_t shape_2x32[] = {2, 32}, parent[] = {4, 32}, offset[] = {2, 0};

static HurrayDescriptorSpec dense(uint8_t type, uint32_t rank, const uint64_t *shape) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    spec.element_type = type;
    spec.rank = rank;
    spec.shape = shape;
    return spec;
}

static uint64_t u64(const HurrayDescriptor *d, HurrayDescriptorField field) {
    uint64_t value = 0xDEAD;
    assert_int_equal(hurray_descriptor_field_u64(d, field, &value), HURRAY_OK);
    return value;
}

static double f64(const HurrayDescriptor *d, HurrayDescriptorField field) {
    double value = -77;
    assert_int_equal(hurray_descriptor_field_f64(d, field, &value), HURRAY_OK);
    return value;
}

static void array_is(const HurrayDescriptor *d, HurrayDescriptorField field, const uint64_t *expected, size_t count) {
    uint64_t values[64];
    size_t len = 0;
    if (count) {
        assert_int_equal(hurray_descriptor_field_u64_array(d, field, NULL, &len), HURRAY_ERR_BUFFER_TOO_SMALL);
        assert_int_equal(len, count);
        assert_int_equal(hurray_descriptor_field_u64_array(d, field, NULL, &len), HURRAY_ERR_NULL_POINTER);
    }
    len = 64;
    assert_int_equal(hurray_descriptor_field_u64_array(d, field, values, &len), HURRAY_OK);
    assert_int_equal(len, count);
    assert_memory_equal(values, expected, count * sizeof *values);
}

#define ARRAY_IS(d, field, ...) array_is(d, field, (uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void absent(const HurrayDescriptor *d, HurrayDescriptorField field) {
    uint64_t value = 7;
    assert_int_equal(hurray_descriptor_field_u64(d, field, &value), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(value, 7);
}

static HurrayDescriptor *make_quantized(void) {
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 2, shape_2x32);
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayStatistics s = HURRAY_STATISTICS_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    q.scheme = HURRAY_QUANT_PER_BLOCK_AFFINE;
    q.axis = 1;
    q.block_size = 8;
    q.scale_buffer = 1;
    q.zero_point_buffer = 2;
    q.scale_type = HURRAY_TYPE_FLOAT16;
    shard.parent_shape = parent;
    shard.offset = offset;
    s.computed_mask =
        HURRAY_STATISTICS_NNZ | HURRAY_STATISTICS_SPARSITY | HURRAY_STATISTICS_RANGE | HURRAY_STATISTICS_MOMENTS | HURRAY_STATISTICS_NM;
    s.nnz = 60;
    s.sparsity_ratio = 0.0625;
    s.min = -2;
    s.max = 3;
    s.abs_max = 3.5;
    s.mean = 0.25;
    s.stddev = 1.5;
    s.nm_n = 2;
    s.nm_m = 4;
    member.role = HURRAY_ROLE_BASE;
    spec.quantization = &q;
    spec.shard = &shard;
    spec.statistics = &s;
    spec.composite_member = &member;
    return descriptor_must_build(&spec);
}

static void header_and_buffers_are_there_by_field(void **state) {
    (void)state;
    HurrayDescriptor *d = make_quantized();
    assert_int_equal(u64(d, HURRAY_FIELD_VERSION_MINOR), 0);
    assert_int_equal(u64(d, HURRAY_FIELD_RANK), 2);
    assert_int_equal(u64(d, HURRAY_FIELD_BYTE_OFFSET), 0);
    assert_int_equal(u64(d, HURRAY_FIELD_ELEMENT_TYPE), HURRAY_TYPE_INT8);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_TAG), HURRAY_LAYOUT_ROW_MAJOR);
    assert_int_equal(u64(d, HURRAY_FIELD_BUFFER_COUNT), 3);
    ARRAY_IS(d, HURRAY_FIELD_SHAPE, 2, 32);
    ARRAY_IS(d, HURRAY_FIELD_BUFFER_BYTE_SIZE, 64, 16, 32);
    ARRAY_IS(d, HURRAY_FIELD_BUFFER_ALIGNMENT, 64, 64, 64);
    ARRAY_IS(d, HURRAY_FIELD_BUFFER_DEVICE_TAG, 0, 0, 0);
    ARRAY_IS(d, HURRAY_FIELD_BUFFER_SYNC_MODE, 0, 0, 0);
    ARRAY_IS(d, HURRAY_FIELD_BUFFER_MEMORY_CLASS, 0, 0, 0);
    hry_descriptor_unref(d);
}

static void sections_are_there_by_field(void **state) {
    (void)state;
    HurrayDescriptor *d = make_quantized();
    assert_int_equal(u64(d, HURRAY_FIELD_QUANTIZATION_SCHEME), 3);
    assert_int_equal(u64(d, HURRAY_FIELD_QUANTIZATION_FLAGS), 0);
    assert_int_equal(u64(d, HURRAY_FIELD_QUANTIZATION_AXIS), 1);
    assert_int_equal(u64(d, HURRAY_FIELD_QUANTIZATION_BLOCK_SIZE), 8);
    assert_int_equal(u64(d, HURRAY_FIELD_QUANTIZATION_SCALE_BUFFER), 1);
    assert_int_equal(u64(d, HURRAY_FIELD_QUANTIZATION_ZERO_POINT_BUFFER), 2);
    assert_int_equal(u64(d, HURRAY_FIELD_QUANTIZATION_SCALE_TYPE), HURRAY_TYPE_FLOAT16);
    ARRAY_IS(d, HURRAY_FIELD_SHARD_PARENT_SHAPE, 4, 32);
    ARRAY_IS(d, HURRAY_FIELD_SHARD_OFFSET, 2, 0);
    assert_int_equal(u64(d, HURRAY_FIELD_STATISTICS_COMPUTED_MASK), 31);
    assert_int_equal(u64(d, HURRAY_FIELD_STATISTICS_NNZ), 60);
    assert_true(f64(d, HURRAY_FIELD_STATISTICS_SPARSITY_RATIO) == 0.0625);
    assert_true(f64(d, HURRAY_FIELD_STATISTICS_MIN) == -2);
    assert_true(f64(d, HURRAY_FIELD_STATISTICS_MAX) == 3);
    assert_true(f64(d, HURRAY_FIELD_STATISTICS_ABS_MAX) == 3.5);
    assert_true(f64(d, HURRAY_FIELD_STATISTICS_MEAN) == 0.25);
    assert_true(f64(d, HURRAY_FIELD_STATISTICS_STDDEV) == 1.5);
    assert_int_equal(u64(d, HURRAY_FIELD_STATISTICS_NM_N), 2);
    assert_int_equal(u64(d, HURRAY_FIELD_STATISTICS_NM_M), 4);
    absent(d, HURRAY_FIELD_STATISTICS_HAS_NAN); /* its bit is clear */
    absent(d, HURRAY_FIELD_STATISTICS_HAS_INF);
    assert_int_equal(u64(d, HURRAY_FIELD_COMPOSITE_MEMBER_ROLE), HURRAY_ROLE_BASE);
    absent(d, HURRAY_FIELD_EXTENSION_TYPE_BIT_WIDTH);
    absent(d, HURRAY_FIELD_LAYOUT_NNZ);
    absent(d, HURRAY_FIELD_LAYOUT_PRIVATE_ID);
    hry_descriptor_unref(d);
}

static void a_field_of_another_kind_or_none_is_an_argument_error(void **state) {
    (void)state;
    HurrayDescriptor *d = make_quantized();
    uint64_t u = 0;
    int64_t i = 0;
    double f = 0;
    size_t len = 1;
    assert_int_equal(hurray_descriptor_field_u64(d, HURRAY_FIELD_SHAPE, &u), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_descriptor_field_u64(d, 0, &u), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_descriptor_field_u64(d, 9999, &u), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_descriptor_field_i64(d, HURRAY_FIELD_RANK, &i), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_descriptor_field_i64(d, HURRAY_FIELD_QUANTIZATION_ZERO_POINT, &i), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_descriptor_field_f64(d, HURRAY_FIELD_RANK, &f), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_descriptor_field_f64(d, HURRAY_FIELD_QUANTIZATION_SCALE, &f), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_descriptor_field_u64_array(d, HURRAY_FIELD_RANK, &u, &len), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_descriptor_field_u64_array(d, HURRAY_FIELD_LAYOUT_BITS, &u, &len), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_descriptor_field_i64_array(d, HURRAY_FIELD_LAYOUT_STRIDES, &i, &len), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(len, 1);
    assert_int_equal(hurray_descriptor_field_u64(NULL, HURRAY_FIELD_RANK, &u), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_field_u64(d, HURRAY_FIELD_RANK, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_field_i64(d, HURRAY_FIELD_RANK, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_field_f64(NULL, HURRAY_FIELD_RANK, &f), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_field_u64_array(d, HURRAY_FIELD_SHAPE, &u, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_field_i64_array(NULL, HURRAY_FIELD_SHAPE, &i, &len), HURRAY_ERR_NULL_POINTER);
    hry_descriptor_unref(d);
}

static void per_tensor_fields_are_numbers(void **state) {
    (void)state;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 2, shape_2x32);
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    int64_t zero = 0;
    q.scheme = HURRAY_QUANT_PER_TENSOR_AFFINE;
    q.scale = 0.125f;
    q.zero_point = -9;
    spec.quantization = &q;
    HurrayDescriptor *d = descriptor_must_build(&spec);
    assert_true(f64(d, HURRAY_FIELD_QUANTIZATION_SCALE) == 0.125);
    assert_int_equal(hurray_descriptor_field_i64(d, HURRAY_FIELD_QUANTIZATION_ZERO_POINT, &zero), HURRAY_OK);
    assert_int_equal(zero, -9);
    absent(d, HURRAY_FIELD_QUANTIZATION_AXIS);
    absent(d, HURRAY_FIELD_QUANTIZATION_BLOCK_SIZE);
    absent(d, HURRAY_FIELD_QUANTIZATION_SCALE_BUFFER);
    absent(d, HURRAY_FIELD_QUANTIZATION_ZERO_POINT_BUFFER);
    absent(d, HURRAY_FIELD_QUANTIZATION_SCALE_TYPE);
    hry_descriptor_unref(d);
}

static void layout_fields_belong_to_their_layout(void **state) {
    (void)state;
    static const uint64_t shape_4x4[] = {4, 4}, tile[] = {4, 2}, inner[] = {2, 1}, tokens[] = {6, 2, 4}, cube[] = {2, 2, 2};
    static const int64_t strides[] = {1, 4};
    static const uint32_t bits[] = {2, 3}, order[] = {1, 2, 0};
    const HurrayTileLevel tiles[] = {{.tile_shape = tile, .outer = 1, .inner = 4}, {.tile_shape = inner, .outer = 2, .inner = 1}};
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 2, shape_4x4);
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    int64_t values[2];
    size_t len = 1;
    spec.layout = &layout;

    layout.tag = HURRAY_LAYOUT_STRIDED;
    layout.strides = strides;
    HurrayDescriptor *d = descriptor_must_build(&spec);
    assert_int_equal(hurray_descriptor_field_i64_array(d, HURRAY_FIELD_LAYOUT_STRIDES, values, &len), HURRAY_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(hurray_descriptor_field_i64_array(d, HURRAY_FIELD_LAYOUT_STRIDES, values, &len), HURRAY_OK);
    assert_memory_equal(values, strides, sizeof values);
    hry_descriptor_unref(d);

    layout.tag = HURRAY_LAYOUT_TILED;
    layout.tiles = tiles;
    layout.tile_count = 2;
    d = descriptor_must_build(&spec);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_TILE_LEVELS), 2);
    ARRAY_IS(d, HURRAY_FIELD_LAYOUT_TILE_SHAPE, 4, 2, 2, 1);
    absent(d, HURRAY_FIELD_LAYOUT_ORDER);
    hry_descriptor_unref(d);

    layout.tag = HURRAY_LAYOUT_MORTON;
    layout.bits = bits;
    d = descriptor_must_build(&spec);
    ARRAY_IS(d, HURRAY_FIELD_LAYOUT_BITS, 2, 3);
    hry_descriptor_unref(d);

    layout.tag = HURRAY_LAYOUT_HILBERT;
    layout.order = 2;
    d = descriptor_must_build(&spec);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_ORDER), 2);
    hry_descriptor_unref(d);

    layout.tag = HURRAY_LAYOUT_COO;
    layout.nnz = 3;
    layout.is_sorted = 1;
    d = descriptor_must_build(&spec);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_NNZ), 3);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_IS_SORTED), 1);
    hry_descriptor_unref(d);

    layout.tag = HURRAY_LAYOUT_CSR;
    d = descriptor_must_build(&spec);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_NNZ), 3);
    absent(d, HURRAY_FIELD_LAYOUT_IS_SORTED);
    hry_descriptor_unref(d);

    layout.tag = HURRAY_LAYOUT_COMPOSITE;
    layout.rule = HURRAY_RULE_GROUP;
    layout.member_count = 12;
    d = descriptor_must_build(&spec);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_RULE), HURRAY_RULE_GROUP);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_COMBINE_OP), 0);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_MEMBER_COUNT), 12);
    array_is(d, HURRAY_FIELD_BUFFER_BYTE_SIZE, NULL, 0);
    hry_descriptor_unref(d);

    const HurrayBufferHandle buffers[] = {{64, 64, 0, 0, 0, 0}, {64, 64, 0, 0, 0, 0}, {64, 64, 0, 0, 0, 0}, {64, 64, 0, 0, 0, 0},
                                          {64, 64, 0, 0, 0, 0}, {64, 64, 0, 0, 0, 0}, {64, 64, 0, 0, 0, 0}};
    spec = dense(HURRAY_TYPE_INT8, 3, cube);
    spec.layout = &layout;
    spec.buffers = buffers;
    spec.buffer_count = 7;
    layout.tag = HURRAY_LAYOUT_CSF;
    layout.mode_order = order;
    d = descriptor_must_build(&spec);
    ARRAY_IS(d, HURRAY_FIELD_LAYOUT_MODE_ORDER, 1, 2, 0);
    hry_descriptor_unref(d);

    spec.shape = tokens;
    spec.buffer_count = 3;
    layout.tag = HURRAY_LAYOUT_BLOCK_PAGED;
    layout.page_size = 2;
    layout.num_pages = 4;
    layout.num_seqs = 5;
    layout.kv_role = HURRAY_KV_CACHE_FUSED;
    layout.layer_index = 9;
    layout.index_type = 1;
    d = descriptor_must_build(&spec);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_PAGE_SIZE), 2);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_NUM_PAGES), 4);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_PAGED_AXIS), 0);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_NUM_SEQS), 5);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_KV_ROLE), HURRAY_KV_CACHE_FUSED);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_LAYER_INDEX), 9);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_INDEX_TYPE), 1);
    hry_descriptor_unref(d);
}

static void a_private_type_and_layout_are_there_by_field(void **state) {
    (void)state;
    const HurrayBufferHandle one = {64, 64, 0, 0, 0, 0};
    HurrayDescriptorSpec spec = dense(0xF1, 0, NULL);
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayExtensionType type = HURRAY_EXTENSION_TYPE_INIT;
    layout.tag = 0xFE;
    layout.private_id = 0x77;
    type = (HurrayExtensionType){sizeof type, 8, 1, 1, 0, 1, 4, 3, 1, 0, 8};
    spec.layout = &layout;
    spec.extension_type = &type;
    spec.buffers = &one;
    spec.buffer_count = 1;
    HurrayDescriptor *d = descriptor_must_build(&spec);
    assert_int_equal(u64(d, HURRAY_FIELD_LAYOUT_PRIVATE_ID), 0x77);
    assert_int_equal(u64(d, HURRAY_FIELD_EXTENSION_TYPE_BIT_WIDTH), 8);
    assert_int_equal(u64(d, HURRAY_FIELD_EXTENSION_TYPE_PACKING_FACTOR), 1);
    assert_int_equal(u64(d, HURRAY_FIELD_EXTENSION_TYPE_IS_FLOAT), 1);
    assert_int_equal(u64(d, HURRAY_FIELD_EXTENSION_TYPE_IS_SIGNED), 0);
    assert_int_equal(u64(d, HURRAY_FIELD_EXTENSION_TYPE_SIGN_BITS), 1);
    assert_int_equal(u64(d, HURRAY_FIELD_EXTENSION_TYPE_EXPONENT_BITS), 4);
    assert_int_equal(u64(d, HURRAY_FIELD_EXTENSION_TYPE_MANTISSA_BITS), 3);
    assert_int_equal(u64(d, HURRAY_FIELD_EXTENSION_TYPE_EXPONENT_BIAS), 8);
    assert_int_equal(u64(d, HURRAY_FIELD_EXTENSION_TYPE_HAS_NAN), 1);
    assert_int_equal(u64(d, HURRAY_FIELD_EXTENSION_TYPE_HAS_INF), 0);
    array_is(d, HURRAY_FIELD_SHAPE, NULL, 0);
    HurrayExtensionType back = HURRAY_EXTENSION_TYPE_INIT;
    assert_int_equal(hurray_descriptor_extension_type(d, &back), HURRAY_OK);
    assert_memory_equal(&back, &type, sizeof back);
    hry_descriptor_unref(d);
}

/* ---- whole sections and the header's own calls ---- */

static void sections_come_back_in_the_structs_that_built_them(void **state) {
    (void)state;
    HurrayDescriptor *d = make_quantized();
    HurrayBufferHandle handle;
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayStatistics s = HURRAY_STATISTICS_INIT;
    HurrayExtensionType type = HURRAY_EXTENSION_TYPE_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    assert_int_equal(hurray_descriptor_buffer(d, 2, &handle), HURRAY_OK);
    assert_int_equal(handle.byte_size, 32);
    assert_int_equal(hurray_descriptor_buffer(d, 3, &handle), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_descriptor_layout(d, &layout), HURRAY_OK);
    assert_int_equal(layout.tag, HURRAY_LAYOUT_ROW_MAJOR);
    assert_int_equal(hurray_descriptor_quantization(d, &q), HURRAY_OK);
    assert_int_equal(q.block_size, 8);
    assert_int_equal(hurray_descriptor_shard(d, &shard), HURRAY_OK);
    assert_int_equal(shard.offset[0], 2);
    assert_int_equal(hurray_descriptor_statistics(d, &s), HURRAY_OK);
    assert_int_equal(s.nm_m, 4);
    assert_int_equal(hurray_descriptor_extension_type(d, &type), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_descriptor_composite_member(d, &member), HURRAY_OK);
    assert_int_equal(member.role, HURRAY_ROLE_BASE);
    HurrayDescriptorSpec spec = dense(d->element_type, d->rank, d->shape); /* and build the same again */
    spec.layout = &layout;
    spec.quantization = &q;
    spec.shard = &shard;
    spec.statistics = &s;
    spec.composite_member = &member;
    HurrayDescriptor *twin = descriptor_must_build(&spec);
    size_t len, twin_len;
    uint8_t *bytes = descriptor_bytes(d, &len), *twin_bytes = descriptor_bytes(twin, &twin_len);
    assert_int_equal(len, twin_len);
    assert_memory_equal(bytes, twin_bytes, len);
    free(bytes);
    free(twin_bytes);
    hry_descriptor_unref(twin);
    q.struct_size = 4;
    assert_int_equal(hurray_descriptor_quantization(d, &q), HURRAY_ERR_INVALID_ARGUMENT);
    hry_descriptor_unref(d);
}

static void a_plain_tensor_has_no_sections(void **state) {
    (void)state;
    HurrayDescriptorSpec spec = dense(HURRAY_TYPE_INT8, 2, shape_2x32);
    HurrayDescriptor *d = descriptor_must_build(&spec);
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayStatistics s = HURRAY_STATISTICS_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    assert_int_equal(hurray_descriptor_quantization(d, &q), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_descriptor_shard(d, &shard), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_descriptor_statistics(d, &s), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_descriptor_composite_member(d, &member), HURRAY_ERR_NOT_FOUND);
    absent(d, HURRAY_FIELD_QUANTIZATION_SCHEME);
    absent(d, HURRAY_FIELD_STATISTICS_COMPUTED_MASK);
    absent(d, HURRAY_FIELD_COMPOSITE_MEMBER_ROLE);
    hry_descriptor_unref(d);
}

static void short_calls_answer_the_header(void **state) {
    (void)state;
    HurrayDescriptor *d = make_quantized(), *again = NULL;
    uint32_t rank = 0, count = 0;
    uint64_t dims[2], at = 1;
    uint8_t type = 0, layout = 0;
    size_t len = 2;
    assert_int_equal(hurray_descriptor_rank(d, &rank), HURRAY_OK);
    assert_int_equal(rank, 2);
    assert_int_equal(hurray_descriptor_shape(d, dims, &len), HURRAY_OK);
    assert_int_equal(dims[1], 32);
    len = 1;
    assert_int_equal(hurray_descriptor_shape(d, dims, &len), HURRAY_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(len, 2);
    assert_int_equal(hurray_descriptor_byte_offset(d, &at), HURRAY_OK);
    assert_int_equal(at, 0);
    assert_int_equal(hurray_descriptor_element_type_tag(d, &type), HURRAY_OK);
    assert_int_equal(type, HURRAY_TYPE_INT8);
    assert_int_equal(hurray_descriptor_layout_tag(d, &layout), HURRAY_OK);
    assert_int_equal(layout, HURRAY_LAYOUT_ROW_MAJOR);
    assert_int_equal(hurray_descriptor_buffer_count(d, &count), HURRAY_OK);
    assert_int_equal(count, 3);

    len = 0;
    assert_int_equal(hurray_descriptor_encode(d, NULL, &len), HURRAY_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(hurray_descriptor_encode(d, NULL, &len), HURRAY_ERR_NULL_POINTER);
    uint8_t *bytes = malloc(len);
    assert_non_null(bytes);
    size_t less = len - 1;
    assert_int_equal(hurray_descriptor_encode(d, bytes, &less), HURRAY_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(less, len);
    assert_int_equal(hurray_descriptor_encode(d, bytes, &len), HURRAY_OK);
    assert_int_equal(hurray_descriptor_decode(bytes, len, &again), HURRAY_OK);
    assert_int_equal(hurray_descriptor_destroy(again), HURRAY_OK);
    again = NULL;
    assert_int_equal(hurray_descriptor_decode(bytes, len - 1, &again), HURRAY_ERR_TRUNCATED);
    assert_null(again);
    free(bytes);
    assert_int_equal(hurray_descriptor_destroy(d), HURRAY_OK);
}

static void null_is_refused_everywhere(void **state) {
    (void)state;
    HurrayDescriptor *d = make_quantized();
    HurrayError error = HURRAY_ERROR_INIT;
    size_t len = 0;
    uint64_t at;
    uint8_t byte;
    assert_int_equal(hurray_descriptor_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_decode(NULL, 0, &d), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_decode("", 0, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_decode_ex(NULL, 5, NULL, NULL, &d, &error), HURRAY_ERR_NULL_POINTER);
    assert_string_equal(error.field, "bytes");
    assert_int_equal(hurray_descriptor_decode_ex(NULL, 0, NULL, NULL, &d, &error), HURRAY_ERR_TRUNCATED);
    assert_int_equal(hurray_descriptor_encode(NULL, NULL, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_encode(d, NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_rank(d, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_rank(NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_shape(NULL, &at, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_byte_offset(NULL, &at), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_element_type_tag(NULL, &byte), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_layout_tag(d, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_buffer_count(d, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_buffer(d, 0, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_layout(d, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_quantization(d, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_shard(d, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_statistics(NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_extension_type(d, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_descriptor_composite_member(d, NULL), HURRAY_ERR_NULL_POINTER);
    hry_descriptor_unref(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_and_buffers_are_there_by_field),
        cmocka_unit_test(sections_are_there_by_field),
        cmocka_unit_test(a_field_of_another_kind_or_none_is_an_argument_error),
        cmocka_unit_test(per_tensor_fields_are_numbers),
        cmocka_unit_test(layout_fields_belong_to_their_layout),
        cmocka_unit_test(a_private_type_and_layout_are_there_by_field),
        cmocka_unit_test(sections_come_back_in_the_structs_that_built_them),
        cmocka_unit_test(a_plain_tensor_has_no_sections),
        cmocka_unit_test(short_calls_answer_the_header),
        cmocka_unit_test(null_is_refused_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
