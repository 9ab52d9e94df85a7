/* Composites from end to end: written into a file or a stream, read back whole, damaged, too deep, torn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hurray.h"
#include "hurray/dense.h"
#include "support/composites.h"
#include "support/fail_alloc.h"
#include "support/script_transport.h"

#define F32 HURRAY_TYPE_FLOAT32
#define DIMS(...) ((const uint64_t[]){__VA_ARGS__})
#define MOST 80

typedef struct Tree {
    HurrayCompositeNode nodes[MOST];
    HurrayIoSlice slices[MOST];
    size_t count;
} Tree;

static const float numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void add_head(Tree *tree, HurrayDescriptor *head, uint32_t members, const char *name) {
    tree->nodes[tree->count++] = (HurrayCompositeNode){
        .kind = HURRAY_NODE_COMPOSITE, .member_count = members, .name = name, .name_len = name ? strlen(name) : 0, .descriptor = head};
}

static void add_tensor(Tree *tree, HurrayDescriptor *descriptor, const float *values, const char *name) {
    HurrayBufferHandle handle;
    HurrayIoSlice *slice = &tree->slices[tree->count];
    hurray_descriptor_buffer(descriptor, 0, &handle);
    *slice = (HurrayIoSlice){values, (size_t)handle.byte_size};
    tree->nodes[tree->count++] = (HurrayCompositeNode){
        .kind = HURRAY_NODE_TENSOR, .name = name, .name_len = name ? strlen(name) : 0, .descriptor = descriptor, .slices = slice, .slice_count = 1};
}

static HurrayDescriptor *group(uint32_t members) { return make_head(HURRAY_RULE_GROUP, 0, F32, 1, DIMS(4), members, NULL, NULL); }
static HurrayDescriptor *plain(void) { return make_member(F32, 1, DIMS(4), NULL, NULL, NO_ROLE); }
static HurrayDescriptor *halves(void) { return make_head(HURRAY_RULE_PARTITION, 0, F32, 1, DIMS(4), 2, NULL, NULL); }
static HurrayDescriptor *half(uint64_t at) { return make_member(F32, 1, DIMS(2), DIMS(4), DIMS(at), NO_ROLE); }

/* z: group(3): z.0: partition (a.right, z.0.1), z.1: tensor, empty: group(0) */
static void make_tree(Tree *tree) {
    tree->count = 0;
    add_head(tree, group(3), 3, "z");
    add_head(tree, halves(), 2, NULL);
    add_tensor(tree, half(2), numbers + 2, "a.right");
    add_tensor(tree, half(0), numbers, NULL);
    add_tensor(tree, plain(), numbers + 8, NULL);
    add_head(tree, group(0), 0, "empty");
}

static void clear_tree(Tree *tree) {
    for (size_t i = 0; i < tree->count; i++) hurray_descriptor_destroy((HurrayDescriptor *)(uintptr_t)tree->nodes[i].descriptor);
    tree->count = 0;
}

static HurrayFileWriter *open_writer(ScriptTransport *sink, uint32_t flags) {
    HurrayFileWriterOptions options = HURRAY_FILE_WRITER_OPTIONS_INIT;
    HurrayFileWriter *writer = NULL;
    HurrayTransport transport = script_transport(sink);
    options.flags = flags;
    assert_int_equal(hurray_file_writer_new_ex(&transport, &options, &writer, NULL), HURRAY_OK);
    return writer;
}

/* The bytes of a file with the tree above and a tensor before and behind it. */
static void write_file(ScriptTransport *sink, uint32_t flags) {
    static Tree tree;
    script_sink(sink);
    HurrayFileWriter *writer = open_writer(sink, flags);
    HurrayDescriptor *descriptor = plain();
    HurrayIoSlice slice = {numbers, 16};
    make_tree(&tree);
    assert_int_equal(hurray_file_writer_write_tensor(writer, "m", 1, descriptor, &slice, 1), HURRAY_OK);
    if (hurray_file_writer_write_composite(writer, tree.nodes, tree.count) != HURRAY_OK) fail_msg("%s", hurray_file_writer_last_error(writer)->message);
    assert_int_equal(hurray_file_writer_write_tensor(writer, "b", 1, descriptor, &slice, 1), HURRAY_OK);
    assert_int_equal(hurray_file_writer_finish(writer, NULL, 0), HURRAY_OK);
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    clear_tree(&tree);
}

static HurrayFileReader *open_reader(ScriptTransport *source, uint32_t depth) {
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    HurrayFileReader *reader = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayTransport transport = script_transport(source);
    options.max_composite_depth = depth;
    if (hurray_file_reader_new_ex(&transport, &options, &reader, &error) != HURRAY_OK) fail_msg("%s", error.message);
    return reader;
}

static void expect_node(const HurrayItem *item, uint64_t i, const char *name, uint32_t members, uint64_t parent) {
    HurrayItemNode node;
    assert_int_equal(hurray_item_node(item, i, &node), HURRAY_OK);
    assert_int_equal(node.member_count, members);
    assert_int_equal(node.parent, parent);
    assert_int_equal(node.name_len, strlen(name));
    assert_memory_equal(node.name, name, node.name_len);
}

static void a_nested_composite_comes_back_whatever_the_index_order(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags <= HURRAY_WRITE_SORTED_INDEX; flags++) {
        ScriptTransport sink, source;
        HurrayItem *item = NULL;
        HurrayTensor *tensor = NULL;
        uint64_t count = 0;
        float values[4];
        write_file(&sink, flags);
        script_source(&source, sink.bytes, sink.len);
        script_every(&source, 13);
        HurrayFileReader *reader = open_reader(&source, 0);
        if (hurray_file_reader_read_composite(reader, "z", 1, &item) != HURRAY_OK) fail_msg("%s", hurray_file_reader_last_error(reader)->message);
        assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
        assert_int_equal(count, 6);
        expect_node(item, 0, "z", 3, HURRAY_NONE);
        expect_node(item, 1, "z.0", 2, 0);
        expect_node(item, 2, "a.right", 0, 1);
        expect_node(item, 3, "z.0.1", 0, 1);
        expect_node(item, 4, "z.1", 0, 0);
        expect_node(item, 5, "empty", 0, 0);
        assert_int_equal(hurray_item_dense(item, 1, 0, values, sizeof values, NULL), HURRAY_OK);
        assert_memory_equal(values, numbers, sizeof values);
        hurray_item_destroy(&item);
        /* Parts of it by their own names. */
        assert_int_equal(hurray_file_reader_read_composite(reader, "z.0", 3, &item), HURRAY_OK);
        assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
        assert_int_equal(count, 3);
        hurray_item_destroy(&item);
        assert_int_equal(hurray_file_reader_read_composite(reader, "empty", 5, &item), HURRAY_OK);
        hurray_item_destroy(&item);
        assert_int_equal(hurray_file_reader_read_tensor(reader, "a.right", 7, &tensor), HURRAY_OK);
        hurray_tensor_destroy(&tensor);
        assert_int_equal(hurray_file_reader_read_tensor(reader, "z", 1, &tensor), HURRAY_OK); /* a head by itself has no buffers */
        hurray_tensor_destroy(&tensor);
        /* A question wrongly asked costs nothing. */
        assert_int_equal(hurray_file_reader_read_composite(reader, "m", 1, &item), HURRAY_ERR_NOT_COMPOSITE);
        assert_int_equal(hurray_file_reader_read_composite(reader, "q", 1, &item), HURRAY_ERR_NOT_FOUND);
        assert_int_equal(hurray_file_reader_read_composite(reader, "z", 1, &item), HURRAY_OK);
        hurray_item_destroy(&item);
        hurray_file_reader_destroy(&reader);
        script_free(&source);
        script_free(&sink);
    }
}

static void a_reader_bounds_the_depth_and_goes_on(void **state) {
    (void)state;
    ScriptTransport sink, source;
    HurrayItem *item = NULL;
    write_file(&sink, 0);
    script_source(&source, sink.bytes, sink.len);
    HurrayFileReader *reader = open_reader(&source, 1);
    assert_int_equal(hurray_file_reader_read_composite(reader, "z", 1, &item), HURRAY_ERR_TOO_DEEP);
    assert_true(hurray_file_reader_last_error(reader)->message[0] != 0);
    assert_int_equal(hurray_file_reader_read_composite(reader, "z.0", 3, &item), HURRAY_OK);
    hurray_item_destroy(&item);
    hurray_file_reader_destroy(&reader);
    script_free(&source);
    script_free(&sink);
}

/* Where the descriptor of a tensor begins in the file. */
static uint64_t descriptor_at(ScriptTransport *sink, const char *name) {
    ScriptTransport source;
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    uint64_t i = 0;
    script_source(&source, sink->bytes, sink->len);
    HurrayFileReader *reader = open_reader(&source, 0);
    assert_int_equal(hurray_file_reader_find(reader, name, strlen(name), &i), HURRAY_OK);
    assert_int_equal(hurray_file_reader_tensor_info(reader, i, &info), HURRAY_OK);
    uint64_t at = info.descriptor_offset;
    hurray_file_reader_destroy(&reader);
    script_free(&source);
    return at;
}

/* Reads z from damaged bytes; the reader must stay usable. */
static void expect_damage(const ScriptTransport *sink, HurrayStatus want, const char *tensor) {
    ScriptTransport source;
    HurrayItem *item = NULL;
    HurrayTensor *intact = NULL;
    script_source(&source, sink->bytes, sink->len);
    HurrayFileReader *reader = open_reader(&source, 0);
    assert_int_equal(hurray_file_reader_read_composite(reader, "z", 1, &item), want);
    assert_null(item);
    const HurrayError *error = hurray_file_reader_last_error(reader);
    assert_true(error->message[0] != 0);
    if (tensor) assert_string_equal(error->tensor, tensor);
    assert_int_equal(hurray_file_reader_read_tensor(reader, "b", 1, &intact), HURRAY_OK);
    hurray_tensor_destroy(&intact);
    hurray_file_reader_destroy(&reader);
    script_free(&source);
}

static void a_damaged_file_composite_is_named_and_spoils_nothing_else(void **state) {
    (void)state;
    ScriptTransport sink;
    write_file(&sink, 0);
    uint8_t *head = sink.bytes + descriptor_at(&sink, "z");
    uint64_t count_at = 20 + 8 + 8 + 4; /* fixed header, shape, byte_offset, rule, op, reserved */
    assert_int_equal(head[count_at], 3);
    head[count_at] = 5; /* more than all that follow */
    expect_damage(&sink, HURRAY_ERR_TORN_COMPOSITE, NULL);
    memset(head + count_at, 0xFF, 4);
    head[count_at] = 0xFE;
    expect_damage(&sink, HURRAY_ERR_TORN_COMPOSITE, NULL);
    memset(head + count_at, 0, 4);
    head[count_at] = 3;
    uint8_t *right = sink.bytes + descriptor_at(&sink, "a.right");
    uint64_t offset_at = 20 + 8 + 8 + 1 + 16 + 8; /* ..., buffer table, parent_shape */
    assert_int_equal(right[offset_at], 2);
    right[offset_at] = 1;
    expect_damage(&sink, HURRAY_ERR_INVALID_LAYOUT, NULL);
    right[offset_at] = 2;
    uint8_t *parts = sink.bytes + descriptor_at(&sink, "z.0");
    parts[20] = 5; /* the head's shape, so that it is no longer what its members call their parent's */
    expect_damage(&sink, HURRAY_ERR_INVALID_LAYOUT, "a.right");
    parts[20] = 4;
    parts[20 + 8 + 8] = HURRAY_RULE_OVERLAY;
    parts[20 + 8 + 8 + 1] = HURRAY_COMBINE_ADD;
    expect_damage(&sink, HURRAY_ERR_INVALID_LAYOUT, "a.right");
    script_free(&sink);
}

static void wrong_trees_are_refused_before_a_byte(void **state) {
    (void)state;
    static Tree tree;
    ScriptTransport sink;
    script_sink(&sink);
    HurrayFileWriter *writer = open_writer(&sink, 0);
    HurrayDescriptor *descriptor = plain(), *wrong = half(1);
    HurrayIoSlice slice = {numbers, 16};
    assert_int_equal(hurray_file_writer_write_tensor(writer, "z.1", 3, descriptor, &slice, 1), HURRAY_OK);
    size_t before = sink.len;
    make_tree(&tree);
    assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_ERR_DUPLICATE_NAME); /* z.1 is taken */
    tree.nodes[4].name = "b";
    tree.nodes[4].name_len = 1;
    tree.nodes[3].name = "b"; /* twice in the tree itself */
    tree.nodes[3].name_len = 1;
    assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_ERR_DUPLICATE_NAME);
    tree.nodes[3].name = NULL;
    tree.nodes[3].name_len = 0;
    assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count - 1), HURRAY_ERR_INVALID_LAYOUT);
    tree.nodes[1].member_count = 3;
    assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_ERR_INVALID_LAYOUT);
    tree.nodes[1].member_count = 2;
    const HurrayDescriptor *right = tree.nodes[2].descriptor;
    tree.nodes[2].descriptor = wrong;
    assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_ERR_INVALID_LAYOUT);
    tree.nodes[2].descriptor = right;
    tree.nodes[4].name = "\xFF";
    assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_ERR_INVALID_NAME);
    tree.nodes[4].name = "b";
    assert_int_equal(hurray_file_writer_write_composite(writer, NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(sink.len, before);
    assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_OK);
    assert_int_equal(hurray_file_writer_finish(writer, NULL, 0), HURRAY_OK);
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    hurray_descriptor_destroy(wrong);
    clear_tree(&tree);
    script_free(&sink);
}

static void a_sink_that_fails_before_the_head_is_asked_again_and_after_it_is_closed(void **state) {
    (void)state;
    static Tree tree;
    make_tree(&tree);
    ScriptTransport whole;
    script_sink(&whole);
    HurrayFileWriter *writer = open_writer(&whole, 0);
    uint64_t calls = whole.writes;
    assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_OK);
    calls = whole.writes - calls;
    assert_int_equal(hurray_file_writer_finish(writer, NULL, 0), HURRAY_OK);
    hurray_file_writer_destroy(&writer);
    for (uint64_t k = 1; k <= calls; k++) {
        ScriptTransport sink;
        script_sink(&sink);
        writer = open_writer(&sink, 0);
        script_fail(&sink, k, -1234, 0);
        HurrayStatus status = hurray_file_writer_write_composite(writer, tree.nodes, tree.count);
        if (k == 1) {
            assert_int_equal(status, -1234);
            assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_OK);
            assert_int_equal(hurray_file_writer_finish(writer, NULL, 0), HURRAY_OK);
            assert_int_equal(sink.len, whole.len);
            assert_memory_equal(sink.bytes, whole.bytes, whole.len);
        } else {
            assert_int_equal(status, HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(hurray_file_writer_last_error(writer)->cause, -1234);
            assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(hurray_file_writer_finish(writer, NULL, 0), HURRAY_ERR_SINK_CLOSED);
        }
        hurray_file_writer_destroy(&writer);
        script_free(&sink);
    }
    clear_tree(&tree);
    script_free(&whole);
}

static void members_written_one_by_one_are_checked_as_they_come(void **state) {
    (void)state;
    ScriptTransport sink, source;
    HurrayItem *item = NULL;
    HurrayDescriptor *head = halves(), *left = half(0), *right = half(2), *wrong = half(1);
    HurrayIoSlice slice = {numbers, 8};
    script_sink(&sink);
    HurrayFileWriter *writer = open_writer(&sink, 0);
    assert_int_equal(hurray_file_writer_write_tensor(writer, "h", 1, head, NULL, 0), HURRAY_OK);
    assert_int_equal(hurray_file_writer_write_tensor(writer, "l", 1, left, &slice, 1), HURRAY_OK);
    assert_int_equal(hurray_file_writer_write_tensor(writer, "r", 1, wrong, &slice, 1), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hurray_file_writer_finish(writer, NULL, 0), HURRAY_ERR_TORN_COMPOSITE);
    assert_int_equal(hurray_file_writer_write_tensor(writer, "r", 1, right, &slice, 1), HURRAY_OK);
    assert_int_equal(hurray_file_writer_finish(writer, NULL, 0), HURRAY_OK);
    hurray_file_writer_destroy(&writer);
    script_source(&source, sink.bytes, sink.len);
    HurrayFileReader *reader = open_reader(&source, 0);
    assert_int_equal(hurray_file_reader_read_composite(reader, "h", 1, &item), HURRAY_OK);
    hurray_item_destroy(&item);
    hurray_file_reader_destroy(&reader);
    HurrayDescriptor *all[] = {head, left, right, wrong};
    for (int i = 0; i < 4; i++) hurray_descriptor_destroy(all[i]);
    script_free(&source);
    script_free(&sink);
}

static void sixty_four_nested_heads_pass_and_no_more(void **state) {
    (void)state;
    static Tree tree;
    ScriptTransport sink, source;
    HurrayItem *item = NULL;
    uint64_t count = 0;
    tree.count = 0;
    for (int i = 0; i < 64; i++) add_head(&tree, group(1), 1, i ? NULL : "d");
    add_tensor(&tree, plain(), numbers, NULL);
    script_sink(&sink);
    HurrayFileWriter *writer = open_writer(&sink, 0);
    assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_OK);
    HurrayDescriptor *outer = group(1);
    tree.nodes[0].name = "e";
    for (size_t i = 1; i < tree.count; i++) tree.nodes[i].name = NULL;
    assert_int_equal(hurray_file_writer_write_tensor(writer, "outer", 5, outer, NULL, 0), HURRAY_OK); /* with this it would be 65 */
    assert_int_equal(hurray_file_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_ERR_TOO_DEEP);
    HurrayIoSlice slice = {numbers, 16};
    HurrayDescriptor *last = plain();
    assert_int_equal(hurray_file_writer_write_tensor(writer, "last", 4, last, &slice, 1), HURRAY_OK);
    assert_int_equal(hurray_file_writer_finish(writer, NULL, 0), HURRAY_OK);
    hurray_file_writer_destroy(&writer);
    script_source(&source, sink.bytes, sink.len);
    HurrayFileReader *reader = open_reader(&source, 0);
    assert_int_equal(hurray_file_reader_read_composite(reader, "d", 1, &item), HURRAY_OK);
    assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
    assert_int_equal(count, 65);
    hurray_item_destroy(&item);
    hurray_file_reader_destroy(&reader);
    reader = open_reader(&source, 63);
    assert_int_equal(hurray_file_reader_read_composite(reader, "d", 1, &item), HURRAY_ERR_TOO_DEEP);
    hurray_file_reader_destroy(&reader);
    hurray_descriptor_destroy(outer);
    hurray_descriptor_destroy(last);
    clear_tree(&tree);
    script_free(&source);
    script_free(&sink);
}

static void write_stream(ScriptTransport *sink, size_t *tree_end) {
    static Tree tree;
    HurrayWriter *writer = NULL;
    HurrayDescriptor *descriptor = plain();
    HurrayIoSlice slice = {numbers, 16};
    script_sink(sink);
    HurrayTransport transport = script_transport(sink);
    make_tree(&tree);
    assert_int_equal(hurray_writer_new(&transport, NULL, &writer), HURRAY_OK);
    assert_int_equal(hurray_writer_write_composite(writer, tree.nodes, tree.count), HURRAY_OK);
    *tree_end = sink->len;
    assert_int_equal(hurray_writer_write_tensor(writer, descriptor, &slice, 1), HURRAY_OK);
    assert_int_equal(hurray_writer_finish(writer), HURRAY_OK);
    hurray_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    clear_tree(&tree);
}

static HurrayReader *open_stream(ScriptTransport *source, uint32_t depth) {
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    HurrayReader *reader = NULL;
    HurrayTransport transport = script_transport(source);
    options.max_composite_depth = depth;
    assert_int_equal(hurray_reader_new(&transport, &options, &reader), HURRAY_OK);
    return reader;
}

static void a_stream_cut_anywhere_is_torn_or_truncated_never_whole(void **state) {
    (void)state;
    ScriptTransport sink;
    size_t tree_end = 0;
    unsigned torn = 0;
    write_stream(&sink, &tree_end);
    for (size_t cut = 1; cut < tree_end; cut++) {
        ScriptTransport source;
        HurrayItem *item = NULL;
        script_source(&source, sink.bytes, cut);
        HurrayReader *reader = open_stream(&source, 0);
        HurrayStatus status = hurray_reader_next_item(reader, &item);
        assert_true(status == HURRAY_ERR_TORN_COMPOSITE || status == HURRAY_ERR_TRUNCATED);
        assert_null(item);
        if (status == HURRAY_ERR_TORN_COMPOSITE) {
            torn++;
            assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_END_OF_STREAM);
        }
        hurray_reader_destroy(&reader);
        script_free(&source);
    }
    assert_int_equal(torn, 5); /* behind each of the first five nodes */
    script_free(&sink);
}

static void a_wrong_tree_in_a_stream_costs_its_frames_only(void **state) {
    (void)state;
    ScriptTransport sink, source;
    HurrayItem *item = NULL;
    uint64_t count = 0;
    size_t tree_end = 0;
    write_stream(&sink, &tree_end);
    /* Too deep at the second node: what follows are a half, a half, a tensor, an empty group, a tensor. */
    script_source(&source, sink.bytes, sink.len);
    HurrayReader *reader = open_stream(&source, 1);
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_ERR_TOO_DEEP);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_OK);
        assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
        assert_int_equal(count, 1);
        hurray_item_destroy(&item);
    }
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_END_OF_STREAM);
    hurray_reader_destroy(&reader);
    /* The flat view of the same bytes knows no depth. */
    script_reset(&source);
    reader = open_stream(&source, 1);
    HurrayTensor *tensor = NULL;
    for (int i = 0; i < 7; i++) {
        assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_OK);
        hurray_tensor_destroy(&tensor);
    }
    assert_int_equal(hurray_reader_next_tensor(reader, &tensor), HURRAY_END_OF_STREAM);
    hurray_reader_destroy(&reader);
    script_free(&source);
    script_free(&sink);
}

static void a_stream_goes_on_after_a_failing_transport_inside_a_composite(void **state) {
    (void)state;
    ScriptTransport sink, source;
    size_t tree_end = 0;
    write_stream(&sink, &tree_end);
    for (uint64_t k = 1;; k++) {
        HurrayItem *item = NULL;
        uint64_t count = 0;
        script_source(&source, sink.bytes, sink.len);
        HurrayReader *reader = open_stream(&source, 0);
        script_fail(&source, k, -1001, 0);
        HurrayStatus status = hurray_reader_next_item(reader, &item);
        bool failed = status != HURRAY_OK;
        if (failed) {
            assert_int_equal(status, -1001);
            assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_OK);
        }
        assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
        assert_int_equal(count, 6);
        hurray_item_destroy(&item);
        hurray_reader_destroy(&reader);
        script_free(&source);
        if (!failed) break;
    }
    script_free(&sink);
}

static void a_failing_allocation_inside_a_composite_may_be_tried_again(void **state) {
    (void)state;
    ScriptTransport sink;
    size_t tree_end = 0;
    write_stream(&sink, &tree_end);
    for (uint64_t k = 1, failed = 1; failed; k++) {
        ScriptTransport source;
        FailAlloc alloc;
        HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
        HurrayReader *reader = NULL;
        HurrayItem *item = NULL;
        uint64_t count = 0;
        script_source(&source, sink.bytes, sink.len);
        HurrayTransport transport = script_transport(&source);
        fail_alloc_init(&alloc);
        options.allocator = &alloc.allocator;
        assert_int_equal(hurray_reader_new(&transport, &options, &reader), HURRAY_OK);
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hurray_reader_next_item(reader, &item);
        failed = status != HURRAY_OK;
        if (failed) {
            assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
            assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_OK);
        }
        assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
        assert_int_equal(count, 6);
        hurray_item_destroy(&item);
        hurray_reader_destroy(&reader);
        fail_alloc_assert_empty(&alloc);
        script_free(&source);
    }
    script_free(&sink);
}

static void a_hostile_count_in_a_small_file_takes_no_memory(void **state) {
    (void)state;
    ScriptTransport sink, source;
    FailAlloc alloc;
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    HurrayFileReader *reader = NULL;
    HurrayItem *item = NULL;
    write_file(&sink, 0);
    uint8_t *head = sink.bytes + descriptor_at(&sink, "z");
    memset(head + 40, 0xFF, 4);
    head[40] = 0xFE; /* 4,294,967,294 members */
    script_source(&source, sink.bytes, sink.len);
    HurrayTransport transport = script_transport(&source);
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    assert_int_equal(hurray_file_reader_new_ex(&transport, &options, &reader, NULL), HURRAY_OK);
    assert_int_equal(hurray_file_reader_read_composite(reader, "z", 1, &item), HURRAY_ERR_TORN_COMPOSITE);
    assert_true(alloc.peak_bytes < 65536);
    hurray_file_reader_destroy(&reader);
    fail_alloc_assert_empty(&alloc);
    script_free(&source);
    script_free(&sink);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nested_composite_comes_back_whatever_the_index_order),
        cmocka_unit_test(a_reader_bounds_the_depth_and_goes_on),
        cmocka_unit_test(a_damaged_file_composite_is_named_and_spoils_nothing_else),
        cmocka_unit_test(wrong_trees_are_refused_before_a_byte),
        cmocka_unit_test(a_sink_that_fails_before_the_head_is_asked_again_and_after_it_is_closed),
        cmocka_unit_test(members_written_one_by_one_are_checked_as_they_come),
        cmocka_unit_test(sixty_four_nested_heads_pass_and_no_more),
        cmocka_unit_test(a_stream_cut_anywhere_is_torn_or_truncated_never_whole),
        cmocka_unit_test(a_wrong_tree_in_a_stream_costs_its_frames_only),
        cmocka_unit_test(a_stream_goes_on_after_a_failing_transport_inside_a_composite),
        cmocka_unit_test(a_failing_allocation_inside_a_composite_may_be_tried_again),
        cmocka_unit_test(a_hostile_count_in_a_small_file_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
