/* Rows of the dense view whose elements lie far apart in the buffer, next to those of other rows (column-major, transposed strides):
 * taken in tiles, so that each cache line of the buffer is fetched once. */
#ifndef HRY_FORMAT_DENSE_TRANSPOSE_H
#define HRY_FORMAT_DENSE_TRANSPOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/dense_part.h"

typedef struct HryTranspose {
    const HryDense *dense;
    uint32_t dimension; /* along it elements lie closest */
    uint64_t slab;      /* elements of the dense view from one index of it to the next */
    int64_t steps[HURRAY_MAX_RANK];
} HryTranspose;

/* Is it worth it? Only for tensors that are not empty. */
bool hry_transpose_plan(HryTranspose *transpose, const HryDense *dense);

/* How many whole slabs of one run along the dimension begin at element `first` and end within count; 0 when too few for tiles. */
uint64_t hry_transpose_rows(const HryTranspose *transpose, uint64_t first, uint64_t count);

/* Those slabs into dst: rows x slab elements. */
HurrayStatus hry_transpose_fill(const HryTranspose *transpose, uint64_t first, uint64_t rows, uint8_t *dst, HurrayError *error);

#endif
