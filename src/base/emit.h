/* A bounded little-endian writer. With bytes NULL it only measures: encoders run the same code twice,
 * first to learn the length, then into memory of exactly that length. */
#ifndef HRY_BASE_EMIT_H
#define HRY_BASE_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct HryEmit {
    uint8_t *bytes; /* NULL: measure */
    size_t capacity;
    size_t len;    /* bytes emitted (or measured) so far */
    bool overflow; /* did not fit capacity, or size_t */
} HryEmit;

static inline HryEmit hry_emit(void *bytes, size_t capacity) {
    HryEmit emit = {bytes, capacity, 0, false};
    return emit;
}

void hry_emit_bytes(HryEmit *emit, const void *bytes, size_t len);
void hry_emit_zeros(HryEmit *emit, size_t len);
void hry_emit_u8(HryEmit *emit, uint8_t value);
void hry_emit_u16(HryEmit *emit, uint16_t value);
void hry_emit_u32(HryEmit *emit, uint32_t value);
void hry_emit_u64(HryEmit *emit, uint64_t value);
void hry_emit_f32(HryEmit *emit, float value);
void hry_emit_f64(HryEmit *emit, double value);
void hry_emit_u64_array(HryEmit *emit, const uint64_t *values, size_t count);
void hry_emit_u32_array(HryEmit *emit, const uint32_t *values, size_t count);

#endif
