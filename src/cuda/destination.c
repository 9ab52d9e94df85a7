/* Devices, lanes and the sending of slots: the working parts of the CUDA destination. */
#include "cuda/destination.h"

#include <string.h>

static void note_copy(void *ctx, const HryCudaMark *mark, uint64_t end_ns) {
    HryCudaTarget *target = ctx;
    pthread_mutex_lock(&target->log_lock);
    uint64_t from = mark->begin_ns > target->copied_until_ns ? mark->begin_ns : target->copied_until_ns;
    if (end_ns > from) target->copy_ns += end_ns - from;
    if (end_ns > target->copied_until_ns) target->copied_until_ns = end_ns;
    if (target->log_count < HRY_CUDA_COPY_LOG) {
        HryCudaCopy copy = {mark->begin_ns, end_ns, mark->bytes};
        target->log[target->log_count++] = copy;
    }
    pthread_mutex_unlock(&target->log_lock);
}

HurrayStatus hry_cuda_target_home(HryCudaTarget *target, int32_t index, HryCudaHome **out, HurrayError *error) {
    if (index < 0) index = target->options.device_index < 0 ? 0 : target->options.device_index;
    for (HryCudaHome *home = target->homes; home; home = home->next)
        if (home->device->index == index) {
            *out = home;
            return HURRAY_OK;
        }
    HryCudaHome *home = hry_alloc(&target->allocator, sizeof *home);
    if (!home) return hry_fail_memory(error, "a device", sizeof *home);
    HurrayStatus status = hry_cuda_device_open(target->api, index, &target->allocator, &home->device, error);
    if (status != HURRAY_OK) {
        hry_free(&target->allocator, home, sizeof *home);
        return status;
    }
    hry_cuda_staging_init(&home->staging, home->device, target->options.pinned, target->options.pinned_cap, target->options.slot_bytes);
    hry_cuda_lock(target);
    home->next = target->homes;
    target->homes = home;
    hry_cuda_unlock(target);
    *out = home;
    return HURRAY_OK;
}

static void add_group(HryCudaTarget *target, HryCudaHome *home, HryCudaGroup *group) {
    hry_cuda_lock(target);
    hry_cuda_staging_add(&home->staging, group);
    if (home->staging.pinned_bytes > target->peak_pinned) target->peak_pinned = home->staging.pinned_bytes;
    hry_cuda_unlock(target);
}

/* The ring must be there before the first piece: stripes have the size of its slots. */
static HurrayStatus first_group(HryCudaTarget *target, HryCudaHome *home, HurrayError *error) {
    HryCudaGroup *group = NULL;
    if (home->staging.slot_count) return HURRAY_OK;
    HurrayStatus status = hry_cuda_staging_make_group(&home->staging, &group, error);
    if (status != HURRAY_OK) return status;
    if (group) add_group(target, home, group);
    return HURRAY_OK;
}

HurrayStatus hry_cuda_target_lane(HryCudaTarget *target, HryCudaHome *home, HryCudaPieceKind kind, void *copy_stream, HryCudaLane **out, HurrayError *error) {
    HurrayStatus status = kind == HRY_CUDA_PIECE_PINNED ? HURRAY_OK : first_group(target, home, error);
    if (status != HURRAY_OK) return status;
    for (HryCudaLane *lane = target->lanes; lane; lane = lane->next)
        if (lane->home == home && lane->kind == kind && lane->copy_stream == copy_stream) {
            *out = lane;
            return HURRAY_OK;
        }
    HryCudaLane *lane = hry_alloc(&target->allocator, sizeof *lane);
    if (!lane) return hry_fail_memory(error, "a copy stream", sizeof *lane);
    lane->home = home;
    lane->kind = kind;
    lane->copy_stream = copy_stream;
    if (kind != HRY_CUDA_PIECE_PINNED) status = hry_cuda_queue_init(&lane->queue, home->device, copy_stream, error);
    if (status != HURRAY_OK) {
        hry_free(&target->allocator, lane, sizeof *lane);
        return status;
    }
    lane->queue.copied = note_copy;
    lane->queue.ctx = target;
    hry_cuda_lock(target);
    lane->next = target->lanes;
    target->lanes = lane;
    hry_cuda_unlock(target);
    *out = lane;
    return HURRAY_OK;
}

HryCudaLane *hry_cuda_target_lanes(HryCudaTarget *target) {
    hry_cuda_lock(target);
    HryCudaLane *lanes = target->lanes;
    hry_cuda_unlock(target);
    return lanes;
}

HryCudaHome *hry_cuda_target_homes(HryCudaTarget *target) {
    hry_cuda_lock(target);
    HryCudaHome *homes = target->homes;
    hry_cuda_unlock(target);
    return homes;
}

void hry_cuda_target_grow(HryCudaTarget *target, HryCudaHome *home, bool *grown) {
    HryCudaGroup *group = NULL;
    HurrayError ignored;
    *grown = false;
    if (pthread_mutex_trylock(&target->making) != 0) return;
    hry_error_clear(&ignored);
    HurrayStatus status = hry_cuda_staging_make_group(&home->staging, &group, &ignored);
    if (status == HURRAY_OK && group) {
        add_group(target, home, group);
        *grown = true;
    } else if (status != HURRAY_OK) {
        home->staging.slot_limit = home->staging.slot_count; /* what is there must do */
    }
    pthread_mutex_unlock(&target->making);
}

void hry_cuda_target_progress(HryCudaTarget *target, HryCudaHome *home) {
    HurrayError error;
    HryCudaPiece *piece;
    for (HryCudaLane *lane = hry_cuda_target_lanes(target); lane; lane = lane->next) {
        if (lane->home != home || lane->kind == HRY_CUDA_PIECE_PINNED) continue;
        hry_error_clear(&error);
        if (hry_cuda_queue_poll(&lane->queue, &error) == HURRAY_OK) continue;
        hry_cuda_lock(target);
        if (target->failure.code == HURRAY_OK) target->failure = error;
        lane->failed = true;
        hry_cuda_unlock(target);
    }
    do {
        hry_cuda_lock(target);
        piece = hry_cuda_home_reclaim(home);
        hry_cuda_unlock(target);
        hry_cuda_piece_unref(piece);
    } while (piece);
}

void hry_cuda_target_send(HryCudaTarget *target, HryCudaSlot *slot) {
    HryCudaFlush flush;
    HryCudaMark *mark = NULL, *old = NULL;
    HurrayError error;
    hry_cuda_slot_detach(slot, &flush);
    hry_cuda_unlock(target);
    hry_error_clear(&error);
    HurrayStatus status = hry_cuda_flush_send(&flush, &mark, &error);
    hry_cuda_lock(target);
    if (status != HURRAY_OK && target->failure.code == HURRAY_OK) target->failure = error;
    hry_cuda_flush_sent(&flush, mark, status, &old);
    if (!old) return;
    hry_cuda_unlock(target);
    hry_cuda_mark_unref(old);
    hry_cuda_lock(target);
}

static void free_lane(HryCudaLane *lane) {
    if (lane->kind != HRY_CUDA_PIECE_PINNED) hry_cuda_queue_drain(&lane->queue);
    hry_cuda_piece_unref(lane->piece);
    lane->piece = NULL;
}

/* Order: streams done, slots free (which lets go of device memory), streams, pinned memory, devices. */
void hry_cuda_target_free(HryCudaTarget *target) {
    HurrayAllocator allocator = target->allocator;
    for (HryCudaLane *lane = target->lanes; lane; lane = lane->next) free_lane(lane);
    for (HryCudaHome *home = target->homes; home; home = home->next) {
        for (HryCudaGroup *group = home->staging.groups; group; group = group->next)
            for (uint32_t i = 0; i < group->count; i++) {
                hry_cuda_piece_unref(group->slots[i].piece);
                group->slots[i].piece = NULL;
            }
    }
    while (target->lanes) {
        HryCudaLane *lane = target->lanes;
        target->lanes = lane->next;
        hry_cuda_queue_clear(&lane->queue);
        hry_free(&allocator, lane, sizeof *lane);
    }
    while (target->homes) {
        HryCudaHome *home = target->homes;
        target->homes = home->next;
        hry_cuda_staging_clear(&home->staging);
        hry_cuda_device_unref(home->device);
        hry_free(&allocator, home, sizeof *home);
    }
    pthread_mutex_destroy(&target->lock);
    pthread_mutex_destroy(&target->making);
    pthread_mutex_destroy(&target->log_lock);
    hry_free(&allocator, target, sizeof *target);
}
