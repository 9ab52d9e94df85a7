#include "format/element.h"

#include <string.h>

#include "base/checked.h"

typedef struct ElementRow {
    const char *name;
    uint8_t bits;
    uint8_t kind;
} ElementRow;

static const ElementRow rows[0x52] = {
    [HURRAY_TYPE_FLOAT16] = {"float16", 16, HRY_ELEMENT_FLOAT},
    [HURRAY_TYPE_BFLOAT16] = {"bfloat16", 16, HRY_ELEMENT_FLOAT},
    [HURRAY_TYPE_FLOAT32] = {"float32", 32, HRY_ELEMENT_FLOAT},
    [HURRAY_TYPE_FLOAT64] = {"float64", 64, HRY_ELEMENT_FLOAT},
    [HURRAY_TYPE_INT8] = {"int8", 8, HRY_ELEMENT_SIGNED},
    [HURRAY_TYPE_UINT8] = {"uint8", 8, HRY_ELEMENT_UNSIGNED},
    [HURRAY_TYPE_INT16] = {"int16", 16, HRY_ELEMENT_SIGNED},
    [HURRAY_TYPE_UINT16] = {"uint16", 16, HRY_ELEMENT_UNSIGNED},
    [HURRAY_TYPE_INT32] = {"int32", 32, HRY_ELEMENT_SIGNED},
    [HURRAY_TYPE_UINT32] = {"uint32", 32, HRY_ELEMENT_UNSIGNED},
    [HURRAY_TYPE_INT64] = {"int64", 64, HRY_ELEMENT_SIGNED},
    [HURRAY_TYPE_UINT64] = {"uint64", 64, HRY_ELEMENT_UNSIGNED},
    [HURRAY_TYPE_BOOL] = {"bool", 1, HRY_ELEMENT_BOOL},
    [HURRAY_TYPE_FLOAT8_E4M3] = {"float8_e4m3", 8, HRY_ELEMENT_FLOAT},
    [HURRAY_TYPE_FLOAT8_E5M2] = {"float8_e5m2", 8, HRY_ELEMENT_FLOAT},
    [HURRAY_TYPE_FLOAT8_E8M0] = {"float8_e8m0", 8, HRY_ELEMENT_SCALE},
    [HURRAY_TYPE_FLOAT4_E2M1] = {"float4_e2m1", 4, HRY_ELEMENT_FLOAT},
    [HURRAY_TYPE_FLOAT6_E2M3] = {"float6_e2m3", 6, HRY_ELEMENT_FLOAT},
    [HURRAY_TYPE_FLOAT6_E3M2] = {"float6_e3m2", 6, HRY_ELEMENT_FLOAT},
    [HURRAY_TYPE_FLOAT128] = {"float128", 128, HRY_ELEMENT_FLOAT},
    [HURRAY_TYPE_INT4] = {"int4", 4, HRY_ELEMENT_SIGNED},
    [HURRAY_TYPE_UINT4] = {"uint4", 4, HRY_ELEMENT_UNSIGNED},
    [HURRAY_TYPE_INT2] = {"int2", 2, HRY_ELEMENT_SIGNED},
    [HURRAY_TYPE_UINT2] = {"uint2", 2, HRY_ELEMENT_UNSIGNED},
    [HURRAY_TYPE_COMPLEX64] = {"complex64", 64, HRY_ELEMENT_COMPLEX},
    [HURRAY_TYPE_COMPLEX128] = {"complex128", 128, HRY_ELEMENT_COMPLEX},
};

#define ROW_COUNT (sizeof rows / sizeof *rows)

bool hry_element_is_listed(uint8_t tag) { return tag < ROW_COUNT && rows[tag].name; }

HryElementKind hry_element_kind(uint8_t tag) { return tag < ROW_COUNT ? (HryElementKind)rows[tag].kind : HRY_ELEMENT_UNKNOWN; }

uint32_t hry_element_bits(uint8_t tag) { return tag < ROW_COUNT ? rows[tag].bits : 0; }

const char *hry_element_name(uint8_t tag) {
    if (hry_element_is_listed(tag)) return rows[tag].name;
    return hry_tag_is_private(tag) ? "private" : "unknown";
}

bool hry_element_find(const char *name, uint8_t *tag) {
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].name && strcmp(rows[i].name, name) == 0) {
            *tag = (uint8_t)i;
            return true;
        }
    return false;
}

void hry_element_integer_range(uint8_t tag, int64_t *least, int64_t *greatest) {
    uint32_t bits = hry_element_bits(tag);
    bool is_signed = hry_element_kind(tag) == HRY_ELEMENT_SIGNED;
    *least = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
    *greatest = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
}

bool hry_bits_bytes(uint64_t n, uint32_t bits, uint64_t *out) {
    if (bits == 6) return hry_mul_u64(hry_div_up(n, 4), 3, out);
    if (bits >= 8) return hry_mul_u64(n, bits / 8, out);
    *out = hry_div_up(n, 8 / bits);
    return true;
}

bool hry_element_bytes(uint8_t tag, uint64_t n, uint64_t *out) {
    uint32_t bits = hry_element_bits(tag);
    return bits && hry_bits_bytes(n, bits, out);
}
