/* Descriptor fields by number, for bindings that know no structs: a table says where each lies and when it is there. */
#include <string.h>

#include "format/descriptor.h"
#include "format/layout.h"

typedef enum Kind { KIND_NONE, KIND_U64, KIND_I64, KIND_F64, KIND_U64_ARRAY, KIND_I64_ARRAY } Kind;

/* What a field stands on. LAYOUT: `of` is the tag; SCHEME: a bit per scheme; STATISTIC: bits of the mask. */
typedef enum Part {
    PART_ALWAYS,
    PART_LAYOUT,
    PART_NNZ,
    PART_PRIVATE,
    PART_SCHEME,
    PART_SHARD,
    PART_STATISTIC,
    PART_EXTENSION,
    PART_MEMBER
} Part;

typedef struct FieldRow {
    uint16_t field;
    uint16_t offset; /* in HurrayDescriptor; of scalars */
    uint8_t width, kind, part, of;
} FieldRow;

#define AT(member, kind, part, of)                                                                                                         \
    (uint16_t) offsetof(HurrayDescriptor, member), (uint8_t)sizeof(((HurrayDescriptor *)0)->member), kind, part, of
#define ARRAY(kind, part, of) 0, 0, kind, part, of
#define SCHEMES(first) (uint8_t)(0x3E & ~((1u << (first)) - 1)) /* from `first` to 5 */
#define AFFINE_2_3 (1u << HURRAY_QUANT_PER_CHANNEL_AFFINE | 1u << HURRAY_QUANT_PER_BLOCK_AFFINE)

static const FieldRow rows[] = {
    {HURRAY_FIELD_VERSION_MINOR, AT(version_minor, KIND_U64, PART_ALWAYS, 0)},
    {HURRAY_FIELD_RANK, AT(rank, KIND_U64, PART_ALWAYS, 0)},
    {HURRAY_FIELD_SHAPE, ARRAY(KIND_U64_ARRAY, PART_ALWAYS, 0)},
    {HURRAY_FIELD_BYTE_OFFSET, AT(byte_offset, KIND_U64, PART_ALWAYS, 0)},
    {HURRAY_FIELD_ELEMENT_TYPE, AT(element_type, KIND_U64, PART_ALWAYS, 0)},
    {HURRAY_FIELD_LAYOUT_TAG, AT(layout_tag, KIND_U64, PART_ALWAYS, 0)},
    {HURRAY_FIELD_BUFFER_COUNT, AT(buffer_count, KIND_U64, PART_ALWAYS, 0)},
    {HURRAY_FIELD_BUFFER_BYTE_SIZE, ARRAY(KIND_U64_ARRAY, PART_ALWAYS, 0)},
    {HURRAY_FIELD_BUFFER_ALIGNMENT, ARRAY(KIND_U64_ARRAY, PART_ALWAYS, 0)},
    {HURRAY_FIELD_BUFFER_DEVICE_TAG, ARRAY(KIND_U64_ARRAY, PART_ALWAYS, 0)},
    {HURRAY_FIELD_BUFFER_SYNC_MODE, ARRAY(KIND_U64_ARRAY, PART_ALWAYS, 0)},
    {HURRAY_FIELD_BUFFER_MEMORY_CLASS, ARRAY(KIND_U64_ARRAY, PART_ALWAYS, 0)},
    {HURRAY_FIELD_LAYOUT_STRIDES, ARRAY(KIND_I64_ARRAY, PART_LAYOUT, HURRAY_LAYOUT_STRIDED)},
    {HURRAY_FIELD_LAYOUT_TILE_LEVELS, AT(layout.tile_count, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_TILED)},
    {HURRAY_FIELD_LAYOUT_TILE_SHAPE, ARRAY(KIND_U64_ARRAY, PART_LAYOUT, HURRAY_LAYOUT_TILED)},
    {HURRAY_FIELD_LAYOUT_BITS, ARRAY(KIND_U64_ARRAY, PART_LAYOUT, HURRAY_LAYOUT_MORTON)},
    {HURRAY_FIELD_LAYOUT_NNZ, AT(layout.nnz, KIND_U64, PART_NNZ, 0)},
    {HURRAY_FIELD_LAYOUT_IS_SORTED, AT(layout.is_sorted, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_COO)},
    {HURRAY_FIELD_LAYOUT_MODE_ORDER, ARRAY(KIND_U64_ARRAY, PART_LAYOUT, HURRAY_LAYOUT_CSF)},
    {HURRAY_FIELD_LAYOUT_PAGE_SIZE, AT(layout.page_size, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_BLOCK_PAGED)},
    {HURRAY_FIELD_LAYOUT_NUM_PAGES, AT(layout.num_pages, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_BLOCK_PAGED)},
    {HURRAY_FIELD_LAYOUT_PAGED_AXIS, AT(layout.paged_axis, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_BLOCK_PAGED)},
    {HURRAY_FIELD_LAYOUT_NUM_SEQS, AT(layout.num_seqs, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_BLOCK_PAGED)},
    {HURRAY_FIELD_LAYOUT_KV_ROLE, AT(layout.kv_role, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_BLOCK_PAGED)},
    {HURRAY_FIELD_LAYOUT_LAYER_INDEX, AT(layout.layer_index, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_BLOCK_PAGED)},
    {HURRAY_FIELD_LAYOUT_INDEX_TYPE, AT(layout.index_type, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_BLOCK_PAGED)},
    {HURRAY_FIELD_LAYOUT_RULE, AT(layout.rule, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_COMPOSITE)},
    {HURRAY_FIELD_LAYOUT_COMBINE_OP, AT(layout.combine_op, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_COMPOSITE)},
    {HURRAY_FIELD_LAYOUT_MEMBER_COUNT, AT(layout.member_count, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_COMPOSITE)},
    {HURRAY_FIELD_LAYOUT_ORDER, AT(layout.order, KIND_U64, PART_LAYOUT, HURRAY_LAYOUT_HILBERT)},
    {HURRAY_FIELD_LAYOUT_PRIVATE_ID, AT(layout.private_id, KIND_U64, PART_PRIVATE, 0)},
    {HURRAY_FIELD_QUANTIZATION_SCHEME, AT(quantization.scheme, KIND_U64, PART_SCHEME, SCHEMES(1))},
    {HURRAY_FIELD_QUANTIZATION_FLAGS, AT(quantization.flags, KIND_U64, PART_SCHEME, SCHEMES(1))},
    {HURRAY_FIELD_QUANTIZATION_AXIS, AT(quantization.axis, KIND_U64, PART_SCHEME, SCHEMES(2))},
    {HURRAY_FIELD_QUANTIZATION_BLOCK_SIZE, AT(quantization.block_size, KIND_U64, PART_SCHEME, SCHEMES(3))},
    {HURRAY_FIELD_QUANTIZATION_SCALE_BUFFER, AT(quantization.scale_buffer, KIND_U64, PART_SCHEME, SCHEMES(2))},
    {HURRAY_FIELD_QUANTIZATION_ZERO_POINT_BUFFER, AT(quantization.zero_point_buffer, KIND_U64, PART_SCHEME, AFFINE_2_3)},
    {HURRAY_FIELD_QUANTIZATION_SCALE_TYPE, AT(quantization.scale_type, KIND_U64, PART_SCHEME, AFFINE_2_3)},
    {HURRAY_FIELD_QUANTIZATION_SCALE, AT(quantization.scale, KIND_F64, PART_SCHEME, 1u << HURRAY_QUANT_PER_TENSOR_AFFINE)},
    {HURRAY_FIELD_QUANTIZATION_ZERO_POINT, AT(quantization.zero_point, KIND_I64, PART_SCHEME, 1u << HURRAY_QUANT_PER_TENSOR_AFFINE)},
    {HURRAY_FIELD_SHARD_PARENT_SHAPE, ARRAY(KIND_U64_ARRAY, PART_SHARD, 0)},
    {HURRAY_FIELD_SHARD_OFFSET, ARRAY(KIND_U64_ARRAY, PART_SHARD, 0)},
    {HURRAY_FIELD_STATISTICS_COMPUTED_MASK, AT(statistics.computed_mask, KIND_U64, PART_STATISTIC, 0)},
    {HURRAY_FIELD_STATISTICS_NNZ, AT(statistics.nnz, KIND_U64, PART_STATISTIC, HURRAY_STATISTICS_NNZ)},
    {HURRAY_FIELD_STATISTICS_SPARSITY_RATIO, AT(statistics.sparsity_ratio, KIND_F64, PART_STATISTIC, HURRAY_STATISTICS_SPARSITY)},
    {HURRAY_FIELD_STATISTICS_MIN, AT(statistics.min, KIND_F64, PART_STATISTIC, HURRAY_STATISTICS_RANGE)},
    {HURRAY_FIELD_STATISTICS_MAX, AT(statistics.max, KIND_F64, PART_STATISTIC, HURRAY_STATISTICS_RANGE)},
    {HURRAY_FIELD_STATISTICS_ABS_MAX, AT(statistics.abs_max, KIND_F64, PART_STATISTIC, HURRAY_STATISTICS_RANGE)},
    {HURRAY_FIELD_STATISTICS_MEAN, AT(statistics.mean, KIND_F64, PART_STATISTIC, HURRAY_STATISTICS_MOMENTS)},
    {HURRAY_FIELD_STATISTICS_STDDEV, AT(statistics.stddev, KIND_F64, PART_STATISTIC, HURRAY_STATISTICS_MOMENTS)},
    {HURRAY_FIELD_STATISTICS_NM_N, AT(statistics.nm_n, KIND_U64, PART_STATISTIC, HURRAY_STATISTICS_NM)},
    {HURRAY_FIELD_STATISTICS_NM_M, AT(statistics.nm_m, KIND_U64, PART_STATISTIC, HURRAY_STATISTICS_NM)},
    {HURRAY_FIELD_STATISTICS_HAS_NAN, AT(statistics.has_nan, KIND_U64, PART_STATISTIC, HURRAY_STATISTICS_SPECIALS)},
    {HURRAY_FIELD_STATISTICS_HAS_INF, AT(statistics.has_inf, KIND_U64, PART_STATISTIC, HURRAY_STATISTICS_SPECIALS)},
    {HURRAY_FIELD_EXTENSION_TYPE_BIT_WIDTH, AT(extension_type.bit_width, KIND_U64, PART_EXTENSION, 0)},
    {HURRAY_FIELD_EXTENSION_TYPE_PACKING_FACTOR, AT(extension_type.packing_factor, KIND_U64, PART_EXTENSION, 0)},
    {HURRAY_FIELD_EXTENSION_TYPE_IS_FLOAT, AT(extension_type.is_float, KIND_U64, PART_EXTENSION, 0)},
    {HURRAY_FIELD_EXTENSION_TYPE_IS_SIGNED, AT(extension_type.is_signed, KIND_U64, PART_EXTENSION, 0)},
    {HURRAY_FIELD_EXTENSION_TYPE_SIGN_BITS, AT(extension_type.sign_bits, KIND_U64, PART_EXTENSION, 0)},
    {HURRAY_FIELD_EXTENSION_TYPE_EXPONENT_BITS, AT(extension_type.exponent_bits, KIND_U64, PART_EXTENSION, 0)},
    {HURRAY_FIELD_EXTENSION_TYPE_MANTISSA_BITS, AT(extension_type.mantissa_bits, KIND_U64, PART_EXTENSION, 0)},
    {HURRAY_FIELD_EXTENSION_TYPE_EXPONENT_BIAS, AT(extension_type.exponent_bias, KIND_U64, PART_EXTENSION, 0)},
    {HURRAY_FIELD_EXTENSION_TYPE_HAS_NAN, AT(extension_type.has_nan, KIND_U64, PART_EXTENSION, 0)},
    {HURRAY_FIELD_EXTENSION_TYPE_HAS_INF, AT(extension_type.has_inf, KIND_U64, PART_EXTENSION, 0)},
    {HURRAY_FIELD_COMPOSITE_MEMBER_ROLE, AT(composite_member.role, KIND_U64, PART_MEMBER, 0)},
};

static bool is_there(const HurrayDescriptor *d, const FieldRow *row) {
    switch ((Part)row->part) {
    case PART_LAYOUT: return d->layout_tag == row->of;
    case PART_NNZ: return hry_layout_is_sparse(d->layout_tag);
    case PART_PRIVATE: return d->layout_tag >= HURRAY_PRIVATE_FIRST;
    case PART_SCHEME: return d->has_quantization && (row->of >> d->quantization.scheme & 1);
    case PART_SHARD: return d->has_shard;
    case PART_STATISTIC: return d->has_statistics && (row->of & d->statistics.computed_mask) == row->of;
    case PART_EXTENSION: return d->has_extension_type;
    case PART_MEMBER: return d->has_composite_member;
    default: return true;
    }
}

/* INVALID_ARGUMENT: no such field, or of another kind; NOT_FOUND: this descriptor has none. */
static HurrayStatus find(const HurrayDescriptor *d, HurrayDescriptorField field, Kind kind, const FieldRow **out) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].field != field) continue;
        if (rows[i].kind != kind) return HURRAY_ERR_INVALID_ARGUMENT;
        *out = &rows[i];
        return is_there(d, &rows[i]) ? HURRAY_OK : HURRAY_ERR_NOT_FOUND;
    }
    return HURRAY_ERR_INVALID_ARGUMENT;
}

static uint64_t read_unsigned(const HurrayDescriptor *d, const FieldRow *row) {
    const void *at = (const uint8_t *)d + row->offset;
    switch (row->width) {
    case 1: return *(const uint8_t *)at;
    case 2: return *(const uint16_t *)at;
    case 4: return *(const uint32_t *)at;
    default: return *(const uint64_t *)at;
    }
}

HurrayStatus hurray_descriptor_field_u64(const HurrayDescriptor *d, HurrayDescriptorField field, uint64_t *out) {
    const FieldRow *row;
    if (!d || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = find(d, field, KIND_U64, &row);
    if (status == HURRAY_OK) *out = read_unsigned(d, row);
    return status;
}

HurrayStatus hurray_descriptor_field_i64(const HurrayDescriptor *d, HurrayDescriptorField field, int64_t *out) {
    const FieldRow *row;
    if (!d || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = find(d, field, KIND_I64, &row);
    if (status == HURRAY_OK) *out = *(const int32_t *)(const void *)((const uint8_t *)d + row->offset);
    return status;
}

HurrayStatus hurray_descriptor_field_f64(const HurrayDescriptor *d, HurrayDescriptorField field, double *out) {
    const FieldRow *row;
    if (!d || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = find(d, field, KIND_F64, &row);
    if (status != HURRAY_OK) return status;
    const void *at = (const uint8_t *)d + row->offset;
    *out = row->width == sizeof(float) ? (double)*(const float *)at : *(const double *)at;
    return HURRAY_OK;
}

static size_t array_length(const HurrayDescriptor *d, HurrayDescriptorField field) {
    if (field >= HURRAY_FIELD_BUFFER_BYTE_SIZE && field <= HURRAY_FIELD_BUFFER_MEMORY_CLASS) return d->buffer_count;
    return field == HURRAY_FIELD_LAYOUT_TILE_SHAPE ? (size_t)d->layout.tile_count * d->rank : d->rank;
}

static uint64_t array_entry(const HurrayDescriptor *d, HurrayDescriptorField field, size_t i) {
    switch (field) {
    case HURRAY_FIELD_SHAPE: return d->shape[i];
    case HURRAY_FIELD_BUFFER_BYTE_SIZE: return d->buffers[i].byte_size;
    case HURRAY_FIELD_BUFFER_ALIGNMENT: return d->buffers[i].alignment;
    case HURRAY_FIELD_BUFFER_DEVICE_TAG: return d->buffers[i].device_tag;
    case HURRAY_FIELD_BUFFER_SYNC_MODE: return d->buffers[i].sync_mode;
    case HURRAY_FIELD_BUFFER_MEMORY_CLASS: return d->buffers[i].memory_class;
    case HURRAY_FIELD_LAYOUT_TILE_SHAPE: return d->layout.tiles[i / d->rank].tile_shape[i % d->rank];
    case HURRAY_FIELD_LAYOUT_BITS: return d->layout.bits[i];
    case HURRAY_FIELD_LAYOUT_MODE_ORDER: return d->layout.mode_order[i];
    case HURRAY_FIELD_SHARD_PARENT_SHAPE: return d->shard.parent_shape[i];
    default: return d->shard.offset[i];
    }
}

/* Is there room? Tells the length either way. */
static HurrayStatus make_room(const HurrayDescriptor *d, HurrayDescriptorField field, Kind kind, const void *array, size_t *len) {
    const FieldRow *row;
    HurrayStatus status = find(d, field, kind, &row);
    if (status != HURRAY_OK) return status;
    size_t room = *len, need = array_length(d, field);
    if (room >= need && need && !array) return HURRAY_ERR_NULL_POINTER;
    *len = need;
    return room < need ? HURRAY_ERR_BUFFER_TOO_SMALL : HURRAY_OK;
}

HurrayStatus hurray_descriptor_field_u64_array(const HurrayDescriptor *d, HurrayDescriptorField field, uint64_t *array, size_t *len) {
    if (!d || !len) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = make_room(d, field, KIND_U64_ARRAY, array, len);
    for (size_t i = 0; status == HURRAY_OK && i < *len; i++) array[i] = array_entry(d, field, i);
    return status;
}

HurrayStatus hurray_descriptor_field_i64_array(const HurrayDescriptor *d, HurrayDescriptorField field, int64_t *array, size_t *len) {
    if (!d || !len) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = make_room(d, field, KIND_I64_ARRAY, array, len);
    if (status == HURRAY_OK && *len) memcpy(array, d->layout.strides, *len * sizeof *array);
    return status;
}
