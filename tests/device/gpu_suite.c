/* The loader on a real GPU: every way to hand a buffer over, every kind of staging, all bytes read back and compared; cancelling, failing
 * copies, loads side by side, releasing on a fresh thread, a file that shrinks, and a control that must fail.
 * Not run on a GPU yet: compiled, and seen to skip where there is none. usage: gpu_suite FOLDER [modes]     exit 77: no GPU
 * modes: one load in each sync mode and no more, for the slow tools that watch a program. */
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "gpu_calls.h"
#include "gpu_model.h"

#define MIB ((uint64_t)1 << 20)
#define TENSORS 210u
#define POISON 0xA5

static atomic_int wrong, checks;
static char small_model[512], shrinking[512];
static uint64_t sizes[TENSORS];

static bool check(bool good, const char *what, const char *detail) {
    atomic_fetch_add(&checks, 1);
    if (good) return true;
    if (atomic_fetch_add(&wrong, 1) < 40) printf("WRONG %s: %s\n", what, detail);
    return false;
}

static bool cuda(cudaError_t code, const char *what) { return check(code == cudaSuccess, what, cudaGetErrorName(code)); }

/* ---- device memory that is poisoned before the library gets it ---- */

typedef struct Block {
    void *base, *given;
} Block;
typedef struct Pool {
    pthread_mutex_t lock;
    Block blocks[64];
    int live;
    void *fixed; /* one block that was poisoned before; nothing is allocated, nothing waits */
    uint64_t fixed_size;
} Pool;

static HurrayStatus pool_allocate(void *ctx, uint8_t tag, int32_t index, uint64_t bytes, uint32_t alignment, void *stream, void **out) {
    Pool *pool = ctx;
    void *base = NULL;
    (void)stream;
    if (tag != HURRAY_DEVICE_CUDA || index != 0) return HURRAY_ERR_NO_DEVICE;
    if (pool->fixed) {
        *out = pool->fixed;
        return bytes <= pool->fixed_size ? HURRAY_OK : HURRAY_ERR_NO_MEMORY;
    }
    if (cudaMalloc(&base, bytes + alignment) != cudaSuccess) return HURRAY_ERR_NO_MEMORY;
    if (cudaMemset(base, POISON, bytes + alignment) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return HURRAY_ERR_DEVICE;
    *out = (void *)(((uintptr_t)base + alignment - 1) & ~(uintptr_t)(alignment - 1));
    HurrayStatus status = HURRAY_ERR_NO_MEMORY;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < 64 && status != HURRAY_OK; i++) {
        if (pool->blocks[i].base) continue;
        pool->blocks[i] = (Block){base, *out};
        pool->live++;
        status = HURRAY_OK;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

static void pool_deallocate(void *ctx, uint8_t tag, int32_t index, void *memory, uint64_t bytes) {
    Pool *pool = ctx;
    (void)tag, (void)index, (void)bytes;
    if (memory == pool->fixed) return;
    bool known = false;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < 64; i++) {
        if (!pool->blocks[i].base || pool->blocks[i].given != memory) continue;
        cuda(cudaFree(pool->blocks[i].base), "cudaFree of the pool");
        pool->blocks[i] = (Block){NULL, NULL};
        pool->live--;
        known = true;
    }
    pthread_mutex_unlock(&pool->lock);
    check(known, "device memory given back", "an address that was never given out");
}

static HurrayDeviceMemory pool_memory(Pool *pool) {
    HurrayDeviceMemory memory = HURRAY_DEVICE_MEMORY_INIT;
    memory.ctx = pool;
    memory.allocate = pool_allocate;
    memory.deallocate = pool_deallocate;
    return memory;
}

/* ---- loading and comparing ---- */

static HurrayLoaderOptions gpu_options(void) {
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    options.target = HURRAY_TARGET_DEVICE;
    options.device_tag = HURRAY_DEVICE_CUDA;
    options.device_index = 0;
    options.flags = HURRAY_LOAD_ARENA;
    return options;
}

/* The consumer's stream waits as the buffer's mode wants it, then reads. */
static bool read_back(HurrayBuffer *buffer, bool taken, cudaStream_t stream, uint8_t *host, uint64_t *size) {
    void *address = NULL;
    uint8_t mode = 0;
    hurray_buffer_data_ptr(buffer, &address);
    hurray_buffer_byte_size(buffer, size);
    hurray_buffer_sync_mode(buffer, &mode);
    if (mode == HURRAY_SYNC_EVENT && taken) {
        HurraySyncEventPayload event;
        if (!check(hurray_buffer_take_event(buffer, &event) == HURRAY_OK, "take_event", "refused")) return false;
        cuda(cudaStreamWaitEvent(stream, (cudaEvent_t)event.sync_handle, 0), "cudaStreamWaitEvent");
        event.event_release_fn(event.sync_handle, event.event_release_context);
    } else if (!check(hurray_buffer_order(buffer, stream) == HURRAY_OK, "hurray_buffer_order", "refused")) {
        return false;
    }
    return cuda(cudaMemcpyAsync(host, address, *size, cudaMemcpyDeviceToHost, stream), "reading back") &&
           cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

static bool compare_set(HurrayTensorSet *set, cudaStream_t stream, const char *what) {
    uint64_t count = 0;
    uint8_t *got = malloc(sizes[0]), *want = malloc(sizes[0]);
    hurray_tensor_set_count(set, &count);
    bool good = got && want && check(count == TENSORS, what, "not all tensors were loaded");
    for (uint64_t i = 0; i < count && good; i++) {
        uint64_t number = 0, size = 0;
        HurrayBuffer *buffer = model_buffer(set, i, &number);
        char detail[64];
        good = buffer && number < TENSORS && read_back(buffer, (i & 1) != 0, stream, got, &size);
        snprintf(detail, sizeof detail, "bytes of tensor %llu differ", (unsigned long long)number);
        if (good) model_fill(want, number, sizes[number]);
        good = good && check(size == sizes[number] && memcmp(got, want, size) == 0, what, detail);
    }
    free(got);
    free(want);
    return good;
}

static bool load_and_compare(const HurrayLoaderOptions *options, cudaStream_t stream, uint32_t staging, const char *what) {
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayPathStats row = HURRAY_PATH_STATS_INIT;
    HurrayStatus status = hurray_loader_open(small_model, options, &loader, &error);
    if (status == HURRAY_OK && (status = hurray_loader_load(loader, &set)) != HURRAY_OK) error = *hurray_loader_last_error(loader);
    bool good = check(status == HURRAY_OK, what, error.message);
    if (good) {
        hurray_loader_path_stats(loader, 0, &row);
        check(row.staging == staging, what, row.reason ? row.reason : "the staging is not of the kind that was arranged for");
        good = compare_set(set, stream, what);
    }
    cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    return good;
}

static void check_all_given_back(const char *what, long streams) {
    char detail[128];
    snprintf(detail, sizeof detail, "pinned %ld, device %ld, events %ld, streams %ld are left", atomic_load(&gpu_calls.pinned),
             atomic_load(&gpu_calls.device), atomic_load(&gpu_calls.events), atomic_load(&gpu_calls.streams) - streams);
    check(!atomic_load(&gpu_calls.pinned) && !atomic_load(&gpu_calls.device) && !atomic_load(&gpu_calls.events) &&
              atomic_load(&gpu_calls.streams) == streams,
          what, detail);
}

/* ---- the steps ---- */

static void every_mode(cudaStream_t consumer, cudaStream_t mine) {
    static const char *const modes[] = {"producer-synced", "event", "consumer-stream"}, *const kinds[] = {"registered", "hostalloc",
                                                                                                          "pageable"};
    Pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER};
    HurrayDeviceMemory memory = pool_memory(&pool);
    for (uint8_t mode = 0; mode < 3; mode++)
        for (int kind = 0; kind < 3; kind++)
            for (uint64_t slot = 1; slot <= 4; slot *= 4)
                for (int own = 0; own < 2; own++) {
                    HurrayLoaderOptions options = gpu_options();
                    char what[96];
                    snprintf(what, sizeof what, "%s, %s, slots of %llu MiB, copy stream of %s", modes[mode], kinds[kind],
                             (unsigned long long)slot, own ? "the library" : "the caller");
                    options.sync_mode = mode;
                    options.consumer_stream = mode == HURRAY_SYNC_CONSUMER_STREAM ? consumer : NULL;
                    options.copy_stream = own ? NULL : mine;
                    options.chunk_bytes = slot * MIB;
                    options.pinned = kind == 2 ? HURRAY_OFF : HURRAY_AUTO;
                    options.device_memory = &memory;
                    atomic_store(&gpu_calls.refuse_register, kind == 1);
                    load_and_compare(&options, consumer, kind == 2 ? HURRAY_STAGING_PAGEABLE : HURRAY_STAGING_PINNED, what);
                    atomic_store(&gpu_calls.refuse_register, 0);
                    check(pool.live == 0, what, "device memory was not given back");
                }
    HurrayLoaderOptions options = gpu_options(); /* nothing can be pinned, though it may be tried */
    atomic_store(&gpu_calls.refuse_register, 1);
    atomic_store(&gpu_calls.refuse_alloc, 1);
    load_and_compare(&options, consumer, HURRAY_STAGING_PAGEABLE, "pinning refused");
    atomic_store(&gpu_calls.refuse_register, 0);
    atomic_store(&gpu_calls.refuse_alloc, 0);
    load_and_compare(&options, consumer, HURRAY_STAGING_PINNED, "device memory of the runtime");
    check_all_given_back("every mode", 2);
    printf("every mode, slot size and kind of staging: done\n");
}

/* In the runtime's own memory, which nobody fills before: a watching tool sees a byte that no copy wrote. */
static void each_mode_once(cudaStream_t consumer, cudaStream_t mine) {
    for (uint8_t mode = 0; mode < 3; mode++)
        for (int own = 0; own < 2; own++) {
            HurrayLoaderOptions options = gpu_options();
            options.sync_mode = mode;
            options.consumer_stream = mode == HURRAY_SYNC_CONSUMER_STREAM ? consumer : NULL;
            options.copy_stream = own ? NULL : mine;
            load_and_compare(&options, consumer, HURRAY_STAGING_PINNED, "each mode once");
        }
    check_all_given_back("each mode once", 2);
    printf("one load in each mode: done\n");
}

typedef struct Cancel {
    HurrayLoader *loader;
    atomic_uint delivered;
    unsigned after;
    atomic_bool over;
} Cancel;

static HurrayStatus keep_count(void *ctx, uint64_t index, HurrayTensor *tensor) {
    Cancel *cancel = ctx;
    (void)index;
    hurray_tensor_destroy(&tensor);
    atomic_fetch_add(&cancel->delivered, 1);
    return HURRAY_OK;
}

static void *cancel_later(void *arg) {
    Cancel *cancel = arg;
    while (!atomic_load(&cancel->over) && atomic_load(&cancel->delivered) < cancel->after) {
    }
    if (!atomic_load(&cancel->over)) hurray_loader_cancel(cancel->loader);
    return NULL;
}

static void cancelling(void) {
    int cancelled = 0;
    for (unsigned round = 0; round < 20; round++) {
        HurrayLoaderOptions options = gpu_options();
        HurrayTensorSet *set = NULL;
        HurrayError error = HURRAY_ERROR_INIT;
        Cancel cancel = {.after = 1 + round * 7};
        pthread_t thread;
        options.deliver = keep_count;
        options.ctx = &cancel;
        options.sync_mode = (uint8_t)(round % 2); /* producer-synced, event */
        if (!check(hurray_loader_open(small_model, &options, &cancel.loader, &error) == HURRAY_OK, "cancel", error.message)) return;
        pthread_create(&thread, NULL, cancel_later, &cancel);
        HurrayStatus status = hurray_loader_load(cancel.loader, &set);
        atomic_store(&cancel.over, true);
        pthread_join(thread, NULL);
        check(status == HURRAY_OK || status == HURRAY_ERR_CANCELLED, "cancel", hurray_status_name(status));
        cancelled += status == HURRAY_ERR_CANCELLED;
        check(status == HURRAY_OK || !set, "cancel", "a cancelled load made a set");
        cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        hurray_tensor_set_destroy(&set);
        hurray_loader_destroy(&cancel.loader);
        check_all_given_back("cancel", 2);
    }
    check(cancelled > 0, "cancel", "no load of 20 was cancelled in time: the test proves nothing");
    printf("cancelled in mid-load: %d of 20\n", cancelled);
}

static void failing_copies(cudaStream_t consumer) {
    HurrayLoaderOptions options = gpu_options();
    atomic_store(&gpu_calls.copies, 0);
    if (!load_and_compare(&options, consumer, HURRAY_STAGING_PINNED, "before the failing copies")) return;
    int all = atomic_load(&gpu_calls.copies), numbers[] = {1, 2, all / 2, all};
    for (size_t n = 0; n < 4; n++) {
        HurrayLoader *loader = NULL;
        HurrayTensorSet *set = NULL;
        HurrayError error = HURRAY_ERROR_INIT;
        char what[48];
        snprintf(what, sizeof what, "copy %d of about %d fails", numbers[n], all);
        if (!check(hurray_loader_open(small_model, &options, &loader, &error) == HURRAY_OK, what, error.message)) return;
        atomic_store(&gpu_calls.copies, 0);
        atomic_store(&gpu_calls.fail_copy, numbers[n]);
        HurrayStatus status = hurray_loader_load(loader, &set);
        bool reached = atomic_load(&gpu_calls.copies) >= numbers[n]; /* slots close at other places in each run */
        check(reached ? status == HURRAY_ERR_DEVICE && !set : status == HURRAY_OK, what, hurray_status_name(status));
        hurray_tensor_set_destroy(&set);
        atomic_store(&gpu_calls.fail_copy, 0);
        hurray_loader_destroy(&loader);
        check_all_given_back(what, 2);
        load_and_compare(&options, consumer, HURRAY_STAGING_PINNED, "a load after a failing copy");
    }
    printf("failing copies: done, %d copies a load\n", all);
}

static void *load_beside(void *arg) {
    HurrayLoaderOptions options = gpu_options();
    cudaStream_t stream = NULL;
    if (!cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags")) return NULL;
    options.sync_mode = arg ? HURRAY_SYNC_EVENT : HURRAY_SYNC_PRODUCER_SYNCED;
    for (int i = 0; i < 5; i++) load_and_compare(&options, stream, HURRAY_STAGING_PINNED, "two loads at once");
    cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    return NULL;
}

static void side_by_side(void) {
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, load_beside, i ? &threads : NULL);
    for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    check_all_given_back("two loads at once", 2);
    printf("two loads at once, five times: done\n");
}

static void *load_and_release(void *arg) {
    HurrayTensorSet **set = arg;
    int device = -1;
    check(gpu_current_context() == NULL, "a fresh thread", "has a context before anything was done");
    if (*set) {
        hurray_tensor_set_destroy(set);
    } else {
        HurrayLoaderOptions options = gpu_options();
        HurrayLoader *loader = NULL;
        HurrayError error = HURRAY_ERROR_INIT;
        HurrayStatus status = hurray_loader_open(small_model, &options, &loader, &error);
        if (status == HURRAY_OK && (status = hurray_loader_load(loader, set)) != HURRAY_OK) error = *hurray_loader_last_error(loader);
        check(status == HURRAY_OK, "a load on a fresh thread", error.message);
        hurray_loader_destroy(&loader);
    }
    check(gpu_current_context() == NULL, "a fresh thread", "has a current context after the library's call");
    cuda(cudaGetDevice(&device), "cudaGetDevice");
    check(device == 0, "a fresh thread", "its current device is not 0 any more");
    return NULL;
}

/* One fresh thread loads, another one releases; neither has a context before or after. */
static void fresh_threads(void) {
    HurrayTensorSet *set = NULL;
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, load_and_release, &set);
        pthread_join(thread, NULL);
    }
    check_all_given_back("release on a fresh thread", 2);
    printf("load and release on fresh threads: done\n");
}

static void shrinking_file(void) {
    HurrayLoaderOptions options = gpu_options();
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    if (!check(model_write(shrinking, sizes, TENSORS) == 0, "shrinking file", "was not written")) return;
    if (!check(hurray_loader_open(shrinking, &options, &loader, &error) == HURRAY_OK, "shrinking file", error.message)) return;
    check(truncate(shrinking, (off_t)(5 * MIB)) == 0, "shrinking file", "truncate");
    HurrayStatus status = hurray_loader_load(loader, &set);
    check(status == HURRAY_ERR_TRUNCATED && !set, "shrinking file", hurray_status_name(status));
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    unlink(shrinking);
    check_all_given_back("shrinking file", 2);
    printf("a file that shrinks: done\n");
}

/* ---- the control: the copy stream has a lot to do first, the consumer reads at once ---- */

typedef struct Control {
    cudaStream_t copy, consumer;
    uint8_t *ballast, *ballast_host, *scratch, *got, *want;
    Pool pool;
} Control;

/* One tensor behind 512 MiB of other copies. 1: right; 0: wrong; -1: could not be done. */
static int control_round(Control *c, uint8_t mode) {
    HurrayDeviceMemory memory = pool_memory(&c->pool);
    HurrayLoaderOptions options = gpu_options();
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    int result = -1;
    options.sync_mode = mode;
    options.copy_stream = c->copy;
    options.consumer_stream = mode == HURRAY_SYNC_CONSUMER_STREAM ? c->consumer : NULL;
    options.device_memory = &memory;
    if (cudaMemset(c->pool.fixed, POISON, c->pool.fixed_size) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return -1;
    if (hurray_loader_open(small_model, &options, &loader, NULL) != HURRAY_OK || hurray_loader_select_name(loader, "t.0", 3) != HURRAY_OK)
        goto done;
    for (int i = 0; i < 8; i++)
        if (cudaMemcpyAsync(c->ballast, c->ballast_host, 64 * MIB, cudaMemcpyHostToDevice, c->copy) != cudaSuccess) goto done;
    if (hurray_loader_load(loader, &set) != HURRAY_OK) goto done;
    uint64_t number = 0, size = 0;
    void *address = NULL;
    HurrayBuffer *buffer = model_buffer(set, 0, &number);
    hurray_buffer_data_ptr(buffer, &address);
    hurray_buffer_byte_size(buffer, &size);
    if (hurray_buffer_order(buffer, c->consumer) == HURRAY_OK &&
        cudaMemcpyAsync(c->scratch, address, size, cudaMemcpyDeviceToDevice, c->consumer) == cudaSuccess &&
        cudaMemcpyAsync(c->got, c->scratch, size, cudaMemcpyDeviceToHost, c->consumer) == cudaSuccess &&
        cudaStreamSynchronize(c->consumer) == cudaSuccess)
        result = memcmp(c->got, c->want, size) == 0;
done:
    cudaDeviceSynchronize();
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    return result;
}

static void negative_control(cudaStream_t consumer, cudaStream_t mine) {
    Control c = {.copy = mine, .consumer = consumer, .pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .fixed_size = sizes[0] + 64 * MIB}};
    void *got = NULL, *host = NULL;
    int right = 0, without = 0, tried = 0;
    if (!cuda(cudaMalloc((void **)&c.ballast, 64 * MIB), "cudaMalloc") || !cuda(cudaMalloc((void **)&c.scratch, sizes[0]), "cudaMalloc") ||
        !cuda(cudaMalloc(&c.pool.fixed, c.pool.fixed_size), "cudaMalloc") || !cuda(cudaHostAlloc(&got, sizes[0], 0), "cudaHostAlloc") ||
        !cuda(cudaHostAlloc(&host, 64 * MIB, 0), "cudaHostAlloc"))
        return;
    c.got = got;
    c.ballast_host = host;
    c.want = malloc(sizes[0]);
    if (!c.want) return;
    model_fill(c.want, 0, sizes[0]);
    memset(host, 0x3C, 64 * MIB);
    for (int round = 0; round < 200; round++) right += control_round(&c, round % 2 ? HURRAY_SYNC_EVENT : HURRAY_SYNC_CONSUMER_STREAM) == 1;
    check(right == 200, "with the wait", "a consumer read bytes that were not there yet");
    atomic_store(&gpu_calls.skip_wait, 1);
    for (int round = 0; round < 20; round++) {
        int result = control_round(&c, round % 2 ? HURRAY_SYNC_EVENT : HURRAY_SYNC_CONSUMER_STREAM);
        tried += result >= 0;
        without += result == 0;
    }
    atomic_store(&gpu_calls.skip_wait, 0);
    printf("hand-off behind 512 MiB of copies: with the wait %d of 200 right; without it %d of %d wrong%s\n", right, without, tried,
           without ? "" : ": the control proves nothing here");
    check(without > 0, "the control", "leaving out the wait was never noticed, so this test cannot see a missing wait");
    free(c.want);
    cudaFree(c.ballast), cudaFree(c.scratch), cudaFree(c.pool.fixed), cudaFreeHost(got), cudaFreeHost(host);
    check_all_given_back("the control", 2);
}

int main(int argc, char **argv) {
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    cudaStream_t consumer = NULL, mine = NULL;
    if (code != cudaSuccess || count == 0) {
        printf("SKIP: no GPU: %s (%d)\n", cudaGetErrorName(code), (int)code);
        return 77;
    }
    bool modes = argc == 3 && strcmp(argv[2], "modes") == 0;
    if (argc != 2 && !modes) return fprintf(stderr, "usage: gpu_suite FOLDER [modes]\n"), 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(small_model, sizeof small_model, "%s/suite.hrry", argv[1]);
    snprintf(shrinking, sizeof shrinking, "%s/shrinking.hrry", argv[1]);
    for (uint64_t i = 0; i < TENSORS; i++)
        sizes[i] = i < 4 ? 5 * MIB + 12345 - i : 1 + i * 331 % 60000; /* larger than a slot, and many to one */
    if (model_write(small_model, sizes, TENSORS)) return 1;
    if (!cuda(cudaSetDevice(0), "cudaSetDevice") ||
        !cuda(cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking), "cudaStreamCreateWithFlags") ||
        !cuda(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"))
        return 1;
    if (!check(gpu_calls_begin() != 0, "cuCtxGetCurrent", "was not found")) return 1;
    if (modes) {
        each_mode_once(consumer, mine);
    } else {
        every_mode(consumer, mine);
        cancelling();
        failing_copies(consumer);
        side_by_side();
        fresh_threads();
        shrinking_file();
        negative_control(consumer, mine);
    }
    unlink(small_model);
    cudaStreamDestroy(consumer), cudaStreamDestroy(mine);
    cudaDeviceReset(); /* nothing of the library lives any more; memcheck looks for leaks here */
    printf("RESULT gpu_suite %d checks, %d wrong\n", atomic_load(&checks), atomic_load(&wrong));
    return atomic_load(&wrong) ? 1 : 0;
}
