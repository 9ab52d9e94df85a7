/* What the dense views of tensors and of composites share. */
#ifndef HRY_CORE_DENSE_VIEW_H
#define HRY_CORE_DENSE_VIEW_H

#include "core/tensor.h"
#include "format/payload.h"

#define HRY_MAX_BUFFERS 255u

/* The buffers of a tensor (room for HRY_MAX_BUFFERS), which must be complete memory that this processor reads; else UNSUPPORTED. */
HurrayStatus hry_tensor_host_bytes(const HurrayTensor *tensor, HryBytes *bytes, HurrayError *error);

#endif
