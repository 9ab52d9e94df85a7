#include "format/container.h"

#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/emit.h"
#include "format/crc32c.h"

static const uint8_t file_magic[8] = {'H', 'R', 'R', 'Y', 'F', 'I', 'L', 'E'};
static const uint8_t end_magic[4] = {'H', 'R', 'R', 'Y'};

#define BAD(field, at, ...) hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, field, at, __VA_ARGS__)

HurrayStatus hry_container_check_size(uint64_t file_size, HurrayError *error) {
    if (file_size >= HRY_SMALLEST_FILE) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_TRUNCATED, "file_size", 0,
                    "the file has %llu bytes, the smallest Hurray file has %u; it is no Hurray file or was cut short",
                    (unsigned long long)file_size, HRY_SMALLEST_FILE);
}

static HurrayStatus fail_magic(const uint8_t *bytes, HurrayError *error) {
    char shown[40];
    if (memcmp(bytes, end_magic, 4) == 0 && bytes[4] == 1)
        return hry_fail(error, HURRAY_ERR_INVALID_MAGIC, "header.magic", 0,
                        "the file begins with a tensor descriptor: it is a Hurray stream, not a file; read it as a stream");
    return hry_fail(error, HURRAY_ERR_INVALID_MAGIC, "header.magic", 0,
                    "the file begins with \"%s\", expected \"HRRYFILE\"; it is no Hurray file", hry_escape(shown, sizeof shown, bytes, 8));
}

static HurrayStatus check_header(const HryHeader *h, HurrayError *error) {
    if (h->flags & ~(HRY_FILE_HAS_KV | HRY_FILE_SORTED_INDEX | HRY_FILE_INDEX_CRC))
        return BAD("header.file_flags", 12, "file_flags is 0x%x, only bits 0 to 2 are known; a newer library may read the file", h->flags);
    if (!hry_is_pow2(h->data_buffer_alignment) || h->data_buffer_alignment < HRY_MIN_DATA_ALIGNMENT ||
        h->data_buffer_alignment > HRY_MAX_DATA_ALIGNMENT)
        return BAD("header.data_buffer_alignment", 16, "data_buffer_alignment is %u, expected a power of two from %u to %u",
                   h->data_buffer_alignment, HRY_MIN_DATA_ALIGNMENT, HRY_MAX_DATA_ALIGNMENT);
    if (h->first_descriptor_offset < HRY_HEADER_SIZE || h->first_descriptor_offset % HRY_PART_ALIGNMENT)
        return BAD("header.first_descriptor_offset", 20, "first_descriptor_offset is %llu, expected a multiple of 8 from 64 on",
                   (unsigned long long)h->first_descriptor_offset);
    return HURRAY_OK;
}

HurrayStatus hry_header_decode(const uint8_t *bytes, HryHeader *out, HurrayError *error) {
    HryCursor cursor = hry_cursor(bytes, HRY_HEADER_SIZE, 0);
    HryHeader h;
    memset(&h, 0, sizeof h);
    if (memcmp(hry_cursor_take(&cursor, sizeof file_magic), file_magic, sizeof file_magic) != 0) return fail_magic(bytes, error);
    hry_cursor_u8(&cursor, &h.major);
    hry_cursor_u8(&cursor, &h.minor);
    if (h.major != 1)
        return hry_fail(error, HURRAY_ERR_VERSION_MISMATCH, "header.container_major", 8,
                        "container version %u.%u, this library reads major version 1; use a library that knows it", h.major, h.minor);
    if (!hry_cursor_zeros(&cursor, 2, NULL)) return BAD("header.reserved", 10, "reserved bytes 10 and 11 of the header are not zero");
    hry_cursor_u32(&cursor, &h.flags);
    hry_cursor_u32(&cursor, &h.data_buffer_alignment);
    hry_cursor_u64(&cursor, &h.first_descriptor_offset);
    hry_cursor_u64(&cursor, &h.tensor_count_hint);
    HurrayStatus status = check_header(&h, error);
    if (status != HURRAY_OK) return status;
    if (!hry_cursor_zeros(&cursor, 28, NULL)) return BAD("header.reserved", 36, "reserved bytes 36 to 63 of the header are not zero");
    *out = h;
    return HURRAY_OK;
}

void hry_header_encode(const HryHeader *header, uint8_t *dst) {
    HryEmit emit = hry_emit(dst, HRY_HEADER_SIZE);
    hry_emit_bytes(&emit, file_magic, sizeof file_magic);
    hry_emit_u8(&emit, header->major);
    hry_emit_u8(&emit, header->minor);
    hry_emit_zeros(&emit, 2);
    hry_emit_u32(&emit, header->flags);
    hry_emit_u32(&emit, header->data_buffer_alignment);
    hry_emit_u64(&emit, header->first_descriptor_offset);
    hry_emit_u64(&emit, header->tensor_count_hint);
    hry_emit_zeros(&emit, 28);
}

static HurrayStatus check_index_place(const HryTrailer *t, uint64_t at, const HryHeader *h, HurrayError *error) {
    if (t->index_offset % HRY_PART_ALIGNMENT || t->index_offset < h->first_descriptor_offset)
        return BAD("trailer.index_offset", at, "index_offset is %llu, expected a multiple of 8 not below first_descriptor_offset %llu",
                   (unsigned long long)t->index_offset, (unsigned long long)h->first_descriptor_offset);
    if (t->index_length < 8 || !hry_range_inside(t->index_offset, t->index_length, at))
        return BAD("trailer.index_length", at + 8,
                   "the index is said to have %llu bytes at offset %llu, but must have at least 8 and end before the trailer at %llu",
                   (unsigned long long)t->index_length, (unsigned long long)t->index_offset, (unsigned long long)at);
    return HURRAY_OK;
}

static HurrayStatus check_kv_place(const HryTrailer *t, uint64_t at, const HryHeader *h, HurrayError *error) {
    if ((t->kv_offset == 0) != (t->kv_length == 0))
        return BAD("trailer.kv_offset", at + 16, "kv_offset is %llu and kv_length is %u; both or neither must be 0",
                   (unsigned long long)t->kv_offset, t->kv_length);
    if (t->kv_offset == 0) {
        if (h->flags & HRY_FILE_HAS_KV) return BAD("trailer.kv_offset", at + 16, "the header promises KV metadata, the trailer has none");
        return HURRAY_OK;
    }
    if (t->kv_offset % HRY_PART_ALIGNMENT || t->kv_offset < h->first_descriptor_offset)
        return BAD("trailer.kv_offset", at + 16, "kv_offset is %llu, expected a multiple of 8 not below first_descriptor_offset %llu",
                   (unsigned long long)t->kv_offset, (unsigned long long)h->first_descriptor_offset);
    if (t->kv_length < 4 || !hry_range_inside(t->kv_offset, t->kv_length, t->index_offset))
        return BAD("trailer.kv_length", at + 24,
                   "KV is said to have %u bytes at offset %llu, but must have at least 4 and end before the index at %llu", t->kv_length,
                   (unsigned long long)t->kv_offset, (unsigned long long)t->index_offset);
    return HURRAY_OK;
}

HurrayStatus hry_trailer_decode(const uint8_t *bytes, uint64_t file_size, const HryHeader *header, HryTrailer *out, HurrayError *error) {
    uint64_t at = file_size - HRY_TRAILER_SIZE;
    HryCursor cursor = hry_cursor(bytes, HRY_TRAILER_SIZE, at);
    HryTrailer t;
    memset(&t, 0, sizeof t);
    if (memcmp(bytes + 36, end_magic, sizeof end_magic) != 0)
        return BAD("trailer.magic", at + 36,
                   "the last 4 bytes are not \"HRRY\": the file was cut short, was never finished, or has something appended");
    hry_cursor_u64(&cursor, &t.index_offset);
    hry_cursor_u64(&cursor, &t.index_length);
    hry_cursor_u64(&cursor, &t.kv_offset);
    hry_cursor_u32(&cursor, &t.kv_length);
    hry_cursor_u32(&cursor, &t.index_crc32c);
    if (!hry_cursor_zeros(&cursor, 4, NULL)) return BAD("trailer.reserved", at + 32, "reserved bytes 32 to 35 of the trailer are not zero");
    HurrayStatus status = check_index_place(&t, at, header, error);
    if (status == HURRAY_OK) status = check_kv_place(&t, at, header, error);
    if (status != HURRAY_OK) return status;
    if (!(header->flags & HRY_FILE_INDEX_CRC) && t.index_crc32c)
        return BAD("trailer.index_crc32c", at + 28, "index_crc32c is 0x%08x, but the header says that there is none", t.index_crc32c);
    *out = t;
    return HURRAY_OK;
}

void hry_trailer_encode(const HryTrailer *trailer, uint8_t *dst) {
    HryEmit emit = hry_emit(dst, HRY_TRAILER_SIZE);
    hry_emit_u64(&emit, trailer->index_offset);
    hry_emit_u64(&emit, trailer->index_length);
    hry_emit_u64(&emit, trailer->kv_offset);
    hry_emit_u32(&emit, trailer->kv_length);
    hry_emit_u32(&emit, trailer->index_crc32c);
    hry_emit_zeros(&emit, 4);
    hry_emit_bytes(&emit, end_magic, sizeof end_magic);
}

HurrayStatus hry_container_check_index_sum(const HryHeader *header, const HryTrailer *trailer, const void *index, HurrayError *error) {
    if (!(header->flags & HRY_FILE_INDEX_CRC)) return HURRAY_OK;
    uint32_t found = hry_crc32c(0, index, (size_t)trailer->index_length);
    if (found == trailer->index_crc32c) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_CHECKSUM, "trailer.index_crc32c", trailer->index_offset,
                    "the index has CRC-32C 0x%08x, the trailer says 0x%08x; the file is damaged, get it again", found,
                    trailer->index_crc32c);
}

bool hry_container_buffer_offset(const HurrayBufferHandle *handles, uint32_t count, uint64_t data_offset, uint64_t alignment, uint32_t k,
                                 uint64_t *out) {
    uint64_t at = data_offset;
    for (uint32_t i = 0; i < k; i++) {
        if (!hry_add_u64(at, handles[i].byte_size, &at)) return false;
        if (i + 1 < count && !hry_align_up(at, alignment, &at)) return false;
    }
    *out = at;
    return true;
}
