/* Where both blocking writers send their core's output: one loop, and what a failure costs (docs: nothing before an item's first byte,
 * SINK_CLOSED for good after it). */
#ifndef HRY_DRIVER_SINK_H
#define HRY_DRIVER_SINK_H

#include "base/handle.h"
#include "core/output.h"
#include "driver/transport_call.h"

typedef struct HrySink {
    HryHandle handle; /* the writer's */
    HurrayTransport transport;
    HryOutput *output;  /* of the writer's core */
    HurrayError closed; /* code SINK_CLOSED once the sink is: every later call answers this */
    bool in_pieces;     /* between begin_tensor and end_tensor */
} HrySink;

/* The body of a public call on a writer with a member `sink`; `call` fills `error`. */
#define HRY_SINK_CALL(writer, call)                                                                                                        \
    do {                                                                                                                                   \
        if (!(writer)) return HURRAY_ERR_NULL_POINTER;                                                                                     \
        HurrayStatus entered = hry_handle_enter(&(writer)->sink.handle);                                                                   \
        if (entered != HURRAY_OK) return entered;                                                                                          \
        HurrayError *error = &(writer)->sink.handle.error;                                                                                 \
        return hry_sink_leave(&(writer)->sink, call);                                                                                      \
    } while (0)
HurrayStatus hry_sink_leave(HrySink *sink, HurrayStatus status);

/* May an item begin? SINK_CLOSED again and again, WRONG_STATE inside a tensor written in pieces. */
HurrayStatus hry_sink_ready(const HrySink *sink, HurrayError *error);
/* Writes until the item is whole or asks for payload. */
HurrayStatus hry_sink_drain(HrySink *sink, HurrayError *error);
/* After the core began a tensor without slices: its first bytes. */
HurrayStatus hry_sink_begin_pieces(HrySink *sink, HurrayError *error);
HurrayStatus hry_sink_append(HrySink *sink, const void *bytes, size_t len, HurrayError *error);
HurrayStatus hry_sink_end_pieces(HrySink *sink, HurrayError *error);

#endif
