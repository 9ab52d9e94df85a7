/* Contents are as untrusted as what describes them: their rules, their dense view, single elements, GGML blocks in the format's own
 * quantization. */
#include <string.h>

#include "fuzz.h"
#include "hurray/dense.h"
#include "hurray/import.h"

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
    if (fuzz_checked(hurray_dense_size(descriptor, type, &bytes, &error), &error) != HURRAY_OK || bytes > FUZZ_MOST_BYTES) return;
    uint8_t *dense = malloc(bytes ? (size_t)bytes : 1);
    HurrayStatus status = hurray_item_dense(item, node, type, dense, (size_t)bytes, &error);
    if (fuzz_checked(status, &error) == HURRAY_OK && type == HURRAY_TYPE_FLOAT32 && bytes) {
        compare_element(item, node, descriptor, false, dense);
        compare_element(item, node, descriptor, true, dense + bytes - 4);
    }
    free(dense);
}

void fuzz_see_tensor(const HurrayTensor *tensor, const HurrayAllocator *allocator) {
    HurrayTensor *native = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    fuzz_checked(hurray_tensor_verify(tensor, &error), &error);
    fuzz_checked(hurray_tensor_from_ggml(tensor, allocator, &native, &error), &error);
    hurray_tensor_destroy(&native);
}

void fuzz_see_item(const HurrayItem *item, const HurrayAllocator *allocator) {
    uint64_t count = 0;
    hurray_item_node_count(item, &count);
    for (uint64_t i = 0; i < count && i < 16; i++) {
        HurrayItemNode node;
        const HurrayDescriptor *descriptor = NULL;
        hurray_item_node(item, i, &node);
        hurray_tensor_descriptor(node.tensor, &descriptor);
        fuzz_see_tensor(node.tensor, allocator);
        see_dense(item, i, descriptor, 0);
        see_dense(item, i, descriptor, HURRAY_TYPE_FLOAT32);
    }
}
