#include "cpu/transport_create.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cpu/system.h"
#include "cpu/transport.h"

#define TRIES 64 /* names for a temporary, before giving up */
#define WRITE_OUT ((uint64_t)16 << 20)

/* fd is written; finish makes it durable and gives it its name, which is when the old file goes. */
typedef struct Create {
    HurrayAllocator allocator;
    const HryFileCalls *calls;
    int fd, folder;     /* folder -1: no regular file, written as it is */
    uint64_t written;   /* bytes */
    uint64_t on_way;    /* of these the disk has been asked to take so many */
    char temporary[32]; /* its name in the folder; "" while it has none */
    char name[NAME_MAX + 1];
    int sync_error; /* of the first sync that failed: later ones would not know */
    bool synced, renamed, finished;
} Create;

static void new_temporary_name(char name[32]) {
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        number = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)getpid() << 44;
    }
    snprintf(name, 32, ".hurray-%08x%08x", (unsigned)(number >> 32), (unsigned)number);
}

/* linkat wants a path to the nameless file. */
static int link_nameless(const Create *create, int fd, const char *name) {
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return create->calls->link(AT_FDCWD, self, create->folder, name, AT_SYMLINK_FOLLOW);
}

/* The disk works while more is written, so that finish waits for the rest only. What fails here, the sync in finish meets again. */
static void start_write_out(Create *create, size_t written) {
    create->written += written;
    if (create->folder < 0 || create->written - create->on_way < WRITE_OUT) return;
    uint64_t len = (create->written - create->on_way) / WRITE_OUT * WRITE_OUT;
    (void)create->calls->write_out(create->fd, (off_t)create->on_way, (off_t)len, SYNC_FILE_RANGE_WRITE);
    create->on_way += len;
}

static HurrayStatus create_write(void *ctx, const uint8_t *src, size_t len, size_t *out_written) {
    Create *create = ctx;
    if (create->finished) {
        errno = 0;
        return HURRAY_ERR_WRONG_STATE;
    }
    HurrayStatus status = hry_file_write(create->calls, create->fd, src, len, out_written);
    if (status == HURRAY_OK) start_write_out(create, *out_written);
    return status;
}

/* A nameless file that replaces another needs a name of its own for a moment: only a rename replaces. */
static HurrayStatus give_name(Create *create) {
    if (!create->temporary[0]) {
        if (link_nameless(create, create->fd, create->name) == 0) return HURRAY_OK;
        for (int i = 0; errno == EEXIST && i < TRIES; i++) {
            char name[32];
            new_temporary_name(name);
            if (link_nameless(create, create->fd, name) == 0) {
                memcpy(create->temporary, name, sizeof name);
                break;
            }
        }
        if (!create->temporary[0]) return HURRAY_ERR_TRANSPORT;
    }
    if (renameat(create->folder, create->temporary, create->folder, create->name) != 0) return HURRAY_ERR_TRANSPORT;
    create->temporary[0] = 0;
    return HURRAY_OK;
}

/* Repeated after a failure it goes on where it failed, but a failed sync stays failed: the system reports lost
 * bytes only once. */
static HurrayStatus create_finish(void *ctx) {
    Create *create = ctx;
    if (create->sync_error) {
        errno = create->sync_error;
        return HURRAY_ERR_TRANSPORT;
    }
    if (!create->synced) {
        if (hry_file_sync(create->calls, create->fd) != HURRAY_OK) {
            create->sync_error = errno;
            return HURRAY_ERR_TRANSPORT;
        }
        create->synced = true;
    }
    if (create->folder >= 0) {
        if (!create->renamed) {
            HurrayStatus status = give_name(create);
            if (status != HURRAY_OK) return status;
            create->renamed = true;
        }
        if (hry_file_sync(create->calls, create->folder) != HURRAY_OK) return HURRAY_ERR_TRANSPORT;
    }
    create->finished = true;
    return HURRAY_OK;
}

static void create_release(void *ctx) {
    Create *create = ctx;
    HurrayAllocator allocator = create->allocator;
    if (create->temporary[0]) (void)unlinkat(create->folder, create->temporary, 0);
    if (create->fd >= 0) close(create->fd);
    if (create->folder >= 0) close(create->folder);
    hry_free(&allocator, create, sizeof *create);
}

/* Where the chain of links beginning at path ends, also when nothing is there yet. False: errno. */
static bool follow_links(const char *path, char out[PATH_MAX]) {
    char link[PATH_MAX];
    if (snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (int i = 0; i < 40; i++) {
        ssize_t n = readlink(out, link, sizeof link - 1);
        if (n < 0) return errno == EINVAL || errno == ENOENT;
        link[n] = 0;
        char *slash = link[0] == '/' ? NULL : strrchr(out, '/');
        size_t keep = slash ? (size_t)(slash - out) + 1 : 0;
        if (keep + (size_t)n >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(out + keep, link, (size_t)n + 1);
    }
    errno = ELOOP;
    return false;
}

/* Opens the folder and keeps the name. */
static bool open_folder(Create *create, char *target) {
    char *slash = strrchr(target, '/');
    const char *name = slash ? slash + 1 : target, *folder = slash == target ? "/" : slash ? target : ".";
    size_t len = strlen(name);
    if (len == 0 || len > NAME_MAX) {
        errno = len ? ENAMETOOLONG : slash ? EISDIR : ENOENT;
        return false;
    }
    memcpy(create->name, name, len + 1);
    if (slash && slash != target) *slash = 0;
    create->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return create->folder >= 0;
}

static int open_nameless(const Create *create) { return openat(create->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666); }

/* Whether a nameless file can get a name here: without /proc, in a sandbox, on some file systems only finish would find out, with all
 * the bytes written. Another, empty one is linked, for a file that was linked and unlinked is linked no more. */
static bool can_link(const Create *create) {
    char name[32];
    int fd = open_nameless(create);
    if (fd < 0) return false;
    new_temporary_name(name);
    bool linked = link_nameless(create, fd, name) == 0;
    if (linked) (void)unlinkat(create->folder, name, 0);
    close(fd);
    return linked;
}

static bool open_temporary(Create *create) {
    if (can_link(create)) create->fd = open_nameless(create);
    if (create->fd >= 0) return true;
    for (int i = 0; i < TRIES; i++) {
        char name[32];
        new_temporary_name(name);
        create->fd = openat(create->folder, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (create->fd >= 0) memcpy(create->temporary, name, sizeof name);
        if (create->fd >= 0 || errno != EEXIST) break;
    }
    return create->fd >= 0;
}

/* A regular file is replaced as a whole, through links; a device, pipe or socket is written as it is. */
static bool open_target(Create *create, const char *path) {
    char target[PATH_MAX];
    struct stat st;
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode)) {
            errno = EISDIR;
            return false;
        }
        if (!S_ISREG(st.st_mode)) {
            create->fd = open(path, O_WRONLY | O_CLOEXEC);
            return create->fd >= 0;
        }
        if (!realpath(path, target)) return false;
    } else if (errno != ENOENT || !follow_links(path, target)) {
        return false;
    }
    return open_folder(create, target) && open_temporary(create);
}

HurrayStatus hry_transport_create(const char *path, const HryFileCalls *calls, const HurrayTransportOptions *user, HurrayTransport *out,
                                  HurrayError *error) {
    HurrayTransportOptions options;
    HurrayAllocator allocator;
    HurrayStatus status = hry_transport_options(user, 0, &options, &allocator, error);
    if (status != HURRAY_OK) return status;
    Create *create = hry_alloc(&allocator, sizeof *create);
    if (!create) return hry_fail_memory(error, "a transport", sizeof *create);
    create->allocator = allocator;
    create->calls = calls;
    create->fd = create->folder = -1;
    if (!open_target(create, path)) {
        hry_fail_system(error, HURRAY_ERR_TRANSPORT, errno, "create", path);
        create_release(create);
        return error->code;
    }
    *out = (HurrayTransport){
        .ctx = create, .write = create_write, .release = create_release, .finish = create_finish, .struct_size = sizeof *out};
    return HURRAY_OK;
}

HurrayStatus hurray_transport_create(const char *path, const HurrayTransportOptions *user, HurrayTransport *out, HurrayError *error) {
    HurrayError local;
    if (!path || !out) return hry_fail_null(error, "path or out");
    HurrayStatus status = hry_transport_create(path, &hry_file_calls, user, out, &local);
    return status == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &local);
}
