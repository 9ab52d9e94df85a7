#include "support/write_scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/composites.h"

#define PAYLOAD 8192u

static HurrayDescriptor *own(Scenario *scenario, HurrayDescriptor *descriptor) {
    scenario->owned[scenario->owned_count++] = descriptor;
    return descriptor;
}

/* One slice per buffer, each from another place of the payload. */
static size_t fill(Scenario *scenario, const HurrayDescriptor *descriptor, HurrayIoSlice *slices) {
    uint32_t count = 0;
    hurray_descriptor_buffer_count(descriptor, &count);
    for (uint32_t i = 0; i < count; i++) {
        HurrayBufferHandle handle;
        assert_int_equal(hurray_descriptor_buffer(descriptor, i, &handle), HURRAY_OK);
        assert_true(handle.byte_size + 100u * i <= PAYLOAD);
        slices[i].ptr = handle.byte_size ? scenario->payload + 100u * i : NULL;
        slices[i].len = (size_t)handle.byte_size;
    }
    return count;
}

static HurrayDescriptor *coo(void) {
    static const uint64_t shape[] = {50, 60};
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    layout.tag = HURRAY_LAYOUT_COO;
    layout.nnz = 11;
    spec.rank = 2;
    spec.shape = shape;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.layout = &layout;
    return make_from_spec(&spec);
}

static void tensor(Scenario *scenario, size_t i, const char *name, HurrayDescriptor *descriptor) {
    ScenarioItem *item = &scenario->items[i];
    item->kind = SCENARIO_TENSOR;
    item->name = name;
    item->descriptor = own(scenario, descriptor);
    item->slice_count = fill(scenario, descriptor, item->slices);
}

static void composite(Scenario *scenario, size_t i, const char *name, HurrayDescriptor *head, HurrayDescriptor *first,
                      HurrayDescriptor *second) {
    ScenarioItem *item = &scenario->items[i];
    HurrayDescriptor *all[] = {own(scenario, head), own(scenario, first), second ? own(scenario, second) : NULL};
    item->kind = SCENARIO_COMPOSITE;
    item->name = name;
    item->node_count = second ? 3 : 2;
    for (size_t n = 0; n < item->node_count; n++) {
        HurrayCompositeNode *node = &item->nodes[n];
        node->kind = n ? HURRAY_NODE_TENSOR : HURRAY_NODE_COMPOSITE;
        node->member_count = n ? 0 : (uint32_t)item->node_count - 1;
        node->name = n ? NULL : name;
        node->name_len = n ? 0 : strlen(name);
        node->descriptor = all[n];
        if (n) {
            node->slices = &item->slices[n - 1];
            node->slice_count = fill(scenario, all[n], &item->slices[n - 1]);
        }
    }
}

void scenario_init(Scenario *scenario) {
    static const uint64_t many[] = {300}, none[] = {3, 0}, whole[] = {4, 8}, half[] = {4, 4}, left[] = {0, 0}, right[] = {0, 4};
    static const int64_t numbers[] = {1, -2};
    memset(scenario, 0, sizeof *scenario);
    scenario->payload = malloc(PAYLOAD);
    for (size_t i = 0; i < PAYLOAD; i++) scenario->payload[i] = (uint8_t)(i * 29 + i / 256 + 1);
    tensor(scenario, 0, "dense", make_member(HURRAY_TYPE_UINT8, 1, many, NULL, NULL, NO_ROLE));
    tensor(scenario, 1, "sparse \xC3\xA9", coo());
    tensor(scenario, 2, "empty", make_member(HURRAY_TYPE_FLOAT32, 2, none, NULL, NULL, NO_ROLE));
    composite(scenario, 3, "partition", make_head(HURRAY_RULE_PARTITION, 0, HURRAY_TYPE_FLOAT32, 2, whole, 2, NULL, NULL),
              make_member(HURRAY_TYPE_FLOAT32, 2, half, whole, left, NO_ROLE),
              make_member(HURRAY_TYPE_FLOAT32, 2, half, whole, right, NO_ROLE));
    tensor(scenario, 4, "group", make_head(HURRAY_RULE_GROUP, 0, HURRAY_TYPE_FLOAT32, 2, whole, 2, NULL, NULL));
    tensor(scenario, 5, "a member", make_member(HURRAY_TYPE_INT8, 1, many, NULL, NULL, NO_ROLE));
    composite(scenario, 6, "overlay", make_head(HURRAY_RULE_OVERLAY, HURRAY_COMBINE_ADD, HURRAY_TYPE_FLOAT32, 2, whole, 1, NULL, NULL),
              make_member(HURRAY_TYPE_FLOAT32, 2, whole, whole, left, HURRAY_ROLE_BASE), NULL);
    scenario->kv[0] =
        (HurrayKvEntry){.key = "title", .key_len = 5, .value = {.kind = HURRAY_KV_STRING, .data = "everything", .data_len = 10}};
    scenario->kv[1] = (HurrayKvEntry){.key = "n", .key_len = 1, .value = {.kind = HURRAY_KV_UINT64, .u64 = 7}};
    scenario->kv[2] = (HurrayKvEntry){
        .key = "list", .key_len = 4, .value = {.kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_INT64, .data = numbers, .data_len = 2}};
}

void scenario_clear(Scenario *scenario) {
    for (size_t i = 0; i < scenario->owned_count; i++) hurray_descriptor_destroy(scenario->owned[i]);
    free(scenario->payload);
}

uint8_t *read_vector(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        print_message("skipped: %s is not there\n", path);
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    assert_true(size >= 0);
    uint8_t *bytes = malloc(size ? (size_t)size : 1);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    *len = (size_t)size;
    return bytes;
}
