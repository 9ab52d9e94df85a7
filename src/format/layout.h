/* Layout payloads (docs/format.md section 3.1) between bytes and HurrayLayout, and the rules that payload, rank and
 * shape alone decide. Nested tiles are a list of levels. */
#ifndef HRY_FORMAT_LAYOUT_H
#define HRY_FORMAT_LAYOUT_H

#include "format/descriptor.h"
#include "format/part.h"

/* Where a decoded layout's arrays lie until the descriptor has its own block. */
typedef struct HryLayoutRoom {
    int64_t strides[HURRAY_MAX_RANK];
    uint32_t words[HURRAY_MAX_RANK]; /* Morton bits, CSF mode order */
    HurrayTileLevel tiles[HRY_MAX_TILE_LEVELS];
    uint64_t tile_shape[HRY_MAX_TILE_LEVELS][HURRAY_MAX_RANK];
    int64_t outer_strides[HRY_MAX_TILE_LEVELS][HURRAY_MAX_RANK];
    int64_t inner_strides[HRY_MAX_TILE_LEVELS][HURRAY_MAX_RANK];
} HryLayoutRoom;

bool hry_layout_is_listed(uint8_t tag);
/* "row-major", ...; "private", "unknown". */
const char *hry_layout_name(uint8_t tag);
/* How many buffers the layout itself has (quantization parameters come on top); 0 for composite heads, and for private
 * layouts, which may have any number from 1 on. */
uint32_t hry_layout_buffer_count(uint8_t tag, uint32_t rank);
static inline bool hry_layout_is_sparse(uint8_t tag) { return tag >= HURRAY_LAYOUT_COO && tag <= HURRAY_LAYOUT_CSF; }

/* Reads the payload; checks what the struct cannot hold (reserved bytes, a level too many). rank <= 64. */
HurrayStatus hry_layout_decode(HryCursor *cursor, uint8_t tag, uint32_t rank, HryLayoutRoom *room, HurrayLayout *out, HurrayError *error);
/* Every rule of the payload. Arrays that the tag has are there. at: of the payload's first byte. */
HurrayStatus hry_layout_check(const HurrayLayout *layout, uint32_t rank, const uint64_t *shape, uint64_t at, HurrayError *error);
/* Does every nested tile divide the tile around it, so that no two elements share a place? *level, *dim: the first that does not. */
bool hry_layout_tiles_divide(const HurrayLayout *layout, uint32_t rank, uint32_t *level, uint32_t *dim);
void hry_layout_encode(HryEmit *emit, const HurrayLayout *layout, uint32_t rank);

#endif
