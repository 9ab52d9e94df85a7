#include "support/models.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/script_transport.h"

uint8_t model_byte(uint32_t seed, uint64_t k) { return (uint8_t)(((k * 2654435761u) >> 13) + k + seed * 37u); }

void model_fill(uint8_t *dst, uint32_t seed, uint64_t from, size_t len) {
    for (size_t k = 0; k < len; k++) dst[k] = model_byte(seed, from + k);
}

int model_tensor_is(const HurrayTensor *tensor, uint64_t size, uint32_t seed) {
    HurrayBufferList *list = NULL;
    HurrayBuffer *buffer = NULL;
    void *data = NULL;
    uint64_t bytes = 0;
    if (hurray_tensor_buffers(tensor, &list) != HURRAY_OK || hurray_buffer_list_get(list, 0, &buffer) != HURRAY_OK) return 0;
    hurray_buffer_data_ptr(buffer, &data);
    hurray_buffer_byte_size(buffer, &bytes);
    if (bytes != size) return 0;
    for (uint64_t k = 0; k < size; k++)
        if (((const uint8_t *)data)[k] != model_byte(seed, k)) return 0;
    return 1;
}

void model_writer_begin(ModelWriter *writer, uint32_t flags) {
    ScriptTransport *script = malloc(sizeof *script);
    HurrayFileWriterOptions options = HURRAY_FILE_WRITER_OPTIONS_INIT;
    assert_non_null(script);
    script_sink(script);
    HurrayTransport transport = script_transport(script);
    options.flags = flags;
    writer->script = script;
    assert_int_equal(hurray_file_writer_new(&transport, &options, &writer->writer), HURRAY_OK);
}

ModelBytes model_writer_end(ModelWriter *writer) {
    ScriptTransport *script = writer->script;
    HurrayKvEntry kv = {.key = "made", .key_len = 4, .value = {.kind = HURRAY_KV_STRING, .data = "here", .data_len = 4}};
    assert_int_equal(hurray_file_writer_finish(writer->writer, &kv, 1), HURRAY_OK);
    ModelBytes bytes = {malloc(script->len), script->len};
    assert_non_null(bytes.bytes);
    memcpy(bytes.bytes, script->bytes, script->len);
    hurray_file_writer_destroy(&writer->writer);
    script_free(script);
    free(script);
    return bytes;
}

ModelBytes model_hrry(const ModelTensor *tensors, size_t count, uint32_t writer_flags) {
    ModelWriter writer;
    model_writer_begin(&writer, writer_flags);
    for (size_t t = 0; t < count; t++) {
        HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
        HurrayDescriptor *descriptor = NULL;
        uint8_t *data = malloc(tensors[t].size ? (size_t)tensors[t].size : 1);
        assert_non_null(data);
        model_fill(data, tensors[t].seed, 0, (size_t)tensors[t].size);
        spec.rank = 1;
        spec.shape = &tensors[t].size;
        spec.element_type = HURRAY_TYPE_UINT8;
        assert_int_equal(hurray_descriptor_new(&spec, NULL, &descriptor, NULL), HURRAY_OK);
        HurrayIoSlice slice = {data, (size_t)tensors[t].size};
        assert_int_equal(hurray_file_writer_write_tensor(writer.writer, tensors[t].name, strlen(tensors[t].name), descriptor, &slice, 1),
                         HURRAY_OK);
        hurray_descriptor_destroy(descriptor);
        free(data);
    }
    return model_writer_end(&writer);
}

ModelBytes model_safetensors(const ModelTensor *tensors, size_t count) {
    size_t room = 64 + count * 160, used = 0;
    uint64_t data = 0;
    char *header = malloc(room);
    assert_non_null(header);
    used += (size_t)snprintf(header, room, "{\"__metadata__\":{\"made\":\"here\"}");
    for (size_t t = 0; t < count; t++) {
        used += (size_t)snprintf(header + used, room - used, ",\"%s\":{\"dtype\":\"U8\",\"shape\":[%llu],\"data_offsets\":[%llu,%llu]}",
                                 tensors[t].name, (unsigned long long)tensors[t].size, (unsigned long long)data,
                                 (unsigned long long)(data + tensors[t].size));
        data += tensors[t].size;
    }
    used += (size_t)snprintf(header + used, room - used, "}");
    ModelBytes bytes = {malloc(8 + used + (size_t)data), 8 + used + (size_t)data};
    assert_non_null(bytes.bytes);
    for (int k = 0; k < 8; k++) bytes.bytes[k] = (uint8_t)((uint64_t)used >> (8 * k));
    memcpy(bytes.bytes + 8, header, used);
    free(header);
    uint8_t *at = bytes.bytes + 8 + used;
    for (size_t t = 0; t < count; t++) {
        model_fill(at, tensors[t].seed, 0, (size_t)tensors[t].size);
        at += tensors[t].size;
    }
    return bytes;
}

void model_free(ModelBytes *bytes) {
    free(bytes->bytes);
    bytes->bytes = NULL;
}

const char *model_save(const ModelBytes *bytes, const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/%s.%d", HURRAY_BINARY_DIR, name, (int)getpid());
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes->bytes, 1, bytes->len, file), bytes->len);
    assert_int_equal(fclose(file), 0);
    return path;
}
