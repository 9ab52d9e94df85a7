#include "cpu/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu/transport.h"
#include "support/fail_alloc.h"

#define SIZE (4u << 20)
static char path[] = "/tmp/hurray-uring-XXXXXX";
static int file_fd = -1;
static char why[160];

static int make_file(void **state) {
    (void)state;
    file_fd = mkstemp(path);
    uint32_t *words = malloc(SIZE);
    for (uint32_t i = 0; i < SIZE / 4; i++) words[i] = i * 2654435761u;
    ssize_t n = write(file_fd, words, SIZE);
    free(words);
    if (!hry_uring_usable(why, sizeof why)) print_message("no io_uring here: %s\n", why);
    return n == SIZE ? 0 : -1;
}

static int remove_file(void **state) {
    (void)state;
    close(file_fd);
    return unlink(path);
}

#define NEEDS_URING()                                                                                                                      \
    if (!hry_uring_usable(why, sizeof why)) {                                                                                              \
        print_message("skipped: %s\n", why);                                                                                               \
        skip();                                                                                                                            \
    }

static HryUring *make(unsigned depth, FailAlloc *alloc) {
    HryUring *ring = NULL;
    HurrayError error;
    fail_alloc_init(alloc);
    assert_int_equal(hry_uring_new(depth, &alloc->allocator, &ring, &error), HURRAY_OK);
    return ring;
}

static void check_all(int fd, size_t align, size_t piece, unsigned depth) {
    FailAlloc alloc;
    HurrayError error;
    HryUring *ring = make(depth, &alloc);
    uint8_t *got = NULL, *want = malloc(SIZE);
    assert_int_equal(posix_memalign((void **)&got, align, SIZE), 0);
    memset(got, 0, SIZE);
    size_t next = 0, done_bytes = 0;
    while (done_bytes < SIZE) {
        while (next < SIZE) {
            size_t len = SIZE - next < piece ? SIZE - next : piece;
            if (!hry_uring_read(ring, fd, next, got + next, len, next / piece)) break;
            next += len;
        }
        assert_true(hry_uring_in_flight(ring) <= hry_uring_depth(ring));
        HryUringDone done[3];
        size_t count;
        assert_int_equal(hry_uring_wait(ring, -1, done, 3, &count, &error), HURRAY_OK);
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++) {
            size_t at = (size_t)done[i].user * piece, len = SIZE - at < piece ? SIZE - at : piece;
            assert_int_equal(done[i].result, len);
            done_bytes += len;
        }
    }
    assert_int_equal(hry_uring_in_flight(ring), 0);
    assert_int_equal(pread(file_fd, want, SIZE, 0), SIZE);
    assert_memory_equal(got, want, SIZE);
    free(got), free(want);
    hry_uring_destroy(&ring);
    assert_null(ring);
    hry_uring_destroy(&ring);
    fail_alloc_assert_empty(&alloc);
}

static void many_reads_in_flight_bring_what_pread_brings(void **state) {
    (void)state;
    NEEDS_URING();
    check_all(file_fd, 64, 65537, 8);
    check_all(file_fd, 64, SIZE, 1);
    uint32_t alignment;
    int direct = hry_direct_open(file_fd, &alignment);
    if (direct < 0) {
        print_message("direct reads skipped: %s\n", strerror(errno));
        return;
    }
    check_all(direct, 4096, 131072, 16);
    close(direct);
}

static void a_vector_of_pieces_is_filled_in_order(void **state) {
    (void)state;
    NEEDS_URING();
    FailAlloc alloc;
    HurrayError error;
    HryUring *ring = make(2, &alloc);
    uint8_t a[100], b[300], want[400];
    struct iovec pieces[] = {{a, sizeof a}, {b, sizeof b}};
    HryUringDone done;
    size_t count;
    assert_true(hry_uring_readv(ring, file_fd, 12345, pieces, 2, 7));
    assert_int_equal(hry_uring_wait(ring, 5000, &done, 1, &count, &error), HURRAY_OK);
    assert_int_equal(count, 1);
    assert_int_equal(done.user, 7);
    assert_int_equal(done.result, 400);
    assert_int_equal(pread(file_fd, want, 400, 12345), 400);
    assert_memory_equal(a, want, 100);
    assert_memory_equal(b, want + 100, 300);
    hry_uring_destroy(&ring);
    fail_alloc_assert_empty(&alloc);
}

static void ends_and_failures_come_as_results(void **state) {
    (void)state;
    NEEDS_URING();
    FailAlloc alloc;
    HurrayError error;
    HryUring *ring = make(4, &alloc);
    uint8_t got[300];
    HryUringDone done[4];
    size_t count, seen = 0;
    assert_int_equal(hry_uring_wait(ring, -1, done, 4, &count, &error), HURRAY_OK); /* nothing in flight: no wait */
    assert_int_equal(count, 0);
    assert_true(hry_uring_read(ring, file_fd, SIZE - 3, got, 100, 0));
    assert_true(hry_uring_read(ring, file_fd, SIZE, got + 100, 100, 1));
    assert_true(hry_uring_read(ring, 9999, 0, got + 200, 100, 2));
    while (seen < 3) {
        assert_int_equal(hry_uring_wait(ring, 5000, done, 4, &count, &error), HURRAY_OK);
        for (size_t i = 0; i < count; i++) assert_int_equal(done[i].result, done[i].user == 0 ? 3 : done[i].user == 1 ? 0 : -EBADF);
        seen += count;
    }
    hry_uring_destroy(&ring);
    fail_alloc_assert_empty(&alloc);
}

static void depth_bounds_what_is_in_flight_and_a_wait_ends_in_time(void **state) {
    (void)state;
    NEEDS_URING();
    FailAlloc alloc;
    HurrayError error;
    HryUring *ring = make(2, &alloc);
    int ends[2];
    uint8_t got[3];
    HryUringDone done[2];
    size_t count;
    assert_int_equal(pipe(ends), 0);
    assert_true(hry_uring_read(ring, ends[0], 0, &got[0], 1, 0));
    assert_true(hry_uring_read(ring, ends[0], 0, &got[1], 1, 1));
    assert_false(hry_uring_read(ring, ends[0], 0, &got[2], 1, 2));
    struct iovec piece = {&got[2], 1};
    assert_false(hry_uring_readv(ring, ends[0], 0, &piece, 1, 2));
    assert_int_equal(hry_uring_wait(ring, 0, done, 2, &count, &error), HURRAY_OK);
    assert_int_equal(count, 0);
    assert_int_equal(hry_uring_wait(ring, 20, done, 2, &count, &error), HURRAY_OK);
    assert_int_equal(count, 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(hry_uring_wait(ring, 5000, done, 2, &count, &error), HURRAY_OK);
    assert_int_equal(count, 1);
    assert_int_equal(got[done[0].user], 'x');
    hry_uring_destroy(&ring); /* the other read would never end by itself */
    fail_alloc_assert_empty(&alloc);
    close(ends[0]), close(ends[1]);
}

static void a_cancelled_read_still_completes(void **state) {
    (void)state;
    NEEDS_URING();
    FailAlloc alloc;
    HurrayError error;
    HryUring *ring = make(4, &alloc);
    int ends[2];
    uint8_t got[4];
    HryUringDone done[4];
    size_t count, seen = 0;
    assert_int_equal(pipe(ends), 0);
    hry_uring_cancel(ring); /* nothing there */
    for (uint64_t i = 0; i < 3; i++) assert_true(hry_uring_read(ring, ends[0], 0, &got[i], 1, i));
    assert_int_equal(hry_uring_wait(ring, 0, done, 4, &count, &error), HURRAY_OK);
    hry_uring_cancel(ring);
    while (seen < 3) {
        assert_int_equal(hry_uring_wait(ring, 5000, done, 4, &count, &error), HURRAY_OK);
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++) assert_int_equal(done[i].result, -ECANCELED);
        seen += count;
    }
    assert_int_equal(hry_uring_in_flight(ring), 0);
    hry_uring_destroy(&ring);
    fail_alloc_assert_empty(&alloc);
    close(ends[0]), close(ends[1]);
}

static void a_failing_allocation_makes_no_ring(void **state) {
    (void)state;
    NEEDS_URING();
    FailAlloc alloc;
    HurrayError error;
    HryUring *ring = NULL;
    fail_alloc_init(&alloc);
    fail_alloc_arm(&alloc, 1, 0);
    assert_int_equal(hry_uring_new(4, &alloc.allocator, &ring, &error), HURRAY_ERR_NO_MEMORY);
    assert_null(ring);
    fail_alloc_assert_empty(&alloc);
    ring = make(0, &alloc);
    assert_int_equal(hry_uring_depth(ring), 1);
    hry_uring_destroy(&ring);
    fail_alloc_assert_empty(&alloc);
}

typedef struct Refusal {
    int answer;
    char reason[200], message[576];
    int filtered, usable, system_error;
    HurrayStatus status;
} Refusal;

/* A filter holds for the thread that sets it: io_uring_setup answers `answer` there. */
static void *refuse(void *ctx) {
    Refusal *refusal = ctx;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)refusal->answer & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    refusal->filtered = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    if (!refusal->filtered) return NULL;
    HurrayError error;
    HryUring *ring = NULL;
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    refusal->usable = hry_uring_usable(refusal->reason, sizeof refusal->reason);
    refusal->status = hry_uring_new(4, &alloc.allocator, &ring, &error);
    if (ring || alloc.live) abort();
    refusal->system_error = error.system_error;
    snprintf(refusal->message, sizeof refusal->message, "%s", error.message);
    return NULL;
}

static void a_refusal_has_a_reason(void **state) {
    (void)state;
    NEEDS_URING();
    static const struct {
        int answer;
        const char *word;
    } cases[] = {{EPERM, "seccomp"}, {EACCES, "seccomp"},    {ENOSYS, "no io_uring"},
                 {ENOMEM, "ulimit"}, {EMFILE, "descriptor"}, {EIO, "Input/output"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Refusal refusal = {.answer = cases[i].answer};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, refuse, &refusal), 0);
        pthread_join(thread, NULL);
        if (!refusal.filtered) {
            print_message("skipped: no seccomp filter can be set here\n");
            skip();
        }
        assert_false(refusal.usable);
        assert_non_null(strstr(refusal.reason, cases[i].word));
        assert_int_equal(refusal.status, HURRAY_ERR_UNSUPPORTED);
        assert_string_equal(refusal.message, refusal.reason);
        assert_int_equal(refusal.system_error, cases[i].answer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_reads_in_flight_bring_what_pread_brings),
        cmocka_unit_test(a_vector_of_pieces_is_filled_in_order),
        cmocka_unit_test(ends_and_failures_come_as_results),
        cmocka_unit_test(depth_bounds_what_is_in_flight_and_a_wait_ends_in_time),
        cmocka_unit_test(a_cancelled_read_still_completes),
        cmocka_unit_test(a_failing_allocation_makes_no_ring),
        cmocka_unit_test(a_refusal_has_a_reason),
    };
    return cmocka_run_group_tests_name("cpu/uring", tests, make_file, remove_file);
}
