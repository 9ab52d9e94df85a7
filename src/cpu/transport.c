#include "cpu/transport.h"

#include "base/options.h"

HurrayStatus hry_transport_options(const HurrayTransportOptions *user, uint32_t allowed_flags, HurrayTransportOptions *out,
                                   HurrayAllocator *allocator, HurrayError *error) {
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    HurrayStatus status = hry_options_read(&options, sizeof options, sizeof options, user, "HurrayTransportOptions", error);
    if (status != HURRAY_OK) return status;
    if (options.flags & ~allowed_flags)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "flags", HRY_NO_OFFSET,
                        "flags %#x are not meant for this transport; it knows %#x", (unsigned)options.flags, (unsigned)allowed_flags);
    if (options.direct > HURRAY_OFF)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "direct", HRY_NO_OFFSET,
                        "direct is %u, expected HURRAY_AUTO, HURRAY_ON or HURRAY_OFF", (unsigned)options.direct);
    if (options.level > 9)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "level", HRY_NO_OFFSET,
                        "level is %u, expected 1 (fastest) to 9 (smallest), or 0 for the usual", (unsigned)options.level);
    status = hry_alloc_resolve(options.allocator, allocator, error);
    if (status == HURRAY_OK) *out = options;
    return status;
}

void hry_transport_access(const HurrayTransport *transport, HryTransportAccess *out) {
    HryTransportAccess access = {.kind = HRY_TRANSPORT_FOREIGN, .fd = -1, .direct_fd = -1};
    if (!hry_transport_file_access(transport, &access)) (void)hry_transport_mapping_access(transport, &access);
    *out = access;
}

HurrayStatus hurray_transport_release(HurrayTransport *transport) {
    if (!transport) return HURRAY_ERR_NULL_POINTER;
    if (transport->release) transport->release(transport->ctx);
    *transport = (HurrayTransport){.struct_size = sizeof *transport};
    return HURRAY_OK;
}
