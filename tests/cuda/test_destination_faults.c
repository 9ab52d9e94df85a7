/* The CUDA destination over the stand-in when things fail: refused pinning, each call at each step, lack of host memory, abandonment. */
#include "hurray/cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/devices.h"
#include "cuda/device.h"
#include "cuda/fake_cuda.h"
#include "cuda/help_play.h"
#include "support/fail_alloc.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static const uint64_t few[] = {300000, 5, 70000, 4096, 12, 150000};
#define FEW (sizeof few / sizeof *few)

static Play few_play(uint8_t sync_mode) {
    return (Play){.count = FEW, .sizes = few, .device_tag = HURRAY_DEVICE_CUDA, .sync_mode = sync_mode, .device_index = -1, .chunk = 40000, .active = 4, .seed = 3};
}

static HurrayCudaOptions small_options(void) {
    HurrayCudaOptions options = HURRAY_CUDA_OPTIONS_INIT;
    options.slot_bytes = 64 * KIB;
    return options;
}

/* ---- pinning refused ---- */

typedef struct Refusal {
    FakeSettings settings;
    uint32_t pinned, staging;
    HurrayStatus status;
    const char *reason;
} Refusal;

static void expect_refusal(const Refusal *refusal, const char *test) {
    HurrayCudaOptions options = HURRAY_CUDA_OPTIONS_INIT;
    HurrayDestinationAlloc d;
    HurrayError error = HURRAY_ERROR_INIT;
    HryCudaStats stats;
    Play play = few_play(HURRAY_SYNC_PRODUCER_SYNCED);
    options.pinned = refusal->pinned;
    fake_cuda_begin(&refusal->settings, test);
    assert_int_equal(hurray_destination_cuda(&options, &d, &error), HURRAY_OK);
    HurrayStatus status = play_run(&d, &play);
    bool failed = hry_cuda_destination_failure(&d, &error);
    if (status != refusal->status) print_error("%s\n", error.message);
    assert_int_equal(status, refusal->status);
    assert_true(hry_cuda_destination_stats(&d, &stats));
    if (status == HURRAY_OK) {
        assert_int_equal(stats.staging, refusal->staging);
        if (refusal->reason) assert_non_null(strstr(stats.reason, refusal->reason));
        else assert_int_equal(stats.reason[0], 0);
        assert_true(stats.copied_bytes > 500000);
        play_release(&play);
    } else {
        assert_true(failed);
        assert_non_null(strstr(error.message, "pinned"));
    }
    hurray_destination_release(&d);
    fake_cuda_end();
}

static void a_refused_pin_goes_down_the_ladder_and_says_so(void **state) {
    (void)state;
    const Refusal steps[] = {
        {{0}, HURRAY_AUTO, HURRAY_STAGING_PINNED, HURRAY_OK, NULL},
        {{.no_register = true}, HURRAY_AUTO, HURRAY_STAGING_PINNED, HURRAY_OK, "cudaHostRegister"},
        {{.no_register = true}, HURRAY_ON, HURRAY_STAGING_PINNED, HURRAY_OK, "cudaHostRegister"},
        {{.pinned_limit = 9 * MIB}, HURRAY_AUTO, HURRAY_STAGING_PINNED, HURRAY_OK, "cudaHost"},
        {{.pinned_limit = 5 * MIB}, HURRAY_AUTO, HURRAY_STAGING_PINNED, HURRAY_OK, "cudaHost"},
        {{.pinned_limit = 64 * KIB, .pageable = true}, HURRAY_AUTO, HURRAY_STAGING_PAGEABLE, HURRAY_OK, "cudaHost"},
        {{.pinned_limit = 64 * KIB, .pageable = true, .no_register = true}, HURRAY_AUTO, HURRAY_STAGING_PAGEABLE, HURRAY_OK, "cudaHost"},
        {{.pinned_limit = 64 * KIB}, HURRAY_ON, 0, HURRAY_ERR_NO_MEMORY, NULL},
        {{.pageable = true}, HURRAY_OFF, HURRAY_STAGING_PAGEABLE, HURRAY_OK, NULL},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) expect_refusal(&steps[i], __func__);
}

static void pinned_memory_stays_below_its_cap(void **state) {
    (void)state;
    static const uint64_t caps[] = {16 * KIB, 64 * KIB, 300000, 4 * MIB, 7 * MIB, 20 * MIB};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
        for (int refused = 0; refused < 2; refused++) {
            FakeSettings settings = {.pinned_cap = caps[i], .no_register = refused == 1};
            HurrayCudaOptions options = HURRAY_CUDA_OPTIONS_INIT;
            HurrayDestinationAlloc d;
            HryCudaStats stats;
            Play play = {.count = 6, .size = 9 * MIB, .device_tag = HURRAY_DEVICE_CUDA, .device_index = -1, .active = 3};
            options.pinned_cap = caps[i];
            fake_cuda_begin(&settings, __func__);
            assert_int_equal(hurray_destination_cuda(&options, &d, NULL), HURRAY_OK);
            assert_int_equal(play_run(&d, &play), HURRAY_OK);
            assert_true(hry_cuda_destination_stats(&d, &stats));
            assert_in_range(stats.peak_pinned, 1, caps[i]);
            play_release(&play);
            hurray_destination_release(&d);
            fake_cuda_end();
        }
}

/* Pinned memory as a class is delivered, not staging: no cap, and never pageable in its place. */
static void pinned_memory_asked_for_is_not_replaced_by_pageable(void **state) {
    (void)state;
    for (int refuse = 0; refuse < 2; refuse++) {
        FakeSettings settings = {.pinned_limit = refuse ? 100000 : 0};
        HurrayCudaOptions options = small_options();
        HurrayDestinationAlloc d;
        Play play = few_play(HURRAY_SYNC_PRODUCER_SYNCED);
        play.device_tag = HURRAY_DEVICE_CPU;
        play.memory_class = HURRAY_MEMORY_HOST_PINNED;
        options.pinned_cap = 64 * KIB;
        fake_cuda_begin(&settings, __func__);
        assert_int_equal(hurray_destination_cuda(&options, &d, NULL), HURRAY_OK);
        assert_int_equal(play_run(&d, &play), refuse ? HURRAY_ERR_NO_MEMORY : HURRAY_OK);
        for (size_t i = 0; !refuse && i < FEW; i++) assert_true(fake_cuda_is_pinned(play.infos[i].data, few[i]));
        if (!refuse) play_release(&play);
        hurray_destination_release(&d);
        fake_cuda_end();
    }
}

/* ---- abandonment ---- */

static void discarding_never_waits_and_nothing_is_left(void **state) {
    (void)state;
    for (uint64_t stop = 1; stop < 18; stop++)
        for (int schedule = FAKE_LAZY; schedule <= FAKE_RANDOM; schedule++) {
            FakeSettings settings = {.schedule = (FakeSchedule)schedule, .seed = stop, .not_ready = 20};
            HurrayCudaOptions options = small_options();
            HurrayDestinationAlloc d;
            Play play = few_play((uint8_t)(stop % 3)), again = few_play(HURRAY_SYNC_PRODUCER_SYNCED);
            fake_cuda_begin(&settings, __func__);
            play.consumer_stream = fake_cuda_stream(0);
            play.stop_after = stop;
            assert_int_equal(hurray_destination_cuda(&options, &d, NULL), HURRAY_OK);
            assert_int_equal(play_run(&d, &play), HURRAY_OK);
            play_release(&play);
            if (stop % 2) { /* it can be used again */
                assert_int_equal(play_run(&d, &again), HURRAY_OK);
                play_release(&again);
            }
            hurray_destination_release(&d);
            fake_cuda_end();
        }
}

/* ---- each call at each step ---- */

/* One run with an ordered failure. False: the failure never came, the run was whole. */
static bool run_failing(FakeCall call, uint64_t n, bool onward, int code, FakeSchedule schedule, uint8_t mode, const char *test) {
    FakeSettings settings = {.schedule = schedule, .seed = n, .pageable = true};
    HurrayCudaOptions options = small_options();
    HurrayDestinationAlloc d;
    HurrayError error = HURRAY_ERROR_INIT;
    char name[160];
    Play play = few_play(mode);
    snprintf(name, sizeof name, "%s: %s, call %d, code %d%s", test, fake_cuda_call_name(call), (int)n, code, onward ? " onward" : "");
    fake_cuda_begin(&settings, name);
    play.consumer_stream = fake_cuda_stream(0);
    fake_cuda_fail(call, n, onward, code);
    HurrayStatus status = hurray_destination_cuda(&options, &d, &error);
    if (status == HURRAY_OK) {
        status = play_run(&d, &play);
        if (status != HURRAY_OK) hry_cuda_destination_failure(&d, &error);
        else play_release(&play);
        hurray_destination_release(&d);
    }
    bool failed = fake_cuda_failed();
    if (status != HURRAY_OK) {
        if (!failed || error.message[0] == 0) print_error("%s: %d \"%s\"\n", name, status, error.message);
        assert_true(failed);
        assert_true(error.message[0] != 0);
        assert_true(status == HURRAY_ERR_DEVICE || status == HURRAY_ERR_NO_MEMORY || status == HURRAY_ERR_NO_DEVICE);
    }
    fake_cuda_end();
    return failed;
}

static void each_call_failing_once_at_each_step_leaves_nothing(void **state) {
    (void)state;
    static const int codes[] = {2, 1, 700};
    for (int call = 0; call < FAKE_CALL_COUNT; call++)
        for (size_t c = 0; c < 3; c++)
            for (uint64_t n = 1; n < 400; n += n < 12 ? 1 : 7)
                if (!run_failing((FakeCall)call, n, false, codes[c], FAKE_LAZY, (uint8_t)(n % 3), __func__)) break;
}

static void each_call_failing_from_a_step_on_leaves_nothing(void **state) {
    (void)state;
    for (int call = 0; call < FAKE_CALL_COUNT; call++)
        for (int sticky = 0; sticky < 2; sticky++) {
            for (uint64_t n = 1; n < 400; n += n < 6 ? 1 : 11)
                if (!run_failing((FakeCall)call, n, true, sticky ? 719 : 2, FAKE_LAZY, (uint8_t)(n % 3), __func__)) break;
        }
}

static void any_call_failing_at_random_times_leaves_nothing(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 1200; n += 1 + n / 8) {
        run_failing(FAKE_ANY, n, false, 1, FAKE_RANDOM, (uint8_t)(n % 3), __func__);
        run_failing(FAKE_ANY, n, true, 700, FAKE_RANDOM, (uint8_t)(n % 3), __func__);
        run_failing(FAKE_ANY, n, false, 2, FAKE_EAGER, (uint8_t)(n % 3), __func__);
    }
}

static void a_copy_that_kills_the_context_fails_its_buffers_with_the_code(void **state) {
    (void)state;
    for (uint8_t mode = HURRAY_SYNC_PRODUCER_SYNCED; mode <= HURRAY_SYNC_CONSUMER_STREAM; mode++)
        for (uint64_t n = 1; n < 8; n++)
            for (int schedule = FAKE_LAZY; schedule <= FAKE_RANDOM; schedule++) {
                FakeSettings settings = {.schedule = (FakeSchedule)schedule, .seed = n};
                HurrayCudaOptions options = small_options();
                HurrayDestinationAlloc d;
                HurrayError error = HURRAY_ERROR_INIT;
                Play play = few_play(mode);
                play.no_check = true;
                fake_cuda_begin(&settings, __func__);
                play.consumer_stream = fake_cuda_stream(0);
                fake_cuda_fail_running_copy(n, 700);
                assert_int_equal(hurray_destination_cuda(&options, &d, NULL), HURRAY_OK);
                HurrayStatus status = play_run(&d, &play);
                if (status == HURRAY_OK) {
                    play_release(&play); /* events and streams: the consumer finds out */
                } else {
                    assert_int_equal(status, HURRAY_ERR_DEVICE);
                    assert_true(hry_cuda_destination_failure(&d, &error));
                    assert_int_equal(error.device_error, 700);
                    assert_non_null(strstr(error.message, "cudaErrorIllegalAddress (700)"));
                    assert_non_null(strstr(error.message, "cuda:0"));
                    assert_non_null(strstr(error.message, "stand-in"));
                }
                if (mode == HURRAY_SYNC_PRODUCER_SYNCED && fake_cuda_failed()) assert_int_equal(status, HURRAY_ERR_DEVICE);
                hurray_destination_release(&d);
                fake_cuda_end();
            }
}

/* A wait asks, and an answer that is an error says nothing about the copies: asked again, but not for ever. */
static void a_runtime_that_answers_no_query_any_more_is_given_up(void **state) {
    (void)state;
    static const int codes[] = {1, 2, 900};
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        for (int onward = 0; onward < 2; onward++) {
            FakeSettings settings = {.not_ready = 50};
            HurrayCudaOptions options = small_options();
            HurrayDestinationAlloc d;
            FakeCounts before, after;
            Play play = few_play(HURRAY_SYNC_PRODUCER_SYNCED);
            play.stop_after = 12;
            fake_cuda_begin(&settings, __func__);
            assert_int_equal(hurray_destination_cuda(&options, &d, NULL), HURRAY_OK);
            assert_int_equal(play_run(&d, &play), HURRAY_OK);
            play_release(&play);
            fake_cuda_counts(&before);
            assert_true(before.pending > 0);
            fake_cuda_fail(FAKE_event_query, 1, onward, codes[c]);
            hurray_destination_release(&d);
            fake_cuda_counts(&after);
            assert_true(fake_cuda_failed());
            if (onward) assert_int_equal(after.calls[FAKE_event_query] - before.calls[FAKE_event_query], HRY_CUDA_PATIENCE);
            else assert_int_equal(after.pending, 0);
            fake_cuda_end();
        }
}

/* ---- lack of host memory ---- */

static void lack_of_host_memory_at_each_step_leaves_nothing(void **state) {
    (void)state;
    for (int sticky = 0; sticky < 2; sticky++)
        for (uint64_t n = 1;; n++) {
            FailAlloc alloc;
            HurrayCudaOptions options = small_options();
            HurrayDestinationAlloc d;
            HurrayError error = HURRAY_ERROR_INIT;
            Play play = few_play((uint8_t)(n % 3));
            fail_alloc_init(&alloc);
            fail_alloc_arm(&alloc, n, sticky);
            options.allocator = &alloc.allocator;
            fake_cuda_begin(NULL, __func__);
            play.consumer_stream = fake_cuda_stream(0);
            HurrayStatus status = hurray_destination_cuda(&options, &d, &error);
            if (status == HURRAY_OK) {
                status = play_run(&d, &play);
                if (status == HURRAY_OK) play_release(&play);
                hurray_destination_release(&d);
            }
            bool failed = alloc.calls >= n;
            if (status != HURRAY_OK) assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
            fake_cuda_end();
            fail_alloc_assert_empty(&alloc);
            if (!failed) break;
            assert_true(n < 1000);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_pin_goes_down_the_ladder_and_says_so),
        cmocka_unit_test(pinned_memory_stays_below_its_cap),
        cmocka_unit_test(pinned_memory_asked_for_is_not_replaced_by_pageable),
        cmocka_unit_test(discarding_never_waits_and_nothing_is_left),
        cmocka_unit_test(each_call_failing_once_at_each_step_leaves_nothing),
        cmocka_unit_test(each_call_failing_from_a_step_on_leaves_nothing),
        cmocka_unit_test(any_call_failing_at_random_times_leaves_nothing),
        cmocka_unit_test(a_copy_that_kills_the_context_fails_its_buffers_with_the_code),
        cmocka_unit_test(a_runtime_that_answers_no_query_any_more_is_given_up),
        cmocka_unit_test(lack_of_host_memory_at_each_step_leaves_nothing),
    };
    return cmocka_run_group_tests_name("faults of the CUDA destination", tests, NULL, NULL);
}
