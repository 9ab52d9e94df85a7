/* Elements as text: one a line. */
#ifndef HRY_CLI_ELEMENTS_H
#define HRY_CLI_ELEMENTS_H

#include "cli.h"

/* Can elements of this type be printed from their own bytes? Others are decoded to float32 first. */
bool elements_printable(uint8_t type);
/* Prints count elements of `type`, packed as the format packs them. */
void elements_print(FILE *to, uint8_t type, const void *bytes, uint64_t count);

#endif
