/* Between dense.c (what comes out, one element) and dense_fill.c (many of them). */
#ifndef HRY_FORMAT_DENSE_PART_H
#define HRY_FORMAT_DENSE_PART_H

#include "format/address.h"
#include "format/dense.h"

/* What the descriptor alone says; buffers, table and parameters are not there yet. */
HurrayStatus hry_dense_begin(HryDense *dense, const HurrayDescriptor *descriptor, uint8_t type, HurrayError *error);

/* The elements of a checked, non-empty stretch; in the default float modes. */
HurrayStatus hry_dense_fill(const HryDense *dense, uint64_t first, uint64_t count, uint8_t *dst, HurrayError *error);

/* The run that starts at index, and for block-paged its page slot. */
HurrayStatus hry_dense_run(const HryDense *dense, const uint64_t *index, uint64_t limit, HryRun *run, uint64_t *slot, HurrayError *error);

/* Codes of the elements at index, index + 1, ... along the last dimension, as float32. */
HurrayStatus hry_dense_decode(const HryDense *dense, const uint64_t *index, uint64_t slot, const uint8_t *codes, size_t count,
                              float *values, HurrayError *error);

/* The element at offset o of buffer 0, which belongs to index, as what comes out. */
HurrayStatus hry_dense_convert(const HryDense *dense, const uint64_t *index, uint64_t slot, int64_t o, uint8_t *dst, HurrayError *error);

HurrayStatus hry_dense_bad_value(uint64_t element, uint8_t code, HurrayError *error);

#endif
