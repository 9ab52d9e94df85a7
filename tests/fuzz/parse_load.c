/* A source of any format through the loader, as an application would read it: listed, verified, loaded. */
#include "fuzz.h"

static HurrayStatus found(void *ctx, const HurrayError *finding) {
    (void)ctx;
    if (finding->code >= 0 || finding->message[0] == 0) abort();
    return HURRAY_OK;
}

/* A failed call of the loader has said why. */
static HurrayStatus checked(const HurrayLoader *loader, HurrayStatus status) {
    return fuzz_checked(status, hurray_loader_last_error(loader));
}

/* A stretch of the dense view and the format's own form of blocks, from the middle of each. */
static void look_into(HurrayLoader *loader, uint64_t i) {
    uint8_t room[64 * 16];
    checked(loader, hurray_loader_read_dense(loader, i, 0, 3, 61, room, sizeof room));
    checked(loader, hurray_loader_read_dense(loader, i, HURRAY_TYPE_FLOAT32, 3, 61, room, sizeof room));
    for (uint32_t k = 0; k < 3; k++) checked(loader, hurray_loader_read_native(loader, i, k, 1, room, 17));
}

static void load(HurrayLoader *loader, const HurrayAllocator *allocator) {
    uint64_t bytes = 0, buffers = 0, count = 0;
    HurrayTensorSet *set = NULL;
    if (checked(loader, hurray_loader_plan(loader, HURRAY_DEVICE_CPU, 0, &bytes, &buffers)) != HURRAY_OK) return;
    if (bytes > 4 * FUZZ_MOST_BYTES || checked(loader, hurray_loader_load(loader, &set)) != HURRAY_OK) return;
    hurray_tensor_set_count(set, &count);
    for (uint64_t i = 0; i < count && i < 16; i++) {
        HurrayItem *item = NULL;
        HurrayTensor *tensor = NULL;
        if (hurray_tensor_set_get(set, i, &tensor) == HURRAY_OK) fuzz_see_tensor(tensor, allocator);
        if (hurray_tensor_set_take_item(set, i, &item) == HURRAY_OK) fuzz_see_item(item, allocator);
        hurray_item_destroy(&item);
    }
    hurray_tensor_set_destroy(&set);
}

HurrayStatus fuzz_parse(const HurrayTransport *transport, const FuzzInput *input, const HurrayAllocator *allocator, HryCatalogue **out,
                        HurrayError *error) {
    HurraySource source = {.transport = transport};
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayLoader *loader = NULL;
    uint64_t count = 0;
    (void)input, (void)out;
    options.threads = 1;
    options.chunk_bytes = 1u << 16;
    options.max_tensor_bytes = FUZZ_MOST_BYTES;
    options.allocator = allocator;
    HurrayStatus status = hurray_loader_open_sources(&source, 1, &options, &loader, error);
    if (status != HURRAY_OK) return status;
    hurray_loader_tensor_count(loader, &count);
    for (uint64_t i = 0; i < count && i < 64; i++) {
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        checked(loader, hurray_loader_tensor_info(loader, i, &info));
        look_into(loader, i);
    }
    checked(loader, hurray_loader_verify(loader, HURRAY_CHECK_PADDING | HURRAY_CHECK_DATA | HURRAY_CHECK_SUMS, found, NULL));
    load(loader, allocator);
    hurray_loader_destroy(&loader);
    return HURRAY_OK;
}
