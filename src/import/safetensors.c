#include "import/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "driver/transport_call.h"
#include "import/arena.h"
#include "import/json.h"

static const HryStType types[] = {
    {"U64", 64, HURRAY_TYPE_UINT64, 0, 0, 0},
    {"I64", 64, HURRAY_TYPE_INT64, 0, 0, 0},
    {"F64", 64, HURRAY_TYPE_FLOAT64, 0, 0, 0},
    {"C64", 64, HURRAY_TYPE_COMPLEX64, 0, 0, 0},
    {"F32", 32, HURRAY_TYPE_FLOAT32, 0, 0, 0},
    {"U32", 32, HURRAY_TYPE_UINT32, 0, 0, 0},
    {"I32", 32, HURRAY_TYPE_INT32, 0, 0, 0},
    {"BF16", 16, HURRAY_TYPE_BFLOAT16, 0, 0, 0},
    {"F16", 16, HURRAY_TYPE_FLOAT16, 0, 0, 0},
    {"U16", 16, HURRAY_TYPE_UINT16, 0, 0, 0},
    {"I16", 16, HURRAY_TYPE_INT16, 0, 0, 0},
    {"F8_E5M2FNUZ", 8, 0xF1, 5, 2, 16},
    {"F8_E4M3FNUZ", 8, 0xF0, 4, 3, 8},
    {"F8_E8M0", 8, HURRAY_TYPE_FLOAT8_E8M0, 0, 0, 0},
    {"F8_E4M3", 8, HURRAY_TYPE_FLOAT8_E4M3, 0, 0, 0},
    {"F8_E5M2", 8, HURRAY_TYPE_FLOAT8_E5M2, 0, 0, 0},
    {"I8", 8, HURRAY_TYPE_INT8, 0, 0, 0},
    {"U8", 8, HURRAY_TYPE_UINT8, 0, 0, 0},
    {"F6_E3M2", 6, HURRAY_TYPE_FLOAT6_E3M2, 0, 0, 0},
    {"F6_E2M3", 6, HURRAY_TYPE_FLOAT6_E2M3, 0, 0, 0},
    {"F4", 4, HURRAY_TYPE_FLOAT4_E2M1, 0, 0, 0},
    {"BOOL", 8, HURRAY_TYPE_BOOL, 0, 0, 0},
};

const HryStType *hry_st_types(size_t *count) {
    *count = sizeof types / sizeof *types;
    return types;
}

HurrayExtensionType hry_st_extension(const HryStType *type) {
    HurrayExtensionType extension = HURRAY_EXTENSION_TYPE_INIT;
    extension.bit_width = 8;
    extension.packing_factor = 1;
    extension.is_float = 1;
    extension.sign_bits = 1;
    extension.exponent_bits = type->exponent_bits;
    extension.mantissa_bits = type->mantissa_bits;
    extension.exponent_bias = type->bias;
    extension.has_nan = 1;
    return extension;
}

enum { NO_ENTRY = UINT32_MAX };
enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4, HAS_ALL = 7 };

typedef struct Tensor {
    const uint8_t *name;
    uint64_t begin, end;
    size_t shape_at; /* in dims */
    uint32_t name_len, entry;
    uint8_t rank, type;
} Tensor;

typedef enum Where { AT_TOP, AT_ROOT, AT_META, AT_META_VALUE, AT_VALUE, AT_ENTRY, AT_FIELD, AT_DTYPE, AT_SHAPE, AT_OFFSETS } Where;

typedef struct Header {
    const HryLimits *limits;
    const HurrayAllocator *allocator;
    HryStFilter *filter;
    HryCatalogue *catalogue;
    HryArena arena;
    HryNames kv_names;
    HurrayError *error;
    Tensor *tensors;
    size_t count, capacity;
    uint64_t *dims;
    size_t dim_count, dim_capacity;
    uint64_t data_begin, kv_bytes;
    /* the parse */
    Where where, field;
    uint32_t skip_depth; /* inside a field nobody knows */
    bool skipping, is_meta, meta_seen;
    uint8_t fields, offsets_seen;
    uint32_t rank;
    Tensor now;
    HurrayKvEntry kv_now;
} Header;

static void kv_name_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const HryCatalogue *catalogue = ctx;
    *name = catalogue->kv[i].key;
    *len = catalogue->kv[i].key_len;
}

static bool is_key(const HryJsonEvent *event, const char *text) {
    return event->len == strlen(text) && memcmp(event->text, text, event->len) == 0;
}

/* A field of the tensor at hand is not what it must be. */
static bool fail_field(Header *h, const char *field, const HryJsonEvent *event, const char *expected) {
    char quoted[48] = "";
    bool shown = event->kind == HRY_JSON_NUMBER || event->kind == HRY_JSON_BOOLEAN;
    if (shown) hry_escape(quoted, sizeof quoted, event->text, event->len);
    hry_fail(h->error, HURRAY_ERR_INVALID_CONTAINER, field, event->offset, "%s is %s, expected %s", field,
             shown ? quoted : hry_json_kind_name(event->kind), expected);
    hry_import_at(h->error, h->now.name, h->now.name_len);
    return false;
}

static bool fail_twice(Header *h, const char *field, const HryJsonEvent *event) {
    hry_fail(h->error, HURRAY_ERR_INVALID_CONTAINER, field, event->offset, "the field %s stands twice", field);
    if (h->now.name) hry_import_at(h->error, h->now.name, h->now.name_len);
    return false;
}

static bool no_memory(Header *h, const char *what, uint64_t bytes) {
    hry_fail_memory(h->error, what, bytes);
    return false;
}

static bool on_root_key(Header *h, const HryJsonEvent *event) {
    memset(&h->now, 0, sizeof h->now);
    h->where = AT_VALUE;
    h->is_meta = is_key(event, "__metadata__");
    if (h->is_meta) {
        if (h->meta_seen) return fail_twice(h, "__metadata__", event);
        h->meta_seen = true;
        return true;
    }
    if (hry_import_check_count(h->count, h->limits, h->error) != HURRAY_OK) return false;
    h->now.name = hry_arena_copy(&h->arena, event->text, event->len);
    h->now.name_len = (uint32_t)event->len;
    if (!h->now.name) return no_memory(h, "a name", event->len);
    return true;
}

static bool on_value(Header *h, const HryJsonEvent *event) {
    if (h->is_meta) {
        if (event->kind == HRY_JSON_NULL)
            h->where = AT_ROOT;
        else if (event->kind == HRY_JSON_MAP)
            h->where = AT_META;
        else {
            hry_fail(h->error, HURRAY_ERR_INVALID_KV, "__metadata__", event->offset, "__metadata__ is %s, expected an object of strings",
                     hry_json_kind_name(event->kind));
            return false;
        }
        return true;
    }
    if (event->kind != HRY_JSON_MAP) return fail_field(h, "entry", event, "an object with dtype, shape and data_offsets");
    h->fields = 0;
    h->where = AT_ENTRY;
    return true;
}

static bool on_meta(Header *h, const HryJsonEvent *event) {
    if (event->kind == HRY_JSON_MAP_END) {
        h->where = AT_ROOT;
        return true;
    }
    memset(&h->kv_now, 0, sizeof h->kv_now);
    h->kv_now.key = hry_arena_copy(&h->arena, event->text, event->len);
    h->kv_now.key_len = event->len;
    if (!h->kv_now.key) return no_memory(h, "a metadata key", event->len);
    h->where = AT_META_VALUE;
    return true;
}

static bool on_meta_value(Header *h, const HryJsonEvent *event) {
    char key[96];
    hry_escape(key, sizeof key, h->kv_now.key, h->kv_now.key_len);
    if (event->kind != HRY_JSON_STRING) {
        hry_fail(h->error, HURRAY_ERR_INVALID_KV, "__metadata__", event->offset,
                 "the value of the metadata key `%s` is %s, expected a string", key, hry_json_kind_name(event->kind));
        return false;
    }
    h->kv_bytes += h->kv_now.key_len + event->len;
    if (h->kv_bytes > h->limits->max_kv_bytes) {
        hry_fail(h->error, HURRAY_ERR_LIMIT, "__metadata__", event->offset,
                 "the metadata is larger than %llu bytes, the most that is allowed here", (unsigned long long)h->limits->max_kv_bytes);
        return false;
    }
    h->kv_now.value.kind = HURRAY_KV_STRING;
    h->kv_now.value.data = hry_arena_copy(&h->arena, event->text, event->len);
    h->kv_now.value.data_len = event->len;
    if (!h->kv_now.value.data) return no_memory(h, "a metadata value", event->len);
    if (hry_catalogue_add_kv(h->catalogue, &h->kv_now, h->error) != HURRAY_OK) return false;
    if (!h->kv_names.slots && !hry_names_init(&h->kv_names, h->allocator, 0, kv_name_at, h->catalogue))
        return no_memory(h, "the metadata keys", 0);
    switch (hry_names_add(&h->kv_names, h->catalogue->kv_count - 1, NULL)) {
    case HRY_NAMES_ADDED: h->where = AT_META; return true;
    case HRY_NAMES_NO_MEMORY: return no_memory(h, "the metadata keys", 0);
    case HRY_NAMES_DUPLICATE: break;
    }
    hry_fail(h->error, HURRAY_ERR_INVALID_KV, "__metadata__", event->offset, "the metadata key `%s` stands twice", key);
    return false;
}

static bool end_entry(Header *h, const HryJsonEvent *event) {
    if (h->fields != HAS_ALL) {
        const char *missing = !(h->fields & HAS_DTYPE) ? "dtype" : !(h->fields & HAS_SHAPE) ? "shape" : "data_offsets";
        hry_fail(h->error, HURRAY_ERR_INVALID_CONTAINER, missing, event->offset, "the entry has no %s", missing);
        hry_import_at(h->error, h->now.name, h->now.name_len);
        return false;
    }
    if (!hry_grow(h->allocator, (void **)&h->tensors, &h->capacity, h->count + 1, sizeof *h->tensors))
        return no_memory(h, "the list of tensors", (h->count + 1) * sizeof *h->tensors);
    h->tensors[h->count++] = h->now;
    h->where = AT_ROOT;
    return true;
}

static bool on_entry(Header *h, const HryJsonEvent *event) {
    static const struct {
        const char *name;
        uint8_t bit;
        Where where;
    } known[] = {{"dtype", HAS_DTYPE, AT_DTYPE}, {"shape", HAS_SHAPE, AT_SHAPE}, {"data_offsets", HAS_OFFSETS, AT_OFFSETS}};
    if (event->kind == HRY_JSON_MAP_END) return end_entry(h, event);
    h->field = AT_ENTRY;
    h->where = AT_FIELD;
    for (size_t i = 0; i < 3; i++) {
        if (!is_key(event, known[i].name)) continue;
        if (h->fields & known[i].bit) return fail_twice(h, known[i].name, event);
        h->fields |= known[i].bit;
        h->field = known[i].where;
    }
    return true;
}

static bool on_dtype(Header *h, const HryJsonEvent *event) {
    if (event->kind != HRY_JSON_STRING) return fail_field(h, "dtype", event, "a string");
    h->where = AT_ENTRY;
    for (uint8_t i = 0; i < sizeof types / sizeof *types; i++) {
        h->now.type = i;
        if (is_key(event, types[i].name)) return true;
    }
    char found[64];
    hry_fail(h->error, HURRAY_ERR_INVALID_TYPE, "dtype", event->offset,
             "dtype `%s` is not one of safetensors 0.8 (F32, BF16, F8_E4M3, ...); a newer version of this library may know it",
             hry_escape(found, sizeof found, event->text, event->len));
    hry_import_at(h->error, h->now.name, h->now.name_len);
    return false;
}

static bool on_shape(Header *h, const HryJsonEvent *event) {
    uint64_t dim;
    if (event->kind == HRY_JSON_ARRAY_END) {
        h->now.rank = (uint8_t)h->rank;
        h->where = AT_ENTRY;
        return true;
    }
    if (!hry_json_u64(event, &dim)) return fail_field(h, "shape", event, "whole numbers from 0 on");
    if (dim == HURRAY_DYNAMIC_DIMENSION) return fail_field(h, "shape", event, "dimensions below 2^64-1");
    if (h->rank == HURRAY_MAX_RANK) {
        hry_fail(h->error, HURRAY_ERR_UNSUPPORTED, "shape", event->offset,
                 "the shape has more than 64 dimensions, which no descriptor can say");
        hry_import_at(h->error, h->now.name, h->now.name_len);
        return false;
    }
    if (!hry_grow(h->allocator, (void **)&h->dims, &h->dim_capacity, h->dim_count + 1, sizeof *h->dims))
        return no_memory(h, "shapes", (h->dim_count + 1) * sizeof *h->dims);
    h->dims[h->dim_count++] = dim;
    h->rank++;
    return true;
}

static bool on_offsets(Header *h, const HryJsonEvent *event) {
    uint64_t value;
    if (event->kind == HRY_JSON_ARRAY_END) {
        if (h->offsets_seen != 2) return fail_field(h, "data_offsets", event, "two numbers, begin and end");
        h->where = AT_ENTRY;
        return true;
    }
    if (!hry_json_u64(event, &value)) return fail_field(h, "data_offsets", event, "whole numbers from 0 to 2^64-1");
    if (h->offsets_seen == 2) return fail_field(h, "data_offsets", event, "two numbers, begin and end, and no third");
    if (h->offsets_seen++ == 0)
        h->now.begin = value;
    else
        h->now.end = value;
    return true;
}

static bool on_field(Header *h, const HryJsonEvent *event) {
    if (h->field == AT_DTYPE) return on_dtype(h, event);
    if (h->field == AT_ENTRY) { /* nobody knows it: skip its value */
        h->skipping = event->kind == HRY_JSON_MAP || event->kind == HRY_JSON_ARRAY;
        h->skip_depth = event->depth;
        h->where = AT_ENTRY;
        return true;
    }
    if (event->kind != HRY_JSON_ARRAY) return fail_field(h, h->field == AT_SHAPE ? "shape" : "data_offsets", event, "an array of numbers");
    h->where = h->field;
    h->rank = 0;
    h->offsets_seen = 0;
    h->now.shape_at = h->field == AT_SHAPE ? h->dim_count : h->now.shape_at;
    return true;
}

static bool on_event(void *ctx, const HryJsonEvent *event) {
    Header *h = ctx;
    if (h->skipping) {
        bool is_end = event->kind == HRY_JSON_MAP_END || event->kind == HRY_JSON_ARRAY_END;
        if (is_end && event->depth == h->skip_depth) h->skipping = false;
        return true;
    }
    switch (h->where) {
    case AT_TOP:
        if (event->kind != HRY_JSON_MAP) {
            hry_fail(h->error, HURRAY_ERR_INVALID_CONTAINER, "header", event->offset, "the header is %s, expected an object of tensors",
                     hry_json_kind_name(event->kind));
            return false;
        }
        h->where = AT_ROOT;
        return true;
    case AT_ROOT: return event->kind == HRY_JSON_MAP_END || on_root_key(h, event);
    case AT_VALUE: return on_value(h, event);
    case AT_META: return on_meta(h, event);
    case AT_META_VALUE: return on_meta_value(h, event);
    case AT_ENTRY: return on_entry(h, event);
    case AT_FIELD: return on_field(h, event);
    case AT_SHAPE: return on_shape(h, event);
    case AT_OFFSETS: return on_offsets(h, event);
    case AT_DTYPE: break;
    }
    return false;
}

/* Bytes in the file of a tensor's elements, and in its buffer; false: no whole bytes, or too many. */
static bool tensor_bytes(const HryStType *type, uint64_t elements, uint64_t *bytes, uint64_t *buffer_bytes) {
    uint64_t per = type->bits % 8 == 0 ? 1 : type->bits == 4 ? 2 : 4; /* elements of the smallest whole number of bytes */
    if (elements % per || !hry_mul_u64(elements / per, per * type->bits / 8, bytes)) return false;
    *buffer_bytes = type->type_tag == HURRAY_TYPE_BOOL ? hry_div_up(elements, 8) : *bytes;
    return true;
}

static HurrayStatus add_tensor(Header *h, Tensor *tensor) {
    const HryStType *type = &types[tensor->type];
    const uint64_t *shape = h->dims ? h->dims + tensor->shape_at : NULL;
    uint64_t elements, bytes, buffer_bytes;
    HurrayError *error = h->error;
    HurrayStatus status;
    if (tensor->end < tensor->begin) {
        hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "data_offsets", HRY_NO_OFFSET, "data_offsets end at %llu, before they begin at %llu",
                 (unsigned long long)tensor->end, (unsigned long long)tensor->begin);
        return hry_import_at(error, tensor->name, tensor->name_len);
    }
    if (!hry_product_u64(shape, tensor->rank, &elements) || !tensor_bytes(type, elements, &bytes, &buffer_bytes)) {
        hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "shape", HRY_NO_OFFSET,
                 "the shape has too many elements, or its elements of %u bits make no whole number of bytes", (unsigned)type->bits);
        return hry_import_at(error, tensor->name, tensor->name_len);
    }
    if (bytes != tensor->end - tensor->begin) {
        hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "data_offsets", HRY_NO_OFFSET,
                 "the shape needs %llu bytes of %s, but data_offsets span %llu bytes (%llu to %llu)", (unsigned long long)bytes, type->name,
                 (unsigned long long)(tensor->end - tensor->begin), (unsigned long long)tensor->begin, (unsigned long long)tensor->end);
        return hry_import_at(error, tensor->name, tensor->name_len);
    }
    HurrayExtensionType extension = hry_st_extension(type);
    HryImported imported = {.element_type = type->type_tag,
                            .layout_tag = HURRAY_LAYOUT_ROW_MAJOR,
                            .rank = tensor->rank,
                            .shape = shape,
                            .byte_size = buffer_bytes,
                            .extension_type = type->exponent_bits ? &extension : NULL};
    HryEntry entry = {.name = tensor->name, .name_len = tensor->name_len, .descriptor_offset = HURRAY_NONE, .data_length = bytes};
    status = hry_import_describe(&imported, h->allocator, &entry.descriptor, error);
    if (status != HURRAY_OK) return hry_import_at(error, tensor->name, tensor->name_len);
    if (type->type_tag == HURRAY_TYPE_BOOL && bytes > 0) {
        HryForeign foreign = {.bytes = HRY_BYTES_PACK_BOOL, .packed_length = bytes, .unpacked_length = bytes};
        status = hry_catalogue_add_foreign(h->catalogue, &foreign, &entry.side, error);
    }
    if (status == HURRAY_OK) status = hry_catalogue_add(h->catalogue, &entry, error);
    if (status != HURRAY_OK) {
        hry_descriptor_unref(entry.descriptor);
        return status;
    }
    tensor->entry = (uint32_t)h->catalogue->entry_count - 1;
    return HURRAY_OK;
}

static int compare_ranges(const void *left, const void *right) {
    const Tensor *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return 0;
}

static void sort_tensors(Header *h) {
    for (size_t i = 1; i < h->count; i++)
        if (compare_ranges(&h->tensors[i - 1], &h->tensors[i]) > 0) {
            qsort(h->tensors, h->count, sizeof *h->tensors, compare_ranges);
            return;
        }
}

static HurrayStatus fail_place(Header *h, const Tensor *tensor, const Tensor *before) {
    char name[96];
    uint64_t end = before ? before->end : 0;
    bool hole = tensor->begin > end;
    if (before)
        hry_fail(h->error, HURRAY_ERR_INVALID_CONTAINER, "data_offsets", HRY_NO_OFFSET,
                 "begins at %llu, but the tensor before it, `%s`, ends at %llu: %s of %llu bytes", (unsigned long long)tensor->begin,
                 hry_escape(name, sizeof name, before->name, before->name_len), (unsigned long long)end, hole ? "hole" : "overlap",
                 (unsigned long long)(hole ? tensor->begin - end : end - tensor->begin));
    else
        hry_fail(h->error, HURRAY_ERR_INVALID_CONTAINER, "data_offsets", HRY_NO_OFFSET,
                 "the first tensor begins at %llu, expected 0: hole of %llu bytes", (unsigned long long)tensor->begin,
                 (unsigned long long)tensor->begin);
    return hry_import_at(h->error, tensor->name, tensor->name_len);
}

/* Ranges follow one another from 0 to the end of the file; then the entries get their places. */
static HurrayStatus place_tensors(Header *h, uint64_t size) {
    uint64_t data_size = size - h->data_begin, at = 0;
    for (size_t i = 0; i < h->count; i++) {
        const Tensor *tensor = &h->tensors[i];
        if (tensor->begin != at) return fail_place(h, tensor, i ? tensor - 1 : NULL);
        at = tensor->end;
    }
    if (at > data_size)
        return hry_fail(h->error, HURRAY_ERR_TRUNCATED, "data_offsets", size,
                        "the file ends %llu bytes early: the header promises %llu bytes of data, %llu are there; incomplete download?",
                        (unsigned long long)(at - data_size), (unsigned long long)at, (unsigned long long)data_size);
    if (at < data_size)
        return hry_fail(h->error, HURRAY_ERR_INVALID_CONTAINER, "data_offsets", h->data_begin + at,
                        "%llu bytes after the last tensor belong to none; the header and the data do not fit together",
                        (unsigned long long)(data_size - at));
    for (size_t i = 0; i < h->count; i++) {
        if (h->tensors[i].entry == NO_ENTRY) continue;
        HryEntry *entry = &h->catalogue->entries[h->tensors[i].entry];
        entry->data_offset = h->data_begin + h->tensors[i].begin;
        if (entry->side) h->catalogue->foreign[entry->side - 1].packed_offset = entry->data_offset;
    }
    return HURRAY_OK;
}

static HurrayStatus fill(Header *h, const uint8_t *text, size_t len, uint64_t size) {
    HurrayStatus status = hry_json_parse(text, len, 8, "header", on_event, h, h->allocator, h->error);
    if (status != HURRAY_OK) return status;
    sort_tensors(h);
    if (!h->filter) status = hry_catalogue_reserve(h->catalogue, h->count, h->error);
    if (status != HURRAY_OK) return status;
    for (size_t i = 0; i < h->count; i++) {
        Tensor *tensor = &h->tensors[i];
        tensor->entry = NO_ENTRY;
        if (h->filter && !h->filter->keep(h->filter->ctx, tensor->name, tensor->name_len)) {
            if (h->filter->dropped++ == 0)
                hry_escape(h->filter->first_dropped, sizeof h->filter->first_dropped, tensor->name, tensor->name_len);
            continue;
        }
        status = add_tensor(h, tensor);
        if (status != HURRAY_OK) return status;
    }
    status = hry_import_index_names(h->catalogue, "header", h->error);
    return status == HURRAY_OK ? place_tensors(h, size) : status;
}

/* The length field, against everything that bounds it. */
static HurrayStatus read_length(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, uint64_t *length,
                                HurrayError *error) {
    uint8_t bytes[8];
    if (size < 8)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, "header length", 0,
                        "the file has %llu bytes; a safetensors file begins with 8 bytes of length", (unsigned long long)size);
    HurrayStatus status = hry_transport_read_exactly(transport, 0, bytes, sizeof bytes, error);
    if (status != HURRAY_OK) return status;
    uint64_t n = hry_load_u64(bytes);
    if (n > size - 8)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, "header length", 0,
                        "header length %llu, but the file has %llu bytes after it; no safetensors file, or an incomplete download",
                        (unsigned long long)n, (unsigned long long)(size - 8));
    uint64_t most = limits->max_index_bytes < HRY_JSON_MAX_BYTES ? limits->max_index_bytes : HRY_JSON_MAX_BYTES;
    if (n > most)
        return hry_fail(error, n > HRY_JSON_MAX_BYTES ? HURRAY_ERR_INVALID_CONTAINER : HURRAY_ERR_LIMIT, "header length", 0,
                        "header length %llu, at most %llu is allowed", (unsigned long long)n, (unsigned long long)most);
    *length = n;
    return HURRAY_OK;
}

HurrayStatus hry_safetensors_open(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, HryStFilter *filter,
                                  const HurrayAllocator *allocator, HryCatalogue **out, HurrayError *error) {
    uint64_t length = 0;
    HurrayStatus status = read_length(transport, size, limits, &length, error);
    if (status != HURRAY_OK) return status;
    if (length == 0) return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "header", 8, "header length 0; the smallest header is `{}`");
    uint8_t *text = hry_alloc_raw(allocator, (size_t)length);
    if (!text) return hry_fail_memory(error, "the header", length);
    Header h;
    memset(&h, 0, sizeof h);
    h.limits = limits;
    h.allocator = allocator;
    h.filter = filter;
    h.error = error;
    h.data_begin = 8 + length;
    status = hry_transport_read_exactly(transport, 8, text, (size_t)length, error);
    if (status == HURRAY_OK) status = hry_import_catalogue(HURRAY_FORMAT_SAFETENSORS, size, allocator, &h.catalogue, error);
    if (status == HURRAY_OK) {
        h.arena = hry_arena(h.catalogue);
        status = fill(&h, text, (size_t)length, size);
    }
    hry_free(allocator, text, (size_t)length);
    hry_free_array(allocator, h.tensors, h.capacity, sizeof *h.tensors);
    hry_free_array(allocator, h.dims, h.dim_capacity, sizeof *h.dims);
    hry_names_clear(&h.kv_names);
    if (status != HURRAY_OK) {
        hry_catalogue_unref(h.catalogue);
        return status;
    }
    *out = h.catalogue;
    return HURRAY_OK;
}

HurrayStatus hry_import_safetensors(const HurrayTransport *transport, uint64_t size, const HryLimits *limits,
                                    const HurrayAllocator *allocator, HryCatalogue **out, HurrayError *error) {
    return hry_safetensors_open(transport, size, limits, NULL, allocator, out, error);
}
