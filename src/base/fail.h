/* Filling the error record. Inside the library every error record is a whole HurrayError that
 * belongs to a handle or to the stack of a public function; `error` is never NULL here.
 * The function that decides which error it is writes the text; those above add the place. */
#ifndef HRY_BASE_FAIL_H
#define HRY_BASE_FAIL_H

#include <stddef.h>
#include <stdint.h>

#include "hurray/error.h"

#if defined(__GNUC__)
#define HRY_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define HRY_PRINTF(text, first)
#endif

#define HRY_NO_OFFSET UINT64_MAX

/* An empty record: code OK, places unknown, texts empty. */
void hry_error_clear(HurrayError *error);

/* Clears the record, then sets code, field (may be NULL), offset (HRY_NO_OFFSET: unknown) and text. Returns code. */
HurrayStatus hry_fail(HurrayError *error, HurrayStatus code, const char *field, uint64_t offset, const char *format, ...)
    HRY_PRINTF(5, 6);

/* NO_MEMORY: "cannot allocate N bytes for WHAT". */
HurrayStatus hry_fail_memory(HurrayError *error, const char *what, uint64_t bytes);

/* NULL_POINTER into a caller's record (NULL: not wanted): "WHAT is NULL, but the call needs it". */
HurrayStatus hry_fail_null(HurrayError *caller, const char *what);

/* A failing callback: `code` is returned to the caller as it is when negative, else it becomes `fallback`
 * (TRANSPORT, DEVICE) with a text that says so. what: "read_at", "freeze", ... */
HurrayStatus hry_fail_callback(HurrayError *error, HurrayStatus code, HurrayStatus fallback, const char *what);

/* Places, added to a filled record by whoever knows them. Untrusted text is escaped and shortened. */
void hry_error_set_tensor(HurrayError *error, const void *name, size_t len, uint64_t index);
void hry_error_set_source(HurrayError *error, const void *label, size_t len, uint32_t index);

/* Escapes untrusted text into dst (always NUL-terminated, shortened with "..." in the middle): printable ASCII and
 * valid UTF-8 stay, everything else becomes \xNN. Returns dst. */
const char *hry_escape(char *dst, size_t capacity, const void *text, size_t len);

/* Copies a record to a caller's (NULL: not wanted; struct_size 0: the first release). Returns error->code. */
HurrayStatus hry_error_export(HurrayError *caller, const HurrayError *error);

/* One sentence for a status ("what to do" included), for docs and for messages without another text. */
const char *hry_status_sentence(HurrayStatus status);

#endif
