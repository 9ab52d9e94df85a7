/* Counting what is done, and telling the caller at 0, at most once an interval, at the end. Loading thread only. */
#ifndef HRY_LOADER_PROGRESS_H
#define HRY_LOADER_PROGRESS_H

#include "loader/loader.h"

typedef struct HryProgress {
    HurrayStatus (*callback)(void *ctx, const HurrayProgress *progress);
    void *ctx;
    uint64_t interval_ns, begin_ns, last_ns;
    HurrayProgress now;
} HryProgress;

void hry_progress_begin(HryProgress *progress, const HurrayLoaderOptions *options, uint64_t bytes, uint64_t tensors, uint64_t now_ns);
/* Tells, when it is time or `always`. A failing callback is filled into error and its code returned. */
HurrayStatus hry_progress_tell(HryProgress *progress, bool always, uint64_t now_ns, HurrayError *error);
/* Milliseconds until the next time, UINT32_MAX: nobody wants to know. */
uint32_t hry_progress_due_ms(const HryProgress *progress, uint64_t now_ns);

#endif
