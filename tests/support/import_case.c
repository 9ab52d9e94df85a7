#include "support/import_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/byte_source.h"
#include "support/fail_alloc.h"
#include "support/script_transport.h"

void built_bytes(Built *built, const void *bytes, size_t len) {
    if (built->len + len > built->capacity) {
        built->capacity = (built->len + len) * 2 + 64;
        built->bytes = realloc(built->bytes, built->capacity);
        if (!built->bytes) abort();
    }
    if (len) memcpy(built->bytes + built->len, bytes, len);
    built->len += len;
}

void built_text(Built *built, const char *text) { built_bytes(built, text, strlen(text)); }
void built_u8(Built *built, uint8_t value) { built_bytes(built, &value, 1); }

static void little(Built *built, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) built_u8(built, (uint8_t)(value >> (8 * i)));
}

void built_u16(Built *built, uint16_t value) { little(built, value, 2); }
void built_u32(Built *built, uint32_t value) { little(built, value, 4); }
void built_u64(Built *built, uint64_t value) { little(built, value, 8); }

void built_f32(Built *built, float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    built_u32(built, bits);
}

void built_zeros(Built *built, size_t len) {
    while (len--) built_u8(built, 0);
}

void built_free(Built *built) {
    free(built->bytes);
    memset(built, 0, sizeof *built);
}

HryLimits import_limits(void) {
    return (HryLimits){UINT32_MAX, UINT64_C(1) << 30, UINT64_C(256) << 20, UINT64_C(16) << 20, UINT64_MAX, 64};
}

HryCatalogue *import_open(ImportOpen open, const void *bytes, size_t len) {
    ScriptTransport script;
    script_source(&script, bytes, len);
    HurrayTransport transport = script_transport(&script);
    HurrayAllocator allocator = hry_alloc_default();
    HryLimits limits = import_limits();
    HryCatalogue *catalogue = NULL;
    HurrayError error;
    HurrayStatus status = open(&transport, len, &limits, &allocator, &catalogue, &error);
    if (status != HURRAY_OK) print_error("refused with %d: %s: %s: %s\n", status, error.tensor, error.field, error.message);
    assert_int_equal(status, HURRAY_OK);
    script_free(&script);
    return catalogue;
}

void import_refused_by(ImportOpen open, const HryLimits *limits, const void *bytes, size_t len, HurrayStatus status, const char *word) {
    ScriptTransport script;
    FailAlloc alloc;
    HryCatalogue *catalogue = NULL;
    HurrayError error;
    fail_alloc_init(&alloc);
    script_source(&script, bytes, len);
    HurrayTransport transport = script_transport(&script);
    HurrayStatus found = open(&transport, len, limits, &alloc.allocator, &catalogue, &error);
    if (status == IMPORT_ANY && found != HURRAY_OK)
        status = found;
    else if (status == IMPORT_ANY)
        status = HURRAY_ERR_INVALID_CONTAINER;
    if (found != status) print_error("expected %d, got %d: %s\n", status, found, found ? error.message : "opened");
    assert_int_equal(found, status);
    assert_int_equal(error.code, status);
    assert_true(strlen(error.message) > 10);
    bool said = !word || strstr(error.message, word) || strstr(error.tensor, word) || strstr(error.field, word);
    if (!said) print_error("`%s` is not in: %s: %s: %s\n", word, error.tensor, error.field, error.message);
    assert_true(said);
    fail_alloc_assert_empty(&alloc);
    script_free(&script);
}

void import_refused(ImportOpen open, const void *bytes, size_t len, HurrayStatus status, const char *word) {
    HryLimits limits = import_limits();
    import_refused_by(open, &limits, bytes, len, status, word);
}

void import_fails_cleanly(ImportOpen open, const void *bytes, size_t len) {
    ScriptTransport script;
    FailAlloc alloc;
    HryLimits limits = import_limits();
    HurrayError error;
    fail_alloc_init(&alloc);
    script_source(&script, bytes, len);
    HurrayTransport transport = script_transport(&script);
    for (uint64_t k = 1;; k++) {
        HryCatalogue *catalogue = NULL;
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = open(&transport, len, &limits, &alloc.allocator, &catalogue, &error);
        if (status == HURRAY_OK) {
            bool reached = alloc.calls >= k;
            hry_catalogue_unref(catalogue);
            fail_alloc_assert_empty(&alloc);
            assert_false(reached);
            break;
        }
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        assert_int_equal(error.code, HURRAY_ERR_NO_MEMORY);
        fail_alloc_assert_empty(&alloc);
    }
    fail_alloc_arm(&alloc, 0, 0);
    for (uint64_t k = 1;; k++) {
        HryCatalogue *catalogue = NULL;
        script_fail(&script, k, -1234, 0);
        HurrayStatus status = open(&transport, len, &limits, &alloc.allocator, &catalogue, &error);
        if (status == HURRAY_OK) {
            assert_true(script.counted < k);
            hry_catalogue_unref(catalogue);
            break;
        }
        assert_int_equal(status, -1234);
        fail_alloc_assert_empty(&alloc);
    }
    fail_alloc_assert_empty(&alloc);
    script_free(&script);
}

/* Whatever comes of it: nothing leaks, and a refusal has a message. */
static void open_anyhow(ImportOpen open, const void *bytes, size_t len, FailAlloc *alloc) {
    ScriptTransport script;
    HurrayError error;
    HryCatalogue *catalogue = NULL;
    HryLimits limits = import_limits();
    script_source(&script, bytes, len);
    HurrayTransport transport = script_transport(&script);
    HurrayStatus status = open(&transport, len, &limits, &alloc->allocator, &catalogue, &error);
    if (status == HURRAY_OK)
        hry_catalogue_unref(catalogue);
    else
        assert_true(error.code == status && strlen(error.message) > 10);
    fail_alloc_assert_empty(alloc);
    script_free(&script);
}

void import_cut_everywhere(ImportOpen open, const void *bytes, size_t len) {
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    for (size_t cut = 0; cut < len; cut++) open_anyhow(open, bytes, cut, &alloc);
}

void import_damage_everywhere(ImportOpen open, const void *bytes, size_t len, size_t bytes_to_damage) {
    FailAlloc alloc;
    uint8_t *copy = malloc(len);
    if (!copy) abort();
    fail_alloc_init(&alloc);
    memcpy(copy, bytes, len);
    for (size_t i = 0; i < bytes_to_damage; i++)
        for (int bit = 0; bit < 8; bit++) {
            copy[i] ^= (uint8_t)(1 << bit);
            open_anyhow(open, copy, len, &alloc);
            copy[i] ^= (uint8_t)(1 << bit);
        }
    free(copy);
}

uint8_t *import_read(const HryCatalogue *catalogue, const void *bytes, size_t len, uint64_t i, size_t piece, HurrayStatus *status) {
    ScriptTransport script;
    HurrayAllocator allocator = hry_alloc_default();
    HryByteSource *source = NULL;
    HurrayError error;
    script_source(&script, bytes, len);
    HurrayTransport transport = script_transport(&script);
    *status = hry_byte_source_open(&transport, catalogue, &catalogue->entries[i], &allocator, &source, &error);
    assert_int_equal(*status, HURRAY_OK);
    uint64_t size = hry_byte_source_size(source);
    uint8_t *out = malloc(size ? size : 1);
    if (!out) abort();
    for (uint64_t at = 0; at < size && *status == HURRAY_OK;) {
        size_t step = piece && piece < size - at ? piece : (size_t)(size - at);
        *status = hry_byte_source_read(source, at, out + at, step, &error);
        at += step;
    }
    hry_byte_source_close(&source);
    script_free(&script);
    return out;
}

void built_safetensors(Built *built, const char *header, const void *data, size_t data_len) {
    built_u64(built, strlen(header));
    built_text(built, header);
    built_bytes(built, data, data_len);
}
