#include "format/dequant.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "format/codes.h"
#include "format/half.h"

static const float nf4_levels[16] = {-1.0f,
                                     -0.6961928009986877f,
                                     -0.5250730514526367f,
                                     -0.39491748809814453f,
                                     -0.28444138169288635f,
                                     -0.18477343022823334f,
                                     -0.09105003625154495f,
                                     0.0f,
                                     0.07958029955625534f,
                                     0.16093020141124725f,
                                     0.24611230194568634f,
                                     0.33791524171829224f,
                                     0.44070982933044434f,
                                     0.5626170039176941f,
                                     0.7229568362236023f,
                                     1.0f};

/* Integers up to here, and differences of two of them, are exact in float32. */
#define EXACT_INTEGER (1u << 23)

static uint64_t blocks_along(const HurrayDescriptor *d) { return hry_div_up(d->shape[d->quantization.axis], d->quantization.block_size); }

bool hry_dequant_count(const HurrayDescriptor *d, uint64_t *count) {
    const HurrayQuantization *q = &d->quantization;
    if (q->scheme == HURRAY_QUANT_PER_TENSOR_AFFINE) {
        *count = 1;
        return true;
    }
    if (q->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE) {
        *count = d->shape[q->axis];
        return true;
    }
    if (d->layout_tag == HURRAY_LAYOUT_BLOCK_PAGED)
        return q->scheme == HURRAY_QUANT_PER_BLOCK_AFFINE && hry_mul_u64(d->layout.num_pages, d->layout.page_size, count);
    uint64_t all = blocks_along(d);
    bool fits = true, empty = all == 0;
    for (uint32_t k = 0; k < d->rank; k++) {
        if (k == q->axis) continue;
        if (d->shape[k] == HURRAY_DYNAMIC_DIMENSION) return false;
        if (d->shape[k] == 0) empty = true;
        if (fits) fits = hry_mul_u64(all, d->shape[k], &all);
    }
    *count = empty ? 0 : all;
    return empty || fits;
}

HurrayStatus hry_dequant_plan(HryDequant *dequant, const HurrayDescriptor *descriptor, HurrayError *error) {
    const HurrayQuantization *q = &descriptor->quantization;
    memset(dequant, 0, sizeof *dequant);
    dequant->descriptor = descriptor;
    dequant->form = hry_form_of(descriptor);
    dequant->scheme = q->scheme;
    dequant->axis = q->axis;
    dequant->scale_type = HURRAY_TYPE_FLOAT32;
    if (!hry_dequant_count(descriptor, &dequant->count))
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "quantization", HRY_NO_OFFSET,
                        "scheme %u has no defined meaning for this layout; read the buffers instead", q->scheme);
    if (q->scheme == HURRAY_QUANT_PER_TENSOR_AFFINE) return HURRAY_OK;
    if (q->scheme == HURRAY_QUANT_MXFP)
        dequant->scale_type = HURRAY_TYPE_FLOAT8_E8M0;
    else if (q->scheme != HURRAY_QUANT_NF4)
        dequant->scale_type = q->scale_type;
    if (q->scheme >= HURRAY_QUANT_PER_BLOCK_AFFINE) {
        dequant->block_size = q->block_size;
        dequant->blocks = blocks_along(descriptor);
        dequant->by_slot = descriptor->layout_tag == HURRAY_LAYOUT_BLOCK_PAGED;
    }
    bool affine = q->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE || q->scheme == HURRAY_QUANT_PER_BLOCK_AFFINE;
    dequant->has_zeros = affine && !(q->flags & HURRAY_QUANT_SYMMETRIC);
    if (dequant->has_zeros && q->zero_point_buffer == q->scale_buffer)
        dequant->zeros_at = dequant->count * hry_dequant_scale_bytes(dequant);
    return HURRAY_OK;
}

HurrayStatus hry_dequant_open(HryDequant *dequant, const HurrayDescriptor *descriptor, const HryBytes *buffers, HurrayError *error) {
    const HurrayQuantization *q = &descriptor->quantization;
    HurrayStatus status = hry_dequant_plan(dequant, descriptor, error);
    if (status != HURRAY_OK || q->scheme == HURRAY_QUANT_PER_TENSOR_AFFINE) return status;
    dequant->scales = buffers[q->scale_buffer].data;
    if (dequant->has_zeros) dequant->zeros = buffers[q->zero_point_buffer].data;
    if (dequant->zeros) dequant->zeros += dequant->zeros_at;
    return HURRAY_OK;
}

uint32_t hry_dequant_scale_bytes(const HryDequant *dequant) { return hry_code_bytes(hry_form_of_type(dequant->scale_type).bits); }

bool hry_dequant_range(const HryDequant *dequant, uint64_t first, uint64_t count, uint64_t *from, uint64_t *to) {
    const HurrayDescriptor *d = dequant->descriptor;
    uint64_t last = first + count - 1, size, inner = 1;
    *from = *to = 0;
    if (dequant->scheme == HURRAY_QUANT_PER_TENSOR_AFFINE) return true;
    if (dequant->by_slot) return false;
    size = d->shape[dequant->axis];
    for (uint32_t k = dequant->axis + 1; k < d->rank; k++) inner *= d->shape[k];
    if (dequant->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE) {
        bool one_round = first / inner / size == last / inner / size;
        *from = one_round ? first / inner % size : 0;
        *to = one_round ? last / inner % size + 1 : size;
        return true;
    }
    *from = first / size * dequant->blocks + first % size / dequant->block_size;
    *to = last / size * dequant->blocks + last % size / dequant->block_size + 1;
    return inner == 1;
}

float hry_dequant_scale(const HryDequant *dequant, uint64_t i) {
    switch (dequant->scheme == HURRAY_QUANT_PER_TENSOR_AFFINE ? 0 : dequant->scale_type) {
    case 0: return dequant->descriptor->quantization.scale;
    case HURRAY_TYPE_FLOAT16: return hry_f32_of_half(hry_load_u16(dequant->scales + 2 * i));
    case HURRAY_TYPE_BFLOAT16: return hry_f32_of_bfloat16(hry_load_u16(dequant->scales + 2 * i));
    case HURRAY_TYPE_FLOAT8_E8M0: {
        uint8_t e = dequant->scales[i];
        return e == 0 || e == 255 ? NAN : hry_f32_power_of_two(e - 127);
    }
    default: return hry_load_f32(dequant->scales + 4 * i);
    }
}

int32_t hry_dequant_zero(const HryDequant *dequant, uint64_t i) {
    if (dequant->scheme == HURRAY_QUANT_PER_TENSOR_AFFINE) return dequant->descriptor->quantization.zero_point;
    return dequant->zeros ? (int32_t)hry_load_u32(dequant->zeros + 4 * i) : 0;
}

static HurrayStatus no_scale(const HryDequant *dequant, uint64_t i, HurrayError *error) {
    hry_fail(error, HURRAY_ERR_INVALID_DATA, "scale", HRY_NO_OFFSET,
             "block %llu has the scale byte 0x%02X, which is no e8m0 value (0x01 to 0xFE); the scales are damaged",
             (unsigned long long)(dequant->first + i), dequant->scales[i]);
    error->buffer_index = dequant->descriptor->quantization.scale_buffer;
    return HURRAY_ERR_INVALID_DATA;
}

/* Elements that share parameter p. */
static HurrayStatus apply_same(const HryDequant *dequant, uint64_t p, const uint8_t *codes, size_t count, float *values,
                               HurrayError *error) {
    float scale = hry_dequant_scale(dequant, p);
    if (dequant->scheme == HURRAY_QUANT_NF4) {
        for (size_t i = 0; i < count; i++) values[i] = scale * nf4_levels[codes[i] & 15];
        return HURRAY_OK;
    }
    if (dequant->scheme == HURRAY_QUANT_MXFP) {
        if (isnan(scale)) return no_scale(dequant, p, error);
        for (size_t i = 0; i < count; i++) values[i] = scale * values[i];
        return HURRAY_OK;
    }
    int32_t zero = hry_dequant_zero(dequant, p);
    if (dequant->form.bits <= 16 && (uint32_t)zero + EXACT_INTEGER <= 2 * EXACT_INTEGER) {
        float offset = (float)zero;
        for (size_t i = 0; i < count; i++) values[i] = scale * (values[i] - offset);
        return HURRAY_OK;
    }
    uint32_t width = hry_code_bytes(dequant->form.bits);
    for (size_t i = 0; i < count; i++) values[i] = scale * (float)(hry_value_integer(&dequant->form, codes + i * width) - zero);
    return HURRAY_OK;
}

#define EACH 128 /* parameters gathered at a time */

static void gather_scales(const HryDequant *dequant, uint64_t p, uint64_t step, size_t count, float *scales) {
    if (dequant->scale_type == HURRAY_TYPE_FLOAT32 && step == 1)
        for (size_t i = 0; i < count; i++) scales[i] = hry_load_f32(dequant->scales + 4 * (p + i));
    else
        for (size_t i = 0; i < count; i++) scales[i] = hry_dequant_scale(dequant, p + i * step);
}

/* False: some zero point is beyond what float32 holds exactly. */
static bool gather_zeros(const HryDequant *dequant, uint64_t p, uint64_t step, size_t count, float *zeros) {
    uint32_t beyond = 0;
    if (!dequant->zeros) {
        for (size_t i = 0; i < count; i++) zeros[i] = 0;
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t zero = hry_load_u32(dequant->zeros + 4 * (p + i * step));
        beyond |= zero + EXACT_INTEGER > 2 * EXACT_INTEGER;
        zeros[i] = (float)(int32_t)zero;
    }
    return !beyond;
}

/* Each element its own parameter: p, p + step, ... */
static HurrayStatus apply_each(const HryDequant *dequant, uint64_t p, uint64_t step, const uint8_t *codes, size_t count, float *values,
                               HurrayError *error) {
    float scales[EACH], zeros[EACH];
    uint32_t width = hry_code_bytes(dequant->form.bits);
    for (size_t done = 0; done < count; done += EACH, p += EACH * step) {
        size_t n = count - done < EACH ? count - done : EACH;
        float *out = values + done;
        gather_scales(dequant, p, step, n, scales);
        if (dequant->scheme == HURRAY_QUANT_NF4) {
            for (size_t i = 0; i < n; i++) out[i] = scales[i] * nf4_levels[codes[done + i] & 15];
        } else if (dequant->scheme == HURRAY_QUANT_MXFP) {
            for (size_t i = 0; i < n; i++)
                if (isnan(scales[i])) return no_scale(dequant, p + i * step, error);
            for (size_t i = 0; i < n; i++) out[i] = scales[i] * out[i];
        } else if (gather_zeros(dequant, p, step, n, zeros) && dequant->form.bits <= 16) {
            for (size_t i = 0; i < n; i++) out[i] = scales[i] * (out[i] - zeros[i]);
        } else {
            for (size_t i = 0; i < n; i++) {
                int64_t stored = hry_value_integer(&dequant->form, codes + (done + i) * width);
                out[i] = scales[i] * (float)(stored - hry_dequant_zero(dequant, p + i * step));
            }
        }
    }
    return HURRAY_OK;
}

/* Row-major number of an index over all dimensions but the axis. */
static uint64_t outer_index(const HryDequant *dequant, const uint64_t *index) {
    uint64_t outer = 0;
    for (uint32_t k = 0; k < dequant->descriptor->rank; k++)
        if (k != dequant->axis) outer = outer * dequant->descriptor->shape[k] + index[k];
    return outer;
}

HurrayStatus hry_dequant_apply(const HryDequant *dequant, const uint64_t *index, uint64_t slot, const uint8_t *codes, size_t count,
                               float *values, HurrayError *error) {
    if (dequant->scheme == HURRAY_QUANT_PER_TENSOR_AFFINE) return apply_same(dequant, 0, codes, count, values, error);
    if (dequant->by_slot) return apply_same(dequant, slot, codes, count, values, error);
    bool along_last = dequant->axis + 1 == dequant->descriptor->rank;
    uint64_t on_axis = index[dequant->axis], channel = on_axis - dequant->first;
    if (dequant->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE) {
        if (!along_last) return apply_same(dequant, channel, codes, count, values, error);
        return apply_each(dequant, channel, 1, codes, count, values, error);
    }
    uint64_t p = outer_index(dequant, index) * dequant->blocks + on_axis / dequant->block_size - dequant->first;
    if (!along_last) return apply_each(dequant, p, dequant->blocks, codes, count, values, error);
    uint32_t width = hry_code_bytes(dequant->form.bits);
    uint64_t left = dequant->block_size - on_axis % dequant->block_size; /* of the first block */
    for (size_t done = 0; done < count; p++, left = dequant->block_size) {
        size_t n = left < count - done ? (size_t)left : count - done;
        HurrayStatus status = apply_same(dequant, p, codes + done * width, n, values + done, error);
        if (status != HURRAY_OK) return status;
        done += n;
    }
    return HURRAY_OK;
}
