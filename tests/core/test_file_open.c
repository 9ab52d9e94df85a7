#include "core/file_open.h"

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

/* Opens bytes in a heap block of exactly their size. *catalogue NULL on failure. */
static HurrayStatus open_bytes(const uint8_t *bytes, size_t len, const HryOpenLimits *limits, FailAlloc *alloc, HryCatalogue **catalogue) {
    HryFileOpen open;
    HryOpenLimits none = {0};
    HurrayStep step;
    HurrayStatus status;
    hry_error_clear(&error);
    *catalogue = NULL;
    hry_file_open_begin(&open, len, limits ? limits : &none, &alloc->allocator);
    while ((status = hry_file_open_step(&open, &step, catalogue, &error)) == HURRAY_OK && step.kind == HURRAY_STEP_RANGE) {
        uint8_t *dst;
        size_t want;
        assert_true(hry_file_open_rest(&open, &dst, &want));
        assert_true(step.offset <= len && step.len <= len - step.offset); /* never asks for what cannot be there */
        memcpy(dst, bytes + step.offset, want);
        status = hry_file_open_report(&open, want, &error);
        if (status != HURRAY_OK) break;
    }
    hry_file_open_clear(&open);
    if (status != HURRAY_OK) {
        assert_null(*catalogue);
        assert_int_equal(error.code, status);
        assert_true(error.message[0]);
    }
    return status;
}

static void build(Container *built) {
    HurrayKvEntry kv = {.key = "k", .key_len = 1, .value = {.kind = HURRAY_KV_UINT64, .u64 = 5}};
    container_begin_file(built, 4096);
    container_add(built, "first", make_plain(10, 64));
    container_add(built, "second", make_plain(20, 64));
    container_finish(built, BUILD_SUMS, &kv, 1);
}

static void a_file_cut_at_any_byte_is_an_error(void **state) {
    (void)state;
    Container built;
    FailAlloc alloc;
    HryCatalogue *catalogue;
    build(&built);
    fail_alloc_init(&alloc);
    for (size_t len = 0; len < built.len; len++) {
        uint8_t *cut = malloc(len ? len : 1);
        assert_non_null(cut);
        memcpy(cut, built.bytes, len);
        assert_int_not_equal(open_bytes(cut, len, NULL, &alloc, &catalogue), HURRAY_OK);
        fail_alloc_assert_empty(&alloc);
        free(cut);
    }
    assert_int_equal(open_bytes(built.bytes, built.len, NULL, &alloc, &catalogue), HURRAY_OK);
    hry_catalogue_unref(catalogue);
    container_free(&built);
}

static void any_flipped_bit_of_header_index_or_trailer_is_found_or_harmless(void **state) {
    (void)state;
    Container built;
    FailAlloc alloc;
    HryCatalogue *catalogue;
    build(&built);
    fail_alloc_init(&alloc);
    for (size_t bit = 0; bit < built.len * 8; bit++) {
        size_t at = bit / 8;
        if (at >= 64 && at < built.trailer.index_offset) continue;
        built.bytes[at] ^= (uint8_t)(1u << bit % 8);
        HurrayStatus status = open_bytes(built.bytes, built.len, NULL, &alloc, &catalogue);
        /* Harmless are the minor version, the hint, and the flag of KV that is there. */
        bool harmless = at == 9 || (at >= 28 && at < 36) || (at == 12 && bit % 8 == 0);
        if (bit == 12 * 8 + 1) harmless = true; /* "sorted": these names are */
        if (harmless != (status == HURRAY_OK)) print_error("byte %zu bit %zu: %d\n", at, bit % 8, status);
        assert_int_equal(status == HURRAY_OK, harmless);
        hry_catalogue_unref(catalogue);
        built.bytes[at] ^= (uint8_t)(1u << bit % 8);
        fail_alloc_assert_empty(&alloc);
    }
    container_free(&built);
}

static void limits_are_kept_before_memory_is_taken(void **state) {
    (void)state;
    Container built;
    FailAlloc alloc;
    HryCatalogue *catalogue;
    build(&built);
    fail_alloc_init(&alloc);
    for (int which = 0; which < 3; which++)
        for (int more = 0; more < 2; more++) {
            HryOpenLimits limits = {0};
            if (which == 0) limits.max_tensors = 1 + (uint64_t)more;
            if (which == 1) limits.max_index_bytes = built.trailer.index_length - 1 + (uint64_t)more;
            if (which == 2) limits.max_kv_bytes = built.trailer.kv_length - 1 + (uint64_t)more;
            HurrayStatus status = open_bytes(built.bytes, built.len, &limits, &alloc, &catalogue);
            assert_int_equal(status, more ? HURRAY_OK : HURRAY_ERR_LIMIT);
            if (!more) assert_int_equal(strncmp(error.field, "max_", 4), 0);
            hry_catalogue_unref(catalogue);
        }
    container_free(&built);
    fail_alloc_assert_empty(&alloc);
}

static void a_count_that_the_index_cannot_hold_allocates_nothing(void **state) {
    (void)state;
    static const uint64_t counts[] = {3, 1000, UINT32_MAX, UINT64_C(1) << 60, UINT64_MAX};
    Container built;
    FailAlloc alloc;
    HryCatalogue *catalogue;
    build(&built);
    fail_alloc_init(&alloc);
    for (size_t i = 0; i < 5; i++) {
        memcpy(built.bytes + built.trailer.index_offset, &counts[i], 8);
        container_mend(&built);
        assert_int_equal(open_bytes(built.bytes, built.len, NULL, &alloc, &catalogue), HURRAY_ERR_INVALID_CONTAINER);
        assert_true(alloc.peak_bytes < 64 << 10);
    }
    container_free(&built);
}

static void what_is_no_file_of_ours_says_so(void **state) {
    (void)state;
    FailAlloc alloc;
    HryCatalogue *catalogue;
    uint8_t bytes[200] = "HRRY\1 a stream begins like this";
    fail_alloc_init(&alloc);
    assert_int_equal(open_bytes(bytes, sizeof bytes, NULL, &alloc, &catalogue), HURRAY_ERR_INVALID_MAGIC);
    memset(bytes, '<', sizeof bytes);
    assert_int_equal(open_bytes(bytes, sizeof bytes, NULL, &alloc, &catalogue), HURRAY_ERR_INVALID_MAGIC);
    assert_int_equal(open_bytes(bytes, 10, NULL, &alloc, &catalogue), HURRAY_ERR_TRUNCATED);
}

static void an_empty_file_has_no_tensors(void **state) {
    (void)state;
    Container built;
    FailAlloc alloc;
    HryCatalogue *catalogue;
    uint64_t i;
    container_begin_file(&built, 4096);
    container_finish(&built, BUILD_SUMS, NULL, 0);
    assert_int_equal(built.len, HRY_SMALLEST_FILE);
    fail_alloc_init(&alloc);
    assert_int_equal(open_bytes(built.bytes, built.len, NULL, &alloc, &catalogue), HURRAY_OK);
    assert_int_equal(catalogue->entry_count, 0);
    assert_false(hry_catalogue_find(catalogue, "a", 1, &i));
    hry_catalogue_unref(catalogue);
    container_free(&built);
}

static void a_million_tensors_open_in_less_than_four_times_their_index(void **state) {
    (void)state;
    enum { COUNT = 1000000 };
    uint64_t index = HRY_HEADER_SIZE, name_len = 14, entry = 34 + name_len, length = 8 + COUNT * entry;
    size_t len = (size_t)(index + length + HRY_TRAILER_SIZE);
    FailAlloc alloc;
    HryCatalogue *catalogue;
    /* No room for descriptors is needed to open: heads without data, in a region that the file says it has. */
    uint64_t region = UINT64_C(64) * COUNT, at = 64;
    len += region;
    uint8_t *bytes = calloc(1, len), *p = bytes + HRY_HEADER_SIZE + region;
    assert_non_null(bytes);
    HryHeader header = {.major = 1, .data_buffer_alignment = 4096, .first_descriptor_offset = 64, .tensor_count_hint = UINT64_MAX};
    HryTrailer trailer = {.index_offset = index + region, .index_length = length};
    uint64_t count = COUNT;
    hry_header_encode(&header, bytes);
    memcpy(p, &count, 8);
    p += 8;
    for (uint64_t i = 0; i < COUNT; i++) {
        char name[16];
        uint32_t size = 48;
        uint64_t end = at + size;
        uint16_t n = (uint16_t)name_len;
        snprintf(name, sizeof name, "t%05u.%07u", (unsigned)(i % 70001), (unsigned)i);
        memcpy(p, &n, 2);
        memcpy(p + 2, name, name_len);
        memcpy(p + 2 + name_len, &at, 8);
        memcpy(p + 10 + name_len, &size, 4);
        memcpy(p + 14 + name_len, &end, 8);
        memset(p + 22 + name_len, 0, 12);
        p += entry;
        at += 64;
    }
    hry_trailer_encode(&trailer, p);
    fail_alloc_init(&alloc);
    HurrayStatus status = open_bytes(bytes, len, NULL, &alloc, &catalogue);
    if (status != HURRAY_OK) print_error("%s\n", error.message);
    assert_int_equal(status, HURRAY_OK);
    print_message("index %llu bytes, kept %llu, at most %llu\n", (unsigned long long)length, (unsigned long long)alloc.live_bytes,
                  (unsigned long long)alloc.peak_bytes);
    assert_true(alloc.peak_bytes < 4 * length);
    uint64_t i = 0;
    for (uint64_t k = 0; k < COUNT; k += 99991) {
        char name[16];
        snprintf(name, sizeof name, "t%05u.%07u", (unsigned)(k % 70001), (unsigned)k);
        assert_true(hry_catalogue_find(catalogue, name, name_len, &i));
        assert_int_equal(i, k);
    }
    hry_catalogue_unref(catalogue);
    fail_alloc_assert_empty(&alloc);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_cut_at_any_byte_is_an_error),
        cmocka_unit_test(any_flipped_bit_of_header_index_or_trailer_is_found_or_harmless),
        cmocka_unit_test(limits_are_kept_before_memory_is_taken),
        cmocka_unit_test(a_count_that_the_index_cannot_hold_allocates_nothing),
        cmocka_unit_test(what_is_no_file_of_ours_says_so),
        cmocka_unit_test(an_empty_file_has_no_tensors),
        cmocka_unit_test(a_million_tensors_open_in_less_than_four_times_their_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
