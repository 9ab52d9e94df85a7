/* The ring at other sizes: slots of 1 to 8 MiB, 4 to 16 readers, threads and io_uring, one model in the page cache. Beside each load the
 * same bytes only read, into as many slots of that size, and only copied out of them: what a load takes more than the slower of the two is
 * what its overlap leaves. Medians of five.
 * Not run on a GPU yet: compiled, and seen to skip where there is none. usage: gpu_sweep MODEL SECONDS     exit 77: no GPU */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gpu_measure.h"

#define ROUNDS 5

typedef struct Best {
    double took, worst_overlap;
    char what[64];
} Best;

/* One row. 0: measured, or not possible here, which is said; 1: wrong. */
static int row(const GpuLimits *limits, const char *path, uint32_t io, size_t slot, uint32_t readers, Best *best) {
    static const char *const ios[] = {"auto", "uring", "threads"};
    double reads[ROUNDS], copies[ROUNDS], loads[ROUNDS];
    HurrayLoaderOptions options = gpu_load_options();
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    HurrayPathStats used = HURRAY_PATH_STATS_INIT;
    options.io = io;
    options.threads = readers;
    options.chunk_bytes = slot;
    for (int round = -1; round < ROUNDS; round++) { /* the first one warms up and does not count */
        size_t r = round < 0 ? 0 : (size_t)round;
        reads[r] = gpu_read_time(limits, path, slot, readers, 0);
        copies[r] = gpu_link_time(limits, slot);
        loads[r] = gpu_load_time(path, &options, &stats, &used);
        if (loads[r] == 0 || copies[r] == 0) return 1;
        if (used.io == io) continue;
        printf("  SKIP(%s): %s\n", ios[io], used.reason ? used.reason : "not used here");
        return 0;
    }
    double read = gpu_median(reads, ROUNDS), copy = gpu_median(copies, ROUNDS), load = gpu_median(loads, ROUNDS);
    double slower = read > copy ? read : copy;
    printf("  %-8s %4zu %8u %10.2f %10.2f %10.2f %9.2f %12.2f%s\n", ios[io], slot / MIB, (unsigned)readers, gpu_rate(limits->total, read),
           gpu_rate(limits->total, copy), gpu_rate(limits->total, load), load / slower, (double)stats.overlap_ns / 1e6,
           loads[ROUNDS - 1] > 1.15 * loads[0] ? "  noisy" : "");
    if (load / slower > best->worst_overlap) best->worst_overlap = load / slower;
    if (best->took > 0 && load >= best->took) return 0;
    best->took = load;
    snprintf(best->what, sizeof best->what, "%s, slots of %zu MiB, %u readers", ios[io], slot / MIB, (unsigned)readers);
    return 0;
}

int main(int argc, char **argv) {
    static const uint32_t ios[] = {HURRAY_IO_THREADS, HURRAY_IO_URING};
    GpuLimits limits;
    Best best = {0};
    struct stat st;
    int bad = gpu_limits_begin(&limits, 0);
    if (bad) return bad;
    double until = gpu_now() + (argc == 3 ? atof(argv[2]) : 0);
    if (argc != 3 || stat(argv[1], &st) != 0) return fprintf(stderr, "usage: gpu_sweep MODEL SECONDS\n"), 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    limits.total = (uint64_t)st.st_size;
    printf("GB/s; times to the slower of reads and copies: 1 is full overlap, at most 1.15 is expected\n");
    printf("  %-8s %4s %8s %10s %10s %10s %9s %12s\n", "io", "MiB", "readers", "reads", "copies", "load", "x slower", "at once, ms");
    for (size_t i = 0; i < 2; i++)
        for (size_t slot = 4; slot; slot = slot == 4 ? 8 : slot == 8 ? 2 : slot == 2 ? 1 : 0) /* the likely ones first */
            for (uint32_t readers = 16; readers >= 4; readers /= 2) {
                if (gpu_now() > until) {
                    printf("  SKIP(time): the rows from here on\n");
                    i = 2, slot = 0;
                    break;
                }
                if (row(&limits, argv[1], ios[i], slot * MIB, readers, &best)) return 1;
            }
    printf("Two copy streams: the library has one for a device; h2d_limit measures the link with two.\n");
    printf("RESULT sweep best %.2f GB/s (%s); worst load %.2f x the slower of reads and copies\n", gpu_rate(limits.total, best.took),
           best.what, best.worst_overlap);
    return 0;
}
