/* The footer index (docs/format.md 9.4). It is read row by row into whatever table the caller keeps, and its order is checked
 * over that table: nothing is held twice. */
#ifndef HRY_FORMAT_INDEX_H
#define HRY_FORMAT_INDEX_H

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/emit.h"
#include "base/fail.h"
#include "format/container.h"

#define HRY_INDEX_MIN_ENTRY 35u
#define HRY_INDEX_MAX_ENTRIES (UINT32_MAX - 2) /* names are counted in 32 bits */

typedef struct HryIndexRow {
    const uint8_t *name; /* into the section's bytes */
    uint64_t descriptor_offset, data_offset, data_length;
    uint32_t descriptor_length, name_len;
} HryIndexRow;

typedef struct HryIndexReader {
    HryCursor cursor;
    uint64_t count, next;
    uint8_t minor;
} HryIndexReader;

/* The section's bytes, whole; offset: of bytes[0] in the file. Afterwards reader->count rows will come, which the bytes can hold
 * (each has at least HRY_INDEX_MIN_ENTRY). container_minor: a greater one than 0 may leave bytes over. */
HurrayStatus hry_index_open(HryIndexReader *reader, const void *bytes, size_t len, uint64_t offset, uint8_t container_minor,
                            HurrayError *error);
/* Exactly count times: the next row, with every rule that one row can break by itself. */
HurrayStatus hry_index_next(HryIndexReader *reader, HryIndexRow *out, HurrayError *error);
/* After the last row: nothing is left over. */
HurrayStatus hry_index_close(const HryIndexReader *reader, HurrayError *error);

/* Row i of the caller's table. */
typedef void (*HryIndexRowAt)(const void *ctx, uint64_t i, HryIndexRow *out);

/* File flag bit 1: the names strictly increase as bytes. */
HurrayStatus hry_index_check_sorted(HryIndexRowAt row_at, const void *ctx, uint64_t count, HurrayError *error);
/* Names as bytes: below, equal, above 0. */
int hry_index_compare_names(const void *a, size_t a_len, const void *b, size_t b_len);

/* In write order (order: row numbers by descriptor_offset; NULL: as the rows stand) nothing overlaps, and the region ends where KV or
 * index begin. What depends on being a head (rows with data_length 0) waits for hry_index_check_tensor. */
HurrayStatus hry_index_check_places(HryIndexRowAt row_at, const void *ctx, uint64_t count, const uint32_t *order, const HryHeader *header,
                                    const HryTrailer *trailer, HurrayError *error);

/* When the row's descriptor is known: lengths agree, and the places that only a tensor that is no head must keep. limit: the next
 * descriptor_offset in write order, or the end of the region. handles: the buffer table; head: it is a composite head. */
HurrayStatus hry_index_check_tensor(const HryIndexRow *row, const HryHeader *header, uint64_t limit, uint64_t descriptor_length,
                                    const HurrayBufferHandle *handles, uint32_t count, bool head, HurrayError *error);

/* Emits the section; order NULL: as the rows stand. */
void hry_index_encode(HryIndexRowAt row_at, const void *ctx, uint64_t count, const uint32_t *order, HryEmit *emit);
/* Row numbers by name in *order: count of them, from allocator, released with hry_free_array by the caller (count 0: NULL). */
HurrayStatus hry_index_sort_names(HryIndexRowAt row_at, const void *ctx, uint64_t count, const HurrayAllocator *allocator, uint32_t **order,
                                  HurrayError *error);

/* A tensor's name or KV key as the format wants it: 1 to 65,535 bytes of UTF-8. INVALID_NAME, or code when given. */
HurrayStatus hry_index_check_name(const void *name, size_t len, uint64_t offset, HurrayStatus code, const char *field, HurrayError *error);

#endif
