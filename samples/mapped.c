/* Reads a tensor without copying it: the buffer lies in the mapped file and outlives the reader. */
#include <stdio.h>
#include <string.h>

#include "hurray.h"
#include "hurray/destination.h"
#include "hurray/transport.h"

#define PATH "sample_mapped.hrry"
#define COUNT 1000

static HurrayError error = HURRAY_ERROR_INIT;

static int write_file(void) {
    static float data[COUNT];
    const uint64_t shape[1] = {COUNT};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayBufferHandle handle;
    size_t count = 1;
    HurrayDescriptor *descriptor = NULL;
    HurrayTransport transport;
    HurrayFileWriter *writer = NULL;
    for (int i = 0; i < COUNT; i++) data[i] = (float)i;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.rank = 1;
    spec.shape = shape;
    if (hurray_descriptor_plan_buffers(&spec, &handle, &count, &error) != HURRAY_OK) return 0;
    spec.buffers = &handle;
    spec.buffer_count = 1;
    if (hurray_descriptor_new(&spec, NULL, &descriptor, &error) != HURRAY_OK) return 0;
    HurrayStatus status = hurray_transport_create(PATH, NULL, &transport, &error);
    if (status == HURRAY_OK) {
        status = hurray_file_writer_new_ex(&transport, NULL, &writer, &error);
        if (status != HURRAY_OK) hurray_transport_release(&transport);
    }
    HurrayIoSlice slice = {data, sizeof data};
    if (status == HURRAY_OK) status = hurray_file_writer_write_tensor(writer, "t", 1, descriptor, &slice, 1);
    if (status == HURRAY_OK) status = hurray_file_writer_finish(writer, NULL, 0);
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    return status == HURRAY_OK;
}

/* Transport and destination see the same mapping; it lives as long as a buffer in it. */
static HurrayTensor *mapped_tensor(const char *path, const char *name) {
    HurrayTransport transport;
    HurrayDestinationAlloc destination = HURRAY_DESTINATION_ALLOC_INIT;
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    HurrayFileReader *reader = NULL;
    HurrayTensor *tensor = NULL;
    if (hurray_transport_mapped(path, NULL, &transport, &error) != HURRAY_OK) return NULL;
    HurrayStatus status = hurray_destination_in_place(&transport, &destination, &error);
    if (status != HURRAY_OK) {
        hurray_transport_release(&transport);
        return NULL;
    }
    options.destination = &destination;
    status = hurray_file_reader_new_ex(&transport, &options, &reader, &error);
    if (status != HURRAY_OK) hurray_transport_release(&transport);
    hurray_destination_release(&destination); /* the reader, if there is one, has a hold of its own */
    if (status != HURRAY_OK) return NULL;
    if (hurray_file_reader_read_tensor(reader, name, strlen(name), &tensor) != HURRAY_OK) error = *hurray_file_reader_last_error(reader);
    hurray_file_reader_destroy(&reader);
    return tensor;
}

int main(void) {
    HurrayTensor *tensor = write_file() ? mapped_tensor(PATH, "t") : NULL;
    if (!tensor) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    HurrayBufferList *list = NULL;
    HurrayBuffer *buffer = NULL;
    uint32_t flags = 0;
    void *data = NULL;
    hurray_tensor_buffers(tensor, &list);
    hurray_buffer_list_get(list, 0, &buffer);
    hurray_buffer_flags(buffer, &flags);
    hurray_buffer_data_ptr(buffer, &data);
    const float *values = data;
    int in_place = (flags & HURRAY_BUFFER_IN_PLACE) != 0, good = in_place && values[0] == 0.0f && values[COUNT - 1] == (float)(COUNT - 1);
    printf("%s, last value %g\n", in_place ? "in place" : "copied", (double)values[COUNT - 1]);
    hurray_tensor_destroy(&tensor);
    return good ? 0 : 1;
}
