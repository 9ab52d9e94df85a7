/* A transport over memory, driven by a pattern: how many bytes each call moves, which calls fail, which report too much.
 *
 *     ScriptTransport script;
 *     script_source(&script, bytes, len);          or script_sink(&script)
 *     HurrayTransport transport = script_transport(&script);
 *     script_every(&script, 1);                    one byte a call
 *     script_fail(&script, 3, -1001, 0);           the third moving call from now fails, once
 */
#ifndef HRY_TESTS_SCRIPT_TRANSPORT_H
#define HRY_TESTS_SCRIPT_TRANSPORT_H

#include <pthread.h>
#include <stdbool.h>

#include "hurray.h"

#define SCRIPT_ALL SIZE_MAX

/* One moving call (read, read_at, write). */
typedef struct ScriptStep {
    size_t limit;        /* bytes moved at most; SCRIPT_ALL: all that was asked; 0: none, and OK */
    HurrayStatus status; /* not OK: returned, nothing moved */
    size_t over;         /* reported beyond what was offered */
} ScriptStep;

typedef struct ScriptTransport {
    pthread_mutex_t lock;
    uint8_t *bytes; /* own memory of exactly len bytes (source) or what was written (sink) */
    size_t len, capacity, position;
    const ScriptStep *steps; /* used in order, then from the start again; none: all calls move everything */
    size_t step_count, step;
    size_t every;       /* 0: no bound; else no call moves more */
    uint64_t fail_call; /* of the moving calls since script_fail, from 1; 0: none */
    HurrayStatus fail_status;
    bool fail_sticky;
    uint64_t counted; /* moving calls since script_fail */
    uint64_t reads, read_ats, writes, sizes, finishes, releases;
    uint64_t size_claim; /* what size says; HURRAY_NONE: len */
    HurrayStatus size_status;
    uint64_t finish_failures; /* so many finish calls fail with finish_status */
    HurrayStatus finish_status;
    uint32_t flags, io_alignment; /* of the transport; with io_alignment above 1 each read_at is asserted to keep it */
    size_t largest;               /* bytes offered to a call, at most */
    void (*before)(void *ctx);    /* called inside each moving call (reentrance) */
    void *before_ctx;
} ScriptTransport;

void script_source(ScriptTransport *script, const void *bytes, size_t len);
void script_sink(ScriptTransport *script);
HurrayTransport script_transport(ScriptTransport *script);
void script_pattern(ScriptTransport *script, const ScriptStep *steps, size_t count); /* borrowed */
void script_every(ScriptTransport *script, size_t bytes);
void script_fail(ScriptTransport *script, uint64_t call, HurrayStatus status, int sticky);
/* Back to the state after script_source or script_sink: position 0, sink empty, no script, counts 0. */
void script_reset(ScriptTransport *script);
void script_free(ScriptTransport *script);

#endif
