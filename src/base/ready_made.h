/* The seam to the ready-made transports and destinations of src/cpu, for those who call them: what is behind a status that one of their
 * callbacks answered. A caller's own ones are not known here, and keep the words for callbacks. */
#ifndef HRY_BASE_READY_MADE_H
#define HRY_BASE_READY_MADE_H

#include <stdbool.h>

#include "base/fail.h"
#include "hurray/destination.h"
#include "hurray/transport.h"

/* Is the memory of this destination the library's own to allocate? */
bool hry_destination_is_host(const HurrayDestinationAlloc *destination);     /* cpu/dest_host.c */
bool hry_destination_is_in_place(const HurrayDestinationAlloc *destination); /* cpu/dest_in_place.c */
/* Why not all memory of a host destination came from reserved huge pages, which were asked for; NULL: all did, or it is another one. */
const char *hry_host_missed_huge_pages(const HurrayDestinationAlloc *destination);
/* Fills the record for damage that a gzip transport found. False: the status says something else. */
bool hry_gzip_failure(const HurrayTransport *transport, HurrayStatus status, HurrayError *error); /* cpu/transport_gzip.c */

#endif
