/* Destinations that a loader makes itself, one per place that tensors go to, and the rule which place a tensor takes. */
#ifndef HRY_LOADER_TARGETS_H
#define HRY_LOADER_TARGETS_H

#include "loader/loader.h"

/* The target for a way; made when it is the first one. mapped: hand out the file's own mapping (host only), source: of which file. */
HurrayStatus hry_targets_for(HurrayLoader *loader, const HryWay *way, bool into, bool mapped, uint32_t source, size_t *out,
                             HurrayError *error);
void hry_targets_drop(HurrayLoader *loader);

/* Memory that a caller lends: HurrayDestinationRequest.into. */
HurrayStatus hry_destination_into(const HurrayAllocator *allocator, HurrayDestinationAlloc *out, HurrayError *error);

#endif
