/* The key-value section (docs/format.md 9.3), both directions. */
#ifndef HRY_FORMAT_KV_H
#define HRY_FORMAT_KV_H

#include "base/alloc.h"
#include "base/fail.h"
#include "hurray.h"

#define HRY_KV_MIN_ENTRY 5u

/* Decoded entries. Keys, strings and bytes point into the section's bytes, arrays into `arrays`. */
typedef struct HryKv {
    HurrayAllocator allocator;
    HurrayKvEntry *entries;
    size_t count;
    void *arrays; /* one block for all arrays of all entries */
    size_t arrays_size;
} HryKv;

/* The whole section, which must outlive *out; offset: of bytes[0] in the file. container_minor: a greater one than 0 may leave bytes
 * over. Nothing is allocated before every rule but unique keys has been checked. On failure *out is empty. */
HurrayStatus hry_kv_decode(const void *bytes, size_t len, uint64_t offset, uint8_t container_minor, const HurrayAllocator *allocator,
                           HryKv *out, HurrayError *error);
void hry_kv_clear(HryKv *kv); /* safe on a zeroed or cleared one */

/* The first entry of that key (a linear search: lists handed in by callers); count when there is none. */
size_t hry_kv_position(const HurrayKvEntry *entries, size_t count, const void *key, size_t len);

/* Entries of a caller to section bytes (no padding), checked by every rule that a reader would check, in memory of exactly *len bytes
 * from allocator, the caller's to free. count 0: NULL and 0, for there is no section without entries. */
HurrayStatus hry_kv_encode(const HurrayKvEntry *entries, size_t count, const HurrayAllocator *allocator, uint8_t **bytes, size_t *len,
                           HurrayError *error);

#endif
