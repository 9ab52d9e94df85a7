/* A stretch of the dense view from no more of the buffers than it needs. */
#include <string.h>

#include "base/checked.h"
#include "format/dense_part.h"
#include "format/element.h"

static HurrayStatus not_in_order(const char *what, HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "layout", HRY_NO_OFFSET,
                    "%s: a piece of the dense view is not made of a piece of the buffers; load the tensor and take its dense view", what);
}

/* The bytes of elements before .. first + count - 1, `before` where the first of them begins a byte, a group or a block. */
static bool place_codes(const HryDense *dense, HryDenseWindow *window) {
    uint64_t end = window->first + window->count, skipped, bytes;
    uint32_t unit = dense->ggml ? dense->ggml->block_elements : dense->form.bits < 8 ? 8 : 1;
    window->before = window->first / unit * unit;
    if (dense->ggml) {
        skipped = window->before / unit * dense->ggml->block_bytes;
        bytes = hry_div_up(end - window->before, unit) * dense->ggml->block_bytes;
    } else if (!hry_bits_bytes(window->before, dense->form.bits, &skipped) ||
               !hry_bits_bytes(end - window->before, dense->form.bits, &bytes)) {
        return false;
    }
    window->parts[HRY_WINDOW_CODES] = (HryWindowPart){0, 0, bytes};
    return hry_add_u64(skipped, dense->descriptor->byte_offset, &window->parts[HRY_WINDOW_CODES].offset);
}

/* Scales and zero points of the same elements. */
static HurrayStatus place_parameters(const HryDense *dense, HryDenseWindow *window, HurrayError *error) {
    const HurrayQuantization *q = &dense->descriptor->quantization;
    HryDequant dequant;
    uint64_t to;
    HurrayStatus status = hry_dequant_plan(&dequant, dense->descriptor, error);
    if (status != HURRAY_OK) return status;
    if (!hry_dequant_range(&dequant, window->first, window->count, &window->parameter, &to))
        return not_in_order("blocks of a dimension that others follow", error);
    uint64_t count = to - window->parameter;
    uint32_t width = hry_dequant_scale_bytes(&dequant);
    if (count == 0) return HURRAY_OK;
    window->parts[HRY_WINDOW_SCALES] = (HryWindowPart){q->scale_buffer, window->parameter * width, count * width};
    if (dequant.has_zeros)
        window->parts[HRY_WINDOW_ZEROS] = (HryWindowPart){q->zero_point_buffer, dequant.zeros_at + window->parameter * 4, count * 4};
    return HURRAY_OK;
}

HurrayStatus hry_dense_window(const HurrayDescriptor *descriptor, uint8_t type, uint64_t first, uint64_t count, HryDenseWindow *window,
                              HurrayError *error) {
    HryDense dense;
    memset(window, 0, sizeof *window);
    HurrayStatus status = hry_dense_begin(&dense, descriptor, type, error);
    if (status != HURRAY_OK) return status;
    if (!dense.ggml && descriptor->layout_tag != HURRAY_LAYOUT_ROW_MAJOR) return not_in_order("neither row-major nor GGML blocks", error);
    if (!hry_range_inside(first, count, dense.elements))
        return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "count", HRY_NO_OFFSET,
                        "%llu elements from %llu on were asked for, there are %llu", (unsigned long long)count, (unsigned long long)first,
                        (unsigned long long)dense.elements);
    window->first = first;
    window->count = count;
    window->elements = dense.elements;
    hry_dense_bytes(&dense, count, &window->bytes);
    if (count == 0) return HURRAY_OK;
    if (!place_codes(&dense, window))
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "shape", HRY_NO_OFFSET, "more bytes than 64 bits can count");
    return dense.dequantizes ? place_parameters(&dense, window, error) : HURRAY_OK;
}

HurrayStatus hry_dense_open_window(HryDense *dense, const HurrayDescriptor *descriptor, const HryDenseWindow *window,
                                   const uint8_t *const parts[HRY_WINDOW_PARTS], uint8_t type, HurrayError *error) {
    HurrayStatus status = hry_dense_begin(dense, descriptor, type, error);
    if (status != HURRAY_OK) return status;
    dense->base = parts[HRY_WINDOW_CODES];
    dense->before = window->before;
    if (dense->decodes && dense->form.bits <= 8) hry_value_table(&dense->form, dense->table);
    if (!dense->dequantizes) return HURRAY_OK;
    status = hry_dequant_plan(&dense->dequant, descriptor, error);
    if (status != HURRAY_OK) return status;
    dense->dequant.scales = parts[HRY_WINDOW_SCALES];
    dense->dequant.zeros = window->parts[HRY_WINDOW_ZEROS].len ? parts[HRY_WINDOW_ZEROS] : NULL;
    dense->dequant.first = window->parameter;
    return HURRAY_OK;
}
