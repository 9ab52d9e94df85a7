/* What a source is, by its content (docs/foreign-formats.md 0.1). */
#ifndef HRY_IMPORT_SNIFF_H
#define HRY_IMPORT_SNIFF_H

#include "base/alloc.h"
#include "hurray.h"

#define HRY_FORMAT_INDEX 100u /* beside HURRAY_FORMAT_...: a safetensors index */

/* name: of the file, for what content does not tell; may be NULL. Refusals say what it is and what to do. */
HurrayStatus hry_sniff(const HurrayTransport *transport, uint64_t size, const char *name, const HurrayAllocator *allocator,
                       uint32_t *format, HurrayError *error);

#endif
