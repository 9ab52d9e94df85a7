#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert.h"
#include "describe.h"
#include "hurray/dense.h"
#include "hurray/import.h"
#include "hurray/transport.h"
#include "json.h"

/* A tensor on its way out: as it is, or decoded to plain row-major elements. */
typedef struct Outgoing {
    uint64_t index;
    const void *name;
    char *own_name;
    size_t name_len;
    HurrayDescriptor *descriptor; /* what the exporter is told */
    bool decode;
    uint8_t type; /* of the decoded elements, 0: its own */
    uint64_t bytes;
} Outgoing;

typedef struct Plan {
    Outgoing *tensors;
    size_t count;
    uint64_t bytes; /* of all, as they are written */
} Plan;

static HurrayDescriptor *copy_descriptor(const HurrayDescriptor *descriptor) {
    HurrayDescriptor *copy = NULL;
    size_t len = 0;
    hurray_descriptor_encode(descriptor, NULL, &len);
    void *bytes = malloc(len ? len : 1);
    if (bytes && hurray_descriptor_encode(descriptor, bytes, &len) == HURRAY_OK) hurray_descriptor_decode(bytes, len, &copy);
    free(bytes);
    return copy;
}

/* The descriptor of the same elements, row-major, in `type` (0: its own). */
static HurrayStatus dense_descriptor(const HurrayDescriptor *from, uint8_t type, HurrayDescriptor **out, HurrayError *error) {
    uint64_t dims[HURRAY_MAX_RANK];
    size_t rank = HURRAY_MAX_RANK;
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    hurray_descriptor_shape(from, dims, &rank);
    spec.rank = (uint32_t)rank;
    spec.shape = dims;
    spec.element_type = type;
    if (!type) hurray_descriptor_element_type_tag(from, &spec.element_type);
    return hurray_descriptor_new(&spec, NULL, out, error);
}

/* Dense layouts are always written row-major; quantized, sparse, composite tensors and blocks only when asked for. */
static void decide(const HurrayDescriptor *descriptor, bool dense, Outgoing *out) {
    uint8_t layout = 0;
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    hurray_descriptor_layout_tag(descriptor, &layout);
    bool quantized = hurray_descriptor_quantization(descriptor, &quantization) == HURRAY_OK;
    bool sharded = hurray_descriptor_shard(descriptor, &shard) == HURRAY_OK;
    bool elements_lie_apart = layout == HURRAY_LAYOUT_COLUMN_MAJOR || layout == HURRAY_LAYOUT_STRIDED || layout == HURRAY_LAYOUT_TILED ||
                              layout == HURRAY_LAYOUT_MORTON || layout == HURRAY_LAYOUT_HILBERT;
    uint64_t byte_offset = 0;
    hurray_descriptor_byte_offset(descriptor, &byte_offset);
    if (elements_lie_apart || byte_offset)
        out->decode = dense || (!quantized && !sharded);
    else if (layout != HURRAY_LAYOUT_ROW_MAJOR || quantized || sharded)
        out->decode = dense;
    if (quantized || layout >= HURRAY_PRIVATE_FIRST) out->type = HURRAY_TYPE_FLOAT32;
}

static int plan_one(Conversion *conversion, uint64_t n, Plan *plan) {
    HurrayTensorInfo info;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayStatus status = HURRAY_OK;
    uint64_t i = conversion->selection.indices[n];
    int code = model_info(conversion->model, i, &info);
    if (code != EXIT_DONE) return code;
    Outgoing *out = &plan->tensors[plan->count];
    memset(out, 0, sizeof *out);
    out->index = i;
    decide(info.descriptor, conversion->options->dense, out);
    const void *name = conversion_name(conversion, n, &info, &out->name_len);
    out->own_name = malloc(out->name_len + 1);
    if (out->own_name) memcpy(out->own_name, name, out->name_len);
    out->name = out->own_name;
    if (out->decode)
        status = dense_descriptor(info.descriptor, out->type, &out->descriptor, &error);
    else
        out->descriptor = copy_descriptor(info.descriptor);
    if (status != HURRAY_OK) {
        name_tensor(&error, name, out->name_len);
        free(out->own_name);
        return report_error(conversion->model->path, &error);
    }
    plan->count++;
    if (!out->own_name || !out->descriptor) return report_failure(EXIT_SYSTEM, conversion->model->path, "no memory");
    out->bytes = describe_bytes(out->descriptor);
    plan->bytes += out->bytes;
    return EXIT_DONE;
}

/* With --dense a composite is written as one tensor: its members do not go out on their own. */
static bool inside_decoded_head(Conversion *conversion, uint64_t i) {
    HurrayTensorInfo info;
    if (!conversion->options->dense) return false;
    if (model_info(conversion->model, i, &info) != EXIT_DONE || info.parent >= i) return false;
    for (uint64_t n = 0; n < conversion->selection.count; n++)
        if (conversion->selection.indices[n] == info.parent) return true;
    return false;
}

static void plan_clear(Plan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->tensors[i].own_name);
        hurray_descriptor_destroy(plan->tensors[i].descriptor);
    }
    free(plan->tensors);
    plan->tensors = NULL;
    plan->count = 0;
}

static int make_plan(Conversion *conversion, Plan *plan) {
    plan->count = 0;
    plan->tensors = calloc((size_t)conversion->selection.count + 1, sizeof *plan->tensors);
    int code = plan->tensors ? EXIT_DONE : report_failure(EXIT_SYSTEM, conversion->model->path, "no memory");
    for (uint64_t n = 0; n < conversion->selection.count && code == EXIT_DONE; n++)
        if (!inside_decoded_head(conversion, conversion->selection.indices[n])) code = plan_one(conversion, n, plan);
    return code;
}

static HurrayStatus append_export(void *ctx, const void *bytes, size_t len, const HurrayError **error) {
    HurrayExporter *exporter = ctx;
    HurrayStatus status = hurray_exporter_append(exporter, bytes, len);
    if (status != HURRAY_OK) *error = hurray_exporter_last_error(exporter);
    return status;
}

static uint64_t element_count(const HurrayDescriptor *descriptor) {
    uint64_t dims[HURRAY_MAX_RANK], count = 1;
    size_t rank = HURRAY_MAX_RANK;
    hurray_descriptor_shape(descriptor, dims, &rank);
    for (size_t k = 0; k < rank; k++) count *= dims[k];
    return count;
}

/* *whole: the tensor has to be loaded for that. */
static int decode_pieces(Transfer *transfer, const Outgoing *out, bool *whole) {
    Model *model = transfer->model;
    uint64_t count = element_count(out->descriptor), done = 0, left = out->bytes, n, bytes;
    uint8_t type = 0;
    hurray_descriptor_element_type_tag(out->descriptor, &type);
    uint64_t bits = type_bits(type), most = bits ? TRANSFER_PIECE / bits * 8 : 0; /* a multiple of 8 elements */
    int code = transfer_room(transfer);
    *whole = !most;
    if (code != EXIT_DONE || *whole) return code;
    do {
        n = count - done < most ? count - done : most;
        HurrayStatus status = hurray_loader_read_dense(model->loader, out->index, out->type, done, n, transfer->piece, TRANSFER_PIECE);
        *whole = status == HURRAY_ERR_UNSUPPORTED && done == 0;
        if (*whole) return EXIT_DONE;
        if (status != HURRAY_OK) return report_error(model->path, hurray_loader_last_error(model->loader));
        done += n;
        bytes = done < count ? n / 8 * bits : left;
        left -= bytes;
        code = transfer_memory(transfer, transfer->piece, bytes, bytes);
    } while (code == EXIT_DONE && done < count);
    return code;
}

/* Loads it, and has it decoded, in memory. */
static int decode_whole(Transfer *transfer, const Outgoing *out) {
    Model *model = transfer->model;
    HurrayTensorSet *set = NULL;
    HurrayTensor *tensor = NULL;
    HurrayItem *item = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    int code = transfer_load(transfer, out->index, out->bytes / 2, &set);
    if (code != EXIT_DONE) return code;
    hurray_tensor_set_get(set, 0, &tensor);
    HurrayTensorInfo info;
    code = model_info(model, out->index, &info);
    if (code == EXIT_DONE && info.member_count > 0) hurray_tensor_set_take_item(set, 0, &item);
    void *memory = malloc((size_t)out->bytes + 1);
    if (!memory) code = report_failure(EXIT_SYSTEM, model->path, "no memory for %llu bytes", (unsigned long long)out->bytes);
    if (code == EXIT_DONE) {
        HurrayStatus status = item ? hurray_item_dense(item, 0, out->type, memory, (size_t)out->bytes, &error)
                                   : hurray_tensor_dense(tensor, out->type, memory, (size_t)out->bytes, &error);
        if (status != HURRAY_OK) name_tensor(&error, out->name, out->name_len);
        if (status != HURRAY_OK)
            code = report_error(model->path, &error);
        else
            code = transfer_memory(transfer, memory, out->bytes, out->bytes - out->bytes / 2);
    }
    free(memory);
    hurray_item_destroy(&item);
    hurray_tensor_set_destroy(&set);
    return code;
}

static int decode_tensor(Transfer *transfer, const Outgoing *out) {
    bool whole = false;
    int code = decode_pieces(transfer, out, &whole);
    return whole ? decode_whole(transfer, out) : code;
}

/* The library speaks of what to ask for; here that is an option. */
static int report_refusal(const char *path, HurrayError *error) {
    const char *option = strcmp(error->field, "metadata") == 0  ? " (--kv-as-text)"
                         : strstr(error->message, "dense view") ? " (--dense)"
                                                                : "";
    size_t used = strlen(error->message);
    if (error->code == HURRAY_ERR_UNSUPPORTED && used + strlen(option) < sizeof error->message)
        memcpy(error->message + used, option, strlen(option) + 1);
    return report_error(path, error);
}

/* One file with `count` tensors of the plan. It appears under its name at the end; with kept, only when *kept is finished. */
static int export_file(Conversion *conversion, Transfer *transfer, const char *path, const Outgoing *tensors, size_t count,
                       const HurrayKvEntry *kv, size_t kv_count, HurrayTransport *kept) {
    HurrayTransport sink;
    HurrayExporter *exporter = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayExportOptions options = HURRAY_EXPORT_OPTIONS_INIT;
    options.flags = conversion->options->kv_text ? HURRAY_EXPORT_KV_AS_TEXT : 0u;
    HurrayExportEntry *entries = calloc(count + 1, sizeof *entries);
    if (!entries) return report_failure(EXIT_SYSTEM, path, "no memory");
    for (size_t i = 0; i < count; i++) {
        entries[i].name = tensors[i].name;
        entries[i].name_len = tensors[i].name_len;
        entries[i].descriptor = tensors[i].descriptor;
    }
    int code = EXIT_DONE;
    if (hurray_transport_create(path, NULL, &sink, &error) != HURRAY_OK) code = report_error(path, &error);
    if (code == EXIT_DONE && kept) {
        *kept = sink; /* the exporter gets the loan of it */
        sink.finish = NULL;
        sink.release = NULL;
    }
    if (code == EXIT_DONE &&
        hurray_exporter_new(&sink, HURRAY_FORMAT_SAFETENSORS, entries, count, kv, kv_count, &options, &exporter, &error) != HURRAY_OK) {
        hurray_transport_release(&sink);
        code = report_refusal(path, &error);
    }
    transfer->ctx = exporter;
    transfer->out = path;
    for (size_t place = 0; place < count && code == EXIT_DONE; place++) {
        size_t i = 0;
        if (interrupted) {
            code = EXIT_INTERRUPTED;
            break;
        }
        hurray_exporter_order(exporter, place, &i);
        const Outgoing *out = &tensors[i];
        code = out->decode ? decode_tensor(transfer, out) : transfer_buffers(transfer, out->index, out->descriptor);
    }
    if (code == EXIT_DONE && hurray_exporter_finish(exporter) != HURRAY_OK) code = report_error(path, hurray_exporter_last_error(exporter));
    hurray_exporter_destroy(&exporter);
    free(entries);
    return code;
}

/* Shards: tensors in the order of the plan, a new file when the next would go over the size. *starts has count + 1 places. */
static size_t cut_shards(const Plan *plan, uint64_t size, size_t *starts) {
    size_t shards = 0;
    uint64_t filled = 0;
    for (size_t i = 0; i < plan->count; i++) {
        if (i == 0 || plan->tensors[i].bytes > size - filled) {
            starts[shards++] = i;
            filled = 0;
        }
        filled += plan->tensors[i].bytes < size - filled ? plan->tensors[i].bytes : size - filled;
    }
    starts[shards] = plan->count;
    return shards;
}

static void shard_path(char *path, size_t size, const char *out, size_t shard, size_t shards) {
    size_t stem = strlen(out);
    if (stem > 12 && strcmp(out + stem - 12, ".safetensors") == 0) stem -= 12;
    snprintf(path, size, "%.*s-%05zu-of-%05zu.safetensors", (int)stem, out, shard + 1, shards);
}

static HurrayStatus write_all(HurrayTransport *sink, const unsigned char *bytes, size_t len) {
    while (len) {
        size_t n = 0;
        HurrayStatus status = sink->write(sink->ctx, bytes, len, &n);
        if (status != HURRAY_OK) return status;
        if (n == 0) return HURRAY_ERR_SINK_CLOSED;
        bytes += n;
        len -= n;
    }
    return HURRAY_OK;
}

static void index_path(char *path, size_t size, const char *out) {
    size_t stem = strlen(out);
    if (stem > 12 && strcmp(out + stem - 12, ".safetensors") == 0) stem -= 12;
    snprintf(path, size, "%.*s.safetensors.index.json", (int)stem, out);
}

static int write_index(const char *out, const Plan *plan, const size_t *starts, size_t shards, HurrayTransport *sink) {
    char path[4096], shard[4096];
    const unsigned char *text = NULL;
    size_t len = 0;
    HurrayError error = HURRAY_ERROR_INIT;
    index_path(path, sizeof path, out);
    yajl_gen json = yajl_gen_alloc(NULL);
    if (!json) return report_failure(EXIT_SYSTEM, path, "no memory");
    yajl_gen_config(json, yajl_gen_beautify, 1);
    yajl_gen_config(json, yajl_gen_indent_string, "  ");
    yajl_gen_map_open(json);
    json_key(json, "metadata");
    yajl_gen_map_open(json);
    json_key_u64(json, "total_size", plan->bytes);
    yajl_gen_map_close(json);
    json_key(json, "weight_map");
    yajl_gen_map_open(json);
    for (size_t s = 0; s < shards; s++) {
        shard_path(shard, sizeof shard, out, s, shards);
        const char *base = strrchr(shard, '/');
        for (size_t i = starts[s]; i < starts[s + 1]; i++) {
            json_text(json, plan->tensors[i].name, plan->tensors[i].name_len);
            json_word(json, base ? base + 1 : shard);
        }
    }
    yajl_gen_map_close(json);
    yajl_gen_map_close(json);
    yajl_gen_get_buf(json, &text, &len);
    int code = EXIT_DONE;
    if (hurray_transport_create(path, NULL, sink, &error) != HURRAY_OK)
        code = report_error(path, &error);
    else if (write_all(sink, text, len) != HURRAY_OK)
        code = report_failure(EXIT_SYSTEM, path, "writing failed: %s", strerror(errno));
    yajl_gen_free(json);
    return code;
}

/* None of the files appears before all are written; the index comes last. */
static int export_shards(Conversion *conversion, Transfer *transfer, const Plan *plan, const HurrayKvEntry *kv, size_t kv_count) {
    char path[4096];
    size_t *starts = calloc(plan->count + 2, sizeof *starts);
    if (!starts) return report_failure(EXIT_SYSTEM, conversion->out, "no memory");
    size_t shards = cut_shards(plan, conversion->options->shard_size, starts);
    HurrayTransport *files = calloc(shards + 1, sizeof *files);
    int code = files ? EXIT_DONE : report_failure(EXIT_SYSTEM, conversion->out, "no memory");
    for (size_t s = 0; s < shards && code == EXIT_DONE; s++) {
        shard_path(path, sizeof path, conversion->out, s, shards);
        code = export_file(conversion, transfer, path, plan->tensors + starts[s], starts[s + 1] - starts[s], kv, kv_count, &files[s]);
    }
    if (code == EXIT_DONE) code = write_index(conversion->out, plan, starts, shards, &files[shards]);
    for (size_t s = 0; s <= shards && code == EXIT_DONE; s++) {
        if (s < shards)
            shard_path(path, sizeof path, conversion->out, s, shards);
        else
            index_path(path, sizeof path, conversion->out);
        if (files[s].finish(files[s].ctx) != HURRAY_OK) code = report_failure(EXIT_SYSTEM, path, "writing failed: %s", strerror(errno));
    }
    for (size_t s = 0; files && s <= shards; s++)
        if (files[s].release) hurray_transport_release(&files[s]);
    free(files);
    free(starts);
    return code;
}

int convert_to_safetensors(Conversion *conversion) {
    Plan plan = {NULL, 0, 0};
    HurrayKvEntry *kv = NULL;
    size_t kv_count = 0;
    int code = make_plan(conversion, &plan);
    if (code == EXIT_DONE && !gather_kv(conversion->model, &kv, &kv_count)) code = EXIT_SYSTEM;
    if (code == EXIT_DONE) {
        Transfer transfer = {
            .model = conversion->model, .sink = append_export, .out = conversion->out, .bar = &conversion->bar, .total = plan.bytes};
        code = conversion->options->shard_size
                   ? export_shards(conversion, &transfer, &plan, kv, kv_count)
                   : export_file(conversion, &transfer, conversion->out, plan.tensors, plan.count, kv, kv_count, NULL);
        transfer_end(&transfer);
    }
    plan_clear(&plan);
    free(kv);
    return code;
}
