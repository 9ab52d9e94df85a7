/* The stand-in's order: streams as queues, events as places in them, and when what runs. */
#include "cuda/fake_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HANDLES (1u << 20) /* names are addresses that nobody can read, 64 bytes apart */

void *fake_handle_name(const FakeHandle *handle) {
    for (size_t i = fake.handle_count; i-- > 0;)
        if (fake.handles[i] == handle) return (void *)(fake.handle_base + i * 64);
    return NULL;
}

FakeHandle *fake_handle_new(FakeHandleKind kind, int device) {
    if (fake.handle_base == 0) fake.handle_base = (uintptr_t)mmap(NULL, (size_t)HANDLES * 64, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fake.handle_count == fake.handle_capacity) {
        fake.handle_capacity = fake.handle_capacity ? fake.handle_capacity * 2 : 64;
        fake.handles = realloc(fake.handles, fake.handle_capacity * sizeof *fake.handles);
    }
    FakeHandle *handle = calloc(1, sizeof *handle);
    handle->kind = kind;
    handle->device = device;
    handle->live = true;
    fake.handles[fake.handle_count++] = handle;
    return handle;
}

FakeHandle *fake_handle_find(const void *name, FakeHandleKind kind, const char *call) {
    static const char *const kinds[] = {"", "context", "stream", "event"};
    uintptr_t at = (uintptr_t)name;
    size_t index = (at - fake.handle_base) / 64;
    if (at < fake.handle_base || index >= fake.handle_count || fake.handles[index]->kind != kind)
        fake_report(FAKE_CHECK_DESTROYED, call, name, "is no %s", kinds[kind]);
    if (!fake.handles[index]->live) fake_report(FAKE_CHECK_DESTROYED, call, name, "a %s that was destroyed", kinds[kind]);
    return fake.handles[index];
}

FakeHandle *fake_stream_find(const void *name, int device, const char *call) {
    if (name == HRY_CUDA_STREAM_LEGACY || name == NULL) {
        if (!fake.legacy[device]) {
            fake.legacy[device] = fake_handle_new(FAKE_STREAM, device);
            fake.legacy[device]->caller = true;
        }
        return fake.legacy[device];
    }
    if (name == HRY_CUDA_STREAM_PER_THREAD) {
        if (!fake.per_thread || !pthread_equal(fake.per_thread_owner, pthread_self()))
            fake_report(FAKE_CHECK_PER_THREAD_STREAM, call, name, "names the calling thread's own stream, and this is not its owner's thread");
        return fake.per_thread;
    }
    return fake_handle_find(name, FAKE_STREAM, call);
}

/* ---- what runs ---- */

static void copy_bytes(FakeOp *op) {
    if (op->snapshot) {
        memcpy(op->to, op->snapshot, op->len);
        return;
    }
    unsigned char resident;
    if (mincore((void *)((uintptr_t)op->from / FAKE_PAGE * FAKE_PAGE), 1, &resident) != 0)
        fake_report(FAKE_CHECK_FREED_PENDING, "a running copy", op->from, "its source was unmapped");
    if (fake_hash(op->from, op->len) != op->hash)
        fake_report(FAKE_CHECK_SOURCE_CHANGED, "a running copy", op->from, "its %zu bytes are not those of cudaMemcpyAsync", op->len);
    memcpy(op->to, op->from, op->len);
}

static void finish_copy(FakeHandle *stream, FakeOp *op) {
    fake_block_mark(op->target, op->offset, op->len);
    fake_unprotect(op);
    fake.counts.copies++;
    fake.counts.copied_bytes += op->len;
    FakeFailure *failure = &fake.failure;
    if (failure->copy_n != 0 && ++failure->copies_seen == failure->copy_n) {
        failure->happened = true;
        fake_context_kill(stream->device, failure->copy_code);
    }
}

static void run_one(FakeHandle *stream) {
    FakeOp *op = stream->ops[stream->run];
    if (fake.contexts[stream->device].dead) {
        fake_unprotect(op);
    } else if (op->kind == FAKE_OP_COPY) {
        copy_bytes(op);
        finish_copy(stream, op);
    } else if (op->kind == FAKE_OP_WAIT) {
        fake_run_until(op->of, op->position);
    }
    stream->run++;
}

bool fake_stream_is_done(const FakeHandle *stream, size_t position) {
    return stream->run >= position || fake.contexts[stream->device].dead != 0;
}

void fake_run_until(FakeHandle *stream, size_t position) {
    if (fake.settings.schedule != FAKE_THREADED) {
        while (stream->run < position) run_one(stream);
        return;
    }
    while (!fake_stream_is_done(stream, position)) pthread_cond_wait(&fake.changed, &fake.lock);
}

void fake_run_some(void) {
    if (fake.settings.schedule != FAKE_RANDOM) return;
    uint64_t r = fake_random();
    if (fake.handle_count == 0 || r % 3 == 0) return;
    for (size_t tries = 0; tries < 4; tries++) {
        FakeHandle *stream = fake.handles[fake_random() % fake.handle_count];
        if (stream->kind != FAKE_STREAM) continue;
        for (uint64_t n = fake_random() % 4; n > 0 && stream->run < stream->count; n--) run_one(stream);
        return;
    }
}

/* ---- threads ---- */

static void sleep_until(uint64_t ns) {
    struct timespec at = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {}
}

/* One engine per device: a copy begins when the one before it has ended, and takes its bytes' time. Lock held, given up meanwhile. */
static void copy_at_speed(FakeHandle *stream, FakeOp *op) {
    FakeContextState *context = &fake.contexts[stream->device];
    uint64_t now = fake_now_ns(), begin = context->engine_free_ns > now ? context->engine_free_ns : now;
    uint64_t cost = fake.settings.gap_ns;
    if (fake.settings.link_bytes) cost += (uint64_t)((double)op->len * 1e9 / (double)fake.settings.link_bytes);
    context->engine_free_ns = begin + cost;
    if (fake.counts.first_copy_ns == 0) fake.counts.first_copy_ns = begin;
    pthread_mutex_unlock(&fake.lock);
    if (begin > now) sleep_until(begin);
    copy_bytes(op);
    if (cost) sleep_until(begin + cost);
    pthread_mutex_lock(&fake.lock);
    fake.counts.copying_ns += cost;
    fake.counts.last_copy_ns = fake_now_ns();
    if (!context->dead) finish_copy(stream, op);
}

static void *stream_main(void *argument) {
    FakeHandle *stream = argument;
    pthread_mutex_lock(&fake.lock);
    for (;;) {
        while (stream->run == stream->count && !stream->stop) pthread_cond_wait(&fake.changed, &fake.lock);
        if (stream->run == stream->count) break;
        FakeOp *op = stream->ops[stream->run];
        if (fake.contexts[stream->device].dead) fake_unprotect(op);
        else if (op->kind == FAKE_OP_COPY) copy_at_speed(stream, op);
        else if (op->kind == FAKE_OP_WAIT) fake_run_until(op->of, op->position);
        stream->run++;
        pthread_cond_broadcast(&fake.changed);
    }
    pthread_mutex_unlock(&fake.lock);
    return NULL;
}

/* Ends the stream's thread once its work is done. Gives the lock up meanwhile. */
void fake_stream_stop(FakeHandle *stream) {
    if (!stream->has_thread) return;
    stream->stop = true;
    stream->has_thread = false;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&fake.lock);
}

/* ---- enqueuing ---- */

void fake_enqueue(FakeHandle *stream, const FakeOp *made) {
    if (stream->count == stream->capacity) {
        stream->capacity = stream->capacity ? stream->capacity * 2 : 64;
        stream->ops = realloc(stream->ops, stream->capacity * sizeof *stream->ops);
    }
    FakeOp *op = malloc(sizeof *op);
    *op = *made;
    stream->ops[stream->count++] = op;
    if (op->kind == FAKE_OP_COPY) fake_protect(op);
    if (fake.settings.schedule == FAKE_EAGER) fake_run_until(stream, stream->count);
    if (fake.settings.schedule != FAKE_THREADED) return;
    if (!stream->has_thread) {
        stream->stop = false;
        stream->has_thread = pthread_create(&stream->thread, NULL, stream_main, stream) == 0;
    }
    pthread_cond_broadcast(&fake.changed);
}

/* Nothing more runs there; what is pending is forgotten, pinned memory is the host's again. */
void fake_context_kill(int device, int code) {
    fake.contexts[device].dead = code;
    for (size_t i = 0; i < fake.handle_count; i++) {
        FakeHandle *stream = fake.handles[i];
        if (stream->kind != FAKE_STREAM || stream->device != device) continue;
        for (size_t k = stream->run; k < stream->count; k++) {
            FakeOp *op = stream->ops[k];
            if (op->kind == FAKE_OP_COPY) fake_unprotect(op);
        }
    }
    pthread_cond_broadcast(&fake.changed);
}

void fake_handles_drop_all(void) {
    for (size_t i = 0; i < fake.handle_count; i++) fake_stream_stop(fake.handles[i]);
    for (size_t i = 0; i < fake.handle_count; i++) {
        FakeHandle *handle = fake.handles[i];
        for (size_t k = 0; k < handle->count; k++) {
            fake_unprotect(handle->ops[k]);
            free(handle->ops[k]->snapshot);
            free(handle->ops[k]);
        }
        free(handle->ops);
        free(handle);
    }
    free(fake.handles);
    free(fake.pending);
    fake.handles = NULL;
    fake.pending = NULL;
    fake.handle_count = fake.handle_capacity = fake.pending_count = fake.pending_capacity = 0;
    if (fake.handle_base) munmap((void *)fake.handle_base, (size_t)HANDLES * 64);
    fake.handle_base = 0;
}
