#include "format/kv.h"

#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/emit.h"
#include "base/names.h"
#include "base/utf8.h"

#define BAD(field, at, ...) hry_fail(error, HURRAY_ERR_INVALID_KV, field, at, __VA_ARGS__)

static void key_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const HurrayKvEntry *entries = ctx;
    *name = entries[i].key;
    *len = entries[i].key_len;
}

static HurrayStatus name_key(HurrayError *error, const HurrayKvEntry *entry) {
    hry_error_set_tensor(error, entry->key, entry->key_len, HURRAY_NONE);
    return error->code;
}

static HurrayStatus check_unique(const HurrayKvEntry *entries, size_t count, const HurrayAllocator *allocator, HurrayError *error) {
    HryNames names;
    if (!hry_names_init(&names, allocator, count, key_at, entries)) return hry_fail_memory(error, "the keys of the metadata", count);
    HurrayStatus status = HURRAY_OK;
    for (size_t i = 0; status == HURRAY_OK && i < count; i++) {
        uint64_t other = 0;
        HryNamesAdd added = hry_names_add(&names, i, &other);
        if (added == HRY_NAMES_NO_MEMORY) status = hry_fail_memory(error, "the keys of the metadata", count);
        if (added == HRY_NAMES_DUPLICATE) {
            BAD("kv.key", HRY_NO_OFFSET, "entries %llu and %zu of the metadata have the same key; keys must be unique",
                (unsigned long long)other, i);
            status = name_key(error, &entries[i]);
        }
    }
    hry_names_clear(&names);
    return status;
}

static HurrayStatus check_key(const void *key, size_t len, uint64_t at, HurrayError *error) {
    size_t bad_at;
    if (len == 0) return BAD("kv.key", at, "a metadata key is empty; it must have 1 to 65535 bytes");
    if (len > UINT16_MAX) return BAD("kv.key", at, "a metadata key has %zu bytes; it must have 1 to 65535", len);
    if (!hry_utf8_valid(key, len, &bad_at)) return BAD("kv.key", at, "a metadata key is not UTF-8 from its byte %zu on", bad_at);
    return HURRAY_OK;
}

static HurrayStatus check_text(const void *text, size_t len, uint64_t at, HurrayError *error) {
    size_t bad_at;
    if (hry_utf8_valid(text, len, &bad_at)) return HURRAY_OK;
    return BAD("kv.value", at, "a metadata string is not UTF-8 from its byte %zu on; store it as bytes instead", bad_at);
}

/* ---- bytes to entries ---- */

/* Bytes of an array element in memory. */
static size_t element_size(uint32_t kind) {
    switch (kind) {
    case HURRAY_KV_BOOL: return 1;
    case HURRAY_KV_STRING:
    case HURRAY_KV_BYTES: return sizeof(HurrayIoSlice);
    default: return 8;
    }
}

/* Bytes of an element in the section, at least. */
static size_t element_least(uint32_t kind) {
    if (kind == HURRAY_KV_BOOL) return 1;
    return kind == HURRAY_KV_STRING || kind == HURRAY_KV_BYTES ? 4 : 8;
}

static HurrayStatus fail_short(uint64_t at, HurrayError *error) {
    return BAD("kv.value", at, "a metadata value runs past the end of the section");
}

/* One value that is no array. */
static HurrayStatus read_scalar(HryCursor *cursor, uint32_t kind, HurrayKvValue *out, HurrayError *error) {
    uint64_t at = cursor->offset;
    uint32_t len = 0;
    uint8_t truth = 0;
    bool whole = true;
    switch (kind) {
    case HURRAY_KV_STRING:
    case HURRAY_KV_BYTES:
        whole = hry_cursor_u32(cursor, &len) && (out->data = hry_cursor_take(cursor, len)) != NULL;
        out->data_len = len;
        if (whole && kind == HURRAY_KV_STRING) return check_text(out->data, len, at + 4, error);
        break;
    case HURRAY_KV_INT64: whole = hry_cursor_i64(cursor, &out->i64); break;
    case HURRAY_KV_UINT64: whole = hry_cursor_u64(cursor, &out->u64); break;
    case HURRAY_KV_FLOAT64: whole = hry_cursor_f64(cursor, &out->f64); break;
    default:
        whole = hry_cursor_u8(cursor, &truth);
        if (truth > 1) return BAD("kv.value", at, "a truth value is %u, expected 0 or 1", truth);
        out->boolean = truth;
        break;
    }
    return whole ? HURRAY_OK : fail_short(at, error);
}

static void store_element(void *array, size_t i, uint32_t kind, const HurrayKvValue *value) {
    switch (kind) {
    case HURRAY_KV_STRING:
    case HURRAY_KV_BYTES: ((HurrayIoSlice *)array)[i] = (HurrayIoSlice){value->data, value->data_len}; break;
    case HURRAY_KV_INT64: ((int64_t *)array)[i] = value->i64; break;
    case HURRAY_KV_UINT64: ((uint64_t *)array)[i] = value->u64; break;
    case HURRAY_KV_FLOAT64: ((double *)array)[i] = value->f64; break;
    default: ((uint8_t *)array)[i] = (uint8_t)value->boolean; break;
    }
}

/* Reads the array behind its tag. used: bytes of the arrays' block taken so far, grown by this one's (rounded up to 8); arrays NULL:
 * only checked and measured. */
static HurrayStatus read_array(HryCursor *cursor, HurrayKvValue *out, uint8_t *arrays, size_t *used, HurrayError *error) {
    uint64_t at = cursor->offset, room;
    uint8_t kind = 0;
    uint32_t count = 0;
    if (!hry_cursor_u8(cursor, &kind) || !hry_cursor_u32(cursor, &count)) return fail_short(at, error);
    if (kind < HURRAY_KV_STRING || kind > HURRAY_KV_BYTES)
        return BAD("kv.value", at, "the elements of a metadata array have the tag %u, expected 1 to 6", kind);
    if (count > cursor->left / element_least(kind))
        return BAD("kv.value", at + 1, "a metadata array promises %u elements, the %zu bytes that remain do not hold them", count,
                   cursor->left);
    if (!hry_mul_u64(count, element_size(kind), &room) || !hry_align_up(room, 8, &room) || room > SIZE_MAX - *used)
        return hry_fail_memory(error, "a metadata array", count);
    void *array = arrays ? arrays + *used : NULL;
    for (uint32_t i = 0; i < count; i++) {
        HurrayKvValue value = {0};
        HurrayStatus status = read_scalar(cursor, kind, &value, error);
        if (status != HURRAY_OK) return status;
        if (array) store_element(array, i, kind, &value);
    }
    out->element = kind;
    out->data = array;
    out->data_len = count;
    *used += (size_t)room;
    return HURRAY_OK;
}

static HurrayStatus read_entry(HryCursor *cursor, HurrayKvEntry *out, uint8_t *arrays, size_t *used, HurrayError *error) {
    uint64_t at = cursor->offset;
    uint16_t key_len = 0;
    uint8_t kind = 0;
    HurrayStatus status;
    memset(out, 0, sizeof *out);
    if (!hry_cursor_u16(cursor, &key_len) || !(out->key = hry_cursor_take(cursor, key_len)) || !hry_cursor_u8(cursor, &kind))
        return BAD("kv.key", at, "a metadata entry runs past the end of the section");
    out->key_len = key_len;
    out->value.kind = kind;
    if ((status = check_key(out->key, key_len, at, error)) != HURRAY_OK) return status;
    if (kind == HURRAY_KV_ARRAY)
        status = read_array(cursor, &out->value, arrays, used, error);
    else if (kind >= HURRAY_KV_STRING && kind <= HURRAY_KV_BYTES)
        status = read_scalar(cursor, kind, &out->value, error);
    else
        status = BAD("kv.value_tag", cursor->offset - 1, "the metadata value has the tag %u, expected 1 to 7", kind);
    return status == HURRAY_OK || status == HURRAY_ERR_NO_MEMORY ? status : name_key(error, out);
}

HurrayStatus hry_kv_decode(const void *bytes, size_t len, uint64_t offset, uint8_t container_minor, const HurrayAllocator *allocator,
                           HryKv *out, HurrayError *error) {
    HryCursor cursor = hry_cursor(bytes, len, offset);
    uint32_t count = 0;
    memset(out, 0, sizeof *out);
    if (!hry_cursor_u32(&cursor, &count)) return BAD("kv.count", offset, "the KV section has %zu bytes, too few for its count", len);
    if (count > cursor.left / HRY_KV_MIN_ENTRY)
        return BAD("kv.count", offset, "the KV section promises %u entries, its %zu bytes hold at most %zu", count, len,
                   cursor.left / HRY_KV_MIN_ENTRY);
    HryCursor first = cursor;
    HurrayKvEntry entry;
    HurrayStatus status;
    size_t arrays_size = 0;
    for (uint32_t i = 0; i < count; i++)
        if ((status = read_entry(&cursor, &entry, NULL, &arrays_size, error)) != HURRAY_OK) return status;
    if (cursor.left && container_minor == 0)
        return BAD("trailer.kv_length", cursor.offset, "%zu bytes of the KV section are left over after its last entry", cursor.left);

    HryKv kv = {.allocator = *allocator, .count = count, .arrays_size = arrays_size};
    kv.entries = hry_alloc_array(allocator, count, sizeof *kv.entries);
    kv.arrays = hry_alloc_raw(allocator, arrays_size);
    if ((count && !kv.entries) || (arrays_size && !kv.arrays)) {
        hry_kv_clear(&kv);
        return hry_fail_memory(error, "the metadata", (uint64_t)count * sizeof *kv.entries + arrays_size);
    }
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) read_entry(&first, &kv.entries[i], kv.arrays, &used, error);
    if (count && (status = check_unique(kv.entries, count, allocator, error)) != HURRAY_OK) {
        hry_kv_clear(&kv);
        return status;
    }
    *out = kv;
    return HURRAY_OK;
}

void hry_kv_clear(HryKv *kv) {
    hry_free_array(&kv->allocator, kv->entries, kv->count, sizeof *kv->entries);
    hry_free(&kv->allocator, kv->arrays, kv->arrays_size);
    memset(kv, 0, sizeof *kv);
}

size_t hry_kv_position(const HurrayKvEntry *entries, size_t count, const void *key, size_t len) {
    for (size_t i = 0; i < count; i++)
        if (entries[i].key_len == len && (len == 0 || memcmp(entries[i].key, key, len) == 0)) return i;
    return count;
}

/* ---- entries to bytes ---- */

static HurrayStatus check_blob(const void *data, size_t len, bool text, HurrayError *error) {
    if (len && !data)
        return hry_fail(error, HURRAY_ERR_NULL_POINTER, "kv.value", HRY_NO_OFFSET, "a metadata value of %zu bytes has no data", len);
    if (len > UINT32_MAX) return BAD("kv.value", HRY_NO_OFFSET, "a metadata value has %zu bytes, at most 4294967295 can be stored", len);
    return text ? check_text(data, len, HRY_NO_OFFSET, error) : HURRAY_OK;
}

static HurrayStatus check_array(const HurrayKvValue *value, HurrayError *error) {
    if (value->element == HURRAY_KV_ARRAY)
        return BAD("kv.value", HRY_NO_OFFSET, "a metadata array holds arrays, which the format cannot store; flatten it");
    if (value->element < HURRAY_KV_STRING || value->element > HURRAY_KV_BYTES)
        return BAD("kv.value", HRY_NO_OFFSET, "the elements of a metadata array have the kind %u, expected 1 to 6", value->element);
    if (value->data_len && !value->data)
        return hry_fail(error, HURRAY_ERR_NULL_POINTER, "kv.value", HRY_NO_OFFSET, "a metadata array of %zu elements has no data",
                        value->data_len);
    if (value->data_len > UINT32_MAX)
        return BAD("kv.value", HRY_NO_OFFSET, "a metadata array has %zu elements, at most 4294967295 can be stored", value->data_len);
    for (size_t i = 0; i < value->data_len; i++) {
        HurrayStatus status = HURRAY_OK;
        if (value->element == HURRAY_KV_BOOL && ((const uint8_t *)value->data)[i] > 1)
            status = BAD("kv.value", HRY_NO_OFFSET, "element %zu of a metadata array is the truth value %u, expected 0 or 1", i,
                         ((const uint8_t *)value->data)[i]);
        if (value->element == HURRAY_KV_STRING || value->element == HURRAY_KV_BYTES) {
            const HurrayIoSlice *slices = value->data;
            status = check_blob(slices[i].ptr, slices[i].len, value->element == HURRAY_KV_STRING, error);
        }
        if (status != HURRAY_OK) return status;
    }
    return HURRAY_OK;
}

static HurrayStatus check_entry(const HurrayKvEntry *entry, HurrayError *error) {
    const HurrayKvValue *value = &entry->value;
    HurrayStatus status;
    if (entry->key_len && !entry->key) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "kv.key", HRY_NO_OFFSET, "a metadata key is NULL");
    if ((status = check_key(entry->key, entry->key_len, HRY_NO_OFFSET, error)) != HURRAY_OK) return status;
    switch (value->kind) {
    case HURRAY_KV_STRING: status = check_blob(value->data, value->data_len, true, error); break;
    case HURRAY_KV_BYTES: status = check_blob(value->data, value->data_len, false, error); break;
    case HURRAY_KV_ARRAY: status = check_array(value, error); break;
    case HURRAY_KV_BOOL:
        if (value->boolean > 1)
            status = BAD("kv.value", HRY_NO_OFFSET, "a truth value is %llu, expected 0 or 1", (unsigned long long)value->boolean);
        break;
    case HURRAY_KV_INT64:
    case HURRAY_KV_UINT64:
    case HURRAY_KV_FLOAT64: break;
    default: status = BAD("kv.value", HRY_NO_OFFSET, "the metadata value has the kind %u, expected 1 to 7", value->kind); break;
    }
    return status == HURRAY_OK ? HURRAY_OK : name_key(error, entry);
}

static void emit_blob(HryEmit *emit, const void *data, size_t len) {
    hry_emit_u32(emit, (uint32_t)len);
    hry_emit_bytes(emit, data, len);
}

static void emit_array(HryEmit *emit, const HurrayKvValue *value) {
    hry_emit_u8(emit, (uint8_t)value->element);
    hry_emit_u32(emit, (uint32_t)value->data_len);
    for (size_t i = 0; i < value->data_len; i++) switch (value->element) {
        case HURRAY_KV_STRING:
        case HURRAY_KV_BYTES:
            emit_blob(emit, ((const HurrayIoSlice *)value->data)[i].ptr, ((const HurrayIoSlice *)value->data)[i].len);
            break;
        case HURRAY_KV_INT64: hry_emit_u64(emit, (uint64_t)((const int64_t *)value->data)[i]); break;
        case HURRAY_KV_UINT64: hry_emit_u64(emit, ((const uint64_t *)value->data)[i]); break;
        case HURRAY_KV_FLOAT64: hry_emit_f64(emit, ((const double *)value->data)[i]); break;
        default: hry_emit_u8(emit, ((const uint8_t *)value->data)[i]); break;
        }
}

static void emit_entries(HryEmit *emit, const HurrayKvEntry *entries, size_t count) {
    hry_emit_u32(emit, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        const HurrayKvValue *value = &entries[i].value;
        hry_emit_u16(emit, (uint16_t)entries[i].key_len);
        hry_emit_bytes(emit, entries[i].key, entries[i].key_len);
        hry_emit_u8(emit, (uint8_t)value->kind);
        switch (value->kind) {
        case HURRAY_KV_STRING:
        case HURRAY_KV_BYTES: emit_blob(emit, value->data, value->data_len); break;
        case HURRAY_KV_FLOAT64: hry_emit_f64(emit, value->f64); break;
        case HURRAY_KV_BOOL: hry_emit_u8(emit, (uint8_t)value->boolean); break;
        case HURRAY_KV_ARRAY: emit_array(emit, value); break;
        default: hry_emit_u64(emit, value->u64); break;
        }
    }
}

HurrayStatus hry_kv_encode(const HurrayKvEntry *entries, size_t count, const HurrayAllocator *allocator, uint8_t **bytes, size_t *len,
                           HurrayError *error) {
    HurrayStatus status;
    *bytes = NULL;
    *len = 0;
    if (count == 0) return HURRAY_OK;
    for (size_t i = 0; i < count; i++)
        if ((status = check_entry(&entries[i], error)) != HURRAY_OK) return status;
    if ((status = check_unique(entries, count, allocator, error)) != HURRAY_OK) return status;
    HryEmit emit = hry_emit(NULL, 0);
    emit_entries(&emit, entries, count);
    if (emit.overflow || emit.len > UINT32_MAX)
        return BAD("kv", HRY_NO_OFFSET, "the metadata needs %zu bytes, the section holds at most 4294967295; store less", emit.len);
    uint8_t *memory = hry_alloc_raw(allocator, emit.len);
    if (!memory) return hry_fail_memory(error, "the KV section", emit.len);
    *len = emit.len;
    emit = hry_emit(memory, *len);
    emit_entries(&emit, entries, count);
    *bytes = memory;
    return HURRAY_OK;
}
