#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "describe.h"
#include "hurray/transport.h"

static HurrayStatus append_file(void *ctx, const void *bytes, size_t len, const HurrayError **error) {
    HurrayFileWriter *writer = ctx;
    HurrayStatus status = hurray_file_writer_append(writer, bytes, len);
    if (status != HURRAY_OK) *error = hurray_file_writer_last_error(writer);
    return status;
}

/* One tensor, as it is or in the format's own quantization. */
static int write_tensor(Conversion *conversion, Transfer *transfer, uint64_t n, const HurrayDescriptor *native) {
    HurrayTensorInfo info;
    HurrayFileWriter *writer = transfer->ctx;
    uint64_t i = conversion->selection.indices[n];
    size_t name_len = 0;
    int code = model_info(conversion->model, i, &info);
    if (code != EXIT_DONE) return code;
    const void *name = conversion_name(conversion, n, &info, &name_len);
    const HurrayDescriptor *descriptor = native ? native : info.descriptor;
    if (hurray_file_writer_begin_tensor(writer, name, name_len, descriptor) != HURRAY_OK)
        return report_error(conversion->out, hurray_file_writer_last_error(writer));
    code = native ? append_native(transfer, i, native, describe_bytes(info.descriptor)) : transfer_buffers(transfer, i, descriptor);
    if (code == EXIT_DONE && hurray_file_writer_end_tensor(writer) != HURRAY_OK)
        code = report_error(conversion->out, hurray_file_writer_last_error(writer));
    return code;
}

static int write_tensors(Conversion *conversion, HurrayFileWriter *writer) {
    Transfer transfer = {.model = conversion->model,
                         .sink = append_file,
                         .ctx = writer,
                         .out = conversion->out,
                         .bar = &conversion->bar,
                         .total = conversion->selection.bytes};
    int code = EXIT_DONE;
    for (uint64_t n = 0; n < conversion->selection.count && code == EXIT_DONE; n++) {
        HurrayDescriptor *native = NULL;
        if (interrupted)
            code = EXIT_INTERRUPTED;
        else if (conversion->options->native)
            code = convert_native(conversion, &transfer, conversion->selection.indices[n], &native);
        if (code == EXIT_DONE) code = write_tensor(conversion, &transfer, n, native);
        hurray_descriptor_destroy(native);
    }
    transfer_end(&transfer);
    return code;
}

int convert_to_hrry(Conversion *conversion) {
    const ConvertOptions *o = conversion->options;
    HurrayTransport sink;
    HurrayFileWriter *writer = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayFileWriterOptions w = HURRAY_FILE_WRITER_OPTIONS_INIT;
    HurrayKvEntry *kv = NULL;
    size_t kv_count = 0;
    if (!gather_kv(conversion->model, &kv, &kv_count)) return EXIT_SYSTEM;
    w.flags = (o->sorted ? HURRAY_WRITE_SORTED_INDEX : 0u) | (o->no_checksums ? HURRAY_WRITE_NO_CHECKSUMS : 0u);
    w.data_buffer_alignment = o->alignment                                             ? o->alignment
                              : conversion->model->source.format == HURRAY_FORMAT_HRRY ? conversion->model->source.data_buffer_alignment
                                                                                       : 0;
    w.label = conversion->out;
    w.label_len = strlen(conversion->out);
    int code = EXIT_DONE;
    if (hurray_transport_create(conversion->out, NULL, &sink, &error) != HURRAY_OK) code = report_error(conversion->out, &error);
    if (code == EXIT_DONE && hurray_file_writer_new_ex(&sink, &w, &writer, &error) != HURRAY_OK) {
        hurray_transport_release(&sink);
        code = report_error(conversion->out, &error);
    }
    if (code == EXIT_DONE) code = write_tensors(conversion, writer);
    if (code == EXIT_DONE && hurray_file_writer_finish(writer, kv, kv_count) != HURRAY_OK)
        code = report_error(conversion->out, hurray_file_writer_last_error(writer));
    hurray_file_writer_destroy(&writer);
    free(kv);
    return code;
}
