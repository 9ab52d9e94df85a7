#include "loader/loader.h"

static HurrayStatus make_room(HurrayLoader *loader, HurrayError *error) {
    if (loader->selected || loader->tensor_count == 0) return HURRAY_OK;
    loader->selected = hry_alloc(&loader->allocator, (size_t)loader->tensor_count);
    return loader->selected ? HURRAY_OK : hry_fail_memory(error, "the selection", loader->tensor_count);
}

/* A head brings its members, whatever their names. */
static HurrayStatus select_one(HurrayLoader *loader, uint64_t i, HurrayError *error) {
    HurrayStatus status = hry_loader_know_family(loader, hry_loader_source_of(loader, i), error);
    if (status != HURRAY_OK) return status;
    for (uint64_t end = hry_loader_family_end(loader, i); i < end; i++) loader->selected[i] = 1;
    hry_loader_forget_prepared(loader);
    return HURRAY_OK;
}

static HurrayStatus not_found(HurrayLoader *loader, const char *what, const void *text, size_t len, HurrayError *error) {
    char escaped[136];
    return hry_fail(error, HURRAY_ERR_NOT_FOUND, "name", HRY_NO_OFFSET, "%s \"%s\" among the %llu tensors; list them to see their names",
                    what, hry_escape(escaped, sizeof escaped, text, len), (unsigned long long)loader->tensor_count);
}

/* A selection that turns out wrong must not be left half made, nor turn "everything" into "nothing". */
static void drop_if_fresh(HurrayLoader *loader, bool fresh) {
    if (!fresh) return;
    hry_free(&loader->allocator, loader->selected, (size_t)loader->tensor_count);
    loader->selected = NULL;
}

static HurrayStatus select_name(HurrayLoader *loader, const void *name, size_t len) {
    HurrayError *error = &loader->handle.error;
    bool fresh = !loader->selected;
    uint64_t i;
    if (!hry_loader_find(loader, name, len, &i)) return not_found(loader, "there is no", name, len, error);
    HurrayStatus status = make_room(loader, error);
    if (status == HURRAY_OK) status = select_one(loader, i, error);
    if (status != HURRAY_OK) drop_if_fresh(loader, fresh);
    return status;
}

static HurrayStatus select_glob(HurrayLoader *loader, const uint8_t *pattern, size_t len) {
    HurrayError *error = &loader->handle.error;
    HurrayStatus status = HURRAY_OK;
    bool fresh = !loader->selected, any = false;
    if (!hry_glob_valid(pattern, len))
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "pattern", HRY_NO_OFFSET,
                        "the pattern has a '[' without ']' or ends in a backslash; write \\[ for a bracket itself");
    status = make_room(loader, error);
    for (uint64_t i = 0; status == HURRAY_OK && i < loader->tensor_count; i++) {
        const HryEntry *entry = hry_loader_entry(loader, i, NULL);
        if (!entry->name || !hry_glob_match(pattern, len, entry->name, entry->name_len)) continue;
        any = true;
        status = select_one(loader, i, error);
    }
    if (status == HURRAY_OK && !any) status = not_found(loader, "nothing matches", pattern, len, error);
    if (status != HURRAY_OK) drop_if_fresh(loader, fresh);
    return status;
}

HurrayStatus hurray_loader_select_name(HurrayLoader *loader, const void *name, size_t len) {
    if (!loader || (!name && len)) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    return status == HURRAY_OK ? hry_loader_leave(loader, select_name(loader, name, len)) : status;
}

HurrayStatus hurray_loader_select_glob(HurrayLoader *loader, const void *pattern, size_t len) {
    if (!loader || (!pattern && len)) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    return status == HURRAY_OK ? hry_loader_leave(loader, select_glob(loader, pattern, len)) : status;
}

HurrayStatus hurray_loader_select_index(HurrayLoader *loader, uint64_t i) {
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    HurrayError *error = &loader->handle.error;
    if (i >= loader->tensor_count) {
        status = hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "index", HRY_NO_OFFSET, "tensor %llu of %llu", (unsigned long long)i,
                          (unsigned long long)loader->tensor_count);
    } else {
        bool fresh = !loader->selected;
        status = make_room(loader, error);
        if (status == HURRAY_OK) status = select_one(loader, i, error);
        if (status != HURRAY_OK) drop_if_fresh(loader, fresh);
    }
    return hry_loader_leave(loader, status);
}

HurrayStatus hurray_loader_select_clear(HurrayLoader *loader) {
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    drop_if_fresh(loader, true);
    hry_loader_forget_prepared(loader);
    return hry_loader_leave(loader, HURRAY_OK);
}
