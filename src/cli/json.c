#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void write_out(void *ctx, const char *text, size_t len) {
    (void)ctx;
    fwrite(text, 1, len, stdout);
}

yajl_gen json_begin(void) {
    yajl_gen json = yajl_gen_alloc(NULL);
    if (!json) return NULL;
    yajl_gen_config(json, yajl_gen_beautify, 1);
    yajl_gen_config(json, yajl_gen_indent_string, " ");
    yajl_gen_config(json, yajl_gen_print_callback, write_out, NULL);
    return json;
}

void json_end(yajl_gen json) { yajl_gen_free(json); }

void json_text(yajl_gen json, const void *text, size_t len) { yajl_gen_string(json, len ? text : (const unsigned char *)"", len); }

void json_word(yajl_gen json, const char *text) { json_text(json, text, strlen(text)); }

void json_path(yajl_gen json, const char *path) {
    char *escaped = text_is_utf8(path, strlen(path)) ? NULL : escape_text(path, strlen(path));
    json_word(json, escaped ? escaped : path);
    free(escaped);
}

void json_u64(yajl_gen json, uint64_t value) {
    char text[32];
    int n = snprintf(text, sizeof text, "%" PRIu64, value);
    yajl_gen_number(json, text, (size_t)n);
}

void json_i64(yajl_gen json, int64_t value) { yajl_gen_integer(json, value); }

void json_f64(yajl_gen json, double value) {
    char text[40];
    if (isnan(value)) {
        json_word(json, "nan");
    } else if (isinf(value)) {
        json_word(json, value > 0 ? "inf" : "-inf");
    } else {
        int n = snprintf(text, sizeof text, "%.17g", value);
        if (!strpbrk(text, ".e")) {
            memcpy(text + n, ".0", 3);
            n += 2;
        }
        yajl_gen_number(json, text, (size_t)n);
    }
}

void json_hex(yajl_gen json, const void *bytes, size_t len) {
    static const char digits[] = "0123456789abcdef";
    const unsigned char *in = bytes;
    char *text = malloc(len * 2 + 1);
    for (size_t i = 0; text && i < len; i++) {
        text[2 * i] = digits[in[i] >> 4];
        text[2 * i + 1] = digits[in[i] & 15];
    }
    json_text(json, text ? text : "", text ? len * 2 : 0);
    free(text);
}

void json_u64_array(yajl_gen json, const uint64_t *values, size_t count) {
    yajl_gen_array_open(json);
    for (size_t i = 0; i < count; i++) json_u64(json, values[i]);
    yajl_gen_array_close(json);
}

void json_i64_array(yajl_gen json, const int64_t *values, size_t count) {
    yajl_gen_array_open(json);
    for (size_t i = 0; i < count; i++) json_i64(json, values[i]);
    yajl_gen_array_close(json);
}

void json_key(yajl_gen json, const char *key) { json_word(json, key); }

#define KEY_AND_VALUE(kind, type, write)                                                                                                   \
    void json_key_##kind(yajl_gen json, const char *key, type value) {                                                                     \
        json_key(json, key);                                                                                                               \
        write(json, value);                                                                                                                \
    }
KEY_AND_VALUE(word, const char *, json_word)
KEY_AND_VALUE(path, const char *, json_path)
KEY_AND_VALUE(bool, bool, yajl_gen_bool)
KEY_AND_VALUE(u64, uint64_t, json_u64)
KEY_AND_VALUE(i64, int64_t, json_i64)
KEY_AND_VALUE(f64, double, json_f64)
#undef KEY_AND_VALUE

void json_key_u64_array(yajl_gen json, const char *key, const uint64_t *values, size_t count) {
    json_key(json, key);
    json_u64_array(json, values, count);
}
