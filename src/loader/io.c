#include "loader/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu/page_cache.h"
#include "cpu/system.h"
#include "driver/transport_call.h"

#define PROBES 64u
#define LEAST_DIRECT (UINT64_C(16) << 20) /* below this a file is read before the choice has paid */
#define LEAST_DIRECT_PIECE (UINT64_C(128) << 10)

/* Asks the page cache at places spread over the file. */
static bool is_warm(int fd, uint64_t size) {
    unsigned hits = 0, asked = 0;
    for (unsigned i = 0; i < PROBES && size; i++) {
        int percent = hry_page_cache_percent(fd, size / PROBES * i, 1);
        if (percent < 0) return true; /* a file system that cannot say: no reason for direct reads */
        asked++;
        if (percent > 0) hits++;
    }
    return hits * 10 >= asked * 9;
}

static void open_direct(HryIo *io, const HurrayLoaderOptions *options, uint64_t wanted, uint64_t fitting) {
    bool asked = options->direct == HURRAY_ON;
    if (options->direct == HURRAY_OFF || (!asked && (io->warm || wanted < LEAST_DIRECT))) return;
    io->bounce = fitting < wanted / 2 && options->io != HURRAY_IO_URING;
    if (fitting < wanted / 2 && !io->bounce && !asked) return;
    if (io->access.direct_fd >= 0) {
        io->direct_fd = io->access.direct_fd;
        io->direct_alignment = io->access.direct_alignment;
    } else {
        io->direct_fd = hry_direct_open(io->access.fd, &io->direct_alignment);
        io->own_direct = io->direct_fd >= 0;
    }
    if (io->direct_fd < 0) {
        io->direct_alignment = 1;
        io->bounce = false;
        snprintf(io->reason, sizeof io->reason, "direct reads were refused: %s", strerror(errno));
    }
}

void hry_io_open(HryIo *io, const HurrayTransport *transport, const HurrayLoaderOptions *options, uint64_t wanted, uint64_t fitting,
                 uint64_t byte_size) {
    memset(io, 0, sizeof *io);
    io->transport = transport;
    io->direct_fd = -1;
    io->direct_alignment = 1;
    pthread_mutex_init(&io->lock, NULL);
    atomic_init(&io->direct_refused, false);
    hry_transport_access(transport, &io->access);
    io->by_fd = io->access.kind == HRY_TRANSPORT_FILE;
    io->serial = !io->by_fd && !(transport->flags & HURRAY_TRANSPORT_CONCURRENT);
    io->warm = true;
    if (io->by_fd) {
        io->warm = is_warm(io->access.fd, byte_size);
        open_direct(io, options, wanted, fitting);
    } else if (options->direct == HURRAY_ON) {
        snprintf(io->reason, sizeof io->reason, "the source is read through its callbacks, direct reads are theirs to make");
    }
}

void hry_io_close(HryIo *io) {
    if (io->own_direct) close(io->direct_fd);
    pthread_mutex_destroy(&io->lock);
}

static HurrayStatus fail_short(uint64_t offset, uint64_t missing, HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, offset,
                    "the file ends at offset %llu, %llu more bytes are needed there; it was cut short since it was opened",
                    (unsigned long long)offset, (unsigned long long)missing);
}

static HurrayStatus fail_read(uint64_t offset, HurrayError *error) {
    hry_fail_system(error, HURRAY_ERR_TRANSPORT, errno, "read", NULL);
    error->offset = offset;
    return error->code;
}

HurrayStatus hry_fd_read(int fd, uint64_t offset, uint8_t *dst, uint64_t len, uint64_t *got, HurrayError *error) {
    *got = 0;
    while (*got < len) {
        uint64_t left = len - *got;
        ssize_t n = pread(fd, dst + *got, left < HRY_TRANSPORT_MAX_LEN ? left : HRY_TRANSPORT_MAX_LEN, (off_t)(offset + *got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_read(offset + *got, error);
        if (n == 0) return fail_short(offset + *got, left, error);
        *got += (uint64_t)n;
    }
    return HURRAY_OK;
}

/* Whole blocks in the middle of a piece go directly when file offset and address fall alike; what it does not get, the caller reads
 * buffered. */
static uint64_t read_blocks(HryIo *io, uint64_t offset, uint8_t *dst, uint64_t len, HurrayError *error, HurrayStatus *status) {
    uint64_t done = 0;
    *status = HURRAY_OK;
    while (done < len) {
        ssize_t n = pread(io->direct_fd, dst + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) {
            atomic_store_explicit(&io->direct_refused, true, memory_order_relaxed);
            break;
        }
        if (n < 0) {
            *status = fail_read(offset + done, error);
            break;
        }
        if (n == 0) break; /* the buffered read after it says so with the right place */
        done += (uint64_t)n;
        if ((uint64_t)n % io->direct_alignment) break; /* the end of the file */
    }
    return done;
}

bool hry_io_is_direct(const HryIo *io, const HryPlanPiece *piece) {
    uint64_t block = io->direct_alignment;
    return io->direct_fd >= 0 && piece->len >= LEAST_DIRECT_PIECE && ((uintptr_t)piece->ptr - piece->offset) % block == 0 &&
           !atomic_load_explicit(&io->direct_refused, memory_order_relaxed);
}

bool hry_io_bounces(const HryIo *io, const HryRun *run) {
    return io->bounce && run->len >= LEAST_DIRECT_PIECE && !(run->count == 1 && hry_io_is_direct(io, &run->pieces[0])) &&
           !atomic_load_explicit(&io->direct_refused, memory_order_relaxed);
}

static HurrayStatus read_piece(HryIo *io, const HryPlanPiece *piece, uint64_t *got, HurrayError *error) {
    uint64_t head = 0, middle = 0, more;
    HurrayStatus status = HURRAY_OK;
    *got = 0;
    if (hry_io_is_direct(io, piece)) {
        head = (0 - piece->offset) & (io->direct_alignment - 1);
        status = hry_fd_read(io->access.fd, piece->offset, piece->ptr, head, got, error);
        if (status != HURRAY_OK) return status;
        middle = (piece->len - head) & ~((uint64_t)io->direct_alignment - 1);
        *got += read_blocks(io, piece->offset + head, piece->ptr + head, middle, error, &status);
        if (status != HURRAY_OK) return status;
    }
    if (!io->warm && piece->len - *got >= LEAST_DIRECT_PIECE) /* all of it at once to the disk, not a window of read-ahead at a time */
        (void)posix_fadvise(io->access.fd, (off_t)(piece->offset + *got), (off_t)(piece->len - *got), POSIX_FADV_WILLNEED);
    status = hry_fd_read(io->access.fd, piece->offset + *got, piece->ptr + *got, piece->len - *got, &more, error);
    *got += more;
    return status;
}

static HurrayStatus read_one_by_one(HryIo *io, const HryRun *run, uint32_t first, uint32_t *whole, uint64_t *moved, HurrayError *error) {
    for (*whole = first; *whole < run->count; ++*whole) {
        uint64_t got;
        HurrayStatus status = read_piece(io, &run->pieces[*whole], &got, error);
        *moved += got;
        if (status != HURRAY_OK) return status;
    }
    return HURRAY_OK;
}

/* What is left of a run from `at` on; *next: the first piece that is not whole. */
static int list_rest(const HryRun *run, uint64_t at, uint8_t *gap, struct iovec *parts, uint32_t *next) {
    int count = 0;
    uint32_t p = 0;
    while (p < run->count && run->pieces[p].offset + run->pieces[p].len <= at) p++;
    *next = p;
    for (; p < run->count; p++) {
        const HryPlanPiece *piece = &run->pieces[p];
        if (at < piece->offset) {
            parts[count++] = (struct iovec){gap, (size_t)(piece->offset - at)};
            at = piece->offset;
        }
        parts[count++] = (struct iovec){piece->ptr + (at - piece->offset), (size_t)(piece->len - (at - piece->offset))};
        at = piece->offset + piece->len;
    }
    return count;
}

static HurrayStatus read_vector(HryIo *io, const HryRun *run, uint64_t at, uint8_t *gap, uint32_t *whole, uint64_t *moved,
                                HurrayError *error) {
    struct iovec parts[2 * HRY_RUN_PIECES];
    uint64_t end = run->offset + run->len;
    for (;;) {
        int count = list_rest(run, at, gap, parts, whole);
        if (at >= end) return HURRAY_OK;
        ssize_t n = preadv(io->access.fd, parts, count, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return read_one_by_one(io, run, *whole, whole, moved, error); /* which of them is it? */
        at += (uint64_t)n;
        *moved += (uint64_t)n;
    }
}

static HurrayStatus read_by_callbacks(HryIo *io, const HryRun *run, uint32_t *whole, uint64_t *moved, HurrayError *error) {
    HurrayStatus status = HURRAY_OK;
    if (io->serial) pthread_mutex_lock(&io->lock);
    for (*whole = 0; *whole < run->count; ++*whole) {
        const HryPlanPiece *piece = &run->pieces[*whole];
        status = hry_transport_read_exactly(io->transport, piece->offset, piece->ptr, (size_t)piece->len, error);
        if (status != HURRAY_OK) break;
        *moved += piece->len;
    }
    if (io->serial) pthread_mutex_unlock(&io->lock);
    return status;
}

/* To the pieces of a run, what of them lies in [begin, end) of the source; it is at `bytes`. */
static void scatter(const HryRun *run, const uint8_t *bytes, uint64_t begin, uint64_t end) {
    for (uint32_t p = 0; p < run->count; p++) {
        const HryPlanPiece *piece = &run->pieces[p];
        uint64_t from = piece->offset > begin ? piece->offset : begin, to = piece->offset + piece->len < end ? piece->offset + piece->len : end;
        if (from < to) memcpy(piece->ptr + (from - piece->offset), bytes + (from - begin), (size_t)(to - from));
    }
}

/* Whole blocks around the run, through the reader's own memory; what direct reads do not get, buffered ones do or explain. */
static HurrayStatus read_bounced(HryIo *io, const HryRun *run, HryScratch *scratch, uint32_t *whole, uint64_t *moved, HurrayError *error) {
    uint64_t block = io->direct_alignment, at = run->offset, end = run->offset + run->len;
    while (at < end) {
        uint64_t before = at & (block - 1), want = (end - at + before + block - 1) & ~(block - 1);
        if (want > scratch->bounce_bytes) want = scratch->bounce_bytes & ~(block - 1);
        ssize_t n = pread(io->direct_fd, scratch->bounce, (size_t)want, (off_t)(at - before));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) atomic_store_explicit(&io->direct_refused, true, memory_order_relaxed);
        if (n < 0 || (uint64_t)n <= before) break;
        uint64_t got = (uint64_t)n - before < end - at ? (uint64_t)n - before : end - at;
        scatter(run, scratch->bounce + before, at, at + got);
        at += got;
        *moved += got;
    }
    return read_vector(io, run, at, scratch->gap, whole, moved, error);
}

HurrayStatus hry_io_read(HryIo *io, const HryRun *run, HryScratch *scratch, uint32_t *whole, uint64_t *moved, HurrayError *error) {
    *whole = 0;
    *moved = 0;
    if (!io->by_fd) return read_by_callbacks(io, run, whole, moved, error);
    if (scratch->bounce && hry_io_bounces(io, run)) return read_bounced(io, run, scratch, whole, moved, error);
    if (run->count == 1) return read_one_by_one(io, run, 0, whole, moved, error);
    return read_vector(io, run, run->offset, scratch->gap, whole, moved, error);
}

int hry_io_rest(const HryRun *run, uint64_t at, uint8_t *gap, struct iovec *parts) {
    uint32_t next;
    return list_rest(run, at, gap, parts, &next);
}

/* Direct only when all of it is whole blocks. */
int hry_io_fd(const HryIo *io, const HryRun *run, uint64_t at) {
    uint64_t block = io->direct_alignment;
    bool whole = run->count == 1 && at % block == 0 && (run->offset + run->len) % block == 0 && hry_io_is_direct(io, &run->pieces[0]);
    return whole ? io->direct_fd : io->access.fd;
}

HurrayStatus hry_io_finish(HryIo *io, const HryRun *run, uint64_t at, uint8_t *gap, uint32_t *whole, uint64_t *moved, HurrayError *error) {
    return read_vector(io, run, at, gap, whole, moved, error);
}
