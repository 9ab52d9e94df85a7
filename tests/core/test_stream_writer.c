#include "core/stream_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/composites.h"
#include "support/fail_alloc.h"
#include "support/write_scenario.h"

typedef struct Sink {
    uint8_t bytes[16384];
    size_t len, most;
    bool vectored;
    const HurrayIoSlice *payload;
} Sink;

static HurrayStreamWriterCore *make(uint32_t flags, const HurrayAllocator *allocator) {
    HurrayWriterOptions options = HURRAY_WRITER_OPTIONS_INIT;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayStreamWriterCore *core = NULL;
    options.flags = flags;
    options.allocator = allocator;
    options.label = "pipe";
    options.label_len = 4;
    if (hurray_stream_writer_core_new(&options, &core, &error) != HURRAY_OK) fail_msg("%s", error.message);
    return core;
}

static HurrayStatus begin(HurrayStreamWriterCore *core, const Scenario *s, size_t i, bool ask) {
    const ScenarioItem *item = &s->items[i];
    if (item->kind == SCENARIO_COMPOSITE) return hurray_stream_writer_core_begin_composite(core, item->nodes, item->node_count);
    return hurray_stream_writer_core_begin_tensor(core, item->descriptor, ask ? NULL : item->slices, ask ? 0 : item->slice_count);
}

static void write_some(HurrayStreamWriterCore *core, Sink *sink) {
    HurrayIoSlice slices[4];
    size_t count = sink->vectored ? 4 : 1, left = sink->most ? sink->most : SIZE_MAX, taken = 0;
    if (sink->vectored) {
        assert_int_equal(hurray_stream_writer_core_output_slices(core, slices, &count), HURRAY_OK);
    } else {
        const uint8_t *src;
        assert_int_equal(hurray_stream_writer_core_output_src(core, &src, &slices[0].len), HURRAY_OK);
        slices[0].ptr = src;
    }
    for (size_t i = 0; i < count && left; i++) {
        size_t n = slices[i].len < left ? slices[i].len : left;
        assert_true(sink->len + n <= sizeof sink->bytes);
        memcpy(sink->bytes + sink->len, slices[i].ptr, n);
        sink->len += n;
        taken += n;
        left -= n;
    }
    assert_int_equal(hurray_stream_writer_core_report_written(core, taken), HURRAY_OK);
}

static void drain(HurrayStreamWriterCore *core, Sink *sink) {
    for (;;) {
        HurrayStep step;
        assert_int_equal(hurray_stream_writer_core_step(core, &step), HURRAY_OK);
        if (step.kind == HURRAY_STEP_OUTPUT)
            write_some(core, sink);
        else if (step.kind == HURRAY_STEP_PAYLOAD)
            assert_int_equal(hurray_stream_writer_core_supply(core, (const uint8_t *)sink->payload[step.reason].ptr + step.offset,
                                                              step.len > 7 ? 7 : (size_t)step.len),
                             HURRAY_OK);
        else {
            assert_int_equal(step.kind, HURRAY_STEP_ITEM_WRITTEN);
            return;
        }
    }
}

static void write_all(HurrayStreamWriterCore *core, const Scenario *s, Sink *sink, bool ask) {
    for (size_t i = 0; i < SCENARIO_ITEMS; i++) {
        sink->payload = s->items[i].slices;
        assert_int_equal(begin(core, s, i, ask), HURRAY_OK);
        drain(core, sink);
    }
}

static uint32_t unusable(const HurrayStreamWriterCore *core) {
    uint32_t reason = 99;
    assert_int_equal(hurray_stream_writer_core_is_unusable(core, &reason), HURRAY_OK);
    return reason;
}

/* The bytes by the format's definition: descriptor, buffers, descriptor, buffers. */
static void expect(const Scenario *s, Sink *sink) {
    memset(sink, 0, sizeof *sink);
    for (size_t i = 0; i < SCENARIO_ITEMS; i++) {
        const ScenarioItem *item = &s->items[i];
        size_t count = item->kind == SCENARIO_COMPOSITE ? item->node_count : 1;
        for (size_t n = 0; n < count; n++) {
            const HurrayDescriptor *descriptor = item->kind == SCENARIO_COMPOSITE ? item->nodes[n].descriptor : item->descriptor;
            const HurrayIoSlice *slices = item->kind == SCENARIO_COMPOSITE ? item->nodes[n].slices : item->slices;
            size_t len = sizeof sink->bytes - sink->len,
                   buffers = item->kind == SCENARIO_COMPOSITE ? item->nodes[n].slice_count : item->slice_count;
            assert_int_equal(hurray_descriptor_encode(descriptor, sink->bytes + sink->len, &len), HURRAY_OK);
            sink->len += len;
            for (size_t k = 0; k < buffers; k++) {
                if (slices[k].len) memcpy(sink->bytes + sink->len, slices[k].ptr, slices[k].len);
                sink->len += slices[k].len;
            }
        }
    }
}

static void a_stream_is_descriptors_and_buffers_and_nothing_else(void **state) {
    (void)state;
    static Sink want, got;
    const size_t sizes[] = {0, 1, 3, 64};
    Scenario s;
    scenario_init(&s);
    expect(&s, &want);
    for (size_t m = 0; m < 4; m++)
        for (int way = 0; way < 4; way++) {
            HurrayStreamWriterCore *core = make(0, NULL);
            memset(&got, 0, sizeof got);
            got.most = sizes[m];
            got.vectored = way & 1;
            write_all(core, &s, &got, way & 2);
            assert_int_equal(got.len, want.len);
            assert_memory_equal(got.bytes, want.bytes, want.len);
            hurray_stream_writer_core_destroy(&core);
        }
    scenario_clear(&s);
}

static void before_the_first_byte_an_item_may_be_dropped_after_it_never(void **state) {
    (void)state;
    static Sink want, got;
    Scenario s;
    HurrayStep step;
    scenario_init(&s);
    expect(&s, &want);
    for (size_t torn = 0; torn <= SCENARIO_ITEMS; torn++) {
        HurrayStreamWriterCore *core = make(0, NULL);
        memset(&got, 0, sizeof got);
        for (size_t i = 0; i < SCENARIO_ITEMS; i++) {
            got.payload = s.items[i].slices;
            assert_int_equal(begin(core, &s, i, true), HURRAY_OK);
            assert_int_equal(hurray_stream_writer_core_abandon(core), HURRAY_OK);
            assert_int_equal(begin(core, &s, i, false), HURRAY_OK);
            assert_int_equal(hurray_stream_writer_core_report_sink_closed(core), HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(begin(core, &s, i, true), HURRAY_OK);
            assert_int_equal(unusable(core), HURRAY_USABLE);
            if (i != torn) {
                drain(core, &got);
                continue;
            }
            got.most = 1;
            write_some(core, &got);
            got.most = 0;
            assert_int_equal(unusable(core), HURRAY_UNUSABLE_TORN_ITEM);
            assert_int_equal(begin(core, &s, i, false), HURRAY_ERR_UNUSABLE);
            assert_int_equal(hurray_stream_writer_core_step(core, &step), HURRAY_ERR_UNUSABLE);
            assert_string_equal(hurray_stream_writer_core_last_error(core)->source, "pipe");
            break;
        }
        if (torn == SCENARIO_ITEMS) assert_memory_equal(got.bytes, want.bytes, want.len);
        hurray_stream_writer_core_destroy(&core);
    }
    scenario_clear(&s);
}

static void a_failing_allocation_changes_nothing_and_may_be_repeated(void **state) {
    (void)state;
    static Sink want, got;
    Scenario s;
    scenario_init(&s);
    expect(&s, &want);
    bool failed = true;
    for (uint64_t k = 1; failed; k++) {
        FailAlloc alloc;
        HurrayWriterOptions options = HURRAY_WRITER_OPTIONS_INIT;
        HurrayStreamWriterCore *core = NULL;
        failed = false;
        memset(&got, 0, sizeof got);
        fail_alloc_init(&alloc);
        fail_alloc_arm(&alloc, k, 0);
        options.allocator = &alloc.allocator;
        if (hurray_stream_writer_core_new(&options, &core, NULL) != HURRAY_OK) {
            failed = true;
            core = make(0, &alloc.allocator);
        }
        for (size_t i = 0; i < SCENARIO_ITEMS; i++) {
            HurrayStatus status = begin(core, &s, i, false);
            if (status != HURRAY_OK) {
                assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
                failed = true;
                assert_int_equal(begin(core, &s, i, false), HURRAY_OK);
            }
            drain(core, &got);
        }
        assert_int_equal(got.len, want.len);
        assert_memory_equal(got.bytes, want.bytes, want.len);
        hurray_stream_writer_core_destroy(&core);
        fail_alloc_assert_empty(&alloc);
        assert_true(k < 1000);
    }
    scenario_clear(&s);
}

static void what_cannot_be_written_is_refused(void **state) {
    (void)state;
    static Sink sink;
    static const uint64_t shape[] = {16};
    Scenario s;
    scenario_init(&s);
    HurrayBufferHandle handle = {.byte_size = 16, .alignment = 64, .device_tag = HURRAY_DEVICE_CUDA, .sync_mode = HURRAY_SYNC_EVENT};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    spec.rank = 1;
    spec.shape = shape;
    spec.element_type = HURRAY_TYPE_UINT8;
    spec.buffers = &handle;
    spec.buffer_count = 1;
    HurrayDescriptor *event = make_from_spec(&spec);
    HurrayIoSlice slice = {"0123456789abcdef", 16};
    HurrayStreamWriterCore *core = make(HURRAY_WRITE_CROSS_MACHINE, NULL);
    HurrayError error;
    memset(&sink, 0, sizeof sink);
    assert_int_equal(hurray_stream_writer_core_begin_tensor(core, event, &slice, 1), HURRAY_ERR_INVALID_SYNC_MODE);
    assert_int_equal(hurray_stream_writer_core_begin_tensor(core, NULL, &slice, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_begin_tensor(core, s.items[0].descriptor, &slice, 1), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hurray_stream_writer_core_begin_composite(core, s.items[3].nodes, 2), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hurray_stream_writer_core_begin_composite(core, NULL, 2), HURRAY_ERR_NULL_POINTER);
    HurrayCompositeNode group[2] = {{.kind = HURRAY_NODE_COMPOSITE, .member_count = 1},
                                    {.descriptor = event, .slices = &slice, .slice_count = 1}};
    HurrayDescriptor *head = make_head(HURRAY_RULE_GROUP, 0, HURRAY_TYPE_UINT8, 1, shape, 1, NULL, NULL);
    group[0].descriptor = head;
    assert_int_equal(hurray_stream_writer_core_begin_composite(core, group, 2), HURRAY_ERR_INVALID_SYNC_MODE);
    assert_int_equal(hurray_stream_writer_core_last_error(core)->tensor_index, 1);
    assert_int_equal(hry_stream_writer_end(core, &error), HURRAY_OK);
    assert_int_equal(hurray_stream_writer_core_begin_tensor(core, group[0].descriptor, NULL, 0), HURRAY_OK);
    drain(core, &sink);
    assert_int_equal(hry_stream_writer_end(core, &error), HURRAY_ERR_TORN_COMPOSITE);
    assert_int_equal(hurray_stream_writer_core_begin_tensor(core, s.items[0].descriptor, s.items[0].slices, 1), HURRAY_OK);
    drain(core, &sink);
    assert_int_equal(hry_stream_writer_end(core, &error), HURRAY_OK);
    assert_int_equal(hurray_stream_writer_core_poison(core, HURRAY_UNUSABLE_POISONED), HURRAY_OK);
    assert_int_equal(hry_stream_writer_end(core, &error), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_stream_writer_core_begin_tensor(core, s.items[0].descriptor, s.items[0].slices, 1), HURRAY_ERR_UNUSABLE);
    hurray_descriptor_destroy(head);
    hurray_descriptor_destroy(event);
    hurray_stream_writer_core_destroy(&core);
    scenario_clear(&s);
}

/* Payload is never assembled: what is offered is the caller's own memory, which may go as soon as the item is written. */
static void slices_are_offered_where_they_lie_and_let_go_when_written(void **state) {
    (void)state;
    Scenario s;
    HurrayStep step;
    scenario_init(&s);
    HurrayStreamWriterCore *core = make(0, NULL);
    for (size_t i = 0; i < 2; i++) {
        const ScenarioItem *item = &s.items[i];
        HurrayIoSlice own[4];
        uint8_t *blocks[4];
        size_t offered[4] = {0};
        for (size_t k = 0; k < item->slice_count; k++) {
            blocks[k] = malloc(item->slices[k].len);
            assert_non_null(blocks[k]);
            memcpy(blocks[k], item->slices[k].ptr, item->slices[k].len);
            own[k] = (HurrayIoSlice){blocks[k], item->slices[k].len};
        }
        assert_int_equal(hurray_stream_writer_core_begin_tensor(core, item->descriptor, own, item->slice_count), HURRAY_OK);
        while (hurray_stream_writer_core_step(core, &step) == HURRAY_OK && step.kind == HURRAY_STEP_OUTPUT) {
            const uint8_t *src;
            size_t len;
            assert_int_equal(hurray_stream_writer_core_output_src(core, &src, &len), HURRAY_OK);
            if (len > 5) len = 5;
            for (size_t k = 0; k < item->slice_count; k++)
                if (offered[k] < own[k].len && src == blocks[k] + offered[k]) offered[k] += len;
            assert_int_equal(hurray_stream_writer_core_report_written(core, len), HURRAY_OK);
        }
        assert_int_equal(step.kind, HURRAY_STEP_ITEM_WRITTEN);
        for (size_t k = 0; k < item->slice_count; k++) {
            assert_int_equal(offered[k], own[k].len);
            free(blocks[k]);
        }
    }
    hurray_stream_writer_core_destroy(&core);
    scenario_clear(&s);
}

static void a_write_count_that_was_lost_poisons_by_name(void **state) {
    (void)state;
    Scenario s;
    scenario_init(&s);
    HurrayStreamWriterCore *core = make(0, NULL);
    assert_int_equal(begin(core, &s, 0, false), HURRAY_OK);
    assert_int_equal(hurray_stream_writer_core_poison(core, HURRAY_UNUSABLE_LOST_WRITE_COUNT), HURRAY_OK);
    assert_int_equal(unusable(core), HURRAY_UNUSABLE_LOST_WRITE_COUNT);
    assert_int_equal(begin(core, &s, 0, false), HURRAY_ERR_UNUSABLE);
    assert_non_null(strstr(hurray_stream_writer_core_last_error(core)->message, "LOST_WRITE_COUNT"));
    hurray_stream_writer_core_destroy(&core);
    scenario_clear(&s);
}

static void options_and_null_pointers_are_checked(void **state) {
    (void)state;
    HurrayWriterOptions options = HURRAY_WRITER_OPTIONS_INIT;
    HurrayStreamWriterCore *core = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayStep step;
    const uint8_t *src;
    size_t len = 1;
    uint32_t reason;
    HurrayIoSlice slice;
    options.flags = HURRAY_WRITE_SORTED_INDEX;
    assert_int_equal(hurray_stream_writer_core_new(&options, &core, &error), HURRAY_ERR_UNSUPPORTED);
    options.flags = 0;
    options.label_len = 1;
    assert_int_equal(hurray_stream_writer_core_new(&options, &core, &error), HURRAY_ERR_NULL_POINTER);
    options.struct_size = 4;
    assert_int_equal(hurray_stream_writer_core_new(&options, &core, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_stream_writer_core_new(NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_new(NULL, &core, &error), HURRAY_OK);
    assert_int_equal(hurray_stream_writer_core_begin_tensor(NULL, NULL, NULL, 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_begin_composite(NULL, NULL, 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_step(NULL, &step), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_step(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_step(core, &step), HURRAY_OK);
    assert_int_equal(step.kind, HURRAY_STEP_READY);
    assert_int_equal(hurray_stream_writer_core_output_src(NULL, &src, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_output_src(core, &src, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_output_slices(NULL, &slice, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_output_slices(core, NULL, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_output_slices(core, &slice, &len), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_stream_writer_core_supply(NULL, "a", 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_supply(core, "a", 1), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_stream_writer_core_report_written(NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_report_written(core, 1), HURRAY_ERR_INVALID_REPORT);
    assert_int_equal(hurray_stream_writer_core_report_sink_closed(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_abandon(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_poison(NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_is_unusable(NULL, &reason), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_stream_writer_core_is_unusable(core, NULL), HURRAY_ERR_NULL_POINTER);
    assert_null(hurray_stream_writer_core_last_error(NULL));
    assert_int_equal(hurray_stream_writer_core_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    hurray_stream_writer_core_destroy(&core);
    assert_int_equal(hurray_stream_writer_core_destroy(&core), HURRAY_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_descriptors_and_buffers_and_nothing_else),
        cmocka_unit_test(before_the_first_byte_an_item_may_be_dropped_after_it_never),
        cmocka_unit_test(a_failing_allocation_changes_nothing_and_may_be_repeated),
        cmocka_unit_test(what_cannot_be_written_is_refused),
        cmocka_unit_test(slices_are_offered_where_they_lie_and_let_go_when_written),
        cmocka_unit_test(a_write_count_that_was_lost_poisons_by_name),
        cmocka_unit_test(options_and_null_pointers_are_checked),
    };
    return cmocka_run_group_tests_name("core/stream_writer", tests, NULL, NULL);
}
