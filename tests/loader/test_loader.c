#include "loader/loader.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/composites.h"
#include "support/fail_alloc.h"
#include "support/models.h"
#include "support/script_transport.h"

static const ModelTensor three[] = {{"a.weight", 5000, 1}, {"a.bias", 16, 2}, {"b.weight", 70000, 3}};

static HurrayLoader *open_script(ScriptTransport *script, const HurrayLoaderOptions *options) {
    HurrayTransport transport = script_transport(script);
    HurraySource source = {.transport = &transport, .label = "model", .label_len = 5};
    HurrayLoader *loader = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayStatus status = hurray_loader_open_sources(&source, 1, options, &loader, &error);
    if (status != HURRAY_OK) print_error("open: %d %s\n", status, error.message);
    assert_int_equal(status, HURRAY_OK);
    return loader;
}

static HurrayLoader *open_bytes(ScriptTransport *script, ModelBytes *bytes, const HurrayLoaderOptions *options) {
    script_source(script, bytes->bytes, bytes->len);
    script->flags = HURRAY_TRANSPORT_CONCURRENT;
    return open_script(script, options);
}

static void check_set(HurrayTensorSet *set, const ModelTensor *tensors, size_t count) {
    uint64_t n = 0;
    assert_int_equal(hurray_tensor_set_count(set, &n), HURRAY_OK);
    assert_int_equal(n, count);
    for (size_t t = 0; t < count; t++) {
        const uint8_t *name = NULL;
        size_t len = 0;
        HurrayTensor *tensor = NULL;
        uint64_t at = 99;
        assert_int_equal(hurray_tensor_set_name(set, t, &name, &len), HURRAY_OK);
        assert_int_equal(len, strlen(tensors[t].name));
        assert_memory_equal(name, tensors[t].name, len);
        assert_int_equal(hurray_tensor_set_find(set, name, len, &at), HURRAY_OK);
        assert_int_equal(at, t);
        assert_int_equal(hurray_tensor_set_get(set, t, &tensor), HURRAY_OK);
        assert_true(model_tensor_is(tensor, tensors[t].size, tensors[t].seed));
    }
}

static void load_and_check(ModelBytes *bytes, const ModelTensor *tensors, size_t count, const HurrayLoaderOptions *options) {
    ScriptTransport script;
    HurrayTensorSet *set = NULL;
    HurrayLoader *loader = open_bytes(&script, bytes, options);
    HurrayStatus status = hurray_loader_load(loader, &set);
    if (status != HURRAY_OK) print_error("load: %d %s\n", status, hurray_loader_last_error(loader)->message);
    assert_int_equal(status, HURRAY_OK);
    hurray_loader_destroy(&loader);
    assert_int_equal(script.releases, 1);
    script_free(&script);
    check_set(set, tensors, count);
    hurray_tensor_set_destroy(&set);
    assert_null(set);
}

static void everything_is_loaded_in_file_order_from_hrry_and_safetensors(void **state) {
    (void)state;
    ModelBytes hrry = model_hrry(three, 3, 0), foreign = model_safetensors(three, 3);
    for (uint32_t threads = 0; threads < 4; threads++) {
        HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
        options.threads = threads;
        options.chunk_bytes = 4096;
        load_and_check(&hrry, three, 3, &options);
        load_and_check(&foreign, three, 3, &options);
    }
    load_and_check(&hrry, three, 3, NULL);
    model_free(&hrry);
    model_free(&foreign);
}

static void files_are_loaded_by_path_with_every_way_of_reading(void **state) {
    (void)state;
    ModelTensor big[4] = {{"one", 300000, 4}, {"two", 3, 5}, {"three", 0, 6}, {"four", 1234567, 7}};
    ModelBytes models[2] = {model_hrry(big, 4, 0), model_safetensors(big, 4)};
    for (int m = 0; m < 2; m++) {
        const char *path = model_save(&models[m], "loader-model");
        for (uint32_t io = 0; io < 4; io++)
            for (uint32_t direct = 0; direct < 3; direct++)
                for (uint32_t flags = 0; flags < 4; flags += 2) {
                    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
                    HurrayLoader *loader = NULL;
                    HurrayTensorSet *set = NULL;
                    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
                    options.io = io;
                    options.direct = direct;
                    options.flags = flags;
                    options.threads = 3;
                    options.chunk_bytes = 65536;
                    options.verify_data = HURRAY_VERIFY_STORED;
                    assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
                    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
                    assert_int_equal(hurray_loader_stats(loader, &stats), HURRAY_OK);
                    assert_int_equal(stats.tensors, 4);
                    assert_int_equal(stats.payload_bytes, 300000 + 3 + 1234567);
                    if (m == 0) assert_int_equal(stats.bytes_verified, stats.payload_bytes);
                    assert_true(stats.path_count >= 1);
                    HurrayPathStats row = HURRAY_PATH_STATS_INIT;
                    assert_int_equal(hurray_loader_path_stats(loader, 0, &row), HURRAY_OK);
                    assert_int_equal(hurray_loader_path_stats(loader, stats.path_count, &row), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
                    hurray_loader_destroy(&loader);
                    check_set(set, big, 4);
                    hurray_tensor_set_destroy(&set);
                }
        unlink(path);
        model_free(&models[m]);
    }
}

static uint64_t path_bytes(const HurrayLoader *loader, uint32_t io, char *reasons, size_t size) {
    HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
    uint64_t bytes = 0;
    reasons[0] = 0;
    assert_int_equal(hurray_loader_stats(loader, &stats), HURRAY_OK);
    for (uint32_t i = 0; i < stats.path_count; i++) {
        HurrayPathStats row = HURRAY_PATH_STATS_INIT;
        assert_int_equal(hurray_loader_path_stats(loader, i, &row), HURRAY_OK);
        if (row.io != io) continue;
        bytes += row.bytes;
        if (io == HURRAY_IO_MMAP) assert_int_equal(row.ranges, 0);
        if (row.reason) snprintf(reasons + strlen(reasons), size - strlen(reasons), "%s", row.reason);
    }
    return bytes;
}

/* Each row counts its own bytes once, checked or not, and says why it is not what was asked. */
static void a_file_that_is_mapped_in_part_says_so_and_why(void **state) {
    (void)state;
    ModelTensor list[] = {{"one", 300000, 4}, {"three", 3, 5}, {"odd", 70000, 6}, {"four", 1234567, 7}};
    ModelBytes models[2] = {model_hrry(list, 4, 0), model_safetensors(list, 4)};
    for (int m = 0; m < 2; m++) {
        const char *path = model_save(&models[m], "loader-mapped");
        HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
        HurrayLoader *loader = NULL;
        HurrayTensorSet *set = NULL;
        HurrayLoadStats stats = HURRAY_LOAD_STATS_INIT;
        char mapped[700], read[700];
        options.io = HURRAY_IO_MMAP;
        options.direct = HURRAY_ON;
        options.verify_data = HURRAY_VERIFY_STORED;
        assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
        assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
        assert_int_equal(hurray_loader_stats(loader, &stats), HURRAY_OK);
        uint64_t in_place = path_bytes(loader, HURRAY_IO_MMAP, mapped, sizeof mapped);
        uint64_t others = path_bytes(loader, HURRAY_IO_THREADS, read, sizeof read);
        assert_int_equal(in_place, stats.bytes_in_place);
        assert_int_equal(in_place + others, stats.payload_bytes);
        if (m == 0) assert_int_equal(others, 0);
        if (in_place) assert_non_null(strstr(mapped, "a mapping was used"));
        if (m == 1) assert_true(others > 0);
        if (others) assert_non_null(strstr(read, "multiples of 64 bytes"));
        hurray_tensor_set_destroy(&set);
        hurray_loader_destroy(&loader);
        unlink(path);
        model_free(&models[m]);
    }
}

static void what_is_beyond_a_limit_is_the_nearest_and_says_so(void **state) {
    (void)state;
    ModelTensor list[] = {{"one", 3000000, 4}};
    ModelBytes model = model_hrry(list, 1, 0);
    const char *path = model_save(&model, "loader-limits");
    for (int variant = 0; variant < 4; variant++) {
        HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
        HurrayLoader *loader = NULL;
        HurrayTensorSet *set = NULL;
        char reasons[700];
        options.io = HURRAY_IO_THREADS;
        options.queue_depth = variant == 1 ? 1025 : 1024;
        options.chunk_bytes = variant == 2 ? 4095 : variant == 1 ? UINT64_MAX : 4096;
        options.threads = variant == 3 ? 257 : 3;
        assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
        assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
        assert_int_equal(path_bytes(loader, HURRAY_IO_THREADS, reasons, sizeof reasons), 3000000);
        assert_true((strstr(reasons, "queue depth is 1024, the most") != NULL) == (variant == 1));
        assert_true((strstr(reasons, "chunk size is 1073741824, the most") != NULL) == (variant == 1));
        assert_true((strstr(reasons, "chunk size is 4096, the least") != NULL) == (variant == 2));
        assert_true((strstr(reasons, "thread count is") != NULL) == (variant == 3));
        if (variant == 0) assert_string_equal(reasons, "");
        hurray_tensor_set_destroy(&set);
        hurray_loader_destroy(&loader);
    }
    unlink(path);
    model_free(&model);
}

static void buffers_are_read_directly_where_the_file_system_can(void **state) {
    (void)state;
    static const ModelTensor big[] = {{"one", 3000000, 4}, {"two", 17000001, 5}, {"three", 4096 * 50, 6}, {"four", 10, 7}};
    ModelBytes models[2] = {model_hrry(big, 4, 0), model_safetensors(big, 4)};
    for (int m = 0; m < 2; m++) {
        const char *path = model_save(&models[m], "loader-direct");
        int probe = open(path, O_RDONLY | O_DIRECT);
        for (int variant = 0; variant < 8; variant++) {
            HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
            HurrayLoader *loader = NULL;
            HurrayTensorSet *set = NULL;
            HurrayPathStats row = HURRAY_PATH_STATS_INIT;
            HurrayHostInfo host = HURRAY_HOST_INFO_INIT;
            bool cold = variant & 4;
            options.io = variant & 1 ? HURRAY_IO_URING : HURRAY_IO_THREADS;
            options.direct = cold ? HURRAY_AUTO : HURRAY_ON;
            options.threads = variant & 2 ? 3 : 0;
            options.chunk_bytes = 1 << 20;
            options.verify_data = HURRAY_VERIFY_STORED;
            int fd = open(path, O_RDONLY);
            if (cold) fsync(fd), posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
            close(fd);
            assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
            assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
            assert_int_equal(hurray_loader_path_stats(loader, 0, &row), HURRAY_OK);
            assert_int_equal(hurray_host_info(&host, NULL), HURRAY_OK);
            assert_int_equal(row.io, options.io == HURRAY_IO_URING && host.uring ? HURRAY_IO_URING : HURRAY_IO_THREADS);
            if ((m == 0 || options.io == HURRAY_IO_THREADS) && !cold && probe >= 0) assert_int_equal(row.direct, HURRAY_ON);
            if (row.direct != HURRAY_ON && !cold) assert_non_null(row.reason);
            hurray_loader_destroy(&loader);
            check_set(set, big, 4);
            hurray_tensor_set_destroy(&set);
        }
        if (probe >= 0) close(probe);
        unlink(path);
        model_free(&models[m]);
    }
}

/* Its bytes lie in the file otherwise than in memory, so direct reads go by way of the readers' own memory, several tensors in one. */
static void unaligned_tensors_read_directly_are_whole_or_truncated(void **state) {
    (void)state;
    enum { SMALL = 40, COUNT = SMALL + 2 };
    static const uint64_t large[] = {3000001, 700001};
    ModelTensor list[COUNT];
    char names[COUNT][16];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "t%02d", i);
        list[i] = (ModelTensor){names[i], i < SMALL ? 5003 : large[i - SMALL], (uint32_t)i};
    }
    ModelBytes model = model_safetensors(list, COUNT);
    const char *path = model_save(&model, "loader-bounce");
    int probe = open(path, O_RDONLY | O_DIRECT);
    for (int cut = -1; cut < COUNT; cut += 3) {
        HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
        HurrayLoader *loader = NULL;
        HurrayTensorSet *set = NULL;
        HurrayPathStats row = HURRAY_PATH_STATS_INIT;
        HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
        options.io = HURRAY_IO_THREADS;
        options.direct = HURRAY_ON;
        options.threads = 2;
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(model.bytes, 1, model.len, file), model.len);
        fclose(file);
        assert_int_equal(hurray_loader_open(path, &options, &loader, NULL), HURRAY_OK);
        if (cut < 0) {
            assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
            assert_int_equal(hurray_loader_path_stats(loader, 0, &row), HURRAY_OK);
            if (probe >= 0) assert_int_equal(row.direct, HURRAY_ON);
            check_set(set, list, COUNT);
            hurray_tensor_set_destroy(&set);
        } else {
            assert_int_equal(hurray_loader_tensor_info(loader, (uint64_t)cut, &info), HURRAY_OK);
            assert_int_equal(truncate(path, (off_t)(info.data_offset + 3)), 0);
            assert_int_equal(hurray_loader_load(loader, &set), HURRAY_ERR_TRUNCATED);
            assert_null(set);
            assert_string_equal(hurray_loader_last_error(loader)->tensor, names[cut]);
            assert_int_equal(hurray_loader_last_error(loader)->offset, info.data_offset + 3);
        }
        hurray_loader_destroy(&loader);
    }
    if (probe >= 0) close(probe);
    unlink(path);
    model_free(&model);
}

static void what_is_there_is_told_before_anything_is_loaded(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = model_hrry(three, 3, 0);
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL);
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    HurraySourceInfo source = HURRAY_SOURCE_INFO_INIT;
    HurrayKvEntry kv;
    uint64_t n = 0, at = 0;
    uint32_t sources = 0;
    assert_int_equal(hurray_loader_tensor_count(loader, &n), HURRAY_OK);
    assert_int_equal(n, 3);
    assert_int_equal(hurray_loader_find(loader, "b.weight", 8, &at), HURRAY_OK);
    assert_int_equal(at, 2);
    assert_int_equal(hurray_loader_find(loader, "c", 1, &at), HURRAY_ERR_NOT_FOUND);
    assert_non_null(strstr(hurray_loader_last_error(loader)->message, "\"c\""));
    assert_int_equal(hurray_loader_tensor_info(loader, 2, &info), HURRAY_OK);
    assert_int_equal(hurray_loader_last_error(loader)->code, HURRAY_OK);
    assert_int_equal(info.index, 2);
    assert_int_equal(info.parent, HURRAY_NONE);
    assert_int_equal(info.buffer_count, 1);
    assert_int_equal(info.buffer_offsets[0], info.data_offset);
    assert_int_equal(info.data_length, 70000);
    assert_null(info.fault);
    assert_int_equal(hurray_loader_tensor_info(loader, 3, &info), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_loader_kv_find(loader, "made", 4, &kv), HURRAY_OK);
    assert_int_equal(kv.value.data_len, 4);
    assert_int_equal(hurray_loader_kv_find(loader, "nope", 4, &kv), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_loader_kv_count(loader, &n), HURRAY_OK);
    assert_int_equal(n, 2);
    assert_int_equal(hurray_loader_kv_entry(loader, 0, &kv), HURRAY_OK);
    assert_int_equal(hurray_loader_kv_entry(loader, 2, &kv), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_loader_source_count(loader, &sources), HURRAY_OK);
    assert_int_equal(sources, 1);
    assert_int_equal(hurray_loader_source_info(loader, 0, &source), HURRAY_OK);
    assert_int_equal(source.format, HURRAY_FORMAT_HRRY);
    assert_int_equal(source.byte_size, bytes.len);
    assert_memory_equal(source.label, "model", 5);
    assert_int_equal(hurray_loader_source_info(loader, 1, &source), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    const HurrayError *note = NULL;
    assert_int_equal(hurray_loader_note_count(loader, &n), HURRAY_OK);
    assert_int_equal(hurray_loader_note(loader, n, &note), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void only_what_is_selected_is_loaded(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = model_hrry(three, 3, 0);
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL);
    HurrayTensorSet *set = NULL;
    uint64_t planned = 0, buffers = 0;
    assert_int_equal(hurray_loader_select_glob(loader, "*.weight", 8), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    ModelTensor weights[] = {three[0], three[2]};
    check_set(set, weights, 2);
    hurray_tensor_set_destroy(&set);
    assert_int_equal(hurray_loader_select_name(loader, "nobody", 6), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_loader_select_glob(loader, "x*", 2), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_loader_select_glob(loader, "[a", 2), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_loader_select_index(loader, 3), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_loader_select_clear(loader), HURRAY_OK);
    assert_int_equal(hurray_loader_select_name(loader, "nobody", 6), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_loader_plan(loader, HURRAY_DEVICE_CPU, 0, &planned, &buffers), HURRAY_OK);
    assert_int_equal(buffers, 3); /* a name that is not there leaves "everything" as it is */
    assert_int_equal(hurray_loader_select_index(loader, 1), HURRAY_OK);
    assert_int_equal(hurray_loader_plan(loader, HURRAY_DEVICE_CPU, 0, &planned, &buffers), HURRAY_OK);
    assert_int_equal(buffers, 1);
    assert_int_equal(planned, 64);
    assert_int_equal(hurray_loader_plan(loader, HURRAY_DEVICE_CUDA, 0, &planned, &buffers), HURRAY_OK);
    assert_int_equal(planned, 0);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    check_set(set, &three[1], 1);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void any_piece_of_a_buffer_can_be_read(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = model_hrry(three, 3, 0);
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    options.verify_data = HURRAY_VERIFY_REQUIRED;
    HurrayLoader *loader = open_bytes(&script, &bytes, &options);
    uint8_t got[5000], expected[5000];
    model_fill(expected, 3, 61000, 5000);
    assert_int_equal(hurray_loader_read_bytes(loader, 2, 0, 61000, got, 5000), HURRAY_OK);
    assert_memory_equal(got, expected, 5000);
    assert_int_equal(hurray_loader_read_bytes(loader, 2, 0, 70000, got, 0), HURRAY_OK);
    assert_int_equal(hurray_loader_read_bytes(loader, 2, 0, 69999, got, 2), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_loader_read_bytes(loader, 2, 1, 0, got, 1), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_loader_read_bytes(loader, 3, 0, 0, got, 1), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    for (uint64_t at = 0; at < 5000; at += 1000) assert_int_equal(hurray_loader_read_bytes(loader, 0, 0, at, got, 1000), HURRAY_OK);
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    assert_int_equal(hurray_loader_tensor_info(loader, 0, &info), HURRAY_OK);
    script.bytes[info.data_offset + 4321] ^= 4;
    for (uint64_t at = 0; at < 5000; at += 1000)
        assert_int_equal(hurray_loader_read_bytes(loader, 0, 0, at, got, 1000), at == 4000 ? HURRAY_ERR_CHECKSUM : HURRAY_OK);
    assert_string_equal(hurray_loader_last_error(loader)->tensor, "a.weight");
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void several_sources_are_one_model(void **state) {
    (void)state;
    static const ModelTensor more[] = {{"c", 100, 9}};
    ModelBytes models[2] = {model_hrry(three, 3, 0), model_safetensors(more, 1)};
    ScriptTransport scripts[2];
    HurrayTransport transports[2];
    HurraySource sources[2] = {{0}};
    HurrayLoader *loader = NULL;
    HurrayTensorSet *set = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayKvEntry kv;
    uint64_t at = 0, n = 9;
    for (int s = 0; s < 2; s++) {
        script_source(&scripts[s], models[s].bytes, models[s].len);
        transports[s] = script_transport(&scripts[s]);
        sources[s].transport = &transports[s];
        sources[s].label = s ? "second" : "first";
        sources[s].label_len = strlen(sources[s].label);
    }
    assert_int_equal(hurray_loader_open_sources(sources, 2, NULL, &loader, &error), HURRAY_OK);
    assert_int_equal(hurray_loader_find(loader, "c", 1, &at), HURRAY_OK);
    assert_int_equal(at, 3);
    assert_int_equal(hurray_loader_kv_count(loader, &n), HURRAY_OK);
    assert_int_equal(n, 1); /* the same key and value twice; sums belong to one file */
    assert_int_equal(hurray_loader_kv_find(loader, "made", 4, &kv), HURRAY_OK);
    assert_int_equal(hurray_loader_note_count(loader, &n), HURRAY_OK);
    assert_int_equal(n, 0);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    ModelTensor all[] = {three[0], three[1], three[2], more[0]};
    check_set(set, all, 4);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    assert_int_equal(scripts[1].releases, 1);
    sources[1] = sources[0];
    script_reset(&scripts[0]);
    assert_int_equal(hurray_loader_open_sources(sources, 2, NULL, &loader, &error), HURRAY_ERR_DUPLICATE_NAME);
    assert_string_equal(error.tensor, "a.weight");
    assert_int_equal(scripts[0].releases, 0); /* on failure they stay with the caller */
    for (int s = 0; s < 2; s++) {
        script_free(&scripts[s]);
        model_free(&models[s]);
    }
}

static void a_spoiled_tensor_is_listed_and_fails_only_what_wants_it(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = model_hrry(three, 3, 0);
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL);
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    HurrayTensorSet *set = NULL;
    assert_int_equal(hurray_loader_tensor_info(loader, 1, &info), HURRAY_OK);
    uint64_t at = info.descriptor_offset;
    hurray_loader_destroy(&loader);
    script_free(&script);
    bytes.bytes[at + 14] = 0x47; /* no element type */
    loader = open_bytes(&script, &bytes, NULL);
    assert_int_equal(hurray_loader_tensor_info(loader, 1, &info), HURRAY_OK);
    assert_non_null(info.fault);
    assert_int_equal(info.fault->code, HURRAY_ERR_INVALID_TYPE);
    assert_string_equal(info.fault->tensor, "a.bias");
    assert_null(info.descriptor);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_ERR_INVALID_TYPE);
    assert_string_equal(hurray_loader_last_error(loader)->tensor, "a.bias");
    assert_int_equal(hurray_loader_last_error(loader)->tensor_index, 1);
    assert_null(set);
    assert_int_equal(hurray_loader_select_glob(loader, "*.weight", 8), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void tensors_of_a_stream_have_no_names_and_are_selected_by_index(void **state) {
    (void)state;
    ScriptTransport sink, script;
    HurrayWriter *writer = NULL;
    script_sink(&sink);
    HurrayTransport out = script_transport(&sink);
    assert_int_equal(hurray_writer_new(&out, NULL, &writer), HURRAY_OK);
    for (uint32_t t = 0; t < 3; t++) {
        uint64_t size = 1000 + t;
        uint8_t data[1002];
        HurrayIoSlice slice = {data, (size_t)size};
        HurrayDescriptor *descriptor = make_member(HURRAY_TYPE_UINT8, 1, &size, NULL, NULL, NO_ROLE);
        model_fill(data, t, 0, (size_t)size);
        assert_int_equal(hurray_writer_write_tensor(writer, descriptor, &slice, 1), HURRAY_OK);
        hurray_descriptor_destroy(descriptor);
    }
    assert_int_equal(hurray_writer_finish(writer), HURRAY_OK);
    ModelBytes bytes = {sink.bytes, sink.len};
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL);
    HurrayTensorSet *set = NULL;
    HurrayTensor *tensor = NULL;
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    const uint8_t *name = NULL;
    size_t len = 9;
    assert_int_equal(hurray_loader_tensor_info(loader, 1, &info), HURRAY_OK);
    assert_null(info.name);
    assert_int_equal(hurray_loader_select_glob(loader, "*", 1), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_loader_select_index(loader, 1), HURRAY_OK);
    assert_int_equal(hurray_loader_select_index(loader, 2), HURRAY_OK);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    assert_int_equal(hurray_tensor_set_name(set, 0, &name, &len), HURRAY_OK);
    assert_null(name);
    for (uint32_t t = 1; t < 3; t++) {
        assert_int_equal(hurray_tensor_set_get(set, t - 1, &tensor), HURRAY_OK);
        assert_true(model_tensor_is(tensor, 1000 + t, t));
    }
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    script_free(&script);
    hurray_writer_destroy(&writer);
    script_free(&sink);
}

static void a_model_without_tensors_loads_as_an_empty_set(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = model_hrry(three, 0, 0);
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL);
    HurrayTensorSet *set = NULL;
    uint64_t n = 9, at = 0;
    assert_int_equal(hurray_loader_select_glob(loader, "*", 1), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
    assert_int_equal(hurray_tensor_set_count(set, &n), HURRAY_OK);
    assert_int_equal(n, 0);
    assert_int_equal(hurray_tensor_set_find(set, "a", 1, &at), HURRAY_ERR_NOT_FOUND);
    hurray_tensor_set_destroy(&set);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void other_values_of_a_key_are_noted(void **state) {
    (void)state;
    ModelBytes models[2] = {{0}};
    ScriptTransport scripts[2];
    HurrayTransport transports[2];
    HurraySource sources[2] = {{0}};
    HurrayLoader *loader = NULL;
    const HurrayError *note = NULL;
    HurrayKvEntry kv;
    uint64_t n = 0;
    for (int s = 0; s < 2; s++) {
        ModelWriter writer;
        static const uint64_t numbers[] = {1, 2};
        HurrayKvEntry entries[2] = {
            {.key = "same", .key_len = 4, .value = {.kind = HURRAY_KV_ARRAY, .element = HURRAY_KV_UINT64, .data = numbers, .data_len = 2}},
            {.key = "other", .key_len = 5, .value = {.kind = HURRAY_KV_INT64, .i64 = s}}};
        model_writer_begin(&writer, 0);
        ScriptTransport *sink = writer.script;
        assert_int_equal(hurray_file_writer_finish(writer.writer, entries, 2), HURRAY_OK);
        script_source(&scripts[s], sink->bytes, sink->len);
        hurray_file_writer_destroy(&writer.writer);
        script_free(sink);
        free(sink);
        transports[s] = script_transport(&scripts[s]);
        sources[s].transport = &transports[s];
        (void)models;
    }
    assert_int_equal(hurray_loader_open_sources(sources, 2, NULL, &loader, NULL), HURRAY_OK);
    assert_int_equal(hurray_loader_kv_count(loader, &n), HURRAY_OK);
    assert_int_equal(n, 2);
    assert_int_equal(hurray_loader_kv_find(loader, "other", 5, &kv), HURRAY_OK);
    assert_int_equal(kv.value.i64, 0);
    assert_int_equal(hurray_loader_note_count(loader, &n), HURRAY_OK);
    assert_int_equal(n, 1);
    assert_int_equal(hurray_loader_note(loader, 0, &note), HURRAY_OK);
    assert_non_null(strstr(note->message, "other"));
    assert_int_equal(note->source_index, 1);
    hurray_loader_destroy(&loader);
    for (int s = 0; s < 2; s++) script_free(&scripts[s]);
}

static void a_limit_on_tensors_and_descriptors_is_kept(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = model_hrry(three, 3, 0);
    HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
    HurrayTensorSet *set = NULL;
    HurrayTensorInfo info = HURRAY_TENSOR_INFO_INIT;
    options.max_tensor_bytes = 6000;
    HurrayLoader *loader = open_bytes(&script, &bytes, &options);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_ERR_LIMIT);
    assert_string_equal(hurray_loader_last_error(loader)->tensor, "b.weight");
    assert_int_equal(hurray_loader_tensor_info(loader, 2, &info), HURRAY_OK);
    assert_int_equal(info.fault->code, HURRAY_ERR_LIMIT);
    hurray_loader_destroy(&loader);
    script_free(&script);
    options.max_tensor_bytes = 0;
    options.max_descriptor_bytes = 20;
    loader = open_bytes(&script, &bytes, &options);
    assert_int_equal(hurray_loader_load(loader, &set), HURRAY_ERR_LIMIT);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void null_pointers_are_refused(void **state) {
    (void)state;
    ScriptTransport script;
    ModelBytes bytes = model_hrry(three, 1, 0);
    HurrayLoader *loader = open_bytes(&script, &bytes, NULL), *none = NULL;
    uint64_t n = 0;
    uint8_t byte = 0;
    assert_int_equal(hurray_loader_tensor_count(NULL, &n), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_tensor_count(loader, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_tensor_info(loader, 0, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_find(loader, NULL, 1, &n), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_kv_count(loader, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_kv_entry(loader, 0, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_kv_find(loader, "a", 1, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_source_count(loader, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_source_info(loader, 0, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_note_count(loader, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_note(loader, 0, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_select_name(loader, NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_select_glob(loader, NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_select_index(NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_select_clear(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_plan(loader, 0, 0, NULL, &n), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_load(loader, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_cancel(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_read_bytes(loader, 0, 0, 0, NULL, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_read_bytes(NULL, 0, 0, 0, &byte, 1), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_verify(NULL, 1, NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_stats(loader, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_path_stats(loader, 0, NULL), HURRAY_ERR_NULL_POINTER);
    assert_null(hurray_loader_last_error(NULL));
    assert_int_equal(hurray_loader_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_destroy(&none), HURRAY_OK);
    assert_int_equal(hurray_tensor_set_count(NULL, &n), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_tensor_set_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    hurray_loader_destroy(&loader);
    script_free(&script);
    model_free(&bytes);
}

static void there_are_no_devices_without_a_runtime_and_it_says_why(void **state) {
    (void)state;
    uint32_t n = 99;
    int32_t index = 99;
    HurrayDeviceInfo info = HURRAY_DEVICE_INFO_INIT;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_device_count(HURRAY_DEVICE_ROCM, &n, &error), HURRAY_OK);
    assert_int_equal(n, 0);
    assert_int_equal(hurray_device_count(0x55, &n, &error), HURRAY_ERR_INVALID_TYPE);
    assert_int_equal(hurray_device_count(HURRAY_DEVICE_CUDA, NULL, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_device_find(HURRAY_DEVICE_METAL, "0", 1, &index, &error), HURRAY_ERR_NO_DEVICE);
    assert_int_equal(hurray_device_info(HURRAY_DEVICE_METAL, 0, 0, &info, &error), HURRAY_ERR_NO_DEVICE);
    assert_int_equal(hurray_device_info(HURRAY_DEVICE_CUDA, -1, 0, &info, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_device_info(HURRAY_DEVICE_CUDA, 0, 8, &info, &error), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(hurray_device_count(HURRAY_DEVICE_CUDA, &n, &error), HURRAY_OK);
    if (n == 0) {
        assert_int_equal(hurray_device_info(HURRAY_DEVICE_CUDA, 0, 0, &info, &error), HURRAY_ERR_NO_DEVICE);
        assert_true(error.message[0] != 0);
        assert_int_equal(hurray_device_find(HURRAY_DEVICE_CUDA, "0", 1, &index, &error), HURRAY_ERR_NO_DEVICE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_loaded_in_file_order_from_hrry_and_safetensors),
        cmocka_unit_test(files_are_loaded_by_path_with_every_way_of_reading),
        cmocka_unit_test(a_file_that_is_mapped_in_part_says_so_and_why),
        cmocka_unit_test(what_is_beyond_a_limit_is_the_nearest_and_says_so),
        cmocka_unit_test(buffers_are_read_directly_where_the_file_system_can),
        cmocka_unit_test(unaligned_tensors_read_directly_are_whole_or_truncated),
        cmocka_unit_test(what_is_there_is_told_before_anything_is_loaded),
        cmocka_unit_test(only_what_is_selected_is_loaded),
        cmocka_unit_test(any_piece_of_a_buffer_can_be_read),
        cmocka_unit_test(several_sources_are_one_model),
        cmocka_unit_test(a_spoiled_tensor_is_listed_and_fails_only_what_wants_it),
        cmocka_unit_test(tensors_of_a_stream_have_no_names_and_are_selected_by_index),
        cmocka_unit_test(a_model_without_tensors_loads_as_an_empty_set),
        cmocka_unit_test(other_values_of_a_key_are_noted),
        cmocka_unit_test(a_limit_on_tensors_and_descriptors_is_kept),
        cmocka_unit_test(null_pointers_are_refused),
        cmocka_unit_test(there_are_no_devices_without_a_runtime_and_it_says_why),
    };
    return cmocka_run_group_tests_name("loader/loader", tests, NULL, NULL);
}
