#include "core/file_reader.h"

#include <string.h>

#include "base/handle.h"
#include "base/options.h"
#include "core/composite_assembler.h"
#include "core/file_open.h"
#include "core/step.h"

#define KNOWN_FLAGS (HURRAY_READ_CROSS_MACHINE | HURRAY_READ_NO_PRIVATE)

/* What a core and its forks have in common; unchanging after READY. */
typedef struct Shared {
    HurrayAllocator allocator;
    atomic_uint references;
    HurrayDestinationAlloc destination;
    HryFetchContext context;
    HryCatalogue *catalogue;
    uint32_t max_depth;
    uint8_t *label;
    size_t label_len;
} Shared;

struct HurrayFileReaderCore {
    HryHandle handle;
    Shared *shared;
    HryFileOpen open;
    bool opened;
    uint32_t unusable;
    uint32_t job;          /* the kind of step that ends it; 0: idle */
    bool done;             /* its result waits to be taken */
    uint64_t index, place; /* the entry being fetched, and where it stands in write order */
    HryFetch fetch;
    HryAssembler assembler;
    HurrayDescriptor *descriptor; /* results */
    HurrayTensor *tensor;
    HurrayItem *item;
    uint64_t known_index; /* the descriptor read last */
    HurrayDescriptor *known;
    uint64_t offsets[UINT8_MAX]; /* of the buffers in the last tensor_info */
};

/* ---- life ---- */

static void shared_unref(Shared *shared) {
    if (atomic_fetch_sub_explicit(&shared->references, 1, memory_order_acq_rel) != 1) return;
    hry_destination_drop(&shared->destination);
    hry_catalogue_unref(shared->catalogue);
    HurrayAllocator allocator = shared->allocator;
    hry_free(&allocator, shared->label, shared->label_len);
    hry_free(&allocator, shared, sizeof *shared);
}

static HurrayStatus resolve(const HurrayFileReaderOptions *user, HurrayFileReaderOptions *options, HurrayAllocator *allocator,
                            HurrayError *error) {
    HurrayStatus status = hry_options_read(options, sizeof *options, sizeof *options, user, "HurrayFileReaderOptions", error);
    if (status != HURRAY_OK) return status;
    if (options->flags & ~KNOWN_FLAGS)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "flags", HRY_NO_OFFSET, "flags 0x%x has bits that are no HURRAY_READ_ flag",
                        (unsigned)options->flags);
    if (options->verify_data > HURRAY_VERIFY_REQUIRED)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "verify_data", HRY_NO_OFFSET,
                        "verify_data is %u, expected a HURRAY_VERIFY_ value", (unsigned)options->verify_data);
    if (!options->label && options->label_len)
        return hry_fail(error, HURRAY_ERR_NULL_POINTER, "label", HRY_NO_OFFSET, "label is NULL but label_len is %zu", options->label_len);
    if (!options->max_descriptor_bytes) options->max_descriptor_bytes = HRY_DEFAULT_MAX_DESCRIPTOR;
    if (!options->max_tensor_bytes) options->max_tensor_bytes = UINT64_MAX;
    status = hry_tree_depth_option(options->max_composite_depth, &options->max_composite_depth, error);
    return status == HURRAY_OK ? hry_alloc_resolve(options->allocator, allocator, error) : status;
}

static HurrayStatus shared_new(const HurrayFileReaderOptions *options, const HurrayAllocator *allocator, Shared **out, HurrayError *error) {
    Shared *shared = hry_alloc(allocator, sizeof *shared);
    if (!shared) return hry_fail_memory(error, "a file reader", sizeof *shared);
    shared->allocator = *allocator;
    atomic_init(&shared->references, 1);
    if (options->label_len) {
        shared->label = hry_alloc_raw(allocator, options->label_len);
        if (!shared->label) {
            hry_free(allocator, shared, sizeof *shared);
            return hry_fail_memory(error, "a label", options->label_len);
        }
        memcpy(shared->label, options->label, options->label_len);
        shared->label_len = options->label_len;
    }
    shared->max_depth = options->max_composite_depth;
    shared->context = (HryFetchContext){.allocator = *allocator,
                                        .destination = &shared->destination,
                                        .max_descriptor_bytes = options->max_descriptor_bytes,
                                        .max_tensor_bytes = options->max_tensor_bytes,
                                        .decode_flags = (options->flags & HURRAY_READ_NO_PRIVATE ? HRY_DECODE_NO_PRIVATE : 0u) |
                                                        (options->flags & HURRAY_READ_CROSS_MACHINE ? HRY_DECODE_CROSS_MACHINE : 0u),
                                        .verify = options->verify_data,
                                        .io_alignment = 1};
    HurrayStatus status = hry_destination_hold(options->destination, &shared->allocator, &shared->destination, error);
    if (status == HURRAY_OK)
        *out = shared;
    else {
        hry_free(allocator, shared->label, shared->label_len);
        hry_free(allocator, shared, sizeof *shared);
    }
    return status;
}

/* Takes over the reference to shared on OK. */
static HurrayStatus core_new(Shared *shared, HurrayFileReaderCore **out, HurrayError *error) {
    HurrayFileReaderCore *core = hry_alloc(&shared->allocator, sizeof *core);
    if (!core) return hry_fail_memory(error, "a file reader", sizeof *core);
    hry_handle_init(&core->handle);
    core->shared = shared;
    hry_assembler_init(&core->assembler, &shared->allocator, shared->max_depth);
    *out = core;
    return HURRAY_OK;
}

HurrayStatus hurray_file_reader_core_new(uint64_t file_size, const HurrayFileReaderOptions *user, HurrayFileReaderCore **out,
                                         HurrayError *caller) {
    HurrayError error;
    HurrayAllocator allocator;
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    Shared *shared = NULL;
    hry_error_clear(&error);
    HurrayStatus status = out ? resolve(user, &options, &allocator, &error)
                              : hry_fail(&error, HURRAY_ERR_NULL_POINTER, "out", HRY_NO_OFFSET, "the out pointer is NULL");
    if (status == HURRAY_OK) status = shared_new(&options, &allocator, &shared, &error);
    if (status == HURRAY_OK) status = core_new(shared, out, &error);
    if (status != HURRAY_OK) {
        if (shared) shared_unref(shared);
        return hry_error_export(caller, &error);
    }
    HryOpenLimits limits = {
        .max_tensors = options.max_tensors, .max_index_bytes = options.max_index_bytes, .max_kv_bytes = options.max_kv_bytes};
    hry_file_open_begin(&(*out)->open, file_size, &limits, &allocator);
    return HURRAY_OK;
}

HurrayStatus hurray_file_reader_core_fork(const HurrayFileReaderCore *core, HurrayFileReaderCore **out, HurrayError *caller) {
    HurrayError error;
    hry_error_clear(&error);
    HurrayStatus status = HURRAY_OK;
    if (!core || !out)
        status = hry_fail(&error, HURRAY_ERR_NULL_POINTER, core ? "out" : "core", HRY_NO_OFFSET, "core or out is NULL");
    else if (core->unusable)
        status = hry_fail_unusable(&error, core->unusable);
    else if (!core->opened)
        status = hry_fail(&error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET, "the file is not open yet; fork after READY");
    if (status == HURRAY_OK) status = core_new(core->shared, out, &error);
    if (status != HURRAY_OK) return hry_error_export(caller, &error);
    atomic_fetch_add_explicit(&core->shared->references, 1, memory_order_relaxed);
    (*out)->opened = true;
    return HURRAY_OK;
}

/* Ends the job and drops a result that nobody took. */
static void end_job(HurrayFileReaderCore *core) {
    hry_fetch_abandon(&core->fetch);
    hry_assembler_restart(&core->assembler);
    hry_descriptor_unref(core->descriptor);
    core->descriptor = NULL;
    hurray_tensor_destroy(&core->tensor);
    hurray_item_destroy(&core->item);
    core->job = 0;
    core->done = false;
}

HurrayStatus hurray_file_reader_core_destroy(HurrayFileReaderCore **core) {
    if (!core) return HURRAY_ERR_NULL_POINTER;
    HurrayFileReaderCore *gone = *core;
    *core = NULL;
    if (!gone) return HURRAY_OK;
    end_job(gone);
    hry_file_open_clear(&gone->open);
    hry_assembler_clear(&gone->assembler);
    hry_descriptor_unref(gone->known);
    Shared *shared = gone->shared;
    hry_free(&shared->allocator, gone, sizeof *gone);
    shared_unref(shared);
    return HURRAY_OK;
}

/* ---- failures ---- */

static HurrayStatus leave(HurrayFileReaderCore *core, HurrayStatus status) {
    const Shared *shared = core->shared;
    if (status < 0 && shared->label && core->handle.error.code == status && core->handle.error.source[0] == 0)
        hry_error_set_source(&core->handle.error, shared->label, shared->label_len, 0);
    return hry_handle_leave(&core->handle, status);
}

static void name_tensor(HurrayFileReaderCore *core, uint64_t index) {
    const HryEntry *entry = &core->shared->catalogue->entries[index];
    hry_error_set_tensor(&core->handle.error, entry->name, entry->name_len, index);
}

static HurrayStatus job_failed(HurrayFileReaderCore *core, HurrayStatus status) {
    name_tensor(core, core->index);
    end_job(core);
    return status;
}

static HurrayStatus open_failed(HurrayFileReaderCore *core, HurrayStatus status) {
    hry_file_open_clear(&core->open);
    core->unusable = HURRAY_UNUSABLE_FAILED_OPEN;
    return status;
}

HurrayStatus hry_file_reader_core_fail(HurrayFileReaderCore *core, const HurrayError *error, uint64_t index) {
    core->handle.error = *error;
    if (index == HURRAY_NONE && core->job) index = core->index;
    if (index != HURRAY_NONE && core->opened) name_tensor(core, index);
    if (core->opened) end_job(core);
    if (error->code == HURRAY_ERR_INVALID_REPORT) core->unusable = HURRAY_UNUSABLE_LOST_READ_COUNT;
    if (core->shared->label) hry_error_set_source(&core->handle.error, core->shared->label, core->shared->label_len, 0);
    return error->code;
}

/* ---- the machine ---- */

static HurrayStatus begin_entry(HurrayFileReaderCore *core, uint64_t index, HurrayDescriptor *known) {
    core->index = index;
    return hry_fetch_begin(&core->fetch, &core->shared->context, index, known, &core->handle.error);
}

static HurrayStatus step_open(HurrayFileReaderCore *core, HurrayStep *step) {
    Shared *shared = core->shared;
    HurrayStatus status = hry_file_open_step(&core->open, step, &shared->catalogue, &core->handle.error);
    if (status != HURRAY_OK) return open_failed(core, status);
    if (step->kind == HURRAY_STEP_READY) {
        shared->context.catalogue = shared->catalogue;
        core->opened = true;
    }
    return HURRAY_OK;
}

/* The descriptor is there: the end of a descriptor job, else the payload may be asked for. */
static HurrayStatus have_descriptor(HurrayFileReaderCore *core) {
    HurrayDescriptor *descriptor = core->fetch.descriptor;
    HurrayError *error = &core->handle.error;
    if (core->known != descriptor) {
        hry_descriptor_unref(core->known);
        core->known = hry_descriptor_ref(descriptor);
    }
    core->known_index = core->index;
    if (core->job == HURRAY_STEP_DESCRIPTOR) {
        core->descriptor = hry_descriptor_ref(descriptor);
        hry_fetch_abandon(&core->fetch);
        core->done = true;
        return HURRAY_OK;
    }
    if (core->job == HURRAY_STEP_COMPOSITE) {
        if (!hry_assembler_is_open(&core->assembler) && !hry_descriptor_is_head(descriptor))
            return hry_fail(error, HURRAY_ERR_NOT_COMPOSITE, "layout_tag", core->shared->catalogue->entries[core->index].descriptor_offset,
                            "the tensor is not the head of a composite (its layout is %u); read it as a tensor",
                            (unsigned)descriptor->layout_tag);
        HurrayStatus status = hry_assembler_test(&core->assembler, descriptor, error);
        if (status != HURRAY_OK) return status;
    }
    return hry_fetch_payload(&core->fetch, error);
}

static HurrayStatus have_tensor(HurrayFileReaderCore *core, HurrayTensor *tensor) {
    const HryCatalogue *catalogue = core->shared->catalogue;
    HurrayError *error = &core->handle.error;
    if (core->job == HURRAY_STEP_TENSOR) {
        core->tensor = tensor;
        core->done = true;
        return HURRAY_OK;
    }
    const HryEntry *entry = &catalogue->entries[core->index];
    HurrayStatus status = hry_assembler_push(&core->assembler, &tensor, entry->name, entry->name_len, &core->item, error);
    if (status != HURRAY_OK) {
        hurray_tensor_destroy(&tensor);
        return status;
    }
    if (core->item) {
        core->done = true;
        return HURRAY_OK;
    }
    if (++core->place == catalogue->entry_count) return hry_assembler_end(&core->assembler, error);
    return begin_entry(core, hry_catalogue_in_write_order(catalogue, core->place), NULL);
}

static HurrayStatus step_job(HurrayFileReaderCore *core, HurrayStep *step) {
    while (!core->done) {
        HurrayTensor *tensor = NULL;
        HurrayStatus status = hry_fetch_step(&core->fetch, step, &tensor, &core->handle.error);
        if (status == HURRAY_OK && step->kind == HURRAY_STEP_DESCRIPTOR)
            status = have_descriptor(core);
        else if (status == HURRAY_OK && step->kind == HURRAY_STEP_TENSOR)
            status = have_tensor(core, tensor);
        else if (status == HURRAY_OK)
            return HURRAY_OK;
        if (status != HURRAY_OK) return job_failed(core, status);
    }
    *step = hry_step(core->job, 0, 0, 0);
    return HURRAY_OK;
}

HurrayStatus hurray_file_reader_core_step(HurrayFileReaderCore *core, HurrayStep *out) {
    if (!core || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    HurrayStep step = {0};
    if (core->unusable)
        status = hry_fail_unusable(&core->handle.error, core->unusable);
    else if (!core->opened)
        status = step_open(core, &step);
    else if (core->job)
        status = step_job(core, &step);
    else
        step = hry_step(HURRAY_STEP_READY, 0, 0, 0);
    if (status == HURRAY_OK) *out = step;
    return leave(core, status);
}

/* What is asked for at present; false: nothing. */
static bool asked(const HurrayFileReaderCore *core, HurrayWindow *out) {
    if (core->unusable) return false;
    if (core->opened) return core->job && !core->done && hry_fetch_window(&core->fetch, out);
    uint8_t *dst;
    size_t len;
    if (!hry_file_open_rest(&core->open, &dst, &len)) return false;
    *out = (HurrayWindow){.struct_size = sizeof *out, .len = len, .source_offset = core->open.offset + core->open.filled, .ptr = dst};
    return true;
}

HurrayStatus hurray_file_reader_core_input_window(HurrayFileReaderCore *core, HurrayWindow *out) {
    if (!core || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayWindow window;
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    if (asked(core, &window)) {
        window.token = NULL; /* the destination's business */
        *out = window;
    } else
        status = hry_fail_not_asked(&core->handle.error, core->unusable, "RANGE");
    return leave(core, status);
}

HurrayStatus hurray_file_reader_core_input_dst(HurrayFileReaderCore *core, uint8_t **ptr, size_t *len) {
    if (!core || !ptr || !len) return HURRAY_ERR_NULL_POINTER;
    HurrayWindow window;
    HurrayStatus status = hurray_file_reader_core_input_window(core, &window);
    if (status != HURRAY_OK) return status;
    *ptr = window.ptr;
    *len = (size_t)window.len;
    return HURRAY_OK;
}

static HurrayStatus report(HurrayFileReaderCore *core, size_t n) {
    HurrayError *error = &core->handle.error;
    HurrayWindow window;
    if (!asked(core, &window)) return hry_fail_not_asked(error, core->unusable, "RANGE");
    if (n > window.len) return hry_fail_report(error, window.source_offset, n, window.len);
    HurrayStatus status;
    if (!core->opened) {
        status = hry_file_open_report(&core->open, n, error);
        return status == HURRAY_OK ? status : open_failed(core, status);
    }
    status = n ? hry_fetch_report(&core->fetch, n, error) : hry_fetch_end_of_file(&core->fetch, error);
    return status == HURRAY_OK ? status : job_failed(core, status);
}

HurrayStatus hurray_file_reader_core_report_filled(HurrayFileReaderCore *core, size_t n) {
    if (!core) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    return leave(core, report(core, n));
}

/* ---- jobs ---- */

/* Usable and open? A job in progress is abandoned: every begin starts from the index. */
static HurrayStatus check_idle(HurrayFileReaderCore *core) {
    if (core->unusable) return hry_fail_unusable(&core->handle.error, core->unusable);
    if (!core->opened)
        return hry_fail(&core->handle.error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET, "the file is not open yet: step until READY");
    end_job(core);
    return HURRAY_OK;
}

static HurrayStatus begin_at(HurrayFileReaderCore *core, uint32_t kind, uint64_t index, HurrayDescriptor *known) {
    HurrayStatus status = begin_entry(core, index, known);
    if (status != HURRAY_OK) return job_failed(core, status);
    core->place = hry_catalogue_write_place(core->shared->catalogue, index);
    core->job = kind;
    return HURRAY_OK;
}

static HurrayStatus begin(HurrayFileReaderCore *core, uint32_t kind, const void *name, size_t len) {
    uint64_t index;
    HurrayStatus status = check_idle(core);
    if (status != HURRAY_OK) return status;
    if (!hry_catalogue_find(core->shared->catalogue, name, len, &index)) {
        hry_fail(&core->handle.error, HURRAY_ERR_NOT_FOUND, "name", HRY_NO_OFFSET, "the file has no tensor of this name; it has %zu others",
                 core->shared->catalogue->entry_count);
        hry_error_set_tensor(&core->handle.error, name, len, HURRAY_NONE);
        return HURRAY_ERR_NOT_FOUND;
    }
    return begin_at(core, kind, index, NULL);
}

#define PUBLIC_BEGIN(what, kind)                                                                                                           \
    HurrayStatus hurray_file_reader_core_begin_##what(HurrayFileReaderCore *core, const void *name, size_t len) {                          \
        if (!core || (!name && len)) return HURRAY_ERR_NULL_POINTER;                                                                       \
        HurrayStatus status = hry_handle_enter(&core->handle);                                                                             \
        if (status != HURRAY_OK) return status;                                                                                            \
        return leave(core, begin(core, kind, name, len));                                                                                  \
    }
PUBLIC_BEGIN(descriptor, HURRAY_STEP_DESCRIPTOR)
PUBLIC_BEGIN(tensor, HURRAY_STEP_TENSOR)
PUBLIC_BEGIN(composite, HURRAY_STEP_COMPOSITE)

HurrayStatus hry_file_reader_core_begin_at(HurrayFileReaderCore *core, uint32_t kind, uint64_t index) {
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    status = check_idle(core);
    if (status == HURRAY_OK && index >= core->shared->catalogue->entry_count)
        status = hry_fail(&core->handle.error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "index", HRY_NO_OFFSET,
                          "tensor %llu was asked for, the file has %zu", (unsigned long long)index, core->shared->catalogue->entry_count);
    if (status == HURRAY_OK) status = begin_at(core, kind, index, core->known_index == index ? core->known : NULL);
    return leave(core, status);
}

#define PUBLIC_TAKE(what, kind, type, member)                                                                                              \
    HurrayStatus hurray_file_reader_core_take_##what(HurrayFileReaderCore *core, type **out) {                                             \
        if (!core || !out) return HURRAY_ERR_NULL_POINTER;                                                                                 \
        HurrayStatus status = hry_handle_enter(&core->handle);                                                                             \
        if (status != HURRAY_OK) return status;                                                                                            \
        if (core->job == (kind) && core->done) {                                                                                           \
            *out = core->member;                                                                                                           \
            core->member = NULL;                                                                                                           \
            end_job(core);                                                                                                                 \
        } else                                                                                                                             \
            status = hry_fail(&core->handle.error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET,                                            \
                              "there is no " #what " to take: step must have said so, and it can be taken once");                          \
        return leave(core, status);                                                                                                        \
    }
PUBLIC_TAKE(descriptor, HURRAY_STEP_DESCRIPTOR, HurrayDescriptor, descriptor)
PUBLIC_TAKE(tensor, HURRAY_STEP_TENSOR, HurrayTensor, tensor)
PUBLIC_TAKE(composite, HURRAY_STEP_COMPOSITE, HurrayItem, item)

HurrayStatus hurray_file_reader_core_abandon(HurrayFileReaderCore *core) {
    if (!core) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    if (core->opened)
        end_job(core);
    else if (!core->unusable)
        open_failed(core, HURRAY_OK); /* an open that is given up has no index either */
    return leave(core, HURRAY_OK);
}

/* ---- questions ---- */

static HurrayStatus check_open(const HurrayFileReaderCore *core) {
    if (core->opened) return HURRAY_OK;
    return core->unusable ? HURRAY_ERR_UNUSABLE : HURRAY_ERR_WRONG_STATE;
}

#define QUESTION(condition)                                                                                                                \
    if (!core || !(condition)) return HURRAY_ERR_NULL_POINTER;                                                                             \
    HurrayStatus status = check_open(core);                                                                                                \
    if (status != HURRAY_OK) return status;                                                                                                \
    const HryCatalogue *catalogue = core->shared->catalogue

HurrayStatus hurray_file_reader_core_tensor_count(const HurrayFileReaderCore *core, uint64_t *out) {
    QUESTION(out);
    *out = catalogue->entry_count;
    return HURRAY_OK;
}

HurrayStatus hurray_file_reader_core_tensor_name(const HurrayFileReaderCore *core, uint64_t i, const uint8_t **name, size_t *len) {
    QUESTION(name && len);
    if (i >= catalogue->entry_count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    *name = catalogue->entries[i].name;
    *len = catalogue->entries[i].name_len;
    return HURRAY_OK;
}

HurrayStatus hurray_file_reader_core_find(const HurrayFileReaderCore *core, const void *name, size_t len, uint64_t *i) {
    QUESTION(i && (name || len == 0));
    return hry_catalogue_find(catalogue, name, len, i) ? HURRAY_OK : HURRAY_ERR_NOT_FOUND;
}

HurrayStatus hurray_file_reader_core_kv_count(const HurrayFileReaderCore *core, uint64_t *out) {
    QUESTION(out);
    *out = catalogue->kv_count;
    return HURRAY_OK;
}

HurrayStatus hurray_file_reader_core_kv_entry(const HurrayFileReaderCore *core, uint64_t i, HurrayKvEntry *out) {
    QUESTION(out);
    if (i >= catalogue->kv_count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    *out = catalogue->kv[i];
    return HURRAY_OK;
}

HurrayStatus hurray_file_reader_core_kv_find(const HurrayFileReaderCore *core, const void *key, size_t len, HurrayKvEntry *out) {
    QUESTION(out && (key || len == 0));
    uint64_t i;
    if (!hry_catalogue_find_kv(catalogue, key, len, &i)) return HURRAY_ERR_NOT_FOUND;
    *out = catalogue->kv[i];
    return HURRAY_OK;
}

HurrayStatus hurray_file_reader_core_info(const HurrayFileReaderCore *core, HurraySourceInfo *out) {
    QUESTION(out);
    HurraySourceInfo info = {.struct_size = sizeof info,
                             .format = catalogue->format,
                             .major = catalogue->major,
                             .minor = catalogue->minor,
                             .flags = catalogue->flags,
                             .data_buffer_alignment = catalogue->data_buffer_alignment,
                             .byte_size = catalogue->byte_size,
                             .label = core->shared->label,
                             .label_len = core->shared->label_len};
    return hry_result_write(out, sizeof info, &info, sizeof info);
}

HurrayStatus hurray_file_reader_core_tensor_info(HurrayFileReaderCore *core, uint64_t i, HurrayTensorInfo *out) {
    QUESTION(out);
    if (i >= catalogue->entry_count) return HURRAY_ERR_INDEX_OUT_OF_BOUNDS;
    const HryEntry *entry = &catalogue->entries[i];
    HurrayTensorInfo info = {.struct_size = sizeof info,
                             .index = i,
                             .parent = HURRAY_NONE,
                             .name = entry->name,
                             .name_len = entry->name_len,
                             .descriptor_offset = entry->descriptor_offset,
                             .data_offset = entry->data_offset,
                             .data_length = entry->data_length};
    HurrayDescriptor *descriptor = entry->descriptor;
    if (!descriptor && core->known && core->known_index == i) descriptor = core->known;
    if (descriptor) {
        for (uint32_t k = 0; k < descriptor->buffer_count; k++)
            if (!hry_catalogue_buffer_offset(catalogue, entry, descriptor, k, &core->offsets[k])) return HURRAY_ERR_INVALID_LAYOUT;
        info.descriptor = descriptor;
        info.buffer_offsets = core->offsets;
        info.buffer_count = descriptor->buffer_count;
        if (hry_descriptor_is_head(descriptor)) info.member_count = descriptor->layout.member_count;
    }
    return hry_result_write(out, sizeof info, &info, sizeof info);
}

HurrayStatus hurray_file_reader_core_is_unusable(const HurrayFileReaderCore *core, uint32_t *reason) {
    if (!core || !reason) return HURRAY_ERR_NULL_POINTER;
    *reason = core->unusable;
    return HURRAY_OK;
}

HurrayStatus hurray_file_reader_core_poison(HurrayFileReaderCore *core, uint32_t reason) {
    if (!core) return HURRAY_ERR_NULL_POINTER;
    if (reason == HURRAY_USABLE || reason > HURRAY_UNUSABLE_POISONED) return HURRAY_ERR_INVALID_ARGUMENT;
    HurrayStatus status = hry_handle_enter(&core->handle);
    if (status != HURRAY_OK) return status;
    end_job(core);
    if (!core->unusable) core->unusable = reason;
    return leave(core, HURRAY_OK);
}

const HurrayError *hurray_file_reader_core_last_error(const HurrayFileReaderCore *core) { return core ? &core->handle.error : NULL; }

void hry_file_reader_core_set_io_alignment(HurrayFileReaderCore *core, uint32_t io_alignment) {
    core->shared->context.io_alignment = io_alignment ? io_alignment : 1;
}

const HryFetchContext *hry_file_reader_core_context(const HurrayFileReaderCore *core) { return &core->shared->context; }
