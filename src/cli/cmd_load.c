/* hurray load: reads everything named to where the options say, and reports how. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "args.h"
#include "json.h"
#include "model.h"
#include "progress.h"
#include "trace.h"
#include "transfer.h"

enum {
    OPTION_DEVICE = 1,
    OPTION_IO,
    OPTION_DIRECT,
    OPTION_PINNED_MB,
    OPTION_PINNED,
    OPTION_MEMORY_MB,
    OPTION_THREADS,
    OPTION_QUEUE_DEPTH,
    OPTION_CHUNK,
    OPTION_VERIFY,
    OPTION_TRACE,
    OPTION_PICTURE,
    OPTION_HUGE_PAGES,
    OPTION_PREFIX,
};

static const Option options[] = {
    {OPTION_DEVICE, "device", "WHERE", "cpu (default), auto, cuda, cuda:N, a device's UUID or bus id"},
    {OPTION_IO, "io", "HOW", "auto (default), uring, threads, mmap (toward the CPU only)"},
    {OPTION_DIRECT, "direct", "SWITCH", "auto (default: by what the page cache holds), on, off"},
    {OPTION_HUGE_PAGES, "huge-pages", "SWITCH", "auto (default: advice), on (reserved huge pages), off"},
    {OPTION_PINNED_MB, "pinned-mb", "MIB", "most pinned staging memory (default 256)"},
    {OPTION_PINNED, "pinned", "SWITCH", "auto (default: fall back to pageable), on (fail instead), off"},
    {OPTION_MEMORY_MB, "memory-mb", "MIB", "most host memory beyond what is delivered (default pinned + 32)"},
    {OPTION_THREADS, "threads", "N", "reading threads, up to 256 (default: by the machine; 1: only the caller's)"},
    {OPTION_QUEUE_DEPTH, "queue-depth", "N", "reads in flight, up to 1024 with io_uring"},
    {OPTION_CHUNK, "chunk", "BYTES", "size of a read, 4K to 1G (K, M, G are powers of 1024)"},
    {OPTION_VERIFY, "verify", NULL, "check stored checksums while reading"},
    {OPTION_TRACE, "trace", "FILE", "write each read, copy, check and wait as a Chrome trace"},
    {OPTION_PICTURE, "picture", "FILE.svg", "draw the load as a timeline"},
    {OPTION_PREFIX, "name-prefix", "P", "items of a stream are called P.0, P.1, ... instead of 0, 1, ..."},
};

typedef struct Load {
    Bar bar;
    Trace trace;
    TraceFile json, picture;
    bool tracing, touch;
    uint64_t touched; /* a sum that keeps the reads of mapped pages alive */
} Load;

static HurrayStatus on_progress(void *ctx, const HurrayProgress *progress) {
    Load *load = ctx;
    bar_update(&load->bar, progress->bytes_done, progress->bytes_total, progress->bytes_done == progress->bytes_total);
    return interrupted ? HURRAY_ERR_CANCELLED : HURRAY_OK;
}

static void on_trace(void *ctx, const HurrayTraceEvent *event) {
    Load *load = ctx;
    trace_add(&load->trace, event);
}

/* A mapped tensor is really read only when its pages are touched. */
static void touch_set(HurrayTensorSet *set, Load *load) {
    uint64_t count = 0;
    hurray_tensor_set_count(set, &count);
    for (uint64_t i = 0; i < count; i++) {
        HurrayTensor *tensor = NULL;
        HurrayBufferList *buffers = NULL;
        uint64_t n = 0;
        if (hurray_tensor_set_get(set, i, &tensor) != HURRAY_OK || hurray_tensor_buffers(tensor, &buffers) != HURRAY_OK) continue;
        hurray_buffer_list_len(buffers, &n);
        for (uint64_t k = 0; k < n; k++) {
            HurrayBuffer *buffer = NULL;
            void *data = NULL;
            uint64_t size = 0;
            uint32_t flags = 0;
            hurray_buffer_list_get(buffers, k, &buffer);
            hurray_buffer_data_ptr(buffer, &data);
            hurray_buffer_byte_size(buffer, &size);
            hurray_buffer_flags(buffer, &flags);
            if (!(flags & HURRAY_BUFFER_IN_PLACE)) continue;
            const volatile unsigned char *bytes = data;
            for (uint64_t at = 0; at < size && !interrupted; at += 4096) load->touched += bytes[at];
        }
    }
}

static bool parse_switch(const char *text, uint32_t *out) {
    if (strcmp(text, "auto") == 0)
        *out = HURRAY_AUTO;
    else if (strcmp(text, "on") == 0)
        *out = HURRAY_ON;
    else if (strcmp(text, "off") == 0)
        *out = HURRAY_OFF;
    else
        return false;
    return true;
}

static bool parse_io(const char *text, uint32_t *out) {
    static const char *const words[] = {"auto", "uring", "threads", "mmap"};
    for (uint32_t i = 0; i < 4; i++) {
        if (strcmp(text, words[i]) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

static int bad_value(int id, const char *value) {
    const char *name = "", *expected = "a number above 0";
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].id == id) name = options[i].name;
    if (id == OPTION_IO)
        expected = "auto, uring, threads or mmap";
    else if (id == OPTION_DIRECT || id == OPTION_HUGE_PAGES || id == OPTION_PINNED)
        expected = "auto, on or off";
    else if (id == OPTION_CHUNK)
        expected = "bytes (4M, 65536)";
    else if (id == OPTION_THREADS)
        expected = "a number from 1 to 1024";
    else if (id == OPTION_QUEUE_DEPTH)
        expected = "a number from 1 to 4096";
    return report_usage("load", "--%s: expected %s, got `%s`", name, expected, value);
}

static const char *io_word(uint32_t io) {
    static const char *const words[] = {"auto", "uring", "threads", "mmap"};
    return words[io < 4 ? io : 0];
}

/* "cuda", "cuda:N", a UUID or a bus id. */
static int parse_device(const char *text, HurrayLoaderOptions *out) {
    HurrayError error = HURRAY_ERROR_INIT;
    if (strcmp(text, "cpu") == 0) return EXIT_DONE;
    out->device_tag = HURRAY_DEVICE_CUDA;
    out->target = strcmp(text, "auto") == 0 ? HURRAY_TARGET_BEST : HURRAY_TARGET_DEVICE;
    if (strcmp(text, "auto") == 0 || strcmp(text, "cuda") == 0) return EXIT_DONE;
    const char *which = strncmp(text, "cuda:", 5) == 0 ? text + 5 : text;
    if (hurray_device_find(HURRAY_DEVICE_CUDA, which, strlen(which), &out->device_index, &error) != HURRAY_OK)
        return report_error(text, &error);
    return EXIT_DONE;
}

static uint64_t peak_rss(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static void device_name(char *text, size_t size, const HurrayPathStats *path) {
    if (path->device_tag == HURRAY_DEVICE_CPU)
        snprintf(text, size, "cpu");
    else
        snprintf(text, size, "%s:%d", device_word(path->device_tag), (int)path->device_index);
}

/* Files that went the same way to the same device make one line. */
typedef struct Way {
    HurrayPathStats path; /* of the first; bytes and ranges of all */
    uint32_t files;
} Way;

static bool same_way(const HurrayPathStats *a, const HurrayPathStats *b) {
    return a->io == b->io && a->direct == b->direct && a->staging == b->staging && a->device_tag == b->device_tag &&
           a->device_index == b->device_index && a->threads == b->threads && a->queue_depth == b->queue_depth &&
           strcmp(a->reason ? a->reason : "", b->reason ? b->reason : "") == 0;
}

static size_t gather_ways(Model *model, uint32_t path_count, Way *ways) {
    size_t count = 0;
    for (uint32_t i = 0; i < path_count; i++) {
        HurrayPathStats path = HURRAY_PATH_STATS_INIT;
        size_t k = 0;
        if (hurray_loader_path_stats(model->loader, i, &path) != HURRAY_OK) continue;
        while (k < count && !same_way(&ways[k].path, &path)) k++;
        if (k == count) {
            ways[count++] = (Way){path, 1};
        } else {
            ways[k].path.bytes += path.bytes;
            ways[k].path.ranges += path.ranges;
            ways[k].files++;
        }
    }
    return count;
}

static const char *staging_word(uint32_t staging) {
    static const char *const words[] = {"none", "pinned", "pageable"};
    return words[staging < 3 ? staging : 0];
}

static void way_json(yajl_gen json, const HurrayPathStats *path) {
    char device[32];
    device_name(device, sizeof device, path);
    json_key_word(json, "path", io_word(path->io));
    json_key_bool(json, "direct", path->direct == HURRAY_ON);
    json_key_word(json, "reason", path->reason ? path->reason : "");
    json_key_word(json, "device", device);
    json_key_u64(json, "threads", path->threads);
    json_key_u64(json, "queue_depth", path->queue_depth);
}

/* The way that most bytes went stands for the whole, and beside it is the list of all. */
static void report_json(Model *model, const HurrayLoadStats *stats, const Way *ways, size_t count, double seconds) {
    HurrayPathStats none = {.io = HURRAY_IO_THREADS};
    const HurrayPathStats *most = count ? &ways[0].path : &none;
    yajl_gen json = json_begin();
    if (!json) return;
    for (size_t i = 1; i < count; i++)
        if (ways[i].path.bytes > most->bytes) most = &ways[i].path;
    yajl_gen_map_open(json);
    json_key_path(json, "file", model->path);
    json_key_u64(json, "tensors", stats->tensors);
    json_key_u64(json, "bytes", stats->payload_bytes);
    json_key_f64(json, "seconds", seconds);
    way_json(json, most);
    json_key(json, "paths");
    yajl_gen_array_open(json);
    for (size_t i = 0; i < count; i++) {
        yajl_gen_map_open(json);
        way_json(json, &ways[i].path);
        json_key_word(json, "staging", staging_word(ways[i].path.staging));
        json_key_u64(json, "bytes", ways[i].path.bytes);
        json_key_u64(json, "ranges", ways[i].path.ranges);
        json_key_u64(json, "files", ways[i].files);
        yajl_gen_map_close(json);
    }
    yajl_gen_array_close(json);
    json_key_u64(json, "bytes_read", stats->bytes_read);
    json_key_u64(json, "bytes_copied", stats->bytes_copied);
    json_key_u64(json, "bytes_in_place", stats->bytes_in_place);
    json_key_u64(json, "bytes_verified", stats->bytes_verified);
    json_key_u64(json, "ranges", stats->ranges);
    json_key_f64(json, "read_seconds", (double)stats->read_ns * 1e-9);
    json_key_f64(json, "copy_seconds", (double)stats->copy_ns * 1e-9);
    json_key_f64(json, "verify_seconds", (double)stats->verify_ns * 1e-9);
    json_key_f64(json, "wait_seconds", (double)stats->wait_ns * 1e-9);
    json_key_f64(json, "overlap_seconds", (double)stats->overlap_ns * 1e-9);
    json_key_u64(json, "peak_pinned", stats->peak_pinned);
    json_key_u64(json, "peak_host", stats->peak_host);
    json_key_u64(json, "peak_rss", peak_rss());
    yajl_gen_map_close(json);
    json_end(json);
}

static void report_way(Model *model, const Way *way) {
    const HurrayPathStats *path = &way->path;
    char device[32], label[64] = "";
    HurraySourceInfo source = HURRAY_SOURCE_INFO_INIT;
    device_name(device, sizeof device, path);
    if (way->files > 1)
        snprintf(label, sizeof label, "%u files", (unsigned)way->files);
    else if (hurray_loader_source_info(model->loader, path->source_index, &source) == HURRAY_OK && source.label_len < sizeof label)
        snprintf(label, sizeof label, "%.*s", (int)source.label_len, (const char *)source.label);
    printf("path       %s: %s%s to %s, %s", label, io_word(path->io), path->direct == HURRAY_ON ? " direct" : "", device,
           bytes_word(path->bytes));
    if (path->ranges) {
        printf(" in %llu read%s, %u thread%s", (unsigned long long)path->ranges, path->ranges == 1 ? "" : "s", (unsigned)path->threads,
               path->threads == 1 ? "" : "s");
        if (path->queue_depth) printf(", depth %u", (unsigned)path->queue_depth);
    }
    if (path->staging != HURRAY_STAGING_NONE) printf(", staging %s", staging_word(path->staging));
    if (path->reason && path->reason[0]) printf(" (%s)", path->reason);
    putchar('\n');
}

static void report_table(Model *model, const HurrayLoadStats *stats, const Way *ways, size_t count, double seconds) {
    printf("loaded     %llu tensor%s, %s in %s: %s/s\n", (unsigned long long)stats->tensors, stats->tensors == 1 ? "" : "s",
           bytes_word(stats->payload_bytes), seconds_word(seconds),
           bytes_word(seconds > 0 ? (uint64_t)((double)stats->payload_bytes / seconds) : 0));
    for (size_t i = 0; i < count; i++) report_way(model, &ways[i]);
    printf("bytes      %s read, %s copied to a device, %s in place, %s verified\n", bytes_word(stats->bytes_read),
           bytes_word(stats->bytes_copied), bytes_word(stats->bytes_in_place), bytes_word(stats->bytes_verified));
    printf("time       read %s, copy %s, check %s, wait %s, each summed over what ran at once\n",
           seconds_word((double)stats->read_ns * 1e-9), seconds_word((double)stats->copy_ns * 1e-9),
           seconds_word((double)stats->verify_ns * 1e-9), seconds_word((double)stats->wait_ns * 1e-9));
    if (stats->bytes_copied && stats->total_ns)
        printf("overlap    reads and copies at once for %s, %.0f %% of the load\n", seconds_word((double)stats->overlap_ns * 1e-9),
               100.0 * (double)stats->overlap_ns / (double)stats->total_ns);
    printf("memory     peak pinned %s, peak resident %s\n", bytes_word(stats->peak_pinned), bytes_word(peak_rss()));
}

/* Names alone are found without looking at every tensor. */
static bool find_names(Model *model, char **names, int count) {
    uint64_t at = 0;
    for (int i = 0; i < count; i++)
        if (model->names || !model_find(model, names[i], strlen(names[i]), &at)) return false;
    return true;
}

static int select_tensors(Model *model, char **names, int count) {
    Selection chosen = {NULL, 0, 0};
    HurrayStatus status = HURRAY_OK;
    int code = EXIT_DONE;
    if (count == 0) return EXIT_DONE;
    if (find_names(model, names, count))
        for (int i = 0; i < count && status == HURRAY_OK; i++)
            status = hurray_loader_select_name(model->loader, names[i], strlen(names[i]));
    else
        code = select_for_transfer(model, names, (size_t)count, &chosen);
    for (uint64_t i = 0; i < chosen.count && status == HURRAY_OK; i++)
        status = hurray_loader_select_index(model->loader, chosen.indices[i]);
    selection_clear(&chosen);
    return status == HURRAY_OK ? code : report_error(model->path, hurray_loader_last_error(model->loader));
}

static int load_model(Model *model, Load *load, const Output *output) {
    HurrayTensorSet *set = NULL;
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    double began = now_seconds();
    bar_begin(&load->bar, output);
    install_signals(model->loader);
    HurrayStatus status = hurray_loader_load(model->loader, &set);
    install_signals(NULL);
    if (status == HURRAY_OK) touch_set(set, load);
    double seconds = now_seconds() - began;
    bar_end(&load->bar);
    if (status != HURRAY_OK) return report_error(model->path, hurray_loader_last_error(model->loader));
    if (interrupted) {
        hurray_tensor_set_destroy(&set);
        return EXIT_INTERRUPTED;
    }
    hurray_loader_stats(model->loader, &stats);
    Way *ways = calloc((size_t)stats.path_count + 1, sizeof *ways);
    size_t count = ways ? gather_ways(model, stats.path_count, ways) : 0;
    if (output->json)
        report_json(model, &stats, ways, count, seconds);
    else
        report_table(model, &stats, ways, count, seconds);
    free(ways);
    hurray_tensor_set_destroy(&set);
    int code = EXIT_DONE;
    if (load->json.file) code = trace_write_json(&load->trace, &load->json, model);
    if (load->picture.file && code == EXIT_DONE) code = trace_write_svg(&load->trace, &load->picture, model);
    if (load->trace.lost) note(output, "hurray: note: no memory for all trace events; the trace is incomplete");
    return code;
}

static int run(const Command *command, int argc, char **argv) {
    Args args;
    Load load;
    HurrayLoaderOptions o = HURRAY_LOADER_OPTIONS_INIT;
    const char *trace = NULL, *picture = NULL, *prefix = NULL;
    uint64_t number = 0;
    int id = ARG_END, count, code = EXIT_DONE;
    memset(&load, 0, sizeof load);
    args_begin(&args, command, argc, argv);
    while (code == EXIT_DONE && (id = args_next(&args)) > 0) {
        bool good = true;
        switch (id) {
        case OPTION_DEVICE: code = parse_device(args.value, &o); break;
        case OPTION_IO: good = parse_io(args.value, &o.io); break;
        case OPTION_DIRECT: good = parse_switch(args.value, &o.direct); break;
        case OPTION_HUGE_PAGES: good = parse_switch(args.value, &o.huge_pages); break;
        case OPTION_PINNED: good = parse_switch(args.value, &o.pinned); break;
        case OPTION_PINNED_MB: good = parse_number(args.value, UINT64_MAX >> 20, &number) && number > 0, o.pinned_cap = number << 20; break;
        case OPTION_MEMORY_MB: good = parse_number(args.value, UINT64_MAX >> 20, &number) && number > 0, o.memory_cap = number << 20; break;
        case OPTION_THREADS: good = parse_number(args.value, 1024, &number) && number > 0, o.threads = (uint32_t)number; break;
        case OPTION_QUEUE_DEPTH: good = parse_number(args.value, 4096, &number) && number > 0, o.queue_depth = (uint32_t)number; break;
        case OPTION_CHUNK: good = parse_bytes(args.value, &o.chunk_bytes) && o.chunk_bytes > 0; break;
        case OPTION_VERIFY: o.verify_data = HURRAY_VERIFY_STORED; break;
        case OPTION_TRACE: trace = args.value; break;
        case OPTION_PICTURE: picture = args.value; break;
        default: prefix = args.value;
        }
        if (!good) code = bad_value(id, args.value);
    }
    args_end(&args);
    if (code != EXIT_DONE) return code;
    if (id != ARG_END) return id == ARG_HELP ? EXIT_DONE : EXIT_USAGE;
    char **rest = args_rest(&args, &count);
    if (count < 1) return report_usage("load", "expected FILE");
    load.tracing = trace || picture;
    o.ctx = &load;
    o.progress = on_progress;
    if (load.tracing) o.trace = on_trace;
    Model model;
    code = model_open(&model, rest[0], &o, prefix);
    if (code != EXIT_DONE) return code;
    model_print_notes(&model, &args.output);
    code = select_tensors(&model, rest + 1, count - 1);
    if (code == EXIT_DONE && trace) code = trace_open(&load.json, trace);
    if (code == EXIT_DONE && picture) code = trace_open(&load.picture, picture);
    if (code == EXIT_DONE) code = load_model(&model, &load, &args.output);
    trace_drop(&load.json);
    trace_drop(&load.picture);
    model_close(&model);
    trace_clear(&load.trace);
    return code;
}

const Command command_load = {"load",
                              "load FILE [NAME|GLOB ...] [options]",
                              "read tensors into memory and report how fast",
                              "Everything named (default: all) is really read. A NAME that is one wins over a pattern (* ? [..]).",
                              options,
                              sizeof options / sizeof *options,
                              true,
                              run};
