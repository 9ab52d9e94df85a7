/* File in, names and one tensor out: the shortest reader, over a caller's own read_at and size callbacks. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hurray.h"
#include "hurray/transport.h"

/* One absolute range. A positional read keeps no cursor, which is why re-issuing a
   failed request reads the same bytes rather than resuming somewhere else. */
static HurrayStatus file_read_at(void *ctx, uint64_t offset, uint8_t *dst, size_t len,
                                 size_t *out_filled) {
    ssize_t n = pread(*(int *)ctx, dst, len, (off_t)offset);
    if (n < 0) { *out_filled = 0; return HURRAY_ERR_TRANSPORT; }  /* moved nothing */
    *out_filled = (size_t)n;  /* short is normal; 0 means the file is truncated */
    return HURRAY_OK;
}

/* Asked once, at open: a container is located from its end. */
static HurrayStatus file_size(void *ctx, uint64_t *out_size) {
    struct stat st;
    if (fstat(*(int *)ctx, &st) != 0) { return HURRAY_ERR_TRANSPORT; }
    *out_size = (uint64_t)st.st_size;
    return HURRAY_OK;
}

static int read_model(void) {
int fd = open("model.hrry", O_RDONLY);
HurrayTransport transport = { .ctx = &fd, .read_at = file_read_at, .size = file_size };

HurrayFileReader *reader = NULL;
if (hurray_file_reader_new(&transport, &reader) != HURRAY_OK) return -1;

/* The names come from the footer index, so listing them reads no tensor data. */
uint64_t count = 0;
hurray_file_reader_tensor_count(reader, &count);
for (uint64_t i = 0; i < count; i++) {
    const uint8_t *name = NULL;
    size_t name_len = 0;
    hurray_file_reader_tensor_name(reader, i, &name, &name_len);  /* borrowed, no NUL */
    printf("%.*s\n", (int)name_len, (const char *)name);
}

/* One tensor by name; the bytes of every other tensor stay on disk. */
const char *want = "embeddings";
HurrayTensor *tensor = NULL;
HurrayStatus s = hurray_file_reader_read_tensor(
    reader, (const uint8_t *)want, strlen(want), &tensor);
if (s == HURRAY_ERR_NOT_FOUND) {
    /* The file is fine — that name is simply not in it, and the reader stays usable. */
} else if (s == HURRAY_OK) {
    HurrayBufferList *buffers = NULL;   /* borrowed — do not destroy */
    hurray_tensor_buffers(tensor, &buffers);
    /* ... hand the buffers to your kernels ... */
    hurray_tensor_destroy(&tensor);     /* one call frees descriptor and buffers */
}

hurray_file_reader_destroy(&reader);
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

static int make_model(void) {
    static const float data[32] = {1, 2, 3};
    const HurrayIoSlice slice = {data, sizeof data};
    HurrayTransport transport;
    HurrayFileWriter *writer = NULL;
    HurrayDescriptor *descriptor = matrix();
    if (!descriptor || hurray_transport_create("model.hrry", NULL, &transport, NULL) != HURRAY_OK) return 0;
    int good = hurray_file_writer_new(&transport, NULL, &writer) == HURRAY_OK &&
               hurray_file_writer_write_tensor(writer, "embeddings", 10, descriptor, &slice, 1) == HURRAY_OK &&
               hurray_file_writer_write_tensor(writer, "head", 4, descriptor, &slice, 1) == HURRAY_OK &&
               hurray_file_writer_finish(writer, NULL, 0) == HURRAY_OK;
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    return good;
}

int main(void) {
    char folder[] = "sample_XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    int good = make_model() && read_model() == 0;
    unlink("model.hrry");
    if (chdir("..") != 0 || rmdir(folder) != 0) return 1;
    return good ? 0 : 1;
}
