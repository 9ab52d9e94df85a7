#include "import/export_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/emit.h"
#include "base/endian.h"
#include "base/names.h"
#include "base/utf8.h"
#include "format/element.h"
#include "format/sums.h"
#include "import/export_text.h"
#include "import/json.h"

static HurrayStatus refuse(const HryExportItem *item, const char *field, HurrayError *error, const char *what) {
    hry_fail(error, HURRAY_ERR_UNSUPPORTED, field, HRY_NO_OFFSET, "safetensors cannot hold the tensor: %s", what);
    hry_error_set_tensor(error, item->name, item->name_len, item->entry);
    return error->code;
}

static HurrayStatus refuse_type(const HryExportItem *item, HurrayError *error) {
    char what[96];
    snprintf(what, sizeof what, "no dtype says its element type, %s (0x%02X)", hry_element_name(item->descriptor->element_type),
             item->descriptor->element_type);
    return refuse(item, "element_type", error, what);
}

static bool is_fnuz(const HurrayDescriptor *d, const HryStType *type) {
    const HurrayExtensionType *x = &d->extension_type;
    HurrayExtensionType own = hry_st_extension(type);
    return d->has_extension_type && x->bit_width == own.bit_width && x->is_float == 1 && x->sign_bits == 1 &&
           x->exponent_bits == own.exponent_bits && x->mantissa_bits == own.mantissa_bits && x->exponent_bias == own.exponent_bias &&
           x->has_nan == 1 && x->has_inf == 0;
}

static bool find_type(HryExportItem *item) {
    size_t count;
    const HryStType *types = hry_st_types(&count);
    for (size_t i = 0; i < count; i++) {
        if (types[i].type_tag != item->descriptor->element_type) continue;
        item->type = &types[i];
        item->rank_of_type = i;
        return types[i].exponent_bits == 0 || is_fnuz(item->descriptor, &types[i]);
    }
    return false;
}

static HurrayStatus check_item(HryExportItem *item, HurrayError *error) {
    const HurrayDescriptor *d = item->descriptor;
    uint64_t bytes, per = 1;
    if (!hry_utf8_valid(item->name, item->name_len, NULL)) {
        hry_fail(error, HURRAY_ERR_INVALID_NAME, "name", HRY_NO_OFFSET, "the tensor's name is not UTF-8, which safetensors wants");
        hry_error_set_tensor(error, item->name, item->name_len, item->entry);
        return error->code;
    }
    if (item->name_len == 12 && memcmp(item->name, "__metadata__", 12) == 0)
        return refuse(item, "name", error, "the name __metadata__ is reserved there; rename it");
    switch (d->layout_tag) {
    case HURRAY_LAYOUT_ROW_MAJOR: break;
    case HURRAY_LAYOUT_COLUMN_MAJOR:
    case HURRAY_LAYOUT_STRIDED:
    case HURRAY_LAYOUT_TILED:
    case HURRAY_LAYOUT_MORTON:
    case HURRAY_LAYOUT_HILBERT: item->gathers = true; break;
    case HURRAY_LAYOUT_COMPOSITE: return refuse(item, "layout", error, "it is a composite; ask for its dense view");
    case HURRAY_LAYOUT_BLOCK_PAGED: return refuse(item, "layout", error, "its layout is block-paged; ask for its dense view");
    case HURRAY_LAYOUT_COO:
    case HURRAY_LAYOUT_CSR:
    case HURRAY_LAYOUT_CSC:
    case HURRAY_LAYOUT_CSF: return refuse(item, "layout", error, "it is sparse; ask for its dense view");
    default: return refuse(item, "layout", error, "its layout is a private one (GGML blocks?); ask for its dense view");
    }
    if (d->has_quantization) return refuse(item, "quantization", error, "it is quantized; ask for its dense view");
    if (d->has_shard) return refuse(item, "shard", error, "it is a shard of a larger tensor");
    if (d->has_composite_member)
        return refuse(item, "composite_member", error, "it is a member of a composite; ask for the composite's dense view");
    if (hry_descriptor_is_dynamic(d)) return refuse(item, "shape", error, "a dimension is dynamic");
    if (!find_type(item)) return refuse_type(item, error);
    if (item->type->bits % 8) per = item->type->bits == 4 ? 2 : 4;
    if (!hry_descriptor_elements(d, &item->elements) || !hry_mul_u64(item->elements / per, per * item->type->bits / 8, &bytes))
        return refuse(item, "shape", error, "it has too many elements");
    if (item->elements % per) return refuse(item, "shape", error, "its elements of 4 or 6 bits make no whole number of bytes");
    item->end = bytes; /* made a place once the order is known */
    return HURRAY_OK;
}

static int compare_bytes(const void *a, size_t a_len, const void *b, size_t b_len) {
    size_t both = a_len < b_len ? a_len : b_len;
    int order = both ? memcmp(a, b, both) : 0;
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_items(const void *left, const void *right) {
    const HryExportItem *a = left, *b = right;
    if (a->rank_of_type != b->rank_of_type) return a->rank_of_type < b->rank_of_type ? -1 : 1;
    return compare_bytes(a->name, a->name_len, b->name, b->name_len);
}

static int compare_keys(const void *left, const void *right) {
    const HurrayKvEntry *const *a = left, *const *b = right;
    return compare_bytes((*a)->key, (*a)->key_len, (*b)->key, (*b)->key_len);
}

static void item_name(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const HryExportPlan *plan = ctx;
    *name = plan->items[i].name;
    *len = plan->items[i].name_len;
}

static HurrayStatus check_names(const HryExportPlan *plan, HurrayError *error) {
    HryNames names;
    HurrayStatus status = HURRAY_OK;
    if (!hry_names_init(&names, &plan->allocator, plan->count, item_name, plan))
        return hry_fail_memory(error, "the lookup of names", plan->count);
    for (size_t i = 0; i < plan->count && status == HURRAY_OK; i++) {
        HryNamesAdd added = hry_names_add(&names, i, NULL);
        if (added == HRY_NAMES_NO_MEMORY) status = hry_fail_memory(error, "the lookup of names", plan->count);
        if (added != HRY_NAMES_DUPLICATE) continue;
        status = hry_fail(error, HURRAY_ERR_DUPLICATE_NAME, "name", HRY_NO_OFFSET, "two of the tensors have the same name");
        hry_error_set_tensor(error, plan->items[i].name, plan->items[i].name_len, plan->items[i].entry);
    }
    hry_names_clear(&names);
    return status;
}

static HurrayStatus plan_items(HryExportPlan *plan, const HurrayExportEntry *entries, HurrayError *error) {
    for (size_t i = 0; i < plan->count; i++) {
        HryExportItem *item = &plan->items[i];
        const HurrayExportEntry *entry = &entries[i];
        if (entry->reserved[0] || entry->reserved[1])
            return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "reserved", HRY_NO_OFFSET, "HurrayExportEntry.reserved must be zero");
        if (!entry->descriptor || (!entry->name && entry->name_len))
            return hry_fail(error, HURRAY_ERR_NULL_POINTER, "entries", HRY_NO_OFFSET, "entry %zu lacks its name or its descriptor", i);
        item->name = entry->name ? entry->name : "";
        item->name_len = entry->name_len;
        item->entry = i;
        item->descriptor = hry_descriptor_ref((HurrayDescriptor *)(uintptr_t)entry->descriptor);
        HurrayStatus status = check_item(item, error);
        if (status != HURRAY_OK) return status;
    }
    HurrayStatus status = check_names(plan, error);
    if (status != HURRAY_OK) return status;
    if (plan->count) qsort(plan->items, plan->count, sizeof *plan->items, compare_items);
    uint64_t at = 0;
    for (size_t i = 0; i < plan->count; i++) {
        HryExportItem *item = &plan->items[i];
        item->begin = at;
        if (!hry_add_u64(at, item->end, &at)) return refuse(item, "shape", error, "all of them together have more than 2^64 bytes");
        item->end = at;
    }
    return HURRAY_OK;
}

/* The entries that go into the file, by key. NULL with *count 0: none. */
static HurrayStatus sort_kv(const HurrayKvEntry *kv, size_t kv_count, bool as_text, const HurrayAllocator *allocator,
                            const HurrayKvEntry ***out, size_t *count, HurrayError *error) {
    *out = NULL;
    *count = 0;
    if (kv_count == 0) return HURRAY_OK;
    const HurrayKvEntry **sorted = hry_alloc_array(allocator, kv_count, sizeof *sorted);
    if (!sorted) return hry_fail_memory(error, "the metadata", kv_count * sizeof *sorted);
    *out = sorted;
    for (size_t i = 0; i < kv_count; i++) {
        const HurrayKvEntry *entry = &kv[i];
        const HurrayKvValue *value = &entry->value;
        char key[96];
        hry_escape(key, sizeof key, entry->key, entry->key_len);
        if (entry->key_len == sizeof HRY_SUMS_KEY - 1 && memcmp(entry->key, HRY_SUMS_KEY, entry->key_len) == 0) continue;
        if (value->kind != HURRAY_KV_STRING && !as_text)
            return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "metadata", HRY_NO_OFFSET,
                            "the metadata key `%s` holds no string, and safetensors holds nothing else; ask for it to be written as text",
                            key);
        bool nested = value->kind == HURRAY_KV_ARRAY && value->element == HURRAY_KV_ARRAY;
        if (value->kind < HURRAY_KV_STRING || value->kind > HURRAY_KV_ARRAY || nested)
            return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "metadata", HRY_NO_OFFSET,
                            "the metadata key `%s` holds %s, which is not written", key,
                            nested ? "an array of arrays" : "a value of an unknown kind");
        bool is_text = value->kind == HURRAY_KV_STRING;
        if (!hry_utf8_valid(entry->key, entry->key_len, NULL) || (is_text && !hry_utf8_valid(value->data, value->data_len, NULL)))
            return hry_fail(error, HURRAY_ERR_INVALID_KV, "metadata", HRY_NO_OFFSET, "the metadata key `%s` or its value is not UTF-8",
                            key);
        sorted[(*count)++] = entry;
    }
    if (*count) qsort(sorted, *count, sizeof *sorted, compare_keys);
    for (size_t i = 1; i < *count; i++)
        if (compare_keys(&sorted[i - 1], &sorted[i]) == 0)
            return hry_fail(error, HURRAY_ERR_INVALID_KV, "metadata", HRY_NO_OFFSET, "two metadata entries have the same key");
    return HURRAY_OK;
}

static void emit_header(const HryExportPlan *plan, const HurrayKvEntry *const *kv, size_t kv_count, HryEmit *emit) {
    hry_emit_u8(emit, '{');
    for (size_t i = 0; i < kv_count; i++) {
        hry_export_text(emit, i ? "," : "\"__metadata__\":{");
        hry_export_string(emit, kv[i]->key, kv[i]->key_len);
        hry_emit_u8(emit, ':');
        hry_export_value(emit, &kv[i]->value);
        if (i + 1 == kv_count) hry_emit_u8(emit, '}');
    }
    for (size_t i = 0; i < plan->count; i++) {
        const HryExportItem *item = &plan->items[i];
        if (i || kv_count) hry_emit_u8(emit, ',');
        hry_export_string(emit, item->name, item->name_len);
        hry_export_text(emit, ":{\"dtype\":\"");
        hry_export_text(emit, item->type->name);
        hry_export_text(emit, "\",\"shape\":[");
        for (uint32_t k = 0; k < item->descriptor->rank; k++) {
            if (k) hry_emit_u8(emit, ',');
            hry_export_u64(emit, item->descriptor->shape[k]);
        }
        hry_export_text(emit, "],\"data_offsets\":[");
        hry_export_u64(emit, item->begin);
        hry_emit_u8(emit, ',');
        hry_export_u64(emit, item->end);
        hry_export_text(emit, "]}");
    }
    hry_emit_u8(emit, '}');
    while (emit->len % 8 && !emit->overflow) hry_emit_u8(emit, ' ');
}

static HurrayStatus plan_header(HryExportPlan *plan, const HurrayKvEntry *const *kv, size_t kv_count, HurrayError *error) {
    HryEmit emit = hry_emit(NULL, 0);
    emit_header(plan, kv, kv_count, &emit);
    if (emit.overflow || emit.len > HRY_JSON_MAX_BYTES)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "header", HRY_NO_OFFSET, "the header would have %zu bytes; safetensors allows %llu",
                        emit.len, (unsigned long long)HRY_JSON_MAX_BYTES);
    plan->header = hry_alloc_raw(&plan->allocator, emit.len + 8);
    if (!plan->header) return hry_fail_memory(error, "the header", emit.len + 8);
    plan->header_size = emit.len + 8;
    hry_store_u64(plan->header, emit.len);
    emit = hry_emit(plan->header + 8, plan->header_size - 8);
    emit_header(plan, kv, kv_count, &emit);
    return HURRAY_OK;
}

void hry_export_plan_clear(HryExportPlan *plan) {
    HurrayAllocator allocator = plan->allocator;
    for (size_t i = 0; i < plan->count; i++) hry_descriptor_unref(plan->items[i].descriptor);
    hry_free_array(&allocator, plan->items, plan->count, sizeof *plan->items);
    hry_free(&allocator, plan->header, plan->header_size);
    memset(plan, 0, sizeof *plan);
}

HurrayStatus hry_export_plan(const HurrayExportEntry *entries, size_t count, const HurrayKvEntry *kv, size_t kv_count, bool kv_as_text,
                             const HurrayAllocator *allocator, HryExportPlan *out, HurrayError *error) {
    const HurrayKvEntry **sorted = NULL;
    size_t sorted_count = 0;
    HurrayStatus status = HURRAY_OK;
    memset(out, 0, sizeof *out);
    out->allocator = *allocator;
    if (count) {
        out->items = hry_alloc_array(allocator, count, sizeof *out->items);
        if (!out->items) return hry_fail_memory(error, "the list of tensors", count);
        out->count = count;
        status = plan_items(out, entries, error);
    }
    if (status == HURRAY_OK) status = sort_kv(kv, kv_count, kv_as_text, allocator, &sorted, &sorted_count, error);
    if (status == HURRAY_OK) status = plan_header(out, sorted, sorted_count, error);
    hry_free_array(allocator, sorted, kv_count, sizeof *sorted);
    for (size_t i = 0; i < out->count; i++) out->items[i].name = NULL; /* the caller's, for this call only */
    if (status != HURRAY_OK) hry_export_plan_clear(out);
    return status;
}
