/* The in-place destination over several sources: what the loader uses for mapped files. */
#ifndef HRY_CPU_IN_PLACE_H
#define HRY_CPU_IN_PLACE_H

#include "cpu/mapping.h"
#include "hurray/destination.h"

/* sources[request.source_index] holds the bytes of a buffer (NULL, or beyond count: host memory). Each is held once more.
 * host: how the memory for the others is made (NULL: defaults; its allocator is ignored). */
HurrayStatus hry_destination_in_place(HryMapping *const *sources, size_t count, const HurrayHostOptions *host,
                                      const HurrayAllocator *allocator, HurrayDestinationAlloc *out, HurrayError *error);

#endif
