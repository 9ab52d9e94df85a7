#include "core/catalogue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/containers.h"
#include "support/fail_alloc.h"

static HurrayError error;

static HryCatalogue *make(FailAlloc *alloc) {
    HryCatalogue *catalogue = NULL;
    fail_alloc_init(alloc);
    hry_error_clear(&error);
    assert_int_equal(hry_catalogue_new(&alloc->allocator, &catalogue, &error), HURRAY_OK);
    return catalogue;
}

static void add(HryCatalogue *catalogue, const char *name, uint64_t offset) {
    HryEntry entry = {.name = (const uint8_t *)name, .name_len = name ? (uint32_t)strlen(name) : 0, .descriptor_offset = offset};
    assert_int_equal(hry_catalogue_add(catalogue, &entry, &error), HURRAY_OK);
}

static uint64_t find(const HryCatalogue *catalogue, const char *name) {
    uint64_t i = HURRAY_NONE;
    return hry_catalogue_find(catalogue, name, strlen(name), &i) ? i : HURRAY_NONE;
}

static void names_are_found_by_hash_or_by_bisection(void **state) {
    (void)state;
    static const char *const sorted[] = {"", "a", "a.b", "aa", "b", "bb", "c"};
    for (int bisect = 0; bisect < 2; bisect++) {
        FailAlloc alloc;
        HryCatalogue *catalogue = make(&alloc);
        for (size_t i = 0; i < 7; i++) add(catalogue, sorted[i], i * 8);
        catalogue->sorted = bisect;
        assert_int_equal(hry_catalogue_index_names(catalogue, &error), HURRAY_OK);
        for (size_t i = 0; i < 7; i++) assert_int_equal(find(catalogue, sorted[i]), i);
        assert_int_equal(find(catalogue, "a.a"), HURRAY_NONE);
        assert_int_equal(find(catalogue, "d"), HURRAY_NONE);
        assert_int_equal(find(catalogue, "A"), HURRAY_NONE);
        hry_catalogue_unref(catalogue);
        fail_alloc_assert_empty(&alloc);
    }
}

static void the_second_of_two_equal_names_is_reported(void **state) {
    (void)state;
    FailAlloc alloc;
    HryCatalogue *catalogue = make(&alloc);
    add(catalogue, "x", 0);
    add(catalogue, "y\x01", 8);
    add(catalogue, "y\x01", 16);
    assert_int_equal(hry_catalogue_index_names(catalogue, &error), HURRAY_ERR_DUPLICATE_NAME);
    assert_int_equal(error.tensor_index, 2);
    assert_string_equal(error.tensor, "y\\x01");
    hry_catalogue_unref(catalogue);
    fail_alloc_assert_empty(&alloc);
}

static void write_order_is_the_order_of_offsets_and_can_be_asked_both_ways(void **state) {
    (void)state;
    FailAlloc alloc;
    HryCatalogue *catalogue = make(&alloc);
    uint64_t next = 7;
    for (size_t i = 0; i < 1000; i++) {
        next = (next * 5 + 3) % 1024; /* all different: a full cycle */
        add(catalogue, NULL, next * 8);
    }
    assert_int_equal(hry_catalogue_order(catalogue, &error), HURRAY_OK);
    for (uint64_t p = 0; p < 1000; p++) {
        uint64_t i = hry_catalogue_in_write_order(catalogue, p);
        assert_int_equal(hry_catalogue_write_place(catalogue, i), p);
        if (p) {
            uint64_t before = catalogue->entries[hry_catalogue_in_write_order(catalogue, p - 1)].descriptor_offset;
            assert_true(before < catalogue->entries[i].descriptor_offset);
        }
    }
    hry_catalogue_unref(catalogue);
    fail_alloc_assert_empty(&alloc);
}

static void entries_in_write_order_need_no_table(void **state) {
    (void)state;
    FailAlloc alloc;
    HryCatalogue *catalogue = make(&alloc);
    for (size_t i = 0; i < 100; i++) add(catalogue, NULL, i * 8);
    fail_alloc_arm(&alloc, 1, 1);
    assert_int_equal(hry_catalogue_order(catalogue, &error), HURRAY_OK);
    assert_null(catalogue->write_order);
    assert_int_equal(hry_catalogue_write_place(catalogue, 42), 42);
    hry_catalogue_unref(catalogue);
    fail_alloc_assert_empty(&alloc);
}

static void buffers_lie_where_the_alignment_puts_them(void **state) {
    (void)state;
    FailAlloc alloc;
    HryCatalogue *catalogue = make(&alloc);
    HurrayBufferHandle handles[3] = {
        {.byte_size = 5000, .alignment = 64}, {.byte_size = 0, .alignment = 1}, {.byte_size = UINT64_MAX - 100, .alignment = 64}};
    HurrayDescriptor *descriptor = make_many(handles, 3);
    HryEntry entry = {.data_offset = 8192};
    uint64_t offset;
    catalogue->format = HURRAY_FORMAT_HRRY;
    catalogue->data_buffer_alignment = 4096;
    assert_true(hry_catalogue_buffer_offset(catalogue, &entry, descriptor, 0, &offset));
    assert_int_equal(offset, 8192);
    assert_true(hry_catalogue_buffer_offset(catalogue, &entry, descriptor, 1, &offset));
    assert_int_equal(offset, 16384);
    assert_true(hry_catalogue_buffer_offset(catalogue, &entry, descriptor, 2, &offset));
    assert_int_equal(offset, 16384);
    assert_false(hry_catalogue_buffer_offset(catalogue, &entry, descriptor, 3, &offset));
    catalogue->format = HURRAY_FORMAT_STREAM;
    assert_true(hry_catalogue_buffer_offset(catalogue, &entry, descriptor, 2, &offset));
    assert_int_equal(offset, 8192 + 5000);
    hry_descriptor_unref(descriptor);
    hry_catalogue_unref(catalogue);
}

static HurrayStatus build(FailAlloc *alloc, HryCatalogue **out) {
    HurrayKvEntry kv = {.key = "k", .key_len = 1, .value = {.kind = HURRAY_KV_UINT64, .u64 = 5}};
    HryForeign foreign = {.bytes = HRY_BYTES_SWAP};
    HurrayError fault;
    uint32_t place = 0, side = 0;
    hry_error_clear(&fault);
    HurrayStatus status = hry_catalogue_new(&alloc->allocator, out, &error);
    if (status != HURRAY_OK) return status;
    HurrayDescriptor *descriptor = make_plain(4, 64);
    HryEntry a = {.name = (const uint8_t *)"a", .name_len = 1, .descriptor_offset = 8, .descriptor = descriptor}, b = a;
    b.name = (const uint8_t *)"b";
    b.descriptor_offset = 0;
    b.descriptor = NULL;
    status = hry_catalogue_reserve(*out, 1, &error);
    if (status == HURRAY_OK) status = hry_catalogue_add(*out, &a, &error);
    if (status != HURRAY_OK) hry_descriptor_unref(descriptor);
    if (status == HURRAY_OK) status = hry_catalogue_add(*out, &b, &error);
    if (status == HURRAY_OK) status = hry_catalogue_add_kv(*out, &kv, &error);
    if (status == HURRAY_OK) status = hry_catalogue_add_foreign(*out, &foreign, &side, &error);
    if (status == HURRAY_OK) status = hry_catalogue_add_fault(*out, &fault, &place, &error);
    if (status == HURRAY_OK) status = hry_catalogue_add_note(*out, &fault, &error);
    if (status == HURRAY_OK && !hry_catalogue_block(*out, 100)) status = HURRAY_ERR_NO_MEMORY;
    if (status == HURRAY_OK) status = hry_catalogue_index_names(*out, &error);
    if (status == HURRAY_OK) status = hry_catalogue_order(*out, &error);
    if (status == HURRAY_OK) assert_true(side == 1 && place == 1);
    return status;
}

static void a_catalogue_owns_everything_added_and_survives_lack_of_memory(void **state) {
    (void)state;
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    for (uint64_t k = 1;; k++) {
        HryCatalogue *catalogue = NULL;
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = build(&alloc, &catalogue);
        if (status == HURRAY_OK) {
            uint64_t i = 9;
            assert_true(hry_catalogue_find_kv(catalogue, "k", 1, &i));
            assert_int_equal(i, 0);
            assert_false(hry_catalogue_find_kv(catalogue, "kk", 2, &i));
            assert_int_equal(hry_catalogue_in_write_order(catalogue, 0), 1);
            HryCatalogue *again = hry_catalogue_ref(catalogue);
            hry_catalogue_unref(catalogue);
            assert_int_equal(find(again, "b"), 1);
        } else
            assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        hry_catalogue_unref(catalogue);
        fail_alloc_assert_empty(&alloc);
        if (status == HURRAY_OK) break;
    }
    hry_catalogue_unref(NULL);
}

static void more_entries_than_can_be_numbered_are_refused(void **state) {
    (void)state;
    FailAlloc alloc;
    HryCatalogue *catalogue = make(&alloc);
    assert_int_equal(hry_catalogue_reserve(catalogue, UINT32_MAX, &error), HURRAY_ERR_LIMIT);
    assert_int_equal(hry_catalogue_reserve(catalogue, UINT64_MAX, &error), HURRAY_ERR_LIMIT);
    assert_null(hry_catalogue_block(catalogue, SIZE_MAX));
    hry_catalogue_unref(catalogue);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_by_hash_or_by_bisection),
        cmocka_unit_test(the_second_of_two_equal_names_is_reported),
        cmocka_unit_test(write_order_is_the_order_of_offsets_and_can_be_asked_both_ways),
        cmocka_unit_test(entries_in_write_order_need_no_table),
        cmocka_unit_test(buffers_lie_where_the_alignment_puts_them),
        cmocka_unit_test(a_catalogue_owns_everything_added_and_survives_lack_of_memory),
        cmocka_unit_test(more_entries_than_can_be_numbered_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
