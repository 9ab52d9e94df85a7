#include "format/dense_transpose.h"

#include <string.h>

#include "base/endian.h"
#include "format/codes.h"

#define COLUMNS 128 /* elements of a row taken at a time */
#define LINE 64     /* bytes of the buffer used at a time: a cache line, so that none is fetched twice */
#define LEAST_ROWS 4

static uint64_t magnitude(int64_t step) { return step < 0 ? -(uint64_t)step : (uint64_t)step; }

bool hry_transpose_plan(HryTranspose *transpose, const HryDense *dense) {
    const HurrayDescriptor *d = dense->descriptor;
    uint32_t last = d->rank - 1, bits = dense->form.bits;
    if (d->rank < 2 || bits < 8 || bits > 128 || !hry_address_steps(d, transpose->steps)) return false;
    transpose->dense = dense;
    transpose->dimension = last;
    for (uint32_t k = 0; k < last; k++)
        if (d->shape[k] >= LEAST_ROWS && magnitude(transpose->steps[k]) < magnitude(transpose->steps[transpose->dimension]))
            transpose->dimension = k;
    if (transpose->dimension == last || magnitude(transpose->steps[last]) * (bits / 8) < LINE) return false;
    transpose->slab = 1;
    for (uint32_t k = transpose->dimension + 1; k < d->rank; k++) transpose->slab *= d->shape[k];
    return true;
}

/* rows x columns elements into a tile whose rows lie one behind the other. `width` is a constant at every call but the last. */
static inline void take_tile(const uint8_t *src, int64_t row_step, int64_t column_step, size_t rows, size_t columns, size_t width,
                             uint8_t *tile) {
    for (size_t c = 0; c < columns; c++)
        for (size_t r = 0; r < rows; r++)
            memcpy(tile + (r * columns + c) * width, src + (int64_t)r * row_step + (int64_t)c * column_step, width);
}

static void take(const uint8_t *src, int64_t row_step, int64_t column_step, size_t rows, size_t columns, size_t width, uint8_t *tile) {
    switch (width) {
    case 1: take_tile(src, row_step, column_step, rows, columns, 1, tile); break;
    case 2: take_tile(src, row_step, column_step, rows, columns, 2, tile); break;
    case 4: take_tile(src, row_step, column_step, rows, columns, 4, tile); break;
    case 8: take_tile(src, row_step, column_step, rows, columns, 8, tile); break;
    default: take_tile(src, row_step, column_step, rows, columns, width, tile); break;
    }
}

/* The rows of one tile to where they belong: dst is the place of the first. */
static HurrayStatus put_rows(const HryTranspose *transpose, uint64_t *index, const uint8_t *tile, size_t rows, size_t columns, uint8_t *dst,
                             HurrayError *error) {
    const HryDense *dense = transpose->dense;
    size_t width = dense->form.bits / 8;
    uint64_t pitch = transpose->slab * (dense->bits / 8), start = index[transpose->dimension];
    HurrayStatus status = HURRAY_OK;
    for (size_t r = 0; r < rows && status == HURRAY_OK; r++, dst += pitch, tile += columns * width) {
        if (dense->decodes) {
            float values[COLUMNS];
            index[transpose->dimension] = start + r;
            status = hry_dense_decode(dense, index, 0, tile, columns, values, error);
            for (size_t c = 0; c < columns; c++) hry_store_f32(dst + 4 * c, values[c]);
        } else {
            memcpy(dst, tile, columns * width);
        }
    }
    index[transpose->dimension] = start;
    return status;
}

/* All rows of one position in the dimensions between `dimension` and the last. index[dimension] and index[last] are 0-based starts. */
static HurrayStatus transpose_plane(const HryTranspose *transpose, uint64_t *index, uint64_t rows, uint8_t *dst, HurrayError *error) {
    const HryDense *dense = transpose->dense;
    const HurrayDescriptor *d = dense->descriptor;
    const uint8_t *base = dense->base;
    uint32_t last = d->rank - 1, width = dense->form.bits / 8;
    uint64_t start = index[transpose->dimension], at_once = LINE / width;
    int64_t row_step = transpose->steps[transpose->dimension] * (int64_t)width;
    int64_t column_step = (int64_t)((uint64_t)transpose->steps[last] * width); /* of one column any size, and never used */
    uint8_t tile[COLUMNS * LINE];
    HurrayStatus status = HURRAY_OK;
    for (uint64_t c = 0; c < d->shape[last] && status == HURRAY_OK; c += COLUMNS) {
        size_t columns = d->shape[last] - c < COLUMNS ? (size_t)(d->shape[last] - c) : COLUMNS;
        for (uint64_t r = 0; r < rows && status == HURRAY_OK; r += at_once) {
            size_t n = rows - r < at_once ? (size_t)(rows - r) : (size_t)at_once;
            index[last] = c;
            index[transpose->dimension] = start + r;
            take(base + hry_address_of(d, index) * (int64_t)width, row_step, column_step, n, columns, width, tile);
            status = put_rows(transpose, index, tile, n, columns, dst + (r * transpose->slab + c) * (dense->bits / 8), error);
        }
    }
    index[last] = 0;
    index[transpose->dimension] = start;
    return status;
}

uint64_t hry_transpose_rows(const HryTranspose *transpose, uint64_t first, uint64_t count) {
    uint64_t rows = count / transpose->slab, size = transpose->dense->descriptor->shape[transpose->dimension];
    if (first % transpose->slab != 0) return 0;
    uint64_t left = size - first / transpose->slab % size;
    if (rows > left) rows = left;
    return rows < LEAST_ROWS ? 0 : rows;
}

HurrayStatus hry_transpose_fill(const HryTranspose *transpose, uint64_t first, uint64_t rows, uint8_t *dst, HurrayError *error) {
    const HurrayDescriptor *d = transpose->dense->descriptor;
    uint64_t index[HURRAY_MAX_RANK], inner = d->shape[d->rank - 1];
    hry_index_of_linear(first, d->shape, d->rank, index);
    for (uint64_t at = 0; at < transpose->slab; at += inner) {
        HurrayStatus status = transpose_plane(transpose, index, rows, dst + at * (transpose->dense->bits / 8), error);
        if (status != HURRAY_OK) return status;
        for (uint32_t k = d->rank - 1; k-- > transpose->dimension + 1;) { /* the next position between the two dimensions */
            if (++index[k] < d->shape[k]) break;
            index[k] = 0;
        }
    }
    return HURRAY_OK;
}
