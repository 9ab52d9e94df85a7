#include "cuda/api.h"

#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#error "per-thread default streams change what stream 0 means; build this file without them"
#endif

/* The runtime links no driver; what it lacks is looked up through it. The types are those of cuda.h. *function stays NULL on failure. */
static int driver_call(const char *name, void *function, size_t size) {
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *address = NULL;
#if CUDART_VERSION >= 12050
    cudaError_t code = cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found);
#else
    cudaError_t code = cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &found);
#endif
    if (code != cudaSuccess) return (int)code;
    if (found != cudaDriverEntryPointSuccess || !address) return (int)cudaErrorInsufficientDriver;
    memcpy(function, &address, size); /* ISO C knows no cast between the two kinds of pointer */
    return 0;
}

static int driver_get_version(int *version) { return (int)cudaDriverGetVersion(version); }
static int runtime_get_version(int *version) { return (int)cudaRuntimeGetVersion(version); }
static int get_device_count(int *count) { return (int)cudaGetDeviceCount(count); }
static int device_get_attribute(int *value, int attribute, int device) {
    return (int)cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device);
}
static int get_device_properties(HryCudaProperties *out, int device) {
    struct cudaDeviceProp properties;
    cudaError_t code = cudaGetDeviceProperties(&properties, device);
    if (code != cudaSuccess) return (int)code;
    memset(out, 0, sizeof *out);
    memcpy(out->name, properties.name, sizeof out->name - 1);
    memcpy(out->uuid, properties.uuid.bytes, sizeof out->uuid);
    out->total_bytes = properties.totalGlobalMem;
    return 0;
}
static int device_get_pci_bus_id(char *id, int len, int device) { return (int)cudaDeviceGetPCIBusId(id, len, device); }
static const char *get_error_name(int code) { return cudaGetErrorName((cudaError_t)code); }
static int get_last_error(void) { return (int)cudaGetLastError(); }

static int primary_retain(void **context, int device) {
    CUresult (*function)(CUcontext *, CUdevice) = NULL;
    CUcontext made = NULL;
    int code = driver_call("cuDevicePrimaryCtxRetain", &function, sizeof function);
    if (code == 0) code = (int)function(&made, device);
    if (code == 0) *context = made;
    return code;
}
static int primary_release(int device) {
    CUresult (*function)(CUdevice) = NULL;
    int code = driver_call("cuDevicePrimaryCtxRelease", &function, sizeof function);
    return code == 0 ? (int)function(device) : code;
}
static int push_context(void *context) {
    CUresult (*function)(CUcontext) = NULL;
    int code = driver_call("cuCtxPushCurrent", &function, sizeof function);
    return code == 0 ? (int)function(context) : code;
}
static int pop_context(void **context) {
    CUresult (*function)(CUcontext *) = NULL;
    CUcontext old = NULL;
    int code = driver_call("cuCtxPopCurrent", &function, sizeof function);
    if (code == 0) code = (int)function(&old);
    if (code == 0) *context = old;
    return code;
}
static int exchange_capture_mode(int *mode) {
    enum cudaStreamCaptureMode value = (enum cudaStreamCaptureMode)*mode;
    cudaError_t code = cudaThreadExchangeStreamCaptureMode(&value);
    *mode = (int)value;
    return (int)code;
}

static int malloc_device(void **memory, size_t size) { return (int)cudaMalloc(memory, size); }
static int free_device(void *memory) { return (int)cudaFree(memory); }
static int malloc_managed(void **memory, size_t size) { return (int)cudaMallocManaged(memory, size, cudaMemAttachGlobal); }
static int host_register(void *memory, size_t size) { return (int)cudaHostRegister(memory, size, cudaHostRegisterPortable); }
static int host_unregister(void *memory) { return (int)cudaHostUnregister(memory); }
static int host_alloc(void **memory, size_t size) { return (int)cudaHostAlloc(memory, size, cudaHostAllocPortable); }
static int host_free(void *memory) { return (int)cudaFreeHost(memory); }
static int mem_get_info(size_t *free_bytes, size_t *total_bytes) { return (int)cudaMemGetInfo(free_bytes, total_bytes); }

static int stream_create(void **stream) {
    cudaStream_t made = NULL;
    cudaError_t code = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    if (code == cudaSuccess) *stream = made;
    return (int)code;
}
static int stream_destroy(void *stream) { return (int)cudaStreamDestroy((cudaStream_t)stream); }
static int stream_query(void *stream) { return (int)cudaStreamQuery((cudaStream_t)stream); }
static int stream_wait_event(void *stream, void *event) { return (int)cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0); }
static int event_create(void **event) {
    cudaEvent_t made = NULL;
    cudaError_t code = cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
    if (code == cudaSuccess) *event = made;
    return (int)code;
}
static int event_destroy(void *event) { return (int)cudaEventDestroy((cudaEvent_t)event); }
static int event_record(void *event, void *stream) { return (int)cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream); }
static int event_query(void *event) { return (int)cudaEventQuery((cudaEvent_t)event); }
static int memcpy_async(void *to, const void *from, size_t size, int kind, void *stream) {
    return (int)cudaMemcpyAsync(to, from, size, (enum cudaMemcpyKind)kind, (cudaStream_t)stream);
}

const HryCudaApi *hry_cuda_api(void) {
    static const HryCudaApi api = {
        driver_get_version, runtime_get_version, get_device_count, device_get_attribute, get_device_properties, device_get_pci_bus_id,
        get_error_name, get_last_error, primary_retain, primary_release, push_context, pop_context, exchange_capture_mode,
        malloc_device, free_device, malloc_managed, host_register, host_unregister, host_alloc, host_free, mem_get_info,
        stream_create, stream_destroy, stream_query, stream_wait_event, event_create, event_destroy, event_record, event_query, memcpy_async,
    };
    return &api;
}
