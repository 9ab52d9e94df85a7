#include "elements.h"

#include <inttypes.h>
#include <string.h>

bool elements_printable(uint8_t type) {
    switch (type) {
    case HURRAY_TYPE_FLOAT32:
    case HURRAY_TYPE_FLOAT64:
    case HURRAY_TYPE_INT8:
    case HURRAY_TYPE_UINT8:
    case HURRAY_TYPE_INT16:
    case HURRAY_TYPE_UINT16:
    case HURRAY_TYPE_INT32:
    case HURRAY_TYPE_UINT32:
    case HURRAY_TYPE_INT64:
    case HURRAY_TYPE_UINT64:
    case HURRAY_TYPE_BOOL:
    case HURRAY_TYPE_INT4:
    case HURRAY_TYPE_UINT4:
    case HURRAY_TYPE_INT2:
    case HURRAY_TYPE_UINT2:
    case HURRAY_TYPE_COMPLEX64:
    case HURRAY_TYPE_COMPLEX128: return true;
    default: return false;
    }
}

static uint64_t whole(const unsigned char *bytes, unsigned width) {
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static double f32(const unsigned char *bytes) {
    uint32_t bits = (uint32_t)whole(bytes, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double f64(const unsigned char *bytes) {
    uint64_t bits = whole(bytes, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* value as a signed number of `bits` bits */
static int64_t sign_extend(uint64_t value, unsigned bits) {
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return (int64_t)((value ^ sign) - sign);
}

void elements_print(uint8_t type, const void *memory, uint64_t count) {
    const unsigned char *bytes = memory;
    unsigned bits = (unsigned)type_bits(type), width = bits / 8;
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *at = bytes + i * width;
        uint64_t small = 0;
        char text[80];
        int n = 0;
        if (bits < 8) small = ((unsigned)bytes[i * bits / 8] >> (i * bits % 8)) & ((1u << bits) - 1);
        switch (type) {
        case HURRAY_TYPE_FLOAT32: n = snprintf(text, sizeof text, "%.9g\n", f32(at)); break;
        case HURRAY_TYPE_FLOAT64: n = snprintf(text, sizeof text, "%.17g\n", f64(at)); break;
        case HURRAY_TYPE_COMPLEX64: n = snprintf(text, sizeof text, "%.9g %.9g\n", f32(at), f32(at + 4)); break;
        case HURRAY_TYPE_COMPLEX128: n = snprintf(text, sizeof text, "%.17g %.17g\n", f64(at), f64(at + 8)); break;
        case HURRAY_TYPE_INT8:
        case HURRAY_TYPE_INT16:
        case HURRAY_TYPE_INT32:
        case HURRAY_TYPE_INT64: n = snprintf(text, sizeof text, "%" PRId64 "\n", sign_extend(whole(at, width), bits)); break;
        case HURRAY_TYPE_INT4:
        case HURRAY_TYPE_INT2: n = snprintf(text, sizeof text, "%" PRId64 "\n", sign_extend(small, bits)); break;
        case HURRAY_TYPE_UINT4:
        case HURRAY_TYPE_UINT2:
        case HURRAY_TYPE_BOOL: n = snprintf(text, sizeof text, "%" PRIu64 "\n", small); break;
        default: n = snprintf(text, sizeof text, "%" PRIu64 "\n", whole(at, width)); break;
        }
        if (!write_output(text, (size_t)n)) return;
    }
}
