/* A hash map from borrowed names to numbers, for up to a few million of them; seeded, so that no
 * file can choose names that collide. The names must outlive the map. */
#ifndef HRY_BASE_NAMES_H
#define HRY_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

/* How the map finds the name of number i again: it stores numbers only (4 bytes a slot). */
typedef void (*HryNameAt)(const void *ctx, uint64_t i, const uint8_t **name, size_t *len);

typedef struct HryNames {
    HurrayAllocator allocator;
    HryNameAt name_at;
    const void *ctx;
    uint32_t *slots; /* number + 1, or 0 */
    size_t slot_count;
    size_t count;
    uint64_t seed;
} HryNames;

/* expected: how many names will come (room is made at once; more may come). False: no memory. */
bool hry_names_init(HryNames *names, const HurrayAllocator *allocator, size_t expected, HryNameAt name_at, const void *ctx);
void hry_names_clear(HryNames *names);

/* Room for `more` further names, so that adding them cannot fail for want of memory. False: no memory, nothing changed. */
bool hry_names_reserve(HryNames *names, size_t more);

typedef enum HryNamesAdd { HRY_NAMES_ADDED, HRY_NAMES_DUPLICATE, HRY_NAMES_NO_MEMORY } HryNamesAdd;
/* Adds number i (below 2^32 - 1) under name_at(i). DUPLICATE: *other is the number already there, nothing changed. */
HryNamesAdd hry_names_add(HryNames *names, uint64_t i, uint64_t *other);
bool hry_names_find(const HryNames *names, const void *name, size_t len, uint64_t *i);

#endif
