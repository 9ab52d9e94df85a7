/* A bounded little-endian reader over borrowed bytes. A failed read leaves the cursor unchanged.
 * No other code touches raw pointers of untrusted input. */
#ifndef HRY_BASE_CURSOR_H
#define HRY_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct HryCursor {
    const uint8_t *at;
    size_t left;
    uint64_t offset; /* of at, in the source: for messages */
} HryCursor;

static inline HryCursor hry_cursor(const void *bytes, size_t len, uint64_t offset) {
    HryCursor cursor = {bytes, len, offset};
    return cursor;
}

/* `len` bytes, borrowed; NULL when fewer are left (len 0: a pointer that is not NULL unless the input was). */
const uint8_t *hry_cursor_take(HryCursor *cursor, size_t len);
bool hry_cursor_u8(HryCursor *cursor, uint8_t *out);
bool hry_cursor_u16(HryCursor *cursor, uint16_t *out);
bool hry_cursor_u32(HryCursor *cursor, uint32_t *out);
bool hry_cursor_u64(HryCursor *cursor, uint64_t *out);
bool hry_cursor_i64(HryCursor *cursor, int64_t *out);
bool hry_cursor_f32(HryCursor *cursor, float *out);
bool hry_cursor_f64(HryCursor *cursor, double *out);
/* count values of 8 (4) bytes; the caller has checked that out holds them. */
bool hry_cursor_u64_array(HryCursor *cursor, uint64_t *out, size_t count);
bool hry_cursor_u32_array(HryCursor *cursor, uint32_t *out, size_t count);
/* Skips len bytes that must all be zero. *found (may be NULL): false when they were there but not zero. */
bool hry_cursor_zeros(HryCursor *cursor, size_t len, bool *found_nonzero);
/* The next len bytes as a cursor of their own; false when fewer are left. */
bool hry_cursor_sub(HryCursor *cursor, size_t len, HryCursor *out);

#endif
