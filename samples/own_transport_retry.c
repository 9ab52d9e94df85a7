/* What to do when a write fails: before a tensor's first byte repeat it, after it start a new file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hurray.h"

static HurrayStatus write_or_retry(HurrayFileWriter *writer, HurrayDescriptor *descriptor, HurrayIoSlice *payloads) {
/* Same split, through the vtable. A failure before the tensor's first byte returns the
   write callback's own status and the writer stays usable; one after it returns
   HURRAY_ERR_SINK_CLOSED and every later call fails. */
HurrayStatus st = hurray_file_writer_write_tensor(
    writer, "weight", 6, descriptor, payloads, 1);
if (st == HURRAY_ERR_SINK_CLOSED) {
    /* Torn: this file cannot be completed. Start a new one. */
} else if (st != HURRAY_OK) {
    /* Nothing was emitted — retry the same name. */
    st = hurray_file_writer_write_tensor(
        writer, "weight", 6, descriptor, payloads, 1);
}
    return st;
}

static HurrayDescriptor *matrix(void) {
    static const uint64_t shape[2] = {4, 8};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayBufferHandle handle;
    size_t count = 1;
    HurrayDescriptor *descriptor = NULL;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.rank = 2;
    spec.shape = shape;
    if (hurray_descriptor_plan_buffers(&spec, &handle, &count, NULL) != HURRAY_OK) return NULL;
    spec.buffers = &handle;
    spec.buffer_count = 1;
    return hurray_descriptor_new(&spec, NULL, &descriptor, NULL) == HURRAY_OK ? descriptor : NULL;
}

/* A sink that fails once, at a place of its own choice: between two transfers, or after half of one. */
typedef struct Sink {
    size_t len, fail_at;
    int failures;
    unsigned char bytes[65536];
} Sink;

static HurrayStatus sink_write(void *ctx, const uint8_t *src, size_t len, size_t *out_written) {
    Sink *sink = ctx;
    if (sink->len >= sink->fail_at && sink->failures == 0) {
        sink->failures++;
        return HURRAY_ERR_TRANSPORT; /* moved nothing */
    }
    if (sink->failures == 0 && len > sink->fail_at - sink->len) len = sink->fail_at - sink->len;
    if (len > sizeof sink->bytes - sink->len) return HURRAY_ERR_TRANSPORT;
    memcpy(sink->bytes + sink->len, src, len);
    sink->len += len;
    *out_written = len;
    return HURRAY_OK;
}

/* 64 bytes of header go out when the writer is made; then the tensor. */
static int run(size_t fail_at, HurrayStatus want, HurrayStatus want_finish) {
    static float data[32];
    HurrayIoSlice payload = {data, sizeof data};
    Sink *sink = calloc(1, sizeof *sink);
    HurrayFileWriter *writer = NULL;
    HurrayDescriptor *descriptor = matrix();
    HurrayTransport transport = {.ctx = sink, .write = sink_write};
    int good = 0;
    if (sink && descriptor) {
        sink->fail_at = fail_at;
        good = hurray_file_writer_new(&transport, NULL, &writer) == HURRAY_OK && write_or_retry(writer, descriptor, &payload) == want &&
               hurray_file_writer_finish(writer, NULL, 0) == want_finish;
    }
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    free(sink);
    return good;
}

int main(void) {
    int before = run(64, HURRAY_OK, HURRAY_OK), inside = run(100, HURRAY_ERR_SINK_CLOSED, HURRAY_ERR_SINK_CLOSED);
    printf("before the first byte: %s; inside the tensor: %s\n", before ? "repeated" : "wrong", inside ? "closed for good" : "wrong");
    return before && inside ? 0 : 1;
}
