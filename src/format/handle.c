#include "format/handle.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/endian.h"
#include "format/element.h"

enum { ALIGNMENT_AT = 8, DEVICE_AT = 12, SYNC_AT = 13, CLASS_AT = 14, RESERVED_AT = 15 };

void hry_handle_decode(HryCursor *cursor, HurrayBufferHandle *out) {
    const uint8_t *bytes = hry_cursor_take(cursor, HRY_HANDLE_BYTES);
    out->byte_size = hry_load_u64(bytes);
    out->alignment = hry_load_u32(bytes + ALIGNMENT_AT);
    out->device_tag = bytes[DEVICE_AT];
    out->sync_mode = bytes[SYNC_AT];
    out->memory_class = bytes[CLASS_AT];
    out->reserved = bytes[RESERVED_AT];
}

void hry_handle_encode(HryEmit *emit, const HurrayBufferHandle *handle) {
    uint8_t bytes[HRY_HANDLE_BYTES];
    hry_store_u64(bytes, handle->byte_size);
    hry_store_u32(bytes + ALIGNMENT_AT, handle->alignment);
    bytes[DEVICE_AT] = handle->device_tag;
    bytes[SYNC_AT] = handle->sync_mode;
    bytes[CLASS_AT] = handle->memory_class;
    bytes[RESERVED_AT] = 0;
    hry_emit_bytes(emit, bytes, sizeof bytes);
}

bool hry_device_tag_is_legal(uint8_t device_tag) { return device_tag <= HURRAY_DEVICE_OPENCL || hry_tag_is_private(device_tag); }

bool hry_memory_class_fits(uint8_t device_tag, uint8_t memory_class) {
    if (memory_class == HURRAY_MEMORY_STANDARD) return true;
    if (hry_tag_is_private(device_tag)) return hry_tag_is_private(memory_class);
    switch (device_tag) {
    case HURRAY_DEVICE_CUDA:
    case HURRAY_DEVICE_ROCM:
    case HURRAY_DEVICE_VULKAN:
    case HURRAY_DEVICE_LEVEL_ZERO: return memory_class <= HURRAY_MEMORY_PEER;
    case HURRAY_DEVICE_WEBGPU: return false;
    default: return memory_class <= HURRAY_MEMORY_UNIFIED;
    }
}

HurrayStatus hry_handle_name(HurrayError *error, uint32_t index, const char *member) {
    snprintf(error->field, sizeof error->field, "buffers[%u].%s", (unsigned)index, member);
    error->buffer_index = index;
    return error->code;
}

static HurrayStatus check_alignment(const HurrayBufferHandle *handle, uint32_t index, uint64_t at, HurrayError *error) {
    if (hry_is_pow2(handle->alignment) && (handle->alignment >= 64 || handle->byte_size == 0)) return HURRAY_OK;
    hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, NULL, hry_at(at, ALIGNMENT_AT),
             "buffer %u of %llu bytes declares alignment %u, expected a power of two%s", (unsigned)index,
             (unsigned long long)handle->byte_size, (unsigned)handle->alignment, handle->byte_size ? " of at least 64" : "");
    return hry_handle_name(error, index, "alignment");
}

HurrayStatus hry_handle_check(const HurrayBufferHandle *handle, uint32_t index, uint64_t at, HurrayError *error) {
    uint8_t device = handle->device_tag, memory = handle->memory_class, mode = handle->sync_mode;
    HurrayStatus status = check_alignment(handle, index, at, error);
    if (status != HURRAY_OK) return status;
    if (!hry_device_tag_is_legal(device)) {
        hry_fail(error, HURRAY_ERR_INVALID_TYPE, NULL, hry_at(at, DEVICE_AT),
                 "buffer %u has device tag 0x%02X, expected 0 to 8 or a private one (0xF0 to 0xFE)", (unsigned)index, device);
        return hry_handle_name(error, index, "device_tag");
    }
    if (mode > HURRAY_SYNC_CONSUMER_STREAM || (device == HURRAY_DEVICE_CPU && mode != HURRAY_SYNC_PRODUCER_SYNCED)) {
        hry_fail(error, HURRAY_ERR_INVALID_SYNC_MODE, NULL, hry_at(at, SYNC_AT), "buffer %u has sync mode %u, expected %s", (unsigned)index,
                 mode, device == HURRAY_DEVICE_CPU ? "0 (producer-synced) as every CPU buffer" : "0, 1 or 2");
        return hry_handle_name(error, index, "sync_mode");
    }
    if (!hry_memory_class_fits(device, memory)) {
        hry_fail(error, HURRAY_ERR_INVALID_TYPE, NULL, hry_at(at, CLASS_AT),
                 "buffer %u has memory class 0x%02X, which device tag 0x%02X does not have; 0 (standard) is always legal", (unsigned)index,
                 memory, device);
        return hry_handle_name(error, index, "memory_class");
    }
    if (handle->reserved) {
        hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, NULL, hry_at(at, RESERVED_AT), "buffer %u: the reserved byte is 0x%02X, expected 0",
                 (unsigned)index, handle->reserved);
        return hry_handle_name(error, index, "reserved");
    }
    return HURRAY_OK;
}

HurrayStatus hry_handles_check(const HurrayBufferHandle *handles, uint32_t count, uint64_t at, HurrayError *error) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t here = hry_at(at, (uint64_t)i * HRY_HANDLE_BYTES);
        HurrayStatus status = hry_handle_check(&handles[i], i, here, error);
        if (status != HURRAY_OK) return status;
        if (handles[i].device_tag != handles[0].device_tag) {
            hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, NULL, hry_at(here, DEVICE_AT),
                     "buffer %u has device tag 0x%02X and buffer 0 has 0x%02X, expected one device for all buffers of a tensor",
                     (unsigned)i, handles[i].device_tag, handles[0].device_tag);
            return hry_handle_name(error, i, "device_tag");
        }
        if (handles[i].memory_class != handles[0].memory_class) {
            hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, NULL, hry_at(here, CLASS_AT),
                     "buffer %u has memory class 0x%02X and buffer 0 has 0x%02X, expected one class for all buffers of a tensor",
                     (unsigned)i, handles[i].memory_class, handles[0].memory_class);
            return hry_handle_name(error, i, "memory_class");
        }
    }
    return HURRAY_OK;
}
