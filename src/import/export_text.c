#include "import/export_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hry_export_text(HryEmit *emit, const char *text) { hry_emit_bytes(emit, text, strlen(text)); }

void hry_export_u64(HryEmit *emit, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    hry_export_text(emit, text);
}

/* The inside of a JSON string. */
static void escaped(HryEmit *emit, const void *text, size_t len) {
    static const char letters[] = "btn?fr"; /* from 8 on */
    const uint8_t *bytes = text;
    for (size_t at = 0; at < len;) {
        size_t run = at;
        while (run < len && bytes[run] >= 0x20 && bytes[run] != '"' && bytes[run] != '\\') run++;
        hry_emit_bytes(emit, bytes + at, run - at);
        at = run;
        if (at == len) break;
        char piece[8];
        uint8_t c = bytes[at++];
        if (c == '"' || c == '\\')
            snprintf(piece, sizeof piece, "\\%c", c);
        else if (c >= 8 && c <= 13 && c != 11)
            snprintf(piece, sizeof piece, "\\%c", letters[c - 8]);
        else
            snprintf(piece, sizeof piece, "\\u%04x", c);
        hry_export_text(emit, piece);
    }
}

void hry_export_string(HryEmit *emit, const void *text, size_t len) {
    hry_emit_u8(emit, '"');
    escaped(emit, text, len);
    hry_emit_u8(emit, '"');
}

/* The shortest decimal that reads back as the same number, with a point whatever the locale. */
static void number_text(double value, char out[40]) {
    if (isnan(value))
        snprintf(out, 40, "nan");
    else if (isinf(value))
        snprintf(out, 40, value < 0 ? "-inf" : "inf");
    else {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(out, 40, "%.*g", digits, value);
            if (strtod(out, NULL) == value) break;
        }
        for (char *c = out; *c; c++)
            if (!strchr("0123456789+-e", *c)) *c = '.';
    }
}

static void hex(HryEmit *emit, const void *bytes, size_t len) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = ((const uint8_t *)bytes)[i];
        hry_emit_u8(emit, (uint8_t)digits[byte >> 4]);
        hry_emit_u8(emit, (uint8_t)digits[byte & 15]);
    }
}

static void scalar(HryEmit *emit, uint32_t kind, const HurrayKvValue *value) {
    char text[40];
    if (kind == HURRAY_KV_INT64)
        snprintf(text, sizeof text, "%" PRId64, value->i64);
    else if (kind == HURRAY_KV_UINT64)
        snprintf(text, sizeof text, "%" PRIu64, value->u64);
    else if (kind == HURRAY_KV_FLOAT64)
        number_text(value->f64, text);
    else
        snprintf(text, sizeof text, value->boolean ? "true" : "false");
    hry_export_text(emit, text);
}

static void array(HryEmit *emit, const HurrayKvValue *value) {
    hry_emit_u8(emit, '[');
    for (size_t i = 0; i < value->data_len; i++) {
        HurrayKvValue element = {0};
        if (i) hry_emit_u8(emit, ',');
        if (value->element == HURRAY_KV_STRING || value->element == HURRAY_KV_BYTES) {
            const HurrayIoSlice *slice = (const HurrayIoSlice *)value->data + i;
            hry_export_text(emit, "\\\"");
            if (value->element == HURRAY_KV_BYTES)
                hex(emit, slice->ptr, slice->len);
            else
                escaped(emit, slice->ptr, slice->len);
            hry_export_text(emit, "\\\"");
            continue;
        }
        if (value->element == HURRAY_KV_BOOL)
            element.boolean = ((const uint8_t *)value->data)[i];
        else
            memcpy(&element.u64, (const uint8_t *)value->data + i * 8, 8);
        scalar(emit, value->element, &element);
    }
    hry_emit_u8(emit, ']');
}

void hry_export_value(HryEmit *emit, const HurrayKvValue *value) {
    hry_emit_u8(emit, '"');
    if (value->kind == HURRAY_KV_STRING)
        escaped(emit, value->data, value->data_len);
    else if (value->kind == HURRAY_KV_BYTES)
        hex(emit, value->data, value->data_len);
    else if (value->kind == HURRAY_KV_ARRAY)
        array(emit, value);
    else
        scalar(emit, value->kind, value);
    hry_emit_u8(emit, '"');
}
