#include "driver/transport_call.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/ready_made.h"

static HurrayStatus missing(const char *callback, HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, callback, HRY_NO_OFFSET,
                    "the transport has no %s callback, which this handle needs; set HurrayTransport.%s", callback, callback);
}

/* The struct's size stands late, because callers fill it by member name; 0 is the first release. */
static HurrayStatus copy_struct(const HurrayTransport *user, HurrayTransport *out, HurrayError *error) {
    size_t size = user->struct_size ? user->struct_size : sizeof *out;
    if (size < sizeof *out)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "struct_size", HRY_NO_OFFSET,
                        "HurrayTransport.struct_size is %zu, expected 0 or at least %zu", size, sizeof *out);
    const uint8_t *bytes = (const uint8_t *)user;
    for (size_t i = sizeof *out; i < size; i++)
        if (bytes[i])
            return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "struct_size", HRY_NO_OFFSET,
                            "HurrayTransport uses a member of a newer release (byte %zu is set); this library knows %zu bytes", i,
                            sizeof *out);
    memcpy(out, user, sizeof *out);
    out->struct_size = sizeof *out;
    return HURRAY_OK;
}

HurrayStatus hry_transport_resolve(const HurrayTransport *user, uint32_t needs, HurrayTransport *out, HurrayError *error) {
    HurrayTransport transport;
    if (!user) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "transport", HRY_NO_OFFSET, "the transport is NULL");
    HurrayStatus status = copy_struct(user, &transport, error);
    if (status != HURRAY_OK) return status;
    if ((transport.flags & ~HURRAY_TRANSPORT_CONCURRENT) || transport.reserved)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "flags", HRY_NO_OFFSET,
                        "HurrayTransport.flags is 0x%x and reserved is %u; only HURRAY_TRANSPORT_CONCURRENT is known, reserved must be 0",
                        transport.flags, transport.reserved);
    if (transport.io_alignment == 0) transport.io_alignment = 1;
    if (!hry_is_pow2(transport.io_alignment) || transport.io_alignment > HRY_TRANSPORT_MAX_ALIGNMENT)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "io_alignment", HRY_NO_OFFSET,
                        "HurrayTransport.io_alignment is %u, expected 0 or a power of two up to %u", transport.io_alignment,
                        HRY_TRANSPORT_MAX_ALIGNMENT);
    if ((needs & HRY_TRANSPORT_NEEDS_READ) && !transport.read) return missing("read", error);
    if ((needs & HRY_TRANSPORT_NEEDS_READ_AT) && !transport.read_at) return missing("read_at", error);
    if ((needs & HRY_TRANSPORT_NEEDS_READ_AT) && !transport.size) return missing("size", error);
    if ((needs & HRY_TRANSPORT_NEEDS_WRITE) && !transport.write) return missing("write", error);
    *out = transport;
    return HURRAY_OK;
}

/* What a callback was doing, for people who know files and not callbacks. */
static const char *doing(const char *callback) {
    return strcmp(callback, "write") == 0      ? "writing"
           : strncmp(callback, "read", 4) == 0 ? "reading"
           : strcmp(callback, "size") == 0     ? "asking for the size"
                                               : "finishing the output";
}

/* A callback that fails as TRANSPORT may leave errno set: it was cleared before the call. */
static HurrayStatus callback_failed(const HurrayTransport *transport, HurrayStatus answer, const char *callback, HurrayError *error) {
    int system_error = errno;
    if (hry_gzip_failure(transport, answer, error)) return answer;
    HurrayStatus status = hry_fail_callback(error, answer, HURRAY_ERR_TRANSPORT, callback);
    if (answer != HURRAY_ERR_TRANSPORT || system_error == 0) return status;
    char text[128];
    status = hry_fail(error, answer, NULL, HRY_NO_OFFSET, "%s failed: %s", doing(callback), strerror_r(system_error, text, sizeof text));
    error->cause = answer;
    error->system_error = system_error;
    return status;
}

/* What a moving callback answered: one place for every rule about counts. */
static HurrayStatus check_answer(const HurrayTransport *transport, HurrayStatus answer, const char *callback, size_t offered, size_t count,
                                 size_t *moved, HurrayError *error) {
    *moved = 0;
    if (answer != HURRAY_OK) return callback_failed(transport, answer, callback, error);
    if (count > offered)
        return hry_fail(error, HURRAY_ERR_INVALID_REPORT, callback, HRY_NO_OFFSET,
                        "the %s callback reports %zu bytes, it was offered %zu; the callback is at fault", callback, count, offered);
    *moved = count;
    return HURRAY_OK;
}

static size_t offer(size_t len) { return len < HRY_TRANSPORT_MAX_LEN ? len : HRY_TRANSPORT_MAX_LEN; }

HurrayStatus hry_transport_read(const HurrayTransport *transport, uint8_t *dst, size_t len, size_t *moved, HurrayError *error) {
    size_t count = 0;
    *moved = 0;
    if (len == 0) return HURRAY_OK;
    len = offer(len);
    errno = 0;
    HurrayStatus answer = transport->read(transport->ctx, dst, len, &count);
    return check_answer(transport, answer, "read", len, count, moved, error);
}

HurrayStatus hry_transport_read_at(const HurrayTransport *transport, uint64_t offset, uint8_t *dst, size_t len, size_t *moved,
                                   HurrayError *error) {
    size_t count = 0;
    *moved = 0;
    if (len == 0) return HURRAY_OK;
    len = offer(len);
    errno = 0;
    HurrayStatus answer = transport->read_at(transport->ctx, offset, dst, len, &count);
    HurrayStatus status = check_answer(transport, answer, "read_at", len, count, moved, error);
    if (status != HURRAY_OK) error->offset = offset;
    return status;
}

HurrayStatus hry_transport_write(const HurrayTransport *transport, const uint8_t *src, size_t len, size_t *moved, HurrayError *error) {
    size_t count = 0;
    *moved = 0;
    if (len == 0) return HURRAY_OK;
    len = offer(len);
    errno = 0;
    HurrayStatus answer = transport->write(transport->ctx, src, len, &count);
    return check_answer(transport, answer, "write", len, count, moved, error);
}

HurrayStatus hry_transport_size(const HurrayTransport *transport, uint64_t *size, HurrayError *error) {
    uint64_t found = 0;
    errno = 0;
    HurrayStatus status = transport->size(transport->ctx, &found);
    if (status != HURRAY_OK) return callback_failed(transport, status, "size", error);
    *size = found;
    return HURRAY_OK;
}

static HurrayStatus fail_short(uint64_t offset, size_t missing_bytes, HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, offset,
                    "the source ends at offset %llu, %zu more bytes are needed there; it was cut short or is still being written",
                    (unsigned long long)offset, missing_bytes);
}

/* A piece that does not lie on block boundaries: its whole blocks through aligned memory, once. */
static HurrayStatus read_through_block(const HurrayTransport *transport, uint64_t offset, uint8_t *dst, size_t len, size_t *got,
                                       HurrayError *error) {
    uint8_t memory[2 * HRY_TRANSPORT_MAX_ALIGNMENT];
    size_t alignment = transport->io_alignment;
    uint8_t *block = (uint8_t *)(((uintptr_t)memory + alignment - 1) & ~(uintptr_t)(alignment - 1));
    size_t skip = (size_t)(offset % alignment), wanted, moved;
    if (len > HRY_TRANSPORT_MAX_ALIGNMENT - skip) len = HRY_TRANSPORT_MAX_ALIGNMENT - skip;
    wanted = (skip + len + alignment - 1) & ~(alignment - 1);
    HurrayStatus status = hry_transport_read_at(transport, offset - skip, block, wanted, &moved, error);
    if (status != HURRAY_OK) return status;
    *got = moved > skip ? moved - skip : 0;
    if (*got > len) *got = len;
    memcpy(dst, block + skip, *got);
    return HURRAY_OK;
}

HurrayStatus hry_transport_read_exactly(const HurrayTransport *transport, uint64_t offset, void *dst, size_t len, HurrayError *error) {
    uint8_t *at = dst;
    size_t alignment = transport->io_alignment ? transport->io_alignment : 1;
    if (len > UINT64_MAX - offset || offset + len > UINT64_MAX - alignment)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, offset, "a range of %zu bytes at offset %llu cannot be in any source", len,
                        (unsigned long long)offset);
    while (len) {
        size_t moved, direct = len & ~(alignment - 1);
        HurrayStatus status;
        if (direct && offset % alignment == 0 && (uintptr_t)at % alignment == 0)
            status = hry_transport_read_at(transport, offset, at, direct, &moved, error);
        else
            status = read_through_block(transport, offset, at, len, &moved, error);
        if (status != HURRAY_OK) return status;
        if (moved == 0) return fail_short(offset, len, error);
        at += moved;
        offset += moved;
        len -= moved;
    }
    return HURRAY_OK;
}

HurrayStatus hry_transport_finish(const HurrayTransport *transport, HurrayError *error) {
    errno = 0;
    HurrayStatus status = transport->finish ? transport->finish(transport->ctx) : HURRAY_OK;
    return status == HURRAY_OK ? HURRAY_OK : callback_failed(transport, status, "finish", error);
}

void hry_transport_release(HurrayTransport *transport) {
    void (*release)(void *) = transport->release;
    void *ctx = transport->ctx;
    memset(transport, 0, sizeof *transport);
    if (release) release(ctx);
}
