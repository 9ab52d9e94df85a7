#include "loader/load.h"

#include <sched.h>
#include <string.h>

#include "base/checked.h"
#include "loader/targets.h"

#define DEFAULT_CHUNK (UINT64_C(4) << 20)
#define LEAST_CHUNK (UINT64_C(4) << 10)
#define MOST_CHUNK (UINT64_C(1) << 30)
#define MOST_THREADS 16u
#define COLD_READERS 8u                   /* what one drive wants in flight */
#define ALONE_BYTES (UINT64_C(512) << 10) /* less than this is read before a thread has started */
#define WAIT_MS 50u
#define MOST_DEPTH 1024u
#define RING_DEPTH 16u
#define MEMORY_ALIGNMENT 64u /* of buffers in host memory, at least */

static uint32_t cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (uint32_t)count;
}

static bool reads_directly(const HryLoad *load) {
    for (uint32_t s = 0; s < load->io_count; s++)
        if (load->ios[s].direct_fd >= 0 && !load->ios[s].bounce) return true;
    return false;
}

/* New host memory is cleared by whoever reads into it first: more work than one thread should have. */
static bool wants_many(const HryLoad *load) {
    uint32_t threads = load->loader->options.threads;
    for (size_t t = 0; t < load->loader->target_count; t++)
        if (load->loader->targets[t].kind == HRY_TARGET_HOST) return threads == 0 || threads >= COLD_READERS;
    return threads == 1;
}

/* io_uring where it was asked for, or where cold files are read directly into memory that is there: then one thread keeps the disk busy.
 * Warm files are copied by the processor, which threads do faster. */
static bool wants_ring(const HryLoad *load) {
    const HurrayLoaderOptions *o = &load->loader->options;
    bool by_fd = false;
    for (uint32_t s = 0; s < load->io_count; s++) by_fd |= load->ios[s].by_fd;
    return by_fd && (o->io == HURRAY_IO_URING || (o->io == HURRAY_IO_AUTO && reads_directly(load) && !wants_many(load)));
}

static uint32_t reader_count(const HryLoad *load) {
    uint32_t threads = load->loader->options.threads;
    if (threads) return threads == 1 ? 0 : threads < 256 ? threads : 256;
    if (load->loader->prepared.payload_bytes < ALONE_BYTES) return 0;
    threads = cores() < MOST_THREADS ? cores() : MOST_THREADS;
    for (uint32_t s = 0; s < load->io_count; s++)
        if (load->ios[s].by_fd && !load->ios[s].warm && !wants_ring(load) && threads < COLD_READERS) threads = COLD_READERS;
    return threads;
}

static void choose_ring(HryLoad *load) {
    if (!wants_ring(load)) return;
    uint32_t asked = load->loader->options.queue_depth, depth = asked == 0 ? RING_DEPTH : asked < MOST_DEPTH ? asked : MOST_DEPTH;
    if (hry_work_use_ring(load->work, depth, load->ring_reason, sizeof load->ring_reason)) load->depth = depth;
}

/* For cold files whose bytes cannot go to their place directly: a copy more, but the disk is the slower. */
static void choose_bounce(HryLoad *load) {
    bool bounce = false;
    for (uint32_t s = 0; s < load->io_count; s++) bounce |= load->ios[s].bounce;
    if (!bounce || (hry_budget_take(&load->budget, hry_work_bounce_bytes(load->work)) && hry_work_use_bounce(load->work))) return;
    for (uint32_t s = 0; s < load->io_count; s++) load->ios[s].bounce = false;
}

typedef struct Wanted {
    uint64_t bytes, fitting;
} Wanted;

static HurrayStatus open_ios(HryLoad *load, HurrayError *error) {
    HurrayLoader *loader = load->loader;
    Wanted *wanted;
    if (loader->source_count == 0) return HURRAY_OK;
    load->ios = hry_alloc_array(&load->allocator, loader->source_count, sizeof *load->ios);
    wanted = hry_alloc_array(&load->allocator, loader->source_count, sizeof *wanted);
    if (load->ios && wanted) {
        for (size_t p = 0; p < loader->prepared.count; p++) {
            HryLoaderSource *source;
            const HryEntry *entry = hry_loader_entry(loader, loader->prepared.tensors[p].index, &source);
            wanted[source - loader->sources].bytes += entry->data_length;
            if (entry->data_offset % MEMORY_ALIGNMENT == 0) wanted[source - loader->sources].fitting += entry->data_length;
        }
        for (; load->io_count < loader->source_count; load->io_count++) {
            const HryModelSource *model = loader->sources[load->io_count].model;
            hry_io_open(&load->ios[load->io_count], &model->transport, &loader->options, wanted[load->io_count].bytes,
                        wanted[load->io_count].fitting, model->catalogue->byte_size);
        }
    }
    bool made = load->ios && wanted;
    hry_free_array(&load->allocator, wanted, loader->source_count, sizeof *wanted);
    return made ? HURRAY_OK : hry_fail_memory(error, "the sources", loader->source_count * sizeof *load->ios);
}

typedef struct Coming {
    size_t target;
    uint8_t tag;
    int32_t index;
    uint64_t bytes, buffers;
} Coming;

static HurrayStatus count_coming(HryLoad *load, Coming **list, size_t *count, size_t *capacity, const Coming *more, HurrayError *error) {
    for (size_t c = *count; c-- > 0;)
        if ((*list)[c].target == more->target && (*list)[c].tag == more->tag && (*list)[c].index == more->index) {
            if (!hry_add_u64((*list)[c].bytes, more->bytes, &(*list)[c].bytes)) (*list)[c].bytes = UINT64_MAX;
            (*list)[c].buffers++;
            return HURRAY_OK;
        }
    if (!hry_grow(&load->allocator, (void **)list, capacity, *count + 1, sizeof **list))
        return hry_fail_memory(error, "the plan", sizeof **list);
    (*list)[(*count)++] = *more;
    return HURRAY_OK;
}

/* Tells every destination what comes, padding included, before anything else. */
static HurrayStatus reserve(HryLoad *load, HurrayError *error) {
    HurrayLoader *loader = load->loader;
    Coming *list = NULL;
    size_t count = 0, capacity = 0;
    HurrayStatus status = HURRAY_OK;
    for (size_t p = 0; status == HURRAY_OK && p < loader->prepared.count; p++) {
        const HryPlaced *placed = &loader->prepared.tensors[p];
        const HryWay *way = &loader->prepared.ways[placed->way];
        HryLoaderSource *source;
        HurrayDescriptor *descriptor;
        Coming more = {.index = way->device_index, .buffers = 1};
        hry_loader_entry(loader, placed->index, &source);
        status = hry_loader_describe(loader, placed->index, &descriptor, error);
        if (status == HURRAY_OK)
            status = hry_targets_for(loader, way, placed->into != 0, hry_load_wants_mapping(load, placed->index),
                                     (uint32_t)(source - loader->sources), &more.target, error);
        for (uint32_t k = 0; status == HURRAY_OK && k < descriptor->buffer_count; k++) {
            const HurrayBufferHandle *handle = &descriptor->buffers[k];
            more.tag = way->device_tag;
            if (handle->byte_size == 0) continue;
            if (!hry_align_up(handle->byte_size, hry_place_alignment(loader, more.tag, handle), &more.bytes))
                more.bytes = handle->byte_size;
            status = count_coming(load, &list, &count, &capacity, &more, error);
        }
    }
    for (size_t c = 0; status == HURRAY_OK && c < count; c++) {
        const HurrayDestinationAlloc *destination = &loader->targets[list[c].target].destination;
        if (!destination->reserve) continue;
        status = destination->reserve(destination->ctx, list[c].tag, list[c].index, list[c].bytes, list[c].buffers);
        if (status != HURRAY_OK && !hry_cuda_destination_failure(destination, error)) hry_fail_callback(error, status, HURRAY_ERR_DEVICE, "destination's reserve");
    }
    hry_free_array(&load->allocator, list, capacity, sizeof *list);
    return error->code < 0 ? error->code : status;
}

static void unlink_frozen(HryLoad *load) {
    HryItem *kept = NULL, *last = NULL;
    for (HryItem *item = load->frozen_first, *next; item; item = next) {
        next = item->next_frozen;
        if (item->order >= load->limit) continue;
        item->next_frozen = NULL;
        if (last)
            last->next_frozen = item;
        else
            kept = item;
        last = item;
    }
    load->frozen_first = kept;
    load->frozen_last = last;
}

/* Items from the limit on go as soon as nothing of them is out. */
static bool drop_unwanted(HryLoad *load) {
    bool did = false;
    unlink_frozen(load);
    for (HryItem *item = load->last, *previous; item && item->order >= load->limit; item = previous) {
        previous = item->previous;
        if (item->open) continue;
        hry_load_drop_item(load, item);
        did = true;
    }
    return did;
}

static void wait_for_destinations(HryLoad *load, uint32_t due_ms) {
    HurrayLoader *loader = load->loader;
    uint32_t waiting = 0, asked = 0;
    HurrayError error;
    uint64_t begin = hry_now_ns();
    for (size_t t = 0; t < loader->target_count; t++) waiting += loader->targets[t].waits || loader->targets[t].holds;
    for (size_t t = 0; t < loader->target_count && !load->stopped; t++) {
        const HryTarget *target = &loader->targets[t];
        if (!(target->waits || target->holds) || !target->destination.wait) continue;
        uint32_t ms = waiting > 1 ? 1 : due_ms < WAIT_MS ? due_ms : WAIT_MS;
        HurrayStatus status = target->destination.wait(target->destination.ctx, ms);
        asked++;
        if (status == HURRAY_OK || status == HURRAY_WAIT) continue;
        hry_fail_callback(&error, status, HURRAY_ERR_DEVICE, "destination's wait");
        hry_load_stop(load, &error);
    }
    uint64_t end = hry_now_ns();
    load->wait_ns += end - begin;
    hry_load_trace(load, HURRAY_STAGE_WAIT, begin, end, 0, HURRAY_NONE, UINT32_MAX, 0);
    if (asked || load->stopped) return;
    if (waiting)
        hry_fail(&error, HURRAY_ERR_UNSUPPORTED, "wait", HRY_NO_OFFSET,
                 "the destination answered WAIT and has no wait callback; give it one");
    else
        hry_fail(&error, HURRAY_ERR_INTERNAL, NULL, HRY_NO_OFFSET, "the load came to a halt with %zu tensors under way; please report it",
                 load->active);
    hry_load_stop(load, &error);
}

/* Nothing can be done at once: sleep until something may be. */
static void pause_load(HryLoad *load) {
    uint32_t due = hry_progress_due_ms(&load->progress, hry_now_ns());
    if (load->jobs_out && !load->blocked) {
        hry_work_wait(load->work, due);
        return;
    }
    if (!load->stopped && hry_load_freeze(load, true)) return;
    if (load->jobs_out)
        hry_work_wait(load->work, load->stopped ? UINT32_MAX : 1);
    else if (!load->stopped)
        wait_for_destinations(load, due);
}

static void run(HryLoad *load) {
    HurrayError error;
    for (;;) {
        if (!load->stopped && hry_loader_is_cancelled(load->loader)) {
            hry_fail_cancelled(&error);
            hry_load_stop(load, &error);
        }
        bool did = hry_load_reap(load);
        if (!load->stopped) did |= hry_load_freeze(load, false);
        if (!load->stopped) did |= hry_load_feed(load);
        hry_load_submit(load);
        if (load->failed) did |= drop_unwanted(load);
        hry_load_trace_copies(load);
        if (!load->stopped && hry_progress_tell(&load->progress, false, hry_now_ns(), &error) != HURRAY_OK) hry_load_stop(load, &error);
        if (!load->first && load->jobs_out == 0 && load->next >= load->limit) return;
        if (!did) pause_load(load);
    }
}

static HurrayStatus begin(HryLoad *load, HurrayError *error) {
    HurrayLoader *loader = load->loader;
    HurrayStatus status = open_ios(load, error);
    if (status == HURRAY_OK) status = hry_set_new(loader, &load->set, error);
    if (status != HURRAY_OK) return status;
    load->chunk = loader->options.chunk_bytes ? loader->options.chunk_bytes : DEFAULT_CHUNK;
    if (load->chunk < LEAST_CHUNK) load->chunk = LEAST_CHUNK;
    if (load->chunk > MOST_CHUNK) load->chunk = MOST_CHUNK;
    load->limit = loader->prepared.count;
    hry_progress_begin(&load->progress, &loader->options, loader->prepared.payload_bytes, loader->prepared.count, hry_now_ns());
    status = hry_progress_tell(&load->progress, true, hry_now_ns(), error);
    if (status == HURRAY_OK) status = reserve(load, error);
    uint32_t threads = reader_count(load);
    load->depth = loader->options.queue_depth ? loader->options.queue_depth : threads * 2;
    if (load->depth < 1 || threads == 0) load->depth = 1;
    if (load->depth > MOST_DEPTH) load->depth = MOST_DEPTH;
    if (status == HURRAY_OK) status = hry_work_new(&load->allocator, threads, load->depth, &load->work, error);
    if (status == HURRAY_OK) choose_ring(load);
    if (status == HURRAY_OK) choose_bounce(load);
    return status;
}

static HurrayStatus load_selected(HurrayLoader *loader, HurrayTensorSet **out, HurrayError *error) {
    HryLoad load = {.loader = loader, .allocator = loader->allocator, .budget = hry_budget(loader->options.memory_cap)};
    load.begin_ns = hry_now_ns();
    hry_stats_begin(loader);
    HurrayStatus status = hry_loader_is_cancelled(loader) ? hry_fail_cancelled(error) : hry_loader_prepare(loader, error);
    if (status == HURRAY_OK) status = begin(&load, error);
    if (status == HURRAY_OK) {
        run(&load);
        if (load.failed)
            *error = load.error;
        else
            hry_progress_tell(&load.progress, true, hry_now_ns(), error);
        status = error->code;
    }
    hry_stats_end(&load, hry_now_ns() - load.begin_ns);
    hry_work_destroy(&load.work);
    hry_load_free_pools(&load);
    for (uint32_t s = 0; s < load.io_count; s++) hry_io_close(&load.ios[s]);
    hry_free_array(&load.allocator, load.ios, loader->source_count, sizeof *load.ios);
    if (status == HURRAY_OK)
        *out = load.set;
    else
        hry_set_destroy(load.set);
    return status;
}

HurrayStatus hurray_loader_load(HurrayLoader *loader, HurrayTensorSet **out) {
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    HurrayTensorSet *set = NULL;
    status = hry_loader_check_usable(loader);
    if (status == HURRAY_OK) status = load_selected(loader, &set, &loader->handle.error);
    if (status == HURRAY_ERR_CANCELLED) atomic_store_explicit(&loader->cancelled, false, memory_order_relaxed);
    if (status == HURRAY_OK) *out = set;
    return hry_loader_leave(loader, status);
}
