/* What overlap is worth: a load over a link as slow as the reads, beside either alone. A program to run by hand, not a test; the times are
 * those of sleeps. usage: bench_overlap [ROUNDS] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "cuda/fake_cuda.h"
#include "cuda/help_scene.h"

#define MIB ((uint64_t)1 << 20)
#define TENSORS 64u
#define EACH (1 * MIB)
#define CHUNK (512 * (uint64_t)1024)
#define SPEED (64 * MIB) /* a second: of the reads, and of the link */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Each read of a chunk waits until its bytes would have come; the script lets one in at a time. */
static void pace(void *ctx) {
    uint64_t *next_ns = ctx, now = now_ns();
    *next_ns = (*next_ns > now ? *next_ns : now) + CHUNK * 1000000000u / SPEED;
    struct timespec until = {(time_t)(*next_ns / 1000000000u), (long)(*next_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
}

/* One load; its time in ms. */
static double load(bool slow_reads, bool slow_link, HurrayLoadStats *stats) {
    Scene scene;
    uint64_t next_ns = 0;
    FakeSettings settings = {.schedule = FAKE_THREADED, .link_bytes = slow_link ? SPEED : 0};
    HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, 2);
    HurrayTensorSet *set = NULL;
    options.chunk_bytes = CHUNK;
    options.pinned_cap = 4 * MIB;
    fake_cuda_begin(&settings, "bench_overlap");
    scene_make(&scene, TENSORS, NULL, EACH, 1);
    if (scene_open(&scene, &options, NULL) != HURRAY_OK) exit(1);
    scene.script.before = slow_reads ? pace : NULL;
    scene.script.before_ctx = &next_ns;
    uint64_t begin = now_ns();
    if (hurray_loader_load(scene.loader, &set) != HURRAY_OK) exit(1);
    uint64_t took = now_ns() - begin;
    hurray_loader_stats(scene.loader, stats);
    hurray_tensor_set_destroy(&set);
    scene_end(&scene);
    fake_cuda_end();
    return (double)took / 1e6;
}

int main(int argc, char **argv) {
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    printf("The stand-in runtime, no GPU: this measures the loader's overlap, and nothing of a device.\n");
    printf("%u MiB, reads and copies at %u MiB/s each; target: at most 1.20 of the slower, without overlap it would be 2.00\n",
           (unsigned)(TENSORS * EACH / MIB), (unsigned)(SPEED / MIB));
    for (int round = 0; round < rounds; round++) {
        double reads = load(true, false, &stats), copies = load(false, true, &stats), both = load(true, true, &stats);
        printf("reads alone %.0f ms, copies alone %.0f ms, both %.0f ms: %.2f of the slower (%.0f ms at once)\n", reads, copies, both,
               both / (reads > copies ? reads : copies), (double)stats.overlap_ns / 1e6);
    }
    return 0;
}
