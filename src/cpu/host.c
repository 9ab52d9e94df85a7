#include "hurray/loader.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/options.h"
#include "cpu/numa.h"
#include "cpu/region.h"
#include "cpu/system.h"
#include "cpu/uring.h"

/* A number at the beginning of a small system file; 0 when there is none ("max", no such file). */
static uint64_t file_number(const char *path) {
    char text[64];
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    char *line = fgets(text, sizeof text, file);
    fclose(file);
    return line ? strtoull(line, NULL, 10) : 0;
}

/* Those this process may run on; machines with more than the fixed set holds have all of theirs counted. */
static uint32_t usable_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return (uint32_t)CPU_COUNT(&set);
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    return all > 0 ? (uint32_t)all : 1;
}

/* Of the machine, or of the control group when that allows less. */
static uint64_t usable_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    uint64_t all = pages > 0 ? (uint64_t)pages * hry_page_size() : 0, group = file_number("/sys/fs/cgroup/memory.max");
    if (group == 0) group = file_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    return group && group < all ? group : all;
}

static uint64_t pinned_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

HurrayStatus hurray_host_info(HurrayHostInfo *out, HurrayError *error) {
    HurrayError local;
    HryNuma *numa = NULL;
    HurrayAllocator allocator = hry_alloc_default();
    if (!out) return hry_fail_null(error, "out");
    HurrayStatus status = hry_numa_new(&allocator, &numa, &local);
    if (status != HURRAY_OK) return hry_error_export(error, &local);
    uint64_t huge = file_number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    HurrayHostInfo info = {.struct_size = sizeof info,
                           .cores = usable_cores(),
                           .numa_nodes = hry_numa_node_count(numa),
                           .memory_bytes = usable_memory(),
                           .pinned_limit = pinned_limit(),
                           .page_size = hry_page_size(),
                           .huge_page_size = huge ? huge : HRY_HUGE_PAGE};
    info.uring = hry_uring_usable(info.uring_reason, sizeof info.uring_reason);
    hry_numa_destroy(&numa);
    if (hry_result_write(out, sizeof info, &info, sizeof info) == HURRAY_OK) return HURRAY_OK;
    hry_fail(&local, HURRAY_ERR_INVALID_ARGUMENT, "struct_size", HRY_NO_OFFSET,
             "HurrayHostInfo.struct_size is too small; initialise it with HURRAY_HOST_INFO_INIT");
    return hry_error_export(error, &local);
}
