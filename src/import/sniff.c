#include "import/sniff.h"

#include <string.h>
#include <strings.h>

#include "base/endian.h"
#include "driver/transport_call.h"
#include "hurray/import.h"
#include "import/json.h"
#include "import/npz.h"

#define HEAD_SIZE 512u /* reaches behind the magic of a tar header */

typedef struct Sniff {
    const HurrayTransport *transport;
    uint64_t size;
    uint8_t head[HEAD_SIZE];
    size_t have;
} Sniff;

/* Offset of the first byte in [from, to) that is no white space; to when there is none. */
static HurrayStatus first_visible(const Sniff *s, uint64_t from, uint64_t to, uint64_t *at, HurrayError *error) {
    uint8_t piece[4096];
    if (to > s->size) to = s->size;
    while (from < to && from < s->have) {
        if (!hry_json_is_space(s->head[from])) {
            *at = from;
            return HURRAY_OK;
        }
        from++;
    }
    while (from < to) {
        size_t len = to - from < sizeof piece ? (size_t)(to - from) : sizeof piece;
        HurrayStatus status = hry_transport_read_exactly(s->transport, from, piece, len, error);
        if (status != HURRAY_OK) return status;
        for (size_t i = 0; i < len; i++) {
            if (hry_json_is_space(piece[i])) continue;
            *at = from + i;
            return HURRAY_OK;
        }
        from += len;
    }
    *at = to;
    return HURRAY_OK;
}

/* Does `text` stand at `at`, in any case? */
static HurrayStatus stands_at(const Sniff *s, uint64_t at, const char *text, bool *yes, HurrayError *error) {
    char piece[32] = "";
    size_t len = strlen(text);
    *yes = false;
    if (at > s->size || s->size - at < len) return HURRAY_OK;
    HurrayStatus status = hry_transport_read_exactly(s->transport, at, piece, len, error);
    if (status == HURRAY_OK) *yes = strncasecmp(piece, text, len) == 0;
    return status;
}

static HurrayStatus looks_like_safetensors(const Sniff *s, bool *yes, HurrayError *error) {
    uint64_t n = hry_load_u64(s->head), at = 0;
    uint8_t found = 0;
    *yes = false;
    if (n > HRY_JSON_MAX_BYTES || n > s->size - 8) return HURRAY_OK;
    uint64_t end = 8 + (n ? n : 1);
    HurrayStatus status = first_visible(s, 8, end, &at, error);
    if (status != HURRAY_OK || at >= end || at >= s->size) return status;
    status = hry_transport_read_exactly(s->transport, at, &found, 1, error);
    *yes = found == '{';
    return status;
}

typedef struct IndexSearch {
    bool is_key, found;
} IndexSearch;

static bool search_index(void *ctx, const HryJsonEvent *event) {
    IndexSearch *search = ctx;
    if (event->depth == 1 && event->kind == HRY_JSON_KEY) search->is_key = event->len == 10 && memcmp(event->text, "weight_map", 10) == 0;
    if (event->depth == 1 && event->kind == HRY_JSON_MAP && search->is_key) search->found = true;
    return true;
}

static HurrayStatus sniff_json(const Sniff *s, const HurrayAllocator *allocator, uint32_t *format, HurrayError *error) {
    if (s->size > HRY_JSON_MAX_BYTES)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, NULL, HRY_NO_OFFSET,
                        "the file seems to be JSON, but has %llu bytes; an index has at most %llu", (unsigned long long)s->size,
                        (unsigned long long)HRY_JSON_MAX_BYTES);
    uint8_t *text = hry_alloc_raw(allocator, (size_t)s->size);
    if (!text) return hry_fail_memory(error, "an index file", s->size);
    IndexSearch search = {false, false};
    HurrayStatus status = hry_transport_read_exactly(s->transport, 0, text, (size_t)s->size, error);
    if (status == HURRAY_OK) status = hry_json_parse(text, (size_t)s->size, 0, "index", search_index, &search, allocator, error);
    hry_free(allocator, text, (size_t)s->size);
    if (status != HURRAY_OK) return status;
    if (!search.found)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, NULL, HRY_NO_OFFSET,
                        "a JSON file without an object `weight_map`, so no safetensors index; open the model's weights instead");
    *format = HRY_FORMAT_INDEX;
    return HURRAY_OK;
}

static bool begins(const Sniff *s, size_t at, const void *magic, size_t len) {
    return s->have >= at + len && memcmp(s->head + at, magic, len) == 0;
}

static HurrayStatus refuse(HurrayError *error, const char *what, const char *advice) {
    return hry_fail(error, HURRAY_ERR_UNSUPPORTED, NULL, 0, "the file is %s; %s", what, advice);
}

/* Kinds that people take for models. */
static const struct {
    const char *magic;
    size_t len;
    const char *what, *advice;
} kinds[] = {
    {"version https://git-lfs", 23, "a Git LFS pointer, not the object", "fetch the object with `git lfs pull`"},
    {"\x1F\x8B", 2, "gzip data", "unpack it, or pipe a stream into `hurray stream read`"},
    {"\x28\xB5\x2F\xFD", 4, "zstd data", "unpack it first"},
    {"BZh", 3, "bzip2 data", "unpack it first"},
    {"\xFD"
     "7zXZ",
     6, "xz data", "unpack it first"},
    {"7z\xBC\xAF\x27\x1C", 6, "a 7z archive", "unpack it first"},
    {"Rar!\x1A\x07", 6, "a RAR archive", "unpack it first"},
    {"\x89HDF", 4, "an HDF5 file", "convert it to safetensors or NPZ"},
    {"lmgg", 4, "a GGML model older than GGUF", "convert it to GGUF"},
    {"fmgg", 4, "a GGML model older than GGUF", "convert it to GGUF"},
    {"tjgg", 4, "a GGML model older than GGUF", "convert it to GGUF"},
};

/* UNSUPPORTED: named; OK: none of them. */
static HurrayStatus refuse_known(const Sniff *s, uint64_t visible, HurrayError *error) {
    bool html = false;
    HurrayStatus status = stands_at(s, visible, "<!doctype html", &html, error);
    if (status == HURRAY_OK && !html) status = stands_at(s, visible, "<html", &html, error);
    if (status != HURRAY_OK) return status;
    if (html) return refuse(error, "an HTML page", "download the file itself, perhaps a login is needed");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (begins(s, 0, kinds[i].magic, kinds[i].len)) return refuse(error, kinds[i].what, kinds[i].advice);
    if (begins(s, 257, "ustar", 5)) return refuse(error, "a tar archive", "unpack it first");
    if (s->head[0] == 0x80 && s->head[1] >= 2 && s->head[1] <= 5)
        return refuse(error, "a Python pickle (a PyTorch checkpoint?), which is never run", "save it as safetensors");
    if (s->head[0] == 0x08 && s->head[2] == 0x12)
        return refuse(error, "an ONNX model, or looks so", "export its weights as safetensors or NPZ");
    return HURRAY_OK;
}

static bool ends_with(const char *name, const char *ending) {
    size_t n = name ? strlen(name) : 0, m = strlen(ending);
    return n >= m && strcasecmp(name + n - m, ending) == 0;
}

static HurrayStatus sniff_rest(const Sniff *s, const char *name, const HurrayAllocator *allocator, uint32_t *format, HurrayError *error) {
    uint64_t visible = 0;
    HurrayStatus status = first_visible(s, 0, HRY_JSON_MAX_BYTES, &visible, error);
    if (status == HURRAY_OK) status = refuse_known(s, visible, error);
    if (status != HURRAY_OK) return status;
    bool json = false;
    status = stands_at(s, visible, "{", &json, error);
    if (status != HURRAY_OK) return status;
    if (json) return sniff_json(s, allocator, format, error);
    if (ends_with(name, ".safetensors"))
        *format = HURRAY_FORMAT_SAFETENSORS;
    else if (ends_with(name, ".gguf"))
        *format = HURRAY_FORMAT_GGUF;
    else {
        char quoted[48];
        return hry_fail(error, HURRAY_ERR_INVALID_MAGIC, NULL, 0,
                        "the file begins with `%s`, which is none of .hrry, Hurray stream, safetensors, GGUF, NPZ, NPY; "
                        "save the weights as one of these",
                        hry_escape(quoted, sizeof quoted, s->head, 8));
    }
    return HURRAY_OK;
}

HurrayStatus hry_sniff(const HurrayTransport *transport, uint64_t size, const char *name, const HurrayAllocator *allocator,
                       uint32_t *format, HurrayError *error) {
    Sniff s = {.transport = transport, .size = size, .have = size < HEAD_SIZE ? (size_t)size : HEAD_SIZE};
    if (size == 0) return hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, 0, "the file is empty (0 bytes); the download or copy did not begin");
    if (size < 8)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, 0, "the file has only %llu bytes, less than any model; incomplete download?",
                        (unsigned long long)size);
    HurrayStatus status = hry_transport_read_exactly(transport, 0, s.head, s.have, error);
    bool safetensors = false;
    if (status == HURRAY_OK) status = looks_like_safetensors(&s, &safetensors, error);
    if (status != HURRAY_OK) return status;
    if (safetensors)
        *format = HURRAY_FORMAT_SAFETENSORS;
    else if (begins(&s, 0, "HRRYFILE", 8))
        *format = HURRAY_FORMAT_HRRY;
    else if (begins(&s, 0, "HRRY", 4) && s.head[4] < 0x20)
        *format = HURRAY_FORMAT_STREAM; /* another version is the reader's to refuse */
    else if (begins(&s, 0, "GGUF", 4))
        *format = HURRAY_FORMAT_GGUF;
    else if (begins(&s, 0, "\x93NUMPY", 6))
        *format = HURRAY_FORMAT_NPY;
    else if (begins(&s, 0, "PK\3\4", 4) || begins(&s, 0, "PK\5\6", 4)) {
        status = hry_npz_probe(transport, size, allocator, error);
        if (status == HURRAY_OK) *format = HURRAY_FORMAT_NPZ;
    } else {
        status = sniff_rest(&s, name, allocator, format, error);
    }
    return status;
}

HurrayStatus hurray_sniff(const HurrayTransport *transport, uint32_t *format, HurrayError *error) {
    HurrayError own;
    hry_error_clear(&own);
    if (!transport || !format) {
        hry_fail(&own, HURRAY_ERR_NULL_POINTER, !transport ? "transport" : "format", HRY_NO_OFFSET,
                 "hurray_sniff needs a transport and a result");
        return hry_error_export(error, &own);
    }
    HurrayTransport resolved;
    HurrayAllocator allocator = hry_alloc_default();
    uint64_t size = 0;
    uint32_t found = HURRAY_FORMAT_UNKNOWN;
    HurrayStatus status = hry_transport_resolve(transport, HRY_TRANSPORT_NEEDS_READ_AT, &resolved, &own);
    if (status == HURRAY_OK) status = hry_transport_size(&resolved, &size, &own);
    if (status == HURRAY_OK) status = hry_sniff(&resolved, size, NULL, &allocator, &found, &own);
    if (status != HURRAY_OK) return hry_error_export(error, &own);
    *format = found == HRY_FORMAT_INDEX ? HURRAY_FORMAT_SAFETENSORS : found;
    return HURRAY_OK;
}
