/* NPZ archives: which zips are one. */
#ifndef HRY_IMPORT_NPZ_H
#define HRY_IMPORT_NPZ_H

#include "base/alloc.h"
#include "hurray.h"

/* OK: the zip is an NPZ (a member begins as an NPY array does, or there is no member). Else UNSUPPORTED, naming what it is. */
HurrayStatus hry_npz_probe(const HurrayTransport *transport, uint64_t size, const HurrayAllocator *allocator, HurrayError *error);

#endif
