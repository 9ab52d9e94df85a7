/* The table itself: every call with its checks. */
#include "cuda/fake_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ENDLESS 5000u

static const char *const names[] = {
#define NAME(call, name) name,
    FAKE_CALLS(NAME)
#undef NAME
};

const char *fake_cuda_call_name(FakeCall call) { return call < FAKE_CALL_COUNT ? names[call] : "any call"; }

bool fake_cuda_is_release(FakeCall call) {
    return call == FAKE_get_last_error || call == FAKE_primary_release || call == FAKE_pop_context || call == FAKE_exchange_capture_mode || call == FAKE_free_device ||
           call == FAKE_host_unregister || call == FAKE_host_free || call == FAKE_stream_destroy || call == FAKE_event_destroy;
}

static bool is_sticky(int code) {
    return code == 214 || code == 700 || code == 702 || code == 709 || code == 710 || (code >= 714 && code <= 719) || code == 999;
}

/* The driver's own calls leave the runtime's last error alone. */
static bool is_driver_call(FakeCall call) { return call == FAKE_primary_retain || call == FAKE_primary_release || call == FAKE_push_context || call == FAKE_pop_context; }

static bool needs_context(FakeCall call) { return call >= FAKE_malloc_device || call == FAKE_exchange_capture_mode; }

static int ordered_failure(FakeCall call) {
    FakeFailure *failure = &fake.failure;
    if (!failure->armed || call == FAKE_get_last_error || (failure->call != FAKE_ANY && failure->call != call)) return 0;
    failure->seen++;
    if (failure->seen != failure->n && !(failure->onward && failure->seen > failure->n)) return 0;
    failure->happened = true;
    return failure->code;
}

/* Locks. What is not 0 is the call's answer; a release does its work all the same. */
static int begin_call(FakeCall call, const void *handle, int *device) {
    const char *name = names[call];
    if (!fake.open) fake_report(FAKE_CHECK_LEFT, name, handle, "a call outside of any test");
    if (getpid() != fake.pid) fake_report(FAKE_CHECK_FORK, name, handle, "from a forked child");
    pthread_mutex_lock(&fake.lock);
    FakeThread *thread = fake_thread();
    fake.counts.calls[call]++;
    if (thread->locks > 0) fake_report(FAKE_CHECK_LOCKED, name, handle, "while the ring's lock is held");
    if (fake.settings.no_driver) return call == FAKE_get_last_error ? 0 : HRY_CUDA_INSUFFICIENT_DRIVER;
    *device = thread->depth > 0 ? thread->stack[thread->depth - 1] : -1;
    int dead = *device >= 0 ? fake.contexts[*device].dead : 0;
    if (thread->last_error != 0 && call != FAKE_get_last_error && !dead)
        fake_report(FAKE_CHECK_LAST_ERROR, name, handle, "while the last error of this thread is still %d", thread->last_error);
    if (needs_context(call) && *device < 0) fake_report(FAKE_CHECK_CONTEXT, name, handle, "without a context pushed: it makes or uses device 0's");
    fake_run_some();
    if (dead == 0 && *device >= 0) dead = fake.contexts[*device].dead;
    if (dead && needs_context(call)) {
        if (!fake_cuda_is_release(call)) {
            if (thread->sticky_seen >> *device & 1) fake_report(FAKE_CHECK_AFTER_STICKY, name, handle, "after error %d, which killed the context", dead);
            thread->sticky_seen |= 1 << *device;
        }
        return dead;
    }
    int code = ordered_failure(call);
    if (code != 0 && is_sticky(code) && *device >= 0) {
        fake_context_kill(*device, code);
        if (!fake_cuda_is_release(call)) thread->sticky_seen |= 1 << *device;
    }
    return code;
}

static int end_call(FakeCall call, const void *handle, int code) {
    FakeThread *thread = fake_thread();
    if (code != 0 && !is_driver_call(call) && call != FAKE_get_last_error) thread->last_error = code;
    if (call == FAKE_get_last_error) {
        if (code != 0 && ++fake.errors_in_a_row > ENDLESS) fake_report(FAKE_CHECK_ENDLESS, names[call], NULL, "answered %d %u times: this wait never ends", code, ENDLESS);
    } else {
        fake.errors_in_a_row = 0;
    }
    if ((call == FAKE_event_query || call == FAKE_stream_query) && fake.settings.schedule != FAKE_THREADED) {
        bool same = code != 0 && fake.asked_handle == handle && fake.asked_code == code;
        fake.same_answers = same ? fake.same_answers + 1 : 0;
        fake.asked_handle = handle;
        fake.asked_code = code;
        if (fake.same_answers > ENDLESS) fake_report(FAKE_CHECK_ENDLESS, names[call], handle, "answered %d %u times: this wait never ends", code, ENDLESS);
    }
    pthread_mutex_unlock(&fake.lock);
    return code;
}

#define BEGIN(call, handle)                                                                                                                \
    int device = -1, code = begin_call(FAKE_##call, handle, &device);                                                                      \
    const char *name = names[FAKE_##call];                                                                                                 \
    (void)name
#define END(call, handle) return end_call(FAKE_##call, handle, code)

/* ---- is there one ---- */

static int driver_get_version(int *version) {
    BEGIN(driver_get_version, NULL);
    if (fake.settings.no_driver) *version = 0, code = 0;
    else if (code == 0) *version = fake.settings.driver_version;
    END(driver_get_version, NULL);
}

static int runtime_get_version(int *version) {
    BEGIN(runtime_get_version, NULL);
    if (fake.settings.no_driver) code = 0;
    if (code == 0) *version = 13000;
    END(runtime_get_version, NULL);
}

static int get_device_count(int *count) {
    BEGIN(get_device_count, NULL);
    if (code == 0) code = fake.settings.count_code;
    if (code == 0) *count = (int)fake.settings.devices;
    END(get_device_count, NULL);
}

static bool is_device(int index) { return index >= 0 && index < (int)fake.settings.devices; }

static int device_get_attribute(int *value, int attribute, int index) {
    BEGIN(device_get_attribute, NULL);
    if (code == 0 && !is_device(index)) code = 101;
    if (code == 0) *value = attribute == HRY_CUDA_ATTRIBUTE_MANAGED_MEMORY && !fake.settings.no_managed;
    END(device_get_attribute, NULL);
}

static int get_device_properties(HryCudaProperties *out, int index) {
    BEGIN(get_device_properties, NULL);
    if (code == 0 && !is_device(index)) code = 101;
    if (code == 0) {
        memset(out, 0, sizeof *out);
        snprintf(out->name, sizeof out->name, "stand-in, host memory %d", index);
        for (int i = 0; i < 16; i++) out->uuid[i] = (uint8_t)(index * 16 + i);
        out->total_bytes = fake.settings.device_bytes;
    }
    END(get_device_properties, NULL);
}

static int device_get_pci_bus_id(char *id, int len, int index) {
    BEGIN(device_get_pci_bus_id, NULL);
    if (code == 0 && !is_device(index)) code = 101;
    if (code == 0) snprintf(id, (size_t)len, "0000:%02X:00.0", 0xa0 + index);
    END(device_get_pci_bus_id, NULL);
}

static const char *get_error_name(int code) {
    static const struct { int code; const char *name; } known[] = {
        {1, "cudaErrorInvalidValue"}, {2, "cudaErrorMemoryAllocation"}, {3, "cudaErrorInitializationError"}, {34, "cudaErrorStubLibrary"},
        {35, "cudaErrorInsufficientDriver"}, {46, "cudaErrorDevicesUnavailable"}, {100, "cudaErrorNoDevice"}, {600, "cudaErrorNotReady"},
        {700, "cudaErrorIllegalAddress"}, {709, "cudaErrorContextIsDestroyed"}, {801, "cudaErrorNotSupported"}, {802, "cudaErrorSystemNotReady"},
        {900, "cudaErrorStreamCaptureUnsupported"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code) return known[i].name;
    return "unrecognized error code";
}

static int get_last_error(void) {
    BEGIN(get_last_error, NULL);
    FakeThread *thread = fake_thread();
    if (fake.settings.no_driver) {
        code = HRY_CUDA_INSUFFICIENT_DRIVER; /* every time */
    } else if (device >= 0 && fake.contexts[device].dead) {
        code = fake.contexts[device].dead;
        thread->last_error = 0;
    } else {
        code = thread->last_error;
        thread->last_error = 0;
    }
    END(get_last_error, NULL);
}

/* ---- context ---- */

static int primary_retain(void **context, int index) {
    BEGIN(primary_retain, NULL);
    if (code == 0 && !is_device(index)) code = 101;
    if (code == 0) code = fake.contexts[index].dead;
    if (code == 0) {
        FakeContextState *state = &fake.contexts[index];
        if (!state->handle) state->handle = fake_handle_new(FAKE_CONTEXT, index);
        if (state->retained++ == 0) fake.counts.contexts++;
        *context = fake_handle_name(state->handle);
    }
    END(primary_retain, NULL);
}

static int primary_release(int index) {
    BEGIN(primary_release, NULL);
    if (fake.settings.no_driver || !is_device(index) || fake.contexts[index].retained == 0)
        fake_report(FAKE_CHECK_CONTEXT, name, NULL, "of device %d, which is not retained", index);
    if (--fake.contexts[index].retained == 0) fake.counts.contexts--;
    END(primary_release, NULL);
}

static int push_context(void *context) {
    BEGIN(push_context, context);
    FakeThread *thread = fake_thread();
    if (!fake.settings.no_driver) {
        const FakeHandle *handle = fake_handle_find(context, FAKE_CONTEXT, name);
        if (fake.contexts[handle->device].retained == 0) fake_report(FAKE_CHECK_CONTEXT, name, context, "that nobody retains");
        if (thread->depth == 16) fake_report(FAKE_CHECK_CONTEXT, name, context, "pushes without pops");
        if (code == 0) code = fake.contexts[handle->device].dead;
        else if ((is_sticky(code) || code == HRY_CUDA_INVALID_CONTEXT) && !fake.contexts[handle->device].dead) fake_context_kill(handle->device, code);
        if (code == 0) {
            thread->mode_at_push[thread->depth] = thread->capture_mode;
            thread->stack[thread->depth++] = handle->device;
            thread->mode_excused = false;
            fake.pushed++;
        }
    }
    END(push_context, context);
}

static int pop_context(void **context) {
    BEGIN(pop_context, NULL);
    FakeThread *thread = fake_thread();
    if (thread->depth == 0) fake_report(FAKE_CHECK_CONTEXT, name, NULL, "pop without push");
    thread->depth--;
    fake.pushed--;
    if (thread->capture_mode != thread->mode_at_push[thread->depth] && !thread->mode_excused)
        fake_report(FAKE_CHECK_CONTEXT, name, NULL, "the capture mode is %d and was %d", thread->capture_mode, thread->mode_at_push[thread->depth]);
    thread->capture_mode = thread->mode_at_push[thread->depth];
    if (code == 0) *context = fake_handle_name(fake.contexts[thread->stack[thread->depth]].handle);
    END(pop_context, NULL);
}

static int exchange_capture_mode(int *mode) {
    BEGIN(exchange_capture_mode, NULL);
    FakeThread *thread = fake_thread();
    bool restores = thread->depth > 0 && thread->capture_mode != thread->mode_at_push[thread->depth - 1];
    if (code != 0 && restores) thread->mode_excused = true;
    if (code == 0) {
        int old = thread->capture_mode;
        thread->capture_mode = *mode;
        *mode = old;
    }
    END(exchange_capture_mode, NULL);
}

/* ---- memory ---- */

static uint64_t live_bytes(int device) {
    uint64_t sum = 0;
    for (size_t i = 0; i < fake.block_count; i++) {
        const FakeBlock *block = fake.blocks[i];
        if (block->live && block->device == device && (block->kind == FAKE_DEVICE || block->kind == FAKE_MANAGED)) sum += block->size;
    }
    return sum;
}

static int make_device(void **memory, size_t size, FakeMemory kind, const char *name, int device, int code) {
    if (size == 0) fake_report(FAKE_CHECK_ZERO, name, NULL, "of zero bytes");
    if (code == 0 && size > fake.settings.device_bytes - live_bytes(device)) code = HRY_CUDA_OUT_OF_MEMORY;
    if (code == 0) *memory = (void *)fake_block_new(kind, device, size)->base;
    return code;
}

static int malloc_device(void **memory, size_t size) {
    BEGIN(malloc_device, NULL);
    code = make_device(memory, size, FAKE_DEVICE, name, device, code);
    END(malloc_device, NULL);
}

static int malloc_managed(void **memory, size_t size) {
    BEGIN(malloc_managed, NULL);
    if (code == 0 && fake.settings.no_managed) code = 801;
    code = make_device(memory, size, FAKE_MANAGED, name, device, code);
    END(malloc_managed, NULL);
}

/* The begin of a live block, or the end of the test. */
static FakeBlock *to_release(const void *memory, bool host, const char *name) {
    FakeBlock *block = fake_block_find(memory, host, true);
    if (!block || block->base != (uintptr_t)memory) fake_report(FAKE_CHECK_USE_AFTER_FREE, name, memory, "is the begin of no allocation");
    if (!block->live) fake_report(FAKE_CHECK_USE_AFTER_FREE, name, memory, "a second time");
    if (block->pending > 0) fake_report(FAKE_CHECK_FREED_PENDING, name, memory, "with %u copies pending on it", block->pending);
    return block;
}

static int free_device(void *memory) {
    BEGIN(free_device, memory);
    if (memory && !fake.settings.no_driver) {
        FakeBlock *block = to_release(memory, false, name);
        if (block->device != device) fake_report(FAKE_CHECK_CONTEXT, name, memory, "of device %d with device %d current", block->device, device);
        if (block->caller) fake_report(FAKE_CHECK_USE_AFTER_FREE, name, memory, "is the caller's own");
        fake_block_release(block);
    }
    END(free_device, memory);
}

static int may_pin(size_t size, const void *memory, const char *name, int code) {
    if (size == 0) fake_report(FAKE_CHECK_ZERO, name, memory, "of zero bytes");
    if (code == 0 && fake.settings.pinned_limit && fake.counts.pinned_bytes + size > fake.settings.pinned_limit) code = HRY_CUDA_OUT_OF_MEMORY;
    if (code == 0 && fake.settings.pinned_cap && fake.counts.pinned_bytes + size > fake.settings.pinned_cap)
        fake_report(FAKE_CHECK_CAP, name, memory, "%llu pinned bytes and %zu more, the cap is %llu", (unsigned long long)fake.counts.pinned_bytes, size,
                    (unsigned long long)fake.settings.pinned_cap);
    return code;
}

static int host_register(void *memory, size_t size) {
    BEGIN(host_register, memory);
    if (code == 0 && fake.settings.no_register) code = 801;
    code = may_pin(size, memory, name, code);
    unsigned char resident;
    uintptr_t last = ((uintptr_t)memory + size - 1) / FAKE_PAGE * FAKE_PAGE;
    if (mincore((void *)((uintptr_t)memory / FAKE_PAGE * FAKE_PAGE), 1, &resident) != 0 || mincore((void *)last, 1, &resident) != 0)
        fake_report(FAKE_CHECK_RANGE, name, memory, "%zu bytes that are not mapped", size);
    if (code == 0 && !fake_block_register(memory, size)) code = 712;
    END(host_register, memory);
}

static int host_unregister(void *memory) {
    BEGIN(host_unregister, memory);
    unsigned char resident;
    FakeBlock *block = to_release(memory, true, name);
    if (block->kind != FAKE_REGISTERED) fake_report(FAKE_CHECK_KIND, name, memory, "was not registered");
    if (mincore((void *)(block->base / FAKE_PAGE * FAKE_PAGE), 1, &resident) != 0) fake_report(FAKE_CHECK_FREED_PENDING, name, memory, "was unmapped before");
    fake_block_release(block);
    END(host_unregister, memory);
}

static int host_alloc(void **memory, size_t size) {
    BEGIN(host_alloc, NULL);
    code = may_pin(size, NULL, name, code);
    if (code == 0) *memory = (void *)fake_block_new(FAKE_HOST, -1, size)->base;
    END(host_alloc, NULL);
}

static int host_free(void *memory) {
    BEGIN(host_free, memory);
    if (memory) {
        FakeBlock *block = to_release(memory, true, name);
        if (block->kind != FAKE_HOST) fake_report(FAKE_CHECK_KIND, name, memory, "was not allocated by cudaHostAlloc");
        fake_block_release(block);
    }
    END(host_free, memory);
}

static int mem_get_info(size_t *free_bytes, size_t *total_bytes) {
    BEGIN(mem_get_info, NULL);
    if (code == 0) {
        *free_bytes = fake.settings.device_bytes - live_bytes(device);
        *total_bytes = fake.settings.device_bytes;
    }
    END(mem_get_info, NULL);
}

/* ---- order ---- */

static int stream_create(void **stream) {
    BEGIN(stream_create, NULL);
    if (code == 0) {
        *stream = fake_handle_name(fake_handle_new(FAKE_STREAM, device));
        fake.counts.streams++;
    }
    END(stream_create, NULL);
}

static int stream_destroy(void *stream) {
    BEGIN(stream_destroy, stream);
    FakeHandle *handle = fake_handle_find(stream, FAKE_STREAM, name);
    if (handle->device != device) fake_report(FAKE_CHECK_CONTEXT, name, stream, "of device %d with device %d current", handle->device, device);
    if (handle->caller) fake_report(FAKE_CHECK_DESTROYED, name, stream, "is the caller's own");
    handle->live = false;
    fake.counts.streams--;
    fake_stream_stop(handle);
    END(stream_destroy, stream);
}

/* Lazy: not ready a set number of times, then exactly what was asked for runs. */
static int ask(FakeHandle *handle, FakeHandle *stream, size_t position) {
    if (fake_stream_is_done(stream, position)) return fake.contexts[stream->device].dead;
    if (fake.settings.schedule == FAKE_THREADED) return HRY_CUDA_NOT_READY;
    unsigned patience = fake.settings.schedule == FAKE_RANDOM ? 8 : fake.settings.not_ready;
    if (++handle->asked <= patience) return HRY_CUDA_NOT_READY;
    handle->asked = 0;
    fake_run_until(stream, position);
    return fake.contexts[stream->device].dead;
}

static int stream_query(void *stream) {
    BEGIN(stream_query, stream);
    FakeHandle *handle = fake_stream_find(stream, device < 0 ? 0 : device, name);
    if (code == 0) code = ask(handle, handle, handle->count);
    if (code != 0 && code == fake.contexts[handle->device].dead) fake_thread()->sticky_seen |= 1 << handle->device;
    END(stream_query, stream);
}

static FakeHandle *recorded_event(const void *event, const char *name) {
    FakeHandle *handle = fake_handle_find(event, FAKE_EVENT, name);
    if (!handle->recorded_on) fake_report(FAKE_CHECK_UNRECORDED, name, event, "before it was recorded");
    return handle;
}

static int stream_wait_event(void *stream, void *event) {
    BEGIN(stream_wait_event, event);
    FakeHandle *handle = fake_stream_find(stream, device < 0 ? 0 : device, name);
    const FakeHandle *mark = recorded_event(event, name);
    if (code == 0) fake_enqueue(handle, &(FakeOp){.kind = FAKE_OP_WAIT, .of = mark->recorded_on, .position = mark->position});
    END(stream_wait_event, event);
}

static int event_create(void **event) {
    BEGIN(event_create, NULL);
    if (code == 0) {
        *event = fake_handle_name(fake_handle_new(FAKE_EVENT, device));
        fake.counts.events++;
    }
    END(event_create, NULL);
}

static int event_destroy(void *event) {
    BEGIN(event_destroy, event);
    fake_handle_find(event, FAKE_EVENT, name)->live = false;
    fake.counts.events--;
    END(event_destroy, event);
}

static int event_record(void *event, void *stream) {
    BEGIN(event_record, event);
    FakeHandle *handle = fake_stream_find(stream, device < 0 ? 0 : device, name), *mark = fake_handle_find(event, FAKE_EVENT, name);
    if (mark->handed_out) fake_report(FAKE_CHECK_RECORDED_AGAIN, name, event, "it was handed out");
    if (mark->device != handle->device) fake_report(FAKE_CHECK_WRONG_DEVICE, name, event, "of device %d on a stream of device %d", mark->device, handle->device);
    if (handle->device != device) fake_report(FAKE_CHECK_CONTEXT, name, stream, "of device %d with device %d current", handle->device, device);
    if (code == 0) {
        mark->recorded_on = handle;
        mark->position = handle->count;
        mark->asked = 0;
    }
    END(event_record, event);
}

static int event_query(void *event) {
    BEGIN(event_query, event);
    FakeHandle *mark = recorded_event(event, name);
    if (code == 0) code = ask(mark, mark->recorded_on, mark->position);
    if (code != 0 && code == fake.contexts[mark->recorded_on->device].dead) fake_thread()->sticky_seen |= 1 << mark->recorded_on->device;
    END(event_query, event);
}

/* ---- copy ---- */

static FakeBlock *range_of(const void *memory, size_t size, bool host, const char *name) {
    FakeBlock *block = fake_block_find(memory, host, true);
    if (!block) return NULL;
    if (!block->live && block->kind != FAKE_REGISTERED) fake_report(FAKE_CHECK_USE_AFTER_FREE, name, memory, "memory that was freed");
    if (!block->live) return NULL;
    if ((uintptr_t)memory + size > block->base + block->size)
        fake_report(FAKE_CHECK_RANGE, name, memory, "%zu bytes at %zu of %s memory of %zu", size, (size_t)((uintptr_t)memory - block->base), host ? "pinned" : "device",
                    block->size);
    return block;
}

static int memcpy_async(void *to, const void *from, size_t size, int kind, void *stream) {
    BEGIN(memcpy_async, to);
    FakeHandle *handle = fake_stream_find(stream, device < 0 ? 0 : device, name);
    if (size == 0) fake_report(FAKE_CHECK_ZERO, name, to, "of zero bytes");
    FakeBlock *target = range_of(to, size, false, name), *source = range_of(from, size, true, name);
    if (kind != HRY_CUDA_COPY_TO_DEVICE && kind != HRY_CUDA_COPY_DEFAULT) fake_report(FAKE_CHECK_KIND, name, to, "kind %d", kind);
    if (!target) fake_report(FAKE_CHECK_KIND, name, to, "to what is no device memory");
    if (!source && fake_block_find(from, false, false)) fake_report(FAKE_CHECK_KIND, name, from, "from device memory");
    if (!source && !fake.settings.pageable) fake_report(FAKE_CHECK_PINNED, name, from, "from memory that is not pinned");
    if (target->device != device || handle->device != device)
        fake_report(FAKE_CHECK_CONTEXT, name, to, "to device %d on a stream of device %d with device %d current", target->device, handle->device, device);
    if (code == 0) {
        FakeOp op = {.kind = FAKE_OP_COPY, .from = from, .target = target, .source = source, .len = size, .offset = (uintptr_t)to - target->base};
        op.to = target->alias + op.offset;
        op.hash = fake_hash(from, size);
        if (!source) {
            op.snapshot = malloc(size);
            memcpy(op.snapshot, from, size);
        }
        fake.counts.copies_enqueued++;
        fake_enqueue(handle, &op);
        code = fake.contexts[device].dead; /* eager: the copy may have died at once */
        if (code) fake_thread()->sticky_seen |= 1 << device;
    }
    END(memcpy_async, to);
}

const HryCudaApi *hry_cuda_api(void) {
    static const HryCudaApi table = {
        driver_get_version, runtime_get_version, get_device_count, device_get_attribute, get_device_properties, device_get_pci_bus_id,
        get_error_name, get_last_error, primary_retain, primary_release, push_context, pop_context, exchange_capture_mode,
        malloc_device, free_device, malloc_managed, host_register, host_unregister, host_alloc, host_free, mem_get_info,
        stream_create, stream_destroy, stream_query, stream_wait_event, event_create, event_destroy, event_record, event_query, memcpy_async,
    };
    return &table;
}
