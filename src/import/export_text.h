/* JSON text for export: names, and metadata that is no string. */
#ifndef HRY_IMPORT_EXPORT_TEXT_H
#define HRY_IMPORT_EXPORT_TEXT_H

#include "base/emit.h"
#include "hurray.h"

/* With quotes; escapes as safetensors writes them. */
void hry_export_string(HryEmit *emit, const void *text, size_t len);
void hry_export_u64(HryEmit *emit, uint64_t value);
void hry_export_text(HryEmit *emit, const char *text);
/* A value as one JSON string: strings as they are, numbers and truth values in words, bytes in hex, arrays as [a,b]. */
void hry_export_value(HryEmit *emit, const HurrayKvValue *value);

#endif
