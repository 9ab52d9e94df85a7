#include "core/file_writer.h"

#include "driver/sink.h"

/* The blocking file writer: the core's items, sent through the transport by hry_sink_drain. */
struct HurrayFileWriter {
    HrySink sink;
    HurrayFileWriterCore *core;
    bool finished; /* the finish callback was successful too */
};

static HurrayStatus make_writer(const HurrayTransport *transport, const HurrayFileWriterOptions *options, HurrayFileWriter **out,
                                HurrayError *error) {
    HurrayTransport resolved;
    HurrayFileWriterCore *core = NULL;
    if (!out) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "out", HRY_NO_OFFSET, "the out-pointer is NULL");
    HurrayStatus status = hry_transport_resolve(transport, HRY_TRANSPORT_NEEDS_WRITE, &resolved, error);
    if (status == HURRAY_OK) status = hurray_file_writer_core_new(options, &core, error);
    if (status != HURRAY_OK) return status;
    HryOutput *output = hry_file_writer_output(core);
    HurrayAllocator allocator = output->allocator;
    HurrayFileWriter *writer = hry_alloc(&allocator, sizeof *writer);
    if (!writer) {
        status = hry_fail_memory(error, "a file writer", sizeof *writer);
    } else {
        hry_handle_init(&writer->sink.handle);
        writer->sink.transport = resolved;
        writer->sink.output = output;
        writer->core = core;
        status = hry_file_writer_header(core, error);
        if (status == HURRAY_OK) status = hry_sink_drain(&writer->sink, error);
        if (status != HURRAY_OK) hry_output_label(output, error);
    }
    if (status == HURRAY_OK) {
        *out = writer;
        return HURRAY_OK;
    }
    hurray_file_writer_core_destroy(&core); /* the transport stays the caller's: no release */
    hry_free(&allocator, writer, sizeof *writer);
    return status;
}

HurrayStatus hurray_file_writer_new_ex(const HurrayTransport *transport, const HurrayFileWriterOptions *options, HurrayFileWriter **out,
                                       HurrayError *error) {
    HurrayError local;
    hry_error_clear(&local);
    HurrayStatus status = make_writer(transport, options, out, &local);
    return status == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &local);
}

HurrayStatus hurray_file_writer_new(const HurrayTransport *transport, const HurrayFileWriterOptions *options, HurrayFileWriter **out) {
    return hurray_file_writer_new_ex(transport, options, out, NULL);
}

HurrayStatus hurray_file_writer_destroy(HurrayFileWriter **handle) {
    if (!handle) return HURRAY_ERR_NULL_POINTER;
    HurrayFileWriter *writer = *handle;
    *handle = NULL;
    if (!writer) return HURRAY_OK;
    HurrayAllocator allocator = writer->sink.output->allocator;
    hry_transport_release(&writer->sink.transport);
    hurray_file_writer_core_destroy(&writer->core);
    hry_free(&allocator, writer, sizeof *writer);
    return HURRAY_OK;
}

/* Adds which tensor it was to what the sink says. */
static HurrayStatus drain_tensor(HurrayFileWriter *writer, const void *name, size_t len, HurrayError *error) {
    HurrayStatus status = hry_sink_drain(&writer->sink, error);
    if (status != HURRAY_OK) hry_error_set_tensor(error, name, len, HURRAY_NONE);
    return status;
}

static HurrayStatus write_tensor(HurrayFileWriter *writer, const void *name, size_t len, const HurrayDescriptor *descriptor,
                                 const HurrayIoSlice *slices, size_t count, HurrayError *error) {
    HurrayStatus status = hry_sink_ready(&writer->sink, error);
    if (status == HURRAY_OK && descriptor && !slices && count == 0) status = hry_slices_check(descriptor, slices, count, error);
    if (status == HURRAY_OK) status = hry_file_writer_tensor(writer->core, name, len, descriptor, slices, count, error);
    return status == HURRAY_OK ? drain_tensor(writer, name, len, error) : status;
}

HurrayStatus hurray_file_writer_write_tensor(HurrayFileWriter *writer, const void *name, size_t name_len,
                                             const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count) {
    HRY_SINK_CALL(writer, write_tensor(writer, name, name_len, descriptor, slices, count, error));
}

static HurrayStatus write_composite(HurrayFileWriter *writer, const HurrayCompositeNode *nodes, size_t count, HurrayError *error) {
    HurrayStatus status = hry_sink_ready(&writer->sink, error);
    if (status == HURRAY_OK) status = hry_file_writer_composite(writer->core, nodes, count, error);
    return status == HURRAY_OK ? drain_tensor(writer, nodes[0].name, nodes[0].name_len, error) : status;
}

HurrayStatus hurray_file_writer_write_composite(HurrayFileWriter *writer, const HurrayCompositeNode *nodes, size_t count) {
    HRY_SINK_CALL(writer, write_composite(writer, nodes, count, error));
}

static HurrayStatus begin_tensor(HurrayFileWriter *writer, const void *name, size_t len, const HurrayDescriptor *descriptor,
                                 HurrayError *error) {
    HurrayStatus status = hry_sink_ready(&writer->sink, error);
    if (status == HURRAY_OK) status = hry_file_writer_tensor(writer->core, name, len, descriptor, NULL, 0, error);
    if (status != HURRAY_OK) return status;
    status = hry_sink_begin_pieces(&writer->sink, error);
    if (status != HURRAY_OK) hry_error_set_tensor(error, name, len, HURRAY_NONE);
    return status;
}

HurrayStatus hurray_file_writer_begin_tensor(HurrayFileWriter *writer, const void *name, size_t name_len,
                                             const HurrayDescriptor *descriptor) {
    HRY_SINK_CALL(writer, begin_tensor(writer, name, name_len, descriptor, error));
}

HurrayStatus hurray_file_writer_append(HurrayFileWriter *writer, const void *bytes, size_t len) {
    HRY_SINK_CALL(writer, hry_sink_append(&writer->sink, bytes, len, error));
}

HurrayStatus hurray_file_writer_end_tensor(HurrayFileWriter *writer) { HRY_SINK_CALL(writer, hry_sink_end_pieces(&writer->sink, error)); }

/* The footer is an item; the callback behind it is repeated alone when only it failed. */
static HurrayStatus finish(HurrayFileWriter *writer, const HurrayKvEntry *kv, size_t count, HurrayError *error) {
    HurrayStatus status = hry_sink_ready(&writer->sink, error);
    if (status == HURRAY_OK && (writer->finished || !hry_file_writer_is_finished(writer->core))) {
        status = hry_file_writer_finish(writer->core, kv, count, error);
        if (status == HURRAY_OK) status = hry_sink_drain(&writer->sink, error);
    }
    if (status == HURRAY_OK) status = hry_transport_finish(&writer->sink.transport, error);
    if (status == HURRAY_OK) writer->finished = true;
    return status;
}

HurrayStatus hurray_file_writer_finish(HurrayFileWriter *writer, const HurrayKvEntry *kv, size_t kv_count) {
    HRY_SINK_CALL(writer, finish(writer, kv, kv_count, error));
}

const HurrayError *hurray_file_writer_last_error(const HurrayFileWriter *writer) { return writer ? &writer->sink.handle.error : NULL; }
