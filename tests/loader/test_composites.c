/* Heads and members in the loader: listed, selected, checked, taken as one item. */
#include "loader/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/composites.h"
#include "support/fail_alloc.h"
#include "support/models.h"
#include "support/script_transport.h"

static void write_plain(ModelWriter *writer, const char *name, uint32_t seed) {
    uint64_t shape = 100;
    HurrayDescriptor *descriptor = make_member(HURRAY_TYPE_UINT8, 1, &shape, NULL, NULL, NO_ROLE);
    uint8_t data[100];
    HurrayIoSlice slice = {data, sizeof data};
    model_fill(data, seed, 0, sizeof data);
    assert_int_equal(hurray_file_writer_write_tensor(writer->writer, name, strlen(name), descriptor, &slice, 1), HURRAY_OK);
    hurray_descriptor_destroy(descriptor);
}

/* before, whole = partition of two halves, the second again a group of one; after. */
static ModelBytes nested(void) {
    ModelWriter writer;
    uint64_t whole = 100, half = 50, at0 = 0, at1 = 50, small = 10;
    HurrayCompositeNode nodes[5] = {{0}};
    HurrayDescriptor *d[5];
    uint8_t data[3][50];
    HurrayIoSlice slices[3] = {{data[0], 50}, {data[1], 50}, {data[2], 10}};
    for (uint32_t s = 0; s < 3; s++) model_fill(data[s], s + 10, 0, 50);
    d[0] = make_head(HURRAY_RULE_GROUP, 0, HURRAY_TYPE_UINT8, 1, &whole, 2, NULL, NULL);
    d[1] = make_head(HURRAY_RULE_PARTITION, 0, HURRAY_TYPE_UINT8, 1, &whole, 2, NULL, NULL);
    d[2] = make_member(HURRAY_TYPE_UINT8, 1, &half, &whole, &at0, NO_ROLE);
    d[3] = make_member(HURRAY_TYPE_UINT8, 1, &half, &whole, &at1, NO_ROLE);
    d[4] = make_member(HURRAY_TYPE_UINT8, 1, &small, NULL, NULL, NO_ROLE);
    for (int n = 0; n < 5; n++) {
        nodes[n].descriptor = d[n];
        nodes[n].kind = n < 2 ? HURRAY_NODE_COMPOSITE : HURRAY_NODE_TENSOR;
        nodes[n].member_count = n < 2 ? 2 : 0;
        if (n >= 2) nodes[n].slices = &slices[n - 2], nodes[n].slice_count = 1;
    }
    nodes[0].name = "all";
    nodes[0].name_len = 3;
    model_writer_begin(&writer, 0);
    write_plain(&writer, "before", 1);
    assert_int_equal(hurray_file_writer_write_composite(writer.writer, nodes, 5), HURRAY_OK);
    write_plain(&writer, "after", 2);
    for (int n = 0; n < 5; n++) hurray_descriptor_destroy(d[n]);
    return model_writer_end(&writer);
}

static HurrayLoader *open_bytes(ScriptTransport *script, const ModelBytes *bytes, const HurrayLoaderOptions *options) {
    script_source(script, bytes->bytes, bytes->len);
    HurrayTransport transport = script_transport(script);
    HurraySource source = {.transport = &transport};
    HurrayLoader *loader = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayStatus status = hurray_loader_open_sources(&source, 1, options, &loader, &error);
    if (status != HURRAY_OK) print_error("%d %s\n", status, error.message);
    assert_int_equal(status, HURRAY_OK);
    return loader;
}

static HurrayTensorInfo info_of(HurrayLoader *loader, uint64_t i) {
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    assert_int_equal(hurray_loader_tensor_info(loader, i, &info), HURRAY_OK);
    return info;
}

static void every_member_names_its_head(void **state) {
    (void)state;
    static const uint64_t parents[] = {HURRAY_NONE, HURRAY_NONE, 1, 2, 2, 1, HURRAY_NONE};
    ScriptTransport script;
    ModelBytes bytes = nested();
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL);
    for (uint64_t i = 0; i < 7; i++) {
        HurrayTensorInfo info = info_of(loader, i);
        assert_int_equal(info.parent, parents[i]);
        assert_int_equal(info.member_count, i == 1 || i == 2 ? 2 : 0);
    }
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void a_head_brings_its_members_and_is_taken_with_them(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = nested();
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL);
    HurrayTensorSet *set = NULL;
    HurrayItem *item = NULL;
    HurrayTensor *tensor = NULL;
    HurrayItemNode node;
    uint64_t n = 0;
    assert_int_equal(hurray_loader_select_name(loader, "all", 3), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
    assert_int_equal(hurray_tensor_set_count(set, &n), HURRAY_OK);
    assert_int_equal(n, 5);
    assert_int_equal(hurray_tensor_set_take_item(set, 2, &item), HURRAY_ERR_NOT_COMPOSITE);
    assert_int_equal(hurray_tensor_set_take_item(set, 5, &item), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_tensor_set_take_item(set, 0, &item), HURRAY_OK);
    assert_int_equal(hurray_item_node_count(item, &n), HURRAY_OK);
    assert_int_equal(n, 5);
    static const uint64_t parents[] = {HURRAY_NONE, 0, 1, 1, 0};
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(hurray_item_node(item, i, &node), HURRAY_OK);
        assert_int_equal(node.parent, parents[i]);
        assert_int_equal(node.kind, i < 2 ? HURRAY_NODE_COMPOSITE : HURRAY_NODE_TENSOR);
        assert_int_equal(hurray_tensor_set_get(set, i, &tensor), HURRAY_ERR_WRONG_STATE);
        if (i >= 2) assert_true(model_tensor_is(node.tensor, i == 4 ? 10 : 50, (uint32_t)i + 8));
    }
    assert_int_equal(node.name_len, 5);
    assert_memory_equal(node.name, "all.1", 5);
    assert_int_equal(hurray_tensor_set_take_item(set, 0, &item), HURRAY_ERR_WRONG_STATE);
    hurray_tensor_set_destroy(&set);
    hurray_item_destroy(&item);
}

static HurrayStatus skip_last(void *ctx, const HurrayTensorInfo *info, HurrayPlacement *placement) {
    (void)ctx;
    if (info->index == 4) placement->action = HURRAY_PLACE_SKIP;
    return HURRAY_OK;
}

static void an_item_needs_all_its_members(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = nested();
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    options.place = skip_last;
    HurrayLoader *loader = open_bytes(&script, &bytes, &options);
    HurrayTensorSet *set = NULL;
    HurrayItem *item = NULL;
    HurrayTensor *tensor = NULL;
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    assert_int_equal(hurray_tensor_set_take_item(set, 1, &item), HURRAY_ERR_NOT_FOUND);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    script_free(&script);
    loader = open_bytes(&script, &bytes, NULL);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    assert_int_equal(hurray_tensor_set_take(set, 4, &tensor), HURRAY_OK);
    assert_int_equal(hurray_tensor_set_take_item(set, 1, &item), HURRAY_ERR_WRONG_STATE);
    hurray_tensor_destroy(&tensor);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void taking_an_item_without_memory_changes_nothing(void **state) {
    (void)state;
    ScriptTransport script;
    FailAlloc alloc;
    ModelBytes bytes = nested();
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayTensorSet *set = NULL;
    HurrayItem *item = NULL;
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    HurrayLoader *loader = open_bytes(&script, &bytes, &options);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    for (uint64_t k = 1; k < 50; k++) {
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hurray_tensor_set_take_item(set, 1, &item);
        if (status == HURRAY_OK) break;
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
    }
    assert_non_null(item);
    hurray_item_destroy(&item);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    fail_alloc_assert_empty(&alloc);
    script_free(&script);
    model_free(&bytes);
}

/* Promises one member more in the head's layout payload: rule, combine, 2 reserved, member_count. */
static void promise_more(ModelBytes *bytes, uint64_t descriptor_offset, uint32_t rank, uint32_t members) {
    uint8_t *at = bytes->bytes + descriptor_offset + 20 + 8 * rank + 8 + 4;
    for (int k = 0; k < 4; k++) at[k] = (uint8_t)(members >> (8 * k));
}

static void a_torn_or_too_deep_composite_is_a_fault_of_its_head(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = nested();
    HurrayTensorSet *set = NULL;
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL);
    uint64_t offset = info_of(loader, 1).descriptor_offset;
    hurray_loader_destroy(&loader);
    script_free(&script);
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    options.max_composite_depth = 1;
    loader = open_bytes(&script, &bytes, &options);
    assert_null(info_of(loader, 1).fault);
    HurrayTensorInfo info = info_of(loader, 2);
    assert_non_null(info.fault);
    assert_int_equal(info.fault->code, HURRAY_ERR_TOO_DEEP);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_ERR_TOO_DEEP);
    hurray_loader_destroy(&loader);
    script_free(&script);
    promise_more(&bytes, offset, 1, 5);
    loader = open_bytes(&script, &bytes, NULL);
    info = info_of(loader, 1);
    assert_non_null(info.fault);
    assert_int_equal(info.fault->code, HURRAY_ERR_TORN_COMPOSITE);
    assert_string_equal(info.fault->tensor, "all");
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_ERR_TORN_COMPOSITE);
    assert_int_equal(hurray_loader_select_name(loader, "before", 6), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void a_partition_with_a_hole_is_refused_before_payload_is_read(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = nested();
    HurrayTensorSet *set = NULL;
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL);
    uint64_t offset = info_of(loader, 2).descriptor_offset;
    hurray_loader_destroy(&loader);
    script_free(&script);
    promise_more(&bytes, offset, 1, 1); /* the partition ends after its first half, the second belongs to the group */
    loader = open_bytes(&script, &bytes, NULL);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_ERR_INVALID_LAYOUT);
    assert_true(hurray_loader_last_error(loader)->tensor[0] != 0);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_names_its_head),
        cmocka_unit_test(a_head_brings_its_members_and_is_taken_with_them),
        cmocka_unit_test(an_item_needs_all_its_members),
        cmocka_unit_test(taking_an_item_without_memory_changes_nothing),
        cmocka_unit_test(a_torn_or_too_deep_composite_is_a_fault_of_its_head),
        cmocka_unit_test(a_partition_with_a_hole_is_refused_before_payload_is_read),
    };
    return cmocka_run_group_tests_name("loader/composites", tests, NULL, NULL);
}
