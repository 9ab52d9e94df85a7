/* A model in memory and the loader over it, toward the stand-in's devices. */
#ifndef HRY_TESTS_HELP_SCENE_H
#define HRY_TESTS_HELP_SCENE_H

#include "hurray/loader.h"
#include "support/models.h"
#include "support/script_transport.h"

typedef struct Scene {
    size_t count;
    ModelTensor *tensors;
    char (*names)[16];
    ModelBytes bytes;
    ScriptTransport script;
    HurrayLoader *loader;
} Scene;

/* sizes: count of them, or NULL and all of `size`. */
void scene_make(Scene *scene, size_t count, const uint64_t *sizes, uint64_t size, int foreign);
void scene_mixed(Scene *scene, int foreign); /* small ones, some of several slots, one empty */
HurrayStatus scene_open(Scene *scene, const HurrayLoaderOptions *options, HurrayError *error);
void scene_end(Scene *scene);
/* Every tensor as a consumer of its own mode sees it. `stream`: the one of consumer-stream. */
void scene_check(const Scene *scene, HurrayTensorSet *set, void *stream);
HurrayLoaderOptions scene_options(uint8_t sync_mode, uint32_t threads);

#endif
