/* What a safetensors file made of these tensors looks like, before a byte of it is written (docs/foreign-formats.md 1.5). */
#ifndef HRY_IMPORT_EXPORT_PLAN_H
#define HRY_IMPORT_EXPORT_PLAN_H

#include "base/alloc.h"
#include "format/descriptor.h"
#include "hurray/import.h"
#include "import/safetensors.h"

typedef struct HryExportItem {
    const void *name; /* borrowed while the plan is made, then NULL: error records name the tensor by its number */
    size_t name_len;
    HurrayDescriptor *descriptor; /* one reference */
    const HryStType *type;
    size_t rank_of_type; /* place of the type in the order of writing */
    size_t entry;        /* the caller's number */
    uint64_t elements, begin, end;
    bool gathers; /* another dense layout than row-major: its buffer is collected, then written element by element */
} HryExportItem;

typedef struct HryExportPlan {
    HurrayAllocator allocator;
    HryExportItem *items; /* in the order of writing */
    size_t count;
    uint8_t *header; /* length field and JSON */
    size_t header_size;
} HryExportPlan;

/* kv_as_text: metadata that is no string becomes text. */
HurrayStatus hry_export_plan(const HurrayExportEntry *entries, size_t count, const HurrayKvEntry *kv, size_t kv_count, bool kv_as_text,
                             const HurrayAllocator *allocator, HryExportPlan *out, HurrayError *error);
void hry_export_plan_clear(HryExportPlan *plan);

#endif
