/* What the four cores share: the request vocabulary is the public HurrayStep; here is the state behind "unusable". */
#ifndef HRY_CORE_STEP_H
#define HRY_CORE_STEP_H

#include "base/fail.h"
#include "hurray/core.h"

static inline HurrayStep hry_step(uint32_t kind, uint32_t reason, uint64_t offset, uint64_t len) {
    HurrayStep step = {.kind = kind, .reason = reason, .offset = offset, .len = len};
    return step;
}

/* "LOST_READ_COUNT" ... for messages. */
const char *hry_unusable_name(uint32_t reason);
/* UNUSABLE with the reason in words. */
HurrayStatus hry_fail_unusable(HurrayError *error, uint32_t reason);
/* A reader that was told of bytes: it asks for none (unusable: why not, else step has not said `step`), or asks for only so many. */
HurrayStatus hry_fail_not_asked(HurrayError *error, uint32_t unusable, const char *step);
HurrayStatus hry_fail_report(HurrayError *error, uint64_t offset, size_t reported, uint64_t asked);

#endif
