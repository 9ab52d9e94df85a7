/* Quantization (docs/format.md section 4): five schemes between bytes and HurrayQuantization, and their rules on the
 * tensor's type, shape and layout. Sizes of parameter buffers: extent.h. */
#ifndef HRY_FORMAT_QUANT_H
#define HRY_FORMAT_QUANT_H

#include "format/descriptor.h"
#include "format/part.h"

/* Reads the whole section, its length first; later bytes of it are skipped. Members that the scheme lacks become 0
 * (zero_point_buffer: HURRAY_QUANT_NO_ZERO_POINTS). */
HurrayStatus hry_quant_decode(HryCursor *cursor, HurrayQuantization *out, HurrayError *error);
/* Every rule but sizes. at: of the section's first byte. */
HurrayStatus hry_quant_check(const HurrayDescriptor *descriptor, uint64_t at, HurrayError *error);
void hry_quant_encode(HryEmit *emit, const HurrayQuantization *quant);
/* What the scheme lacks becomes 0, as decoding leaves it. */
void hry_quant_normalize(HurrayQuantization *quant);

/* Distinct parameter buffers of the scheme: 0, 1 or 2. */
uint32_t hry_quant_buffer_count(const HurrayQuantization *quant);
static inline bool hry_quant_has_zero_points(const HurrayQuantization *quant) {
    return (quant->scheme == HURRAY_QUANT_PER_CHANNEL_AFFINE || quant->scheme == HURRAY_QUANT_PER_BLOCK_AFFINE) &&
           !(quant->flags & HURRAY_QUANT_SYMMETRIC);
}
/* Bytes of one scale: 4, 2 or 1. Schemes 2 to 5. */
uint32_t hry_quant_scale_bytes(const HurrayQuantization *quant);

#endif
