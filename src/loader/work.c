#include "loader/work.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "cpu/pool.h"
#include "cpu/region.h"
#include "cpu/uring.h"
#include "format/crc32c.h"

struct HryWork {
    HurrayAllocator allocator;
    HryPool *pool;
    pthread_mutex_t lock;
    pthread_cond_t done;
    HryJob *done_first, *done_last; /* finished */
    HryScratch *lanes;              /* one a worker, one for the loading thread */
    HryRegion bounces;              /* base NULL: none */
    uint32_t lane_count;
    HryUring *ring;     /* NULL: none. Loading thread only, as the two below */
    HryJob *ring_jobs;  /* in it */
    uint32_t pool_jobs; /* out in the pool */
};

#define HOT_BYTES (UINT64_C(256) << 10) /* with the page they come from, a part of a core's second cache */
#define BOUNCE_BYTES (UINT64_C(1) << 20)   /* as much as a disk needs in one read */
#define BOUNCES_BYTES (UINT64_C(16) << 20) /* of all readers */
#define RING_BATCH 32u
#define BOTH_MS 2 /* how long one of ring and pool is waited for while the other is at work too */

uint64_t hry_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void convert(HryJob *job) {
    const HryPlanPiece *piece = &job->run.pieces[0];
    if (job->io->serial) pthread_mutex_lock(&job->io->lock);
    uint64_t before = hry_byte_source_taken(job->bytes);
    HurrayStatus status = hry_byte_source_read(job->bytes, piece->offset, piece->ptr, (size_t)piece->len, &job->error);
    if (job->io->serial) pthread_mutex_unlock(&job->io->lock);
    job->whole = status == HURRAY_OK;
    job->moved = status == HURRAY_OK ? hry_byte_source_taken(job->bytes) - before : 0;
}

static void check(HryJob *job) {
    for (uint32_t p = 0; p < job->whole; p++) /* while the bytes are hot */
        if (job->run.pieces[p].want_sum) job->run.pieces[p].sum = hry_crc32c(0, job->run.pieces[p].ptr, (size_t)job->run.pieces[p].len);
}

/* Step by step, so that what is checked is still in the cache of the core that read it. The time of all checks counts as at the end. */
static void read_and_check(HryWork *work, HryJob *job, unsigned worker) {
    HryPlanPiece *piece = &job->run.pieces[0];
    HryRun step = {.count = 0};
    uint64_t checking = 0, at = 0;
    bool going = true;
    piece->sum = 0;
    while (going && at < piece->len) {
        HryPlanPiece part = {.ptr = piece->ptr + at, .offset = piece->offset + at, .len = hry_cut(at, piece->len - at, HOT_BYTES, 1)};
        uint64_t moved;
        step.count = 0;
        hry_run_add(&step, &part);
        going = hry_io_read(job->io, &step, &work->lanes[worker], &job->whole, &moved, &job->error) == HURRAY_OK;
        job->moved += moved;
        at += part.len;
        uint64_t begin = hry_now_ns();
        if (going) piece->sum = hry_crc32c(piece->sum, part.ptr, (size_t)part.len);
        checking += hry_now_ns() - begin;
    }
    job->end_ns = hry_now_ns();
    job->read_ns = job->end_ns - checking;
}

static bool checks_on_the_way(const HryJob *job) {
    const HryPlanPiece *piece = &job->run.pieces[0];
    return job->run.count == 1 && piece->want_sum && job->io->by_fd && job->io->warm && !hry_io_is_direct(job->io, piece) &&
           !hry_io_bounces(job->io, &job->run);
}

static void put_done(HryWork *work, HryJob *job) {
    pthread_mutex_lock(&work->lock);
    job->next = NULL;
    if (work->done_last)
        work->done_last->next = job;
    else
        work->done_first = job;
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
    if (job->kind == HRY_JOB_READ && checks_on_the_way(job)) {
        read_and_check(work, job, worker);
        put_done(work, job);
        return;
    }
    if (job->kind == HRY_JOB_READ)
        hry_io_read(job->io, &job->run, &work->lanes[worker], &job->whole, &job->moved, &job->error);
    else if (job->kind == HRY_JOB_CONVERT)
        convert(job);
    else
        job->whole = job->run.count;
    job->read_ns = hry_now_ns();
    check(job);
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
    if (status != HURRAY_OK)
        hry_work_destroy(&work);
    else
        *out = work;
    return status;
}

uint32_t hry_work_threads(const HryWork *work) { return hry_pool_workers(work->pool); }

uint64_t hry_work_bounce_bytes(const HryWork *work) {
    uint64_t each = BOUNCES_BYTES / work->lane_count;
    return (each < BOUNCE_BYTES ? each & ~(uint64_t)(HRY_GAP_BYTES - 1) : BOUNCE_BYTES) * work->lane_count;
}

bool hry_work_use_bounce(HryWork *work) {
    size_t bytes = (size_t)hry_work_bounce_bytes(work), each = bytes / work->lane_count;
    if (!hry_region_map(&work->bounces, bytes, bytes, HURRAY_AUTO, NULL, -1)) {
        work->bounces.base = NULL;
        return false;
    }
    for (uint32_t l = 0; l < work->lane_count; l++) {
        work->lanes[l].bounce = work->bounces.base + l * each;
        work->lanes[l].bounce_bytes = each;
    }
    return true;
}

bool hry_work_use_ring(HryWork *work, uint32_t depth, char *reason, size_t reason_size) {
    HurrayError error;
    if (hry_uring_new(depth, &work->allocator, &work->ring, &error) == HURRAY_OK) return true;
    work->ring = NULL;
    snprintf(reason, reason_size, "%.150s", error.message);
    return false;
}

bool hry_work_has_ring(const HryWork *work) { return work->ring != NULL; }

static uint8_t *ring_gap(HryWork *work) { return work->lanes[work->lane_count - 1].gap; }

static bool ring_add(HryWork *work, HryJob *job) {
    int fd = hry_io_fd(job->io, &job->run, job->at), count = hry_io_rest(&job->run, job->at, ring_gap(work), job->parts);
    return hry_uring_readv(work->ring, fd, job->at, job->parts, (unsigned)count, (uint64_t)(uintptr_t)job);
}

static void leave_ring(HryWork *work, HryJob *job) {
    HryJob **at = &work->ring_jobs;
    while (*at != job) at = &(*at)->next;
    *at = job->next;
}

static void ring_done(HryWork *work, HryJob *job) {
    leave_ring(work, job);
    job->read_ns = hry_now_ns();
    check(job);
    job->end_ns = hry_now_ns();
    put_done(work, job);
}

/* What a completion means: more of the same read, the slow road for what went wrong, or done. */
static void ring_result(HryWork *work, HryJob *job, int64_t result) {
    uint64_t end = job->run.offset + job->run.len;
    if (result == -ECANCELED) {
        leave_ring(work, job);
        job->stopped = true;
        put_done(work, job);
        return;
    }
    if (result > 0) {
        job->at += (uint64_t)result;
        job->moved += (uint64_t)result;
    }
    bool again = (result > 0 && job->at < end) || result == -EAGAIN || result == -EINTR;
    if (again && ring_add(work, job)) return;
    job->whole = job->run.count;
    if (job->at < end) hry_io_finish(job->io, &job->run, job->at, ring_gap(work), &job->whole, &job->moved, &job->error);
    ring_done(work, job);
}

/* The ring does not work any more: its jobs are done without it, once the system touches none of their memory. */
static void leave_uring(HryWork *work) {
    hry_uring_destroy(&work->ring);
    while (work->ring_jobs) {
        HryJob *job = work->ring_jobs;
        job->whole = job->run.count;
        hry_io_finish(job->io, &job->run, job->at, ring_gap(work), &job->whole, &job->moved, &job->error);
        ring_done(work, job);
    }
}

/* Takes completions in; waits for the first up to timeout_ms. */
static void ring_reap(HryWork *work, int timeout_ms) {
    HryUringDone done[RING_BATCH];
    HurrayError error;
    size_t count = RING_BATCH;
    while (count == RING_BATCH) {
        if (hry_uring_wait(work->ring, timeout_ms, done, RING_BATCH, &count, &error) != HURRAY_OK) {
            leave_uring(work);
            return;
        }
        for (size_t d = 0; d < count; d++) ring_result(work, (HryJob *)(uintptr_t)done[d].user, done[d].result);
        timeout_ms = 0;
    }
}

static bool goes_by_ring(const HryWork *work, const HryJob *job) {
    return work->ring && job->kind == HRY_JOB_READ && job->io->by_fd && !job->io->bounce;
}

void hry_work_submit(HryWork *work, HryJob *job) {
    job->next = NULL;
    job->whole = 0;
    job->stopped = false;
    job->moved = job->begin_ns = job->read_ns = job->end_ns = 0;
    if (goes_by_ring(work, job)) {
        job->lane = work->lane_count - 1;
        job->at = job->run.offset;
        job->begin_ns = hry_now_ns();
        hry_error_clear(&job->error);
        job->in_ring = ring_add(work, job);
        if (job->in_ring) {
            job->next = work->ring_jobs;
            work->ring_jobs = job;
            return;
        }
    }
    job->in_ring = false;
    work->pool_jobs++;
    if (hry_pool_push(work->pool, job)) return;
    job->stopped = true;
    put_done(work, job);
}

HryJob *hry_work_take(HryWork *work) {
    if (work->ring_jobs) ring_reap(work, 0);
    pthread_mutex_lock(&work->lock);
    HryJob *job = work->done_first;
    if (job) {
        if (!job->in_ring) work->pool_jobs--;
        work->done_first = job->next;
        if (!work->done_first) work->done_last = NULL;
    }
    pthread_mutex_unlock(&work->lock);
    return job;
}

void hry_work_wait(HryWork *work, uint32_t timeout_ms) {
    struct timespec until;
    if (work->ring_jobs) { /* two places to wait at: the ring is asked, the pool looked after now and then */
        ring_reap(work, work->pool_jobs && timeout_ms > BOTH_MS ? BOTH_MS : timeout_ms > INT32_MAX ? -1 : (int)timeout_ms);
        return;
    }
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
    if (work->ring) hry_uring_cancel(work->ring);
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
    hry_uring_destroy(&work->ring);
    if (work->bounces.base) hry_region_unmap(&work->bounces);
    pthread_cond_destroy(&work->done);
    pthread_mutex_destroy(&work->lock);
    HurrayAllocator allocator = work->allocator;
    hry_free_array(&allocator, work->lanes, work->lane_count, sizeof *work->lanes);
    hry_free(&allocator, work, sizeof *work);
    *handle = NULL;
}
