/* Catalogues of our own two containers, for the loader. */
#include "import/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/transport_call.h"
#include "support/containers.h"
#include "support/fail_alloc.h"
#include "support/script_transport.h"

static const HryLimits wide = {UINT64_MAX, UINT64_C(1) << 30, UINT64_C(1) << 28, UINT64_C(1) << 24, UINT64_MAX, 64};
static HurrayError error;

typedef HurrayStatus (*Import)(const HurrayTransport *, uint64_t, const HryLimits *, const HurrayAllocator *, HryCatalogue **,
                               HurrayError *);

static HurrayStatus import(Import how, ScriptTransport *script, const HryLimits *limits, FailAlloc *alloc, HryCatalogue **out) {
    HurrayTransport user = script_transport(script), transport;
    hry_error_clear(&error);
    *out = NULL;
    assert_int_equal(hry_transport_resolve(&user, HRY_TRANSPORT_NEEDS_READ_AT, &transport, &error), HURRAY_OK);
    HurrayStatus status = how(&transport, script->len, limits, &alloc->allocator, out, &error);
    if (status != HURRAY_OK) {
        assert_null(*out);
        assert_true(error.message[0]);
        assert_int_equal(error.code, status);
    }
    return status;
}

static HurrayDescriptor *long_one(void) {
    HurrayBufferHandle handles[100];
    for (uint32_t k = 0; k < 100; k++) handles[k] = (HurrayBufferHandle){.byte_size = k, .alignment = 64};
    return make_many(handles, 100);
}

static void build_stream(Container *built) {
    container_begin_stream(built);
    container_add(built, NULL, make_plain(777, 64));
    container_add(built, NULL, long_one()); /* a descriptor beyond the first guess */
    container_add(built, NULL, make_group(1));
    container_add(built, NULL, make_plain(0, 64));
}

static void a_file_becomes_a_catalogue_without_reading_descriptors(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    FailAlloc alloc;
    HryCatalogue *catalogue;
    uint64_t i;
    fail_alloc_init(&alloc);
    container_begin_file(&built, 4096);
    container_add(&built, "a", make_plain(777, 64));
    container_add(&built, "b", long_one());
    container_finish(&built, BUILD_SUMS, NULL, 0);
    script_source(&script, built.bytes, built.len);
    script.io_alignment = 512;
    assert_int_equal(import(hry_import_hrry, &script, &wide, &alloc, &catalogue), HURRAY_OK);
    assert_int_equal(catalogue->format, HURRAY_FORMAT_HRRY);
    assert_int_equal(catalogue->entry_count, 2);
    assert_true(hry_catalogue_find(catalogue, "b", 1, &i));
    assert_null(catalogue->entries[1].descriptor);
    hry_catalogue_unref(catalogue);
    for (uint64_t k = 1;; k++) {
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = import(hry_import_hrry, &script, &wide, &alloc, &catalogue);
        hry_catalogue_unref(catalogue);
        fail_alloc_assert_empty(&alloc);
        if (status == HURRAY_OK) break;
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
    }
    fail_alloc_arm(&alloc, 0, 0);
    HryLimits limits = wide;
    limits.max_tensors = 1;
    assert_int_equal(import(hry_import_hrry, &script, &limits, &alloc, &catalogue), HURRAY_ERR_LIMIT);
    script_fail(&script, 2, -1001, 0);
    assert_int_equal(import(hry_import_hrry, &script, &wide, &alloc, &catalogue), -1001);
    fail_alloc_assert_empty(&alloc);
    script_free(&script);
    container_free(&built);
}

static void a_stream_becomes_a_catalogue_of_nameless_tensors(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    FailAlloc alloc;
    HryCatalogue *catalogue;
    uint64_t offset, i;
    fail_alloc_init(&alloc);
    build_stream(&built);
    script_source(&script, built.bytes, built.len);
    assert_int_equal(import(hry_import_stream, &script, &wide, &alloc, &catalogue), HURRAY_OK);
    assert_int_equal(catalogue->format, HURRAY_FORMAT_STREAM);
    assert_int_equal(catalogue->entry_count, 4);
    for (size_t t = 0; t < 4; t++) {
        const HryEntry *entry = &catalogue->entries[t];
        assert_null(entry->name);
        assert_int_equal(entry->descriptor_offset, built.rows[t].descriptor_offset);
        assert_int_equal(entry->data_offset, built.rows[t].data_offset);
        assert_int_equal(entry->data_length, built.rows[t].data_length);
        assert_int_equal(entry->descriptor->buffer_count, built.counts[t]);
    }
    assert_true(hry_catalogue_buffer_offset(catalogue, &catalogue->entries[1], catalogue->entries[1].descriptor, 3, &offset));
    assert_int_equal(offset, built.rows[1].data_offset + 0 + 1 + 2);
    assert_false(hry_catalogue_find(catalogue, "", 0, &i));
    hry_catalogue_unref(catalogue);
    for (uint64_t k = 1;; k++) {
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = import(hry_import_stream, &script, &wide, &alloc, &catalogue);
        hry_catalogue_unref(catalogue);
        fail_alloc_assert_empty(&alloc);
        if (status == HURRAY_OK) break;
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
    }
    script_free(&script);
    container_free(&built);
}

static void a_stream_cut_anywhere_but_between_items_is_truncated(void **state) {
    (void)state;
    Container built;
    FailAlloc alloc;
    size_t next = 0;
    fail_alloc_init(&alloc);
    build_stream(&built);
    for (size_t len = 0; len <= built.len; len++) {
        ScriptTransport script;
        HryCatalogue *catalogue;
        bool boundary = len == built.len || (next < built.count && len == built.rows[next].descriptor_offset);
        script_source(&script, built.bytes, len);
        HurrayStatus status = import(hry_import_stream, &script, &wide, &alloc, &catalogue);
        assert_int_equal(status, boundary ? HURRAY_OK : HURRAY_ERR_TRUNCATED);
        if (boundary) {
            assert_int_equal(catalogue->entry_count, next);
            next++;
        }
        hry_catalogue_unref(catalogue);
        fail_alloc_assert_empty(&alloc);
        script_free(&script);
    }
    container_free(&built);
}

static void limits_and_bad_descriptors_are_named(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    FailAlloc alloc;
    HryCatalogue *catalogue;
    fail_alloc_init(&alloc);
    build_stream(&built);
    script_source(&script, built.bytes, built.len);
    HryLimits limits = wide;
    limits.max_tensors = 3;
    assert_int_equal(import(hry_import_stream, &script, &limits, &alloc, &catalogue), HURRAY_ERR_LIMIT);
    assert_int_equal(error.tensor_index, 3);
    limits = wide;
    limits.max_tensor_bytes = 776;
    assert_int_equal(import(hry_import_stream, &script, &limits, &alloc, &catalogue), HURRAY_ERR_LIMIT);
    limits = wide;
    limits.max_descriptor_bytes = 1000;
    assert_int_equal(import(hry_import_stream, &script, &limits, &alloc, &catalogue), HURRAY_ERR_LIMIT);
    assert_int_equal(error.tensor_index, 1);
    for (uint64_t n = 1; n < 6; n++) {
        script_fail(&script, n, -1001, 0);
        assert_int_equal(import(hry_import_stream, &script, &wide, &alloc, &catalogue), -1001);
    }
    script_fail(&script, 0, 0, 0);
    script.bytes[built.rows[2].descriptor_offset] ^= 1;
    assert_int_equal(import(hry_import_stream, &script, &wide, &alloc, &catalogue), HURRAY_ERR_INVALID_MAGIC);
    assert_int_equal(error.offset, built.rows[2].descriptor_offset);
    fail_alloc_assert_empty(&alloc);
    script_free(&script);
    container_free(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_becomes_a_catalogue_without_reading_descriptors),
        cmocka_unit_test(a_stream_becomes_a_catalogue_of_nameless_tensors),
        cmocka_unit_test(a_stream_cut_anywhere_but_between_items_is_truncated),
        cmocka_unit_test(limits_and_bad_descriptors_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
