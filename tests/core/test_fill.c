/* Stored checksums while a tensor is filled, through the file reader core. */
#include "core/fill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/containers.h"
#include "support/fail_destination.h"
#include "support/file_drive.h"

typedef struct Setup {
    Container built;
    FailDestination fail;
    FileDrive drive;
    HurrayFileReaderOptions options;
} Setup;

static const HurrayBufferHandle handles[3] = {
    {.byte_size = 300, .alignment = 64}, {.byte_size = 0, .alignment = 1}, {.byte_size = 9000, .alignment = 4096}};

static void make(Setup *s, uint32_t flags, uint32_t verify) {
    memset(s, 0, sizeof *s);
    container_begin_file(&s->built, 4096);
    container_add(&s->built, "head", make_group(0));
    container_add(&s->built, "t", make_many(handles, 3));
    container_finish(&s->built, flags, NULL, 0);
    fail_destination_init(&s->fail);
    s->options = (HurrayFileReaderOptions)HURRAY_FILE_READER_OPTIONS_INIT;
    s->options.verify_data = verify;
    s->options.destination = &s->fail.destination;
    s->drive = (FileDrive){.bytes = s->built.bytes, .len = s->built.len, .tail = SIZE_MAX};
}

static HurrayStatus read_t(Setup *s, HurrayError *error) {
    HurrayFileReaderCore *core = NULL;
    HurrayStep step;
    HurrayTensor *tensor = NULL;
    assert_int_equal(hurray_file_reader_core_new(s->built.len, &s->options, &core, NULL), HURRAY_OK);
    s->drive.tail = SIZE_MAX;
    assert_int_equal(file_drive(&s->drive, core, &step), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_begin_tensor(core, "t", 1), HURRAY_OK);
    s->drive.tail = SIZE_MAX;
    s->drive.ranges = 0;
    HurrayStatus status = file_drive(&s->drive, core, &step);
    if (status == HURRAY_OK) {
        assert_int_equal(hurray_file_reader_core_take_tensor(core, &tensor), HURRAY_OK);
        hurray_tensor_destroy(&tensor);
    }
    if (error) *error = *hurray_file_reader_core_last_error(core);
    hurray_file_reader_core_destroy(&core);
    fail_destination_assert_empty(&s->fail);
    return status;
}

static void damage(Setup *s, uint32_t buffer, uint64_t at) {
    s->built.bytes[s->built.rows[1].data_offset + (buffer ? 4096 : 0) + at] ^= 0x10;
}

static void a_flipped_bit_of_payload_is_found_wherever_it_is(void **state) {
    (void)state;
    static const uint64_t places[] = {0, 1, 4095, 4096, 8999};
    for (size_t every = 0; every < 3; every++)
        for (size_t p = 0; p < 5; p++)
            for (uint32_t buffer = 0; buffer < 3; buffer += 2) {
                Setup s;
                HurrayError error;
                if (buffer == 0 && places[p] > 299) continue;
                make(&s, BUILD_SUMS, HURRAY_VERIFY_STORED);
                s.drive.every = every ? every * 1000 - 1 : 0;
                s.fail.window_bytes = every * 1500;
                assert_int_equal(read_t(&s, NULL), HURRAY_OK);
                damage(&s, buffer, places[p]);
                assert_int_equal(read_t(&s, &error), HURRAY_ERR_CHECKSUM);
                assert_int_equal(error.buffer_index, buffer);
                assert_string_equal(error.tensor, "t");
                s.options.verify_data = HURRAY_VERIFY_NONE;
                assert_int_equal(read_t(&s, NULL), HURRAY_OK);
                container_free(&s.built);
            }
}

static void without_stored_sums_only_required_fails_and_before_the_payload(void **state) {
    (void)state;
    Setup s;
    HurrayError error;
    make(&s, 0, HURRAY_VERIFY_STORED);
    assert_int_equal(read_t(&s, NULL), HURRAY_OK);
    assert_int_equal(s.fail.requests[0].flags, 0);
    s.options.verify_data = HURRAY_VERIFY_REQUIRED;
    assert_int_equal(read_t(&s, &error), HURRAY_ERR_CHECKSUM);
    assert_int_equal(s.drive.ranges, 1);
    container_free(&s.built);
    make(&s, BUILD_BAD_SUMS, HURRAY_VERIFY_STORED);
    assert_int_equal(read_t(&s, &error), HURRAY_ERR_CHECKSUM);
    assert_non_null(strstr(error.message, "metadata")); /* a tool may have copied another file's */
    container_free(&s.built);
}

static void prefilled_bytes_are_checked_too(void **state) {
    (void)state;
    Setup s;
    HurrayError error;
    make(&s, BUILD_SUMS, HURRAY_VERIFY_REQUIRED);
    s.fail.prefilled = s.built.bytes;
    assert_int_equal(read_t(&s, NULL), HURRAY_OK);
    assert_int_equal(s.drive.ranges, 1); /* the descriptor; no payload is read */
    assert_int_equal(s.fail.windows, 0);
    assert_true(s.fail.requests[0].flags & HURRAY_REQUEST_WILL_READ);
    damage(&s, 2, 17);
    assert_int_equal(read_t(&s, &error), HURRAY_ERR_CHECKSUM);
    assert_int_equal(error.buffer_index, 2);
    s.fail.hide = true; /* the host cannot read them: nothing is verified, unless it must be */
    s.options.verify_data = HURRAY_VERIFY_STORED;
    assert_int_equal(read_t(&s, NULL), HURRAY_OK);
    s.options.verify_data = HURRAY_VERIFY_REQUIRED;
    assert_int_equal(read_t(&s, &error), HURRAY_ERR_CHECKSUM);
    container_free(&s.built);
}

static void slack_around_a_window_ends_where_bytes_are_in_place(void **state) {
    (void)state;
    HryFill fill;
    uint8_t bytes[64];
    memset(&fill, 0, sizeof fill);
    fill.window = (HurrayWindow){.offset = 100, .len = 32, .source_offset = 1000, .ptr = bytes + 16, .slack_before = 16, .slack_after = 8};
    HurrayWindow window = hry_fill_window(&fill);
    assert_int_equal(window.slack_before, 16);
    assert_int_equal(window.slack_after, 8);
    fill.filled = 5;
    window = hry_fill_window(&fill);
    assert_int_equal(window.slack_before, 0);
    assert_int_equal(window.offset, 105);
    assert_int_equal(window.source_offset, 1005);
    assert_int_equal(window.len, 27);
    assert_ptr_equal(window.ptr, bytes + 21);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_bit_of_payload_is_found_wherever_it_is),
        cmocka_unit_test(without_stored_sums_only_required_fails_and_before_the_payload),
        cmocka_unit_test(prefilled_bytes_are_checked_too),
        cmocka_unit_test(slack_around_a_window_ends_where_bytes_are_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
