#ifndef HURRAY_H
#define HURRAY_H
#include "hurray/error.h"
HURRAY_BEGIN
#define HURRAY_C_ABI_VERSION 1000
HURRAY_API uint32_t hurray_c_abi_version(void);

#define HURRAY_AUTO 0u
#define HURRAY_ON 1u
#define HURRAY_OFF 2u

/* ---- bytes of the format (docs/format.md sections 1.2, 2, 3, 4) ---- */
#define HURRAY_DYNAMIC_DIMENSION UINT64_MAX
#define HURRAY_MAX_RANK 64u

#define HURRAY_TYPE_FLOAT16 0x01
#define HURRAY_TYPE_BFLOAT16 0x02
#define HURRAY_TYPE_FLOAT32 0x03
#define HURRAY_TYPE_FLOAT64 0x04
#define HURRAY_TYPE_INT8 0x10
#define HURRAY_TYPE_UINT8 0x11
#define HURRAY_TYPE_INT16 0x12
#define HURRAY_TYPE_UINT16 0x13
#define HURRAY_TYPE_INT32 0x14
#define HURRAY_TYPE_UINT32 0x15
#define HURRAY_TYPE_INT64 0x16
#define HURRAY_TYPE_UINT64 0x17
#define HURRAY_TYPE_BOOL 0x20
#define HURRAY_TYPE_FLOAT8_E4M3 0x40
#define HURRAY_TYPE_FLOAT8_E5M2 0x41
#define HURRAY_TYPE_FLOAT8_E8M0 0x42
#define HURRAY_TYPE_FLOAT4_E2M1 0x43
#define HURRAY_TYPE_FLOAT6_E2M3 0x44
#define HURRAY_TYPE_FLOAT6_E3M2 0x45
#define HURRAY_TYPE_FLOAT128 0x46
#define HURRAY_TYPE_INT4 0x48
#define HURRAY_TYPE_UINT4 0x49
#define HURRAY_TYPE_INT2 0x4A
#define HURRAY_TYPE_UINT2 0x4B
#define HURRAY_TYPE_COMPLEX64 0x50
#define HURRAY_TYPE_COMPLEX128 0x51

#define HURRAY_LAYOUT_ROW_MAJOR 0x01
#define HURRAY_LAYOUT_COLUMN_MAJOR 0x02
#define HURRAY_LAYOUT_STRIDED 0x03
#define HURRAY_LAYOUT_TILED 0x04
#define HURRAY_LAYOUT_MORTON 0x05
#define HURRAY_LAYOUT_COO 0x06
#define HURRAY_LAYOUT_CSR 0x07
#define HURRAY_LAYOUT_CSC 0x08
#define HURRAY_LAYOUT_CSF 0x09
#define HURRAY_LAYOUT_BLOCK_PAGED 0x0A
#define HURRAY_LAYOUT_COMPOSITE 0x0B
#define HURRAY_LAYOUT_HILBERT 0x40

#define HURRAY_PRIVATE_FIRST 0xF0
#define HURRAY_PRIVATE_LAST 0xFE

#define HURRAY_ORDER_ROW_MAJOR 1u      /* tile orders: HurrayTileLevel.outer, .inner */
#define HURRAY_ORDER_COLUMN_MAJOR 2u
#define HURRAY_ORDER_STRIDED 3u
#define HURRAY_ORDER_TILED 4u

#define HURRAY_RULE_PARTITION 1u
#define HURRAY_RULE_OVERLAY 2u
#define HURRAY_RULE_GROUP 3u
#define HURRAY_COMBINE_REPLACE 1u
#define HURRAY_COMBINE_ADD 2u
#define HURRAY_ROLE_CORRECTION 0u
#define HURRAY_ROLE_BASE 1u

#define HURRAY_KV_CACHE_KEY 0u
#define HURRAY_KV_CACHE_VALUE 1u
#define HURRAY_KV_CACHE_FUSED 2u
#define HURRAY_NO_LAYER UINT32_MAX

#define HURRAY_DEVICE_CPU 0
#define HURRAY_DEVICE_CUDA 1
#define HURRAY_DEVICE_ROCM 2
#define HURRAY_DEVICE_METAL 3
#define HURRAY_DEVICE_VULKAN 4
#define HURRAY_DEVICE_WEBGPU 5
#define HURRAY_DEVICE_HEXAGON 6
#define HURRAY_DEVICE_LEVEL_ZERO 7
#define HURRAY_DEVICE_OPENCL 8

#define HURRAY_SYNC_PRODUCER_SYNCED 0
#define HURRAY_SYNC_EVENT 1
#define HURRAY_SYNC_CONSUMER_STREAM 2

#define HURRAY_MEMORY_STANDARD 0
#define HURRAY_MEMORY_HOST_PINNED 1
#define HURRAY_MEMORY_UNIFIED 2
#define HURRAY_MEMORY_PEER 3

#define HURRAY_QUANT_PER_TENSOR_AFFINE 1
#define HURRAY_QUANT_PER_CHANNEL_AFFINE 2
#define HURRAY_QUANT_PER_BLOCK_AFFINE 3
#define HURRAY_QUANT_NF4 4
#define HURRAY_QUANT_MXFP 5
#define HURRAY_QUANT_SYMMETRIC 1u
#define HURRAY_QUANT_NO_ZERO_POINTS UINT32_MAX

#define HURRAY_STATISTICS_NNZ 1u
#define HURRAY_STATISTICS_SPARSITY 2u
#define HURRAY_STATISTICS_RANGE 4u
#define HURRAY_STATISTICS_MOMENTS 8u
#define HURRAY_STATISTICS_NM 16u
#define HURRAY_STATISTICS_SPECIALS 32u

typedef struct HurrayBuffer HurrayBuffer;
typedef struct HurrayBufferList HurrayBufferList;
typedef struct HurrayDescriptor HurrayDescriptor;
typedef struct HurrayTensor HurrayTensor;
typedef struct HurrayItem HurrayItem;
typedef struct HurrayReader HurrayReader;
typedef struct HurrayWriter HurrayWriter;
typedef struct HurrayFileReader HurrayFileReader;
typedef struct HurrayFileWriter HurrayFileWriter;
typedef struct HurrayDestinationAlloc HurrayDestinationAlloc;

/* ---- host bookkeeping memory ---- */
typedef struct HurrayAllocator {
    uint32_t struct_size;
    uint32_t reserved;
    void *ctx;
    void *(*allocate)(void *ctx, size_t size, size_t alignment);
    void (*deallocate)(void *ctx, void *memory, size_t size, size_t alignment);
} HurrayAllocator;
#define HURRAY_ALLOCATOR_INIT { .struct_size = sizeof(HurrayAllocator) }

/* ---- transport ---- */
typedef struct HurrayTransport {
    void *ctx;
    HurrayStatus (*read)(void *ctx, uint8_t *dst, size_t len, size_t *out_filled);
    HurrayStatus (*write)(void *ctx, const uint8_t *src, size_t len, size_t *out_written);
    HurrayStatus (*read_at)(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *out_filled);
    HurrayStatus (*size)(void *ctx, uint64_t *out_size);
    void (*release)(void *ctx);
    HurrayStatus (*finish)(void *ctx);
    uint32_t struct_size;
    uint32_t flags;
    uint32_t io_alignment;
    uint32_t reserved;
} HurrayTransport;
#define HURRAY_TRANSPORT_CONCURRENT 1u

typedef struct HurrayIoSlice { const void *ptr; size_t len; } HurrayIoSlice;
typedef struct HurrayMemory { void *ptr; size_t len; } HurrayMemory;

/* ---- KV ---- */
#define HURRAY_KV_STRING 1u
#define HURRAY_KV_INT64 2u
#define HURRAY_KV_UINT64 3u
#define HURRAY_KV_FLOAT64 4u
#define HURRAY_KV_BOOL 5u
#define HURRAY_KV_BYTES 6u
#define HURRAY_KV_ARRAY 7u
typedef struct HurrayKvValue {
    uint32_t kind;
    uint32_t element;
    const void *data;
    size_t data_len;
    union { int64_t i64; uint64_t u64; double f64; uint64_t boolean; };
} HurrayKvValue;
typedef struct HurrayKvEntry { const void *key; size_t key_len; HurrayKvValue value; } HurrayKvEntry;

/* ---- buffers ---- */
typedef void (*HurrayReleaseCallback)(void *data, void *context);
typedef void (*HurrayEventReleaseFn)(void *sync_handle, void *context);
typedef struct HurraySyncEventPayload {
    void *sync_handle;
    uint8_t sync_handle_device_tag;
    HurrayEventReleaseFn event_release_fn;
    void *event_release_context;
} HurraySyncEventPayload;
typedef struct HurraySyncConsumerStreamPayload {
    void *consumer_stream;
    uint8_t consumer_stream_device_tag;
} HurraySyncConsumerStreamPayload;

#define HURRAY_BUFFER_READ_ONLY 1u
#define HURRAY_BUFFER_IN_PLACE 2u
typedef struct HurrayBufferInfo {
    uint32_t struct_size;
    uint32_t flags;
    void *data;
    uint64_t byte_size;
    uint32_t alignment;
    int32_t device_index;
    uint8_t device_tag, sync_mode, memory_class, reserved[5];
    HurrayReleaseCallback release;
    void *release_context;
    HurraySyncEventPayload event;
    HurrayStatus (*order)(void *sync_handle, void *event_release_context, void *stream);
} HurrayBufferInfo;
#define HURRAY_BUFFER_INFO_INIT { .struct_size = sizeof(HurrayBufferInfo) }

HURRAY_API HurrayStatus hurray_buffer_from_ptr(void *data, uint64_t byte_size, uint32_t alignment, uint8_t device_tag,
    uint8_t sync_mode, uint8_t memory_class, HurrayReleaseCallback release, void *release_context, HurrayBuffer **out_handle);
HURRAY_API HurrayStatus hurray_buffer_new(const HurrayBufferInfo *info, const HurrayAllocator *allocator, HurrayBuffer **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_buffer_destroy(HurrayBuffer *buffer);
HURRAY_API HurrayStatus hurray_buffer_data_ptr(const HurrayBuffer *buffer, void **out_data);
HURRAY_API HurrayStatus hurray_buffer_byte_size(const HurrayBuffer *buffer, uint64_t *out);
HURRAY_API HurrayStatus hurray_buffer_alignment(const HurrayBuffer *buffer, uint32_t *out);
HURRAY_API HurrayStatus hurray_buffer_device_tag(const HurrayBuffer *buffer, uint8_t *out);
HURRAY_API HurrayStatus hurray_buffer_device_index(const HurrayBuffer *buffer, int32_t *out);
HURRAY_API HurrayStatus hurray_buffer_sync_mode(const HurrayBuffer *buffer, uint8_t *out);
HURRAY_API HurrayStatus hurray_buffer_memory_class(const HurrayBuffer *buffer, uint8_t *out);
HURRAY_API HurrayStatus hurray_buffer_flags(const HurrayBuffer *buffer, uint32_t *out);
HURRAY_API HurrayStatus hurray_buffer_order(const HurrayBuffer *buffer, void *stream);
HURRAY_API HurrayStatus hurray_buffer_take_event(HurrayBuffer *buffer, HurraySyncEventPayload *out);
HURRAY_API HurrayStatus hurray_buffer_handoff_producer_synced(const HurrayBuffer *buffer);
HURRAY_API HurrayStatus hurray_buffer_handoff_event(const HurrayBuffer *buffer, const HurraySyncEventPayload *payload);
HURRAY_API HurrayStatus hurray_buffer_handoff_consumer_stream(const HurrayBuffer *buffer, const HurraySyncConsumerStreamPayload *payload);
HURRAY_API HurrayStatus hurray_buffer_list_new(uint64_t capacity, HurrayBufferList **out_list);
HURRAY_API HurrayStatus hurray_buffer_list_push(HurrayBufferList *list, HurrayBuffer *buffer);
HURRAY_API HurrayStatus hurray_buffer_list_len(const HurrayBufferList *list, uint64_t *out_len);
HURRAY_API HurrayStatus hurray_buffer_list_get(const HurrayBufferList *list, uint64_t index, HurrayBuffer **out_buffer);
HURRAY_API HurrayStatus hurray_buffer_list_destroy(HurrayBufferList **list);

/* ---- descriptors ---- */
HURRAY_API HurrayStatus hurray_descriptor_decode(const void *bytes, size_t len, HurrayDescriptor **out_handle);
HURRAY_API HurrayStatus hurray_descriptor_decode_ex(const void *bytes, size_t len, const HurrayAllocator *allocator, size_t *out_used, HurrayDescriptor **out_handle, HurrayError *error);
HURRAY_API HurrayStatus hurray_descriptor_encode(const HurrayDescriptor *handle, void *dst, size_t *len);
HURRAY_API HurrayStatus hurray_descriptor_destroy(HurrayDescriptor *handle);
HURRAY_API HurrayStatus hurray_descriptor_rank(const HurrayDescriptor *handle, uint32_t *out_rank);
HURRAY_API HurrayStatus hurray_descriptor_shape(const HurrayDescriptor *handle, uint64_t *out_dims, size_t *out_rank);
HURRAY_API HurrayStatus hurray_descriptor_byte_offset(const HurrayDescriptor *handle, uint64_t *out);
HURRAY_API HurrayStatus hurray_descriptor_element_type_tag(const HurrayDescriptor *handle, uint8_t *out);
HURRAY_API HurrayStatus hurray_descriptor_layout_tag(const HurrayDescriptor *handle, uint8_t *out);
HURRAY_API HurrayStatus hurray_descriptor_buffer_count(const HurrayDescriptor *handle, uint32_t *out);
/* Fields by name, for bindings that know no structs: HURRAY_FIELD_<SECTION>_<FIELD>. */
typedef uint32_t HurrayDescriptorField;
#define HURRAY_FIELD_VERSION_MINOR 1u                     /* u64 */
#define HURRAY_FIELD_RANK 2u                              /* u64 */
#define HURRAY_FIELD_SHAPE 3u                             /* u64 array */
#define HURRAY_FIELD_BYTE_OFFSET 4u                       /* u64 */
#define HURRAY_FIELD_ELEMENT_TYPE 5u                      /* u64 */
#define HURRAY_FIELD_LAYOUT_TAG 6u                        /* u64 */
#define HURRAY_FIELD_BUFFER_COUNT 7u                      /* u64 */
#define HURRAY_FIELD_BUFFER_BYTE_SIZE 8u                  /* u64 array, one per buffer */
#define HURRAY_FIELD_BUFFER_ALIGNMENT 9u                  /* u64 array */
#define HURRAY_FIELD_BUFFER_DEVICE_TAG 10u                /* u64 array */
#define HURRAY_FIELD_BUFFER_SYNC_MODE 11u                 /* u64 array */
#define HURRAY_FIELD_BUFFER_MEMORY_CLASS 12u              /* u64 array */
#define HURRAY_FIELD_LAYOUT_STRIDES 20u                   /* i64 array */
#define HURRAY_FIELD_LAYOUT_TILE_LEVELS 21u               /* u64 */
#define HURRAY_FIELD_LAYOUT_TILE_SHAPE 22u                /* u64 array, levels x rank */
#define HURRAY_FIELD_LAYOUT_BITS 23u                      /* u64 array */
#define HURRAY_FIELD_LAYOUT_NNZ 24u                       /* u64 */
#define HURRAY_FIELD_LAYOUT_IS_SORTED 25u                 /* u64 */
#define HURRAY_FIELD_LAYOUT_MODE_ORDER 26u                /* u64 array */
#define HURRAY_FIELD_LAYOUT_PAGE_SIZE 27u                 /* u64 */
#define HURRAY_FIELD_LAYOUT_NUM_PAGES 28u                 /* u64 */
#define HURRAY_FIELD_LAYOUT_PAGED_AXIS 29u                /* u64 */
#define HURRAY_FIELD_LAYOUT_NUM_SEQS 30u                  /* u64 */
#define HURRAY_FIELD_LAYOUT_KV_ROLE 31u                   /* u64 */
#define HURRAY_FIELD_LAYOUT_LAYER_INDEX 32u               /* u64 */
#define HURRAY_FIELD_LAYOUT_INDEX_TYPE 33u                /* u64 */
#define HURRAY_FIELD_LAYOUT_RULE 34u                      /* u64 */
#define HURRAY_FIELD_LAYOUT_COMBINE_OP 35u                /* u64 */
#define HURRAY_FIELD_LAYOUT_MEMBER_COUNT 36u              /* u64 */
#define HURRAY_FIELD_LAYOUT_ORDER 37u                     /* u64 */
#define HURRAY_FIELD_LAYOUT_PRIVATE_ID 38u                /* u64 */
#define HURRAY_FIELD_QUANTIZATION_SCHEME 50u              /* u64 */
#define HURRAY_FIELD_QUANTIZATION_FLAGS 51u               /* u64 */
#define HURRAY_FIELD_QUANTIZATION_AXIS 52u                /* u64 */
#define HURRAY_FIELD_QUANTIZATION_BLOCK_SIZE 53u          /* u64 */
#define HURRAY_FIELD_QUANTIZATION_SCALE_BUFFER 54u        /* u64 */
#define HURRAY_FIELD_QUANTIZATION_ZERO_POINT_BUFFER 55u   /* u64 */
#define HURRAY_FIELD_QUANTIZATION_SCALE_TYPE 56u          /* u64 */
#define HURRAY_FIELD_QUANTIZATION_SCALE 57u               /* f64 */
#define HURRAY_FIELD_QUANTIZATION_ZERO_POINT 58u          /* i64 */
#define HURRAY_FIELD_SHARD_PARENT_SHAPE 70u               /* u64 array */
#define HURRAY_FIELD_SHARD_OFFSET 71u                     /* u64 array */
#define HURRAY_FIELD_STATISTICS_COMPUTED_MASK 80u         /* u64 */
#define HURRAY_FIELD_STATISTICS_NNZ 81u                   /* u64 */
#define HURRAY_FIELD_STATISTICS_SPARSITY_RATIO 82u        /* f64 */
#define HURRAY_FIELD_STATISTICS_MIN 83u                   /* f64 */
#define HURRAY_FIELD_STATISTICS_MAX 84u                   /* f64 */
#define HURRAY_FIELD_STATISTICS_ABS_MAX 85u               /* f64 */
#define HURRAY_FIELD_STATISTICS_MEAN 86u                  /* f64 */
#define HURRAY_FIELD_STATISTICS_STDDEV 87u                /* f64 */
#define HURRAY_FIELD_STATISTICS_NM_N 88u                  /* u64 */
#define HURRAY_FIELD_STATISTICS_NM_M 89u                  /* u64 */
#define HURRAY_FIELD_STATISTICS_HAS_NAN 90u               /* u64 */
#define HURRAY_FIELD_STATISTICS_HAS_INF 91u               /* u64 */
#define HURRAY_FIELD_EXTENSION_TYPE_BIT_WIDTH 100u        /* u64 */
#define HURRAY_FIELD_EXTENSION_TYPE_PACKING_FACTOR 101u   /* u64 */
#define HURRAY_FIELD_EXTENSION_TYPE_IS_FLOAT 102u         /* u64 */
#define HURRAY_FIELD_EXTENSION_TYPE_IS_SIGNED 103u        /* u64 */
#define HURRAY_FIELD_EXTENSION_TYPE_SIGN_BITS 104u        /* u64 */
#define HURRAY_FIELD_EXTENSION_TYPE_EXPONENT_BITS 105u    /* u64 */
#define HURRAY_FIELD_EXTENSION_TYPE_MANTISSA_BITS 106u    /* u64 */
#define HURRAY_FIELD_EXTENSION_TYPE_EXPONENT_BIAS 107u    /* u64 */
#define HURRAY_FIELD_EXTENSION_TYPE_HAS_NAN 108u          /* u64 */
#define HURRAY_FIELD_EXTENSION_TYPE_HAS_INF 109u          /* u64 */
#define HURRAY_FIELD_COMPOSITE_MEMBER_ROLE 120u           /* u64 */
HURRAY_API HurrayStatus hurray_descriptor_field_u64(const HurrayDescriptor *, HurrayDescriptorField, uint64_t *);
HURRAY_API HurrayStatus hurray_descriptor_field_i64(const HurrayDescriptor *, HurrayDescriptorField, int64_t *);
HURRAY_API HurrayStatus hurray_descriptor_field_f64(const HurrayDescriptor *, HurrayDescriptorField, double *);
HURRAY_API HurrayStatus hurray_descriptor_field_u64_array(const HurrayDescriptor *, HurrayDescriptorField, uint64_t *, size_t *);
HURRAY_API HurrayStatus hurray_descriptor_field_i64_array(const HurrayDescriptor *, HurrayDescriptorField, int64_t *, size_t *);

typedef struct HurrayBufferHandle {   /* the 16 bytes of the format, in host order */
    uint64_t byte_size; uint32_t alignment; uint8_t device_tag, sync_mode, memory_class, reserved;
} HurrayBufferHandle;
typedef struct HurrayTileLevel {
    const uint64_t *tile_shape; const int64_t *outer_strides, *inner_strides; uint8_t outer, inner, reserved[6];
} HurrayTileLevel;
typedef struct HurrayLayout {
    uint32_t struct_size; uint8_t tag, is_sorted, rule, combine_op;
    uint64_t nnz;
    const int64_t *strides;
    const HurrayTileLevel *tiles; uint32_t tile_count;
    uint32_t order;
    const uint32_t *bits, *mode_order;
    uint64_t num_pages; uint32_t page_size, paged_axis, num_seqs, layer_index; uint8_t kv_role, index_type, reserved[2];
    uint32_t member_count;
    uint64_t private_id; const void *private_data; uint32_t private_len;
} HurrayLayout;
#define HURRAY_LAYOUT_INIT { .struct_size = sizeof(HurrayLayout) }
typedef struct HurrayQuantization {
    uint32_t struct_size; uint8_t scheme, scale_type; uint16_t flags;
    uint32_t axis, block_size, scale_buffer, zero_point_buffer;
    float scale; int32_t zero_point;
} HurrayQuantization;
#define HURRAY_QUANTIZATION_INIT { .struct_size = sizeof(HurrayQuantization) }
typedef struct HurrayStatistics {
    uint32_t struct_size, computed_mask;
    uint64_t nnz; double sparsity_ratio, min, max, abs_max, mean, stddev; uint8_t nm_n, nm_m, has_nan, has_inf;
} HurrayStatistics;
#define HURRAY_STATISTICS_INIT { .struct_size = sizeof(HurrayStatistics) }
typedef struct HurrayExtensionType {
    uint32_t struct_size, bit_width; uint8_t packing_factor, is_float, is_signed, sign_bits, exponent_bits, mantissa_bits, has_nan, has_inf; uint32_t exponent_bias;
} HurrayExtensionType;
#define HURRAY_EXTENSION_TYPE_INIT { .struct_size = sizeof(HurrayExtensionType) }
typedef struct HurrayShard { uint32_t struct_size, reserved; const uint64_t *parent_shape, *offset; } HurrayShard;
#define HURRAY_SHARD_INIT { .struct_size = sizeof(HurrayShard) }
typedef struct HurrayCompositeMember { uint32_t struct_size; uint8_t role, reserved[3]; } HurrayCompositeMember;
#define HURRAY_COMPOSITE_MEMBER_INIT { .struct_size = sizeof(HurrayCompositeMember) }
typedef struct HurrayDescriptorSpec {
    uint32_t struct_size;
    uint32_t rank;
    const uint64_t *shape;
    uint64_t byte_offset;
    uint8_t element_type, reserved[3];
    uint32_t buffer_count;
    const HurrayBufferHandle *buffers;
    const HurrayLayout *layout;
    const HurrayQuantization *quantization;
    const HurrayShard *shard;
    const HurrayStatistics *statistics;
    const HurrayExtensionType *extension_type;
    const HurrayCompositeMember *composite_member;
} HurrayDescriptorSpec;
#define HURRAY_DESCRIPTOR_SPEC_INIT { .struct_size = sizeof(HurrayDescriptorSpec) }
HURRAY_API HurrayStatus hurray_descriptor_new(const HurrayDescriptorSpec *spec, const HurrayAllocator *allocator, HurrayDescriptor **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_descriptor_plan_buffers(const HurrayDescriptorSpec *spec, HurrayBufferHandle *out, size_t *count, HurrayError *error);
HURRAY_API HurrayStatus hurray_descriptor_buffer(const HurrayDescriptor *d, uint32_t i, HurrayBufferHandle *out);
HURRAY_API HurrayStatus hurray_descriptor_layout(const HurrayDescriptor *d, HurrayLayout *out);
HURRAY_API HurrayStatus hurray_descriptor_quantization(const HurrayDescriptor *d, HurrayQuantization *out);
HURRAY_API HurrayStatus hurray_descriptor_shard(const HurrayDescriptor *d, HurrayShard *out);
HURRAY_API HurrayStatus hurray_descriptor_statistics(const HurrayDescriptor *d, HurrayStatistics *out);
HURRAY_API HurrayStatus hurray_descriptor_extension_type(const HurrayDescriptor *d, HurrayExtensionType *out);
HURRAY_API HurrayStatus hurray_descriptor_composite_member(const HurrayDescriptor *d, HurrayCompositeMember *out);

/* ---- tensors, items ---- */
HURRAY_API HurrayStatus hurray_tensor_new(HurrayDescriptor *descriptor, HurrayBufferList *buffers, const HurrayAllocator *allocator, HurrayTensor **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_tensor_descriptor(const HurrayTensor *tensor, const HurrayDescriptor **out);
HURRAY_API HurrayStatus hurray_tensor_buffers(const HurrayTensor *tensor, HurrayBufferList **out);
HURRAY_API HurrayStatus hurray_tensor_destroy(HurrayTensor **tensor);

#define HURRAY_NODE_TENSOR 0u
#define HURRAY_NODE_COMPOSITE 1u
typedef struct HurrayCompositeNode {
    uint32_t kind, member_count;
    const void *name; size_t name_len;
    const HurrayDescriptor *descriptor;
    const HurrayIoSlice *slices; size_t slice_count;
    uint64_t reserved[2];
} HurrayCompositeNode;
typedef struct HurrayItemNode {
    uint32_t kind, member_count;
    const uint8_t *name; size_t name_len;
    HurrayTensor *tensor;
    uint64_t parent;
    uint64_t reserved[2];
} HurrayItemNode;
HURRAY_API HurrayStatus hurray_item_node_count(const HurrayItem *item, uint64_t *out);
HURRAY_API HurrayStatus hurray_item_node(const HurrayItem *item, uint64_t i, HurrayItemNode *out);
HURRAY_API HurrayStatus hurray_item_take_tensor(HurrayItem *item, uint64_t i, HurrayTensor **out);
HURRAY_API HurrayStatus hurray_item_destroy(HurrayItem **item);

/* ---- files ---- */
#define HURRAY_READ_CROSS_MACHINE 2u
#define HURRAY_READ_NO_PRIVATE 4u
typedef struct HurrayFileReaderOptions {
    uint32_t struct_size, flags, verify_data, max_composite_depth;
    uint64_t max_tensors, max_index_bytes, max_kv_bytes, max_descriptor_bytes, max_tensor_bytes;
    const HurrayAllocator *allocator;
    const HurrayDestinationAlloc *destination;
    const void *label; size_t label_len;
} HurrayFileReaderOptions;
#define HURRAY_FILE_READER_OPTIONS_INIT { .struct_size = sizeof(HurrayFileReaderOptions) }
#define HURRAY_VERIFY_NONE 0u
#define HURRAY_VERIFY_STORED 1u
#define HURRAY_VERIFY_REQUIRED 2u
#define HURRAY_FORMAT_UNKNOWN 0u
#define HURRAY_FORMAT_HRRY 1u
#define HURRAY_FORMAT_STREAM 2u
#define HURRAY_FORMAT_SAFETENSORS 3u
#define HURRAY_FORMAT_GGUF 4u
#define HURRAY_FORMAT_NPZ 5u
#define HURRAY_FORMAT_NPY 6u
typedef struct HurraySourceInfo {
    uint32_t struct_size, format; uint8_t major, minor, reserved[2]; uint32_t flags, data_buffer_alignment; uint64_t byte_size; const uint8_t *label; size_t label_len;
} HurraySourceInfo;
#define HURRAY_SOURCE_INFO_INIT { .struct_size = sizeof(HurraySourceInfo) }
typedef struct HurrayTensorInfo {
    uint32_t struct_size, source_index;
    uint64_t index, parent;
    const uint8_t *name; size_t name_len;
    const HurrayDescriptor *descriptor;
    uint64_t descriptor_offset, data_offset, data_length;
    const uint64_t *buffer_offsets; uint32_t buffer_count, member_count;
    const HurrayError *fault;
} HurrayTensorInfo;
#define HURRAY_TENSOR_INFO_INIT { .struct_size = sizeof(HurrayTensorInfo) }
HURRAY_API HurrayStatus hurray_file_reader_new(const HurrayTransport *transport, HurrayFileReader **out);
HURRAY_API HurrayStatus hurray_file_reader_new_ex(const HurrayTransport *transport, const HurrayFileReaderOptions *options, HurrayFileReader **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_file_reader_clone(HurrayFileReader *reader, HurrayFileReader **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_file_reader_tensor_count(const HurrayFileReader *reader, uint64_t *out);
HURRAY_API HurrayStatus hurray_file_reader_tensor_name(const HurrayFileReader *reader, uint64_t i, const uint8_t **name, size_t *len);
HURRAY_API HurrayStatus hurray_file_reader_find(const HurrayFileReader *reader, const void *name, size_t len, uint64_t *i);
HURRAY_API HurrayStatus hurray_file_reader_tensor_info(HurrayFileReader *reader, uint64_t i, HurrayTensorInfo *out);
HURRAY_API HurrayStatus hurray_file_reader_info(const HurrayFileReader *reader, HurraySourceInfo *out);
HURRAY_API HurrayStatus hurray_file_reader_read_bytes(HurrayFileReader *reader, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len);
HURRAY_API HurrayStatus hurray_file_reader_read_descriptor(HurrayFileReader *reader, const void *name, size_t len, HurrayDescriptor **out);
HURRAY_API HurrayStatus hurray_file_reader_read_tensor(HurrayFileReader *reader, const void *name, size_t len, HurrayTensor **out);
HURRAY_API HurrayStatus hurray_file_reader_read_into(HurrayFileReader *reader, const void *name, size_t len, const HurrayMemory *dst, size_t count);
HURRAY_API HurrayStatus hurray_file_reader_read_composite(HurrayFileReader *reader, const void *name, size_t len, HurrayItem **out);
HURRAY_API HurrayStatus hurray_file_reader_kv_count(const HurrayFileReader *reader, uint64_t *out);
HURRAY_API HurrayStatus hurray_file_reader_kv_entry(const HurrayFileReader *reader, uint64_t i, HurrayKvEntry *out);
HURRAY_API HurrayStatus hurray_file_reader_kv_find(const HurrayFileReader *reader, const void *key, size_t len, HurrayKvEntry *out);
HURRAY_API const HurrayError *hurray_file_reader_last_error(const HurrayFileReader *reader);
HURRAY_API HurrayStatus hurray_file_reader_destroy(HurrayFileReader **reader);

#define HURRAY_WRITE_SORTED_INDEX 1u
#define HURRAY_WRITE_NO_CHECKSUMS 2u
#define HURRAY_WRITE_CROSS_MACHINE 4u
typedef struct HurrayFileWriterOptions {
    uint32_t struct_size, flags, data_buffer_alignment, reserved;
    const HurrayAllocator *allocator;
    const void *label; size_t label_len;
} HurrayFileWriterOptions;
#define HURRAY_FILE_WRITER_OPTIONS_INIT { .struct_size = sizeof(HurrayFileWriterOptions) }
HURRAY_API HurrayStatus hurray_file_writer_new(const HurrayTransport *transport, const HurrayFileWriterOptions *options, HurrayFileWriter **out);
HURRAY_API HurrayStatus hurray_file_writer_new_ex(const HurrayTransport *transport, const HurrayFileWriterOptions *options, HurrayFileWriter **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_file_writer_write_tensor(HurrayFileWriter *writer, const void *name, size_t name_len, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count);
HURRAY_API HurrayStatus hurray_file_writer_write_composite(HurrayFileWriter *writer, const HurrayCompositeNode *nodes, size_t count);
HURRAY_API HurrayStatus hurray_file_writer_begin_tensor(HurrayFileWriter *writer, const void *name, size_t name_len, const HurrayDescriptor *descriptor);
HURRAY_API HurrayStatus hurray_file_writer_append(HurrayFileWriter *writer, const void *bytes, size_t len);
HURRAY_API HurrayStatus hurray_file_writer_end_tensor(HurrayFileWriter *writer);
HURRAY_API HurrayStatus hurray_file_writer_finish(HurrayFileWriter *writer, const HurrayKvEntry *kv, size_t kv_count);
HURRAY_API const HurrayError *hurray_file_writer_last_error(const HurrayFileWriter *writer);
HURRAY_API HurrayStatus hurray_file_writer_destroy(HurrayFileWriter **writer);

/* ---- streams ---- */
typedef struct HurrayReaderOptions {
    uint32_t struct_size, flags, max_composite_depth, reserved;
    uint64_t max_descriptor_bytes, max_buffer_bytes, max_tensor_bytes;
    const HurrayAllocator *allocator;
    const HurrayDestinationAlloc *destination;
    const void *label; size_t label_len;
} HurrayReaderOptions;
#define HURRAY_READER_OPTIONS_INIT { .struct_size = sizeof(HurrayReaderOptions) }
typedef struct HurrayWriterOptions {
    uint32_t struct_size, flags;
    const HurrayAllocator *allocator;
    const void *label; size_t label_len;
} HurrayWriterOptions;
#define HURRAY_WRITER_OPTIONS_INIT { .struct_size = sizeof(HurrayWriterOptions) }
HURRAY_API HurrayStatus hurray_reader_new(const HurrayTransport *transport, const HurrayReaderOptions *options, HurrayReader **out);
HURRAY_API HurrayStatus hurray_reader_new_ex(const HurrayTransport *transport, const HurrayReaderOptions *options, HurrayReader **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_reader_next_tensor(HurrayReader *reader, HurrayTensor **out);
HURRAY_API HurrayStatus hurray_reader_next_item(HurrayReader *reader, HurrayItem **out);
HURRAY_API const HurrayError *hurray_reader_last_error(const HurrayReader *reader);
HURRAY_API HurrayStatus hurray_reader_destroy(HurrayReader **reader);
HURRAY_API HurrayStatus hurray_writer_new(const HurrayTransport *transport, const HurrayWriterOptions *options, HurrayWriter **out);
HURRAY_API HurrayStatus hurray_writer_new_ex(const HurrayTransport *transport, const HurrayWriterOptions *options, HurrayWriter **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_writer_write_tensor(HurrayWriter *writer, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count);
HURRAY_API HurrayStatus hurray_writer_write_composite(HurrayWriter *writer, const HurrayCompositeNode *nodes, size_t count);
HURRAY_API HurrayStatus hurray_writer_begin_tensor(HurrayWriter *writer, const HurrayDescriptor *descriptor);
HURRAY_API HurrayStatus hurray_writer_append(HurrayWriter *writer, const void *bytes, size_t len);
HURRAY_API HurrayStatus hurray_writer_end_tensor(HurrayWriter *writer);
HURRAY_API HurrayStatus hurray_writer_finish(HurrayWriter *writer);
HURRAY_API const HurrayError *hurray_writer_last_error(const HurrayWriter *writer);
HURRAY_API HurrayStatus hurray_writer_destroy(HurrayWriter **writer);
HURRAY_END
#endif
