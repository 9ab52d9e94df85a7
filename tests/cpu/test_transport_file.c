#include "cpu/transport_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu/page_cache.h"
#include "cpu/transport.h"
#include "support/fail_alloc.h"

#define SIZE 300000u

static char folder[] = "/tmp/hurray-file-XXXXXX";
static char path[64];
static uint8_t content[SIZE];

static int make_file(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/data", folder);
    for (size_t i = 0; i < SIZE; i++) content[i] = (uint8_t)(i * 31 + i / 256);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(content, 1, SIZE, file) != SIZE) return -1;
    return fclose(file);
}

static int remove_file(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void read_all_at(const HurrayTransport *t, uint64_t offset, uint8_t *dst, size_t len) {
    while (len) {
        size_t n = 0;
        assert_int_equal(t->read_at(t->ctx, offset, dst, len, &n), HURRAY_OK);
        assert_true(n > 0 && n <= len);
        offset += n, dst += n, len -= n;
    }
}

static void check_reading(const HurrayTransport *t) {
    uint64_t size = 0;
    size_t n = 9;
    uint8_t *copy = malloc(SIZE);
    assert_int_equal(t->size(t->ctx, &size), HURRAY_OK);
    assert_int_equal(size, SIZE);
    read_all_at(t, 0, copy, SIZE);
    assert_memory_equal(copy, content, SIZE);
    read_all_at(t, 12345, copy, 777);
    assert_memory_equal(copy, content + 12345, 777);
    assert_int_equal(t->read_at(t->ctx, SIZE - 3, copy, 100, &n), HURRAY_OK);
    assert_int_equal(n, 3);
    assert_int_equal(t->read_at(t->ctx, SIZE, copy, 100, &n), HURRAY_OK);
    assert_int_equal(n, 0);
    assert_int_equal(t->read_at(t->ctx, UINT64_MAX, copy, 100, &n), HURRAY_OK);
    assert_int_equal(n, 0);
    size_t total = 0;
    do {
        assert_int_equal(t->read(t->ctx, copy + total, SIZE - total < 1000 ? SIZE - total + (SIZE == total) : 1000, &n), HURRAY_OK);
        total += n;
    } while (n);
    assert_int_equal(total, SIZE);
    assert_memory_equal(copy, content, SIZE);
    free(copy);
}

static void a_path_is_read_at_and_in_order(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayTransport t;
    HryTransportAccess access;
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    assert_int_equal(hurray_transport_file(path, &options, &t, NULL), HURRAY_OK);
    assert_true(t.flags & HURRAY_TRANSPORT_CONCURRENT);
    assert_null(t.write);
    assert_int_equal(t.io_alignment, 0);
    check_reading(&t);
    hry_transport_access(&t, &access);
    assert_int_equal(access.kind, HRY_TRANSPORT_FILE);
    assert_string_equal(access.path, path);
    assert_true(access.fd >= 0);
    int fd = access.fd;
    assert_int_equal(hurray_transport_release(&t), HURRAY_OK);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(hurray_transport_release(&t), HURRAY_OK);
    assert_int_equal(hurray_transport_release(NULL), HURRAY_ERR_NULL_POINTER);
    fail_alloc_assert_empty(&alloc);
}

static void a_descriptor_stays_the_callers_unless_given_away(void **state) {
    (void)state;
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    for (uint32_t own = 0; own < 2; own++) {
        HurrayTransport t;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        options.flags = own ? HURRAY_TRANSPORT_OWN_FD : 0;
        assert_int_equal(hurray_transport_fd(fd, &options, &t, NULL), HURRAY_OK);
        check_reading(&t);
        hurray_transport_release(&t);
        assert_int_equal(fcntl(fd, F_GETFD) >= 0, !own);
        if (!own) close(fd);
    }
}

static void direct_reads_give_the_same_bytes_aligned_or_not(void **state) {
    (void)state;
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    static const char *const folders[] = {"/tmp", "/dev/shm", "/var/tmp"};
    options.direct = HURRAY_ON;
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        HurrayTransport t;
        HryTransportAccess access;
        snprintf(name, sizeof name, "%s/hurray-direct-%d", folders[i], (int)getpid());
        FILE *file = fopen(name, "wb");
        if (!file) continue;
        fwrite(content, 1, SIZE, file);
        fclose(file);
        assert_int_equal(hurray_transport_file(name, &options, &t, NULL), HURRAY_OK);
        hry_transport_access(&t, &access);
        print_message("%s: direct reads %s, alignment %u\n", folders[i], access.direct_fd >= 0 ? "used" : "not there", t.io_alignment);
        assert_int_equal(access.direct_alignment, t.io_alignment);
        check_reading(&t);
        uint8_t *aligned = NULL;
        assert_int_equal(posix_memalign((void **)&aligned, 65536, 327680), 0);
        size_t n = 0;
        assert_int_equal(t.read_at(t.ctx, 0, aligned, 327680, &n), HURRAY_OK);
        assert_int_equal(n, SIZE); /* the last block reaches past the end */
        assert_memory_equal(aligned, content, SIZE);
        free(aligned);
        hurray_transport_release(&t);
        unlink(name);
    }
}

static void what_the_page_cache_holds_is_told(void **state) {
    (void)state;
    char name[64];
    uint8_t *got = malloc(1 << 20);
    snprintf(name, sizeof name, "/var/tmp/hurray-cached-%d", (int)getpid());
    int fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    for (int i = 0; i < 16; i++) assert_int_equal(pwrite(fd, content, 262144, i * 262144), 262144);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(hry_page_cache_percent(fd, 0, 4 << 20), 100);
    assert_int_equal(hry_page_cache_probe(fd, 0, 4 << 20), 100);
    assert_int_equal(hry_page_cache_percent(fd, 100, UINT64_MAX), 100);
    assert_int_equal(hry_page_cache_percent(fd, 4 << 20, 100), 0);
    assert_int_equal(hry_page_cache_probe(fd, UINT64_MAX, 100), 0);
    assert_int_equal(hry_page_cache_percent(-1, 0, 100), -1);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    int cold = hry_page_cache_percent(fd, 0, 4 << 20);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    assert_int_equal(pread(fd, got, 1 << 20, 0), 1 << 20);
    int quarter = hry_page_cache_percent(fd, 0, 4 << 20), probed = hry_page_cache_probe(fd, 1 << 20, 1 << 20);
    print_message("cached of a cold file: %d %%, with a quarter read: %d %%, probed in the rest: %d %%\n", cold, quarter, probed);
    if (cold == 0) assert_int_equal(quarter, 25); /* some file systems never forget */
    close(fd);
    unlink(name);
    free(got);
}

/* Larger than half the memory, but with holes only: no room is needed. */
static void a_cold_piece_of_a_file_too_large_for_the_cache_is_read_directly(void **state) {
    (void)state;
    char name[64];
    snprintf(name, sizeof name, "/var/tmp/hurray-large-%d", (int)getpid());
    int fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    off_t size = (off_t)(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    if (fd < 0 || ftruncate(fd, size) != 0 || pwrite(fd, content, 4096, 1 << 20) != 4096) {
        print_message("skipped: no file of %lld bytes can be made (%s)\n", (long long)size, strerror(errno));
        close(fd);
        unlink(name);
        skip();
    }
    close(fd);
    HurrayTransport t;
    HryTransportAccess access;
    uint8_t *got = NULL;
    assert_int_equal(posix_memalign((void **)&got, 65536, 2 << 20), 0);
    assert_int_equal(hurray_transport_file(name, NULL, &t, NULL), HURRAY_OK);
    hry_transport_access(&t, &access);
    print_message("direct reads %s\n", access.direct_fd >= 0 ? "at hand" : "not there");
    assert_int_equal(t.io_alignment, 0); /* nobody need align anything */
    for (int i = 0; i < 2; i++) {        /* in the cache or not, large or small */
        memset(got, 9, 2 << 20);
        read_all_at(&t, 0, got, 2 << 20);
        assert_int_equal(got[0], 0);
        assert_memory_equal(got + (1 << 20), content, 4096);
        read_all_at(&t, 1 << 20, got, 4096);
        assert_memory_equal(got, content, 4096);
        read_all_at(&t, (1 << 20) + 1, got, 100);
        assert_memory_equal(got, content + 1, 100);
        fd = open(name, O_RDONLY);
        assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        close(fd);
    }
    free(got);
    hurray_transport_release(&t);
    unlink(name);
}

static int interrupts, most;
static ssize_t odd_pread(int fd, void *dst, size_t len, off_t offset) {
    if (interrupts-- > 0) {
        errno = EINTR;
        return -1;
    }
    return pread(fd, dst, (int)len > most ? (size_t)most : len, offset);
}
static ssize_t odd_read(int fd, void *dst, size_t len) {
    if (interrupts-- > 0) {
        errno = EINTR;
        return -1;
    }
    return read(fd, dst, (int)len > most ? (size_t)most : len);
}
static ssize_t failing_write(int fd, const void *src, size_t len) {
    (void)fd, (void)src, (void)len;
    errno = interrupts-- > 0 ? EINTR : ENOSPC;
    return -1;
}
static int failing_sync(int fd) {
    (void)fd;
    errno = interrupts-- > 0 ? EINTR : EIO;
    return -1;
}
static ssize_t failing_pread(int fd, void *dst, size_t len, off_t offset) {
    (void)fd, (void)dst, (void)len, (void)offset;
    errno = EIO;
    return -1;
}

static void interrupted_calls_are_repeated_and_short_ones_passed_on(void **state) {
    (void)state;
    static const HryFileCalls calls = {odd_pread, odd_read, failing_write, failing_sync, NULL, NULL};
    HurrayTransport t;
    size_t n = 0;
    uint8_t *copy = malloc(SIZE);
    assert_int_equal(hurray_transport_file(path, NULL, &t, NULL), HURRAY_OK);
    hry_transport_file_use(&t, &calls);
    interrupts = 3;
    most = 1000;
    assert_int_equal(t.read_at(t.ctx, 5, copy, SIZE - 5, &n), HURRAY_OK);
    assert_int_equal(n, 1000);
    read_all_at(&t, 5, copy, SIZE - 5);
    assert_memory_equal(copy, content + 5, SIZE - 5);
    interrupts = 2;
    assert_int_equal(t.read(t.ctx, copy, SIZE, &n), HURRAY_OK);
    assert_int_equal(n, 1000);
    hurray_transport_release(&t);
    free(copy);
}

static void a_failing_call_leaves_errno(void **state) {
    (void)state;
    static const HryFileCalls calls = {failing_pread, odd_read, failing_write, failing_sync, NULL, NULL};
    HurrayTransport t;
    size_t n = 0;
    uint8_t byte = 0;
    int fd = open(path, O_RDWR);
    assert_int_equal(hurray_transport_fd(fd, NULL, &t, NULL), HURRAY_OK);
    hry_transport_file_use(&t, &calls);
    errno = 0;
    assert_int_equal(t.read_at(t.ctx, 0, &byte, 1, &n), HURRAY_ERR_TRANSPORT);
    assert_int_equal(errno, EIO);
    interrupts = 2;
    assert_int_equal(t.write(t.ctx, &byte, 1, &n), HURRAY_ERR_TRANSPORT);
    assert_int_equal(errno, ENOSPC);
    interrupts = 2;
    assert_int_equal(t.finish(t.ctx), HURRAY_ERR_TRANSPORT);
    assert_int_equal(errno, EIO);
    hurray_transport_release(&t);
    close(fd);
}

static void *slow_writer(void *arg) {
    int fd = *(int *)arg;
    for (int i = 0; i < 5; i++) {
        usleep(3000);
        if (write(fd, content + i * 100, 100) != 100) abort();
    }
    close(fd);
    return NULL;
}

static void a_pipe_blocks_even_when_its_descriptor_does_not(void **state) {
    (void)state;
    int ends[2];
    pthread_t thread;
    HurrayTransport t;
    uint8_t got[600];
    size_t total = 0, n;
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    assert_int_equal(hurray_transport_fd(ends[0], NULL, &t, NULL), HURRAY_OK);
    assert_null(t.read_at);
    assert_null(t.size);
    assert_null(t.write);
    pthread_create(&thread, NULL, slow_writer, &ends[1]);
    do {
        assert_int_equal(t.read(t.ctx, got + total, sizeof got - total, &n), HURRAY_OK);
        total += n;
    } while (n);
    pthread_join(thread, NULL);
    assert_int_equal(total, 500);
    assert_memory_equal(got, content, 500);
    hurray_transport_release(&t);
    close(ends[0]);
}

static void *slow_reader(void *arg) {
    int fd = *(int *)arg;
    uint8_t got[4096];
    size_t total = 0;
    for (ssize_t n; (n = read(fd, got, sizeof got)) > 0; total += (size_t)n) usleep(10);
    return (void *)total;
}

static void a_full_pipe_is_waited_for_and_a_closed_one_is_zero(void **state) {
    (void)state;
    int ends[2];
    pthread_t thread;
    HurrayTransport t;
    size_t total = 0, n;
    void *seen;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    assert_int_equal(hurray_transport_fd(ends[1], NULL, &t, NULL), HURRAY_OK);
    assert_null(t.read);
    pthread_create(&thread, NULL, slow_reader, &ends[0]);
    while (total < SIZE) {
        assert_int_equal(t.write(t.ctx, content + total, SIZE - total, &n), HURRAY_OK);
        total += n;
    }
    assert_int_equal(t.finish(t.ctx), HURRAY_OK);
    close(ends[1]);
    pthread_join(thread, &seen);
    assert_int_equal((size_t)seen, SIZE);
    hurray_transport_release(&t);
    close(ends[0]);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(hurray_transport_fd(ends[1], NULL, &t, NULL), HURRAY_OK);
    close(ends[0]);
    n = 5;
    assert_int_equal(t.write(t.ctx, content, 10, &n), HURRAY_OK);
    assert_int_equal(n, 0);
    hurray_transport_release(&t);
    close(ends[1]);
}

static void what_cannot_be_opened_says_why(void **state) {
    (void)state;
    HurrayTransport t;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    assert_int_equal(hurray_transport_file("/tmp/hurray no such\nfile", NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, ENOENT);
    assert_non_null(strstr(error.message, "no such\\x0afile"));
    assert_int_equal(hurray_transport_file(folder, NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, EISDIR);
    assert_string_equal(error.source, folder);
    assert_int_equal(hurray_transport_fd(-1, NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, EBADF);
    assert_int_equal(hurray_transport_file(NULL, NULL, &t, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_transport_file(path, NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_transport_fd(0, NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    options.flags = HURRAY_TRANSPORT_OWN_FD;
    assert_int_equal(hurray_transport_file(path, &options, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "flags");
    options.flags = 0;
    options.direct = 7;
    assert_int_equal(hurray_transport_file(path, &options, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "direct");
    options.direct = 0;
    options.level = 10;
    assert_int_equal(hurray_transport_fd(0, &options, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "level");
    options.struct_size = 1;
    assert_int_equal(hurray_transport_file(path, &options, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
}

static void every_failing_allocation_leaks_nothing(void **state) {
    (void)state;
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    for (uint64_t k = 1;; k++) {
        HurrayTransport t;
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hurray_transport_file(path, &options, &t, NULL);
        if (status == HURRAY_OK) hurray_transport_release(&t);
        fail_alloc_assert_empty(&alloc);
        if (status == HURRAY_OK) break;
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_read_at_and_in_order),
        cmocka_unit_test(a_descriptor_stays_the_callers_unless_given_away),
        cmocka_unit_test(direct_reads_give_the_same_bytes_aligned_or_not),
        cmocka_unit_test(what_the_page_cache_holds_is_told),
        cmocka_unit_test(a_cold_piece_of_a_file_too_large_for_the_cache_is_read_directly),
        cmocka_unit_test(interrupted_calls_are_repeated_and_short_ones_passed_on),
        cmocka_unit_test(a_failing_call_leaves_errno),
        cmocka_unit_test(a_pipe_blocks_even_when_its_descriptor_does_not),
        cmocka_unit_test(a_full_pipe_is_waited_for_and_a_closed_one_is_zero),
        cmocka_unit_test(what_cannot_be_opened_says_why),
        cmocka_unit_test(every_failing_allocation_leaks_nothing),
    };
    return cmocka_run_group_tests_name("cpu/transport_file", tests, make_file, remove_file);
}
