#include "gpu_measure.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#define MOST_READERS 16u

double gpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double gpu_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, order);
    return values[count / 2];
}

double gpu_rate(uint64_t bytes, double seconds) { return seconds > 0 ? (double)bytes / seconds / 1e9 : 0; }

uint32_t gpu_readers(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > (long)MOST_READERS ? MOST_READERS : (uint32_t)cores;
}

int gpu_limits_begin(GpuLimits *limits, uint64_t total) {
    int count = 0;
    void *device = NULL, *pinned = NULL;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) return printf("SKIP: no GPU: %s (%d)\n", cudaGetErrorName(code), (int)code), 77;
    if (cudaSetDevice(0) != cudaSuccess || cudaMalloc(&device, GPU_ROOM) != cudaSuccess ||
        cudaHostAlloc(&pinned, GPU_ROOM, 0) != cudaSuccess)
        return printf("FAIL %s\n", cudaGetErrorName(cudaGetLastError())), 1;
    memset(pinned, 0x5A, GPU_ROOM);
    *limits = (GpuLimits){device, pinned, total};
    return 0;
}

double gpu_link_time(const GpuLimits *limits, size_t slot) {
    double begin = gpu_now();
    size_t at = 0;
    for (uint64_t sent = 0; sent < limits->total; sent += slot) {
        cudaMemcpyAsync(limits->device + at, limits->pinned + at, slot, cudaMemcpyHostToDevice, 0);
        at = (at + slot) % GPU_ROOM;
    }
    if (cudaDeviceSynchronize() == cudaSuccess) return gpu_now() - begin;
    printf("WRONG the copies alone: %s\n", cudaGetErrorName(cudaGetLastError()));
    return 0;
}

typedef struct Reader {
    const GpuLimits *limits;
    const char *path;
    size_t slot;
    uint32_t number, readers;
    int direct, failed;
} Reader;

static void *read_part(void *arg) {
    Reader *reader = arg;
    int fd = open(reader->path, O_RDONLY | O_CLOEXEC | (reader->direct ? O_DIRECT : 0));
    for (uint64_t at = reader->number * reader->slot; fd >= 0 && at < reader->limits->total; at += reader->readers * reader->slot)
        if (pread(fd, reader->limits->pinned + reader->number * reader->slot, reader->slot, (off_t)at) < 0) reader->failed = 1;
    if (fd < 0)
        reader->failed = 1;
    else
        close(fd);
    return NULL;
}

double gpu_read_time(const GpuLimits *limits, const char *path, size_t slot, uint32_t readers, int direct) {
    pthread_t threads[MOST_READERS];
    Reader parts[MOST_READERS];
    int failed = 0;
    double begin = gpu_now();
    for (uint32_t i = 0; i < readers; i++) {
        parts[i] = (Reader){limits, path, slot, i, readers, direct, 0};
        pthread_create(&threads[i], NULL, read_part, &parts[i]);
    }
    for (uint32_t i = 0; i < readers; i++) pthread_join(threads[i], NULL), failed |= parts[i].failed;
    if (!failed) return gpu_now() - begin;
    printf("%s: the reads alone failed%s\n", path, direct ? ", direct ones" : "");
    return 0;
}

HurrayLoaderOptions gpu_load_options(void) {
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    options.target = HURRAY_TARGET_DEVICE;
    options.device_tag = HURRAY_DEVICE_CUDA;
    options.device_index = 0;
    options.sync_mode = HURRAY_SYNC_EVENT;
    return options;
}

double gpu_load_time(const char *path, const HurrayLoaderOptions *options, HurrayLoadStats *stats, HurrayPathStats *row) {
    static char reason[200];
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    double begin = gpu_now();
    HurrayStatus status = hurray_loader_open(path, options, &loader, &error);
    if (status == HURRAY_OK && (status = hurray_loader_load(loader, &set)) != HURRAY_OK) error = *hurray_loader_last_error(loader);
    if (cudaDeviceSynchronize() != cudaSuccess) status = HURRAY_ERR_DEVICE;
    double took = gpu_now() - begin;
    if (status == HURRAY_OK) {
        hurray_loader_stats(loader, stats);
        hurray_loader_path_stats(loader, 0, row);
        if (row->reason) snprintf(reason, sizeof reason, "%s", row->reason), row->reason = reason; /* the loader's goes with it */
    } else {
        printf("WRONG %s: %s\n", path, error.message);
    }
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    return status == HURRAY_OK ? took : 0;
}
