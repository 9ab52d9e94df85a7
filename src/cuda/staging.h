/* The pinned staging memory of one device: slots in groups, each group one registration. Slots are taken last freed first (its memory is
 * still in the cache). Where pinning is refused: registered -> allocated pinned -> smaller -> pageable, each visible. */
#ifndef HRY_CUDA_STAGING_H
#define HRY_CUDA_STAGING_H

#include "cpu/region.h"
#include "cuda/queue.h"

#define HRY_CUDA_SLOT_RANGES 512u
#define HRY_CUDA_GROUP_SLOTS 8u

typedef struct HryCudaSlotRange {
    uint64_t begin, end; /* committed bytes, in the slot */
} HryCudaSlotRange;

typedef struct HryCudaSlot {
    uint8_t *memory;
    struct HryCudaStripe *stripe; /* whose image it is while it is filled; NULL: free, or its copy is under way */
    HryCudaQueue *queue;          /* of the copy under way */
    struct HryCudaPiece *piece;   /* held until the copy is done */
    uint64_t seq;                 /* 0: no copy under way */
    uint32_t open;                /* windows out */
    uint32_t range_count;
    HryCudaSlotRange ranges[HRY_CUDA_SLOT_RANGES]; /* sorted, apart */
    struct HryCudaSlot *next;     /* in the free stack */
} HryCudaSlot;

typedef struct HryCudaGroup {
    HryRegion region; /* ours, registered or pageable; base NULL: the runtime's */
    void *allocated;  /* by the runtime, or NULL */
    bool registered;
    uint32_t count;
    HryCudaSlot slots[HRY_CUDA_GROUP_SLOTS];
    struct HryCudaGroup *next;
} HryCudaGroup;

typedef struct HryCudaStaging {
    HryCudaDevice *device; /* borrowed from whoever holds the staging */
    HurrayAllocator allocator;
    uint32_t pinned; /* HURRAY_AUTO, _ON, _OFF */
    uint64_t cap, slot_bytes;
    uint32_t slot_count, slot_limit;
    HryCudaGroup *groups;
    HryCudaSlot *free;
    uint32_t kind; /* HURRAY_STAGING_..., once there is a group */
    uint64_t pinned_bytes;
    char reason[120]; /* why it is not what was asked for, or empty */
} HryCudaStaging;

/* cap: most bytes; slot_bytes 0: 4 MiB, less where the cap or the processor's cache wants it. Takes no memory yet. */
void hry_cuda_staging_init(HryCudaStaging *staging, HryCudaDevice *device, uint32_t pinned, uint64_t cap, uint64_t slot_bytes);
/* Another group, when the limit allows one; *grown says whether. The first fails when no staging at all can be had (pinned ON: when
 * it cannot be pinned). Calls the runtime: hold no lock that a reader waits for. One thread at a time. */
HurrayStatus hry_cuda_staging_make_group(HryCudaStaging *staging, HryCudaGroup **out, HurrayError *error);
/* Puts a made group in use. Cheap. */
void hry_cuda_staging_add(HryCudaStaging *staging, HryCudaGroup *group);
HryCudaSlot *hry_cuda_staging_take(HryCudaStaging *staging); /* NULL: none free */
void hry_cuda_staging_give(HryCudaStaging *staging, HryCudaSlot *slot);
/* No slot is in use any more. */
void hry_cuda_staging_clear(HryCudaStaging *staging);

#endif
