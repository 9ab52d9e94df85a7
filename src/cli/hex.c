/* A descriptor's canonical bytes as an annotated table: offset, bytes, field, meaning (docs/format.md sections 1 to 7). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "describe.h"

typedef struct Hex {
    const unsigned char *bytes;
    size_t len, at;
} Hex;

static uint64_t number(const Hex *hex, size_t at, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width && at + i < hex->len; i++) value |= (uint64_t)hex->bytes[at + i] << (8 * i);
    return value;
}

/* One row: the next `width` bytes, a field's name, its meaning. Long fields show their first 16 bytes. */
static void row(Hex *hex, size_t width, const char *field, const char *meaning) {
    if (width > hex->len - hex->at) width = hex->len - hex->at;
    char text[64] = "";
    size_t used = 0;
    for (size_t i = 0; i < width && i < 16; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%02x ", hex->bytes[hex->at + i]);
    if (width > 16) snprintf(text + used, sizeof text - used, "...");
    printf("%6zu  %-52s %-24s %s\n", hex->at, text, field, meaning);
    hex->at += width;
}

static uint64_t row_number(Hex *hex, size_t width, const char *field, const char *word) {
    char meaning[96];
    uint64_t value = number(hex, hex->at, width);
    if (width == 8 && value == UINT64_MAX)
        snprintf(meaning, sizeof meaning, "all ones%s%s", word ? " " : "", word ? word : "");
    else
        snprintf(meaning, sizeof meaning, "%" PRIu64 "%s%s", value, word ? " " : "", word ? word : "");
    row(hex, width, field, meaning);
    return value;
}

static void row_signed(Hex *hex, const char *field) {
    char meaning[32];
    snprintf(meaning, sizeof meaning, "%" PRId64, (int64_t)number(hex, hex->at, 8));
    row(hex, 8, field, meaning);
}

static void row_f64(Hex *hex, const char *field) {
    char meaning[40];
    uint64_t bits = number(hex, hex->at, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    snprintf(meaning, sizeof meaning, "%.17g", value);
    row(hex, 8, field, meaning);
}

static void rows(Hex *hex, size_t count, size_t width, const char *field) {
    for (size_t i = 0; i < count && hex->at < hex->len; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s[%zu]", field, i);
        row_number(hex, width, name, NULL);
    }
}

static void reserved(Hex *hex, size_t width) { row(hex, width, "reserved", "0"); }

static void tiled_rows(Hex *hex, size_t rank) {
    for (unsigned level = 0; hex->at < hex->len; level++) {
        rows(hex, rank, 8, "tile_shape");
        uint64_t outer = row_number(hex, 1, "outer", NULL), inner = row_number(hex, 1, "inner", NULL);
        reserved(hex, 2);
        for (size_t i = 0; outer == HURRAY_ORDER_STRIDED && i < rank; i++) row_signed(hex, "outer_stride");
        for (size_t i = 0; inner == HURRAY_ORDER_STRIDED && i < rank; i++) row_signed(hex, "inner_stride");
        if (inner != HURRAY_ORDER_TILED) return;
    }
}

static void layout_rows(Hex *hex, uint8_t tag, size_t rank) {
    switch (tag) {
    case HURRAY_LAYOUT_STRIDED:
        for (size_t i = 0; i < rank; i++) row_signed(hex, "stride");
        break;
    case HURRAY_LAYOUT_TILED: tiled_rows(hex, rank); break;
    case HURRAY_LAYOUT_MORTON: rows(hex, rank, 4, "bits"); break;
    case HURRAY_LAYOUT_COO:
        row_number(hex, 8, "nnz", NULL);
        row_number(hex, 1, "is_sorted", NULL);
        reserved(hex, 7);
        break;
    case HURRAY_LAYOUT_CSR:
    case HURRAY_LAYOUT_CSC:
        row_number(hex, 8, "nnz", NULL);
        reserved(hex, 8);
        break;
    case HURRAY_LAYOUT_CSF:
        row_number(hex, 8, "nnz", NULL);
        rows(hex, rank, 4, "mode_order");
        reserved(hex, 8);
        break;
    case HURRAY_LAYOUT_BLOCK_PAGED:
        row_number(hex, 4, "page_size", NULL);
        row_number(hex, 8, "num_pages", NULL);
        row_number(hex, 4, "paged_axis", NULL);
        row_number(hex, 4, "num_seqs", NULL);
        row_number(hex, 1, "kv_role", NULL);
        row_number(hex, 4, "layer_index", NULL);
        row_number(hex, 1, "index_type", NULL);
        reserved(hex, 6);
        break;
    case HURRAY_LAYOUT_COMPOSITE:
        row_number(hex, 1, "rule", NULL);
        row_number(hex, 1, "combine_op", NULL);
        reserved(hex, 2);
        row_number(hex, 4, "member_count", NULL);
        break;
    case HURRAY_LAYOUT_HILBERT:
        row_number(hex, 4, "order", NULL);
        row_number(hex, 4, "hilbert_rank", NULL);
        break;
    default:
        if (tag >= HURRAY_PRIVATE_FIRST) {
            row_number(hex, 8, "private id", NULL);
            size_t len = (size_t)row_number(hex, 4, "data_length", "bytes");
            if (len) row(hex, len, "private data", "");
        }
    }
}

static void buffer_rows(Hex *hex) {
    size_t count = (size_t)row_number(hex, 1, "buffer_count", NULL);
    for (size_t i = 0; i < count && hex->at < hex->len; i++) {
        char name[40];
        snprintf(name, sizeof name, "buffer[%zu].byte_size", i);
        row_number(hex, 8, name, "bytes");
        row_number(hex, 4, "  alignment", NULL);
        row_number(hex, 1, "  device_tag", device_word(hex->bytes[hex->at]));
        row_number(hex, 1, "  sync_mode", sync_word(hex->bytes[hex->at]));
        row_number(hex, 1, "  memory_class", memory_class_word(hex->bytes[hex->at]));
        reserved(hex, 1);
    }
}

static void quantization_rows(Hex *hex) {
    row_number(hex, 4, "quantization_length", "bytes");
    uint64_t scheme = row_number(hex, 1, "scheme", NULL);
    row_number(hex, 1, "version", NULL);
    row_number(hex, 2, "flags", NULL);
    if (scheme == HURRAY_QUANT_PER_TENSOR_AFFINE) {
        uint32_t bits = (uint32_t)number(hex, hex->at, 4);
        float scale;
        char meaning[32];
        memcpy(&scale, &bits, sizeof scale);
        snprintf(meaning, sizeof meaning, "%.9g", (double)scale);
        row(hex, 4, "scale", meaning);
        snprintf(meaning, sizeof meaning, "%" PRId32, (int32_t)number(hex, hex->at, 4));
        row(hex, 4, "zero_point", meaning);
        reserved(hex, 4);
        return;
    }
    row_number(hex, 4, "axis", NULL);
    if (scheme != HURRAY_QUANT_PER_CHANNEL_AFFINE) row_number(hex, 4, "block_size", NULL);
    row_number(hex, 4, "scale_buffer", NULL);
    if (scheme == HURRAY_QUANT_NF4 || scheme == HURRAY_QUANT_MXFP) return;
    row_number(hex, 4, "zero_point_buffer", NULL);
    row_number(hex, 1, "scale_type", type_word(hex->bytes[hex->at]));
    reserved(hex, 3);
}

static void statistics_rows(Hex *hex) {
    row_number(hex, 4, "computed_mask", NULL);
    reserved(hex, 4);
    row_number(hex, 8, "nnz", NULL);
    static const char *const names[] = {"sparsity_ratio", "value_min", "value_max", "value_abs_max", "value_mean", "value_stddev"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) row_f64(hex, names[i]);
    row_number(hex, 1, "nm_n", NULL);
    row_number(hex, 1, "nm_m", NULL);
    row_number(hex, 1, "has_nan", NULL);
    row_number(hex, 1, "has_inf", NULL);
    reserved(hex, 4);
}

static void extension_rows(Hex *hex) {
    row_number(hex, 4, "bit_width", NULL);
    static const char *const names[] = {"packing_factor", "is_float", "is_signed", "sign_bits", "exponent_bits", "mantissa_bits"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) row_number(hex, 1, names[i], NULL);
    reserved(hex, 2);
    row_number(hex, 4, "exponent_bias", NULL);
    row_number(hex, 1, "has_nan", NULL);
    row_number(hex, 1, "has_inf", NULL);
    reserved(hex, 2);
}

static void descriptor_rows(Hex *hex) {
    row(hex, 4, "magic", "HRRY");
    row_number(hex, 1, "version_major", NULL);
    row_number(hex, 1, "version_minor", NULL);
    row_number(hex, 4, "descriptor_length", "bytes");
    uint64_t flags = row_number(hex, 4, "flags", NULL);
    row_number(hex, 1, "type_tag", type_word(hex->bytes[hex->at]));
    uint8_t layout = hex->bytes[hex->at];
    row_number(hex, 1, "layout_tag", layout_word(layout));
    size_t rank = (size_t)row_number(hex, 4, "rank", NULL);
    rows(hex, rank, 8, "shape");
    row_number(hex, 8, "byte_offset", NULL);
    layout_rows(hex, layout, rank);
    buffer_rows(hex);
    if (flags & 1u) quantization_rows(hex);
    if (flags & 2u) {
        rows(hex, rank, 8, "parent_shape");
        rows(hex, rank, 8, "shard_offset");
    }
    if (flags & 8u) statistics_rows(hex);
    if (flags & 4u) extension_rows(hex);
    if (flags & 16u) {
        row_number(hex, 1, "role", hex->bytes[hex->at] ? "base" : "correction");
        reserved(hex, 15);
    }
}

int print_hex(const HurrayDescriptor *descriptor) {
    size_t len = 0;
    hurray_descriptor_encode(descriptor, NULL, &len);
    unsigned char *bytes = malloc(len ? len : 1);
    if (!bytes || hurray_descriptor_encode(descriptor, bytes, &len) != HURRAY_OK) {
        free(bytes);
        return report_failure(EXIT_SYSTEM, "descriptor", "no memory for %zu bytes", len);
    }
    Hex hex = {bytes, len, 0};
    printf("%6s  %-52s %-24s %s\n", "offset", "bytes", "field", "meaning");
    descriptor_rows(&hex);
    if (hex.at < hex.len) row(&hex, hex.len - hex.at, "rest", "");
    free(bytes);
    return EXIT_DONE;
}
