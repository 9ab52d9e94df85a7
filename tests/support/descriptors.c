#include "support/descriptors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

HurrayDescriptor *descriptor_must_build(const HurrayDescriptorSpec *spec) {
    HurrayDescriptor *descriptor = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    if (hurray_descriptor_new(spec, NULL, &descriptor, &error) != HURRAY_OK) print_error("%s: %s\n", error.field, error.message);
    assert_non_null(descriptor);
    return descriptor;
}

void descriptor_must_refuse(const HurrayDescriptorSpec *spec, HurrayStatus status, const char *field) {
    HurrayDescriptor *descriptor = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_descriptor_new(spec, NULL, &descriptor, &error), status);
    assert_null(descriptor);
    assert_int_equal(error.code, status);
    assert_string_equal(error.field, field);
    assert_true(error.message[0]);
}

uint8_t *descriptor_bytes(const HurrayDescriptor *descriptor, size_t *len) {
    *len = hry_descriptor_encoded_size(descriptor);
    uint8_t *bytes = malloc(*len);
    assert_non_null(bytes);
    hry_descriptor_encode(descriptor, bytes);
    return bytes;
}

HurrayDescriptor *descriptor_must_decode(const void *bytes, size_t len) {
    HurrayDescriptor *descriptor = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    size_t used = 0, again_len;
    if (hurray_descriptor_decode_ex(bytes, len, NULL, &used, &descriptor, &error) != HURRAY_OK)
        print_error("%s at %llu: %s\n", error.field, (unsigned long long)error.offset, error.message);
    assert_non_null(descriptor);
    assert_int_equal(used, len);
    uint8_t *again = descriptor_bytes(descriptor, &again_len);
    assert_int_equal(again_len, len);
    assert_memory_equal(again, bytes, len);
    free(again);
    return descriptor;
}

void descriptor_must_reject(const void *bytes, size_t len, HurrayStatus status, const char *field, uint64_t offset) {
    HurrayDescriptor *descriptor = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    uint8_t *exact = malloc(len ? len : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, len);
    HurrayStatus got = hurray_descriptor_decode_ex(exact, len, NULL, NULL, &descriptor, &error);
    free(exact);
    if (got != status || strcmp(error.field, field) != 0 || (offset != HURRAY_NONE && error.offset != offset))
        print_error("%s at %llu: %s\n", error.field, (unsigned long long)error.offset, error.message);
    assert_int_equal(got, status);
    assert_null(descriptor);
    assert_string_equal(error.field, field);
    if (offset != HURRAY_NONE) assert_int_equal(error.offset, offset);
    assert_true(error.message[0]);
}

HurrayDescriptor *descriptor_round_trip(const HurrayDescriptor *descriptor) {
    size_t len;
    uint8_t *bytes = descriptor_bytes(descriptor, &len);
    HurrayDescriptor *decoded = descriptor_must_decode(bytes, len);
    free(bytes);
    return decoded;
}
