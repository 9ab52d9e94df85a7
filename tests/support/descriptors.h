/* Descriptors for tests: built, refused, brought through bytes and back. */
#ifndef HRY_TESTS_DESCRIPTORS_H
#define HRY_TESTS_DESCRIPTORS_H

#include "format/descriptor.h"

/* Built by the public call; asserts that it is accepted. */
HurrayDescriptor *descriptor_must_build(const HurrayDescriptorSpec *spec);
/* Asserts that the public call refuses the spec with this status and names this field, with a message. */
void descriptor_must_refuse(const HurrayDescriptorSpec *spec, HurrayStatus status, const char *field);

/* Its canonical bytes in a heap block of exactly their size; free() them. */
uint8_t *descriptor_bytes(const HurrayDescriptor *descriptor, size_t *len);
/* Asserts that the bytes are accepted and canonical; the descriptor they hold. */
HurrayDescriptor *descriptor_must_decode(const void *bytes, size_t len);
/* Asserts that the bytes, in a heap block of exactly their size, are rejected with this status, field and offset
 * (HURRAY_NONE: any). */
void descriptor_must_reject(const void *bytes, size_t len, HurrayStatus status, const char *field, uint64_t offset);
/* Encodes, decodes, encodes again and compares; the decoded one. */
HurrayDescriptor *descriptor_round_trip(const HurrayDescriptor *descriptor);

#endif
