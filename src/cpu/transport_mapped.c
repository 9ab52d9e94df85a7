#include "cpu/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cpu/system.h"

HurrayStatus hurray_transport_mapped(const char *path, const HurrayTransportOptions *user, HurrayTransport *out, HurrayError *error) {
    HurrayError local;
    HurrayTransportOptions options;
    HurrayAllocator allocator;
    HryMapping *mapping;
    if (!path || !out) return hry_fail_null(error, "path or out");
    HurrayStatus status = hry_transport_options(user, 0, &options, &allocator, &local);
    if (status != HURRAY_OK) return hry_error_export(error, &local);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        hry_fail_system(&local, HURRAY_ERR_TRANSPORT, errno, "open", path);
        return hry_error_export(error, &local);
    }
    status = hry_mapping_file(fd, path, &allocator, &mapping, &local);
    close(fd);
    if (status != HURRAY_OK) return hry_error_export(error, &local);
    status = hry_transport_over_mapping(mapping, path, out, &local);
    if (status == HURRAY_OK) return HURRAY_OK;
    hry_mapping_drop(mapping);
    return hry_error_export(error, &local);
}
