/* Elements as text: one a line. */
#ifndef HRY_CLI_ELEMENTS_H
#define HRY_CLI_ELEMENTS_H

#include "cli.h"

/* Can elements of this type be printed from their own bytes? Others are decoded to float32 first. */
bool elements_printable(uint8_t type);
/* count elements of `type`, packed as the format packs them, to standard output; no more once a write has failed. */
void elements_print(uint8_t type, const void *bytes, uint64_t count);

#endif
