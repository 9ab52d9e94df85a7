#include "format/sums.h"

#include <string.h>

#include "base/checked.h"
#include "base/emit.h"
#include "base/endian.h"

#define SUMS_VERSION 1u
#define SUMS_FIXED 8u /* version and tensor_count */
#define STRIDE 256u

static uint64_t sum_of(const uint8_t *counts, uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += counts[i];
    return sum;
}

HurrayStatus hry_sums_open(const HurrayKvEntry *entry, uint64_t tensor_count, const HurrayAllocator *allocator, HrySums *out,
                           HurrayError *error) {
    memset(out, 0, sizeof *out);
    if (!entry || entry->value.kind != HURRAY_KV_BYTES || entry->value.data_len < SUMS_FIXED) return HURRAY_OK;
    const uint8_t *bytes = entry->value.data;
    uint64_t left = entry->value.data_len - SUMS_FIXED;
    if (hry_load_u32(bytes) != SUMS_VERSION || hry_load_u32(bytes + 4) != tensor_count || tensor_count > left) return HURRAY_OK;
    const uint8_t *counts = bytes + SUMS_FIXED;
    left -= tensor_count;
    if (left % 4 || sum_of(counts, tensor_count) != left / 4) return HURRAY_OK;

    HrySums sums = {.counts = counts, .crcs = counts + tensor_count, .tensor_count = tensor_count, .allocator = *allocator};
    sums.first_count = (size_t)hry_div_up(tensor_count, STRIDE);
    sums.first = hry_alloc_array(allocator, sums.first_count, sizeof *sums.first);
    if (sums.first_count && !sums.first) return hry_fail_memory(error, "the stored checksums", sums.first_count * sizeof *sums.first);
    for (size_t i = 1; i < sums.first_count; i++) sums.first[i] = sums.first[i - 1] + sum_of(counts + (i - 1) * STRIDE, STRIDE);
    *out = sums;
    return HURRAY_OK;
}

void hry_sums_clear(HrySums *sums) {
    hry_free_array(&sums->allocator, sums->first, sums->first_count, sizeof *sums->first);
    memset(sums, 0, sizeof *sums);
}

bool hry_sums_find(const HrySums *sums, uint64_t place, uint32_t buffer_count, uint32_t k, uint32_t *out) {
    if (!sums->counts || place >= sums->tensor_count || sums->counts[place] != buffer_count || k >= buffer_count) return false;
    uint64_t start = place / STRIDE * STRIDE;
    uint64_t number = sums->first[place / STRIDE] + sum_of(sums->counts + start, place - start) + k;
    *out = hry_load_u32(sums->crcs + number * 4);
    return true;
}

HurrayStatus hry_sums_encode(const uint8_t *counts, uint64_t tensor_count, const uint32_t *crcs, uint64_t crc_count,
                             const HurrayAllocator *allocator, uint8_t **bytes, size_t *len, HurrayError *error) {
    uint64_t need;
    *bytes = NULL;
    *len = 0;
    if (crc_count == 0 || tensor_count > UINT32_MAX || !hry_mul_u64(crc_count, 4, &need) ||
        !hry_add_u64(need, tensor_count + SUMS_FIXED, &need) || need > UINT32_MAX)
        return HURRAY_OK;
    uint8_t *memory = hry_alloc_raw(allocator, (size_t)need);
    if (!memory) return hry_fail_memory(error, "the checksums", need);
    HryEmit emit = hry_emit(memory, (size_t)need);
    hry_emit_u32(&emit, SUMS_VERSION);
    hry_emit_u32(&emit, (uint32_t)tensor_count);
    hry_emit_bytes(&emit, counts, (size_t)tensor_count);
    hry_emit_u32_array(&emit, crcs, (size_t)crc_count);
    *bytes = memory;
    *len = (size_t)need;
    return HURRAY_OK;
}
