/* Do boxes cover a head exactly, no gap, no overlap? (docs/format.md section 7)
 *
 * Give every coordinate x of dimension k a random number r(k, x) modulo 2^61 - 1, and a box the product over k of
 * r(k, end) - r(k, start). Boxes cover the head exactly when their products sum to the head's own: the difference is a
 * polynomial of degree `rank` in the random numbers that is zero only for an exact cover, so a wrong yes has a chance
 * below rank / 2^61. One box costs O(rank), whatever came before; a gap or overlap is looked for only after a no. */
#ifndef HRY_CORE_COMPOSITE_COVER_H
#define HRY_CORE_COMPOSITE_COVER_H

#include "base/alloc.h"

/* start[k] <= end[k] inside the head; both have `rank` entries. */
typedef struct HryBox {
    const uint64_t *start, *end;
} HryBox;

typedef struct HryCover {
    HurrayAllocator allocator;
    uint64_t seed;
    uint64_t target, sum;
    uint64_t *head;  /* 5 x rank: zeros, the shape; a key of each dimension, then r(k, 0) and r(k, shape_k) */
    uint64_t *boxes; /* 2 x rank each: start, end; in the order they came, empty ones too */
    size_t capacity, count;
    uint32_t rank;
} HryCover;

/* False: no memory, nothing is held. */
bool hry_cover_init(HryCover *cover, const uint64_t *shape, uint32_t rank, const HurrayAllocator *allocator);
void hry_cover_clear(HryCover *cover); /* safe on a zeroed one */
/* Room for one more box, so that hry_cover_add cannot fail. False: no memory. */
bool hry_cover_reserve(HryCover *cover);
/* After hry_cover_reserve. The box [offset, offset + shape), which lies in the head (checked by the caller). */
void hry_cover_add(HryCover *cover, const uint64_t *offset, const uint64_t *shape);
/* Takes the last box back. */
void hry_cover_drop(HryCover *cover);
bool hry_cover_is_exact(const HryCover *cover);
HryBox hry_cover_box(const HryCover *cover, size_t i);

typedef enum HryCoverFault {
    HRY_COVER_GAP,     /* no box covers *where */
    HRY_COVER_OVERLAP, /* boxes a and b both cover *where */
    HRY_COVER_UNKNOWN  /* somewhere inside *where (no memory, or too much work to look closer) */
} HryCoverFault;
/* Where an inexact cover fails. start, end: room for rank entries each. */
HryCoverFault hry_cover_locate(const HryCover *cover, uint64_t *start, uint64_t *end, size_t *a, size_t *b);
/* An empty box that lies strictly inside another one, which public readers call an overlap. False: there is none. */
bool hry_cover_empty_inside(const HryCover *cover, size_t *a, size_t *b);

#endif
