#include "format/sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/fail_alloc.h"

static HurrayKvEntry entry_of(const void *bytes, size_t len) {
    HurrayKvEntry entry = {
        .key = HRY_SUMS_KEY, .key_len = HRY_SUMS_KEY_LEN, .value = {.kind = HURRAY_KV_BYTES, .data = bytes, .data_len = len}};
    return entry;
}

static const uint8_t three[] = {1, 0, 0, 0, 3, 0, 0, 0, 1, 0, 2, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0x80};

static void the_bytes_are_those_of_the_format(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    uint8_t *bytes;
    size_t len;
    const uint8_t counts[] = {1, 0, 2};
    const uint32_t crcs[] = {1, 2, 0x80000003};
    fail_alloc_init(&alloc);
    assert_int_equal(hry_sums_encode(counts, 3, crcs, 3, &alloc.allocator, &bytes, &len, &error), HURRAY_OK);
    assert_int_equal(len, sizeof three);
    assert_memory_equal(bytes, three, sizeof three);
    hry_free(&alloc.allocator, bytes, len);
    fail_alloc_arm(&alloc, 1, 0);
    assert_int_equal(hry_sums_encode(counts, 3, crcs, 3, &alloc.allocator, &bytes, &len, &error), HURRAY_ERR_NO_MEMORY);
    fail_alloc_assert_empty(&alloc);
}

static void nothing_is_stored_without_buffers_or_beyond_32_bits(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    uint8_t *bytes;
    size_t len;
    const uint8_t counts[] = {0};
    const uint32_t crcs[] = {1};
    fail_alloc_init(&alloc);
    assert_int_equal(hry_sums_encode(counts, 1, crcs, 0, &alloc.allocator, &bytes, &len, &error), HURRAY_OK);
    assert_null(bytes);
    assert_int_equal(hry_sums_encode(counts, (uint64_t)UINT32_MAX + 1, crcs, 1, &alloc.allocator, &bytes, &len, &error), HURRAY_OK);
    assert_null(bytes);
    assert_int_equal(hry_sums_encode(counts, 1, crcs, UINT32_MAX / 4, &alloc.allocator, &bytes, &len, &error), HURRAY_OK);
    assert_null(bytes);
    assert_int_equal(hry_sums_encode(counts, 1, crcs, UINT64_MAX / 2, &alloc.allocator, &bytes, &len, &error), HURRAY_OK);
    assert_null(bytes);
    fail_alloc_assert_empty(&alloc);
}

static void a_sum_is_found_by_place_and_buffer(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    HrySums sums;
    uint32_t crc = 0;
    fail_alloc_init(&alloc);
    HurrayKvEntry entry = entry_of(three, sizeof three);
    assert_int_equal(hry_sums_open(&entry, 3, &alloc.allocator, &sums, &error), HURRAY_OK);
    assert_true(hry_sums_find(&sums, 0, 1, 0, &crc));
    assert_int_equal(crc, 1);
    assert_true(hry_sums_find(&sums, 2, 2, 1, &crc));
    assert_int_equal(crc, 0x80000003);
    assert_false(hry_sums_find(&sums, 1, 0, 0, &crc));
    assert_false(hry_sums_find(&sums, 2, 3, 1, &crc));
    assert_false(hry_sums_find(&sums, 2, 2, 2, &crc));
    assert_false(hry_sums_find(&sums, 3, 1, 0, &crc));
    hry_sums_clear(&sums);
    assert_false(hry_sums_find(&sums, 0, 1, 0, &crc));
    fail_alloc_arm(&alloc, 1, 0);
    assert_int_equal(hry_sums_open(&entry, 3, &alloc.allocator, &sums, &error), HURRAY_ERR_NO_MEMORY);
    fail_alloc_assert_empty(&alloc);
}

static void a_value_that_does_not_fit_is_as_if_not_stored(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    HrySums sums;
    uint32_t crc;
    fail_alloc_init(&alloc);
    for (size_t cut = 0; cut < sizeof three; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1);
        memcpy(exact, three, cut);
        HurrayKvEntry entry = entry_of(exact, cut);
        assert_int_equal(hry_sums_open(&entry, 3, &alloc.allocator, &sums, &error), HURRAY_OK);
        assert_false(hry_sums_find(&sums, 0, 1, 0, &crc));
        free(exact);
    }
    for (size_t at = 0; at < 11; at++) { /* version, tensor_count, counts */
        uint8_t bytes[sizeof three];
        memcpy(bytes, three, sizeof three);
        bytes[at] ^= 4;
        HurrayKvEntry entry = entry_of(bytes, sizeof bytes);
        assert_int_equal(hry_sums_open(&entry, 3, &alloc.allocator, &sums, &error), HURRAY_OK);
        assert_null(sums.counts);
    }
    HurrayKvEntry text = entry_of(three, sizeof three);
    text.value.kind = HURRAY_KV_STRING;
    assert_int_equal(hry_sums_open(&text, 3, &alloc.allocator, &sums, &error), HURRAY_OK);
    assert_null(sums.counts);
    assert_int_equal(hry_sums_open(NULL, 3, &alloc.allocator, &sums, &error), HURRAY_OK);
    assert_null(sums.counts);
    fail_alloc_assert_empty(&alloc);
}

static void many_tensors_are_reached_through_their_stretch(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static uint8_t counts[COUNT];
    static uint32_t crcs[COUNT * 3];
    FailAlloc alloc;
    HurrayError error;
    HrySums sums;
    uint8_t *bytes;
    size_t len;
    uint64_t total = 0;
    fail_alloc_init(&alloc);
    for (uint64_t i = 0; i < COUNT; i++) {
        counts[i] = (uint8_t)(i % 4);
        for (uint32_t k = 0; k < counts[i]; k++) crcs[total++] = (uint32_t)(i * 10 + k);
    }
    assert_int_equal(hry_sums_encode(counts, COUNT, crcs, total, &alloc.allocator, &bytes, &len, &error), HURRAY_OK);
    HurrayKvEntry entry = entry_of(bytes, len);
    assert_int_equal(hry_sums_open(&entry, COUNT, &alloc.allocator, &sums, &error), HURRAY_OK);
    for (uint64_t i = 0; i < COUNT; i++)
        for (uint32_t k = 0; k < counts[i]; k++) {
            uint32_t crc;
            assert_true(hry_sums_find(&sums, i, counts[i], k, &crc));
            assert_int_equal(crc, i * 10 + k);
        }
    hry_sums_clear(&sums);
    hry_free(&alloc.allocator, bytes, len);
    fail_alloc_assert_empty(&alloc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_of_the_format),
        cmocka_unit_test(nothing_is_stored_without_buffers_or_beyond_32_bits),
        cmocka_unit_test(a_sum_is_found_by_place_and_buffer),
        cmocka_unit_test(a_value_that_does_not_fit_is_as_if_not_stored),
        cmocka_unit_test(many_tensors_are_reached_through_their_stretch),
    };
    return cmocka_run_group_tests_name("format/sums", tests, NULL, NULL);
}
