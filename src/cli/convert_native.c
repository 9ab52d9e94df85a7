/* GGML blocks on their way into the format's own quantization: convert --quantization native. */
#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "describe.h"
#include "hurray/import.h"

/* One note for each kind of blocks, however many tensors have it. */
static void note_kept(Conversion *conversion, const char *name, size_t name_len, const char *ggml, const HurrayError *error) {
    if (error->code == HURRAY_ERR_UNSUPPORTED && strcmp(error->field, "quantization") == 0) {
        for (size_t i = 0; i < conversion->kept_count; i++)
            if (conversion->kept[i] == ggml) return;
        if (conversion->kept_count < sizeof conversion->kept / sizeof *conversion->kept) conversion->kept[conversion->kept_count++] = ggml;
        note(conversion->output, "hurray: note: tensors of %s stay GGML blocks: the format's own quantization cannot say them", ggml);
        return;
    }
    char *shown = escape_text(name, name_len);
    note(conversion->output, "hurray: note: tensor \"%s\" stays GGML blocks: %s", shown ? shown : "?", error->message);
    free(shown);
}

static bool kept_before(const Conversion *conversion, const char *ggml) {
    for (size_t i = 0; i < conversion->kept_count; i++)
        if (conversion->kept[i] == ggml) return true;
    return false;
}

/* The tensor in the format's own quantization; NULL with EXIT_DONE: it stays as it is. */
static int make_native(Conversion *conversion, Transfer *transfer, uint64_t i, const HurrayTensorInfo *info, const char *ggml,
                       HurrayTensor **out) {
    Model *model = conversion->model;
    HurrayTensorSet *set = NULL;
    HurrayTensor *blocks = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    char *name = malloc(info->name_len + 1);
    size_t name_len = info->name_len;
    uint64_t share = describe_bytes(info->descriptor) / 2;
    if (!name) return report_failure(EXIT_SYSTEM, model->path, "no memory");
    memcpy(name, info->name, name_len);
    int code = transfer_load(transfer, i, share, &set);
    if (code != EXIT_DONE) {
        free(name);
        return code;
    }
    hurray_tensor_set_get(set, 0, &blocks);
    HurrayStatus status = hurray_tensor_from_ggml(blocks, NULL, out, &error);
    hurray_tensor_set_destroy(&set);
    if (status != HURRAY_OK) transfer->done -= share;
    if (status == HURRAY_ERR_UNSUPPORTED || status == HURRAY_ERR_INVALID_DATA)
        note_kept(conversion, name, name_len, ggml, &error);
    else if (status != HURRAY_OK)
        code = report_error(model->path, &error);
    free(name);
    return code;
}

int convert_native(Conversion *conversion, Transfer *transfer, uint64_t i, HurrayTensor **out) {
    HurrayTensorInfo info;
    HurrayShard shard = HURRAY_SHARD_INIT;
    *out = NULL;
    int code = model_info(conversion->model, i, &info);
    if (code != EXIT_DONE) return code;
    const char *ggml = ggml_word(info.descriptor);
    if (!ggml || kept_before(conversion, ggml)) return EXIT_DONE;
    if (hurray_descriptor_shard(info.descriptor, &shard) == HURRAY_OK) { /* a slice's place would be lost */
        char *shown = escape_text(info.name, info.name_len);
        note(conversion->output, "hurray: note: tensor \"%s\" stays GGML blocks: it is a slice of another one", shown ? shown : "?");
        free(shown);
        return EXIT_DONE;
    }
    return make_native(conversion, transfer, i, &info, ggml, out);
}

int append_native(Transfer *transfer, const HurrayTensor *tensor, uint64_t bytes_read) {
    HurrayBufferList *buffers = NULL;
    uint64_t count = 0, size = 0, written = 0, total = 0, share = bytes_read - bytes_read / 2;
    const HurrayDescriptor *descriptor = NULL;
    int code = EXIT_DONE;
    hurray_tensor_descriptor(tensor, &descriptor);
    hurray_tensor_buffers(tensor, &buffers);
    hurray_buffer_list_len(buffers, &count);
    total = describe_bytes(descriptor);
    for (uint64_t k = 0; k < count && code == EXIT_DONE; k++, written += size) {
        HurrayBuffer *buffer = NULL;
        void *data = NULL;
        hurray_buffer_list_get(buffers, k, &buffer);
        hurray_buffer_data_ptr(buffer, &data);
        hurray_buffer_byte_size(buffer, &size);
        code = transfer_memory(transfer, data, size, transfer_part(share, written + size, total) - transfer_part(share, written, total));
    }
    return code;
}
