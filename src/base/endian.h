/* Little-endian loads and stores at any address. The format is little-endian; so is this code on any machine. */
#ifndef HRY_BASE_ENDIAN_H
#define HRY_BASE_ENDIAN_H

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HRY_LE16(v) __builtin_bswap16(v)
#define HRY_LE32(v) __builtin_bswap32(v)
#define HRY_LE64(v) __builtin_bswap64(v)
#else
#define HRY_LE16(v) (v)
#define HRY_LE32(v) (v)
#define HRY_LE64(v) (v)
#endif

static inline uint16_t hry_load_u16(const void *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return (uint16_t)HRY_LE16(v);
}
static inline uint32_t hry_load_u32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return HRY_LE32(v);
}
static inline uint64_t hry_load_u64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return HRY_LE64(v);
}
static inline float hry_load_f32(const void *p) {
    uint32_t bits = hry_load_u32(p);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static inline double hry_load_f64(const void *p) {
    uint64_t bits = hry_load_u64(p);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static inline void hry_store_u16(void *p, uint16_t v) {
    v = (uint16_t)HRY_LE16(v);
    memcpy(p, &v, sizeof v);
}
static inline void hry_store_u32(void *p, uint32_t v) {
    v = HRY_LE32(v);
    memcpy(p, &v, sizeof v);
}
static inline void hry_store_u64(void *p, uint64_t v) {
    v = HRY_LE64(v);
    memcpy(p, &v, sizeof v);
}
static inline void hry_store_f32(void *p, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    hry_store_u32(p, bits);
}
static inline void hry_store_f64(void *p, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    hry_store_u64(p, bits);
}

#endif
