#include "format/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/crc32c.h"

static HryHeader good_header(void) {
    return (HryHeader){.major = 1,
                       .flags = HRY_FILE_INDEX_CRC,
                       .data_buffer_alignment = 4096,
                       .first_descriptor_offset = 64,
                       .tensor_count_hint = UINT64_MAX};
}

static HurrayStatus decode_header(const uint8_t *bytes, HryHeader *out, HurrayError *error) {
    uint8_t *exact = malloc(HRY_HEADER_SIZE);
    memcpy(exact, bytes, HRY_HEADER_SIZE);
    HurrayStatus status = hry_header_decode(exact, out, error);
    free(exact);
    return status;
}

static void a_header_comes_back_as_it_was_written(void **state) {
    (void)state;
    uint8_t bytes[HRY_HEADER_SIZE];
    HurrayError error;
    HryHeader in = good_header(), out;
    in.flags = 7;
    in.minor = 3;
    in.data_buffer_alignment = 2097152;
    in.first_descriptor_offset = 96;
    in.tensor_count_hint = 5;
    hry_header_encode(&in, bytes);
    assert_int_equal(decode_header(bytes, &out, &error), HURRAY_OK);
    assert_int_equal(out.minor, 3);
    assert_int_equal(out.flags, 7);
    assert_int_equal(out.data_buffer_alignment, 2097152);
    assert_int_equal(out.first_descriptor_offset, 96);
    assert_int_equal(out.tensor_count_hint, 5);
}

static void every_rule_of_the_header_is_kept(void **state) {
    (void)state;
    const struct {
        size_t at, size;
        uint64_t value;
        HurrayStatus want;
        const char *field;
    } cases[] = {
        {0, 1, 'h', HURRAY_ERR_INVALID_MAGIC, "header.magic"},
        {7, 1, 0, HURRAY_ERR_INVALID_MAGIC, "header.magic"},
        {4, 4, 0x01, HURRAY_ERR_INVALID_MAGIC, "header.magic"},
        {8, 1, 0, HURRAY_ERR_VERSION_MISMATCH, "header.container_major"},
        {8, 1, 2, HURRAY_ERR_VERSION_MISMATCH, "header.container_major"},
        {9, 1, 1, HURRAY_OK, ""},
        {10, 1, 1, HURRAY_ERR_INVALID_CONTAINER, "header.reserved"},
        {11, 1, 128, HURRAY_ERR_INVALID_CONTAINER, "header.reserved"},
        {12, 4, 8, HURRAY_ERR_INVALID_CONTAINER, "header.file_flags"},
        {12, 4, 0x80000004, HURRAY_ERR_INVALID_CONTAINER, "header.file_flags"},
        {16, 4, 2048, HURRAY_ERR_INVALID_CONTAINER, "header.data_buffer_alignment"},
        {16, 4, 0, HURRAY_ERR_INVALID_CONTAINER, "header.data_buffer_alignment"},
        {16, 4, 12288, HURRAY_ERR_INVALID_CONTAINER, "header.data_buffer_alignment"},
        {16, 4, 4194304, HURRAY_ERR_INVALID_CONTAINER, "header.data_buffer_alignment"},
        {16, 4, 2097152, HURRAY_OK, ""},
        {20, 8, 56, HURRAY_ERR_INVALID_CONTAINER, "header.first_descriptor_offset"},
        {20, 8, 68, HURRAY_ERR_INVALID_CONTAINER, "header.first_descriptor_offset"},
        {20, 8, 72, HURRAY_OK, ""},
        {28, 8, 0, HURRAY_OK, ""},
        {36, 1, 1, HURRAY_ERR_INVALID_CONTAINER, "header.reserved"},
        {63, 1, 1, HURRAY_ERR_INVALID_CONTAINER, "header.reserved"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[HRY_HEADER_SIZE];
        HurrayError error;
        HryHeader header = good_header();
        hry_header_encode(&header, bytes);
        for (size_t b = 0; b < cases[i].size; b++) bytes[cases[i].at + b] = (uint8_t)(cases[i].value >> 8 * b);
        hry_error_clear(&error);
        assert_int_equal(decode_header(bytes, &header, &error), cases[i].want);
        if (cases[i].want != HURRAY_OK) {
            assert_string_equal(error.field, cases[i].field);
            assert_true(error.message[0] != 0);
        }
    }
}

static void a_stream_is_told_apart(void **state) {
    (void)state;
    uint8_t bytes[HRY_HEADER_SIZE] = {'H', 'R', 'R', 'Y', 1};
    HurrayError error;
    HryHeader header;
    assert_int_equal(decode_header(bytes, &header, &error), HURRAY_ERR_INVALID_MAGIC);
    assert_non_null(strstr(error.message, "stream"));
}

static void files_below_the_smallest_are_truncated(void **state) {
    (void)state;
    HurrayError error;
    assert_int_equal(hry_container_check_size(112, &error), HURRAY_OK);
    assert_int_equal(hry_container_check_size(111, &error), HURRAY_ERR_TRUNCATED);
    assert_int_equal(hry_container_check_size(0, &error), HURRAY_ERR_TRUNCATED);
}

#define SIZE 1040u /* the trailer of the file below lies at 1000 */

static HryTrailer good_trailer(void) {
    return (HryTrailer){.index_offset = 400, .index_length = 600, .kv_offset = 200, .kv_length = 100, .index_crc32c = 9};
}

static HurrayStatus decode_trailer(const HryTrailer *in, const HryHeader *header, HryTrailer *out, HurrayError *error) {
    uint8_t *exact = malloc(HRY_TRAILER_SIZE);
    hry_trailer_encode(in, exact);
    HurrayStatus status = hry_trailer_decode(exact, SIZE, header, out, error);
    free(exact);
    return status;
}

static void a_trailer_comes_back_as_it_was_written(void **state) {
    (void)state;
    HryHeader header = good_header();
    HryTrailer in = good_trailer(), out;
    HurrayError error;
    assert_int_equal(decode_trailer(&in, &header, &out, &error), HURRAY_OK);
    assert_memory_equal(&in, &out, sizeof in);
    assert_int_equal(hry_container_region_end(&out), 200);
    in.kv_offset = in.kv_length = 0;
    assert_int_equal(decode_trailer(&in, &header, &out, &error), HURRAY_OK);
    assert_int_equal(hry_container_region_end(&out), 400);
}

static void every_rule_of_the_trailer_is_kept(void **state) {
    (void)state;
    const struct {
        HryTrailer trailer;
        uint32_t flags;
        HurrayStatus want;
    } cases[] = {
        {{408, 600, 200, 100, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{408, 592, 200, 100, 9}, 4, HURRAY_OK},
        {{401, 500, 200, 100, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 7, 200, 100, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 8, 200, 100, 9}, 4, HURRAY_OK},
        {{UINT64_MAX - 7, 16, 200, 100, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{400, UINT64_MAX, 200, 100, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{56, 600, 0, 0, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{64, 600, 0, 0, 9}, 4, HURRAY_OK},
        {{400, 600, 0, 100, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 600, 200, 0, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 600, 0, 0, 9}, 5, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 600, 200, 100, 9}, 5, HURRAY_OK},
        {{400, 600, 204, 100, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 600, 56, 100, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 600, 200, 3, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 600, 200, 200, 9}, 4, HURRAY_OK},
        {{400, 600, 200, 201, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 600, UINT64_MAX - 7, 100, 9}, 4, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 600, 200, 100, 9}, 0, HURRAY_ERR_INVALID_CONTAINER},
        {{400, 600, 200, 100, 0}, 0, HURRAY_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        HryHeader header = good_header();
        HryTrailer out;
        HurrayError error;
        header.flags = cases[i].flags;
        hry_error_clear(&error);
        assert_int_equal(decode_trailer(&cases[i].trailer, &header, &out, &error), cases[i].want);
        if (cases[i].want != HURRAY_OK) assert_true(error.message[0] != 0);
    }
}

static void reserved_bytes_and_magic_of_the_trailer_are_kept(void **state) {
    (void)state;
    HryHeader header = good_header();
    for (size_t at = 32; at < 40; at++) {
        uint8_t bytes[HRY_TRAILER_SIZE];
        HryTrailer trailer = good_trailer();
        HurrayError error;
        hry_trailer_encode(&trailer, bytes);
        bytes[at] ^= 1;
        assert_int_equal(hry_trailer_decode(bytes, SIZE, &header, &trailer, &error), HURRAY_ERR_INVALID_CONTAINER);
        assert_string_equal(error.field, at < 36 ? "trailer.reserved" : "trailer.magic");
    }
}

static void a_wrong_index_sum_is_a_checksum_error(void **state) {
    (void)state;
    HryHeader header = good_header();
    HryTrailer trailer = {.index_length = 9, .index_crc32c = 0xE3069283};
    HurrayError error;
    assert_int_equal(hry_container_check_index_sum(&header, &trailer, "123456789", &error), HURRAY_OK);
    assert_int_equal(hry_container_check_index_sum(&header, &trailer, "123456780", &error), HURRAY_ERR_CHECKSUM);
    header.flags = 0;
    assert_int_equal(hry_container_check_index_sum(&header, &trailer, "123456780", &error), HURRAY_OK);
}

static void each_buffer_starts_at_the_next_multiple(void **state) {
    (void)state;
    HurrayBufferHandle handles[3] = {{.byte_size = 1}, {.byte_size = 0}, {.byte_size = 5000}};
    uint64_t at;
    assert_true(hry_container_buffer_offset(handles, 3, 4096, 4096, 0, &at));
    assert_int_equal(at, 4096);
    assert_true(hry_container_buffer_offset(handles, 3, 4096, 4096, 1, &at));
    assert_int_equal(at, 8192);
    assert_true(hry_container_buffer_offset(handles, 3, 4096, 4096, 2, &at));
    assert_int_equal(at, 8192);
    assert_true(hry_container_buffer_offset(handles, 3, 4096, 4096, 3, &at));
    assert_int_equal(at, 13192);
    handles[0].byte_size = UINT64_MAX - 4096;
    assert_false(hry_container_buffer_offset(handles, 3, 4096, 4096, 1, &at));
    handles[0].byte_size = UINT64_MAX;
    assert_false(hry_container_buffer_offset(handles, 3, 4096, 4096, 1, &at));
    assert_true(hry_container_buffer_offset(NULL, 0, 72, 4096, 0, &at));
    assert_int_equal(at, 72);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_comes_back_as_it_was_written),
        cmocka_unit_test(every_rule_of_the_header_is_kept),
        cmocka_unit_test(a_stream_is_told_apart),
        cmocka_unit_test(files_below_the_smallest_are_truncated),
        cmocka_unit_test(a_trailer_comes_back_as_it_was_written),
        cmocka_unit_test(every_rule_of_the_trailer_is_kept),
        cmocka_unit_test(reserved_bytes_and_magic_of_the_trailer_are_kept),
        cmocka_unit_test(a_wrong_index_sum_is_a_checksum_error),
        cmocka_unit_test(each_buffer_starts_at_the_next_multiple),
    };
    return cmocka_run_group_tests_name("format/container", tests, NULL, NULL);
}
