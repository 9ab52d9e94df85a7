/* load HOW FILE [THREADS]: loads a model file once, in one way, and prints one line of JSON: seconds, bytes, peak memory. bench/run.py
 * calls it in turn with each way. Every page of what was loaded is touched inside the timed part.
 *
 *   plain-fresh    preads of 4 MiB by THREADS threads into new memory advised for huge pages: what the machine can do
 *   plain-touched  the same into memory that was touched before
 *   plain-direct   O_DIRECT preads of 4 MiB by 8 threads (or THREADS) into new memory
 *   settle         no load: writes to FILE MiB of new memory, so that a host that takes free pages back gives them again
 *   others         the loader, see WAYS
 *
 * With CHECK in the environment the sum of all bytes is printed too, taken after the timed part. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
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
#define HUGE_PAGE ((size_t)2 << 20)

static const struct Way {
    const char *name;
    uint32_t io, direct, threads, flags, verify;
} WAYS[] = {
    {"auto", HURRAY_IO_AUTO, HURRAY_AUTO, 0, 0, 0},
    {"one-thread", HURRAY_IO_THREADS, HURRAY_OFF, 1, 0, 0},
    {"threads", HURRAY_IO_THREADS, HURRAY_OFF, 0, 0, 0},
    {"threads-direct", HURRAY_IO_THREADS, HURRAY_ON, 0, 0, 0},
    {"uring", HURRAY_IO_URING, HURRAY_OFF, 0, 0, 0},
    {"uring-direct", HURRAY_IO_URING, HURRAY_ON, 0, 0, 0},
    {"mmap", HURRAY_IO_MMAP, HURRAY_OFF, 0, 0, 0},
    {"read-only", HURRAY_IO_AUTO, HURRAY_AUTO, 0, HURRAY_LOAD_READ_ONLY, 0},
    {"verified", HURRAY_IO_AUTO, HURRAY_AUTO, 0, 0, HURRAY_VERIFY_STORED},
};

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

/* Of this program alone: what getrusage says includes whoever started it. */
static long peak_kib(void) {
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1) break;
    if (status) fclose(status);
    return kib;
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

static uint8_t *fresh(size_t size) {
    uint8_t *raw = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    uint8_t *memory = (uint8_t *)(((uintptr_t)raw + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    madvise(memory, size, MADV_HUGEPAGE);
    return memory;
}

static int plain(const char *how, const char *path, unsigned threads) {
    struct stat st;
    pthread_t thread[64];
    int direct = strcmp(how, "plain-direct") == 0, touched = strcmp(how, "plain-touched") == 0;
    Limit limit = {.fd = open(path, O_RDONLY | (direct ? O_DIRECT : 0)), .lock = PTHREAD_MUTEX_INITIALIZER};
    if (limit.fd < 0 || fstat(limit.fd, &st) != 0) return perror(path), 1;
    limit.size = direct ? (size_t)st.st_size & ~(size_t)4095 : (size_t)st.st_size;
    if (threads == 0) threads = direct ? 8 : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    if (threads > 64) threads = 64;
    if (touched) {
        limit.memory = fresh(limit.size);
        if (limit.memory) memset(limit.memory, 1, limit.size);
    }
    double begin = now(), used = cpu();
    if (!touched) limit.memory = fresh(limit.size);
    if (!limit.memory) return fprintf(stderr, "no memory\n"), 1;
    for (unsigned t = 0; t < threads; t++) pthread_create(&thread[t], NULL, read_some, &limit);
    for (unsigned t = 0; t < threads; t++) pthread_join(thread[t], NULL);
    volatile uint64_t sum = 0; /* every page is touched once more, as those of the loader's tensors are */
    for (size_t at = 0; at < limit.size; at += 4096) sum += limit.memory[at];
    double took = now() - begin;
    printf("{\"seconds\": %.6f, \"cpu\": %.4f, \"bytes\": %zu, \"peak_kib\": %ld, \"detail\": \"threads %u\"}\n", took, cpu() - used,
           limit.size, peak_kib(), threads);
    return 0;
}

static int settle(size_t size) {
    uint8_t *memory = fresh(size);
    if (!memory) return fprintf(stderr, "no memory\n"), 1;
    for (size_t at = 0; at < size; at += 4096) ((volatile uint8_t *)memory)[at] = 1;
    return 0;
}

/* The sum of every byte at a multiple of step. */
static uint64_t touch(HurrayTensorSet *set, uint64_t step, uint64_t *bytes) {
    uint64_t count = 0, sum = 0;
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
            *bytes += size;
            for (uint64_t at = 0; at < size; at += step) sum += ((const uint8_t *)data)[at];
        }
    }
    return sum;
}

static int load(const struct Way *way, const char *path, unsigned threads) {
    static const char *const io_names[] = {"auto", "uring", "threads", "mmap"};
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    HurrayPathStats row = HURRAY_PATH_STATS_INIT;
    uint64_t bytes = 0, again = 0;
    options.io = way->io;
    options.direct = way->direct;
    options.threads = threads ? threads : way->threads;
    options.flags = way->flags;
    options.verify_data = way->verify;
    if (getenv("CHUNK")) options.chunk_bytes = strtoull(getenv("CHUNK"), NULL, 10);
    if (getenv("DEPTH")) options.queue_depth = (uint32_t)strtoul(getenv("DEPTH"), NULL, 10);
    double begin = now(), used = cpu();
    if (hurray_loader_open(path, &options, &loader, &error) != HURRAY_OK) return fprintf(stderr, "%s\n", error.message), 1;
    double opened = now();
    if (hurray_loader_load(loader, &set) != HURRAY_OK) return fprintf(stderr, "%s\n", hurray_loader_last_error(loader)->message), 1;
    double loaded = now();
    volatile uint64_t keep = touch(set, 4096, &bytes);
    (void)keep;
    double took = now() - begin;
    used = cpu() - used;
    hurray_loader_stats(loader, &stats);
    hurray_loader_path_stats(loader, 0, &row);
    long peak = peak_kib();
    uint64_t sum = getenv("CHECK") ? touch(set, 1, &again) : 0;
    double begin_free = now();
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    printf("{\"seconds\": %.6f, \"cpu\": %.4f, \"bytes\": %llu, \"peak_kib\": %ld, \"open\": %.6f, \"load\": %.6f, \"free\": %.6f, "
           "\"ranges\": %llu, \"read\": %llu, \"in_place\": %llu, "
           "\"verified\": %llu, \"sum\": %llu, \"detail\": \"%s%s, threads %u, depth %u\", \"reason\": \"%s\"}\n",
           took, used, (unsigned long long)bytes, peak, opened - begin, loaded - opened, now() - begin_free,
           (unsigned long long)stats.ranges, (unsigned long long)stats.bytes_read, (unsigned long long)stats.bytes_in_place,
           (unsigned long long)stats.bytes_verified, (unsigned long long)sum, row.io < 4 ? io_names[row.io] : "?",
           row.direct == HURRAY_ON ? " direct" : "", row.threads, row.queue_depth, row.reason ? row.reason : "");
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2) {
        unsigned threads = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
        if (strcmp(argv[1], "settle") == 0) return settle((size_t)strtoull(argv[2], NULL, 10) << 20);
        if (strncmp(argv[1], "plain-", 6) == 0) return plain(argv[1], argv[2], threads);
        for (size_t w = 0; w < sizeof WAYS / sizeof *WAYS; w++)
            if (strcmp(argv[1], WAYS[w].name) == 0) return load(&WAYS[w], argv[2], threads);
    }
    fprintf(stderr, "usage: load HOW FILE [THREADS]; HOW is settle, plain-fresh, plain-touched, plain-direct");
    for (size_t w = 0; w < sizeof WAYS / sizeof *WAYS; w++) fprintf(stderr, ", %s", WAYS[w].name);
    fprintf(stderr, "\n");
    return 2;
}
