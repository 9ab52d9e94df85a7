#include "cpu/numa.h"

#include <stdio.h>
#include <string.h>

#ifdef HRY_HAVE_HWLOC
#include <hwloc.h>
#include <hwloc/linux.h>
#endif

struct HryNuma {
    HurrayAllocator allocator;
#ifdef HRY_HAVE_HWLOC
    hwloc_topology_t topology;
#endif
    bool known;
};

#ifdef HRY_HAVE_HWLOC
/* The components that would load a device's driver or a display server's library. */
static const char *const device_components[] = {"cuda", "nvml", "opencl", "gl", "rsmi", "levelzero", "pci"};

static bool load_topology(hwloc_topology_t *out) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) return false;
    for (size_t i = 0; i < sizeof device_components / sizeof *device_components; i++)
        (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, device_components[i]);
    (void)hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return false;
    }
    *out = topology;
    return true;
}
#endif

HurrayStatus hry_numa_new(const HurrayAllocator *allocator, HryNuma **out, HurrayError *error) {
    HryNuma *numa = hry_alloc(allocator, sizeof *numa);
    if (!numa) return hry_fail_memory(error, "the machine's topology", sizeof *numa);
    numa->allocator = *allocator;
#ifdef HRY_HAVE_HWLOC
    numa->known = load_topology(&numa->topology);
#endif
    *out = numa;
    return HURRAY_OK;
}

void hry_numa_destroy(HryNuma **numa) {
    HryNuma *gone = *numa;
    if (!gone) return;
#ifdef HRY_HAVE_HWLOC
    if (gone->known) hwloc_topology_destroy(gone->topology);
#endif
    HurrayAllocator allocator = gone->allocator;
    hry_free(&allocator, gone, sizeof *gone);
    *numa = NULL;
}

#ifdef HRY_HAVE_HWLOC
unsigned hry_numa_node_count(const HryNuma *numa) {
    int count = numa->known ? hwloc_get_nbobjs_by_type(numa->topology, HWLOC_OBJ_NUMANODE) : 1;
    return count > 0 ? (unsigned)count : 1;
}

bool hry_numa_has_node(const HryNuma *numa, int node) {
    if (node < 0) return false;
    if (!numa->known) return node == 0;
    return hwloc_get_numanode_obj_by_os_index(numa->topology, (unsigned)node) != NULL;
}

bool hry_numa_bind_area(const HryNuma *numa, const void *area, size_t len, int node) {
    if (!numa->known || node < 0) return false;
    hwloc_obj_t object = hwloc_get_numanode_obj_by_os_index(numa->topology, (unsigned)node);
    return object && hwloc_set_area_membind(numa->topology, area, len, object->nodeset, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET) == 0;
}

bool hry_numa_bind_thread(const HryNuma *numa, int node) {
    if (!numa->known || node < 0) return false;
    hwloc_obj_t object = hwloc_get_numanode_obj_by_os_index(numa->topology, (unsigned)node);
    return object && !hwloc_bitmap_iszero(object->cpuset) && hwloc_set_cpubind(numa->topology, object->cpuset, HWLOC_CPUBIND_THREAD) == 0;
}

static int single_node(hwloc_const_bitmap_t nodes) { return hwloc_bitmap_weight(nodes) == 1 ? hwloc_bitmap_first(nodes) : -1; }

int hry_numa_area_node(const HryNuma *numa, const void *area, size_t len) {
    hwloc_bitmap_t nodes = numa->known ? hwloc_bitmap_alloc() : NULL;
    int node = -1;
    if (nodes && hwloc_get_area_memlocation(numa->topology, area, len, nodes, HWLOC_MEMBIND_BYNODESET) == 0) node = single_node(nodes);
    hwloc_bitmap_free(nodes);
    return node;
}

int hry_numa_mask_node(const HryNuma *numa, const char *path) {
    hwloc_bitmap_t cpus = numa->known ? hwloc_bitmap_alloc() : NULL, nodes = cpus ? hwloc_bitmap_alloc() : NULL;
    int node = -1;
    if (nodes && hwloc_linux_read_path_as_cpumask(path, cpus) == 0) {
        hwloc_cpuset_to_nodeset(numa->topology, cpus, nodes);
        if (!hwloc_bitmap_isequal(nodes, hwloc_topology_get_topology_nodeset(numa->topology))) node = single_node(nodes);
    }
    hwloc_bitmap_free(nodes);
    hwloc_bitmap_free(cpus);
    return node;
}
#else
unsigned hry_numa_node_count(const HryNuma *numa) {
    (void)numa;
    return 1;
}
bool hry_numa_has_node(const HryNuma *numa, int node) {
    (void)numa;
    return node == 0;
}
bool hry_numa_bind_area(const HryNuma *numa, const void *area, size_t len, int node) {
    (void)numa, (void)area, (void)len, (void)node;
    return false;
}
bool hry_numa_bind_thread(const HryNuma *numa, int node) {
    (void)numa, (void)node;
    return false;
}
int hry_numa_area_node(const HryNuma *numa, const void *area, size_t len) {
    (void)numa, (void)area, (void)len;
    return -1;
}
int hry_numa_mask_node(const HryNuma *numa, const char *path) {
    (void)numa, (void)path;
    return -1;
}
#endif

/* The address becomes part of a path: digits, colons and one dot only. */
int hry_numa_pci_node(const HryNuma *numa, const char *bus_id) {
    char path[96], id[32];
    size_t len = strlen(bus_id);
    if (len == 0 || len >= sizeof id || strspn(bus_id, "0123456789abcdefABCDEF:.") != len || strstr(bus_id, "..")) return -1;
    for (size_t i = 0; i <= len; i++) id[i] = (char)(bus_id[i] >= 'A' && bus_id[i] <= 'F' ? bus_id[i] - 'A' + 'a' : bus_id[i]);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/local_cpus", id);
    return hry_numa_mask_node(numa, path);
}
