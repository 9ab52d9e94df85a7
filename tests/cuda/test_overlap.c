/* Copies run while later bytes are read: with a link as slow as the reads a load takes hardly longer than either alone. The times are
 * those of sleeps, so they hold on a busy machine too; a run that was disturbed is tried again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cuda/fake_cuda.h"
#include "cuda/help_scene.h"

#define MIB ((uint64_t)1 << 20)
#define TENSORS 24u
#define EACH (1 * MIB)
#define LINK (64 * MIB) /* a second */
#define TRIES 4

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Reads at LINK: each call waits until its bytes would have come. The script holds its lock meanwhile: one reader at a time. */
typedef struct Pace {
    uint64_t next_ns, ns_per_call;
} Pace;

static void pace(void *ctx) {
    Pace *at = ctx;
    uint64_t now = now_ns();
    if (at->ns_per_call == 0) return;
    at->next_ns = (at->next_ns > now ? at->next_ns : now) + at->ns_per_call;
    struct timespec until = {(time_t)(at->next_ns / 1000000000u), (long)(at->next_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {}
}

typedef struct Seen {
    uint64_t copies, reads, copy_bytes, overlapped;
    uint64_t last_read_end, first_copy_begin;
} Seen;

static void trace(void *ctx, const HurrayTraceEvent *event) {
    Seen *seen = ctx;
    assert_true(event->end_ns >= event->begin_ns);
    if (event->stage == HURRAY_STAGE_READ) {
        seen->reads++;
        if (event->end_ns > seen->last_read_end) seen->last_read_end = event->end_ns;
    } else if (event->stage == HURRAY_STAGE_COPY) {
        seen->copies++;
        seen->copy_bytes += event->bytes;
        if (seen->first_copy_begin == 0 || event->begin_ns < seen->first_copy_begin) seen->first_copy_begin = event->begin_ns;
    }
}

/* One load; its time in ns. */
static uint64_t run(bool slow_reads, bool slow_link, Seen *seen, HurrayLoadStats *stats) {
    Scene scene;
    Pace at = {0};
    FakeSettings settings = {.schedule = FAKE_THREADED, .link_bytes = slow_link ? LINK : 0};
    HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, 2);
    HurrayTensorSet *set = NULL;
    options.chunk_bytes = 512 * 1024;
    options.pinned_cap = 4 * MIB;
    options.trace = trace;
    options.ctx = seen;
    memset(seen, 0, sizeof *seen);
    fake_cuda_begin(&settings, "overlap");
    scene_make(&scene, TENSORS, NULL, EACH, 1);
    assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
    scene.script.before = pace;
    scene.script.before_ctx = &at;
    if (slow_reads) at.ns_per_call = options.chunk_bytes * 1000000000u / LINK;
    uint64_t begin = now_ns();
    HurrayStatus status = hurray_loader_load(scene.loader, &set);
    uint64_t took = now_ns() - begin;
    at.ns_per_call = 0;
    assert_int_equal(status, HURRAY_OK);
    assert_int_equal(hurray_loader_stats(scene.loader, stats), HURRAY_OK);
    scene_check(&scene, set, NULL);
    hurray_tensor_set_destroy(&set);
    scene_end(&scene);
    fake_cuda_end();
    return took;
}

static void a_load_takes_little_longer_than_the_slower_of_reads_and_link(void **state) {
    (void)state;
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    Seen seen;
    for (int attempt = 1;; attempt++) {
        uint64_t reads = run(true, false, &seen, &stats), link = run(false, true, &seen, &stats), both = run(true, true, &seen, &stats);
        uint64_t slower = reads > link ? reads : link;
        print_message("reads alone %d ms, copies alone %d ms, both %d ms (%d %% of the slower); overlap %d ms\n", (int)(reads / 1000000), (int)(link / 1000000),
                      (int)(both / 1000000), (int)(both * 100 / slower), (int)(stats.overlap_ns / 1000000));
        if (both * 10 <= slower * 12) break;
        assert_true(attempt < TRIES);
    }
    assert_true(seen.copies >= TENSORS * EACH / (512 * 1024));
    assert_true(seen.copy_bytes >= TENSORS * EACH);
    assert_true(seen.first_copy_begin < seen.last_read_end); /* it did not wait for the last byte */
    assert_true(stats.overlap_ns > 0);
    assert_true(stats.bytes_copied >= TENSORS * EACH);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_load_takes_little_longer_than_the_slower_of_reads_and_link)};
    return cmocka_run_group_tests_name("overlap", tests, NULL, NULL);
}
