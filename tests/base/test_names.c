#include "base/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/fail_alloc.h"

typedef struct Table {
    char text[2000][16];
} Table;

static void name_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const Table *table = ctx;
    *name = (const uint8_t *)table->text[i];
    *len = strlen(table->text[i]);
}

static void every_name_is_found_again_and_no_other(void **state) {
    (void)state;
    static Table table;
    FailAlloc alloc;
    HryNames names;
    uint64_t at;
    fail_alloc_init(&alloc);
    for (int i = 0; i < 2000; i++) snprintf(table.text[i], sizeof table.text[i], "t%d", i);
    assert_true(hry_names_init(&names, &alloc.allocator, 4, name_at, &table));
    for (uint64_t i = 0; i < 2000; i++) assert_int_equal(hry_names_add(&names, i, NULL), HRY_NAMES_ADDED);
    for (uint64_t i = 0; i < 2000; i++) {
        assert_true(hry_names_find(&names, table.text[i], strlen(table.text[i]), &at));
        assert_int_equal(at, i);
    }
    assert_false(hry_names_find(&names, "t2000", 5, &at));
    assert_false(hry_names_find(&names, "", 0, &at));
    hry_names_clear(&names);
    fail_alloc_assert_empty(&alloc);
}

static void a_duplicate_names_the_first(void **state) {
    (void)state;
    static Table table = {{"a", "b", "a"}};
    FailAlloc alloc;
    HryNames names;
    uint64_t other = 99;
    fail_alloc_init(&alloc);
    assert_true(hry_names_init(&names, &alloc.allocator, 3, name_at, &table));
    assert_int_equal(hry_names_add(&names, 0, &other), HRY_NAMES_ADDED);
    assert_int_equal(hry_names_add(&names, 1, &other), HRY_NAMES_ADDED);
    assert_int_equal(hry_names_add(&names, 2, &other), HRY_NAMES_DUPLICATE);
    assert_int_equal(other, 0);
    hry_names_clear(&names);
    fail_alloc_assert_empty(&alloc);
}

static void a_failing_allocation_leaves_the_map_as_it_was(void **state) {
    (void)state;
    static Table table;
    FailAlloc alloc;
    HryNames names;
    uint64_t at;
    for (int i = 0; i < 2000; i++) snprintf(table.text[i], sizeof table.text[i], "t%d", i);
    fail_alloc_init(&alloc);
    assert_true(hry_names_init(&names, &alloc.allocator, 0, name_at, &table));
    fail_alloc_arm(&alloc, 1, 1);
    uint64_t n = 0;
    while (hry_names_add(&names, n, NULL) == HRY_NAMES_ADDED) n++;
    assert_true(n > 0 && n < 2000);
    for (uint64_t i = 0; i < n; i++) assert_true(hry_names_find(&names, table.text[i], strlen(table.text[i]), &at) && at == i);
    hry_names_clear(&names);
    fail_alloc_assert_empty(&alloc);
}

static void adding_cannot_fail_in_the_room_that_was_reserved(void **state) {
    (void)state;
    static Table table;
    FailAlloc alloc;
    HryNames names;
    for (int i = 0; i < 2000; i++) snprintf(table.text[i], sizeof table.text[i], "t%d", i);
    fail_alloc_init(&alloc);
    assert_true(hry_names_init(&names, &alloc.allocator, 0, name_at, &table));
    uint64_t added = 0;
    for (size_t more = 1; added + more <= 2000; more *= 3) {
        fail_alloc_arm(&alloc, 0, 0);
        assert_true(hry_names_reserve(&names, more));
        fail_alloc_arm(&alloc, 1, 1);
        for (size_t i = 0; i < more; i++) assert_int_equal(hry_names_add(&names, added++, NULL), HRY_NAMES_ADDED);
    }
    assert_false(hry_names_reserve(&names, 100000));
    assert_false(hry_names_reserve(&names, SIZE_MAX));
    uint64_t at;
    for (uint64_t i = 0; i < added; i++) assert_true(hry_names_find(&names, table.text[i], strlen(table.text[i]), &at) && at == i);
    hry_names_clear(&names);
    fail_alloc_assert_empty(&alloc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_found_again_and_no_other),
        cmocka_unit_test(a_duplicate_names_the_first),
        cmocka_unit_test(a_failing_allocation_leaves_the_map_as_it_was),
        cmocka_unit_test(adding_cannot_fail_in_the_room_that_was_reserved),
    };
    return cmocka_run_group_tests_name("base/names", tests, NULL, NULL);
}
