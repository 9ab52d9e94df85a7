/* struct_size of every struct that has one. Going in: below the first release's, 0 too, is INVALID_ARGUMENT; a longer one is fine as long as
 * what is not known is zero, else UNSUPPORTED. Coming out: what both know is filled, the rest zeroed, and nothing beyond is touched. Each
 * struct lies in a heap block of exactly its size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hurray.h"
#include "hurray/core.h"
#include "hurray/cuda.h"
#include "hurray/import.h"
#include "hurray/loader.h"
#include "hurray/transport.h"
#include "support/models.h"

#define MORE 24u /* bytes of a later release */

typedef HurrayStatus (*Use)(const void *given, HurrayError *error);

static ModelBytes model;

static HurrayTransport memory_transport(void) {
    HurrayTransport transport;
    assert_int_equal(hurray_transport_memory(model.bytes, model.len, NULL, NULL, NULL, &transport, NULL), HURRAY_OK);
    return transport;
}

static HurrayStatus write_nothing(void *ctx, const uint8_t *src, size_t len, size_t *written) {
    (void)ctx, (void)src;
    *written = len;
    return HURRAY_OK;
}

/* ---- what takes each struct; on OK what was made goes again ---- */

static HurrayStatus use_allocator(const void *given, HurrayError *error) {
    HurrayBufferInfo info = HURRAY_BUFFER_INFO_INIT;
    HurrayBuffer *buffer = NULL;
    info.alignment = 64;
    info.device_index = -1;
    HurrayStatus status = hurray_buffer_new(&info, given, &buffer, error);
    hurray_buffer_destroy(buffer);
    return status;
}

static HurrayStatus use_buffer_info(const void *given, HurrayError *error) {
    HurrayBuffer *buffer = NULL;
    HurrayStatus status = hurray_buffer_new(given, NULL, &buffer, error);
    hurray_buffer_destroy(buffer);
    return status;
}

static HurrayStatus open_file(const HurrayTransport *given, const HurrayFileReaderOptions *options, HurrayError *error) {
    HurrayFileReader *reader = NULL;
    HurrayTransport transport = memory_transport();
    HurrayStatus status = hurray_file_reader_new_ex(given ? given : &transport, options, &reader, error);
    if (given || status != HURRAY_OK) hurray_transport_release(&transport);
    hurray_file_reader_destroy(&reader);
    return status;
}

static HurrayStatus use_file_reader_options(const void *given, HurrayError *error) { return open_file(NULL, given, error); }

static HurrayStatus use_destination(const void *given, HurrayError *error) {
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    options.destination = given;
    return open_file(NULL, &options, error);
}

static HurrayStatus use_file_writer_options(const void *given, HurrayError *error) {
    HurrayTransport transport = {.write = write_nothing};
    HurrayFileWriter *writer = NULL;
    HurrayStatus status = hurray_file_writer_new_ex(&transport, given, &writer, error);
    hurray_file_writer_destroy(&writer);
    return status;
}

static HurrayStatus use_reader_options(const void *given, HurrayError *error) {
    HurrayTransport transport = memory_transport();
    HurrayReader *reader = NULL;
    HurrayStatus status = hurray_reader_new_ex(&transport, given, &reader, error);
    if (status != HURRAY_OK) hurray_transport_release(&transport);
    hurray_reader_destroy(&reader);
    return status;
}

static HurrayStatus use_assembler_options(const void *given, HurrayError *error) {
    HurrayCompositeAssembler *assembler = NULL;
    HurrayStatus status = hurray_composite_assembler_new(given, &assembler, error);
    hurray_composite_assembler_destroy(&assembler);
    return status;
}

static HurrayStatus use_writer_options(const void *given, HurrayError *error) {
    HurrayTransport transport = {.write = write_nothing};
    HurrayWriter *writer = NULL;
    HurrayStatus status = hurray_writer_new_ex(&transport, given, &writer, error);
    hurray_writer_destroy(&writer);
    return status;
}

static HurrayStatus use_loader_options(const void *given, HurrayError *error) {
    HurrayTransport transport = memory_transport();
    HurraySource source = {.transport = &transport};
    HurrayLoader *loader = NULL;
    HurrayStatus status = hurray_loader_open_sources(&source, 1, given, &loader, error);
    if (status != HURRAY_OK) hurray_transport_release(&transport);
    hurray_loader_destroy(&loader);
    return status;
}

static HurrayStatus use_device_memory(const void *given, HurrayError *error) {
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    options.device_memory = given;
    return use_loader_options(&options, error);
}

static HurrayStatus use_transport_options(const void *given, HurrayError *error) {
    HurrayTransport transport = {0};
    HurrayStatus status = hurray_transport_memory(model.bytes, model.len, NULL, NULL, given, &transport, error);
    if (status == HURRAY_OK) hurray_transport_release(&transport);
    return status;
}

static HurrayStatus use_host_options(const void *given, HurrayError *error) {
    HurrayDestinationAlloc destination;
    HurrayStatus status = hurray_destination_host(given, &destination, error);
    if (status == HURRAY_OK) hurray_destination_release(&destination);
    return status;
}

static HurrayStatus use_cuda_options(const void *given, HurrayError *error) {
    HurrayDestinationAlloc destination;
    HurrayStatus status = hurray_destination_cuda(given, &destination, error);
    if (status == HURRAY_OK) hurray_destination_release(&destination);
    return status == HURRAY_ERR_NO_DEVICE ? HURRAY_OK : status; /* the options were read before the devices */
}

static HurrayStatus use_export_options(const void *given, HurrayError *error) {
    HurrayTransport transport = {.write = write_nothing};
    HurrayExporter *exporter = NULL;
    HurrayStatus status = hurray_exporter_new(&transport, HURRAY_FORMAT_SAFETENSORS, NULL, 0, NULL, 0, given, &exporter, error);
    hurray_exporter_destroy(&exporter);
    return status;
}

static HurrayStatus use_spec(const void *given, HurrayError *error) {
    HurrayDescriptor *descriptor = NULL;
    HurrayStatus status = hurray_descriptor_new(given, NULL, &descriptor, error);
    hurray_descriptor_destroy(descriptor);
    return status;
}

static const uint64_t shape[] = {8, 8};
static const uint64_t parent[] = {16, 8}, begin[] = {8, 0};

static HurrayDescriptorSpec plain_spec(uint8_t type) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    spec.rank = 2;
    spec.shape = shape;
    spec.element_type = type;
    return spec;
}

#define SECTION(function, member, type)                                   \
    static HurrayStatus function(const void *given, HurrayError *error) { \
        HurrayDescriptorSpec spec = plain_spec(type);                     \
        spec.member = given;                                              \
        return use_spec(&spec, error);                                    \
    }
SECTION(use_layout, layout, HURRAY_TYPE_FLOAT32)
SECTION(use_quantization, quantization, HURRAY_TYPE_INT8)
SECTION(use_shard, shard, HURRAY_TYPE_FLOAT32)
SECTION(use_statistics, statistics, HURRAY_TYPE_FLOAT32)
SECTION(use_extension, extension_type, HURRAY_PRIVATE_FIRST)
SECTION(use_member, composite_member, HURRAY_TYPE_FLOAT32)

/* ---- in ---- */

static HurrayStatus with_size(Use use, const void *whole, size_t known, uint32_t given_size, unsigned char tail, HurrayError *error) {
    size_t room = given_size < 4 ? 4 : given_size;
    unsigned char *block = malloc(room);
    assert_non_null(block);
    memset(block, 0, room);
    memcpy(block, whole, room < known ? room : known);
    if (room > known) block[room - 1] = tail;
    memcpy(block, &given_size, sizeof given_size);
    *error = (HurrayError)HURRAY_ERROR_INIT;
    HurrayStatus status = use(block, error);
    free(block);
    return status;
}

static int wrong(const char *name, const char *what, HurrayStatus got, HurrayStatus expected, const HurrayError *error) {
    if (got == expected && (got == HURRAY_OK || (error->code == got && error->message[0]))) return 0;
    print_error("%s, %s: %d (%s), expected %d\n", name, what, (int)got, error->message, (int)expected);
    return 1;
}

static int check_in(const char *name, Use use, const void *whole, size_t size) {
    HurrayError error;
    int bad = 0;
    HurrayStatus status = with_size(use, whole, size, (uint32_t)size, 0, &error);
    bad += wrong(name, "as it is", status, HURRAY_OK, &error);
    for (uint32_t less = 0; less < size; less += 4) {
        status = with_size(use, whole, size, less, 0, &error);
        bad += wrong(name, "too small", status, HURRAY_ERR_INVALID_ARGUMENT, &error);
    }
    status = with_size(use, whole, size, (uint32_t)size + MORE, 0, &error);
    bad += wrong(name, "longer, zero", status, HURRAY_OK, &error);
    status = with_size(use, whole, size, (uint32_t)size + MORE, 1, &error);
    bad += wrong(name, "longer, set", status, HURRAY_ERR_UNSUPPORTED, &error);
    return bad;
}

static void *test_allocate(void *ctx, size_t size, size_t alignment) {
    (void)ctx, (void)alignment;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void test_deallocate(void *ctx, void *memory, size_t size, size_t alignment) {
    (void)ctx, (void)size, (void)alignment;
    free(memory);
}

static HurrayStatus no_memory(void *ctx, uint8_t tag, int32_t index, uint64_t bytes, uint32_t alignment, void *stream, void **out) {
    (void)ctx, (void)tag, (void)index, (void)bytes, (void)alignment, (void)stream, (void)out;
    return HURRAY_ERR_NO_MEMORY;
}

static void no_deallocate(void *ctx, uint8_t tag, int32_t index, void *memory, uint64_t bytes) {
    (void)ctx, (void)tag, (void)index, (void)memory, (void)bytes;
}

static void structs_that_go_in(void **state) {
    (void)state;
    int bad = 0;
    HurrayAllocator allocator = HURRAY_ALLOCATOR_INIT;
    HurrayBufferInfo buffer = HURRAY_BUFFER_INFO_INIT;
    HurrayFileReaderOptions file_reader = HURRAY_FILE_READER_OPTIONS_INIT;
    HurrayFileWriterOptions file_writer = HURRAY_FILE_WRITER_OPTIONS_INIT;
    HurrayReaderOptions reader = HURRAY_READER_OPTIONS_INIT;
    HurrayWriterOptions writer = HURRAY_WRITER_OPTIONS_INIT;
    HurrayLoaderOptions loader = HURRAY_LOADER_OPTIONS_INIT;
    HurrayDeviceMemory device_memory = HURRAY_DEVICE_MEMORY_INIT;
    HurrayTransportOptions transport = HURRAY_TRANSPORT_OPTIONS_INIT;
    HurrayHostOptions host = HURRAY_HOST_OPTIONS_INIT;
    HurrayCudaOptions cuda = HURRAY_CUDA_OPTIONS_INIT;
    HurrayExportOptions exporter = HURRAY_EXPORT_OPTIONS_INIT;
    HurrayDescriptorSpec spec = plain_spec(HURRAY_TYPE_FLOAT32);
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayStatistics statistics = HURRAY_STATISTICS_INIT;
    HurrayExtensionType extension = HURRAY_EXTENSION_TYPE_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    HurrayDestinationAlloc destination;
    allocator.allocate = test_allocate;
    allocator.deallocate = test_deallocate;
    buffer.alignment = 64;
    buffer.device_index = -1;
    device_memory.allocate = no_memory;
    device_memory.deallocate = no_deallocate;
    layout.tag = HURRAY_LAYOUT_COLUMN_MAJOR;
    quantization.scheme = HURRAY_QUANT_PER_TENSOR_AFFINE;
    quantization.scale = 1;
    shard.parent_shape = parent;
    shard.offset = begin;
    extension.bit_width = 8;
    extension.packing_factor = 1;
    assert_int_equal(hurray_destination_host(NULL, &destination, NULL), HURRAY_OK);
#define IN(use, value) bad += check_in(#use, use, &(value), sizeof(value))
    IN(use_allocator, allocator);
    IN(use_buffer_info, buffer);
    IN(use_file_reader_options, file_reader);
    IN(use_destination, destination);
    IN(use_file_writer_options, file_writer);
    IN(use_reader_options, reader);
    IN(use_assembler_options, reader);
    IN(use_writer_options, writer);
    IN(use_loader_options, loader);
    IN(use_device_memory, device_memory);
    IN(use_transport_options, transport);
    IN(use_host_options, host);
    IN(use_cuda_options, cuda);
    IN(use_export_options, exporter);
    IN(use_spec, spec);
    IN(use_layout, layout);
    IN(use_quantization, quantization);
    IN(use_shard, shard);
    IN(use_statistics, statistics);
    IN(use_extension, extension);
    IN(use_member, member);
    hurray_destination_release(&destination);
    assert_int_equal(bad, 0);
}

/* Its size stands late, and 0 means the first release. */
static void a_transport_may_leave_its_size_out(void **state) {
    (void)state;
    HurrayTransport transport = memory_transport(), copy = transport;
    HurrayError error = HURRAY_ERROR_INIT;
    unsigned char *longer = calloc(1, sizeof copy + MORE);
    assert_non_null(longer);
    copy.release = NULL; /* stays ours */
    copy.struct_size = 0;
    assert_int_equal(open_file(&copy, NULL, &error), HURRAY_OK);
    copy.struct_size = sizeof copy - 4;
    assert_int_equal(open_file(&copy, NULL, &error), HURRAY_ERR_INVALID_ARGUMENT);
    copy.struct_size = sizeof copy + MORE;
    memcpy(longer, &copy, sizeof copy);
    assert_int_equal(open_file((const HurrayTransport *)(const void *)longer, NULL, &error), HURRAY_OK);
    longer[sizeof copy + MORE - 1] = 1;
    assert_int_equal(open_file((const HurrayTransport *)(const void *)longer, NULL, &error), HURRAY_ERR_UNSUPPORTED);
    free(longer);
    hurray_transport_release(&transport);
}

/* ---- out ---- */

static HurrayLoader *loader;
static HurrayFileReader *file_reader;
static HurrayDescriptor *full;

typedef HurrayStatus (*Fill)(void *out);

static HurrayStatus fill_loader_info(void *out) { return hurray_loader_tensor_info(loader, 0, out); }
static HurrayStatus fill_loader_source(void *out) { return hurray_loader_source_info(loader, 0, out); }
static HurrayStatus fill_load_stats(void *out) { return hurray_loader_stats(loader, out); }
static HurrayStatus fill_path_stats(void *out) { return hurray_loader_path_stats(loader, 0, out); }
static HurrayStatus fill_reader_info(void *out) { return hurray_file_reader_tensor_info(file_reader, 0, out); }
static HurrayStatus fill_reader_source(void *out) { return hurray_file_reader_info(file_reader, out); }
static HurrayStatus fill_host(void *out) { return hurray_host_info(out, NULL); }
static HurrayStatus fill_layout(void *out) { return hurray_descriptor_layout(full, out); }
static HurrayStatus fill_quantization(void *out) { return hurray_descriptor_quantization(full, out); }
static HurrayStatus fill_shard(void *out) { return hurray_descriptor_shard(full, out); }
static HurrayStatus fill_statistics(void *out) { return hurray_descriptor_statistics(full, out); }
static HurrayStatus fill_member(void *out) { return hurray_descriptor_composite_member(full, out); }

static int check_out(const char *name, Fill fill, uint32_t size) {
    int bad = 0;
    for (uint32_t given = 0; given <= size + MORE; given += 4) {
        size_t room = given < 4 ? 4 : given;
        unsigned char *block = malloc(room);
        uint32_t kept;
        assert_non_null(block);
        memset(block, 0xA5, room);
        memcpy(block, &given, sizeof given);
        HurrayStatus status = fill(block), expected = given < size ? HURRAY_ERR_INVALID_ARGUMENT : HURRAY_OK;
        if (status != expected) print_error("%s of %u bytes: %d, expected %d\n", name, (unsigned)given, (int)status, (int)expected), bad++;
        memcpy(&kept, block, sizeof kept);
        if (kept != given) print_error("%s of %u bytes: struct_size became %u\n", name, (unsigned)given, (unsigned)kept), bad++;
        for (size_t i = 4; i < room; i++) {
            if (status == HURRAY_OK && i >= size && block[i]) bad++;
            if (status != HURRAY_OK && block[i] != 0xA5) bad++;
        }
        free(block);
    }
    if (bad) print_error("%s: %d faults\n", name, bad);
    return bad;
}

static void structs_that_come_out(void **state) {
    (void)state;
    int bad = 0;
    HurrayTensorSet *set = NULL;
    HurrayTransport transport = memory_transport(), other = memory_transport();
    HurraySource source = {.transport = &transport};
    HurrayDescriptorSpec spec = plain_spec(HURRAY_TYPE_INT8);
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayStatistics statistics = HURRAY_STATISTICS_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    quantization.scheme = HURRAY_QUANT_PER_TENSOR_AFFINE;
    quantization.scale = 1;
    shard.parent_shape = parent;
    shard.offset = begin;
    spec.quantization = &quantization;
    spec.shard = &shard;
    spec.statistics = &statistics;
    spec.composite_member = &member;
    HurrayError error = HURRAY_ERROR_INIT;
    if (hurray_descriptor_new(&spec, NULL, &full, &error) != HURRAY_OK) fail_msg("%s", error.message);
    assert_int_equal(hurray_loader_open_sources(&source, 1, NULL, &loader, NULL), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    assert_int_equal(hurray_file_reader_new(&other, &file_reader), HURRAY_OK);
#define OUT(fill, type) bad += check_out(#fill, fill, sizeof(type))
    OUT(fill_loader_info, HurrayTensorInfo);
    OUT(fill_loader_source, HurraySourceInfo);
    OUT(fill_load_stats, HurrayLoadStats);
    OUT(fill_path_stats, HurrayPathStats);
    OUT(fill_reader_info, HurrayTensorInfo);
    OUT(fill_reader_source, HurraySourceInfo);
    OUT(fill_host, HurrayHostInfo);
    OUT(fill_layout, HurrayLayout);
    OUT(fill_quantization, HurrayQuantization);
    OUT(fill_shard, HurrayShard);
    OUT(fill_statistics, HurrayStatistics);
    OUT(fill_member, HurrayCompositeMember);
    hurray_file_reader_destroy(&file_reader);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    hurray_descriptor_destroy(full);
    assert_int_equal(bad, 0);
}

/* An error record is filled as far as it goes; 0 is the first release. */
static void an_error_record_of_any_size_is_filled_as_far_as_it_goes(void **state) {
    (void)state;
    for (uint32_t given = 0; given <= sizeof(HurrayError) + MORE; given += 8) {
        size_t room = given ? given : sizeof(HurrayError);
        HurrayDescriptor *descriptor = NULL;
        unsigned char *block = malloc(room);
        assert_non_null(block);
        memset(block, 0xA5, room);
        memcpy(block, &given, sizeof given);
        assert_int_equal(hurray_descriptor_decode_ex("no descriptor", 13, NULL, NULL, &descriptor, (HurrayError *)(void *)block),
                         HURRAY_ERR_INVALID_MAGIC);
        if (room >= 8) {
            HurrayStatus code;
            memcpy(&code, block + 4, sizeof code);
            assert_int_equal(code, HURRAY_ERR_INVALID_MAGIC);
        }
        for (size_t i = sizeof(HurrayError); i < room; i++) assert_int_equal(block[i], 0);
        free(block);
    }
}

static int set_up(void **state) {
    static const ModelTensor tensors[] = {{"a", 4096, 1}, {"b", 100, 2}};
    (void)state;
    model = model_hrry(tensors, 2, 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    model_free(&model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_that_go_in),
        cmocka_unit_test(a_transport_may_leave_its_size_out),
        cmocka_unit_test(structs_that_come_out),
        cmocka_unit_test(an_error_record_of_any_size_is_filled_as_far_as_it_goes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
