/* CRC-32C (Castagnoli, reflected, start and final xor all ones): "123456789" gives E3069283. */
#ifndef HRY_FORMAT_CRC32C_H
#define HRY_FORMAT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The sum of what `sum` covers followed by these bytes. The sum of nothing is 0. */
uint32_t hry_crc32c(uint32_t sum, const void *bytes, size_t len);

/* The sum of two pieces, one after the other, from the sum of each; only the second one's length matters. */
uint32_t hry_crc32c_join(uint32_t first, uint32_t second, uint64_t second_len);

/* Without any library; the same answers. */
uint32_t hry_crc32c_portable(uint32_t sum, const void *bytes, size_t len);

#endif
