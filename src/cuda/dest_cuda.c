/* hurray_destination_cuda: device memory from an arena, windows from staging slots, a copy for each full slot, freeze by sync mode. */
#include "hurray/cuda.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "cuda/destination.h"

#define PAGE UINT64_C(4096)
#define LARGEST_PIECE (UINT64_C(1) << 30)
#define LEAST_PIECE (UINT64_C(2) << 20)
#define DEFAULT_CAP (UINT64_C(256) << 20)
#define LOAD_ARENA 1u /* HurrayCudaOptions.flags: one allocation per device, as HURRAY_LOAD_ARENA */

/* Failures of callbacks reach the caller as a status; the first one's text is kept for hry_cuda_destination_failure. */
static HurrayStatus keep(HryCudaTarget *target, HurrayStatus status, const HurrayError *error) {
    hry_cuda_lock(target);
    if (status < 0 && target->failure.code == HURRAY_OK) target->failure = *error;
    hry_cuda_unlock(target);
    return status;
}

/* ---- what is asked for ---- */

typedef struct Wish {
    HryCudaPieceKind kind;
    uint8_t device_tag, sync_mode, memory_class;
    int32_t device_index;
    void *consumer_stream, *copy_stream;
} Wish;

static HurrayStatus understand(const HryCudaTarget *target, const HurrayDestinationRequest *request, Wish *wish, HurrayError *error) {
    const HurrayCudaOptions *o = &target->options;
    bool from_file = request->device_tag == HURRAY_DEVICE_CPU && request->memory_class == HURRAY_MEMORY_STANDARD;
    wish->device_tag = from_file ? HURRAY_DEVICE_CUDA : request->device_tag;
    wish->sync_mode = from_file ? o->sync_mode : request->sync_mode;
    wish->memory_class = from_file ? o->memory_class : request->memory_class;
    wish->device_index = request->device_index;
    wish->consumer_stream = request->consumer_stream ? request->consumer_stream : o->consumer_stream;
    wish->copy_stream = request->copy_stream ? request->copy_stream : o->copy_stream;
    if (wish->device_tag != HURRAY_DEVICE_CPU && wish->device_tag != HURRAY_DEVICE_CUDA)
        return hry_fail(error, HURRAY_ERR_NO_DEVICE, "device_tag", HRY_NO_OFFSET, "a CUDA destination has no memory of device tag %u", wish->device_tag);
    switch (wish->memory_class) {
    case HURRAY_MEMORY_STANDARD: wish->kind = o->device_memory ? HRY_CUDA_PIECE_POOL : HRY_CUDA_PIECE_DEVICE; break;
    case HURRAY_MEMORY_HOST_PINNED: wish->kind = HRY_CUDA_PIECE_PINNED; break;
    case HURRAY_MEMORY_UNIFIED: wish->kind = HRY_CUDA_PIECE_MANAGED; break;
    default:
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "memory_class", HRY_NO_OFFSET, "memory class %u is not made by the CUDA destination: standard, host-pinned, unified are",
                        wish->memory_class);
    }
    if (wish->device_tag == HURRAY_DEVICE_CPU && wish->kind == HRY_CUDA_PIECE_MANAGED)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "memory_class", HRY_NO_OFFSET, "unified memory belongs to the device: ask for device tag CUDA");
    if (wish->device_tag == HURRAY_DEVICE_CPU && wish->sync_mode != HURRAY_SYNC_PRODUCER_SYNCED)
        return hry_fail(error, HURRAY_ERR_INVALID_SYNC_MODE, "sync_mode", HRY_NO_OFFSET, "a CPU buffer is producer-synced, mode %u was asked for", wish->sync_mode);
    if (wish->kind == HRY_CUDA_PIECE_PINNED) wish->sync_mode = HURRAY_SYNC_PRODUCER_SYNCED; /* the host wrote it: nothing to wait for */
    if (wish->sync_mode == HURRAY_SYNC_CONSUMER_STREAM && !wish->consumer_stream)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "consumer_stream", HRY_NO_OFFSET, "consumer-stream needs a stream; the legacy stream is (void *)1");
    if (wish->sync_mode > HURRAY_SYNC_CONSUMER_STREAM)
        return hry_fail(error, HURRAY_ERR_INVALID_SYNC_MODE, "sync_mode", HRY_NO_OFFSET, "sync mode %u is not one of the format", wish->sync_mode);
    if ((wish->sync_mode == HURRAY_SYNC_CONSUMER_STREAM && wish->consumer_stream == HRY_CUDA_STREAM_PER_THREAD) || wish->copy_stream == HRY_CUDA_STREAM_PER_THREAD)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "stream", HRY_NO_OFFSET,
                        "the per-thread stream (void *)2 names another stream on each thread; hand over a stream that you made");
    return HURRAY_OK;
}

/* How much to allocate at once for the buffers still to come. */
static uint64_t wanted_bytes(const HryCudaTarget *target, uint64_t need, uint64_t reserved) {
    bool one = (target->options.flags & LOAD_ARENA) != 0;
    uint64_t wanted = one || reserved < LARGEST_PIECE ? reserved : LARGEST_PIECE;
    if (!reserved) wanted = LEAST_PIECE;
    return wanted > need ? wanted : need;
}

/* A new piece that holds at least this buffer becomes the one that its lane cuts from. `making` is held. */
static HurrayStatus next_piece(HryCudaTarget *target, HryCudaLane *lane, uint64_t size, uint64_t alignment, HurrayError *error) {
    HryCudaHome *home = lane->home;
    uint64_t *reserved = lane->kind == HRY_CUDA_PIECE_PINNED ? &home->reserved_pinned : &home->reserved;
    HryCudaPieceWish wish = {.kind = lane->kind, .pool = lane->kind == HRY_CUDA_PIECE_POOL ? &target->pool : NULL};
    HryCudaPiece *piece = NULL, *old;
    if (!hry_add_u64(size, alignment > PAGE ? alignment : 0, &wish.need)) return hry_fail_memory(error, "a device buffer", size);
    wish.wanted = wanted_bytes(target, wish.need, *reserved);
    wish.stripe_bytes = lane->kind == HRY_CUDA_PIECE_PINNED ? 0 : home->staging.slot_bytes;
    wish.stream = lane->queue.stream;
    if (wish.kind == HRY_CUDA_PIECE_POOL) { /* a pool is asked for the best first; it cannot be asked how much it has */
        uint64_t least = wish.need;
        wish.need = wish.wanted;
        HurrayStatus status = hry_cuda_piece_new(home->device, &wish, &piece, error);
        wish.need = least;
        if (status != HURRAY_OK && (status != HURRAY_ERR_NO_MEMORY || least == wish.wanted)) return status;
    }
    if (!piece) {
        HurrayStatus status = hry_cuda_piece_new(home->device, &wish, &piece, error);
        if (status != HURRAY_OK) return status;
    }
    piece->lane = lane;
    hry_cuda_lock(target);
    old = lane->piece;
    if (old) old->closed = true;
    lane->piece = piece;
    hry_cuda_unlock(target);
    hry_cuda_piece_unref(old);
    return HURRAY_OK;
}

static bool cut(HryCudaTarget *target, HryCudaLane *lane, HryCudaBuffer *buffer) {
    hry_cuda_lock(target);
    bool fits = lane->piece && hry_cuda_piece_cut(lane->piece, buffer->size, buffer->alignment, &buffer->begin, &buffer->hole);
    if (fits) buffer->piece = hry_cuda_piece_ref(lane->piece);
    hry_cuda_unlock(target);
    return fits;
}

/* The caller's own memory is a piece of its own. */
static HurrayStatus lend(HryCudaLane *lane, HryCudaBuffer *buffer, void *into, HurrayError *error) {
    HryCudaPieceWish wish = {.kind = HRY_CUDA_PIECE_LENT, .need = buffer->size, .wanted = buffer->size, .lent = into};
    wish.stripe_bytes = lane->kind == HRY_CUDA_PIECE_PINNED ? 0 : lane->home->staging.slot_bytes;
    if ((uintptr_t)into & (buffer->alignment < 256 ? buffer->alignment - 1 : 255))
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "into", HRY_NO_OFFSET, "memory for a device buffer must be aligned to 256 bytes");
    HurrayStatus status = hry_cuda_piece_new(lane->home->device, &wish, &buffer->piece, error);
    if (status != HURRAY_OK) return status;
    buffer->piece->lane = lane;
    buffer->piece->used = buffer->size;
    buffer->piece->closed = true;
    return HURRAY_OK;
}

static HurrayStatus place(HryCudaTarget *target, const HurrayDestinationRequest *request, const Wish *wish, HryCudaBuffer *buffer, HurrayError *error) {
    HryCudaHome *home = NULL;
    HurrayStatus status = hry_cuda_target_home(target, wish->device_index, &home, error);
    if (status == HURRAY_OK) status = hry_cuda_target_lane(target, home, wish->kind, wish->copy_stream, &buffer->lane, error);
    if (status != HURRAY_OK) return status;
    if (request->into) return lend(buffer->lane, buffer, request->into, error);
    while (status == HURRAY_OK && !cut(target, buffer->lane, buffer)) status = next_piece(target, buffer->lane, buffer->size, buffer->alignment, error);
    uint64_t *reserved = wish->kind == HRY_CUDA_PIECE_PINNED ? &home->reserved_pinned : &home->reserved;
    *reserved -= *reserved < buffer->size ? *reserved : buffer->size;
    return status;
}

static HurrayStatus cuda_allocate(void *ctx, const HurrayDestinationRequest *request, HurrayDestination *out) {
    HryCudaTarget *target = ctx;
    HurrayError error;
    Wish wish;
    hry_error_clear(&error);
    HurrayStatus status = understand(target, request, &wish, &error);
    if (status != HURRAY_OK) return keep(target, status, &error);
    HryCudaBuffer *buffer = hry_alloc(&target->allocator, sizeof *buffer);
    if (!buffer) return HURRAY_ERR_NO_MEMORY;
    buffer->size = request->byte_size;
    buffer->alignment = request->alignment;
    buffer->device_tag = wish.device_tag;
    buffer->sync_mode = wish.sync_mode;
    buffer->memory_class = wish.memory_class;
    buffer->consumer_stream = wish.consumer_stream;
    pthread_mutex_lock(&target->making);
    status = place(target, request, &wish, buffer, &error);
    pthread_mutex_unlock(&target->making);
    if (status != HURRAY_OK) {
        hry_free(&target->allocator, buffer, sizeof *buffer);
        return keep(target, status, &error);
    }
    out->id = buffer;
    return HURRAY_OK;
}

static HurrayStatus cuda_reserve(void *ctx, uint8_t device_tag, int32_t device_index, uint64_t bytes, uint64_t buffers) {
    HryCudaTarget *target = ctx;
    HryCudaHome *home = NULL;
    HryCudaLane *lane = NULL;
    HurrayError error;
    (void)buffers;
    hry_error_clear(&error);
    if (device_tag != HURRAY_DEVICE_CPU && device_tag != HURRAY_DEVICE_CUDA) return HURRAY_OK;
    pthread_mutex_lock(&target->making);
    HurrayStatus status = hry_cuda_target_home(target, device_index, &home, &error);
    if (status == HURRAY_OK && !hry_cuda_is_gone(home->device)) { /* another load: an answer that failed may be right the next time */
        hry_cuda_lock(target);
        for (HryCudaLane *old = target->lanes; old; old = old->next)
            if (old->home == home) old->failed = false;
        hry_error_clear(&target->failure);
        hry_cuda_unlock(target);
    }
    if (status == HURRAY_OK && device_tag == HURRAY_DEVICE_CPU) home->reserved_pinned += bytes;
    if (status == HURRAY_OK && device_tag == HURRAY_DEVICE_CUDA) {
        HryCudaPieceKind kind = target->options.device_memory ? HRY_CUDA_PIECE_POOL : HRY_CUDA_PIECE_DEVICE;
        home->reserved += bytes;
        status = hry_cuda_target_lane(target, home, kind, target->options.copy_stream, &lane, &error); /* context and pinned memory: now */
    }
    pthread_mutex_unlock(&target->making);
    return status == HURRAY_OK ? status : keep(target, status, &error);
}

/* ---- windows ---- */

static HryCudaSlot *slot_for(HryCudaHome *home, HryCudaStripe *stripe) {
    if (stripe->slot) return stripe->slot;
    HryCudaSlot *slot = hry_cuda_staging_take(&home->staging);
    if (!slot) return NULL;
    slot->stripe = stripe;
    slot->piece = hry_cuda_piece_ref(stripe->piece);
    slot->range_count = slot->open = 0;
    stripe->slot = slot;
    return slot;
}

/* One try, under the lock. */
static HurrayStatus try_window(HryCudaTarget *target, HryCudaBuffer *buffer, HurrayWindow *window, HryCudaOpen *open) {
    uint64_t at = buffer->begin + window->offset;
    HryCudaStripe *stripe = hry_cuda_stripe_at(buffer->piece, at);
    HryCudaSlot *slot = slot_for(buffer->lane->home, stripe);
    if (slot && !hry_cuda_slot_has_room(slot)) {
        if (slot->open) return HURRAY_WAIT;
        hry_cuda_target_send(target, slot);
        slot = slot_for(buffer->lane->home, stripe);
    }
    if (!slot) return HURRAY_WAIT;
    uint64_t left = stripe->begin + stripe->size - at;
    if (window->len > left) window->len = left;
    window->ptr = slot->memory + (at - stripe->begin);
    window->slack_before = window->slack_after = 0;
    window->token = open;
    slot->open++;
    open->slot = slot;
    open->offset = window->offset;
    open->len = window->len;
    open->next = buffer->open;
    buffer->open = open;
    return HURRAY_OK;
}

/* Why buffers of this road fail, with a text for whoever asks. Lock held. */
static HurrayStatus why_failed(HryCudaTarget *target, const HryCudaLane *lane) {
    HryCudaDevice *device = lane->home->device;
    if (target->failure.code == HURRAY_OK && hry_cuda_is_gone(device)) hry_cuda_fail_lost(device, &target->failure);
    else if (target->failure.code == HURRAY_OK) hry_fail(&target->failure, HURRAY_ERR_DEVICE, "device", HRY_NO_OFFSET, "an earlier copy to cuda:%d failed", (int)device->index);
    return target->failure.code;
}

/* The text may have been taken by an earlier buffer; the code stays with the stripe. */
static HurrayStatus why_copy_failed(HryCudaTarget *target, const HryCudaStripe *stripe) {
    if (target->failure.code == HURRAY_OK && hry_cuda_is_gone(stripe->piece->device)) hry_cuda_fail_lost(stripe->piece->device, &target->failure);
    else if (target->failure.code == HURRAY_OK)
        hry_fail(&target->failure, stripe->failed, "device", HRY_NO_OFFSET, "an earlier copy to cuda:%d failed", (int)stripe->piece->device->index);
    return stripe->failed;
}

static HurrayStatus staged_window(HryCudaTarget *target, HryCudaBuffer *buffer, HurrayWindow *window, HryCudaOpen *open) {
    HryCudaHome *home = buffer->lane->home;
    HurrayStatus status = HURRAY_WAIT;
    for (int attempt = 0; attempt < 3; attempt++) {
        bool grown = false;
        hry_cuda_lock(target);
        status = buffer->lane->failed ? why_failed(target, buffer->lane) : try_window(target, buffer, window, open);
        hry_cuda_unlock(target);
        if (status != HURRAY_WAIT) return status;
        if (attempt == 0) hry_cuda_target_progress(target, home);
        if (attempt == 1) {
            hry_cuda_target_grow(target, home, &grown);
            if (!grown) break;
        }
    }
    /* Every slot is being filled or copied: one that nobody fills at the moment goes out as it is. */
    hry_cuda_lock(target);
    HryCudaSlot *quiet = home->staging.free ? NULL : hry_cuda_home_quiet_slot(home);
    if (quiet) hry_cuda_target_send(target, quiet);
    hry_cuda_unlock(target);
    return HURRAY_WAIT;
}

static HurrayStatus cuda_window(void *ctx, void *id, HurrayWindow *window) {
    HryCudaTarget *target = ctx;
    HryCudaBuffer *buffer = id;
    if (window->offset >= buffer->size) return HURRAY_ERR_INVALID_ARGUMENT;
    if (window->len > buffer->size - window->offset) window->len = buffer->size - window->offset;
    HryCudaOpen *open = hry_alloc(&target->allocator, sizeof *open);
    if (!open) return HURRAY_ERR_NO_MEMORY;
    if (!buffer->piece->stripes) { /* pinned memory is filled in place */
        window->ptr = buffer->piece->base + buffer->begin + window->offset;
        window->slack_before = window->slack_after = 0;
        window->token = open;
        open->offset = window->offset;
        open->len = window->len;
        hry_cuda_lock(target);
        open->next = buffer->open;
        buffer->open = open;
        hry_cuda_unlock(target);
        return HURRAY_OK;
    }
    HurrayStatus status = staged_window(target, buffer, window, open);
    if (status != HURRAY_OK) hry_free(&target->allocator, open, sizeof *open);
    return status;
}

static void unlink_open(HryCudaBuffer *buffer, const HryCudaOpen *open) {
    HryCudaOpen **at = &buffer->open;
    while (*at && *at != open) at = &(*at)->next;
    if (*at) *at = open->next;
}

/* The bytes of a window, and of the hole before its buffer where it begins, are in the slot. */
static void note_committed(HryCudaBuffer *buffer, HryCudaOpen *open) {
    HryCudaSlot *slot = open->slot;
    HryCudaStripe *stripe = slot->stripe;
    uint64_t begin = buffer->begin + open->offset - stripe->begin, end = begin + open->len;
    if (open->offset == 0 && buffer->hole < buffer->begin) { /* zeros, so that one copy takes all */
        uint64_t hole = buffer->hole > stripe->begin ? buffer->hole - stripe->begin : 0;
        memset(slot->memory + hole, 0, (size_t)(begin - hole));
        begin = hole;
    }
    hry_cuda_slot_commit(slot, begin, end);
    stripe->filled += end - begin;
}

static HurrayStatus cuda_commit(void *ctx, void *id, const HurrayWindow *window) {
    HryCudaTarget *target = ctx;
    HryCudaBuffer *buffer = id;
    HryCudaOpen *open = window->token;
    hry_cuda_lock(target);
    unlink_open(buffer, open);
    buffer->committed += open->len;
    HryCudaSlot *slot = open->slot;
    if (slot) {
        note_committed(buffer, open);
        slot->open--;
        if (slot->open == 0 && (slot->stripe->eager || hry_cuda_stripe_is_full(slot->stripe))) hry_cuda_target_send(target, slot);
    }
    hry_cuda_unlock(target);
    hry_free(&target->allocator, open, sizeof *open);
    return HURRAY_OK;
}

/* ---- the end of a buffer ---- */

static void release_piece(void *data, void *context) {
    (void)data;
    hry_cuda_piece_unref(context);
}

static void release_event(void *sync_handle, void *context) {
    (void)sync_handle;
    hry_cuda_mark_unref(context);
}

static HurrayStatus order_event(void *sync_handle, void *context, void *stream) {
    HurrayError ignored;
    (void)sync_handle;
    hry_error_clear(&ignored);
    return hry_cuda_mark_order(context, stream, &ignored);
}

/* The last mark of a buffer's stripes (a reference), or NULL with *status WAIT (some bytes are not sent) or a failure. */
static HryCudaMark *last_mark(HryCudaTarget *target, HryCudaBuffer *buffer, HurrayStatus *status) {
    HryCudaStripe *first = hry_cuda_stripe_at(buffer->piece, buffer->begin), *last = hry_cuda_stripe_at(buffer->piece, buffer->begin + buffer->size - 1);
    HryCudaMark *mark = NULL;
    /* A slot that is not full goes out when the road is idle, else at each sixteenth asking: most fill up before that, and one copy takes all. */
    bool again = ++buffer->asked > 1 && (buffer->lane->queue.done == buffer->lane->queue.issued || buffer->asked % 16 == 0);
    *status = HURRAY_OK;
    hry_cuda_lock(target);
    for (HryCudaStripe *stripe = first; stripe <= last && *status != HURRAY_ERR_DEVICE; stripe++) {
        HryCudaSlot *slot = stripe->slot;
        if (slot && slot->range_count && slot->open == 0 && again) hry_cuda_target_send(target, slot), slot = stripe->slot;
        if (stripe->failed) *status = why_copy_failed(target, stripe);
        else if (buffer->lane->failed || atomic_load(&buffer->lane->home->device->lost)) *status = why_failed(target, buffer->lane);
        else if (stripe->sending || (slot && slot->range_count)) *status = HURRAY_WAIT;
        else if (stripe->mark && (!mark || stripe->mark->seq > mark->seq)) mark = stripe->mark;
        if (*status < 0) break;
    }
    mark = *status == HURRAY_OK ? hry_cuda_mark_ref(mark) : NULL;
    hry_cuda_unlock(target);
    return mark;
}

static void fill_info(const HryCudaBuffer *buffer, HurrayBufferInfo *info) {
    info->data = buffer->piece->base + buffer->begin;
    info->byte_size = buffer->size;
    info->alignment = buffer->alignment;
    info->device_index = buffer->device_tag == HURRAY_DEVICE_CPU ? -1 : buffer->lane->home->device->index;
    info->device_tag = buffer->device_tag;
    info->sync_mode = buffer->sync_mode;
    info->memory_class = buffer->memory_class;
    info->release = release_piece;
    info->release_context = buffer->piece;
}

static HurrayStatus hand_off(HryCudaBuffer *buffer, HryCudaMark *mark, HurrayBufferInfo *info, HurrayError *error) {
    HurrayStatus status = HURRAY_OK;
    if (buffer->sync_mode == HURRAY_SYNC_PRODUCER_SYNCED) {
        if (!hry_cuda_queue_is_done(&buffer->lane->queue, mark->seq)) status = HURRAY_WAIT;
        else if (atomic_load(&buffer->lane->home->device->lost)) status = hry_cuda_fail_lost(buffer->lane->home->device, error);
    } else if (buffer->sync_mode == HURRAY_SYNC_EVENT) {
        info->event.sync_handle = mark->event;
        info->event.sync_handle_device_tag = HURRAY_DEVICE_CUDA;
        info->event.event_release_fn = release_event;
        info->event.event_release_context = hry_cuda_mark_ref(mark);
        info->order = order_event;
    } else {
        status = hry_cuda_mark_order(mark, buffer->consumer_stream, error);
        info->event.sync_handle = buffer->consumer_stream;
        info->event.sync_handle_device_tag = HURRAY_DEVICE_CUDA;
    }
    return status;
}

static HurrayStatus cuda_freeze(void *ctx, void *id, HurrayBufferInfo *info) {
    HryCudaTarget *target = ctx;
    HryCudaBuffer *buffer = id;
    HurrayError error;
    HurrayStatus status = HURRAY_OK;
    hry_error_clear(&error);
    if (buffer->committed != buffer->size) return HURRAY_ERR_WRONG_STATE;
    if (buffer->piece->stripes) {
        HryCudaMark *mark = last_mark(target, buffer, &status);
        if (status == HURRAY_OK && !mark) status = HURRAY_ERR_INTERNAL;
        if (status == HURRAY_OK) status = hand_off(buffer, mark, info, &error);
        hry_cuda_mark_unref(mark);
        if (status != HURRAY_OK) return status == HURRAY_WAIT ? status : keep(target, status, &error);
    }
    fill_info(buffer, info); /* the piece's reference goes to the buffer */
    hry_free(&target->allocator, buffer, sizeof *buffer);
    return HURRAY_OK;
}

static void cuda_discard(void *ctx, void *id) {
    HryCudaTarget *target = ctx;
    HryCudaBuffer *buffer = id;
    HryCudaPiece *piece = buffer->piece;
    HryCudaOpen *opens = buffer->open;
    hry_cuda_lock(target);
    for (HryCudaOpen *open = opens; open; open = open->next) {
        HryCudaSlot *slot = open->slot;
        if (!slot || --slot->open > 0 || slot->range_count) continue;
        slot->stripe->slot = NULL; /* nothing in it: free again, once its piece is let go of */
        slot->stripe = NULL;
        slot->seq = 0;
    }
    if (piece->stripes) {
        HryCudaStripe *last = hry_cuda_stripe_at(piece, buffer->begin + buffer->size - 1);
        for (HryCudaStripe *stripe = hry_cuda_stripe_at(piece, buffer->begin); stripe <= last; stripe++) stripe->eager = true;
    }
    hry_cuda_unlock(target);
    while (opens) {
        HryCudaOpen *open = opens;
        opens = open->next;
        hry_free(&target->allocator, open, sizeof *open);
    }
    hry_cuda_piece_unref(piece); /* a slot whose copy is under way holds it until that is done */
    hry_free(&target->allocator, buffer, sizeof *buffer);
}

/* ---- waiting, life ---- */

static uint64_t done_of_all(HryCudaTarget *target, bool *pending) {
    uint64_t done = 0;
    *pending = false;
    for (HryCudaLane *lane = hry_cuda_target_lanes(target); lane; lane = lane->next) {
        if (lane->kind == HRY_CUDA_PIECE_PINNED) continue;
        done += lane->queue.done;
        pthread_mutex_lock(&lane->queue.lock);
        if (lane->queue.oldest && !atomic_load(&lane->home->device->lost)) *pending = true;
        pthread_mutex_unlock(&lane->queue.lock);
    }
    return done;
}

static void send_quiet(HryCudaTarget *target) {
    for (HryCudaHome *home = hry_cuda_target_homes(target); home; home = home->next) {
        HryCudaSlot *quiet;
        hry_cuda_lock(target);
        while ((quiet = hry_cuda_home_quiet_slot(home))) hry_cuda_target_send(target, quiet);
        hry_cuda_unlock(target);
    }
}

/* While copies are under way they are what comes free; slots that are not full go out only when nothing else would. */
static HurrayStatus cuda_wait(void *ctx, uint32_t timeout_ms) {
    HryCudaTarget *target = ctx;
    uint64_t until = hry_cuda_now_ns() + (uint64_t)timeout_ms * 1000000u;
    bool pending;
    uint64_t before = done_of_all(target, &pending);
    if (!pending) send_quiet(target);
    for (;;) {
        for (HryCudaHome *home = hry_cuda_target_homes(target); home; home = home->next) hry_cuda_target_progress(target, home);
        if (done_of_all(target, &pending) != before || !pending || hry_cuda_now_ns() >= until) return HURRAY_OK;
        hry_cuda_nap();
    }
}

static void cuda_retain(void *ctx) {
    HryCudaTarget *target = ctx;
    atomic_fetch_add_explicit(&target->holds, 1, memory_order_relaxed);
}

static void cuda_release(void *ctx) {
    HryCudaTarget *target = ctx;
    if (atomic_fetch_sub_explicit(&target->holds, 1, memory_order_acq_rel) == 1) hry_cuda_target_free(target);
}

static HurrayStatus check_options(const HurrayCudaOptions *o, HryCudaTarget *target, HurrayError *error) {
    if (o->flags & ~LOAD_ARENA)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "flags", HRY_NO_OFFSET, "flags 0x%x holds a bit that this release does not know", (unsigned)o->flags);
    if (o->pinned > HURRAY_OFF) return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "pinned", HRY_NO_OFFSET, "pinned is %u, expected HURRAY_AUTO, _ON or _OFF", (unsigned)o->pinned);
    if (!o->device_memory) return HURRAY_OK;
    HurrayStatus status = hry_options_read(&target->pool, sizeof target->pool, sizeof target->pool, o->device_memory, "HurrayDeviceMemory", error);
    if (status == HURRAY_OK && !target->pool.allocate)
        status = hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "device_memory", HRY_NO_OFFSET, "HurrayDeviceMemory needs allocate");
    return status;
}

static HurrayStatus make(const HurrayCudaOptions *user, HurrayDestinationAlloc *out, HurrayError *error) {
    HurrayCudaOptions options = HURRAY_CUDA_OPTIONS_INIT;
    HurrayAllocator allocator;
    HryCudaHome *home = NULL;
    HurrayStatus status = hry_options_read(&options, sizeof options, sizeof options, user, "HurrayCudaOptions", error);
    if (status == HURRAY_OK) status = hry_alloc_resolve(options.allocator, &allocator, error);
    if (status != HURRAY_OK) return status;
    HryCudaTarget *target = hry_alloc(&allocator, sizeof *target);
    if (!target) return hry_fail_memory(error, "a CUDA destination", sizeof *target);
    target->api = hry_cuda_api();
    target->allocator = allocator;
    target->options = options;
    if (!target->options.pinned_cap) target->options.pinned_cap = DEFAULT_CAP;
    atomic_init(&target->holds, 1);
    pthread_mutex_init(&target->lock, NULL);
    pthread_mutex_init(&target->making, NULL);
    pthread_mutex_init(&target->log_lock, NULL);
    hry_error_clear(&target->failure);
    status = check_options(&options, target, error);
    if (status == HURRAY_OK) status = hry_cuda_target_home(target, options.device_index, &home, error); /* says why there is no device */
    if (status != HURRAY_OK) {
        hry_cuda_target_free(target);
        return status;
    }
    HurrayDestinationAlloc made = HURRAY_DESTINATION_ALLOC_INIT;
    made.flags = HURRAY_DESTINATION_CONCURRENT;
    made.ctx = target;
    made.retain = cuda_retain;
    made.reserve = cuda_reserve;
    made.allocate = cuda_allocate;
    made.window = cuda_window;
    made.commit = cuda_commit;
    made.freeze = cuda_freeze;
    made.discard = cuda_discard;
    made.wait = cuda_wait;
    made.release = cuda_release;
    *out = made;
    return HURRAY_OK;
}

HurrayStatus hurray_destination_cuda(const HurrayCudaOptions *options, HurrayDestinationAlloc *out, HurrayError *error) {
    HurrayError local;
    if (!out) return hry_fail_null(error, "out");
    hry_error_clear(&local);
    return make(options, out, &local) == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &local);
}

bool hry_cuda_destination_stats(const HurrayDestinationAlloc *destination, HryCudaStats *out) {
    if (destination->freeze != cuda_freeze) return false;
    HryCudaTarget *target = destination->ctx;
    memset(out, 0, sizeof *out);
    out->numa_node = -1;
    hry_cuda_lock(target);
    for (HryCudaHome *home = target->homes; home; home = home->next) {
        if (!home->staging.slot_count) continue;
        out->staging = home->staging.kind;
        out->numa_node = home->device->numa_node;
        memcpy(out->reason, home->staging.reason, sizeof out->reason);
    }
    out->peak_pinned = target->peak_pinned;
    hry_cuda_unlock(target);
    for (HryCudaLane *lane = hry_cuda_target_lanes(target); lane; lane = lane->next) out->copied_bytes += lane->queue.bytes;
    pthread_mutex_lock(&target->log_lock);
    out->copy_ns = target->copy_ns;
    pthread_mutex_unlock(&target->log_lock);
    return true;
}

bool hry_cuda_destination_failure(const HurrayDestinationAlloc *destination, HurrayError *out) {
    if (destination->freeze != cuda_freeze) return false;
    HryCudaTarget *target = destination->ctx;
    hry_cuda_lock(target);
    bool failed = target->failure.code < 0;
    if (failed) *out = target->failure;
    hry_error_clear(&target->failure);
    hry_cuda_unlock(target);
    return failed;
}

size_t hry_cuda_destination_copies(const HurrayDestinationAlloc *destination, HryCudaCopy *out, size_t room) {
    if (destination->freeze != cuda_freeze) return 0;
    HryCudaTarget *target = destination->ctx;
    pthread_mutex_lock(&target->log_lock);
    size_t n = target->log_count < room ? target->log_count : room;
    memcpy(out, target->log, n * sizeof *out);
    memmove(target->log, target->log + n, (target->log_count - n) * sizeof *out);
    target->log_count -= n;
    pthread_mutex_unlock(&target->log_lock);
    return n;
}
