#include "import/common.h"

#include "base/fail.h"

HurrayStatus hry_import_describe(const HryImported *imported, const HurrayAllocator *allocator, HurrayDescriptor **out,
                                 HurrayError *error) {
    HurrayBufferHandle buffer = {.byte_size = imported->byte_size,
                                 .alignment = 64,
                                 .device_tag = HURRAY_DEVICE_CPU,
                                 .sync_mode = HURRAY_SYNC_PRODUCER_SYNCED,
                                 .memory_class = HURRAY_MEMORY_STANDARD};
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    layout.tag = imported->layout_tag;
    layout.private_id = imported->private_id;
    layout.private_data = imported->private_data;
    layout.private_len = imported->private_len;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    spec.rank = imported->rank;
    spec.shape = imported->shape;
    spec.element_type = imported->element_type;
    spec.buffer_count = 1;
    spec.buffers = &buffer;
    spec.layout = &layout;
    spec.extension_type = imported->extension_type;
    return hry_descriptor_build(&spec, allocator, out, error);
}

HurrayStatus hry_import_catalogue(uint32_t format, uint64_t size, const HurrayAllocator *allocator, HryCatalogue **out,
                                  HurrayError *error) {
    HurrayStatus status = hry_catalogue_new(allocator, out, error);
    if (status != HURRAY_OK) return status;
    (*out)->format = format;
    (*out)->byte_size = size;
    (*out)->data_buffer_alignment = 1;
    return HURRAY_OK;
}

HurrayStatus hry_import_index_names(HryCatalogue *catalogue, const char *where, HurrayError *error) {
    HurrayStatus status = hry_catalogue_index_names(catalogue, error);
    if (status != HURRAY_ERR_DUPLICATE_NAME) return status;
    uint64_t i = error->tensor_index;
    hry_fail(error, status, "name", HRY_NO_OFFSET,
             "the same name stands twice in the %s; readers disagree which of the two counts, write the file again with unique names",
             where);
    if (i < catalogue->entry_count) hry_error_set_tensor(error, catalogue->entries[i].name, catalogue->entries[i].name_len, i);
    return status;
}

HurrayStatus hry_import_check_count(uint64_t count, const HryLimits *limits, HurrayError *error) {
    if (count < limits->max_tensors) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_LIMIT, "tensor_count", HRY_NO_OFFSET,
                    "there are more than %llu tensors, the most that is allowed here (max_tensors)",
                    (unsigned long long)limits->max_tensors);
}

HurrayStatus hry_import_at(HurrayError *error, const void *name, size_t len) {
    hry_error_set_tensor(error, name, len, error->tensor_index);
    return error->code;
}
