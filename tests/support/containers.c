#include "support/containers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/emit.h"
#include "format/crc32c.h"
#include "format/kv.h"
#include "format/sums.h"
#include "support/descriptors.h"

static HurrayDescriptorSpec plain_spec(const uint64_t *shape, const HurrayBufferHandle *handle) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    spec.rank = 1;
    spec.shape = shape;
    spec.element_type = HURRAY_TYPE_UINT8;
    spec.buffers = handle;
    spec.buffer_count = handle ? 1 : 0;
    return spec;
}

HurrayDescriptor *make_plain(uint64_t bytes, uint32_t alignment) {
    HurrayBufferHandle handle = {.byte_size = bytes, .alignment = alignment};
    HurrayDescriptorSpec spec = plain_spec(&bytes, &handle);
    return descriptor_must_build(&spec);
}

HurrayDescriptor *make_placed(uint64_t bytes, uint8_t device_tag, uint8_t sync_mode, uint8_t memory_class) {
    HurrayBufferHandle handle = {
        .byte_size = bytes, .alignment = 64, .device_tag = device_tag, .sync_mode = sync_mode, .memory_class = memory_class};
    HurrayDescriptorSpec spec = plain_spec(&bytes, &handle);
    return descriptor_must_build(&spec);
}

HurrayDescriptor *make_many(const HurrayBufferHandle *handles, uint32_t count) {
    uint64_t shape = 1;
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayDescriptorSpec spec = plain_spec(&shape, handles);
    layout.tag = HURRAY_PRIVATE_FIRST;
    layout.private_id = 7;
    spec.layout = &layout;
    spec.buffer_count = count;
    return descriptor_must_build(&spec);
}

static HurrayDescriptor *make_head(uint8_t rule, uint64_t bytes, uint32_t members) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayDescriptorSpec spec = plain_spec(&bytes, NULL);
    layout.tag = HURRAY_LAYOUT_COMPOSITE;
    layout.rule = rule;
    layout.member_count = members;
    spec.layout = &layout;
    return descriptor_must_build(&spec);
}

HurrayDescriptor *make_group(uint32_t members) { return make_head(HURRAY_RULE_GROUP, 1, members); }
HurrayDescriptor *make_partition(uint64_t bytes, uint32_t members) { return make_head(HURRAY_RULE_PARTITION, bytes, members); }

HurrayDescriptor *make_part(uint64_t whole, uint64_t offset, uint64_t bytes) {
    HurrayBufferHandle handle = {.byte_size = bytes, .alignment = 64};
    HurrayDescriptorSpec spec = plain_spec(&bytes, &handle);
    HurrayShard shard = HURRAY_SHARD_INIT;
    shard.parent_shape = &whole;
    shard.offset = &offset;
    spec.shard = &shard;
    return descriptor_must_build(&spec);
}

uint8_t pattern_byte(uint64_t tensor, uint32_t buffer, uint64_t at) {
    return (uint8_t)(tensor * 31 + buffer * 7 + at * 13 + (at >> 8) * 5 + (at >> 16) + 1);
}

void assert_pattern(const void *data, uint64_t tensor, uint32_t buffer, uint64_t bytes) {
    const uint8_t *at = data;
    for (uint64_t i = 0; i < bytes; i++)
        if (at[i] != pattern_byte(tensor, buffer, i)) fail_msg("tensor %d, buffer %d, byte %d", (int)tensor, (int)buffer, (int)i);
}

void assert_tensor_pattern(const HurrayTensor *tensor, uint64_t i) {
    HurrayBufferList *list = NULL;
    uint64_t count = 0;
    assert_int_equal(hurray_tensor_buffers(tensor, &list), HURRAY_OK);
    assert_int_equal(hurray_buffer_list_len(list, &count), HURRAY_OK);
    for (uint32_t k = 0; k < count; k++) {
        HurrayBuffer *buffer = NULL;
        void *data = NULL;
        uint64_t size = 0;
        assert_int_equal(hurray_buffer_list_get(list, k, &buffer), HURRAY_OK);
        assert_int_equal(hurray_buffer_data_ptr(buffer, &data), HURRAY_OK);
        assert_int_equal(hurray_buffer_byte_size(buffer, &size), HURRAY_OK);
        assert_pattern(data, i, k, size);
    }
}

/* ---- containers ---- */

static uint8_t *room(Container *built, size_t more) {
    if (built->len + more > built->capacity) {
        built->capacity = (built->len + more) * 2;
        built->bytes = realloc(built->bytes, built->capacity);
        assert_non_null(built->bytes);
    }
    uint8_t *at = built->bytes + built->len;
    built->len += more;
    memset(at, 0, more);
    return at;
}

static void pad(Container *built, size_t alignment) {
    size_t over = built->len % alignment;
    if (over) room(built, alignment - over);
}

void container_begin_stream(Container *built) { memset(built, 0, sizeof *built); }

void container_begin_file(Container *built, uint32_t alignment) {
    memset(built, 0, sizeof *built);
    built->alignment = alignment;
    room(built, HRY_HEADER_SIZE);
}

void container_add(Container *built, const char *name, HurrayDescriptor *descriptor) {
    size_t size = hry_descriptor_encoded_size(descriptor), count = built->count++;
    built->rows = realloc(built->rows, built->count * sizeof *built->rows);
    built->counts = realloc(built->counts, built->count);
    built->crcs = realloc(built->crcs, (built->crc_count + descriptor->buffer_count + 1) * sizeof *built->crcs);
    assert_true(built->rows && built->counts && built->crcs);
    if (built->alignment) pad(built, HRY_PART_ALIGNMENT);
    HryIndexRow row = {.descriptor_offset = built->len, .descriptor_length = (uint32_t)size};
    if (name) {
        row.name = (const uint8_t *)strdup(name);
        row.name_len = (uint32_t)strlen(name);
    }
    hry_descriptor_encode(descriptor, room(built, size));
    if (built->alignment && descriptor->buffer_count) pad(built, built->alignment);
    row.data_offset = built->len;
    for (uint32_t k = 0; k < descriptor->buffer_count; k++) {
        uint64_t bytes = descriptor->buffers[k].byte_size;
        if (k && built->alignment) pad(built, built->alignment);
        uint8_t *at = room(built, bytes);
        for (uint64_t i = 0; i < bytes; i++) at[i] = pattern_byte(count, k, i);
        built->crcs[built->crc_count++] = hry_crc32c(0, at, bytes);
        row.data_length = built->len - row.data_offset;
    }
    built->counts[count] = (uint8_t)descriptor->buffer_count;
    built->rows[count] = row;
    hry_descriptor_unref(descriptor);
}

static void row_at(const void *ctx, uint64_t i, HryIndexRow *out) { *out = ((const HryIndexRow *)ctx)[i]; }

static void add_kv(Container *built, uint32_t flags, const HurrayKvEntry *kv, size_t kv_count) {
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    uint8_t *sums = NULL, *section = NULL;
    size_t sums_len = 0, section_len = 0;
    HurrayKvEntry *entries = calloc(kv_count + 1, sizeof *entries);
    assert_non_null(entries);
    if (kv_count) memcpy(entries, kv, kv_count * sizeof *entries);
    if (flags & (BUILD_SUMS | BUILD_BAD_SUMS)) {
        if (flags & BUILD_BAD_SUMS)
            for (size_t i = 0; i < built->crc_count; i++) built->crcs[i] ^= 1;
        assert_int_equal(hry_sums_encode(built->counts, built->count, built->crcs, built->crc_count, &allocator, &sums, &sums_len, &error),
                         0);
        if (sums)
            entries[kv_count++] = (HurrayKvEntry){
                .key = HRY_SUMS_KEY, .key_len = HRY_SUMS_KEY_LEN, .value = {.kind = HURRAY_KV_BYTES, .data = sums, .data_len = sums_len}};
    }
    assert_int_equal(hry_kv_encode(entries, kv_count, &allocator, &section, &section_len, &error), 0);
    if (section) {
        built->trailer.kv_offset = built->len;
        built->trailer.kv_length = (uint32_t)section_len;
        memcpy(room(built, section_len), section, section_len);
        pad(built, HRY_PART_ALIGNMENT);
    }
    hry_free(&allocator, sums, sums_len);
    hry_free(&allocator, section, section_len);
    free(entries);
}

void container_finish(Container *built, uint32_t flags, const HurrayKvEntry *kv, size_t kv_count) {
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    uint32_t *order = NULL;
    pad(built, HRY_PART_ALIGNMENT);
    add_kv(built, flags, kv, kv_count);
    if (flags & BUILD_SORTED) assert_int_equal(hry_index_sort_names(row_at, built->rows, built->count, &allocator, &order, &error), 0);
    if (flags & BUILD_REVERSED) {
        order = hry_alloc_array(&allocator, built->count, sizeof *order);
        for (size_t i = 0; order && i < built->count; i++) order[i] = (uint32_t)(built->count - 1 - i);
    }
    HryEmit measure = hry_emit(NULL, 0);
    hry_index_encode(row_at, built->rows, built->count, order, &measure);
    built->trailer.index_offset = built->len;
    built->trailer.index_length = measure.len;
    HryEmit emit = hry_emit(room(built, measure.len), measure.len);
    hry_index_encode(row_at, built->rows, built->count, order, &emit);
    hry_free_array(&allocator, order, built->count, sizeof *order);
    HryHeader header = {.major = 1,
                        .flags = (flags & BUILD_NO_CRC ? 0 : HRY_FILE_INDEX_CRC) | (flags & BUILD_SORTED ? HRY_FILE_SORTED_INDEX : 0),
                        .data_buffer_alignment = built->alignment,
                        .first_descriptor_offset = 64,
                        .tensor_count_hint = UINT64_MAX};
    hry_header_encode(&header, built->bytes);
    room(built, HRY_TRAILER_SIZE);
    if (flags & BUILD_NO_CRC)
        hry_trailer_encode(&built->trailer, built->bytes + built->len - HRY_TRAILER_SIZE);
    else
        container_mend(built);
}

void container_mend(Container *built) {
    built->trailer.index_crc32c = hry_crc32c(0, built->bytes + built->trailer.index_offset, built->trailer.index_length);
    hry_trailer_encode(&built->trailer, built->bytes + built->len - HRY_TRAILER_SIZE);
}

void container_free(Container *built) {
    for (size_t i = 0; i < built->count; i++) free((void *)(uintptr_t)built->rows[i].name);
    free(built->rows);
    free(built->counts);
    free(built->crcs);
    free(built->bytes);
    memset(built, 0, sizeof *built);
}
