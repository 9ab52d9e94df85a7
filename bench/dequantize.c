/* How fast the dense view decodes: GB of float32 (or of own bits) made a second, one thread, best of several runs.
 * bench/dequantize_peer.py does the same for the GGML types with gguf and numpy. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hurray.h"
#include "hurray/dense.h"

#define ROWS 4096u
#define COLUMNS 4096u
#define RUNS 7

static HurrayError error = HURRAY_ERROR_INIT;

static void need(HurrayStatus status, const char *what) {
    if (status == HURRAY_OK) return;
    fprintf(stderr, "%s: %s %s\n", what, hurray_status_name(status), error.message);
    exit(1);
}

/* Time of this thread's processor, not of the clock: the machine may be busy. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void let_go(void *data, void *context) {
    (void)context;
    free(data);
}

typedef struct Case {
    const char *name;
    uint8_t type, layout, scheme, scale_type, view;
    uint32_t axis, block_size;
    uint32_t ggml, block_elements, block_bytes;
} Case;

static const uint64_t shape[] = {ROWS, COLUMNS};

/* Buffers of small repeating numbers: no infinities, no invalid scales. */
static HurrayTensor *make(const Case *c) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    HurrayBufferHandle handles[4];
    HurrayDescriptor *descriptor;
    HurrayTensor *tensor;
    HurrayBufferList *list;
    size_t count = 4;
    int64_t strides[] = {1, ROWS};
    uint64_t tile[] = {64, 64};
    uint32_t data[] = {c->ggml, c->block_elements, c->block_bytes};
    HurrayTileLevel level = {.tile_shape = tile, .outer = HURRAY_ORDER_ROW_MAJOR, .inner = HURRAY_ORDER_ROW_MAJOR};
    memset(handles, 0, sizeof handles);
    layout.tag = c->layout;
    layout.strides = strides;
    layout.order = 12;
    if (c->layout == HURRAY_LAYOUT_TILED) {
        layout.tiles = &level;
        layout.tile_count = 1;
    }
    if (c->ggml) {
        layout.private_id = UINT64_C(0x314B4C424C4D4747);
        layout.private_data = data;
        layout.private_len = sizeof data;
    }
    q.scheme = c->scheme;
    q.scale_type = c->scale_type;
    q.axis = c->axis;
    q.block_size = c->block_size;
    q.scale = .5f;
    q.scale_buffer = 1;
    q.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    if (c->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE || c->scheme == HURRAY_QUANT_PER_BLOCK_AFFINE) q.flags = HURRAY_QUANT_SYMMETRIC;
    spec.rank = 2;
    spec.shape = shape;
    spec.element_type = c->type;
    spec.layout = &layout;
    if (c->scheme) spec.quantization = &q;
    if (c->ggml) {
        handles[0].byte_size = (uint64_t)ROWS * COLUMNS / c->block_elements * c->block_bytes;
        handles[0].alignment = 64;
        count = 1;
    } else {
        need(hurray_descriptor_plan_buffers(&spec, handles, &count, &error), c->name);
    }
    spec.buffers = handles;
    spec.buffer_count = (uint32_t)count;
    need(hurray_descriptor_new(&spec, NULL, &descriptor, &error), c->name);
    need(hurray_buffer_list_new(count, &list), c->name);
    for (size_t i = 0; i < count; i++) {
        HurrayBuffer *buffer;
        uint64_t size = (handles[i].byte_size + 63) / 64 * 64;
        uint8_t *bytes = aligned_alloc(64, size);
        if (!bytes) exit(1);
        for (uint64_t k = 0; k < size; k++) bytes[k] = (uint8_t)(k % 61 + 1);
        need(hurray_buffer_from_ptr(bytes, handles[i].byte_size, 64, HURRAY_DEVICE_CPU, HURRAY_SYNC_PRODUCER_SYNCED, HURRAY_MEMORY_STANDARD,
                                    let_go, NULL, &buffer),
             c->name);
        need(hurray_buffer_list_push(list, buffer), c->name);
    }
    need(hurray_tensor_new(descriptor, list, NULL, &tensor, &error), c->name);
    return tensor;
}

static void measure(const Case *c) {
    HurrayTensor *tensor = make(c);
    const HurrayDescriptor *descriptor;
    uint64_t bytes;
    double best = 1e9;
    need(hurray_tensor_descriptor(tensor, &descriptor), c->name);
    need(hurray_dense_size(descriptor, c->view, &bytes, &error), c->name);
    void *dst = aligned_alloc(64, bytes);
    if (!dst) exit(1);
    memset(dst, 0, bytes);
    for (int run = 0; run < RUNS; run++) {
        double start = now();
        need(hurray_tensor_dense(tensor, c->view, dst, bytes, &error), c->name);
        double taken = now() - start;
        if (taken < best) best = taken;
    }
    printf("%-40s %7.2f GB/s out  %8.1f M elements/s\n", c->name, (double)bytes / best / 1e9, (double)ROWS * COLUMNS / best / 1e6);
    fflush(stdout);
    free(dst);
    hurray_tensor_destroy(&tensor);
}

#define PLAIN(name, type)                                                                                                                  \
    { name, type, HURRAY_LAYOUT_ROW_MAJOR, 0, 0, HURRAY_TYPE_FLOAT32, 0, 0, 0, 0, 0 }
#define ORDER(name, type, layout, view)                                                                                                    \
    { name, type, layout, 0, 0, view, 0, 0, 0, 0, 0 }
#define QUANT(name, type, layout, scheme, scale, axis, block)                                                                              \
    { name, type, layout, scheme, scale, HURRAY_TYPE_FLOAT32, axis, block, 0, 0, 0 }
#define BLOCK(name, number, elements, bytes)                                                                                               \
    { name, HURRAY_TYPE_FLOAT32, 0xF0, 0, 0, HURRAY_TYPE_FLOAT32, 0, 0, number, elements, bytes }

static const Case cases[] = {
    ORDER("float32, a copy", HURRAY_TYPE_FLOAT32, HURRAY_LAYOUT_ROW_MAJOR, 0),
    PLAIN("float16", HURRAY_TYPE_FLOAT16),
    PLAIN("bfloat16", HURRAY_TYPE_BFLOAT16),
    PLAIN("float64", HURRAY_TYPE_FLOAT64),
    PLAIN("int8", HURRAY_TYPE_INT8),
    PLAIN("float8_e4m3", HURRAY_TYPE_FLOAT8_E4M3),
    PLAIN("float6_e2m3", HURRAY_TYPE_FLOAT6_E2M3),
    PLAIN("float4_e2m1", HURRAY_TYPE_FLOAT4_E2M1),
    PLAIN("int4", HURRAY_TYPE_INT4),
    PLAIN("bool", HURRAY_TYPE_BOOL),
    ORDER("float32 column-major, own bits", HURRAY_TYPE_FLOAT32, HURRAY_LAYOUT_COLUMN_MAJOR, 0),
    ORDER("float16 column-major, own bits", HURRAY_TYPE_FLOAT16, HURRAY_LAYOUT_COLUMN_MAJOR, 0),
    ORDER("float16 column-major", HURRAY_TYPE_FLOAT16, HURRAY_LAYOUT_COLUMN_MAJOR, HURRAY_TYPE_FLOAT32),
    ORDER("int4 column-major, own bits", HURRAY_TYPE_INT4, HURRAY_LAYOUT_COLUMN_MAJOR, 0),
    ORDER("float32 strided (transposed), own bits", HURRAY_TYPE_FLOAT32, HURRAY_LAYOUT_STRIDED, 0),
    ORDER("float32 tiled 64x64, own bits", HURRAY_TYPE_FLOAT32, HURRAY_LAYOUT_TILED, 0),
    ORDER("float32 Hilbert, own bits", HURRAY_TYPE_FLOAT32, HURRAY_LAYOUT_HILBERT, 0),
    QUANT("int8 per tensor", HURRAY_TYPE_INT8, HURRAY_LAYOUT_ROW_MAJOR, HURRAY_QUANT_PER_TENSOR_AFFINE, 0, 0, 0),
    QUANT("int8 per row", HURRAY_TYPE_INT8, HURRAY_LAYOUT_ROW_MAJOR, HURRAY_QUANT_PER_CHANNEL_AFFINE, HURRAY_TYPE_FLOAT32, 0, 0),
    QUANT("int8 per column", HURRAY_TYPE_INT8, HURRAY_LAYOUT_ROW_MAJOR, HURRAY_QUANT_PER_CHANNEL_AFFINE, HURRAY_TYPE_FLOAT32, 1, 0),
    QUANT("int8 blocks of 32, float16 scales", HURRAY_TYPE_INT8, HURRAY_LAYOUT_ROW_MAJOR, HURRAY_QUANT_PER_BLOCK_AFFINE,
          HURRAY_TYPE_FLOAT16, 1, 32),
    QUANT("int4 blocks of 32, float16 scales", HURRAY_TYPE_INT4, HURRAY_LAYOUT_ROW_MAJOR, HURRAY_QUANT_PER_BLOCK_AFFINE,
          HURRAY_TYPE_FLOAT16, 1, 32),
    QUANT("int4 blocks of 32 along axis 0", HURRAY_TYPE_INT4, HURRAY_LAYOUT_ROW_MAJOR, HURRAY_QUANT_PER_BLOCK_AFFINE, HURRAY_TYPE_FLOAT16,
          0, 32),
    QUANT("NF4 blocks of 64", HURRAY_TYPE_UINT4, HURRAY_LAYOUT_ROW_MAJOR, HURRAY_QUANT_NF4, 0, 1, 64),
    QUANT("MXFP4 blocks of 32", HURRAY_TYPE_FLOAT4_E2M1, HURRAY_LAYOUT_ROW_MAJOR, HURRAY_QUANT_MXFP, 0, 1, 32),
    QUANT("MXFP8 blocks of 32", HURRAY_TYPE_FLOAT8_E4M3, HURRAY_LAYOUT_ROW_MAJOR, HURRAY_QUANT_MXFP, 0, 1, 32),
    BLOCK("GGML Q4_0", 2, 32, 18),
    BLOCK("GGML Q4_1", 3, 32, 20),
    BLOCK("GGML Q5_0", 6, 32, 22),
    BLOCK("GGML Q5_1", 7, 32, 24),
    BLOCK("GGML Q8_0", 8, 32, 34),
    BLOCK("GGML Q2_K", 10, 256, 84),
    BLOCK("GGML Q3_K", 11, 256, 110),
    BLOCK("GGML Q4_K", 12, 256, 144),
    BLOCK("GGML Q5_K", 13, 256, 176),
    BLOCK("GGML Q6_K", 14, 256, 210),
    BLOCK("GGML IQ4_NL", 20, 32, 18),
    BLOCK("GGML IQ4_XS", 23, 256, 136),
    BLOCK("GGML TQ1_0", 34, 256, 54),
    BLOCK("GGML TQ2_0", 35, 256, 66),
    BLOCK("GGML MXFP4", 39, 32, 17),
    BLOCK("GGML NVFP4", 40, 64, 36),
};

int main(int argc, char **argv) {
    printf("%u x %u elements\n", ROWS, COLUMNS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc < 2 || strstr(cases[i].name, argv[1])) measure(&cases[i]);
    return 0;
}
