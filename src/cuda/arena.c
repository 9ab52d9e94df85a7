#include "cuda/arena.h"

#include <string.h>

#include "base/checked.h"

#define PAGE UINT64_C(4096)

static int ask_runtime(HryCudaDevice *device, HryCudaPieceKind kind, uint64_t bytes, void **out, const char **call) {
    const HryCudaApi *api = device->api;
    size_t size;
    *call = kind == HRY_CUDA_PIECE_MANAGED ? "cudaMallocManaged" : kind == HRY_CUDA_PIECE_PINNED ? "cudaHostAlloc" : "cudaMalloc";
    if (!hry_to_size(bytes, &size)) return HRY_CUDA_OUT_OF_MEMORY;
    return kind == HRY_CUDA_PIECE_MANAGED ? api->malloc_managed(out, size) : kind == HRY_CUDA_PIECE_PINNED ? api->host_alloc(out, size) : api->malloc_device(out, size);
}

static HurrayStatus fail_refused(HryCudaDevice *device, int code, const char *call, uint64_t need, HurrayError *error) {
    size_t free_bytes = 0, total = 0;
    HurrayStatus status = hry_cuda_fail(device, code, call, error);
    if (status != HURRAY_ERR_NO_MEMORY) return status;
    int again = device->api->mem_get_info(&free_bytes, &total);
    if (again != HRY_CUDA_SUCCESS) hry_cuda_clear(device, again);
    hry_fail(error, HURRAY_ERR_NO_MEMORY, "device", HRY_NO_OFFSET, "%s of %llu bytes was refused on cuda:%d \"%s\": %llu of %llu bytes are free; load less, or to another device",
             call, (unsigned long long)need, (int)device->index, device->name, (unsigned long long)free_bytes, (unsigned long long)total);
    error->device_error = code;
    return error->code;
}

/* Never more managed memory than the device has free: it could hang the device. Guard entered. */
static HurrayStatus check_managed(HryCudaDevice *device, uint64_t bytes, HurrayError *error) {
    size_t free_bytes = 0, total = 0;
    int managed = 0, code = device->api->device_get_attribute(&managed, HRY_CUDA_ATTRIBUTE_MANAGED_MEMORY, device->index);
    if (code != HRY_CUDA_SUCCESS) return hry_cuda_fail(device, code, "cudaDeviceGetAttribute", error);
    if (!managed) return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "memory_class", HRY_NO_OFFSET, "cuda:%d has no managed memory; ask for the class standard", (int)device->index);
    code = device->api->mem_get_info(&free_bytes, &total);
    if (code != HRY_CUDA_SUCCESS) return hry_cuda_fail(device, code, "cudaMemGetInfo", error);
    if (bytes <= free_bytes) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_NO_MEMORY, "memory_class", HRY_NO_OFFSET, "%llu bytes of managed memory were asked for, %zu are free on cuda:%d", (unsigned long long)bytes,
                    free_bytes, (int)device->index);
}

static HurrayStatus from_runtime(HryCudaPiece *piece, uint64_t need, uint64_t wanted, HurrayError *error) {
    HryCudaGuard guard;
    HurrayStatus status = HURRAY_OK;
    const char *call;
    int code;
    if (!hry_cuda_enter(piece->device, &guard)) return hry_cuda_fail_lost(piece->device, error);
    if (piece->kind == HRY_CUDA_PIECE_MANAGED) status = check_managed(piece->device, need, error);
    while (status == HURRAY_OK) {
        code = ask_runtime(piece->device, piece->kind, wanted, &piece->memory, &call);
        if (code == HRY_CUDA_SUCCESS) break;
        piece->memory = NULL;
        if (code != HRY_CUDA_OUT_OF_MEMORY || wanted == need) {
            status = fail_refused(piece->device, code, call, wanted, error);
        } else {
            hry_cuda_clear(piece->device, code);
            wanted = wanted / 2 > need ? wanted / 2 : need;
        }
    }
    hry_cuda_leave(piece->device, &guard);
    piece->bytes = wanted;
    return status;
}

static HurrayStatus from_pool(HryCudaPiece *piece, uint64_t need, void *stream, HurrayError *error) {
    HurrayStatus status = piece->pool.allocate(piece->pool.ctx, HURRAY_DEVICE_CUDA, piece->device->index, need, (uint32_t)PAGE, stream, &piece->memory);
    piece->bytes = need;
    if (status != HURRAY_OK) return hry_fail_callback(error, status, HURRAY_ERR_DEVICE, "device memory allocate");
    if (piece->memory) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_NO_MEMORY, "device_memory", HRY_NO_OFFSET, "the caller's device memory gave NULL for %llu bytes", (unsigned long long)need);
}

static void give_back(HryCudaPiece *piece) {
    HryCudaGuard guard;
    const HryCudaApi *api = piece->device->api;
    if (!piece->memory || piece->kind == HRY_CUDA_PIECE_LENT) return;
    if (piece->kind == HRY_CUDA_PIECE_POOL) {
        if (piece->pool.deallocate) piece->pool.deallocate(piece->pool.ctx, HURRAY_DEVICE_CUDA, piece->device->index, piece->memory, piece->bytes);
    } else if (hry_cuda_enter(piece->device, &guard)) {
        int code = piece->kind == HRY_CUDA_PIECE_PINNED ? api->host_free(piece->memory) : api->free_device(piece->memory);
        if (code != HRY_CUDA_SUCCESS) hry_cuda_clear(piece->device, code);
        hry_cuda_leave(piece->device, &guard);
    }
}

static void drop(HryCudaPiece *piece) {
    HurrayAllocator allocator = piece->allocator;
    for (size_t i = 0; i < piece->stripe_count; i++) hry_cuda_mark_unref(piece->stripes[i].mark);
    give_back(piece);
    hry_free_array(&allocator, piece->stripes, piece->stripe_count, sizeof *piece->stripes);
    hry_cuda_device_unref(piece->device);
    hry_free(&allocator, piece, sizeof *piece);
}

static HurrayStatus make_stripes(HryCudaPiece *piece, uint64_t stripe_bytes, HurrayError *error) {
    size_t count = (size_t)hry_div_up(piece->size, stripe_bytes);
    piece->stripes = hry_alloc_array(&piece->allocator, count, sizeof *piece->stripes);
    if (!piece->stripes) return hry_fail_memory(error, "the stripes of device memory", count * sizeof *piece->stripes);
    piece->stripe_count = count;
    for (size_t i = 0; i < count; i++) {
        piece->stripes[i].piece = piece;
        piece->stripes[i].begin = i * stripe_bytes;
        piece->stripes[i].size = stripe_bytes;
    }
    return HURRAY_OK;
}

HurrayStatus hry_cuda_piece_new(HryCudaDevice *device, const HryCudaPieceWish *wish, HryCudaPiece **out, HurrayError *error) {
    uint64_t need, wanted;
    HryCudaPiece *piece = hry_alloc(&device->allocator, sizeof *piece);
    if (!piece) return hry_fail_memory(error, "device memory's record", sizeof *piece);
    piece->allocator = device->allocator;
    piece->device = hry_cuda_device_ref(device);
    piece->kind = wish->kind;
    if (wish->pool) piece->pool = *wish->pool;
    atomic_init(&piece->references, 1);
    /* What the runtime gives is aligned to 256 bytes: a page more, so that it can begin at one. */
    bool lent = wish->kind == HRY_CUDA_PIECE_LENT, padded = !lent && wish->kind != HRY_CUDA_PIECE_POOL;
    HurrayStatus status = HURRAY_OK;
    if (!hry_add_u64(wish->need, padded ? PAGE : 0, &need) || !hry_add_u64(wish->wanted, padded ? PAGE : 0, &wanted))
        status = hry_fail(error, HURRAY_ERR_NO_MEMORY, "device", HRY_NO_OFFSET, "%llu bytes are more than any device has", (unsigned long long)wish->need);
    else if (lent) piece->memory = wish->lent, piece->bytes = need;
    else if (wish->kind == HRY_CUDA_PIECE_POOL) status = from_pool(piece, need, wish->stream, error);
    else status = from_runtime(piece, need, wanted > need ? wanted : need, error);
    if (status == HURRAY_OK) {
        uintptr_t at = (uintptr_t)piece->memory, page = padded ? (at + PAGE - 1) & ~(uintptr_t)(PAGE - 1) : at;
        piece->base = (uint8_t *)piece->memory + (page - at);
        piece->size = piece->bytes - (page - at);
        if (wish->stripe_bytes) status = make_stripes(piece, wish->stripe_bytes, error);
    }
    if (status != HURRAY_OK) {
        drop(piece);
        return status;
    }
    *out = piece;
    return HURRAY_OK;
}

HryCudaPiece *hry_cuda_piece_ref(HryCudaPiece *piece) {
    atomic_fetch_add_explicit(&piece->references, 1, memory_order_relaxed);
    return piece;
}

void hry_cuda_piece_unref(HryCudaPiece *piece) {
    if (piece && atomic_fetch_sub_explicit(&piece->references, 1, memory_order_acq_rel) == 1) drop(piece);
}

/* Bytes before the first of a buffer belong to nobody: in stripes that hold nothing else of it they count as filled at once. */
static void count_hole(HryCudaPiece *piece, uint64_t hole, uint64_t begin) {
    if (!piece->stripes) return;
    uint64_t stripe = piece->stripes[0].size, first_of_own = begin / stripe * stripe;
    while (hole < first_of_own) {
        HryCudaStripe *at = hry_cuda_stripe_at(piece, hole);
        uint64_t end = at->begin + at->size < first_of_own ? at->begin + at->size : first_of_own;
        at->filled += end - hole;
        hole = end;
    }
}

bool hry_cuda_piece_cut(HryCudaPiece *piece, uint64_t size, uint64_t alignment, uint64_t *begin, uint64_t *hole) {
    uint64_t at = (uint64_t)(uintptr_t)piece->base, place, end;
    if (piece->closed || !hry_align_up(at + piece->used, alignment, &place)) return false;
    place -= at;
    if (!hry_add_u64(place, size, &end) || end > piece->size) return false;
    *begin = place;
    *hole = piece->used;
    count_hole(piece, *hole, place);
    piece->used = end;
    return true;
}

bool hry_cuda_stripe_is_full(const HryCudaStripe *stripe) {
    const HryCudaPiece *piece = stripe->piece;
    uint64_t end = stripe->begin + stripe->size;
    if (piece->used < end && !piece->closed) return false;
    return stripe->filled >= (piece->used < end ? piece->used : end) - stripe->begin;
}
