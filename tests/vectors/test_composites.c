/* Composites that other programs wrote: their views are the numbers that those programs calculated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hurray.h"
#include "hurray/dense.h"
#include "hurray/transport.h"

#define VECTORS HURRAY_SOURCE_DIR "/../shared/vectors/"

typedef struct Want {
    const char *name;
    uint64_t nodes;
    size_t elements; /* 0: a group, without a view */
    float values[20];
} Want;

static const Want wants[] = {
    {"composite.partition", 3, 20, {0, 100, 101, 102, 1, 103, 104, 105, 2, 106, 107, 108, 3, 109, 110, 111, 4, 112, 113, 114}},
    {"composite.partition.reversed", 3, 20, {0, 100, 101, 102, 1, 103, 104, 105, 2, 106, 107, 108, 3, 109, 110, 111, 4, 112, 113, 114}},
    {"composite.overlay.replace", 4, 20, {0, 1, 2000, 3, 4, 5, 2001, 7, 8, 9, 10, 11, 1000, 1001, 14, 15, 16, 17, 18, 19}},
    {"composite.overlay.add", 4, 20, {0, 1, 2002, 3, 4, 5, 2007, 7, 8, 9, 10, 11, 1012, 1014, 14, 15, 16, 17, 18, 19}},
    {"composite.group", 4, 0, {0}},
    {"composite.group.empty", 1, 0, {0}},
    {"composite.nested", 6, 0, {0}},
    {"composite.partition.mixed", 3, 8, {5, 10, 7, 8, 15, 20, 9, 10}},
    {"composite.partition.many", 40, 39, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
};

static void check_item(const HurrayItem *item, const Want *want) {
    uint64_t count = 0, bytes = 0;
    HurrayItemNode root;
    const HurrayDescriptor *head = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
    assert_int_equal(count, want->nodes);
    assert_int_equal(hurray_item_node(item, 0, &root), HURRAY_OK);
    assert_int_equal(root.kind, HURRAY_NODE_COMPOSITE);
    assert_int_equal(hurray_tensor_descriptor(root.tensor, &head), HURRAY_OK);
    if (want->elements == 0) {
        assert_int_equal(hurray_dense_size(head, HURRAY_TYPE_FLOAT32, &bytes, &error), HURRAY_ERR_UNSUPPORTED);
        return;
    }
    assert_int_equal(hurray_dense_size(head, HURRAY_TYPE_FLOAT32, &bytes, &error), HURRAY_OK);
    assert_int_equal(bytes, want->elements * sizeof(float));
    float *values = malloc(bytes);
    assert_non_null(values);
    if (hurray_item_dense(item, 0, HURRAY_TYPE_FLOAT32, values, bytes, &error) != HURRAY_OK) fail_msg("%s", error.message);
    for (size_t i = 0; i < want->elements; i++) {
        float wanted = i < 20 ? want->values[i] : (float)i;
        if (values[i] != wanted) fail_msg("%s: element %zu is %g, wanted %g", want->name, i, (double)values[i], (double)wanted);
    }
    free(values);
}

static void check_file(const char *path, size_t least) {
    HurrayTransport transport;
    HurrayFileReader *reader = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    size_t found = 0;
    if (access(path, R_OK) != 0) {
        print_message("skipped: %s is not there\n", path);
        skip();
    }
    assert_int_equal(hurray_transport_file(path, NULL, &transport, &error), HURRAY_OK);
    if (hurray_file_reader_new_ex(&transport, NULL, &reader, &error) != HURRAY_OK) fail_msg("%s: %s", path, error.message);
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        HurrayItem *item = NULL;
        HurrayStatus status = hurray_file_reader_read_composite(reader, wants[i].name, strlen(wants[i].name), &item);
        if (status == HURRAY_ERR_NOT_FOUND) continue;
        if (status != HURRAY_OK) fail_msg("%s: %s", wants[i].name, hurray_file_reader_last_error(reader)->message);
        check_item(item, &wants[i]);
        hurray_item_destroy(&item);
        found++;
    }
    assert_true(found >= least);
    hurray_file_reader_destroy(&reader);
}

static void composites_of_the_public_writer_have_its_values(void **state) {
    (void)state;
    check_file(VECTORS "pyhurray/composites.hrry", 9);
}

static void no_padding_behind_a_head_is_no_difference(void **state) {
    (void)state;
    check_file(VECTORS "handmade/composites-no-padding.hrry", 1);
}

static void a_sorted_index_is_no_difference(void **state) {
    (void)state;
    check_file(VECTORS "handmade/composites-sorted.hrry", 1);
}

static void a_stream_has_the_same_items_in_order(void **state) {
    (void)state;
    const char *path = VECTORS "pyhurray/composites.stream";
    HurrayTransport transport;
    HurrayReader *reader = NULL;
    HurrayItem *item = NULL;
    if (access(path, R_OK) != 0) {
        print_message("skipped: %s is not there\n", path);
        skip();
    }
    assert_int_equal(hurray_transport_file(path, NULL, &transport, NULL), HURRAY_OK);
    assert_int_equal(hurray_reader_new(&transport, NULL, &reader), HURRAY_OK);
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        if (hurray_reader_next_item(reader, &item) != HURRAY_OK) fail_msg("%s", hurray_reader_last_error(reader)->message);
        check_item(item, &wants[i]);
        hurray_item_destroy(&item);
    }
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_END_OF_STREAM);
    hurray_reader_destroy(&reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(composites_of_the_public_writer_have_its_values),
        cmocka_unit_test(no_padding_behind_a_head_is_no_difference),
        cmocka_unit_test(a_sorted_index_is_no_difference),
        cmocka_unit_test(a_stream_has_the_same_items_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
