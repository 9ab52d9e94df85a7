/* The rules of one level of a composite (docs/format.md section 7), member by member.
 *
 *     begin(head)              the head's own rules
 *     test(member), commit()   for each member in order; test changes nothing that can be seen, so a refused member
 *                              may be followed by another try; the last member's test includes the exact cover
 *     end()                    TORN_COMPOSITE while members are missing
 *
 * Nothing of head or members is kept but numbers. Memory grows with the members that came, never with those promised. */
#ifndef HRY_CORE_COMPOSITE_CHECK_H
#define HRY_CORE_COMPOSITE_CHECK_H

#include "core/composite_cover.h"
#include "format/descriptor.h"

#define HRY_CHECK_WRITING 1u /* also what a writer refuses and a reader accepts */

typedef struct HryCompositeCheck {
    HryCover cover; /* partitions: every box; overlays: the head's shape only */
    uint32_t promised, seen, rank, flags;
    uint8_t rule, element_type;
    bool is_float;
    bool tested; /* a member passed test and waits for commit */
} HryCompositeCheck;

/* INVALID_LAYOUT when a rule is broken (not a head: NOT_COMPOSITE), NO_MEMORY; then nothing is held. */
HurrayStatus hry_composite_check_begin(HryCompositeCheck *check, const HurrayDescriptor *head, uint32_t flags,
                                       const HurrayAllocator *allocator, HurrayError *error);
/* May the member stand at the next place? INVALID_LAYOUT, NO_MEMORY; a second test forgets the first. */
HurrayStatus hry_composite_check_test(HryCompositeCheck *check, const HurrayDescriptor *member, HurrayError *error);
/* After a test that was OK: the member stands there. */
void hry_composite_check_commit(HryCompositeCheck *check);
static inline HurrayStatus hry_composite_check_add(HryCompositeCheck *check, const HurrayDescriptor *member, HurrayError *error) {
    HurrayStatus status = hry_composite_check_test(check, member, error);
    if (status == HURRAY_OK) hry_composite_check_commit(check);
    return status;
}
static inline uint32_t hry_composite_check_missing(const HryCompositeCheck *check) { return check->promised - check->seen; }
HurrayStatus hry_composite_check_end(const HryCompositeCheck *check, HurrayError *error);
void hry_composite_check_clear(HryCompositeCheck *check); /* safe on a zeroed one */

/* TORN_COMPOSITE: "the composite ends after SEEN of PROMISED members". */
HurrayStatus hry_fail_torn(HurrayError *error, uint64_t seen, uint64_t promised);

#endif
