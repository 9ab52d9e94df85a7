#include "import/npz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "import/zip.h"
#include "support/fail_alloc.h"
#include "support/import_case.h"
#include "support/script_transport.h"

/* An archive under construction: members first, then the directory. */
typedef struct Zip {
    Built file, directory;
    unsigned count;
    bool zip64;
} Zip;

typedef struct Member {
    const char *name;
    uint16_t flags, method;
    const uint8_t *bytes; /* unpacked */
    size_t len;
    uint32_t crc_error;                 /* added to the CRC */
    int64_t unpacked_error, packed_cut; /* added to the directory's size; taken from the packed bytes */
    const char *local_name;
} Member;

static void add(Zip *zip, const Member *m) {
    size_t name_len = strlen(m->name), local = zip->file.len;
    uint8_t *packed = malloc(m->len + 1024);
    size_t packed_len = m->len;
    if (m->len) memcpy(packed, m->bytes, m->len);
    if (m->method == 8) {
        z_stream z;
        memset(&z, 0, sizeof z);
        deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
        z.next_in = (Bytef *)(uintptr_t)m->bytes, z.avail_in = (uInt)m->len;
        z.next_out = packed, z.avail_out = (uInt)m->len + 1024;
        deflate(&z, Z_FINISH);
        packed_len = z.total_out;
        deflateEnd(&z);
    }
    packed_len -= (size_t)m->packed_cut;
    uint64_t unpacked = (uint64_t)((int64_t)m->len + m->unpacked_error);
    uint32_t crc = (uint32_t)crc32(0, m->bytes, (uInt)m->len) + m->crc_error;
    const char *local_name = m->local_name ? m->local_name : m->name;
    built_u32(&zip->file, 0x04034b50), built_u16(&zip->file, 20), built_u16(&zip->file, m->flags), built_u16(&zip->file, m->method),
        built_u32(&zip->file, 0);
    built_u32(&zip->file, 0xDEAD), built_u32(&zip->file, UINT32_MAX), built_u32(&zip->file, UINT32_MAX);
    built_u16(&zip->file, (uint16_t)strlen(local_name)), built_u16(&zip->file, 20), built_text(&zip->file, local_name);
    built_u16(&zip->file, 1), built_u16(&zip->file, 16), built_u64(&zip->file, 1), built_u64(&zip->file, 2);
    built_bytes(&zip->file, packed, packed_len);
    free(packed);
    Built *d = &zip->directory;
    built_u32(d, 0x02014b50), built_u16(d, 20), built_u16(d, 20), built_u16(d, m->flags), built_u16(d, m->method), built_u32(d, 0);
    built_u32(d, crc), built_u32(d, zip->zip64 ? UINT32_MAX : (uint32_t)packed_len),
        built_u32(d, zip->zip64 ? UINT32_MAX : (uint32_t)unpacked);
    built_u16(d, (uint16_t)name_len), built_u16(d, zip->zip64 ? 28 : 0), built_u16(d, 0), built_u16(d, 0), built_u16(d, 0), built_u32(d, 0);
    built_u32(d, zip->zip64 ? UINT32_MAX : (uint32_t)local), built_text(d, m->name);
    if (zip->zip64) built_u16(d, 1), built_u16(d, 24), built_u64(d, unpacked), built_u64(d, packed_len), built_u64(d, local);
    zip->count++;
}

/* Closes the archive: directory, end records, comment. */
static Built finish(Zip *zip, const char *comment) {
    size_t at = zip->file.len;
    built_bytes(&zip->file, zip->directory.bytes, zip->directory.len);
    if (zip->zip64) {
        size_t end = zip->file.len;
        built_u32(&zip->file, 0x06064b50), built_u64(&zip->file, 44), built_u16(&zip->file, 45), built_u16(&zip->file, 45),
            built_u32(&zip->file, 0), built_u32(&zip->file, 0);
        built_u64(&zip->file, zip->count), built_u64(&zip->file, zip->count), built_u64(&zip->file, zip->directory.len),
            built_u64(&zip->file, at);
        built_u32(&zip->file, 0x07064b50), built_u32(&zip->file, 0), built_u64(&zip->file, end), built_u32(&zip->file, 1);
    }
    built_u32(&zip->file, 0x06054b50), built_u16(&zip->file, 0), built_u16(&zip->file, 0);
    built_u16(&zip->file, zip->zip64 ? 0xFFFF : (uint16_t)zip->count), built_u16(&zip->file, zip->zip64 ? 0xFFFF : (uint16_t)zip->count);
    built_u32(&zip->file, zip->zip64 ? UINT32_MAX : (uint32_t)zip->directory.len),
        built_u32(&zip->file, zip->zip64 ? UINT32_MAX : (uint32_t)at);
    built_u16(&zip->file, (uint16_t)strlen(comment)), built_text(&zip->file, comment);
    Built file = zip->file;
    built_free(&zip->directory);
    memset(zip, 0, sizeof *zip);
    return file;
}

/* An NPY array of count elements, 0, 1, 2, ... */
static Built array(const char *descr, unsigned count, unsigned item_size) {
    Built out = {0};
    char header[120];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%u,), }\n", descr, count);
    built_bytes(&out, "\x93NUMPY\x01\x00", 8), built_u16(&out, (uint16_t)strlen(header)), built_text(&out, header);
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < item_size; k++) built_u8(&out, (uint8_t)(item_size == 1 ? i & 1 : k < 4 ? i >> (8 * k) : 0));
    return out;
}

static void add_array(Zip *zip, const char *name, uint16_t method, const char *descr, unsigned count, unsigned item_size) {
    Built npy = array(descr, count, item_size);
    add(zip, &(Member){.name = name, .method = method, .bytes = npy.bytes, .len = npy.len});
    built_free(&npy);
}

static void refuse_archive(Built *file, HurrayStatus status, const char *word) {
    import_refused(hry_import_npz, file->bytes, file->len, status, word);
    built_free(file);
}

static void members_become_tensors_in_directory_order(void **state) {
    (void)state;
    for (int zip64 = 0; zip64 < 2; zip64++) {
        Zip zip = {.zip64 = zip64};
        add_array(&zip, "b.npy", 0, "<u2", 300, 2);
        add_array(&zip, "a/../x.npy.npy", 8, "<u2", 300, 2);
        add_array(&zip, "bools", 8, "|b1", 11, 1);
        add_array(&zip, "big.npy", 8, ">u4", 5000, 4);
        add_array(&zip, "swapped.npy", 0, ">u2", 3, 2);
        add(&zip, &(Member){.name = "folder/", .bytes = (const uint8_t *)""});
        add_array(&zip, "empty.npy", 8, "<f8", 0, 8);
        Built file = finish(&zip, "a comment");
        HryCatalogue *c = import_open(hry_import_npz, file.bytes, file.len);
        assert_int_equal(c->entry_count, 6);
        assert_int_equal(c->format, HURRAY_FORMAT_NPZ);
        assert_memory_equal(c->entries[0].name, "b", 1);
        assert_int_equal(c->entries[0].name_len, 1);
        assert_int_equal(c->entries[1].name_len, 10);
        assert_memory_equal(c->entries[1].name, "a/../x.npy", 10);
        for (size_t piece = 0; piece < 2000; piece = piece * 3 + 1) {
            HurrayStatus status;
            for (uint64_t i = 0; i < 2; i++) {
                uint8_t *bytes = import_read(c, file.bytes, file.len, i, piece, &status);
                assert_int_equal(status, HURRAY_OK);
                for (unsigned k = 0; k < 300; k++) assert_int_equal(bytes[2 * k] | bytes[2 * k + 1] << 8, k);
                free(bytes);
            }
            uint8_t *bytes = import_read(c, file.bytes, file.len, 2, piece, &status);
            assert_int_equal(status, HURRAY_OK);
            assert_int_equal(bytes[0], 0xAA);
            assert_int_equal(bytes[1], 0x02);
            free(bytes);
            bytes = import_read(c, file.bytes, file.len, 3, piece, &status);
            assert_int_equal(status, HURRAY_OK);
            assert_memory_equal(bytes + 4 * 4999, "\0\0\x13\x87", 4); /* written little-endian, read as big-endian, swapped */
            free(bytes);
            bytes = import_read(c, file.bytes, file.len, 4, piece, &status);
            assert_int_equal(status, HURRAY_OK);
            assert_memory_equal(bytes, "\0\0\0\1\0\2", 6);
            free(bytes);
        }
        assert_int_equal(c->entries[5].descriptor->buffers[0].byte_size, 0);
        hry_catalogue_unref(c);
        built_free(&file);
    }
}

static void an_archive_without_members_is_legal(void **state) {
    (void)state;
    Zip zip = {0};
    Built file = finish(&zip, "");
    HryCatalogue *c = import_open(hry_import_npz, file.bytes, file.len);
    assert_int_equal(c->entry_count, 0);
    hry_catalogue_unref(c);
    built_free(&file);
}

/* The archive opens, member 1 has this fault, members 0 and 2 load. */
static void spoiled(const Member *member, HurrayStatus status, const char *word) {
    Zip zip = {0};
    add_array(&zip, "first.npy", 0, "<u2", 3, 2);
    add(&zip, member);
    add_array(&zip, "last.npy", 8, "<u2", 3, 2);
    Built file = finish(&zip, "");
    HryCatalogue *c = import_open(hry_import_npz, file.bytes, file.len);
    assert_int_equal(c->entry_count, 3);
    assert_null(c->entries[1].descriptor);
    const HurrayError *fault = &c->faults[c->entries[1].fault - 1];
    if (fault->code != status || !strstr(fault->message, word))
        print_error("%d: %s, expected %d `%s`\n", fault->code, fault->message, status, word);
    assert_int_equal(fault->code, status);
    assert_non_null(strstr(fault->message, word));
    assert_true(strlen(fault->tensor) > 0);
    for (uint64_t i = 0; i < 3; i += 2) {
        HurrayStatus read;
        assert_int_equal(c->entries[i].fault, 0);
        free(import_read(c, file.bytes, file.len, i, 0, &read));
        assert_int_equal(read, HURRAY_OK);
    }
    hry_catalogue_unref(c);
    built_free(&file);
}

static void a_fault_of_a_member_spoils_only_that_member(void **state) {
    (void)state;
    Built good = array("<u2", 3, 2), object = array("|O", 1, 8), empty = array("<u2", 0, 2);
    spoiled(&(Member){.name = "m", .bytes = (const uint8_t *)"no array at all", .len = 15}, HURRAY_ERR_INVALID_MAGIC, "no NPY array");
    spoiled(&(Member){.name = "m", .bytes = (const uint8_t *)"", .len = 0}, HURRAY_ERR_INVALID_MAGIC, "no NPY array");
    spoiled(&(Member){.name = "m", .bytes = object.bytes, .len = object.len}, HURRAY_ERR_INVALID_TYPE, "pickle");
    spoiled(&(Member){.name = "m", .bytes = good.bytes, .len = good.len - 1}, HURRAY_ERR_TRUNCATED, "6 bytes, 5 are there");
    spoiled(&(Member){.name = "m", .bytes = good.bytes, .len = 40}, HURRAY_ERR_TRUNCATED, "header");
    spoiled(&(Member){.name = "m", .method = 8, .bytes = good.bytes, .len = good.len, .unpacked_error = 1}, HURRAY_ERR_INVALID_CONTAINER,
            "1 bytes too many");
    spoiled(&(Member){.name = "m", .method = 8, .bytes = good.bytes, .len = good.len, .unpacked_error = 1000000},
            HURRAY_ERR_INVALID_CONTAINER, "cannot become");
    spoiled(&(Member){.name = "m", .bytes = good.bytes, .len = good.len, .unpacked_error = 1}, HURRAY_ERR_INVALID_CONTAINER, "stored");
    spoiled(&(Member){.name = "m", .method = 8, .bytes = good.bytes, .len = good.len, .packed_cut = 60}, HURRAY_ERR_INVALID_DATA,
            "ends early");
    spoiled(&(Member){.name = "m", .bytes = empty.bytes, .len = empty.len, .crc_error = 1}, HURRAY_ERR_CHECKSUM, "CRC-32");
    built_free(&good), built_free(&object), built_free(&empty);
}

static void a_wrong_crc_is_found_when_the_member_is_loaded(void **state) {
    (void)state;
    for (uint16_t method = 0; method <= 8; method = (uint16_t)(method + 8)) {
        Zip zip = {0};
        Built npy = array("<u2", 4000, 2);
        add(&zip, &(Member){.name = "m", .method = method, .bytes = npy.bytes, .len = npy.len, .crc_error = 1});
        Built file = finish(&zip, "");
        HryCatalogue *c = import_open(hry_import_npz, file.bytes, file.len);
        for (size_t piece = 0; piece < 8000; piece = piece * 20 + 7) {
            HurrayStatus status;
            free(import_read(c, file.bytes, file.len, 0, piece, &status));
            assert_int_equal(status, HURRAY_ERR_CHECKSUM);
        }
        hry_catalogue_unref(c);
        built_free(&npy), built_free(&file);
    }
}

static void a_deflate_stream_that_lies_about_its_length_is_found(void **state) {
    (void)state;
    static const int64_t lies[] = {-2, 2};
    for (size_t i = 0; i < 2; i++) {
        Zip zip = {0};
        Built npy = array("<u2", 4000, 2), other = array("<u2", i ? 4001 : 3999, 2);
        memcpy(npy.bytes, other.bytes, other.len < 100 ? other.len : 90); /* a header that fits the lie */
        add(&zip, &(Member){.name = "m", .method = 8, .bytes = npy.bytes, .len = npy.len, .unpacked_error = lies[i]});
        Built file = finish(&zip, "");
        HryCatalogue *c = import_open(hry_import_npz, file.bytes, file.len);
        assert_int_equal(c->entries[0].fault, 0);
        HurrayStatus status;
        free(import_read(c, file.bytes, file.len, 0, 0, &status));
        assert_int_equal(status, HURRAY_ERR_INVALID_DATA);
        hry_catalogue_unref(c);
        built_free(&npy), built_free(&other), built_free(&file);
    }
}

static void a_fault_of_the_archive_spoils_the_file(void **state) {
    (void)state;
    Zip zip = {0};
    Built npy = array("<u2", 3, 2), file;
    const Member good = {.name = "m", .bytes = npy.bytes, .len = npy.len};
    Member other;
#define ONE(...) (other = (Member){__VA_ARGS__}, add(&zip, &other), file = finish(&zip, ""))
    add(&zip, &good), add(&zip, &good), file = finish(&zip, "");
    refuse_archive(&file, HURRAY_ERR_DUPLICATE_NAME, "twice");
    ONE(.name = "m", .flags = 1, .bytes = npy.bytes, .len = npy.len);
    refuse_archive(&file, HURRAY_ERR_UNSUPPORTED, "encrypted");
    ONE(.name = "m", .method = 12, .bytes = npy.bytes, .len = npy.len);
    refuse_archive(&file, HURRAY_ERR_UNSUPPORTED, "method 12");
    ONE(.name = "\xC3\xA9", .bytes = npy.bytes, .len = npy.len);
    refuse_archive(&file, HURRAY_ERR_INVALID_NAME, "ASCII");
    ONE(.name = "\xC3", .flags = 0x800, .bytes = npy.bytes, .len = npy.len);
    refuse_archive(&file, HURRAY_ERR_INVALID_NAME, "UTF-8");
    ONE(.name = "m", .local_name = "n", .bytes = npy.bytes, .len = npy.len);
    refuse_archive(&file, HURRAY_ERR_INVALID_CONTAINER, "another name");
    ONE(.name = "m", .local_name = "mm", .bytes = npy.bytes, .len = npy.len);
    refuse_archive(&file, HURRAY_ERR_INVALID_CONTAINER, "disagrees");
    add(&zip, &good), file = finish(&zip, "");
    built_u8(&file, 0);
    refuse_archive(&file, HURRAY_ERR_INVALID_CONTAINER, "no end record");
    add(&zip, &good), built_u8(&zip.file, 0), file = finish(&zip, "");
    memmove(file.bytes + 1, file.bytes, file.len - 1); /* a byte in front */
    refuse_archive(&file, HURRAY_ERR_INVALID_CONTAINER, "zip");
    import_refused(hry_import_npz, "PK", 2, HURRAY_ERR_INVALID_CONTAINER, "end record");
    built_free(&npy);
}

static void overlapping_members_are_refused(void **state) {
    (void)state;
    Zip zip = {0};
    add_array(&zip, "a", 0, "<u2", 3, 2);
    size_t second = zip.directory.len;
    add_array(&zip, "a", 0, "<u2", 3, 2);
    memset(zip.directory.bytes + second + 42, 0, 4); /* both at the same place */
    Built file = finish(&zip, "");
    refuse_archive(&file, HURRAY_ERR_INVALID_CONTAINER, "overlaps");
}

static void zip64_records_must_agree(void **state) {
    (void)state;
    Zip zip = {.zip64 = true};
    add_array(&zip, "a", 0, "<u2", 3, 2);
    Built file = finish(&zip, "");
    size_t locator = file.len - 22 - 20, end = locator - 56;
    static const struct {
        int record; /* 0: zip64 end, 1: locator, 2: end, 3: the entry's extra */
        size_t at;
        uint8_t value;
    } cases[] = {{0, 0, 0},  {0, 4, 45}, {0, 16, 1}, {0, 24, 9},   {0, 32, 9}, {0, 40, 1},
                 {0, 48, 1}, {1, 0, 0},  {1, 4, 1},  {1, 8, 0xFF}, {1, 16, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *byte = file.bytes + (cases[i].record == 0 ? end : locator) + cases[i].at, old = *byte;
        *byte = cases[i].value;
        import_refused(hry_import_npz, file.bytes, file.len, IMPORT_ANY, "zip");
        *byte = old;
    }
    file.bytes[end - 28] = 2; /* the extra field is another one */
    import_refused(hry_import_npz, file.bytes, file.len, HURRAY_ERR_INVALID_CONTAINER, "zip64");
    built_free(&file);
}

static void build_sample(Built *out) {
    Zip zip = {0};
    add_array(&zip, "plain.npy", 0, "<u2", 5, 2);
    add_array(&zip, "packed.npy", 8, ">u2", 5, 2);
    add(&zip, &(Member){.name = "bad", .bytes = (const uint8_t *)"nothing here", .len = 12});
    *out = finish(&zip, "c");
}

static void failures_of_memory_and_reading_leave_nothing(void **state) {
    (void)state;
    Built file;
    build_sample(&file);
    import_fails_cleanly(hry_import_npz, file.bytes, file.len);
    built_free(&file);
}

static void cut_and_damaged_archives_are_refused_or_harmless(void **state) {
    (void)state;
    Built file;
    build_sample(&file);
    for (size_t cut = 0; cut < file.len; cut++) import_refused(hry_import_npz, file.bytes, cut, IMPORT_ANY, NULL);
    import_damage_everywhere(hry_import_npz, file.bytes, file.len, file.len);
    HryLimits limits = import_limits();
    limits.max_tensors = 2;
    import_refused_by(hry_import_npz, &limits, file.bytes, file.len, HURRAY_ERR_LIMIT, "max_tensors");
    limits = import_limits();
    limits.max_index_bytes = 10;
    import_refused_by(hry_import_npz, &limits, file.bytes, file.len, HURRAY_ERR_LIMIT, "10");
    built_free(&file);
}

static HurrayStatus probe(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                          HryCatalogue **out, HurrayError *error) {
    (void)limits, (void)out;
    return hry_npz_probe(transport, size, allocator, error);
}

static void a_zip_without_arrays_is_named(void **state) {
    (void)state;
    Zip zip = {0};
    add(&zip, &(Member){.name = "model/data.pkl", .bytes = (const uint8_t *)"\x80\2.......", .len = 9});
    Built file = finish(&zip, "");
    import_refused(probe, file.bytes, file.len, HURRAY_ERR_UNSUPPORTED, "PyTorch");
    built_free(&file);
    add(&zip, &(Member){.name = "readme", .method = 8, .bytes = (const uint8_t *)"hello hello hello", .len = 17});
    file = finish(&zip, "");
    import_refused(probe, file.bytes, file.len, HURRAY_ERR_UNSUPPORTED, "zip archive");
    built_free(&file);
    add(&zip, &(Member){.name = "readme", .method = 8, .bytes = (const uint8_t *)"hello hello hello", .len = 17, .packed_cut = 9});
    file = finish(&zip, "");
    import_refused(probe, file.bytes, file.len, HURRAY_ERR_UNSUPPORTED, "zip archive");
    built_free(&file);
    build_sample(&file);
    assert_null(import_open(probe, file.bytes, file.len));
    import_fails_cleanly(probe, file.bytes, file.len);
    built_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_become_tensors_in_directory_order),
        cmocka_unit_test(an_archive_without_members_is_legal),
        cmocka_unit_test(a_fault_of_a_member_spoils_only_that_member),
        cmocka_unit_test(a_wrong_crc_is_found_when_the_member_is_loaded),
        cmocka_unit_test(a_deflate_stream_that_lies_about_its_length_is_found),
        cmocka_unit_test(a_fault_of_the_archive_spoils_the_file),
        cmocka_unit_test(overlapping_members_are_refused),
        cmocka_unit_test(zip64_records_must_agree),
        cmocka_unit_test(failures_of_memory_and_reading_leave_nothing),
        cmocka_unit_test(cut_and_damaged_archives_are_refused_or_harmless),
        cmocka_unit_test(a_zip_without_arrays_is_named),
    };
    return cmocka_run_group_tests_name("import/npz", tests, NULL, NULL);
}
