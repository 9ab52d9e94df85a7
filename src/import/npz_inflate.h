/* The zip parts that zlib does: raw deflate streams read forward through a transport, CRC-32. The importers' only face of zlib. */
#ifndef HRY_IMPORT_NPZ_INFLATE_H
#define HRY_IMPORT_NPZ_INFLATE_H

#include "base/alloc.h"
#include "hurray.h"

typedef struct HryInflate HryInflate;

/* The packed range [offset, offset + packed) of the transport (borrowed), which gives `unpacked` bytes. Takes about 110 KiB. */
HurrayStatus hry_inflate_open(const HurrayTransport *transport, uint64_t offset, uint64_t packed, uint64_t unpacked,
                              const HurrayAllocator *allocator, HryInflate **out, HurrayError *error);
/* The next len bytes, at most what is left of `unpacked`. With the last one the stream must end too, exactly with the packed bytes.
 * INVALID_DATA: it does not. */
HurrayStatus hry_inflate_read(HryInflate *inflate, void *dst, size_t len, HurrayError *error);
uint64_t hry_inflate_position(const HryInflate *inflate);
uint64_t hry_inflate_taken(const HryInflate *inflate); /* packed bytes read from the transport */
/* CRC-32 of all that was read so far. */
uint32_t hry_inflate_crc32(const HryInflate *inflate);
/* Back to the first byte. */
HurrayStatus hry_inflate_restart(HryInflate *inflate, HurrayError *error);
void hry_inflate_close(HryInflate **inflate);

uint32_t hry_crc32(uint32_t crc, const void *bytes, size_t len);

#endif
