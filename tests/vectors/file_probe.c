/* Reads edited containers and prints what the library says of them. One line in: PATH MEND CUT AT:HEX,AT:HEX,...  (MEND 1: the index
 * checksum is put right; CUT: bytes kept, -1: all; "-": no edit). One line out, for a file: "no CODE" when it does not open, else
 * "ok" and for each tensor in write order its status and the CRC-32 of its buffers, then "items" and 0 or the status of the first
 * composite that does not hold. For a stream: "ok COUNT" or "no CODE". The bytes lie in a heap block of exactly their size. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "format/crc32c.h"
#include "format/container.h"
#include "hurray.h"
#include "hurray/core.h"

typedef struct Bytes {
    uint8_t *at;
    size_t len, position;
} Bytes;

static Bytes original;
static char original_path[4096];

static void load(const char *path) {
    if (strcmp(path, original_path) == 0) return;
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) exit(1);
    original.len = (size_t)ftell(file);
    rewind(file);
    free(original.at);
    original.at = malloc(original.len + 1);
    if (!original.at || fread(original.at, 1, original.len, file) != original.len) exit(1);
    fclose(file);
    snprintf(original_path, sizeof original_path, "%s", path);
}

static unsigned nibble(int c) { return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10); }

static void edit(Bytes *bytes, const char *edits) {
    while (*edits && *edits != '-' && *edits != '\n') {
        char *rest;
        size_t at = strtoull(edits, &rest, 10);
        for (edits = rest + 1; *edits && *edits != ',' && *edits != '\n'; edits += 2)
            if (at < bytes->len) bytes->at[at++] = (uint8_t)(nibble(edits[0]) << 4 | nibble(edits[1]));
        if (*edits == ',') edits++;
    }
}

static void mend(Bytes *bytes) {
    HurrayError error;
    HryHeader header = {.first_descriptor_offset = 64};
    HryTrailer trailer;
    if (bytes->len < HRY_SMALLEST_FILE || !(bytes->at[12] & HRY_FILE_INDEX_CRC)) return;
    uint8_t *place = bytes->at + bytes->len - HRY_TRAILER_SIZE;
    header.flags = HRY_FILE_INDEX_CRC;
    if (hry_trailer_decode(place, bytes->len, &header, &trailer, &error) != HURRAY_OK) return;
    trailer.index_crc32c = hry_crc32c(0, bytes->at + trailer.index_offset, trailer.index_length);
    hry_trailer_encode(&trailer, place);
}

static HurrayStatus read_at(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *out) {
    const Bytes *bytes = ctx;
    if (offset >= bytes->len)
        len = 0;
    else if (len > bytes->len - offset)
        len = bytes->len - (size_t)offset;
    if (len) memcpy(dst, bytes->at + offset, len);
    *out = len;
    return HURRAY_OK;
}

static HurrayStatus size_of(void *ctx, uint64_t *out) {
    *out = ((const Bytes *)ctx)->len;
    return HURRAY_OK;
}

static HurrayStatus read_next(void *ctx, uint8_t *dst, size_t len, size_t *out) {
    Bytes *bytes = ctx;
    read_at(ctx, bytes->position, dst, len, out);
    bytes->position += *out;
    return HURRAY_OK;
}

static uint32_t digest(const HurrayTensor *tensor) {
    HurrayBufferList *list = NULL;
    uint64_t count = 0;
    uLong sum = 0;
    hurray_tensor_buffers(tensor, &list);
    hurray_buffer_list_len(list, &count);
    for (uint64_t k = 0; k < count; k++) {
        HurrayBuffer *buffer = NULL;
        void *data = NULL;
        uint64_t size = 0;
        hurray_buffer_list_get(list, k, &buffer);
        hurray_buffer_data_ptr(buffer, &data);
        hurray_buffer_byte_size(buffer, &size);
        if (size) sum = crc32(sum, data, (uInt)size);
    }
    return (uint32_t)sum;
}

typedef struct Entry {
    uint64_t offset, i;
} Entry;

static int by_offset(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* All items from the top, as a stream of them would come; the first failure. */
static HurrayStatus all_items(HurrayFileReader *reader, const Entry *order, uint64_t count) {
    for (uint64_t p = 0; p < count;) {
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        HurrayItem *item = NULL;
        HurrayStatus status = hurray_file_reader_tensor_info(reader, order[p].i, &info);
        uint8_t layout = 0;
        uint64_t nodes = 1;
        if (status != HURRAY_OK) return status;
        hurray_descriptor_layout_tag(info.descriptor, &layout);
        if (layout == HURRAY_LAYOUT_COMPOSITE) {
            status = hurray_file_reader_read_composite(reader, info.name, info.name_len, &item);
            if (status != HURRAY_OK) return status;
            hurray_item_node_count(item, &nodes);
            hurray_item_destroy(&item);
        }
        p += nodes;
    }
    return HURRAY_OK;
}

static void probe_file(Bytes *bytes) {
    HurrayTransport transport = {.ctx = bytes, .read_at = read_at, .size = size_of};
    HurrayFileReader *reader = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    uint64_t count = 0;
    HurrayStatus status = hurray_file_reader_new_ex(&transport, NULL, &reader, &error);
    if (status != HURRAY_OK) {
        printf("no %d %s\n", (int)status, error.message);
        return;
    }
    hurray_file_reader_tensor_count(reader, &count);
    Entry *order = calloc(count + 1, sizeof *order);
    if (!order) exit(1);
    fputs("ok", stdout);
    HurrayFileReaderCore *core = NULL; /* places without reading descriptors */
    HurrayStep step;
    if (hurray_file_reader_core_new(bytes->len, NULL, &core, NULL) != HURRAY_OK) exit(1);
    while (hurray_file_reader_core_step(core, &step) == HURRAY_OK && step.kind == HURRAY_STEP_RANGE) {
        uint8_t *dst;
        size_t len, moved;
        hurray_file_reader_core_input_dst(core, &dst, &len);
        read_at(bytes, step.offset, dst, len, &moved);
        hurray_file_reader_core_report_filled(core, moved);
    }
    for (uint64_t i = 0; i < count; i++) {
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        hurray_file_reader_core_tensor_info(core, i, &info);
        order[i] = (Entry){info.descriptor_offset, i};
    }
    hurray_file_reader_core_destroy(&core);
    qsort(order, count, sizeof *order, by_offset);
    for (uint64_t p = 0; p < count; p++) {
        const uint8_t *name = NULL;
        size_t len = 0;
        HurrayTensor *tensor = NULL;
        hurray_file_reader_tensor_name(reader, order[p].i, &name, &len);
        status = hurray_file_reader_read_tensor(reader, name, len, &tensor);
        printf(" %d:%08" PRIx32, (int)status, tensor ? digest(tensor) : 0);
        if (status != HURRAY_OK && !hurray_file_reader_last_error(reader)->message[0]) exit(1);
        hurray_tensor_destroy(&tensor);
    }
    printf(" items %d\n", (int)all_items(reader, order, count));
    free(order);
    hurray_file_reader_destroy(&reader);
}

static void probe_stream(Bytes *bytes) {
    HurrayTransport transport = {.ctx = bytes, .read = read_next};
    HurrayReader *reader = NULL;
    HurrayStatus status = hurray_reader_new(&transport, NULL, &reader);
    uint64_t items = 0;
    while (status == HURRAY_OK) {
        HurrayItem *item = NULL;
        status = hurray_reader_next_item(reader, &item);
        if (status == HURRAY_OK) items++;
        hurray_item_destroy(&item);
    }
    if (status == HURRAY_END_OF_STREAM)
        printf("ok %" PRIu64 "\n", items);
    else
        printf("no %d %s\n", (int)status, hurray_reader_last_error(reader)->message);
    hurray_reader_destroy(&reader);
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        char *path = strtok(line, " "), *mended = strtok(NULL, " "), *cut = strtok(NULL, " "), *edits = strtok(NULL, " \n");
        if (!path || !mended || !cut || !edits) return 1;
        load(path);
        Bytes bytes = {.len = original.len};
        if (cut[0] != '-') bytes.len = strtoull(cut, NULL, 10);
        bytes.at = malloc(bytes.len ? bytes.len : 1);
        if (!bytes.at) return 1;
        memcpy(bytes.at, original.at, bytes.len < original.len ? bytes.len : original.len);
        edit(&bytes, edits);
        if (mended[0] == '1') mend(&bytes);
        size_t n = strlen(path);
        if (n > 7 && strcmp(path + n - 7, ".stream") == 0)
            probe_stream(&bytes);
        else
            probe_file(&bytes);
        free(bytes.at);
    }
    free(line);
    free(original.at);
    return 0;
}
