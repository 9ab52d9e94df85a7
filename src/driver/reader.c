#include "core/stream_reader.h"

#include <string.h>

#include "base/handle.h"
#include "core/composite_assembler.h"
#include "driver/transport_call.h"

struct HurrayReader {
    HryHandle handle;
    HurrayStreamReaderCore *core;
    HurrayTransport transport;
    HryAssembler assembler;
    HurrayTensor *pending; /* read, but there was no memory to add it to its item */
};

static HurrayStatus open_reader(const HurrayTransport *user, const HurrayReaderOptions *options, HurrayReader **out, HurrayError *error) {
    HurrayTransport transport;
    HurrayStreamReaderCore *core = NULL;
    if (!out) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "out", HRY_NO_OFFSET, "the out pointer is NULL");
    HurrayStatus status = hry_transport_resolve(user, HRY_TRANSPORT_NEEDS_READ, &transport, error);
    if (status == HURRAY_OK) status = hurray_stream_reader_core_new(options, &core, error);
    if (status != HURRAY_OK) return status;
    const HurrayAllocator *allocator = hry_stream_reader_core_allocator(core);
    HurrayReader *reader = hry_alloc(allocator, sizeof *reader);
    if (!reader) {
        hurray_stream_reader_core_destroy(&core);
        return hry_fail_memory(error, "a stream reader", sizeof *reader);
    }
    hry_handle_init(&reader->handle);
    reader->core = core;
    reader->transport = transport;
    hry_assembler_init(&reader->assembler, allocator, hry_stream_reader_core_max_depth(core));
    *out = reader;
    return HURRAY_OK;
}

HurrayStatus hurray_reader_new_ex(const HurrayTransport *transport, const HurrayReaderOptions *options, HurrayReader **out,
                                  HurrayError *caller) {
    HurrayError error;
    hry_error_clear(&error);
    HurrayStatus status = open_reader(transport, options, out, &error);
    return status == HURRAY_OK ? status : hry_error_export(caller, &error);
}

HurrayStatus hurray_reader_new(const HurrayTransport *transport, const HurrayReaderOptions *options, HurrayReader **out) {
    return hurray_reader_new_ex(transport, options, out, NULL);
}

HurrayStatus hurray_reader_destroy(HurrayReader **reader) {
    if (!reader) return HURRAY_ERR_NULL_POINTER;
    HurrayReader *gone = *reader;
    *reader = NULL;
    if (!gone) return HURRAY_OK;
    HurrayAllocator allocator = *hry_stream_reader_core_allocator(gone->core);
    hurray_tensor_destroy(&gone->pending);
    hry_assembler_clear(&gone->assembler);
    hurray_stream_reader_core_destroy(&gone->core);
    hry_transport_release(&gone->transport);
    hry_free(&allocator, gone, sizeof *gone);
    return HURRAY_OK;
}

const HurrayError *hurray_reader_last_error(const HurrayReader *reader) { return reader ? &reader->handle.error : NULL; }

/* Answers the core until a tensor is whole or the stream ends: input by one read, WAIT by waiting. A failing callback moved nothing,
 * so the call may be repeated; a count that cannot be true loses the position. */
static HurrayStatus drive(HurrayReader *reader, HurrayTensor **out) {
    HurrayStreamReaderCore *core = reader->core;
    HurrayError error;
    HurrayStep step;
    for (;;) {
        HurrayStatus status = hurray_stream_reader_core_step(core, &step);
        if (status != HURRAY_OK) return status;
        hry_error_clear(&error);
        if (step.kind == HURRAY_STEP_TENSOR) return hurray_stream_reader_core_take_tensor(core, out);
        if (step.kind == HURRAY_STEP_FINISHED) return HURRAY_END_OF_STREAM;
        if (step.kind == HURRAY_STEP_INPUT) {
            uint8_t *dst = NULL;
            size_t len = 0, moved = 0;
            status = hurray_stream_reader_core_input_dst(core, &dst, &len);
            if (status != HURRAY_OK) return status;
            status = hry_transport_read(&reader->transport, dst, len, &moved, &error);
            if (status == HURRAY_OK) {
                status = hurray_stream_reader_core_report_filled(core, moved);
                if (status != HURRAY_OK) return status;
                continue;
            }
            if (status == HURRAY_ERR_INVALID_REPORT) hurray_stream_reader_core_poison(core, HURRAY_UNUSABLE_LOST_READ_COUNT);
        } else {
            status = hry_destination_wait(hry_stream_reader_core_destination(core), &error);
            if (status == HURRAY_OK) continue;
        }
        return hry_stream_reader_core_fail(core, &error);
    }
}

/* The core's record becomes the handle's, unless the handle has a text of its own. */
static HurrayStatus leave(HurrayReader *reader, HurrayStatus status) {
    const HurrayError *error = hurray_stream_reader_core_last_error(reader->core);
    if (status < 0 && reader->handle.error.code != status && error->code == status) reader->handle.error = *error;
    return hry_handle_leave(&reader->handle, status);
}

HurrayStatus hurray_reader_next_tensor(HurrayReader *reader, HurrayTensor **out) {
    if (!reader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&reader->handle);
    if (status != HURRAY_OK) return status;
    if (reader->pending || hry_assembler_is_open(&reader->assembler))
        status = hry_fail(&reader->handle.error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET,
                          "next_item failed inside a composite and has its first tensors; call next_item again");
    else
        status = drive(reader, out);
    return leave(reader, status);
}

static HurrayStatus next_item(HurrayReader *reader, HurrayItem **out) {
    HurrayError *error = &reader->handle.error;
    for (HurrayItem *item = NULL;;) {
        HurrayStatus status = reader->pending ? HURRAY_OK : drive(reader, &reader->pending);
        if (status == HURRAY_END_OF_STREAM) {
            status = hry_assembler_end(&reader->assembler, error);
            return status == HURRAY_OK ? HURRAY_END_OF_STREAM : status;
        }
        if (status != HURRAY_OK) return status;
        status = hry_assembler_push(&reader->assembler, &reader->pending, NULL, 0, &item, error);
        if (status != HURRAY_OK) { /* the stream stands at the next frame: only without memory is the tensor kept to try again */
            if (status != HURRAY_ERR_NO_MEMORY) hurray_tensor_destroy(&reader->pending);
            return status;
        }
        if (item) {
            *out = item;
            return HURRAY_OK;
        }
    }
}

HurrayStatus hurray_reader_next_item(HurrayReader *reader, HurrayItem **out) {
    if (!reader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&reader->handle);
    if (status != HURRAY_OK) return status;
    return leave(reader, next_item(reader, out));
}
