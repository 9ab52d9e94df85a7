#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/devices.h"
#include "base/options.h"
#include "base/ready_made.h"
#include "loader/load.h"

void hry_stats_begin(HurrayLoader *loader) {
    HurrayLoadStats none = HURRAY_LOAD_STATS_INIT;
    loader->stats = none;
    loader->path_count = 0;
}

static HryPath *find_path(const HurrayLoader *loader, uint32_t source, size_t target, bool mapped) {
    for (size_t p = loader->path_count; p-- > 0;) {
        HryPath *path = &loader->paths[p];
        if (path->stats.source_index == source && path->target == target && path->mapped == mapped) return path;
    }
    return NULL;
}

static HryPath *add_path(HryLoad *load, uint32_t source, size_t target, bool mapped, const HryWay *way) {
    HurrayLoader *loader = load->loader;
    const HryTarget *to = &loader->targets[target];
    if (!hry_grow(&loader->allocator, (void **)&loader->paths, &loader->path_capacity, loader->path_count + 1, sizeof *loader->paths))
        return NULL;
    HryPath *path = &loader->paths[loader->path_count++];
    memset(path, 0, sizeof *path);
    path->target = target;
    path->mapped = mapped;
    path->stats.struct_size = sizeof path->stats;
    path->stats.source_index = source;
    bool by_ring = load->ios[source].by_fd && hry_work_has_ring(load->work);
    path->stats.io = mapped ? HURRAY_IO_MMAP : by_ring ? HURRAY_IO_URING : HURRAY_IO_THREADS;
    path->stats.direct = HURRAY_OFF;
    path->stats.device_index = to->device_index;
    path->stats.device_tag = way->device_tag;
    path->stats.sync_mode = way->sync_mode;
    path->stats.memory_class = way->memory_class;
    path->stats.numa_node = -1;
    path->stats.threads = hry_work_threads(load->work) ? hry_work_threads(load->work) : 1;
    path->stats.queue_depth = load->depth;
    return path;
}

/* The row of one source and target, two where it maps some buffers and reads others; NULL: no memory for another row, which a load does
 * not fail for. */
HryPath *hry_load_path(HryLoad *load, const HryItem *item, uint32_t k) {
    HurrayLoader *loader = load->loader;
    const HryWay *way = &loader->prepared.ways[item->placed->way];
    uint32_t source = (uint32_t)(item->source - loader->sources), alignment = item->to.descriptor->buffers[k].alignment;
    bool maps = loader->targets[item->target].kind == HRY_TARGET_MAPPED, mapped = maps && item->to.buffers[k].prefilled;
    HryPath *path = find_path(loader, source, item->target, mapped);
    if (!path) path = add_path(load, source, item->target, mapped, way);
    if (path && maps && path->alignment < alignment) path->alignment = alignment;
    if (path && way->displaced && !path->displaced) {
        path->displaced = true;
        snprintf(path->reason, sizeof path->reason, "the file asks for device tag %u, memory class %u; there is none here, so to the host",
                 way->declared_tag, way->declared_class);
    }
    return path;
}

void hry_load_trace(HryLoad *load, uint32_t stage, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes, uint64_t tensor, uint32_t source,
                    uint32_t lane) {
    const HurrayLoaderOptions *o = &load->loader->options;
    if (!o->trace) return;
    HurrayTraceEvent event = {.struct_size = sizeof event,
                              .stage = stage,
                              .begin_ns = begin_ns - load->begin_ns,
                              .end_ns = end_ns - load->begin_ns,
                              .bytes = bytes,
                              .tensor_index = tensor,
                              .source_index = source,
                              .lane = lane};
    o->trace(o->ctx, &event);
}

/* One sentence more; a load has few, and what does not fit is cut. */
HRY_PRINTF(2, 3) static void add_reason(HryPath *path, const char *format, ...) {
    size_t used = strlen(path->reason);
    va_list args;
    if (used && used + 2 < sizeof path->reason) {
        memcpy(path->reason + used, "; ", 3);
        used += 2;
    }
    va_start(args, format);
    vsnprintf(path->reason + used, sizeof path->reason - used, format, args);
    va_end(args);
}

static void explain_io(const HryLoad *load, HryPath *path) {
    const HryIo *io = &load->ios[path->stats.source_index];
    uint32_t wish = load->loader->options.io;
    HryTargetKind kind = load->loader->targets[path->target].kind;
    if (wish == HURRAY_IO_URING && path->stats.io != HURRAY_IO_URING)
        add_reason(path, "%s",
                   load->ring_reason[0] ? load->ring_reason : "io_uring reads files, this source is read through its callbacks");
    if (wish != HURRAY_IO_MMAP || path->stats.io == HURRAY_IO_MMAP) return;
    if (kind == HRY_TARGET_MAPPED)
        add_reason(path, "these buffers lie unaligned in the file, to be mapped they would have to begin at multiples of %u bytes",
                   (unsigned)path->alignment);
    else if (kind != HRY_TARGET_HOST)
        add_reason(path, "a mapping cannot serve this target");
    else if (!io->by_fd || !load->loader->sources[path->stats.source_index].model->path)
        add_reason(path, "only files opened by path can be mapped");
    else
        add_reason(path, "the bytes change or are checked on their way out of the file, so they cannot be mapped");
}

static void explain_direct(const HryLoad *load, HryPath *path) {
    const HryIo *io = &load->ios[path->stats.source_index];
    bool wished = load->loader->options.direct == HURRAY_ON;
    if (path->stats.direct == HURRAY_ON) return;
    if (path->mapped && wished)
        add_reason(path, "a mapping was used, which direct reads have no part in");
    else if (!path->mapped && io->reason[0])
        add_reason(path, "%s", io->reason);
    else if (wished)
        add_reason(path, "direct reads were not possible: the buffers are small, or lie in the file otherwise than in memory");
}

static void explain_huge_pages(const HryLoad *load, HryPath *path) {
    const HryTarget *target = &load->loader->targets[path->target];
    const char *why = "they serve new memory on the host only";
    if (load->loader->options.huge_pages != HURRAY_ON) return;
    if (target->kind == HRY_TARGET_HOST) why = hry_host_missed_huge_pages(&target->destination);
    if (why) add_reason(path, "reserved huge pages were not used: %s", why);
}

static void explain_limit(HryPath *path, const char *option, uint64_t asked, uint64_t used) {
    if (asked && asked != used)
        add_reason(path, "the %s is %llu, the %s that can be had here", option, (unsigned long long)used, asked > used ? "most" : "least");
}

/* Why wishes did not come true. */
static void explain(const HryLoad *load, HryPath *path) {
    const HurrayLoaderOptions *o = &load->loader->options;
    explain_io(load, path);
    explain_direct(load, path);
    explain_huge_pages(load, path);
    if (path->mapped) return;
    explain_limit(path, "thread count", o->threads, path->stats.threads);
    explain_limit(path, "queue depth", o->queue_depth, path->stats.queue_depth);
    explain_limit(path, "chunk size", o->chunk_bytes, load->chunk);
}

/* What only a device's own destination knows, ours or one that the caller made. It may have served earlier loads: what they did is taken
 * off. */
static void add_device(HryLoad *load, size_t t) {
    HurrayLoader *loader = load->loader;
    HryTarget *target = &loader->targets[t];
    HryCudaStats device;
    if (!hry_cuda_destination_stats(&target->destination, &device)) return;
    if (device.peak_pinned > loader->stats.peak_pinned) loader->stats.peak_pinned = device.peak_pinned;
    loader->stats.copy_ns += device.copy_ns - target->before.copy_ns;
    loader->stats.bytes_copied += device.copied_bytes - target->before.copied_bytes;
    target->before = device;
    for (size_t p = 0; p < loader->path_count; p++) {
        HryPath *path = &loader->paths[p];
        if (path->target != t) continue;
        path->stats.staging = device.staging;
        path->stats.numa_node = device.numa_node;
        if (device.reason[0]) add_reason(path, "%s", device.reason);
    }
}

/* Copies that the devices have noted since the last time. */
void hry_load_trace_copies(HryLoad *load) {
    HurrayLoader *loader = load->loader;
    HryCudaCopy copies[64];
    if (!loader->options.trace) return;
    for (size_t t = 0; t < loader->target_count; t++) {
        for (size_t n = 64; n == 64;) {
            n = hry_cuda_destination_copies(&loader->targets[t].destination, copies, 64);
            for (size_t c = 0; c < n; c++)
                if (copies[c].begin_ns >= load->begin_ns)
                    hry_load_trace(load, HURRAY_STAGE_COPY, copies[c].begin_ns, copies[c].end_ns, copies[c].bytes, HURRAY_NONE, UINT32_MAX,
                                   (uint32_t)t);
        }
    }
}

void hry_stats_end(HryLoad *load, uint64_t total_ns) {
    HurrayLoader *loader = load->loader;
    HurrayLoadStats *stats = &loader->stats;
    for (size_t t = 0; t < loader->target_count; t++) add_device(load, t);
    hry_load_trace_copies(load);
    uint64_t both = load->reading_ns + stats->copy_ns; /* each with at least one under way */
    for (size_t p = 0; p < loader->path_count && load->ios; p++) explain(load, &loader->paths[p]);
    stats->path_count = (uint32_t)loader->path_count;
    stats->tensors = load->progress.now.tensors_done;
    stats->payload_bytes = load->progress.now.bytes_done;
    stats->bytes_read = load->moved;
    stats->bytes_in_place = load->in_place;
    stats->bytes_verified = load->verified;
    stats->ranges = load->ranges;
    stats->peak_host = load->budget.peak;
    stats->total_ns = total_ns;
    stats->read_ns = load->read_ns;
    stats->verify_ns = load->verify_ns;
    stats->wait_ns = load->wait_ns;
    stats->overlap_ns = stats->copy_ns && both > total_ns ? both - total_ns : 0;
}

HurrayStatus hurray_loader_stats(const HurrayLoader *loader, HurrayLoadStats *out) {
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    return hry_loader_leave(loader, hry_result_write(out, sizeof *out, &loader->stats, sizeof loader->stats));
}

HurrayStatus hurray_loader_path_stats(const HurrayLoader *loader, uint32_t i, HurrayPathStats *out) {
    if (!loader || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_loader_enter(loader);
    if (status != HURRAY_OK) return status;
    if (i >= loader->path_count) {
        status = hry_fail(&loader->self->handle.error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "path", HRY_NO_OFFSET, "path %u of %zu", i,
                          loader->path_count);
    } else {
        HurrayPathStats stats = loader->paths[i].stats;
        stats.reason = loader->paths[i].reason[0] ? loader->paths[i].reason : NULL;
        status = hry_result_write(out, sizeof stats, &stats, sizeof stats);
    }
    return hry_loader_leave(loader, status);
}
