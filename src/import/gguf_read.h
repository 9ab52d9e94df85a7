/* The header of a GGUF file, read forward through a small buffer: it has no length field. */
#ifndef HRY_IMPORT_GGUF_READ_H
#define HRY_IMPORT_GGUF_READ_H

#include "import/arena.h"
#include "import/common.h"

#define HRY_GGUF_BUFFER 65536u

typedef struct HryGgufReader {
    const HurrayTransport *transport;
    uint64_t size, position; /* of the file; of the next byte */
    uint8_t *buffer;         /* HRY_GGUF_BUFFER bytes */
    size_t at, have;
    HryCatalogue *catalogue;
    HryArena arena;
    uint64_t budget; /* bytes that values may still take */
    HurrayError *error;
} HryGgufReader;

/* Each fails with TRUNCATED where the file ends too early. what: for messages. */
HurrayStatus hry_gguf_bytes(HryGgufReader *reader, void *dst, size_t len, const char *what);
HurrayStatus hry_gguf_u32(HryGgufReader *reader, uint32_t *out, const char *what);
HurrayStatus hry_gguf_u64(HryGgufReader *reader, uint64_t *out, const char *what);
/* A string, kept as long as the catalogue; its bytes count against the budget. */
HurrayStatus hry_gguf_string(HryGgufReader *reader, const uint8_t **out, size_t *len, const char *what);
/* A value of the kind, widened, with arrays up to 8 deep; kept as long as the catalogue. */
HurrayStatus hry_gguf_value(HryGgufReader *reader, uint32_t kind, HurrayKvValue *out);

static inline uint64_t hry_gguf_rest(const HryGgufReader *reader) { return reader->size - reader->position; }

#endif
