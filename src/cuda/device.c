#include "cuda/device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cpu/numa.h"

/* Why there is no device, told apart. */
static HurrayStatus fail_none(const HryCudaApi *api, int code, HurrayError *error) {
    int driver = 0, runtime = 0;
    if (api->driver_get_version(&driver) != HRY_CUDA_SUCCESS) api->get_last_error();
    if (api->runtime_get_version(&runtime) != HRY_CUDA_SUCCESS) api->get_last_error();
    const char *why;
    char text[160];
    if (code == HRY_CUDA_STUB_LIBRARY) {
        why = "the CUDA driver found is the toolkit's stub; take its folder out of the library path";
    } else if (driver == 0) {
        why = "no CUDA driver is installed (libcuda.so.1 was not found)";
    } else if (code == HRY_CUDA_INSUFFICIENT_DRIVER) {
        snprintf(text, sizeof text, "the driver is too old: it knows CUDA %d.%d, this library was built with %d.%d", driver / 1000, driver % 1000 / 10, runtime / 1000,
                 runtime % 1000 / 10);
        why = text;
    } else if (code == HRY_CUDA_NO_DEVICE || code == HRY_CUDA_SUCCESS) {
        why = "the driver sees no device (is CUDA_VISIBLE_DEVICES empty?)";
    } else if (code == HRY_CUDA_INITIALIZATION) {
        why = "CUDA cannot be used in a process that was forked after its first use";
    } else {
        snprintf(text, sizeof text, "%s (%d)", api->get_error_name(code), code);
        why = text;
    }
    hry_fail(error, HURRAY_ERR_NO_DEVICE, "device", HRY_NO_OFFSET, "there is no CUDA device: %s; load to host memory instead", why);
    error->device_error = code;
    return error->code;
}

/* Devices there are; 0 with the record filled (its code NO_DEVICE) when there are none. */
static uint32_t count_devices(const HryCudaApi *api, HurrayError *error) {
    int driver = 0, count = 0, code = api->driver_get_version(&driver);
    hry_error_clear(error);
    if (code == HRY_CUDA_SUCCESS && driver > 0) code = api->get_device_count(&count);
    else if (code == HRY_CUDA_SUCCESS) code = HRY_CUDA_INSUFFICIENT_DRIVER;
    if (code == HRY_CUDA_SUCCESS && count > 0) return (uint32_t)count;
    if (code != HRY_CUDA_SUCCESS) api->get_last_error();
    fail_none(api, code, error);
    return 0;
}

static HurrayStatus fail_index(int32_t index, uint32_t count, HurrayError *error) {
    return hry_fail(error, HURRAY_ERR_NO_DEVICE, "device_index", HRY_NO_OFFSET, "there is no CUDA device %d; this machine has %u (0 to %u)", (int)index, (unsigned)count,
                    (unsigned)(count - 1));
}

HurrayStatus hry_cuda_device_count(uint32_t *out, HurrayError *error) {
    *out = count_devices(hry_cuda_api(), error);
    hry_error_clear(error);
    return HURRAY_OK;
}

static int32_t node_of(const HurrayAllocator *allocator, const char *pci) {
    HryNuma *numa = NULL;
    HurrayError ignored;
    if (hry_numa_new(allocator, &numa, &ignored) != HURRAY_OK) return -1;
    int node = hry_numa_pci_node(numa, pci);
    hry_numa_destroy(&numa);
    return node;
}

static void print_uuid(char text[48], const uint8_t uuid[16]) {
    int used = snprintf(text, 48, "GPU-");
    for (int i = 0; i < 16; i++) used += snprintf(text + used, 48 - (size_t)used, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
}

static HurrayStatus fail_call(const HryCudaApi *api, int code, const char *call, HurrayError *error) {
    api->get_last_error();
    hry_fail(error, HURRAY_ERR_DEVICE, "device", HRY_NO_OFFSET, "%s: %s (%d)", call, api->get_error_name(code), code);
    error->device_error = code;
    return error->code;
}

/* Names and size; no context is made. */
static HurrayStatus describe(const HryCudaApi *api, int32_t index, HurrayDeviceInfo *out, HurrayError *error) {
    HryCudaProperties properties;
    int managed = 0;
    int code = api->get_device_properties(&properties, index);
    if (code != HRY_CUDA_SUCCESS) return fail_call(api, code, "cudaGetDeviceProperties", error);
    code = api->device_get_pci_bus_id(out->pci, (int)sizeof out->pci, index);
    if (code != HRY_CUDA_SUCCESS) return fail_call(api, code, "cudaDeviceGetPCIBusId", error);
    if (api->device_get_attribute(&managed, HRY_CUDA_ATTRIBUTE_MANAGED_MEMORY, index) != HRY_CUDA_SUCCESS) {
        api->get_last_error();
        managed = 0;
    }
    snprintf(out->name, sizeof out->name, "%s", properties.name);
    print_uuid(out->uuid, properties.uuid);
    out->total_bytes = properties.total_bytes;
    out->sync_modes = 1u << HURRAY_SYNC_PRODUCER_SYNCED | 1u << HURRAY_SYNC_EVENT | 1u << HURRAY_SYNC_CONSUMER_STREAM;
    out->memory_classes = 1u << HURRAY_MEMORY_STANDARD | 1u << HURRAY_MEMORY_HOST_PINNED | (managed ? 1u << HURRAY_MEMORY_UNIFIED : 0u);
    return HURRAY_OK;
}

HurrayStatus hry_cuda_device_info(int32_t index, uint32_t flags, HurrayDeviceInfo *out, HurrayError *error) {
    const HryCudaApi *api = hry_cuda_api();
    HurrayAllocator allocator = hry_alloc_default();
    uint32_t count = count_devices(api, error);
    if (count == 0) return error->code;
    if ((uint32_t)index >= count) return fail_index(index, count, error);
    HurrayStatus status = describe(api, index, out, error);
    if (status != HURRAY_OK) return status;
    out->numa_node = node_of(&allocator, out->pci);
    if (!(flags & HURRAY_DEVICE_FREE_BYTES)) return HURRAY_OK;
    HryCudaDevice *device = NULL;
    HryCudaGuard guard;
    size_t free_bytes = 0, total = 0;
    status = hry_cuda_device_open(api, index, &allocator, &device, error);
    if (status != HURRAY_OK) return status;
    if (hry_cuda_enter(device, &guard)) {
        int code = api->mem_get_info(&free_bytes, &total);
        if (code != HRY_CUDA_SUCCESS) status = hry_cuda_fail(device, code, "cudaMemGetInfo", error);
        hry_cuda_leave(device, &guard);
    }
    hry_cuda_device_unref(device);
    out->free_bytes = free_bytes;
    return status;
}

static bool same_text(const char *a, const char *b, size_t len) {
    if (strlen(b) != len) return false;
    for (size_t i = 0; i < len; i++)
        if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i])) return false;
    return true;
}

/* An ordinal is digits alone. */
static bool ordinal(const char *text, size_t len, int32_t *out) {
    int64_t value = 0;
    if (len == 0 || len > 9) return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = value * 10 + (text[i] - '0');
    }
    *out = (int32_t)value;
    return true;
}

HurrayStatus hry_cuda_device_find(const char *text, size_t len, int32_t *index, HurrayError *error) {
    const HryCudaApi *api = hry_cuda_api();
    char shown[64];
    int32_t number;
    uint32_t count = count_devices(api, error);
    if (count == 0) return error->code;
    if (ordinal(text, len, &number)) {
        if ((uint32_t)number >= count) return fail_index(number, count, error);
        *index = number;
        return HURRAY_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
        HurrayStatus status = describe(api, (int32_t)i, &info, error);
        if (status != HURRAY_OK) return status;
        if (!same_text(text, info.uuid, len) && !same_text(text, info.uuid + 4, len) && !same_text(text, info.pci, len)) continue;
        *index = (int32_t)i;
        return HURRAY_OK;
    }
    return hry_fail(error, HURRAY_ERR_NO_DEVICE, "device", HRY_NO_OFFSET, "no CUDA device has the ordinal, UUID or bus id \"%s\"; `hurray devices` lists them",
                    hry_escape(shown, sizeof shown, text, len));
}

HurrayStatus hry_cuda_device_open(const HryCudaApi *api, int32_t index, const HurrayAllocator *allocator, HryCudaDevice **out, HurrayError *error) {
    HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
    uint32_t count = count_devices(api, error);
    if (count == 0) return error->code;
    if (index < 0) index = 0;
    if ((uint32_t)index >= count) return fail_index(index, count, error);
    HurrayStatus status = describe(api, index, &info, error);
    if (status != HURRAY_OK) return status;
    HryCudaDevice *device = hry_alloc(allocator, sizeof *device);
    if (!device) return hry_fail_memory(error, "a device", sizeof *device);
    device->api = api;
    device->allocator = *allocator;
    device->pid = getpid();
    device->index = index;
    atomic_init(&device->references, 1);
    atomic_init(&device->lost, false);
    atomic_init(&device->lost_code, 0);
    snprintf(device->name, sizeof device->name, "%.63s", info.name);
    snprintf(device->pci, sizeof device->pci, "%s", info.pci);
    device->numa_node = node_of(allocator, device->pci);
    int code = api->primary_retain(&device->context, index);
    if (code != HRY_CUDA_SUCCESS) {
        status = hry_cuda_fail(device, code, "cuDevicePrimaryCtxRetain", error);
        hry_free(allocator, device, sizeof *device);
        return status;
    }
    *out = device;
    return HURRAY_OK;
}

HryCudaDevice *hry_cuda_device_ref(HryCudaDevice *device) {
    atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
    return device;
}

void hry_cuda_device_unref(HryCudaDevice *device) {
    if (!device || atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) != 1) return;
    if (device->pid == getpid()) {
        int code = device->api->primary_release(device->index);
        if (code != HRY_CUDA_SUCCESS) device->api->get_last_error();
    }
    HurrayAllocator allocator = device->allocator;
    hry_free(&allocator, device, sizeof *device);
}

bool hry_cuda_is_gone(const HryCudaDevice *device) { return device->pid != getpid() || atomic_load_explicit(&device->lost, memory_order_relaxed); }

void hry_cuda_nap(void) {
    struct timespec tenth = {0, 100000};
    nanosleep(&tenth, NULL);
}

void hry_cuda_lose(HryCudaDevice *device, int code) {
    int none = 0;
    atomic_compare_exchange_strong(&device->lost_code, &none, code); /* the first says most */
    atomic_store(&device->lost, true);
}

bool hry_cuda_enter(HryCudaDevice *device, HryCudaGuard *guard) {
    guard->capture_mode = HRY_CUDA_CAPTURE_RELAXED;
    guard->pushed = guard->relaxed = false;
    for (unsigned failures = 0; !guard->pushed; hry_cuda_nap()) { /* a context that is gone for good says so at once */
        if (hry_cuda_is_gone(device)) return false;
        int code = device->api->push_context(device->context);
        guard->pushed = code == HRY_CUDA_SUCCESS;
        if (guard->pushed) break;
        hry_cuda_clear(device, code);
        if (code == HRY_CUDA_INVALID_CONTEXT || ++failures == HRY_CUDA_PATIENCE) hry_cuda_lose(device, code);
    }
    /* Else a call of ours can break a graph capture that another thread has under way. */
    int code = device->api->exchange_capture_mode(&guard->capture_mode);
    guard->relaxed = code == HRY_CUDA_SUCCESS;
    if (!guard->relaxed) hry_cuda_clear(device, code);
    return true;
}

void hry_cuda_leave(HryCudaDevice *device, HryCudaGuard *guard) {
    void *context;
    if (!guard->pushed) return;
    int code = guard->relaxed ? device->api->exchange_capture_mode(&guard->capture_mode) : HRY_CUDA_SUCCESS;
    if (code != HRY_CUDA_SUCCESS) hry_cuda_clear(device, code);
    code = device->api->pop_context(&context);
    if (code != HRY_CUDA_SUCCESS) hry_cuda_clear(device, code);
    guard->pushed = false;
}

/* Errors after which every further call fails. */
static bool is_sticky(int code) {
    return code == 214 || code == 700 || code == 702 || code == HRY_CUDA_CONTEXT_DESTROYED || code == 710 || (code >= 714 && code <= 719) || code == 999 ||
           code == HRY_CUDA_UNLOADING;
}

void hry_cuda_clear(HryCudaDevice *device, int code) {
    if (is_sticky(code)) hry_cuda_lose(device, code);
    device->api->get_last_error();
}

HurrayStatus hry_cuda_fail(HryCudaDevice *device, int code, const char *call, HurrayError *error) {
    hry_cuda_clear(device, code);
    hry_fail(error, code == HRY_CUDA_OUT_OF_MEMORY ? HURRAY_ERR_NO_MEMORY : HURRAY_ERR_DEVICE, "device", HRY_NO_OFFSET, "%s: %s (%d) on cuda:%d \"%s\" %s%s", call,
             device->api->get_error_name(code), code, (int)device->index, device->name, device->pci, is_sticky(code) ? ", or an earlier asynchronous operation" : "");
    error->device_error = code;
    return error->code;
}

HurrayStatus hry_cuda_fail_lost(HryCudaDevice *device, HurrayError *error) {
    int code = atomic_load(&device->lost_code);
    if (code == 0)
        return hry_fail(error, HURRAY_ERR_DEVICE, "device", HRY_NO_OFFSET, "cuda:%d was opened before this process was forked; a child cannot use it", (int)device->index);
    hry_fail(error, HURRAY_ERR_DEVICE, "device", HRY_NO_OFFSET, "cuda:%d \"%s\" %s is lost: an earlier call or asynchronous operation failed with %s (%d)", (int)device->index, device->name,
             device->pci, device->api->get_error_name(code), code);
    error->device_error = code;
    return error->code;
}
