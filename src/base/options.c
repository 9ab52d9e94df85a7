#include "base/options.h"

#include <stdint.h>
#include <string.h>

HurrayStatus hry_options_read(void *out, size_t out_size, size_t first_size, const void *user, const char *what, HurrayError *error) {
    uint32_t size;
    if (!user) return HURRAY_OK;
    memcpy(&size, user, sizeof size);
    if (size < first_size)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, what, HRY_NO_OFFSET,
                        "%s.struct_size is %u, expected at least %zu; initialise it with its _INIT macro", what, (unsigned)size, first_size);
    if (size > out_size) {
        const unsigned char *tail = (const unsigned char *)user + out_size;
        for (size_t i = 0; i < size - out_size; i++)
            if (tail[i])
                return hry_fail(error, HURRAY_ERR_UNSUPPORTED, what, HRY_NO_OFFSET,
                                "%s uses a member of a newer release (byte %zu is set); this library knows %zu bytes", what, out_size + i, out_size);
    }
    memcpy(out, user, size < out_size ? size : out_size);
    size = (uint32_t)out_size;
    memcpy(out, &size, sizeof size);
    return HURRAY_OK;
}

HurrayStatus hry_result_write(void *user, size_t first_size, const void *latest, size_t latest_size) {
    uint32_t size;
    memcpy(&size, user, sizeof size);
    if (size < first_size) return HURRAY_ERR_INVALID_ARGUMENT;
    size_t both = size < latest_size ? size : latest_size;
    memcpy(user, latest, both);
    memset((char *)user + both, 0, size - both);
    memcpy(user, &size, sizeof size);
    return HURRAY_OK;
}
