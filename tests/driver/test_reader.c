#include "hurray.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hurray/destination.h"
#include "support/containers.h"
#include "support/fail_alloc.h"
#include "support/fail_destination.h"
#include "support/script_transport.h"

/* x, g{g0{m, m}, m}, p{2 parts}, y */
static void build(Container *built) {
    container_begin_stream(built);
    container_add(built, NULL, make_plain(777, 64));
    container_add(built, NULL, make_group(2));
    container_add(built, NULL, make_group(2));
    container_add(built, NULL, make_plain(50, 64));
    container_add(built, NULL, make_plain(60, 64));
    container_add(built, NULL, make_plain(70, 64));
    container_add(built, NULL, make_partition(10, 2));
    container_add(built, NULL, make_part(10, 0, 4));
    container_add(built, NULL, make_part(10, 4, 6));
    container_add(built, NULL, make_plain(5, 64));
}

static HurrayReader *reader_of(ScriptTransport *script, const HurrayReaderOptions *options) {
    HurrayReader *reader = NULL;
    HurrayTransport transport = script_transport(script);
    assert_int_equal(hurray_reader_new(&transport, options, &reader), HURRAY_OK);
    return reader;
}

static void tensors_in_order_then_the_end_again_and_again(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    build(&built);
    for (size_t every = 0; every < 30; every += 7) {
        script_source(&script, built.bytes, built.len);
        script_every(&script, every);
        HurrayReader *reader = reader_of(&script, NULL);
        HurrayTensor *tensor = NULL;
        for (uint64_t i = 0; i < built.count; i++) {
            assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_OK);
            assert_int_equal(hurray_reader_last_error(reader)->code, HURRAY_OK);
            assert_tensor_pattern(tensor, i);
            hurray_tensor_destroy(&tensor);
        }
        for (int i = 0; i < 2; i++) assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_END_OF_STREAM);
        HurrayItem *item = NULL;
        assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_END_OF_STREAM);
        hurray_reader_destroy(&reader);
        assert_null(reader);
        assert_int_equal(script.releases, 1);
        script_free(&script);
    }
    container_free(&built);
}

static void items_are_tensors_and_whole_trees(void **state) {
    (void)state;
    static const uint64_t counts[] = {1, 5, 3, 1};
    Container built;
    ScriptTransport script;
    HurrayItem *item = NULL;
    HurrayItemNode node;
    build(&built);
    script_source(&script, built.bytes, built.len);
    HurrayReader *reader = reader_of(&script, NULL);
    for (int i = 0; i < 4; i++) {
        uint64_t count = 0;
        assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_OK);
        hurray_item_node_count(item, &count);
        assert_int_equal(count, counts[i]);
        if (i == 1) {
            assert_int_equal(hurray_item_node(item, 3, &node), HURRAY_OK);
            assert_int_equal(node.parent, 1);
            assert_null(node.name);
            assert_tensor_pattern(node.tensor, 4);
        }
        hurray_item_destroy(&item);
    }
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_END_OF_STREAM);
    hurray_reader_destroy(&reader);
    script_free(&script);
    container_free(&built);
}

/* All items, repeating calls that fail with `code`. */
static uint64_t read_stubbornly(HurrayReader *reader, HurrayStatus code, uint64_t *nodes) {
    uint64_t failures = 0;
    *nodes = 0;
    for (;;) {
        HurrayItem *item = NULL;
        uint64_t count = 0;
        HurrayStatus status = hurray_reader_next_item(reader, &item);
        if (status == HURRAY_END_OF_STREAM) return failures;
        if (status == code) {
            assert_int_equal(hurray_reader_last_error(reader)->code, code);
            assert_true(hurray_reader_last_error(reader)->message[0]);
            assert_true(++failures < 200);
            continue;
        }
        assert_int_equal(status, HURRAY_OK);
        hurray_item_node_count(item, &count);
        for (uint64_t i = 0; i < count; i++) {
            HurrayItemNode node;
            hurray_item_node(item, i, &node);
            assert_tensor_pattern(node.tensor, *nodes + i);
        }
        *nodes += count;
        hurray_item_destroy(&item);
    }
}

static void a_call_may_be_repeated_after_a_failing_transport(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    uint64_t failures = 1, nodes;
    build(&built);
    for (uint64_t n = 1; failures; n++) {
        script_source(&script, built.bytes, built.len);
        script_every(&script, 50);
        script_fail(&script, n, n % 2 ? HURRAY_ERR_CANCELLED : -1001, 0);
        HurrayReader *reader = reader_of(&script, NULL);
        failures = read_stubbornly(reader, n % 2 ? HURRAY_ERR_CANCELLED : -1001, &nodes);
        assert_int_equal(nodes, built.count);
        hurray_reader_destroy(&reader);
        script_free(&script);
    }
    container_free(&built);
}

static void a_call_may_be_repeated_after_lack_of_memory(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    FailAlloc alloc;
    uint64_t failures = 1, nodes;
    build(&built);
    fail_alloc_init(&alloc);
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    options.allocator = &alloc.allocator;
    for (uint64_t k = 1; failures; k++) {
        HurrayReader *reader = NULL;
        HurrayError error = HURRAY_ERROR_INIT;
        script_source(&script, built.bytes, built.len);
        HurrayTransport transport = script_transport(&script);
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hurray_reader_new_ex(&transport, &options, &reader, &error);
        if (status != HURRAY_OK) {
            assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
            assert_int_equal(script.releases, 0); /* on failure the transport stays with the caller */
        } else {
            failures = read_stubbornly(reader, HURRAY_ERR_NO_MEMORY, &nodes);
            assert_int_equal(nodes, built.count);
        }
        hurray_reader_destroy(&reader);
        fail_alloc_assert_empty(&alloc);
        script_free(&script);
    }
    container_free(&built);
}

static void a_tree_that_is_wrong_costs_its_item_and_not_the_stream(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    HurrayItem *item = NULL;
    uint64_t count;
    container_begin_stream(&built);
    container_add(&built, NULL, make_partition(10, 2));
    container_add(&built, NULL, make_part(10, 0, 4));
    container_add(&built, NULL, make_plain(7, 64)); /* no member of a partition */
    container_add(&built, NULL, make_plain(8, 64));
    container_add(&built, NULL, make_group(2)); /* torn */
    container_add(&built, NULL, make_plain(9, 64));
    script_source(&script, built.bytes, built.len);
    HurrayReader *reader = reader_of(&script, NULL);
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_OK); /* it stands at the next frame */
    hurray_item_node_count(item, &count);
    assert_int_equal(count, 1);
    hurray_item_destroy(&item);
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_ERR_TORN_COMPOSITE);
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_END_OF_STREAM);
    hurray_reader_destroy(&reader);
    script_free(&script);
    container_free(&built);
}

static void nesting_is_bounded_for_items_only(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    HurrayItem *item = NULL;
    HurrayTensor *tensor = NULL;
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    options.max_composite_depth = 2;
    container_begin_stream(&built);
    for (int i = 0; i < 3; i++) container_add(&built, NULL, make_group(1));
    container_add(&built, NULL, make_plain(7, 64));
    script_source(&script, built.bytes, built.len);
    HurrayReader *reader = reader_of(&script, &options);
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_ERR_TOO_DEEP);
    hurray_reader_destroy(&reader);
    script_reset(&script);
    reader = reader_of(&script, &options);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_OK);
        hurray_tensor_destroy(&tensor);
    }
    hurray_reader_destroy(&reader);
    script_free(&script);
    container_free(&built);
}

static void a_half_read_item_is_not_mixed_with_tensors(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    HurrayItem *item = NULL;
    HurrayTensor *tensor = NULL;
    build(&built);
    script_source(&script, built.bytes, built.len);
    HurrayReader *reader = reader_of(&script, NULL);
    assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_OK);
    hurray_tensor_destroy(&tensor);
    script_fail(&script, 5, -1001, 0);
    assert_int_equal(hurray_reader_next_item(reader, &item), -1001);
    assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_OK);
    hurray_item_destroy(&item);
    assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_OK);
    hurray_tensor_destroy(&tensor);
    hurray_reader_destroy(&reader);
    script_free(&script);
    container_free(&built);
}

static void a_count_that_cannot_be_loses_the_position(void **state) {
    (void)state;
    static const ScriptStep over[] = {{SCRIPT_ALL, HURRAY_OK, 1}};
    Container built;
    ScriptTransport script;
    HurrayTensor *tensor = NULL;
    build(&built);
    script_source(&script, built.bytes, built.len);
    script_pattern(&script, over, 1);
    HurrayReader *reader = reader_of(&script, NULL);
    assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_ERR_INVALID_REPORT);
    assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_reader_last_error(reader)->code, HURRAY_ERR_UNUSABLE);
    hurray_reader_destroy(&reader);
    script_free(&script);
    container_free(&built);
}

static void a_stream_cut_inside_an_item_is_truncated_and_then_unusable(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    HurrayTensor *tensor = NULL;
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    options.label = "pipe";
    options.label_len = 4;
    build(&built);
    script_source(&script, built.bytes, 500);
    HurrayReader *reader = reader_of(&script, &options);
    assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_ERR_TRUNCATED);
    assert_string_equal(hurray_reader_last_error(reader)->source, "pipe");
    assert_int_equal(hurray_reader_last_error(reader)->offset, 500);
    assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_ERR_UNUSABLE);
    hurray_reader_destroy(&reader);
    script_free(&script);
    container_free(&built);
}

static void a_busy_destination_is_waited_for_and_one_that_cannot_wait_is_told(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    FailDestination fail;
    HurrayTensor *tensor = NULL;
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    build(&built);
    fail_destination_init(&fail);
    fail.waits = 3;
    options.destination = &fail.destination;
    script_source(&script, built.bytes, built.len);
    HurrayReader *reader = reader_of(&script, &options);
    assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_OK);
    assert_int_equal(fail.wait_calls, 9);
    hurray_tensor_destroy(&tensor);
    hurray_reader_destroy(&reader);
    script_reset(&script);
    fail.destination.wait = NULL;
    reader = reader_of(&script, &options);
    assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_ERR_UNSUPPORTED);
    hurray_reader_destroy(&reader);
    fail_destination_assert_empty(&fail);
    script_free(&script);
    container_free(&built);
}

static HurrayReader *inner;

static void call_back(void *ctx) {
    HurrayTensor *tensor = NULL;
    *(HurrayStatus *)ctx = hurray_reader_next_tensor(inner, &tensor);
}

static void a_callback_that_calls_its_handle_is_told_busy(void **state) {
    (void)state;
    Container built;
    ScriptTransport script;
    HurrayTensor *tensor = NULL;
    HurrayStatus seen = 0;
    build(&built);
    script_source(&script, built.bytes, built.len);
    inner = reader_of(&script, NULL);
    script.before = call_back;
    script.before_ctx = &seen;
    assert_int_equal(hurray_reader_next_tensor(inner, &tensor), HURRAY_OK);
    assert_int_equal(seen, HURRAY_ERR_BUSY);
    hurray_tensor_destroy(&tensor);
    hurray_reader_destroy(&inner);
    script_free(&script);
    container_free(&built);
}

static void what_is_missing_is_named_at_creation(void **state) {
    (void)state;
    ScriptTransport script;
    HurrayReader *reader = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayItem *item = NULL;
    HurrayTensor *tensor = NULL;
    script_source(&script, "", 0);
    HurrayTransport transport = script_transport(&script);
    transport.read = NULL;
    assert_int_equal(hurray_reader_new_ex(&transport, NULL, &reader, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_reader_new_ex(NULL, NULL, &reader, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_reader_new(&transport, NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_reader_next_tensor(NULL, &tensor), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_reader_next_item(NULL, &item), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_reader_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_reader_destroy(&reader), HURRAY_OK);
    assert_null(hurray_reader_last_error(NULL));
    script_free(&script);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_in_order_then_the_end_again_and_again),
        cmocka_unit_test(items_are_tensors_and_whole_trees),
        cmocka_unit_test(a_call_may_be_repeated_after_a_failing_transport),
        cmocka_unit_test(a_call_may_be_repeated_after_lack_of_memory),
        cmocka_unit_test(a_tree_that_is_wrong_costs_its_item_and_not_the_stream),
        cmocka_unit_test(nesting_is_bounded_for_items_only),
        cmocka_unit_test(a_half_read_item_is_not_mixed_with_tensors),
        cmocka_unit_test(a_count_that_cannot_be_loses_the_position),
        cmocka_unit_test(a_stream_cut_inside_an_item_is_truncated_and_then_unusable),
        cmocka_unit_test(a_busy_destination_is_waited_for_and_one_that_cannot_wait_is_told),
        cmocka_unit_test(a_callback_that_calls_its_handle_is_told_busy),
        cmocka_unit_test(what_is_missing_is_named_at_creation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
