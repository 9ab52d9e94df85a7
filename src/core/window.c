#include "core/window.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/ready_made.h"

#define DEVICE_ALIGNMENT 4096u
#define WAIT_MS 1000u /* one wait; then the destination is asked again */

HurrayStatus hry_destination_hold(const HurrayDestinationAlloc *user, const HurrayAllocator *allocator, HurrayDestinationAlloc *out,
                                  HurrayError *error) {
    HurrayDestinationAlloc held = HURRAY_DESTINATION_ALLOC_INIT;
    if (!user) {
        HurrayHostOptions options = HURRAY_HOST_OPTIONS_INIT;
        options.allocator = allocator;
        return hurray_destination_host(&options, out, error); /* the maker's own hold is ours */
    }
    HurrayStatus status = hry_options_read(&held, sizeof held, sizeof held, user, "HurrayDestinationAlloc", error);
    if (status != HURRAY_OK) return status;
    if (!held.allocate || !held.window || !held.freeze || !held.discard)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "destination", HRY_NO_OFFSET,
                        "a destination needs the callbacks allocate, window, freeze and discard; %s is missing",
                        !held.allocate ? "allocate"
                        : !held.window ? "window"
                        : !held.freeze ? "freeze"
                                       : "discard");
    if (held.retain) held.retain(held.ctx);
    *out = held;
    return HURRAY_OK;
}

void hry_destination_drop(HurrayDestinationAlloc *held) {
    if (held->release) held->release(held->ctx);
    memset(held, 0, sizeof *held);
}

HurrayStatus hry_destination_wait(const HurrayDestinationAlloc *held, HurrayError *error) {
    if (!held->wait)
        return hry_fail(
            error, HURRAY_ERR_UNSUPPORTED, "destination", HRY_NO_OFFSET,
            "the destination has nothing free and no wait callback, and this call does not spin; drive a core instead, or set wait");
    HurrayStatus status = held->wait(held->ctx, WAIT_MS);
    if (status == HURRAY_OK || status == HURRAY_WAIT) return HURRAY_OK;
    return hry_fail_callback(error, status, HURRAY_ERR_DEVICE, "destination's wait");
}

HurrayStatus hry_item_begin(HryItemDestinations *item, const HurrayDestinationAlloc *destination, HurrayDescriptor *descriptor,
                            const uint64_t *source_offsets, const HurrayDestinationRequest *template_, bool placed,
                            const HurrayAllocator *allocator, HurrayError *error) {
    HryItemBuffer *buffers = NULL;
    uint32_t count = descriptor->buffer_count;
    if (count) {
        buffers = hry_alloc_array(allocator, count, sizeof *buffers);
        if (!buffers) return hry_fail_memory(error, "the destinations of a tensor", count * sizeof *buffers);
    }
    for (uint32_t k = 0; k < count; k++) {
        buffers[k].byte_size = descriptor->buffers[k].byte_size;
        buffers[k].source_offset = source_offsets ? source_offsets[k] : HURRAY_NONE;
    }
    memset(item, 0, sizeof *item);
    item->destination = destination;
    item->allocator = *allocator;
    item->descriptor = hry_descriptor_ref(descriptor);
    item->buffers = buffers;
    item->count = count;
    item->request = *template_;
    item->placed = placed;
    return HURRAY_OK;
}

static void request_for(const HryItemDestinations *item, uint32_t k, HurrayDestinationRequest *request) {
    const HurrayBufferHandle *handle = &item->descriptor->buffers[k];
    *request = item->request;
    request->struct_size = sizeof *request;
    request->byte_size = handle->byte_size;
    request->source_offset = item->buffers[k].source_offset;
    request->buffer_index = k;
    request->descriptor = item->descriptor;
    request->into = item->into ? item->into[k].ptr : NULL;
    if (!item->placed) {
        request->device_tag = handle->device_tag;
        request->device_index = -1;
        request->sync_mode = handle->sync_mode;
        request->memory_class = handle->memory_class;
    }
    uint32_t least = item->request.alignment ? item->request.alignment : DEVICE_ALIGNMENT;
    request->alignment = handle->alignment;
    if (request->device_tag != HURRAY_DEVICE_CPU && request->alignment < least) request->alignment = least;
}

/* A callback of buffer k failed; the item goes with it unless it is kept to ask again. */
static HurrayStatus buffer_failed(HryItemDestinations *item, uint32_t k, HurrayStatus status, HurrayError *error) {
    error->buffer_index = k;
    if (!item->keep) hry_item_discard(item);
    return status;
}

/* Of our own destinations people know what they asked for, not their callbacks. */
static HurrayStatus allocate_failed(const HurrayDestinationAlloc *destination, HurrayStatus status, uint32_t k, uint64_t bytes,
                                    HurrayError *error) {
    bool own = hry_destination_is_host(destination) || hry_destination_is_in_place(destination);
    if (status != HURRAY_ERR_NO_MEMORY || !own) return hry_fail_callback(error, status, HURRAY_ERR_DEVICE, "destination's allocate");
    hry_fail(error, status, NULL, HRY_NO_OFFSET, "there is no memory for buffer %u (%llu bytes); free some, or take fewer tensors at once",
             (unsigned)k, (unsigned long long)bytes);
    error->cause = status;
    return status;
}

HurrayStatus hry_item_allocate(HryItemDestinations *item, HurrayError *error) {
    const HurrayDestinationAlloc *destination = item->destination;
    for (; item->allocated < item->count; item->allocated++) {
        uint32_t k = item->allocated;
        HryItemBuffer *buffer = &item->buffers[k];
        if (buffer->byte_size == 0) continue;
        HurrayDestinationRequest request;
        HurrayDestination out = {.struct_size = sizeof out};
        request_for(item, k, &request);
        HurrayStatus status = destination->allocate(destination->ctx, &request, &out);
        if (status == HURRAY_WAIT) return HURRAY_WAIT;
        if (status != HURRAY_OK) return buffer_failed(item, k, allocate_failed(destination, status, k, buffer->byte_size, error), error);
        if (!out.id)
            return buffer_failed(item, k,
                                 hry_fail(error, HURRAY_ERR_INVALID_REPORT, "id", HRY_NO_OFFSET,
                                          "the destination's allocate callback answered OK without an id"),
                                 error);
        buffer->asked = true;
        buffer->id = out.id;
        buffer->prefilled = out.flags & HURRAY_DESTINATION_PREFILLED;
        buffer->data = buffer->prefilled ? out.data : NULL;
    }
    return HURRAY_OK;
}

HurrayStatus hry_item_window(HryItemDestinations *item, uint32_t k, uint64_t offset, uint64_t len, HurrayWindow *out, HurrayError *error) {
    const HurrayDestinationAlloc *destination = item->destination;
    const HryItemBuffer *buffer = &item->buffers[k];
    uint64_t source = buffer->source_offset == HURRAY_NONE ? HURRAY_NONE : buffer->source_offset + offset;
    HurrayWindow window = {.struct_size = sizeof window, .offset = offset, .len = len, .source_offset = source};
    HurrayStatus status = destination->window(destination->ctx, buffer->id, &window);
    if (status == HURRAY_WAIT) return HURRAY_WAIT;
    if (status != HURRAY_OK)
        hry_fail_callback(error, status, HURRAY_ERR_DEVICE, "destination's window");
    else if (!window.ptr || window.len == 0 || window.len > len || window.offset != offset)
        hry_fail(error, HURRAY_ERR_INVALID_REPORT, "window", HRY_NO_OFFSET,
                 "the destination's window callback was asked for up to %llu bytes at %llu and answered %llu bytes at %llu, address %p",
                 (unsigned long long)len, (unsigned long long)offset, (unsigned long long)window.len, (unsigned long long)window.offset,
                 (void *)window.ptr);
    else {
        window.source_offset = source;
        *out = window;
        return HURRAY_OK;
    }
    error->buffer_index = k;
    return error->code;
}

HurrayStatus hry_item_commit(HryItemDestinations *item, uint32_t k, const HurrayWindow *window, HurrayError *error) {
    const HurrayDestinationAlloc *destination = item->destination;
    if (!destination->commit) return HURRAY_OK;
    HurrayStatus status = destination->commit(destination->ctx, item->buffers[k].id, window);
    if (status == HURRAY_OK) return HURRAY_OK;
    hry_fail_callback(error, status, HURRAY_ERR_DEVICE, "destination's commit");
    error->buffer_index = k;
    return error->code;
}

/* What a destination gave must be what was asked: it is what the caller's kernels rely on. */
static HurrayStatus check_frozen(const HryItemDestinations *item, uint32_t k, const HurrayBufferInfo *info, HurrayError *error) {
    HurrayDestinationRequest request;
    request_for(item, k, &request);
    uint32_t declared = item->descriptor->buffers[k].alignment;
    uint32_t wanted = info->device_tag == HURRAY_DEVICE_CPU ? declared : request.alignment;
    HurrayStatus status = hry_buffer_info_check(info, error);
    if (status != HURRAY_OK) return status;
    if (info->byte_size != request.byte_size)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "byte_size", HRY_NO_OFFSET,
                        "the destination froze %llu bytes where %llu were asked for", (unsigned long long)info->byte_size,
                        (unsigned long long)request.byte_size);
    if (info->alignment < wanted)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "alignment", HRY_NO_OFFSET,
                        "the destination gave memory aligned to %u bytes where %u were asked for", (unsigned)info->alignment,
                        (unsigned)wanted);
    if (info->sync_mode != HURRAY_SYNC_PRODUCER_SYNCED && info->sync_mode != request.sync_mode)
        return hry_fail(error, HURRAY_ERR_SYNC_MODE_MISMATCH, "sync_mode", HRY_NO_OFFSET,
                        "the destination answered sync mode %u where %u was asked for; only producer-synced (0) may take its place",
                        (unsigned)info->sync_mode, (unsigned)request.sync_mode);
    if (request.into && info->data != request.into)
        return hry_fail(error, HURRAY_ERR_INVALID_REPORT, "into", HRY_NO_OFFSET,
                        "the destination put the buffer elsewhere than into the memory given for it");
    if (!item->placed) return HURRAY_OK;
    if (info->device_tag != request.device_tag || info->memory_class != request.memory_class)
        return hry_fail(error, HURRAY_ERR_INVALID_TYPE, "device_tag", HRY_NO_OFFSET,
                        "the destination put the buffer on device tag %u, class %u where tag %u, class %u was asked for",
                        (unsigned)info->device_tag, (unsigned)info->memory_class, (unsigned)request.device_tag,
                        (unsigned)request.memory_class);
    if (request.device_index >= 0 && info->device_index != request.device_index)
        return hry_fail(error, HURRAY_ERR_INVALID_TYPE, "device_index", HRY_NO_OFFSET,
                        "the destination put the buffer on device %d where device %d was asked for", (int)info->device_index,
                        (int)request.device_index);
    return HURRAY_OK;
}

static HurrayStatus freeze_one(HryItemDestinations *item, uint32_t k, HurrayError *error) {
    const HurrayDestinationAlloc *destination = item->destination;
    HryItemBuffer *buffer = &item->buffers[k];
    HurrayBufferInfo info = HURRAY_BUFFER_INFO_INIT;
    HurrayStatus status = destination->freeze(destination->ctx, buffer->id, &info);
    if (status == HURRAY_WAIT) return HURRAY_WAIT;
    if (status != HURRAY_OK)
        return buffer_failed(item, k, hry_fail_callback(error, status, HURRAY_ERR_DEVICE, "destination's freeze"), error);
    if (info.sync_mode == HURRAY_SYNC_CONSUMER_STREAM) info.event.sync_handle = item->request.consumer_stream;
    buffer->info = info;
    buffer->frozen = true;
    buffer->asked = false;
    status = check_frozen(item, k, &info, error);
    if (status == HURRAY_OK) return HURRAY_OK;
    error->buffer_index = k;
    hry_item_discard(item);
    return status;
}

/* Empty buffers were never asked for: they say the same place as the others, or the one that was wanted. */
static void fill_empty(HryItemDestinations *item) {
    const HurrayBufferInfo *like = NULL;
    for (uint32_t k = 0; k < item->count && !like; k++)
        if (item->buffers[k].frozen) like = &item->buffers[k].info;
    for (uint32_t k = 0; k < item->count; k++) {
        HryItemBuffer *buffer = &item->buffers[k];
        HurrayDestinationRequest request;
        HurrayBufferInfo info = HURRAY_BUFFER_INFO_INIT;
        if (buffer->byte_size) continue;
        request_for(item, k, &request);
        info.alignment = item->descriptor->buffers[k].alignment;
        info.device_tag = like ? like->device_tag : request.device_tag;
        info.device_index = like ? like->device_index : request.device_index;
        info.memory_class = like ? like->memory_class : request.memory_class;
        buffer->info = info;
    }
}

/* All on one device in one class; *elsewhere: not where the descriptor says. */
static HurrayStatus check_together(const HryItemDestinations *item, bool *elsewhere, HurrayError *error) {
    *elsewhere = false;
    for (uint32_t k = 0; k < item->count; k++) {
        const HurrayBufferInfo *info = &item->buffers[k].info, *first = &item->buffers[0].info;
        const HurrayBufferHandle *handle = &item->descriptor->buffers[k];
        if (info->device_tag != first->device_tag || info->device_index != first->device_index ||
            info->memory_class != first->memory_class) {
            hry_fail(error, HURRAY_ERR_INVALID_TYPE, "device_tag", HRY_NO_OFFSET,
                     "the destination put buffer %u on device %u:%d, class %u and buffer 0 on %u:%d, class %u; a tensor lies in one place",
                     (unsigned)k, (unsigned)info->device_tag, (int)info->device_index, (unsigned)info->memory_class,
                     (unsigned)first->device_tag, (int)first->device_index, (unsigned)first->memory_class);
            error->buffer_index = k;
            return error->code;
        }
        *elsewhere |=
            info->device_tag != handle->device_tag || info->sync_mode != handle->sync_mode || info->memory_class != handle->memory_class;
    }
    return HURRAY_OK;
}

/* The descriptor that says where the tensor is now: one reference. */
static HurrayStatus delivered_descriptor(const HryItemDestinations *item, bool elsewhere, HurrayDescriptor **out, HurrayError *error) {
    HurrayBufferHandle handles[UINT8_MAX];
    if (!elsewhere) {
        *out = hry_descriptor_ref(item->descriptor);
        return HURRAY_OK;
    }
    for (uint32_t k = 0; k < item->count; k++) {
        handles[k] = item->descriptor->buffers[k];
        handles[k].device_tag = item->buffers[k].info.device_tag;
        handles[k].sync_mode = item->buffers[k].info.sync_mode;
        handles[k].memory_class = item->buffers[k].info.memory_class;
    }
    return hry_descriptor_with_buffers(item->descriptor, handles, &item->allocator, out, error);
}

static void item_end(HryItemDestinations *item) {
    hry_free_array(&item->allocator, item->buffers, item->count, sizeof *item->buffers);
    hry_descriptor_unref(item->descriptor);
    memset(item, 0, sizeof *item);
}

HurrayStatus hry_item_freeze(HryItemDestinations *item, HurrayTensor **out, HurrayError *error) {
    const HurrayBufferInfo *infos[UINT8_MAX];
    HurrayDescriptor *descriptor = NULL;
    HurrayStatus status;
    bool elsewhere;
    for (; item->frozen < item->count; item->frozen++) {
        if (item->buffers[item->frozen].byte_size == 0) continue;
        status = freeze_one(item, item->frozen, error);
        if (status != HURRAY_OK) return status;
    }
    fill_empty(item);
    status = check_together(item, &elsewhere, error);
    if (status != HURRAY_OK) {
        hry_item_discard(item);
        return status;
    }
    for (uint32_t k = 0; k < item->count; k++) infos[k] = &item->buffers[k].info;
    status = delivered_descriptor(item, elsewhere, &descriptor, error);
    if (status == HURRAY_OK) status = hry_tensor_adopt(descriptor, infos, item->count, &item->allocator, out, error);
    if (status == HURRAY_OK) {
        item_end(item);
        return HURRAY_OK;
    }
    hry_descriptor_unref(descriptor);
    if (!item->keep) hry_item_discard(item);
    return status;
}

void hry_item_discard(HryItemDestinations *item) {
    if (!item->descriptor) return;
    for (uint32_t k = 0; k < item->count; k++) {
        HryItemBuffer *buffer = &item->buffers[k];
        if (buffer->frozen)
            hry_buffer_info_release(&buffer->info);
        else if (buffer->asked)
            item->destination->discard(item->destination->ctx, buffer->id);
    }
    item_end(item);
}
