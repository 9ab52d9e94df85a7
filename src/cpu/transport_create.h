/* The file that hurray_transport_create makes, for its tests. */
#ifndef HRY_CPU_TRANSPORT_CREATE_H
#define HRY_CPU_TRANSPORT_CREATE_H

#include "cpu/transport_file.h"

/* With these system calls, which must outlive the transport. */
HurrayStatus hry_transport_create(const char *path, const HryFileCalls *calls, const HurrayTransportOptions *options, HurrayTransport *out,
                                  HurrayError *error);

#endif
