#include "import/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fail_alloc.h"
#include "support/import_case.h"
#include "support/script_transport.h"

#define ENTRY(name, shape, begin, end) "\"" name "\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/hurray-model-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static const char *in_folder(const char *name) {
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t len) {
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

static void write_text(const char *name, const char *text) { write_file(name, text, strlen(text)); }

static void write_safetensors(const char *name, const char *header, size_t data_len) {
    Built file = {0};
    uint8_t data[64] = {0};
    built_safetensors(&file, header, data, data_len);
    write_file(name, file.bytes, file.len);
    built_free(&file);
}

static void write_gguf(const char *name, const char *tensor, uint64_t no, uint64_t count, int32_t total, const char *key) {
    Built f = {0};
    bool split = count > 0;
    built_text(&f, "GGUF"), built_u32(&f, 3), built_u64(&f, tensor ? 1 : 0), built_u64(&f, (split ? 3u : 0u) + (key ? 1u : 0u));
    if (split) {
        built_u64(&f, 8), built_text(&f, "split.no"), built_u32(&f, 2), built_u16(&f, (uint16_t)no);
        built_u64(&f, 11), built_text(&f, "split.count"), built_u32(&f, 2), built_u16(&f, (uint16_t)count);
        built_u64(&f, 19), built_text(&f, "split.tensors.count"), built_u32(&f, 5), built_u32(&f, (uint32_t)total);
    }
    if (key) built_u64(&f, strlen(key)), built_text(&f, key), built_u32(&f, 4), built_u32(&f, (uint32_t)no);
    if (tensor) {
        built_u64(&f, strlen(tensor)), built_text(&f, tensor), built_u32(&f, 1), built_u64(&f, 4), built_u32(&f, 24), built_u64(&f, 0);
        while (f.len % 32) built_u8(&f, 0);
        built_zeros(&f, 4);
    }
    write_file(name, f.bytes, f.len);
    built_free(&f);
}

static HryModel open_model(const char *name) {
    HryModel model;
    HurrayError error;
    HryLimits limits = import_limits();
    HurrayAllocator allocator = hry_alloc_default();
    HurrayStatus status = hry_model_open_path(in_folder(name), &limits, &allocator, &model, &error);
    if (status != HURRAY_OK) print_error("%s: %s\n", error.source, error.message);
    assert_int_equal(status, HURRAY_OK);
    return model;
}

static void refuse_model(const char *name, HurrayStatus status, const char *word) {
    HryModel model;
    FailAlloc alloc;
    HurrayError error;
    HryLimits limits = import_limits();
    fail_alloc_init(&alloc);
    HurrayStatus found = hry_model_open_path(in_folder(name), &limits, &alloc.allocator, &model, &error);
    bool said = found && (strstr(error.message, word) || strstr(error.tensor, word));
    if (found != status || !said)
        print_error("%d: %s: %s: %s; expected %d `%s`\n", found, error.source, error.tensor, found ? error.message : "", status, word);
    assert_int_equal(found, status);
    assert_true(said);
    assert_true(error.source[0] != 0);
    fail_alloc_assert_empty(&alloc);
}

/* With the k-th allocation failing for every k; nothing stays open. */
static void fails_cleanly(const char *name) {
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    for (uint64_t k = 1;; k++) {
        HryModel model;
        HurrayError error;
        HryLimits limits = import_limits();
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hry_model_open_path(in_folder(name), &limits, &alloc.allocator, &model, &error);
        if (status == HURRAY_OK) {
            bool reached = alloc.calls >= k;
            hry_model_close(&model);
            fail_alloc_assert_empty(&alloc);
            assert_false(reached);
            return;
        }
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        fail_alloc_assert_empty(&alloc);
    }
}

static void a_single_file_is_a_model(void **state) {
    (void)state;
    write_safetensors("one.bin", "{" ENTRY("a", "[1]", 0, 1) "}", 1);
    HryModel model = open_model("one.bin");
    assert_int_equal(model.source_count, 1);
    assert_string_equal(model.sources[0].path, in_folder("one.bin"));
    assert_string_equal(model.sources[0].label, in_folder("one.bin"));
    assert_false(model.named_by_index);
    hry_model_close(&model);
    fails_cleanly("one.bin");
    refuse_model("nothing-there", HURRAY_ERR_TRANSPORT, "o such file");
    write_text("page.safetensors", "<html><body>no</body></html>");
    refuse_model("page.safetensors", HURRAY_ERR_UNSUPPORTED, "HTML");
}

static void a_lone_array_is_named_after_its_stem(void **state) {
    (void)state;
    const char *header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}";
    Built f = {0};
    built_bytes(&f, "\x93NUMPY\1\0", 8), built_u16(&f, (uint16_t)strlen(header)), built_text(&f, header), built_u8(&f, 7);
    write_file("weights.v1.npy", f.bytes, f.len);
    built_free(&f);
    HryModel model = open_model("weights.v1.npy");
    assert_int_equal(model.sources[0].catalogue->entries[0].name_len, 10);
    assert_memory_equal(model.sources[0].catalogue->entries[0].name, "weights.v1", 10);
    hry_model_close(&model);
}

static void write_shards(void) {
    mkdir(in_folder("s"), 0700);
    mkdir(in_folder("s/sub"), 0700);
    write_safetensors("s/b-file",
                      "{\"__metadata__\":{\"k\":\"1\",\"only\":\"b\"}," ENTRY("y", "[2]", 0, 2) "," ENTRY("stray", "[1]", 2, 3) "}", 3);
    write_safetensors("s/sub/a-file", "{\"__metadata__\":{\"k\":\"2\"}," ENTRY("x", "[2]", 0, 2) "," ENTRY("y", "[1]", 2, 3) "}", 3);
    write_text("s/model.safetensors.index.json",
               "{\"metadata\":{\"total_size\":{\"deep\":[1]}},\"weight_map\":{\"x\":\"sub/a-file\",\"y\":\"b-file\"},\"other\":[{}]}");
}

static void an_index_decides_which_file_a_tensor_comes_from(void **state) {
    (void)state;
    write_shards();
    write_safetensors("s/model.safetensors", "{}", 0); /* stray: the index counts */
    for (int way = 0; way < 2; way++) {
        HryModel model = open_model(way ? "s" : "s/model.safetensors.index.json");
        assert_int_equal(model.source_count, 2);
        assert_true(model.named_by_index);
        HryCatalogue *b = model.sources[0].catalogue, *a = model.sources[1].catalogue;
        assert_int_equal(b->entry_count, 1);
        assert_memory_equal(b->entries[0].name, "y", 1);
        assert_int_equal(a->entry_count, 1);
        assert_memory_equal(a->entries[0].name, "x", 1);
        assert_int_equal(b->kv_count, 2);
        assert_int_equal(a->kv_count, 0); /* k is the first file's */
        assert_int_equal(model.note_count, 3);
        assert_non_null(strstr(model.notes[0].message, "`stray`"));
        assert_non_null(strstr(model.notes[1].message, "`y`"));
        assert_non_null(strstr(model.notes[2].message, "`k`"));
        hry_model_close(&model);
    }
    fails_cleanly("s");
}

static void a_wrong_index_is_refused_by_name(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"weight_map\":{\"x\":\"gone-00002\"}}", "gone-00002 is missing"},
        {"{\"weight_map\":{\"x\":\"b-file\"}}", "x"},
        {"{\"weight_map\":{\"x\":\"b-file\",\"x\":\"b-file\"}}", "twice"},
        {"{\"weight_map\":{\"x\":3}}", "no string"},
        {"{\"weight_map\":{\"x\":\"\"}}", "empty"},
        {"{\"weight_map\":{\"x\":\"/etc/passwd\"}}", "absolute"},
        {"{\"weight_map\":{\"x\":\"../s/b-file\"}}", "`..`"},
        {"{\"weight_map\":{\"x\":\"sub/..\"}}", "`..`"},
        {"{\"weight_map\":{\"x\":\"b\\u0000-file\"}}", "NUL"},
        {"{\"weight_map\":{}}", "empty"},
        {"{\"weight_map\":{\"x\":\"b-file\"},\"weight_map\":{}}", "twice"},
        {"{\"metadata\":1,\"metadata\":2,\"weight_map\":{}}", "twice"},
        {"{\"weight_map\":[],\"weight_map\":{}}", "no object"},
        {"{\"weight_map\":{\"x\":\"index.json\"}}", "no safetensors"},
        {"{\"weight_map\":{\"x\":\"text\"}}", "begins with"},
        {"{\"weight_map\":{\"x\":\"b-file\"}", "JSON"},
    };
    write_shards();
    write_text("s/text", "some other text");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("s/index.json", cases[i][0]);
        HurrayStatus status = strstr(cases[i][0], "\"x\":\"b-file\",\"x\"") ? HURRAY_ERR_DUPLICATE_NAME
                              : i == 14                                     ? HURRAY_ERR_INVALID_MAGIC
                                                                            : HURRAY_ERR_INVALID_CONTAINER;
        refuse_model("s/index.json", status, cases[i][1]);
    }
    /* names may look like a way up without being one */
    write_safetensors("s/..b", "{" ENTRY("x", "[1]", 0, 1) "}", 1);
    write_text("s/index.json", "{\"weight_map\":{\"x\":\"..b\"}}");
    HryModel model = open_model("s/index.json");
    hry_model_close(&model);
}

static void a_shard_named_in_several_ways_is_opened_once(void **state) {
    (void)state;
    mkdir(in_folder("w"), 0700);
    mkdir(in_folder("w/sub"), 0700);
    write_safetensors("w/sub/a", "{" ENTRY("x", "[1]", 0, 1) "," ENTRY("y", "[1]", 1, 2) "," ENTRY("z", "[1]", 2, 3) "}", 3);
    write_text("w/index.json", "{\"weight_map\":{\"x\":\"sub/a\",\"y\":\"./sub//a\",\"z\":\"sub/././a\"}}");
    HryModel model = open_model("w/index.json");
    assert_int_equal(model.source_count, 1);
    assert_int_equal(model.sources[0].catalogue->entry_count, 3);
    hry_model_close(&model);
    write_text("w/index.json", "{\"weight_map\":{\"x\":\"./.\"}}");
    refuse_model("w/index.json", HURRAY_ERR_INVALID_CONTAINER, "no file in it");
}

static void a_folder_is_opened_by_its_only_model(void **state) {
    (void)state;
    mkdir(in_folder("f"), 0700);
    write_text("f/config.json", "{}");
    refuse_model("f", HURRAY_ERR_UNSUPPORTED, "config.json");
    write_safetensors("f/a.safetensors", "{" ENTRY("a", "[1]", 0, 1) "}", 1);
    HryModel model = open_model("f");
    assert_memory_equal(model.sources[0].catalogue->entries[0].name, "a", 1);
    hry_model_close(&model);
    write_safetensors("f/b.safetensors", "{" ENTRY("b", "[1]", 0, 1) "}", 1);
    refuse_model("f", HURRAY_ERR_UNSUPPORTED, "b.safetensors");
    write_safetensors("f/model.safetensors", "{" ENTRY("m", "[1]", 0, 1) "}", 1);
    model = open_model("f/");
    assert_memory_equal(model.sources[0].catalogue->entries[0].name, "m", 1);
    hry_model_close(&model);
    write_text("f/x.safetensors.index.json", "{\"weight_map\":{\"b\":\"b.safetensors\"}}");
    model = open_model("f");
    assert_memory_equal(model.sources[0].catalogue->entries[0].name, "b", 1);
    hry_model_close(&model);
    write_text("f/y.safetensors.index.json", "{\"weight_map\":{\"b\":\"b.safetensors\"}}");
    model = open_model("f"); /* two of them: neither counts */
    assert_memory_equal(model.sources[0].catalogue->entries[0].name, "m", 1);
    hry_model_close(&model);
    write_text("f/model.safetensors.index.json", "{\"weight_map\":{\"a\":\"a.safetensors\"}}");
    model = open_model("f");
    assert_memory_equal(model.sources[0].catalogue->entries[0].name, "a", 1);
    hry_model_close(&model);
}

static void a_split_set_is_opened_by_its_first_part(void **state) {
    (void)state;
    mkdir(in_folder("g"), 0700);
    write_gguf("g/m-00001-of-00003.gguf", NULL, 0, 3, 2, "general.x");
    write_gguf("g/m-00002-of-00003.gguf", "a", 1, 3, 2, "general.x");
    refuse_model("g/m-00001-of-00003.gguf", HURRAY_ERR_INVALID_CONTAINER, "m-00003-of-00003.gguf is missing");
    write_gguf("g/m-00003-of-00003.gguf", "b", 2, 3, 2, NULL);
    HryModel model = open_model("g/m-00001-of-00003.gguf");
    assert_int_equal(model.source_count, 3);
    assert_int_equal(model.sources[0].catalogue->kv_count, 1); /* split.* is gone */
    assert_int_equal(model.sources[1].catalogue->kv_count, 0); /* and a key that part 1 has */
    assert_int_equal(model.note_count, 1);
    assert_memory_equal(model.sources[2].catalogue->entries[0].name, "b", 1);
    hry_model_close(&model);
    fails_cleanly("g/m-00001-of-00003.gguf");
    refuse_model("g/m-00002-of-00003.gguf", HURRAY_ERR_UNSUPPORTED, "m-00001-of-00003.gguf");
    write_gguf("g/m-00003-of-00003.gguf", "b", 1, 3, 2, NULL);
    refuse_model("g/m-00001-of-00003.gguf", HURRAY_ERR_INVALID_CONTAINER, "split.no is 1, expected 2");
    write_gguf("g/m-00003-of-00003.gguf", "b", 2, 4, 2, NULL);
    refuse_model("g/m-00001-of-00003.gguf", HURRAY_ERR_INVALID_CONTAINER, "split.count is 4, expected 3");
    write_gguf("g/m-00003-of-00003.gguf", "a", 2, 3, 2, NULL);
    refuse_model("g/m-00001-of-00003.gguf", HURRAY_ERR_DUPLICATE_NAME, "a");
    write_gguf("g/m-00003-of-00003.gguf", NULL, 2, 3, 2, NULL);
    refuse_model("g/m-00001-of-00003.gguf", HURRAY_ERR_INVALID_CONTAINER, "split.tensors.count is 2, expected 1");
    write_safetensors("g/m-00003-of-00003.gguf", "{}", 0);
    refuse_model("g/m-00001-of-00003.gguf", HURRAY_ERR_INVALID_CONTAINER, "no GGUF file");
    write_gguf("g/renamed.gguf", "a", 0, 3, 2, NULL);
    refuse_model("g/renamed.gguf", HURRAY_ERR_INVALID_CONTAINER, "-00001-of-00003.gguf");
    write_gguf("g/a-much-longer-name.gguf", "a", 1, 3, 2, NULL);
    refuse_model("g/a-much-longer-name.gguf", HURRAY_ERR_UNSUPPORTED, "part 2");
    write_gguf("g/whole.gguf", "a", 0, 1, 1, NULL);
    model = open_model("g/whole.gguf");
    assert_int_equal(model.sources[0].catalogue->kv_count, 3);
    hry_model_close(&model);
}

static void sources_are_opened_in_order_and_transports_stay_on_failure(void **state) {
    (void)state;
    ScriptTransport good, bad, array;
    Built file = {0}, npy = {0};
    HryModel model;
    HurrayError error;
    HryLimits limits = import_limits();
    FailAlloc alloc;
    const char *header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}";
    fail_alloc_init(&alloc);
    built_safetensors(&file, "{" ENTRY("t", "[1]", 0, 1) "}", "x", 1);
    built_bytes(&npy, "\x93NUMPY\1\0", 8), built_u16(&npy, (uint16_t)strlen(header)), built_text(&npy, header), built_u8(&npy, 7);
    script_source(&good, file.bytes, file.len);
    script_source(&bad, "{\"weight_map\":{\"a\":\"b\"}}", 24);
    script_source(&array, npy.bytes, npy.len);
    write_safetensors("one.bin", "{" ENTRY("a", "[1]", 0, 1) "}", 1);
    HurrayTransport t = script_transport(&good), u = script_transport(&bad), v = script_transport(&array);
    HurraySource sources[4] = {{.path = in_folder("one.bin"), .label = "l\x01", .label_len = 2},
                               {.transport = &t},
                               {.transport = &v},
                               {.transport = &u, .label = "idx", .label_len = 3}};
    assert_int_equal(hry_model_open_sources(sources, 4, &limits, &alloc.allocator, &model, &error), HURRAY_ERR_UNSUPPORTED);
    assert_string_equal(error.source, "idx");
    assert_int_equal(good.releases + bad.releases + array.releases, 0);
    fail_alloc_assert_empty(&alloc);
    assert_int_equal(hry_model_open_sources(sources, 3, &limits, &alloc.allocator, &model, &error), HURRAY_OK);
    assert_int_equal(model.source_count, 3);
    assert_string_equal(model.sources[0].label, "l\\x01");
    assert_memory_equal(model.sources[2].catalogue->entries[0].name, "array", 5);
    hry_model_close(&model);
    assert_int_equal(good.releases, 1);
    assert_int_equal(array.releases, 1);
    fail_alloc_assert_empty(&alloc);
    uint64_t releases = good.releases;
    for (uint64_t k = 1;; k++) {
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hry_model_open_sources(sources, 3, &limits, &alloc.allocator, &model, &error);
        if (status == HURRAY_OK) break;
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        assert_int_equal(good.releases, releases);
        fail_alloc_assert_empty(&alloc);
    }
    hry_model_close(&model);
    fail_alloc_assert_empty(&alloc);
    fail_alloc_arm(&alloc, 0, 0);
    sources[1].path = "x";
    assert_int_equal(hry_model_open_sources(sources, 2, &limits, &alloc.allocator, &model, &error), HURRAY_ERR_INVALID_ARGUMENT);
    sources[1].path = NULL, sources[1].transport = NULL;
    assert_int_equal(hry_model_open_sources(sources, 2, &limits, &alloc.allocator, &model, &error), HURRAY_ERR_INVALID_ARGUMENT);
    sources[1].transport = &t, sources[1].reserved[1] = 1;
    assert_int_equal(hry_model_open_sources(sources, 2, &limits, &alloc.allocator, &model, &error), HURRAY_ERR_UNSUPPORTED);
    sources[1].reserved[1] = 0, sources[1].label_len = 5;
    assert_int_equal(hry_model_open_sources(sources, 2, &limits, &alloc.allocator, &model, &error), HURRAY_ERR_NULL_POINTER);
    script_free(&good), script_free(&bad), script_free(&array);
    built_free(&file), built_free(&npy);
}

static void a_part_given_as_a_transport_says_how_to_open_the_set(void **state) {
    (void)state;
    write_gguf("part", "a", 0, 2, 2, NULL);
    FILE *file = fopen(in_folder("part"), "rb");
    uint8_t bytes[512];
    size_t len = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ScriptTransport script;
    script_source(&script, bytes, len);
    HurrayTransport t = script_transport(&script);
    HurraySource source = {.transport = &t, .label = "m-00001-of-00002.gguf", .label_len = 21};
    HryModel model;
    HurrayError error;
    HryLimits limits = import_limits();
    HurrayAllocator allocator = hry_alloc_default();
    assert_int_equal(hry_model_open_sources(&source, 1, &limits, &allocator, &model, &error), HURRAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "by its path"));
    assert_int_equal(script.releases, 0);
    script_free(&script);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_file_is_a_model),
        cmocka_unit_test(a_lone_array_is_named_after_its_stem),
        cmocka_unit_test(an_index_decides_which_file_a_tensor_comes_from),
        cmocka_unit_test(a_wrong_index_is_refused_by_name),
        cmocka_unit_test(a_shard_named_in_several_ways_is_opened_once),
        cmocka_unit_test(a_folder_is_opened_by_its_only_model),
        cmocka_unit_test(a_split_set_is_opened_by_its_first_part),
        cmocka_unit_test(sources_are_opened_in_order_and_transports_stay_on_failure),
        cmocka_unit_test(a_part_given_as_a_transport_says_how_to_open_the_set),
    };
    return cmocka_run_group_tests_name("import/model", tests, make_folder, remove_folder);
}
