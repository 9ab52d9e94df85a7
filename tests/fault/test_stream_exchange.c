/* Two processes exchange thousands of random tensors and composites, a few bytes at a time, and compare every byte. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hurray.h"
#include "support/composites.h"

#define ITEMS 10000
#define MOST_NODES 40
#define MOST_BUFFERS 9

typedef struct Random {
    uint64_t state;
} Random;

static uint64_t next(Random *random, uint64_t below) {
    uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (z ^ (z >> 31)) % below;
}

/* One item of the exchange: both sides make it from its number. */
typedef struct Made {
    HurrayCompositeNode nodes[MOST_NODES];
    HurrayIoSlice slices[MOST_NODES][MOST_BUFFERS];
    size_t count;
} Made;

static void unmake(Made *made) {
    for (size_t i = 0; i < made->count; i++) {
        for (size_t b = 0; b < made->nodes[i].slice_count; b++) free((void *)(uintptr_t)made->slices[i][b].ptr);
        hurray_descriptor_destroy((HurrayDescriptor *)(uintptr_t)made->nodes[i].descriptor);
    }
    made->count = 0;
}

static void add_tensor(Made *made, Random *random, HurrayDescriptor *descriptor) {
    HurrayCompositeNode *node = &made->nodes[made->count];
    HurrayIoSlice *slices = made->slices[made->count++];
    uint32_t count = 0;
    hurray_descriptor_buffer_count(descriptor, &count);
    *node = (HurrayCompositeNode){.kind = HURRAY_NODE_TENSOR, .descriptor = descriptor, .slices = slices, .slice_count = count};
    for (uint32_t b = 0; b < count; b++) {
        HurrayBufferHandle handle;
        hurray_descriptor_buffer(descriptor, b, &handle);
        uint8_t *bytes = malloc(handle.byte_size + 1);
        assert_non_null(bytes);
        for (uint64_t i = 0; i < handle.byte_size; i++) bytes[i] = (uint8_t)next(random, 256);
        slices[b] = (HurrayIoSlice){bytes, (size_t)handle.byte_size};
    }
}

static void add_head(Made *made, HurrayDescriptor *descriptor, uint32_t members) {
    made->nodes[made->count++] =
        (HurrayCompositeNode){.kind = HURRAY_NODE_COMPOSITE, .member_count = members, .descriptor = descriptor};
}

static void add_plain(Made *made, Random *random) {
    static const uint8_t types[] = {HURRAY_TYPE_FLOAT16, HURRAY_TYPE_FLOAT32,     HURRAY_TYPE_FLOAT64, HURRAY_TYPE_INT8,     HURRAY_TYPE_BOOL,
                                    HURRAY_TYPE_UINT4,   HURRAY_TYPE_FLOAT6_E2M3, HURRAY_TYPE_INT2,    HURRAY_TYPE_COMPLEX128};
    uint64_t shape[4];
    int64_t strides[4];
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    spec.rank = (uint32_t)next(random, 5);
    spec.shape = shape;
    spec.element_type = types[next(random, sizeof types)];
    for (uint32_t k = 0; k < spec.rank; k++) {
        shape[k] = next(random, 20) == 0 ? 0 : 1 + next(random, next(random, 50) == 0 ? 30 : 6);
        strides[k] = (int64_t)next(random, 7);
    }
    uint64_t kind = next(random, 6);
    if (kind == 0 && spec.rank > 0) {
        layout.tag = HURRAY_LAYOUT_COLUMN_MAJOR;
        spec.layout = &layout;
    } else if (kind == 1 && spec.rank > 0) {
        layout.tag = HURRAY_LAYOUT_STRIDED;
        layout.strides = strides;
        spec.layout = &layout;
    } else if (kind == 2 && spec.rank > 0) {
        layout.tag = HURRAY_LAYOUT_COO;
        layout.nnz = next(random, 9);
        spec.layout = &layout;
    } else if (kind == 3 && spec.rank == 2) {
        layout.tag = next(random, 2) ? HURRAY_LAYOUT_CSR : HURRAY_LAYOUT_CSC;
        layout.nnz = next(random, 9);
        spec.layout = &layout;
    } else if (kind == 4 && spec.rank > 0 && shape[0] > 0) {
        quantization.scheme = HURRAY_QUANT_PER_CHANNEL_AFFINE;
        quantization.scale_type = HURRAY_TYPE_FLOAT32;
        quantization.scale_buffer = 1;
        quantization.zero_point_buffer = 2;
        spec.element_type = HURRAY_TYPE_UINT4;
        spec.quantization = &quantization;
    }
    add_tensor(made, random, make_from_spec(&spec));
}

/* A group of plain tensors, partitions, overlays and further groups. */
static void add_composite(Made *made, Random *random, unsigned depth) {
    static const uint64_t whole[2] = {6, 4}, origin[2] = {0, 0};
    uint64_t kind = next(random, 3);
    if (kind == 0) {
        uint64_t rows[2] = {1 + next(random, 5), 4}, rest[2] = {6 - rows[0], 4}, at[2] = {rows[0], 0};
        add_head(made, make_head(HURRAY_RULE_PARTITION, 0, HURRAY_TYPE_INT16, 2, whole, 2, NULL, NULL), 2);
        add_tensor(made, random, make_member(HURRAY_TYPE_INT16, 2, rest, whole, at, NO_ROLE));
        add_tensor(made, random, make_member(HURRAY_TYPE_INT16, 2, rows, whole, origin, NO_ROLE));
    } else if (kind == 1) {
        static const uint64_t small[2] = {2, 2}, at[2] = {1, 1};
        add_head(made, make_head(HURRAY_RULE_OVERLAY, HURRAY_COMBINE_ADD, HURRAY_TYPE_FLOAT32, 2, whole, 2, NULL, NULL), 2);
        add_tensor(made, random, make_member(HURRAY_TYPE_FLOAT32, 2, whole, whole, origin, HURRAY_ROLE_BASE));
        add_tensor(made, random, make_member(HURRAY_TYPE_FLOAT32, 2, small, whole, at, HURRAY_ROLE_CORRECTION));
    } else {
        uint32_t members = (uint32_t)next(random, 4);
        add_head(made, make_head(HURRAY_RULE_GROUP, 0, HURRAY_TYPE_FLOAT32, 2, whole, members, NULL, NULL), members);
        for (uint32_t i = 0; i < members; i++) {
            if (depth < 2 && next(random, 3) == 0)
                add_composite(made, random, depth + 1);
            else
                add_plain(made, random);
        }
    }
}

static void make_item(Made *made, uint64_t number) {
    Random random = {number * 1000003 + 17};
    made->count = 0;
    if (next(&random, 5) == 0)
        add_composite(made, &random, 0);
    else
        add_plain(made, &random);
}

typedef struct End {
    int fd;
    Random random;
} End;

static size_t some_of(End *end, size_t len) {
    size_t most = next(&end->random, 4) == 0 ? 7 : 4096;
    return 1 + (size_t)next(&end->random, len < most ? len : most);
}

static HurrayStatus end_read(void *ctx, uint8_t *dst, size_t len, size_t *out_filled) {
    End *end = ctx;
    ssize_t got;
    do got = read(end->fd, dst, some_of(end, len));
    while (got < 0 && errno == EINTR);
    if (got < 0) return HURRAY_ERR_TRANSPORT;
    *out_filled = (size_t)got;
    return HURRAY_OK;
}

static HurrayStatus end_write(void *ctx, const uint8_t *src, size_t len, size_t *out_written) {
    End *end = ctx;
    ssize_t sent;
    do sent = write(end->fd, src, some_of(end, len));
    while (sent < 0 && errno == EINTR);
    if (sent < 0) return HURRAY_ERR_TRANSPORT;
    *out_written = (size_t)sent;
    return HURRAY_OK;
}

static int send_all(int fd) {
    static Made made;
    End end = {fd, {1}};
    HurrayTransport transport = {.ctx = &end, .write = end_write};
    HurrayWriter *writer = NULL;
    HurrayStatus status = hurray_writer_new(&transport, NULL, &writer);
    for (uint64_t i = 0; i < ITEMS && status == HURRAY_OK; i++) {
        make_item(&made, i);
        const HurrayCompositeNode *root = &made.nodes[0];
        status = root->kind == HURRAY_NODE_COMPOSITE ? hurray_writer_write_composite(writer, made.nodes, made.count)
                                                     : hurray_writer_write_tensor(writer, root->descriptor, root->slices, root->slice_count);
        if (status != HURRAY_OK) fprintf(stderr, "item %llu: %s\n", (unsigned long long)i, hurray_writer_last_error(writer)->message);
        unmake(&made);
    }
    if (status == HURRAY_OK) status = hurray_writer_finish(writer);
    hurray_writer_destroy(&writer);
    return status == HURRAY_OK ? 0 : 1;
}

static void compare_node(const HurrayItemNode *got, const HurrayCompositeNode *want) {
    uint8_t bytes[2][4096];
    size_t len[2] = {sizeof bytes[0], sizeof bytes[1]};
    const HurrayDescriptor *descriptor = NULL;
    HurrayBufferList *list = NULL;
    uint64_t buffers = 0;
    assert_int_equal(got->kind, want->kind);
    assert_int_equal(got->member_count, want->member_count);
    assert_int_equal(hurray_tensor_descriptor(got->tensor, &descriptor), HURRAY_OK);
    assert_int_equal(hurray_descriptor_encode(descriptor, bytes[0], &len[0]), HURRAY_OK);
    assert_int_equal(hurray_descriptor_encode(want->descriptor, bytes[1], &len[1]), HURRAY_OK);
    assert_int_equal(len[0], len[1]);
    assert_memory_equal(bytes[0], bytes[1], len[0]);
    assert_int_equal(hurray_tensor_buffers(got->tensor, &list), HURRAY_OK);
    assert_int_equal(hurray_buffer_list_len(list, &buffers), HURRAY_OK);
    assert_int_equal(buffers, want->slice_count);
    for (uint64_t b = 0; b < buffers; b++) {
        HurrayBuffer *buffer = NULL;
        uint64_t size = 0;
        void *data = NULL;
        assert_int_equal(hurray_buffer_list_get(list, b, &buffer), HURRAY_OK);
        assert_int_equal(hurray_buffer_byte_size(buffer, &size), HURRAY_OK);
        assert_int_equal(hurray_buffer_data_ptr(buffer, &data), HURRAY_OK);
        assert_int_equal(size, want->slices[b].len);
        if (size) assert_memory_equal(data, want->slices[b].ptr, size);
    }
}

static void receive_all(int fd) {
    static Made made;
    End end = {fd, {2}};
    HurrayTransport transport = {.ctx = &end, .read = end_read};
    HurrayReader *reader = NULL;
    HurrayItem *item = NULL;
    assert_int_equal(hurray_reader_new(&transport, NULL, &reader), HURRAY_OK);
    for (uint64_t i = 0; i < ITEMS; i++) {
        uint64_t count = 0;
        if (hurray_reader_next_item(reader, &item) != HURRAY_OK) fail_msg("item %llu: %s", (unsigned long long)i, hurray_reader_last_error(reader)->message);
        make_item(&made, i);
        assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
        assert_int_equal(count, made.count);
        for (uint64_t n = 0; n < count; n++) {
            HurrayItemNode node;
            assert_int_equal(hurray_item_node(item, n, &node), HURRAY_OK);
            compare_node(&node, &made.nodes[n]);
        }
        hurray_item_destroy(&item);
        unmake(&made);
    }
    assert_int_equal(hurray_reader_next_item(reader, &item), HURRAY_END_OF_STREAM);
    hurray_reader_destroy(&reader);
}

/* fds[0] is read here, fds[1] written by another process. */
static void exchange(const int fds[2]) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(fds[0]);
        int result = send_all(fds[1]);
        close(fds[1]);
        _exit(result);
    }
    close(fds[1]);
    receive_all(fds[0]);
    close(fds[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void ten_thousand_items_pass_a_pipe_unchanged(void **state) {
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    exchange(fds);
}

static void ten_thousand_items_pass_a_socket_unchanged(void **state) {
    (void)state;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    exchange(fds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_items_pass_a_pipe_unchanged),
        cmocka_unit_test(ten_thousand_items_pass_a_socket_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
