#include "core/file_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/crc32c.h"
#include "format/sums.h"
#include "support/composites.h"
#include "support/fail_alloc.h"
#include "support/file_core.h"

static void every_way_of_taking_and_lending_gives_the_same_bytes(void **state) {
    (void)state;
    Scenario s;
    scenario_init(&s);
    FileSink *want = file_core_all(&s, 0, 0), *got = calloc(1, sizeof *got);
    const size_t sizes[] = {0, 1, 3, 64, 4096};
    for (size_t m = 0; m < 5; m++)
        for (int way = 0; way < 4; way++) {
            HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
            memset(got, 0, sizeof *got);
            got->most = sizes[m];
            got->vectored = way & 1;
            got->lend = m;
            file_core_items(core, &s, got, 0, FILE_ITEMS, way & 2);
            file_core_same(want, got);
            hurray_file_writer_core_destroy(&core);
        }
    free(want);
    free(got);
    scenario_clear(&s);
}

/* Payload is never assembled: what is offered is the caller's own memory, which may go as soon as the item is written. */
static void slices_are_offered_where_they_lie_and_let_go_when_written(void **state) {
    (void)state;
    Scenario s;
    HurrayStep step;
    scenario_init(&s);
    FileSink *sink = calloc(1, sizeof *sink);
    HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
    file_core_items(core, &s, sink, 0, 1, false);
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
        assert_int_equal(hurray_file_writer_core_begin_tensor(core, item->name, strlen(item->name), item->descriptor, own, item->slice_count),
                         HURRAY_OK);
        while (hurray_file_writer_core_step(core, &step) == HURRAY_OK && step.kind == HURRAY_STEP_OUTPUT) {
            const uint8_t *src;
            size_t len;
            assert_int_equal(hurray_file_writer_core_output_src(core, &src, &len), HURRAY_OK);
            if (len > 5) len = 5;
            for (size_t k = 0; k < item->slice_count; k++)
                if (offered[k] < own[k].len && src == blocks[k] + offered[k]) offered[k] += len;
            assert_int_equal(hurray_file_writer_core_report_written(core, len), HURRAY_OK);
        }
        assert_int_equal(step.kind, HURRAY_STEP_ITEM_WRITTEN);
        for (size_t k = 0; k < item->slice_count; k++) {
            assert_int_equal(offered[k], own[k].len);
            free(blocks[k]);
        }
    }
    assert_int_equal(hurray_file_writer_core_begin_finish(core, NULL, 0), HURRAY_OK);
    sink->len = (size_t)step.offset; /* what went out above */
    file_core_drain(core, sink);
    hurray_file_writer_core_destroy(&core);
    free(sink);
    scenario_clear(&s);
}

/* ---- what the bytes are ---- */

static void the_file_holds_what_was_written(void **state) {
    (void)state;
    static const char *const names[] = {"dense",       "sparse \xC3\xA9", "empty",    "partition", "partition.0",
                                        "partition.1", "group",           "a member", "overlay",   "overlay.0"};
    Scenario s;
    FileTable table;
    HurrayError error;
    scenario_init(&s);
    const uint32_t alignments[] = {4096, 8192};
    for (int a = 0; a < 2; a++) {
        FileSink *sink = file_core_all(&s, 0, alignments[a]);
        file_table_open(sink->bytes, sink->len, &table);
        assert_int_equal(table.header.data_buffer_alignment, alignments[a]);
        assert_int_equal(table.header.first_descriptor_offset, 64);
        assert_int_equal(table.header.flags, HRY_FILE_INDEX_CRC);
        assert_int_equal(table.count, 10);
        assert_int_equal(hry_index_check_places(file_table_row, &table, table.count, NULL, &table.header, &table.trailer, &error),
                         HURRAY_OK);
        for (uint64_t i = 0; i < table.count; i++) {
            const HryIndexRow *row = &table.rows[i];
            HurrayDescriptor *descriptor;
            size_t used;
            assert_true(file_table_name_is(row, names[i]));
            assert_int_equal(
                hurray_descriptor_decode_ex(sink->bytes + row->descriptor_offset, row->descriptor_length, NULL, &used, &descriptor, &error),
                HURRAY_OK);
            uint64_t limit = i + 1 < table.count ? table.rows[i + 1].descriptor_offset : table.trailer.kv_offset;
            assert_int_equal(hry_index_check_tensor(row, &table.header, limit, used, descriptor->buffers, descriptor->buffer_count,
                                                    hry_descriptor_is_head(descriptor), &error),
                             HURRAY_OK);
            if (hry_descriptor_is_head(descriptor)) {
                assert_int_equal(row->data_offset, row->descriptor_offset + row->descriptor_length);
                assert_true(limit - row->data_offset < 8); /* no padding to the data alignment */
            }
            hurray_descriptor_destroy(descriptor);
        }
        assert_memory_equal(sink->bytes + table.rows[0].data_offset, s.items[0].slices[0].ptr, 300);
        assert_memory_equal(sink->bytes + table.rows[1].data_offset + alignments[a], s.items[1].slices[1].ptr, s.items[1].slices[1].len);
        hry_kv_clear(&table.kv);
        free(sink);
    }
    scenario_clear(&s);
}

static void sums_are_stored_last_unless_not_wanted(void **state) {
    (void)state;
    Scenario s;
    FileTable table;
    HrySums sums;
    HurrayError error;
    HurrayAllocator allocator = hry_alloc_default();
    scenario_init(&s);
    FileSink *sink = file_core_all(&s, 0, 0);
    file_table_open(sink->bytes, sink->len, &table);
    assert_int_equal(table.kv.count, 4);
    assert_int_equal(hry_kv_position(table.kv.entries, 4, HRY_SUMS_KEY, HRY_SUMS_KEY_LEN), 3);
    assert_int_equal(hry_sums_open(&table.kv.entries[3], table.count, &allocator, &sums, &error), HURRAY_OK);
    uint32_t crc;
    assert_true(hry_sums_find(&sums, 0, 1, 0, &crc));
    assert_int_equal(crc, hry_crc32c(0, s.items[0].slices[0].ptr, 300));
    assert_true(hry_sums_find(&sums, 1, 2, 1, &crc));
    assert_int_equal(crc, hry_crc32c(0, s.items[1].slices[1].ptr, s.items[1].slices[1].len));
    assert_true(hry_sums_find(&sums, 2, 1, 0, &crc));
    assert_int_equal(crc, 0);
    assert_false(hry_sums_find(&sums, 3, 0, 0, &crc));
    hry_sums_clear(&sums);
    hry_kv_clear(&table.kv);
    free(sink);
    sink = file_core_all(&s, HURRAY_WRITE_NO_CHECKSUMS, 0);
    file_table_open(sink->bytes, sink->len, &table);
    assert_int_equal(table.kv.count, 3);
    hry_kv_clear(&table.kv);
    free(sink);
    scenario_clear(&s);
}

static void sums_handed_in_are_dropped(void **state) {
    (void)state;
    Scenario s;
    FileTable table;
    scenario_init(&s);
    for (uint32_t flags = 0; flags <= HURRAY_WRITE_NO_CHECKSUMS; flags += HURRAY_WRITE_NO_CHECKSUMS) {
        FileSink *sink = calloc(1, sizeof *sink);
        HurrayFileWriterCore *core = file_core_make(flags, 0, NULL);
        HurrayKvEntry kv[] = {
            {.key = HRY_SUMS_KEY, .key_len = HRY_SUMS_KEY_LEN, .value = {.kind = HURRAY_KV_BYTES, .data = "old", .data_len = 3}}, s.kv[1]};
        file_core_items(core, &s, sink, 0, 2, false);
        assert_int_equal(hurray_file_writer_core_begin_finish(core, kv, 2), HURRAY_OK);
        file_core_drain(core, sink);
        file_table_open(sink->bytes, sink->len, &table);
        assert_int_equal(table.kv.count, flags ? 1 : 2);
        assert_int_equal(table.kv.entries[0].key_len, 1);
        if (!flags) assert_int_equal(table.kv.entries[1].value.data_len, 8 + 1 + 4);
        hry_kv_clear(&table.kv);
        hurray_file_writer_core_destroy(&core);
        free(sink);
    }
    scenario_clear(&s);
}

static void the_smallest_file_has_112_bytes(void **state) {
    (void)state;
    FileTable table;
    FileSink *sink = calloc(1, sizeof *sink);
    HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
    assert_int_equal(hurray_file_writer_core_begin_header(core), HURRAY_OK);
    file_core_drain(core, sink);
    assert_int_equal(hurray_file_writer_core_begin_finish(core, NULL, 0), HURRAY_OK);
    file_core_drain(core, sink);
    assert_int_equal(sink->len, HRY_SMALLEST_FILE);
    file_table_open(sink->bytes, sink->len, &table);
    assert_int_equal(table.count, 0);
    assert_int_equal(table.trailer.kv_offset, 0);
    hurray_file_writer_core_destroy(&core);
    free(sink);
}

static void a_sorted_index_is_sorted_and_the_region_is_not(void **state) {
    (void)state;
    Scenario s;
    FileTable table;
    HurrayError error;
    scenario_init(&s);
    FileSink *sink = file_core_all(&s, HURRAY_WRITE_SORTED_INDEX, 0), *plain = file_core_all(&s, 0, 0);
    file_table_open(sink->bytes, sink->len, &table);
    assert_int_equal(table.header.flags, HRY_FILE_INDEX_CRC | HRY_FILE_SORTED_INDEX);
    assert_int_equal(hry_index_check_sorted(file_table_row, &table, table.count, &error), HURRAY_OK);
    assert_true(file_table_name_is(&table.rows[0], "a member"));
    assert_memory_equal(sink->bytes + 64, plain->bytes + 64, (size_t)table.trailer.index_offset - 64);
    hry_kv_clear(&table.kv);
    free(sink);
    free(plain);
    scenario_clear(&s);
}

/* ---- what a failure costs ---- */

static void an_item_abandoned_before_its_first_byte_never_happened(void **state) {
    (void)state;
    Scenario s;
    scenario_init(&s);
    FileSink *want = file_core_all(&s, 0, 0), *got = calloc(1, sizeof *got);
    HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
    HurrayStep step;
    for (size_t i = 0; i < FILE_ITEMS; i++) {
        for (int times = 0; times < 3; times++) {
            assert_int_equal(file_core_begin(core, &s, i, times == 1), HURRAY_OK);
            assert_int_equal(hurray_file_writer_core_step(core, &step), HURRAY_OK);
            assert_int_equal(step.kind, HURRAY_STEP_OUTPUT);
            if (times == 0) {
                assert_int_equal(hurray_file_writer_core_abandon(core), HURRAY_OK);
                assert_int_equal(hurray_file_writer_core_step(core, &step), HURRAY_OK);
                assert_int_equal(step.kind, HURRAY_STEP_READY);
            }
            assert_int_equal(file_core_unusable(core), HURRAY_USABLE);
        }
        file_core_drain(core, got); /* begun over the one before it */
    }
    file_core_same(want, got);
    hurray_file_writer_core_destroy(&core);
    free(want);
    free(got);
    scenario_clear(&s);
}

static void an_item_left_after_its_first_byte_ends_the_file(void **state) {
    (void)state;
    Scenario s;
    HurrayStep step;
    scenario_init(&s);
    FileSink *sink = calloc(1, sizeof *sink);
    for (size_t i = 0; i < FILE_ITEMS; i++)
        for (int how = 0; how < 3; how++) {
            HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
            memset(sink, 0, sizeof *sink);
            file_core_items(core, &s, sink, 0, i, false);
            sink->most = 1;
            assert_int_equal(file_core_begin(core, &s, i, false), HURRAY_OK);
            assert_int_equal(hurray_file_writer_core_step(core, &step), HURRAY_OK);
            assert_int_equal(file_core_some(core, &step, sink), HURRAY_OK);
            assert_int_equal(file_core_unusable(core), HURRAY_UNUSABLE_TORN_ITEM);
            assert_int_equal(hurray_file_writer_core_step(core, &step), HURRAY_OK); /* its own steps go on */
            if (how == 0) assert_int_equal(hurray_file_writer_core_abandon(core), HURRAY_OK);
            if (how == 1) assert_int_equal(hurray_file_writer_core_report_sink_closed(core), HURRAY_ERR_SINK_CLOSED);
            assert_int_equal(file_core_begin(core, &s, i, false), HURRAY_ERR_UNUSABLE);
            assert_int_equal(hurray_file_writer_core_begin_finish(core, NULL, 0), HURRAY_ERR_UNUSABLE);
            assert_int_equal(hurray_file_writer_core_step(core, &step), HURRAY_ERR_UNUSABLE);
            assert_int_equal(hurray_file_writer_core_report_written(core, 1), HURRAY_ERR_UNUSABLE);
            assert_int_equal(hurray_file_writer_core_supply(core, "x", 1), HURRAY_ERR_UNUSABLE);
            assert_int_equal(hurray_file_writer_core_report_sink_closed(core), HURRAY_ERR_UNUSABLE);
            assert_int_equal(file_core_unusable(core), HURRAY_UNUSABLE_TORN_ITEM);
            assert_non_null(strstr(hurray_file_writer_core_last_error(core)->message, "TORN_ITEM"));
            hurray_file_writer_core_destroy(&core);
        }
    free(sink);
    scenario_clear(&s);
}

static void a_closed_sink_before_the_first_byte_costs_nothing(void **state) {
    (void)state;
    Scenario s;
    scenario_init(&s);
    FileSink *want = file_core_all(&s, 0, 0), *got = calloc(1, sizeof *got);
    HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
    assert_int_equal(hurray_file_writer_core_report_sink_closed(core), HURRAY_OK); /* no item in flight */
    for (size_t i = 0; i < FILE_ITEMS; i++) {
        assert_int_equal(file_core_begin(core, &s, i, false), HURRAY_OK);
        assert_int_equal(hurray_file_writer_core_report_sink_closed(core), HURRAY_ERR_SINK_CLOSED);
        assert_int_equal(file_core_unusable(core), HURRAY_USABLE);
        file_core_items(core, &s, got, i, i + 1, false);
    }
    file_core_same(want, got);
    hurray_file_writer_core_destroy(&core);
    free(want);
    free(got);
    scenario_clear(&s);
}

static void a_failing_allocation_changes_nothing_and_may_be_repeated(void **state) {
    (void)state;
    Scenario s;
    scenario_init(&s);
    FileSink *want = file_core_all(&s, HURRAY_WRITE_SORTED_INDEX, 0), *got = calloc(1, sizeof *got);
    uint64_t failures = 0;
    for (uint64_t k = 1;; k++) {
        FailAlloc alloc;
        HurrayFileWriterCore *core = NULL;
        bool failed = false;
        fail_alloc_init(&alloc);
        memset(got, 0, sizeof *got);
        fail_alloc_arm(&alloc, k, 0);
        HurrayFileWriterOptions options = HURRAY_FILE_WRITER_OPTIONS_INIT;
        options.flags = HURRAY_WRITE_SORTED_INDEX;
        options.allocator = &alloc.allocator;
        HurrayError error = HURRAY_ERROR_INIT;
        if (hurray_file_writer_core_new(&options, &core, &error) != HURRAY_OK) {
            assert_int_equal(error.code, HURRAY_ERR_NO_MEMORY);
            failed = true;
            fail_alloc_assert_empty(&alloc);
            core = file_core_make(HURRAY_WRITE_SORTED_INDEX, 0, &alloc.allocator);
        }
        for (size_t i = 0; i < FILE_ITEMS; i++) {
            HurrayStatus status = file_core_begin(core, &s, i, false);
            if (status != HURRAY_OK) {
                assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
                assert_false(failed);
                failed = true;
                assert_int_equal(file_core_begin(core, &s, i, false), HURRAY_OK);
            }
            uint64_t calls = alloc.calls;
            file_core_drain(core, got);
            assert_int_equal(alloc.calls, calls); /* nothing can fail after the first byte */
        }
        file_core_same(want, got);
        hurray_file_writer_core_destroy(&core);
        fail_alloc_assert_empty(&alloc);
        if (!failed && alloc.calls < k) break;
        failures += failed;
    }
    assert_true(failures > 20);
    free(want);
    free(got);
    scenario_clear(&s);
}

static void poison_is_for_good_and_the_first_reason_stays(void **state) {
    (void)state;
    HurrayFileWriterCore *core = file_core_make(0, 0, NULL);
    HurrayStep step;
    HurrayIoSlice slice;
    size_t one = 1;
    assert_int_equal(hurray_file_writer_core_poison(core, HURRAY_USABLE), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_file_writer_core_poison(core, 7), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(file_core_unusable(core), HURRAY_USABLE);
    assert_int_equal(hurray_file_writer_core_begin_header(core), HURRAY_OK);
    assert_int_equal(hurray_file_writer_core_poison(core, HURRAY_UNUSABLE_LOST_WRITE_COUNT), HURRAY_OK);
    assert_int_equal(hurray_file_writer_core_poison(core, HURRAY_UNUSABLE_POISONED), HURRAY_OK);
    assert_int_equal(file_core_unusable(core), HURRAY_UNUSABLE_LOST_WRITE_COUNT);
    assert_int_equal(hurray_file_writer_core_begin_header(core), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_file_writer_core_step(core, &step), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_file_writer_core_output_slices(core, &slice, &one), HURRAY_ERR_UNUSABLE);
    assert_int_equal(hurray_file_writer_core_abandon(core), HURRAY_ERR_UNUSABLE);
    assert_string_equal(hurray_file_writer_core_last_error(core)->source, "out.hrry");
    hurray_file_writer_core_destroy(&core);
}

static void wide_padding_comes_in_stretches_of_zeros(void **state) {
    (void)state;
    static const uint64_t shape[] = {16};
    HurrayFileWriterCore *core = file_core_make(HURRAY_WRITE_NO_CHECKSUMS, 2097152, NULL);
    FileSink *sink = calloc(1, sizeof *sink);
    HurrayDescriptor *descriptor = make_member(HURRAY_TYPE_UINT8, 1, shape, NULL, NULL, NO_ROLE);
    HurrayIoSlice slice = {"0123456789abcdef", 16};
    assert_int_equal(hurray_file_writer_core_begin_header(core), HURRAY_OK);
    file_core_drain(core, sink);
    assert_int_equal(hurray_file_writer_core_begin_tensor(core, "t", 1, descriptor, &slice, 1), HURRAY_OK);
    HurrayStep step;
    uint64_t at = sink->len;
    while (hurray_file_writer_core_step(core, &step) == HURRAY_OK && step.kind == HURRAY_STEP_OUTPUT) {
        HurrayIoSlice slices[4];
        size_t count = 4, sum = 0;
        assert_int_equal(step.offset, at);
        assert_int_equal(hurray_file_writer_core_output_slices(core, slices, &count), HURRAY_OK);
        for (size_t i = 0; i < count; sum += slices[i++].len)
            if (at + sum + slices[i].len <= 2097152 && at + sum > 200)
                assert_int_equal(((const uint8_t *)slices[i].ptr)[slices[i].len - 1], 0);
        assert_int_equal(hurray_file_writer_core_report_written(core, sum), HURRAY_OK);
        at += sum;
    }
    assert_int_equal(at, 2097152 + 16);
    hurray_descriptor_destroy(descriptor);
    hurray_file_writer_core_destroy(&core);
    free(sink);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_of_taking_and_lending_gives_the_same_bytes),
        cmocka_unit_test(slices_are_offered_where_they_lie_and_let_go_when_written),
        cmocka_unit_test(the_file_holds_what_was_written),
        cmocka_unit_test(sums_are_stored_last_unless_not_wanted),
        cmocka_unit_test(sums_handed_in_are_dropped),
        cmocka_unit_test(the_smallest_file_has_112_bytes),
        cmocka_unit_test(a_sorted_index_is_sorted_and_the_region_is_not),
        cmocka_unit_test(an_item_abandoned_before_its_first_byte_never_happened),
        cmocka_unit_test(an_item_left_after_its_first_byte_ends_the_file),
        cmocka_unit_test(a_closed_sink_before_the_first_byte_costs_nothing),
        cmocka_unit_test(a_failing_allocation_changes_nothing_and_may_be_repeated),
        cmocka_unit_test(poison_is_for_good_and_the_first_reason_stays),
        cmocka_unit_test(wide_padding_comes_in_stretches_of_zeros),
    };
    return cmocka_run_group_tests_name("core/file_writer", tests, NULL, NULL);
}
