/* Bytes that are readable where they lie: a mapped file or a caller's memory, counted. It goes with the last hold,
 * be that a transport, a destination or a buffer. */
#ifndef HRY_CPU_MAPPING_H
#define HRY_CPU_MAPPING_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/fail.h"

typedef struct HryMapping {
    HurrayAllocator allocator;
    atomic_size_t holds;
    const uint8_t *base; /* NULL only when len is 0 */
    size_t len;
    bool mapped; /* ours to unmap */
    HurrayReleaseCallback release;
    void *release_context;
} HryMapping;

/* Each makes one hold. The caller's memory: release (may be NULL) is called once, with data, at the end. */
HurrayStatus hry_mapping_memory(const void *data, size_t len, HurrayReleaseCallback release, void *release_context,
                                const HurrayAllocator *allocator, HryMapping **out, HurrayError *error);
/* A whole regular file, read-only; fd is not kept. path is for messages (NULL: none). */
HurrayStatus hry_mapping_file(int fd, const char *path, const HurrayAllocator *allocator, HryMapping **out, HurrayError *error);
void hry_mapping_hold(HryMapping *mapping);
void hry_mapping_drop(HryMapping *mapping);

#endif
