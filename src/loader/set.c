#include "loader/set.h"

static void name_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const HurrayTensorSet *set = ctx;
    *name = set->entries[i].name;
    *len = set->entries[i].name_len;
}

/* The place of a loader index in the set, by bisection, or HURRAY_NONE. */
static uint64_t place_of(const HurrayTensorSet *set, uint64_t index) {
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->entries[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && set->entries[low].index == index ? low : HURRAY_NONE;
}

static HurrayStatus fill_entries(HurrayLoader *loader, HurrayTensorSet *set, HurrayError *error) {
    for (size_t p = 0; p < set->count; p++) {
        HrySetEntry *entry = &set->entries[p];
        HurrayDescriptor *descriptor;
        entry->index = loader->prepared.tensors[p].index;
        const HryEntry *known = hry_loader_entry(loader, entry->index, NULL);
        HurrayStatus status = hry_loader_describe(loader, entry->index, &descriptor, error);
        if (status != HURRAY_OK) return status;
        entry->name = known->name;
        entry->name_len = known->name_len;
        entry->is_head = hry_descriptor_is_head(descriptor);
        entry->member_count = entry->is_head ? descriptor->layout.member_count : 0;
    }
    for (size_t p = 0; p < set->count; p++) {
        HrySetEntry *entry = &set->entries[p];
        uint64_t parent = hry_loader_parent(loader, entry->index);
        entry->parent = parent == HURRAY_NONE ? HURRAY_NONE : place_of(set, parent);
        if (entry->is_head) {
            uint64_t members = hry_loader_family_end(loader, entry->index) - entry->index;
            entry->whole = members <= set->count - p && set->entries[p + members - 1].index == entry->index + members - 1;
        }
    }
    return HURRAY_OK;
}

HurrayStatus hry_set_new(HurrayLoader *loader, HurrayTensorSet **out, HurrayError *error) {
    HurrayTensorSet *set = hry_alloc(&loader->allocator, sizeof *set);
    HurrayStatus status = HURRAY_OK;
    if (!set) return hry_fail_memory(error, "the result", sizeof *set);
    set->allocator = loader->allocator;
    if (loader->prepared.count) {
        set->entries = hry_alloc_array(&loader->allocator, loader->prepared.count, sizeof *set->entries);
        if (!set->entries)
            status = hry_fail_memory(error, "the result", loader->prepared.count * sizeof *set->entries);
        else
            set->count = loader->prepared.count;
    }
    if (status == HURRAY_OK && loader->source_count) {
        set->catalogues = hry_alloc_array(&loader->allocator, loader->source_count, sizeof *set->catalogues);
        if (!set->catalogues)
            status = hry_fail_memory(error, "the result", loader->source_count * sizeof *set->catalogues);
        else
            set->catalogue_count = loader->source_count;
    }
    for (size_t s = 0; s < set->catalogue_count; s++) set->catalogues[s] = hry_catalogue_ref(loader->sources[s].model->catalogue);
    if (status == HURRAY_OK) status = fill_entries(loader, set, error);
    if (status == HURRAY_OK && set->count) {
        set->has_names = hry_names_init(&set->names, &loader->allocator, set->count, name_at, set);
        if (!set->has_names) status = hry_fail_memory(error, "the result's names", set->count * 8);
        for (size_t p = 0; status == HURRAY_OK && p < set->count; p++)
            if (set->entries[p].name && hry_names_add(&set->names, p, NULL) == HRY_NAMES_NO_MEMORY)
                status = hry_fail_memory(error, "the result's names", set->count * 8);
    }
    if (status != HURRAY_OK) {
        hry_set_destroy(set);
        return status;
    }
    *out = set;
    return HURRAY_OK;
}

void hry_set_destroy(HurrayTensorSet *set) {
    if (!set) return;
    HurrayAllocator allocator = set->allocator;
    for (size_t p = 0; p < set->count; p++) hurray_tensor_destroy(&set->entries[p].tensor);
    if (set->has_names) hry_names_clear(&set->names);
    for (size_t s = 0; s < set->catalogue_count; s++) hry_catalogue_unref(set->catalogues[s]);
    hry_free_array(&allocator, set->catalogues, set->catalogue_count, sizeof *set->catalogues);
    hry_free_array(&allocator, set->entries, set->count, sizeof *set->entries);
    hry_free(&allocator, set, sizeof *set);
}

HurrayStatus hurray_tensor_set_destroy(HurrayTensorSet **set) {
    if (!set) return HURRAY_ERR_NULL_POINTER;
    hry_set_destroy(*set);
    *set = NULL;
    return HURRAY_OK;
}

HurrayStatus hurray_tensor_set_count(const HurrayTensorSet *set, uint64_t *out) {
    if (!set || !out) return HURRAY_ERR_NULL_POINTER;
    *out = set->count;
    return HURRAY_OK;
}

HurrayStatus hurray_tensor_set_name(const HurrayTensorSet *set, uint64_t i, const uint8_t **name, size_t *len) {
    if (!set || !name || !len) return HURRAY_ERR_NULL_POINTER;
    if (i >= set->count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    *name = set->entries[i].name;
    *len = set->entries[i].name_len;
    return HURRAY_OK;
}

HurrayStatus hurray_tensor_set_find(const HurrayTensorSet *set, const void *name, size_t len, uint64_t *i) {
    if (!set || !i || (!name && len)) return HURRAY_ERR_NULL_POINTER;
    return set->has_names && hry_names_find(&set->names, name, len, i) ? HURRAY_OK : HURRAY_ERR_NOT_FOUND;
}

/* A place that deliver or take has emptied is WRONG_STATE, as in an item. */
HurrayStatus hurray_tensor_set_get(const HurrayTensorSet *set, uint64_t i, HurrayTensor **out) {
    if (!set || !out) return HURRAY_ERR_NULL_POINTER;
    if (i >= set->count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    if (!set->entries[i].tensor) return HURRAY_ERR_WRONG_STATE;
    *out = set->entries[i].tensor;
    return HURRAY_OK;
}

HurrayStatus hurray_tensor_set_take(HurrayTensorSet *set, uint64_t i, HurrayTensor **out) {
    HurrayStatus status = hurray_tensor_set_get(set, i, out);
    if (status == HURRAY_OK) set->entries[i].tensor = NULL;
    return status;
}

/* *end: one past the last place that belongs to the head at i. NOT_FOUND: members were not loaded, WRONG_STATE: some are gone. */
static HurrayStatus item_end(const HurrayTensorSet *set, uint64_t i, uint64_t *end) {
    *end = i + 1;
    if (!set->entries[i].tensor) return HURRAY_ERR_WRONG_STATE;
    if (!set->entries[i].is_head) return HURRAY_ERR_NOT_COMPOSITE;
    if (!set->entries[i].whole) return HURRAY_ERR_NOT_FOUND;
    for (; *end < set->count && set->entries[*end].parent != HURRAY_NONE && set->entries[*end].parent >= i; ++*end)
        if (!set->entries[*end].tensor) return HURRAY_ERR_WRONG_STATE;
    return HURRAY_OK;
}

HurrayStatus hurray_tensor_set_take_item(HurrayTensorSet *set, uint64_t i, HurrayItem **out) {
    HurrayError ignored;
    HurrayItem *item = NULL;
    if (!set || !out) return HURRAY_ERR_NULL_POINTER;
    if (i >= set->count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    uint64_t end, at = i;
    HurrayStatus status = item_end(set, i, &end);
    if (status != HURRAY_OK) return status;
    hry_error_clear(&ignored);
    status = hry_item_new(&set->allocator, &item, &ignored);
    for (; status == HURRAY_OK && at < end; at++) {
        const HrySetEntry *entry = &set->entries[at];
        HryItemNodeIn node = {.kind = entry->is_head ? HURRAY_NODE_COMPOSITE : HURRAY_NODE_TENSOR,
                              .member_count = entry->member_count,
                              .name = entry->name,
                              .name_len = entry->name_len,
                              .tensor = entry->tensor,
                              .parent = at == i ? HURRAY_NONE : entry->parent - i};
        status = hry_item_push(item, &node, &ignored);
        if (status != HURRAY_OK) break;
    }
    if (status != HURRAY_OK) { /* all or nothing: what was moved goes back */
        for (uint64_t k = i; k < at; k++) hurray_item_take_tensor(item, k - i, &set->entries[k].tensor);
        hurray_item_destroy(&item);
        return status;
    }
    for (uint64_t k = i; k < end; k++) set->entries[k].tensor = NULL;
    *out = item;
    return HURRAY_OK;
}
