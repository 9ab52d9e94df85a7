#include "core/file_fetch.h"

#include <string.h>

#include "base/checked.h"
#include "core/step.h"

HurrayStatus hry_fetch_decode(const HryFetchContext *context, uint64_t i, const void *bytes, size_t len, HurrayDescriptor **out,
                              HurrayError *error) {
    const HryCatalogue *catalogue = context->catalogue;
    HurrayDescriptor *descriptor = NULL;
    HryIndexRow row;
    uint32_t own;
    size_t used;
    hry_catalogue_row(catalogue, i, &row);
    HurrayStatus status = hry_descriptor_prefix(bytes, len, row.descriptor_offset, &own, error);
    if (status == HURRAY_OK && own != row.descriptor_length)
        status =
            hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "descriptor_length", row.descriptor_offset,
                     "the index says that the descriptor has %u bytes, it says %u itself", (unsigned)row.descriptor_length, (unsigned)own);
    if (status == HURRAY_OK)
        status =
            hry_descriptor_decode(bytes, len, row.descriptor_offset, context->decode_flags, &context->allocator, &used, &descriptor, error);
    if (status != HURRAY_OK) return status;
    uint64_t place = hry_catalogue_write_place(catalogue, i), limit = catalogue->region_end;
    if (place + 1 < catalogue->entry_count)
        limit = catalogue->entries[hry_catalogue_in_write_order(catalogue, place + 1)].descriptor_offset;
    HryHeader header = {.major = catalogue->major,
                        .minor = catalogue->minor,
                        .flags = catalogue->flags,
                        .data_buffer_alignment = catalogue->data_buffer_alignment,
                        .first_descriptor_offset = catalogue->first_descriptor_offset};
    status = hry_index_check_tensor(&row, &header, limit, own, descriptor->buffers, descriptor->buffer_count,
                                    hry_descriptor_is_head(descriptor), error);
    if (status == HURRAY_OK)
        *out = descriptor;
    else
        hry_descriptor_unref(descriptor);
    return status;
}

HurrayStatus hry_fetch_begin(HryFetch *fetch, const HryFetchContext *context, uint64_t index, HurrayDescriptor *known, HurrayError *error) {
    const HryEntry *entry = &context->catalogue->entries[index];
    memset(fetch, 0, sizeof *fetch);
    if (entry->fault) {
        *error = context->catalogue->faults[entry->fault - 1];
        return error->code;
    }
    if (!known) known = entry->descriptor;
    if (known)
        fetch->descriptor = hry_descriptor_ref(known);
    else {
        if (entry->descriptor_length > context->max_descriptor_bytes)
            return hry_fail(error, HURRAY_ERR_LIMIT, "max_descriptor_bytes", entry->descriptor_offset,
                            "the descriptor has %u bytes, more than the option max_descriptor_bytes allows (%llu)",
                            (unsigned)entry->descriptor_length, (unsigned long long)context->max_descriptor_bytes);
        fetch->bytes = hry_alloc_raw(&context->allocator, entry->descriptor_length);
        if (!fetch->bytes) return hry_fail_memory(error, "a descriptor", entry->descriptor_length);
    }
    fetch->len = entry->descriptor_length;
    fetch->context = context;
    fetch->index = index;
    fetch->stage = known ? HRY_FETCH_DESCRIBED : HRY_FETCH_BYTES;
    return HURRAY_OK;
}

HurrayStatus hry_fetch_payload(HryFetch *fetch, HurrayError *error) {
    const HryFetchContext *context = fetch->context;
    const HryEntry *entry = &context->catalogue->entries[fetch->index];
    HurrayDescriptor *descriptor = fetch->descriptor;
    HurrayDestinationRequest request = {.struct_size = sizeof request,
                                        .io_alignment = context->io_alignment,
                                        .device_index = -1,
                                        .name = entry->name,
                                        .name_len = entry->name_len};
    HryFillSums sums = {.catalogue = context->catalogue, .index = fetch->index, .verify = context->verify};
    uint64_t offsets[UINT8_MAX], total = 0;
    for (uint32_t k = 0; k < descriptor->buffer_count; k++)
        if (!hry_catalogue_buffer_offset(context->catalogue, entry, descriptor, k, &offsets[k]) ||
            !hry_add_u64(total, descriptor->buffers[k].byte_size, &total))
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "byte_size", entry->descriptor_offset,
                            "the buffers' sizes do not fit 64 bits");
    if (total > context->max_tensor_bytes)
        return hry_fail(error, HURRAY_ERR_LIMIT, "max_tensor_bytes", entry->descriptor_offset,
                        "the tensor has %llu bytes, more than the option max_tensor_bytes allows (%llu)", (unsigned long long)total,
                        (unsigned long long)context->max_tensor_bytes);
    HurrayStatus status =
        hry_fill_begin(&fetch->fill, context->destination, descriptor, offsets, &request, false, &sums, &context->allocator, error);
    if (status == HURRAY_OK) fetch->stage = HRY_FETCH_PAYLOAD;
    return status;
}

HurrayStatus hry_fetch_step(HryFetch *fetch, HurrayStep *step, HurrayTensor **tensor, HurrayError *error) {
    const HryEntry *entry = &fetch->context->catalogue->entries[fetch->index];
    HurrayStatus status;
    switch (fetch->stage) {
    case HRY_FETCH_BYTES:
        *step = hry_step(HURRAY_STEP_RANGE, 0, entry->descriptor_offset + fetch->filled, fetch->len - fetch->filled);
        return HURRAY_OK;
    case HRY_FETCH_PAYLOAD:
        status = hry_fill_step(&fetch->fill, step, tensor, error);
        if (status == HURRAY_OK && step->kind == HURRAY_STEP_TENSOR) hry_fetch_abandon(fetch);
        return status;
    default: *step = hry_step(HURRAY_STEP_DESCRIPTOR, 0, 0, 0); return HURRAY_OK;
    }
}

bool hry_fetch_window(const HryFetch *fetch, HurrayWindow *out) {
    if (fetch->stage == HRY_FETCH_PAYLOAD && hry_fill_asks(&fetch->fill)) {
        *out = hry_fill_window(&fetch->fill);
        return true;
    }
    if (fetch->stage != HRY_FETCH_BYTES) return false;
    uint64_t offset = fetch->context->catalogue->entries[fetch->index].descriptor_offset;
    *out = (HurrayWindow){.struct_size = sizeof *out,
                          .offset = fetch->filled,
                          .len = fetch->len - fetch->filled,
                          .source_offset = offset + fetch->filled,
                          .ptr = fetch->bytes + fetch->filled};
    return true;
}

HurrayStatus hry_fetch_report(HryFetch *fetch, size_t n, HurrayError *error) {
    if (fetch->stage == HRY_FETCH_PAYLOAD) return hry_fill_report(&fetch->fill, n, error);
    fetch->filled += n;
    if (fetch->filled < fetch->len) return HURRAY_OK;
    HurrayStatus status = hry_fetch_decode(fetch->context, fetch->index, fetch->bytes, fetch->len, &fetch->descriptor, error);
    if (status != HURRAY_OK) return status;
    hry_free(&fetch->context->allocator, fetch->bytes, fetch->len);
    fetch->bytes = NULL;
    fetch->stage = HRY_FETCH_DESCRIBED;
    return HURRAY_OK;
}

HurrayStatus hry_fetch_end_of_file(const HryFetch *fetch, HurrayError *error) {
    HurrayWindow window = {.source_offset = HURRAY_NONE};
    hry_fetch_window(fetch, &window);
    hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, window.source_offset,
             "nothing can be read at byte %llu of a file said to have %llu bytes: it became shorter",
             (unsigned long long)window.source_offset, (unsigned long long)fetch->context->catalogue->byte_size);
    if (fetch->stage == HRY_FETCH_PAYLOAD) error->buffer_index = fetch->fill.buffer;
    return error->code;
}

void hry_fetch_abandon(HryFetch *fetch) {
    if (!fetch->context) return;
    hry_fill_discard(&fetch->fill);
    hry_free(&fetch->context->allocator, fetch->bytes, fetch->len);
    hry_descriptor_unref(fetch->descriptor);
    memset(fetch, 0, sizeof *fetch);
}
