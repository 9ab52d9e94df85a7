#include "support/file_core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void file_core_take(FileSink *sink, const void *ptr, size_t len) {
    assert_true(sink->len + len <= sizeof sink->bytes);
    memcpy(sink->bytes + sink->len, ptr, len);
    sink->len += len;
}

/* One OUTPUT step: takes some of it and reports how much. */
HurrayStatus file_core_some(HurrayFileWriterCore *core, const HurrayStep *step, FileSink *sink) {
    HurrayIoSlice slices[5];
    size_t count = sink->vectored ? 5 : 1, left = sink->most ? sink->most : SIZE_MAX, taken = 0;
    if (sink->vectored) {
        assert_int_equal(hurray_file_writer_core_output_slices(core, slices, &count), HURRAY_OK);
    } else {
        const uint8_t *src;
        assert_int_equal(hurray_file_writer_core_output_src(core, &src, &slices[0].len), HURRAY_OK);
        slices[0].ptr = src;
    }
    assert_int_equal(slices[0].len, step->len);
    assert_int_equal(step->offset, sink->len);
    for (size_t i = 0; i < count && left; i++) {
        size_t n = slices[i].len < left ? slices[i].len : left;
        file_core_take(sink, slices[i].ptr, n);
        taken += n;
        left -= n;
    }
    return hurray_file_writer_core_report_written(core, taken);
}

static void supply(HurrayFileWriterCore *core, const HurrayStep *step, const FileSink *sink) {
    const HurrayIoSlice *slice = &sink->payload[step->reason];
    assert_int_equal(step->offset + step->len, slice->len);
    size_t n = sink->lend && sink->lend < step->len ? sink->lend : (size_t)step->len;
    assert_int_equal(hurray_file_writer_core_supply(core, (const uint8_t *)slice->ptr + step->offset, n), HURRAY_OK);
}

/* Until the item is written. */
void file_core_drain(HurrayFileWriterCore *core, FileSink *sink) {
    for (;;) {
        HurrayStep step;
        assert_int_equal(hurray_file_writer_core_step(core, &step), HURRAY_OK);
        if (step.kind == HURRAY_STEP_OUTPUT)
            assert_int_equal(file_core_some(core, &step, sink), HURRAY_OK);
        else if (step.kind == HURRAY_STEP_PAYLOAD)
            supply(core, &step, sink);
        else {
            assert_true(step.kind == HURRAY_STEP_ITEM_WRITTEN || step.kind == HURRAY_STEP_FINISHED);
            assert_int_equal(step.offset, sink->len);
            return;
        }
    }
}

HurrayStatus file_core_begin(HurrayFileWriterCore *core, const Scenario *s, size_t i, bool ask) {
    if (i == 0) return hurray_file_writer_core_begin_header(core);
    if (i == FILE_ITEMS - 1) return hurray_file_writer_core_begin_finish(core, s->kv, 3);
    const ScenarioItem *item = &s->items[i - 1];
    if (item->kind == SCENARIO_COMPOSITE) return hurray_file_writer_core_begin_composite(core, item->nodes, item->node_count);
    return hurray_file_writer_core_begin_tensor(core, item->name, strlen(item->name), item->descriptor, ask ? NULL : item->slices,
                                                ask ? 0 : item->slice_count);
}

HurrayFileWriterCore *file_core_make(uint32_t flags, uint32_t alignment, const HurrayAllocator *allocator) {
    HurrayFileWriterOptions options = HURRAY_FILE_WRITER_OPTIONS_INIT;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayFileWriterCore *core = NULL;
    options.flags = flags;
    options.data_buffer_alignment = alignment;
    options.allocator = allocator;
    options.label = "out.hrry";
    options.label_len = 8;
    if (hurray_file_writer_core_new(&options, &core, &error) != HURRAY_OK) fail_msg("%s", error.message);
    return core;
}

uint32_t file_core_unusable(const HurrayFileWriterCore *core) {
    uint32_t reason = 99;
    assert_int_equal(hurray_file_writer_core_is_unusable(core, &reason), HURRAY_OK);
    return reason;
}

void file_core_items(HurrayFileWriterCore *core, const Scenario *s, FileSink *sink, size_t first, size_t end, bool ask) {
    for (size_t i = first; i < end; i++) {
        if (i > 0 && i < FILE_ITEMS - 1) sink->payload = s->items[i - 1].slices;
        assert_int_equal(file_core_begin(core, s, i, ask), HURRAY_OK);
        file_core_drain(core, sink);
    }
}

FileSink *file_core_all(const Scenario *s, uint32_t flags, uint32_t alignment) {
    FileSink *sink = calloc(1, sizeof *sink);
    HurrayFileWriterCore *core = file_core_make(flags, alignment, NULL);
    file_core_items(core, s, sink, 0, FILE_ITEMS, false);
    hurray_file_writer_core_destroy(&core);
    assert_null(core);
    return sink;
}

void file_core_same(const FileSink *a, const FileSink *b) {
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->bytes, b->bytes, a->len);
}

void file_table_row(const void *ctx, uint64_t i, HryIndexRow *out) { *out = ((const FileTable *)ctx)->rows[i]; }

void file_table_open(const uint8_t *bytes, size_t len, FileTable *table) {
    HurrayError error;
    HryIndexReader reader;
    HurrayAllocator allocator = hry_alloc_default();
    memset(table, 0, sizeof *table);
    assert_int_equal(hry_header_decode(bytes, &table->header, &error), HURRAY_OK);
    assert_int_equal(hry_trailer_decode(bytes + len - HRY_TRAILER_SIZE, len, &table->header, &table->trailer, &error), HURRAY_OK);
    const uint8_t *index = bytes + table->trailer.index_offset;
    assert_int_equal(hry_container_check_index_sum(&table->header, &table->trailer, index, &error), HURRAY_OK);
    assert_int_equal(hry_index_open(&reader, index, (size_t)table->trailer.index_length, table->trailer.index_offset, 0, &error),
                     HURRAY_OK);
    table->count = reader.count;
    assert_true(reader.count <= FILE_TABLE_ROWS);
    for (uint64_t i = 0; i < reader.count; i++) assert_int_equal(hry_index_next(&reader, &table->rows[i], &error), HURRAY_OK);
    assert_int_equal(hry_index_close(&reader, &error), HURRAY_OK);
    if (table->trailer.kv_offset)
        assert_int_equal(hry_kv_decode(bytes + table->trailer.kv_offset, table->trailer.kv_length, 0, 0, &allocator, &table->kv, &error),
                         HURRAY_OK);
}

int file_table_name_is(const HryIndexRow *row, const char *name) {
    return row->name_len == strlen(name) && memcmp(row->name, name, row->name_len) == 0;
}
