/* The loader's trace events: kept, then written as a Chrome trace (JSON) or drawn as a timeline (SVG). */
#ifndef HRY_CLI_TRACE_H
#define HRY_CLI_TRACE_H

#include "cli.h"

typedef struct Trace {
    HurrayTraceEvent *events;
    size_t count, capacity;
    bool lost; /* no memory for all of them */
} Trace;

void trace_add(Trace *trace, const HurrayTraceEvent *event);
void trace_clear(Trace *trace);
/* Both return an exit code and report what went wrong. */
int trace_write_json(const Trace *trace, const char *path);
int trace_write_svg(const Trace *trace, const char *path, const char *title);

#endif
