/* Plays the part of a core and its driver over any destination: allocates, fills windows with bytes that tell buffer and place apart,
 * commits, freezes, and looks at the bytes as a consumer of the sync mode would. */
#ifndef HRY_TESTS_HELP_PLAY_H
#define HRY_TESTS_HELP_PLAY_H

#include <stdbool.h>

#include "hurray/destination.h"

typedef struct Play {
    size_t count;
    const uint64_t *sizes; /* NULL: all of `size` */
    uint64_t size;
    uint32_t alignment;    /* 0: 4096 */
    uint64_t chunk;        /* bytes asked for per window; 0: all */
    size_t active;         /* buffers on their way at once; 0: 8 */
    uint64_t seed;         /* order of the windows */
    uint8_t device_tag, sync_mode, memory_class;
    int32_t device_index;
    void *consumer_stream, *copy_stream;
    void **into;
    bool no_wait;          /* an event loop: never calls wait */
    bool no_reserve, no_check;
    bool late_freeze;      /* each buffer is filled at one go, and asked for once all others are */
    size_t stop_after;     /* discards everything once so many windows were committed; 0: never */
    /* what became of it */
    HurrayBufferInfo *infos; /* of count buffers; release NULL: none */
    uint64_t windows, waits;
} Play;

HurrayStatus play_run(HurrayDestinationAlloc *destination, Play *play);
/* Releases what was frozen, events first or last. */
void play_release(Play *play);
void play_release_elsewhere(Play *play); /* on a thread of its own */
uint8_t play_byte(size_t buffer, uint64_t at);
void play_fill(uint8_t *to, size_t buffer, uint64_t at, uint64_t len);
uint64_t play_size(const Play *play, size_t i);
/* Looks at one frozen buffer as its mode says. */
void play_check(const Play *play, size_t i);

#endif
