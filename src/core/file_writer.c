#include "core/file_writer.h"

#include <string.h>

#include "base/checked.h"
#include "base/names.h"
#include "base/options.h"
#include "format/container.h"
#include "format/crc32c.h"
#include "format/index.h"
#include "format/kv.h"
#include "format/sums.h"

#define KNOWN_FLAGS (HURRAY_WRITE_SORTED_INDEX | HURRAY_WRITE_NO_CHECKSUMS | HURRAY_WRITE_CROSS_MACHINE)

/* One tensor of the index; the name lies in `names` at name_at. */
typedef struct Row {
    uint64_t name_at, descriptor_offset, data_offset, data_length;
    uint32_t descriptor_length, name_len;
} Row;

typedef enum Item { ITEM_HEADER, ITEM_TENSORS, ITEM_FOOTER } Item;

/* Everything that an item would change stands behind the committed counts until its last byte is accepted. */
struct HurrayFileWriterCore {
    HryOutput output; /* first: hry_output's commit finds the core */
    uint32_t flags, alignment;
    bool has_header;
    Item item;
    size_t staged_rows, staged_name_bytes, staged_sums;
    Row *rows;
    size_t row_count, row_capacity;
    uint8_t *name_bytes;
    size_t name_len, name_capacity;
    HryNames names; /* of the committed rows */
    uint8_t *buffer_counts;
    size_t buffer_count_capacity;
    uint32_t *sums;
    size_t sum_count, sum_capacity;
};

HryOutput *hry_file_writer_output(HurrayFileWriterCore *core) { return &core->output; }
bool hry_file_writer_is_finished(const HurrayFileWriterCore *core) { return core->output.finished; }

static void name_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const HurrayFileWriterCore *core = ctx;
    *name = core->name_bytes + core->rows[i].name_at;
    *len = core->rows[i].name_len;
}

static void row_at(const void *ctx, uint64_t i, HryIndexRow *out) {
    const HurrayFileWriterCore *core = ctx;
    const Row *row = &core->rows[i];
    *out = (HryIndexRow){.name = core->name_bytes + row->name_at,
                         .name_len = row->name_len,
                         .descriptor_offset = row->descriptor_offset,
                         .descriptor_length = row->descriptor_length,
                         .data_offset = row->data_offset,
                         .data_length = row->data_length};
}

static void commit(HryOutput *output) {
    HurrayFileWriterCore *core = (HurrayFileWriterCore *)output;
    if (core->item == ITEM_HEADER) core->has_header = true;
    if (core->item == ITEM_FOOTER) core->output.finished = true;
    if (core->item != ITEM_TENSORS) return;
    for (size_t i = 0; i < core->staged_rows; i++) hry_names_add(&core->names, core->row_count + i, NULL); /* room was reserved */
    core->row_count += core->staged_rows;
    core->name_len += core->staged_name_bytes;
    core->sum_count += core->staged_sums;
    hry_tree_commit(&output->tree);
}

static HurrayStatus read_options(const HurrayFileWriterOptions *user, HurrayFileWriterOptions *out, HurrayError *error) {
    HurrayStatus status = hry_options_read(out, sizeof *out, sizeof *out, user, "HurrayFileWriterOptions", error);
    if (status != HURRAY_OK) return status;
    if ((out->flags & ~KNOWN_FLAGS) || out->reserved)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "flags", HRY_NO_OFFSET,
                        "HurrayFileWriterOptions.flags is 0x%x and reserved is %u; this library knows the flags 0x%x, reserved must be 0",
                        out->flags, out->reserved, KNOWN_FLAGS);
    if (out->data_buffer_alignment == 0) out->data_buffer_alignment = HRY_MIN_DATA_ALIGNMENT;
    if (!hry_is_pow2(out->data_buffer_alignment) || out->data_buffer_alignment < HRY_MIN_DATA_ALIGNMENT ||
        out->data_buffer_alignment > HRY_MAX_DATA_ALIGNMENT)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "data_buffer_alignment", HRY_NO_OFFSET,
                        "data_buffer_alignment is %u, expected 0 or a power of two from %u to %u", out->data_buffer_alignment,
                        HRY_MIN_DATA_ALIGNMENT, HRY_MAX_DATA_ALIGNMENT);
    return HURRAY_OK;
}

static HurrayStatus make_core(const HurrayFileWriterOptions *user, HurrayFileWriterCore **out, HurrayError *error) {
    HurrayFileWriterOptions options = HURRAY_FILE_WRITER_OPTIONS_INIT;
    HryOutput output;
    HurrayStatus status = read_options(user, &options, error);
    if (status == HURRAY_OK) status = hry_output_init(&output, options.allocator, options.label, options.label_len, error);
    if (status != HURRAY_OK) return status;
    HurrayFileWriterCore *core = hry_alloc(&output.allocator, sizeof *core);
    if (!core) return hry_fail_memory(error, "a file writer", sizeof *core);
    core->output = output;
    core->output.commit = commit;
    core->output.cross_machine = (options.flags & HURRAY_WRITE_CROSS_MACHINE) != 0;
    core->flags = options.flags;
    core->alignment = options.data_buffer_alignment;
    if (!hry_names_init(&core->names, &core->output.allocator, 0, name_at, core)) {
        hry_free(&output.allocator, core, sizeof *core);
        return hry_fail_memory(error, "the names of a file", 0);
    }
    *out = core;
    return HURRAY_OK;
}

HurrayStatus hurray_file_writer_core_destroy(HurrayFileWriterCore **handle) {
    if (!handle) return HURRAY_ERR_NULL_POINTER;
    HurrayFileWriterCore *core = *handle;
    *handle = NULL;
    if (!core) return HURRAY_OK;
    HurrayAllocator allocator = core->output.allocator;
    hry_output_clear(&core->output);
    hry_names_clear(&core->names);
    hry_free_array(&allocator, core->rows, core->row_capacity, sizeof *core->rows);
    hry_free(&allocator, core->name_bytes, core->name_capacity);
    hry_free(&allocator, core->buffer_counts, core->buffer_count_capacity);
    hry_free_array(&allocator, core->sums, core->sum_capacity, sizeof *core->sums);
    hry_free(&allocator, core, sizeof *core);
    return HURRAY_OK;
}

/* ---- items ---- */

/* What every item begins with: no other in flight, the order of a file kept. */
static HurrayStatus begin(HurrayFileWriterCore *core, Item item, HurrayError *error) {
    HurrayStatus status = hry_output_begin(&core->output, error);
    if (status != HURRAY_OK) return status;
    core->item = item;
    core->staged_rows = core->staged_name_bytes = core->staged_sums = 0;
    if (core->output.finished)
        return hry_fail(error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET, "the file is finished; nothing can be added to it");
    if ((item == ITEM_HEADER) == core->has_header)
        return hry_fail(error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET,
                        item == ITEM_HEADER ? "the header is written already" : "the header must be written first");
    return HURRAY_OK;
}

HurrayStatus hry_file_writer_header(HurrayFileWriterCore *core, HurrayError *error) {
    uint8_t *bytes;
    HurrayStatus status = begin(core, ITEM_HEADER, error);
    if (status == HURRAY_OK) status = hry_output_own(&core->output, HRY_HEADER_SIZE, &bytes, error);
    if (status != HURRAY_OK) return status;
    HryHeader header = {.major = 1,
                        .flags = HRY_FILE_INDEX_CRC | (core->flags & HURRAY_WRITE_SORTED_INDEX ? HRY_FILE_SORTED_INDEX : 0),
                        .data_buffer_alignment = core->alignment,
                        .first_descriptor_offset = HRY_HEADER_SIZE,
                        .tensor_count_hint = UINT64_MAX};
    hry_header_encode(&header, bytes);
    hry_output_start(&core->output);
    return HURRAY_OK;
}

/* Room for everything that the item will commit, so that commit cannot fail. */
static HurrayStatus reserve(HurrayFileWriterCore *core, size_t rows, size_t name_bytes, size_t sums, HurrayError *error) {
    const HurrayAllocator *allocator = &core->output.allocator;
    void *memory;
    bool there = core->row_count <= HRY_INDEX_MAX_ENTRIES && rows <= HRY_INDEX_MAX_ENTRIES - core->row_count;
    if (!there)
        return hry_fail(error, HURRAY_ERR_LIMIT, NULL, HRY_NO_OFFSET, "a file of this library holds at most %u tensors",
                        HRY_INDEX_MAX_ENTRIES);
    memory = core->rows;
    there = hry_grow(allocator, &memory, &core->row_capacity, core->row_count + rows, sizeof *core->rows);
    core->rows = memory;
    memory = core->buffer_counts;
    there = there && hry_grow(allocator, &memory, &core->buffer_count_capacity, core->row_count + rows, 1);
    core->buffer_counts = memory;
    memory = core->name_bytes;
    there = there && name_bytes <= SIZE_MAX - core->name_len &&
            hry_grow(allocator, &memory, &core->name_capacity, core->name_len + name_bytes, 1);
    core->name_bytes = memory;
    memory = core->sums;
    there = there && sums <= SIZE_MAX - core->sum_count &&
            hry_grow(allocator, &memory, &core->sum_capacity, core->sum_count + sums, sizeof *core->sums);
    core->sums = memory;
    there = there && hry_names_reserve(&core->names, rows);
    return there ? HURRAY_OK : hry_fail_memory(error, "the index", (uint64_t)rows * sizeof *core->rows + name_bytes);
}

static HurrayStatus check_name(HurrayFileWriterCore *core, const void *name, size_t len, HurrayError *error) {
    uint64_t other;
    if (len && !name) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "name", HRY_NO_OFFSET, "the name is NULL but has a length");
    HurrayStatus status = hry_index_check_name(name, len, HRY_NO_OFFSET, HURRAY_ERR_INVALID_NAME, "name", error);
    if (status != HURRAY_OK) return status;
    if (hry_names_find(&core->names, name, len, &other))
        return hry_fail(error, HURRAY_ERR_DUPLICATE_NAME, "name", HRY_NO_OFFSET,
                        "tensor %llu of this file has the same name; give each tensor its own", (unsigned long long)other);
    return HURRAY_OK;
}

/* Stages one tensor whose name and descriptor were checked and for which there is room: its row, and its pieces. */
static HurrayStatus stage(HurrayFileWriterCore *core, const void *name, size_t len, const HurrayDescriptor *descriptor,
                          const HurrayIoSlice *slices, HurrayError *error) {
    HryOutput *output = &core->output;
    size_t i = core->row_count + core->staged_rows;
    Row *row = &core->rows[i];
    row->name_at = core->name_len + core->staged_name_bytes;
    row->name_len = (uint32_t)len;
    memcpy(core->name_bytes + row->name_at, name, len);
    row->descriptor_offset = output->position + hry_output_length(output);
    HurrayStatus status = hry_output_descriptor(output, descriptor, error);
    if (status != HURRAY_OK) return status;
    uint64_t end = output->position + hry_output_length(output), start; /* fits: add_piece checked it */
    row->descriptor_length = (uint32_t)(end - row->descriptor_offset);
    row->data_offset = end;
    for (uint32_t k = 0; status == HURRAY_OK && k < descriptor->buffer_count; k++) {
        uint32_t *sum = &core->sums[core->sum_count + core->staged_sums++];
        *sum = 0;
        if (!hry_align_up(end, core->alignment, &start))
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, NULL, HRY_NO_OFFSET, "the file would be longer than 2^64 bytes");
        status = hry_output_padding(output, start - end, error);
        if (status == HURRAY_OK)
            status = hry_output_buffer(output, slices ? slices[k].ptr : NULL, descriptor->buffers[k].byte_size, k,
                                       core->flags & HURRAY_WRITE_NO_CHECKSUMS ? NULL : sum, error);
        if (k == 0) row->data_offset = start;
        end = output->position + hry_output_length(output);
    }
    row->data_length = end - row->data_offset;
    core->buffer_counts[i] = (uint8_t)descriptor->buffer_count;
    core->staged_rows++;
    core->staged_name_bytes += len;
    if (status == HURRAY_OK && !hry_align_up(end, HRY_PART_ALIGNMENT, &start))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, NULL, HRY_NO_OFFSET, "the file would be longer than 2^64 bytes");
    return status == HURRAY_OK ? hry_output_padding(output, start - end, error) : status;
}

static HurrayStatus tensor(HurrayFileWriterCore *core, const void *name, size_t len, const HurrayDescriptor *descriptor,
                           const HurrayIoSlice *slices, size_t count, HurrayError *error) {
    HurrayStatus status = begin(core, ITEM_TENSORS, error);
    if (status == HURRAY_OK) status = check_name(core, name, len, error);
    if (status == HURRAY_OK) status = hry_output_check_tensor(&core->output, descriptor, slices, count, error);
    if (status == HURRAY_OK) status = hry_tree_test(&core->output.tree, descriptor, false, error);
    if (status == HURRAY_OK) status = reserve(core, 1, len, descriptor->buffer_count, error);
    if (status == HURRAY_OK) status = stage(core, name, len, descriptor, slices, error);
    if (status == HURRAY_OK) hry_output_start(&core->output);
    return status;
}

HurrayStatus hry_file_writer_tensor(HurrayFileWriterCore *core, const void *name, size_t len, const HurrayDescriptor *descriptor,
                                    const HurrayIoSlice *slices, size_t count, HurrayError *error) {
    HurrayStatus status = tensor(core, name, len, descriptor, slices, count, error);
    if (status == HURRAY_OK) return status;
    if (!core->output.poisoned) hry_output_drop(&core->output);
    hry_error_set_tensor(error, name, name ? len : 0, core->row_count);
    return status;
}

/* No two names of the composite are alike. The staged rows hold them. */
static HurrayStatus check_staged_names(HurrayFileWriterCore *core, HurrayError *error) {
    HryNames names;
    if (!hry_names_init(&names, &core->output.allocator, core->staged_rows, name_at, core))
        return hry_fail_memory(error, "the names of a composite", core->staged_rows);
    HurrayStatus status = HURRAY_OK;
    for (size_t i = core->row_count; status == HURRAY_OK && i < core->row_count + core->staged_rows; i++) {
        uint64_t other;
        HryNamesAdd added = hry_names_add(&names, i, &other);
        if (added == HRY_NAMES_NO_MEMORY) status = hry_fail_memory(error, "the names of a composite", core->staged_rows);
        if (added == HRY_NAMES_DUPLICATE) {
            status = hry_fail(error, HURRAY_ERR_DUPLICATE_NAME, "name", HRY_NO_OFFSET,
                              "nodes %llu and %zu of the composite have the same name; give each tensor its own",
                              (unsigned long long)(other - core->row_count), i - core->row_count);
            hry_error_set_tensor(error, core->name_bytes + core->rows[i].name_at, core->rows[i].name_len, i);
        }
    }
    hry_names_clear(&names);
    return status;
}

static HurrayStatus stage_nodes(HurrayFileWriterCore *core, const HurrayCompositeNode *nodes, const HryTreeNames *names,
                                HurrayError *error) {
    size_t name_bytes = 0, sums = 0; /* below the caller's own memory: cannot wrap */
    HurrayStatus status = HURRAY_OK;
    for (size_t i = 0; status == HURRAY_OK && i < names->count; i++) {
        status = check_name(core, names->names[i].ptr, names->names[i].len, error);
        if (status == HURRAY_OK)
            status = hry_output_check_tensor(&core->output, nodes[i].descriptor, nodes[i].slices, nodes[i].slice_count, error);
        if (status != HURRAY_OK) hry_error_set_tensor(error, names->names[i].ptr, names->names[i].len, core->row_count + i);
        name_bytes += names->names[i].len;
        sums += nodes[i].descriptor->buffer_count;
    }
    if (status == HURRAY_OK) status = reserve(core, names->count, name_bytes, sums, error);
    for (size_t i = 0; status == HURRAY_OK && i < names->count; i++)
        status = stage(core, names->names[i].ptr, names->names[i].len, nodes[i].descriptor, nodes[i].slices, error);
    return status == HURRAY_OK ? check_staged_names(core, error) : status;
}

HurrayStatus hry_file_writer_composite(HurrayFileWriterCore *core, const HurrayCompositeNode *nodes, size_t count, HurrayError *error) {
    HryOutput *output = &core->output;
    HryTreeNames names = {0};
    HurrayStatus status = begin(core, ITEM_TENSORS, error);
    if (status == HURRAY_OK)
        status = hry_tree_check_nodes(nodes, count, HRY_MAX_COMPOSITE_DEPTH - output->tree.depth, &output->allocator, error);
    if (status == HURRAY_OK) status = hry_tree_test(&output->tree, nodes[0].descriptor, true, error);
    if (status == HURRAY_OK) status = hry_tree_names_init(&names, nodes, count, &output->allocator, error);
    if (status == HURRAY_OK) status = stage_nodes(core, nodes, &names, error);
    hry_tree_names_clear(&names);
    if (status == HURRAY_OK)
        hry_output_start(output);
    else if (!output->poisoned)
        hry_output_drop(output);
    return status;
}

/* ---- the footer: KV, index, trailer ---- */

/* The caller's entries without one of our key, then the stored sums where there are any. */
static HurrayStatus encode_kv(HurrayFileWriterCore *core, const HurrayKvEntry *kv, size_t count, uint8_t **bytes, size_t *len,
                              HurrayError *error) {
    const HurrayAllocator *allocator = &core->output.allocator;
    uint8_t *value = NULL;
    size_t value_len = 0, kept = 0, room;
    HurrayKvEntry *entries = NULL;
    HurrayStatus status = HURRAY_OK;
    *bytes = NULL;
    *len = 0;
    if (count && !kv) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "kv", HRY_NO_OFFSET, "the metadata is NULL but has a count");
    if (!(core->flags & HURRAY_WRITE_NO_CHECKSUMS))
        status = hry_sums_encode(core->buffer_counts, core->row_count, core->sums, core->sum_count, allocator, &value, &value_len, error);
    if (status != HURRAY_OK) return status;
    if (!hry_add_size(count, 1, &room) || !(entries = hry_alloc_array(allocator, room, sizeof *entries)))
        status = hry_fail_memory(error, "the metadata", (uint64_t)count * sizeof *entries);
    for (size_t i = 0; status == HURRAY_OK && i < count; i++)
        if (!kv[i].key || kv[i].key_len != HRY_SUMS_KEY_LEN || memcmp(kv[i].key, HRY_SUMS_KEY, HRY_SUMS_KEY_LEN) != 0)
            entries[kept++] = kv[i];
    if (status == HURRAY_OK && value) {
        entries[kept] = (HurrayKvEntry){.key = HRY_SUMS_KEY, .key_len = HRY_SUMS_KEY_LEN};
        entries[kept].value.kind = HURRAY_KV_BYTES;
        entries[kept].value.data = value;
        entries[kept].value.data_len = value_len;
        status = hry_kv_encode(entries, kept + 1, allocator, bytes, len, error);
    }
    /* Without sums, also when only they make the section too long. */
    if ((status == HURRAY_OK && !value) || status == HURRAY_ERR_INVALID_KV)
        status = hry_kv_encode(entries, kept, allocator, bytes, len, error);
    if (entries) hry_free_array(allocator, entries, room, sizeof *entries);
    hry_free(allocator, value, value_len);
    return status;
}

/* KV (may be empty), its padding, the index in this order, the trailer: one piece of own bytes. */
static HurrayStatus emit_footer(HurrayFileWriterCore *core, const uint8_t *kv, size_t kv_len, const uint32_t *order, HurrayError *error) {
    HryOutput *output = &core->output;
    size_t padding = (size_t)(-kv_len & (HRY_PART_ALIGNMENT - 1));
    HryEmit measure = hry_emit(NULL, 0);
    hry_emit_zeros(&measure, kv_len);
    hry_emit_zeros(&measure, padding);
    hry_index_encode(row_at, core, core->row_count, order, &measure);
    size_t index_len = measure.len - kv_len - padding;
    hry_emit_zeros(&measure, HRY_TRAILER_SIZE);
    uint8_t *bytes;
    if (measure.overflow) return hry_fail_memory(error, "the index", UINT64_MAX);
    HurrayStatus status = hry_output_own(output, measure.len, &bytes, error);
    if (status != HURRAY_OK) return status;
    HryEmit emit = hry_emit(bytes, measure.len);
    hry_emit_bytes(&emit, kv, kv_len);
    hry_emit_zeros(&emit, padding);
    uint8_t *index = bytes + emit.len;
    hry_index_encode(row_at, core, core->row_count, order, &emit);
    HryTrailer trailer = {.index_offset = output->position + kv_len + padding,
                          .index_length = index_len,
                          .kv_offset = kv_len ? output->position : 0,
                          .kv_length = (uint32_t)kv_len,
                          .index_crc32c = hry_crc32c(0, index, index_len)};
    hry_trailer_encode(&trailer, bytes + emit.len);
    return HURRAY_OK;
}

HurrayStatus hry_file_writer_finish(HurrayFileWriterCore *core, const HurrayKvEntry *kv, size_t count, HurrayError *error) {
    HryOutput *output = &core->output;
    const HurrayAllocator *allocator = &output->allocator;
    uint8_t *bytes = NULL;
    size_t len = 0;
    uint32_t *order = NULL;
    HurrayStatus status = begin(core, ITEM_FOOTER, error);
    if (status == HURRAY_OK) status = hry_tree_end(&output->tree, error);
    if (status == HURRAY_OK) status = encode_kv(core, kv, count, &bytes, &len, error);
    if (status == HURRAY_OK && (core->flags & HURRAY_WRITE_SORTED_INDEX))
        status = hry_index_sort_names(row_at, core, core->row_count, allocator, &order, error);
    if (status == HURRAY_OK) status = emit_footer(core, bytes, len, order, error);
    hry_free(allocator, bytes, len);
    hry_free_array(allocator, order, core->row_count, sizeof *order);
    if (status == HURRAY_OK)
        hry_output_start(output);
    else if (!output->poisoned)
        hry_output_drop(output);
    return status;
}

/* ---- the public calls ---- */

HurrayStatus hurray_file_writer_core_new(const HurrayFileWriterOptions *options, HurrayFileWriterCore **out, HurrayError *error) {
    HurrayError local;
    hry_error_clear(&local);
    HurrayStatus status =
        out ? make_core(options, out, &local) : hry_fail(&local, HURRAY_ERR_NULL_POINTER, "out", HRY_NO_OFFSET, "the out-pointer is NULL");
    return status == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &local);
}

HurrayStatus hurray_file_writer_core_begin_header(HurrayFileWriterCore *core) {
    HRY_OUTPUT_CALL(core, hry_file_writer_header(core, error));
}

HurrayStatus hurray_file_writer_core_begin_tensor(HurrayFileWriterCore *core, const void *name, size_t len,
                                                  const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count) {
    HRY_OUTPUT_CALL(core, hry_file_writer_tensor(core, name, len, descriptor, slices, count, error));
}

HurrayStatus hurray_file_writer_core_begin_composite(HurrayFileWriterCore *core, const HurrayCompositeNode *nodes, size_t count) {
    HRY_OUTPUT_CALL(core, hry_file_writer_composite(core, nodes, count, error));
}

HurrayStatus hurray_file_writer_core_begin_finish(HurrayFileWriterCore *core, const HurrayKvEntry *kv, size_t count) {
    HRY_OUTPUT_CALL(core, hry_file_writer_finish(core, kv, count, error));
}

HurrayStatus hurray_file_writer_core_step(HurrayFileWriterCore *core, HurrayStep *step) {
    if (!step) return HURRAY_ERR_NULL_POINTER;
    HRY_OUTPUT_CALL(core, hry_output_step(&core->output, step, error));
}

HurrayStatus hurray_file_writer_core_output_src(const HurrayFileWriterCore *core, const uint8_t **ptr, size_t *len) {
    if (!core || !ptr || !len) return HURRAY_ERR_NULL_POINTER;
    return hry_output_src(&core->output, ptr, len);
}

HurrayStatus hurray_file_writer_core_output_slices(const HurrayFileWriterCore *core, HurrayIoSlice *slices, size_t *count) {
    if (!core || !slices || !count) return HURRAY_ERR_NULL_POINTER;
    return hry_output_slices(&core->output, slices, count);
}

HurrayStatus hurray_file_writer_core_supply(HurrayFileWriterCore *core, const void *ptr, size_t len) {
    HRY_OUTPUT_CALL(core, hry_output_supply(&core->output, ptr, len, error));
}

HurrayStatus hurray_file_writer_core_report_written(HurrayFileWriterCore *core, size_t n) {
    HRY_OUTPUT_CALL(core, hry_output_report(&core->output, n, error));
}

HurrayStatus hurray_file_writer_core_report_sink_closed(HurrayFileWriterCore *core) {
    HRY_OUTPUT_CALL(core, hry_output_sink_closed(&core->output, error));
}

HurrayStatus hurray_file_writer_core_abandon(HurrayFileWriterCore *core) {
    HRY_OUTPUT_CALL(core, hry_output_abandon(&core->output, error));
}

HurrayStatus hurray_file_writer_core_poison(HurrayFileWriterCore *core, uint32_t reason) {
    HRY_OUTPUT_CALL(core, hry_output_poison(&core->output, reason, error));
}

HurrayStatus hurray_file_writer_core_is_unusable(const HurrayFileWriterCore *core, uint32_t *reason) {
    if (!core || !reason) return HURRAY_ERR_NULL_POINTER;
    *reason = hry_output_unusable(&core->output);
    return HURRAY_OK;
}

const HurrayError *hurray_file_writer_core_last_error(const HurrayFileWriterCore *core) { return core ? &core->output.handle.error : NULL; }
