/* One tensor described: as JSON, as columns of a table, and its descriptor as an annotated hex table. */
#ifndef HRY_CLI_DESCRIBE_H
#define HRY_CLI_DESCRIBE_H

#include "json.h"
#include "model.h"

/* The object of spec "inspect --json". */
void describe_json(yajl_gen json, Model *model, const HurrayTensorInfo *info);
void describe_kv_json(yajl_gen json, const HurrayKvEntry *entry);

/* "[2, 3]" (shortened to fit), "Q4_K" or "int4 per-block" ..., "cpu". */
void describe_shape(char *text, size_t size, const HurrayDescriptor *descriptor);
void describe_type(char *text, size_t size, const HurrayDescriptor *descriptor);
void describe_layout(char *text, size_t size, const HurrayDescriptor *descriptor);
const char *describe_device(const HurrayDescriptor *descriptor);
uint64_t describe_bytes(const HurrayDescriptor *descriptor);
/* A KV value on one line, arrays and long texts shortened. */
void describe_kv_text(FILE *to, const HurrayKvEntry *entry);

/* The name of a GGML block type that an importer carries (docs/format.md: private layout GGMLBLK1), or NULL. */
const char *ggml_word(const HurrayDescriptor *descriptor);

/* Offset, bytes, field and meaning of each field of the canonical encoding. */
int print_hex(const HurrayDescriptor *descriptor);

#endif
