#include "format/index.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"

#define BAD(field, at, ...) hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, field, at, __VA_ARGS__)

HurrayStatus hry_index_check_name(const void *name, size_t len, uint64_t offset, HurrayStatus code, const char *field, HurrayError *error) {
    size_t bad_at;
    if (len == 0) return hry_fail(error, code, field, offset, "the name is empty; it must have 1 to 65535 bytes");
    if (len > UINT16_MAX) return hry_fail(error, code, field, offset, "the name has %zu bytes; it must have 1 to 65535", len);
    if (!hry_utf8_valid(name, len, &bad_at))
        return hry_fail(error, code, field, offset, "the name is not UTF-8 from its byte %zu on; rename it", bad_at);
    return HURRAY_OK;
}

HurrayStatus hry_index_open(HryIndexReader *reader, const void *bytes, size_t len, uint64_t offset, uint8_t container_minor,
                            HurrayError *error) {
    memset(reader, 0, sizeof *reader);
    reader->cursor = hry_cursor(bytes, len, offset);
    reader->minor = container_minor;
    if (!hry_cursor_u64(&reader->cursor, &reader->count))
        return BAD("index.entry_count", offset, "the index has %zu bytes, too few for its entry count", len);
    if (reader->count > reader->cursor.left / HRY_INDEX_MIN_ENTRY)
        return BAD("index.entry_count", offset, "the index promises %llu entries, its %zu bytes hold at most %zu",
                   (unsigned long long)reader->count, len, reader->cursor.left / HRY_INDEX_MIN_ENTRY);
    if (reader->count > HRY_INDEX_MAX_ENTRIES)
        return hry_fail(error, HURRAY_ERR_LIMIT, "index.entry_count", offset, "the index has %llu entries, this library holds at most %u",
                        (unsigned long long)reader->count, HRY_INDEX_MAX_ENTRIES);
    return HURRAY_OK;
}

/* Adds which tensor it was to a record that says what is wrong. */
static HurrayStatus at_row(HurrayError *error, const HryIndexRow *row, uint64_t i) {
    hry_error_set_tensor(error, row->name, row->name_len, i);
    return error->code;
}

HurrayStatus hry_index_next(HryIndexReader *reader, HryIndexRow *out, HurrayError *error) {
    HryCursor *cursor = &reader->cursor;
    HryIndexRow row;
    memset(&row, 0, sizeof row);
    uint64_t at = cursor->offset, i = reader->next;
    uint16_t name_len = 0;
    uint32_t flags = 0;
    if (!hry_cursor_u16(cursor, &name_len) || !(row.name = hry_cursor_take(cursor, name_len)) ||
        !hry_cursor_u64(cursor, &row.descriptor_offset) || !hry_cursor_u32(cursor, &row.descriptor_length) ||
        !hry_cursor_u64(cursor, &row.data_offset) || !hry_cursor_u64(cursor, &row.data_length) || !hry_cursor_u32(cursor, &flags))
        return BAD("index.entry", at, "entry %llu of %llu runs past the end of the index", (unsigned long long)i,
                   (unsigned long long)reader->count);
    row.name_len = name_len;
    if (hry_index_check_name(row.name, row.name_len, at, HURRAY_ERR_INVALID_NAME, "index.name", error) != HURRAY_OK)
        return at_row(error, &row, i);
    if (flags) {
        BAD("index.flags", cursor->offset - 4, "the entry's flags are 0x%x, expected 0", flags);
        return at_row(error, &row, i);
    }
    if (row.descriptor_length < 20 || row.descriptor_offset % HRY_PART_ALIGNMENT) {
        BAD("index.descriptor_offset", at,
            "the descriptor is said to have %u bytes at offset %llu, expected at least 20 at a multiple of 8", row.descriptor_length,
            (unsigned long long)row.descriptor_offset);
        return at_row(error, &row, i);
    }
    reader->next++;
    *out = row;
    return HURRAY_OK;
}

HurrayStatus hry_index_close(const HryIndexReader *reader, HurrayError *error) {
    if (reader->cursor.left == 0 || reader->minor > 0) return HURRAY_OK;
    return BAD("trailer.index_length", reader->cursor.offset, "%zu bytes of the index are left over after its last entry",
               reader->cursor.left);
}

int hry_index_compare_names(const void *a, size_t a_len, const void *b, size_t b_len) {
    size_t both = a_len < b_len ? a_len : b_len;
    int order = both ? memcmp(a, b, both) : 0;
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

HurrayStatus hry_index_check_sorted(HryIndexRowAt row_at, const void *ctx, uint64_t count, HurrayError *error) {
    HryIndexRow before = {0}, row;
    for (uint64_t i = 0; i < count; i++, before = row) {
        row_at(ctx, i, &row);
        int order = i ? hry_index_compare_names(before.name, before.name_len, row.name, row.name_len) : -1;
        if (order < 0) continue;
        if (order == 0)
            hry_fail(error, HURRAY_ERR_DUPLICATE_NAME, "index.name", HRY_NO_OFFSET, "entries %llu and %llu of the index have the same name",
                     (unsigned long long)(i - 1), (unsigned long long)i);
        else
            BAD("index.name", HRY_NO_OFFSET, "the header promises names in order, entry %llu of the index stands behind a greater one",
                (unsigned long long)i);
        return at_row(error, &row, i);
    }
    return HURRAY_OK;
}

static bool in_order(const HryIndexRow *a, const HryIndexRow *b) {
    return hry_index_compare_names(a->name, a->name_len, b->name, b->name_len) <= 0;
}

/* Bottom-up merge sort of row numbers: stable, no recursion, its own memory. */
HurrayStatus hry_index_sort_names(HryIndexRowAt row_at, const void *ctx, uint64_t count, const HurrayAllocator *allocator, uint32_t **order,
                                  HurrayError *error) {
    *order = NULL;
    if (count == 0) return HURRAY_OK;
    size_t n = (size_t)count;
    uint32_t *from = hry_alloc_array(allocator, n, sizeof *from), *to = hry_alloc_array(allocator, n, sizeof *to);
    if (!from || !to) {
        hry_free_array(allocator, from, n, sizeof *from);
        hry_free_array(allocator, to, n, sizeof *to);
        return hry_fail_memory(error, "the order of the index", (uint64_t)n * 2 * sizeof *from);
    }
    for (size_t i = 0; i < n; i++) from[i] = (uint32_t)i;
    for (size_t width = 1; width<n; width = width> n / 2 ? n : width * 2) {
        for (size_t start = 0; start < n;) {
            size_t middle = n - start > width ? start + width : n, end = n - middle > width ? middle + width : n;
            size_t a = start, b = middle;
            HryIndexRow left, right;
            if (b < end) row_at(ctx, from[a], &left), row_at(ctx, from[b], &right);
            for (size_t at = start; at < end; at++) {
                if (b >= end || (a < middle && in_order(&left, &right))) {
                    to[at] = from[a++];
                    if (a < middle && b < end) row_at(ctx, from[a], &left);
                } else {
                    to[at] = from[b++];
                    if (b < end) row_at(ctx, from[b], &right);
                }
            }
            start = end;
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    hry_free_array(allocator, to, n, sizeof *to);
    *order = from;
    return HURRAY_OK;
}

/* One row against the end of what stands before it; *end moves behind it. */
static HurrayStatus check_place(const HryIndexRow *row, uint64_t i, const HryHeader *header, uint64_t *end, HurrayError *error) {
    uint64_t descriptor_end, data_end;
    if (row->descriptor_offset < *end) {
        BAD("index.descriptor_offset", HRY_NO_OFFSET, "the descriptor at offset %llu lies before the end of what precedes it, %llu",
            (unsigned long long)row->descriptor_offset, (unsigned long long)*end);
        return at_row(error, row, i);
    }
    if (!hry_add_u64(row->descriptor_offset, row->descriptor_length, &descriptor_end) ||
        !hry_add_u64(row->data_offset, row->data_length, &data_end)) {
        BAD("index.data_offset", HRY_NO_OFFSET, "offsets and lengths of the entry do not fit 64 bits");
        return at_row(error, row, i);
    }
    *end = descriptor_end;
    if (row->data_length == 0) return HURRAY_OK; /* may be a head, whose data_offset means nothing */
    if (row->data_offset % header->data_buffer_alignment || row->data_offset < descriptor_end) {
        BAD("index.data_offset", HRY_NO_OFFSET, "data_offset is %llu, expected a multiple of %u not before the descriptor's end %llu",
            (unsigned long long)row->data_offset, header->data_buffer_alignment, (unsigned long long)descriptor_end);
        return at_row(error, row, i);
    }
    *end = data_end;
    return HURRAY_OK;
}

HurrayStatus hry_index_check_places(HryIndexRowAt row_at, const void *ctx, uint64_t count, const uint32_t *order, const HryHeader *header,
                                    const HryTrailer *trailer, HurrayError *error) {
    HryIndexRow row = {0};
    uint64_t i = 0, end = header->first_descriptor_offset, limit = hry_container_region_end(trailer);
    for (uint64_t p = 0; p < count; p++) {
        i = order ? order[p] : p;
        row_at(ctx, i, &row);
        HurrayStatus status = check_place(&row, i, header, &end, error);
        if (status != HURRAY_OK) return status;
    }
    if (end <= limit) return HURRAY_OK;
    BAD("index.data_length", HRY_NO_OFFSET, "the last tensor ends at %llu, behind the beginning of the %s at %llu", (unsigned long long)end,
        trailer->kv_offset ? "KV section" : "index", (unsigned long long)limit);
    return at_row(error, &row, i);
}

HurrayStatus hry_index_check_tensor(const HryIndexRow *row, const HryHeader *header, uint64_t limit, uint64_t descriptor_length,
                                    const HurrayBufferHandle *handles, uint32_t count, bool head, HurrayError *error) {
    uint64_t end;
    if (descriptor_length != row->descriptor_length)
        return BAD("index.descriptor_length", row->descriptor_offset,
                   "the index says that the descriptor has %u bytes, it says %llu itself", row->descriptor_length,
                   (unsigned long long)descriptor_length);
    if (head) {
        if (row->data_length == 0) return HURRAY_OK;
        return BAD("index.data_length", row->descriptor_offset, "data_length of a composite head is %llu, expected 0",
                   (unsigned long long)row->data_length);
    }
    if (row->data_offset % header->data_buffer_alignment || row->data_offset < row->descriptor_offset + row->descriptor_length ||
        !hry_range_inside(row->data_offset, row->data_length, limit))
        return BAD("index.data_offset", row->descriptor_offset,
                   "the data is said to have %llu bytes at offset %llu, expected a multiple of %u between the descriptor's end and %llu",
                   (unsigned long long)row->data_length, (unsigned long long)row->data_offset, header->data_buffer_alignment,
                   (unsigned long long)limit);
    if (!hry_container_buffer_offset(handles, count, row->data_offset, header->data_buffer_alignment, count, &end) ||
        end - row->data_offset != row->data_length)
        return BAD("index.data_length", row->descriptor_offset,
                   "the index says %llu data bytes, the descriptor's %u buffers need another number", (unsigned long long)row->data_length,
                   count);
    return HURRAY_OK;
}

void hry_index_encode(HryIndexRowAt row_at, const void *ctx, uint64_t count, const uint32_t *order, HryEmit *emit) {
    hry_emit_u64(emit, count);
    for (uint64_t p = 0; p < count; p++) {
        HryIndexRow row;
        row_at(ctx, order ? order[p] : p, &row);
        hry_emit_u16(emit, (uint16_t)row.name_len);
        hry_emit_bytes(emit, row.name, row.name_len);
        hry_emit_u64(emit, row.descriptor_offset);
        hry_emit_u32(emit, row.descriptor_length);
        hry_emit_u64(emit, row.data_offset);
        hry_emit_u64(emit, row.data_length);
        hry_emit_u32(emit, 0);
    }
}
