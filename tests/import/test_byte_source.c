#include "import/byte_source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "import/common.h"
#include "support/fail_alloc.h"
#include "support/import_case.h"
#include "support/script_transport.h"

enum { COUNT = 300000, PREFIX = 10 };

typedef struct Fixture {
    HryCatalogue *catalogue;
    ScriptTransport script;
    HurrayTransport transport;
    uint8_t *expected;
    uint64_t size;
} Fixture;

/* One entry of COUNT source bytes behind a prefix that is no part of the array. deflated: as a zip member; then: what else happens. */
static void make(Fixture *f, bool deflated, HryByteChange then, bool crc) {
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    uint8_t *raw = malloc(PREFIX + COUNT), *packed = malloc(COUNT + 100000);
    memset(f, 0, sizeof *f);
    for (unsigned i = 0; i < PREFIX + COUNT; i++)
        raw[i] = (uint8_t)(then == HRY_BYTES_PACK_BOOL && i >= PREFIX ? i * i % 7 == 1 : i * 2654435761u >> 13);
    f->size = then == HRY_BYTES_PACK_BOOL ? (COUNT + 7) / 8 : COUNT;
    f->expected = calloc(1, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        if (then == HRY_BYTES_PACK_BOOL)
            f->expected[i / 8] |= (uint8_t)(raw[PREFIX + i] << i % 8);
        else
            f->expected[then == HRY_BYTES_SWAP ? i - i % 4 + (3 - i % 4) : i] = raw[PREFIX + i];
    }
    z_stream z;
    memset(&z, 0, sizeof z);
    deflateInit2(&z, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    z.next_in = raw, z.avail_in = PREFIX + COUNT, z.next_out = packed, z.avail_out = COUNT + 100000;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    uint64_t packed_len = z.total_out;
    deflateEnd(&z);
    script_source(&f->script, deflated ? packed : raw, deflated ? (size_t)packed_len : PREFIX + COUNT);
    f->transport = script_transport(&f->script);
    HryForeign foreign = {.bytes = deflated ? HRY_BYTES_INFLATE : then,
                          .then = then,
                          .unit = 4,
                          .packed_offset = deflated ? 0 : PREFIX,
                          .packed_length = deflated ? packed_len : COUNT,
                          .unpacked_length = deflated ? PREFIX + COUNT : COUNT,
                          .skip = deflated ? PREFIX : 0,
                          .has_crc32 = crc,
                          .crc32 = (uint32_t)crc32(0, raw, PREFIX + COUNT),
                          .crc_prefix = deflated ? 0 : (uint32_t)crc32(0, raw, PREFIX)};
    HryImported imported = {.element_type = then == HRY_BYTES_PACK_BOOL ? HURRAY_TYPE_BOOL : HURRAY_TYPE_UINT8,
                            .layout_tag = HURRAY_LAYOUT_ROW_MAJOR,
                            .rank = 1,
                            .shape = (const uint64_t[]){COUNT},
                            .byte_size = f->size};
    HryEntry entry = {.name = (const uint8_t *)"t", .name_len = 1, .descriptor_offset = HURRAY_NONE, .data_offset = PREFIX};
    assert_int_equal(hry_import_catalogue(HURRAY_FORMAT_NPZ, f->script.len, &allocator, &f->catalogue, &error), HURRAY_OK);
    if (deflated || then != HRY_BYTES_AS_IS || crc)
        assert_int_equal(hry_catalogue_add_foreign(f->catalogue, &foreign, &entry.side, &error), HURRAY_OK);
    assert_int_equal(hry_import_describe(&imported, &allocator, &entry.descriptor, &error), HURRAY_OK);
    assert_int_equal(hry_catalogue_add(f->catalogue, &entry, &error), HURRAY_OK);
    free(raw), free(packed);
}

static void drop(Fixture *f) {
    hry_catalogue_unref(f->catalogue);
    script_free(&f->script);
    free(f->expected);
}

static HryByteSource *begin(Fixture *f, const HurrayAllocator *allocator) {
    HryByteSource *source = NULL;
    HurrayError error;
    assert_int_equal(hry_byte_source_open(&f->transport, f->catalogue, &f->catalogue->entries[0], allocator, &source, &error), HURRAY_OK);
    assert_int_equal(hry_byte_source_size(source), f->size);
    return source;
}

static const struct {
    bool deflated;
    HryByteChange then;
    bool crc;
} kinds[] = {{false, HRY_BYTES_AS_IS, false},    {false, HRY_BYTES_AS_IS, true}, {false, HRY_BYTES_PACK_BOOL, true},
             {false, HRY_BYTES_SWAP, false},     {false, HRY_BYTES_SWAP, true},  {true, HRY_BYTES_AS_IS, true},
             {true, HRY_BYTES_PACK_BOOL, false}, {true, HRY_BYTES_SWAP, true}};
#define KINDS (sizeof kinds / sizeof *kinds)

static void any_piece_in_any_order_is_the_same_bytes(void **state) {
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        Fixture f;
        HurrayError error;
        FailAlloc alloc;
        fail_alloc_init(&alloc);
        make(&f, kinds[k].deflated, kinds[k].then, kinds[k].crc);
        HryByteSource *source = begin(&f, &alloc.allocator);
        uint8_t *got = malloc(f.size);
        assert_int_equal(hry_byte_source_read(source, 0, got, (size_t)f.size, &error), HURRAY_OK);
        assert_memory_equal(got, f.expected, f.size);
        static const uint64_t places[] = {5, 3, 30001, 30000, 7, 37499, 0, 11111};
        for (size_t i = 0; i < 8; i++) {
            memset(got, 0, 1000);
            size_t len = f.size - places[i] < 999 ? (size_t)(f.size - places[i]) : 999;
            assert_int_equal(hry_byte_source_read(source, places[i], got, len, &error), HURRAY_OK);
            assert_memory_equal(got, f.expected + places[i], len);
        }
        script_every(&f.script, 100); /* short reads change nothing */
        assert_int_equal(hry_byte_source_read(source, 0, got, (size_t)f.size, &error), HURRAY_OK);
        assert_memory_equal(got, f.expected, f.size);
        assert_int_equal(hry_byte_source_read(source, f.size, got, 0, &error), HURRAY_OK);
        assert_int_equal(hry_byte_source_read(source, f.size, got, 1, &error), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
        assert_int_equal(hry_byte_source_read(source, 1, got, SIZE_MAX, &error), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
        assert_true(alloc.peak_bytes <= 256 * 1024);
        hry_byte_source_close(&source);
        hry_byte_source_close(&source);
        fail_alloc_assert_empty(&alloc);
        free(got);
        drop(&f);
    }
}

static void a_damaged_byte_is_found_by_the_last_piece_in_order(void **state) {
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        Fixture f;
        HurrayError error;
        HurrayAllocator allocator = hry_alloc_default();
        make(&f, kinds[k].deflated, kinds[k].then, kinds[k].crc);
        if (!kinds[k].crc) {
            drop(&f);
            continue;
        }
        f.catalogue->foreign[0].crc32 ^= 1;
        HryByteSource *source = begin(&f, &allocator);
        uint8_t *got = malloc(f.size);
        for (int round = 0; round < 2; round++) {
            size_t first = 4096, last = (size_t)f.size - first;
            assert_int_equal(hry_byte_source_read(source, 0, got, first, &error), HURRAY_OK);
            assert_int_equal(hry_byte_source_read(source, first, got, last, &error), HURRAY_ERR_CHECKSUM);
        }
        if (!kinds[k].deflated)
            assert_int_equal(hry_byte_source_read(source, 4, got, (size_t)f.size - 4, &error), HURRAY_OK); /* not in order: unchecked */
        hry_byte_source_close(&source);
        free(got);
        drop(&f);
    }
}

static void a_failing_read_or_allocation_is_passed_on_and_the_next_read_works(void **state) {
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        Fixture f;
        HurrayError error;
        FailAlloc alloc;
        fail_alloc_init(&alloc);
        make(&f, kinds[k].deflated, kinds[k].then, kinds[k].crc);
        uint8_t *got = malloc(f.size);
        HryByteSource *source = begin(&f, &alloc.allocator);
        for (uint64_t call = 1;; call += 3) {
            script_fail(&f.script, call, -1700, 0);
            HurrayStatus status = hry_byte_source_read(source, 0, got, (size_t)f.size, &error);
            if (status == HURRAY_OK) break;
            assert_int_equal(status, -1700);
            script_fail(&f.script, 0, 0, 0);
            assert_int_equal(hry_byte_source_read(source, 100, got, 200, &error), HURRAY_OK);
            assert_memory_equal(got, f.expected + 100, 200);
        }
        hry_byte_source_close(&source);
        script_fail(&f.script, 0, 0, 0);
        for (uint64_t call = 1;; call++) {
            fail_alloc_arm(&alloc, call, 0);
            HurrayStatus status =
                hry_byte_source_open(&f.transport, f.catalogue, &f.catalogue->entries[0], &alloc.allocator, &source, &error);
            if (status == HURRAY_OK) status = hry_byte_source_read(source, 0, got, (size_t)f.size, &error);
            hry_byte_source_close(&source);
            fail_alloc_assert_empty(&alloc);
            if (status == HURRAY_OK) break;
            assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        }
        free(got);
        drop(&f);
    }
}

static void an_entry_without_a_buffer_has_nothing_to_read(void **state) {
    (void)state;
    HryEntry entry = {0};
    HryByteSource *source = NULL;
    HurrayError error;
    HurrayAllocator allocator = hry_alloc_default();
    assert_false(hry_byte_source_needed(&entry));
    assert_int_equal(hry_byte_source_open(NULL, NULL, &entry, &allocator, &source, &error), HURRAY_ERR_INTERNAL);
    assert_null(source);
}

static void a_source_that_became_shorter_is_truncated(void **state) {
    (void)state;
    Fixture f;
    HurrayError error;
    HurrayAllocator allocator = hry_alloc_default();
    make(&f, true, HRY_BYTES_AS_IS, true);
    size_t whole = f.script.len;
    f.script.len /= 2;
    HryByteSource *source = begin(&f, &allocator);
    uint8_t *got = malloc(f.size);
    assert_int_equal(hry_byte_source_read(source, 0, got, (size_t)f.size, &error), HURRAY_ERR_TRUNCATED);
    f.script.len = whole;
    f.script.bytes[0] = 0xFF; /* no deflate block begins so */
    assert_int_equal(hry_byte_source_read(source, 0, got, (size_t)f.size, &error), HURRAY_ERR_INVALID_DATA);
    hry_byte_source_close(&source);
    free(got);
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_piece_in_any_order_is_the_same_bytes),
        cmocka_unit_test(a_damaged_byte_is_found_by_the_last_piece_in_order),
        cmocka_unit_test(a_failing_read_or_allocation_is_passed_on_and_the_next_read_works),
        cmocka_unit_test(an_entry_without_a_buffer_has_nothing_to_read),
        cmocka_unit_test(a_source_that_became_shorter_is_truncated),
    };
    return cmocka_run_group_tests_name("import/byte_source", tests, NULL, NULL);
}
