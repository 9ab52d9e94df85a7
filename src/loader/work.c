#include "loader/work.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "format/crc32c.h"

#define STACK_BYTES ((size_t)1 << 20)

typedef struct Lane {
    HryWork *work;
    pthread_t thread;
    uint32_t number;
    uint8_t gap[HRY_GAP_BYTES];
} Lane;

struct HryWork {
    HurrayAllocator allocator;
    pthread_mutex_t lock;
    pthread_cond_t queued, done;
    HryJob *first, *last;            /* waiting */
    HryJob *done_first, *done_last;  /* finished */
    uint64_t turn;
    bool stop, end;
    Lane *lanes;
    uint32_t lane_count, started;
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

static void run_job(HryJob *job, Lane *lane) {
    job->lane = lane->number;
    job->begin_ns = hry_now_ns();
    hry_error_clear(&job->error);
    if (job->kind == HRY_JOB_READ) hry_io_read(job->io, &job->run, lane->gap, &job->whole, &job->moved, &job->error);
    else if (job->kind == HRY_JOB_CONVERT) convert(job);
    else job->whole = job->run.count;
    job->read_ns = hry_now_ns();
    for (uint32_t p = 0; p < job->whole; p++) /* while the bytes are hot */
        if (job->run.pieces[p].want_sum) job->run.pieces[p].sum = hry_crc32c(0, job->run.pieces[p].ptr, (size_t)job->run.pieces[p].len);
    job->end_ns = hry_now_ns();
}

static HryJob *next_job(HryWork *work) {
    HryJob *job = work->first;
    if (job) {
        work->first = job->next;
        if (!work->first) work->last = NULL;
        job->stopped = work->stop;
    }
    return job;
}

static void put_done(HryWork *work, HryJob *job) {
    job->next = NULL;
    if (work->done_last) work->done_last->next = job;
    else work->done_first = job;
    work->done_last = job;
}

static void *lane_main(void *argument) {
    Lane *lane = argument;
    HryWork *work = lane->work;
    pthread_mutex_lock(&work->lock);
    for (;;) {
        HryJob *job = next_job(work);
        if (!job) {
            if (work->end) break;
            pthread_cond_wait(&work->queued, &work->lock);
            continue;
        }
        pthread_mutex_unlock(&work->lock);
        if (!job->stopped) run_job(job, lane);
        pthread_mutex_lock(&work->lock);
        put_done(work, job);
        pthread_cond_signal(&work->done);
    }
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

/* Signals stay with the program's own threads. */
static void start_lanes(HryWork *work, uint32_t threads) {
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    if (pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (work->started < threads && pthread_create(&work->lanes[work->started].thread, &attributes, lane_main, &work->lanes[work->started]) == 0)
        work->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

HurrayStatus hry_work_new(const HurrayAllocator *allocator, uint32_t threads, HryWork **out, HurrayError *error) {
    HryWork *work = hry_alloc(allocator, sizeof *work);
    if (!work) return hry_fail_memory(error, "the workers", sizeof *work);
    work->allocator = *allocator;
    work->lane_count = threads ? threads : 1;
    work->lanes = hry_alloc_array(allocator, work->lane_count, sizeof *work->lanes);
    if (!work->lanes) {
        hry_free(allocator, work, sizeof *work);
        return hry_fail_memory(error, "the workers", work->lane_count * sizeof *work->lanes);
    }
    for (uint32_t l = 0; l < work->lane_count; l++) work->lanes[l].work = work, work->lanes[l].number = l;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->queued, NULL);
    pthread_cond_init(&work->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    start_lanes(work, threads);
    *out = work;
    return HURRAY_OK;
}

uint32_t hry_work_threads(const HryWork *work) { return work->started; }

void hry_work_submit(HryWork *work, HryJob *job) {
    job->next = NULL;
    job->whole = 0;
    job->stopped = false;
    job->moved = job->begin_ns = job->read_ns = job->end_ns = 0;
    pthread_mutex_lock(&work->lock);
    if (work->last) work->last->next = job;
    else work->first = job;
    work->last = job;
    pthread_mutex_unlock(&work->lock);
    if (work->started) pthread_cond_signal(&work->queued);
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

static void run_one_here(HryWork *work) {
    HryJob *job = next_job(work);
    if (!job) return;
    if (!job->stopped) run_job(job, &work->lanes[0]);
    put_done(work, job);
}

void hry_work_wait(HryWork *work, uint32_t timeout_ms) {
    struct timespec until;
    if (work->started == 0) {
        run_one_here(work);
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
    pthread_mutex_lock(&work->lock);
    work->stop = true;
    pthread_mutex_unlock(&work->lock);
}

void hry_work_destroy(HryWork **handle) {
    HryWork *work = *handle;
    if (!work) return;
    pthread_mutex_lock(&work->lock);
    work->end = true;
    pthread_cond_broadcast(&work->queued);
    pthread_mutex_unlock(&work->lock);
    for (uint32_t l = 0; l < work->started; l++) pthread_join(work->lanes[l].thread, NULL);
    pthread_cond_destroy(&work->queued);
    pthread_cond_destroy(&work->done);
    pthread_mutex_destroy(&work->lock);
    HurrayAllocator allocator = work->allocator;
    hry_free_array(&allocator, work->lanes, work->lane_count, sizeof *work->lanes);
    hry_free(&allocator, work, sizeof *work);
    *handle = NULL;
}
