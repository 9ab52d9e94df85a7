#include "cpu/transport.h"

#include <string.h>

#include "base/checked.h"

typedef struct Memory {
    HryMapping *mapping;
    char *path; /* for the loader; NULL: none */
    size_t path_size;
    size_t position; /* of read */
} Memory;

static HurrayStatus memory_read_at(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *out_filled) {
    const Memory *memory = ctx;
    size_t size = memory->mapping->len, left = offset < size ? size - (size_t)offset : 0;
    *out_filled = len < left ? len : left;
    if (*out_filled) memcpy(dst, memory->mapping->base + offset, *out_filled);
    return HURRAY_OK;
}

static HurrayStatus memory_read(void *ctx, uint8_t *dst, size_t len, size_t *out_filled) {
    Memory *memory = ctx;
    memory_read_at(ctx, memory->position, dst, len, out_filled);
    memory->position += *out_filled;
    return HURRAY_OK;
}

static HurrayStatus memory_size(void *ctx, uint64_t *out_size) {
    const Memory *memory = ctx;
    *out_size = memory->mapping->len;
    return HURRAY_OK;
}

static void memory_release(void *ctx) {
    Memory *memory = ctx;
    HryMapping *mapping = memory->mapping;
    hry_free(&mapping->allocator, memory->path, memory->path_size);
    hry_free(&mapping->allocator, memory, sizeof *memory);
    hry_mapping_drop(mapping);
}

bool hry_transport_mapping_access(const HurrayTransport *transport, HryTransportAccess *out) {
    if (transport->release != memory_release) return false;
    const Memory *memory = transport->ctx;
    out->kind = HRY_TRANSPORT_MAPPING;
    out->mapping = memory->mapping;
    out->path = memory->path;
    return true;
}

HurrayStatus hry_transport_over_mapping(HryMapping *mapping, const char *path, HurrayTransport *out, HurrayError *error) {
    Memory *memory = hry_alloc(&mapping->allocator, sizeof *memory);
    if (!memory) return hry_fail_memory(error, "a transport", sizeof *memory);
    if (path) {
        memory->path_size = strlen(path) + 1;
        memory->path = hry_alloc_raw(&mapping->allocator, memory->path_size);
        if (!memory->path) {
            hry_free(&mapping->allocator, memory, sizeof *memory);
            return hry_fail_memory(error, "a path", strlen(path) + 1);
        }
        memcpy(memory->path, path, memory->path_size);
    }
    memory->mapping = mapping;
    *out = (HurrayTransport){.ctx = memory,
                             .read = memory_read,
                             .read_at = memory_read_at,
                             .size = memory_size,
                             .release = memory_release,
                             .struct_size = sizeof *out,
                             .flags = HURRAY_TRANSPORT_CONCURRENT};
    return HURRAY_OK;
}

HurrayStatus hurray_transport_memory(const void *data, size_t len, HurrayReleaseCallback release, void *release_context,
                                     const HurrayTransportOptions *user, HurrayTransport *out, HurrayError *error) {
    HurrayError local;
    HurrayTransportOptions options;
    HurrayAllocator allocator;
    HryMapping *mapping;
    if (!out || (!data && len)) return hry_fail_null(error, "out or data");
    HurrayStatus status = hry_transport_options(user, 0, &options, &allocator, &local);
    if (status == HURRAY_OK) status = hry_mapping_memory(data, len, release, release_context, &allocator, &mapping, &local);
    if (status != HURRAY_OK) return hry_error_export(error, &local);
    status = hry_transport_over_mapping(mapping, NULL, out, &local);
    if (status == HURRAY_OK) return HURRAY_OK;
    mapping->release = NULL; /* on failure the memory stays with the caller */
    hry_mapping_drop(mapping);
    return hry_error_export(error, &local);
}
