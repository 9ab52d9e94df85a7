#include "cpu/pool.h"

#include <pthread.h>
#include <signal.h>

typedef struct Worker {
    HryPool *pool;
    unsigned number;
    pthread_t thread;
} Worker;

struct HryPool {
    HurrayAllocator allocator;
    HryPoolRun run;
    void *ctx;
    pthread_mutex_t lock;
    pthread_cond_t work, room, idle; /* a job or a stop; a place in the queue or a stop; nothing waits or runs */
    void **queue;                    /* a ring */
    size_t capacity, first, count;
    size_t running;
    bool stopped;
    Worker *workers;
    unsigned worker_count, worker_room;
};

/* Lock held, count > 0. */
static void *dequeue(HryPool *pool) {
    void *job = pool->queue[pool->first];
    pool->first = (pool->first + 1) % pool->capacity;
    pool->count--;
    pthread_cond_signal(&pool->room);
    return job;
}

/* Lock held on entry and exit, not while the job runs. */
static void run_next(HryPool *pool, unsigned worker) {
    void *job = dequeue(pool);
    pool->running++;
    pthread_mutex_unlock(&pool->lock);
    pool->run(pool->ctx, job, worker);
    pthread_mutex_lock(&pool->lock);
    if (--pool->running == 0 && (pool->count == 0 || pool->stopped)) pthread_cond_broadcast(&pool->idle);
}

static void *work(void *arg) {
    Worker *worker = arg;
    HryPool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->stopped && pool->count == 0) pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->stopped) break;
        run_next(pool, worker->number);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* The workers inherit a mask that blocks everything: the program's signals stay with its own threads. */
static void start_workers(HryPool *pool) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->worker_count < pool->worker_room) {
        Worker *worker = &pool->workers[pool->worker_count];
        worker->pool = pool;
        worker->number = pool->worker_count;
        if (pthread_create(&worker->thread, NULL, work, worker) != 0) break;
        pool->worker_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void pool_free(HryPool *pool) {
    HurrayAllocator allocator = pool->allocator;
    hry_free_array(&allocator, pool->queue, pool->capacity, sizeof *pool->queue);
    hry_free_array(&allocator, pool->workers, pool->worker_room, sizeof *pool->workers);
    hry_free(&allocator, pool, sizeof *pool);
}

HurrayStatus hry_pool_new(unsigned workers, size_t queue, HryPoolRun run, void *ctx, const HurrayAllocator *allocator, HryPool **out,
                          HurrayError *error) {
    HryPool *pool = hry_alloc(allocator, sizeof *pool);
    if (!pool) return hry_fail_memory(error, "a thread pool", sizeof *pool);
    pool->allocator = *allocator;
    pool->run = run;
    pool->ctx = ctx;
    pool->capacity = queue ? queue : 1;
    pool->worker_room = workers;
    pool->queue = hry_alloc_array(allocator, pool->capacity, sizeof *pool->queue);
    pool->workers = hry_alloc_array(allocator, workers, sizeof *pool->workers);
    if (!pool->queue || (workers && !pool->workers)) {
        pool_free(pool);
        return hry_fail_memory(error, "a thread pool", workers * sizeof(Worker) + queue * sizeof(void *));
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->room, NULL);
    pthread_cond_init(&pool->idle, NULL);
    start_workers(pool);
    *out = pool;
    return HURRAY_OK;
}

unsigned hry_pool_workers(const HryPool *pool) { return pool->worker_count; }

static bool push(HryPool *pool, void *job, bool wait) {
    pthread_mutex_lock(&pool->lock);
    while (wait && !pool->stopped && pool->count == pool->capacity) {
        if (pool->worker_count == 0)
            run_next(pool, 0);
        else
            pthread_cond_wait(&pool->room, &pool->lock);
    }
    bool taken = !pool->stopped && pool->count < pool->capacity;
    if (taken) {
        pool->queue[(pool->first + pool->count++) % pool->capacity] = job;
        if (pool->worker_count)
            pthread_cond_signal(&pool->work);
        else
            run_next(pool, 0);
    }
    pthread_mutex_unlock(&pool->lock);
    return taken;
}

bool hry_pool_push(HryPool *pool, void *job) { return push(pool, job, true); }

bool hry_pool_try_push(HryPool *pool, void *job) { return push(pool, job, false); }

bool hry_pool_help(HryPool *pool) {
    pthread_mutex_lock(&pool->lock);
    bool found = !pool->stopped && pool->count > 0;
    if (found) run_next(pool, pool->worker_count);
    pthread_mutex_unlock(&pool->lock);
    return found;
}

void hry_pool_drain(HryPool *pool) {
    pthread_mutex_lock(&pool->lock);
    while ((pool->count > 0 && !pool->stopped) || pool->running > 0) pthread_cond_wait(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void hry_pool_stop(HryPool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->stopped = true;
    pthread_cond_broadcast(&pool->work);
    pthread_cond_broadcast(&pool->room);
    pthread_cond_broadcast(&pool->idle);
    pthread_mutex_unlock(&pool->lock);
}

void *hry_pool_take_back(HryPool *pool) {
    pthread_mutex_lock(&pool->lock);
    void *job = pool->stopped && pool->count ? dequeue(pool) : NULL;
    pthread_mutex_unlock(&pool->lock);
    return job;
}

void hry_pool_destroy(HryPool **pool_at) {
    HryPool *pool = *pool_at;
    if (!pool) return;
    hry_pool_stop(pool);
    for (unsigned i = 0; i < pool->worker_count; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->room);
    pthread_cond_destroy(&pool->idle);
    pthread_mutex_destroy(&pool->lock);
    pool_free(pool);
    *pool_at = NULL;
}
