#include "loader/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fail_alloc.h"
#include "support/load_scene.h"
#include "support/script_destination.h"

/* ---- callbacks ---- */

typedef struct Calls {
    HurrayLoader *loader;
    pthread_t thread;
    uint64_t placed, delivered, told, traced;
    uint64_t fail_place, fail_deliver, fail_progress;
    uint64_t first_bytes, last_bytes, total;
    bool cancel_in_deliver, reenter, other_thread;
    uint8_t *into;
    size_t into_len;
    HurrayMemory memory[1];
    void *user;
} Calls;

static void note_thread(Calls *calls) {
    if (!pthread_equal(calls->thread, pthread_self())) calls->other_thread = true;
}

static HurrayStatus on_place(void *ctx, const HurrayTensorInfo *info, HurrayPlacement *placement) {
    Calls *calls = ctx;
    uint64_t n;
    note_thread(calls);
    calls->placed++;
    assert_non_null(info->descriptor);
    if (calls->reenter) assert_int_equal(hurray_loader_tensor_count(calls->loader, &n), HURRAY_ERR_BUSY);
    if (calls->placed == calls->fail_place) return -1500;
    if (info->name_len == 2 && info->name[1] == '1') placement->action = HURRAY_PLACE_SKIP;
    if (info->index == 3 && calls->into) {
        calls->memory[0] = (HurrayMemory){calls->into, calls->into_len};
        placement->into = calls->memory;
        placement->into_count = 1;
    }
    placement->user = calls->user;
    return HURRAY_OK;
}

static HurrayStatus on_deliver(void *ctx, uint64_t index, HurrayTensor *tensor) {
    Calls *calls = ctx;
    (void)index;
    note_thread(calls);
    if (++calls->delivered == calls->fail_deliver) return -1501;
    if (calls->cancel_in_deliver) hurray_loader_cancel(calls->loader);
    hurray_tensor_destroy(&tensor);
    return HURRAY_OK;
}

static HurrayStatus on_progress(void *ctx, const HurrayProgress *progress) {
    Calls *calls = ctx;
    note_thread(calls);
    if (calls->told++ == 0) calls->first_bytes = progress->bytes_done;
    calls->last_bytes = progress->bytes_done;
    calls->total = progress->bytes_total;
    return calls->told == calls->fail_progress ? -1502 : HURRAY_OK;
}

static void on_trace(void *ctx, const HurrayTraceEvent *event) {
    Calls *calls = ctx;
    note_thread(calls);
    assert_true(event->begin_ns <= event->end_ns);
    calls->traced++;
}

static HurrayLoaderOptions with_calls(Calls *calls, uint32_t threads) {
    HurrayLoaderOptions options = small_chunks(threads);
    memset(calls, 0, sizeof *calls);
    calls->thread = pthread_self();
    options.ctx = calls;
    options.place = on_place;
    options.progress = on_progress;
    options.trace = on_trace;
    return options;
}

static void callbacks_are_called_as_promised_on_the_loading_thread(void **state) {
    (void)state;
    Scene scene;
    Calls calls;
    make_scene(&scene, false);
    HurrayLoaderOptions options = with_calls(&calls, 3);
    calls.reenter = true;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    calls.loader = scene.loader;
    HurrayTensorSet *set = NULL;
    uint64_t n = 0, at, bytes, buffers;
    assert_int_equal(hurray_loader_plan(scene.loader, HURRAY_DEVICE_CPU, 0, &bytes, &buffers), HURRAY_OK);
    assert_int_equal(calls.placed, COUNT);
    assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
    assert_int_equal(calls.placed, COUNT); /* once per selection */
    assert_int_equal(hurray_tensor_set_count(set, &n), HURRAY_OK);
    assert_int_equal(n, COUNT - 1);
    assert_int_equal(hurray_tensor_set_find(set, "t1", 2, &at), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(calls.first_bytes, 0);
    assert_int_equal(calls.last_bytes, calls.total);
    assert_true(calls.told >= 2 && calls.traced > 0);
    assert_false(calls.other_thread);
    hurray_tensor_set_destroy(&set);
    assert_int_equal(hurray_loader_select_index(scene.loader, 2), HURRAY_OK);
    assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
    assert_int_equal(calls.placed, COUNT + 1);
    hurray_tensor_set_destroy(&set);
    end_scene(&scene);
}

static void a_callback_that_fails_stops_the_load_with_its_code(void **state) {
    (void)state;
    for (int which = 0; which < 4; which++)
        for (uint32_t threads = 1; threads < 4; threads++) {
            Scene scene;
            Calls calls;
            make_scene(&scene, false);
            HurrayLoaderOptions options = with_calls(&calls, threads);
            if (which == 0) calls.fail_place = 7;
            if (which == 1) calls.fail_deliver = 9, options.deliver = on_deliver;
            if (which == 2) calls.fail_progress = 1;
            if (which == 3) calls.fail_progress = 2;
            assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
            HurrayStatus expected = which == 0 ? -1500 : which == 1 ? -1501 : -1502;
            assert_int_equal(load_fails(&scene), expected);
            assert_int_equal(hurray_loader_last_error(scene.loader)->cause, expected);
            calls.fail_place = calls.fail_deliver = calls.fail_progress = 0;
            HurrayTensorSet *set = NULL;
            assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
            hurray_tensor_set_destroy(&set);
            end_scene(&scene);
        }
}

static void delivered_tensors_leave_their_places_empty(void **state) {
    (void)state;
    Scene scene;
    Calls calls;
    make_scene(&scene, true);
    HurrayLoaderOptions options = with_calls(&calls, 2);
    options.deliver = on_deliver;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    HurrayTensorSet *set = NULL;
    HurrayTensor *tensor = NULL;
    assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
    assert_int_equal(calls.delivered, COUNT - 1);
    assert_int_equal(hurray_tensor_set_get(set, 0, &tensor), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_tensor_set_take(set, 0, &tensor), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_tensor_set_get(set, COUNT, &tensor), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    hurray_tensor_set_destroy(&set);
    end_scene(&scene);
}

static void a_tensor_can_be_taken_once(void **state) {
    (void)state;
    Scene scene;
    make_scene(&scene, true);
    assert_int_equal(open_scene(&scene, NULL), HURRAY_OK);
    HurrayTensorSet *set = NULL;
    HurrayTensor *tensor = NULL, *again = NULL;
    HurrayItem *item = NULL;
    assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
    assert_int_equal(hurray_tensor_set_take(set, 3, &tensor), HURRAY_OK);
    assert_int_equal(hurray_tensor_set_take(set, 3, &again), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_tensor_set_take_item(set, 2, &item), HURRAY_ERR_NOT_COMPOSITE);
    hurray_tensor_set_destroy(&set);
    end_scene(&scene);
    assert_true(model_tensor_is(tensor, 30000 + 3 * 977, 3));
    hurray_tensor_destroy(&tensor);
}

static void a_tensor_lands_in_the_callers_memory(void **state) {
    (void)state;
    Scene scene;
    Calls calls;
    make_scene(&scene, false);
    HurrayLoaderOptions options = with_calls(&calls, 2);
    uint64_t size = scene.tensors[3].size;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    calls.into = aligned_alloc(64, 65536);
    calls.into_len = (size_t)size;
    HurrayTensorSet *set = NULL;
    HurrayTensor *tensor = NULL;
    HurrayBufferList *list = NULL;
    HurrayBuffer *buffer = NULL;
    void *data = NULL;
    assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
    uint64_t at = 0;
    assert_int_equal(hurray_tensor_set_find(set, "t3", 2, &at), HURRAY_OK);
    hurray_tensor_set_get(set, at, &tensor);
    hurray_tensor_buffers(tensor, &list);
    hurray_buffer_list_get(list, 0, &buffer);
    hurray_buffer_data_ptr(buffer, &data);
    assert_ptr_equal(data, calls.into);
    assert_true(model_tensor_is(tensor, size, 3));
    hurray_tensor_set_destroy(&set);
    hurray_loader_select_clear(scene.loader);
    calls.into_len--;
    assert_int_equal(load_fails(&scene), HURRAY_ERR_INVALID_ARGUMENT);
    assert_string_equal(hurray_loader_last_error(scene.loader)->tensor, "t3");
    calls.into_len++;
    calls.into++;
    assert_int_equal(load_fails(&scene), HURRAY_ERR_INVALID_LAYOUT);
    free(calls.into - 1);
    end_scene(&scene);
}

static void what_the_caller_says_reaches_his_destination(void **state) {
    (void)state;
    Scene scene;
    Calls calls;
    ScriptDestination script;
    int mark = 0;
    make_scene(&scene, false);
    script_destination_init(&script, 3, 5000, true);
    HurrayDestinationAlloc destination = script_destination(&script);
    HurrayLoaderOptions options = with_calls(&calls, 2);
    calls.user = &mark;
    options.destination = &destination;
    options.target = HURRAY_TARGET_DEVICE;
    options.device_tag = HURRAY_DEVICE_ROCM;
    options.device_index = 3;
    options.verify_data = HURRAY_VERIFY_STORED;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    HurrayTensorSet *set = NULL;
    assert_int_equal(hurray_loader_load(scene.loader, &set), HURRAY_OK);
    assert_ptr_equal(script.last.user, &mark);
    assert_int_equal(script.last.device_tag, HURRAY_DEVICE_ROCM);
    assert_int_equal(script.last.device_index, 3);
    assert_int_equal(script.last.alignment, 4096);
    assert_int_equal(script.last.flags, HURRAY_REQUEST_WILL_READ);
    hurray_tensor_set_destroy(&set);
    end_scene(&scene);
    script_destination_end(&script);
}

static void cancel_from_a_callback_ends_the_load(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads < 4; threads++) {
        Scene scene;
        Calls calls;
        make_scene(&scene, false);
        HurrayLoaderOptions options = with_calls(&calls, threads);
        options.deliver = on_deliver;
        assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
        calls.loader = scene.loader;
        calls.cancel_in_deliver = true;
        assert_int_equal(load_fails(&scene), HURRAY_ERR_CANCELLED);
        assert_true(calls.delivered >= 1);
        end_scene(&scene);
    }
}

static void a_device_that_is_not_there_is_told_before_anything_is_read(void **state) {
    (void)state;
    Scene scene;
    make_scene(&scene, false);
    HurrayLoaderOptions options = small_chunks(2);
    options.target = HURRAY_TARGET_DEVICE;
    options.device_index = 7;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    assert_int_equal(load_fails(&scene), HURRAY_ERR_NO_DEVICE);
    hurray_loader_destroy(&scene.loader);
    options.device_tag = HURRAY_DEVICE_METAL;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    assert_int_equal(load_fails(&scene), HURRAY_ERR_NO_DEVICE);
    hurray_loader_destroy(&scene.loader);
    options.target = HURRAY_TARGET_HOST;
    options.sync_mode = HURRAY_SYNC_EVENT;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    assert_int_equal(load_fails(&scene), HURRAY_ERR_INVALID_SYNC_MODE);
    hurray_loader_destroy(&scene.loader);
    options.sync_mode = 0;
    options.memory_class = HURRAY_MEMORY_PEER;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    assert_int_equal(load_fails(&scene), HURRAY_ERR_INVALID_TYPE);
    end_scene(&scene);
    make_scene(&scene, false);
    options = small_chunks(2);
    options.target = HURRAY_TARGET_DECLARED;
    assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
    expect_loads(&scene);
    end_scene(&scene);
}

typedef struct Wish {
    HurrayPlacement placement;
    HurrayMemory memory[2];
} Wish;

static HurrayStatus place_as_wished(void *ctx, const HurrayTensorInfo *info, HurrayPlacement *placement) {
    const Wish *wish = ctx;
    (void)info;
    *placement = wish->placement;
    return HURRAY_OK;
}

static void a_placement_that_cannot_be_is_refused_before_payload_is_read(void **state) {
    (void)state;
    static const struct {
        uint32_t action;
        uint8_t tag, mode, class;
        size_t into_count;
        HurrayStatus expected;
    } cases[] = {
        {2, 0, 0, 0, 0, HURRAY_ERR_INVALID_ARGUMENT},
        {0, 0x77, 0, 0, 0, HURRAY_ERR_INVALID_TYPE},
        {0, HURRAY_DEVICE_CPU, 0, HURRAY_MEMORY_PEER, 0, HURRAY_ERR_INVALID_TYPE},
        {0, HURRAY_DEVICE_CPU, HURRAY_SYNC_EVENT, 0, 0, HURRAY_ERR_INVALID_SYNC_MODE},
        {0, HURRAY_DEVICE_CUDA, HURRAY_SYNC_CONSUMER_STREAM, 0, 0, HURRAY_ERR_INVALID_ARGUMENT},
        {0, HURRAY_DEVICE_CUDA, 0, HURRAY_MEMORY_PEER, 0, HURRAY_ERR_UNSUPPORTED},
        {0, HURRAY_DEVICE_VULKAN, 0, 0, 0, HURRAY_ERR_NO_DEVICE},
        {0, 0, 0, 0, 2, HURRAY_ERR_INVALID_ARGUMENT},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        Scene scene;
        Wish wish = {{.struct_size = sizeof(HurrayPlacement),
                      .action = cases[c].action,
                      .device_index = -1,
                      .device_tag = cases[c].tag,
                      .sync_mode = cases[c].mode,
                      .memory_class = cases[c].class},
                     {{0}}};
        if (cases[c].into_count) wish.placement.into = wish.memory, wish.placement.into_count = cases[c].into_count;
        make_scene(&scene, true);
        HurrayLoaderOptions options = small_chunks(2);
        options.place = place_as_wished;
        options.ctx = &wish;
        assert_int_equal(open_scene(&scene, &options), HURRAY_OK);
        uint64_t reads = scene.script.read_ats;
        assert_int_equal(load_fails(&scene), cases[c].expected);
        assert_string_equal(hurray_loader_last_error(scene.loader)->tensor, "t0");
        assert_int_equal(scene.script.read_ats, reads);
        end_scene(&scene);
    }
}

/* A file whose tensor says CUDA: to the host by default, and where there is no such device also when the file is to decide. */
static void what_a_file_declares_is_a_wish(void **state) {
    (void)state;
    ModelWriter writer;
    uint64_t size = 256;
    uint8_t data[256];
    HurrayIoSlice slice = {data, sizeof data};
    HurrayBufferHandle handle = {
        .byte_size = 256, .alignment = 4096, .device_tag = HURRAY_DEVICE_CUDA, .sync_mode = HURRAY_SYNC_PRODUCER_SYNCED};
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayDescriptor *descriptor = NULL;
    ScriptTransport script;
    spec.rank = 1;
    spec.shape = &size;
    spec.element_type = HURRAY_TYPE_UINT8;
    spec.buffers = &handle;
    spec.buffer_count = 1;
    model_fill(data, 5, 0, sizeof data);
    assert_int_equal(hurray_descriptor_new(&spec, NULL, &descriptor, NULL), HURRAY_OK);
    model_writer_begin(&writer, 0);
    assert_int_equal(hurray_file_writer_write_tensor(writer.writer, "on_gpu", 6, descriptor, &slice, 1), HURRAY_OK);
    hurray_descriptor_destroy(descriptor);
    ModelBytes bytes = model_writer_end(&writer);
    script_source(&script, bytes.bytes, bytes.len);
    HurrayTransport transport = script_transport(&script);
    HurraySource source = {.transport = &transport};
    uint32_t devices = 0;
    hurray_device_count(HURRAY_DEVICE_CUDA, &devices, NULL);
    for (uint32_t target = HURRAY_TARGET_HOST; target <= HURRAY_TARGET_DECLARED; target += HURRAY_TARGET_DECLARED) {
        HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
        HurrayLoader *loader = NULL;
        HurrayTensorSet *set = NULL;
        HurrayTensor *tensor = NULL;
        HurrayBufferList *list = NULL;
        HurrayBuffer *buffer = NULL;
        const HurrayDescriptor *delivered = NULL;
        HurrayBufferHandle where;
        uint8_t tag = 99;
        uint64_t planned = 0, buffers = 0;
        if (target == HURRAY_TARGET_DECLARED && devices) continue;
        options.target = target;
        assert_int_equal(hurray_loader_open_sources(&source, 1, &options, &loader, NULL), HURRAY_OK);
        assert_int_equal(hurray_loader_plan(loader, HURRAY_DEVICE_CPU, 0, &planned, &buffers), HURRAY_OK);
        assert_int_equal(buffers, 1);
        assert_int_equal(hurray_loader_load(loader, &set), HURRAY_OK);
        assert_int_equal(hurray_tensor_set_get(set, 0, &tensor), HURRAY_OK);
        assert_true(model_tensor_is(tensor, 256, 5));
        hurray_tensor_buffers(tensor, &list);
        hurray_buffer_list_get(list, 0, &buffer);
        hurray_buffer_device_tag(buffer, &tag);
        assert_int_equal(tag, HURRAY_DEVICE_CPU);
        hurray_tensor_descriptor(tensor, &delivered); /* says where it is now, and the alignment that was declared */
        assert_int_equal(hurray_descriptor_buffer(delivered, 0, &where), HURRAY_OK);
        assert_int_equal(where.device_tag, HURRAY_DEVICE_CPU);
        assert_int_equal(where.alignment, 4096);
        HurrayPathStats path = HURRAY_PATH_STATS_INIT;
        assert_int_equal(hurray_loader_path_stats(loader, 0, &path), HURRAY_OK);
        if (target == HURRAY_TARGET_DECLARED)
            assert_string_equal(path.reason, "the file asks for device tag 1, memory class 0; there is none here, so to the host");
        else
            assert_null(path.reason);
        hurray_tensor_set_destroy(&set);
        hurray_loader_destroy(&loader);
    }
    script_free(&script);
    model_free(&bytes);
}

static void wrong_options_are_refused_by_name(void **state) {
    (void)state;
    Scene scene;
    make_scene(&scene, false);
    HurrayTransport transport = script_transport(&scene.script);
    HurraySource source = {.transport = &transport};
    for (int which = 0; which < 12; which++) {
        HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
        HurrayDeviceMemory memory = HURRAY_DEVICE_MEMORY_INIT;
        HurrayDestinationAlloc destination = HURRAY_DESTINATION_ALLOC_INIT;
        HurrayError error = HURRAY_ERROR_INIT;
        switch (which) {
        case 0: options.struct_size = 4; break;
        case 1: options.flags = 64; break;
        case 2: options.target = 4; break;
        case 3: options.io = 4; break;
        case 4: options.direct = 3; break;
        case 5: options.pinned = 3; break;
        case 6: options.verify_data = 3; break;
        case 7: options.max_composite_depth = 65; break;
        case 8: options.device_alignment = 300; break;
        case 9: options.device_index = -2; break;
        case 10: options.device_memory = &memory; break;
        default: options.destination = &destination; break;
        }
        HurrayStatus status = hurray_loader_open_sources(&source, 1, &options, &scene.loader, &error);
        assert_int_equal(status, which == 1 ? HURRAY_ERR_UNSUPPORTED : HURRAY_ERR_INVALID_ARGUMENT);
        assert_true(error.message[0] != 0);
        assert_null(scene.loader);
    }
    assert_int_equal(scene.script.releases, 0);
    assert_int_equal(hurray_loader_open_sources(&source, 1, NULL, NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_open_sources(NULL, 1, NULL, &scene.loader, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_open(NULL, NULL, &scene.loader, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_loader_open("/nowhere/at/all", NULL, &scene.loader, NULL), HURRAY_ERR_TRANSPORT);
    end_scene(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callbacks_are_called_as_promised_on_the_loading_thread),
        cmocka_unit_test(a_callback_that_fails_stops_the_load_with_its_code),
        cmocka_unit_test(delivered_tensors_leave_their_places_empty),
        cmocka_unit_test(a_tensor_can_be_taken_once),
        cmocka_unit_test(a_tensor_lands_in_the_callers_memory),
        cmocka_unit_test(what_the_caller_says_reaches_his_destination),
        cmocka_unit_test(cancel_from_a_callback_ends_the_load),
        cmocka_unit_test(a_device_that_is_not_there_is_told_before_anything_is_read),
        cmocka_unit_test(a_placement_that_cannot_be_is_refused_before_payload_is_read),
        cmocka_unit_test(what_a_file_declares_is_a_wish),
        cmocka_unit_test(wrong_options_are_refused_by_name),
    };
    return cmocka_run_group_tests_name("loader/load_calls", tests, NULL, NULL);
}
