/* Shard, statistics, extension type, composite member (docs/format.md sections 5, 6, 2.1, 7) between bytes and structs.
 * Each check's `at` is the offset of the section's first byte. */
#ifndef HRY_FORMAT_SECTIONS_H
#define HRY_FORMAT_SECTIONS_H

#include "format/descriptor.h"
#include "format/part.h"

#define HRY_STATISTICS_BYTES 72u
#define HRY_EXTENSION_TYPE_BYTES 20u
#define HRY_COMPOSITE_MEMBER_BYTES 16u

/* parent_shape and offset: room for rank entries each, which *out will point to. */
HurrayStatus hry_shard_decode(HryCursor *cursor, uint32_t rank, uint64_t *parent_shape, uint64_t *offset, HurrayShard *out,
                              HurrayError *error);
HurrayStatus hry_shard_check(const HurrayDescriptor *descriptor, uint64_t at, HurrayError *error);
void hry_shard_encode(HryEmit *emit, const HurrayShard *shard, uint32_t rank);

/* What the mask leaves out becomes 0. */
HurrayStatus hry_statistics_decode(HryCursor *cursor, HurrayStatistics *out, HurrayError *error);
/* Grounds to reject: the mask alone. */
HurrayStatus hry_statistics_check(const HurrayStatistics *statistics, uint64_t at, HurrayError *error);
/* Grounds to refuse for a writer: a set field outside its range, an nnz that is not the layout's. */
HurrayStatus hry_statistics_check_writable(const HurrayDescriptor *descriptor, HurrayError *error);
void hry_statistics_normalize(HurrayStatistics *statistics);
void hry_statistics_encode(HryEmit *emit, const HurrayStatistics *statistics);

/* has_nan and has_inf of an integer become 0. */
HurrayStatus hry_extension_decode(HryCursor *cursor, HurrayExtensionType *out, HurrayError *error);
HurrayStatus hry_extension_check(const HurrayExtensionType *extension, uint64_t at, HurrayError *error);
void hry_extension_normalize(HurrayExtensionType *extension);
void hry_extension_encode(HryEmit *emit, const HurrayExtensionType *extension);

HurrayStatus hry_member_decode(HryCursor *cursor, HurrayCompositeMember *out, HurrayError *error);
HurrayStatus hry_member_check(const HurrayDescriptor *descriptor, uint64_t at, HurrayError *error);
void hry_member_encode(HryEmit *emit, const HurrayCompositeMember *member);

#endif
