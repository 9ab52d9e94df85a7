/* Models for tests: bytes of .hrry and safetensors files with contents that can be told again. */
#ifndef HRY_TESTS_MODELS_H
#define HRY_TESTS_MODELS_H

#include "hurray.h"

typedef struct ModelBytes {
    uint8_t *bytes; /* heap block of exactly len */
    size_t len;
} ModelBytes;

/* A uint8 tensor of `size` elements named name, whose byte k is model_byte(seed, k). */
typedef struct ModelTensor {
    const char *name;
    uint64_t size;
    uint32_t seed;
} ModelTensor;

uint8_t model_byte(uint32_t seed, uint64_t k);
void model_fill(uint8_t *dst, uint32_t seed, uint64_t from, size_t len);
/* Is every byte of buffer 0 of the tensor right? */
int model_tensor_is(const HurrayTensor *tensor, uint64_t size, uint32_t seed);

/* Through the public writer, with one string KV "made" = "here" and, unless told otherwise, checksums. */
ModelBytes model_hrry(const ModelTensor *tensors, size_t count, uint32_t writer_flags);
/* A file writer over memory for anything else: begin, write what you like, end. */
typedef struct ModelWriter {
    void *script;
    HurrayFileWriter *writer;
} ModelWriter;
void model_writer_begin(ModelWriter *writer, uint32_t flags);
ModelBytes model_writer_end(ModelWriter *writer);
ModelBytes model_safetensors(const ModelTensor *tensors, size_t count);
void model_free(ModelBytes *bytes);
/* "name" written to a folder; path is static memory of the next call's reach. */
const char *model_save(const ModelBytes *bytes, const char *name);

#endif
