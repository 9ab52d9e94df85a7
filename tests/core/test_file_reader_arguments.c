/* What the file reader core refuses before it does anything. */
#include "hurray/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void options_are_checked(void **state) {
    (void)state;
    HurrayFileReaderCore *core = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    options.flags = 1u << 20;
    assert_int_equal(hurray_file_reader_core_new(1000, &options, &core, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "flags");
    options.flags = 0;
    options.verify_data = 3;
    assert_int_equal(hurray_file_reader_core_new(1000, &options, &core, &error), HURRAY_ERR_INVALID_ARGUMENT);
    options.verify_data = 0;
    options.max_composite_depth = 65;
    assert_int_equal(hurray_file_reader_core_new(1000, &options, &core, &error), HURRAY_ERR_INVALID_ARGUMENT);
    options.max_composite_depth = 64;
    options.label_len = 1;
    assert_int_equal(hurray_file_reader_core_new(1000, &options, &core, &error), HURRAY_ERR_NULL_POINTER);
    options.label_len = 0;
    options.struct_size = 8;
    assert_int_equal(hurray_file_reader_core_new(1000, &options, &core, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_file_reader_core_new(1000, NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_null(core);
    assert_int_equal(hurray_file_reader_core_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_destroy(&core), HURRAY_OK);
}

static void a_null_pointer_is_told_before_anything_else(void **state) {
    (void)state;
    HurrayStep step;
    HurrayWindow window;
    HurrayFileReaderCore *core = NULL;
    size_t len;
    uint8_t *ptr;
    uint64_t n;
    uint32_t reason;
    assert_int_equal(hurray_file_reader_core_new(1000, NULL, &core, NULL), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_step(NULL, &step), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_step(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_input_dst(core, &ptr, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_input_dst(NULL, &ptr, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_input_window(NULL, &window), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_report_filled(NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_begin_tensor(core, NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_begin_composite(NULL, "a", 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_take_tensor(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_abandon(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_tensor_count(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_find(core, NULL, 1, &n), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_info(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_is_unusable(NULL, &reason), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_poison(NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_core_poison(core, 0), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_file_reader_core_poison(core, 7), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_file_reader_core_poison(core, HURRAY_UNUSABLE_POISONED), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_file_reader_core_is_unusable(core, &reason), HURRAY_OK);
    assert_int_equal(reason, HURRAY_UNUSABLE_POISONED);
    HurrayFileReaderCore *fork = NULL;
    assert_int_equal(hurray_file_reader_core_fork(NULL, &fork, NULL), HURRAY_ERR_NULL_POINTER);
    assert_null(hurray_file_reader_core_last_error(NULL));
    hurray_file_reader_core_destroy(&core);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_null_pointer_is_told_before_anything_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
