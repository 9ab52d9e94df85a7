/* One copy stream: copies numbered in their order, an event recorded behind each (a mark), completion as one counter. Marks are
 * counted: one that was handed out is never recorded again. */
#ifndef HRY_CUDA_QUEUE_H
#define HRY_CUDA_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/device.h"

typedef struct HryCudaMark {
    HryCudaDevice *device; /* one reference */
    atomic_uint references;
    void *event;
    uint64_t seq;
    uint64_t begin_ns, bytes; /* of the copy in front of it, for traces */
    struct HryCudaMark *next; /* in the queue's list of pending marks */
} HryCudaMark;

typedef struct HryCudaStretch { /* one piece of a copy */
    void *to;
    const void *from;
    size_t len;
} HryCudaStretch;

typedef struct HryCudaQueue {
    HryCudaDevice *device; /* one reference */
    HurrayAllocator allocator;
    pthread_mutex_t lock; /* numbers and stream order agree */
    void *stream;
    bool own;
    _Atomic uint64_t issued, done, bytes; /* bytes: of all copies issued */
    HryCudaMark *oldest, *newest; /* pending, in order */
    void (*copied)(void *ctx, const HryCudaMark *mark, uint64_t end_ns); /* each copy that was seen to be done; may be NULL */
    void *ctx;
} HryCudaQueue;

/* stream NULL: a non-blocking stream of our own. */
HurrayStatus hry_cuda_queue_init(HryCudaQueue *queue, HryCudaDevice *device, void *stream, HurrayError *error);
/* Drained or lost before. */
void hry_cuda_queue_clear(HryCudaQueue *queue);

/* Enqueues the stretches and a mark behind them. On OK *mark is the caller's reference. On failure nothing is pending. */
HurrayStatus hry_cuda_queue_copy(HryCudaQueue *queue, const HryCudaStretch *stretches, size_t count, int kind, HryCudaMark **mark, HurrayError *error);
/* Takes up what has finished. DEVICE: an asynchronous failure. */
HurrayStatus hry_cuda_queue_poll(HryCudaQueue *queue, HurrayError *error);
/* Is number seq done? Asks the runtime only when it is not known. A lost device has nothing pending. */
bool hry_cuda_queue_is_done(HryCudaQueue *queue, uint64_t seq);
/* Until everything issued is done, or the device is lost. */
void hry_cuda_queue_drain(HryCudaQueue *queue);

HryCudaMark *hry_cuda_mark_ref(HryCudaMark *mark);
void hry_cuda_mark_unref(HryCudaMark *mark); /* any thread; NULL does nothing */
/* Makes `stream` wait for the mark; NULL: the host, by asking and sleeping. */
HurrayStatus hry_cuda_mark_order(HryCudaMark *mark, void *stream, HurrayError *error);

uint64_t hry_cuda_now_ns(void);

#endif
