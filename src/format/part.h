/* What the parts of a descriptor share: where each began in its source, for messages, and the failures every part has. */
#ifndef HRY_FORMAT_PART_H
#define HRY_FORMAT_PART_H

#include "base/cursor.h"
#include "base/emit.h"
#include "base/fail.h"

/* Offsets of the parts' first bytes; HRY_NO_OFFSET throughout for a descriptor that is being built. */
typedef struct HryPlaces {
    uint64_t header, shape, byte_offset, layout, buffers, quantization, shard, statistics, extension_type, composite_member;
} HryPlaces;

extern const HryPlaces hry_places_none;

/* The byte `delta` into a part, or still unknown. */
static inline uint64_t hry_at(uint64_t part, uint64_t delta) { return part == HRY_NO_OFFSET ? part : part + delta; }

/* The field would run past the bytes that there are for it. */
HurrayStatus hry_part_short(HurrayError *error, const char *field, const HryCursor *cursor, uint64_t needed);
/* Reads `len` reserved bytes. */
HurrayStatus hry_part_reserved(HryCursor *cursor, size_t len, const char *field, HurrayError *error);
/* Reads a truth value (0 or 1) that is known to be there. */
HurrayStatus hry_part_truth(HryCursor *cursor, const char *field, uint8_t *out, HurrayError *error);

#endif
