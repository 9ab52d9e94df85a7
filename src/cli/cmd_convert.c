/* hurray convert: any readable format to .hrry, or to safetensors; atomic, in bounded memory. */
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "convert.h"

enum {
    OPTION_TO = 1,
    OPTION_ALIGN,
    OPTION_SORTED,
    OPTION_NO_CHECKSUMS,
    OPTION_SELECT,
    OPTION_RENAME,
    OPTION_SHARD_SIZE,
    OPTION_DENSE,
    OPTION_KV_TEXT,
    OPTION_QUANTIZATION,
    OPTION_PREFIX,
};

static const Option options[] = {
    {OPTION_TO, "to", "FORMAT", "hrry or safetensors (default: by OUT's name, .safetensors or not)"},
    {OPTION_SELECT, "select", "GLOB", "only tensors of this name or pattern (may be given again)"},
    {OPTION_RENAME, "rename", "OLD=NEW", "write tensor OLD as NEW; one * in each stands for the same text (may be given again)"},
    {OPTION_ALIGN, "align", "BYTES", "hrry: alignment of buffers in the file, a power of two from 4K to 2M (default: the input's, or 4K)"},
    {OPTION_SORTED, "sorted", NULL, "hrry: index sorted by name"},
    {OPTION_NO_CHECKSUMS, "no-checksums", NULL, "hrry: store no CRC-32C of the buffers"},
    {OPTION_QUANTIZATION, "quantization", "native", "hrry: GGML blocks that our own schemes hold exactly become those schemes"},
    {OPTION_SHARD_SIZE, "shard-size", "BYTES", "safetensors: several files of at most this size, with an index"},
    {OPTION_DENSE, "dense", NULL, "safetensors: decode what it cannot hold (quantized, sparse, composite, blocks) to plain elements"},
    {OPTION_KV_TEXT, "kv-as-text", NULL, "safetensors: write metadata that is no string as text"},
    {OPTION_PREFIX, "name-prefix", "P", "items of a stream are called P.0, P.1, ... instead of 0, 1, ..."},
};

/* NEW for a name that matches OLD; NULL: no match, or no memory (*failed). */
static char *rename_one(const char *rule, const char *name, size_t len, size_t *out_len, bool *failed) {
    const char *equals = strchr(rule, '='), *star = memchr(rule, '*', (size_t)(equals - rule)), *new_star = strchr(equals + 1, '*');
    size_t old_len = (size_t)(equals - rule), new_len = strlen(equals + 1), middle = 0;
    const char *text = NULL;
    if (!star) {
        if (old_len != len || memcmp(rule, name, len) != 0) return NULL;
    } else {
        size_t before = (size_t)(star - rule), after = old_len - before - 1;
        if (len < before + after || memcmp(rule, name, before) != 0 || memcmp(star + 1, name + len - after, after) != 0) return NULL;
        text = name + before;
        middle = len - before - after;
    }
    char *made = malloc(new_len + middle + 1);
    if (!made) {
        *failed = true;
        return NULL;
    }
    if (star && new_star) {
        size_t head = (size_t)(new_star - (equals + 1));
        memcpy(made, equals + 1, head);
        memcpy(made + head, text, middle);
        memcpy(made + head + middle, new_star + 1, new_len - head - 1);
        *out_len = new_len - 1 + middle;
    } else {
        memcpy(made, equals + 1, new_len);
        *out_len = new_len;
    }
    return made;
}

static int make_names(Conversion *conversion) {
    const ConvertOptions *o = conversion->options;
    size_t n = (size_t)conversion->selection.count;
    bool failed = false;
    if (o->rename_count == 0) return EXIT_DONE;
    conversion->names = calloc(n + 1, sizeof *conversion->names);
    conversion->name_lens = calloc(n + 1, sizeof *conversion->name_lens);
    bool *used = calloc(o->rename_count, sizeof *used);
    failed = !conversion->names || !conversion->name_lens || !used;
    for (size_t i = 0; i < n && !failed; i++) {
        HurrayTensorInfo info;
        int code = model_info(conversion->model, conversion->selection.indices[i], &info);
        if (code != EXIT_DONE) {
            free(used);
            return code;
        }
        for (size_t r = 0; r < o->rename_count && !conversion->names[i] && !failed; r++) {
            conversion->names[i] = rename_one(o->renames[r], (const char *)info.name, info.name_len, &conversion->name_lens[i], &failed);
            if (conversion->names[i]) used[r] = true;
        }
    }
    int code = failed ? report_failure(EXIT_SYSTEM, conversion->model->path, "no memory for names") : EXIT_DONE;
    for (size_t r = 0; code == EXIT_DONE && r < o->rename_count; r++) {
        if (used[r]) continue;
        char *shown = escape_text(o->renames[r], strlen(o->renames[r]));
        code = report_failure(EXIT_NOT_FOUND, conversion->model->path, "--rename %s: no tensor has the old name", shown ? shown : "?");
        free(shown);
    }
    free(used);
    return code;
}

const void *conversion_name(const Conversion *conversion, uint64_t n, const HurrayTensorInfo *info, size_t *len) {
    if (conversion->names && conversion->names[n]) {
        *len = conversion->name_lens[n];
        return conversion->names[n];
    }
    *len = info->name_len;
    return info->name;
}

typedef struct Final {
    const char *name;
    size_t len;
    uint64_t n; /* in the selection */
} Final;

static int by_name(const void *left, const void *right) {
    const Final *a = left, *b = right;
    size_t both = a->len < b->len ? a->len : b->len;
    int order = both ? memcmp(a->name, b->name, both) : 0;
    return order ? order : (a->len > b->len) - (a->len < b->len);
}

static int report_same(const Conversion *conversion, const Final *a, const Final *b) {
    HurrayTensorInfo first, second;
    int code = model_info(conversion->model, conversion->selection.indices[a->n], &first);
    if (code == EXIT_DONE) code = model_info(conversion->model, conversion->selection.indices[b->n], &second);
    if (code != EXIT_DONE) return code;
    char *name = escape_text(a->name, a->len), *one = escape_text(first.name, first.name_len);
    char *other = escape_text(second.name, second.name_len);
    code = report_failure(EXIT_BAD_INPUT, conversion->out, "tensor \"%s\": \"%s\" and \"%s\" would both get this name; change --rename",
                          name ? name : "?", one ? one : "?", other ? other : "?");
    free(name);
    free(one);
    free(other);
    return code;
}

/* Two tensors that would get one name are found before anything is written. */
static int check_names(const Conversion *conversion) {
    size_t n = (size_t)conversion->selection.count, i = 1;
    if (!conversion->names || n == 0) return EXIT_DONE;
    Final *finals = malloc(n * sizeof *finals);
    int code = finals ? EXIT_DONE : report_failure(EXIT_SYSTEM, conversion->model->path, "no memory for names");
    for (size_t k = 0; k < n && code == EXIT_DONE; k++) {
        HurrayTensorInfo info;
        code = model_info(conversion->model, conversion->selection.indices[k], &info);
        if (code != EXIT_DONE) break;
        finals[k].n = k;
        finals[k].name = conversion_name(conversion, k, &info, &finals[k].len);
    }
    if (code == EXIT_DONE) {
        qsort(finals, n, sizeof *finals, by_name);
        while (i < n && by_name(&finals[i - 1], &finals[i]) != 0) i++;
        if (i < n) {
            bool ordered = finals[i - 1].n < finals[i].n;
            code = report_same(conversion, &finals[ordered ? i - 1 : i], &finals[ordered ? i : i - 1]);
        }
    }
    free(finals);
    return code;
}

static int convert(Conversion *conversion) {
    const ConvertOptions *o = conversion->options;
    int code = select_for_transfer(conversion->model, o->patterns, o->pattern_count, &conversion->selection);
    if (code == EXIT_DONE) code = make_names(conversion);
    if (code == EXIT_DONE) code = check_names(conversion);
    if (code == EXIT_DONE) {
        bar_begin(&conversion->bar, conversion->output);
        install_signals(NULL);
        code = o->format == HURRAY_FORMAT_SAFETENSORS ? convert_to_safetensors(conversion) : convert_to_hrry(conversion);
        bar_end(&conversion->bar);
    }
    for (uint64_t i = 0; conversion->names && i < conversion->selection.count; i++) free(conversion->names[i]);
    free(conversion->names);
    free(conversion->name_lens);
    selection_clear(&conversion->selection);
    return code;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A name that promises a format which is not written. */
static void note_other_name(const Output *output, const char *path) {
    static const char *const others[] = {".gguf", ".npz", ".npy", ".pt", ".pth", ".bin", ".onnx"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!ends_with(path, others[i])) continue;
        char *shown = escape_text(path, strlen(path));
        note(output, "hurray: note: %s: written in the .hrry format, whatever the name says", shown ? shown : "?");
        free(shown);
    }
}

static int parse_option(int id, const char *value, ConvertOptions *o, const char **prefix) {
    uint64_t number = 0;
    switch (id) {
    case OPTION_TO:
        if (strcmp(value, "hrry") == 0)
            o->format = HURRAY_FORMAT_HRRY;
        else if (strcmp(value, "safetensors") == 0)
            o->format = HURRAY_FORMAT_SAFETENSORS;
        else
            return report_usage("convert", "--to: hrry and safetensors are written, not `%s`", value);
        break;
    case OPTION_ALIGN:
        if (!parse_bytes(value, &number) || number < 4096 || number > (2u << 20) || (number & (number - 1)))
            return report_usage("convert", "--align: expected a power of two from 4096 to 2097152, got `%s`", value);
        o->alignment = (uint32_t)number;
        break;
    case OPTION_SORTED: o->sorted = true; break;
    case OPTION_NO_CHECKSUMS: o->no_checksums = true; break;
    case OPTION_SELECT: o->patterns[o->pattern_count++] = (char *)(uintptr_t)value; break;
    case OPTION_RENAME:
        if (!strchr(value, '=') || value[0] == '=') return report_usage("convert", "--rename: expected OLD=NEW, got `%s`", value);
        o->renames[o->rename_count++] = (char *)(uintptr_t)value;
        break;
    case OPTION_SHARD_SIZE:
        if (!parse_bytes(value, &o->shard_size) || o->shard_size == 0)
            return report_usage("convert", "--shard-size: expected bytes, got `%s`", value);
        break;
    case OPTION_DENSE: o->dense = true; break;
    case OPTION_KV_TEXT: o->kv_text = true; break;
    case OPTION_QUANTIZATION:
        if (strcmp(value, "native") != 0) return report_usage("convert", "--quantization: native is known, not `%s`", value);
        o->native = true;
        break;
    default: *prefix = value;
    }
    return EXIT_DONE;
}

static int check_options(const ConvertOptions *o) {
    bool hrry_only = o->alignment || o->sorted || o->no_checksums || o->native, safetensors_only = o->shard_size || o->dense || o->kv_text;
    if (o->format == HURRAY_FORMAT_SAFETENSORS && hrry_only)
        return report_usage("convert", "--align, --sorted, --no-checksums, --quantization are for .hrry output");
    if (o->format == HURRAY_FORMAT_HRRY && safetensors_only)
        return report_usage("convert", "--shard-size, --dense, --kv-as-text are for safetensors output");
    return EXIT_DONE;
}

static int run(const Command *command, int argc, char **argv) {
    Args args;
    ConvertOptions o;
    const char *prefix = NULL;
    int id = ARG_END, count, code = EXIT_DONE;
    memset(&o, 0, sizeof o);
    o.patterns = calloc((size_t)argc * 2, sizeof *o.patterns);
    if (!o.patterns) return report_failure(EXIT_SYSTEM, "convert", "no memory");
    o.renames = o.patterns + argc;
    args_begin(&args, command, argc, argv);
    while (code == EXIT_DONE && (id = args_next(&args)) > 0) code = parse_option(id, args.value, &o, &prefix);
    args_end(&args);
    char **rest = args_rest(&args, &count);
    if (code == EXIT_DONE && id == ARG_ERROR) code = EXIT_USAGE;
    if (code == EXIT_DONE && id == ARG_END && count != 2)
        code = report_usage("convert", "expected IN and OUT, got %d argument%s", count, count == 1 ? "" : "s");
    if (code == EXIT_DONE && id == ARG_END && !o.format) {
        o.format = ends_with(rest[1], ".safetensors") ? HURRAY_FORMAT_SAFETENSORS : HURRAY_FORMAT_HRRY;
        note_other_name(&args.output, rest[1]);
    }
    if (code == EXIT_DONE && id == ARG_END) code = check_options(&o);
    if (code == EXIT_DONE && id == ARG_END) {
        Model model;
        HurrayLoaderOptions load = HURRAY_LOADER_OPTIONS_INIT;
        load.verify_data = HURRAY_VERIFY_STORED;
        load.progress = transfer_on_load;
        load.ctx = &model;
        code = model_open(&model, rest[0], &load, prefix);
        if (code == EXIT_DONE) {
            Conversion conversion;
            memset(&conversion, 0, sizeof conversion);
            conversion.model = &model;
            conversion.options = &o;
            conversion.output = &args.output;
            conversion.out = rest[1];
            model_print_notes(&model, &args.output);
            code = convert(&conversion);
            model_close(&model);
        }
    }
    free(o.patterns);
    return code;
}

const Command command_convert = {
    "convert",
    "convert IN OUT [--to FORMAT] [options]",
    "convert to .hrry (or safetensors), atomically",
    "OUT is replaced only when everything has been written; it may be IN. Stored checksums of IN are checked on the way.",
    options,
    sizeof options / sizeof *options,
    false,
    run};
