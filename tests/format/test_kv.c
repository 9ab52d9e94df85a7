#include "format/kv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "support/fail_alloc.h"

static const int64_t numbers[] = {-1, INT64_MIN, 7};
static const uint64_t unsigneds[] = {UINT64_MAX, 0};
static const double reals[] = {1.5, -0.0};
static const uint8_t truths[] = {1, 0, 1};
static const HurrayIoSlice texts[] = {{"one", 3}, {"", 0}, {"\xC3\xA9", 2}};
static const HurrayIoSlice blobs[] = {{"\xFF\0", 2}};

#define ENTRY(k, ...)                                                                                                                      \
    {                                                                                                                                      \
        .key = k, .key_len = sizeof(k) - 1, .value = { __VA_ARGS__ }                                                                       \
    }

static const HurrayKvEntry every_kind[] = {
    ENTRY("string", .kind = HURRAY_KV_STRING, .data = "text\0more", .data_len = 9),
    ENTRY("empty", .kind = HURRAY_KV_STRING),
    ENTRY("i64", .kind = HURRAY_KV_INT64, .i64 = -5),
    ENTRY("u64", .kind = HURRAY_KV_UINT64, .u64 = UINT64_MAX),
    ENTRY("f64", .kind = HURRAY_KV_FLOAT64, .f64 = 2.25),
    ENTRY("bool", .kind = HURRAY_KV_BOOL, .boolean = 1),
    ENTRY("bytes", .kind = HURRAY_KV_BYTES, .data = "\xFF\xFE", .data_len = 2),
    ENTRY("i64s", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_INT64, .data = numbers, .data_len = 3),
    ENTRY("u64s", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_UINT64, .data = unsigneds, .data_len = 2),
    ENTRY("f64s", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_FLOAT64, .data = reals, .data_len = 2),
    ENTRY("bools", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_BOOL, .data = truths, .data_len = 3),
    ENTRY("texts", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_STRING, .data = texts, .data_len = 3),
    ENTRY("blobs", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_BYTES, .data = blobs, .data_len = 1),
    ENTRY("none", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_INT64),
    ENTRY("a\0b", .kind = HURRAY_KV_INT64, .i64 = 1),
};
#define KINDS (sizeof every_kind / sizeof *every_kind)

static uint8_t *encode(const HurrayKvEntry *entries, size_t count, const HurrayAllocator *allocator, size_t *len) {
    HurrayError error;
    uint8_t *bytes;
    assert_int_equal(hry_kv_encode(entries, count, allocator, &bytes, len, &error), HURRAY_OK);
    return bytes;
}

static void every_kind_comes_back_as_it_was_written(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    HryKv kv;
    size_t len, len2;
    fail_alloc_init(&alloc);
    uint8_t *bytes = encode(every_kind, KINDS, &alloc.allocator, &len);
    assert_int_equal(hry_kv_decode(bytes, len, 0, 0, &alloc.allocator, &kv, &error), HURRAY_OK);
    assert_int_equal(kv.count, KINDS);
    for (size_t i = 0; i < KINDS; i++) {
        const HurrayKvValue *in = &every_kind[i].value, *out = &kv.entries[i].value;
        assert_int_equal(kv.entries[i].key_len, every_kind[i].key_len);
        assert_memory_equal(kv.entries[i].key, every_kind[i].key, every_kind[i].key_len);
        assert_int_equal(out->kind, in->kind);
        assert_int_equal(out->data_len, in->data_len);
        assert_int_equal(out->u64, in->u64);
        if (in->kind == HURRAY_KV_ARRAY) assert_int_equal(out->element, in->element);
        if (in->kind == HURRAY_KV_ARRAY && in->data_len) assert_int_equal((uintptr_t)out->data % 8, 0);
    }
    assert_memory_equal(kv.entries[7].value.data, numbers, sizeof numbers);
    assert_memory_equal(kv.entries[9].value.data, reals, sizeof reals);
    assert_memory_equal(kv.entries[10].value.data, truths, sizeof truths);
    assert_memory_equal(((const HurrayIoSlice *)kv.entries[11].value.data)[2].ptr, "\xC3\xA9", 2);
    uint8_t *again = encode(kv.entries, kv.count, &alloc.allocator, &len2);
    assert_int_equal(len, len2);
    assert_memory_equal(bytes, again, len);
    hry_free(&alloc.allocator, bytes, len);
    hry_free(&alloc.allocator, again, len);
    hry_kv_clear(&kv);
    hry_kv_clear(&kv);
    fail_alloc_assert_empty(&alloc);
}

static void the_bytes_are_those_of_the_format(void **state) {
    (void)state;
    FailAlloc alloc;
    size_t len;
    const HurrayKvEntry entries[] = {ENTRY("k", .kind = HURRAY_KV_BOOL, .boolean = 1),
                                     ENTRY("ab", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_STRING, .data = texts, .data_len = 1)};
    const uint8_t want[] = {2, 0, 0, 0, 1, 0, 'k', 5, 1, 2, 0, 'a', 'b', 7, 1, 1, 0, 0, 0, 3, 0, 0, 0, 'o', 'n', 'e'};
    fail_alloc_init(&alloc);
    uint8_t *bytes = encode(entries, 2, &alloc.allocator, &len);
    assert_int_equal(len, sizeof want);
    assert_memory_equal(bytes, want, sizeof want);
    hry_free(&alloc.allocator, bytes, len);
    bytes = encode(NULL, 0, &alloc.allocator, &len);
    assert_null(bytes);
    assert_int_equal(len, 0);
    fail_alloc_assert_empty(&alloc);
}

static void a_section_cut_anywhere_is_rejected(void **state) {
    (void)state;
    FailAlloc alloc;
    size_t len;
    fail_alloc_init(&alloc);
    uint8_t *bytes = encode(every_kind, KINDS, &alloc.allocator, &len);
    for (size_t cut = 0; cut < len; cut++) {
        HurrayError error;
        HryKv kv;
        uint8_t *exact = malloc(cut ? cut : 1);
        memcpy(exact, bytes, cut);
        hry_error_clear(&error);
        assert_int_equal(hry_kv_decode(exact, cut, 0, 0, &alloc.allocator, &kv, &error), HURRAY_ERR_INVALID_KV);
        assert_true(error.message[0] != 0);
        free(exact);
    }
    hry_free(&alloc.allocator, bytes, len);
    fail_alloc_assert_empty(&alloc);
}

static void a_flipped_bit_is_rejected_with_a_message_or_read_whole(void **state) {
    (void)state;
    FailAlloc alloc;
    size_t len, accepted = 0, rejected = 0;
    fail_alloc_init(&alloc);
    uint8_t *bytes = encode(every_kind, KINDS, &alloc.allocator, &len), *exact = malloc(len);
    for (size_t bit = 0; bit < len * 8; bit++) {
        HurrayError error;
        HryKv kv;
        memcpy(exact, bytes, len);
        exact[bit / 8] ^= (uint8_t)(1u << bit % 8);
        hry_error_clear(&error);
        HurrayStatus status = hry_kv_decode(exact, len, 0, 0, &alloc.allocator, &kv, &error);
        if (status == HURRAY_OK) {
            uint8_t *again;
            size_t again_len;
            assert_int_equal(hry_kv_encode(kv.entries, kv.count, &alloc.allocator, &again, &again_len, &error), HURRAY_OK);
            assert_int_equal(again_len, len);
            assert_memory_equal(again, exact, len);
            hry_free(&alloc.allocator, again, again_len);
            hry_kv_clear(&kv);
            accepted++;
        } else {
            assert_int_equal(status, HURRAY_ERR_INVALID_KV);
            assert_true(error.message[0] != 0);
            rejected++;
        }
    }
    assert_true(accepted > 0 && rejected > 0);
    free(exact);
    hry_free(&alloc.allocator, bytes, len);
    fail_alloc_assert_empty(&alloc);
}

/* One entry of key "k" whose value is these bytes. */
static HurrayStatus decode_value(const void *value, size_t value_len, uint8_t minor) {
    FailAlloc alloc;
    HurrayError error;
    HryKv kv;
    size_t len = 7 + value_len;
    uint8_t *bytes = malloc(len);
    memcpy(bytes, "\1\0\0\0\1\0k", 7);
    memcpy(bytes + 7, value, value_len);
    fail_alloc_init(&alloc);
    hry_error_clear(&error);
    HurrayStatus status = hry_kv_decode(bytes, len, 64, minor, &alloc.allocator, &kv, &error);
    if (status == HURRAY_OK)
        hry_kv_clear(&kv);
    else
        assert_true(error.message[0] != 0);
    fail_alloc_assert_empty(&alloc);
    free(bytes);
    return status;
}

#define VALUE(text) decode_value(text, sizeof(text) - 1, 0)

static void every_rule_of_a_value_is_kept(void **state) {
    (void)state;
    assert_int_equal(VALUE("\5\0"), HURRAY_OK);
    assert_int_equal(VALUE("\5\2"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\0\0"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\10\0"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\xF0\0"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\1\1\0\0\0\xFF"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\6\1\0\0\0\xFF"), HURRAY_OK);
    assert_int_equal(VALUE("\1\xFF\xFF\xFF\xFF\1"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\7\0\0\0\0\0"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\7\7\0\0\0\0"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\7\1\0\0\0\0"), HURRAY_OK);
    assert_int_equal(VALUE("\7\5\2\0\0\0\1\1"), HURRAY_OK);
    assert_int_equal(VALUE("\7\5\2\0\0\0\1\2"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\7\5\3\0\0\0\1\1"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\7\2\xFF\xFF\xFF\xFF\1\1"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\7\1\1\0\0\0\1\0\0\0\xFF"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(VALUE("\5\1\0"), HURRAY_ERR_INVALID_KV);
    assert_int_equal(decode_value("\5\1\0", 3, 1), HURRAY_OK);
}

static void counts_and_keys_are_checked_before_they_are_believed(void **state) {
    (void)state;
    const struct {
        const char *bytes;
        size_t len;
        HurrayStatus want;
    } cases[] = {
        {"\0\0\0\0", 4, HURRAY_OK},
        {"\0\0\0", 3, HURRAY_ERR_INVALID_KV},
        {"\1\0\0\0", 4, HURRAY_ERR_INVALID_KV},
        {"\xFF\xFF\xFF\xFF\1\0k\5\0", 9, HURRAY_ERR_INVALID_KV},
        {"\1\0\0\0\0\0\5\0\0", 9, HURRAY_ERR_INVALID_KV},
        {"\1\0\0\0\1\0\xFF\5\0", 9, HURRAY_ERR_INVALID_KV},
        {"\2\0\0\0\1\0k\5\0\1\0k\5\1", 14, HURRAY_ERR_INVALID_KV},
        {"\2\0\0\0\1\0k\5\0\1\0l\5\1", 14, HURRAY_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FailAlloc alloc;
        HurrayError error;
        HryKv kv;
        uint8_t *exact = malloc(cases[i].len);
        memcpy(exact, cases[i].bytes, cases[i].len);
        fail_alloc_init(&alloc);
        assert_int_equal(hry_kv_decode(exact, cases[i].len, 0, 0, &alloc.allocator, &kv, &error), cases[i].want);
        hry_kv_clear(&kv);
        fail_alloc_assert_empty(&alloc);
        free(exact);
    }
}

static void the_writer_refuses_what_a_reader_rejects(void **state) {
    (void)state;
    static const uint8_t two[] = {2};
    static const HurrayIoSlice bad_text[] = {{"\xFF", 1}}, no_text[] = {{NULL, 1}};
    char *longest = malloc(65536);
    memset(longest, 'k', 65536);
    const struct {
        HurrayKvEntry entry;
        HurrayStatus want;
    } cases[] = {
        {ENTRY("", .kind = HURRAY_KV_INT64), HURRAY_ERR_INVALID_KV},
        {{.key = NULL, .key_len = 3, .value = {.kind = HURRAY_KV_INT64}}, HURRAY_ERR_NULL_POINTER},
        {{.key = longest, .key_len = 65536, .value = {.kind = HURRAY_KV_INT64}}, HURRAY_ERR_INVALID_KV},
        {{.key = longest, .key_len = 65535, .value = {.kind = HURRAY_KV_INT64}}, HURRAY_OK},
        {ENTRY("\xFF", .kind = HURRAY_KV_INT64), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = 0), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = 8), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = HURRAY_KV_BOOL, .boolean = 2), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = HURRAY_KV_STRING, .data = "\xFF", .data_len = 1), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = HURRAY_KV_BYTES, .data_len = 1), HURRAY_ERR_NULL_POINTER},
        {ENTRY("k", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_ARRAY), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = HURRAY_KV_ARRAY, .element = 0), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = HURRAY_KV_ARRAY, .element = 9), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_INT64, .data_len = 1), HURRAY_ERR_NULL_POINTER},
        {ENTRY("k", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_BOOL, .data = two, .data_len = 1), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_STRING, .data = bad_text, .data_len = 1), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_BYTES, .data = no_text, .data_len = 1), HURRAY_ERR_NULL_POINTER},
        {ENTRY("k", .kind = HURRAY_KV_BYTES, .data = "x", .data_len = (size_t)UINT32_MAX + 1), HURRAY_ERR_INVALID_KV},
        {ENTRY("k", .kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_INT64, .data = "x", .data_len = (size_t)UINT32_MAX + 1),
         HURRAY_ERR_INVALID_KV},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FailAlloc alloc;
        HurrayError error;
        uint8_t *bytes;
        size_t len;
        fail_alloc_init(&alloc);
        hry_error_clear(&error);
        assert_int_equal(hry_kv_encode(&cases[i].entry, 1, &alloc.allocator, &bytes, &len, &error), cases[i].want);
        if (cases[i].want != HURRAY_OK) assert_true(error.message[0] != 0);
        hry_free(&alloc.allocator, bytes, len);
        fail_alloc_assert_empty(&alloc);
    }
    HurrayKvEntry twice[] = {every_kind[0], every_kind[1], every_kind[0]};
    FailAlloc alloc;
    HurrayError error;
    uint8_t *bytes;
    size_t len;
    fail_alloc_init(&alloc);
    assert_int_equal(hry_kv_encode(twice, 3, &alloc.allocator, &bytes, &len, &error), HURRAY_ERR_INVALID_KV);
    assert_string_equal(error.tensor, "string");
    fail_alloc_assert_empty(&alloc);
    free(longest);
}

static void a_section_beyond_32_bits_is_refused(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    uint8_t *bytes;
    size_t len;
    const HurrayKvEntry entries[] = {ENTRY("a", .kind = HURRAY_KV_BYTES, .data = "x", .data_len = UINT32_MAX)};
    fail_alloc_init(&alloc);
    assert_int_equal(hry_kv_encode(entries, 1, &alloc.allocator, &bytes, &len, &error), HURRAY_ERR_INVALID_KV);
    fail_alloc_assert_empty(&alloc);
}

static void failing_allocations_leak_nothing(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    HryKv kv;
    uint8_t *bytes, *again;
    size_t len, len2;
    fail_alloc_init(&alloc);
    bytes = encode(every_kind, KINDS, &alloc.allocator, &len);
    HurrayStatus status = HURRAY_ERR_NO_MEMORY;
    for (uint64_t k = 1; status != HURRAY_OK; k++) {
        fail_alloc_arm(&alloc, k, 0);
        status = hry_kv_decode(bytes, len, 0, 0, &alloc.allocator, &kv, &error);
        if (status != HURRAY_OK) assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        assert_true(k < 10);
    }
    hry_kv_clear(&kv);
    status = HURRAY_ERR_NO_MEMORY;
    for (uint64_t k = 1; status != HURRAY_OK; k++) {
        fail_alloc_arm(&alloc, k, 0);
        status = hry_kv_encode(every_kind, KINDS, &alloc.allocator, &again, &len2, &error);
        if (status != HURRAY_OK) assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        assert_true(k < 10);
    }
    hry_free(&alloc.allocator, again, len2);
    hry_free(&alloc.allocator, bytes, len);
    fail_alloc_assert_empty(&alloc);
}

static void keys_are_found_by_bytes(void **state) {
    (void)state;
    assert_int_equal(hry_kv_position(every_kind, KINDS, "bool", 4), 5);
    assert_int_equal(hry_kv_position(every_kind, KINDS, "boo", 3), KINDS);
    assert_int_equal(hry_kv_position(every_kind, KINDS, "a\0b", 3), 14);
    assert_int_equal(hry_kv_position(NULL, 0, "a", 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back_as_it_was_written),
        cmocka_unit_test(the_bytes_are_those_of_the_format),
        cmocka_unit_test(a_section_cut_anywhere_is_rejected),
        cmocka_unit_test(a_flipped_bit_is_rejected_with_a_message_or_read_whole),
        cmocka_unit_test(every_rule_of_a_value_is_kept),
        cmocka_unit_test(counts_and_keys_are_checked_before_they_are_believed),
        cmocka_unit_test(the_writer_refuses_what_a_reader_rejects),
        cmocka_unit_test(a_section_beyond_32_bits_is_refused),
        cmocka_unit_test(failing_allocations_leak_nothing),
        cmocka_unit_test(keys_are_found_by_bytes),
    };
    return cmocka_run_group_tests_name("format/kv", tests, NULL, NULL);
}
