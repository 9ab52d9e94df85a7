#include "loader/targets.h"

#include <string.h>

#include "hurray/cuda.h"
#include "hurray/transport.h"

static HurrayStatus make_mapped(HurrayLoader *loader, HryTarget *target, HurrayError *error) {
    const HryModelSource *source = loader->sources[target->source].model;
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    options.allocator = &loader->allocator;
    HurrayStatus status = hurray_transport_mapped(source->path, &options, &target->mapped, error);
    if (status != HURRAY_OK) return status;
    status = hurray_destination_in_place(&target->mapped, &target->destination, error);
    if (status != HURRAY_OK) hurray_transport_release(&target->mapped);
    return status;
}

static HurrayStatus make_host(HurrayLoader *loader, HryTarget *target, HurrayError *error) {
    HurrayHostOptions options = HURRAY_HOST_OPTIONS_INIT;
    options.huge_pages = loader->options.huge_pages;
    options.allocator = &loader->allocator;
    return hurray_destination_host(&options, &target->destination, error);
}

static HurrayStatus make_cuda(HurrayLoader *loader, HryTarget *target, HurrayError *error) {
    const HurrayLoaderOptions *o = &loader->options;
    HurrayCudaOptions options = HURRAY_CUDA_OPTIONS_INIT;
    options.flags = o->flags & HURRAY_LOAD_ARENA;
    options.pinned = o->pinned;
    options.device_index = target->device_index;
    options.pinned_cap = o->pinned_cap;
    if (o->memory_cap < HRY_OTHER_MEMORY || o->memory_cap - HRY_OTHER_MEMORY < o->pinned_cap) /* the rest is for conversions */
        options.pinned_cap = o->memory_cap - o->memory_cap / 4 < o->pinned_cap ? o->memory_cap - o->memory_cap / 4 : o->pinned_cap;
    options.slot_bytes = o->chunk_bytes;
    options.device_memory = o->device_memory;
    options.allocator = &loader->allocator;
    return hurray_destination_cuda(&options, &target->destination, error);
}

static HryTargetKind kind_for(const HurrayLoader *loader, const HryWay *way, bool into, bool mapped) {
    bool plain_host = way->device_tag == HURRAY_DEVICE_CPU && way->memory_class == HURRAY_MEMORY_STANDARD;
    if (loader->options.destination) return HRY_TARGET_CALLERS;
    if (!plain_host) return HRY_TARGET_CUDA;
    if (into) return HRY_TARGET_INTO;
    return mapped ? HRY_TARGET_MAPPED : HRY_TARGET_HOST;
}

HurrayStatus hry_targets_for(HurrayLoader *loader, const HryWay *way, bool into, bool mapped, uint32_t source, size_t *out,
                             HurrayError *error) {
    HryTarget target = {.kind = kind_for(loader, way, into, mapped), .device_index = -1, .source = UINT32_MAX};
    HurrayStatus status = HURRAY_OK;
    if (target.kind == HRY_TARGET_CUDA) target.device_index = way->device_index;
    if (target.kind == HRY_TARGET_MAPPED) target.source = source;
    for (size_t t = 0; t < loader->target_count; t++) {
        const HryTarget *known = &loader->targets[t];
        if (known->kind == target.kind && known->device_index == target.device_index && known->source == target.source) {
            *out = t;
            return HURRAY_OK;
        }
    }
    if (!hry_grow(&loader->allocator, (void **)&loader->targets, &loader->target_capacity, loader->target_count + 1,
                  sizeof *loader->targets))
        return hry_fail_memory(error, "the destinations", sizeof target);
    switch (target.kind) {
    case HRY_TARGET_CALLERS: status = hry_destination_hold(&loader->destination, &loader->allocator, &target.destination, error); break;
    case HRY_TARGET_HOST: status = make_host(loader, &target, error); break;
    case HRY_TARGET_MAPPED: status = make_mapped(loader, &target, error); break;
    case HRY_TARGET_INTO: status = hry_destination_into(&loader->allocator, &target.destination, error); break;
    case HRY_TARGET_CUDA: status = make_cuda(loader, &target, error); break;
    }
    if (status != HURRAY_OK) return status;
    *out = loader->target_count;
    loader->targets[loader->target_count++] = target;
    return HURRAY_OK;
}

void hry_targets_drop(HurrayLoader *loader) {
    for (size_t t = 0; t < loader->target_count; t++) {
        HryTarget *target = &loader->targets[t];
        hry_destination_drop(&target->destination);
        if (target->kind == HRY_TARGET_MAPPED) hurray_transport_release(&target->mapped);
    }
    hry_free_array(&loader->allocator, loader->targets, loader->target_capacity, sizeof *loader->targets);
    loader->targets = NULL;
    loader->target_count = loader->target_capacity = 0;
}
