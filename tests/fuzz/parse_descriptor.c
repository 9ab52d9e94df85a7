/* A lone descriptor; what is read is written, and that read again. */
#include "format/descriptor.h"
#include "fuzz.h"

HurrayStatus fuzz_parse(const HurrayTransport *transport, const FuzzInput *input, const HurrayAllocator *allocator, HryCatalogue **out,
                        HurrayError *error) {
    HurrayDescriptor *descriptor = NULL;
    size_t used;
    (void)transport, (void)out;
    HurrayStatus status = hry_descriptor_decode(input->data, input->size, 0, 0, allocator, &used, &descriptor, error);
    if (status != HURRAY_OK) return status;
    size_t len = hry_descriptor_encoded_size(descriptor);
    uint8_t *bytes = malloc(len);
    hry_descriptor_encode(descriptor, bytes);
    HurrayDescriptor *again = NULL;
    HurrayAllocator own = hry_alloc_default();
    HurrayError second;
    if (hry_descriptor_decode(bytes, len, 0, 0, &own, &used, &again, &second) != HURRAY_OK || used != len)
        abort(); /* what we write, we read */
    hry_descriptor_unref(again);
    hry_descriptor_unref(descriptor);
    free(bytes);
    return HURRAY_OK;
}
