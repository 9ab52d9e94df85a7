/* From the bytes of a source to the bytes of buffer 0 of one entry: read, inflated, swapped, packed, CRC-checked. Loader,
 * read_bytes and conversions all go through it for entries whose bytes do not lie in the source as they are handed out. */
#ifndef HRY_IMPORT_BYTE_SOURCE_H
#define HRY_IMPORT_BYTE_SOURCE_H

#include "core/catalogue.h"

typedef struct HryByteSource HryByteSource;

/* Does the entry need one? False: buffer 0 lies at data_offset, unchanged and unchecked; read it from the transport. */
static inline bool hry_byte_source_needed(const HryEntry *entry) { return entry->side != 0; }

/* transport and catalogue are borrowed until close; entry must have a descriptor and buffer 0. One thread at a time; several over
 * one catalogue are independent (the transport must be concurrent if they run at once). Takes at most 256 KiB. */
HurrayStatus hry_byte_source_open(const HurrayTransport *transport, const HryCatalogue *catalogue, const HryEntry *entry,
                                  const HurrayAllocator *allocator, HryByteSource **out, HurrayError *error);
/* Bytes of buffer 0. */
uint64_t hry_byte_source_size(const HryByteSource *source);
/* Buffer bytes [offset, offset + len), which must lie inside the buffer. Any order; forward without gaps is fast: going back in a
 * deflated member inflates it again from its start. A zip member's CRC-32 is checked by the read that brings its last byte when
 * all before it came in order (deflated members: always); CHECKSUM then, and dst is not to be used. After a failure the next read may be
 * any. Errors carry the file offset; the caller adds the tensor. */
HurrayStatus hry_byte_source_read(HryByteSource *source, uint64_t offset, void *dst, size_t len, HurrayError *error);
/* Does it check a sum of its own? */
bool hry_byte_source_checks(const HryByteSource *source);
/* Bytes that it has read from the transport since it was opened; going back in a deflated member counts from its start again. */
uint64_t hry_byte_source_taken(const HryByteSource *source);
/* *source becomes NULL; NULL in it does nothing. */
void hry_byte_source_close(HryByteSource **source);

#endif
