#include "support/fail_destination.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct Block {
    FailDestination *fail;
    uint8_t *memory, *data;
    uint64_t byte_size;
    uint32_t alignment;
    bool out; /* a window is with the library */
} Block;

/* The next call's fate. */
static HurrayStatus fate(FailDestination *fail) {
    uint64_t call = ++fail->calls;
    bool hit = fail->fail_at && (call == fail->fail_at || (fail->sticky && call > fail->fail_at));
    return hit ? fail->fail_status : HURRAY_OK;
}

static bool busy(FailDestination *fail) {
    if (fail->waited < fail->waits) {
        fail->waited++;
        return true;
    }
    fail->waited = 0;
    return false;
}

static HurrayStatus allocate(void *ctx, const HurrayDestinationRequest *request, HurrayDestination *out) {
    FailDestination *fail = ctx;
    if (busy(fail)) return HURRAY_WAIT;
    HurrayStatus status = fate(fail);
    if (status != HURRAY_OK) return status;
    if (fail->request_count < FAIL_DESTINATION_REQUESTS) fail->requests[fail->request_count] = *request;
    fail->request_count++;
    assert_int_equal(request->struct_size, sizeof *request);
    assert_int_equal(out->struct_size, sizeof *out);
    assert_true(request->byte_size > 0);
    fail->allocates++;
    if (fail->no_id) return HURRAY_OK;
    Block *block = calloc(1, sizeof *block);
    assert_non_null(block);
    block->fail = fail;
    block->byte_size = request->byte_size;
    block->alignment = request->alignment;
    if (fail->prefilled && request->source_offset != HURRAY_NONE) {
        out->flags = HURRAY_DESTINATION_PREFILLED;
        /* A copy, so that any alignment holds. */
        block->memory = aligned_alloc(block->alignment, (request->byte_size + block->alignment - 1) / block->alignment * block->alignment);
        assert_non_null(block->memory);
        block->data = block->memory;
        memcpy(block->data, fail->prefilled + request->source_offset, request->byte_size);
        out->data = fail->hide ? NULL : block->data;
    } else {
        size_t span = (request->byte_size + fail->shift + block->alignment - 1) / block->alignment * block->alignment;
        block->memory = aligned_alloc(block->alignment, span);
        assert_non_null(block->memory);
        memset(block->memory, 0xEE, span);
        block->data = block->memory + fail->shift;
    }
    out->id = block;
    fail->live++;
    return HURRAY_OK;
}

static HurrayStatus window(void *ctx, void *id, HurrayWindow *w) {
    FailDestination *fail = ctx;
    Block *block = id;
    assert_false(block->out);
    if (busy(fail)) return HURRAY_WAIT;
    HurrayStatus status = fate(fail);
    if (status != HURRAY_OK) return status;
    assert_true(w->len > 0 && w->offset + w->len <= block->byte_size);
    fail->windows++;
    w->ptr = fail->no_ptr ? NULL : block->data + w->offset;
    if (fail->window_bytes && w->len > fail->window_bytes) w->len = fail->window_bytes;
    w->len += fail->bad_len;
    w->offset += fail->bad_offset;
    w->token = block;
    block->out = true;
    if (fail->bad_len || fail->bad_offset || fail->no_ptr) block->out = false;
    return HURRAY_OK;
}

static HurrayStatus commit(void *ctx, void *id, const HurrayWindow *w) {
    FailDestination *fail = ctx;
    Block *block = id;
    assert_true(block->out);
    assert_ptr_equal(w->token, block);
    HurrayStatus status = fate(fail);
    if (status != HURRAY_OK) return status;
    fail->commits++;
    block->out = false;
    return HURRAY_OK;
}

static void block_free(Block *block) {
    block->fail->live--;
    free(block->memory);
    free(block);
}

static void buffer_release(void *data, void *ctx) {
    Block *block = ctx;
    assert_ptr_equal(data, block->data);
    block_free(block);
}

static void event_release(void *handle, void *ctx) {
    (void)handle;
    ((FailDestination *)ctx)->events--;
}

static HurrayStatus freeze(void *ctx, void *id, HurrayBufferInfo *info) {
    FailDestination *fail = ctx;
    Block *block = id;
    assert_false(block->out);
    if (busy(fail)) return HURRAY_WAIT;
    HurrayStatus status = fate(fail);
    if (status != HURRAY_OK) return status;
    fail->freezes++;
    info->data = block->data;
    info->byte_size = block->byte_size + (fail->bad_size ? 1 : 0);
    info->alignment = fail->alignment ? fail->alignment : block->alignment;
    info->release = buffer_release;
    info->release_context = block;
    if (fail->elsewhere) {
        info->device_tag = fail->place.device_tag;
        info->device_index = fail->place.device_index;
        info->sync_mode = fail->place.sync_mode;
        info->memory_class = fail->place.memory_class;
        info->order = fail->place.order;
        if (info->sync_mode == HURRAY_SYNC_EVENT) {
            info->event.sync_handle = fail;
            info->event.sync_handle_device_tag = info->device_tag;
            info->event.event_release_fn = event_release;
            info->event.event_release_context = fail;
            fail->events++;
        }
    }
    return HURRAY_OK;
}

static void discard(void *ctx, void *id) {
    ((FailDestination *)ctx)->discards++;
    block_free(id);
}

static HurrayStatus wait_free(void *ctx, uint32_t timeout_ms) {
    (void)timeout_ms;
    ((FailDestination *)ctx)->wait_calls++;
    return HURRAY_OK;
}

static void retain(void *ctx) { ((FailDestination *)ctx)->retains++; }
static void release(void *ctx) { ((FailDestination *)ctx)->releases++; }

void fail_destination_init(FailDestination *fail) {
    memset(fail, 0, sizeof *fail);
    HurrayDestinationAlloc destination = HURRAY_DESTINATION_ALLOC_INIT;
    destination.ctx = fail;
    destination.retain = retain;
    destination.allocate = allocate;
    destination.window = window;
    destination.commit = commit;
    destination.freeze = freeze;
    destination.discard = discard;
    destination.wait = wait_free;
    destination.release = release;
    fail->destination = destination;
}

void fail_destination_arm(FailDestination *fail, uint64_t n, HurrayStatus status, bool sticky) {
    fail->calls = 0;
    fail->fail_at = n;
    fail->fail_status = status;
    fail->sticky = sticky;
    fail->waited = 0;
}

void fail_destination_assert_empty(const FailDestination *fail) {
    assert_int_equal(fail->live, 0);
    assert_int_equal(fail->events, 0);
}
