#include "import/native_quant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "core/tensor.h"
#include "hurray/dense.h"
#include "hurray/import.h"
#include "import/common.h"
#include "support/fail_alloc.h"

static void keep(void *data, void *context) { (void)data, (void)context; }

/* A tensor of rows x 1 blocks over borrowed memory. */
static HurrayTensor *blocks_tensor(const HryGgmlType *type, uint8_t *blocks, uint64_t rows) {
    uint8_t data[HRY_GGML_LAYOUT_DATA];
    hry_store_u32(data, type->number), hry_store_u32(data + 4, type->block_elements), hry_store_u32(data + 8, type->block_bytes);
    HryImported imported = {.element_type = HURRAY_TYPE_FLOAT32,
                            .layout_tag = HRY_GGML_LAYOUT_TAG,
                            .rank = 2,
                            .shape = (const uint64_t[]){rows, type->block_elements},
                            .byte_size = rows * type->block_bytes,
                            .private_id = HRY_GGML_LAYOUT_ID,
                            .private_data = data,
                            .private_len = HRY_GGML_LAYOUT_DATA};
    HurrayAllocator allocator = hry_alloc_default();
    HurrayDescriptor *descriptor = NULL;
    HurrayBuffer *buffer = NULL;
    HurrayBufferList *list = NULL;
    HurrayTensor *tensor = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hry_import_describe(&imported, &allocator, &descriptor, &error), HURRAY_OK);
    assert_int_equal(hurray_buffer_from_ptr(blocks, rows * type->block_bytes, 64, 0, 0, 0, keep, NULL, &buffer), HURRAY_OK);
    assert_int_equal(hurray_buffer_list_new(1, &list), HURRAY_OK);
    assert_int_equal(hurray_buffer_list_push(list, buffer), HURRAY_OK);
    assert_int_equal(hurray_tensor_new(descriptor, list, NULL, &tensor, &error), HURRAY_OK);
    return tensor;
}

static uint8_t *aligned(size_t size) {
    uint8_t *memory = aligned_alloc(64, (size + 64) / 64 * 64);
    assert_non_null(memory);
    return memset(memory, 0, (size + 64) / 64 * 64);
}

static uint32_t random_state = 7;
static uint8_t random_byte(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return (uint8_t)(random_state >> 24);
}

/* Where a type keeps its half (or float) scale; -1: elsewhere. */
static int scale_at(uint32_t number) {
    switch (number) {
    case 11: return 108;
    case 14: return 208;
    case 34: return 52;
    case 35: return 64;
    case 39:
    case 40: return -1;
    default: return 0;
    }
}

/* Random blocks with a finite scale; each third one is zero. */
static void fill_block(const HryGgmlType *type, uint8_t *block, uint64_t k) {
    for (uint32_t i = 0; i < type->block_bytes; i++) block[i] = random_byte();
    int at = scale_at(type->number);
    if (type->number == 15) {
        float scale = k % 3 == 2 ? 0.0f : -0.37f;
        memcpy(block, &scale, 4);
    } else if (at >= 0) {
        hry_store_u16(block + at, (uint16_t)(k % 3 != 2 ? 0x2000 | random_byte() : k % 2 ? 0x8000 : 0));
    } else if (type->number == 39) {
        block[0] = k % 3 == 2 ? 0 : (uint8_t)(120 + k % 10);
        if (k % 3 == 2) memset(block + 1, 0x80, 16); /* only codes 0 and 8 */
    } else {
        memcpy(block, k % 3 == 2 ? "\x00\x80\x7F\x01" : "\x38\x07\xFF\x3C", 4);
    }
}

static void values_stay_the_same_as_numbers(void **state) {
    (void)state;
    unsigned types = 0;
    for (uint32_t number = 0; number < 50; number++) {
        const HryGgmlType *type = hry_ggml_find(number);
        if (!type || !hry_native_find(number)) continue;
        types++;
        enum { ROWS = 7 };
        size_t elements = (size_t)ROWS * type->block_elements;
        uint8_t *blocks = aligned(ROWS * (size_t)type->block_bytes);
        for (uint64_t k = 0; k < ROWS; k++) fill_block(type, blocks + k * type->block_bytes, k);
        HurrayTensor *from = blocks_tensor(type, blocks, ROWS), *to = NULL;
        HurrayError error = HURRAY_ERROR_INIT;
        HurrayStatus status = hurray_tensor_from_ggml(from, NULL, &to, &error);
        if (status != HURRAY_OK) print_error("%s: %s\n", type->name, error.message);
        assert_int_equal(status, HURRAY_OK);
        float *wanted = malloc(elements * sizeof(float)), *found = malloc(elements * sizeof(float));
        hry_ggml_decode(type, blocks, ROWS, wanted);
        assert_int_equal(hurray_tensor_dense(to, HURRAY_TYPE_FLOAT32, found, elements * sizeof(float), &error), HURRAY_OK);
        for (size_t i = 0; i < elements; i++) {
            if (wanted[i] != found[i]) print_error("%s element %zu: %g, expected %g\n", type->name, i, (double)found[i], (double)wanted[i]);
            assert_true(wanted[i] == found[i]);
        }
        assert_int_equal(hurray_tensor_verify(to, &error), HURRAY_OK);
        hurray_tensor_destroy(&to);
        hurray_tensor_destroy(&from);
        free(wanted), free(found), free(blocks);
    }
    assert_int_equal(types, 14);
}

static void q8_0_keeps_its_bytes_and_q4_0_is_repacked(void **state) {
    (void)state;
    uint8_t block[34] = {0x00, 0x3C}, codes[32], scales[2];
    HurrayError error;
    for (uint8_t i = 0; i < 32; i++) block[2 + i] = (uint8_t)(i * 7);
    assert_int_equal(hry_native_convert(hry_native_find(8), hry_ggml_find(8), block, 1, codes, scales, 0, &error), HURRAY_OK);
    assert_memory_equal(codes, block + 2, 32);
    assert_memory_equal(scales, block, 2);
    memset(block + 2, 0, 16);
    block[2] = 0x9F, block[3] = 0x01; /* elements 0: 15, 1: 1, 16: 9, 17: 0 */
    assert_int_equal(hry_native_convert(hry_native_find(2), hry_ggml_find(2), block, 1, codes, scales, 0, &error), HURRAY_OK);
    assert_int_equal(codes[0], 0x97);
    assert_int_equal(codes[8], 0x81);
}

static void scales_that_the_schemes_cannot_hold_are_refused(void **state) {
    (void)state;
    uint8_t block[292] = {0}, codes[256], scales[64];
    HurrayError error;
    hry_store_u16(block, 0x7C00);
    assert_int_equal(hry_native_convert(hry_native_find(8), hry_ggml_find(8), block, 1, codes, scales, 41, &error),
                     HURRAY_ERR_INVALID_DATA);
    assert_non_null(strstr(error.message, "41"));
    hry_store_u32(block, 0x7FC00000);
    assert_int_equal(hry_native_convert(hry_native_find(15), hry_ggml_find(15), block, 1, codes, scales, 0, &error),
                     HURRAY_ERR_INVALID_DATA);
    block[0] = 0xFF;
    assert_int_equal(hry_native_convert(hry_native_find(39), hry_ggml_find(39), block, 1, codes, scales, 0, &error),
                     HURRAY_ERR_INVALID_DATA);
    block[0] = 0, block[1] = 1;
    assert_int_equal(hry_native_convert(hry_native_find(39), hry_ggml_find(39), block, 1, codes, scales, 0, &error),
                     HURRAY_ERR_INVALID_DATA);
    block[1] = 0x80;
    memset(block + 2, 0x08, 15);
    assert_int_equal(hry_native_convert(hry_native_find(39), hry_ggml_find(39), block, 1, codes, scales, 0, &error), HURRAY_OK);
    assert_int_equal(scales[0], 127);
}

static void other_tensors_are_refused(void **state) {
    (void)state;
    HurrayTensor *tensor, *out = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    uint8_t *blocks = aligned(144);
    tensor = blocks_tensor(hry_ggml_find(12), blocks, 1); /* Q4_K: its minimum is a float */
    assert_int_equal(hurray_tensor_from_ggml(tensor, NULL, &out, &error), HURRAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "Q4_K"));
    hurray_tensor_destroy(&tensor);
    tensor = blocks_tensor(hry_ggml_find(39), blocks, 0);
    assert_int_equal(hurray_tensor_from_ggml(tensor, NULL, &out, &error), HURRAY_ERR_UNSUPPORTED);
    hurray_tensor_destroy(&tensor);
    tensor = blocks_tensor(hry_ggml_find(8), blocks, 0);
    assert_int_equal(hurray_tensor_from_ggml(tensor, NULL, &out, &error), HURRAY_OK);
    hurray_tensor_destroy(&out);
    assert_int_equal(hurray_tensor_from_ggml(NULL, NULL, &out, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_tensor_from_ggml(tensor, NULL, NULL, NULL), HURRAY_ERR_NULL_POINTER);
    hurray_tensor_destroy(&tensor);
    HryGgmlType lie = *hry_ggml_find(8);
    lie.block_bytes = 35;
    tensor = blocks_tensor(&lie, blocks, 1);
    assert_int_equal(hurray_tensor_from_ggml(tensor, NULL, &out, &error), HURRAY_ERR_UNSUPPORTED);
    hurray_tensor_destroy(&tensor);
    free(blocks);
}

static void a_failing_allocation_leaves_nothing(void **state) {
    (void)state;
    FailAlloc alloc;
    uint8_t *blocks = aligned(2 * 66);
    hry_store_u16(blocks + 64, 0x3C00), hry_store_u16(blocks + 130, 0x3C00);
    HurrayTensor *tensor = blocks_tensor(hry_ggml_find(35), blocks, 2), *out = NULL;
    fail_alloc_init(&alloc);
    for (uint64_t k = 1;; k++) {
        HurrayError error = HURRAY_ERROR_INIT;
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hurray_tensor_from_ggml(tensor, &alloc.allocator, &out, &error);
        if (status == HURRAY_OK) break;
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        assert_null(out);
        fail_alloc_assert_empty(&alloc);
    }
    hurray_tensor_destroy(&out);
    fail_alloc_assert_empty(&alloc);
    hurray_tensor_destroy(&tensor);
    free(blocks);
}

static void the_vectors_keep_their_values(void **state) {
    (void)state;
    unsigned seen = 0;
    for (uint32_t number = 0; number < 50; number++) {
        const HryGgmlType *type = hry_ggml_find(number);
        if (!type || !hry_native_find(number)) continue;
        char path[400];
        snprintf(path, sizeof path, HURRAY_SOURCE_DIR "/../shared/vectors/ggml/%s.bin", type->name);
        FILE *file = fopen(path, "rb");
        if (!file) continue;
        uint8_t *blocks = aligned(1 << 20);
        size_t len = fread(blocks, 1, 1 << 20, file);
        fclose(file);
        snprintf(path, sizeof path, HURRAY_SOURCE_DIR "/../shared/vectors/ggml/%s.f32", type->name);
        file = fopen(path, "rb");
        assert_non_null(file);
        float *wanted = malloc(1 << 22), *found = malloc(1 << 22);
        size_t count = fread(wanted, 4, 1 << 20, file);
        fclose(file);
        uint64_t rows = len / type->block_bytes;
        assert_int_equal(rows * type->block_elements, count);
        for (uint64_t row = 0; row < rows; row++) { /* block by block: some hold scales that cannot be said */
            HurrayTensor *from = blocks_tensor(type, blocks, 1), *to = NULL;
            HurrayError error = HURRAY_ERROR_INIT;
            memmove(blocks, blocks + (row ? type->block_bytes : 0), len - row * type->block_bytes);
            if (hurray_tensor_from_ggml(from, NULL, &to, &error) == HURRAY_OK) {
                assert_int_equal(hurray_tensor_dense(to, HURRAY_TYPE_FLOAT32, found, type->block_elements * 4, &error), HURRAY_OK);
                for (uint32_t i = 0; i < type->block_elements; i++) assert_true(found[i] == wanted[row * type->block_elements + i]);
                hurray_tensor_destroy(&to);
                seen++;
            } else {
                assert_int_equal(error.code, HURRAY_ERR_INVALID_DATA);
            }
            hurray_tensor_destroy(&from);
        }
        free(wanted), free(found), free(blocks);
    }
    if (seen == 0) {
        print_message("skipped: the GGML vectors are not there\n");
        skip();
    }
    print_message("%u blocks compared\n", seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stay_the_same_as_numbers),
        cmocka_unit_test(q8_0_keeps_its_bytes_and_q4_0_is_repacked),
        cmocka_unit_test(scales_that_the_schemes_cannot_hold_are_refused),
        cmocka_unit_test(other_tensors_are_refused),
        cmocka_unit_test(a_failing_allocation_leaves_nothing),
        cmocka_unit_test(the_vectors_keep_their_values),
    };
    return cmocka_run_group_tests_name("import/native_quant", tests, NULL, NULL);
}
