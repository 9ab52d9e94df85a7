/* Whole loads by the loader to a device, over the stand-in: the right bytes in every order, bounded pinned memory, cancel and failure
 * without a trace, copies that run while later bytes are read. */
#include "hurray/loader.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cuda/fake_cuda.h"
#include "cuda/help_scene.h"
#include "support/fail_alloc.h"

#define MIB ((uint64_t)1 << 20)

static HurrayTensorSet *load(Scene *scene) {
    HurrayTensorSet *set = NULL;
    HurrayStatus status = hurray_loader_load(scene->loader, &set);
    if (status != HURRAY_OK) print_error("%d %s\n", status, hurray_loader_last_error(scene->loader)->message);
    assert_int_equal(status, HURRAY_OK);
    return set;
}

static void run_whole(const FakeSettings *settings, uint8_t mode, uint32_t threads, int foreign, uint8_t memory_class, const char *test) {
    Scene scene;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayLoaderOptions options = scene_options(mode, threads);
    fake_cuda_begin(settings, test);
    scene_mixed(&scene, foreign);
    options.memory_class = memory_class;
    options.consumer_stream = mode == HURRAY_SYNC_CONSUMER_STREAM ? fake_cuda_stream(0) : NULL;
    HurrayStatus status = scene_open(&scene, &options, &error);
    if (status != HURRAY_OK) print_error("%s\n", error.message);
    assert_int_equal(status, HURRAY_OK);
    HurrayTensorSet *set = load(&scene);
    scene_check(&scene, set, options.consumer_stream);
    if (settings->seed % 2) hurray_loader_destroy(&scene.loader); /* in either order */
    hurray_tensor_set_destroy(&set);
    scene_end(&scene);
    fake_cuda_end();
}

static void a_load_delivers_the_right_bytes_in_every_order(void **state) {
    (void)state;
    for (uint8_t mode = HURRAY_SYNC_PRODUCER_SYNCED; mode <= HURRAY_SYNC_CONSUMER_STREAM; mode++)
        for (int schedule = FAKE_LAZY; schedule <= FAKE_RANDOM; schedule++)
            for (uint64_t seed = 0; seed < (schedule == FAKE_RANDOM ? FAKE_SEEDS : 3); seed++) {
                FakeSettings settings = {.schedule = (FakeSchedule)schedule, .seed = seed, .not_ready = 1 + (unsigned)seed * 2, .pinned_cap = 6 * 32768};
                run_whole(&settings, mode, 1 + (uint32_t)seed % 3, seed & 1, HURRAY_MEMORY_STANDARD, __func__);
            }
}

static void unified_and_pinned_memory_are_delivered_too(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        FakeSettings settings = {.schedule = seed & 1 ? FAKE_RANDOM : FAKE_LAZY, .seed = seed};
        run_whole(&settings, HURRAY_SYNC_EVENT, 2, seed & 1, HURRAY_MEMORY_UNIFIED, __func__);
        run_whole(&settings, HURRAY_SYNC_PRODUCER_SYNCED, 2, seed & 1, HURRAY_MEMORY_HOST_PINNED, __func__);
    }
}

static void real_threads_copy_while_the_loader_reads(void **state) {
    (void)state;
    for (uint8_t mode = HURRAY_SYNC_PRODUCER_SYNCED; mode <= HURRAY_SYNC_CONSUMER_STREAM; mode++)
        for (uint32_t threads = 1; threads < 5; threads++) {
            FakeSettings settings = {.schedule = FAKE_THREADED, .seed = threads, .link_bytes = 500 * MIB, .gap_ns = 5000};
            run_whole(&settings, mode, threads, threads & 1, HURRAY_MEMORY_STANDARD, __func__);
        }
}

static void a_loader_loads_again_with_the_same_staging(void **state) {
    (void)state;
    Scene scene;
    FakeCounts first, second;
    HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, 2);
    fake_cuda_begin(NULL, __func__);
    scene_mixed(&scene, 0);
    assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
    HurrayTensorSet *one = load(&scene);
    fake_cuda_counts(&first);
    HurrayTensorSet *two = load(&scene);
    fake_cuda_counts(&second);
    scene_check(&scene, one, NULL);
    scene_check(&scene, two, NULL);
    assert_int_equal(second.calls[FAKE_host_register], first.calls[FAKE_host_register]);
    hurray_tensor_set_destroy(&one);
    hurray_tensor_set_destroy(&two);
    scene_end(&scene);
    fake_cuda_end();
}

static void seventy_thousand_small_tensors_take_few_calls(void **state) {
    (void)state;
    Scene scene;
    FakeCounts counts;
    HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, 2);
    options.chunk_bytes = 4 * MIB;
    options.pinned_cap = 64 * MIB;
    options.device_alignment = 256;
    fake_cuda_begin(NULL, __func__);
    scene_make(&scene, 70000, NULL, 4, 1);
    assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
    HurrayTensorSet *set = load(&scene);
    fake_cuda_counts(&counts);
    uint64_t stretches = (70000 * 256 + 4 * MIB - 1) / (4 * MIB);
    print_message("%d copies, %d registrations, %d streams for 70,000 tensors\n", (int)counts.copies_enqueued, (int)counts.calls[FAKE_host_register],
                  (int)counts.calls[FAKE_stream_create]);
    assert_in_range(counts.copies_enqueued, stretches, stretches + 2);
    assert_true(counts.calls[FAKE_host_register] + counts.calls[FAKE_host_alloc] <= 10);
    assert_true(counts.calls[FAKE_stream_create] <= 2);
    scene_check(&scene, set, NULL);
    hurray_tensor_set_destroy(&set);
    scene_end(&scene);
    fake_cuda_end();
}

/* The size of the file does not matter: staging stays below its cap, and so does what the loader takes beside. */
static void pinned_memory_of_a_large_load_is_bounded(void **state) {
    (void)state;
    Scene scene;
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    FakeSettings settings = {.schedule = FAKE_LAZY, .not_ready = 3, .pinned_cap = MIB};
    HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, 3);
    FakeCounts counts;
    options.chunk_bytes = 128 * 1024;
    options.pinned_cap = MIB;
    fake_cuda_begin(&settings, __func__);
    scene_make(&scene, 12, NULL, 2 * MIB + 1000, 0);
    assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
    HurrayTensorSet *set = load(&scene);
    fake_cuda_counts(&counts);
    assert_in_range(counts.pinned_peak, 1, MIB);
    assert_int_equal(hurray_loader_stats(scene.loader, &stats), HURRAY_OK);
    assert_in_range(stats.peak_pinned, 1, MIB);
    assert_true(stats.bytes_copied >= stats.payload_bytes);
    scene_check(&scene, set, NULL);
    hurray_tensor_set_destroy(&set);
    scene_end(&scene);
    fake_cuda_end();
}

/* Of everything that was handed to the device, not of what the host has seen arrive: with events nobody has looked yet. */
static void bytes_copied_are_those_of_the_load_in_every_mode(void **state) {
    (void)state;
    for (uint8_t mode = HURRAY_SYNC_PRODUCER_SYNCED; mode <= HURRAY_SYNC_CONSUMER_STREAM; mode++)
        for (int again = 0; again < 2; again++) {
            Scene scene;
            FakeCounts counts;
            FakeSettings settings = {.not_ready = 1000};
            HurrayLoaderOptions options = scene_options(mode, 2);
            HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
            options.pinned_cap = 4 * MIB; /* room for all: nothing has to wait for a copy */
            options.chunk_bytes = MIB;
            if (mode == HURRAY_SYNC_PRODUCER_SYNCED) settings.not_ready = 2;
            fake_cuda_begin(&settings, __func__);
            options.consumer_stream = mode == HURRAY_SYNC_CONSUMER_STREAM ? fake_cuda_stream(0) : NULL;
            scene_mixed(&scene, 0);
            assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
            HurrayTensorSet *set = load(&scene), *second = again ? load(&scene) : NULL;
            fake_cuda_counts(&counts);
            assert_int_equal(hurray_loader_stats(scene.loader, &stats), HURRAY_OK);
            assert_in_range(stats.bytes_copied, stats.payload_bytes, stats.payload_bytes + scene.count * 4096);
            if (mode != HURRAY_SYNC_PRODUCER_SYNCED) assert_true(counts.copied_bytes < (1 + (uint64_t)again) * stats.payload_bytes);
            scene_check(&scene, set, options.consumer_stream);
            if (second) scene_check(&scene, second, options.consumer_stream);
            hurray_tensor_set_destroy(&set);
            hurray_tensor_set_destroy(&second);
            scene_end(&scene);
            fake_cuda_end();
        }
}

static void what_was_really_used_is_told(void **state) {
    (void)state;
    for (int pageable = 0; pageable < 2; pageable++) {
        Scene scene;
        FakeSettings settings = {.pinned_limit = pageable ? 1000 : 0, .pageable = pageable == 1};
        HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, 2);
        HurrayPathStats path = HURRAY_PATH_STATS_INIT;
        fake_cuda_begin(&settings, __func__);
        scene_mixed(&scene, 0);
        assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
        HurrayTensorSet *set = load(&scene);
        assert_int_equal(hurray_loader_path_stats(scene.loader, 0, &path), HURRAY_OK);
        assert_int_equal(path.staging, pageable ? HURRAY_STAGING_PAGEABLE : HURRAY_STAGING_PINNED);
        assert_int_equal(path.device_tag, HURRAY_DEVICE_CUDA);
        assert_int_equal(path.device_index, 0);
        if (pageable) assert_non_null(strstr(path.reason, "cudaHost"));
        scene_check(&scene, set, NULL);
        hurray_tensor_set_destroy(&set);
        scene_end(&scene);
        fake_cuda_end();
    }
}

static void refused_pinning_fails_the_load_where_it_was_demanded(void **state) {
    (void)state;
    Scene scene;
    FakeSettings settings = {.pinned_limit = 1000};
    HurrayTensorSet *set = NULL;
    HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, 2);
    options.pinned = HURRAY_ON;
    fake_cuda_begin(&settings, __func__);
    scene_mixed(&scene, 0);
    assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
    assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_ERR_NO_MEMORY);
    if (!strstr(hurray_loader_last_error(scene.loader)->message, "pinned")) print_error("%s\n", hurray_loader_last_error(scene.loader)->message);
    assert_non_null(strstr(hurray_loader_last_error(scene.loader)->message, "pinned"));
    scene_end(&scene);
    fake_cuda_end();
}

/* ---- no device ---- */

static void without_a_device_the_host_is_taken_or_the_reason_told(void **state) {
    (void)state;
    FakeSettings settings = {.no_driver = true};
    HurrayTensorSet *set = NULL;
    for (int demanded = 0; demanded < 2; demanded++) {
        Scene scene;
        HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, 1);
        if (!demanded) options.target = HURRAY_TARGET_BEST;
        fake_cuda_begin(&settings, __func__);
        scene_mixed(&scene, 0);
        assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
        HurrayStatus status = hurray_loader_load(scene.loader, &set);
        assert_int_equal(status, demanded ? HURRAY_ERR_NO_DEVICE : HURRAY_OK);
        if (demanded) assert_non_null(strstr(hurray_loader_last_error(scene.loader)->message, "no CUDA driver"));
        else scene_check(&scene, set, NULL);
        hurray_tensor_set_destroy(&set);
        scene_end(&scene);
        fake_cuda_end();
    }
}

static void the_best_device_is_one_that_holds_everything(void **state) {
    (void)state;
    HurrayTensorSet *set = NULL;
    for (int small = 0; small < 2; small++) {
        Scene scene;
        FakeCounts counts;
        FakeSettings settings = {.device_bytes = small ? 300000 : 64 * MIB};
        HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, 1);
        options.target = HURRAY_TARGET_BEST;
        fake_cuda_begin(&settings, __func__);
        scene_mixed(&scene, 0);
        assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
        assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
        fake_cuda_counts(&counts);
        assert_int_equal(counts.copies > 0, !small);
        scene_check(&scene, set, NULL);
        hurray_tensor_set_destroy(&set);
        scene_end(&scene);
        fake_cuda_end();
    }
}

/* ---- cancel ---- */

typedef struct Canceller {
    HurrayLoader *loader;
    uint64_t reads, at;
    uint64_t enqueued;
} Canceller;

static void cancel_inside_a_read(void *ctx) {
    Canceller *canceller = ctx;
    FakeCounts counts;
    if (!canceller->loader || ++canceller->reads != canceller->at) return;
    hurray_loader_cancel(canceller->loader);
    fake_cuda_counts(&counts);
    canceller->enqueued = counts.copies_enqueued;
}

static void cancel_starts_no_further_copy_and_frees_everything(void **state) {
    (void)state;
    for (uint64_t at = 1; at < 30; at++)
        for (int schedule = FAKE_LAZY; schedule <= FAKE_RANDOM; schedule++) {
            Scene scene;
            Canceller canceller = {.at = at};
            FakeCounts counts;
            FakeSettings settings = {.schedule = (FakeSchedule)schedule, .seed = at, .not_ready = 10};
            HurrayLoaderOptions options = scene_options((uint8_t)(at % 2), 1);
            HurrayTensorSet *set = NULL;
            fake_cuda_begin(&settings, __func__);
            scene_mixed(&scene, at & 1);
            assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
            canceller.loader = scene.loader;
            scene.script.before = cancel_inside_a_read;
            scene.script.before_ctx = &canceller;
            HurrayStatus status = hurray_loader_load(scene.loader, &set);
            fake_cuda_counts(&counts);
            if (canceller.reads >= at) {
                assert_int_equal(status, HURRAY_ERR_CANCELLED);
                assert_int_equal(counts.copies_enqueued, canceller.enqueued);
                canceller.loader = NULL;
                set = load(&scene); /* and it can load again */
            }
            scene_check(&scene, set, NULL);
            hurray_tensor_set_destroy(&set);
            scene_end(&scene);
            fake_cuda_end();
        }
}

/* ---- failures ---- */

/* One load with an ordered failure; a second one when the context lives. False: the failure never came. */
static bool run_failing(FakeCall call, uint64_t n, bool onward, int code, FakeSchedule schedule, uint32_t threads, const char *test) {
    Scene scene;
    FakeSettings settings = {.schedule = schedule, .seed = n, .pageable = true};
    HurrayLoaderOptions options = scene_options((uint8_t)(n % 2), threads);
    HurrayTensorSet *set = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    char name[160];
    snprintf(name, sizeof name, "%s: %s, call %d, code %d%s", test, fake_cuda_call_name(call), (int)n, code, onward ? " onward" : "");
    fake_cuda_begin(&settings, name);
    scene_mixed(&scene, n & 1);
    assert_int_equal(scene_open(&scene, &options, &error), HURRAY_OK);
    fake_cuda_fail(call, n, onward, code);
    HurrayStatus status = hurray_loader_load(scene.loader, &set);
    bool failed = fake_cuda_failed();
    fake_cuda_fail(FAKE_ANY, 0, false, 0); /* what is asked from here on is the test's own */
    if (status != HURRAY_OK) {
        const HurrayError *last = hurray_loader_last_error(scene.loader);
        assert_true(failed);
        assert_null(set);
        if (last->message[0] == 0 || (status != HURRAY_ERR_DEVICE && status != HURRAY_ERR_NO_MEMORY && status != HURRAY_ERR_NO_DEVICE)) print_error("%s: %d \"%s\"\n", name, status, last->message);
        assert_true(last->message[0] != 0);
        assert_true(status == HURRAY_ERR_DEVICE || status == HURRAY_ERR_NO_MEMORY || status == HURRAY_ERR_NO_DEVICE);
        if (!fake_cuda_is_dead()) {
            set = load(&scene);
            scene_check(&scene, set, NULL);
        }
    } else if (code < 100) {
        scene_check(&scene, set, NULL);
    }
    hurray_tensor_set_destroy(&set);
    scene_end(&scene);
    fake_cuda_end();
    return failed;
}

static void a_failing_copy_pin_allocation_or_event_leaves_nothing(void **state) {
    (void)state;
    static const FakeCall calls[] = {FAKE_memcpy_async, FAKE_host_register, FAKE_malloc_device, FAKE_event_create, FAKE_event_record, FAKE_event_query,
                                     FAKE_stream_create, FAKE_primary_retain, FAKE_push_context, FAKE_get_device_count, FAKE_free_device, FAKE_mem_get_info};
    static const int codes[] = {2, 1, 700};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (size_t c = 0; c < 3; c++)
            for (uint64_t n = 1; n < 300; n += n < 10 ? 1 : 13)
                if (!run_failing(calls[i], n, false, codes[c], FAKE_LAZY, 1 + (uint32_t)(n % 2), __func__)) break;
}

static void any_failing_call_leaves_nothing(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 1500; n += 1 + n / 6) {
        run_failing(FAKE_ANY, n, false, 1, FAKE_RANDOM, 1 + (uint32_t)(n % 3), __func__);
        run_failing(FAKE_ANY, n, true, 719, FAKE_LAZY, 1 + (uint32_t)(n % 3), __func__);
    }
}

static void a_failing_read_names_the_tensor_and_leaves_nothing(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        Scene scene;
        FakeSettings settings = {.schedule = n & 1 ? FAKE_LAZY : FAKE_RANDOM, .seed = n, .not_ready = 6};
        HurrayLoaderOptions options = scene_options((uint8_t)(n % 2), 1 + (uint32_t)(n % 3));
        HurrayTensorSet *set = NULL;
        fake_cuda_begin(&settings, __func__);
        scene_mixed(&scene, n & 1);
        assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
        script_fail(&scene.script, n, -1500, 0);
        HurrayStatus status = hurray_loader_load(scene.loader, &set);
        bool reached = scene.script.counted >= n;
        assert_int_equal(status, reached ? -1500 : HURRAY_OK);
        if (reached) {
            assert_int_equal(hurray_loader_last_error(scene.loader)->tensor[0], 't');
            set = load(&scene);
        }
        scene_check(&scene, set, NULL);
        hurray_tensor_set_destroy(&set);
        scene_end(&scene);
        fake_cuda_end();
        if (!reached) break;
        assert_true(n < 500);
    }
}

static void a_copy_that_dies_on_the_way_fails_the_load_with_its_code(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 12; n++)
        for (int schedule = FAKE_LAZY; schedule <= FAKE_RANDOM; schedule++) {
            Scene scene;
            FakeSettings settings = {.schedule = (FakeSchedule)schedule, .seed = n};
            HurrayLoaderOptions options = scene_options(HURRAY_SYNC_PRODUCER_SYNCED, 1 + (uint32_t)(n % 3));
            HurrayTensorSet *set = NULL;
            fake_cuda_begin(&settings, __func__);
            scene_mixed(&scene, n & 1);
            assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
            fake_cuda_fail_running_copy(n, 700);
            HurrayStatus status = hurray_loader_load(scene.loader, &set);
            if (fake_cuda_failed()) {
                const HurrayError *error = hurray_loader_last_error(scene.loader);
                assert_int_equal(status, HURRAY_ERR_DEVICE);
                if (error->device_error != 700) print_error("%s\n", error->message);
                assert_int_equal(error->device_error, 700);
                assert_non_null(strstr(error->message, "cudaErrorIllegalAddress (700)"));
                assert_int_equal(error->tensor[0], 't');
            } else {
                assert_int_equal(status, HURRAY_OK);
            }
            hurray_tensor_set_destroy(&set);
            scene_end(&scene);
            fake_cuda_end();
        }
}

static void lack_of_memory_at_each_step_leaves_nothing(void **state) {
    (void)state;
    for (uint64_t n = 1;; n += 1 + n / 20) {
        Scene scene;
        FailAlloc alloc;
        HurrayTensorSet *set = NULL;
        HurrayLoaderOptions options = scene_options(HURRAY_SYNC_EVENT, 2);
        fail_alloc_init(&alloc);
        options.allocator = &alloc.allocator;
        fake_cuda_begin(NULL, __func__);
        scene_mixed(&scene, n & 1);
        assert_int_equal(scene_open(&scene, &options, NULL), HURRAY_OK);
        fail_alloc_arm(&alloc, n, n & 2 ? 1 : 0);
        HurrayStatus status = hurray_loader_load(scene.loader, &set);
        bool failed = alloc.calls >= n;
        fail_alloc_arm(&alloc, 0, 0);
        if (!(status == HURRAY_OK || (failed && status == HURRAY_ERR_NO_MEMORY)))
            print_error("allocation %d: status %d, failed %d: %s\n", (int)n, status, failed, hurray_loader_last_error(scene.loader)->message);
        assert_true(status == HURRAY_OK || (failed && status == HURRAY_ERR_NO_MEMORY));
        hurray_tensor_set_destroy(&set);
        scene_end(&scene);
        fake_cuda_end();
        fail_alloc_assert_empty(&alloc);
        if (!failed) break;
        assert_true(n < 20000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_delivers_the_right_bytes_in_every_order),
        cmocka_unit_test(unified_and_pinned_memory_are_delivered_too),
        cmocka_unit_test(real_threads_copy_while_the_loader_reads),
        cmocka_unit_test(a_loader_loads_again_with_the_same_staging),
        cmocka_unit_test(seventy_thousand_small_tensors_take_few_calls),
        cmocka_unit_test(pinned_memory_of_a_large_load_is_bounded),
        cmocka_unit_test(bytes_copied_are_those_of_the_load_in_every_mode),
        cmocka_unit_test(what_was_really_used_is_told),
        cmocka_unit_test(refused_pinning_fails_the_load_where_it_was_demanded),
        cmocka_unit_test(without_a_device_the_host_is_taken_or_the_reason_told),
        cmocka_unit_test(the_best_device_is_one_that_holds_everything),
        cmocka_unit_test(cancel_starts_no_further_copy_and_frees_everything),
        cmocka_unit_test(a_failing_copy_pin_allocation_or_event_leaves_nothing),
        cmocka_unit_test(any_failing_call_leaves_nothing),
        cmocka_unit_test(a_failing_read_names_the_tensor_and_leaves_nothing),
        cmocka_unit_test(a_copy_that_dies_on_the_way_fails_the_load_with_its_code),
        cmocka_unit_test(lack_of_memory_at_each_step_leaves_nothing),
    };
    return cmocka_run_group_tests_name("loads to a device", tests, NULL, NULL);
}
