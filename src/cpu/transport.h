/* The library's own transports from inside: what the loader and the in-place destination may know about one. */
#ifndef HRY_CPU_TRANSPORT_H
#define HRY_CPU_TRANSPORT_H

#include "base/alloc.h"
#include "base/fail.h"
#include "cpu/mapping.h"
#include "hurray/transport.h"

#define HRY_TRANSPORT_FOREIGN 0u /* a caller's, or one that only its callbacks can read */
#define HRY_TRANSPORT_FILE 1u    /* a regular file or block device: fd */
#define HRY_TRANSPORT_MAPPING 2u /* memory or mapped: mapping */

typedef struct HryTransportAccess {
    uint32_t kind;
    int fd;                    /* read it with pread or io_uring; belongs to the transport */
    const char *path;          /* as it was given; NULL: from a descriptor or memory. Belongs to the transport */
    HryMapping *mapping;       /* borrowed */
    int direct_fd;             /* open for direct reads, or -1 */
    uint32_t direct_alignment; /* of offset, length and address on direct_fd; 0: none */
} HryTransportAccess;

/* What is known of a transport; kind FOREIGN for anything not made here. */
void hry_transport_access(const HurrayTransport *transport, HryTransportAccess *out);

/* Opens a file a second time for direct reads: the descriptor, or -1 with errno set (EINVAL: the file system has none).
 * *alignment is what it wants of offset, length and address. */
int hry_direct_open(int fd, uint32_t *alignment);

/* The options in their latest form and the allocator they name. allowed_flags: those that mean something here. */
HurrayStatus hry_transport_options(const HurrayTransportOptions *user, uint32_t allowed_flags, HurrayTransportOptions *out,
                                   HurrayAllocator *allocator, HurrayError *error);

/* How each file recognises its own, by its release callback. */
bool hry_transport_file_access(const HurrayTransport *transport, HryTransportAccess *out);
bool hry_transport_mapping_access(const HurrayTransport *transport, HryTransportAccess *out);

/* A transport over a mapping; takes one hold over on OK. */
HurrayStatus hry_transport_over_mapping(HryMapping *mapping, const char *path, HurrayTransport *out, HurrayError *error);

#endif
