#include "cpu/transport_create.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fail_alloc.h"

static char folder[] = "/tmp/hurray-create-XXXXXX";
static char path[64];

static int make_folder(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s/out", mkdtemp(folder));
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

static int entries(const char *where) {
    DIR *dir = opendir(where);
    int n = 0;
    while (readdir(dir)) n++;
    closedir(dir);
    return n - 2;
}

static int link_error, link_calls;
static int no_link(int from, const char *old, int to, const char *name, int flags) {
    (void)from, (void)old, (void)to, (void)name, (void)flags;
    link_calls++;
    errno = link_error;
    return -1;
}

static HurrayTransport create_with(const char *where, const HryFileCalls *calls) {
    HurrayTransport t;
    HurrayError error;
    assert_int_equal(hry_transport_create(where, calls, NULL, &t, &error), HURRAY_OK);
    assert_null(t.read);
    assert_null(t.read_at);
    return t;
}

/* named: a temporary with a name, as where the system links no other. */
static HurrayTransport create(const char *where, bool named) {
    static const HryFileCalls no_links = {NULL, NULL, write, fsync, NULL, no_link};
    link_error = EPERM;
    return create_with(where, named ? &no_links : &hry_file_calls);
}

static void put(const HurrayTransport *t, const char *text) {
    size_t n = 0;
    assert_int_equal(t->write(t->ctx, (const uint8_t *)text, strlen(text), &n), HURRAY_OK);
    assert_int_equal(n, strlen(text));
}

static void assert_content(const char *where, const char *text) {
    char got[100] = "";
    FILE *file = fopen(where, "rb");
    assert_non_null(file);
    size_t n = fread(got, 1, sizeof got - 1, file);
    got[n] = 0;
    fclose(file);
    assert_string_equal(got, text);
}

static void finish_puts_the_new_file_in_the_old_ones_place(void **state) {
    (void)state;
    for (int named = 0; named < 2; named++) {
        struct stat st;
        mode_t before = umask(027);
        HurrayTransport t = create(path, named);
        put(&t, "first");
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(t.finish(t.ctx), HURRAY_OK);
        assert_content(path, "first");
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0640);
        umask(before);
        size_t n;
        assert_int_equal(t.write(t.ctx, (const uint8_t *)"x", 1, &n), HURRAY_ERR_WRONG_STATE);
        assert_int_equal(t.finish(t.ctx), HURRAY_OK); /* again: nothing left to do */
        hurray_transport_release(&t);
        t = create(path, named);
        put(&t, "second");
        assert_content(path, "first");
        assert_int_equal(t.finish(t.ctx), HURRAY_OK);
        assert_content(path, "second");
        hurray_transport_release(&t);
        assert_int_equal(entries(folder), 1);
        unlink(path);
    }
}

static void release_without_finish_leaves_the_old_file_and_nothing_else(void **state) {
    (void)state;
    for (int named = 0; named < 2; named++) {
        HurrayTransport t = create(path, named);
        put(&t, "old");
        t.finish(t.ctx);
        hurray_transport_release(&t);
        t = create(path, named);
        put(&t, "new");
        hurray_transport_release(&t);
        assert_content(path, "old");
        assert_int_equal(entries(folder), 1);
        unlink(path);
        t = create(path, named);
        hurray_transport_release(&t);
        assert_int_equal(entries(folder), 0);
    }
}

static void a_system_that_does_not_link_is_found_out_before_anything_is_written(void **state) {
    (void)state;
    static const HryFileCalls calls = {NULL, NULL, write, fsync, NULL, no_link};
    static const int errors[] = {EPERM, ENOENT, EXDEV, ENOSYS};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        link_error = errors[i];
        link_calls = 0;
        HurrayTransport t = create_with(path, &calls);
        int asked = link_calls;
        put(&t, "text");
        assert_int_equal(t.finish(t.ctx), HURRAY_OK);
        hurray_transport_release(&t);
        assert_int_equal(link_calls, asked); /* never again */
        assert_content(path, "text");
        assert_int_equal(entries(folder), 1);
        unlink(path);
    }
}

static void links_are_followed_and_stay(void **state) {
    (void)state;
    char link[80], chain[80], elsewhere[80];
    struct stat st;
    snprintf(elsewhere, sizeof elsewhere, "%s/sub", folder);
    mkdir(elsewhere, 0700);
    snprintf(elsewhere, sizeof elsewhere, "%s/sub/real", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    snprintf(chain, sizeof chain, "%s/sub/chain", folder);
    assert_int_equal(symlink("sub/chain", link), 0);
    assert_int_equal(symlink("real", chain), 0); /* nothing there yet */
    for (int i = 0; i < 2; i++) {
        HurrayTransport t = create(link, i);
        put(&t, i ? "again" : "once");
        assert_int_equal(t.finish(t.ctx), HURRAY_OK);
        hurray_transport_release(&t);
        assert_content(elsewhere, i ? "again" : "once");
        assert_int_equal(lstat(link, &st), 0);
        assert_true(S_ISLNK(st.st_mode));
    }
    unlink(elsewhere);
    unlink(chain);
    assert_int_equal(symlink("../link", chain), 0); /* a loop */
    HurrayTransport t;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_transport_create(link, NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, ELOOP);
    unlink(chain);
    unlink(link);
    snprintf(elsewhere, sizeof elsewhere, "%s/sub", folder);
    rmdir(elsewhere);
}

static void a_name_without_a_folder_is_in_the_current_one(void **state) {
    (void)state;
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    HurrayTransport t = create("out", false);
    put(&t, "here");
    assert_int_equal(chdir("/"), 0); /* the folder is the one of then */
    assert_int_equal(t.finish(t.ctx), HURRAY_OK);
    hurray_transport_release(&t);
    assert_int_equal(chdir(before), 0);
    assert_content(path, "here");
    unlink(path);
}

static void a_device_or_pipe_is_written_as_it_is(void **state) {
    (void)state;
    HurrayTransport t = create("/dev/null", false);
    put(&t, "gone");
    assert_int_equal(t.finish(t.ctx), HURRAY_OK);
    hurray_transport_release(&t);
    struct stat st;
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    t = create("/dev/full", false);
    size_t n = 0;
    errno = 0;
    assert_int_equal(t.write(t.ctx, (const uint8_t *)"x", 1, &n), HURRAY_ERR_TRANSPORT);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(n, 0);
    hurray_transport_release(&t);
}

static int sync_calls, sync_fails_at;
static int odd_sync(int fd) {
    (void)fd;
    if (++sync_calls != sync_fails_at) return 0;
    errno = EIO;
    return -1;
}

static void a_failed_sync_stays_failed_and_a_failed_folder_sync_is_repeated(void **state) {
    (void)state;
    static const HryFileCalls calls = {NULL, NULL, write, odd_sync, NULL, linkat};
    HurrayTransport t = create_with(path, &calls);
    put(&t, "lost");
    sync_calls = 0, sync_fails_at = 1;
    for (int i = 0; i < 2; i++) {
        errno = 0;
        assert_int_equal(t.finish(t.ctx), HURRAY_ERR_TRANSPORT);
        assert_int_equal(errno, EIO);
    }
    assert_int_equal(entries(folder), 0);
    hurray_transport_release(&t);
    t = create_with(path, &calls);
    put(&t, "kept");
    sync_calls = 0, sync_fails_at = 2;
    assert_int_equal(t.finish(t.ctx), HURRAY_ERR_TRANSPORT);
    assert_int_equal(t.finish(t.ctx), HURRAY_OK);
    hurray_transport_release(&t);
    assert_content(path, "kept");
    unlink(path);
}

static off_t asked_to, asked_len;
static int odd_write_out(int fd, off_t offset, off_t len, unsigned flags) {
    assert_true(fd >= 0);
    assert_int_equal(flags, SYNC_FILE_RANGE_WRITE); /* begins, does not wait */
    assert_int_equal(offset, asked_to);
    asked_to += len;
    asked_len = len;
    errno = EIO;
    return -1;
}

static void the_disk_gets_the_bytes_while_more_are_written(void **state) {
    (void)state;
    static const HryFileCalls calls = {NULL, NULL, write, odd_sync, odd_write_out, linkat};
    enum { PIECE = 1 << 20, PIECES = 40 };
    uint8_t *piece = calloc(1, PIECE);
    HurrayTransport t = create_with(path, &calls);
    asked_to = 0;
    sync_calls = 0, sync_fails_at = -1;
    for (int i = 0; i < PIECES; i++) {
        size_t n = 0;
        assert_int_equal(t.write(t.ctx, piece, PIECE, &n), HURRAY_OK); /* asking failed: that is finish's to say */
        assert_int_equal(n, PIECE);
        assert_true(asked_to <= (off_t)(i + 1) * PIECE);
    }
    assert_true(asked_to >= PIECES / 2 * PIECE);
    assert_int_equal(asked_to % asked_len, 0);
    assert_int_equal(t.finish(t.ctx), HURRAY_OK);
    hurray_transport_release(&t);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, PIECES * PIECE);
    unlink(path);
    free(piece);
}

static void a_rename_that_fails_can_be_repeated(void **state) {
    (void)state;
    for (int named = 0; named < 2; named++) {
        HurrayTransport t = create(path, named);
        put(&t, "text");
        assert_int_equal(mkdir(path, 0700), 0); /* in the way */
        errno = 0;
        assert_int_equal(t.finish(t.ctx), HURRAY_ERR_TRANSPORT);
        assert_int_equal(errno, EISDIR);
        rmdir(path);
        if (named) assert_int_equal(t.finish(t.ctx), HURRAY_OK);
        hurray_transport_release(&t);
        assert_int_equal(entries(folder), named);
        unlink(path);
    }
}

static void a_full_disk_is_reported_and_leaves_nothing(void **state) {
    (void)state;
    char small[80], out[96];
    snprintf(small, sizeof small, "%s/small", folder);
    mkdir(small, 0700);
    if (mount("tmpfs", small, "tmpfs", 0, "size=64k") != 0) {
        print_message("skipped: cannot mount a small tmpfs (%s)\n", strerror(errno));
        rmdir(small);
        skip();
    }
    snprintf(out, sizeof out, "%s/out", small);
    for (int named = 0; named < 2; named++) {
        HurrayTransport t = create(out, named);
        static const uint8_t block[16384];
        HurrayStatus status = HURRAY_OK;
        size_t total = 0;
        for (int i = 0; i < 16 && status == HURRAY_OK; i++) {
            size_t n = 0;
            errno = 0;
            status = t.write(t.ctx, block, sizeof block, &n);
            total += n;
        }
        assert_int_equal(status, HURRAY_ERR_TRANSPORT);
        assert_int_equal(errno, ENOSPC);
        assert_true(total > 0 && total <= 65536);
        hurray_transport_release(&t);
        assert_int_equal(entries(small), 0);
    }
    assert_int_equal(umount(small), 0);
    rmdir(small);
}

static void what_cannot_be_created_says_why(void **state) {
    (void)state;
    HurrayTransport t;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    char name[600];
    assert_int_equal(hurray_transport_create("/nowhere/at/all", NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, ENOENT);
    assert_non_null(strstr(error.message, "/nowhere/at/all"));
    assert_int_equal(hurray_transport_create(folder, NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, EISDIR);
    assert_int_equal(hurray_transport_create("", NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, ENOENT);
    snprintf(name, sizeof name, "%s/", path);
    assert_int_equal(hurray_transport_create(name, NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_int_equal(hurray_transport_create(name, NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, ENAMETOOLONG);
    assert_int_equal(hurray_transport_create(NULL, NULL, &t, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_transport_create(path, NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    options.flags = 1;
    assert_int_equal(hurray_transport_create(path, &options, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    fail_alloc_arm(&alloc, 1, 1);
    options.flags = 0;
    options.allocator = &alloc.allocator;
    assert_int_equal(hurray_transport_create(path, &options, &t, &error), HURRAY_ERR_NO_MEMORY);
    fail_alloc_arm(&alloc, 0, 0);
    assert_int_equal(hurray_transport_create(path, &options, &t, &error), HURRAY_OK);
    hurray_transport_release(&t);
    fail_alloc_assert_empty(&alloc);
    assert_int_equal(entries(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finish_puts_the_new_file_in_the_old_ones_place),
        cmocka_unit_test(release_without_finish_leaves_the_old_file_and_nothing_else),
        cmocka_unit_test(a_system_that_does_not_link_is_found_out_before_anything_is_written),
        cmocka_unit_test(links_are_followed_and_stay),
        cmocka_unit_test(a_name_without_a_folder_is_in_the_current_one),
        cmocka_unit_test(a_device_or_pipe_is_written_as_it_is),
        cmocka_unit_test(a_failed_sync_stays_failed_and_a_failed_folder_sync_is_repeated),
        cmocka_unit_test(the_disk_gets_the_bytes_while_more_are_written),
        cmocka_unit_test(a_rename_that_fails_can_be_repeated),
        cmocka_unit_test(a_full_disk_is_reported_and_leaves_nothing),
        cmocka_unit_test(what_cannot_be_created_says_why),
    };
    return cmocka_run_group_tests_name("cpu/transport_create", tests, make_folder, remove_folder);
}
