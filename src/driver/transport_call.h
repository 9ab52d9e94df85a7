/* The only place that calls a transport: counts are checked, zero is told apart, a failing call moved nothing. */
#ifndef HRY_DRIVER_TRANSPORT_CALL_H
#define HRY_DRIVER_TRANSPORT_CALL_H

#include <stdbool.h>

#include "base/fail.h"
#include "hurray.h"

#define HRY_TRANSPORT_MAX_LEN (UINT32_C(1) << 30) /* bytes in one callback */

#define HRY_TRANSPORT_NEEDS_READ 1u
#define HRY_TRANSPORT_NEEDS_READ_AT 2u /* and size */
#define HRY_TRANSPORT_NEEDS_WRITE 4u

#define HRY_TRANSPORT_MAX_ALIGNMENT UINT32_C(65536)

/* Copies a caller's struct (any size, 0 too) and checks that the callbacks named by needs are there, io_alignment is 0 or a power of
 * two up to HRY_TRANSPORT_MAX_ALIGNMENT (0 becomes 1), and no flag of a newer release is set. */
HurrayStatus hry_transport_resolve(const HurrayTransport *user, uint32_t needs, HurrayTransport *out, HurrayError *error);

/* Each moves at most len bytes (1 to 2^30 are passed on) and says how many in *moved. A count above len is INVALID_REPORT: nobody knows
 * what happened, the handle is not to be used again. *moved 0 with OK: end of input, file shorter than it claims, closed sink (or len
 * was 0: the callback is not called). A failure moved nothing. io_alignment is the caller's to keep. */
HurrayStatus hry_transport_read(const HurrayTransport *transport, uint8_t *dst, size_t len, size_t *moved, HurrayError *error);
HurrayStatus hry_transport_read_at(const HurrayTransport *transport, uint64_t offset, uint8_t *dst, size_t len, size_t *moved,
                                   HurrayError *error);
HurrayStatus hry_transport_write(const HurrayTransport *transport, const uint8_t *src, size_t len, size_t *moved, HurrayError *error);
HurrayStatus hry_transport_size(const HurrayTransport *transport, uint64_t *size, HurrayError *error);
/* Exactly len bytes from offset; a shorter file is TRUNCATED with the place. Handles io_alignment (through a block on the stack). */
HurrayStatus hry_transport_read_exactly(const HurrayTransport *transport, uint64_t offset, void *dst, size_t len, HurrayError *error);
/* The finish callback, where there is one. */
HurrayStatus hry_transport_finish(const HurrayTransport *transport, HurrayError *error);
/* The release callback, where there is one, and never again: *transport is empty afterwards. */
void hry_transport_release(HurrayTransport *transport);

#endif
