#include "import/gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/ggml.h"
#include "support/import_case.h"

static void head(Built *file, uint64_t tensors, uint64_t keys) {
    built_text(file, "GGUF");
    built_u32(file, 3);
    built_u64(file, tensors);
    built_u64(file, keys);
}

static void text(Built *file, const char *s) {
    built_u64(file, strlen(s));
    built_text(file, s);
}

static void key(Built *file, const char *name, uint32_t kind) {
    text(file, name);
    built_u32(file, kind);
}

static void info(Built *file, const char *name, uint32_t rank, const uint64_t *dims, uint32_t type, uint64_t offset) {
    text(file, name);
    built_u32(file, rank);
    for (uint32_t i = 0; i < rank; i++) built_u64(file, dims[i]);
    built_u32(file, type);
    built_u64(file, offset);
}

static void pad(Built *file, size_t alignment) {
    while (file->len % alignment) built_u8(file, 0);
}

static HryCatalogue *open_built(Built *file) {
    HryCatalogue *catalogue = import_open(hry_import_gguf, file->bytes, file->len);
    built_free(file);
    return catalogue;
}

static void refuse_built(Built *file, HurrayStatus status, const char *word) {
    import_refused(hry_import_gguf, file->bytes, file->len, status, word);
    built_free(file);
}

static const HurrayKvValue *value_of(const HryCatalogue *catalogue, const char *name) {
    uint64_t i;
    assert_true(hry_catalogue_find_kv(catalogue, name, strlen(name), &i));
    return &catalogue->kv[i].value;
}

static void all_kinds(Built *file) {
    head(file, 0, 14);
    key(file, "u8", 0), built_u8(file, 200);
    key(file, "i8", 1), built_u8(file, 0xFE);
    key(file, "u16", 2), built_u16(file, 65535);
    key(file, "i16", 3), built_u16(file, 0x8000);
    key(file, "u32", 4), built_u32(file, UINT32_MAX);
    key(file, "i32", 5), built_u32(file, 0x80000000);
    key(file, "f32", 6), built_f32(file, 0.1f);
    key(file, "bool", 7), built_u8(file, 2);
    key(file, "text", 8), text(file, "h\xC3\xA9");
    key(file, "bytes", 8), text(file, "\xFFz");
    key(file, "u64", 10), built_u64(file, UINT64_MAX);
    key(file, "i64", 11), built_u64(file, (uint64_t)INT64_MIN);
    key(file, "f64", 12), built_u64(file, 0x7FF8000000000001);
    key(file, "f32s", 9), built_u32(file, 6), built_u64(file, 2), built_f32(file, 1.5f), built_f32(file, -2);
}

static void every_kind_of_metadata_is_widened_never_narrowed(void **state) {
    (void)state;
    Built file = {0};
    all_kinds(&file);
    HryCatalogue *c = open_built(&file);
    assert_int_equal(c->kv_count, 14);
    assert_int_equal(value_of(c, "u8")->u64, 200);
    assert_int_equal(value_of(c, "i8")->i64, -2);
    assert_int_equal(value_of(c, "i8")->kind, HURRAY_KV_INT64);
    assert_int_equal(value_of(c, "u16")->u64, 65535);
    assert_int_equal(value_of(c, "i16")->i64, -32768);
    assert_true(value_of(c, "u32")->u64 == UINT32_MAX);
    assert_true(value_of(c, "i32")->i64 == INT32_MIN);
    assert_true(value_of(c, "f32")->f64 == (double)0.1f);
    assert_int_equal(value_of(c, "bool")->boolean, 1);
    assert_int_equal(value_of(c, "text")->kind, HURRAY_KV_STRING);
    assert_int_equal(value_of(c, "text")->data_len, 3);
    assert_int_equal(value_of(c, "bytes")->kind, HURRAY_KV_BYTES);
    assert_true(value_of(c, "u64")->u64 == UINT64_MAX);
    assert_true(value_of(c, "i64")->i64 == INT64_MIN);
    assert_true(value_of(c, "f64")->u64 == 0x7FF8000000000001);
    const HurrayKvValue *floats = value_of(c, "f32s");
    assert_int_equal(floats->kind, HURRAY_KV_ARRAY);
    assert_int_equal(floats->element, HURRAY_KV_FLOAT64);
    assert_int_equal(floats->data_len, 2);
    assert_true(((const double *)floats->data)[1] == -2);
    hry_catalogue_unref(c);
}

static void arrays_become_arrays_of_the_widened_kind(void **state) {
    (void)state;
    Built file = {0};
    head(&file, 0, 6);
    key(&file, "i8s", 9), built_u32(&file, 1), built_u64(&file, 3), built_u8(&file, 0xFF), built_u8(&file, 2), built_u8(&file, 3);
    key(&file, "none", 9), built_u32(&file, 4), built_u64(&file, 0);
    key(&file, "bools", 9), built_u32(&file, 7), built_u64(&file, 2), built_u8(&file, 0), built_u8(&file, 9);
    key(&file, "texts", 9), built_u32(&file, 8), built_u64(&file, 2), text(&file, ""), text(&file, "ab");
    key(&file, "mixed", 9), built_u32(&file, 8), built_u64(&file, 2), text(&file, "a"), text(&file, "\xFF");
    key(&file, "deep", 9), built_u32(&file, 9), built_u64(&file, 2), built_u32(&file, 4), built_u64(&file, 1), built_u32(&file, 7),
        built_u32(&file, 8), built_u64(&file, 1), text(&file, "x");
    HryCatalogue *c = open_built(&file);
    const int64_t *numbers = value_of(c, "i8s")->data;
    assert_true(numbers[0] == -1 && numbers[2] == 3);
    assert_int_equal(value_of(c, "i8s")->element, HURRAY_KV_INT64);
    assert_int_equal(value_of(c, "none")->data_len, 0);
    assert_int_equal(value_of(c, "none")->element, HURRAY_KV_UINT64);
    assert_int_equal(((const uint8_t *)value_of(c, "bools")->data)[1], 1);
    const HurrayIoSlice *texts = value_of(c, "texts")->data;
    assert_int_equal(texts[0].len, 0);
    assert_memory_equal(texts[1].ptr, "ab", 2);
    assert_int_equal(value_of(c, "texts")->element, HURRAY_KV_STRING);
    assert_int_equal(value_of(c, "mixed")->element, HURRAY_KV_BYTES);
    const HurrayKvValue *inner = value_of(c, "deep")->data;
    assert_int_equal(value_of(c, "deep")->element, HURRAY_KV_ARRAY);
    assert_int_equal(((const uint64_t *)inner[0].data)[0], 7);
    assert_int_equal(inner[1].element, HURRAY_KV_STRING);
    hry_catalogue_unref(c);
}

static void arrays_may_be_eight_deep_and_no_deeper(void **state) {
    (void)state;
    for (int depth = 7; depth <= 10; depth++) {
        Built file = {0};
        head(&file, 0, 1);
        key(&file, "deep", 9);
        for (int i = 1; i < depth; i++) built_u32(&file, 9), built_u64(&file, 1);
        built_u32(&file, 4), built_u64(&file, 1), built_u32(&file, 5);
        if (depth <= 8)
            hry_catalogue_unref(open_built(&file));
        else
            refuse_built(&file, HURRAY_ERR_TOO_DEEP, "8");
    }
}

static void shapes_are_reversed_and_offsets_become_places(void **state) {
    (void)state;
    Built file = {0};
    head(&file, 3, 1);
    key(&file, "general.alignment", 4), built_u32(&file, 64);
    info(&file, "a", 2, (const uint64_t[]){3, 2}, 1, 0);
    info(&file, "scalar", 0, NULL, 28, 64);
    info(&file, "empty", 3, (const uint64_t[]){5, 0, 7}, 24, 128);
    pad(&file, 64);
    size_t data = file.len;
    built_zeros(&file, 64 + 64);
    HryCatalogue *c = open_built(&file);
    assert_int_equal(c->entry_count, 3);
    const HryEntry *a = &c->entries[0];
    assert_int_equal(a->descriptor->shape[0], 2);
    assert_int_equal(a->descriptor->shape[1], 3);
    assert_int_equal(a->descriptor->element_type, HURRAY_TYPE_FLOAT16);
    assert_int_equal(a->data_offset, data);
    assert_int_equal(a->data_length, 12);
    assert_int_equal(c->entries[1].data_offset, data + 64);
    assert_int_equal(c->entries[1].descriptor->rank, 0);
    assert_int_equal(c->entries[2].data_length, 0);
    assert_int_equal(c->note_count, 0);
    hry_catalogue_unref(c);
}

static void every_type_of_the_list_is_known_and_no_other(void **state) {
    (void)state;
    static const uint8_t plain[][3] = {{0, HURRAY_TYPE_FLOAT32, 4}, {1, HURRAY_TYPE_FLOAT16, 2}, {30, HURRAY_TYPE_BFLOAT16, 2},
                                       {24, HURRAY_TYPE_INT8, 1},   {25, HURRAY_TYPE_INT16, 2},  {26, HURRAY_TYPE_INT32, 4},
                                       {27, HURRAY_TYPE_INT64, 8},  {28, HURRAY_TYPE_FLOAT64, 8}};
    unsigned accepted = 0;
    for (uint32_t type = 0; type < 50; type++) {
        const HryGgmlType *block = hry_ggml_find(type);
        uint32_t tag = HURRAY_TYPE_FLOAT32, bytes = 0;
        for (size_t i = 0; i < 8; i++)
            if (plain[i][0] == type) tag = plain[i][1], bytes = 256u * plain[i][2];
        if (block) bytes = 256 / block->block_elements * block->block_bytes;
        Built file = {0};
        head(&file, 1, 0);
        info(&file, "t", 1, (const uint64_t[]){256}, type, 0);
        pad(&file, 32);
        built_zeros(&file, bytes);
        if (!bytes) {
            bool removed = type == 4 || type == 5 || (type >= 31 && type <= 33) || (type >= 36 && type <= 38);
            refuse_built(&file, HURRAY_ERR_INVALID_TYPE, removed ? "removed" : "unknown");
            continue;
        }
        accepted++;
        HryCatalogue *c = open_built(&file);
        const HurrayDescriptor *d = c->entries[0].descriptor;
        assert_int_equal(d->element_type, tag);
        assert_int_equal(d->buffers[0].byte_size, bytes);
        assert_int_equal(d->layout_tag, block ? 0xF0 : HURRAY_LAYOUT_ROW_MAJOR);
        hry_catalogue_unref(c);
    }
    assert_int_equal(accepted, 8 + 27);
}

static void a_block_tensor_has_the_documented_descriptor(void **state) {
    (void)state;
    static const uint8_t expected[85] = {0x48, 0x52, 0x52, 0x59, 1, 0, 0x55, 0, 0, 0,    0,    0,    0,    0,    3,    0xf0, 2,
                                         0,    0,    0,    0,    1, 0, 0,    0, 0, 0,    0,    0x80, 2,    0,    0,    0,    0,
                                         0,    0,    0,    0,    0, 0, 0,    0, 0, 0,    0x47, 0x47, 0x4d, 0x4c, 0x42, 0x4c, 0x4b,
                                         0x31, 0x0c, 0,    0,    0, 6, 0,    0, 0, 0x20, 0,    0,    0,    0x16, 0,    0,    0,
                                         1,    0,    0xb8, 1,    0, 0, 0,    0, 0, 0x40, 0,    0,    0,    0,    0,    0,    0};
    Built file = {0};
    head(&file, 1, 0);
    info(&file, "t", 2, (const uint64_t[]){640, 256}, 6, 0);
    pad(&file, 32);
    built_zeros(&file, 112640);
    HryCatalogue *c = open_built(&file);
    uint8_t bytes[128];
    size_t len = sizeof bytes;
    assert_int_equal(hurray_descriptor_encode(c->entries[0].descriptor, bytes, &len), HURRAY_OK);
    assert_int_equal(len, 85);
    assert_memory_equal(bytes, expected, 85);
    hry_catalogue_unref(c);
}

static void a_wrong_header_is_refused_by_name(void **state) {
    (void)state;
    static const struct {
        uint32_t version;
        HurrayStatus status;
        const char *word;
    } cases[] = {{1, HURRAY_ERR_VERSION_MISMATCH, "version 1"},
                 {4, HURRAY_ERR_VERSION_MISMATCH, "version 4"},
                 {0x03000000, HURRAY_ERR_UNSUPPORTED, "big-endian"}};
    Built file = {0};
    for (size_t i = 0; i < 3; i++) {
        built_text(&file, "GGUF"), built_u32(&file, cases[i].version), built_u64(&file, 0), built_u64(&file, 0);
        refuse_built(&file, cases[i].status, cases[i].word);
    }
    built_text(&file, "GGUX"), built_u32(&file, 3), built_u64(&file, 0), built_u64(&file, 0);
    refuse_built(&file, HURRAY_ERR_INVALID_MAGIC, "GGUF");
    head(&file, UINT64_MAX / 2, 0);
    refuse_built(&file, HURRAY_ERR_INVALID_CONTAINER, "tensor_count");
    head(&file, 0, UINT64_MAX);
    refuse_built(&file, HURRAY_ERR_INVALID_CONTAINER, "kv_count");
    head(&file, 0, 0);
    hry_catalogue_unref(open_built(&file));
}

static void wrong_metadata_is_refused_by_key(void **state) {
    (void)state;
    Built file = {0};
    head(&file, 0, 1), key(&file, "", 4), built_u32(&file, 1);
    refuse_built(&file, HURRAY_ERR_INVALID_KV, "empty");
    head(&file, 0, 1), key(&file, "\xFF", 4), built_u32(&file, 1);
    refuse_built(&file, HURRAY_ERR_INVALID_KV, "UTF-8");
    head(&file, 0, 2), key(&file, "kk", 4), built_u32(&file, 1), key(&file, "kk", 4), built_u32(&file, 1);
    refuse_built(&file, HURRAY_ERR_INVALID_KV, "kk");
    head(&file, 0, 1), key(&file, "k", 13), built_u32(&file, 1);
    refuse_built(&file, HURRAY_ERR_INVALID_KV, "13");
    head(&file, 0, 1), key(&file, "arr", 9), built_u32(&file, 99), built_u64(&file, 1);
    refuse_built(&file, HURRAY_ERR_INVALID_KV, "99");
    head(&file, 0, 1), key(&file, "arr", 9), built_u32(&file, 4), built_u64(&file, UINT64_C(1) << 62), built_zeros(&file, 40);
    refuse_built(&file, HURRAY_ERR_TRUNCATED, "arr");
    head(&file, 0, 1), built_u64(&file, UINT64_MAX), built_zeros(&file, 40);
    refuse_built(&file, HURRAY_ERR_TRUNCATED, "18446744073709551615");
    static const uint32_t alignments[] = {0, 1, 3, 4, 24, UINT32_MAX};
    for (size_t i = 0; i < 6; i++) {
        head(&file, 0, 1), key(&file, "general.alignment", 4), built_u32(&file, alignments[i]);
        refuse_built(&file, HURRAY_ERR_INVALID_KV, "general.alignment");
    }
    head(&file, 0, 1), key(&file, "general.alignment", 10), built_u64(&file, 32);
    refuse_built(&file, HURRAY_ERR_INVALID_KV, "kind 10");
    head(&file, 0, 1), key(&file, "split.count", 8), text(&file, "2");
    refuse_built(&file, HURRAY_ERR_INVALID_KV, "split.count");
}

static void wrong_tensors_are_refused_by_name(void **state) {
    (void)state;
    Built file = {0};
    head(&file, 1, 0), info(&file, "five", 5, (const uint64_t[]){1, 1, 1, 1, 1}, 0, 0), built_zeros(&file, 64);
    refuse_built(&file, HURRAY_ERR_INVALID_CONTAINER, "five");
    head(&file, 1, 0), info(&file, "t", 1, (const uint64_t[]){UINT64_MAX}, 0, 0), built_zeros(&file, 64);
    refuse_built(&file, HURRAY_ERR_INVALID_CONTAINER, "18446744073709551615");
    head(&file, 1, 0), info(&file, "t", 2, (const uint64_t[]){UINT64_C(1) << 40, UINT64_C(1) << 40}, 0, 0), built_zeros(&file, 64);
    refuse_built(&file, HURRAY_ERR_INVALID_CONTAINER, "2^63");
    head(&file, 1, 0), info(&file, "t", 1, (const uint64_t[]){33}, 2, 0), built_zeros(&file, 64);
    refuse_built(&file, HURRAY_ERR_INVALID_CONTAINER, "33 elements, no multiple of the 32");
    head(&file, 1, 0), info(&file, "t", 0, NULL, 2, 0), built_zeros(&file, 64);
    refuse_built(&file, HURRAY_ERR_INVALID_CONTAINER, "32");
    head(&file, 1, 0), info(&file, "\xFE", 0, NULL, 0, 0), built_zeros(&file, 64);
    refuse_built(&file, HURRAY_ERR_INVALID_NAME, "UTF-8");
    head(&file, 2, 0), info(&file, "a", 0, NULL, 0, 0), info(&file, "a", 0, NULL, 0, 32), pad(&file, 32), built_zeros(&file, 64);
    refuse_built(&file, HURRAY_ERR_DUPLICATE_NAME, "twice");
    head(&file, 2, 0), info(&file, "a", 0, NULL, 0, 0), info(&file, "b", 0, NULL, 0, 4), pad(&file, 32), built_zeros(&file, 64);
    refuse_built(&file, HURRAY_ERR_INVALID_CONTAINER, "offset 4, expected 32");
    head(&file, 1, 0), info(&file, "a", 0, NULL, 0, 0), pad(&file, 32), built_zeros(&file, 1);
    refuse_built(&file, HURRAY_ERR_TRUNCATED, "3 bytes");
    head(&file, 1, 1), key(&file, "general.alignment", 4), built_u32(&file, 1u << 30), info(&file, "a", 0, NULL, 0, 0),
        built_zeros(&file, 64);
    refuse_built(&file, HURRAY_ERR_TRUNCATED, "1073741824");
    head(&file, 1, 0), info(&file, "a", 1, (const uint64_t[]){UINT64_MAX >> 2}, 0, 0), built_zeros(&file, 64);
    refuse_built(&file, HURRAY_ERR_INVALID_CONTAINER, "64 bits");
}

static void bytes_behind_the_last_tensor_are_noted_and_a_second_file_is_refused(void **state) {
    (void)state;
    Built file = {0};
    head(&file, 1, 0), info(&file, "a", 0, NULL, 0, 0), pad(&file, 32), built_zeros(&file, 4), pad(&file, 32), built_zeros(&file, 5);
    HryCatalogue *c = open_built(&file);
    assert_int_equal(c->note_count, 1);
    assert_non_null(strstr(c->notes[0].message, "5 bytes"));
    hry_catalogue_unref(c);
    for (int padded = 0; padded < 2; padded++) {
        head(&file, 1, 0), info(&file, "a", 0, NULL, 0, 0), pad(&file, 32), built_zeros(&file, 4);
        if (padded) pad(&file, 32);
        head(&file, 0, 0);
        refuse_built(&file, HURRAY_ERR_INVALID_CONTAINER, "two files joined");
    }
}

static void limits_are_kept(void **state) {
    (void)state;
    Built file = {0};
    head(&file, 2, 1);
    key(&file, "k", 9), built_u32(&file, 0), built_u64(&file, 10), built_zeros(&file, 10);
    info(&file, "a", 0, NULL, 0, 0), info(&file, "b", 0, NULL, 0, 32), pad(&file, 32), built_zeros(&file, 64);
    HryLimits limits = import_limits();
    limits.max_tensors = 1;
    import_refused_by(hry_import_gguf, &limits, file.bytes, file.len, HURRAY_ERR_LIMIT, "max_tensors");
    limits = import_limits();
    limits.max_kv_bytes = 80; /* the ten numbers, not the key */
    import_refused_by(hry_import_gguf, &limits, file.bytes, file.len, HURRAY_ERR_LIMIT, "max_kv_bytes");
    limits = import_limits();
    limits.max_index_bytes = 1;
    import_refused_by(hry_import_gguf, &limits, file.bytes, file.len, HURRAY_ERR_LIMIT, "max_index_bytes");
    built_free(&file);
}

static void build_sample(Built *file) {
    head(file, 2, 4);
    key(file, "general.alignment", 4), built_u32(file, 8);
    key(file, "name", 8), text(file, "a model with a name that is longer than the smallest chunk");
    key(file, "tokens", 9), built_u32(file, 8), built_u64(file, 3), text(file, "a"), text(file, "bc"), text(file, "");
    key(file, "deep", 9), built_u32(file, 9), built_u64(file, 1), built_u32(file, 6), built_u64(file, 2), built_f32(file, 1),
        built_f32(file, 2);
    info(file, "blocks", 1, (const uint64_t[]){32}, 8, 0);
    info(file, "plain", 2, (const uint64_t[]){2, 1}, 26, 40);
    pad(file, 8);
    built_zeros(file, 40 + 8);
}

static void failures_of_memory_and_reading_leave_nothing(void **state) {
    (void)state;
    Built file = {0};
    build_sample(&file);
    import_fails_cleanly(hry_import_gguf, file.bytes, file.len);
    built_free(&file);
}

static void a_file_cut_anywhere_is_refused(void **state) {
    (void)state;
    Built file = {0};
    build_sample(&file);
    hry_catalogue_unref(import_open(hry_import_gguf, file.bytes, file.len));
    for (size_t cut = 0; cut < file.len; cut++) import_refused(hry_import_gguf, file.bytes, cut, IMPORT_ANY, NULL);
    built_free(&file);
}

static void each_damaged_byte_gives_a_message_or_another_file(void **state) {
    (void)state;
    Built file = {0};
    build_sample(&file);
    import_damage_everywhere(hry_import_gguf, file.bytes, file.len, file.len - 48);
    built_free(&file);
}

static void metadata_larger_than_the_buffer_is_read(void **state) {
    (void)state;
    Built file = {0};
    head(&file, 0, 3);
    key(&file, "long", 8), built_u64(&file, 200000);
    for (int i = 0; i < 200000; i++) built_u8(&file, (uint8_t)('a' + i % 26));
    key(&file, "many", 9), built_u32(&file, 8), built_u64(&file, 30000);
    for (int i = 0; i < 30000; i++) {
        char word[16];
        snprintf(word, sizeof word, "w%d", i);
        text(&file, word);
    }
    key(&file, "last", 4), built_u32(&file, 77);
    HryCatalogue *c = open_built(&file);
    assert_int_equal(((const uint8_t *)value_of(c, "long")->data)[199999], 'a' + 199999 % 26);
    const HurrayIoSlice *words = value_of(c, "many")->data;
    assert_memory_equal(words[29999].ptr, "w29999", 6);
    assert_int_equal(value_of(c, "last")->u64, 77);
    hry_catalogue_unref(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_metadata_is_widened_never_narrowed),
        cmocka_unit_test(arrays_become_arrays_of_the_widened_kind),
        cmocka_unit_test(arrays_may_be_eight_deep_and_no_deeper),
        cmocka_unit_test(shapes_are_reversed_and_offsets_become_places),
        cmocka_unit_test(every_type_of_the_list_is_known_and_no_other),
        cmocka_unit_test(a_block_tensor_has_the_documented_descriptor),
        cmocka_unit_test(a_wrong_header_is_refused_by_name),
        cmocka_unit_test(wrong_metadata_is_refused_by_key),
        cmocka_unit_test(wrong_tensors_are_refused_by_name),
        cmocka_unit_test(bytes_behind_the_last_tensor_are_noted_and_a_second_file_is_refused),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(failures_of_memory_and_reading_leave_nothing),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(each_damaged_byte_gives_a_message_or_another_file),
        cmocka_unit_test(metadata_larger_than_the_buffer_is_read),
    };
    return cmocka_run_group_tests_name("import/gguf", tests, NULL, NULL);
}
