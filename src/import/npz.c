#include "import/npz.h"

#include <string.h>

#include "base/checked.h"
#include "driver/transport_call.h"
#include "import/arena.h"
#include "import/common.h"
#include "import/npy.h"
#include "import/npz_inflate.h"
#include "import/zip.h"

typedef struct Archive {
    HryZip zip;
    HryCatalogue *catalogue;
    HryArena arena;
    uint8_t prefix[HRY_NPY_MAX_PREFIX];
} Archive;

static bool is_folder(const HryZipMember *member) {
    return member->name_len && member->name[member->name_len - 1] == '/' && member->packed == 0 && member->unpacked == 0;
}

/* A member's first bytes, as unpacked. inflate: NULL for stored members; continues where it stands. */
static HurrayStatus read_first(const HryZip *zip, const HryZipMember *member, HryInflate *inflate, uint64_t at, uint8_t *dst, size_t len,
                               HurrayError *error) {
    if (len == 0) return HURRAY_OK;
    if (inflate) return hry_inflate_read(inflate, dst, len, error);
    return hry_transport_read_exactly(zip->transport, member->data + at, dst, len, error);
}

/* Is it the fault of this member alone? */
static bool is_member_fault(HurrayStatus status) {
    return status == HURRAY_ERR_INVALID_MAGIC || status == HURRAY_ERR_TRUNCATED || status == HURRAY_ERR_VERSION_MISMATCH ||
           status == HURRAY_ERR_INVALID_CONTAINER || status == HURRAY_ERR_INVALID_TYPE || status == HURRAY_ERR_INVALID_DATA ||
           status == HURRAY_ERR_UNSUPPORTED || status == HURRAY_ERR_CHECKSUM || status == HURRAY_ERR_INVALID_LAYOUT;
}

static HurrayStatus check_sizes(const HryZipMember *member, HurrayError *error) {
    if (member->method == 0 && member->packed != member->unpacked)
        return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "size", member->local,
                        "the member is stored with %llu bytes, but its directory says %llu unpacked", (unsigned long long)member->packed,
                        (unsigned long long)member->unpacked);
    if (member->method == 8 && member->unpacked / 1032 > member->packed)
        return hry_fail(error, HURRAY_ERR_INVALID_CONTAINER, "size", member->local, "%llu packed bytes cannot become %llu bytes",
                        (unsigned long long)member->packed, (unsigned long long)member->unpacked);
    return HURRAY_OK;
}

static HurrayStatus read_prefix(Archive *archive, const HryZipMember *member, HryInflate *inflate, size_t *prefix, HurrayError *error) {
    size_t first = member->unpacked < HRY_NPY_FIRST ? (size_t)member->unpacked : HRY_NPY_FIRST;
    HurrayStatus status = read_first(&archive->zip, member, inflate, 0, archive->prefix, first, error);
    if (status == HURRAY_OK) status = hry_npy_prefix(archive->prefix, first, member->data, prefix, error);
    if (status != HURRAY_OK) return status;
    if (*prefix > member->unpacked)
        return hry_fail(error, HURRAY_ERR_TRUNCATED, "header", member->data, "the NPY header needs %zu bytes, the member has %llu", *prefix,
                        (unsigned long long)member->unpacked);
    size_t rest = *prefix > first ? *prefix - first : 0; /* an empty header of version 1.0 is shorter than what tells its length */
    return read_first(&archive->zip, member, inflate, first, archive->prefix + first, rest, error);
}

/* What the loader must know about the member's bytes. */
static HurrayStatus note_bytes(Archive *archive, const HryZipMember *member, const HryNpy *npy, size_t prefix, HryEntry *entry,
                               HurrayError *error) {
    bool inflated = member->method == 8;
    HryForeign foreign = {.bytes = inflated ? HRY_BYTES_INFLATE : npy->change,
                          .then = npy->change,
                          .unit = npy->unit,
                          .packed_offset = inflated ? member->data : member->data + prefix,
                          .packed_length = inflated ? member->packed : npy->bytes,
                          .unpacked_length = inflated ? member->unpacked : npy->bytes,
                          .skip = inflated ? prefix : 0,
                          .has_crc32 = true,
                          .crc32 = member->crc32,
                          .crc_prefix = inflated ? 0 : hry_crc32(0, archive->prefix, prefix)};
    entry->data_offset = foreign.packed_offset;
    entry->data_length = foreign.packed_length;
    if (npy->bytes == 0 && hry_crc32(0, archive->prefix, prefix) != member->crc32)
        return hry_fail(error, HURRAY_ERR_CHECKSUM, "CRC-32", member->data,
                        "the CRC-32 of the archive member is not what its directory says");
    return hry_catalogue_add_foreign(archive->catalogue, &foreign, &entry->side, error);
}

static HurrayStatus read_array(Archive *archive, const HryZipMember *member, HryEntry *entry, HurrayError *error) {
    HryInflate *inflate = NULL;
    HryNpy npy;
    size_t prefix = 0;
    HurrayStatus status = check_sizes(member, error);
    if (status == HURRAY_OK && member->method == 8)
        status = hry_inflate_open(archive->zip.transport, member->data, member->packed, member->unpacked, &archive->zip.allocator, &inflate,
                                  error);
    if (status == HURRAY_OK) status = read_prefix(archive, member, inflate, &prefix, error);
    hry_inflate_close(&inflate);
    if (status == HURRAY_OK) status = hry_npy_parse(archive->prefix, prefix, member->unpacked, member->data, &npy, error);
    if (status == HURRAY_OK) status = note_bytes(archive, member, &npy, prefix, entry, error);
    if (status == HURRAY_OK) status = hry_npy_describe(&npy, &archive->zip.allocator, &entry->descriptor, error);
    return status;
}

static HurrayStatus add_member(Archive *archive, const HryZipMember *member, HurrayError *error) {
    size_t len = member->name_len;
    if (len >= 4 && memcmp(member->name + len - 4, ".npy", 4) == 0) len -= 4;
    HryEntry entry = {.name = hry_arena_copy(&archive->arena, member->name, len),
                      .name_len = (uint32_t)len,
                      .descriptor_offset = HURRAY_NONE,
                      .data_offset = member->data,
                      .data_length = member->packed};
    if (!entry.name) return hry_fail_memory(error, "a name", len);
    HurrayStatus status = read_array(archive, member, &entry, error);
    if (status != HURRAY_OK) {
        entry.side = 0;
        hry_error_set_tensor(error, entry.name, entry.name_len, archive->catalogue->entry_count);
        if (!is_member_fault(status)) return status;
        HurrayError fault = *error;
        status = hry_catalogue_add_fault(archive->catalogue, &fault, &entry.fault, error);
        if (status != HURRAY_OK) return status;
    }
    status = hry_catalogue_add(archive->catalogue, &entry, error);
    if (status != HURRAY_OK) hry_descriptor_unref(entry.descriptor);
    return status;
}

static HurrayStatus fill(Archive *archive, const HryLimits *limits, HurrayError *error) {
    HurrayStatus status = HURRAY_OK;
    for (size_t i = 0; i < archive->zip.count && status == HURRAY_OK; i++)
        status = hry_zip_locate(&archive->zip, &archive->zip.members[i], error);
    if (status == HURRAY_OK) status = hry_zip_check_spans(&archive->zip, error);
    for (size_t i = 0; i < archive->zip.count && status == HURRAY_OK; i++) {
        if (is_folder(&archive->zip.members[i])) continue;
        status = hry_import_check_count(archive->catalogue->entry_count, limits, error);
        if (status == HURRAY_OK) status = add_member(archive, &archive->zip.members[i], error);
    }
    return status == HURRAY_OK ? hry_import_index_names(archive->catalogue, "archive", error) : status;
}

HurrayStatus hry_import_npz(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                            HryCatalogue **out, HurrayError *error) {
    Archive archive;
    archive.catalogue = NULL;
    HurrayStatus status = hry_zip_open(transport, size, limits->max_index_bytes, allocator, &archive.zip, error);
    if (status != HURRAY_OK) return status;
    status = hry_import_catalogue(HURRAY_FORMAT_NPZ, size, allocator, &archive.catalogue, error);
    if (status == HURRAY_OK) {
        archive.arena = hry_arena(archive.catalogue);
        status = fill(&archive, limits, error);
    }
    hry_zip_close(&archive.zip);
    if (status != HURRAY_OK) {
        hry_catalogue_unref(archive.catalogue);
        return status;
    }
    *out = archive.catalogue;
    return HURRAY_OK;
}

static HurrayStatus begins_as_array(const HryZip *zip, HryZipMember *member, bool *yes, HurrayError *error) {
    uint8_t magic[6];
    *yes = false;
    HurrayStatus status = hry_zip_locate(zip, member, error);
    if (status != HURRAY_OK || member->unpacked < sizeof magic || check_sizes(member, error) != HURRAY_OK) return status;
    HryInflate *inflate = NULL;
    if (member->method == 8) {
        status = hry_inflate_open(zip->transport, member->data, member->packed, member->unpacked, &zip->allocator, &inflate, error);
        if (status != HURRAY_OK) return status;
    }
    status = read_first(zip, member, inflate, 0, magic, sizeof magic, error);
    hry_inflate_close(&inflate);
    if (status == HURRAY_ERR_INVALID_DATA) return HURRAY_OK; /* damaged: no array, and not the archive's fault */
    *yes = status == HURRAY_OK && hry_npy_is_magic(magic, sizeof magic);
    return status;
}

static HurrayStatus probe(HryZip *zip, HurrayError *error) {
    bool arrays = zip->count == 0, pickle = false;
    for (size_t i = 0; i < zip->count && !arrays; i++) {
        HryZipMember *member = &zip->members[i];
        if (is_folder(member)) continue;
        HurrayStatus status = begins_as_array(zip, member, &arrays, error);
        if (status != HURRAY_OK) return status;
        if (member->name_len >= 8 && memcmp(member->name + member->name_len - 8, "data.pkl", 8) == 0) pickle = true;
    }
    if (arrays) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_UNSUPPORTED, NULL, 0, "the file is a zip archive%s; %s",
                    pickle ? ": a PyTorch checkpoint" : " without NPY arrays",
                    pickle ? "its pickle is never run, save it as safetensors" : "unpack it first");
}

HurrayStatus hry_npz_probe(const HurrayTransport *transport, uint64_t size, const HurrayAllocator *allocator, HurrayError *error) {
    HryZip zip;
    HurrayStatus status = hry_zip_open(transport, size, UINT64_MAX, allocator, &zip, error);
    if (status != HURRAY_OK) return status;
    status = probe(&zip, error);
    hry_zip_close(&zip);
    return status;
}
