/* Shell-like patterns over whole names: * ? [..] and backslash, byte by byte (UTF-8 matches ? once a code point). */
#include "loader/loader.h"

#include "base/utf8.h"

static size_t one(const uint8_t *text, size_t len) {
    size_t n = hry_utf8_sequence(text, len);
    return n ? n : 1;
}

/* The end of the bracket that opens at at (one past its ']'), or 0 when it is never closed. */
static size_t bracket_end(const uint8_t *pattern, size_t len, size_t at) {
    size_t i = at + 1;
    if (i < len && (pattern[i] == '!' || pattern[i] == '^')) i++;
    if (i < len && pattern[i] == ']') i++;
    for (; i < len && pattern[i] != ']'; i++)
        if (pattern[i] == '\\' && i + 1 < len) i++;
    return i < len ? i + 1 : 0;
}

static size_t take_member(const uint8_t *pattern, size_t len, size_t at, const uint8_t **member, size_t *member_len) {
    if (pattern[at] == '\\' && at + 1 < len) at++;
    *member = pattern + at;
    *member_len = one(pattern + at, len - at);
    return at + *member_len;
}

/* UTF-8 sorts as its code points do, so ranges compare bytes. */
static int compare(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len) {
    for (size_t i = 0; i < a_len && i < b_len; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return a_len == b_len ? 0 : a_len < b_len ? -1 : 1;
}

static bool in_bracket(const uint8_t *pattern, size_t end, size_t at, const uint8_t *text, size_t text_len) {
    size_t i = at + 1;
    bool negated = false, found = false;
    if (pattern[i] == '!' || pattern[i] == '^') negated = true, i++;
    while (i < end - 1) {
        const uint8_t *low, *high;
        size_t low_len, high_len;
        i = take_member(pattern, end - 1, i, &low, &low_len);
        high = low, high_len = low_len;
        if (i + 1 < end - 1 && pattern[i] == '-') i = take_member(pattern, end - 1, i + 1, &high, &high_len);
        if (compare(low, low_len, text, text_len) <= 0 && compare(text, text_len, high, high_len) <= 0) found = true;
    }
    return found != negated;
}

bool hry_glob_valid(const uint8_t *pattern, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (pattern[i] == '\\') {
            if (++i == len) return false;
        } else if (pattern[i] == '[') {
            size_t end = bracket_end(pattern, len, i);
            if (end == 0) return false;
            i = end - 1;
        }
    }
    return true;
}

/* Going back to the last star only makes it pattern x text at worst, without recursion. */
bool hry_glob_match(const uint8_t *pattern, size_t pattern_len, const uint8_t *text, size_t len) {
    size_t p = 0, t = 0, star = SIZE_MAX, star_text = 0;
    for (;;) {
        bool step = false;
        if (p < pattern_len && pattern[p] == '*') {
            star = ++p;
            star_text = t;
            continue;
        }
        if (p == pattern_len && t == len) return true;
        if (p < pattern_len && t < len) {
            size_t n = one(text + t, len - t);
            if (pattern[p] == '?')
                p++, t += n, step = true;
            else if (pattern[p] == '[') {
                size_t end = bracket_end(pattern, pattern_len, p);
                if (end && in_bracket(pattern, end, p, text + t, n)) p = end, t += n, step = true;
            } else {
                size_t literal = pattern[p] == '\\' && p + 1 < pattern_len ? p + 1 : p;
                if (pattern[literal] == text[t]) p = literal + 1, t++, step = true;
            }
        }
        if (step) continue;
        if (star == SIZE_MAX || star_text >= len) return false;
        star_text += one(text + star_text, len - star_text);
        p = star;
        t = star_text;
    }
}
