#include "core/composite_assembler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hurray/core.h"
#include "support/composites.h"
#include "support/fail_alloc.h"

#define F32 HURRAY_TYPE_FLOAT32
#define DIMS(...) ((const uint64_t[]){__VA_ARGS__})

static HurrayTensor *group(uint32_t members) {
    return make_tensor(make_head(HURRAY_RULE_GROUP, 0, F32, 1, DIMS(4), members, NULL, NULL), NULL);
}
static HurrayTensor *halves(void) { return make_tensor(make_head(HURRAY_RULE_PARTITION, 0, F32, 1, DIMS(4), 2, NULL, NULL), NULL); }
static HurrayTensor *half(uint64_t offset) {
    return make_tensor(make_member(F32, 1, DIMS(2), DIMS(4), (const uint64_t[]){offset}, NO_ROLE), NULL);
}

static void push_open(HurrayCompositeAssembler *assembler, HurrayTensor *tensor) {
    HurrayItem *item = NULL;
    if (hurray_composite_assembler_push(assembler, &tensor, &item) != HURRAY_OK)
        fail_msg("%s", hurray_composite_assembler_last_error(assembler)->message);
    assert_null(tensor);
    assert_null(item);
}

static HurrayItem *push_last(HurrayCompositeAssembler *assembler, HurrayTensor *tensor) {
    HurrayItem *item = NULL;
    assert_int_equal(hurray_composite_assembler_push(assembler, &tensor, &item), HURRAY_OK);
    assert_null(tensor);
    assert_non_null(item);
    return item;
}

static HurrayCompositeAssembler *new_assembler(uint32_t depth) {
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    HurrayCompositeAssembler *assembler = NULL;
    options.max_composite_depth = depth;
    assert_int_equal(hurray_composite_assembler_new(&options, &assembler, NULL), HURRAY_OK);
    return assembler;
}

static void a_nested_composite_comes_out_in_preorder_with_parents(void **state) {
    (void)state;
    static const struct {
        uint32_t kind, members;
        uint64_t parent;
    } want[] = {{HURRAY_NODE_COMPOSITE, 3, HURRAY_NONE}, {HURRAY_NODE_COMPOSITE, 2, 0}, {HURRAY_NODE_TENSOR, 0, 1}, {HURRAY_NODE_TENSOR, 0, 1},
                {HURRAY_NODE_COMPOSITE, 0, 0},           {HURRAY_NODE_TENSOR, 0, 0}};
    HurrayCompositeAssembler *assembler = new_assembler(0);
    push_open(assembler, group(3));
    push_open(assembler, halves());
    push_open(assembler, half(2));
    push_open(assembler, half(0));
    push_open(assembler, group(0));
    HurrayItem *item = push_last(assembler, half(0));
    uint64_t count = 0;
    assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
    assert_int_equal(count, 6);
    for (uint64_t i = 0; i < count; i++) {
        HurrayItemNode node;
        assert_int_equal(hurray_item_node(item, i, &node), HURRAY_OK);
        assert_int_equal(node.kind, want[i].kind);
        assert_int_equal(node.member_count, want[i].members);
        assert_int_equal(node.parent, want[i].parent);
        assert_non_null(node.tensor);
        assert_null(node.name);
    }
    hurray_item_destroy(&item);
    item = push_last(assembler, half(0));
    assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
    assert_int_equal(count, 1);
    hurray_item_destroy(&item);
    assert_int_equal(hurray_composite_assembler_end(assembler), HURRAY_OK);
    hurray_composite_assembler_destroy(&assembler);
    assert_null(assembler);
}

static void a_refused_tensor_stays_with_the_caller_and_the_next_begins_anew(void **state) {
    (void)state;
    HurrayCompositeAssembler *assembler = new_assembler(2);
    HurrayItem *item = NULL;
    HurrayTensor *tensor = half(0);
    push_open(assembler, halves());
    push_open(assembler, half(0));
    assert_int_equal(hurray_composite_assembler_push(assembler, &tensor, &item), HURRAY_ERR_INVALID_LAYOUT);
    assert_non_null(tensor);
    assert_null(item);
    assert_int_equal(hurray_composite_assembler_last_error(assembler)->code, HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hurray_composite_assembler_end(assembler), HURRAY_OK); /* nothing is open */
    item = push_last(assembler, tensor);
    hurray_item_destroy(&item);
    push_open(assembler, group(1));
    push_open(assembler, group(1));
    tensor = group(0);
    assert_int_equal(hurray_composite_assembler_push(assembler, &tensor, &item), HURRAY_ERR_TOO_DEEP);
    hurray_tensor_destroy(&tensor);
    push_open(assembler, group(1));
    hurray_composite_assembler_destroy(&assembler);
}

static void an_input_that_ends_early_is_torn(void **state) {
    (void)state;
    HurrayCompositeAssembler *assembler = new_assembler(0);
    push_open(assembler, group(UINT32_MAX - 1));
    push_open(assembler, half(0));
    assert_int_equal(hurray_composite_assembler_end(assembler), HURRAY_ERR_TORN_COMPOSITE);
    assert_non_null(strstr(hurray_composite_assembler_last_error(assembler)->message, "after 1 of the 4294967294"));
    assert_int_equal(hurray_composite_assembler_end(assembler), HURRAY_OK);
    hurray_composite_assembler_destroy(&assembler);
}

static void a_hostile_count_takes_no_memory(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    HurrayCompositeAssembler *assembler = NULL;
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    assert_int_equal(hurray_composite_assembler_new(&options, &assembler, NULL), HURRAY_OK);
    for (int depth = 0; depth < 64; depth++) push_open(assembler, group(UINT32_MAX - 1));
    assert_true(alloc.peak_bytes < 65536);
    hurray_composite_assembler_destroy(&assembler);
    fail_alloc_assert_empty(&alloc);
}

static void after_no_memory_the_same_tensor_is_pushed_again(void **state) {
    (void)state;
    HurrayError error = HURRAY_ERROR_INIT;
    bool finished = false;
    for (uint64_t k = 1; !finished; k++) {
        FailAlloc alloc;
        HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
        HurrayCompositeAssembler *assembler = NULL;
        HurrayItem *item = NULL;
        uint64_t count = 0;
        fail_alloc_init(&alloc);
        fail_alloc_arm(&alloc, k, 0);
        options.allocator = &alloc.allocator;
        if (hurray_composite_assembler_new(&options, &assembler, &error) != HURRAY_OK) {
            assert_int_equal(error.code, HURRAY_ERR_NO_MEMORY);
            continue;
        }
        HurrayTensor *tensors[] = {group(2), halves(), half(0), half(2), group(0)};
        bool failed = false;
        for (int i = 0; i < 5; i++) {
            HurrayStatus status = hurray_composite_assembler_push(assembler, &tensors[i], &item);
            if (status != HURRAY_OK) {
                assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
                assert_false(failed);
                failed = true;
                assert_int_equal(hurray_composite_assembler_push(assembler, &tensors[i], &item), HURRAY_OK);
            }
        }
        finished = !failed;
        assert_non_null(item);
        assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
        assert_int_equal(count, 5);
        hurray_item_destroy(&item);
        hurray_composite_assembler_destroy(&assembler);
        fail_alloc_assert_empty(&alloc);
    }
}

static void wrong_use_is_named(void **state) {
    (void)state;
    HurrayCompositeAssembler *assembler = NULL;
    HurrayItem *item = NULL;
    HurrayTensor *tensor = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    assert_int_equal(hurray_composite_assembler_new(&options, NULL, &error), HURRAY_ERR_NULL_POINTER);
    options.max_composite_depth = 65;
    assert_int_equal(hurray_composite_assembler_new(&options, &assembler, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "max_composite_depth");
    options.struct_size = 4;
    assert_int_equal(hurray_composite_assembler_new(&options, &assembler, NULL), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_composite_assembler_new(NULL, &assembler, NULL), HURRAY_OK);
    assert_int_equal(hurray_composite_assembler_push(assembler, &tensor, &item), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_composite_assembler_push(assembler, NULL, &item), HURRAY_ERR_NULL_POINTER);
    tensor = group(0);
    assert_int_equal(hurray_composite_assembler_push(assembler, &tensor, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_composite_assembler_push(NULL, &tensor, &item), HURRAY_ERR_NULL_POINTER);
    hurray_tensor_destroy(&tensor);
    assert_int_equal(hurray_composite_assembler_end(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_composite_assembler_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    assert_null(hurray_composite_assembler_last_error(NULL));
    assert_int_equal(hurray_composite_assembler_destroy(&assembler), HURRAY_OK);
    assert_int_equal(hurray_composite_assembler_destroy(&assembler), HURRAY_OK);
}

static void names_and_the_early_test_serve_files(void **state) {
    (void)state;
    FailAlloc alloc;
    HryAssembler assembler;
    HurrayError error;
    HurrayItem *item = NULL;
    fail_alloc_init(&alloc);
    hry_assembler_init(&assembler, &alloc.allocator, 64);
    HurrayTensor *head = halves(), *left = half(0), *right = half(2);
    assert_int_equal(hry_assembler_test(&assembler, hry_tensor_descriptor(head), &error), HURRAY_OK);
    assert_int_equal(hry_assembler_push(&assembler, &head, (const uint8_t *)"w", 1, &item, &error), HURRAY_OK);
    assert_true(hry_assembler_is_open(&assembler));
    assert_int_equal(hry_assembler_push(&assembler, &left, (const uint8_t *)"w.0", 3, &item, &error), HURRAY_OK);
    assert_int_equal(hry_assembler_test(&assembler, hry_tensor_descriptor(right), &error), HURRAY_OK);
    assert_int_equal(hry_assembler_push(&assembler, &right, (const uint8_t *)"w.1", 3, &item, &error), HURRAY_OK);
    assert_non_null(item);
    assert_memory_equal(hry_item_at(item, 2)->name, "w.1", 3);
    assert_int_equal(hry_item_at(item, 2)->name_len, 3);
    hurray_item_destroy(&item);
    assert_int_equal(hry_assembler_end(&assembler, &error), HURRAY_OK);
    hry_assembler_clear(&assembler);
    fail_alloc_assert_empty(&alloc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nested_composite_comes_out_in_preorder_with_parents),
        cmocka_unit_test(a_refused_tensor_stays_with_the_caller_and_the_next_begins_anew),
        cmocka_unit_test(an_input_that_ends_early_is_torn),
        cmocka_unit_test(a_hostile_count_takes_no_memory),
        cmocka_unit_test(after_no_memory_the_same_tensor_is_pushed_again),
        cmocka_unit_test(wrong_use_is_named),
        cmocka_unit_test(names_and_the_early_test_serve_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
