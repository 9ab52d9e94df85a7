/* Reads a buffer's pieces on a thread of its own while the caller writes those before them. The loader belongs to that thread from begin
 * until the last piece was taken, or until stop. */
#ifndef HRY_CLI_READ_AHEAD_H
#define HRY_CLI_READ_AHEAD_H

#include "cli.h"

typedef struct ReadAhead ReadAhead;

/* NULL: no memory, or no thread to be had: read without. */
ReadAhead *read_ahead_new(HurrayLoader *loader, size_t piece_bytes);
void read_ahead_free(ReadAhead *ahead);

void read_ahead_begin(ReadAhead *ahead, uint64_t tensor, uint32_t buffer, uint64_t bytes);
/* The next piece, good until the next call; its length in *len, 0 after the last. A failure ends the buffer; the loader says why. */
HurrayStatus read_ahead_next(ReadAhead *ahead, const void **piece, size_t *len);
/* Ends the buffer early; the loader is the caller's again. */
void read_ahead_stop(ReadAhead *ahead);

#endif
