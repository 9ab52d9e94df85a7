#include "model.h"

#include <stdlib.h>
#include <string.h>

static int make_names(Model *model, const char *prefix) {
    uint64_t top = 0;
    uint64_t *next_member = NULL;
    model->names = calloc(model->count ? model->count : 1, sizeof *model->names);
    next_member = calloc(model->count ? model->count : 1, sizeof *next_member);
    if (!model->names || !next_member) {
        free(next_member);
        return report_failure(EXIT_SYSTEM, model->path, "no memory for %llu names", (unsigned long long)model->count);
    }
    for (uint64_t i = 0; i < model->count; i++) {
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        HurrayStatus status = hurray_loader_tensor_info(model->loader, i, &info);
        if (status != HURRAY_OK) {
            free(next_member);
            return report_error(model->path, hurray_loader_last_error(model->loader));
        }
        const char *head = info.parent < i ? model->names[info.parent] : prefix;
        uint64_t number = info.parent < i ? next_member[info.parent]++ : top++;
        size_t room = (head ? strlen(head) : 0) + 24;
        model->names[i] = malloc(room);
        if (!model->names[i]) {
            free(next_member);
            return report_failure(EXIT_SYSTEM, model->path, "no memory for names");
        }
        snprintf(model->names[i], room, "%s%s%llu", head ? head : "", head ? "." : "", (unsigned long long)number);
    }
    free(next_member);
    return EXIT_DONE;
}

int model_open(Model *model, const char *path, const HurrayLoaderOptions *options, const char *prefix) {
    HurrayError error = HURRAY_ERROR_INIT;
    memset(model, 0, sizeof *model);
    model->path = path;
    if (hurray_loader_open(path, options, &model->loader, &error) != HURRAY_OK) {
        model->error = error;
        return report_error(path, &error);
    }
    uint32_t sources = 0;
    HurraySourceInfo first = HURRAY_SOURCE_INFO_INIT;
    model->source = first;
    hurray_loader_tensor_count(model->loader, &model->count);
    hurray_loader_source_count(model->loader, &sources);
    for (uint32_t i = 0; i < sources; i++) {
        HurraySourceInfo info = HURRAY_SOURCE_INFO_INIT;
        if (hurray_loader_source_info(model->loader, i, &info) != HURRAY_OK) continue;
        model->bytes += info.byte_size;
        if (i == 0) model->source = info;
    }
    if (model->source.format != HURRAY_FORMAT_STREAM) return EXIT_DONE;
    int code = make_names(model, prefix);
    if (code != EXIT_DONE) model_close(model);
    return code;
}

void model_close(Model *model) {
    for (uint64_t i = 0; model->names && i < model->count; i++) free(model->names[i]);
    free(model->names);
    model->names = NULL;
    hurray_loader_destroy(&model->loader);
}

int model_info(Model *model, uint64_t i, HurrayTensorInfo *info) {
    HurrayTensorInfo empty = HURRAY_TENSOR_INFO_INIT;
    *info = empty;
    if (hurray_loader_tensor_info(model->loader, i, info) != HURRAY_OK)
        return report_error(model->path, hurray_loader_last_error(model->loader));
    if (model->names) {
        info->name = (const uint8_t *)model->names[i];
        info->name_len = strlen(model->names[i]);
    }
    return EXIT_DONE;
}

bool model_find(Model *model, const char *name, size_t len, uint64_t *i) {
    if (!model->names) return hurray_loader_find(model->loader, name, len, i) == HURRAY_OK;
    for (uint64_t k = 0; k < model->count; k++) {
        if (strlen(model->names[k]) != len || memcmp(model->names[k], name, len) != 0) continue;
        *i = k;
        return true;
    }
    return false;
}

int model_sound(Model *model, const char *name, uint64_t *i, HurrayTensorInfo *info) {
    if (!model_find(model, name, strlen(name), i)) {
        char *shown = escape_text(name, strlen(name));
        int code = report_failure(EXIT_NOT_FOUND, model->path, "tensor \"%s\": there is none of this name; `hurray inspect` lists them",
                                  shown ? shown : "?");
        free(shown);
        return code;
    }
    int code = model_info(model, *i, info);
    return code == EXIT_DONE && info->fault ? report_error(model->path, info->fault) : code;
}

void model_print_notes(Model *model, const Output *output) {
    uint64_t count = 0;
    hurray_loader_note_count(model->loader, &count);
    for (uint64_t i = 0; i < count; i++) {
        const HurrayError *text = NULL;
        if (hurray_loader_note(model->loader, i, &text) != HURRAY_OK || !text) continue;
        char *path = text->source[0] ? NULL : escape_text(model->path, strlen(model->path));
        note(output, "hurray: note: %s: %s%s%s%s", path ? path : text->source, text->tensor[0] ? "tensor \"" : "", text->tensor,
             text->tensor[0] ? "\": " : "", text->message);
        free(path);
    }
}
