/* Zip archives as NPZ needs them: the central directory is the only authority (docs/foreign-formats.md 3.4). */
#ifndef HRY_IMPORT_ZIP_H
#define HRY_IMPORT_ZIP_H

#include "base/alloc.h"
#include "hurray.h"

typedef struct HryZipMember {
    const uint8_t *name;                    /* into the directory; no NUL; ASCII or UTF-8 */
    uint64_t packed, unpacked, local, data; /* data: offset of the packed bytes, once hry_zip_locate has found them */
    uint32_t crc32;
    uint16_t name_len, method, flags;
} HryZipMember;

typedef struct HryZip {
    HurrayAllocator allocator;
    const HurrayTransport *transport;
    uint8_t *directory;
    size_t directory_size;
    uint64_t directory_offset;
    HryZipMember *members; /* directory order */
    size_t count;
} HryZip;

/* max_bytes: the largest directory that is read. On failure nothing is held. */
HurrayStatus hry_zip_open(const HurrayTransport *transport, uint64_t size, uint64_t max_bytes, const HurrayAllocator *allocator,
                          HryZip *out, HurrayError *error);
void hry_zip_close(HryZip *zip);

/* Reads the local header of a member, compares it with the directory, sets data. */
HurrayStatus hry_zip_locate(const HryZip *zip, HryZipMember *member, HurrayError *error);
/* After all are located: no two spans overlap, none reaches into the directory. */
HurrayStatus hry_zip_check_spans(const HryZip *zip, HurrayError *error);

#endif
