#include "import/json.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/checked.h"
#include "base/utf8.h"

/* The library that parses does not survive a failed allocation, so ours leaves it by longjmp; every block it holds is in
 * a list and is freed there. */
typedef struct Block {
    struct Block *previous, *next;
    size_t size; /* whole block */
    size_t pad;
} Block;

typedef struct Parse {
    const HurrayAllocator *allocator;
    Block blocks; /* head of a ring */
    jmp_buf no_memory;
    size_t asked;
    yajl_handle yajl;
    HryJsonHandler handler;
    void *ctx;
    uint64_t offset;
    uint32_t depth;
} Parse;

static void *take_block(void *ctx, size_t size) {
    Parse *parse = ctx;
    size_t whole;
    Block *block = hry_add_size(size, sizeof(Block), &whole) ? hry_alloc_raw(parse->allocator, whole) : NULL;
    if (!block) {
        parse->asked = size;
        longjmp(parse->no_memory, 1);
    }
    block->size = whole;
    block->next = &parse->blocks;
    block->previous = parse->blocks.previous;
    block->previous->next = block;
    parse->blocks.previous = block;
    return block + 1;
}

static void drop_block(void *ctx, void *memory) {
    Parse *parse = ctx;
    if (!memory) return;
    Block *block = (Block *)memory - 1;
    block->previous->next = block->next;
    block->next->previous = block->previous;
    hry_free(parse->allocator, block, block->size);
}

static void *retake_block(void *ctx, void *memory, size_t size) {
    void *bigger = take_block(ctx, size);
    if (memory) {
        size_t old = ((Block *)memory - 1)->size - sizeof(Block);
        memcpy(bigger, memory, old < size ? old : size);
        drop_block(ctx, memory);
    }
    return bigger;
}

static int emit(Parse *parse, HryJsonKind kind, const void *text, size_t len) {
    HryJsonEvent event = {kind, parse->depth, text, len, parse->offset + yajl_get_bytes_consumed(parse->yajl)};
    return parse->handler(parse->ctx, &event);
}

static int on_null(void *ctx) { return emit(ctx, HRY_JSON_NULL, NULL, 0); }
static int on_boolean(void *ctx, int value) { return emit(ctx, HRY_JSON_BOOLEAN, value ? "true" : "false", value ? 4 : 5); }
static int on_number(void *ctx, const char *text, size_t len) { return emit(ctx, HRY_JSON_NUMBER, text, len); }
static int on_string(void *ctx, const unsigned char *text, size_t len) { return emit(ctx, HRY_JSON_STRING, text, len); }
static int on_key(void *ctx, const unsigned char *text, size_t len) { return emit(ctx, HRY_JSON_KEY, text, len); }

static int open_level(Parse *parse, HryJsonKind kind) {
    int go_on = emit(parse, kind, NULL, 0);
    parse->depth++;
    return go_on;
}

static int close_level(Parse *parse, HryJsonKind kind) {
    parse->depth--;
    return emit(parse, kind, NULL, 0);
}

static int on_map(void *ctx) { return open_level(ctx, HRY_JSON_MAP); }
static int on_map_end(void *ctx) { return close_level(ctx, HRY_JSON_MAP_END); }
static int on_array(void *ctx) { return open_level(ctx, HRY_JSON_ARRAY); }
static int on_array_end(void *ctx) { return close_level(ctx, HRY_JSON_ARRAY_END); }

static const yajl_callbacks callbacks = {
    on_null, on_boolean, NULL, NULL, on_number, on_string, on_map, on_key, on_map_end, on_array, on_array_end,
};

/* "`}`", "a NUL byte", "byte 0x01", "the end": what stands at a place. */
static const char *found_at(const uint8_t *text, size_t len, size_t at, char out[32]) {
    if (at >= len)
        snprintf(out, 32, "the end");
    else if (text[at] == 0)
        snprintf(out, 32, "a NUL byte");
    else if (text[at] > 0x20 && text[at] < 0x7F)
        snprintf(out, 32, "`%c`", text[at]);
    else
        snprintf(out, 32, "byte 0x%02x", (unsigned)text[at]);
    return out;
}

static int hex4(const uint8_t *text, size_t len, size_t at) {
    int value = 0;
    if (len < 4 || at > len - 4) return -1;
    for (size_t i = 0; i < 4; i++) {
        uint8_t c = text[at + i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Bytes of the escape whose backslash is at `at`; 0: half a surrogate pair. Other faults are left to the parser. */
static size_t escape_length(const uint8_t *text, size_t len, size_t at) {
    if (at + 1 >= len || text[at + 1] != 'u') return 2;
    int first = hex4(text, len, at + 2);
    if (first < 0xD800 || first > 0xDFFF) return 2;
    if (first > 0xDBFF || at + 7 >= len || text[at + 6] != '\\' || text[at + 7] != 'u') return 0;
    int second = hex4(text, len, at + 8);
    return second >= 0xDC00 && second <= 0xDFFF ? 12 : 0;
}

/* What the parser would let through: bad UTF-8, half surrogate pairs, deep nesting, anything behind the value. */
static HurrayStatus look_before(const uint8_t *text, size_t len, uint64_t offset, const char *what, HurrayError *error) {
    size_t bad = 0;
    if (!hry_utf8_valid(text, len, &bad))
        return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, what, offset + bad,
                        "the JSON is not UTF-8: byte 0x%02x at offset %llu; the file is damaged or was written by a faulty program",
                        (unsigned)text[bad], (unsigned long long)(offset + bad));
    uint32_t depth = 0;
    for (size_t at = 0; at < len; at++) {
        uint8_t c = text[at];
        if (c == '"') {
            for (at++; at < len && text[at] != '"';) {
                size_t step = text[at] == '\\' ? escape_length(text, len, at) : 1;
                if (step == 0)
                    return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, what, offset + at,
                                    "the escape at offset %llu is half a surrogate pair, which is no UTF-8 text",
                                    (unsigned long long)(offset + at));
                at += step;
            }
        } else if (c == '{' || c == '[') {
            if (++depth > HRY_JSON_MAX_DEPTH)
                return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, what, offset + at, "the JSON is nested deeper than %u levels",
                                HRY_JSON_MAX_DEPTH);
        } else if ((c == '}' || c == ']') && depth > 0 && --depth == 0) {
            char found[32];
            while (++at < len && hry_json_is_space(text[at])) {
            }
            if (at >= len) return HURRAY_OK;
            return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, what, offset + at,
                            "after the end of the JSON stands %s at offset %llu; only spaces may follow", found_at(text, len, at, found),
                            (unsigned long long)(offset + at));
        }
    }
    return HURRAY_OK;
}

/* The parser's own words without their line break, and the place. */
static HurrayStatus fail_syntax(Parse *parse, const uint8_t *text, size_t len, const char *what, HurrayError *error) {
    char reason[96] = "", found[32];
    size_t at = yajl_get_bytes_consumed(parse->yajl);
    unsigned char *words = yajl_get_error(parse->yajl, 0, text, len);
    if (words) snprintf(reason, sizeof reason, "%s", (const char *)words);
    reason[strcspn(reason, "\n")] = 0;
    if (at > 0 && at <= len) at--; /* it counts the byte that it did not like */
    return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, what, parse->offset + at, "no valid JSON at offset %llu, where %s stands (%s)",
                    (unsigned long long)(parse->offset + at), found_at(text, len, at, found), reason);
}

static HurrayStatus run(Parse *parse, const uint8_t *text, size_t len, const char *what, HurrayError *error) {
    yajl_alloc_funcs memory = {take_block, retake_block, drop_block, parse};
    if (setjmp(parse->no_memory)) return hry_fail_memory(error, "parsing JSON", parse->asked);
    parse->yajl = yajl_alloc(&callbacks, &memory, parse);
    if (!parse->yajl) return hry_fail_memory(error, "parsing JSON", 0);
    yajl_status status = yajl_parse(parse->yajl, text, len);
    if (status == yajl_status_ok) status = yajl_complete_parse(parse->yajl);
    if (status == yajl_status_client_canceled) return error->code;
    if (status == yajl_status_error) return fail_syntax(parse, text, len, what, error);
    return HURRAY_OK;
}

HurrayStatus hry_json_parse(const uint8_t *text, size_t len, uint64_t offset, const char *what, HryJsonHandler handler, void *ctx,
                            const HurrayAllocator *allocator, HurrayError *error) {
    HurrayStatus status = look_before(text, len, offset, what, error);
    if (status != HURRAY_OK) return status;
    Parse parse;
    memset(&parse, 0, sizeof parse);
    parse.allocator = allocator;
    parse.blocks.previous = parse.blocks.next = &parse.blocks;
    parse.handler = handler;
    parse.ctx = ctx;
    parse.offset = offset;
    status = run(&parse, text, len, what, error);
    while (parse.blocks.next != &parse.blocks) drop_block(&parse, parse.blocks.next + 1);
    return status;
}

bool hry_json_u64(const HryJsonEvent *event, uint64_t *out) {
    if (event->kind != HRY_JSON_NUMBER || event->len == 0) return false;
    uint64_t value = 0;
    for (size_t i = 0; i < event->len; i++) {
        uint8_t c = event->text[i];
        if (c < '0' || c > '9' || !hry_mul_u64(value, 10, &value) || !hry_add_u64(value, (uint64_t)(c - '0'), &value)) return false;
    }
    *out = value;
    return true;
}

const char *hry_json_kind_name(HryJsonKind kind) {
    static const char *const names[] = {"null", "true or false", "a number", "a string", "a key", "an object", "`}`", "an array", "`]`"};
    return names[kind];
}
