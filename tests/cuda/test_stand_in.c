/* The stand-in itself: a correct ring passes under every schedule, a ring with one planted bug is caught, with the call's and the test's
 * name. A green stand-in is a statement about logic, not about a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/help_ring.h"

/* How the run in a child of its own ended, and what it printed. */
static int run_in_child(RingBug bug, RingMode mode, FakeSchedule schedule, uint64_t seed, char *text, size_t room) {
    int ends[2], status;
    size_t used = 0;
    ssize_t n;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        dup2(ends[1], 2);
        close(ends[1]);
        alarm(60);
        ring_run(bug, mode, schedule, seed);
        _exit(0);
    }
    close(ends[1]);
    while (used + 1 < room && (n = read(ends[0], text + used, room - used - 1)) > 0) used += (size_t)n;
    text[used] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void a_correct_ring_passes_lazy_eager_and_with_30_seeds(void **state) {
    (void)state;
    for (int mode = RING_PRODUCER_SYNCED; mode <= RING_CONSUMER_STREAM; mode++) {
        for (uint64_t seed = 0; seed < 3; seed++) ring_run(RING_CORRECT, (RingMode)mode, FAKE_LAZY, seed);
        for (uint64_t seed = 0; seed < 3; seed++) ring_run(RING_CORRECT, (RingMode)mode, FAKE_EAGER, seed);
        for (uint64_t seed = 0; seed < 30; seed++) ring_run(RING_CORRECT, (RingMode)mode, FAKE_RANDOM, seed);
    }
}

static void a_correct_ring_passes_on_real_threads(void **state) {
    (void)state;
    for (int mode = RING_PRODUCER_SYNCED; mode <= RING_CONSUMER_STREAM; mode++)
        for (uint64_t seed = 0; seed < 3; seed++) ring_run(RING_CORRECT, (RingMode)mode, FAKE_THREADED, seed);
}

static void each_planted_bug_is_caught_by_the_lazy_schedule(void **state) {
    static char text[4096];
    (void)state;
    for (int bug = RING_CORRECT + 1; bug < RING_BUGS; bug++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            int end = run_in_child((RingBug)bug, ring_bug_mode((RingBug)bug), FAKE_LAZY, seed, text, sizeof text);
            if (end != 100 + ring_bug_check((RingBug)bug)) print_error("%s, seed %d: ended with %d: %s\n", ring_bug_name((RingBug)bug), (int)seed, end, text);
            assert_int_equal(end, 100 + ring_bug_check((RingBug)bug));
            assert_non_null(strstr(text, ring_bug_name((RingBug)bug)));
            assert_non_null(strstr(text, "stand-in: check"));
        }
    }
}

/* Which of the table's bugs an eager schedule misses is why the lazy one is the default. */
static void the_lazy_schedule_catches_more_than_the_eager_one(void **state) {
    static char text[4096];
    unsigned missed = 0;
    (void)state;
    for (int bug = RING_REFILLS_BEFORE_EVENT; bug <= RING_LOOPS_ON_DEAD_CONTEXT; bug++)
        missed += run_in_child((RingBug)bug, ring_bug_mode((RingBug)bug), FAKE_EAGER, 1, text, sizeof text) == 0;
    assert_true(missed >= 5);
}

static void a_random_schedule_catches_each_bug_with_some_seed(void **state) {
    static char text[4096];
    (void)state;
    for (int bug = RING_REFILLS_BEFORE_EVENT; bug <= RING_LOOPS_ON_DEAD_CONTEXT; bug++) {
        bool caught = false;
        for (uint64_t seed = 0; seed < 30 && !caught; seed++)
            caught = run_in_child((RingBug)bug, ring_bug_mode((RingBug)bug), FAKE_RANDOM, seed, text, sizeof text) >= 100;
        if (!caught) print_error("%s: missed\n", ring_bug_name((RingBug)bug));
        assert_true(caught);
    }
}

static void its_devices_say_what_they_are(void **state) {
    (void)state;
    assert_string_equal(fake_cuda_call_name(FAKE_memcpy_async), "cudaMemcpyAsync");
    assert_true(fake_cuda_is_release(FAKE_host_unregister) && !fake_cuda_is_release(FAKE_event_query));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correct_ring_passes_lazy_eager_and_with_30_seeds),
        cmocka_unit_test(a_correct_ring_passes_on_real_threads),
        cmocka_unit_test(each_planted_bug_is_caught_by_the_lazy_schedule),
        cmocka_unit_test(the_lazy_schedule_catches_more_than_the_eager_one),
        cmocka_unit_test(a_random_schedule_catches_each_bug_with_some_seed),
        cmocka_unit_test(its_devices_say_what_they_are),
    };
    return cmocka_run_group_tests_name("the stand-in", tests, NULL, NULL);
}
