/* The immutable list of what a source offers: names, descriptors when known, byte ranges, KV. Filled by file_open (.hrry)
 * and by the importers, then shared (counted) by readers, clones, forks and the loader, on any thread.
 * Compact: a file of a million tensors must open in less than four times its index. */
#ifndef HRY_CORE_CATALOGUE_H
#define HRY_CORE_CATALOGUE_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/names.h"
#include "format/descriptor.h"
#include "format/index.h"
#include "format/kv.h"
#include "format/sums.h"
#include "hurray.h"

/* How the bytes of an entry change on the way (foreign formats; docs: importers only). */
typedef enum HryByteChange {
    HRY_BYTES_AS_IS,
    HRY_BYTES_PACK_BOOL, /* one byte an element in the source, 8 elements a byte in the buffer; a byte other than 0, 1 is INVALID_DATA */
    HRY_BYTES_SWAP,      /* units of `unit` bytes are reversed */
    HRY_BYTES_INFLATE    /* raw deflate; then `then` (AS_IS, PACK_BOOL or SWAP) */
} HryByteChange;

/* What an importer knows beyond a plain range. One per entry that needs it, in the catalogue's side table. */
typedef struct HryForeign {
    HryByteChange bytes, then;
    uint32_t unit;              /* SWAP: bytes a unit, 2 to 16 */
    uint64_t packed_offset;     /* of the first source byte (INFLATE: of the deflate stream) */
    uint64_t packed_length;     /* source bytes */
    uint64_t unpacked_length;   /* INFLATE: bytes after inflating, the prefix below included */
    uint64_t skip;              /* INFLATE: unpacked bytes before the payload (an NPY header) */
    bool has_crc32;             /* zip: CRC-32 of the unpacked member, prefix included */
    uint32_t crc32;
    uint32_t crc_prefix;        /* AS_IS etc.: CRC-32 of the prefix bytes already read (an NPY header), joined by zlib's crc32_combine */
} HryForeign;

typedef struct HryEntry {
    const uint8_t *name; /* into the catalogue's own bytes; NULL: no name (streams) */
    uint64_t descriptor_offset; /* HURRAY_NONE when the source has no descriptor (foreign) */
    uint64_t data_offset;       /* of buffer 0 (not for heads) */
    uint64_t data_length;
    HurrayDescriptor *descriptor; /* known already (foreign, streams), one reference; NULL: read it at descriptor_offset */
    uint32_t descriptor_length;
    uint32_t name_len;
    uint32_t side; /* 1 + place in foreign[], 0: none */
    uint32_t fault; /* 1 + place in faults[], 0: none: the entry is spoiled */
} HryEntry;

typedef struct HryCatalogue {
    HurrayAllocator allocator;
    atomic_uint references;
    uint32_t format; /* HURRAY_FORMAT_... */
    uint8_t major, minor;
    uint32_t flags, data_buffer_alignment;
    uint64_t byte_size; /* of the source */
    uint64_t first_descriptor_offset, region_end; /* .hrry: where the tensor region begins and ends at the latest */
    HryEntry *entries;  /* in index order (.hrry), data or directory order (others) */
    size_t entry_count, entry_capacity;
    uint32_t *write_order; /* entry numbers by descriptor_offset; NULL: as they stand */
    HryNames names;
    bool sorted; /* names strictly increase: lookup by bisection, no hash made */
    uint8_t *name_bytes; /* owns what names point to (the index section of a .hrry file) */
    size_t name_bytes_size;
    HurrayKvEntry *kv;
    size_t kv_count, kv_capacity;
    uint8_t *kv_bytes; /* owns what kv points to */
    size_t kv_bytes_size;
    HryKv section; /* .hrry: owns the array kv, whose capacity is then 0 */
    struct HryBlock *blocks; /* further owned memory: converted arrays, decoded names */
    HrySums sums;
    HryForeign *foreign;
    size_t foreign_count, foreign_capacity;
    HurrayError *faults;
    size_t fault_count, fault_capacity;
    HurrayError *notes;
    size_t note_count, note_capacity;
} HryCatalogue;

HurrayStatus hry_catalogue_new(const HurrayAllocator *allocator, HryCatalogue **out, HurrayError *error);
HryCatalogue *hry_catalogue_ref(HryCatalogue *catalogue);
void hry_catalogue_unref(HryCatalogue *catalogue);

/* Building (one thread, before it is shared). */
void *hry_catalogue_block(HryCatalogue *catalogue, size_t size); /* memory that lives as long as the catalogue; NULL: none */
HurrayStatus hry_catalogue_reserve(HryCatalogue *catalogue, uint64_t entries, HurrayError *error); /* room for exactly so many */
HurrayStatus hry_catalogue_add(HryCatalogue *catalogue, const HryEntry *entry, HurrayError *error); /* takes the descriptor reference on OK */
HurrayStatus hry_catalogue_add_kv(HryCatalogue *catalogue, const HurrayKvEntry *entry, HurrayError *error); /* pointers must live as long as it does */
HurrayStatus hry_catalogue_add_foreign(HryCatalogue *catalogue, const HryForeign *foreign, uint32_t *side, HurrayError *error);
HurrayStatus hry_catalogue_add_fault(HryCatalogue *catalogue, const HurrayError *fault, uint32_t *place, HurrayError *error);
HurrayStatus hry_catalogue_add_note(HryCatalogue *catalogue, const HurrayError *note, HurrayError *error);
/* After the last add: the lookup. DUPLICATE_NAME names the second. */
HurrayStatus hry_catalogue_index_names(HryCatalogue *catalogue, HurrayError *error);
/* Finds the order of the descriptor offsets; write_order stays NULL when the entries stand in it. Equal offsets stay as they stand. */
HurrayStatus hry_catalogue_order(HryCatalogue *catalogue, HurrayError *error);
/* Looks for stored checksums among the KV; a value that does not fit is as if not stored (docs/format.md 9.7). */
HurrayStatus hry_catalogue_find_sums(HryCatalogue *catalogue, HurrayError *error);

/* Reading. */
void hry_catalogue_row(const HryCatalogue *catalogue, uint64_t i, HryIndexRow *out);
bool hry_catalogue_find(const HryCatalogue *catalogue, const void *name, size_t len, uint64_t *i);
bool hry_catalogue_find_kv(const HryCatalogue *catalogue, const void *key, size_t len, uint64_t *i);
/* The entry that stands at place p in write order, and back. */
uint64_t hry_catalogue_in_write_order(const HryCatalogue *catalogue, uint64_t p);
uint64_t hry_catalogue_write_place(const HryCatalogue *catalogue, uint64_t i);
/* Offset in the source of buffer k of an entry whose descriptor is known: data_offset, then each next at
 * align_up(end, data_buffer_alignment) (.hrry), or contiguous (streams). False: does not fit 64 bits. */
bool hry_catalogue_buffer_offset(const HryCatalogue *catalogue, const HryEntry *entry, const HurrayDescriptor *descriptor, uint32_t k,
                                 uint64_t *out);
/* The stored CRC-32C of a buffer; false: none is stored, or the entry's count does not fit (docs/format.md 9.7). */
bool hry_catalogue_sum(const HryCatalogue *catalogue, uint64_t i, const HurrayDescriptor *descriptor, uint32_t k, uint32_t *out);

#endif
