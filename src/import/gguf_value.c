#include "import/gguf_read.h"

#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "driver/transport_call.h"

#define MAX_NESTING 8u
#define KIND_STRING 8u
#define KIND_ARRAY 9u
#define KIND_COUNT 13u

typedef struct Kind {
    uint8_t bytes;   /* in the file; strings and arrays: the least */
    uint8_t kv;      /* kind of the format's KV */
    uint8_t widened; /* bytes of a converted element */
} Kind;

static const Kind kinds[KIND_COUNT] = {
    {1, HURRAY_KV_UINT64, 8},
    {1, HURRAY_KV_INT64, 8},
    {2, HURRAY_KV_UINT64, 8},
    {2, HURRAY_KV_INT64, 8},
    {4, HURRAY_KV_UINT64, 8},
    {4, HURRAY_KV_INT64, 8},
    {4, HURRAY_KV_FLOAT64, 8},
    {1, HURRAY_KV_BOOL, 1},
    {8, HURRAY_KV_STRING, sizeof(HurrayIoSlice)},
    {12, HURRAY_KV_ARRAY, sizeof(HurrayKvValue)},
    {8, HURRAY_KV_UINT64, 8},
    {8, HURRAY_KV_INT64, 8},
    {8, HURRAY_KV_FLOAT64, 8},
};

static HurrayStatus fail_end(HryGgufReader *r, uint64_t need, const char *what) {
    return hry_fail(r->error, HURRAY_ERR_TRUNCATED, what, r->position,
                    "%s needs %llu bytes at offset %llu, but the file has %llu left; damaged, or an incomplete download?", what, (unsigned long long)need,
                    (unsigned long long)r->position, (unsigned long long)hry_gguf_rest(r));
}

HurrayStatus hry_gguf_bytes(HryGgufReader *reader, void *dst, size_t len, const char *what) {
    uint8_t *to = dst;
    if (len > hry_gguf_rest(reader)) return fail_end(reader, len, what);
    while (len) {
        if (reader->at == reader->have) {
            uint64_t rest = hry_gguf_rest(reader);
            bool straight = len >= HRY_GGUF_BUFFER;
            size_t piece = rest < HRY_GGUF_BUFFER ? (size_t)rest : HRY_GGUF_BUFFER;
            HurrayStatus status = hry_transport_read_exactly(reader->transport, reader->position, straight ? to : reader->buffer,
                                                             straight ? len : piece, reader->error);
            if (status != HURRAY_OK) return status;
            if (straight) {
                reader->position += len;
                return HURRAY_OK;
            }
            reader->at = 0;
            reader->have = piece;
        }
        size_t step = reader->have - reader->at < len ? reader->have - reader->at : len;
        memcpy(to, reader->buffer + reader->at, step);
        reader->at += step;
        reader->position += step;
        to += step;
        len -= step;
    }
    return HURRAY_OK;
}

HurrayStatus hry_gguf_u32(HryGgufReader *reader, uint32_t *out, const char *what) {
    uint8_t bytes[4];
    HurrayStatus status = hry_gguf_bytes(reader, bytes, sizeof bytes, what);
    if (status == HURRAY_OK) *out = hry_load_u32(bytes);
    return status;
}

HurrayStatus hry_gguf_u64(HryGgufReader *reader, uint64_t *out, const char *what) {
    uint8_t bytes[8];
    HurrayStatus status = hry_gguf_bytes(reader, bytes, sizeof bytes, what);
    if (status == HURRAY_OK) *out = hry_load_u64(bytes);
    return status;
}

/* Memory for values: bounded by the budget before anything is allocated. NULL: the error is filled. */
static void *take(HryGgufReader *r, uint64_t count, size_t size, const char *what) {
    uint64_t bytes;
    if (!hry_mul_u64(count, size, &bytes) || bytes > r->budget) {
        hry_fail(r->error, HURRAY_ERR_LIMIT, what, r->position,
                 "the metadata or names would take more memory than is allowed here (max_kv_bytes, max_index_bytes)");
        return NULL;
    }
    r->budget -= bytes;
    void *memory = size == 1 ? hry_arena_take(&r->arena, (size_t)bytes) : hry_arena_take_aligned(&r->arena, (size_t)bytes);
    if (!memory) hry_fail_memory(r->error, what, bytes);
    return memory;
}

HurrayStatus hry_gguf_string(HryGgufReader *reader, const uint8_t **out, size_t *len, const char *what) {
    uint64_t length = 0;
    HurrayStatus status = hry_gguf_u64(reader, &length, what);
    if (status != HURRAY_OK) return status;
    if (length > hry_gguf_rest(reader)) return fail_end(reader, length, what);
    uint8_t *text = take(reader, length, 1, what);
    if (!text) return reader->error->code;
    *out = text;
    *len = (size_t)length;
    return hry_gguf_bytes(reader, text, (size_t)length, what);
}

static HurrayStatus check_kind(HryGgufReader *r, uint32_t kind) {
    if (kind < KIND_COUNT) return HURRAY_OK;
    return hry_fail(r->error, HURRAY_ERR_INVALID_KV, "kind", r->position - 4, "metadata kind %u is unknown; GGUF has 0 to 12",
                    (unsigned)kind);
}

static HurrayStatus read_number(HryGgufReader *r, uint32_t kind, HurrayKvValue *out) {
    uint8_t b[8] = {0};
    HurrayStatus status = hry_gguf_bytes(r, b, kinds[kind].bytes, "value");
    if (status != HURRAY_OK) return status;
    switch (kind) {
    case 0: out->u64 = b[0]; break;
    case 1: out->i64 = (int8_t)b[0]; break;
    case 2: out->u64 = hry_load_u16(b); break;
    case 3: out->i64 = (int16_t)hry_load_u16(b); break;
    case 4: out->u64 = hry_load_u32(b); break;
    case 5: out->i64 = (int32_t)hry_load_u32(b); break;
    case 6: out->f64 = (double)hry_load_f32(b); break;
    case 7: out->boolean = b[0] != 0; break;
    case 10: out->u64 = hry_load_u64(b); break;
    case 11: out->i64 = (int64_t)hry_load_u64(b); break;
    default: out->f64 = hry_load_f64(b); break;
    }
    return HURRAY_OK;
}

static HurrayStatus read_numbers(HryGgufReader *r, uint32_t kind, uint64_t count, void *dst) {
    uint8_t *to = dst;
    for (uint64_t i = 0; i < count; i++) {
        HurrayKvValue value = {0};
        HurrayStatus status = read_number(r, kind, &value);
        if (status != HURRAY_OK) return status;
        if (kinds[kind].kv == HURRAY_KV_BOOL)
            to[i] = (uint8_t)value.boolean;
        else
            memcpy(to + i * 8, &value.u64, 8);
    }
    return HURRAY_OK;
}

/* One element that is not UTF-8 makes all bytes. */
static HurrayStatus read_strings(HryGgufReader *r, uint64_t count, HurrayIoSlice *dst, uint32_t *element) {
    *element = HURRAY_KV_STRING;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *text = NULL;
        HurrayStatus status = hry_gguf_string(r, &text, &dst[i].len, "string");
        if (status != HURRAY_OK) return status;
        dst[i].ptr = text;
        if (*element == HURRAY_KV_STRING && !hry_utf8_valid(text, dst[i].len, NULL)) *element = HURRAY_KV_BYTES;
    }
    return HURRAY_OK;
}

/* Kind and count of an array, and memory for its elements; numbers and strings are read, arrays inside are left to the caller. */
static HurrayStatus open_array(HryGgufReader *r, HurrayKvValue *out) {
    uint32_t kind = 0;
    uint64_t count = 0;
    HurrayStatus status = hry_gguf_u32(r, &kind, "array");
    if (status == HURRAY_OK) status = check_kind(r, kind);
    if (status == HURRAY_OK) status = hry_gguf_u64(r, &count, "array");
    if (status != HURRAY_OK) return status;
    if (count > hry_gguf_rest(r) / kinds[kind].bytes)
        return hry_fail(r->error, HURRAY_ERR_TRUNCATED, "array", r->position,
                        "an array of %llu elements does not fit the %llu bytes that are left", (unsigned long long)count,
                        (unsigned long long)hry_gguf_rest(r));
    out->kind = HURRAY_KV_ARRAY;
    out->element = kinds[kind].kv;
    out->data_len = (size_t)count;
    void *elements = take(r, count, kinds[kind].widened, "array");
    if (!elements) return r->error->code;
    out->data = elements;
    if (kind == KIND_STRING) return read_strings(r, count, elements, &out->element);
    return kind == KIND_ARRAY ? HURRAY_OK : read_numbers(r, kind, count, elements);
}

/* Arrays of arrays, with a stack instead of recursion. */
static HurrayStatus read_array(HryGgufReader *r, HurrayKvValue *out) {
    struct {
        HurrayKvValue *next, *end;
    } stack[MAX_NESTING];
    size_t depth = 0;
    HurrayKvValue *target = out;
    for (;;) {
        memset(target, 0, sizeof *target);
        HurrayStatus status = open_array(r, target);
        if (status != HURRAY_OK) return status;
        if (target->element == HURRAY_KV_ARRAY && target->data_len) {
            if (depth + 1 == MAX_NESTING)
                return hry_fail(r->error, HURRAY_ERR_TOO_DEEP, "array", r->position, "arrays are nested deeper than %u levels",
                                MAX_NESTING);
            HurrayKvValue *items = (HurrayKvValue *)(uintptr_t)target->data;
            stack[depth].next = items;
            stack[depth].end = items + target->data_len;
            depth++;
        }
        while (depth && stack[depth - 1].next == stack[depth - 1].end) depth--;
        if (depth == 0) return HURRAY_OK;
        target = stack[depth - 1].next++;
    }
}

HurrayStatus hry_gguf_value(HryGgufReader *reader, uint32_t kind, HurrayKvValue *out) {
    memset(out, 0, sizeof *out);
    HurrayStatus status = check_kind(reader, kind);
    if (status != HURRAY_OK) return status;
    if (kind == KIND_ARRAY) return read_array(reader, out);
    out->kind = kinds[kind].kv;
    if (kind != KIND_STRING) return read_number(reader, kind, out);
    const uint8_t *text = NULL;
    status = hry_gguf_string(reader, &text, &out->data_len, "string");
    out->data = text;
    if (status == HURRAY_OK && !hry_utf8_valid(text, out->data_len, NULL)) out->kind = HURRAY_KV_BYTES;
    return status;
}
