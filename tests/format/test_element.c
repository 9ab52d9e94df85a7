#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "format/element.h"

static void the_listed_tags_are_those_of_the_format(void **state) {
    (void)state;
    static const struct {
        uint8_t tag, bits;
        const char *name;
    } listed[] = {{0x01, 16, "float16"},    {0x02, 16, "bfloat16"},   {0x03, 32, "float32"},    {0x04, 64, "float64"},
                  {0x10, 8, "int8"},        {0x11, 8, "uint8"},       {0x12, 16, "int16"},      {0x13, 16, "uint16"},
                  {0x14, 32, "int32"},      {0x15, 32, "uint32"},     {0x16, 64, "int64"},      {0x17, 64, "uint64"},
                  {0x20, 1, "bool"},        {0x40, 8, "float8_e4m3"}, {0x41, 8, "float8_e5m2"}, {0x42, 8, "float8_e8m0"},
                  {0x43, 4, "float4_e2m1"}, {0x44, 6, "float6_e2m3"}, {0x45, 6, "float6_e3m2"}, {0x46, 128, "float128"},
                  {0x48, 4, "int4"},        {0x49, 4, "uint4"},       {0x4A, 2, "int2"},        {0x4B, 2, "uint2"},
                  {0x50, 64, "complex64"},  {0x51, 128, "complex128"}};
    size_t next = 0;
    for (unsigned tag = 0; tag < 256; tag++) {
        bool expected = next < sizeof listed / sizeof *listed && listed[next].tag == tag;
        assert_int_equal(hry_element_is_listed((uint8_t)tag), expected);
        assert_int_equal(hry_tag_is_private((uint8_t)tag), tag >= 0xF0 && tag <= 0xFE);
        assert_int_equal(hry_element_bits((uint8_t)tag), expected ? listed[next].bits : 0);
        if (expected) {
            uint8_t found = 0;
            assert_string_equal(hry_element_name((uint8_t)tag), listed[next].name);
            assert_true(hry_element_find(listed[next].name, &found));
            assert_int_equal(found, tag);
            next++;
        } else {
            assert_int_equal(hry_element_kind((uint8_t)tag), HRY_ELEMENT_UNKNOWN);
            assert_string_equal(hry_element_name((uint8_t)tag), hry_tag_is_private((uint8_t)tag) ? "private" : "unknown");
        }
    }
    assert_int_equal(next, sizeof listed / sizeof *listed);
    uint8_t tag;
    assert_false(hry_element_find("float31", &tag));
}

static void kinds_tell_floats_from_integers(void **state) {
    (void)state;
    assert_true(hry_element_is_float(HURRAY_TYPE_FLOAT4_E2M1));
    assert_true(hry_element_is_float(HURRAY_TYPE_FLOAT8_E8M0));
    assert_false(hry_element_is_float(HURRAY_TYPE_COMPLEX64));
    assert_false(hry_element_is_float(HURRAY_TYPE_INT2));
    assert_false(hry_element_is_float(0xF0));
    assert_true(hry_element_is_integer(HURRAY_TYPE_INT2));
    assert_true(hry_element_is_integer(HURRAY_TYPE_UINT64));
    assert_false(hry_element_is_integer(HURRAY_TYPE_BOOL));
    assert_int_equal(hry_element_kind(HURRAY_TYPE_BOOL), HRY_ELEMENT_BOOL);
    assert_int_equal(hry_element_kind(HURRAY_TYPE_COMPLEX128), HRY_ELEMENT_COMPLEX);
}

static void integer_ranges_are_those_of_twos_complement(void **state) {
    (void)state;
    static const struct {
        uint8_t tag;
        int64_t least, greatest;
    } rows[] = {{HURRAY_TYPE_INT2, -2, 1},          {HURRAY_TYPE_UINT2, 0, 3},           {HURRAY_TYPE_INT4, -8, 7},
                {HURRAY_TYPE_UINT4, 0, 15},         {HURRAY_TYPE_INT8, -128, 127},       {HURRAY_TYPE_UINT8, 0, 255},
                {HURRAY_TYPE_INT16, -32768, 32767}, {HURRAY_TYPE_UINT32, 0, 4294967295}, {HURRAY_TYPE_INT32, -2147483648, 2147483647}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t least, greatest;
        hry_element_integer_range(rows[i].tag, &least, &greatest);
        assert_true(least == rows[i].least);
        assert_true(greatest == rows[i].greatest);
    }
}

static void dense_sizes_round_up_to_bytes_and_groups(void **state) {
    (void)state;
    static const struct {
        uint64_t n;
        uint32_t bits;
        uint64_t bytes;
    } rows[] = {{0, 1, 0},
                {1, 1, 1},
                {8, 1, 1},
                {9, 1, 2},
                {3, 2, 1},
                {5, 2, 2},
                {1, 4, 1},
                {3, 4, 2},
                {0, 6, 0},
                {1, 6, 3},
                {4, 6, 3},
                {5, 6, 6},
                {7, 8, 7},
                {7, 16, 14},
                {3, 24, 9},
                {1, 128, 16},
                {UINT64_MAX, 1, UINT64_C(1) << 61},
                {UINT64_MAX, 4, UINT64_C(1) << 63},
                {UINT64_MAX, 8, UINT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t bytes = 0;
        assert_true(hry_bits_bytes(rows[i].n, rows[i].bits, &bytes));
        assert_true(bytes == rows[i].bytes);
    }
}

static void a_size_beyond_64_bits_is_refused(void **state) {
    (void)state;
    uint64_t bytes = 7;
    assert_false(hry_bits_bytes(UINT64_C(1) << 63, 16, &bytes));
    assert_true(hry_bits_bytes(UINT64_MAX, 6, &bytes)); /* 3/4 of it */
    assert_true(bytes == (UINT64_C(1) << 62) * 3);
    assert_false(hry_element_bytes(HURRAY_TYPE_FLOAT32, UINT64_C(1) << 62, &bytes));
    assert_false(hry_element_bytes(0xF0, 1, &bytes));
    assert_false(hry_element_bytes(0x05, 1, &bytes));
    assert_true(hry_element_bytes(HURRAY_TYPE_FLOAT32, 3, &bytes));
    assert_int_equal(bytes, 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_listed_tags_are_those_of_the_format),
        cmocka_unit_test(kinds_tell_floats_from_integers),
        cmocka_unit_test(integer_ranges_are_those_of_twos_complement),
        cmocka_unit_test(dense_sizes_round_up_to_bytes_and_groups),
        cmocka_unit_test(a_size_beyond_64_bits_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
