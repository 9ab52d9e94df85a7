/* The public calls on whole descriptors and on their sections. By single field: descriptor_fields.c. */
#include <string.h>

#include "base/options.h"
#include "format/descriptor.h"

static HurrayStatus null_argument(HurrayError *error, const char *name) {
    return hry_fail(error, HURRAY_ERR_NULL_POINTER, name, HRY_NO_OFFSET, "%s is NULL, but the call needs it", name);
}

/* ---- bytes ---- */

HurrayStatus hurray_descriptor_decode_ex(const void *bytes, size_t len, const HurrayAllocator *allocator, size_t *out_used,
                                         HurrayDescriptor **out_handle, HurrayError *error) {
    HurrayError record;
    HurrayAllocator resolved;
    size_t used;
    HurrayStatus status = HURRAY_OK;
    if (!bytes && len) status = null_argument(&record, "bytes");
    if (!out_handle) status = null_argument(&record, "out_handle");
    if (status == HURRAY_OK) status = hry_alloc_resolve(allocator, &resolved, &record);
    if (status == HURRAY_OK) status = hry_descriptor_decode(bytes, len, 0, 0, &resolved, &used, out_handle, &record);
    if (status != HURRAY_OK) return hry_error_export(error, &record);
    if (out_used) *out_used = used;
    return HURRAY_OK;
}

HurrayStatus hurray_descriptor_decode(const void *bytes, size_t len, HurrayDescriptor **out_handle) {
    if (!bytes) return HURRAY_ERR_NULL_POINTER;
    return hurray_descriptor_decode_ex(bytes, len, NULL, NULL, out_handle, NULL);
}

HurrayStatus hurray_descriptor_encode(const HurrayDescriptor *handle, void *dst, size_t *len) {
    if (!handle || !len) return HURRAY_ERR_NULL_POINTER;
    size_t size = hry_descriptor_encoded_size(handle), room = *len;
    if (room >= size && !dst) return HURRAY_ERR_NULL_POINTER;
    *len = size;
    if (room < size) return HURRAY_ERR_BUFFER_TOO_SMALL;
    hry_descriptor_encode(handle, dst);
    return HURRAY_OK;
}

HurrayStatus hurray_descriptor_destroy(HurrayDescriptor *handle) {
    if (!handle) return HURRAY_ERR_NULL_POINTER;
    hry_descriptor_unref(handle);
    return HURRAY_OK;
}

/* ---- header ---- */

HurrayStatus hurray_descriptor_rank(const HurrayDescriptor *handle, uint32_t *out_rank) {
    if (!handle || !out_rank) return HURRAY_ERR_NULL_POINTER;
    *out_rank = handle->rank;
    return HURRAY_OK;
}

HurrayStatus hurray_descriptor_shape(const HurrayDescriptor *handle, uint64_t *out_dims, size_t *out_rank) {
    return hurray_descriptor_field_u64_array(handle, HURRAY_FIELD_SHAPE, out_dims, out_rank);
}

HurrayStatus hurray_descriptor_byte_offset(const HurrayDescriptor *handle, uint64_t *out) {
    if (!handle || !out) return HURRAY_ERR_NULL_POINTER;
    *out = handle->byte_offset;
    return HURRAY_OK;
}

HurrayStatus hurray_descriptor_element_type_tag(const HurrayDescriptor *handle, uint8_t *out) {
    if (!handle || !out) return HURRAY_ERR_NULL_POINTER;
    *out = handle->element_type;
    return HURRAY_OK;
}

HurrayStatus hurray_descriptor_layout_tag(const HurrayDescriptor *handle, uint8_t *out) {
    if (!handle || !out) return HURRAY_ERR_NULL_POINTER;
    *out = handle->layout_tag;
    return HURRAY_OK;
}

HurrayStatus hurray_descriptor_buffer_count(const HurrayDescriptor *handle, uint32_t *out) {
    if (!handle || !out) return HURRAY_ERR_NULL_POINTER;
    *out = handle->buffer_count;
    return HURRAY_OK;
}

/* ---- sections ---- */

HurrayStatus hurray_descriptor_buffer(const HurrayDescriptor *d, uint32_t i, HurrayBufferHandle *out) {
    if (!d || !out) return HURRAY_ERR_NULL_POINTER;
    if (i >= d->buffer_count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    *out = d->buffers[i];
    return HURRAY_OK;
}

HurrayStatus hurray_descriptor_layout(const HurrayDescriptor *d, HurrayLayout *out) {
    if (!d || !out) return HURRAY_ERR_NULL_POINTER;
    return hry_result_write(out, sizeof *out, &d->layout, sizeof d->layout);
}

#define SECTION(name, Struct)                                                                                                              \
    HurrayStatus hurray_descriptor_##name(const HurrayDescriptor *d, Struct *out) {                                                        \
        if (!d || !out) return HURRAY_ERR_NULL_POINTER;                                                                                    \
        if (!d->has_##name) return HURRAY_ERR_NOT_FOUND;                                                                                   \
        return hry_result_write(out, sizeof *out, &d->name, sizeof d->name);                                                               \
    }

SECTION(quantization, HurrayQuantization)
SECTION(shard, HurrayShard)
SECTION(statistics, HurrayStatistics)
SECTION(extension_type, HurrayExtensionType)
SECTION(composite_member, HurrayCompositeMember)

/* ---- originating ---- */

/* A caller's spec in its latest form, with its structs. */
typedef struct LatestSpec {
    HurrayDescriptorSpec spec;
    HurrayLayout layout;
    HurrayQuantization quantization;
    HurrayShard shard;
    HurrayStatistics statistics;
    HurrayExtensionType extension_type;
    HurrayCompositeMember composite_member;
} LatestSpec;

static HurrayStatus read_spec(const HurrayDescriptorSpec *user, LatestSpec *latest, HurrayError *error) {
    HurrayDescriptorSpec *spec = &latest->spec;
    memset(latest, 0, sizeof *latest);
    HurrayStatus status = hry_options_read(spec, sizeof *spec, sizeof *spec, user, "HurrayDescriptorSpec", error);
#define READ(member, Struct)                                                                                                               \
    if (status == HURRAY_OK && spec->member) {                                                                                             \
        status = hry_options_read(&latest->member, sizeof latest->member, sizeof latest->member, spec->member, #Struct, error);            \
        spec->member = &latest->member;                                                                                                    \
    }
    READ(layout, HurrayLayout)
    READ(quantization, HurrayQuantization)
    READ(shard, HurrayShard)
    READ(statistics, HurrayStatistics)
    READ(extension_type, HurrayExtensionType)
    READ(composite_member, HurrayCompositeMember)
#undef READ
    return status;
}

HurrayStatus hurray_descriptor_new(const HurrayDescriptorSpec *spec, const HurrayAllocator *allocator, HurrayDescriptor **out,
                                   HurrayError *error) {
    HurrayError record;
    HurrayAllocator resolved;
    LatestSpec latest;
    HurrayStatus status = HURRAY_OK;
    if (!out) status = null_argument(&record, "out");
    if (!spec) status = null_argument(&record, "spec");
    if (status == HURRAY_OK) status = hry_alloc_resolve(allocator, &resolved, &record);
    if (status == HURRAY_OK) status = read_spec(spec, &latest, &record);
    if (status == HURRAY_OK) status = hry_descriptor_build(&latest.spec, &resolved, out, &record);
    return status == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &record);
}

HurrayStatus hurray_descriptor_plan_buffers(const HurrayDescriptorSpec *spec, HurrayBufferHandle *out, size_t *count, HurrayError *error) {
    HurrayError record;
    LatestSpec latest;
    HurrayBufferHandle handles[HRY_MAX_PLANNED];
    uint32_t planned = 0;
    HurrayStatus status = HURRAY_OK;
    if (!count) status = null_argument(&record, "count");
    if (!spec) status = null_argument(&record, "spec");
    if (status == HURRAY_OK) status = read_spec(spec, &latest, &record);
    if (status == HURRAY_OK) status = hry_descriptor_plan(&latest.spec, handles, &planned, &record);
    if (status == HURRAY_OK) {
        size_t room = *count;
        *count = planned;
        if (room < planned)
            status = hry_fail(&record, HURRAY_ERR_BUFFER_TOO_SMALL, "count", HRY_NO_OFFSET,
                              "the spec implies %u buffers, but there is room for %zu handles", (unsigned)planned, room);
        else if (!out && planned)
            status = null_argument(&record, "out");
    }
    if (status != HURRAY_OK) return hry_error_export(error, &record);
    if (planned) memcpy(out, handles, planned * sizeof *handles);
    return HURRAY_OK;
}
