#include "import/npz_inflate.h"

#include <string.h>
#include <zlib.h>

#include "base/checked.h"
#include "driver/transport_call.h"

#define INPUT_SIZE 65536u
#define FIRST_READ 1024u

struct HryInflate {
    HurrayAllocator allocator;
    const HurrayTransport *transport;
    z_stream stream;
    uint64_t offset, packed, unpacked; /* of the member */
    uint64_t taken, given;             /* packed bytes read from the transport, unpacked bytes handed out */
    uint32_t crc;
    bool ended;
    uint8_t *input;
    size_t input_size, ask; /* ask: bytes of the next read; small at first, for those who only want a header */
};

typedef union Header {
    size_t size;
    max_align_t alignment;
} Header;

static voidpf zlib_allocate(voidpf opaque, uInt items, uInt size) {
    const HurrayAllocator *allocator = opaque;
    size_t bytes;
    if (!hry_mul_size(items, size, &bytes) || !hry_add_size(bytes, sizeof(Header), &bytes)) return Z_NULL;
    Header *header = hry_alloc(allocator, bytes);
    if (!header) return Z_NULL;
    header->size = bytes;
    return header + 1;
}

static void zlib_free(voidpf opaque, voidpf memory) {
    Header *header = (Header *)memory - 1;
    hry_free(opaque, header, header->size);
}

void hry_inflate_close(HryInflate **inflate) {
    HryInflate *i = *inflate;
    *inflate = NULL;
    if (!i) return;
    inflateEnd(&i->stream);
    HurrayAllocator allocator = i->allocator;
    hry_free(&allocator, i->input, i->input_size);
    hry_free(&allocator, i, sizeof *i);
}

HurrayStatus hry_inflate_open(const HurrayTransport *transport, uint64_t offset, uint64_t packed, uint64_t unpacked,
                              const HurrayAllocator *allocator, HryInflate **out, HurrayError *error) {
    HryInflate *i = hry_alloc(allocator, sizeof *i);
    if (!i) return hry_fail_memory(error, "inflating", sizeof *i);
    i->allocator = *allocator;
    i->transport = transport;
    i->offset = offset;
    i->packed = packed;
    i->unpacked = unpacked;
    i->stream.zalloc = zlib_allocate;
    i->stream.zfree = zlib_free;
    i->stream.opaque = &i->allocator;
    i->ask = FIRST_READ;
    i->input_size = packed < INPUT_SIZE ? (size_t)packed + 1 : INPUT_SIZE;
    i->input = hry_alloc_raw(allocator, i->input_size);
    if (!i->input || inflateInit2(&i->stream, -15) != Z_OK) {
        hry_inflate_close(&i);
        return hry_fail_memory(error, "inflating", 65536);
    }
    *out = i;
    return HURRAY_OK;
}

HurrayStatus hry_inflate_restart(HryInflate *inflate, HurrayError *error) {
    if (inflateReset(&inflate->stream) != Z_OK)
        return hry_fail(error, HURRAY_ERR_INTERNAL, NULL, HRY_NO_OFFSET, "inflating cannot start again");
    inflate->stream.avail_in = 0;
    inflate->taken = inflate->given = 0;
    inflate->crc = 0;
    inflate->ended = false;
    return HURRAY_OK;
}

static HurrayStatus fail_deflate(const HryInflate *i, HurrayError *error, const char *why) {
    return hry_fail(error, HURRAY_ERR_INVALID_DATA, "compressed data", i->offset + i->taken - i->stream.avail_in,
                    "the compressed data is damaged: %s; fetch or write the archive again", why);
}

static HurrayStatus refill(HryInflate *i, HurrayError *error) {
    uint64_t left = i->packed - i->taken;
    size_t len = left < i->ask ? (size_t)left : i->ask;
    if (len == 0) return HURRAY_OK;
    i->ask = i->ask * 8 < INPUT_SIZE ? i->ask * 8 : INPUT_SIZE;
    HurrayStatus status = hry_transport_read_exactly(i->transport, i->offset + i->taken, i->input, len, error);
    if (status != HURRAY_OK) return status;
    i->taken += len;
    i->stream.next_in = i->input;
    i->stream.avail_in = (uInt)len;
    return HURRAY_OK;
}

/* One call of zlib with output room for len bytes (0: only to see the end of the stream). */
static HurrayStatus step(HryInflate *i, uint8_t *dst, uInt len, size_t *made, HurrayError *error) {
    uint8_t spare;
    if (i->stream.avail_in == 0) {
        HurrayStatus status = refill(i, error);
        if (status != HURRAY_OK) return status;
    }
    i->stream.next_out = len ? dst : &spare;
    i->stream.avail_out = len ? len : 1;
    uInt had = i->stream.avail_in;
    int result = inflate(&i->stream, Z_NO_FLUSH);
    *made = (len ? len : 1) - i->stream.avail_out;
    if (result == Z_STREAM_END)
        i->ended = true;
    else if (result == Z_MEM_ERROR)
        return hry_fail_memory(error, "inflating", 65536);
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return fail_deflate(i, error, i->stream.msg ? i->stream.msg : "no deflate stream");
    if (!i->ended && *made == 0 && had == 0) return fail_deflate(i, error, "it ends early");
    if (len == 0 && *made) return fail_deflate(i, error, "it gives more bytes than the archive's directory says");
    return HURRAY_OK;
}

static HurrayStatus check_end(HryInflate *i, HurrayError *error) {
    size_t made;
    while (!i->ended) {
        HurrayStatus status = step(i, NULL, 0, &made, error);
        if (status != HURRAY_OK) return status;
    }
    if (i->stream.avail_in || i->taken != i->packed) return fail_deflate(i, error, "it ends before its packed bytes do");
    return HURRAY_OK;
}

HurrayStatus hry_inflate_read(HryInflate *inflate, void *dst, size_t len, HurrayError *error) {
    uint8_t *to = dst;
    while (len) {
        if (inflate->ended) return fail_deflate(inflate, error, "it gives fewer bytes than the archive's directory says");
        size_t made = 0;
        uInt piece = len < (1u << 30) ? (uInt)len : 1u << 30;
        HurrayStatus status = step(inflate, to, piece, &made, error);
        if (status != HURRAY_OK) return status;
        inflate->crc = hry_crc32(inflate->crc, to, made);
        inflate->given += made;
        to += made;
        len -= made;
    }
    return inflate->given == inflate->unpacked ? check_end(inflate, error) : HURRAY_OK;
}

uint64_t hry_inflate_position(const HryInflate *inflate) { return inflate->given; }
uint64_t hry_inflate_taken(const HryInflate *inflate) { return inflate->taken; }
uint32_t hry_inflate_crc32(const HryInflate *inflate) { return inflate->crc; }

uint32_t hry_crc32(uint32_t crc, const void *bytes, size_t len) { return (uint32_t)crc32_z(crc, bytes, len); }
