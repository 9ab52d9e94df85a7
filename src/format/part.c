#include "format/part.h"

const HryPlaces hry_places_none = {HRY_NO_OFFSET, HRY_NO_OFFSET, HRY_NO_OFFSET, HRY_NO_OFFSET, HRY_NO_OFFSET,
                                   HRY_NO_OFFSET, HRY_NO_OFFSET, HRY_NO_OFFSET, HRY_NO_OFFSET, HRY_NO_OFFSET};

HurrayStatus hry_part_short(HurrayError *error, const char *field, const HryCursor *cursor, uint64_t needed) {
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, field, cursor->offset,
                    "%s needs %llu bytes, but only %zu are left before the end that the descriptor states; the descriptor is damaged",
                    field, (unsigned long long)needed, cursor->left);
}

HurrayStatus hry_part_reserved(HryCursor *cursor, size_t len, const char *field, HurrayError *error) {
    bool nonzero;
    HryCursor before = *cursor;
    if (hry_cursor_zeros(cursor, len, &nonzero)) return HURRAY_OK;
    if (!nonzero) return hry_part_short(error, field, &before, len);
    size_t i = 0;
    while (before.at[i] == 0) i++;
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, field, before.offset + i,
                    "%s: a reserved byte is 0x%02X, expected 0; the descriptor is damaged or of an unknown kind", field, before.at[i]);
}

HurrayStatus hry_part_truth(HryCursor *cursor, const char *field, uint8_t *out, HurrayError *error) {
    uint64_t at = cursor->offset;
    if (!hry_cursor_u8(cursor, out)) return hry_part_short(error, field, cursor, 1);
    if (*out > 1) return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, field, at, "%s is %u, expected 0 or 1", field, *out);
    return HURRAY_OK;
}
