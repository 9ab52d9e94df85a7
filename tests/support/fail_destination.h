/* A destination for tests: counts what lives, fails at the n-th call, answers WAIT, hands out small windows, has bytes already, or
 * freezes something else than was asked for. */
#ifndef HRY_TESTS_FAIL_DESTINATION_H
#define HRY_TESTS_FAIL_DESTINATION_H

#include <stdbool.h>

#include "hurray/destination.h"

#define FAIL_DESTINATION_REQUESTS 16

typedef struct FailDestination {
    HurrayDestinationAlloc destination; /* hand this to the library */
    /* what to do */
    uint64_t fail_at; /* the call (allocate, window, commit, freeze; from 1) that fails; 0: none */
    HurrayStatus fail_status;
    bool sticky;                  /* fail_at and every later one */
    uint32_t waits;               /* each allocate, window and freeze answers WAIT so often before it does its work */
    size_t window_bytes;          /* the longest window; 0: the whole rest */
    const uint8_t *prefilled;     /* source bytes: buffers with a known source offset are there already */
    bool hide;                    /* ... where the host cannot read them */
    bool elsewhere;               /* freeze says `place` instead of host memory */
    HurrayBufferInfo place;       /* device_tag, device_index, sync_mode, memory_class, event, order */
    uint32_t alignment;           /* 0: as asked; else what freeze says */
    size_t shift;                 /* bytes by which the memory is off its alignment */
    uint64_t bad_len, bad_offset; /* added to every window's answer */
    bool no_ptr, bad_size, no_id;
    /* what happened */
    uint64_t calls, allocates, windows, commits, freezes, discards, wait_calls, retains, releases;
    uint64_t live;   /* ids and buffers that nobody released */
    uint64_t events; /* that nobody released */
    uint64_t request_count;
    HurrayDestinationRequest requests[FAIL_DESTINATION_REQUESTS];
    uint32_t waited; /* towards `waits` */
} FailDestination;

void fail_destination_init(FailDestination *fail);
/* For the next run: call n fails with this status, once or from then on; calls count from 0 again. */
void fail_destination_arm(FailDestination *fail, uint64_t n, HurrayStatus status, bool sticky);
/* Asserts that no id, buffer or event lives. */
void fail_destination_assert_empty(const FailDestination *fail);

#endif
