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

/* len bytes of buffer k of what tensor i becomes, in the transfer's piece. */
static HurrayStatus read_native(const Transfer *transfer, uint64_t i, uint32_t k, uint64_t at, uint64_t size, size_t *len) {
    *len = (size_t)(size - at < TRANSFER_PIECE ? size - at : TRANSFER_PIECE);
    return hurray_loader_read_native(transfer->model->loader, i, k, at, transfer->piece, *len);
}

static uint64_t buffer_bytes(const HurrayDescriptor *descriptor, uint32_t k) {
    HurrayBufferHandle handle;
    return hurray_descriptor_buffer(descriptor, k, &handle) == HURRAY_OK ? handle.byte_size : 0;
}

/* The blocks are read once before anything is written: what they become may lack a value for one of their scales (*refused). */
static int check_scales(Transfer *transfer, uint64_t i, const HurrayDescriptor *native, uint64_t share, const HurrayError **refused) {
    uint64_t size = buffer_bytes(native, 1), before = transfer->done;
    int code = transfer_room(transfer);
    size_t len = 0;
    for (uint64_t at = 0; at < size && code == EXIT_DONE; at += len) {
        if (interrupted) return EXIT_INTERRUPTED;
        if (read_native(transfer, i, 1, at, size, &len) != HURRAY_OK) {
            const HurrayError *error = hurray_loader_last_error(transfer->model->loader);
            bool scale = error->code == HURRAY_ERR_INVALID_DATA && strcmp(error->field, "scale") == 0;
            if (!scale) return report_error(transfer->model->path, error);
            *refused = error;
            return EXIT_DONE;
        }
        bar_update(transfer->bar, before + transfer_part(share, at + len, size), transfer->total, false);
    }
    if (code == EXIT_DONE) transfer->done = before + share;
    return code;
}

static uint64_t check_share(uint64_t bytes) { return bytes / 3; }

/* NULL with EXIT_DONE: it stays as it is. */
static int make_native(Conversion *conversion, Transfer *transfer, uint64_t i, const HurrayTensorInfo *info, const char *ggml,
                       HurrayDescriptor **out) {
    HurrayDescriptor *native = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    const HurrayError *refused = NULL;
    int code = EXIT_DONE;
    size_t name_len = info->name_len;
    char *name = malloc(name_len + 1); /* info's is good until the next call */
    if (!name) return report_failure(EXIT_SYSTEM, conversion->model->path, "no memory");
    if (name_len) memcpy(name, info->name, name_len);
    HurrayStatus status = hurray_descriptor_from_ggml(info->descriptor, NULL, &native, &error);
    if (status == HURRAY_ERR_UNSUPPORTED)
        refused = &error;
    else if (status != HURRAY_OK)
        code = report_error(conversion->model->path, &error);
    else
        code = check_scales(transfer, i, native, check_share(describe_bytes(info->descriptor)), &refused);
    if (refused) note_kept(conversion, name, name_len, ggml, refused);
    free(name);
    if (refused || code != EXIT_DONE) {
        hurray_descriptor_destroy(native);
        native = NULL;
    }
    *out = native;
    return code;
}

int convert_native(Conversion *conversion, Transfer *transfer, uint64_t i, HurrayDescriptor **out) {
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

int append_native(Transfer *transfer, uint64_t i, const HurrayDescriptor *native, uint64_t bytes_read) {
    uint64_t written = 0, total = describe_bytes(native), share = bytes_read - check_share(bytes_read), before = transfer->done;
    uint32_t count = 0;
    int code = transfer_room(transfer);
    hurray_descriptor_buffer_count(native, &count);
    for (uint32_t k = 0; k < count && code == EXIT_DONE; k++) {
        uint64_t size = buffer_bytes(native, k);
        size_t len = 0;
        for (uint64_t at = 0; at < size && code == EXIT_DONE; at += len) {
            if (read_native(transfer, i, k, at, size, &len) != HURRAY_OK)
                return report_error(transfer->model->path, hurray_loader_last_error(transfer->model->loader));
            written += len;
            code = transfer_memory(transfer, transfer->piece, len, before + transfer_part(share, written, total) - transfer->done);
        }
    }
    return code;
}
