/* The CUDA destination over the stand-in: what it delivers, in every mode and class, and how few calls that takes. */
#include "hurray/cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/devices.h"
#include "cuda/api.h"
#include "cuda/fake_cuda.h"
#include "cuda/help_play.h"
#include "support/fail_alloc.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static const uint64_t mixed[] = {1, 4, 4095, 4096, 4097, 100000, 1048579, 64, 3, 700000, 12, 262144, 65536, 2, 9999, 333333};
#define MIXED (sizeof mixed / sizeof *mixed)

static Play mixed_play(uint8_t sync_mode, uint8_t memory_class) {
    return (Play){.count = MIXED, .sizes = mixed, .device_tag = HURRAY_DEVICE_CUDA, .sync_mode = sync_mode, .memory_class = memory_class, .device_index = -1, .chunk = 50000};
}

static HurrayDestinationAlloc make(const HurrayCudaOptions *options) {
    HurrayDestinationAlloc destination;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayStatus status = hurray_destination_cuda(options, &destination, &error);
    if (status != HURRAY_OK) print_error("%s\n", error.message);
    assert_int_equal(status, HURRAY_OK);
    return destination;
}

static HurrayCudaOptions slots_of(uint64_t bytes) {
    HurrayCudaOptions options = HURRAY_CUDA_OPTIONS_INIT;
    options.slot_bytes = bytes;
    return options;
}

static void expect_plays(const FakeSettings *settings, const HurrayCudaOptions *options, Play *play, const char *test) {
    fake_cuda_begin(settings, test);
    if (play->sync_mode == HURRAY_SYNC_CONSUMER_STREAM) play->consumer_stream = fake_cuda_stream(0);
    HurrayDestinationAlloc destination = make(options);
    HurrayStatus status = play_run(&destination, play);
    HurrayError error = HURRAY_ERROR_INIT;
    if (status != HURRAY_OK && hry_cuda_destination_failure(&destination, &error)) print_error("%s\n", error.message);
    assert_int_equal(status, HURRAY_OK);
    for (size_t i = 0; i < play->count; i++) {
        const HurrayBufferInfo *info = &play->infos[i];
        uint64_t alignment = play->alignment ? play->alignment : 4096;
        assert_int_equal((uintptr_t)info->data % alignment, 0);
        assert_int_equal(info->byte_size, play_size(play, i));
        assert_int_equal(info->memory_class, play->memory_class);
        assert_int_equal(info->device_tag, play->device_tag);
        assert_int_equal(info->sync_mode, play->memory_class == HURRAY_MEMORY_HOST_PINNED ? HURRAY_SYNC_PRODUCER_SYNCED : play->sync_mode);
        assert_int_equal(info->device_index, play->device_tag == HURRAY_DEVICE_CPU ? -1 : 0);
    }
    play_release(play);
    assert_int_equal(hurray_destination_release(&destination), HURRAY_OK);
    fake_cuda_end();
}

static void every_mode_and_class_delivers_in_every_schedule(void **state) {
    (void)state;
    static const uint8_t classes[] = {HURRAY_MEMORY_STANDARD, HURRAY_MEMORY_UNIFIED, HURRAY_MEMORY_HOST_PINNED};
    HurrayCudaOptions options = slots_of(64 * KIB);
    for (uint8_t mode = HURRAY_SYNC_PRODUCER_SYNCED; mode <= HURRAY_SYNC_CONSUMER_STREAM; mode++)
        for (size_t c = 0; c < 3; c++)
            for (int schedule = FAKE_LAZY; schedule <= FAKE_RANDOM; schedule++)
                for (uint64_t seed = 0; seed < (schedule == FAKE_RANDOM ? FAKE_SEEDS : 3); seed++) {
                    FakeSettings settings = {.schedule = (FakeSchedule)schedule, .seed = seed, .not_ready = 1 + (unsigned)seed * 3};
                    Play play = mixed_play(mode, classes[c]);
                    play.seed = seed;
                    expect_plays(&settings, &options, &play, __func__);
                }
}

static void slots_of_any_size_deliver(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 4096, 5000, 65536, 1048576, 4194304};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            HurrayCudaOptions options = slots_of(sizes[s]);
            FakeSettings settings = {.schedule = seed % 2 ? FAKE_RANDOM : FAKE_LAZY, .seed = seed};
            Play play = mixed_play(HURRAY_SYNC_PRODUCER_SYNCED, HURRAY_MEMORY_STANDARD);
            play.seed = seed;
            play.chunk = seed < 2 ? 0 : 3000;
            expect_plays(&settings, &options, &play, __func__);
        }
}

static void one_buffer_larger_than_the_ring_is_delivered(void **state) {
    (void)state;
    HurrayCudaOptions options = slots_of(16 * KIB);
    for (uint64_t seed = 0; seed < 3; seed++) {
        FakeSettings settings = {.schedule = FAKE_LAZY, .seed = seed};
        Play play = {.count = 3, .size = 3 * MIB + 77, .device_tag = HURRAY_DEVICE_CUDA, .seed = seed, .device_index = -1};
        options.pinned_cap = 64 * KIB;
        settings.pinned_cap = 64 * KIB;
        expect_plays(&settings, &options, &play, __func__);
    }
}

/* Asking again must be enough: an event loop never calls wait. */
static void an_event_loop_gets_there_without_wait(void **state) {
    (void)state;
    for (uint8_t mode = HURRAY_SYNC_PRODUCER_SYNCED; mode <= HURRAY_SYNC_CONSUMER_STREAM; mode++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            HurrayCudaOptions options = slots_of(32 * KIB);
            FakeSettings settings = {.schedule = seed % 2 ? FAKE_RANDOM : FAKE_LAZY, .seed = seed, .not_ready = 5};
            Play play = mixed_play(mode, HURRAY_MEMORY_STANDARD);
            options.pinned_cap = 128 * KIB;
            play.seed = seed;
            play.no_wait = true;
            expect_plays(&settings, &options, &play, __func__);
        }
}

static void seventy_thousand_small_tensors_take_few_calls(void **state) {
    (void)state;
    FakeSettings settings = {.schedule = FAKE_LAZY};
    FakeCounts counts;
    HurrayCudaOptions options = slots_of(4 * MIB);
    Play play = {.count = 70000, .size = 4, .alignment = 256, .device_tag = HURRAY_DEVICE_CUDA, .device_index = -1, .active = 70000, .late_freeze = true};
    fake_cuda_begin(&settings, __func__);
    HurrayDestinationAlloc destination = make(&options);
    assert_int_equal(play_run(&destination, &play), HURRAY_OK);
    fake_cuda_counts(&counts);
    uint64_t stretches = (70000 * 256 + 4 * MIB - 1) / (4 * MIB);
    assert_true(counts.calls[FAKE_host_register] + counts.calls[FAKE_host_alloc] <= 10);
    assert_true(counts.calls[FAKE_stream_create] <= 2);
    assert_in_range(counts.copies_enqueued, stretches, stretches + 2);
    assert_true(counts.calls[FAKE_malloc_device] <= 2);
    play_release(&play);
    hurray_destination_release(&destination);
    fake_cuda_end();
}

static void bytes_land_in_the_callers_own_memory(void **state) {
    (void)state;
    for (uint8_t mode = HURRAY_SYNC_PRODUCER_SYNCED; mode <= HURRAY_SYNC_CONSUMER_STREAM; mode++) {
        void *into[MIXED];
        FakeCounts counts;
        HurrayCudaOptions options = slots_of(64 * KIB);
        Play play = mixed_play(mode, HURRAY_MEMORY_STANDARD);
        fake_cuda_begin(NULL, __func__);
        for (size_t i = 0; i < MIXED; i++) into[i] = fake_cuda_device_memory(0, mixed[i]);
        play.into = into;
        play.consumer_stream = fake_cuda_stream(0);
        HurrayDestinationAlloc destination = make(&options);
        assert_int_equal(play_run(&destination, &play), HURRAY_OK);
        for (size_t i = 0; i < MIXED; i++) assert_ptr_equal(play.infos[i].data, into[i]);
        fake_cuda_counts(&counts);
        assert_int_equal(counts.calls[FAKE_malloc_device], 0);
        play_release(&play);
        hurray_destination_release(&destination);
        for (size_t i = 0; i < MIXED; i++) fake_cuda_device_memory_free(into[i]);
        fake_cuda_end();
    }
}

static void a_callers_stream_is_used_and_left_to_it(void **state) {
    (void)state;
    FakeCounts counts;
    HurrayCudaOptions options = slots_of(64 * KIB);
    Play play = mixed_play(HURRAY_SYNC_EVENT, HURRAY_MEMORY_STANDARD);
    fake_cuda_begin(NULL, __func__);
    options.copy_stream = fake_cuda_stream(0);
    play.copy_stream = options.copy_stream;
    HurrayDestinationAlloc destination = make(&options);
    assert_int_equal(play_run(&destination, &play), HURRAY_OK);
    fake_cuda_counts(&counts);
    assert_int_equal(counts.calls[FAKE_stream_create], 0);
    play_release(&play);
    hurray_destination_release(&destination);
    fake_cuda_end();
}

static void the_legacy_stream_may_consume(void **state) {
    (void)state;
    FakeSettings settings = {.schedule = FAKE_LAZY};
    HurrayCudaOptions options = slots_of(64 * KIB);
    Play play = mixed_play(HURRAY_SYNC_CONSUMER_STREAM, HURRAY_MEMORY_STANDARD);
    fake_cuda_begin(&settings, __func__);
    play.consumer_stream = HRY_CUDA_STREAM_LEGACY;
    HurrayDestinationAlloc destination = make(&options);
    assert_int_equal(play_run(&destination, &play), HURRAY_OK);
    play_release(&play);
    hurray_destination_release(&destination);
    fake_cuda_end();
}

/* ---- the consumer's side of an event ---- */

static void an_event_outlives_the_destination_and_can_be_waited_on_by_host_and_streams(void **state) {
    (void)state;
    FakeSettings settings = {.schedule = FAKE_LAZY, .not_ready = 3};
    HurrayCudaOptions options = slots_of(64 * KIB);
    Play play = mixed_play(HURRAY_SYNC_EVENT, HURRAY_MEMORY_STANDARD);
    uint8_t *want = malloc(2 * MIB);
    play.no_check = true;
    fake_cuda_begin(&settings, __func__);
    HurrayDestinationAlloc destination = make(&options);
    assert_int_equal(play_run(&destination, &play), HURRAY_OK);
    for (size_t i = 0; i < MIXED; i++) {
        const HurrayBufferInfo *info = &play.infos[i];
        void *stream = fake_cuda_stream(0);
        play_fill(want, i, 0, info->byte_size);
        assert_non_null(info->order);
        assert_int_equal(info->event.sync_handle_device_tag, HURRAY_DEVICE_CUDA);
        assert_int_equal(info->order(info->event.sync_handle, info->event.event_release_context, i % 2 ? stream : NULL), HURRAY_OK);
        if (i % 2) fake_cuda_expect_on(stream, info->data, want, info->byte_size);
        else fake_cuda_expect_now(info->data, want, info->byte_size);
    }
    hurray_destination_release(&destination);
    for (size_t i = 0; i < MIXED; i++) play_check(&play, i);
    play_release_elsewhere(&play);
    free(want);
    fake_cuda_end();
}

static void buffers_outlive_the_destination_and_go_on_a_fresh_thread(void **state) {
    (void)state;
    for (uint8_t mode = HURRAY_SYNC_PRODUCER_SYNCED; mode <= HURRAY_SYNC_CONSUMER_STREAM; mode++) {
        FakeSettings settings = {.schedule = FAKE_LAZY};
        HurrayCudaOptions options = slots_of(64 * KIB);
        Play play = mixed_play(mode, HURRAY_MEMORY_STANDARD);
        FakeCounts counts;
        fake_cuda_begin(&settings, __func__);
        play.consumer_stream = fake_cuda_stream(0);
        HurrayDestinationAlloc destination = make(&options);
        assert_int_equal(play_run(&destination, &play), HURRAY_OK);
        hurray_destination_release(&destination);
        fake_cuda_counts(&counts);
        assert_int_equal(counts.pinned_bytes, 0);
        assert_int_equal(counts.streams, 0);
        assert_int_equal(counts.contexts, 1); /* the device memory needs it */
        play_release_elsewhere(&play);
        fake_cuda_end();
    }
}

static void the_last_buffer_of_a_piece_gives_it_back(void **state) {
    (void)state;
    HurrayCudaOptions options = slots_of(64 * KIB);
    FakeCounts counts;
    Play play = {.count = 6, .size = 100000, .device_tag = HURRAY_DEVICE_CUDA, .device_index = -1};
    fake_cuda_begin(NULL, __func__);
    HurrayDestinationAlloc destination = make(&options);
    assert_int_equal(play_run(&destination, &play), HURRAY_OK);
    hurray_destination_release(&destination);
    for (size_t i = 0; i < play.count; i++) {
        fake_cuda_counts(&counts);
        assert_true(counts.device_bytes > 0);
        play.infos[i].release(play.infos[i].data, play.infos[i].release_context);
        play.infos[i].data = NULL;
    }
    fake_cuda_counts(&counts);
    assert_int_equal(counts.device_bytes, 0);
    play_release(&play);
    fake_cuda_end();
}

/* ---- what is refused ---- */

static HurrayStatus ask(HurrayDestinationAlloc *d, HurrayDestinationRequest request) {
    HurrayDestination out = {.struct_size = sizeof out};
    request.struct_size = sizeof request;
    request.byte_size = 100;
    request.source_offset = HURRAY_NONE;
    request.alignment = 4096;
    if (request.device_index == 0) request.device_index = -1;
    HurrayStatus status = d->allocate(d->ctx, &request, &out);
    if (status == HURRAY_OK) d->discard(d->ctx, out.id);
    return status;
}

static void requests_that_cannot_be_met_are_refused_by_name(void **state) {
    (void)state;
    HurrayError error = HURRAY_ERROR_INIT;
    void *one = HRY_CUDA_STREAM_LEGACY, *two = HRY_CUDA_STREAM_PER_THREAD;
    fake_cuda_begin(NULL, __func__);
    HurrayDestinationAlloc d = make(NULL);
    assert_int_equal(d.flags & HURRAY_DESTINATION_CONCURRENT, HURRAY_DESTINATION_CONCURRENT);
    assert_int_equal(ask(&d, (HurrayDestinationRequest){.device_tag = HURRAY_DEVICE_CUDA, .sync_mode = HURRAY_SYNC_CONSUMER_STREAM}), HURRAY_ERR_INVALID_ARGUMENT);
    assert_true(hry_cuda_destination_failure(&d, &error));
    assert_non_null(strstr(error.message, "stream"));
    assert_false(hry_cuda_destination_failure(&d, &error));
    assert_int_equal(ask(&d, (HurrayDestinationRequest){.device_tag = HURRAY_DEVICE_CUDA, .sync_mode = HURRAY_SYNC_CONSUMER_STREAM, .consumer_stream = two}),
                     HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(ask(&d, (HurrayDestinationRequest){.device_tag = HURRAY_DEVICE_CUDA, .copy_stream = two}), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(ask(&d, (HurrayDestinationRequest){.device_tag = HURRAY_DEVICE_CUDA, .memory_class = HURRAY_MEMORY_PEER}), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(ask(&d, (HurrayDestinationRequest){.device_tag = HURRAY_DEVICE_CUDA, .sync_mode = 9}), HURRAY_ERR_INVALID_SYNC_MODE);
    assert_int_equal(ask(&d, (HurrayDestinationRequest){.device_tag = HURRAY_DEVICE_CPU, .memory_class = HURRAY_MEMORY_HOST_PINNED, .sync_mode = HURRAY_SYNC_EVENT}),
                     HURRAY_ERR_INVALID_SYNC_MODE);
    assert_int_equal(ask(&d, (HurrayDestinationRequest){.device_tag = HURRAY_DEVICE_CUDA, .device_index = 5}), HURRAY_ERR_NO_DEVICE);
    assert_int_equal(ask(&d, (HurrayDestinationRequest){.device_tag = HURRAY_DEVICE_CUDA, .into = (void *)(uintptr_t)0x1001}), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(ask(&d, (HurrayDestinationRequest){.device_tag = HURRAY_DEVICE_CUDA, .sync_mode = HURRAY_SYNC_CONSUMER_STREAM, .consumer_stream = one}), HURRAY_OK);
    hurray_destination_release(&d);
    fake_cuda_end();
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    HurrayDestinationAlloc d;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayCudaOptions options = HURRAY_CUDA_OPTIONS_INIT;
    HurrayDeviceMemory pool = HURRAY_DEVICE_MEMORY_INIT;
    fake_cuda_begin(NULL, __func__);
    assert_int_equal(hurray_destination_cuda(&options, NULL, &error), HURRAY_ERR_NULL_POINTER);
    options.flags = 1u << 20;
    assert_int_equal(hurray_destination_cuda(&options, &d, &error), HURRAY_ERR_UNSUPPORTED);
    options = (HurrayCudaOptions)HURRAY_CUDA_OPTIONS_INIT;
    options.pinned = 3;
    assert_int_equal(hurray_destination_cuda(&options, &d, &error), HURRAY_ERR_INVALID_ARGUMENT);
    options = (HurrayCudaOptions)HURRAY_CUDA_OPTIONS_INIT;
    options.struct_size = 4;
    assert_int_equal(hurray_destination_cuda(&options, &d, &error), HURRAY_ERR_INVALID_ARGUMENT);
    options = (HurrayCudaOptions)HURRAY_CUDA_OPTIONS_INIT;
    options.device_index = 3;
    assert_int_equal(hurray_destination_cuda(&options, &d, &error), HURRAY_ERR_NO_DEVICE);
    options = (HurrayCudaOptions)HURRAY_CUDA_OPTIONS_INIT;
    options.device_memory = &pool;
    assert_int_equal(hurray_destination_cuda(&options, &d, &error), HURRAY_ERR_INVALID_ARGUMENT);
    fake_cuda_end();
}

/* ---- memory of the device ---- */

static void a_full_device_is_asked_for_less_and_then_named(void **state) {
    (void)state;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayCudaOptions options = slots_of(64 * KIB);
    FakeSettings settings = {.device_bytes = 10 * MIB};
    Play fits = {.count = 9, .size = MIB, .device_tag = HURRAY_DEVICE_CUDA, .device_index = -1};
    Play large = {.count = 12, .size = MIB, .device_tag = HURRAY_DEVICE_CUDA, .device_index = -1};
    fake_cuda_begin(&settings, __func__);
    HurrayDestinationAlloc d = make(&options);
    assert_int_equal(play_run(&d, &fits), HURRAY_OK);
    play_release(&fits);
    hurray_destination_release(&d);
    d = make(&options);
    assert_int_equal(play_run(&d, &large), HURRAY_ERR_NO_MEMORY);
    assert_true(hry_cuda_destination_failure(&d, &error));
    assert_non_null(strstr(error.message, "free"));
    hurray_destination_release(&d);
    fake_cuda_end();
}

static void an_arena_is_one_allocation(void **state) {
    (void)state;
    HurrayCudaOptions options = slots_of(64 * KIB);
    FakeCounts counts;
    Play play = {.count = 40, .size = 300000, .device_tag = HURRAY_DEVICE_CUDA, .device_index = -1};
    options.flags = HURRAY_LOAD_ARENA;
    fake_cuda_begin(NULL, __func__);
    HurrayDestinationAlloc d = make(&options);
    assert_int_equal(play_run(&d, &play), HURRAY_OK);
    fake_cuda_counts(&counts);
    assert_int_equal(counts.calls[FAKE_malloc_device], 1);
    play_release(&play);
    hurray_destination_release(&d);
    fake_cuda_end();
}

typedef struct Pool {
    void *stream;
    uint64_t live, calls, fail_at;
} Pool;

static HurrayStatus pool_allocate(void *ctx, uint8_t tag, int32_t index, uint64_t bytes, uint32_t alignment, void *stream, void **out) {
    Pool *pool = ctx;
    assert_int_equal(tag, HURRAY_DEVICE_CUDA);
    assert_int_equal(index, 0);
    pool->stream = stream;
    if (++pool->calls == pool->fail_at) return -2000;
    uint8_t *memory = fake_cuda_device_memory(0, bytes + 2 * alignment);
    *out = (void *)(((uintptr_t)memory + alignment) / alignment * alignment);
    pool->live++;
    return HURRAY_OK;
}


static void pool_deallocate(void *ctx, uint8_t tag, int32_t index, void *memory, uint64_t bytes) {
    Pool *pool = ctx;
    (void)tag, (void)index, (void)bytes, (void)memory;
    pool->live--;
}

static void an_engines_own_pool_is_asked_and_gets_its_memory_back(void **state) {
    (void)state;
    Pool pool = {0};
    HurrayDeviceMemory memory = HURRAY_DEVICE_MEMORY_INIT;
    HurrayCudaOptions options = slots_of(64 * KIB);
    FakeCounts counts;
    Play play = mixed_play(HURRAY_SYNC_EVENT, HURRAY_MEMORY_STANDARD);
    memory.ctx = &pool;
    memory.allocate = pool_allocate;
    memory.deallocate = pool_deallocate;
    options.device_memory = &memory;
    fake_cuda_begin(NULL, __func__);
    HurrayDestinationAlloc d = make(&options);
    assert_int_equal(play_run(&d, &play), HURRAY_OK);
    assert_non_null(pool.stream);
    assert_true(pool.live > 0);
    fake_cuda_counts(&counts);
    assert_int_equal(counts.calls[FAKE_malloc_device], 0);
    play_release(&play);
    hurray_destination_release(&d);
    assert_int_equal(pool.live, 0);
    pool.fail_at = pool.calls + 1;
    d = make(&options);
    assert_int_equal(play_run(&d, &play), -2000);
    hurray_destination_release(&d);
    assert_int_equal(pool.live, 0);
    fake_cuda_end();
}

static void two_devices_fill_side_by_side(void **state) {
    (void)state;
    FakeSettings settings = {.devices = 2};
    HurrayCudaOptions options = slots_of(64 * KIB);
    Play first = mixed_play(HURRAY_SYNC_EVENT, HURRAY_MEMORY_STANDARD), second = first;
    first.device_index = 0;
    second.device_index = 1;
    fake_cuda_begin(&settings, __func__);
    HurrayDestinationAlloc d = make(&options);
    assert_int_equal(play_run(&d, &first), HURRAY_OK);
    assert_int_equal(play_run(&d, &second), HURRAY_OK);
    for (size_t i = 0; i < MIXED; i++) assert_int_equal(second.infos[i].device_index, 1);
    hurray_destination_release(&d);
    play_release(&second);
    play_release_elsewhere(&first);
    fake_cuda_end();
}

static void no_context_appears_on_a_device_that_nobody_asked_for(void **state) {
    (void)state;
    FakeSettings settings = {.devices = 2};
    HurrayCudaOptions options = slots_of(64 * KIB);
    FakeCounts counts;
    Play play = mixed_play(HURRAY_SYNC_PRODUCER_SYNCED, HURRAY_MEMORY_STANDARD);
    options.device_index = 1;
    fake_cuda_begin(&settings, __func__);
    HurrayDestinationAlloc d = make(&options);
    assert_int_equal(play_run(&d, &play), HURRAY_OK);
    fake_cuda_counts(&counts);
    assert_int_equal(counts.contexts, 1);
    assert_int_equal(play.infos[0].device_index, 1);
    play_release_elsewhere(&play);
    hurray_destination_release(&d);
    fake_cuda_end();
}

static void a_forked_child_may_release_what_its_parent_made(void **state) {
    (void)state;
    HurrayCudaOptions options = slots_of(64 * KIB);
    int status;
    Play play = mixed_play(HURRAY_SYNC_EVENT, HURRAY_MEMORY_STANDARD);
    fake_cuda_begin(NULL, __func__);
    HurrayDestinationAlloc d = make(&options);
    assert_int_equal(play_run(&d, &play), HURRAY_OK);
    pid_t child = fork();
    if (child == 0) {
        play_release(&play);
        hurray_destination_release(&d);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    play_release(&play);
    hurray_destination_release(&d);
    fake_cuda_end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_and_class_delivers_in_every_schedule),
        cmocka_unit_test(slots_of_any_size_deliver),
        cmocka_unit_test(one_buffer_larger_than_the_ring_is_delivered),
        cmocka_unit_test(an_event_loop_gets_there_without_wait),
        cmocka_unit_test(seventy_thousand_small_tensors_take_few_calls),
        cmocka_unit_test(bytes_land_in_the_callers_own_memory),
        cmocka_unit_test(a_callers_stream_is_used_and_left_to_it),
        cmocka_unit_test(the_legacy_stream_may_consume),
        cmocka_unit_test(an_event_outlives_the_destination_and_can_be_waited_on_by_host_and_streams),
        cmocka_unit_test(buffers_outlive_the_destination_and_go_on_a_fresh_thread),
        cmocka_unit_test(the_last_buffer_of_a_piece_gives_it_back),
        cmocka_unit_test(requests_that_cannot_be_met_are_refused_by_name),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(a_full_device_is_asked_for_less_and_then_named),
        cmocka_unit_test(an_arena_is_one_allocation),
        cmocka_unit_test(an_engines_own_pool_is_asked_and_gets_its_memory_back),
        cmocka_unit_test(two_devices_fill_side_by_side),
        cmocka_unit_test(no_context_appears_on_a_device_that_nobody_asked_for),
        cmocka_unit_test(a_forked_child_may_release_what_its_parent_made),
    };
    return cmocka_run_group_tests_name("the CUDA destination", tests, NULL, NULL);
}
