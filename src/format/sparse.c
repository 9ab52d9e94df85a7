#include "format/sparse.h"

#include "base/checked.h"
#include "base/endian.h"

static uint64_t entry(const HryBytes *buffer, uint64_t i) { return hry_load_u64(buffer->data + 8 * i); }
static uint64_t entries(const HryBytes *buffer) { return buffer->size / 8; }

static HurrayStatus out_of_bounds(HurrayError *error, uint32_t buffer, const char *field, uint64_t coordinate, uint64_t size) {
    hry_fail(error, HURRAY_ERR_INVALID_DATA, field, HRY_NO_OFFSET,
             "coordinate %llu is outside its dimension of %llu; the sparse indices are damaged", (unsigned long long)coordinate,
             (unsigned long long)size);
    error->buffer_index = buffer;
    return HURRAY_ERR_INVALID_DATA;
}

static HurrayStatus bad_pointers(HurrayError *error, uint32_t buffer, const char *field, uint64_t from, uint64_t to, uint64_t end) {
    hry_fail(error, HURRAY_ERR_INVALID_DATA, field, HRY_NO_OFFSET,
             "entries %llu to %llu, expected a range that does not fall within %llu entries; the pointer array is damaged",
             (unsigned long long)from, (unsigned long long)to, (unsigned long long)end);
    error->buffer_index = buffer;
    return HURRAY_ERR_INVALID_DATA;
}

/* [pointers[k], pointers[k + 1]) inside `end` entries. The pointer array itself may be too short (CSF). */
static HurrayStatus range_of(const HryBytes *buffers, uint32_t buffer, const char *field, uint64_t k, uint64_t end, uint64_t *from,
                             uint64_t *to, HurrayError *error) {
    const HryBytes *pointers = &buffers[buffer];
    if (k >= entries(pointers) || entries(pointers) - k < 2) {
        hry_fail(error, HURRAY_ERR_INVALID_DATA, field, HRY_NO_OFFSET, "%llu entries, expected more than %llu; the array is too short",
                 (unsigned long long)entries(pointers), k == UINT64_MAX ? (unsigned long long)k : (unsigned long long)k + 1);
        error->buffer_index = buffer;
        return HURRAY_ERR_INVALID_DATA;
    }
    *from = entry(pointers, k);
    *to = entry(pointers, k + 1);
    return *from > *to || *to > end ? bad_pointers(error, buffer, field, *from, *to, end) : HURRAY_OK;
}

void hry_stored_open(HryStored *stored, const HurrayDescriptor *descriptor, const HryBytes *buffers) {
    stored->descriptor = descriptor;
    stored->buffers = buffers;
    stored->next = stored->outer = stored->outer_end = 0;
    stored->level = 0;
}

static HurrayStatus next_coo(HryStored *stored, uint64_t *index, uint64_t *position, HurrayError *error) {
    const HurrayDescriptor *d = stored->descriptor;
    if (stored->next >= d->layout.nnz) return HURRAY_END_OF_STREAM;
    const uint8_t *tuple = stored->buffers[1].data + stored->next * d->rank * 8;
    for (uint32_t k = 0; k < d->rank; k++) {
        index[k] = hry_load_u64(tuple + 8 * k);
        if (index[k] >= d->shape[k]) return out_of_bounds(error, 1, "indices", index[k], d->shape[k]);
    }
    *position = stored->next++;
    return HURRAY_OK;
}

/* Which dimension the pointers of CSR and CSC go along; the other one is in the index array. */
static uint32_t outer_dimension(const HurrayDescriptor *d) { return d->layout_tag == HURRAY_LAYOUT_CSR ? 0 : 1; }
static const char *pointer_name(const HurrayDescriptor *d) { return outer_dimension(d) == 0 ? "row_ptr" : "col_ptr"; }
static const char *index_name(const HurrayDescriptor *d) { return outer_dimension(d) == 0 ? "col_indices" : "row_indices"; }

static HurrayStatus next_compressed(HryStored *stored, uint64_t *index, uint64_t *position, HurrayError *error) {
    const HurrayDescriptor *d = stored->descriptor;
    uint32_t outer = outer_dimension(d), inner = 1 - outer;
    while (stored->next == stored->outer_end) {
        if (stored->outer == d->shape[outer]) return HURRAY_END_OF_STREAM;
        uint64_t from, to;
        HurrayStatus status = range_of(stored->buffers, 2, pointer_name(d), stored->outer, d->layout.nnz, &from, &to, error);
        if (status != HURRAY_OK) return status;
        stored->next = from;
        stored->outer_end = to;
        stored->outer++;
    }
    index[outer] = stored->outer - 1;
    index[inner] = entry(&stored->buffers[1], stored->next);
    if (index[inner] >= d->shape[inner]) return out_of_bounds(error, 1, index_name(d), index[inner], d->shape[inner]);
    *position = stored->next++;
    return HURRAY_OK;
}

/* Buffers of a CSF tensor: values, then pos and crd of each level. */
static uint32_t pos_buffer(uint32_t level) { return 1 + 2 * level; }
static uint32_t crd_buffer(uint32_t level) { return 2 + 2 * level; }

/* How many nodes of a level can exist: its coordinates, and at the leaves also the values. */
static uint64_t level_room(const HurrayDescriptor *d, const HryBytes *buffers, uint32_t level) {
    uint64_t room = entries(&buffers[crd_buffer(level)]);
    return level + 1 == d->rank && d->layout.nnz < room ? d->layout.nnz : room;
}

/* Depth first; a parent's children follow those of the parent before it, so every node is visited once. */
static HurrayStatus next_csf(HryStored *stored, uint64_t *index, uint64_t *position, HurrayError *error) {
    const HurrayDescriptor *d = stored->descriptor;
    uint32_t level; /* the level to open next, below the node before it */
    if (stored->level == 0) {
        if (stored->next) return HURRAY_END_OF_STREAM;
        stored->next = 1;
        level = 0;
    } else {
        level = d->rank;
        stored->node[level - 1]++;
    }
    for (;;) {
        if (level > 0 && stored->node[level - 1] == stored->node_end[level - 1]) { /* no more siblings here */
            if (--level == 0) {
                stored->level = 0;
                return HURRAY_END_OF_STREAM;
            }
            stored->node[level - 1]++;
            continue;
        }
        if (level > 0) {
            uint32_t dimension = d->layout.mode_order[level - 1];
            index[dimension] = entry(&stored->buffers[crd_buffer(level - 1)], stored->node[level - 1]);
            if (index[dimension] >= d->shape[dimension])
                return out_of_bounds(error, crd_buffer(level - 1), "crd", index[dimension], d->shape[dimension]);
        }
        if (level == d->rank) break;
        uint64_t parent = level ? stored->node[level - 1] : 0;
        HurrayStatus status = range_of(stored->buffers, pos_buffer(level), "pos", parent, level_room(d, stored->buffers, level),
                                       &stored->node[level], &stored->node_end[level], error);
        if (status != HURRAY_OK) return status;
        level++;
    }
    stored->level = d->rank;
    *position = stored->node[d->rank - 1];
    return HURRAY_OK;
}

HurrayStatus hry_stored_next(HryStored *stored, uint64_t *index, uint64_t *position, HurrayError *error) {
    switch (stored->descriptor->layout_tag) {
    case HURRAY_LAYOUT_COO: return next_coo(stored, index, position, error);
    case HURRAY_LAYOUT_CSF: return next_csf(stored, index, position, error);
    default: return next_compressed(stored, index, position, error);
    }
}

/* The place of `wanted` in rising entries [from, to); over entries that do not rise it may miss. */
static bool search(const HryBytes *buffer, uint64_t from, uint64_t to, uint64_t wanted, uint64_t *at) {
    while (from < to) {
        uint64_t middle = from + (to - from) / 2, value = entry(buffer, middle);
        if (value == wanted) {
            *at = middle;
            return true;
        }
        if (value < wanted)
            from = middle + 1;
        else
            to = middle;
    }
    return false;
}

static int compare_tuple(const uint8_t *tuple, const uint64_t *index, uint32_t rank) {
    for (uint32_t k = 0; k < rank; k++) {
        uint64_t value = hry_load_u64(tuple + 8 * k);
        if (value != index[k]) return value < index[k] ? -1 : 1;
    }
    return 0;
}

static bool find_coo(const HurrayDescriptor *d, const HryBytes *indices, const uint64_t *index, uint64_t *position) {
    uint64_t from = 0, to = d->layout.nnz;
    if (!d->layout.is_sorted) {
        for (uint64_t i = to; i-- > 0;)
            if (compare_tuple(indices->data + i * d->rank * 8, index, d->rank) == 0) {
                *position = i;
                return true;
            }
        return false;
    }
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        int order = compare_tuple(indices->data + middle * d->rank * 8, index, d->rank);
        if (order == 0) {
            *position = middle;
            return true;
        }
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return false;
}

HurrayStatus hry_sparse_find(const HurrayDescriptor *descriptor, const HryBytes *buffers, const uint64_t *index, bool *found,
                             uint64_t *position, HurrayError *error) {
    HurrayStatus status;
    uint64_t from, to, node = 0;
    *found = false;
    if (descriptor->layout_tag == HURRAY_LAYOUT_COO) {
        *found = find_coo(descriptor, &buffers[1], index, position);
        return HURRAY_OK;
    }
    if (descriptor->layout_tag != HURRAY_LAYOUT_CSF) {
        uint32_t outer = outer_dimension(descriptor);
        status = range_of(buffers, 2, pointer_name(descriptor), index[outer], descriptor->layout.nnz, &from, &to, error);
        if (status == HURRAY_OK) *found = search(&buffers[1], from, to, index[1 - outer], position);
        return status;
    }
    for (uint32_t level = 0; level < descriptor->rank; level++) {
        status = range_of(buffers, pos_buffer(level), "pos", node, level_room(descriptor, buffers, level), &from, &to, error);
        if (status != HURRAY_OK) return status;
        if (!search(&buffers[crd_buffer(level)], from, to, index[descriptor->layout.mode_order[level]], &node)) return HURRAY_OK;
    }
    *found = true;
    *position = node;
    return HURRAY_OK;
}
