/* Reads descriptors as lines of hex digits, prints for each "ok HEX", its canonical bytes, or "no CODE FIELD OFFSET MESSAGE".
 * Each input lies in a heap block of exactly its size. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/descriptor.h"

static unsigned nibble(int c) { return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10); }

static void probe(const char *line, size_t digits) {
    size_t len = digits / 2, used = 0;
    uint8_t *bytes = malloc(len ? len : 1);
    HurrayAllocator allocator = hry_alloc_default();
    HurrayDescriptor *descriptor;
    HurrayError error;
    if (!bytes) exit(1);
    for (size_t i = 0; i < len; i++) bytes[i] = (uint8_t)(nibble(line[2 * i]) << 4 | nibble(line[2 * i + 1]));
    hry_error_clear(&error);
    HurrayStatus status = hry_descriptor_decode(bytes, len, 0, 0, &allocator, &used, &descriptor, &error);
    free(bytes);
    if (status != HURRAY_OK) {
        printf("no %d %s %" PRIu64 " %s\n", status, error.field[0] ? error.field : "?", error.offset, error.message);
        return;
    }
    size_t size = hry_descriptor_encoded_size(descriptor);
    uint8_t *again = malloc(size);
    if (!again) exit(1);
    hry_descriptor_encode(descriptor, again);
    hry_descriptor_unref(descriptor);
    fputs("ok ", stdout);
    for (size_t i = 0; i < size; i++) printf("%02x", again[i]);
    putchar('\n');
    free(again);
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    ssize_t got;
    while ((got = getline(&line, &room, stdin)) > 0) probe(line, (size_t)got - (line[got - 1] == '\n'));
    free(line);
    return 0;
}
