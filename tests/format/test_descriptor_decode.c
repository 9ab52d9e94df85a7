#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "support/descriptors.h"
#include "support/fail_alloc.h"

/* A plain one to damage: float32 [2,3], one CPU buffer of 24 bytes. Offsets: shape 20, byte_offset 36, buffers 44, end 61. */
static uint8_t *plain(size_t *len) {
    static const uint64_t shape[] = {2, 3};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    spec.rank = 2;
    spec.shape = shape;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    HurrayDescriptor *d = descriptor_must_build(&spec);
    uint8_t *bytes = descriptor_bytes(d, len);
    hry_descriptor_unref(d);
    assert_int_equal(*len, 61);
    return bytes;
}

/* All optional sections that go together, on int8 [2,32] per channel: quantization 61+16=77, ... */
static uint8_t *full(size_t *len) {
    static const uint64_t shape[] = {2, 32}, parent[] = {4, 32}, offset[] = {2, 0};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayStatistics statistics = HURRAY_STATISTICS_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    q.scheme = HURRAY_QUANT_PER_CHANNEL_AFFINE;
    q.flags = HURRAY_QUANT_SYMMETRIC;
    q.scale_buffer = 1;
    q.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    q.scale_type = HURRAY_TYPE_FLOAT32;
    shard.parent_shape = parent;
    shard.offset = offset;
    statistics.computed_mask = HURRAY_STATISTICS_NNZ | HURRAY_STATISTICS_SPECIALS;
    statistics.nnz = 60;
    statistics.has_nan = 1;
    member.role = HURRAY_ROLE_BASE;
    spec.rank = 2;
    spec.shape = shape;
    spec.element_type = HURRAY_TYPE_INT8;
    spec.quantization = &q;
    spec.shard = &shard;
    spec.statistics = &statistics;
    spec.composite_member = &member;
    HurrayDescriptor *d = descriptor_must_build(&spec);
    uint8_t *bytes = descriptor_bytes(d, len);
    hry_descriptor_unref(d);
    return bytes;
}

enum { QUANT = 77, SHARD = QUANT + 24, STATS = SHARD + 32, MEMBER = STATS + 72, FULL = MEMBER + 16 };

typedef struct Damage {
    size_t at;
    size_t len;
    const char *bytes;
    HurrayStatus status;
    const char *field;
    uint64_t offset; /* of the message */
} Damage;

static void reject_each(uint8_t *(*make)(size_t *), const Damage *damages, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t len;
        uint8_t *bytes = make(&len);
        assert_true(damages[i].at + damages[i].len <= len);
        memcpy(bytes + damages[i].at, damages[i].bytes, damages[i].len);
        descriptor_must_reject(bytes, len, damages[i].status, damages[i].field, damages[i].offset);
        free(bytes);
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void a_damaged_header_names_field_and_byte(void **state) {
    (void)state;
    static const Damage damages[] = {
        {0, 1, "h", HURRAY_ERR_INVALID_MAGIC, "magic", 0},
        {4, 1, "\0", HURRAY_ERR_VERSION_MISMATCH, "version_major", 4},
        {4, 1, "\2", HURRAY_ERR_VERSION_MISMATCH, "version_major", 4},
        {6, 1, "\x13", HURRAY_ERR_INVALID_LAYOUT, "descriptor_length", 6},
        {6, 1, "\x3e", HURRAY_ERR_TRUNCATED, "descriptor_length", 6},
        {6, 1, "\x3c", HURRAY_ERR_INVALID_LAYOUT, "buffers", 45},
        {6, 1, "\x14", HURRAY_ERR_INVALID_LAYOUT, "shape", 20},
        {6, 1, "\x24", HURRAY_ERR_INVALID_LAYOUT, "byte_offset", 36},
        {6, 1, "\x2c", HURRAY_ERR_INVALID_LAYOUT, "buffer_count", 44},
        {10, 1, "\x20", HURRAY_ERR_INVALID_LAYOUT, "flags", 10},
        {13, 1, "\x80", HURRAY_ERR_INVALID_LAYOUT, "flags", 10},
        {14, 1, "\x05", HURRAY_ERR_INVALID_TYPE, "element_type", 14},
        {14, 1, "\xF0", HURRAY_ERR_INVALID_TYPE, "element_type", 14},
        {15, 1, "\x0C", HURRAY_ERR_INVALID_LAYOUT, "layout_tag", 15},
        {16, 1, "\x41", HURRAY_ERR_INVALID_LAYOUT, "rank", 16},
        {16, 4, "\xff\xff\xff\xff", HURRAY_ERR_INVALID_LAYOUT, "rank", 16},
        {28, 1, "\4", HURRAY_ERR_INVALID_LAYOUT, "buffers[0].byte_size", 45},
        {36, 1, "\1", HURRAY_ERR_INVALID_LAYOUT, "buffers[0].byte_size", 45},
        {36, 1, "\x19", HURRAY_ERR_INVALID_LAYOUT, "byte_offset", 36},
        {44, 1, "\0", HURRAY_ERR_INVALID_LAYOUT, "descriptor_length", 6},
        {44, 1, "\2", HURRAY_ERR_INVALID_LAYOUT, "buffers", 45},
        {53, 1, "\x20", HURRAY_ERR_INVALID_LAYOUT, "buffers[0].alignment", 53},
        {57, 1, "\x09", HURRAY_ERR_INVALID_TYPE, "buffers[0].device_tag", 57},
        {58, 1, "\1", HURRAY_ERR_INVALID_SYNC_MODE, "buffers[0].sync_mode", 58},
        {59, 1, "\3", HURRAY_ERR_INVALID_TYPE, "buffers[0].memory_class", 59},
        {60, 1, "\1", HURRAY_ERR_INVALID_LAYOUT, "buffers[0].reserved", 60},
    };
    reject_each(plain, damages, COUNT(damages));
}

static void a_damaged_section_names_field_and_byte(void **state) {
    (void)state;
    static const Damage damages[] = {
        {QUANT, 1, "\x13", HURRAY_ERR_INVALID_LAYOUT, "quantization", QUANT + 8},
        {QUANT, 1, "\3", HURRAY_ERR_INVALID_LAYOUT, "quantization.scheme", HURRAY_NONE},
        {QUANT, 4, "\xff\xff\xff\xff", HURRAY_ERR_INVALID_LAYOUT, "quantization", QUANT + 4},
        {QUANT + 4, 1, "\x60", HURRAY_ERR_INVALID_LAYOUT, "quantization.scheme", QUANT + 4},
        {QUANT + 5, 1, "\2", HURRAY_ERR_INVALID_LAYOUT, "quantization.version", QUANT + 5},
        {QUANT + 6, 1, "\3", HURRAY_ERR_INVALID_LAYOUT, "quantization.flags", QUANT + 6},
        {QUANT + 8, 1, "\2", HURRAY_ERR_INVALID_LAYOUT, "quantization.axis", QUANT + 8},
        {QUANT + 12, 1, "\0", HURRAY_ERR_INVALID_LAYOUT, "quantization.scale_buffer", QUANT + 12},
        {QUANT + 12, 1, "\2", HURRAY_ERR_INVALID_LAYOUT, "quantization.scale_buffer", QUANT + 12},
        {QUANT + 16, 1, "\1", HURRAY_ERR_INVALID_LAYOUT, "quantization.zero_point_buffer", QUANT + 16},
        {QUANT + 20, 1, "\1", HURRAY_ERR_INVALID_LAYOUT, "quantization.scale_type", QUANT + 20},
        {QUANT + 22, 1, "\1", HURRAY_ERR_INVALID_LAYOUT, "quantization.reserved", QUANT + 22},
        {SHARD, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", HURRAY_ERR_INVALID_LAYOUT, "shard.parent_shape", SHARD},
        {SHARD + 16, 1, "\3", HURRAY_ERR_INVALID_LAYOUT, "shard.offset", SHARD + 16},
        {SHARD + 24, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", HURRAY_ERR_INVALID_LAYOUT, "shard.offset", SHARD + 24},
        {STATS, 1, "\x40", HURRAY_ERR_INVALID_LAYOUT, "statistics.computed_mask", STATS},
        {STATS + 5, 1, "\1", HURRAY_ERR_INVALID_LAYOUT, "statistics.reserved", STATS + 5},
        {STATS + 71, 1, "\1", HURRAY_ERR_INVALID_LAYOUT, "statistics.reserved", STATS + 71},
        {MEMBER, 1, "\2", HURRAY_ERR_INVALID_LAYOUT, "composite_member.role", MEMBER},
        {MEMBER + 15, 1, "\1", HURRAY_ERR_INVALID_LAYOUT, "composite_member.reserved", MEMBER + 15},
        {10, 1, "\x1f", HURRAY_ERR_INVALID_TYPE, "element_type", 14}, /* an extension type that int8 has not */
        {28, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", HURRAY_ERR_INVALID_LAYOUT, "shape", HURRAY_NONE},
        {20, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", HURRAY_ERR_INVALID_LAYOUT, "quantization.axis", QUANT + 8},
        {45 + 16, 1, "\x0c", HURRAY_ERR_INVALID_LAYOUT, "buffers[1].byte_size", 45 + 16}, /* parameters: exactly 8 */
    };
    reject_each(full, damages, COUNT(damages));
}

static void every_beginning_of_a_section_is_too_short(void **state) {
    (void)state;
    size_t len;
    uint8_t *bytes = full(&len);
    assert_int_equal(len, FULL);
    for (uint32_t cut = HRY_DESCRIPTOR_FIXED; cut < len; cut++) {
        HurrayDescriptor *d = NULL;
        HurrayError error = HURRAY_ERROR_INIT;
        uint8_t *exact = malloc(cut);
        assert_non_null(exact);
        memcpy(exact, bytes, cut);
        hry_store_u32(exact + 6, cut); /* the length says so, too */
        assert_int_equal(hurray_descriptor_decode_ex(exact, cut, NULL, NULL, &d, &error), HURRAY_ERR_INVALID_LAYOUT);
        assert_true(error.message[0] && error.field[0]);
        assert_true(error.offset <= cut);
        free(exact);
    }
    free(bytes);
}

static void an_offset_in_a_message_counts_from_the_source(void **state) {
    (void)state;
    size_t len, used;
    uint8_t *bytes = plain(&len);
    HurrayAllocator allocator = hry_alloc_default();
    HurrayDescriptor *d;
    HurrayError error;
    bytes[57] = 0xFF;
    assert_int_equal(hry_descriptor_decode(bytes, len, 100000, 0, &allocator, &used, &d, &error), HURRAY_ERR_INVALID_TYPE);
    assert_int_equal(error.offset, 100057);
    assert_int_equal(error.buffer_index, 0);
    free(bytes);
}

static void a_prefix_tells_the_length(void **state) {
    (void)state;
    uint32_t length = 0;
    HurrayError error;
    assert_int_equal(hry_descriptor_prefix("HRRY\1\0\x3d\0\0\0", 10, 0, &length, &error), HURRAY_OK);
    assert_int_equal(length, 61);
    assert_int_equal(hry_descriptor_prefix("HRRY\1\0\x3d\0\0", 9, 50, &length, &error), HURRAY_ERR_TRUNCATED);
    assert_int_equal(error.offset, 59);
    assert_int_equal(hry_descriptor_prefix("HRRF", 4, 50, &length, &error), HURRAY_ERR_INVALID_MAGIC);
    assert_int_equal(error.offset, 50);
    assert_int_equal(hry_descriptor_prefix("P", 1, 0, &length, &error), HURRAY_ERR_INVALID_MAGIC);
    assert_int_equal(hry_descriptor_prefix("HRRYF", 5, 0, &length, &error), HURRAY_ERR_VERSION_MISMATCH);
    assert_int_equal(hry_descriptor_prefix(NULL, 0, 0, &length, &error), HURRAY_ERR_TRUNCATED);
    assert_int_equal(hry_descriptor_prefix("HRRY\1\0\x13\0\0\0", 10, 7, &length, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(error.offset, 13);
}

static void a_greater_minor_version_may_bring_more_bytes(void **state) {
    (void)state;
    size_t len, used = 0;
    uint8_t *bytes = plain(&len), longer[80] = {0};
    memcpy(longer, bytes, len);
    memcpy(longer + len, "xyz", 3);
    hry_store_u32(longer + 6, (uint32_t)len + 3);
    descriptor_must_reject(longer, len + 3, HURRAY_ERR_INVALID_LAYOUT, "descriptor_length", 6);
    longer[5] = 7;
    HurrayDescriptor *d = NULL;
    assert_int_equal(hurray_descriptor_decode_ex(longer, sizeof longer, NULL, &used, &d, NULL), HURRAY_OK);
    assert_int_equal(used, len + 3);
    assert_int_equal(d->version_minor, 7);
    size_t again_len;
    uint8_t *again = descriptor_bytes(d, &again_len); /* canonical: without them */
    assert_int_equal(again_len, len);
    assert_memory_equal(again, bytes, len);
    free(again);
    hry_descriptor_unref(d);
    longer[10] = 0x20;
    descriptor_must_reject(longer, len + 3, HURRAY_ERR_INVALID_LAYOUT, "flags", 10);
    free(bytes);
}

static void bytes_without_meaning_are_not_kept(void **state) {
    (void)state;
    size_t len;
    uint8_t *bytes = full(&len);
    uint8_t *longer = malloc(len + 2);
    HurrayDescriptor *d = NULL;
    assert_non_null(longer);
    memcpy(longer, bytes, SHARD); /* two more bytes in the quantization section, */
    memcpy(longer + SHARD, "\x77\x77", 2);
    memcpy(longer + SHARD + 2, bytes + SHARD, len - SHARD);
    longer[QUANT] = 22;
    memset(longer + STATS + 2 + 16, 0xA5, 48); /* and statistics that the mask leaves out */
    hry_store_u32(longer + 6, (uint32_t)len + 2);
    assert_int_equal(hurray_descriptor_decode(longer, len + 2, &d), HURRAY_OK);
    size_t again_len;
    uint8_t *again = descriptor_bytes(d, &again_len);
    assert_int_equal(again_len, len);
    assert_memory_equal(again, bytes, len);
    free(again);
    hry_descriptor_unref(d);
    free(longer);
    free(bytes);
}

static void a_reader_may_refuse_private_tags_and_other_machines_events(void **state) {
    (void)state;
    size_t len, used;
    HurrayAllocator allocator = hry_alloc_default();
    static const struct {
        uint8_t device, sync, memory;
        uint32_t flags;
        HurrayStatus status;
        uint64_t offset;
    } rows[] = {{1, 1, 0, 0, HURRAY_OK, 0},
                {1, 0, 0, HRY_DECODE_CROSS_MACHINE, HURRAY_OK, 0},
                {1, 1, 0, HRY_DECODE_CROSS_MACHINE, HURRAY_ERR_INVALID_SYNC_MODE, 58},
                {1, 2, 0, HRY_DECODE_CROSS_MACHINE, HURRAY_ERR_INVALID_SYNC_MODE, 58},
                {0xF0, 0, 0xF1, 0, HURRAY_OK, 0},
                {0xF0, 0, 0, HRY_DECODE_NO_PRIVATE, HURRAY_ERR_INVALID_TYPE, 57},
                {1, 0, 2, HRY_DECODE_NO_PRIVATE, HURRAY_OK, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint8_t *bytes = plain(&len);
        HurrayDescriptor *d = NULL;
        HurrayError error;
        bytes[57] = rows[i].device;
        bytes[58] = rows[i].sync;
        bytes[59] = rows[i].memory;
        assert_int_equal(hry_descriptor_decode(bytes, len, 0, rows[i].flags, &allocator, &used, &d, &error), rows[i].status);
        if (rows[i].status != HURRAY_OK) assert_int_equal(error.offset, rows[i].offset);
        hry_descriptor_unref(d);
        free(bytes);
    }
}

static void private_types_and_layouts_are_carried_unless_refused(void **state) {
    (void)state;
    const HurrayBufferHandle one = {9, 64, 0, 0, 0, 0};
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayExtensionType type = HURRAY_EXTENSION_TYPE_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    size_t len, used;
    layout.tag = 0xF0;
    layout.private_id = 5;
    type.bit_width = 8;
    type.packing_factor = 1;
    spec.buffers = &one;
    spec.buffer_count = 1;
    for (int both = 0; both < 2; both++) {
        spec.element_type = both ? 0xF5 : HURRAY_TYPE_INT8;
        spec.extension_type = both ? &type : NULL;
        spec.layout = &layout;
        HurrayDescriptor *d = descriptor_must_build(&spec), *again = NULL;
        uint8_t *bytes = descriptor_bytes(d, &len);
        hry_descriptor_unref(descriptor_must_decode(bytes, len));
        assert_int_equal(hry_descriptor_decode(bytes, len, 0, HRY_DECODE_NO_PRIVATE, &allocator, &used, &again, &error),
                         both ? HURRAY_ERR_INVALID_TYPE : HURRAY_ERR_INVALID_LAYOUT);
        assert_null(again);
        free(bytes);
        hry_descriptor_unref(d);
    }
}

static void failing_allocation_leaks_nothing(void **state) {
    (void)state;
    FailAlloc alloc;
    size_t len;
    uint8_t *bytes = full(&len);
    HurrayDescriptor *d = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    fail_alloc_init(&alloc);
    fail_alloc_arm(&alloc, 1, 0);
    assert_int_equal(hurray_descriptor_decode_ex(bytes, len, &alloc.allocator, NULL, &d, &error), HURRAY_ERR_NO_MEMORY);
    assert_null(d);
    assert_true(error.message[0]);
    assert_int_equal(hurray_descriptor_decode_ex(bytes, len, &alloc.allocator, NULL, &d, &error), HURRAY_OK);
    assert_int_equal(alloc.calls, 2); /* one block each */
    assert_int_equal(alloc.live, 1);
    fail_alloc_arm(&alloc, 1, 0);
    HurrayDescriptor *moved = NULL;
    assert_int_equal(hry_descriptor_with_buffers(d, d->buffers, &alloc.allocator, &moved, &error), HURRAY_ERR_NO_MEMORY);
    hry_descriptor_unref(d);
    fail_alloc_assert_empty(&alloc);
    free(bytes);
}

static void a_descriptor_lives_until_its_last_reference(void **state) {
    (void)state;
    FailAlloc alloc;
    size_t len;
    uint8_t *bytes = plain(&len);
    HurrayDescriptor *d = NULL;
    fail_alloc_init(&alloc);
    assert_int_equal(hurray_descriptor_decode_ex(bytes, len, &alloc.allocator, NULL, &d, NULL), HURRAY_OK);
    free(bytes);
    assert_ptr_equal(hry_descriptor_ref(d), d);
    hry_descriptor_unref(d);
    assert_int_equal(alloc.live, 1);
    assert_int_equal(d->shape[1], 3);
    hry_descriptor_unref(d);
    hry_descriptor_unref(NULL);
    fail_alloc_assert_empty(&alloc);
}

static void buffers_can_be_declared_elsewhere(void **state) {
    (void)state;
    size_t len;
    uint8_t *bytes = full(&len);
    HurrayDescriptor *d = descriptor_must_decode(bytes, len), *moved = NULL;
    HurrayBufferHandle handles[2] = {d->buffers[0], d->buffers[1]};
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    handles[0].device_tag = handles[1].device_tag = HURRAY_DEVICE_CUDA;
    handles[1].sync_mode = HURRAY_SYNC_EVENT;
    assert_int_equal(hry_descriptor_with_buffers(d, handles, &allocator, &moved, &error), HURRAY_OK);
    assert_int_equal(moved->buffers[1].sync_mode, HURRAY_SYNC_EVENT);
    assert_int_equal(d->buffers[1].device_tag, HURRAY_DEVICE_CPU);
    assert_ptr_not_equal(moved->shape, d->shape);
    hry_descriptor_unref(d);
    assert_int_equal(moved->shard.parent_shape[0], 4);
    d = NULL;
    handles[0].device_tag = HURRAY_DEVICE_CPU;
    assert_int_equal(hry_descriptor_with_buffers(moved, handles, &allocator, &d, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_null(d);
    hry_descriptor_unref(moved);
    free(bytes);
}

static void a_reader_keeps_what_a_writer_would_refuse(void **state) {
    (void)state;
    size_t len;
    uint8_t *bytes = full(&len);
    HurrayError error;
    bytes[STATS + 66] = 2; /* has_nan */
    HurrayDescriptor *d = descriptor_must_decode(bytes, len);
    assert_int_equal(d->statistics.has_nan, 2);
    assert_int_equal(hry_descriptor_check_writable(d, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_string_equal(error.field, "statistics.has_nan");
    hry_descriptor_unref(d);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_header_names_field_and_byte),
        cmocka_unit_test(a_damaged_section_names_field_and_byte),
        cmocka_unit_test(every_beginning_of_a_section_is_too_short),
        cmocka_unit_test(an_offset_in_a_message_counts_from_the_source),
        cmocka_unit_test(a_prefix_tells_the_length),
        cmocka_unit_test(a_greater_minor_version_may_bring_more_bytes),
        cmocka_unit_test(bytes_without_meaning_are_not_kept),
        cmocka_unit_test(a_reader_may_refuse_private_tags_and_other_machines_events),
        cmocka_unit_test(private_types_and_layouts_are_carried_unless_refused),
        cmocka_unit_test(failing_allocation_leaks_nothing),
        cmocka_unit_test(a_descriptor_lives_until_its_last_reference),
        cmocka_unit_test(buffers_can_be_declared_elsewhere),
        cmocka_unit_test(a_reader_keeps_what_a_writer_would_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
