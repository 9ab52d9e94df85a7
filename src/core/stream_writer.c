#include "core/stream_writer.h"

#include <string.h>

#include "base/options.h"

struct HurrayStreamWriterCore {
    HryOutput output; /* first: hry_output's commit finds the tree */
};

HryOutput *hry_stream_writer_output(HurrayStreamWriterCore *core) { return &core->output; }

static void commit(HryOutput *output) { hry_tree_commit(&output->tree); }

static HurrayStatus make_core(const HurrayWriterOptions *user, HurrayStreamWriterCore **out, HurrayError *error) {
    HurrayWriterOptions options = HURRAY_WRITER_OPTIONS_INIT;
    HryOutput output;
    HurrayStatus status = hry_options_read(&options, sizeof options, sizeof options, user, "HurrayWriterOptions", error);
    if (status != HURRAY_OK) return status;
    if (options.flags & ~HURRAY_WRITE_CROSS_MACHINE)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "flags", HRY_NO_OFFSET,
                        "HurrayWriterOptions.flags is 0x%x; this library knows HURRAY_WRITE_CROSS_MACHINE for streams", options.flags);
    status = hry_output_init(&output, options.allocator, options.label, options.label_len, error);
    if (status != HURRAY_OK) return status;
    HurrayStreamWriterCore *core = hry_alloc(&output.allocator, sizeof *core);
    if (!core) return hry_fail_memory(error, "a stream writer", sizeof *core);
    core->output = output;
    core->output.commit = commit;
    core->output.cross_machine = (options.flags & HURRAY_WRITE_CROSS_MACHINE) != 0;
    *out = core;
    return HURRAY_OK;
}

HurrayStatus hurray_stream_writer_core_destroy(HurrayStreamWriterCore **handle) {
    if (!handle) return HURRAY_ERR_NULL_POINTER;
    HurrayStreamWriterCore *core = *handle;
    *handle = NULL;
    if (!core) return HURRAY_OK;
    HurrayAllocator allocator = core->output.allocator;
    hry_output_clear(&core->output);
    hry_free(&allocator, core, sizeof *core);
    return HURRAY_OK;
}

/* The pieces of one tensor whose descriptor was checked. */
static HurrayStatus stage(HryOutput *output, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, HurrayError *error) {
    HurrayStatus status = hry_output_descriptor(output, descriptor, error);
    for (uint32_t k = 0; status == HURRAY_OK && k < descriptor->buffer_count; k++)
        status = hry_output_buffer(output, slices ? slices[k].ptr : NULL, descriptor->buffers[k].byte_size, k, NULL, error);
    return status;
}

/* An item that could not be begun is as if it never had been. */
static HurrayStatus settle(HryOutput *output, HurrayStatus status) {
    if (status == HURRAY_OK)
        hry_output_start(output);
    else if (!output->poisoned)
        hry_output_drop(output);
    return status;
}

HurrayStatus hry_stream_writer_tensor(HurrayStreamWriterCore *core, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices,
                                      size_t count, HurrayError *error) {
    HryOutput *output = &core->output;
    HurrayStatus status = hry_output_begin(output, error);
    if (status == HURRAY_OK) status = hry_output_check_tensor(output, descriptor, slices, count, error);
    if (status == HURRAY_OK) status = hry_tree_test(&output->tree, descriptor, false, error);
    if (status == HURRAY_OK) status = stage(output, descriptor, slices, error);
    return settle(output, status);
}

HurrayStatus hry_stream_writer_composite(HurrayStreamWriterCore *core, const HurrayCompositeNode *nodes, size_t count, HurrayError *error) {
    HryOutput *output = &core->output;
    HurrayStatus status = hry_output_begin(output, error);
    if (status == HURRAY_OK)
        status = hry_tree_check_nodes(nodes, count, HRY_MAX_COMPOSITE_DEPTH - output->tree.depth, &output->allocator, error);
    if (status == HURRAY_OK) status = hry_tree_test(&output->tree, nodes[0].descriptor, true, error);
    for (size_t i = 0; status == HURRAY_OK && i < count; i++) {
        status = hry_output_check_tensor(output, nodes[i].descriptor, nodes[i].slices, nodes[i].slice_count, error);
        if (status == HURRAY_OK) status = stage(output, nodes[i].descriptor, nodes[i].slices, error);
        if (status != HURRAY_OK) error->tensor_index = i;
    }
    return settle(output, status);
}

HurrayStatus hry_stream_writer_end(HurrayStreamWriterCore *core, HurrayError *error) {
    uint32_t reason = hry_output_unusable(&core->output);
    return reason ? hry_fail_unusable(error, reason) : hry_tree_end(&core->output.tree, error);
}

/* ---- the public calls ---- */

HurrayStatus hurray_stream_writer_core_new(const HurrayWriterOptions *options, HurrayStreamWriterCore **out, HurrayError *error) {
    HurrayError local;
    hry_error_clear(&local);
    HurrayStatus status =
        out ? make_core(options, out, &local) : hry_fail(&local, HURRAY_ERR_NULL_POINTER, "out", HRY_NO_OFFSET, "the out-pointer is NULL");
    return status == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &local);
}

HurrayStatus hurray_stream_writer_core_begin_tensor(HurrayStreamWriterCore *core, const HurrayDescriptor *descriptor,
                                                    const HurrayIoSlice *slices, size_t count) {
    HRY_OUTPUT_CALL(core, hry_stream_writer_tensor(core, descriptor, slices, count, error));
}

HurrayStatus hurray_stream_writer_core_begin_composite(HurrayStreamWriterCore *core, const HurrayCompositeNode *nodes, size_t count) {
    HRY_OUTPUT_CALL(core, hry_stream_writer_composite(core, nodes, count, error));
}

HurrayStatus hurray_stream_writer_core_step(HurrayStreamWriterCore *core, HurrayStep *step) {
    if (!step) return HURRAY_ERR_NULL_POINTER;
    HRY_OUTPUT_CALL(core, hry_output_step(&core->output, step, error));
}

HurrayStatus hurray_stream_writer_core_output_src(const HurrayStreamWriterCore *core, const uint8_t **ptr, size_t *len) {
    if (!core || !ptr || !len) return HURRAY_ERR_NULL_POINTER;
    return hry_output_src(&core->output, ptr, len);
}

HurrayStatus hurray_stream_writer_core_output_slices(const HurrayStreamWriterCore *core, HurrayIoSlice *slices, size_t *count) {
    if (!core || !slices || !count) return HURRAY_ERR_NULL_POINTER;
    return hry_output_slices(&core->output, slices, count);
}

HurrayStatus hurray_stream_writer_core_supply(HurrayStreamWriterCore *core, const void *ptr, size_t len) {
    HRY_OUTPUT_CALL(core, hry_output_supply(&core->output, ptr, len, error));
}

HurrayStatus hurray_stream_writer_core_report_written(HurrayStreamWriterCore *core, size_t n) {
    HRY_OUTPUT_CALL(core, hry_output_report(&core->output, n, error));
}

HurrayStatus hurray_stream_writer_core_report_sink_closed(HurrayStreamWriterCore *core) {
    HRY_OUTPUT_CALL(core, hry_output_sink_closed(&core->output, error));
}

HurrayStatus hurray_stream_writer_core_abandon(HurrayStreamWriterCore *core) {
    HRY_OUTPUT_CALL(core, hry_output_abandon(&core->output, error));
}

HurrayStatus hurray_stream_writer_core_poison(HurrayStreamWriterCore *core, uint32_t reason) {
    HRY_OUTPUT_CALL(core, hry_output_poison(&core->output, reason, error));
}

HurrayStatus hurray_stream_writer_core_is_unusable(const HurrayStreamWriterCore *core, uint32_t *reason) {
    if (!core || !reason) return HURRAY_ERR_NULL_POINTER;
    *reason = hry_output_unusable(&core->output);
    return HURRAY_OK;
}

const HurrayError *hurray_stream_writer_core_last_error(const HurrayStreamWriterCore *core) {
    return core ? &core->output.handle.error : NULL;
}
