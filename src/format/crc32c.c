#include "format/crc32c.h"

#include "base/endian.h"

#ifdef HRY_HAVE_ISAL
#include <isa-l/crc.h>
#endif

#define POLYNOMIAL UINT32_C(0x82F63B78)

/* Eight tables of 256 words, made from the words of the eight single bits: a table is linear in its index. */
#define WORD(i, a, b, c, d, e, f, g, h)                                                                                                    \
    (((i)&1 ? a : 0) ^ ((i)&2 ? b : 0) ^ ((i)&4 ? c : 0) ^ ((i)&8 ? d : 0) ^ ((i)&16 ? e : 0) ^ ((i)&32 ? f : 0) ^ ((i)&64 ? g : 0) ^      \
     ((i)&128 ? h : 0))
#define FOUR(i, ...) WORD(i, __VA_ARGS__), WORD((i) + 1, __VA_ARGS__), WORD((i) + 2, __VA_ARGS__), WORD((i) + 3, __VA_ARGS__)
#define SIXTEEN(i, ...) FOUR(i, __VA_ARGS__), FOUR((i) + 4, __VA_ARGS__), FOUR((i) + 8, __VA_ARGS__), FOUR((i) + 12, __VA_ARGS__)
#define QUARTER(i, ...)                                                                                                                    \
    SIXTEEN(i, __VA_ARGS__), SIXTEEN((i) + 16, __VA_ARGS__), SIXTEEN((i) + 32, __VA_ARGS__), SIXTEEN((i) + 48, __VA_ARGS__)
#define ALL(...) QUARTER(0, __VA_ARGS__), QUARTER(64, __VA_ARGS__), QUARTER(128, __VA_ARGS__), QUARTER(192, __VA_ARGS__)

static const uint32_t slice[8][256] = {
    {ALL(0xF26B8303, 0xE13B70F7, 0xC79A971F, 0x8AD958CF, 0x105EC76F, 0x20BD8EDE, 0x417B1DBC, 0x82F63B78)},
    {ALL(0x13A29877, 0x274530EE, 0x4E8A61DC, 0x9D14C3B8, 0x3FC5F181, 0x7F8BE302, 0xFF17C604, 0xFBC3FAF9)},
    {ALL(0xA541927E, 0x4F6F520D, 0x9EDEA41A, 0x38513EC5, 0x70A27D8A, 0xE144FB14, 0xC76580D9, 0x8B277743)},
    {ALL(0xDD45AAB8, 0xBF672381, 0x7B2231F3, 0xF64463E6, 0xE964B13D, 0xD725148B, 0xABA65FE7, 0x52A0C93F)},
    {ALL(0x38116FAC, 0x7022DF58, 0xE045BEB0, 0xC5670B91, 0x8F2261D3, 0x1BA8B557, 0x37516AAE, 0x6EA2D55C)},
    {ALL(0xEF306B19, 0xDB8CA0C3, 0xB2F53777, 0x6006181F, 0xC00C303E, 0x85F4168D, 0x0E045BEB, 0x1C08B7D6)},
    {ALL(0x68032CC8, 0xD0065990, 0xA5E0C5D1, 0x4E2DFD53, 0x9C5BFAA6, 0x3D5B83BD, 0x7AB7077A, 0xF56E0EF4)},
    {ALL(0x493C7D27, 0x9278FA4E, 0x211D826D, 0x423B04DA, 0x847609B4, 0x0D006599, 0x1A00CB32, 0x34019664)},
};

uint32_t hry_crc32c_portable(uint32_t sum, const void *bytes, size_t len) {
    const uint8_t *at = bytes;
    uint32_t state = ~sum;
    for (; len >= 8; at += 8, len -= 8) {
        uint32_t low = hry_load_u32(at) ^ state, high = hry_load_u32(at + 4);
        state = slice[7][low & 255] ^ slice[6][low >> 8 & 255] ^ slice[5][low >> 16 & 255] ^ slice[4][low >> 24] ^ slice[3][high & 255] ^
                slice[2][high >> 8 & 255] ^ slice[1][high >> 16 & 255] ^ slice[0][high >> 24];
    }
    for (; len; at++, len--) state = state >> 8 ^ slice[0][(state ^ *at) & 255];
    return ~state;
}

uint32_t hry_crc32c(uint32_t sum, const void *bytes, size_t len) {
#ifdef HRY_HAVE_ISAL
    uint32_t state = ~sum;
    const uint8_t *at = bytes;
    while (len) {
        int step = len > (UINT32_C(1) << 30) ? 1 << 30 : (int)len;
        state = crc32_iscsi((unsigned char *)(uintptr_t)at, step, state);
        at += step;
        len -= (size_t)step;
    }
    return ~state;
#else
    return hry_crc32c_portable(sum, bytes, len);
#endif
}

/* a x b modulo the polynomial, both reflected (the highest bit is x^0). */
static uint32_t multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1) {
        if (a & bit) product ^= b;
        b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

uint32_t hry_crc32c_join(uint32_t first, uint32_t second, uint64_t second_len) {
    uint32_t power = UINT32_C(1) << 23; /* x^8: one byte of zeros appended */
    for (; second_len; second_len >>= 1) {
        if (second_len & 1) first = multiply(power, first);
        power = multiply(power, power);
    }
    return first ^ second;
}
