/* The runtime calls that this room uses, as one table: api.c fills it from NVIDIA's runtime, tests from a stand-in. Handles are void *,
 * codes are the runtime's own numbers. No other file knows NVIDIA's headers. */
#ifndef HRY_CUDA_API_H
#define HRY_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#define HRY_CUDA_SUCCESS 0
#define HRY_CUDA_INVALID_VALUE 1
#define HRY_CUDA_OUT_OF_MEMORY 2
#define HRY_CUDA_INITIALIZATION 3
#define HRY_CUDA_UNLOADING 4
#define HRY_CUDA_STUB_LIBRARY 34
#define HRY_CUDA_INSUFFICIENT_DRIVER 35
#define HRY_CUDA_NO_DEVICE 100
#define HRY_CUDA_INVALID_CONTEXT 201
#define HRY_CUDA_NOT_READY 600
#define HRY_CUDA_CONTEXT_DESTROYED 709

#define HRY_CUDA_COPY_TO_DEVICE 1 /* kinds of a copy */
#define HRY_CUDA_COPY_DEFAULT 4
#define HRY_CUDA_CAPTURE_RELAXED 2
#define HRY_CUDA_STREAM_LEGACY ((void *)1)
#define HRY_CUDA_STREAM_PER_THREAD ((void *)2)

/* Attributes asked for by number. */
#define HRY_CUDA_ATTRIBUTE_MANAGED_MEMORY 83

typedef struct HryCudaProperties {
    char name[128];
    uint8_t uuid[16];
    uint64_t total_bytes;
} HryCudaProperties;

typedef struct HryCudaApi {
    /* is there one */
    int (*driver_get_version)(int *version);
    int (*runtime_get_version)(int *version);
    int (*get_device_count)(int *count);
    int (*device_get_attribute)(int *value, int attribute, int device);
    int (*get_device_properties)(HryCudaProperties *out, int device);
    int (*device_get_pci_bus_id)(char *id, int len, int device);
    const char *(*get_error_name)(int code);
    int (*get_last_error)(void);
    /* context: the driver's primary context, reached through the runtime */
    int (*primary_retain)(void **context, int device);
    int (*primary_release)(int device);
    int (*push_context)(void *context);
    int (*pop_context)(void **context);
    int (*exchange_capture_mode)(int *mode);
    /* memory */
    int (*malloc_device)(void **memory, size_t size);
    int (*free_device)(void *memory);
    int (*malloc_managed)(void **memory, size_t size);
    int (*host_register)(void *memory, size_t size);
    int (*host_unregister)(void *memory);
    int (*host_alloc)(void **memory, size_t size);
    int (*host_free)(void *memory);
    int (*mem_get_info)(size_t *free_bytes, size_t *total_bytes);
    /* order */
    int (*stream_create)(void **stream); /* non-blocking */
    int (*stream_destroy)(void *stream);
    int (*stream_query)(void *stream);
    int (*stream_wait_event)(void *stream, void *event);
    int (*event_create)(void **event); /* without timing */
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    /* copy */
    int (*memcpy_async)(void *to, const void *from, size_t size, int kind, void *stream);
} HryCudaApi;

/* The runtime; the same table for the life of the process. */
const HryCudaApi *hry_cuda_api(void);

#endif
