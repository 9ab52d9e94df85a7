#include "base/cursor.h"

#include <string.h>

#include "base/endian.h"

const uint8_t *hry_cursor_take(HryCursor *cursor, size_t len) {
    if (len > cursor->left) return NULL;
    const uint8_t *bytes = cursor->at;
    if (len) cursor->at += len;
    cursor->left -= len;
    cursor->offset += len;
    return bytes;
}

#define HRY_CURSOR_READ(name, type, load)                        \
    bool hry_cursor_##name(HryCursor *cursor, type *out) {       \
        const uint8_t *bytes = hry_cursor_take(cursor, sizeof *out); \
        if (!bytes) return false;                                \
        *out = load(bytes);                                      \
        return true;                                             \
    }

static inline uint8_t load_u8(const uint8_t *p) { return *p; }

HRY_CURSOR_READ(u8, uint8_t, load_u8)
HRY_CURSOR_READ(u16, uint16_t, hry_load_u16)
HRY_CURSOR_READ(u32, uint32_t, hry_load_u32)
HRY_CURSOR_READ(u64, uint64_t, hry_load_u64)
static inline int64_t load_i64(const uint8_t *p) { return (int64_t)hry_load_u64(p); }

HRY_CURSOR_READ(i64, int64_t, load_i64)
HRY_CURSOR_READ(f32, float, hry_load_f32)
HRY_CURSOR_READ(f64, double, hry_load_f64)

bool hry_cursor_u64_array(HryCursor *cursor, uint64_t *out, size_t count) {
    if (count > cursor->left / sizeof *out) return false;
    const uint8_t *bytes = hry_cursor_take(cursor, count * sizeof *out);
    for (size_t i = 0; i < count; i++) out[i] = hry_load_u64(bytes + i * sizeof *out);
    return true;
}

bool hry_cursor_u32_array(HryCursor *cursor, uint32_t *out, size_t count) {
    if (count > cursor->left / sizeof *out) return false;
    const uint8_t *bytes = hry_cursor_take(cursor, count * sizeof *out);
    for (size_t i = 0; i < count; i++) out[i] = hry_load_u32(bytes + i * sizeof *out);
    return true;
}

bool hry_cursor_zeros(HryCursor *cursor, size_t len, bool *found_nonzero) {
    if (found_nonzero) *found_nonzero = false;
    if (len > cursor->left) return false;
    for (size_t i = 0; i < len; i++)
        if (cursor->at[i]) {
            if (found_nonzero) *found_nonzero = true;
            return false;
        }
    hry_cursor_take(cursor, len);
    return true;
}

bool hry_cursor_sub(HryCursor *cursor, size_t len, HryCursor *out) {
    uint64_t offset = cursor->offset;
    const uint8_t *bytes = hry_cursor_take(cursor, len);
    if (!bytes && len) return false;
    *out = hry_cursor(bytes, len, offset);
    return true;
}
