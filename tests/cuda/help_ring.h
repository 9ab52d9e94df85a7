/* A small staging ring over the table, correct or with one planted bug: what the stand-in is tested with. */
#ifndef HRY_TESTS_HELP_RING_H
#define HRY_TESTS_HELP_RING_H

#include "cuda/fake_cuda.h"

typedef enum RingBug {
    RING_CORRECT,
    /* those of the specification's table */
    RING_REFILLS_BEFORE_EVENT,
    RING_RECORDS_BEFORE_COPY,
    RING_FREES_WITH_COPIES_PENDING,
    RING_NO_HOST_WAIT,
    RING_LEAVES_NOT_READY,
    RING_IGNORES_COPY_CODE,
    RING_WAITS_ON_WRONG_STREAM,
    RING_JOINS_ONE_OF_TWO_STREAMS,
    RING_DESTROYS_EVENT_AT_HAND_OFF,
    RING_NOT_PINNED,
    RING_STORES_TO_DEVICE,
    RING_OTHER_DEVICE_CURRENT,
    RING_TAIL_COPIES_WHOLE_SLOT,
    RING_REFUSED_PIN_LEAVES_ERROR,
    RING_LEAKS_EVENT,
    RING_QUERIES_BEFORE_RECORDING,
    RING_HANDS_OUT_UNRECORDED,
    RING_LOOPS_ON_DEAD_CONTEXT,
    /* the other checks */
    RING_COPIES_NOTHING,
    RING_WRONG_KIND,
    RING_FREES_TWICE,
    RING_COPIES_TO_FREED,
    RING_RECORDS_ON_OTHER_DEVICE,
    RING_RECORDS_HANDED_OUT,
    RING_WAITS_FOR_NO_DRIVER,
    RING_CALLS_FROM_CHILD,
    RING_PINS_ABOVE_CAP,
    RING_WAITS_LOCKED,
    RING_USES_STREAM_2_ELSEWHERE,
    RING_NO_GUARD,
    RING_NO_POP,
    RING_LEAVES_CAPTURE_MODE,
    RING_UNMAPS_BEFORE_UNREGISTER,
    RING_LEAKS_DEVICE_MEMORY,
    RING_LEAKS_CONTEXT,
    RING_LEAKS_DESCRIPTOR,
    RING_SKIPS_A_WINDOW,
    RING_WRITES_WRONG_BYTES,
    RING_BUGS
} RingBug;

typedef enum RingMode { RING_PRODUCER_SYNCED, RING_EVENT, RING_CONSUMER_STREAM } RingMode;

const char *ring_bug_name(RingBug bug);
int ring_bug_check(RingBug bug); /* the check that must end the run */
RingMode ring_bug_mode(RingBug bug);
/* One whole run: begin, ring, end. Returns when nothing was found. */
void ring_run(RingBug bug, RingMode mode, FakeSchedule schedule, uint64_t seed);

#endif
