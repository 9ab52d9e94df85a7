#include "cpu/mapping.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "cpu/system.h"

static HryMapping *mapping_new(const HurrayAllocator *allocator, HurrayError *error) {
    HryMapping *mapping = hry_alloc(allocator, sizeof *mapping);
    if (!mapping) {
        hry_fail_memory(error, "a mapping", sizeof *mapping);
        return NULL;
    }
    mapping->allocator = *allocator;
    atomic_init(&mapping->holds, 1);
    return mapping;
}

HurrayStatus hry_mapping_memory(const void *data, size_t len, HurrayReleaseCallback release, void *release_context,
                                const HurrayAllocator *allocator, HryMapping **out, HurrayError *error) {
    HryMapping *mapping = mapping_new(allocator, error);
    if (!mapping) return error->code;
    mapping->base = data;
    mapping->len = len;
    mapping->release = release;
    mapping->release_context = release_context;
    *out = mapping;
    return HURRAY_OK;
}

HurrayStatus hry_mapping_file(int fd, const char *path, const HurrayAllocator *allocator, HryMapping **out, HurrayError *error) {
    struct stat st;
    size_t len;
    if (fstat(fd, &st) != 0) return hry_fail_system(error, HURRAY_ERR_TRANSPORT, errno, "look at", path);
    if (!S_ISREG(st.st_mode)) return hry_fail_system(error, HURRAY_ERR_TRANSPORT, S_ISDIR(st.st_mode) ? EISDIR : ENODEV, "map", path);
    if (!hry_to_size((uint64_t)st.st_size, &len)) return hry_fail_system(error, HURRAY_ERR_TRANSPORT, EFBIG, "map", path);
    HryMapping *mapping = mapping_new(allocator, error);
    if (!mapping) return error->code;
    if (len) {
        void *base = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED) {
            int reason = errno;
            hry_free(allocator, mapping, sizeof *mapping);
            return hry_fail_system(error, reason == ENOMEM ? HURRAY_ERR_NO_MEMORY : HURRAY_ERR_TRANSPORT, reason, "map", path);
        }
        mapping->base = base;
    }
    mapping->len = len;
    mapping->mapped = true;
    *out = mapping;
    return HURRAY_OK;
}

void hry_mapping_hold(HryMapping *mapping) { atomic_fetch_add_explicit(&mapping->holds, 1, memory_order_relaxed); }

void hry_mapping_drop(HryMapping *mapping) {
    if (atomic_fetch_sub_explicit(&mapping->holds, 1, memory_order_acq_rel) != 1) return;
    HurrayAllocator allocator = mapping->allocator;
    if (mapping->mapped && mapping->base) munmap((void *)(uintptr_t)mapping->base, mapping->len);
    if (mapping->release) mapping->release((void *)(uintptr_t)mapping->base, mapping->release_context);
    hry_free(&allocator, mapping, sizeof *mapping);
}
