#include "cpu/in_place.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu/transport.h"
#include "support/fail_alloc.h"

#define SIZE 65536u
static char path[] = "/tmp/hurray-mapped-XXXXXX";

static int make_file(void **state) {
    (void)state;
    int fd = mkstemp(path);
    for (unsigned i = 0; i < SIZE; i++) {
        uint8_t byte = (uint8_t)(i / 64);
        if (write(fd, &byte, 1) != 1) return -1;
    }
    return close(fd);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static HurrayDestinationRequest ask(uint64_t offset, uint64_t size, uint32_t alignment) {
    HurrayDestinationRequest request = {
        .struct_size = sizeof request, .byte_size = size, .alignment = alignment, .source_offset = offset, .device_index = -1};
    return request;
}

static HurrayBufferInfo freeze(const HurrayDestinationAlloc *dest, void *id) {
    HurrayBufferInfo info = HURRAY_BUFFER_INFO_INIT;
    assert_int_equal(dest->freeze(dest->ctx, id, &info), HURRAY_OK);
    return info;
}

static HurrayTransport mapped(FailAlloc *alloc) {
    HurrayTransport t;
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    fail_alloc_init(alloc);
    options.allocator = &alloc->allocator;
    assert_int_equal(hurray_transport_mapped(path, &options, &t, NULL), HURRAY_OK);
    return t;
}

static void an_aligned_buffer_is_the_mapping_itself_and_outlives_everything(void **state) {
    (void)state;
    /* 0: transport, destination, buffer; and the other orders */
    for (int order = 0; order < 6; order++) {
        FailAlloc alloc;
        HurrayTransport t = mapped(&alloc);
        HurrayDestinationAlloc dest;
        HurrayDestination out = {.struct_size = sizeof out};
        assert_int_equal(hurray_destination_in_place(&t, &dest, NULL), HURRAY_OK);
        HurrayDestinationRequest request = ask(8192, 300, 4096);
        assert_int_equal(dest.allocate(dest.ctx, &request, &out), HURRAY_OK);
        assert_int_equal(out.flags, HURRAY_DESTINATION_PREFILLED);
        HurrayWindow window = {.struct_size = sizeof window, .len = 300};
        assert_int_equal(dest.window(dest.ctx, out.id, &window), HURRAY_ERR_WRONG_STATE);
        HurrayBufferInfo info = freeze(&dest, out.id);
        assert_ptr_equal(info.data, out.data);
        assert_int_equal(info.flags, HURRAY_BUFFER_IN_PLACE | HURRAY_BUFFER_READ_ONLY);
        assert_int_equal(info.alignment, 4096);
        static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        for (int i = 0; i < 3; i++) {
            switch (orders[order][i]) {
            case 0: hurray_transport_release(&t); break;
            case 1: hurray_destination_release(&dest); break;
            default: assert_int_equal(((uint8_t *)info.data)[299], (8192 + 299) / 64 % 256); info.release(info.data, info.release_context);
            }
        }
        fail_alloc_assert_empty(&alloc);
    }
}

static void what_does_not_lie_so_is_host_memory(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayTransport t = mapped(&alloc);
    HurrayDestinationAlloc dest;
    assert_int_equal(hurray_destination_in_place(&t, &dest, NULL), HURRAY_OK);
    dest.retain(dest.ctx);
    HurrayDestinationRequest requests[] = {ask(64, 300, 4096),          ask(HURRAY_NONE, 300, 64), ask(SIZE - 299, 300, 1),
                                           ask(UINT64_MAX - 1, 300, 1), ask(4096, 300, 64),        ask(0, 300, 3)};
    requests[4].source_index = 1;
    for (size_t i = 0; i < 5; i++) {
        HurrayDestination out = {.struct_size = sizeof out};
        HurrayWindow window = {.struct_size = sizeof window, .len = 300};
        assert_int_equal(dest.allocate(dest.ctx, &requests[i], &out), HURRAY_OK);
        assert_int_equal(out.flags, 0);
        assert_int_equal(dest.window(dest.ctx, out.id, &window), HURRAY_OK);
        memset(window.ptr, 3, 300);
        if (i == 0) {
            dest.discard(dest.ctx, out.id);
            continue;
        }
        HurrayBufferInfo info = freeze(&dest, out.id);
        assert_ptr_equal(info.data, window.ptr);
        assert_int_equal(info.flags, 0);
        info.release(info.data, info.release_context);
    }
    HurrayDestination out = {.struct_size = sizeof out};
    assert_int_equal(dest.allocate(dest.ctx, &requests[5], &out), HURRAY_ERR_INVALID_ARGUMENT);
    HurrayDestinationRequest last = ask(0, SIZE, 4096);
    assert_int_equal(dest.allocate(dest.ctx, &last, &out), HURRAY_OK);
    assert_int_equal(out.flags, HURRAY_DESTINATION_PREFILLED);
    dest.discard(dest.ctx, out.id);
    dest.release(dest.ctx);
    hurray_destination_release(&dest);
    hurray_transport_release(&t);
    fail_alloc_assert_empty(&alloc);
}

static void count_release(void *data, void *context) {
    assert_non_null(data);
    ++*(int *)context;
}

static void the_callers_memory_goes_back_once_after_the_last_use(void **state) {
    (void)state;
    int released = 0;
    FailAlloc alloc;
    HurrayTransport t;
    HurrayDestinationAlloc dest;
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    uint8_t *bytes = malloc(100), got[200];
    size_t n;
    uint64_t size;
    memset(bytes, 5, 100);
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    assert_int_equal(hurray_transport_memory(bytes, 100, count_release, &released, &options, &t, NULL), HURRAY_OK);
    assert_true(t.flags & HURRAY_TRANSPORT_CONCURRENT);
    assert_int_equal(t.size(t.ctx, &size), HURRAY_OK);
    assert_int_equal(size, 100);
    assert_int_equal(t.read_at(t.ctx, 90, got, 200, &n), HURRAY_OK);
    assert_int_equal(n, 10);
    assert_int_equal(t.read_at(t.ctx, 100, got, 200, &n), HURRAY_OK);
    assert_int_equal(n, 0);
    assert_int_equal(t.read_at(t.ctx, UINT64_MAX, got, 200, &n), HURRAY_OK);
    assert_int_equal(n, 0);
    assert_int_equal(t.read(t.ctx, got, 60, &n), HURRAY_OK);
    assert_int_equal(n, 60);
    assert_int_equal(t.read(t.ctx, got, 60, &n), HURRAY_OK);
    assert_int_equal(n, 40);
    assert_int_equal(t.read(t.ctx, got, 60, &n), HURRAY_OK);
    assert_int_equal(n, 0);
    assert_int_equal(hurray_destination_in_place(&t, &dest, NULL), HURRAY_OK);
    HurrayDestinationRequest request = ask(0, 100, 1);
    HurrayDestination out = {.struct_size = sizeof out};
    assert_int_equal(dest.allocate(dest.ctx, &request, &out), HURRAY_OK);
    assert_ptr_equal(out.data, bytes);
    HurrayBufferInfo info = freeze(&dest, out.id);
    hurray_transport_release(&t);
    hurray_destination_release(&dest);
    assert_int_equal(released, 0);
    info.release(info.data, info.release_context);
    assert_int_equal(released, 1);
    free(bytes);
    fail_alloc_assert_empty(&alloc);
}

static void several_sources_are_told_apart_by_their_index(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    HryMapping *sources[3] = {NULL};
    HurrayDestinationAlloc dest;
    static _Alignas(64) const uint8_t first[64] = {1}, third[64] = {3};
    fail_alloc_init(&alloc);
    assert_int_equal(hry_mapping_memory(first, 64, NULL, NULL, &alloc.allocator, &sources[0], &error), HURRAY_OK);
    assert_int_equal(hry_mapping_memory(third, 64, NULL, NULL, &alloc.allocator, &sources[2], &error), HURRAY_OK);
    assert_int_equal(hry_destination_in_place(sources, 3, NULL, &alloc.allocator, &dest, &error), HURRAY_OK);
    hry_mapping_drop(sources[0]);
    hry_mapping_drop(sources[2]);
    for (uint32_t i = 0; i < 4; i++) {
        HurrayDestinationRequest request = ask(0, 64, 64);
        HurrayDestination out = {.struct_size = sizeof out};
        request.source_index = i;
        assert_int_equal(dest.allocate(dest.ctx, &request, &out), HURRAY_OK);
        assert_ptr_equal(out.data, i == 0 ? first : i == 2 ? third : NULL);
        dest.discard(dest.ctx, out.id);
    }
    hurray_destination_release(&dest);
    fail_alloc_assert_empty(&alloc);
}

static void every_failing_allocation_leaks_nothing_and_keeps_the_callers_memory(void **state) {
    (void)state;
    int released = 0;
    for (int from_file = 0; from_file < 2; from_file++) {
        for (uint64_t k = 1;; k++) {
            FailAlloc alloc;
            HurrayTransport t;
            HurrayDestinationAlloc dest;
            HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
            static const uint8_t bytes[64];
            fail_alloc_init(&alloc);
            options.allocator = &alloc.allocator;
            fail_alloc_arm(&alloc, k, 0);
            released = 0;
            HurrayStatus status = from_file ? hurray_transport_mapped(path, &options, &t, NULL)
                                            : hurray_transport_memory(bytes, 64, count_release, &released, &options, &t, NULL);
            if (status != HURRAY_OK) {
                assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
                assert_int_equal(released, 0);
                fail_alloc_assert_empty(&alloc);
                continue;
            }
            status = hurray_destination_in_place(&t, &dest, NULL);
            for (int i = 0; i < 2 && status == HURRAY_OK; i++) {
                HurrayDestinationRequest request = ask(i ? HURRAY_NONE : 0, 64, 1);
                HurrayDestination out = {.struct_size = sizeof out};
                status = dest.allocate(dest.ctx, &request, &out);
                if (status == HURRAY_OK) dest.discard(dest.ctx, out.id);
                if (i || status != HURRAY_OK) hurray_destination_release(&dest);
            }
            hurray_transport_release(&t);
            fail_alloc_assert_empty(&alloc);
            if (status == HURRAY_OK) break;
            assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        }
    }
}

static void what_cannot_be_mapped_says_why(void **state) {
    (void)state;
    HurrayTransport t;
    HurrayDestinationAlloc dest;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_transport_mapped("/nowhere/x", NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_true(error.system_error != 0);
    assert_int_equal(hurray_transport_mapped("/tmp", NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(hurray_transport_mapped("/dev/null", NULL, &t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(hurray_transport_mapped(NULL, NULL, &t, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_transport_memory(NULL, 1, NULL, NULL, NULL, &t, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_transport_memory("a", 1, NULL, NULL, NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    int write_only = open(path, O_WRONLY);
    HurrayAllocator allocator = hry_alloc_default();
    HryMapping *mapping = NULL;
    assert_int_equal(hry_mapping_file(write_only, path, &allocator, &mapping, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, EACCES);
    close(write_only);
    assert_int_equal(hry_mapping_file(-1, NULL, &allocator, &mapping, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, EBADF);
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    options.flags = 1;
    assert_int_equal(hurray_transport_mapped(path, &options, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_transport_memory("a", 1, NULL, NULL, &options, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_transport_file(path, NULL, &t, NULL), HURRAY_OK);
    assert_int_equal(hurray_destination_in_place(&t, &dest, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "source");
    assert_int_equal(hurray_destination_in_place(NULL, &dest, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_destination_in_place(&t, NULL, &error), HURRAY_ERR_NULL_POINTER);
    hurray_transport_release(&t);
}

static void an_empty_file_and_empty_memory_are_at_their_end(void **state) {
    (void)state;
    HurrayTransport t;
    char empty[] = "/tmp/hurray-empty-XXXXXX";
    int fd = mkstemp(empty);
    close(fd);
    for (int i = 0; i < 2; i++) {
        uint64_t size = 1;
        size_t n = 1;
        uint8_t byte;
        if (i)
            assert_int_equal(hurray_transport_mapped(empty, NULL, &t, NULL), HURRAY_OK);
        else
            assert_int_equal(hurray_transport_memory(NULL, 0, NULL, NULL, NULL, &t, NULL), HURRAY_OK);
        assert_int_equal(t.size(t.ctx, &size), HURRAY_OK);
        assert_int_equal(size, 0);
        assert_int_equal(t.read(t.ctx, &byte, 1, &n), HURRAY_OK);
        assert_int_equal(n, 0);
        hurray_transport_release(&t);
    }
    unlink(empty);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_aligned_buffer_is_the_mapping_itself_and_outlives_everything),
        cmocka_unit_test(what_does_not_lie_so_is_host_memory),
        cmocka_unit_test(the_callers_memory_goes_back_once_after_the_last_use),
        cmocka_unit_test(several_sources_are_told_apart_by_their_index),
        cmocka_unit_test(every_failing_allocation_leaks_nothing_and_keeps_the_callers_memory),
        cmocka_unit_test(what_cannot_be_mapped_says_why),
        cmocka_unit_test(an_empty_file_and_empty_memory_are_at_their_end),
    };
    return cmocka_run_group_tests_name("cpu/dest_in_place", tests, make_file, remove_file);
}
