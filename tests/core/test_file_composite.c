/* Composites in files: the job that walks write order from the head. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/containers.h"
#include "support/fail_destination.h"
#include "support/file_drive.h"

static FileDrive drive;

static HurrayFileReaderCore *open_core(const Container *built, const HurrayFileReaderOptions *options) {
    HurrayFileReaderCore *core = NULL;
    HurrayStep step;
    drive = (FileDrive){.bytes = built->bytes, .len = built->len, .tail = SIZE_MAX};
    assert_int_equal(hurray_file_reader_core_new(built->len, options, &core, NULL), HURRAY_OK);
    HurrayStatus status = file_drive(&drive, core, &step);
    if (status != HURRAY_OK) print_error("%s\n", hurray_file_reader_core_last_error(core)->message);
    assert_int_equal(status, HURRAY_OK);
    return core;
}

static HurrayStatus read_composite(HurrayFileReaderCore *core, const char *name, HurrayItem **item) {
    HurrayStep step;
    drive.ranges = 0;
    drive.tail = SIZE_MAX;
    HurrayStatus status = hurray_file_reader_core_begin_composite(core, name, strlen(name));
    if (status == HURRAY_OK) status = file_drive(&drive, core, &step);
    if (status != HURRAY_OK) return status;
    assert_int_equal(step.kind, HURRAY_STEP_COMPOSITE);
    return hurray_file_reader_core_take_composite(core, item);
}

static void node_is(const HurrayItem *item, uint64_t i, const char *name, uint32_t members, uint64_t parent) {
    HurrayItemNode node;
    assert_int_equal(hurray_item_node(item, i, &node), HURRAY_OK);
    assert_int_equal(node.name_len, strlen(name));
    assert_memory_equal(node.name, name, node.name_len);
    assert_int_equal(node.member_count, members);
    assert_int_equal(node.parent, parent);
}

/* x, g{g.0{}, g.1{g.1.0, g.1.1}, g.2}, p{p.0, p.1}, y */
static void build(Container *built, uint32_t flags) {
    container_begin_file(built, 4096);
    container_add(built, "x", make_plain(5, 64));
    container_add(built, "g", make_group(3));
    container_add(built, "g.0", make_group(0));
    container_add(built, "g.1", make_group(2));
    container_add(built, "g.1.0", make_plain(50, 64));
    container_add(built, "g.1.1", make_plain(60, 64));
    container_add(built, "g.2", make_plain(70, 64));
    container_add(built, "p", make_partition(10, 2));
    container_add(built, "p.0", make_part(10, 0, 4));
    container_add(built, "p.1", make_part(10, 4, 6));
    container_add(built, "y", make_plain(5, 64));
    container_finish(built, flags, NULL, 0);
}

static void members_follow_their_head_in_write_order_whatever_the_index_order(void **state) {
    (void)state;
    static const uint32_t orders[] = {0, BUILD_SORTED, BUILD_REVERSED};
    for (size_t o = 0; o < 3; o++) {
        Container built;
        build(&built, orders[o]);
        HurrayFileReaderCore *core = open_core(&built, NULL);
        HurrayItem *item = NULL;
        uint64_t count = 0;
        assert_int_equal(read_composite(core, "g", &item), HURRAY_OK);
        hurray_item_node_count(item, &count);
        assert_int_equal(count, 6);
        node_is(item, 0, "g", 3, HURRAY_NONE);
        node_is(item, 1, "g.0", 0, 0);
        node_is(item, 2, "g.1", 2, 0);
        node_is(item, 3, "g.1.0", 0, 2);
        node_is(item, 4, "g.1.1", 0, 2);
        node_is(item, 5, "g.2", 0, 0);
        for (uint64_t i = 3; i < 6; i++) {
            HurrayItemNode node;
            hurray_item_node(item, i, &node);
            assert_int_equal(node.kind, HURRAY_NODE_TENSOR);
            assert_tensor_pattern(node.tensor, i + 1);
        }
        assert_int_equal(drive.ranges, 6 + 3); /* six descriptors, three buffers */
        hurray_item_destroy(&item);
        assert_int_equal(read_composite(core, "g.1", &item), HURRAY_OK); /* a nested one by itself */
        hurray_item_node_count(item, &count);
        assert_int_equal(count, 3);
        hurray_item_destroy(&item);
        assert_int_equal(read_composite(core, "g.0", &item), HURRAY_OK); /* without members: one node, a composite */
        node_is(item, 0, "g.0", 0, HURRAY_NONE);
        hurray_item_destroy(&item);
        assert_int_equal(read_composite(core, "p", &item), HURRAY_OK);
        hurray_item_destroy(&item);
        hurray_file_reader_core_destroy(&core);
        container_free(&built);
    }
}

static void a_plain_tensor_is_not_a_composite_and_not_a_byte_of_it_is_read(void **state) {
    (void)state;
    Container built;
    HurrayItem *item = NULL;
    build(&built, 0);
    HurrayFileReaderCore *core = open_core(&built, NULL);
    assert_int_equal(read_composite(core, "x", &item), HURRAY_ERR_NOT_COMPOSITE);
    assert_int_equal(drive.ranges, 1);
    assert_string_equal(hurray_file_reader_core_last_error(core)->tensor, "x");
    assert_int_equal(read_composite(core, "none", &item), HURRAY_ERR_NOT_FOUND);
    assert_null(item);
    assert_int_equal(read_composite(core, "p", &item), HURRAY_OK); /* the core goes on */
    hurray_item_destroy(&item);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void a_head_read_as_a_tensor_has_no_buffers(void **state) {
    (void)state;
    Container built;
    HurrayStep step;
    HurrayTensor *tensor = NULL;
    HurrayBufferList *list = NULL;
    uint64_t count = 9;
    build(&built, 0);
    HurrayFileReaderCore *core = open_core(&built, NULL);
    hurray_file_reader_core_begin_tensor(core, "g", 1);
    assert_int_equal(file_drive(&drive, core, &step), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_take_tensor(core, &tensor), HURRAY_OK);
    hurray_tensor_buffers(tensor, &list);
    hurray_buffer_list_len(list, &count);
    assert_int_equal(count, 0);
    hurray_tensor_destroy(&tensor);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void too_few_tensors_behind_a_head_are_a_torn_composite(void **state) {
    (void)state;
    Container built;
    FailDestination fail;
    HurrayItem *item = NULL;
    fail_destination_init(&fail);
    container_begin_file(&built, 4096);
    container_add(&built, "g", make_group(3));
    container_add(&built, "g.0", make_plain(50, 64));
    container_add(&built, "g.1", make_group(UINT32_MAX - 1));
    container_add(&built, "g.1.0", make_plain(50, 64));
    container_finish(&built, 0, NULL, 0);
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    options.destination = &fail.destination;
    HurrayFileReaderCore *core = open_core(&built, &options);
    assert_int_equal(read_composite(core, "g", &item), HURRAY_ERR_TORN_COMPOSITE);
    assert_true(hurray_file_reader_core_last_error(core)->message[0]);
    fail_destination_assert_empty(&fail);
    assert_int_equal(read_composite(core, "g.1", &item), HURRAY_ERR_TORN_COMPOSITE);
    HurrayStep step;
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
    assert_int_equal(step.kind, HURRAY_STEP_READY);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void a_member_that_breaks_the_partition_is_refused_before_its_payload(void **state) {
    (void)state;
    Container built;
    HurrayItem *item = NULL;
    container_begin_file(&built, 4096);
    container_add(&built, "p", make_partition(10, 2));
    container_add(&built, "p.0", make_part(10, 0, 4));
    container_add(&built, "p.1", make_part(10, 3, 6));
    container_finish(&built, 0, NULL, 0);
    HurrayFileReaderCore *core = open_core(&built, NULL);
    assert_int_equal(read_composite(core, "p", &item), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(drive.ranges, 2 + 2); /* p, p.0 and its buffer, p.1 */
    assert_string_equal(hurray_file_reader_core_last_error(core)->tensor, "p.1");
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void nesting_is_bounded_by_the_option(void **state) {
    (void)state;
    Container built;
    HurrayItem *item = NULL;
    container_begin_file(&built, 4096);
    for (int i = 0; i < 66; i++) {
        char name[16];
        snprintf(name, sizeof name, "h%d", i);
        container_add(&built, name, make_group(i < 65 ? 1 : 0));
    }
    container_finish(&built, 0, NULL, 0);
    HurrayFileReaderCore *core = open_core(&built, NULL);
    assert_int_equal(read_composite(core, "h0", &item), HURRAY_ERR_TOO_DEEP);
    assert_int_equal(read_composite(core, "h2", &item), HURRAY_OK); /* 64 heads */
    hurray_item_destroy(&item);
    assert_int_equal(read_composite(core, "h1", &item), HURRAY_ERR_TOO_DEEP);
    hurray_file_reader_core_destroy(&core);
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    options.max_composite_depth = 3;
    core = open_core(&built, &options);
    assert_int_equal(read_composite(core, "h63", &item), HURRAY_OK);
    hurray_item_destroy(&item);
    assert_int_equal(read_composite(core, "h62", &item), HURRAY_ERR_TOO_DEEP);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void thousands_of_members_are_one_job(void **state) {
    (void)state;
    Container built;
    HurrayItem *item = NULL;
    uint64_t count = 0;
    container_begin_file(&built, 4096);
    container_add(&built, "p", make_partition(3000, 3000));
    for (uint64_t i = 0; i < 3000; i++) {
        char name[16];
        snprintf(name, sizeof name, "p.%d", (int)i);
        container_add(&built, name, make_part(3000, i, 1));
    }
    container_finish(&built, 0, NULL, 0);
    HurrayFileReaderCore *core = open_core(&built, NULL);
    assert_int_equal(read_composite(core, "p", &item), HURRAY_OK);
    hurray_item_node_count(item, &count);
    assert_int_equal(count, 3001);
    hurray_item_destroy(&item);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void a_destination_failing_inside_a_composite_leaves_nothing(void **state) {
    (void)state;
    Container built;
    FailDestination fail;
    HurrayItem *item = NULL;
    build(&built, 0);
    fail_destination_init(&fail);
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    options.destination = &fail.destination;
    HurrayFileReaderCore *core = open_core(&built, &options);
    for (uint64_t n = 1;; n++) {
        fail_destination_arm(&fail, n, HURRAY_ERR_NO_MEMORY, false);
        HurrayStatus status = read_composite(core, "g", &item);
        if (status == HURRAY_OK) break;
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        fail_destination_assert_empty(&fail);
    }
    hurray_file_reader_core_destroy(&core);
    hurray_item_destroy(&item);
    fail_destination_assert_empty(&fail);
    container_free(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_follow_their_head_in_write_order_whatever_the_index_order),
        cmocka_unit_test(a_plain_tensor_is_not_a_composite_and_not_a_byte_of_it_is_read),
        cmocka_unit_test(a_head_read_as_a_tensor_has_no_buffers),
        cmocka_unit_test(too_few_tensors_behind_a_head_are_a_torn_composite),
        cmocka_unit_test(a_member_that_breaks_the_partition_is_refused_before_its_payload),
        cmocka_unit_test(nesting_is_bounded_by_the_option),
        cmocka_unit_test(thousands_of_members_are_one_job),
        cmocka_unit_test(a_destination_failing_inside_a_composite_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
