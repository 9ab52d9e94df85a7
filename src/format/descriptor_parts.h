/* A descriptor on its way into being: a HurrayDescriptor on the stack whose pointers lead anywhere. Decoding and
 * building fill one, the same rules are checked on it, and it is copied into a block of its own. */
#ifndef HRY_FORMAT_DESCRIPTOR_PARTS_H
#define HRY_FORMAT_DESCRIPTOR_PARTS_H

#include "format/descriptor.h"
#include "format/part.h"

/* Are type and layout tags legal, and does the extension-type section stand exactly where the type is private? */
HurrayStatus hry_descriptor_check_tags(uint8_t element_type, uint8_t layout_tag, bool has_extension_type, uint32_t flags, uint64_t header,
                                       HurrayError *error);
/* Every rule that needs no data; rank <= 64 is known. flags: HRY_DECODE_... */
HurrayStatus hry_descriptor_check(const HurrayDescriptor *parts, const HryPlaces *places, uint32_t flags, HurrayError *error);

/* One block, one reference; parts keeps what it points to. */
HurrayStatus hry_descriptor_place(const HurrayDescriptor *parts, const HurrayAllocator *allocator, HurrayDescriptor **out,
                                  HurrayError *error);

#endif
