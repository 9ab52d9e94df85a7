#include "core/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/containers.h"
#include "support/fail_alloc.h"
#include "support/fail_destination.h"

typedef struct Setup {
    FailDestination fail;
    FailAlloc alloc;
    HurrayDescriptor *descriptor;
    HryItemDestinations item;
    HurrayDestinationRequest request;
    HurrayError error;
    HurrayTensor *tensor;
} Setup;

static int set_up(void **state) {
    Setup *s = calloc(1, sizeof *s);
    HurrayBufferHandle handles[4] = {{.byte_size = 300, .alignment = 64},
                                     {.byte_size = 0, .alignment = 1},
                                     {.byte_size = 5000, .alignment = 4096},
                                     {.byte_size = 64, .alignment = 128}};
    fail_destination_init(&s->fail);
    fail_alloc_init(&s->alloc);
    s->descriptor = make_many(handles, 4);
    s->request = (HurrayDestinationRequest){.struct_size = sizeof s->request, .device_index = -1, .name = "w", .name_len = 1};
    hry_error_clear(&s->error);
    *state = s;
    return 0;
}

static int tear_down(void **state) {
    Setup *s = *state;
    hry_item_discard(&s->item);
    hurray_tensor_destroy(&s->tensor);
    fail_destination_assert_empty(&s->fail);
    fail_alloc_assert_empty(&s->alloc);
    hry_descriptor_unref(s->descriptor);
    free(s);
    return 0;
}

static void begin(Setup *s, bool placed) {
    assert_int_equal(
        hry_item_begin(&s->item, &s->fail.destination, s->descriptor, NULL, &s->request, placed, &s->alloc.allocator, &s->error),
        HURRAY_OK);
}

/* Through all stages, asking again at WAIT. */
static HurrayStatus fill_all(Setup *s) {
    HurrayStatus status;
    while ((status = hry_item_allocate(&s->item, &s->error)) == HURRAY_WAIT) {
    }
    if (status != HURRAY_OK) return status;
    for (uint32_t k = 0; k < s->item.count; k++)
        for (uint64_t at = 0; at < s->item.buffers[k].byte_size;) {
            HurrayWindow window;
            status = hry_item_window(&s->item, k, at, s->item.buffers[k].byte_size - at, &window, &s->error);
            if (status == HURRAY_WAIT) continue;
            if (status != HURRAY_OK) return status;
            for (uint64_t i = 0; i < window.len; i++) window.ptr[i] = pattern_byte(0, k, at + i);
            status = hry_item_commit(&s->item, k, &window, &s->error);
            if (status != HURRAY_OK) return status;
            at += window.len;
        }
    while ((status = hry_item_freeze(&s->item, &s->tensor, &s->error)) == HURRAY_WAIT) {
    }
    return status;
}

static void all_buffers_come_aligned_as_declared_and_whole(void **state) {
    Setup *s = *state;
    begin(s, false);
    assert_int_equal(fill_all(s), HURRAY_OK);
    assert_tensor_pattern(s->tensor, 0);
    for (uint32_t k = 0; k < 4; k++) {
        const HurrayBufferInfo *info = hry_buffer_info(hry_tensor_buffer(s->tensor, k));
        assert_int_equal((uintptr_t)info->data % s->descriptor->buffers[k].alignment, 0);
    }
    assert_int_equal(s->fail.allocates, 3); /* the empty one was never asked for */
    assert_int_equal(s->fail.requests[1].buffer_index, 2);
    assert_int_equal(s->fail.requests[1].alignment, 4096);
    assert_ptr_equal(hry_tensor_descriptor(s->tensor), s->descriptor);
}

static void wait_is_asked_again_without_repeating_what_succeeded(void **state) {
    Setup *s = *state;
    s->fail.waits = 2;
    s->fail.window_bytes = 1000;
    begin(s, false);
    assert_int_equal(fill_all(s), HURRAY_OK);
    assert_tensor_pattern(s->tensor, 0);
    assert_int_equal(s->fail.allocates, 3);
    assert_int_equal(s->fail.windows, 1 + 5 + 1);
    assert_int_equal(s->fail.commits, 7);
    assert_int_equal(s->fail.freezes, 3);
}

static void a_destination_failing_at_any_call_leaves_nothing(void **state) {
    Setup *s = *state;
    s->fail.window_bytes = 2000;
    for (uint64_t n = 1;; n++) {
        fail_destination_arm(&s->fail, n, -1234, false);
        begin(s, false);
        HurrayStatus status = fill_all(s);
        if (status == HURRAY_OK) {
            assert_int_equal(n, 1 + s->fail.calls);
            break;
        }
        assert_int_equal(status, -1234);
        assert_int_equal(s->error.cause, -1234);
        assert_true(s->error.buffer_index < 4 && s->error.message[0]);
        hry_item_discard(&s->item);
        fail_destination_assert_empty(&s->fail);
        fail_alloc_assert_empty(&s->alloc);
    }
}

static void an_item_kept_goes_on_where_its_callback_failed(void **state) {
    Setup *s = *state;
    s->fail.window_bytes = 2000;
    begin(s, false);
    s->item.keep = true;
    HurrayWindow window;
    fail_destination_arm(&s->fail, 2, HURRAY_ERR_DEVICE, false);
    assert_int_equal(hry_item_allocate(&s->item, &s->error), HURRAY_ERR_DEVICE);
    assert_int_equal(s->error.buffer_index, 2);
    assert_int_equal(hry_item_allocate(&s->item, &s->error), HURRAY_OK);
    assert_int_equal(s->fail.allocates, 3);
    fail_destination_arm(&s->fail, 1, HURRAY_ERR_DEVICE, false);
    assert_int_equal(hry_item_window(&s->item, 0, 0, 300, &window, &s->error), HURRAY_ERR_DEVICE);
    fail_destination_arm(&s->fail, 0, HURRAY_OK, false);
    assert_int_equal(fill_all(s), HURRAY_OK);
}

static void a_failing_freeze_of_a_kept_item_can_be_asked_again(void **state) {
    Setup *s = *state;
    begin(s, false);
    s->item.keep = true;
    assert_int_equal(hry_item_allocate(&s->item, &s->error), HURRAY_OK);
    fail_destination_arm(&s->fail, 2, HURRAY_ERR_DEVICE, false);
    assert_int_equal(hry_item_freeze(&s->item, &s->tensor, &s->error), HURRAY_ERR_DEVICE);
    fail_alloc_arm(&s->alloc, 1, 0);
    assert_int_equal(hry_item_freeze(&s->item, &s->tensor, &s->error), HURRAY_ERR_NO_MEMORY);
    assert_int_equal(hry_item_freeze(&s->item, &s->tensor, &s->error), HURRAY_OK);
    assert_int_equal(s->fail.freezes, 3);
}

static void without_memory_nothing_is_left_behind(void **state) {
    Setup *s = *state;
    s->fail.elsewhere = true;
    s->fail.place.device_tag = HURRAY_DEVICE_CUDA;
    for (uint64_t k = 1;; k++) {
        fail_alloc_arm(&s->alloc, k, 0);
        HurrayStatus status =
            hry_item_begin(&s->item, &s->fail.destination, s->descriptor, NULL, &s->request, false, &s->alloc.allocator, &s->error);
        if (status == HURRAY_OK) status = fill_all(s);
        if (status == HURRAY_OK) break;
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        fail_destination_assert_empty(&s->fail);
        fail_alloc_assert_empty(&s->alloc);
    }
}

static HurrayStatus frozen_wrong(Setup *s, bool placed) {
    begin(s, placed);
    HurrayStatus status = fill_all(s);
    hurray_tensor_destroy(&s->tensor);
    hry_item_discard(&s->item);
    fail_destination_assert_empty(&s->fail);
    return status;
}

static void what_was_frozen_is_checked_and_refused(void **state) {
    Setup *s = *state;
    s->request.alignment = 256;
    s->fail.shift = 16;
    assert_int_equal(frozen_wrong(s, false), HURRAY_ERR_INVALID_LAYOUT);
    s->fail.shift = 0;
    s->fail.alignment = 64;
    assert_int_equal(frozen_wrong(s, false), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(s->error.buffer_index, 2);
    s->fail.alignment = 96;
    assert_int_equal(frozen_wrong(s, false), HURRAY_ERR_INVALID_LAYOUT);
    s->fail.alignment = 0;
    s->fail.bad_size = true;
    assert_int_equal(frozen_wrong(s, false), HURRAY_ERR_INVALID_LAYOUT);
    s->fail.bad_size = false;
    s->fail.elsewhere = true;
    s->fail.place.device_tag = 0xFF;
    assert_int_equal(frozen_wrong(s, false), HURRAY_ERR_INVALID_TYPE);
    s->fail.place.device_tag = HURRAY_DEVICE_CUDA;
    s->fail.place.memory_class = 9;
    assert_int_equal(frozen_wrong(s, false), HURRAY_ERR_INVALID_TYPE);
    s->fail.place.memory_class = 0;
    s->fail.place.sync_mode = HURRAY_SYNC_EVENT; /* nobody asked for events */
    assert_int_equal(frozen_wrong(s, false), HURRAY_ERR_SYNC_MODE_MISMATCH);
    s->fail.place.sync_mode = 0;
    assert_int_equal(frozen_wrong(s, false), HURRAY_OK); /* the file asked, so it may lie elsewhere */
    s->request.device_tag = HURRAY_DEVICE_CPU;
    assert_int_equal(frozen_wrong(s, true), HURRAY_ERR_INVALID_TYPE); /* the caller asked */
    s->request.device_tag = HURRAY_DEVICE_CUDA;
    s->request.device_index = 1;
    assert_int_equal(frozen_wrong(s, true), HURRAY_ERR_INVALID_TYPE);
    s->fail.place.device_index = 1;
    assert_int_equal(frozen_wrong(s, true), HURRAY_OK);
    s->request.memory_class = HURRAY_MEMORY_PEER;
    assert_int_equal(frozen_wrong(s, true), HURRAY_ERR_INVALID_TYPE);
}

static void a_window_that_cannot_be_is_refused(void **state) {
    Setup *s = *state;
    HurrayWindow window;
    for (int wrong = 0; wrong < 3; wrong++) {
        s->fail.bad_len = wrong == 0;
        s->fail.bad_offset = wrong == 1;
        s->fail.no_ptr = wrong == 2;
        begin(s, false);
        assert_int_equal(hry_item_allocate(&s->item, &s->error), HURRAY_OK);
        assert_int_equal(hry_item_window(&s->item, 0, 0, 300, &window, &s->error), HURRAY_ERR_INVALID_REPORT);
        hry_item_discard(&s->item);
    }
    s->fail.bad_len = 0;
    s->fail.no_ptr = false;
    s->fail.no_id = true;
    begin(s, false);
    assert_int_equal(hry_item_allocate(&s->item, &s->error), HURRAY_ERR_INVALID_REPORT);
}

static void a_positive_code_becomes_a_device_error(void **state) {
    Setup *s = *state;
    begin(s, false);
    fail_destination_arm(&s->fail, 1, 17, false);
    assert_int_equal(hry_item_allocate(&s->item, &s->error), HURRAY_ERR_DEVICE);
    assert_int_equal(s->error.cause, 17);
}

static void an_event_that_was_frozen_goes_with_the_item_when_another_buffer_fails(void **state) {
    Setup *s = *state;
    s->request.device_tag = HURRAY_DEVICE_CUDA;
    s->request.sync_mode = HURRAY_SYNC_EVENT;
    s->fail.elsewhere = true;
    s->fail.place.device_tag = HURRAY_DEVICE_CUDA;
    s->fail.place.sync_mode = HURRAY_SYNC_EVENT;
    begin(s, true);
    assert_int_equal(hry_item_allocate(&s->item, &s->error), HURRAY_OK);
    fail_destination_arm(&s->fail, 3, HURRAY_ERR_DEVICE, false);
    assert_int_equal(hry_item_freeze(&s->item, &s->tensor, &s->error), HURRAY_ERR_DEVICE);
    fail_destination_assert_empty(&s->fail);
    fail_destination_arm(&s->fail, 0, HURRAY_OK, false);
    begin(s, true);
    assert_int_equal(fill_all(s), HURRAY_OK);
    const HurrayBufferInfo *info = hry_buffer_info(hry_tensor_buffer(s->tensor, 0));
    assert_int_equal(info->sync_mode, HURRAY_SYNC_EVENT);
    assert_int_equal(hry_tensor_descriptor(s->tensor)->buffers[0].sync_mode, HURRAY_SYNC_EVENT);
    assert_int_equal(s->fail.requests[0].alignment, 4096); /* a device gets pages */
}

static void a_consumer_stream_is_remembered_for_order(void **state) {
    Setup *s = *state;
    int stream;
    s->request.device_tag = HURRAY_DEVICE_CUDA;
    s->request.sync_mode = HURRAY_SYNC_CONSUMER_STREAM;
    s->request.consumer_stream = &stream;
    s->fail.elsewhere = true;
    s->fail.place.device_tag = HURRAY_DEVICE_CUDA;
    s->fail.place.sync_mode = HURRAY_SYNC_CONSUMER_STREAM;
    begin(s, true);
    assert_int_equal(fill_all(s), HURRAY_OK);
    assert_int_equal(hurray_buffer_order(hry_tensor_buffer(s->tensor, 0), &stream), HURRAY_OK);
    assert_int_equal(hurray_buffer_order(hry_tensor_buffer(s->tensor, 0), NULL), HURRAY_ERR_SYNC_MODE_MISMATCH);
}

static void buffers_in_two_places_are_refused(void **state) {
    Setup *s = *state;
    begin(s, false);
    assert_int_equal(hry_item_allocate(&s->item, &s->error), HURRAY_OK);
    fail_destination_arm(&s->fail, 2, HURRAY_ERR_DEVICE, false);
    s->item.keep = true;
    assert_int_equal(hry_item_freeze(&s->item, &s->tensor, &s->error), HURRAY_ERR_DEVICE);
    s->fail.elsewhere = true;
    s->fail.place.device_tag = HURRAY_DEVICE_CUDA;
    assert_int_equal(hry_item_freeze(&s->item, &s->tensor, &s->error), HURRAY_ERR_INVALID_TYPE);
    assert_null(s->item.descriptor); /* what was frozen wrongly cannot be asked for again */
}

static void a_destination_needs_its_four_callbacks(void **state) {
    Setup *s = *state;
    HurrayDestinationAlloc held;
    for (int missing = 0; missing < 4; missing++) {
        HurrayDestinationAlloc d = s->fail.destination;
        if (missing == 0) d.allocate = NULL;
        if (missing == 1) d.window = NULL;
        if (missing == 2) d.freeze = NULL;
        if (missing == 3) d.discard = NULL;
        assert_int_equal(hry_destination_hold(&d, &s->alloc.allocator, &held, &s->error), HURRAY_ERR_INVALID_ARGUMENT);
    }
    HurrayDestinationAlloc old = s->fail.destination;
    old.struct_size = 8;
    assert_int_equal(hry_destination_hold(&old, &s->alloc.allocator, &held, &s->error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(s->fail.retains, 0);
    assert_int_equal(hry_destination_hold(&s->fail.destination, &s->alloc.allocator, &held, &s->error), HURRAY_OK);
    assert_int_equal(s->fail.retains, 1);
    assert_int_equal(hry_destination_wait(&held, &s->error), HURRAY_OK);
    assert_int_equal(s->fail.wait_calls, 1);
    held.wait = NULL;
    assert_int_equal(hry_destination_wait(&held, &s->error), HURRAY_ERR_UNSUPPORTED);
    hry_destination_drop(&held);
    assert_int_equal(s->fail.releases, 1);
}

static void commit_may_be_left_out(void **state) {
    Setup *s = *state;
    HurrayWindow window;
    s->fail.destination.commit = NULL;
    begin(s, false);
    assert_int_equal(hry_item_allocate(&s->item, &s->error), HURRAY_OK);
    assert_int_equal(hry_item_window(&s->item, 0, 0, 300, &window, &s->error), HURRAY_OK);
    assert_int_equal(hry_item_commit(&s->item, 0, &window, &s->error), HURRAY_OK);
}

static void the_plain_host_destination_serves_who_names_none(void **state) {
    Setup *s = *state;
    HurrayDestinationAlloc held;
    assert_int_equal(hry_destination_hold(NULL, &s->alloc.allocator, &held, &s->error), HURRAY_OK);
    assert_int_equal(hry_item_begin(&s->item, &held, s->descriptor, NULL, &s->request, false, &s->alloc.allocator, &s->error), HURRAY_OK);
    assert_int_equal(fill_all(s), HURRAY_OK);
    hry_destination_drop(&held); /* buffers outlive it */
    assert_tensor_pattern(s->tensor, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_buffers_come_aligned_as_declared_and_whole),
        TEST(wait_is_asked_again_without_repeating_what_succeeded),
        TEST(a_destination_failing_at_any_call_leaves_nothing),
        TEST(an_item_kept_goes_on_where_its_callback_failed),
        TEST(a_failing_freeze_of_a_kept_item_can_be_asked_again),
        TEST(without_memory_nothing_is_left_behind),
        TEST(what_was_frozen_is_checked_and_refused),
        TEST(a_window_that_cannot_be_is_refused),
        TEST(a_positive_code_becomes_a_device_error),
        TEST(an_event_that_was_frozen_goes_with_the_item_when_another_buffer_fails),
        TEST(a_consumer_stream_is_remembered_for_order),
        TEST(buffers_in_two_places_are_refused),
        TEST(a_destination_needs_its_four_callbacks),
        TEST(commit_may_be_left_out),
        TEST(the_plain_host_destination_serves_who_names_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
