#include "loader/loader.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "loader/targets.h"

HurrayStatus hry_fail_cancelled(HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_CANCELLED, NULL, HRY_NO_OFFSET,
                    "cancelled before it was done; nothing of it was kept, it can be begun again");
}

HurrayStatus hry_loader_leave(const HurrayLoader *loader, HurrayStatus status) {
    const HurrayError *error = &loader->handle.error;
    if (status == HURRAY_ERR_INVALID_REPORT && strcmp(error->field, "read_at") == 0) loader->self->unusable = true;
    return hry_handle_leave(&loader->self->handle, status);
}

HurrayStatus hry_loader_check_usable(HurrayLoader *loader) {
    if (!loader->unusable) return HURRAY_OK;
    return hry_fail(&loader->handle.error, HURRAY_ERR_UNUSABLE, NULL, HRY_NO_OFFSET,
                    "a transport reported more bytes than it was offered; destroy this loader and mend the transport");
}

HryLoaderSource *hry_loader_source_of(HurrayLoader *loader, uint64_t i) {
    uint32_t low = 0, high = loader->source_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (loader->sources[middle].first <= i)
            low = middle;
        else
            high = middle;
    }
    return &loader->sources[low]; /* the last that begins at or before i: those without tensors come before it */
}

const HryEntry *hry_loader_entry(HurrayLoader *loader, uint64_t i, HryLoaderSource **source) {
    HryLoaderSource *of = hry_loader_source_of(loader, i);
    const HryCatalogue *catalogue = of->model->catalogue;
    if (source) *source = of;
    return &catalogue->entries[hry_catalogue_in_write_order(catalogue, i - of->first)];
}

bool hry_loader_find(const HurrayLoader *loader, const void *name, size_t len, uint64_t *i) {
    if (loader->has_names) return hry_names_find(&loader->names, name, len, i);
    uint64_t entry;
    if (loader->source_count == 0 || !hry_catalogue_find(loader->sources[0].model->catalogue, name, len, &entry)) return false;
    *i = hry_catalogue_write_place(loader->sources[0].model->catalogue, entry);
    return true;
}

/* A label is escaped already. */
void hry_loader_blame_source(HurrayLoader *loader, uint32_t source, HurrayError *error) {
    size_t len = strlen(loader->sources[source].model->label);
    if (len >= sizeof error->source) len = sizeof error->source - 1;
    memcpy(error->source, loader->sources[source].model->label, len);
    error->source[len] = 0;
    error->source_index = source;
}

HurrayStatus hry_loader_blame(HurrayLoader *loader, uint64_t i, HurrayError *error) {
    HryLoaderSource *source;
    const HryEntry *entry = hry_loader_entry(loader, i, &source);
    hry_error_set_tensor(error, entry->name, entry->name_len, i);
    hry_loader_blame_source(loader, (uint32_t)(source - loader->sources), error);
    return error->code;
}

HurrayStatus hry_loader_note(HurrayLoader *loader, const HurrayError *note, HurrayError *error) {
    if (!hry_grow(&loader->allocator, (void **)&loader->notes, &loader->note_capacity, loader->note_count + 1, sizeof *loader->notes))
        return hry_fail_memory(error, "a note", sizeof *note);
    loader->notes[loader->note_count++] = *note;
    return HURRAY_OK;
}

static void tensor_name_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const HurrayLoader *loader = ctx;
    const HryEntry *entry = hry_loader_entry(loader->self, i, NULL);
    *name = entry->name;
    *len = entry->name_len;
}

static void kv_name_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const HurrayLoader *loader = ctx;
    *name = loader->kv[i].key;
    *len = loader->kv[i].key_len;
}

/* One lookup over all sources; the same name in two of them cannot be told apart, unless an index file has decided already. */
static HurrayStatus join_names(HurrayLoader *loader, HurrayError *error) {
    if (loader->source_count < 2) return HURRAY_OK;
    if (loader->tensor_count >= UINT32_MAX)
        return hry_fail(error, HURRAY_ERR_LIMIT, NULL, HRY_NO_OFFSET,
                        "the sources hold %llu tensors together, at most %u can be opened at once",
                        (unsigned long long)loader->tensor_count, UINT32_MAX - 1);
    if (!hry_names_init(&loader->names, &loader->allocator, (size_t)loader->tensor_count, tensor_name_at, loader))
        return hry_fail_memory(error, "the list of names", loader->tensor_count * 8);
    loader->has_names = true;
    for (uint64_t i = 0; i < loader->tensor_count; i++) {
        uint64_t other;
        if (!hry_loader_entry(loader, i, NULL)->name) continue;
        HryNamesAdd added = hry_names_add(&loader->names, i, &other);
        if (added == HRY_NAMES_NO_MEMORY) return hry_fail_memory(error, "the list of names", loader->tensor_count * 8);
        if (added == HRY_NAMES_DUPLICATE) {
            HryLoaderSource *first = hry_loader_source_of(loader, other);
            hry_fail(error, HURRAY_ERR_DUPLICATE_NAME, "name", HRY_NO_OFFSET,
                     "this name is also in %s; open the sources one by one, or give the index file that decides", first->model->label);
            return hry_loader_blame(loader, i, error);
        }
    }
    return HURRAY_OK;
}

static bool same_value(const HurrayKvValue *a, const HurrayKvValue *b) {
    if (a->kind != b->kind || a->element != b->element || a->data_len != b->data_len) return false;
    if (a->kind == HURRAY_KV_STRING || a->kind == HURRAY_KV_BYTES) return a->data_len == 0 || memcmp(a->data, b->data, a->data_len) == 0;
    if (a->kind != HURRAY_KV_ARRAY) return a->u64 == b->u64;
    size_t size = a->element == HURRAY_KV_BOOL ? 1 : 8;
    if (a->element == HURRAY_KV_ARRAY) return false;
    if (a->element == HURRAY_KV_STRING || a->element == HURRAY_KV_BYTES) {
        const HurrayIoSlice *x = a->data, *y = b->data;
        for (size_t i = 0; i < a->data_len; i++)
            if (x[i].len != y[i].len || (x[i].len && memcmp(x[i].ptr, y[i].ptr, x[i].len) != 0)) return false;
        return true;
    }
    return a->data_len == 0 || memcmp(a->data, b->data, a->data_len * size) == 0;
}

static HurrayStatus note_other_value(HurrayLoader *loader, uint32_t source, const HurrayKvEntry *entry, HurrayError *error) {
    HurrayError note;
    char key[120];
    hry_fail(&note, HURRAY_OK, "kv", HRY_NO_OFFSET, "key \"%s\" has another value here than in an earlier source; the first is kept",
             hry_escape(key, sizeof key, entry->key, entry->key_len));
    hry_loader_blame_source(loader, source, &note);
    return hry_loader_note(loader, &note, error);
}

/* The sums of one file say nothing about a set of files, so with several sources they are left out. */
static bool is_sums_key(const HurrayKvEntry *entry) {
    static const char key[] = "libhurray.crc32c";
    return entry->key_len == sizeof key - 1 && memcmp(entry->key, key, sizeof key - 1) == 0;
}

static HurrayStatus join_kv(HurrayLoader *loader, HurrayError *error) {
    size_t total = 0;
    if (loader->source_count < 2) return HURRAY_OK;
    for (uint32_t s = 0; s < loader->source_count; s++) total += loader->sources[s].model->catalogue->kv_count;
    if (total == 0) return HURRAY_OK;
    if (!hry_names_init(&loader->kv_names, &loader->allocator, total, kv_name_at, loader))
        return hry_fail_memory(error, "the joined metadata", total * 8);
    loader->has_kv_names = true;
    if (!hry_grow(&loader->allocator, (void **)&loader->kv, &loader->kv_capacity, total, sizeof *loader->kv))
        return hry_fail_memory(error, "the joined metadata", total * sizeof *loader->kv);
    for (uint32_t s = 0; s < loader->source_count; s++) {
        const HryCatalogue *catalogue = loader->sources[s].model->catalogue;
        for (size_t k = 0; k < catalogue->kv_count; k++) {
            const HurrayKvEntry *entry = &catalogue->kv[k];
            HurrayStatus status = HURRAY_OK;
            uint64_t other;
            if (is_sums_key(entry)) continue;
            loader->kv[loader->kv_count] = *entry;
            HryNamesAdd added = hry_names_add(&loader->kv_names, loader->kv_count, &other);
            if (added == HRY_NAMES_NO_MEMORY) return hry_fail_memory(error, "the joined metadata", total * 8);
            if (added == HRY_NAMES_ADDED)
                loader->kv_count++;
            else if (!same_value(&loader->kv[other].value, &entry->value))
                status = note_other_value(loader, s, entry, error);
            if (status != HURRAY_OK) return status;
        }
    }
    return HURRAY_OK;
}

static HurrayStatus join_sources(HurrayLoader *loader, HurrayError *error) {
    if (loader->model.source_count >= UINT32_MAX)
        return hry_fail(error, HURRAY_ERR_LIMIT, NULL, HRY_NO_OFFSET, "%zu sources are too many", loader->model.source_count);
    if (loader->model.source_count == 0) return HURRAY_OK;
    loader->sources = hry_alloc_array(&loader->allocator, loader->model.source_count, sizeof *loader->sources);
    if (!loader->sources) return hry_fail_memory(error, "the list of sources", loader->model.source_count * sizeof *loader->sources);
    loader->source_count = (uint32_t)loader->model.source_count;
    for (uint32_t s = 0; s < loader->source_count; s++) {
        HryLoaderSource *source = &loader->sources[s];
        source->model = &loader->model.sources[s];
        source->first = loader->tensor_count;
        source->count = source->model->catalogue->entry_count;
        loader->tensor_count += source->count; /* counts of things in memory: no wrap */
    }
    HurrayStatus status = loader->model.named_by_index || loader->source_count > 1 ? join_names(loader, error) : HURRAY_OK;
    return status == HURRAY_OK ? join_kv(loader, error) : status;
}

static HurrayStatus check_switch(HurrayError *error, const char *field, uint32_t value, uint32_t most) {
    if (value <= most) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, field, HRY_NO_OFFSET, "%s is %u, expected at most %u", field, value, most);
}

static HurrayStatus check_options(const HurrayLoaderOptions *o, HurrayError *error) {
    HurrayStatus s;
    if (o->flags & ~(HURRAY_LOAD_ARENA | HURRAY_LOAD_READ_ONLY))
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "flags", HRY_NO_OFFSET, "flags 0x%x holds a bit that this release does not know",
                        o->flags);
    if ((s = check_switch(error, "target", o->target, HURRAY_TARGET_DECLARED)) != HURRAY_OK) return s;
    if ((s = check_switch(error, "io", o->io, HURRAY_IO_MMAP)) != HURRAY_OK) return s;
    if ((s = check_switch(error, "direct", o->direct, HURRAY_OFF)) != HURRAY_OK) return s;
    if ((s = check_switch(error, "huge_pages", o->huge_pages, HURRAY_OFF)) != HURRAY_OK) return s;
    if ((s = check_switch(error, "pinned", o->pinned, HURRAY_OFF)) != HURRAY_OK) return s;
    if ((s = check_switch(error, "verify_data", o->verify_data, HURRAY_VERIFY_REQUIRED)) != HURRAY_OK) return s;
    if ((s = check_switch(error, "max_composite_depth", o->max_composite_depth, 64)) != HURRAY_OK) return s;
    if (o->sync_mode > HURRAY_SYNC_CONSUMER_STREAM)
        return hry_fail(error, HURRAY_ERR_INVALID_SYNC_MODE, "sync_mode", HRY_NO_OFFSET, "sync_mode is %u, expected 0, 1 or 2",
                        o->sync_mode);
    if (o->device_alignment && (!hry_is_pow2(o->device_alignment) || o->device_alignment < 256 || o->device_alignment > UINT32_C(1) << 30))
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "device_alignment", HRY_NO_OFFSET,
                        "device_alignment is %llu, expected a power of two from 256 on", (unsigned long long)o->device_alignment);
    if (o->device_index < -1)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "device_index", HRY_NO_OFFSET,
                        "device_index is %d, expected -1 (any) or an index", o->device_index);
    return HURRAY_OK;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise) { return value ? value : otherwise; }

static HurrayStatus take_options(HurrayLoader *loader, const HurrayLoaderOptions *options, HurrayError *error) {
    HurrayLoaderOptions *o = &loader->options;
    HurrayStatus status = check_options(o, error);
    if (status != HURRAY_OK) return status;
    (void)options;
    loader->limits = (HryLimits){
        .max_tensors = or_default(o->max_tensors, UINT64_MAX),
        .max_index_bytes = or_default(o->max_index_bytes, UINT64_C(1) << 30),
        .max_kv_bytes = or_default(o->max_kv_bytes, UINT64_C(256) << 20),
        .max_descriptor_bytes = or_default(o->max_descriptor_bytes, HRY_DEFAULT_MAX_DESCRIPTOR),
        .max_tensor_bytes = or_default(o->max_tensor_bytes, UINT64_MAX),
        .max_composite_depth = o->max_composite_depth ? o->max_composite_depth : 64,
    };
    if (o->progress_interval_ms == 0) o->progress_interval_ms = 100;
    if (o->pinned_cap == 0) o->pinned_cap = 256 * HRY_MIB;
    if (o->memory_cap == 0 && !hry_add_u64(o->pinned_cap, HRY_OTHER_MEMORY, &o->memory_cap)) o->memory_cap = UINT64_MAX;
    if (o->device_alignment == 0) o->device_alignment = 4096;
    if (o->device_memory) {
        HurrayDeviceMemory init = HURRAY_DEVICE_MEMORY_INIT;
        loader->device_memory = init;
        status = hry_options_read(&loader->device_memory, sizeof loader->device_memory, sizeof loader->device_memory, o->device_memory,
                                  "HurrayDeviceMemory", error);
        if (status != HURRAY_OK) return status;
        if (!loader->device_memory.allocate || !loader->device_memory.deallocate)
            return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "device_memory", HRY_NO_OFFSET,
                            "HurrayDeviceMemory needs both allocate and deallocate");
        o->device_memory = &loader->device_memory;
    }
    if (o->destination) {
        status = hry_destination_hold(o->destination, &loader->allocator, &loader->destination, error);
        if (status != HURRAY_OK) loader->destination.struct_size = 0;
        o->destination = status == HURRAY_OK ? &loader->destination : NULL;
    }
    o->allocator = NULL;
    return status;
}

/* Frees everything; the model's transports with it when `owned`. */
static void free_loader(HurrayLoader *loader) {
    HurrayAllocator allocator = loader->allocator;
    hry_loader_close_reading(loader);
    hry_loader_forget_prepared(loader);
    hry_targets_drop(loader);
    if (loader->destination.struct_size) hry_destination_drop(&loader->destination);
    if (loader->descriptors)
        for (uint64_t i = 0; i < loader->tensor_count; i++) hry_descriptor_unref(loader->descriptors[i]);
    hry_free_array(&allocator, loader->descriptors, (size_t)loader->tensor_count, sizeof *loader->descriptors);
    hry_free(&allocator, loader->selected, (size_t)loader->tensor_count);
    if (loader->has_names) hry_names_clear(&loader->names);
    if (loader->has_kv_names) hry_names_clear(&loader->kv_names);
    hry_free_array(&allocator, loader->kv, loader->kv_capacity, sizeof *loader->kv);
    hry_free_array(&allocator, loader->notes, loader->note_capacity, sizeof *loader->notes);
    hry_free_array(&allocator, loader->info_offsets, loader->info_offsets_capacity, sizeof *loader->info_offsets);
    hry_free_array(&allocator, loader->paths, loader->path_capacity, sizeof *loader->paths);
    for (uint32_t s = 0; s < loader->source_count; s++) {
        HryFamily *family = &loader->sources[s].family;
        hry_free_array(&allocator, family->parent, (size_t)loader->sources[s].count, sizeof *family->parent);
        hry_free_array(&allocator, family->torn, family->torn_capacity, sizeof *family->torn);
    }
    hry_free_array(&allocator, loader->sources, loader->source_count, sizeof *loader->sources);
    hry_model_close(&loader->model);
    hry_free(&allocator, loader, sizeof *loader);
}

/* After a failure the caller's transports must come back unreleased. One path may have become several sources, so places say nothing: what was
 * opened here has a path. */
static void keep_callers_transports(HurrayLoader *loader) {
    for (size_t s = 0; s < loader->model.source_count; s++)
        if (!loader->model.sources[s].path) loader->model.sources[s].transport.release = NULL;
}

static HurrayStatus open_loader(const char *path, const HurraySource *sources, size_t count, const HurrayLoaderOptions *options,
                                HurrayLoader **out, HurrayError *error) {
    HurrayLoaderOptions latest = HURRAY_LOADER_OPTIONS_INIT;
    HurrayAllocator allocator;
    HurrayStatus status = hry_options_read(&latest, sizeof latest, sizeof latest, options, "HurrayLoaderOptions", error);
    if (status == HURRAY_OK) status = hry_alloc_resolve(latest.allocator, &allocator, error);
    if (status != HURRAY_OK) return status;
    HurrayLoader *loader = hry_alloc(&allocator, sizeof *loader);
    if (!loader) return hry_fail_memory(error, "a loader", sizeof *loader);
    loader->self = loader;
    loader->allocator = allocator;
    loader->options = latest;
    hry_handle_init(&loader->handle);
    hry_error_clear(&loader->fault);
    atomic_init(&loader->cancelled, false);
    status = take_options(loader, options, error);
    if (status == HURRAY_OK)
        status = path ? hry_model_open_path(path, &loader->limits, &allocator, &loader->model, error)
                      : hry_model_open_sources(sources, count, &loader->limits, &allocator, &loader->model, error);
    if (status != HURRAY_OK) memset(&loader->model, 0, sizeof loader->model), loader->model.allocator = allocator;
    if (status == HURRAY_OK) {
        status = join_sources(loader, error);
        if (status != HURRAY_OK && !path) keep_callers_transports(loader);
    }
    if (status != HURRAY_OK) {
        free_loader(loader);
        return status;
    }
    *out = loader;
    return HURRAY_OK;
}

HurrayStatus hurray_loader_open(const char *path, const HurrayLoaderOptions *options, HurrayLoader **out, HurrayError *error) {
    HurrayError record;
    if (!path || !out) return hry_fail_null(error, "path or out");
    hry_error_clear(&record);
    HurrayStatus status = open_loader(path, NULL, 0, options, out, &record);
    return status == HURRAY_OK ? status : hry_error_export(error, &record);
}

HurrayStatus hurray_loader_open_sources(const HurraySource *sources, size_t count, const HurrayLoaderOptions *options, HurrayLoader **out,
                                        HurrayError *error) {
    HurrayError record;
    if ((!sources && count) || !out) return hry_fail_null(error, "sources or out");
    hry_error_clear(&record);
    HurrayStatus status = open_loader(NULL, sources, count, options, out, &record);
    return status == HURRAY_OK ? status : hry_error_export(error, &record);
}

HurrayStatus hurray_loader_destroy(HurrayLoader **loader) {
    if (!loader) return HURRAY_ERR_NULL_POINTER;
    if (*loader) free_loader(*loader);
    *loader = NULL;
    return HURRAY_OK;
}

HurrayStatus hurray_loader_cancel(HurrayLoader *loader) {
    if (!loader) return HURRAY_ERR_NULL_POINTER;
    atomic_store_explicit(&loader->cancelled, true, memory_order_relaxed);
    return HURRAY_OK;
}

const HurrayError *hurray_loader_last_error(const HurrayLoader *loader) { return loader ? &loader->handle.error : NULL; }
