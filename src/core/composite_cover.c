#include "core/composite_cover.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/checked.h"

#define PRIME ((UINT64_C(1) << 61) - 1)
#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)
#define LOCATE_WORK (UINT64_C(1) << 27) /* coordinates looked at before the search for a fault settles for a region */

__extension__ typedef unsigned __int128 Wide;

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t reduce(uint64_t x) {
    x = (x & PRIME) + (x >> 61);
    return x >= PRIME ? x - PRIME : x;
}

static uint64_t add_mod(uint64_t a, uint64_t b) { return reduce(a + b); } /* both below 2^61 */
static uint64_t sub_mod(uint64_t a, uint64_t b) { return a >= b ? a - b : a + PRIME - b; }
static uint64_t mul_mod(uint64_t a, uint64_t b) {
    Wide product = (Wide)a * b;
    return reduce((uint64_t)(product & PRIME) + (uint64_t)(product >> 61));
}

static const uint64_t *shape_of(const HryCover *cover) { return cover->head + cover->rank; }
static uint64_t *keys_of(const HryCover *cover) { return cover->head + 2 * (size_t)cover->rank; }

/* r(k, x): nobody who made the input knows the seed. */
static uint64_t make_weight(const HryCover *cover, uint32_t k, uint64_t x) {
    return reduce(mix(mix(x ^ keys_of(cover)[k]) + cover->seed));
}

/* The same; the two edges of the head, which most boxes touch, are known already. */
static uint64_t weight(const HryCover *cover, uint32_t k, uint64_t x) {
    const uint64_t *edges = keys_of(cover) + cover->rank;
    if (x == 0) return edges[k];
    return x == shape_of(cover)[k] ? edges[cover->rank + k] : make_weight(cover, k, x);
}

/* The product of a box clipped to [lo, hi): 0 when nothing is left. */
static uint64_t product(const HryCover *cover, HryBox box, const uint64_t *lo, const uint64_t *hi) {
    uint64_t result = 1;
    for (uint32_t k = 0; k < cover->rank && result != 0; k++) {
        uint64_t start = box.start[k] > lo[k] ? box.start[k] : lo[k], end = box.end[k] < hi[k] ? box.end[k] : hi[k];
        if (start >= end) return 0;
        result = mul_mod(result, sub_mod(weight(cover, k, end), weight(cover, k, start)));
    }
    return result;
}

static HryBox head_box(const HryCover *cover) { return (HryBox){cover->head, shape_of(cover)}; }

HryBox hry_cover_box(const HryCover *cover, size_t i) {
    const uint64_t *at = cover->boxes + i * 2 * cover->rank;
    return (HryBox){at, at + cover->rank};
}

static uint64_t whole_product(const HryCover *cover, HryBox box) {
    HryBox head = head_box(cover);
    return product(cover, box, head.start, head.end);
}

/* One more than needed, so that rank 0 has memory too and no pointer is NULL. */
static size_t head_entries(uint32_t rank) { return 5 * (size_t)rank + 1; }

bool hry_cover_init(HryCover *cover, const uint64_t *shape, uint32_t rank, const HurrayAllocator *allocator) {
    memset(cover, 0, sizeof *cover);
    cover->allocator = *allocator;
    cover->rank = rank;
    uint64_t seed[2];
    if (getrandom(seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        seed[0] = mix((uint64_t)(uintptr_t)cover ^ (uint64_t)time(NULL) * GOLDEN);
        seed[1] = mix(seed[0] + (uint64_t)clock());
    }
    cover->seed = seed[0];
    cover->head = hry_alloc_array(allocator, head_entries(rank), sizeof *cover->head);
    if (!cover->head) return false;
    for (uint32_t k = 0; k < rank; k++) {
        cover->head[rank + k] = shape[k];
        uint64_t *key = keys_of(cover) + k;
        key[0] = mix(seed[1] + (k + 1) * GOLDEN);
        key[rank] = make_weight(cover, k, 0);
        key[2 * (size_t)rank] = make_weight(cover, k, shape[k]);
    }
    cover->target = whole_product(cover, head_box(cover));
    return true;
}

void hry_cover_clear(HryCover *cover) {
    if (!cover->head) return;
    hry_free_array(&cover->allocator, cover->head, head_entries(cover->rank), sizeof *cover->head);
    hry_free_array(&cover->allocator, cover->boxes, cover->capacity, sizeof *cover->boxes);
    memset(cover, 0, sizeof *cover);
}

bool hry_cover_reserve(HryCover *cover) {
    size_t need;
    if (!hry_add_size(cover->count, 1, &need) || !hry_mul_size(need, 2 * (size_t)cover->rank + (cover->rank == 0), &need)) return false;
    void *memory = cover->boxes;
    if (!hry_grow(&cover->allocator, &memory, &cover->capacity, need, sizeof *cover->boxes)) return false;
    cover->boxes = memory;
    return true;
}

void hry_cover_add(HryCover *cover, const uint64_t *offset, const uint64_t *shape) {
    uint64_t *at = cover->boxes + cover->count * 2 * cover->rank;
    for (uint32_t k = 0; k < cover->rank; k++) {
        at[k] = offset[k];
        at[cover->rank + k] = offset[k] + shape[k];
    }
    cover->sum = add_mod(cover->sum, whole_product(cover, hry_cover_box(cover, cover->count)));
    cover->count++;
}

void hry_cover_drop(HryCover *cover) {
    cover->count--;
    cover->sum = sub_mod(cover->sum, whole_product(cover, hry_cover_box(cover, cover->count)));
}

/* In a head without elements every product is 0, its own too. */
bool hry_cover_is_exact(const HryCover *cover) { return cover->sum == cover->target; }

/* Do box and [lo, hi) share a point? */
static bool meets(const HryCover *cover, HryBox box, const uint64_t *lo, const uint64_t *hi) {
    for (uint32_t k = 0; k < cover->rank; k++)
        if (box.start[k] >= hi[k] || box.end[k] <= lo[k] || box.start[k] >= box.end[k]) return false;
    return true;
}

/* Keeps of list[0..count) the boxes that meet [lo, hi). */
static size_t keep_meeting(const HryCover *cover, size_t *list, size_t count, const uint64_t *lo, const uint64_t *hi) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (meets(cover, hry_cover_box(cover, list[i]), lo, hi)) list[kept++] = list[i];
    return kept;
}

/* One edge of the listed boxes strictly inside [lo, hi), each with the same chance. False: there is none. */
static bool pick_cut(const HryCover *cover, const size_t *list, size_t count, const uint64_t *lo, const uint64_t *hi, uint64_t *random,
                     uint32_t *axis, uint64_t *cut) {
    uint64_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        HryBox box = hry_cover_box(cover, list[i]);
        for (uint32_t k = 0; k < cover->rank; k++) {
            const uint64_t edges[2] = {box.start[k], box.end[k]};
            for (int side = 0; side < 2; side++) {
                if (edges[side] <= lo[k] || edges[side] >= hi[k]) continue;
                *random += GOLDEN;
                if (mix(*random) % ++seen != 0) continue;
                *axis = k;
                *cut = edges[side];
            }
        }
    }
    return seen != 0;
}

static bool is_covered(const HryCover *cover, const size_t *list, size_t count, const uint64_t *lo, const uint64_t *hi) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum = add_mod(sum, product(cover, hry_cover_box(cover, list[i]), lo, hi));
    return sum == product(cover, head_box(cover), lo, hi);
}

/* Halves the region along an edge; the products tell which half is wrong; until no edge is left inside. */
HryCoverFault hry_cover_locate(const HryCover *cover, uint64_t *start, uint64_t *end, size_t *a, size_t *b) {
    HryBox head = head_box(cover);
    for (uint32_t k = 0; k < cover->rank; k++) {
        start[k] = head.start[k];
        end[k] = head.end[k];
    }
    if (cover->count == 0) return HRY_COVER_GAP;
    size_t *list = hry_alloc_array(&cover->allocator, cover->count, sizeof *list);
    if (!list) return HRY_COVER_UNKNOWN;
    for (size_t i = 0; i < cover->count; i++) list[i] = i;
    size_t count = keep_meeting(cover, list, cover->count, start, end);
    uint64_t random = cover->seed, work = 0, cut = 0;
    uint32_t axis = 0;
    HryCoverFault fault = HRY_COVER_UNKNOWN;
    for (;;) {
        if (!pick_cut(cover, list, count, start, end, &random, &axis, &cut)) {
            if (count == 0) fault = HRY_COVER_GAP;
            if (count >= 2) {
                fault = HRY_COVER_OVERLAP;
                *a = list[0];
                *b = list[1];
            }
            break;
        }
        work += (uint64_t)count * cover->rank;
        if (work > LOCATE_WORK) break;
        uint64_t far = end[axis];
        end[axis] = cut;
        if (is_covered(cover, list, count, start, end)) {
            start[axis] = cut;
            end[axis] = far;
        }
        count = keep_meeting(cover, list, count, start, end);
    }
    hry_free_array(&cover->allocator, list, cover->count, sizeof *list);
    return fault;
}

/* Is box empty, and does it not lie flat on an edge of the head, where nothing can be around it? */
static bool may_lie_inside(const HryCover *cover, HryBox box) {
    bool is_empty = false;
    HryBox head = head_box(cover);
    for (uint32_t k = 0; k < cover->rank; k++) {
        if (box.start[k] != box.end[k]) continue;
        is_empty = true;
        if (box.start[k] == 0 || box.end[k] == head.end[k]) return false;
    }
    return is_empty;
}

bool hry_cover_empty_inside(const HryCover *cover, size_t *a, size_t *b) {
    for (size_t i = 0; i < cover->count; i++) {
        HryBox flat = hry_cover_box(cover, i);
        if (!may_lie_inside(cover, flat)) continue;
        for (size_t j = 0; j < cover->count; j++) {
            HryBox other = hry_cover_box(cover, j);
            uint32_t k = 0;
            while (k < cover->rank && flat.start[k] < other.end[k] && other.start[k] < flat.end[k]) k++;
            if (k < cover->rank) continue;
            *a = i;
            *b = j;
            return true;
        }
    }
    return false;
}
