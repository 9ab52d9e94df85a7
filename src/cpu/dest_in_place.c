#include "cpu/in_place.h"

#include "base/checked.h"
#include "base/ready_made.h"
#include "cpu/transport.h"

typedef struct InPlace {
    HurrayAllocator allocator;
    atomic_size_t holds;
    HurrayDestinationAlloc host; /* for what does not lie aligned */
    size_t count;
    HryMapping *sources[]; /* NULL: none */
} InPlace;

/* A buffer in a mapping, or one of the host destination until that freezes it. */
typedef struct Place {
    HurrayAllocator allocator;
    HryMapping *mapping; /* NULL: host_id */
    void *host_id;
    const uint8_t *data;
    uint64_t byte_size;
    uint32_t alignment;
} Place;

static void place_free(Place *place) {
    HurrayAllocator allocator = place->allocator;
    if (place->mapping) hry_mapping_drop(place->mapping);
    hry_free(&allocator, place, sizeof *place);
}

/* Where the bytes already lie as they were asked for, or NULL. */
static const uint8_t *find_in_place(const InPlace *in_place, const HurrayDestinationRequest *request) {
    if (request->source_offset == HURRAY_NONE || request->source_index >= in_place->count) return NULL;
    const HryMapping *mapping = in_place->sources[request->source_index];
    if (!mapping || !hry_range_inside(request->source_offset, request->byte_size, mapping->len)) return NULL;
    const uint8_t *data = mapping->base + request->source_offset;
    return request->alignment > 1 && ((uintptr_t)data & (request->alignment - 1)) != 0 ? NULL : data;
}

static HurrayStatus in_place_allocate(void *ctx, const HurrayDestinationRequest *request, HurrayDestination *out) {
    InPlace *in_place = ctx;
    uint32_t alignment = request->alignment ? request->alignment : 1;
    if (!hry_is_pow2(alignment)) return HURRAY_ERR_INVALID_ARGUMENT;
    Place *place = hry_alloc(&in_place->allocator, sizeof *place);
    if (!place) return HURRAY_ERR_NO_MEMORY;
    place->allocator = in_place->allocator;
    place->data = find_in_place(in_place, request);
    if (place->data) {
        place->mapping = in_place->sources[request->source_index];
        hry_mapping_hold(place->mapping);
        place->byte_size = request->byte_size;
        place->alignment = alignment;
        out->flags |= HURRAY_DESTINATION_PREFILLED;
        out->data = place->data;
    } else {
        HurrayDestination inner = {.struct_size = sizeof inner};
        HurrayStatus status = in_place->host.allocate(in_place->host.ctx, request, &inner);
        if (status != HURRAY_OK) {
            place_free(place);
            return status;
        }
        place->host_id = inner.id;
    }
    out->id = place;
    return HURRAY_OK;
}

static HurrayStatus in_place_window(void *ctx, void *id, HurrayWindow *window) {
    InPlace *in_place = ctx;
    const Place *place = id;
    return place->mapping ? HURRAY_ERR_WRONG_STATE : in_place->host.window(in_place->host.ctx, place->host_id, window);
}

static void place_release(void *data, void *context) {
    (void)data;
    place_free(context);
}

static HurrayStatus in_place_freeze(void *ctx, void *id, HurrayBufferInfo *out) {
    InPlace *in_place = ctx;
    Place *place = id;
    if (!place->mapping) {
        HurrayStatus status = in_place->host.freeze(in_place->host.ctx, place->host_id, out);
        if (status == HURRAY_OK) place_free(place);
        return status;
    }
    out->flags |= HURRAY_BUFFER_READ_ONLY | HURRAY_BUFFER_IN_PLACE;
    out->data = (void *)(uintptr_t)place->data;
    out->byte_size = place->byte_size;
    out->alignment = place->alignment;
    out->device_tag = HURRAY_DEVICE_CPU;
    out->device_index = 0;
    out->sync_mode = HURRAY_SYNC_PRODUCER_SYNCED;
    out->memory_class = HURRAY_MEMORY_STANDARD;
    out->release = place_release;
    out->release_context = place;
    return HURRAY_OK;
}

static void in_place_discard(void *ctx, void *id) {
    InPlace *in_place = ctx;
    Place *place = id;
    if (!place->mapping) in_place->host.discard(in_place->host.ctx, place->host_id);
    place_free(place);
}

static void in_place_retain(void *ctx) { atomic_fetch_add_explicit(&((InPlace *)ctx)->holds, 1, memory_order_relaxed); }

static size_t in_place_size(size_t count) { return sizeof(InPlace) + count * sizeof(HryMapping *); }

static void in_place_release(void *ctx) {
    InPlace *in_place = ctx;
    if (atomic_fetch_sub_explicit(&in_place->holds, 1, memory_order_acq_rel) != 1) return;
    HurrayAllocator allocator = in_place->allocator;
    hurray_destination_release(&in_place->host);
    for (size_t i = 0; i < in_place->count; i++)
        if (in_place->sources[i]) hry_mapping_drop(in_place->sources[i]);
    hry_free(&allocator, in_place, in_place_size(in_place->count));
}

bool hry_destination_is_in_place(const HurrayDestinationAlloc *destination) { return destination->release == in_place_release; }

HurrayStatus hry_destination_in_place(HryMapping *const *sources, size_t count, const HurrayHostOptions *host,
                                      const HurrayAllocator *allocator, HurrayDestinationAlloc *out, HurrayError *error) {
    HurrayHostOptions host_options = HURRAY_HOST_OPTIONS_INIT;
    size_t bytes;
    if (!hry_mul_size(count, sizeof(HryMapping *), &bytes) || !hry_add_size(bytes, sizeof(InPlace), &bytes))
        return hry_fail_memory(error, "an in-place destination", UINT64_MAX);
    InPlace *in_place = hry_alloc(allocator, bytes);
    if (!in_place) return hry_fail_memory(error, "an in-place destination", bytes);
    if (host) host_options = *host;
    host_options.allocator = allocator;
    hry_error_clear(error); /* its struct_size counts where it is handed on */
    HurrayStatus status = hurray_destination_host(&host_options, &in_place->host, error);
    if (status != HURRAY_OK) {
        hry_free(allocator, in_place, bytes);
        return status;
    }
    in_place->allocator = *allocator;
    atomic_init(&in_place->holds, 1);
    in_place->count = count;
    for (size_t i = 0; i < count; i++) {
        in_place->sources[i] = sources[i];
        if (sources[i]) hry_mapping_hold(sources[i]);
    }
    *out = (HurrayDestinationAlloc){.struct_size = sizeof *out,
                                    .flags = HURRAY_DESTINATION_CONCURRENT,
                                    .ctx = in_place,
                                    .retain = in_place_retain,
                                    .allocate = in_place_allocate,
                                    .window = in_place_window,
                                    .freeze = in_place_freeze,
                                    .discard = in_place_discard,
                                    .release = in_place_release};
    return HURRAY_OK;
}

HurrayStatus hurray_destination_in_place(const HurrayTransport *source, HurrayDestinationAlloc *out, HurrayError *error) {
    HurrayError local;
    HryTransportAccess access;
    if (!source || !out) return hry_fail_null(error, "source or out");
    hry_transport_access(source, &access);
    if (access.kind != HRY_TRANSPORT_MAPPING) {
        hry_fail(
            &local, HURRAY_ERR_INVALID_ARGUMENT, "source", HRY_NO_OFFSET,
            "the source's bytes lie nowhere in memory; in place needs a transport of hurray_transport_mapped or hurray_transport_memory");
        return hry_error_export(error, &local);
    }
    HurrayStatus status = hry_destination_in_place(&access.mapping, 1, NULL, &access.mapping->allocator, out, &local);
    return status == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &local);
}
