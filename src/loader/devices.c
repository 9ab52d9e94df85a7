/* The public device list. Only CUDA has a runtime behind it; of the other tags of the format there are none. */
#include "base/devices.h"

#include <string.h>

#include "base/options.h"
#include "format/handle.h"

static HurrayStatus check_tag(uint8_t tag, HurrayError *error) {
    if (hry_device_tag_is_legal(tag)) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_INVALID_TYPE, "device_tag", HRY_NO_OFFSET, "device tag %u is not one of the format", tag);
}

static HurrayStatus none_of(uint8_t tag, HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_NO_DEVICE, "device_tag", HRY_NO_OFFSET,
                    "this library lists no devices of tag %u, only CUDA's (tag %u)", tag, HURRAY_DEVICE_CUDA);
}

HurrayStatus hurray_device_count(uint8_t device_tag, uint32_t *out, HurrayError *error) {
    HurrayError local;
    uint32_t count = 0;
    if (!out) return hry_fail_null(error, "out");
    hry_error_clear(&local);
    HurrayStatus status = check_tag(device_tag, &local);
    if (status == HURRAY_OK && device_tag == HURRAY_DEVICE_CUDA) status = hry_cuda_device_count(&count, &local);
    if (status != HURRAY_OK) return hry_error_export(error, &local);
    *out = count;
    return HURRAY_OK;
}

HurrayStatus hurray_device_find(uint8_t device_tag, const void *text, size_t len, int32_t *index, HurrayError *error) {
    HurrayError local;
    if (!index || (!text && len)) return hry_fail_null(error, "index or text");
    hry_error_clear(&local);
    HurrayStatus status = check_tag(device_tag, &local);
    if (status == HURRAY_OK)
        status = device_tag == HURRAY_DEVICE_CUDA ? hry_cuda_device_find(text, len, index, &local) : none_of(device_tag, &local);
    return status == HURRAY_OK ? status : hry_error_export(error, &local);
}

HurrayStatus hurray_device_info(uint8_t device_tag, int32_t device_index, uint32_t flags, HurrayDeviceInfo *out, HurrayError *error) {
    HurrayError local;
    HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
    if (!out) return hry_fail_null(error, "out");
    hry_error_clear(&local);
    HurrayStatus status = check_tag(device_tag, &local);
    if (status == HURRAY_OK && (flags & ~HURRAY_DEVICE_FREE_BYTES))
        status = hry_fail(&local, HURRAY_ERR_UNSUPPORTED, "flags", HRY_NO_OFFSET, "flags 0x%x holds a bit that this release does not know",
                          flags);
    if (status == HURRAY_OK && device_index < 0)
        status = hry_fail(&local, HURRAY_ERR_INVALID_ARGUMENT, "device_index", HRY_NO_OFFSET, "device index %d, expected 0 or more",
                          device_index);
    if (status == HURRAY_OK)
        status = device_tag == HURRAY_DEVICE_CUDA ? hry_cuda_device_info(device_index, flags, &info, &local) : none_of(device_tag, &local);
    if (status == HURRAY_OK && hry_result_write(out, sizeof info, &info, sizeof info) != HURRAY_OK)
        hry_fail(&local, HURRAY_ERR_INVALID_ARGUMENT, "struct_size", HRY_NO_OFFSET,
                 "HurrayDeviceInfo.struct_size is too small; initialise it with its _INIT macro");
    return local.code == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &local);
}
