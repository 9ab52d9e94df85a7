#include "format/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t bit_by_bit(const uint8_t *at, size_t len) {
    uint32_t state = UINT32_MAX;
    for (size_t i = 0; i < len; i++) {
        state ^= at[i];
        for (int b = 0; b < 8; b++) state = state & 1 ? state >> 1 ^ UINT32_C(0x82F63B78) : state >> 1;
    }
    return ~state;
}

static void the_published_check_values_come_out(void **state) {
    (void)state;
    uint8_t zeros[32] = {0};
    assert_int_equal(hry_crc32c(0, "123456789", 9), 0xE3069283);
    assert_int_equal(hry_crc32c_portable(0, "123456789", 9), 0xE3069283);
    assert_int_equal(hry_crc32c(0, zeros, 32), 0x8A9136AA);
    assert_int_equal(hry_crc32c(0, NULL, 0), 0);
    assert_int_equal(hry_crc32c_portable(0, NULL, 0), 0);
}

static void both_ways_agree_with_the_definition_at_every_length_and_address(void **state) {
    (void)state;
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 + i / 7);
    for (size_t start = 0; start < 9; start++)
        for (size_t len = 0; len <= sizeof bytes - start; len += len < 40 ? 1 : 13) {
            uint32_t want = bit_by_bit(bytes + start, len);
            assert_int_equal(hry_crc32c(0, bytes + start, len), want);
            assert_int_equal(hry_crc32c_portable(0, bytes + start, len), want);
        }
}

static void pieces_continue_and_join(void **state) {
    (void)state;
    size_t size = 70001;
    uint8_t *bytes = malloc(size);
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(i ^ i >> 8);
    uint32_t whole = hry_crc32c(0, bytes, size);
    const size_t cuts[] = {0, 1, 7, 8, 4096, 65536, size - 1, size};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        uint32_t a = hry_crc32c(0, bytes, cuts[i]), b = hry_crc32c(0, bytes + cuts[i], size - cuts[i]);
        assert_int_equal(hry_crc32c(a, bytes + cuts[i], size - cuts[i]), whole);
        assert_int_equal(hry_crc32c_portable(a, bytes + cuts[i], size - cuts[i]), whole);
        assert_int_equal(hry_crc32c_join(a, b, size - cuts[i]), whole);
    }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_check_values_come_out),
        cmocka_unit_test(both_ways_agree_with_the_definition_at_every_length_and_address),
        cmocka_unit_test(pieces_continue_and_join),
    };
    return cmocka_run_group_tests_name("format/crc32c", tests, NULL, NULL);
}
