#include "cuda/lane.h"

#include <string.h>

bool hry_cuda_slot_has_room(const HryCudaSlot *slot) { return slot->range_count + slot->open + 1 < HRY_CUDA_SLOT_RANGES; }

bool hry_cuda_slot_commit(HryCudaSlot *slot, uint64_t begin, uint64_t end) {
    HryCudaSlotRange *ranges = slot->ranges;
    uint32_t at = slot->range_count;
    while (at > 0 && ranges[at - 1].begin > begin) at--;
    bool joins_before = at > 0 && ranges[at - 1].end == begin, joins_after = at < slot->range_count && ranges[at].begin == end;
    if (joins_before && joins_after) {
        ranges[at - 1].end = ranges[at].end;
        memmove(ranges + at, ranges + at + 1, (slot->range_count - at - 1) * sizeof *ranges);
        slot->range_count--;
    } else if (joins_before) {
        ranges[at - 1].end = end;
    } else if (joins_after) {
        ranges[at].begin = begin;
    } else {
        if (slot->range_count == HRY_CUDA_SLOT_RANGES) return false;
        memmove(ranges + at + 1, ranges + at, (slot->range_count - at) * sizeof *ranges);
        ranges[at].begin = begin;
        ranges[at].end = end;
        slot->range_count++;
    }
    return true;
}

void hry_cuda_slot_detach(HryCudaSlot *slot, HryCudaFlush *flush) {
    HryCudaStripe *stripe = slot->stripe;
    HryCudaLane *lane = stripe->piece->lane;
    flush->slot = slot;
    flush->stripe = stripe;
    flush->lane = lane;
    flush->count = slot->range_count;
    for (uint32_t i = 0; i < slot->range_count; i++) {
        const HryCudaSlotRange *range = &slot->ranges[i];
        flush->stretches[i].to = stripe->piece->base + stripe->begin + range->begin;
        flush->stretches[i].from = slot->memory + range->begin;
        flush->stretches[i].len = (size_t)(range->end - range->begin);
    }
    slot->range_count = 0;
    slot->stripe = NULL;
    slot->queue = &lane->queue;
    slot->seq = UINT64_MAX; /* busy, its number not known yet */
    stripe->slot = NULL;
    stripe->sending++;
}

HurrayStatus hry_cuda_flush_send(HryCudaFlush *flush, HryCudaMark **mark, HurrayError *error) {
    int kind = flush->lane->kind == HRY_CUDA_PIECE_MANAGED ? HRY_CUDA_COPY_DEFAULT : HRY_CUDA_COPY_TO_DEVICE;
    *mark = NULL;
    return hry_cuda_queue_copy(&flush->lane->queue, flush->stretches, flush->count, kind, mark, error);
}

void hry_cuda_flush_sent(HryCudaFlush *flush, HryCudaMark *mark, HurrayStatus status, HryCudaMark **old) {
    HryCudaStripe *stripe = flush->stripe;
    *old = NULL;
    stripe->sending--;
    if (!mark) { /* nothing is pending */
        stripe->failed = status;
        stripe->piece->closed = true; /* no later buffer shares a stripe that failed */
        flush->slot->seq = 0;
        return;
    }
    flush->slot->seq = mark->seq;
    if (stripe->mark && stripe->mark->seq > mark->seq) { /* two slots of one stripe were sent at once */
        *old = mark;
    } else {
        *old = stripe->mark;
        stripe->mark = mark;
    }
    stripe->seq = stripe->mark->seq;
}

static bool is_idle(HryCudaSlot *slot, bool lost) {
    if (slot->stripe || !slot->piece || slot->seq == UINT64_MAX) return false;
    return slot->seq == 0 || lost || slot->queue->done >= slot->seq;
}

HryCudaPiece *hry_cuda_home_reclaim(HryCudaHome *home) {
    bool lost = atomic_load(&home->device->lost);
    for (HryCudaGroup *group = home->staging.groups; group; group = group->next)
        for (uint32_t i = 0; i < group->count; i++) {
            HryCudaSlot *slot = &group->slots[i];
            if (!is_idle(slot, lost)) continue;
            HryCudaPiece *piece = slot->piece;
            slot->piece = NULL;
            slot->queue = NULL;
            slot->seq = 0;
            hry_cuda_staging_give(&home->staging, slot);
            return piece;
        }
    return NULL;
}

HryCudaSlot *hry_cuda_home_quiet_slot(HryCudaHome *home) {
    for (HryCudaGroup *group = home->staging.groups; group; group = group->next)
        for (uint32_t i = 0; i < group->count; i++) {
            HryCudaSlot *slot = &group->slots[i];
            if (slot->stripe && slot->open == 0 && slot->range_count > 0) return slot;
        }
    return NULL;
}
