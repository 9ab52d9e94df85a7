/* GGML block types: the importer's sizes and the dense view's values (docs/foreign-formats.md 2.5 to 2.8). */
#ifndef HRY_FORMAT_GGML_H
#define HRY_FORMAT_GGML_H

#include <stdbool.h>
#include <stdint.h>

/* The private layout our importers mint for them: tag, id (the bytes "GGMLBLK1") and length of its data. */
#define HRY_GGML_LAYOUT_TAG 0xF0
#define HRY_GGML_LAYOUT_ID UINT64_C(0x314B4C424C4D4747)
#define HRY_GGML_LAYOUT_DATA 12u /* type, block elements, block bytes: u32 each */
#define HRY_GGML_MAX_BLOCK_ELEMENTS 256u

typedef struct HryGgmlType {
    uint32_t number;
    const char *name;
    uint32_t block_elements, block_bytes;
    bool has_values; /* false: needs a lookup grid that this library does not carry */
} HryGgmlType;

/* NULL: no block type has this number (removed, unknown, or not a block type). */
const HryGgmlType *hry_ggml_find(uint32_t number);

/* The values of `count` whole blocks, block_elements floats each. Needs has_values. Infinite and NaN scales pass through. */
void hry_ggml_decode(const HryGgmlType *type, const uint8_t *blocks, uint64_t count, float *dst);

#endif
