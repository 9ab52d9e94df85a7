#include "transfer.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "describe.h"

/* A pattern that is a name means that tensor only. fnmatch wants C strings; a name with a NUL in it is matched by its escaped form. */
static bool matches(const char *pattern, bool is_name, const HurrayTensorInfo *info) {
    if (is_name) return strlen(pattern) == info->name_len && memcmp(pattern, info->name, info->name_len) == 0;
    char *name = info->name_len && memchr(info->name, 0, info->name_len) ? escape_text(info->name, info->name_len)
                                                                         : strndup((const char *)info->name, info->name_len);
    bool yes = name && fnmatch(pattern, name, 0) == 0;
    free(name);
    return yes;
}

static int select_one(Model *model, uint64_t i, char **patterns, size_t pattern_count, const bool *is_name, bool *used, bool *chosen,
                      bool *heads) {
    HurrayTensorInfo info;
    int code = model_info(model, i, &info);
    if (code != EXIT_DONE) return code;
    bool yes = pattern_count == 0 || (info.parent < i && heads[info.parent]);
    for (size_t p = 0; p < pattern_count; p++)
        if (matches(patterns[p], is_name[p], &info)) yes = used[p] = true;
    chosen[i] = yes;
    heads[i] = yes && info.member_count > 0;
    if (yes && info.fault) return report_error(model->path, info.fault);
    return EXIT_DONE;
}

static int collect(Model *model, const bool *chosen, Selection *out) {
    for (uint64_t i = 0; i < model->count; i++) {
        HurrayTensorInfo info;
        if (!chosen[i]) continue;
        int code = model_info(model, i, &info);
        if (code != EXIT_DONE) return code;
        out->indices[out->count++] = i;
        out->bytes += describe_bytes(info.descriptor);
    }
    return EXIT_DONE;
}

int select_for_transfer(Model *model, char **patterns, size_t pattern_count, Selection *out) {
    size_t n = (size_t)model->count + 1;
    bool *flags = calloc(2 * (n + pattern_count), sizeof *flags), *heads, *used, *is_name;
    int code = EXIT_DONE;
    memset(out, 0, sizeof *out);
    out->indices = calloc(n, sizeof *out->indices);
    if (!flags || !out->indices) {
        free(flags);
        selection_clear(out);
        return report_failure(EXIT_SYSTEM, model->path, "no memory for a list of %llu tensors", (unsigned long long)model->count);
    }
    heads = flags + n;
    used = heads + n;
    is_name = used + pattern_count;
    for (size_t p = 0; p < pattern_count; p++) {
        uint64_t at;
        is_name[p] = model_find(model, patterns[p], strlen(patterns[p]), &at);
    }
    for (uint64_t i = 0; i < model->count && code == EXIT_DONE; i++)
        code = select_one(model, i, patterns, pattern_count, is_name, used, flags, heads);
    for (size_t p = 0; p < pattern_count && code == EXIT_DONE; p++) {
        if (used[p]) continue;
        char *shown = escape_text(patterns[p], strlen(patterns[p]));
        code =
            report_failure(EXIT_NOT_FOUND, model->path, "tensor \"%s\": no name matches; `hurray inspect` lists them", shown ? shown : "?");
        free(shown);
    }
    if (code == EXIT_DONE) code = collect(model, flags, out);
    if (code != EXIT_DONE) selection_clear(out);
    free(flags);
    return code;
}

void selection_clear(Selection *selection) {
    free(selection->indices);
    memset(selection, 0, sizeof *selection);
}

/* Smaller buffers are not worth a hand-over between threads. */
#define AHEAD_FROM (4 * TRANSFER_PIECE)

/* done: bytes done, once this piece is written. */
static int write_piece(Transfer *transfer, const void *piece, size_t len, uint64_t done) {
    const HurrayError *error = NULL;
    if (transfer->sink(transfer->ctx, piece, len, &error) != HURRAY_OK) {
        transfer->closed = transfer->pipe && output_reader_left();
        return transfer->closed ? EXIT_DONE : report_error(transfer->out, error);
    }
    transfer->done = done;
    bar_update(transfer->bar, done, transfer->total, done == transfer->total);
    return EXIT_DONE;
}

/* Writes a piece while the next ones are read. */
static int transfer_large(Transfer *transfer, uint64_t i, uint32_t k, uint64_t bytes) {
    Model *model = transfer->model;
    const void *piece = NULL;
    size_t len = 0;
    int code = EXIT_DONE;
    HurrayStatus status = HURRAY_OK;
    read_ahead_begin(transfer->ahead, i, k, bytes);
    for (;;) {
        status = read_ahead_next(transfer->ahead, &piece, &len);
        if (status != HURRAY_OK || len == 0) break;
        code = interrupted ? EXIT_INTERRUPTED : write_piece(transfer, piece, len, transfer->done + len);
        if (code != EXIT_DONE || transfer->closed) break;
    }
    read_ahead_stop(transfer->ahead);
    return status == HURRAY_OK ? code : report_error(model->path, hurray_loader_last_error(model->loader));
}

static int transfer_small(Transfer *transfer, uint64_t i, uint32_t k, uint64_t bytes) {
    Model *model = transfer->model;
    int code = EXIT_DONE;
    for (uint64_t at = 0; at < bytes && code == EXIT_DONE && !transfer->closed;) {
        size_t len = (size_t)(bytes - at < TRANSFER_PIECE ? bytes - at : TRANSFER_PIECE);
        if (interrupted) return EXIT_INTERRUPTED;
        if (hurray_loader_read_bytes(model->loader, i, k, at, transfer->piece, len) != HURRAY_OK)
            return report_error(model->path, hurray_loader_last_error(model->loader));
        code = write_piece(transfer, transfer->piece, len, transfer->done + len);
        at += len;
    }
    return code;
}

uint64_t transfer_part(uint64_t share, uint64_t part, uint64_t whole) {
    return part < whole ? (uint64_t)((double)share * (double)part / (double)whole) : share;
}

int transfer_memory(Transfer *transfer, const void *bytes, uint64_t len, uint64_t share) {
    uint64_t before = transfer->done;
    int code = EXIT_DONE;
    for (uint64_t at = 0; at < len && code == EXIT_DONE && !transfer->closed;) {
        size_t n = (size_t)(len - at < TRANSFER_PIECE ? len - at : TRANSFER_PIECE);
        if (interrupted) return EXIT_INTERRUPTED;
        code = write_piece(transfer, (const unsigned char *)bytes + at, n, before + transfer_part(share, at + n, len));
        at += n;
    }
    return code;
}

HurrayStatus transfer_on_load(void *ctx, const HurrayProgress *progress) {
    const Transfer *transfer = ((const Model *)ctx)->loading;
    if (!transfer) return HURRAY_OK;
    uint64_t loaded = transfer_part(transfer->share, progress->bytes_done, progress->bytes_total);
    bar_update(transfer->bar, transfer->done + loaded, transfer->total, false);
    return HURRAY_OK;
}

int transfer_load(Transfer *transfer, uint64_t i, uint64_t share, HurrayTensorSet **out) {
    Model *model = transfer->model;
    hurray_loader_select_clear(model->loader);
    HurrayStatus status = hurray_loader_select_index(model->loader, i);
    if (status == HURRAY_OK) {
        transfer->share = share;
        model->loading = transfer;
        install_signals(model->loader);
        status = hurray_loader_load(model->loader, out);
        install_signals(NULL);
        model->loading = NULL;
    }
    if (status != HURRAY_OK) return interrupted ? EXIT_INTERRUPTED : report_error(model->path, hurray_loader_last_error(model->loader));
    transfer->done += share;
    return EXIT_DONE;
}

int transfer_room(Transfer *transfer) {
    if (!transfer->piece) transfer->piece = malloc(TRANSFER_PIECE);
    return transfer->piece ? EXIT_DONE : report_failure(EXIT_SYSTEM, transfer->model->path, "no memory");
}

int transfer_buffers(Transfer *transfer, uint64_t i, const HurrayDescriptor *descriptor) {
    Model *model = transfer->model;
    uint32_t count = 0;
    int code = transfer_room(transfer);
    hurray_descriptor_buffer_count(descriptor, &count);
    for (uint32_t k = 0; k < count && code == EXIT_DONE && !transfer->closed; k++) {
        HurrayBufferHandle handle;
        hurray_descriptor_buffer(descriptor, k, &handle);
        if (handle.byte_size >= AHEAD_FROM && !transfer->ahead && !transfer->no_ahead) {
            transfer->ahead = read_ahead_new(model->loader, TRANSFER_PIECE);
            transfer->no_ahead = !transfer->ahead;
        }
        bool large = handle.byte_size >= AHEAD_FROM && transfer->ahead;
        code = large ? transfer_large(transfer, i, k, handle.byte_size) : transfer_small(transfer, i, k, handle.byte_size);
    }
    return code;
}

void transfer_end(Transfer *transfer) {
    read_ahead_free(transfer->ahead);
    free(transfer->piece);
    transfer->ahead = NULL;
    transfer->piece = NULL;
}

bool gather_kv(Model *model, HurrayKvEntry **entries, size_t *count) {
    uint64_t n = 0;
    hurray_loader_kv_count(model->loader, &n);
    *count = 0;
    *entries = NULL;
    if (n == 0) return true;
    *entries = calloc((size_t)n, sizeof **entries);
    if (!*entries) {
        report_failure(EXIT_SYSTEM, model->path, "no memory for %llu metadata entries", (unsigned long long)n);
        return false;
    }
    for (uint64_t i = 0; i < n; i++)
        if (hurray_loader_kv_entry(model->loader, i, &(*entries)[*count]) == HURRAY_OK) ++*count;
    return true;
}
