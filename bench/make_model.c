/* make_model FILE BYTES COUNT: a .hrry (or, by its name, .safetensors) file of COUNT uint8 tensors with BYTES in all, random contents. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hurray.h"
#include "hurray/transport.h"

static uint64_t state = 88172645463325252u;
static void fill(uint8_t *dst, size_t len) {
    for (size_t at = 0; at < len; at += 8) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        memcpy(dst + at, &state, len - at < 8 ? len - at : 8);
    }
}

static int write_hrry(const char *path, uint64_t each, uint64_t count, uint8_t *data) {
    HurrayTransport transport;
    HurrayFileWriter *writer = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayDescriptor *descriptor = NULL;
    HurrayIoSlice slice = {data, each};
    char name[32];
    spec.rank = 1;
    spec.shape = &each;
    spec.element_type = HURRAY_TYPE_UINT8;
    if (hurray_transport_create(path, NULL, &transport, &error) != HURRAY_OK ||
        hurray_file_writer_new_ex(&transport, NULL, &writer, &error) != HURRAY_OK ||
        hurray_descriptor_new(&spec, NULL, &descriptor, &error) != HURRAY_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    for (uint64_t t = 0; t < count; t++) {
        fill(data, each);
        int len = snprintf(name, sizeof name, "tensor.%" PRIu64, t);
        if (hurray_file_writer_write_tensor(writer, name, (size_t)len, descriptor, &slice, 1) != HURRAY_OK) return 1;
    }
    if (hurray_file_writer_finish(writer, NULL, 0) != HURRAY_OK) return 1;
    hurray_file_writer_destroy(&writer);
    return hurray_descriptor_destroy(descriptor);
}

static int write_safetensors(const char *path, uint64_t each, uint64_t count, uint8_t *data) {
    FILE *file = fopen(path, "wb");
    char *header = malloc(count * 100 + 16);
    size_t used = 0;
    if (!file || !header) return 1;
    for (uint64_t t = 0; t < count; t++)
        used += (size_t)sprintf(
            header + used, "%c\"tensor.%" PRIu64 "\":{\"dtype\":\"U8\",\"shape\":[%" PRIu64 "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
            t ? ',' : '{', t, each, t * each, (t + 1) * each);
    header[used++] = '}';
    uint64_t length = used;
    fwrite(&length, 8, 1, file);
    fwrite(header, 1, used, file);
    for (uint64_t t = 0; t < count; t++) fill(data, each), fwrite(data, 1, each, file);
    free(header);
    return fclose(file);
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: make_model FILE BYTES COUNT\n"), 2;
    uint64_t count = strtoull(argv[3], NULL, 10), each = strtoull(argv[2], NULL, 10) / (count ? count : 1);
    uint8_t *data = malloc(each ? each : 1);
    if (!data) return 3;
    size_t len = strlen(argv[1]);
    return len > 12 && strcmp(argv[1] + len - 12, ".safetensors") == 0 ? write_safetensors(argv[1], each, count, data)
                                                                       : write_hrry(argv[1], each, count, data);
}
