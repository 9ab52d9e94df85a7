#include "hurray/destination.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/options.h"
#include "base/ready_made.h"
#include "cpu/numa.h"
#include "cpu/region.h"
#include "cpu/system.h"

#define FIRST_REGION ((size_t)64 << 10)
#define LARGEST_GUESS ((size_t)1 << 30) /* a region made without knowing what comes */
#define LARGEST_PLAN ((uint64_t)64 << 30)
#define OWN_PAGES ((uint64_t)64 << 10) /* buffers from here on begin and end at pages of their own */
#define LEAST_ALIGNMENT 64u            /* also keeps two buffers out of one cache line */
#define LARGEST_IO_ALIGNMENT 65536u

/* A region hands out its bytes front to back; it goes when its last block does. The one new blocks come from starts
 * again at its front instead. */
typedef struct Region {
    HryRegion map;
    size_t used, live;
} Region;

typedef struct Host {
    HurrayAllocator allocator;
    pthread_mutex_t lock;
    uint64_t holds;  /* the maker and every retain */
    uint64_t blocks; /* destinations and buffers that live */
    Region *current; /* NULL: none yet, or no holder left */
    uint64_t planned;
    size_t next_size;
    uint32_t huge_pages, min_alignment;
    bool few_huge, small_regions; /* huge_pages ON: regions that got none, or are less than one */
    int numa_node;
    HryNuma *numa; /* NULL: no binding asked for */
} Host;

/* One destination, later one buffer; all of it is fixed once made. */
typedef struct Block {
    Host *host;
    Region *region;
    uint8_t *start, *data;
    size_t span;
    uint64_t byte_size;
    uint32_t alignment, slack_before, slack_after;
} Block;

/* Where a block's data goes inside it. */
typedef struct Shape {
    uint64_t start_alignment, lead, span; /* lead: bytes before the data */
    uint32_t slack_before, slack_after;
} Shape;

static void host_free(Host *host) {
    HurrayAllocator allocator = host->allocator;
    hry_numa_destroy(&host->numa);
    pthread_mutex_destroy(&host->lock);
    hry_free(&allocator, host, sizeof *host);
}

/* Takes a copy of the allocator where the lock is not held: the host may go meanwhile. */
static void region_free(const HurrayAllocator *allocator, Region *region) {
    hry_region_unmap(&region->map);
    hry_free(allocator, region, sizeof *region);
}

static Region *region_new(Host *host, size_t wanted, size_t need) {
    Region *region = hry_alloc(&host->allocator, sizeof *region);
    if (!region) return NULL;
    if (!hry_region_map(&region->map, wanted, need, host->huge_pages, host->numa, host->numa_node)) {
        hry_free(&host->allocator, region, sizeof *region);
        return NULL;
    }
    if (host->huge_pages == HURRAY_ON && !region->map.reserved_huge) {
        host->few_huge |= region->map.size >= HRY_HUGE_PAGE;
        host->small_regions |= region->map.size < HRY_HUGE_PAGE;
    }
    return region;
}

/* A direct read wants file offset, address and length aligned alike: the data is put where its file offset falls
 * within a block of the device, and the rest of the first and last block is the window's slack. */
static bool shape_block(const HurrayDestinationRequest *request, uint32_t alignment, Shape *shape) {
    uint64_t io = request->io_alignment, end, lead = 0;
    bool large = request->byte_size >= OWN_PAGES;
    *shape = (Shape){.start_alignment = alignment};
    if (large && shape->start_alignment < hry_page_size()) shape->start_alignment = hry_page_size();
    bool direct = large && io > 1 && hry_is_pow2(io) && io <= LARGEST_IO_ALIGNMENT && request->source_offset != HURRAY_NONE &&
                  request->source_offset % io % alignment == 0 && (alignment <= io || request->source_offset % io == 0);
    if (direct) {
        if (shape->start_alignment < io) shape->start_alignment = io;
        lead = request->source_offset % io;
        shape->slack_before = (uint32_t)lead;
    }
    shape->lead = lead;
    if (!hry_add_u64(lead, request->byte_size, &end)) return false;
    if (!hry_align_up(end, large ? hry_page_size() : LEAST_ALIGNMENT, &shape->span)) return false;
    if (direct) {
        uint64_t block_end;
        if (!hry_align_up(end, io, &block_end)) return false;
        shape->slack_after = (uint32_t)(block_end - end);
        if (shape->span < block_end) shape->span = block_end;
    }
    return true;
}

/* The next place for a block in the region, or false. */
static bool region_place(Region *region, const Shape *shape, Block *block) {
    uint64_t at, base = (uintptr_t)region->map.base;
    if (!hry_align_up(base + region->used, shape->start_alignment, &at) || !hry_range_inside(at - base, shape->span, region->map.size))
        return false;
    block->region = region;
    block->start = region->map.base + (at - base);
    block->data = block->start + shape->lead;
    block->span = (size_t)shape->span;
    region->used = (size_t)(at - base + shape->span);
    region->live++;
    return true;
}

/* A larger region, sized by the plan if there is one. The one with more room left serves what comes. Lock held. */
static bool host_grow(Host *host, const Shape *shape, Block *block) {
    uint64_t need, wanted = host->planned < LARGEST_PLAN ? host->planned : LARGEST_PLAN;
    if (!hry_add_u64(shape->span, shape->start_alignment, &need) || need > SIZE_MAX) return false;
    if (wanted == 0) {
        wanted = host->next_size;
        if (host->next_size < LARGEST_GUESS) host->next_size *= 2;
    }
    if (wanted < need) wanted = need;
    Region *region = region_new(host, (size_t)wanted, (size_t)need), *old = host->current;
    if (!region) return false;
    if (!region_place(region, shape, block)) {
        region_free(&host->allocator, region);
        return false;
    }
    if (old && old->map.size - old->used > region->map.size - region->used) return true;
    host->current = region;
    if (old && old->live == 0) region_free(&host->allocator, old);
    return true;
}

static HurrayStatus host_reserve(void *ctx, uint8_t device_tag, int32_t device_index, uint64_t bytes, uint64_t buffers) {
    Host *host = ctx;
    uint64_t padding;
    (void)device_tag, (void)device_index;
    if (!hry_mul_u64(buffers, LEAST_ALIGNMENT, &padding)) padding = 0;
    pthread_mutex_lock(&host->lock);
    if (!hry_add_u64(bytes, padding, &host->planned)) host->planned = LARGEST_PLAN;
    pthread_mutex_unlock(&host->lock);
    return HURRAY_OK;
}

static HurrayStatus host_allocate(void *ctx, const HurrayDestinationRequest *request, HurrayDestination *out) {
    Host *host = ctx;
    Shape shape;
    uint32_t alignment = request->alignment ? request->alignment : 1;
    if (!hry_is_pow2(alignment)) return HURRAY_ERR_INVALID_ARGUMENT;
    if (alignment < host->min_alignment) alignment = host->min_alignment;
    if (!shape_block(request, alignment, &shape)) return HURRAY_ERR_NO_MEMORY;
    Block *block = hry_alloc_raw(&host->allocator, sizeof *block);
    if (!block) return HURRAY_ERR_NO_MEMORY;
    *block = (Block){.host = host,
                     .byte_size = request->byte_size,
                     .alignment = alignment,
                     .slack_before = shape.slack_before,
                     .slack_after = shape.slack_after};
    pthread_mutex_lock(&host->lock);
    bool placed = (host->current && region_place(host->current, &shape, block)) || host_grow(host, &shape, block);
    if (placed) {
        host->blocks++;
        host->planned -= host->planned < shape.span ? host->planned : shape.span;
    }
    pthread_mutex_unlock(&host->lock);
    if (!placed) {
        hry_free(&host->allocator, block, sizeof *block);
        return HURRAY_ERR_NO_MEMORY;
    }
    out->id = block;
    return HURRAY_OK;
}

/* The whole rest of the buffer, as much of it as is welcome. Only its two ends have slack: what lies between two
 * windows belongs to both. */
static HurrayStatus host_window(void *ctx, void *id, HurrayWindow *window) {
    const Block *block = id;
    (void)ctx;
    if (window->offset >= block->byte_size) return HURRAY_ERR_INVALID_ARGUMENT;
    uint64_t left = block->byte_size - window->offset;
    if (window->len > left) window->len = left;
    window->ptr = block->data + window->offset;
    window->slack_before = window->offset == 0 ? block->slack_before : 0;
    window->slack_after = window->len == left ? block->slack_after : 0;
    window->token = NULL;
    return HURRAY_OK;
}

/* The block's own pages go back at once, before anybody may get the addresses again; the region with its last block. */
static void block_drop(Block *block) {
    Host *host = block->host;
    Region *region = block->region, *unused = NULL;
    HurrayAllocator allocator = host->allocator;
    pthread_mutex_lock(&host->lock);
    bool last_of_region = region->live == 1 && region != host->current;
    pthread_mutex_unlock(&host->lock);
    if (!last_of_region) hry_region_give_back(&region->map, block->start, block->span);
    pthread_mutex_lock(&host->lock);
    if (--region->live == 0) {
        if (region == host->current)
            region->used = 0;
        else
            unused = region;
    }
    bool last = --host->blocks == 0 && host->holds == 0;
    pthread_mutex_unlock(&host->lock);
    if (unused) region_free(&allocator, unused);
    hry_free(&allocator, block, sizeof *block);
    if (last) host_free(host);
}

static void block_release(void *data, void *context) {
    (void)data;
    block_drop(context);
}

static HurrayStatus host_freeze(void *ctx, void *id, HurrayBufferInfo *out) {
    Block *block = id;
    (void)ctx;
    out->data = block->data;
    out->byte_size = block->byte_size;
    out->alignment = block->alignment;
    out->device_tag = HURRAY_DEVICE_CPU;
    out->device_index = 0;
    out->sync_mode = HURRAY_SYNC_PRODUCER_SYNCED;
    out->memory_class = HURRAY_MEMORY_STANDARD;
    out->release = block_release;
    out->release_context = block;
    return HURRAY_OK;
}

static void host_discard(void *ctx, void *id) {
    (void)ctx;
    block_drop(id);
}

static void host_retain(void *ctx) {
    Host *host = ctx;
    pthread_mutex_lock(&host->lock);
    host->holds++;
    pthread_mutex_unlock(&host->lock);
}

/* Without a holder nothing new comes: the region kept for it is an ordinary one from here on. */
static void host_release(void *ctx) {
    Host *host = ctx;
    Region *unused = NULL;
    HurrayAllocator allocator = host->allocator;
    pthread_mutex_lock(&host->lock);
    bool last = false;
    if (--host->holds == 0) {
        if (host->current && host->current->live == 0) unused = host->current;
        host->current = NULL;
        last = host->blocks == 0;
    }
    pthread_mutex_unlock(&host->lock);
    if (unused) region_free(&allocator, unused);
    if (last) host_free(host);
}

bool hry_destination_is_host(const HurrayDestinationAlloc *destination) { return destination->release == host_release; }

const char *hry_host_missed_huge_pages(const HurrayDestinationAlloc *destination) {
    Host *host = destination->ctx;
    if (!hry_destination_is_host(destination)) return NULL;
    pthread_mutex_lock(&host->lock);
    bool few = host->few_huge, small = host->small_regions;
    pthread_mutex_unlock(&host->lock);
    return few ? "too few are free (HugePages_Free in /proc/meminfo)" : small ? "the memory is less than one of them (2 MiB)" : NULL;
}

static HurrayStatus check_options(const HurrayHostOptions *options, HurrayError *error) {
    if (options->huge_pages > HURRAY_OFF)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "huge_pages", HRY_NO_OFFSET,
                        "huge_pages is %u, expected HURRAY_AUTO, HURRAY_ON or HURRAY_OFF", (unsigned)options->huge_pages);
    if (options->min_alignment && !hry_is_pow2(options->min_alignment))
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "min_alignment", HRY_NO_OFFSET, "min_alignment is %u, expected a power of two",
                        (unsigned)options->min_alignment);
    if (options->numa_node < -1)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "numa_node", HRY_NO_OFFSET, "numa_node is %d, expected a node or -1",
                        (int)options->numa_node);
    return HURRAY_OK;
}

static HurrayStatus host_new(const HurrayHostOptions *options, const HurrayAllocator *allocator, Host **out, HurrayError *error) {
    Host *host = hry_alloc(allocator, sizeof *host);
    if (!host) return hry_fail_memory(error, "a host destination", sizeof *host);
    host->allocator = *allocator;
    host->holds = 1;
    host->next_size = FIRST_REGION;
    host->huge_pages = options->huge_pages;
    host->min_alignment = options->min_alignment > LEAST_ALIGNMENT ? options->min_alignment : LEAST_ALIGNMENT;
    host->numa_node = options->numa_node;
    if (options->numa_node >= 0) {
        HurrayStatus status = hry_numa_new(allocator, &host->numa, error);
        if (status == HURRAY_OK && !hry_numa_has_node(host->numa, options->numa_node))
            status = hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "numa_node", HRY_NO_OFFSET,
                              "there is no NUMA node %d; this machine has %u", (int)options->numa_node, hry_numa_node_count(host->numa));
        if (status != HURRAY_OK) {
            hry_numa_destroy(&host->numa);
            hry_free(allocator, host, sizeof *host);
            return status;
        }
    }
    pthread_mutex_init(&host->lock, NULL);
    *out = host;
    return HURRAY_OK;
}

HurrayStatus hurray_destination_host(const HurrayHostOptions *user, HurrayDestinationAlloc *out, HurrayError *error) {
    HurrayError local;
    HurrayHostOptions options = HURRAY_HOST_OPTIONS_INIT;
    HurrayAllocator allocator;
    Host *host = NULL;
    if (!out) return hry_fail_null(error, "out");
    HurrayStatus status = hry_options_read(&options, sizeof options, sizeof options, user, "HurrayHostOptions", &local);
    if (status == HURRAY_OK) status = check_options(&options, &local);
    if (status == HURRAY_OK) status = hry_alloc_resolve(options.allocator, &allocator, &local);
    if (status == HURRAY_OK) status = host_new(&options, &allocator, &host, &local);
    if (status != HURRAY_OK) return hry_error_export(error, &local);
    *out = (HurrayDestinationAlloc){.struct_size = sizeof *out,
                                    .flags = HURRAY_DESTINATION_CONCURRENT,
                                    .ctx = host,
                                    .retain = host_retain,
                                    .reserve = host_reserve,
                                    .allocate = host_allocate,
                                    .window = host_window,
                                    .freeze = host_freeze,
                                    .discard = host_discard,
                                    .release = host_release};
    return HURRAY_OK;
}

HurrayStatus hurray_destination_release(HurrayDestinationAlloc *destination) {
    if (!destination) return HURRAY_ERR_NULL_POINTER;
    if (destination->release) destination->release(destination->ctx);
    *destination = (HurrayDestinationAlloc){.struct_size = sizeof *destination};
    return HURRAY_OK;
}
