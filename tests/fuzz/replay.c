/* Runs a fuzz target without an engine: every file of the folders named, then each with a few bytes changed, the same ones every time. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VARIANTS 150u

static uint32_t random_state = 1;

static uint32_t next_random(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static void change(uint8_t *bytes, size_t len) {
    static const uint8_t favourites[] = {0, 1, 0x7F, 0x80, 0xFF, '"', '{', '}'};
    for (unsigned n = 1 + next_random() % 3; n > 0; n--) {
        size_t at = next_random() % len;
        if (next_random() % 2)
            bytes[at] = favourites[next_random() % sizeof favourites];
        else
            bytes[at] ^= (uint8_t)(1u << next_random() % 8);
    }
}

static void replay(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return;
    size_t capacity = 1u << 20;
    uint8_t *bytes = malloc(capacity), *copy = malloc(capacity);
    if (!bytes || !copy) abort();
    size_t len = fread(bytes, 1, capacity, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, len);
    for (unsigned i = 0; len && i < VARIANTS; i++) {
        memcpy(copy, bytes, len);
        change(copy, len);
        LLVMFuzzerTestOneInput(copy, i % 4 ? len : next_random() % (len + 1));
    }
    free(bytes);
    free(copy);
}

int main(int argc, char **argv) {
    unsigned files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) continue;
        for (struct dirent *entry; (entry = readdir(folder));) {
            char path[4096];
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            replay(path);
            files++;
        }
        closedir(folder);
    }
    printf("%u inputs and %u variants of each\n", files, VARIANTS);
    return files ? 0 : 77;
}
