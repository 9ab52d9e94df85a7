/* Errors of the system as error records, and the page size. */
#ifndef HRY_CPU_SYSTEM_H
#define HRY_CPU_SYSTEM_H

#include <stddef.h>

#include "base/fail.h"

/* "cannot WHAT PATH: <text of errno>", with system_error set and the path as source (NULL: none). Returns code. */
HurrayStatus hry_fail_system(HurrayError *error, HurrayStatus code, int system_error, const char *what, const char *path);

size_t hry_page_size(void);

#endif
