#include "hurray/transport.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fail_alloc.h"

/* An end of memory to read from or write to, in odd pieces. */
typedef struct Pipe {
    uint8_t *bytes;
    size_t len, capacity, at, piece;
    int fail_every, calls, finished, released; /* each fail_every-th call fails */
    size_t closes_at;                          /* writes beyond are refused with 0; 0: never */
    HurrayStatus finish_status;
} Pipe;

static HurrayStatus pipe_read(void *ctx, uint8_t *dst, size_t len, size_t *n) {
    Pipe *pipe_ = ctx;
    if (pipe_->fail_every && ++pipe_->calls % pipe_->fail_every == 0) {
        errno = EIO;
        return HURRAY_ERR_TRANSPORT;
    }
    size_t left = pipe_->len - pipe_->at;
    *n = len < left ? len : left;
    if (pipe_->piece && *n > pipe_->piece) *n = pipe_->piece;
    memcpy(dst, pipe_->bytes + pipe_->at, *n);
    pipe_->at += *n;
    return HURRAY_OK;
}

static HurrayStatus pipe_read_at(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *n) {
    Pipe *pipe_ = ctx;
    pipe_->at = (size_t)offset;
    return pipe_read(ctx, dst, len, n);
}

static HurrayStatus pipe_write(void *ctx, const uint8_t *src, size_t len, size_t *n) {
    Pipe *pipe_ = ctx;
    if (pipe_->fail_every && ++pipe_->calls % pipe_->fail_every == 0) return -2000;
    *n = pipe_->piece && len > pipe_->piece ? pipe_->piece : len;
    if (pipe_->closes_at && pipe_->len + *n > pipe_->closes_at) *n = pipe_->closes_at - pipe_->len;
    if (pipe_->len + *n > pipe_->capacity) pipe_->bytes = realloc(pipe_->bytes, pipe_->capacity = 2 * (pipe_->len + *n));
    if (*n) memcpy(pipe_->bytes + pipe_->len, src, *n);
    pipe_->len += *n;
    return HURRAY_OK;
}

static HurrayStatus pipe_finish(void *ctx) {
    Pipe *pipe_ = ctx;
    pipe_->finished++;
    return pipe_->finish_status;
}

static void pipe_release(void *ctx) { ((Pipe *)ctx)->released++; }

static HurrayTransport over(Pipe *pipe_, bool writes, uint32_t level, const FailAlloc *alloc) {
    HurrayTransport inner = {.ctx = pipe_, .release = pipe_release}, out;
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    options.level = level;
    options.allocator = alloc ? &alloc->allocator : NULL;
    if (writes) {
        inner.write = pipe_write;
        inner.finish = pipe_finish;
    } else {
        inner.read = pipe_read;
    }
    assert_int_equal(hurray_transport_gzip(&inner, &options, &out, NULL), HURRAY_OK);
    assert_null(inner.ctx); /* moved away */
    assert_int_equal(hurray_transport_release(&inner), HURRAY_OK);
    assert_null(out.read_at);
    assert_int_equal(out.read != NULL, !writes);
    assert_int_equal(out.write != NULL, writes);
    return out;
}

static uint8_t *sample(size_t len) {
    uint8_t *bytes = malloc(len ? len : 1);
    uint32_t seed = 1;
    for (size_t i = 0; i < len; i++) bytes[i] = (uint8_t)(i % 3 ? (seed = seed * 1664525u + 1013904223u) >> 24 : 7);
    return bytes;
}

/* Repeats failed writes, as a writer's caller may. */
static void compress(Pipe *to, const uint8_t *bytes, size_t len, uint32_t level) {
    HurrayTransport t = over(to, true, level, NULL);
    for (size_t at = 0; at < len;) {
        size_t n = 0, ask = len - at < 100000 ? len - at : 100000;
        HurrayStatus status = t.write(t.ctx, bytes + at, ask, &n);
        if (status == -2000) {
            assert_int_equal(n, 0);
            continue;
        }
        assert_int_equal(status, HURRAY_OK);
        assert_true(n > 0 && n <= ask);
        at += n;
    }
    HurrayStatus status;
    while ((status = t.finish(t.ctx)) == -2000) {
    }
    assert_int_equal(status, HURRAY_OK);
    assert_int_equal(to->finished, 1);
    size_t n;
    assert_int_equal(t.write(t.ctx, bytes, 1, &n), HURRAY_ERR_WRONG_STATE);
    hurray_transport_release(&t);
    assert_int_equal(to->released, 1);
    to->finished = to->released = 0;
}

/* Reads to the end or the first failure that repeats; the bytes read in *out_len. */
static HurrayStatus expand(Pipe *from, uint8_t *out, size_t capacity, size_t piece, size_t *out_len) {
    HurrayTransport t = over(from, false, 0, NULL);
    HurrayStatus status;
    size_t n;
    *out_len = 0;
    for (;;) {
        size_t room = capacity - *out_len < piece ? capacity - *out_len : piece;
        assert_true(room > 0);
        n = 0;
        status = t.read(t.ctx, out + *out_len, room, &n);
        if (status == HURRAY_ERR_TRANSPORT && from->fail_every) {
            assert_int_equal(errno, EIO);
            continue;
        }
        if (status != HURRAY_OK) {
            assert_int_equal(n, 0);
            assert_int_equal(errno, 0);
            assert_int_equal(t.read(t.ctx, out + *out_len, room, &n), status); /* for good */
            break;
        }
        *out_len += n;
        if (n == 0) break;
    }
    hurray_transport_release(&t);
    return status;
}

static void what_goes_in_comes_out_in_any_pieces(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 1000, 300000};
    for (size_t i = 0; i < 4; i++) {
        for (uint32_t level = 0; level <= 9; level += 3) {
            for (int odd = 0; odd < 2; odd++) {
                size_t len = sizes[i], got_len;
                Pipe file = {.piece = odd ? 777 : 0, .fail_every = odd ? 3 : 0};
                uint8_t *bytes = sample(len), *got = malloc(len + 10);
                compress(&file, bytes, len, level);
                assert_int_equal(file.bytes[0], 0x1F);
                assert_int_equal(file.bytes[1], 0x8B);
                assert_int_equal(expand(&file, got, len + 10, odd ? 333 : len + 10, &got_len), HURRAY_OK);
                assert_int_equal(got_len, len);
                assert_memory_equal(got, bytes, len);
                free(bytes), free(got), free(file.bytes);
            }
        }
    }
}

static void members_one_after_another_are_one_text(void **state) {
    (void)state;
    Pipe file = {.piece = 1};
    uint8_t got[100];
    size_t len;
    compress(&file, (const uint8_t *)"one ", 4, 1);
    compress(&file, NULL, 0, 0);
    compress(&file, (const uint8_t *)"two", 3, 9);
    assert_int_equal(expand(&file, got, sizeof got, 100, &len), HURRAY_OK);
    assert_int_equal(len, 7);
    assert_memory_equal(got, "one two", 7);
    free(file.bytes);
}

static void input_cut_at_any_byte_is_truncated_unless_between_members(void **state) {
    (void)state;
    Pipe file = {0};
    uint8_t got[4000], *bytes = sample(2000);
    size_t len, first;
    compress(&file, bytes, 1000, 0);
    first = file.len;
    compress(&file, bytes + 1000, 1000, 0);
    for (size_t cut = 0; cut <= file.len; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1);
        memcpy(exact, file.bytes, cut);
        Pipe part = {.bytes = exact, .len = cut};
        HurrayStatus status = expand(&part, got, sizeof got, 4000, &len);
        assert_int_equal(status, cut == first || cut == file.len ? HURRAY_OK : HURRAY_ERR_TRUNCATED);
        assert_memory_equal(got, bytes, len);
        if (cut == file.len) assert_int_equal(len, 2000);
        free(exact);
    }
    free(bytes), free(file.bytes);
}

static void a_changed_byte_is_never_taken_for_the_text(void **state) {
    (void)state;
    Pipe file = {0};
    uint8_t got[4000], *bytes = sample(500);
    size_t len;
    compress(&file, bytes, 500, 0);
    for (size_t at = 0; at < file.len; at++) {
        for (int bit = 0; bit < 8; bit++) {
            uint8_t keep = file.bytes[at];
            file.bytes[at] = (uint8_t)(keep ^ 1 << bit);
            file.at = 0;
            HurrayStatus status = expand(&file, got, sizeof got, 4000, &len);
            if (status == HURRAY_OK) { /* time, system and level in the header mean nothing */
                assert_true(at >= 3 && at < 10);
                assert_int_equal(len, 500);
                assert_memory_equal(got, bytes, 500);
            } else if (at >= file.len - 8) {
                assert_int_equal(status, HURRAY_ERR_CHECKSUM);
            } else {
                assert_true(status == HURRAY_ERR_CHECKSUM || status == HURRAY_ERR_INVALID_DATA || status == HURRAY_ERR_TRUNCATED);
            }
            file.bytes[at] = keep;
        }
    }
    free(bytes), free(file.bytes);
}

static void what_follows_the_last_member_is_an_error_after_its_text(void **state) {
    (void)state;
    static const char *const tails[] = {"garbage", "\0\0\0\0", "\x1f"};
    static const size_t lens[] = {7, 4, 1};
    for (size_t i = 0; i < 3; i++) {
        Pipe file = {.piece = 5};
        uint8_t got[100];
        size_t len;
        compress(&file, (const uint8_t *)"text", 4, 0);
        file.bytes = realloc(file.bytes, file.len + lens[i]);
        memcpy(file.bytes + file.len, tails[i], lens[i]);
        file.len += lens[i];
        assert_int_equal(expand(&file, got, sizeof got, 100, &len), i == 2 ? HURRAY_ERR_TRUNCATED : HURRAY_ERR_INVALID_DATA);
        assert_int_equal(len, 4);
        assert_memory_equal(got, "text", 4);
        free(file.bytes);
    }
}

static HurrayStatus never(void *ctx, uint8_t *dst, size_t len, size_t *n) {
    (void)dst, (void)len;
    *n = 0;
    ++*(int *)ctx;
    return -4000;
}

static HurrayStatus once_then_never(void *ctx, uint8_t *dst, size_t len, size_t *n) {
    Pipe *pipe_ = ctx;
    return pipe_->at < pipe_->len ? pipe_read(ctx, dst, len, n) : never(&pipe_->calls, dst, len, n);
}

static void what_can_be_inflated_is_given_out_before_the_inner_transport_is_asked_again(void **state) {
    (void)state;
    Pipe file = {0};
    uint8_t bytes[1000] = {0}, byte;
    compress(&file, bytes, sizeof bytes, 9);
    file.len -= 8; /* all of the text, not all of the end */
    HurrayTransport t, inner = {.ctx = &file, .read = once_then_never};
    assert_int_equal(hurray_transport_gzip(&inner, NULL, &t, NULL), HURRAY_OK);
    for (size_t i = 0; i < sizeof bytes; i++) {
        size_t n = 0;
        assert_int_equal(t.read(t.ctx, &byte, 1, &n), HURRAY_OK);
        assert_int_equal(n, 1);
        assert_int_equal(file.calls, 0);
    }
    size_t n = 0;
    assert_int_equal(t.read(t.ctx, &byte, 1, &n), -4000);
    assert_int_equal(file.calls, 1);
    hurray_transport_release(&t);
    free(file.bytes);
}

static void a_closed_sink_is_zero_and_a_failing_finish_is_repeated_alone(void **state) {
    (void)state;
    Pipe file = {.closes_at = 100};
    uint8_t *bytes = sample(300000);
    HurrayTransport t = over(&file, true, 1, NULL);
    size_t n = 1;
    for (size_t at = 0; at < 300000 && n; at += n) assert_int_equal(t.write(t.ctx, bytes + at, 300000 - at, &n), HURRAY_OK);
    assert_int_equal(n, 0);
    assert_int_equal(t.finish(t.ctx), HURRAY_ERR_SINK_CLOSED);
    hurray_transport_release(&t);
    assert_int_equal(file.len, 100);
    free(file.bytes);
    file = (Pipe){.finish_status = -3000};
    t = over(&file, true, 1, NULL);
    assert_int_equal(t.write(t.ctx, bytes, 1000, &n), HURRAY_OK);
    assert_int_equal(t.finish(t.ctx), -3000);
    size_t len = file.len;
    file.finish_status = HURRAY_OK;
    assert_int_equal(t.finish(t.ctx), HURRAY_OK);
    assert_int_equal(file.len, len);
    assert_int_equal(file.finished, 2);
    hurray_transport_release(&t);
    free(bytes), free(file.bytes);
}

static HurrayStatus too_much(void *ctx, uint8_t *dst, size_t len, size_t *n) {
    (void)ctx, (void)dst;
    *n = len + 1;
    return HURRAY_OK;
}
static HurrayStatus too_much_out(void *ctx, const uint8_t *src, size_t len, size_t *n) {
    (void)ctx, (void)src;
    *n = len + 1;
    return HURRAY_OK;
}
static HurrayStatus positive(void *ctx, uint8_t *dst, size_t len, size_t *n) {
    (void)ctx, (void)dst, (void)len, (void)n;
    return 1;
}
static HurrayStatus positive_out(void *ctx, const uint8_t *src, size_t len, size_t *n) {
    (void)ctx, (void)src, (void)len, (void)n;
    return 1;
}

static void an_inner_transport_that_breaks_the_rules_is_found_out(void **state) {
    (void)state;
    HurrayTransport t, inner = {.read = too_much, .write = too_much_out};
    uint8_t byte = 0;
    size_t n;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hurray_transport_gzip(&inner, NULL, &t, NULL), HURRAY_OK);
        assert_int_equal(t.read(t.ctx, &byte, 1, &n), i ? HURRAY_ERR_TRANSPORT : HURRAY_ERR_INVALID_REPORT);
        assert_int_equal(t.write(t.ctx, &byte, 1, &n), HURRAY_OK);
        if (n == 1) assert_int_equal(t.finish(t.ctx), i ? HURRAY_ERR_TRANSPORT : HURRAY_ERR_INVALID_REPORT);
        hurray_transport_release(&t);
        inner = (HurrayTransport){.read = positive, .write = positive_out};
    }
}

static void only_what_can_read_or_write_is_taken(void **state) {
    (void)state;
    HurrayError error = HURRAY_ERROR_INIT;
    Pipe file = {0};
    HurrayTransport t, inner = {.ctx = &file, .release = pipe_release};
    assert_int_equal(hurray_transport_gzip(NULL, NULL, &t, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_transport_gzip(&inner, NULL, NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_transport_gzip(&inner, NULL, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.field, "inner");
    inner.read_at = pipe_read_at;
    inner.io_alignment = 512;
    assert_int_equal(hurray_transport_gzip(&inner, NULL, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
    inner.io_alignment = 0;
    inner.struct_size = 8;
    assert_int_equal(hurray_transport_gzip(&inner, NULL, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
    HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
    options.level = 11;
    assert_int_equal(hurray_transport_gzip(&inner, &options, &t, &error), HURRAY_ERR_INVALID_ARGUMENT);
    inner.struct_size = 0;
    assert_int_equal(file.released, 0);
    compress(&file, (const uint8_t *)"seekable", 8, 0); /* read_at alone is enough */
    assert_int_equal(hurray_transport_gzip(&inner, NULL, &t, &error), HURRAY_OK);
    uint8_t got[20];
    size_t n = 0;
    assert_int_equal(t.read(t.ctx, got, 20, &n), HURRAY_OK);
    assert_int_equal(n, 8);
    assert_int_equal(t.read(t.ctx, got, 20, &n), HURRAY_OK);
    assert_int_equal(n, 0);
    hurray_transport_release(&t);
    assert_int_equal(file.released, 1);
    free(file.bytes);
}

static void every_failing_allocation_leaks_nothing_and_may_be_repeated(void **state) {
    (void)state;
    Pipe text = {0};
    compress(&text, (const uint8_t *)"text", 4, 0);
    for (int writes = 0; writes < 2; writes++) {
        for (uint64_t k = 1;; k++) {
            FailAlloc alloc;
            Pipe file = {0}, *end = writes ? &file : &text;
            HurrayTransport t, inner = {.ctx = end, .release = pipe_release};
            HurrayTransportOptions options = HURRAY_TRANSPORT_OPTIONS_INIT;
            uint8_t got[10];
            size_t n = 0;
            fail_alloc_init(&alloc);
            options.allocator = &alloc.allocator;
            text.at = 0;
            text.released = 0;
            if (writes)
                inner.write = pipe_write;
            else
                inner.read = pipe_read;
            fail_alloc_arm(&alloc, k, 0);
            HurrayStatus status = hurray_transport_gzip(&inner, &options, &t, NULL);
            if (status != HURRAY_OK) {
                assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
                assert_int_equal(end->released, 0);
                fail_alloc_assert_empty(&alloc);
                continue;
            }
            status = writes ? t.write(t.ctx, got, 1, &n) : t.read(t.ctx, got, 10, &n);
            bool failed = status != HURRAY_OK;
            if (failed) {
                assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
                status = writes ? t.write(t.ctx, (const uint8_t *)"text", 1, &n) : t.read(t.ctx, got, 10, &n);
                if (!writes && status == HURRAY_ERR_NO_MEMORY) status = HURRAY_OK; /* the inflater's own window: for good */
                assert_int_equal(status, HURRAY_OK);
            }
            hurray_transport_release(&t);
            assert_int_equal(end->released, 1);
            fail_alloc_assert_empty(&alloc);
            free(file.bytes);
            if (!failed) break;
        }
    }
    free(text.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out_in_any_pieces),
        cmocka_unit_test(members_one_after_another_are_one_text),
        cmocka_unit_test(input_cut_at_any_byte_is_truncated_unless_between_members),
        cmocka_unit_test(a_changed_byte_is_never_taken_for_the_text),
        cmocka_unit_test(what_follows_the_last_member_is_an_error_after_its_text),
        cmocka_unit_test(what_can_be_inflated_is_given_out_before_the_inner_transport_is_asked_again),
        cmocka_unit_test(a_closed_sink_is_zero_and_a_failing_finish_is_repeated_alone),
        cmocka_unit_test(an_inner_transport_that_breaks_the_rules_is_found_out),
        cmocka_unit_test(only_what_can_read_or_write_is_taken),
        cmocka_unit_test(every_failing_allocation_leaks_nothing_and_may_be_repeated),
    };
    return cmocka_run_group_tests_name("cpu/transport_gzip", tests, NULL, NULL);
}
