/* The smallest driver of a file reader core: bytes in memory, at most `every` a report. */
#ifndef HRY_TESTS_FILE_DRIVE_H
#define HRY_TESTS_FILE_DRIVE_H

#include <string.h>

#include "hurray/core.h"

typedef struct FileDrive {
    const uint8_t *bytes;
    size_t len, every; /* every 0: all that was asked for */
    uint64_t ranges, waits, reported;
    uint64_t offsets[64], lens[64]; /* of the first ranges */
    size_t tail;                    /* bytes a range: a step repeated after a report of a part is the same range's rest */
} FileDrive;

/* Steps and reports until something else is said than RANGE or WAIT; that step. */
static inline HurrayStatus file_drive(FileDrive *drive, HurrayFileReaderCore *core, HurrayStep *step) {
    for (;;) {
        HurrayStatus status = hurray_file_reader_core_step(core, step);
        if (status != HURRAY_OK) return status;
        if (step->kind == HURRAY_STEP_WAIT) {
            drive->waits++;
            continue;
        }
        if (step->kind != HURRAY_STEP_RANGE) return HURRAY_OK;
        uint8_t *dst;
        size_t len;
        status = hurray_file_reader_core_input_dst(core, &dst, &len);
        if (status != HURRAY_OK) return status;
        if (len != step->len) return HURRAY_ERR_INTERNAL;
        if (drive->tail != step->len) { /* not the rest of the last one */
            if (drive->ranges < 64) {
                drive->offsets[drive->ranges] = step->offset;
                drive->lens[drive->ranges] = step->len;
            }
            drive->ranges++;
        }
        if (drive->every && len > drive->every) len = drive->every;
        if (step->offset >= drive->len) len = 0;
        else if (len > drive->len - step->offset) len = drive->len - step->offset;
        if (len) memcpy(dst, drive->bytes + step->offset, len);
        drive->tail = (size_t)step->len - len;
        if (drive->tail == 0) drive->tail = SIZE_MAX;
        drive->reported += len;
        status = hurray_file_reader_core_report_filled(core, len);
        if (status != HURRAY_OK) return status;
    }
}

#endif
