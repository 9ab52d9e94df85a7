/* A stream's items with their contents, which are as untrusted as what describes them: their rules, their dense view, single elements,
 * GGML blocks in the format's own quantization. */
#include <string.h>

#include "fuzz.h"
#include "hurray/dense.h"
#include "hurray/import.h"

#define MOST_BYTES (1u << 18) /* of a tensor and of a dense view */

static HurrayStatus read_next(void *ctx, uint8_t *dst, size_t len, size_t *filled) {
    FuzzInput *input = ctx;
    size_t left = input->size - input->position;
    *filled = len < left ? len : left;
    if (*filled) memcpy(dst, input->data + input->position, *filled);
    input->position += *filled;
    return HURRAY_OK;
}

/* The element at the first or the last index is the dense view's. */
static void compare_element(const HurrayItem *item, uint64_t node, const HurrayDescriptor *descriptor, bool last, const uint8_t *dense) {
    uint64_t index[64] = {0};
    size_t rank = 64;
    uint8_t element[4];
    HurrayError error = HURRAY_ERROR_INIT;
    hurray_descriptor_shape(descriptor, index, &rank);
    for (size_t d = 0; d < rank; d++) index[d] = last ? index[d] - 1 : 0;
    HurrayStatus status = hurray_item_element(item, node, index, (uint32_t)rank, HURRAY_TYPE_FLOAT32, element, sizeof element, &error);
    if (fuzz_checked(status, &error) != HURRAY_ERR_NO_MEMORY && (status != HURRAY_OK || memcmp(element, dense, sizeof element) != 0))
        abort();
}

static void see_dense(const HurrayItem *item, uint64_t node, const HurrayDescriptor *descriptor, uint8_t type) {
    uint64_t bytes = 0;
    HurrayError error = HURRAY_ERROR_INIT;
    if (fuzz_checked(hurray_dense_size(descriptor, type, &bytes, &error), &error) != HURRAY_OK || bytes > MOST_BYTES) return;
    uint8_t *dense = malloc(bytes ? (size_t)bytes : 1);
    HurrayStatus status = hurray_item_dense(item, node, type, dense, (size_t)bytes, &error);
    if (fuzz_checked(status, &error) == HURRAY_OK && type == HURRAY_TYPE_FLOAT32 && bytes) {
        compare_element(item, node, descriptor, false, dense);
        compare_element(item, node, descriptor, true, dense + bytes - 4);
    }
    free(dense);
}

static void see_item(const HurrayItem *item, const HurrayAllocator *allocator) {
    uint64_t count = 0;
    hurray_item_node_count(item, &count);
    for (uint64_t i = 0; i < count && i < 16; i++) {
        HurrayItemNode node;
        const HurrayDescriptor *descriptor = NULL;
        HurrayTensor *native = NULL;
        HurrayError error = HURRAY_ERROR_INIT;
        hurray_item_node(item, i, &node);
        hurray_tensor_descriptor(node.tensor, &descriptor);
        fuzz_checked(hurray_tensor_verify(node.tensor, &error), &error);
        see_dense(item, i, descriptor, 0);
        see_dense(item, i, descriptor, HURRAY_TYPE_FLOAT32);
        fuzz_checked(hurray_tensor_from_ggml(node.tensor, allocator, &native, &error), &error);
        hurray_tensor_destroy(&native);
    }
}

HurrayStatus fuzz_parse(const HurrayTransport *transport, const FuzzInput *input, const HurrayAllocator *allocator, HryCatalogue **out,
                        HurrayError *error) {
    FuzzInput cursor = *input;
    HurrayTransport reads = {.ctx = &cursor, .read = read_next, .struct_size = sizeof reads};
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    HurrayReader *reader = NULL;
    (void)transport, (void)out;
    options.max_descriptor_bytes = options.max_buffer_bytes = options.max_tensor_bytes = MOST_BYTES;
    options.allocator = allocator;
    HurrayStatus status = hurray_reader_new_ex(&reads, &options, &reader, error);
    for (uint32_t i = 0; i < 64 && status == HURRAY_OK; i++) {
        HurrayItem *item = NULL;
        status = hurray_reader_next_item(reader, &item);
        if (status == HURRAY_OK)
            see_item(item, allocator);
        else if (status != HURRAY_END_OF_STREAM)
            *error = *hurray_reader_last_error(reader);
        hurray_item_destroy(&item);
    }
    hurray_reader_destroy(&reader);
    return status == HURRAY_END_OF_STREAM ? HURRAY_OK : status;
}
