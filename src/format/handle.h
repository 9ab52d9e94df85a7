/* The 16-byte buffer handle and what device, mode and memory class may stand together (docs/format.md section 1.2). */
#ifndef HRY_FORMAT_HANDLE_H
#define HRY_FORMAT_HANDLE_H

#include "format/part.h"
#include "hurray.h"

#define HRY_HANDLE_BYTES 16u
#define HRY_MAX_BUFFERS 255u

/* Plain bytes to struct; nothing is checked. The cursor holds at least HRY_HANDLE_BYTES. */
void hry_handle_decode(HryCursor *cursor, HurrayBufferHandle *out);
void hry_handle_encode(HryEmit *emit, const HurrayBufferHandle *handle);

/* Every rule of one handle. index: for the field's name; at: of its first byte. */
HurrayStatus hry_handle_check(const HurrayBufferHandle *handle, uint32_t index, uint64_t at, HurrayError *error);
/* The rules of a whole table: each handle, one device tag and one memory class for all. at: of the first handle. */
HurrayStatus hry_handles_check(const HurrayBufferHandle *handles, uint32_t count, uint64_t at, HurrayError *error);

bool hry_device_tag_is_legal(uint8_t device_tag);
/* Is the class one that this (legal) device tag may have? */
bool hry_memory_class_fits(uint8_t device_tag, uint8_t memory_class);

/* Names the field "buffers[index].member" and the buffer in a filled record; returns its code. */
HurrayStatus hry_handle_name(HurrayError *error, uint32_t index, const char *member);

#endif
