#include "support/composites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void release(void *data, void *context) {
    (void)context;
    free(data);
}

HurrayDescriptor *make_from_spec(HurrayDescriptorSpec *spec) {
    HurrayBufferHandle handles[64 + 4];
    size_t count = sizeof handles / sizeof *handles;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayDescriptor *out = NULL;
    if (!spec->buffers && !(spec->layout && spec->layout->tag == HURRAY_LAYOUT_COMPOSITE)) {
        if (hurray_descriptor_plan_buffers(spec, handles, &count, &error) != HURRAY_OK) fail_msg("%s", error.message);
        spec->buffers = handles;
        spec->buffer_count = (uint32_t)count;
    }
    if (hurray_descriptor_new(spec, NULL, &out, &error) != HURRAY_OK) fail_msg("%s", error.message);
    return out;
}

HurrayDescriptor *make_head(uint8_t rule, uint8_t op, uint8_t type, uint32_t rank, const uint64_t *shape, uint32_t members,
                            const uint64_t *parent, const uint64_t *offset) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    layout.tag = HURRAY_LAYOUT_COMPOSITE;
    layout.rule = rule;
    layout.combine_op = op;
    layout.member_count = members;
    shard.parent_shape = parent;
    shard.offset = offset;
    spec.rank = rank;
    spec.shape = shape;
    spec.element_type = type;
    spec.layout = &layout;
    if (parent) spec.shard = &shard;
    return make_from_spec(&spec);
}

HurrayDescriptor *make_member(uint8_t type, uint32_t rank, const uint64_t *shape, const uint64_t *parent, const uint64_t *offset, int role) {
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    shard.parent_shape = parent;
    shard.offset = offset;
    member.role = (uint8_t)role;
    spec.rank = rank;
    spec.shape = shape;
    spec.element_type = type;
    if (parent) spec.shard = &shard;
    if (role != NO_ROLE) spec.composite_member = &member;
    return make_from_spec(&spec);
}

HurrayTensor *make_tensor(HurrayDescriptor *descriptor, const void *const *data) {
    uint32_t count = 0;
    HurrayBufferList *list = NULL;
    HurrayTensor *tensor = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_descriptor_buffer_count(descriptor, &count), HURRAY_OK);
    assert_int_equal(hurray_buffer_list_new(count, &list), HURRAY_OK);
    for (uint32_t i = 0; i < count; i++) {
        HurrayBufferHandle handle;
        HurrayBuffer *buffer = NULL;
        assert_int_equal(hurray_descriptor_buffer(descriptor, i, &handle), HURRAY_OK);
        uint8_t *memory = aligned_alloc(64, (handle.byte_size + 64) / 64 * 64);
        assert_non_null(memory);
        for (uint64_t b = 0; b < handle.byte_size; b++) memory[b] = data ? ((const uint8_t *)data[i])[b] : (uint8_t)(b * 7 + i);
        assert_int_equal(hurray_buffer_from_ptr(memory, handle.byte_size, 64, handle.device_tag, handle.sync_mode, handle.memory_class,
                                                release, NULL, &buffer),
                         HURRAY_OK);
        assert_int_equal(hurray_buffer_list_push(list, buffer), HURRAY_OK);
    }
    if (hurray_tensor_new(descriptor, list, NULL, &tensor, &error) != HURRAY_OK) fail_msg("%s", error.message);
    return tensor;
}
