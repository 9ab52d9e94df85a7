#include "cuda/queue.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

uint64_t hry_cuda_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

HurrayStatus hry_cuda_queue_init(HryCudaQueue *queue, HryCudaDevice *device, void *stream, HurrayError *error) {
    HryCudaGuard guard;
    memset(queue, 0, sizeof *queue);
    queue->allocator = device->allocator;
    queue->stream = stream;
    queue->own = !stream;
    if (queue->own) {
        if (!hry_cuda_enter(device, &guard)) return hry_cuda_fail_lost(device, error);
        int code = device->api->stream_create(&queue->stream);
        HurrayStatus status = code == HRY_CUDA_SUCCESS ? HURRAY_OK : hry_cuda_fail(device, code, "cudaStreamCreateWithFlags", error);
        hry_cuda_leave(device, &guard);
        if (status != HURRAY_OK) return status;
    }
    pthread_mutex_init(&queue->lock, NULL);
    queue->device = hry_cuda_device_ref(device);
    return HURRAY_OK;
}

static void drop_pending(HryCudaQueue *queue) {
    while (queue->oldest) {
        HryCudaMark *mark = queue->oldest;
        queue->oldest = mark->next;
        hry_cuda_mark_unref(mark);
    }
    queue->newest = NULL;
}

void hry_cuda_queue_clear(HryCudaQueue *queue) {
    HryCudaGuard guard;
    if (!queue->device) return;
    drop_pending(queue);
    if (queue->own && hry_cuda_enter(queue->device, &guard)) {
        int code = queue->device->api->stream_destroy(queue->stream);
        if (code != HRY_CUDA_SUCCESS) hry_cuda_clear(queue->device, code);
        hry_cuda_leave(queue->device, &guard);
    }
    pthread_mutex_destroy(&queue->lock);
    hry_cuda_device_unref(queue->device);
    memset(queue, 0, sizeof *queue);
}

static HurrayStatus new_mark(HryCudaQueue *queue, HryCudaMark **out, HurrayError *error) {
    HryCudaMark *mark = hry_alloc(&queue->allocator, sizeof *mark);
    if (!mark) return hry_fail_memory(error, "an event", sizeof *mark);
    int code = queue->device->api->event_create(&mark->event);
    if (code != HRY_CUDA_SUCCESS) {
        hry_free(&queue->allocator, mark, sizeof *mark);
        return hry_cuda_fail(queue->device, code, "cudaEventCreateWithFlags", error);
    }
    atomic_init(&mark->references, 2); /* the queue's and the caller's */
    mark->device = hry_cuda_device_ref(queue->device);
    *out = mark;
    return HURRAY_OK;
}

/* Nothing of ours may be left pending behind a failure: asks the stream itself. The guard is entered. */
static void drain_stream(HryCudaQueue *queue) {
    for (unsigned failures = 0; !hry_cuda_is_gone(queue->device); hry_cuda_nap()) {
        int code = queue->device->api->stream_query(queue->stream);
        if (code == HRY_CUDA_SUCCESS) return;
        hry_cuda_clear(queue->device, code);
        failures = code == HRY_CUDA_NOT_READY ? 0 : failures + 1;
        if (failures == HRY_CUDA_PATIENCE) hry_cuda_lose(queue->device, code);
    }
}

static HurrayStatus enqueue(HryCudaQueue *queue, const HryCudaStretch *stretches, size_t count, int kind, HryCudaMark *mark, HurrayError *error) {
    const HryCudaApi *api = queue->device->api;
    uint64_t number = queue->issued + 1;
    size_t sent = 0;
    int code = HRY_CUDA_SUCCESS;
    const char *call = "cudaMemcpyAsync";
    for (; sent < count && code == HRY_CUDA_SUCCESS; sent++) {
        code = api->memcpy_async(stretches[sent].to, stretches[sent].from, stretches[sent].len, kind, queue->stream);
        mark->bytes += stretches[sent].len;
    }
    if (code == HRY_CUDA_SUCCESS) {
        call = "cudaEventRecord";
        code = api->event_record(mark->event, queue->stream);
    }
    if (code == HRY_CUDA_SUCCESS) return HURRAY_OK;
    HurrayStatus status = hry_cuda_fail(queue->device, code, call, error);
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, ", copy %llu of the stream", (unsigned long long)number);
    drain_stream(queue);
    return status;
}

HurrayStatus hry_cuda_queue_copy(HryCudaQueue *queue, const HryCudaStretch *stretches, size_t count, int kind, HryCudaMark **out, HurrayError *error) {
    HryCudaGuard guard;
    HryCudaMark *mark = NULL;
    if (!hry_cuda_enter(queue->device, &guard))
        return hry_cuda_fail_lost(queue->device, error);
    HurrayStatus status = new_mark(queue, &mark, error);
    if (status == HURRAY_OK) {
        pthread_mutex_lock(&queue->lock);
        mark->begin_ns = hry_cuda_now_ns();
        status = enqueue(queue, stretches, count, kind, mark, error);
        if (status == HURRAY_OK) {
            mark->seq = ++queue->issued;
            queue->bytes += mark->bytes;
            if (queue->newest) queue->newest->next = mark;
            else queue->oldest = mark;
            queue->newest = mark;
        }
        pthread_mutex_unlock(&queue->lock);
    }
    hry_cuda_leave(queue->device, &guard);
    if (status != HURRAY_OK) {
        if (mark) hry_cuda_mark_unref(mark), hry_cuda_mark_unref(mark);
        return status;
    }
    *out = mark;
    return HURRAY_OK;
}

/* The oldest marks that are done leave the list. Lock held, guard entered. */
static HurrayStatus retire(HryCudaQueue *queue, HryCudaMark **retired, HurrayError *error) {
    while (queue->oldest) {
        HryCudaMark *mark = queue->oldest;
        int code = queue->device->api->event_query(mark->event);
        if (code == HRY_CUDA_NOT_READY) {
            hry_cuda_clear(queue->device, code);
            return HURRAY_OK;
        }
        if (code != HRY_CUDA_SUCCESS) return hry_cuda_fail(queue->device, code, "cudaEventQuery", error);
        queue->oldest = mark->next;
        if (!queue->oldest) queue->newest = NULL;
        queue->done = mark->seq;
        if (queue->copied) queue->copied(queue->ctx, mark, hry_cuda_now_ns());
        mark->next = *retired;
        *retired = mark;
    }
    return HURRAY_OK;
}

HurrayStatus hry_cuda_queue_poll(HryCudaQueue *queue, HurrayError *error) {
    HryCudaGuard guard;
    HryCudaMark *retired = NULL;
    HurrayStatus status = HURRAY_OK;
    pthread_mutex_lock(&queue->lock);
    bool pending = queue->oldest != NULL;
    pthread_mutex_unlock(&queue->lock);
    if (!pending) return HURRAY_OK;
    if (!hry_cuda_enter(queue->device, &guard))
        return hry_cuda_fail_lost(queue->device, error);
    pthread_mutex_lock(&queue->lock);
    status = retire(queue, &retired, error);
    pthread_mutex_unlock(&queue->lock);
    hry_cuda_leave(queue->device, &guard);
    while (retired) {
        HryCudaMark *mark = retired;
        retired = mark->next;
        hry_cuda_mark_unref(mark);
    }
    return status;
}

bool hry_cuda_queue_is_done(HryCudaQueue *queue, uint64_t seq) {
    HurrayError ignored;
    if (queue->done >= seq) return true;
    hry_cuda_queue_poll(queue, &ignored);
    return queue->done >= seq || hry_cuda_is_gone(queue->device);
}

void hry_cuda_queue_drain(HryCudaQueue *queue) {
    HurrayError error;
    if (!queue->device) return;
    for (unsigned failures = 0; queue->done < queue->issued && !hry_cuda_is_gone(queue->device); hry_cuda_nap()) {
        hry_error_clear(&error);
        failures = hry_cuda_queue_poll(queue, &error) == HURRAY_OK ? 0 : failures + 1;
        if (failures == HRY_CUDA_PATIENCE) hry_cuda_lose(queue->device, (int)error.device_error);
    }
}

HryCudaMark *hry_cuda_mark_ref(HryCudaMark *mark) {
    if (mark) atomic_fetch_add_explicit(&mark->references, 1, memory_order_relaxed);
    return mark;
}

void hry_cuda_mark_unref(HryCudaMark *mark) {
    HryCudaGuard guard;
    if (!mark || atomic_fetch_sub_explicit(&mark->references, 1, memory_order_acq_rel) != 1) return;
    HryCudaDevice *device = mark->device;
    if (hry_cuda_enter(device, &guard)) {
        int code = device->api->event_destroy(mark->event);
        if (code != HRY_CUDA_SUCCESS) hry_cuda_clear(device, code);
        hry_cuda_leave(device, &guard);
    }
    hry_free(&device->allocator, mark, sizeof *mark);
    hry_cuda_device_unref(device);
}

HurrayStatus hry_cuda_mark_order(HryCudaMark *mark, void *stream, HurrayError *error) {
    HryCudaDevice *device = mark->device;
    HryCudaGuard guard;
    HurrayStatus status = HURRAY_OK;
    for (;;) {
        if (!hry_cuda_enter(device, &guard))
            return hry_cuda_fail_lost(device, error);
        int code = stream ? device->api->stream_wait_event(stream, mark->event) : device->api->event_query(mark->event);
        bool again = code == HRY_CUDA_NOT_READY && !stream;
        if (again) hry_cuda_clear(device, code);
        else if (code != HRY_CUDA_SUCCESS) status = hry_cuda_fail(device, code, stream ? "cudaStreamWaitEvent" : "cudaEventQuery", error);
        hry_cuda_leave(device, &guard);
        if (!again) return status;
        hry_cuda_nap();
    }
}
