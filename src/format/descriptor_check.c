#include "format/descriptor_parts.h"

#include "format/element.h"
#include "format/extent.h"
#include "format/handle.h"
#include "format/layout.h"
#include "format/quant.h"
#include "format/sections.h"

enum { TYPE_AT = 14, LAYOUT_AT = 15 };

static HurrayStatus refuse_private(HurrayError *error, const char *field, HurrayStatus code, uint64_t at, uint8_t tag) {
    return hry_fail(error, code, field, at, "%s is the private tag 0x%02X, which this reader was told to refuse", field, tag);
}

HurrayStatus hry_descriptor_check_tags(uint8_t type, uint8_t layout, bool has_extension_type, uint32_t flags, uint64_t header,
                                       HurrayError *error) {
    bool private_type = hry_tag_is_private(type), private_layout = hry_tag_is_private(layout);
    uint64_t type_at = hry_at(header, TYPE_AT), layout_at = hry_at(header, LAYOUT_AT);
    if (!private_type && !hry_element_is_listed(type))
        return hry_fail(error, HURRAY_ERR_INVALID_TYPE, "element_type", type_at,
                        "element type 0x%02X does not exist; is the file of a newer format?", type);
    if (private_type != has_extension_type)
        return hry_fail(error, HURRAY_ERR_INVALID_TYPE, "element_type", type_at,
                        private_type ? "element type 0x%02X is private and has no extension-type section, which states its width"
                                     : "element type 0x%02X is not private, but there is an extension-type section; expected none",
                        type);
    if (!private_layout && !hry_layout_is_listed(layout))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout_tag", layout_at,
                        "layout 0x%02X does not exist; is the file of a newer format?", layout);
    if (flags & HRY_DECODE_NO_PRIVATE) {
        if (private_type) return refuse_private(error, "element_type", HURRAY_ERR_INVALID_TYPE, type_at, type);
        if (private_layout) return refuse_private(error, "layout_tag", HURRAY_ERR_INVALID_LAYOUT, layout_at, layout);
    }
    return HURRAY_OK;
}

static HurrayStatus check_buffers(const HurrayDescriptor *d, const HryPlaces *at, uint32_t flags, HurrayError *error) {
    bool head = hry_descriptor_is_head(d);
    if (head != (d->buffer_count == 0))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "buffer_count", at->buffers, "buffer_count is %u, expected %s",
                        (unsigned)d->buffer_count, head ? "0 for a composite head" : "at least 1");
    uint64_t first = hry_at(at->buffers, 1);
    HurrayStatus status = hry_handles_check(d->buffers, d->buffer_count, first, error);
    if (status != HURRAY_OK) return status;
    for (uint32_t i = 0; i < d->buffer_count; i++) {
        const HurrayBufferHandle *handle = &d->buffers[i];
        uint64_t here = hry_at(first, (uint64_t)i * HRY_HANDLE_BYTES);
        if ((flags & HRY_DECODE_CROSS_MACHINE) && handle->sync_mode != HURRAY_SYNC_PRODUCER_SYNCED) {
            hry_fail(error, HURRAY_ERR_INVALID_SYNC_MODE, NULL, hry_at(here, 13),
                     "buffer %u has sync mode %u, expected 0 (producer-synced) between machines", (unsigned)i, handle->sync_mode);
            return hry_handle_name(error, i, "sync_mode");
        }
        if ((flags & HRY_DECODE_NO_PRIVATE) && hry_tag_is_private(handle->device_tag)) { /* only such a device has private classes */
            refuse_private(error, "device_tag", HURRAY_ERR_INVALID_TYPE, hry_at(here, 12), handle->device_tag);
            return hry_handle_name(error, i, "device_tag");
        }
    }
    return HURRAY_OK;
}

static HurrayStatus check_byte_offset(const HurrayDescriptor *d, const HryPlaces *at, HurrayError *error) {
    bool zero_only = hry_layout_is_sparse(d->layout_tag) || d->layout_tag == HURRAY_LAYOUT_BLOCK_PAGED || hry_descriptor_is_head(d);
    if (zero_only && d->byte_offset != 0)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "byte_offset", at->byte_offset, "byte_offset is %llu, expected 0 for a %s layout",
                        (unsigned long long)d->byte_offset, hry_layout_name(d->layout_tag));
    if (!zero_only && d->byte_offset > d->buffers[0].byte_size)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "byte_offset", at->byte_offset,
                        "byte_offset is %llu, expected at most the %llu bytes of buffer 0", (unsigned long long)d->byte_offset,
                        (unsigned long long)d->buffers[0].byte_size);
    return HURRAY_OK;
}

/* Are there as many buffers as layout and quantization have, and is each large enough? */
static HurrayStatus check_sizes(const HurrayDescriptor *d, const HryPlaces *at, HurrayError *error) {
    uint32_t wanted = hry_extent_buffer_count(d);
    if (!hry_tag_is_private(d->layout_tag) && d->buffer_count != wanted)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "buffer_count", at->buffers,
                        "buffer_count is %u, expected %u: the %s layout's and those of quantization", (unsigned)d->buffer_count,
                        (unsigned)wanted, hry_layout_name(d->layout_tag));
    for (uint32_t i = 0; i < d->buffer_count; i++) {
        HryExtent extent;
        uint64_t size = d->buffers[i].byte_size, here = hry_at(at->buffers, 1 + (uint64_t)i * HRY_HANDLE_BYTES);
        HurrayStatus status = hry_extent_buffer(d, i, false, &extent, error);
        if (status != HURRAY_OK) {
            error->offset = here;
            error->buffer_index = i;
            return status;
        }
        if (size < extent.least || (extent.exact && size != extent.least)) {
            hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, NULL, here,
                     "buffer %u has %llu bytes, expected %s%llu for this shape, type and layout", (unsigned)i, (unsigned long long)size,
                     extent.exact ? "" : "at least ", (unsigned long long)extent.least);
            return hry_handle_name(error, i, "byte_size");
        }
    }
    return HURRAY_OK;
}

HurrayStatus hry_descriptor_check(const HurrayDescriptor *d, const HryPlaces *at, uint32_t flags, HurrayError *error) {
    HurrayStatus status = hry_descriptor_check_tags(d->element_type, d->layout_tag, d->has_extension_type, flags, at->header, error);
    if (status != HURRAY_OK) return status;
    if (d->has_extension_type && (status = hry_extension_check(&d->extension_type, at->extension_type, error)) != HURRAY_OK) return status;
    if ((status = hry_layout_check(&d->layout, d->rank, d->shape, at->layout, error)) != HURRAY_OK) return status;
    if ((status = check_buffers(d, at, flags, error)) != HURRAY_OK) return status;
    if ((status = check_byte_offset(d, at, error)) != HURRAY_OK) return status;
    if (d->has_quantization && (status = hry_quant_check(d, at->quantization, error)) != HURRAY_OK) return status;
    if (d->has_shard && (status = hry_shard_check(d, at->shard, error)) != HURRAY_OK) return status;
    if (d->has_statistics && (status = hry_statistics_check(&d->statistics, at->statistics, error)) != HURRAY_OK) return status;
    if (d->has_composite_member && (status = hry_member_check(d, at->composite_member, error)) != HURRAY_OK) return status;
    return check_sizes(d, at, error);
}

HurrayStatus hry_descriptor_check_writable(const HurrayDescriptor *d, HurrayError *error) {
    uint32_t level, dim;
    if (d->layout_tag == HURRAY_LAYOUT_TILED && !hry_layout_tiles_divide(&d->layout, d->rank, &level, &dim))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout.tiles", HRY_NO_OFFSET,
                        "the tile of level %u has size %llu in dimension %u, expected a divisor of %llu, the tile around it; elements "
                        "would share a place",
                        (unsigned)level, (unsigned long long)d->layout.tiles[level].tile_shape[dim], (unsigned)dim,
                        (unsigned long long)d->layout.tiles[level - 1].tile_shape[dim]);
    return d->has_statistics ? hry_statistics_check_writable(d, error) : HURRAY_OK;
}
