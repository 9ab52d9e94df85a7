/* The dense view over tensors made by other hands: every manifest entry with dense_f32 of the streams. */
#include "format/dense.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <yajl/yajl_tree.h>

#include "base/alloc.h"
#include "base/endian.h"

#define VECTORS HURRAY_SOURCE_DIR "/../shared/vectors/pyhurray/"

static char *slurp(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size > 0);
    rewind(file);
    char *bytes = malloc((size_t)size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), (size_t)size);
    bytes[size] = 0;
    fclose(file);
    *len = (size_t)size;
    return bytes;
}

static yajl_val member(yajl_val object, const char *name) {
    const char *path[] = {name, NULL};
    return object ? yajl_tree_get(object, path, yajl_t_any) : NULL;
}

typedef struct Walk {
    const uint8_t *at;
    size_t left;
    unsigned compared, elements;
} Walk;

static const char *text_of(yajl_val v) {
    const char *text = v ? YAJL_GET_STRING(v) : NULL;
    return text ? text : "";
}

static float expected_value(yajl_val v) {
    if (YAJL_IS_NUMBER(v)) return strtof(YAJL_GET_NUMBER(v), NULL);
    return strtof(text_of(v), NULL);
}

static void compare(const HurrayDescriptor *descriptor, const HryBytes *buffers, yajl_val wanted, const char *name, Walk *walk) {
    HurrayError error;
    HryDense dense;
    uint64_t elements, bytes;
    hry_error_clear(&error);
    if (hry_dense_plan(descriptor, HURRAY_TYPE_FLOAT32, &elements, &bytes, &error) != HURRAY_OK) fail_msg("%s: %s", name, error.message);
    assert_int_equal(elements, wanted->u.array.len);
    assert_int_equal(bytes, 4 * elements);
    if (hry_dense_open(&dense, descriptor, buffers, HURRAY_TYPE_FLOAT32, &error) != HURRAY_OK) fail_msg("%s: %s", name, error.message);
    uint8_t *values = malloc(bytes ? bytes : 1), *pieces = malloc(bytes ? bytes : 1);
    assert_non_null(values);
    assert_non_null(pieces);
    if (hry_dense_stretch(&dense, 0, elements, values, &error) != HURRAY_OK) fail_msg("%s: %s", name, error.message);
    for (uint64_t at = 0, n; at < elements; at += n) {
        n = at % 7 + 1 < elements - at ? at % 7 + 1 : elements - at;
        assert_int_equal(hry_dense_stretch(&dense, at, n, pieces + 4 * at, &error), HURRAY_OK);
    }
    assert_memory_equal(values, pieces, bytes);
    for (uint64_t i = 0; i < elements; i++) {
        float want = expected_value(wanted->u.array.values[i]), got = hry_load_f32(values + 4 * i);
        if (want == 0 && got == 0) continue; /* the manifest does not tell -0 from 0 */
        if (memcmp(&want, &got, 4) != 0)
            fail_msg("%s element %llu: %a, expected %a", name, (unsigned long long)i, (double)got, (double)want);
    }
    free(values);
    free(pieces);
    walk->compared++;
    walk->elements += (unsigned)elements;
}

static void walk_item(Walk *walk, yajl_val item, const char *name) {
    HurrayAllocator allocator = hry_alloc_default();
    HurrayDescriptor *descriptor;
    HurrayError error;
    size_t used;
    hry_error_clear(&error);
    if (hry_descriptor_decode(walk->at, walk->left, 0, 0, &allocator, &used, &descriptor, &error) != HURRAY_OK)
        fail_msg("%s: %s", name, error.message);
    walk->at += used;
    walk->left -= used;
    HryBytes buffers[256];
    for (uint32_t i = 0; i < descriptor->buffer_count; i++) {
        uint64_t size = descriptor->buffers[i].byte_size;
        uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees a byte too many */
        assert_non_null(exact);
        assert_true(size <= walk->left);
        memcpy(exact, walk->at, size);
        buffers[i] = (HryBytes){exact, size};
        walk->at += size;
        walk->left -= size;
    }
    yajl_val wanted = member(item, "dense_f32"), members = member(item, "members");
    if (wanted && !hry_descriptor_is_head(descriptor)) compare(descriptor, buffers, wanted, name, walk);
    for (uint32_t i = 0; i < descriptor->buffer_count; i++) free((void *)(uintptr_t)buffers[i].data);
    hry_descriptor_unref(descriptor);
    for (size_t i = 0; members && i < members->u.array.len; i++) walk_item(walk, members->u.array.values[i], name);
}

static void float32_of_every_vector_is_bit_exact(void **state) {
    (void)state;
    size_t len;
    char *text = slurp(VECTORS "manifest.json", &len), message[256];
    if (!text) {
        print_message("skipped: no vectors at " VECTORS "\n");
        skip();
    }
    yajl_val manifest = yajl_tree_parse(text, message, sizeof message), files = member(manifest, "files");
    assert_non_null(files);
    Walk total = {0};
    for (size_t f = 0; f < files->u.array.len; f++) {
        yajl_val file = files->u.array.values[f], items = member(file, "items");
        const char *name = text_of(member(file, "file"));
        if (strcmp(text_of(member(file, "kind")), "stream") != 0 || !items) continue;
        char path[512];
        snprintf(path, sizeof path, VECTORS "%s", name);
        char *bytes = slurp(path, &len);
        assert_non_null(bytes);
        Walk walk = {(const uint8_t *)bytes, len, 0, 0};
        for (size_t i = 0; i < items->u.array.len; i++) walk_item(&walk, items->u.array.values[i], name);
        assert_int_equal(walk.left, 0);
        total.compared += walk.compared;
        total.elements += walk.elements;
        free(bytes);
    }
    print_message("%u tensors, %u elements compared\n", total.compared, total.elements);
    assert_true(total.compared >= 29);
    yajl_tree_free(manifest);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(float32_of_every_vector_is_bit_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
