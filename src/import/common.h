/* What the importers share: descriptors of what they find, names, limits. */
#ifndef HRY_IMPORT_COMMON_H
#define HRY_IMPORT_COMMON_H

#include "core/catalogue.h"
#include "import/model.h"

/* The one buffer of an imported tensor: CPU, producer-synced, standard, alignment 64. private_layout: id and data of layout 0xF0, or NULL.
 */
typedef struct HryImported {
    uint8_t element_type, layout_tag;
    uint32_t rank;
    const uint64_t *shape;
    uint64_t byte_size;
    const HurrayExtensionType *extension_type;
    uint64_t private_id;
    const void *private_data;
    uint32_t private_len;
} HryImported;
HurrayStatus hry_import_describe(const HryImported *imported, const HurrayAllocator *allocator, HurrayDescriptor **out, HurrayError *error);

/* A catalogue of a foreign source. */
HurrayStatus hry_import_catalogue(uint32_t format, uint64_t size, const HurrayAllocator *allocator, HryCatalogue **out, HurrayError *error);

/* The lookup; a name that stands twice is named. where: "header", "archive". */
HurrayStatus hry_import_index_names(HryCatalogue *catalogue, const char *where, HurrayError *error);

/* LIMIT when another tensor would be one too many. */
HurrayStatus hry_import_check_count(uint64_t count, const HryLimits *limits, HurrayError *error);

/* Sets tensor and keeps the rest of a record. */
HurrayStatus hry_import_at(HurrayError *error, const void *name, size_t len);

#endif
