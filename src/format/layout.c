#include "format/layout.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "format/element.h"

bool hry_layout_is_listed(uint8_t tag) {
    return (tag >= HURRAY_LAYOUT_ROW_MAJOR && tag <= HURRAY_LAYOUT_COMPOSITE) || tag == HURRAY_LAYOUT_HILBERT;
}

const char *hry_layout_name(uint8_t tag) {
    static const char *const names[] = {"unknown", "row-major", "column-major", "strided", "tiled",       "Morton",
                                        "COO",     "CSR",       "CSC",          "CSF",     "block-paged", "composite"};
    if (tag == HURRAY_LAYOUT_HILBERT) return "Hilbert";
    if (hry_tag_is_private(tag)) return "private";
    return names[tag <= HURRAY_LAYOUT_COMPOSITE ? tag : 0];
}

uint32_t hry_layout_buffer_count(uint8_t tag, uint32_t rank) {
    switch (tag) {
    case HURRAY_LAYOUT_COO: return 2;
    case HURRAY_LAYOUT_CSR:
    case HURRAY_LAYOUT_CSC:
    case HURRAY_LAYOUT_BLOCK_PAGED: return 3;
    case HURRAY_LAYOUT_CSF: return 2 * rank + 1;
    case HURRAY_LAYOUT_COMPOSITE: return 0;
    default: return hry_tag_is_private(tag) ? 0 : 1;
    }
}

/* ---- bytes to struct ---- */

static HurrayStatus decode_strides(HryCursor *cursor, uint32_t rank, const char *field, int64_t *out, HurrayError *error) {
    const uint8_t *bytes = hry_cursor_take(cursor, (size_t)rank * 8);
    if (!bytes && rank) return hry_part_short(error, field, cursor, (uint64_t)rank * 8);
    for (uint32_t k = 0; k < rank; k++) out[k] = (int64_t)hry_load_u64(bytes + (size_t)k * 8);
    return HURRAY_OK;
}

static HurrayStatus decode_tiled(HryCursor *cursor, uint32_t rank, HryLayoutRoom *room, HurrayLayout *out, HurrayError *error) {
    bool more = true;
    for (uint32_t level = 0; more; level++) {
        if (level == HRY_MAX_TILE_LEVELS)
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout.tiles", cursor->offset,
                            "tiles are nested more than %u levels deep, which is the most the format allows", HRY_MAX_TILE_LEVELS);
        HurrayTileLevel *tile = &room->tiles[level];
        memset(tile, 0, sizeof *tile);
        if (!hry_cursor_u64_array(cursor, room->tile_shape[level], rank))
            return hry_part_short(error, "layout.tile_shape", cursor, (uint64_t)rank * 8);
        tile->tile_shape = room->tile_shape[level];
        if (!hry_cursor_u8(cursor, &tile->outer) || !hry_cursor_u8(cursor, &tile->inner))
            return hry_part_short(error, "layout.inner", cursor, 1);
        HurrayStatus status = hry_part_reserved(cursor, 2, "layout.reserved", error);
        if (status != HURRAY_OK) return status;
        if (tile->outer == HURRAY_ORDER_STRIDED) {
            status = decode_strides(cursor, rank, "layout.outer_strides", room->outer_strides[level], error);
            if (status != HURRAY_OK) return status;
            tile->outer_strides = room->outer_strides[level];
        }
        if (tile->inner == HURRAY_ORDER_STRIDED) {
            status = decode_strides(cursor, rank, "layout.inner_strides", room->inner_strides[level], error);
            if (status != HURRAY_OK) return status;
            tile->inner_strides = room->inner_strides[level];
        }
        more = tile->inner == HURRAY_ORDER_TILED;
        out->tile_count = level + 1;
    }
    out->tiles = room->tiles;
    return HURRAY_OK;
}

static HurrayStatus decode_sparse(HryCursor *cursor, uint8_t tag, uint32_t rank, HryLayoutRoom *room, HurrayLayout *out,
                                  HurrayError *error) {
    if (!hry_cursor_u64(cursor, &out->nnz)) return hry_part_short(error, "layout.nnz", cursor, 8);
    if (tag == HURRAY_LAYOUT_COO) {
        HurrayStatus status = hry_part_truth(cursor, "layout.is_sorted", &out->is_sorted, error);
        return status != HURRAY_OK ? status : hry_part_reserved(cursor, 7, "layout.reserved", error);
    }
    if (tag == HURRAY_LAYOUT_CSF) {
        if (!hry_cursor_u32_array(cursor, room->words, rank)) return hry_part_short(error, "layout.mode_order", cursor, (uint64_t)rank * 4);
        out->mode_order = room->words;
    }
    return hry_part_reserved(cursor, 8, "layout.reserved", error);
}

static HurrayStatus decode_paged(HryCursor *cursor, HurrayLayout *out, HurrayError *error) {
    const HryCursor before = *cursor;
    const uint8_t *bytes = hry_cursor_take(cursor, 26);
    if (!bytes) return hry_part_short(error, "layout", &before, 32);
    out->page_size = hry_load_u32(bytes);
    out->num_pages = hry_load_u64(bytes + 4);
    out->paged_axis = hry_load_u32(bytes + 12);
    out->num_seqs = hry_load_u32(bytes + 16);
    out->kv_role = bytes[20];
    out->layer_index = hry_load_u32(bytes + 21);
    out->index_type = bytes[25];
    return hry_part_reserved(cursor, 6, "layout.reserved", error);
}

static HurrayStatus decode_composite(HryCursor *cursor, HurrayLayout *out, HurrayError *error) {
    if (!hry_cursor_u8(cursor, &out->rule) || !hry_cursor_u8(cursor, &out->combine_op))
        return hry_part_short(error, "layout.combine_op", cursor, 1);
    HurrayStatus status = hry_part_reserved(cursor, 2, "layout.reserved", error);
    if (status != HURRAY_OK) return status;
    if (!hry_cursor_u32(cursor, &out->member_count)) return hry_part_short(error, "layout.member_count", cursor, 4);
    return HURRAY_OK;
}

static HurrayStatus decode_hilbert(HryCursor *cursor, uint32_t rank, HurrayLayout *out, HurrayError *error) {
    uint32_t stated;
    if (!hry_cursor_u32(cursor, &out->order)) return hry_part_short(error, "layout.order", cursor, 4);
    uint64_t at = cursor->offset;
    if (!hry_cursor_u32(cursor, &stated)) return hry_part_short(error, "layout.hilbert_rank", cursor, 4);
    if (stated != rank)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout.hilbert_rank", at, "hilbert_rank is %u, expected the rank %u",
                        (unsigned)stated, (unsigned)rank);
    return HURRAY_OK;
}

static HurrayStatus decode_private(HryCursor *cursor, HurrayLayout *out, HurrayError *error) {
    if (!hry_cursor_u64(cursor, &out->private_id)) return hry_part_short(error, "layout.private_id", cursor, 8);
    if (!hry_cursor_u32(cursor, &out->private_len)) return hry_part_short(error, "layout.private_len", cursor, 4);
    out->private_data = hry_cursor_take(cursor, out->private_len);
    if (!out->private_data && out->private_len) return hry_part_short(error, "layout.private_data", cursor, out->private_len);
    return HURRAY_OK;
}

HurrayStatus hry_layout_decode(HryCursor *cursor, uint8_t tag, uint32_t rank, HryLayoutRoom *room, HurrayLayout *out, HurrayError *error) {
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    out->tag = tag;
    switch (tag) {
    case HURRAY_LAYOUT_ROW_MAJOR:
    case HURRAY_LAYOUT_COLUMN_MAJOR: return HURRAY_OK;
    case HURRAY_LAYOUT_STRIDED: out->strides = room->strides; return decode_strides(cursor, rank, "layout.strides", room->strides, error);
    case HURRAY_LAYOUT_TILED: return decode_tiled(cursor, rank, room, out, error);
    case HURRAY_LAYOUT_MORTON:
        out->bits = room->words;
        if (!hry_cursor_u32_array(cursor, room->words, rank)) return hry_part_short(error, "layout.bits", cursor, (uint64_t)rank * 4);
        return HURRAY_OK;
    case HURRAY_LAYOUT_COO:
    case HURRAY_LAYOUT_CSR:
    case HURRAY_LAYOUT_CSC:
    case HURRAY_LAYOUT_CSF: return decode_sparse(cursor, tag, rank, room, out, error);
    case HURRAY_LAYOUT_BLOCK_PAGED: return decode_paged(cursor, out, error);
    case HURRAY_LAYOUT_COMPOSITE: return decode_composite(cursor, out, error);
    case HURRAY_LAYOUT_HILBERT: return decode_hilbert(cursor, rank, out, error);
    default: return decode_private(cursor, out, error); /* the caller has refused tags that are neither listed nor private */
    }
}

/* ---- rules ---- */

static HurrayStatus bad(HurrayError *error, const char *field, uint64_t at, const char *text, uint64_t found) {
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, field, at, "%s is %llu, expected %s", field, (unsigned long long)found, text);
}

static HurrayStatus check_rank(uint8_t tag, uint32_t rank, uint64_t at, HurrayError *error) {
    const char *expected = NULL;
    if (rank == 0 && tag != HURRAY_LAYOUT_ROW_MAJOR && tag != HURRAY_LAYOUT_COMPOSITE && !hry_tag_is_private(tag))
        expected = "at least 1";
    else if ((tag == HURRAY_LAYOUT_CSR || tag == HURRAY_LAYOUT_CSC) && rank != 2)
        expected = "2";
    else if (tag == HURRAY_LAYOUT_CSF && rank < 3)
        expected = "at least 3";
    else if (tag == HURRAY_LAYOUT_BLOCK_PAGED && rank != 3)
        expected = "3";
    else if (tag == HURRAY_LAYOUT_HILBERT && rank < 2)
        expected = "at least 2";
    if (!expected) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "rank", at, "rank is %u, expected %s for a %s layout", (unsigned)rank, expected,
                    hry_layout_name(tag));
}

static HurrayStatus check_tiled(const HurrayLayout *layout, uint32_t rank, uint64_t at, HurrayError *error) {
    if (layout->tile_count == 0 || layout->tile_count > HRY_MAX_TILE_LEVELS)
        return bad(error, "layout.tile_count", at, "1 to 8", layout->tile_count);
    for (uint32_t level = 0; level < layout->tile_count; level++) {
        const HurrayTileLevel *tile = &layout->tiles[level];
        bool last = level + 1 == layout->tile_count;
        for (uint32_t k = 0; k < rank; k++)
            if (tile->tile_shape[k] == 0) {
                hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, NULL, hry_at(at, (uint64_t)k * 8),
                         "the tile of level %u has size 0 in dimension %u, expected at least 1", (unsigned)level, (unsigned)k);
                snprintf(error->field, sizeof error->field, "layout.tiles[%u].tile_shape", (unsigned)level);
                return error->code;
            }
        at = hry_at(at, (uint64_t)rank * 8);
        if (tile->outer < HURRAY_ORDER_ROW_MAJOR || tile->outer > HURRAY_ORDER_STRIDED)
            return bad(error, "layout.outer", at, "1 (row-major), 2 (column-major) or 3 (strided)", tile->outer);
        if (tile->inner < HURRAY_ORDER_ROW_MAJOR || tile->inner > HURRAY_ORDER_TILED)
            return bad(error, "layout.inner", hry_at(at, 1), "1 (row-major), 2 (column-major), 3 (strided) or 4 (tiled)", tile->inner);
        if ((tile->inner == HURRAY_ORDER_TILED) == last)
            return bad(error, "layout.inner", hry_at(at, 1), "4 (tiled) on every level but the last", tile->inner);
        for (size_t i = 0; i < sizeof tile->reserved; i++)
            if (tile->reserved[i]) return bad(error, "layout.reserved", at, "0", tile->reserved[i]);
        at = hry_at(at, 4 + (uint64_t)rank * 8 * (uint64_t)((tile->outer == HURRAY_ORDER_STRIDED) + (tile->inner == HURRAY_ORDER_STRIDED)));
    }
    return HURRAY_OK;
}

static HurrayStatus check_morton(const HurrayLayout *layout, uint32_t rank, const uint64_t *shape, uint64_t at, HurrayError *error) {
    for (uint32_t k = 0; k < rank; k++) {
        uint32_t bits = layout->bits[k];
        if (bits == 0) return bad(error, "layout.bits", hry_at(at, (uint64_t)k * 4), "at least 1", 0);
        if (shape[k] != HURRAY_DYNAMIC_DIMENSION && bits < 64 && shape[k] > UINT64_C(1) << bits)
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout.bits", hry_at(at, (uint64_t)k * 4),
                            "%u Morton bits reach %llu indices, but dimension %u has %llu", (unsigned)bits,
                            (unsigned long long)(UINT64_C(1) << bits), (unsigned)k, (unsigned long long)shape[k]);
    }
    return HURRAY_OK;
}

static HurrayStatus check_mode_order(const HurrayLayout *layout, uint32_t rank, uint64_t at, HurrayError *error) {
    uint64_t seen = 0;
    for (uint32_t k = 0; k < rank; k++) {
        uint32_t mode = layout->mode_order[k];
        if (mode >= rank || (seen >> mode & 1))
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout.mode_order", hry_at(at, 8 + (uint64_t)k * 4),
                            "mode_order[%u] is %u, expected a permutation of 0 to %u", (unsigned)k, (unsigned)mode, (unsigned)rank - 1);
        seen |= UINT64_C(1) << mode;
    }
    return HURRAY_OK;
}

static HurrayStatus check_paged(const HurrayLayout *layout, uint64_t at, HurrayError *error) {
    if (layout->page_size == 0) return bad(error, "layout.page_size", at, "at least 1", 0);
    if (layout->paged_axis != 0) return bad(error, "layout.paged_axis", hry_at(at, 12), "0", layout->paged_axis);
    if (layout->kv_role > HURRAY_KV_CACHE_FUSED) return bad(error, "layout.kv_role", hry_at(at, 20), "0, 1 or 2", layout->kv_role);
    if (layout->index_type > 1) return bad(error, "layout.index_type", hry_at(at, 25), "0 (u32) or 1 (u64)", layout->index_type);
    return HURRAY_OK;
}

static HurrayStatus check_composite(const HurrayLayout *layout, uint32_t rank, const uint64_t *shape, uint64_t at, HurrayError *error) {
    bool overlay = layout->rule == HURRAY_RULE_OVERLAY;
    if (layout->rule < HURRAY_RULE_PARTITION || layout->rule > HURRAY_RULE_GROUP)
        return bad(error, "layout.rule", at, "1 (partition), 2 (overlay) or 3 (group)", layout->rule);
    if (overlay ? layout->combine_op != HURRAY_COMBINE_REPLACE && layout->combine_op != HURRAY_COMBINE_ADD : layout->combine_op != 0)
        return bad(error, "layout.combine_op", hry_at(at, 1), overlay ? "1 (replace) or 2 (add)" : "0 when the rule is not overlay",
                   layout->combine_op);
    if (layout->member_count == UINT32_MAX || (overlay && layout->member_count == 0))
        return bad(error, "layout.member_count", hry_at(at, 4), overlay ? "1 to 4294967294 (an overlay has a base)" : "at most 4294967294",
                   layout->member_count);
    for (uint32_t k = 0; k < rank && layout->rule != HURRAY_RULE_GROUP; k++)
        if (shape[k] == HURRAY_DYNAMIC_DIMENSION)
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shape", at,
                            "dimension %u is dynamic, which the head of a partition or overlay may not have", (unsigned)k);
    return HURRAY_OK;
}

static HurrayStatus check_hilbert(const HurrayLayout *layout, uint32_t rank, const uint64_t *shape, uint64_t at, HurrayError *error) {
    if (layout->order == 0) return bad(error, "layout.order", at, "at least 1", 0);
    for (uint32_t k = 0; k < rank; k++)
        if (shape[k] != HURRAY_DYNAMIC_DIMENSION && (layout->order > 63 || shape[k] != UINT64_C(1) << layout->order))
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout.order", at,
                            "dimension %u is %llu, expected 2^%u on a Hilbert curve of that order", (unsigned)k,
                            (unsigned long long)shape[k], (unsigned)layout->order);
    return HURRAY_OK;
}

HurrayStatus hry_layout_check(const HurrayLayout *layout, uint32_t rank, const uint64_t *shape, uint64_t at, HurrayError *error) {
    if (!hry_layout_is_listed(layout->tag) && !hry_tag_is_private(layout->tag))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout_tag", at,
                        "layout tag 0x%02X does not exist; is the file of a newer format?", layout->tag);
    HurrayStatus status = check_rank(layout->tag, rank, at, error);
    if (status != HURRAY_OK) return status;
    switch (layout->tag) {
    case HURRAY_LAYOUT_TILED: return check_tiled(layout, rank, at, error);
    case HURRAY_LAYOUT_MORTON: return check_morton(layout, rank, shape, at, error);
    case HURRAY_LAYOUT_COO:
        if (layout->is_sorted > 1) return bad(error, "layout.is_sorted", hry_at(at, 8), "0 or 1", layout->is_sorted);
        return HURRAY_OK;
    case HURRAY_LAYOUT_CSF: return check_mode_order(layout, rank, at, error);
    case HURRAY_LAYOUT_BLOCK_PAGED: return check_paged(layout, at, error);
    case HURRAY_LAYOUT_COMPOSITE: return check_composite(layout, rank, shape, at, error);
    case HURRAY_LAYOUT_HILBERT: return check_hilbert(layout, rank, shape, at, error);
    default: return HURRAY_OK;
    }
}

bool hry_layout_tiles_divide(const HurrayLayout *layout, uint32_t rank, uint32_t *level, uint32_t *dim) {
    for (uint32_t l = 1; l < layout->tile_count; l++)
        for (uint32_t k = 0; k < rank; k++)
            if (layout->tiles[l - 1].tile_shape[k] % layout->tiles[l].tile_shape[k]) {
                *level = l;
                *dim = k;
                return false;
            }
    return true;
}

/* ---- struct to bytes ---- */

static void encode_strides(HryEmit *emit, const int64_t *strides, uint32_t rank) {
    for (uint32_t k = 0; k < rank; k++) hry_emit_u64(emit, (uint64_t)strides[k]);
}

static void encode_tiled(HryEmit *emit, const HurrayLayout *layout, uint32_t rank) {
    for (uint32_t level = 0; level < layout->tile_count; level++) {
        const HurrayTileLevel *tile = &layout->tiles[level];
        hry_emit_u64_array(emit, tile->tile_shape, rank);
        hry_emit_u8(emit, tile->outer);
        hry_emit_u8(emit, tile->inner);
        hry_emit_zeros(emit, 2);
        if (tile->outer == HURRAY_ORDER_STRIDED) encode_strides(emit, tile->outer_strides, rank);
        if (tile->inner == HURRAY_ORDER_STRIDED) encode_strides(emit, tile->inner_strides, rank);
    }
}

static void encode_paged(HryEmit *emit, const HurrayLayout *layout) {
    hry_emit_u32(emit, layout->page_size);
    hry_emit_u64(emit, layout->num_pages);
    hry_emit_u32(emit, layout->paged_axis);
    hry_emit_u32(emit, layout->num_seqs);
    hry_emit_u8(emit, layout->kv_role);
    hry_emit_u32(emit, layout->layer_index);
    hry_emit_u8(emit, layout->index_type);
    hry_emit_zeros(emit, 6);
}

void hry_layout_encode(HryEmit *emit, const HurrayLayout *layout, uint32_t rank) {
    switch (layout->tag) {
    case HURRAY_LAYOUT_ROW_MAJOR:
    case HURRAY_LAYOUT_COLUMN_MAJOR: return;
    case HURRAY_LAYOUT_STRIDED: encode_strides(emit, layout->strides, rank); return;
    case HURRAY_LAYOUT_TILED: encode_tiled(emit, layout, rank); return;
    case HURRAY_LAYOUT_MORTON: hry_emit_u32_array(emit, layout->bits, rank); return;
    case HURRAY_LAYOUT_COO:
        hry_emit_u64(emit, layout->nnz);
        hry_emit_u8(emit, layout->is_sorted);
        hry_emit_zeros(emit, 7);
        return;
    case HURRAY_LAYOUT_CSR:
    case HURRAY_LAYOUT_CSC:
    case HURRAY_LAYOUT_CSF:
        hry_emit_u64(emit, layout->nnz);
        if (layout->tag == HURRAY_LAYOUT_CSF) hry_emit_u32_array(emit, layout->mode_order, rank);
        hry_emit_zeros(emit, 8);
        return;
    case HURRAY_LAYOUT_BLOCK_PAGED: encode_paged(emit, layout); return;
    case HURRAY_LAYOUT_COMPOSITE:
        hry_emit_u8(emit, layout->rule);
        hry_emit_u8(emit, layout->combine_op);
        hry_emit_zeros(emit, 2);
        hry_emit_u32(emit, layout->member_count);
        return;
    case HURRAY_LAYOUT_HILBERT:
        hry_emit_u32(emit, layout->order);
        hry_emit_u32(emit, rank);
        return;
    default:
        hry_emit_u64(emit, layout->private_id);
        hry_emit_u32(emit, layout->private_len);
        hry_emit_bytes(emit, layout->private_data, layout->private_len);
    }
}
