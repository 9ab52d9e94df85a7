/* Moving tensors from a model to a writer in bounded memory; shared by convert and stream write. */
#ifndef HRY_CLI_TRANSFER_H
#define HRY_CLI_TRANSFER_H

#include "model.h"
#include "progress.h"
#include "read_ahead.h"

#define TRANSFER_PIECE (UINT64_C(256) << 10) /* stays in the processor's cache from read to checksum to write */

/* Which tensors: names or patterns (none: all); a head brings its members. */
typedef struct Selection {
    uint64_t *indices; /* in write order */
    uint64_t count, bytes;
} Selection;

/* Reports a name or pattern that matches nothing (exit code 4), a spoiled tensor (its own code), no memory. */
int select_for_transfer(Model *model, char **patterns, size_t pattern_count, Selection *out);
void selection_clear(Selection *selection);

/* Takes `len` bytes; a status of the library, its record in *error (never NULL on failure). */
typedef HurrayStatus (*TransferSink)(void *ctx, const void *bytes, size_t len, const HurrayError **error);

typedef struct Transfer {
    Model *model;
    TransferSink sink;
    void *ctx;
    const char *out; /* how messages call the sink */
    Bar *bar;
    uint64_t done, total;
    unsigned char *piece;
    bool pipe;        /* the sink is standard output */
    bool closed;      /* the sink's reader went away */
    ReadAhead *ahead; /* for large buffers, once there was one */
    bool no_ahead;    /* none could be had */
    uint64_t share;   /* of total, for the load under way */
} Transfer;

/* All buffers of tensor i, in order. Returns an exit code, everything reported; EXIT_INTERRUPTED without a word after a signal. Ends early,
 * EXIT_DONE and with `closed` set, when a pipe has lost its reader. */
int transfer_buffers(Transfer *transfer, uint64_t i, const HurrayDescriptor *descriptor);
/* Tensor i, a head with its members, as a set of its own; it counts as `share` bytes done. Returns as transfer_buffers. */
int transfer_load(Transfer *transfer, uint64_t i, uint64_t share, HurrayTensorSet **out);
/* HurrayLoaderOptions.progress, with the model as ctx: moves the bar during transfer_load. */
HurrayStatus transfer_on_load(void *ctx, const HurrayProgress *progress);
/* Makes transfer->piece, TRANSFER_PIECE bytes. EXIT_DONE, or no memory (reported). */
int transfer_room(Transfer *transfer);
/* Bytes from memory; they count as `share` bytes done. Returns as transfer_buffers. */
int transfer_memory(Transfer *transfer, const void *bytes, uint64_t len, uint64_t share);
/* Of `share` what falls to `part` of `whole`. */
uint64_t transfer_part(uint64_t share, uint64_t part, uint64_t whole);
/* Frees what the transfer took. */
void transfer_end(Transfer *transfer);

/* All KV of a model, borrowed from it; NULL with *count 0 when there is none. False: no memory (reported). */
bool gather_kv(Model *model, HurrayKvEntry **entries, size_t *count);

#endif
