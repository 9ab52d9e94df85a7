/* Memory nodes of this machine, by the system's own numbers. Everything works, with one node and no
 * binding, where the topology cannot be learnt. Never loads or starts a device's driver. */
#ifndef HRY_CPU_NUMA_H
#define HRY_CPU_NUMA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/fail.h"

typedef struct HryNuma HryNuma;

/* Loads the topology. Fails for want of memory only: a topology that does not answer is one node. */
HurrayStatus hry_numa_new(const HurrayAllocator *allocator, HryNuma **out, HurrayError *error);
void hry_numa_destroy(HryNuma **numa);

/* At least 1. */
unsigned hry_numa_node_count(const HryNuma *numa);
bool hry_numa_has_node(const HryNuma *numa, int node);
/* False: refused or unknown; the memory or thread stays where the system puts it. Bind before the first touch. */
bool hry_numa_bind_area(const HryNuma *numa, const void *area, size_t len, int node);
bool hry_numa_bind_thread(const HryNuma *numa, int node);
/* Where touched pages of an area lie; -1 when unknown or on several nodes. */
int hry_numa_area_node(const HryNuma *numa, const void *area, size_t len);
/* The node next to a device at a PCI address such as "0000:3b:00.0" (any case); -1 when unknown, or when every node is. */
int hry_numa_pci_node(const HryNuma *numa, const char *bus_id);
/* The same from a file that holds a CPU mask. */
int hry_numa_mask_node(const HryNuma *numa, const char *path);

#endif
