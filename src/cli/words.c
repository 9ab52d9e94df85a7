#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Word {
    uint32_t value;
    const char *text;
    uint32_t bits;
} Word;

static const Word types[] = {
    {0x01, "float16", 16},     {0x02, "bfloat16", 16},   {0x03, "float32", 32},    {0x04, "float64", 64},    {0x10, "int8", 8},
    {0x11, "uint8", 8},        {0x12, "int16", 16},      {0x13, "uint16", 16},     {0x14, "int32", 32},      {0x15, "uint32", 32},
    {0x16, "int64", 64},       {0x17, "uint64", 64},     {0x20, "bool", 1},        {0x40, "float8_e4m3", 8}, {0x41, "float8_e5m2", 8},
    {0x42, "float8_e8m0", 8},  {0x43, "float4_e2m1", 4}, {0x44, "float6_e2m3", 6}, {0x45, "float6_e3m2", 6}, {0x46, "float128", 128},
    {0x48, "int4", 4},         {0x49, "uint4", 4},       {0x4A, "int2", 2},        {0x4B, "uint2", 2},       {0x50, "complex64", 64},
    {0x51, "complex128", 128},
};
static const Word layouts[] = {
    {0x01, "row_major", 0}, {0x02, "column_major", 0}, {0x03, "strided", 0},   {0x04, "tiled", 0},
    {0x05, "morton", 0},    {0x06, "coo", 0},          {0x07, "csr", 0},       {0x08, "csc", 0},
    {0x09, "csf", 0},       {0x0A, "block_paged", 0},  {0x0B, "composite", 0}, {0x40, "hilbert", 0},
};
static const Word devices[] = {
    {0, "cpu", 0},    {1, "cuda", 0},    {2, "rocm", 0},       {3, "metal", 0},  {4, "vulkan", 0},
    {5, "webgpu", 0}, {6, "hexagon", 0}, {7, "level_zero", 0}, {8, "opencl", 0},
};
static const Word syncs[] = {{0, "producer_synced", 0}, {1, "event", 0}, {2, "consumer_stream", 0}};
static const Word classes[] = {{0, "standard", 0}, {1, "host_pinned", 0}, {2, "unified", 0}, {3, "peer", 0}};
static const Word formats[] = {
    {HURRAY_FORMAT_HRRY, "hrry", 0}, {HURRAY_FORMAT_STREAM, "stream", 0}, {HURRAY_FORMAT_SAFETENSORS, "safetensors", 0},
    {HURRAY_FORMAT_GGUF, "gguf", 0}, {HURRAY_FORMAT_NPZ, "npz", 0},       {HURRAY_FORMAT_NPY, "npy", 0},
};
static const Word kinds[] = {
    {HURRAY_KV_STRING, "string", 0}, {HURRAY_KV_INT64, "int64", 0}, {HURRAY_KV_UINT64, "uint64", 0}, {HURRAY_KV_FLOAT64, "float64", 0},
    {HURRAY_KV_BOOL, "bool", 0},     {HURRAY_KV_BYTES, "bytes", 0}, {HURRAY_KV_ARRAY, "array", 0},
};

#define FIND(table, value, otherwise) find_word(table, sizeof table / sizeof *table, value, otherwise)

static const char *find_word(const Word *table, size_t count, uint32_t value, const char *otherwise) {
    for (size_t i = 0; i < count; i++)
        if (table[i].value == value) return table[i].text;
    return otherwise;
}

const char *type_word(uint8_t tag) { return FIND(types, tag, "private"); }
const char *layout_word(uint8_t tag) { return FIND(layouts, tag, "private"); }
const char *device_word(uint8_t tag) { return FIND(devices, tag, "private"); }
const char *sync_word(uint8_t mode) { return FIND(syncs, mode, "?"); }
const char *memory_class_word(uint8_t memory_class) { return FIND(classes, memory_class, "private"); }
const char *format_word(uint32_t format) { return FIND(formats, format, "unknown"); }
const char *kv_kind_word(uint32_t kind) { return FIND(kinds, kind, "unknown"); }

uint8_t type_tag_of(const char *word) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].text, word) == 0) return (uint8_t)types[i].value;
    return 0;
}

uint32_t type_bits(uint8_t tag) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].value == tag) return types[i].bits;
    return 0;
}

/* Texts for messages: the last eight stay valid. */
static char *next_text(size_t *size) {
    static char ring[8][24];
    static unsigned next;
    *size = sizeof ring[0];
    return ring[next++ % 8];
}

const char *bytes_word(uint64_t bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t size;
    char *text = next_text(&size);
    double value = (double)bytes;
    unsigned unit = 0;
    while (value >= 999.5 && unit < 5) {
        value /= 1000;
        unit++;
    }
    snprintf(text, size, unit == 0 || value >= 99.95 ? "%.0f %s" : value >= 9.995 ? "%.1f %s" : "%.2f %s", value, units[unit]);
    return text;
}

const char *binary_word(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t size;
    char *text = next_text(&size);
    unsigned unit = 0;
    while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, size, "%llu %s", (unsigned long long)bytes, units[unit]);
    return text;
}

const char *seconds_word(double seconds) {
    size_t size;
    char *text = next_text(&size);
    if (seconds < 0.9995)
        snprintf(text, size, seconds < 0.00995 ? "%.2f ms" : "%.0f ms", seconds * 1e3);
    else
        snprintf(text, size, "%.2f s", seconds);
    return text;
}

/* What East Asian scripts and pictures take two columns for; combining marks take none. */
static unsigned columns_of(uint32_t c) {
    static const uint32_t wide[][2] = {{0x1100, 0x115F}, {0x2E80, 0x303E}, {0x3041, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
                                       {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
    if (c >= 0x300 && c <= 0x36F) return 0;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (c >= wide[i][0] && c <= wide[i][1]) return 2;
    return 1;
}

size_t text_width(const char *text) {
    size_t width = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        unsigned more = *at < 0xC0 ? 0 : *at < 0xE0 ? 1 : *at < 0xF0 ? 2 : 3;
        uint32_t c = more ? *at & (0x3Fu >> more) : *at;
        at++;
        for (; more && (*at & 0xC0) == 0x80; more--) c = c << 6 | (*at++ & 0x3F);
        width += columns_of(c);
    }
    return width;
}

bool parse_bytes(const char *text, uint64_t *out) {
    char *end = NULL;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno) return false;
    unsigned shift = 0;
    switch (*end) {
    case 'k':
    case 'K': shift = 10; break;
    case 'm':
    case 'M': shift = 20; break;
    case 'g':
    case 'G': shift = 30; break;
    case 't':
    case 'T': shift = 40; break;
    default: break;
    }
    if (shift) end++;
    if (*end == 'i') end++;
    if (*end == 'B') end++;
    if (*end || value > (UINT64_MAX >> shift)) return false;
    *out = (uint64_t)value << shift;
    return true;
}

bool parse_number(const char *text, uint64_t max, uint64_t *out) {
    char *end = NULL;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || value > max) return false;
    *out = value;
    return true;
}

/* Bytes of the well-formed UTF-8 sequence at text, or 0. */
static size_t sequence(const unsigned char *text, size_t len) {
    unsigned char c = text[0];
    if (c < 0x80) return 1;
    size_t n = c >= 0xC2 && c <= 0xDF ? 2 : (c & 0xF0) == 0xE0 ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
    if (n == 0 || n > len) return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    if ((c == 0xE0 && text[1] < 0xA0) || (c == 0xED && text[1] >= 0xA0) || (c == 0xF0 && text[1] < 0x90) || (c == 0xF4 && text[1] >= 0x90))
        return 0;
    return n;
}

bool text_is_utf8(const void *text, size_t len) {
    const unsigned char *bytes = text;
    for (size_t at = 0; at < len;) {
        size_t n = sequence(bytes + at, len - at);
        if (n == 0) return false;
        at += n;
    }
    return true;
}

/* The same, 0 too for what a terminal would not show as it is. */
static size_t printable(const unsigned char *text, size_t len) {
    unsigned char c = text[0];
    size_t n = sequence(text, len);
    if (c < 0x80) return c >= 0x20 && c != 0x7F && c != '\\' ? 1 : 0;
    if (n == 0) return 0;
    if (c == 0xC2 && text[1] < 0xA0) return 0;                                        /* C1 controls */
    if (c == 0xE2 && text[1] == 0x80 && text[2] >= 0x8B && text[2] <= 0x8F) return 0; /* zero width, marks */
    if (c == 0xE2 && text[1] == 0x80 && text[2] >= 0xA8 && text[2] <= 0xAE) return 0; /* line separators, bidi */
    if (c == 0xE2 && text[1] == 0x81 && text[2] >= 0xA6 && text[2] <= 0xA9) return 0; /* bidi isolates */
    return n;
}

char *escape_text(const void *text, size_t len) {
    const unsigned char *bytes = text;
    char *out = len < SIZE_MAX / 4 ? malloc(len * 4 + 1) : NULL;
    size_t used = 0;
    if (!out) return NULL;
    for (size_t at = 0; at < len;) {
        size_t n = printable(bytes + at, len - at);
        if (n) {
            memcpy(out + used, bytes + at, n);
            used += n;
            at += n;
        } else if (bytes[at] == '\\') {
            out[used++] = '\\';
            out[used++] = '\\';
            at++;
        } else {
            used += (size_t)sprintf(out + used, "\\x%02x", bytes[at++]);
        }
    }
    out[used] = 0;
    return out;
}

void print_text(FILE *to, const void *text, size_t len) {
    char *escaped = escape_text(text, len);
    if (escaped) fputs(escaped, to);
    free(escaped);
}
