/* A model of 4 GB through 64 MiB of pinned memory: what a load takes beside the device's memory, counted over the stand-in. The
 * file is sparse, and each tensor goes as soon as it was looked at, so neither disk nor memory of that size is needed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/fake_cuda.h"
#include "hurray/loader.h"
#include "support/fail_alloc.h"
#include "support/resident.h"

#define MIB ((uint64_t)1 << 20)
#define PINNED (64 * MIB)
#define BESIDE (32 * MIB)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENSORS 24u /* 0.35 GB: sanitizers are slow, and their own memory would be counted */
#define COUNTS_RESIDENT false
#else
#define TENSORS 273u /* 4.0 GB */
#define COUNTS_RESIDENT true
#endif

typedef struct Large {
    char path[512];
    uint8_t *want; /* zeros but for the marks of one tensor */
    uint64_t before, peak, delivered;
} Large;

/* Not one like another, and none a multiple of a page or slot. */
static uint64_t size_of(uint64_t t) { return 14 * MIB + t * 11 + 5; }

static uint64_t mark_of(uint64_t t, uint64_t at) { return (t + 1) * 0x9e3779b97f4a7c15u ^ at; }

/* Where the marks of a tensor lie: at each MiB and at its end. HURRAY_NONE behind the last. */
static uint64_t next_mark(uint64_t t, uint64_t at) {
    uint64_t last = size_of(t) - 8;
    if (at == last) return HURRAY_NONE;
    return at + MIB < last ? at + MIB : last;
}

static uint64_t resident(void) {
    return resident_bytes("RssAnon") + resident_bytes("RssFile");
} /* the stand-in's device memory is shared */

static void write_sparse(Large *large) {
    char *header = malloc(TENSORS * 96 + 16);
    uint64_t used = 8, data = 0;
    struct stat st;
    snprintf(large->path, sizeof large->path, "%s/large-XXXXXX", HURRAY_BINARY_DIR);
    int fd = mkstemp(large->path);
    assert_true(fd >= 0 && header);
    for (uint64_t t = 0; t < TENSORS; data += size_of(t++))
        used += (uint64_t)snprintf(header + used, 96, "%c\"t%llu\":{\"dtype\":\"U8\",\"shape\":[%llu],\"data_offsets\":[%llu,%llu]}",
                                   t ? ',' : '{', (unsigned long long)t, (unsigned long long)size_of(t), (unsigned long long)data,
                                   (unsigned long long)(data + size_of(t)));
    header[used++] = '}';
    for (int k = 0; k < 8; k++) header[k] = (char)((used - 8) >> (8 * k));
    assert_int_equal(pwrite(fd, header, used, 0), used);
    assert_int_equal(ftruncate(fd, (off_t)(used + data)), 0);
    data = used;
    for (uint64_t t = 0; t < TENSORS; data += size_of(t++))
        for (uint64_t at = 0; at != HURRAY_NONE; at = next_mark(t, at)) {
            uint64_t mark = mark_of(t, at);
            assert_int_equal(pwrite(fd, &mark, 8, (off_t)(data + at)), 8);
        }
    assert_int_equal(fstat(fd, &st), 0);
    close(fd);
    free(header);
    print_message("%llu MiB of tensors, %llu MiB on disk\n", (unsigned long long)((data - used) / MIB),
                  (unsigned long long)((uint64_t)st.st_blocks * 512 / MIB));
}

static void put_marks(Large *large, uint64_t t, bool there) {
    for (uint64_t at = 0; at != HURRAY_NONE; at = next_mark(t, at)) {
        uint64_t mark = there ? mark_of(t, at) : 0;
        memcpy(large->want + at, &mark, 8);
    }
}

static HurrayStatus look_and_forget(void *ctx, uint64_t t, HurrayTensor *tensor) {
    Large *large = ctx;
    HurrayBufferList *list = NULL;
    HurrayBuffer *buffer = NULL;
    void *data = NULL;
    uint64_t size = 0;
    assert_int_equal(hurray_tensor_buffers(tensor, &list), HURRAY_OK);
    assert_int_equal(hurray_buffer_list_get(list, 0, &buffer), HURRAY_OK);
    hurray_buffer_data_ptr(buffer, &data);
    hurray_buffer_byte_size(buffer, &size);
    assert_int_equal(size, size_of(t));
    put_marks(large, t, true);
    fake_cuda_expect_now(data, large->want, size);
    put_marks(large, t, false);
    fake_cuda_forget(data, size);
    hurray_tensor_destroy(&tensor);
    large->delivered++;
    return HURRAY_OK;
}

static void sample(void *ctx, const HurrayTraceEvent *event) {
    Large *large = ctx;
    (void)event;
    uint64_t now = resident();
    if (now > large->peak) large->peak = now;
}

static void load_large(Large *large, const char *test) {
    FakeSettings settings = {.schedule = FAKE_THREADED, .device_bytes = (uint64_t)8 << 30, .pinned_cap = PINNED};
    FakeCounts counts;
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    options.target = HURRAY_TARGET_DEVICE;
    options.device_tag = HURRAY_DEVICE_CUDA;
    options.pinned_cap = PINNED;
    options.chunk_bytes = 16 * MIB; /* four slots, which any machine has: the ring is as large as it may be */
    options.threads = 4;
    options.deliver = look_and_forget;
    options.trace = sample;
    options.ctx = large;
    fake_cuda_begin(&settings, test);
    large->before = large->peak = resident();
    HurrayStatus status = hurray_loader_open(large->path, &options, &loader, NULL);
    assert_int_equal(status, HURRAY_OK);
    status = hurray_loader_load(loader, &set);
    if (status != HURRAY_OK) print_error("%s\n", hurray_loader_last_error(loader)->message);
    assert_int_equal(status, HURRAY_OK);
    hurray_loader_stats(loader, &stats);
    fake_cuda_counts(&counts);
    print_message("pinned at most %llu MiB, resident at most %llu MiB more than before, of it in small allocations %llu KiB\n",
                  (unsigned long long)(counts.pinned_peak / MIB), (unsigned long long)((large->peak - large->before) / MIB),
                  (unsigned long long)(alloc.peak_bytes >> 10));
    assert_int_equal(large->delivered, TENSORS);
    assert_int_equal(counts.pinned_peak, PINNED);
    assert_in_range(stats.peak_pinned, 1, PINNED);
    assert_in_range(alloc.peak_bytes, 1, BESIDE);
    if (COUNTS_RESIDENT && large->before) assert_in_range(large->peak - large->before, PINNED / 2, PINNED + BESIDE);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    fake_cuda_end();
    fail_alloc_assert_empty(&alloc);
}

static void a_load_of_4_gb_takes_64_mib_of_pinned_memory_and_less_than_32_beside(void **state) {
    Large large = {.want = calloc(1, size_of(TENSORS))};
    uint64_t available = resident_available();
    (void)state;
    assert_non_null(large.want);
    if (available && available < 1024 * MIB) {
        print_message("skipped: %llu MiB of memory are available, 1024 are needed\n", (unsigned long long)(available / MIB));
        free(large.want);
        skip();
    }
    for (uint64_t at = 0; at < size_of(TENSORS); at += 4096) large.want[at] = 0; /* there before anything is counted */
    if (!COUNTS_RESIDENT) print_message("with a sanitizer: a smaller model, and only what is allocated and pinned is counted\n");
    write_sparse(&large);
    load_large(&large, __func__);
    unlink(large.path);
    free(large.want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_load_of_4_gb_takes_64_mib_of_pinned_memory_and_less_than_32_beside)};
    return cmocka_run_group_tests_name("memory of a load to a device", tests, NULL, NULL);
}
