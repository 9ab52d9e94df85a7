/* What a caller holds: buffers, lists, tensors, items. One owner, released exactly once, any thread. */
#ifndef HRY_CORE_TENSOR_H
#define HRY_CORE_TENSOR_H

#include "base/alloc.h"
#include "base/fail.h"
#include "format/descriptor.h"
#include "hurray.h"

/* info in its latest form. On OK the memory belongs to the buffer; on failure it stays with the caller. */
HurrayStatus hry_buffer_new(const HurrayBufferInfo *info, const HurrayAllocator *allocator, HurrayBuffer **out, HurrayError *error);
const HurrayBufferInfo *hry_buffer_info(const HurrayBuffer *buffer);
/* Releases what an info owns: an event that nobody took, then the memory. */
void hry_buffer_info_release(const HurrayBufferInfo *info);
/* Device tag, class, mode and their pairs, size, alignment, address: what every HurrayBufferInfo must keep. */
HurrayStatus hry_buffer_info_check(const HurrayBufferInfo *info, HurrayError *error);
/* Has the event been taken, or a stream been ordered behind it? True without an event mode. */
bool hry_buffer_is_ordered(const HurrayBuffer *buffer);

/* Takes over count buffers and one reference to the descriptor on OK; on failure all stay with the caller. Does not
 * compare sizes with the descriptor (hurray_tensor_new does). count 0: a composite head. */
HurrayStatus hry_tensor_assemble(HurrayDescriptor *descriptor, HurrayBuffer *const *buffers, size_t count, const HurrayAllocator *allocator,
                                 HurrayTensor **out, HurrayError *error);
/* The same from frozen infos, in one block of memory: the buffers live inside the tensor. On OK the memory of every info belongs
 * to it; on failure everything stays with the caller. */
HurrayStatus hry_tensor_adopt(HurrayDescriptor *descriptor, const HurrayBufferInfo *const *infos, size_t count,
                              const HurrayAllocator *allocator, HurrayTensor **out, HurrayError *error);
/* Another owner (a view): memory goes with the last hurray_tensor_destroy. */
HurrayTensor *hry_tensor_ref(HurrayTensor *tensor);
HurrayDescriptor *hry_tensor_descriptor(const HurrayTensor *tensor);
size_t hry_tensor_buffer_count(const HurrayTensor *tensor);
HurrayBuffer *hry_tensor_buffer(const HurrayTensor *tensor, size_t i);

/* Items: built in preorder. capacity grows as nodes come (a promised count is never allocated for). */
typedef struct HryItemNodeIn {
    uint32_t kind, member_count;
    const uint8_t *name; /* copied; NULL in streams */
    size_t name_len;
    HurrayTensor *tensor; /* taken over on OK */
    uint64_t parent;      /* HURRAY_NONE for the root */
} HryItemNodeIn;
HurrayStatus hry_item_new(const HurrayAllocator *allocator, HurrayItem **out, HurrayError *error);
HurrayStatus hry_item_push(HurrayItem *item, const HryItemNodeIn *node, HurrayError *error);
uint64_t hry_item_count(const HurrayItem *item);
const HurrayItemNode *hry_item_at(const HurrayItem *item, uint64_t i);

#endif
