#include "format/extent.h"

#include "base/checked.h"
#include "format/element.h"
#include "format/layout.h"
#include "format/quant.h"

/* Element offsets are calculated in 128 bits and clamped to +-2^70: whatever reaches there is too much for any buffer,
 * and clamping keeps both order and sign. */
__extension__ typedef __int128 Wide;
#define WIDE_LIMIT ((Wide)1 << 70)

typedef struct Reach {
    Wide least, greatest;
} Reach;

static Wide clamp(Wide v) { return v > WIDE_LIMIT ? WIDE_LIMIT : v < -WIDE_LIMIT ? -WIDE_LIMIT : v; }

static Wide wide_add(Wide a, Wide b) { return clamp(a + b); } /* operands are clamped */

static Wide wide_mul(Wide a, Wide b) {
    Wide product;
    if (!__builtin_mul_overflow(a, b, &product)) return clamp(product);
    return (a < 0) == (b < 0) ? WIDE_LIMIT : -WIDE_LIMIT;
}

static Wide wide_product(const uint64_t *sizes, uint32_t count) {
    Wide product = 1;
    for (uint32_t k = 0; k < count; k++) {
        if (sizes[k] == 0) return 0;
        product = wide_mul(product, (Wide)sizes[k]);
    }
    return product;
}

static bool is_dense(uint8_t tag) {
    return (tag >= HURRAY_LAYOUT_ROW_MAJOR && tag <= HURRAY_LAYOUT_MORTON) || tag == HURRAY_LAYOUT_HILBERT;
}

/* ---- reach of each layout; no dimension is 0 or dynamic ---- */

static Reach reach_strided(const int64_t *strides, const uint64_t *sizes, const uint64_t *tile, uint32_t rank) {
    Reach reach = {0, 0};
    for (uint32_t k = 0; k < rank; k++) {
        uint64_t count = tile ? hry_div_up(sizes[k], tile[k]) : sizes[k];
        Wide far = wide_mul((Wide)strides[k], (Wide)(count - 1));
        if (far < 0)
            reach.least = wide_add(reach.least, far);
        else
            reach.greatest = wide_add(reach.greatest, far);
    }
    return reach;
}

/* Offset of a tile, of a tile within that one, ... each level adds (its least tile number) x (its elements), the last one its inner reach.
 */
static Reach reach_tiled(const HurrayLayout *layout, const uint64_t *shape, uint32_t rank) {
    Reach sum = {0, 0};
    const uint64_t *around = shape;
    for (uint32_t level = 0; level < layout->tile_count; level++) {
        const HurrayTileLevel *tile = &layout->tiles[level];
        Wide per = wide_product(tile->tile_shape, rank);
        Reach outer = {0, 0};
        if (tile->outer == HURRAY_ORDER_STRIDED) {
            outer = reach_strided(tile->outer_strides, around, tile->tile_shape, rank);
        } else {
            Wide grid = 1;
            for (uint32_t k = 0; k < rank; k++) grid = wide_mul(grid, (Wide)hry_div_up(around[k], tile->tile_shape[k]));
            outer.greatest = grid - 1;
        }
        sum.least = wide_add(sum.least, wide_mul(outer.least, per));
        sum.greatest = wide_add(sum.greatest, wide_mul(outer.greatest, per));
        if (tile->inner == HURRAY_ORDER_STRIDED) {
            Reach inner = reach_strided(tile->inner_strides, tile->tile_shape, NULL, rank);
            sum.least = wide_add(sum.least, inner.least);
            sum.greatest = wide_add(sum.greatest, inner.greatest);
        } else if (tile->inner != HURRAY_ORDER_TILED) {
            sum.greatest = wide_add(sum.greatest, per - 1);
        }
        around = tile->tile_shape;
    }
    return sum;
}

/* Greatest Morton code of the corner's index bits: of the last element, or of all-ones indices. */
static Wide morton_code(const HurrayDescriptor *d, bool all_ones) {
    Wide code = 0;
    for (uint32_t k = 0; k < d->rank; k++) {
        uint32_t bits = d->layout.bits[k] < 64 ? d->layout.bits[k] : 64;
        for (uint32_t b = 0; b < bits; b++) {
            if (!all_ones && !((d->shape[k] - 1) >> b & 1)) continue;
            uint64_t place = (uint64_t)b * d->rank + k;
            if (place >= 70) return WIDE_LIMIT;
            code |= (Wide)1 << place;
        }
    }
    return code;
}

static bool reach_morton(const HurrayDescriptor *d, bool originate, Reach *out) {
    uint64_t bits = 0;
    for (uint32_t k = 0; k < d->rank; k++) bits += d->layout.bits[k];
    if (bits > 63) return false;
    Wide full = ((Wide)1 << bits) - 1, code = morton_code(d, originate);
    out->least = 0;
    out->greatest = full > code ? full : code;
    return true;
}

/* False: the curve alone does not fit 64 bits. */
static bool reach_of(const HurrayDescriptor *d, bool originate, Reach *out) {
    Reach reach = {0, 0};
    switch (d->layout_tag) {
    case HURRAY_LAYOUT_STRIDED: reach = reach_strided(d->layout.strides, d->shape, NULL, d->rank); break;
    case HURRAY_LAYOUT_TILED: reach = reach_tiled(&d->layout, d->shape, d->rank); break;
    case HURRAY_LAYOUT_MORTON: return reach_morton(d, originate, out);
    case HURRAY_LAYOUT_HILBERT:
        if ((uint64_t)d->rank * d->layout.order > 63) return false;
        reach.greatest = ((Wide)1 << (d->rank * d->layout.order)) - 1;
        break;
    default: reach.greatest = wide_product(d->shape, d->rank) - 1;
    }
    *out = reach;
    return true;
}

bool hry_extent_reach(const HurrayDescriptor *d, int64_t *least, int64_t *greatest) {
    Reach reach;
    if (!reach_of(d, false, &reach) || reach.least < INT64_MIN || reach.greatest > INT64_MAX) return false;
    *least = (int64_t)reach.least;
    *greatest = (int64_t)reach.greatest;
    return true;
}

static Wide floor_div(Wide a, Wide b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/* The byte an element begins in, from byte_offset; `after`: one past its last byte. */
static Wide element_byte(Wide element, uint32_t bits, bool after) {
    if (bits == 6) return (floor_div(element, 4) + after) * 3;
    if (bits < 8) return floor_div(element, (Wide)(8 / bits)) + after;
    return (element + after) * (Wide)(bits / 8);
}

static HurrayStatus too_large(HurrayError *error, const char *what) {
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shape", HRY_NO_OFFSET,
                    "the %s of this shape and layout takes more bytes than 64 bits can count", what);
}

static HurrayStatus dense_extent(const HurrayDescriptor *d, bool originate, HryExtent *out, HurrayError *error) {
    bool empty = false;
    for (uint32_t k = 0; k < d->rank; k++) empty |= d->shape[k] == 0;
    out->least = d->byte_offset;
    out->known = true;
    if (hry_descriptor_is_dynamic(d)) {
        out->known = false;
        return HURRAY_OK;
    }
    if (empty) return HURRAY_OK;
    Reach reach;
    if (!reach_of(d, originate, &reach))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, d->layout_tag == HURRAY_LAYOUT_MORTON ? "layout.bits" : "layout.order",
                        HRY_NO_OFFSET, "a %s curve through this many bits has more elements than 64 bits can count",
                        hry_layout_name(d->layout_tag));
    /* Two or more of the smallest elements share a byte: their bytes can be counted where they cannot. */
    bool counts = d->layout_tag == HURRAY_LAYOUT_ROW_MAJOR || d->layout_tag == HURRAY_LAYOUT_COLUMN_MAJOR;
    if (counts && reach.greatest >= (Wide)UINT64_MAX)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shape", HRY_NO_OFFSET, "this shape has more elements than 64 bits can count");
    Wide first = (Wide)d->byte_offset + element_byte(reach.least, d->element_bits, false);
    Wide end = (Wide)d->byte_offset + element_byte(reach.greatest, d->element_bits, true);
    if (first < 0)
        return hry_fail(
            error, HURRAY_ERR_INVALID_LAYOUT, "byte_offset", HRY_NO_OFFSET,
            "negative strides reach before the start of buffer 0; byte_offset is %llu, expected at least as much as they reach back",
            (unsigned long long)d->byte_offset);
    if (end > (Wide)UINT64_MAX) return too_large(error, "data");
    out->least = (uint64_t)end;
    return HURRAY_OK;
}

/* ---- buffers of sparse and paged layouts ---- */

static bool words(uint64_t count, uint64_t more, uint64_t width, uint64_t *out) {
    uint64_t sum;
    return hry_add_u64(count, more, &sum) && hry_mul_u64(sum, width, out);
}

static HurrayStatus sparse_extent(const HurrayDescriptor *d, uint32_t buffer, HryExtent *out, HurrayError *error) {
    uint64_t nnz = d->layout.nnz, count;
    out->known = true;
    if (buffer == 0) return hry_bits_bytes(nnz, d->element_bits, &out->least) ? HURRAY_OK : too_large(error, "value buffer");
    if (d->layout_tag == HURRAY_LAYOUT_COO) {
        bool fits = hry_mul_u64(nnz, d->rank, &count) && words(count, 0, 8, &out->least);
        return fits ? HURRAY_OK : too_large(error, "index buffer");
    }
    if (d->layout_tag == HURRAY_LAYOUT_CSF) {
        bool last = buffer == 2 * d->rank, is_pos = buffer % 2 == 1;
        out->known = last || buffer == 1;
        if (last) return words(nnz, 0, 8, &out->least) ? HURRAY_OK : too_large(error, "last coordinate buffer");
        out->least = buffer == 1 ? 16 : is_pos ? 8 : 0;
        return HURRAY_OK;
    }
    if (buffer == 1) return words(nnz, 0, 8, &out->least) ? HURRAY_OK : too_large(error, "index buffer");
    uint64_t size = d->shape[d->layout_tag == HURRAY_LAYOUT_CSR ? 0 : 1];
    if (size == HURRAY_DYNAMIC_DIMENSION) {
        out->known = false;
        return HURRAY_OK;
    }
    return words(size, 1, 8, &out->least) ? HURRAY_OK : too_large(error, "pointer buffer");
}

static HurrayStatus paged_extent(const HurrayDescriptor *d, uint32_t buffer, HryExtent *out, HurrayError *error) {
    const HurrayLayout *layout = &d->layout;
    if (buffer == 1) return HURRAY_OK; /* the block table: as long as seq_ptr says */
    if (buffer == 2) {
        out->known = true;
        return words(layout->num_seqs, 1, layout->index_type ? 8 : 4, &out->least) ? HURRAY_OK : too_large(error, "sequence buffer");
    }
    if (d->shape[1] == HURRAY_DYNAMIC_DIMENSION || d->shape[2] == HURRAY_DYNAMIC_DIMENSION) return HURRAY_OK;
    const uint64_t sizes[] = {layout->num_pages, layout->page_size, d->shape[1], d->shape[2]};
    uint64_t elements;
    out->known = true;
    bool fits = hry_product_u64(sizes, 4, &elements) && hry_bits_bytes(elements, d->element_bits, &out->least);
    return fits ? HURRAY_OK : too_large(error, "page pool");
}

/* ---- quantization parameters ---- */

/* How many scales there are. *known false: a dynamic dimension, or a scheme without meaning for this layout. */
static bool parameter_count(const HurrayDescriptor *d, bool *known, uint64_t *out) {
    const HurrayQuantization *q = &d->quantization;
    *known = true;
    if (q->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE) {
        *out = d->shape[q->axis];
        return true;
    }
    if (d->layout_tag == HURRAY_LAYOUT_BLOCK_PAGED) {
        *known = q->scheme == HURRAY_QUANT_PER_BLOCK_AFFINE;
        return !*known || hry_mul_u64(d->layout.num_pages, d->layout.page_size, out);
    }
    uint64_t sizes[HURRAY_MAX_RANK];
    for (uint32_t k = 0; k < d->rank; k++) {
        sizes[k] = k == q->axis ? hry_div_up(d->shape[k], q->block_size) : d->shape[k];
        if (sizes[k] == HURRAY_DYNAMIC_DIMENSION) *known = false;
    }
    return !*known || hry_product_u64(sizes, d->rank, out);
}

static HurrayStatus parameter_extent(const HurrayDescriptor *d, uint32_t buffer, HryExtent *out, HurrayError *error) {
    const HurrayQuantization *q = &d->quantization;
    bool scales = buffer == q->scale_buffer, zeros = hry_quant_has_zero_points(q) && buffer == q->zero_point_buffer;
    uint64_t count = 0, scale_bytes = 0, zero_bytes = 0;
    if (!scales && !zeros) return HURRAY_OK; /* a private layout's own */
    bool fits = parameter_count(d, &out->known, &count);
    if (fits && !out->known) return HURRAY_OK;
    if (scales) fits = fits && hry_mul_u64(count, hry_quant_scale_bytes(q), &scale_bytes);
    if (zeros) fits = fits && hry_mul_u64(count, 4, &zero_bytes);
    if (!fits || !hry_add_u64(scale_bytes, zero_bytes, &out->least)) return too_large(error, "quantization parameters");
    out->exact = !(scales && zeros);
    return HURRAY_OK;
}

uint32_t hry_extent_buffer_count(const HurrayDescriptor *d) {
    uint32_t own = hry_tag_is_private(d->layout_tag) ? 1 : hry_layout_buffer_count(d->layout_tag, d->rank);
    return own + (d->has_quantization ? hry_quant_buffer_count(&d->quantization) : 0);
}

HurrayStatus hry_extent_buffer(const HurrayDescriptor *d, uint32_t buffer, bool originate, HryExtent *out, HurrayError *error) {
    bool is_private = hry_tag_is_private(d->layout_tag);
    uint32_t own = is_private ? 1 : hry_layout_buffer_count(d->layout_tag, d->rank);
    *out = (HryExtent){0, false, false};
    if (buffer >= own) return d->has_quantization ? parameter_extent(d, buffer, out, error) : HURRAY_OK;
    if (is_private) return HURRAY_OK;
    if (is_dense(d->layout_tag)) return dense_extent(d, originate, out, error);
    if (hry_layout_is_sparse(d->layout_tag)) return sparse_extent(d, buffer, out, error);
    return paged_extent(d, buffer, out, error);
}
