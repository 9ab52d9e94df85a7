#include "format/verify_part.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "format/codes.h"
#include "format/dense.h"
#include "format/element.h"
#include "format/extent.h"
#include "format/sparse.h"

HurrayStatus hry_verify_report(const HryVerify *verify, uint32_t buffer, const char *field, uint64_t offset, const char *format, ...) {
    HurrayError finding;
    char text[sizeof finding.message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hry_fail(&finding, HURRAY_ERR_INVALID_DATA, field, offset, "%s", text);
    finding.buffer_index = buffer;
    return verify->found(verify->ctx, &finding);
}

/* Does any level of a tiled layout place tiles or elements by strides? Then storage may have holes and no last element. */
static bool has_tile_strides(const HurrayDescriptor *d) {
    for (uint32_t level = 0; level < d->layout.tile_count; level++)
        if (d->layout.tiles[level].outer == HURRAY_ORDER_STRIDED || d->layout.tiles[level].inner == HURRAY_ORDER_STRIDED) return true;
    return false;
}

/* Elements of storage in buffer 0 that lie one behind the other; false: none, or holes between them. */
static bool packed_elements(const HurrayDescriptor *d, uint64_t *count) {
    int64_t least, greatest;
    if (hry_sparse_is(d)) {
        *count = d->layout.nnz;
        return true;
    }
    if (hry_descriptor_is_dynamic(d)) return false;
    switch (d->layout_tag) {
    case HURRAY_LAYOUT_ROW_MAJOR:
    case HURRAY_LAYOUT_COLUMN_MAJOR: return hry_descriptor_elements(d, count);
    case HURRAY_LAYOUT_BLOCK_PAGED: {
        uint64_t sizes[4] = {d->layout.num_pages, d->layout.page_size, d->shape[1], d->shape[2]};
        return hry_product_u64(sizes, 4, count);
    }
    case HURRAY_LAYOUT_TILED:
        if (has_tile_strides(d)) return false;
        break;
    case HURRAY_LAYOUT_MORTON:
    case HURRAY_LAYOUT_HILBERT: break;
    default: return false;
    }
    if (!hry_descriptor_elements(d, count) || *count == 0) return false;
    if (!hry_extent_reach(d, &least, &greatest)) return false;
    *count = (uint64_t)greatest + 1;
    return true;
}

/* The byte (6 bits: three) that holds the last elements and unused bits; false: no unused bits. used: bits of it in use. */
static bool padding_place(const HurrayDescriptor *d, uint64_t *offset, uint64_t *len, unsigned *used) {
    uint32_t bits = hry_form_of(d).bits;
    uint64_t count, bytes;
    if (bits >= 8 || !packed_elements(d, &count)) return false;
    *len = bits == 6 ? 3 : 1;
    *used = (unsigned)(count % (*len * 8 / bits)) * bits;
    if (*used == 0 || !hry_bits_bytes(count, bits, &bytes)) return false;
    *offset = d->byte_offset + bytes - *len;
    return true;
}

static HurrayStatus verify_padding(const HryVerify *verify) {
    uint64_t offset, len;
    unsigned used;
    if (!padding_place(verify->descriptor, &offset, &len, &used)) return HURRAY_OK;
    const uint8_t *group = verify->ranges[0].data;
    uint32_t word = 0;
    for (uint64_t i = 0; i < len; i++) word |= (uint32_t)group[i] << 8 * i;
    if (word >> used == 0) return HURRAY_OK;
    return hry_verify_report(verify, 0, "values", offset, "unused bits behind the last element are not zero (0x%02X)", word >> used);
}

/* The logical elements of an e8m0 tensor, whatever its layout. A paged one has them only with a dense view. */
static HurrayStatus verify_scales_as_elements(const HryVerify *verify) {
    const HurrayDescriptor *d = verify->descriptor;
    HryDense dense;
    HurrayError ignored;
    uint8_t codes[4096];
    uint64_t bad, count;
    if (hry_sparse_is(d)) {
        for (bad = 0, count = d->layout.nnz; bad < count; bad++) {
            uint8_t code = verify->ranges[0].data[bad];
            if (code != 0 && code != 255) continue;
            return hry_verify_report(verify, 0, "values", bad, "stored element %llu is 0x%02X, no float8_e8m0 value (0x01 to 0xFE)",
                                     (unsigned long long)bad, code);
        }
        return HURRAY_OK;
    }
    if (hry_dense_open(&dense, d, verify->ranges, HRY_DENSE_OWN, &ignored) != HURRAY_OK) return HURRAY_OK;
    for (uint64_t first = 0; first < dense.elements; first += count) {
        count = dense.elements - first < sizeof codes ? dense.elements - first : sizeof codes;
        if (hry_dense_stretch(&dense, first, count, codes, &ignored) != HURRAY_OK) return HURRAY_OK; /* the page tables' own finding */
        for (uint64_t i = 0; i < count; i++)
            if (codes[i] == 0 || codes[i] == 255)
                return hry_verify_report(verify, 0, "values", HRY_NO_OFFSET, "element %llu is 0x%02X, no float8_e8m0 value (0x01 to 0xFE)",
                                         (unsigned long long)(first + i), codes[i]);
    }
    return HURRAY_OK;
}

/* Parameter buffers: bytes of the scales, and of the zero points and where they begin; false: no such buffers, or no known size. */
static bool parameter_place(const HurrayDescriptor *d, uint64_t *count, uint64_t *scale_bytes, uint64_t *zero_bytes, uint64_t *zero_at) {
    const HurrayQuantization *q = &d->quantization;
    uint32_t width = 4;
    if (!d->has_quantization || q->scheme == HURRAY_QUANT_PER_TENSOR_AFFINE) return false;
    if (!hry_dequant_count(d, count)) return false;
    bool affine = q->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE || q->scheme == HURRAY_QUANT_PER_BLOCK_AFFINE;
    if (affine) width = hry_code_bytes(hry_form_of_type(q->scale_type).bits);
    if (q->scheme == HURRAY_QUANT_MXFP) width = 1;
    if (!hry_mul_u64(*count, width, scale_bytes)) return false;
    *zero_bytes = *zero_at = 0;
    if (affine && !(q->flags & HURRAY_QUANT_SYMMETRIC)) {
        if (!hry_mul_u64(*count, 4, zero_bytes)) return false;
        if (q->zero_point_buffer == q->scale_buffer) *zero_at = *scale_bytes;
    }
    return true;
}

static HurrayStatus verify_scales(const HryVerify *verify, const HryDequant *dequant, uint64_t count, uint64_t width) {
    uint32_t buffer = verify->descriptor->quantization.scale_buffer;
    for (uint64_t i = 0; i < count; i++) {
        float scale = hry_dequant_scale(dequant, i);
        bool good = isfinite(scale) && (dequant->scheme == HURRAY_QUANT_NF4 ? scale >= 0 : scale != 0);
        if (good) continue;
        if (dequant->scheme == HURRAY_QUANT_MXFP)
            return hry_verify_report(verify, buffer, "scale", i, "scale %llu is the byte 0x%02X, no e8m0 value (0x01 to 0xFE)",
                                     (unsigned long long)i, dequant->scales[i]);
        return hry_verify_report(verify, buffer, "scale", i * width, "scale %llu is %g, expected a finite number that is %s",
                                 (unsigned long long)i, (double)scale, dequant->scheme == HURRAY_QUANT_NF4 ? "not negative" : "not 0");
    }
    return HURRAY_OK;
}

static HurrayStatus verify_zero_points(const HryVerify *verify, const HryDequant *dequant, uint64_t count, uint64_t zero_at) {
    int64_t least, greatest;
    hry_element_integer_range(verify->descriptor->element_type, &least, &greatest);
    for (uint64_t i = 0; i < count; i++) {
        int32_t zero = hry_dequant_zero(dequant, i);
        if (zero < least || zero > greatest)
            return hry_verify_report(verify, verify->descriptor->quantization.zero_point_buffer, "zero_point", zero_at + 4 * i,
                                     "zero point %llu is %d, expected %lld to %lld (%s)", (unsigned long long)i, zero, (long long)least,
                                     (long long)greatest, hry_element_name(verify->descriptor->element_type));
    }
    return HURRAY_OK;
}

static HurrayStatus verify_parameters(const HryVerify *verify) {
    uint64_t count, scale_bytes, zero_bytes, zero_at;
    HryDequant dequant;
    if (!parameter_place(verify->descriptor, &count, &scale_bytes, &zero_bytes, &zero_at) || count == 0) return HURRAY_OK;
    HurrayStatus status = hry_dequant_open(&dequant, verify->descriptor, verify->ranges, verify->error);
    if (status == HURRAY_OK) status = verify_scales(verify, &dequant, count, scale_bytes / count);
    if (status == HURRAY_OK && zero_bytes) status = verify_zero_points(verify, &dequant, count, zero_at);
    return status;
}

static HurrayStatus statistics_finding(const HryVerify *verify, const char *field, double value, const char *expected) {
    return hry_verify_report(verify, UINT32_MAX, field, HRY_NO_OFFSET, "statistics say %g, expected %s", value, expected);
}

static HurrayStatus verify_statistics(const HryVerify *verify) {
    const HurrayDescriptor *d = verify->descriptor;
    const HurrayStatistics *s = &d->statistics;
    HurrayStatus status = HURRAY_OK;
    uint32_t mask = d->has_statistics ? s->computed_mask : 0;
    if ((mask & HURRAY_STATISTICS_NNZ) && hry_sparse_is(d) && s->nnz != d->layout.nnz)
        status = hry_verify_report(verify, UINT32_MAX, "nnz", HRY_NO_OFFSET, "statistics say %llu stored elements, the layout %llu",
                                   (unsigned long long)s->nnz, (unsigned long long)d->layout.nnz);
    if (status == HURRAY_OK && (mask & HURRAY_STATISTICS_SPARSITY) && !(s->sparsity_ratio >= 0 && s->sparsity_ratio <= 1))
        status = statistics_finding(verify, "sparsity_ratio", s->sparsity_ratio, "0 to 1");
    if (status == HURRAY_OK && (mask & HURRAY_STATISTICS_MOMENTS) && !(s->stddev >= 0))
        status = statistics_finding(verify, "value_stddev", s->stddev, "0 or more");
    if (status == HURRAY_OK && (mask & HURRAY_STATISTICS_NM) && s->nm_n > s->nm_m)
        status = statistics_finding(verify, "nm_n", s->nm_n, "no more than nm_m");
    if (status == HURRAY_OK && (mask & HURRAY_STATISTICS_SPECIALS) && s->has_nan > 1)
        status = statistics_finding(verify, "has_nan", s->has_nan, "0 or 1");
    if (status == HURRAY_OK && (mask & HURRAY_STATISTICS_SPECIALS) && s->has_inf > 1)
        status = statistics_finding(verify, "has_inf", s->has_inf, "0 or 1");
    return status;
}

/* Index buffers of sparse and paged layouts; false: buffer i is not one. */
static bool index_range(const HurrayDescriptor *d, uint32_t buffer, uint64_t *len) {
    uint64_t declared = d->buffers[buffer].byte_size, nnz = d->layout.nnz;
    switch (d->layout_tag) {
    case HURRAY_LAYOUT_COO: *len = 8 * nnz * d->rank; return buffer == 1;
    case HURRAY_LAYOUT_CSR:
    case HURRAY_LAYOUT_CSC: {
        uint64_t n = d->shape[d->layout_tag == HURRAY_LAYOUT_CSR ? 0 : 1];
        *len = buffer == 1 ? 8 * nnz : n == HURRAY_DYNAMIC_DIMENSION ? 0 : 8 * (n + 1);
        return buffer == 1 || buffer == 2;
    }
    case HURRAY_LAYOUT_CSF: *len = declared; return buffer >= 1 && buffer <= 2 * d->rank;
    case HURRAY_LAYOUT_BLOCK_PAGED: *len = declared; return buffer == 1 || buffer == 2;
    default: return false;
    }
}

void hry_verify_range(const HurrayDescriptor *d, uint32_t buffer, uint64_t *offset, uint64_t *len) {
    uint64_t count, scale_bytes, zero_bytes, zero_at;
    unsigned used;
    *offset = *len = 0;
    if (index_range(d, buffer, len)) return;
    *len = 0;
    if (buffer == 0) {
        if (d->element_type == HURRAY_TYPE_FLOAT8_E8M0)
            *len = hry_sparse_is(d) ? d->layout.nnz : d->buffers[0].byte_size;
        else if (!padding_place(d, offset, len, &used))
            *offset = *len = 0;
        return;
    }
    if (!parameter_place(d, &count, &scale_bytes, &zero_bytes, &zero_at)) return;
    if (buffer == d->quantization.scale_buffer) *len = scale_bytes;
    if (zero_bytes && buffer == d->quantization.zero_point_buffer) *len = zero_at + zero_bytes;
}

HurrayStatus hry_verify_tensor(const HurrayDescriptor *descriptor, const HryBytes *ranges, const HurrayAllocator *allocator, HryFound found,
                               void *ctx, HurrayError *error) {
    HryVerify verify = {descriptor, ranges, allocator, found, ctx, error};
    HurrayStatus status = verify_statistics(&verify);
    if (status != HURRAY_OK || hry_descriptor_is_head(descriptor)) return status;
    status = verify_padding(&verify);
    if (status == HURRAY_OK && hry_sparse_is(descriptor)) status = hry_verify_sparse(&verify);
    if (status == HURRAY_OK && descriptor->layout_tag == HURRAY_LAYOUT_BLOCK_PAGED) status = hry_verify_paged(&verify);
    if (status == HURRAY_OK && descriptor->element_type == HURRAY_TYPE_FLOAT8_E8M0) status = verify_scales_as_elements(&verify);
    if (status == HURRAY_OK) status = verify_parameters(&verify);
    return status;
}
