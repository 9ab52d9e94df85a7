#include "loader/work.h"

#include <time.h>

#include "cpu/pool.h"
#include "format/crc32c.h"

typedef struct Lane {
    uint8_t gap[HRY_GAP_BYTES];
} Lane;

struct HryWork {
    HurrayAllocator allocator;
    HryPool *pool;
    pthread_mutex_t lock;
    pthread_cond_t done;
    HryJob *done_first, *done_last; /* finished */
    Lane *lanes;                    /* one a worker, one for the loading thread */
    uint32_t lane_count;
};

uint64_t hry_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void convert(HryJob *job) {
    const HryPiece *piece = &job->run.pieces[0];
    if (job->io->serial) pthread_mutex_lock(&job->io->lock);
    HurrayStatus status = hry_byte_source_read(job->bytes, piece->offset, piece->ptr, (size_t)piece->len, &job->error);
    if (job->io->serial) pthread_mutex_unlock(&job->io->lock);
    job->whole = status == HURRAY_OK;
    job->moved = status == HURRAY_OK ? piece->len : 0;
}

static void put_done(HryWork *work, HryJob *job) {
    pthread_mutex_lock(&work->lock);
    job->next = NULL;
    if (work->done_last) work->done_last->next = job;
    else work->done_first = job;
    work->done_last = job;
    pthread_cond_signal(&work->done);
    pthread_mutex_unlock(&work->lock);
}

static void run_job(void *ctx, void *argument, unsigned worker) {
    HryWork *work = ctx;
    HryJob *job = argument;
    job->lane = worker;
    job->begin_ns = hry_now_ns();
    hry_error_clear(&job->error);
    if (job->kind == HRY_JOB_READ) hry_io_read(job->io, &job->run, work->lanes[worker].gap, &job->whole, &job->moved, &job->error);
    else if (job->kind == HRY_JOB_CONVERT) convert(job);
    else job->whole = job->run.count;
    job->read_ns = hry_now_ns();
    for (uint32_t p = 0; p < job->whole; p++) /* while the bytes are hot */
        if (job->run.pieces[p].want_sum) job->run.pieces[p].sum = hry_crc32c(0, job->run.pieces[p].ptr, (size_t)job->run.pieces[p].len);
    job->end_ns = hry_now_ns();
    put_done(work, job);
}

HurrayStatus hry_work_new(const HurrayAllocator *allocator, uint32_t threads, uint32_t depth, HryWork **out, HurrayError *error) {
    HryWork *work = hry_alloc(allocator, sizeof *work);
    pthread_condattr_t monotonic;
    if (!work) return hry_fail_memory(error, "the workers", sizeof *work);
    work->allocator = *allocator;
    work->lane_count = threads + 1;
    work->lanes = hry_alloc_array(allocator, work->lane_count, sizeof *work->lanes);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    HurrayStatus status = work->lanes ? hry_pool_new(threads, depth, run_job, work, allocator, &work->pool, error)
                                      : hry_fail_memory(error, "the workers", work->lane_count * sizeof *work->lanes);
    if (status != HURRAY_OK) hry_work_destroy(&work);
    else *out = work;
    return status;
}

uint32_t hry_work_threads(const HryWork *work) { return hry_pool_workers(work->pool); }

void hry_work_submit(HryWork *work, HryJob *job) {
    job->next = NULL;
    job->whole = 0;
    job->stopped = false;
    job->moved = job->begin_ns = job->read_ns = job->end_ns = 0;
    if (hry_pool_push(work->pool, job)) return;
    job->stopped = true;
    put_done(work, job);
}

HryJob *hry_work_take(HryWork *work) {
    pthread_mutex_lock(&work->lock);
    HryJob *job = work->done_first;
    if (job) {
        work->done_first = job->next;
        if (!work->done_first) work->done_last = NULL;
    }
    pthread_mutex_unlock(&work->lock);
    return job;
}

void hry_work_wait(HryWork *work, uint32_t timeout_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&work->lock);
    while (!work->done_first) {
        int code = timeout_ms == UINT32_MAX ? pthread_cond_wait(&work->done, &work->lock)
                                            : pthread_cond_timedwait(&work->done, &work->lock, &until);
        if (code != 0) break;
    }
    pthread_mutex_unlock(&work->lock);
}

void hry_work_stop(HryWork *work) {
    HryJob *job;
    hry_pool_stop(work->pool);
    while ((job = hry_pool_take_back(work->pool)) != NULL) {
        job->stopped = true;
        put_done(work, job);
    }
}

void hry_work_destroy(HryWork **handle) {
    HryWork *work = *handle;
    if (!work) return;
    hry_pool_destroy(&work->pool);
    pthread_cond_destroy(&work->done);
    pthread_mutex_destroy(&work->lock);
    HurrayAllocator allocator = work->allocator;
    hry_free_array(&allocator, work->lanes, work->lane_count, sizeof *work->lanes);
    hry_free(&allocator, work, sizeof *work);
    *handle = NULL;
}
