#include "cpu/pool.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fail_alloc.h"

typedef struct Scene {
    HryPool *pool;
    atomic_uint ran, most_worker;
    atomic_bool hold, began;
    pthread_t last_thread;
    sigset_t mask;
} Scene;

static void run(void *ctx, void *job, unsigned worker) {
    Scene *scene = ctx;
    atomic_store(&scene->began, true);
    while (atomic_load(&scene->hold)) usleep(100);
    unsigned most = atomic_load(&scene->most_worker);
    while (worker > most && !atomic_compare_exchange_weak(&scene->most_worker, &most, worker)) {
    }
    ++*(unsigned *)job;
    atomic_fetch_add(&scene->ran, 1);
}

static HryPool *make(Scene *scene, unsigned workers, size_t queue, FailAlloc *alloc) {
    HurrayError error;
    fail_alloc_init(alloc);
    assert_int_equal(hry_pool_new(workers, queue, run, scene, &alloc->allocator, &scene->pool, &error), HURRAY_OK);
    assert_int_equal(hry_pool_workers(scene->pool), workers);
    return scene->pool;
}

static void every_job_runs_once(void **state) {
    (void)state;
    for (unsigned workers = 0; workers < 5; workers++) {
        static unsigned jobs[2000];
        Scene scene = {0};
        FailAlloc alloc;
        HryPool *pool = make(&scene, workers, workers % 2 ? 1 : 64, &alloc);
        memset(jobs, 0, sizeof jobs);
        for (size_t i = 0; i < 2000; i++) assert_true(hry_pool_push(pool, &jobs[i]));
        while (hry_pool_help(pool)) {
        }
        hry_pool_drain(pool);
        for (size_t i = 0; i < 2000; i++) assert_int_equal(jobs[i], 1);
        assert_int_equal(scene.ran, 2000);
        assert_true(scene.most_worker <= workers);
        hry_pool_drain(pool);
        hry_pool_destroy(&pool);
        assert_null(pool);
        hry_pool_destroy(&pool);
        fail_alloc_assert_empty(&alloc);
    }
}

static void remember_thread(void *ctx, void *job, unsigned worker) {
    Scene *scene = ctx;
    (void)job, (void)worker;
    scene->last_thread = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &scene->mask);
}

static void without_workers_the_pushing_thread_runs_the_job(void **state) {
    (void)state;
    Scene scene = {0};
    FailAlloc alloc;
    HurrayError error;
    HryPool *pool;
    unsigned job = 0;
    fail_alloc_init(&alloc);
    assert_int_equal(hry_pool_new(0, 0, remember_thread, &scene, &alloc.allocator, &pool, &error), HURRAY_OK);
    assert_true(hry_pool_push(pool, &job));
    assert_true(pthread_equal(scene.last_thread, pthread_self()));
    assert_false(hry_pool_help(pool));
    hry_pool_destroy(&pool);
    fail_alloc_assert_empty(&alloc);
}

static void workers_take_no_signals(void **state) {
    (void)state;
    Scene scene = {0};
    FailAlloc alloc;
    HurrayError error;
    HryPool *pool;
    unsigned job = 0;
    fail_alloc_init(&alloc);
    assert_int_equal(hry_pool_new(1, 1, remember_thread, &scene, &alloc.allocator, &pool, &error), HURRAY_OK);
    assert_true(hry_pool_push(pool, &job));
    hry_pool_drain(pool);
    assert_true(sigismember(&scene.mask, SIGINT) && sigismember(&scene.mask, SIGUSR1));
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    assert_false(sigismember(&mine, SIGINT));
    hry_pool_destroy(&pool);
    fail_alloc_assert_empty(&alloc);
}

static void a_full_queue_refuses_and_a_stop_gives_back_what_was_never_begun(void **state) {
    (void)state;
    Scene scene = {.hold = true};
    FailAlloc alloc;
    unsigned jobs[5] = {0};
    HryPool *pool = make(&scene, 1, 2, &alloc);
    assert_true(hry_pool_push(pool, &jobs[0]));
    while (!atomic_load(&scene.began)) usleep(100);
    assert_true(hry_pool_try_push(pool, &jobs[1]));
    assert_true(hry_pool_try_push(pool, &jobs[2]));
    assert_false(hry_pool_try_push(pool, &jobs[3]));
    assert_null(hry_pool_take_back(pool)); /* not stopped */
    hry_pool_stop(pool);
    assert_false(hry_pool_push(pool, &jobs[4]));
    assert_false(hry_pool_help(pool));
    assert_ptr_equal(hry_pool_take_back(pool), &jobs[1]);
    atomic_store(&scene.hold, false);
    hry_pool_drain(pool); /* only for what runs */
    assert_int_equal(jobs[0], 1);
    assert_ptr_equal(hry_pool_take_back(pool), &jobs[2]);
    assert_null(hry_pool_take_back(pool));
    assert_int_equal(jobs[1] + jobs[2] + jobs[3] + jobs[4], 0);
    hry_pool_destroy(&pool);
    fail_alloc_assert_empty(&alloc);
}

static void *stop_soon(void *ctx) {
    Scene *scene = ctx;
    usleep(3000);
    hry_pool_stop(scene->pool);
    atomic_store(&scene->hold, false);
    return NULL;
}

static void a_stop_wakes_whoever_waits_for_room(void **state) {
    (void)state;
    Scene scene = {.hold = true};
    FailAlloc alloc;
    unsigned jobs[3] = {0};
    pthread_t thread;
    HryPool *pool = make(&scene, 1, 1, &alloc);
    pthread_create(&thread, NULL, stop_soon, &scene);
    int taken = 0;
    for (int i = 0; i < 3; i++) taken += hry_pool_push(pool, &jobs[i]);
    assert_true(taken < 3);
    pthread_join(thread, NULL);
    hry_pool_destroy(&pool);
    fail_alloc_assert_empty(&alloc);
}

static void *push_many(void *ctx) {
    Scene *scene = ctx;
    static unsigned jobs[64];
    for (int i = 0; i < 500; i++) {
        if (!hry_pool_push(scene->pool, &jobs[i % 64])) return NULL;
        hry_pool_help(scene->pool);
    }
    return NULL;
}

static void count_only(void *ctx, void *job, unsigned worker) {
    Scene *scene = ctx;
    (void)job, (void)worker;
    atomic_fetch_add(&scene->ran, 1);
}

static void several_threads_may_push_and_help(void **state) {
    (void)state;
    for (unsigned workers = 0; workers < 3; workers++) {
        Scene scene = {0};
        FailAlloc alloc;
        HurrayError error;
        pthread_t threads[3];
        fail_alloc_init(&alloc);
        assert_int_equal(hry_pool_new(workers, 3, count_only, &scene, &alloc.allocator, &scene.pool, &error), HURRAY_OK);
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, push_many, &scene);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        hry_pool_drain(scene.pool);
        assert_int_equal(scene.ran, 1500);
        hry_pool_destroy(&scene.pool);
        fail_alloc_assert_empty(&alloc);
    }
}

static void every_failing_allocation_leaks_nothing(void **state) {
    (void)state;
    for (uint64_t k = 1;; k++) {
        Scene scene = {0};
        FailAlloc alloc;
        HurrayError error;
        fail_alloc_init(&alloc);
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hry_pool_new(2, 4, run, &scene, &alloc.allocator, &scene.pool, &error);
        hry_pool_destroy(&scene.pool);
        fail_alloc_assert_empty(&alloc);
        if (status == HURRAY_OK) break;
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        assert_int_equal(error.code, HURRAY_ERR_NO_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_runs_once),
        cmocka_unit_test(without_workers_the_pushing_thread_runs_the_job),
        cmocka_unit_test(workers_take_no_signals),
        cmocka_unit_test(a_full_queue_refuses_and_a_stop_gives_back_what_was_never_begun),
        cmocka_unit_test(a_stop_wakes_whoever_waits_for_room),
        cmocka_unit_test(several_threads_may_push_and_help),
        cmocka_unit_test(every_failing_allocation_leaks_nothing),
    };
    return cmocka_run_group_tests_name("cpu/pool", tests, NULL, NULL);
}
