#include "hurray/loader.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu/numa.h"
#include "cpu/region.h"
#include "cpu/uring.h"
#include "support/fail_alloc.h"

static void the_host_is_described_as_the_system_does(void **state) {
    (void)state;
    HurrayHostInfo info = HURRAY_HOST_INFO_INIT;
    char reason[128];
    cpu_set_t set;
    struct rlimit limit;
    assert_int_equal(hurray_host_info(&info, NULL), HURRAY_OK);
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_int_equal(info.cores, CPU_COUNT(&set));
    assert_true(info.numa_nodes >= 1);
    assert_true(info.memory_bytes > (16u << 20));
    assert_int_equal(info.page_size, sysconf(_SC_PAGESIZE));
    assert_true(info.huge_page_size > info.page_size);
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    assert_true(info.pinned_limit == (limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur));
    assert_int_equal(info.uring, hry_uring_usable(reason, sizeof reason));
    assert_string_equal(info.uring_reason, reason);
    print_message("%u cores, %u nodes, %llu bytes, io_uring %u %s\n", info.cores, info.numa_nodes, (unsigned long long)info.memory_bytes,
                  info.uring, info.uring_reason);
}

static void only_the_cores_this_process_may_use_are_counted(void **state) {
    (void)state;
    HurrayHostInfo info = HURRAY_HOST_INFO_INIT;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(hurray_host_info(&info, NULL), HURRAY_OK);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(info.cores, 1);
}

static void an_unset_size_is_refused_and_a_later_one_zeroed(void **state) {
    (void)state;
    HurrayError error = HURRAY_ERROR_INIT;
    struct {
        HurrayHostInfo info;
        uint64_t later;
    } longer = {.info = {.struct_size = sizeof longer}, .later = 5};
    assert_int_equal(hurray_host_info(NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_host_info(&longer.info, &error), HURRAY_OK);
    assert_int_equal(longer.later, 0);
    longer.info.struct_size = 0;
    assert_int_equal(hurray_host_info(&longer.info, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_true(error.message[0]);
}

static HryNuma *make(FailAlloc *alloc) {
    HryNuma *numa = NULL;
    HurrayError error;
    fail_alloc_init(alloc);
    assert_int_equal(hry_numa_new(&alloc->allocator, &numa, &error), HURRAY_OK);
    return numa;
}

static void memory_and_threads_are_bound_where_the_system_lets_them(void **state) {
    (void)state;
    FailAlloc alloc;
    HryNuma *numa = make(&alloc);
    HryRegion region;
    cpu_set_t before;
    assert_true(hry_numa_has_node(numa, 0));
    assert_false(hry_numa_has_node(numa, -1));
    assert_false(hry_numa_has_node(numa, 12345));
    assert_false(hry_numa_bind_area(numa, &numa, 8, -1));
    assert_false(hry_numa_bind_area(numa, &numa, 8, 12345));
    assert_false(hry_numa_bind_thread(numa, -1));
    assert_false(hry_numa_bind_thread(numa, 12345));
    assert_true(hry_region_map(&region, 4 << 20, 4 << 20, HURRAY_AUTO, numa, 0));
    assert_int_equal((uintptr_t)region.base % HRY_HUGE_PAGE, 0);
    bool bound = hry_numa_bind_area(numa, region.base, region.size, 0);
    memset(region.base, 1, region.size);
    int node = hry_numa_area_node(numa, region.base, region.size);
    print_message("bound: %d, node of the memory: %d\n", bound, node);
    if (bound && node >= 0) assert_int_equal(node, 0);
    hry_region_unmap(&region);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    print_message("thread bound: %d\n", hry_numa_bind_thread(numa, 0));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    hry_numa_destroy(&numa);
    hry_numa_destroy(&numa);
    fail_alloc_assert_empty(&alloc);
}

static void a_device_has_a_node_only_when_it_is_nearer_to_one(void **state) {
    (void)state;
    FailAlloc alloc;
    HryNuma *numa = make(&alloc);
    static const char *const bad[] = {"",   "../../etc/passwd", "0000:00:00.0/..",
                                      "..", "ffff:ff:1f.7",     "a very long text that is no address at all, is it"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(hry_numa_pci_node(numa, bad[i]), -1);
    int node = hry_numa_pci_node(numa, "0000:00:00.0");
    assert_true(node == -1 || hry_numa_has_node(numa, node));
    if (hry_numa_node_count(numa) == 1) assert_int_equal(node, -1);
    char path[] = "/tmp/hurray-mask-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "00000001\n", 9), 9);
    close(fd);
    node = hry_numa_mask_node(numa, path);
    if (hry_numa_node_count(numa) == 1)
        assert_int_equal(node, -1);
    else
        assert_true(hry_numa_has_node(numa, node));
    unlink(path);
    hry_numa_destroy(&numa);
    fail_alloc_assert_empty(&alloc);
}

static void without_memory_there_is_no_topology(void **state) {
    (void)state;
    FailAlloc alloc;
    HryNuma *numa = NULL;
    HurrayError error;
    fail_alloc_init(&alloc);
    fail_alloc_arm(&alloc, 1, 0);
    assert_int_equal(hry_numa_new(&alloc.allocator, &numa, &error), HURRAY_ERR_NO_MEMORY);
    assert_null(numa);
    fail_alloc_assert_empty(&alloc);
}

static void a_region_is_as_large_as_can_be_had(void **state) {
    (void)state;
    HryRegion region;
    assert_true(hry_region_map(&region, SIZE_MAX / 2, 100, HURRAY_ON, NULL, -1));
    assert_true(region.size >= 100 && region.size < SIZE_MAX / 4);
    hry_region_give_back(&region, region.base, region.size);
    hry_region_give_back(&region, region.base + 1, 5);
    hry_region_unmap(&region);
    assert_false(hry_region_map(&region, SIZE_MAX, SIZE_MAX, HURRAY_AUTO, NULL, -1));
    assert_false(hry_region_map(&region, SIZE_MAX / 2, SIZE_MAX / 2, HURRAY_OFF, NULL, -1));
}

static void a_region_is_cut_to_its_alignment_where_the_kernel_does_not_align(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        uint8_t *at = hry_region_cut(4 << 20), *between = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % HRY_HUGE_PAGE, 0);
        memset(at, 1, 4 << 20);
        assert_int_equal(munmap(at, 4 << 20), 0);
        assert_int_equal(munmap(between, 4096), 0);
    }
    assert_null(hry_region_cut(SIZE_MAX - 1));
    assert_null(hry_region_cut((size_t)1 << 60));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_is_described_as_the_system_does),
        cmocka_unit_test(only_the_cores_this_process_may_use_are_counted),
        cmocka_unit_test(an_unset_size_is_refused_and_a_later_one_zeroed),
        cmocka_unit_test(memory_and_threads_are_bound_where_the_system_lets_them),
        cmocka_unit_test(a_device_has_a_node_only_when_it_is_nearer_to_one),
        cmocka_unit_test(without_memory_there_is_no_topology),
        cmocka_unit_test(a_region_is_as_large_as_can_be_had),
        cmocka_unit_test(a_region_is_cut_to_its_alignment_where_the_kernel_does_not_align),
    };
    return cmocka_run_group_tests_name("cpu/host", tests, NULL, NULL);
}
