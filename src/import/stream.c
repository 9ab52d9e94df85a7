#include "import/model.h"

#include <string.h>

#include "base/checked.h"
#include "driver/transport_call.h"

#define GUESS 1024u /* read at once: most descriptors fit */

typedef struct Walk {
    const HurrayTransport *transport;
    const HryLimits *limits;
    const HurrayAllocator *allocator;
    uint64_t size;
    HryCatalogue *catalogue;
    uint8_t *bytes; /* of descriptors that are longer than the guess */
    size_t capacity;
} Walk;

/* The descriptor at `offset`, and the bytes of it. */
static HurrayStatus read_descriptor(Walk *walk, uint64_t offset, uint32_t *length, HurrayDescriptor **out, HurrayError *error) {
    uint8_t guess[GUESS];
    const uint8_t *bytes = guess;
    size_t have = walk->size - offset < GUESS ? (size_t)(walk->size - offset) : GUESS, used;
    if (have < HRY_DESCRIPTOR_PREFIX)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, walk->size, "the stream ends at byte %llu, inside the descriptor at byte %llu",
                        (unsigned long long)walk->size, (unsigned long long)offset);
    HurrayStatus status = hry_transport_read_exactly(walk->transport, offset, guess, have, error);
    if (status == HURRAY_OK) status = hry_descriptor_prefix(guess, have, offset, length, error);
    if (status != HURRAY_OK) return status;
    if (*length > walk->limits->max_descriptor_bytes)
        return hry_fail(error, HURRAY_ERR_LIMIT, "max_descriptor_bytes", offset,
                        "the descriptor has %u bytes, more than the option max_descriptor_bytes allows (%llu)", (unsigned)*length,
                        (unsigned long long)walk->limits->max_descriptor_bytes);
    if (*length > walk->size - offset)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, walk->size, "the stream ends at byte %llu, inside the descriptor at byte %llu",
                        (unsigned long long)walk->size, (unsigned long long)offset);
    if (*length > have) {
        if (!hry_grow(walk->allocator, (void **)&walk->bytes, &walk->capacity, *length, 1))
            return hry_fail_memory(error, "a descriptor", *length);
        memcpy(walk->bytes, guess, have);
        status = hry_transport_read_exactly(walk->transport, offset + have, walk->bytes + have, *length - have, error);
        if (status != HURRAY_OK) return status;
        bytes = walk->bytes;
    }
    return hry_descriptor_decode(bytes, *length, offset, 0, walk->allocator, &used, out, error);
}

/* One tensor; *offset goes to the next. */
static HurrayStatus add_tensor(Walk *walk, uint64_t *offset, HurrayError *error) {
    HurrayDescriptor *descriptor = NULL;
    uint32_t length = 0;
    uint64_t total = 0;
    HurrayStatus status = read_descriptor(walk, *offset, &length, &descriptor, error);
    if (status != HURRAY_OK) return status;
    bool fits = true;
    for (uint32_t k = 0; k < descriptor->buffer_count && fits; k++) fits = hry_add_u64(total, descriptor->buffers[k].byte_size, &total);
    uint64_t data = *offset + length;
    if (!fits || !hry_range_inside(data, total, walk->size))
        status = hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, walk->size,
                          "the stream ends at byte %llu, inside the buffers that begin at byte %llu", (unsigned long long)walk->size,
                          (unsigned long long)data);
    else if (total > walk->limits->max_tensor_bytes)
        status = hry_fail(error, HURRAY_ERR_LIMIT, "max_tensor_bytes", *offset,
                          "the tensor has %llu bytes, more than the option max_tensor_bytes allows (%llu)", (unsigned long long)total,
                          (unsigned long long)walk->limits->max_tensor_bytes);
    else if (walk->catalogue->entry_count >= walk->limits->max_tensors)
        status =
            hry_fail(error, HURRAY_ERR_LIMIT, "max_tensors", *offset, "there are more tensors than the option max_tensors allows (%llu)",
                     (unsigned long long)walk->limits->max_tensors);
    HryEntry entry = {
        .descriptor_offset = *offset, .descriptor_length = length, .data_offset = data, .data_length = total, .descriptor = descriptor};
    if (status == HURRAY_OK) status = hry_catalogue_add(walk->catalogue, &entry, error);
    if (status != HURRAY_OK)
        hry_descriptor_unref(descriptor);
    else
        *offset = data + total;
    return status;
}

HurrayStatus hry_import_stream(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                               HryCatalogue **out, HurrayError *error) {
    Walk walk = {.transport = transport, .limits = limits, .allocator = allocator, .size = size};
    uint64_t offset = 0;
    HurrayStatus status = hry_catalogue_new(allocator, &walk.catalogue, error);
    if (status != HURRAY_OK) return status;
    walk.catalogue->format = HURRAY_FORMAT_STREAM;
    walk.catalogue->major = 1;
    walk.catalogue->byte_size = size;
    while (status == HURRAY_OK && offset < size) {
        status = add_tensor(&walk, &offset, error);
        if (status != HURRAY_OK) error->tensor_index = walk.catalogue->entry_count;
    }
    hry_free_array(allocator, walk.bytes, walk.capacity, 1);
    if (status == HURRAY_OK)
        *out = walk.catalogue;
    else
        hry_catalogue_unref(walk.catalogue);
    return status;
}
