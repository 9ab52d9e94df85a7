/**
 * @file
 * The bytes of the Hurray format as constants, and the fields of a descriptor by number. Included by hurray.h.
 *
 * Values are those on the wire; docs/format.md is their source: element types section 2, layouts 3, devices, sync modes and
 * memory classes 1.2, quantization 4, statistics 6, composites 7. A byte that is neither listed nor private is rejected.
 */
#ifndef HURRAY_TAGS_H
#define HURRAY_TAGS_H

#include <stdint.h>

/** A dimension that is not known: no size or address can be computed from it (1.1). */
#define HURRAY_DYNAMIC_DIMENSION UINT64_MAX
#define HURRAY_MAX_RANK 64u

/* Element types (2). */
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

/* Layouts (3). */
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

/* Types, layouts, devices and memory classes from FIRST to LAST are private (1.3). */
#define HURRAY_PRIVATE_FIRST 0xF0
#define HURRAY_PRIVATE_LAST 0xFE

/* Orders inside a tiled layout: HurrayTileLevel.outer (1 to 3) and .inner (1 to 4; TILED: the next level) (3.1). */
#define HURRAY_ORDER_ROW_MAJOR 1u
#define HURRAY_ORDER_COLUMN_MAJOR 2u
#define HURRAY_ORDER_STRIDED 3u
#define HURRAY_ORDER_TILED 4u

/* Composites: rule, combine_op (overlays), role (7). */
#define HURRAY_RULE_PARTITION 1u
#define HURRAY_RULE_OVERLAY 2u
#define HURRAY_RULE_GROUP 3u
#define HURRAY_COMBINE_REPLACE 1u
#define HURRAY_COMBINE_ADD 2u
#define HURRAY_ROLE_CORRECTION 0u
#define HURRAY_ROLE_BASE 1u

/* Block-paged: kv_role, and layer_index when there is none (3.1). */
#define HURRAY_KV_CACHE_KEY 0u
#define HURRAY_KV_CACHE_VALUE 1u
#define HURRAY_KV_CACHE_FUSED 2u
#define HURRAY_NO_LAYER UINT32_MAX

/* Device tags (1.2). */
#define HURRAY_DEVICE_CPU 0
#define HURRAY_DEVICE_CUDA 1
#define HURRAY_DEVICE_ROCM 2
#define HURRAY_DEVICE_METAL 3
#define HURRAY_DEVICE_VULKAN 4
#define HURRAY_DEVICE_WEBGPU 5
#define HURRAY_DEVICE_HEXAGON 6
#define HURRAY_DEVICE_LEVEL_ZERO 7
#define HURRAY_DEVICE_OPENCL 8

/* Sync modes (1.2): the producer waited; an event is handed over; the consumer's stream was made to wait. */
#define HURRAY_SYNC_PRODUCER_SYNCED 0
#define HURRAY_SYNC_EVENT 1
#define HURRAY_SYNC_CONSUMER_STREAM 2

/* Memory classes (1.2). */
#define HURRAY_MEMORY_STANDARD 0
#define HURRAY_MEMORY_HOST_PINNED 1
#define HURRAY_MEMORY_UNIFIED 2
#define HURRAY_MEMORY_PEER 3

/* Quantization schemes, the one flag, and zero_point_buffer of a symmetric one (4). */
#define HURRAY_QUANT_PER_TENSOR_AFFINE 1
#define HURRAY_QUANT_PER_CHANNEL_AFFINE 2
#define HURRAY_QUANT_PER_BLOCK_AFFINE 3
#define HURRAY_QUANT_NF4 4
#define HURRAY_QUANT_MXFP 5
#define HURRAY_QUANT_SYMMETRIC 1u
#define HURRAY_QUANT_NO_ZERO_POINTS UINT32_MAX

/* Bits of HurrayStatistics.computed_mask (6). */
#define HURRAY_STATISTICS_NNZ 1u
#define HURRAY_STATISTICS_SPARSITY 2u
#define HURRAY_STATISTICS_RANGE 4u
#define HURRAY_STATISTICS_MOMENTS 8u
#define HURRAY_STATISTICS_NM 16u
#define HURRAY_STATISTICS_SPECIALS 32u

/**
 * A field of a descriptor by number, for bindings that know no structs: HURRAY_FIELD_<SECTION>_<FIELD>. The comment says which
 * call of hurray_descriptor_field_u64, _i64, _f64, _u64_array, _i64_array reads it.
 */
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

#endif
