/* A stream over a non-blocking socket, driven by epoll: the cores never wait, the loop does. Both tasks are cancelled in the
 * middle of a tensor and go on later: whoever keeps the core keeps the position. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hurray/core.h"

#define FLOATS (1 << 18)
#define TENSORS 4

typedef struct Task {
    int fd, done;
    size_t budget; /* bytes until this run is cancelled */
    HurrayStreamWriterCore *writer;
    HurrayStreamReaderCore *reader;
    HurrayDescriptor *descriptor;
    HurrayIoSlice payload;
    int items, good;
} Task;

/* One readiness event: transfer and report are one step, so no count is ever lost. 1: go on, 0: wait for the socket, -1: failed. */
static int on_writable(Task *task) {
    HurrayStep step;
    if (hurray_stream_writer_core_step(task->writer, &step) != HURRAY_OK) return -1;
    if (step.kind == HURRAY_STEP_OUTPUT) {
        const uint8_t *src = NULL;
        size_t len = 0;
        hurray_stream_writer_core_output_src(task->writer, &src, &len);
        ssize_t sent = send(task->fd, src, len < task->budget ? len : task->budget, MSG_NOSIGNAL);
        if (sent < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
        task->budget -= (size_t)sent;
        return hurray_stream_writer_core_report_written(task->writer, (size_t)sent) == HURRAY_OK ? 1 : -1;
    }
    if (step.kind == HURRAY_STEP_ITEM_WRITTEN) task->items++;
    if (task->items == TENSORS) {
        task->done = 1;
        return shutdown(task->fd, SHUT_WR) == 0 ? 0 : -1;
    }
    return hurray_stream_writer_core_begin_tensor(task->writer, task->descriptor, &task->payload, 1) == HURRAY_OK ? 1 : -1;
}

static int on_readable(Task *task) {
    HurrayStep step;
    if (hurray_stream_reader_core_step(task->reader, &step) != HURRAY_OK) return -1;
    if (step.kind == HURRAY_STEP_INPUT) {
        uint8_t *dst = NULL;
        size_t len = 0;
        hurray_stream_reader_core_input_dst(task->reader, &dst, &len);
        ssize_t got = read(task->fd, dst, len < task->budget ? len : task->budget);
        if (got < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
        task->budget -= (size_t)got;
        return hurray_stream_reader_core_report_filled(task->reader, (size_t)got) == HURRAY_OK ? 1 : -1;
    }
    if (step.kind == HURRAY_STEP_TENSOR) {
        HurrayTensor *tensor = NULL;
        HurrayBufferList *list = NULL;
        HurrayBuffer *buffer = NULL;
        void *data = NULL;
        if (hurray_stream_reader_core_take_tensor(task->reader, &tensor) != HURRAY_OK) return -1;
        hurray_tensor_buffers(tensor, &list);
        hurray_buffer_list_get(list, 0, &buffer);
        hurray_buffer_data_ptr(buffer, &data);
        task->good += memcmp(data, task->payload.ptr, task->payload.len) == 0;
        task->items++;
        hurray_tensor_destroy(&tensor);
        return 1;
    }
    task->done = step.kind == HURRAY_STEP_FINISHED;
    return task->done ? 0 : -1;
}

/* Runs both tasks until they are done (1), one is cancelled because its budget is spent (0), or one fails (-1). */
static int run(Task *writer, Task *reader) {
    int loop = epoll_create1(EPOLL_CLOEXEC), result = 1;
    struct epoll_event events[2] = {{.events = EPOLLOUT, .data.ptr = writer}, {.events = EPOLLIN, .data.ptr = reader}};
    if (loop < 0) return -1;
    if (!writer->done) epoll_ctl(loop, EPOLL_CTL_ADD, writer->fd, &events[0]);
    if (!reader->done) epoll_ctl(loop, EPOLL_CTL_ADD, reader->fd, &events[1]);
    while (result == 1 && !(writer->done && reader->done)) {
        struct epoll_event ready[2];
        int count = epoll_wait(loop, ready, 2, 10000);
        if (count == 0 || (count < 0 && errno != EINTR)) result = -1;
        for (int i = 0; i < count && result == 1; i++) {
            Task *task = ready[i].data.ptr;
            int going = 1;
            while (going == 1 && task->budget > 0) going = task->writer ? on_writable(task) : on_readable(task);
            if (task->done) epoll_ctl(loop, EPOLL_CTL_DEL, task->fd, NULL);
            if (going < 0) result = -1;
            else if (task->budget == 0) result = 0;
        }
    }
    close(loop);
    return result;
}

static HurrayDescriptor *vector(HurrayError *error) {
    static const uint64_t shape[1] = {FLOATS};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayBufferHandle handle;
    HurrayDescriptor *descriptor = NULL;
    size_t count = 1;
    spec.element_type = HURRAY_TYPE_FLOAT32;
    spec.rank = 1;
    spec.shape = shape;
    if (hurray_descriptor_plan_buffers(&spec, &handle, &count, error) != HURRAY_OK) return NULL;
    spec.buffers = &handle;
    spec.buffer_count = 1;
    hurray_descriptor_new(&spec, NULL, &descriptor, error);
    return descriptor;
}

int main(void) {
    static float data[FLOATS];
    int fds[2], result = -1;
    HurrayError error = HURRAY_ERROR_INIT;
    Task writer = {.budget = sizeof data * 3 / 2}, reader = {.budget = sizeof data / 3};
    for (int i = 0; i < FLOATS; i++) data[i] = (float)i;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) return 1;
    writer.fd = fds[0];
    reader.fd = fds[1];
    writer.payload = reader.payload = (HurrayIoSlice){data, sizeof data};
    writer.descriptor = vector(&error);
    if (writer.descriptor && hurray_stream_writer_core_new(NULL, &writer.writer, &error) == HURRAY_OK &&
        hurray_stream_reader_core_new(NULL, &reader.reader, &error) == HURRAY_OK) {
        int cancelled = 0;
        while ((result = run(&writer, &reader)) == 0) { /* cancelled: later, with the same cores, go on */
            if (writer.budget == 0) writer.budget = SIZE_MAX;
            if (reader.budget == 0) reader.budget = SIZE_MAX;
            cancelled++;
        }
        printf("cancelled %d times, %d of %d tensors are whole\n", cancelled, reader.good, TENSORS);
        if (cancelled < 2 || reader.good != TENSORS || reader.items != TENSORS) result = -1;
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    hurray_stream_writer_core_destroy(&writer.writer);
    hurray_stream_reader_core_destroy(&reader.reader);
    hurray_descriptor_destroy(writer.descriptor);
    close(fds[0]);
    close(fds[1]);
    return result == 1 ? 0 : 1;
}
