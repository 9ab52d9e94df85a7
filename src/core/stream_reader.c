#include "core/stream_reader.h"

#include <string.h>

#include "base/checked.h"
#include "base/handle.h"
#include "base/options.h"
#include "core/composite_tree.h"
#include "core/fill.h"
#include "core/step.h"

#define KNOWN_FLAGS (HURRAY_READ_CROSS_MACHINE | HURRAY_READ_NO_PRIVATE)
#define DEFAULT_MAX_BYTES (UINT64_C(64) << 30)

/* PREFIX and REST take bytes, REST first wants memory for them; DECODE, BEGIN and FILL may be asked again after a failure that
 * moved nothing. */
typedef enum Stage { AT_PREFIX, AT_MEMORY, AT_REST, AT_DECODE, AT_BEGIN, AT_FILL, AT_TENSOR, AT_END } Stage;

struct HurrayStreamReaderCore {
    HryHandle handle;
    HurrayAllocator allocator;
    HurrayDestinationAlloc destination;
    uint64_t max_descriptor_bytes, max_buffer_bytes, max_tensor_bytes;
    uint32_t decode_flags, max_depth, unusable;
    Stage stage;
    uint64_t position, start; /* of the next byte; of the item's first */
    uint64_t items;           /* tensors taken or waiting to be */
    uint8_t prefix[HRY_DESCRIPTOR_PREFIX];
    uint8_t *bytes; /* the whole descriptor */
    size_t len, filled;
    HurrayDescriptor *descriptor;
    HryFill fill;
    HurrayTensor *tensor;
    uint8_t *label;
    size_t label_len;
};

/* ---- life ---- */

static HurrayStatus resolve(const HurrayReaderOptions *user, HurrayReaderOptions *options, HurrayAllocator *allocator, HurrayError *error) {
    HurrayStatus status = hry_options_read(options, sizeof *options, sizeof *options, user, "HurrayReaderOptions", error);
    if (status != HURRAY_OK) return status;
    if (options->flags & ~KNOWN_FLAGS || options->reserved)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "flags", HRY_NO_OFFSET,
                        "flags 0x%x has bits that are no HURRAY_READ_ flag, or reserved is not 0", (unsigned)options->flags);
    if (!options->label && options->label_len)
        return hry_fail(error, HURRAY_ERR_NULL_POINTER, "label", HRY_NO_OFFSET, "label is NULL but label_len is %zu", options->label_len);
    if (!options->max_descriptor_bytes) options->max_descriptor_bytes = HRY_DEFAULT_MAX_DESCRIPTOR;
    if (!options->max_buffer_bytes) options->max_buffer_bytes = DEFAULT_MAX_BYTES;
    if (!options->max_tensor_bytes) options->max_tensor_bytes = DEFAULT_MAX_BYTES;
    status = hry_tree_depth_option(options->max_composite_depth, &options->max_composite_depth, error);
    return status == HURRAY_OK ? hry_alloc_resolve(options->allocator, allocator, error) : status;
}

static HurrayStatus core_new(const HurrayReaderOptions *options, const HurrayAllocator *allocator, HurrayStreamReaderCore **out,
                             HurrayError *error) {
    HurrayStreamReaderCore *core = hry_alloc(allocator, sizeof *core);
    if (!core) return hry_fail_memory(error, "a stream reader", sizeof *core);
    hry_handle_init(&core->handle);
    core->allocator = *allocator;
    core->max_descriptor_bytes = options->max_descriptor_bytes;
    core->max_buffer_bytes = options->max_buffer_bytes;
    core->max_tensor_bytes = options->max_tensor_bytes;
    core->max_depth = options->max_composite_depth;
    core->decode_flags = (options->flags & HURRAY_READ_NO_PRIVATE ? HRY_DECODE_NO_PRIVATE : 0u) |
                         (options->flags & HURRAY_READ_CROSS_MACHINE ? HRY_DECODE_CROSS_MACHINE : 0u);
    HurrayStatus status = HURRAY_OK;
    if (options->label_len) {
        core->label = hry_alloc_raw(allocator, options->label_len);
        if (core->label)
            memcpy(core->label, options->label, options->label_len);
        else
            status = hry_fail_memory(error, "a label", options->label_len);
        core->label_len = options->label_len;
    }
    if (status == HURRAY_OK) status = hry_destination_hold(options->destination, &core->allocator, &core->destination, error);
    if (status == HURRAY_OK)
        *out = core;
    else {
        hry_free(allocator, core->label, core->label_len);
        hry_free(allocator, core, sizeof *core);
    }
    return status;
}

HurrayStatus hurray_stream_reader_core_new(const HurrayReaderOptions *user, HurrayStreamReaderCore **out, HurrayError *caller) {
    HurrayError error;
    HurrayAllocator allocator;
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    hry_error_clear(&error);
    HurrayStatus status = out ? resolve(user, &options, &allocator, &error)
                              : hry_fail(&error, HURRAY_ERR_NULL_POINTER, "out", HRY_NO_OFFSET, "the out pointer is NULL");
    if (status == HURRAY_OK) status = core_new(&options, &allocator, out, &error);
    return status == HURRAY_OK ? status : hry_error_export(caller, &error);
}

/* Drops everything of the item in progress. */
static void drop_item(HurrayStreamReaderCore *core) {
    hry_fill_discard(&core->fill);
    hry_free(&core->allocator, core->bytes, core->len);
    core->bytes = NULL;
    hry_descriptor_unref(core->descriptor);
    core->descriptor = NULL;
    hurray_tensor_destroy(&core->tensor);
}

HurrayStatus hurray_stream_reader_core_destroy(HurrayStreamReaderCore **core) {
    if (!core) return HURRAY_ERR_NULL_POINTER;
    HurrayStreamReaderCore *gone = *core;
    *core = NULL;
    if (!gone) return HURRAY_OK;
    drop_item(gone);
    hry_destination_drop(&gone->destination);
    HurrayAllocator allocator = gone->allocator;
    hry_free(&allocator, gone->label, gone->label_len);
    hry_free(&allocator, gone, sizeof *gone);
    return HURRAY_OK;
}

/* ---- failures ---- */

static HurrayStatus leave(HurrayStreamReaderCore *core, HurrayStatus status) {
    if (status < 0 && core->label && core->handle.error.code == status && core->handle.error.source[0] == 0)
        hry_error_set_source(&core->handle.error, core->label, core->label_len, 0);
    return hry_handle_leave(&core->handle, status);
}

HurrayStatus hry_stream_reader_core_fail(HurrayStreamReaderCore *core, const HurrayError *error) {
    core->handle.error = *error;
    if (core->label) hry_error_set_source(&core->handle.error, core->label, core->label_len, 0);
    return error->code;
}

/* The place of the next item is not known any more. */
static HurrayStatus lost(HurrayStreamReaderCore *core, uint32_t reason, HurrayStatus status) {
    drop_item(core);
    core->unusable = reason;
    return status;
}

static void name_item(HurrayStreamReaderCore *core) { core->handle.error.tensor_index = core->items; }

/* ---- the machine ---- */

static HurrayStatus have_prefix(HurrayStreamReaderCore *core) {
    uint32_t length;
    HurrayError *error = &core->handle.error;
    HurrayStatus status = hry_descriptor_prefix(core->prefix, sizeof core->prefix, core->start, &length, error);
    if (status == HURRAY_OK && length > core->max_descriptor_bytes)
        status = hry_fail(error, HURRAY_ERR_LIMIT, "descriptor_length", core->start,
                          "the descriptor has %u bytes, more than the option max_descriptor_bytes allows (%llu)", (unsigned)length,
                          (unsigned long long)core->max_descriptor_bytes);
    if (status != HURRAY_OK) return lost(core, HURRAY_UNUSABLE_BAD_INPUT, status);
    core->bytes = hry_alloc_raw(&core->allocator, length);
    if (!core->bytes) return hry_fail_memory(error, "a descriptor", length);
    core->len = length;
    memcpy(core->bytes, core->prefix, sizeof core->prefix);
    core->filled = sizeof core->prefix;
    core->stage = AT_REST;
    return HURRAY_OK;
}

static HurrayStatus check_sizes(HurrayStreamReaderCore *core) {
    const HurrayDescriptor *descriptor = core->descriptor;
    HurrayError *error = &core->handle.error;
    uint64_t total = 0;
    for (uint32_t k = 0; k < descriptor->buffer_count; k++) {
        uint64_t size = descriptor->buffers[k].byte_size;
        bool fits = hry_add_u64(total, size, &total);
        if (size > core->max_buffer_bytes || !fits || total > core->max_tensor_bytes) {
            hry_fail(
                error, HURRAY_ERR_LIMIT, fits && size <= core->max_buffer_bytes ? "max_tensor_bytes" : "max_buffer_bytes", core->start,
                "buffer %u has %llu bytes, which passes the option max_buffer_bytes (%llu) or, with those before, max_tensor_bytes (%llu)",
                (unsigned)k, (unsigned long long)size, (unsigned long long)core->max_buffer_bytes,
                (unsigned long long)core->max_tensor_bytes);
            error->buffer_index = k;
            return HURRAY_ERR_LIMIT;
        }
    }
    return HURRAY_OK;
}

static HurrayStatus decode(HurrayStreamReaderCore *core) {
    size_t used;
    HurrayStatus status = hry_descriptor_decode(core->bytes, core->len, core->start, core->decode_flags, &core->allocator, &used,
                                                &core->descriptor, &core->handle.error);
    if (status == HURRAY_ERR_NO_MEMORY) return status;
    if (status == HURRAY_OK) status = check_sizes(core);
    if (status != HURRAY_OK) return lost(core, HURRAY_UNUSABLE_BAD_INPUT, status);
    hry_free(&core->allocator, core->bytes, core->len);
    core->bytes = NULL;
    core->stage = AT_BEGIN;
    return HURRAY_OK;
}

static HurrayStatus begin_fill(HurrayStreamReaderCore *core) {
    HurrayDestinationRequest request = {.struct_size = sizeof request, .device_index = -1, .io_alignment = 1};
    HurrayStatus status = hry_fill_begin(&core->fill, &core->destination, core->descriptor, NULL, &request, false, NULL, &core->allocator,
                                         &core->handle.error);
    if (status != HURRAY_OK) return status;
    core->fill.item.keep = true; /* bytes of a stream come once: what failed is asked for again */
    hry_descriptor_unref(core->descriptor);
    core->descriptor = NULL;
    core->stage = AT_FILL;
    return HURRAY_OK;
}

static HurrayStatus fill(HurrayStreamReaderCore *core, HurrayStep *step) {
    HurrayStatus status = hry_fill_step(&core->fill, step, &core->tensor, &core->handle.error);
    if (status != HURRAY_OK) /* what the destination froze was wrong: the bytes are gone with it */
        return core->fill.item.descriptor ? status : lost(core, HURRAY_UNUSABLE_POISONED, status);
    if (step->kind == HURRAY_STEP_TENSOR)
        core->stage = AT_TENSOR;
    else if (step->kind == HURRAY_STEP_RANGE)
        *step = hry_step(HURRAY_STEP_INPUT, 0, core->position, step->len);
    return HURRAY_OK;
}

static HurrayStatus run(HurrayStreamReaderCore *core, HurrayStep *step) {
    for (;;) {
        HurrayStatus status = HURRAY_OK;
        switch (core->stage) {
        case AT_PREFIX: *step = hry_step(HURRAY_STEP_INPUT, 0, core->position, sizeof core->prefix - core->filled); return HURRAY_OK;
        case AT_REST: *step = hry_step(HURRAY_STEP_INPUT, 0, core->position, core->len - core->filled); return HURRAY_OK;
        case AT_TENSOR: *step = hry_step(HURRAY_STEP_TENSOR, 0, 0, 0); return HURRAY_OK;
        case AT_END: *step = hry_step(HURRAY_STEP_FINISHED, 0, core->position, 0); return HURRAY_OK;
        case AT_MEMORY: status = have_prefix(core); break;
        case AT_DECODE: status = decode(core); break;
        case AT_BEGIN: status = begin_fill(core); break;
        case AT_FILL:
            status = fill(core, step);
            if (status == HURRAY_OK && core->stage == AT_FILL) return HURRAY_OK;
            break;
        }
        if (status != HURRAY_OK) {
            name_item(core);
            return status;
        }
    }
}

HurrayStatus hurray_stream_reader_core_step(HurrayStreamReaderCore *core, HurrayStep *out) {
    if (!core || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStep step = {0};
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    status = core->unusable ? hry_fail_unusable(&core->handle.error, core->unusable) : run(core, &step);
    if (status == HURRAY_OK) *out = step;
    return leave(core, status);
}

static bool asked(const HurrayStreamReaderCore *core, HurrayWindow *out) {
    if (core->unusable) return false;
    if (core->stage == AT_FILL && hry_fill_asks(&core->fill)) {
        *out = hry_fill_window(&core->fill);
        return true;
    }
    bool prefix = core->stage == AT_PREFIX;
    if (!prefix && core->stage != AT_REST) return false;
    uint8_t *base = prefix ? (uint8_t *)(uintptr_t)core->prefix : core->bytes;
    *out = (HurrayWindow){.struct_size = sizeof *out,
                          .offset = core->filled,
                          .len = (prefix ? sizeof core->prefix : core->len) - core->filled,
                          .source_offset = HURRAY_NONE,
                          .ptr = base + core->filled};
    return true;
}

HurrayStatus hurray_stream_reader_core_input_window(HurrayStreamReaderCore *core, HurrayWindow *out) {
    if (!core || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayWindow window;
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    if (asked(core, &window)) {
        window.token = NULL; /* the destination's business */
        *out = window;
    } else
        status = hry_fail_not_asked(&core->handle.error, core->unusable, "INPUT");
    return leave(core, status);
}

HurrayStatus hurray_stream_reader_core_input_dst(HurrayStreamReaderCore *core, uint8_t **ptr, size_t *len) {
    if (!core || !ptr || !len) return HURRAY_ERR_NULL_POINTER;
    HurrayWindow window;
    HurrayStatus status = hurray_stream_reader_core_input_window(core, &window);
    if (status != HURRAY_OK) return status;
    *ptr = window.ptr;
    *len = (size_t)window.len;
    return HURRAY_OK;
}

/* Zero: a clean end between two items, anywhere else the stream was cut. */
static HurrayStatus input_ended(HurrayStreamReaderCore *core) {
    if (core->stage == AT_PREFIX && core->filled == 0) {
        core->stage = AT_END;
        return HURRAY_OK;
    }
    hry_fail(&core->handle.error, HURRAY_ERR_TRUNCATED, NULL, core->position,
             "the stream ends at byte %llu, inside the item that began at byte %llu", (unsigned long long)core->position,
             (unsigned long long)core->start);
    name_item(core);
    if (core->stage == AT_FILL) core->handle.error.buffer_index = core->fill.buffer;
    return lost(core, HURRAY_UNUSABLE_BAD_INPUT, HURRAY_ERR_TRUNCATED);
}

static HurrayStatus report(HurrayStreamReaderCore *core, size_t n) {
    HurrayWindow window;
    if (!asked(core, &window)) return hry_fail_not_asked(&core->handle.error, core->unusable, "INPUT");
    if (n > window.len) return hry_fail_report(&core->handle.error, core->position, n, window.len);
    if (n == 0) return input_ended(core);
    core->position += n;
    if (core->stage == AT_FILL) return hry_fill_report(&core->fill, n, &core->handle.error);
    core->filled += n;
    if (core->stage == AT_PREFIX && core->filled == sizeof core->prefix) core->stage = AT_MEMORY;
    if (core->stage == AT_REST && core->filled == core->len) core->stage = AT_DECODE;
    return HURRAY_OK;
}

HurrayStatus hurray_stream_reader_core_report_filled(HurrayStreamReaderCore *core, size_t n) {
    if (!core) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    return leave(core, report(core, n));
}

/* The next item begins here. */
static void next_item(HurrayStreamReaderCore *core) {
    core->items++;
    core->start = core->position;
    core->filled = 0;
    core->stage = AT_PREFIX;
}

HurrayStatus hurray_stream_reader_core_take_tensor(HurrayStreamReaderCore *core, HurrayTensor **out) {
    if (!core || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    if (core->unusable)
        status = hry_fail_unusable(&core->handle.error, core->unusable);
    else if (core->stage != AT_TENSOR)
        status = hry_fail(&core->handle.error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET,
                          "there is no tensor to take: step must have said so, and it can be taken once");
    else {
        *out = core->tensor;
        core->tensor = NULL;
        next_item(core);
    }
    return leave(core, status);
}

HurrayStatus hurray_stream_reader_core_abandon(HurrayStreamReaderCore *core) {
    if (!core) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    bool between = core->stage == AT_END || (core->stage == AT_PREFIX && core->filled == 0);
    if (core->stage == AT_TENSOR) {
        hurray_tensor_destroy(&core->tensor);
        next_item(core);
    } else if (!between && !core->unusable)
        lost(core, HURRAY_UNUSABLE_POISONED, HURRAY_OK); /* the rest of its bytes would be taken for the next item */
    return leave(core, HURRAY_OK);
}

HurrayStatus hurray_stream_reader_core_poison(HurrayStreamReaderCore *core, uint32_t reason) {
    if (!core) return HURRAY_ERR_NULL_POINTER;
    if (reason == HURRAY_USABLE || reason > HURRAY_UNUSABLE_POISONED) return HURRAY_ERR_INVALID_ARGUMENT;
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    if (!core->unusable) lost(core, reason, HURRAY_OK);
    return leave(core, HURRAY_OK);
}

HurrayStatus hurray_stream_reader_core_is_unusable(const HurrayStreamReaderCore *core, uint32_t *reason) {
    if (!core || !reason) return HURRAY_ERR_NULL_POINTER;
    *reason = core->unusable;
    return HURRAY_OK;
}

const HurrayError *hurray_stream_reader_core_last_error(const HurrayStreamReaderCore *core) { return core ? &core->handle.error : NULL; }

const HurrayDestinationAlloc *hry_stream_reader_core_destination(const HurrayStreamReaderCore *core) { return &core->destination; }
const HurrayAllocator *hry_stream_reader_core_allocator(const HurrayStreamReaderCore *core) { return &core->allocator; }
uint32_t hry_stream_reader_core_max_depth(const HurrayStreamReaderCore *core) { return core->max_depth; }
