#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "import/safetensors.h"
#include "support/fail_alloc.h"
#include "support/import_case.h"

#define ENTRY(name, dtype, shape, begin, end)                                                                                              \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static HryCatalogue *open_header(const char *header, size_t data_len) {
    Built file = {0};
    uint8_t data[64] = {0};
    built_safetensors(&file, header, data, data_len);
    HryCatalogue *catalogue = import_open(hry_import_safetensors, file.bytes, file.len);
    built_free(&file);
    return catalogue;
}

static void refuse_raw(const char *header, size_t header_len, size_t data_len, HurrayStatus status, const char *word) {
    Built file = {0};
    uint8_t data[64] = {0};
    built_u64(&file, header_len);
    built_bytes(&file, header, header_len);
    built_bytes(&file, data, data_len);
    import_refused(hry_import_safetensors, file.bytes, file.len, status, word);
    built_free(&file);
}

static void refuse_header(const char *header, size_t data_len, HurrayStatus status, const char *word) {
    refuse_raw(header, strlen(header), data_len, status, word);
}

static const HryEntry *find(const HryCatalogue *catalogue, const char *name) {
    uint64_t i;
    assert_true(hry_catalogue_find(catalogue, name, strlen(name), &i));
    return &catalogue->entries[i];
}

static void tensors_come_in_data_order_with_their_places(void **state) {
    (void)state;
    const char *header = "{" ENTRY("b", "F32", "[2]", 4, 12) "," ENTRY("a", "F16", "[2,1]", 0, 4) "}";
    HryCatalogue *catalogue = open_header(header, 12);
    assert_int_equal(catalogue->entry_count, 2);
    assert_int_equal(catalogue->format, HURRAY_FORMAT_SAFETENSORS);
    assert_memory_equal(catalogue->entries[0].name, "a", 1);
    const HryEntry *b = find(catalogue, "b");
    assert_int_equal(b->data_offset, 8 + strlen(header) + 4);
    assert_int_equal(b->data_length, 8);
    assert_int_equal(b->descriptor->element_type, HURRAY_TYPE_FLOAT32);
    assert_int_equal(b->descriptor->buffers[0].byte_size, 8);
    assert_int_equal(b->descriptor->buffers[0].alignment, 64);
    assert_int_equal(b->side, 0);
    const HryEntry *a = find(catalogue, "a");
    assert_int_equal(a->descriptor->rank, 2);
    assert_int_equal(a->descriptor->shape[0], 2);
    assert_int_equal(a->descriptor->shape[1], 1);
    hry_catalogue_unref(catalogue);
}

static void every_dtype_has_its_type_and_width(void **state) {
    (void)state;
    size_t count;
    const HryStType *types = hry_st_types(&count);
    assert_int_equal(count, 22);
    for (size_t i = 0; i < count; i++) {
        char header[160];
        unsigned bytes = 8u * types[i].bits / 8;
        snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%u]}}", types[i].name, bytes);
        HryCatalogue *catalogue = open_header(header, bytes);
        const HurrayDescriptor *d = catalogue->entries[0].descriptor;
        assert_int_equal(d->element_type, types[i].type_tag);
        assert_int_equal(d->buffers[0].byte_size, types[i].type_tag == HURRAY_TYPE_BOOL ? 1 : bytes);
        hry_catalogue_unref(catalogue);
    }
}

static void fnuz_types_carry_their_private_section(void **state) {
    (void)state;
    HryCatalogue *catalogue = open_header("{" ENTRY("a", "F8_E4M3FNUZ", "[2]", 0, 2) "," ENTRY("b", "F8_E5M2FNUZ", "[1]", 2, 3) "}", 3);
    const HurrayDescriptor *a = find(catalogue, "a")->descriptor, *b = find(catalogue, "b")->descriptor;
    static const uint8_t e4m3[20] = {8, 0, 0, 0, 1, 1, 0, 1, 4, 3, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0};
    static const uint8_t e5m2[20] = {8, 0, 0, 0, 1, 1, 0, 1, 5, 2, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0};
    uint8_t bytes[256];
    size_t len = sizeof bytes;
    assert_int_equal(hurray_descriptor_encode(a, bytes, &len), HURRAY_OK);
    assert_int_equal(a->element_type, 0xF0);
    assert_memory_equal(bytes + len - 20, e4m3, 20);
    len = sizeof bytes;
    assert_int_equal(hurray_descriptor_encode(b, bytes, &len), HURRAY_OK);
    assert_int_equal(b->element_type, 0xF1);
    assert_memory_equal(bytes + len - 20, e5m2, 20);
    hry_catalogue_unref(catalogue);
}

static void bools_are_packed_on_the_way(void **state) {
    (void)state;
    Built file = {0};
    static const uint8_t data[] = {1, 0, 1, 1, 0, 0, 0, 0, 1, 1};
    built_safetensors(&file, "{" ENTRY("t", "BOOL", "[10]", 0, 10) "}", data, sizeof data);
    HryCatalogue *catalogue = import_open(hry_import_safetensors, file.bytes, file.len);
    for (size_t piece = 0; piece < 3; piece++) {
        HurrayStatus status;
        uint8_t *bytes = import_read(catalogue, file.bytes, file.len, 0, piece, &status);
        assert_int_equal(status, HURRAY_OK);
        assert_int_equal(bytes[0], 0x0D);
        assert_int_equal(bytes[1], 0x03);
        free(bytes);
    }
    file.bytes[file.len - 1] = 2;
    HurrayStatus status;
    free(import_read(catalogue, file.bytes, file.len, 0, 0, &status));
    assert_int_equal(status, HURRAY_ERR_INVALID_DATA);
    hry_catalogue_unref(catalogue);
    built_free(&file);
}

static void names_are_what_their_escapes_mean(void **state) {
    (void)state;
    HryCatalogue *catalogue = open_header("{" ENTRY("\\u00e9\\/\\ud83d\\ude00\\n\\u0000x", "U8", "[1]", 0, 1) "}", 1);
    static const uint8_t name[] = "\xC3\xA9/\xF0\x9F\x98\x80\n\0x";
    assert_int_equal(catalogue->entries[0].name_len, sizeof name - 1);
    assert_memory_equal(catalogue->entries[0].name, name, sizeof name - 1);
    hry_catalogue_unref(catalogue);
    catalogue = open_header("{" ENTRY("", "U8", "[1]", 0, 1) "}", 1); /* opens; only conversion refuses it */
    assert_int_equal(catalogue->entries[0].name_len, 0);
    assert_non_null(catalogue->entries[0].name);
    hry_catalogue_unref(catalogue);
}

static void metadata_becomes_strings_in_file_order(void **state) {
    (void)state;
    HryCatalogue *catalogue = open_header("{\"__metadata__\":{\"z\":\"1\",\"a\":\"\\u0041\",\"\":\"\"}}", 0);
    assert_int_equal(catalogue->kv_count, 3);
    assert_memory_equal(catalogue->kv[0].key, "z", 1);
    assert_int_equal(catalogue->kv[1].value.kind, HURRAY_KV_STRING);
    assert_memory_equal(catalogue->kv[1].value.data, "A", 1);
    assert_int_equal(catalogue->kv[2].key_len, 0);
    hry_catalogue_unref(catalogue);
    hry_catalogue_unref(open_header("{\"__metadata__\":null}", 0));
    hry_catalogue_unref(open_header("{\"__metadata__\":{}}", 0));
    hry_catalogue_unref(open_header("{}", 0));
}

static void what_writers_do_is_accepted(void **state) {
    (void)state;
    hry_catalogue_unref(open_header("   \t\r\n{}  \n ", 0));
    hry_catalogue_unref(
        open_header("{\"t\":{\"x\":[{\"y\":[1,null]}],\"dtype\":\"U8\",\"z\":{},\"shape\":[],\"data_offsets\":[0,1],\"w\":1.5e3}}", 1));
    HryCatalogue *catalogue =
        open_header("{" ENTRY("e", "F32", "[0,18446744073709551614,4]", 0, 0) "," ENTRY("s", "U8", "[]", 0, 1) "}", 1);
    assert_int_equal(find(catalogue, "e")->data_length, 0);
    hry_catalogue_unref(catalogue);
}

static void what_is_no_json_is_refused_with_its_place(void **state) {
    (void)state;
    const HurrayStatus bad = HURRAY_ERR_INVALID_CONTAINER;
    static const char *const texts[] = {"{\"a\":}",
                                        "[]",
                                        "3",
                                        "\xEF\xBB\xBF{}",
                                        "{} // x",
                                        "{/* */}",
                                        "{'a':1}",
                                        "{\"a\":1,}",
                                        "{",
                                        "{\"t\":{\"shape\":[01]}}",
                                        "{\"t\":{\"shape\":[+1]}}",
                                        "{\"a\tb\":1}",
                                        "{\"a\\x\":1}",
                                        "{\"a\":NaN}",
                                        "nul",
                                        "   "};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) refuse_header(texts[i], 0, bad, NULL);
    refuse_header("{\"a\":}", 0, bad, "offset 13");
    refuse_header("{\"a\":}", 0, bad, "`}`");
    refuse_raw("{}\0\0", 4, 0, bad, "NUL");
    refuse_raw("{} \0", 4, 0, bad, "NUL");
    refuse_header("{}x", 0, bad, "`x`");
    refuse_header("{}{}", 0, bad, "after the end");
    refuse_header("{\"\xFF\":1}", 0, bad, "UTF-8");
    refuse_header("{\"\xED\xA0\x80\":1}", 0, bad, "UTF-8");
    refuse_header("{\"\\ud800\":1}", 0, bad, "surrogate");
    refuse_header("{\"\\udc00\\ud800\":1}", 0, bad, "surrogate");
    refuse_header("{\"\\ud800\\u0041\":1}", 0, bad, "surrogate");
}

static void nesting_is_bounded_and_takes_no_stack(void **state) {
    (void)state;
    char header[600];
    for (int depth = 120; depth < 140; depth++) {
        int inner = depth - 2;
        char *at = header + sprintf(header, "{\"t\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":");
        memset(at, '[', (size_t)inner);
        memset(at + inner, ']', (size_t)inner);
        strcpy(at + 2 * inner, "}}");
        if (depth <= 127)
            hry_catalogue_unref(open_header(header, 1));
        else
            refuse_header(header, 1, HURRAY_ERR_INVALID_CONTAINER, "127");
    }
}

static void a_name_that_stands_twice_is_refused(void **state) {
    (void)state;
    refuse_header("{" ENTRY("w", "U8", "[1]", 0, 1) "," ENTRY("w", "U8", "[1]", 0, 1) "}", 1, HURRAY_ERR_DUPLICATE_NAME, "twice");
    refuse_header("{" ENTRY("w", "U8", "[1]", 0, 1) "," ENTRY("\\u0077", "U8", "[1]", 1, 2) "}", 2, HURRAY_ERR_DUPLICATE_NAME, "w");
    refuse_header("{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", 0, HURRAY_ERR_INVALID_KV, "twice");
    refuse_header("{\"__metadata__\":{},\"__metadata__\":{}}", 0, HURRAY_ERR_INVALID_CONTAINER, "twice");
    refuse_header("{\"t\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, HURRAY_ERR_INVALID_CONTAINER,
                  "dtype");
    refuse_header("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}", 1, HURRAY_ERR_INVALID_CONTAINER,
                  "twice");
}

static void entries_of_another_form_are_refused(void **state) {
    (void)state;
    const HurrayStatus bad = HURRAY_ERR_INVALID_CONTAINER;
    refuse_header("{\"t\":null}", 0, bad, "t");
    refuse_header("{\"t\":[\"U8\",[1],[0,1]]}", 1, bad, "array");
    refuse_header("{\"t\":{\"dtype\":{\"U8\":null},\"shape\":[1],\"data_offsets\":[0,1]}}", 1, bad, "dtype");
    refuse_header("{\"t\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, bad, "no dtype");
    refuse_header("{\"t\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, bad, "no shape");
    refuse_header("{\"t\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, bad, "no data_offsets");
    refuse_header("{\"t\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1, bad, "shape");
    static const char *const numbers[] = {"-1",   "1.0",  "1e2", "18446744073709551616", "\"1\"",
                                          "true", "null", "[1]", "18446744073709551615"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char header[200];
        snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"U8\",\"shape\":[%s],\"data_offsets\":[0,1]}}", numbers[i]);
        refuse_header(header, 1, bad, "shape");
        snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,%s]}}", numbers[i]);
        refuse_header(header, 1, bad, i == 8 ? "18446744073709551615" : "data_offsets");
    }
    refuse_header("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, bad, "two");
    refuse_header("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, bad, "two");
    refuse_header("{\"__metadata__\":[]}", 0, HURRAY_ERR_INVALID_KV, "__metadata__");
    refuse_header("{\"__metadata__\":{\"kk\":1}}", 0, HURRAY_ERR_INVALID_KV, "kk");
    refuse_header("{\"__metadata__\":{\"kk\":null}}", 0, HURRAY_ERR_INVALID_KV, "kk");
    refuse_header("{" ENTRY("t", "f32", "[1]", 0, 4) "}", 4, HURRAY_ERR_INVALID_TYPE, "f32");
    refuse_header("{" ENTRY("t", "C128", "[1]", 0, 16) "}", 16, HURRAY_ERR_INVALID_TYPE, "C128");
}

static void ranges_must_fit_shapes_and_one_another(void **state) {
    (void)state;
    const HurrayStatus bad = HURRAY_ERR_INVALID_CONTAINER;
    refuse_header("{" ENTRY("t", "F32", "[1000000]", 0, 4) "}", 4, bad, "4000000");
    refuse_header("{" ENTRY("t", "F4", "[3]", 0, 2) "}", 2, bad, "whole");
    refuse_header("{" ENTRY("t", "F6_E2M3", "[6]", 0, 5) "}", 5, bad, "whole");
    refuse_header("{" ENTRY("t", "F32", "[4294967296,4294967296]", 0, 0) "}", 0, bad, "too many");
    refuse_header("{" ENTRY("t", "F32", "[1]", 4, 0) "}", 4, bad, "before");
    refuse_header("{" ENTRY("k", "U8", "[4]", 0, 4) "," ENTRY("v", "U8", "[4]", 2, 6) "}", 6, bad, "overlap of 2");
    refuse_header("{" ENTRY("k", "U8", "[4]", 0, 4) "," ENTRY("v", "U8", "[4]", 6, 10) "}", 10, bad, "hole of 2");
    refuse_header("{" ENTRY("k", "U8", "[4]", 3, 7) "}", 7, bad, "hole of 3");
    refuse_header("{" ENTRY("k", "U8", "[4]", 0, 4) "}", 8, bad, "4 bytes after");
    refuse_header("{" ENTRY("k", "U8", "[4]", 0, 4) "}", 2, HURRAY_ERR_TRUNCATED, "2 bytes early");
    refuse_header("{" ENTRY("k", "U8", "[1]", 9007199254740993, 9007199254740994) "}", 1, bad, "9007199254740993");
}

static void the_rank_has_a_bound(void **state) {
    (void)state;
    for (int rank = 64; rank <= 65; rank++) {
        char header[400] = "{\"t\":{\"dtype\":\"U8\",\"shape\":[";
        for (int i = 0; i < rank; i++) strcat(header, i ? ",1" : "1");
        strcat(header, "],\"data_offsets\":[0,1]}}");
        if (rank == 64)
            hry_catalogue_unref(open_header(header, 1));
        else
            refuse_header(header, 1, HURRAY_ERR_UNSUPPORTED, "64");
    }
}

static void the_length_field_is_compared_before_it_is_used(void **state) {
    (void)state;
    Built file = {0};
    built_u64(&file, UINT64_MAX);
    built_text(&file, "{}");
    import_refused(hry_import_safetensors, file.bytes, file.len, HURRAY_ERR_TRUNCATED, "18446744073709551615");
    file.len = 0;
    built_u64(&file, 0);
    import_refused(hry_import_safetensors, file.bytes, file.len, HURRAY_ERR_INVALID_CONTAINER, "0");
    import_refused(hry_import_safetensors, file.bytes, 7, HURRAY_ERR_TRUNCATED, "7");
    built_free(&file);
}

static void limits_are_kept(void **state) {
    (void)state;
    Built file = {0};
    built_safetensors(&file, "{\"__metadata__\":{\"abc\":\"defg\"}," ENTRY("a", "U8", "[1]", 0, 1) "," ENTRY("b", "U8", "[1]", 1, 2) "}",
                      "xy", 2);
    HryLimits limits = import_limits();
    limits.max_tensors = 1;
    import_refused_by(hry_import_safetensors, &limits, file.bytes, file.len, HURRAY_ERR_LIMIT, "max_tensors");
    limits = import_limits();
    limits.max_kv_bytes = 6;
    import_refused_by(hry_import_safetensors, &limits, file.bytes, file.len, HURRAY_ERR_LIMIT, "metadata");
    limits = import_limits();
    limits.max_index_bytes = 20;
    import_refused_by(hry_import_safetensors, &limits, file.bytes, file.len, HURRAY_ERR_LIMIT, "20");
    built_free(&file);
}

static const char sample[] = "{\"__metadata__\":{\"a\":\"\\u00e9b\",\"c\":\"d\"}," ENTRY("x\\n", "BOOL", "[3]", 0, 3) "," ENTRY(
    "f", "F8_E4M3FNUZ", "[1]", 3, 4) "," ENTRY("y", "F32", "[1,1]", 4, 8) "}   ";

static void failures_of_memory_and_reading_leave_nothing(void **state) {
    (void)state;
    Built file = {0};
    built_safetensors(&file, sample, "\1\0\1z....", 8);
    import_fails_cleanly(hry_import_safetensors, file.bytes, file.len);
    built_free(&file);
}

static void a_file_cut_anywhere_is_refused(void **state) {
    (void)state;
    Built file = {0};
    built_safetensors(&file, sample, "\1\0\1z....", 8);
    for (size_t cut = 0; cut < file.len; cut++) import_refused(hry_import_safetensors, file.bytes, cut, HURRAY_ERR_TRUNCATED, NULL);
    built_free(&file);
}

static void each_damaged_byte_gives_a_message_or_another_file(void **state) {
    (void)state;
    Built file = {0};
    built_safetensors(&file, sample, "\1\0\1z....", 8);
    import_damage_everywhere(hry_import_safetensors, file.bytes, file.len, file.len - 8);
    built_free(&file);
}

static void a_hundred_thousand_tensors_open_quickly(void **state) {
    (void)state;
    Built file = {0};
    built_u64(&file, 0);
    built_text(&file, "{");
    for (unsigned i = 0; i < 100000; i++) {
        char entry[128];
        snprintf(entry, sizeof entry, "%s\"model.layers.%u.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[%u,%u]}",
                 i ? "," : "", i, i * 16, i * 16 + 16);
        built_text(&file, entry);
    }
    built_text(&file, "}");
    size_t header = file.len - 8;
    for (size_t i = 0; i < 8; i++) file.bytes[i] = (uint8_t)(header >> (8 * i));
    built_zeros(&file, 1600000);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    HryCatalogue *catalogue = import_open(hry_import_safetensors, file.bytes, file.len);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
    print_message("100,000 tensors: %.3f s\n", seconds);
    assert_true(seconds < 5); /* under sanitizers on a busy machine; quadratic would be minutes */
    assert_int_equal(catalogue->entry_count, 100000);
    hry_catalogue_unref(catalogue);
    built_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_come_in_data_order_with_their_places),
        cmocka_unit_test(every_dtype_has_its_type_and_width),
        cmocka_unit_test(fnuz_types_carry_their_private_section),
        cmocka_unit_test(bools_are_packed_on_the_way),
        cmocka_unit_test(names_are_what_their_escapes_mean),
        cmocka_unit_test(metadata_becomes_strings_in_file_order),
        cmocka_unit_test(what_writers_do_is_accepted),
        cmocka_unit_test(what_is_no_json_is_refused_with_its_place),
        cmocka_unit_test(nesting_is_bounded_and_takes_no_stack),
        cmocka_unit_test(a_name_that_stands_twice_is_refused),
        cmocka_unit_test(entries_of_another_form_are_refused),
        cmocka_unit_test(ranges_must_fit_shapes_and_one_another),
        cmocka_unit_test(the_rank_has_a_bound),
        cmocka_unit_test(the_length_field_is_compared_before_it_is_used),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(failures_of_memory_and_reading_leave_nothing),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(each_damaged_byte_gives_a_message_or_another_file),
        cmocka_unit_test(a_hundred_thousand_tensors_open_quickly),
    };
    return cmocka_run_group_tests_name("import/safetensors", tests, NULL, NULL);
}
