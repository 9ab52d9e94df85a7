#include "loader/progress.h"

void hry_progress_begin(HryProgress *progress, const HurrayLoaderOptions *options, uint64_t bytes, uint64_t tensors, uint64_t now_ns) {
    *progress = (HryProgress){.callback = options->progress,
                              .ctx = options->ctx,
                              .interval_ns = (uint64_t)options->progress_interval_ms * 1000000u,
                              .begin_ns = now_ns,
                              .last_ns = now_ns,
                              .now = {.struct_size = sizeof progress->now, .bytes_total = bytes, .tensors_total = tensors}};
}

HurrayStatus hry_progress_tell(HryProgress *progress, bool always, uint64_t now_ns, HurrayError *error) {
    if (!progress->callback || (!always && now_ns - progress->last_ns < progress->interval_ns)) return HURRAY_OK;
    progress->last_ns = now_ns;
    progress->now.elapsed_ns = now_ns - progress->begin_ns;
    HurrayProgress told = progress->now; /* what the callback does to it does not matter */
    HurrayStatus status = progress->callback(progress->ctx, &told);
    return status == HURRAY_OK ? status : hry_fail_callback(error, status, HURRAY_ERR_TRANSPORT, "progress");
}

uint32_t hry_progress_due_ms(const HryProgress *progress, uint64_t now_ns) {
    if (!progress->callback) return UINT32_MAX;
    uint64_t since = now_ns - progress->last_ns;
    return since >= progress->interval_ns ? 1 : (uint32_t)((progress->interval_ns - since) / 1000000u + 1);
}
