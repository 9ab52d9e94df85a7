/* Jobs done beside the loading thread: reads, conversions, checks. A job belongs to the workers from submit until it comes back; nobody
 * else touches its memory meanwhile. All other calls are the loading thread's. */
#ifndef HRY_LOADER_WORK_H
#define HRY_LOADER_WORK_H

#include "loader/io.h"

typedef enum HryJobKind { HRY_JOB_READ, HRY_JOB_CONVERT, HRY_JOB_CHECK } HryJobKind;

typedef struct HryJob {
    struct HryJob *next;
    HryJobKind kind;
    HryIo *io;
    HryByteSource *bytes; /* CONVERT */
    uint32_t source;      /* for statistics */
    HryRun run;
    /* when it comes back */
    uint32_t whole;                            /* pieces that are complete, sums made */
    bool stopped;                              /* it was never begun */
    uint64_t moved, begin_ns, read_ns, end_ns; /* read_ns: when reading ended and checking began */
    uint32_t lane;
    HurrayError error; /* about piece `whole`; code OK: none */
    /* in the ring */
    uint64_t at; /* read up to here */
    bool in_ring;
    struct iovec parts[2 * HRY_RUN_PIECES];
} HryJob;

typedef struct HryWork HryWork;

/* threads: worker threads to start; those the system refuses are done without. 0 (or none started): jobs run inside submit. depth: jobs
 * that are out at most. */
HurrayStatus hry_work_new(const HurrayAllocator *allocator, uint32_t threads, uint32_t depth, HryWork **out, HurrayError *error);
uint32_t hry_work_threads(const HryWork *work); /* 0: the caller's only */
/* Memory for direct reads that cannot go to their place: how much it is in all, and to have it from here on; false: refused. */
uint64_t hry_work_bounce_bytes(const HryWork *work);
bool hry_work_use_bounce(HryWork *work);
/* Reads of descriptors go by io_uring from here on, so many in flight; false: refused, reason says why. */
bool hry_work_use_ring(HryWork *work, uint32_t depth, char *reason, size_t reason_size);
bool hry_work_has_ring(const HryWork *work);
void hry_work_submit(HryWork *work, HryJob *job);
/* One that is done, or NULL. */
HryJob *hry_work_take(HryWork *work);
/* Until one is done or the time is over (UINT32_MAX: no limit). */
void hry_work_wait(HryWork *work, uint32_t timeout_ms);
/* Jobs not begun yet come back at once, stopped. */
void hry_work_stop(HryWork *work);
/* Ends the threads; no job may be out. */
void hry_work_destroy(HryWork **work);

uint64_t hry_now_ns(void);

#endif
