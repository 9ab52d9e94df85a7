/* Anonymous memory straight from the system, in few large pieces; large ones are 2 MiB-aligned and advised for
 * huge pages. Nothing is touched here: pages come where the first reader runs. */
#ifndef HRY_CPU_REGION_H
#define HRY_CPU_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/numa.h"

#define HRY_HUGE_PAGE ((size_t)2 << 20)

typedef struct HryRegion {
    uint8_t *base;
    size_t size;
    bool reserved_huge; /* from the system's reserved huge pages, which go back only whole */
} HryRegion;

/* `wanted` bytes, or as few as `need` when so many are refused. huge_pages: HURRAY_AUTO, _ON, _OFF. numa may be NULL. */
bool hry_region_map(HryRegion *region, size_t wanted, size_t need, uint32_t huge_pages, const HryNuma *numa, int node);
void hry_region_unmap(HryRegion *region);
/* The whole pages inside [at, at + len) go back to the system; the addresses stay and would read as zero. */
void hry_region_give_back(const HryRegion *region, uint8_t *at, size_t len);

/* size (a multiple of HRY_HUGE_PAGE) bytes at a multiple of HRY_HUGE_PAGE on any kernel: mapped with one piece more, both
 * ends cut off. NULL: refused. */
uint8_t *hry_region_cut(size_t size);

#endif
