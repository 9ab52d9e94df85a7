#include "gpu_calls.h"

#include <string.h>
#include <time.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

GpuCalls gpu_calls;

cudaError_t __real_cudaHostRegister(void *memory, size_t size, unsigned flags);
cudaError_t __real_cudaHostUnregister(void *memory);
cudaError_t __real_cudaHostAlloc(void **memory, size_t size, unsigned flags);
cudaError_t __real_cudaFreeHost(void *memory);
cudaError_t __real_cudaMalloc(void **memory, size_t size);
cudaError_t __real_cudaFree(void *memory);
cudaError_t __real_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t __real_cudaEventDestroy(cudaEvent_t event);
cudaError_t __real_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t __real_cudaStreamDestroy(cudaStream_t stream);
cudaError_t __real_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t __real_cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t __wrap_cudaHostRegister(void *memory, size_t size, unsigned flags);
cudaError_t __wrap_cudaHostUnregister(void *memory);
cudaError_t __wrap_cudaHostAlloc(void **memory, size_t size, unsigned flags);
cudaError_t __wrap_cudaFreeHost(void *memory);
cudaError_t __wrap_cudaMalloc(void **memory, size_t size);
cudaError_t __wrap_cudaFree(void *memory);
cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event);
cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t __wrap_cudaStreamDestroy(cudaStream_t stream);
cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream);

static cudaError_t counted(atomic_long *count, long by, cudaError_t code) {
    if (code == cudaSuccess) atomic_fetch_add(count, by);
    return code;
}

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

cudaError_t __wrap_cudaHostRegister(void *memory, size_t size, unsigned flags) {
    if (atomic_load(&gpu_calls.refuse_register)) return cudaErrorNotSupported;
    long long begin = now_ns();
    cudaError_t code = __real_cudaHostRegister(memory, size, flags);
    atomic_fetch_add(&gpu_calls.pin_ns, now_ns() - begin);
    return counted(&gpu_calls.pinned, 1, code);
}
cudaError_t __wrap_cudaHostUnregister(void *memory) { return counted(&gpu_calls.pinned, -1, __real_cudaHostUnregister(memory)); }
cudaError_t __wrap_cudaHostAlloc(void **memory, size_t size, unsigned flags) {
    if (atomic_load(&gpu_calls.refuse_alloc)) return cudaErrorMemoryAllocation;
    long long begin = now_ns();
    cudaError_t code = __real_cudaHostAlloc(memory, size, flags);
    atomic_fetch_add(&gpu_calls.pin_ns, now_ns() - begin);
    return counted(&gpu_calls.pinned, 1, code);
}
cudaError_t __wrap_cudaFreeHost(void *memory) { return counted(&gpu_calls.pinned, -1, __real_cudaFreeHost(memory)); }
cudaError_t __wrap_cudaMalloc(void **memory, size_t size) { return counted(&gpu_calls.device, 1, __real_cudaMalloc(memory, size)); }
cudaError_t __wrap_cudaFree(void *memory) { return counted(&gpu_calls.device, memory ? -1 : 0, __real_cudaFree(memory)); }
cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    return counted(&gpu_calls.events, 1, __real_cudaEventCreateWithFlags(event, flags));
}
cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event) { return counted(&gpu_calls.events, -1, __real_cudaEventDestroy(event)); }
cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return counted(&gpu_calls.streams, 1, __real_cudaStreamCreateWithFlags(stream, flags));
}
cudaError_t __wrap_cudaStreamDestroy(cudaStream_t stream) { return counted(&gpu_calls.streams, -1, __real_cudaStreamDestroy(stream)); }
cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return atomic_load(&gpu_calls.skip_wait) ? cudaSuccess : __real_cudaStreamWaitEvent(stream, event, flags);
}
cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
    if (kind != cudaMemcpyHostToDevice) return __real_cudaMemcpyAsync(to, from, size, kind, stream);
    int number = atomic_fetch_add(&gpu_calls.copies, 1) + 1;
    if (number == atomic_load(&gpu_calls.fail_copy)) return cudaErrorInvalidValue;
    return __real_cudaMemcpyAsync(to, from, size, kind, stream);
}

static CUresult (*get_current)(CUcontext *);

int gpu_calls_begin(void) {
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *address = NULL;
#if CUDART_VERSION >= 12050
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &address, 12000, cudaEnableDefault, &found);
#else
    cudaError_t code = cudaGetDriverEntryPoint("cuCtxGetCurrent", &address, cudaEnableDefault, &found);
#endif
    if (code != cudaSuccess || found != cudaDriverEntryPointSuccess || !address) return 0;
    memcpy(&get_current, &address, sizeof get_current);
    return 1;
}

void *gpu_current_context(void) {
    CUcontext context = NULL;
    return get_current(&context) == CUDA_SUCCESS ? (void *)context : (void *)&gpu_calls; /* a failure is no NULL */
}
