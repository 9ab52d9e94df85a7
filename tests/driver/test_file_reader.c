#include "hurray.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hurray/destination.h"
#include "support/containers.h"
#include "support/fail_alloc.h"
#include "support/fail_destination.h"
#include "support/script_transport.h"

static const HurrayBufferHandle handles[3] = {
    {.byte_size = 300, .alignment = 64}, {.byte_size = 0, .alignment = 1}, {.byte_size = 70000, .alignment = 4096}};

typedef struct Setup {
    Container built;
    ScriptTransport script;
    HurrayFileReader *reader;
    HurrayFileReaderOptions options;
} Setup;

static void build(Setup *s, uint32_t flags) {
    HurrayKvEntry kv = {.key = "k", .key_len = 1, .value = {.kind = HURRAY_KV_UINT64, .u64 = 5}};
    memset(s, 0, sizeof *s);
    container_begin_file(&s->built, 4096);
    container_add(&s->built, "many", make_many(handles, 3));
    container_add(&s->built, "g", make_group(2));
    container_add(&s->built, "g.0", make_plain(50, 64));
    container_add(&s->built, "g.1", make_plain(5000, 128));
    container_finish(&s->built, flags, &kv, 1);
    script_source(&s->script, s->built.bytes, s->built.len);
    s->options = (HurrayFileReaderOptions)HURRAY_FILE_READER_OPTIONS_INIT;
}

static void open_reader(Setup *s) {
    HurrayTransport transport = script_transport(&s->script);
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayStatus status = hurray_file_reader_new_ex(&transport, &s->options, &s->reader, &error);
    if (status != HURRAY_OK) print_error("%s\n", error.message);
    assert_int_equal(status, HURRAY_OK);
}

static void set_up(Setup *s, uint32_t flags) {
    build(s, flags);
    open_reader(s);
}

static void tear_down(Setup *s) {
    hurray_file_reader_destroy(&s->reader);
    assert_null(s->reader);
    assert_int_equal(s->script.releases, 1);
    script_free(&s->script);
    container_free(&s->built);
}

static void read_many(HurrayFileReader *reader) {
    HurrayTensor *tensor = NULL;
    HurrayStatus status = hurray_file_reader_read_tensor(reader, "many", 4, &tensor);
    if (status != HURRAY_OK) print_error("%s\n", hurray_file_reader_last_error(reader)->message);
    assert_int_equal(status, HURRAY_OK);
    assert_tensor_pattern(tensor, 0);
    hurray_tensor_destroy(&tensor);
}

static void the_simplest_use_reads_names_metadata_tensors_and_composites(void **state) {
    (void)state;
    Setup s;
    build(&s, BUILD_SUMS);
    HurrayTransport transport = script_transport(&s.script);
    assert_int_equal(hurray_file_reader_new(&transport, &s.reader), HURRAY_OK);
    assert_int_equal(s.script.sizes, 1);
    assert_int_equal(s.script.read_ats, 4);
    uint64_t count = 0, i = 9;
    const uint8_t *name;
    size_t len;
    assert_int_equal(hurray_file_reader_tensor_count(s.reader, &count), HURRAY_OK);
    assert_int_equal(count, 4);
    assert_int_equal(hurray_file_reader_tensor_name(s.reader, 2, &name, &len), HURRAY_OK);
    assert_memory_equal(name, "g.0", 3);
    assert_int_equal(hurray_file_reader_find(s.reader, "g.1", 3, &i), HURRAY_OK);
    assert_int_equal(i, 3);
    HurrayKvEntry kv;
    assert_int_equal(hurray_file_reader_kv_count(s.reader, &count), HURRAY_OK);
    assert_int_equal(count, 2);
    assert_int_equal(hurray_file_reader_kv_entry(s.reader, 0, &kv), HURRAY_OK);
    assert_int_equal(kv.value.u64, 5);
    assert_int_equal(hurray_file_reader_kv_find(s.reader, "libhurray.crc32c", 16, &kv), HURRAY_OK);
    HurraySourceInfo info = HURRAY_SOURCE_INFO_INIT;
    assert_int_equal(hurray_file_reader_info(s.reader, &info), HURRAY_OK);
    assert_int_equal(info.byte_size, s.built.len);
    assert_int_equal(s.script.read_ats, 4);
    read_many(s.reader);
    assert_int_equal(s.script.read_ats, 4 + 3);
    HurrayDescriptor *descriptor = NULL;
    assert_int_equal(hurray_file_reader_read_descriptor(s.reader, "g", 1, &descriptor), HURRAY_OK);
    assert_int_equal(s.script.read_ats, 8);
    hurray_descriptor_destroy(descriptor);
    HurrayItem *item = NULL;
    assert_int_equal(hurray_file_reader_read_composite(s.reader, "g", 1, &item), HURRAY_OK);
    hurray_item_node_count(item, &count);
    assert_int_equal(count, 3);
    hurray_item_destroy(&item);
    assert_int_equal(hurray_file_reader_read_composite(s.reader, "g.0", 3, &item), HURRAY_ERR_NOT_COMPOSITE);
    HurrayTensor *tensor = NULL;
    assert_int_equal(hurray_file_reader_read_tensor(s.reader, "nobody", 6, &tensor), HURRAY_ERR_NOT_FOUND);
    assert_string_equal(hurray_file_reader_last_error(s.reader)->tensor, "nobody");
    assert_true(hurray_file_reader_last_error(s.reader)->message[0]);
    read_many(s.reader);
    assert_int_equal(hurray_file_reader_last_error(s.reader)->code, HURRAY_OK);
    tear_down(&s);
}

/* A question is a call too: last_error is about it. */
static void a_question_that_fails_says_why_and_one_that_does_not_clears_it(void **state) {
    (void)state;
    Setup s;
    const uint8_t *name;
    size_t len;
    uint64_t i;
    HurrayKvEntry kv;
    set_up(&s, 0);
    const HurrayError *error = hurray_file_reader_last_error(s.reader);
    assert_int_equal(hurray_file_reader_find(s.reader, "no\n", 3, &i), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(error->code, HURRAY_ERR_NOT_FOUND);
    assert_string_equal(error->tensor, "no\\x0a");
    assert_int_equal(hurray_file_reader_tensor_name(s.reader, UINT64_MAX, &name, &len), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(error->code, HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_file_reader_kv_find(s.reader, "nothing", 7, &kv), HURRAY_ERR_NOT_FOUND);
    assert_non_null(strstr(error->message, "nothing"));
    assert_int_equal(hurray_file_reader_kv_entry(s.reader, 99, &kv), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_non_null(strstr(error->message, "99"));
    assert_int_equal(hurray_file_reader_tensor_count(s.reader, &i), HURRAY_OK);
    assert_int_equal(error->code, HURRAY_OK);
    tear_down(&s);
}

static HurrayFileReader *looked_at;
static HurrayTransport looked_through;

static HurrayStatus look_inside(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *filled) {
    uint64_t count;
    HurrayDescriptor *descriptor = NULL;
    if (looked_at) {
        assert_int_equal(hurray_file_reader_tensor_count(looked_at, &count), HURRAY_ERR_BUSY);
        assert_int_equal(hurray_file_reader_read_descriptor(looked_at, "many", 4, &descriptor), HURRAY_ERR_BUSY);
    }
    return looked_through.read_at(ctx, offset, dst, len, filled);
}

static void a_callback_that_asks_its_own_reader_is_told_busy(void **state) {
    (void)state;
    Setup s;
    set_up(&s, 0);
    HurrayTransport transport = script_transport(&s.script);
    looked_through = transport;
    transport.read_at = look_inside;
    transport.release = NULL;
    HurrayFileReader *reader = NULL;
    assert_int_equal(hurray_file_reader_new(&transport, &reader), HURRAY_OK);
    looked_at = reader;
    read_many(reader);
    looked_at = NULL;
    hurray_file_reader_destroy(&reader);
    tear_down(&s);
}

static void tensor_info_reads_a_descriptor_once(void **state) {
    (void)state;
    Setup s;
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    set_up(&s, 0);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(hurray_file_reader_tensor_info(s.reader, 0, &info), HURRAY_OK);
        assert_int_equal(info.buffer_count, 3);
        assert_int_equal(info.buffer_offsets[2], info.data_offset + 4096);
        assert_non_null(info.descriptor);
        assert_memory_equal(info.name, "many", 4);
        assert_int_equal(s.script.read_ats, 5);
    }
    assert_int_equal(hurray_file_reader_tensor_info(s.reader, 1, &info), HURRAY_OK);
    assert_int_equal(info.member_count, 2);
    assert_int_equal(hurray_file_reader_tensor_info(s.reader, 4, &info), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_true(hurray_file_reader_last_error(s.reader)->message[0]);
    tear_down(&s);
}

static void short_reads_are_normal(void **state) {
    (void)state;
    for (size_t every = 1; every < 5000; every = every * 3 + 1) {
        Setup s;
        build(&s, BUILD_SUMS);
        script_every(&s.script, every);
        s.options.verify_data = HURRAY_VERIFY_REQUIRED;
        open_reader(&s);
        read_many(s.reader);
        tear_down(&s);
    }
}

static void a_failing_read_costs_its_call_only(void **state) {
    (void)state;
    Setup s;
    set_up(&s, 0);
    for (uint64_t n = 1;; n++) {
        HurrayItem *item = NULL;
        script_fail(&s.script, n, n % 2 ? -1001 : HURRAY_ERR_CANCELLED, 0);
        HurrayStatus status = hurray_file_reader_read_composite(s.reader, "g", 1, &item);
        if (status == HURRAY_OK) {
            hurray_item_destroy(&item);
            break;
        }
        assert_int_equal(status, n % 2 ? -1001 : HURRAY_ERR_CANCELLED);
        assert_int_equal(hurray_file_reader_last_error(s.reader)->cause, status);
        assert_int_equal(hurray_file_reader_last_error(s.reader)->tensor[0], 'g');
        assert_null(item);
        script_fail(&s.script, 0, 0, 0);
        read_many(s.reader);
    }
    tear_down(&s);
}

static void size_is_asked_once_at_open(void **state) {
    (void)state;
    Setup s;
    set_up(&s, 0);
    assert_int_equal(s.script.sizes, 1);
    read_many(s.reader);
    read_many(s.reader);
    assert_int_equal(s.script.sizes, 1);
    tear_down(&s);
}

static void a_failed_open_makes_no_reader_and_releases_nothing(void **state) {
    (void)state;
    Setup s;
    build(&s, 0);
    for (uint64_t n = 1; n < 6; n++) {
        HurrayError error = HURRAY_ERROR_INIT;
        HurrayTransport transport = script_transport(&s.script);
        script_fail(&s.script, n, -1001, 0);
        HurrayStatus status = hurray_file_reader_new_ex(&transport, &s.options, &s.reader, &error);
        assert_int_equal(status, n < 5 ? -1001 : HURRAY_OK);
        if (n < 5) {
            assert_null(s.reader);
            assert_int_equal(error.code, -1001);
            assert_int_equal(error.cause, -1001);
        }
    }
    hurray_file_reader_destroy(&s.reader);
    assert_int_equal(s.script.releases, 1);
    HurrayError error = HURRAY_ERROR_INIT;
    s.script.size_status = -1002;
    HurrayTransport transport = script_transport(&s.script);
    script_fail(&s.script, 0, 0, 0);
    assert_int_equal(hurray_file_reader_new_ex(&transport, &s.options, &s.reader, &error), -1002);
    s.script.size_status = HURRAY_OK;
    s.script.size_claim = s.built.len + 40; /* shorter than it claims */
    transport = script_transport(&s.script);
    assert_int_equal(hurray_file_reader_new_ex(&transport, &s.options, &s.reader, &error), HURRAY_ERR_TRUNCATED);
    s.script.size_claim = HURRAY_NONE;
    transport.read_at = NULL;
    assert_int_equal(hurray_file_reader_new_ex(&transport, &s.options, &s.reader, &error), HURRAY_ERR_INVALID_ARGUMENT);
    transport = script_transport(&s.script);
    transport.size = NULL;
    assert_int_equal(hurray_file_reader_new_ex(&transport, &s.options, &s.reader, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_file_reader_new_ex(NULL, &s.options, &s.reader, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_new(&transport, NULL), HURRAY_ERR_NULL_POINTER);
    assert_null(s.reader);
    assert_int_equal(s.script.releases, 1);
    script_free(&s.script);
    container_free(&s.built);
}

static void a_count_that_cannot_be_makes_the_reader_unusable(void **state) {
    (void)state;
    static const ScriptStep over[] = {{SCRIPT_ALL, HURRAY_OK, 1}};
    for (int way = 0; way < 3; way++) {
        Setup s;
        uint8_t bytes[300];
        HurrayMemory memory[3] = {{bytes, 300}, {NULL, 0}, {bytes, 300}};
        HurrayTensor *tensor = NULL;
        set_up(&s, 0);
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        assert_int_equal(hurray_file_reader_tensor_info(s.reader, 0, &info), HURRAY_OK);
        script_pattern(&s.script, over, 1);
        HurrayStatus status = way == 0   ? hurray_file_reader_read_tensor(s.reader, "many", 4, &tensor)
                              : way == 1 ? hurray_file_reader_read_into(s.reader, "many", 4, memory, 3)
                                         : hurray_file_reader_read_bytes(s.reader, 0, 0, 0, bytes, 300);
        assert_int_equal(status, HURRAY_ERR_INVALID_REPORT);
        assert_string_equal(hurray_file_reader_last_error(s.reader)->tensor, "many");
        script_pattern(&s.script, NULL, 0);
        assert_int_equal(hurray_file_reader_read_tensor(s.reader, "many", 4, &tensor), HURRAY_ERR_UNUSABLE);
        assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 0, 0, bytes, 300), HURRAY_ERR_UNUSABLE);
        tear_down(&s);
    }
}

static void whole_blocks_are_read_where_the_transport_wants_them(void **state) {
    (void)state;
    static const uint32_t alignments[] = {64, 512, 4096, 65536};
    for (size_t a = 0; a < 4; a++)
        for (int own = 0; own < 2; own++) {
            Setup s;
            FailDestination fail;
            static uint8_t bytes[70001];
            build(&s, BUILD_SUMS);
            fail_destination_init(&fail);
            s.script.io_alignment = alignments[a]; /* the script asserts offset, length and address */
            s.options.verify_data = HURRAY_VERIFY_REQUIRED;
            if (own) s.options.destination = &fail.destination; /* without any slack */
            open_reader(&s);
            read_many(s.reader);
            assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 2, 1, bytes + 1, 69999), HURRAY_OK);
            for (size_t i = 0; i < 69999; i++) assert_int_equal(bytes[1 + i], pattern_byte(0, 2, i + 1));
            script_every(&s.script, alignments[a] + 7);
            read_many(s.reader);
            if (own) assert_int_equal(fail.requests[0].io_alignment, alignments[a]);
            tear_down(&s);
            fail_destination_assert_empty(&fail);
        }
}

static void read_into_fills_the_callers_memory_and_makes_nothing(void **state) {
    (void)state;
    static uint8_t a[300], b[70010];
    for (uint32_t flags = 0; flags < 2; flags++) {
        Setup s;
        FailDestination fail;
        build(&s, flags);
        fail_destination_init(&fail);
        s.options.destination = &fail.destination;
        s.options.verify_data = HURRAY_VERIFY_STORED;
        open_reader(&s);
        HurrayMemory memory[3] = {{a, sizeof a}, {NULL, 0}, {b, sizeof b}};
        memset(b, 0xAB, sizeof b);
        uint64_t before = s.script.read_ats;
        assert_int_equal(hurray_file_reader_read_into(s.reader, "many", 4, memory, 3), HURRAY_OK);
        assert_int_equal(s.script.read_ats - before, 3);
        assert_pattern(a, 0, 0, 300);
        assert_pattern(b, 0, 2, 70000);
        for (int i = 70000; i < 70010; i++) assert_int_equal(b[i], 0xAB);
        assert_int_equal(fail.allocates, 0);
        assert_int_equal(hurray_file_reader_read_into(s.reader, "g", 1, NULL, 0), HURRAY_OK); /* a head has no buffers */
        assert_int_equal(hurray_file_reader_read_into(s.reader, "many", 4, memory, 2), HURRAY_ERR_INVALID_ARGUMENT);
        memory[2].len = 69999;
        assert_int_equal(hurray_file_reader_read_into(s.reader, "many", 4, memory, 3), HURRAY_ERR_BUFFER_TOO_SMALL);
        assert_int_equal(hurray_file_reader_last_error(s.reader)->buffer_index, 2);
        memory[2] = (HurrayMemory){NULL, 70000};
        assert_int_equal(hurray_file_reader_read_into(s.reader, "many", 4, memory, 3), HURRAY_ERR_NULL_POINTER);
        assert_int_equal(hurray_file_reader_read_into(s.reader, "none", 4, memory, 3), HURRAY_ERR_NOT_FOUND);
        memory[2] = (HurrayMemory){b, sizeof b};
        script_fail(&s.script, 2, -1001, 0);
        assert_int_equal(hurray_file_reader_read_into(s.reader, "many", 4, memory, 3), -1001);
        assert_string_equal(hurray_file_reader_last_error(s.reader)->tensor, "many");
        s.script.bytes[s.built.rows[0].data_offset + 4096 + 69999] ^= 1;
        assert_int_equal(hurray_file_reader_read_into(s.reader, "many", 4, memory, 3), flags ? HURRAY_ERR_CHECKSUM : HURRAY_OK);
        if (flags) assert_int_equal(hurray_file_reader_last_error(s.reader)->buffer_index, 2);
        tear_down(&s);
    }
}

static void read_bytes_checks_a_buffer_read_in_order(void **state) {
    (void)state;
    static uint8_t bytes[70000];
    Setup s;
    build(&s, BUILD_SUMS);
    s.options.verify_data = HURRAY_VERIFY_STORED;
    open_reader(&s);
    for (int damaged = 0; damaged < 2; damaged++) {
        HurrayStatus end = damaged ? HURRAY_ERR_CHECKSUM : HURRAY_OK;
        if (damaged) s.script.bytes[s.built.rows[0].data_offset + 4096 + 10] ^= 1;
        assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 2, 0, bytes, 70000), end);
        for (uint64_t at = 0; at < 70000; at += 10000) /* the last piece reports */
            assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 2, at, bytes, 10000), at == 60000 ? end : HURRAY_OK);
        /* Out of order nothing can be said. */
        assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 2, 35000, bytes, 35000), HURRAY_OK);
        assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 2, 0, bytes, 35000), HURRAY_OK);
        assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 0, 0, bytes, 300), HURRAY_OK);
        assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 2, 35000, bytes, 35000), HURRAY_OK);
        /* A piece that failed is repeated. */
        assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 2, 0, bytes, 35000), HURRAY_OK);
        script_fail(&s.script, 1, -1001, 0);
        assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 2, 35000, bytes, 35000), -1001);
        script_fail(&s.script, 0, 0, 0);
        assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 2, 35000, bytes, 35000), end);
    }
    assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 3, 0, bytes, 1), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_file_reader_read_bytes(s.reader, 4, 0, 0, bytes, 1), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 0, 300, bytes, 1), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 0, UINT64_MAX, bytes, 2), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 0, 300, NULL, 0), HURRAY_OK);
    assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 0, 0, NULL, 1), HURRAY_ERR_NULL_POINTER);
    tear_down(&s);
    build(&s, 0);
    s.options.verify_data = HURRAY_VERIFY_REQUIRED;
    open_reader(&s);
    assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 2, 0, bytes, 70000), HURRAY_ERR_CHECKSUM);
    assert_int_equal(hurray_file_reader_read_bytes(s.reader, 0, 1, 0, bytes, 0), HURRAY_OK); /* nothing to check in an empty buffer */
    tear_down(&s);
}

static void a_file_that_became_shorter_is_truncated_and_the_reader_stays_usable(void **state) {
    (void)state;
    Setup s;
    uint8_t bytes[5000];
    HurrayMemory memory = {bytes, sizeof bytes};
    HurrayTensor *tensor = NULL;
    set_up(&s, 0);
    s.script.len = (size_t)s.built.rows[3].data_offset + 100;
    assert_int_equal(hurray_file_reader_read_tensor(s.reader, "g.1", 3, &tensor), HURRAY_ERR_TRUNCATED);
    assert_int_equal(hurray_file_reader_last_error(s.reader)->offset, s.script.len);
    assert_int_equal(hurray_file_reader_read_into(s.reader, "g.1", 3, &memory, 1), HURRAY_ERR_TRUNCATED);
    read_many(s.reader);
    tear_down(&s);
}

static void clones_share_index_and_transport_until_the_last_is_gone(void **state) {
    (void)state;
    Setup s;
    HurrayFileReader *clone = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    set_up(&s, 0);
    assert_int_equal(hurray_file_reader_clone(s.reader, &clone, &error), HURRAY_ERR_UNSUPPORTED);
    tear_down(&s);
    build(&s, 0);
    s.script.flags = HURRAY_TRANSPORT_CONCURRENT;
    open_reader(&s);
    uint64_t before = s.script.read_ats;
    assert_int_equal(hurray_file_reader_clone(s.reader, &clone, &error), HURRAY_OK);
    assert_int_equal(s.script.read_ats, before);
    hurray_file_reader_destroy(&s.reader);
    assert_int_equal(s.script.releases, 0);
    read_many(clone);
    s.reader = clone;
    tear_down(&s);
    assert_int_equal(hurray_file_reader_clone(NULL, &clone, &error), HURRAY_ERR_NULL_POINTER);
}

static void *read_again_and_again(void *ctx) {
    HurrayFileReader *reader = ctx;
    for (int i = 0; i < 20; i++) {
        HurrayItem *item = NULL;
        read_many(reader);
        if (hurray_file_reader_read_composite(reader, "g", 1, &item) != HURRAY_OK) return ctx;
        hurray_item_destroy(&item);
    }
    hurray_file_reader_destroy(&reader);
    return NULL;
}

static void clones_read_on_threads_of_their_own(void **state) {
    (void)state;
    Setup s;
    pthread_t threads[4];
    build(&s, BUILD_SUMS);
    s.script.flags = HURRAY_TRANSPORT_CONCURRENT;
    s.options.verify_data = HURRAY_VERIFY_REQUIRED;
    open_reader(&s);
    for (int t = 0; t < 4; t++) {
        HurrayFileReader *clone = NULL;
        assert_int_equal(hurray_file_reader_clone(s.reader, &clone, NULL), HURRAY_OK);
        assert_int_equal(pthread_create(&threads[t], NULL, read_again_and_again, clone), 0);
    }
    hurray_file_reader_destroy(&s.reader); /* the clones go on */
    for (int t = 0; t < 4; t++) {
        void *failed = s.built.bytes;
        assert_int_equal(pthread_join(threads[t], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(s.script.releases, 1);
    script_free(&s.script);
    container_free(&s.built);
}

static HurrayStatus whole_use(Setup *s, FailAlloc *alloc) {
    HurrayTransport transport = script_transport(&s->script);
    HurrayFileReader *reader = NULL, *clone = NULL;
    HurrayTensor *tensor = NULL;
    HurrayItem *item = NULL;
    uint8_t bytes[50];
    HurrayMemory memory = {bytes, sizeof bytes};
    s->options.allocator = &alloc->allocator;
    uint64_t releases = s->script.releases;
    HurrayStatus status = hurray_file_reader_new_ex(&transport, &s->options, &reader, NULL);
    if (status != HURRAY_OK) assert_int_equal(s->script.releases, releases);
    if (status == HURRAY_OK) status = hurray_file_reader_clone(reader, &clone, NULL);
    if (status == HURRAY_OK) status = hurray_file_reader_read_tensor(clone, "many", 4, &tensor);
    if (status == HURRAY_OK) status = hurray_file_reader_read_composite(reader, "g", 1, &item);
    if (status == HURRAY_OK) status = hurray_file_reader_read_into(reader, "g.0", 3, &memory, 1);
    if (status == HURRAY_OK) status = hurray_file_reader_read_bytes(reader, 1, 0, 0, bytes, 50);
    hurray_file_reader_destroy(&reader);
    hurray_file_reader_destroy(&clone);
    hurray_tensor_destroy(&tensor);
    hurray_item_destroy(&item);
    return status;
}

static void an_allocation_failing_at_any_point_leaks_nothing(void **state) {
    (void)state;
    Setup s;
    FailAlloc alloc;
    build(&s, BUILD_SUMS | BUILD_REVERSED);
    s.script.flags = HURRAY_TRANSPORT_CONCURRENT;
    fail_alloc_init(&alloc);
    for (int sticky = 0; sticky < 2; sticky++)
        for (uint64_t k = 1;; k++) {
            fail_alloc_arm(&alloc, k, sticky);
            HurrayStatus status = whole_use(&s, &alloc);
            fail_alloc_assert_empty(&alloc);
            if (status == HURRAY_OK) break;
            assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        }
    script_free(&s.script);
    container_free(&s.built);
}

static void a_busy_destination_is_waited_for(void **state) {
    (void)state;
    Setup s;
    FailDestination fail;
    HurrayTensor *tensor = NULL;
    build(&s, 0);
    fail_destination_init(&fail);
    fail.waits = 2;
    s.options.destination = &fail.destination;
    open_reader(&s);
    read_many(s.reader);
    assert_int_equal(fail.wait_calls, 2 * 2 * 3);
    tear_down(&s);
    build(&s, 0);
    fail.destination.wait = NULL;
    s.options.destination = &fail.destination;
    open_reader(&s);
    assert_int_equal(hurray_file_reader_read_tensor(s.reader, "many", 4, &tensor), HURRAY_ERR_UNSUPPORTED);
    fail_destination_assert_empty(&fail);
    fail.waits = 0;
    read_many(s.reader);
    tear_down(&s);
    assert_int_equal(fail.retains, 2);
    assert_int_equal(fail.releases, 2);
}

static HurrayFileReader *inner;

static void call_back(void *ctx) {
    HurrayTensor *tensor = NULL;
    *(HurrayStatus *)ctx = hurray_file_reader_read_tensor(inner, "many", 4, &tensor);
}

static void a_callback_that_calls_its_handle_is_told_busy(void **state) {
    (void)state;
    Setup s;
    HurrayStatus seen = 0;
    set_up(&s, 0);
    inner = s.reader;
    s.script.before = call_back;
    s.script.before_ctx = &seen;
    read_many(s.reader);
    assert_int_equal(seen, HURRAY_ERR_BUSY);
    tear_down(&s);
}

static void limits_refuse_before_payload_is_read(void **state) {
    (void)state;
    Setup s;
    HurrayTensor *tensor = NULL;
    build(&s, 0);
    s.options.max_tensor_bytes = 70299;
    s.options.label = "model";
    s.options.label_len = 5;
    open_reader(&s);
    uint64_t before = s.script.read_ats;
    assert_int_equal(hurray_file_reader_read_tensor(s.reader, "many", 4, &tensor), HURRAY_ERR_LIMIT);
    assert_int_equal(s.script.read_ats, before + 1);
    assert_string_equal(hurray_file_reader_last_error(s.reader)->field, "max_tensor_bytes");
    assert_string_equal(hurray_file_reader_last_error(s.reader)->source, "model");
    tear_down(&s);
    build(&s, 0);
    s.options.max_descriptor_bytes = 50;
    s.options.max_tensor_bytes = 70300;
    open_reader(&s);
    before = s.script.read_ats;
    assert_int_equal(hurray_file_reader_read_tensor(s.reader, "many", 4, &tensor), HURRAY_ERR_LIMIT);
    assert_int_equal(s.script.read_ats, before);
    tear_down(&s);
    build(&s, 0);
    s.options.flags = HURRAY_READ_NO_PRIVATE;
    open_reader(&s);
    assert_int_not_equal(hurray_file_reader_read_tensor(s.reader, "many", 4, &tensor), HURRAY_OK);
    assert_int_equal(hurray_file_reader_read_tensor(s.reader, "g.0", 3, &tensor), HURRAY_OK);
    hurray_tensor_destroy(&tensor);
    tear_down(&s);
}

static void a_descriptor_that_contradicts_the_index_spoils_its_tensor_only(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++) {
        Setup s;
        HurrayTensor *tensor = NULL;
        build(&s, 0);
        uint8_t *row = s.built.bytes + s.built.trailer.index_offset + 8 + 2 + 4; /* of "many", behind its name */
        uint64_t length = s.built.rows[0].data_length - (way == 0 ? 1 : 0);
        uint32_t descriptor = s.built.rows[0].descriptor_length + (way == 1 ? 1 : 0);
        memcpy(row + 8, &descriptor, 4);
        memcpy(row + 20, &length, 8);
        container_mend(&s.built);
        if (way == 2) s.built.bytes[64] = 'h';
        script_free(&s.script);
        script_source(&s.script, s.built.bytes, s.built.len);
        open_reader(&s);
        assert_int_equal(hurray_file_reader_read_tensor(s.reader, "many", 4, &tensor),
                         way == 2 ? HURRAY_ERR_INVALID_MAGIC : HURRAY_ERR_INVALID_CONTAINER);
        assert_string_equal(hurray_file_reader_last_error(s.reader)->tensor, "many");
        assert_int_equal(hurray_file_reader_read_tensor(s.reader, "g.1", 3, &tensor), HURRAY_OK);
        assert_tensor_pattern(tensor, 3);
        hurray_tensor_destroy(&tensor);
        tear_down(&s);
    }
}

static void a_null_pointer_is_told_first(void **state) {
    (void)state;
    Setup s;
    uint64_t n;
    const uint8_t *name;
    size_t len;
    HurrayKvEntry kv;
    HurraySourceInfo info = HURRAY_SOURCE_INFO_INIT;
    HurrayTensorInfo tensor_info = HURRAY_TENSOR_INFO_INIT;
    HurrayTensor *tensor = NULL;
    set_up(&s, 0);
    assert_int_equal(hurray_file_reader_tensor_count(NULL, &n), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_tensor_name(NULL, 0, &name, &len), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_find(NULL, "a", 1, &n), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_info(NULL, &info), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_tensor_info(NULL, 0, &tensor_info), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_kv_count(NULL, &n), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_kv_entry(NULL, 0, &kv), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_kv_find(NULL, "k", 1, &kv), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_read_tensor(s.reader, "many", 4, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_read_tensor(s.reader, NULL, 4, &tensor), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_read_into(s.reader, "many", 4, NULL, 3), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_read_bytes(NULL, 0, 0, 0, NULL, 0), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_file_reader_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    assert_null(hurray_file_reader_last_error(NULL));
    tear_down(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_simplest_use_reads_names_metadata_tensors_and_composites),
        cmocka_unit_test(a_question_that_fails_says_why_and_one_that_does_not_clears_it),
        cmocka_unit_test(a_callback_that_asks_its_own_reader_is_told_busy),
        cmocka_unit_test(tensor_info_reads_a_descriptor_once),
        cmocka_unit_test(short_reads_are_normal),
        cmocka_unit_test(a_failing_read_costs_its_call_only),
        cmocka_unit_test(size_is_asked_once_at_open),
        cmocka_unit_test(a_failed_open_makes_no_reader_and_releases_nothing),
        cmocka_unit_test(a_count_that_cannot_be_makes_the_reader_unusable),
        cmocka_unit_test(whole_blocks_are_read_where_the_transport_wants_them),
        cmocka_unit_test(read_into_fills_the_callers_memory_and_makes_nothing),
        cmocka_unit_test(read_bytes_checks_a_buffer_read_in_order),
        cmocka_unit_test(a_file_that_became_shorter_is_truncated_and_the_reader_stays_usable),
        cmocka_unit_test(clones_share_index_and_transport_until_the_last_is_gone),
        cmocka_unit_test(clones_read_on_threads_of_their_own),
        cmocka_unit_test(an_allocation_failing_at_any_point_leaks_nothing),
        cmocka_unit_test(a_busy_destination_is_waited_for),
        cmocka_unit_test(a_callback_that_calls_its_handle_is_told_busy),
        cmocka_unit_test(limits_refuse_before_payload_is_read),
        cmocka_unit_test(a_descriptor_that_contradicts_the_index_spoils_its_tensor_only),
        cmocka_unit_test(a_null_pointer_is_told_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
