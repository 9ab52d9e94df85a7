#include "format/quant.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "format/element.h"
#include "format/layout.h"

enum { SCHEME_AT = 4, VERSION_AT = 5, FLAGS_AT = 6, FIELDS_AT = 8 }; /* in the section, whose length comes first */

static uint32_t fields_bytes(uint8_t scheme) {
    switch (scheme) {
    case HURRAY_QUANT_PER_CHANNEL_AFFINE: return 16;
    case HURRAY_QUANT_PER_BLOCK_AFFINE: return 20;
    default: return 12;
    }
}

static bool has_axis(uint8_t scheme) { return scheme >= HURRAY_QUANT_PER_CHANNEL_AFFINE; }
static bool has_blocks(uint8_t scheme) { return scheme >= HURRAY_QUANT_PER_BLOCK_AFFINE; }
static bool has_zero_field(uint8_t scheme) { return scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE || scheme == HURRAY_QUANT_PER_BLOCK_AFFINE; }

static HurrayStatus check_scheme(uint8_t scheme, uint64_t at, HurrayError *error) {
    if (scheme >= HURRAY_QUANT_PER_TENSOR_AFFINE && scheme <= HURRAY_QUANT_MXFP) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "quantization.scheme", at, "quantization scheme %u does not exist, expected 1 to 5",
                    scheme);
}

HurrayStatus hry_quant_decode(HryCursor *cursor, HurrayQuantization *out, HurrayError *error) {
    uint32_t len;
    uint8_t version;
    HryCursor in;
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    out->zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    if (!hry_cursor_u32(cursor, &len)) return hry_part_short(error, "quantization.length", cursor, 4);
    if (!hry_cursor_sub(cursor, len, &in)) return hry_part_short(error, "quantization", cursor, len);
    uint64_t at = in.offset;
    if (!hry_cursor_u8(&in, &out->scheme) || !hry_cursor_u8(&in, &version) || !hry_cursor_u16(&in, &out->flags))
        return hry_part_short(error, "quantization.scheme", &in, 4);
    HurrayStatus status = check_scheme(out->scheme, at, error);
    if (status != HURRAY_OK) return status;
    if (version != 1)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "quantization.version", at + 1, "quantization version is %u, expected 1",
                        version);
    const HryCursor before = in;
    const uint8_t *fields = hry_cursor_take(&in, fields_bytes(out->scheme));
    if (!fields) return hry_part_short(error, "quantization", &before, fields_bytes(out->scheme));
    HryCursor rest = hry_cursor(fields, fields_bytes(out->scheme), before.offset);
    if (!has_axis(out->scheme)) {
        uint32_t zero_point;
        hry_cursor_f32(&rest, &out->scale);
        hry_cursor_u32(&rest, &zero_point);
        out->zero_point = (int32_t)zero_point;
        return hry_part_reserved(&rest, 4, "quantization.reserved", error);
    }
    hry_cursor_u32(&rest, &out->axis);
    if (has_blocks(out->scheme)) hry_cursor_u32(&rest, &out->block_size);
    hry_cursor_u32(&rest, &out->scale_buffer);
    if (!has_zero_field(out->scheme)) return HURRAY_OK;
    hry_cursor_u32(&rest, &out->zero_point_buffer);
    hry_cursor_u8(&rest, &out->scale_type);
    return hry_part_reserved(&rest, 3, "quantization.reserved", error);
}

void hry_quant_encode(HryEmit *emit, const HurrayQuantization *quant) {
    hry_emit_u32(emit, 4 + fields_bytes(quant->scheme));
    hry_emit_u8(emit, quant->scheme);
    hry_emit_u8(emit, 1);
    hry_emit_u16(emit, quant->flags);
    if (!has_axis(quant->scheme)) {
        hry_emit_f32(emit, quant->scale);
        hry_emit_u32(emit, (uint32_t)quant->zero_point);
        hry_emit_zeros(emit, 4);
        return;
    }
    hry_emit_u32(emit, quant->axis);
    if (has_blocks(quant->scheme)) hry_emit_u32(emit, quant->block_size);
    hry_emit_u32(emit, quant->scale_buffer);
    if (!has_zero_field(quant->scheme)) return;
    hry_emit_u32(emit, quant->zero_point_buffer);
    hry_emit_u8(emit, quant->scale_type);
    hry_emit_zeros(emit, 3);
}

void hry_quant_normalize(HurrayQuantization *quant) {
    uint8_t scheme = quant->scheme;
    if (has_axis(scheme)) {
        quant->scale = 0;
        quant->zero_point = 0;
    } else {
        quant->axis = 0;
        quant->scale_buffer = 0;
    }
    if (!has_blocks(scheme)) quant->block_size = 0;
    if (!has_zero_field(scheme)) {
        quant->scale_type = 0;
        quant->zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    }
}

uint32_t hry_quant_buffer_count(const HurrayQuantization *quant) {
    if (!has_axis(quant->scheme)) return 0;
    return hry_quant_has_zero_points(quant) && quant->zero_point_buffer != quant->scale_buffer ? 2 : 1;
}

uint32_t hry_quant_scale_bytes(const HurrayQuantization *quant) {
    if (quant->scheme == HURRAY_QUANT_MXFP) return 1;
    return quant->scale_type == HURRAY_TYPE_FLOAT16 || quant->scale_type == HURRAY_TYPE_BFLOAT16 ? 2 : 4;
}

/* ---- rules ---- */

static bool storage_fits(uint8_t scheme, uint8_t type) {
    switch (scheme) {
    case HURRAY_QUANT_PER_TENSOR_AFFINE:
    case HURRAY_QUANT_PER_CHANNEL_AFFINE: return hry_element_is_integer(type) && hry_element_bits(type) <= 32;
    case HURRAY_QUANT_PER_BLOCK_AFFINE: return hry_element_is_integer(type) && hry_element_bits(type) <= 8;
    case HURRAY_QUANT_NF4: return type == HURRAY_TYPE_UINT4;
    default:
        return type == HURRAY_TYPE_INT8 || type == HURRAY_TYPE_INT4 ||
               (hry_element_kind(type) == HRY_ELEMENT_FLOAT && hry_element_bits(type) <= 8);
    }
}

static HurrayStatus bad(HurrayError *error, const char *field, uint64_t at, uint64_t found, const char *expected) {
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, field, at, "%s is %llu, expected %s", field, (unsigned long long)found, expected);
}

static HurrayStatus check_per_tensor(const HurrayDescriptor *d, uint64_t at, HurrayError *error) {
    const HurrayQuantization *q = &d->quantization;
    int64_t least, greatest;
    if (!isfinite(q->scale) || q->scale == 0)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "quantization.scale", hry_at(at, FIELDS_AT),
                        "quantization.scale is %g, expected a finite number other than 0", (double)q->scale);
    hry_element_integer_range(d->element_type, &least, &greatest);
    if (q->zero_point < least || q->zero_point > greatest)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "quantization.zero_point", hry_at(at, FIELDS_AT + 4),
                        "quantization.zero_point is %d, expected %lld to %lld as %s holds", (int)q->zero_point, (long long)least,
                        (long long)greatest, hry_element_name(d->element_type));
    return HURRAY_OK;
}

static HurrayStatus check_blocks(const HurrayDescriptor *d, uint64_t at, HurrayError *error) {
    const HurrayQuantization *q = &d->quantization;
    static const uint32_t least[] = {[HURRAY_QUANT_PER_BLOCK_AFFINE] = 2, [HURRAY_QUANT_NF4] = 8, [HURRAY_QUANT_MXFP] = 16};
    uint64_t size = d->shape[q->axis];
    if (!hry_is_pow2(q->block_size) || q->block_size < least[q->scheme] || (q->scheme == HURRAY_QUANT_MXFP && q->block_size > 2048))
        return bad(error, "quantization.block_size", hry_at(at, FIELDS_AT + 4), q->block_size,
                   q->scheme == HURRAY_QUANT_MXFP  ? "a power of two from 16 to 2048"
                   : q->scheme == HURRAY_QUANT_NF4 ? "a power of two of at least 8"
                                                   : "a power of two of at least 2");
    if (q->scheme == HURRAY_QUANT_PER_BLOCK_AFFINE && d->layout_tag == HURRAY_LAYOUT_BLOCK_PAGED) {
        if (q->axis != 0) return bad(error, "quantization.axis", hry_at(at, FIELDS_AT), q->axis, "0 in a block-paged tensor");
        if (q->block_size != d->layout.page_size)
            return bad(error, "quantization.block_size", hry_at(at, FIELDS_AT + 4), q->block_size,
                       "the page_size of the block-paged layout");
        return HURRAY_OK;
    }
    if (q->scheme == HURRAY_QUANT_MXFP ? size == 0 || size % q->block_size != 0 : size != 0 && q->block_size > size)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "quantization.block_size", hry_at(at, FIELDS_AT + 4),
                        "blocks of %u do not fit dimension %u of size %llu, expected %s", (unsigned)q->block_size, (unsigned)q->axis,
                        (unsigned long long)size,
                        q->scheme == HURRAY_QUANT_MXFP ? "a positive multiple of the block" : "at least one block");
    return HURRAY_OK;
}

static HurrayStatus check_index(const HurrayDescriptor *d, const char *field, uint32_t index, uint64_t at, HurrayError *error) {
    uint32_t own = hry_tag_is_private(d->layout_tag) ? 1 : hry_layout_buffer_count(d->layout_tag, d->rank);
    if (index >= own && index < d->buffer_count) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, field, at,
                    "%s is %u, expected an index from %u on (behind the layout's own) below the %u buffers", field, (unsigned)index,
                    (unsigned)own, (unsigned)d->buffer_count);
}

static HurrayStatus check_parameters(const HurrayDescriptor *d, uint64_t at, HurrayError *error) {
    const HurrayQuantization *q = &d->quantization;
    uint64_t scale_at = hry_at(at, FIELDS_AT + (has_blocks(q->scheme) ? 8u : 4u));
    if (has_zero_field(q->scheme)) {
        bool halves = q->scheme == HURRAY_QUANT_PER_BLOCK_AFFINE;
        bool legal = q->scale_type == HURRAY_TYPE_FLOAT32 ||
                     (halves && (q->scale_type == HURRAY_TYPE_FLOAT16 || q->scale_type == HURRAY_TYPE_BFLOAT16));
        if (!legal)
            return bad(error, "quantization.scale_type", hry_at(scale_at, 8), q->scale_type,
                       halves ? "1 (float16), 2 (bfloat16) or 3 (float32)" : "3 (float32)");
        if ((q->flags & HURRAY_QUANT_SYMMETRIC) && q->zero_point_buffer != HURRAY_QUANT_NO_ZERO_POINTS)
            return bad(error, "quantization.zero_point_buffer", hry_at(scale_at, 4), q->zero_point_buffer,
                       "0xFFFFFFFF (none), because the scheme is symmetric");
    }
    HurrayStatus status = check_index(d, "quantization.scale_buffer", q->scale_buffer, scale_at, error);
    if (status == HURRAY_OK && hry_quant_has_zero_points(q))
        status = check_index(d, "quantization.zero_point_buffer", q->zero_point_buffer, hry_at(scale_at, 4), error);
    return status;
}

HurrayStatus hry_quant_check(const HurrayDescriptor *d, uint64_t at, HurrayError *error) {
    const HurrayQuantization *q = &d->quantization;
    HurrayStatus status = check_scheme(q->scheme, hry_at(at, SCHEME_AT), error);
    if (status != HURRAY_OK) return status;
    if (d->layout_tag == HURRAY_LAYOUT_COMPOSITE)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "quantization", at, "a composite head has a quantization section, expected none");
    if (q->flags & ~(has_zero_field(q->scheme) ? HURRAY_QUANT_SYMMETRIC : 0u))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "quantization.flags", hry_at(at, FLAGS_AT),
                        "quantization.flags is 0x%04X, expected 0%s", q->flags, has_zero_field(q->scheme) ? " or 1 (symmetric)" : "");
    if (!storage_fits(q->scheme, d->element_type))
        return hry_fail(error, HURRAY_ERR_INVALID_TYPE, "element_type", hry_at(at, SCHEME_AT),
                        "quantization scheme %u stores no %s (0x%02X); choose a storage type of the scheme", q->scheme,
                        hry_element_name(d->element_type), d->element_type);
    if (!has_axis(q->scheme)) return check_per_tensor(d, at, error);
    if (q->axis >= d->rank)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "quantization.axis", hry_at(at, FIELDS_AT),
                        "quantization.axis is %u, expected below the rank %u", (unsigned)q->axis, (unsigned)d->rank);
    if (d->shape[q->axis] == HURRAY_DYNAMIC_DIMENSION)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "quantization.axis", hry_at(at, FIELDS_AT),
                        "quantization.axis is %u, whose dimension is dynamic; expected a dimension of known size", (unsigned)q->axis);
    if (q->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE && d->layout_tag == HURRAY_LAYOUT_BLOCK_PAGED && q->axis == 0)
        return bad(error, "quantization.axis", hry_at(at, FIELDS_AT), 0, "1 or 2 in a block-paged tensor");
    if (has_blocks(q->scheme)) status = check_blocks(d, at, error);
    return status != HURRAY_OK ? status : check_parameters(d, at, error);
}
