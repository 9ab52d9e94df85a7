/* In a library built without the CUDA toolkit: the same functions, and a sentence instead of a device. */
#include "hurray/cuda.h"

#include "base/devices.h"
#include "base/options.h"

static HurrayStatus no_device(HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_NO_DEVICE, "device_tag", HRY_NO_OFFSET,
                    "there is no CUDA device: this library was built without CUDA; load to host memory, or use a build with it");
}

HurrayStatus hry_cuda_device_count(uint32_t *out, HurrayError *error) {
    (void)error;
    *out = 0;
    return HURRAY_OK;
}

HurrayStatus hry_cuda_device_find(const char *text, size_t len, int32_t *index, HurrayError *error) {
    (void)text, (void)len, (void)index;
    return no_device(error);
}

HurrayStatus hry_cuda_device_info(int32_t index, uint32_t flags, HurrayDeviceInfo *out, HurrayError *error) {
    (void)index, (void)flags, (void)out;
    return no_device(error);
}

bool hry_cuda_destination_stats(const HurrayDestinationAlloc *destination, HryCudaStats *out) {
    (void)destination, (void)out;
    return false;
}

bool hry_cuda_destination_failure(const HurrayDestinationAlloc *destination, HurrayError *out) {
    (void)destination, (void)out;
    return false;
}

size_t hry_cuda_destination_copies(const HurrayDestinationAlloc *destination, HryCudaCopy *out, size_t room) {
    (void)destination, (void)out, (void)room;
    return 0;
}

HurrayStatus hurray_destination_cuda(const HurrayCudaOptions *user, HurrayDestinationAlloc *out, HurrayError *error) {
    HurrayCudaOptions options = HURRAY_CUDA_OPTIONS_INIT;
    HurrayError local;
    if (!out) return hry_fail_null(error, "out");
    hry_error_clear(&local);
    if (hry_options_read(&options, sizeof options, sizeof options, user, "HurrayCudaOptions", &local) == HURRAY_OK) no_device(&local);
    return hry_error_export(error, &local);
}
