/* The loader's trace events: kept, then written as a Chrome trace (JSON) or drawn as a timeline (SVG). */
#ifndef HRY_CLI_TRACE_H
#define HRY_CLI_TRACE_H

#include "model.h"

typedef struct Trace {
    HurrayTraceEvent *events;
    size_t count, capacity;
    bool lost; /* no memory for all of them */
} Trace;

void trace_add(Trace *trace, const HurrayTraceEvent *event);
void trace_clear(Trace *trace);

/* A file that will take the events: opened before they come, so that one that cannot be written is known in time. */
typedef struct TraceFile {
    const char *path;
    FILE *file; /* NULL: none */
    bool created;
} TraceFile;

int trace_open(TraceFile *out, const char *path);
/* Nothing came of it: one that was not there before goes again. Does nothing to a file that was written. */
void trace_drop(TraceFile *file);
/* Both close the file. All of these return an exit code and report what went wrong. */
int trace_write_json(const Trace *trace, TraceFile *out, Model *model);
int trace_write_svg(const Trace *trace, TraceFile *out, Model *model);

#endif
