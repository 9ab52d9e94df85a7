/* JSON to standard output through YAJL, with exact integers and any text. */
#ifndef HRY_CLI_JSON_H
#define HRY_CLI_JSON_H

#include <yajl/yajl_gen.h>

#include "cli.h"

yajl_gen json_begin(void); /* NULL: no memory */
void json_end(yajl_gen json);
void json_text(yajl_gen json, const void *text, size_t len);
void json_word(yajl_gen json, const char *text);
void json_path(yajl_gen json, const char *path); /* any bytes: what is no UTF-8 is escaped */
void json_u64(yajl_gen json, uint64_t value);
void json_i64(yajl_gen json, int64_t value);
void json_f64(yajl_gen json, double value); /* "nan", "inf", "-inf" are texts */
void json_hex(yajl_gen json, const void *bytes, size_t len);
void json_u64_array(yajl_gen json, const uint64_t *values, size_t count);
void json_i64_array(yajl_gen json, const int64_t *values, size_t count);

/* A key of a map, alone or with its value. */
void json_key(yajl_gen json, const char *key);
void json_key_word(yajl_gen json, const char *key, const char *value);
void json_key_path(yajl_gen json, const char *key, const char *value);
void json_key_bool(yajl_gen json, const char *key, bool value);
void json_key_u64(yajl_gen json, const char *key, uint64_t value);
void json_key_i64(yajl_gen json, const char *key, int64_t value);
void json_key_f64(yajl_gen json, const char *key, double value);
void json_key_u64_array(yajl_gen json, const char *key, const uint64_t *values, size_t count);

#endif
