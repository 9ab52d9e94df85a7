#include "loader/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Both in heap blocks of exactly their size. */
static bool match(const char *pattern, const char *text) {
    size_t p = strlen(pattern), t = strlen(text);
    uint8_t *a = malloc(p ? p : 1), *b = malloc(t ? t : 1);
    if (!a || !b) abort();
    memcpy(a, pattern, p);
    memcpy(b, text, t);
    bool is = hry_glob_match(a, p, b, t);
    free(a);
    free(b);
    return is;
}

static void patterns_match_whole_names(void **state) {
    (void)state;
    assert_true(match("", ""));
    assert_false(match("", "a"));
    assert_false(match("a", ""));
    assert_true(match("*", ""));
    assert_true(match("*", "model.layers.0"));
    assert_true(match("model.*.0", "model.layers.0"));
    assert_false(match("model.*.0", "model.layers.01"));
    assert_true(match("**a*b**", "xxaxxb"));
    assert_true(match("a?c", "abc"));
    assert_false(match("a?c", "ac"));
    assert_true(match("a?c", "a\xc3\xa4"
                             "c")); /* one code point */
    assert_false(match("abc", "abd"));
    assert_true(match("*.weight", ".weight.weight"));
}

static void brackets_are_sets_and_ranges(void **state) {
    (void)state;
    assert_true(match("[abc]", "b"));
    assert_false(match("[abc]", "d"));
    assert_true(match("[!abc]", "d"));
    assert_true(match("[^abc]", "d"));
    assert_false(match("[!abc]", "a"));
    assert_true(match("l[0-9].*", "l7.w"));
    assert_false(match("l[0-9].*", "la.w"));
    assert_true(match("[]]", "]"));
    assert_true(match("[!]]", "a"));
    assert_true(match("[a-]", "-"));
    assert_true(match("[\\]]", "]"));
    assert_true(match("[\xc3\xa4-\xc3\xb6]", "\xc3\xa5"));
    assert_false(match("[a", "a"));
    assert_false(match("[", "["));
}

static void a_backslash_takes_the_next_as_it_is(void **state) {
    (void)state;
    assert_true(match("\\*", "*"));
    assert_false(match("\\*", "a"));
    assert_true(match("a\\[0\\]", "a[0]"));
    assert_true(match("\\\\", "\\"));
}

static void patterns_that_never_end_are_told(void **state) {
    (void)state;
    assert_true(hry_glob_valid((const uint8_t *)"a[b]*", 5));
    assert_false(hry_glob_valid((const uint8_t *)"a[b", 3));
    assert_false(hry_glob_valid((const uint8_t *)"a\\", 2));
    assert_false(hry_glob_valid((const uint8_t *)"[]", 2));
    assert_true(hry_glob_valid((const uint8_t *)"[]]", 3));
    assert_false(hry_glob_valid((const uint8_t *)"[a\\]", 4));
}

static void many_stars_take_no_exponential_time(void **state) {
    (void)state;
    char text[5001], pattern[101];
    memset(text, 'a', 5000);
    text[5000] = 0;
    for (int i = 0; i < 100; i += 2) pattern[i] = '*', pattern[i + 1] = 'a';
    pattern[100] = 0;
    assert_true(match(pattern, text));
    pattern[99] = 'b';
    assert_false(match(pattern, text));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_whole_names),          cmocka_unit_test(brackets_are_sets_and_ranges),
        cmocka_unit_test(a_backslash_takes_the_next_as_it_is), cmocka_unit_test(patterns_that_never_end_are_told),
        cmocka_unit_test(many_stars_take_no_exponential_time),
    };
    return cmocka_run_group_tests_name("loader/glob", tests, NULL, NULL);
}
