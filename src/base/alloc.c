#include "base/alloc.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/options.h"

static void *libc_allocate(void *ctx, size_t size, size_t alignment) {
    (void)ctx;
    if (alignment <= alignof(max_align_t)) return malloc(size);
    void *memory = NULL;
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void libc_deallocate(void *ctx, void *memory, size_t size, size_t alignment) {
    (void)ctx, (void)size, (void)alignment;
    free(memory);
}

HurrayAllocator hry_alloc_default(void) {
    HurrayAllocator allocator = HURRAY_ALLOCATOR_INIT;
    allocator.allocate = libc_allocate;
    allocator.deallocate = libc_deallocate;
    return allocator;
}

HurrayStatus hry_alloc_resolve(const HurrayAllocator *user, HurrayAllocator *out, HurrayError *error) {
    HurrayAllocator allocator = hry_alloc_default();
    if (user) {
        HurrayStatus status = hry_options_read(&allocator, sizeof allocator, sizeof allocator, user, "HurrayAllocator", error);
        if (status != HURRAY_OK) return status;
        if (!allocator.allocate || !allocator.deallocate)
            return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "allocator", HRY_NO_OFFSET,
                            "HurrayAllocator needs both allocate and deallocate");
    }
    *out = allocator;
    return HURRAY_OK;
}

void *hry_alloc_raw(const HurrayAllocator *allocator, size_t size) {
    return size ? allocator->allocate(allocator->ctx, size, alignof(max_align_t)) : NULL;
}

void *hry_alloc(const HurrayAllocator *allocator, size_t size) {
    void *memory = hry_alloc_raw(allocator, size);
    return memory ? memset(memory, 0, size) : NULL;
}

void *hry_alloc_array(const HurrayAllocator *allocator, size_t count, size_t size) {
    size_t bytes;
    return hry_mul_size(count, size, &bytes) ? hry_alloc(allocator, bytes) : NULL;
}

void hry_free(const HurrayAllocator *allocator, void *memory, size_t size) {
    if (memory) allocator->deallocate(allocator->ctx, memory, size, alignof(max_align_t));
}

void hry_free_array(const HurrayAllocator *allocator, void *memory, size_t count, size_t size) {
    hry_free(allocator, memory, count * size);
}

bool hry_grow(const HurrayAllocator *allocator, void **memory, size_t *capacity, size_t need, size_t size) {
    if (need <= *capacity) return true;
    size_t wanted = *capacity + *capacity / 2, bytes;
    if (wanted < need) wanted = need;
    if (wanted < 8) wanted = 8;
    if (!hry_mul_size(wanted, size, &bytes)) return false;
    void *bigger = hry_alloc_raw(allocator, bytes);
    if (!bigger) return false;
    if (*memory) memcpy(bigger, *memory, *capacity * size);
    hry_free_array(allocator, *memory, *capacity, size);
    *memory = bigger;
    *capacity = wanted;
    return true;
}
