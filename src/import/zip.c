#include "import/zip.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "driver/transport_call.h"

#define END_SIZE 22u
#define LOCATOR_SIZE 20u
#define END64_SIZE 56u
#define CENTRAL_SIZE 46u
#define LOCAL_SIZE 30u
#define TAIL_SIZE (END_SIZE + 65535u)

#define FLAG_UTF8 0x0800u
#define FLAGS_REFUSED 0x2061u /* encrypted, patched, strongly encrypted, masked */

typedef struct End {
    uint64_t at; /* where the directory must end */
    uint64_t entries, directory_size, directory_offset;
} End;

static HurrayStatus fail_zip(HurrayError *error, uint64_t offset, const char *what) {
    return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "zip directory", offset, "the zip archive is damaged or incomplete: %s", what);
}

/* The record whose comment ends exactly at the end of the file. */
static bool find_end(const uint8_t *tail, size_t len, size_t *at) {
    for (size_t i = len - END_SIZE + 1; i-- > 0;) {
        if (hry_load_u32(tail + i) != 0x06054b50 || hry_load_u16(tail + i + 20) != len - i - END_SIZE) continue;
        *at = i;
        return true;
    }
    return false;
}

static HurrayStatus read_end64(const HurrayTransport *transport, const uint8_t *locator, uint64_t locator_at, End *end,
                               HurrayError *error) {
    uint8_t record[END64_SIZE];
    uint64_t at = hry_load_u64(locator + 8);
    if (hry_load_u32(locator + 4) != 0 || hry_load_u32(locator + 16) > 1)
        return fail_zip(error, locator_at, "it spans several disks, which is not read");
    if (!hry_range_inside(at, END64_SIZE, locator_at)) return fail_zip(error, locator_at, "its zip64 locator points nowhere");
    HurrayStatus status = hry_transport_read_exactly(transport, at, record, sizeof record, error);
    if (status != HURRAY_OK) return status;
    uint64_t rest = hry_load_u64(record + 4);
    if (hry_load_u32(record) != 0x06064b50 || locator_at - at < 12 || rest != locator_at - at - 12)
        return fail_zip(error, at, "no zip64 end record stands directly before its locator");
    if (hry_load_u32(record + 16) != 0 || hry_load_u32(record + 20) != 0 || hry_load_u64(record + 24) != hry_load_u64(record + 32))
        return fail_zip(error, at, "it spans several disks, which is not read");
    end->at = at;
    end->entries = hry_load_u64(record + 32);
    end->directory_size = hry_load_u64(record + 40);
    end->directory_offset = hry_load_u64(record + 48);
    return HURRAY_OK;
}

static HurrayStatus read_end(const HurrayTransport *transport, uint64_t size, const HurrayAllocator *allocator, End *end,
                             HurrayError *error) {
    uint8_t record[END_SIZE], locator[LOCATOR_SIZE] = {0};
    if (size < END_SIZE) return fail_zip(error, size, "it has no end record");
    size_t len = size < TAIL_SIZE ? (size_t)size : TAIL_SIZE, at = 0;
    uint8_t *tail = hry_alloc_raw(allocator, len);
    if (!tail) return hry_fail_memory(error, "the end of the archive", len);
    HurrayStatus status = hry_transport_read_exactly(transport, size - len, tail, len, error);
    bool found = status == HURRAY_OK && find_end(tail, len, &at);
    if (found) memcpy(record, tail + at, END_SIZE);
    hry_free(allocator, tail, len);
    if (status != HURRAY_OK) return status;
    if (!found) return fail_zip(error, size, "it has no end record at its end");
    end->at = size - len + at;
    end->entries = hry_load_u16(record + 10);
    end->directory_size = hry_load_u32(record + 12);
    end->directory_offset = hry_load_u32(record + 16);
    bool ones = end->entries == 0xFFFF || end->directory_size == UINT32_MAX || end->directory_offset == UINT32_MAX;
    if (end->at >= LOCATOR_SIZE) {
        status = hry_transport_read_exactly(transport, end->at - LOCATOR_SIZE, locator, LOCATOR_SIZE, error);
        if (status != HURRAY_OK) return status;
    }
    if (hry_load_u32(locator) == 0x07064b50) return read_end64(transport, locator, end->at - LOCATOR_SIZE, end, error);
    if (ones) return fail_zip(error, end->at, "its zip64 locator is missing");
    if (hry_load_u16(record + 4) != 0 || hry_load_u16(record + 6) != 0 || hry_load_u16(record + 8) != end->entries)
        return fail_zip(error, end->at, "it spans several disks, which is not read");
    return HURRAY_OK;
}

/* The zip64 values of those fields that are all ones, in their order. */
static bool read_extra64(const uint8_t *extra, size_t len, uint64_t *unpacked, uint64_t *packed, uint64_t *local, uint32_t *disk) {
    HryCursor cursor = hry_cursor(extra, len, 0), field;
    uint16_t id, size;
    while (hry_cursor_u16(&cursor, &id) && hry_cursor_u16(&cursor, &size) && hry_cursor_sub(&cursor, size, &field)) {
        if (id != 0x0001) continue;
        if (*unpacked == UINT32_MAX && !hry_cursor_u64(&field, unpacked)) return false;
        if (*packed == UINT32_MAX && !hry_cursor_u64(&field, packed)) return false;
        if (*local == UINT32_MAX && !hry_cursor_u64(&field, local)) return false;
        return *disk != 0xFFFF || hry_cursor_u32(&field, disk);
    }
    return *unpacked != UINT32_MAX && *packed != UINT32_MAX && *local != UINT32_MAX && *disk != 0xFFFF;
}

static HurrayStatus fail_member(const HryZipMember *member, uint64_t offset, HurrayStatus code, HurrayError *error, const char *what) {
    hry_fail(error, code, "zip entry", offset, "the zip archive's entry %s", what);
    hry_error_set_tensor(error, member->name, member->name_len, HURRAY_NONE);
    return code;
}

static HurrayStatus check_name(const HryZipMember *member, uint64_t offset, HurrayError *error) {
    if (member->name_len && memchr(member->name, 0, member->name_len))
        return fail_member(member, offset, HURRAY_ERR_INVALID_NAME, error, "has a NUL byte in its name");
    if (member->flags & FLAG_UTF8) {
        if (hry_utf8_valid(member->name, member->name_len, NULL)) return HURRAY_OK;
        return fail_member(member, offset, HURRAY_ERR_INVALID_NAME, error, "has a name that is not UTF-8, though it says so");
    }
    for (size_t i = 0; i < member->name_len; i++)
        if (member->name[i] >= 0x80)
            return fail_member(member, offset, HURRAY_ERR_INVALID_NAME, error,
                               "has a name that is neither ASCII nor marked as UTF-8; write the archive with NumPy");
    return HURRAY_OK;
}

static HurrayStatus read_entry(HryCursor *cursor, HryZipMember *member, HurrayError *error) {
    uint64_t offset = cursor->offset;
    const uint8_t *fixed = hry_cursor_take(cursor, CENTRAL_SIZE);
    if (!fixed || hry_load_u32(fixed) != 0x02014b50) return fail_zip(error, offset, "its directory holds no entry where one is due");
    size_t extra_len = hry_load_u16(fixed + 30), comment_len = hry_load_u16(fixed + 32);
    uint32_t disk = hry_load_u16(fixed + 34);
    member->flags = hry_load_u16(fixed + 8);
    member->method = hry_load_u16(fixed + 10);
    member->crc32 = hry_load_u32(fixed + 16);
    member->packed = hry_load_u32(fixed + 20);
    member->unpacked = hry_load_u32(fixed + 24);
    member->name_len = hry_load_u16(fixed + 28);
    member->local = hry_load_u32(fixed + 42);
    member->data = 0;
    member->name = hry_cursor_take(cursor, member->name_len);
    const uint8_t *extra = member->name ? hry_cursor_take(cursor, extra_len) : NULL;
    if (!extra || !hry_cursor_take(cursor, comment_len)) return fail_zip(error, offset, "an entry reaches past the end of its directory");
    HurrayStatus status = check_name(member, offset, error);
    if (status != HURRAY_OK) return status;
    if (!read_extra64(extra, extra_len, &member->unpacked, &member->packed, &member->local, &disk))
        return fail_member(member, offset, HURRAY_ERR_INVALID_CONTAINER, error, "lacks its zip64 sizes");
    if (disk != 0) return fail_member(member, offset, HURRAY_ERR_UNSUPPORTED, error, "lies on another disk, which is not read");
    if (member->flags & FLAGS_REFUSED)
        return fail_member(member, offset, HURRAY_ERR_UNSUPPORTED, error, "is encrypted or patched, which is not read");
    if (member->method != 0 && member->method != 8) {
        hry_fail(error, HURRAY_ERR_UNSUPPORTED, "zip entry", offset,
                 "compression method %u is not read; only stored (0) and deflated (8) are", (unsigned)member->method);
        hry_error_set_tensor(error, member->name, member->name_len, HURRAY_NONE);
        return error->code;
    }
    return HURRAY_OK;
}

static HurrayStatus read_directory(HryZip *zip, const End *end, uint64_t max_bytes, HurrayError *error) {
    uint64_t expected_end;
    if (!hry_add_u64(end->directory_offset, end->directory_size, &expected_end) || expected_end != end->at)
        return fail_zip(error, end->at,
                        "its directory does not end where the end record begins (are there bytes in front of the archive?)");
    if (end->entries > end->directory_size / CENTRAL_SIZE) return fail_zip(error, end->at, "its directory is too small for its entries");
    if (end->directory_size > max_bytes)
        return hry_fail(error, HURRAY_ERR_LIMIT, "zip directory", end->directory_offset,
                        "the directory has %llu bytes, at most %llu are allowed here", (unsigned long long)end->directory_size,
                        (unsigned long long)max_bytes);
    if (end->directory_size == 0) return HURRAY_OK;
    zip->directory_offset = end->directory_offset;
    zip->directory = hry_alloc_raw(&zip->allocator, (size_t)end->directory_size);
    if (!zip->directory) return hry_fail_memory(error, "the archive's directory", end->directory_size);
    zip->directory_size = (size_t)end->directory_size;
    HurrayStatus status = hry_transport_read_exactly(zip->transport, end->directory_offset, zip->directory, zip->directory_size, error);
    if (status != HURRAY_OK) return status;
    if (end->entries) {
        zip->members = hry_alloc_array(&zip->allocator, (size_t)end->entries, sizeof *zip->members);
        if (!zip->members) return hry_fail_memory(error, "the archive's entries", end->entries * sizeof *zip->members);
        zip->count = (size_t)end->entries;
    }
    HryCursor cursor = hry_cursor(zip->directory, zip->directory_size, end->directory_offset);
    for (size_t i = 0; i < zip->count; i++) {
        status = read_entry(&cursor, &zip->members[i], error);
        if (status != HURRAY_OK) return status;
    }
    return cursor.left ? fail_zip(error, cursor.offset, "its directory has bytes after the last entry") : HURRAY_OK;
}

HurrayStatus hry_zip_open(const HurrayTransport *transport, uint64_t size, uint64_t max_bytes, const HurrayAllocator *allocator,
                          HryZip *out, HurrayError *error) {
    End end = {0};
    memset(out, 0, sizeof *out);
    out->allocator = *allocator;
    out->transport = transport;
    HurrayStatus status = read_end(transport, size, allocator, &end, error);
    out->directory_offset = end.at;
    if (status == HURRAY_OK) status = read_directory(out, &end, max_bytes, error);
    if (status != HURRAY_OK) hry_zip_close(out);
    return status;
}

void hry_zip_close(HryZip *zip) {
    HurrayAllocator allocator = zip->allocator;
    hry_free(&allocator, zip->directory, zip->directory_size);
    hry_free_array(&allocator, zip->members, zip->count, sizeof *zip->members);
    memset(zip, 0, sizeof *zip);
}

HurrayStatus hry_zip_locate(const HryZip *zip, HryZipMember *member, HurrayError *error) {
    uint8_t header[512], name[256];
    if (!hry_range_inside(member->local, LOCAL_SIZE, zip->directory_offset))
        return fail_member(member, member->local, HURRAY_ERR_INVALID_CONTAINER, error, "points behind the archive's data");
    uint64_t room = zip->directory_offset - member->local;
    size_t len = LOCAL_SIZE + (size_t)member->name_len;
    if (len > sizeof header) len = sizeof header;
    if (len > room) len = (size_t)room;
    HurrayStatus status = hry_transport_read_exactly(zip->transport, member->local, header, len, error);
    if (status != HURRAY_OK) return status;
    uint64_t name_len = hry_load_u16(header + 26), extra_len = hry_load_u16(header + 28);
    if (hry_load_u32(header) != 0x04034b50 || hry_load_u16(header + 8) != member->method || name_len != member->name_len)
        return fail_member(member, member->local, HURRAY_ERR_INVALID_CONTAINER, error, "disagrees with the header in front of its data");
    if (!hry_range_inside(LOCAL_SIZE + name_len + extra_len, member->packed, room))
        return fail_member(member, member->local, HURRAY_ERR_INVALID_CONTAINER, error, "reaches into the archive's directory");
    size_t done = len - LOCAL_SIZE;
    bool same = memcmp(header + LOCAL_SIZE, member->name, done) == 0;
    while (same && done < member->name_len) {
        size_t piece = member->name_len - done < sizeof name ? member->name_len - done : sizeof name;
        status = hry_transport_read_exactly(zip->transport, member->local + LOCAL_SIZE + done, name, piece, error);
        if (status != HURRAY_OK) return status;
        same = memcmp(name, member->name + done, piece) == 0;
        done += piece;
    }
    if (!same) return fail_member(member, member->local, HURRAY_ERR_INVALID_CONTAINER, error, "has another name in front of its data");
    member->data = member->local + LOCAL_SIZE + name_len + extra_len;
    return HURRAY_OK;
}

static int compare_places(const void *left, const void *right) {
    const HryZipMember *const *a = left, *const *b = right;
    return (*a)->local < (*b)->local ? -1 : (*a)->local > (*b)->local;
}

HurrayStatus hry_zip_check_spans(const HryZip *zip, HurrayError *error) {
    if (zip->count < 2) return HURRAY_OK;
    const HryZipMember **order = hry_alloc_array(&zip->allocator, zip->count, sizeof *order);
    if (!order) return hry_fail_memory(error, "the archive's entries", zip->count * sizeof *order);
    for (size_t i = 0; i < zip->count; i++) order[i] = &zip->members[i];
    qsort(order, zip->count, sizeof *order, compare_places);
    HurrayStatus status = HURRAY_OK;
    for (size_t i = 1; i < zip->count && status == HURRAY_OK; i++)
        if (order[i]->local < order[i - 1]->data + order[i - 1]->packed)
            status = fail_member(order[i], order[i]->local, HURRAY_ERR_INVALID_CONTAINER, error, "overlaps the one before it");
    hry_free_array(&zip->allocator, order, zip->count, sizeof *order);
    return status;
}
