#include "format/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "support/fail_alloc.h"

static void row_at(const void *ctx, uint64_t i, HryIndexRow *out) { *out = ((const HryIndexRow *)ctx)[i]; }

#define ROW(text, d, dl, o, l)                                                                                                             \
    {                                                                                                                                      \
        .name = (const uint8_t *)(text), .name_len = sizeof(text) - 1, .descriptor_offset = d, .descriptor_length = dl, .data_offset = o,  \
        .data_length = l                                                                                                                   \
    }

/* Encodes rows into a block of exactly their size. */
static uint8_t *encode(const HryIndexRow *rows, uint64_t count, size_t *len) {
    HryEmit measure = hry_emit(NULL, 0);
    hry_index_encode(row_at, rows, count, NULL, &measure);
    uint8_t *bytes = malloc(measure.len);
    HryEmit emit = hry_emit(bytes, measure.len);
    hry_index_encode(row_at, rows, count, NULL, &emit);
    assert_false(emit.overflow);
    *len = measure.len;
    return bytes;
}

/* Reads everything; rows may be NULL. */
static HurrayStatus decode(const uint8_t *bytes, size_t len, uint8_t minor, HryIndexRow *rows, uint64_t *count, HurrayError *error) {
    HryIndexReader reader;
    HurrayStatus status = hry_index_open(&reader, bytes, len, 1000, minor, error);
    for (uint64_t i = 0; status == HURRAY_OK && i < reader.count; i++) {
        HryIndexRow row;
        status = hry_index_next(&reader, &row, error);
        if (status == HURRAY_OK && rows) rows[i] = row;
    }
    if (status == HURRAY_OK) status = hry_index_close(&reader, error);
    if (count) *count = reader.count;
    return status;
}

static void rows_come_back_as_they_were_written(void **state) {
    (void)state;
    HryIndexRow rows[] = {ROW("a", 64, 40, 4096, 100), ROW("b\0c", 8192, 20, 8212, 0), ROW("\xC3\xA9", 8216, 48, 12288, 0)}, back[3];
    size_t len;
    uint64_t count;
    HurrayError error;
    uint8_t *bytes = encode(rows, 3, &len);
    assert_int_equal(decode(bytes, len, 0, back, &count, &error), HURRAY_OK);
    assert_int_equal(count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(back[i].name_len, rows[i].name_len);
        assert_memory_equal(back[i].name, rows[i].name, rows[i].name_len);
        assert_int_equal(back[i].descriptor_offset, rows[i].descriptor_offset);
        assert_int_equal(back[i].descriptor_length, rows[i].descriptor_length);
        assert_int_equal(back[i].data_offset, rows[i].data_offset);
        assert_int_equal(back[i].data_length, rows[i].data_length);
    }
    free(bytes);
}

static void an_index_without_entries_has_eight_bytes(void **state) {
    (void)state;
    size_t len;
    HurrayError error;
    uint64_t count = 9;
    uint8_t *bytes = encode(NULL, 0, &len);
    assert_int_equal(len, 8);
    assert_int_equal(decode(bytes, len, 0, NULL, &count, &error), HURRAY_OK);
    assert_int_equal(count, 0);
    free(bytes);
}

static void an_index_cut_anywhere_is_rejected(void **state) {
    (void)state;
    HryIndexRow rows[] = {ROW("first", 64, 40, 4096, 100), ROW("second", 8192, 20, 8212, 0)};
    size_t len;
    uint8_t *bytes = encode(rows, 2, &len);
    for (size_t cut = 0; cut < len; cut++) {
        HurrayError error;
        uint8_t *exact = malloc(cut ? cut : 1);
        memcpy(exact, bytes, cut);
        hry_error_clear(&error);
        assert_int_equal(decode(exact, cut, 0, NULL, NULL, &error), HURRAY_ERR_INVALID_CONTAINER);
        assert_true(error.message[0] != 0);
        free(exact);
    }
    free(bytes);
}

static void a_flipped_bit_is_rejected_with_a_message_or_read_whole(void **state) {
    (void)state;
    HryIndexRow rows[] = {ROW("first", 64, 40, 4096, 100), ROW("s\xC3\xA9", 8192, 20, 8212, 0)};
    size_t len, again_len, accepted = 0, rejected = 0;
    uint8_t *bytes = encode(rows, 2, &len), *exact = malloc(len);
    for (size_t bit = 0; bit < len * 8; bit++) {
        HurrayError error;
        HryIndexRow back[2];
        uint64_t count = 0;
        memcpy(exact, bytes, len);
        exact[bit / 8] ^= (uint8_t)(1u << bit % 8);
        hry_error_clear(&error);
        HryIndexReader peek;
        if (hry_index_open(&peek, exact, len, 0, 0, &error) == HURRAY_OK) assert_true(peek.count <= 2);
        if (decode(exact, len, 0, back, &count, &error) == HURRAY_OK) {
            uint8_t *again = encode(back, count, &again_len);
            assert_int_equal(again_len, len);
            assert_memory_equal(again, exact, len);
            free(again);
            accepted++;
        } else {
            assert_true(error.message[0] != 0);
            rejected++;
        }
    }
    assert_true(accepted > 0 && rejected > 0);
    free(exact);
    free(bytes);
}

static void bytes_left_over_are_for_newer_minors_only(void **state) {
    (void)state;
    HryIndexRow rows[] = {ROW("first", 64, 40, 4096, 100)};
    size_t len;
    HurrayError error;
    uint8_t *bytes = encode(rows, 1, &len), *longer = calloc(1, len + 1);
    memcpy(longer, bytes, len);
    assert_int_equal(decode(longer, len + 1, 0, NULL, NULL, &error), HURRAY_ERR_INVALID_CONTAINER);
    assert_int_equal(decode(longer, len + 1, 1, NULL, NULL, &error), HURRAY_OK);
    free(bytes);
    free(longer);
}

static void a_count_is_compared_with_the_bytes_before_it_is_believed(void **state) {
    (void)state;
    const uint64_t counts[] = {2, 3, UINT32_MAX, UINT64_MAX, UINT64_MAX / 35 + 1};
    HryIndexRow rows[] = {ROW("a", 64, 40, 4096, 100)};
    size_t len;
    uint8_t *bytes = encode(rows, 1, &len);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        HurrayError error;
        HryIndexReader reader;
        hry_store_u64(bytes, counts[i]);
        assert_int_equal(hry_index_open(&reader, bytes, len, 0, 0, &error), HURRAY_ERR_INVALID_CONTAINER);
        assert_string_equal(error.field, "index.entry_count");
    }
    free(bytes);
}

static void rules_of_one_row_name_the_row(void **state) {
    (void)state;
    const struct {
        HryIndexRow row;
        HurrayStatus want;
        uint8_t flags;
    } cases[] = {
        {ROW("", 64, 40, 4096, 0), HURRAY_ERR_INVALID_NAME, 0},
        {ROW("\xFF", 64, 40, 4096, 0), HURRAY_ERR_INVALID_NAME, 0},
        {ROW("ab\xC3", 64, 40, 4096, 0), HURRAY_ERR_INVALID_NAME, 0},
        {ROW("ok", 64, 40, 4096, 0), HURRAY_ERR_INVALID_CONTAINER, 1},
        {ROW("ok", 65, 40, 4096, 0), HURRAY_ERR_INVALID_CONTAINER, 0},
        {ROW("ok", 64, 19, 4096, 0), HURRAY_ERR_INVALID_CONTAINER, 0},
        {ROW("ok", 64, 20, 4096, 0), HURRAY_OK, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        HryIndexRow rows[2] = {ROW("before", 0, 20, 0, 0), cases[i].row};
        HurrayError error;
        size_t len;
        uint8_t *bytes = encode(rows, 2, &len);
        if (rows[1].name_len == 0) { /* keep the least entry size: one more byte, not owned by the entry */
            bytes = realloc(bytes, len + 1);
            bytes[len++] = 0;
        }
        bytes[len - 4] = rows[1].name_len ? cases[i].flags : bytes[len - 4];
        hry_error_clear(&error);
        assert_int_equal(decode(bytes, len, 0, NULL, NULL, &error), cases[i].want);
        if (cases[i].want != HURRAY_OK) assert_int_equal(error.tensor_index, 1);
        free(bytes);
    }
}

static void a_sorted_index_strictly_increases(void **state) {
    (void)state;
    HryIndexRow good[] = {ROW("a", 0, 20, 0, 0), ROW("a\0", 0, 20, 0, 0), ROW("aa", 0, 20, 0, 0), ROW("b", 0, 20, 0, 0),
                          ROW("\xC3\xA9", 0, 20, 0, 0)};
    HurrayError error;
    assert_int_equal(hry_index_check_sorted(row_at, good, 5, &error), HURRAY_OK);
    assert_int_equal(hry_index_check_sorted(row_at, NULL, 0, &error), HURRAY_OK);
    HryIndexRow twice[] = {ROW("a", 0, 20, 0, 0), ROW("b", 0, 20, 0, 0), ROW("b", 0, 20, 0, 0)};
    assert_int_equal(hry_index_check_sorted(row_at, twice, 3, &error), HURRAY_ERR_DUPLICATE_NAME);
    assert_int_equal(error.tensor_index, 2);
    HryIndexRow falls[] = {ROW("b", 0, 20, 0, 0), ROW("ab", 0, 20, 0, 0)};
    assert_int_equal(hry_index_check_sorted(row_at, falls, 2, &error), HURRAY_ERR_INVALID_CONTAINER);
    assert_string_equal(error.tensor, "ab");
}

static HurrayStatus places(const HryIndexRow *rows, uint64_t count, const uint32_t *order, uint64_t kv, uint64_t index,
                           HurrayError *error) {
    HryHeader header = {.data_buffer_alignment = 4096, .first_descriptor_offset = 64};
    HryTrailer trailer = {.index_offset = index, .kv_offset = kv};
    hry_error_clear(error);
    return hry_index_check_places(row_at, rows, count, order, &header, &trailer, error);
}

static void places_in_write_order_never_overlap(void **state) {
    (void)state;
    HurrayError error;
    HryIndexRow rows[] = {ROW("b", 4200, 40, 8192, 10), ROW("a", 64, 20, 4096, 100), ROW("h", 8208, 28, 5, 0)};
    const uint32_t order[] = {1, 0, 2};
    assert_int_equal(places(rows, 3, order, 0, 8240, &error), HURRAY_OK);
    assert_int_equal(places(rows, 3, order, 8236, 8300, &error), HURRAY_OK);
    assert_int_equal(places(rows, 3, NULL, 0, 8240, &error), HURRAY_ERR_INVALID_CONTAINER);
    assert_int_equal(places(rows, 3, order, 8232, 8300, &error), HURRAY_ERR_INVALID_CONTAINER);
    assert_string_equal(error.tensor, "h");
    assert_int_equal(error.tensor_index, 2);
    rows[1].data_offset = 4097;
    assert_int_equal(places(rows, 3, order, 0, 8240, &error), HURRAY_ERR_INVALID_CONTAINER);
    rows[1].data_offset = 0;
    assert_int_equal(places(rows, 3, order, 0, 8240, &error), HURRAY_ERR_INVALID_CONTAINER);
    rows[1].data_offset = 4096;
    rows[1].data_length = 105;
    assert_int_equal(places(rows, 3, order, 0, 8240, &error), HURRAY_ERR_INVALID_CONTAINER);
    rows[1].data_length = UINT64_MAX - 4095;
    assert_int_equal(places(rows, 3, order, 0, 8240, &error), HURRAY_ERR_INVALID_CONTAINER);
    rows[1].data_length = 100;
    rows[1].descriptor_offset = 56;
    assert_int_equal(places(rows, 3, order, 0, 8240, &error), HURRAY_ERR_INVALID_CONTAINER);
    rows[1].descriptor_offset = 64;
    rows[0].descriptor_offset = UINT64_MAX - 7;
    assert_int_equal(places(rows, 3, order, 0, 8240, &error), HURRAY_ERR_INVALID_CONTAINER);
    assert_int_equal(places(NULL, 0, NULL, 0, 64, &error), HURRAY_OK);
}

static HurrayStatus check(HryIndexRow row, uint64_t limit, uint64_t length, const HurrayBufferHandle *handles, uint32_t count, bool head) {
    HryHeader header = {.data_buffer_alignment = 4096, .first_descriptor_offset = 64};
    HurrayError error;
    return hry_index_check_tensor(&row, &header, limit, length, handles, count, head, &error);
}

static void a_descriptor_must_fit_its_row(void **state) {
    (void)state;
    HurrayBufferHandle handles[2] = {{.byte_size = 10}, {.byte_size = 20}};
    HryIndexRow row = ROW("a", 64, 60, 4096, 4116);
    assert_int_equal(check(row, 8212, 60, handles, 2, false), HURRAY_OK);
    assert_int_equal(check(row, 8211, 60, handles, 2, false), HURRAY_ERR_INVALID_CONTAINER);
    assert_int_equal(check(row, 8212, 61, handles, 2, false), HURRAY_ERR_INVALID_CONTAINER);
    assert_int_equal(check(row, 8212, 60, handles, 1, false), HURRAY_ERR_INVALID_CONTAINER);
    assert_int_equal(check(row, 8212, 60, NULL, 0, true), HURRAY_ERR_INVALID_CONTAINER);
    HryIndexRow head = ROW("h", 64, 60, 3, 0);
    assert_int_equal(check(head, 128, 60, NULL, 0, true), HURRAY_OK);
    handles[0].byte_size = 0;
    assert_int_equal(check(head, 128, 60, handles, 1, false), HURRAY_ERR_INVALID_CONTAINER);
    HryIndexRow empty = ROW("e", 64, 60, 4096, 0);
    assert_int_equal(check(empty, 4096, 60, handles, 1, false), HURRAY_OK);
    assert_int_equal(check(empty, 4095, 60, handles, 1, false), HURRAY_ERR_INVALID_CONTAINER);
    empty.data_offset = 0;
    assert_int_equal(check(empty, 4096, 60, handles, 1, false), HURRAY_ERR_INVALID_CONTAINER);
}

static void names_are_sorted_as_bytes_and_equal_ones_stay_in_order(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static char text[COUNT][8];
    static HryIndexRow rows[COUNT];
    FailAlloc alloc;
    HurrayError error;
    uint32_t *order;
    fail_alloc_init(&alloc);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(text[i], sizeof text[i], "%zu", i * 7919 % COUNT);
        rows[i].name = (const uint8_t *)text[i];
        rows[i].name_len = (uint32_t)strlen(text[i]);
    }
    for (uint64_t n = 0; n <= COUNT; n = n * 2 + 1) {
        assert_int_equal(hry_index_sort_names(row_at, rows, n, &alloc.allocator, &order, &error), HURRAY_OK);
        for (uint64_t i = 1; i < n; i++)
            assert_true(hry_index_compare_names(rows[order[i - 1]].name, rows[order[i - 1]].name_len, rows[order[i]].name,
                                                rows[order[i]].name_len) < 0);
        hry_free_array(&alloc.allocator, order, n, sizeof *order);
    }
    for (uint64_t k = 1; k <= 2; k++) {
        fail_alloc_arm(&alloc, k, 0);
        assert_int_equal(hry_index_sort_names(row_at, rows, 3, &alloc.allocator, &order, &error), HURRAY_ERR_NO_MEMORY);
    }
    fail_alloc_assert_empty(&alloc);
}

static void names_have_one_to_65535_bytes_of_utf8(void **state) {
    (void)state;
    HurrayError error;
    char *longest = malloc(65536);
    memset(longest, 'x', 65536);
    assert_int_equal(hry_index_check_name(longest, 65535, 0, HURRAY_ERR_INVALID_NAME, "name", &error), HURRAY_OK);
    assert_int_equal(hry_index_check_name(longest, 65536, 0, HURRAY_ERR_INVALID_NAME, "name", &error), HURRAY_ERR_INVALID_NAME);
    assert_int_equal(hry_index_check_name("", 0, 0, HURRAY_ERR_INVALID_NAME, "name", &error), HURRAY_ERR_INVALID_NAME);
    assert_int_equal(hry_index_check_name("\xED\xA0\x80", 3, 0, HURRAY_ERR_INVALID_NAME, "name", &error), HURRAY_ERR_INVALID_NAME);
    assert_int_equal(hry_index_check_name("a\0b", 3, 0, HURRAY_ERR_INVALID_NAME, "name", &error), HURRAY_OK);
    free(longest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back_as_they_were_written),
        cmocka_unit_test(an_index_without_entries_has_eight_bytes),
        cmocka_unit_test(an_index_cut_anywhere_is_rejected),
        cmocka_unit_test(a_flipped_bit_is_rejected_with_a_message_or_read_whole),
        cmocka_unit_test(bytes_left_over_are_for_newer_minors_only),
        cmocka_unit_test(a_count_is_compared_with_the_bytes_before_it_is_believed),
        cmocka_unit_test(rules_of_one_row_name_the_row),
        cmocka_unit_test(a_sorted_index_strictly_increases),
        cmocka_unit_test(places_in_write_order_never_overlap),
        cmocka_unit_test(a_descriptor_must_fit_its_row),
        cmocka_unit_test(names_are_sorted_as_bytes_and_equal_ones_stay_in_order),
        cmocka_unit_test(names_have_one_to_65535_bytes_of_utf8),
    };
    return cmocka_run_group_tests_name("format/index", tests, NULL, NULL);
}
