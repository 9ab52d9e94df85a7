/* The whole tensor descriptor (docs/format.md section 1). Immutable once made, counted, one block of
 * memory, so it may be shared between a catalogue, tensors and threads. */
#ifndef HRY_FORMAT_DESCRIPTOR_H
#define HRY_FORMAT_DESCRIPTOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "hurray.h"

#define HRY_DESCRIPTOR_FIXED 20u  /* bytes of the fixed header */
#define HRY_DESCRIPTOR_PREFIX 10u /* bytes that tell the whole length */
#define HRY_MAX_TILE_LEVELS 8u
#define HRY_MAX_PLANNED (2u * HURRAY_MAX_RANK + 3u) /* CSF of the highest rank, scales, zero points */
#define HRY_DEFAULT_MAX_DESCRIPTOR (UINT64_C(16) << 20)

/* All pointers lead into the descriptor's own block. */
struct HurrayDescriptor {
    HurrayAllocator allocator;
    size_t block_size;
    atomic_uint references;
    uint64_t byte_offset;
    const uint64_t *shape; /* rank entries */
    uint32_t rank;
    uint32_t element_bits; /* width, of private types too */
    uint8_t element_type, layout_tag, version_minor;
    bool has_quantization, has_shard, has_statistics, has_extension_type, has_composite_member;
    uint32_t buffer_count;
    const HurrayBufferHandle *buffers;
    HurrayLayout layout; /* tag row-major etc.; always filled */
    HurrayQuantization quantization;
    HurrayShard shard;
    HurrayStatistics statistics;
    HurrayExtensionType extension_type;
    HurrayCompositeMember composite_member;
};

#define HRY_DECODE_NO_PRIVATE 1u    /* private tags are rejected */
#define HRY_DECODE_CROSS_MACHINE 2u /* a handle that is not producer-synced is INVALID_SYNC_MODE */

/* The first HRY_DESCRIPTOR_PREFIX bytes: checks magic and major version, gives descriptor_length (>= 20). */
HurrayStatus hry_descriptor_prefix(const void *bytes, size_t len, uint64_t offset, uint32_t *length, HurrayError *error);

/* Decodes the descriptor at bytes[0]; *used is descriptor_length. Every rule that needs no data is checked.
 * offset: of bytes[0] in the source, for messages. */
HurrayStatus hry_descriptor_decode(const void *bytes, size_t len, uint64_t offset, uint32_t flags, const HurrayAllocator *allocator,
                                   size_t *used, HurrayDescriptor **out, HurrayError *error);

/* From a spec whose structs are already in their latest form; checks every rule, a writer's too, and names the field.
 * buffers NULL: those of hry_descriptor_plan. */
HurrayStatus hry_descriptor_build(const HurrayDescriptorSpec *spec, const HurrayAllocator *allocator, HurrayDescriptor **out,
                                  HurrayError *error);

/* The buffers that the spec implies, whatever its own are: CPU, alignment 64. handles: room for HRY_MAX_PLANNED.
 * INVALID_ARGUMENT where only the data can tell. */
HurrayStatus hry_descriptor_plan(const HurrayDescriptorSpec *spec, HurrayBufferHandle *handles, uint32_t *count, HurrayError *error);

/* Canonical bytes. hry_descriptor_encoded_size never fails (at most 4 GiB by construction). */
size_t hry_descriptor_encoded_size(const HurrayDescriptor *descriptor);
void hry_descriptor_encode(const HurrayDescriptor *descriptor, uint8_t *dst); /* exactly encoded_size bytes */

/* What a writer refuses beyond what a reader rejects (docs/format.md: set statistics outside their range, aliasing inner tiles, ...). */
HurrayStatus hry_descriptor_check_writable(const HurrayDescriptor *descriptor, HurrayError *error);

/* A copy whose buffers declare another place; used for tensors that were delivered elsewhere. handles: buffer_count of
 * them, which keep every rule. */
HurrayStatus hry_descriptor_with_buffers(const HurrayDescriptor *descriptor, const HurrayBufferHandle *handles,
                                         const HurrayAllocator *allocator, HurrayDescriptor **out, HurrayError *error);

HurrayDescriptor *hry_descriptor_ref(HurrayDescriptor *descriptor);
void hry_descriptor_unref(HurrayDescriptor *descriptor); /* NULL does nothing */

/* Product of the shape; false: dynamic, or beyond 64 bits. */
bool hry_descriptor_elements(const HurrayDescriptor *descriptor, uint64_t *out);
bool hry_descriptor_is_dynamic(const HurrayDescriptor *descriptor);
static inline bool hry_descriptor_is_head(const HurrayDescriptor *descriptor) { return descriptor->layout_tag == HURRAY_LAYOUT_COMPOSITE; }

#endif
