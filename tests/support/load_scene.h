/* A model of forty tensors over a scripted transport, and what tests of loading do with it. */
#ifndef HRY_TESTS_LOAD_SCENE_H
#define HRY_TESTS_LOAD_SCENE_H

#include <stdbool.h>

#include "hurray/loader.h"
#include "support/models.h"
#include "support/script_transport.h"

#define COUNT 40u

typedef struct Scene {
    ModelTensor tensors[COUNT];
    char names[COUNT][16];
    ModelBytes bytes;
    ScriptTransport script;
    HurrayLoader *loader;
} Scene;

/* Forty tensors t0, t1, ...: many small ones, some of many chunks, three empty. */
void make_scene(Scene *scene, bool foreign);
HurrayStatus open_scene(Scene *scene, const HurrayLoaderOptions *options);
void end_scene(Scene *scene);
HurrayLoaderOptions small_chunks(uint32_t threads);
void check_all(const Scene *scene, HurrayTensorSet *set);
void expect_loads(Scene *scene);
/* The status; asserts that there is a message and no set. */
HurrayStatus load_fails(Scene *scene);

#endif
