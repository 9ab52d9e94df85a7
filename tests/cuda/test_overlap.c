/* Copies run while later bytes are read. No clock decides: the last read gets no bytes until the copies of the others have run, or, with
 * a loader that waits for the last byte before its first copy, until the test gives up. How much time that saves: bench_overlap.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cuda/fake_cuda.h"
#include "cuda/help_scene.h"

#define SLOT ((uint64_t)64 << 10)
#define SLOTS 4u /* the least ring has five: nothing but the loader's own will makes it copy before the last read */
#define GIVE_UP_MS 20000

typedef struct Seen {
    unsigned reads, wanted, copied_before_last; /* copies that had run when the last read got its bytes */
    unsigned copies;
    uint64_t copy_bytes, last_read_end;
    uint64_t copy_begins[SLOTS];
} Seen;

/* Inside each read, one at a time: when the last begins, all others are over. */
static void hold_the_last_read(void *ctx) {
    Seen *seen = ctx;
    FakeCounts counts = {0};
    if (++seen->reads != SLOTS) return;
    for (int ms = 0; ms < GIVE_UP_MS && counts.copies < seen->wanted; ms++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        fake_cuda_counts(&counts);
    }
    seen->copied_before_last = (unsigned)counts.copies;
}

static void trace(void *ctx, const HurrayTraceEvent *event) {
    Seen *seen = ctx;
    assert_true(event->end_ns >= event->begin_ns);
    if (event->stage == HURRAY_STAGE_READ && event->end_ns > seen->last_read_end) seen->last_read_end = event->end_ns;
    if (event->stage != HURRAY_STAGE_COPY) return;
    seen->copy_bytes += event->bytes;
    if (seen->copies < SLOTS) seen->copy_begins[seen->copies] = event->begin_ns;
    seen->copies++;
}

static void run(uint32_t threads, const char *test) {
    Scene scene;
    Seen seen = {.wanted = threads == 1 ? SLOTS - 2 : SLOTS - 1}; /* a loader without readers of its own reads two at a time */
    FakeSettings settings = {.schedule = FAKE_THREADED};
    FakeCounts counts;
    HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, threads);
    HurrayTensorSet *set = NULL;
    unsigned during = 0;
    options.chunk_bytes = SLOT;
    options.pinned_cap = 16 * SLOT;
    options.trace = trace;
    options.ctx = &seen;
    fake_cuda_begin(&settings, test);
    scene_make(&scene, 1, NULL, SLOTS * SLOT, 1);
    assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
    scene.script.before = hold_the_last_read;
    scene.script.before_ctx = &seen;
    assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
    fake_cuda_counts(&counts);
    assert_int_equal(seen.reads, SLOTS);
    assert_true(counts.pinned_peak > SLOTS * SLOT); /* everything had room at once */
    assert_int_equal(seen.copied_before_last, seen.wanted);
    assert_int_equal(seen.copies, SLOTS);
    assert_int_equal(seen.copy_bytes, SLOTS * SLOT);
    for (unsigned c = 0; c < SLOTS; c++) during += seen.copy_begins[c] < seen.last_read_end;
    assert_int_equal(during, seen.wanted); /* and the trace says so */
    scene_check(&scene, set, NULL);
    hurray_tensor_set_destroy(&set);
    scene_end(&scene);
    fake_cuda_end();
}

static void copies_run_while_the_last_bytes_are_still_being_read(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) run(threads, __func__);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_run_while_the_last_bytes_are_still_being_read)};
    return cmocka_run_group_tests_name("overlap", tests, NULL, NULL);
}
