/* How reads are cut and joined. Pure: no I/O, no memory, so that its rules can be tested alone.
 *
 * A run is one read: pieces of payload that follow each other in one source, each landing in its own place, with gaps between them
 * that are cheaper to read through than to read around. */
#ifndef HRY_LOADER_PLAN_H
#define HRY_LOADER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HRY_RUN_PIECES 64u
#define HRY_GAP_BYTES UINT64_C(4096)      /* measured: about what a second read costs */
#define HRY_SMALL_BYTES UINT64_C(1048576) /* a run of several pieces grows no larger, so that small tensors spread over threads */

typedef struct HryPlanPiece {
    uint8_t *ptr;
    uint64_t offset, len; /* in the source; for converted bytes in the buffer */
    void *owner;          /* who gets told */
    uint32_t sum;         /* CRC-32C, when wanted */
    bool want_sum;
} HryPlanPiece;

typedef struct HryRun {
    uint64_t offset, len; /* gaps included */
    uint64_t payload;
    uint32_t count;
    HryPlanPiece pieces[HRY_RUN_PIECES];
} HryRun;

/* May bytes [offset, offset + len) join the run? An empty run takes anything. */
bool hry_run_takes(const HryRun *run, uint64_t offset, uint64_t len, uint64_t chunk, uint64_t gap);
void hry_run_add(HryRun *run, const HryPlanPiece *piece);

/* How much of a stretch of len bytes at offset the next read takes: at most about chunk, cut at a multiple of `alignment` (a power of two)
 * in the source, so that all reads but the first and last are aligned; a short rest is not left over for a read of its own, but for what
 * keeps the last one from ending aligned (alignment 1: nothing does). */
uint64_t hry_cut(uint64_t offset, uint64_t len, uint64_t chunk, uint64_t alignment);

#endif
