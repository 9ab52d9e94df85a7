/* One member of a composite merged into the dense view of the whole: its elements as codes of the head's type (codes.h), put over
 * what is there or added to it. */
#ifndef HRY_CORE_COMPOSITE_MERGE_H
#define HRY_CORE_COMPOSITE_MERGE_H

#include "format/dense.h"

#define HRY_MAX_CODE 16u /* bytes of the widest listed type */

typedef enum HryMergeHow {
    HRY_MERGE_PLACE,  /* every element of the member; what a sparse one does not store is 0 */
    HRY_MERGE_REPLACE, /* the elements that the member stores: all of a dense one */
    HRY_MERGE_ADD     /* the same, added in the head's type, rounded or wrapped */
} HryMergeHow;

typedef struct HryMergeInto {
    const HurrayDescriptor *head; /* type and shape of the whole; its elements fit 64 bits */
    HryForm form;                 /* of the head's type */
    uint8_t *dst;                 /* packed elements of the head's type, row-major */
} HryMergeInto;

/* All of a member at origin (rank entries; the box lies inside the whole). In the default float modes (rounding.h). */
HurrayStatus hry_merge_tensor(const HryMergeInto *into, const HurrayDescriptor *member, const HryBytes *buffers, const uint64_t *origin,
                              HryMergeHow how, HurrayError *error);
/* One element, at index in the member: into code, an element of the head's type. In the default float modes. */
HurrayStatus hry_merge_element(const HryForm *form, const HurrayDescriptor *member, const HryBytes *buffers, const uint64_t *index,
                               HryMergeHow how, uint8_t *code, HurrayError *error);

#endif
