#include "hurray/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/containers.h"
#include "support/fail_alloc.h"
#include "support/fail_destination.h"

typedef struct StreamDrive {
    const uint8_t *bytes;
    size_t len, every, at;
    uint64_t waits;
    uint8_t *last_dst;
} StreamDrive;

static HurrayStatus drive(StreamDrive *d, HurrayStreamReaderCore *core, HurrayStep *step) {
    for (;;) {
        HurrayStatus status = hurray_stream_reader_core_step(core, step);
        if (status != HURRAY_OK) return status;
        if (step->kind == HURRAY_STEP_WAIT) {
            d->waits++;
            continue;
        }
        if (step->kind != HURRAY_STEP_INPUT) return HURRAY_OK;
        uint8_t *dst;
        size_t len;
        assert_int_equal(step->offset, d->at);
        assert_int_equal(hurray_stream_reader_core_input_dst(core, &dst, &len), HURRAY_OK);
        assert_int_equal(len, step->len);
        if (d->every && len > d->every) len = d->every;
        if (len > d->len - d->at) len = d->len - d->at;
        memcpy(dst, d->bytes + d->at, len);
        d->last_dst = dst;
        d->at += len;
        status = hurray_stream_reader_core_report_filled(core, len);
        if (status != HURRAY_OK) return status;
    }
}

static const HurrayBufferHandle handles[4] = {{.byte_size = 300, .alignment = 64},
                                              {.byte_size = 5000, .alignment = 2u << 20},
                                              {.byte_size = 0, .alignment = 1},
                                              {.byte_size = 90, .alignment = 4096}};

static void build(Container *built) {
    container_begin_stream(built);
    container_add(built, NULL, make_plain(777, 64));
    container_add(built, NULL, make_many(handles, 4));
    container_add(built, NULL, make_group(0));
    container_add(built, NULL, make_plain(0, 64));
    container_add(built, NULL, make_plain(1, 128));
}

static HurrayStreamReaderCore *core_of(const HurrayReaderOptions *options) {
    HurrayStreamReaderCore *core = NULL;
    assert_int_equal(hurray_stream_reader_core_new(options, &core, NULL), HURRAY_OK);
    return core;
}

static void tensors_come_one_after_another_and_then_the_end(void **state) {
    (void)state;
    Container built;
    build(&built);
    for (size_t every = 0; every < 40; every++) {
        StreamDrive d = {.bytes = built.bytes, .len = built.len, .every = every};
        HurrayStreamReaderCore *core = core_of(NULL);
        HurrayStep step;
        for (uint64_t i = 0; i < 5; i++) {
            HurrayTensor *tensor = NULL;
            assert_int_equal(drive(&d, core, &step), HURRAY_OK);
            assert_int_equal(step.kind, HURRAY_STEP_TENSOR);
            assert_int_equal(hurray_stream_reader_core_step(core, &step), HURRAY_OK);
            assert_int_equal(step.kind, HURRAY_STEP_TENSOR);
            assert_int_equal(hurray_stream_reader_core_take_tensor(core, &tensor), HURRAY_OK);
            HurrayTensor *none = NULL;
            assert_int_equal(hurray_stream_reader_core_take_tensor(core, &none), HURRAY_ERR_WRONG_STATE);
            assert_tensor_pattern(tensor, i);
            const HurrayDescriptor *descriptor = NULL;
            HurrayBufferList *list = NULL;
            hurray_tensor_descriptor(tensor, &descriptor);
            hurray_tensor_buffers(tensor, &list);
            for (uint32_t k = 0; k < descriptor->buffer_count; k++) {
                HurrayBuffer *buffer = NULL;
                void *data = NULL;
                hurray_buffer_list_get(list, k, &buffer);
                hurray_buffer_data_ptr(buffer, &data);
                assert_int_equal((uintptr_t)data % descriptor->buffers[k].alignment, 0);
                if (every == 0 && i == 4) assert_ptr_equal(data, d.last_dst); /* copied once, by the transport */
            }
            hurray_tensor_destroy(&tensor);
        }
        for (int again = 0; again < 2; again++) {
            assert_int_equal(drive(&d, core, &step), HURRAY_OK);
            assert_int_equal(step.kind, HURRAY_STEP_FINISHED);
        }
        hurray_stream_reader_core_destroy(&core);
    }
    container_free(&built);
}

static void a_stream_cut_between_items_ends_and_anywhere_else_is_truncated(void **state) {
    (void)state;
    Container built;
    build(&built);
    size_t next = 0;
    for (size_t len = 0; len <= built.len; len++) {
        bool boundary = len == built.len || (next < built.count && len == built.rows[next].descriptor_offset);
        if (boundary) next++;
        StreamDrive d = {.bytes = built.bytes, .len = len};
        HurrayStreamReaderCore *core = core_of(NULL);
        HurrayStep step;
        HurrayStatus status;
        while ((status = drive(&d, core, &step)) == HURRAY_OK && step.kind == HURRAY_STEP_TENSOR) {
            HurrayTensor *tensor = NULL;
            hurray_stream_reader_core_take_tensor(core, &tensor);
            hurray_tensor_destroy(&tensor);
        }
        assert_int_equal(status, boundary ? HURRAY_OK : HURRAY_ERR_TRUNCATED);
        if (!boundary) {
            uint32_t reason;
            assert_int_equal(hurray_stream_reader_core_last_error(core)->offset, len);
            assert_int_equal(hurray_stream_reader_core_is_unusable(core, &reason), HURRAY_OK);
            assert_int_equal(reason, HURRAY_UNUSABLE_BAD_INPUT);
            assert_int_equal(hurray_stream_reader_core_step(core, &step), HURRAY_ERR_UNUSABLE);
        }
        hurray_stream_reader_core_destroy(&core);
    }
    container_free(&built);
}

static HurrayStatus first_failure(const uint8_t *bytes, size_t len, const HurrayReaderOptions *options, HurrayError *error) {
    StreamDrive d = {.bytes = bytes, .len = len};
    HurrayStreamReaderCore *core = core_of(options);
    HurrayStep step;
    HurrayStatus status;
    while ((status = drive(&d, core, &step)) == HURRAY_OK && step.kind == HURRAY_STEP_TENSOR) {
        HurrayTensor *tensor = NULL;
        hurray_stream_reader_core_take_tensor(core, &tensor);
        hurray_tensor_destroy(&tensor);
    }
    if (status != HURRAY_OK) {
        *error = *hurray_stream_reader_core_last_error(core);
        assert_int_equal(error->code, status);
        assert_true(error->message[0]);
        assert_int_equal(hurray_stream_reader_core_step(core, &step), HURRAY_ERR_UNUSABLE);
    }
    hurray_stream_reader_core_destroy(&core);
    return status;
}

static void bad_descriptors_and_limits_end_the_stream(void **state) {
    (void)state;
    Container built;
    HurrayError error;
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    build(&built);
    assert_int_equal(first_failure(built.bytes, built.len, NULL, &error), HURRAY_OK);
    options.max_tensor_bytes = 5389;
    assert_int_equal(first_failure(built.bytes, built.len, &options, &error), HURRAY_ERR_LIMIT);
    assert_string_equal(error.field, "max_tensor_bytes");
    assert_int_equal(error.tensor_index, 1);
    options.max_tensor_bytes = 5390;
    assert_int_equal(first_failure(built.bytes, built.len, &options, &error), HURRAY_OK);
    options.max_buffer_bytes = 4999;
    assert_int_equal(first_failure(built.bytes, built.len, &options, &error), HURRAY_ERR_LIMIT);
    assert_string_equal(error.field, "max_buffer_bytes");
    options.max_buffer_bytes = 0;
    options.max_descriptor_bytes = 60;
    assert_int_equal(first_failure(built.bytes, built.len, &options, &error), HURRAY_ERR_LIMIT);
    options.max_descriptor_bytes = 0;
    options.flags = HURRAY_READ_NO_PRIVATE;
    assert_int_not_equal(first_failure(built.bytes, built.len, &options, &error), HURRAY_OK);
    assert_int_equal(error.tensor_index, 1);
    size_t second = (size_t)built.rows[1].descriptor_offset;
    built.bytes[second] = 'X';
    assert_int_equal(first_failure(built.bytes, built.len, NULL, &error), HURRAY_ERR_INVALID_MAGIC);
    assert_int_equal(error.offset, second);
    built.bytes[second] = 'H';
    built.bytes[second + 4] = 2;
    assert_int_equal(first_failure(built.bytes, built.len, NULL, &error), HURRAY_ERR_VERSION_MISMATCH);
    container_free(&built);
    container_begin_stream(&built);
    container_add(&built, NULL, make_placed(10, HURRAY_DEVICE_CUDA, HURRAY_SYNC_EVENT, 0));
    options.flags = 0;
    assert_int_equal(first_failure(built.bytes, built.len, &options, &error), HURRAY_OK); /* the host answers producer-synced */
    options.flags = HURRAY_READ_CROSS_MACHINE;
    assert_int_equal(first_failure(built.bytes, built.len, &options, &error), HURRAY_ERR_INVALID_SYNC_MODE);
    container_free(&built);
}

static void a_huge_promise_is_refused_before_memory_is_taken(void **state) {
    (void)state;
    Container built;
    FailAlloc alloc;
    HurrayError error;
    fail_alloc_init(&alloc);
    container_begin_stream(&built);
    container_add(&built, NULL, make_plain(10, 64));
    uint32_t huge = UINT32_MAX;
    memcpy(built.bytes + 6, &huge, 4);
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    options.allocator = &alloc.allocator;
    assert_int_equal(first_failure(built.bytes, built.len, &options, &error), HURRAY_ERR_LIMIT);
    assert_true(alloc.peak_bytes < 1 << 20);
    fail_alloc_assert_empty(&alloc);
    container_free(&built);
}

static void a_count_that_was_lost_poisons_by_name(void **state) {
    (void)state;
    HurrayStreamReaderCore *core = core_of(NULL);
    HurrayStep step;
    uint32_t reason;
    assert_int_equal(hurray_stream_reader_core_step(core, &step), HURRAY_OK);
    assert_int_equal(hurray_stream_reader_core_report_filled(core, 11), HURRAY_ERR_INVALID_REPORT);
    assert_int_equal(hurray_stream_reader_core_report_filled(core, 3), HURRAY_OK);
    assert_int_equal(hurray_stream_reader_core_poison(core, HURRAY_USABLE), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_stream_reader_core_poison(core, HURRAY_UNUSABLE_LOST_READ_COUNT), HURRAY_OK);
    assert_int_equal(hurray_stream_reader_core_is_unusable(core, &reason), HURRAY_OK);
    assert_int_equal(reason, HURRAY_UNUSABLE_LOST_READ_COUNT);
    assert_int_equal(hurray_stream_reader_core_step(core, &step), HURRAY_ERR_UNUSABLE);
    assert_non_null(strstr(hurray_stream_reader_core_last_error(core)->message, "LOST_READ_COUNT"));
    assert_int_equal(hurray_stream_reader_core_report_filled(core, 1), HURRAY_ERR_UNUSABLE);
    HurrayTensor *tensor = NULL;
    assert_int_equal(hurray_stream_reader_core_take_tensor(core, &tensor), HURRAY_ERR_UNUSABLE);
    HurrayWindow window;
    assert_int_equal(hurray_stream_reader_core_input_window(core, &window), HURRAY_ERR_UNUSABLE);
    hurray_stream_reader_core_destroy(&core);
}

static void abandoning_is_free_between_items_and_for_good_inside_one(void **state) {
    (void)state;
    Container built;
    HurrayStep step;
    HurrayTensor *tensor = NULL;
    build(&built);
    StreamDrive d = {.bytes = built.bytes, .len = built.len};
    HurrayStreamReaderCore *core = core_of(NULL);
    assert_int_equal(hurray_stream_reader_core_abandon(core), HURRAY_OK);
    assert_int_equal(drive(&d, core, &step), HURRAY_OK);
    assert_int_equal(hurray_stream_reader_core_abandon(core), HURRAY_OK); /* a whole tensor nobody wants */
    assert_int_equal(drive(&d, core, &step), HURRAY_OK);
    assert_int_equal(hurray_stream_reader_core_take_tensor(core, &tensor), HURRAY_OK);
    assert_tensor_pattern(tensor, 1);
    hurray_tensor_destroy(&tensor);
    assert_int_equal(hurray_stream_reader_core_step(core, &step), HURRAY_OK);
    assert_int_equal(hurray_stream_reader_core_report_filled(core, 1), HURRAY_OK);
    assert_int_equal(hurray_stream_reader_core_abandon(core), HURRAY_OK);
    assert_int_equal(hurray_stream_reader_core_step(core, &step), HURRAY_ERR_UNUSABLE);
    hurray_stream_reader_core_destroy(&core);
    container_free(&built);
}

/* Reads all, repeating every call that failed with `code`; counts the failures. */
static uint64_t read_stubbornly(const Container *built, const HurrayReaderOptions *options, HurrayStatus code) {
    StreamDrive d = {.bytes = built->bytes, .len = built->len};
    HurrayStreamReaderCore *core = NULL;
    HurrayStep step;
    uint64_t failures = 0, i = 0;
    while (hurray_stream_reader_core_new(options, &core, NULL) != HURRAY_OK) failures++;
    for (;;) {
        HurrayStatus status = drive(&d, core, &step);
        if (status == code) {
            failures++;
            assert_true(failures < 100);
            continue;
        }
        assert_int_equal(status, HURRAY_OK);
        if (step.kind == HURRAY_STEP_FINISHED) break;
        HurrayTensor *tensor = NULL;
        assert_int_equal(hurray_stream_reader_core_take_tensor(core, &tensor), HURRAY_OK);
        assert_tensor_pattern(tensor, i++);
        hurray_tensor_destroy(&tensor);
    }
    assert_int_equal(i, built->count);
    hurray_stream_reader_core_destroy(&core);
    return failures;
}

static void after_a_failing_destination_the_step_can_be_repeated(void **state) {
    (void)state;
    Container built;
    FailDestination fail;
    build(&built);
    fail_destination_init(&fail);
    fail.window_bytes = 2000;
    fail.waits = 1;
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    options.destination = &fail.destination;
    uint64_t failures = 1;
    for (uint64_t n = 1; failures; n++) {
        fail_destination_arm(&fail, n, -1500, false);
        failures = read_stubbornly(&built, &options, -1500);
        assert_true(failures <= 1);
        fail_destination_assert_empty(&fail);
    }
    assert_int_equal(fail.retains, fail.releases);
    assert_int_equal(fail.requests[0].source_offset, HURRAY_NONE);
    assert_null(fail.requests[0].name);
    container_free(&built);
}

static void without_memory_the_step_can_be_repeated(void **state) {
    (void)state;
    Container built;
    FailAlloc alloc;
    FailDestination fail;
    build(&built);
    fail_alloc_init(&alloc);
    fail_destination_init(&fail);
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    options.allocator = &alloc.allocator;
    options.destination = &fail.destination;
    options.label = "socket";
    options.label_len = 6;
    uint64_t failures = 1;
    for (uint64_t k = 1; failures; k++) {
        fail_alloc_arm(&alloc, k, 0);
        failures = read_stubbornly(&built, &options, HURRAY_ERR_NO_MEMORY);
        fail_alloc_assert_empty(&alloc);
        fail_destination_assert_empty(&fail);
    }
    container_free(&built);
}

static void a_destination_that_froze_wrongly_costs_the_stream(void **state) {
    (void)state;
    Container built;
    FailDestination fail;
    HurrayError error;
    build(&built);
    fail_destination_init(&fail);
    fail.shift = 8;
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    options.destination = &fail.destination;
    assert_int_equal(first_failure(built.bytes, built.len, &options, &error), HURRAY_ERR_INVALID_LAYOUT);
    fail_destination_assert_empty(&fail);
    container_free(&built);
}

static void options_and_pointers_are_checked(void **state) {
    (void)state;
    HurrayStreamReaderCore *core = NULL;
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    HurrayError error = HURRAY_ERROR_INIT;
    options.flags = 64;
    assert_int_equal(hurray_stream_reader_core_new(&options, &core, &error), HURRAY_ERR_INVALID_ARGUMENT);
    options.flags = 0;
    options.label_len = 2;
    assert_int_equal(hurray_stream_reader_core_new(&options, &core, &error), HURRAY_ERR_NULL_POINTER);
    options.label_len = 0;
    options.max_composite_depth = 100;
    assert_int_equal(hurray_stream_reader_core_new(&options, &core, &error), HURRAY_ERR_INVALID_ARGUMENT);
    options.struct_size = 1;
    assert_int_equal(hurray_stream_reader_core_new(&options, &core, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_stream_reader_core_new(NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    core = core_of(NULL);
    HurrayStep step;
    HurrayWindow window;
    uint8_t *ptr;
    size_t len;
    assert_int_equal(hurray_stream_reader_core_step(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_reader_core_step(NULL, &step), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_reader_core_input_dst(core, NULL, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_reader_core_input_dst(NULL, &ptr, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_reader_core_input_window(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_reader_core_input_window(NULL, &window), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_reader_core_report_filled(NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_reader_core_take_tensor(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_reader_core_abandon(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_reader_core_poison(NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_reader_core_is_unusable(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_null(hurray_stream_reader_core_last_error(NULL));
    hurray_stream_reader_core_destroy(&core);
    assert_int_equal(hurray_stream_reader_core_destroy(&core), HURRAY_OK);
    assert_int_equal(hurray_stream_reader_core_destroy(NULL), HURRAY_ERR_NULL_POINTER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_come_one_after_another_and_then_the_end),
        cmocka_unit_test(a_stream_cut_between_items_ends_and_anywhere_else_is_truncated),
        cmocka_unit_test(bad_descriptors_and_limits_end_the_stream),
        cmocka_unit_test(a_huge_promise_is_refused_before_memory_is_taken),
        cmocka_unit_test(a_count_that_was_lost_poisons_by_name),
        cmocka_unit_test(abandoning_is_free_between_items_and_for_good_inside_one),
        cmocka_unit_test(after_a_failing_destination_the_step_can_be_repeated),
        cmocka_unit_test(without_memory_the_step_can_be_repeated),
        cmocka_unit_test(a_destination_that_froze_wrongly_costs_the_stream),
        cmocka_unit_test(options_and_pointers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
