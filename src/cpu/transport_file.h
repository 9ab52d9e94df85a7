/* The system calls of a file transport, so that tests can put others in their place. */
#ifndef HRY_CPU_TRANSPORT_FILE_H
#define HRY_CPU_TRANSPORT_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "hurray/transport.h"

typedef struct HryFileCalls {
    ssize_t (*pread)(int fd, void *dst, size_t len, off_t offset);
    ssize_t (*read)(int fd, void *dst, size_t len);
    ssize_t (*write)(int fd, const void *src, size_t len);
    int (*sync)(int fd);
    int (*write_out)(int fd, off_t offset, off_t len, unsigned flags); /* as sync_file_range */
    int (*link)(int from, const char *path, int folder, const char *name, int flags);
} HryFileCalls;

/* calls must outlive the transport, which must be one of hurray_transport_file or _fd. */
void hry_transport_file_use(HurrayTransport *transport, const HryFileCalls *calls);

/* read and write, repeated when interrupted, waiting when the descriptor does not block; a closed pipe is 0.
 * OK, or TRANSPORT with errno set. Whatever lies above is left to the next call. */
HurrayStatus hry_file_read(const HryFileCalls *calls, int fd, uint8_t *dst, size_t len, size_t *moved);
HurrayStatus hry_file_write(const HryFileCalls *calls, int fd, const uint8_t *src, size_t len, size_t *moved);
/* What a descriptor that cannot be synced (a pipe, a terminal) answers counts as done. */
HurrayStatus hry_file_sync(const HryFileCalls *calls, int fd);

extern const HryFileCalls hry_file_calls;

#endif
