/* GGML blocks as the format's own per-block quantization (docs/foreign-formats.md 2.9). Pure. */
#ifndef HRY_IMPORT_NATIVE_QUANT_H
#define HRY_IMPORT_NATIVE_QUANT_H

#include "base/fail.h"
#include "format/ggml.h"
#include "hurray.h"

typedef struct HryNative {
    uint32_t number;    /* of the GGML type */
    uint8_t storage;    /* element type of the codes */
    uint8_t bits;       /* of one code */
    uint8_t scheme;     /* 3 or 5 */
    uint8_t scale_type; /* float16, float32; 0 for scheme 5 */
    uint8_t scale_bytes;
    uint16_t block_size;  /* of the scheme: divides the GGML block */
    bool has_zero_points; /* all 1 */
} HryNative;

/* NULL: the type has no such form. */
const HryNative *hry_native_find(uint32_t number);
/* count whole GGML blocks: bits x elements / 8 bytes of codes, scale_bytes for each block of the scheme; codes or scales NULL: not those.
 * first: number of the first block, for messages. */
HurrayStatus hry_native_convert(const HryNative *native, const HryGgmlType *type, const uint8_t *blocks, uint64_t count, uint8_t *codes,
                                uint8_t *scales, uint64_t first, HurrayError *error);

#endif
