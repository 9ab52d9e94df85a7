#include "base/names.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/checked.h"

static uint64_t make_seed(const void *salt) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = (uint64_t)(uintptr_t)salt ^ (uint64_t)time(NULL) * UINT64_C(0x9E3779B97F4A7C15);
    return seed;
}

/* Slots for count names at a load of at most two thirds. 0: does not fit. */
static size_t slots_for(size_t count) {
    size_t slots = 16;
    while (slots / 3 * 2 < count) {
        if (slots > SIZE_MAX / 2 / sizeof(uint32_t)) return 0;
        slots *= 2;
    }
    return slots;
}

bool hry_names_init(HryNames *names, const HurrayAllocator *allocator, size_t expected, HryNameAt name_at, const void *ctx) {
    memset(names, 0, sizeof *names);
    names->allocator = *allocator;
    names->name_at = name_at;
    names->ctx = ctx;
    names->seed = make_seed(names);
    size_t slots = slots_for(expected);
    if (slots == 0) return false;
    names->slots = hry_alloc_array(allocator, slots, sizeof *names->slots);
    if (!names->slots) return false;
    names->slot_count = slots;
    return true;
}

void hry_names_clear(HryNames *names) {
    if (names->slots) hry_free_array(&names->allocator, names->slots, names->slot_count, sizeof *names->slots);
    memset(names, 0, sizeof *names);
}

/* The slot that holds the name, or the free one where it would go. */
static size_t probe(const HryNames *names, const void *name, size_t len) {
    size_t mask = names->slot_count - 1;
    size_t at = (size_t)XXH3_64bits_withSeed(len ? name : "", len, names->seed) & mask;
    for (;; at = (at + 1) & mask) {
        if (names->slots[at] == 0) return at;
        const uint8_t *other;
        size_t other_len;
        names->name_at(names->ctx, names->slots[at] - 1, &other, &other_len);
        if (other_len == len && (len == 0 || memcmp(other, name, len) == 0)) return at;
    }
}

/* More slots, for at least count names. */
static bool grow(HryNames *names, size_t count) {
    HryNames bigger = *names;
    bigger.slot_count = slots_for(count);
    if (bigger.slot_count == 0) return false;
    bigger.slots = hry_alloc_array(&names->allocator, bigger.slot_count, sizeof *bigger.slots);
    if (!bigger.slots) return false;
    for (size_t i = 0; i < names->slot_count; i++) {
        if (names->slots[i] == 0) continue;
        const uint8_t *name;
        size_t len;
        names->name_at(names->ctx, names->slots[i] - 1, &name, &len);
        bigger.slots[probe(&bigger, name, len)] = names->slots[i];
    }
    hry_free_array(&names->allocator, names->slots, names->slot_count, sizeof *names->slots);
    *names = bigger;
    return true;
}

bool hry_names_reserve(HryNames *names, size_t more) {
    size_t need;
    if (!hry_add_size(names->count, more, &need)) return false;
    if (need <= names->slot_count / 3 * 2) return true;
    size_t half_more = names->count + 1 + names->count / 2;
    return grow(names, need > half_more ? need : half_more);
}

HryNamesAdd hry_names_add(HryNames *names, uint64_t i, uint64_t *other) {
    if (i >= UINT32_MAX - 1) return HRY_NAMES_NO_MEMORY;
    if (names->count >= names->slot_count / 3 * 2 && !grow(names, names->count + 1 + names->count / 2)) return HRY_NAMES_NO_MEMORY;
    const uint8_t *name;
    size_t len;
    names->name_at(names->ctx, i, &name, &len);
    size_t at = probe(names, name, len);
    if (names->slots[at]) {
        if (other) *other = names->slots[at] - 1;
        return HRY_NAMES_DUPLICATE;
    }
    names->slots[at] = (uint32_t)i + 1;
    names->count++;
    return HRY_NAMES_ADDED;
}

bool hry_names_find(const HryNames *names, const void *name, size_t len, uint64_t *i) {
    if (!names->slots) return false;
    size_t at = probe(names, name, len);
    if (names->slots[at] == 0) return false;
    *i = names->slots[at] - 1;
    return true;
}
