#include "loader/load.h"

#include "format/crc32c.h"

void hry_load_if_whole(HryLoad *load, HryItem *item) {
    if (!item->fed || item->open || item->queued || item->order >= load->limit) return;
    for (uint32_t k = 0; k < item->fill_count; k++)
        if (item->fills[k].done < item->to.buffers[k].byte_size) return;
    item->queued = true;
    item->next_frozen = NULL;
    if (load->frozen_last)
        load->frozen_last->next_frozen = item;
    else
        load->frozen_first = item;
    load->frozen_last = item;
}

/* A whole buffer: by the sum that is stored for it, or by the archive's own, which its byte source has checked. */
static void check_sum(HryLoad *load, HryItem *item, uint32_t k) {
    const HryLoadFill *fill = &item->fills[k];
    HurrayError error;
    load->verified += fill->done;
    if (!fill->check || fill->sum == fill->stored) return;
    hry_fail(&error, HURRAY_ERR_CHECKSUM, NULL, HRY_NO_OFFSET,
             "the bytes of buffer %u have CRC-32C %08X, stored is %08X: they are damaged, or the file's metadata was copied from another; "
             "get the file again",
             k, fill->sum, fill->stored);
    error.buffer_index = k;
    hry_load_fail(load, item, &error);
}

/* All its pieces are back. */
static void close_window(HryLoad *load, HryOpenWindow *window) {
    HryItem *item = window->item;
    HryLoadFill *fill = &item->fills[window->buffer];
    fill->open--;
    if (!window->failed && item->order < load->limit) {
        HurrayError error;
        if (!window->prefilled) {
            if (hry_item_commit(&item->to, window->buffer, &window->window, &error) != HURRAY_OK) hry_load_fail(load, item, &error);
        }
        fill->done += window->window.len;
        load->progress.now.bytes_done += window->window.len;
        bool checked = fill->check || (item->bytes && hry_byte_source_checks(item->bytes));
        if (checked && fill->done == item->to.buffers[window->buffer].byte_size) check_sum(load, item, window->buffer);
    }
    hry_load_free_window(load, window);
}

/* Sums of pieces come in any order; moved to their place in the buffer they add up to the buffer's. */
static void add_sum(HryLoadFill *fill, const HryOpenWindow *window, const HryPlanPiece *piece, uint64_t size) {
    uint64_t at = window->window.offset + (uint64_t)(piece->ptr - window->window.ptr);
    fill->sum ^= hry_crc32c_join(piece->sum, 0, size - at - piece->len);
}

static void piece_failed(HryLoad *load, HryItem *item, const HryOpenWindow *window, const HryJob *job) {
    HurrayError error = job->error;
    error.buffer_index = window->buffer;
    hry_load_fail(load, item, &error);
}

static void take_back(HryLoad *load, HryJob *job) {
    for (uint32_t p = 0; p < job->run.count; p++) {
        const HryPlanPiece *piece = &job->run.pieces[p];
        HryOpenWindow *window = piece->owner;
        HryItem *item = window->item;
        HryLoadFill *fill = &item->fills[window->buffer];
        bool read = !job->stopped && p < job->whole;
        /* behind a failure in the same run, but of a tensor that stands before it: once more, alone */
        if (!read && !job->stopped && p > job->whole && item->order < load->limit && hry_load_add_piece(load, window, piece)) continue;
        window->pieces--;
        item->open--;
        if (job->kind == HRY_JOB_CONVERT) item->converting = false;
        if (read && fill->check) add_sum(fill, window, piece, item->to.buffers[window->buffer].byte_size);
        if (!read) window->failed = true;
        if (!read && !job->stopped && p == job->whole) piece_failed(load, item, window, job);
        if (window->pieces == 0 && window->given == window->window.len) close_window(load, window);
        hry_load_if_whole(load, item);
    }
}

static void count_job(HryLoad *load, const HryJob *job) {
    const HryOpenWindow *window = job->run.pieces[0].owner;
    const HryItem *item = window->item;
    bool reads = job->kind != HRY_JOB_CHECK; /* what is in place already was counted when it was found there */
    HryPath *path = hry_load_path(load, item, window->buffer);
    load->read_ns += job->read_ns - job->begin_ns;
    load->verify_ns += job->end_ns - job->read_ns;
    load->moved += job->moved;
    load->ranges += reads;
    if (path) {
        path->stats.bytes += reads ? job->run.payload : 0;
        path->stats.ranges += reads;
        path->stats.busy_ns += job->end_ns - job->begin_ns;
        if (job->kind == HRY_JOB_READ && job->io->by_fd && (hry_io_is_direct(job->io, &job->run.pieces[0]) || hry_io_bounces(job->io, &job->run)))
            path->stats.direct = HURRAY_ON;
    }
    if (reads)
        hry_load_trace(load, HURRAY_STAGE_READ, job->begin_ns, job->read_ns, job->moved, item->placed->index, job->source, job->lane);
    if (job->end_ns - job->read_ns > 0 && job->run.pieces[0].want_sum)
        hry_load_trace(load, HURRAY_STAGE_CHECK, job->read_ns, job->end_ns, job->run.payload, item->placed->index, job->source, job->lane);
}

bool hry_load_reap(HryLoad *load) {
    bool did = false;
    for (HryJob *job; (job = hry_work_take(load->work)) != NULL;) {
        if (--load->jobs_out == 0) load->reading_ns += hry_now_ns() - load->reading_since;
        if (!job->stopped) count_job(load, job);
        take_back(load, job);
        hry_load_free_job(load, job);
        did = true;
    }
    return did;
}

static void hand_out(HryLoad *load, HryItem *item, HurrayTensor *tensor) {
    const HurrayLoaderOptions *o = &load->loader->options;
    load->progress.now.tensors_done++;
    load->progress.now.name = item->entry->name;
    load->progress.now.name_len = item->entry->name_len;
    if (!o->deliver) {
        load->set->entries[item->order].tensor = tensor;
        return;
    }
    HurrayStatus status = o->deliver(o->ctx, item->placed->index, tensor);
    if (status == HURRAY_OK) return;
    HurrayError error;
    hurray_tensor_destroy(&tensor);
    hry_fail_callback(&error, status, HURRAY_ERR_TRANSPORT, "deliver");
    hry_loader_blame(load->loader, item->placed->index, &error);
    hry_load_stop(load, &error);
}

/* Of one destination in order: behind one that waits nobody is asked. One that has waited is asked again only when the caller has nothing
 * else to do, since being asked again makes a device close its open slot. */
bool hry_load_freeze(HryLoad *load, bool again) {
    HryItem *previous = NULL;
    bool did = false;
    for (size_t t = 0; t < load->loader->target_count; t++) load->loader->targets[t].holds = false;
    for (HryItem *item = load->frozen_first; item && !load->stopped && item->order < load->limit;) {
        HryTarget *target = &load->loader->targets[item->target];
        HryItem *next = item->next_frozen;
        HurrayTensor *tensor = NULL;
        HurrayError error;
        HurrayStatus status = HURRAY_WAIT;
        if (!target->holds && (!item->waiting || again)) status = hry_item_freeze(&item->to, &tensor, &error);
        if (status == HURRAY_WAIT) {
            item->waiting |= !target->holds;
            target->holds = true;
            previous = item;
            item = next;
            continue;
        }
        if (previous)
            previous->next_frozen = next;
        else
            load->frozen_first = next;
        if (load->frozen_last == item) load->frozen_last = previous;
        item->queued = false;
        did = true;
        if (status == HURRAY_OK) {
            hand_out(load, item, tensor);
            hry_load_end_item(load, item);
        } else {
            hry_load_fail(load, item, &error);
            hry_load_drop_item(load, item); /* nothing of it is out */
        }
        item = next;
    }
    return did;
}
