#include "import/npy.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "driver/transport_call.h"
#include "import/common.h"
#include "import/json.h"

#define MAX_HEADER 10000u

typedef struct Text {
    const uint8_t *bytes;
    size_t len, at;
    uint64_t offset;
    uint8_t version;
    HurrayError *error;
} Text;

bool hry_npy_is_magic(const uint8_t *bytes, size_t len) { return len >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0; }

HurrayStatus hry_npy_prefix(const uint8_t *bytes, size_t len, uint64_t offset, size_t *prefix, HurrayError *error) {
    if (!hry_npy_is_magic(bytes, len))
        return hry_fail(error, HURRAY_ERR_INVALID_MAGIC, "magic", offset, "no NPY array: it does not begin with 93 `NUMPY`");
    if (len < 10) return hry_fail(error, HURRAY_ERR_TRUNCATED, "header", offset, "the NPY array ends inside its first 10 bytes");
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return hry_fail(error, HURRAY_ERR_VERSION_MISMATCH, "version", offset + 6, "NPY version %u.%u; 1.0, 2.0 and 3.0 are read", bytes[6],
                        bytes[7]);
    size_t first = bytes[6] == 1 ? 10 : 12;
    if (len < first) return hry_fail(error, HURRAY_ERR_TRUNCATED, "header", offset, "the NPY array ends inside its first 12 bytes");
    uint32_t header = bytes[6] == 1 ? hry_load_u16(bytes + 8) : hry_load_u32(bytes + 8);
    if (header > MAX_HEADER)
        return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "header length", offset + 8,
                        "the NPY header has %u bytes; more than %u are not read, as in NumPy", (unsigned)header, MAX_HEADER);
    *prefix = first + header;
    return HURRAY_OK;
}

static int peek(const Text *t) { return t->at < t->len ? t->bytes[t->at] : -1; }

static int peek_token(Text *t) {
    while (t->at < t->len && hry_json_is_space(t->bytes[t->at])) t->at++;
    return peek(t);
}

/* "KEY: expected X, found `...`": quotes up to the next comma or white space. */
static bool fail_found(Text *t, const char *key, const char *expected) {
    char found[64];
    size_t end = t->at;
    while (end < t->len && end - t->at < 40 && (end == t->at || (t->bytes[end] != ',' && !hry_json_is_space(t->bytes[end])))) end++;
    if (end == t->at)
        snprintf(found, sizeof found, "the end of the header");
    else
        hry_escape(found, sizeof found, t->bytes + t->at, end - t->at);
    hry_fail(t->error, HURRAY_ERR_INVALID_CONTAINER, key, t->offset + t->at, "%s: expected %s, found `%s`", key, expected, found);
    return false;
}

/* A quoted text; *len bytes at *start. */
static bool read_text(Text *t, const char *key, const char *expected, size_t *start, size_t *len) {
    int c = peek_token(t);
    size_t begin = t->at;
    if (c == 'u' || c == 'U') {
        t->at++;
        c = peek(t);
    }
    if (c != '\'' && c != '"') {
        t->at = begin;
        return fail_found(t, key, expected);
    }
    *start = ++t->at;
    while (peek(t) != c) {
        if (peek(t) == '\\' || peek(t) < 0) return fail_found(t, key, "the end of a text without a backslash");
        t->at++;
    }
    *len = t->at - *start;
    t->at++;
    return true;
}

static bool read_bool(Text *t, HryNpy *npy) {
    peek_token(t);
    size_t left = t->len - t->at;
    size_t word = left >= 4 && memcmp(t->bytes + t->at, "True", 4) == 0    ? 4
                  : left >= 5 && memcmp(t->bytes + t->at, "False", 5) == 0 ? 5
                                                                           : 0;
    if (word == 0) return fail_found(t, "fortran_order", "True or False");
    npy->fortran = word == 4;
    t->at += word;
    return true;
}

static bool read_int(Text *t, uint64_t *out) {
    size_t begin = t->at;
    uint64_t value = 0;
    while (peek(t) >= '0' && peek(t) <= '9') {
        if (!hry_mul_u64(value, 10, &value) || !hry_add_u64(value, (uint64_t)(peek(t) - '0'), &value) || value >> 63) {
            t->at = begin;
            return fail_found(t, "shape", "a number below 2^63");
        }
        t->at++;
    }
    size_t digits = t->at - begin;
    if (digits == 0 || (digits > 1 && t->bytes[begin] == '0')) {
        t->at = begin;
        return fail_found(t, "shape", "a number");
    }
    if (peek(t) == 'L' && t->version < 3) t->at++;
    *out = value;
    return true;
}

static bool read_shape(Text *t, HryNpy *npy) {
    if (peek_token(t) != '(') return fail_found(t, "shape", "a tuple like (2, 3)");
    size_t open = t->at++;
    npy->rank = 0;
    if (peek_token(t) == ')') {
        t->at++;
        return true;
    }
    for (;;) {
        uint64_t dim = 0;
        if (!read_int(t, &dim)) return false;
        if (npy->rank == HURRAY_MAX_RANK) {
            hry_fail(t->error, HURRAY_ERR_UNSUPPORTED, "shape", t->offset + open,
                     "the shape has more than 64 dimensions, which no descriptor can say");
            return false;
        }
        npy->shape[npy->rank++] = dim;
        int c = peek_token(t);
        if (c == ')' && npy->rank > 1) break;
        if (c != ',') {
            if (c == ')') t->at = open;
            return fail_found(t, "shape", c == ')' ? "a tuple, which has a comma behind its only number" : "a comma or `)`");
        }
        t->at++;
        if (peek_token(t) == ')') break;
    }
    t->at++;
    return true;
}

typedef struct Type {
    char code[4];
    uint8_t tag, size, unit;
} Type;

static const Type types[] = {
    {"b1", HURRAY_TYPE_BOOL, 1, 1},      {"i1", HURRAY_TYPE_INT8, 1, 1},         {"i2", HURRAY_TYPE_INT16, 2, 2},
    {"i4", HURRAY_TYPE_INT32, 4, 4},     {"i8", HURRAY_TYPE_INT64, 8, 8},        {"u1", HURRAY_TYPE_UINT8, 1, 1},
    {"u2", HURRAY_TYPE_UINT16, 2, 2},    {"u4", HURRAY_TYPE_UINT32, 4, 4},       {"u8", HURRAY_TYPE_UINT64, 8, 8},
    {"f2", HURRAY_TYPE_FLOAT16, 2, 2},   {"f4", HURRAY_TYPE_FLOAT32, 4, 4},      {"f8", HURRAY_TYPE_FLOAT64, 8, 8},
    {"c8", HURRAY_TYPE_COMPLEX64, 8, 4}, {"c16", HURRAY_TYPE_COMPLEX128, 16, 8},
};

/* Why a type is not read. */
static const char *why_not(const uint8_t *code, size_t len) {
    char kind = len ? (char)code[0] : 0;
    bool is_f1 = len == 2 && memcmp(code, "f1", 2) == 0;
    if (kind == 'O') return "an object array is a Python pickle, which is never read and never run";
    if (kind == 'V' || is_f1)
        return "raw bytes are how bfloat16 and 8-bit floats of other packages end up; which type they are is never guessed";
    if (len > 1 && ((kind == 'f' && (code[1] == '1')) || (kind == 'c' && (code[1] == '2' || code[1] == '3'))))
        return "its meaning differs by platform";
    if (kind == 'U' || kind == 'S' || kind == 'a') return "texts are no tensor";
    if (kind == 'M' || kind == 'm') return "dates and times are no tensor";
    return "it is none of b1, i1 to i8, u1 to u8, f2 to f8, c8, c16";
}

static bool read_descr(Text *t, HryNpy *npy) {
    int c = peek_token(t);
    char quoted[64];
    if (c == '[' || c == '(') {
        size_t left = t->len - t->at;
        hry_fail(t->error, HURRAY_ERR_INVALID_TYPE, "descr", t->offset + t->at,
                 "a structured type is no tensor: `%s`; save its fields as arrays of their own",
                 hry_escape(quoted, sizeof quoted, t->bytes + t->at, left < 40 ? left : 40));
        return false;
    }
    size_t start = 0, len = 0;
    if (!read_text(t, "descr", "a text", &start, &len)) return false;
    const uint8_t *code = t->bytes + start;
    size_t code_len = len;
    char order = len ? (char)code[0] : 0;
    bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
    if (has_order) code++, code_len--;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (code_len != strlen(types[i].code) || memcmp(code, types[i].code, code_len) != 0) continue;
        if (order == '|' && types[i].size > 1) break;
        npy->type_tag = types[i].tag;
        npy->item_size = types[i].size;
        npy->unit = types[i].unit;
        npy->change = types[i].tag == HURRAY_TYPE_BOOL    ? HRY_BYTES_PACK_BOOL
                      : order == '>' && types[i].size > 1 ? HRY_BYTES_SWAP
                                                          : HRY_BYTES_AS_IS;
        return true;
    }
    hry_fail(t->error, HURRAY_ERR_INVALID_TYPE, "descr", t->offset + start, "the type `%s` is not read: %s",
             hry_escape(quoted, sizeof quoted, t->bytes + start, len), why_not(code, code_len));
    return false;
}

static bool read_item(Text *t, HryNpy *npy, unsigned *seen) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    size_t start = 0, len = 0, which = 3;
    if (!read_text(t, "header", "a key", &start, &len)) return false;
    for (size_t i = 0; i < 3; i++)
        if (len == strlen(keys[i]) && memcmp(t->bytes + start, keys[i], len) == 0) which = i;
    if (which == 3 || (*seen & (1u << which))) {
        char found[64];
        hry_fail(t->error, HURRAY_ERR_INVALID_CONTAINER, "header", t->offset + start,
                 "the key `%s` %s; descr, fortran_order and shape stand there once each",
                 hry_escape(found, sizeof found, t->bytes + start, len), which == 3 ? "is unknown" : "stands twice");
        return false;
    }
    *seen |= 1u << which;
    if (peek_token(t) != ':') return fail_found(t, "header", "`:`");
    t->at++;
    return which == 0 ? read_descr(t, npy) : which == 1 ? read_bool(t, npy) : read_shape(t, npy);
}

static bool read_dictionary(Text *t, HryNpy *npy) {
    unsigned seen = 0;
    if (peek_token(t) != '{') return fail_found(t, "header", "`{`");
    t->at++;
    while (peek_token(t) != '}') {
        if (!read_item(t, npy, &seen)) return false;
        if (peek_token(t) == ',')
            t->at++;
        else if (peek(t) != '}')
            return fail_found(t, "header", "`,` or `}`");
    }
    t->at++;
    if (peek_token(t) >= 0) return fail_found(t, "header", "nothing after `}`");
    if (seen != 7) {
        hry_fail(t->error, HURRAY_ERR_INVALID_CONTAINER, "header", t->offset, "the header lacks %s",
                 !(seen & 1)   ? "descr"
                 : !(seen & 2) ? "fortran_order"
                               : "shape");
        return false;
    }
    return true;
}

HurrayStatus hry_npy_parse(const uint8_t *bytes, size_t prefix, uint64_t size, uint64_t offset, HryNpy *out, HurrayError *error) {
    size_t first = bytes[6] == 1 ? 10 : 12;
    Text t = {bytes + first, prefix - first, 0, offset + first, bytes[6], error};
    memset(out, 0, sizeof *out);
    if (t.version == 3 && !hry_utf8_valid(t.bytes, t.len, NULL))
        return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "header", t.offset, "the header of an NPY 3.0 array is not UTF-8");
    if (!read_dictionary(&t, out)) return error->code;
    uint64_t elements, there = size - prefix;
    if (!hry_product_u64(out->shape, out->rank, &elements) || !hry_mul_u64(elements, out->item_size, &out->bytes) || out->bytes >> 63)
        return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "shape", t.offset, "the shape needs more than 2^63 bytes");
    if (there < out->bytes)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, "data", offset + prefix,
                        "the shape needs %llu bytes, %llu are there; incomplete file?", (unsigned long long)out->bytes,
                        (unsigned long long)there);
    if (there > out->bytes)
        return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "data", offset + prefix + out->bytes,
                        "%llu bytes too many: the shape needs %llu, %llu are there", (unsigned long long)(there - out->bytes),
                        (unsigned long long)out->bytes, (unsigned long long)there);
    if (out->rank < 2) out->fortran = false;
    out->buffer_bytes = out->change == HRY_BYTES_PACK_BOOL ? hry_div_up(elements, 8) : out->bytes;
    return HURRAY_OK;
}

HurrayStatus hry_npy_describe(const HryNpy *npy, const HurrayAllocator *allocator, HurrayDescriptor **out, HurrayError *error) {
    HryImported imported = {.element_type = npy->type_tag,
                            .layout_tag = npy->fortran ? HURRAY_LAYOUT_COLUMN_MAJOR : HURRAY_LAYOUT_ROW_MAJOR,
                            .rank = npy->rank,
                            .shape = npy->shape,
                            .byte_size = npy->buffer_bytes};
    return hry_import_describe(&imported, allocator, out, error);
}

static HurrayStatus fill_npy(HryCatalogue *catalogue, const HryNpy *npy, size_t prefix, const char *stem, HurrayError *error) {
    HryEntry entry = {
        .name_len = (uint32_t)strlen(stem), .descriptor_offset = HURRAY_NONE, .data_offset = prefix, .data_length = npy->bytes};
    uint8_t *name = hry_catalogue_block(catalogue, entry.name_len + 1u);
    if (!name) return hry_fail_memory(error, "a name", entry.name_len);
    memcpy(name, stem, entry.name_len + 1u);
    entry.name = name;
    HurrayStatus status = HURRAY_OK;
    if (npy->change != HRY_BYTES_AS_IS && npy->bytes) {
        HryForeign foreign = {
            .bytes = npy->change, .unit = npy->unit, .packed_offset = prefix, .packed_length = npy->bytes, .unpacked_length = npy->bytes};
        status = hry_catalogue_add_foreign(catalogue, &foreign, &entry.side, error);
    }
    if (status == HURRAY_OK) status = hry_npy_describe(npy, &catalogue->allocator, &entry.descriptor, error);
    if (status == HURRAY_OK) status = hry_catalogue_add(catalogue, &entry, error);
    if (status != HURRAY_OK) {
        hry_descriptor_unref(entry.descriptor);
        return status;
    }
    return hry_import_index_names(catalogue, "file", error);
}

HurrayStatus hry_import_npy(const HurrayTransport *transport, uint64_t size, const char *stem, const HryLimits *limits,
                            const HurrayAllocator *allocator, HryCatalogue **out, HurrayError *error) {
    uint8_t bytes[HRY_NPY_MAX_PREFIX];
    size_t first = size < HRY_NPY_FIRST ? (size_t)size : HRY_NPY_FIRST, prefix = 0;
    HurrayStatus status = hry_import_check_count(0, limits, error);
    if (status == HURRAY_OK && first) status = hry_transport_read_exactly(transport, 0, bytes, first, error);
    if (status == HURRAY_OK) status = hry_npy_prefix(bytes, first, 0, &prefix, error);
    if (status != HURRAY_OK) return status;
    if (prefix > size)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, "header", size, "the NPY header needs %zu bytes, the file has %llu", prefix,
                        (unsigned long long)size);
    HryNpy npy;
    HryCatalogue *catalogue = NULL;
    status = hry_transport_read_exactly(transport, 0, bytes, prefix, error);
    if (status == HURRAY_OK) status = hry_npy_parse(bytes, prefix, size, 0, &npy, error);
    if (status == HURRAY_OK) status = hry_import_catalogue(HURRAY_FORMAT_NPY, size, allocator, &catalogue, error);
    if (status == HURRAY_OK) status = fill_npy(catalogue, &npy, prefix, stem, error);
    if (status != HURRAY_OK) {
        hry_catalogue_unref(catalogue);
        return status;
    }
    *out = catalogue;
    return HURRAY_OK;
}
