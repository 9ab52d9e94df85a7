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
    JSON_KEY(json, "kind");
    json_word(json, kv_kind_word(value->kind));
    if (value->kind == HURRAY_KV_ARRAY) {
        JSON_KEY(json, "element");
        json_word(json, kv_kind_word(value->element));
    }
    JSON_KEY(json, "value");
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
        JSON_KEY(json, "bytes");
        json_u64(json, handle.byte_size);
        JSON_KEY(json, "alignment");
        json_u64(json, handle.alignment);
        JSON_KEY(json, "device");
        json_word(json, device_word(handle.device_tag));
        JSON_KEY(json, "sync");
        json_word(json, sync_word(handle.sync_mode));
        JSON_KEY(json, "memory_class");
        json_word(json, memory_class_word(handle.memory_class));
        JSON_KEY(json, "offset");
        if (info->buffer_offsets && i < info->buffer_count && info->buffer_offsets[i] != HURRAY_NONE)
            json_u64(json, info->buffer_offsets[i]);
        else
            yajl_gen_null(json);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
}

static void quantization_json(yajl_gen json, const HurrayQuantization *q) {
    JSON_KEY(json, "quantization");
    yajl_gen_map_open(json);
    JSON_KEY(json, "scheme");
    json_word(json, scheme_word(q->scheme));
    if (q->scheme == HURRAY_QUANT_PER_TENSOR_AFFINE) {
        JSON_KEY(json, "scale");
        json_f64(json, (double)q->scale);
        JSON_KEY(json, "zero_point");
        json_i64(json, q->zero_point);
    } else {
        JSON_KEY(json, "axis");
        json_u64(json, q->axis);
        if (q->scheme != HURRAY_QUANT_PER_CHANNEL_AFFINE) {
            JSON_KEY(json, "block_size");
            json_u64(json, q->block_size);
        }
        JSON_KEY(json, "scale_buffer");
        json_u64(json, q->scale_buffer);
        if (q->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE || q->scheme == HURRAY_QUANT_PER_BLOCK_AFFINE) {
            JSON_KEY(json, "scale_type");
            json_word(json, type_word(q->scale_type));
            JSON_KEY(json, "symmetric");
            yajl_gen_bool(json, (q->flags & HURRAY_QUANT_SYMMETRIC) != 0);
            JSON_KEY(json, "zero_point_buffer");
            if (q->zero_point_buffer == HURRAY_QUANT_NO_ZERO_POINTS)
                yajl_gen_null(json);
            else
                json_u64(json, q->zero_point_buffer);
        }
    }
    yajl_gen_map_close(json);
}

static void statistics_json(yajl_gen json, const HurrayStatistics *s) {
    JSON_KEY(json, "statistics");
    yajl_gen_map_open(json);
#define NUMBER(bit, key, call, value)                                                                                                      \
    if (s->computed_mask & (bit)) JSON_KEY(json, key), call(json, value)
    NUMBER(HURRAY_STATISTICS_NNZ, "nnz", json_u64, s->nnz);
    NUMBER(HURRAY_STATISTICS_SPARSITY, "sparsity_ratio", json_f64, s->sparsity_ratio);
    NUMBER(HURRAY_STATISTICS_RANGE, "min", json_f64, s->min);
    NUMBER(HURRAY_STATISTICS_RANGE, "max", json_f64, s->max);
    NUMBER(HURRAY_STATISTICS_RANGE, "abs_max", json_f64, s->abs_max);
    NUMBER(HURRAY_STATISTICS_MOMENTS, "mean", json_f64, s->mean);
    NUMBER(HURRAY_STATISTICS_MOMENTS, "stddev", json_f64, s->stddev);
    NUMBER(HURRAY_STATISTICS_NM, "nm_n", json_u64, s->nm_n);
    NUMBER(HURRAY_STATISTICS_NM, "nm_m", json_u64, s->nm_m);
    NUMBER(HURRAY_STATISTICS_SPECIALS, "has_nan", json_u64, s->has_nan);
    NUMBER(HURRAY_STATISTICS_SPECIALS, "has_inf", json_u64, s->has_inf);
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
        JSON_KEY(json, "shard");
        yajl_gen_map_open(json);
        JSON_KEY(json, "parent_shape");
        json_u64_array(json, shard.parent_shape, rank);
        JSON_KEY(json, "offset");
        json_u64_array(json, shard.offset, rank);
        yajl_gen_map_close(json);
    }
    if (hurray_descriptor_statistics(descriptor, &statistics) == HURRAY_OK) statistics_json(json, &statistics);
    if (hurray_descriptor_composite_member(descriptor, &member) == HURRAY_OK) {
        JSON_KEY(json, "role");
        json_word(json, member.role == HURRAY_ROLE_BASE ? "base" : "correction");
    }
    if (hurray_descriptor_layout(descriptor, &layout) != HURRAY_OK || layout.tag != HURRAY_LAYOUT_COMPOSITE) return;
    static const char *const rules[] = {"?", "partition", "overlay", "group"}, *const ops[] = {"none", "replace", "add"};
    JSON_KEY(json, "composite");
    yajl_gen_map_open(json);
    JSON_KEY(json, "rule");
    json_word(json, rules[layout.rule < 4 ? layout.rule : 0]);
    JSON_KEY(json, "combine_op");
    json_word(json, ops[layout.combine_op < 3 ? layout.combine_op : 0]);
    JSON_KEY(json, "member_count");
    json_u64(json, layout.member_count);
    yajl_gen_map_close(json);
}

static void parent_json(yajl_gen json, Model *model, uint64_t parent) {
    HurrayTensorInfo head = HURRAY_TENSOR_INFO_INIT;
    JSON_KEY(json, "parent");
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
    JSON_KEY(json, "name");
    if (model->names)
        yajl_gen_null(json);
    else
        json_text(json, info->name, info->name_len);
    if (info->fault) {
        JSON_KEY(json, "error");
        json_word(json, info->fault->message);
        yajl_gen_map_close(json);
        return;
    }
    hurray_descriptor_element_type_tag(descriptor, &type);
    hurray_descriptor_layout_tag(descriptor, &layout);
    hurray_descriptor_byte_offset(descriptor, &byte_offset);
    hurray_descriptor_shape(descriptor, dims, &rank);
    JSON_KEY(json, "type");
    json_word(json, type_word(type));
    JSON_KEY(json, "type_tag");
    json_u64(json, type);
    JSON_KEY(json, "shape");
    json_u64_array(json, dims, rank);
    JSON_KEY(json, "layout");
    json_word(json, layout_word(layout));
    JSON_KEY(json, "layout_tag");
    json_u64(json, layout);
    JSON_KEY(json, "byte_offset");
    json_u64(json, byte_offset);
    JSON_KEY(json, "buffers");
    buffers_json(json, info);
    JSON_KEY(json, "descriptor");
    hurray_descriptor_encode(descriptor, NULL, &encoded);
    unsigned char *bytes = malloc(encoded ? encoded : 1);
    if (bytes && hurray_descriptor_encode(descriptor, bytes, &encoded) == HURRAY_OK)
        json_hex(json, bytes, encoded);
    else
        json_word(json, "");
    free(bytes);
    if (ggml_word(descriptor)) {
        JSON_KEY(json, "ggml");
        json_word(json, ggml_word(descriptor));
    }
    sections_json(json, descriptor, rank);
    parent_json(json, model, parent); /* last: it asks about another tensor, which ends what info borrows */
    yajl_gen_map_close(json);
}
