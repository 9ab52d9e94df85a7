/* Tensors in preorder, one by one, become items: a plain tensor at once, a composite when its last member is there. */
#ifndef HRY_CORE_COMPOSITE_ASSEMBLER_H
#define HRY_CORE_COMPOSITE_ASSEMBLER_H

#include "core/composite_tree.h"
#include "core/tensor.h"

typedef struct HryAssembler {
    HryTree tree;
    HurrayItem *item; /* of the open tree */
} HryAssembler;

/* max_depth: from hry_tree_depth_option. Allocates nothing. */
void hry_assembler_init(HryAssembler *assembler, const HurrayAllocator *allocator, uint32_t max_depth);
void hry_assembler_clear(HryAssembler *assembler); /* safe on a zeroed one */
/* Drops the open tree; the next tensor begins a new item. */
void hry_assembler_restart(HryAssembler *assembler);
static inline bool hry_assembler_is_open(const HryAssembler *assembler) { return hry_tree_is_open(&assembler->tree); }

/* Before a payload is fetched: could a tensor with this descriptor come next? The same statuses as push; changes nothing. */
HurrayStatus hry_assembler_test(HryAssembler *assembler, const HurrayDescriptor *descriptor, HurrayError *error);
/* OK: takes *tensor (which becomes NULL); *out is the whole item, or NULL while members are missing. name: NULL in streams.
 * NO_MEMORY: nothing has changed, the same tensor may be pushed again. Any other failure (INVALID_LAYOUT, TOO_DEEP): the
 * tensor stays with the caller, the open tree is dropped, and the next push begins a new item. */
HurrayStatus hry_assembler_push(HryAssembler *assembler, HurrayTensor **tensor, const uint8_t *name, size_t name_len, HurrayItem **out,
                                HurrayError *error);
/* The input ends here: OK with nothing open; else TORN_COMPOSITE and the open tree is dropped. */
HurrayStatus hry_assembler_end(HryAssembler *assembler, HurrayError *error);

#endif
