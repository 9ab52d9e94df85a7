#include "cpu/system.h"

#include <string.h>
#include <unistd.h>

HurrayStatus hry_fail_system(HurrayError *error, HurrayStatus code, int system_error, const char *what, const char *path) {
    char shown[160], text[128];
    hry_escape(shown, sizeof shown, path ? path : "", path ? strlen(path) : 0);
    const char *reason = strerror_r(system_error, text, sizeof text);
    hry_fail(error, code, NULL, HRY_NO_OFFSET, "cannot %s%s%s: %s", what, path ? " " : "", shown, reason);
    error->system_error = system_error;
    if (path) hry_escape(error->source, sizeof error->source, path, strlen(path));
    return code;
}

size_t hry_page_size(void) {
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
}
