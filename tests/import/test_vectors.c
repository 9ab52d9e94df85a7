/* The foreign inputs beside the project: each opens, or is refused, as its manifest says, with the words that it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/byte_source.h"
#include "import/json.h"
#include "support/fail_alloc.h"
#include "support/import_case.h"

#define FOLDER HURRAY_SOURCE_DIR "/../shared/vectors/foreign/"

typedef struct Case {
    char path[200], verdict[32], says[8][96];
    unsigned say_count;
} Case;

typedef struct Manifest {
    Case now;
    char field[32];
    unsigned files, wrong;
} Manifest;

static bool says_it(const Case *now, const char *text) {
    for (unsigned i = 0; i < now->say_count; i++)
        if (strstr(text, now->says[i])) return true;
    return now->say_count == 0;
}

static void complain(Manifest *manifest, const char *what, const char *detail) {
    manifest->wrong++;
    print_error("%s (%s): %s: %s\n", manifest->now.path, manifest->now.verdict, what, detail);
}

/* Opens it, reads every tensor; text: the first error, "" for none. */
static bool open_and_load(const Case *now, bool *opened, char text[1024]) {
    HryModel model;
    HurrayError error;
    HryLimits limits = import_limits();
    FailAlloc alloc;
    char path[400];
    fail_alloc_init(&alloc);
    snprintf(path, sizeof path, FOLDER "%s", now->path);
    text[0] = 0;
    *opened = hry_model_open_path(path, &limits, &alloc.allocator, &model, &error) == HURRAY_OK;
    if (!*opened) {
        snprintf(text, 1024, "%s: %s: %s: %s", error.source, error.tensor, error.field, error.message);
        fail_alloc_assert_empty(&alloc);
        assert_true(alloc.peak_bytes < 1000000); /* hostile counts are compared before anything is allocated */
        return false;
    }
    bool all = true;
    for (size_t s = 0; s < model.source_count; s++) {
        const HryCatalogue *catalogue = model.sources[s].catalogue;
        for (size_t i = 0; i < catalogue->entry_count && all; i++) {
            const HryEntry *entry = &catalogue->entries[i];
            HryByteSource *source = NULL;
            if (entry->fault) {
                const HurrayError *fault = &catalogue->faults[entry->fault - 1];
                snprintf(text, 1024, "%s: %s: %s", fault->tensor, fault->field, fault->message);
                all = false;
                continue;
            }
            assert_int_equal(hry_byte_source_open(&model.sources[s].transport, catalogue, entry, &alloc.allocator, &source, &error),
                             HURRAY_OK);
            size_t size = (size_t)hry_byte_source_size(source);
            uint8_t *bytes = malloc(size + 1);
            all = hry_byte_source_read(source, 0, bytes, size, &error) == HURRAY_OK;
            if (!all) snprintf(text, 1024, "%s", error.message);
            free(bytes);
            hry_byte_source_close(&source);
        }
    }
    hry_model_close(&model);
    fail_alloc_assert_empty(&alloc);
    return all;
}

static void check(Manifest *manifest) {
    const Case *now = &manifest->now;
    bool opened;
    char text[1024];
    bool loaded = open_and_load(now, &opened, text);
    manifest->files++;
    if (strcmp(now->verdict, "accept") == 0 || strcmp(now->verdict, "reject-convert") == 0) {
        if (!loaded) complain(manifest, "should load", text);
    } else if (strcmp(now->verdict, "reject") == 0 || strcmp(now->verdict, "reject-load") == 0) {
        if (loaded)
            complain(manifest, "should be refused", "");
        else if (!says_it(now, text))
            complain(manifest, "does not say what it should", text);
        if (strcmp(now->verdict, "reject-load") == 0 && !opened) complain(manifest, "should be listed", text);
    } else if (!loaded && !says_it(now, text)) {
        complain(manifest, "does not say what it should", text);
    }
}

static bool on_event(void *ctx, const HryJsonEvent *event) {
    Manifest *manifest = ctx;
    Case *now = &manifest->now;
    if (event->depth == 1 && event->kind == HRY_JSON_MAP) memset(now, 0, sizeof *now);
    if (event->depth == 1 && event->kind == HRY_JSON_MAP_END) check(manifest);
    if (event->depth == 2 && event->kind == HRY_JSON_KEY)
        snprintf(manifest->field, sizeof manifest->field, "%.*s", (int)event->len, (const char *)event->text);
    if (event->kind != HRY_JSON_STRING) return true;
    char *target = NULL;
    size_t room = 0;
    if (event->depth == 2 && strcmp(manifest->field, "path") == 0) target = now->path, room = sizeof now->path;
    if (event->depth == 2 && strcmp(manifest->field, "verdict") == 0) target = now->verdict, room = sizeof now->verdict;
    if (event->depth == 3 && strcmp(manifest->field, "says") == 0) target = now->says[now->say_count++], room = sizeof now->says[0];
    if (target) snprintf(target, room, "%.*s", (int)event->len, (const char *)event->text);
    return true;
}

static void every_foreign_input_has_its_verdict(void **state) {
    (void)state;
    FILE *file = fopen(FOLDER "manifest.json", "rb");
    if (!file) {
        print_message("skipped: %smanifest.json is not there\n", FOLDER);
        skip();
    }
    fseek(file, 0, SEEK_END);
    size_t len = (size_t)ftell(file);
    rewind(file);
    uint8_t *text = malloc(len);
    assert_int_equal(fread(text, 1, len, file), len);
    fclose(file);
    Manifest *manifest = calloc(1, sizeof *manifest);
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    assert_int_equal(hry_json_parse(text, len, 0, "manifest", on_event, manifest, &allocator, &error), HURRAY_OK);
    print_message("%u files, %u wrong\n", manifest->files, manifest->wrong);
    assert_true(manifest->files >= 110);
    assert_int_equal(manifest->wrong, 0);
    free(manifest);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_foreign_input_has_its_verdict)};
    return cmocka_run_group_tests_name("import/vectors", tests, NULL, NULL);
}
