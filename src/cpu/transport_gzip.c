#include "cpu/transport.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "base/checked.h"
#include "base/ready_made.h"

#define STAGE ((size_t)64 << 10) /* compressed bytes on their way in or out */
#define ONE_CALL ((size_t)1 << 30)

#define GZIP_WINDOW (15 + 16) /* zlib: the largest window, a gzip frame around it */

/* One direction; its zlib stream is made at its first use. */
typedef struct Reading {
    z_stream z;
    bool begun, in_member, any_member, inner_ended;
    bool more;           /* the output was full: there may be more of it without further input */
    HurrayStatus failed; /* damage found behind bytes already delivered; for good */
    uint64_t position;   /* of read_at, where inner has no read */
    uint8_t stage[STAGE];
} Reading;

typedef struct Writing {
    z_stream z;
    bool begun, flushed;
    size_t stage_at, stage_len; /* bytes still to go out */
    uint8_t stage[STAGE];
} Writing;

typedef struct Gzip {
    HurrayAllocator allocator;
    HurrayTransport inner;
    int level;
    Reading *reading;
    Writing *writing;
} Gzip;

/* zlib does not say at release how large a block was: the size stands before it. */
static void *zlib_allocate(void *opaque, unsigned items, unsigned size) {
    size_t bytes, whole;
    if (!hry_mul_size(items, size, &bytes) || !hry_add_size(bytes, sizeof(max_align_t), &whole)) return NULL;
    unsigned char *memory = hry_alloc(opaque, whole);
    if (!memory) return NULL;
    memcpy(memory, &whole, sizeof whole);
    return memory + sizeof(max_align_t);
}

static void zlib_free(void *opaque, void *address) {
    size_t whole;
    if (!address) return;
    unsigned char *memory = (unsigned char *)address - sizeof(max_align_t);
    memcpy(&whole, memory, sizeof whole);
    hry_free(opaque, memory, whole);
}

static HurrayStatus fail(HurrayStatus status) {
    errno = 0; /* no failure of the system */
    return status;
}

static HurrayStatus begin_reading(Gzip *gzip, Reading **out) {
    Reading *reading = gzip->reading;
    if (!reading) reading = gzip->reading = hry_alloc(&gzip->allocator, sizeof *reading);
    if (!reading) return fail(HURRAY_ERR_NO_MEMORY);
    if (!reading->begun) {
        reading->z = (z_stream){.zalloc = zlib_allocate, .zfree = zlib_free, .opaque = &gzip->allocator};
        if (inflateInit2(&reading->z, GZIP_WINDOW) != Z_OK) return fail(HURRAY_ERR_NO_MEMORY);
        reading->begun = true;
    }
    *out = reading;
    return HURRAY_OK;
}

/* More compressed bytes, or inner_ended. */
static HurrayStatus fill_stage(Gzip *gzip, Reading *reading) {
    size_t n = 0;
    HurrayStatus status = gzip->inner.read ? gzip->inner.read(gzip->inner.ctx, reading->stage, STAGE, &n)
                                           : gzip->inner.read_at(gzip->inner.ctx, reading->position, reading->stage, STAGE, &n);
    if (status != HURRAY_OK) return status < 0 ? status : fail(HURRAY_ERR_TRANSPORT);
    if (n > STAGE) return reading->failed = HURRAY_ERR_INVALID_REPORT;
    reading->position += n;
    reading->inner_ended = n == 0;
    reading->z.next_in = reading->stage;
    reading->z.avail_in = (unsigned)n;
    return HURRAY_OK;
}

/* zlib tells damage apart only by its text: sums that do not match, or bytes that are no gzip (after a whole member:
 * something foreign behind it). */
static HurrayStatus damage(const z_stream *z) {
    return z->msg && (strcmp(z->msg, "incorrect data check") == 0 || strcmp(z->msg, "incorrect length check") == 0)
               ? HURRAY_ERR_CHECKSUM
               : HURRAY_ERR_INVALID_DATA;
}

/* Inflates into dst what the stage holds. Members follow each other without a gap; input that ends inside one is cut. */
static HurrayStatus inflate_some(Reading *reading, uint8_t *dst, size_t len, size_t *out_filled) {
    if (!reading->in_member) {
        if (inflateReset(&reading->z) != Z_OK) return HURRAY_ERR_INTERNAL;
        reading->in_member = true;
    }
    reading->z.next_out = dst;
    reading->z.avail_out = (unsigned)len;
    int result = inflate(&reading->z, Z_NO_FLUSH);
    *out_filled = len - reading->z.avail_out;
    reading->more = result == Z_OK && reading->z.avail_out == 0;
    switch (result) {
    case Z_STREAM_END:
        reading->in_member = false;
        reading->any_member = true;
        return HURRAY_OK;
    case Z_OK:
    case Z_BUF_ERROR: return HURRAY_OK;
    case Z_MEM_ERROR: return HURRAY_ERR_NO_MEMORY;
    default: return damage(&reading->z);
    }
}

static HurrayStatus gzip_read(void *ctx, uint8_t *dst, size_t len, size_t *out_filled) {
    Reading *reading;
    *out_filled = 0;
    HurrayStatus status = begin_reading(ctx, &reading);
    if (status != HURRAY_OK) return status;
    if (len > ONE_CALL) len = ONE_CALL;
    while (*out_filled == 0) {
        if (reading->failed) return fail(reading->failed);
        if (reading->z.avail_in == 0 && !reading->inner_ended && !reading->more) {
            status = fill_stage(ctx, reading);
            if (status != HURRAY_OK) return status;
        }
        bool nothing_left = reading->z.avail_in == 0 && reading->inner_ended;
        if (nothing_left && !reading->in_member) return reading->any_member ? HURRAY_OK : fail(HURRAY_ERR_TRUNCATED);
        status = inflate_some(reading, dst, len, out_filled);
        if (status == HURRAY_OK && nothing_left && *out_filled == 0 && reading->in_member) status = HURRAY_ERR_TRUNCATED;
        if (status != HURRAY_OK) reading->failed = status; /* after the bytes before it, if there are any */
    }
    return HURRAY_OK;
}

static HurrayStatus begin_writing(Gzip *gzip, Writing **out) {
    Writing *writing = gzip->writing;
    if (!writing) writing = gzip->writing = hry_alloc(&gzip->allocator, sizeof *writing);
    if (!writing) return fail(HURRAY_ERR_NO_MEMORY);
    if (!writing->begun) {
        writing->z = (z_stream){.zalloc = zlib_allocate, .zfree = zlib_free, .opaque = &gzip->allocator};
        if (deflateInit2(&writing->z, gzip->level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            return fail(HURRAY_ERR_NO_MEMORY);
        writing->begun = true;
    }
    *out = writing;
    return HURRAY_OK;
}

/* Everything staged goes out. *closed: the sink takes no more. */
static HurrayStatus drain_stage(Gzip *gzip, Writing *writing, bool *closed) {
    *closed = false;
    while (writing->stage_len) {
        size_t n = 0;
        HurrayStatus status = gzip->inner.write(gzip->inner.ctx, writing->stage + writing->stage_at, writing->stage_len, &n);
        if (status != HURRAY_OK) return status < 0 ? status : fail(HURRAY_ERR_TRANSPORT);
        if (n > writing->stage_len) return fail(HURRAY_ERR_INVALID_REPORT);
        *closed = n == 0;
        if (*closed) return HURRAY_OK;
        writing->stage_at += n;
        writing->stage_len -= n;
    }
    writing->stage_at = 0;
    return HURRAY_OK;
}

/* Deflates into the empty stage. */
static int deflate_some(Writing *writing, int flush) {
    writing->z.next_out = writing->stage;
    writing->z.avail_out = STAGE;
    int result = deflate(&writing->z, flush);
    writing->stage_len = STAGE - writing->z.avail_out;
    return result;
}

/* What deflate took counts as written, even when what it made of it is still staged. */
static HurrayStatus gzip_write(void *ctx, const uint8_t *src, size_t len, size_t *out_written) {
    Writing *writing;
    bool closed;
    *out_written = 0;
    HurrayStatus status = begin_writing(ctx, &writing);
    if (status != HURRAY_OK) return status;
    if (writing->flushed) return fail(HURRAY_ERR_WRONG_STATE);
    if (len > ONE_CALL) len = ONE_CALL;
    status = drain_stage(ctx, writing, &closed);
    if (status != HURRAY_OK || closed) return status;
    writing->z.next_in = (unsigned char *)(uintptr_t)src;
    writing->z.avail_in = (unsigned)len;
    while (writing->z.avail_in) {
        if (deflate_some(writing, Z_NO_FLUSH) == Z_STREAM_ERROR) return fail(HURRAY_ERR_INTERNAL);
        *out_written = len - writing->z.avail_in;
        status = drain_stage(ctx, writing, &closed);
        if (status != HURRAY_OK || closed) break;
    }
    writing->z.next_in = NULL;
    writing->z.avail_in = 0;
    return *out_written ? HURRAY_OK : status;
}

static HurrayStatus gzip_finish(void *ctx) {
    Gzip *gzip = ctx;
    Writing *writing;
    bool closed;
    HurrayStatus status = begin_writing(gzip, &writing);
    if (status != HURRAY_OK) return status;
    for (;;) {
        status = drain_stage(gzip, writing, &closed);
        if (status != HURRAY_OK) return status;
        if (closed) return fail(HURRAY_ERR_SINK_CLOSED);
        if (writing->flushed) break;
        writing->flushed = deflate_some(writing, Z_FINISH) == Z_STREAM_END;
    }
    return gzip->inner.finish ? gzip->inner.finish(gzip->inner.ctx) : HURRAY_OK;
}

static void gzip_release(void *ctx) {
    Gzip *gzip = ctx;
    HurrayAllocator allocator = gzip->allocator;
    if (gzip->reading && gzip->reading->begun) inflateEnd(&gzip->reading->z);
    if (gzip->writing && gzip->writing->begun) deflateEnd(&gzip->writing->z);
    hry_free(&allocator, gzip->reading, sizeof *gzip->reading);
    hry_free(&allocator, gzip->writing, sizeof *gzip->writing);
    if (gzip->inner.release) gzip->inner.release(gzip->inner.ctx);
    hry_free(&allocator, gzip, sizeof *gzip);
}

bool hry_gzip_failure(const HurrayTransport *transport, HurrayStatus status, HurrayError *error) {
    if (transport->release != gzip_release) return false;
    const Gzip *gzip = transport->ctx;
    if (!gzip->reading || gzip->reading->failed != status) return false;
    const char *what = status == HURRAY_ERR_TRUNCATED      ? "the gzip data ends early: it was cut short; get it again"
                       : status == HURRAY_ERR_CHECKSUM     ? "the gzip data is damaged: its stored checksum does not match; get it again"
                       : status == HURRAY_ERR_INVALID_DATA ? "the gzip data is damaged, or something else follows it; get it again"
                                                           : NULL;
    if (!what) return false;
    hry_fail(error, status, NULL, HRY_NO_OFFSET, "%s", what);
    error->cause = status;
    return true;
}

static HurrayStatus check_inner(const HurrayTransport *inner, HurrayError *error) {
    if (inner->struct_size != 0 && inner->struct_size < sizeof *inner)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "struct_size", HRY_NO_OFFSET,
                        "HurrayTransport.struct_size is %u, expected 0 or %zu", (unsigned)inner->struct_size, sizeof *inner);
    if (!inner->read && !inner->read_at && !inner->write)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "inner", HRY_NO_OFFSET,
                        "the inner transport can neither read nor write; gzip needs one of the two");
    if (!inner->read && inner->io_alignment > 1)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "inner", HRY_NO_OFFSET,
                        "the inner transport reads only at multiples of %u bytes; gzip reads in any pieces", (unsigned)inner->io_alignment);
    return HURRAY_OK;
}

HurrayStatus hurray_transport_gzip(HurrayTransport *inner, const HurrayTransportOptions *user, HurrayTransport *out, HurrayError *error) {
    HurrayError local;
    HurrayTransportOptions options;
    HurrayAllocator allocator;
    if (!inner || !out) return hry_fail_null(error, "inner or out");
    HurrayStatus status = hry_transport_options(user, 0, &options, &allocator, &local);
    if (status == HURRAY_OK) status = check_inner(inner, &local);
    if (status != HURRAY_OK) return hry_error_export(error, &local);
    Gzip *gzip = hry_alloc(&allocator, sizeof *gzip);
    if (!gzip) {
        hry_fail_memory(&local, "a transport", sizeof *gzip);
        return hry_error_export(error, &local);
    }
    gzip->allocator = allocator;
    gzip->inner = *inner;
    gzip->level = options.level ? (int)options.level : Z_DEFAULT_COMPRESSION;
    *inner = (HurrayTransport){.struct_size = sizeof *inner};
    *out = (HurrayTransport){.ctx = gzip, .release = gzip_release, .struct_size = sizeof *out};
    if (gzip->inner.read || gzip->inner.read_at) out->read = gzip_read;
    if (gzip->inner.write) {
        out->write = gzip_write;
        out->finish = gzip_finish;
    }
    return HURRAY_OK;
}
