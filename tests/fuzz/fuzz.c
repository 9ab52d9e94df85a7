/* One target per parser: its fuzz_parse. Each input is parsed as it is, its tensors read, and parsed again with an allocation failing that
 * the input itself chooses. Nothing may leak, overrun or take memory out of proportion. */
#include "fuzz.h"

#include <string.h>

#include "import/byte_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Memory {
    uint64_t calls, fail_at;
    size_t live, live_bytes, peak;
} Memory;

static void *fuzz_allocate(void *ctx, size_t size, size_t alignment) {
    Memory *memory = ctx;
    if (++memory->calls == memory->fail_at) return NULL;
    void *block = NULL;
    if (posix_memalign(&block, alignment < sizeof(void *) ? sizeof(void *) : alignment, size ? size : 1) != 0) return NULL;
    memory->live++;
    memory->live_bytes += size;
    if (memory->live_bytes > memory->peak) memory->peak = memory->live_bytes;
    return block;
}

static void fuzz_deallocate(void *ctx, void *block, size_t size, size_t alignment) {
    Memory *memory = ctx;
    (void)alignment;
    memory->live--;
    memory->live_bytes -= size;
    free(block);
}

static HurrayStatus input_read_at(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *filled) {
    const FuzzInput *input = ctx;
    *filled = 0;
    if (offset >= input->size) return HURRAY_OK;
    *filled = len < input->size - offset ? len : input->size - (size_t)offset;
    memcpy(dst, input->data + offset, *filled);
    return HURRAY_OK;
}

static HurrayStatus input_size(void *ctx, uint64_t *size) {
    *size = ((const FuzzInput *)ctx)->size;
    return HURRAY_OK;
}

/* Reads at most a MiB of each tensor, in two pieces, the second first. */
static void read_tensors(const HurrayTransport *transport, const HryCatalogue *catalogue, const HurrayAllocator *allocator) {
    for (size_t i = 0; i < catalogue->entry_count && i < 64; i++) {
        const HryEntry *entry = &catalogue->entries[i];
        HryByteSource *source = NULL;
        HurrayError error;
        if (entry->fault || !entry->descriptor || entry->descriptor->buffer_count == 0) continue;
        if (hry_byte_source_open(transport, catalogue, entry, allocator, &source, &error) != HURRAY_OK) continue;
        uint64_t size = hry_byte_source_size(source);
        size_t len = size < 1u << 20 ? (size_t)size : 1u << 20;
        uint8_t *bytes = malloc(len ? len : 1);
        hry_byte_source_read(source, len / 2, bytes, len - len / 2, &error);
        if (hry_byte_source_read(source, 0, bytes, len / 2, &error) == HURRAY_OK && len == size && catalogue->format != HURRAY_FORMAT_NPZ)
            hry_byte_source_read(source, 0, bytes, len, &error);
        hry_byte_source_close(&source);
        free(bytes);
    }
}

static void run(const uint8_t *data, size_t size, uint64_t fail_at) {
    Memory memory = {.fail_at = fail_at};
    HurrayAllocator allocator = HURRAY_ALLOCATOR_INIT;
    allocator.ctx = &memory;
    allocator.allocate = fuzz_allocate;
    allocator.deallocate = fuzz_deallocate;
    FuzzInput input = {malloc(size ? size : 1), size, 0}; /* a block of exactly its size */
    if (size) memcpy((uint8_t *)(uintptr_t)input.data, data, size);
    HurrayTransport transport = {
        .ctx = &input, .read_at = input_read_at, .size = input_size, .io_alignment = 1, .struct_size = sizeof(HurrayTransport)};
    HryCatalogue *catalogue = NULL;
    HurrayError error;
    hry_error_clear(&error);
    fuzz_checked(fuzz_parse(&transport, &input, &allocator, &catalogue, &error), &error);
    if (memory.peak > size * 64 + (4u << 20)) abort();
    if (catalogue) read_tensors(&transport, catalogue, &allocator);
    hry_catalogue_unref(catalogue);
    if (memory.live != 0) abort();
    free((uint8_t *)(uintptr_t)input.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t choice = size;
    for (size_t i = 0; i < size; i++) choice = choice * 31 + data[i];
    run(data, size, 0);
    run(data, size, 1 + choice % 40);
    return 0;
}
