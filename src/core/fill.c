#include "core/fill.h"

#include <string.h>

#include "core/step.h"
#include "format/crc32c.h"

static bool stored_sum(const HryFill *fill, uint32_t k, uint32_t *sum) {
    const HryFillSums *sums = &fill->sums;
    return sums->catalogue && sums->verify != HURRAY_VERIFY_NONE &&
           hry_catalogue_sum(sums->catalogue, sums->index, fill->item.descriptor, k, sum);
}

static HurrayStatus fail_unchecked(HurrayError *error, uint32_t k, const char *why) {
    hry_fail(error, HURRAY_ERR_CHECKSUM, "libhurray.crc32c", HRY_NO_OFFSET,
             "buffer %u cannot be checked: %s; every buffer must be, by the option verify_data", (unsigned)k, why);
    error->buffer_index = k;
    return error->code;
}

static void start_buffer(HryFill *fill, uint32_t k) {
    fill->buffer = k;
    fill->at = fill->filled = 0;
    fill->crc = 0;
    fill->check = k < fill->item.count && stored_sum(fill, k, &fill->wanted);
}

HurrayStatus hry_fill_begin(HryFill *fill, const HurrayDestinationAlloc *destination, HurrayDescriptor *descriptor,
                            const uint64_t *source_offsets, const HurrayDestinationRequest *template_, bool placed, const HryFillSums *sums,
                            const HurrayAllocator *allocator, HurrayError *error) {
    memset(fill, 0, sizeof *fill);
    HurrayStatus status = hry_item_begin(&fill->item, destination, descriptor, source_offsets, template_, placed, allocator, error);
    if (status != HURRAY_OK) return status;
    if (sums) fill->sums = *sums;
    for (uint32_t k = 0; k < fill->item.count; k++) {
        uint32_t sum;
        if (fill->item.buffers[k].byte_size == 0) continue;
        if (stored_sum(fill, k, &sum))
            fill->item.request.flags |= HURRAY_REQUEST_WILL_READ;
        else if (fill->sums.verify == HURRAY_VERIFY_REQUIRED) {
            hry_item_discard(&fill->item);
            return fail_unchecked(error, k, "no checksum is stored for it");
        }
    }
    return HURRAY_OK;
}

static HurrayStatus compare_sum(const HryFill *fill, HurrayError *error) {
    if (!fill->check || fill->crc == fill->wanted) return HURRAY_OK;
    hry_fail(
        error, HURRAY_ERR_CHECKSUM, "libhurray.crc32c", fill->item.buffers[fill->buffer].source_offset,
        "buffer %u has CRC-32C %08x, stored is %08x: the bytes are damaged, or a tool copied the metadata of another file; fetch the file "
        "anew, or read it without verify_data",
        (unsigned)fill->buffer, (unsigned)fill->crc, (unsigned)fill->wanted);
    error->buffer_index = fill->buffer;
    return error->code;
}

/* Bytes that lay there before anybody read: checked all the same, where the host can see them. */
static HurrayStatus check_prefilled(HryFill *fill, const HryItemBuffer *buffer, HurrayError *error) {
    if (!fill->check) return HURRAY_OK;
    if (!buffer->data)
        return fill->sums.verify == HURRAY_VERIFY_REQUIRED ? fail_unchecked(error, fill->buffer, "its memory is not readable by the host")
                                                           : HURRAY_OK;
    fill->crc = hry_crc32c(0, buffer->data, (size_t)buffer->byte_size);
    return compare_sum(fill, error);
}

/* Goes to the next window: past empty, prefilled and finished buffers. */
static HurrayStatus next_window(HryFill *fill, HurrayError *error) {
    while (fill->buffer < fill->item.count) {
        const HryItemBuffer *buffer = &fill->item.buffers[fill->buffer];
        HurrayStatus status;
        if (buffer->prefilled) {
            status = check_prefilled(fill, buffer, error);
            if (status != HURRAY_OK) return status;
        } else if (fill->at < buffer->byte_size) {
            status = hry_item_window(&fill->item, fill->buffer, fill->at, buffer->byte_size - fill->at, &fill->window, error);
            if (status == HURRAY_OK) {
                fill->filled = 0;
                fill->stage = HRY_FILL_BYTES;
            }
            return status;
        }
        start_buffer(fill, fill->buffer + 1);
    }
    fill->stage = HRY_FILL_FREEZE;
    return HURRAY_OK;
}

static HurrayStatus commit_window(HryFill *fill, HurrayError *error) {
    HurrayStatus status = hry_item_commit(&fill->item, fill->buffer, &fill->window, error);
    if (status != HURRAY_OK) return status;
    fill->at += fill->window.len;
    fill->stage = HRY_FILL_WINDOW;
    return HURRAY_OK;
}

HurrayWindow hry_fill_window(const HryFill *fill) {
    HurrayWindow rest = fill->window;
    rest.offset += fill->filled;
    rest.len -= fill->filled;
    rest.ptr += fill->filled;
    if (rest.source_offset != HURRAY_NONE) rest.source_offset += fill->filled;
    if (fill->filled) rest.slack_before = 0; /* bytes in place may not be overwritten */
    return rest;
}

HurrayStatus hry_fill_step(HryFill *fill, HurrayStep *step, HurrayTensor **tensor, HurrayError *error) {
    for (;;) {
        HurrayStatus status = HURRAY_OK;
        uint32_t reason = 0;
        switch (fill->stage) {
        case HRY_FILL_ALLOCATE:
            status = hry_item_allocate(&fill->item, error);
            reason = HURRAY_WAIT_ALLOCATE;
            if (status == HURRAY_OK) {
                fill->stage = HRY_FILL_WINDOW;
                start_buffer(fill, 0);
            }
            break;
        case HRY_FILL_WINDOW:
            status = next_window(fill, error);
            reason = HURRAY_WAIT_WINDOW;
            break;
        case HRY_FILL_BYTES: {
            HurrayWindow rest = hry_fill_window(fill);
            *step = hry_step(HURRAY_STEP_RANGE, 0, rest.source_offset == HURRAY_NONE ? rest.offset : rest.source_offset, rest.len);
            return HURRAY_OK;
        }
        case HRY_FILL_COMMIT: status = commit_window(fill, error); break;
        case HRY_FILL_FREEZE:
            status = hry_item_freeze(&fill->item, tensor, error);
            reason = HURRAY_WAIT_FREEZE;
            if (status == HURRAY_OK) {
                *step = hry_step(HURRAY_STEP_TENSOR, 0, 0, 0);
                return HURRAY_OK;
            }
            break;
        }
        if (status == HURRAY_WAIT) {
            *step = hry_step(HURRAY_STEP_WAIT, reason, 0, 0);
            return HURRAY_OK;
        }
        if (status != HURRAY_OK) return status;
    }
}

HurrayStatus hry_fill_report(HryFill *fill, size_t n, HurrayError *error) {
    const HryItemBuffer *buffer = &fill->item.buffers[fill->buffer];
    if (fill->check) fill->crc = hry_crc32c(fill->crc, fill->window.ptr + fill->filled, n);
    fill->filled += n;
    if (fill->filled < fill->window.len) return HURRAY_OK;
    fill->stage = HRY_FILL_COMMIT;
    return fill->at + fill->filled == buffer->byte_size ? compare_sum(fill, error) : HURRAY_OK;
}

void hry_fill_discard(HryFill *fill) {
    hry_item_discard(&fill->item);
    memset(fill, 0, sizeof *fill);
}
