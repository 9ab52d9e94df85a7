#include "format/verify_part.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/names.h"
#include "format/paged.h"

static uint64_t entry(const HryBytes *range, uint64_t i) { return hry_load_u64(range->data + 8 * i); }

/* ---- COO ---- */

typedef struct Tuples {
    const uint8_t *data;
    size_t size; /* bytes of one */
} Tuples;

static void tuple_at(const void *ctx, uint64_t i, const uint8_t **name, size_t *len) {
    const Tuples *tuples = ctx;
    *name = tuples->data + i * tuples->size;
    *len = tuples->size;
}

/* Is tuple i after tuple i - 1, dimension 0 first? */
static bool rises(const HryBytes *indices, uint32_t rank, uint64_t i) {
    for (uint32_t k = 0; k < rank; k++) {
        uint64_t before = entry(indices, (i - 1) * rank + k), here = entry(indices, i * rank + k);
        if (before != here) return before < here;
    }
    return false;
}

static HurrayStatus find_duplicate(const HryVerify *verify) {
    const HurrayDescriptor *d = verify->descriptor;
    Tuples tuples = {verify->ranges[1].data, 8 * (size_t)d->rank};
    HryNames names;
    HurrayStatus status = HURRAY_OK;
    uint64_t other;
    if (d->layout.nnz >= UINT32_MAX)
        return hry_fail(verify->error, HURRAY_ERR_LIMIT, "nnz", HRY_NO_OFFSET,
                        "%llu stored elements that are not sorted: duplicates are looked for among at most %u",
                        (unsigned long long)d->layout.nnz, UINT32_MAX - 1);
    if (!hry_names_init(&names, verify->allocator, d->layout.nnz, tuple_at, &tuples))
        return hry_fail_memory(verify->error, "finding duplicate coordinates", d->layout.nnz * sizeof(uint64_t));
    for (uint64_t i = 0; i < d->layout.nnz && status == HURRAY_OK; i++) {
        HryNamesAdd added = hry_names_add(&names, i, &other);
        if (added == HRY_NAMES_ADDED) continue;
        if (added == HRY_NAMES_DUPLICATE)
            status = hry_verify_report(verify, 1, "indices", i * tuples.size, "stored elements %llu and %llu have the same coordinates",
                                       (unsigned long long)other, (unsigned long long)i);
        else
            status = hry_fail_memory(verify->error, "finding duplicate coordinates", d->layout.nnz * sizeof(uint64_t));
        break;
    }
    hry_names_clear(&names);
    return status;
}

static HurrayStatus verify_coo(const HryVerify *verify) {
    const HurrayDescriptor *d = verify->descriptor;
    const HryBytes *indices = &verify->ranges[1];
    HurrayStatus status = HURRAY_OK;
    for (uint64_t i = 0; i < d->layout.nnz * d->rank; i++) {
        uint32_t k = (uint32_t)(i % d->rank);
        if (d->shape[k] == HURRAY_DYNAMIC_DIMENSION || entry(indices, i) < d->shape[k]) continue;
        status =
            hry_verify_report(verify, 1, "indices", 8 * i, "stored element %llu has coordinate %llu in dimension %u of %llu",
                              (unsigned long long)(i / d->rank), (unsigned long long)entry(indices, i), k, (unsigned long long)d->shape[k]);
        break;
    }
    uint64_t i = 1;
    while (i < d->layout.nnz && rises(indices, d->rank, i)) i++;
    if (status != HURRAY_OK || i >= d->layout.nnz) return status; /* strictly rising: no duplicates either */
    if (!d->layout.is_sorted) return find_duplicate(verify);
    return hry_verify_report(verify, 1, "indices", i * d->rank * 8,
                             "stored element %llu does not come after the one before it although the tensor says it is sorted",
                             (unsigned long long)i);
}

/* ---- pointers and the coordinates they lead to, for CSR, CSC and each level of CSF ---- */

typedef struct Level {
    uint32_t pointer_buffer, index_buffer;
    const char *pointer_name, *index_name;
    uint64_t parents, children; /* pointers: parents + 1 entries, coordinates: children */
    uint64_t size;              /* of the coordinates' dimension; HURRAY_DYNAMIC_DIMENSION: any */
} Level;

/* 0, never falling, ending at children. *sound: all of that. */
static HurrayStatus verify_pointers(const HryVerify *verify, const Level *level, bool *sound) {
    const HryBytes *pointers = &verify->ranges[level->pointer_buffer];
    uint64_t before = 0;
    *sound = false;
    if (entry(pointers, 0) != 0)
        return hry_verify_report(verify, level->pointer_buffer, level->pointer_name, 0, "the first entry is %llu, expected 0",
                                 (unsigned long long)entry(pointers, 0));
    for (uint64_t i = 1; i <= level->parents; i++) {
        uint64_t here = entry(pointers, i);
        if (here < before)
            return hry_verify_report(verify, level->pointer_buffer, level->pointer_name, 8 * i, "falls from %llu to %llu at entry %llu",
                                     (unsigned long long)before, (unsigned long long)here, (unsigned long long)i);
        before = here;
    }
    if (before != level->children)
        return hry_verify_report(verify, level->pointer_buffer, level->pointer_name, 8 * level->parents, "ends at %llu, expected %llu",
                                 (unsigned long long)before, (unsigned long long)level->children);
    *sound = true;
    return HURRAY_OK;
}

static HurrayStatus verify_bounds(const HryVerify *verify, const Level *level) {
    const HryBytes *indices = &verify->ranges[level->index_buffer];
    if (level->size == HURRAY_DYNAMIC_DIMENSION) return HURRAY_OK;
    for (uint64_t i = 0; i < level->children; i++)
        if (entry(indices, i) >= level->size)
            return hry_verify_report(verify, level->index_buffer, level->index_name, 8 * i, "entry %llu is %llu, expected less than %llu",
                                     (unsigned long long)i, (unsigned long long)entry(indices, i), (unsigned long long)level->size);
    return HURRAY_OK;
}

/* Coordinates strictly rise under one parent. Needs sound pointers. */
static HurrayStatus verify_rising(const HryVerify *verify, const Level *level) {
    const HryBytes *pointers = &verify->ranges[level->pointer_buffer], *indices = &verify->ranges[level->index_buffer];
    uint64_t i = 0;
    for (uint64_t parent = 0; parent < level->parents; parent++) {
        uint64_t end = entry(pointers, parent + 1);
        for (uint64_t first = i; i < end; i++)
            if (i > first && entry(indices, i - 1) >= entry(indices, i))
                return hry_verify_report(verify, level->index_buffer, level->index_name, 8 * i,
                                         "entry %llu (%llu) does not come after the one before it (%llu)", (unsigned long long)i,
                                         (unsigned long long)entry(indices, i), (unsigned long long)entry(indices, i - 1));
    }
    return HURRAY_OK;
}

static HurrayStatus verify_level(const HryVerify *verify, const Level *level, bool *sound) {
    HurrayStatus status = verify_pointers(verify, level, sound);
    if (status == HURRAY_OK) status = verify_bounds(verify, level);
    if (status == HURRAY_OK && *sound) status = verify_rising(verify, level);
    return status;
}

static HurrayStatus verify_compressed(const HryVerify *verify) {
    const HurrayDescriptor *d = verify->descriptor;
    bool by_row = d->layout_tag == HURRAY_LAYOUT_CSR, sound;
    Level level = {.pointer_buffer = 2,
                   .index_buffer = 1,
                   .pointer_name = by_row ? "row_ptr" : "col_ptr",
                   .index_name = by_row ? "col_indices" : "row_indices",
                   .parents = d->shape[by_row ? 0 : 1],
                   .children = d->layout.nnz,
                   .size = d->shape[by_row ? 1 : 0]};
    if (level.parents == HURRAY_DYNAMIC_DIMENSION) return verify_bounds(verify, &level);
    return verify_level(verify, &level, &sound);
}

/* Level by level; how many nodes one has is what the pointers of the level say, as far as its buffers hold them. */
static HurrayStatus verify_csf(const HryVerify *verify) {
    const HurrayDescriptor *d = verify->descriptor;
    uint64_t parents = 1;
    for (uint32_t k = 0; k < d->rank; k++) {
        const HryBytes *pointers = &verify->ranges[1 + 2 * k], *indices = &verify->ranges[2 + 2 * k];
        bool sound, leaf = k + 1 == d->rank;
        if (parents >= pointers->size / 8)
            return hry_verify_report(verify, 1 + 2 * k, "pos", HRY_NO_OFFSET, "level %u has %llu pointers, expected %llu", k,
                                     (unsigned long long)(pointers->size / 8), (unsigned long long)parents + 1);
        Level level = {1 + 2 * k, 2 + 2 * k, "pos", "crd", parents, entry(pointers, parents), d->shape[d->layout.mode_order[k]]};
        if (level.children > indices->size / 8)
            return hry_verify_report(verify, 2 + 2 * k, "crd", HRY_NO_OFFSET, "level %u has %llu coordinates, its pointers lead to %llu", k,
                                     (unsigned long long)(indices->size / 8), (unsigned long long)level.children);
        HurrayStatus status = verify_level(verify, &level, &sound);
        if (status == HURRAY_OK && leaf && level.children != d->layout.nnz)
            status = hry_verify_report(verify, 1 + 2 * k, "pos", 8 * parents, "the last level ends at %llu, expected nnz %llu",
                                       (unsigned long long)level.children, (unsigned long long)d->layout.nnz);
        if (status != HURRAY_OK || !sound) return status; /* what unsound pointers lead to means nothing */
        parents = level.children;
    }
    return HURRAY_OK;
}

HurrayStatus hry_verify_sparse(const HryVerify *verify) {
    switch (verify->descriptor->layout_tag) {
    case HURRAY_LAYOUT_COO: return verify_coo(verify);
    case HURRAY_LAYOUT_CSF: return verify_csf(verify);
    default: return verify_compressed(verify);
    }
}

HurrayStatus hry_verify_paged(const HryVerify *verify) {
    const HurrayDescriptor *d = verify->descriptor;
    const HryBytes *table = &verify->ranges[1], *pointers = &verify->ranges[2];
    uint64_t width = d->layout.index_type ? 8 : 4, room = hry_paged_entries(d, table), before = 0;
    for (uint64_t i = 0; i <= d->layout.num_seqs; i++) {
        uint64_t here = hry_paged_entry(d, pointers, i);
        if (i == 0 && here != 0)
            return hry_verify_report(verify, 2, "seq_ptr", 0, "the first entry is %llu, expected 0", (unsigned long long)here);
        if (here < before)
            return hry_verify_report(verify, 2, "seq_ptr", i * width, "falls from %llu to %llu at entry %llu", (unsigned long long)before,
                                     (unsigned long long)here, (unsigned long long)i);
        before = here;
    }
    if (before > room)
        return hry_verify_report(verify, 2, "seq_ptr", d->layout.num_seqs * width, "ends at %llu, the block table has %llu entries",
                                 (unsigned long long)before, (unsigned long long)room);
    for (uint64_t i = 0; i < before; i++)
        if (hry_paged_entry(d, table, i) >= d->layout.num_pages)
            return hry_verify_report(verify, 1, "block_table", i * width, "entry %llu is page %llu, expected less than %llu",
                                     (unsigned long long)i, (unsigned long long)hry_paged_entry(d, table, i),
                                     (unsigned long long)d->layout.num_pages);
    return HURRAY_OK;
}
