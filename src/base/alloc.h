/* Bookkeeping memory. Every object holds a resolved copy of its HurrayAllocator; nothing in the
 * library calls malloc but alloc.c. Sizes are known at release, as the allocator's contract wants. */
#ifndef HRY_BASE_ALLOC_H
#define HRY_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "hurray.h"

/* user NULL: the C library's memory. Checks the struct (INVALID_ARGUMENT, UNSUPPORTED) and copies it. */
HurrayStatus hry_alloc_resolve(const HurrayAllocator *user, HurrayAllocator *out, HurrayError *error);

/* The C library's memory. */
HurrayAllocator hry_alloc_default(void);

/* Zeroed memory at the alignment of max_align_t, or NULL; count x size is checked. size or count 0: NULL. */
void *hry_alloc(const HurrayAllocator *allocator, size_t size);
void *hry_alloc_array(const HurrayAllocator *allocator, size_t count, size_t size);
/* The same memory, not zeroed. */
void *hry_alloc_raw(const HurrayAllocator *allocator, size_t size);
/* NULL does nothing. size is what was asked for. */
void hry_free(const HurrayAllocator *allocator, void *memory, size_t size);
void hry_free_array(const HurrayAllocator *allocator, void *memory, size_t count, size_t size);

/* Makes room for `need` elements of `size` bytes in *memory (capacity *capacity elements, grown by at least half).
 * False: no memory, nothing changed. New room is not zeroed. */
bool hry_grow(const HurrayAllocator *allocator, void **memory, size_t *capacity, size_t need, size_t size);

#endif
