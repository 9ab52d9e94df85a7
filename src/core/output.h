/* What both writer cores share: one item at a time, a list of pieces - own small bytes, borrowed slices, padding - offered in place and
 * never assembled. The position moves only in hry_output_report; an item commits with its last byte. */
#ifndef HRY_CORE_OUTPUT_H
#define HRY_CORE_OUTPUT_H

#include "base/alloc.h"
#include "base/handle.h"
#include "core/composite_tree.h"
#include "core/step.h"

typedef enum HryPieceKind {
    HRY_PIECE_OWN,     /* ptr is an offset into own */
    HRY_PIECE_SLICE,   /* borrowed until the item is over */
    HRY_PIECE_PADDING, /* zeros */
    HRY_PIECE_ASKED    /* a buffer begun without slices: lent by supply, stretch by stretch */
} HryPieceKind;

typedef struct HryPiece {
    HryPieceKind kind;
    uint32_t buffer;
    union {
        const uint8_t *ptr;
        size_t own;
    };
    uint64_t len;
    uint32_t *sum; /* CRC-32C of the accepted bytes, or NULL */
} HryPiece;

typedef struct HryOutput {
    HryHandle handle; /* of the public core */
    HurrayAllocator allocator;
    char label[200]; /* how messages call the output, escaped; may be empty */
    HryTree tree;    /* heads written alone whose members are still to come */
    bool cross_machine;

    HryPiece *pieces;
    size_t count, capacity;
    uint8_t *own;
    size_t own_len, own_capacity;

    bool active;       /* an item is in flight */
    bool written;      /* the last item is complete, nothing was begun since */
    bool finished;     /* the last item there can be is complete */
    uint32_t poisoned; /* for good; HURRAY_USABLE while not */
    size_t at;         /* the piece in progress */
    uint64_t done;     /* accepted bytes of that piece */
    uint64_t position; /* of the item's first byte in the output */
    uint64_t total, emitted;
    const uint8_t *lent; /* the rest of what supply lent */
    size_t lent_len;
    size_t offered;                           /* bytes told to the driver since the last report; 0: only by step */
    void (*commit)(struct HryOutput *output); /* the last byte was accepted; cannot fail */
} HryOutput;

HurrayStatus hry_output_init(HryOutput *output, const HurrayAllocator *user, const void *label, size_t label_len, HurrayError *error);
void hry_output_clear(HryOutput *output);

/* Building an item: begin drops one that has emitted nothing, refuses (UNUSABLE) when bytes of it are out or the core is poisoned.
 * A failure in between leaves no item: call hry_output_drop. start hands it to the driver. */
HurrayStatus hry_output_begin(HryOutput *output, HurrayError *error);
HurrayStatus hry_output_own(HryOutput *output, size_t len, uint8_t **bytes, HurrayError *error); /* valid until the next own or padding */
HurrayStatus hry_output_padding(HryOutput *output, uint64_t len, HurrayError *error);
/* ptr NULL with len > 0: asked for by PAYLOAD. */
HurrayStatus hry_output_buffer(HryOutput *output, const void *ptr, uint64_t len, uint32_t buffer, uint32_t *sum, HurrayError *error);
void hry_output_start(HryOutput *output);
void hry_output_drop(HryOutput *output);
/* Bytes of the item so far: while building its length. */
static inline uint64_t hry_output_length(const HryOutput *output) { return output->total; }

/* The rules that every tensor keeps, whatever it is written to: descriptor writable, sync modes; slices when lent at once. */
HurrayStatus hry_output_check_tensor(const HryOutput *output, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count,
                                     HurrayError *error);
/* The descriptor's bytes as an own piece. */
HurrayStatus hry_output_descriptor(HryOutput *output, const HurrayDescriptor *descriptor, HurrayError *error);

/* Driving it. */
HurrayStatus hry_output_step(HryOutput *output, HurrayStep *step, HurrayError *error);
/* The first stretch of that. */
HurrayStatus hry_output_src(const HryOutput *output, const uint8_t **ptr, size_t *len);
/* What may be written now, up to the next PAYLOAD, at most *count slices; WRONG_STATE when step is not OUTPUT. */
HurrayStatus hry_output_slices(const HryOutput *output, HurrayIoSlice *slices, size_t *count);
/* Bytes that the item will still ask for by PAYLOAD. */
uint64_t hry_output_asked(const HryOutput *output);
HurrayStatus hry_output_supply(HryOutput *output, const void *ptr, size_t len, HurrayError *error);
HurrayStatus hry_output_report(HryOutput *output, size_t n, HurrayError *error);
HurrayStatus hry_output_sink_closed(HryOutput *output, HurrayError *error);
HurrayStatus hry_output_abandon(HryOutput *output, HurrayError *error);
HurrayStatus hry_output_poison(HryOutput *output, uint32_t reason, HurrayError *error);
/* 0 while usable: poisoned, or torn while an item is between its first byte and its last. */
uint32_t hry_output_unusable(const HryOutput *output);
/* An item is in flight and has emitted something. */
static inline bool hry_output_is_torn(const HryOutput *output) { return output->active && output->emitted > 0; }

/* For the public calls: BUSY, then the record is cleared; leave adds the label. */
static inline HurrayStatus hry_output_enter(HryOutput *output) { return hry_handle_enter(&output->handle); }
HurrayStatus hry_output_leave(HryOutput *output, HurrayStatus status);
/* Adds what messages call the output to a record that names no source yet. */
void hry_output_label(const HryOutput *output, HurrayError *error);

/* The body of a public call of a core whose HryOutput is `output`: `call` fills `error`. */
#define HRY_OUTPUT_CALL(core, call)                                                                                                        \
    do {                                                                                                                                   \
        if (!(core)) return HURRAY_ERR_NULL_POINTER;                                                                                       \
        HurrayStatus entered = hry_output_enter(&(core)->output);                                                                          \
        if (entered != HURRAY_OK) return entered;                                                                                          \
        HurrayError *error = &(core)->output.handle.error;                                                                                 \
        return hry_output_leave(&(core)->output, call);                                                                                    \
    } while (0)

#endif
