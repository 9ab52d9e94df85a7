#include "core/file_reader.h"

#include <string.h>

#include "base/handle.h"
#include "driver/transport_call.h"
#include "format/crc32c.h"

#define CHECKED_PIECE ((size_t)4 << 20) /* one read when its bytes are summed afterwards: they are still in the cache */
#define BLOCK_PIECE ((size_t)64 << 10)  /* one read through a block */

/* One transport, of a reader and its clones. */
typedef struct Source {
    HurrayAllocator allocator;
    atomic_uint references;
    HurrayTransport transport;
} Source;

struct HurrayFileReader {
    HurrayFileReader *self; /* so that calls that only look keep the last error too */
    HryHandle handle;
    HurrayFileReaderCore *core;
    Source *source;
    /* read_bytes in order: how far the checksum of one buffer has come. */
    uint64_t sum_index, sum_at;
    uint32_t sum_buffer, sum;
};

static void source_unref(Source *source) {
    if (atomic_fetch_sub_explicit(&source->references, 1, memory_order_acq_rel) != 1) return;
    HurrayAllocator allocator = source->allocator;
    hry_transport_release(&source->transport);
    hry_free(&allocator, source, sizeof *source);
}

/* ---- the loop ---- */

/* A read that keeps io_alignment: whole blocks into the window where its slack allows, else through a block. */
static HurrayStatus read_blocks(const HurrayTransport *transport, const HurrayWindow *window, size_t len, size_t *moved,
                                HurrayError *error) {
    size_t alignment = transport->io_alignment, skip = (size_t)(window->source_offset % alignment);
    uint8_t *start = window->ptr - (skip <= window->slack_before ? skip : 0);
    bool congruent = skip <= window->slack_before && (uintptr_t)start % alignment == 0;
    if (congruent && len <= SIZE_MAX - skip - alignment) {
        size_t wanted = skip + len, up = (wanted + alignment - 1) & ~(alignment - 1);
        if (up - wanted > window->slack_after) up -= alignment;
        if (up > HRY_TRANSPORT_MAX_LEN) up = HRY_TRANSPORT_MAX_LEN;
        if (up > skip) {
            HurrayStatus status = hry_transport_read_at(transport, window->source_offset - skip, start, up, moved, error);
            if (status != HURRAY_OK) return status;
            if (*moved == 0 || *moved > skip) {
                *moved = *moved ? *moved - skip : 0;
                if (*moved > len) *moved = len;
                return HURRAY_OK;
            }
        }
    }
    if (len > BLOCK_PIECE) len = BLOCK_PIECE;
    *moved = len;
    return hry_transport_read_exactly(transport, window->source_offset, window->ptr, len, error);
}

static HurrayStatus read_window(const HurrayTransport *transport, const HurrayWindow *window, bool summed, size_t *moved,
                                HurrayError *error) {
    size_t len = (size_t)window->len;
    if (summed && len > CHECKED_PIECE) len = CHECKED_PIECE;
    return transport->io_alignment > 1 ? read_blocks(transport, window, len, moved, error)
                                       : hry_transport_read_at(transport, window->source_offset, window->ptr, len, moved, error);
}

/* Answers the core until it needs no more bytes: a range by one read, WAIT by waiting. A failing callback costs the job; a count that
 * cannot be true costs the handle. */
static HurrayStatus drive(HurrayFileReaderCore *core, const HurrayTransport *transport) {
    const HryFetchContext *context = hry_file_reader_core_context(core);
    HurrayError error;
    HurrayStep step;
    for (;;) {
        HurrayStatus status = hurray_file_reader_core_step(core, &step);
        if (status != HURRAY_OK) return status;
        hry_error_clear(&error);
        if (step.kind == HURRAY_STEP_RANGE) {
            HurrayWindow window;
            size_t moved = 0;
            status = hurray_file_reader_core_input_window(core, &window);
            if (status != HURRAY_OK) return status;
            status = read_window(transport, &window, context->verify != HURRAY_VERIFY_NONE, &moved, &error);
            if (status == HURRAY_OK) {
                status = hurray_file_reader_core_report_filled(core, moved);
                if (status != HURRAY_OK) return status;
                continue;
            }
        } else if (step.kind == HURRAY_STEP_WAIT) {
            status = hry_destination_wait(context->destination, &error);
            if (status == HURRAY_OK) continue;
        } else
            return HURRAY_OK;
        return hry_file_reader_core_fail(core, &error, HURRAY_NONE);
    }
}

/* ---- life ---- */

/* source and core become the reader's on OK. */
static HurrayStatus make_reader(Source *source, HurrayFileReaderCore *core, HurrayFileReader **out, HurrayError *error) {
    HurrayFileReader *reader = hry_alloc(&source->allocator, sizeof *reader);
    if (!reader) return hry_fail_memory(error, "a file reader", sizeof *reader);
    reader->self = reader;
    hry_handle_init(&reader->handle);
    reader->core = core;
    reader->source = source;
    reader->sum_index = HURRAY_NONE;
    *out = reader;
    return HURRAY_OK;
}

static HurrayStatus open_reader(const HurrayTransport *user, const HurrayFileReaderOptions *options, HurrayFileReader **out,
                                HurrayError *error) {
    HurrayTransport transport;
    HurrayFileReaderCore *core = NULL;
    Source *source = NULL;
    uint64_t size = 0;
    if (!out) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "out", HRY_NO_OFFSET, "the out pointer is NULL");
    HurrayStatus status = hry_transport_resolve(user, HRY_TRANSPORT_NEEDS_READ_AT, &transport, error);
    if (status == HURRAY_OK) status = hry_transport_size(&transport, &size, error);
    if (status == HURRAY_OK) status = hurray_file_reader_core_new(size, options, &core, error);
    if (status != HURRAY_OK) return status;
    hry_file_reader_core_set_io_alignment(core, transport.io_alignment);
    HurrayAllocator allocator = hry_file_reader_core_context(core)->allocator;
    status = drive(core, &transport);
    if (status != HURRAY_OK)
        *error = *hurray_file_reader_core_last_error(core);
    else {
        source = hry_alloc(&allocator, sizeof *source);
        if (!source)
            status = hry_fail_memory(error, "a file reader", sizeof *source);
        else {
            source->allocator = allocator;
            atomic_init(&source->references, 1);
            source->transport = transport;
            status = make_reader(source, core, out, error);
        }
    }
    if (status != HURRAY_OK) { /* the transport stays with the caller: it is not released */
        hry_free(&allocator, source, sizeof *source);
        hurray_file_reader_core_destroy(&core);
    }
    return status;
}

HurrayStatus hurray_file_reader_new_ex(const HurrayTransport *transport, const HurrayFileReaderOptions *options, HurrayFileReader **out,
                                       HurrayError *caller) {
    HurrayError error;
    hry_error_clear(&error);
    HurrayStatus status = open_reader(transport, options, out, &error);
    return status == HURRAY_OK ? status : hry_error_export(caller, &error);
}

HurrayStatus hurray_file_reader_new(const HurrayTransport *transport, HurrayFileReader **out) {
    return hurray_file_reader_new_ex(transport, NULL, out, NULL);
}

HurrayStatus hurray_file_reader_clone(HurrayFileReader *reader, HurrayFileReader **out, HurrayError *caller) {
    HurrayError error;
    HurrayFileReaderCore *core = NULL;
    hry_error_clear(&error);
    HurrayStatus status = HURRAY_OK;
    if (!reader || !out)
        status = hry_fail(&error, HURRAY_ERR_NULL_POINTER, reader ? "out" : "reader", HRY_NO_OFFSET, "reader or out is NULL");
    else if (!(reader->source->transport.flags & HURRAY_TRANSPORT_CONCURRENT))
        status = hry_fail(&error, HURRAY_ERR_UNSUPPORTED, "flags", HRY_NO_OFFSET,
                          "the transport cannot be read from several threads; set HURRAY_TRANSPORT_CONCURRENT if it can, or open it again");
    if (status == HURRAY_OK) status = hurray_file_reader_core_fork(reader->core, &core, &error);
    if (status == HURRAY_OK) status = make_reader(reader->source, core, out, &error);
    if (status != HURRAY_OK) {
        hurray_file_reader_core_destroy(&core);
        return hry_error_export(caller, &error);
    }
    atomic_fetch_add_explicit(&reader->source->references, 1, memory_order_relaxed);
    return HURRAY_OK;
}

HurrayStatus hurray_file_reader_destroy(HurrayFileReader **reader) {
    if (!reader) return HURRAY_ERR_NULL_POINTER;
    HurrayFileReader *gone = *reader;
    *reader = NULL;
    if (!gone) return HURRAY_OK;
    Source *source = gone->source;
    hurray_file_reader_core_destroy(&gone->core);
    hry_free(&source->allocator, gone, sizeof *gone);
    source_unref(source);
    return HURRAY_OK;
}

/* ---- what needs no reading ---- */

const HurrayError *hurray_file_reader_last_error(const HurrayFileReader *reader) { return reader ? &reader->handle.error : NULL; }

static HurrayStatus fail_place(HurrayError *error, const char *what, uint64_t i, uint64_t count) {
    return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, what, HRY_NO_OFFSET, "%s %llu was asked for, the file has %llu", what,
                    (unsigned long long)i, (unsigned long long)count);
}

static HurrayStatus fail_name(HurrayError *error, const char *what, const void *name, size_t len, uint64_t count) {
    char shown[136];
    hry_fail(error, HURRAY_ERR_NOT_FOUND, NULL, HRY_NO_OFFSET, "no %s \"%s\" among the %llu of the file; names are compared byte by byte", what,
             hry_escape(shown, sizeof shown, name, len), (unsigned long long)count);
    if (what[0] == 't') hry_error_set_tensor(error, name, len, HURRAY_NONE);
    return error->code;
}

/* A question that the core answers; on_failure, an expression, fills `error`. */
#define LOOK(condition, question, on_failure)                                                                                              \
    if (!reader || !(condition)) return HURRAY_ERR_NULL_POINTER;                                                                           \
    HryHandle *handle = &reader->self->handle;                                                                                             \
    HurrayError *error = &handle->error;                                                                                                   \
    HurrayStatus status = hry_handle_enter(handle);                                                                                        \
    if (status != HURRAY_OK) return status;                                                                                                \
    const HryCatalogue *catalogue = hry_file_reader_core_context(reader->core)->catalogue;                                                 \
    status = question;                                                                                                                     \
    if (status == HURRAY_ERR_INDEX_OUT_OF_BOUNDS || status == HURRAY_ERR_NOT_FOUND) (void)(on_failure);                                    \
    (void)catalogue, (void)error;                                                                                                          \
    return hry_handle_leave(handle, status)

HurrayStatus hurray_file_reader_tensor_count(const HurrayFileReader *reader, uint64_t *out) {
    LOOK(out, hurray_file_reader_core_tensor_count(reader->core, out), 0);
}

HurrayStatus hurray_file_reader_tensor_name(const HurrayFileReader *reader, uint64_t i, const uint8_t **name, size_t *len) {
    LOOK(name && len, hurray_file_reader_core_tensor_name(reader->core, i, name, len), fail_place(error, "tensor", i, catalogue->entry_count));
}

HurrayStatus hurray_file_reader_find(const HurrayFileReader *reader, const void *name, size_t len, uint64_t *i) {
    LOOK(i && (name || len == 0), hurray_file_reader_core_find(reader->core, name, len, i),
         fail_name(error, "tensor", name, len, catalogue->entry_count));
}

HurrayStatus hurray_file_reader_info(const HurrayFileReader *reader, HurraySourceInfo *out) {
    LOOK(out, hurray_file_reader_core_info(reader->core, out), 0);
}

HurrayStatus hurray_file_reader_kv_count(const HurrayFileReader *reader, uint64_t *out) {
    LOOK(out, hurray_file_reader_core_kv_count(reader->core, out), 0);
}

HurrayStatus hurray_file_reader_kv_entry(const HurrayFileReader *reader, uint64_t i, HurrayKvEntry *out) {
    LOOK(out, hurray_file_reader_core_kv_entry(reader->core, i, out), fail_place(error, "metadata entry", i, catalogue->kv_count));
}

HurrayStatus hurray_file_reader_kv_find(const HurrayFileReader *reader, const void *key, size_t len, HurrayKvEntry *out) {
    LOOK(out && (key || len == 0), hurray_file_reader_core_kv_find(reader->core, key, len, out),
         fail_name(error, "metadata key", key, len, catalogue->kv_count));
}

/* ---- jobs ---- */

/* The core's record becomes the handle's. */
static HurrayStatus leave(HurrayFileReader *reader, HurrayStatus status) {
    const HurrayError *error = hurray_file_reader_core_last_error(reader->core);
    if (status < 0 && error->code == status) reader->handle.error = *error;
    return hry_handle_leave(&reader->handle, status);
}

#define READ_JOB(what, job, type)                                                                                                          \
    HurrayStatus hurray_file_reader_read_##what(HurrayFileReader *reader, const void *name, size_t len, type **out) {                      \
        if (!reader || !out || (!name && len)) return HURRAY_ERR_NULL_POINTER;                                                             \
        HurrayStatus status = hry_handle_enter(&reader->handle);                                                                           \
        if (status != HURRAY_OK) return status;                                                                                            \
        status = hurray_file_reader_core_begin_##job(reader->core, name, len);                                                             \
        if (status == HURRAY_OK) status = drive(reader->core, &reader->source->transport);                                                 \
        if (status == HURRAY_OK) status = hurray_file_reader_core_take_##job(reader->core, out);                                           \
        return leave(reader, status);                                                                                                      \
    }
READ_JOB(descriptor, descriptor, HurrayDescriptor)
READ_JOB(tensor, tensor, HurrayTensor)
READ_JOB(composite, composite, HurrayItem)

/* The descriptor of an entry, read at most once in a row; one reference. */
static HurrayStatus describe(HurrayFileReader *reader, uint64_t index, HurrayDescriptor **out) {
    HurrayStatus status = hry_file_reader_core_begin_at(reader->core, HURRAY_STEP_DESCRIPTOR, index);
    if (status == HURRAY_OK) status = drive(reader->core, &reader->source->transport);
    if (status == HURRAY_OK) status = hurray_file_reader_core_take_descriptor(reader->core, out);
    return status;
}

HurrayStatus hurray_file_reader_tensor_info(HurrayFileReader *reader, uint64_t i, HurrayTensorInfo *out) {
    HurrayDescriptor *descriptor;
    if (!reader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&reader->handle);
    if (status != HURRAY_OK) return status;
    status = describe(reader, i, &descriptor);
    if (status == HURRAY_OK) {
        status = hurray_file_reader_core_tensor_info(reader->core, i, out);
        hry_descriptor_unref(descriptor); /* the core keeps the last one */
    }
    return leave(reader, status);
}

/* ---- reading into the caller's memory ---- */

/* One buffer (or a piece) straight to dst; *sum, unless NULL, goes on over its bytes. */
static HurrayStatus read_direct(const HurrayTransport *transport, uint64_t offset, uint8_t *dst, size_t len, uint32_t *sum,
                                HurrayError *error) {
    while (len) {
        HurrayWindow window = {.source_offset = offset, .len = len, .ptr = dst};
        size_t moved = 0;
        HurrayStatus status = read_window(transport, &window, sum != NULL, &moved, error);
        if (status != HURRAY_OK) return status;
        if (moved == 0)
            return hry_fail(error, HURRAY_ERR_TRUNCATED, NULL, offset, "the file ends at byte %llu, before the buffer does",
                            (unsigned long long)offset);
        if (sum) *sum = hry_crc32c(*sum, dst, moved);
        dst += moved;
        offset += moved;
        len -= moved;
    }
    return HURRAY_OK;
}

static HurrayStatus fail_sum(HurrayError *error, uint32_t buffer, uint64_t offset, uint32_t found, uint32_t stored) {
    hry_fail(error, HURRAY_ERR_CHECKSUM, "libhurray.crc32c", offset,
             "buffer %u has CRC-32C %08x, stored is %08x: the bytes are damaged, or a tool copied the metadata of another file",
             (unsigned)buffer, (unsigned)found, (unsigned)stored);
    error->buffer_index = buffer;
    return error->code;
}

/* Is buffer k to be checked, and against what? CHECKSUM when it must be and cannot. */
static HurrayStatus wanted_sum(const HurrayFileReader *reader, uint64_t index, const HurrayDescriptor *descriptor, uint32_t k, bool *check,
                               uint32_t *sum, HurrayError *error) {
    const HryFetchContext *context = hry_file_reader_core_context(reader->core);
    *check = context->verify != HURRAY_VERIFY_NONE && hry_catalogue_sum(context->catalogue, index, descriptor, k, sum);
    if (*check || context->verify != HURRAY_VERIFY_REQUIRED || descriptor->buffers[k].byte_size == 0) return HURRAY_OK;
    hry_fail(error, HURRAY_ERR_CHECKSUM, "libhurray.crc32c", HRY_NO_OFFSET,
             "buffer %u cannot be checked: no checksum is stored for it; every buffer must be, by the option verify_data", (unsigned)k);
    error->buffer_index = k;
    return error->code;
}

static HurrayStatus check_memory(const HurrayDescriptor *descriptor, const HurrayMemory *dst, size_t count, HurrayError *error) {
    if (count != descriptor->buffer_count)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "count", HRY_NO_OFFSET, "the tensor has %u buffers, memory is given for %zu",
                        (unsigned)descriptor->buffer_count, count);
    for (uint32_t k = 0; k < count; k++) {
        uint64_t size = descriptor->buffers[k].byte_size;
        HurrayStatus status = HURRAY_OK;
        if (size && !dst[k].ptr)
            status = hry_fail(error, HURRAY_ERR_NULL_POINTER, "dst", HRY_NO_OFFSET, "the memory for buffer %u is NULL", (unsigned)k);
        else if (dst[k].len < size)
            status = hry_fail(error, HURRAY_ERR_BUFFER_TOO_SMALL, "dst", HRY_NO_OFFSET, "buffer %u has %llu bytes, the memory for it %zu",
                              (unsigned)k, (unsigned long long)size, dst[k].len);
        if (status != HURRAY_OK) {
            error->buffer_index = k;
            return status;
        }
    }
    return HURRAY_OK;
}

static HurrayStatus read_buffer_into(HurrayFileReader *reader, uint64_t index, const HurrayDescriptor *descriptor, uint32_t k, uint8_t *dst,
                                     HurrayError *error) {
    const HryCatalogue *catalogue = hry_file_reader_core_context(reader->core)->catalogue;
    uint32_t wanted = 0, sum = 0;
    uint64_t offset;
    bool check;
    if (!hry_catalogue_buffer_offset(catalogue, &catalogue->entries[index], descriptor, k, &offset))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "byte_size", HRY_NO_OFFSET, "the buffers' sizes do not fit 64 bits");
    HurrayStatus status = wanted_sum(reader, index, descriptor, k, &check, &wanted, error);
    if (status == HURRAY_OK)
        status = read_direct(&reader->source->transport, offset, dst, (size_t)descriptor->buffers[k].byte_size, check ? &sum : NULL, error);
    if (status == HURRAY_OK && check && sum != wanted) status = fail_sum(error, k, offset, sum, wanted);
    if (status != HURRAY_OK) error->buffer_index = k;
    return status;
}

HurrayStatus hurray_file_reader_read_into(HurrayFileReader *reader, const void *name, size_t len, const HurrayMemory *dst, size_t count) {
    HurrayDescriptor *descriptor = NULL;
    HurrayError error;
    uint64_t index = 0;
    if (!reader || (!name && len) || (!dst && count)) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&reader->handle);
    if (status != HURRAY_OK) return status;
    hry_error_clear(&error);
    status = hurray_file_reader_core_begin_descriptor(reader->core, name, len);
    if (status == HURRAY_OK) status = drive(reader->core, &reader->source->transport);
    if (status == HURRAY_OK) status = hurray_file_reader_core_take_descriptor(reader->core, &descriptor);
    if (status == HURRAY_OK) {
        hurray_file_reader_core_find(reader->core, name, len, &index);
        status = check_memory(descriptor, dst, count, &error);
        for (uint32_t k = 0; k < count && status == HURRAY_OK; k++)
            status = read_buffer_into(reader, index, descriptor, k, dst[k].ptr, &error);
        if (status != HURRAY_OK) status = hry_file_reader_core_fail(reader->core, &error, index);
        hry_descriptor_unref(descriptor);
    }
    return leave(reader, status);
}

/* Pieces of one buffer from first to last sum up to what is stored; the last one compares. */
static HurrayStatus sum_piece(HurrayFileReader *reader, uint64_t index, uint32_t k, const HurrayDescriptor *descriptor, uint64_t offset,
                              uint32_t sum, size_t len, uint32_t wanted, HurrayError *error) {
    reader->sum_index = index;
    reader->sum_buffer = k;
    reader->sum_at = offset + len;
    reader->sum = sum;
    if (reader->sum_at < descriptor->buffers[k].byte_size) return HURRAY_OK;
    reader->sum_index = HURRAY_NONE;
    return sum == wanted ? HURRAY_OK : fail_sum(error, k, HRY_NO_OFFSET, sum, wanted);
}

static HurrayStatus read_piece(HurrayFileReader *reader, uint64_t index, const HurrayDescriptor *descriptor, uint32_t k, uint64_t offset,
                               uint8_t *dst, size_t len, HurrayError *error) {
    const HryCatalogue *catalogue = hry_file_reader_core_context(reader->core)->catalogue;
    uint32_t wanted = 0;
    uint64_t start;
    bool check;
    if (k >= descriptor->buffer_count)
        return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "buffer", HRY_NO_OFFSET, "buffer %u was asked for, the tensor has %u",
                        (unsigned)k, (unsigned)descriptor->buffer_count);
    uint64_t size = descriptor->buffers[k].byte_size;
    if (offset > size || len > size - offset)
        return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "offset", HRY_NO_OFFSET,
                        "bytes %llu and %zu on were asked for of a buffer of %llu", (unsigned long long)offset, len,
                        (unsigned long long)size);
    if (!hry_catalogue_buffer_offset(catalogue, &catalogue->entries[index], descriptor, k, &start))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "byte_size", HRY_NO_OFFSET, "the buffers' sizes do not fit 64 bits");
    HurrayStatus status = wanted_sum(reader, index, descriptor, k, &check, &wanted, error);
    if (status != HURRAY_OK || len == 0) return status;
    bool follows = reader->sum_index == index && reader->sum_buffer == k && reader->sum_at == offset;
    uint32_t sum = offset ? reader->sum : 0;
    check = check && (offset == 0 || follows);
    status = read_direct(&reader->source->transport, start + offset, dst, len, check ? &sum : NULL, error);
    return status == HURRAY_OK && check ? sum_piece(reader, index, k, descriptor, offset, sum, len, wanted, error) : status;
}

HurrayStatus hurray_file_reader_read_bytes(HurrayFileReader *reader, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len) {
    HurrayDescriptor *descriptor = NULL;
    HurrayError error;
    if (!reader || (!dst && len)) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&reader->handle);
    if (status != HURRAY_OK) return status;
    hry_error_clear(&error);
    status = describe(reader, i, &descriptor);
    if (status == HURRAY_OK) {
        status = read_piece(reader, i, descriptor, buffer, offset, dst, len, &error);
        if (status != HURRAY_OK) {
            if (error.buffer_index == UINT32_MAX) error.buffer_index = buffer;
            status = hry_file_reader_core_fail(reader->core, &error, i);
        }
        hry_descriptor_unref(descriptor);
    }
    return leave(reader, status);
}
