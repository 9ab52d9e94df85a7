/* What the device programs share: a model whose every byte can be told from its tensor's number and its offset, and a way to say what
 * failed. */
#ifndef TESTS_DEVICE_GPU_MODEL_H
#define TESTS_DEVICE_GPU_MODEL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hurray.h"
#include "hurray/loader.h"
#include "hurray/transport.h"

/* Never zero in long runs, never the same for two tensors. */
static inline void model_fill(uint8_t *dst, uint64_t tensor, uint64_t size) {
    uint64_t state = (tensor + 1) * 0x9E3779B97F4A7C15u;
    for (uint64_t at = 0; at < size; at += 8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(dst + at, &state, size - at < 8 ? (size_t)(size - at) : 8);
    }
}

/* Tensor i of `count` has sizes[i] bytes and is called t.i. 0: made. */
static inline int model_write(const char *path, const uint64_t *sizes, uint64_t count) {
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayTransport transport;
    HurrayFileWriter *writer = NULL;
    HurrayStatus status = hurray_transport_create(path, NULL, &transport, &error);
    if (status == HURRAY_OK && (status = hurray_file_writer_new_ex(&transport, NULL, &writer, &error)) != HURRAY_OK)
        hurray_transport_release(&transport);
    for (uint64_t i = 0; i < count && status == HURRAY_OK; i++) {
        HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
        HurrayDescriptor *descriptor = NULL;
        char name[24];
        uint8_t *data = malloc(sizes[i]);
        int len = snprintf(name, sizeof name, "t.%llu", (unsigned long long)i);
        spec.element_type = HURRAY_TYPE_UINT8;
        spec.rank = 1;
        spec.shape = &sizes[i];
        status = data ? hurray_descriptor_new(&spec, NULL, &descriptor, &error) : HURRAY_ERR_NO_MEMORY;
        if (status == HURRAY_OK) {
            HurrayIoSlice slice = {data, sizes[i]};
            model_fill(data, i, sizes[i]);
            status = hurray_file_writer_write_tensor(writer, name, (size_t)len, descriptor, &slice, 1);
        }
        hurray_descriptor_destroy(descriptor);
        free(data);
    }
    if (status == HURRAY_OK) status = hurray_file_writer_finish(writer, NULL, 0);
    hurray_file_writer_destroy(&writer);
    if (status != HURRAY_OK) fprintf(stderr, "%s: %s: %s\n", path, hurray_status_name(status), error.message);
    return status == HURRAY_OK ? 0 : 1;
}

/* The first buffer of tensor i of a set; its tensor's number in the model goes to *number. */
static inline HurrayBuffer *model_buffer(HurrayTensorSet *set, uint64_t i, uint64_t *number) {
    const uint8_t *name = NULL;
    size_t len = 0;
    HurrayTensor *tensor = NULL;
    HurrayBufferList *list = NULL;
    HurrayBuffer *buffer = NULL;
    char text[24] = {0};
    hurray_tensor_set_name(set, i, &name, &len);
    if (name && len > 2 && len < sizeof text) memcpy(text, name, len);
    *number = strtoull(text + 2, NULL, 10);
    if (hurray_tensor_set_get(set, i, &tensor) != HURRAY_OK) return NULL;
    hurray_tensor_buffers(tensor, &list);
    hurray_buffer_list_get(list, 0, &buffer);
    return buffer;
}

#endif
