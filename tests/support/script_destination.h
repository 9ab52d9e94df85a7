/* A destination for tests that behaves like a device's: bounded windows from few slots, copies that end only when asked for, WAIT in
 * allocate, window and freeze, failures on demand. Keeps the rules of the seam and asserts that its caller does. */
#ifndef HRY_TESTS_SCRIPT_DESTINATION_H
#define HRY_TESTS_SCRIPT_DESTINATION_H

#include <pthread.h>
#include <stdbool.h>

#include "hurray/destination.h"

#define SCRIPT_CALLS 8u
enum { SCRIPT_RESERVE, SCRIPT_ALLOCATE, SCRIPT_WINDOW, SCRIPT_COMMIT, SCRIPT_FREEZE, SCRIPT_DISCARD, SCRIPT_WAIT, SCRIPT_RETAIN };

typedef struct ScriptDestination {
    pthread_mutex_t lock;
    size_t slots, slot_bytes; /* 0 slots: a whole buffer is one window */
    bool concurrent;
    bool no_wait;          /* without the callback */
    uint32_t alloc_waits;  /* so many allocates answer WAIT first */
    uint32_t freeze_waits; /* each freeze answers WAIT so often, even with its copies done */
    size_t prefill_from;   /* buffers of at least so many bytes are in place already; 0: none. Needs source */
    const uint8_t *source; /* the source's bytes, for prefilled ones */
    bool prefill_unreadable;
    uint8_t device_tag, sync_mode, memory_class;
    uint64_t fail_call[SCRIPT_CALLS]; /* that call of the kind fails, from 1 */
    HurrayStatus fail_status;
    /* what happened */
    uint64_t calls[SCRIPT_CALLS];
    uint64_t live;  /* ids and buffers */
    uint64_t holds; /* retained and not released */
    size_t busy, most_busy;
    uint64_t reserved_bytes, reserved_buffers;
    HurrayDestinationRequest last;
    pthread_t thread;
    bool any_thread;
    struct ScriptSlot *slot;
    struct ScriptBuffer *buffers;
} ScriptDestination;

/* slots 0: windows are whole buffers. */
void script_destination_init(ScriptDestination *script, size_t slots, size_t slot_bytes, bool concurrent);
HurrayDestinationAlloc script_destination(ScriptDestination *script);
/* Asserts that nothing is live and nobody holds it. */
void script_destination_end(ScriptDestination *script);

#endif
