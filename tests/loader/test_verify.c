#include "loader/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/composites.h"
#include "support/fail_alloc.h"
#include "support/models.h"
#include "support/script_transport.h"

#define ALL (HURRAY_CHECK_PADDING | HURRAY_CHECK_DATA | HURRAY_CHECK_SUMS)

static const ModelTensor three[] = {{"a", 5000, 1}, {"b", 16, 2}, {"c", 70000, 3}};

typedef struct Findings {
    int count, stop_after;
    HurrayError last;
} Findings;

static HurrayStatus found(void *ctx, const HurrayError *finding) {
    Findings *findings = ctx;
    findings->last = *finding;
    assert_true(finding->message[0] != 0);
    return ++findings->count == findings->stop_after ? -1700 : HURRAY_OK;
}

static HurrayLoader *open_bytes(ScriptTransport *script, const ModelBytes *bytes, const HurrayLoaderOptions *options) {
    script_source(script, bytes->bytes, bytes->len);
    HurrayTransport transport = script_transport(script);
    HurraySource source = {.transport = &transport, .label = "file", .label_len = 4};
    HurrayLoader *loader = NULL;
    assert_int_equal(hurray_loader_open_sources(&source, 1, options, &loader, NULL), HURRAY_OK);
    return loader;
}

static HurrayStatus verify(const ModelBytes *bytes, uint32_t what, Findings *findings) {
    ScriptTransport script;
    HurrayLoader *loader = open_bytes(&script, bytes, NULL);
    memset(findings, 0, sizeof *findings);
    HurrayStatus status = hurray_loader_verify(loader, what, found, findings);
    assert_int_equal(hurray_loader_last_error(loader)->code, status);
    assert_int_equal(hurray_loader_verify(loader, what, NULL, NULL), status);
    hurray_loader_destroy(&loader);
    script_free(&script);
    return status;
}

static void a_file_as_written_has_no_findings(void **state) {
    (void)state;
    Findings findings;
    ModelBytes hrry = model_hrry(three, 3, 0), foreign = model_safetensors(three, 3), empty = model_hrry(three, 0, 0);
    assert_int_equal(verify(&hrry, ALL, &findings), HURRAY_OK);
    assert_int_equal(findings.count, 0);
    assert_int_equal(verify(&foreign, ALL, &findings), HURRAY_OK);
    assert_int_equal(verify(&empty, ALL, &findings), HURRAY_OK);
    model_free(&hrry);
    model_free(&foreign);
    model_free(&empty);
}

static uint64_t data_offset(const ModelBytes *bytes, uint64_t i, uint64_t *descriptor_offset) {
    ScriptTransport script;
    HurrayLoader *loader = open_bytes(&script, bytes, NULL);
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    assert_int_equal(hurray_loader_tensor_info(loader, i, &info), HURRAY_OK);
    if (descriptor_offset) *descriptor_offset = info.descriptor_offset;
    hurray_loader_destroy(&loader);
    script_free(&script);
    return info.data_offset;
}

static void every_gap_must_be_zero(void **state) {
    (void)state;
    Findings findings;
    ModelBytes bytes = model_hrry(three, 3, 0);
    uint64_t at = data_offset(&bytes, 1, NULL) - 1;
    bytes.bytes[at] = 7;
    assert_int_equal(verify(&bytes, ALL, &findings), HURRAY_ERR_INVALID_DATA);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.last.offset, at);
    assert_string_equal(findings.last.source, "file");
    assert_int_equal(verify(&bytes, HURRAY_CHECK_DATA | HURRAY_CHECK_SUMS, &findings), HURRAY_OK);
    bytes.bytes[data_offset(&bytes, 2, NULL) - 1] = 7;
    assert_int_equal(verify(&bytes, HURRAY_CHECK_PADDING, &findings), HURRAY_ERR_INVALID_DATA);
    assert_int_equal(findings.count, 2);
    model_free(&bytes);
}

static void a_byte_that_changed_breaks_its_sum(void **state) {
    (void)state;
    Findings findings;
    ModelBytes bytes = model_hrry(three, 3, 0);
    bytes.bytes[data_offset(&bytes, 2, NULL) + 69999] ^= 1;
    assert_int_equal(verify(&bytes, ALL, &findings), HURRAY_ERR_CHECKSUM);
    assert_int_equal(findings.count, 1);
    assert_string_equal(findings.last.tensor, "c");
    assert_int_equal(findings.last.buffer_index, 0);
    assert_int_equal(verify(&bytes, HURRAY_CHECK_PADDING | HURRAY_CHECK_DATA, &findings), HURRAY_OK);
    model_free(&bytes);
}

static void a_spoiled_tensor_is_a_finding_and_the_others_are_checked_too(void **state) {
    (void)state;
    Findings findings;
    ModelBytes bytes = model_hrry(three, 3, 0);
    uint64_t descriptor;
    bytes.bytes[data_offset(&bytes, 2, NULL)] ^= 1;
    data_offset(&bytes, 0, &descriptor);
    bytes.bytes[descriptor + 14] = 0x47;
    assert_int_equal(verify(&bytes, ALL, &findings), HURRAY_ERR_INVALID_TYPE);
    assert_int_equal(findings.count, 2);
    assert_string_equal(findings.last.tensor, "c");
    model_free(&bytes);
}

static void rules_that_need_contents_are_checked(void **state) {
    (void)state;
    ModelWriter writer;
    Findings findings;
    uint64_t shape = 3;
    HurrayDescriptor *descriptor = make_member(HURRAY_TYPE_UINT4, 1, &shape, NULL, NULL, NO_ROLE);
    uint8_t data[2] = {0x12, 0xF3}; /* the unused half must be 0 */
    HurrayIoSlice slice = {data, 2};
    model_writer_begin(&writer, 0);
    assert_int_equal(hurray_file_writer_write_tensor(writer.writer, "nibbles", 7, descriptor, &slice, 1), HURRAY_OK);
    hurray_descriptor_destroy(descriptor);
    ModelBytes bytes = model_writer_end(&writer);
    assert_int_equal(verify(&bytes, HURRAY_CHECK_DATA, &findings), HURRAY_ERR_INVALID_DATA);
    assert_int_equal(findings.count, 1);
    assert_string_equal(findings.last.tensor, "nibbles");
    assert_int_equal(verify(&bytes, HURRAY_CHECK_PADDING | HURRAY_CHECK_SUMS, &findings), HURRAY_OK);
    model_free(&bytes);
}

static void the_callback_and_cancel_can_stop_it(void **state) {
    (void)state;
    ScriptTransport script;
    Findings findings = {.stop_after = 1};
    ModelBytes bytes = model_hrry(three, 3, 0);
    HurrayTensorSet *set = NULL;
    bytes.bytes[data_offset(&bytes, 1, NULL) - 1] = 7;
    bytes.bytes[data_offset(&bytes, 2, NULL) - 1] = 7;
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL);
    assert_int_equal(hurray_loader_verify(loader, ALL, found, &findings), -1700);
    assert_int_equal(findings.count, 1);
    assert_int_equal(hurray_loader_cancel(loader), HURRAY_OK);
    assert_int_equal(hurray_loader_verify(loader, ALL, found, &findings), HURRAY_ERR_CANCELLED);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_ERR_CANCELLED); /* it sticks until a load has returned it */
    assert_int_equal(hurray_loader_verify(loader, 8, found, &findings), HURRAY_ERR_UNSUPPORTED);
    script_fail(&script, 1, -1701, 1);
    assert_int_equal(hurray_loader_verify(loader, ALL, found, &findings), -1701);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void a_failing_allocation_at_any_place_leaks_nothing(void **state) {
    (void)state;
    ScriptTransport script;
    FailAlloc alloc;
    ModelBytes bytes = model_hrry(three, 3, 0);
    fail_alloc_init(&alloc);
    for (uint64_t k = 1; k < 500; k++) {
        HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
        options.allocator = &alloc.allocator;
        fail_alloc_arm(&alloc, 0, 0);
        HurrayLoader *loader = open_bytes(&script, &bytes, &options);
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hurray_loader_verify(loader, ALL, NULL, NULL);
        hurray_loader_destroy(&loader);
        script_free(&script);
        fail_alloc_assert_empty(&alloc);
        if (status == HURRAY_OK) break;
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
    }
    model_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_as_written_has_no_findings),
        cmocka_unit_test(every_gap_must_be_zero),
        cmocka_unit_test(a_byte_that_changed_breaks_its_sum),
        cmocka_unit_test(a_spoiled_tensor_is_a_finding_and_the_others_are_checked_too),
        cmocka_unit_test(rules_that_need_contents_are_checked),
        cmocka_unit_test(the_callback_and_cancel_can_stop_it),
        cmocka_unit_test(a_failing_allocation_at_any_place_leaks_nothing),
    };
    return cmocka_run_group_tests_name("loader/verify", tests, NULL, NULL);
}
