/* What every handle with calls of its own has: a busy flag (reentrance, two threads) and its last error.
 *
 *     HurrayStatus status = hry_handle_enter(&reader->handle);   // BUSY: do nothing else
 *     if (status != HURRAY_OK) return status;
 *     ... work that fills reader->handle.error on failure ...
 *     return hry_handle_leave(&reader->handle, status);
 */
#ifndef HRY_BASE_HANDLE_H
#define HRY_BASE_HANDLE_H

#include <stdatomic.h>

#include "base/fail.h"

typedef struct HryHandle {
    atomic_flag busy;
    HurrayError error;
} HryHandle;

static inline void hry_handle_init(HryHandle *handle) {
    atomic_flag_clear(&handle->busy);
    hry_error_clear(&handle->error);
}

static inline HurrayStatus hry_handle_enter(HryHandle *handle) {
    if (atomic_flag_test_and_set_explicit(&handle->busy, memory_order_acquire)) return HURRAY_ERR_BUSY;
    hry_error_clear(&handle->error);
    return HURRAY_OK;
}

/* A failure without a text gets the status's sentence, so that no message is ever empty. */
static inline HurrayStatus hry_handle_leave(HryHandle *handle, HurrayStatus status) {
    if (status < 0 && handle->error.code != status)
        hry_fail(&handle->error, status, NULL, HRY_NO_OFFSET, "%s", hry_status_sentence(status));
    atomic_flag_clear_explicit(&handle->busy, memory_order_release);
    return status;
}

#endif
