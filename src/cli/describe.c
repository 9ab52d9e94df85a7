#include "describe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GGML_LAYOUT_ID UINT64_C(0x314B4C424C4D4747)

const char *ggml_word(const HurrayDescriptor *descriptor) {
    static const char *const names[] = {
        NULL,    NULL,     "Q4_0",  "Q4_1", NULL,   NULL,      "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",   "Q2_K",
        "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
        "IQ2_S", "IQ4_XS", NULL,    NULL,   NULL,   NULL,      NULL,     "IQ1_M",   NULL,    NULL,     NULL,
        NULL,    "TQ1_0",  "TQ2_0", NULL,   NULL,   NULL,      "MXFP4",  "NVFP4",   "Q1_0",  "Q2_0",
    };
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    uint8_t tag = 0;
    hurray_descriptor_layout_tag(descriptor, &tag);
    if (tag != HURRAY_PRIVATE_FIRST || hurray_descriptor_layout(descriptor, &layout) != HURRAY_OK) return NULL;
    if (layout.private_id != GGML_LAYOUT_ID || layout.private_len != 12) return NULL;
    const unsigned char *data = layout.private_data;
    uint32_t type = data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
    return type < sizeof names / sizeof *names ? names[type] : NULL;
}

void describe_shape(char *text, size_t size, const HurrayDescriptor *descriptor) {
    uint64_t dims[HURRAY_MAX_RANK];
    size_t rank = HURRAY_MAX_RANK, used = 1;
    if (hurray_descriptor_shape(descriptor, dims, &rank) != HURRAY_OK) rank = 0;
    snprintf(text, size, "[");
    for (size_t i = 0; i < rank; i++) {
        char one[32];
        int n = dims[i] == HURRAY_DYNAMIC_DIMENSION ? snprintf(one, sizeof one, "%s?", i ? ", " : "")
                                                    : snprintf(one, sizeof one, "%s%" PRIu64, i ? ", " : "", dims[i]);
        if (used + (size_t)n + 6 > size) {
            used += (size_t)snprintf(text + used, size - used, ", ...");
            break;
        }
        memcpy(text + used, one, (size_t)n + 1);
        used += (size_t)n;
    }
    snprintf(text + used, size - used, "]");
}

static const char *scheme_word(uint8_t scheme) {
    static const char *const words[] = {"?", "per_tensor_affine", "per_channel_affine", "per_block_affine", "nf4", "mxfp"};
    return words[scheme < sizeof words / sizeof *words ? scheme : 0];
}

void describe_type(char *text, size_t size, const HurrayDescriptor *descriptor) {
    uint8_t tag = 0;
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    const char *ggml = ggml_word(descriptor);
    hurray_descriptor_element_type_tag(descriptor, &tag);
    if (ggml)
        snprintf(text, size, "%s", ggml);
    else if (hurray_descriptor_quantization(descriptor, &quantization) == HURRAY_OK)
        snprintf(text, size, "%s %s", type_word(tag), scheme_word(quantization.scheme));
    else
        snprintf(text, size, "%s", type_word(tag));
}

void describe_layout(char *text, size_t size, const HurrayDescriptor *descriptor) {
    static const char *const rules[] = {"?", "partition", "overlay", "group"};
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    if (ggml_word(descriptor))
        snprintf(text, size, "ggml blocks");
    else if (hurray_descriptor_layout(descriptor, &layout) != HURRAY_OK)
        snprintf(text, size, "?");
    else if (layout.tag == HURRAY_LAYOUT_COMPOSITE)
        snprintf(text, size, "%s of %u", rules[layout.rule < 4 ? layout.rule : 0], (unsigned)layout.member_count);
    else
        snprintf(text, size, "%s", layout_word(layout.tag));
}

const char *describe_device(const HurrayDescriptor *descriptor) {
    HurrayBufferHandle handle;
    if (hurray_descriptor_buffer(descriptor, 0, &handle) != HURRAY_OK) return "-";
    return device_word(handle.device_tag);
}

uint64_t describe_bytes(const HurrayDescriptor *descriptor) {
    uint32_t count = 0;
    uint64_t bytes = 0;
    hurray_descriptor_buffer_count(descriptor, &count);
    for (uint32_t i = 0; i < count; i++) {
        HurrayBufferHandle handle;
        if (hurray_descriptor_buffer(descriptor, i, &handle) == HURRAY_OK) bytes += handle.byte_size;
    }
    return bytes;
}

static void kv_element_json(yajl_gen json, uint32_t kind, const void *data, size_t i) {
    switch (kind) {
    case HURRAY_KV_STRING: json_text(json, ((const HurrayIoSlice *)data)[i].ptr, ((const HurrayIoSlice *)data)[i].len); break;
    case HURRAY_KV_BYTES: json_hex(json, ((const HurrayIoSlice *)data)[i].ptr, ((const HurrayIoSlice *)data)[i].len); break;
    case HURRAY_KV_INT64: json_i64(json, ((const int64_t *)data)[i]); break;
    case HURRAY_KV_UINT64: json_u64(json, ((const uint64_t *)data)[i]); break;
    case HURRAY_KV_FLOAT64: json_f64(json, ((const double *)data)[i]); break;
    case HURRAY_KV_BOOL: yajl_gen_bool(json, ((const uint8_t *)data)[i] != 0); break;
    default: yajl_gen_null(json);
    }
}

/* Arrays of arrays (importers only) are at most 8 deep: an explicit stack walks them. */
static void kv_array_json(yajl_gen json, const HurrayKvValue *value) {
    struct {
        const HurrayKvValue *array;
        size_t at;
    } stack[16];
    size_t depth = 0;
    stack[0].array = value;
    stack[0].at = 0;
    yajl_gen_array_open(json);
    for (;;) {
        const HurrayKvValue *array = stack[depth].array;
        if (stack[depth].at == array->data_len) {
            yajl_gen_array_close(json);
            if (depth-- == 0) return;
            continue;
        }
        size_t i = stack[depth].at++;
        if (array->element != HURRAY_KV_ARRAY) {
            kv_element_json(json, array->element, array->data, i);
        } else if (depth + 1 < sizeof stack / sizeof *stack) {
            stack[++depth].array = (const HurrayKvValue *)array->data + i;
            stack[depth].at = 0;
            yajl_gen_array_open(json);
        }
    }
}

void describe_kv_json(yajl_gen json, const HurrayKvEntry *entry) {
    const HurrayKvValue *value = &entry->value;
    json_text(json, entry->key, entry->key_len);
    yajl_gen_map_open(json);
    json_key_word(json, "kind", kv_kind_word(value->kind));
    if (value->kind == HURRAY_KV_ARRAY) json_key_word(json, "element", kv_kind_word(value->element));
    json_key(json, "value");
    switch (value->kind) {
    case HURRAY_KV_STRING: json_text(json, value->data, value->data_len); break;
    case HURRAY_KV_BYTES: json_hex(json, value->data, value->data_len); break;
    case HURRAY_KV_INT64: json_i64(json, value->i64); break;
    case HURRAY_KV_UINT64: json_u64(json, value->u64); break;
    case HURRAY_KV_FLOAT64: json_f64(json, value->f64); break;
    case HURRAY_KV_BOOL: yajl_gen_bool(json, value->boolean != 0); break;
    case HURRAY_KV_ARRAY: kv_array_json(json, value); break;
    default: yajl_gen_null(json);
    }
    yajl_gen_map_close(json);
}

static void print_short_text(FILE *to, const void *text, size_t len, size_t most) {
    size_t shown = len < most ? len : most;
    while (shown < len && shown > 0 && (((const unsigned char *)text)[shown] & 0xC0) == 0x80) shown--;
    print_text(to, text, shown);
    if (shown < len) fprintf(to, "... (%zu bytes)", len);
}

static void kv_element_text(FILE *to, uint32_t kind, const void *data, size_t i) {
    switch (kind) {
    case HURRAY_KV_STRING:
        fputc('"', to);
        print_short_text(to, ((const HurrayIoSlice *)data)[i].ptr, ((const HurrayIoSlice *)data)[i].len, 24);
        fputc('"', to);
        break;
    case HURRAY_KV_BYTES: fprintf(to, "(%zu bytes)", ((const HurrayIoSlice *)data)[i].len); break;
    case HURRAY_KV_INT64: fprintf(to, "%" PRId64, ((const int64_t *)data)[i]); break;
    case HURRAY_KV_UINT64: fprintf(to, "%" PRIu64, ((const uint64_t *)data)[i]); break;
    case HURRAY_KV_FLOAT64: fprintf(to, "%.9g", ((const double *)data)[i]); break;
    case HURRAY_KV_BOOL: fputs(((const uint8_t *)data)[i] ? "true" : "false", to); break;
    default: fputs("[...]", to);
    }
}

void describe_kv_text(FILE *to, const HurrayKvEntry *entry) {
    const HurrayKvValue *value = &entry->value;
    switch (value->kind) {
    case HURRAY_KV_STRING: print_short_text(to, value->data, value->data_len, 100); break;
    case HURRAY_KV_BYTES: fprintf(to, "(%zu bytes)", value->data_len); break;
    case HURRAY_KV_INT64: fprintf(to, "%" PRId64, value->i64); break;
    case HURRAY_KV_UINT64: fprintf(to, "%" PRIu64, value->u64); break;
    case HURRAY_KV_FLOAT64: fprintf(to, "%.17g", value->f64); break;
    case HURRAY_KV_BOOL: fputs(value->boolean ? "true" : "false", to); break;
    case HURRAY_KV_ARRAY:
        fputc('[', to);
        for (size_t i = 0; i < value->data_len && i < 4; i++) {
            if (i) fputs(", ", to);
            kv_element_text(to, value->element, value->data, i);
        }
        fprintf(to, value->data_len > 4 ? ", ...] (%zu %s)" : "] (%zu %s)", value->data_len, kv_kind_word(value->element));
        break;
    default: fputc('?', to);
    }
}

static void buffers_json(yajl_gen json, const HurrayTensorInfo *info) {
    uint32_t count = 0;
    hurray_descriptor_buffer_count(info->descriptor, &count);
    yajl_gen_array_open(json);
    for (uint32_t i = 0; i < count; i++) {
        HurrayBufferHandle handle;
        if (hurray_descriptor_buffer(info->descriptor, i, &handle) != HURRAY_OK) continue;
        yajl_gen_map_open(json);
        json_key_u64(json, "bytes", handle.byte_size);
        json_key_u64(json, "alignment", handle.alignment);
        json_key_word(json, "device", device_word(handle.device_tag));
        json_key_word(json, "sync", sync_word(handle.sync_mode));
        json_key_word(json, "memory_class", memory_class_word(handle.memory_class));
        json_key(json, "offset");
        if (info->buffer_offsets && i < info->buffer_count && info->buffer_offsets[i] != HURRAY_NONE)
            json_u64(json, info->buffer_offsets[i]);
        else
            yajl_gen_null(json);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void quantization_json(yajl_gen json, const HurrayQuantization *q) {
    json_key(json, "quantization");
    yajl_gen_map_open(json);
    json_key_word(json, "scheme", scheme_word(q->scheme));
    if (q->scheme == HURRAY_QUANT_PER_TENSOR_AFFINE) {
        json_key_f64(json, "scale", (double)q->scale);
        json_key_i64(json, "zero_point", q->zero_point);
    } else {
        json_key_u64(json, "axis", q->axis);
        if (q->scheme != HURRAY_QUANT_PER_CHANNEL_AFFINE) json_key_u64(json, "block_size", q->block_size);
        json_key_u64(json, "scale_buffer", q->scale_buffer);
        if (q->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE || q->scheme == HURRAY_QUANT_PER_BLOCK_AFFINE) {
            json_key_word(json, "scale_type", type_word(q->scale_type));
            json_key_bool(json, "symmetric", (q->flags & HURRAY_QUANT_SYMMETRIC) != 0);
            json_key(json, "zero_point_buffer");
            if (q->zero_point_buffer == HURRAY_QUANT_NO_ZERO_POINTS)
                yajl_gen_null(json);
            else
                json_u64(json, q->zero_point_buffer);
        }
    }
    yajl_gen_map_close(json);
}

static void statistics_json(yajl_gen json, const HurrayStatistics *s) {
    json_key(json, "statistics");
    yajl_gen_map_open(json);
#define NUMBER(bit, key, kind, value)                                                                                                      \
    if (s->computed_mask & (bit)) json_key_##kind(json, key, value)
    NUMBER(HURRAY_STATISTICS_NNZ, "nnz", u64, s->nnz);
    NUMBER(HURRAY_STATISTICS_SPARSITY, "sparsity_ratio", f64, s->sparsity_ratio);
    NUMBER(HURRAY_STATISTICS_RANGE, "min", f64, s->min);
    NUMBER(HURRAY_STATISTICS_RANGE, "max", f64, s->max);
    NUMBER(HURRAY_STATISTICS_RANGE, "abs_max", f64, s->abs_max);
    NUMBER(HURRAY_STATISTICS_MOMENTS, "mean", f64, s->mean);
    NUMBER(HURRAY_STATISTICS_MOMENTS, "stddev", f64, s->stddev);
    NUMBER(HURRAY_STATISTICS_NM, "nm_n", u64, s->nm_n);
    NUMBER(HURRAY_STATISTICS_NM, "nm_m", u64, s->nm_m);
    NUMBER(HURRAY_STATISTICS_SPECIALS, "has_nan", u64, s->has_nan);
    NUMBER(HURRAY_STATISTICS_SPECIALS, "has_inf", u64, s->has_inf);
#undef NUMBER
    yajl_gen_map_close(json);
}

static void sections_json(yajl_gen json, const HurrayDescriptor *descriptor, size_t rank) {
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayStatistics statistics = HURRAY_STATISTICS_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    if (hurray_descriptor_quantization(descriptor, &quantization) == HURRAY_OK) quantization_json(json, &quantization);
    if (hurray_descriptor_shard(descriptor, &shard) == HURRAY_OK) {
        json_key(json, "shard");
        yajl_gen_map_open(json);
        json_key_u64_array(json, "parent_shape", shard.parent_shape, rank);
        json_key_u64_array(json, "offset", shard.offset, rank);
        yajl_gen_map_close(json);
    }
    if (hurray_descriptor_statistics(descriptor, &statistics) == HURRAY_OK) statistics_json(json, &statistics);
    if (hurray_descriptor_composite_member(descriptor, &member) == HURRAY_OK)
        json_key_word(json, "role", member.role == HURRAY_ROLE_BASE ? "base" : "correction");
    if (hurray_descriptor_layout(descriptor, &layout) != HURRAY_OK || layout.tag != HURRAY_LAYOUT_COMPOSITE) return;
    static const char *const rules[] = {"?", "partition", "overlay", "group"}, *const ops[] = {"none", "replace", "add"};
    json_key(json, "composite");
    yajl_gen_map_open(json);
    json_key_word(json, "rule", rules[layout.rule < 4 ? layout.rule : 0]);
    json_key_word(json, "combine_op", ops[layout.combine_op < 3 ? layout.combine_op : 0]);
    json_key_u64(json, "member_count", layout.member_count);
    yajl_gen_map_close(json);
}

static void parent_json(yajl_gen json, Model *model, uint64_t parent) {
    HurrayTensorInfo head = HURRAY_TENSOR_INFO_INIT;
    json_key(json, "parent");
    if (parent == HURRAY_NONE)
        yajl_gen_null(json);
    else if (model->names)
        json_u64(json, parent);
    else if (hurray_loader_tensor_info(model->loader, parent, &head) == HURRAY_OK)
        json_text(json, head.name, head.name_len);
    else
        yajl_gen_null(json);
}

void describe_json(yajl_gen json, Model *model, const HurrayTensorInfo *info) {
    uint64_t dims[HURRAY_MAX_RANK], byte_offset = 0, parent = info->parent;
    size_t rank = HURRAY_MAX_RANK, encoded = 0;
    uint8_t type = 0, layout = 0;
    const HurrayDescriptor *descriptor = info->descriptor;
    yajl_gen_map_open(json);
    json_key(json, "name");
    if (model->names)
        yajl_gen_null(json);
    else
        json_text(json, info->name, info->name_len);
    if (info->fault) {
        json_key_word(json, "error", info->fault->message);
        yajl_gen_map_close(json);
        return;
    }
    hurray_descriptor_element_type_tag(descriptor, &type);
    hurray_descriptor_layout_tag(descriptor, &layout);
    hurray_descriptor_byte_offset(descriptor, &byte_offset);
    hurray_descriptor_shape(descriptor, dims, &rank);
    json_key_word(json, "type", type_word(type));
    json_key_u64(json, "type_tag", type);
    json_key_u64_array(json, "shape", dims, rank);
    json_key_word(json, "layout", layout_word(layout));
    json_key_u64(json, "layout_tag", layout);
    json_key_u64(json, "byte_offset", byte_offset);
    json_key(json, "buffers");
    buffers_json(json, info);
    json_key(json, "descriptor");
    hurray_descriptor_encode(descriptor, NULL, &encoded);
    unsigned char *bytes = malloc(encoded ? encoded : 1);
    if (bytes && hurray_descriptor_encode(descriptor, bytes, &encoded) == HURRAY_OK)
        json_hex(json, bytes, encoded);
    else
        json_word(json, "");
    free(bytes);
    if (ggml_word(descriptor)) json_key_word(json, "ggml", ggml_word(descriptor));
    sections_json(json, descriptor, rank);
    parent_json(json, model, parent); /* last: it asks about another tensor, which ends what info borrows */
    yajl_gen_map_close(json);
}
