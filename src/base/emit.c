#include "base/emit.h"

#include <string.h>

#include "base/endian.h"

/* Room for len more bytes, or NULL when only measuring or when there is none. */
static uint8_t *advance(HryEmit *emit, size_t len) {
    if (emit->overflow || len > SIZE_MAX - emit->len || (emit->bytes && len > emit->capacity - emit->len)) {
        emit->overflow = true;
        return NULL;
    }
    uint8_t *at = emit->bytes ? emit->bytes + emit->len : NULL;
    emit->len += len;
    return at;
}

void hry_emit_bytes(HryEmit *emit, const void *bytes, size_t len) {
    uint8_t *at = advance(emit, len);
    if (at && len) memcpy(at, bytes, len);
}

void hry_emit_zeros(HryEmit *emit, size_t len) {
    uint8_t *at = advance(emit, len);
    if (at && len) memset(at, 0, len);
}

void hry_emit_u8(HryEmit *emit, uint8_t value) { hry_emit_bytes(emit, &value, 1); }

#define HRY_EMIT_WRITE(name, type, store)                \
    void hry_emit_##name(HryEmit *emit, type value) {    \
        uint8_t *at = advance(emit, sizeof value);       \
        if (at) store(at, value);                        \
    }

HRY_EMIT_WRITE(u16, uint16_t, hry_store_u16)
HRY_EMIT_WRITE(u32, uint32_t, hry_store_u32)
HRY_EMIT_WRITE(u64, uint64_t, hry_store_u64)
HRY_EMIT_WRITE(f32, float, hry_store_f32)
HRY_EMIT_WRITE(f64, double, hry_store_f64)

void hry_emit_u64_array(HryEmit *emit, const uint64_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) hry_emit_u64(emit, values[i]);
}

void hry_emit_u32_array(HryEmit *emit, const uint32_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) hry_emit_u32(emit, values[i]);
}
