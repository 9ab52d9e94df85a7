/* What opening and loading cost in memory: counted, not timed. */
#include "hurray/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hurray/transport.h"
#include "support/fail_alloc.h"
#include "support/resident.h"

#define MANY 100000u
#define LARGE_COUNT 32u
#define LARGE_BYTES ((uint64_t)2 << 20)
#define ALLOWED ((uint64_t)32 << 20)

/* A file of which only the ends are kept: opening reads nothing else, and says so by failing if it does. */
typedef struct Ends {
    uint8_t head[8192]; /* the loader looks at more than the header to tell what it is */
    uint8_t *tail;
    size_t tail_len, tail_room;
    uint64_t size, tail_begin;
    bool keeping;
    uint64_t reads;
} Ends;

static HurrayStatus write_ends(void *ctx, const uint8_t *src, size_t len, size_t *out) {
    Ends *ends = ctx;
    for (size_t k = 0; ends->size + k < sizeof ends->head && k < len; k++) ends->head[ends->size + k] = src[k];
    if (ends->keeping) {
        if (ends->tail_len + len > ends->tail_room) {
            ends->tail_room = (ends->tail_len + len) * 2;
            ends->tail = realloc(ends->tail, ends->tail_room);
            assert_non_null(ends->tail);
        }
        memcpy(ends->tail + ends->tail_len, src, len);
        ends->tail_len += len;
    }
    ends->size += len;
    *out = len;
    return HURRAY_OK;
}

static HurrayStatus read_ends(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *out) {
    Ends *ends = ctx;
    ends->reads++;
    if (offset >= ends->tail_begin && offset - ends->tail_begin <= ends->tail_len && len <= ends->tail_len - (offset - ends->tail_begin))
        memcpy(dst, ends->tail + (offset - ends->tail_begin), len);
    else if (offset < sizeof ends->head && len <= sizeof ends->head - offset)
        memcpy(dst, ends->head + offset, len);
    else
        return HURRAY_ERR_TRANSPORT;
    *out = len;
    return HURRAY_OK;
}

static HurrayStatus size_ends(void *ctx, uint64_t *out) {
    *out = ((Ends *)ctx)->size;
    return HURRAY_OK;
}

static size_t name_of(char *name, size_t room, uint64_t t) {
    return (size_t)snprintf(name, room, "model.layers.%llu.weight", (unsigned long long)t);
}

static void write_many(Ends *ends, uint32_t flags) {
    HurrayTransport sink = {.ctx = ends, .write = write_ends};
    HurrayFileWriterOptions options = HURRAY_FILE_WRITER_OPTIONS_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayFileWriter *writer = NULL;
    HurrayDescriptor *descriptor = NULL;
    uint64_t shape = 0;
    HurrayIoSlice slice = {"", 0};
    char name[64];
    memset(ends, 0, sizeof *ends);
    options.flags = flags;
    spec.rank = 1;
    spec.shape = &shape;
    spec.element_type = HURRAY_TYPE_UINT8;
    assert_int_equal(hurray_descriptor_new(&spec, NULL, &descriptor, NULL), HURRAY_OK);
    assert_int_equal(hurray_file_writer_new_ex(&sink, &options, &writer, NULL), HURRAY_OK);
    for (uint64_t t = 0; t < MANY; t++)
        assert_int_equal(hurray_file_writer_write_tensor(writer, name, name_of(name, sizeof name, t), descriptor, &slice, 1), HURRAY_OK);
    ends->keeping = true;
    ends->tail_begin = ends->size;
    assert_int_equal(hurray_file_writer_finish(writer, NULL, 0), HURRAY_OK);
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
}

/* The index, as its length stands in the trailer. */
static uint64_t index_length(const Ends *ends) {
    const uint8_t *trailer = ends->tail + ends->tail_len - 40;
    uint64_t length = 0;
    for (int k = 7; k >= 0; k--) length = length << 8 | trailer[8 + k];
    assert_in_range(length, MANY * 32u, ends->tail_len);
    return length;
}

static HurrayTransport source_of(Ends *ends) { return (HurrayTransport){.ctx = ends, .read_at = read_ends, .size = size_ends}; }

static void check_reader(Ends *ends) {
    HurrayTransport transport = source_of(ends);
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    HurrayFileReader *reader = NULL;
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    assert_int_equal(hurray_file_reader_new_ex(&transport, &options, &reader, NULL), HURRAY_OK);
    assert_in_range(alloc.peak_bytes, 1, 4 * index_length(ends) - 1);
    hurray_file_reader_destroy(&reader);
    fail_alloc_assert_empty(&alloc);
}

static void check_loader(Ends *ends) {
    HurrayTransport transport = source_of(ends);
    HurraySource source = {.transport = &transport};
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayLoader *loader = NULL;
    FailAlloc alloc;
    char name[64];
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    assert_int_equal(hurray_loader_open_sources(&source, 1, &options, &loader, NULL), HURRAY_OK);
    assert_in_range(alloc.peak_bytes, 1, 4 * index_length(ends) - 1);
    uint64_t calls = alloc.calls, reads = ends->reads;
    for (uint64_t t = 0; t < MANY; t += 97) {
        uint64_t at = HURRAY_NONE;
        assert_int_equal(hurray_loader_find(loader, name, name_of(name, sizeof name, t), &at), HURRAY_OK);
        assert_int_equal(at, t);
    }
    assert_int_equal(alloc.calls, calls);
    assert_int_equal(ends->reads, reads);
    hurray_loader_destroy(&loader);
    fail_alloc_assert_empty(&alloc);
}

static void opening_a_hundred_thousand_tensors_takes_less_than_four_times_the_index(void **state) {
    Ends ends;
    (void)state;
    write_many(&ends, 0);
    check_reader(&ends);
    check_loader(&ends);
    free(ends.tail);
}

static void a_sorted_index_costs_no_more(void **state) {
    Ends ends;
    (void)state;
    write_many(&ends, HURRAY_WRITE_SORTED_INDEX);
    check_reader(&ends);
    check_loader(&ends);
    free(ends.tail);
}

static void write_large(const char *path) {
    HurrayTransport transport;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayFileWriter *writer = NULL;
    HurrayDescriptor *descriptor = NULL;
    uint64_t shape = LARGE_BYTES;
    uint8_t *data = malloc(LARGE_BYTES);
    HurrayIoSlice slice = {data, LARGE_BYTES};
    char name[64];
    assert_non_null(data);
    memset(data, 7, LARGE_BYTES);
    spec.rank = 1;
    spec.shape = &shape;
    spec.element_type = HURRAY_TYPE_UINT8;
    assert_int_equal(hurray_transport_create(path, NULL, &transport, NULL), HURRAY_OK);
    assert_int_equal(hurray_descriptor_new(&spec, NULL, &descriptor, NULL), HURRAY_OK);
    assert_int_equal(hurray_file_writer_new_ex(&transport, NULL, &writer, NULL), HURRAY_OK);
    for (uint64_t t = 0; t < LARGE_COUNT; t++)
        assert_int_equal(hurray_file_writer_write_tensor(writer, name, name_of(name, sizeof name, t), descriptor, &slice, 1), HURRAY_OK);
    assert_int_equal(hurray_file_writer_finish(writer, NULL, 0), HURRAY_OK);
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    free(data);
}

static void load_large(const char *path, uint32_t io, uint32_t direct, uint32_t verify) {
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    options.io = io;
    options.direct = direct;
    options.verify_data = verify;
    options.threads = 4;
    uint64_t before = resident_bytes("VmRSS");
    bool kernel_counts = resident_reset_peak() && before;
    assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    uint64_t peak = resident_bytes("VmHWM");
    assert_int_equal(hurray_loader_stats(loader, &stats), HURRAY_OK);
    assert_int_equal(stats.payload_bytes, LARGE_COUNT * LARGE_BYTES);
    assert_in_range(alloc.peak_bytes, 1, ALLOWED);
    assert_in_range(stats.peak_host, 0, ALLOWED);
    if (kernel_counts) {
        assert_true(peak > before + stats.payload_bytes / 2);
        assert_in_range(peak - before, 1, stats.payload_bytes + ALLOWED);
    } else {
        print_message("the kernel's peak cannot be reset here, only the allocator was asked\n");
    }
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    fail_alloc_assert_empty(&alloc);
}

static void a_load_to_host_memory_peaks_at_its_tensors_and_32_mib(void **state) {
    char path[] = HURRAY_BINARY_DIR "/memory-XXXXXX";
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("skipped: the thread sanitizer's own memory would be counted\n");
    skip();
#endif
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_large(path);
    load_large(path, HURRAY_IO_THREADS, HURRAY_OFF, HURRAY_VERIFY_NONE);
    load_large(path, HURRAY_IO_THREADS, HURRAY_OFF, HURRAY_VERIFY_REQUIRED);
    load_large(path, HURRAY_IO_THREADS, HURRAY_ON, HURRAY_VERIFY_NONE);
    load_large(path, HURRAY_IO_URING, HURRAY_OFF, HURRAY_VERIFY_STORED);
    load_large(path, HURRAY_IO_AUTO, HURRAY_AUTO, HURRAY_VERIFY_NONE);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_a_hundred_thousand_tensors_takes_less_than_four_times_the_index),
        cmocka_unit_test(a_sorted_index_costs_no_more),
        cmocka_unit_test(a_load_to_host_memory_peaks_at_its_tensors_and_32_mib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
