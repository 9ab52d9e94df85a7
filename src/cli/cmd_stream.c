/* hurray stream: a stream of tensors from standard input, or to standard output. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "describe.h"
#include "hurray/transport.h"
#include "transfer.h"

enum { OPTION_PREFIX = 1, OPTION_GZIP };

static const Option options[] = {
    {OPTION_PREFIX, "name-prefix", "P", "read: items are called P.0, P.1, ... instead of 0, 1, ..."},
    {OPTION_GZIP, "gzip", NULL, "write: compress (reading recognises gzip by itself)"},
};

/* Standard input with its first bytes looked at: they are handed out again. */
typedef struct Peeked {
    HurrayTransport inner;
    uint8_t bytes[8];
    size_t len, at;
} Peeked;

static HurrayStatus peeked_read(void *ctx, uint8_t *dst, size_t len, size_t *filled) {
    Peeked *peeked = ctx;
    if (peeked->at == peeked->len) return peeked->inner.read(peeked->inner.ctx, dst, len, filled);
    size_t n = peeked->len - peeked->at < len ? peeked->len - peeked->at : len;
    memcpy(dst, peeked->bytes + peeked->at, n);
    peeked->at += n;
    *filled = n;
    return HURRAY_OK;
}

static void peeked_release(void *ctx) {
    Peeked *peeked = ctx;
    hurray_transport_release(&peeked->inner);
}

/* Reports what the input is instead. An empty one is an empty stream. */
static bool begins_as_stream(const Peeked *peeked) {
    if (peeked->len == 8 && memcmp(peeked->bytes, "HRRYFILE", 8) == 0) {
        report_failure(EXIT_BAD_INPUT, "standard input",
                       "byte 0: a .hrry file, expected a stream; open it by its name, or use `hurray stream write`");
        return false;
    }
    if (memcmp(peeked->bytes, "HRRY", peeked->len < 4 ? peeked->len : 4) == 0) return true;
    char *text = escape_text(peeked->bytes, peeked->len);
    report_failure(EXIT_BAD_INPUT, "standard input", "byte 0: it begins with `%s`, expected a Hurray stream (HRRY), plain or gzip",
                   text ? text : "?");
    free(text);
    return false;
}

/* A reader over standard input, through gzip where it begins as gzip does. */
static int open_input(Peeked *peeked, HurrayReader **reader) {
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayReaderOptions o = HURRAY_READER_OPTIONS_INIT;
    HurrayTransport transport = {.ctx = peeked, .read = peeked_read, .release = peeked_release};
    memset(peeked, 0, sizeof *peeked);
    if (hurray_transport_fd(STDIN_FILENO, NULL, &peeked->inner, &error) != HURRAY_OK) return report_error("standard input", &error);
    if (!peeked->inner.read) {
        hurray_transport_release(&peeked->inner);
        return report_failure(EXIT_SYSTEM, "standard input", "%s", strerror(EBADF));
    }
    while (peeked->len < sizeof peeked->bytes) {
        size_t filled = 0;
        HurrayStatus status =
            peeked->inner.read(peeked->inner.ctx, peeked->bytes + peeked->len, sizeof peeked->bytes - peeked->len, &filled);
        if (status != HURRAY_OK) {
            int code = report_failure(EXIT_SYSTEM, "standard input", "%s", strerror(errno));
            hurray_transport_release(&peeked->inner);
            return code;
        }
        if (filled == 0) break;
        peeked->len += filled;
    }
    bool zipped = peeked->len >= 2 && peeked->bytes[0] == 0x1F && peeked->bytes[1] == 0x8B;
    if (!zipped && !begins_as_stream(peeked)) {
        hurray_transport_release(&peeked->inner);
        return EXIT_BAD_INPUT;
    }
    if (zipped) {
        HurrayTransport inner = transport;
        if (hurray_transport_gzip(&inner, NULL, &transport, &error) != HURRAY_OK) {
            hurray_transport_release(&inner);
            return report_error("standard input", &error);
        }
    }
    o.label = "standard input";
    o.label_len = strlen(o.label);
    if (hurray_reader_new_ex(&transport, &o, reader, &error) != HURRAY_OK) {
        hurray_transport_release(&transport);
        return report_error("standard input", &error);
    }
    return EXIT_DONE;
}

/* Names of an item's nodes: the root's, members {head}.{i}. NULL: no memory. */
static char **name_nodes(const HurrayItem *item, uint64_t count, const char *prefix, uint64_t number) {
    char **names = calloc((size_t)count, sizeof *names);
    uint64_t *next = calloc((size_t)count, sizeof *next);
    for (uint64_t i = 0; names && next && i < count; i++) {
        HurrayItemNode node;
        hurray_item_node(item, i, &node);
        const char *head = node.parent < i ? names[node.parent] : prefix;
        uint64_t place = node.parent < i ? next[node.parent]++ : number;
        size_t room = (head ? strlen(head) : 0) + 24;
        names[i] = malloc(room);
        if (!names[i]) break;
        snprintf(names[i], room, "%s%s%llu", head ? head : "", head ? "." : "", (unsigned long long)place);
    }
    bool whole = names && next && (count == 0 || names[count - 1]);
    free(next);
    if (whole) return names;
    for (uint64_t i = 0; names && i < count; i++) free(names[i]);
    free(names);
    return NULL;
}

static void list_item(const HurrayItem *item, uint64_t count, char **names) {
    for (uint64_t i = 0; i < count; i++) {
        HurrayItemNode node;
        const HurrayDescriptor *descriptor = NULL;
        char type[64], shape[64], layout[64];
        hurray_item_node(item, i, &node);
        hurray_tensor_descriptor(node.tensor, &descriptor);
        describe_type(type, sizeof type, descriptor);
        describe_shape(shape, sizeof shape, descriptor);
        describe_layout(layout, sizeof layout, descriptor);
        printf("%-24s  %-28s %-20s %-16s %12llu\n", names[i], type, shape, layout, (unsigned long long)describe_bytes(descriptor));
    }
}

/* Node i and its buffers; how many they are. */
static uint64_t node_at(const HurrayItem *item, uint64_t i, HurrayItemNode *node, HurrayBufferList **buffers) {
    uint64_t n = 0;
    hurray_item_node(item, i, node);
    hurray_tensor_buffers(node->tensor, buffers);
    hurray_buffer_list_len(*buffers, &n);
    return n;
}

/* One slice for each buffer of each node, and the nodes that borrow them. */
static int write_item(HurrayFileWriter *writer, const char *out, const HurrayItem *item, uint64_t count, char **names) {
    size_t slices = 0, used = 0;
    for (uint64_t i = 0; i < count; i++) {
        HurrayItemNode node;
        HurrayBufferList *buffers = NULL;
        uint64_t n = node_at(item, i, &node, &buffers);
        slices += (size_t)n;
    }
    HurrayCompositeNode *nodes = calloc((size_t)count, sizeof *nodes);
    HurrayIoSlice *payload = calloc(slices + 1, sizeof *payload);
    if (!nodes || !payload) {
        free(nodes);
        free(payload);
        return report_failure(EXIT_SYSTEM, out, "no memory");
    }
    for (uint64_t i = 0; i < count; i++) {
        HurrayItemNode node;
        HurrayBufferList *buffers = NULL;
        uint64_t n = node_at(item, i, &node, &buffers);
        nodes[i].kind = node.kind;
        nodes[i].member_count = node.member_count;
        nodes[i].name = names[i];
        nodes[i].name_len = strlen(names[i]);
        hurray_tensor_descriptor(node.tensor, &nodes[i].descriptor);
        nodes[i].slices = payload + used;
        nodes[i].slice_count = (size_t)n;
        for (uint64_t k = 0; k < n; k++, used++) {
            HurrayBuffer *buffer = NULL;
            void *data = NULL;
            uint64_t size = 0;
            hurray_buffer_list_get(buffers, k, &buffer);
            hurray_buffer_data_ptr(buffer, &data);
            hurray_buffer_byte_size(buffer, &size);
            payload[used].ptr = data;
            payload[used].len = (size_t)size;
        }
    }
    HurrayStatus status = nodes[0].kind == HURRAY_NODE_COMPOSITE
                              ? hurray_file_writer_write_composite(writer, nodes, (size_t)count)
                              : hurray_file_writer_write_tensor(writer, nodes[0].name, nodes[0].name_len, nodes[0].descriptor,
                                                                nodes[0].slices, nodes[0].slice_count);
    free(nodes);
    free(payload);
    return status == HURRAY_OK ? EXIT_DONE : report_error(out, hurray_file_writer_last_error(writer));
}

static int read_items(HurrayReader *reader, HurrayFileWriter *writer, const char *out, const char *prefix) {
    int code = EXIT_DONE;
    for (uint64_t number = 0; code == EXIT_DONE; number++) {
        HurrayItem *item = NULL;
        uint64_t count = 0;
        if (interrupted) return EXIT_INTERRUPTED;
        HurrayStatus status = hurray_reader_next_item(reader, &item);
        if (status == HURRAY_END_OF_STREAM) {
            if (!writer) printf("\n%llu item%s\n", (unsigned long long)number, number == 1 ? "" : "s");
            return EXIT_DONE;
        }
        if (status != HURRAY_OK) return interrupted ? EXIT_INTERRUPTED : report_error("standard input", hurray_reader_last_error(reader));
        hurray_item_node_count(item, &count);
        char **names = name_nodes(item, count, prefix, number);
        if (!names)
            code = report_failure(EXIT_SYSTEM, "standard input", "no memory");
        else if (writer)
            code = write_item(writer, out, item, count, names);
        else
            list_item(item, count, names);
        for (uint64_t i = 0; names && i < count; i++) free(names[i]);
        free(names);
        hurray_item_destroy(&item);
    }
    return code;
}

static int stream_read(const char *out, const char *prefix) {
    Peeked peeked;
    HurrayReader *reader = NULL;
    HurrayFileWriter *writer = NULL;
    HurrayTransport sink;
    HurrayError error = HURRAY_ERROR_INIT;
    int code = open_input(&peeked, &reader);
    if (code != EXIT_DONE) return code;
    if (out && hurray_transport_create(out, NULL, &sink, &error) != HURRAY_OK) {
        hurray_reader_destroy(&reader);
        return report_error(out, &error);
    }
    if (out && hurray_file_writer_new_ex(&sink, NULL, &writer, &error) != HURRAY_OK) {
        hurray_transport_release(&sink);
        hurray_reader_destroy(&reader);
        return report_error(out, &error);
    }
    if (!out) printf("%-24s  %-28s %-20s %-16s %12s\n", "item", "type", "shape", "layout", "bytes");
    install_signals(NULL);
    code = read_items(reader, writer, out, prefix);
    if (code == EXIT_DONE && writer && hurray_file_writer_finish(writer, NULL, 0) != HURRAY_OK)
        code = report_error(out, hurray_file_writer_last_error(writer));
    hurray_file_writer_destroy(&writer);
    hurray_reader_destroy(&reader);
    return code;
}

static HurrayStatus append_stream(void *ctx, const void *bytes, size_t len, const HurrayError **error) {
    HurrayWriter *writer = ctx;
    HurrayStatus status = hurray_writer_append(writer, bytes, len);
    if (status != HURRAY_OK) *error = hurray_writer_last_error(writer);
    return status;
}

/* A reader that went away is no error. */
static int writer_failed(HurrayWriter *writer) {
    const HurrayError *error = hurray_writer_last_error(writer);
    return output_reader_left() ? EXIT_DONE : report_error("standard output", error);
}

static int write_items(Model *model, HurrayWriter *writer, const Selection *selection, Bar *bar) {
    Transfer transfer = {.model = model,
                         .sink = append_stream,
                         .ctx = writer,
                         .out = "standard output",
                         .bar = bar,
                         .total = selection->bytes,
                         .pipe = true};
    int code = EXIT_DONE;
    for (uint64_t n = 0; n < selection->count && code == EXIT_DONE && !transfer.closed; n++) {
        HurrayTensorInfo info;
        code = model_info(model, selection->indices[n], &info);
        if (code != EXIT_DONE) break;
        if (hurray_writer_begin_tensor(writer, info.descriptor) != HURRAY_OK) {
            code = writer_failed(writer);
            transfer.closed = true;
            break;
        }
        code = transfer_buffers(&transfer, selection->indices[n], info.descriptor);
        if (code == EXIT_DONE && !transfer.closed && hurray_writer_end_tensor(writer) != HURRAY_OK) {
            code = writer_failed(writer);
            transfer.closed = true;
            break;
        }
    }
    transfer_end(&transfer);
    if (code == EXIT_DONE && !transfer.closed && hurray_writer_finish(writer) != HURRAY_OK) code = writer_failed(writer);
    return code;
}

static int stream_write(const char *path, char **names, int count, bool gzip, const char *prefix, const Output *output) {
    Model model;
    Selection selection;
    HurrayTransport sink, zipped;
    HurrayWriter *writer = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayLoaderOptions load = HURRAY_LOADER_OPTIONS_INIT;
    Bar bar;
    if (isatty(STDOUT_FILENO)) return report_usage("stream", "a stream is binary: redirect standard output to a file or a pipe");
    load.verify_data = HURRAY_VERIFY_STORED;
    int code = model_open(&model, path, &load, prefix);
    if (code != EXIT_DONE) return code;
    model_print_notes(&model, output);
    code = select_for_transfer(&model, names, (size_t)count, &selection);
    if (code == EXIT_DONE) {
        HurrayStatus status = hurray_transport_fd(STDOUT_FILENO, NULL, &sink, &error);
        if (status == HURRAY_OK && !sink.write) {
            hurray_transport_release(&sink);
            selection_clear(&selection);
            model_close(&model);
            return report_failure(EXIT_SYSTEM, "standard output", "%s", strerror(EBADF));
        }
        if (status == HURRAY_OK && gzip) {
            status = hurray_transport_gzip(&sink, NULL, &zipped, &error);
            if (status != HURRAY_OK)
                hurray_transport_release(&sink);
            else
                sink = zipped;
        }
        if (status == HURRAY_OK) {
            status = hurray_writer_new_ex(&sink, NULL, &writer, &error);
            if (status != HURRAY_OK) hurray_transport_release(&sink);
        }
        if (status != HURRAY_OK) {
            code = report_error("standard output", &error);
        } else {
            bar_begin(&bar, output);
            install_signals(NULL);
            code = write_items(&model, writer, &selection, &bar);
            bar_end(&bar);
        }
        hurray_writer_destroy(&writer);
        selection_clear(&selection);
    }
    model_close(&model);
    return code;
}

static int run(const Command *command, int argc, char **argv) {
    Args args;
    const char *prefix = NULL;
    bool gzip = false;
    int id, count;
    args_begin(&args, command, argc, argv);
    while ((id = args_next(&args)) > 0) {
        if (id == OPTION_PREFIX)
            prefix = args.value;
        else
            gzip = true;
    }
    args_end(&args);
    if (id != ARG_END) return id == ARG_HELP ? EXIT_DONE : EXIT_USAGE;
    char **rest = args_rest(&args, &count);
    if (count >= 1 && strcmp(rest[0], "read") == 0) {
        if (count > 2) return report_usage("stream", "read: expected at most one OUT.hrry, got %d arguments", count - 1);
        if (gzip) return report_usage("stream", "read recognises gzip by itself; --gzip is for write");
        return stream_read(count == 2 ? rest[1] : NULL, prefix);
    }
    if (count >= 2 && strcmp(rest[0], "write") == 0) return stream_write(rest[1], rest + 2, count - 2, gzip, prefix, &args.output);
    return report_usage("stream", "expected `read [OUT.hrry]` or `write FILE [NAME ...]`");
}

const Command command_stream = {
    "stream",
    "stream read [OUT.hrry] [--name-prefix P]\n       hurray stream write FILE [NAME ...] [--gzip]",
    "read a stream from standard input, or write one to standard output",
    "read lists the items, or writes them to OUT.hrry; write takes everything, or the tensors named (a head brings its members).",
    options,
    sizeof options / sizeof *options,
    false,
    run};
