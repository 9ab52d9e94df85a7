#include "driver/transport_call.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/script_transport.h"

static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static void the_struct_may_have_any_size_from_the_first_release_on(void **state) {
    (void)state;
    struct {
        HurrayTransport transport;
        uint64_t tail;
    } longer;
    ScriptTransport script;
    HurrayTransport out;
    HurrayError error;
    script_sink(&script);
    memset(&longer, 0, sizeof longer);
    longer.transport = script_transport(&script);
    assert_int_equal(hry_transport_resolve(&longer.transport, 7, &out, &error), HURRAY_OK);
    assert_int_equal(out.struct_size, sizeof out);
    assert_int_equal(out.io_alignment, 1);
    longer.transport.struct_size = sizeof longer;
    assert_int_equal(hry_transport_resolve(&longer.transport, 7, &out, &error), HURRAY_OK);
    longer.tail = 1;
    assert_int_equal(hry_transport_resolve(&longer.transport, 7, &out, &error), HURRAY_ERR_UNSUPPORTED);
    longer.transport.struct_size = sizeof out - 1;
    assert_int_equal(hry_transport_resolve(&longer.transport, 7, &out, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hry_transport_resolve(NULL, 7, &out, &error), HURRAY_ERR_NULL_POINTER);
    script_free(&script);
}

static void a_missing_callback_and_unknown_settings_are_named(void **state) {
    (void)state;
    ScriptTransport script;
    HurrayTransport out, t;
    HurrayError error;
    script_sink(&script);
    t = script_transport(&script);
    t.read = NULL;
    assert_int_equal(hry_transport_resolve(&t, HRY_TRANSPORT_NEEDS_READ, &out, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "read");
    assert_int_equal(hry_transport_resolve(&t, HRY_TRANSPORT_NEEDS_WRITE, &out, &error), HURRAY_OK);
    t.write = NULL;
    assert_int_equal(hry_transport_resolve(&t, HRY_TRANSPORT_NEEDS_WRITE, &out, &error), HURRAY_ERR_INVALID_ARGUMENT);
    t.size = NULL;
    assert_int_equal(hry_transport_resolve(&t, HRY_TRANSPORT_NEEDS_READ_AT, &out, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "size");
    t.read_at = NULL;
    assert_int_equal(hry_transport_resolve(&t, HRY_TRANSPORT_NEEDS_READ_AT, &out, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "read_at");
    assert_int_equal(hry_transport_resolve(&t, 0, &out, &error), HURRAY_OK);
    t.flags = 2;
    assert_int_equal(hry_transport_resolve(&t, 0, &out, &error), HURRAY_ERR_UNSUPPORTED);
    t.flags = 0;
    t.reserved = 1;
    assert_int_equal(hry_transport_resolve(&t, 0, &out, &error), HURRAY_ERR_UNSUPPORTED);
    t.reserved = 0;
    t.io_alignment = 3;
    assert_int_equal(hry_transport_resolve(&t, 0, &out, &error), HURRAY_ERR_INVALID_ARGUMENT);
    t.io_alignment = 1 << 20;
    assert_int_equal(hry_transport_resolve(&t, 0, &out, &error), HURRAY_ERR_INVALID_ARGUMENT);
    script_free(&script);
}

static void short_transfers_zero_and_failures_are_told_apart(void **state) {
    (void)state;
    const ScriptStep steps[] = {{3, 0, 0}, {0, 0, 0}, {SCRIPT_ALL, -1001, 0}, {SCRIPT_ALL, 5, 0}, {SCRIPT_ALL, 0, 1}};
    HurrayStatus wants[] = {HURRAY_OK, HURRAY_OK, -1001, HURRAY_ERR_TRANSPORT, HURRAY_ERR_INVALID_REPORT};
    ScriptTransport script;
    HurrayError error;
    uint8_t memory[8];
    size_t moved;
    for (int direction = 0; direction < 3; direction++) {
        script_source(&script, text, sizeof text);
        if (direction == 2) {
            script_free(&script);
            script_sink(&script);
        }
        script_pattern(&script, steps, 5);
        HurrayTransport t = script_transport(&script);
        for (int i = 0; i < 5; i++) {
            moved = 99;
            hry_error_clear(&error);
            HurrayStatus status = direction == 0   ? hry_transport_read(&t, memory, 8, &moved, &error)
                                  : direction == 1 ? hry_transport_read_at(&t, 4, memory, 8, &moved, &error)
                                                   : hry_transport_write(&t, memory, 8, &moved, &error);
            assert_int_equal(status, wants[i]);
            assert_int_equal(moved, i == 0 ? 3 : 0);
            if (i == 2) assert_int_equal(error.cause, -1001);
            if (i == 3) assert_int_equal(error.cause, 5);
            if (i > 1) assert_true(error.message[0] != 0);
            if (i > 1 && direction == 1) assert_int_equal(error.offset, 4);
        }
        uint64_t calls = script.counted;
        assert_int_equal(hry_transport_read(&t, memory, 0, &moved, &error), HURRAY_OK);
        assert_int_equal(hry_transport_read_at(&t, 0, memory, 0, &moved, &error), HURRAY_OK);
        assert_int_equal(hry_transport_write(&t, memory, 0, &moved, &error), HURRAY_OK);
        assert_int_equal(script.counted, calls);
        script_free(&script);
    }
}

static HurrayStatus count_only(void *ctx, const uint8_t *src, size_t len, size_t *out) {
    (void)src;
    *(size_t *)ctx = len;
    *out = len;
    return HURRAY_OK;
}

static void a_callback_is_offered_a_gibibyte_at_most(void **state) {
    (void)state;
    size_t offered = 0, moved = 0;
    HurrayError error;
    HurrayTransport t = {.ctx = &offered, .write = count_only};
    assert_int_equal(hry_transport_write(&t, (const uint8_t *)text, (size_t)5 << 30, &moved, &error), HURRAY_OK);
    assert_int_equal(offered, HRY_TRANSPORT_MAX_LEN);
    assert_int_equal(moved, HRY_TRANSPORT_MAX_LEN);
}

static void reading_exactly_repeats_until_all_is_there(void **state) {
    (void)state;
    ScriptTransport script;
    HurrayError error;
    uint8_t memory[sizeof text];
    script_source(&script, text, sizeof text);
    script_every(&script, 5);
    HurrayTransport t = script_transport(&script);
    assert_int_equal(hry_transport_read_exactly(&t, 2, memory, 20, &error), HURRAY_OK);
    assert_memory_equal(memory, text + 2, 20);
    assert_int_equal(script.read_ats, 4);
    assert_int_equal(hry_transport_read_exactly(&t, 30, memory, 20, &error), HURRAY_ERR_TRUNCATED);
    assert_int_equal(error.offset, sizeof text);
    assert_int_equal(hry_transport_read_exactly(&t, UINT64_MAX - 3, memory, 20, &error), HURRAY_ERR_TRUNCATED);
    script_fail(&script, 2, HURRAY_ERR_CANCELLED, 0);
    assert_int_equal(hry_transport_read_exactly(&t, 2, memory, 20, &error), HURRAY_ERR_CANCELLED);
    assert_int_equal(hry_transport_read_exactly(&t, 2, memory, 0, &error), HURRAY_OK);
    script_free(&script);
}

static void reading_exactly_keeps_the_alignment_at_every_place(void **state) {
    (void)state;
    enum { SIZE = 300000 };
    static uint8_t bytes[SIZE];
    const uint32_t alignments[] = {2, 512, 65536};
    const size_t places[] = {0, 1, 511, 512, 65535, 131072, 299000};
    const size_t lengths[] = {1, 512, 1000, 66000, 140000};
    ScriptTransport script;
    HurrayError error;
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(i * 31 ^ i >> 9);
    script_source(&script, bytes, SIZE);
    uint8_t *memory = malloc(SIZE + 1);
    for (size_t a = 0; a < 3; a++)
        for (size_t p = 0; p < 7; p++)
            for (size_t l = 0; l < 5; l++)
                for (size_t shift = 0; shift < 2; shift++) {
                    script.io_alignment = alignments[a];
                    HurrayTransport t = script_transport(&script);
                    bool there = places[p] + lengths[l] <= SIZE;
                    HurrayStatus status = hry_transport_read_exactly(&t, places[p], memory + shift, lengths[l], &error);
                    assert_int_equal(status, there ? HURRAY_OK : HURRAY_ERR_TRUNCATED);
                    if (there) assert_memory_equal(memory + shift, bytes + places[p], lengths[l]);
                }
    script_fail(&script, 1, -1001, 0);
    HurrayTransport t = script_transport(&script);
    assert_int_equal(hry_transport_read_exactly(&t, 1, memory, 4, &error), -1001);
    free(memory);
    script_free(&script);
}

static void size_finish_and_release_pass_on_what_they_are_told(void **state) {
    (void)state;
    ScriptTransport script;
    HurrayError error;
    uint64_t size = 0;
    script_source(&script, text, sizeof text);
    HurrayTransport t = script_transport(&script);
    assert_int_equal(hry_transport_size(&t, &size, &error), HURRAY_OK);
    assert_int_equal(size, sizeof text);
    script.size_status = -1002;
    assert_int_equal(hry_transport_size(&t, &size, &error), -1002);
    script.finish_failures = 1;
    script.finish_status = 7;
    assert_int_equal(hry_transport_finish(&t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(hry_transport_finish(&t, &error), HURRAY_OK);
    hry_transport_release(&t);
    hry_transport_release(&t);
    assert_int_equal(script.releases, 1);
    assert_int_equal(hry_transport_finish(&t, &error), HURRAY_OK);
    script_free(&script);
}

static HurrayStatus out_of_room(void *ctx, const uint8_t *src, size_t len, size_t *n) {
    (void)src, (void)len, (void)n;
    errno = ENOSPC;
    return *(const HurrayStatus *)ctx;
}

static HurrayStatus silent(void *ctx) {
    (void)ctx;
    return HURRAY_ERR_TRANSPORT;
}

static void errno_of_a_failing_transport_reaches_the_error(void **state) {
    (void)state;
    HurrayStatus answer = HURRAY_ERR_TRANSPORT;
    HurrayTransport t = {.ctx = &answer, .write = out_of_room, .finish = silent};
    HurrayError error;
    size_t moved;
    assert_int_equal(hry_transport_write(&t, (const uint8_t *)"x", 1, &moved, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, ENOSPC);
    assert_int_equal(error.cause, HURRAY_ERR_TRANSPORT);
    assert_non_null(strstr(error.message, "space"));
    answer = -2000; /* the caller's own codes say more than errno */
    assert_int_equal(hry_transport_write(&t, (const uint8_t *)"x", 1, &moved, &error), -2000);
    assert_int_equal(error.system_error, 0);
    errno = EIO; /* from before the call */
    assert_int_equal(hry_transport_finish(&t, &error), HURRAY_ERR_TRANSPORT);
    assert_int_equal(error.system_error, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_struct_may_have_any_size_from_the_first_release_on),
        cmocka_unit_test(a_missing_callback_and_unknown_settings_are_named),
        cmocka_unit_test(short_transfers_zero_and_failures_are_told_apart),
        cmocka_unit_test(a_callback_is_offered_a_gibibyte_at_most),
        cmocka_unit_test(reading_exactly_repeats_until_all_is_there),
        cmocka_unit_test(reading_exactly_keeps_the_alignment_at_every_place),
        cmocka_unit_test(errno_of_a_failing_transport_reaches_the_error),
        cmocka_unit_test(size_finish_and_release_pass_on_what_they_are_told),
    };
    return cmocka_run_group_tests_name("driver/transport_call", tests, NULL, NULL);
}
