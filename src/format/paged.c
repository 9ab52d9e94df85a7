#include "format/paged.h"

#include "base/checked.h"
#include "base/endian.h"

uint64_t hry_paged_entry(const HurrayDescriptor *descriptor, const HryBytes *buffer, uint64_t i) {
    return descriptor->layout.index_type ? hry_load_u64(buffer->data + 8 * i) : hry_load_u32(buffer->data + 4 * i);
}

uint64_t hry_paged_entries(const HurrayDescriptor *descriptor, const HryBytes *buffer) {
    return buffer->size / (descriptor->layout.index_type ? 8 : 4);
}

static HurrayStatus damaged(HurrayError *error, uint32_t buffer) {
    error->buffer_index = buffer;
    return HURRAY_ERR_INVALID_DATA;
}

HurrayStatus hry_paged_check(const HurrayDescriptor *descriptor, const HryBytes *buffers, HurrayError *error) {
    const HurrayLayout *layout = &descriptor->layout;
    uint64_t table = hry_paged_entries(descriptor, &buffers[1]), tokens;
    uint64_t pages = hry_paged_entry(descriptor, &buffers[2], layout->num_seqs);
    if (hry_paged_entry(descriptor, &buffers[2], 0) != 0 || pages > table) {
        hry_fail(error, HURRAY_ERR_INVALID_DATA, "seq_ptr", HRY_NO_OFFSET,
                 "runs from %llu to %llu, expected 0 to at most the block table's %llu entries; the page tables are damaged",
                 (unsigned long long)hry_paged_entry(descriptor, &buffers[2], 0), (unsigned long long)pages, (unsigned long long)table);
        return damaged(error, 2);
    }
    if (!hry_mul_u64(pages, layout->page_size, &tokens)) tokens = UINT64_MAX;
    if (descriptor->shape[0] == tokens || (layout->num_seqs == 1 && descriptor->shape[0] <= tokens)) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "shape", HRY_NO_OFFSET,
                    "%llu tokens in %u sequences whose pages hold %llu: how many tokens each sequence has is not stored, so there is no "
                    "dense view; read the page pool (buffer 0) instead",
                    (unsigned long long)descriptor->shape[0], layout->num_seqs, (unsigned long long)tokens);
}

HurrayStatus hry_paged_slot(const HurrayDescriptor *descriptor, const HryBytes *buffers, uint64_t token, uint64_t *slot,
                            HurrayError *error) {
    const HurrayLayout *layout = &descriptor->layout;
    uint64_t page = hry_paged_entry(descriptor, &buffers[1], token / layout->page_size);
    if (page >= layout->num_pages) {
        hry_fail(error, HURRAY_ERR_INVALID_DATA, "block_table", HRY_NO_OFFSET,
                 "entry %llu is page %llu of %llu; the page tables are damaged", (unsigned long long)(token / layout->page_size),
                 (unsigned long long)page, (unsigned long long)layout->num_pages);
        return damaged(error, 1);
    }
    *slot = page * layout->page_size + token % layout->page_size;
    return HURRAY_OK;
}
