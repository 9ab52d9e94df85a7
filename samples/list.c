/* Lists what is in a model, whatever its format, without reading a byte of its weights. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hurray/loader.h"

static HurrayError error = HURRAY_ERROR_INIT;

static const char *type_word(uint8_t type) {
    switch (type) {
    case HURRAY_TYPE_FLOAT32: return "float32";
    case HURRAY_TYPE_FLOAT16: return "float16";
    case HURRAY_TYPE_BFLOAT16: return "bfloat16";
    case HURRAY_TYPE_INT8: return "int8";
    case HURRAY_TYPE_UINT8: return "uint8";
    case HURRAY_TYPE_INT64: return "int64";
    default: return "other";
    }
}

static void list_metadata(const HurrayLoader *loader) {
    uint64_t count = 0;
    hurray_loader_kv_count(loader, &count);
    for (uint64_t i = 0; i < count; i++) {
        HurrayKvEntry entry;
        if (hurray_loader_kv_entry(loader, i, &entry) != HURRAY_OK) continue;
        printf("%.*s = ", (int)entry.key_len, (const char *)entry.key);
        switch (entry.value.kind) {
        case HURRAY_KV_STRING: printf("\"%.*s\"\n", (int)entry.value.data_len, (const char *)entry.value.data); break;
        case HURRAY_KV_INT64: printf("%" PRId64 "\n", entry.value.i64); break;
        case HURRAY_KV_UINT64: printf("%" PRIu64 "\n", entry.value.u64); break;
        case HURRAY_KV_FLOAT64: printf("%g\n", entry.value.f64); break;
        case HURRAY_KV_BOOL: printf("%s\n", entry.value.boolean ? "true" : "false"); break;
        default: printf("(%zu entries)\n", entry.value.data_len); break;
        }
    }
}

/* The bytes of all tensors, or HURRAY_NONE. */
static uint64_t list_tensors(HurrayLoader *loader) {
    uint64_t count = 0, total = 0;
    hurray_loader_tensor_count(loader, &count);
    for (uint64_t i = 0; i < count; i++) {
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        uint64_t shape[64];
        size_t rank = 64;
        uint8_t type = 0;
        if (hurray_loader_tensor_info(loader, i, &info) != HURRAY_OK) {
            error = *hurray_loader_last_error(loader);
            return HURRAY_NONE;
        }
        printf("%.*s", (int)info.name_len, (const char *)info.name);
        if (info.fault) { /* listed, but cannot be loaded; the other tensors can */
            printf(": %s\n", info.fault->message);
            continue;
        }
        hurray_descriptor_element_type_tag(info.descriptor, &type);
        hurray_descriptor_shape(info.descriptor, shape, &rank);
        printf("  %s  [", type_word(type));
        for (size_t d = 0; d < rank; d++) printf("%s%" PRIu64, d ? ", " : "", shape[d]);
        printf("]  %" PRIu64 " bytes at %" PRIu64 "\n", info.data_length, info.data_offset);
        total += info.data_length;
    }
    return total;
}

/* A small safetensors file, as another program would leave it. */
static int make_input(const char *path) {
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                                 "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[24,28]}}";
    const uint8_t length[8] = {sizeof header - 1}, payload[28] = {0};
    FILE *file = fopen(path, "wb");
    if (!file) return 0;
    fwrite(length, 1, sizeof length, file);
    fwrite(header, 1, sizeof header - 1, file);
    fwrite(payload, 1, sizeof payload, file);
    return fclose(file) == 0;
}

int main(int argc, char **argv) {
    const char *path = argc == 2 ? argv[1] : "sample_list.safetensors";
    HurrayLoader *loader = NULL;
    uint64_t total = HURRAY_NONE;
    if (argc != 2 && !make_input(path)) return 1;
    if (hurray_loader_open(path, NULL, &loader, &error) == HURRAY_OK) {
        list_metadata(loader);
        total = list_tensors(loader);
    }
    hurray_loader_destroy(&loader);
    if (total == HURRAY_NONE) {
        fprintf(stderr, "%s: %s: %s\n", path, hurray_status_name(error.code), error.message);
        return 1;
    }
    printf("%" PRIu64 " bytes of weights\n", total);
    return argc == 2 || total == 28 ? 0 : 1;
}
