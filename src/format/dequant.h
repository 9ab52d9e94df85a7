/* Dequantization (docs/format.md section 4), in float32 arithmetic. */
#ifndef HRY_FORMAT_DEQUANT_H
#define HRY_FORMAT_DEQUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/descriptor.h"
#include "format/payload.h"
#include "format/value.h"

/* Which parameter belongs to an element, and how it is stored. */
typedef struct HryDequant {
    const HurrayDescriptor *descriptor;
    HryForm form;               /* of the storage type */
    uint8_t scheme, scale_type; /* scale_type: a float type, or e8m0 */
    uint32_t axis;
    uint64_t block_size, blocks;   /* per block: blocks along the axis */
    uint64_t count;                /* parameters */
    const uint8_t *scales, *zeros; /* zeros NULL: all 0 */
    uint64_t first;                /* the parameter with which these two begin; 0 but for a window */
    uint64_t zeros_at;             /* byte of their buffer where zero points begin */
    bool has_zeros;
    bool by_slot; /* one parameter per page slot (block-paged) */
} HryDequant;

/* How many parameters of each kind the section describes; false: a scheme without meaning for this layout (block-paged with scheme 4
 * or 5) or a number beyond 64 bits or not known. Scheme 1 has one, which is in the descriptor. */
bool hry_dequant_count(const HurrayDescriptor *descriptor, uint64_t *count);

/* The descriptor has a quantization section and no dynamic dimension. UNSUPPORTED: no defined meaning. */
HurrayStatus hry_dequant_open(HryDequant *dequant, const HurrayDescriptor *descriptor, const HryBytes *buffers, HurrayError *error);
/* The same without the parameters: scales and zeros stay NULL. */
HurrayStatus hry_dequant_plan(HryDequant *dequant, const HurrayDescriptor *descriptor, HurrayError *error);
/* Parameters *from to *to - 1 serve `count` (not 0) elements from row-major number `first` on; both 0 where they are in the descriptor.
 * False: more of them than that, or no order. */
bool hry_dequant_range(const HryDequant *dequant, uint64_t first, uint64_t count, uint64_t *from, uint64_t *to);
uint32_t hry_dequant_scale_bytes(const HryDequant *dequant);

/* Elements at index, index + 1, ... along the last dimension (count of them; 1 for rank 0). codes: their storage; values: the same as
 * float32 on entry (NF4: not looked at), dequantized on return. slot: their page slot, where by_slot. INVALID_DATA: an e8m0 scale
 * without a value. */
HurrayStatus hry_dequant_apply(const HryDequant *dequant, const uint64_t *index, uint64_t slot, const uint8_t *codes, size_t count,
                               float *values, HurrayError *error);

/* Parameter i. Scale e8m0 0x00 and 0xFF: NaN. */
float hry_dequant_scale(const HryDequant *dequant, uint64_t i);
int32_t hry_dequant_zero(const HryDequant *dequant, uint64_t i);

#endif
