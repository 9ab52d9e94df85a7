/* The destination for HurrayPlacement.into: the caller's own host memory, lent for the load and given back in the tensor. */
#include "loader/targets.h"

typedef struct Lent {
    uint8_t *data;
    uint64_t byte_size;
    uint32_t alignment;
} Lent;

typedef struct Into {
    HurrayAllocator allocator;
} Into;

static HurrayStatus into_allocate(void *ctx, const HurrayDestinationRequest *request, HurrayDestination *out) {
    Into *into = ctx;
    Lent *lent = hry_alloc_raw(&into->allocator, sizeof *lent);
    if (!lent) return HURRAY_ERR_NO_MEMORY;
    *lent = (Lent){request->into, request->byte_size, request->alignment};
    out->id = lent;
    return HURRAY_OK;
}

static HurrayStatus into_window(void *ctx, void *id, HurrayWindow *window) {
    const Lent *lent = id;
    (void)ctx;
    window->ptr = lent->data + window->offset;
    return HURRAY_OK;
}

static void into_discard(void *ctx, void *id) {
    Into *into = ctx;
    hry_free(&into->allocator, id, sizeof(Lent));
}

static HurrayStatus into_freeze(void *ctx, void *id, HurrayBufferInfo *out) {
    const Lent *lent = id;
    out->data = lent->data;
    out->byte_size = lent->byte_size;
    out->alignment = lent->alignment;
    out->device_tag = HURRAY_DEVICE_CPU;
    into_discard(ctx, id);
    return HURRAY_OK;
}

static void into_release(void *ctx) {
    Into *into = ctx;
    HurrayAllocator allocator = into->allocator;
    hry_free(&allocator, into, sizeof *into);
}

HurrayStatus hry_destination_into(const HurrayAllocator *allocator, HurrayDestinationAlloc *out, HurrayError *error) {
    Into *into = hry_alloc(allocator, sizeof *into);
    if (!into) return hry_fail_memory(error, "a destination", sizeof *into);
    into->allocator = *allocator;
    *out = (HurrayDestinationAlloc){.struct_size = sizeof *out,
                                    .flags = HURRAY_DESTINATION_CONCURRENT,
                                    .ctx = into,
                                    .allocate = into_allocate,
                                    .window = into_window,
                                    .freeze = into_freeze,
                                    .discard = into_discard,
                                    .release = into_release};
    return HURRAY_OK;
}
