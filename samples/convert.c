/* Converts any file that the loader opens to .hrry in bounded memory: piece by piece, however large a tensor is. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hurray/loader.h"
#include "hurray/transport.h"

static HurrayError error = HURRAY_ERROR_INIT;
static unsigned char piece[1 << 20];

static HurrayStatus copy_buffer(HurrayLoader *loader, HurrayFileWriter *writer, uint64_t i, uint32_t buffer, uint64_t size) {
    HurrayStatus status = HURRAY_OK;
    for (uint64_t at = 0; at < size && status == HURRAY_OK;) {
        size_t len = size - at < sizeof piece ? (size_t)(size - at) : sizeof piece;
        status = hurray_loader_read_bytes(loader, i, buffer, at, piece, len);
        if (status != HURRAY_OK) error = *hurray_loader_last_error(loader);
        if (status == HURRAY_OK && (status = hurray_file_writer_append(writer, piece, len)) != HURRAY_OK)
            error = *hurray_file_writer_last_error(writer);
        at += len;
    }
    return status;
}

static HurrayStatus copy_tensor(HurrayLoader *loader, HurrayFileWriter *writer, uint64_t i) {
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    HurrayStatus status = hurray_loader_tensor_info(loader, i, &info);
    if (status != HURRAY_OK) error = *hurray_loader_last_error(loader);
    if (status == HURRAY_OK && info.fault) {
        error = *info.fault;
        status = error.code;
    }
    if (status != HURRAY_OK) return status;
    status = hurray_file_writer_begin_tensor(writer, info.name, info.name_len, info.descriptor);
    HurrayBufferHandle handles[255];
    uint32_t count = 0;
    hurray_descriptor_buffer_count(info.descriptor, &count);
    for (uint32_t b = 0; b < count; b++) hurray_descriptor_buffer(info.descriptor, b, &handles[b]); /* info ends with the next call */
    for (uint32_t b = 0; b < count && status == HURRAY_OK; b++) {
        status = copy_buffer(loader, writer, i, b, handles[b].byte_size);
        if (status != HURRAY_OK) return status;
    }
    if (status == HURRAY_OK) status = hurray_file_writer_end_tensor(writer);
    if (status != HURRAY_OK) error = *hurray_file_writer_last_error(writer);
    return status;
}

static HurrayStatus copy_all(HurrayLoader *loader, HurrayFileWriter *writer) {
    uint64_t tensors = 0, entries = 0;
    hurray_loader_tensor_count(loader, &tensors);
    hurray_loader_kv_count(loader, &entries);
    for (uint64_t i = 0; i < tensors; i++) {
        HurrayStatus status = copy_tensor(loader, writer, i);
        if (status != HURRAY_OK) return status;
    }
    HurrayKvEntry *kv = calloc((size_t)entries + 1, sizeof *kv);
    if (!kv) return HURRAY_ERR_NO_MEMORY;
    for (uint64_t i = 0; i < entries; i++) hurray_loader_kv_entry(loader, i, &kv[i]);
    HurrayStatus status = hurray_file_writer_finish(writer, kv, (size_t)entries);
    if (status != HURRAY_OK) error = *hurray_file_writer_last_error(writer);
    free(kv);
    return status;
}

static HurrayStatus convert(const char *in, const char *out) {
    HurrayLoader *loader = NULL;
    HurrayFileWriter *writer = NULL;
    HurrayTransport transport;
    HurrayStatus status = hurray_loader_open(in, NULL, &loader, &error);
    if (status == HURRAY_OK) status = hurray_transport_create(out, NULL, &transport, &error);
    if (status == HURRAY_OK && (status = hurray_file_writer_new_ex(&transport, NULL, &writer, &error)) != HURRAY_OK)
        hurray_transport_release(&transport);
    if (status == HURRAY_OK) status = copy_all(loader, writer);
    hurray_file_writer_destroy(&writer); /* without finish nothing appears under the name `out` */
    hurray_loader_destroy(&loader);
    return status;
}

/* A small safetensors file, as another program would leave it. */
static int make_input(const char *path) {
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                                 "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[16,20]}}  ";
    const float a[4] = {1, 2, 3, 4};
    const uint8_t b[4] = {9, 8, 7, 6}, length[8] = {sizeof header - 1};
    FILE *file = fopen(path, "wb");
    if (!file) return 0;
    fwrite(length, 1, sizeof length, file);
    fwrite(header, 1, sizeof header - 1, file);
    fwrite(a, 1, sizeof a, file);
    fwrite(b, 1, sizeof b, file);
    return fclose(file) == 0;
}

static int check_output(const char *path) {
    HurrayLoader *loader = NULL;
    uint64_t i = 0;
    float a[4] = {0};
    int good = hurray_loader_open(path, NULL, &loader, &error) == HURRAY_OK && hurray_loader_find(loader, "a", 1, &i) == HURRAY_OK &&
               hurray_loader_read_bytes(loader, i, 0, 0, a, sizeof a) == HURRAY_OK && a[0] == 1 && a[3] == 4;
    hurray_loader_destroy(&loader);
    return good;
}

int main(int argc, char **argv) {
    const char *in = argc == 3 ? argv[1] : "sample_convert.safetensors", *out = argc == 3 ? argv[2] : "sample_convert.hrry";
    if (argc != 3 && !make_input(in)) return 1;
    if (convert(in, out) != HURRAY_OK) {
        fprintf(stderr, "%s: %s %s\n", in, error.tensor, error.message);
        return 1;
    }
    return argc == 3 || check_output(out) ? 0 : 1;
}
