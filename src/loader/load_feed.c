#include <string.h>

#include "cpu/region.h"
#include "loader/load.h"

#define CONVERT_CHUNK (UINT64_C(1) << 20)

static bool has_room(const HryLoad *load) { return load->jobs_out < load->depth && !load->stopped; }

static void stop_no_memory(HryLoad *load, size_t bytes) {
    HurrayError error;
    hry_fail_memory(&error, "reading ahead", bytes);
    hry_load_stop(load, &error);
}

void hry_load_submit(HryLoad *load) {
    HryJob *job = load->building;
    if (!job) return;
    load->building = NULL;
    if (load->jobs_out++ == 0) load->reading_since = hry_now_ns();
    hry_work_submit(load->work, job);
}

/* A job of its own, or a place in the one that is being built. */
static HryJob *job_for(HryLoad *load, const HryItem *item, HryJobKind kind, const HryPlanPiece *piece) {
    HryJob *job = load->building;
    uint64_t gap = item->io->by_fd ? HRY_GAP_BYTES : 0;
    if (job && (kind == HRY_JOB_CONVERT || job->kind != kind || job->io != item->io ||
                !hry_run_takes(&job->run, piece->offset, piece->len, load->chunk, kind == HRY_JOB_CHECK ? 0 : gap)))
        hry_load_submit(load);
    if (!load->building) {
        load->building = hry_load_new_job(load);
        if (!load->building) return NULL;
        load->building->kind = kind;
        load->building->io = item->io;
        load->building->source = (uint32_t)(item->source - load->loader->sources);
        load->building->bytes = kind == HRY_JOB_CONVERT ? item->bytes : NULL;
    }
    return load->building;
}

bool hry_load_add_piece(HryLoad *load, HryOpenWindow *window, const HryPlanPiece *piece) {
    HryItem *item = window->item;
    bool converts = item->entry->side && item->bytes && !window->prefilled;
    HryJobKind kind = window->prefilled ? HRY_JOB_CHECK : converts ? HRY_JOB_CONVERT : HRY_JOB_READ;
    HryJob *job = job_for(load, item, kind, piece);
    if (!job) {
        stop_no_memory(load, sizeof *job);
        return false;
    }
    hry_run_add(&job->run, piece);
    if (kind == HRY_JOB_CONVERT) hry_load_submit(load);
    return true;
}

/* Bytes that change on the way, or that carry a sum of their own (a zip member's CRC is always checked), go through a byte source, in
 * order. */
static bool needs_conversion(const HryItem *item) {
    if (!hry_byte_source_needed(item->entry)) return false;
    const HryForeign *foreign = &item->source->model->catalogue->foreign[item->entry->side - 1];
    return foreign->bytes != HRY_BYTES_AS_IS || foreign->has_crc32;
}

/* False: not now, or it failed. */
static bool open_bytes(HryLoad *load, HryItem *item) {
    HurrayError error;
    if (item->bytes) return true;
    if (!hry_budget_take(&load->budget, HRY_CONVERT_BYTES)) {
        if (load->budget.used) return false;
        hry_fail(&error, HURRAY_ERR_LIMIT, "memory_cap", HRY_NO_OFFSET,
                 "converting this tensor takes %llu bytes, memory_cap is %llu; raise it", (unsigned long long)HRY_CONVERT_BYTES,
                 (unsigned long long)load->budget.cap);
        hry_load_fail(load, item, &error);
        return false;
    }
    if (item->io->serial) pthread_mutex_lock(&item->io->lock);
    HurrayStatus status =
        hry_byte_source_open(item->io->transport, item->source->model->catalogue, item->entry, &load->allocator, &item->bytes, &error);
    if (item->io->serial) pthread_mutex_unlock(&item->io->lock);
    if (status == HURRAY_OK) return true;
    item->bytes = NULL;
    hry_budget_give(&load->budget, HRY_CONVERT_BYTES);
    hry_load_fail(load, item, &error);
    return false;
}

/* Up to a huge page's end: two readers that meet a new one at once would both clear it. The rest, and small chunks: up to where direct
 * reads can go on. */
static uint64_t cut_length(const HryIo *io, const HryPlanPiece *piece, uint64_t left, uint64_t chunk) {
    if (chunk >= HRY_HUGE_PAGE && left > chunk + chunk / 4) return hry_cut((uintptr_t)piece->ptr, left, chunk, HRY_HUGE_PAGE);
    return hry_cut(piece->offset, left, chunk, io->direct_fd >= 0 ? io->direct_alignment : 1);
}

/* The next piece of the window that is being cut. */
static bool cut_piece(HryLoad *load, HryItem *item, uint32_t k, bool converts) {
    HryLoadFill *fill = &item->fills[k];
    HryOpenWindow *window = fill->current;
    uint64_t left = window->window.len - window->given, at = window->window.offset + window->given, chunk = load->chunk;
    HryPlanPiece piece = {.ptr = window->window.ptr + window->given, .owner = window, .want_sum = fill->check};
    piece.offset = converts || window->prefilled ? at : item->to.buffers[k].source_offset + at;
    if (converts && chunk > CONVERT_CHUNK) chunk = CONVERT_CHUNK;
    piece.len = cut_length(item->io, &piece, left, chunk);
    if (!hry_load_add_piece(load, window, &piece)) return false;
    window->given += piece.len;
    window->pieces++;
    item->open++;
    item->converting = converts;
    if (window->given == window->window.len) fill->current = NULL;
    return true;
}

typedef enum Fed { FED_NOTHING_MORE, FED_LATER, FED_WAIT, FED_FAILED } Fed;

/* A prefilled buffer needs no window; its bytes are checked where they lie. */
static Fed feed_prefilled(HryLoad *load, HryItem *item, uint32_t k) {
    HryLoadFill *fill = &item->fills[k];
    const HryItemBuffer *buffer = &item->to.buffers[k];
    fill->asked = buffer->byte_size;
    load->in_place += buffer->byte_size;
    HryPath *path = hry_load_path(load, item, k);
    if (path) path->stats.bytes += buffer->byte_size;
    if (fill->check && buffer->data) {
        HryOpenWindow *window = hry_load_new_window(load);
        if (!window) {
            stop_no_memory(load, sizeof *window);
            return FED_FAILED;
        }
        window->item = item;
        window->buffer = k;
        window->prefilled = true;
        window->window = (HurrayWindow){.struct_size = sizeof window->window, .len = buffer->byte_size};
        memcpy(&window->window.ptr, &buffer->data, sizeof buffer->data); /* only ever read */
        fill->open++;
        fill->current = window;
        return FED_NOTHING_MORE;
    }
    if (load->loader->options.verify_data == HURRAY_VERIFY_REQUIRED && !buffer->data) {
        HurrayError error;
        hry_fail(&error, HURRAY_ERR_CHECKSUM, NULL, HRY_NO_OFFSET,
                 "the bytes are in place where the host cannot read them, so they cannot be checked; load without verify_data REQUIRED");
        error.buffer_index = k;
        hry_load_fail(load, item, &error);
        return FED_FAILED;
    }
    fill->check = false;
    fill->done = buffer->byte_size;
    load->progress.now.bytes_done += buffer->byte_size;
    return FED_NOTHING_MORE;
}

static Fed ask_window(HryLoad *load, HryItem *item, uint32_t k) {
    HryLoadFill *fill = &item->fills[k];
    HurrayError error;
    HryOpenWindow *window = hry_load_new_window(load);
    if (!window) {
        stop_no_memory(load, sizeof *window);
        return FED_FAILED;
    }
    HurrayStatus status = hry_item_window(&item->to, k, fill->asked, item->to.buffers[k].byte_size - fill->asked, &window->window, &error);
    if (status != HURRAY_OK) {
        hry_load_free_window(load, window);
        if (status == HURRAY_WAIT) return FED_WAIT;
        hry_load_fail(load, item, &error);
        return FED_FAILED;
    }
    window->item = item;
    window->buffer = k;
    fill->asked += window->window.len;
    fill->open++;
    fill->current = window;
    return FED_NOTHING_MORE;
}

static Fed feed_buffer(HryLoad *load, HryItem *item, uint32_t k, bool *did) {
    HryLoadFill *fill = &item->fills[k];
    const HryItemBuffer *buffer = &item->to.buffers[k];
    bool concurrent = item->to.destination->flags & HURRAY_DESTINATION_CONCURRENT;
    while (fill->asked < buffer->byte_size || fill->current) {
        bool converts = k == 0 && !buffer->prefilled && needs_conversion(item);
        Fed fed = FED_NOTHING_MORE;
        if (!has_room(load)) return FED_LATER;
        if (!fill->current) {
            if (buffer->prefilled)
                fed = feed_prefilled(load, item, k);
            else if (!concurrent && fill->open)
                return FED_LATER;
            else
                fed = ask_window(load, item, k);
            if (fed != FED_NOTHING_MORE) return fed;
            *did = true;
            if (!fill->current) continue;
        }
        if (converts && (item->converting || !open_bytes(load, item))) return item->order < load->limit ? FED_LATER : FED_FAILED;
        *did = true;
        if (!cut_piece(load, item, k, converts)) return FED_FAILED;
    }
    return FED_NOTHING_MORE;
}

static HurrayStatus allocate(HryLoad *load, HryItem *item) {
    HurrayError error;
    HurrayStatus status = hry_item_allocate(&item->to, &error);
    if (status == HURRAY_OK)
        item->allocated = true;
    else if (status != HURRAY_WAIT)
        hry_load_fail(load, item, &error);
    return status;
}

/* Gives an item what it wants as far as there is room. */
static bool feed_item(HryLoad *load, HryItem *item) {
    HryTarget *target = &load->loader->targets[item->target];
    bool did = false, all = true;
    if (target->waits) return false; /* whoever stands before it in the file is served first */
    if (!item->allocated) {
        HurrayStatus status = allocate(load, item);
        if (status == HURRAY_WAIT) target->waits = load->blocked = true;
        if (status != HURRAY_OK) return status != HURRAY_WAIT;
        did = true;
    }
    for (uint32_t k = item->feeding; k < item->fill_count; k++) {
        Fed fed = feed_buffer(load, item, k, &did);
        if (fed == FED_FAILED) return true;
        if (fed == FED_WAIT) {
            target->waits = load->blocked = true;
            return did;
        }
        if (fed == FED_LATER) {
            all = false;
            if (!has_room(load)) return did;
        } else if (all) {
            item->feeding = k + 1;
        }
    }
    if (!all) return did;
    item->fed = true;
    hry_load_if_whole(load, item);
    return true;
}

bool hry_load_feed(HryLoad *load) {
    HryItem *item = load->unfed;
    uint32_t seen = 0;
    bool did = false;
    load->blocked = false;
    for (size_t t = 0; t < load->loader->target_count; t++) load->loader->targets[t].waits = false;
    while (has_room(load) && seen < HRY_MAX_UNFED) {
        if (!item) {
            if (load->next >= load->limit) break;
            if (load->active >= HRY_MAX_ACTIVE) {
                load->blocked = true;
                break;
            }
            HurrayStatus status = hry_load_begin_item(load, &item);
            if (status != HURRAY_OK) {
                HurrayError error = load->error;
                load->failed = false;
                hry_load_stop(load, &error);
                return true;
            }
            load->next++;
            did = true;
        }
        if (item->order >= load->limit) break;
        if (!item->fed) {
            did |= feed_item(load, item);
            if (!item->fed) seen++;
        }
        item = item->next;
    }
    while (load->unfed && load->unfed->fed) load->unfed = load->unfed->next;
    return did;
}
