/* hurray devices: what this machine has. */
#include <string.h>

#include "args.h"
#include "json.h"

enum { OPTION_FREE = 1 };

static const Option options[] = {{OPTION_FREE, "free", NULL, "ask for free memory too (this makes a context on each device)"}};

static void device_json(yajl_gen json, uint32_t i, const HurrayDeviceInfo *info, bool with_free) {
    char name[24];
    snprintf(name, sizeof name, "cuda:%u", (unsigned)i);
    yajl_gen_map_open(json);
    json_key_word(json, "device", name);
    json_key_word(json, "name", info->name);
    json_key_word(json, "pci", info->pci);
    json_key_word(json, "uuid", info->uuid);
    json_key_i64(json, "numa_node", info->numa_node);
    json_key_u64(json, "total_bytes", info->total_bytes);
    if (with_free) json_key_u64(json, "free_bytes", info->free_bytes);
    yajl_gen_map_close(json);
}

static void host_json(yajl_gen json, const HurrayHostInfo *host) {
    json_key(json, "host");
    yajl_gen_map_open(json);
    json_key_u64(json, "cores", host->cores);
    json_key_u64(json, "numa_nodes", host->numa_nodes);
    json_key_u64(json, "memory_bytes", host->memory_bytes);
    json_key(json, "pinned_limit");
    if (host->pinned_limit == HURRAY_NONE)
        yajl_gen_null(json);
    else
        json_u64(json, host->pinned_limit);
    json_key_u64(json, "page_size", host->page_size);
    json_key_u64(json, "huge_page_size", host->huge_page_size);
    json_key_bool(json, "io_uring", host->uring != 0);
    if (!host->uring) json_key_word(json, "io_uring_reason", host->uring_reason);
    yajl_gen_map_close(json);
}

static void host_text(const HurrayHostInfo *host) {
    printf("host          %u core%s, %u NUMA node%s, %s of memory\n", (unsigned)host->cores, host->cores == 1 ? "" : "s",
           (unsigned)host->numa_nodes, host->numa_nodes == 1 ? "" : "s", bytes_word(host->memory_bytes));
    printf("pages         %s, huge %s\n", binary_word(host->page_size), host->huge_page_size ? binary_word(host->huge_page_size) : "none");
    printf("pinned limit  %s\n", host->pinned_limit == HURRAY_NONE ? "none" : binary_word(host->pinned_limit));
    printf("io_uring      %s%s\n", host->uring ? "yes" : "no: ", host->uring ? "" : host->uring_reason);
}

static int list(const Output *output, bool with_free) {
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayHostInfo host = HURRAY_HOST_INFO_INIT;
    uint32_t count = 0;
    int code = EXIT_DONE;
    if (hurray_host_info(&host, &error) != HURRAY_OK) return report_error("host", &error);
    HurrayStatus status = hurray_device_count(HURRAY_DEVICE_CUDA, &count, &error);
    if (status != HURRAY_OK) code = report_error("cuda", &error);
    HurrayError why = HURRAY_ERROR_INIT;
    HurrayDeviceInfo nobody = HURRAY_DEVICE_INFO_INIT;
    if (count == 0) hurray_device_info(HURRAY_DEVICE_CUDA, 0, 0, &nobody, &why); /* the message says why there is none */
    yajl_gen json = output->json ? json_begin() : NULL;
    if (json) {
        yajl_gen_map_open(json);
        json_key(json, "devices");
        yajl_gen_array_open(json);
    }
    for (uint32_t i = 0; i < count; i++) {
        HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
        if (hurray_device_info(HURRAY_DEVICE_CUDA, (int32_t)i, with_free ? HURRAY_DEVICE_FREE_BYTES : 0, &info, &error) != HURRAY_OK) {
            code = report_error("cuda", &error);
            continue;
        }
        if (json)
            device_json(json, i, &info, with_free);
        else {
            printf("cuda:%-8u %s, %s, node %d, %s, %s", (unsigned)i, info.name, info.pci, (int)info.numa_node, info.uuid,
                   bytes_word(info.total_bytes));
            if (with_free) printf(", %s free", bytes_word(info.free_bytes));
            putchar('\n');
        }
    }
    if (json) {
        yajl_gen_array_close(json);
        if (count == 0) json_key_word(json, "reason", why.message);
        host_json(json, &host);
        yajl_gen_map_close(json);
        json_end(json);
    } else {
        if (count == 0) printf("cuda          none: %s\n", why.message);
        host_text(&host);
    }
    return code;
}

static int run(const Command *command, int argc, char **argv) {
    Args args;
    bool with_free = false;
    int id, count;
    args_begin(&args, command, argc, argv);
    while ((id = args_next(&args)) > 0)
        if (id == OPTION_FREE) with_free = true;
    args_end(&args);
    if (id != ARG_END) return id == ARG_HELP ? EXIT_DONE : EXIT_USAGE;
    args_rest(&args, &count);
    if (count) return report_usage("devices", "expected no arguments, got %d", count);
    return list(&args.output, with_free);
}

const Command command_devices = {"devices",
                                 "devices [--json] [--free]",
                                 "show devices, NUMA nodes, pinned limit, io_uring",
                                 NULL,
                                 options,
                                 sizeof options / sizeof *options,
                                 true,
                                 run};
