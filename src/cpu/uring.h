/* Many reads in flight by io_uring. One ring belongs to one thread at a time. Where the system refuses it, the reason
 * is a sentence for people, and reading goes another way. */
#ifndef HRY_CPU_URING_H
#define HRY_CPU_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/fail.h"

typedef struct HryUring HryUring;

typedef struct HryUringDone {
    uint64_t user;
    int64_t result; /* bytes (short ones are legal, 0 is the end of the file), or -errno */
} HryUringDone;

/* Can a ring be made here? If not, reason says why not. */
bool hry_uring_usable(char *reason, size_t capacity);

/* depth (1 to 4096): reads in flight at most. UNSUPPORTED with the reason as text when refused. */
HurrayStatus hry_uring_new(unsigned depth, const HurrayAllocator *allocator, HryUring **out, HurrayError *error);
unsigned hry_uring_depth(const HryUring *ring);
unsigned hry_uring_in_flight(const HryUring *ring);

/* Adds a read of at most 2^30 bytes, not yet submitted; memory, pieces and descriptor stay until its completion was
 * reported. user: anything but UINT64_MAX. False: as many as depth are in flight. */
bool hry_uring_read(HryUring *ring, int fd, uint64_t offset, void *dst, size_t len, uint64_t user);
bool hry_uring_readv(HryUring *ring, int fd, uint64_t offset, const struct iovec *pieces, unsigned count, uint64_t user);

/* Submits what was added and reports completions, at most capacity of them. timeout_ms: how long to wait for the first
 * (0: not at all, -1: as long as it takes); nothing in flight is no wait. *count may be 0. */
HurrayStatus hry_uring_wait(HryUring *ring, int timeout_ms, HryUringDone *done, size_t capacity, size_t *count, HurrayError *error);

/* Asks everything in flight to end early. Each read's completion still comes (-ECANCELED, or what it got). */
void hry_uring_cancel(HryUring *ring);
/* Cancels, waits until the system touches none of the memory any more, and frees. */
void hry_uring_destroy(HryUring **ring);

#endif
