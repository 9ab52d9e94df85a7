/* How long composites of many members take: their check when written, their assembly when read, their dense view.
 * Ten times the members should take about ten times as long; a hundred thousand of them less than a second each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hurray.h"
#include "hurray/core.h"
#include "hurray/dense.h"

static HurrayError error = HURRAY_ERROR_INIT;

static void need(HurrayStatus status, const char *what) {
    if (status == HURRAY_OK) return;
    fprintf(stderr, "%s: %s %s\n", what, hurray_status_name(status), error.message);
    exit(1);
}

/* Time of this processor, not of the clock: the machine may be busy. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static HurrayDescriptor *build(uint32_t rank, const uint64_t *shape, const uint64_t *parent, const uint64_t *offset, uint32_t members) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayBufferHandle handle;
    HurrayDescriptor *descriptor = NULL;
    size_t count = 1;
    layout.tag = HURRAY_LAYOUT_COMPOSITE;
    layout.rule = HURRAY_RULE_PARTITION;
    layout.member_count = members;
    shard.parent_shape = parent;
    shard.offset = offset;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.rank = rank;
    spec.shape = shape;
    if (parent) spec.shard = &shard;
    if (members) {
        spec.layout = &layout;
    } else {
        need(hurray_descriptor_plan_buffers(&spec, &handle, &count, &error), "plan");
        spec.buffers = &handle;
        spec.buffer_count = 1;
    }
    need(hurray_descriptor_new(&spec, NULL, &descriptor, &error), "descriptor");
    return descriptor;
}

static HurrayStatus swallow(void *ctx, const uint8_t *src, size_t len, size_t *out_written) {
    (void)ctx;
    (void)src;
    *out_written = len;
    return HURRAY_OK;
}

static void nothing(void *data, void *ctx) {
    (void)data;
    (void)ctx;
}

/* One way to cut a head into boxes: box i of count. */
typedef struct Cut {
    const char *name;
    uint32_t rank;
    void (*head)(size_t count, uint64_t *shape);
    void (*box)(size_t i, size_t count, uint64_t *offset, uint64_t *shape);
} Cut;

static size_t side_of(size_t count) {
    size_t side = 1;
    while ((side + 1) * (side + 1) <= count) side++;
    return side;
}

/* A grid of squares, the plain case. */
static void grid_head(size_t count, uint64_t *shape) { shape[0] = shape[1] = side_of(count) * 2; }
static void grid_box(size_t i, size_t count, uint64_t *offset, uint64_t *shape) {
    size_t side = side_of(count);
    offset[0] = i / side * 2;
    offset[1] = i % side * 2;
    shape[0] = shape[1] = 2;
}

/* Long thin boxes, in turn across and along: every sweep along one dimension has half of them open at once. */
static void comb_head(size_t count, uint64_t *shape) {
    shape[0] = count;
    shape[1] = count;
}
static void comb_box(size_t i, size_t count, uint64_t *offset, uint64_t *shape) {
    size_t half = count / 2; /* the first half are columns over the upper part, the others rows of the lower part */
    offset[0] = i < half ? 0 : half + (i - half);
    offset[1] = i < half ? 2 * i : 0;
    shape[0] = i < half ? half : 1;
    shape[1] = i < half ? 2 : count;
}

/* Rank 64, cut along the last dimension. */
static void deep_head(size_t count, uint64_t *shape) {
    for (int k = 0; k < 63; k++) shape[k] = 1;
    shape[63] = count;
}
static void deep_box(size_t i, size_t count, uint64_t *offset, uint64_t *shape) {
    (void)count;
    for (int k = 0; k < 63; k++) {
        offset[k] = 0;
        shape[k] = 1;
    }
    offset[63] = i;
    shape[63] = 1;
}

static void run(const Cut *cut, size_t wanted, double seconds[3]) {
    size_t count = cut->box == grid_box ? side_of(wanted) * side_of(wanted) : wanted;
    int with_data = cut->box != comb_box; /* the comb would need much memory: its check alone is of interest */
    uint64_t head_shape[64], offset[64], shape[64], bytes = 0;
    HurrayCompositeNode *nodes = calloc(count + 1, sizeof *nodes);
    static _Alignas(64) float data[64];
    HurrayIoSlice slice = {data, 0};
    HurrayTransport sink = {.write = swallow};
    HurrayWriter *writer = NULL;
    cut->head(count, head_shape);
    for (size_t i = 0; i <= count; i++) {
        if (i) cut->box(i - 1, count, offset, shape);
        HurrayDescriptor *d =
            i ? build(cut->rank, shape, head_shape, offset, 0) : build(cut->rank, head_shape, NULL, NULL, (uint32_t)count);
        nodes[i] = (HurrayCompositeNode){
            .kind = i ? HURRAY_NODE_TENSOR : HURRAY_NODE_COMPOSITE, .member_count = i ? 0 : (uint32_t)count, .descriptor = d};
    }
    seconds[0] = seconds[1] = seconds[2] = 0;
    if (with_data) {
        HurrayBufferHandle handle;
        hurray_descriptor_buffer(nodes[1].descriptor, 0, &handle);
        slice.len = handle.byte_size;
        for (size_t i = 1; i <= count; i++) {
            nodes[i].slices = &slice;
            nodes[i].slice_count = 1;
        }
        need(hurray_writer_new(&sink, NULL, &writer), "writer");
        double begin = now();
        HurrayStatus status = hurray_writer_write_composite(writer, nodes, count + 1);
        if (status != HURRAY_OK) error = *hurray_writer_last_error(writer);
        need(status, "write");
        seconds[0] = now() - begin;
        hurray_writer_destroy(&writer);
    }
    HurrayCompositeAssembler *assembler = NULL;
    HurrayItem *item = NULL;
    HurrayTensor **tensors = calloc(count + 1, sizeof *tensors);
    need(hurray_composite_assembler_new(NULL, &assembler, &error), "assembler");
    for (size_t i = 0; i <= count; i++) {
        HurrayBufferList *list = NULL;
        need(hurray_buffer_list_new(1, &list), "list");
        if (i) {
            HurrayBufferHandle handle;
            HurrayBuffer *buffer = NULL;
            hurray_descriptor_buffer(nodes[i].descriptor, 0, &handle);
            need(hurray_buffer_from_ptr(data, handle.byte_size, 64, HURRAY_DEVICE_CPU, 0, 0, nothing, NULL, &buffer), "buffer");
            need(hurray_buffer_list_push(list, buffer), "push");
        }
        need(hurray_tensor_new((HurrayDescriptor *)(uintptr_t)nodes[i].descriptor, list, NULL, &tensors[i], &error), "tensor");
    }
    double begin = now();
    for (size_t i = 0; i <= count; i++) {
        HurrayStatus status = hurray_composite_assembler_push(assembler, &tensors[i], &item);
        if (status != HURRAY_OK) error = *hurray_composite_assembler_last_error(assembler);
        need(status, "assemble");
    }
    seconds[1] = now() - begin;
    if (with_data) {
        HurrayItemNode node;
        const HurrayDescriptor *descriptor = NULL;
        hurray_item_node(item, 0, &node);
        hurray_tensor_descriptor(node.tensor, &descriptor);
        need(hurray_dense_size(descriptor, 0, &bytes, &error), "size");
        void *whole = calloc(1, bytes);
        begin = now();
        need(hurray_item_dense(item, 0, 0, whole, bytes, &error), "dense");
        seconds[2] = now() - begin;
        free(whole);
    }
    hurray_item_destroy(&item);
    hurray_composite_assembler_destroy(&assembler);
    free(tensors);
    free(nodes);
}

int main(void) {
    static const Cut cuts[] = {{"grid", 2, grid_head, grid_box}, {"comb", 2, comb_head, comb_box}, {"rank 64", 64, deep_head, deep_box}};
    int slow = 0;
    printf("%-8s %9s %10s %10s %10s\n", "boxes", "members", "write ms", "read ms", "dense ms");
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        double small[3], large[3];
        run(&cuts[c], 10000, small);
        run(&cuts[c], 100000, large);
        printf("%-8s %9d %10.2f %10.2f %10.2f\n", cuts[c].name, 10000, small[0] * 1e3, small[1] * 1e3, small[2] * 1e3);
        printf("%-8s %9d %10.2f %10.2f %10.2f\n", cuts[c].name, 100000, large[0] * 1e3, large[1] * 1e3, large[2] * 1e3);
        for (int i = 0; i < 3; i++) slow |= large[i] > 1.0;
    }
    return slow;
}
