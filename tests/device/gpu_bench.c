/* How fast a model reaches the GPU: ours beside what the machine can do (its link, its reads) and beside the plain way (read, then copy).
 * Every figure is a median with its range; time ends after this program's own device synchronize, never at the library's return.
 * Not run on a GPU yet: compiled, and seen to skip where there is none.
 * usage: gpu_bench FOLDER MIB     leaves bench.safetensors there for bench_peers.py     exit 77: no GPU */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "gpu_model.h"

#define MIB ((size_t)1 << 20)
#define SLOT (4 * MIB)
#define LARGE 300u
#define SMALL 2000u
#define ROUNDS 5

static char hrry[512], safetensors[512];
static uint64_t sizes[LARGE + SMALL];
static uint64_t total, payload; /* bytes of the .hrry file; of its tensors alone */
static int readers;
static uint8_t *device, *pinned, *pageable;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double report(const char *what, double *gbs, size_t count) {
    qsort(gbs, count, sizeof *gbs, order);
    double middle = gbs[count / 2];
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

/* The link: as many bytes, from pinned memory that is there. */
static double link_round(void) {
    double begin = now();
    for (uint64_t sent = 0; sent < total; sent += SLOT) cudaMemcpyAsync(device, pinned, SLOT, cudaMemcpyHostToDevice, 0);
    return cudaDeviceSynchronize() == cudaSuccess ? now() - begin : 0;
}

typedef struct Reader {
    const char *path;
    int number, direct, failed;
} Reader;

static void *read_part(void *arg) {
    Reader *reader = arg;
    int fd = open(reader->path, O_RDONLY | O_CLOEXEC | (reader->direct ? O_DIRECT : 0));
    for (uint64_t at = (uint64_t)reader->number * SLOT; fd >= 0 && at < total; at += (uint64_t)readers * SLOT)
        if (pread(fd, pinned + (size_t)reader->number * SLOT, SLOT, (off_t)at) < 0) reader->failed = 1;
    if (fd < 0)
        reader->failed = 1;
    else
        close(fd);
    return NULL;
}

/* The reads: all bytes of the file into pinned slots, by as many threads as the loader would have. */
static double read_round(const char *path, int direct) {
    pthread_t threads[16];
    Reader parts[16];
    int failed = 0;
    double begin = now();
    for (int i = 0; i < readers; i++) {
        parts[i] = (Reader){path, i, direct, 0};
        pthread_create(&threads[i], NULL, read_part, &parts[i]);
    }
    for (int i = 0; i < readers; i++) pthread_join(threads[i], NULL), failed |= parts[i].failed;
    return failed ? 0 : now() - begin;
}

/* What a program does that knows of nothing: reads a piece, copies it. */
static double plain_round(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    double begin = now();
    ssize_t got = 1;
    while (fd >= 0 && got > 0) {
        got = read(fd, pageable, 64 * MIB);
        if (got > 0 && cudaMemcpy(device, pageable, (size_t)got, cudaMemcpyHostToDevice) != cudaSuccess) got = -1;
    }
    cudaDeviceSynchronize();
    double took = now() - begin;
    if (fd >= 0) close(fd);
    return got == 0 ? took : 0;
}

static double our_round(const char *path, HurrayLoadStats *stats, HurrayPathStats *row) {
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    options.target = HURRAY_TARGET_DEVICE;
    options.device_tag = HURRAY_DEVICE_CUDA;
    options.device_index = 0;
    options.sync_mode = HURRAY_SYNC_EVENT;
    double begin = now();
    HurrayStatus status = hurray_loader_open(path, &options, &loader, &error);
    if (status == HURRAY_OK && (status = hurray_loader_load(loader, &set)) != HURRAY_OK) error = *hurray_loader_last_error(loader);
    if (cudaDeviceSynchronize() != cudaSuccess) status = HURRAY_ERR_DEVICE;
    double took = now() - begin;
    if (status == HURRAY_OK) {
        hurray_loader_stats(loader, stats);
        hurray_loader_path_stats(loader, 0, row);
    } else {
        printf("WRONG %s: %s\n", path, error.message);
    }
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    return status == HURRAY_OK ? took : 0;
}

static double rate(uint64_t bytes, double seconds) { return seconds > 0 ? (double)bytes / seconds / 1e9 : 0; }

static int warm(void) {
    double link[ROUNDS], reads[ROUNDS], plain[ROUNDS], a[ROUNDS], b[ROUNDS], foreign[ROUNDS];
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    HurrayPathStats row = HURRAY_PATH_STATS_INIT;
    for (int round = -1; round < ROUNDS; round++) { /* the first one warms up and does not count */
        size_t r = round < 0 ? 0 : (size_t)round;
        link[r] = rate(total, link_round());
        reads[r] = rate(total, read_round(hrry, 0));
        a[r] = rate(payload, our_round(hrry, &stats, &row));
        plain[r] = rate(total, plain_round(hrry));
        foreign[r] = rate(payload, our_round(safetensors, &stats, &row));
        b[r] = rate(payload, our_round(hrry, &stats, &row));
        if (a[r] == 0 || b[r] == 0 || foreign[r] == 0) return 1;
    }
    printf("warm, %.2f GB, %d readers, staging %s, io %u%s%s\n", (double)total / 1e9, readers,
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
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    HurrayPathStats row = HURRAY_PATH_STATS_INIT;
    for (size_t r = 0; r < 3; r++) {
        if (!drop(hrry)) return printf("SKIP(cold): the file stays in the page cache here\n"), 0;
        reads[r] = rate(total, read_round(hrry, 1));
        drop(hrry);
        ours[r] = rate(payload, our_round(hrry, &stats, &row));
        drop(hrry);
        plain[r] = rate(total, plain_round(hrry));
        if (ours[r] == 0) return 1;
    }
    printf("cold, %.2f GB, io %u%s\n", (double)total / 1e9, (unsigned)row.io, row.direct == HURRAY_ON ? ", past the page cache" : "");
    double limit = report("  the disk: direct reads alone", reads, 3);
    report("  plain: read, then copy", plain, 3);
    double got = report("  ours, .hrry", ours, 3);
    printf("RESULT cold %.3f of the direct reads\n", limit > 0 ? got / limit : 0);
    return 0;
}

int main(int argc, char **argv) {
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    void *memory = NULL, *other = NULL;
    struct stat st;
    if (code != cudaSuccess || count == 0) return printf("SKIP: no GPU: %s (%d)\n", cudaGetErrorName(code), (int)code), 77;
    uint64_t mib = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (mib < 64 || mib > 65536) return fprintf(stderr, "usage: gpu_bench FOLDER MIB     (64 to 65536)\n"), 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(hrry, sizeof hrry, "%s/bench.hrry", argv[1]);
    snprintf(safetensors, sizeof safetensors, "%s/bench.safetensors", argv[1]);
    for (uint64_t i = 0; i < LARGE + SMALL; i++) sizes[i] = i < LARGE ? mib * MIB / LARGE : 16 + i % 4000;
    for (uint64_t i = 0; i < LARGE + SMALL; i++) payload += sizes[i];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    readers = cores < 1 ? 1 : cores > 16 ? 16 : (int)cores;
    double begin = now();
    if (model_write(hrry, sizes, LARGE + SMALL) || write_safetensors() || stat(hrry, &st) != 0)
        return printf("FAIL the models were not written\n"), 1;
    printf("models of %llu MiB made in %.1f s\n", (unsigned long long)mib, now() - begin);
    total = (uint64_t)st.st_size;
    if (cudaSetDevice(0) != cudaSuccess || cudaMalloc(&memory, 64 * MIB) != cudaSuccess ||
        cudaHostAlloc(&other, 16 * SLOT, 0) != cudaSuccess)
        return printf("FAIL %s\n", cudaGetErrorName(cudaGetLastError())), 1;
    device = memory;
    pinned = other;
    memset(pinned, 0x5A, 16 * SLOT);
    pageable = aligned_alloc(2 * MIB, 64 * MIB);
    if (!pageable) return 1;
    memset(pageable, 0x5A, 64 * MIB);
    int bad = warm();
    if (!bad) bad = cold();
    unlink(hrry);
    return bad;
}
