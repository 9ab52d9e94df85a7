/* How fast a model reaches the GPU: ours beside what the machine can do (its link, its reads) and beside the plain way (read, then copy).
 * Every figure is a median with its range; time ends after this program's own device synchronize, never at the library's return.
 * Not run on a GPU yet: compiled, and seen to skip where there is none.
 * usage: gpu_bench FOLDER MIB     leaves bench.hrry and bench.safetensors there for the other programs     exit 77: no GPU */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "gpu_measure.h"
#include "gpu_model.h"

#define SLOT (4 * MIB)
#define LARGE 300u
#define SMALL 2000u
#define ROUNDS 5

static char hrry[512], safetensors[512];
static uint64_t sizes[LARGE + SMALL];
static uint64_t payload; /* bytes of the tensors alone; limits.total: of the .hrry file */
static GpuLimits limits;
static uint8_t *pageable;

static double report(const char *what, double *gbs, size_t count) {
    double middle = gpu_median(gbs, count);
    printf("%-44s %7.2f GB/s  (%.2f to %.2f)%s\n", what, middle, gbs[0], gbs[count - 1], gbs[count - 1] > 1.15 * gbs[0] ? "  noisy" : "");
    return middle;
}

/* The same tensors in the same order. 0: written. */
static int write_safetensors(void) {
    FILE *file = fopen(safetensors, "wb");
    char *header = malloc((LARGE + SMALL) * 96 + 16);
    uint8_t *data = malloc(sizes[0]);
    size_t used = 0;
    uint64_t at = 0;
    if (!file || !header || !data) return 1;
    for (uint64_t i = 0; i < LARGE + SMALL; i++, at += sizes[i - 1])
        used += (size_t)snprintf(header + used, 96, "%c\"t.%llu\":{\"dtype\":\"U8\",\"shape\":[%llu],\"data_offsets\":[%llu,%llu]}",
                                 i ? ',' : '{', (unsigned long long)i, (unsigned long long)sizes[i], (unsigned long long)at,
                                 (unsigned long long)(at + sizes[i]));
    header[used++] = '}';
    while (used % 8) header[used++] = ' ';
    uint64_t length = used;
    size_t good = fwrite(&length, 8, 1, file) + fwrite(header, used, 1, file);
    for (uint64_t i = 0; i < LARGE + SMALL; i++) {
        model_fill(data, i, sizes[i]);
        good += fwrite(data, sizes[i], 1, file);
    }
    free(header);
    free(data);
    return fclose(file) != 0 || good != LARGE + SMALL + 2;
}

/* Out of the page cache, and seen to be. False: pages stay resident, so no cold figure can be had. */
static int drop(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) return 0;
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    size_t pages = ((size_t)st.st_size + 4095) / 4096, resident = 0;
    unsigned char *seen = malloc(pages);
    void *mapping = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (seen && mapping != MAP_FAILED && mincore(mapping, (size_t)st.st_size, seen) == 0)
        for (size_t i = 0; i < pages; i++) resident += seen[i] & 1;
    else
        resident = pages;
    if (mapping != MAP_FAILED) munmap(mapping, (size_t)st.st_size);
    free(seen);
    close(fd);
    return resident * 100 < pages;
}

/* What a program does that knows of nothing: reads a piece, copies it. */
static double plain_round(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    double begin = gpu_now();
    ssize_t got = 1;
    while (fd >= 0 && got > 0) {
        got = read(fd, pageable, 64 * MIB);
        if (got > 0 && cudaMemcpy(limits.device, pageable, (size_t)got, cudaMemcpyHostToDevice) != cudaSuccess) got = -1;
    }
    cudaDeviceSynchronize();
    double took = gpu_now() - begin;
    if (fd >= 0) close(fd);
    return got == 0 ? took : 0;
}

static int warm(void) {
    double link[ROUNDS], reads[ROUNDS], plain[ROUNDS], a[ROUNDS], b[ROUNDS], foreign[ROUNDS];
    HurrayLoaderOptions options = gpu_load_options();
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    HurrayPathStats row = HURRAY_PATH_STATS_INIT;
    uint32_t readers = gpu_readers();
    for (int round = -1; round < ROUNDS; round++) { /* the first one warms up and does not count */
        size_t r = round < 0 ? 0 : (size_t)round;
        link[r] = gpu_rate(limits.total, gpu_link_time(&limits, SLOT));
        reads[r] = gpu_rate(limits.total, gpu_read_time(&limits, hrry, SLOT, readers, 0));
        a[r] = gpu_rate(payload, gpu_load_time(hrry, &options, &stats, &row));
        plain[r] = gpu_rate(limits.total, plain_round(hrry));
        foreign[r] = gpu_rate(payload, gpu_load_time(safetensors, &options, &stats, &row));
        b[r] = gpu_rate(payload, gpu_load_time(hrry, &options, &stats, &row));
        if (a[r] == 0 || b[r] == 0 || foreign[r] == 0) return 1;
    }
    printf("warm, %.2f GB, %u readers, staging %s, io %u%s%s\n", (double)limits.total / 1e9, (unsigned)readers,
           row.staging == HURRAY_STAGING_PINNED ? "pinned" : "pageable", (unsigned)row.io, row.reason ? ": " : "",
           row.reason ? row.reason : "");
    double l = report("  the link: pinned copies alone", link, ROUNDS), d = report("  the reads: into pinned memory alone", reads, ROUNDS);
    report("  plain: read, then copy", plain, ROUNDS);
    double first = report("  ours, .hrry", a, ROUNDS), second = report("  ours, .hrry, again (A/A)", b, ROUNDS), least = l < d ? l : d;
    report("  ours, .safetensors", foreign, ROUNDS);
    printf("  copies and reads of the last load overlapped for %.2f of %.2f ms\n", (double)stats.overlap_ns / 1e6,
           (double)stats.total_ns / 1e6);
    printf("RESULT warm %.3f of min(link, reads); A/A differ by %.1f %%\n", least > 0 ? first / least : 0,
           first > 0 ? 100 * (second - first) / first : 0);
    return 0;
}

static int cold(void) {
    double reads[3], plain[3], ours[3];
    HurrayLoaderOptions options = gpu_load_options();
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    HurrayPathStats row = HURRAY_PATH_STATS_INIT;
    uint32_t readers = gpu_readers();
    for (size_t r = 0; r < 3; r++) {
        if (!drop(hrry)) return printf("SKIP(cold): the file stays in the page cache here\n"), 0;
        reads[r] = gpu_rate(limits.total, gpu_read_time(&limits, hrry, SLOT, readers, 1));
        drop(hrry);
        ours[r] = gpu_rate(payload, gpu_load_time(hrry, &options, &stats, &row));
        drop(hrry);
        plain[r] = gpu_rate(limits.total, plain_round(hrry));
        if (ours[r] == 0) return 1;
    }
    printf("cold, %.2f GB, io %u%s\n", (double)limits.total / 1e9, (unsigned)row.io,
           row.direct == HURRAY_ON ? ", past the page cache" : "");
    double limit = report("  the disk: direct reads alone", reads, 3);
    report("  plain: read, then copy", plain, 3);
    double got = report("  ours, .hrry", ours, 3);
    printf("RESULT cold %.3f of the direct reads\n", limit > 0 ? got / limit : 0);
    return 0;
}

int main(int argc, char **argv) {
    struct stat st;
    int bad = gpu_limits_begin(&limits, 0);
    if (bad) return bad;
    uint64_t mib = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (mib < 64 || mib > 65536) return fprintf(stderr, "usage: gpu_bench FOLDER MIB     (64 to 65536)\n"), 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(hrry, sizeof hrry, "%s/bench.hrry", argv[1]);
    snprintf(safetensors, sizeof safetensors, "%s/bench.safetensors", argv[1]);
    for (uint64_t i = 0; i < LARGE + SMALL; i++) sizes[i] = i < LARGE ? mib * MIB / LARGE : 16 + i % 4000;
    for (uint64_t i = 0; i < LARGE + SMALL; i++) payload += sizes[i];
    double begin = gpu_now();
    if (model_write(hrry, sizes, LARGE + SMALL) || write_safetensors() || stat(hrry, &st) != 0)
        return printf("FAIL the models were not written\n"), 1;
    printf("models of %llu MiB made in %.1f s\n", (unsigned long long)mib, gpu_now() - begin);
    limits.total = (uint64_t)st.st_size;
    pageable = aligned_alloc(2 * MIB, 64 * MIB);
    if (!pageable) return 1;
    memset(pageable, 0x5A, 64 * MIB);
    bad = warm();
    return bad ? bad : cold();
}
