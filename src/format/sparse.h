/* The stored elements of COO, CSR, CSC and CSF tensors (docs/format.md section 3.4). Contents are untrusted: what is used for an
 * address is checked when it is used, and only that; the full rules are verify.h's. */
#ifndef HRY_FORMAT_SPARSE_H
#define HRY_FORMAT_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/descriptor.h"
#include "format/payload.h"

static inline bool hry_sparse_is(const HurrayDescriptor *descriptor) {
    return descriptor->layout_tag >= HURRAY_LAYOUT_COO && descriptor->layout_tag <= HURRAY_LAYOUT_CSF;
}

/* A walk over the stored elements in the order of their values. Holds no memory; start again with another open. */
typedef struct HryStored {
    const HurrayDescriptor *descriptor;
    const HryBytes *buffers;
    uint64_t next;                                             /* position of the next value */
    uint64_t outer, outer_end;                                 /* CSR, CSC: row or column, and where its entries end */
    uint32_t level;                                            /* CSF: levels that are open, 0 before the first element */
    uint64_t node[HURRAY_MAX_RANK], node_end[HURRAY_MAX_RANK]; /* CSF: the node at each open level, and its siblings' end */
} HryStored;

/* The descriptor is sparse and without dynamic dimensions; buffers: all of the layout's. */
void hry_stored_open(HryStored *stored, const HurrayDescriptor *descriptor, const HryBytes *buffers);

/* The next element's index (rank entries, in bounds) and the position of its value in buffer 0 (below nnz). HURRAY_END_OF_STREAM
 * after the last one; INVALID_DATA when the contents lead out of the tensor or its buffers. */
HurrayStatus hry_stored_next(HryStored *stored, uint64_t *index, uint64_t *position, HurrayError *error);

/* Is there a value for this index (in bounds)? Of several (which the format forbids) any may be found. */
HurrayStatus hry_sparse_find(const HurrayDescriptor *descriptor, const HryBytes *buffers, const uint64_t *index, bool *found,
                             uint64_t *position, HurrayError *error);

#endif
