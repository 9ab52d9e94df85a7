/* One road to one device: a copy stream, the arena that its buffers are cut from, and the slots that hold images of its stripes. All
 * functions but those that say otherwise are called with the destination's lock held and call no runtime. */
#ifndef HRY_CUDA_LANE_H
#define HRY_CUDA_LANE_H

#include "cuda/arena.h"

/* A device as the destination uses it: its staging is shared by all lanes to it. */
typedef struct HryCudaHome {
    HryCudaDevice *device;
    HryCudaStaging staging;
    uint64_t reserved, reserved_pinned; /* bytes announced and not yet cut */
    struct HryCudaHome *next;
} HryCudaHome;

typedef struct HryCudaLane {
    HryCudaHome *home;
    HryCudaQueue queue;
    void *copy_stream; /* as asked for; NULL: our own */
    HryCudaPieceKind kind;
    HryCudaPiece *piece; /* cut from now; one reference */
    bool failed;         /* an asynchronous failure: every buffer on this road fails */
    struct HryCudaLane *next;
} HryCudaLane;

/* A buffer on its way. */
typedef struct HryCudaBuffer {
    HryCudaLane *lane;
    HryCudaPiece *piece; /* one reference */
    uint64_t begin, hole, size; /* in the piece; bytes from hole to begin belong to nobody */
    uint64_t committed;
    uint32_t alignment;
    uint8_t device_tag, sync_mode, memory_class;
    void *consumer_stream;
    struct HryCudaOpen *open; /* windows out */
    uint32_t asked; /* how often a freeze found bytes in a slot that is still being filled */
} HryCudaBuffer;

typedef struct HryCudaOpen {
    HryCudaSlot *slot; /* NULL: pinned memory, filled in place */
    uint64_t offset, len;
    struct HryCudaOpen *next;
} HryCudaOpen;

/* Bytes [begin, end) of a stripe are in its slot. False: no room to note them (never when a window could be opened). */
bool hry_cuda_slot_commit(HryCudaSlot *slot, uint64_t begin, uint64_t end);
bool hry_cuda_slot_has_room(const HryCudaSlot *slot);

/* Takes a slot's committed ranges out of it for a copy: the slot leaves its stripe and is busy until hry_cuda_slot_sent. */
typedef struct HryCudaFlush {
    HryCudaSlot *slot;
    HryCudaStripe *stripe;
    HryCudaLane *lane;
    uint32_t count;
    HryCudaStretch stretches[HRY_CUDA_SLOT_RANGES];
} HryCudaFlush;
void hry_cuda_slot_detach(HryCudaSlot *slot, HryCudaFlush *flush);
/* Without the lock: enqueues the copy. */
HurrayStatus hry_cuda_flush_send(HryCudaFlush *flush, HryCudaMark **mark, HurrayError *error);
/* With the lock again. mark NULL: it failed with status. *old: a mark to let go of without the lock. */
void hry_cuda_flush_sent(HryCudaFlush *flush, HryCudaMark *mark, HurrayStatus status, HryCudaMark **old);

/* Slots whose copy is done become free; their pieces are handed out to be let go of without the lock (NULL: no more). */
HryCudaPiece *hry_cuda_home_reclaim(HryCudaHome *home);
/* A slot that can be sent now: committed ranges, no window out; NULL: none. */
HryCudaSlot *hry_cuda_home_quiet_slot(HryCudaHome *home);

#endif
