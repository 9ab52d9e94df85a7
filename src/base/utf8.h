/* UTF-8 as the format wants it: shortest forms, no surrogates, at most U+10FFFF; NUL is legal. */
#ifndef HRY_BASE_UTF8_H
#define HRY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed sequence at text (1 to 4), or 0 when there is none. len >= 1. */
size_t hry_utf8_sequence(const uint8_t *text, size_t len);

/* Is the whole text well-formed? *bad_at (may be NULL) is the first offset that is not. */
bool hry_utf8_valid(const void *text, size_t len, size_t *bad_at);

#endif
