/* From a selection to what will be loaded: descriptors, composites, placement; all that can be known before payload is read. */
#include "loader/loader.h"

#include <string.h>

#include "base/checked.h"
#include "format/handle.h"
#include "hurray/cuda.h"

static const HryPrepared nothing;

void hry_loader_forget_prepared(HurrayLoader *loader) {
    HryPrepared *prepared = &loader->prepared;
    hry_free_array(&loader->allocator, prepared->tensors, prepared->capacity, sizeof *prepared->tensors);
    hry_free_array(&loader->allocator, prepared->ways, prepared->way_capacity, sizeof *prepared->ways);
    hry_free_array(&loader->allocator, prepared->into, prepared->into_capacity, sizeof *prepared->into);
    *prepared = nothing;
}

static HurrayStatus check_composites(HurrayLoader *loader, HurrayError *error) {
    for (uint32_t s = 0; s < loader->source_count; s++) {
        HryLoaderSource *source = &loader->sources[s];
        HurrayStatus status = hry_loader_know_family(loader, source, error);
        if (status != HURRAY_OK) return status;
        for (uint64_t i = source->first; i < source->first + source->count; i++) {
            HurrayDescriptor *descriptor;
            if ((loader->selected && !loader->selected[i]) || hry_loader_entry(loader, i, NULL)->data_length != 0) continue;
            status = hry_loader_describe(loader, i, &descriptor, error);
            if (status == HURRAY_OK && hry_descriptor_is_head(descriptor)) status = hry_loader_check_composite(loader, i, error);
            if (status != HURRAY_OK) return status;
        }
    }
    return HURRAY_OK;
}

/* Do the buffers lie inside the source? Importers and the index check most of it; a file may have shrunk, a header may lie. */
static HurrayStatus check_extent(HurrayLoader *loader, uint64_t i, const HurrayDescriptor *descriptor, uint64_t *bytes,
                                 HurrayError *error) {
    HryLoaderSource *source;
    const HryEntry *entry = hry_loader_entry(loader, i, &source);
    uint64_t size = source->model->catalogue->byte_size;
    *bytes = 0;
    for (uint32_t k = 0; k < descriptor->buffer_count; k++) {
        uint64_t len = descriptor->buffers[k].byte_size, offset = hry_loader_buffer_offset(loader, i, descriptor, k);
        *bytes += len; /* does not wrap: describe has summed them */
        if (len == 0 || hry_byte_source_needed(entry)) continue;
        if (offset == HURRAY_NONE || !hry_range_inside(offset, len, size)) {
            hry_fail(error, HURRAY_ERR_TRUNCATED, "data_offset", offset,
                     "%llu bytes at offset %llu do not lie inside the source, which has %llu bytes", (unsigned long long)len,
                     (unsigned long long)offset, (unsigned long long)size);
            error->buffer_index = k;
            return hry_loader_blame(loader, i, error);
        }
    }
    return HURRAY_OK;
}

static HurrayStatus no_road(uint8_t tag, HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_NO_DEVICE, "device_tag", HRY_NO_OFFSET,
                    "there is no road to device tag %u in this library; give a destination of your own for it", tag);
}

/* A way that the caller asked for must exist before a byte is read. With the caller's own destination that is for it to say. */
static HurrayStatus check_way(const HurrayLoader *loader, const HryWay *way, HurrayError *error) {
    if (!hry_device_tag_is_legal(way->device_tag))
        return hry_fail(error, HURRAY_ERR_INVALID_TYPE, "device_tag", HRY_NO_OFFSET, "device tag %u is not one of the format",
                        way->device_tag);
    if (!hry_memory_class_fits(way->device_tag, way->memory_class))
        return hry_fail(error, HURRAY_ERR_INVALID_TYPE, "memory_class", HRY_NO_OFFSET, "memory class %u does not exist on device tag %u",
                        way->memory_class, way->device_tag);
    if (way->sync_mode > HURRAY_SYNC_CONSUMER_STREAM ||
        (way->device_tag == HURRAY_DEVICE_CPU && way->sync_mode != HURRAY_SYNC_PRODUCER_SYNCED))
        return hry_fail(error, HURRAY_ERR_INVALID_SYNC_MODE, "sync_mode", HRY_NO_OFFSET,
                        "sync mode %u is not legal on device tag %u; host memory is always producer-synced", way->sync_mode,
                        way->device_tag);
    if (loader->options.destination || way->device_tag == HURRAY_DEVICE_CPU) return HURRAY_OK;
    if (way->device_tag != HURRAY_DEVICE_CUDA) return no_road(way->device_tag, error);
    if (way->sync_mode == HURRAY_SYNC_CONSUMER_STREAM && !way->consumer_stream)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "consumer_stream", HRY_NO_OFFSET,
                        "consumer-stream needs a consumer_stream; the legacy default stream is 1, not NULL");
    if (way->memory_class == HURRAY_MEMORY_PEER)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "memory_class", HRY_NO_OFFSET,
                        "peer memory is another device's; load to that device instead");
    HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
    return hurray_device_info(HURRAY_DEVICE_CUDA, way->device_index < 0 ? 0 : way->device_index, 0, &info, error);
}

/* The first device that holds so many bytes, or -1. */
static int32_t device_with_room(uint64_t bytes) {
    uint32_t count = 0;
    HurrayError ignored;
    hry_error_clear(&ignored);
    if (hurray_device_count(HURRAY_DEVICE_CUDA, &count, &ignored) != HURRAY_OK) return -1;
    for (uint32_t d = 0; d < count; d++) {
        HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
        if (hurray_device_info(HURRAY_DEVICE_CUDA, (int32_t)d, HURRAY_DEVICE_FREE_BYTES, &info, &ignored) == HURRAY_OK &&
            info.free_bytes > bytes)
            return (int32_t)d;
    }
    return -1;
}

/* What the options say for every tensor; bytes: of the whole selection. */
static void default_way(const HurrayLoader *loader, uint64_t bytes, HryWay *way) {
    const HurrayLoaderOptions *o = &loader->options;
    *way = (HryWay){.placed = true, .device_index = -1};
    if (o->target == HURRAY_TARGET_DECLARED) {
        way->placed = false;
        return;
    }
    if (o->target == HURRAY_TARGET_HOST) {
        way->memory_class = o->memory_class;
        way->sync_mode = o->sync_mode;
        return;
    }
    way->device_tag = o->device_tag ? o->device_tag : HURRAY_DEVICE_CUDA;
    way->device_index = o->device_index;
    if (!o->destination && way->device_tag == HURRAY_DEVICE_CUDA && way->device_index < 0) way->device_index = device_with_room(bytes);
    if (o->target == HURRAY_TARGET_BEST && way->device_index < 0 && !o->destination) {
        *way = (HryWay){.placed = true, .device_index = -1};
        return;
    }
    way->sync_mode = o->sync_mode;
    way->memory_class = o->memory_class;
    way->consumer_stream = o->consumer_stream;
    way->copy_stream = o->copy_stream;
}

static bool same_way(const HryWay *a, const HryWay *b) {
    return a->device_tag == b->device_tag && a->sync_mode == b->sync_mode && a->memory_class == b->memory_class && a->placed == b->placed &&
           a->displaced == b->displaced && a->declared_tag == b->declared_tag && a->declared_class == b->declared_class &&
           a->device_index == b->device_index && a->consumer_stream == b->consumer_stream && a->copy_stream == b->copy_stream;
}

static HurrayStatus find_way(HurrayLoader *loader, const HryWay *way, uint32_t *out, HurrayError *error) {
    HryPrepared *prepared = &loader->prepared;
    for (size_t w = prepared->way_count; w-- > 0;)
        if (same_way(&prepared->ways[w], way)) {
            *out = (uint32_t)w;
            return HURRAY_OK;
        }
    HurrayStatus status = way->placed ? check_way(loader, way, error) : HURRAY_OK;
    if (status != HURRAY_OK) return status;
    if (!hry_grow(&loader->allocator, (void **)&prepared->ways, &prepared->way_capacity, prepared->way_count + 1, sizeof *prepared->ways))
        return hry_fail_memory(error, "the placement", sizeof *way);
    *out = (uint32_t)prepared->way_count;
    prepared->ways[prepared->way_count++] = *way;
    return HURRAY_OK;
}

static HurrayStatus take_into(HurrayLoader *loader, const HurrayDescriptor *descriptor, const HurrayPlacement *placement, HryPlaced *placed,
                              HurrayError *error) {
    HryPrepared *prepared = &loader->prepared;
    size_t count = placement->into_count;
    if (!placement->into && count == 0) return HURRAY_OK;
    if (!placement->into || count != descriptor->buffer_count)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "into_count", HRY_NO_OFFSET,
                        "memory was given for %zu buffers, the tensor has %u", count, descriptor->buffer_count);
    if (count == 0) return HURRAY_OK;
    for (uint32_t k = 0; k < count; k++) {
        const HurrayMemory *memory = &placement->into[k];
        const HurrayBufferHandle *handle = &descriptor->buffers[k];
        if (handle->byte_size == 0) continue;
        if (!memory->ptr || memory->len < handle->byte_size)
            return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "into", HRY_NO_OFFSET, "buffer %u has %llu bytes, memory was given for %zu",
                            k, (unsigned long long)handle->byte_size, memory->ptr ? memory->len : 0);
        if ((uintptr_t)memory->ptr % handle->alignment)
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "into", HRY_NO_OFFSET,
                            "buffer %u declares alignment %u, the memory given is at %p", k, handle->alignment, memory->ptr);
    }
    if (prepared->into_count + count >= UINT32_MAX || !hry_grow(&loader->allocator, (void **)&prepared->into, &prepared->into_capacity,
                                                                prepared->into_count + count, sizeof *prepared->into))
        return hry_fail_memory(error, "the placement", count * sizeof *prepared->into);
    memcpy(prepared->into + prepared->into_count, placement->into, count * sizeof *prepared->into);
    placed->into = (uint32_t)prepared->into_count + 1;
    prepared->into_count += count;
    return HURRAY_OK;
}

static void fill_placement(const HryWay *way, const HurrayDescriptor *descriptor, HurrayPlacement *placement) {
    *placement = (HurrayPlacement){.struct_size = sizeof *placement,
                                   .action = HURRAY_PLACE_LOAD,
                                   .device_index = way->device_index,
                                   .device_tag = way->device_tag,
                                   .sync_mode = way->sync_mode,
                                   .memory_class = way->memory_class,
                                   .consumer_stream = way->consumer_stream,
                                   .copy_stream = way->copy_stream};
    if (!way->placed && descriptor->buffer_count) {
        placement->device_tag = descriptor->buffers[0].device_tag;
        placement->sync_mode = descriptor->buffers[0].sync_mode;
        placement->memory_class = descriptor->buffers[0].memory_class;
    }
}

/* Asks the caller about one tensor. *way comes filled from the options. */
static HurrayStatus ask(HurrayLoader *loader, uint64_t i, const HurrayDescriptor *descriptor, HryWay *way, HryPlaced *placed, bool *load,
                        HurrayError *error) {
    HurrayTensorInfo info;
    HurrayPlacement placement, before;
    HurrayStatus status = hry_loader_fill_info(loader, i, &info, error);
    if (status != HURRAY_OK) return status;
    fill_placement(way, descriptor, &placement);
    before = placement;
    status = loader->options.place(loader->options.ctx, &info, &placement);
    if (status != HURRAY_OK) return hry_fail_callback(error, status, HURRAY_ERR_TRANSPORT, "place");
    if (placement.action > HURRAY_PLACE_SKIP)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "action", HRY_NO_OFFSET,
                        "the place callback set action %u, expected load (0) or skip (1)", placement.action);
    *load = placement.action == HURRAY_PLACE_LOAD;
    if (!*load) return HURRAY_OK;
    placed->user = placement.user;
    bool moved = placement.device_index != before.device_index || placement.device_tag != before.device_tag ||
                 placement.sync_mode != before.sync_mode || placement.memory_class != before.memory_class;
    way->placed |= moved;
    way->consumer_stream = placement.consumer_stream;
    way->copy_stream = placement.copy_stream;
    if (way->placed) {
        way->displaced = false;
        way->declared_tag = way->declared_class = 0;
        way->device_tag = placement.device_tag;
        way->device_index = placement.device_index;
        way->sync_mode = placement.sync_mode;
        way->memory_class = placement.memory_class;
        if (way->device_tag == HURRAY_DEVICE_CPU && !loader->options.destination) way->device_index = -1; /* there is one host */
    }
    return take_into(loader, descriptor, &placement, placed, error);
}

/* What the file says, as far as it can be had here: nobody asked for that device by name, so its absence is no failure. */
static void declared_way(const HurrayLoader *loader, const HurrayDescriptor *descriptor, HryWay *way) {
    HurrayError ignored;
    uint32_t count = 0;
    if (descriptor->buffer_count == 0) return;
    way->device_tag = descriptor->buffers[0].device_tag;
    way->memory_class = descriptor->buffers[0].memory_class;
    bool plain_host = way->device_tag == HURRAY_DEVICE_CPU && way->memory_class == HURRAY_MEMORY_STANDARD;
    if (plain_host || loader->options.destination) return;
    hry_error_clear(&ignored);
    bool cuda = way->device_tag == HURRAY_DEVICE_CUDA || way->device_tag == HURRAY_DEVICE_CPU;
    if (cuda && hurray_device_count(HURRAY_DEVICE_CUDA, &count, &ignored) == HURRAY_OK && count) return;
    way->displaced = true;
    way->declared_tag = way->device_tag;
    way->declared_class = way->memory_class;
    way->device_tag = HURRAY_DEVICE_CPU;
    way->memory_class = HURRAY_MEMORY_STANDARD;
}

static HurrayStatus place_one(HurrayLoader *loader, uint64_t i, const HryWay *otherwise, HurrayError *error) {
    HryPrepared *prepared = &loader->prepared;
    HurrayDescriptor *descriptor;
    HryPlaced placed = {.index = i};
    HryWay way = *otherwise;
    uint64_t bytes;
    bool load = true;
    HurrayStatus status = hry_loader_describe(loader, i, &descriptor, error);
    if (status == HURRAY_OK) status = check_extent(loader, i, descriptor, &bytes, error);
    if (status == HURRAY_OK && !way.placed) declared_way(loader, descriptor, &way);
    if (status == HURRAY_OK && loader->options.place) status = ask(loader, i, descriptor, &way, &placed, &load, error);
    if (status != HURRAY_OK || !load) return status;
    status = find_way(loader, &way, &placed.way, error);
    if (status != HURRAY_OK) return status;
    if (!hry_grow(&loader->allocator, (void **)&prepared->tensors, &prepared->capacity, prepared->count + 1, sizeof *prepared->tensors))
        return hry_fail_memory(error, "the selection", sizeof placed);
    prepared->tensors[prepared->count++] = placed;
    if (!hry_add_u64(prepared->payload_bytes, bytes, &prepared->payload_bytes)) prepared->payload_bytes = UINT64_MAX;
    return HURRAY_OK;
}

static uint64_t selected_bytes(HurrayLoader *loader) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < loader->tensor_count; i++)
        if (!loader->selected || loader->selected[i]) bytes += hry_loader_entry(loader, i, NULL)->data_length;
    return bytes;
}

static HurrayStatus prepare(HurrayLoader *loader, HurrayError *error) {
    HryWay way;
    HurrayStatus status = hry_loader_describe_many(loader, 0, loader->tensor_count, loader->selected, false, error);
    if (status == HURRAY_OK) status = check_composites(loader, error);
    if (status != HURRAY_OK) return status;
    default_way(loader, loader->options.target == HURRAY_TARGET_HOST ? 0 : selected_bytes(loader), &way);
    if (way.placed && !loader->options.place && (status = check_way(loader, &way, error)) != HURRAY_OK) return status;
    for (uint64_t i = 0; i < loader->tensor_count; i++) {
        if (loader->selected && !loader->selected[i]) continue;
        status = place_one(loader, i, &way, error);
        if (status == HURRAY_OK && hry_loader_is_cancelled(loader)) status = hry_fail_cancelled(error);
        if (status != HURRAY_OK)
            return error->tensor_index == HURRAY_NONE && status != HURRAY_ERR_CANCELLED ? hry_loader_blame(loader, i, error) : status;
    }
    return HURRAY_OK;
}

HurrayStatus hry_loader_prepare(HurrayLoader *loader, HurrayError *error) {
    if (loader->prepared.ready) return HURRAY_OK;
    HurrayStatus status = prepare(loader, error);
    if (status != HURRAY_OK)
        hry_loader_forget_prepared(loader);
    else
        loader->prepared.ready = true;
    return status;
}

HurrayStatus hurray_loader_plan(HurrayLoader *loader, uint8_t device_tag, int32_t device_index, uint64_t *bytes, uint64_t *buffers) {
    if (!loader || !bytes || !buffers) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    HurrayError *error = &loader->handle.error;
    status = hry_loader_check_usable(loader);
    if (status == HURRAY_OK) status = hry_loader_prepare(loader, error);
    if (status == HURRAY_OK) *bytes = *buffers = 0;
    for (size_t p = 0; status == HURRAY_OK && p < loader->prepared.count; p++) {
        const HryPlaced *placed = &loader->prepared.tensors[p];
        const HryWay *way = &loader->prepared.ways[placed->way];
        HurrayDescriptor *descriptor;
        status = hry_loader_describe(loader, placed->index, &descriptor, error);
        for (uint32_t k = 0; status == HURRAY_OK && k < descriptor->buffer_count; k++) {
            const HurrayBufferHandle *handle = &descriptor->buffers[k];
            uint8_t tag = way->device_tag;
            uint64_t padded;
            bool here = tag == device_tag && (tag == HURRAY_DEVICE_CPU || device_index < 0 || way->device_index == device_index);
            if (!here || handle->byte_size == 0) continue;
            if (!hry_align_up(handle->byte_size, hry_place_alignment(loader, tag, handle), &padded)) padded = handle->byte_size;
            if (!hry_add_u64(*bytes, padded, bytes)) *bytes = UINT64_MAX;
            ++*buffers;
        }
    }
    return hry_loader_leave(loader, status);
}
