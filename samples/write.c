/* Writes a file with a tensor, a weight split over two ranks (a composite) and metadata; then reads it back. */
#include <stdio.h>
#include <string.h>

#include "hurray.h"
#include "hurray/transport.h"

#define PATH "sample_write.hrry"

static HurrayError error = HURRAY_ERROR_INIT;

/* A float32 matrix; parent and offset say where it lies in a greater one, or are NULL. */
static HurrayDescriptor *matrix(uint64_t rows, uint64_t columns, const uint64_t *parent, const uint64_t *offset) {
    const uint64_t shape[2] = {rows, columns};
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayBufferHandle handles[1];
    size_t count = 1;
    HurrayDescriptor *descriptor = NULL;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.rank = 2;
    spec.shape = shape;
    if (parent) {
        shard.parent_shape = parent;
        shard.offset = offset;
        spec.shard = &shard;
    }
    if (hurray_descriptor_plan_buffers(&spec, handles, &count, &error) != HURRAY_OK) return NULL;
    spec.buffers = handles;
    spec.buffer_count = (uint32_t)count;
    return hurray_descriptor_new(&spec, NULL, &descriptor, &error) == HURRAY_OK ? descriptor : NULL;
}

static HurrayDescriptor *partition_head(const uint64_t *shape, uint32_t members) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayDescriptor *descriptor = NULL;
    layout.tag = HURRAY_LAYOUT_COMPOSITE;
    layout.rule = HURRAY_RULE_PARTITION;
    layout.member_count = members;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.rank = 2;
    spec.shape = shape;
    spec.layout = &layout;
    return hurray_descriptor_new(&spec, NULL, &descriptor, &error) == HURRAY_OK ? descriptor : NULL;
}

static int write_all(void) {
    static const uint64_t whole[2] = {4, 6}, left_at[2] = {0, 0}, right_at[2] = {0, 2};
    static float bias[3] = {0.5f, -1.0f, 2.0f}, left[8], right[16];
    for (int i = 0; i < 8; i++) left[i] = (float)i;
    for (int i = 0; i < 16; i++) right[i] = (float)(100 + i);

    HurrayDescriptor *one = matrix(1, 3, NULL, NULL), *head = partition_head(whole, 2);
    HurrayDescriptor *a = matrix(4, 2, whole, left_at), *b = matrix(4, 4, whole, right_at);
    HurrayIoSlice bias_bytes = {bias, sizeof bias}, left_bytes = {left, sizeof left}, right_bytes = {right, sizeof right};
    const HurrayCompositeNode tree[3] = {
        {.kind = HURRAY_NODE_COMPOSITE, .member_count = 2, .name = "weight", .name_len = 6, .descriptor = head},
        {.kind = HURRAY_NODE_TENSOR, .descriptor = a, .slices = &left_bytes, .slice_count = 1}, /* named weight.0 */
        {.kind = HURRAY_NODE_TENSOR, .descriptor = b, .slices = &right_bytes, .slice_count = 1},
    };
    const HurrayKvEntry kv[2] = {
        {.key = "producer", .key_len = 8, .value = {.kind = HURRAY_KV_STRING, .data = "sample", .data_len = 6}},
        {.key = "layers", .key_len = 6, .value = {.kind = HURRAY_KV_UINT64, .u64 = 1}},
    };
    HurrayTransport transport;
    HurrayFileWriter *writer = NULL;
    HurrayStatus status = one && head && a && b ? hurray_transport_create(PATH, NULL, &transport, &error) : error.code;
    if (status == HURRAY_OK) {
        status = hurray_file_writer_new_ex(&transport, NULL, &writer, &error);
        if (status != HURRAY_OK) hurray_transport_release(&transport);
    }
    if (status == HURRAY_OK) {
        status = hurray_file_writer_write_tensor(writer, "bias", 4, one, &bias_bytes, 1);
        if (status == HURRAY_OK) status = hurray_file_writer_write_composite(writer, tree, 3);
        if (status == HURRAY_OK) status = hurray_file_writer_finish(writer, kv, 2); /* only now the file appears under its name */
        if (status != HURRAY_OK) error = *hurray_file_writer_last_error(writer);
    }
    hurray_file_writer_destroy(&writer);
    HurrayDescriptor *all[] = {one, head, a, b};
    for (int i = 0; i < 4; i++) hurray_descriptor_destroy(all[i]);
    return status == HURRAY_OK;
}

static int read_back(void) {
    HurrayTransport transport;
    HurrayFileReader *reader = NULL;
    HurrayItem *item = NULL;
    HurrayKvEntry entry;
    uint64_t tensors = 0, nodes = 0;
    if (hurray_transport_file(PATH, NULL, &transport, &error) != HURRAY_OK) return 0;
    if (hurray_file_reader_new_ex(&transport, NULL, &reader, &error) != HURRAY_OK) {
        hurray_transport_release(&transport);
        return 0;
    }
    int good = hurray_file_reader_tensor_count(reader, &tensors) == HURRAY_OK && tensors == 4 &&
               hurray_file_reader_kv_find(reader, "layers", 6, &entry) == HURRAY_OK && entry.value.u64 == 1 &&
               hurray_file_reader_read_composite(reader, "weight", 6, &item) == HURRAY_OK &&
               hurray_item_node_count(item, &nodes) == HURRAY_OK && nodes == 3;
    for (uint64_t i = 1; good && i < nodes; i++) { /* node 0 is the head */
        HurrayItemNode node;
        HurrayBufferList *list = NULL;
        HurrayBuffer *buffer = NULL;
        void *data = NULL;
        hurray_item_node(item, i, &node);
        hurray_tensor_buffers(node.tensor, &list);
        hurray_buffer_list_get(list, 0, &buffer);
        hurray_buffer_data_ptr(buffer, &data);
        printf("%.*s begins with %g\n", (int)node.name_len, (const char *)node.name, (double)((float *)data)[0]);
        good = ((float *)data)[0] == (i == 1 ? 0.0f : 100.0f);
    }
    if (!good) error = *hurray_file_reader_last_error(reader);
    hurray_item_destroy(&item);
    hurray_file_reader_destroy(&reader);
    return good;
}

int main(void) {
    if (write_all() && read_back()) return 0;
    fprintf(stderr, "%s: %s %s\n", PATH, error.tensor, error.message);
    return 1;
}
