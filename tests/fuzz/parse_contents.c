/* A stream's items with their contents, by the blocking reader. */
#include <string.h>

#include "fuzz.h"

static HurrayStatus read_next(void *ctx, uint8_t *dst, size_t len, size_t *filled) {
    FuzzInput *input = ctx;
    size_t left = input->size - input->position;
    *filled = len < left ? len : left;
    if (*filled) memcpy(dst, input->data + input->position, *filled);
    input->position += *filled;
    return HURRAY_OK;
}

HurrayStatus fuzz_parse(const HurrayTransport *transport, const FuzzInput *input, const HurrayAllocator *allocator, HryCatalogue **out,
                        HurrayError *error) {
    FuzzInput cursor = *input;
    HurrayTransport reads = {.ctx = &cursor, .read = read_next, .struct_size = sizeof reads};
    HurrayReaderOptions options = HURRAY_READER_OPTIONS_INIT;
    HurrayReader *reader = NULL;
    (void)transport, (void)out;
    options.max_descriptor_bytes = options.max_buffer_bytes = options.max_tensor_bytes = FUZZ_MOST_BYTES;
    options.allocator = allocator;
    HurrayStatus status = hurray_reader_new_ex(&reads, &options, &reader, error);
    for (uint32_t i = 0; i < 64 && status == HURRAY_OK; i++) {
        HurrayItem *item = NULL;
        status = hurray_reader_next_item(reader, &item);
        if (status == HURRAY_OK)
            fuzz_see_item(item, allocator);
        else if (status != HURRAY_END_OF_STREAM)
            *error = *hurray_reader_last_error(reader);
        hurray_item_destroy(&item);
    }
    hurray_reader_destroy(&reader);
    return status == HURRAY_END_OF_STREAM ? HURRAY_OK : status;
}
