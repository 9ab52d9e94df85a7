#include <string.h>

#include "base/checked.h"
#include "format/descriptor_parts.h"
#include "format/handle.h"

/* Room is taken twice by the same code: first counted (base NULL), then filled. */
typedef struct Block {
    uint8_t *base;
    size_t used;
    bool overflow;
} Block;

/* A copy of `size` bytes in the block, 8-aligned; NULL for no bytes and while counting. */
static void *put(Block *block, const void *bytes, size_t size) {
    uint64_t end, rounded;
    if (size == 0 || !bytes) return NULL;
    if (!hry_add_u64(block->used, size, &end) || !hry_align_up(end, 8, &rounded) || rounded > SIZE_MAX) {
        block->overflow = true;
        return NULL;
    }
    uint8_t *at = block->base ? block->base + block->used : NULL;
    if (at) memcpy(at, bytes, size);
    block->used = (size_t)rounded;
    return at;
}

static void put_layout(Block *block, const HurrayDescriptor *parts, HurrayLayout *to) {
    const HurrayLayout *from = &parts->layout;
    size_t wide = (size_t)parts->rank * 8, narrow = (size_t)parts->rank * 4;
    to->strides = put(block, from->strides, wide);
    to->bits = put(block, from->bits, narrow);
    to->mode_order = put(block, from->mode_order, narrow);
    to->private_data = put(block, from->private_data, from->private_len);
    HurrayTileLevel *tiles = put(block, from->tiles, from->tile_count * sizeof *tiles);
    to->tiles = tiles;
    for (uint32_t level = 0; level < from->tile_count; level++) {
        const HurrayTileLevel *tile = &from->tiles[level];
        const void *shape = put(block, tile->tile_shape, wide), *outer = put(block, tile->outer_strides, wide);
        const void *inner = put(block, tile->inner_strides, wide);
        if (!tiles) continue;
        tiles[level].tile_shape = shape;
        tiles[level].outer_strides = outer;
        tiles[level].inner_strides = inner;
    }
}

static void put_all(Block *block, const HurrayDescriptor *parts, HurrayDescriptor *to) {
    size_t wide = (size_t)parts->rank * 8;
    to->shape = put(block, parts->shape, wide);
    to->buffers = put(block, parts->buffers, parts->buffer_count * sizeof *parts->buffers);
    put_layout(block, parts, &to->layout);
    if (!parts->has_shard) return;
    to->shard.parent_shape = put(block, parts->shard.parent_shape, wide);
    to->shard.offset = put(block, parts->shard.offset, wide);
}

HurrayStatus hry_descriptor_place(const HurrayDescriptor *parts, const HurrayAllocator *allocator, HurrayDescriptor **out,
                                  HurrayError *error) {
    HurrayDescriptor counted; /* pointers of a count are NULL and of no use */
    Block block = {NULL, 0, false};
    put(&block, parts, sizeof *parts);
    put_all(&block, parts, &counted);
    HurrayDescriptor *made = block.overflow ? NULL : hry_alloc_raw(allocator, block.used);
    if (!made) return hry_fail_memory(error, "a descriptor", block.used);
    block = (Block){(uint8_t *)made, 0, false};
    put(&block, parts, sizeof *parts);
    put_all(&block, parts, made);
    made->allocator = *allocator;
    made->block_size = block.used;
    atomic_init(&made->references, 1);
    *out = made;
    return HURRAY_OK;
}

HurrayStatus hry_descriptor_with_buffers(const HurrayDescriptor *descriptor, const HurrayBufferHandle *handles,
                                         const HurrayAllocator *allocator, HurrayDescriptor **out, HurrayError *error) {
    HurrayDescriptor parts;
    memcpy(&parts, descriptor, sizeof parts);
    parts.buffers = handles;
    HurrayStatus status = hry_descriptor_check(&parts, &hry_places_none, 0, error);
    return status != HURRAY_OK ? status : hry_descriptor_place(&parts, allocator, out, error);
}

HurrayDescriptor *hry_descriptor_ref(HurrayDescriptor *descriptor) {
    atomic_fetch_add_explicit(&descriptor->references, 1, memory_order_relaxed);
    return descriptor;
}

void hry_descriptor_unref(HurrayDescriptor *descriptor) {
    if (!descriptor || atomic_fetch_sub_explicit(&descriptor->references, 1, memory_order_acq_rel) != 1) return;
    HurrayAllocator allocator = descriptor->allocator;
    hry_free(&allocator, descriptor, descriptor->block_size);
}

bool hry_descriptor_is_dynamic(const HurrayDescriptor *descriptor) {
    for (uint32_t k = 0; k < descriptor->rank; k++)
        if (descriptor->shape[k] == HURRAY_DYNAMIC_DIMENSION) return true;
    return false;
}

bool hry_descriptor_elements(const HurrayDescriptor *descriptor, uint64_t *out) {
    return !hry_descriptor_is_dynamic(descriptor) && hry_product_u64(descriptor->shape, descriptor->rank, out);
}
