#include "cuda/help_play.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/fake_cuda.h"

typedef struct Open {
    HurrayWindow window;
    bool out;
} Open;

typedef struct Buffer {
    size_t index;
    void *id;
    uint64_t size, next; /* of which windows were asked for up to next */
    uint64_t committed;
    Open open;
    bool live;
} Buffer;

uint8_t play_byte(size_t buffer, uint64_t at) { return (uint8_t)((buffer * 131 + at) * 0x9e3779b97f4a7c15u >> 40); }

void play_fill(uint8_t *to, size_t buffer, uint64_t at, uint64_t len) {
    for (uint64_t i = 0; i < len; i++) to[i] = play_byte(buffer, at + i);
}

uint64_t play_size(const Play *play, size_t i) { return play->sizes ? play->sizes[i] : play->size; }

void play_check(const Play *play, size_t i) {
    const HurrayBufferInfo *info = &play->infos[i];
    uint8_t *want = malloc(info->byte_size);
    play_fill(want, i, 0, info->byte_size);
    if (info->sync_mode == HURRAY_SYNC_EVENT) fake_cuda_expect_after(info->event.sync_handle, info->data, want, info->byte_size);
    else if (info->sync_mode == HURRAY_SYNC_CONSUMER_STREAM) fake_cuda_expect_on(play->consumer_stream, info->data, want, info->byte_size);
    else fake_cuda_expect_now(info->data, want, info->byte_size);
    free(want);
}

static HurrayStatus begin(HurrayDestinationAlloc *d, const Play *play, Buffer *buffer, size_t i) {
    HurrayDestinationRequest request = {.struct_size = sizeof request, .byte_size = play_size(play, i), .source_offset = HURRAY_NONE,
        .alignment = play->alignment ? play->alignment : 4096, .io_alignment = 1, .device_index = play->device_index, .device_tag = play->device_tag, .sync_mode = play->sync_mode,
        .memory_class = play->memory_class, .consumer_stream = play->consumer_stream, .copy_stream = play->copy_stream, .name = "x", .name_len = 1,
        .into = play->into ? play->into[i] : NULL};
    HurrayDestination out = {.struct_size = sizeof out};
    HurrayStatus status = d->allocate(d->ctx, &request, &out);
    if (status != HURRAY_OK) return status;
    *buffer = (Buffer){.index = i, .id = out.id, .size = request.byte_size, .live = true};
    return HURRAY_OK;
}

static HurrayStatus take_window(HurrayDestinationAlloc *d, const Play *play, Buffer *buffer) {
    HurrayWindow *window = &buffer->open.window;
    uint64_t left = buffer->size - buffer->next;
    *window = (HurrayWindow){.struct_size = sizeof *window, .offset = buffer->next, .len = play->chunk && play->chunk < left ? play->chunk : left, .source_offset = HURRAY_NONE};
    HurrayStatus status = d->window(d->ctx, buffer->id, window);
    if (status != HURRAY_OK) return status;
    play_fill(window->ptr, buffer->index, window->offset, window->len);
    buffer->open.out = true;
    buffer->next += window->len;
    return HURRAY_OK;
}

static HurrayStatus give_window(HurrayDestinationAlloc *d, Play *play, Buffer *buffer) {
    HurrayStatus status = d->commit ? d->commit(d->ctx, buffer->id, &buffer->open.window) : HURRAY_OK;
    buffer->open.out = false;
    if (status == HURRAY_OK) buffer->committed += buffer->open.window.len, play->windows++;
    return status;
}

static HurrayStatus end(HurrayDestinationAlloc *d, Play *play, Buffer *buffer) {
    HurrayBufferInfo *info = &play->infos[buffer->index];
    *info = (HurrayBufferInfo){.struct_size = sizeof *info};
    HurrayStatus status = d->freeze(d->ctx, buffer->id, info);
    if (status != HURRAY_OK) {
        memset(info, 0, sizeof *info);
        return status;
    }
    buffer->live = false;
    if (!play->no_check) play_check(play, buffer->index);
    return HURRAY_OK;
}

/* One thing for one buffer. WAIT: nothing was possible. */
static HurrayStatus advance(HurrayDestinationAlloc *d, Play *play, Buffer *buffer) {
    if (buffer->open.out) return give_window(d, play, buffer);
    return buffer->next < buffer->size ? take_window(d, play, buffer) : end(d, play, buffer);
}

static void drop(HurrayDestinationAlloc *d, Buffer *buffers, size_t active) {
    for (size_t k = 0; k < active; k++)
        if (buffers[k].live) d->discard(d->ctx, buffers[k].id);
}

static HurrayStatus reserve(HurrayDestinationAlloc *d, const Play *play) {
    uint64_t bytes = 0, alignment = play->alignment ? play->alignment : 4096;
    if (play->no_reserve || !d->reserve) return HURRAY_OK;
    for (size_t i = 0; i < play->count && !play->into; i++) bytes += (play_size(play, i) + alignment - 1) / alignment * alignment;
    return d->reserve(d->ctx, play->device_tag, play->device_index, bytes, play->count);
}

HurrayStatus play_run(HurrayDestinationAlloc *d, Play *play) {
    size_t active = play->active ? play->active : 8, next = 0, left = play->count;
    Buffer *buffers = calloc(active, sizeof *buffers);
    uint64_t random = play->seed * 2 + 1, idle = 0;
    play->infos = calloc(play->count, sizeof *play->infos);
    HurrayStatus status = reserve(d, play);
    while (status >= 0 && left > 0) {
        bool moved = false;
        for (size_t k = 0; k < active && status >= 0; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            Buffer *buffer = &buffers[play->seed ? (random >> 33) % active : k];
            bool fresh = !buffer->live;
            if (play->late_freeze && buffer->live && buffer->committed == buffer->size && next < play->count) continue;
            status = buffer->live ? advance(d, play, buffer) : next < play->count ? begin(d, play, buffer, next) : HURRAY_WAIT;
            if (status != HURRAY_OK) continue;
            moved = true;
            if (!buffer->live) left--;
            if (fresh) next++;
            while (play->late_freeze && status == HURRAY_OK && buffer->live && buffer->committed < buffer->size) status = advance(d, play, buffer);
        }
        if (play->stop_after && play->windows >= play->stop_after) break;
        idle = moved ? 0 : idle + 1;
        if (status < 0 || moved) continue;
        play->waits++;
        if (idle > 20000) {
            fprintf(stderr, "play: nothing moves any more\n");
            _exit(96);
        }
        if (!play->no_wait && d->wait) status = d->wait(d->ctx, 5);
        else nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    drop(d, buffers, active);
    free(buffers);
    if (status < 0 || (play->stop_after && left > 0)) play_release(play);
    return status < 0 ? status : HURRAY_OK;
}

void play_release(Play *play) {
    for (size_t i = 0; play->infos && i < play->count; i++) {
        HurrayBufferInfo *info = &play->infos[i];
        if (!info->data) continue;
        if (info->event.event_release_fn && i % 2) info->event.event_release_fn(info->event.sync_handle, info->event.event_release_context);
        if (info->release) info->release(info->data, info->release_context);
        if (info->event.event_release_fn && i % 2 == 0) info->event.event_release_fn(info->event.sync_handle, info->event.event_release_context);
    }
    free(play->infos);
    play->infos = NULL;
}

static void *release_main(void *play) {
    play_release(play);
    fake_cuda_check_thread("the releasing thread");
    return NULL;
}

void play_release_elsewhere(Play *play) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, release_main, play) != 0) _exit(96);
    pthread_join(thread, NULL);
}
