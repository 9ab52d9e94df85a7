#include "import/model_build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "driver/transport_call.h"
#include "import/gguf.h"

#define SUFFIX 20u /* -00001-of-00002.gguf */

/* PREFIX-%05d-of-%05d.gguf; false: another name. */
static bool parse_name(const char *path, uint64_t *number, uint64_t *count) {
    size_t len = strlen(path), at = len - SUFFIX;
    if (len < SUFFIX) return false;
    const char *s = path + at;
    if (s[0] != '-' || memcmp(s + 6, "-of-", 4) != 0 || memcmp(s + 15, ".gguf", 5) != 0) return false;
    *number = *count = 0;
    for (size_t i = 0; i < 5; i++) {
        if (s[1 + i] < '0' || s[1 + i] > '9' || s[10 + i] < '0' || s[10 + i] > '9') return false;
        *number = *number * 10 + (uint64_t)(s[1 + i] - '0');
        *count = *count * 10 + (uint64_t)(s[10 + i] - '0');
    }
    return true;
}

static HurrayStatus fail_set(HurrayError *error, const void *label, size_t label_len, const char *key, const char *what, uint64_t found,
                             uint64_t expected) {
    hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, key, HRY_NO_OFFSET, "%s: %s is %lld, expected %lld", what, key, (long long)found,
             (long long)expected);
    hry_error_set_source(error, label, label_len, UINT32_MAX);
    return error->code;
}

static HurrayStatus check_first(const char *path, const void *label, size_t label_len, const HryGgufSplit *split, HurrayError *error) {
    uint64_t number = 0, count = 0;
    char first[256];
    bool named = path && parse_name(path, &number, &count);
    if (split->no != HURRAY_NONE && split->no > 0) {
        if (named)
            snprintf(first, sizeof first, "%.*s-00001%s", (int)(strlen(path + hry_path_folder(path)) - SUFFIX),
                     path + hry_path_folder(path), path + strlen(path) - 14);
        hry_fail(error, HURRAY_ERR_UNSUPPORTED, "split.no", HRY_NO_OFFSET, "this is part %llu of %llu of a split set; open part 1%s%s",
                 (unsigned long long)(split->no < UINT64_MAX ? split->no + 1 : split->no), (unsigned long long)split->count,
                 named ? ", " : "", named ? first : "");
    } else if (!path) {
        hry_fail(error, HURRAY_ERR_UNSUPPORTED, "split.count", HRY_NO_OFFSET,
                 "this is one of %llu parts of a split set, which is found by file names; open part 1 by its path",
                 (unsigned long long)split->count);
    } else if (!named || number != 1 || count != split->count) {
        hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "split.count", HRY_NO_OFFSET,
                 "this is part 1 of %llu of a split set, but its name does not end in -00001-of-%05llu.gguf, by which the others are "
                 "found; give the files their names back",
                 (unsigned long long)split->count, (unsigned long long)split->count);
    } else {
        return HURRAY_OK;
    }
    hry_error_set_source(error, label, label_len, UINT32_MAX);
    return error->code;
}

/* A set's own keys say nothing about the joined model. */
static void drop_split_keys(HryCatalogue *catalogue) {
    size_t kept = 0;
    for (size_t i = 0; i < catalogue->kv_count; i++) {
        const HurrayKvEntry *entry = &catalogue->kv[i];
        if (entry->key_len < 6 || memcmp(entry->key, "split.", 6) != 0) catalogue->kv[kept++] = *entry;
    }
    catalogue->kv_count = kept;
}

/* Part `number` (from 2), by its path. */
static HurrayStatus add_part(HryModel *model, const char *path, uint64_t number, uint64_t count, const HryLimits *limits,
                             HurrayError *error) {
    HryOpened opened;
    HryCatalogue *catalogue = NULL;
    HryGgufSplit split;
    struct stat info;
    if (stat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        char quoted[200];
        hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "split.count", HRY_NO_OFFSET,
                 "part %s is missing; a set of %llu parts needs all of them in one folder",
                 hry_escape(quoted, sizeof quoted, path + hry_path_folder(path), strlen(path + hry_path_folder(path))),
                 (unsigned long long)count);
        hry_error_set_source(error, path, strlen(path), UINT32_MAX);
        return error->code;
    }
    HurrayStatus status = hry_model_open_file(path, &model->allocator, &opened, error);
    if (status != HURRAY_OK) return status;
    if (opened.format != HURRAY_FORMAT_GGUF)
        status = hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, NULL, HRY_NO_OFFSET, "a part of a GGUF set is no GGUF file");
    else
        status = hry_gguf_open(&opened.transport, opened.size, limits, &model->allocator, &catalogue, &split, error);
    if (status != HURRAY_OK) {
        hry_error_set_source(error, path, strlen(path), (uint32_t)model->source_count);
    } else if (split.no != number - 1 || split.count != count) {
        bool wrong_no = split.no != number - 1;
        status = fail_set(error, path, strlen(path), wrong_no ? "split.no" : "split.count", "the part does not belong here",
                          wrong_no ? split.no : split.count, wrong_no ? number - 1 : count);
    } else {
        drop_split_keys(catalogue);
        status = hry_model_add(model, &opened.transport, catalogue, path, path, strlen(path), error);
    }
    if (status != HURRAY_OK) {
        hry_catalogue_unref(catalogue);
        hry_transport_release(&opened.transport);
    }
    return status;
}

/* ---- names across the parts ---- */

typedef struct Joined {
    const HryModel *model;
    size_t first;
    const uint64_t *starts; /* number of each part's first tensor */
} Joined;

static size_t part_of(const Joined *joined, uint64_t i) {
    size_t low = 0, high = joined->model->source_count - joined->first;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (joined->starts[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static const HryEntry *entry_of(const Joined *joined, uint64_t i) {
    size_t part = part_of(joined, i);
    return &joined->model->sources[joined->first + part].catalogue->entries[i - joined->starts[part]];
}

static void name_of(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const HryEntry *entry = entry_of(ctx, i);
    *name = entry->name;
    *len = entry->name_len;
}

static HurrayStatus check_names(const HryModel *model, size_t first, const HryLimits *limits, uint64_t expected, HurrayError *error) {
    size_t parts = model->source_count - first;
    uint64_t total = 0;
    uint64_t *starts = hry_alloc_array(&model->allocator, parts, sizeof *starts);
    HryNames names;
    if (!starts) return hry_fail_memory(error, "the parts of a set", parts * sizeof *starts);
    for (size_t i = 0; i < parts; i++) {
        starts[i] = total;
        total += model->sources[first + i].catalogue->entry_count;
    }
    Joined joined = {model, first, starts};
    HurrayStatus status = total ? hry_import_check_count(total - 1, limits, error) : HURRAY_OK;
    if (status == HURRAY_OK && expected != HURRAY_NONE && expected != total)
        status = fail_set(error, model->sources[first].path, strlen(model->sources[first].path), "split.tensors.count",
                          "the parts hold another number of tensors", expected, total);
    if (status == HURRAY_OK) {
        if (!hry_names_init(&names, &model->allocator, (size_t)total, name_of, &joined))
            status = hry_fail_memory(error, "the lookup of names", total * 4);
        for (uint64_t i = 0; i < total && status == HURRAY_OK; i++) {
            HryNamesAdd added = hry_names_add(&names, i, NULL);
            if (added == HRY_NAMES_NO_MEMORY) status = hry_fail_memory(error, "the lookup of names", total * 4);
            if (added != HRY_NAMES_DUPLICATE) continue;
            const HryEntry *entry = entry_of(&joined, i);
            status =
                hry_fail(error, HURRAY_ERR_DUPLICATE_NAME, "name", HRY_NO_OFFSET, "the same name stands twice, in two parts of the set");
            hry_error_set_tensor(error, entry->name, entry->name_len, i);
            const char *path = model->sources[first + part_of(&joined, i)].path;
            hry_error_set_source(error, path, strlen(path), (uint32_t)(first + part_of(&joined, i)));
        }
        hry_names_clear(&names);
    }
    hry_free_array(&model->allocator, starts, parts, sizeof *starts);
    return status;
}

static HurrayStatus add_others(HryModel *model, const char *path, const HryGgufSplit *split, const HryLimits *limits, HurrayError *error) {
    size_t len = strlen(path), first = model->source_count - 1;
    char *other = hry_alloc_raw(&model->allocator, len + 1);
    if (!other) return hry_fail_memory(error, "a path", len + 1);
    memcpy(other, path, len + 1);
    HurrayStatus status = HURRAY_OK;
    for (uint64_t number = 2; number <= split->count && status == HURRAY_OK; number++) {
        char digits[8];
        snprintf(digits, sizeof digits, "%05u", (unsigned)(number % 100000));
        memcpy(other + len - SUFFIX + 1, digits, 5);
        status = add_part(model, other, number, split->count, limits, error);
    }
    hry_free(&model->allocator, other, len + 1);
    if (status == HURRAY_OK) status = check_names(model, first, limits, split->tensors, error);
    return status == HURRAY_OK ? hry_model_join_kv(model, first, error) : status;
}

HurrayStatus hry_model_add_gguf(HryModel *model, const char *path, const void *label, size_t label_len, const HryOpened *opened,
                                const HryLimits *limits, HurrayError *error) {
    HryCatalogue *catalogue = NULL;
    HryGgufSplit split;
    HurrayStatus status = hry_gguf_open(&opened->transport, opened->size, limits, &model->allocator, &catalogue, &split, error);
    if (status != HURRAY_OK) {
        hry_error_set_source(error, label, label_len, (uint32_t)model->source_count);
        return status;
    }
    bool is_set = split.count != HURRAY_NONE && split.count > 1;
    if (is_set) {
        status = check_first(path, label, label_len, &split, error);
        if (status == HURRAY_OK) drop_split_keys(catalogue);
    }
    if (status == HURRAY_OK) status = hry_model_add(model, &opened->transport, catalogue, path, label, label_len, error);
    if (status != HURRAY_OK) {
        hry_catalogue_unref(catalogue);
        return status;
    }
    if (!is_set) return HURRAY_OK;
    status = add_others(model, path, &split, limits, error);
    if (status == HURRAY_OK) return HURRAY_OK;
    /* The caller keeps the transport on failure: it leaves the model again, where the rest is dropped as usual. */
    for (size_t i = 0; i < model->source_count; i++)
        if (model->sources[i].catalogue == catalogue) model->sources[i].transport.release = NULL;
    return status;
}
