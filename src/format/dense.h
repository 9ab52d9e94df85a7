/* The dense view of one tensor: its logical elements in row-major order, a stretch at a time, whatever the layout; in the tensor's
 * own type (bits moved, never interpreted) or as float32 (decoded, dequantized). Uses no memory of its own. */
#ifndef HRY_FORMAT_DENSE_H
#define HRY_FORMAT_DENSE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/dequant.h"
#include "format/descriptor.h"
#include "format/ggml.h"
#include "format/payload.h"
#include "format/value.h"

#define HRY_DENSE_OWN 0 /* the type argument: the tensor's own */

/* From the descriptor alone, composite heads included: elements of the dense view and its bytes, or why there is none. What only
 * contents can tell (block-paged) is left to open. */
HurrayStatus hry_dense_plan(const HurrayDescriptor *descriptor, uint8_t type, uint64_t *elements, uint64_t *bytes, HurrayError *error);

typedef struct HryDense {
    const HurrayDescriptor *descriptor;
    const HryBytes *buffers; /* NULL for a window */
    const uint8_t *base;     /* where element `before` lies (sparse: the first stored one) */
    uint64_t before;         /* elements that a window leaves out in front; else 0 */
    HryForm form;  /* of the stored elements */
    bool decodes;  /* float32 comes out, and is not what is stored */
    uint32_t bits; /* of an element that comes out */
    uint64_t elements;
    const HryGgmlType *ggml; /* block layout, else NULL */
    bool dequantizes;
    HryDequant dequant;
    float table[256];
} HryDense;

/* buffers: descriptor->buffer_count of them, borrowed as is the descriptor. A buffer below its declared size is INVALID_ARGUMENT. Not
 * for composite heads. */
HurrayStatus hry_dense_open(HryDense *dense, const HurrayDescriptor *descriptor, const HryBytes *buffers, uint8_t type, HurrayError *error);

/* Elements first .. first + count - 1 into dst, element `first` at its beginning: packed, unused bits of the last byte (group) 0.
 * So stretches of a multiple of 8 elements join to the whole. Sparse tensors walk all their entries for each stretch: take large
 * ones. On failure dst holds anything. */
HurrayStatus hry_dense_stretch(const HryDense *dense, uint64_t first, uint64_t count, void *dst, HurrayError *error);

/* What a stretch is made from: codes, scales and zero points, each a range of a buffer. */
enum { HRY_WINDOW_CODES, HRY_WINDOW_SCALES, HRY_WINDOW_ZEROS, HRY_WINDOW_PARTS };
typedef struct HryWindowPart {
    uint32_t buffer;
    uint64_t offset, len; /* len 0: not needed */
} HryWindowPart;
typedef struct HryDenseWindow {
    uint64_t first, count, elements; /* the stretch; of the whole view */
    uint64_t bytes;                  /* of the stretch, as it comes out */
    uint64_t before, parameter;      /* the element and the parameter with which the parts begin */
    HryWindowPart parts[HRY_WINDOW_PARTS];
} HryDenseWindow;

/* Only where they are few for a stretch: row-major and GGML blocks, quantization blocks along the last dimension; else UNSUPPORTED.
 * INDEX_OUT_OF_BOUNDS. Ranges may lie outside a buffer of a wrong size: whoever reads them checks. */
HurrayStatus hry_dense_window(const HurrayDescriptor *descriptor, uint8_t type, uint64_t first, uint64_t count, HryDenseWindow *window,
                              HurrayError *error);
/* parts: their bytes, borrowed. Then hry_dense_stretch for (part of) the window's elements, which must not be none. */
HurrayStatus hry_dense_open_window(HryDense *dense, const HurrayDescriptor *descriptor, const HryDenseWindow *window,
                                   const uint8_t *const parts[HRY_WINDOW_PARTS], uint8_t type, HurrayError *error);

/* One element (index in bounds) as a code: dense->bits / 8 bytes, one for types below 8 bits. */
HurrayStatus hry_dense_element(const HryDense *dense, const uint64_t *index, void *dst, HurrayError *error);

/* For those who walk the stored elements of a sparse tensor (sparse.h): the value at `position`, which belongs to index, as a code. */
HurrayStatus hry_dense_stored(const HryDense *dense, const uint64_t *index, uint64_t position, void *dst, HurrayError *error);

/* Bytes of n elements that come out; false: beyond 64 bits. */
bool hry_dense_bytes(const HryDense *dense, uint64_t n, uint64_t *bytes);

#endif
