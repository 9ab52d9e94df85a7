#include "loader/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "loader/budget.h"

static HryPlanPiece piece(uint64_t offset, uint64_t len) { return (HryPlanPiece){.offset = offset, .len = len}; }

static void long_stretches_are_cut_at_aligned_places(void **state) {
    (void)state;
    for (uint64_t alignment = 1; alignment <= 4096; alignment *= 4096)
        for (uint64_t offset = 0; offset < 9000; offset += 713) {
            uint64_t at = offset, end = offset + 100000;
            int reads = 0;
            while (at < end) {
                uint64_t n = hry_cut(at, end - at, 16384, alignment);
                assert_true(n > 0 && n <= 16384 + 16384 / 4);
                at += n;
                if (at < end) assert_int_equal(at % alignment, 0);
                reads++;
            }
            assert_int_equal(at, end);
            assert_true(reads <= 9);
        }
    assert_int_equal(hry_cut(0, 20000, 16384, 1), 20000);    /* no short rest */
    assert_int_equal(hry_cut(0, 20000, 16384, 4096), 16384); /* but what spoils the alignment of the end */
    assert_int_equal(hry_cut(5, 100, 16384, 4096), 100);
}

static void neighbours_join_a_run_and_small_gaps_are_read_through(void **state) {
    (void)state;
    HryRun run = {.count = 0};
    HryPlanPiece first = piece(1000, 500), next = piece(1500, 100);
    assert_true(hry_run_takes(&run, 1000, 500, 65536, 4096));
    hry_run_add(&run, &first);
    assert_true(hry_run_takes(&run, 1500, 100, 65536, 0));
    assert_false(hry_run_takes(&run, 1499, 100, 65536, 4096)); /* never backwards */
    hry_run_add(&run, &next);
    assert_int_equal(run.len, 600);
    assert_true(hry_run_takes(&run, 1600 + 4096, 10, 65536, 4096));
    assert_false(hry_run_takes(&run, 1600 + 4097, 10, 65536, 4096));
    assert_false(hry_run_takes(&run, 1600, 65536, 65536, 4096));
    HryPlanPiece far = piece(1600 + 4096, 10);
    hry_run_add(&run, &far);
    assert_int_equal(run.len, 600 + 4096 + 10);
    assert_int_equal(run.payload, 610);
}

static void a_run_has_a_greatest_length_and_count(void **state) {
    (void)state;
    HryRun run = {.count = 0};
    uint64_t at = 0;
    while (hry_run_takes(&run, at, 16, 1 << 22, 4096)) {
        HryPlanPiece one = piece(at, 16);
        hry_run_add(&run, &one);
        at += 16;
    }
    assert_int_equal(run.count, HRY_RUN_PIECES);
    run.count = 0;
    HryPlanPiece large = piece(0, HRY_SMALL_BYTES);
    hry_run_add(&run, &large);
    assert_false(hry_run_takes(&run, HRY_SMALL_BYTES, 1, 1 << 22, 4096));
    assert_false(hry_run_takes(&run, UINT64_MAX, UINT64_MAX, 1 << 22, 4096));
}

static void the_cap_is_never_passed(void **state) {
    (void)state;
    HryBudget budget = hry_budget(100);
    assert_true(hry_budget_take(&budget, 60));
    assert_false(hry_budget_take(&budget, 41));
    assert_true(hry_budget_take(&budget, 40));
    assert_int_equal(budget.peak, 100);
    hry_budget_give(&budget, 60);
    assert_int_equal(budget.used, 40);
    assert_false(hry_budget_take(&budget, UINT64_MAX));
    hry_budget_give(&budget, 1000);
    assert_int_equal(budget.used, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_stretches_are_cut_at_aligned_places),
        cmocka_unit_test(neighbours_join_a_run_and_small_gaps_are_read_through),
        cmocka_unit_test(a_run_has_a_greatest_length_and_count),
        cmocka_unit_test(the_cap_is_never_passed),
    };
    return cmocka_run_group_tests_name("loader/plan", tests, NULL, NULL);
}
