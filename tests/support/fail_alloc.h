/* An allocator for tests: counts what is live, checks that sizes at release are those of the allocation, fails on demand. */
#ifndef HRY_TESTS_FAIL_ALLOC_H
#define HRY_TESTS_FAIL_ALLOC_H

#include <pthread.h>

#include "hurray.h"

typedef struct FailAlloc {
    HurrayAllocator allocator; /* hand this to the library */
    pthread_mutex_t lock;
    uint64_t calls;   /* allocations asked for so far */
    uint64_t fail_at; /* the call (from 1) that fails; 0: none */
    int sticky;       /* fail_at and every later one */
    uint64_t live;    /* blocks not yet released */
    uint64_t live_bytes, peak_bytes;
} FailAlloc;

void fail_alloc_init(FailAlloc *alloc);
/* For the next run: fail call k (0: never), once or from then on. Resets the call count. */
void fail_alloc_arm(FailAlloc *alloc, uint64_t k, int sticky);
/* Asserts that nothing is live. */
void fail_alloc_assert_empty(const FailAlloc *alloc);

#endif
