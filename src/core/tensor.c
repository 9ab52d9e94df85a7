#include "core/tensor.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "format/handle.h"

#define EVENT_TAKEN 1u
#define EVENT_ORDERED 2u

struct HurrayBuffer {
    HurrayAllocator allocator;
    HurrayBufferInfo info;
    _Atomic uint32_t event; /* EVENT_... */
    bool embedded;          /* lives in a tensor's block */
};

struct HurrayBufferList {
    HurrayAllocator allocator;
    HurrayBuffer **buffers;
    size_t count, capacity;
    bool embedded; /* a tensor's own: fixed */
};

struct HurrayTensor {
    HurrayAllocator allocator;
    atomic_uint references;
    size_t block_size;
    HurrayDescriptor *descriptor;
    HurrayBufferList list; /* its array and, after adopt, its buffers lie behind this struct */
};

struct HurrayItem {
    HurrayAllocator allocator;
    HurrayItemNode *nodes;
    size_t count, capacity;
};

/* ---- buffers ---- */

HurrayStatus hry_buffer_info_check(const HurrayBufferInfo *info, HurrayError *error) {
    if (!info->data && info->byte_size)
        return hry_fail(error, HURRAY_ERR_NULL_POINTER, "data", HRY_NO_OFFSET,
                        "a buffer of %llu bytes needs memory; only an empty one may be NULL", (unsigned long long)info->byte_size);
    if (info->byte_size > PTRDIFF_MAX)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "byte_size", HRY_NO_OFFSET,
                        "a buffer of %llu bytes does not fit the address space", (unsigned long long)info->byte_size);
    if (!hry_is_pow2(info->alignment) || (info->byte_size && info->alignment < 64))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "alignment", HRY_NO_OFFSET,
                        "the alignment is %u; it must be a power of two, and at least 64 unless the buffer is empty",
                        (unsigned)info->alignment);
    if ((uintptr_t)info->data & (info->alignment - 1u))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "data", HRY_NO_OFFSET, "the memory at %p is not aligned to %u bytes as declared",
                        info->data, (unsigned)info->alignment);
    if (!hry_device_tag_is_legal(info->device_tag) || !hry_memory_class_fits(info->device_tag, info->memory_class))
        return hry_fail(error, HURRAY_ERR_INVALID_TYPE, "device_tag", HRY_NO_OFFSET,
                        "device tag %u with memory class %u is no pair of the format", (unsigned)info->device_tag,
                        (unsigned)info->memory_class);
    if (info->sync_mode > HURRAY_SYNC_CONSUMER_STREAM)
        return hry_fail(error, HURRAY_ERR_INVALID_SYNC_MODE, "sync_mode", HRY_NO_OFFSET, "sync mode %u is not 0, 1 or 2",
                        (unsigned)info->sync_mode);
    if (info->device_tag == HURRAY_DEVICE_CPU && info->sync_mode != HURRAY_SYNC_PRODUCER_SYNCED)
        return hry_fail(error, HURRAY_ERR_INVALID_SYNC_MODE, "sync_mode", HRY_NO_OFFSET,
                        "a buffer in host memory (device tag 0) is always producer-synced, not mode %u", (unsigned)info->sync_mode);
    return HURRAY_OK;
}

static void release_event(const HurrayBufferInfo *info) {
    if (info->sync_mode == HURRAY_SYNC_EVENT && info->event.event_release_fn)
        info->event.event_release_fn(info->event.sync_handle, info->event.event_release_context);
}

void hry_buffer_info_release(const HurrayBufferInfo *info) {
    release_event(info);
    if (info->release) info->release(info->data, info->release_context);
}

static void buffer_init(HurrayBuffer *buffer, const HurrayBufferInfo *info, const HurrayAllocator *allocator, bool embedded) {
    buffer->allocator = *allocator;
    buffer->info = *info;
    buffer->info.struct_size = sizeof buffer->info;
    atomic_init(&buffer->event, 0);
    buffer->embedded = embedded;
}

/* Gives the memory back; the event only when nobody took it. */
static void buffer_close(HurrayBuffer *buffer) {
    if (!(atomic_load(&buffer->event) & EVENT_TAKEN)) release_event(&buffer->info);
    if (buffer->info.release) buffer->info.release(buffer->info.data, buffer->info.release_context);
    if (!buffer->embedded) {
        HurrayAllocator allocator = buffer->allocator;
        hry_free(&allocator, buffer, sizeof *buffer);
    }
}

HurrayStatus hry_buffer_new(const HurrayBufferInfo *info, const HurrayAllocator *allocator, HurrayBuffer **out, HurrayError *error) {
    HurrayStatus status = hry_buffer_info_check(info, error);
    if (status != HURRAY_OK) return status;
    HurrayBuffer *buffer = hry_alloc_raw(allocator, sizeof *buffer);
    if (!buffer) return hry_fail_memory(error, "a buffer handle", sizeof *buffer);
    buffer_init(buffer, info, allocator, false);
    *out = buffer;
    return HURRAY_OK;
}

const HurrayBufferInfo *hry_buffer_info(const HurrayBuffer *buffer) { return &buffer->info; }

bool hry_buffer_is_ordered(const HurrayBuffer *buffer) {
    return buffer->info.sync_mode != HURRAY_SYNC_EVENT || atomic_load(&buffer->event) != 0;
}

HurrayStatus hurray_buffer_new(const HurrayBufferInfo *info, const HurrayAllocator *allocator, HurrayBuffer **out, HurrayError *error) {
    HurrayError local;
    HurrayAllocator resolved;
    HurrayBufferInfo latest = HURRAY_BUFFER_INFO_INIT;
    hry_error_clear(&local);
    HurrayStatus status = !info || !out ? hry_fail(&local, HURRAY_ERR_NULL_POINTER, info ? "out" : "info", HRY_NO_OFFSET,
                                                   "hurray_buffer_new needs both an info and an out pointer")
                                        : hry_options_read(&latest, sizeof latest, sizeof latest, info, "HurrayBufferInfo", &local);
    if (status == HURRAY_OK) status = hry_alloc_resolve(allocator, &resolved, &local);
    if (status == HURRAY_OK) status = hry_buffer_new(&latest, &resolved, out, &local);
    return status == HURRAY_OK ? status : hry_error_export(error, &local);
}

HurrayStatus hurray_buffer_from_ptr(void *data, uint64_t byte_size, uint32_t alignment, uint8_t device_tag, uint8_t sync_mode,
                                    uint8_t memory_class, HurrayReleaseCallback release, void *release_context, HurrayBuffer **out_handle) {
    HurrayBufferInfo info = HURRAY_BUFFER_INFO_INIT;
    if (!out_handle) return HURRAY_ERR_NULL_POINTER;
    info.data = data;
    info.byte_size = byte_size;
    info.alignment = alignment;
    info.device_index = device_tag == HURRAY_DEVICE_CPU ? 0 : -1;
    info.device_tag = device_tag;
    info.sync_mode = sync_mode;
    info.memory_class = memory_class;
    info.release = release;
    info.release_context = release_context;
    return hurray_buffer_new(&info, NULL, out_handle, NULL);
}

HurrayStatus hurray_buffer_destroy(HurrayBuffer *buffer) {
    if (!buffer) return HURRAY_ERR_NULL_POINTER;
    if (!buffer->embedded) buffer_close(buffer); /* a tensor's own goes with the tensor */
    return HURRAY_OK;
}

#define BUFFER_ACCESSOR(name, type, expression)                                                                                            \
    HurrayStatus hurray_buffer_##name(const HurrayBuffer *buffer, type *out) {                                                             \
        if (!buffer || !out) return HURRAY_ERR_NULL_POINTER;                                                                               \
        *out = expression;                                                                                                                 \
        return HURRAY_OK;                                                                                                                  \
    }

BUFFER_ACCESSOR(data_ptr, void *, buffer->info.data)
BUFFER_ACCESSOR(byte_size, uint64_t, buffer->info.byte_size)
BUFFER_ACCESSOR(alignment, uint32_t, buffer->info.alignment)
BUFFER_ACCESSOR(device_tag, uint8_t, buffer->info.device_tag)
BUFFER_ACCESSOR(device_index, int32_t, buffer->info.device_index)
BUFFER_ACCESSOR(sync_mode, uint8_t, buffer->info.sync_mode)
BUFFER_ACCESSOR(memory_class, uint8_t, buffer->info.memory_class)
BUFFER_ACCESSOR(flags, uint32_t, buffer->info.flags)

HurrayStatus hurray_buffer_order(const HurrayBuffer *buffer, void *stream) {
    if (!buffer) return HURRAY_ERR_NULL_POINTER;
    const HurrayBufferInfo *info = &buffer->info;
    if (info->sync_mode == HURRAY_SYNC_PRODUCER_SYNCED) return HURRAY_OK;
    if (info->sync_mode == HURRAY_SYNC_CONSUMER_STREAM)
        return stream && stream == info->event.sync_handle ? HURRAY_OK : HURRAY_ERR_SYNC_MODE_MISMATCH;
    if (atomic_load(&buffer->event) & EVENT_TAKEN) return HURRAY_ERR_WRONG_STATE;
    if (!info->order) return HURRAY_ERR_UNSUPPORTED;
    HurrayStatus status = info->order(info->event.sync_handle, info->event.event_release_context, stream);
    if (status > 0) return HURRAY_ERR_DEVICE;
    /* The only change through a const handle, and atomic: reading accessors may run on several threads. */
    if (status == HURRAY_OK) atomic_fetch_or(&((HurrayBuffer *)(uintptr_t)buffer)->event, EVENT_ORDERED);
    return status;
}

HurrayStatus hurray_buffer_take_event(HurrayBuffer *buffer, HurraySyncEventPayload *out) {
    if (!buffer || !out) return HURRAY_ERR_NULL_POINTER;
    if (buffer->info.sync_mode != HURRAY_SYNC_EVENT) return HURRAY_ERR_SYNC_MODE_MISMATCH;
    if (!buffer->info.event.sync_handle && !buffer->info.event.event_release_fn) return HURRAY_ERR_NOT_FOUND;
    if (atomic_fetch_or(&buffer->event, EVENT_TAKEN) & EVENT_TAKEN) return HURRAY_ERR_WRONG_STATE;
    *out = buffer->info.event;
    return HURRAY_OK;
}

HurrayStatus hurray_buffer_handoff_producer_synced(const HurrayBuffer *buffer) {
    if (!buffer) return HURRAY_ERR_NULL_POINTER;
    return buffer->info.sync_mode == HURRAY_SYNC_PRODUCER_SYNCED ? HURRAY_OK : HURRAY_ERR_SYNC_MODE_MISMATCH;
}

HurrayStatus hurray_buffer_handoff_event(const HurrayBuffer *buffer, const HurraySyncEventPayload *payload) {
    if (!buffer || !payload) return HURRAY_ERR_NULL_POINTER;
    if (buffer->info.sync_mode != HURRAY_SYNC_EVENT) return HURRAY_ERR_SYNC_MODE_MISMATCH;
    if (!payload->sync_handle || !payload->event_release_fn) return HURRAY_ERR_NULL_POINTER;
    return payload->sync_handle_device_tag == buffer->info.device_tag ? HURRAY_OK : HURRAY_ERR_SYNC_MODE_MISMATCH;
}

HurrayStatus hurray_buffer_handoff_consumer_stream(const HurrayBuffer *buffer, const HurraySyncConsumerStreamPayload *payload) {
    if (!buffer || !payload) return HURRAY_ERR_NULL_POINTER;
    if (buffer->info.sync_mode != HURRAY_SYNC_CONSUMER_STREAM) return HURRAY_ERR_SYNC_MODE_MISMATCH;
    if (!payload->consumer_stream) return HURRAY_ERR_NULL_POINTER;
    return payload->consumer_stream_device_tag == buffer->info.device_tag ? HURRAY_OK : HURRAY_ERR_SYNC_MODE_MISMATCH;
}

/* ---- lists ---- */

HurrayStatus hurray_buffer_list_new(uint64_t capacity, HurrayBufferList **out_list) {
    if (!out_list) return HURRAY_ERR_NULL_POINTER;
    if (capacity > SIZE_MAX / sizeof(HurrayBuffer *)) return HURRAY_ERR_NO_MEMORY;
    HurrayAllocator allocator = hry_alloc_default();
    HurrayBufferList *list = hry_alloc(&allocator, sizeof *list);
    if (!list) return HURRAY_ERR_NO_MEMORY;
    list->allocator = allocator;
    if (capacity && !hry_grow(&allocator, (void **)&list->buffers, &list->capacity, (size_t)capacity, sizeof *list->buffers)) {
        hry_free(&allocator, list, sizeof *list);
        return HURRAY_ERR_NO_MEMORY;
    }
    *out_list = list;
    return HURRAY_OK;
}

HurrayStatus hurray_buffer_list_push(HurrayBufferList *list, HurrayBuffer *buffer) {
    if (!list || !buffer) return HURRAY_ERR_NULL_POINTER;
    if (list->embedded || buffer->embedded) return HURRAY_ERR_WRONG_STATE;
    if (!hry_grow(&list->allocator, (void **)&list->buffers, &list->capacity, list->count + 1, sizeof *list->buffers))
        return HURRAY_ERR_NO_MEMORY;
    list->buffers[list->count++] = buffer;
    return HURRAY_OK;
}

HurrayStatus hurray_buffer_list_len(const HurrayBufferList *list, uint64_t *out_len) {
    if (!list || !out_len) return HURRAY_ERR_NULL_POINTER;
    *out_len = list->count;
    return HURRAY_OK;
}

HurrayStatus hurray_buffer_list_get(const HurrayBufferList *list, uint64_t index, HurrayBuffer **out_buffer) {
    if (!list || !out_buffer) return HURRAY_ERR_NULL_POINTER;
    if (index >= list->count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    *out_buffer = list->buffers[index];
    return HURRAY_OK;
}

/* The list itself; its buffers have gone elsewhere. */
static void list_free(HurrayBufferList *list) {
    HurrayAllocator allocator = list->allocator;
    hry_free_array(&allocator, list->buffers, list->capacity, sizeof *list->buffers);
    hry_free(&allocator, list, sizeof *list);
}

HurrayStatus hurray_buffer_list_destroy(HurrayBufferList **list) {
    if (!list) return HURRAY_ERR_NULL_POINTER;
    HurrayBufferList *gone = *list;
    *list = NULL;
    if (!gone || gone->embedded) return HURRAY_OK; /* a tensor's own goes with the tensor */
    for (size_t i = 0; i < gone->count; i++) buffer_close(gone->buffers[i]);
    list_free(gone);
    return HURRAY_OK;
}

/* ---- tensors ---- */

/* One block: the struct, then count pointers, then (embedded) count buffers. */
static HurrayTensor *tensor_block(HurrayDescriptor *descriptor, size_t count, bool embedded, const HurrayAllocator *allocator,
                                  HurrayError *error) {
    size_t each = sizeof(HurrayBuffer *) + (embedded ? sizeof(HurrayBuffer) : 0), size;
    if (!hry_mul_size(count, each, &size) || !hry_add_size(size, sizeof(HurrayTensor), &size)) {
        hry_fail_memory(error, "a tensor", UINT64_MAX);
        return NULL;
    }
    HurrayTensor *tensor = hry_alloc_raw(allocator, size);
    if (!tensor) {
        hry_fail_memory(error, "a tensor", size);
        return NULL;
    }
    memset(tensor, 0, sizeof *tensor);
    tensor->allocator = *allocator;
    atomic_init(&tensor->references, 1);
    tensor->block_size = size;
    tensor->descriptor = descriptor;
    tensor->list.allocator = *allocator;
    tensor->list.embedded = true;
    tensor->list.count = tensor->list.capacity = count;
    tensor->list.buffers = (HurrayBuffer **)(void *)(tensor + 1);
    return tensor;
}

HurrayStatus hry_tensor_assemble(HurrayDescriptor *descriptor, HurrayBuffer *const *buffers, size_t count, const HurrayAllocator *allocator,
                                 HurrayTensor **out, HurrayError *error) {
    HurrayTensor *tensor = tensor_block(descriptor, count, false, allocator, error);
    if (!tensor) return error->code;
    for (size_t i = 0; i < count; i++) tensor->list.buffers[i] = buffers[i];
    *out = tensor;
    return HURRAY_OK;
}

HurrayStatus hry_tensor_adopt(HurrayDescriptor *descriptor, const HurrayBufferInfo *const *infos, size_t count,
                              const HurrayAllocator *allocator, HurrayTensor **out, HurrayError *error) {
    HurrayTensor *tensor = tensor_block(descriptor, count, true, allocator, error);
    if (!tensor) return error->code;
    HurrayBuffer *buffers = (HurrayBuffer *)(void *)(tensor->list.buffers + count);
    for (size_t i = 0; i < count; i++) {
        buffer_init(&buffers[i], infos[i], allocator, true);
        tensor->list.buffers[i] = &buffers[i];
    }
    *out = tensor;
    return HURRAY_OK;
}

HurrayTensor *hry_tensor_ref(HurrayTensor *tensor) {
    atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    return tensor;
}

HurrayDescriptor *hry_tensor_descriptor(const HurrayTensor *tensor) { return tensor->descriptor; }
size_t hry_tensor_buffer_count(const HurrayTensor *tensor) { return tensor->list.count; }
HurrayBuffer *hry_tensor_buffer(const HurrayTensor *tensor, size_t i) { return tensor->list.buffers[i]; }

/* Do the buffers fit the descriptor's table? Sizes and alignment must; where they are may differ (*elsewhere). */
static HurrayStatus check_fit(const HurrayDescriptor *descriptor, const HurrayBufferList *list, bool *elsewhere, HurrayError *error) {
    *elsewhere = false;
    if (list->count != descriptor->buffer_count)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "buffers", HRY_NO_OFFSET, "the descriptor has %u buffers, the list %zu",
                        (unsigned)descriptor->buffer_count, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const HurrayBufferInfo *info = &list->buffers[i]->info, *first = &list->buffers[0]->info;
        const HurrayBufferHandle *handle = &descriptor->buffers[i];
        HurrayStatus status = HURRAY_OK;
        if (info->byte_size != handle->byte_size)
            status = hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "byte_size", HRY_NO_OFFSET,
                              "buffer %zu has %llu bytes, the descriptor says %llu", i, (unsigned long long)info->byte_size,
                              (unsigned long long)handle->byte_size);
        else if (info->byte_size && (uintptr_t)info->data & (handle->alignment - 1u))
            status = hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "alignment", HRY_NO_OFFSET,
                              "buffer %zu at %p is not aligned to the %u bytes that the descriptor declares", i, info->data,
                              (unsigned)handle->alignment);
        else if (info->device_tag != first->device_tag || info->memory_class != first->memory_class)
            status = hry_fail(error, HURRAY_ERR_INVALID_TYPE, "device_tag", HRY_NO_OFFSET,
                              "buffer %zu lies on device %u, class %u; buffer 0 on device %u, class %u: all of a tensor share one", i,
                              (unsigned)info->device_tag, (unsigned)info->memory_class, (unsigned)first->device_tag,
                              (unsigned)first->memory_class);
        if (status != HURRAY_OK) {
            error->buffer_index = (uint32_t)i;
            return status;
        }
        *elsewhere |=
            info->device_tag != handle->device_tag || info->memory_class != handle->memory_class || info->sync_mode != handle->sync_mode;
    }
    return HURRAY_OK;
}

/* The descriptor as it is after delivery: the same bytes, another place. */
static HurrayStatus descriptor_moved(const HurrayDescriptor *descriptor, const HurrayBufferList *list, const HurrayAllocator *allocator,
                                     HurrayDescriptor **out, HurrayError *error) {
    HurrayBufferHandle handles[UINT8_MAX];
    for (size_t i = 0; i < list->count; i++) {
        const HurrayBufferInfo *info = &list->buffers[i]->info;
        handles[i] = descriptor->buffers[i];
        handles[i].device_tag = info->device_tag;
        handles[i].memory_class = info->memory_class;
        handles[i].sync_mode = info->sync_mode;
    }
    return hry_descriptor_with_buffers(descriptor, handles, allocator, out, error);
}

static HurrayStatus tensor_new(HurrayDescriptor *descriptor, HurrayBufferList *list, const HurrayAllocator *user, HurrayTensor **out,
                               HurrayError *error) {
    HurrayAllocator allocator;
    HurrayDescriptor *placed = NULL;
    bool elsewhere;
    if (!descriptor || !list || !out)
        return hry_fail(error, HURRAY_ERR_NULL_POINTER, "descriptor", HRY_NO_OFFSET,
                        "hurray_tensor_new needs a descriptor, a list and an out pointer");
    if (list->embedded) return hry_fail(error, HURRAY_ERR_WRONG_STATE, "buffers", HRY_NO_OFFSET, "this list belongs to another tensor");
    HurrayStatus status = hry_alloc_resolve(user, &allocator, error);
    if (status == HURRAY_OK) status = check_fit(descriptor, list, &elsewhere, error);
    if (status == HURRAY_OK && elsewhere) status = descriptor_moved(descriptor, list, &allocator, &placed, error);
    if (status != HURRAY_OK) return status;
    status = hry_tensor_assemble(placed ? placed : descriptor, list->buffers, list->count, &allocator, out, error);
    if (status != HURRAY_OK) {
        hry_descriptor_unref(placed);
        return status;
    }
    if (placed) hry_descriptor_unref(descriptor);
    list_free(list);
    return HURRAY_OK;
}

HurrayStatus hurray_tensor_new(HurrayDescriptor *descriptor, HurrayBufferList *buffers, const HurrayAllocator *allocator,
                               HurrayTensor **out, HurrayError *error) {
    HurrayError local;
    hry_error_clear(&local);
    HurrayStatus status = tensor_new(descriptor, buffers, allocator, out, &local);
    return status == HURRAY_OK ? status : hry_error_export(error, &local);
}

HurrayStatus hurray_tensor_descriptor(const HurrayTensor *tensor, const HurrayDescriptor **out) {
    if (!tensor || !out) return HURRAY_ERR_NULL_POINTER;
    *out = tensor->descriptor;
    return HURRAY_OK;
}

HurrayStatus hurray_tensor_buffers(const HurrayTensor *tensor, HurrayBufferList **out) {
    if (!tensor || !out) return HURRAY_ERR_NULL_POINTER;
    *out = &((HurrayTensor *)(uintptr_t)tensor)->list;
    return HURRAY_OK;
}

HurrayStatus hurray_tensor_destroy(HurrayTensor **tensor) {
    if (!tensor) return HURRAY_ERR_NULL_POINTER;
    HurrayTensor *gone = *tensor;
    *tensor = NULL;
    if (!gone || atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel) != 1) return HURRAY_OK;
    for (size_t i = 0; i < gone->list.count; i++) buffer_close(gone->list.buffers[i]);
    hry_descriptor_unref(gone->descriptor);
    HurrayAllocator allocator = gone->allocator;
    hry_free(&allocator, gone, gone->block_size);
    return HURRAY_OK;
}

/* ---- items ---- */

HurrayStatus hry_item_new(const HurrayAllocator *allocator, HurrayItem **out, HurrayError *error) {
    HurrayItem *item = hry_alloc(allocator, sizeof *item);
    if (!item) return hry_fail_memory(error, "an item", sizeof *item);
    item->allocator = *allocator;
    *out = item;
    return HURRAY_OK;
}

HurrayStatus hry_item_push(HurrayItem *item, const HryItemNodeIn *node, HurrayError *error) {
    uint8_t *name = NULL;
    if (!hry_grow(&item->allocator, (void **)&item->nodes, &item->capacity, item->count + 1, sizeof *item->nodes))
        return hry_fail_memory(error, "the nodes of an item", (item->count + 1) * sizeof *item->nodes);
    if (node->name && node->name_len) {
        name = hry_alloc_raw(&item->allocator, node->name_len);
        if (!name) return hry_fail_memory(error, "a node's name", node->name_len);
        memcpy(name, node->name, node->name_len);
    }
    HurrayItemNode *added = &item->nodes[item->count++];
    memset(added, 0, sizeof *added);
    added->kind = node->kind;
    added->member_count = node->member_count;
    added->name = name;
    added->name_len = name ? node->name_len : 0;
    added->tensor = node->tensor;
    added->parent = node->parent;
    return HURRAY_OK;
}

uint64_t hry_item_count(const HurrayItem *item) { return item->count; }
const HurrayItemNode *hry_item_at(const HurrayItem *item, uint64_t i) { return &item->nodes[i]; }

HurrayStatus hurray_item_node_count(const HurrayItem *item, uint64_t *out) {
    if (!item || !out) return HURRAY_ERR_NULL_POINTER;
    *out = item->count;
    return HURRAY_OK;
}

HurrayStatus hurray_item_node(const HurrayItem *item, uint64_t i, HurrayItemNode *out) {
    if (!item || !out) return HURRAY_ERR_NULL_POINTER;
    if (i >= item->count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    *out = item->nodes[i];
    return HURRAY_OK;
}

HurrayStatus hurray_item_take_tensor(HurrayItem *item, uint64_t i, HurrayTensor **out) {
    if (!item || !out) return HURRAY_ERR_NULL_POINTER;
    if (i >= item->count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    if (!item->nodes[i].tensor) return HURRAY_ERR_WRONG_STATE;
    *out = item->nodes[i].tensor;
    item->nodes[i].tensor = NULL;
    return HURRAY_OK;
}

HurrayStatus hurray_item_destroy(HurrayItem **item) {
    if (!item) return HURRAY_ERR_NULL_POINTER;
    HurrayItem *gone = *item;
    *item = NULL;
    if (!gone) return HURRAY_OK;
    HurrayAllocator allocator = gone->allocator;
    for (size_t i = 0; i < gone->count; i++) {
        hurray_tensor_destroy(&gone->nodes[i].tensor);
        hry_free(&allocator, (void *)(uintptr_t)gone->nodes[i].name, gone->nodes[i].name_len);
    }
    hry_free_array(&allocator, gone->nodes, gone->capacity, sizeof *gone->nodes);
    hry_free(&allocator, gone, sizeof *gone);
    return HURRAY_OK;
}
