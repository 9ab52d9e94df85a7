/* Heads, members and tensors for tests of composites, in few words. */
#ifndef HRY_TESTS_COMPOSITES_H
#define HRY_TESTS_COMPOSITES_H

#include "hurray.h"

#define NO_ROLE (-1)

/* parent NULL: no shard section. op 0 unless an overlay. */
HurrayDescriptor *make_head(uint8_t rule, uint8_t op, uint8_t type, uint32_t rank, const uint64_t *shape, uint32_t members,
                            const uint64_t *parent, const uint64_t *offset);
/* A row-major tensor with the buffer that its shape implies; role NO_ROLE: no composite-member section. */
HurrayDescriptor *make_member(uint8_t type, uint32_t rank, const uint64_t *shape, const uint64_t *parent, const uint64_t *offset, int role);
/* Any spec; buffers as planned. */
HurrayDescriptor *make_from_spec(HurrayDescriptorSpec *spec);
/* Takes the descriptor over. data: one pointer per buffer, copied to aligned memory; NULL: bytes that count up. */
HurrayTensor *make_tensor(HurrayDescriptor *descriptor, const void *const *data);

#endif
