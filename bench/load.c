/* load FILE [rounds [threads]]: what loading reaches, against plain reads of the same bytes with as many threads, in one run.
 * Every page of what was loaded is touched inside the timed part. Warm unless COLD is in the environment (then the file's pages are
 * dropped before each round, and direct plain reads are the limit). */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hurray/loader.h"

#define CHUNK ((size_t)4 << 20)

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

typedef struct Limit {
    int fd;
    uint8_t *memory;
    size_t size, next;
    pthread_mutex_t lock;
} Limit;

static void *read_some(void *ctx) {
    Limit *limit = ctx;
    for (;;) {
        pthread_mutex_lock(&limit->lock);
        size_t at = limit->next;
        limit->next += CHUNK;
        pthread_mutex_unlock(&limit->lock);
        if (at >= limit->size) return NULL;
        size_t len = limit->size - at < CHUNK ? limit->size - at : CHUNK;
        for (size_t done = 0; done < len;) {
            ssize_t n = pread(limit->fd, limit->memory + at + done, len - done, (off_t)(at + done));
            if (n <= 0) return NULL;
            done += (size_t)n;
        }
    }
}

static void drop(const char *path) {
    int fd = open(path, O_RDONLY);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static double plain(const char *path, int threads, int direct) {
    struct stat st;
    pthread_t thread[64];
    Limit limit = {.fd = open(path, O_RDONLY | (direct ? O_DIRECT : 0)), .lock = PTHREAD_MUTEX_INITIALIZER};
    if (limit.fd < 0 || fstat(limit.fd, &st) != 0) return 0;
    limit.size = direct ? (size_t)st.st_size & ~(size_t)4095 : (size_t)st.st_size;
    double begin = now();
    size_t room = limit.size + ((size_t)2 << 20);
    uint8_t *raw = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    limit.memory = (uint8_t *)(((uintptr_t)raw + ((2u << 20) - 1)) & ~(uintptr_t)((2u << 20) - 1));
    madvise(limit.memory, limit.size, MADV_HUGEPAGE);
    for (int t = 0; t < threads; t++) pthread_create(&thread[t], NULL, read_some, &limit);
    for (int t = 0; t < threads; t++) pthread_join(thread[t], NULL);
    double took = now() - begin;
    munmap(raw, room);
    close(limit.fd);
    return (double)limit.size / took / 1e9;
}

static double load(const char *path, const HurrayLoaderOptions *options, HurrayLoadStats *stats, HurrayPathStats *row, double *open_s) {
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    uint64_t count = 0, sum = 0, bytes = 0;
    double begin = now();
    if (hurray_loader_open(path, options, &loader, &error) != HURRAY_OK) return fprintf(stderr, "%s\n", error.message), 0;
    *open_s = now() - begin;
    if (hurray_loader_load(loader, &set) != HURRAY_OK) return fprintf(stderr, "%s\n", hurray_loader_last_error(loader)->message), 0;
    hurray_tensor_set_count(set, &count);
    for (uint64_t i = 0; i < count; i++) {
        HurrayTensor *tensor = NULL;
        HurrayBufferList *list = NULL;
        uint64_t buffers = 0;
        hurray_tensor_set_get(set, i, &tensor);
        hurray_tensor_buffers(tensor, &list);
        hurray_buffer_list_len(list, &buffers);
        for (uint64_t b = 0; b < buffers; b++) {
            HurrayBuffer *buffer = NULL;
            void *data = NULL;
            uint64_t size = 0;
            hurray_buffer_list_get(list, b, &buffer);
            hurray_buffer_data_ptr(buffer, &data);
            hurray_buffer_byte_size(buffer, &size);
            bytes += size;
            for (uint64_t at = 0; at < size; at += 4096) sum += ((const uint8_t *)data)[at];
        }
    }
    double took = now() - begin;
    volatile uint64_t keep = sum;
    (void)keep;
    hurray_loader_stats(loader, stats);
    hurray_loader_path_stats(loader, 0, row);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    printf("  %.4f s", took);
    return (double)bytes / took / 1e9;
}

int main(int argc, char **argv) {
    int rounds = argc > 2 ? atoi(argv[2]) : 3, threads = argc > 3 ? atoi(argv[3]) : (int)sysconf(_SC_NPROCESSORS_ONLN), cold = getenv("COLD") != NULL;
    if (argc < 2 || threads < 1 || threads > 64) return fprintf(stderr, "usage: load FILE [rounds [threads]]\n"), 2;
    for (int r = 0; r < rounds; r++) {
        HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
        HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
        HurrayPathStats row = HURRAY_PATH_STATS_INIT;
        double open_s = 0;
        options.threads = argc > 3 ? (uint32_t)threads : 0;
        if (getenv("VERIFY")) options.verify_data = HURRAY_VERIFY_STORED;
        if (getenv("IO")) options.io = (uint32_t)atoi(getenv("IO"));
        if (getenv("READ_ONLY")) options.flags = HURRAY_LOAD_READ_ONLY;
        if (getenv("CHUNK")) options.chunk_bytes = strtoull(getenv("CHUNK"), NULL, 10);
        if (cold) drop(argv[1]);
        if (!cold) plain(argv[1], threads, 0); /* whoever is first pays for pages that the machine has to find */
        double cpu0 = cpu(), limit = plain(argv[1], cold ? 8 : threads, cold), cpu1 = cpu();
        if (cold) drop(argv[1]);
        double ours = load(argv[1], &options, &stats, &row, &open_s);
        double cpu2 = cpu();
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        printf("  limit %6.2f GB/s  load %6.2f GB/s  ratio %.3f  open %.4f s  ranges %llu  read %.2f GB  io %u direct %u threads %u depth %u  peak %ld MiB  cpu %.3f / %.3f s\n", limit, ours,
               ours / limit, open_s, (unsigned long long)stats.ranges, (double)stats.bytes_read / 1e9, row.io, row.direct, row.threads, row.queue_depth,
               usage.ru_maxrss / 1024, cpu2 - cpu1, cpu1 - cpu0);
    }
    return 0;
}
