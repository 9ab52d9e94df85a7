#include "cpu/region.h"

#include <sys/mman.h>

#include "base/checked.h"
#include "cpu/system.h"
#include "hurray.h"

#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

static uint8_t *map(size_t size, int flags) {
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

uint8_t *hry_region_cut(size_t size) {
    size_t larger;
    if (!hry_add_size(size, HRY_HUGE_PAGE, &larger)) return NULL;
    uint8_t *at = map(larger, MAP_NORESERVE);
    if (!at) return NULL;
    size_t before = (size_t)(-(uintptr_t)at & (HRY_HUGE_PAGE - 1)), after = HRY_HUGE_PAGE - before;
    if (before) munmap(at, before);
    if (after) munmap(at + before + size, after);
    return at + before;
}

/* Recent kernels align large mappings by themselves. */
static uint8_t *map_aligned(size_t size) {
    uint8_t *at = map(size, MAP_NORESERVE);
    if (!at || ((uintptr_t)at & (HRY_HUGE_PAGE - 1)) == 0) return at;
    munmap(at, size);
    return hry_region_cut(size);
}

static bool map_once(HryRegion *region, size_t wanted, uint32_t huge_pages) {
    bool large = wanted >= HRY_HUGE_PAGE;
    uint64_t size;
    if (!hry_align_up(wanted, large ? HRY_HUGE_PAGE : hry_page_size(), &size) || size > SIZE_MAX) return false;
    region->size = (size_t)size;
    region->reserved_huge = false;
    if (large && huge_pages == HURRAY_ON) {
        region->base = map(region->size, MAP_HUGETLB | MAP_HUGE_2MB);
        region->reserved_huge = region->base != NULL;
        if (region->base) return true;
    }
    region->base = large ? map_aligned(region->size) : map(region->size, MAP_NORESERVE);
    if (!region->base) return false;
    if (large) (void)madvise(region->base, region->size, huge_pages == HURRAY_OFF ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    return true;
}

bool hry_region_map(HryRegion *region, size_t wanted, size_t need, uint32_t huge_pages, const HryNuma *numa, int node) {
    if (!map_once(region, wanted, huge_pages) && (need >= wanted || !map_once(region, need, huge_pages))) return false;
    if (numa && node >= 0) (void)hry_numa_bind_area(numa, region->base, region->size, node);
    return true;
}

void hry_region_unmap(HryRegion *region) {
    munmap(region->base, region->size);
    region->base = NULL;
}

void hry_region_give_back(const HryRegion *region, uint8_t *at, size_t len) {
    size_t page = region->reserved_huge ? HRY_HUGE_PAGE : hry_page_size();
    size_t skip = (size_t)(-(uintptr_t)at & (page - 1));
    if (len <= skip) return;
    size_t whole = (len - skip) & ~(page - 1);
    if (whole) (void)madvise(at + skip, whole, MADV_DONTNEED);
}
