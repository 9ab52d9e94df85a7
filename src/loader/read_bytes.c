/* A piece of one buffer, as it will lie in memory. */
#include "base/checked.h"
#include "driver/transport_call.h"
#include "format/crc32c.h"
#include "loader/loader.h"

void hry_loader_close_reading(HurrayLoader *loader) { hry_byte_source_close(&loader->reading.bytes); }

/* Going on where the last piece ended is fast, so the source of the last tensor stays open. */
static HurrayStatus read_converted(HurrayLoader *loader, uint64_t i, uint64_t offset, void *dst, size_t len, HurrayError *error) {
    HryReadState *state = &loader->reading;
    if (!state->bytes || state->tensor != i) {
        HryLoaderSource *source;
        const HryEntry *entry = hry_loader_entry(loader, i, &source);
        hry_loader_close_reading(loader);
        HurrayStatus status =
            hry_byte_source_open(&source->model->transport, source->model->catalogue, entry, &loader->allocator, &state->bytes, error);
        if (status != HURRAY_OK) {
            state->bytes = NULL;
            return status;
        }
        state->tensor = i;
    }
    return hry_byte_source_read(state->bytes, offset, dst, len, error);
}

HurrayStatus hry_loader_read_piece(HurrayLoader *loader, uint64_t i, HurrayDescriptor *descriptor, uint32_t buffer, uint64_t offset,
                                   void *dst, size_t len, HurrayError *error) {
    HryLoaderSource *source;
    const HryEntry *entry = hry_loader_entry(loader, i, &source);
    HurrayStatus status;
    if (len == 0) return HURRAY_OK;
    if (hry_byte_source_needed(entry)) {
        status = read_converted(loader, i, offset, dst, len, error);
    } else {
        uint64_t at;
        if (!hry_catalogue_buffer_offset(source->model->catalogue, entry, descriptor, buffer, &at) || !hry_add_u64(at, offset, &at))
            status = hry_fail(error, HURRAY_ERR_TRUNCATED, "data_offset", HRY_NO_OFFSET, "the buffer's place does not fit 64 bits");
        else
            status = hry_transport_read_exactly(&source->model->transport, at, dst, len, error);
    }
    if (status == HURRAY_OK) return status;
    error->buffer_index = buffer;
    return hry_loader_blame(loader, i, error);
}

/* With verify_data a buffer that is read from first byte to last, in order, is checked; its last piece tells. */
static HurrayStatus check_piece(HurrayLoader *loader, uint64_t i, const HurrayDescriptor *descriptor, uint32_t buffer, uint64_t offset,
                                const void *bytes, size_t len, HurrayError *error) {
    HryReadState *state = &loader->reading;
    HryLoaderSource *source;
    const HryEntry *entry = hry_loader_entry(loader, i, &source);
    uint32_t stored;
    if (loader->options.verify_data == HURRAY_VERIFY_NONE || len == 0) return HURRAY_OK;
    if (offset == 0)
        *state = (HryReadState){.bytes = state->bytes, .tensor = state->tensor, .sum_tensor = i, .sum_buffer = buffer, .summing = true};
    if (!state->summing || state->sum_tensor != i || state->sum_buffer != buffer || state->sum_at != offset) {
        state->summing = false;
        return HURRAY_OK;
    }
    state->sum = hry_crc32c(state->sum, bytes, len);
    state->sum_at += len;
    if (state->sum_at < descriptor->buffers[buffer].byte_size) return HURRAY_OK;
    state->summing = false;
    bool known =
        hry_catalogue_sum(source->model->catalogue, (uint64_t)(entry - source->model->catalogue->entries), descriptor, buffer, &stored);
    if (known && stored == state->sum) return HURRAY_OK;
    if (!known && (loader->options.verify_data != HURRAY_VERIFY_REQUIRED || entry->side)) return HURRAY_OK;
    if (!known)
        hry_fail(error, HURRAY_ERR_CHECKSUM, NULL, HRY_NO_OFFSET, "buffer %u cannot be checked: no checksum is stored for it", buffer);
    else
        hry_fail(error, HURRAY_ERR_CHECKSUM, NULL, HRY_NO_OFFSET,
                 "the bytes of buffer %u have CRC-32C %08X, stored is %08X: they are damaged, or the file's metadata was copied from "
                 "another; get the file again",
                 buffer, state->sum, stored);
    error->buffer_index = buffer;
    return hry_loader_blame(loader, i, error);
}

HurrayStatus hry_loader_read_part(HurrayLoader *loader, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len, bool check,
                                  HurrayError *error) {
    HurrayDescriptor *descriptor;
    if (i >= loader->tensor_count)
        return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "tensor", HRY_NO_OFFSET, "tensor %llu of %llu", (unsigned long long)i,
                        (unsigned long long)loader->tensor_count);
    HurrayStatus status = hry_loader_describe(loader, i, &descriptor, error);
    if (status != HURRAY_OK) return status;
    if (buffer >= descriptor->buffer_count)
        hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "buffer", HRY_NO_OFFSET, "buffer %u of %u", buffer, descriptor->buffer_count);
    else if (!hry_range_inside(offset, len, descriptor->buffers[buffer].byte_size))
        hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "offset", HRY_NO_OFFSET,
                 "%zu bytes at %llu do not lie in buffer %u, which has %llu", len, (unsigned long long)offset, buffer,
                 (unsigned long long)descriptor->buffers[buffer].byte_size);
    if (error->code != HURRAY_OK) return hry_loader_blame(loader, i, error);
    status = hry_loader_read_piece(loader, i, descriptor, buffer, offset, dst, len, error);
    if (status != HURRAY_OK) {
        loader->reading.summing = false;
        return status;
    }
    if (!check) return HURRAY_OK;
    return check_piece(loader, i, descriptor, buffer, offset, dst, len, error);
}

HurrayStatus hurray_loader_read_bytes(HurrayLoader *loader, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len) {
    if (!loader || (!dst && len)) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    status = hry_loader_check_usable(loader);
    if (status == HURRAY_OK) status = hry_loader_read_part(loader, i, buffer, offset, dst, len, true, &loader->handle.error);
    return hry_loader_leave(loader, status);
}
