/* Device memory in pieces, each counted: its last buffer gives it back. A piece is divided into stripes of a slot's size; a staging slot
 * is the image of one stripe while that is filled, so that many small buffers go over in one copy. */
#ifndef HRY_CUDA_ARENA_H
#define HRY_CUDA_ARENA_H

#include "cuda/staging.h"
#include "hurray/destination.h"

typedef enum HryCudaPieceKind { HRY_CUDA_PIECE_DEVICE, HRY_CUDA_PIECE_MANAGED, HRY_CUDA_PIECE_PINNED, HRY_CUDA_PIECE_POOL, HRY_CUDA_PIECE_LENT } HryCudaPieceKind;

typedef struct HryCudaStripe {
    struct HryCudaPiece *piece;
    HryCudaSlot *slot;       /* its image, while it is filled */
    HryCudaMark *mark;       /* behind its last copy; one reference */
    uint64_t seq;            /* of that copy, 0: none yet */
    uint64_t begin, size;    /* in the piece */
    uint64_t filled;         /* bytes committed, and those that belong to nobody */
    bool eager;              /* something in it was discarded: it will never be full */
    HurrayStatus failed;     /* of a copy of it, or OK */
    uint32_t sending;        /* copies being enqueued */
} HryCudaStripe;

typedef struct HryCudaPiece {
    HryCudaDevice *device; /* one reference */
    HurrayAllocator allocator;
    atomic_uint references;
    HryCudaPieceKind kind;
    HurrayDeviceMemory pool; /* POOL */
    void *memory;            /* as it was allocated */
    uint8_t *base;           /* first byte used, aligned to a page */
    uint64_t bytes;          /* allocated */
    uint64_t size, used;     /* from base */
    bool closed;             /* nothing more is cut from it */
    struct HryCudaLane *lane; /* whose copies fill it; only while the destination lives */
    HryCudaStripe *stripes;  /* NULL: PINNED */
    size_t stripe_count;
} HryCudaPiece;

typedef struct HryCudaPieceWish {
    HryCudaPieceKind kind;
    uint64_t need, wanted; /* bytes: least and best */
    uint64_t stripe_bytes; /* 0: no stripes */
    const HurrayDeviceMemory *pool;
    void *stream, *lent;
} HryCudaPieceWish;

/* A piece of at least need bytes at a page's alignment; from wanted down in halves. On OK the caller's reference. Calls the runtime. */
HurrayStatus hry_cuda_piece_new(HryCudaDevice *device, const HryCudaPieceWish *wish, HryCudaPiece **out, HurrayError *error);
HryCudaPiece *hry_cuda_piece_ref(HryCudaPiece *piece);
void hry_cuda_piece_unref(HryCudaPiece *piece); /* any thread; may call the runtime */

/* Cuts `size` bytes at `alignment` (of the address) from what is left; *begin is where, *hole where the bytes before it begin. */
bool hry_cuda_piece_cut(HryCudaPiece *piece, uint64_t size, uint64_t alignment, uint64_t *begin, uint64_t *hole);
static inline HryCudaStripe *hry_cuda_stripe_at(HryCudaPiece *piece, uint64_t offset) { return &piece->stripes[offset / piece->stripes[0].size]; }
/* All that will ever be in it has been committed, and nothing more will be cut from it. */
bool hry_cuda_stripe_is_full(const HryCudaStripe *stripe);

#endif
