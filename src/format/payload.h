/* The bytes of one buffer as the functions that look at contents see them. */
#ifndef HRY_FORMAT_PAYLOAD_H
#define HRY_FORMAT_PAYLOAD_H

#include <stdint.h>

typedef struct HryBytes {
    const uint8_t *data; /* host memory, any alignment; may be NULL when size is 0 */
    uint64_t size;       /* at least what the descriptor's handle says */
} HryBytes;

#endif
