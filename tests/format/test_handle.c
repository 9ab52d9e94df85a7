#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "format/handle.h"

static void devices_and_classes_pair_as_the_format_lists_them(void **state) {
    (void)state;
    /* classes 0 to 3 of devices 0 to 8, one bit each */
    static const uint8_t legal[] = {0x7, 0xF, 0xF, 0x7, 0xF, 0x1, 0x7, 0xF, 0x7};
    for (unsigned device = 0; device < 256; device++)
        for (unsigned memory = 0; memory < 256; memory++) {
            bool private_device = device >= 0xF0 && device != 0xFF, private_memory = memory >= 0xF0 && memory != 0xFF;
            bool expected = device <= 8 ? memory < 4 && (legal[device] >> memory & 1) : private_device && (memory == 0 || private_memory);
            HurrayBufferHandle handle = {1, 64, (uint8_t)device, 0, (uint8_t)memory, 0};
            HurrayError error;
            assert_int_equal(hry_handle_check(&handle, 3, 1000, &error) == HURRAY_OK, expected);
            if (expected) continue;
            assert_int_equal(error.code, HURRAY_ERR_INVALID_TYPE);
            bool known = device <= 8 || private_device;
            assert_string_equal(error.field, known ? "buffers[3].memory_class" : "buffers[3].device_tag");
            assert_int_equal(error.offset, known ? 1014 : 1012);
            assert_int_equal(error.buffer_index, 3);
        }
}

static void sync_modes_are_three_and_a_cpu_has_one(void **state) {
    (void)state;
    for (unsigned mode = 0; mode < 256; mode++) {
        HurrayBufferHandle cpu = {1, 64, 0, (uint8_t)mode, 0, 0}, cuda = {1, 64, 1, (uint8_t)mode, 0, 0};
        HurrayError error;
        assert_int_equal(hry_handle_check(&cpu, 0, HRY_NO_OFFSET, &error), mode == 0 ? HURRAY_OK : HURRAY_ERR_INVALID_SYNC_MODE);
        assert_int_equal(hry_handle_check(&cuda, 0, 0, &error), mode <= 2 ? HURRAY_OK : HURRAY_ERR_INVALID_SYNC_MODE);
        if (mode > 2) assert_int_equal(error.offset, 13);
    }
}

static void alignment_is_a_power_of_two_of_at_least_64_unless_empty(void **state) {
    (void)state;
    static const struct {
        uint64_t size;
        uint32_t alignment;
        bool legal;
    } rows[] = {{1, 64, true},  {1, 4096, true}, {1, 0x80000000, true}, {1, 32, false}, {1, 0, false},
                {1, 96, false}, {0, 1, true},    {0, 2, true},          {0, 0, false},  {0, 3, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        HurrayBufferHandle handle = {rows[i].size, rows[i].alignment, 0, 0, 0, 0};
        HurrayError error;
        assert_int_equal(hry_handle_check(&handle, 0, 0, &error) == HURRAY_OK, rows[i].legal);
        if (!rows[i].legal) assert_string_equal(error.field, "buffers[0].alignment");
    }
}

static void a_table_has_one_device_and_one_class(void **state) {
    (void)state;
    HurrayBufferHandle handles[] = {{1, 64, 1, 0, 2, 0}, {2, 64, 1, 1, 2, 0}, {3, 64, 1, 2, 2, 0}};
    HurrayError error;
    assert_int_equal(hry_handles_check(handles, 3, 100, &error), HURRAY_OK);
    handles[2].memory_class = 0;
    assert_int_equal(hry_handles_check(handles, 3, 100, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(error.offset, 100 + 32 + 14);
    handles[1].device_tag = 2;
    assert_int_equal(hry_handles_check(handles, 3, 100, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_string_equal(error.field, "buffers[1].device_tag");
    assert_int_equal(hry_handles_check(NULL, 0, 100, &error), HURRAY_OK);
}

static void sixteen_bytes_go_there_and_back(void **state) {
    (void)state;
    const HurrayBufferHandle handle = {0x0102030405060708, 0x1000, 0xF1, 2, 0xF2, 0};
    uint8_t bytes[16];
    HryEmit emit = hry_emit(bytes, sizeof bytes);
    hry_handle_encode(&emit, &handle);
    assert_int_equal(emit.len, 16);
    assert_memory_equal(bytes, "\x08\7\6\5\4\3\2\1\0\x10\0\0\xF1\2\xF2\0", 16);
    HryCursor cursor = hry_cursor(bytes, sizeof bytes, 0);
    HurrayBufferHandle back;
    hry_handle_decode(&cursor, &back);
    assert_memory_equal(&back, &handle, sizeof back);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_and_classes_pair_as_the_format_lists_them),
        cmocka_unit_test(sync_modes_are_three_and_a_cpu_has_one),
        cmocka_unit_test(alignment_is_a_power_of_two_of_at_least_64_unless_empty),
        cmocka_unit_test(a_table_has_one_device_and_one_class),
        cmocka_unit_test(sixteen_bytes_go_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
