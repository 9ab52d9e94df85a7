/* A piece of GGML blocks in the format's own quantization, from as many blocks as it needs, some at a time. */
#include <string.h>

#include "base/checked.h"
#include "import/native_tensor.h"
#include "loader/loader.h"

#define BLOCKS_BYTES (UINT64_C(128) << 10) /* read at a time */

/* Blocks first .. first + count - 1, and of what they make the bytes that lie in the piece: room holds the blocks, and behind them that. */
static HurrayStatus convert_blocks(HurrayLoader *loader, uint64_t i, const HryNativePlan *plan, uint32_t buffer, uint64_t first,
                                   uint64_t count, uint8_t *room, uint64_t offset, uint8_t *dst, size_t len, HurrayError *error) {
    uint64_t each = hry_native_bytes(plan, buffer), taken = count * plan->type->block_bytes, begin = first * each, skip, end;
    uint8_t *made = room + taken;
    HurrayStatus status = HURRAY_OK;
    if (buffer < 2) status = hry_loader_read_part(loader, i, 0, first * plan->type->block_bytes, room, (size_t)taken, true, error);
    if (status == HURRAY_OK) status = hry_native_buffer(plan, buffer, room, first, count, made, error);
    if (status != HURRAY_OK) return status;
    skip = begin < offset ? offset - begin : 0;
    end = count * each < offset + len - begin ? count * each : offset + len - begin;
    memcpy(dst + (begin + skip - offset), made + skip, (size_t)(end - skip));
    return HURRAY_OK;
}

static HurrayStatus read_native(HurrayLoader *loader, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len,
                                HurrayError *error) {
    HurrayDescriptor *descriptor;
    HryNativePlan plan;
    if (i >= loader->tensor_count)
        return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "tensor", HRY_NO_OFFSET, "tensor %llu of %llu", (unsigned long long)i,
                        (unsigned long long)loader->tensor_count);
    HurrayStatus status = hry_loader_describe(loader, i, &descriptor, error);
    if (status == HURRAY_OK) status = hry_native_plan(descriptor, &plan, error);
    if (status != HURRAY_OK) return hry_loader_blame(loader, i, error);
    if (buffer >= plan.count)
        hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "buffer", HRY_NO_OFFSET, "buffer %u of %u", buffer, plan.count);
    else if (!hry_range_inside(offset, len, plan.sizes[buffer]))
        hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "offset", HRY_NO_OFFSET,
                 "%zu bytes at %llu do not lie in buffer %u, which has %llu", len, (unsigned long long)offset, buffer,
                 (unsigned long long)plan.sizes[buffer]);
    if (error->code != HURRAY_OK) return hry_loader_blame(loader, i, error);
    if (len == 0) return HURRAY_OK;
    uint64_t each = hry_native_bytes(&plan, buffer), end = hry_div_up(offset + len, each), first = offset / each;
    uint64_t most = BLOCKS_BYTES / plan.type->block_bytes;
    if (most > end - first) most = end - first;
    size_t size = (size_t)(most * (plan.type->block_bytes + each));
    uint8_t *room = hry_alloc_raw(&loader->allocator, size);
    if (!room) return hry_fail_memory(error, "a piece of a tensor", size);
    for (uint64_t n; first < end && status == HURRAY_OK; first += n) {
        n = most < end - first ? most : end - first;
        status = convert_blocks(loader, i, &plan, buffer, first, n, room, offset, dst, len, error);
    }
    hry_free(&loader->allocator, room, size);
    return status == HURRAY_OK ? status : hry_loader_blame(loader, i, error);
}

HurrayStatus hurray_loader_read_native(HurrayLoader *loader, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len) {
    if (!loader || (!dst && len)) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    status = hry_loader_check_usable(loader);
    if (status == HURRAY_OK) status = read_native(loader, i, buffer, offset, dst, len, &loader->handle.error);
    return hry_loader_leave(loader, status);
}
