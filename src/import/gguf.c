#include "import/gguf.h"

#include <string.h>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "driver/transport_call.h"
#include "format/ggml.h"
#include "import/gguf_read.h"

#define FIXED_HEADER 24u
#define LEAST_KV 14u     /* a key of one byte, its kind, a value of one byte */
#define LEAST_TENSOR 24u /* an empty name, no dimension */
#define MAX_DIMS 4u

typedef struct Plain {
    uint32_t number;
    uint8_t tag, bytes;
} Plain;

static const Plain plain_types[] = {
    {0, HURRAY_TYPE_FLOAT32, 4}, {1, HURRAY_TYPE_FLOAT16, 2}, {30, HURRAY_TYPE_BFLOAT16, 2}, {24, HURRAY_TYPE_INT8, 1},
    {25, HURRAY_TYPE_INT16, 2},  {26, HURRAY_TYPE_INT32, 4},  {27, HURRAY_TYPE_INT64, 8},    {28, HURRAY_TYPE_FLOAT64, 8},
};

typedef struct Gguf {
    HryGgufReader reader;
    const HryLimits *limits;
    HryGgufSplit split;
    HryNames keys;
    uint64_t kv_count, tensor_count, alignment, next; /* next: offset that the next tensor must have */
} Gguf;

static void key_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const HryCatalogue *catalogue = ctx;
    *name = catalogue->kv[i].key;
    *len = catalogue->kv[i].key_len;
}

static HurrayStatus read_fixed(Gguf *g) {
    HryGgufReader *r = &g->reader;
    uint32_t magic = 0, version = 0;
    HurrayStatus status = hry_gguf_u32(r, &magic, "magic");
    if (status == HURRAY_OK && magic != 0x46554747)
        return hry_fail(r->error, HURRAY_ERR_INVALID_MAGIC, "magic", 0, "the file does not begin with `GGUF`");
    if (status == HURRAY_OK) status = hry_gguf_u32(r, &version, "version");
    if (status != HURRAY_OK) return status;
    if ((version & 0xFFFF) == 0)
        return hry_fail(r->error, HURRAY_ERR_UNSUPPORTED, "version", 4,
                        "the file is big-endian (its version is stored in the other endianness); only little-endian GGUF is read");
    if (version != 2 && version != 3)
        return hry_fail(r->error, HURRAY_ERR_VERSION_MISMATCH, "version", 4, "GGUF version %u; versions 2 and 3 are read",
                        (unsigned)version);
    status = hry_gguf_u64(r, &g->tensor_count, "tensor_count");
    if (status == HURRAY_OK) status = hry_gguf_u64(r, &g->kv_count, "kv_count");
    if (status != HURRAY_OK) return status;
    uint64_t rest = hry_gguf_rest(r);
    if (g->kv_count > rest / LEAST_KV || g->tensor_count > rest / LEAST_TENSOR)
        return hry_fail(r->error, HURRAY_ERR_INVALID_CONTAINER, g->kv_count > rest / LEAST_KV ? "kv_count" : "tensor_count", 8,
                        "%llu tensors and %llu metadata keys do not fit the %llu bytes of the file; incomplete download?", (unsigned long long)g->tensor_count,
                        (unsigned long long)g->kv_count, (unsigned long long)g->reader.size);
    return g->tensor_count ? hry_import_check_count(g->tensor_count - 1, g->limits, r->error) : HURRAY_OK;
}

static bool is_key(const HurrayKvEntry *entry, const char *text) {
    return entry->key_len == strlen(text) && memcmp(entry->key, text, entry->key_len) == 0;
}

static HurrayStatus note_known_key(Gguf *g, const HurrayKvEntry *entry, uint32_t kind) {
    const HurrayKvValue *value = &entry->value;
    if (is_key(entry, "general.alignment")) {
        uint64_t alignment = value->kind == HURRAY_KV_UINT64 ? value->u64 : 0;
        if (kind != 4)
            return hry_fail(g->reader.error, HURRAY_ERR_INVALID_KV, "general.alignment", g->reader.position,
                            "general.alignment has metadata kind %u, expected 4 (u32)", (unsigned)kind);
        if (!hry_is_pow2(alignment) || alignment < 8)
            return hry_fail(g->reader.error, HURRAY_ERR_INVALID_KV, "general.alignment", g->reader.position,
                            "general.alignment is %llu, expected a power of two of at least 8", (unsigned long long)alignment);
        g->alignment = alignment;
        return HURRAY_OK;
    }
    uint64_t *known = is_key(entry, "split.no")              ? &g->split.no
                      : is_key(entry, "split.count")         ? &g->split.count
                      : is_key(entry, "split.tensors.count") ? &g->split.tensors
                                                             : NULL;
    if (!known) return HURRAY_OK;
    bool fits = value->kind == HURRAY_KV_UINT64 || (value->kind == HURRAY_KV_INT64 && value->i64 >= 0);
    if (!fits || value->u64 == HURRAY_NONE) {
        hry_fail(g->reader.error, HURRAY_ERR_INVALID_KV, NULL, g->reader.position, "the value is no whole number from 0 on");
        hry_escape(g->reader.error->field, sizeof g->reader.error->field, entry->key, entry->key_len);
        return g->reader.error->code;
    }
    *known = value->u64;
    return HURRAY_OK;
}

static HurrayStatus read_kv(Gguf *g) {
    HryGgufReader *r = &g->reader;
    HurrayKvEntry entry = {0};
    const uint8_t *key = NULL;
    uint32_t kind = 0;
    uint64_t at = r->position;
    HurrayStatus status = hry_gguf_string(r, &key, &entry.key_len, "key");
    if (status != HURRAY_OK) return status;
    if (entry.key_len == 0) return hry_fail(r->error, HURRAY_ERR_INVALID_KV, "key", at, "a metadata key is empty");
    if (!hry_utf8_valid(key, entry.key_len, NULL))
        return hry_fail(r->error, HURRAY_ERR_INVALID_KV, "key", at, "a metadata key is not UTF-8");
    entry.key = key;
    status = hry_gguf_u32(r, &kind, "kind");
    if (status == HURRAY_OK) status = hry_gguf_value(r, kind, &entry.value);
    if (status != HURRAY_OK) {
        hry_escape(r->error->field, sizeof r->error->field, key, entry.key_len);
        return status;
    }
    status = hry_catalogue_add_kv(r->catalogue, &entry, r->error);
    if (status != HURRAY_OK) return status;
    switch (hry_names_add(&g->keys, r->catalogue->kv_count - 1, NULL)) {
    case HRY_NAMES_ADDED: return note_known_key(g, &entry, kind);
    case HRY_NAMES_NO_MEMORY: return hry_fail_memory(r->error, "the metadata keys", 0);
    case HRY_NAMES_DUPLICATE: break;
    }
    char quoted[64];
    return hry_fail(r->error, HURRAY_ERR_INVALID_KV, "key", at, "the metadata key `%s` stands twice",
                    hry_escape(quoted, sizeof quoted, key, entry.key_len));
}

static HurrayStatus fail_type(uint32_t number, uint64_t at, HurrayError *error) {
    static const uint8_t removed[] = {4, 5, 31, 32, 33, 36, 37, 38};
    bool gone = false;
    for (size_t i = 0; i < sizeof removed; i++) gone = gone || removed[i] == number;
    return hry_fail(error, HURRAY_ERR_INVALID_TYPE, "type", at,
                    "type %u %s; its size is not known, so neither is where the tensors behind it lie", (unsigned)number,
                    gone ? "was removed from GGML" : "is unknown");
}

typedef struct Info {
    const uint8_t *name;
    size_t name_len;
    uint32_t rank, type;
    uint64_t dims[MAX_DIMS], offset; /* dims: innermost first, as in the file */
    uint64_t at;                     /* of the name in the file */
} Info;

static HurrayStatus read_info(HryGgufReader *r, Info *info) {
    info->at = r->position;
    HurrayStatus status = hry_gguf_string(r, &info->name, &info->name_len, "name");
    if (status != HURRAY_OK) return status;
    if (info->name_len > UINT32_MAX || !hry_utf8_valid(info->name, info->name_len, NULL))
        return hry_fail(r->error, HURRAY_ERR_INVALID_NAME, "name", info->at, "a tensor's name is not UTF-8");
    status = hry_gguf_u32(r, &info->rank, "n_dims");
    if (status == HURRAY_OK && info->rank > MAX_DIMS)
        status = hry_fail(r->error, HURRAY_ERR_INVALID_CONTAINER, "n_dims", r->position - 4,
                          "the tensor has %u dimensions; GGUF has at most %u", (unsigned)info->rank, MAX_DIMS);
    for (uint32_t k = 0; k < info->rank && status == HURRAY_OK; k++) {
        status = hry_gguf_u64(r, &info->dims[k], "dimension");
        if (status == HURRAY_OK && info->dims[k] >> 63)
            status = hry_fail(r->error, HURRAY_ERR_INVALID_CONTAINER, "dimension", r->position - 8,
                              "dimension %u is %llu; dimensions are below 2^63", (unsigned)k, (unsigned long long)info->dims[k]);
    }
    if (status == HURRAY_OK) status = hry_gguf_u32(r, &info->type, "type");
    if (status == HURRAY_OK) status = hry_gguf_u64(r, &info->offset, "offset");
    return status;
}

/* Type and bytes of a tensor, as a descriptor says them. */
static HurrayStatus describe(const Info *info, HryImported *out, uint8_t block[HRY_GGML_LAYOUT_DATA], HurrayError *error) {
    const HryGgmlType *type = hry_ggml_find(info->type);
    uint64_t elements = 0, row = info->rank ? info->dims[0] : 1;
    bool fits = hry_product_u64(info->dims, info->rank, &elements) && elements >> 63 == 0;
    out->layout_tag = HURRAY_LAYOUT_ROW_MAJOR;
    for (size_t i = 0; i < sizeof plain_types / sizeof *plain_types; i++)
        if (plain_types[i].number == info->type) {
            out->element_type = plain_types[i].tag;
            fits = fits && hry_mul_u64(elements, plain_types[i].bytes, &out->byte_size);
        }
    if (!out->element_type) {
        if (!type) return fail_type(info->type, info->at, error);
        if (row % type->block_elements)
            return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "dimension", info->at,
                            "a row has %llu elements, no multiple of the %u in a block of %s", (unsigned long long)row,
                            (unsigned)type->block_elements, type->name);
        fits = fits && hry_mul_u64(elements / type->block_elements, type->block_bytes, &out->byte_size);
        hry_store_u32(block, type->number);
        hry_store_u32(block + 4, type->block_elements);
        hry_store_u32(block + 8, type->block_bytes);
        out->element_type = HURRAY_TYPE_FLOAT32;
        out->layout_tag = HRY_GGML_LAYOUT_TAG;
        out->private_id = HRY_GGML_LAYOUT_ID;
        out->private_data = block;
        out->private_len = HRY_GGML_LAYOUT_DATA;
    }
    if (fits) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "dimension", info->at, "the tensor has 2^63 or more elements or bytes");
}

/* Offsets leave no hole: each is the sum of the padded sizes before it. */
static HurrayStatus check_offset(Gguf *g, const Info *info, uint64_t bytes) {
    HurrayError *error = g->reader.error;
    uint64_t end;
    if (info->offset != g->next)
        return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "offset", info->at,
                        "offset %llu, expected %llu, the padded end of the tensor before it", (unsigned long long)info->offset,
                        (unsigned long long)g->next);
    if (!hry_add_u64(g->next, bytes, &end) || !hry_align_up(end, g->alignment, &g->next))
        return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "offset", info->at,
                        "the tensor's %llu bytes and their padding do not fit 64 bits", (unsigned long long)bytes);
    return HURRAY_OK;
}

static HurrayStatus read_tensor(Gguf *g) {
    HryGgufReader *r = &g->reader;
    Info info = {0};
    HryImported imported = {0};
    uint8_t block[HRY_GGML_LAYOUT_DATA];
    uint64_t shape[MAX_DIMS];
    HurrayStatus status = read_info(r, &info);
    if (status == HURRAY_OK) status = describe(&info, &imported, block, r->error);
    if (status == HURRAY_OK) status = check_offset(g, &info, imported.byte_size);
    HryEntry entry = {.name = info.name,
                      .name_len = (uint32_t)info.name_len,
                      .descriptor_offset = HURRAY_NONE,
                      .data_offset = info.offset,
                      .data_length = imported.byte_size};
    imported.rank = info.rank;
    imported.shape = shape;
    for (uint32_t k = 0; k < info.rank && status == HURRAY_OK; k++) shape[k] = info.dims[info.rank - 1 - k];
    if (status == HURRAY_OK) status = hry_import_describe(&imported, &g->reader.catalogue->allocator, &entry.descriptor, r->error);
    if (status == HURRAY_OK) status = hry_catalogue_add(r->catalogue, &entry, r->error);
    if (status != HURRAY_OK) {
        hry_descriptor_unref(entry.descriptor);
        if (info.name) hry_error_set_tensor(r->error, info.name, info.name_len, r->catalogue->entry_count);
    }
    return status;
}

static HurrayStatus check_joined(const Gguf *g, uint64_t at) {
    uint8_t magic[4] = {0};
    if (!hry_range_inside(at, sizeof magic, g->reader.size)) return HURRAY_OK;
    HurrayStatus status = hry_transport_read_exactly(g->reader.transport, at, magic, sizeof magic, g->reader.error);
    if (status != HURRAY_OK || memcmp(magic, "GGUF", 4) != 0) return status;
    return hry_fail(g->reader.error, HURRAY_ERR_INVALID_CONTAINER, NULL, at,
                    "another GGUF file begins at offset %llu: two files joined; parts of a split set stay apart", (unsigned long long)at);
}

/* The offsets become places in the file. */
static HurrayStatus place_tensors(Gguf *g) {
    HryCatalogue *catalogue = g->reader.catalogue;
    HurrayError *error = g->reader.error;
    uint64_t size = g->reader.size, start = g->reader.position, end = start, padded;
    if (catalogue->entry_count && (!hry_align_up(start, g->alignment, &start) || start > size))
        return hry_fail(error, HURRAY_ERR_TRUNCATED, "general.alignment", size,
                        "the data would begin at the next multiple of %llu, behind the end of the file (%llu bytes); incomplete download?",
                        (unsigned long long)g->alignment, (unsigned long long)size);
    for (size_t i = 0; i < catalogue->entry_count; i++) {
        HryEntry *entry = &catalogue->entries[i];
        bool fits =
            hry_add_u64(start, entry->data_offset, &entry->data_offset) && hry_add_u64(entry->data_offset, entry->data_length, &end);
        if (fits && end <= size) continue;
        hry_fail(error, HURRAY_ERR_TRUNCATED, "offset", size,
                 "%s%llu bytes of the tensor's data are missing at the end of the file; incomplete download?", fits ? "" : "more than ",
                 (unsigned long long)(fits ? end - size : UINT64_MAX - size));
        hry_error_set_tensor(error, entry->name, entry->name_len, i);
        return error->code;
    }
    if (!hry_align_up(end, g->alignment, &padded) || !catalogue->entry_count) padded = end;
    HurrayStatus status = check_joined(g, end);
    if (status == HURRAY_OK) status = check_joined(g, padded);
    if (status != HURRAY_OK || padded >= size) return status;
    HurrayError note;
    hry_fail(&note, HURRAY_OK, NULL, padded, "%llu bytes after the last tensor belong to nothing", (unsigned long long)(size - padded));
    return hry_catalogue_add_note(catalogue, &note, error);
}

static HurrayStatus fill(Gguf *g) {
    HryGgufReader *r = &g->reader;
    HurrayStatus status = read_fixed(g);
    if (status != HURRAY_OK) return status;
    if (!hry_names_init(&g->keys, &r->catalogue->allocator, 0, key_at, r->catalogue))
        return hry_fail_memory(r->error, "the metadata keys", 0);
    r->budget = g->limits->max_kv_bytes;
    for (uint64_t i = 0; i < g->kv_count && status == HURRAY_OK; i++) status = read_kv(g);
    r->budget = g->limits->max_index_bytes;
    for (uint64_t i = 0; i < g->tensor_count && status == HURRAY_OK; i++) status = read_tensor(g);
    if (status == HURRAY_OK) status = hry_import_index_names(r->catalogue, "header", r->error);
    return status == HURRAY_OK ? place_tensors(g) : status;
}

HurrayStatus hry_gguf_open(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                           HryCatalogue **out, HryGgufSplit *split, HurrayError *error) {
    Gguf g;
    memset(&g, 0, sizeof g);
    if (size < FIXED_HEADER)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, "header", size,
                        "the file has %llu bytes, a GGUF header needs %u; incomplete download?", (unsigned long long)size, FIXED_HEADER);
    g.limits = limits;
    g.alignment = 32;
    g.split.no = g.split.count = g.split.tensors = HURRAY_NONE;
    g.reader.transport = transport;
    g.reader.size = size;
    g.reader.error = error;
    g.reader.buffer = hry_alloc_raw(allocator, HRY_GGUF_BUFFER);
    if (!g.reader.buffer) return hry_fail_memory(error, "reading a header", HRY_GGUF_BUFFER);
    HurrayStatus status = hry_import_catalogue(HURRAY_FORMAT_GGUF, size, allocator, &g.reader.catalogue, error);
    if (status == HURRAY_OK) {
        g.reader.arena = hry_arena(g.reader.catalogue);
        status = fill(&g);
    }
    hry_names_clear(&g.keys);
    hry_free(allocator, g.reader.buffer, HRY_GGUF_BUFFER);
    if (status != HURRAY_OK) {
        hry_catalogue_unref(g.reader.catalogue);
        return status;
    }
    *out = g.reader.catalogue;
    *split = g.split;
    return HURRAY_OK;
}

HurrayStatus hry_import_gguf(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                             HryCatalogue **out, HurrayError *error) {
    HryGgufSplit split;
    return hry_gguf_open(transport, size, limits, allocator, out, &split, error);
}
