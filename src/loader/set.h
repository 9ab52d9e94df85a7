/* What a load hands out. Lives on its own: it holds the catalogues that its names lie in. */
#ifndef HRY_LOADER_SET_H
#define HRY_LOADER_SET_H

#include "loader/loader.h"

typedef struct HrySetEntry {
    HurrayTensor *tensor; /* NULL: delivered or taken */
    const uint8_t *name;
    uint32_t name_len, member_count;
    bool is_head, whole; /* whole: all members were loaded too */
    uint64_t index;      /* in the loader */
    uint64_t parent;     /* place in the set, or HURRAY_NONE */
} HrySetEntry;

struct HurrayTensorSet {
    HurrayAllocator allocator;
    HrySetEntry *entries;
    size_t count;
    HryCatalogue **catalogues;
    size_t catalogue_count;
    HryNames names;
    bool has_names;
};

/* One empty entry per prepared tensor. */
HurrayStatus hry_set_new(HurrayLoader *loader, HurrayTensorSet **out, HurrayError *error);
void hry_set_destroy(HurrayTensorSet *set);

#endif
