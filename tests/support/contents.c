#include "support/contents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/dense.h"
#include "support/descriptors.h"

void contents_make(Contents *contents, const ContentsSpec *spec) {
    HurrayBufferHandle handles[CONTENTS_MAX];
    uint32_t count = spec->buffer_count ? spec->buffer_count : 1;
    memset(handles, 0, sizeof handles);
    memset(contents, 0, sizeof *contents);
    for (uint32_t i = 0; i < count; i++) {
        handles[i].byte_size = spec->sizes[i];
        handles[i].alignment = 64;
    }
    HurrayDescriptorSpec whole = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayLayout row_major = HURRAY_LAYOUT_INIT;
    row_major.tag = HURRAY_LAYOUT_ROW_MAJOR;
    whole.rank = spec->rank;
    whole.shape = spec->shape;
    whole.byte_offset = spec->byte_offset;
    whole.element_type = spec->type;
    whole.buffer_count = count;
    whole.buffers = handles;
    whole.layout = spec->layout ? spec->layout : &row_major;
    whole.quantization = spec->quantization;
    whole.extension_type = spec->extension_type;
    whole.statistics = spec->statistics;
    contents->descriptor = descriptor_must_build(&whole);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *block = malloc(spec->sizes[i] ? spec->sizes[i] : 1);
        assert_non_null(block);
        if (spec->data[i])
            memcpy(block, spec->data[i], spec->sizes[i]);
        else
            memset(block, 0, spec->sizes[i]);
        contents->bytes[i] = (HryBytes){block, spec->sizes[i]};
    }
}

void contents_free(Contents *contents) {
    for (uint32_t i = 0; i < CONTENTS_MAX; i++) free(contents_buffer(contents, i));
    hry_descriptor_unref(contents->descriptor);
    memset(contents, 0, sizeof *contents);
}

uint8_t *contents_buffer(const Contents *contents, uint32_t i) { return (uint8_t *)(uintptr_t)contents->bytes[i].data; }

void contents_put_u64(const Contents *contents, uint32_t buffer, uint64_t i, uint64_t value) {
    assert_true(8 * i + 8 <= contents->bytes[buffer].size);
    hry_store_u64(contents_buffer(contents, buffer) + 8 * i, value);
}

/* xorshift64* */
uint64_t contents_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

void contents_fill_random(const Contents *contents, uint64_t *state) {
    for (uint32_t i = 0; i < CONTENTS_MAX; i++)
        for (uint64_t k = 0; k < contents->bytes[i].size; k++) contents_buffer(contents, i)[k] = (uint8_t)(contents_random(state) >> 32);
}

HurrayLayout contents_layout(uint8_t tag) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    layout.tag = tag;
    return layout;
}

HurrayQuantization contents_scheme(uint8_t scheme) {
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    q.scheme = scheme;
    return q;
}

HurrayStatus contents_open_status(const Contents *contents, uint8_t type, HurrayError *error) {
    HryDense dense;
    hry_error_clear(error);
    return hry_dense_open(&dense, contents->descriptor, contents->bytes, type, error);
}

void *contents_dense(const Contents *contents, uint8_t type) {
    HryDense dense;
    HurrayError error;
    uint64_t elements, bytes;
    hry_error_clear(&error);
    if (hry_dense_plan(contents->descriptor, type, &elements, &bytes, &error) != HURRAY_OK) fail_msg("%s", error.message);
    if (hry_dense_open(&dense, contents->descriptor, contents->bytes, type, &error) != HURRAY_OK) fail_msg("%s", error.message);
    void *out = malloc(bytes ? bytes : 1);
    assert_non_null(out);
    memset(out, 0xA5, bytes);
    if (hry_dense_stretch(&dense, 0, elements, out, &error) != HURRAY_OK) fail_msg("%s", error.message);
    return out;
}

HurrayStatus contents_dense_status(const Contents *contents, uint8_t type, HurrayError *error) {
    HryDense dense;
    uint64_t bytes;
    hry_error_clear(error);
    HurrayStatus status = hry_dense_open(&dense, contents->descriptor, contents->bytes, type, error);
    if (status != HURRAY_OK) return status;
    assert_true(hry_dense_bytes(&dense, dense.elements, &bytes));
    void *out = malloc(bytes ? bytes : 1);
    assert_non_null(out);
    status = hry_dense_stretch(&dense, 0, dense.elements, out, error);
    free(out);
    return status;
}
