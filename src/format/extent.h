/* How many bytes each buffer of a descriptor must have (docs/format.md sections 3.2, 3.3, 4): one logic for decoding,
 * building and planning. Reads everything of the descriptor but its buffer table. */
#ifndef HRY_FORMAT_EXTENT_H
#define HRY_FORMAT_EXTENT_H

#include "format/descriptor.h"

typedef struct HryExtent {
    uint64_t least; /* bytes */
    bool known;     /* false: only the data, a dynamic dimension or somebody private knows; least is then a lower bound */
    bool exact;     /* more is rejected, too */
} HryExtent;

/* Buffers of the layout and of quantization together, as the descriptor must have; private layouts: the least. */
uint32_t hry_extent_buffer_count(const HurrayDescriptor *descriptor);

/* What buffer i (below that count, or any parameter buffer) must have. Fails when the size does not fit 64 bits or elements would
 * lie before the buffer (INVALID_LAYOUT). originate: what somebody who makes the tensor allocates, which is more for
 * Morton order with unequal bits. The quantization section, if any, has passed its checks. */
HurrayStatus hry_extent_buffer(const HurrayDescriptor *descriptor, uint32_t buffer, bool originate, HryExtent *out, HurrayError *error);

/* Least and greatest linear element offset of a dense layout (0x01 to 0x05, 0x40) that is neither empty nor dynamic;
 * false: beyond 63 bits. */
bool hry_extent_reach(const HurrayDescriptor *descriptor, int64_t *least, int64_t *greatest);

#endif
