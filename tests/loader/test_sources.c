/* What may be opened, and whose it is when opening fails. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "hurray/loader.h"
#include "hurray/transport.h"
#include "support/models.h"
#include "support/script_transport.h"

static char folder[] = "/tmp/hurray-sources-XXXXXX";

static const char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void save(const char *name, const void *bytes, size_t len) {
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* Two shards and their index: one path, two sources. */
static void save_sharded(void) {
    static const char index[] = "{\"metadata\":{},\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}";
    ModelTensor a = {"a", 100, 1}, b = {"b", 100, 2};
    ModelBytes first = model_safetensors(&a, 1), second = model_safetensors(&b, 1);
    save("1.safetensors", first.bytes, first.len);
    save("2.safetensors", second.bytes, second.len);
    save("m.safetensors.index.json", index, sizeof index - 1);
    model_free(&first);
    model_free(&second);
}

static int open_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void transports_stay_the_callers_when_a_path_before_them_is_several_sources(void **state) {
    (void)state;
    ModelTensor same[] = {{"b", 100, 2}}; /* stands in the second shard already */
    ModelBytes bytes = model_hrry(same, 1, 0);
    ScriptTransport script;
    script_source(&script, bytes.bytes, bytes.len);
    HurrayTransport transport = script_transport(&script);
    HurraySource sources[2] = {{.path = path_of("m.safetensors.index.json")}, {.transport = &transport}};
    HurrayLoader *loader = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    int before = open_descriptors();
    assert_int_equal(hurray_loader_open_sources(sources, 2, NULL, &loader, &error), HURRAY_ERR_DUPLICATE_NAME);
    assert_null(loader);
    assert_int_equal(script.releases, 0);
    assert_int_equal(open_descriptors(), before);
    same[0].name = "c";
    model_free(&bytes);
    script_free(&script);
    bytes = model_hrry(same, 1, 0);
    script_source(&script, bytes.bytes, bytes.len);
    transport = script_transport(&script);
    assert_int_equal(hurray_loader_open_sources(sources, 2, NULL, &loader, &error), HURRAY_OK);
    hurray_loader_destroy(&loader);
    assert_int_equal(script.releases, 1);
    assert_int_equal(open_descriptors(), before);
    script_free(&script);
    model_free(&bytes);
}

static void expect_refusal(const char *path) {
    HurrayLoader *loader = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    int before = open_descriptors();
    assert_int_equal(hurray_loader_open(path, NULL, &loader, &error), HURRAY_ERR_UNSUPPORTED);
    assert_null(loader);
    assert_string_equal(error.source, path);
    assert_non_null(strstr(error.message, "hurray stream read"));
    assert_int_equal(open_descriptors(), before);
}

static void what_cannot_be_read_at_offsets_is_refused_without_waiting_for_it(void **state) {
    (void)state;
    expect_refusal("/dev/null");
    expect_refusal("/dev/zero");
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    alarm(30);
    expect_refusal(path_of("pipe"));
    alarm(0);
    int writer = open(path_of("pipe"), O_RDWR);
    assert_true(writer >= 0);
    expect_refusal(path_of("pipe"));
    close(writer);
}

static void a_transport_that_cannot_seek_is_an_argument_error(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    HurrayTransport transport;
    HurrayLoader *loader = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_transport_fd(ends[0], NULL, &transport, NULL), HURRAY_OK);
    HurraySource source = {.transport = &transport};
    assert_int_equal(hurray_loader_open_sources(&source, 1, NULL, &loader, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "read_at"));
    hurray_transport_release(&transport);
    close(ends[0]);
    close(ends[1]);
}

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    save_sharded();
    return 0;
}

static int tear_down(void **state) {
    static const char *const names[] = {"1.safetensors", "2.safetensors", "m.safetensors.index.json", "pipe"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transports_stay_the_callers_when_a_path_before_them_is_several_sources),
        cmocka_unit_test(what_cannot_be_read_at_offsets_is_refused_without_waiting_for_it),
        cmocka_unit_test(a_transport_that_cannot_seek_is_an_argument_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
