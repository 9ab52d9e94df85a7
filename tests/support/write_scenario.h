/* One sequence of items that uses everything a writer can do, for tests of the cores and of the blocking handles. */
#ifndef HRY_TESTS_WRITE_SCENARIO_H
#define HRY_TESTS_WRITE_SCENARIO_H

#include "hurray.h"

#define SCENARIO_ITEMS 7u /* between header and finish */

typedef enum ScenarioKind { SCENARIO_TENSOR, SCENARIO_COMPOSITE } ScenarioKind;

typedef struct ScenarioItem {
    ScenarioKind kind;
    const char *name;
    HurrayDescriptor *descriptor; /* of a tensor */
    HurrayIoSlice slices[4];
    size_t slice_count;
    HurrayCompositeNode nodes[4]; /* of a composite */
    size_t node_count;
} ScenarioItem;

typedef struct Scenario {
    ScenarioItem items[SCENARIO_ITEMS];
    HurrayDescriptor *owned[16];
    size_t owned_count;
    uint8_t *payload; /* what the slices point into */
    HurrayKvEntry kv[3];
} Scenario;

/* a dense tensor; a sparse one with two buffers; an empty one; a whole partition; a group head alone, then its two members: a tensor and
 * a whole overlay. */
void scenario_init(Scenario *scenario);
void scenario_clear(Scenario *scenario);

/* The whole content of a file, in a heap block of exactly its size; NULL with a printed reason when it is absent. */
uint8_t *read_vector(const char *path, size_t *len);

#endif
