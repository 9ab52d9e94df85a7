#include "format/dense.h"

#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "format/address.h"
#include "format/codes.h"
#include "format/dense_part.h"
#include "format/element.h"
#include "format/paged.h"
#include "format/rounding.h"
#include "format/sparse.h"

static bool is_private_layout(const HurrayDescriptor *d) { return hry_tag_is_private(d->layout_tag); }

/* Blocks of GGML (docs/foreign-formats.md 2.6): recognised only when everything about them fits. */
static HurrayStatus find_ggml(const HurrayDescriptor *d, const HryGgmlType **type, HurrayError *error) {
    const HurrayLayout *layout = &d->layout;
    if (d->layout_tag != HRY_GGML_LAYOUT_TAG || layout->private_id != HRY_GGML_LAYOUT_ID)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "layout", HRY_NO_OFFSET,
                        "private layout 0x%02X with id 0x%016llX: only its maker knows where elements lie; read its buffers instead",
                        d->layout_tag, (unsigned long long)layout->private_id);
    if (layout->private_len != HRY_GGML_LAYOUT_DATA)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "layout", HRY_NO_OFFSET,
                        "a GGML block layout with %u bytes of data, expected 12; read its buffers instead", layout->private_len);
    const uint8_t *data = layout->private_data;
    uint32_t number = hry_load_u32(data), elements = hry_load_u32(data + 4), bytes = hry_load_u32(data + 8);
    const HryGgmlType *found = hry_ggml_find(number);
    if (!found || found->block_elements != elements || found->block_bytes != bytes)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "layout", HRY_NO_OFFSET,
                        "GGML type %u with blocks of %u elements in %u bytes is not known; read its buffers instead", number, elements,
                        bytes);
    uint64_t count, blocks;
    if (d->element_type != HURRAY_TYPE_FLOAT32 || d->byte_offset || d->has_quantization || d->rank == 0 ||
        d->shape[d->rank - 1] % elements != 0 || !hry_descriptor_elements(d, &count) || !hry_mul_u64(count / elements, bytes, &blocks) ||
        d->buffer_count != 1 || d->buffers[0].byte_size != blocks)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "layout", HRY_NO_OFFSET,
                        "%s blocks whose shape, type or buffer size does not fit them; read the buffers instead", found->name);
    if (!found->has_values)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "layout", HRY_NO_OFFSET,
                        "%s blocks need a lookup table that this library does not carry; their bytes load unchanged, their values do not "
                        "decode",
                        found->name);
    *type = found;
    return HURRAY_OK;
}

/* Can float32 come out? */
static HurrayStatus check_values(const HurrayDescriptor *d, const HryForm *form, HurrayError *error) {
    if (form->kind == HRY_FORM_COMPLEX)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "element_type", HRY_NO_OFFSET,
                        "%s elements are no float32 numbers; ask for the tensor's own type", hry_element_name(d->element_type));
    if (form->kind == HRY_FORM_NONE)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "element_type", HRY_NO_OFFSET,
                        "private type 0x%02X: only its maker knows its values; ask for the tensor's own type", d->element_type);
    return HURRAY_OK;
}

HurrayStatus hry_dense_begin(HryDense *dense, const HurrayDescriptor *d, uint8_t type, HurrayError *error) {
    uint64_t bytes;
    memset(dense, 0, sizeof *dense);
    dense->descriptor = d;
    if (type != HRY_DENSE_OWN && type != HURRAY_TYPE_FLOAT32)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "type", HRY_NO_OFFSET,
                        "type 0x%02X (%s) was asked for; the dense view gives the tensor's own type (0) or float32", type,
                        hry_element_name(type));
    if (hry_descriptor_is_dynamic(d))
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "shape", HRY_NO_OFFSET,
                        "a dimension is dynamic: its size is not stored, so there is no dense view; read the buffers instead");
    if (d->layout_tag == HURRAY_LAYOUT_COMPOSITE && d->layout.rule == HURRAY_RULE_GROUP)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "layout", HRY_NO_OFFSET,
                        "a group has no elements of its own; read its members one by one");
    if (is_private_layout(d)) {
        HurrayStatus status = find_ggml(d, &dense->ggml, error);
        if (status != HURRAY_OK) return status;
    }
    if (!hry_descriptor_elements(d, &dense->elements))
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "shape", HRY_NO_OFFSET, "more elements than 64 bits can count");
    dense->form = hry_form_of(d);
    dense->bits = dense->form.bits;
    if (dense->ggml) {
        dense->decodes = true;
    } else if (type == HURRAY_TYPE_FLOAT32) {
        HurrayStatus status = check_values(d, &dense->form, error);
        if (status != HURRAY_OK) return status;
        dense->dequantizes = d->has_quantization;
        dense->decodes = dense->dequantizes || d->element_type != HURRAY_TYPE_FLOAT32;
        dense->bits = 32;
    }
    if (!hry_dense_bytes(dense, dense->elements, &bytes))
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "shape", HRY_NO_OFFSET, "%llu elements take more bytes than 64 bits can count",
                        (unsigned long long)dense->elements);
    return HURRAY_OK;
}

bool hry_dense_bytes(const HryDense *dense, uint64_t n, uint64_t *bytes) { return hry_bits_bytes(n, dense->bits, bytes); }

HurrayStatus hry_dense_plan(const HurrayDescriptor *descriptor, uint8_t type, uint64_t *elements, uint64_t *bytes, HurrayError *error) {
    HryDense dense;
    HurrayStatus status = hry_dense_begin(&dense, descriptor, type, error);
    if (status != HURRAY_OK) return status;
    *elements = dense.elements;
    hry_dense_bytes(&dense, dense.elements, bytes);
    return HURRAY_OK;
}

HurrayStatus hry_dense_open(HryDense *dense, const HurrayDescriptor *descriptor, const HryBytes *buffers, uint8_t type,
                            HurrayError *error) {
    HurrayStatus status = hry_dense_begin(dense, descriptor, type, error);
    if (status != HURRAY_OK) return status;
    dense->buffers = buffers;
    if (hry_descriptor_is_head(descriptor))
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "layout", HRY_NO_OFFSET,
                        "a composite's head has no buffers; take the dense view of the whole item");
    for (uint32_t i = 0; i < descriptor->buffer_count; i++)
        if (buffers[i].size < descriptor->buffers[i].byte_size || (buffers[i].size && !buffers[i].data)) {
            hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "byte_size", HRY_NO_OFFSET, "buffer %u has %llu bytes, its descriptor says %llu",
                     i, (unsigned long long)(buffers[i].data ? buffers[i].size : 0), (unsigned long long)descriptor->buffers[i].byte_size);
            error->buffer_index = i;
            return HURRAY_ERR_INVALID_ARGUMENT;
        }
    if (dense->elements == 0) return HURRAY_OK;
    dense->base = buffers[0].data + descriptor->byte_offset;
    if (descriptor->layout_tag == HURRAY_LAYOUT_BLOCK_PAGED) {
        status = hry_paged_check(descriptor, buffers, error);
        if (status != HURRAY_OK) return status;
    }
    if (dense->decodes && dense->form.bits <= 8) hry_value_table(&dense->form, dense->table);
    return dense->dequantizes ? hry_dequant_open(&dense->dequant, descriptor, buffers, error) : HURRAY_OK;
}

HurrayStatus hry_dense_bad_value(uint64_t element, uint8_t code, HurrayError *error) {
    hry_fail(error, HURRAY_ERR_INVALID_DATA, "element_type", HRY_NO_OFFSET,
             "element %llu has the bits 0x%02X, which are no float8_e8m0 value (0x01 to 0xFE)", (unsigned long long)element, code);
    error->buffer_index = 0;
    return HURRAY_ERR_INVALID_DATA;
}

HurrayStatus hry_dense_decode(const HryDense *dense, const uint64_t *index, uint64_t slot, const uint8_t *codes, size_t count,
                              float *values, HurrayError *error) {
    size_t bad;
    if (!hry_values_f32(&dense->form, dense->table, codes, count, values, &bad))
        return hry_dense_bad_value(hry_index_linear(index, dense->descriptor->shape, dense->descriptor->rank) + bad, codes[bad], error);
    return dense->dequantizes ? hry_dequant_apply(&dense->dequant, index, slot, codes, count, values, error) : HURRAY_OK;
}

HurrayStatus hry_dense_run(const HryDense *dense, const uint64_t *index, uint64_t limit, HryRun *run, uint64_t *slot, HurrayError *error) {
    const HurrayDescriptor *d = dense->descriptor;
    *slot = 0;
    if (d->layout_tag != HURRAY_LAYOUT_BLOCK_PAGED) {
        *run = hry_address_run(d, index, limit);
        return HURRAY_OK;
    }
    HurrayStatus status = hry_paged_slot(d, dense->buffers, index[0], slot, error);
    if (status == HURRAY_OK) *run = (HryRun){(int64_t)((*slot * d->shape[1] + index[1]) * d->shape[2] + index[2]), 1, limit};
    return status;
}

HurrayStatus hry_dense_convert(const HryDense *dense, const uint64_t *index, uint64_t slot, int64_t o, uint8_t *dst, HurrayError *error) {
    const uint8_t *base = dense->base;
    uint8_t code[16];
    float value;
    if (!dense->decodes) {
        hry_codes_get(base, dense->bits, o, 1, 1, dst);
        return HURRAY_OK;
    }
    hry_codes_get(base, dense->form.bits, o, 1, 1, code);
    HurrayStatus status = hry_dense_decode(dense, index, slot, code, 1, &value, error);
    if (status == HURRAY_OK) hry_store_f32(dst, value);
    return status;
}

static HurrayStatus element(const HryDense *dense, const uint64_t *index, void *dst, HurrayError *error) {
    const HurrayDescriptor *d = dense->descriptor;
    HurrayStatus status;
    if (dense->ggml) {
        float block[HRY_GGML_MAX_BLOCK_ELEMENTS];
        uint64_t linear = hry_index_linear(index, d->shape, d->rank), per = dense->ggml->block_elements;
        hry_ggml_decode(dense->ggml, dense->base + linear / per * dense->ggml->block_bytes, 1, block);
        hry_store_f32(dst, block[linear % per]);
        return HURRAY_OK;
    }
    if (hry_sparse_is(d)) {
        bool found;
        uint64_t position;
        status = hry_sparse_find(d, dense->buffers, index, &found, &position, error);
        if (status != HURRAY_OK) return status;
        if (found) return hry_dense_convert(dense, index, 0, (int64_t)position, dst, error);
        memset(dst, 0, hry_code_bytes(dense->bits));
        return HURRAY_OK;
    }
    HryRun run;
    uint64_t slot;
    status = hry_dense_run(dense, index, 1, &run, &slot, error);
    return status == HURRAY_OK ? hry_dense_convert(dense, index, slot, run.first, dst, error) : status;
}

/* The three that do arithmetic, each in the default modes whatever the caller's are. */

HurrayStatus hry_dense_stored(const HryDense *dense, const uint64_t *index, uint64_t position, void *dst, HurrayError *error) {
    if (!dense->decodes) return hry_dense_convert(dense, index, 0, (int64_t)position, dst, error);
    HryRounding rounding;
    hry_rounding_begin(&rounding);
    HurrayStatus status = hry_dense_convert(dense, index, 0, (int64_t)position, dst, error);
    hry_rounding_end(&rounding);
    return status;
}

HurrayStatus hry_dense_element(const HryDense *dense, const uint64_t *index, void *dst, HurrayError *error) {
    if (!dense->decodes) return element(dense, index, dst, error);
    HryRounding rounding;
    hry_rounding_begin(&rounding);
    HurrayStatus status = element(dense, index, dst, error);
    hry_rounding_end(&rounding);
    return status;
}

HurrayStatus hry_dense_stretch(const HryDense *dense, uint64_t first, uint64_t count, void *dst, HurrayError *error) {
    if (!hry_range_inside(first, count, dense->elements))
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "count", HRY_NO_OFFSET,
                        "elements %llu to %llu + %llu were asked for, there are %llu", (unsigned long long)first, (unsigned long long)first,
                        (unsigned long long)count, (unsigned long long)dense->elements);
    if (count == 0) return HURRAY_OK;
    if (!dense->decodes) return hry_dense_fill(dense, first, count, dst, error);
    HryRounding rounding;
    hry_rounding_begin(&rounding);
    HurrayStatus status = hry_dense_fill(dense, first, count, dst, error);
    hry_rounding_end(&rounding);
    return status;
}
