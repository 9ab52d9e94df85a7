/* A stand-in for the CUDA runtime, in host memory, for tests of the logic around it: it fills the table of src/cuda/api.h. It runs copies
 * as late as the runtime's rules allow, fails calls on demand, and ends the test on any misuse (exit code 100 + the number of the check,
 * with the call, the handle and the test's name on stderr). It is no GPU and proves nothing about one's speed, memory or driver. */
#ifndef HRY_TESTS_FAKE_CUDA_H
#define HRY_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs of the random schedule in tests of whole scenarios. */
#if defined(__SANITIZE_THREAD__)
#define FAKE_SEEDS 5u /* ten times slower */
#else
#define FAKE_SEEDS 30u
#endif

/* The calls of the table: name, the runtime's own name. */
#define FAKE_CALLS(X)                                                                                                                      \
    X(driver_get_version, "cudaDriverGetVersion")                                                                                          \
    X(runtime_get_version, "cudaRuntimeGetVersion")                                                                                        \
    X(get_device_count, "cudaGetDeviceCount")                                                                                              \
    X(device_get_attribute, "cudaDeviceGetAttribute")                                                                                      \
    X(get_device_properties, "cudaGetDeviceProperties")                                                                                    \
    X(device_get_pci_bus_id, "cudaDeviceGetPCIBusId")                                                                                      \
    X(get_last_error, "cudaGetLastError")                                                                                                  \
    X(primary_retain, "cuDevicePrimaryCtxRetain")                                                                                          \
    X(primary_release, "cuDevicePrimaryCtxRelease")                                                                                        \
    X(push_context, "cuCtxPushCurrent")                                                                                                    \
    X(pop_context, "cuCtxPopCurrent")                                                                                                      \
    X(exchange_capture_mode, "cudaThreadExchangeStreamCaptureMode")                                                                        \
    X(malloc_device, "cudaMalloc")                                                                                                         \
    X(free_device, "cudaFree")                                                                                                             \
    X(malloc_managed, "cudaMallocManaged")                                                                                                 \
    X(host_register, "cudaHostRegister")                                                                                                   \
    X(host_unregister, "cudaHostUnregister")                                                                                               \
    X(host_alloc, "cudaHostAlloc")                                                                                                         \
    X(host_free, "cudaFreeHost")                                                                                                           \
    X(mem_get_info, "cudaMemGetInfo")                                                                                                      \
    X(stream_create, "cudaStreamCreateWithFlags")                                                                                          \
    X(stream_destroy, "cudaStreamDestroy")                                                                                                 \
    X(stream_query, "cudaStreamQuery")                                                                                                     \
    X(stream_wait_event, "cudaStreamWaitEvent")                                                                                            \
    X(event_create, "cudaEventCreateWithFlags")                                                                                            \
    X(event_destroy, "cudaEventDestroy")                                                                                                   \
    X(event_record, "cudaEventRecord")                                                                                                     \
    X(event_query, "cudaEventQuery")                                                                                                       \
    X(memcpy_async, "cudaMemcpyAsync")

typedef enum FakeCall {
#define FAKE_NUMBER(call, name) FAKE_##call,
    FAKE_CALLS(FAKE_NUMBER)
#undef FAKE_NUMBER
    FAKE_CALL_COUNT,
    FAKE_ANY /* for failures: any call of the table that can fail */
} FakeCall;

/* Checks; a number is a row of the specification's list. 0: the host touched device memory. */
enum {
    FAKE_CHECK_HOST_ACCESS = 0,
    FAKE_CHECK_PINNED = 1,
    FAKE_CHECK_RANGE,
    FAKE_CHECK_ZERO,
    FAKE_CHECK_KIND,
    FAKE_CHECK_SOURCE_CHANGED,
    FAKE_CHECK_FREED_PENDING,
    FAKE_CHECK_USE_AFTER_FREE,
    FAKE_CHECK_UNRECORDED,
    FAKE_CHECK_DESTROYED,
    FAKE_CHECK_WRONG_DEVICE,
    FAKE_CHECK_CONTEXT,
    FAKE_CHECK_RECORDED_AGAIN,
    FAKE_CHECK_BYTES,
    FAKE_CHECK_ENDLESS,
    FAKE_CHECK_AFTER_STICKY,
    FAKE_CHECK_LAST_ERROR,
    FAKE_CHECK_FORK,
    FAKE_CHECK_CAP,
    FAKE_CHECK_LOCKED,
    FAKE_CHECK_PER_THREAD_STREAM,
    FAKE_CHECK_LEFT,
    FAKE_CHECK_UNWRITTEN,
};

typedef enum FakeSchedule {
    FAKE_LAZY,     /* nothing runs until it is asked for often enough, and then nothing beyond */
    FAKE_EAGER,    /* at once */
    FAKE_RANDOM,   /* by seed */
    FAKE_THREADED, /* a thread per stream, one engine per device with a speed and a gap */
} FakeSchedule;

typedef struct FakeSettings {
    FakeSchedule schedule;
    uint64_t seed;
    unsigned not_ready;        /* lazy: queries that answer so before the work runs; 0: 2 */
    unsigned devices;          /* 0: 1 */
    uint64_t device_bytes;     /* of each device; 0: 4 GiB */
    uint64_t pinned_limit;     /* more is refused (OUT_OF_MEMORY); 0: none */
    uint64_t pinned_cap;       /* more at any moment is a failed check; 0: none */
    uint64_t link_bytes;       /* threaded: per second; 0: no pause */
    uint64_t gap_ns;           /* threaded: between copies */
    bool pageable;             /* copies from memory that is not pinned are allowed (and staged inside the call) */
    bool no_driver;            /* everything is 35 */
    bool no_register;          /* cudaHostRegister is refused (801) */
    bool no_managed;           /* the attribute is 0 */
    int driver_version;        /* 0: 13000 */
    int count_code;            /* what cudaGetDeviceCount answers instead; 0: the devices */
} FakeSettings;

/* A fresh runtime for one test (or one run of it). End ends the run: everything must have been given back. */
void fake_cuda_begin(const FakeSettings *settings, const char *test);
void fake_cuda_end(void);

/* Fails the n-th (from 1) call of a kind from now on, once or onward. A sticky code kills the current context. */
void fake_cuda_fail(FakeCall call, uint64_t n, bool onward, int code);
/* The n-th copy that runs from now on kills its context; the code appears at a later call. */
void fake_cuda_fail_running_copy(uint64_t n, int code);
/* Did an ordered failure happen? */
bool fake_cuda_failed(void);
/* Has a context died? */
bool fake_cuda_is_dead(void);

/* ---- the caller's side: what an engine does with what it was handed. None of this counts as a call. ---- */

void *fake_cuda_stream(int device);                   /* a stream of the caller's own; fake_cuda_end takes it back */
void *fake_cuda_device_memory(int device, size_t len); /* the caller's own device memory (a pool, `into`) */
void fake_cuda_device_memory_free(void *memory);
void fake_cuda_own_stream_2(void);                      /* from now on stream 2 is the calling thread's */
/* The bytes as the consumer sees them: at once (producer-synced); behind an event; in a stream's order (these two: unless the context
 * has died, which the consumer's own calls tell it). */
void fake_cuda_expect_now(const void *memory, const void *bytes, size_t len);
void fake_cuda_expect_after(void *event, const void *memory, const void *bytes, size_t len);
void fake_cuda_expect_on(void *stream, const void *memory, const void *bytes, size_t len);
/* The consumer needs these bytes no more: their whole pages cost no memory from here on, and hold nothing. For models larger than the
 * machine: look at each tensor, then forget it. */
void fake_cuda_forget(const void *memory, size_t len);
/* An event was handed to the caller: it must have been recorded and is never recorded again. */
void fake_cuda_hand_out(void *event);
/* Runs everything that is pending. */
void fake_cuda_run_all(void);
/* The current thread must be as it was before the library was called: no context pushed, no error stored. */
void fake_cuda_check_thread(const char *where);
/* The ring under test tells of its lock: the calling thread holds so many more. None may be held in any call, so in no wait either. */
void hry_cuda_tell_lock(int by);

/* ---- counts ---- */

typedef struct FakeCounts {
    uint64_t calls[FAKE_CALL_COUNT];
    uint64_t device_bytes, device_peak, device_blocks;
    uint64_t pinned_bytes, pinned_peak, pinned_blocks;
    uint64_t streams, events, contexts, pending;
    uint64_t copies, copied_bytes;         /* that have run */
    uint64_t copies_enqueued;
    uint64_t first_copy_ns, last_copy_ns;  /* begin of the first, end of the last (threaded) */
    uint64_t copying_ns;                   /* engine busy (threaded) */
} FakeCounts;
void fake_cuda_counts(FakeCounts *out);
const char *fake_cuda_call_name(FakeCall call);
bool fake_cuda_is_release(FakeCall call);
bool fake_cuda_is_device(const void *memory); /* live device memory */
bool fake_cuda_is_pinned(const void *memory, size_t len);

#endif
