/* Overflow-safe arithmetic on untrusted numbers: every function returns false, and leaves *out
 * alone, when the result does not fit. Checked before the result is used or allocated for. */
#ifndef HRY_BASE_CHECKED_H
#define HRY_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool hry_add_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool hry_sub_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_sub_overflow(a, b, out); }
static inline bool hry_mul_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool hry_add_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool hry_mul_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool hry_add_size(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool hry_mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }

static inline bool hry_is_pow2(uint64_t v) { return v != 0 && (v & (v - 1)) == 0; }

/* value rounded up to a multiple of alignment (a power of two). */
static inline bool hry_align_up(uint64_t value, uint64_t alignment, uint64_t *out) {
    uint64_t up;
    if (!hry_add_u64(value, alignment - 1, &up)) return false;
    *out = up & ~(alignment - 1);
    return true;
}

/* ceil(value / divisor), which cannot overflow. */
static inline uint64_t hry_div_up(uint64_t value, uint64_t divisor) { return value / divisor + (value % divisor != 0); }

static inline bool hry_to_size(uint64_t value, size_t *out) {
    if (value > SIZE_MAX) return false;
    *out = (size_t)value;
    return true;
}

/* Is [offset, offset + len) inside [0, total)? Never wraps. */
static inline bool hry_range_inside(uint64_t offset, uint64_t len, uint64_t total) {
    return offset <= total && len <= total - offset;
}

/* Product of dimensions: 1 for none, 0 as soon as one is 0 (whatever the others are). */
static inline bool hry_product_u64(const uint64_t *dims, size_t count, uint64_t *out) {
    uint64_t product = 1;
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        if (dims[i] == 0) {
            *out = 0;
            return true;
        }
        if (fits) fits = hry_mul_u64(product, dims[i], &product);
    }
    if (fits) *out = product;
    return fits;
}

#endif
