#include "hurray/import.h"

#include <string.h>

#include "base/checked.h"
#include "base/handle.h"
#include "base/options.h"
#include "driver/transport_call.h"
#include "format/dense.h"
#include "import/export_plan.h"

#define SCRATCH_SIZE 65536u

struct HurrayExporter {
    HryHandle handle;
    HurrayTransport transport;
    HryExportPlan plan;
    size_t header_done; /* bytes of it that are out */
    size_t place;       /* item whose bytes come next */
    uint64_t at;        /* of its buffer */
    uint8_t *collected; /* its buffer, where elements must be put in order */
    uint8_t *scratch;
    bool begun;  /* a byte is out */
    bool closed; /* the output broke off in the middle */
    HurrayStatus cause;
    int32_t system_error;
};

static uint64_t buffer_size(const HryExportItem *item) { return item->descriptor->buffers[0].byte_size; }

static HurrayStatus fail_closed(HurrayExporter *x) {
    HurrayError *error = &x->handle.error;
    hry_fail(error, HURRAY_ERR_SINK_CLOSED, NULL, HRY_NO_OFFSET,
             "writing failed in the middle of the file, which cannot be continued; begin a new one");
    error->cause = x->cause;
    error->system_error = x->system_error;
    return HURRAY_ERR_SINK_CLOSED;
}

/* All of it, or the file is broken for good; before its first byte nothing has happened. */
static HurrayStatus put(HurrayExporter *x, const uint8_t *bytes, size_t len, size_t *done) {
    HurrayError *error = &x->handle.error;
    while (*done < len) {
        size_t moved = 0;
        HurrayStatus status = hry_transport_write(&x->transport, bytes + *done, len - *done, &moved, error);
        if (status != HURRAY_OK && !x->begun && status != HURRAY_ERR_INVALID_REPORT) return status;
        if (status != HURRAY_OK || moved == 0) {
            x->closed = true;
            x->cause = status != HURRAY_OK ? status : HURRAY_ERR_SINK_CLOSED;
            x->system_error = status != HURRAY_OK ? error->system_error : 0;
            return fail_closed(x);
        }
        x->begun = true;
        *done += moved;
    }
    return HURRAY_OK;
}

static HurrayStatus put_all(HurrayExporter *x, const uint8_t *bytes, size_t len) {
    size_t done = 0;
    return put(x, bytes, len, &done);
}

static HurrayStatus put_header(HurrayExporter *x) { return put(x, x->plan.header, x->plan.header_size, &x->header_done); }

/* count packed bools, as one byte each. packed: from the bit `first` on. */
static HurrayStatus put_bools(HurrayExporter *x, const uint8_t *packed, size_t first, uint64_t count) {
    for (uint64_t done = 0; done < count;) {
        size_t piece = count - done < SCRATCH_SIZE ? (size_t)(count - done) : SCRATCH_SIZE;
        for (size_t i = 0; i < piece; i++) {
            uint64_t bit = first + done + i;
            x->scratch[i] = (packed[bit / 8] >> (bit % 8)) & 1;
        }
        HurrayStatus status = put_all(x, x->scratch, piece);
        if (status != HURRAY_OK) return status;
        done += piece;
    }
    return HURRAY_OK;
}

/* Buffer bytes [x->at, x->at + len) of a row-major tensor: what lies before byte_offset or behind the elements is not written. */
static HurrayStatus put_row_major(HurrayExporter *x, const HryExportItem *item, const uint8_t *bytes, size_t len) {
    bool is_bool = item->type->type_tag == HURRAY_TYPE_BOOL;
    uint64_t first = item->descriptor->byte_offset;
    uint64_t end = first + (is_bool ? hry_div_up(item->elements, 8) : item->end - item->begin);
    uint64_t from = x->at < first ? first : x->at, to = x->at + len < end ? x->at + len : end;
    if (from >= to) return HURRAY_OK;
    const uint8_t *start = bytes + (from - x->at);
    if (!is_bool) return put_all(x, start, (size_t)(to - from));
    uint64_t element = (from - first) * 8, count = (to - from) * 8;
    if (count > item->elements - element) count = item->elements - element;
    return put_bools(x, start, 0, count);
}

static HurrayStatus put_collected(HurrayExporter *x, const HryExportItem *item) {
    HryDense dense;
    HryBytes bytes = {x->collected, buffer_size(item)};
    HurrayError *error = &x->handle.error;
    bool is_bool = item->type->type_tag == HURRAY_TYPE_BOOL;
    uint64_t most = is_bool ? SCRATCH_SIZE / 16 : SCRATCH_SIZE / 16 / 8 * 8; /* elements of at most 64 bits; a multiple of 8 */
    uint8_t *packed = x->scratch + SCRATCH_SIZE;
    HurrayStatus status = hry_dense_open(&dense, item->descriptor, &bytes, HRY_DENSE_OWN, error);
    for (uint64_t first = 0; first < item->elements && status == HURRAY_OK; first += most) {
        uint64_t count = item->elements - first < most ? item->elements - first : most, size = 0;
        status = hry_dense_stretch(&dense, first, count, packed, error);
        if (status != HURRAY_OK) break;
        if (is_bool)
            status = put_bools(x, packed, 0, count);
        else if (hry_dense_bytes(&dense, count, &size))
            status = put_all(x, packed, (size_t)size);
    }
    return status;
}

/* Skips what has no bytes, and takes memory for what must be collected. */
static HurrayStatus begin_item(HurrayExporter *x) {
    while (x->place < x->plan.count && buffer_size(&x->plan.items[x->place]) == 0) x->place++;
    if (x->place == x->plan.count || x->collected || !x->plan.items[x->place].gathers) return HURRAY_OK;
    size_t size;
    if (hry_to_size(buffer_size(&x->plan.items[x->place]), &size)) x->collected = hry_alloc_raw(&x->plan.allocator, size);
    if (!x->collected)
        return hry_fail_memory(&x->handle.error, "putting a tensor's elements in order", buffer_size(&x->plan.items[x->place]));
    return HURRAY_OK;
}

static HurrayStatus end_item(HurrayExporter *x) {
    const HryExportItem *item = &x->plan.items[x->place];
    HurrayStatus status = HURRAY_OK;
    if (x->collected) {
        status = put_collected(x, item);
        hry_free(&x->plan.allocator, x->collected, (size_t)buffer_size(item));
        x->collected = NULL;
        if (status != HURRAY_OK && !x->closed) { /* elements that the layout does not give: the rest would not fit the header */
            x->closed = true;
            x->cause = status;
        }
    }
    x->at = 0;
    x->place++;
    return status;
}

static HurrayStatus append(HurrayExporter *x, const uint8_t *bytes, size_t len) {
    if (x->closed) return fail_closed(x);
    HurrayStatus status = put_header(x);
    while (len && status == HURRAY_OK) {
        status = begin_item(x);
        if (status != HURRAY_OK) return status;
        if (x->place == x->plan.count)
            return hry_fail(&x->handle.error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET, "%zu bytes more than the tensors' buffers have",
                            len);
        const HryExportItem *item = &x->plan.items[x->place];
        uint64_t left = buffer_size(item) - x->at;
        size_t piece = len < left ? len : (size_t)left;
        if (x->collected)
            memcpy(x->collected + x->at, bytes, piece);
        else
            status = put_row_major(x, item, bytes, piece);
        if (status != HURRAY_OK) return status;
        x->at += piece;
        bytes += piece;
        len -= piece;
        if (x->at == buffer_size(item)) status = end_item(x);
    }
    return status;
}

HurrayStatus hurray_exporter_append(HurrayExporter *exporter, const void *bytes, size_t len) {
    if (!exporter || (!bytes && len)) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&exporter->handle);
    if (status != HURRAY_OK) return status;
    return hry_handle_leave(&exporter->handle, append(exporter, bytes, len));
}

static HurrayStatus finish(HurrayExporter *x) {
    if (x->closed) return fail_closed(x);
    HurrayStatus status = put_header(x);
    if (status == HURRAY_OK) status = begin_item(x);
    if (status != HURRAY_OK) return status;
    if (x->place < x->plan.count) {
        const HryExportItem *item = &x->plan.items[x->place];
        hry_fail(&x->handle.error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET,
                 "entry %zu has got %llu of its %llu bytes; append the rest first", item->entry, (unsigned long long)x->at,
                 (unsigned long long)buffer_size(item));
        x->handle.error.tensor_index = item->entry;
        return HURRAY_ERR_WRONG_STATE;
    }
    return hry_transport_finish(&x->transport, &x->handle.error);
}

HurrayStatus hurray_exporter_finish(HurrayExporter *exporter) {
    if (!exporter) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&exporter->handle);
    if (status != HURRAY_OK) return status;
    return hry_handle_leave(&exporter->handle, finish(exporter));
}

HurrayStatus hurray_exporter_order(const HurrayExporter *exporter, size_t place, size_t *entry) {
    if (!exporter || !entry) return HURRAY_ERR_NULL_POINTER;
    if (place >= exporter->plan.count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    *entry = exporter->plan.items[place].entry;
    return HURRAY_OK;
}

const HurrayError *hurray_exporter_last_error(const HurrayExporter *exporter) { return exporter ? &exporter->handle.error : NULL; }

HurrayStatus hurray_exporter_destroy(HurrayExporter **exporter) {
    if (!exporter) return HURRAY_ERR_NULL_POINTER;
    HurrayExporter *x = *exporter;
    *exporter = NULL;
    if (!x) return HURRAY_OK;
    HurrayAllocator allocator = x->plan.allocator;
    if (x->collected) hry_free(&allocator, x->collected, (size_t)buffer_size(&x->plan.items[x->place]));
    hry_transport_release(&x->transport);
    hry_export_plan_clear(&x->plan);
    hry_free(&allocator, x->scratch, 2 * (size_t)SCRATCH_SIZE);
    hry_free(&allocator, x, sizeof *x);
    return HURRAY_OK;
}

static HurrayStatus make(const HurrayTransport *transport, uint32_t format, const HurrayExportEntry *entries, size_t count,
                         const HurrayKvEntry *kv, size_t kv_count, const HurrayExportOptions *options, HurrayExporter **out,
                         HurrayError *error) {
    HurrayExportOptions read = HURRAY_EXPORT_OPTIONS_INIT;
    HurrayAllocator allocator;
    HurrayTransport resolved;
    HurrayStatus status = hry_options_read(&read, sizeof read, sizeof read, options, "HurrayExportOptions", error);
    if (status == HURRAY_OK) status = hry_alloc_resolve(read.allocator, &allocator, error);
    if (status == HURRAY_OK) status = hry_transport_resolve(transport, HRY_TRANSPORT_NEEDS_WRITE, &resolved, error);
    if (status != HURRAY_OK) return status;
    if (read.flags & ~HURRAY_EXPORT_KV_AS_TEXT)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "flags", HRY_NO_OFFSET, "export flags 0x%x are not known", (unsigned)read.flags);
    if (format != HURRAY_FORMAT_SAFETENSORS)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "format", HRY_NO_OFFSET, "format %u is not written; safetensors (%u) is",
                        (unsigned)format, HURRAY_FORMAT_SAFETENSORS);
    HurrayExporter *x = hry_alloc(&allocator, sizeof *x);
    if (!x) return hry_fail_memory(error, "an exporter", sizeof *x);
    status = hry_export_plan(entries, count, kv, kv_count, (read.flags & HURRAY_EXPORT_KV_AS_TEXT) != 0, &allocator, &x->plan, error);
    if (status == HURRAY_OK) {
        x->scratch = hry_alloc_raw(&allocator, 2 * (size_t)SCRATCH_SIZE);
        if (!x->scratch) {
            hry_export_plan_clear(&x->plan);
            status = hry_fail_memory(error, "an exporter", SCRATCH_SIZE);
        }
    }
    if (status != HURRAY_OK) {
        hry_free(&allocator, x, sizeof *x);
        return status;
    }
    hry_handle_init(&x->handle);
    x->plan.allocator = allocator;
    x->transport = resolved;
    *out = x;
    return HURRAY_OK;
}

HurrayStatus hurray_exporter_new(const HurrayTransport *transport, uint32_t format, const HurrayExportEntry *entries, size_t count,
                                 const HurrayKvEntry *kv, size_t kv_count, const HurrayExportOptions *options, HurrayExporter **out,
                                 HurrayError *error) {
    HurrayError own;
    hry_error_clear(&own);
    if (!transport || !out || (!entries && count) || (!kv && kv_count)) {
        hry_fail(&own, HURRAY_ERR_NULL_POINTER, NULL, HRY_NO_OFFSET,
                 "hurray_exporter_new needs a transport, a result, and as many entries and metadata as it is told");
        return hry_error_export(error, &own);
    }
    HurrayStatus status = make(transport, format, entries, count, kv, kv_count, options, out, &own);
    return status == HURRAY_OK ? HURRAY_OK : hry_error_export(error, &own);
}
