#include "format/address.h"

/* Unsigned arithmetic where a factor may be beyond 64 bits although it is only ever multiplied by 0. */
static int64_t times(uint64_t number, int64_t step) { return (int64_t)(number * (uint64_t)step); }

bool hry_address_exists(const HurrayDescriptor *descriptor) {
    switch (descriptor->layout_tag) {
    case HURRAY_LAYOUT_ROW_MAJOR:
    case HURRAY_LAYOUT_COLUMN_MAJOR:
    case HURRAY_LAYOUT_STRIDED:
    case HURRAY_LAYOUT_TILED:
    case HURRAY_LAYOUT_MORTON:
    case HURRAY_LAYOUT_HILBERT: return true;
    default: return false;
    }
}

uint64_t hry_index_linear(const uint64_t *index, const uint64_t *shape, uint32_t rank) {
    uint64_t linear = 0;
    for (uint32_t k = 0; k < rank; k++) linear = linear * shape[k] + index[k];
    return linear;
}

void hry_index_of_linear(uint64_t linear, const uint64_t *shape, uint32_t rank, uint64_t *index) {
    for (uint32_t k = rank; k-- > 0;) {
        index[k] = linear % shape[k];
        linear /= shape[k];
    }
}

static uint64_t column_major(const uint64_t *index, const uint64_t *shape, uint32_t rank) {
    uint64_t linear = 0;
    for (uint32_t k = rank; k-- > 0;) linear = linear * shape[k] + index[k];
    return linear;
}

static uint64_t product(const uint64_t *dims, uint32_t count) {
    uint64_t all = 1;
    for (uint32_t k = 0; k < count; k++) all *= dims[k];
    return all;
}

static int64_t strided(const uint64_t *index, const int64_t *strides, uint32_t rank) {
    int64_t o = 0;
    for (uint32_t k = 0; k < rank; k++) o += times(index[k], strides[k]);
    return o;
}

/* An index inside a box of the given shape, numbered in one of the three simple orders. */
static int64_t ordered(uint8_t order, const uint64_t *index, const uint64_t *shape, const int64_t *strides, uint32_t rank) {
    if (order == HURRAY_ORDER_ROW_MAJOR) return (int64_t)hry_index_linear(index, shape, rank);
    if (order == HURRAY_ORDER_COLUMN_MAJOR) return (int64_t)column_major(index, shape, rank);
    return strided(index, strides, rank);
}

static HryRun tiled_run(const HurrayDescriptor *descriptor, const uint64_t *index, uint64_t limit) {
    uint32_t rank = descriptor->rank, last = rank - 1;
    uint64_t inside[HURRAY_MAX_RANK], tile[HURRAY_MAX_RANK], grid[HURRAY_MAX_RANK];
    const uint64_t *shape = descriptor->shape;
    HryRun run = {0, 1, limit};
    for (uint32_t k = 0; k < rank; k++) inside[k] = index[k];
    for (uint32_t level = 0; level < descriptor->layout.tile_count; level++) {
        const HurrayTileLevel *tiles = &descriptor->layout.tiles[level];
        for (uint32_t k = 0; k < rank; k++) {
            uint64_t size = tiles->tile_shape[k];
            tile[k] = inside[k] / size;
            inside[k] %= size;
            grid[k] = shape[k] / size + (shape[k] % size != 0);
        }
        run.first += times(product(tiles->tile_shape, rank), ordered(tiles->outer, tile, grid, tiles->outer_strides, rank));
        shape = tiles->tile_shape;
        if (shape[last] - inside[last] < run.count) run.count = shape[last] - inside[last];
        if (tiles->inner == HURRAY_ORDER_TILED) continue;
        run.first += ordered(tiles->inner, inside, shape, tiles->inner_strides, rank);
        if (tiles->inner == HURRAY_ORDER_STRIDED)
            run.step = tiles->inner_strides[last];
        else if (tiles->inner == HURRAY_ORDER_COLUMN_MAJOR)
            run.step = (int64_t)product(shape, last);
    }
    return run;
}

static int64_t morton(const uint64_t *index, uint32_t rank) {
    uint64_t code = 0;
    for (uint32_t d = 0; d < rank; d++) {
        uint64_t rest = index[d];
        for (uint32_t bit = d; rest != 0; rest >>= 1, bit += rank) code |= (rest & 1) << bit;
    }
    return (int64_t)code;
}

/* From coordinates to the place on the curve (Skilling 2004). rank x order is below 64. */
static int64_t hilbert(const uint64_t *index, uint32_t rank, uint32_t order) {
    uint64_t x[HURRAY_MAX_RANK], t = 0, code = 0;
    for (uint32_t i = 0; i < rank; i++) x[i] = index[i];
    for (uint64_t q = UINT64_C(1) << (order - 1); q > 1; q /= 2)
        for (uint32_t i = 0; i < rank; i++) {
            if (x[i] & q) {
                x[0] ^= q - 1;
            } else {
                uint64_t swap = (x[0] ^ x[i]) & (q - 1);
                x[0] ^= swap;
                x[i] ^= swap;
            }
        }
    for (uint32_t i = 1; i < rank; i++) x[i] ^= x[i - 1];
    for (uint64_t q = UINT64_C(1) << (order - 1); q > 1; q /= 2)
        if (x[rank - 1] & q) t ^= q - 1;
    for (uint32_t b = 0; b < order; b++)
        for (uint32_t d = 0; d < rank; d++) code |= ((x[d] ^ t) >> b & 1) << (b * rank + rank - 1 - d);
    return (int64_t)code;
}

bool hry_address_steps(const HurrayDescriptor *descriptor, int64_t *steps) {
    uint64_t step = 1;
    uint32_t rank = descriptor->rank;
    switch (descriptor->layout_tag) {
    case HURRAY_LAYOUT_ROW_MAJOR:
        for (uint32_t k = rank; k-- > 0; step *= descriptor->shape[k]) steps[k] = (int64_t)step;
        return true;
    case HURRAY_LAYOUT_COLUMN_MAJOR:
        for (uint32_t k = 0; k < rank; step *= descriptor->shape[k], k++) steps[k] = (int64_t)step;
        return true;
    case HURRAY_LAYOUT_STRIDED:
        for (uint32_t k = 0; k < rank; k++) steps[k] = descriptor->layout.strides[k];
        return true;
    default: return false;
    }
}

HryRun hry_address_run(const HurrayDescriptor *descriptor, const uint64_t *index, uint64_t limit) {
    const uint64_t *shape = descriptor->shape;
    uint32_t rank = descriptor->rank;
    switch (descriptor->layout_tag) {
    case HURRAY_LAYOUT_ROW_MAJOR: return (HryRun){(int64_t)hry_index_linear(index, shape, rank), 1, limit};
    case HURRAY_LAYOUT_COLUMN_MAJOR:
        return (HryRun){(int64_t)column_major(index, shape, rank), rank ? (int64_t)product(shape, rank - 1) : 1, limit};
    case HURRAY_LAYOUT_STRIDED:
        return (HryRun){strided(index, descriptor->layout.strides, rank), rank ? descriptor->layout.strides[rank - 1] : 1, limit};
    case HURRAY_LAYOUT_TILED: return tiled_run(descriptor, index, limit);
    case HURRAY_LAYOUT_MORTON: return (HryRun){morton(index, rank), 1, 1};
    default: return (HryRun){hilbert(index, rank, descriptor->layout.order), 1, 1};
    }
}

int64_t hry_address_of(const HurrayDescriptor *descriptor, const uint64_t *index) { return hry_address_run(descriptor, index, 1).first; }
