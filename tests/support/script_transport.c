#include "support/script_transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void script_source(ScriptTransport *script, const void *bytes, size_t len) {
    memset(script, 0, sizeof *script);
    pthread_mutex_init(&script->lock, NULL);
    script->bytes = malloc(len ? len : 1);
    if (!script->bytes) abort();
    if (len) memcpy(script->bytes, bytes, len);
    script->len = len;
    script->size_claim = HURRAY_NONE;
}

void script_sink(ScriptTransport *script) {
    memset(script, 0, sizeof *script);
    pthread_mutex_init(&script->lock, NULL);
    script->size_claim = HURRAY_NONE;
}

void script_free(ScriptTransport *script) {
    free(script->bytes);
    pthread_mutex_destroy(&script->lock);
    memset(script, 0, sizeof *script);
}

void script_pattern(ScriptTransport *script, const ScriptStep *steps, size_t count) {
    script->steps = steps;
    script->step_count = count;
    script->step = 0;
}

void script_every(ScriptTransport *script, size_t bytes) { script->every = bytes; }

void script_fail(ScriptTransport *script, uint64_t call, HurrayStatus status, int sticky) {
    script->fail_call = call;
    script->fail_status = status;
    script->fail_sticky = sticky != 0;
    script->counted = 0;
}

/* What this moving call is to do with len bytes offered. */
static ScriptStep next_step(ScriptTransport *script, size_t len) {
    ScriptStep step = {SCRIPT_ALL, HURRAY_OK, 0};
    if (script->before) script->before(script->before_ctx);
    if (len > script->largest) script->largest = len;
    if (script->step_count) {
        step = script->steps[script->step];
        script->step = (script->step + 1) % script->step_count;
    }
    script->counted++;
    if (script->fail_call && (script->counted == script->fail_call || (script->fail_sticky && script->counted > script->fail_call)))
        step.status = script->fail_status;
    if (script->every && step.limit > script->every) step.limit = script->every;
    if (step.limit > len) step.limit = len;
    return step;
}

static HurrayStatus answer(ScriptStep step, size_t len, size_t moved, size_t *out) {
    if (step.status != HURRAY_OK) {
        *out = len; /* a failing call moved nothing, whatever it leaves here */
        return step.status;
    }
    *out = step.over ? len + step.over : moved;
    return HURRAY_OK;
}

static HurrayStatus script_read(void *ctx, uint8_t *dst, size_t len, size_t *out) {
    ScriptTransport *script = ctx;
    pthread_mutex_lock(&script->lock);
    script->reads++;
    ScriptStep step = next_step(script, len);
    size_t left = script->len - script->position, moved = step.limit < left ? step.limit : left;
    if (step.status == HURRAY_OK && moved) {
        memcpy(dst, script->bytes + script->position, moved);
        script->position += moved;
    }
    pthread_mutex_unlock(&script->lock);
    return answer(step, len, moved, out);
}

static HurrayStatus script_read_at(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *out) {
    ScriptTransport *script = ctx;
    if (script->io_alignment > 1) {
        assert_int_equal(offset % script->io_alignment, 0);
        assert_int_equal(len % script->io_alignment, 0);
        assert_int_equal((uintptr_t)dst % script->io_alignment, 0);
    }
    pthread_mutex_lock(&script->lock);
    script->read_ats++;
    ScriptStep step = next_step(script, len);
    size_t left = offset < script->len ? script->len - (size_t)offset : 0, moved = step.limit < left ? step.limit : left;
    if (step.status == HURRAY_OK && moved) memcpy(dst, script->bytes + offset, moved);
    pthread_mutex_unlock(&script->lock);
    return answer(step, len, moved, out);
}

static HurrayStatus script_write(void *ctx, const uint8_t *src, size_t len, size_t *out) {
    ScriptTransport *script = ctx;
    pthread_mutex_lock(&script->lock);
    script->writes++;
    ScriptStep step = next_step(script, len);
    size_t moved = step.limit;
    if (step.status == HURRAY_OK && moved) {
        if (script->len + moved > script->capacity) {
            script->capacity = (script->len + moved) * 2;
            script->bytes = realloc(script->bytes, script->capacity);
            if (!script->bytes) abort();
        }
        memcpy(script->bytes + script->len, src, moved);
        script->len += moved;
    }
    pthread_mutex_unlock(&script->lock);
    return answer(step, len, moved, out);
}

static HurrayStatus script_size(void *ctx, uint64_t *out) {
    ScriptTransport *script = ctx;
    script->sizes++;
    *out = script->size_claim == HURRAY_NONE ? script->len : script->size_claim;
    return script->size_status;
}

static HurrayStatus script_finish(void *ctx) {
    ScriptTransport *script = ctx;
    return ++script->finishes <= script->finish_failures ? script->finish_status : HURRAY_OK;
}

static void script_release(void *ctx) { ((ScriptTransport *)ctx)->releases++; }

HurrayTransport script_transport(ScriptTransport *script) {
    HurrayTransport transport = {.ctx = script,
                                 .read = script_read,
                                 .write = script_write,
                                 .read_at = script_read_at,
                                 .size = script_size,
                                 .release = script_release,
                                 .finish = script_finish,
                                 .flags = script->flags,
                                 .io_alignment = script->io_alignment};
    return transport;
}

void script_reset(ScriptTransport *script) {
    uint8_t *bytes = script->bytes;
    size_t len = script->len, capacity = script->capacity;
    pthread_mutex_destroy(&script->lock);
    memset(script, 0, sizeof *script);
    pthread_mutex_init(&script->lock, NULL);
    script->bytes = bytes;
    script->capacity = capacity;
    script->len = capacity ? 0 : len;
    script->size_claim = HURRAY_NONE;
}
