/* The rules that need contents (*(data)* in docs/format.md). Contents are untrusted; nothing is read outside the buffers. */
#ifndef HRY_FORMAT_VERIFY_H
#define HRY_FORMAT_VERIFY_H

#include "base/alloc.h"
#include "format/descriptor.h"
#include "format/payload.h"

/* Told of each finding: code INVALID_DATA, field, text, buffer_index, and offset: bytes from the beginning of that buffer (unknown
 * for what is in the descriptor). At most one for each rule and buffer, the first. Any other answer than OK ends the check. */
typedef HurrayStatus (*HryFound)(void *ctx, const HurrayError *finding);

/* Which bytes of a buffer the rules look at: [*offset, *offset + *len), inside its declared size; *len 0: none. Nothing else of the
 * tensor has to be read: for most tensors that is nothing at all. */
void hry_verify_range(const HurrayDescriptor *descriptor, uint32_t buffer, uint64_t *offset, uint64_t *len);

/* ranges: for each buffer just those bytes (data may be NULL where there are none). A composite head is fine and has only its
 * statistics. OK: everything was looked at, whatever was found; else what `found` answered, or NO_MEMORY (COO that is not sorted
 * needs some to find duplicates). */
HurrayStatus hry_verify_tensor(const HurrayDescriptor *descriptor, const HryBytes *ranges, const HurrayAllocator *allocator, HryFound found,
                               void *ctx, HurrayError *error);

#endif
