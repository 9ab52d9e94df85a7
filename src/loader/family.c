/* Composites: who is whose member, found once per source from the write order and the heads' member counts. */
#include "loader/loader.h"

#include "core/composite_check.h"

typedef struct Open {
    uint64_t head;
    uint32_t missing;
} Open;

typedef struct Stack {
    Open *open;
    size_t count, capacity;
} Stack;

static bool may_have_heads(const HryLoaderSource *source) {
    uint32_t format = source->model->catalogue->format;
    return source->count && (format == HURRAY_FORMAT_HRRY || format == HURRAY_FORMAT_STREAM);
}

static const HurrayDescriptor *known_descriptor(HurrayLoader *loader, uint64_t i) {
    const HryEntry *entry = hry_loader_entry(loader, i, NULL);
    if (entry->fault) return NULL;
    return loader->descriptors && loader->descriptors[i] ? loader->descriptors[i] : entry->descriptor;
}

/* Only an entry without data can be a head, so nothing is read in a file that has none. */
static HurrayStatus read_candidates(HurrayLoader *loader, const HryLoaderSource *source, bool *any, HurrayError *error) {
    size_t size = (size_t)loader->tensor_count;
    uint8_t *chosen = hry_alloc(&loader->allocator, size);
    HurrayStatus status = HURRAY_OK;
    if (!chosen) return hry_fail_memory(error, "finding composites", size);
    *any = false;
    for (uint64_t i = source->first; i < source->first + source->count; i++)
        if (hry_loader_entry(loader, i, NULL)->data_length == 0) chosen[i] = 1, *any = true;
    if (*any) status = hry_loader_describe_many(loader, source->first, source->count, chosen, true, error);
    if (status == HURRAY_OK && *any) {
        *any = false;
        for (uint64_t i = source->first; i < source->first + source->count && !*any; i++) {
            const HurrayDescriptor *descriptor = chosen[i] ? known_descriptor(loader, i) : NULL;
            *any = descriptor && hry_descriptor_is_head(descriptor);
        }
    }
    hry_free(&loader->allocator, chosen, size);
    return status;
}

static bool push(HurrayLoader *loader, Stack *stack, uint64_t head, uint32_t members) {
    if (!hry_grow(&loader->allocator, (void **)&stack->open, &stack->capacity, stack->count + 1, sizeof *stack->open)) return false;
    stack->open[stack->count++] = (Open){head, members};
    return true;
}

static HurrayStatus walk(HurrayLoader *loader, HryLoaderSource *source, Stack *stack, HurrayError *error) {
    HryFamily *family = &source->family;
    for (uint64_t p = 0; p < source->count; p++) {
        const HurrayDescriptor *descriptor =
            hry_loader_entry(loader, source->first + p, NULL)->data_length == 0 ? known_descriptor(loader, source->first + p) : NULL;
        family->parent[p] = HURRAY_NONE;
        if (stack->count) {
            family->parent[p] = stack->open[stack->count - 1].head;
            stack->open[stack->count - 1].missing--;
        }
        if (descriptor && hry_descriptor_is_head(descriptor) && descriptor->layout.member_count > 0 &&
            !push(loader, stack, source->first + p, descriptor->layout.member_count))
            return hry_fail_memory(error, "finding composites", sizeof(Open) * (stack->count + 1));
        while (stack->count && stack->open[stack->count - 1].missing == 0) stack->count--;
    }
    if (stack->count && !hry_grow(&loader->allocator, (void **)&family->torn, &family->torn_capacity, stack->count, sizeof *family->torn))
        return hry_fail_memory(error, "finding composites", sizeof *family->torn * stack->count);
    for (size_t t = 0; t < stack->count; t++)
        if (stack->open[t].missing) family->torn[family->torn_count++] = stack->open[t].head;
    return HURRAY_OK;
}

HurrayStatus hry_loader_know_family(HurrayLoader *loader, HryLoaderSource *source, HurrayError *error) {
    HryFamily *family = &source->family;
    Stack stack = {0};
    bool any = false;
    if (family->known) return HURRAY_OK;
    HurrayStatus status = may_have_heads(source) ? read_candidates(loader, source, &any, error) : HURRAY_OK;
    if (status == HURRAY_OK && any) {
        family->parent = hry_alloc_array(&loader->allocator, (size_t)source->count, sizeof *family->parent);
        family->torn_count = 0;
        status = family->parent ? walk(loader, source, &stack, error)
                                : hry_fail_memory(error, "finding composites", source->count * sizeof *family->parent);
        hry_free_array(&loader->allocator, stack.open, stack.capacity, sizeof *stack.open);
        if (status != HURRAY_OK) {
            hry_free_array(&loader->allocator, family->parent, (size_t)source->count, sizeof *family->parent);
            family->parent = NULL;
        }
    }
    family->known = status == HURRAY_OK;
    return status;
}

uint64_t hry_loader_parent(HurrayLoader *loader, uint64_t i) {
    const HryLoaderSource *source = hry_loader_source_of(loader, i);
    return source->family.parent ? source->family.parent[i - source->first] : HURRAY_NONE;
}

uint64_t hry_loader_family_end(HurrayLoader *loader, uint64_t head) {
    const HryLoaderSource *source = hry_loader_source_of(loader, head);
    uint64_t end = head + 1;
    if (!source->family.parent) return end;
    while (end < source->first + source->count) {
        uint64_t parent = source->family.parent[end - source->first];
        if (parent == HURRAY_NONE || parent < head) break;
        end++;
    }
    return end;
}

/* How many heads stand above and including this one. */
static uint32_t depth_of(HurrayLoader *loader, uint64_t i, uint32_t most) {
    uint32_t depth = 0;
    for (; i != HURRAY_NONE && depth <= most; i = hry_loader_parent(loader, i)) depth++;
    return depth;
}

static HurrayStatus check_level(HurrayLoader *loader, uint64_t head, uint64_t end, HurrayError *error) {
    const HurrayDescriptor *descriptor = known_descriptor(loader, head);
    HryCompositeCheck check = {0};
    HurrayStatus status = hry_composite_check_begin(&check, descriptor, 0, &loader->allocator, error);
    if (status != HURRAY_OK) return hry_loader_blame(loader, head, error);
    for (uint64_t i = head + 1; status == HURRAY_OK && i < end; i = hry_loader_family_end(loader, i)) {
        status = hry_composite_check_add(&check, known_descriptor(loader, i), error);
        if (status != HURRAY_OK) hry_loader_blame(loader, i, error);
    }
    if (status == HURRAY_OK) {
        status = hry_composite_check_end(&check, error);
        if (status != HURRAY_OK) hry_loader_blame(loader, head, error);
    }
    hry_composite_check_clear(&check);
    return status;
}

/* Heads with members missing stand in file order. */
static bool is_torn(const HryFamily *family, uint64_t head) {
    size_t low = 0, high = family->torn_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (family->torn[middle] < head)
            low = middle + 1;
        else
            high = middle;
    }
    return low < family->torn_count && family->torn[low] == head;
}

HurrayStatus hry_loader_check_family(HurrayLoader *loader, uint64_t head, HurrayError *error) {
    HryLoaderSource *source = hry_loader_source_of(loader, head);
    const HurrayDescriptor *descriptor = known_descriptor(loader, head);
    uint32_t most = loader->limits.max_composite_depth;
    if (depth_of(loader, head, most) > most)
        hry_fail(error, HURRAY_ERR_TOO_DEEP, "max_composite_depth", HRY_NO_OFFSET, "composites are nested deeper than %u heads", most);
    else if (descriptor && is_torn(&source->family, head)) {
        uint64_t end = hry_loader_family_end(loader, head), seen = 0;
        for (uint64_t i = head + 1; i < end; i = hry_loader_family_end(loader, i)) seen++;
        hry_fail_torn(error, seen, descriptor->layout.member_count);
    } else
        return HURRAY_OK;
    return hry_loader_blame(loader, head, error);
}

HurrayStatus hry_loader_check_composite(HurrayLoader *loader, uint64_t head, HurrayError *error) {
    HurrayStatus status = hry_loader_check_family(loader, head, error);
    return status == HURRAY_OK ? check_level(loader, head, hry_loader_family_end(loader, head), error) : status;
}
