/* The seam between the public device list and a device runtime: src/cuda/device.c fills it, or src/cuda/absent.c in a library built
 * without the toolkit. Arguments come checked; `error` is never NULL. */
#ifndef HRY_BASE_DEVICES_H
#define HRY_BASE_DEVICES_H

#include <stdbool.h>

#include "base/fail.h"
#include "hurray/destination.h"
#include "hurray/loader.h"

/* No driver, none visible, built without: OK and 0. */
HurrayStatus hry_cuda_device_count(uint32_t *out, HurrayError *error);
/* text: ordinal, UUID or bus id. NO_DEVICE says why there is none, or which there are. */
HurrayStatus hry_cuda_device_find(const char *text, size_t len, int32_t *index, HurrayError *error);
/* index >= 0. NO_DEVICE as above. Free memory only with HURRAY_DEVICE_FREE_BYTES. */
HurrayStatus hry_cuda_device_info(int32_t index, uint32_t flags, HurrayDeviceInfo *out, HurrayError *error);

/* What a destination made by hurray_destination_cuda has done so far. False: it is another destination. */
typedef struct HryCudaCopy {
    uint64_t begin_ns, end_ns, bytes; /* CLOCK_MONOTONIC: enqueued, seen to be done */
} HryCudaCopy;
typedef struct HryCudaStats {
    uint32_t staging; /* HURRAY_STAGING_... */
    int32_t numa_node;
    uint64_t peak_pinned;
    uint64_t copied_bytes; /* enqueued; some may be under way */
    uint64_t copy_ns;      /* with at least one copy under way, of those seen to be done */
    char reason[120];      /* why staging is not what was asked for, or empty */
} HryCudaStats;
bool hry_cuda_destination_stats(const HurrayDestinationAlloc *destination, HryCudaStats *out);
/* The text behind a failing status of its callbacks, once. False: there is none. */
bool hry_cuda_destination_failure(const HurrayDestinationAlloc *destination, HurrayError *out);
/* Moves out the copies noted since the last call, at most `room`; returns how many. */
size_t hry_cuda_destination_copies(const HurrayDestinationAlloc *destination, HryCudaCopy *out, size_t room);

#endif
