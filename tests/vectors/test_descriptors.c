/* Descriptors made by others: what the corpora say of them, and the same bytes again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <yajl/yajl_tree.h>

#include "format/element.h"
#include "support/descriptors.h"

#define VECTORS HURRAY_SOURCE_DIR "/../shared/vectors/"

static uint8_t *read_whole(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc((size_t)size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), size);
    fclose(file);
    bytes[size] = 0;
    *len = (size_t)size;
    return bytes;
}

static yajl_val read_manifest(const char *folder) {
    char path[512], message[256];
    size_t len;
    snprintf(path, sizeof path, VECTORS "%s/manifest.json", folder);
    uint8_t *text = read_whole(path, &len);
    if (!text) {
        print_message("skipped: %s is not there\n", path);
        return NULL;
    }
    yajl_val tree = yajl_tree_parse((const char *)text, message, sizeof message);
    free(text);
    if (!tree) print_error("%s: %s\n", path, message);
    assert_non_null(tree);
    return tree;
}

static yajl_val member(yajl_val object, const char *name) {
    const char *path[] = {name, NULL};
    return yajl_tree_get(object, path, yajl_t_any);
}

static long long number(yajl_val object, const char *name) {
    yajl_val value = member(object, name);
    assert_true(YAJL_IS_INTEGER(value));
    return YAJL_GET_INTEGER(value);
}

/* ---- the reference corpus ---- */

static void compare_with_expectation(const HurrayDescriptor *d, const uint8_t *bytes, yajl_val expect) {
    yajl_val shape = member(expect, "shape"), sizes = member(expect, "buffer_byte_sizes");
    assert_int_equal(bytes[4], number(expect, "version_major"));
    assert_int_equal(d->version_minor, number(expect, "version_minor"));
    assert_int_equal(d->element_type, number(expect, "element_type_tag"));
    assert_string_equal(hry_element_name(d->element_type), YAJL_GET_STRING(member(expect, "element_type")));
    assert_int_equal(d->byte_offset, number(expect, "byte_offset"));
    assert_int_equal(d->layout_tag, number(expect, "layout_tag"));
    assert_int_equal(d->rank, YAJL_GET_ARRAY(shape)->len);
    for (size_t k = 0; k < d->rank; k++) assert_int_equal(d->shape[k], YAJL_GET_INTEGER(YAJL_GET_ARRAY(shape)->values[k]));
    assert_int_equal(d->buffer_count, YAJL_GET_ARRAY(sizes)->len);
    for (size_t i = 0; i < d->buffer_count; i++)
        assert_int_equal(d->buffers[i].byte_size, YAJL_GET_INTEGER(YAJL_GET_ARRAY(sizes)->values[i]));
    assert_int_equal(d->has_quantization, YAJL_IS_TRUE(member(expect, "has_quantization")));
    assert_int_equal(d->has_shard, YAJL_IS_TRUE(member(expect, "has_shard")));
}

static void the_reference_descriptors_are_what_their_manifest_says(void **state) {
    (void)state;
    yajl_val tree = read_manifest("reference");
    if (!tree) skip();
    yajl_val list = member(tree, "descriptors");
    assert_true(YAJL_IS_ARRAY(list) && YAJL_GET_ARRAY(list)->len > 0);
    for (size_t i = 0; i < YAJL_GET_ARRAY(list)->len; i++) {
        yajl_val entry = YAJL_GET_ARRAY(list)->values[i];
        char path[512];
        size_t len;
        snprintf(path, sizeof path, VECTORS "reference/%s", YAJL_GET_STRING(member(entry, "file")));
        uint8_t *bytes = read_whole(path, &len);
        assert_non_null(bytes);
        HurrayDescriptor *d = descriptor_must_decode(bytes, len);
        compare_with_expectation(d, bytes, member(entry, "expect"));
        hry_descriptor_unref(d);
        free(bytes);
    }
    yajl_tree_free(tree);
}

/* ---- the other corpora ---- */

static unsigned nibble(char c) { return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10); }

static void accept_hex(const char *hex) {
    size_t len = strlen(hex) / 2;
    uint8_t *bytes = malloc(len);
    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++) bytes[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
    hry_descriptor_unref(descriptor_must_decode(bytes, len));
    for (size_t cut = 0; cut < len; cut++) { /* no beginning of it is a descriptor */
        HurrayDescriptor *d = NULL;
        HurrayError error = HURRAY_ERROR_INIT;
        uint8_t *exact = malloc(cut ? cut : 1);
        assert_non_null(exact);
        memcpy(exact, bytes, cut);
        assert_int_equal(hurray_descriptor_decode_ex(exact, cut, NULL, NULL, &d, &error), HURRAY_ERR_TRUNCATED);
        assert_true(error.message[0]);
        free(exact);
    }
    free(bytes);
}

/* Every "descriptor_hex" anywhere in the tree. */
static size_t accept_all(yajl_val value) {
    size_t found = 0;
    if (YAJL_IS_ARRAY(value))
        for (size_t i = 0; i < YAJL_GET_ARRAY(value)->len; i++) found += accept_all(YAJL_GET_ARRAY(value)->values[i]);
    if (!YAJL_IS_OBJECT(value)) return found;
    for (size_t i = 0; i < YAJL_GET_OBJECT(value)->len; i++) {
        yajl_val inner = YAJL_GET_OBJECT(value)->values[i];
        if (strcmp(YAJL_GET_OBJECT(value)->keys[i], "descriptor_hex") == 0) {
            accept_hex(YAJL_GET_STRING(inner));
            found++;
        } else {
            found += accept_all(inner);
        }
    }
    return found;
}

static void accept_folder(const char *folder) {
    yajl_val tree = read_manifest(folder);
    if (!tree) skip();
    assert_true(accept_all(tree) > 0);
    yajl_tree_free(tree);
}

static void what_the_public_package_wrote_encodes_to_the_same_bytes(void **state) {
    (void)state;
    accept_folder("pyhurray");
}

static void what_was_made_by_hand_encodes_to_the_same_bytes(void **state) {
    (void)state;
    accept_folder("handmade");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_descriptors_are_what_their_manifest_says),
        cmocka_unit_test(what_the_public_package_wrote_encodes_to_the_same_bytes),
        cmocka_unit_test(what_was_made_by_hand_encodes_to_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
