/* Where the elements of dense layouts lie (docs/format.md section 3.3). For all of it: the descriptor keeps the format's rules (it
 * was decoded or built), no dimension is dynamic, and the index is in bounds; then every result lies inside buffer 0 and no
 * intermediate result overflows. Offsets are signed, in elements, counted from the element at byte_offset. */
#ifndef HRY_FORMAT_ADDRESS_H
#define HRY_FORMAT_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/descriptor.h"

/* Row-, column-major, strided, tiled, Morton, Hilbert: an address follows from the index alone. */
bool hry_address_exists(const HurrayDescriptor *descriptor);

/* Elements first, first + step, ... are those at index, index + 1, ... along the last dimension. */
typedef struct HryRun {
    int64_t first, step;
    uint64_t count; /* 1 to limit */
} HryRun;

/* The longest such run that starts at index, at most `limit` (>= 1, not past the end of the last dimension). Rank 0: count 1. */
HryRun hry_address_run(const HurrayDescriptor *descriptor, const uint64_t *index, uint64_t limit);

int64_t hry_address_of(const HurrayDescriptor *descriptor, const uint64_t *index);

/* Steps of the affine layouts (row-, column-major, strided) in elements; false for the others. steps: rank entries. A step that is
 * never taken (its dimension has one element, or another is 0) may be any number. */
bool hry_address_steps(const HurrayDescriptor *descriptor, int64_t *steps);

/* Row-major number of an index, and back. */
uint64_t hry_index_linear(const uint64_t *index, const uint64_t *shape, uint32_t rank);
void hry_index_of_linear(uint64_t linear, const uint64_t *shape, uint32_t rank, uint64_t *index);

#endif
