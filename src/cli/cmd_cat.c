/* hurray cat: one buffer's bytes, or a tensor's logical elements, to standard output. */
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "elements.h"
#include "hurray/dense.h"
#include "model.h"

enum { OPTION_BUFFER = 1, OPTION_DENSE, OPTION_AS, OPTION_TEXT, OPTION_PREFIX };

static const Option options[] = {
    {OPTION_BUFFER, "buffer", "N", "write buffer N as it is (default 0)"},
    {OPTION_DENSE, "dense", NULL, "write the logical elements in row-major order, whatever the layout"},
    {OPTION_AS, "as", "TYPE", "element type to write: float32 decodes (quantization applied); implies --dense"},
    {OPTION_TEXT, "text", NULL, "one element a line; implies --dense"},
    {OPTION_PREFIX, "name-prefix", "P", "items of a stream are called P.0, P.1, ... instead of 0, 1, ..."},
};

#define PIECE (UINT64_C(4) << 20)

typedef struct Request {
    const char *name;
    uint64_t buffer;
    bool dense, text, buffer_given;
    uint8_t type; /* 0: its own */
} Request;

static int cat_buffer(Model *model, uint64_t i, const HurrayTensorInfo *info, uint32_t buffer) {
    uint32_t count = 0;
    HurrayBufferHandle handle;
    hurray_descriptor_buffer_count(info->descriptor, &count);
    if (hurray_descriptor_buffer(info->descriptor, buffer, &handle) != HURRAY_OK)
        return report_failure(EXIT_NOT_FOUND, model->path, "buffer %u: the tensor has %u buffer%s", (unsigned)buffer, (unsigned)count,
                              count == 1 ? "" : "s");
    uint64_t size = handle.byte_size;
    unsigned char *piece = malloc((size_t)(size < PIECE ? size + 1 : PIECE));
    if (!piece) return report_failure(EXIT_SYSTEM, model->path, "no memory");
    int code = EXIT_DONE;
    for (uint64_t at = 0; at < size;) {
        size_t len = (size_t)(size - at < PIECE ? size - at : PIECE);
        if (hurray_loader_read_bytes(model->loader, i, buffer, at, piece, len) != HURRAY_OK) {
            code = report_error(model->path, hurray_loader_last_error(model->loader));
            break;
        }
        if (!write_output(piece, len)) break;
        at += len;
    }
    free(piece);
    return code;
}

static int write_dense(Model *model, const HurrayDescriptor *descriptor, const HurrayTensor *tensor, const HurrayItem *item,
                       const Request *request) {
    HurrayError error = HURRAY_ERROR_INIT;
    uint64_t bytes = 0, dims[HURRAY_MAX_RANK], count = 1;
    size_t rank = HURRAY_MAX_RANK;
    uint8_t type = request->type, own = 0;
    hurray_descriptor_element_type_tag(descriptor, &own);
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    bool quantized = hurray_descriptor_quantization(descriptor, &quantization) == HURRAY_OK;
    if (type == own && !quantized) type = 0;
    if (type != 0 && type != HURRAY_TYPE_FLOAT32)
        return report_failure(EXIT_USAGE, model->path, "--as %s: elements are written as %s, their own type, or as float32",
                              type_word(type), type_word(own));
    if (request->text && type == 0 && !elements_printable(own)) type = HURRAY_TYPE_FLOAT32;
    if (request->text && type == 0 && !quantized) {
        uint8_t layout = 0;
        hurray_descriptor_layout_tag(descriptor, &layout);
        if (layout >= HURRAY_PRIVATE_FIRST) type = HURRAY_TYPE_FLOAT32;
    }
    if (hurray_dense_size(descriptor, type, &bytes, &error) != HURRAY_OK) {
        name_tensor(&error, request->name, strlen(request->name));
        return report_error(model->path, &error);
    }
    void *memory = bytes < SIZE_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (!memory) return report_failure(EXIT_SYSTEM, model->path, "no memory for %llu bytes", (unsigned long long)bytes);
    HurrayStatus status = item ? hurray_item_dense(item, 0, type, memory, (size_t)bytes, &error)
                               : hurray_tensor_dense(tensor, type, memory, (size_t)bytes, &error);
    int code = EXIT_DONE;
    if (status != HURRAY_OK) {
        name_tensor(&error, request->name, strlen(request->name));
        code = report_error(model->path, &error);
    } else if (request->text) {
        hurray_descriptor_shape(descriptor, dims, &rank);
        for (size_t k = 0; k < rank; k++) count *= dims[k];
        elements_print(type ? type : own, memory, count);
    } else {
        write_output(memory, (size_t)bytes);
    }
    free(memory);
    return code;
}

static int cat_dense(Model *model, uint64_t i, const Request *request) {
    HurrayTensorSet *set = NULL;
    HurrayTensor *tensor = NULL;
    HurrayItem *item = NULL;
    const HurrayDescriptor *descriptor = NULL;
    uint8_t layout = 0;
    int code;
    install_signals(model->loader);
    HurrayStatus status = hurray_loader_select_index(model->loader, i);
    if (status == HURRAY_OK) status = hurray_loader_load(model->loader, &set);
    default_signals();
    if (status != HURRAY_OK) return report_error(model->path, hurray_loader_last_error(model->loader));
    hurray_tensor_set_get(set, 0, &tensor);
    hurray_tensor_descriptor(tensor, &descriptor);
    hurray_descriptor_layout_tag(descriptor, &layout);
    if (layout == HURRAY_LAYOUT_COMPOSITE && hurray_tensor_set_take_item(set, 0, &item) == HURRAY_OK) {
        HurrayItemNode node;
        hurray_item_node(item, 0, &node);
        hurray_tensor_descriptor(node.tensor, &descriptor);
        code = write_dense(model, descriptor, NULL, item, request);
    } else {
        code = write_dense(model, descriptor, tensor, NULL, request);
    }
    hurray_item_destroy(&item);
    hurray_tensor_set_destroy(&set);
    return code;
}

static int cat(Model *model, const char *name, const Request *request) {
    uint64_t i = 0;
    HurrayTensorInfo info;
    int code = model_sound(model, name, &i, &info);
    if (code != EXIT_DONE) return code;
    return request->dense ? cat_dense(model, i, request) : cat_buffer(model, i, &info, (uint32_t)request->buffer);
}

static int run(const Command *command, int argc, char **argv) {
    Args args;
    Request request = {NULL, 0, false, false, false, 0};
    const char *prefix = NULL;
    int id, count, code = EXIT_DONE;
    args_begin(&args, command, argc, argv);
    while (code == EXIT_DONE && (id = args_next(&args)) > 0) {
        switch (id) {
        case OPTION_BUFFER:
            request.buffer_given = true;
            if (!parse_number(args.value, UINT32_MAX, &request.buffer))
                code = report_usage("cat", "--buffer: expected a number, got `%s`", args.value);
            break;
        case OPTION_AS:
            request.type = type_tag_of(args.value);
            if (!request.type) code = report_usage("cat", "--as: there is no type `%s`", args.value);
            request.dense = true;
            break;
        case OPTION_TEXT: request.text = request.dense = true; break;
        case OPTION_PREFIX: prefix = args.value; break;
        default: request.dense = true;
        }
    }
    args_end(&args);
    if (code != EXIT_DONE) return code;
    if (id != ARG_END) return id == ARG_HELP ? EXIT_DONE : EXIT_USAGE;
    char **rest = args_rest(&args, &count);
    if (count != 2) return report_usage("cat", "expected FILE and NAME, got %d argument%s", count, count == 1 ? "" : "s");
    if (request.dense && request.buffer_given) return report_usage("cat", "--buffer and --dense exclude each other");
    HurrayLoaderOptions load = HURRAY_LOADER_OPTIONS_INIT;
    load.verify_data = HURRAY_VERIFY_STORED;
    Model model;
    code = model_open(&model, rest[0], &load, prefix);
    if (code != EXIT_DONE) return code;
    request.name = rest[1];
    code = cat(&model, rest[1], &request);
    model_close(&model);
    return code;
}

const Command command_cat = {"cat",
                             "cat FILE NAME [--buffer N | --dense] [--as TYPE] [--text]",
                             "write one tensor's bytes or elements to standard output",
                             "Without --as, elements are written in the tensor's own type (a quantized tensor's stored codes).",
                             options,
                             sizeof options / sizeof *options,
                             false,
                             run};
