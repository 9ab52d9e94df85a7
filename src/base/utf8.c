#include "base/utf8.h"

#include <string.h>

size_t hry_utf8_sequence(const uint8_t *text, size_t len) {
    uint8_t c = text[0];
    if (c < 0x80) return 1;
    size_t n = c >= 0xC2 && c <= 0xDF ? 2 : (c & 0xF0) == 0xE0 ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
    if (n == 0 || n > len) return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    if (c == 0xE0 && text[1] < 0xA0) return 0;
    if (c == 0xED && text[1] >= 0xA0) return 0;
    if (c == 0xF0 && text[1] < 0x90) return 0;
    if (c == 0xF4 && text[1] >= 0x90) return 0;
    return n;
}

bool hry_utf8_valid(const void *text, size_t len, size_t *bad_at) {
    const uint8_t *bytes = text;
    size_t at = 0;
    while (at < len) {
        uint64_t word;
        if (len - at >= sizeof word) { /* most names are ASCII: eight bytes at a time */
            memcpy(&word, bytes + at, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof word;
                continue;
            }
        }
        size_t step = hry_utf8_sequence(bytes + at, len - at);
        if (step == 0) {
            if (bad_at) *bad_at = at;
            return false;
        }
        at += step;
    }
    return true;
}
