#include "format/sections.h"

#include <string.h>

#include "base/endian.h"
#include "format/layout.h"

static HurrayStatus bad(HurrayError *error, const char *field, uint64_t at, uint64_t found, const char *expected) {
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, field, at, "%s is %llu, expected %s", field, (unsigned long long)found, expected);
}

/* ---- shard ---- */

HurrayStatus hry_shard_decode(HryCursor *cursor, uint32_t rank, uint64_t *parent_shape, uint64_t *offset, HurrayShard *out,
                              HurrayError *error) {
    HurrayShard shard = HURRAY_SHARD_INIT;
    if (!hry_cursor_u64_array(cursor, parent_shape, rank)) return hry_part_short(error, "shard.parent_shape", cursor, (uint64_t)rank * 8);
    if (!hry_cursor_u64_array(cursor, offset, rank)) return hry_part_short(error, "shard.offset", cursor, (uint64_t)rank * 8);
    shard.parent_shape = parent_shape;
    shard.offset = offset;
    *out = shard;
    return HURRAY_OK;
}

HurrayStatus hry_shard_check(const HurrayDescriptor *d, uint64_t at, HurrayError *error) {
    if (d->layout_tag == HURRAY_LAYOUT_CSF || d->layout_tag == HURRAY_LAYOUT_BLOCK_PAGED)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard", at, "a %s tensor has a shard section, expected none",
                        hry_layout_name(d->layout_tag));
    for (uint32_t k = 0; k < d->rank; k++) {
        uint64_t size = d->shape[k], parent = d->shard.parent_shape[k], offset = d->shard.offset[k];
        uint64_t parent_at = hry_at(at, (uint64_t)k * 8), offset_at = hry_at(at, ((uint64_t)d->rank + k) * 8);
        if (size == HURRAY_DYNAMIC_DIMENSION || parent == HURRAY_DYNAMIC_DIMENSION)
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, size == HURRAY_DYNAMIC_DIMENSION ? "shape" : "shard.parent_shape", parent_at,
                            "dimension %u is dynamic, which a tensor with a shard section may not have", (unsigned)k);
        if (size > parent || offset > parent - size)
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard.offset", offset_at,
                            "dimension %u: offset %llu and size %llu reach beyond the parent's %llu", (unsigned)k,
                            (unsigned long long)offset, (unsigned long long)size, (unsigned long long)parent);
    }
    return HURRAY_OK;
}

void hry_shard_encode(HryEmit *emit, const HurrayShard *shard, uint32_t rank) {
    hry_emit_u64_array(emit, shard->parent_shape, rank);
    hry_emit_u64_array(emit, shard->offset, rank);
}

/* ---- statistics ---- */

void hry_statistics_normalize(HurrayStatistics *s) {
    uint32_t mask = s->computed_mask;
    if (!(mask & HURRAY_STATISTICS_NNZ)) s->nnz = 0;
    if (!(mask & HURRAY_STATISTICS_SPARSITY)) s->sparsity_ratio = 0;
    if (!(mask & HURRAY_STATISTICS_RANGE)) s->min = s->max = s->abs_max = 0;
    if (!(mask & HURRAY_STATISTICS_MOMENTS)) s->mean = s->stddev = 0;
    if (!(mask & HURRAY_STATISTICS_NM)) s->nm_n = s->nm_m = 0;
    if (!(mask & HURRAY_STATISTICS_SPECIALS)) s->has_nan = s->has_inf = 0;
}

HurrayStatus hry_statistics_decode(HryCursor *cursor, HurrayStatistics *out, HurrayError *error) {
    HryCursor in;
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    if (!hry_cursor_sub(cursor, HRY_STATISTICS_BYTES, &in)) return hry_part_short(error, "statistics", cursor, HRY_STATISTICS_BYTES);
    hry_cursor_u32(&in, &out->computed_mask);
    HurrayStatus status = hry_part_reserved(&in, 4, "statistics.reserved", error);
    if (status != HURRAY_OK) return status;
    hry_cursor_u64(&in, &out->nnz);
    double *const values[] = {&out->sparsity_ratio, &out->min, &out->max, &out->abs_max, &out->mean, &out->stddev};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) hry_cursor_f64(&in, values[i]);
    uint8_t *const bytes[] = {&out->nm_n, &out->nm_m, &out->has_nan, &out->has_inf};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) hry_cursor_u8(&in, bytes[i]);
    hry_statistics_normalize(out);
    return hry_part_reserved(&in, 4, "statistics.reserved", error);
}

HurrayStatus hry_statistics_check(const HurrayStatistics *statistics, uint64_t at, HurrayError *error) {
    if (statistics->computed_mask < 64) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "statistics.computed_mask", at,
                    "statistics.computed_mask is 0x%X, expected bits 0 to 5 only", (unsigned)statistics->computed_mask);
}

HurrayStatus hry_statistics_check_writable(const HurrayDescriptor *d, HurrayError *error) {
    const HurrayStatistics *s = &d->statistics;
    uint32_t mask = s->computed_mask;
    if ((mask & HURRAY_STATISTICS_NNZ) && hry_layout_is_sparse(d->layout_tag) && s->nnz != d->layout.nnz)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "statistics.nnz", HRY_NO_OFFSET,
                        "statistics.nnz is %llu, expected the layout's own %llu", (unsigned long long)s->nnz,
                        (unsigned long long)d->layout.nnz);
    if ((mask & HURRAY_STATISTICS_SPARSITY) && !(s->sparsity_ratio >= 0 && s->sparsity_ratio <= 1))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "statistics.sparsity_ratio", HRY_NO_OFFSET,
                        "statistics.sparsity_ratio is %g, expected 0 to 1", s->sparsity_ratio);
    if ((mask & HURRAY_STATISTICS_MOMENTS) && !(s->stddev >= 0))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "statistics.stddev", HRY_NO_OFFSET,
                        "statistics.stddev is %g, expected at least 0", s->stddev);
    if ((mask & HURRAY_STATISTICS_NM) && s->nm_n > s->nm_m)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "statistics.nm_n", HRY_NO_OFFSET,
                        "statistics.nm_n is %u, expected at most nm_m, %u", s->nm_n, s->nm_m);
    if ((mask & HURRAY_STATISTICS_SPECIALS) && s->has_nan > 1) return bad(error, "statistics.has_nan", HRY_NO_OFFSET, s->has_nan, "0 or 1");
    if ((mask & HURRAY_STATISTICS_SPECIALS) && s->has_inf > 1) return bad(error, "statistics.has_inf", HRY_NO_OFFSET, s->has_inf, "0 or 1");
    return HURRAY_OK;
}

void hry_statistics_encode(HryEmit *emit, const HurrayStatistics *s) {
    hry_emit_u32(emit, s->computed_mask);
    hry_emit_zeros(emit, 4);
    hry_emit_u64(emit, s->nnz);
    const double values[] = {s->sparsity_ratio, s->min, s->max, s->abs_max, s->mean, s->stddev};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) hry_emit_f64(emit, values[i]);
    const uint8_t bytes[] = {s->nm_n, s->nm_m, s->has_nan, s->has_inf};
    hry_emit_bytes(emit, bytes, sizeof bytes);
    hry_emit_zeros(emit, 4);
}

/* ---- extension type ---- */

void hry_extension_normalize(HurrayExtensionType *extension) {
    if (!extension->is_float) extension->has_nan = extension->has_inf = 0;
}

HurrayStatus hry_extension_decode(HryCursor *cursor, HurrayExtensionType *out, HurrayError *error) {
    HryCursor in;
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    if (!hry_cursor_sub(cursor, HRY_EXTENSION_TYPE_BYTES, &in))
        return hry_part_short(error, "extension_type", cursor, HRY_EXTENSION_TYPE_BYTES);
    hry_cursor_u32(&in, &out->bit_width);
    hry_cursor_u8(&in, &out->packing_factor);
    HurrayStatus status = hry_part_truth(&in, "extension_type.is_float", &out->is_float, error);
    if (status == HURRAY_OK) status = hry_part_truth(&in, "extension_type.is_signed", &out->is_signed, error);
    if (status != HURRAY_OK) return status;
    hry_cursor_u8(&in, &out->sign_bits);
    hry_cursor_u8(&in, &out->exponent_bits);
    hry_cursor_u8(&in, &out->mantissa_bits);
    status = hry_part_reserved(&in, 2, "extension_type.reserved", error);
    if (status != HURRAY_OK) return status;
    hry_cursor_u32(&in, &out->exponent_bias);
    status = hry_part_truth(&in, "extension_type.has_nan", &out->has_nan, error);
    if (status == HURRAY_OK) status = hry_part_truth(&in, "extension_type.has_inf", &out->has_inf, error);
    if (status != HURRAY_OK) return status;
    hry_extension_normalize(out);
    return hry_part_reserved(&in, 2, "extension_type.reserved", error);
}

HurrayStatus hry_extension_check(const HurrayExtensionType *x, uint64_t at, HurrayError *error) {
    uint32_t bits = x->bit_width;
    bool legal = bits < 8 ? bits == 1 || bits == 2 || bits == 4 : bits % 8 == 0;
    if (!legal) return bad(error, "extension_type.bit_width", at, bits, "1, 2, 4 or a multiple of 8");
    uint32_t packing = bits >= 8 ? 1 : 8 / bits;
    if (x->packing_factor != packing)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "extension_type.packing_factor", hry_at(at, 4),
                        "extension_type.packing_factor is %u, expected %u for %u bits", x->packing_factor, (unsigned)packing,
                        (unsigned)bits);
    const struct {
        const char *field;
        uint8_t value, at;
    } truths[] = {{"extension_type.is_float", x->is_float, 5},
                  {"extension_type.is_signed", x->is_signed, 6},
                  {"extension_type.sign_bits", x->sign_bits, 7},
                  {"extension_type.has_nan", x->has_nan, 16},
                  {"extension_type.has_inf", x->has_inf, 17}};
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++)
        if (truths[i].value > 1) return bad(error, truths[i].field, hry_at(at, truths[i].at), truths[i].value, "0 or 1");
    if (x->is_float && x->is_signed) return bad(error, "extension_type.is_signed", hry_at(at, 6), 1, "0 for a float");
    if (x->is_float) return HURRAY_OK;
    if (x->sign_bits) return bad(error, "extension_type.sign_bits", hry_at(at, 7), x->sign_bits, "0 for an integer");
    if (x->exponent_bits) return bad(error, "extension_type.exponent_bits", hry_at(at, 8), x->exponent_bits, "0 for an integer");
    if (x->mantissa_bits) return bad(error, "extension_type.mantissa_bits", hry_at(at, 9), x->mantissa_bits, "0 for an integer");
    if (x->exponent_bias) return bad(error, "extension_type.exponent_bias", hry_at(at, 12), x->exponent_bias, "0 for an integer");
    return HURRAY_OK;
}

void hry_extension_encode(HryEmit *emit, const HurrayExtensionType *x) {
    hry_emit_u32(emit, x->bit_width);
    const uint8_t bytes[] = {x->packing_factor, x->is_float, x->is_signed, x->sign_bits, x->exponent_bits, x->mantissa_bits, 0, 0};
    hry_emit_bytes(emit, bytes, sizeof bytes);
    hry_emit_u32(emit, x->exponent_bias);
    const uint8_t tail[] = {x->has_nan, x->has_inf, 0, 0};
    hry_emit_bytes(emit, tail, sizeof tail);
}

/* ---- composite member ---- */

HurrayStatus hry_member_decode(HryCursor *cursor, HurrayCompositeMember *out, HurrayError *error) {
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    if (!hry_cursor_u8(cursor, &member.role)) return hry_part_short(error, "composite_member", cursor, HRY_COMPOSITE_MEMBER_BYTES);
    *out = member;
    return hry_part_reserved(cursor, HRY_COMPOSITE_MEMBER_BYTES - 1, "composite_member.reserved", error);
}

HurrayStatus hry_member_check(const HurrayDescriptor *d, uint64_t at, HurrayError *error) {
    if (d->layout_tag == HURRAY_LAYOUT_COMPOSITE)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "composite_member", at,
                        "a composite head has a composite-member section, expected none: a head is never a member of an overlay");
    if (d->composite_member.role > HURRAY_ROLE_BASE)
        return bad(error, "composite_member.role", at, d->composite_member.role, "0 (correction) or 1 (base)");
    return HURRAY_OK;
}

void hry_member_encode(HryEmit *emit, const HurrayCompositeMember *member) {
    hry_emit_u8(emit, member->role);
    hry_emit_zeros(emit, HRY_COMPOSITE_MEMBER_BYTES - 1);
}
