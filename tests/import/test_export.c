#include "hurray/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/safetensors.h"
#include "support/descriptors.h"
#include "support/fail_alloc.h"
#include "support/import_case.h"
#include "support/script_transport.h"

static HurrayDescriptor *plain(uint8_t type, uint32_t rank, const uint64_t *shape) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    spec.rank = rank, spec.shape = shape, spec.element_type = type;
    return descriptor_must_build(&spec);
}

static HurrayDescriptor *laid_out(uint8_t type, uint32_t rank, const uint64_t *shape, HurrayLayout *layout, uint64_t byte_offset,
                                  uint64_t bytes) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayBufferHandle handle = {.byte_size = bytes, .alignment = 64};
    spec.rank = rank, spec.shape = shape, spec.element_type = type, spec.layout = layout, spec.byte_offset = byte_offset;
    spec.buffers = &handle, spec.buffer_count = 1;
    return descriptor_must_build(&spec);
}

static HurrayKvEntry text_entry(const char *key, const char *value) {
    return (HurrayKvEntry){
        .key = key, .key_len = strlen(key), .value = {.kind = HURRAY_KV_STRING, .data = value, .data_len = strlen(value)}};
}

static HurrayExporter *begin(ScriptTransport *sink, const HurrayExportEntry *entries, size_t count, const HurrayKvEntry *kv,
                             size_t kv_count, uint32_t flags) {
    HurrayExporter *exporter = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayExportOptions options = HURRAY_EXPORT_OPTIONS_INIT;
    options.flags = flags;
    script_sink(sink);
    HurrayTransport transport = script_transport(sink);
    HurrayStatus status =
        hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, entries, count, kv, kv_count, &options, &exporter, &error);
    if (status != HURRAY_OK) print_error("%s: %s\n", error.tensor, error.message);
    assert_int_equal(status, HURRAY_OK);
    return exporter;
}

static void assert_written(const ScriptTransport *sink, const char *header, const void *data, size_t len) {
    size_t header_len = strlen(header);
    if (sink->len != 8 + header_len + len || memcmp(sink->bytes + 8, header, header_len) != 0)
        print_error("%.*s\n", (int)sink->len - 8, (const char *)sink->bytes + 8);
    assert_int_equal(sink->len, 8 + header_len + len);
    assert_int_equal(sink->bytes[0] | sink->bytes[1] << 8, header_len);
    assert_memory_equal(sink->bytes + 8, header, header_len);
    assert_memory_equal(sink->bytes + 8 + header_len, data, len);
}

static void tensors_go_out_by_type_then_by_name(void **state) {
    (void)state;
    ScriptTransport sink;
    HurrayDescriptor *f16 = plain(HURRAY_TYPE_FLOAT16, 1, (const uint64_t[]){2}),
                     *u8 = plain(HURRAY_TYPE_UINT8, 2, (const uint64_t[]){1, 3}), *f32 = plain(HURRAY_TYPE_FLOAT32, 0, NULL);
    const HurrayExportEntry entries[] = {{.name = "z", .name_len = 1, .descriptor = u8},
                                         {.name = "b\"/\n\x7F\x01", .name_len = 6, .descriptor = f16},
                                         {.name = "a", .name_len = 1, .descriptor = f16},
                                         {.name = NULL, .name_len = 0, .descriptor = f32}};
    const HurrayKvEntry kv[] = {text_entry("format", "pt"), text_entry("a", "\xC3\xA9\t")};
    HurrayExporter *exporter = begin(&sink, entries, 4, kv, 2, 0);
    static const size_t order[] = {3, 2, 1, 0};
    for (size_t i = 0; i < 4; i++) {
        size_t entry = 99;
        assert_int_equal(hurray_exporter_order(exporter, i, &entry), HURRAY_OK);
        assert_int_equal(entry, order[i]);
    }
    size_t entry;
    assert_int_equal(hurray_exporter_order(exporter, 4, &entry), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(sink.len, 0);
    assert_int_equal(hurray_exporter_append(exporter, "ffffaa", 6), HURRAY_OK);
    assert_int_equal(hurray_exporter_append(exporter, "", 0), HURRAY_OK);
    assert_int_equal(hurray_exporter_append(exporter, "aabbbbzz", 8), HURRAY_OK);
    assert_int_equal(hurray_exporter_finish(exporter), HURRAY_ERR_WRONG_STATE);
    assert_non_null(strstr(hurray_exporter_last_error(exporter)->message, "2 of its 3"));
    assert_int_equal(hurray_exporter_append(exporter, "z", 1), HURRAY_OK);
    assert_int_equal(hurray_exporter_append(exporter, "z", 1), HURRAY_ERR_WRONG_STATE);
    sink.finish_failures = 1, sink.finish_status = -3000;
    assert_int_equal(hurray_exporter_finish(exporter), -3000);
    assert_int_equal(hurray_exporter_finish(exporter), HURRAY_OK);
    assert_int_equal(sink.finishes, 2);
    assert_written(
        &sink,
        "{\"__metadata__\":{\"a\":\"\xC3\xA9\\t\",\"format\":\"pt\"},\"\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
        "\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[4,8]},\"b\\\"/"
        "\\n\x7F\\u0001\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[8,12]},"
        "\"z\":{\"dtype\":\"U8\",\"shape\":[1,3],\"data_offsets\":[12,15]}}   ",
        "ffffaaaabbbbzzz", 15);
    assert_int_equal(hurray_exporter_destroy(&exporter), HURRAY_OK);
    assert_null(exporter);
    assert_int_equal(sink.releases, 1);
    script_free(&sink);
    hurray_descriptor_destroy(f16), hurray_descriptor_destroy(u8), hurray_descriptor_destroy(f32);
}

static void no_tensors_make_the_smallest_file(void **state) {
    (void)state;
    ScriptTransport sink;
    HurrayExporter *exporter = begin(&sink, NULL, 0, NULL, 0, 0);
    assert_int_equal(hurray_exporter_finish(exporter), HURRAY_OK);
    assert_written(&sink, "{}      ", "", 0);
    hurray_exporter_destroy(&exporter);
    hurray_exporter_destroy(&exporter);
    script_free(&sink);
}

/* Writes one tensor in pieces of each size; the data part must be the same. */
static void one_tensor(HurrayDescriptor *descriptor, const void *buffer, size_t len, const void *data, size_t data_len) {
    const HurrayExportEntry entry = {.name = "t", .name_len = 1, .descriptor = descriptor};
    for (size_t piece = 1; piece <= len + 1; piece++) {
        ScriptTransport sink;
        HurrayExporter *exporter = begin(&sink, &entry, 1, NULL, 0, 0);
        script_every(&sink, piece % 3);
        for (size_t at = 0; at < len; at += piece)
            assert_int_equal(hurray_exporter_append(exporter, (const uint8_t *)buffer + at, len - at < piece ? len - at : piece),
                             HURRAY_OK);
        assert_int_equal(hurray_exporter_finish(exporter), HURRAY_OK);
        size_t header = 8 + sink.bytes[0];
        assert_int_equal(sink.len, header + data_len);
        assert_memory_equal(sink.bytes + header, data, data_len);
        HryCatalogue *catalogue = import_open(hry_import_safetensors, sink.bytes, sink.len);
        assert_int_equal(catalogue->entry_count, 1);
        hry_catalogue_unref(catalogue);
        hurray_exporter_destroy(&exporter);
        script_free(&sink);
    }
    hurray_descriptor_destroy(descriptor);
}

static void bools_become_one_byte_each(void **state) {
    (void)state;
    one_tensor(plain(HURRAY_TYPE_BOOL, 1, (const uint64_t[]){11}), "\x0D\x05", 2, "\1\0\1\1\0\0\0\0\1\0\1", 11);
}

static void slack_around_the_elements_is_not_written(void **state) {
    (void)state;
    HurrayLayout row = HURRAY_LAYOUT_INIT;
    row.tag = HURRAY_LAYOUT_ROW_MAJOR;
    one_tensor(laid_out(HURRAY_TYPE_UINT8, 1, (const uint64_t[]){4}, &row, 3, 10), "...abcd...", 10, "abcd", 4);
    one_tensor(laid_out(HURRAY_TYPE_BOOL, 1, (const uint64_t[]){9}, &row, 1, 4), "\xFF\x01\x01\xFF", 4, "\1\0\0\0\0\0\0\0\1", 9);
    one_tensor(laid_out(HURRAY_TYPE_UINT8, 1, (const uint64_t[]){0}, &row, 0, 5), ".....", 5, "", 0);
}

static void other_dense_layouts_are_written_row_major(void **state) {
    (void)state;
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    layout.tag = HURRAY_LAYOUT_COLUMN_MAJOR;
    one_tensor(laid_out(HURRAY_TYPE_UINT8, 2, (const uint64_t[]){2, 3}, &layout, 0, 6), "adbecf", 6, "abcdef", 6);
    one_tensor(laid_out(HURRAY_TYPE_BOOL, 2, (const uint64_t[]){2, 2}, &layout, 0, 1), "\x02", 1, "\0\0\1\0", 4);
    layout.tag = HURRAY_LAYOUT_STRIDED;
    layout.strides = (const int64_t[]){-1, 0};
    one_tensor(laid_out(HURRAY_TYPE_UINT16, 2, (const uint64_t[]){2, 2}, &layout, 2, 4), "aabb", 4, "bbbbaaaa", 8);
    /* more elements than fit the scratch */
    enum { N = 70000 };
    uint8_t *buffer = malloc(N), *data = malloc(N);
    for (unsigned i = 0; i < N; i++) buffer[i] = (uint8_t)(i * 31), data[N - 1 - i] = (uint8_t)(i * 31);
    layout.strides = (const int64_t[]){-1};
    HurrayDescriptor *reversed = laid_out(HURRAY_TYPE_INT8, 1, (const uint64_t[]){N}, &layout, N - 1, N);
    const HurrayExportEntry entry = {.name = "t", .name_len = 1, .descriptor = reversed};
    ScriptTransport sink;
    HurrayExporter *exporter = begin(&sink, &entry, 1, NULL, 0, 0);
    assert_int_equal(hurray_exporter_append(exporter, buffer, N), HURRAY_OK);
    assert_int_equal(hurray_exporter_finish(exporter), HURRAY_OK);
    assert_memory_equal(sink.bytes + sink.len - N, data, N);
    hurray_exporter_destroy(&exporter);
    hurray_descriptor_destroy(reversed);
    script_free(&sink);
    free(buffer), free(data);
}

static void what_is_written_is_read_again(void **state) {
    (void)state;
    size_t count;
    const HryStType *types = hry_st_types(&count);
    for (size_t i = 0; i < count; i++) {
        HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
        HurrayExtensionType extension = hry_st_extension(&types[i]);
        uint64_t shape = 8;
        spec.rank = 1, spec.shape = &shape, spec.element_type = types[i].type_tag;
        if (types[i].exponent_bits) spec.extension_type = &extension;
        HurrayDescriptor *descriptor = descriptor_must_build(&spec);
        const HurrayExportEntry entry = {.name = "t", .name_len = 1, .descriptor = descriptor};
        uint8_t buffer[64] = {0};
        ScriptTransport sink;
        HurrayExporter *exporter = begin(&sink, &entry, 1, NULL, 0, 0);
        assert_int_equal(hurray_exporter_append(exporter, buffer, (size_t)descriptor->buffers[0].byte_size), HURRAY_OK);
        assert_int_equal(hurray_exporter_finish(exporter), HURRAY_OK);
        assert_int_equal(sink.bytes[0] % 8, 0);
        HryCatalogue *catalogue = import_open(hry_import_safetensors, sink.bytes, sink.len);
        assert_int_equal(catalogue->entries[0].descriptor->element_type, types[i].type_tag);
        hry_catalogue_unref(catalogue);
        hurray_exporter_destroy(&exporter);
        hurray_descriptor_destroy(descriptor);
        script_free(&sink);
    }
}

static void refuse(const HurrayExportEntry *entries, size_t count, const HurrayKvEntry *kv, size_t kv_count, HurrayStatus status,
                   const char *word) {
    ScriptTransport sink;
    HurrayExporter *exporter = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    FailAlloc alloc;
    HurrayExportOptions options = HURRAY_EXPORT_OPTIONS_INIT;
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    script_sink(&sink);
    HurrayTransport transport = script_transport(&sink);
    HurrayStatus found =
        hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, entries, count, kv, kv_count, &options, &exporter, &error);
    if (found != status || !(strstr(error.message, word) || strstr(error.tensor, word)))
        print_error("%d %s: %s, expected %d `%s`\n", found, error.tensor, error.message, status, word);
    assert_int_equal(found, status);
    assert_true(strstr(error.message, word) || strstr(error.tensor, word));
    assert_null(exporter);
    assert_int_equal(sink.len, 0);
    assert_int_equal(sink.releases, 0);
    fail_alloc_assert_empty(&alloc);
    script_free(&sink);
}

static void refuse_one(HurrayDescriptor *descriptor, const char *word) {
    const HurrayExportEntry entry = {.name = "tensor", .name_len = 6, .descriptor = descriptor};
    refuse(&entry, 1, NULL, 0, HURRAY_ERR_UNSUPPORTED, word);
    refuse(&entry, 1, NULL, 0, HURRAY_ERR_UNSUPPORTED, "tensor");
    hurray_descriptor_destroy(descriptor);
}

static void what_safetensors_cannot_hold_is_refused_by_name(void **state) {
    (void)state;
    static const uint8_t types[] = {HURRAY_TYPE_FLOAT128, HURRAY_TYPE_COMPLEX128, HURRAY_TYPE_INT4,
                                    HURRAY_TYPE_UINT4,    HURRAY_TYPE_INT2,       HURRAY_TYPE_UINT2};
    for (size_t i = 0; i < sizeof types; i++) refuse_one(plain(types[i], 1, (const uint64_t[]){8}), "dtype");
    refuse_one(plain(HURRAY_TYPE_FLOAT4_E2M1, 1, (const uint64_t[]){3}), "whole");
    refuse_one(plain(HURRAY_TYPE_FLOAT6_E3M2, 1, (const uint64_t[]){6}), "whole");
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayBufferHandle handles[3] = {
        {.byte_size = 64, .alignment = 64}, {.byte_size = 64, .alignment = 64}, {.byte_size = 64, .alignment = 64}};
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayExtensionType extension = hry_st_extension(&(HryStType){.exponent_bits = 3, .mantissa_bits = 4, .bias = 8});
    uint64_t shape[3] = {2, 2, 2};
    spec.rank = 1, spec.shape = shape, spec.element_type = 0xF0, spec.extension_type = &extension;
    refuse_one(descriptor_must_build(&spec), "dtype");
    spec.extension_type = NULL, spec.element_type = HURRAY_TYPE_UINT8;
    HurrayShard shard = HURRAY_SHARD_INIT;
    shard.parent_shape = (const uint64_t[]){4}, shard.offset = (const uint64_t[]){1};
    spec.shard = &shard;
    refuse_one(descriptor_must_build(&spec), "shard");
    spec.shard = NULL;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    spec.composite_member = &member;
    refuse_one(descriptor_must_build(&spec), "member");
    spec.composite_member = NULL;
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    quantization.scheme = HURRAY_QUANT_PER_TENSOR_AFFINE, quantization.scale = 1;
    spec.quantization = &quantization;
    refuse_one(descriptor_must_build(&spec), "quantized");
    spec.quantization = NULL;
    spec.buffers = handles, spec.buffer_count = 1;
    uint64_t dynamic = HURRAY_DYNAMIC_DIMENSION;
    spec.shape = &dynamic;
    refuse_one(descriptor_must_build(&spec), "dynamic");
    spec.shape = shape, spec.rank = 2, spec.layout = &layout;
    layout.tag = HURRAY_LAYOUT_COO, layout.nnz = 1, spec.buffer_count = 2;
    refuse_one(descriptor_must_build(&spec), "sparse");
    layout.tag = HURRAY_LAYOUT_COMPOSITE, layout.nnz = 0, layout.rule = HURRAY_RULE_GROUP, spec.buffer_count = 0, spec.buffers = NULL;
    refuse_one(descriptor_must_build(&spec), "composite");
    layout = (HurrayLayout)HURRAY_LAYOUT_INIT;
    layout.tag = 0xF0, layout.private_id = 5, spec.buffer_count = 1, spec.buffers = handles;
    refuse_one(descriptor_must_build(&spec), "private");
    layout = (HurrayLayout)HURRAY_LAYOUT_INIT;
    layout.tag = HURRAY_LAYOUT_BLOCK_PAGED, layout.page_size = 1, layout.num_pages = 1, layout.num_seqs = 0,
    layout.layer_index = HURRAY_NO_LAYER;
    spec.rank = 3, spec.buffer_count = 3;
    refuse_one(descriptor_must_build(&spec), "paged");
}

static void wrong_names_metadata_and_arguments_are_refused(void **state) {
    (void)state;
    HurrayDescriptor *u8 = plain(HURRAY_TYPE_UINT8, 1, (const uint64_t[]){1});
    HurrayExportEntry twins[] = {{.name = "w", .name_len = 1, .descriptor = u8}, {.name = "w", .name_len = 1, .descriptor = u8}};
    refuse(twins, 2, NULL, 0, HURRAY_ERR_DUPLICATE_NAME, "w");
    HurrayExportEntry entry = {.name = "__metadata__", .name_len = 12, .descriptor = u8};
    refuse(&entry, 1, NULL, 0, HURRAY_ERR_UNSUPPORTED, "__metadata__");
    entry.name = "\xFF", entry.name_len = 1;
    refuse(&entry, 1, NULL, 0, HURRAY_ERR_INVALID_NAME, "UTF-8");
    entry.name = "x", entry.reserved[1] = 1;
    refuse(&entry, 1, NULL, 0, HURRAY_ERR_UNSUPPORTED, "reserved");
    entry.reserved[1] = 0, entry.descriptor = NULL;
    refuse(&entry, 1, NULL, 0, HURRAY_ERR_NULL_POINTER, "descriptor");
    HurrayKvEntry kv[2] = {text_entry("k", "a"), text_entry("k", "b")};
    refuse(NULL, 0, kv, 2, HURRAY_ERR_INVALID_KV, "same key");
    kv[1] = text_entry("l", "\xC0");
    refuse(NULL, 0, kv, 2, HURRAY_ERR_INVALID_KV, "UTF-8");
    kv[1].value.kind = HURRAY_KV_UINT64;
    refuse(NULL, 0, kv, 2, HURRAY_ERR_UNSUPPORTED, "`l`");
    ScriptTransport sink;
    HurrayExporter *exporter = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayExportOptions options = HURRAY_EXPORT_OPTIONS_INIT;
    script_sink(&sink);
    HurrayTransport transport = script_transport(&sink);
    assert_int_equal(hurray_exporter_new(NULL, HURRAY_FORMAT_SAFETENSORS, NULL, 0, NULL, 0, NULL, &exporter, &error),
                     HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, NULL, 1, NULL, 0, NULL, &exporter, NULL),
                     HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, NULL, 0, NULL, 1, NULL, &exporter, NULL),
                     HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, NULL, 0, NULL, 0, NULL, NULL, NULL),
                     HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_exporter_new(&transport, HURRAY_FORMAT_GGUF, NULL, 0, NULL, 0, NULL, &exporter, &error),
                     HURRAY_ERR_UNSUPPORTED);
    options.flags = 8;
    assert_int_equal(hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, NULL, 0, NULL, 0, &options, &exporter, &error),
                     HURRAY_ERR_UNSUPPORTED);
    options.flags = 0, options.struct_size = 4;
    assert_int_equal(hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, NULL, 0, NULL, 0, &options, &exporter, &error),
                     HURRAY_ERR_INVALID_ARGUMENT);
    transport.write = NULL;
    assert_int_equal(hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, NULL, 0, NULL, 0, NULL, &exporter, &error),
                     HURRAY_ERR_INVALID_ARGUMENT);
    size_t place;
    assert_int_equal(hurray_exporter_append(NULL, "", 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_exporter_finish(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_exporter_order(NULL, 0, &place), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_exporter_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    assert_null(hurray_exporter_last_error(NULL));
    script_free(&sink);
    hurray_descriptor_destroy(u8);
}

static void other_metadata_becomes_text_when_asked_for(void **state) {
    (void)state;
    ScriptTransport sink;
    static const HurrayIoSlice texts[] = {{"a\"b", 3}, {"", 0}}, bytes[] = {{"\x01\xFF", 2}};
    static const int64_t ints[] = {-1, 2};
    static const double floats[] = {0.1, 1e300};
    static const uint8_t bools[] = {1, 0};
    const uint64_t nan_bits = 0x7FF8000000000000, inf_bits = 0xFFF0000000000000;
    double nan_value, inf_value;
    memcpy(&nan_value, &nan_bits, 8), memcpy(&inf_value, &inf_bits, 8);
    const HurrayKvEntry kv[] = {
        {.key = "a", .key_len = 1, .value = {.kind = HURRAY_KV_INT64, .i64 = INT64_MIN}},
        {.key = "b", .key_len = 1, .value = {.kind = HURRAY_KV_UINT64, .u64 = UINT64_MAX}},
        {.key = "c", .key_len = 1, .value = {.kind = HURRAY_KV_FLOAT64, .f64 = 0.1}},
        {.key = "d", .key_len = 1, .value = {.kind = HURRAY_KV_BOOL, .boolean = 1}},
        {.key = "e", .key_len = 1, .value = {.kind = HURRAY_KV_BYTES, .data = "\x0A\xFF", .data_len = 2}},
        {.key = "f", .key_len = 1, .value = {.kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_INT64, .data = ints, .data_len = 2}},
        {.key = "g", .key_len = 1, .value = {.kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_FLOAT64, .data = floats, .data_len = 2}},
        {.key = "h", .key_len = 1, .value = {.kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_STRING, .data = texts, .data_len = 2}},
        {.key = "i", .key_len = 1, .value = {.kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_BYTES, .data = bytes, .data_len = 1}},
        {.key = "j", .key_len = 1, .value = {.kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_BOOL, .data = bools, .data_len = 2}},
        {.key = "k", .key_len = 1, .value = {.kind = HURRAY_KV_FLOAT64, .f64 = nan_value}},
        {.key = "l", .key_len = 1, .value = {.kind = HURRAY_KV_FLOAT64, .f64 = inf_value}},
        {.key = "libhurray.crc32c", .key_len = 16, .value = {.kind = HURRAY_KV_BYTES, .data = "x", .data_len = 1}},
    };
    HurrayExporter *exporter = begin(&sink, NULL, 0, kv, 13, HURRAY_EXPORT_KV_AS_TEXT);
    assert_int_equal(hurray_exporter_finish(exporter), HURRAY_OK);
    HryCatalogue *c = import_open(hry_import_safetensors, sink.bytes, sink.len);
    static const char *const expected[] = {"-9223372036854775808", "18446744073709551615", "0.1",        "true",         "0aff", "[-1,2]",
                                           "[0.1,1e+300]",         "[\"a\"b\",\"\"]",      "[\"01ff\"]", "[true,false]", "nan",  "-inf"};
    assert_int_equal(c->kv_count, 12);
    for (size_t i = 0; i < 12; i++) {
        const HurrayKvValue *value = &c->kv[i].value;
        if (value->data_len != strlen(expected[i]))
            print_error("%.*s, expected %s\n", (int)value->data_len, (const char *)value->data, expected[i]);
        assert_int_equal(value->data_len, strlen(expected[i]));
        assert_memory_equal(value->data, expected[i], value->data_len);
    }
    hry_catalogue_unref(c);
    hurray_exporter_destroy(&exporter);
    script_free(&sink);
    const HurrayKvValue inner = {.kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_INT64};
    const HurrayKvEntry nested = {
        .key = "n", .key_len = 1, .value = {.kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_ARRAY, .data = &inner, .data_len = 1}};
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayExportOptions options = HURRAY_EXPORT_OPTIONS_INIT;
    options.flags = HURRAY_EXPORT_KV_AS_TEXT;
    script_sink(&sink);
    HurrayTransport transport = script_transport(&sink);
    assert_int_equal(hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, NULL, 0, &nested, 1, &options, &exporter, &error),
                     HURRAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "array of arrays"));
    script_free(&sink);
}

static void a_failing_sink_is_told_apart_before_and_after_the_first_byte(void **state) {
    (void)state;
    HurrayDescriptor *u8 = plain(HURRAY_TYPE_UINT8, 1, (const uint64_t[]){4});
    const HurrayExportEntry entry = {.name = "t", .name_len = 1, .descriptor = u8};
    ScriptTransport sink;
    HurrayExporter *exporter = begin(&sink, &entry, 1, NULL, 0, 0);
    script_fail(&sink, 1, -1100, 0);
    assert_int_equal(hurray_exporter_append(exporter, "abcd", 4), -1100);
    assert_int_equal(hurray_exporter_append(exporter, "abcd", 4), HURRAY_OK); /* nothing had happened */
    assert_int_equal(hurray_exporter_finish(exporter), HURRAY_OK);
    assert_memory_equal(sink.bytes + sink.len - 4, "abcd", 4);
    hurray_exporter_destroy(&exporter);
    script_free(&sink);
    for (uint64_t call = 2; call < 12; call++) {
        exporter = begin(&sink, &entry, 1, NULL, 0, 0);
        script_every(&sink, 8);
        script_fail(&sink, call, -1100, 0);
        HurrayStatus status = hurray_exporter_append(exporter, "abcd", 4);
        if (status != HURRAY_OK) {
            assert_int_equal(status, HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(hurray_exporter_last_error(exporter)->cause, -1100);
            assert_int_equal(hurray_exporter_append(exporter, "abcd", 4), HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(hurray_exporter_finish(exporter), HURRAY_ERR_SINK_CLOSED);
        }
        hurray_exporter_destroy(&exporter);
        script_free(&sink);
    }
    static const ScriptStep closed = {.limit = 0};
    exporter = begin(&sink, &entry, 1, NULL, 0, 0);
    script_pattern(&sink, &closed, 1);
    assert_int_equal(hurray_exporter_append(exporter, "abcd", 4), HURRAY_ERR_SINK_CLOSED);
    hurray_exporter_destroy(&exporter);
    script_free(&sink);
    hurray_descriptor_destroy(u8);
}

static void a_failing_allocation_leaves_nothing(void **state) {
    (void)state;
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    layout.tag = HURRAY_LAYOUT_COLUMN_MAJOR;
    HurrayDescriptor *column = laid_out(HURRAY_TYPE_UINT8, 2, (const uint64_t[]){2, 2}, &layout, 0, 4);
    const HurrayExportEntry entry = {.name = "t", .name_len = 1, .descriptor = column};
    const HurrayKvEntry kv = text_entry("k", "v");
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    for (uint64_t k = 1;; k++) {
        ScriptTransport sink;
        HurrayExporter *exporter = NULL;
        HurrayExportOptions options = HURRAY_EXPORT_OPTIONS_INIT;
        options.allocator = &alloc.allocator;
        fail_alloc_arm(&alloc, k, 0);
        script_sink(&sink);
        HurrayTransport transport = script_transport(&sink);
        HurrayStatus status = hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, &entry, 1, &kv, 1, &options, &exporter, NULL);
        if (status == HURRAY_OK) status = hurray_exporter_append(exporter, "acbd", 4);
        if (status == HURRAY_ERR_NO_MEMORY && exporter)
            status = hurray_exporter_append(exporter, "acbd", 4), assert_int_equal(status, HURRAY_OK);
        bool done = status == HURRAY_OK && alloc.calls < k;
        if (!done && !exporter) assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        hurray_exporter_destroy(&exporter);
        script_free(&sink);
        fail_alloc_assert_empty(&alloc);
        if (done) break;
    }
    hurray_descriptor_destroy(column);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_go_out_by_type_then_by_name),
        cmocka_unit_test(no_tensors_make_the_smallest_file),
        cmocka_unit_test(bools_become_one_byte_each),
        cmocka_unit_test(slack_around_the_elements_is_not_written),
        cmocka_unit_test(other_dense_layouts_are_written_row_major),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(what_safetensors_cannot_hold_is_refused_by_name),
        cmocka_unit_test(wrong_names_metadata_and_arguments_are_refused),
        cmocka_unit_test(other_metadata_becomes_text_when_asked_for),
        cmocka_unit_test(a_failing_sink_is_told_apart_before_and_after_the_first_byte),
        cmocka_unit_test(a_failing_allocation_leaves_nothing),
    };
    return cmocka_run_group_tests_name("import/export", tests, NULL, NULL);
}
