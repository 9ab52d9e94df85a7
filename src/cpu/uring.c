#include "cpu/uring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef HRY_HAVE_URING
#include <liburing.h>

#define MOST_DEPTH 4096u
#define MOST_LEN ((size_t)1 << 30)
#define CANCEL_MARK UINT64_MAX /* the completion of a cancel, which nobody asked for */

struct HryUring {
    HurrayAllocator allocator;
    struct io_uring ring;
    unsigned depth, in_flight; /* in_flight: added and not yet reported */
};

static const char *refusal(int reason, char *text, size_t capacity) {
    switch (reason) {
    case ENOSYS: return "this kernel has no io_uring";
    case EPERM:
    case EACCES: return "io_uring is refused here (by a seccomp filter, as in many containers, or by kernel.io_uring_disabled)";
    case ENOMEM: return "io_uring's rings do not fit the limit of locked memory (ulimit -l)";
    case EMFILE:
    case ENFILE: return "there is no file descriptor left for io_uring";
    case EOPNOTSUPP: return "this kernel's io_uring is too old (5.6 or later is needed)";
    default: return strerror_r(reason, text, capacity);
    }
}

/* 0, or an errno value; with EOPNOTSUPP for a kernel whose io_uring cannot yet read into plain memory. */
static int ring_init(unsigned depth, struct io_uring *ring) {
    int result = io_uring_queue_init(depth + 1, ring, IORING_SETUP_CLAMP); /* one more for a cancel */
    if (result < 0) return -result;
    struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
    bool reads = probe && io_uring_opcode_supported(probe, IORING_OP_READ) && io_uring_opcode_supported(probe, IORING_OP_READV);
    io_uring_free_probe(probe);
    if (reads) return 0;
    io_uring_queue_exit(ring);
    return EOPNOTSUPP;
}

bool hry_uring_usable(char *reason, size_t capacity) {
    struct io_uring ring;
    char text[128];
    int failed = ring_init(1, &ring);
    if (failed == 0) {
        io_uring_queue_exit(&ring);
        if (capacity) reason[0] = 0;
        return true;
    }
    snprintf(reason, capacity, "%s", refusal(failed, text, sizeof text));
    return false;
}

HurrayStatus hry_uring_new(unsigned depth, const HurrayAllocator *allocator, HryUring **out, HurrayError *error) {
    char text[128];
    if (depth < 1) depth = 1;
    if (depth > MOST_DEPTH) depth = MOST_DEPTH;
    HryUring *ring = hry_alloc(allocator, sizeof *ring);
    if (!ring) return hry_fail_memory(error, "an io_uring", sizeof *ring);
    int failed = ring_init(depth, &ring->ring);
    if (failed) {
        hry_free(allocator, ring, sizeof *ring);
        hry_fail(error, HURRAY_ERR_UNSUPPORTED, "io", HRY_NO_OFFSET, "%s", refusal(failed, text, sizeof text));
        error->system_error = failed;
        return error->code;
    }
    ring->allocator = *allocator;
    ring->depth = depth;
    *out = ring;
    return HURRAY_OK;
}

unsigned hry_uring_depth(const HryUring *ring) { return ring->depth; }

unsigned hry_uring_in_flight(const HryUring *ring) { return ring->in_flight; }

static struct io_uring_sqe *next_entry(HryUring *ring) {
    struct io_uring_sqe *entry = ring->in_flight < ring->depth ? io_uring_get_sqe(&ring->ring) : NULL;
    if (entry) ring->in_flight++;
    return entry;
}

bool hry_uring_read(HryUring *ring, int fd, uint64_t offset, void *dst, size_t len, uint64_t user) {
    struct io_uring_sqe *entry = next_entry(ring);
    if (!entry) return false;
    io_uring_prep_read(entry, fd, dst, (unsigned)(len < MOST_LEN ? len : MOST_LEN), offset);
    io_uring_sqe_set_data64(entry, user);
    return true;
}

bool hry_uring_readv(HryUring *ring, int fd, uint64_t offset, const struct iovec *pieces, unsigned count, uint64_t user) {
    struct io_uring_sqe *entry = next_entry(ring);
    if (!entry) return false;
    io_uring_prep_readv(entry, fd, pieces, count, offset);
    io_uring_sqe_set_data64(entry, user);
    return true;
}

/* What is complete already, without a system call. */
static size_t reap(HryUring *ring, HryUringDone *done, size_t capacity) {
    struct io_uring_cqe *cqe;
    size_t count = 0;
    while (count < capacity && io_uring_peek_cqe(&ring->ring, &cqe) == 0) {
        if (cqe->user_data != CANCEL_MARK) {
            done[count++] = (HryUringDone){.user = cqe->user_data, .result = cqe->res};
            ring->in_flight--;
        }
        io_uring_cqe_seen(&ring->ring, cqe);
    }
    return count;
}

/* Interrupted, the time over; or busy, when what is in flight will make room: what was added goes with a later call. */
static bool passing(const HryUring *ring, int result) {
    if (result >= 0 || result == -EINTR || result == -ETIME) return true;
    return (result == -EAGAIN || result == -EBUSY) && ring->in_flight > io_uring_sq_ready(&ring->ring);
}

HurrayStatus hry_uring_wait(HryUring *ring, int timeout_ms, HryUringDone *done, size_t capacity, size_t *count, HurrayError *error) {
    int result = io_uring_sq_ready(&ring->ring) ? io_uring_submit(&ring->ring) : 0;
    *count = reap(ring, done, capacity);
    while (passing(ring, result) && *count == 0 && ring->in_flight && timeout_ms != 0 && capacity) {
        struct io_uring_cqe *cqe;
        struct __kernel_timespec time = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000LL};
        result = io_uring_submit_and_wait_timeout(&ring->ring, &cqe, 1, timeout_ms < 0 ? NULL : &time, NULL);
        *count = reap(ring, done, capacity);
        if (result == -ETIME) break;
    }
    if (passing(ring, result)) return HURRAY_OK;
    char text[128];
    hry_fail(error, HURRAY_ERR_TRANSPORT, "io", HRY_NO_OFFSET, "io_uring refused %u reads: %s", io_uring_sq_ready(&ring->ring),
             strerror_r(-result, text, sizeof text));
    error->system_error = -result;
    return error->code;
}

/* Kernels before 5.19 cannot cancel everything at once; there each read just runs to its end. */
void hry_uring_cancel(HryUring *ring) {
    struct io_uring_sqe *entry = ring->in_flight ? io_uring_get_sqe(&ring->ring) : NULL;
    if (!entry) return;
    io_uring_prep_cancel64(entry, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
    io_uring_sqe_set_data64(entry, CANCEL_MARK);
    (void)io_uring_submit(&ring->ring);
}

void hry_uring_destroy(HryUring **ring_at) {
    HryUring *ring = *ring_at;
    if (!ring) return;
    hry_uring_cancel(ring);
    while (ring->in_flight > io_uring_sq_ready(&ring->ring)) {
        HryUringDone done[16];
        struct io_uring_cqe *cqe;
        int result = io_uring_wait_cqe(&ring->ring, &cqe);
        if (result < 0 && !passing(ring, result)) break;
        (void)reap(ring, done, sizeof done / sizeof *done);
    }
    io_uring_queue_exit(&ring->ring);
    HurrayAllocator allocator = ring->allocator;
    hry_free(&allocator, ring, sizeof *ring);
    *ring_at = NULL;
}

#else

static const char without[] = "this library was built without liburing";

bool hry_uring_usable(char *reason, size_t capacity) {
    snprintf(reason, capacity, "%s", without);
    return false;
}
HurrayStatus hry_uring_new(unsigned depth, const HurrayAllocator *allocator, HryUring **out, HurrayError *error) {
    (void)depth, (void)allocator, (void)out;
    return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "io", HRY_NO_OFFSET, "%s", without);
}
unsigned hry_uring_depth(const HryUring *ring) {
    (void)ring;
    return 0;
}
unsigned hry_uring_in_flight(const HryUring *ring) {
    (void)ring;
    return 0;
}
bool hry_uring_read(HryUring *ring, int fd, uint64_t offset, void *dst, size_t len, uint64_t user) {
    (void)ring, (void)fd, (void)offset, (void)dst, (void)len, (void)user;
    return false;
}
bool hry_uring_readv(HryUring *ring, int fd, uint64_t offset, const struct iovec *pieces, unsigned count, uint64_t user) {
    (void)ring, (void)fd, (void)offset, (void)pieces, (void)count, (void)user;
    return false;
}
HurrayStatus hry_uring_wait(HryUring *ring, int timeout_ms, HryUringDone *done, size_t capacity, size_t *count, HurrayError *error) {
    (void)ring, (void)timeout_ms, (void)done, (void)capacity;
    *count = 0;
    return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "io", HRY_NO_OFFSET, "%s", without);
}
void hry_uring_cancel(HryUring *ring) { (void)ring; }
void hry_uring_destroy(HryUring **ring) { *ring = NULL; }

#endif
