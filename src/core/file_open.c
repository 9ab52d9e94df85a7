#include "core/file_open.h"

#include <string.h>

#include "core/step.h"

#define DEFAULT_MAX_INDEX (UINT64_C(1) << 30)
#define DEFAULT_MAX_KV (UINT64_C(256) << 20)

void hry_file_open_begin(HryFileOpen *open, uint64_t file_size, const HryOpenLimits *limits, const HurrayAllocator *allocator) {
    memset(open, 0, sizeof *open);
    open->allocator = *allocator;
    open->limits = *limits;
    if (!open->limits.max_tensors) open->limits.max_tensors = UINT64_MAX;
    if (!open->limits.max_index_bytes) open->limits.max_index_bytes = DEFAULT_MAX_INDEX;
    if (!open->limits.max_kv_bytes) open->limits.max_kv_bytes = DEFAULT_MAX_KV;
    open->file_size = file_size;
}

static void ask(HryFileOpen *open, HryOpenStage stage, uint64_t offset, uint8_t *dst, size_t len) {
    open->stage = stage;
    open->offset = offset;
    open->dst = dst;
    open->len = len;
    open->filled = 0;
}

static HurrayStatus fail_limit(HurrayError *error, const char *option, const char *what, uint64_t found, uint64_t limit, uint64_t offset) {
    return hry_fail(error, HURRAY_ERR_LIMIT, option, offset, "%s is %llu, more than the option %s allows (%llu)", what,
                    (unsigned long long)found, option, (unsigned long long)limit);
}

static HurrayStatus start(HryFileOpen *open, HurrayError *error) {
    HurrayStatus status = hry_container_check_size(open->file_size, error);
    if (status == HURRAY_OK) ask(open, HRY_OPEN_HEADER, 0, open->fixed, HRY_HEADER_SIZE);
    return status;
}

static HurrayStatus have_header(HryFileOpen *open, HurrayError *error) {
    HurrayStatus status = hry_header_decode(open->fixed, &open->header, error);
    if (status == HURRAY_OK) ask(open, HRY_OPEN_TRAILER, open->file_size - HRY_TRAILER_SIZE, open->fixed, HRY_TRAILER_SIZE);
    return status;
}

/* Section memory, bounded by its limit and by the file. */
static HurrayStatus ask_section(HryFileOpen *open, HryOpenStage stage, uint64_t offset, uint64_t len, uint8_t **owner, size_t *owner_size,
                                HurrayError *error) {
    if (len > SIZE_MAX) return hry_fail_memory(error, "a section of the file", len);
    uint8_t *bytes = hry_alloc_raw(&open->allocator, (size_t)len);
    if (!bytes) return hry_fail_memory(error, "a section of the file", len);
    *owner = bytes;
    *owner_size = (size_t)len;
    ask(open, stage, offset, bytes, (size_t)len);
    return HURRAY_OK;
}

static HurrayStatus have_trailer(HryFileOpen *open, HurrayError *error) {
    HurrayStatus status = hry_trailer_decode(open->fixed, open->file_size, &open->header, &open->trailer, error);
    const HryTrailer *trailer = &open->trailer;
    if (status != HURRAY_OK) return status;
    if (trailer->index_length > open->limits.max_index_bytes)
        return fail_limit(error, "max_index_bytes", "the length of the index", trailer->index_length, open->limits.max_index_bytes,
                          trailer->index_offset);
    if (trailer->kv_length > open->limits.max_kv_bytes)
        return fail_limit(error, "max_kv_bytes", "the length of the KV section", trailer->kv_length, open->limits.max_kv_bytes,
                          trailer->kv_offset);
    status = hry_catalogue_new(&open->allocator, &open->catalogue, error);
    if (status != HURRAY_OK) return status;
    HryCatalogue *catalogue = open->catalogue;
    catalogue->format = HURRAY_FORMAT_HRRY;
    catalogue->major = open->header.major;
    catalogue->minor = open->header.minor;
    catalogue->flags = open->header.flags;
    catalogue->data_buffer_alignment = open->header.data_buffer_alignment;
    catalogue->first_descriptor_offset = open->header.first_descriptor_offset;
    catalogue->region_end = hry_container_region_end(trailer);
    catalogue->byte_size = open->file_size;
    return ask_section(open, HRY_OPEN_INDEX, trailer->index_offset, trailer->index_length, &catalogue->name_bytes,
                       &catalogue->name_bytes_size, error);
}

static void row_at(const void *ctx, uint64_t i, HryIndexRow *out) { hry_catalogue_row(ctx, i, out); }

static HurrayStatus read_rows(HryFileOpen *open, HurrayError *error) {
    HryCatalogue *catalogue = open->catalogue;
    HryIndexReader reader;
    HurrayStatus status =
        hry_index_open(&reader, catalogue->name_bytes, catalogue->name_bytes_size, open->trailer.index_offset, open->header.minor, error);
    if (status != HURRAY_OK) return status;
    if (reader.count > open->limits.max_tensors)
        return fail_limit(error, "max_tensors", "the number of tensors", reader.count, open->limits.max_tensors,
                          open->trailer.index_offset);
    status = hry_catalogue_reserve(catalogue, reader.count, error);
    for (uint64_t i = 0; i < reader.count && status == HURRAY_OK; i++) {
        HryIndexRow row;
        status = hry_index_next(&reader, &row, error);
        if (status != HURRAY_OK) break;
        HryEntry entry = {.name = row.name,
                          .name_len = row.name_len,
                          .descriptor_offset = row.descriptor_offset,
                          .descriptor_length = row.descriptor_length,
                          .data_offset = row.data_offset,
                          .data_length = row.data_length};
        status = hry_catalogue_add(catalogue, &entry, error);
    }
    return status == HURRAY_OK ? hry_index_close(&reader, error) : status;
}

static HurrayStatus have_index(HryFileOpen *open, HurrayError *error) {
    HryCatalogue *catalogue = open->catalogue;
    HurrayStatus status = hry_container_check_index_sum(&open->header, &open->trailer, catalogue->name_bytes, error);
    if (status == HURRAY_OK) status = read_rows(open, error);
    if (status == HURRAY_OK && open->header.flags & HRY_FILE_SORTED_INDEX) {
        status = hry_index_check_sorted(row_at, catalogue, catalogue->entry_count, error);
        catalogue->sorted = status == HURRAY_OK;
    }
    if (status == HURRAY_OK) status = hry_catalogue_order(catalogue, error);
    if (status == HURRAY_OK)
        status =
            hry_index_check_places(row_at, catalogue, catalogue->entry_count, catalogue->write_order, &open->header, &open->trailer, error);
    if (status == HURRAY_OK) status = hry_catalogue_index_names(catalogue, error);
    if (status != HURRAY_OK) return status;
    if (open->trailer.kv_offset == 0) {
        ask(open, HRY_OPEN_DONE, 0, NULL, 0);
        return HURRAY_OK;
    }
    return ask_section(open, HRY_OPEN_KV, open->trailer.kv_offset, open->trailer.kv_length, &catalogue->kv_bytes, &catalogue->kv_bytes_size,
                       error);
}

static HurrayStatus have_kv(HryFileOpen *open, HurrayError *error) {
    HryCatalogue *catalogue = open->catalogue;
    HurrayStatus status = hry_kv_decode(catalogue->kv_bytes, catalogue->kv_bytes_size, open->trailer.kv_offset, open->header.minor,
                                        &open->allocator, &catalogue->section, error);
    if (status != HURRAY_OK) return status;
    catalogue->kv = catalogue->section.entries;
    catalogue->kv_count = catalogue->section.count;
    ask(open, HRY_OPEN_DONE, 0, NULL, 0);
    return hry_catalogue_find_sums(catalogue, error);
}

HurrayStatus hry_file_open_step(HryFileOpen *open, HurrayStep *step, HryCatalogue **catalogue, HurrayError *error) {
    if (open->stage == HRY_OPEN_START) {
        HurrayStatus status = start(open, error);
        if (status != HURRAY_OK) return status;
    }
    if (open->stage == HRY_OPEN_DONE) {
        *catalogue = open->catalogue;
        open->catalogue = NULL;
        *step = hry_step(HURRAY_STEP_READY, 0, 0, 0);
    } else
        *step = hry_step(HURRAY_STEP_RANGE, 0, open->offset + open->filled, open->len - open->filled);
    return HURRAY_OK;
}

bool hry_file_open_rest(const HryFileOpen *open, uint8_t **dst, size_t *len) {
    if (open->stage == HRY_OPEN_START || open->stage == HRY_OPEN_DONE) return false;
    *dst = open->dst + open->filled;
    *len = open->len - open->filled;
    return true;
}

HurrayStatus hry_file_open_report(HryFileOpen *open, size_t n, HurrayError *error) {
    if (n == 0)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, open->offset + open->filled,
                        "nothing can be read at byte %llu of a file said to have %llu bytes",
                        (unsigned long long)(open->offset + open->filled), (unsigned long long)open->file_size);
    open->filled += n;
    if (open->filled < open->len) return HURRAY_OK;
    switch (open->stage) {
    case HRY_OPEN_HEADER: return have_header(open, error);
    case HRY_OPEN_TRAILER: return have_trailer(open, error);
    case HRY_OPEN_INDEX: return have_index(open, error);
    case HRY_OPEN_KV: return have_kv(open, error);
    default: return HURRAY_OK;
    }
}

void hry_file_open_clear(HryFileOpen *open) {
    hry_catalogue_unref(open->catalogue);
    open->catalogue = NULL;
}
