#include "core/composite_cover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/fail_alloc.h"

#define MOST 40

typedef struct Case {
    uint32_t rank;
    uint64_t shape[4];
    size_t count;
    uint64_t offset[MOST][4], size[MOST][4];
} Case;

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(uint64_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

/* Splits the head by random cuts until there are enough boxes. */
static void make_exact(Case *c, size_t wanted) {
    c->count = 1;
    memset(c->offset[0], 0, sizeof c->offset[0]);
    memcpy(c->size[0], c->shape, sizeof c->shape);
    for (int tries = 0; tries < 200 && c->count < wanted && c->rank > 0; tries++) {
        size_t i = next_random(c->count);
        uint32_t k = (uint32_t)next_random(c->rank);
        if (c->size[i][k] < 1) continue;
        uint64_t cut = next_random(c->size[i][k] + (next_random(8) == 0)); /* now and then an empty piece */
        memcpy(c->offset[c->count], c->offset[i], sizeof c->offset[i]);
        memcpy(c->size[c->count], c->size[i], sizeof c->size[i]);
        c->offset[c->count][k] += cut;
        c->size[c->count][k] -= cut;
        c->size[i][k] = cut;
        c->count++;
    }
}

static void damage(Case *c) {
    size_t i = next_random(c->count);
    switch (next_random(4)) {
    case 0: /* a member less */
        memmove(c->offset[i], c->offset[i + 1], (c->count - i - 1) * sizeof c->offset[0]);
        memmove(c->size[i], c->size[i + 1], (c->count - i - 1) * sizeof c->size[0]);
        c->count--;
        break;
    case 1: /* one twice */
        memcpy(c->offset[c->count], c->offset[i], sizeof c->offset[i]);
        memcpy(c->size[c->count], c->size[i], sizeof c->size[i]);
        c->count++;
        break;
    default: /* one somewhere else */
        for (uint32_t k = 0; k < c->rank; k++) {
            c->offset[i][k] = next_random(c->shape[k] + 1);
            c->size[i][k] = next_random(c->shape[k] - c->offset[i][k] + 1);
        }
    }
}

static unsigned hits(const Case *c, const uint64_t *index) {
    unsigned result = 0;
    for (size_t i = 0; i < c->count; i++) {
        uint32_t k = 0;
        while (k < c->rank && index[k] >= c->offset[i][k] && index[k] < c->offset[i][k] + c->size[i][k]) k++;
        result += k == c->rank;
    }
    return result;
}

/* Counts every element of the head, one by one. */
static bool brute_force(const Case *c) {
    uint64_t index[4] = {0}, total = 1;
    for (uint32_t k = 0; k < c->rank; k++) total *= c->shape[k];
    for (uint64_t n = 0; n < total; n++) {
        uint64_t rest = n;
        for (uint32_t k = c->rank; k-- > 0;) {
            index[k] = rest % c->shape[k];
            rest /= c->shape[k];
        }
        if (hits(c, index) != 1) return false;
    }
    return true;
}

static void fill(HryCover *cover, const Case *c, const HurrayAllocator *allocator) {
    assert_true(hry_cover_init(cover, c->shape, c->rank, allocator));
    for (size_t i = 0; i < c->count; i++) {
        assert_true(hry_cover_reserve(cover));
        hry_cover_add(cover, c->offset[i], c->size[i]);
    }
}

static void the_products_agree_with_counting_every_element(void **state) {
    (void)state;
    unsigned exact = 0, broken = 0;
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    for (int round = 0; round < 20000; round++) {
        Case c = {.rank = (uint32_t)next_random(4)};
        for (uint32_t k = 0; k < c.rank; k++) c.shape[k] = next_random(12) == 0 ? 0 : 1 + next_random(5);
        make_exact(&c, 1 + next_random(12));
        if (next_random(2)) damage(&c);
        HryCover cover;
        fill(&cover, &c, &alloc.allocator);
        bool want = brute_force(&c);
        assert_int_equal(hry_cover_is_exact(&cover), want);
        want ? exact++ : broken++;
        if (!want) {
            uint64_t start[4], end[4];
            size_t a = SIZE_MAX, b = SIZE_MAX;
            HryCoverFault fault = hry_cover_locate(&cover, start, end, &a, &b);
            unsigned found = hits(&c, start);
            assert_true(fault == HRY_COVER_GAP ? found == 0 : found >= 2);
            assert_int_not_equal(fault, HRY_COVER_UNKNOWN);
            for (uint32_t k = 0; k < c.rank; k++) assert_true(start[k] < end[k] && end[k] <= c.shape[k]);
            if (fault == HRY_COVER_OVERLAP) {
                assert_true(a < c.count && b < c.count && a != b);
                for (uint32_t k = 0; k < c.rank; k++) {
                    assert_true(c.offset[a][k] <= start[k] && end[k] <= c.offset[a][k] + c.size[a][k]);
                    assert_true(c.offset[b][k] <= start[k] && end[k] <= c.offset[b][k] + c.size[b][k]);
                }
            }
        }
        hry_cover_clear(&cover);
    }
    assert_true(exact > 5000 && broken > 3000);
    fail_alloc_assert_empty(&alloc);
}

static void volumes_beyond_64_bits_are_no_difficulty(void **state) {
    (void)state;
    uint64_t shape[64], offset[64] = {0}, half[64];
    for (int k = 0; k < 64; k++) half[k] = shape[k] = UINT64_MAX - 1 - (uint64_t)k;
    HurrayAllocator allocator = hry_alloc_default();
    HryCover cover;
    assert_true(hry_cover_init(&cover, shape, 64, &allocator));
    half[63] = 7;
    assert_true(hry_cover_reserve(&cover));
    hry_cover_add(&cover, offset, half);
    assert_false(hry_cover_is_exact(&cover));
    offset[63] = 7;
    half[63] = shape[63] - 7;
    assert_true(hry_cover_reserve(&cover));
    hry_cover_add(&cover, offset, half);
    assert_true(hry_cover_is_exact(&cover));
    hry_cover_drop(&cover);
    uint64_t start[64], end[64];
    size_t a, b;
    assert_int_equal(hry_cover_locate(&cover, start, end, &a, &b), HRY_COVER_GAP);
    assert_int_equal(start[63], 7);
    assert_int_equal(end[63], shape[63]);
    hry_cover_clear(&cover);
}

static void a_gap_and_an_overlap_of_equal_size_are_not_taken_for_a_cover(void **state) {
    (void)state;
    const Case c = {.rank = 2, .shape = {4, 4}, .count = 2, .offset = {{0, 0}, {1, 0}}, .size = {{2, 4}, {2, 4}}};
    HurrayAllocator allocator = hry_alloc_default();
    HryCover cover;
    fill(&cover, &c, &allocator);
    assert_false(hry_cover_is_exact(&cover));
    hry_cover_clear(&cover);
}

static void an_empty_box_is_found_only_strictly_inside_another(void **state) {
    (void)state;
    static const struct {
        uint64_t at[2], size[2];
        bool inside;
    } rows[] = {{{2, 0}, {0, 4}, true}, {{2, 1}, {0, 1}, true}, {{2, 1}, {0, 0}, true}, {{0, 0}, {0, 4}, false}, {{4, 0}, {0, 4}, false},
                {{3, 0}, {0, 4}, false}, {{1, 4}, {1, 0}, false}, {{3, 1}, {0, 0}, false}};
    HurrayAllocator allocator = hry_alloc_default();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Case c = {.rank = 2, .shape = {4, 4}, .count = 3, .offset = {{0, 0}, {0, 0}, {3, 0}}, .size = {{0}, {3, 4}, {1, 4}}};
        memcpy(c.offset[0], rows[i].at, sizeof rows[i].at);
        memcpy(c.size[0], rows[i].size, sizeof rows[i].size);
        HryCover cover;
        size_t a = 9, b = 9;
        fill(&cover, &c, &allocator);
        assert_true(hry_cover_is_exact(&cover));
        assert_int_equal(hry_cover_empty_inside(&cover, &a, &b), rows[i].inside);
        if (rows[i].inside) assert_true(a == 0 && b == 1);
        hry_cover_clear(&cover);
    }
}

/* Long boxes that all cross: the search may settle for a region, but not for minutes. */
static void the_search_for_a_fault_has_an_end(void **state) {
    (void)state;
    enum { RANK = 16, BOXES = 3000 };
    uint64_t shape[RANK], offset[RANK], size[RANK], start[RANK], end[RANK];
    size_t a, b;
    HurrayAllocator allocator = hry_alloc_default();
    HryCover cover;
    for (int k = 0; k < RANK; k++) shape[k] = UINT64_C(1) << 40;
    assert_true(hry_cover_init(&cover, shape, RANK, &allocator));
    for (int i = 0; i < BOXES; i++) {
        for (int k = 0; k < RANK; k++) {
            offset[k] = next_random(1000);
            size[k] = shape[k] - offset[k] - next_random(1000);
        }
        assert_true(hry_cover_reserve(&cover));
        hry_cover_add(&cover, offset, size);
    }
    assert_false(hry_cover_is_exact(&cover));
    hry_cover_locate(&cover, start, end, &a, &b);
    for (int k = 0; k < RANK; k++) assert_true(start[k] < end[k] && end[k] <= shape[k]);
    hry_cover_clear(&cover);
}

static void no_memory_is_said_and_leaks_nothing(void **state) {
    (void)state;
    const Case c = {.rank = 1, .shape = {4}, .count = 2, .offset = {{0}, {2}}, .size = {{2}, {1}}};
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    HryCover cover;
    fail_alloc_arm(&alloc, 1, 0);
    assert_false(hry_cover_init(&cover, c.shape, 1, &alloc.allocator));
    hry_cover_clear(&cover);
    fail_alloc_arm(&alloc, 2, 0);
    assert_true(hry_cover_init(&cover, c.shape, 1, &alloc.allocator));
    assert_false(hry_cover_reserve(&cover));
    hry_cover_clear(&cover);
    fail_alloc_arm(&alloc, 0, 0);
    fill(&cover, &c, &alloc.allocator);
    uint64_t start[1], end[1];
    size_t a, b;
    fail_alloc_arm(&alloc, 1, 0);
    assert_int_equal(hry_cover_locate(&cover, start, end, &a, &b), HRY_COVER_UNKNOWN);
    hry_cover_clear(&cover);
    fail_alloc_assert_empty(&alloc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_products_agree_with_counting_every_element),
        cmocka_unit_test(volumes_beyond_64_bits_are_no_difficulty),
        cmocka_unit_test(a_gap_and_an_overlap_of_equal_size_are_not_taken_for_a_cover),
        cmocka_unit_test(an_empty_box_is_found_only_strictly_inside_another),
        cmocka_unit_test(the_search_for_a_fault_has_an_end),
        cmocka_unit_test(no_memory_is_said_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
