#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

typedef struct StatusRow {
    HurrayStatus status;
    const char *name;
    const char *sentence;
} StatusRow;

static const StatusRow rows[] = {
    {HURRAY_OK, "HURRAY_OK", "done"},
    {HURRAY_END_OF_STREAM, "HURRAY_END_OF_STREAM", "the stream ended cleanly between two items"},
    {HURRAY_WAIT, "HURRAY_WAIT", "the destination has nothing free at the moment; ask again"},
    {HURRAY_ERR_INVALID_MAGIC, "HURRAY_ERR_INVALID_MAGIC", "the bytes do not begin as a Hurray object does"},
    {HURRAY_ERR_VERSION_MISMATCH, "HURRAY_ERR_VERSION_MISMATCH", "the major version is not one that this library reads"},
    {HURRAY_ERR_INVALID_LAYOUT, "HURRAY_ERR_INVALID_LAYOUT", "a layout, size, alignment or composite rule of the format is broken"},
    {HURRAY_ERR_INVALID_TYPE, "HURRAY_ERR_INVALID_TYPE", "an element type, device tag or memory class is not one of the format"},
    {HURRAY_ERR_BUFFER_TOO_SMALL, "HURRAY_ERR_BUFFER_TOO_SMALL", "the caller's memory is too small; the length needed was returned"},
    {HURRAY_ERR_NULL_POINTER, "HURRAY_ERR_NULL_POINTER", "a required pointer is NULL"},
    {HURRAY_ERR_INTERNAL_PANIC, "HURRAY_ERR_INTERNAL_PANIC", "never returned by this library"},
    {HURRAY_ERR_INVALID_SYNC_MODE, "HURRAY_ERR_INVALID_SYNC_MODE", "the synchronisation mode is not legal here"},
    {HURRAY_ERR_SYNC_MODE_MISMATCH, "HURRAY_ERR_SYNC_MODE_MISMATCH", "the hand-off contradicts the buffer's declared mode"},
    {HURRAY_ERR_INTERNAL, "HURRAY_ERR_INTERNAL", "a defect of this library; please report it"},
    {HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "HURRAY_ERR_INDEX_OUT_OF_BOUNDS", "an index is not below its count"},
    {HURRAY_ERR_TRANSPORT, "HURRAY_ERR_TRANSPORT", "reading or writing failed"},
    {HURRAY_ERR_NOT_FOUND, "HURRAY_ERR_NOT_FOUND", "there is nothing of that name"},
    {HURRAY_ERR_SINK_CLOSED, "HURRAY_ERR_SINK_CLOSED", "the output ended inside an item and cannot be completed; start a new one"},
    {HURRAY_ERR_NOT_COMPOSITE, "HURRAY_ERR_NOT_COMPOSITE", "the tensor is not the head of a composite"},
    {HURRAY_ERR_INVALID_CONTAINER, "HURRAY_ERR_INVALID_CONTAINER", "header, index or trailer break a rule of the format"},
    {HURRAY_ERR_TRUNCATED, "HURRAY_ERR_TRUNCATED", "the input ends before what it promises"},
    {HURRAY_ERR_CHECKSUM, "HURRAY_ERR_CHECKSUM", "a stored checksum does not match the bytes"},
    {HURRAY_ERR_DUPLICATE_NAME, "HURRAY_ERR_DUPLICATE_NAME", "two tensors have the same name"},
    {HURRAY_ERR_INVALID_NAME, "HURRAY_ERR_INVALID_NAME", "a name is empty, too long or not UTF-8"},
    {HURRAY_ERR_INVALID_KV, "HURRAY_ERR_INVALID_KV", "the key-value metadata breaks a rule of the format"},
    {HURRAY_ERR_TORN_COMPOSITE, "HURRAY_ERR_TORN_COMPOSITE", "a composite has fewer members than its head promises"},
    {HURRAY_ERR_TOO_DEEP, "HURRAY_ERR_TOO_DEEP", "composites are nested deeper than allowed"},
    {HURRAY_ERR_LIMIT, "HURRAY_ERR_LIMIT", "the input asks for more than an option allows"},
    {HURRAY_ERR_INVALID_DATA, "HURRAY_ERR_INVALID_DATA", "buffer contents break a rule of the format"},
    {HURRAY_ERR_UNSUPPORTED, "HURRAY_ERR_UNSUPPORTED", "this library does not do that"},
    {HURRAY_ERR_INVALID_ARGUMENT, "HURRAY_ERR_INVALID_ARGUMENT", "an argument is not legal"},
    {HURRAY_ERR_WRONG_STATE, "HURRAY_ERR_WRONG_STATE", "the call does not fit what was called before"},
    {HURRAY_ERR_INVALID_REPORT, "HURRAY_ERR_INVALID_REPORT", "more was reported than was offered, or nothing was written"},
    {HURRAY_ERR_UNUSABLE, "HURRAY_ERR_UNUSABLE", "an earlier failure made this handle unusable; destroy it"},
    {HURRAY_ERR_BUSY, "HURRAY_ERR_BUSY", "the handle is inside another call"},
    {HURRAY_ERR_NO_MEMORY, "HURRAY_ERR_NO_MEMORY", "memory could not be allocated; free some, or take fewer tensors at once"},
    {HURRAY_ERR_DEVICE, "HURRAY_ERR_DEVICE", "the device or its runtime reported a failure"},
    {HURRAY_ERR_NO_DEVICE, "HURRAY_ERR_NO_DEVICE", "there is no such device"},
    {HURRAY_ERR_CANCELLED, "HURRAY_ERR_CANCELLED", "the work was cancelled"},
};

static const StatusRow *find_row(HurrayStatus status) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status == status) return &rows[i];
    return NULL;
}

const char *hurray_status_name(HurrayStatus status) {
    const StatusRow *row = find_row(status);
    return row ? row->name : "HURRAY_ERR_?";
}

const char *hry_status_sentence(HurrayStatus status) {
    const StatusRow *row = find_row(status);
    return row ? row->sentence : "a status of the caller's own";
}

void hry_error_clear(HurrayError *error) {
    memset(error, 0, sizeof *error);
    error->struct_size = sizeof *error;
    error->offset = HURRAY_NONE;
    error->tensor_index = HURRAY_NONE;
    error->buffer_index = UINT32_MAX;
    error->source_index = UINT32_MAX;
}

HurrayStatus hry_fail(HurrayError *error, HurrayStatus code, const char *field, uint64_t offset, const char *format, ...) {
    hry_error_clear(error);
    error->code = code;
    error->offset = offset;
    if (field) snprintf(error->field, sizeof error->field, "%s", field);
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

HurrayStatus hry_fail_memory(HurrayError *error, const char *what, uint64_t bytes) {
    return hry_fail(error, HURRAY_ERR_NO_MEMORY, NULL, HRY_NO_OFFSET, "cannot allocate %llu bytes for %s; free memory or lower the limits",
                    (unsigned long long)bytes, what);
}

HurrayStatus hry_fail_null(HurrayError *caller, const char *what) {
    HurrayError error;
    hry_fail(&error, HURRAY_ERR_NULL_POINTER, NULL, HRY_NO_OFFSET, "%s is NULL, but the call needs it", what);
    return hry_error_export(caller, &error);
}

HurrayStatus hry_fail_callback(HurrayError *error, HurrayStatus code, HurrayStatus fallback, const char *what) {
    if (code < 0)
        hry_fail(error, code, NULL, HRY_NO_OFFSET, "the %s callback failed with status %d (%s)", what, (int)code,
                 hry_status_sentence(code));
    else
        hry_fail(error, fallback, NULL, HRY_NO_OFFSET, "the %s callback returned %d, which is no status that it may return", what,
                 (int)code);
    error->cause = code;
    return error->code;
}

void hry_error_set_tensor(HurrayError *error, const void *name, size_t len, uint64_t index) {
    hry_escape(error->tensor, sizeof error->tensor, name, len);
    error->tensor_index = index;
}

void hry_error_set_source(HurrayError *error, const void *label, size_t len, uint32_t index) {
    hry_escape(error->source, sizeof error->source, label, len);
    error->source_index = index;
}

/* Writes the escaped form of the sequence at text[0] to out (at most 4 bytes and a NUL); returns input bytes used. */
static size_t escape_one(char out[8], const uint8_t *text, size_t len) {
    uint8_t c = text[0];
    size_t run = hry_utf8_sequence(text, len);
    if (c == '\\') {
        memcpy(out, "\\\\", 3);
        return 1;
    }
    if (run == 0 || c < 0x20 || c == 0x7F || (run == 2 && c == 0xC2 && text[1] < 0xA0)) {
        snprintf(out, 8, "\\x%02x", (unsigned)c);
        return 1;
    }
    memcpy(out, text, run);
    out[run] = 0;
    return run;
}

const char *hry_escape(char *dst, size_t capacity, const void *text, size_t len) {
    const uint8_t *bytes = text;
    size_t used = 0;
    if (capacity == 0) return dst;
    for (size_t at = 0; at < len;) {
        char piece[8];
        size_t step = escape_one(piece, bytes + at, len - at), n = strlen(piece);
        bool last = at + step == len;
        if (used + n + (last ? 1u : 4u) > capacity) {
            if (capacity >= 4) {
                if (used + 4 > capacity) used = capacity - 4;
                memcpy(dst + used, "...", 4);
                return dst;
            }
            break;
        }
        memcpy(dst + used, piece, n);
        used += n;
        at += step;
    }
    dst[used] = 0;
    return dst;
}

HurrayStatus hry_error_export(HurrayError *caller, const HurrayError *error) {
    if (caller) {
        size_t size = caller->struct_size == 0 ? sizeof *error : caller->struct_size;
        size_t both = size < sizeof *error ? size : sizeof *error;
        memcpy(caller, error, both);
        if (size > both) memset((char *)caller + both, 0, size - both);
        caller->struct_size = (uint32_t)size;
    }
    return error->code;
}
