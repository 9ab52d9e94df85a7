#include "import/sniff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hurray/import.h"
#include "support/fail_alloc.h"
#include "support/import_case.h"
#include "support/script_transport.h"

static uint32_t sniff(const void *bytes, size_t len, const char *name, HurrayError *error) {
    ScriptTransport script;
    FailAlloc alloc;
    uint32_t format = 0;
    fail_alloc_init(&alloc);
    script_source(&script, bytes, len);
    HurrayTransport transport = script_transport(&script);
    HurrayStatus status = hry_sniff(&transport, len, name, &alloc.allocator, &format, error);
    fail_alloc_assert_empty(&alloc);
    script_free(&script);
    assert_true((status == HURRAY_OK) == (format != 0));
    return format;
}

static void is(const void *bytes, size_t len, const char *name, uint32_t format) {
    HurrayError error;
    uint32_t found = sniff(bytes, len, name, &error);
    if (found == 0) print_error("%s\n", error.message);
    assert_int_equal(found, format);
}

static void refused(const void *bytes, size_t len, HurrayStatus status, const char *word) {
    HurrayError error;
    assert_int_equal(sniff(bytes, len, NULL, &error), 0);
    if (error.code != status || !strstr(error.message, word))
        print_error("%d %s, expected %d `%s`\n", error.code, error.message, status, word);
    assert_int_equal(error.code, status);
    assert_non_null(strstr(error.message, word));
}

#define TEXT(s) s, sizeof(s) - 1

static void formats_are_told_by_their_first_bytes(void **state) {
    (void)state;
    is(TEXT("HRRYFILE................"), NULL, HURRAY_FORMAT_HRRY);
    is(TEXT("HRRY\1\0......"), NULL, HURRAY_FORMAT_STREAM);
    is(TEXT("GGUF\3\0\0\0"), NULL, HURRAY_FORMAT_GGUF);
    is(TEXT("\x93NUMPY\1\0"), NULL, HURRAY_FORMAT_NPY);
    is(TEXT("\2\0\0\0\0\0\0\0{}"), NULL, HURRAY_FORMAT_SAFETENSORS);
    is(TEXT("{\0\0\0\0\0\0\0{}............................................................................................................."
            "............"),
       NULL, HURRAY_FORMAT_SAFETENSORS); /* its length begins as JSON does */
    is(TEXT("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), NULL, HURRAY_FORMAT_NPZ);
    is(TEXT(" \n{\"metadata\":{},\"weight_map\":{\"a\":\"b\"}}"), NULL, HRY_FORMAT_INDEX);
}

static void white_space_in_front_may_be_long(void **state) {
    (void)state;
    Built file = {0};
    built_u64(&file, 9002);
    for (int i = 0; i < 9000; i++) built_u8(&file, ' ');
    built_text(&file, "{}");
    is(file.bytes, file.len, NULL, HURRAY_FORMAT_SAFETENSORS);
    file.bytes[9008] = 'x';
    HurrayError error;
    assert_int_equal(sniff(file.bytes, file.len, NULL, &error), 0);
    assert_int_equal(error.code, HURRAY_ERR_INVALID_MAGIC);
    built_free(&file);
    for (int i = 0; i < 9000; i++) built_u8(&file, '\n');
    built_text(&file, "<HTML>");
    refused(file.bytes, file.len, HURRAY_ERR_UNSUPPORTED, "HTML");
    built_free(&file);
}

static void what_is_no_model_is_named_with_what_to_do(void **state) {
    (void)state;
    const HurrayStatus no = HURRAY_ERR_UNSUPPORTED;
    refused("", 0, HURRAY_ERR_TRUNCATED, "empty (0 bytes)");
    refused("GGUF\3\0\0", 7, HURRAY_ERR_TRUNCATED, "7 bytes");
    refused(TEXT("version https://git-lfs.github.com/spec/v1\n"), no, "Git LFS pointer");
    refused(TEXT("\r\n <!DocType html><p>"), no, "HTML page");
    refused(TEXT("\x1F\x8B......"), no, "gzip");
    refused(TEXT("\x1F\x8B......"), no, "hurray stream read");
    refused(TEXT("\x28\xB5\x2F\xFD...."), no, "zstd");
    refused(TEXT("BZh91AY&SY"), no, "bzip2");
    refused(TEXT("\xFD" "7zXZ\0\0\4"), no, "xz data");
    refused(TEXT("7z\xBC\xAF\x27\x1C\0\4"), no, "7z archive");
    refused(TEXT("Rar!\x1A\7\1\0"), no, "RAR archive");
    refused(TEXT("lmgg\0\0\0\0"), no, "convert it to GGUF");
    refused(TEXT("tjgg\3\0\0\0"), no, "convert it to GGUF");
    refused(TEXT("\x89HDF\r\n\x1A\n"), no, "HDF5");
    refused(TEXT("\x80\2}q......"), no, "pickle");
    refused(TEXT("\x08\7\x12\4...."), no, "ONNX");
    refused(TEXT("PK\3\4...................................."), HURRAY_ERR_INVALID_CONTAINER, "zip archive");
    refused(TEXT("{\"a\":{\"weight_map\":{}}}"), no, "weight_map");
    refused(TEXT("{\"weight_map\":[]}"), no, "weight_map");
    refused(TEXT("{\"weight_map\":{},}"), HURRAY_ERR_INVALID_CONTAINER, "JSON");
    refused(TEXT("whatever else"), HURRAY_ERR_INVALID_MAGIC, "`whatever`");
    refused(TEXT("        "), HURRAY_ERR_INVALID_MAGIC, "begins with");
    uint8_t tar[512] = {'n'};
    memcpy(tar + 257, "ustar", 5);
    refused(tar, sizeof tar, no, "tar");
}

static void a_name_counts_when_content_says_nothing(void **state) {
    (void)state;
    is(TEXT("whatever else"), "x/model.safetensors", HURRAY_FORMAT_SAFETENSORS);
    is(TEXT("whatever else"), "model.GGUF", HURRAY_FORMAT_GGUF);
    is(TEXT("GGUF\3\0\0\0"), "model.safetensors", HURRAY_FORMAT_GGUF);
}

static void the_public_call_answers_without_taking_the_transport(void **state) {
    (void)state;
    ScriptTransport script;
    uint32_t format = 99;
    HurrayError error = HURRAY_ERROR_INIT;
    script_source(&script, "{\"weight_map\":{}}", 17);
    HurrayTransport transport = script_transport(&script);
    assert_int_equal(hurray_sniff(&transport, &format, NULL), HURRAY_OK);
    assert_int_equal(format, HURRAY_FORMAT_SAFETENSORS);
    assert_int_equal(script.releases, 0);
    assert_int_equal(hurray_sniff(NULL, &format, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_sniff(&transport, NULL, &error), HURRAY_ERR_NULL_POINTER);
    script_fail(&script, 1, -2000, 0);
    format = 99;
    assert_int_equal(hurray_sniff(&transport, &format, &error), -2000);
    assert_int_equal(error.code, -2000);
    assert_int_equal(format, 99);
    transport.read_at = NULL;
    assert_int_equal(hurray_sniff(&transport, &format, &error), HURRAY_ERR_INVALID_ARGUMENT);
    script_free(&script);
}

static void every_failing_read_and_allocation_is_passed_on(void **state) {
    (void)state;
    static const char *const files[] = {"   {\"weight_map\":{}}", "\n\n<htm... no page", "        padded text"};
    for (size_t i = 0; i < 3; i++) {
        ScriptTransport script;
        FailAlloc alloc;
        HurrayError error;
        uint32_t format;
        fail_alloc_init(&alloc);
        script_source(&script, files[i], strlen(files[i]));
        HurrayTransport transport = script_transport(&script);
        hry_sniff(&transport, script.len, NULL, &alloc.allocator, &format, &error);
        uint64_t reads = script.read_ats, calls = alloc.calls;
        for (uint64_t k = 1; k <= reads; k++) {
            script_fail(&script, k, -1500, 0);
            assert_int_equal(hry_sniff(&transport, script.len, NULL, &alloc.allocator, &format, &error), -1500);
        }
        script_fail(&script, 0, 0, 0);
        for (uint64_t k = 1; k <= calls; k++) {
            fail_alloc_arm(&alloc, k, 0);
            assert_int_equal(hry_sniff(&transport, script.len, NULL, &alloc.allocator, &format, &error), HURRAY_ERR_NO_MEMORY);
            fail_alloc_assert_empty(&alloc);
        }
        script_free(&script);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_told_by_their_first_bytes),
        cmocka_unit_test(white_space_in_front_may_be_long),
        cmocka_unit_test(what_is_no_model_is_named_with_what_to_do),
        cmocka_unit_test(a_name_counts_when_content_says_nothing),
        cmocka_unit_test(the_public_call_answers_without_taking_the_transport),
        cmocka_unit_test(every_failing_read_and_allocation_is_passed_on),
    };
    return cmocka_run_group_tests_name("import/sniff", tests, NULL, NULL);
}
