/* What the pieces of C in docs/ stand in: names that they use and do not declare. Compiled, never run. */
#ifndef HURRAY_TESTS_DOCS_PRELUDE_H
#define HURRAY_TESTS_DOCS_PRELUDE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hurray.h"
#include "hurray/core.h"
#include "hurray/cuda.h"
#include "hurray/dense.h"
#include "hurray/destination.h"
#include "hurray/import.h"
#include "hurray/loader.h"
#include "hurray/transport.h"

static HurrayError error;
static HurrayStatus status;
static const char *path;
static int fd;
static const uint64_t shape[2];
static float out[16];
static HurrayTransport transport;
static HurrayFileReader *reader;
static HurrayFileWriter *writer;
static HurrayReader *stream;
static HurrayLoader *loader;
static HurrayTensorSet *set;
static HurrayTensor *tensor;
static HurrayDescriptor *descriptor, *head, *a, *b;
static HurrayIoSlice slice, left_bytes, right_bytes;

typedef struct Task { int fd, done; HurrayStreamReaderCore *reader; } Task;
typedef struct Block { uint8_t *memory; } Block;
Block *aligned_block(size_t size, uint32_t alignment);
void my_release(void *data, void *context);
#ifdef HURRAY_DOCS_INSIDE_A_FUNCTION
HurrayStatus file_read_at(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *out_filled);
HurrayStatus file_size(void *ctx, uint64_t *out_size);
#endif

#endif
