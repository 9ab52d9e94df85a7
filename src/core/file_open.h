/* Opening a file: header, trailer, index and KV, one range each, become a catalogue. No I/O, no waiting. A failure is for good. */
#ifndef HRY_CORE_FILE_OPEN_H
#define HRY_CORE_FILE_OPEN_H

#include "core/catalogue.h"
#include "format/container.h"
#include "hurray/core.h"

typedef struct HryOpenLimits {
    uint64_t max_tensors, max_index_bytes, max_kv_bytes; /* 0: the default of the options */
} HryOpenLimits;

typedef enum HryOpenStage { HRY_OPEN_START, HRY_OPEN_HEADER, HRY_OPEN_TRAILER, HRY_OPEN_INDEX, HRY_OPEN_KV, HRY_OPEN_DONE } HryOpenStage;

typedef struct HryFileOpen {
    HurrayAllocator allocator;
    HryOpenLimits limits;
    uint64_t file_size;
    HryOpenStage stage;
    HryHeader header;
    HryTrailer trailer;
    uint8_t fixed[HRY_HEADER_SIZE]; /* header, then trailer */
    uint64_t offset;                /* of the range in the file */
    uint8_t *dst;
    size_t len, filled;
    HryCatalogue *catalogue;
} HryFileOpen;

/* Keeps nothing but numbers. */
void hry_file_open_begin(HryFileOpen *open, uint64_t file_size, const HryOpenLimits *limits, const HurrayAllocator *allocator);
/* RANGE, or READY: then *catalogue is the caller's (once). */
HurrayStatus hry_file_open_step(HryFileOpen *open, HurrayStep *step, HryCatalogue **catalogue, HurrayError *error);
/* The rest of the range; false when none is asked for. */
bool hry_file_open_rest(const HryFileOpen *open, uint8_t **dst, size_t *len);
/* n <= len bytes are in place; 0 is TRUNCATED. */
HurrayStatus hry_file_open_report(HryFileOpen *open, size_t n, HurrayError *error);
void hry_file_open_clear(HryFileOpen *open);

#endif
