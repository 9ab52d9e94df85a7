#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/sections.h"

static void refused(HurrayStatus status, const HurrayError *error, const char *field, uint64_t offset) {
    assert_int_equal(status, HURRAY_ERR_INVALID_LAYOUT);
    assert_string_equal(error->field, field);
    assert_int_equal(error->offset, offset);
    assert_true(error->message[0]);
}

static void extension_widths_pack_or_are_whole_bytes(void **state) {
    (void)state;
    HurrayError error;
    for (uint32_t bits = 0; bits < 300; bits++)
        for (unsigned packing = 0; packing < 10; packing++) {
            HurrayExtensionType x = HURRAY_EXTENSION_TYPE_INIT;
            bool width = bits == 1 || bits == 2 || bits == 4 || (bits && bits % 8 == 0);
            bool expected = width && packing == (bits >= 8 ? 1 : 8 / bits);
            x.bit_width = bits;
            x.packing_factor = (uint8_t)packing;
            HurrayStatus status = hry_extension_check(&x, 50, &error);
            assert_int_equal(status == HURRAY_OK, expected);
            if (!expected) refused(status, &error, width ? "extension_type.packing_factor" : "extension_type.bit_width", width ? 54 : 50);
        }
}

static void extension_fields_fit_floats_or_integers(void **state) {
    (void)state;
    static const struct {
        HurrayExtensionType type;
        const char *field; /* NULL: accepted */
        uint64_t offset;
    } rows[] = {
        {{.is_signed = 1}, NULL, 0},
        {{.is_float = 1, .sign_bits = 1, .exponent_bits = 4, .mantissa_bits = 3, .exponent_bias = 8, .has_nan = 1, .has_inf = 1}, NULL, 0},
        {{.is_float = 2}, "extension_type.is_float", 5},
        {{.is_signed = 2}, "extension_type.is_signed", 6},
        {{.is_float = 1, .is_signed = 1}, "extension_type.is_signed", 6},
        {{.is_float = 1, .sign_bits = 2}, "extension_type.sign_bits", 7},
        {{.sign_bits = 1}, "extension_type.sign_bits", 7},
        {{.exponent_bits = 1}, "extension_type.exponent_bits", 8},
        {{.mantissa_bits = 1}, "extension_type.mantissa_bits", 9},
        {{.exponent_bias = 1}, "extension_type.exponent_bias", 12},
        {{.is_float = 1, .has_nan = 2}, "extension_type.has_nan", 16},
        {{.is_float = 1, .has_inf = 2}, "extension_type.has_inf", 17},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        HurrayExtensionType x = rows[i].type;
        HurrayError error;
        x.bit_width = 8;
        x.packing_factor = 1;
        HurrayStatus status = hry_extension_check(&x, 0, &error);
        if (rows[i].field)
            refused(status, &error, rows[i].field, rows[i].offset);
        else
            assert_int_equal(status, HURRAY_OK);
    }
}

static void extension_bytes_are_checked_as_they_are_read(void **state) {
    (void)state;
    const uint8_t good[20] = {8, 0, 0, 0, 1, 1, 0, 1, 4, 3, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0};
    static const struct {
        uint8_t at;
        const char *field;
    } rows[] = {{5, "extension_type.is_float"},  {6, "extension_type.is_signed"}, {10, "extension_type.reserved"},
                {11, "extension_type.reserved"}, {16, "extension_type.has_nan"},  {17, "extension_type.has_inf"},
                {18, "extension_type.reserved"}, {19, "extension_type.reserved"}};
    HurrayExtensionType x;
    HurrayError error;
    HryCursor cursor = hry_cursor(good, sizeof good, 100);
    assert_int_equal(hry_extension_decode(&cursor, &x, &error), HURRAY_OK);
    assert_int_equal(x.exponent_bias, 8);
    uint8_t again[20];
    HryEmit emit = hry_emit(again, sizeof again);
    hry_extension_encode(&emit, &x);
    assert_memory_equal(again, good, sizeof good);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[20];
        memcpy(bytes, good, sizeof bytes);
        bytes[rows[i].at] = 2;
        cursor = hry_cursor(bytes, sizeof bytes, 100);
        refused(hry_extension_decode(&cursor, &x, &error), &error, rows[i].field, 100u + rows[i].at);
    }
    cursor = hry_cursor(good, 19, 100);
    refused(hry_extension_decode(&cursor, &x, &error), &error, "extension_type", 100);
}

static void an_integers_specials_are_dropped(void **state) {
    (void)state;
    const uint8_t bytes[20] = {24, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0};
    HurrayExtensionType x;
    HurrayError error;
    HryCursor cursor = hry_cursor(bytes, sizeof bytes, 0);
    assert_int_equal(hry_extension_decode(&cursor, &x, &error), HURRAY_OK);
    assert_int_equal(x.bit_width, 24);
    assert_int_equal(x.has_nan + x.has_inf, 0);
}

static void statistics_keep_every_bit_that_counts(void **state) {
    (void)state;
    uint8_t bytes[72], again[72];
    HurrayStatistics s;
    HurrayError error;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(0xF1 + i); /* among them patterns of NaN */
    memset(bytes + 16, 0xFF, 6);
    bytes[22] = 0xF7, bytes[23] = 0x7F; /* a signalling NaN */
    for (uint32_t mask = 0; mask < 64; mask++) {
        memset(bytes, 0, 8);
        bytes[0] = (uint8_t)mask;
        memset(bytes + 68, 0, 4);
        HryCursor cursor = hry_cursor(bytes, sizeof bytes, 0);
        assert_int_equal(hry_statistics_decode(&cursor, &s, &error), HURRAY_OK);
        assert_int_equal(hry_statistics_check(&s, 0, &error), HURRAY_OK);
        HryEmit emit = hry_emit(again, sizeof again);
        hry_statistics_encode(&emit, &s);
        static const struct {
            uint8_t bit, from, to;
        } fields[] = {{0, 8, 16}, {1, 16, 24}, {2, 24, 48}, {3, 48, 64}, {4, 64, 66}, {5, 66, 68}};
        for (size_t i = 0; i < 6; i++)
            for (uint8_t at = fields[i].from; at < fields[i].to; at++)
                assert_int_equal(again[at], mask >> fields[i].bit & 1 ? bytes[at] : 0);
    }
}

static void statistics_are_rejected_for_mask_and_reserved_bytes_alone(void **state) {
    (void)state;
    uint8_t bytes[72] = {63};
    HurrayStatistics s;
    HurrayError error;
    for (size_t at = 0; at < 72; at++) {
        bool reserved = (at >= 4 && at < 8) || at >= 68;
        bytes[at] ^= 0x40;
        HryCursor cursor = hry_cursor(bytes, sizeof bytes, 200);
        HurrayStatus status = hry_statistics_decode(&cursor, &s, &error);
        if (status == HURRAY_OK) status = hry_statistics_check(&s, 200, &error);
        if (at < 4)
            refused(status, &error, "statistics.computed_mask", 200);
        else if (reserved)
            refused(status, &error, "statistics.reserved", 200 + at);
        else
            assert_int_equal(status, HURRAY_OK);
        bytes[at] ^= 0x40;
    }
}

static void a_writer_refuses_nan_for_a_ratio(void **state) {
    (void)state;
    HurrayDescriptor d;
    HurrayError error;
    memset(&d, 0, sizeof d);
    d.layout_tag = HURRAY_LAYOUT_ROW_MAJOR;
    d.statistics.computed_mask = 63;
    d.statistics.nnz = 99; /* a dense layout has no nnz of its own */
    assert_int_equal(hry_statistics_check_writable(&d, &error), HURRAY_OK);
    d.statistics.sparsity_ratio = NAN;
    refused(hry_statistics_check_writable(&d, &error), &error, "statistics.sparsity_ratio", HRY_NO_OFFSET);
    d.statistics.sparsity_ratio = 1;
    d.statistics.stddev = NAN;
    refused(hry_statistics_check_writable(&d, &error), &error, "statistics.stddev", HRY_NO_OFFSET);
}

static void a_shard_is_read_whole_and_lies_inside(void **state) {
    (void)state;
    uint64_t shape[] = {2, 3}, parent[2], offset[2];
    uint8_t bytes[32] = {4, [8] = 3, [16] = 2};
    HurrayDescriptor d;
    HurrayError error;
    memset(&d, 0, sizeof d);
    d.rank = 2;
    d.shape = shape;
    d.layout_tag = HURRAY_LAYOUT_ROW_MAJOR;
    for (size_t cut = 0; cut < 32; cut++) {
        HryCursor cursor = hry_cursor(bytes, cut, 0);
        assert_int_equal(hry_shard_decode(&cursor, 2, parent, offset, &d.shard, &error), HURRAY_ERR_INVALID_LAYOUT);
        assert_string_equal(error.field, cut < 16 ? "shard.parent_shape" : "shard.offset");
    }
    HryCursor cursor = hry_cursor(bytes, 32, 0);
    assert_int_equal(hry_shard_decode(&cursor, 2, parent, offset, &d.shard, &error), HURRAY_OK);
    assert_int_equal(hry_shard_check(&d, 0, &error), HURRAY_OK);
    offset[1] = UINT64_MAX; /* would wrap to inside */
    refused(hry_shard_check(&d, 0, &error), &error, "shard.offset", 24);
    offset[1] = 0;
    shape[1] = 4;
    refused(hry_shard_check(&d, 0, &error), &error, "shard.offset", 24);
    shape[1] = HURRAY_DYNAMIC_DIMENSION;
    refused(hry_shard_check(&d, 0, &error), &error, "shape", 8);
    d.layout_tag = HURRAY_LAYOUT_CSF;
    refused(hry_shard_check(&d, 0, &error), &error, "shard", 0);
    d.layout_tag = HURRAY_LAYOUT_BLOCK_PAGED;
    refused(hry_shard_check(&d, 0, &error), &error, "shard", 0);
}

static void a_member_has_a_role_and_zeros(void **state) {
    (void)state;
    HurrayDescriptor d;
    HurrayError error;
    memset(&d, 0, sizeof d);
    for (size_t at = 0; at < 16; at++) {
        uint8_t bytes[16] = {0};
        bytes[at] = 2;
        HryCursor cursor = hry_cursor(bytes, sizeof bytes, 0);
        HurrayStatus status = hry_member_decode(&cursor, &d.composite_member, &error);
        if (status == HURRAY_OK) status = hry_member_check(&d, 0, &error);
        refused(status, &error, at ? "composite_member.reserved" : "composite_member.role", at);
        cursor = hry_cursor(bytes, at, 0);
        assert_int_equal(hry_member_decode(&cursor, &d.composite_member, &error), HURRAY_ERR_INVALID_LAYOUT);
    }
    d.layout_tag = HURRAY_LAYOUT_COMPOSITE;
    d.composite_member.role = 1;
    refused(hry_member_check(&d, 7, &error), &error, "composite_member", 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extension_widths_pack_or_are_whole_bytes),
        cmocka_unit_test(extension_fields_fit_floats_or_integers),
        cmocka_unit_test(extension_bytes_are_checked_as_they_are_read),
        cmocka_unit_test(an_integers_specials_are_dropped),
        cmocka_unit_test(statistics_keep_every_bit_that_counts),
        cmocka_unit_test(statistics_are_rejected_for_mask_and_reserved_bytes_alone),
        cmocka_unit_test(a_writer_refuses_nan_for_a_ratio),
        cmocka_unit_test(a_shard_is_read_whole_and_lies_inside),
        cmocka_unit_test(a_member_has_a_role_and_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
