/* One item's destinations: allocated, filled window by window, frozen into a tensor or discarded. Nobody sees a partial one.
 * The only place in the library that calls a HurrayDestinationAlloc. */
#ifndef HRY_CORE_WINDOW_H
#define HRY_CORE_WINDOW_H

#include "core/tensor.h"
#include "hurray/destination.h"

/* A handle's hold on a destination: resolved (NULL becomes the plain host destination), retained once. */
HurrayStatus hry_destination_hold(const HurrayDestinationAlloc *user, const HurrayAllocator *allocator, HurrayDestinationAlloc *out,
                                  HurrayError *error);
void hry_destination_drop(HurrayDestinationAlloc *held);
/* For drivers that block, after WAIT: until something may have come free. UNSUPPORTED when the destination cannot wait. */
HurrayStatus hry_destination_wait(const HurrayDestinationAlloc *held, HurrayError *error);

typedef struct HryItemBuffer {
    uint64_t byte_size, source_offset; /* HURRAY_NONE: unknown or scattered */
    void *id;
    const uint8_t *data; /* prefilled and host-readable, else NULL */
    bool asked, prefilled, frozen;
    HurrayBufferInfo info; /* once frozen */
} HryItemBuffer;

typedef struct HryItemDestinations {
    const HurrayDestinationAlloc *destination; /* borrowed from the handle */
    HurrayAllocator allocator;
    HurrayDescriptor *descriptor; /* one reference */
    HryItemBuffer *buffers;
    uint32_t count, allocated, frozen; /* how far allocate and freeze have come (both go in order and may answer WAIT) */
    HurrayDestinationRequest request;  /* the template: placement, name, flags, user */
    bool placed;                       /* the caller, not the file, chose device, mode and class */
    const HurrayMemory *into;          /* borrowed, one per buffer: where the caller wants them; NULL: anywhere. Set after begin */
    bool keep; /* a failing callback leaves the item as it was, to be asked again (streams); else failure discards it */
} HryItemDestinations;

/* Begins an item: keeps a reference to the descriptor, calls nothing yet. template_ has everything but byte_size,
 * source_offset, buffer_index; its alignment is the least for devices (0: 4096), the rest of it comes from the handle, and (when !placed)
 * device_tag, sync_mode, memory_class, which too. source_offsets: one per buffer, or NULL (all unknown). */
HurrayStatus hry_item_begin(HryItemDestinations *item, const HurrayDestinationAlloc *destination, HurrayDescriptor *descriptor,
                            const uint64_t *source_offsets, const HurrayDestinationRequest *template_, bool placed,
                            const HurrayAllocator *allocator, HurrayError *error);
/* Allocates every buffer of byte_size > 0, in order. HURRAY_WAIT: call again. Failure: the item is discarded. */
HurrayStatus hry_item_allocate(HryItemDestinations *item, HurrayError *error);
/* The window at `offset` of buffer k, at most `len` bytes; checked (len 1..asked, offset kept). HURRAY_WAIT: again. */
HurrayStatus hry_item_window(HryItemDestinations *item, uint32_t k, uint64_t offset, uint64_t len, HurrayWindow *out, HurrayError *error);
HurrayStatus hry_item_commit(HryItemDestinations *item, uint32_t k, const HurrayWindow *window, HurrayError *error);
/* Freezes all buffers and makes the tensor; what comes back is checked (alignment, legal device and class, mode). HURRAY_WAIT: again.
 * Failure: everything is released or discarded. On OK the item is over. */
HurrayStatus hry_item_freeze(HryItemDestinations *item, HurrayTensor **out, HurrayError *error);
/* Releases what is frozen, discards the rest, drops the reference. Safe on a zeroed or finished item. */
void hry_item_discard(HryItemDestinations *item);

#endif
