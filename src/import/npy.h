/* The header of an NPY array (docs/foreign-formats.md 3.1 to 3.3). Pure. */
#ifndef HRY_IMPORT_NPY_H
#define HRY_IMPORT_NPY_H

#include "base/alloc.h"
#include "core/catalogue.h"

#define HRY_NPY_FIRST 12u         /* bytes that tell how long the header is */
#define HRY_NPY_MAX_PREFIX 10012u /* those, and the longest header */

typedef struct HryNpy {
    uint8_t type_tag, item_size;
    bool fortran;         /* column-major; only with rank >= 2 */
    HryByteChange change; /* AS_IS, PACK_BOOL, SWAP */
    uint32_t unit;        /* SWAP */
    uint32_t rank;
    uint64_t shape[HURRAY_MAX_RANK];
    uint64_t bytes;        /* of the elements in the file */
    uint64_t buffer_bytes; /* and in their buffer */
} HryNpy;

/* Does the array begin as one does? */
bool hry_npy_is_magic(const uint8_t *bytes, size_t len);
/* bytes: the first HRY_NPY_FIRST, fewer if the array has fewer. *prefix: bytes before the elements. offset: of bytes, for messages. */
HurrayStatus hry_npy_prefix(const uint8_t *bytes, size_t len, uint64_t offset, size_t *prefix, HurrayError *error);
/* bytes: the whole prefix; size: of prefix and elements as they are there, which must be exactly what the shape needs. */
HurrayStatus hry_npy_parse(const uint8_t *bytes, size_t prefix, uint64_t size, uint64_t offset, HryNpy *out, HurrayError *error);
HurrayStatus hry_npy_describe(const HryNpy *npy, const HurrayAllocator *allocator, HurrayDescriptor **out, HurrayError *error);

#endif
