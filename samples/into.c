/* Loads a model into memory that the engine has already: `place` says for each tensor where its bytes go, or that it is not needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hurray/loader.h"

static HurrayError error = HURRAY_ERROR_INIT;

/* The engine: one block of memory for all weights, handed out in pieces. */
typedef struct Engine {
    unsigned char *block;
    size_t size, used;
    HurrayMemory slices[16]; /* borrowed by the load until it returns */
    unsigned placed, skipped;
} Engine;

static HurrayStatus place(void *ctx, const HurrayTensorInfo *tensor, HurrayPlacement *placement) {
    Engine *engine = ctx;
    if (tensor->name_len >= 10 && memcmp(tensor->name, "optimizer.", 10) == 0) {
        placement->action = HURRAY_PLACE_SKIP;
        engine->skipped++;
        return HURRAY_OK;
    }
    HurrayBufferHandle handle;
    uint32_t buffers = 0;
    hurray_descriptor_buffer_count(tensor->descriptor, &buffers);
    if (buffers != 1 || engine->placed == 16 || hurray_descriptor_buffer(tensor->descriptor, 0, &handle) != HURRAY_OK)
        return HURRAY_ERR_UNSUPPORTED;
    size_t begin = (engine->used + handle.alignment - 1) / handle.alignment * handle.alignment;
    if (begin > engine->size || handle.byte_size > engine->size - begin) return HURRAY_ERR_NO_MEMORY;
    engine->used = begin + handle.byte_size;
    engine->slices[engine->placed] = (HurrayMemory){engine->block + begin, handle.byte_size};
    placement->into = &engine->slices[engine->placed++];
    placement->into_count = 1;
    return HURRAY_OK;
}

/* "w0", "w1": four numbers each; "optimizer.w0": of no use for inference. */
static int make_input(const char *path) {
    static const char header[] = "{\"w0\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
                                 "\"optimizer.w0\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,32]},"
                                 "\"w1\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[32,48]}}";
    const float payload[12] = {1, 2, 3, 4, -1, -1, -1, -1, 5, 6, 7, 8};
    const uint8_t length[8] = {sizeof header - 1};
    FILE *file = fopen(path, "wb");
    if (!file) return 0;
    fwrite(length, 1, sizeof length, file);
    fwrite(header, 1, sizeof header - 1, file);
    fwrite(payload, 1, sizeof payload, file);
    return fclose(file) == 0;
}

static HurrayStatus load(const char *path, Engine *engine) {
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    options.place = place;
    options.ctx = engine;
    HurrayStatus status = hurray_loader_open(path, &options, &loader, &error);
    if (status == HURRAY_OK && (status = hurray_loader_load(loader, &set)) != HURRAY_OK) error = *hurray_loader_last_error(loader);
    /* The tensors of the set describe the engine's memory; they do not own it and may go. */
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    return status;
}

int main(void) {
    Engine engine = {.size = 4096};
    int good = 0;
    engine.block = aligned_alloc(64, engine.size);
    if (!engine.block || !make_input("sample_into.safetensors")) return 1;
    if (load("sample_into.safetensors", &engine) == HURRAY_OK) {
        const float *w0 = engine.slices[0].ptr, *w1 = engine.slices[1].ptr;
        printf("%u placed, %u skipped, %zu bytes used; w0 ends with %g, w1 with %g\n", engine.placed, engine.skipped, engine.used,
               (double)w0[3], (double)w1[3]);
        good = engine.placed == 2 && engine.skipped == 1 && w0[0] == 1 && w0[3] == 4 && w1[0] == 5 && w1[3] == 8;
    } else {
        fprintf(stderr, "%s: %s %s\n", hurray_status_name(error.code), error.tensor, error.message);
    }
    free(engine.block);
    return good ? 0 : 1;
}
