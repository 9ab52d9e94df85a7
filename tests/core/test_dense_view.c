#include "hurray/dense.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "core/tensor.h"
#include "support/contents.h"
#include "support/fail_alloc.h"

static void let_go(void *data, void *context) {
    (void)context;
    free(data);
}

/* A tensor over the contents, which it takes over. elsewhere: the buffers claim to be on a GPU. */
static HurrayTensor *tensor_of(Contents *contents, bool elsewhere) {
    HurrayBuffer *buffers[CONTENTS_MAX];
    HurrayTensor *tensor;
    HurrayError error;
    HurrayAllocator allocator = hry_alloc_default();
    uint32_t count = contents->descriptor->buffer_count;
    for (uint32_t i = 0; i < count; i++) {
        void *aligned = aligned_alloc(64, (contents->bytes[i].size + 64) / 64 * 64);
        assert_non_null(aligned);
        memcpy(aligned, contents->bytes[i].data, contents->bytes[i].size);
        HurrayBufferInfo info = HURRAY_BUFFER_INFO_INIT;
        info.data = aligned;
        info.byte_size = contents->bytes[i].size;
        info.alignment = 64;
        info.device_tag = elsewhere ? HURRAY_DEVICE_CUDA : HURRAY_DEVICE_CPU;
        info.release = let_go;
        if (hry_buffer_new(&info, &allocator, &buffers[i], &error) != HURRAY_OK) fail_msg("%s", error.message);
    }
    assert_int_equal(hry_tensor_assemble(contents->descriptor, buffers, count, &allocator, &tensor, &error), HURRAY_OK);
    contents->descriptor = NULL;
    contents_free(contents);
    return tensor;
}

static HurrayTensor *matrix(bool elsewhere) {
    static const uint64_t shape[] = {2, 3};
    static const int16_t values[] = {1, -2, 3, -4, 5, -6};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COLUMN_MAJOR);
    Contents contents;
    contents_make(&contents, &(ContentsSpec){
                                 .type = HURRAY_TYPE_INT16, .rank = 2, .shape = shape, .layout = &layout, .sizes = {12}, .data = {values}});
    return tensor_of(&contents, elsewhere);
}

static void a_tensor_gives_its_elements_row_by_row(void **state) {
    (void)state;
    HurrayTensor *tensor = matrix(false);
    const HurrayDescriptor *descriptor;
    uint64_t bytes;
    int16_t own[6];
    float values[7] = {0, 0, 0, 0, 0, 0, 99};
    static const int16_t want[] = {1, 3, 5, -2, -4, -6};
    assert_int_equal(hurray_tensor_descriptor(tensor, &descriptor), HURRAY_OK);
    assert_int_equal(hurray_dense_size(descriptor, 0, &bytes, NULL), HURRAY_OK);
    assert_int_equal(bytes, 12);
    assert_int_equal(hurray_dense_size(descriptor, HURRAY_TYPE_FLOAT32, &bytes, NULL), HURRAY_OK);
    assert_int_equal(bytes, 24);
    assert_int_equal(hurray_tensor_dense(tensor, 0, own, sizeof own, NULL), HURRAY_OK);
    assert_memory_equal(own, want, sizeof own);
    assert_int_equal(hurray_tensor_dense(tensor, HURRAY_TYPE_FLOAT32, values, sizeof values, NULL), HURRAY_OK);
    for (int i = 0; i < 6; i++) assert_true(values[i] == want[i]);
    assert_true(values[6] == 99);
    hurray_tensor_destroy(&tensor);
}

static void one_element_is_found_by_its_index(void **state) {
    (void)state;
    HurrayTensor *tensor = matrix(false);
    HurrayError error = HURRAY_ERROR_INIT;
    const uint64_t index[] = {1, 2}, outside[] = {1, 3};
    int16_t own;
    float value;
    assert_int_equal(hurray_tensor_element(tensor, index, 2, 0, &own, sizeof own, NULL), HURRAY_OK);
    assert_int_equal(own, -6);
    assert_int_equal(hurray_tensor_element(tensor, index, 2, HURRAY_TYPE_FLOAT32, &value, sizeof value, &error), HURRAY_OK);
    assert_true(value == -6);
    assert_int_equal(hurray_tensor_element(tensor, outside, 2, 0, &own, sizeof own, &error), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_string_equal(error.field, "index");
    assert_int_equal(hurray_tensor_element(tensor, index, 1, 0, &own, sizeof own, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_tensor_element(tensor, index, 2, 0, &own, 1, &error), HURRAY_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(hurray_tensor_element(tensor, index, 2, HURRAY_TYPE_FLOAT16, &own, 2, &error), HURRAY_ERR_UNSUPPORTED);
    hurray_tensor_destroy(&tensor);
}

static void a_scalar_needs_no_index_and_small_types_one_byte(void **state) {
    (void)state;
    Contents contents;
    uint8_t code;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT6_E2M3, .sizes = {3}, .data = {"\x2A\x00\x00"}});
    HurrayTensor *tensor = tensor_of(&contents, false);
    assert_int_equal(hurray_tensor_element(tensor, NULL, 0, 0, &code, 1, NULL), HURRAY_OK);
    assert_int_equal(code, 0x2A);
    hurray_tensor_destroy(&tensor);
}

static void room_that_is_too_small_is_refused_with_what_is_needed(void **state) {
    (void)state;
    HurrayTensor *tensor = matrix(false);
    HurrayError error = HURRAY_ERROR_INIT;
    float values[6];
    assert_int_equal(hurray_tensor_dense(tensor, HURRAY_TYPE_FLOAT32, values, 23, &error), HURRAY_ERR_BUFFER_TOO_SMALL);
    assert_non_null(strstr(error.message, "24"));
    hurray_tensor_destroy(&tensor);
}

static void device_memory_is_refused(void **state) {
    (void)state;
    HurrayTensor *tensor = matrix(true);
    HurrayError error = HURRAY_ERROR_INIT;
    const uint64_t index[] = {0, 0};
    float values[6];
    assert_int_equal(hurray_tensor_dense(tensor, HURRAY_TYPE_FLOAT32, values, sizeof values, &error), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(error.buffer_index, 0);
    assert_int_equal(hurray_tensor_element(tensor, index, 2, 0, values, sizeof values, &error), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(hurray_tensor_verify(tensor, &error), HURRAY_ERR_UNSUPPORTED);
    hurray_tensor_destroy(&tensor);
}

static void null_pointers_are_named(void **state) {
    (void)state;
    HurrayTensor *tensor = matrix(false);
    HurrayError error = HURRAY_ERROR_INIT;
    const uint64_t index[] = {0, 0};
    const HurrayDescriptor *descriptor;
    uint64_t bytes;
    uint8_t out[24];
    hurray_tensor_descriptor(tensor, &descriptor);
    assert_int_equal(hurray_dense_size(NULL, 0, &bytes, &error), HURRAY_ERR_NULL_POINTER);
    assert_string_equal(error.field, "descriptor");
    assert_int_equal(hurray_dense_size(descriptor, 0, NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_dense_size(descriptor, HURRAY_TYPE_BOOL, &bytes, &error), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(hurray_tensor_dense(NULL, 0, out, 24, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_tensor_dense(tensor, 0, NULL, 24, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_tensor_element(NULL, index, 2, 0, out, 24, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_tensor_element(tensor, NULL, 2, 0, out, 24, &error), HURRAY_ERR_NULL_POINTER);
    assert_string_equal(error.field, "index");
    assert_int_equal(hurray_tensor_element(tensor, index, 2, 0, NULL, 24, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_tensor_verify(NULL, &error), HURRAY_ERR_NULL_POINTER);
    hurray_tensor_destroy(&tensor);
}

static void an_empty_tensor_needs_no_room(void **state) {
    (void)state;
    const uint64_t shape[] = {0, 3};
    Contents contents;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT16, .rank = 2, .shape = shape, .sizes = {0}});
    HurrayTensor *tensor = tensor_of(&contents, false);
    assert_int_equal(hurray_tensor_dense(tensor, 0, NULL, 0, NULL), HURRAY_OK);
    assert_int_equal(hurray_tensor_verify(tensor, NULL), HURRAY_OK);
    hurray_tensor_destroy(&tensor);
}

static HurrayTensor *sparse(const uint64_t *indices) {
    static const uint64_t shape[] = {4, 5};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COO);
    Contents contents;
    layout.nnz = 2;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT4,
                                             .rank = 2,
                                             .shape = shape,
                                             .layout = &layout,
                                             .buffer_count = 2,
                                             .sizes = {1, 32},
                                             .data = {"\x21", indices}});
    return tensor_of(&contents, false);
}

static void verify_tells_the_first_broken_rule(void **state) {
    (void)state;
    static const uint64_t good[] = {3, 4, 0, 0}, twice[] = {3, 4, 3, 4}, far[] = {3, 5, 0, 0};
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayTensor *tensor = sparse(good);
    assert_int_equal(hurray_tensor_verify(tensor, &error), HURRAY_OK);
    hurray_tensor_destroy(&tensor);
    tensor = sparse(twice);
    assert_int_equal(hurray_tensor_verify(tensor, &error), HURRAY_ERR_INVALID_DATA);
    assert_string_equal(error.field, "indices");
    assert_int_equal(error.buffer_index, 1);
    hurray_tensor_destroy(&tensor);
    tensor = sparse(far);
    assert_int_equal(hurray_tensor_verify(tensor, NULL), HURRAY_ERR_INVALID_DATA);
    float values[20];
    assert_int_equal(hurray_tensor_dense(tensor, HURRAY_TYPE_FLOAT32, values, sizeof values, &error), HURRAY_ERR_INVALID_DATA);
    hurray_tensor_destroy(&tensor);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_gives_its_elements_row_by_row),
        cmocka_unit_test(one_element_is_found_by_its_index),
        cmocka_unit_test(a_scalar_needs_no_index_and_small_types_one_byte),
        cmocka_unit_test(room_that_is_too_small_is_refused_with_what_is_needed),
        cmocka_unit_test(device_memory_is_refused),
        cmocka_unit_test(null_pointers_are_named),
        cmocka_unit_test(an_empty_tensor_needs_no_room),
        cmocka_unit_test(verify_tells_the_first_broken_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
