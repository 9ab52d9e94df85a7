#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "hurray/transport.h"

static HurrayStatus append_file(void *ctx, const void *bytes, size_t len, const HurrayError **error) {
    HurrayFileWriter *writer = ctx;
    HurrayStatus status = hurray_file_writer_append(writer, bytes, len);
    if (status != HURRAY_OK) *error = hurray_file_writer_last_error(writer);
    return status;
}

static int write_tensors(Conversion *conversion, HurrayFileWriter *writer) {
    Transfer transfer = {conversion->model, append_file, writer, conversion->out, &conversion->bar, 0, conversion->selection.bytes, NULL};
    int code = EXIT_DONE;
    for (uint64_t n = 0; n < conversion->selection.count && code == EXIT_DONE; n++) {
        HurrayTensorInfo info;
        uint64_t i = conversion->selection.indices[n];
        size_t name_len = 0;
        code = interrupted ? EXIT_INTERRUPTED : model_info(conversion->model, i, &info);
        if (code != EXIT_DONE) break;
        const void *name = conversion_name(conversion, n, &info, &name_len);
        if (hurray_file_writer_begin_tensor(writer, name, name_len, info.descriptor) != HURRAY_OK) {
            code = report_error(conversion->out, hurray_file_writer_last_error(writer));
            break;
        }
        code = transfer_buffers(&transfer, i, info.descriptor);
        if (code == EXIT_DONE && hurray_file_writer_end_tensor(writer) != HURRAY_OK) code = report_error(conversion->out, hurray_file_writer_last_error(writer));
    }
    free(transfer.piece);
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
    w.data_buffer_alignment = o->alignment ? o->alignment
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
    if (code == EXIT_DONE && hurray_file_writer_finish(writer, kv, kv_count) != HURRAY_OK) code = report_error(conversion->out, hurray_file_writer_last_error(writer));
    hurray_file_writer_destroy(&writer);
    free(kv);
    return code;
}
