/* Filling one tensor: destinations allocated, windows asked for, filled by reports, committed, frozen. Shared by the file's and the
 * stream's reader; neither waits nor reads. Stored checksums are taken chunk by chunk, while a chunk is still in the cache. */
#ifndef HRY_CORE_FILL_H
#define HRY_CORE_FILL_H

#include "core/catalogue.h"
#include "core/window.h"
#include "hurray/core.h"

typedef enum HryFillStage { HRY_FILL_ALLOCATE, HRY_FILL_WINDOW, HRY_FILL_BYTES, HRY_FILL_COMMIT, HRY_FILL_FREEZE } HryFillStage;

/* Where a tensor's checksums come from. catalogue NULL: nothing is stored (streams). */
typedef struct HryFillSums {
    const HryCatalogue *catalogue;
    uint64_t index;
    uint32_t verify; /* HURRAY_VERIFY_... */
} HryFillSums;

typedef struct HryFill {
    HryItemDestinations item;
    HryFillSums sums;
    HryFillStage stage;
    uint32_t buffer;
    uint32_t crc, wanted; /* of the current buffer */
    bool check;           /* the current buffer has a sum to compare with */
    uint64_t at;          /* bytes of the current buffer behind us */
    HurrayWindow window;  /* BYTES, COMMIT: the one that is out */
    uint64_t filled;      /* of the window */
} HryFill;

/* As hry_item_begin. CHECKSUM at once when every buffer must be checked and one cannot be. */
HurrayStatus hry_fill_begin(HryFill *fill, const HurrayDestinationAlloc *destination, HurrayDescriptor *descriptor,
                            const uint64_t *source_offsets, const HurrayDestinationRequest *template_, bool placed, const HryFillSums *sums,
                            const HurrayAllocator *allocator, HurrayError *error);
/* OK: RANGE (offset in the source, or in the buffer where that is unknown), WAIT with its reason, or TENSOR with *tensor the caller's.
 * A failure leaves what item.keep says. */
HurrayStatus hry_fill_step(HryFill *fill, HurrayStep *step, HurrayTensor **tensor, HurrayError *error);
/* The bytes that are asked for, in stage BYTES: the rest of the window. */
static inline bool hry_fill_asks(const HryFill *fill) { return fill->item.descriptor && fill->stage == HRY_FILL_BYTES; }
HurrayWindow hry_fill_window(const HryFill *fill);
/* n > 0 of them are in place. CHECKSUM when that was the buffer's last and the sum is another. */
HurrayStatus hry_fill_report(HryFill *fill, size_t n, HurrayError *error);
void hry_fill_discard(HryFill *fill); /* safe on a zeroed or finished one */

#endif
