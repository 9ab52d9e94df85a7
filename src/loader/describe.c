/* Descriptors of .hrry files are read when somebody asks for them, many by one read when many are asked for. */
#include "loader/loader.h"

#include <string.h>

#include "base/checked.h"
#include "core/file_fetch.h"
#include "cpu/transport.h"
#include "driver/transport_call.h"

#define BATCH_BYTES (UINT64_C(1) << 20)
#define GAP_BYTES UINT64_C(4096) /* reading through so much costs less than another read */

/* The caller's limit; everything else an index and a descriptor say about each other is checked where it is decoded. */
static HurrayStatus check_size(const HurrayLoader *loader, const HurrayDescriptor *descriptor, HurrayError *error) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < descriptor->buffer_count; k++)
        if (!hry_add_u64(sum, descriptor->buffers[k].byte_size, &sum))
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "buffers", HRY_NO_OFFSET, "the buffers' sizes do not fit 64 bits together");
    if (sum <= loader->limits.max_tensor_bytes) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_LIMIT, "max_tensor_bytes", HRY_NO_OFFSET,
                    "the tensor has %llu bytes, the limit is %llu; raise max_tensor_bytes", (unsigned long long)sum,
                    (unsigned long long)loader->limits.max_tensor_bytes);
}

static HurrayStatus decode_entry(HurrayLoader *loader, const HryLoaderSource *source, const HryEntry *entry, const uint8_t *bytes,
                                 HurrayDescriptor **out, HurrayError *error) {
    const HryCatalogue *catalogue = source->model->catalogue;
    HryFetchContext context = {.allocator = loader->allocator, .catalogue = catalogue};
    HurrayDescriptor *descriptor = NULL;
    HurrayStatus status =
        hry_fetch_decode(&context, (uint64_t)(entry - catalogue->entries), bytes, entry->descriptor_length, &descriptor, error);
    if (status == HURRAY_OK) status = check_size(loader, descriptor, error);
    if (status != HURRAY_OK) {
        hry_descriptor_unref(descriptor);
        return status;
    }
    *out = descriptor;
    return HURRAY_OK;
}

static HurrayStatus make_room(HurrayLoader *loader, HurrayError *error) {
    if (loader->descriptors || loader->tensor_count == 0) return HURRAY_OK;
    loader->descriptors = hry_alloc_array(&loader->allocator, (size_t)loader->tensor_count, sizeof *loader->descriptors);
    return loader->descriptors ? HURRAY_OK : hry_fail_memory(error, "the descriptors", loader->tensor_count * sizeof *loader->descriptors);
}

/* Spoiled from the start, or known without a read? OK with *out NULL: it must be read. */
static HurrayStatus look_up(HurrayLoader *loader, uint64_t i, HurrayDescriptor **out, HurrayError *error) {
    HryLoaderSource *source;
    const HryEntry *entry = hry_loader_entry(loader, i, &source);
    *out = NULL;
    if (entry->fault) {
        *error = source->model->catalogue->faults[entry->fault - 1];
        return error->code;
    }
    if (loader->descriptors && loader->descriptors[i]) {
        *out = loader->descriptors[i];
    } else if (entry->descriptor) {
        HurrayStatus status = check_size(loader, entry->descriptor, error);
        if (status != HURRAY_OK) return status;
        *out = entry->descriptor;
    } else if (entry->descriptor_length > loader->limits.max_descriptor_bytes) {
        return hry_fail(error, HURRAY_ERR_LIMIT, "descriptor_length", entry->descriptor_offset,
                        "the descriptor has %u bytes, the limit is %llu; raise max_descriptor_bytes", entry->descriptor_length,
                        (unsigned long long)loader->limits.max_descriptor_bytes);
    }
    return HURRAY_OK;
}

static HurrayStatus read_one(HurrayLoader *loader, uint64_t i, HurrayDescriptor **out, HurrayError *error) {
    HryLoaderSource *source;
    const HryEntry *entry = hry_loader_entry(loader, i, &source);
    HurrayStatus status = make_room(loader, error);
    if (status != HURRAY_OK) return status;
    uint8_t *bytes = hry_alloc_raw(&loader->allocator, entry->descriptor_length);
    if (!bytes) return hry_fail_memory(error, "a descriptor", entry->descriptor_length);
    status = hry_transport_read_exactly(&source->model->transport, entry->descriptor_offset, bytes, entry->descriptor_length, error);
    if (status == HURRAY_OK) status = decode_entry(loader, source, entry, bytes, &loader->descriptors[i], error);
    hry_free(&loader->allocator, bytes, entry->descriptor_length);
    if (status == HURRAY_OK) *out = loader->descriptors[i];
    return status;
}

HurrayStatus hry_loader_describe(HurrayLoader *loader, uint64_t i, HurrayDescriptor **out, HurrayError *error) {
    HurrayStatus status = look_up(loader, i, out, error);
    if (status == HURRAY_OK && !*out) status = read_one(loader, i, out, error);
    return status == HURRAY_OK ? status : hry_loader_blame(loader, i, error);
}

/* The next place from `at` on whose descriptor has to be read; end when there is none. */
static HurrayStatus next_unknown(HurrayLoader *loader, uint64_t at, uint64_t end, const uint8_t *chosen, bool tolerant, uint64_t *out,
                                 HurrayError *error) {
    for (; at < end; at++) {
        HurrayDescriptor *known;
        if (chosen && !chosen[at]) continue;
        HurrayStatus status = look_up(loader, at, &known, error);
        if (status != HURRAY_OK && !(tolerant && hry_is_fault(status))) return hry_loader_blame(loader, at, error);
        if (status == HURRAY_OK && !known) break;
    }
    *out = at;
    return HURRAY_OK;
}

typedef struct Batch {
    uint64_t first, last; /* places, both in it */
    uint64_t offset, len;
} Batch;

/* Can the descriptor of `entry` join the batch? Then it does. */
static bool join_batch(Batch *batch, const HryEntry *entry, uint64_t place) {
    uint64_t end = batch->offset + batch->len, new_end;
    if (entry->descriptor_offset < end || entry->descriptor_offset - end > GAP_BYTES) return false;
    if (!hry_add_u64(entry->descriptor_offset, entry->descriptor_length, &new_end) || new_end - batch->offset > BATCH_BYTES) return false;
    batch->len = new_end - batch->offset;
    batch->last = place;
    return true;
}

/* One by one: the slow road for what stands alone, and to learn which one a failed batch has failed for. */
static HurrayStatus read_alone(HurrayLoader *loader, uint64_t i, bool tolerant, HurrayError *error) {
    HurrayDescriptor *descriptor;
    HurrayStatus status = hry_loader_describe(loader, i, &descriptor, error);
    return status != HURRAY_OK && tolerant && hry_is_fault(status) ? HURRAY_OK : status;
}

static HurrayStatus read_batch(HurrayLoader *loader, const HryLoaderSource *source, const Batch *batch, const uint8_t *chosen,
                               bool tolerant, uint8_t *scratch, HurrayError *error) {
    HurrayStatus status = batch->first == batch->last
                              ? HURRAY_ERR_UNSUPPORTED
                              : hry_transport_read_exactly(&source->model->transport, batch->offset, scratch, (size_t)batch->len, error);
    /* a caller's callback that fails is not asked again; of a file it can be found out whose bytes cannot be read */
    HryTransportAccess access;
    hry_transport_access(&source->model->transport, &access);
    bool ask_again = batch->first == batch->last || status == HURRAY_ERR_TRUNCATED || access.kind == HRY_TRANSPORT_FILE;
    if (status != HURRAY_OK && !ask_again) return hry_loader_blame(loader, batch->first, error);
    for (uint64_t i = batch->first; i <= batch->last; i++) {
        HurrayDescriptor *known;
        HurrayStatus one = HURRAY_OK;
        if (chosen && !chosen[i]) continue;
        if (status != HURRAY_OK) {
            one = read_alone(loader, i, tolerant, error);
        } else if (look_up(loader, i, &known, error) == HURRAY_OK && !known) {
            const HryEntry *entry = hry_loader_entry(loader, i, NULL);
            one = decode_entry(loader, source, entry, scratch + (entry->descriptor_offset - batch->offset), &loader->descriptors[i], error);
            if (one != HURRAY_OK) one = tolerant && hry_is_fault(one) ? HURRAY_OK : hry_loader_blame(loader, i, error);
        }
        if (one != HURRAY_OK) return one;
    }
    return HURRAY_OK;
}

HurrayStatus hry_loader_describe_many(HurrayLoader *loader, uint64_t first, uint64_t count, const uint8_t *chosen, bool tolerant,
                                      HurrayError *error) {
    uint64_t at, end = first + count;
    HurrayStatus status = next_unknown(loader, first, end, chosen, tolerant, &at, error);
    if (status != HURRAY_OK || at == end) return status;
    status = make_room(loader, error);
    if (status != HURRAY_OK) return status;
    uint8_t *scratch = hry_alloc_raw(&loader->allocator, BATCH_BYTES);
    if (!scratch) return hry_fail_memory(error, "reading descriptors", BATCH_BYTES);
    while (status == HURRAY_OK && at < end) {
        HryLoaderSource *source;
        const HryEntry *entry = hry_loader_entry(loader, at, &source);
        Batch batch = {at, at, entry->descriptor_offset, entry->descriptor_length};
        uint64_t source_end = source->first + source->count < end ? source->first + source->count : end;
        for (;;) {
            status = next_unknown(loader, at + 1, source_end, chosen, tolerant, &at, error);
            if (status != HURRAY_OK || at == source_end || !join_batch(&batch, hry_loader_entry(loader, at, NULL), at)) break;
        }
        HurrayError before; /* a spoiled one further on must not hide a failure in the batch */
        HurrayStatus batch_status = read_batch(loader, source, &batch, chosen, tolerant, scratch, &before);
        if (batch_status != HURRAY_OK) status = batch_status, *error = before;
        if (status == HURRAY_OK && at == source_end && at < end) status = next_unknown(loader, at, end, chosen, tolerant, &at, error);
        if (status == HURRAY_OK && hry_loader_is_cancelled(loader)) status = hry_fail_cancelled(error);
    }
    hry_free(&loader->allocator, scratch, BATCH_BYTES);
    return status;
}

uint64_t hry_loader_buffer_offset(HurrayLoader *loader, uint64_t i, const HurrayDescriptor *descriptor, uint32_t k) {
    HryLoaderSource *source;
    const HryEntry *entry = hry_loader_entry(loader, i, &source);
    uint64_t offset;
    if (hry_byte_source_needed(entry)) {
        const HryForeign *foreign = &source->model->catalogue->foreign[entry->side - 1];
        return foreign->bytes == HRY_BYTES_AS_IS ? entry->data_offset : HURRAY_NONE;
    }
    return hry_catalogue_buffer_offset(source->model->catalogue, entry, descriptor, k, &offset) ? offset : HURRAY_NONE;
}
