/* The progress bar: only on a terminal, only when not quiet. */
#ifndef HRY_CLI_PROGRESS_H
#define HRY_CLI_PROGRESS_H

#include "cli.h"

typedef struct Bar {
    bool shown;
    double began, last;
} Bar;

void bar_begin(Bar *bar, const Output *output);
/* Draws at most ten times a second, and always at the end. */
void bar_update(Bar *bar, uint64_t done, uint64_t total, bool last);
void bar_end(Bar *bar);

#endif
