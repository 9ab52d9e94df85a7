/* The index of a sharded safetensors model, beside two shards: `a` with the tensors x and y, `b` with z. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "import/model_build.h"
#include "import/sniff.h"

static char folder[] = "/tmp/hurray-fuzz-XXXXXX";

static const char *in_folder(const char *name) {
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_shard(const char *name, const char *header) {
    FILE *file = fopen(in_folder(name), "wb");
    uint64_t len = strlen(header); /* little-endian machines fuzz */
    if (!file || fwrite(&len, sizeof len, 1, file) != 1 || fwrite(header, len, 1, file) != 1 || fwrite("12", 2, 1, file) != 1) abort();
    if (fclose(file) != 0) abort();
}

static void remove_folder(void) {
    unlink(in_folder("a"));
    unlink(in_folder("b"));
    rmdir(folder);
}

static void make_folder(void) {
    static bool made;
    if (made) return;
    made = true;
    if (!mkdtemp(folder) || atexit(remove_folder) != 0) abort();
    write_shard("a", "{\"__metadata__\":{\"k\":\"1\"},\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                     "\"y\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,2]}}");
    write_shard("b", "{\"__metadata__\":{\"k\":\"2\"},\"z\":{\"dtype\":\"I16\",\"shape\":[1],\"data_offsets\":[0,2]}}");
}

HurrayStatus fuzz_parse(const HurrayTransport *transport, const FuzzInput *input, const HurrayAllocator *allocator, HryCatalogue **out,
                        HurrayError *error) {
    HryModel model = {.allocator = *allocator};
    HryOpened opened = {.transport = *transport, .size = input->size, .format = HRY_FORMAT_INDEX};
    (void)out;
    make_folder();
    HurrayStatus status = hry_model_add_index(&model, in_folder("index.json"), &opened, &fuzz_limits, error);
    hry_model_close(&model);
    return status;
}
