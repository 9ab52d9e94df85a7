/* Every model among the shared files that opens: what is loaded, however it is loaded, is what read_bytes gives piece by piece. Skipped
 * where the files are not there. A large archive made here covers many chunks. */
#include "hurray/loader.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static const char *const folders[] = {"vectors/foreign",  "vectors/foreign/st-shards", "vectors/foreign/gg-split",
                                      "vectors/pyhurray", "vectors/reference/files",   "vectors/handmade",
                                      "vectors/ggml"};

static void compare_tensor(HurrayLoader *pieces, uint64_t i, const HurrayTensor *tensor, size_t step) {
    HurrayBufferList *list = NULL;
    uint64_t count = 0;
    uint8_t *got = malloc(step);
    assert_non_null(got);
    assert_int_equal(hurray_tensor_buffers(tensor, &list), HURRAY_OK);
    hurray_buffer_list_len(list, &count);
    for (uint32_t b = 0; b < count; b++) {
        HurrayBuffer *buffer = NULL;
        void *data = NULL;
        uint64_t size = 0;
        hurray_buffer_list_get(list, b, &buffer);
        hurray_buffer_data_ptr(buffer, &data);
        hurray_buffer_byte_size(buffer, &size);
        for (uint64_t at = 0; at < size;) {
            size_t n = size - at < step ? (size_t)(size - at) : step;
            assert_int_equal(hurray_loader_read_bytes(pieces, i, b, at, got, n), HURRAY_OK);
            assert_memory_equal(got, (const uint8_t *)data + at, n);
            at += n;
        }
    }
    free(got);
}

/* 1: opened. */
static int check_model(const char *path, uint32_t *loaded) {
    HurrayLoader *pieces = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    if (hurray_loader_open(path, NULL, &pieces, &error) != HURRAY_OK) {
        assert_true(error.message[0] != 0);
        return 0;
    }
    for (uint32_t variant = 0; variant < 6; variant++) {
        HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
        HurrayLoader *loader = NULL;
        HurrayTensorSet *set = NULL;
        options.threads = 1 + variant % 3;
        options.chunk_bytes = 4096;
        options.io = variant == 4 ? HURRAY_IO_URING : variant == 5 ? HURRAY_IO_MMAP : HURRAY_IO_AUTO;
        options.verify_data = variant & 1 ? HURRAY_VERIFY_STORED : HURRAY_VERIFY_NONE;
        assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
        HurrayStatus status = hurray_loader_load(loader, &set);
        if (status == HURRAY_OK) {
            uint64_t n = 0, all = 0;
            ++*loaded;
            hurray_tensor_set_count(set, &n);
            hurray_loader_tensor_count(loader, &all);
            assert_int_equal(n, all);
            for (uint64_t i = 0; i < n; i++) {
                HurrayTensor *tensor = NULL;
                assert_int_equal(hurray_tensor_set_get(set, i, &tensor), HURRAY_OK);
                compare_tensor(pieces, i, tensor, 1 + 777 * (variant + 1));
            }
        } else {
            assert_true(hurray_loader_last_error(loader)->message[0] != 0);
            assert_null(set);
        }
        hurray_tensor_set_destroy(&set);
        hurray_loader_destroy(&loader);
    }
    hurray_loader_verify(pieces, 7, NULL, NULL);
    hurray_loader_destroy(&pieces);
    return 1;
}

static void what_is_loaded_is_what_is_read_piece_by_piece(void **state) {
    (void)state;
    uint32_t opened = 0, loaded = 0;
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        char folder[600], path[1200];
        snprintf(folder, sizeof folder, "%s/../shared/%s", HURRAY_SOURCE_DIR, folders[f]);
        DIR *dir = opendir(folder);
        if (!dir) continue;
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
            struct stat st;
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) opened += (uint32_t)check_model(path, &loaded);
        }
        closedir(dir);
    }
    if (opened == 0) {
        print_message("skipped: there are no shared files beside the source tree\n");
        skip();
    }
    assert_true(opened >= 20 && loaded > 60);
}

/* ---- an archive of our own: deflated, with a bool member and one of big-endian numbers ---- */

typedef struct Bytes {
    uint8_t *at;
    size_t len;
} Bytes;

static void put(Bytes *out, const void *bytes, size_t len) {
    memcpy(out->at + out->len, bytes, len);
    out->len += len;
}

static void put_le(Bytes *out, uint64_t value, int size) {
    for (int k = 0; k < size; k++) out->at[out->len++] = (uint8_t)(value >> (8 * k));
}

typedef struct Member {
    const char *name, *type;
    uint64_t count;
    size_t size;
    int deflated;
    uint64_t offset;
    uint32_t crc, packed, plain;
} Member;

static void put_member(Bytes *out, Member *m) {
    char head[128];
    size_t bytes = (size_t)m->count * m->size, header = 118;
    uint8_t *plain = malloc(10 + header + bytes);
    assert_non_null(plain);
    memcpy(plain, "\x93NUMPY\x01\x00\x76\x00", 10);
    int used =
        snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%llu,), }", m->type, (unsigned long long)m->count);
    memset(head + used, ' ', sizeof head - (size_t)used);
    head[header - 1] = '\n';
    memcpy(plain + 10, head, header);
    for (size_t k = 0; k < bytes; k++) plain[10 + header + k] = (uint8_t)(m->size == 1 ? (k * k / 7) & 1 : k * 31 + k / 255);
    m->plain = (uint32_t)(10 + header + bytes);
    m->crc = (uint32_t)crc32(0, plain, m->plain);
    m->offset = out->len;
    uint8_t *packed = malloc(m->plain + 1000);
    assert_non_null(packed);
    m->packed = m->plain;
    if (m->deflated) {
        z_stream z = {.next_in = plain, .avail_in = m->plain, .next_out = packed, .avail_out = m->plain + 1000};
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        m->packed = (uint32_t)z.total_out;
        deflateEnd(&z);
    } else {
        memcpy(packed, plain, m->plain);
    }
    put_le(out, 0x04034b50, 4), put_le(out, 20, 2), put_le(out, 0, 2), put_le(out, m->deflated ? 8 : 0, 2), put_le(out, 0, 4);
    put_le(out, m->crc, 4), put_le(out, m->packed, 4), put_le(out, m->plain, 4), put_le(out, strlen(m->name), 2), put_le(out, 0, 2);
    put(out, m->name, strlen(m->name));
    put(out, packed, m->packed);
    free(packed);
    free(plain);
}

static size_t make_archive(Member *members, size_t count, uint8_t **bytes) {
    Bytes out = {malloc(8u << 20), 0};
    assert_non_null(out.at);
    for (size_t m = 0; m < count; m++) put_member(&out, &members[m]);
    size_t directory = out.len;
    for (size_t m = 0; m < count; m++) {
        put_le(&out, 0x02014b50, 4), put_le(&out, 20, 2), put_le(&out, 20, 2), put_le(&out, 0, 2),
            put_le(&out, members[m].deflated ? 8 : 0, 2), put_le(&out, 0, 4);
        put_le(&out, members[m].crc, 4), put_le(&out, members[m].packed, 4), put_le(&out, members[m].plain, 4),
            put_le(&out, strlen(members[m].name), 2);
        put_le(&out, 0, 2), put_le(&out, 0, 2), put_le(&out, 0, 2), put_le(&out, 0, 2), put_le(&out, 0, 4),
            put_le(&out, members[m].offset, 4);
        put(&out, members[m].name, strlen(members[m].name));
    }
    size_t end = out.len;
    put_le(&out, 0x06054b50, 4), put_le(&out, 0, 4), put_le(&out, count, 2), put_le(&out, count, 2), put_le(&out, end - directory, 4),
        put_le(&out, directory, 4), put_le(&out, 0, 2);
    *bytes = out.at;
    return out.len;
}

static void save(const char *path, const uint8_t *bytes, size_t len) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

static void converted_bytes_come_in_order_through_many_chunks(void **state) {
    (void)state;
    Member members[] = {{"flags.npy", "|b1", 300001, 1, 1, 0, 0, 0, 0},  {"plain_flags.npy", "|b1", 200003, 1, 0, 0, 0, 0, 0},
                        {"big.npy", ">f8", 90000, 8, 1, 0, 0, 0, 0},     {"swapped.npy", ">i4", 100000, 4, 0, 0, 0, 0, 0},
                        {"stored.npy", "<f4", 120000, 4, 0, 0, 0, 0, 0}, {"deflated.npy", "<f4", 120000, 4, 1, 0, 0, 0, 0}};
    char path[600];
    uint8_t *bytes;
    uint32_t loaded = 0;
    size_t len = make_archive(members, 6, &bytes);
    snprintf(path, sizeof path, "%s/tests/loader-archive.%d.npz", HURRAY_BINARY_DIR, (int)getpid());
    save(path, bytes, len);
    assert_int_equal(check_model(path, &loaded), 1);
    assert_int_equal(loaded, 6);
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    options.memory_cap = 300 << 10; /* one conversion at a time */
    options.threads = 4;
    assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    hurray_loader_stats(loader, &stats);
    assert_true(stats.peak_host > 0 && stats.peak_host <= 300 << 10);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    options.memory_cap = 1000;
    assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_ERR_LIMIT);
    hurray_loader_destroy(&loader);
    options.memory_cap = 0;
    bytes[members[4].offset + 30 + 10 + 128 + 5000] ^= 1; /* a stored member: its CRC-32 is compared as well */
    save(path, bytes, len);
    assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_ERR_CHECKSUM);
    assert_string_equal(hurray_loader_last_error(loader)->tensor, "stored");
    assert_int_equal(hurray_loader_select_glob(loader, "[!s]*", 5), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    hurray_tensor_set_destroy(&set);
    assert_int_equal(hurray_loader_verify(loader, HURRAY_CHECK_SUMS, NULL, NULL), HURRAY_ERR_CHECKSUM);
    hurray_loader_destroy(&loader);
    unlink(path);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_loaded_is_what_is_read_piece_by_piece),
        cmocka_unit_test(converted_bytes_come_in_order_through_many_chunks),
    };
    return cmocka_run_group_tests_name("loader/vectors", tests, NULL, NULL);
}
