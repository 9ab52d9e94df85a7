/* Many reads in flight over one opened index: each job is a fork of the file reader core with one request in an io_uring. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hurray/core.h"
#include "hurray/transport.h"

#define PATH "sample_event_loop_uring.hrry"
#define TENSORS 64
#define FLOATS 20000
#define JOBS 8

typedef struct Server {
    struct io_uring ring;
    int fd, next, delivered, wrong;
} Server;
typedef struct Job { HurrayFileReaderCore *core; } Job;
static HurrayError error = HURRAY_ERROR_INIT;

static void deliver(Server *server, HurrayTensor *tensor) {
    HurrayBufferList *list = NULL;
    HurrayBuffer *buffer = NULL;
    void *data = NULL;
    hurray_tensor_buffers(tensor, &list);
    hurray_buffer_list_get(list, 0, &buffer);
    hurray_buffer_data_ptr(buffer, &data);
    const float *values = data;
    if (values[1] != values[0] + 1 || values[FLOATS - 1] != values[0] + FLOATS - 1) server->wrong++;
    server->delivered++;
    hurray_tensor_destroy(&tensor);
}

/* Steps a job until it has a read in flight (1), has nothing left to do (0) or cannot go on (-1). */
static int pump(Server *server, Job *job) {
    for (;;) {
        HurrayStep step;
        if (hurray_file_reader_core_step(job->core, &step) != HURRAY_OK) return -1;
        if (step.kind == HURRAY_STEP_RANGE) {
            uint8_t *dst = NULL;
            size_t len = 0;
            hurray_file_reader_core_input_dst(job->core, &dst, &len);
            struct io_uring_sqe *sqe = io_uring_get_sqe(&server->ring);
            if (!sqe) return -1;
            io_uring_prep_read(sqe, server->fd, dst, len < (1u << 30) ? (unsigned)len : 1u << 30, step.offset);
            io_uring_sqe_set_data(sqe, job);
            return 1;
        }
        if (step.kind == HURRAY_STEP_TENSOR) {
            HurrayTensor *tensor = NULL;
            if (hurray_file_reader_core_take_tensor(job->core, &tensor) != HURRAY_OK) return -1;
            deliver(server, tensor);
        } else if (step.kind == HURRAY_STEP_READY) {
            const uint8_t *name = NULL;
            size_t len = 0;
            if (server->next == TENSORS) return 0;
            hurray_file_reader_core_tensor_name(job->core, (uint64_t)server->next++, &name, &len);
            if (hurray_file_reader_core_begin_tensor(job->core, name, len) != HURRAY_OK) return -1;
        } else {
            return -1;
        }
    }
}

static int serve(Server *server, uint64_t size) {
    Job jobs[JOBS] = {{NULL}};
    HurrayStep step;
    int live = 0, failed = hurray_file_reader_core_new(size, NULL, &jobs[0].core, &error) != HURRAY_OK;
    /* Opening: nothing else could run before it is done, so plain reads do. */
    while (!failed && !(failed = hurray_file_reader_core_step(jobs[0].core, &step) != HURRAY_OK) && step.kind == HURRAY_STEP_RANGE) {
        uint8_t *dst = NULL;
        size_t len = 0;
        hurray_file_reader_core_input_dst(jobs[0].core, &dst, &len);
        ssize_t got = pread(server->fd, dst, len, (off_t)step.offset);
        failed = got < 0 || hurray_file_reader_core_report_filled(jobs[0].core, (size_t)got) != HURRAY_OK;
    }
    for (int i = 1; i < JOBS && !failed; i++) failed = hurray_file_reader_core_fork(jobs[0].core, &jobs[i].core, &error) != HURRAY_OK;
    for (int i = 0; i < JOBS && !failed; i++) live += pump(server, &jobs[i]) == 1;
    while (live > 0) {
        struct io_uring_cqe *cqe = NULL;
        if (io_uring_submit_and_wait(&server->ring, 1) < 0) return 0;
        while (io_uring_peek_cqe(&server->ring, &cqe) == 0) {
            Job *job = io_uring_cqe_get_data(cqe);
            int result = cqe->res;
            io_uring_cqe_seen(&server->ring, cqe);
            /* A failed read moved nothing: the same range is offered again, or the job is given up. */
            if (result < 0 && result != -EINTR && result != -EAGAIN) hurray_file_reader_core_abandon(job->core);
            int going = result < 0 || hurray_file_reader_core_report_filled(job->core, (size_t)result) == HURRAY_OK ? pump(server, job) : -1;
            if (going != 1) live--;
        }
    }
    for (int i = 0; i < JOBS; i++) hurray_file_reader_core_destroy(&jobs[i].core);
    return !failed && server->delivered == TENSORS && server->wrong == 0;
}

static int write_file(void) {
    static float data[FLOATS];
    static const uint64_t shape[1] = {FLOATS};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayBufferHandle handle;
    size_t count = 1;
    HurrayDescriptor *descriptor = NULL;
    HurrayTransport transport;
    HurrayFileWriter *writer = NULL;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.rank = 1;
    spec.shape = shape;
    if (hurray_descriptor_plan_buffers(&spec, &handle, &count, &error) != HURRAY_OK) return 0;
    spec.buffers = &handle;
    spec.buffer_count = 1;
    HurrayStatus status = hurray_descriptor_new(&spec, NULL, &descriptor, &error);
    if (status == HURRAY_OK) status = hurray_transport_create(PATH, NULL, &transport, &error);
    if (status == HURRAY_OK && (status = hurray_file_writer_new_ex(&transport, NULL, &writer, &error)) != HURRAY_OK)
        hurray_transport_release(&transport);
    for (int t = 0; t < TENSORS && status == HURRAY_OK; t++) {
        char name[16];
        int len = snprintf(name, sizeof name, "t%d", t);
        for (int i = 0; i < FLOATS; i++) data[i] = (float)(t * 1000 + i);
        HurrayIoSlice slice = {data, sizeof data};
        status = hurray_file_writer_write_tensor(writer, name, (size_t)len, descriptor, &slice, 1);
    }
    if (status == HURRAY_OK) status = hurray_file_writer_finish(writer, NULL, 0);
    hurray_file_writer_destroy(&writer);
    hurray_descriptor_destroy(descriptor);
    return status == HURRAY_OK;
}

int main(void) {
    Server server = {.fd = -1};
    struct stat info;
    int refused = io_uring_queue_init(JOBS, &server.ring, 0);
    if (refused != 0) {
        printf("skipped: io_uring is refused here: %s\n", strerror(-refused));
        return 77;
    }
    int good = write_file() && (server.fd = open(PATH, O_RDONLY | O_CLOEXEC)) >= 0 && fstat(server.fd, &info) == 0 &&
               serve(&server, (uint64_t)info.st_size);
    printf("%d of %d tensors with %d jobs\n", server.delivered, TENSORS, JOBS);
    if (!good) fprintf(stderr, "%s\n", error.message);
    if (server.fd >= 0) close(server.fd);
    io_uring_queue_exit(&server.ring);
    return good ? 0 : 1;
}
