/* Files and streams for tests, byte by byte and without our writers, and the descriptors in them. Payload is a pattern that tells
 * tensor, buffer and place apart. */
#ifndef HRY_TESTS_CONTAINERS_H
#define HRY_TESTS_CONTAINERS_H

#include "format/descriptor.h"
#include "format/index.h"

/* One uint8 row-major buffer; shape [bytes]. */
HurrayDescriptor *make_plain(uint64_t bytes, uint32_t alignment);
/* A private layout: any buffers at all. */
HurrayDescriptor *make_many(const HurrayBufferHandle *handles, uint32_t count);
/* uint8 [bytes] whose handle declares another place. */
HurrayDescriptor *make_placed(uint64_t bytes, uint8_t device_tag, uint8_t sync_mode, uint8_t memory_class);
/* A group head. */
HurrayDescriptor *make_group(uint32_t members);
/* A partition head of uint8 [bytes], and a member of it. */
HurrayDescriptor *make_partition(uint64_t bytes, uint32_t members);
HurrayDescriptor *make_part(uint64_t whole, uint64_t offset, uint64_t bytes);

uint8_t pattern_byte(uint64_t tensor, uint32_t buffer, uint64_t at);
/* Asserts that all of a buffer (host memory) is the pattern. */
void assert_pattern(const void *data, uint64_t tensor, uint32_t buffer, uint64_t bytes);

#define BUILD_SUMS 1u      /* stored checksums */
#define BUILD_SORTED 2u    /* index by name */
#define BUILD_NO_CRC 4u    /* no checksum of the index */
#define BUILD_REVERSED 8u  /* index in the opposite order */
#define BUILD_BAD_SUMS 16u /* all of them wrong */

typedef struct Container {
    uint8_t *bytes; /* the whole container */
    size_t len, capacity;
    uint32_t alignment;
    HryIndexRow *rows; /* in write order; names are ours */
    size_t count;
    uint8_t *counts; /* buffers of each tensor */
    uint32_t *crcs;
    size_t crc_count;
    HryTrailer trailer;
} Container;

void container_begin_file(Container *built, uint32_t alignment);
void container_begin_stream(Container *built);
/* Takes the descriptor. name is ignored in a stream. */
void container_add(Container *built, const char *name, HurrayDescriptor *descriptor);
void container_finish(Container *built, uint32_t flags, const HurrayKvEntry *kv, size_t kv_count);
/* After an edit of index bytes: the checksum in the trailer is right again. */
void container_mend(Container *built);
void container_free(Container *built);

/* The tensor `i`'s pattern is at its place (asserts); buffers as delivered to the host. */
void assert_tensor_pattern(const HurrayTensor *tensor, uint64_t i);

#endif
