/* What the programs that measure share: clock and median, what the machine does without the library (plain reads into pinned memory, plain
 * copies out of it), and one load by the library. Times are seconds; 0: it failed, and was said. */
#ifndef TESTS_DEVICE_GPU_MEASURE_H
#define TESTS_DEVICE_GPU_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "hurray/loader.h"

#define MIB ((size_t)1 << 20)
#define GPU_ROOM (128 * MIB) /* pinned and on the device: 16 readers of 8 MiB */

typedef struct GpuLimits {
    uint8_t *device, *pinned;
    uint64_t total; /* bytes of a round */
} GpuLimits;

double gpu_now(void);
double gpu_median(double *values, size_t count); /* sorts them */
double gpu_rate(uint64_t bytes, double seconds); /* GB/s */
uint32_t gpu_readers(void);                      /* as many as the loader would have */

/* 0: context and memory are there; 77: there is no GPU; 1: it failed. The reason is printed. */
int gpu_limits_begin(GpuLimits *limits, uint64_t total);
/* All bytes from pinned memory, in copies of `slot`. */
double gpu_link_time(const GpuLimits *limits, size_t slot);
/* All bytes of the file into the readers' own slots of pinned memory. */
double gpu_read_time(const GpuLimits *limits, const char *path, size_t slot, uint32_t readers, int direct);

/* To GPU 0 in event mode. */
HurrayLoaderOptions gpu_load_options(void);
/* One thread at a time. From before the open to this program's own device synchronize, never to the library's return. */
double gpu_load_time(const char *path, const HurrayLoaderOptions *options, HurrayLoadStats *stats, HurrayPathStats *row);

#endif
