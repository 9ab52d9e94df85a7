/* One entry of a file: its descriptor by one range, then, if wanted, its payload by one range a window. Many may go on over one
 * catalogue. The handle that owns a fetch names the tensor in errors. */
#ifndef HRY_CORE_FILE_FETCH_H
#define HRY_CORE_FILE_FETCH_H

#include "core/fill.h"

/* What all fetches over one opened file share; borrowed. */
typedef struct HryFetchContext {
    HurrayAllocator allocator;
    const HryCatalogue *catalogue;
    const HurrayDestinationAlloc *destination;
    uint64_t max_descriptor_bytes, max_tensor_bytes;
    uint32_t decode_flags, verify, io_alignment;
} HryFetchContext;

/* A descriptor's bytes as they lie at entry i's place: decoded, and compared with what the index says of it. */
HurrayStatus hry_fetch_decode(const HryFetchContext *context, uint64_t i, const void *bytes, size_t len, HurrayDescriptor **out,
                              HurrayError *error);

typedef enum HryFetchStage { HRY_FETCH_IDLE, HRY_FETCH_BYTES, HRY_FETCH_DESCRIBED, HRY_FETCH_PAYLOAD } HryFetchStage;

typedef struct HryFetch {
    const HryFetchContext *context;
    uint64_t index;
    HryFetchStage stage;
    uint8_t *bytes; /* of the descriptor */
    size_t len, filled;
    HurrayDescriptor *descriptor;
    HryFill fill;
} HryFetch;

/* known: the entry's descriptor when somebody has read it already (a reference is taken), or NULL. LIMIT before a range is asked for. */
HurrayStatus hry_fetch_begin(HryFetch *fetch, const HryFetchContext *context, uint64_t index, HurrayDescriptor *known, HurrayError *error);
/* RANGE, WAIT, DESCRIPTOR (fetch->descriptor is there; the same until hry_fetch_payload), TENSOR (*tensor is the caller's, the fetch over).
 */
HurrayStatus hry_fetch_step(HryFetch *fetch, HurrayStep *step, HurrayTensor **tensor, HurrayError *error);
/* After DESCRIPTOR: the payload is wanted too. */
HurrayStatus hry_fetch_payload(HryFetch *fetch, HurrayError *error);
/* What is asked for, with the slack around it; false when nothing is. */
bool hry_fetch_window(const HryFetch *fetch, HurrayWindow *out);
/* 0 < n <= what is asked for. */
HurrayStatus hry_fetch_report(HryFetch *fetch, size_t n, HurrayError *error);
/* TRUNCATED: the place where the file ended. */
HurrayStatus hry_fetch_end_of_file(const HryFetch *fetch, HurrayError *error);
void hry_fetch_abandon(HryFetch *fetch); /* safe on a zeroed or finished one */

#endif
