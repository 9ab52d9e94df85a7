/* A piece of the dense view, from the bytes that it needs. */
#include "base/checked.h"
#include "format/dense.h"
#include "loader/loader.h"

#define PASSED_BYTES (UINT64_C(64) << 10)
#define ELEMENTS (UINT64_C(64) << 10) /* decoded at a time: whole bytes, whole blocks */

/* Bytes that only their sum needs. */
static HurrayStatus pass_over(HurrayLoader *loader, uint64_t i, uint32_t buffer, uint64_t from, uint64_t to, HurrayError *error) {
    HurrayStatus status = HURRAY_OK;
    if (loader->options.verify_data == HURRAY_VERIFY_NONE || from >= to) return HURRAY_OK;
    uint8_t *bytes = hry_alloc_raw(&loader->allocator, PASSED_BYTES);
    if (!bytes) return hry_fail_memory(error, "a piece of a buffer", PASSED_BYTES);
    for (uint64_t n; from < to && status == HURRAY_OK; from += n) {
        n = to - from < PASSED_BYTES ? to - from : PASSED_BYTES;
        status = hry_loader_read_part(loader, i, buffer, from, bytes, (size_t)n, true, error);
    }
    hry_free(&loader->allocator, bytes, PASSED_BYTES);
    return status;
}

/* Codes come in order, so their sum goes on from piece to piece; parameters are asked for again and again, and are checked at first. */
static HurrayStatus read_parts(HurrayLoader *loader, uint64_t i, const HurrayDescriptor *descriptor, const HryDenseWindow *window,
                               uint8_t *memory, HurrayError *error) {
    const HryWindowPart *codes = &window->parts[HRY_WINDOW_CODES];
    HurrayStatus status = HURRAY_OK;
    for (uint32_t k = 1; k < descriptor->buffer_count && window->first == 0 && status == HURRAY_OK; k++)
        status = pass_over(loader, i, k, 0, descriptor->buffers[k].byte_size, error);
    if (status == HURRAY_OK && window->first == 0) status = pass_over(loader, i, 0, 0, codes->offset, error);
    for (uint32_t p = 0; p < HRY_WINDOW_PARTS && status == HURRAY_OK; p++) {
        const HryWindowPart *part = &window->parts[p];
        status = hry_loader_read_part(loader, i, part->buffer, part->offset, memory, (size_t)part->len, p == HRY_WINDOW_CODES, error);
        memory += part->len;
    }
    if (status != HURRAY_OK || window->first + window->count < window->elements) return status;
    return pass_over(loader, i, 0, codes->offset + codes->len, descriptor->buffers[0].byte_size, error);
}

static HurrayStatus decode(const HurrayDescriptor *descriptor, const HryDenseWindow *window, const uint8_t *memory, uint8_t type, void *dst,
                           HurrayError *error) {
    const uint8_t *parts[HRY_WINDOW_PARTS];
    HryDense dense;
    for (uint32_t p = 0; p < HRY_WINDOW_PARTS; p++) {
        parts[p] = memory;
        memory += window->parts[p].len;
    }
    HurrayStatus status = hry_dense_open_window(&dense, descriptor, window, parts, type, error);
    return status == HURRAY_OK ? hry_dense_stretch(&dense, window->first, window->count, dst, error) : status;
}

static HurrayStatus read_window(HurrayLoader *loader, uint64_t i, const HurrayDescriptor *descriptor, const HryDenseWindow *window,
                                uint8_t type, void *dst, HurrayError *error) {
    uint64_t total = 0;
    size_t size;
    bool fits = true;
    for (uint32_t p = 0; p < HRY_WINDOW_PARTS && fits; p++) fits = hry_add_u64(total, window->parts[p].len, &total);
    uint8_t *memory = fits && hry_to_size(total, &size) ? hry_alloc_raw(&loader->allocator, size) : NULL;
    if (!memory) return hry_fail_memory(error, "a piece of a tensor", total);
    HurrayStatus status = read_parts(loader, i, descriptor, window, memory, error);
    if (status == HURRAY_OK) status = decode(descriptor, window, memory, type, dst, error);
    hry_free(&loader->allocator, memory, size);
    return status;
}

static HurrayStatus read_dense(HurrayLoader *loader, uint64_t i, uint8_t type, uint64_t first, uint64_t count, void *dst, size_t len,
                               HurrayError *error) {
    HurrayDescriptor *descriptor;
    HryDenseWindow window;
    uint8_t *out = dst;
    if (i >= loader->tensor_count)
        return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "tensor", HRY_NO_OFFSET, "tensor %llu of %llu", (unsigned long long)i,
                        (unsigned long long)loader->tensor_count);
    HurrayStatus status = hry_loader_describe(loader, i, &descriptor, error);
    if (status == HURRAY_OK) status = hry_dense_window(descriptor, type, first, count, &window, error);
    if (status != HURRAY_OK) return hry_loader_blame(loader, i, error);
    if (window.bytes > len) {
        hry_fail(error, HURRAY_ERR_BUFFER_TOO_SMALL, "len", HRY_NO_OFFSET, "room for %zu bytes, %llu are needed", len,
                 (unsigned long long)window.bytes);
        return hry_loader_blame(loader, i, error);
    }
    for (uint64_t n; count > 0 && status == HURRAY_OK; first += n, count -= n, out += window.bytes) {
        n = count < ELEMENTS ? count : ELEMENTS;
        status = hry_dense_window(descriptor, type, first, n, &window, error);
        if (status == HURRAY_OK) status = read_window(loader, i, descriptor, &window, type, out, error);
    }
    return status == HURRAY_OK ? status : hry_loader_blame(loader, i, error);
}

HurrayStatus hurray_loader_read_dense(HurrayLoader *loader, uint64_t i, uint8_t type, uint64_t first, uint64_t count, void *dst,
                                      size_t len) {
    if (!loader || (!dst && len)) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    status = hry_loader_check_usable(loader);
    if (status == HURRAY_OK) status = read_dense(loader, i, type, first, count, dst, len, &loader->handle.error);
    return hry_loader_leave(loader, status);
}
