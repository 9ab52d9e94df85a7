/* The device list and one device, over the stand-in: found by every name, reasons for none, no context that nobody asked for, threads
 * left as they were. */
#include "cuda/device.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/fake_cuda.h"
#include "hurray/cuda.h"
#include "hurray/loader.h"
#include "support/fail_alloc.h"

#define CUDA HURRAY_DEVICE_CUDA

static void devices_are_counted_and_described_without_a_context(void **state) {
    (void)state;
    FakeSettings settings = {.devices = 3, .device_bytes = (uint64_t)8 << 30};
    HurrayError error = HURRAY_ERROR_INIT;
    uint32_t count = 0;
    FakeCounts counts;
    fake_cuda_begin(&settings, __func__);
    assert_int_equal(hurray_device_count(CUDA, &count, &error), HURRAY_OK);
    assert_int_equal(count, 3);
    for (int32_t i = 0; i < 3; i++) {
        HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
        assert_int_equal(hurray_device_info(CUDA, i, 0, &info, &error), HURRAY_OK);
        assert_non_null(strstr(info.name, "stand-in"));
        assert_int_equal(info.total_bytes, (uint64_t)8 << 30);
        assert_int_equal(info.free_bytes, 0);
        assert_int_equal(strncmp(info.uuid, "GPU-", 4), 0);
        assert_int_equal(strlen(info.uuid), 40);
        assert_int_equal(info.sync_modes, 7);
        assert_true(info.memory_classes & 1u << HURRAY_MEMORY_UNIFIED);
    }
    fake_cuda_counts(&counts);
    assert_int_equal(counts.calls[FAKE_primary_retain], 0);
    fake_cuda_end();
}

static void free_memory_is_told_when_asked_for_and_its_context_goes_again(void **state) {
    (void)state;
    FakeSettings settings = {.device_bytes = (uint64_t)1 << 30};
    HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
    HurrayError error = HURRAY_ERROR_INIT;
    fake_cuda_begin(&settings, __func__);
    void *used = fake_cuda_device_memory(0, (size_t)256 << 20);
    assert_int_equal(hurray_device_info(CUDA, 0, HURRAY_DEVICE_FREE_BYTES, &info, &error), HURRAY_OK);
    assert_int_equal(info.free_bytes, (uint64_t)768 << 20);
    fake_cuda_device_memory_free(used);
    fake_cuda_end();
}

static void a_device_is_found_by_ordinal_uuid_and_bus_id_in_any_case(void **state) {
    (void)state;
    FakeSettings settings = {.devices = 2};
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
    static const char *const names[] = {"1", "0000:a1:00.0", "0000:A1:00.0", "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f", "10111213-1415-1617-1819-1A1B1C1D1E1F"};
    static const char *const strangers[] = {"2", "", "x", "0000:a2:00.0", "GPU-10111213", "1 ", "99999999999", "-1"};
    int32_t index = -1;
    fake_cuda_begin(&settings, __func__);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        index = -1;
        assert_int_equal(hurray_device_find(CUDA, names[i], strlen(names[i]), &index, &error), HURRAY_OK);
        assert_int_equal(index, 1);
    }
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        index = -1;
        assert_int_equal(hurray_device_find(CUDA, strangers[i], strlen(strangers[i]), &index, &error), HURRAY_ERR_NO_DEVICE);
        assert_int_equal(index, -1);
        assert_true(error.message[0] != 0);
    }
    assert_int_equal(hurray_device_info(CUDA, 2, 0, &info, &error), HURRAY_ERR_NO_DEVICE);
    fake_cuda_end();
}

/* Everything that asks for a device says the same reason. */
static void expect_none(const FakeSettings *settings, const char *why, const char *test) {
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
    HurrayDestinationAlloc destination;
    uint32_t count = 7;
    int32_t index = -1;
    fake_cuda_begin(settings, test);
    assert_int_equal(hurray_device_count(CUDA, &count, &error), HURRAY_OK);
    assert_int_equal(count, 0);
    assert_int_equal(hurray_device_find(CUDA, "0", 1, &index, &error), HURRAY_ERR_NO_DEVICE);
    assert_non_null(strstr(error.message, why));
    assert_int_equal(hurray_device_info(CUDA, 0, 0, &info, &error), HURRAY_ERR_NO_DEVICE);
    assert_non_null(strstr(error.message, why));
    assert_int_equal(hurray_destination_cuda(NULL, &destination, &error), HURRAY_ERR_NO_DEVICE);
    assert_non_null(strstr(error.message, why));
    fake_cuda_end();
}

static void each_reason_for_no_device_is_told_apart(void **state) {
    (void)state;
    expect_none(&(FakeSettings){.no_driver = true}, "no CUDA driver", "no driver");
    expect_none(&(FakeSettings){.count_code = 35, .driver_version = 12020}, "too old: it knows CUDA 12.2, this library was built with 13.0", "old driver");
    expect_none(&(FakeSettings){.count_code = 34}, "stub", "stub library");
    expect_none(&(FakeSettings){.count_code = 100}, "sees no device", "none visible");
    expect_none(&(FakeSettings){.count_code = 3}, "forked", "forked");
    expect_none(&(FakeSettings){.count_code = 46}, "cudaErrorDevicesUnavailable (46)", "busy");
    expect_none(&(FakeSettings){.count_code = 802}, "cudaErrorSystemNotReady (802)", "not ready");
}

static void without_managed_memory_the_class_is_not_offered(void **state) {
    (void)state;
    FakeSettings settings = {.no_managed = true};
    HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
    HurrayError error = HURRAY_ERROR_INIT;
    fake_cuda_begin(&settings, __func__);
    assert_int_equal(hurray_device_info(CUDA, 0, 0, &info, &error), HURRAY_OK);
    assert_false(info.memory_classes & 1u << HURRAY_MEMORY_UNIFIED);
    fake_cuda_end();
}

static void any_failing_call_of_the_list_is_an_error_and_leaves_nothing(void **state) {
    (void)state;
    HurrayError error = HURRAY_ERROR_INIT;
    for (uint64_t n = 1;; n++) {
        HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
        fake_cuda_begin(NULL, __func__);
        fake_cuda_fail(FAKE_ANY, n, n % 2 == 0, 999);
        HurrayStatus status = hurray_device_info(CUDA, 0, HURRAY_DEVICE_FREE_BYTES, &info, &error);
        bool failed = fake_cuda_failed();
        if (status != HURRAY_OK) assert_true(error.message[0] != 0);
        else assert_true(!failed || info.free_bytes > 0 || n > 3);
        fake_cuda_end();
        if (!failed) break;
        assert_true(n < 100);
    }
}

static void lack_of_host_memory_is_told(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    fail_alloc_init(&alloc);
    for (uint64_t n = 1;; n++) {
        HryCudaDevice *device = NULL;
        fake_cuda_begin(NULL, __func__);
        fail_alloc_arm(&alloc, n, 0);
        hry_error_clear(&error);
        HurrayStatus status = hry_cuda_device_open(hry_cuda_api(), 0, &alloc.allocator, &device, &error);
        bool failed = alloc.calls >= n;
        if (status == HURRAY_OK) hry_cuda_device_unref(device);
        else assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        fake_cuda_end();
        fail_alloc_assert_empty(&alloc);
        if (!failed) break;
        assert_true(n < 200);
    }
}

static void a_guard_leaves_context_and_capture_mode_as_they_were(void **state) {
    (void)state;
    FakeSettings settings = {.devices = 2};
    HryCudaDevice *device = NULL;
    HryCudaGuard guard;
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    const HryCudaApi *api = hry_cuda_api();
    int mode = 1;
    fake_cuda_begin(&settings, __func__);
    assert_int_equal(hry_cuda_device_open(api, 1, &allocator, &device, &error), HURRAY_OK);
    assert_true(hry_cuda_enter(device, &guard));
    hry_cuda_leave(device, &guard);
    fake_cuda_check_thread("after the guard");
    /* The exchange at entry fails: the one at leave must not set what was never changed. */
    for (int which = 1; which <= 2; which++) {
        fake_cuda_fail(FAKE_exchange_capture_mode, (uint64_t)which, false, 1);
        if (hry_cuda_enter(device, &guard)) hry_cuda_leave(device, &guard);
    }
    (void)mode;
    fake_cuda_check_thread("after failing exchanges");
    hry_cuda_device_unref(device);
    fake_cuda_end();
}

static void a_sticky_error_ends_all_calls(void **state) {
    (void)state;
    static const int codes[] = {214, 700, 702, 709, 710, 714, 719, 999};
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        HryCudaDevice *device = NULL;
        HryCudaGuard guard;
        void *stream = NULL;
        fake_cuda_begin(NULL, __func__);
        assert_int_equal(hry_cuda_device_open(hry_cuda_api(), 0, &allocator, &device, &error), HURRAY_OK);
        assert_true(hry_cuda_enter(device, &guard));
        fake_cuda_fail(FAKE_stream_create, 1, false, codes[i]);
        int code = device->api->stream_create(&stream);
        assert_int_equal(code, codes[i]);
        assert_int_equal(hry_cuda_fail(device, code, "cudaStreamCreateWithFlags", &error), HURRAY_ERR_DEVICE);
        assert_int_equal(error.device_error, code);
        assert_non_null(strstr(error.message, "cudaStreamCreateWithFlags"));
        assert_non_null(strstr(error.message, "earlier asynchronous operation"));
        hry_cuda_leave(device, &guard);
        assert_false(hry_cuda_enter(device, &guard));
        hry_cuda_device_unref(device);
        fake_cuda_end();
    }
}

/* Only a context that is gone, or one that cannot be pushed again and again, is a lost device. */
static void a_push_that_fails_now_and_then_loses_nothing(void **state) {
    static const struct {
        int code;
        bool onward, lost;
        uint64_t pushes;
    } cases[] = {{1, false, false, 2}, {2, false, false, 2},   {999, false, true, 1}, {HRY_CUDA_CONTEXT_DESTROYED, false, true, 1}, {HRY_CUDA_INVALID_CONTEXT, false, true, 1},
                 {1, true, true, HRY_CUDA_PATIENCE}};
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        HryCudaDevice *device = NULL;
        HryCudaGuard guard;
        FakeCounts counts;
        fake_cuda_begin(NULL, __func__);
        assert_int_equal(hry_cuda_device_open(hry_cuda_api(), 0, &allocator, &device, &error), HURRAY_OK);
        fake_cuda_fail(FAKE_push_context, 1, cases[i].onward, cases[i].code);
        assert_int_equal(hry_cuda_enter(device, &guard), !cases[i].lost);
        fake_cuda_counts(&counts);
        assert_int_equal(counts.calls[FAKE_push_context], cases[i].pushes);
        assert_int_equal(hry_cuda_is_gone(device), cases[i].lost);
        if (!cases[i].lost) hry_cuda_leave(device, &guard);
        else assert_int_equal(hry_cuda_fail_lost(device, &error), HURRAY_ERR_DEVICE);
        if (cases[i].lost) assert_int_equal(error.device_error, cases[i].code);
        hry_cuda_device_unref(device);
        fake_cuda_end();
    }
}

static void *unref_elsewhere(void *argument) {
    hry_cuda_device_unref(argument);
    fake_cuda_check_thread("a fresh thread");
    return NULL;
}

static void a_fresh_thread_may_let_go_of_it(void **state) {
    (void)state;
    HryCudaDevice *device = NULL;
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    pthread_t thread;
    fake_cuda_begin(NULL, __func__);
    assert_int_equal(hry_cuda_device_open(hry_cuda_api(), -1, &allocator, &device, &error), HURRAY_OK);
    pthread_create(&thread, NULL, unref_elsewhere, hry_cuda_device_ref(device));
    pthread_join(thread, NULL);
    hry_cuda_device_unref(device);
    fake_cuda_end();
}

static void a_forked_child_makes_no_call(void **state) {
    (void)state;
    HryCudaDevice *device = NULL;
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    HryCudaGuard guard;
    int status;
    fake_cuda_begin(NULL, __func__);
    assert_int_equal(hry_cuda_device_open(hry_cuda_api(), 0, &allocator, &device, &error), HURRAY_OK);
    pid_t child = fork();
    if (child == 0) {
        bool entered = hry_cuda_enter(device, &guard);
        hry_cuda_device_unref(device);
        _exit(entered ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    hry_cuda_device_unref(device);
    fake_cuda_end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_counted_and_described_without_a_context),
        cmocka_unit_test(free_memory_is_told_when_asked_for_and_its_context_goes_again),
        cmocka_unit_test(a_device_is_found_by_ordinal_uuid_and_bus_id_in_any_case),
        cmocka_unit_test(each_reason_for_no_device_is_told_apart),
        cmocka_unit_test(without_managed_memory_the_class_is_not_offered),
        cmocka_unit_test(any_failing_call_of_the_list_is_an_error_and_leaves_nothing),
        cmocka_unit_test(lack_of_host_memory_is_told),
        cmocka_unit_test(a_guard_leaves_context_and_capture_mode_as_they_were),
        cmocka_unit_test(a_sticky_error_ends_all_calls),
        cmocka_unit_test(a_push_that_fails_now_and_then_loses_nothing),
        cmocka_unit_test(a_fresh_thread_may_let_go_of_it),
        cmocka_unit_test(a_forked_child_makes_no_call),
    };
    return cmocka_run_group_tests_name("CUDA devices", tests, NULL, NULL);
}
