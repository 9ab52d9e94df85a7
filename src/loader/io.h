/* How one source is read during a load: through its callbacks, or its descriptor, buffered or directly. */
#ifndef HRY_LOADER_IO_H
#define HRY_LOADER_IO_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "cpu/transport.h"
#include "loader/loader.h"
#include "loader/plan.h"

typedef struct HryIo {
    const HurrayTransport *transport;
    HryTransportAccess access;
    pthread_mutex_t lock; /* for callbacks that may not run at once */
    bool serial;
    bool by_fd;
    bool warm;     /* most of it is in the page cache */
    int direct_fd; /* -1: none */
    bool own_direct;
    bool bounce; /* direct reads go through memory of the reader: most bytes lie in the file otherwise than in memory */
    uint32_t direct_alignment;  /* 1 without direct reads */
    atomic_bool direct_refused; /* it said so while reading: buffered from there on */
    char reason[HRY_REASON_BYTES];
} HryIo;

/* wanted: payload bytes that will be read from it; fitting: those of them that lie in the file as aligned as they will in memory, so that
 * direct reads can bring them. */
void hry_io_open(HryIo *io, const HurrayTransport *transport, const HurrayLoaderOptions *options, uint64_t wanted, uint64_t fitting,
                 uint64_t byte_size);
void hry_io_close(HryIo *io);

/* What one reader may overwrite. */
typedef struct HryScratch {
    uint8_t gap[HRY_GAP_BYTES];
    uint8_t *bounce; /* page-aligned; NULL: none */
    size_t bounce_bytes;
} HryScratch;

/* Is a piece one that direct reads bring to its place? */
bool hry_io_is_direct(const HryIo *io, const HryPlanPiece *piece);
/* Is a run one that they bring by way of a reader's scratch? */
bool hry_io_bounces(const HryIo *io, const HryRun *run);

/* Reads all pieces of a run, in order. On failure *whole is how many are complete; the error is about the next one. *moved: bytes read,
 * gaps included. */
HurrayStatus hry_io_read(HryIo *io, const HryRun *run, HryScratch *scratch, uint32_t *whole, uint64_t *moved, HurrayError *error);

/* For a reader with many reads in flight: what is left of a run from offset `at` on (2 x HRY_RUN_PIECES parts at most), which descriptor to
 * read it from, and the rest done at once when that went wrong or fell short. */
int hry_io_rest(const HryRun *run, uint64_t at, uint8_t *gap, struct iovec *parts);
int hry_io_fd(const HryIo *io, const HryRun *run, uint64_t at);
HurrayStatus hry_io_finish(HryIo *io, const HryRun *run, uint64_t at, uint8_t *gap, uint32_t *whole, uint64_t *moved, HurrayError *error);

/* Buffered reads from a descriptor, repeated until it is all there; *got says how far it came. */
HurrayStatus hry_fd_read(int fd, uint64_t offset, uint8_t *dst, uint64_t len, uint64_t *got, HurrayError *error);

#endif
