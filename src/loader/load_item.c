#include "loader/load.h"

#include <string.h>

#include "loader/targets.h"

static const HryItem blank;

static HryItem *new_item(HryLoad *load) {
    HryItem *item = load->free_items;
    if (!item) return hry_alloc(&load->allocator, sizeof *item);
    load->free_items = item->next;
    *item = blank;
    return item;
}

HryOpenWindow *hry_load_new_window(HryLoad *load) {
    HryOpenWindow *window = load->free_windows;
    if (!window) return hry_alloc(&load->allocator, sizeof *window);
    load->free_windows = window->next;
    memset(window, 0, sizeof *window);
    return window;
}

void hry_load_free_window(HryLoad *load, HryOpenWindow *window) {
    window->next = load->free_windows;
    load->free_windows = window;
}

HryJob *hry_load_new_job(HryLoad *load) {
    HryJob *job = load->free_jobs;
    if (!job) return hry_alloc(&load->allocator, sizeof *job);
    load->free_jobs = job->next;
    job->run.count = 0;
    job->bytes = NULL;
    return job;
}

void hry_load_free_job(HryLoad *load, HryJob *job) {
    job->next = load->free_jobs;
    load->free_jobs = job;
}

void hry_load_free_pools(HryLoad *load) {
    while (load->free_items) {
        HryItem *item = load->free_items;
        load->free_items = item->next;
        hry_free(&load->allocator, item, sizeof *item);
    }
    while (load->free_windows) {
        HryOpenWindow *window = load->free_windows;
        load->free_windows = window->next;
        hry_free(&load->allocator, window, sizeof *window);
    }
    while (load->free_jobs) {
        HryJob *job = load->free_jobs;
        load->free_jobs = job->next;
        hry_free(&load->allocator, job, sizeof *job);
    }
}

/* A mapping is handed out only when it was asked for: io MMAP, or a reader who writes nothing and a file that is in memory already. */
bool hry_load_wants_mapping(const HryLoad *load, uint64_t tensor) {
    const HurrayLoaderOptions *o = &load->loader->options;
    HryLoaderSource *source;
    const HryEntry *entry = hry_loader_entry(load->loader, tensor, &source);
    const HryIo *io = &load->ios[source - load->loader->sources];
    if (!source->model->path || !io->by_fd || entry->side) return false;
    return o->io == HURRAY_IO_MMAP || (o->io == HURRAY_IO_AUTO && (o->flags & HURRAY_LOAD_READ_ONLY) && io->warm);
}

static bool wants_sum(const HryLoad *load, const HryItem *item, const HurrayDescriptor *descriptor, uint32_t k, uint32_t *stored) {
    const HryCatalogue *catalogue = item->source->model->catalogue;
    uint64_t entry = (uint64_t)(item->entry - catalogue->entries);
    return load->loader->options.verify_data != HURRAY_VERIFY_NONE && descriptor->buffers[k].byte_size &&
           hry_catalogue_sum(catalogue, entry, descriptor, k, stored);
}

static HurrayStatus fail_unchecked(uint32_t k, const char *why, HurrayError *error) {
    hry_fail(error, HURRAY_ERR_CHECKSUM, NULL, HRY_NO_OFFSET,
             "buffer %u cannot be checked: %s; load without verify_data REQUIRED, or convert the file with checksums", k, why);
    error->buffer_index = k;
    return error->code;
}

static HurrayStatus make_fills(HryLoad *load, HryItem *item, const HurrayDescriptor *descriptor, bool *reads_back, HurrayError *error) {
    *reads_back = false;
    if (descriptor->buffer_count == 0) return HURRAY_OK;
    item->fills = hry_alloc_array(&load->allocator, descriptor->buffer_count, sizeof *item->fills);
    if (!item->fills) return hry_fail_memory(error, "a tensor's buffers", descriptor->buffer_count * sizeof *item->fills);
    item->fill_count = descriptor->buffer_count;
    for (uint32_t k = 0; k < item->fill_count; k++) {
        HryLoadFill *fill = &item->fills[k];
        fill->check = wants_sum(load, item, descriptor, k, &fill->stored);
        *reads_back |= fill->check;
        bool own_sum = item->entry->side && item->source->model->catalogue->foreign[item->entry->side - 1].has_crc32;
        if (load->loader->options.verify_data == HURRAY_VERIFY_REQUIRED && !fill->check && !own_sum && descriptor->buffers[k].byte_size)
            return fail_unchecked(k, "no checksum is stored for it", error);
    }
    return HURRAY_OK;
}

static void fill_request(const HryLoad *load, const HryItem *item, const HryWay *way, bool reads_back, HurrayDestinationRequest *request) {
    *request = (HurrayDestinationRequest){.struct_size = sizeof *request,
                                          .flags = reads_back ? HURRAY_REQUEST_WILL_READ : 0,
                                          .source_index = (uint32_t)(item->source - load->loader->sources),
                                          .alignment = (uint32_t)load->loader->options.device_alignment,
                                          .io_alignment = item->io->direct_fd >= 0 && !item->io->bounce ? item->io->direct_alignment
                                                                                                        : item->io->transport->io_alignment,
                                          .device_index = way->device_index,
                                          .device_tag = way->device_tag,
                                          .sync_mode = way->sync_mode,
                                          .memory_class = way->memory_class,
                                          .consumer_stream = way->consumer_stream,
                                          .copy_stream = way->copy_stream,
                                          .name = item->entry->name,
                                          .name_len = item->entry->name_len,
                                          .user = item->placed->user};
}

static HurrayStatus begin(HryLoad *load, HryItem *item, HurrayError *error) {
    HurrayLoader *loader = load->loader;
    const HryWay *way = &loader->prepared.ways[item->placed->way];
    HurrayDestinationRequest request;
    HurrayDescriptor *descriptor;
    uint64_t offsets[UINT8_MAX];
    bool reads_back;
    HurrayStatus status = hry_loader_describe(loader, item->placed->index, &descriptor, error);
    if (status == HURRAY_OK)
        status = hry_targets_for(loader, way, item->placed->into != 0, hry_load_wants_mapping(load, item->placed->index),
                                 (uint32_t)(item->source - loader->sources), &item->target, error);
    if (status == HURRAY_OK) status = make_fills(load, item, descriptor, &reads_back, error);
    if (status != HURRAY_OK) return status;
    fill_request(load, item, way, reads_back, &request);
    for (uint32_t k = 0; k < descriptor->buffer_count; k++)
        offsets[k] = hry_loader_buffer_offset(loader, item->placed->index, descriptor, k);
    status = hry_item_begin(&item->to, &loader->targets[item->target].destination, descriptor, offsets, &request, way->placed,
                            &load->allocator, error);
    if (status == HURRAY_OK && item->placed->into) item->to.into = &loader->prepared.into[item->placed->into - 1];
    return status;
}

HurrayStatus hry_load_begin_item(HryLoad *load, HryItem **out) {
    HurrayLoader *loader = load->loader;
    HurrayError error;
    HryItem *item = new_item(load);
    if (!item) return hry_fail_memory(&load->error, "a tensor being loaded", sizeof *item);
    item->order = load->next;
    item->placed = &loader->prepared.tensors[load->next];
    item->entry = hry_loader_entry(loader, item->placed->index, &item->source);
    item->io = &load->ios[item->source - loader->sources];
    item->previous = load->last;
    if (load->last)
        load->last->next = item;
    else
        load->first = item;
    load->last = item;
    if (!load->unfed) load->unfed = item;
    load->active++;
    *out = item;
    hry_error_clear(&error);
    if (begin(load, item, &error) != HURRAY_OK) hry_load_fail(load, item, &error);
    return HURRAY_OK;
}

void hry_load_end_item(HryLoad *load, HryItem *item) {
    hry_free_array(&load->allocator, item->fills, item->fill_count, sizeof *item->fills);
    if (item->bytes) {
        hry_byte_source_close(&item->bytes);
        hry_budget_give(&load->budget, HRY_CONVERT_BYTES);
    }
    if (load->unfed == item) load->unfed = item->next;
    if (item->previous)
        item->previous->next = item->next;
    else
        load->first = item->next;
    if (item->next)
        item->next->previous = item->previous;
    else
        load->last = item->previous;
    load->active--;
    item->next = load->free_items;
    load->free_items = item;
}

void hry_load_drop_item(HryLoad *load, HryItem *item) {
    for (uint32_t k = 0; k < item->fill_count; k++)
        if (item->fills[k].current) hry_load_free_window(load, item->fills[k].current); /* cut in part, nothing out */
    hry_item_discard(&item->to);
    hry_load_end_item(load, item);
}

/* A device's callbacks return a code; the text behind it is asked for. */
static void explain_device(HryLoad *load, const HryItem *item, HurrayError *error) {
    HurrayError why;
    uint32_t buffer = error->buffer_index;
    if (item->target >= load->loader->target_count || error->cause == HURRAY_OK) return;
    if (!hry_cuda_destination_failure(&load->loader->targets[item->target].destination, &why)) return;
    *error = why;
    error->buffer_index = buffer;
}

/* Of two failures the one that stands first in the files is told. */
void hry_load_fail(HryLoad *load, HryItem *item, const HurrayError *error) {
    bool first =
        !load->failed || item->order < load->error_order ||
        (item->order == load->error_order && (error->buffer_index < load->error.buffer_index ||
                                              (error->buffer_index == load->error.buffer_index && error->offset < load->error.offset)));
    if (item->order < load->limit) load->limit = item->order;
    if (load->stopped || !first) return;
    load->failed = true;
    load->error_order = item->order;
    load->error = *error;
    explain_device(load, item, &load->error);
    hry_loader_blame(load->loader, item->placed->index, &load->error);
}

void hry_load_stop(HryLoad *load, const HurrayError *error) {
    if (load->stopped) return;
    load->failed = load->stopped = true;
    load->error = *error;
    load->limit = 0;
    hry_work_stop(load->work);
}
