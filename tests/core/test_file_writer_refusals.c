#include "core/file_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/composites.h"
#include "support/file_core.h"

static void what_cannot_be_written_is_refused_before_a_byte(void **state) {
    (void)state;
    Scenario s;
    scenario_init(&s);
    FileSink *want = file_core_all(&s, 0, 0), *got = calloc(1, sizeof *got);
    HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
    const ScenarioItem *dense = &s.items[0];
    HurrayIoSlice wrong[2] = {{dense->slices[0].ptr, 299}, {dense->slices[0].ptr, 300}}, none = {NULL, 300};
    char *longest = malloc(65536);
    memset(longest, 'n', 65536);
    assert_int_equal(file_core_begin(core, &s, 1, false), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(file_core_begin(core, &s, FILE_ITEMS - 1, false), HURRAY_ERR_WRONG_STATE);
    file_core_items(core, &s, got, 0, 2, false);
    assert_int_equal(hurray_file_writer_core_begin_header(core), HURRAY_ERR_WRONG_STATE);
    const struct {
        const char *name;
        size_t len;
        const HurrayDescriptor *descriptor;
        const HurrayIoSlice *slices;
        size_t count;
        HurrayStatus want;
    } cases[] = {
        {"dense", 5, dense->descriptor, dense->slices, 1, HURRAY_ERR_DUPLICATE_NAME},
        {"", 0, dense->descriptor, dense->slices, 1, HURRAY_ERR_INVALID_NAME},
        {NULL, 0, dense->descriptor, dense->slices, 1, HURRAY_ERR_INVALID_NAME},
        {NULL, 4, dense->descriptor, dense->slices, 1, HURRAY_ERR_NULL_POINTER},
        {longest, 65536, dense->descriptor, dense->slices, 1, HURRAY_ERR_INVALID_NAME},
        {"\xC3", 1, dense->descriptor, dense->slices, 1, HURRAY_ERR_INVALID_NAME},
        {"x", 1, NULL, dense->slices, 1, HURRAY_ERR_NULL_POINTER},
        {"x", 1, dense->descriptor, wrong, 1, HURRAY_ERR_INVALID_LAYOUT},
        {"x", 1, dense->descriptor, wrong, 2, HURRAY_ERR_INVALID_LAYOUT},
        {"x", 1, dense->descriptor, &none, 1, HURRAY_ERR_NULL_POINTER},
        {"x", 1, dense->descriptor, NULL, 1, HURRAY_ERR_NULL_POINTER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        HurrayStep step;
        assert_int_equal(
            hurray_file_writer_core_begin_tensor(core, cases[i].name, cases[i].len, cases[i].descriptor, cases[i].slices, cases[i].count),
            cases[i].want);
        assert_true(hurray_file_writer_core_last_error(core)->message[0] != 0);
        assert_int_equal(file_core_unusable(core), HURRAY_USABLE);
        assert_int_equal(hurray_file_writer_core_step(core, &step), HURRAY_OK);
        assert_int_equal(step.kind, HURRAY_STEP_READY);
    }
    assert_string_equal(hurray_file_writer_core_last_error(core)->message, "");
    file_core_items(core, &s, got, 2, FILE_ITEMS, false);
    file_core_same(want, got);
    assert_int_equal(file_core_begin(core, &s, 1, false), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(file_core_begin(core, &s, FILE_ITEMS - 1, false), HURRAY_ERR_WRONG_STATE);
    hurray_file_writer_core_destroy(&core);
    free(longest);
    free(want);
    free(got);
    scenario_clear(&s);
}

static void a_composite_is_checked_whole_before_its_head_goes_out(void **state) {
    (void)state;
    Scenario s;
    FileSink *sink = calloc(1, sizeof *sink);
    scenario_init(&s);
    HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
    file_core_items(core, &s, sink, 0, 2, false);
    size_t before = sink->len;
    HurrayCompositeNode nodes[3];
    const HurrayCompositeNode *good = s.items[3].nodes;
    const struct {
        int node;
        const char *name;
        HurrayStatus want;
    } names[] = {{0, "dense", HURRAY_ERR_DUPLICATE_NAME},
                 {1, "dense", HURRAY_ERR_DUPLICATE_NAME},
                 {2, "partition", HURRAY_ERR_DUPLICATE_NAME},
                 {2, "partition.0", HURRAY_ERR_DUPLICATE_NAME},
                 {1, "partition.1", HURRAY_ERR_DUPLICATE_NAME},
                 {1, "\xFF", HURRAY_ERR_INVALID_NAME},
                 {1, "", HURRAY_ERR_INVALID_NAME}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        memcpy(nodes, good, sizeof nodes);
        nodes[names[i].node].name = names[i].name;
        nodes[names[i].node].name_len = strlen(names[i].name);
        assert_int_equal(hurray_file_writer_core_begin_composite(core, nodes, 3), names[i].want);
        assert_true(hurray_file_writer_core_last_error(core)->message[0] != 0);
    }
    assert_int_equal(hurray_file_writer_core_begin_composite(core, good, 2), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hurray_file_writer_core_begin_composite(core, NULL, 3), HURRAY_ERR_NULL_POINTER);
    memcpy(nodes, good, sizeof nodes);
    nodes[2] = nodes[1]; /* the same half twice */
    assert_int_equal(hurray_file_writer_core_begin_composite(core, nodes, 3), HURRAY_ERR_INVALID_LAYOUT);
    memcpy(nodes, good, sizeof nodes);
    nodes[0].name = NULL;
    nodes[0].name_len = 0;
    assert_int_equal(hurray_file_writer_core_begin_composite(core, nodes, 3), HURRAY_ERR_INVALID_NAME);
    assert_int_equal(file_core_unusable(core), HURRAY_USABLE);
    memcpy(nodes, good, sizeof nodes);
    nodes[1].name = "own name";
    nodes[1].name_len = 8;
    assert_int_equal(hurray_file_writer_core_begin_composite(core, nodes, 3), HURRAY_OK);
    file_core_drain(core, sink);
    assert_true(sink->len > before);
    assert_int_equal(file_core_begin(core, &s, FILE_ITEMS - 1, false), HURRAY_OK);
    file_core_drain(core, sink);
    FileTable table;
    file_table_open(sink->bytes, sink->len, &table);
    assert_int_equal(table.count, 4);
    assert_true(file_table_name_is(&table.rows[2], "own name"));
    assert_true(file_table_name_is(&table.rows[3], "partition.1"));
    hry_kv_clear(&table.kv);
    hurray_file_writer_core_destroy(&core);
    free(sink);
    scenario_clear(&s);
}

static void members_of_a_head_written_alone_are_checked_as_they_come(void **state) {
    (void)state;
    static const uint64_t whole[] = {4, 8}, half[] = {4, 4}, left[] = {0, 0}, right[] = {0, 4};
    FileSink *sink = calloc(1, sizeof *sink);
    HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
    HurrayDescriptor *head = make_head(HURRAY_RULE_PARTITION, 0, HURRAY_TYPE_UINT8, 2, whole, 2, NULL, NULL);
    HurrayDescriptor *first = make_member(HURRAY_TYPE_UINT8, 2, half, whole, left, NO_ROLE);
    HurrayDescriptor *second = make_member(HURRAY_TYPE_UINT8, 2, half, whole, right, NO_ROLE);
    HurrayDescriptor *stranger = make_member(HURRAY_TYPE_UINT8, 2, half, NULL, NULL, NO_ROLE);
    HurrayIoSlice slice = {"0123456789abcdef", 16};
    assert_int_equal(hurray_file_writer_core_begin_header(core), HURRAY_OK);
    file_core_drain(core, sink);
    assert_int_equal(hurray_file_writer_core_begin_tensor(core, "h", 1, head, NULL, 0), HURRAY_OK);
    assert_int_equal(hurray_file_writer_core_begin_finish(core, NULL, 0), HURRAY_OK); /* the head was not written: nothing is open */
    assert_int_equal(hurray_file_writer_core_begin_tensor(core, "h", 1, head, NULL, 0), HURRAY_OK);
    file_core_drain(core, sink);
    assert_int_equal(hurray_file_writer_core_begin_finish(core, NULL, 0), HURRAY_ERR_TORN_COMPOSITE);
    assert_int_equal(hurray_file_writer_core_begin_tensor(core, "s", 1, stranger, &slice, 1), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hurray_file_writer_core_begin_tensor(core, "a", 1, first, &slice, 1), HURRAY_OK);
    file_core_drain(core, sink);
    assert_int_equal(hurray_file_writer_core_begin_tensor(core, "b", 1, first, &slice, 1), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hurray_file_writer_core_begin_finish(core, NULL, 0), HURRAY_ERR_TORN_COMPOSITE);
    assert_int_equal(file_core_unusable(core), HURRAY_USABLE);
    assert_int_equal(hurray_file_writer_core_begin_tensor(core, "b", 1, second, &slice, 1), HURRAY_OK);
    file_core_drain(core, sink);
    assert_int_equal(hurray_file_writer_core_begin_tensor(core, "s", 1, stranger, &slice, 1), HURRAY_OK);
    file_core_drain(core, sink);
    assert_int_equal(hurray_file_writer_core_begin_finish(core, NULL, 0), HURRAY_OK);
    file_core_drain(core, sink);
    hurray_descriptor_destroy(head);
    hurray_descriptor_destroy(first);
    hurray_descriptor_destroy(second);
    hurray_descriptor_destroy(stranger);
    hurray_file_writer_core_destroy(&core);
    free(sink);
}

static void only_producer_synced_goes_to_another_machine(void **state) {
    (void)state;
    static const uint64_t shape[] = {16};
    HurrayBufferHandle handle = {.byte_size = 16, .alignment = 64, .device_tag = HURRAY_DEVICE_CUDA, .sync_mode = HURRAY_SYNC_EVENT};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    spec.rank = 1;
    spec.shape = shape;
    spec.element_type = HURRAY_TYPE_UINT8;
    spec.buffers = &handle;
    spec.buffer_count = 1;
    HurrayDescriptor *descriptor = make_from_spec(&spec);
    HurrayIoSlice slice = {"0123456789abcdef", 16};
    for (int cross = 0; cross < 2; cross++) {
        FileSink *sink = calloc(1, sizeof *sink);
        HurrayFileWriterCore *core = file_core_make(cross ? HURRAY_WRITE_CROSS_MACHINE : 0, 0, NULL);
        assert_int_equal(hurray_file_writer_core_begin_header(core), HURRAY_OK);
        file_core_drain(core, sink);
        assert_int_equal(hurray_file_writer_core_begin_tensor(core, "t", 1, descriptor, &slice, 1),
                         cross ? HURRAY_ERR_INVALID_SYNC_MODE : HURRAY_OK);
        if (cross) assert_int_equal(hurray_file_writer_core_last_error(core)->buffer_index, 0);
        hurray_file_writer_core_destroy(&core);
        free(sink);
    }
    hurray_descriptor_destroy(descriptor);
}

static void metadata_is_checked_before_the_footer_goes_out(void **state) {
    (void)state;
    Scenario s;
    scenario_init(&s);
    FileSink *want = file_core_all(&s, 0, 0), *got = calloc(1, sizeof *got);
    HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
    file_core_items(core, &s, got, 0, FILE_ITEMS - 1, false);
    HurrayKvEntry twice[] = {s.kv[0], s.kv[0]}, nothing = {.key = NULL, .key_len = 3};
    assert_int_equal(hurray_file_writer_core_begin_finish(core, twice, 2), HURRAY_ERR_INVALID_KV);
    assert_int_equal(hurray_file_writer_core_begin_finish(core, NULL, 2), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_begin_finish(core, &nothing, 1), HURRAY_ERR_NULL_POINTER);
    file_core_items(core, &s, got, FILE_ITEMS - 1, FILE_ITEMS, false);
    file_core_same(want, got);
    hurray_file_writer_core_destroy(&core);
    free(want);
    free(got);
    scenario_clear(&s);
}

static void reports_and_lending_are_held_to_what_was_offered(void **state) {
    (void)state;
    Scenario s;
    scenario_init(&s);
    FileSink *want = file_core_all(&s, 0, 0), *got = calloc(1, sizeof *got);
    HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
    HurrayIoSlice slices[8];
    const uint8_t *src;
    HurrayStep step;
    size_t len, count = 8;
    assert_int_equal(hurray_file_writer_core_report_written(core, 1), HURRAY_ERR_INVALID_REPORT);
    assert_int_equal(hurray_file_writer_core_output_src(core, &src, &len), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_file_writer_core_supply(core, "x", 1), HURRAY_ERR_WRONG_STATE);
    file_core_items(core, &s, got, 0, 1, false);
    assert_int_equal(file_core_begin(core, &s, 1, false), HURRAY_OK);
    assert_int_equal(hurray_file_writer_core_step(core, &step), HURRAY_OK);
    assert_int_equal(hurray_file_writer_core_report_written(core, 0), HURRAY_ERR_INVALID_REPORT);
    assert_int_equal(hurray_file_writer_core_report_written(core, step.len + 1), HURRAY_ERR_INVALID_REPORT);
    assert_int_equal(hurray_file_writer_core_output_slices(core, slices, &count), HURRAY_OK);
    assert_int_equal(count, 3); /* descriptor with padding, payload, padding to 8 */
    assert_int_equal(hurray_file_writer_core_report_written(core, slices[0].len + slices[1].len + slices[2].len + 1),
                     HURRAY_ERR_INVALID_REPORT);
    for (size_t i = 0; i < 2; i++) file_core_take(got, slices[i].ptr, slices[i].len);
    assert_int_equal(hurray_file_writer_core_report_written(core, slices[0].len + slices[1].len), HURRAY_OK);
    assert_int_equal(hurray_file_writer_core_report_written(core, slices[2].len + 1), HURRAY_ERR_INVALID_REPORT);
    file_core_drain(core, got);
    assert_int_equal(file_core_begin(core, &s, 2, true), HURRAY_OK);
    got->payload = s.items[1].slices;
    assert_int_equal(hurray_file_writer_core_supply(core, "x", 1), HURRAY_ERR_WRONG_STATE);
    while (hurray_file_writer_core_step(core, &step) == HURRAY_OK && step.kind == HURRAY_STEP_OUTPUT) file_core_some(core, &step, got);
    assert_int_equal(step.kind, HURRAY_STEP_PAYLOAD);
    assert_int_equal(step.reason, 0);
    assert_int_equal(step.offset, 0);
    count = 8;
    assert_int_equal(hurray_file_writer_core_output_slices(core, slices, &count), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_file_writer_core_supply(core, NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_supply(core, "x", 0), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_file_writer_core_supply(core, "x", (size_t)step.len + 1), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_file_writer_core_supply(core, got->payload[0].ptr, 5), HURRAY_OK);
    assert_int_equal(hurray_file_writer_core_supply(core, "x", 1), HURRAY_ERR_WRONG_STATE);
    count = 8;
    assert_int_equal(hurray_file_writer_core_output_slices(core, slices, &count), HURRAY_OK);
    assert_int_equal(count, 1);
    assert_int_equal(slices[0].len, 5);
    file_core_drain(core, got);
    file_core_items(core, &s, got, 3, FILE_ITEMS, false);
    file_core_same(want, got);
    hurray_file_writer_core_destroy(&core);
    free(want);
    free(got);
    scenario_clear(&s);
}

static void options_and_null_pointers_are_checked(void **state) {
    (void)state;
    HurrayFileWriterOptions options = HURRAY_FILE_WRITER_OPTIONS_INIT;
    HurrayFileWriterCore *core = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayStep step;
    const uint8_t *src;
    size_t len = 1;
    uint32_t reason;
    HurrayIoSlice slice;
    const struct {
        uint32_t flags, alignment;
        HurrayStatus want;
    } cases[] = {{8, 0, HURRAY_ERR_UNSUPPORTED},
                 {0, 2048, HURRAY_ERR_INVALID_ARGUMENT},
                 {0, 12288, HURRAY_ERR_INVALID_ARGUMENT},
                 {0, 4194304, HURRAY_ERR_INVALID_ARGUMENT},
                 {7, 2097152, HURRAY_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        options.flags = cases[i].flags;
        options.data_buffer_alignment = cases[i].alignment;
        assert_int_equal(hurray_file_writer_core_new(&options, &core, &error), cases[i].want);
    }
    HurrayFileWriterOptions label = HURRAY_FILE_WRITER_OPTIONS_INIT;
    label.label_len = 3;
    HurrayFileWriterCore *other = NULL;
    assert_int_equal(hurray_file_writer_core_new(&label, &other, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_new(NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_begin_header(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_begin_tensor(NULL, "a", 1, NULL, NULL, 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_begin_composite(NULL, NULL, 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_begin_finish(NULL, NULL, 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_step(NULL, &step), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_step(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_output_src(NULL, &src, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_output_src(core, NULL, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_output_slices(core, &slice, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_output_slices(core, NULL, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_supply(NULL, "a", 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_report_written(NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_report_sink_closed(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_abandon(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_poison(NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_is_unusable(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_writer_core_is_unusable(NULL, &reason), HURRAY_ERR_NULL_POINTER);
    assert_null(hurray_file_writer_core_last_error(NULL));
    assert_int_equal(hurray_file_writer_core_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    hurray_file_writer_core_destroy(&core);
    assert_int_equal(hurray_file_writer_core_destroy(&core), HURRAY_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_written_is_refused_before_a_byte),
        cmocka_unit_test(a_composite_is_checked_whole_before_its_head_goes_out),
        cmocka_unit_test(members_of_a_head_written_alone_are_checked_as_they_come),
        cmocka_unit_test(only_producer_synced_goes_to_another_machine),
        cmocka_unit_test(metadata_is_checked_before_the_footer_goes_out),
        cmocka_unit_test(reports_and_lending_are_held_to_what_was_offered),
        cmocka_unit_test(options_and_null_pointers_are_checked),
    };
    return cmocka_run_group_tests_name("core/file_writer_refusals", tests, NULL, NULL);
}
