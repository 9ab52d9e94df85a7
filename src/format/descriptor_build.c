#include <string.h>

#include "format/descriptor_parts.h"
#include "format/element.h"
#include "format/extent.h"
#include "format/handle.h"
#include "format/layout.h"
#include "format/quant.h"
#include "format/sections.h"

/* A spec as parts; the tile levels are copied so that what a level does not use can be left out. */
typedef struct Draft {
    HurrayDescriptor parts;
    HurrayTileLevel tiles[HRY_MAX_TILE_LEVELS];
} Draft;

static HurrayStatus missing(HurrayError *error, const char *field) {
    return hry_fail(error, HURRAY_ERR_NULL_POINTER, field, HRY_NO_OFFSET,
                    "%s is NULL, expected an array; this layout, rank or count needs it", field);
}

static HurrayStatus draft_tiles(Draft *draft, const HurrayLayout *from, HurrayError *error) {
    HurrayLayout *to = &draft->parts.layout;
    if (from->tile_count == 0 || from->tile_count > HRY_MAX_TILE_LEVELS)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout.tile_count", HRY_NO_OFFSET, "layout.tile_count is %u, expected 1 to %u",
                        (unsigned)from->tile_count, HRY_MAX_TILE_LEVELS);
    if (!from->tiles) return missing(error, "layout.tiles");
    memcpy(draft->tiles, from->tiles, from->tile_count * sizeof *from->tiles);
    for (uint32_t level = 0; level < from->tile_count; level++) {
        HurrayTileLevel *tile = &draft->tiles[level];
        if (!tile->tile_shape) return missing(error, "layout.tile_shape");
        if (tile->outer != HURRAY_ORDER_STRIDED)
            tile->outer_strides = NULL;
        else if (!tile->outer_strides)
            return missing(error, "layout.outer_strides");
        if (tile->inner != HURRAY_ORDER_STRIDED)
            tile->inner_strides = NULL;
        else if (!tile->inner_strides)
            return missing(error, "layout.inner_strides");
    }
    to->tiles = draft->tiles;
    to->tile_count = from->tile_count;
    return HURRAY_OK;
}

/* What the tag has is taken over, everything else left 0, as decoding would leave it. */
static HurrayStatus draft_layout(Draft *draft, const HurrayLayout *from, HurrayError *error) {
    HurrayLayout *to = &draft->parts.layout;
    bool ranked = draft->parts.rank > 0;
    to->struct_size = sizeof *to;
    to->tag = from->tag;
    switch (from->tag) {
    case HURRAY_LAYOUT_STRIDED: to->strides = from->strides; return to->strides || !ranked ? HURRAY_OK : missing(error, "layout.strides");
    case HURRAY_LAYOUT_TILED: return draft_tiles(draft, from, error);
    case HURRAY_LAYOUT_MORTON: to->bits = from->bits; return to->bits || !ranked ? HURRAY_OK : missing(error, "layout.bits");
    case HURRAY_LAYOUT_CSF:
        to->mode_order = from->mode_order;
        if (!to->mode_order && ranked) return missing(error, "layout.mode_order");
        to->nnz = from->nnz;
        return HURRAY_OK;
    case HURRAY_LAYOUT_COO:
        to->is_sorted = from->is_sorted;
        to->nnz = from->nnz;
        return HURRAY_OK;
    case HURRAY_LAYOUT_CSR:
    case HURRAY_LAYOUT_CSC: to->nnz = from->nnz; return HURRAY_OK;
    case HURRAY_LAYOUT_BLOCK_PAGED:
        to->num_pages = from->num_pages;
        to->page_size = from->page_size;
        to->paged_axis = from->paged_axis;
        to->num_seqs = from->num_seqs;
        to->layer_index = from->layer_index;
        to->kv_role = from->kv_role;
        to->index_type = from->index_type;
        return HURRAY_OK;
    case HURRAY_LAYOUT_COMPOSITE:
        to->rule = from->rule;
        to->combine_op = from->combine_op;
        to->member_count = from->member_count;
        return HURRAY_OK;
    case HURRAY_LAYOUT_HILBERT: to->order = from->order; return HURRAY_OK;
    default: break;
    }
    if (!hry_tag_is_private(from->tag)) return HURRAY_OK;
    to->private_id = from->private_id;
    to->private_data = from->private_data;
    to->private_len = from->private_len;
    return to->private_data || to->private_len == 0 ? HURRAY_OK : missing(error, "layout.private_data");
}

static HurrayStatus draft_sections(Draft *draft, const HurrayDescriptorSpec *spec, HurrayError *error) {
    HurrayDescriptor *d = &draft->parts;
    if (spec->quantization) {
        d->has_quantization = true;
        d->quantization = *spec->quantization;
        hry_quant_normalize(&d->quantization);
    }
    if (spec->shard) {
        d->has_shard = true;
        d->shard = *spec->shard;
        if (!d->shard.parent_shape && d->rank) return missing(error, "shard.parent_shape");
        if (!d->shard.offset && d->rank) return missing(error, "shard.offset");
    }
    if (spec->statistics) {
        d->has_statistics = true;
        d->statistics = *spec->statistics;
        hry_statistics_normalize(&d->statistics);
    }
    if (spec->extension_type) {
        d->has_extension_type = true;
        d->extension_type = *spec->extension_type;
        hry_extension_normalize(&d->extension_type);
    }
    if (spec->composite_member) {
        d->has_composite_member = true;
        d->composite_member = *spec->composite_member;
    }
    return HURRAY_OK;
}

/* Everything of the spec but its buffers. */
static HurrayStatus draft_spec(Draft *draft, const HurrayDescriptorSpec *spec, HurrayError *error) {
    static const HurrayLayout row_major = {.struct_size = sizeof row_major, .tag = HURRAY_LAYOUT_ROW_MAJOR};
    const HurrayLayout *layout = spec->layout ? spec->layout : &row_major;
    HurrayDescriptor *d = &draft->parts;
    memset(d, 0, sizeof *d);
    d->rank = spec->rank;
    d->shape = spec->shape;
    d->byte_offset = spec->byte_offset;
    d->element_type = spec->element_type;
    d->layout_tag = layout->tag;
    if (d->rank > HURRAY_MAX_RANK)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "rank", HRY_NO_OFFSET, "rank is %u, expected at most %u", (unsigned)d->rank,
                        HURRAY_MAX_RANK);
    if (!d->shape && d->rank) return missing(error, "shape");
    HurrayStatus status = draft_layout(draft, layout, error);
    if (status == HURRAY_OK) status = draft_sections(draft, spec, error);
    d->element_bits = d->has_extension_type ? d->extension_type.bit_width : hry_element_bits(d->element_type);
    return status;
}

/* Gives the draft the buffers that follow from the rest of it. */
static HurrayStatus plan(HurrayDescriptor *d, HurrayBufferHandle *handles, HurrayError *error) {
    HurrayStatus status = hry_descriptor_check_tags(d->element_type, d->layout_tag, d->has_extension_type, 0, HRY_NO_OFFSET, error);
    if (status == HURRAY_OK && d->has_extension_type) status = hry_extension_check(&d->extension_type, HRY_NO_OFFSET, error);
    if (status == HURRAY_OK) status = hry_layout_check(&d->layout, d->rank, d->shape, HRY_NO_OFFSET, error);
    if (status != HURRAY_OK) return status;
    if (hry_tag_is_private(d->layout_tag))
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "buffers", HRY_NO_OFFSET,
                        "the buffers of private layout 0x%02X follow from nothing that is known here; state them", d->layout_tag);
    d->buffer_count = hry_extent_buffer_count(d);
    d->buffers = handles;
    if (d->has_quantization && (status = hry_quant_check(d, HRY_NO_OFFSET, error)) != HURRAY_OK) return status;
    for (uint32_t i = 0; i < d->buffer_count; i++) {
        HryExtent extent;
        status = hry_extent_buffer(d, i, true, &extent, error);
        if (status != HURRAY_OK) return status;
        if (!extent.known) {
            hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, NULL, HRY_NO_OFFSET,
                     "the size of buffer %u does not follow from shape and layout (the data or a dynamic dimension decides it); state the "
                     "buffers",
                     (unsigned)i);
            return hry_handle_name(error, i, "byte_size");
        }
        handles[i] = (HurrayBufferHandle){.byte_size = extent.least, .alignment = 64};
    }
    return HURRAY_OK;
}

HurrayStatus hry_descriptor_plan(const HurrayDescriptorSpec *spec, HurrayBufferHandle *handles, uint32_t *count, HurrayError *error) {
    Draft draft;
    HurrayStatus status = draft_spec(&draft, spec, error);
    if (status == HURRAY_OK) status = plan(&draft.parts, handles, error);
    if (status == HURRAY_OK) status = hry_descriptor_check(&draft.parts, &hry_places_none, 0, error);
    if (status == HURRAY_OK) *count = draft.parts.buffer_count;
    return status;
}

HurrayStatus hry_descriptor_build(const HurrayDescriptorSpec *spec, const HurrayAllocator *allocator, HurrayDescriptor **out,
                                  HurrayError *error) {
    Draft draft;
    HurrayBufferHandle planned[HRY_MAX_PLANNED];
    HurrayStatus status = draft_spec(&draft, spec, error);
    if (status != HURRAY_OK) return status;
    if (!spec->buffers) {
        if (spec->buffer_count) return missing(error, "buffers");
        status = plan(&draft.parts, planned, error);
        if (status != HURRAY_OK) return status;
    } else {
        if (spec->buffer_count > HRY_MAX_BUFFERS)
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "buffer_count", HRY_NO_OFFSET, "buffer_count is %u, expected at most %u",
                            (unsigned)spec->buffer_count, HRY_MAX_BUFFERS);
        draft.parts.buffers = spec->buffers;
        draft.parts.buffer_count = spec->buffer_count;
    }
    status = hry_descriptor_check(&draft.parts, &hry_places_none, 0, error);
    if (status == HURRAY_OK) status = hry_descriptor_check_writable(&draft.parts, error);
    if (status != HURRAY_OK) return status;
    if (hry_descriptor_encoded_size(&draft.parts) > UINT32_MAX)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout.private_len", HRY_NO_OFFSET,
                        "layout.private_len is %u, which leaves no room in a descriptor of at most 4 GiB",
                        (unsigned)draft.parts.layout.private_len);
    return hry_descriptor_place(&draft.parts, allocator, out, error);
}
