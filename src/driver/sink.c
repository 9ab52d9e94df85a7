#include "driver/sink.h"

/* The loop's priorities: nothing is written that the core did not offer, and every count reaches the core at once. */

HurrayStatus hry_sink_leave(HrySink *sink, HurrayStatus status) {
    status = hry_handle_leave(&sink->handle, status);
    if (status < 0) hry_output_label(sink->output, &sink->handle.error);
    return status;
}

HurrayStatus hry_sink_ready(const HrySink *sink, HurrayError *error) {
    if (sink->closed.code != HURRAY_OK) {
        *error = sink->closed;
        return error->code;
    }
    if (sink->in_pieces)
        return hry_fail(error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET,
                        "a tensor is being written in pieces; append the rest and end it first");
    return HURRAY_OK;
}

/* The sink takes no more, or took part of an item and then failed: nothing can follow. cause: the callback's code, 0 when it said closed
 * by writing nothing. */
static HurrayStatus close_sink(HrySink *sink, const HurrayError *why, HurrayError *error) {
    uint64_t at = sink->output->position + sink->output->emitted;
    bool torn = hry_output_is_torn(sink->output);
    HurrayError ignored;
    hry_output_abandon(sink->output, &ignored);
    if (why)
        hry_fail(&sink->closed, HURRAY_ERR_SINK_CLOSED, "write", at, "%s%s; the output cannot be completed, begin a new one", why->message,
                 torn ? ", in the middle of an item" : "");
    else
        hry_fail(&sink->closed, HURRAY_ERR_SINK_CLOSED, "write", at,
                 "the sink is closed: it took none of the bytes offered; begin a new output");
    if (why) {
        sink->closed.cause = why->cause;
        sink->closed.system_error = why->system_error;
    }
    *error = sink->closed;
    return error->code;
}

HurrayStatus hry_sink_drain(HrySink *sink, HurrayError *error) {
    HryOutput *output = sink->output;
    for (;;) {
        HurrayStep step;
        const uint8_t *src;
        size_t len, moved;
        HurrayStatus status = hry_output_step(output, &step, error);
        if (status != HURRAY_OK || step.kind != HURRAY_STEP_OUTPUT) return status;
        status = hry_output_src(output, &src, &len);
        if (status != HURRAY_OK) return hry_fail(error, HURRAY_ERR_INTERNAL, NULL, HRY_NO_OFFSET, "output was announced and is not there");
        status = hry_transport_write(&sink->transport, src, len, &moved, error);
        if (status == HURRAY_OK && moved > 0) {
            status = hry_output_report(output, moved, error);
            if (status != HURRAY_OK) return status;
            continue;
        }
        if (status == HURRAY_OK) return close_sink(sink, NULL, error);
        if (status == HURRAY_ERR_INVALID_REPORT && error->cause == HURRAY_OK) { /* it took an unknown number of bytes */
            HurrayError ignored;
            hry_output_poison(output, HURRAY_UNUSABLE_LOST_WRITE_COUNT, &ignored);
            return status;
        }
        if (hry_output_is_torn(output) || status == HURRAY_ERR_SINK_CLOSED) {
            HurrayError why = *error;
            return close_sink(sink, &why, error);
        }
        HurrayError ignored;
        hry_output_abandon(output, &ignored);
        return status;
    }
}

HurrayStatus hry_sink_begin_pieces(HrySink *sink, HurrayError *error) {
    HurrayStatus status = hry_sink_drain(sink, error);
    sink->in_pieces = status == HURRAY_OK;
    return status;
}

/* Is a tensor being written in pieces, to a sink that still takes them? */
static HurrayStatus in_pieces(const HrySink *sink, HurrayError *error) {
    if (sink->closed.code != HURRAY_OK) {
        *error = sink->closed;
        return error->code;
    }
    if (sink->output->poisoned) return hry_fail_unusable(error, sink->output->poisoned);
    if (!sink->in_pieces)
        return hry_fail(error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET, "no tensor was begun in pieces; begin one first");
    return HURRAY_OK;
}

HurrayStatus hry_sink_append(HrySink *sink, const void *bytes, size_t len, HurrayError *error) {
    const uint8_t *at = bytes;
    HurrayStatus status = in_pieces(sink, error);
    if (status != HURRAY_OK) return status;
    if (len && !bytes) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "bytes", HRY_NO_OFFSET, "the bytes are NULL");
    uint64_t asked = hry_output_asked(sink->output);
    if (len > asked)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "len", HRY_NO_OFFSET,
                        "%zu bytes were appended, the buffers of the tensor take only %llu more; nothing was written", len,
                        (unsigned long long)asked);
    while (len) {
        HurrayStep step;
        status = hry_output_step(sink->output, &step, error);
        if (status != HURRAY_OK) return status;
        size_t piece = len < step.len ? len : (size_t)step.len;
        status = hry_output_supply(sink->output, at, piece, error);
        if (status == HURRAY_OK) status = hry_sink_drain(sink, error);
        if (status != HURRAY_OK) return status;
        at += piece;
        len -= piece;
    }
    return HURRAY_OK;
}

HurrayStatus hry_sink_end_pieces(HrySink *sink, HurrayError *error) {
    HurrayStatus status = in_pieces(sink, error);
    if (status != HURRAY_OK) return status;
    uint64_t asked = hry_output_asked(sink->output);
    if (asked)
        return hry_fail(error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET,
                        "%llu bytes of the tensor's buffers are missing; append them first", (unsigned long long)asked);
    sink->in_pieces = false;
    return HURRAY_OK;
}
