/* Worker threads over one bounded queue of jobs. Nothing is global; every thread has ended when destroy returns. */
#ifndef HRY_CPU_POOL_H
#define HRY_CPU_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/fail.h"

typedef struct HryPool HryPool;

/* Runs one job. worker: 0 to hry_pool_workers - 1; on a thread that pushes or helps it is hry_pool_workers. */
typedef void (*HryPoolRun)(void *ctx, void *job, unsigned worker);

/* Starts the threads, fewer when the system refuses some; 0 is legal: then every job runs on the thread that pushes it.
 * queue (at least 1): jobs that wait at most. Signals are not delivered to the workers. */
HurrayStatus hry_pool_new(unsigned workers, size_t queue, HryPoolRun run, void *ctx, const HurrayAllocator *allocator, HryPool **out,
                          HurrayError *error);
unsigned hry_pool_workers(const HryPool *pool);

/* Waits for room in the queue. False: the pool is stopped, the job was not taken. */
bool hry_pool_push(HryPool *pool, void *job);
/* The same without waiting: false also when the queue is full. */
bool hry_pool_try_push(HryPool *pool, void *job);
/* Runs one waiting job on this thread; false when none waits. */
bool hry_pool_help(HryPool *pool);
/* Waits until no job waits or runs. */
void hry_pool_drain(HryPool *pool);

/* From here on nothing is taken and nothing begun; what runs goes on. Any thread, jobs too. */
void hry_pool_stop(HryPool *pool);
/* After stop: a job that was never begun, or NULL. */
void *hry_pool_take_back(HryPool *pool);
/* Stops, waits for what runs, ends the threads. Jobs never begun are forgotten. Not from a job. */
void hry_pool_destroy(HryPool **pool);

#endif
