/* A composite in preorder, with an explicit stack of open heads: a whole node array before it is written, and tensors as
 * they come, one after another, when they are read or written one by one. */
#ifndef HRY_CORE_COMPOSITE_TREE_H
#define HRY_CORE_COMPOSITE_TREE_H

#include "core/composite_check.h"

#define HRY_MAX_COMPOSITE_DEPTH 64u

/* The option max_composite_depth: 0 is the most, 64; more is INVALID_ARGUMENT. */
HurrayStatus hry_tree_depth_option(uint32_t asked, uint32_t *out, HurrayError *error);

typedef struct HryTreeLevel {
    HryCompositeCheck check;
    uint64_t node; /* the head's number in preorder */
} HryTreeLevel;

/* Members as they come. test changes nothing that can be seen, so a refused or never emitted one may be followed by
 * another try; commit cannot fail. */
typedef struct HryTree {
    HurrayAllocator allocator;
    HryTreeLevel *levels;
    size_t capacity;
    uint32_t depth, max_depth, flags;
    uint64_t nodes; /* of the open tree */
    bool tested, opening; /* a member, perhaps a head, passed test and waits for commit */
} HryTree;

void hry_tree_init(HryTree *tree, const HurrayAllocator *allocator, uint32_t max_depth, uint32_t flags); /* HRY_CHECK_ flags */
/* Forgets the open tree, keeps the memory. */
void hry_tree_restart(HryTree *tree);
void hry_tree_clear(HryTree *tree); /* safe on a zeroed one */

static inline bool hry_tree_is_open(const HryTree *tree) { return tree->depth != 0; }
/* The next node's head (its number in preorder), HURRAY_NONE for a root; and its place among that head's members. */
uint64_t hry_tree_parent(const HryTree *tree);
uint32_t hry_tree_place(const HryTree *tree);

/* May this come next? With nothing open anything may; whole: a head whose members were checked by hry_tree_check_nodes
 * and which therefore opens nothing here. INVALID_LAYOUT, TOO_DEEP, NO_MEMORY. */
HurrayStatus hry_tree_test(HryTree *tree, const HurrayDescriptor *descriptor, bool whole, HurrayError *error);
/* After a test that was OK. True: nothing is open any more. */
bool hry_tree_commit(HryTree *tree);
/* The input or output ends here: TORN_COMPOSITE while a head is open. Changes nothing. */
HurrayStatus hry_tree_end(const HryTree *tree, HurrayError *error);

/* Slices for a descriptor's buffers: one each, of exactly their sizes. INVALID_LAYOUT, NULL_POINTER. */
HurrayStatus hry_slices_check(const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count, HurrayError *error);

/* Is the array one whole composite that may be written, slices included? Every rule is checked; the error names the node.
 * INVALID_LAYOUT, TOO_DEEP, NULL_POINTER, INVALID_ARGUMENT, NO_MEMORY. max_depth: 64 less what is open around it. */
HurrayStatus hry_tree_check_nodes(const HurrayCompositeNode *nodes, size_t count, uint32_t max_depth, const HurrayAllocator *allocator,
                                  HurrayError *error);

/* One name per node of a checked array: the node's own (borrowed), or {head}.{i} in memory of this struct. */
typedef struct HryTreeNames {
    HurrayAllocator allocator;
    HurrayIoSlice *names;
    size_t count;
    char *made;
    size_t made_size;
} HryTreeNames;
/* A root without a name, or a name that grows beyond 65,535 bytes: INVALID_NAME. Other rules of names (UTF-8, no two
 * alike) are the index's. */
HurrayStatus hry_tree_names_init(HryTreeNames *names, const HurrayCompositeNode *nodes, size_t count, const HurrayAllocator *allocator,
                                 HurrayError *error);
void hry_tree_names_clear(HryTreeNames *names); /* safe on a zeroed one */

#endif
