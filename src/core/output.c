#include "core/output.h"

#include <string.h>

#include "base/checked.h"
#include "format/crc32c.h"

#define ZEROS 16384u
#define JOINED 8192u /* padding up to here goes out with the own bytes before it, in one write */

static const uint8_t zeros[ZEROS];

HurrayStatus hry_output_init(HryOutput *output, const HurrayAllocator *user, const void *label, size_t label_len, HurrayError *error) {
    memset(output, 0, sizeof *output);
    if (label_len && !label) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "label", HRY_NO_OFFSET, "the label is NULL but has a length");
    HurrayStatus status = hry_alloc_resolve(user, &output->allocator, error);
    if (status != HURRAY_OK) return status;
    hry_handle_init(&output->handle);
    hry_escape(output->label, sizeof output->label, label, label_len);
    hry_tree_init(&output->tree, &output->allocator, HRY_MAX_COMPOSITE_DEPTH, HRY_CHECK_WRITING);
    return HURRAY_OK;
}

void hry_output_clear(HryOutput *output) {
    hry_free_array(&output->allocator, output->pieces, output->capacity, sizeof *output->pieces);
    hry_free(&output->allocator, output->own, output->own_capacity);
    hry_tree_clear(&output->tree);
}

void hry_output_label(const HryOutput *output, HurrayError *error) {
    if (output->label[0] && !error->source[0]) memcpy(error->source, output->label, sizeof output->label);
}

HurrayStatus hry_output_leave(HryOutput *output, HurrayStatus status) {
    status = hry_handle_leave(&output->handle, status);
    if (status < 0) hry_output_label(output, &output->handle.error);
    return status;
}

/* ---- building ---- */

void hry_output_drop(HryOutput *output) {
    output->count = output->own_len = output->at = 0;
    output->done = output->total = output->emitted = 0;
    output->lent = NULL;
    output->lent_len = output->offered = 0;
    output->active = output->written = false;
}

HurrayStatus hry_output_begin(HryOutput *output, HurrayError *error) {
    if (hry_output_is_torn(output) && !output->poisoned) output->poisoned = HURRAY_UNUSABLE_TORN_ITEM;
    if (output->poisoned) return hry_fail_unusable(error, output->poisoned);
    hry_output_drop(output);
    return HURRAY_OK;
}

/* Room for one more piece of len bytes, whose place in the output fits 64 bits. */
static HurrayStatus add_piece(HryOutput *output, HryPiece piece, HurrayError *error) {
    uint64_t total, end;
    if (!hry_add_u64(output->total, piece.len, &total) || !hry_add_u64(output->position, total, &end))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, NULL, HRY_NO_OFFSET, "the output would be longer than 2^64 bytes");
    void *memory = output->pieces;
    if (!hry_grow(&output->allocator, &memory, &output->capacity, output->count + 1, sizeof *output->pieces))
        return hry_fail_memory(error, "an item to write", (output->count + 1) * sizeof *output->pieces);
    output->pieces = memory;
    output->pieces[output->count++] = piece;
    output->total = total;
    return HURRAY_OK;
}

HurrayStatus hry_output_own(HryOutput *output, size_t len, uint8_t **bytes, HurrayError *error) {
    size_t need;
    void *memory = output->own;
    if (!hry_add_size(output->own_len, len, &need) || !hry_grow(&output->allocator, &memory, &output->own_capacity, need, 1))
        return hry_fail_memory(error, "an item to write", len);
    output->own = memory;
    HurrayStatus status = add_piece(output, (HryPiece){.kind = HRY_PIECE_OWN, .own = output->own_len, .len = len}, error);
    if (status != HURRAY_OK) return status;
    *bytes = output->own + output->own_len;
    output->own_len = need;
    return HURRAY_OK;
}

HurrayStatus hry_output_padding(HryOutput *output, uint64_t len, HurrayError *error) {
    if (len == 0) return HURRAY_OK;
    HryPiece *last = output->count ? &output->pieces[output->count - 1] : NULL;
    uint64_t total, end;
    void *memory = output->own;
    if (last && last->kind == HRY_PIECE_OWN && len <= JOINED && hry_add_u64(output->total, len, &total) &&
        hry_add_u64(output->position, total, &end) &&
        hry_grow(&output->allocator, &memory, &output->own_capacity, output->own_len + (size_t)len, 1)) {
        output->own = memory;
        memset(output->own + output->own_len, 0, (size_t)len);
        output->own_len += (size_t)len;
        last->len += len;
        output->total = total;
        return HURRAY_OK;
    }
    return add_piece(output, (HryPiece){.kind = HRY_PIECE_PADDING, .len = len}, error);
}

HurrayStatus hry_output_buffer(HryOutput *output, const void *ptr, uint64_t len, uint32_t buffer, uint32_t *sum, HurrayError *error) {
    if (len == 0) return HURRAY_OK;
    HryPiece piece = {.kind = ptr ? HRY_PIECE_SLICE : HRY_PIECE_ASKED, .buffer = buffer, .ptr = ptr, .len = len, .sum = sum};
    return add_piece(output, piece, error);
}

void hry_output_start(HryOutput *output) { output->active = true; }

HurrayStatus hry_output_check_tensor(const HryOutput *output, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count,
                                     HurrayError *error) {
    if (!descriptor) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "descriptor", HRY_NO_OFFSET, "the descriptor is NULL");
    HurrayStatus status = hry_descriptor_check_writable(descriptor, error);
    if (status != HURRAY_OK) return status;
    for (uint32_t i = 0; output->cross_machine && i < descriptor->buffer_count; i++)
        if (descriptor->buffers[i].sync_mode != HURRAY_SYNC_PRODUCER_SYNCED) {
            hry_fail(error, HURRAY_ERR_INVALID_SYNC_MODE, "buffers.sync_mode", HRY_NO_OFFSET,
                     "buffer %u has the sync mode %u; what goes to another machine must be producer-synced (0)", i,
                     descriptor->buffers[i].sync_mode);
            error->buffer_index = i;
            return error->code;
        }
    return slices || count ? hry_slices_check(descriptor, slices, count, error) : HURRAY_OK;
}

HurrayStatus hry_output_descriptor(HryOutput *output, const HurrayDescriptor *descriptor, HurrayError *error) {
    uint8_t *bytes = NULL;
    HurrayStatus status = hry_output_own(output, hry_descriptor_encoded_size(descriptor), &bytes, error);
    if (status == HURRAY_OK) hry_descriptor_encode(descriptor, bytes);
    return status;
}

/* ---- driving ---- */

uint32_t hry_output_unusable(const HryOutput *output) {
    if (output->poisoned) return output->poisoned;
    return hry_output_is_torn(output) ? HURRAY_UNUSABLE_TORN_ITEM : HURRAY_USABLE;
}

/* The stretch of a piece from `done` on that can be handed out in one slice; len 0: it must be supplied first. */
static HurrayIoSlice stretch(const HryOutput *output, const HryPiece *piece, uint64_t done) {
    uint64_t left = piece->len - done;
    HurrayIoSlice slice = {NULL, left < SIZE_MAX ? (size_t)left : SIZE_MAX};
    switch (piece->kind) {
    case HRY_PIECE_OWN: slice.ptr = output->own + piece->own + done; break;
    case HRY_PIECE_SLICE: slice.ptr = piece->ptr + done; break;
    case HRY_PIECE_PADDING:
        slice.ptr = zeros;
        if (slice.len > ZEROS) slice.len = ZEROS;
        break;
    case HRY_PIECE_ASKED:
        slice.ptr = output->lent;
        slice.len = output->lent_len;
        break;
    }
    return slice;
}

HurrayStatus hry_output_step(HryOutput *output, HurrayStep *step, HurrayError *error) {
    if (output->poisoned) return hry_fail_unusable(error, output->poisoned);
    if (output->finished) {
        *step = hry_step(HURRAY_STEP_FINISHED, 0, output->position, 0);
    } else if (output->written) {
        *step = hry_step(HURRAY_STEP_ITEM_WRITTEN, 0, output->position, 0);
    } else if (!output->active) {
        *step = hry_step(HURRAY_STEP_READY, 0, output->position, 0);
    } else {
        const HryPiece *piece = &output->pieces[output->at];
        HurrayIoSlice slice = stretch(output, piece, output->done);
        *step = slice.len ? hry_step(HURRAY_STEP_OUTPUT, 0, output->position + output->emitted, slice.len)
                          : hry_step(HURRAY_STEP_PAYLOAD, piece->buffer, output->done, piece->len - output->done);
    }
    return HURRAY_OK;
}

HurrayStatus hry_output_slices(const HryOutput *output, HurrayIoSlice *slices, size_t *count) {
    size_t room = *count, n = 0, sum = 0;
    uint64_t done = output->done;
    if (output->poisoned) return HURRAY_ERR_UNUSABLE;
    if (!output->active) return HURRAY_ERR_WRONG_STATE;
    for (size_t at = output->at; at < output->count && n < room;) {
        const HryPiece *piece = &output->pieces[at];
        if (piece->kind == HRY_PIECE_ASKED && at > output->at) break;
        HurrayIoSlice slice = stretch(output, piece, done);
        if (slice.len == 0 || slice.len > SIZE_MAX - sum) break;
        slices[n++] = slice;
        sum += slice.len;
        done += slice.len;
        if (done == piece->len)
            at++, done = 0;
        else if (piece->kind == HRY_PIECE_ASKED)
            break;
    }
    if (n == 0 && room > 0) return HURRAY_ERR_WRONG_STATE;
    *count = n;
    /* What was offered bounds the next report; the core itself is the caller's, only his view of it is const. */
    HryOutput *mine = (HryOutput *)(uintptr_t)output;
    if (sum > mine->offered) mine->offered = sum;
    return HURRAY_OK;
}

HurrayStatus hry_output_src(const HryOutput *output, const uint8_t **ptr, size_t *len) {
    HurrayIoSlice slice;
    size_t count = 1;
    HurrayStatus status = hry_output_slices(output, &slice, &count);
    if (status != HURRAY_OK) return status;
    *ptr = slice.ptr;
    *len = slice.len;
    return HURRAY_OK;
}

uint64_t hry_output_asked(const HryOutput *output) {
    uint64_t asked = 0; /* below total: no overflow */
    for (size_t at = output->at; output->active && at < output->count; at++)
        if (output->pieces[at].kind == HRY_PIECE_ASKED) asked += output->pieces[at].len - (at == output->at ? output->done : 0);
    return asked - output->lent_len;
}

HurrayStatus hry_output_supply(HryOutput *output, const void *ptr, size_t len, HurrayError *error) {
    if (output->poisoned) return hry_fail_unusable(error, output->poisoned);
    if (!output->active || output->pieces[output->at].kind != HRY_PIECE_ASKED || output->lent_len)
        return hry_fail(error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET, "nothing is asked for; supply answers HURRAY_STEP_PAYLOAD");
    if (!ptr) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "ptr", HRY_NO_OFFSET, "the supplied memory is NULL");
    const HryPiece *piece = &output->pieces[output->at];
    if (len == 0 || len > piece->len - output->done)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "len", HRY_NO_OFFSET,
                        "%zu bytes were supplied for buffer %u, expected 1 to %llu", len, piece->buffer,
                        (unsigned long long)(piece->len - output->done));
    output->lent = ptr;
    output->lent_len = len;
    return HURRAY_OK;
}

/* The item is whole: it becomes part of the output, and nothing of it is kept. */
static void complete(HryOutput *output) {
    uint64_t end = output->position + output->total;
    output->commit(output);
    hry_output_drop(output);
    output->position = end;
    output->written = true;
}

HurrayStatus hry_output_report(HryOutput *output, size_t n, HurrayError *error) {
    if (output->poisoned) return hry_fail_unusable(error, output->poisoned);
    HurrayIoSlice first = output->active ? stretch(output, &output->pieces[output->at], output->done) : (HurrayIoSlice){NULL, 0};
    size_t offered = output->offered > first.len ? output->offered : first.len;
    if (n == 0 || n > offered)
        return hry_fail(error, HURRAY_ERR_INVALID_REPORT, "written", HRY_NO_OFFSET,
                        "%zu bytes were reported as written, %zu were offered; report 1 to that many, or that the sink is closed", n,
                        offered);
    output->offered = 0;
    output->emitted += n;
    while (n) {
        HryPiece *piece = &output->pieces[output->at];
        HurrayIoSlice slice = stretch(output, piece, output->done);
        size_t step = n < slice.len ? n : slice.len;
        if (piece->sum) *piece->sum = hry_crc32c(*piece->sum, slice.ptr, step);
        if (piece->kind == HRY_PIECE_ASKED) {
            output->lent_len -= step;
            output->lent = output->lent_len ? output->lent + step : NULL;
        }
        output->done += step;
        n -= step;
        if (output->done == piece->len) {
            output->at++;
            output->done = 0;
        }
    }
    if (output->emitted == output->total) complete(output);
    return HURRAY_OK;
}

HurrayStatus hry_output_sink_closed(HryOutput *output, HurrayError *error) {
    if (output->poisoned) return hry_fail_unusable(error, output->poisoned);
    if (!output->active) return HURRAY_OK;
    hry_output_abandon(output, error);
    return hry_fail(error, HURRAY_ERR_SINK_CLOSED, NULL, output->position + output->emitted,
                    "the sink was closed while an item was being written; start a new output");
}

HurrayStatus hry_output_abandon(HryOutput *output, HurrayError *error) {
    if (output->poisoned) return hry_fail_unusable(error, output->poisoned);
    if (hry_output_is_torn(output))
        output->poisoned = HURRAY_UNUSABLE_TORN_ITEM;
    else
        hry_output_drop(output);
    return HURRAY_OK;
}

HurrayStatus hry_output_poison(HryOutput *output, uint32_t reason, HurrayError *error) {
    if (reason == HURRAY_USABLE || reason > HURRAY_UNUSABLE_POISONED)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "reason", HRY_NO_OFFSET, "%u is no HURRAY_UNUSABLE_ reason", reason);
    if (!output->poisoned) output->poisoned = reason;
    return HURRAY_OK;
}
