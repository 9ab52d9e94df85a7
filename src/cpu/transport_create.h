/* The file that hurray_transport_create makes, for its tests. */
#ifndef HRY_CPU_TRANSPORT_CREATE_H
#define HRY_CPU_TRANSPORT_CREATE_H

#include <stdbool.h>

#include "cpu/transport_file.h"

/* named: a temporary with a name, as where the file system has no other. */
HurrayStatus hry_transport_create(const char *path, bool named, const HurrayTransportOptions *options, HurrayTransport *out,
                                  HurrayError *error);
/* Other system calls; they must outlive the transport. */
void hry_transport_create_use(HurrayTransport *transport, const HryFileCalls *calls);

#endif
