#include "format/codes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/contents.h"

static void the_examples_of_the_format_are_packed_so(void **state) {
    (void)state;
    static const struct {
        uint32_t bits;
        uint64_t count;
        uint8_t codes[5], bytes[3];
        size_t size;
    } cases[] = {{6, 4, {1, 2, 4, 8}, {0x81, 0x40, 0x20}, 3},
                 {4, 3, {5, 12, 3}, {0xC5, 0x03}, 2},
                 {2, 3, {3, 1, 2}, {0x27}, 1},
                 {1, 5, {1, 0, 1, 1, 0}, {0x0D}, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        uint8_t packed[3] = {0}, codes[5];
        hry_codes_put(packed, cases[c].bits, 0, cases[c].count, cases[c].codes);
        assert_memory_equal(packed, cases[c].bytes, cases[c].size);
        hry_codes_get(packed, cases[c].bits, 0, 1, cases[c].count, codes);
        assert_memory_equal(codes, cases[c].codes, cases[c].count);
    }
}

/* Bit by bit, from the sentence "a stream of bits, least significant first". */
static unsigned literal_get(const uint8_t *base, uint32_t bits, uint64_t o) {
    unsigned code = 0;
    for (uint32_t b = 0; b < bits; b++) code |= (unsigned)(base[(o * bits + b) / 8] >> (o * bits + b) % 8 & 1) << b;
    return code;
}

static void any_piece_of_a_packed_array_is_read_and_written_like_bit_by_bit(void **state) {
    (void)state;
    static const uint32_t widths[] = {1, 2, 4, 6};
    uint64_t seed = 7;
    for (size_t w = 0; w < 4; w++) {
        uint32_t bits = widths[w];
        size_t size = 96, count = size * 8 / bits;
        uint8_t *base = malloc(size), codes[768], *copy = malloc(size);
        assert_non_null(base);
        assert_non_null(copy);
        for (size_t i = 0; i < size; i++) base[i] = (uint8_t)contents_random(&seed);
        for (uint64_t first = 0; first < 20; first++)
            for (uint64_t n = 0; first + n <= count; n += n < 40 ? 1 : 61) {
                hry_codes_get(base, bits, (int64_t)first, 1, n, codes);
                for (uint64_t k = 0; k < n; k++) assert_int_equal(codes[k], literal_get(base, bits, first + k));
                memset(copy, 0xA5, size);
                hry_codes_put(copy, bits, first, n, codes);
                for (uint64_t k = 0; k < count; k++) {
                    uint8_t untouched[96];
                    memset(untouched, 0xA5, sizeof untouched);
                    bool inside = k >= first && k < first + n;
                    assert_int_equal(literal_get(copy, bits, k), literal_get(inside ? base : untouched, bits, k));
                }
                memset(copy, 0xA5, size);
                hry_codes_copy(base, bits, first, n, copy);
                uint64_t unit = bits == 6 ? 4 : 8 / bits, room = (n + unit - 1) / unit * unit;
                for (uint64_t k = 0; k < room; k++)
                    assert_int_equal(literal_get(copy, bits, k), k < n ? literal_get(base, bits, first + k) : 0);
            }
        for (int64_t step = -3; step <= 3; step++) {
            hry_codes_get(base, bits, 40, step, 12, codes);
            for (int64_t k = 0; k < 12; k++) assert_int_equal(codes[k], literal_get(base, bits, (uint64_t)(40 + k * step)));
        }
        free(base);
        free(copy);
    }
}

static void whole_bytes_of_any_width_are_gathered_by_step(void **state) {
    (void)state;
    static const uint32_t widths[] = {1, 2, 3, 4, 8, 16, 33};
    uint8_t base[33 * 20], codes[33 * 6], copy[33 * 6];
    for (size_t i = 0; i < sizeof base; i++) base[i] = (uint8_t)(i * 7);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int64_t step = -3; step <= 3; step++) {
            size_t width = widths[w];
            hry_codes_get(base, widths[w] * 8, 16 - (step > 0 ? 15 : 0), step, 6, codes);
            for (int64_t k = 0; k < 6; k++)
                assert_memory_equal(codes + (size_t)k * width, base + (size_t)(16 - (step > 0 ? 15 : 0) + k * step) * width, width);
            hry_codes_put(copy, widths[w] * 8, 0, 6, codes);
            assert_memory_equal(copy, codes, 6 * width);
            hry_codes_copy(base, widths[w] * 8, 2, 3, copy);
            assert_memory_equal(copy, base + 2 * width, 3 * width);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_format_are_packed_so),
        cmocka_unit_test(any_piece_of_a_packed_array_is_read_and_written_like_bit_by_bit),
        cmocka_unit_test(whole_bytes_of_any_width_are_gathered_by_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
