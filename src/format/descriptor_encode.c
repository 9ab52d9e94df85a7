#include "base/emit.h"
#include "format/descriptor.h"
#include "format/handle.h"
#include "format/layout.h"
#include "format/quant.h"
#include "format/sections.h"

/* Canonical: minor version 0, no byte behind what is known, meaningless fields 0. */
static void emit_descriptor(HryEmit *emit, const HurrayDescriptor *d, uint32_t length) {
    uint32_t flags = (uint32_t)d->has_quantization | (uint32_t)d->has_shard << 1 | (uint32_t)d->has_extension_type << 2 |
                     (uint32_t)d->has_statistics << 3 | (uint32_t)d->has_composite_member << 4;
    hry_emit_bytes(emit, "HRRY\1\0", 6);
    hry_emit_u32(emit, length);
    hry_emit_u32(emit, flags);
    hry_emit_u8(emit, d->element_type);
    hry_emit_u8(emit, d->layout_tag);
    hry_emit_u32(emit, d->rank);
    hry_emit_u64_array(emit, d->shape, d->rank);
    hry_emit_u64(emit, d->byte_offset);
    hry_layout_encode(emit, &d->layout, d->rank);
    hry_emit_u8(emit, (uint8_t)d->buffer_count);
    for (uint32_t i = 0; i < d->buffer_count; i++) hry_handle_encode(emit, &d->buffers[i]);
    if (d->has_quantization) hry_quant_encode(emit, &d->quantization);
    if (d->has_shard) hry_shard_encode(emit, &d->shard, d->rank);
    if (d->has_statistics) hry_statistics_encode(emit, &d->statistics);
    if (d->has_extension_type) hry_extension_encode(emit, &d->extension_type);
    if (d->has_composite_member) hry_member_encode(emit, &d->composite_member);
}

size_t hry_descriptor_encoded_size(const HurrayDescriptor *descriptor) {
    HryEmit emit = hry_emit(NULL, 0);
    emit_descriptor(&emit, descriptor, 0);
    return emit.overflow ? SIZE_MAX : emit.len;
}

void hry_descriptor_encode(const HurrayDescriptor *descriptor, uint8_t *dst) {
    size_t size = hry_descriptor_encoded_size(descriptor);
    HryEmit emit = hry_emit(dst, size);
    emit_descriptor(&emit, descriptor, (uint32_t)size);
}
