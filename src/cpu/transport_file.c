#include "cpu/transport_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "cpu/page_cache.h"
#include "cpu/system.h"
#include "cpu/transport.h"

#define ONE_CALL ((size_t)1 << 30)     /* the system moves less than 2 GiB at once */
#define WORTH_DIRECT ((size_t)1 << 20) /* shorter reads gain nothing from going past the page cache */

typedef struct File {
    HurrayAllocator allocator;
    const HryFileCalls *calls;
    int fd, direct_fd;         /* -1: none */
    uint32_t direct_alignment; /* of direct_fd */
    bool own_fd, direct_only_cold, block_device;
    char *path;
    size_t path_size;
} File;

const HryFileCalls hry_file_calls = {pread, read, write, fsync, sync_file_range, linkat};

/* Blocks until a descriptor set to non-blocking is ready: the transport's contract is to block. */
static bool try_again(int fd, short events) {
    if (errno == EINTR) return true;
    if (errno != EAGAIN) return false;
    struct pollfd wait = {.fd = fd, .events = events};
    return poll(&wait, 1, -1) >= 0 || errno == EINTR;
}

HurrayStatus hry_file_read(const HryFileCalls *calls, int fd, uint8_t *dst, size_t len, size_t *moved) {
    for (;;) {
        ssize_t n = calls->read(fd, dst, len < ONE_CALL ? len : ONE_CALL);
        if (n >= 0) {
            *moved = (size_t)n;
            return HURRAY_OK;
        }
        if (!try_again(fd, POLLIN)) return HURRAY_ERR_TRANSPORT;
    }
}

HurrayStatus hry_file_write(const HryFileCalls *calls, int fd, const uint8_t *src, size_t len, size_t *moved) {
    for (;;) {
        ssize_t n = calls->write(fd, src, len < ONE_CALL ? len : ONE_CALL);
        if (n >= 0 || errno == EPIPE) {
            *moved = n >= 0 ? (size_t)n : 0;
            return HURRAY_OK;
        }
        if (!try_again(fd, POLLOUT)) return HURRAY_ERR_TRANSPORT;
    }
}

HurrayStatus hry_file_sync(const HryFileCalls *calls, int fd) {
    while (calls->sync(fd) != 0) {
        if (errno == EINTR) continue;
        return errno == EINVAL || errno == EROFS || errno == ENOTSUP ? HURRAY_OK : HURRAY_ERR_TRANSPORT;
    }
    return HURRAY_OK;
}

/* False: read through the page cache instead. */
static bool read_direct(const File *file, uint64_t offset, uint8_t *dst, size_t len, size_t *moved) {
    uint64_t mask = (uint64_t)file->direct_alignment - 1;
    if (file->direct_fd < 0 || ((offset | (uintptr_t)dst | len) & mask) != 0) return false;
    if (file->direct_only_cold && (len < WORTH_DIRECT || hry_page_cache_percent(file->fd, offset, len) >= 50)) return false;
    ssize_t n = file->calls->pread(file->direct_fd, dst, len, (off_t)offset);
    if (n < 0) return false;
    *moved = (size_t)n;
    return true;
}

static HurrayStatus file_read_at(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *out_filled) {
    const File *file = ctx;
    *out_filled = 0;
    if (offset > INT64_MAX) return HURRAY_OK;
    if (len > ONE_CALL) len = ONE_CALL;
    if (read_direct(file, offset, dst, len, out_filled)) return HURRAY_OK;
    for (;;) {
        ssize_t n = file->calls->pread(file->fd, dst, len, (off_t)offset);
        if (n >= 0) {
            *out_filled = (size_t)n;
            return HURRAY_OK;
        }
        if (!try_again(file->fd, POLLIN)) return HURRAY_ERR_TRANSPORT;
    }
}

static HurrayStatus file_read(void *ctx, uint8_t *dst, size_t len, size_t *out_filled) {
    const File *file = ctx;
    return hry_file_read(file->calls, file->fd, dst, len, out_filled);
}

static HurrayStatus file_write(void *ctx, const uint8_t *src, size_t len, size_t *out_written) {
    const File *file = ctx;
    return hry_file_write(file->calls, file->fd, src, len, out_written);
}

static HurrayStatus file_finish(void *ctx) {
    const File *file = ctx;
    return hry_file_sync(file->calls, file->fd);
}

static HurrayStatus file_size(void *ctx, uint64_t *out_size) {
    const File *file = ctx;
    struct stat st;
    if (file->block_device) return ioctl(file->fd, BLKGETSIZE64, out_size) == 0 ? HURRAY_OK : HURRAY_ERR_TRANSPORT;
    if (fstat(file->fd, &st) != 0) return HURRAY_ERR_TRANSPORT;
    *out_size = (uint64_t)st.st_size;
    return HURRAY_OK;
}

static void file_release(void *ctx) {
    File *file = ctx;
    HurrayAllocator allocator = file->allocator;
    if (file->direct_fd >= 0) close(file->direct_fd);
    if (file->own_fd) close(file->fd);
    hry_free(&allocator, file->path, file->path_size);
    hry_free(&allocator, file, sizeof *file);
}

bool hry_transport_file_access(const HurrayTransport *transport, HryTransportAccess *out) {
    if (transport->release != file_release || !transport->read_at) return false;
    const File *file = transport->ctx;
    out->kind = HRY_TRANSPORT_FILE;
    out->fd = file->fd;
    out->path = file->path;
    out->direct_fd = file->direct_fd;
    out->direct_alignment = file->direct_fd >= 0 ? file->direct_alignment : 0;
    return true;
}

void hry_transport_file_use(HurrayTransport *transport, const HryFileCalls *calls) { ((File *)transport->ctx)->calls = calls; }

int hry_direct_open(int fd, uint32_t *alignment) {
    char self[40];
    uint32_t wanted = 4096;
#ifdef STATX_DIOALIGN
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) == 0 && (st.stx_mask & STATX_DIOALIGN)) {
        wanted = st.stx_dio_mem_align > st.stx_dio_offset_align ? st.stx_dio_mem_align : st.stx_dio_offset_align;
        if (st.stx_dio_offset_align == 0 || !hry_is_pow2(wanted)) {
            errno = EINVAL;
            return -1;
        }
    }
#endif
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    int direct = open(self, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (direct >= 0) *alignment = wanted;
    return direct;
}

/* On the caller's word always; unasked only for a file too large to stay in the page cache anyway. */
static void open_direct(File *file, uint32_t direct, uint64_t size) {
    long pages = sysconf(_SC_PHYS_PAGES);
    bool large = pages > 0 && size / hry_page_size() > (uint64_t)pages / 2;
    if (direct == HURRAY_OFF || (direct == HURRAY_AUTO && !large)) return;
    file->direct_fd = hry_direct_open(file->fd, &file->direct_alignment);
    file->direct_only_cold = direct == HURRAY_AUTO;
}

static bool copy_path(File *file, const char *path) {
    file->path_size = strlen(path) + 1;
    file->path = hry_alloc_raw(&file->allocator, file->path_size);
    if (file->path) memcpy(file->path, path, file->path_size);
    return file->path != NULL;
}

/* Callbacks by what the descriptor can do: no size and no read_at for a pipe, no write for one open to read. */
static HurrayStatus over_fd(int fd, const char *path, bool own_fd, const HurrayTransportOptions *options, const HurrayAllocator *allocator,
                            HurrayTransport *out, HurrayError *error) {
    struct stat st;
    int mode = fcntl(fd, F_GETFL);
    if (mode < 0 || fstat(fd, &st) != 0) return hry_fail_system(error, HURRAY_ERR_TRANSPORT, errno, "use the descriptor of", path);
    if (S_ISDIR(st.st_mode)) return hry_fail_system(error, HURRAY_ERR_TRANSPORT, EISDIR, "read", path);
    File *file = hry_alloc(allocator, sizeof *file);
    if (!file) return hry_fail_memory(error, "a transport", sizeof *file);
    *file = (File){.allocator = *allocator, .calls = &hry_file_calls, .fd = fd, .direct_fd = -1, .own_fd = own_fd};
    if (path && !copy_path(file, path)) {
        hry_free(allocator, file, sizeof *file);
        return hry_fail_memory(error, "a path", strlen(path) + 1);
    }
    file->block_device = S_ISBLK(st.st_mode);
    HurrayTransport transport = {.ctx = file, .release = file_release, .struct_size = sizeof transport};
    if ((mode & O_ACCMODE) != O_WRONLY) {
        transport.read = file_read;
        if (S_ISREG(st.st_mode) || file->block_device) {
            transport.read_at = file_read_at;
            transport.size = file_size;
            transport.flags = HURRAY_TRANSPORT_CONCURRENT;
            open_direct(file, options->direct, (uint64_t)st.st_size);
            if (file->direct_fd >= 0 && !file->direct_only_cold) transport.io_alignment = file->direct_alignment;
        }
    }
    if ((mode & O_ACCMODE) != O_RDONLY) {
        transport.write = file_write;
        transport.finish = file_finish;
    }
    *out = transport;
    return HURRAY_OK;
}

HurrayStatus hurray_transport_file(const char *path, const HurrayTransportOptions *user, HurrayTransport *out, HurrayError *error) {
    HurrayError local;
    HurrayTransportOptions options;
    HurrayAllocator allocator;
    if (!path || !out) return hry_fail_null(error, "path or out");
    HurrayStatus status = hry_transport_options(user, 0, &options, &allocator, &local);
    if (status != HURRAY_OK) return hry_error_export(error, &local);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        hry_fail_system(&local, HURRAY_ERR_TRANSPORT, errno, "open", path);
        return hry_error_export(error, &local);
    }
    status = over_fd(fd, path, true, &options, &allocator, out, &local);
    if (status == HURRAY_OK) return HURRAY_OK;
    close(fd);
    return hry_error_export(error, &local);
}

HurrayStatus hurray_transport_fd(int fd, const HurrayTransportOptions *user, HurrayTransport *out, HurrayError *error) {
    HurrayError local;
    HurrayTransportOptions options;
    HurrayAllocator allocator;
    if (!out) return hry_fail_null(error, "out");
    HurrayStatus status = hry_transport_options(user, HURRAY_TRANSPORT_OWN_FD, &options, &allocator, &local);
    if (status == HURRAY_OK) status = over_fd(fd, NULL, (options.flags & HURRAY_TRANSPORT_OWN_FD) != 0, &options, &allocator, out, &local);
    return status == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &local);
}
