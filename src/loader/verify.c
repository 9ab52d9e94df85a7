/* Looking at everything that opening and loading do not look at. What is wrong with the input is a finding, told and passed over; what
 * keeps it from being looked at (memory, a failed read, cancel) ends the check. */
#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "driver/transport_call.h"
#include "format/container.h"
#include "format/crc32c.h"
#include "format/verify.h"
#include "loader/loader.h"

#define PIECE_BYTES ((size_t)1 << 20)

typedef struct Check {
    HurrayLoader *loader;
    uint32_t what;
    HurrayStatus (*found)(void *ctx, const HurrayError *finding);
    void *ctx;
    HurrayError *error;
    uint8_t *piece;    /* PIECE_BYTES */
    uint64_t tensor;   /* being looked at */
    bool unread;       /* its contents cannot be had, which was told */
    HurrayError first; /* finding */
} Check;

/* The caller goes on or not. */
static HurrayStatus tell(Check *check, const HurrayError *finding) {
    if (check->first.code == HURRAY_OK) check->first = *finding;
    if (!check->found) return HURRAY_OK;
    HurrayStatus status = check->found(check->ctx, finding);
    return status == HURRAY_OK ? status : hry_fail_callback(check->error, status, HURRAY_ERR_TRANSPORT, "found");
}

/* A failure of looking at one tensor: told if it is about the tensor. */
static HurrayStatus judge(Check *check, HurrayStatus status, const HurrayError *failure) {
    if (status == HURRAY_OK) return status;
    if (hry_is_fault(status)) return tell(check, failure);
    *check->error = *failure;
    return status;
}

static HurrayStatus tell_rule(void *ctx, const HurrayError *finding) {
    Check *check = ctx;
    HurrayError blamed = *finding;
    hry_loader_blame(check->loader, check->tensor, &blamed);
    return tell(check, &blamed);
}

static HurrayStatus look_for_cancel(Check *check) {
    return hry_loader_is_cancelled(check->loader) ? hry_fail_cancelled(check->error) : HURRAY_OK;
}

/* The rules that need contents; for most tensors nothing has to be read. */
static HurrayStatus check_data(Check *check, uint64_t i, HurrayDescriptor *descriptor) {
    const HurrayAllocator *allocator = &check->loader->allocator;
    HryBytes ranges[UINT8_MAX];
    uint8_t *memory[UINT8_MAX] = {NULL};
    HurrayError failure;
    HurrayStatus status = HURRAY_OK;
    uint32_t k = 0;
    hry_error_clear(&failure);
    for (; k < descriptor->buffer_count && status == HURRAY_OK; k++) {
        uint64_t offset, len;
        hry_verify_range(descriptor, k, &offset, &len);
        ranges[k] = (HryBytes){NULL, len};
        if (len == 0) continue;
        memory[k] = len <= SIZE_MAX ? hry_alloc_raw(allocator, (size_t)len) : NULL;
        if (!memory[k])
            status = hry_fail_memory(&failure, "checking a tensor", len);
        else
            status = hry_loader_read_piece(check->loader, i, descriptor, k, offset, memory[k], (size_t)len, &failure);
        ranges[k].data = memory[k];
    }
    bool read = status == HURRAY_OK;
    check->tensor = i;
    if (read) status = hry_verify_tensor(descriptor, ranges, allocator, tell_rule, check, &failure);
    while (k-- > 0)
        if (memory[k]) hry_free(allocator, memory[k], (size_t)ranges[k].size);
    check->unread = !read;
    if (!read) return judge(check, status, &failure);
    if (status != HURRAY_OK && check->error->code == HURRAY_OK) *check->error = failure;
    return status;
}

/* Reads a whole buffer through; what reading itself checks (conversions, archive sums) is told, and *sum is made. */
static HurrayStatus read_through(Check *check, uint64_t i, HurrayDescriptor *descriptor, uint32_t k, uint32_t *sum, bool *whole) {
    uint64_t size = descriptor->buffers[k].byte_size;
    *sum = 0;
    *whole = false;
    for (uint64_t at = 0; at < size;) {
        HurrayError failure;
        size_t len = size - at < PIECE_BYTES ? (size_t)(size - at) : PIECE_BYTES;
        HurrayStatus status = look_for_cancel(check);
        if (status != HURRAY_OK) return status;
        hry_error_clear(&failure);
        status = hry_loader_read_piece(check->loader, i, descriptor, k, at, check->piece, len, &failure);
        if (status != HURRAY_OK) return judge(check, status, &failure);
        *sum = hry_crc32c(*sum, check->piece, len);
        at += len;
    }
    *whole = true;
    return HURRAY_OK;
}

static HurrayStatus check_sums(Check *check, uint64_t i, HurrayDescriptor *descriptor) {
    HryLoaderSource *source;
    const HryEntry *entry = hry_loader_entry(check->loader, i, &source);
    const HryCatalogue *catalogue = source->model->catalogue;
    for (uint32_t k = 0; k < descriptor->buffer_count; k++) {
        uint32_t stored = 0, sum;
        bool whole, known = (check->what & HURRAY_CHECK_SUMS) &&
                            hry_catalogue_sum(catalogue, (uint64_t)(entry - catalogue->entries), descriptor, k, &stored);
        if (!known && !(k == 0 && entry->side)) continue;
        HurrayStatus status = read_through(check, i, descriptor, k, &sum, &whole);
        if (status != HURRAY_OK) return status;
        if (!known || !whole || sum == stored) continue;
        HurrayError finding;
        hry_fail(&finding, HURRAY_ERR_CHECKSUM, NULL, HRY_NO_OFFSET,
                 "the bytes of buffer %u have CRC-32C %08X, stored is %08X: they are damaged, or the file's metadata was copied from "
                 "another; get the file again",
                 k, sum, stored);
        finding.buffer_index = k;
        hry_loader_blame(check->loader, i, &finding);
        status = tell(check, &finding);
        if (status != HURRAY_OK) return status;
    }
    return HURRAY_OK;
}

static HurrayStatus check_tensor(Check *check, uint64_t i) {
    HurrayDescriptor *descriptor;
    HurrayError failure;
    hry_error_clear(&failure);
    HurrayStatus status = hry_loader_describe(check->loader, i, &descriptor, &failure);
    if (status != HURRAY_OK) return judge(check, status, &failure);
    if (hry_descriptor_is_head(descriptor)) {
        uint64_t end = hry_loader_family_end(check->loader, i);
        HurrayDescriptor *member;
        for (uint64_t m = i + 1; m < end; m++)
            if ((status = hry_loader_describe(check->loader, m, &member, &failure)) != HURRAY_OK) break; /* told in its own turn */
        if (status == HURRAY_OK)
            status = hry_loader_check_composite(check->loader, i, &failure);
        else if (hry_is_fault(status))
            status = HURRAY_OK;
        if (status != HURRAY_OK && (status = judge(check, status, &failure)) != HURRAY_OK) return status;
    }
    check->unread = false;
    if (check->what & HURRAY_CHECK_DATA) status = check_data(check, i, descriptor);
    if (status == HURRAY_OK && !check->unread && (check->what & (HURRAY_CHECK_DATA | HURRAY_CHECK_SUMS)))
        status = check_sums(check, i, descriptor);
    return status;
}

static const uint8_t *first_not_zero(const uint8_t *bytes, size_t len) {
    if (len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0)) return NULL;
    while (*bytes == 0) bytes++;
    return bytes;
}

/* Bytes between two parts of a file: zero. One finding each. */
static HurrayStatus check_gap(Check *check, uint32_t s, uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to;) {
        HurrayError failure;
        size_t len = to - at < PIECE_BYTES ? (size_t)(to - at) : PIECE_BYTES;
        HurrayStatus status = look_for_cancel(check);
        if (status != HURRAY_OK) return status;
        hry_error_clear(&failure);
        status = hry_transport_read_exactly(&check->loader->sources[s].model->transport, at, check->piece, len, &failure);
        const uint8_t *bad = status == HURRAY_OK ? first_not_zero(check->piece, len) : NULL;
        if (bad)
            status = hry_fail(&failure, HURRAY_ERR_INVALID_DATA, "padding", at + (uint64_t)(bad - check->piece),
                              "byte 0x%02x in the padding at bytes %llu to %llu, expected zeros only", *bad, (unsigned long long)from,
                              (unsigned long long)to);
        if (status != HURRAY_OK) {
            hry_loader_blame_source(check->loader, s, &failure);
            return judge(check, status, &failure);
        }
        at += len;
    }
    return HURRAY_OK;
}

typedef struct Walk {
    Check *check;
    uint32_t source;
    uint64_t at; /* where the last part ended */
} Walk;

static HurrayStatus pass_part(Walk *walk, uint64_t offset, uint64_t len) {
    HurrayStatus status = offset > walk->at ? check_gap(walk->check, walk->source, walk->at, offset) : HURRAY_OK;
    if (offset + len > walk->at) walk->at = offset + len; /* inside the file: checked when it was opened */
    return status;
}

static HurrayStatus pass_tensor(Walk *walk, uint64_t i) {
    HurrayLoader *loader = walk->check->loader;
    const HryEntry *entry = hry_loader_entry(loader, i, NULL);
    HurrayDescriptor *descriptor;
    HurrayError failure;
    HurrayStatus status = pass_part(walk, entry->descriptor_offset, entry->descriptor_length);
    if (status != HURRAY_OK) return status;
    HurrayStatus known = hry_loader_describe(loader, i, &descriptor, &failure);
    if (known != HURRAY_OK && !hry_is_fault(known)) {
        *walk->check->error = failure;
        return known;
    }
    if (known != HURRAY_OK) return entry->data_length ? pass_part(walk, entry->data_offset, entry->data_length) : HURRAY_OK;
    for (uint32_t k = 0; status == HURRAY_OK && k < descriptor->buffer_count; k++)
        status = pass_part(walk, hry_loader_buffer_offset(loader, i, descriptor, k), descriptor->buffers[k].byte_size);
    return status;
}

static HurrayStatus check_padding(Check *check, uint32_t s) {
    const HryLoaderSource *source = &check->loader->sources[s];
    uint64_t size = source->model->catalogue->byte_size;
    uint8_t trailer[HRY_TRAILER_SIZE];
    Walk walk = {check, s, HRY_HEADER_SIZE};
    HurrayError failure;
    HurrayStatus status = HURRAY_OK;
    if (source->model->catalogue->format != HURRAY_FORMAT_HRRY) return HURRAY_OK;
    hry_error_clear(&failure);
    if (hry_transport_read_exactly(&source->model->transport, size - sizeof trailer, trailer, sizeof trailer, &failure) != HURRAY_OK) {
        hry_loader_blame_source(check->loader, s, &failure);
        return judge(check, failure.code, &failure);
    }
    for (uint64_t i = source->first; status == HURRAY_OK && i < source->first + source->count; i++) status = pass_tensor(&walk, i);
    uint64_t kv_offset = hry_load_u64(trailer + 16);
    if (status == HURRAY_OK && kv_offset && hry_range_inside(kv_offset, hry_load_u32(trailer + 24), size))
        status = pass_part(&walk, kv_offset, hry_load_u32(trailer + 24));
    uint64_t index_offset = hry_load_u64(trailer), index_length = hry_load_u64(trailer + 8);
    if (status == HURRAY_OK && hry_range_inside(index_offset, index_length, size)) status = pass_part(&walk, index_offset, index_length);
    return status == HURRAY_OK ? pass_part(&walk, size - sizeof trailer, sizeof trailer) : status;
}

static HurrayStatus check_source(Check *check, uint32_t s) {
    HurrayLoader *loader = check->loader;
    HryLoaderSource *source = &loader->sources[s];
    HurrayStatus status = hry_loader_know_family(loader, source, check->error);
    if (status == HURRAY_OK) status = hry_loader_describe_many(loader, source->first, source->count, NULL, true, check->error);
    for (uint64_t i = source->first; status == HURRAY_OK && i < source->first + source->count; i++) {
        status = look_for_cancel(check);
        if (status == HURRAY_OK) status = check_tensor(check, i);
    }
    return status == HURRAY_OK && (check->what & HURRAY_CHECK_PADDING) ? check_padding(check, s) : status;
}

static HurrayStatus verify(HurrayLoader *loader, Check *check) {
    HurrayStatus status = HURRAY_OK;
    if (check->what & ~(HURRAY_CHECK_PADDING | HURRAY_CHECK_DATA | HURRAY_CHECK_SUMS))
        return hry_fail(check->error, HURRAY_ERR_UNSUPPORTED, "what", HRY_NO_OFFSET,
                        "what 0x%x holds a bit that this release does not know", check->what);
    check->piece = hry_alloc_raw(&loader->allocator, PIECE_BYTES);
    if (!check->piece) return hry_fail_memory(check->error, "checking", PIECE_BYTES);
    for (uint32_t s = 0; status == HURRAY_OK && s < loader->source_count; s++) status = check_source(check, s);
    hry_free(&loader->allocator, check->piece, PIECE_BYTES);
    hry_loader_close_reading(loader);
    if (status == HURRAY_OK && check->first.code != HURRAY_OK) {
        *check->error = check->first;
        status = check->first.code;
    }
    return status;
}

HurrayStatus hurray_loader_verify(HurrayLoader *loader, uint32_t what, HurrayStatus (*found)(void *ctx, const HurrayError *finding),
                                  void *ctx) {
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    Check check = {
        .first = {.code = HURRAY_OK}, .loader = loader, .what = what, .found = found, .ctx = ctx, .error = &loader->handle.error};
    status = hry_loader_check_usable(loader);
    return hry_loader_leave(loader, status == HURRAY_OK ? verify(loader, &check) : status);
}
