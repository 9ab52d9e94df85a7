#include "core/stream_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/composites.h"
#include "support/fail_alloc.h"
#include "support/script_transport.h"
#include "support/write_scenario.h"

#define OWN_CODE (-1001)

static HurrayStatus write_item(HurrayWriter *writer, const Scenario *s, size_t i) {
    const ScenarioItem *item = &s->items[i];
    if (item->kind == SCENARIO_COMPOSITE) return hurray_writer_write_composite(writer, item->nodes, item->node_count);
    return hurray_writer_write_tensor(writer, item->descriptor, item->slices, item->slice_count);
}

static HurrayWriter *make(ScriptTransport *script, const HurrayWriterOptions *options) {
    HurrayTransport transport = script_transport(script);
    HurrayWriter *writer = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    if (hurray_writer_new_ex(&transport, options, &writer, &error) != HURRAY_OK) fail_msg("%s", error.message);
    return writer;
}

/* What a sink that takes everything gets. */
static void expect(const Scenario *s, ScriptTransport *want) {
    script_sink(want);
    HurrayWriter *writer = make(want, NULL);
    assert_int_equal(want->len, 0);
    for (size_t i = 0; i < SCENARIO_ITEMS; i++) assert_int_equal(write_item(writer, s, i), HURRAY_OK);
    assert_int_equal(hurray_writer_finish(writer), HURRAY_OK);
    assert_int_equal(want->finishes, 1);
    assert_int_equal(hurray_writer_finish(writer), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(write_item(writer, s, 0), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_writer_begin_tensor(writer, s->items[0].descriptor), HURRAY_ERR_WRONG_STATE);
    hurray_writer_destroy(&writer);
    assert_int_equal(want->releases, 1);
}

static void same(const ScriptTransport *a, const ScriptTransport *b) {
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->bytes, b->bytes, a->len);
}

static void a_stream_in_pieces_and_in_short_writes_is_the_same_stream(void **state) {
    (void)state;
    const size_t pieces[] = {1, 9, 4096};
    Scenario s;
    ScriptTransport want, script;
    scenario_init(&s);
    expect(&s, &want);
    for (size_t p = 0; p < 3; p++) {
        script_sink(&script);
        script_every(&script, pieces[p]);
        HurrayWriter *writer = make(&script, NULL);
        for (size_t i = 0; i < SCENARIO_ITEMS; i++) {
            const ScenarioItem *item = &s.items[i];
            if (item->kind == SCENARIO_COMPOSITE) {
                assert_int_equal(write_item(writer, &s, i), HURRAY_OK);
                continue;
            }
            assert_int_equal(hurray_writer_begin_tensor(writer, item->descriptor), HURRAY_OK);
            assert_int_equal(hurray_writer_finish(writer), HURRAY_ERR_WRONG_STATE);
            for (size_t k = 0; k < item->slice_count; k++)
                for (size_t at = 0; at < item->slices[k].len; at += pieces[p]) {
                    size_t left = item->slices[k].len - at;
                    assert_int_equal(
                        hurray_writer_append(writer, (const uint8_t *)item->slices[k].ptr + at, left < pieces[p] ? left : pieces[p]),
                        HURRAY_OK);
                }
            assert_int_equal(hurray_writer_append(writer, "x", 1), HURRAY_ERR_INVALID_ARGUMENT);
            assert_int_equal(hurray_writer_end_tensor(writer), HURRAY_OK);
        }
        assert_int_equal(hurray_writer_finish(writer), HURRAY_OK);
        same(&script, &want);
        hurray_writer_destroy(&writer);
        script_free(&script);
    }
    script_free(&want);
    scenario_clear(&s);
}

static void a_write_that_fails_costs_nothing_before_the_first_byte_and_the_stream_after_it(void **state) {
    (void)state;
    const ScriptStep slow[] = {{40, 0, 0}, {300, 0, 0}};
    Scenario s;
    ScriptTransport want, script;
    uint64_t retried = 0, torn = 0;
    scenario_init(&s);
    expect(&s, &want);
    for (uint64_t k = 1;; k++) {
        bool dead = false;
        script_sink(&script);
        script_pattern(&script, slow, 2);
        HurrayWriter *writer = make(&script, NULL);
        script_fail(&script, k, OWN_CODE, 0);
        for (size_t i = 0; i < SCENARIO_ITEMS && !dead; i++) {
            size_t before = script.len;
            HurrayStatus status = write_item(writer, &s, i);
            if (status == HURRAY_OK) continue;
            if (script.len == before) {
                assert_int_equal(status, OWN_CODE);
                assert_int_equal(write_item(writer, &s, i), HURRAY_OK);
                retried++;
                continue;
            }
            assert_int_equal(status, HURRAY_ERR_SINK_CLOSED);
            for (size_t again = 0; again < SCENARIO_ITEMS; again++) assert_int_equal(write_item(writer, &s, again), HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(hurray_writer_begin_tensor(writer, s.items[0].descriptor), HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(hurray_writer_append(writer, "x", 1), HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(hurray_writer_end_tensor(writer), HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(hurray_writer_finish(writer), HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(hurray_writer_last_error(writer)->cause, OWN_CODE);
            dead = true;
            torn++;
        }
        bool reached = script.counted >= k;
        if (!dead) same(&script, &want);
        assert_int_equal(script.finishes, 0);
        hurray_writer_destroy(&writer);
        script_free(&script);
        if (!reached) break;
    }
    assert_int_equal(retried, SCENARIO_ITEMS);
    assert_true(torn > 5);
    script_free(&want);
    scenario_clear(&s);
}

static void a_closed_sink_is_closed_for_good_and_an_overreport_makes_unusable(void **state) {
    (void)state;
    const ScriptStep zero[] = {{0, 0, 0}}, over[] = {{SCRIPT_ALL, 0, 3}};
    Scenario s;
    ScriptTransport script;
    scenario_init(&s);
    script_sink(&script);
    script_pattern(&script, zero, 1);
    HurrayWriter *writer = make(&script, NULL);
    assert_int_equal(write_item(writer, &s, 0), HURRAY_ERR_SINK_CLOSED);
    script_pattern(&script, NULL, 0);
    assert_int_equal(write_item(writer, &s, 0), HURRAY_ERR_SINK_CLOSED);
    assert_int_equal(hurray_writer_last_error(writer)->cause, HURRAY_OK);
    assert_int_equal(hurray_writer_finish(writer), HURRAY_ERR_SINK_CLOSED);
    hurray_writer_destroy(&writer);
    script_free(&script);

    script_sink(&script);
    script_pattern(&script, over, 1);
    writer = make(&script, NULL);
    assert_int_equal(write_item(writer, &s, 0), HURRAY_ERR_INVALID_REPORT);
    assert_int_equal(write_item(writer, &s, 0), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_writer_finish(writer), HURRAY_ERR_UNUSABLE);
    hurray_writer_destroy(&writer);
    script_free(&script);
    scenario_clear(&s);
}

static void finish_waits_for_members_and_may_be_repeated(void **state) {
    (void)state;
    Scenario s;
    ScriptTransport script;
    scenario_init(&s);
    script_sink(&script);
    script.finish_failures = 1;
    script.finish_status = OWN_CODE;
    HurrayWriter *writer = make(&script, NULL);
    assert_int_equal(write_item(writer, &s, 4), HURRAY_OK); /* a group head */
    assert_int_equal(hurray_writer_finish(writer), HURRAY_ERR_TORN_COMPOSITE);
    assert_int_equal(script.finishes, 0);
    assert_int_equal(write_item(writer, &s, 5), HURRAY_OK);
    assert_int_equal(write_item(writer, &s, 6), HURRAY_OK);
    assert_int_equal(hurray_writer_finish(writer), OWN_CODE);
    assert_int_equal(hurray_writer_finish(writer), HURRAY_OK);
    assert_int_equal(script.finishes, 2);
    hurray_writer_destroy(&writer);
    script_free(&script);
    scenario_clear(&s);
}

static void a_failing_allocation_never_costs_the_stream(void **state) {
    (void)state;
    Scenario s;
    ScriptTransport want, script;
    scenario_init(&s);
    expect(&s, &want);
    bool failed = true;
    for (uint64_t k = 1; failed; k++) {
        FailAlloc alloc;
        HurrayWriterOptions options = HURRAY_WRITER_OPTIONS_INIT;
        HurrayWriter *writer = NULL;
        failed = false;
        script_sink(&script);
        fail_alloc_init(&alloc);
        fail_alloc_arm(&alloc, k, 0);
        options.allocator = &alloc.allocator;
        HurrayTransport transport = script_transport(&script);
        if (hurray_writer_new_ex(&transport, &options, &writer, NULL) != HURRAY_OK) {
            failed = true;
            fail_alloc_assert_empty(&alloc);
            assert_int_equal(script.releases, 0);
            writer = make(&script, &options);
        }
        for (size_t i = 0; i < SCENARIO_ITEMS; i++) {
            HurrayStatus status = write_item(writer, &s, i);
            if (status == HURRAY_OK) continue;
            assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
            failed = true;
            assert_int_equal(write_item(writer, &s, i), HURRAY_OK);
        }
        same(&script, &want);
        hurray_writer_destroy(&writer);
        fail_alloc_assert_empty(&alloc);
        script_free(&script);
        assert_true(k < 1000);
    }
    script_free(&want);
    scenario_clear(&s);
}

static void arguments_are_checked(void **state) {
    (void)state;
    Scenario s;
    ScriptTransport script;
    HurrayWriter *writer = NULL;
    HurrayWriterOptions options = HURRAY_WRITER_OPTIONS_INIT;
    HurrayError error = HURRAY_ERROR_INIT;
    scenario_init(&s);
    script_sink(&script);
    HurrayTransport transport = script_transport(&script), lacking = transport;
    lacking.write = NULL;
    assert_int_equal(hurray_writer_new(NULL, NULL, &writer), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_new(&transport, NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_new_ex(&lacking, NULL, &writer, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "write");
    options.flags = 64;
    assert_int_equal(hurray_writer_new_ex(&transport, &options, &writer, &error), HURRAY_ERR_UNSUPPORTED);
    options.flags = HURRAY_WRITE_CROSS_MACHINE;
    options.label = "socket";
    options.label_len = 6;
    assert_int_equal(hurray_writer_new_ex(&transport, &options, &writer, &error), HURRAY_OK);
    assert_int_equal(hurray_writer_write_tensor(writer, s.items[0].descriptor, NULL, 0), HURRAY_ERR_INVALID_LAYOUT);
    assert_string_equal(hurray_writer_last_error(writer)->source, "socket");
    assert_int_equal(hurray_writer_write_tensor(writer, NULL, NULL, 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_begin_tensor(writer, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_write_composite(writer, NULL, 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_append(writer, "x", 1), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_writer_end_tensor(writer), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(script.len, 0);
    assert_int_equal(hurray_writer_write_tensor(NULL, NULL, NULL, 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_write_composite(NULL, NULL, 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_begin_tensor(NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_append(NULL, "x", 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_end_tensor(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_finish(NULL), HURRAY_ERR_NULL_POINTER);
    assert_null(hurray_writer_last_error(NULL));
    assert_int_equal(hurray_writer_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_writer_destroy(&writer), HURRAY_OK);
    assert_int_equal(hurray_writer_destroy(&writer), HURRAY_OK);
    script_free(&script);
    scenario_clear(&s);
}

static void streams_by_other_hands_are_written_again_byte_for_byte(void **state) {
    (void)state;
    static const char *const files[] = {"types", "layouts", "quant", "sections", "devices", "shapes", "composites"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        size_t len;
        ScriptTransport script;
        HurrayError error = HURRAY_ERROR_INIT;
        snprintf(path, sizeof path, HURRAY_SOURCE_DIR "/../shared/vectors/pyhurray/%s.stream", files[i]);
        uint8_t *bytes = read_vector(path, &len);
        if (!bytes) skip();
        script_sink(&script);
        HurrayWriter *writer = make(&script, NULL);
        for (size_t at = 0; at < len;) {
            HurrayIoSlice slices[16];
            HurrayDescriptor *d;
            size_t used;
            assert_int_equal(hurray_descriptor_decode_ex(bytes + at, len - at, NULL, &used, &d, &error), HURRAY_OK);
            at += used;
            for (uint32_t k = 0; k < d->buffer_count; k++) {
                slices[k] = (HurrayIoSlice){bytes + at, (size_t)d->buffers[k].byte_size};
                at += slices[k].len;
            }
            if (hurray_writer_write_tensor(writer, d, slices, d->buffer_count) != HURRAY_OK)
                fail_msg("%s: %s", path, hurray_writer_last_error(writer)->message);
            hurray_descriptor_destroy(d);
        }
        assert_int_equal(hurray_writer_finish(writer), HURRAY_OK);
        if (script.len != len || memcmp(script.bytes, bytes, len) != 0) fail_msg("%s is not written again as it was", path);
        hurray_writer_destroy(&writer);
        script_free(&script);
        free(bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_in_pieces_and_in_short_writes_is_the_same_stream),
        cmocka_unit_test(a_write_that_fails_costs_nothing_before_the_first_byte_and_the_stream_after_it),
        cmocka_unit_test(a_closed_sink_is_closed_for_good_and_an_overreport_makes_unusable),
        cmocka_unit_test(finish_waits_for_members_and_may_be_repeated),
        cmocka_unit_test(a_failing_allocation_never_costs_the_stream),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(streams_by_other_hands_are_written_again_byte_for_byte),
    };
    return cmocka_run_group_tests_name("driver/writer", tests, NULL, NULL);
}
