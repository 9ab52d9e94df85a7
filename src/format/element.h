/* Element types (docs/format.md section 2): which exist, how wide they are, how many bytes N of them take. */
#ifndef HRY_FORMAT_ELEMENT_H
#define HRY_FORMAT_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fail.h"
#include "hurray.h"

typedef enum HryElementKind {
    HRY_ELEMENT_UNKNOWN, /* no such tag, or a private one */
    HRY_ELEMENT_FLOAT,
    HRY_ELEMENT_SIGNED,
    HRY_ELEMENT_UNSIGNED,
    HRY_ELEMENT_BOOL,
    HRY_ELEMENT_SCALE, /* float8_e8m0: a power of two without a sign */
    HRY_ELEMENT_COMPLEX
} HryElementKind;

static inline bool hry_tag_is_private(uint8_t tag) { return tag >= HURRAY_PRIVATE_FIRST && tag <= HURRAY_PRIVATE_LAST; }

/* Listed in the format (private tags are not). */
bool hry_element_is_listed(uint8_t tag);
HryElementKind hry_element_kind(uint8_t tag);
/* Width of a listed type; 0 for all others. */
uint32_t hry_element_bits(uint8_t tag);
/* "float32"; "private" for private tags, "unknown" for what does not exist. */
const char *hry_element_name(uint8_t tag);
/* Finds a listed type by its name; false: there is none. */
bool hry_element_find(const char *name, uint8_t *tag);

static inline bool hry_element_is_integer(uint8_t tag) {
    HryElementKind kind = hry_element_kind(tag);
    return kind == HRY_ELEMENT_SIGNED || kind == HRY_ELEMENT_UNSIGNED;
}
/* A type that a composite's quantized members can be converted to; e8m0 counts. */
static inline bool hry_element_is_float(uint8_t tag) {
    HryElementKind kind = hry_element_kind(tag);
    return kind == HRY_ELEMENT_FLOAT || kind == HRY_ELEMENT_SCALE;
}
/* Least and greatest code of an integer type of at most 32 bits. */
void hry_element_integer_range(uint8_t tag, int64_t *least, int64_t *greatest);

/* Dense size of n elements of `bits` bits (1, 2, 4, 6 or a multiple of 8); false: beyond 64 bits. */
bool hry_bits_bytes(uint64_t n, uint32_t bits, uint64_t *out);
/* The same by listed type; false also for any other tag. */
bool hry_element_bytes(uint8_t tag, uint64_t n, uint64_t *out);

#endif
