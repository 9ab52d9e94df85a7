/* Tensors for tests of what contents mean: a descriptor and its buffers, each in a heap block of exactly its size. */
#ifndef HRY_TESTS_CONTENTS_H
#define HRY_TESTS_CONTENTS_H

#include "format/descriptor.h"
#include "format/payload.h"

#define CONTENTS_MAX 16

typedef struct Contents {
    HurrayDescriptor *descriptor;
    HryBytes bytes[CONTENTS_MAX];
} Contents;

/* What most tests vary; zero is row-major, byte_offset 0, unquantized. */
typedef struct ContentsSpec {
    uint8_t type;
    uint32_t rank;
    const uint64_t *shape;
    const HurrayLayout *layout;
    const HurrayQuantization *quantization;
    const HurrayExtensionType *extension_type;
    const HurrayStatistics *statistics;
    uint64_t byte_offset;
    uint32_t buffer_count; /* 0: 1 */
    uint64_t sizes[CONTENTS_MAX];
    const void *data[CONTENTS_MAX]; /* NULL: zeros */
} ContentsSpec;

/* Asserts that the descriptor is accepted. */
void contents_make(Contents *contents, const ContentsSpec *spec);
void contents_free(Contents *contents);
/* Writable. */
uint8_t *contents_buffer(const Contents *contents, uint32_t i);
void contents_put_u64(const Contents *contents, uint32_t buffer, uint64_t i, uint64_t value);

/* A repeatable stream of numbers. */
uint64_t contents_random(uint64_t *state);
void contents_fill_random(const Contents *contents, uint64_t *state);

HurrayLayout contents_layout(uint8_t tag);
HurrayQuantization contents_scheme(uint8_t scheme);

/* The whole dense view; asserts that there is one. free() it. */
void *contents_dense(const Contents *contents, uint8_t type);
/* What opening the dense view, or opening and filling it, answers. */
HurrayStatus contents_open_status(const Contents *contents, uint8_t type, HurrayError *error);
HurrayStatus contents_dense_status(const Contents *contents, uint8_t type, HurrayError *error);

#endif
