/* What this machine's link to its GPU can do, by the CUDA runtime alone: none of the library's code. Every figure is a median of five.
 * Not run on a GPU yet: compiled, and seen to skip where there is none. usage: h2d_limit     exit 77: no GPU */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cuda_runtime_api.h>

#define MIB ((size_t)1 << 20)
#define PINNED (64 * MIB)
#define TOTAL (512 * MIB)

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(cudaError_t code, const char *what) {
    if (code == cudaSuccess) return;
    printf("FAIL %s: %s (%d)\n", what, cudaGetErrorName(code), (int)code);
    exit(1);
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, order);
    return values[count / 2];
}

/* Anonymous memory, 2 MiB-aligned, touched. */
static uint8_t *map(size_t size, int huge) {
    size_t room = size + 2 * MIB;
    uint8_t *raw = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    uint8_t *aligned = (uint8_t *)(((uintptr_t)raw + 2 * MIB - 1) & ~(uintptr_t)(2 * MIB - 1));
    madvise(aligned, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(aligned, 0x5A, size);
    return aligned; /* the process's end unmaps it */
}

/* TOTAL bytes in copies of `piece` from memory that holds PINNED, over `count` streams; GB/s. */
static double copy(uint8_t *device, const uint8_t *host, size_t piece, size_t offset, cudaStream_t *streams, int count) {
    double values[5];
    for (int round = -1; round < 5; round++) { /* the first one warms the link up */
        double begin = now();
        size_t at = 0;
        for (size_t sent = 0; sent < TOTAL; sent += piece) {
            must(cudaMemcpyAsync(device + at, host + at + offset, piece - offset, cudaMemcpyHostToDevice,
                                 streams[(sent / piece) % (size_t)count]),
                 "cudaMemcpyAsync");
            at = (at + piece) % PINNED;
        }
        must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        if (round >= 0) values[round] = (double)TOTAL / (now() - begin) / 1e9;
    }
    return median(values, 5);
}

static void pin_costs(void) {
    const size_t size = 256 * MIB;
    double begin = now();
    void *memory = NULL;
    must(cudaHostAlloc(&memory, size, cudaHostAllocPortable), "cudaHostAlloc");
    printf("pin 256 MiB: cudaHostAlloc %.1f ms", (now() - begin) * 1e3);
    must(cudaFreeHost(memory), "cudaFreeHost");
    for (int huge = 0; huge < 2; huge++) {
        begin = now();
        memory = map(size, huge);
        double touched = now();
        if (!memory) { /* said, not fatal */
            printf(", no memory");
            continue;
        }
        must(cudaHostRegister(memory, size, cudaHostRegisterPortable), "cudaHostRegister");
        printf(", %s pages touched in %.1f ms and registered in %.1f ms", huge ? "huge" : "small", (touched - begin) * 1e3,
               (now() - touched) * 1e3);
        must(cudaHostUnregister(memory), "cudaHostUnregister");
        munmap(memory, size);
    }
    printf("\n");
}

int main(void) {
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) {
        printf("SKIP: no GPU: %s (%d)\n", cudaGetErrorName(code), (int)code);
        return 77;
    }
    double begin = now();
    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaFree(NULL), "the context");
    printf("context: %.0f ms\n", (now() - begin) * 1e3);
    pin_costs();
    begin = now();
    void *big = NULL;
    if (cudaMalloc(&big, (size_t)4 << 30) == cudaSuccess) {
        printf("cudaMalloc of 4 GiB: %.2f ms\n", (now() - begin) * 1e3);
        must(cudaFree(big), "cudaFree");
    } else {
        printf("cudaMalloc of 4 GiB: refused\n");
        cudaGetLastError();
    }
    void *device = NULL, *allocated = NULL;
    cudaStream_t streams[2];
    must(cudaMalloc(&device, PINNED), "cudaMalloc");
    must(cudaHostAlloc(&allocated, PINNED, cudaHostAllocPortable), "cudaHostAlloc");
    memset(allocated, 0x5A, PINNED);
    uint8_t *huge = map(PINNED, 1), *small = map(PINNED, 0), *pageable = map(PINNED, 1);
    if (!huge || !small || !pageable) return printf("FAIL no host memory\n"), 1;
    must(cudaHostRegister(huge, PINNED, cudaHostRegisterPortable), "cudaHostRegister");
    must(cudaHostRegister(small, PINNED, cudaHostRegisterPortable), "cudaHostRegister");
    for (int i = 0; i < 2; i++) must(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    const struct {
        const char *name;
        const uint8_t *memory;
    } kinds[] = {
        {"registered, huge pages", huge}, {"registered, 4 KiB pages", small}, {"cudaHostAlloc", allocated}, {"pageable", pageable}};
    static const size_t pieces[] = {1, 2, 4, 8, 16, 64};
    double best = 0, one = 0, sixtyfour = 0;
    printf("%-26s", "GB/s, one copy of MiB:");
    for (size_t p = 0; p < 6; p++) printf("%8zu", pieces[p]);
    printf("\n");
    for (size_t k = 0; k < 4; k++) {
        printf("%-26s", kinds[k].name);
        for (size_t p = 0; p < 6; p++) {
            double speed = copy(device, kinds[k].memory, pieces[p] * MIB, 0, streams, 1);
            printf("%8.2f", speed);
            if (k == 0 && p == 0) one = speed;
            if (k == 0 && p == 5) sixtyfour = speed;
            if (speed > best) best = speed;
        }
        printf("\n");
    }
    printf("two streams, 4 MiB: %.2f; offset 8: %.2f; offset 512: %.2f\n", copy(device, huge, 4 * MIB, 0, streams, 2),
           copy(device, huge, 4 * MIB, 8, streams, 1), copy(device, huge, 4 * MIB, 512, streams, 1));
    if (one > 0 && sixtyfour > 0)
        printf("gap between copies, by the difference of 1 and 64 MiB: %.2f us\n", (double)MIB / 1e3 * (1 / one - 1 / sixtyfour));
    printf("RESULT h2d_limit %.2f GB/s\n", best);
    return 0;
}
