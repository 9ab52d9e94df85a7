/* What is made of a tensor piece by piece, its dense view and the format's own quantization, is what is made of it whole. */
#include "hurray/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "hurray/dense.h"
#include "hurray/import.h"
#include "import/common.h"
#include "import/native_quant.h"
#include "support/contents.h"
#include "support/models.h"
#include "support/script_transport.h"

#define F32 HURRAY_TYPE_FLOAT32

typedef struct Scene {
    ModelWriter writer;
    ModelBytes bytes;
    ScriptTransport script;
    HurrayLoader *loader;
    HurrayTensorSet *set;
    unsigned count; /* tensors */
} Scene;

static void scene_add(Scene *scene, const HurrayDescriptor *descriptor, const HryBytes *bytes) {
    char name[16];
    HurrayIoSlice slices[3];
    for (uint32_t k = 0; k < descriptor->buffer_count; k++) slices[k] = (HurrayIoSlice){bytes[k].data, (size_t)bytes[k].size};
    int len = snprintf(name, sizeof name, "t%u", scene->count++);
    HurrayStatus status =
        hurray_file_writer_write_tensor(scene->writer.writer, name, (size_t)len, descriptor, slices, descriptor->buffer_count);
    if (status != HURRAY_OK) fail_msg("%s", hurray_file_writer_last_error(scene->writer.writer)->message);
}

static uint64_t seed = 11;

/* Random codes; scales and zero points that are numbers. */
static void scene_add_spec(Scene *scene, const ContentsSpec *spec) {
    Contents contents;
    contents_make(&contents, spec);
    contents_fill_random(&contents, &seed);
    for (uint32_t k = 1; k < contents.descriptor->buffer_count; k++)
        for (uint64_t i = 0; i < contents.bytes[k].size; i++)
            contents_buffer(&contents, k)[i] = (uint8_t)(i % 4 ? 40 + i * 7 % 19 : 3 + i % 90);
    scene_add(scene, contents.descriptor, contents.bytes);
    contents_free(&contents);
}

/* Blocks that every form can hold: finite scales. */
static void scene_add_ggml(Scene *scene, const HryGgmlType *type, uint64_t rows, uint64_t blocks) {
    uint8_t data[HRY_GGML_LAYOUT_DATA];
    uint64_t size = rows * blocks * type->block_bytes;
    hry_store_u32(data, type->number), hry_store_u32(data + 4, type->block_elements), hry_store_u32(data + 8, type->block_bytes);
    HryImported imported = {.element_type = F32,
                            .layout_tag = HRY_GGML_LAYOUT_TAG,
                            .rank = 2,
                            .shape = (const uint64_t[]){rows, blocks * type->block_elements},
                            .byte_size = size,
                            .private_id = HRY_GGML_LAYOUT_ID,
                            .private_data = data,
                            .private_len = HRY_GGML_LAYOUT_DATA};
    HurrayAllocator allocator = hry_alloc_default();
    HurrayDescriptor *descriptor = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    for (uint64_t i = 0; i < size; i++) bytes[i] = (uint8_t)(contents_random(&seed) % 118 + 2); /* no byte can begin a NaN */
    assert_int_equal(hry_import_describe(&imported, &allocator, &descriptor, &error), HURRAY_OK);
    scene_add(scene, descriptor, &(HryBytes){bytes, size});
    hry_descriptor_unref(descriptor);
    free(bytes);
}

static void scene_open(Scene *scene, const HurrayLoaderOptions *options) {
    HurrayTransport transport;
    HurraySource source = {.transport = &transport};
    HurrayError error = HURRAY_ERROR_INIT;
    scene->bytes = model_writer_end(&scene->writer);
    script_source(&scene->script, scene->bytes.bytes, scene->bytes.len);
    transport = script_transport(&scene->script);
    if (hurray_loader_open_sources(&source, 1, options, &scene->loader, &error) != HURRAY_OK) fail_msg("%s", error.message);
    if (hurray_loader_load(scene->loader, &scene->set) != HURRAY_OK) fail_msg("%s", hurray_loader_last_error(scene->loader)->message);
}

static void scene_close(Scene *scene) {
    hurray_tensor_set_destroy(&scene->set);
    hurray_loader_destroy(&scene->loader);
    script_free(&scene->script);
    model_free(&scene->bytes);
}

static const HurrayDescriptor *descriptor_of(const Scene *scene, uint64_t i, HurrayTensor **tensor) {
    const HurrayDescriptor *descriptor = NULL;
    assert_int_equal(hurray_tensor_set_get(scene->set, i, tensor), HURRAY_OK);
    hurray_tensor_descriptor(*tensor, &descriptor);
    return descriptor;
}

/* Room of exactly len, so that a sanitizer sees a byte too many. */
static uint8_t *room_of(uint64_t len) {
    uint8_t *room = malloc(len ? len : 1);
    assert_non_null(room);
    return memset(room, 0xA5, len);
}

/* Stretches of several lengths, the rest among them, from every element on (of every byte, below 8 bits; from some of a large tensor). */
static void compare_dense(Scene *scene, uint64_t i, uint8_t type) {
    HurrayTensor *tensor;
    HurrayError error = HURRAY_ERROR_INIT;
    const HurrayDescriptor *descriptor = descriptor_of(scene, i, &tensor);
    uint64_t bytes = 0, count = 1;
    for (uint32_t k = 0; k < descriptor->rank; k++) count *= descriptor->shape[k];
    assert_int_equal(hurray_dense_size(descriptor, type, &bytes, &error), HURRAY_OK);
    uint64_t bits = type == F32 ? 32 : bytes * 8 / count;
    uint8_t *whole = room_of(bytes), *piece;
    assert_int_equal(hurray_tensor_dense(tensor, type, whole, bytes, &error), HURRAY_OK);
    for (uint64_t first = 0; first <= count; first += count > 10000 ? count / 56 * 8 : bits < 8 ? 8 : 1) {
        const uint64_t lengths[] = {0, 1, 8, 33, 256, count - first};
        for (size_t l = 0; l < 6; l++) {
            uint64_t n = lengths[l], len = bits < 8 ? (n + 7) / 8 * bits : n * bits / 8;
            if (n > count - first || (bits < 8 && n % 8 && first + n < count)) continue;
            if (first + n == count) len = bytes - first * bits / 8;
            piece = room_of(len);
            HurrayStatus status = hurray_loader_read_dense(scene->loader, i, type, first, n, piece, len);
            if (status != HURRAY_OK) fail_msg("tensor %u: %s", (unsigned)i, hurray_loader_last_error(scene->loader)->message);
            if (memcmp(piece, whole + first * bits / 8, len) != 0)
                fail_msg("tensor %u: %u elements from %u on", (unsigned)i, (unsigned)n, (unsigned)first);
            free(piece);
        }
    }
    free(whole);
}

static void ggml_blocks_decode_in_pieces_of_any_size(void **state) {
    (void)state;
    Scene scene = {0};
    unsigned types = 0;
    model_writer_begin(&scene.writer, 0);
    for (uint32_t number = 0; number < 50; number++) {
        const HryGgmlType *type = hry_ggml_find(number);
        if (!type || !type->has_values) continue;
        scene_add_ggml(&scene, type, 2, 3);
        types++;
    }
    scene_add_ggml(&scene, hry_ggml_find(14), 2, 300); /* more than is decoded at a time */
    scene_open(&scene, NULL);
    for (uint64_t i = 0; i <= types; i++) compare_dense(&scene, i, F32);
    assert_int_equal(types, 20);
    scene_close(&scene);
}

static void add_quantized(Scene *scene) {
    static const uint64_t shape[] = {3, 4, 40}, column[] = {3, 100, 1};
    static const uint8_t types[] = {HURRAY_TYPE_INT8, HURRAY_TYPE_UINT4};
    for (size_t t = 0; t < 2; t++) {
        uint64_t codes = t ? 240 : 480, column_codes = t ? 150 : 300;
        HurrayQuantization q = contents_scheme(HURRAY_QUANT_PER_TENSOR_AFFINE);
        q.scale = 0.25f;
        q.zero_point = 3;
        scene_add_spec(scene, &(ContentsSpec){.type = types[t], .rank = 3, .shape = shape, .quantization = &q, .sizes = {codes}});
        for (uint32_t axis = 0; axis < 3; axis++) {
            q = contents_scheme(HURRAY_QUANT_PER_CHANNEL_AFFINE);
            q.axis = axis;
            q.scale_type = F32;
            q.scale_buffer = 1;
            q.zero_point_buffer = 2;
            scene_add_spec(scene, &(ContentsSpec){.type = types[t],
                                                  .rank = 3,
                                                  .shape = shape,
                                                  .quantization = &q,
                                                  .buffer_count = 3,
                                                  .sizes = {codes, shape[axis] * 4, shape[axis] * 4}});
        }
        q = contents_scheme(HURRAY_QUANT_PER_BLOCK_AFFINE);
        q.axis = 2;
        q.block_size = 16;
        q.scale_type = F32;
        q.scale_buffer = q.zero_point_buffer = 1; /* zero points behind the scales; 3 blocks a row, the last one short */
        scene_add_spec(
            scene,
            &(ContentsSpec){.type = types[t], .rank = 3, .shape = shape, .quantization = &q, .buffer_count = 2, .sizes = {codes, 36 * 8}});
        q.axis = 1; /* the last dimension but one of a single element */
        scene_add_spec(
            scene,
            &(ContentsSpec){
                .type = types[t], .rank = 3, .shape = column, .quantization = &q, .buffer_count = 2, .sizes = {column_codes, 21 * 8}});
    }
}

static void row_major_tensors_decode_in_pieces_of_any_size(void **state) {
    (void)state;
    static const uint64_t shape[] = {7, 43}, large[] = {3, 51200};
    static const uint8_t types[] = {HURRAY_TYPE_FLOAT64,     HURRAY_TYPE_INT16, HURRAY_TYPE_FLOAT8_E4M3,
                                    HURRAY_TYPE_FLOAT6_E2M3, HURRAY_TYPE_INT4,  HURRAY_TYPE_BOOL};
    static const uint64_t bits[] = {64, 16, 8, 6, 4, 1};
    Scene scene = {0};
    uint64_t quantized = 13, plain = sizeof types;
    HurrayQuantization q = contents_scheme(HURRAY_QUANT_MXFP);
    model_writer_begin(&scene.writer, 0);
    add_quantized(&scene);
    q.axis = 1;
    q.block_size = 32;
    q.scale_buffer = 1;
    scene_add_spec(
        &scene,
        &(ContentsSpec){
            .type = HURRAY_TYPE_FLOAT4_E2M1, .rank = 2, .shape = large, .quantization = &q, .buffer_count = 2, .sizes = {76800, 4800}});
    for (size_t t = 0; t < plain; t++)
        scene_add_spec(
            &scene, &(ContentsSpec){
                        .type = types[t], .rank = 2, .shape = shape, .byte_offset = 48, .sizes = {48 + (301 * bits[t] + 23) / 24 * 3 + 5}});
    scene_open(&scene, NULL);
    for (uint64_t i = 0; i < quantized + plain; i++) {
        compare_dense(&scene, i, F32);
        compare_dense(&scene, i, 0);
    }
    scene_close(&scene);
}

static void what_lies_in_no_order_is_refused(void **state) {
    (void)state;
    static const uint64_t shape[] = {8, 4};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COLUMN_MAJOR);
    HurrayQuantization q = contents_scheme(HURRAY_QUANT_PER_BLOCK_AFFINE);
    Scene scene = {0};
    float values[32];
    model_writer_begin(&scene.writer, 0);
    scene_add_spec(&scene, &(ContentsSpec){.type = F32, .rank = 2, .shape = shape, .layout = &layout, .sizes = {128}});
    q.axis = 0;
    q.block_size = 4;
    q.scale_type = F32;
    q.scale_buffer = 1;
    q.flags = HURRAY_QUANT_SYMMETRIC;
    q.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    scene_add_spec(
        &scene,
        &(ContentsSpec){.type = HURRAY_TYPE_INT8, .rank = 2, .shape = shape, .quantization = &q, .buffer_count = 2, .sizes = {32, 32}});
    scene_open(&scene, NULL);
    HurrayLoader *loader = scene.loader;
    assert_int_equal(hurray_loader_read_dense(loader, 0, F32, 0, 1, values, sizeof values), HURRAY_ERR_UNSUPPORTED);
    assert_string_equal(hurray_loader_last_error(loader)->tensor, "t0");
    assert_int_equal(hurray_loader_read_dense(loader, 1, F32, 0, 1, values, sizeof values), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(hurray_loader_read_dense(loader, 1, 0, 0, 32, values, sizeof values), HURRAY_OK);
    assert_int_equal(hurray_loader_read_dense(loader, 1, 0, 31, 2, values, sizeof values), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_loader_read_dense(loader, 1, 0, UINT64_MAX, 2, values, sizeof values), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_loader_read_dense(loader, 2, 0, 0, 1, values, sizeof values), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_loader_read_dense(loader, 1, 0, 0, 32, values, 31), HURRAY_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(hurray_loader_read_dense(loader, 1, HURRAY_TYPE_INT16, 0, 1, values, 8), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(hurray_loader_read_dense(loader, 1, 0, 0, 1, NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_read_native(loader, 1, 0, 0, values, 1), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(hurray_loader_read_native(loader, 2, 0, 0, values, 1), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_loader_read_native(loader, 1, 0, 0, NULL, 1), HURRAY_ERR_NULL_POINTER);
    scene_close(&scene);
}

static void native_buffers_come_in_pieces_of_any_size(void **state) {
    (void)state;
    Scene scene = {0};
    unsigned types = 0;
    model_writer_begin(&scene.writer, 0);
    for (uint32_t number = 0; number < 50; number++) {
        const HryGgmlType *type = hry_ggml_find(number);
        if (!type || !hry_native_find(number)) continue;
        scene_add_ggml(&scene, type, 1, 5);
        scene_add_ggml(&scene, type, 1, 4000); /* more than one read */
        types++;
    }
    assert_int_equal(types, 14);
    scene_open(&scene, NULL);
    for (uint64_t i = 0; i < 2 * types; i++) {
        HurrayTensor *from, *to = NULL;
        HurrayDescriptor *described = NULL;
        HurrayBufferList *list = NULL;
        const HurrayDescriptor *made = NULL;
        HurrayError error = HURRAY_ERROR_INIT;
        uint64_t count = 0;
        const HurrayDescriptor *blocks = descriptor_of(&scene, i, &from);
        if (hurray_tensor_from_ggml(from, NULL, &to, &error) != HURRAY_OK) fail_msg("tensor %u: %s", (unsigned)i, error.message);
        assert_int_equal(hurray_descriptor_from_ggml(blocks, NULL, &described, &error), HURRAY_OK);
        hurray_tensor_descriptor(to, &made);
        uint8_t one[400], two[400];
        size_t one_len = sizeof one, two_len = sizeof two;
        assert_int_equal(hurray_descriptor_encode(made, one, &one_len), HURRAY_OK);
        assert_int_equal(hurray_descriptor_encode(described, two, &two_len), HURRAY_OK);
        assert_int_equal(one_len, two_len);
        assert_memory_equal(one, two, one_len);
        hurray_tensor_buffers(to, &list);
        hurray_buffer_list_len(list, &count);
        for (uint32_t k = 0; k < count; k++) {
            HurrayBuffer *buffer = NULL;
            void *data = NULL;
            uint64_t size = 0;
            hurray_buffer_list_get(list, k, &buffer);
            hurray_buffer_data_ptr(buffer, &data);
            hurray_buffer_byte_size(buffer, &size);
            const uint64_t steps[] = {1, 7, 64, 100, size};
            for (size_t s = 0; s < 5; s++)
                for (uint64_t at = 0, n; at < size && (steps[s] * 3000 > size || at < 200); at += n) {
                    n = steps[s] < size - at ? steps[s] : size - at;
                    uint8_t *piece = room_of(n);
                    HurrayStatus status = hurray_loader_read_native(scene.loader, i, k, at, piece, n);
                    if (status != HURRAY_OK) fail_msg("tensor %u: %s", (unsigned)i, hurray_loader_last_error(scene.loader)->message);
                    assert_memory_equal(piece, (const uint8_t *)data + at, n);
                    free(piece);
                }
            uint8_t byte;
            assert_int_equal(hurray_loader_read_native(scene.loader, i, k, size, &byte, 1), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
        }
        uint8_t byte;
        assert_int_equal(hurray_loader_read_native(scene.loader, i, (uint32_t)count, 0, &byte, 1), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
        hurray_descriptor_destroy(described);
        hurray_tensor_destroy(&to);
    }
    scene_close(&scene);
}

/* Reads all of tensor i in order, so many elements or bytes at a time; the first failure ends it. */
static HurrayStatus read_all(HurrayLoader *loader, uint64_t i, bool native, uint64_t count, uint64_t step, uint64_t *at) {
    uint8_t room[4096];
    HurrayStatus status = HURRAY_OK;
    for (*at = 0; *at < count && status == HURRAY_OK;) {
        uint64_t n = step < count - *at ? step : count - *at;
        status =
            native ? hurray_loader_read_native(loader, i, 0, *at, room, n) : hurray_loader_read_dense(loader, i, F32, *at, n, room, 4 * n);
        if (status == HURRAY_OK) *at += n;
    }
    return status;
}

/* The damage is told by the piece that brings the buffer's last byte; of parameters, by the first one. */
static void damage_is_found_by_reading_in_order(void **state) {
    (void)state;
    Scene scene = {0};
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    uint64_t at;
    options.verify_data = HURRAY_VERIFY_REQUIRED;
    model_writer_begin(&scene.writer, 0);
    scene_add_ggml(&scene, hry_ggml_find(8), 1, 96); /* 3072 elements */
    add_quantized(&scene);                           /* 2: channels of the first dimension; 480 elements */
    scene_open(&scene, &options);
    assert_int_equal(read_all(scene.loader, 0, false, 3072, 256, &at), HURRAY_OK);
    assert_int_equal(read_all(scene.loader, 0, true, 3072, 256, &at), HURRAY_OK);
    assert_int_equal(read_all(scene.loader, 2, false, 480, 72, &at), HURRAY_OK);
    assert_int_equal(hurray_loader_tensor_info(scene.loader, 0, &info), HURRAY_OK);
    scene.script.bytes[info.data_offset + 1000] ^= 1;
    assert_int_equal(read_all(scene.loader, 0, false, 3072, 256, &at), HURRAY_ERR_CHECKSUM);
    assert_int_equal(at, 3072 - 256);
    assert_int_equal(read_all(scene.loader, 0, true, 3072, 256, &at), HURRAY_ERR_CHECKSUM);
    assert_int_equal(at, 3072 - 256);
    assert_int_equal(hurray_loader_tensor_info(scene.loader, 2, &info), HURRAY_OK);
    scene.script.bytes[info.buffer_offsets[0] + 7] ^= 1;
    assert_int_equal(read_all(scene.loader, 2, false, 480, 72, &at), HURRAY_ERR_CHECKSUM);
    assert_int_equal(at, 480 - 48);
    scene.script.bytes[info.buffer_offsets[0] + 7] ^= 1;
    scene.script.bytes[info.buffer_offsets[2] + 7] ^= 1;
    assert_int_equal(read_all(scene.loader, 2, false, 480, 72, &at), HURRAY_ERR_CHECKSUM);
    assert_int_equal(at, 0);
    assert_int_equal(hurray_loader_last_error(scene.loader)->buffer_index, 2);
    scene_close(&scene);
}

static void a_scale_that_cannot_be_held_is_told_by_its_block(void **state) {
    (void)state;
    Scene scene = {0};
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    uint64_t at;
    model_writer_begin(&scene.writer, 0);
    scene_add_ggml(&scene, hry_ggml_find(8), 1, 96);
    scene_open(&scene, NULL);
    assert_int_equal(hurray_loader_tensor_info(scene.loader, 0, &info), HURRAY_OK);
    hry_store_u16(scene.script.bytes + info.data_offset + 34 * 41, 0x7C00);
    assert_int_equal(read_all(scene.loader, 0, true, 3072, 256, &at), HURRAY_ERR_INVALID_DATA);
    assert_int_equal(at, 41 / 8 * 256);
    assert_string_equal(hurray_loader_last_error(scene.loader)->field, "scale");
    assert_non_null(strstr(hurray_loader_last_error(scene.loader)->message, "block 41 "));
    scene_close(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ggml_blocks_decode_in_pieces_of_any_size), cmocka_unit_test(row_major_tensors_decode_in_pieces_of_any_size),
        cmocka_unit_test(what_lies_in_no_order_is_refused),         cmocka_unit_test(native_buffers_come_in_pieces_of_any_size),
        cmocka_unit_test(damage_is_found_by_reading_in_order),      cmocka_unit_test(a_scale_that_cannot_be_held_is_told_by_its_block),
    };
    return cmocka_run_group_tests_name("loader/pieces", tests, NULL, NULL);
}
