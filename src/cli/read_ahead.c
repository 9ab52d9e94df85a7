#include "read_ahead.h"

#include <pthread.h>
#include <stdlib.h>

#define PIECES 4u

struct ReadAhead {
    HurrayLoader *loader;
    size_t piece_bytes;
    unsigned char *memory; /* PIECES pieces */
    size_t lens[PIECES];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t tensor, bytes;
    uint32_t buffer;
    uint64_t read, taken; /* pieces of the buffer under way */
    bool held;            /* the caller still has the piece before `taken` */
    bool busy, stop, quit;
    HurrayStatus status;
};

/* One buffer, piece after piece, as fast as pieces come free. Called without the lock. */
static void read_buffer(ReadAhead *ahead) {
    for (uint64_t at = 0; at < ahead->bytes;) {
        pthread_mutex_lock(&ahead->lock);
        while (ahead->read - ahead->taken + (ahead->held ? 1u : 0u) >= PIECES && !ahead->stop) pthread_cond_wait(&ahead->changed, &ahead->lock);
        bool stop = ahead->stop;
        size_t slot = (size_t)(ahead->read % PIECES);
        pthread_mutex_unlock(&ahead->lock);
        if (stop) return;
        size_t len = ahead->bytes - at < ahead->piece_bytes ? (size_t)(ahead->bytes - at) : ahead->piece_bytes;
        HurrayStatus status = hurray_loader_read_bytes(ahead->loader, ahead->tensor, ahead->buffer, at, ahead->memory + slot * ahead->piece_bytes, len);
        pthread_mutex_lock(&ahead->lock);
        ahead->status = status;
        if (status == HURRAY_OK) ahead->lens[slot] = len, ahead->read++;
        pthread_cond_broadcast(&ahead->changed);
        pthread_mutex_unlock(&ahead->lock);
        if (status != HURRAY_OK) return;
        at += len;
    }
}

static void *run(void *ctx) {
    ReadAhead *ahead = ctx;
    pthread_mutex_lock(&ahead->lock);
    for (;;) {
        while (!ahead->busy && !ahead->quit) pthread_cond_wait(&ahead->changed, &ahead->lock);
        if (ahead->quit) break;
        pthread_mutex_unlock(&ahead->lock);
        read_buffer(ahead);
        pthread_mutex_lock(&ahead->lock);
        ahead->busy = false;
        pthread_cond_broadcast(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

ReadAhead *read_ahead_new(HurrayLoader *loader, size_t piece_bytes) {
    ReadAhead *ahead = calloc(1, sizeof *ahead);
    if (!ahead) return NULL;
    ahead->loader = loader;
    ahead->piece_bytes = piece_bytes;
    ahead->memory = malloc(PIECES * piece_bytes);
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    if (ahead->memory && pthread_create(&ahead->thread, NULL, run, ahead) == 0) return ahead;
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead->memory);
    free(ahead);
    return NULL;
}

void read_ahead_free(ReadAhead *ahead) {
    if (!ahead) return;
    read_ahead_stop(ahead);
    pthread_mutex_lock(&ahead->lock);
    ahead->quit = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead->memory);
    free(ahead);
}

void read_ahead_begin(ReadAhead *ahead, uint64_t tensor, uint32_t buffer, uint64_t bytes) {
    pthread_mutex_lock(&ahead->lock);
    ahead->tensor = tensor;
    ahead->buffer = buffer;
    ahead->bytes = bytes;
    ahead->read = ahead->taken = 0;
    ahead->held = ahead->stop = false;
    ahead->status = HURRAY_OK;
    ahead->busy = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

HurrayStatus read_ahead_next(ReadAhead *ahead, const void **piece, size_t *len) {
    pthread_mutex_lock(&ahead->lock);
    if (ahead->held) {
        ahead->held = false;
        pthread_cond_broadcast(&ahead->changed);
    }
    while (ahead->busy && ahead->read == ahead->taken) pthread_cond_wait(&ahead->changed, &ahead->lock);
    *len = 0;
    HurrayStatus status = HURRAY_OK;
    if (ahead->read > ahead->taken) {
        size_t slot = (size_t)(ahead->taken++ % PIECES);
        *piece = ahead->memory + slot * ahead->piece_bytes;
        *len = ahead->lens[slot];
        ahead->held = true;
    } else {
        status = ahead->status;
    }
    pthread_mutex_unlock(&ahead->lock);
    return status;
}

void read_ahead_stop(ReadAhead *ahead) {
    pthread_mutex_lock(&ahead->lock);
    ahead->stop = true;
    pthread_cond_broadcast(&ahead->changed);
    while (ahead->busy) pthread_cond_wait(&ahead->changed, &ahead->lock);
    pthread_mutex_unlock(&ahead->lock);
}
