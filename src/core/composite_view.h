/* The logical view of a composite (docs/format.md section 7): one element, or all of it as one dense row-major tensor. */
#ifndef HRY_CORE_COMPOSITE_VIEW_H
#define HRY_CORE_COMPOSITE_VIEW_H

#include "core/tensor.h"

/* The elements of a node (and what is below it) into dst, as hurray_tensor_dense does for a tensor; type 0 or float32.
 * BUFFER_TOO_SMALL; UNSUPPORTED (groups, memory of a device); INVALID_DATA; WRONG_STATE when a tensor was taken out. */
HurrayStatus hry_item_view_dense(const HurrayItem *item, uint64_t node, uint8_t type, void *dst, size_t len, HurrayError *error);
/* One element, as hurray_tensor_element gives it. */
HurrayStatus hry_item_view_element(const HurrayItem *item, uint64_t node, const uint64_t *index, uint32_t rank, uint8_t type, void *dst,
                                   size_t len, HurrayError *error);

#endif
