/* Public structs of any release in, the latest form out; results the other way. */
#ifndef HRY_BASE_OPTIONS_H
#define HRY_BASE_OPTIONS_H

#include <stddef.h>

#include "base/fail.h"

/* Copies the caller's struct (struct_size first) over *out, which holds the defaults. NULL: the defaults stay.
 * Below first_size: INVALID_ARGUMENT; a tail that we do not know and that is not zero: UNSUPPORTED. what: the
 * struct's name. out->struct_size becomes out_size. */
HurrayStatus hry_options_read(void *out, size_t out_size, size_t first_size, const void *user, const char *what, HurrayError *error);

/* Fills a caller's result struct from the latest form: what both know is copied, the rest of the caller's zeroed, its
 * struct_size kept. Below first_size: INVALID_ARGUMENT. */
HurrayStatus hry_result_write(void *user, size_t first_size, const void *latest, size_t latest_size);

#endif
