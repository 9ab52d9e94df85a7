#include "format/dense_part.h"

#include <string.h>

#include "base/endian.h"
#include "format/codes.h"
#include "format/dense_transpose.h"
#include "format/sparse.h"

#define CHUNK 512 /* elements decoded at a time: codes and values stay in the first cache */

static bool is_float_aligned(const void *p) { return (uintptr_t)p % _Alignof(float) == 0; }

/* Values as the format wants them: little-endian. */
static void store_values(const float *values, size_t count, uint8_t *dst) {
    if ((const uint8_t *)values == dst && HRY_LE32(1u) == 1u) return;
    for (size_t i = 0; i < count; i++) hry_store_f32(dst + 4 * i, values[i]);
}

/* The next index in row-major order after `step` elements that stay inside the last dimension. */
static void advance(const HurrayDescriptor *d, uint64_t *index, uint64_t step) {
    if (d->rank == 0) return;
    uint32_t k = d->rank - 1;
    index[k] += step;
    for (; k > 0 && index[k] == d->shape[k]; k--) {
        index[k] = 0;
        index[k - 1]++;
    }
}

static uint64_t left_in_row(const HurrayDescriptor *d, const uint64_t *index, uint64_t count) {
    uint64_t left = d->rank ? d->shape[d->rank - 1] - index[d->rank - 1] : 1;
    return left < count ? left : count;
}

/* Own bits of any layout with addresses: run by run. */
static HurrayStatus move_runs(const HryDense *dense, uint64_t first, uint64_t count, uint8_t *dst, HurrayError *error) {
    const HurrayDescriptor *d = dense->descriptor;
    const uint8_t *base = dense->base;
    uint64_t index[HURRAY_MAX_RANK], slot, bytes;
    uint32_t bits = dense->bits;
    hry_index_of_linear(first, d->shape, d->rank, index);
    if (bits < 8) {
        hry_dense_bytes(dense, count, &bytes);
        memset(dst, 0, bytes);
    }
    for (uint64_t done = 0; done < count;) {
        uint8_t codes[CHUNK];
        HryRun run;
        uint64_t limit = left_in_row(d, index, count - done);
        if (bits < 8 && limit > CHUNK) limit = CHUNK;
        HurrayStatus status = hry_dense_run(dense, index, limit, &run, &slot, error);
        if (status != HURRAY_OK) return status;
        if (bits < 8) {
            hry_codes_get(base, bits, run.first, run.step, run.count, codes);
            hry_codes_put(dst, bits, done, run.count, codes);
        } else {
            hry_codes_get(base, bits, run.first, run.step, run.count, dst + done * (bits / 8));
        }
        done += run.count;
        advance(d, index, run.count);
    }
    return HURRAY_OK;
}

/* Elements that lie one behind the other and need no index: a row-major tensor, unquantized or with one scale. */
static HurrayStatus decode_flat(const HryDense *dense, uint64_t first, uint64_t count, uint8_t *dst, HurrayError *error) {
    const uint8_t *base = dense->base;
    uint32_t bits = dense->form.bits;
    uint64_t index[HURRAY_MAX_RANK];
    uint64_t from = first - dense->before;
    float scratch[CHUNK];
    bool aligned = is_float_aligned(dst);
    for (uint64_t done = 0; done < count;) {
        uint8_t unpacked[CHUNK];
        const uint8_t *codes = unpacked;
        size_t n = count - done < CHUNK ? (size_t)(count - done) : CHUNK, bad;
        if (bits < 8)
            hry_codes_get(base, bits, (int64_t)(from + done), 1, n, unpacked);
        else
            codes = base + (from + done) * (bits / 8);
        uint8_t *out = dst + 4 * done;
        float *values = aligned ? (float *)(void *)out : scratch;
        HurrayStatus status;
        if (!dense->dequantizes) {
            if (!hry_values_f32(&dense->form, dense->table, codes, n, values, &bad))
                return hry_dense_bad_value(first + done + bad, codes[bad], error);
        } else {
            index[0] = 0; /* one scale for all: which index it is does not matter */
            status = hry_dense_decode(dense, index, 0, codes, n, values, error);
            if (status != HURRAY_OK) return status;
        }
        store_values(values, n, out);
        done += n;
    }
    return HURRAY_OK;
}

/* At most CHUNK elements of one row: their codes, straight from the buffer where they lie one behind the other. */
static HurrayStatus gather_codes(const HryDense *dense, const uint64_t *index, size_t n, uint8_t *room, const uint8_t **codes,
                                 uint64_t *slot, HurrayError *error) {
    const HurrayDescriptor *d = dense->descriptor;
    const uint8_t *base = dense->base;
    uint32_t bits = dense->form.bits, width = hry_code_bytes(bits);
    uint64_t at[HURRAY_MAX_RANK];
    memcpy(at, index, d->rank * sizeof *at);
    for (size_t done = 0; done < n;) {
        HryRun run;
        HurrayStatus status = hry_dense_run(dense, at, n - done, &run, slot, error);
        if (status != HURRAY_OK) return status;
        run.first -= (int64_t)dense->before;
        if (bits >= 8 && run.step == 1 && run.count == n) {
            *codes = base + run.first * (int64_t)width;
            return HURRAY_OK;
        }
        hry_codes_get(base, bits, run.first, run.step, run.count, room + done * width);
        done += run.count;
        if (d->rank) at[d->rank - 1] += run.count;
    }
    *codes = room;
    return HURRAY_OK;
}

static HurrayStatus decode_rows(const HryDense *dense, uint64_t first, uint64_t count, uint8_t *dst, HurrayError *error) {
    const HurrayDescriptor *d = dense->descriptor;
    uint64_t index[HURRAY_MAX_RANK], slot;
    uint8_t room[CHUNK * 16];
    float scratch[CHUNK];
    bool aligned = is_float_aligned(dst);
    hry_index_of_linear(first, d->shape, d->rank, index);
    for (uint64_t done = 0; done < count;) {
        const uint8_t *codes;
        uint64_t left = left_in_row(d, index, count - done);
        size_t n = left < CHUNK ? (size_t)left : CHUNK;
        HurrayStatus status = gather_codes(dense, index, n, room, &codes, &slot, error);
        if (status != HURRAY_OK) return status;
        uint8_t *out = dst + 4 * done;
        float *values = aligned ? (float *)(void *)out : scratch;
        status = hry_dense_decode(dense, index, slot, codes, n, values, error);
        if (status != HURRAY_OK) return status;
        store_values(values, n, out);
        done += n;
        advance(d, index, n);
    }
    return HURRAY_OK;
}

/* Zeros, and then the stored elements that fall into the stretch. */
static HurrayStatus fill_sparse(const HryDense *dense, uint64_t first, uint64_t count, uint8_t *dst, HurrayError *error) {
    const HurrayDescriptor *d = dense->descriptor;
    uint64_t index[HURRAY_MAX_RANK], position, bytes;
    HryStored stored;
    HurrayStatus status;
    hry_dense_bytes(dense, count, &bytes);
    memset(dst, 0, bytes);
    hry_stored_open(&stored, d, dense->buffers);
    while ((status = hry_stored_next(&stored, index, &position, error)) == HURRAY_OK) {
        uint64_t linear = hry_index_linear(index, d->shape, d->rank);
        if (linear < first || linear - first >= count) continue;
        if (dense->bits >= 8) {
            status = hry_dense_convert(dense, index, 0, (int64_t)position, dst + (linear - first) * (dense->bits / 8), error);
        } else {
            uint8_t code;
            status = hry_dense_convert(dense, index, 0, (int64_t)position, &code, error);
            hry_codes_put(dst, dense->bits, linear - first, 1, &code);
        }
        if (status != HURRAY_OK) return status;
    }
    return status == HURRAY_END_OF_STREAM ? HURRAY_OK : status;
}

/* GGML blocks: whole ones straight into dst, the two at the ends by way of a scratch block. */
static void fill_ggml(const HryDense *dense, uint64_t first, uint64_t count, uint8_t *dst) {
    const HryGgmlType *type = dense->ggml;
    const uint8_t *blocks = dense->base;
    uint64_t per = type->block_elements;
    float scratch[HRY_GGML_MAX_BLOCK_ELEMENTS];
    bool aligned = is_float_aligned(dst);
    for (uint64_t done = 0; done < count;) {
        uint64_t at = first - dense->before + done, inside = at % per, n = per - inside < count - done ? per - inside : count - done;
        const uint8_t *block = blocks + at / per * type->block_bytes;
        uint8_t *out = dst + 4 * done;
        if (inside == 0 && aligned && n == per) {
            n = (count - done) / per * per;
            hry_ggml_decode(type, block, n / per, (float *)(void *)out);
            store_values((float *)(void *)out, n, out);
        } else {
            hry_ggml_decode(type, block, 1, scratch);
            store_values(scratch + inside, n, out);
        }
        done += n;
    }
}

static HurrayStatus fill_rows(const HryDense *dense, uint64_t first, uint64_t count, uint8_t *dst, HurrayError *error) {
    return dense->decodes ? decode_rows(dense, first, count, dst, error) : move_runs(dense, first, count, dst, error);
}

/* Tiles where whole slabs of them fit, rows for the rest. */
static HurrayStatus fill_transposed(const HryTranspose *transpose, uint64_t first, uint64_t count, uint8_t *dst, HurrayError *error) {
    const HryDense *dense = transpose->dense;
    HurrayStatus status = HURRAY_OK;
    for (uint64_t n; count > 0 && status == HURRAY_OK; first += n, count -= n) {
        uint64_t rows = hry_transpose_rows(transpose, first, count);
        n = rows * transpose->slab;
        if (rows) {
            status = hry_transpose_fill(transpose, first, rows, dst, error);
        } else {
            n = transpose->slab - first % transpose->slab; /* to where the next slab begins */
            if (n > count) n = count;
            status = fill_rows(dense, first, n, dst, error);
        }
        dst += n * (dense->bits / 8);
    }
    return status;
}

HurrayStatus hry_dense_fill(const HryDense *dense, uint64_t first, uint64_t count, uint8_t *dst, HurrayError *error) {
    const HurrayDescriptor *d = dense->descriptor;
    if (dense->ggml) {
        fill_ggml(dense, first, count, dst);
        return HURRAY_OK;
    }
    if (hry_sparse_is(d)) return fill_sparse(dense, first, count, dst, error);
    bool row_major = d->layout_tag == HURRAY_LAYOUT_ROW_MAJOR;
    if (row_major && !dense->decodes) {
        hry_codes_copy(dense->base, dense->bits, first - dense->before, count, dst);
        return HURRAY_OK;
    }
    if (row_major && (!dense->dequantizes || dense->dequant.scheme == HURRAY_QUANT_PER_TENSOR_AFFINE))
        return decode_flat(dense, first, count, dst, error);
    HryTranspose transpose;
    if (hry_transpose_plan(&transpose, dense)) return fill_transposed(&transpose, first, count, dst, error);
    return fill_rows(dense, first, count, dst, error);
}
