/* Transport in, file out: the shortest writer, over a caller's own write callback. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hurray.h"
#include "hurray/transport.h"

static HurrayStatus file_write(void *ctx, const uint8_t *src, size_t len,
                               size_t *out_written) {
    ssize_t n = write(*(int *)ctx, src, len);
    if (n < 0) { *out_written = 0; return HURRAY_ERR_TRANSPORT; }
    *out_written = (size_t)n;  /* never 0 on success: that means the sink is closed */
    return HURRAY_OK;
}

static int write_model(HurrayDescriptor *descriptor, const void *data, size_t data_len) {
int fd = open("model.hrry", O_WRONLY | O_CREAT | O_TRUNC, 0644);
/* A writer needs no range reads: it emits one forward pass. */
HurrayTransport transport = { .ctx = &fd, .write = file_write };

HurrayFileWriter *writer = NULL;
/* NULL options: 4096-byte data alignment, index in write order. The 64-byte header
   goes out during this call. */
if (hurray_file_writer_new(&transport, NULL, &writer) != HURRAY_OK) return -1;

const char *name = "embeddings";
HurrayIoSlice payload = { .ptr = data, .len = data_len };
if (hurray_file_writer_write_tensor(writer, (const uint8_t *)name, strlen(name),
                                    descriptor, &payload, 1) != HURRAY_OK) {
    /* A failed file write ends the file: the writer is poisoned, and the recovery is
       to write the file again from the start, not to retry this tensor. */
    hurray_file_writer_destroy(&writer);
    return -1;
}

/* KV values are borrowed, and the same struct a reader hands back — so copying one
   file's metadata into another needs no transcription. */
const char *producer = "cookbook";
HurrayKvEntry kv[1] = {{
    .key = (const uint8_t *)"producer",
    .key_len = 8,
    .value = { .kind = HURRAY_KV_STRING,
               .data = (const uint8_t *)producer,
               .data_len = 8 },
}};

/* Until this returns, the bytes on disk are not a container: the index is written here. */
hurray_file_writer_finish(writer, kv, 1);
hurray_file_writer_destroy(&writer);
close(fd);
return 0;
}

static HurrayDescriptor *matrix(void) {
    static const uint64_t shape[2] = {4, 8};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayBufferHandle handle;
    size_t count = 1;
    HurrayDescriptor *descriptor = NULL;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.rank = 2;
    spec.shape = shape;
    if (hurray_descriptor_plan_buffers(&spec, &handle, &count, NULL) != HURRAY_OK) return NULL;
    spec.buffers = &handle;
    spec.buffer_count = 1;
    return hurray_descriptor_new(&spec, NULL, &descriptor, NULL) == HURRAY_OK ? descriptor : NULL;
}

static int is_whole(const float *data) {
    HurrayTransport transport;
    HurrayFileReader *reader = NULL;
    HurrayTensor *tensor = NULL;
    HurrayKvEntry entry;
    HurrayBufferList *list = NULL;
    HurrayBuffer *buffer = NULL;
    void *bytes = NULL;
    if (hurray_transport_file("model.hrry", NULL, &transport, NULL) != HURRAY_OK) return 0;
    if (hurray_file_reader_new(&transport, &reader) != HURRAY_OK) return 0;
    int good = hurray_file_reader_read_tensor(reader, "embeddings", 10, &tensor) == HURRAY_OK &&
               hurray_file_reader_kv_find(reader, "producer", 8, &entry) == HURRAY_OK && memcmp(entry.value.data, "cookbook", 8) == 0 &&
               hurray_tensor_buffers(tensor, &list) == HURRAY_OK && hurray_buffer_list_get(list, 0, &buffer) == HURRAY_OK &&
               hurray_buffer_data_ptr(buffer, &bytes) == HURRAY_OK && memcmp(bytes, data, 32 * sizeof *data) == 0;
    hurray_tensor_destroy(&tensor);
    hurray_file_reader_destroy(&reader);
    return good;
}

int main(void) {
    static float data[32];
    char folder[] = "sample_XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    for (int i = 0; i < 32; i++) data[i] = (float)i;
    HurrayDescriptor *descriptor = matrix();
    int good = descriptor && write_model(descriptor, data, sizeof data) == 0 && is_whole(data);
    hurray_descriptor_destroy(descriptor);
    unlink("model.hrry");
    if (chdir("..") != 0 || rmdir(folder) != 0) return 1;
    puts(good ? "written and read back" : "failed");
    return good ? 0 : 1;
}
