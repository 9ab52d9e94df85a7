#include "cuda/staging.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define PAGE UINT64_C(4096)
#define LEAST_SLOTS 4u

static uint32_t limit_for(const HryCudaStaging *staging) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t readers = cores < 1 ? 1 : cores > 16 ? 16 : (uint64_t)cores, most = staging->cap / staging->slot_bytes, wanted = readers + 4;
    uint64_t slots = most < wanted ? most : wanted;
    return slots < 1 ? 1 : (uint32_t)slots;
}

/* 4 MiB; 2 MiB when only that keeps the ring within half of the last-level cache; 1 MiB and less when only that fits the cap. */
void hry_cuda_staging_init(HryCudaStaging *staging, HryCudaDevice *device, uint32_t pinned, uint64_t cap, uint64_t slot_bytes) {
    memset(staging, 0, sizeof *staging);
    staging->device = device;
    staging->allocator = device->allocator;
    staging->pinned = pinned;
    staging->cap = cap;
    if (slot_bytes == 0) {
        long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
        slot_bytes = 4 * MIB;
        staging->slot_bytes = slot_bytes;
        if (cache > 0 && (uint64_t)limit_for(staging) * slot_bytes > (uint64_t)cache / 2 && (uint64_t)limit_for(staging) * 2 * MIB <= (uint64_t)cache / 2) slot_bytes = 2 * MIB;
        while (slot_bytes > MIB && cap / slot_bytes < LEAST_SLOTS + 2) slot_bytes /= 2;
    }
    while (slot_bytes > PAGE && cap / slot_bytes < LEAST_SLOTS) slot_bytes /= 2;
    staging->slot_bytes = slot_bytes < PAGE ? PAGE : slot_bytes & ~(PAGE - 1);
    staging->slot_limit = limit_for(staging);
}

static void set_reason(HryCudaStaging *staging, const char *call, int code) {
    if (!staging->reason[0])
        snprintf(staging->reason, sizeof staging->reason, "%s of %llu bytes: %s (%d)", call, (unsigned long long)(staging->slot_bytes * staging->slot_limit),
                 staging->device->api->get_error_name(code), code);
}

static HurrayStatus map_group(HryCudaStaging *staging, HryCudaGroup *group, size_t bytes, HurrayError *error) {
    HryNuma *numa = NULL;
    HurrayError ignored;
    int node = staging->device->numa_node;
    if (node >= 0 && hry_numa_new(&staging->allocator, &numa, &ignored) != HURRAY_OK) numa = NULL;
    bool mapped = hry_region_map(&group->region, bytes, bytes, HURRAY_AUTO, numa, numa ? node : -1);
    hry_numa_destroy(&numa);
    if (!mapped) return hry_fail_memory(error, "staging", bytes);
    (void)madvise(group->region.base, group->region.size, MADV_DONTFORK); /* a child must never share pages that a device reads */
    return HURRAY_OK;
}

/* Pins `bytes` for a group: our own huge pages registered, else the runtime's. NULL: refused, the reason kept. Guard entered. */
static uint8_t *pin(HryCudaStaging *staging, HryCudaGroup *group, size_t bytes, HurrayError *error) {
    const HryCudaApi *api = staging->device->api;
    if (map_group(staging, group, bytes, error) == HURRAY_OK) {
        int code = api->host_register(group->region.base, bytes);
        if (code == HRY_CUDA_SUCCESS) {
            group->registered = true;
            return group->region.base;
        }
        hry_cuda_clear(staging->device, code);
        set_reason(staging, "cudaHostRegister", code);
        hry_region_unmap(&group->region);
        memset(&group->region, 0, sizeof group->region);
        if (hry_cuda_is_gone(staging->device)) return NULL;
    }
    /* A page more, to begin at one: within the cap that may cost a slot. */
    uint32_t spare = bytes + PAGE > staging->cap - staging->pinned_bytes && group->count > 1;
    int code = api->host_alloc(&group->allocated, bytes - spare * staging->slot_bytes + PAGE);
    if (code == HRY_CUDA_SUCCESS) group->count -= spare;
    if (code == HRY_CUDA_SUCCESS) return (uint8_t *)(((uintptr_t)group->allocated + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    group->allocated = NULL;
    hry_cuda_clear(staging->device, code);
    set_reason(staging, "cudaHostAlloc", code);
    return NULL;
}

static uint32_t slots_of_group(const HryCudaStaging *staging) {
    uint32_t left = staging->slot_limit - staging->slot_count;
    return left < HRY_CUDA_GROUP_SLOTS ? left : HRY_CUDA_GROUP_SLOTS;
}

static HurrayStatus fill_group(HryCudaStaging *staging, HryCudaGroup *group, HurrayError *error) {
    HryCudaGuard guard;
    bool first = staging->slot_count == 0, pageable = staging->pinned == HURRAY_OFF || staging->kind == HURRAY_STAGING_PAGEABLE;
    uint8_t *memory = NULL;
    group->count = slots_of_group(staging);
    if (!pageable) {
        if (!hry_cuda_enter(staging->device, &guard)) return hry_cuda_fail_lost(staging->device, error);
        memory = pin(staging, group, group->count * staging->slot_bytes, error);
        /* Smaller, down to four slots of 1 MiB; later groups simply do not come. */
        while (!memory && first && (staging->slot_bytes > MIB || group->count > LEAST_SLOTS) && !atomic_load(&staging->device->lost)) {
            if (staging->slot_bytes > MIB) staging->slot_bytes /= 2;
            else group->count = LEAST_SLOTS;
            memory = pin(staging, group, group->count * staging->slot_bytes, error);
        }
        if (memory && staging->reason[0] && first) staging->slot_limit = group->count;
        hry_cuda_leave(staging->device, &guard);
        if (!memory && hry_cuda_is_gone(staging->device)) return hry_cuda_fail_lost(staging->device, error);
        if (!memory && !first)
            return hry_fail(error, HURRAY_ERR_NO_MEMORY, "pinned", HRY_NO_OFFSET, "no more pinned memory: %s", staging->reason);
        if (!memory && staging->pinned == HURRAY_ON)
            return hry_fail(error, HURRAY_ERR_NO_MEMORY, "pinned", HRY_NO_OFFSET,
                            "pinned staging memory was refused: %s; lower pinned_cap (%llu bytes), or let `pinned` fall back to pageable memory", staging->reason,
                            (unsigned long long)staging->cap);
    }
    if (!memory) {
        HurrayStatus status = map_group(staging, group, group->count * staging->slot_bytes, error);
        if (status != HURRAY_OK) return status;
        memory = group->region.base;
        staging->kind = HURRAY_STAGING_PAGEABLE;
    } else {
        staging->kind = HURRAY_STAGING_PINNED;
        staging->pinned_bytes += group->count * staging->slot_bytes + (group->allocated ? PAGE : 0);
    }
    for (uint32_t i = 0; i < group->count; i++) group->slots[i].memory = memory + i * staging->slot_bytes;
    return HURRAY_OK;
}

HurrayStatus hry_cuda_staging_make_group(HryCudaStaging *staging, HryCudaGroup **out, HurrayError *error) {
    *out = NULL;
    if (staging->slot_count >= staging->slot_limit) return HURRAY_OK;
    HryCudaGroup *group = hry_alloc(&staging->allocator, sizeof *group);
    if (!group) return hry_fail_memory(error, "staging slots", sizeof *group);
    HurrayStatus status = fill_group(staging, group, error);
    if (status != HURRAY_OK) {
        hry_free(&staging->allocator, group, sizeof *group);
        return status;
    }
    *out = group;
    return HURRAY_OK;
}

void hry_cuda_staging_add(HryCudaStaging *staging, HryCudaGroup *group) {
    group->next = staging->groups;
    staging->groups = group;
    staging->slot_count += group->count;
    for (uint32_t i = group->count; i-- > 0;) hry_cuda_staging_give(staging, &group->slots[i]);
}

HryCudaSlot *hry_cuda_staging_take(HryCudaStaging *staging) {
    HryCudaSlot *slot = staging->free;
    if (slot) staging->free = slot->next;
    return slot;
}

void hry_cuda_staging_give(HryCudaStaging *staging, HryCudaSlot *slot) {
    slot->next = staging->free;
    staging->free = slot;
}

static void drop_group(HryCudaStaging *staging, HryCudaGroup *group) {
    const HryCudaApi *api = staging->device->api;
    HryCudaGuard guard;
    if ((group->registered || group->allocated) && hry_cuda_enter(staging->device, &guard)) {
        int code = group->registered ? api->host_unregister(group->region.base) : api->host_free(group->allocated);
        if (code != HRY_CUDA_SUCCESS) hry_cuda_clear(staging->device, code);
        hry_cuda_leave(staging->device, &guard);
    }
    if (group->region.base) hry_region_unmap(&group->region);
    hry_free(&staging->allocator, group, sizeof *group);
}

void hry_cuda_staging_clear(HryCudaStaging *staging) {
    while (staging->groups) {
        HryCudaGroup *group = staging->groups;
        staging->groups = group->next;
        drop_group(staging, group);
    }
    staging->free = NULL;
    staging->slot_count = 0;
}
