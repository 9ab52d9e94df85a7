/* many DIR [COUNT...]: files of very many tensors. Opening one of a million (of which only the index is real): memory against the size of
 * its index, a lookup's time; loading files of COUNT tensors of 16 bytes each (10000 and 100000): the time should grow in proportion. Files
 * are made in DIR once and kept. Prints lines of NAME VALUE... for people. Times are the best of three, of this processor where the work is
 * on one thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hurray/loader.h"
#include "hurray/transport.h"

#define MILLION 1000000u
#define ROUNDS 3

static HurrayError error = HURRAY_ERROR_INIT;

static void need(HurrayStatus status, const char *what, const HurrayError *record) {
    if (status == HURRAY_OK) return;
    fprintf(stderr, "%s: %s %s\n", what, hurray_status_name(status), record ? record->message : "");
    exit(1);
}

static double clock_of(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static double wall(void) { return clock_of(CLOCK_MONOTONIC); }
static double cpu(void) { return clock_of(CLOCK_PROCESS_CPUTIME_ID); }

/* Counts what is asked for, so that the memory of a handle is known exactly. One thread only. */
typedef struct Count {
    HurrayAllocator allocator;
    uint64_t live, peak;
} Count;

static void *count_allocate(void *ctx, size_t size, size_t alignment) {
    Count *count = ctx;
    void *memory = NULL;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) != 0) return NULL;
    count->live += size;
    if (count->live > count->peak) count->peak = count->live;
    return memory;
}

static void count_deallocate(void *ctx, void *memory, size_t size, size_t alignment) {
    (void)alignment;
    ((Count *)ctx)->live -= size;
    free(memory);
}

static void count_begin(Count *count) {
    *count = (Count){.allocator = HURRAY_ALLOCATOR_INIT};
    count->allocator.ctx = count;
    count->allocator.allocate = count_allocate;
    count->allocator.deallocate = count_deallocate;
}

/* A file of which only what opening reads is really written: header, index, trailer. The rest are holes. */
typedef struct Sparse {
    FILE *file;
    int keep;
} Sparse;

static HurrayStatus sparse_write(void *ctx, const uint8_t *src, size_t len, size_t *out_written) {
    Sparse *sparse = ctx;
    int keep = sparse->keep || ftello(sparse->file) == 0;
    if (keep ? fwrite(src, 1, len, sparse->file) != len : fseeko(sparse->file, (off_t)len, SEEK_CUR) != 0) return HURRAY_ERR_TRANSPORT;
    *out_written = len;
    return HURRAY_OK;
}

static void write_hrry(const char *path, uint64_t count, uint64_t each) {
    Sparse sparse = {0};
    HurrayTransport transport = {.ctx = &sparse, .write = sparse_write};
    HurrayFileWriter *writer = NULL;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayDescriptor *descriptor = NULL;
    uint8_t data[64] = {0};
    HurrayIoSlice slice = {data, each};
    char name[48];
    spec.rank = 1;
    spec.shape = &each;
    spec.element_type = HURRAY_TYPE_UINT8;
    if (each)
        need(hurray_transport_create(path, NULL, &transport, &error), path, &error);
    else if (!(sparse.file = fopen(path, "wb")))
        exit(3);
    need(hurray_file_writer_new_ex(&transport, NULL, &writer, &error), path, &error);
    need(hurray_descriptor_new(&spec, NULL, &descriptor, &error), "descriptor", &error);
    for (uint64_t t = 0; t < count; t++) {
        int len = snprintf(name, sizeof name, "model.layers.%" PRIu64 ".weight", t);
        memcpy(data, &t, sizeof t);
        need(hurray_file_writer_write_tensor(writer, name, (size_t)len, descriptor, &slice, 1), path,
             hurray_file_writer_last_error(writer));
    }
    sparse.keep = 1;
    need(hurray_file_writer_finish(writer, NULL, 0), path, hurray_file_writer_last_error(writer));
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    if (sparse.file) fclose(sparse.file);
}

static void write_safetensors(const char *path, uint64_t count, uint64_t each) {
    FILE *file = fopen(path, "wb");
    char *header = malloc(count * 112 + 16);
    if (!file || !header) exit(3);
    size_t used = 0;
    for (uint64_t t = 0; t < count; t++)
        used += (size_t)sprintf(header + used,
                                "%c\"model.layers.%" PRIu64 ".weight\":{\"dtype\":\"U8\",\"shape\":[%" PRIu64 "],\"data_offsets\":[%" PRIu64
                                ",%" PRIu64 "]}",
                                t ? ',' : '{', t, each, t * each, (t + 1) * each);
    header[used++] = '}';
    while (used % 8) header[used++] = ' ';
    uint64_t length = used, word[8] = {0};
    fwrite(&length, 8, 1, file);
    fwrite(header, 1, used, file);
    for (uint64_t t = 0; t < count; t++) word[0] = t, fwrite(word, 1, each, file);
    free(header);
    fclose(file);
}

static const char *file_of(const char *dir, const char *kind, uint64_t count, uint64_t each) {
    static char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/many-%" PRIu64 "x%" PRIu64 ".%s", dir, count, each, kind);
    if (stat(path, &st) == 0) return path;
    if (strcmp(kind, "hrry") == 0)
        write_hrry(path, count, each);
    else
        write_safetensors(path, count, each);
    return path;
}

/* The index lies right before the 40-byte trailer, which has its length at byte 8. */
static uint64_t index_bytes(const char *path) {
    uint8_t trailer[40];
    uint64_t length = 0;
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, -40, SEEK_END) != 0 || fread(trailer, 1, 40, file) != 40) exit(3);
    fclose(file);
    for (int k = 7; k >= 0; k--) length = length << 8 | trailer[8 + k];
    return length;
}

/* Every 7919th name, scattered over the index; nanoseconds for one. */
static double find_names(const HurrayLoader *loader, uint64_t count) {
    enum { LOOKUPS = 200000 };
    double begin = cpu();
    uint64_t t = 0, at = 0;
    char name[48];
    for (int k = 0; k < LOOKUPS; k++) {
        t = (t + 7919) % count;
        int len = snprintf(name, sizeof name, "model.layers.%" PRIu64 ".weight", t);
        need(hurray_loader_find(loader, name, (size_t)len, &at), name, NULL);
        if (at != t) exit(4);
    }
    return (cpu() - begin) / LOOKUPS * 1e9;
}

static void open_big(const char *path, uint64_t count) {
    HurrayFileReaderOptions options = HURRAY_FILE_READER_OPTIONS_INIT;
    HurrayLoaderOptions load_options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayTransport transport;
    HurrayFileReader *reader = NULL;
    HurrayLoader *loader = NULL;
    Count memory;
    uint64_t index = index_bytes(path);
    double best = 1e9, ns = 1e9;
    count_begin(&memory);
    options.allocator = &memory.allocator;
    need(hurray_transport_file(path, NULL, &transport, &error), path, &error);
    need(hurray_file_reader_new_ex(&transport, &options, &reader, &error), path, &error);
    printf("open %8" PRIu64 " tensors, file reader: index %.1f MB, peak memory %.2f x index, kept %.2f x\n", count, (double)index / 1e6,
           (double)memory.peak / (double)index, (double)memory.live / (double)index);
    hurray_file_reader_destroy(&reader);
    for (int r = 0; r < ROUNDS; r++) {
        count_begin(&memory);
        load_options.allocator = &memory.allocator;
        double begin = cpu();
        need(hurray_loader_open(path, &load_options, &loader, &error), path, &error);
        if (cpu() - begin < best) best = cpu() - begin;
        double one = find_names(loader, count);
        if (one < ns) ns = one;
        hurray_loader_destroy(&loader);
    }
    printf("open %8" PRIu64 " tensors, loader:      index %.1f MB, peak memory %.2f x index, %.3f s cpu, a lookup %.0f ns\n", count,
           (double)index / 1e6, (double)memory.peak / (double)index, best, ns);
}

static void load_all(const char *path, const char *kind, uint64_t count) {
    double best[4] = {1e9, 1e9, 1e9, 1e9};
    for (int r = 0; r < ROUNDS; r++) {
        HurrayLoader *loader = NULL;
        HurrayTensorSet *set = NULL;
        uint64_t got = 0;
        double cpu0 = cpu(), begin = wall();
        need(hurray_loader_open(path, NULL, &loader, &error), path, &error);
        double opened = wall(), cpu1 = cpu();
        need(hurray_loader_load(loader, &set), path, hurray_loader_last_error(loader));
        double loaded = wall(), cpu2 = cpu();
        hurray_tensor_set_count(set, &got);
        if (got != count) exit(4);
        hurray_tensor_set_destroy(&set);
        hurray_loader_destroy(&loader);
        double took[4] = {opened - begin, loaded - opened, cpu1 - cpu0, cpu2 - cpu1};
        for (int k = 0; k < 4; k++)
            if (took[k] < best[k]) best[k] = took[k];
    }
    printf("load %8" PRIu64 " tensors, %-11s open %.4f s (cpu %.4f), load %.4f s (cpu %.4f), %.2f us a tensor\n", count, kind, best[0],
           best[2], best[1], best[3], best[1] / (double)count * 1e6);
}

int main(int argc, char **argv) {
    static const char *const usual[] = {"10000", "100000"};
    if (argc < 2) return fprintf(stderr, "usage: many DIR [COUNT...]\n"), 2;
    const char *const *counts = argc > 2 ? (const char *const *)argv + 2 : usual;
    int n = argc > 2 ? argc - 2 : 2;
    open_big(file_of(argv[1], "hrry", MILLION / 10, 0), MILLION / 10);
    open_big(file_of(argv[1], "hrry", MILLION, 0), MILLION);
    for (int k = 0; k < n; k++) {
        uint64_t count = strtoull(counts[k], NULL, 10);
        load_all(file_of(argv[1], "hrry", count, 16), "hrry", count);
        load_all(file_of(argv[1], "safetensors", count, 16), "safetensors", count);
    }
    return 0;
}
