/* Foreign files for tests: built in memory, opened from a heap block of exactly their size. */
#ifndef HRY_TESTS_IMPORT_CASE_H
#define HRY_TESTS_IMPORT_CASE_H

#include "import/model.h"

/* Bytes under construction. */
typedef struct Built {
    uint8_t *bytes;
    size_t len, capacity;
} Built;

void built_bytes(Built *built, const void *bytes, size_t len);
void built_text(Built *built, const char *text);
void built_u8(Built *built, uint8_t value);
void built_u16(Built *built, uint16_t value);
void built_u32(Built *built, uint32_t value);
void built_u64(Built *built, uint64_t value);
void built_f32(Built *built, float value);
void built_zeros(Built *built, size_t len);
void built_free(Built *built);

typedef HurrayStatus (*ImportOpen)(const HurrayTransport *transport, uint64_t size, const HryLimits *limits,
                                   const HurrayAllocator *allocator, HryCatalogue **out, HurrayError *error);

HryLimits import_limits(void);
/* Asserts that it opens. */
HryCatalogue *import_open(ImportOpen open, const void *bytes, size_t len);
#define IMPORT_ANY 0 /* any failure */
/* Asserts that it is refused with this status and a message, tensor or field that holds the word (NULL: any), and that nothing is held. */
void import_refused(ImportOpen open, const void *bytes, size_t len, HurrayStatus status, const char *word);
/* The same with limits. */
void import_refused_by(ImportOpen open, const HryLimits *limits, const void *bytes, size_t len, HurrayStatus status, const char *word);
/* Opens with the k-th allocation failing, for every k: NO_MEMORY, nothing held; and with the k-th read failing: its status. */
void import_fails_cleanly(ImportOpen open, const void *bytes, size_t len);
/* Opens what is left when the file ends at each place: a refusal has a message, nothing leaks. */
void import_cut_everywhere(ImportOpen open, const void *bytes, size_t len);
/* Opens it with each bit of its first `bytes_to_damage` bytes turned: no leak, every refusal has a message. */
void import_damage_everywhere(ImportOpen open, const void *bytes, size_t len, size_t bytes_to_damage);
/* Buffer 0 of entry i, read through the byte source in pieces of `piece` bytes (0: at once). free() it. */
uint8_t *import_read(const HryCatalogue *catalogue, const void *bytes, size_t len, uint64_t i, size_t piece, HurrayStatus *status);

/* A safetensors file: length field, header, data. */
void built_safetensors(Built *built, const char *header, const void *data, size_t data_len);

#endif
