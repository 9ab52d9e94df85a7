#include "import/model_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "driver/transport_call.h"
#include "import/arena.h"
#include "import/json.h"
#include "import/safetensors.h"
#include "import/sniff.h"

typedef struct Mapped {
    const uint8_t *name;
    size_t len;
    uint32_t file;
    bool found;
} Mapped;

typedef struct File {
    const char *name; /* NUL-terminated */
    size_t len;
    uint32_t number; /* as the index names them first */
} File;

typedef enum Where { AT_TOP, AT_ROOT, AT_VALUE, AT_MAP, AT_MAP_VALUE } Where;

typedef struct Index {
    const HurrayAllocator *allocator;
    const HryLimits *limits;
    HurrayError *error;
    HryCatalogue *holder; /* owns names */
    HryArena arena;
    Mapped *mapped;
    size_t count, capacity;
    File *files;
    size_t file_count, file_capacity;
    HryNames names, file_names;
    Where where;
    bool skipping, is_map, map_seen, metadata_seen;
    const uint8_t *key; /* a name whose file comes next */
    size_t key_len;
    uint32_t file_now; /* the shard that is being opened */
} Index;

static void mapped_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const Index *index = ctx;
    *name = index->mapped[i].name;
    *len = index->mapped[i].len;
}

static void file_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const Index *index = ctx;
    *name = (const uint8_t *)index->files[i].name;
    *len = index->files[i].len;
}

static bool fail_at(Index *x, const HryJsonEvent *event, const char *what) {
    hry_fail(x->error, HURRAY_ERR_INVALID_CONTAINER, "weight_map", event->offset, "%s", what);
    if (x->key) hry_error_set_tensor(x->error, x->key, x->key_len, HURRAY_NONE);
    return false;
}

static bool no_memory(Index *x) {
    hry_fail_memory(x->error, "the index", 0);
    return false;
}

/* Why a file name is refused; NULL: it is fine. */
static const char *name_fault(const uint8_t *name, size_t len) {
    if (len == 0) return "the file name is empty";
    if (memchr(name, 0, len)) return "the file name has a NUL byte";
    if (name[0] == '/') return "the file name is absolute; shards lie beside their index";
    for (size_t start = 0, i = 0; i <= len; i++) {
        if (i < len && name[i] != '/') continue;
        if (i - start == 2 && name[start] == '.' && name[start + 1] == '.')
            return "the file name has a part `..`; shards lie beside their index";
        start = i + 1;
    }
    return NULL;
}

/* The name without its empty parts and those that are `.`, so that a file has one name. */
static size_t plain_name(const uint8_t *name, size_t len, uint8_t *out) {
    size_t used = 0;
    for (size_t start = 0, i = 0; i <= len; i++) {
        if (i < len && name[i] != '/') continue;
        size_t part = i - start;
        if (part > 0 && !(part == 1 && name[start] == '.')) {
            if (used) out[used++] = '/';
            memcpy(out + used, name + start, part);
            used += part;
        }
        start = i + 1;
    }
    return used;
}

static bool on_file(Index *x, const HryJsonEvent *event) {
    if (event->kind != HRY_JSON_STRING) return fail_at(x, event, "the value is no string; expected a file name");
    const char *fault = name_fault(event->text, event->len);
    if (fault) return fail_at(x, event, fault);
    uint64_t file;
    if (!hry_names_find(&x->file_names, event->text, event->len, &file)) {
        uint8_t *name = hry_arena_take(&x->arena, event->len + 1);
        if (!name) return no_memory(x);
        size_t len = plain_name(event->text, event->len, name);
        if (len == 0) return fail_at(x, event, "the file name names the folder of the index, no file in it");
        name[len] = 0;
        if (!hry_names_find(&x->file_names, name, len, &file)) {
            if (!hry_grow(x->allocator, (void **)&x->files, &x->file_capacity, x->file_count + 1, sizeof *x->files)) return no_memory(x);
            file = x->file_count;
            x->files[x->file_count++] = (File){(const char *)name, len, (uint32_t)file};
            if (hry_names_add(&x->file_names, file, NULL) != HRY_NAMES_ADDED) return no_memory(x);
        }
    }
    if (!hry_grow(x->allocator, (void **)&x->mapped, &x->capacity, x->count + 1, sizeof *x->mapped)) return no_memory(x);
    x->mapped[x->count++] = (Mapped){x->key, x->key_len, (uint32_t)file, false};
    HryNamesAdd added = hry_names_add(&x->names, x->count - 1, NULL);
    if (added == HRY_NAMES_NO_MEMORY) return no_memory(x);
    if (added == HRY_NAMES_DUPLICATE) {
        hry_fail(x->error, HURRAY_ERR_DUPLICATE_NAME, "weight_map", event->offset, "the same name stands twice in the index");
        hry_error_set_tensor(x->error, x->key, x->key_len, HURRAY_NONE);
        return false;
    }
    x->key = NULL;
    x->where = AT_MAP;
    return true;
}

static bool is_key(const HryJsonEvent *event, const char *text) {
    return event->len == strlen(text) && memcmp(event->text, text, event->len) == 0;
}

static bool on_root(Index *x, const HryJsonEvent *event) {
    if (event->kind == HRY_JSON_MAP_END) return true;
    bool is_metadata = is_key(event, "metadata");
    x->is_map = is_key(event, "weight_map");
    if ((x->is_map && x->map_seen) || (is_metadata && x->metadata_seen)) return fail_at(x, event, "a key of the index stands twice");
    x->map_seen = x->map_seen || x->is_map;
    x->metadata_seen = x->metadata_seen || is_metadata;
    x->where = AT_VALUE;
    return true;
}

static bool on_value(Index *x, const HryJsonEvent *event) {
    x->where = AT_ROOT;
    if (x->is_map) {
        if (event->kind != HRY_JSON_MAP) return fail_at(x, event, "weight_map is no object of tensor names and file names");
        x->where = AT_MAP;
    } else {
        x->skipping = event->kind == HRY_JSON_MAP || event->kind == HRY_JSON_ARRAY;
    }
    return true;
}

static bool on_map(Index *x, const HryJsonEvent *event) {
    if (event->kind == HRY_JSON_MAP_END) {
        x->where = AT_ROOT;
        return true;
    }
    if (hry_import_check_count(x->count, x->limits, x->error) != HURRAY_OK) return false;
    x->key = hry_arena_copy(&x->arena, event->text, event->len);
    x->key_len = event->len;
    x->where = AT_MAP_VALUE;
    return x->key || no_memory(x);
}

static bool on_event(void *ctx, const HryJsonEvent *event) {
    Index *x = ctx;
    if (x->skipping) {
        bool is_end = event->kind == HRY_JSON_MAP_END || event->kind == HRY_JSON_ARRAY_END;
        if (is_end && event->depth == 1) x->skipping = false;
        return true;
    }
    switch (x->where) {
    case AT_TOP: x->where = AT_ROOT; return event->kind == HRY_JSON_MAP || fail_at(x, event, "the index is no object");
    case AT_ROOT: return on_root(x, event);
    case AT_VALUE: return on_value(x, event);
    case AT_MAP: return on_map(x, event);
    case AT_MAP_VALUE: return on_file(x, event);
    }
    return false;
}

static HurrayStatus parse_index(Index *x, const HryOpened *opened) {
    size_t len = (size_t)opened->size;
    uint8_t *text = hry_alloc_raw(x->allocator, len);
    if (!text) return hry_fail_memory(x->error, "the index", len);
    HurrayStatus status = hry_transport_read_exactly(&opened->transport, 0, text, len, x->error);
    if (status == HURRAY_OK) status = hry_json_parse(text, len, 0, "index", on_event, x, x->allocator, x->error);
    hry_free(x->allocator, text, len);
    if (status == HURRAY_OK && x->count == 0)
        return hry_fail(x->error, HURRAY_ERR_INVALID_CONTAINER, "weight_map", HRY_NO_OFFSET,
                        "the index's weight_map is empty: it names no file");
    return status;
}

static bool keep(void *ctx, const uint8_t *name, size_t len) {
    Index *x = ctx;
    uint64_t i;
    if (!hry_names_find(&x->names, name, len, &i) || x->mapped[i].file != x->file_now) return false;
    x->mapped[i].found = true;
    return true;
}

static HurrayStatus note_dropped(HryModel *model, const HryStFilter *filter, const char *path, HurrayError *error) {
    HurrayError note;
    if (filter->dropped == 0) return HURRAY_OK;
    hry_fail(&note, HURRAY_OK, "weight_map", HRY_NO_OFFSET,
             "%llu tensors of this shard are not mapped to it by the index and are left out; the first is `%s`",
             (unsigned long long)filter->dropped, filter->first_dropped);
    hry_error_set_source(&note, path, strlen(path), (uint32_t)model->source_count - 1);
    return hry_model_note(model, &note, error);
}

static HurrayStatus open_shard(Index *x, HryModel *model, const char *path, const File *file, HurrayError *error) {
    HryOpened opened;
    struct stat info;
    if (stat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        char quoted[200];
        return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "weight_map", HRY_NO_OFFSET,
                        "shard %s is missing; the index names it, all of its files must lie beside it",
                        hry_escape(quoted, sizeof quoted, file->name, file->len));
    }
    HurrayStatus status = hry_model_open_file(path, x->allocator, &opened, error);
    if (status != HURRAY_OK) return status;
    HryStFilter filter = {.keep = keep, .ctx = x};
    HryCatalogue *catalogue = NULL;
    x->file_now = file->number;
    if (opened.format != HURRAY_FORMAT_SAFETENSORS)
        status = hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "weight_map", HRY_NO_OFFSET, "a shard is no safetensors file");
    else
        status = hry_safetensors_open(&opened.transport, opened.size, x->limits, &filter, x->allocator, &catalogue, error);
    if (status == HURRAY_OK) status = hry_model_add(model, &opened.transport, catalogue, path, path, strlen(path), error);
    if (status == HURRAY_OK) return note_dropped(model, &filter, path, error);
    hry_error_set_source(error, path, strlen(path), (uint32_t)model->source_count);
    hry_catalogue_unref(catalogue);
    hry_transport_release(&opened.transport);
    return status;
}

static int compare_files(const void *left, const void *right) { return strcmp(((const File *)left)->name, ((const File *)right)->name); }

static const File *file_of(const Index *x, uint32_t number) {
    size_t i = 0;
    while (x->files[i].number != number) i++;
    return &x->files[i];
}

static HurrayStatus open_shards(Index *x, HryModel *model, const char *path, HurrayError *error) {
    qsort(x->files, x->file_count, sizeof *x->files, compare_files); /* the lookup by name is done with */
    for (size_t i = 0; i < x->file_count; i++) {
        size_t size;
        char *shard = hry_path_join(x->allocator, path, hry_path_folder(path), x->files[i].name, x->files[i].len, &size);
        if (!shard) return hry_fail_memory(error, "a path", size);
        HurrayStatus status = open_shard(x, model, shard, &x->files[i], error);
        hry_free(x->allocator, shard, size);
        if (status != HURRAY_OK) return status;
    }
    for (size_t i = 0; i < x->count; i++) {
        char quoted[200];
        const File *file = x->mapped[i].found ? NULL : file_of(x, x->mapped[i].file);
        if (!file) continue;
        hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "weight_map", HRY_NO_OFFSET,
                 "the index says that the tensor is in %s, but it is not there; the index or the file is of another version",
                 hry_escape(quoted, sizeof quoted, file->name, file->len));
        hry_error_set_tensor(error, x->mapped[i].name, x->mapped[i].len, HURRAY_NONE);
        return error->code;
    }
    return HURRAY_OK;
}

HurrayStatus hry_model_add_index(HryModel *model, const char *path, const HryOpened *opened, const HryLimits *limits, HurrayError *error) {
    Index x;
    size_t first = model->source_count;
    memset(&x, 0, sizeof x);
    x.allocator = &model->allocator;
    x.limits = limits;
    x.error = error;
    if (opened->size > limits->max_index_bytes)
        return hry_fail(error, HURRAY_ERR_LIMIT, "index", HRY_NO_OFFSET, "the index has %llu bytes, at most %llu are allowed here",
                        (unsigned long long)opened->size, (unsigned long long)limits->max_index_bytes);
    HurrayStatus status = hry_catalogue_new(x.allocator, &x.holder, error);
    if (status == HURRAY_OK) {
        x.arena = hry_arena(x.holder);
        if (!hry_names_init(&x.names, x.allocator, 0, mapped_at, &x) || !hry_names_init(&x.file_names, x.allocator, 0, file_at, &x))
            status = hry_fail_memory(error, "the index", 0);
    }
    if (status == HURRAY_OK) status = parse_index(&x, opened);
    if (status == HURRAY_OK) status = open_shards(&x, model, path, error);
    if (status == HURRAY_OK) status = hry_model_join_kv(model, first, error);
    if (status == HURRAY_OK)
        model->named_by_index = true;
    else if (error->source[0] == 0)
        hry_error_set_source(error, path, strlen(path), UINT32_MAX);
    hry_names_clear(&x.names);
    hry_names_clear(&x.file_names);
    hry_free_array(x.allocator, x.mapped, x.capacity, sizeof *x.mapped);
    hry_free_array(x.allocator, x.files, x.file_capacity, sizeof *x.files);
    hry_catalogue_unref(x.holder);
    return status;
}

/* ---- metadata of several files ---- */

typedef struct Keys {
    const HurrayKvEntry *entries;
} Keys;

static void key_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const Keys *keys = ctx;
    *name = keys->entries[i].key;
    *len = keys->entries[i].key_len;
}

static bool same_value(const HurrayKvValue *a, const HurrayKvValue *b) {
    if (a->kind != b->kind || a->element != b->element || a->data_len != b->data_len) return false;
    if (a->kind == HURRAY_KV_STRING || a->kind == HURRAY_KV_BYTES) return a->data_len == 0 || memcmp(a->data, b->data, a->data_len) == 0;
    return a->kind != HURRAY_KV_ARRAY && a->u64 == b->u64;
}

static HurrayStatus note_other_value(HryModel *model, size_t source, const HurrayKvEntry *entry, HurrayError *error) {
    HurrayError note;
    char quoted[120];
    const char *label = model->sources[source].path;
    hry_fail(&note, HURRAY_OK, "metadata", HRY_NO_OFFSET,
             "the metadata key `%s` has another value in an earlier file of the set, which counts",
             hry_escape(quoted, sizeof quoted, entry->key, entry->key_len));
    hry_error_set_source(&note, label, strlen(label), (uint32_t)source);
    return hry_model_note(model, &note, error);
}

HurrayStatus hry_model_join_kv(HryModel *model, size_t first, HurrayError *error) {
    size_t total = 0, used = 0;
    for (size_t i = first; i < model->source_count; i++) total += model->sources[i].catalogue->kv_count;
    if (total == 0) return HURRAY_OK;
    HurrayKvEntry *all = hry_alloc_array(&model->allocator, total, sizeof *all);
    HryNames names;
    Keys keys = {all};
    if (!all || !hry_names_init(&names, &model->allocator, total, key_at, &keys)) {
        hry_free_array(&model->allocator, all, total, sizeof *all);
        return hry_fail_memory(error, "joining metadata", total * sizeof *all);
    }
    HurrayStatus status = HURRAY_OK;
    for (size_t i = first; i < model->source_count && status == HURRAY_OK; i++) {
        HryCatalogue *catalogue = model->sources[i].catalogue;
        size_t kept = 0;
        for (size_t k = 0; k < catalogue->kv_count && status == HURRAY_OK; k++) {
            uint64_t other = 0;
            all[used] = catalogue->kv[k];
            HryNamesAdd added = hry_names_add(&names, used, &other);
            if (added == HRY_NAMES_NO_MEMORY)
                status = hry_fail_memory(error, "joining metadata", total * sizeof *all);
            else if (added == HRY_NAMES_ADDED)
                catalogue->kv[kept++] = all[used++];
            else if (!same_value(&all[other].value, &all[used].value))
                status = note_other_value(model, i, &all[used], error);
        }
        if (status == HURRAY_OK) catalogue->kv_count = kept;
    }
    hry_names_clear(&names);
    hry_free_array(&model->allocator, all, total, sizeof *all);
    return status;
}
