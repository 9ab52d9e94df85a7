#include "core/catalogue.h"

#include <string.h>

#include "base/checked.h"

typedef struct HryBlock {
    struct HryBlock *next;
    size_t size; /* of the whole block, this header included */
    _Alignas(max_align_t) uint8_t bytes[];
} HryBlock;

HurrayStatus hry_catalogue_new(const HurrayAllocator *allocator, HryCatalogue **out, HurrayError *error) {
    HryCatalogue *catalogue = hry_alloc(allocator, sizeof *catalogue);
    if (!catalogue) return hry_fail_memory(error, "a catalogue", sizeof *catalogue);
    catalogue->allocator = *allocator;
    atomic_init(&catalogue->references, 1);
    *out = catalogue;
    return HURRAY_OK;
}

HryCatalogue *hry_catalogue_ref(HryCatalogue *catalogue) {
    atomic_fetch_add_explicit(&catalogue->references, 1, memory_order_relaxed);
    return catalogue;
}

void hry_catalogue_unref(HryCatalogue *catalogue) {
    if (!catalogue || atomic_fetch_sub_explicit(&catalogue->references, 1, memory_order_acq_rel) != 1) return;
    HurrayAllocator allocator = catalogue->allocator;
    for (size_t i = 0; i < catalogue->entry_count; i++) hry_descriptor_unref(catalogue->entries[i].descriptor);
    hry_free_array(&allocator, catalogue->entries, catalogue->entry_capacity, sizeof *catalogue->entries);
    hry_free_array(&allocator, catalogue->write_order, catalogue->entry_count, sizeof *catalogue->write_order);
    hry_names_clear(&catalogue->names);
    hry_free(&allocator, catalogue->name_bytes, catalogue->name_bytes_size);
    if (catalogue->kv_capacity) hry_free_array(&allocator, catalogue->kv, catalogue->kv_capacity, sizeof *catalogue->kv);
    hry_kv_clear(&catalogue->section);
    hry_free(&allocator, catalogue->kv_bytes, catalogue->kv_bytes_size);
    hry_sums_clear(&catalogue->sums);
    hry_free_array(&allocator, catalogue->foreign, catalogue->foreign_capacity, sizeof *catalogue->foreign);
    hry_free_array(&allocator, catalogue->faults, catalogue->fault_capacity, sizeof *catalogue->faults);
    hry_free_array(&allocator, catalogue->notes, catalogue->note_capacity, sizeof *catalogue->notes);
    for (HryBlock *block = catalogue->blocks, *next; block; block = next) {
        next = block->next;
        hry_free(&allocator, block, block->size);
    }
    hry_free(&allocator, catalogue, sizeof *catalogue);
}

void *hry_catalogue_block(HryCatalogue *catalogue, size_t size) {
    size_t whole;
    if (!hry_add_size(size, sizeof(HryBlock), &whole)) return NULL;
    HryBlock *block = hry_alloc_raw(&catalogue->allocator, whole);
    if (!block) return NULL;
    block->size = whole;
    block->next = catalogue->blocks;
    catalogue->blocks = block;
    return block->bytes;
}

HurrayStatus hry_catalogue_reserve(HryCatalogue *catalogue, uint64_t entries, HurrayError *error) {
    size_t bytes;
    if (entries >= UINT32_MAX - 1)
        return hry_fail(error, HURRAY_ERR_LIMIT, "entry_count", HRY_NO_OFFSET, "%llu tensors are more than this library holds (4294967293)",
                        (unsigned long long)entries);
    if (entries <= catalogue->entry_capacity) return HURRAY_OK;
    if (!hry_mul_size((size_t)entries, sizeof *catalogue->entries, &bytes))
        return hry_fail_memory(error, "the list of tensors", UINT64_MAX);
    HryEntry *room = hry_alloc_raw(&catalogue->allocator, bytes);
    if (!room) return hry_fail_memory(error, "the list of tensors", bytes);
    if (catalogue->entry_count) memcpy(room, catalogue->entries, catalogue->entry_count * sizeof *room);
    hry_free_array(&catalogue->allocator, catalogue->entries, catalogue->entry_capacity, sizeof *room);
    catalogue->entries = room;
    catalogue->entry_capacity = (size_t)entries;
    return HURRAY_OK;
}

/* One more element at the end of a growing array, or NO_MEMORY. */
#define PUSH(array, count, capacity, value, what)                                                                                          \
    do {                                                                                                                                   \
        if (!hry_grow(&catalogue->allocator, (void **)&catalogue->array, &catalogue->capacity, catalogue->count + 1,                       \
                      sizeof *catalogue->array))                                                                                           \
            return hry_fail_memory(error, what, (catalogue->count + 1) * sizeof *catalogue->array);                                        \
        catalogue->array[catalogue->count++] = *(value);                                                                                   \
        return HURRAY_OK;                                                                                                                  \
    } while (0)

HurrayStatus hry_catalogue_add(HryCatalogue *catalogue, const HryEntry *entry, HurrayError *error) {
    if (catalogue->entry_count >= UINT32_MAX - 2)
        return hry_fail(error, HURRAY_ERR_LIMIT, NULL, HRY_NO_OFFSET, "there are more tensors than this library holds (4294967293)");
    PUSH(entries, entry_count, entry_capacity, entry, "the list of tensors");
}

HurrayStatus hry_catalogue_add_kv(HryCatalogue *catalogue, const HurrayKvEntry *entry, HurrayError *error) {
    PUSH(kv, kv_count, kv_capacity, entry, "the list of metadata");
}

HurrayStatus hry_catalogue_add_note(HryCatalogue *catalogue, const HurrayError *note, HurrayError *error) {
    PUSH(notes, note_count, note_capacity, note, "the list of notes");
}

static HurrayStatus push_foreign(HryCatalogue *catalogue, const HryForeign *foreign, HurrayError *error) {
    PUSH(foreign, foreign_count, foreign_capacity, foreign, "the list of conversions");
}

static HurrayStatus push_fault(HryCatalogue *catalogue, const HurrayError *fault, HurrayError *error) {
    PUSH(faults, fault_count, fault_capacity, fault, "the list of faults");
}

HurrayStatus hry_catalogue_add_foreign(HryCatalogue *catalogue, const HryForeign *foreign, uint32_t *side, HurrayError *error) {
    HurrayStatus status = push_foreign(catalogue, foreign, error);
    if (status == HURRAY_OK) *side = (uint32_t)catalogue->foreign_count;
    return status;
}

HurrayStatus hry_catalogue_add_fault(HryCatalogue *catalogue, const HurrayError *fault, uint32_t *place, HurrayError *error) {
    HurrayStatus status = push_fault(catalogue, fault, error);
    if (status == HURRAY_OK) *place = (uint32_t)catalogue->fault_count;
    return status;
}

static void name_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const HryCatalogue *catalogue = ctx;
    *name = catalogue->entries[i].name;
    *len = catalogue->entries[i].name_len;
}

HurrayStatus hry_catalogue_index_names(HryCatalogue *catalogue, HurrayError *error) {
    if (catalogue->sorted) return HURRAY_OK;
    if (!hry_names_init(&catalogue->names, &catalogue->allocator, catalogue->entry_count, name_at, catalogue))
        return hry_fail_memory(error, "the lookup of names", catalogue->entry_count * sizeof(uint32_t));
    for (size_t i = 0; i < catalogue->entry_count; i++) {
        const HryEntry *entry = &catalogue->entries[i];
        uint64_t other = 0;
        if (!entry->name) continue;
        switch (hry_names_add(&catalogue->names, i, &other)) {
        case HRY_NAMES_ADDED: break;
        case HRY_NAMES_NO_MEMORY: return hry_fail_memory(error, "the lookup of names", catalogue->entry_count * sizeof(uint32_t));
        case HRY_NAMES_DUPLICATE:
            hry_fail(error, HURRAY_ERR_DUPLICATE_NAME, "name", HRY_NO_OFFSET,
                     "tensors %llu and %zu have the same name; names must be unique", (unsigned long long)other, i);
            hry_error_set_tensor(error, entry->name, entry->name_len, i);
            return error->code;
        }
    }
    return HURRAY_OK;
}

/* Merge sort of entry numbers by descriptor offset, stable, from `from` to `to` in runs of `run`. */
static void merge_pass(const HryEntry *entries, const uint32_t *from, uint32_t *to, size_t count, size_t run) {
    for (size_t start = 0; start < count;) {
        size_t middle = run < count - start ? start + run : count, end = run < count - middle ? middle + run : count;
        size_t left = start, right = middle;
        for (size_t at = start; at < end; at++) {
            bool take_left =
                left < middle && (right >= end || entries[from[left]].descriptor_offset <= entries[from[right]].descriptor_offset);
            to[at] = take_left ? from[left++] : from[right++];
        }
        start = end;
    }
}

HurrayStatus hry_catalogue_order(HryCatalogue *catalogue, HurrayError *error) {
    size_t count = catalogue->entry_count;
    bool ordered = true;
    for (size_t i = 1; i < count && ordered; i++)
        ordered = catalogue->entries[i - 1].descriptor_offset <= catalogue->entries[i].descriptor_offset;
    if (ordered) return HURRAY_OK;
    uint32_t *order = hry_alloc_array(&catalogue->allocator, count, sizeof *order);
    uint32_t *spare = hry_alloc_array(&catalogue->allocator, count, sizeof *spare);
    if (!order || !spare) {
        hry_free_array(&catalogue->allocator, order, count, sizeof *order);
        hry_free_array(&catalogue->allocator, spare, count, sizeof *spare);
        return hry_fail_memory(error, "the write order", count * 2 * sizeof *order);
    }
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    for (size_t run = 1; run < count; run *= 2) {
        merge_pass(catalogue->entries, order, spare, count, run);
        uint32_t *swap = order;
        order = spare;
        spare = swap;
    }
    hry_free_array(&catalogue->allocator, spare, count, sizeof *spare);
    catalogue->write_order = order;
    return HURRAY_OK;
}

HurrayStatus hry_catalogue_find_sums(HryCatalogue *catalogue, HurrayError *error) {
    uint64_t place;
    if (!hry_catalogue_find_kv(catalogue, HRY_SUMS_KEY, HRY_SUMS_KEY_LEN, &place)) return HURRAY_OK;
    return hry_sums_open(&catalogue->kv[place], catalogue->entry_count, &catalogue->allocator, &catalogue->sums, error);
}

void hry_catalogue_row(const HryCatalogue *catalogue, uint64_t i, HryIndexRow *out) {
    const HryEntry *entry = &catalogue->entries[i];
    *out = (HryIndexRow){.name = entry->name,
                         .name_len = entry->name_len,
                         .descriptor_offset = entry->descriptor_offset,
                         .descriptor_length = entry->descriptor_length,
                         .data_offset = entry->data_offset,
                         .data_length = entry->data_length};
}

bool hry_catalogue_find(const HryCatalogue *catalogue, const void *name, size_t len, uint64_t *i) {
    if (!catalogue->sorted) return hry_names_find(&catalogue->names, name, len, i);
    size_t low = 0, high = catalogue->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const HryEntry *entry = &catalogue->entries[middle];
        int order = hry_index_compare_names(entry->name, entry->name_len, name, len);
        if (order == 0) {
            *i = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool hry_catalogue_find_kv(const HryCatalogue *catalogue, const void *key, size_t len, uint64_t *i) {
    for (size_t k = 0; k < catalogue->kv_count; k++) {
        const HurrayKvEntry *entry = &catalogue->kv[k];
        if (entry->key_len == len && (len == 0 || memcmp(entry->key, key, len) == 0)) {
            *i = k;
            return true;
        }
    }
    return false;
}

uint64_t hry_catalogue_in_write_order(const HryCatalogue *catalogue, uint64_t p) {
    return catalogue->write_order ? catalogue->write_order[p] : p;
}

uint64_t hry_catalogue_write_place(const HryCatalogue *catalogue, uint64_t i) {
    if (!catalogue->write_order) return i;
    uint64_t offset = catalogue->entries[i].descriptor_offset;
    size_t low = 0, high = catalogue->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (catalogue->entries[catalogue->write_order[middle]].descriptor_offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + 1 < catalogue->entry_count && catalogue->write_order[low] != i) low++;
    return low;
}

bool hry_catalogue_buffer_offset(const HryCatalogue *catalogue, const HryEntry *entry, const HurrayDescriptor *descriptor, uint32_t k,
                                 uint64_t *out) {
    uint64_t offset = entry->data_offset;
    uint64_t alignment = catalogue->format == HURRAY_FORMAT_HRRY && catalogue->data_buffer_alignment ? catalogue->data_buffer_alignment : 1;
    for (uint32_t i = 0; i < k; i++)
        if (!hry_add_u64(offset, descriptor->buffers[i].byte_size, &offset) || !hry_align_up(offset, alignment, &offset)) return false;
    *out = offset;
    return true;
}

bool hry_catalogue_sum(const HryCatalogue *catalogue, uint64_t i, const HurrayDescriptor *descriptor, uint32_t k, uint32_t *out) {
    return hry_sums_find(&catalogue->sums, hry_catalogue_write_place(catalogue, i), descriptor->buffer_count, k, out);
}
