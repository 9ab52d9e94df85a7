#include "import/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/import_case.h"

static HurrayStatus open_npy(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                             HryCatalogue **out, HurrayError *error) {
    return hry_import_npy(transport, size, "stem", limits, allocator, out, error);
}

/* version 1.0, no padding */
static void build(Built *file, const char *header, const void *data, size_t len) {
    built_bytes(file, "\x93NUMPY\x01\x00", 8);
    built_u16(file, (uint16_t)strlen(header));
    built_text(file, header);
    built_bytes(file, data, len);
}

static HryCatalogue *open_header(const char *header, size_t data_len) {
    Built file = {0};
    uint8_t data[1024] = {0};
    build(&file, header, data, data_len);
    HryCatalogue *catalogue = import_open(open_npy, file.bytes, file.len);
    built_free(&file);
    return catalogue;
}

static void refuse_header(const char *header, size_t data_len, HurrayStatus status, const char *word) {
    Built file = {0};
    uint8_t data[1024] = {0};
    build(&file, header, data, data_len);
    import_refused(open_npy, file.bytes, file.len, status, word);
    built_free(&file);
}

static void refuse_shape(const char *shape, HurrayStatus status, const char *word) {
    char header[600];
    snprintf(header, sizeof header, "{'descr': '|u1', 'fortran_order': False, 'shape': %s}", shape);
    refuse_header(header, 1, status, word);
}

static void a_lone_array_is_named_after_its_file(void **state) {
    (void)state;
    HryCatalogue *c = open_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", 24);
    assert_int_equal(c->format, HURRAY_FORMAT_NPY);
    assert_int_equal(c->entry_count, 1);
    assert_memory_equal(c->entries[0].name, "stem", 4);
    assert_int_equal(c->entries[0].descriptor->rank, 2);
    assert_int_equal(c->entries[0].side, 0);
    assert_int_equal(c->entries[0].data_length, 24);
    hry_catalogue_unref(c);
}

static void every_type_is_read_in_every_byte_order(void **state) {
    (void)state;
    static const struct {
        const char *code;
        uint8_t tag, size, unit;
    } types[] = {{"b1", HURRAY_TYPE_BOOL, 1, 1},      {"i1", HURRAY_TYPE_INT8, 1, 1},        {"i2", HURRAY_TYPE_INT16, 2, 2},
                 {"i4", HURRAY_TYPE_INT32, 4, 4},     {"i8", HURRAY_TYPE_INT64, 8, 8},       {"u1", HURRAY_TYPE_UINT8, 1, 1},
                 {"u2", HURRAY_TYPE_UINT16, 2, 2},    {"u4", HURRAY_TYPE_UINT32, 4, 4},      {"u8", HURRAY_TYPE_UINT64, 8, 8},
                 {"f2", HURRAY_TYPE_FLOAT16, 2, 2},   {"f4", HURRAY_TYPE_FLOAT32, 4, 4},     {"f8", HURRAY_TYPE_FLOAT64, 8, 8},
                 {"c8", HURRAY_TYPE_COMPLEX64, 8, 4}, {"c16", HURRAY_TYPE_COMPLEX128, 16, 8}};
    static const char orders[] = "<>=|-";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (size_t o = 0; o < 5; o++) {
            char header[120];
            snprintf(header, sizeof header, "{'descr': '%.*s%s', 'fortran_order': False, 'shape': (2,)}", o < 4, &orders[o], types[i].code);
            if (orders[o] == '|' && types[i].size > 1) {
                refuse_header(header, 2u * types[i].size, HURRAY_ERR_INVALID_TYPE, types[i].code);
                continue;
            }
            HryCatalogue *c = open_header(header, 2u * types[i].size);
            const HryEntry *entry = &c->entries[0];
            assert_int_equal(entry->descriptor->element_type, types[i].tag);
            bool swaps = orders[o] == '>' && types[i].size > 1, packs = types[i].tag == HURRAY_TYPE_BOOL;
            assert_int_equal(entry->side != 0, swaps || packs);
            if (swaps) assert_true(c->foreign[0].bytes == HRY_BYTES_SWAP && c->foreign[0].unit == types[i].unit);
            if (packs) assert_true(c->foreign[0].bytes == HRY_BYTES_PACK_BOOL);
            hry_catalogue_unref(c);
        }
}

static void big_endian_elements_are_swapped_per_half_for_complex(void **state) {
    (void)state;
    Built file = {0};
    build(&file, "{'descr': '>c8', 'fortran_order': False, 'shape': (2,)}", "\1\2\3\4\5\6\7\x8\x9\xA\xB\xC\xD\xE\xF\x10", 16);
    HryCatalogue *c = import_open(open_npy, file.bytes, file.len);
    static const uint8_t expected[] = {4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9, 16, 15, 14, 13};
    for (size_t piece = 0; piece <= 7; piece++) {
        HurrayStatus status;
        uint8_t *bytes = import_read(c, file.bytes, file.len, 0, piece, &status);
        assert_int_equal(status, HURRAY_OK);
        assert_memory_equal(bytes, expected, 16);
        free(bytes);
    }
    hry_catalogue_unref(c);
    built_free(&file);
}

static void fortran_order_is_column_major_from_rank_two_on(void **state) {
    (void)state;
    static const struct {
        const char *shape;
        size_t bytes;
        uint8_t layout;
    } cases[] = {{"()", 4, HURRAY_LAYOUT_ROW_MAJOR}, {"(2,)", 8, HURRAY_LAYOUT_ROW_MAJOR}, {"(2, 3)", 24, HURRAY_LAYOUT_COLUMN_MAJOR}};
    for (size_t i = 0; i < 3; i++) {
        char header[120];
        snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': True, 'shape': %s}", cases[i].shape);
        HryCatalogue *c = open_header(header, cases[i].bytes);
        assert_int_equal(c->entries[0].descriptor->layout_tag, cases[i].layout);
        hry_catalogue_unref(c);
    }
}

static void what_numpy_writes_in_any_version_is_accepted(void **state) {
    (void)state;
    static const char *const headers[] = {"{'shape':(6L,),\"descr\":u'<f4','fortran_order':False}",
                                          "\t{ 'descr' : '<f4' ,\r\n'fortran_order' : False , 'shape' : ( 6 , ) , }\n\n",
                                          "{'descr': U'f4', 'fortran_order': True, 'shape': (2, 3,)}",
                                          "{'descr': '=f4', 'fortran_order': False, 'shape': (1,2,3)}"};
    for (size_t i = 0; i < 4; i++) hry_catalogue_unref(open_header(headers[i], 24));
    const char *plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}";
    for (uint8_t version = 2; version <= 3; version++) {
        Built file = {0};
        built_bytes(&file, "\x93NUMPY", 6);
        built_u8(&file, version), built_u8(&file, 0);
        built_u32(&file, (uint32_t)strlen(plain));
        built_text(&file, plain);
        built_zeros(&file, 24);
        hry_catalogue_unref(import_open(open_npy, file.bytes, file.len));
        built_free(&file);
    }
}

static void the_first_bytes_are_checked(void **state) {
    (void)state;
    Built file = {0};
    built_bytes(&file, "\x93NUMPY\x09\x00\x00\x00\x00\x00", 12);
    import_refused(open_npy, file.bytes, file.len, HURRAY_ERR_VERSION_MISMATCH, "9.0");
    file.bytes[6] = 1, file.bytes[7] = 1;
    import_refused(open_npy, file.bytes, file.len, HURRAY_ERR_VERSION_MISMATCH, "1.1");
    file.bytes[7] = 0, file.bytes[8] = 0x11, file.bytes[9] = 0x27; /* 10,001 */
    import_refused(open_npy, file.bytes, file.len, HURRAY_ERR_INVALID_CONTAINER, "10001");
    file.bytes[8] = 0x10;
    import_refused(open_npy, file.bytes, file.len, HURRAY_ERR_TRUNCATED, "header");
    file.bytes[0] = 0x92;
    import_refused(open_npy, file.bytes, file.len, HURRAY_ERR_INVALID_MAGIC, "NUMPY");
    built_free(&file);
}

static void types_that_are_not_read_are_quoted_with_a_reason(void **state) {
    (void)state;
    static const char *const types[][2] = {{"|O", "pickle"},     {"<V2", "guessed"},   {"<f1", "guessed"},     {"<f16", "platform"},
                                           {"<f12", "platform"}, {"<c32", "platform"}, {"<U2", "texts"},       {"|S5", "texts"},
                                           {"<M8[ns]", "dates"}, {"<m8", "dates"},     {"float32", "float32"}, {"", "none of"},
                                           {"<", "none of"},     {"<i3", "i3"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char header[120];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (1,)}", types[i][0]);
        refuse_header(header, 1, HURRAY_ERR_INVALID_TYPE, types[i][1]);
        refuse_header(header, 1, HURRAY_ERR_INVALID_TYPE, types[i][0]);
    }
    refuse_header("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, HURRAY_ERR_INVALID_TYPE, "[('x', '<f4')]");
    refuse_header("{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (1,)}", 4, HURRAY_ERR_INVALID_TYPE, "structured");
}

static void shapes_of_another_form_are_refused(void **state) {
    (void)state;
    const HurrayStatus bad = HURRAY_ERR_INVALID_CONTAINER;
    refuse_shape("(np.int64(1),)", bad, "`np.int64(1)`");
    refuse_shape("(1)", bad, "comma");
    refuse_shape("[1, 1]", bad, "tuple");
    refuse_shape("(01,)", bad, "`01`");
    refuse_shape("(-1,)", bad, "`-1`");
    refuse_shape("(,)", bad, "number");
    refuse_shape("(0x1,)", bad, "x1");
    refuse_shape("(1_0,)", bad, "_0");
    refuse_shape("(1 1)", bad, "comma");
    refuse_shape("(1.0,)", bad, ".0");
    refuse_shape("(1,,)", bad, "number");
    refuse_shape("(1,", bad, "`}`");
    refuse_shape("(9223372036854775808,)", bad, "2^63");
    refuse_shape("(99999999999999999999999,)", bad, "2^63");
    refuse_shape("(4294967296, 4294967296)", bad, "2^63");
    refuse_shape("(2,)", HURRAY_ERR_TRUNCATED, "2 bytes, 1 are there");
    refuse_shape("(0, 18446744073709551615)", bad, "2^63");
    char shape[300] = "(1";
    for (int i = 1; i < 64; i++) strcat(shape, ",1");
    char header[400];
    snprintf(header, sizeof header, "{'descr': '|u1', 'fortran_order': False, 'shape': %s)}", shape);
    hry_catalogue_unref(open_header(header, 1));
    strcat(shape, ",1)");
    refuse_shape(shape, HURRAY_ERR_UNSUPPORTED, "64");
    Built file = {0}; /* L is Python 2's, which never wrote version 3.0 */
    const char *text = "{'descr': '|u1', 'fortran_order': False, 'shape': (1L,)}";
    built_bytes(&file, "\x93NUMPY\x03\x00", 8), built_u32(&file, (uint32_t)strlen(text)), built_text(&file, text), built_u8(&file, 0);
    import_refused(open_npy, file.bytes, file.len, bad, "L");
    built_free(&file);
}

static void headers_of_another_form_are_refused(void **state) {
    (void)state;
    const HurrayStatus bad = HURRAY_ERR_INVALID_CONTAINER;
    refuse_header("", 1, bad, "`{`");
    refuse_header("{}", 1, bad, "descr");
    refuse_header("{'descr': '|u1', 'shape': (1,)}", 1, bad, "fortran_order");
    refuse_header("{'descr': '|u1', 'fortran_order': False}", 1, bad, "shape");
    refuse_header("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", 1, bad, "twice");
    refuse_header("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'x': 1}", 1, bad, "unknown");
    refuse_header("{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}", 1, bad, "True or False");
    refuse_header("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} # x", 1, bad, "nothing after");
    refuse_header("{'descr': '|u1' 'fortran_order': False, 'shape': (1,)}", 1, bad, "`,` or `}`");
    refuse_header("{'descr' '|u1'}", 1, bad, "`:`");
    refuse_header("{'descr': '|u\\x31'}", 1, bad, "backslash");
    refuse_header("{'descr': '|u1", 1, bad, "the end");
    refuse_header("{descr: 1}", 1, bad, "a key");
    refuse_header("{'descr': 5}", 1, bad, "text");
    refuse_header("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", 6, bad, "5 bytes too many");
    Built file = {0};
    built_bytes(&file, "\x93NUMPY\x03\x00\x02\x00\x00\x00{\xFF", 14);
    import_refused(open_npy, file.bytes, file.len, bad, "UTF-8");
    built_free(&file);
}

static void failures_cuts_and_damage_leave_nothing(void **state) {
    (void)state;
    Built file = {0};
    build(&file, "{'descr': '>i2', 'fortran_order': True, 'shape': (2L, 1), }   \n", "\1\2\3\4", 4);
    import_fails_cleanly(open_npy, file.bytes, file.len);
    for (size_t cut = 0; cut < file.len; cut++) import_refused(open_npy, file.bytes, cut, IMPORT_ANY, NULL);
    import_damage_everywhere(open_npy, file.bytes, file.len, file.len);
    HryLimits limits = import_limits();
    limits.max_tensors = 0;
    import_refused_by(open_npy, &limits, file.bytes, file.len, HURRAY_ERR_LIMIT, "max_tensors");
    built_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_array_is_named_after_its_file),
        cmocka_unit_test(every_type_is_read_in_every_byte_order),
        cmocka_unit_test(big_endian_elements_are_swapped_per_half_for_complex),
        cmocka_unit_test(fortran_order_is_column_major_from_rank_two_on),
        cmocka_unit_test(what_numpy_writes_in_any_version_is_accepted),
        cmocka_unit_test(the_first_bytes_are_checked),
        cmocka_unit_test(types_that_are_not_read_are_quoted_with_a_reason),
        cmocka_unit_test(shapes_of_another_form_are_refused),
        cmocka_unit_test(headers_of_another_form_are_refused),
        cmocka_unit_test(failures_cuts_and_damage_leave_nothing),
    };
    return cmocka_run_group_tests_name("import/npy", tests, NULL, NULL);
}
