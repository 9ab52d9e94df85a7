#include "support/load_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void make_scene(Scene *scene, bool foreign) {
    memset(scene, 0, sizeof *scene);
    for (uint32_t t = 0; t < COUNT; t++) {
        snprintf(scene->names[t], sizeof scene->names[t], "t%u", t);
        scene->tensors[t] = (ModelTensor){scene->names[t], t % 13 == 5 ? 0 : t % 7 == 3 ? 30000 + t * 977 : 16 + t, t};
    }
    scene->bytes = foreign ? model_safetensors(scene->tensors, COUNT) : model_hrry(scene->tensors, COUNT, 0);
    script_source(&scene->script, scene->bytes.bytes, scene->bytes.len);
    scene->script.flags = HURRAY_TRANSPORT_CONCURRENT;
}

HurrayStatus open_scene(Scene *scene, const HurrayLoaderOptions *options) {
    HurrayTransport transport = script_transport(&scene->script);
    HurraySource source = {.transport = &transport};
    return hurray_loader_open_sources(&source, 1, options, &scene->loader, NULL);
}

void end_scene(Scene *scene) {
    hurray_loader_destroy(&scene->loader);
    script_free(&scene->script);
    model_free(&scene->bytes);
}

HurrayLoaderOptions small_chunks(uint32_t threads) {
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    options.threads = threads;
    options.chunk_bytes = 4096;
    return options;
}

void check_all(const Scene *scene, HurrayTensorSet *set) {
    for (uint32_t t = 0; t < COUNT; t++) {
        HurrayTensor *tensor = NULL;
        assert_int_equal(hurray_tensor_set_get(set, t, &tensor), HURRAY_OK);
        assert_true(model_tensor_is(tensor, scene->tensors[t].size, scene->tensors[t].seed));
    }
}

void expect_loads(Scene *scene) {
    HurrayTensorSet *set = NULL;
    HurrayStatus status = hurray_loader_load(scene->loader, &set);
    if (status != HURRAY_OK) print_error("%d %s\n", status, hurray_loader_last_error(scene->loader)->message);
    assert_int_equal(status, HURRAY_OK);
    check_all(scene, set);
    hurray_tensor_set_destroy(&set);
}

HurrayStatus load_fails(Scene *scene) {
    HurrayTensorSet *set = NULL;
    HurrayStatus status = hurray_loader_load(scene->loader, &set);
    assert_null(set);
    assert_int_equal(hurray_loader_last_error(scene->loader)->code, status);
    assert_true(hurray_loader_last_error(scene->loader)->message[0] != 0);
    return status;
}
