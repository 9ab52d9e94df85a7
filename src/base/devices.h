/* The seam between the public device list and a device runtime: src/cuda/device.c fills it, or src/cuda/absent.c in a library built
 * without the toolkit. Arguments come checked; `error` is never NULL. */
#ifndef HRY_BASE_DEVICES_H
#define HRY_BASE_DEVICES_H

#include "base/fail.h"
#include "hurray/loader.h"

/* No driver, none visible, built without: OK and 0. */
HurrayStatus hry_cuda_device_count(uint32_t *out, HurrayError *error);
/* text: ordinal, UUID or bus id. NO_DEVICE says why there is none, or which there are. */
HurrayStatus hry_cuda_device_find(const char *text, size_t len, int32_t *index, HurrayError *error);
/* index >= 0. NO_DEVICE as above. Free memory only with HURRAY_DEVICE_FREE_BYTES. */
HurrayStatus hry_cuda_device_info(int32_t index, uint32_t flags, HurrayDeviceInfo *out, HurrayError *error);

#endif
