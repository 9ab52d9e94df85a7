#include "import/byte_source.h"

#include <string.h>

#include "base/checked.h"
#include "driver/transport_call.h"
#include "import/npz_inflate.h"

#define SCRATCH_SIZE 65536u /* a multiple of every unit and of 8 */

/* Raw bytes are those of the array as the source means them: read or inflated, headers in front skipped. */
struct HryByteSource {
    HurrayAllocator allocator;
    const HurrayTransport *transport;
    HryForeign foreign;
    HryByteChange change; /* from raw to buffer: AS_IS, PACK_BOOL, SWAP */
    uint64_t size, raw_size;
    HryInflate *inflate; /* NULL: raw bytes lie in the source */
    uint64_t taken;      /* read from the source; inflate counts its own */
    uint64_t summed;     /* raw bytes that crc covers; not for inflated ones */
    uint32_t crc;
    uint8_t *scratch;
};

void hry_byte_source_close(HryByteSource **source) {
    HryByteSource *s = *source;
    *source = NULL;
    if (!s) return;
    HurrayAllocator allocator = s->allocator;
    hry_inflate_close(&s->inflate);
    hry_free(&allocator, s->scratch, SCRATCH_SIZE);
    hry_free(&allocator, s, sizeof *s);
}

uint64_t hry_byte_source_size(const HryByteSource *source) { return source->size; }

bool hry_byte_source_checks(const HryByteSource *source) { return source->foreign.has_crc32; }

uint64_t hry_byte_source_taken(const HryByteSource *source) {
    return source->inflate ? hry_inflate_taken(source->inflate) : source->taken;
}

HurrayStatus hry_byte_source_open(const HurrayTransport *transport, const HryCatalogue *catalogue, const HryEntry *entry,
                                  const HurrayAllocator *allocator, HryByteSource **out, HurrayError *error) {
    if (!entry->descriptor || entry->descriptor->buffer_count == 0)
        return hry_fail(error, HURRAY_ERR_INTERNAL, NULL, HRY_NO_OFFSET, "an entry without a buffer has no bytes to read");
    HryByteSource *s = hry_alloc(allocator, sizeof *s);
    if (!s) return hry_fail_memory(error, "reading a tensor", sizeof *s);
    s->allocator = *allocator;
    s->transport = transport;
    s->size = entry->descriptor->buffers[0].byte_size;
    if (entry->side) {
        s->foreign = catalogue->foreign[entry->side - 1];
    } else {
        s->foreign.packed_offset = entry->data_offset;
        s->foreign.packed_length = s->size;
    }
    const HryForeign *foreign = &s->foreign;
    bool inflated = foreign->bytes == HRY_BYTES_INFLATE;
    s->change = inflated ? foreign->then : foreign->bytes;
    s->raw_size = inflated ? foreign->unpacked_length - foreign->skip : foreign->packed_length;
    s->crc = foreign->crc_prefix;
    HurrayStatus status = HURRAY_OK;
    if (inflated || s->change != HRY_BYTES_AS_IS) {
        s->scratch = hry_alloc_raw(allocator, SCRATCH_SIZE);
        if (!s->scratch) status = hry_fail_memory(error, "reading a tensor", SCRATCH_SIZE);
    }
    if (status == HURRAY_OK && inflated)
        status = hry_inflate_open(transport, foreign->packed_offset, foreign->packed_length, foreign->unpacked_length, allocator,
                                  &s->inflate, error);
    if (status != HURRAY_OK) {
        hry_byte_source_close(&s);
        return status;
    }
    *out = s;
    return HURRAY_OK;
}

static HurrayStatus check_sum(const HryByteSource *s, uint32_t found, HurrayError *error) {
    if (!s->foreign.has_crc32 || found == s->foreign.crc32) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_CHECKSUM, "CRC-32", s->foreign.packed_offset,
                    "the CRC-32 of the archive member is %08x, its directory says %08x; the data is damaged, fetch or write it again",
                    (unsigned)found, (unsigned)s->foreign.crc32);
}

static HurrayStatus read_inflated(HryByteSource *s, uint64_t at, void *dst, size_t len, HurrayError *error) {
    HurrayStatus status = HURRAY_OK;
    uint64_t wanted = s->foreign.skip + at;
    if (wanted < hry_inflate_position(s->inflate)) status = hry_inflate_restart(s->inflate, error);
    while (status == HURRAY_OK && hry_inflate_position(s->inflate) < wanted) {
        uint64_t gap = wanted - hry_inflate_position(s->inflate);
        status = hry_inflate_read(s->inflate, s->scratch, gap < SCRATCH_SIZE ? (size_t)gap : SCRATCH_SIZE, error);
    }
    if (status == HURRAY_OK) status = hry_inflate_read(s->inflate, dst, len, error);
    if (status != HURRAY_OK) {
        HurrayError second; /* the first one counts; a stream left in the middle starts again next time */
        hry_inflate_restart(s->inflate, &second);
        return status;
    }
    if (hry_inflate_position(s->inflate) == s->foreign.unpacked_length) return check_sum(s, hry_inflate_crc32(s->inflate), error);
    return HURRAY_OK;
}

static HurrayStatus read_raw(HryByteSource *s, uint64_t at, void *dst, size_t len, HurrayError *error) {
    if (s->inflate) return read_inflated(s, at, dst, len, error);
    HurrayStatus status = hry_transport_read_exactly(s->transport, s->foreign.packed_offset + at, dst, len, error);
    if (status == HURRAY_OK) s->taken += len;
    if (status != HURRAY_OK || !s->foreign.has_crc32) return status;
    if (at == 0) {
        s->summed = 0;
        s->crc = s->foreign.crc_prefix;
    }
    if (at == s->summed) {
        s->crc = hry_crc32(s->crc, dst, len);
        s->summed += len;
        if (s->summed == s->raw_size) return check_sum(s, s->crc, error);
    }
    return HURRAY_OK;
}

static HurrayStatus read_packed(HryByteSource *s, uint64_t offset, uint8_t *dst, size_t len, HurrayError *error) {
    for (size_t done = 0; done < len;) {
        uint64_t first = (offset + done) * 8; /* below 2^64: raw_size is */
        uint64_t raw = s->raw_size - first;
        if (raw > SCRATCH_SIZE) raw = SCRATCH_SIZE;
        if (raw > (len - done) * UINT64_C(8)) raw = (len - done) * UINT64_C(8);
        HurrayStatus status = read_raw(s, first, s->scratch, (size_t)raw, error);
        if (status != HURRAY_OK) return status;
        for (size_t i = 0; i < raw; i += 8, done++) {
            uint8_t bits = 0;
            for (size_t k = 0; k < 8 && i + k < raw; k++) {
                uint8_t value = s->scratch[i + k];
                if (value > 1)
                    return hry_fail(error, HURRAY_ERR_INVALID_DATA, "bool", HRY_NO_OFFSET,
                                    "element %llu of a bool tensor is %u; only 0 and 1 are legal", (unsigned long long)(first + i + k),
                                    (unsigned)value);
                bits |= (uint8_t)(value << k);
            }
            dst[done] = bits;
        }
    }
    return HURRAY_OK;
}

static HurrayStatus read_swapped(HryByteSource *s, uint64_t offset, uint8_t *dst, size_t len, HurrayError *error) {
    size_t unit = s->foreign.unit;
    for (size_t done = 0; done < len;) {
        uint64_t at = offset + done, first = at - at % unit;
        size_t skip = (size_t)(at % unit), want = len - done;
        uint64_t raw = s->raw_size - first;
        if (raw > SCRATCH_SIZE) raw = SCRATCH_SIZE;
        if (want > raw - skip) want = (size_t)raw - skip;
        raw = hry_div_up(skip + want, unit) * unit;
        HurrayStatus status = read_raw(s, first, s->scratch, (size_t)raw, error);
        if (status != HURRAY_OK) return status;
        for (size_t i = 0; i < want; i++) {
            size_t place = skip + i;
            dst[done + i] = s->scratch[place - place % unit + (unit - 1 - place % unit)];
        }
        done += want;
    }
    return HURRAY_OK;
}

HurrayStatus hry_byte_source_read(HryByteSource *source, uint64_t offset, void *dst, size_t len, HurrayError *error) {
    if (!hry_range_inside(offset, len, source->size))
        return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, NULL, HRY_NO_OFFSET, "bytes %llu to %llu of a buffer of %llu bytes",
                        (unsigned long long)offset, (unsigned long long)(offset + len), (unsigned long long)source->size);
    if (len == 0) return HURRAY_OK;
    switch (source->change) {
    case HRY_BYTES_PACK_BOOL: return read_packed(source, offset, dst, len, error);
    case HRY_BYTES_SWAP: return read_swapped(source, offset, dst, len, error);
    default: return read_raw(source, offset, dst, len, error);
    }
}
