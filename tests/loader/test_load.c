#include "loader/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fail_alloc.h"
#include "support/load_scene.h"
#include "support/script_destination.h"

/* ---- destinations ---- */

/* A lane is a thread of the load or a stream: a number to draw with. */
static void on_event(void *ctx, const HurrayTraceEvent *event) {
    unsigned *stages = ctx;
    assert_true(event->lane < 16 && event->stage <= HURRAY_STAGE_WAIT && event->begin_ns <= event->end_ns);
    *stages |= 1u << event->stage;
}

static void windows_of_any_destination_are_filled_and_committed(void **state) {
    (void)state;
    unsigned stages = 0;
    for (int variant = 0; variant < 48; variant++) {
        Scene scene;
        ScriptDestination script;
        static const size_t slots[] = {0, 1, 2, 7};
        bool concurrent = variant & 1, foreign = variant & 2;
        uint32_t threads = (uint32_t)(variant / 4) % 3;
        make_scene(&scene, foreign);
        script_destination_init(&script, slots[variant / 12], 1000, concurrent);
        script.alloc_waits = 3;
        script.freeze_waits = variant & 1 ? 2 : 0;
        HurrayDestinationAlloc destination = script_destination(&script);
        HurrayLoaderOptions options = small_chunks(threads + 1);
        options.destination = &destination;
        options.verify_data = HURRAY_VERIFY_STORED;
        options.trace = on_event;
        options.ctx = &stages;
        assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
        HurrayTensorSet *set = NULL;
        assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
        assert_true(script.reserved_buffers == COUNT - 3);
        if (slots[variant / 12]) assert_true(script.most_busy <= slots[variant / 12] && script.most_busy > 0);
        hurray_loader_destroy(&scene.loader);
        assert_int_equal(script.holds, 0);
        check_all(&scene, set); /* outlives loader and destination */
        hurray_tensor_set_destroy(&set);
        script_destination_end(&script);
        end_scene(&scene);
    }
    assert_true(stages & 1u << HURRAY_STAGE_READ && stages & 1u << HURRAY_STAGE_WAIT);
}

static void waiting_without_a_wait_callback_is_unsupported(void **state) {
    (void)state;
    Scene scene;
    ScriptDestination script;
    make_scene(&scene, false);
    script_destination_init(&script, 1, 1000, true);
    script.no_wait = true;
    HurrayDestinationAlloc destination = script_destination(&script);
    HurrayLoaderOptions options = small_chunks(2);
    options.destination = &destination;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    assert_int_equal(load_fails(&scene), HURRAY_ERR_UNSUPPORTED);
    end_scene(&scene);
    script_destination_end(&script);
}

static void a_failing_destination_names_the_tensor_and_leaks_nothing(void **state) {
    (void)state;
    static const int kinds[] = {SCRIPT_RESERVE, SCRIPT_ALLOCATE, SCRIPT_WINDOW, SCRIPT_COMMIT, SCRIPT_FREEZE, SCRIPT_WAIT};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (uint64_t call = 1; call < 400; call += call < 20 ? 1 : 37) {
            Scene scene;
            ScriptDestination script;
            make_scene(&scene, call & 1);
            script_destination_init(&script, 2, 1500, call & 2);
            script.fail_call[kinds[kind]] = call;
            script.fail_status = -1234;
            HurrayDestinationAlloc destination = script_destination(&script);
            HurrayLoaderOptions options = small_chunks(1 + (uint32_t)(call % 3));
            options.destination = &destination;
            assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
            HurrayTensorSet *set = NULL;
            HurrayStatus status = hurray_loader_load(scene.loader, &set);
            bool reached = script.calls[kinds[kind]] >= call;
            assert_int_equal(status, reached ? -1234 : HURRAY_OK);
            if (reached) {
                const HurrayError *error = hurray_loader_last_error(scene.loader);
                assert_int_equal(error->cause, -1234);
                if (kinds[kind] != SCRIPT_RESERVE && kinds[kind] != SCRIPT_WAIT) assert_true(error->tensor[0] == 't');
                assert_int_equal(script.live, 0);
                memset(script.fail_call, 0, sizeof script.fail_call);
                expect_loads(&scene); /* the loader can load again */
            } else {
                check_all(&scene, set);
                hurray_tensor_set_destroy(&set);
            }
            end_scene(&scene);
            script_destination_end(&script);
            if (!reached) break;
        }
}

static void bytes_that_are_in_place_are_not_read_but_checked(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        Scene scene;
        ScriptDestination script;
        make_scene(&scene, false);
        script_destination_init(&script, 2, 1500, true);
        script.prefill_from = 1000;
        script.source = scene.bytes.bytes;
        script.prefill_unreadable = variant & 1;
        HurrayDestinationAlloc destination = script_destination(&script);
        HurrayLoaderOptions options = small_chunks(2);
        options.destination = &destination;
        options.verify_data = variant & 2 ? HURRAY_VERIFY_REQUIRED : HURRAY_VERIFY_STORED;
        assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
        if (variant == 3) {
            assert_int_equal(load_fails(&scene), HURRAY_ERR_CHECKSUM);
        } else {
            HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
            expect_loads(&scene);
            assert_int_equal(hurray_loader_stats(scene.loader, &stats), HURRAY_OK);
            assert_true(stats.bytes_in_place > 30000 && stats.bytes_read < 6000);
            if (!script.prefill_unreadable) assert_int_equal(stats.bytes_verified, stats.payload_bytes);
        }
        end_scene(&scene);
        script_destination_end(&script);
    }
}

/* ---- failures of reading ---- */

static void a_failing_read_names_the_tensor_and_nothing_is_left(void **state) {
    (void)state;
    Scene scene;
    make_scene(&scene, false);
    for (uint32_t threads = 1; threads < 4; threads++) {
        HurrayLoaderOptions options = small_chunks(threads);
        for (uint64_t call = 1;; call++) {
            script_fail(&scene.script, 0, 0, 0);
            assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
            script_fail(&scene.script, call, -4321, (int)(call & 1));
            HurrayTensorSet *set = NULL;
            HurrayStatus status = hurray_loader_load(scene.loader, &set);
            if (status == HURRAY_OK) {
                hurray_tensor_set_destroy(&set);
                hurray_loader_destroy(&scene.loader);
                assert_true(call > COUNT);
                break;
            }
            assert_int_equal(status, -4321);
            assert_null(set);
            assert_true(hurray_loader_last_error(scene.loader)->tensor[0] == 't');
            script_fail(&scene.script, 0, 0, 0);
            expect_loads(&scene);
            hurray_loader_destroy(&scene.loader);
            if (call > 8) call += 6;
        }
    }
    end_scene(&scene);
}

typedef struct BadSpots {
    Scene *scene;
    uint64_t at[3]; /* offsets that cannot be read */
} BadSpots;

static HurrayStatus spotted_read_at(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *out_filled) {
    const BadSpots *spots = ctx;
    for (int s = 0; s < 3; s++)
        if (spots->at[s] >= offset && spots->at[s] < offset + len) {
            *out_filled = 0;
            return -2000 - s;
        }
    memcpy(dst, spots->scene->bytes.bytes + offset, len);
    *out_filled = len;
    return HURRAY_OK;
}

static HurrayStatus spotted_size(void *ctx, uint64_t *out) {
    const BadSpots *spots = ctx;
    *out = spots->scene->bytes.len;
    return HURRAY_OK;
}

static void of_several_failures_the_first_in_file_order_is_told(void **state) {
    (void)state;
    Scene scene;
    make_scene(&scene, true);
    BadSpots spots = {&scene, {HURRAY_NONE, HURRAY_NONE, HURRAY_NONE}};
    HurrayTransport transport = {.ctx = &spots, .read_at = spotted_read_at, .size = spotted_size, .flags = HURRAY_TRANSPORT_CONCURRENT};
    HurraySource source = {.transport = &transport};
    for (int round = 0; round < 200; round++) {
        HurrayLoaderOptions options = small_chunks(1 + (uint32_t)round % 5);
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        spots.at[0] = spots.at[1] = spots.at[2] = HURRAY_NONE;
        assert_int_equal(hurray_loader_open_sources(&source, 1, &options, &scene.loader, NULL), HURRAY_OK);
        static const uint64_t which[] = {31, 10, 24};
        for (int s = 0; s < 3; s++) {
            assert_int_equal(hurray_loader_tensor_info(scene.loader, which[s], &info), HURRAY_OK);
            spots.at[s] = info.data_offset + info.data_length / 2;
        }
        assert_int_equal(load_fails(&scene), -2001);
        assert_string_equal(hurray_loader_last_error(scene.loader)->tensor, "t10");
        assert_int_equal(hurray_loader_last_error(scene.loader)->tensor_index, 10);
        assert_int_equal(hurray_loader_last_error(scene.loader)->buffer_index, 0);
        hurray_loader_destroy(&scene.loader);
    }
    end_scene(&scene);
}

static void a_file_that_shrinks_meanwhile_is_truncated_at_a_tensor(void **state) {
    (void)state;
    Scene scene;
    make_scene(&scene, true);
    const char *path = model_save(&scene.bytes, "loader-shrink");
    for (uint32_t threads = 1; threads < 4; threads++) {
        HurrayLoaderOptions options = small_chunks(threads);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(scene.bytes.bytes, 1, scene.bytes.len, file), scene.bytes.len);
        fclose(file);
        assert_int_equal(hurray_loader_open(path, &options, &scene.loader, NULL), HURRAY_OK);
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        assert_int_equal(hurray_loader_tensor_info(scene.loader, 12, &info), HURRAY_OK);
        assert_int_equal(truncate(path, (off_t)(info.data_offset + 3)), 0);
        assert_int_equal(load_fails(&scene), HURRAY_ERR_TRUNCATED);
        assert_string_equal(hurray_loader_last_error(scene.loader)->tensor, "t12");
        assert_int_equal(hurray_loader_last_error(scene.loader)->offset, info.data_offset + 3);
        hurray_loader_destroy(&scene.loader);
    }
    unlink(path);
    end_scene(&scene);
}

static void a_transport_that_reports_too_much_makes_the_loader_unusable(void **state) {
    (void)state;
    Scene scene;
    static const ScriptStep step = {.limit = SCRIPT_ALL, .over = 1};
    make_scene(&scene, true);
    HurrayLoaderOptions options = small_chunks(2);
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    script_pattern(&scene.script, &step, 1);
    assert_int_equal(load_fails(&scene), HURRAY_ERR_INVALID_REPORT);
    assert_int_equal(load_fails(&scene), HURRAY_ERR_UNUSABLE);
    uint8_t byte;
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    uint64_t n = 0;
    assert_int_equal(hurray_loader_read_bytes(scene.loader, 0, 0, 0, &byte, 1), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_loader_tensor_info(scene.loader, 0, &info), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_loader_verify(scene.loader, 7, NULL, NULL), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_loader_plan(scene.loader, 0, 0, &n, &n), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_loader_tensor_count(scene.loader, &n), HURRAY_OK);
    end_scene(&scene);
}

static void short_reads_and_serial_and_aligned_transports_are_all_right(void **state) {
    (void)state;
    for (int variant = 0; variant < 8; variant++) {
        Scene scene;
        make_scene(&scene, variant & 1);
        if (variant & 2) script_every(&scene.script, 7);
        scene.script.flags = variant & 4 ? 0 : HURRAY_TRANSPORT_CONCURRENT;
        HurrayLoaderOptions options = small_chunks(3);
        assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
        expect_loads(&scene);
        end_scene(&scene);
        if (variant & 2) continue;
        make_scene(&scene, variant & 1);
        scene.script.io_alignment = 512;
        assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
        expect_loads(&scene);
        end_scene(&scene);
    }
}

static void a_wrong_sum_is_told_when_it_is_asked_for(void **state) {
    (void)state;
    Scene scene;
    make_scene(&scene, false);
    HurrayLoaderOptions options = small_chunks(2);
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    assert_int_equal(hurray_loader_tensor_info(scene.loader, 17, &info), HURRAY_OK);
    scene.script.bytes[info.data_offset + info.data_length - 1] ^= 1;
    HurrayTensorSet *set = NULL;
    assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&scene.loader);
    options.verify_data = HURRAY_VERIFY_STORED;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    assert_int_equal(load_fails(&scene), HURRAY_ERR_CHECKSUM);
    assert_string_equal(hurray_loader_last_error(scene.loader)->tensor, "t17");
    end_scene(&scene);
    make_scene(&scene, true);
    options.verify_data = HURRAY_VERIFY_REQUIRED;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    assert_int_equal(load_fails(&scene), HURRAY_ERR_CHECKSUM); /* nothing is stored in a safetensors file */
    end_scene(&scene);
}

/* ---- cancel ---- */

static void cancel_sticks_until_a_load_has_returned_it(void **state) {
    (void)state;
    Scene scene;
    make_scene(&scene, false);
    assert_int_equal(open_scene(&scene, NULL), HURRAY_OK);
    assert_int_equal(hurray_loader_cancel(scene.loader), HURRAY_OK);
    assert_int_equal(load_fails(&scene), HURRAY_ERR_CANCELLED);
    expect_loads(&scene);
    end_scene(&scene);
}

typedef struct Canceller {
    HurrayLoader *loader;
    unsigned microseconds;
} Canceller;

static void *cancel_later(void *ctx) {
    Canceller *canceller = ctx;
    struct timespec nap = {0, (long)canceller->microseconds * 1000};
    nanosleep(&nap, NULL);
    hurray_loader_cancel(canceller->loader);
    return NULL;
}

static void a_load_by_io_uring_is_cancelled_as_well(void **state) {
    (void)state;
    ModelTensor large = {"large", 24u << 20, 1};
    ModelBytes bytes = model_safetensors(&large, 1);
    const char *path = model_save(&bytes, "loader-cancel");
    uint64_t cancelled = 0;
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayLoader *loader = NULL;
    options.io = HURRAY_IO_URING;
    options.chunk_bytes = 16384;
    options.queue_depth = 64;
    assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
    for (unsigned t = 0; t < 30; t++) {
        Canceller canceller = {loader, t * 300};
        pthread_t thread;
        HurrayTensorSet *set = NULL, *none = NULL;
        assert_int_equal(pthread_create(&thread, NULL, cancel_later, &canceller), 0);
        HurrayStatus status = hurray_loader_load(loader, &set);
        pthread_join(thread, NULL);
        if (status == HURRAY_ERR_CANCELLED)
            cancelled++;
        else
            assert_int_equal(hurray_loader_load(loader, &none), HURRAY_ERR_CANCELLED);
        hurray_tensor_set_destroy(&set);
    }
    assert_true(cancelled > 0);
    hurray_loader_destroy(&loader);
    unlink(path);
    model_free(&bytes);
}

static void cancel_from_another_thread_at_any_time_leaves_nothing(void **state) {
    (void)state;
    Scene scene;
    ScriptDestination script;
    uint64_t cancelled = 0;
    make_scene(&scene, false);
    script_destination_init(&script, 2, 500, true);
    HurrayDestinationAlloc destination = script_destination(&script);
    HurrayLoaderOptions options = small_chunks(3);
    options.destination = &destination;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    for (unsigned t = 0; t < 60; t++) {
        Canceller canceller = {scene.loader, t * 37};
        pthread_t thread;
        HurrayTensorSet *set = NULL;
        assert_int_equal(pthread_create(&thread, NULL, cancel_later, &canceller), 0);
        HurrayStatus status = hurray_loader_load(scene.loader, &set);
        pthread_join(thread, NULL);
        assert_true(status == HURRAY_OK || status == HURRAY_ERR_CANCELLED);
        if (status == HURRAY_ERR_CANCELLED)
            cancelled++;
        else
            assert_int_equal(load_fails(&scene), HURRAY_ERR_CANCELLED); /* it came too late: it sticks */
        hurray_tensor_set_destroy(&set);
        assert_int_equal(script.live, 0);
    }
    assert_true(cancelled > 0);
    end_scene(&scene);
    script_destination_end(&script);
}

/* ---- memory ---- */

static void a_failing_allocation_at_any_place_leaks_nothing(void **state) {
    (void)state;
    Scene scene;
    FailAlloc alloc;
    make_scene(&scene, false);
    fail_alloc_init(&alloc);
    for (int sticky = 0; sticky < 2; sticky++)
        for (uint32_t threads = 1; threads < 3; threads++)
            for (uint64_t k = 1;; k++) {
                HurrayLoaderOptions options = small_chunks(threads);
                HurrayTensorSet *set = NULL;
                options.allocator = &alloc.allocator;
                fail_alloc_arm(&alloc, k, sticky);
                HurrayStatus status = open_scene(&scene, &options);
                if (status == HURRAY_OK) {
                    status = hurray_loader_load(scene.loader, &set);
                    assert_int_equal(hurray_loader_last_error(scene.loader)->code, status);
                    assert_null(strstr(hurray_loader_last_error(scene.loader)->message, "callback")); /* the caller has none */
                }
                bool reached = alloc.calls >= k;
                fail_alloc_arm(&alloc, 0, 0);
                if (status != HURRAY_OK) assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
                if (status != HURRAY_OK && scene.loader) expect_loads(&scene);
                hurray_tensor_set_destroy(&set);
                hurray_loader_destroy(&scene.loader);
                fail_alloc_assert_empty(&alloc);
                if (!reached) break;
                if (k > 200) k += 30;
            }
    end_scene(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_any_destination_are_filled_and_committed),
        cmocka_unit_test(waiting_without_a_wait_callback_is_unsupported),
        cmocka_unit_test(a_failing_destination_names_the_tensor_and_leaks_nothing),
        cmocka_unit_test(bytes_that_are_in_place_are_not_read_but_checked),
        cmocka_unit_test(a_failing_read_names_the_tensor_and_nothing_is_left),
        cmocka_unit_test(of_several_failures_the_first_in_file_order_is_told),
        cmocka_unit_test(a_file_that_shrinks_meanwhile_is_truncated_at_a_tensor),
        cmocka_unit_test(a_transport_that_reports_too_much_makes_the_loader_unusable),
        cmocka_unit_test(short_reads_and_serial_and_aligned_transports_are_all_right),
        cmocka_unit_test(a_wrong_sum_is_told_when_it_is_asked_for),
        cmocka_unit_test(cancel_sticks_until_a_load_has_returned_it),
        cmocka_unit_test(a_load_by_io_uring_is_cancelled_as_well),
        cmocka_unit_test(cancel_from_another_thread_at_any_time_leaves_nothing),
        cmocka_unit_test(a_failing_allocation_at_any_place_leaks_nothing),
    };
    return cmocka_run_group_tests_name("loader/load", tests, NULL, NULL);
}
