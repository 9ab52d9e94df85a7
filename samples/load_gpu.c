/* Loads a model to a GPU; where that cannot be done, to the host, and says why. No vendor's header is needed: addresses, streams and
 * events are void *. usage: load_gpu [MODEL [CUDA ORDINAL, UUID OR BUS ID]] */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hurray/loader.h"

static HurrayError error = HURRAY_ERROR_INIT;

static HurrayStatus load(const char *path, const HurrayLoaderOptions *options, HurrayTensorSet **set) {
    HurrayLoader *loader = NULL;
    HurrayStatus status = hurray_loader_open(path, options, &loader, &error);
    if (status != HURRAY_OK) return status;
    if ((status = hurray_loader_load(loader, set)) != HURRAY_OK) error = *hurray_loader_last_error(loader);
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    HurrayPathStats row = HURRAY_PATH_STATS_INIT;
    if (status == HURRAY_OK && hurray_loader_stats(loader, &stats) == HURRAY_OK && hurray_loader_path_stats(loader, 0, &row) == HURRAY_OK) {
        printf("%" PRIu64 " bytes in %.2f ms", stats.payload_bytes, (double)stats.total_ns / 1e6);
        if (row.device_tag == HURRAY_DEVICE_CUDA)
            printf(", through %s memory, reads and copies overlapped for %.2f ms",
                   row.staging == HURRAY_STAGING_PINNED ? "pinned" : "pageable", (double)stats.overlap_ns / 1e6);
        printf("%s%s\n", row.reason ? ": " : "", row.reason ? row.reason : "");
    }
    hurray_loader_destroy(&loader);
    return status;
}

/* The GPU when there is one and it takes the model, else the host. Errors that have nothing to do with the GPU stay errors. */
static HurrayStatus load_somewhere(const char *path, const char *which, HurrayTensorSet **set) {
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
    int32_t device = 0;
    HurrayStatus status = hurray_device_find(HURRAY_DEVICE_CUDA, which, strlen(which), &device, &error);
    if (status == HURRAY_OK) status = hurray_device_info(HURRAY_DEVICE_CUDA, device, 0, &info, &error);
    if (status == HURRAY_OK) {
        printf("to %s (%s)\n", info.name, info.pci);
        options.target = HURRAY_TARGET_DEVICE;
        options.device_tag = HURRAY_DEVICE_CUDA;
        options.device_index = device;
        options.sync_mode = HURRAY_SYNC_EVENT; /* load returns before the last copies are done; see use() */
        status = load(path, &options, set);
    }
    if (status != HURRAY_ERR_NO_DEVICE && status != HURRAY_ERR_DEVICE && status != HURRAY_ERR_NO_MEMORY) return status;
    printf("not to a GPU: %s: %s\n", hurray_status_name(status), error.message);
    options = (HurrayLoaderOptions)HURRAY_LOADER_OPTIONS_INIT;
    return load(path, &options, set);
}

/* What stands before the first kernel that reads a buffer: the stream waits for the buffer's event, the host does not. Here the calling
 * thread waits, for want of a stream (NULL). */
static int use(HurrayTensor *tensor, int *on_gpu) {
    HurrayBufferList *list = NULL;
    uint64_t count = 0;
    hurray_tensor_buffers(tensor, &list);
    hurray_buffer_list_len(list, &count);
    for (uint64_t i = 0; i < count; i++) {
        HurrayBuffer *buffer = NULL;
        void *address = NULL;
        uint8_t tag = 0;
        hurray_buffer_list_get(list, i, &buffer);
        hurray_buffer_data_ptr(buffer, &address);
        hurray_buffer_device_tag(buffer, &tag);
        if (hurray_buffer_order(buffer, NULL) != HURRAY_OK || !address) return 0;
        *on_gpu = tag == HURRAY_DEVICE_CUDA;
        if (!*on_gpu && ((const uint8_t *)address)[5] != 5) return 0; /* byte i of the sample's tensors is i */
    }
    return 1;
}

static int make_input(const char *path) {
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]},"
                                 "\"b\":{\"dtype\":\"U8\",\"shape\":[4,4],\"data_offsets\":[16,32]}}";
    const uint8_t length[8] = {sizeof header - 1};
    FILE *file = fopen(path, "wb");
    if (!file) return 0;
    fwrite(length, 1, sizeof length, file);
    fwrite(header, 1, sizeof header - 1, file);
    for (int i = 0; i < 32; i++) fputc(i % 16, file);
    return fclose(file) == 0;
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "sample_load_gpu.safetensors";
    HurrayTensorSet *set = NULL;
    uint64_t count = 0;
    int on_gpu = 0, good = 1;
    if (argc < 2 && !make_input(path)) return 1;
    HurrayStatus status = load_somewhere(path, argc > 2 ? argv[2] : "0", &set);
    if (status != HURRAY_OK) {
        fprintf(stderr, "%s: %s: %s\n", path, hurray_status_name(status), error.message);
        return 1;
    }
    hurray_tensor_set_count(set, &count);
    for (uint64_t i = 0; i < count && argc < 2; i++) {
        HurrayTensor *tensor = NULL;
        good = good && hurray_tensor_set_get(set, i, &tensor) == HURRAY_OK && use(tensor, &on_gpu);
    }
    printf("%" PRIu64 " tensors on the %s\n", count, on_gpu ? "GPU" : "host");
    hurray_tensor_set_destroy(&set);
    return good && (argc > 1 || count == 2) ? 0 : 1;
}
