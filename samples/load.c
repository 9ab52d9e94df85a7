/* Loads a model into host memory: checksums verified, with progress, an interrupt that cancels, and which way the bytes took. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hurray/loader.h"
#include "hurray/transport.h"

#define ROWS 256u
#define COLUMNS 1024u

static HurrayError error = HURRAY_ERROR_INIT;
static HurrayLoader *running; /* for the handler: cancelling is all that it may do */

static void interrupted(int number) {
    (void)number;
    hurray_loader_cancel(running);
}

static HurrayStatus show(void *ctx, const HurrayProgress *progress) {
    int *calls = ctx;
    ++*calls;
    fprintf(stderr, "\r%5.1f %%  %" PRIu64 " of %" PRIu64 " tensors",
            progress->bytes_total ? 100.0 * (double)progress->bytes_done / (double)progress->bytes_total : 100.0, progress->tensors_done,
            progress->tensors_total);
    return HURRAY_OK; /* a failing code would stop the load */
}

static int load(const char *path, const HurrayLoaderOptions *options, HurrayTensorSet **set) {
    HurrayStatus status = hurray_loader_open(path, options, &running, &error);
    if (status != HURRAY_OK) return 0;
    signal(SIGINT, interrupted);
    status = hurray_loader_load(running, set);
    signal(SIGINT, SIG_DFL);
    fputc('\n', stderr);
    if (status == HURRAY_OK) {
        HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
        hurray_loader_stats(running, &stats);
        printf("%" PRIu64 " tensors, %" PRIu64 " bytes in %.2f ms, %" PRIu64 " verified\n", stats.tensors, stats.payload_bytes,
               (double)stats.total_ns / 1e6, stats.bytes_verified);
        for (uint32_t i = 0; i < stats.path_count; i++) {
            static const char *const words[] = {"", "io_uring", "threads", "a mapping"};
            HurrayPathStats row = HURRAY_PATH_STATS_INIT;
            hurray_loader_path_stats(running, i, &row);
            printf("source %u: by %s%s%s%s\n", (unsigned)row.source_index, row.io < 4 ? words[row.io] : "?",
                   row.direct == HURRAY_ON ? ", past the page cache" : "", row.reason ? ", because " : "", row.reason ? row.reason : "");
        }
    } else {
        error = *hurray_loader_last_error(running);
    }
    hurray_loader_destroy(&running); /* what was loaded outlives it */
    return status == HURRAY_OK;
}

/* What an engine does: takes a tensor out of the set by its name; from then on it is the engine's. */
static HurrayTensor *take(HurrayTensorSet *set, const char *name, const float **values) {
    HurrayTensor *tensor = NULL;
    HurrayBufferList *list = NULL;
    HurrayBuffer *buffer = NULL;
    void *data = NULL;
    uint64_t i = 0;
    if (hurray_tensor_set_find(set, name, strlen(name), &i) != HURRAY_OK || hurray_tensor_set_take(set, i, &tensor) != HURRAY_OK)
        return NULL;
    hurray_tensor_buffers(tensor, &list);
    hurray_buffer_list_get(list, 0, &buffer);
    hurray_buffer_data_ptr(buffer, &data);
    *values = data;
    return tensor;
}

static int make_model(const char *path) {
    const uint64_t shape[2] = {ROWS, COLUMNS};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayDescriptor *descriptor = NULL;
    HurrayTransport transport;
    HurrayFileWriter *writer = NULL;
    float *data = malloc(sizeof *data * ROWS * COLUMNS);
    HurrayIoSlice slice = {data, sizeof *data * ROWS * COLUMNS};
    char name[] = "layer.0";
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.rank = 2;
    spec.shape = shape;
    HurrayStatus status = data ? hurray_descriptor_new(&spec, NULL, &descriptor, &error) : HURRAY_ERR_NO_MEMORY;
    if (status == HURRAY_OK) status = hurray_transport_create(path, NULL, &transport, &error);
    if (status == HURRAY_OK && (status = hurray_file_writer_new_ex(&transport, NULL, &writer, &error)) != HURRAY_OK)
        hurray_transport_release(&transport);
    for (uint32_t layer = 0; layer < 8 && status == HURRAY_OK; layer++) {
        for (uint32_t i = 0; i < ROWS * COLUMNS; i++) data[i] = (float)(layer * 1000000 + i);
        name[6] = (char)('0' + layer);
        status = hurray_file_writer_write_tensor(writer, name, 7, descriptor, &slice, 1);
    }
    if (status == HURRAY_OK) status = hurray_file_writer_finish(writer, NULL, 0);
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    free(data);
    return status == HURRAY_OK;
}

int main(int argc, char **argv) {
    const char *path = argc == 2 ? argv[1] : "sample_load.hrry";
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayTensorSet *set = NULL;
    int calls = 0, good = argc == 2;
    options.verify_data = HURRAY_VERIFY_STORED;
    options.progress = show;
    options.ctx = &calls;
    if ((argc != 2 && !make_model(path)) || !load(path, &options, &set)) {
        fprintf(stderr, "%s: %s: %s\n", path, hurray_status_name(error.code), error.message);
        return 1;
    }
    if (argc != 2) {
        const float *values = NULL;
        HurrayTensor *tensor = take(set, "layer.7", &values);
        good = tensor && values[0] == 7000000.0f && values[ROWS * COLUMNS - 1] == (float)(7000000 + ROWS * COLUMNS - 1) && calls >= 2;
        hurray_tensor_destroy(&tensor);
    }
    hurray_tensor_set_destroy(&set);
    return good ? 0 : 1;
}
