/* hurray inspect: what is in a file; nothing but header, index, KV and descriptors is read. */
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "describe.h"

enum { OPTION_HEX = 1 };

static const Option options[] = {{OPTION_HEX, "hex", "NAME", "print one tensor's descriptor as an annotated hex table"}};

static int list_json(Model *model) {
    int code = EXIT_DONE;
    uint64_t kv_count = 0;
    yajl_gen json = json_begin();
    if (!json) return report_failure(EXIT_SYSTEM, model->path, "no memory");
    yajl_gen_map_open(json);
    json_key_path(json, "file", model->path);
    json_key_word(json, "format", format_word(model->source.format));
    json_key_u64(json, "bytes", model->bytes);
    if (model->source.format == HURRAY_FORMAT_HRRY) {
        json_key(json, "container");
        yajl_gen_map_open(json);
        json_key_u64(json, "major", model->source.major);
        json_key_u64(json, "minor", model->source.minor);
        json_key_u64(json, "flags", model->source.flags);
        json_key_u64(json, "data_buffer_alignment", model->source.data_buffer_alignment);
        yajl_gen_map_close(json);
    }
    json_key(json, "kv");
    yajl_gen_map_open(json);
    hurray_loader_kv_count(model->loader, &kv_count);
    for (uint64_t i = 0; i < kv_count; i++) {
        HurrayKvEntry entry;
        if (hurray_loader_kv_entry(model->loader, i, &entry) == HURRAY_OK) describe_kv_json(json, &entry);
    }
    yajl_gen_map_close(json);
    json_key(json, "tensors");
    yajl_gen_array_open(json);
    for (uint64_t i = 0; i < model->count && code != EXIT_SYSTEM; i++) {
        HurrayTensorInfo info;
        int failed = model_info(model, i, &info);
        if (failed != EXIT_DONE) {
            code = failed;
            continue;
        }
        if (info.fault) code = EXIT_BAD_INPUT;
        if (info.fault) report_error(model->path, info.fault);
        describe_json(json, model, &info);
    }
    yajl_gen_array_close(json);
    yajl_gen_map_close(json);
    json_end(json);
    return code;
}

/* Depth of a tensor in the tree of composites: its parents come before it. */
static unsigned depth_of(const uint64_t *parents, uint64_t i) {
    unsigned depth = 0;
    while (parents[i] < i) {
        i = parents[i];
        depth++;
    }
    return depth;
}

static int list_table(Model *model) {
    int code = EXIT_DONE;
    uint64_t total = 0, *parents = malloc((model->count ? model->count : 1) * sizeof *parents);
    if (!parents) return report_failure(EXIT_SYSTEM, model->path, "no memory");
    size_t width = 4;
    for (uint64_t i = 0; i < model->count; i++) { /* names decide the first column */
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        parents[i] = HURRAY_NONE;
        if (hurray_loader_tensor_info(model->loader, i, &info) != HURRAY_OK) continue;
        parents[i] = info.parent;
        char *name = model->names ? escape_text(model->names[i], strlen(model->names[i])) : escape_text(info.name, info.name_len);
        size_t len = (name ? text_width(name) : 0) + 2 * depth_of(parents, i);
        free(name);
        if (len > width) width = len < 60 ? len : 60;
    }
    printf("%-*s  %-28s %-20s %-16s %12s  %s\n", (int)width, "name", "type", "shape", "layout", "bytes", "device");
    for (uint64_t i = 0; i < model->count; i++) {
        HurrayTensorInfo info;
        int failed = model_info(model, i, &info);
        if (failed != EXIT_DONE) {
            code = failed;
            continue;
        }
        char type[64], shape[64], layout[64];
        unsigned indent = 2 * depth_of(parents, i);
        char *name = escape_text(info.name, info.name_len);
        size_t used = indent + (name ? text_width(name) : 1);
        printf("%*s%s%*s", (int)indent, "", name ? name : "?", (int)(width > used ? width - used : 0), "");
        free(name);
        if (info.fault) {
            printf("  error: %s\n", info.fault->message);
            report_error(model->path, info.fault);
            code = EXIT_BAD_INPUT;
            continue;
        }
        describe_type(type, sizeof type, info.descriptor);
        describe_shape(shape, sizeof shape, info.descriptor);
        describe_layout(layout, sizeof layout, info.descriptor);
        uint64_t bytes = describe_bytes(info.descriptor);
        total += bytes;
        printf("  %-28s %-20s %-16s %12llu  %s\n", type, shape, layout, (unsigned long long)bytes, describe_device(info.descriptor));
    }
    free(parents);
    printf("\n%llu tensor%s, %s of payload, %s file of %s\n", (unsigned long long)model->count, model->count == 1 ? "" : "s",
           bytes_word(total), format_word(model->source.format), bytes_word(model->bytes));
    return code;
}

static void list_kv(Model *model) {
    uint64_t count = 0;
    hurray_loader_kv_count(model->loader, &count);
    if (count) printf("\nmetadata:\n");
    for (uint64_t i = 0; i < count; i++) {
        HurrayKvEntry entry;
        if (hurray_loader_kv_entry(model->loader, i, &entry) != HURRAY_OK) continue;
        fputs("  ", stdout);
        print_text(stdout, entry.key, entry.key_len);
        printf(" (%s): ", kv_kind_word(entry.value.kind));
        describe_kv_text(stdout, &entry);
        putchar('\n');
    }
}

static int show_hex(Model *model, const char *name) {
    uint64_t i = 0;
    HurrayTensorInfo info;
    int code = model_sound(model, name, &i, &info);
    if (code != EXIT_DONE) return code;
    return print_hex(info.descriptor);
}

static int run(const Command *command, int argc, char **argv) {
    Args args;
    const char *hex = NULL;
    int id, count;
    args_begin(&args, command, argc, argv);
    while ((id = args_next(&args)) > 0)
        if (id == OPTION_HEX) hex = args.value;
    args_end(&args);
    if (id != ARG_END) return id == ARG_HELP ? EXIT_DONE : EXIT_USAGE;
    char **rest = args_rest(&args, &count);
    if (count != 1) return report_usage("inspect", "expected one FILE, got %d", count);
    if (hex && args.output.json) return report_usage("inspect", "--hex is a table for people; --json alone has each descriptor as hex");
    Model model;
    int code = model_open(&model, rest[0], NULL, NULL);
    if (code != EXIT_DONE) return code;
    model_print_notes(&model, &args.output);
    if (hex) {
        code = show_hex(&model, hex);
    } else if (args.output.json) {
        code = list_json(&model);
    } else {
        code = list_table(&model);
        list_kv(&model);
    }
    model_close(&model);
    return code;
}

const Command command_inspect = {"inspect",
                                 "inspect FILE [--json] [--hex NAME]",
                                 "list the tensors and metadata of a file",
                                 NULL,
                                 options,
                                 sizeof options / sizeof *options,
                                 true,
                                 run};
