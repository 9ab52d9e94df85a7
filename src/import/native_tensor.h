/* What a tensor of GGML blocks becomes in the format's own quantization: buffers of codes, scales and perhaps zero points. */
#ifndef HRY_IMPORT_NATIVE_TENSOR_H
#define HRY_IMPORT_NATIVE_TENSOR_H

#include "format/descriptor.h"
#include "import/native_quant.h"

typedef struct HryNativePlan {
    const HryNative *native;
    const HryGgmlType *type;
    uint64_t blocks; /* of GGML */
    uint32_t count;  /* buffers */
    uint64_t sizes[3];
} HryNativePlan;

/* UNSUPPORTED: no such blocks, or no form for them. */
HurrayStatus hry_native_plan(const HurrayDescriptor *descriptor, HryNativePlan *plan, HurrayError *error);
/* count blocks, whose first has the number `first`, to their bytes of one buffer: hry_native_bytes for each. INVALID_DATA. */
HurrayStatus hry_native_buffer(const HryNativePlan *plan, uint32_t buffer, const uint8_t *blocks, uint64_t first, uint64_t count,
                               uint8_t *dst, HurrayError *error);
static inline uint64_t hry_native_bytes(const HryNativePlan *plan, uint32_t buffer) {
    return plan->blocks ? plan->sizes[buffer] / plan->blocks : 0;
}

#endif
