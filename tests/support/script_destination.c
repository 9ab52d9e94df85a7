#include "support/script_destination.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GUARD 64u

typedef struct ScriptSlot {
    uint8_t *memory;
    bool taken, copying;
    struct ScriptBuffer *buffer;
    uint64_t offset, len;
} ScriptSlot;

typedef struct ScriptBuffer {
    struct ScriptBuffer *next;
    ScriptDestination *script;
    uint8_t *data;
    uint64_t size, asked, committed;
    uint32_t alignment, open, pending, freeze_waits;
    int32_t device_index;
    uint8_t device_tag, sync_mode, memory_class;
    bool prefilled;
} ScriptBuffer;

/* Tests end the hard way: cmocka's asserts do not work on other threads. */
static void must(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "script destination: %s\n", what);
    abort();
}

static HurrayStatus count(ScriptDestination *script, int kind) {
    script->calls[kind]++;
    if (kind != SCRIPT_RETAIN && !script->concurrent) {
        if (!script->any_thread) script->any_thread = true, script->thread = pthread_self();
        must(pthread_equal(script->thread, pthread_self()), "called on another thread");
    }
    return script->fail_call[kind] == script->calls[kind] ? script->fail_status : HURRAY_OK;
}

static void retain(void *ctx) {
    ScriptDestination *script = ctx;
    pthread_mutex_lock(&script->lock);
    script->holds++;
    script->calls[SCRIPT_RETAIN]++;
    pthread_mutex_unlock(&script->lock);
}

static void release(void *ctx) {
    ScriptDestination *script = ctx;
    pthread_mutex_lock(&script->lock);
    must(script->holds > 0, "released once too often");
    script->holds--;
    pthread_mutex_unlock(&script->lock);
}

static HurrayStatus reserve(void *ctx, uint8_t tag, int32_t index, uint64_t bytes, uint64_t buffers) {
    ScriptDestination *script = ctx;
    (void)tag, (void)index;
    pthread_mutex_lock(&script->lock);
    must(script->live == 0 || script->calls[SCRIPT_RESERVE], "reserve after an allocation");
    HurrayStatus status = count(script, SCRIPT_RESERVE);
    script->reserved_bytes += bytes;
    script->reserved_buffers += buffers;
    pthread_mutex_unlock(&script->lock);
    return status;
}

static HurrayStatus allocate(void *ctx, const HurrayDestinationRequest *request, HurrayDestination *out) {
    ScriptDestination *script = ctx;
    pthread_mutex_lock(&script->lock);
    HurrayStatus status = count(script, SCRIPT_ALLOCATE);
    must(request->byte_size > 0 && request->descriptor, "an empty buffer was asked for");
    script->last = *request;
    if (status == HURRAY_OK && script->alloc_waits) script->alloc_waits--, status = HURRAY_WAIT;
    if (status == HURRAY_OK) {
        ScriptBuffer *buffer = calloc(1, sizeof *buffer);
        uint64_t alignment = request->alignment < 64 ? 64 : request->alignment;
        must(buffer != NULL, "no memory");
        buffer->script = script;
        buffer->size = request->byte_size;
        buffer->alignment = (uint32_t)alignment;
        buffer->device_tag = request->device_tag;
        buffer->device_index = request->device_index < 0 ? 0 : request->device_index;
        buffer->sync_mode = request->sync_mode;
        buffer->memory_class = request->memory_class;
        buffer->freeze_waits = script->freeze_waits;
        buffer->data = aligned_alloc((size_t)alignment, (size_t)((request->byte_size + alignment - 1) / alignment * alignment));
        must(buffer->data != NULL, "no memory");
        memset(buffer->data, 0xEE, (size_t)buffer->size);
        if (script->prefill_from && request->byte_size >= script->prefill_from && request->source_offset != HURRAY_NONE) {
            memcpy(buffer->data, script->source + request->source_offset, (size_t)buffer->size);
            buffer->prefilled = true;
            out->flags = HURRAY_DESTINATION_PREFILLED;
            out->data = script->prefill_unreadable ? NULL : buffer->data;
        }
        buffer->next = script->buffers;
        script->buffers = buffer;
        script->live++;
        out->id = buffer;
    }
    pthread_mutex_unlock(&script->lock);
    return status;
}

static HurrayStatus window(void *ctx, void *id, HurrayWindow *out) {
    ScriptDestination *script = ctx;
    ScriptBuffer *buffer = id;
    pthread_mutex_lock(&script->lock);
    HurrayStatus status = count(script, SCRIPT_WINDOW);
    must(!buffer->prefilled, "a window of a prefilled buffer");
    must(out->offset == buffer->asked && out->len > 0 && out->offset + out->len <= buffer->size, "windows out of order or range");
    must(script->concurrent || buffer->open == 0, "two windows of a buffer at once");
    if (status == HURRAY_OK && script->slots == 0) {
        out->ptr = buffer->data + out->offset;
    } else if (status == HURRAY_OK) {
        ScriptSlot *slot = NULL;
        for (size_t s = 0; s < script->slots && !slot; s++)
            if (!script->slot[s].taken) slot = &script->slot[s];
        if (!slot)
            status = HURRAY_WAIT;
        else {
            slot->taken = true;
            slot->buffer = buffer;
            slot->offset = out->offset;
            slot->len = out->len = out->len < script->slot_bytes ? out->len : script->slot_bytes;
            memset(slot->memory, 0xDD, script->slot_bytes + GUARD);
            out->ptr = slot->memory;
            out->token = slot;
            if (++script->busy > script->most_busy) script->most_busy = script->busy;
        }
    }
    if (status == HURRAY_OK) buffer->open++, buffer->asked += out->len;
    pthread_mutex_unlock(&script->lock);
    return status;
}

static HurrayStatus commit(void *ctx, void *id, const HurrayWindow *in) {
    ScriptDestination *script = ctx;
    ScriptBuffer *buffer = id;
    pthread_mutex_lock(&script->lock);
    HurrayStatus status = count(script, SCRIPT_COMMIT);
    must(buffer->open > 0, "a commit without a window");
    if (script->slots) {
        ScriptSlot *slot = in->token;
        must(slot && slot->taken && !slot->copying && slot->buffer == buffer && slot->offset == in->offset && slot->len == in->len,
             "a commit of another window");
        for (size_t g = 0; g < GUARD; g++) must(slot->memory[slot->len + g] == 0xDD, "bytes behind the window were written");
        slot->copying = true;
        buffer->pending++;
    }
    buffer->open--;
    buffer->committed += in->len;
    pthread_mutex_unlock(&script->lock);
    return status;
}

static void give_slot(ScriptDestination *script, ScriptSlot *slot) {
    slot->taken = slot->copying = false;
    slot->buffer = NULL;
    script->busy--;
}

/* One copy ends. */
static bool end_copy(ScriptDestination *script) {
    for (size_t s = 0; s < script->slots; s++) {
        ScriptSlot *slot = &script->slot[s];
        if (!slot->copying) continue;
        memcpy(slot->buffer->data + slot->offset, slot->memory, (size_t)slot->len);
        slot->buffer->pending--;
        give_slot(script, slot);
        return true;
    }
    return false;
}

static HurrayStatus wait_callback(void *ctx, uint32_t timeout_ms) {
    ScriptDestination *script = ctx;
    pthread_mutex_lock(&script->lock);
    must(timeout_ms <= 60000, "waiting without end");
    HurrayStatus status = count(script, SCRIPT_WAIT);
    if (status == HURRAY_OK) end_copy(script);
    pthread_mutex_unlock(&script->lock);
    return status;
}

static void unlink_buffer(ScriptDestination *script, ScriptBuffer *buffer) {
    ScriptBuffer **at = &script->buffers;
    while (*at && *at != buffer) at = &(*at)->next;
    must(*at == buffer, "an id that is not there");
    *at = buffer->next;
}

static void release_data(void *data, void *context) {
    ScriptBuffer *buffer = context;
    (void)data;
    pthread_mutex_lock(&buffer->script->lock);
    buffer->script->live--;
    pthread_mutex_unlock(&buffer->script->lock);
    free(buffer->data);
    free(buffer);
}

static HurrayStatus freeze(void *ctx, void *id, HurrayBufferInfo *out) {
    ScriptDestination *script = ctx;
    ScriptBuffer *buffer = id;
    pthread_mutex_lock(&script->lock);
    HurrayStatus status = count(script, SCRIPT_FREEZE);
    must(buffer->prefilled || (buffer->committed == buffer->size && buffer->open == 0), "frozen before it was whole");
    if (status == HURRAY_OK && buffer->pending) status = HURRAY_WAIT;
    if (status == HURRAY_OK && buffer->freeze_waits) buffer->freeze_waits--, status = HURRAY_WAIT;
    if (status == HURRAY_OK) {
        unlink_buffer(script, buffer);
        out->data = buffer->data;
        out->byte_size = buffer->size;
        out->alignment = buffer->alignment;
        out->device_tag = buffer->device_tag;
        out->device_index = buffer->device_index;
        out->memory_class = buffer->memory_class;
        out->release = release_data;
        out->release_context = buffer;
    }
    pthread_mutex_unlock(&script->lock);
    return status;
}

static void discard(void *ctx, void *id) {
    ScriptDestination *script = ctx;
    ScriptBuffer *buffer = id;
    pthread_mutex_lock(&script->lock);
    count(script, SCRIPT_DISCARD);
    unlink_buffer(script, buffer);
    for (size_t s = 0; s < script->slots; s++)
        if (script->slot[s].taken && script->slot[s].buffer == buffer) give_slot(script, &script->slot[s]);
    script->live--;
    pthread_mutex_unlock(&script->lock);
    free(buffer->data);
    free(buffer);
}

void script_destination_init(ScriptDestination *script, size_t slots, size_t slot_bytes, bool concurrent) {
    memset(script, 0, sizeof *script);
    pthread_mutex_init(&script->lock, NULL);
    script->slots = slots;
    script->slot_bytes = slot_bytes;
    script->concurrent = concurrent;
    script->slot = calloc(slots + 1, sizeof *script->slot);
    must(script->slot != NULL, "no memory");
    for (size_t s = 0; s < slots; s++) {
        script->slot[s].memory = malloc(slot_bytes + GUARD);
        must(script->slot[s].memory != NULL, "no memory");
    }
}

HurrayDestinationAlloc script_destination(ScriptDestination *script) {
    HurrayDestinationAlloc out = HURRAY_DESTINATION_ALLOC_INIT;
    out.flags = script->concurrent ? HURRAY_DESTINATION_CONCURRENT : 0;
    out.ctx = script;
    out.retain = retain;
    out.reserve = reserve;
    out.allocate = allocate;
    out.window = window;
    out.commit = commit;
    out.freeze = freeze;
    out.discard = discard;
    out.wait = script->no_wait ? NULL : wait_callback;
    out.release = release;
    return out;
}

void script_destination_end(ScriptDestination *script) {
    assert_int_equal(script->live, 0);
    assert_int_equal(script->holds, 0);
    assert_int_equal(script->busy, 0);
    for (size_t s = 0; s < script->slots; s++) free(script->slot[s].memory);
    free(script->slot);
    pthread_mutex_destroy(&script->lock);
}
