#include "support/resident.h"

#include <stdio.h>
#include <string.h>

static uint64_t kib_line(const char *path, const char *name) {
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) sscanf(line + strlen(name), ": %llu", &kib);
    if (file) fclose(file);
    return (uint64_t)kib << 10;
}

uint64_t resident_bytes(const char *line) { return kib_line("/proc/self/status", line); }

uint64_t resident_available(void) { return kib_line("/proc/meminfo", "MemAvailable"); }

bool resident_reset_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) return false;
    bool done = fputs("5", file) >= 0;
    return fclose(file) == 0 && done;
}
