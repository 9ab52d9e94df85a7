/* The CUDA destination's own state, shared by its files. */
#ifndef HRY_CUDA_DESTINATION_H
#define HRY_CUDA_DESTINATION_H

#include "cuda/lane.h"
#include "hurray/cuda.h"

#define HRY_CUDA_COPY_LOG 4096u

typedef struct HryCudaTarget {
    const HryCudaApi *api;
    HurrayAllocator allocator;
    HurrayCudaOptions options;
    HurrayDeviceMemory pool; /* options.device_memory leads here */
    atomic_uint holds;
    pthread_mutex_t lock;   /* states of slots and stripes, arenas: by hry_cuda_lock */
    pthread_mutex_t making; /* one thread at a time opens devices, makes lanes, pieces, groups */
    HryCudaHome *homes;
    HryCudaLane *lanes;
    HurrayError failure; /* of the first copy that failed, for the buffers that it spoils */
    uint64_t peak_pinned;
    pthread_mutex_t log_lock;
    HryCudaCopy log[HRY_CUDA_COPY_LOG]; /* copies seen to be done, for traces */
    size_t log_count;
    uint64_t copy_ns, copied_until_ns;
} HryCudaTarget;

/* Held across no read, no wait and no call of the runtime. Tests are told of it, and hold the room to that. */
#ifdef HRY_CUDA_TELL_LOCKS
void hry_cuda_tell_lock(int by); /* how many more the calling thread holds */
#else
static inline void hry_cuda_tell_lock(int by) { (void)by; }
#endif
static inline void hry_cuda_lock(HryCudaTarget *target) {
    pthread_mutex_lock(&target->lock);
    hry_cuda_tell_lock(1);
}
static inline void hry_cuda_unlock(HryCudaTarget *target) {
    hry_cuda_tell_lock(-1);
    pthread_mutex_unlock(&target->lock);
}

/* Finds or makes. `making` is held. */
HurrayStatus hry_cuda_target_home(HryCudaTarget *target, int32_t index, HryCudaHome **out, HurrayError *error);
HurrayStatus hry_cuda_target_lane(HryCudaTarget *target, HryCudaHome *home, HryCudaPieceKind kind, void *copy_stream, HryCudaLane **out, HurrayError *error);
/* Another group of slots, if that is allowed and nobody else is at it. *grown: there is one. No lock held. */
void hry_cuda_target_grow(HryCudaTarget *target, HryCudaHome *home, bool *grown);
/* Waits for what is under way and frees everything. */
void hry_cuda_target_free(HryCudaTarget *target);

/* Heads of the lists; what follows them never changes. */
HryCudaLane *hry_cuda_target_lanes(HryCudaTarget *target);
HryCudaHome *hry_cuda_target_homes(HryCudaTarget *target);

/* Takes up finished copies, frees their slots. No lock held. */
void hry_cuda_target_progress(HryCudaTarget *target, HryCudaHome *home);
/* Sends a slot; the lock is held at entry and at return, not between. */
void hry_cuda_target_send(HryCudaTarget *target, HryCudaSlot *slot);

#endif
