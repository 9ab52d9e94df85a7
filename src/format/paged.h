/* Block-paged tensors with a dense view (docs/format.md section 3.4): token n is slot n mod page_size of logical page n / page_size. */
#ifndef HRY_FORMAT_PAGED_H
#define HRY_FORMAT_PAGED_H

#include <stdint.h>

#include "format/descriptor.h"
#include "format/payload.h"

/* Is there a dense view? UNSUPPORTED when the tokens of each sequence are not known, INVALID_DATA when seq_ptr leads out of the
 * block table. Reads only the first and last entry of seq_ptr. */
HurrayStatus hry_paged_check(const HurrayDescriptor *descriptor, const HryBytes *buffers, HurrayError *error);

/* The slot of the page pool that token n lies in (n below the checked total); INVALID_DATA: no such page. */
HurrayStatus hry_paged_slot(const HurrayDescriptor *descriptor, const HryBytes *buffers, uint64_t token, uint64_t *slot,
                            HurrayError *error);

/* Entry i of one of the two index arrays. */
uint64_t hry_paged_entry(const HurrayDescriptor *descriptor, const HryBytes *buffer, uint64_t i);
uint64_t hry_paged_entries(const HurrayDescriptor *descriptor, const HryBytes *buffer);

#endif
