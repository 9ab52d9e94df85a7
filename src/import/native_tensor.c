#include "import/native_tensor.h"

#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "core/tensor.h"
#include "hurray/import.h"

/* Memory of one buffer, in front of its bytes. */
typedef struct Owned {
    HurrayAllocator allocator;
    size_t size; /* of the whole block */
} Owned;

#define FRONT 64u /* keeps the bytes aligned */
_Static_assert(sizeof(Owned) <= FRONT, "the bytes begin behind the owner");

static void release_owned(void *data, void *context) {
    (void)data;
    Owned *owned = context;
    HurrayAllocator allocator = owned->allocator;
    allocator.deallocate(allocator.ctx, owned, owned->size, FRONT);
}

typedef struct Native {
    HryNativePlan plan;
    HurrayDescriptor *descriptor;
    HurrayBuffer *buffers[3];
} Native;

static uint8_t *make_buffer(Native *n, uint32_t i, const HurrayAllocator *allocator, HurrayError *error) {
    size_t size;
    if (!hry_to_size(n->plan.sizes[i], &size) || !hry_add_size(size, FRONT, &size)) {
        hry_fail_memory(error, "a buffer", n->plan.sizes[i]);
        return NULL;
    }
    Owned *owned = allocator->allocate(allocator->ctx, size, FRONT);
    if (!owned) {
        hry_fail_memory(error, "a buffer", size);
        return NULL;
    }
    owned->allocator = *allocator;
    owned->size = size;
    HurrayBufferInfo info = HURRAY_BUFFER_INFO_INIT;
    info.data = (uint8_t *)owned + FRONT;
    info.byte_size = n->plan.sizes[i];
    info.alignment = 64;
    info.device_index = -1;
    info.release = release_owned;
    info.release_context = owned;
    if (hry_buffer_new(&info, allocator, &n->buffers[i], error) == HURRAY_OK) return info.data;
    release_owned(info.data, owned);
    return NULL;
}

HurrayStatus hry_native_plan(const HurrayDescriptor *d, HryNativePlan *plan, HurrayError *error) {
    const HurrayLayout *layout = &d->layout;
    bool ours = d->layout_tag == HRY_GGML_LAYOUT_TAG && layout->private_id == HRY_GGML_LAYOUT_ID &&
                layout->private_len == HRY_GGML_LAYOUT_DATA && d->element_type == HURRAY_TYPE_FLOAT32 && d->buffer_count == 1;
    const uint8_t *data = layout->private_data;
    plan->type = ours ? hry_ggml_find(hry_load_u32(data)) : NULL;
    if (!plan->type || hry_load_u32(data + 4) != plan->type->block_elements || hry_load_u32(data + 8) != plan->type->block_bytes)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "layout", HRY_NO_OFFSET, "the tensor does not consist of GGML blocks");
    plan->native = hry_native_find(plan->type->number);
    if (!plan->native)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "quantization", HRY_NO_OFFSET,
                        "%s blocks have no form in the format's own quantization; keep the blocks, or decode them", plan->type->name);
    uint64_t elements, bytes;
    if (d->rank == 0 || d->shape[d->rank - 1] % plan->type->block_elements || !hry_descriptor_elements(d, &elements) ||
        !hry_mul_u64(elements / plan->type->block_elements, plan->type->block_bytes, &bytes) || d->buffers[0].byte_size != bytes)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "shape", HRY_NO_OFFSET,
                        "the tensor's buffer does not hold exactly the blocks of its shape");
    if (elements == 0 && plan->native->scheme == 5)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "shape", HRY_NO_OFFSET,
                        "an empty tensor has no form in the MXFP scheme; keep the blocks");
    uint64_t groups = elements / plan->native->block_size;
    plan->blocks = elements / plan->type->block_elements;
    plan->count = plan->native->has_zero_points ? 3 : 2;
    plan->sizes[0] = elements / 8 * plan->native->bits; /* elements come in blocks of 32 and more */
    plan->sizes[1] = groups * plan->native->scale_bytes;
    plan->sizes[2] = groups * 4;
    return HURRAY_OK;
}

HurrayStatus hry_native_buffer(const HryNativePlan *plan, uint32_t buffer, const uint8_t *blocks, uint64_t first, uint64_t count,
                               uint8_t *dst, HurrayError *error) {
    if (buffer < 2)
        return hry_native_convert(plan->native, plan->type, blocks, count, buffer == 0 ? dst : NULL, buffer == 1 ? dst : NULL, first,
                                  error);
    for (uint64_t i = 0; i < count * hry_native_bytes(plan, 2); i += 4) hry_store_u32(dst + i, 1);
    return HURRAY_OK;
}

static HurrayStatus describe(const HryNativePlan *plan, const HurrayDescriptor *blocks, const HurrayAllocator *allocator,
                             HurrayDescriptor **out, HurrayError *error) {
    HurrayBufferHandle handles[3];
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    memset(handles, 0, sizeof handles);
    for (uint32_t i = 0; i < plan->count; i++) {
        handles[i].byte_size = plan->sizes[i];
        handles[i].alignment = 64;
    }
    layout.tag = HURRAY_LAYOUT_ROW_MAJOR;
    quantization.scheme = plan->native->scheme;
    quantization.scale_type = plan->native->scale_type;
    quantization.axis = blocks->rank - 1;
    quantization.block_size = plan->native->block_size;
    quantization.scale_buffer = 1;
    if (plan->native->has_zero_points) {
        quantization.zero_point_buffer = 2;
    } else if (plan->native->scheme == 3) {
        quantization.flags = HURRAY_QUANT_SYMMETRIC;
        quantization.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    }
    spec.rank = blocks->rank;
    spec.shape = blocks->shape;
    spec.element_type = plan->native->storage;
    spec.buffer_count = plan->count;
    spec.buffers = handles;
    spec.layout = &layout;
    spec.quantization = &quantization;
    return hry_descriptor_build(&spec, allocator, out, error);
}

static HurrayStatus convert(Native *n, const HurrayTensor *tensor, const HurrayAllocator *allocator, HurrayTensor **out,
                            HurrayError *error) {
    HryNativePlan *plan = &n->plan;
    HurrayStatus status = hry_native_plan(hry_tensor_descriptor(tensor), plan, error);
    if (status != HURRAY_OK) return status;
    if (hry_tensor_buffer_count(tensor) != 1)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "buffers", HRY_NO_OFFSET, "the tensor does not have the one buffer of its blocks");
    const HurrayBufferInfo *from = hry_buffer_info(hry_tensor_buffer(tensor, 0));
    if (from->device_tag != HURRAY_DEVICE_CPU)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "device_tag", HRY_NO_OFFSET, "the tensor is not in host memory");
    status = describe(plan, hry_tensor_descriptor(tensor), allocator, &n->descriptor, error);
    uint8_t *bytes[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < plan->count && status == HURRAY_OK; i++) {
        bytes[i] = make_buffer(n, i, allocator, error);
        if (!bytes[i]) status = error->code;
    }
    if (status == HURRAY_OK) status = hry_native_convert(plan->native, plan->type, from->data, plan->blocks, bytes[0], bytes[1], 0, error);
    if (status != HURRAY_OK) return status;
    if (bytes[2]) hry_native_buffer(plan, 2, from->data, 0, plan->blocks, bytes[2], error);
    return hry_tensor_assemble(n->descriptor, n->buffers, plan->count, allocator, out, error);
}

HurrayStatus hurray_descriptor_from_ggml(const HurrayDescriptor *blocks, const HurrayAllocator *allocator, HurrayDescriptor **out,
                                         HurrayError *error) {
    HurrayError own;
    HurrayAllocator resolved;
    HryNativePlan plan;
    HurrayDescriptor *made = NULL;
    hry_error_clear(&own);
    if (!blocks || !out) {
        hry_fail(&own, HURRAY_ERR_NULL_POINTER, !blocks ? "blocks" : "out", HRY_NO_OFFSET,
                 "hurray_descriptor_from_ggml needs a descriptor and a result");
        return hry_error_export(error, &own);
    }
    HurrayStatus status = hry_alloc_resolve(allocator, &resolved, &own);
    if (status == HURRAY_OK) status = hry_native_plan(blocks, &plan, &own);
    if (status == HURRAY_OK) status = describe(&plan, blocks, &resolved, &made, &own);
    if (status != HURRAY_OK) return hry_error_export(error, &own);
    *out = made;
    return HURRAY_OK;
}

HurrayStatus hurray_tensor_from_ggml(const HurrayTensor *blocks, const HurrayAllocator *allocator, HurrayTensor **out, HurrayError *error) {
    HurrayError own;
    HurrayAllocator resolved;
    HurrayTensor *made = NULL;
    hry_error_clear(&own);
    if (!blocks || !out) {
        hry_fail(&own, HURRAY_ERR_NULL_POINTER, !blocks ? "blocks" : "out", HRY_NO_OFFSET,
                 "hurray_tensor_from_ggml needs a tensor and a result");
        return hry_error_export(error, &own);
    }
    HurrayStatus status = hry_alloc_resolve(allocator, &resolved, &own);
    if (status != HURRAY_OK) return hry_error_export(error, &own);
    Native n;
    memset(&n, 0, sizeof n);
    status = convert(&n, blocks, &resolved, &made, &own);
    if (status == HURRAY_OK) {
        *out = made;
        return HURRAY_OK;
    }
    for (uint32_t i = 0; i < 3; i++)
        if (n.buffers[i]) hurray_buffer_destroy(n.buffers[i]);
    hry_descriptor_unref(n.descriptor);
    return hry_error_export(error, &own);
}
