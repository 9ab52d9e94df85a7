#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "describe.h"
#include "hurray/import.h"
#include "hurray/transport.h"

static HurrayStatus append_file(void *ctx, const void *bytes, size_t len, const HurrayError **error) {
    HurrayFileWriter *writer = ctx;
    HurrayStatus status = hurray_file_writer_append(writer, bytes, len);
    if (status != HURRAY_OK) *error = hurray_file_writer_last_error(writer);
    return status;
}

/* All buffers of a tensor in memory, as one item. */
static int write_loaded(Conversion *conversion, HurrayFileWriter *writer, const void *name, size_t name_len, const HurrayTensor *tensor) {
    const HurrayDescriptor *descriptor = NULL;
    HurrayBufferList *buffers = NULL;
    HurrayIoSlice slices[3];
    uint64_t count = 0;
    hurray_tensor_descriptor(tensor, &descriptor);
    hurray_tensor_buffers(tensor, &buffers);
    hurray_buffer_list_len(buffers, &count);
    for (uint64_t i = 0; i < count && i < 3; i++) {
        HurrayBuffer *buffer = NULL;
        void *data = NULL;
        uint64_t size = 0;
        hurray_buffer_list_get(buffers, i, &buffer);
        hurray_buffer_data_ptr(buffer, &data);
        hurray_buffer_byte_size(buffer, &size);
        slices[i] = (HurrayIoSlice){data, (size_t)size};
    }
    if (hurray_file_writer_write_tensor(writer, name, name_len, descriptor, slices, (size_t)count) == HURRAY_OK) return EXIT_DONE;
    return report_error(conversion->out, hurray_file_writer_last_error(writer));
}

/* GGML blocks in the format's own quantization. *written false: the tensor has no such form and stays as it is, which is noted. */
static int write_native(Conversion *conversion, HurrayFileWriter *writer, uint64_t i, const void *name, size_t name_len, bool *written) {
    Model *model = conversion->model;
    HurrayTensorSet *set = NULL;
    HurrayTensor *blocks = NULL, *native = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    int code = EXIT_DONE;
    hurray_loader_select_clear(model->loader);
    if (hurray_loader_select_index(model->loader, i) != HURRAY_OK || hurray_loader_load(model->loader, &set) != HURRAY_OK)
        return report_error(model->path, hurray_loader_last_error(model->loader));
    hurray_tensor_set_get(set, 0, &blocks);
    HurrayStatus status = hurray_tensor_from_ggml(blocks, NULL, &native, &error);
    *written = status == HURRAY_OK;
    if (*written) {
        code = write_loaded(conversion, writer, name, name_len, native);
    } else if (status == HURRAY_ERR_UNSUPPORTED || status == HURRAY_ERR_INVALID_DATA) {
        char *text = escape_text(name, name_len);
        note(conversion->output, "hurray: note: %s: %s: stays as it is: %s", model->path, text ? text : "?", error.message);
        free(text);
    } else {
        code = report_error(model->path, &error);
    }
    hurray_tensor_destroy(&native);
    hurray_tensor_set_destroy(&set);
    return code;
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
        bool written = false;
        if (conversion->options->native && ggml_word(info.descriptor)) {
            code = write_native(conversion, writer, i, name, name_len, &written);
            if (code == EXIT_DONE && !written) code = model_info(conversion->model, i, &info);
            if (code != EXIT_DONE) break;
            if (written) continue;
            name = conversion_name(conversion, n, &info, &name_len);
        }
        if (hurray_file_writer_begin_tensor(writer, name, name_len, info.descriptor) != HURRAY_OK) {
            code = report_error(conversion->out, hurray_file_writer_last_error(writer));
            break;
        }
        code = transfer_buffers(&transfer, i, info.descriptor);
        if (code == EXIT_DONE && hurray_file_writer_end_tensor(writer) != HURRAY_OK)
            code = report_error(conversion->out, hurray_file_writer_last_error(writer));
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
