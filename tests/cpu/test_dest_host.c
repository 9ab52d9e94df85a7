#include "hurray/destination.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fail_alloc.h"

static HurrayDestinationRequest ask(uint64_t size, uint32_t alignment) {
    HurrayDestinationRequest request = {
        .struct_size = sizeof request, .byte_size = size, .alignment = alignment, .source_offset = HURRAY_NONE, .device_index = -1};
    return request;
}

static HurrayDestinationAlloc make(FailAlloc *alloc, uint32_t huge_pages, uint32_t min_alignment) {
    HurrayHostOptions options = HURRAY_HOST_OPTIONS_INIT;
    HurrayDestinationAlloc dest;
    fail_alloc_init(alloc);
    options.allocator = &alloc->allocator;
    options.huge_pages = huge_pages;
    options.min_alignment = min_alignment;
    assert_int_equal(hurray_destination_host(&options, &dest, NULL), HURRAY_OK);
    return dest;
}

/* The whole window of a fresh destination. */
static HurrayWindow whole(const HurrayDestinationAlloc *dest, const HurrayDestinationRequest *request, void **id) {
    HurrayDestination out = {.struct_size = sizeof out};
    assert_int_equal(dest->allocate(dest->ctx, request, &out), HURRAY_OK);
    assert_int_equal(out.flags & HURRAY_DESTINATION_PREFILLED, 0);
    HurrayWindow window = {.struct_size = sizeof window, .len = request->byte_size, .source_offset = request->source_offset};
    assert_int_equal(dest->window(dest->ctx, out.id, &window), HURRAY_OK);
    assert_int_equal(window.len, request->byte_size);
    *id = out.id;
    return window;
}

static HurrayBufferInfo fill_and_freeze(const HurrayDestinationAlloc *dest, uint64_t size, uint32_t alignment, int byte) {
    HurrayDestinationRequest request = ask(size, alignment);
    HurrayBufferInfo info = HURRAY_BUFFER_INFO_INIT;
    void *id;
    HurrayWindow window = whole(dest, &request, &id);
    memset(window.ptr, byte, size);
    assert_int_equal(dest->freeze(dest->ctx, id, &info), HURRAY_OK);
    assert_ptr_equal(info.data, window.ptr);
    assert_int_equal(info.byte_size, size);
    assert_true(info.alignment >= alignment);
    return info;
}

static void drop(HurrayBufferInfo *info) { info->release(info->data, info->release_context); }

static void every_declared_alignment_is_kept(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayDestinationAlloc dest = make(&alloc, HURRAY_AUTO, 0);
    HurrayBufferInfo infos[64];
    size_t n = 0;
    for (uint32_t alignment = 64; alignment <= 2u << 20; alignment *= 2) {
        for (int k = 0; k < 3; k++) {
            uint64_t size = k == 0 ? 1 : k == 1 ? 100001 : (uint64_t)3 << 20;
            infos[n] = fill_and_freeze(&dest, size, alignment, (int)n);
            assert_int_equal((uintptr_t)infos[n].data % alignment, 0);
            n++;
        }
    }
    for (size_t i = 0; i < n; i++) { /* nobody wrote over another */
        const unsigned char *bytes = infos[i].data;
        for (uint64_t at = 0; at < infos[i].byte_size; at++) assert_int_equal(bytes[at], (unsigned char)i);
    }
    for (size_t i = 0; i < n; i++) drop(&infos[i]);
    hurray_destination_release(&dest);
    fail_alloc_assert_empty(&alloc);
}

static void an_odd_alignment_is_refused_and_a_small_one_is_raised(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayDestinationAlloc dest = make(&alloc, HURRAY_OFF, 8192);
    HurrayDestinationRequest odd = ask(10, 96);
    HurrayDestination out = {.struct_size = sizeof out};
    assert_int_equal(dest.allocate(dest.ctx, &odd, &out), HURRAY_ERR_INVALID_ARGUMENT);
    HurrayBufferInfo info = fill_and_freeze(&dest, 10, 0, 1);
    assert_int_equal((uintptr_t)info.data % 8192, 0);
    assert_int_equal(info.alignment, 8192);
    drop(&info);
    hurray_destination_release(&dest);
    fail_alloc_assert_empty(&alloc);
}

static void buffers_outlive_the_destination(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayDestinationAlloc dest = make(&alloc, HURRAY_AUTO, 0), copy = dest;
    dest.retain(dest.ctx);
    HurrayBufferInfo small = fill_and_freeze(&dest, 16, 64, 7), large = fill_and_freeze(&dest, 5 << 20, 64, 9);
    hurray_destination_release(&dest);
    assert_null(dest.ctx);
    HurrayBufferInfo later = fill_and_freeze(&copy, 16, 64, 8);
    copy.release(copy.ctx);
    assert_int_equal(((unsigned char *)small.data)[15], 7);
    assert_int_equal(((unsigned char *)large.data)[(5 << 20) - 1], 9);
    drop(&small);
    drop(&later);
    drop(&large);
    fail_alloc_assert_empty(&alloc);
}

static size_t mapping_count(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    for (int c; maps && (c = fgetc(maps)) != EOF;) lines += c == '\n';
    if (maps) fclose(maps);
    return lines;
}

static void the_number_of_mappings_does_not_grow_with_the_number_of_tensors(void **state) {
    (void)state;
    enum { COUNT = 2000 };
    FailAlloc alloc;
    HurrayBufferInfo *infos = calloc(COUNT, sizeof *infos);
    for (int planned = 0; planned < 2; planned++) {
        HurrayDestinationAlloc dest = make(&alloc, HURRAY_AUTO, 0);
        if (planned) assert_int_equal(dest.reserve(dest.ctx, 0, -1, (uint64_t)COUNT * (64 << 10), COUNT), HURRAY_OK);
        HurrayBufferInfo first = fill_and_freeze(&dest, 1, 64, 0);
        size_t before = mapping_count();
        for (int i = 0; i < COUNT; i++) infos[i] = fill_and_freeze(&dest, i % 2 ? 64 << 10 : 16, 64, 1);
        size_t after = mapping_count();
        print_message("%d buffers, %s: %zu mappings more\n", COUNT, planned ? "planned" : "unplanned", after > before ? after - before : 0);
        assert_true(after <= before + (planned ? 4u : 16u)); /* the tests' own allocations may map too */
        for (int i = 0; i < COUNT; i++) drop(&infos[i]);
        drop(&first);
        hurray_destination_release(&dest);
        fail_alloc_assert_empty(&alloc);
    }
    free(infos);
}

static size_t resident_pages(void *at, size_t len) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = len / page, n = 0;
    unsigned char *seen = malloc(count);
    assert_int_equal(mincore(at, len, seen), 0);
    for (size_t i = 0; i < count; i++) n += seen[i] & 1;
    free(seen);
    return n;
}

static void a_released_buffer_gives_its_pages_back_while_its_neighbours_live(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayDestinationAlloc dest = make(&alloc, HURRAY_OFF, 0);
    size_t size = 4 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    dest.reserve(dest.ctx, 0, -1, 3 * size, 3);
    HurrayBufferInfo a = fill_and_freeze(&dest, size, 64, 1), b = fill_and_freeze(&dest, size, 64, 2),
                     c = fill_and_freeze(&dest, size, 64, 3);
    assert_ptr_equal((char *)a.data + size, b.data); /* one region */
    assert_int_equal(resident_pages(b.data, size), size / page);
    drop(&b);
    assert_int_equal(resident_pages(b.data, size), 0);
    assert_int_equal(((unsigned char *)a.data)[size - 1], 1);
    assert_int_equal(((unsigned char *)c.data)[0], 3);
    drop(&a);
    drop(&c);
    hurray_destination_release(&dest);
    fail_alloc_assert_empty(&alloc);
}

static void nothing_is_touched_before_the_reader_writes(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayDestinationAlloc dest = make(&alloc, HURRAY_AUTO, 0);
    HurrayDestinationRequest request = ask(64 << 20, 4096);
    void *id;
    HurrayWindow window = whole(&dest, &request, &id);
    assert_int_equal(resident_pages(window.ptr, 64 << 20), 0);
    dest.discard(dest.ctx, id);
    hurray_destination_release(&dest);
    fail_alloc_assert_empty(&alloc);
}

static void a_direct_read_finds_the_data_where_the_file_offset_falls_in_a_block(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayDestinationAlloc dest = make(&alloc, HURRAY_AUTO, 0);
    static const uint64_t offsets[] = {4096, 4096 + 64, 123 * 64, 1000, HURRAY_NONE};
    static const uint32_t blocks[] = {512, 4096, 16384};
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 3; k++) {
            HurrayDestinationRequest request = ask(300001, 64), between = ask(1, 64);
            void *id, *neighbour_id, *last_id;
            request.source_offset = offsets[i];
            request.io_alignment = blocks[k];
            HurrayWindow neighbour = whole(&dest, &between, &neighbour_id);
            HurrayWindow window = whole(&dest, &request, &id);
            HurrayWindow last = whole(&dest, &between, &last_id);
            assert_int_equal((uintptr_t)window.ptr % 64, 0);
            if (offsets[i] % 64 == 0) {
                assert_int_equal((uintptr_t)window.ptr % blocks[k], offsets[i] % blocks[k]);
                assert_int_equal(window.slack_before, offsets[i] % blocks[k]);
                assert_int_equal((offsets[i] + window.len + window.slack_after) % blocks[k], 0);
                if (neighbour.ptr < window.ptr) assert_true(window.ptr - window.slack_before > neighbour.ptr);
                if (last.ptr > window.ptr) assert_true(window.ptr + window.len + window.slack_after <= last.ptr);
            } else {
                assert_int_equal(window.slack_before + window.slack_after, 0);
            }
            HurrayWindow middle = {.struct_size = sizeof middle, .offset = 1000, .len = 1000};
            assert_int_equal(dest.window(dest.ctx, id, &middle), HURRAY_OK);
            assert_ptr_equal(middle.ptr, window.ptr + 1000);
            assert_int_equal(middle.slack_before + middle.slack_after, 0);
            middle.offset = 300001;
            assert_int_equal(dest.window(dest.ctx, id, &middle), HURRAY_ERR_INVALID_ARGUMENT);
            dest.discard(dest.ctx, neighbour_id);
            dest.discard(dest.ctx, id);
            dest.discard(dest.ctx, last_id);
        }
    }
    hurray_destination_release(&dest);
    fail_alloc_assert_empty(&alloc);
}

static size_t free_reserved_pages(void) {
    FILE *file = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
    unsigned long count = 0;
    if (file && fscanf(file, "%lu", &count) != 1) count = 0;
    if (file) fclose(file);
    return count;
}

static void reserved_huge_pages_are_used_when_asked_for_and_there(void **state) {
    (void)state;
    FailAlloc alloc;
    size_t before = free_reserved_pages();
    HurrayDestinationAlloc dest = make(&alloc, HURRAY_ON, 0);
    dest.reserve(dest.ctx, 0, -1, 12 << 20, 3);
    HurrayBufferInfo a = fill_and_freeze(&dest, 3 << 20, 64, 1), b = fill_and_freeze(&dest, 6 << 20, 64, 2),
                     c = fill_and_freeze(&dest, 1 << 20, 64, 3);
    if (before >= 8)
        assert_true(free_reserved_pages() < before);
    else
        print_message("no reserved huge pages here: ordinary memory was used\n");
    drop(&b); /* its neighbours share its first and last page */
    assert_int_equal(((unsigned char *)a.data)[(3 << 20) - 1], 1);
    assert_int_equal(((unsigned char *)c.data)[0], 3);
    drop(&a);
    drop(&c);
    hurray_destination_release(&dest);
    assert_int_equal(free_reserved_pages(), before);
    fail_alloc_assert_empty(&alloc);
}

static void impossible_sizes_are_no_memory_and_change_nothing(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayDestinationAlloc dest = make(&alloc, HURRAY_ON, 0);
    HurrayDestination out = {.struct_size = sizeof out};
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 4096, (uint64_t)1 << 62, (uint64_t)1 << 50};
    for (size_t i = 0; i < 4; i++) {
        HurrayDestinationRequest request = ask(sizes[i], 64);
        assert_int_equal(dest.allocate(dest.ctx, &request, &out), HURRAY_ERR_NO_MEMORY);
        request.source_offset = 64;
        request.io_alignment = 4096;
        assert_int_equal(dest.allocate(dest.ctx, &request, &out), HURRAY_ERR_NO_MEMORY);
    }
    assert_int_equal(dest.reserve(dest.ctx, 0, -1, UINT64_MAX, UINT64_MAX), HURRAY_OK);
    HurrayBufferInfo info = fill_and_freeze(&dest, 3 << 20, 64, 5);
    drop(&info);
    hurray_destination_release(&dest);
    fail_alloc_assert_empty(&alloc);
}

static void every_failing_allocation_leaks_nothing(void **state) {
    (void)state;
    for (uint64_t k = 1;; k++) {
        FailAlloc alloc;
        HurrayHostOptions options = HURRAY_HOST_OPTIONS_INIT;
        HurrayDestinationAlloc dest;
        HurrayError error = HURRAY_ERROR_INIT;
        int failed = 0;
        fail_alloc_init(&alloc);
        options.allocator = &alloc.allocator;
        options.numa_node = 0;
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hurray_destination_host(&options, &dest, &error);
        if (status == HURRAY_OK) {
            for (int i = 0; i < 4; i++) {
                HurrayDestinationRequest request = ask(i % 2 ? 2 << 20 : 100, 64);
                HurrayDestination out = {.struct_size = sizeof out};
                status = dest.allocate(dest.ctx, &request, &out);
                if (status == HURRAY_OK)
                    dest.discard(dest.ctx, out.id);
                else
                    failed = status == HURRAY_ERR_NO_MEMORY;
            }
            hurray_destination_release(&dest);
        } else {
            assert_int_equal(error.code, HURRAY_ERR_NO_MEMORY);
            assert_true(error.message[0]);
            failed = 1;
        }
        fail_alloc_assert_empty(&alloc);
        if (!failed) break;
    }
}

static void bad_options_are_named(void **state) {
    (void)state;
    HurrayDestinationAlloc dest;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_destination_host(NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_destination_release(NULL), HURRAY_ERR_NULL_POINTER);
    HurrayHostOptions options = HURRAY_HOST_OPTIONS_INIT;
    options.struct_size = 4;
    assert_int_equal(hurray_destination_host(&options, &dest, &error), HURRAY_ERR_INVALID_ARGUMENT);
    options = (HurrayHostOptions)HURRAY_HOST_OPTIONS_INIT;
    options.huge_pages = 3;
    assert_int_equal(hurray_destination_host(&options, &dest, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "huge_pages");
    options = (HurrayHostOptions)HURRAY_HOST_OPTIONS_INIT;
    options.min_alignment = 48;
    assert_int_equal(hurray_destination_host(&options, &dest, &error), HURRAY_ERR_INVALID_ARGUMENT);
    options = (HurrayHostOptions)HURRAY_HOST_OPTIONS_INIT;
    options.numa_node = 4000;
    assert_int_equal(hurray_destination_host(&options, &dest, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "numa_node");
    options.numa_node = -2;
    assert_int_equal(hurray_destination_host(&options, &dest, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_destination_host(NULL, &dest, NULL), HURRAY_OK);
    hurray_destination_release(&dest);
    assert_int_equal(hurray_destination_release(&dest), HURRAY_OK); /* an empty one is released already */
}

static void *churn(void *ctx) {
    const HurrayDestinationAlloc *dest = ctx;
    HurrayBufferInfo kept[16] = {{0}};
    for (unsigned i = 0; i < 3000; i++) {
        HurrayBufferInfo *slot = &kept[i * 7 % 16];
        if (slot->data) {
            const unsigned char *bytes = slot->data;
            if (bytes[0] != bytes[slot->byte_size - 1]) return ctx;
            drop(slot);
        }
        *slot = fill_and_freeze(dest, i % 50 == 0 ? 200000 : 1 + i % 999, 64, (int)(i & 255));
    }
    for (size_t i = 0; i < 16; i++)
        if (kept[i].data) drop(&kept[i]);
    return NULL;
}

static void threads_may_allocate_and_release_together(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayDestinationAlloc dest = make(&alloc, HURRAY_AUTO, 0);
    pthread_t threads[4];
    assert_true(dest.flags & HURRAY_DESTINATION_CONCURRENT);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, churn, &dest);
    for (int i = 0; i < 4; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
    hurray_destination_release(&dest);
    fail_alloc_assert_empty(&alloc);
}

static void a_small_buffer_is_cheap(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    HurrayDestinationAlloc dest;
    HurrayBufferInfo *infos = calloc(COUNT, sizeof *infos);
    struct timespec begin, end;
    assert_int_equal(hurray_destination_host(NULL, &dest, NULL), HURRAY_OK);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int i = 0; i < COUNT; i++) {
        HurrayDestinationRequest request = ask(16, 64);
        HurrayDestination out = {.struct_size = sizeof out};
        dest.allocate(dest.ctx, &request, &out);
        HurrayWindow window = {.len = 16};
        dest.window(dest.ctx, out.id, &window);
        memset(window.ptr, 1, 16);
        dest.freeze(dest.ctx, out.id, &infos[i]);
    }
    for (int i = 0; i < COUNT; i++) drop(&infos[i]);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double ns = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / COUNT;
    print_message("a 16-byte buffer from request to release: %.0f ns\n", ns);
    assert_true(ns < 20000); /* generous: sanitizers and a busy machine */
    hurray_destination_release(&dest);
    free(infos);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_declared_alignment_is_kept),
        cmocka_unit_test(an_odd_alignment_is_refused_and_a_small_one_is_raised),
        cmocka_unit_test(buffers_outlive_the_destination),
        cmocka_unit_test(the_number_of_mappings_does_not_grow_with_the_number_of_tensors),
        cmocka_unit_test(a_released_buffer_gives_its_pages_back_while_its_neighbours_live),
        cmocka_unit_test(nothing_is_touched_before_the_reader_writes),
        cmocka_unit_test(a_direct_read_finds_the_data_where_the_file_offset_falls_in_a_block),
        cmocka_unit_test(reserved_huge_pages_are_used_when_asked_for_and_there),
        cmocka_unit_test(impossible_sizes_are_no_memory_and_change_nothing),
        cmocka_unit_test(every_failing_allocation_leaks_nothing),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(threads_may_allocate_and_release_together),
        cmocka_unit_test(a_small_buffer_is_cheap),
    };
    return cmocka_run_group_tests_name("cpu/dest_host", tests, NULL, NULL);
}
