#include "cuda/help_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/fake_cuda.h"

void scene_make(Scene *scene, size_t count, const uint64_t *sizes, uint64_t size, int foreign) {
    memset(scene, 0, sizeof *scene);
    scene->count = count;
    scene->tensors = calloc(count, sizeof *scene->tensors);
    scene->names = calloc(count, sizeof *scene->names);
    for (size_t t = 0; t < count; t++) {
        snprintf(scene->names[t], sizeof scene->names[t], "t%u", (unsigned)t);
        scene->tensors[t] = (ModelTensor){scene->names[t], sizes ? sizes[t] : size, (uint32_t)t};
    }
    scene->bytes = foreign ? model_safetensors(scene->tensors, count) : model_hrry(scene->tensors, count, 0);
    script_source(&scene->script, scene->bytes.bytes, scene->bytes.len);
    scene->script.flags = HURRAY_TRANSPORT_CONCURRENT;
}

void scene_mixed(Scene *scene, int foreign) {
    static const uint64_t sizes[] = {5, 100000, 4096, 0, 17, 250000, 3, 65536, 70001, 12, 12, 12, 130000, 1, 40000, 64};
    scene_make(scene, sizeof sizes / sizeof *sizes, sizes, 0, foreign);
}

HurrayLoaderOptions scene_options(uint8_t sync_mode, uint32_t threads) {
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    options.target = HURRAY_TARGET_DEVICE;
    options.device_tag = HURRAY_DEVICE_CUDA;
    options.sync_mode = sync_mode;
    options.threads = threads;
    options.chunk_bytes = 32768;
    options.pinned_cap = (uint64_t)6 * 32768;
    return options;
}

HurrayStatus scene_open(Scene *scene, const HurrayLoaderOptions *options, HurrayError *error) {
    HurrayTransport transport = script_transport(&scene->script);
    HurraySource source = {.transport = &transport};
    return hurray_loader_open_sources(&source, 1, options, &scene->loader, error);
}

void scene_end(Scene *scene) {
    hurray_loader_destroy(&scene->loader);
    script_free(&scene->script);
    model_free(&scene->bytes);
    free(scene->tensors);
    free(scene->names);
}

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "scene: %s\n", what);
    _exit(95);
}

static void check_one(const ModelTensor *made, HurrayTensor *tensor, void *stream) {
    HurrayBufferList *list = NULL;
    HurrayBuffer *buffer = NULL;
    void *data = NULL;
    uint64_t size = 0;
    uint8_t mode = 0;
    must(hurray_tensor_buffers(tensor, &list) == HURRAY_OK && hurray_buffer_list_get(list, 0, &buffer) == HURRAY_OK, "no buffer");
    hurray_buffer_data_ptr(buffer, &data);
    hurray_buffer_byte_size(buffer, &size);
    hurray_buffer_sync_mode(buffer, &mode);
    must(size == made->size, "a buffer of another size");
    if (size == 0) return;
    uint8_t *want = malloc(size);
    model_fill(want, made->seed, 0, size);
    if (mode == HURRAY_SYNC_CONSUMER_STREAM) {
        fake_cuda_expect_on(stream, data, want, size);
    } else if (mode == HURRAY_SYNC_EVENT) {
        HurraySyncEventPayload event = {0};
        if (made->seed % 2) {
            void *own = fake_cuda_stream(0);
            must(hurray_buffer_order(buffer, own) == HURRAY_OK, "a stream cannot be ordered");
            fake_cuda_expect_on(own, data, want, size);
        } else {
            must(hurray_buffer_take_event(buffer, &event) == HURRAY_OK, "no event");
            must(hurray_buffer_handoff_event(buffer, &event) == HURRAY_OK, "no hand-off");
            fake_cuda_expect_after(event.sync_handle, data, want, size);
            event.event_release_fn(event.sync_handle, event.event_release_context);
        }
    } else {
        fake_cuda_expect_now(data, want, size);
    }
    free(want);
}

void scene_check(const Scene *scene, HurrayTensorSet *set, void *stream) {
    uint64_t count = 0;
    must(hurray_tensor_set_count(set, &count) == HURRAY_OK && count == scene->count, "another count of tensors");
    for (size_t t = 0; t < scene->count; t++) {
        HurrayTensor *tensor = NULL;
        must(hurray_tensor_set_get(set, t, &tensor) == HURRAY_OK, "a tensor is not there");
        check_one(&scene->tensors[t], tensor, stream);
    }
}
