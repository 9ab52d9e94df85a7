/* Begin and end of a run, reports, and the caller's side. */
#include "cuda/fake_inside.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

FakeRuntime fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

FakeThread *fake_thread(void) {
    static _Thread_local FakeThread thread;
    if (thread.generation != fake.generation) {
        memset(&thread, 0, sizeof thread);
        thread.generation = fake.generation;
    }
    return &thread;
}

/* From any thread and from the fault handler: one write, and out. */
void fake_report(int check, const char *call, const void *handle, const char *format, ...) {
    char text[512];
    int used = snprintf(text, sizeof text, "stand-in: check %d in \"%s\": %s, %p: ", check, fake.test, call, handle);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(text + used, sizeof text - (size_t)used - 1, format, arguments);
    va_end(arguments);
    size_t len = (size_t)used + (size_t)more;
    if (len > sizeof text - 2) len = sizeof text - 2;
    text[len++] = '\n';
    if (write(2, text, len) < 0) _exit(98);
    _exit(100 + check);
}

uint64_t fake_random(void) {
    fake.random ^= fake.random << 13;
    fake.random ^= fake.random >> 7;
    fake.random ^= fake.random << 17;
    return fake.random >> 11;
}

uint64_t fake_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t fake_hash(const uint8_t *bytes, size_t len) {
    uint64_t lanes[4] = {len, 1, 2, 3}, words[4];
    for (; len >= 32; bytes += 32, len -= 32) { /* four at once: each step waits for the one before it in its lane only */
        memcpy(words, bytes, 32);
        for (int k = 0; k < 4; k++) {
            lanes[k] = (lanes[k] ^ words[k]) * 0x9e3779b97f4a7c15u;
            lanes[k] ^= lanes[k] >> 29;
        }
    }
    uint64_t hash = ((lanes[0] * 31 + lanes[1]) * 31 + lanes[2]) * 31 + lanes[3];
    for (; len > 0; bytes++, len--) hash = (hash ^ *bytes) * 0x100000001b3u;
    return hash;
}

static size_t entries(const char *path) {
    size_t count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count;
}

static void *nothing(void *argument) { return argument; }

/* Sanitizers start a thread of their own with the first one of the program. */
static void warm_up(void) {
    static bool warm = false;
    pthread_t thread;
    if (!warm && pthread_create(&thread, NULL, nothing, NULL) == 0) pthread_join(thread, NULL);
    warm = true;
}

void fake_cuda_begin(const FakeSettings *settings, const char *test) {
    static unsigned generation = 0;
    warm_up();
    pthread_mutex_lock(&fake.lock);
    if (fake.open) { /* a test that failed half-way */
        fake_faults_remove();
        fake_handles_drop_all();
        fake_blocks_drop_all();
    }
    FakeSettings made = settings ? *settings : (FakeSettings){0};
    if (made.not_ready == 0) made.not_ready = 2;
    if (made.devices == 0) made.devices = 1;
    if (made.device_bytes == 0) made.device_bytes = (uint64_t)4 << 30;
    if (made.driver_version == 0) made.driver_version = 13000;
    fake.settings = made;
    snprintf(fake.test, sizeof fake.test, "%s", test);
    fake.pid = getpid();
    fake.generation = ++generation;
    fake.open = true;
    fake.random = (made.seed + 1) * 0x9e3779b97f4a7c15u;
    memset(fake.contexts, 0, sizeof fake.contexts);
    memset(fake.legacy, 0, sizeof fake.legacy);
    fake.per_thread = NULL;
    memset(&fake.failure, 0, sizeof fake.failure);
    memset(&fake.counts, 0, sizeof fake.counts);
    fake.pushed = 0;
    fake.same_answers = fake.errors_in_a_row = 0;
    fake_faults_install();
    fake.threads_before = entries("/proc/self/task");
    fake.files_before = entries("/proc/self/fd");
    pthread_mutex_unlock(&fake.lock);
}

/* Lock held. */
static bool any_dead(void) {
    for (int i = 0; i < FAKE_DEVICES; i++)
        if (fake.contexts[i].dead) return true;
    return false;
}

/* From some call on the library could do nothing, or see no end of anything: what it holds it has to give up. Lock held. */
static bool gave_no_answer(void) {
    const FakeFailure *failure = &fake.failure;
    return failure->onward && failure->happened && (failure->call == FAKE_push_context || failure->call == FAKE_event_query || failure->call == FAKE_stream_query);
}

static void left(bool wrong, const char *what, uint64_t count) {
    if (wrong) fake_report(FAKE_CHECK_LEFT, "the end", NULL, "%llu %s left", (unsigned long long)count, what);
}

/* Threads of the kernel's own (io_uring) take a moment to go. */
static void left_entries(const char *path, size_t before, const char *what) {
    size_t now = 0;
    for (int tries = 0; tries < 300; tries++) {
        now = entries(path);
        if (now <= before) return;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    left(true, what, now - before);
}

void fake_cuda_end(void) {
    fake_cuda_check_thread("the end");
    pthread_mutex_lock(&fake.lock);
    bool dead = any_dead() || gave_no_answer();
    left(fake.counts.contexts != 0, "retained contexts", fake.counts.contexts);
    left(fake.pushed != 0, "pushed contexts", (uint64_t)fake.pushed);
    if (!dead) { /* else freeing fails, and what is there goes with the process */
        left(fake.pending_count != 0, "pending copies", fake.pending_count);
        left(fake.counts.device_bytes != 0, "bytes of device memory", fake.counts.device_bytes);
        left(fake.counts.pinned_blocks != 0, "pinned ranges", fake.counts.pinned_blocks);
        left(fake.counts.streams != 0, "streams", fake.counts.streams);
        left(fake.counts.events != 0, "events", fake.counts.events);
    }
    fake_handles_drop_all();
    fake_blocks_drop_all();
    fake_faults_remove();
    fake.open = false;
    pthread_mutex_unlock(&fake.lock);
    left_entries("/proc/self/task", fake.threads_before, "threads");
    left_entries("/proc/self/fd", fake.files_before, "descriptors");
}

void fake_cuda_fail(FakeCall call, uint64_t n, bool onward, int code) {
    pthread_mutex_lock(&fake.lock);
    fake.failure = (FakeFailure){.armed = n != 0, .onward = onward, .call = call, .n = n, .code = code};
    pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_fail_running_copy(uint64_t n, int code) {
    pthread_mutex_lock(&fake.lock);
    fake.failure = (FakeFailure){.copy_n = n, .copy_code = code};
    pthread_mutex_unlock(&fake.lock);
}

bool fake_cuda_failed(void) {
    pthread_mutex_lock(&fake.lock);
    bool happened = fake.failure.happened;
    pthread_mutex_unlock(&fake.lock);
    return happened;
}

bool fake_cuda_is_dead(void) {
    pthread_mutex_lock(&fake.lock);
    bool dead = any_dead();
    pthread_mutex_unlock(&fake.lock);
    return dead;
}

void *fake_cuda_stream(int device) {
    pthread_mutex_lock(&fake.lock);
    FakeHandle *stream = fake_handle_new(FAKE_STREAM, device);
    stream->caller = true;
    void *name = fake_handle_name(stream);
    pthread_mutex_unlock(&fake.lock);
    return name;
}

void fake_cuda_own_stream_2(void) {
    pthread_mutex_lock(&fake.lock);
    if (!fake.per_thread) fake.per_thread = fake_handle_new(FAKE_STREAM, 0);
    fake.per_thread->caller = true;
    fake.per_thread_owner = pthread_self();
    pthread_mutex_unlock(&fake.lock);
}

void *fake_cuda_device_memory(int device, size_t len) {
    pthread_mutex_lock(&fake.lock);
    FakeBlock *block = fake_block_new(FAKE_DEVICE, device, len);
    block->caller = true;
    fake.counts.device_bytes -= len;
    fake.counts.device_blocks--;
    pthread_mutex_unlock(&fake.lock);
    return (void *)block->base;
}

void fake_cuda_device_memory_free(void *memory) {
    pthread_mutex_lock(&fake.lock);
    FakeBlock *block = fake_block_find(memory, false, true);
    if (!block || !block->live || !block->caller || block->base != (uintptr_t)memory)
        fake_report(FAKE_CHECK_USE_AFTER_FREE, "the caller's deallocation", memory, "is not the caller's live memory");
    if (block->pending) fake_report(FAKE_CHECK_FREED_PENDING, "the caller's deallocation", memory, "with %u copies pending on it", block->pending);
    fake.counts.device_bytes += block->size;
    fake.counts.device_blocks++;
    fake_block_release(block);
    pthread_mutex_unlock(&fake.lock);
}

/* Lock held. */
static void expect(const char *how, const void *memory, const void *bytes, size_t len) {
    size_t at = 0;
    FakeBlock *block = fake_block_find(memory, false, true);
    const uint8_t *found = memory;
    if (len == 0) return;
    if (block) {
        if (!block->live) fake_report(FAKE_CHECK_USE_AFTER_FREE, how, memory, "memory that was freed");
        at = (uintptr_t)memory - block->base;
        if (len > block->size - at) fake_report(FAKE_CHECK_RANGE, how, memory, "%zu bytes at %zu of %zu", len, at, block->size);
        size_t first;
        if (!fake_block_is_written(block, at, len, &first))
            fake_report(FAKE_CHECK_UNWRITTEN, how, memory, "byte %zu of %zu was written by no copy", first - at, len);
        found = block->alias + at;
    }
    if (memcmp(found, bytes, len) == 0) return;
    for (at = 0; at < len && found[at] == ((const uint8_t *)bytes)[at]; at++) {}
    fake_report(FAKE_CHECK_BYTES, how, memory, "byte %zu of %zu is wrong", at, len);
}

void fake_cuda_expect_now(const void *memory, const void *bytes, size_t len) {
    pthread_mutex_lock(&fake.lock);
    expect("a consumer at once", memory, bytes, len);
    pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_forget(const void *memory, size_t len) {
    pthread_mutex_lock(&fake.lock);
    FakeBlock *block = fake_block_find(memory, false, false);
    if (!block || len > block->size - ((uintptr_t)memory - block->base)) fake_report(FAKE_CHECK_RANGE, "the consumer", memory, "forgets %zu bytes that are not there", len);
    fake_block_forget(block, (uintptr_t)memory - block->base, len);
    pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_hand_out(void *event) {
    pthread_mutex_lock(&fake.lock);
    FakeHandle *handle = fake_handle_find(event, FAKE_EVENT, "the hand-off");
    if (!handle->recorded_on) fake_report(FAKE_CHECK_UNRECORDED, "the hand-off", event, "was never recorded");
    handle->handed_out = true;
    pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_expect_after(void *event, const void *memory, const void *bytes, size_t len) {
    fake_cuda_hand_out(event);
    pthread_mutex_lock(&fake.lock);
    const FakeHandle *handle = fake_handle_find(event, FAKE_EVENT, "a consumer's wait");
    fake_run_until(handle->recorded_on, handle->position);
    if (!fake.contexts[handle->device].dead) expect("a consumer behind the event", memory, bytes, len);
    pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_expect_on(void *stream, const void *memory, const void *bytes, size_t len) {
    pthread_mutex_lock(&fake.lock);
    const FakeBlock *block = fake_block_find(memory, false, true);
    FakeHandle *handle = fake_stream_find(stream, block ? block->device : 0, "a consumer's stream");
    fake_run_until(handle, handle->count);
    if (!fake.contexts[handle->device].dead) expect("a consumer on its stream", memory, bytes, len);
    pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_run_all(void) {
    pthread_mutex_lock(&fake.lock);
    for (size_t i = 0; i < fake.handle_count; i++)
        if (fake.handles[i]->kind == FAKE_STREAM) fake_run_until(fake.handles[i], fake.handles[i]->count);
    pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_check_thread(const char *where) {
    pthread_mutex_lock(&fake.lock);
    const FakeThread *thread = fake_thread();
    bool dead = any_dead();
    if (thread->depth != 0) fake_report(FAKE_CHECK_CONTEXT, where, NULL, "%u contexts are still pushed", thread->depth);
    if (thread->last_error != 0 && !dead && !fake.settings.no_driver)
        fake_report(FAKE_CHECK_LAST_ERROR, where, NULL, "the last error of this thread is still %d", thread->last_error);
    pthread_mutex_unlock(&fake.lock);
}

void hry_cuda_tell_lock(int by) { fake_thread()->locks += by; }

void fake_cuda_counts(FakeCounts *out) {
    pthread_mutex_lock(&fake.lock);
    *out = fake.counts;
    out->pending = fake.pending_count;
    pthread_mutex_unlock(&fake.lock);
}

bool fake_cuda_is_device(const void *memory) {
    pthread_mutex_lock(&fake.lock);
    bool is = fake_block_find(memory, false, false) != NULL;
    pthread_mutex_unlock(&fake.lock);
    return is;
}

bool fake_cuda_is_pinned(const void *memory, size_t len) {
    pthread_mutex_lock(&fake.lock);
    const FakeBlock *block = fake_block_find(memory, true, false);
    bool is = block && (uintptr_t)memory + len <= block->base + block->size;
    pthread_mutex_unlock(&fake.lock);
    return is;
}
