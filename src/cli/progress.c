#include "progress.h"

#include <string.h>

#define WIDTH 30

void bar_begin(Bar *bar, const Output *output) {
    bar->shown = output->terminal && !output->quiet;
    bar->began = now_seconds();
    bar->last = 0;
}

void bar_update(Bar *bar, uint64_t done, uint64_t total, bool last) {
    double now = now_seconds(), elapsed = now - bar->began;
    if (!bar->shown || (!last && now - bar->last < 0.1)) return;
    bar->last = now;
    double part = total ? (double)done / (double)total : 1;
    char cells[WIDTH + 1];
    size_t full = part >= 1 ? WIDTH : (size_t)(part * WIDTH);
    memset(cells, '-', WIDTH);
    memset(cells, '#', full);
    cells[WIDTH] = 0;
    double speed = elapsed > 0 ? (double)done / elapsed : 0;
    fprintf(stderr, "\r[%s] %5.1f %%  %s of %s  %s/s", cells, part * 100, bytes_word(done), bytes_word(total), bytes_word((uint64_t)speed));
    if (!last && speed > 0 && total > done) fprintf(stderr, "  %.0f s left", (double)(total - done) / speed);
    fputs("\033[K", stderr);
    fflush(stderr);
}

void bar_end(Bar *bar) {
    if (bar->shown) fputs("\r\033[K", stderr);
    bar->shown = false;
}
