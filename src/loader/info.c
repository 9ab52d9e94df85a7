/* What a loader offers, before anything is loaded. */
#include "loader/loader.h"

#include <string.h>

#include "base/options.h"

static HurrayStatus out_of_bounds(HurrayError *error, const char *what, uint64_t i, uint64_t count) {
    return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, what, HRY_NO_OFFSET, "%s %llu of %llu", what, (unsigned long long)i,
                    (unsigned long long)count);
}

HurrayStatus hurray_loader_tensor_count(const HurrayLoader *loader, uint64_t *out) {
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    *out = loader->tensor_count;
    return hry_loader_leave(loader, HURRAY_OK);
}

HurrayStatus hurray_loader_find(const HurrayLoader *loader, const void *name, size_t len, uint64_t *out) {
    if (!loader || !out || (!name && len)) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    if (!hry_loader_find(loader, name, len, out)) {
        char escaped[136];
        status =
            hry_fail(&loader->self->handle.error, HURRAY_ERR_NOT_FOUND, "name", HRY_NO_OFFSET, "there is no tensor \"%s\" among the %llu",
                     hry_escape(escaped, sizeof escaped, name, len), (unsigned long long)loader->tensor_count);
    }
    return hry_loader_leave(loader, status);
}

HurrayStatus hry_loader_fill_info(HurrayLoader *loader, uint64_t i, HurrayTensorInfo *info, HurrayError *error) {
    HryLoaderSource *source;
    const HryEntry *entry = hry_loader_entry(loader, i, &source);
    HurrayDescriptor *descriptor = NULL;
    HurrayTensorInfo latest = HURRAY_TENSOR_INFO_INIT;
    *info = latest;
    HurrayStatus status = hry_loader_know_family(loader, source, error);
    if (status != HURRAY_OK) return status;
    info->source_index = (uint32_t)(source - loader->sources);
    info->index = i;
    info->parent = hry_loader_parent(loader, i);
    info->name = entry->name;
    info->name_len = entry->name_len;
    info->descriptor_offset = entry->descriptor_offset;
    info->data_offset = entry->data_offset;
    info->data_length = entry->data_length;
    status = hry_loader_describe(loader, i, &descriptor, &loader->fault);
    if (status == HURRAY_OK && hry_descriptor_is_head(descriptor)) status = hry_loader_check_family(loader, i, &loader->fault);
    if (status != HURRAY_OK) {
        if (!hry_is_fault(status)) {
            *error = loader->fault;
            return status;
        }
        info->fault = &loader->fault;
        return HURRAY_OK;
    }
    if (!hry_grow(&loader->allocator, (void **)&loader->info_offsets, &loader->info_offsets_capacity, descriptor->buffer_count,
                  sizeof *loader->info_offsets))
        return hry_fail_memory(error, "the buffers' offsets", descriptor->buffer_count * sizeof *loader->info_offsets);
    for (uint32_t k = 0; k < descriptor->buffer_count; k++) loader->info_offsets[k] = hry_loader_buffer_offset(loader, i, descriptor, k);
    info->descriptor = descriptor;
    info->buffer_offsets = loader->info_offsets;
    info->buffer_count = descriptor->buffer_count;
    info->member_count = hry_descriptor_is_head(descriptor) ? descriptor->layout.member_count : 0;
    return HURRAY_OK;
}

HurrayStatus hurray_loader_tensor_info(HurrayLoader *loader, uint64_t i, HurrayTensorInfo *out) {
    HurrayTensorInfo info;
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    HurrayError *error = &loader->handle.error;
    status = hry_loader_check_usable(loader);
    if (status == HURRAY_OK && i >= loader->tensor_count) status = out_of_bounds(error, "tensor", i, loader->tensor_count);
    if (status == HURRAY_OK) status = hry_loader_fill_info(loader, i, &info, error);
    if (status == HURRAY_OK) status = hry_result_write(out, sizeof info, &info, sizeof info);
    return hry_loader_leave(loader, status);
}

static const HurrayKvEntry *kv_of(const HurrayLoader *loader, size_t *count) {
    if (loader->has_kv_names || loader->source_count != 1) {
        *count = loader->kv_count;
        return loader->kv;
    }
    *count = loader->sources[0].model->catalogue->kv_count;
    return loader->sources[0].model->catalogue->kv;
}

HurrayStatus hurray_loader_kv_count(const HurrayLoader *loader, uint64_t *out) {
    size_t count;
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    kv_of(loader, &count);
    *out = count;
    return hry_loader_leave(loader, HURRAY_OK);
}

HurrayStatus hurray_loader_kv_entry(const HurrayLoader *loader, uint64_t i, HurrayKvEntry *out) {
    size_t count;
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    const HurrayKvEntry *kv = kv_of(loader, &count);
    if (i >= count)
        status = out_of_bounds(&loader->self->handle.error, "kv entry", i, count);
    else
        *out = kv[i];
    return hry_loader_leave(loader, status);
}

HurrayStatus hurray_loader_kv_find(const HurrayLoader *loader, const void *key, size_t len, HurrayKvEntry *out) {
    size_t count;
    uint64_t i = 0;
    bool found = false;
    if (!loader || !out || (!key && len)) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    const HurrayKvEntry *kv = kv_of(loader, &count);
    if (loader->has_kv_names)
        found = hry_names_find(&loader->kv_names, key, len, &i);
    else if (loader->source_count == 1)
        found = hry_catalogue_find_kv(loader->sources[0].model->catalogue, key, len, &i);
    if (found) {
        *out = kv[i];
    } else {
        char escaped[136];
        status = hry_fail(&loader->self->handle.error, HURRAY_ERR_NOT_FOUND, "key", HRY_NO_OFFSET, "there is no key \"%s\" among the %zu",
                          hry_escape(escaped, sizeof escaped, key, len), count);
    }
    return hry_loader_leave(loader, status);
}

HurrayStatus hurray_loader_source_count(const HurrayLoader *loader, uint32_t *out) {
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    *out = loader->source_count;
    return hry_loader_leave(loader, HURRAY_OK);
}

HurrayStatus hurray_loader_source_info(const HurrayLoader *loader, uint32_t s, HurraySourceInfo *out) {
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    if (s >= loader->source_count) {
        status = out_of_bounds(&loader->self->handle.error, "source", s, loader->source_count);
    } else {
        const HryModelSource *source = loader->sources[s].model;
        HurraySourceInfo info = HURRAY_SOURCE_INFO_INIT;
        info.format = source->catalogue->format;
        info.major = source->catalogue->major;
        info.minor = source->catalogue->minor;
        info.flags = source->catalogue->flags;
        info.data_buffer_alignment = source->catalogue->data_buffer_alignment;
        info.byte_size = source->catalogue->byte_size;
        info.label = (const uint8_t *)source->label;
        info.label_len = strlen(source->label);
        status = hry_result_write(out, sizeof info, &info, sizeof info);
    }
    return hry_loader_leave(loader, status);
}

HurrayStatus hurray_loader_note_count(const HurrayLoader *loader, uint64_t *out) {
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    *out = loader->model.note_count + loader->note_count;
    for (uint32_t s = 0; s < loader->source_count; s++) *out += loader->sources[s].model->catalogue->note_count;
    return hry_loader_leave(loader, HURRAY_OK);
}

/* Notes of the set, of each source, of the joining. */
static const HurrayError *note_at(const HurrayLoader *loader, uint64_t i) {
    if (i < loader->model.note_count) return &loader->model.notes[i];
    i -= loader->model.note_count;
    for (uint32_t s = 0; s < loader->source_count; s++) {
        const HryCatalogue *catalogue = loader->sources[s].model->catalogue;
        if (i < catalogue->note_count) return &catalogue->notes[i];
        i -= catalogue->note_count;
    }
    return i < loader->note_count ? &loader->notes[i] : NULL;
}

HurrayStatus hurray_loader_note(const HurrayLoader *loader, uint64_t i, const HurrayError **out) {
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    const HurrayError *note = note_at(loader, i);
    if (note)
        *out = note;
    else
        status = hry_fail(&loader->self->handle.error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "note", HRY_NO_OFFSET, "there is no note %llu",
                          (unsigned long long)i);
    return hry_loader_leave(loader, status);
}
