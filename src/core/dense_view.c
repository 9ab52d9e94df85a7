#include "core/dense_view.h"

#include <string.h>

#include "format/codes.h"
#include "format/dense.h"
#include "format/verify.h"
#include "hurray/dense.h"

HurrayStatus hry_tensor_host_bytes(const HurrayTensor *tensor, HryBytes *bytes, HurrayError *error) {
    for (size_t i = 0; i < hry_tensor_buffer_count(tensor); i++) {
        const HurrayBuffer *buffer = hry_tensor_buffer(tensor, i);
        const HurrayBufferInfo *info = hry_buffer_info(buffer);
        bool host = info->device_tag == HURRAY_DEVICE_CPU || info->memory_class == HURRAY_MEMORY_HOST_PINNED;
        if (!host || info->sync_mode != HURRAY_SYNC_PRODUCER_SYNCED) {
            hry_fail(error, HURRAY_ERR_UNSUPPORTED, "buffers", HRY_NO_OFFSET,
                     "buffer %zu is on device type %u with sync mode %u; copy the tensor to host memory first", i, info->device_tag,
                     info->sync_mode);
            error->buffer_index = (uint32_t)i;
            return HURRAY_ERR_UNSUPPORTED;
        }
        bytes[i] = (HryBytes){info->data, info->byte_size};
    }
    return HURRAY_OK;
}

static HurrayStatus open_view(const HurrayTensor *tensor, uint8_t type, HryDense *dense, HryBytes *bytes, HurrayError *error) {
    HurrayStatus status = hry_tensor_host_bytes(tensor, bytes, error);
    return status == HURRAY_OK ? hry_dense_open(dense, hry_tensor_descriptor(tensor), bytes, type, error) : status;
}

static HurrayStatus null_pointer(HurrayError *error, const char *what) {
    return hry_fail(error, HURRAY_ERR_NULL_POINTER, what, HRY_NO_OFFSET, "%s is NULL", what);
}

HurrayStatus hurray_dense_size(const HurrayDescriptor *descriptor, uint8_t type, uint64_t *bytes, HurrayError *error) {
    HurrayError local;
    uint64_t elements, needed;
    if (!descriptor || !bytes) {
        null_pointer(&local, descriptor ? "bytes" : "descriptor");
        return hry_error_export(error, &local);
    }
    if (hry_dense_plan(descriptor, type, &elements, &needed, &local) != HURRAY_OK) return hry_error_export(error, &local);
    *bytes = needed;
    return HURRAY_OK;
}

static HurrayStatus too_small(HurrayError *error, uint64_t len, uint64_t needed) {
    return hry_fail(error, HURRAY_ERR_BUFFER_TOO_SMALL, "len", HRY_NO_OFFSET, "room for %llu bytes, %llu are needed",
                    (unsigned long long)len, (unsigned long long)needed);
}

HurrayStatus hurray_tensor_dense(const HurrayTensor *tensor, uint8_t type, void *dst, size_t len, HurrayError *error) {
    HurrayError local;
    HryBytes bytes[UINT8_MAX + 1];
    HryDense dense;
    uint64_t needed;
    HurrayStatus status;
    if (!tensor || (!dst && len)) {
        null_pointer(&local, tensor ? "dst" : "tensor");
        return hry_error_export(error, &local);
    }
    status = open_view(tensor, type, &dense, bytes, &local);
    if (status == HURRAY_OK && (!hry_dense_bytes(&dense, dense.elements, &needed) || needed > len)) status = too_small(&local, len, needed);
    if (status == HURRAY_OK) status = hry_dense_stretch(&dense, 0, dense.elements, dst, &local);
    return status == HURRAY_OK ? status : hry_error_export(error, &local);
}

static HurrayStatus check_index(const HurrayDescriptor *d, const uint64_t *index, uint32_t rank, HurrayError *error) {
    if (rank != d->rank)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "rank", HRY_NO_OFFSET, "an index of %u numbers for a tensor of rank %u", rank,
                        d->rank);
    for (uint32_t k = 0; k < rank; k++)
        if (index[k] >= d->shape[k])
            return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "index", HRY_NO_OFFSET, "index %llu in dimension %u of %llu",
                            (unsigned long long)index[k], k, (unsigned long long)d->shape[k]);
    return HURRAY_OK;
}

HurrayStatus hurray_tensor_element(const HurrayTensor *tensor, const uint64_t *index, uint32_t rank, uint8_t type, void *dst, size_t len,
                                   HurrayError *error) {
    HurrayError local;
    HryBytes bytes[UINT8_MAX + 1];
    HryDense dense;
    HurrayStatus status;
    if (!tensor || !dst || (!index && rank)) {
        null_pointer(&local, !tensor ? "tensor" : !dst ? "dst" : "index");
        return hry_error_export(error, &local);
    }
    status = open_view(tensor, type, &dense, bytes, &local);
    if (status == HURRAY_OK) status = check_index(dense.descriptor, index, rank, &local);
    if (status == HURRAY_OK && len < hry_code_bytes(dense.bits)) status = too_small(&local, len, hry_code_bytes(dense.bits));
    if (status == HURRAY_OK) status = hry_dense_element(&dense, index, dst, &local);
    return status == HURRAY_OK ? status : hry_error_export(error, &local);
}

/* Keeps the first finding and ends the check. */
static HurrayStatus keep_first(void *ctx, const HurrayError *finding) {
    HurrayError *first = ctx;
    *first = *finding;
    return finding->code;
}

HurrayStatus hurray_tensor_verify(const HurrayTensor *tensor, HurrayError *error) {
    HurrayError local, first;
    HryBytes bytes[UINT8_MAX + 1];
    HurrayStatus status;
    if (!tensor) {
        null_pointer(&local, "tensor");
        return hry_error_export(error, &local);
    }
    const HurrayDescriptor *d = hry_tensor_descriptor(tensor);
    status = hry_tensor_host_bytes(tensor, bytes, &local);
    if (status != HURRAY_OK) return hry_error_export(error, &local);
    for (uint32_t i = 0; i < d->buffer_count; i++) {
        uint64_t offset, len;
        hry_verify_range(d, i, &offset, &len);
        if (offset + len > bytes[i].size) {
            hry_fail(&local, HURRAY_ERR_INVALID_ARGUMENT, "byte_size", HRY_NO_OFFSET, "buffer %u has %llu bytes, the descriptor says %llu",
                     i, (unsigned long long)bytes[i].size, (unsigned long long)d->buffers[i].byte_size);
            return hry_error_export(error, &local);
        }
        bytes[i] = (HryBytes){len ? bytes[i].data + offset : NULL, len};
    }
    hry_error_clear(&first);
    status = hry_verify_tensor(d, bytes, &d->allocator, keep_first, &first, &local);
    if (status == HURRAY_OK) return status;
    return hry_error_export(error, first.code != HURRAY_OK ? &first : &local);
}
