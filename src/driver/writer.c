#include "core/stream_writer.h"

#include "driver/sink.h"

/* The blocking stream writer: the core's items, sent through the transport by hry_sink_drain. */
struct HurrayWriter {
    HrySink sink;
    HurrayStreamWriterCore *core;
    bool finished;
};

static HurrayStatus make_writer(const HurrayTransport *transport, const HurrayWriterOptions *options, HurrayWriter **out,
                                HurrayError *error) {
    HurrayTransport resolved;
    HurrayStreamWriterCore *core = NULL;
    if (!out) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "out", HRY_NO_OFFSET, "the out-pointer is NULL");
    HurrayStatus status = hry_transport_resolve(transport, HRY_TRANSPORT_NEEDS_WRITE, &resolved, error);
    if (status == HURRAY_OK) status = hurray_stream_writer_core_new(options, &core, error);
    if (status != HURRAY_OK) return status;
    HryOutput *output = hry_stream_writer_output(core);
    HurrayWriter *writer = hry_alloc(&output->allocator, sizeof *writer);
    if (!writer) {
        hurray_stream_writer_core_destroy(&core);
        return hry_fail_memory(error, "a stream writer", sizeof *writer);
    }
    hry_handle_init(&writer->sink.handle);
    writer->sink.transport = resolved;
    writer->sink.output = output;
    writer->core = core;
    *out = writer;
    return HURRAY_OK;
}

HurrayStatus hurray_writer_new_ex(const HurrayTransport *transport, const HurrayWriterOptions *options, HurrayWriter **out,
                                  HurrayError *error) {
    HurrayError local;
    hry_error_clear(&local);
    HurrayStatus status = make_writer(transport, options, out, &local);
    return status == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &local);
}

HurrayStatus hurray_writer_new(const HurrayTransport *transport, const HurrayWriterOptions *options, HurrayWriter **out) {
    return hurray_writer_new_ex(transport, options, out, NULL);
}

HurrayStatus hurray_writer_destroy(HurrayWriter **handle) {
    if (!handle) return HURRAY_ERR_NULL_POINTER;
    HurrayWriter *writer = *handle;
    *handle = NULL;
    if (!writer) return HURRAY_OK;
    HurrayAllocator allocator = writer->sink.output->allocator;
    hry_transport_release(&writer->sink.transport);
    hurray_stream_writer_core_destroy(&writer->core);
    hry_free(&allocator, writer, sizeof *writer);
    return HURRAY_OK;
}

static HurrayStatus ready(const HurrayWriter *writer, HurrayError *error) {
    HurrayStatus status = hry_sink_ready(&writer->sink, error);
    if (status == HURRAY_OK && writer->finished)
        return hry_fail(error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET, "the stream is finished; nothing can be added to it");
    return status;
}

static HurrayStatus write_tensor(HurrayWriter *writer, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count,
                                 HurrayError *error) {
    HurrayStatus status = ready(writer, error);
    if (status == HURRAY_OK && descriptor && !slices && count == 0) status = hry_slices_check(descriptor, slices, count, error);
    if (status == HURRAY_OK) status = hry_stream_writer_tensor(writer->core, descriptor, slices, count, error);
    return status == HURRAY_OK ? hry_sink_drain(&writer->sink, error) : status;
}

HurrayStatus hurray_writer_write_tensor(HurrayWriter *writer, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices,
                                        size_t count) {
    HRY_SINK_CALL(writer, write_tensor(writer, descriptor, slices, count, error));
}

static HurrayStatus write_composite(HurrayWriter *writer, const HurrayCompositeNode *nodes, size_t count, HurrayError *error) {
    HurrayStatus status = ready(writer, error);
    if (status == HURRAY_OK) status = hry_stream_writer_composite(writer->core, nodes, count, error);
    return status == HURRAY_OK ? hry_sink_drain(&writer->sink, error) : status;
}

HurrayStatus hurray_writer_write_composite(HurrayWriter *writer, const HurrayCompositeNode *nodes, size_t count) {
    HRY_SINK_CALL(writer, write_composite(writer, nodes, count, error));
}

static HurrayStatus begin_tensor(HurrayWriter *writer, const HurrayDescriptor *descriptor, HurrayError *error) {
    HurrayStatus status = ready(writer, error);
    if (status == HURRAY_OK) status = hry_stream_writer_tensor(writer->core, descriptor, NULL, 0, error);
    return status == HURRAY_OK ? hry_sink_begin_pieces(&writer->sink, error) : status;
}

HurrayStatus hurray_writer_begin_tensor(HurrayWriter *writer, const HurrayDescriptor *descriptor) {
    HRY_SINK_CALL(writer, begin_tensor(writer, descriptor, error));
}

HurrayStatus hurray_writer_append(HurrayWriter *writer, const void *bytes, size_t len) {
    HRY_SINK_CALL(writer, hry_sink_append(&writer->sink, bytes, len, error));
}

HurrayStatus hurray_writer_end_tensor(HurrayWriter *writer) { HRY_SINK_CALL(writer, hry_sink_end_pieces(&writer->sink, error)); }

/* A stream has no footer: nothing but the callback, which may be repeated when it failed. */
static HurrayStatus finish(HurrayWriter *writer, HurrayError *error) {
    HurrayStatus status = ready(writer, error);
    if (status == HURRAY_OK) status = hry_stream_writer_end(writer->core, error);
    if (status == HURRAY_OK) status = hry_transport_finish(&writer->sink.transport, error);
    if (status == HURRAY_OK) writer->finished = true;
    return status;
}

HurrayStatus hurray_writer_finish(HurrayWriter *writer) { HRY_SINK_CALL(writer, finish(writer, error)); }

const HurrayError *hurray_writer_last_error(const HurrayWriter *writer) { return writer ? &writer->sink.handle.error : NULL; }
