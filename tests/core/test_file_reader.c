#include "hurray/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/containers.h"
#include "support/fail_alloc.h"
#include "support/fail_destination.h"
#include "support/file_drive.h"

#define MIB ((uint32_t)1 << 20)

static const HurrayKvEntry kv[2] = {{.key = "producer", .key_len = 8, .value = {.kind = HURRAY_KV_STRING, .data = "test", .data_len = 4}},
                                    {.key = "layers", .key_len = 6, .value = {.kind = HURRAY_KV_UINT64, .u64 = 32}}};

/* a: plain; many: four buffers, one empty; p: a partition of two; g: a group of a nested group of one, and one; z: plain. */
static void build(Container *built, uint32_t flags, bool with_kv) {
    HurrayBufferHandle handles[4] = {{.byte_size = 300, .alignment = 64},
                                     {.byte_size = 5000, .alignment = 128},
                                     {.byte_size = 0, .alignment = 1},
                                     {.byte_size = 9000, .alignment = 4096}};
    container_begin_file(built, 4096);
    container_add(built, "z.last", make_plain(777, 64));
    container_add(built, "many", make_many(handles, 4));
    container_add(built, "p", make_partition(10, 2));
    container_add(built, "p.0", make_part(10, 0, 4));
    container_add(built, "p.1", make_part(10, 4, 6));
    container_add(built, "g", make_group(2));
    container_add(built, "g.0", make_group(1));
    container_add(built, "g.0.0", make_plain(50, 64));
    container_add(built, "g.1", make_plain(60, 64));
    container_add(built, "a", make_plain(1, 64));
    container_finish(built, flags, kv, with_kv ? 2 : 0);
}

static HurrayFileReaderCore *core_of(const Container *built, const HurrayFileReaderOptions *options) {
    HurrayFileReaderCore *core = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    if (hurray_file_reader_core_new(built->len, options, &core, &error) != HURRAY_OK) print_error("%s\n", error.message);
    assert_non_null(core);
    return core;
}

static HurrayFileReaderCore *open_core(FileDrive *drive, const Container *built, const HurrayFileReaderOptions *options) {
    HurrayFileReaderCore *core = core_of(built, options);
    HurrayStep step;
    *drive = (FileDrive){.bytes = built->bytes, .len = built->len, .every = drive->every, .tail = SIZE_MAX};
    HurrayStatus status = file_drive(drive, core, &step);
    if (status != HURRAY_OK) print_error("%s\n", hurray_file_reader_core_last_error(core)->message);
    assert_int_equal(status, HURRAY_OK);
    assert_int_equal(step.kind, HURRAY_STEP_READY);
    return core;
}

static HurrayTensor *read_tensor(FileDrive *drive, HurrayFileReaderCore *core, const char *name) {
    HurrayStep step;
    HurrayTensor *tensor = NULL;
    drive->ranges = 0;
    drive->tail = SIZE_MAX;
    assert_int_equal(hurray_file_reader_core_begin_tensor(core, name, strlen(name)), HURRAY_OK);
    HurrayStatus status = file_drive(drive, core, &step);
    if (status != HURRAY_OK) print_error("%s\n", hurray_file_reader_core_last_error(core)->message);
    assert_int_equal(status, HURRAY_OK);
    assert_int_equal(step.kind, HURRAY_STEP_TENSOR);
    assert_int_equal(hurray_file_reader_core_take_tensor(core, &tensor), HURRAY_OK);
    return tensor;
}

/* Ends in this failure; the core goes on. */
static void must_fail(FileDrive *drive, HurrayFileReaderCore *core, const char *name, HurrayStatus want) {
    HurrayStep step;
    drive->tail = SIZE_MAX;
    HurrayStatus status = hurray_file_reader_core_begin_tensor(core, name, strlen(name));
    if (status == HURRAY_OK) status = file_drive(drive, core, &step);
    assert_int_equal(status, want);
    const HurrayError *error = hurray_file_reader_core_last_error(core);
    assert_int_equal(error->code, want);
    assert_true(error->message[0]);
    assert_string_equal(error->tensor, name);
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
    assert_int_equal(step.kind, HURRAY_STEP_READY);
}

static void opening_takes_four_ranges_and_three_without_kv(void **state) {
    (void)state;
    for (int with = 0; with < 2; with++) {
        Container built;
        FileDrive drive = {0};
        build(&built, 0, with);
        HurrayFileReaderCore *core = open_core(&drive, &built, NULL);
        assert_int_equal(drive.ranges, with ? 4 : 3);
        assert_int_equal(drive.offsets[0], 0);
        assert_int_equal(drive.lens[0], 64);
        assert_int_equal(drive.offsets[1], built.len - 40);
        assert_int_equal(drive.lens[1], 40);
        assert_int_equal(drive.offsets[2], built.trailer.index_offset);
        assert_int_equal(drive.lens[2], built.trailer.index_length);
        if (with) assert_int_equal(drive.offsets[3], built.trailer.kv_offset);
        uint64_t count = 0;
        assert_int_equal(hurray_file_reader_core_kv_count(core, &count), HURRAY_OK);
        assert_int_equal(count, with ? 2 : 0);
        hurray_file_reader_core_destroy(&core);
        assert_null(core);
        container_free(&built);
    }
}

static void names_kv_and_places_are_there_after_opening(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags < 16; flags += 2) {
        if (flags & 2 && flags & 8) continue;
        Container built;
        FileDrive drive = {0};
        build(&built, flags, true);
        HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
        options.label = "lab\nel";
        options.label_len = 6;
        HurrayFileReaderCore *core = open_core(&drive, &built, &options);
        uint64_t count = 0, i = 0;
        assert_int_equal(hurray_file_reader_core_tensor_count(core, &count), HURRAY_OK);
        assert_int_equal(count, 10);
        for (size_t t = 0; t < built.count; t++) {
            const uint8_t *name;
            size_t len;
            HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
            assert_int_equal(hurray_file_reader_core_find(core, built.rows[t].name, built.rows[t].name_len, &i), HURRAY_OK);
            assert_int_equal(hurray_file_reader_core_tensor_name(core, i, &name, &len), HURRAY_OK);
            assert_int_equal(len, built.rows[t].name_len);
            assert_memory_equal(name, built.rows[t].name, len);
            assert_int_equal(hurray_file_reader_core_tensor_info(core, i, &info), HURRAY_OK);
            assert_int_equal(info.descriptor_offset, built.rows[t].descriptor_offset);
            assert_int_equal(info.data_length, built.rows[t].data_length);
            assert_null(info.descriptor);
        }
        HurrayKvEntry entry;
        assert_int_equal(hurray_file_reader_core_find(core, "nobody", 6, &i), HURRAY_ERR_NOT_FOUND);
        assert_int_equal(hurray_file_reader_core_kv_find(core, "layers", 6, &entry), HURRAY_OK);
        assert_int_equal(entry.value.u64, 32);
        assert_int_equal(hurray_file_reader_core_kv_find(core, "none", 4, &entry), HURRAY_ERR_NOT_FOUND);
        assert_int_equal(hurray_file_reader_core_kv_entry(core, 0, &entry), HURRAY_OK);
        assert_memory_equal(entry.key, "producer", 8);
        assert_int_equal(hurray_file_reader_core_kv_entry(core, 3, &entry), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
        const uint8_t *name;
        size_t len;
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        assert_int_equal(hurray_file_reader_core_tensor_name(core, 10, &name, &len), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
        assert_int_equal(hurray_file_reader_core_tensor_info(core, 10, &info), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
        info.struct_size = 4;
        assert_int_equal(hurray_file_reader_core_tensor_info(core, 0, &info), HURRAY_ERR_INVALID_ARGUMENT);
        HurraySourceInfo source = HURRAY_SOURCE_INFO_INIT;
        assert_int_equal(hurray_file_reader_core_info(core, &source), HURRAY_OK);
        assert_int_equal(source.format, HURRAY_FORMAT_HRRY);
        assert_int_equal(source.byte_size, built.len);
        assert_int_equal(source.data_buffer_alignment, 4096);
        assert_memory_equal(source.label, "lab\nel", 6);
        must_fail(&drive, core, "nobody", HURRAY_ERR_NOT_FOUND);
        assert_string_equal(hurray_file_reader_core_last_error(core)->source, "");
        hurray_file_reader_core_begin_tensor(core, "nobody", 6);
        assert_string_equal(hurray_file_reader_core_last_error(core)->source, "lab\\x0ael");
        hurray_file_reader_core_destroy(&core);
        container_free(&built);
    }
}

static void a_descriptor_is_one_range_and_not_a_byte_of_payload(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0};
    HurrayStep step;
    HurrayDescriptor *descriptor = NULL;
    build(&built, 0, false);
    HurrayFileReaderCore *core = open_core(&drive, &built, NULL);
    drive.ranges = 0;
    assert_int_equal(hurray_file_reader_core_begin_descriptor(core, "many", 4), HURRAY_OK);
    assert_int_equal(file_drive(&drive, core, &step), HURRAY_OK);
    assert_int_equal(step.kind, HURRAY_STEP_DESCRIPTOR);
    assert_int_equal(drive.ranges, 1);
    assert_int_equal(drive.offsets[0], built.rows[1].descriptor_offset);
    assert_int_equal(drive.lens[0], built.rows[1].descriptor_length);
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
    assert_int_equal(step.kind, HURRAY_STEP_DESCRIPTOR); /* the same answer until it is taken */
    HurrayTensor *tensor = NULL;
    assert_int_equal(hurray_file_reader_core_take_tensor(core, &tensor), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_file_reader_core_take_descriptor(core, &descriptor), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_take_descriptor(core, &descriptor), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(descriptor->buffer_count, 4);
    hurray_descriptor_destroy(descriptor);
    /* What was read last is known to tensor_info. */
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    assert_int_equal(hurray_file_reader_core_tensor_info(core, 1, &info), HURRAY_OK);
    assert_int_equal(info.buffer_count, 4);
    assert_int_equal(info.buffer_offsets[0], info.data_offset);
    assert_int_equal(info.buffer_offsets[1], info.data_offset + 4096);
    assert_int_equal(info.buffer_offsets[3], info.data_offset + 12288);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void a_tensor_is_one_range_for_the_descriptor_and_one_a_buffer(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0};
    build(&built, 0, false);
    HurrayFileReaderCore *core = open_core(&drive, &built, NULL);
    HurrayTensor *tensor = read_tensor(&drive, core, "many");
    assert_int_equal(drive.ranges, 4); /* the empty buffer needs none */
    assert_int_equal(drive.lens[1], 300);
    assert_int_equal(drive.lens[2], 5000);
    assert_int_equal(drive.offsets[3], built.rows[1].data_offset + 12288);
    assert_tensor_pattern(tensor, 1);
    hurray_tensor_destroy(&tensor);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void short_reads_at_every_position_change_nothing(void **state) {
    (void)state;
    Container built;
    build(&built, BUILD_SUMS, true);
    for (size_t every = 1; every < 70; every += every < 10 ? 1 : 13) {
        FileDrive drive = {.every = every};
        HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
        options.verify_data = HURRAY_VERIFY_REQUIRED;
        HurrayFileReaderCore *core = open_core(&drive, &built, &options);
        HurrayTensor *tensor = read_tensor(&drive, core, "many");
        assert_tensor_pattern(tensor, 1);
        hurray_tensor_destroy(&tensor);
        hurray_file_reader_core_destroy(&core);
    }
    container_free(&built);
}

static void a_short_read_keeps_the_position(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0};
    HurrayStep first, step;
    uint8_t *dst, *rest;
    size_t len, left;
    build(&built, 0, false);
    HurrayFileReaderCore *core = open_core(&drive, &built, NULL);
    hurray_file_reader_core_begin_tensor(core, "z.last", 6);
    hurray_file_reader_core_step(core, &step);
    hurray_file_reader_core_input_dst(core, &dst, &len);
    memcpy(dst, built.bytes + step.offset, len);
    hurray_file_reader_core_report_filled(core, len);
    assert_int_equal(hurray_file_reader_core_step(core, &first), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_input_dst(core, &dst, &len), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_report_filled(core, 7), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
    assert_int_equal(step.offset, first.offset + 7);
    assert_int_equal(step.len, first.len - 7);
    assert_int_equal(hurray_file_reader_core_input_dst(core, &rest, &left), HURRAY_OK);
    assert_ptr_equal(rest, dst + 7);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void a_lost_count_is_the_same_range_again(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0};
    HurrayStep first, again;
    uint8_t *dst, *dst_again;
    size_t len;
    build(&built, 0, false);
    HurrayFileReaderCore *core = open_core(&drive, &built, NULL);
    hurray_file_reader_core_begin_tensor(core, "a", 1);
    assert_int_equal(hurray_file_reader_core_step(core, &first), HURRAY_OK);
    hurray_file_reader_core_input_dst(core, &dst, &len);
    memset(dst, 0xCC, len / 2); /* bytes moved, and nobody reported them */
    assert_int_equal(hurray_file_reader_core_step(core, &again), HURRAY_OK);
    hurray_file_reader_core_input_dst(core, &dst_again, &len);
    assert_memory_equal(&first, &again, sizeof first);
    assert_ptr_equal(dst, dst_again);
    HurrayStep step;
    assert_int_equal(file_drive(&drive, core, &step), HURRAY_OK);
    assert_int_equal(step.kind, HURRAY_STEP_TENSOR);
    hurray_file_reader_core_destroy(&core); /* with a result that nobody took */
    container_free(&built);
}

static void an_invalid_report_changes_nothing(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0};
    HurrayStep step, again;
    HurrayWindow window;
    build(&built, 0, false);
    HurrayFileReaderCore *core = core_of(&built, NULL);
    assert_int_equal(hurray_file_reader_core_report_filled(core, 1), HURRAY_ERR_WRONG_STATE); /* nothing was asked for */
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_report_filled(core, 65), HURRAY_ERR_INVALID_REPORT);
    assert_int_equal(hurray_file_reader_core_step(core, &again), HURRAY_OK);
    assert_memory_equal(&step, &again, sizeof step);
    hurray_file_reader_core_destroy(&core);
    core = open_core(&drive, &built, NULL);
    assert_int_equal(hurray_file_reader_core_report_filled(core, 1), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_file_reader_core_input_window(core, &window), HURRAY_ERR_WRONG_STATE);
    hurray_file_reader_core_begin_tensor(core, "a", 1);
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_report_filled(core, (size_t)step.len + 1), HURRAY_ERR_INVALID_REPORT);
    assert_int_equal(hurray_file_reader_core_step(core, &again), HURRAY_OK);
    assert_memory_equal(&step, &again, sizeof step);
    assert_int_equal(file_drive(&drive, core, &step), HURRAY_OK);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void zero_means_the_file_is_truncated_and_costs_the_job_only(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0};
    HurrayStep step;
    build(&built, 0, false);
    HurrayFileReaderCore *core = open_core(&drive, &built, NULL);
    for (int ranges = 0; ranges < 4; ranges++) { /* at the descriptor, then at each buffer */
        assert_int_equal(hurray_file_reader_core_begin_tensor(core, "many", 4), HURRAY_OK);
        for (int r = 0; r < ranges; r++) {
            uint8_t *dst;
            size_t len;
            assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
            hurray_file_reader_core_input_dst(core, &dst, &len);
            memcpy(dst, built.bytes + step.offset, len);
            assert_int_equal(hurray_file_reader_core_report_filled(core, len), HURRAY_OK);
        }
        assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
        assert_int_equal(step.kind, HURRAY_STEP_RANGE);
        assert_int_equal(hurray_file_reader_core_report_filled(core, 0), HURRAY_ERR_TRUNCATED);
        assert_string_equal(hurray_file_reader_core_last_error(core)->tensor, "many");
        assert_int_equal(hurray_file_reader_core_last_error(core)->offset, step.offset);
        assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
        assert_int_equal(step.kind, HURRAY_STEP_READY);
    }
    HurrayTensor *tensor = read_tensor(&drive, core, "many");
    assert_tensor_pattern(tensor, 1);
    hurray_tensor_destroy(&tensor);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void a_failed_open_is_terminal(void **state) {
    (void)state;
    Container built;
    HurrayStep step;
    build(&built, 0, true);
    for (int cut = 0; cut < 4; cut++) { /* zero at header, trailer, index, KV */
        HurrayFileReaderCore *core = core_of(&built, NULL), *fork = NULL;
        for (int r = 0; r < cut; r++) {
            uint8_t *dst;
            size_t len;
            assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
            hurray_file_reader_core_input_dst(core, &dst, &len);
            memcpy(dst, built.bytes + step.offset, len);
            assert_int_equal(hurray_file_reader_core_report_filled(core, len), HURRAY_OK);
        }
        uint64_t count;
        assert_int_equal(hurray_file_reader_core_tensor_count(core, &count), HURRAY_ERR_WRONG_STATE);
        assert_int_equal(hurray_file_reader_core_begin_tensor(core, "a", 1), HURRAY_ERR_WRONG_STATE);
        assert_int_equal(hurray_file_reader_core_fork(core, &fork, NULL), HURRAY_ERR_WRONG_STATE);
        assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
        assert_int_equal(hurray_file_reader_core_report_filled(core, 0), HURRAY_ERR_TRUNCATED);
        uint32_t reason;
        assert_int_equal(hurray_file_reader_core_is_unusable(core, &reason), HURRAY_OK);
        assert_int_equal(reason, HURRAY_UNUSABLE_FAILED_OPEN);
        for (int again = 0; again < 2; again++) assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_ERR_UNUSABLE);
        assert_int_equal(hurray_file_reader_core_report_filled(core, 1), HURRAY_ERR_UNUSABLE);
        assert_int_equal(hurray_file_reader_core_begin_descriptor(core, "a", 1), HURRAY_ERR_UNUSABLE);
        assert_int_equal(hurray_file_reader_core_tensor_count(core, &count), HURRAY_ERR_UNUSABLE);
        assert_int_equal(hurray_file_reader_core_fork(core, &fork, NULL), HURRAY_ERR_UNUSABLE);
        hurray_file_reader_core_destroy(&core);
    }
    HurrayFileReaderCore *core = core_of(&built, NULL);
    hurray_file_reader_core_step(core, &step);
    assert_int_equal(hurray_file_reader_core_abandon(core), HURRAY_OK); /* an open given up is as good as failed */
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_ERR_UNUSABLE);
    hurray_file_reader_core_destroy(&core);
    core = NULL;
    assert_int_equal(hurray_file_reader_core_new(111, NULL, &core, NULL), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_ERR_TRUNCATED);
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_ERR_UNUSABLE);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void every_buffer_is_aligned_as_its_handle_declares(void **state) {
    (void)state;
    HurrayBufferHandle handles[4] = {{.byte_size = 65, .alignment = 2 * MIB},
                                     {.byte_size = 129, .alignment = 4096},
                                     {.byte_size = 1, .alignment = 128},
                                     {.byte_size = 4097, .alignment = 64}};
    Container built;
    FileDrive drive = {0};
    container_begin_file(&built, 4096);
    container_add(&built, "many", make_many(handles, 4));
    container_add(&built, "g", make_group(2));
    container_add(&built, "g.0", make_plain(10, 2 * MIB));
    container_add(&built, "g.1", make_many(handles, 4));
    container_finish(&built, 0, NULL, 0);
    HurrayFileReaderCore *core = open_core(&drive, &built, NULL);
    HurrayTensor *tensor = read_tensor(&drive, core, "many");
    HurrayStep step;
    HurrayItem *item = NULL;
    assert_int_equal(hurray_file_reader_core_begin_composite(core, "g", 1), HURRAY_OK);
    assert_int_equal(file_drive(&drive, core, &step), HURRAY_OK);
    assert_int_equal(step.kind, HURRAY_STEP_COMPOSITE);
    assert_int_equal(hurray_file_reader_core_take_composite(core, &item), HURRAY_OK);
    for (int which = 0; which < 3; which++) {
        HurrayItemNode node = {.tensor = tensor};
        HurrayBufferList *list = NULL;
        const HurrayDescriptor *descriptor = NULL;
        uint64_t count = 0;
        if (which) assert_int_equal(hurray_item_node(item, (uint64_t)which, &node), HURRAY_OK);
        hurray_tensor_buffers(node.tensor, &list);
        hurray_tensor_descriptor(node.tensor, &descriptor);
        hurray_buffer_list_len(list, &count);
        assert_true(count > 0);
        for (uint32_t k = 0; k < count; k++) {
            HurrayBuffer *buffer = NULL;
            void *data = NULL;
            hurray_buffer_list_get(list, k, &buffer);
            hurray_buffer_data_ptr(buffer, &data);
            assert_int_equal((uintptr_t)data % descriptor->buffers[k].alignment, 0);
        }
    }
    hurray_tensor_destroy(&tensor);
    hurray_item_destroy(&item);
    hurray_file_reader_core_destroy(&core);
    container_free(&built);
}

static void the_payload_is_copied_once_by_the_transport(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0};
    HurrayStep step;
    uint8_t *dst[5];
    size_t len;
    build(&built, 0, false);
    HurrayFileReaderCore *core = open_core(&drive, &built, NULL);
    hurray_file_reader_core_begin_tensor(core, "many", 4);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
        hurray_file_reader_core_input_dst(core, &dst[r], &len);
        memcpy(dst[r], built.bytes + step.offset, len);
        hurray_file_reader_core_report_filled(core, len);
    }
    HurrayTensor *tensor = NULL;
    HurrayBufferList *list = NULL;
    assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
    assert_int_equal(hurray_file_reader_core_take_tensor(core, &tensor), HURRAY_OK);
    hurray_tensor_buffers(tensor, &list);
    static const uint64_t filled[3] = {0, 1, 3};
    for (int k = 0; k < 3; k++) {
        HurrayBuffer *buffer = NULL;
        void *data = NULL;
        hurray_buffer_list_get(list, filled[k], &buffer);
        hurray_buffer_data_ptr(buffer, &data);
        assert_ptr_equal(data, dst[k + 1]);
    }
    hurray_file_reader_core_destroy(&core); /* tensors outlive what made them */
    assert_tensor_pattern(tensor, 1);
    hurray_tensor_destroy(&tensor);
    container_free(&built);
}

static void beginning_over_a_job_abandons_it(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0};
    FailDestination fail;
    HurrayStep step;
    build(&built, 0, false);
    fail_destination_init(&fail);
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    options.destination = &fail.destination;
    HurrayFileReaderCore *core = open_core(&drive, &built, &options);
    for (int ranges = 0; ranges < 5; ranges++) {
        hurray_file_reader_core_begin_tensor(core, "many", 4);
        for (int r = 0; r < ranges; r++) {
            uint8_t *dst;
            size_t len;
            hurray_file_reader_core_step(core, &step);
            if (step.kind != HURRAY_STEP_RANGE) break;
            hurray_file_reader_core_input_dst(core, &dst, &len);
            memcpy(dst, built.bytes + step.offset, len);
            hurray_file_reader_core_report_filled(core, len);
        }
        hurray_file_reader_core_step(core, &step);
        if (ranges % 2)
            hurray_file_reader_core_abandon(core);
        else
            hurray_file_reader_core_begin_descriptor(core, "a", 1);
        assert_int_equal(fail.live, 0); /* what was half filled is gone, and nobody saw it */
    }
    HurrayTensor *tensor = read_tensor(&drive, core, "many");
    hurray_file_reader_core_destroy(&core);
    assert_int_equal(fail.retains, 1);
    assert_int_equal(fail.releases, 1);
    hurray_tensor_destroy(&tensor);
    fail_destination_assert_empty(&fail);
    container_free(&built);
}

static void forks_share_the_index_and_nothing_else(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0}, other = {0};
    FailDestination fail;
    build(&built, 0, true);
    fail_destination_init(&fail);
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    options.destination = &fail.destination;
    HurrayFileReaderCore *core = open_core(&drive, &built, &options), *fork = NULL;
    HurrayStep step;
    assert_int_equal(hurray_file_reader_core_fork(core, &fork, NULL), HURRAY_OK);
    other = drive;
    hurray_file_reader_core_begin_tensor(core, "many", 4);
    hurray_file_reader_core_step(core, &step);
    HurrayTensor *tensor = read_tensor(&other, fork, "z.last");
    assert_tensor_pattern(tensor, 0);
    hurray_tensor_destroy(&tensor);
    assert_int_equal(hurray_file_reader_core_report_filled(core, 0), HURRAY_ERR_TRUNCATED);
    hurray_file_reader_core_destroy(&core);
    assert_int_equal(fail.releases, 0); /* the fork still uses the destination */
    tensor = read_tensor(&other, fork, "many");
    assert_tensor_pattern(tensor, 1);
    hurray_tensor_destroy(&tensor);
    hurray_file_reader_core_destroy(&fork);
    assert_int_equal(fail.releases, 1);
    container_free(&built);
}

static void wait_is_a_step_with_a_reason(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0};
    FailDestination fail;
    HurrayStep step;
    uint32_t seen = 0;
    build(&built, BUILD_SUMS, false);
    fail_destination_init(&fail);
    fail.waits = 1;
    fail.window_bytes = 700;
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    options.destination = &fail.destination;
    options.verify_data = HURRAY_VERIFY_STORED;
    HurrayFileReaderCore *core = open_core(&drive, &built, &options);
    hurray_file_reader_core_begin_tensor(core, "many", 4);
    for (;;) {
        assert_int_equal(hurray_file_reader_core_step(core, &step), HURRAY_OK);
        if (step.kind == HURRAY_STEP_WAIT) {
            HurrayWindow window;
            seen |= 1u << step.reason;
            assert_int_equal(hurray_file_reader_core_input_window(core, &window), HURRAY_ERR_WRONG_STATE);
        } else if (step.kind == HURRAY_STEP_RANGE) {
            uint8_t *dst;
            size_t len;
            hurray_file_reader_core_input_dst(core, &dst, &len);
            memcpy(dst, built.bytes + step.offset, len);
            assert_int_equal(hurray_file_reader_core_report_filled(core, len), HURRAY_OK);
        } else
            break;
    }
    assert_int_equal(step.kind, HURRAY_STEP_TENSOR);
    assert_int_equal(seen, 1u << HURRAY_WAIT_ALLOCATE | 1u << HURRAY_WAIT_WINDOW | 1u << HURRAY_WAIT_FREEZE);
    assert_true(fail.requests[0].flags & HURRAY_REQUEST_WILL_READ);
    assert_int_equal(fail.requests[0].source_offset, built.rows[1].data_offset);
    hurray_file_reader_core_destroy(&core);
    fail_destination_assert_empty(&fail);
    container_free(&built);
}

static void a_destination_failing_at_any_call_costs_one_job(void **state) {
    (void)state;
    Container built;
    FileDrive drive = {0};
    FailDestination fail;
    build(&built, 0, false);
    fail_destination_init(&fail);
    fail.window_bytes = 4000;
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    options.destination = &fail.destination;
    HurrayFileReaderCore *core = open_core(&drive, &built, &options);
    uint64_t n = 1;
    for (bool done = false; !done; n++) {
        HurrayStep step;
        fail_destination_arm(&fail, n, -4321, false);
        hurray_file_reader_core_begin_tensor(core, "many", 4);
        drive.tail = SIZE_MAX;
        HurrayStatus status = file_drive(&drive, core, &step);
        done = status == HURRAY_OK;
        if (!done) {
            assert_int_equal(status, -4321);
            assert_int_equal(hurray_file_reader_core_last_error(core)->cause, -4321);
            assert_string_equal(hurray_file_reader_core_last_error(core)->tensor, "many");
            fail_destination_assert_empty(&fail);
        }
    }
    assert_true(n > 10);
    hurray_file_reader_core_destroy(&core);
    fail_destination_assert_empty(&fail);
    container_free(&built);
}

/* Open, a tensor, a composite, all with one allocator. */
static HurrayStatus whole_use(const Container *built, FailAlloc *alloc, FailDestination *fail) {
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    FileDrive drive = {.bytes = built->bytes, .len = built->len, .tail = SIZE_MAX};
    HurrayFileReaderCore *core = NULL, *fork = NULL;
    HurrayTensor *tensor = NULL;
    HurrayItem *item = NULL;
    HurrayStep step;
    options.allocator = &alloc->allocator;
    options.destination = &fail->destination;
    options.label = "label";
    options.label_len = 5;
    HurrayStatus status = hurray_file_reader_core_new(built->len, &options, &core, NULL);
    if (status == HURRAY_OK) status = file_drive(&drive, core, &step);
    if (status == HURRAY_OK) status = hurray_file_reader_core_fork(core, &fork, NULL);
    if (status == HURRAY_OK) status = hurray_file_reader_core_begin_tensor(fork, "many", 4);
    drive.tail = SIZE_MAX;
    if (status == HURRAY_OK) status = file_drive(&drive, fork, &step);
    if (status == HURRAY_OK) status = hurray_file_reader_core_take_tensor(fork, &tensor);
    if (status == HURRAY_OK) status = hurray_file_reader_core_begin_composite(core, "g", 1);
    drive.tail = SIZE_MAX;
    if (status == HURRAY_OK) status = file_drive(&drive, core, &step);
    if (status == HURRAY_OK) status = hurray_file_reader_core_take_composite(core, &item);
    hurray_file_reader_core_destroy(&fork);
    hurray_file_reader_core_destroy(&core);
    hurray_tensor_destroy(&tensor);
    hurray_item_destroy(&item);
    return status;
}

static void an_allocation_failing_at_any_point_leaks_nothing(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags < 9; flags += 8) {
        Container built;
        FailAlloc alloc;
        FailDestination fail;
        build(&built, flags | BUILD_SUMS, true);
        fail_alloc_init(&alloc);
        fail_destination_init(&fail);
        for (uint64_t k = 1;; k++) {
            fail_alloc_arm(&alloc, k, 0);
            HurrayStatus status = whole_use(&built, &alloc, &fail);
            fail_alloc_assert_empty(&alloc);
            fail_destination_assert_empty(&fail);
            assert_int_equal(fail.retains, fail.releases);
            if (status == HURRAY_OK) break;
            assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        }
        container_free(&built);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_takes_four_ranges_and_three_without_kv),
        cmocka_unit_test(names_kv_and_places_are_there_after_opening),
        cmocka_unit_test(a_descriptor_is_one_range_and_not_a_byte_of_payload),
        cmocka_unit_test(a_tensor_is_one_range_for_the_descriptor_and_one_a_buffer),
        cmocka_unit_test(short_reads_at_every_position_change_nothing),
        cmocka_unit_test(a_short_read_keeps_the_position),
        cmocka_unit_test(a_lost_count_is_the_same_range_again),
        cmocka_unit_test(an_invalid_report_changes_nothing),
        cmocka_unit_test(zero_means_the_file_is_truncated_and_costs_the_job_only),
        cmocka_unit_test(a_failed_open_is_terminal),
        cmocka_unit_test(every_buffer_is_aligned_as_its_handle_declares),
        cmocka_unit_test(the_payload_is_copied_once_by_the_transport),
        cmocka_unit_test(beginning_over_a_job_abandons_it),
        cmocka_unit_test(forks_share_the_index_and_nothing_else),
        cmocka_unit_test(wait_is_a_step_with_a_reason),
        cmocka_unit_test(a_destination_failing_at_any_call_costs_one_job),
        cmocka_unit_test(an_allocation_failing_at_any_point_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
