#include "import/model.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "driver/transport_call.h"
#include "hurray/transport.h"
#include "import/model_build.h"
#include "import/sniff.h"

size_t hry_path_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

char *hry_path_join(const HurrayAllocator *allocator, const char *folder, size_t folder_len, const void *name, size_t name_len,
                    size_t *size) {
    bool slash = folder_len && folder[folder_len - 1] != '/';
    *size = folder_len + slash + name_len + 1;
    char *path = hry_alloc(allocator, *size);
    if (!path) return NULL;
    if (folder_len) memcpy(path, folder, folder_len);
    if (slash) path[folder_len] = '/';
    if (name_len) memcpy(path + folder_len + slash, name, name_len);
    return path;
}

/* Catalogues are read at offsets, which a pipe, socket or terminal cannot do. */
static HurrayStatus fail_unseekable(HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_UNSUPPORTED, NULL, HRY_NO_OFFSET,
                    "a pipe or a device that cannot be read at offsets, expected a file; pipe a Hurray stream into `hurray stream read`, "
                    "or save it to a file first");
}

HurrayStatus hry_model_open_file(const char *path, const HurrayAllocator *allocator, HryOpened *out, HurrayError *error) {
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    struct stat info;
    options.allocator = allocator;
    hry_error_clear(error);
    bool fifo = stat(path, &info) == 0 && S_ISFIFO(info.st_mode); /* opening it would wait for a writer */
    HurrayStatus status = fifo ? fail_unseekable(error) : hurray_transport_file(path, &options, &out->transport, error);
    if (status == HURRAY_OK) {
        if (!out->transport.read_at || !out->transport.size) status = fail_unseekable(error);
        if (status == HURRAY_OK) status = hry_transport_size(&out->transport, &out->size, error);
        if (status == HURRAY_OK) status = hry_sniff(&out->transport, out->size, path, allocator, &out->format, error);
        if (status != HURRAY_OK) hry_transport_release(&out->transport);
    }
    if (status != HURRAY_OK) hry_error_set_source(error, path, strlen(path), UINT32_MAX);
    return status;
}

/* The label as messages show it. */
static char *escaped_label(const HurrayAllocator *allocator, const void *label, size_t len, size_t *size) {
    char text[1024];
    hry_escape(text, sizeof text, label, len);
    *size = strlen(text) + 1;
    char *copy = hry_alloc_raw(allocator, *size);
    return copy ? memcpy(copy, text, *size) : NULL;
}

HurrayStatus hry_model_add(HryModel *model, const HurrayTransport *transport, HryCatalogue *catalogue, const char *path, const void *label,
                           size_t label_len, HurrayError *error) {
    HryModelSource source = {.transport = *transport, .catalogue = catalogue};
    if (!hry_grow(&model->allocator, (void **)&model->sources, &model->source_capacity, model->source_count + 1, sizeof source))
        return hry_fail_memory(error, "the list of sources", (model->source_count + 1) * sizeof source);
    source.label = escaped_label(&model->allocator, label, label_len, &source.label_size);
    if (!source.label) return hry_fail_memory(error, "a label", label_len);
    if (path) {
        source.path_size = strlen(path) + 1;
        source.path = hry_alloc_raw(&model->allocator, source.path_size);
        if (!source.path) {
            hry_free(&model->allocator, source.label, source.label_size);
            return hry_fail_memory(error, "a path", source.path_size);
        }
        memcpy(source.path, path, source.path_size);
    }
    model->sources[model->source_count++] = source;
    return HURRAY_OK;
}

HurrayStatus hry_model_note(HryModel *model, const HurrayError *note, HurrayError *error) {
    if (!hry_grow(&model->allocator, (void **)&model->notes, &model->note_capacity, model->note_count + 1, sizeof *note))
        return hry_fail_memory(error, "a note", sizeof *note);
    model->notes[model->note_count++] = *note;
    return HURRAY_OK;
}

/* given_too: release the transports that the caller gave, not only those opened here. */
static void drop(HryModel *model, bool given_too) {
    HurrayAllocator allocator = model->allocator;
    for (size_t i = 0; i < model->source_count; i++) {
        HryModelSource *source = &model->sources[i];
        hry_catalogue_unref(source->catalogue);
        if (given_too || source->path) hry_transport_release(&source->transport);
        hry_free(&allocator, source->path, source->path_size);
        hry_free(&allocator, source->label, source->label_size);
    }
    hry_free_array(&allocator, model->sources, model->source_capacity, sizeof *model->sources);
    hry_free_array(&allocator, model->notes, model->note_capacity, sizeof *model->notes);
    memset(model, 0, sizeof *model);
}

void hry_model_close(HryModel *model) {
    if (model->allocator.allocate) drop(model, true);
}

/* A lone array is named after its file. */
static void stem_of(const void *label, size_t len, char out[256]) {
    const char *text = label;
    size_t start = 0, end = len;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '/') start = i + 1;
    for (size_t i = end; i > start + 1; i--)
        if (text[i - 1] == '.') {
            end = i - 1;
            break;
        }
    size_t n = end - start < 255 ? end - start : 255;
    snprintf(out, 256, "%.*s", (int)n, n ? text + start : "");
    if (out[0] == 0) snprintf(out, 256, "array");
}

/* One source of a kind that stands for itself; its transport is taken over on OK. */
static HurrayStatus add_single(HryModel *model, const char *path, const void *label, size_t label_len, const HryOpened *opened,
                               const HryLimits *limits, HurrayError *error) {
    HryCatalogue *catalogue = NULL;
    const HurrayAllocator *allocator = &model->allocator;
    const HurrayTransport *transport = &opened->transport;
    HurrayStatus status = HURRAY_ERR_INTERNAL;
    char stem[256];
    switch (opened->format) {
    case HURRAY_FORMAT_SAFETENSORS: status = hry_import_safetensors(transport, opened->size, limits, allocator, &catalogue, error); break;
    case HURRAY_FORMAT_NPZ: status = hry_import_npz(transport, opened->size, limits, allocator, &catalogue, error); break;
    case HURRAY_FORMAT_NPY:
        stem_of(label, label_len, stem);
        status = hry_import_npy(transport, opened->size, stem, limits, allocator, &catalogue, error);
        break;
    case HURRAY_FORMAT_HRRY: status = hry_import_hrry(transport, opened->size, limits, allocator, &catalogue, error); break;
    case HURRAY_FORMAT_STREAM: status = hry_import_stream(transport, opened->size, limits, allocator, &catalogue, error); break;
    default: break;
    }
    if (status == HURRAY_OK) {
        status = hry_model_add(model, transport, catalogue, path, label, label_len, error);
        if (status != HURRAY_OK) hry_catalogue_unref(catalogue);
    }
    if (status != HURRAY_OK) hry_error_set_source(error, label, label_len, (uint32_t)model->source_count);
    return status;
}

static HurrayStatus add_path(HryModel *model, const char *path, const void *label, size_t label_len, const HryLimits *limits,
                             HurrayError *error) {
    HryOpened opened;
    HurrayStatus status = hry_model_open_file(path, &model->allocator, &opened, error);
    if (status != HURRAY_OK) return status;
    bool taken = opened.format != HRY_FORMAT_INDEX;
    if (opened.format == HRY_FORMAT_INDEX)
        status = hry_model_add_index(model, path, &opened, limits, error);
    else if (opened.format == HURRAY_FORMAT_GGUF)
        status = hry_model_add_gguf(model, path, label, label_len, &opened, limits, error);
    else
        status = add_single(model, path, label, label_len, &opened, limits, error);
    if (status != HURRAY_OK || !taken) hry_transport_release(&opened.transport);
    return status;
}

static HurrayStatus add_transport(HryModel *model, const HurraySource *source, const HryLimits *limits, HurrayError *error) {
    HryOpened opened;
    char name[64];
    snprintf(name, sizeof name, "source %zu", model->source_count);
    const void *label = source->label_len ? source->label : name;
    size_t label_len = source->label_len ? source->label_len : strlen(name);
    HurrayStatus status = hry_transport_resolve(source->transport, HRY_TRANSPORT_NEEDS_READ_AT, &opened.transport, error);
    if (status == HURRAY_OK) status = hry_transport_size(&opened.transport, &opened.size, error);
    if (status == HURRAY_OK) {
        char ending[64];
        size_t n = label_len < sizeof ending - 1 ? label_len : sizeof ending - 1;
        snprintf(ending, sizeof ending, "%.*s", (int)n, (const char *)label + label_len - n);
        status = hry_sniff(&opened.transport, opened.size, ending, &model->allocator, &opened.format, error);
    }
    if (status == HURRAY_OK && opened.format == HRY_FORMAT_INDEX)
        status = hry_fail(error, HURRAY_ERR_UNSUPPORTED, NULL, HRY_NO_OFFSET,
                          "a safetensors index names other files, which a transport cannot open; open it by its path");
    if (status != HURRAY_OK) {
        hry_error_set_source(error, label, label_len, (uint32_t)model->source_count);
        return status;
    }
    if (opened.format == HURRAY_FORMAT_GGUF) return hry_model_add_gguf(model, NULL, label, label_len, &opened, limits, error);
    return add_single(model, NULL, source->label_len ? label : "", source->label_len, &opened, limits, error);
}

/* ---- folders ---- */

typedef struct Folder {
    char index[256], tensors[256]; /* the only ones so far */
    size_t index_count, tensors_count;
    bool standard_index, standard_tensors;
    char seen[360]; /* the first names, for the message */
    size_t count;
} Folder;

static bool ends_with(const char *name, const char *ending) {
    size_t n = strlen(name), m = strlen(ending);
    return n > m && strcmp(name + n - m, ending) == 0;
}

static void look_at(Folder *folder, const char *name) {
    size_t used = strlen(folder->seen);
    char quoted[96];
    if (used + sizeof quoted + 4 < sizeof folder->seen)
        snprintf(folder->seen + used, sizeof folder->seen - used, "%s%s", used ? ", " : "",
                 hry_escape(quoted, sizeof quoted, name, strlen(name)));
    folder->count++;
    if (strcmp(name, "model.safetensors.index.json") == 0) folder->standard_index = true;
    if (strcmp(name, "model.safetensors") == 0) folder->standard_tensors = true;
    if (ends_with(name, ".safetensors.index.json") && folder->index_count++ == 0) snprintf(folder->index, sizeof folder->index, "%s", name);
    if (ends_with(name, ".safetensors") && folder->tensors_count++ == 0) snprintf(folder->tensors, sizeof folder->tensors, "%s", name);
}

static const char *choose(const Folder *folder) {
    if (folder->standard_index) return "model.safetensors.index.json";
    if (folder->index_count == 1) return folder->index;
    if (folder->standard_tensors) return "model.safetensors";
    return folder->tensors_count == 1 ? folder->tensors : NULL;
}

static HurrayStatus add_folder(HryModel *model, const char *path, const HryLimits *limits, HurrayError *error) {
    Folder folder;
    memset(&folder, 0, sizeof folder);
    DIR *entries = opendir(path);
    if (!entries) {
        int number = errno;
        hry_fail(error, HURRAY_ERR_TRANSPORT, NULL, HRY_NO_OFFSET, "cannot list the folder: %s", strerrordesc_np(number));
        error->system_error = number;
        hry_error_set_source(error, path, strlen(path), UINT32_MAX);
        return error->code;
    }
    for (struct dirent *entry; (entry = readdir(entries));)
        if (entry->d_name[0] != '.') look_at(&folder, entry->d_name);
    closedir(entries);
    const char *chosen = choose(&folder);
    if (!chosen) {
        hry_fail(error, HURRAY_ERR_UNSUPPORTED, NULL, HRY_NO_OFFSET,
                 "the folder has %s safetensors file and no index that says which belong together; open one by its name; it holds %zu "
                 "entr%s%s%s",
                 folder.tensors_count || folder.index_count ? "more than one" : "no", folder.count, folder.count == 1 ? "y" : "ies",
                 folder.count ? ": " : "", folder.seen);
        hry_error_set_source(error, path, strlen(path), UINT32_MAX);
        return error->code;
    }
    size_t size;
    char *file = hry_path_join(&model->allocator, path, strlen(path), chosen, strlen(chosen), &size);
    if (!file) return hry_fail_memory(error, "a path", size);
    HurrayStatus status = add_path(model, file, file, strlen(file), limits, error);
    hry_free(&model->allocator, file, size);
    return status;
}

static HurrayStatus add_any_path(HryModel *model, const char *path, const void *label, size_t label_len, const HryLimits *limits,
                                 HurrayError *error) {
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return add_folder(model, path, limits, error);
    return add_path(model, path, label_len ? label : path, label_len ? label_len : strlen(path), limits, error);
}

HurrayStatus hry_model_open_path(const char *path, const HryLimits *limits, const HurrayAllocator *allocator, HryModel *out,
                                 HurrayError *error) {
    HryModel model;
    memset(&model, 0, sizeof model);
    model.allocator = *allocator;
    hry_error_clear(error);
    HurrayStatus status = add_any_path(&model, path, NULL, 0, limits, error);
    if (status != HURRAY_OK) {
        drop(&model, false);
        return status;
    }
    *out = model;
    return HURRAY_OK;
}

HurrayStatus hry_model_open_sources(const HurraySource *sources, size_t count, const HryLimits *limits, const HurrayAllocator *allocator,
                                    HryModel *out, HurrayError *error) {
    HryModel model;
    memset(&model, 0, sizeof model);
    model.allocator = *allocator;
    hry_error_clear(error);
    HurrayStatus status = HURRAY_OK;
    for (size_t i = 0; i < count && status == HURRAY_OK; i++) {
        const HurraySource *source = &sources[i];
        if (source->reserved[0] || source->reserved[1])
            status = hry_fail(error, HURRAY_ERR_UNSUPPORTED, "reserved", HRY_NO_OFFSET, "HurraySource.reserved must be zero");
        else if (!source->path == !source->transport)
            status =
                hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "sources", HRY_NO_OFFSET, "source %zu needs either a path or a transport", i);
        else if (source->label_len && !source->label)
            status = hry_fail(error, HURRAY_ERR_NULL_POINTER, "label", HRY_NO_OFFSET, "source %zu has a label length without a label", i);
        else if (source->path)
            status = add_any_path(&model, source->path, source->label, source->label_len, limits, error);
        else
            status = add_transport(&model, source, limits, error);
    }
    if (status != HURRAY_OK) {
        drop(&model, false);
        return status;
    }
    *out = model;
    return HURRAY_OK;
}
