#include "core/composite_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/composites.h"
#include "support/fail_alloc.h"

#define F32 HURRAY_TYPE_FLOAT32
#define DIMS(...) ((const uint64_t[]){__VA_ARGS__})
#define MOST 200

/* A node array that owns its descriptors; every tensor has the same bytes. */
typedef struct Nodes {
    HurrayCompositeNode nodes[MOST];
    HurrayIoSlice slices[MOST];
    size_t count;
} Nodes;

static const uint8_t bytes[4096];

static void add(Nodes *nodes, HurrayDescriptor *descriptor, const char *name) {
    HurrayCompositeNode *node = &nodes->nodes[nodes->count];
    bool is_head = hry_descriptor_is_head(descriptor);
    memset(node, 0, sizeof *node);
    node->kind = is_head ? HURRAY_NODE_COMPOSITE : HURRAY_NODE_TENSOR;
    node->member_count = is_head ? descriptor->layout.member_count : 0;
    node->name = name;
    node->name_len = name ? strlen(name) : 0;
    node->descriptor = descriptor;
    if (!is_head) {
        nodes->slices[nodes->count] = (HurrayIoSlice){bytes, (size_t)descriptor->buffers[0].byte_size};
        node->slices = &nodes->slices[nodes->count];
        node->slice_count = 1;
    }
    nodes->count++;
}

static void clear(Nodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++) hurray_descriptor_destroy((HurrayDescriptor *)(uintptr_t)nodes->nodes[i].descriptor);
    nodes->count = 0;
}

static HurrayDescriptor *group(uint32_t members) { return make_head(HURRAY_RULE_GROUP, 0, F32, 1, DIMS(4), members, NULL, NULL); }
static HurrayDescriptor *plain(void) { return make_member(F32, 1, DIMS(4), NULL, NULL, NO_ROLE); }
static HurrayDescriptor *half(uint64_t offset) { return make_member(F32, 1, DIMS(2), DIMS(4), (const uint64_t[]){offset}, NO_ROLE); }
static HurrayDescriptor *halves(void) { return make_head(HURRAY_RULE_PARTITION, 0, F32, 1, DIMS(4), 2, NULL, NULL); }

static HurrayStatus check_nodes(const Nodes *nodes, HurrayError *error) {
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    hry_error_clear(error);
    HurrayStatus status = hry_tree_check_nodes(nodes->nodes, nodes->count, HRY_MAX_COMPOSITE_DEPTH, &alloc.allocator, error);
    fail_alloc_assert_empty(&alloc);
    if (status != HURRAY_OK) assert_true(error->message[0] != 0 && error->code == status);
    return status;
}

/* group(3): partition(2 halves), tensor, group(0) */
static void fill_small(Nodes *nodes) {
    nodes->count = 0;
    add(nodes, group(3), "w");
    add(nodes, halves(), NULL);
    add(nodes, half(2), "right");
    add(nodes, half(0), NULL);
    add(nodes, plain(), NULL);
    add(nodes, group(0), NULL);
}

static void a_whole_tree_is_accepted_and_every_flaw_is_named(void **state) {
    (void)state;
    static Nodes nodes;
    HurrayError error;
    fill_small(&nodes);
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_OK);

    nodes.count = 5; /* cut */
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_non_null(strstr(error.message, "2 of its 3 members"));
    nodes.count = 6;
    add(&nodes, plain(), NULL); /* too long */
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_non_null(strstr(error.message, "whole after 6 of 7"));
    hurray_descriptor_destroy((HurrayDescriptor *)(uintptr_t)nodes.nodes[--nodes.count].descriptor);

    HurrayCompositeNode *node = &nodes.nodes[2];
    node->kind = HURRAY_NODE_COMPOSITE;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_string_equal(error.tensor, "right");
    assert_int_equal(error.tensor_index, 2);
    node->kind = 2;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_ARGUMENT);
    node->kind = HURRAY_NODE_TENSOR;
    node->member_count = 1;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_LAYOUT);
    node->member_count = 0;
    node->reserved[1] = 1;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_ARGUMENT);
    node->reserved[1] = 0;
    node->slice_count = 0;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_LAYOUT);
    node->slice_count = 1;
    nodes.slices[2].len--;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(error.buffer_index, 0);
    nodes.slices[2].len++;
    nodes.slices[2].ptr = NULL;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_NULL_POINTER);
    nodes.slices[2].ptr = bytes;
    node->slices = NULL;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_NULL_POINTER);
    node->slices = &nodes.slices[2];
    node->name = NULL;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_NULL_POINTER);
    node->name = "right";
    const HurrayDescriptor *kept = node->descriptor;
    node->descriptor = NULL;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_NULL_POINTER);
    HurrayDescriptor *wrong = half(1);
    node->descriptor = wrong;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_non_null(strstr(error.message, "both cover [1:2]"));
    hurray_descriptor_destroy(wrong);
    node->descriptor = kept;
    nodes.nodes[0].member_count = 2;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_LAYOUT);
    nodes.nodes[0].member_count = 3;
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_OK);
    clear(&nodes);

    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_LAYOUT); /* empty */
    add(&nodes, plain(), "t");
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_INVALID_LAYOUT); /* no composite */
    clear(&nodes);
    HurrayAllocator allocator = hry_alloc_default();
    assert_int_equal(hry_tree_check_nodes(NULL, 1, 64, &allocator, &error), HURRAY_ERR_NULL_POINTER);
}

static void the_sixty_fifth_nested_head_is_too_deep(void **state) {
    (void)state;
    static Nodes nodes;
    HurrayError error;
    for (int i = 0; i < 63; i++) add(&nodes, group(1), i ? NULL : "h");
    add(&nodes, group(2), NULL); /* the 64th */
    add(&nodes, plain(), NULL);
    add(&nodes, plain(), NULL);
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_OK);
    hurray_descriptor_destroy((HurrayDescriptor *)(uintptr_t)nodes.nodes[--nodes.count].descriptor);
    add(&nodes, group(0), NULL); /* a 65th, even without members */
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_ERR_TOO_DEEP);
    assert_int_equal(error.tensor_index, 65);
    clear(&nodes);
}

static void many_closed_heads_beside_each_other_are_not_deep(void **state) {
    (void)state;
    static Nodes nodes;
    HurrayError error;
    add(&nodes, group(150), "h");
    for (int i = 0; i < 150; i++) add(&nodes, group(0), NULL);
    assert_int_equal(check_nodes(&nodes, &error), HURRAY_OK);
    clear(&nodes);
}

static void members_without_a_name_are_called_head_dot_place(void **state) {
    (void)state;
    static Nodes nodes;
    static const char *const want[] = {"w", "w.0", "right", "w.0.1", "w.1", "w.2"};
    FailAlloc alloc;
    HryTreeNames names;
    HurrayError error;
    fail_alloc_init(&alloc);
    fill_small(&nodes);
    assert_int_equal(hry_tree_names_init(&names, nodes.nodes, nodes.count, &alloc.allocator, &error), HURRAY_OK);
    for (size_t i = 0; i < nodes.count; i++) {
        assert_int_equal(names.names[i].len, strlen(want[i]));
        assert_memory_equal(names.names[i].ptr, want[i], names.names[i].len);
    }
    hry_tree_names_clear(&names);
    for (uint64_t k = 1; k <= 2; k++) {
        fail_alloc_arm(&alloc, k, 0);
        assert_int_equal(hry_tree_names_init(&names, nodes.nodes, nodes.count, &alloc.allocator, &error), HURRAY_ERR_NO_MEMORY);
        fail_alloc_assert_empty(&alloc);
    }
    fail_alloc_arm(&alloc, 0, 0);
    nodes.nodes[0].name = NULL;
    nodes.nodes[0].name_len = 0;
    assert_int_equal(hry_tree_names_init(&names, nodes.nodes, nodes.count, &alloc.allocator, &error), HURRAY_ERR_INVALID_NAME);
    char *most = malloc(65536);
    assert_non_null(most);
    memset(most, 'n', 65536);
    nodes.nodes[0].name = most;
    nodes.nodes[0].name_len = 65532; /* two deep it is one byte too long */
    assert_int_equal(hry_tree_names_init(&names, nodes.nodes, nodes.count, &alloc.allocator, &error), HURRAY_ERR_INVALID_NAME);
    nodes.nodes[0].name_len = 65531;
    assert_int_equal(hry_tree_names_init(&names, nodes.nodes, nodes.count, &alloc.allocator, &error), HURRAY_OK);
    assert_int_equal(names.names[3].len, 65535);
    hry_tree_names_clear(&names);
    nodes.nodes[0].name_len = 65536;
    assert_int_equal(hry_tree_names_init(&names, nodes.nodes, nodes.count, &alloc.allocator, &error), HURRAY_ERR_INVALID_NAME);
    free(most);
    clear(&nodes);
    fail_alloc_assert_empty(&alloc);
}

static void a_failing_allocation_at_every_place_is_no_memory(void **state) {
    (void)state;
    static Nodes nodes;
    FailAlloc alloc;
    HurrayError error;
    fail_alloc_init(&alloc);
    fill_small(&nodes);
    HurrayStatus status = HURRAY_ERR_NO_MEMORY;
    for (uint64_t k = 1; status != HURRAY_OK; k++) {
        fail_alloc_arm(&alloc, k, 0);
        status = hry_tree_check_nodes(nodes.nodes, nodes.count, 64, &alloc.allocator, &error);
        if (status != HURRAY_OK) assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        fail_alloc_assert_empty(&alloc);
        assert_true(k < 50);
    }
    clear(&nodes);
}

static void members_come_one_by_one_and_a_refused_one_changes_nothing(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    HryTree tree;
    fail_alloc_init(&alloc);
    hry_tree_init(&tree, &alloc.allocator, 2, 0);
    HurrayDescriptor *outer = group(2), *parts = halves(), *left = half(0), *right = half(2), *none = group(0);
    assert_int_equal(hry_tree_parent(&tree), HURRAY_NONE);
    assert_int_equal(hry_tree_end(&tree, &error), HURRAY_OK);
    assert_int_equal(hry_tree_test(&tree, outer, false, &error), HURRAY_OK);
    assert_int_equal(hry_tree_test(&tree, outer, false, &error), HURRAY_OK); /* again: the first is forgotten */
    assert_false(hry_tree_commit(&tree));
    assert_true(hry_tree_is_open(&tree));
    assert_int_equal(hry_tree_test(&tree, parts, false, &error), HURRAY_OK);
    assert_false(hry_tree_commit(&tree));
    assert_int_equal(hry_tree_parent(&tree), 1);
    assert_int_equal(hry_tree_test(&tree, none, false, &error), HURRAY_ERR_TOO_DEEP);
    assert_int_equal(hry_tree_test(&tree, outer, true, &error), HURRAY_ERR_INVALID_LAYOUT); /* no part of a partition */
    assert_int_equal(hry_tree_test(&tree, right, false, &error), HURRAY_OK);
    assert_false(hry_tree_commit(&tree));
    assert_int_equal(hry_tree_place(&tree), 1);
    assert_int_equal(hry_tree_test(&tree, right, false, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hry_tree_end(&tree, &error), HURRAY_ERR_TORN_COMPOSITE);
    assert_int_equal(hry_tree_test(&tree, left, false, &error), HURRAY_OK);
    assert_false(hry_tree_commit(&tree));
    assert_int_equal(hry_tree_parent(&tree), 0);
    assert_int_equal(hry_tree_test(&tree, parts, true, &error), HURRAY_OK); /* checked elsewhere: opens nothing */
    assert_true(hry_tree_commit(&tree));
    assert_false(hry_tree_is_open(&tree));
    assert_int_equal(hry_tree_test(&tree, left, false, &error), HURRAY_OK); /* a plain tensor is whole at once */
    assert_true(hry_tree_commit(&tree));
    assert_int_equal(hry_tree_test(&tree, outer, false, &error), HURRAY_OK);
    assert_false(hry_tree_commit(&tree));
    hry_tree_restart(&tree);
    assert_false(hry_tree_is_open(&tree));
    assert_int_equal(hry_tree_test(&tree, outer, false, &error), HURRAY_OK); /* tested, never committed */
    hry_tree_clear(&tree);
    HurrayDescriptor *all[] = {outer, parts, left, right, none};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hurray_descriptor_destroy(all[i]);
    fail_alloc_assert_empty(&alloc);
}

static void the_depth_option_is_at_most_64(void **state) {
    (void)state;
    HurrayError error;
    uint32_t depth = 7;
    assert_int_equal(hry_tree_depth_option(0, &depth, &error), HURRAY_OK);
    assert_int_equal(depth, 64);
    assert_int_equal(hry_tree_depth_option(3, &depth, &error), HURRAY_OK);
    assert_int_equal(depth, 3);
    assert_int_equal(hry_tree_depth_option(65, &depth, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(depth, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_tree_is_accepted_and_every_flaw_is_named),
        cmocka_unit_test(the_sixty_fifth_nested_head_is_too_deep),
        cmocka_unit_test(many_closed_heads_beside_each_other_are_not_deep),
        cmocka_unit_test(members_without_a_name_are_called_head_dot_place),
        cmocka_unit_test(a_failing_allocation_at_every_place_is_no_memory),
        cmocka_unit_test(members_come_one_by_one_and_a_refused_one_changes_nothing),
        cmocka_unit_test(the_depth_option_is_at_most_64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
