/* One CUDA device as destinations hold it: its primary context retained once, a guard around every sequence of calls, error texts.
 * Any thread may use it; the caller's current device never changes and no context appears on a device that nobody asked for. */
#ifndef HRY_CUDA_DEVICE_H
#define HRY_CUDA_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/devices.h"
#include "cuda/api.h"

typedef struct HryCudaDevice {
    const HryCudaApi *api;
    HurrayAllocator allocator;
    atomic_uint references;
    atomic_int lost_code; /* why */
    atomic_bool lost; /* a sticky error, or a context that went away: nothing more is asked of it */
    pid_t pid;        /* a forked child must not touch what its parent made */
    void *context;
    int32_t index;
    int32_t numa_node; /* -1: unknown */
    char name[64], pci[32];
} HryCudaDevice;

/* NO_DEVICE when there is none, with the reason; DEVICE when the runtime fails. index -1: the first. */
HurrayStatus hry_cuda_device_open(const HryCudaApi *api, int32_t index, const HurrayAllocator *allocator, HryCudaDevice **out,
                                  HurrayError *error);
HryCudaDevice *hry_cuda_device_ref(HryCudaDevice *device);
void hry_cuda_device_unref(HryCudaDevice *device);

/* What fails so often in a row, a nap between, is not asked again: the device is lost, and no wait goes on for ever. */
#define HRY_CUDA_PATIENCE 200u
void hry_cuda_nap(void); /* a tenth of a millisecond */
void hry_cuda_lose(HryCudaDevice *device, int code);

/* Every sequence of calls stands between enter and leave. False: the device is lost, or this is a forked child; call nothing. */
typedef struct HryCudaGuard {
    int capture_mode;
    bool pushed, relaxed;
} HryCudaGuard;
bool hry_cuda_enter(HryCudaDevice *device, HryCudaGuard *guard);
void hry_cuda_leave(HryCudaDevice *device, HryCudaGuard *guard);
/* Lost, or seen from a forked child: nothing is asked of it, so nothing is waited for. */
bool hry_cuda_is_gone(const HryCudaDevice *device);

/* A failed call: clears the runtime's last error, marks the device lost after a sticky one, fills the record. OUT_OF_MEMORY is
 * NO_MEMORY, everything else DEVICE. */
HurrayStatus hry_cuda_fail(HryCudaDevice *device, int code, const char *call, HurrayError *error);
/* The same without a record: for failures that are handled. */
void hry_cuda_clear(HryCudaDevice *device, int code);
/* What is refused since the device is lost (or this is a forked child): DEVICE, with the code that it was lost by. */
HurrayStatus hry_cuda_fail_lost(HryCudaDevice *device, HurrayError *error);

#endif
