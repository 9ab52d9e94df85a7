#include "core/step.h"

const char *hry_unusable_name(uint32_t reason) {
    switch (reason) {
    case HURRAY_USABLE: return "USABLE";
    case HURRAY_UNUSABLE_LOST_READ_COUNT: return "LOST_READ_COUNT";
    case HURRAY_UNUSABLE_LOST_WRITE_COUNT: return "LOST_WRITE_COUNT";
    case HURRAY_UNUSABLE_TORN_ITEM: return "TORN_ITEM";
    case HURRAY_UNUSABLE_FAILED_OPEN: return "FAILED_OPEN";
    case HURRAY_UNUSABLE_BAD_INPUT: return "BAD_INPUT";
    default: return "POISONED";
    }
}

HurrayStatus hry_fail_unusable(HurrayError *error, uint32_t reason) {
    static const char *const why[] = {
        [HURRAY_UNUSABLE_LOST_READ_COUNT] = "bytes were read whose count was lost, so the position in the stream is unknown",
        [HURRAY_UNUSABLE_LOST_WRITE_COUNT] = "bytes were written whose count was lost, so nobody knows where the output ends",
        [HURRAY_UNUSABLE_TORN_ITEM] = "an item was begun in the output and not completed",
        [HURRAY_UNUSABLE_FAILED_OPEN] = "opening failed, so there is no index to read from",
        [HURRAY_UNUSABLE_BAD_INPUT] = "the input broke a rule of the format, so nobody knows where its next item begins",
        [HURRAY_UNUSABLE_POISONED] = "its driver gave it up"};
    const char *text = reason && reason < sizeof why / sizeof *why ? why[reason] : why[HURRAY_UNUSABLE_POISONED];
    return hry_fail(error, HURRAY_ERR_UNUSABLE, NULL, HRY_NO_OFFSET,
                    "unusable since an earlier failure (%s): %s; destroy it and begin anew", hry_unusable_name(reason), text);
}

HurrayStatus hry_fail_not_asked(HurrayError *error, uint32_t unusable, const char *step) {
    if (unusable) return hry_fail_unusable(error, unusable);
    return hry_fail(error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET, "nothing is asked for: step must have said %s", step);
}

HurrayStatus hry_fail_report(HurrayError *error, uint64_t offset, size_t reported, uint64_t asked) {
    return hry_fail(error, HURRAY_ERR_INVALID_REPORT, NULL, offset, "%zu bytes were reported where %llu were asked for; nothing changed",
                    reported, (unsigned long long)asked);
}
