/* Small texts that live as long as a catalogue, packed into few of its blocks. */
#ifndef HRY_IMPORT_ARENA_H
#define HRY_IMPORT_ARENA_H

#include <string.h>

#include "core/catalogue.h"

typedef struct HryArena {
    HryCatalogue *catalogue;
    uint8_t *at;
    size_t left, chunk;
} HryArena;

static inline HryArena hry_arena(HryCatalogue *catalogue) {
    HryArena arena = {catalogue, NULL, 0, 256};
    return arena;
}

/* len bytes to be filled; NULL: no memory. len 0 gives a pointer that is not NULL. */
static inline uint8_t *hry_arena_take(HryArena *arena, size_t len) {
    if (len == 0) len = 1;
    if (len > arena->left) {
        if (arena->chunk < 65536) arena->chunk *= 2; /* at most twice what is really kept */
        if (len >= arena->chunk / 4) return hry_catalogue_block(arena->catalogue, len);
        arena->at = hry_catalogue_block(arena->catalogue, arena->chunk);
        arena->left = arena->at ? arena->chunk : 0;
        if (!arena->at) return NULL;
    }
    uint8_t *taken = arena->at;
    arena->at += len;
    arena->left -= len;
    return taken;
}

/* The same at a multiple of 8. */
static inline void *hry_arena_take_aligned(HryArena *arena, size_t len) {
    size_t skip = (8 - (uintptr_t)arena->at % 8) % 8;
    if (len == 0 || skip > arena->left) skip = 0;
    if (len > arena->left - skip) { /* a block, or what begins one, is aligned */
        arena->left = 0;
        return hry_arena_take(arena, len);
    }
    if (skip) {
        arena->at += skip;
        arena->left -= skip;
    }
    return hry_arena_take(arena, len);
}

static inline const uint8_t *hry_arena_copy(HryArena *arena, const void *text, size_t len) {
    uint8_t *copy = hry_arena_take(arena, len);
    if (copy && len) memcpy(copy, text, len);
    return copy;
}

#endif
