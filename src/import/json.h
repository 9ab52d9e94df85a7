/* JSON as the safetensors rules want it, event by event: numbers stay text, both of two equal keys are seen, names keep their
 * length, nothing is recursive, and whatever is no JSON is refused with its place. */
#ifndef HRY_IMPORT_JSON_H
#define HRY_IMPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/fail.h"

#define HRY_JSON_MAX_DEPTH 127u
#define HRY_JSON_MAX_BYTES UINT64_C(100000000) /* a safetensors header, an index file */

typedef enum HryJsonKind {
    HRY_JSON_NULL,
    HRY_JSON_BOOLEAN,
    HRY_JSON_NUMBER,
    HRY_JSON_STRING,
    HRY_JSON_KEY,
    HRY_JSON_MAP,
    HRY_JSON_MAP_END,
    HRY_JSON_ARRAY,
    HRY_JSON_ARRAY_END
} HryJsonKind;

typedef struct HryJsonEvent {
    HryJsonKind kind;
    uint32_t depth;      /* maps and arrays around it: 0 for the outermost value, also for its end */
    const uint8_t *text; /* NUMBER: as written; STRING, KEY: decoded, valid during the call */
    size_t len;
    uint64_t offset; /* in the source, behind the token */
} HryJsonEvent;

/* False ends the parse; the handler has filled the error that hry_json_parse was given. */
typedef bool (*HryJsonHandler)(void *ctx, const HryJsonEvent *event);

/* The whole text is one value, white space around it. what: its name in messages ("header"); offset: of text in the source. */
HurrayStatus hry_json_parse(const uint8_t *text, size_t len, uint64_t offset, const char *what, HryJsonHandler handler, void *ctx,
                            const HurrayAllocator *allocator, HurrayError *error);

/* A number as u64: digits only, at most 2^64-1. */
bool hry_json_u64(const HryJsonEvent *event, uint64_t *out);

/* "a string", "a number", ...: for messages. */
const char *hry_json_kind_name(HryJsonKind kind);

static inline bool hry_json_is_space(uint8_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

#endif
