#include <string.h>

#include "base/endian.h"
#include "format/descriptor_parts.h"
#include "format/element.h"
#include "format/handle.h"
#include "format/layout.h"
#include "format/quant.h"
#include "format/sections.h"

enum { LENGTH_AT = 6, FLAGS_AT = 10, TYPE_AT = 14, LAYOUT_AT = 15, RANK_AT = 16 };

/* Where everything lies until it is known to be good: about 20 KiB of stack, mostly untouched. */
typedef struct Scratch {
    HurrayDescriptor parts;
    HryPlaces places;
    uint64_t shape[HURRAY_MAX_RANK];
    uint64_t parent_shape[HURRAY_MAX_RANK], shard_offset[HURRAY_MAX_RANK];
    HurrayBufferHandle buffers[HRY_MAX_BUFFERS];
    HryLayoutRoom layout;
} Scratch;

HurrayStatus hry_descriptor_prefix(const void *bytes, size_t len, uint64_t offset, uint32_t *length, HurrayError *error) {
    const uint8_t *b = bytes;
    size_t magic = len < 4 ? len : 4;
    if (magic && memcmp(b, "HRRY", magic) != 0) {
        char found[40];
        return hry_fail(error, HURRAY_ERR_INVALID_MAGIC, "magic", offset, "a descriptor begins with \"HRRY\", found \"%s\"",
                        hry_escape(found, sizeof found, b, magic));
    }
    if (len > 4 && b[4] != 1)
        return hry_fail(error, HURRAY_ERR_VERSION_MISMATCH, "version_major", offset + 4,
                        "the descriptor's major version is %u, expected 1; a newer libhurray may read it", b[4]);
    if (len < HRY_DESCRIPTOR_PREFIX)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, "descriptor_length", offset + len,
                        "the input ends after %zu bytes of a descriptor, expected at least %u", len, HRY_DESCRIPTOR_FIXED);
    uint32_t stated = hry_load_u32(b + LENGTH_AT);
    if (stated < HRY_DESCRIPTOR_FIXED)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "descriptor_length", offset + LENGTH_AT,
                        "descriptor_length is %u, expected at least %u", (unsigned)stated, HRY_DESCRIPTOR_FIXED);
    *length = stated;
    return HURRAY_OK;
}

/* The fixed header behind its prefix; checks what the rest cannot be read without. */
static HurrayStatus decode_header(Scratch *s, const uint8_t *bytes, uint32_t flags, HurrayError *error) {
    HurrayDescriptor *d = &s->parts;
    uint64_t at = s->places.header;
    uint32_t sections = hry_load_u32(bytes + FLAGS_AT);
    d->version_minor = bytes[5];
    d->element_type = bytes[TYPE_AT];
    d->layout_tag = bytes[LAYOUT_AT];
    d->rank = hry_load_u32(bytes + RANK_AT);
    if (sections >> 5)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "flags", at + FLAGS_AT,
                        "the flags are 0x%X, expected bits 0 to 4 only; is the file of a newer format?", (unsigned)sections);
    d->has_quantization = sections & 1;
    d->has_shard = sections >> 1 & 1;
    d->has_extension_type = sections >> 2 & 1;
    d->has_statistics = sections >> 3 & 1;
    d->has_composite_member = sections >> 4 & 1;
    if (d->rank > HURRAY_MAX_RANK)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "rank", at + RANK_AT, "rank is %u, expected at most %u", (unsigned)d->rank,
                        HURRAY_MAX_RANK);
    return hry_descriptor_check_tags(d->element_type, d->layout_tag, d->has_extension_type, flags, at, error);
}

static HurrayStatus decode_buffers(Scratch *s, HryCursor *cursor, HurrayError *error) {
    uint8_t count;
    s->places.buffers = cursor->offset;
    if (!hry_cursor_u8(cursor, &count)) return hry_part_short(error, "buffer_count", cursor, 1);
    if (cursor->left / HRY_HANDLE_BYTES < count) return hry_part_short(error, "buffers", cursor, (uint64_t)count * HRY_HANDLE_BYTES);
    for (uint32_t i = 0; i < count; i++) hry_handle_decode(cursor, &s->buffers[i]);
    s->parts.buffer_count = count;
    s->parts.buffers = s->buffers;
    return HURRAY_OK;
}

static HurrayStatus decode_sections(Scratch *s, HryCursor *cursor, HurrayError *error) {
    HurrayDescriptor *d = &s->parts;
    HurrayStatus status = HURRAY_OK;
    s->places.quantization = cursor->offset;
    if (d->has_quantization && (status = hry_quant_decode(cursor, &d->quantization, error)) != HURRAY_OK) return status;
    s->places.shard = cursor->offset;
    if (d->has_shard && (status = hry_shard_decode(cursor, d->rank, s->parent_shape, s->shard_offset, &d->shard, error)) != HURRAY_OK)
        return status;
    s->places.statistics = cursor->offset;
    if (d->has_statistics && (status = hry_statistics_decode(cursor, &d->statistics, error)) != HURRAY_OK) return status;
    s->places.extension_type = cursor->offset;
    if (d->has_extension_type && (status = hry_extension_decode(cursor, &d->extension_type, error)) != HURRAY_OK) return status;
    s->places.composite_member = cursor->offset;
    if (d->has_composite_member && (status = hry_member_decode(cursor, &d->composite_member, error)) != HURRAY_OK) return status;
    if (d->version_minor == 0 && cursor->left)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "descriptor_length", s->places.header + LENGTH_AT,
                        "descriptor_length states %zu bytes more than the descriptor's parts have", cursor->left);
    return HURRAY_OK;
}

/* The parts in their order, each within the stated length. */
static HurrayStatus decode_parts(Scratch *s, HryCursor *cursor, HurrayError *error) {
    HurrayDescriptor *d = &s->parts;
    s->places.shape = cursor->offset;
    if (!hry_cursor_u64_array(cursor, s->shape, d->rank)) return hry_part_short(error, "shape", cursor, (uint64_t)d->rank * 8);
    d->shape = s->shape;
    s->places.byte_offset = cursor->offset;
    if (!hry_cursor_u64(cursor, &d->byte_offset)) return hry_part_short(error, "byte_offset", cursor, 8);
    s->places.layout = cursor->offset;
    HurrayStatus status = hry_layout_decode(cursor, d->layout_tag, d->rank, &s->layout, &d->layout, error);
    if (status == HURRAY_OK) status = decode_buffers(s, cursor, error);
    return status != HURRAY_OK ? status : decode_sections(s, cursor, error);
}

HurrayStatus hry_descriptor_decode(const void *bytes, size_t len, uint64_t offset, uint32_t flags, const HurrayAllocator *allocator,
                                   size_t *used, HurrayDescriptor **out, HurrayError *error) {
    Scratch s;
    uint32_t length = 0;
    HurrayStatus status = hry_descriptor_prefix(bytes, len, offset, &length, error);
    if (status != HURRAY_OK) return status;
    if (length > len)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, "descriptor_length", offset + LENGTH_AT,
                        "the descriptor states %u bytes, but the input has only %zu", (unsigned)length, len);
    memset(&s.parts, 0, sizeof s.parts);
    s.places.header = offset;
    status = decode_header(&s, bytes, flags, error);
    if (status != HURRAY_OK) return status;
    HryCursor cursor =
        hry_cursor((const uint8_t *)bytes + HRY_DESCRIPTOR_FIXED, length - HRY_DESCRIPTOR_FIXED, offset + HRY_DESCRIPTOR_FIXED);
    status = decode_parts(&s, &cursor, error);
    if (status != HURRAY_OK) return status;
    s.parts.element_bits = s.parts.has_extension_type ? s.parts.extension_type.bit_width : hry_element_bits(s.parts.element_type);
    status = hry_descriptor_check(&s.parts, &s.places, flags, error);
    if (status == HURRAY_OK) status = hry_descriptor_place(&s.parts, allocator, out, error);
    if (status == HURRAY_OK) *used = length;
    return status;
}
