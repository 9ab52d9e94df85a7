#include "core/tensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/containers.h"
#include "support/fail_alloc.h"

typedef struct Counts {
    int memory, event, order;
    void *stream;
    HurrayStatus answer;
} Counts;

static void count_release(void *data, void *ctx) {
    (void)data;
    ((Counts *)ctx)->memory++;
}

static void count_event(void *handle, void *ctx) {
    (void)handle;
    ((Counts *)ctx)->event++;
}

static HurrayStatus count_order(void *handle, void *ctx, void *stream) {
    Counts *counts = ctx;
    assert_ptr_equal(handle, counts);
    counts->order++;
    counts->stream = stream;
    return counts->answer;
}

static _Alignas(4096) uint8_t memory[8192];

static HurrayBufferInfo device_info(Counts *counts, uint8_t mode) {
    HurrayBufferInfo info = HURRAY_BUFFER_INFO_INIT;
    info.data = memory;
    info.byte_size = 100;
    info.alignment = 4096;
    info.device_tag = HURRAY_DEVICE_CUDA;
    info.device_index = 3;
    info.sync_mode = mode;
    info.release = count_release;
    info.release_context = counts;
    info.event.sync_handle = counts;
    info.event.sync_handle_device_tag = HURRAY_DEVICE_CUDA;
    info.event.event_release_fn = count_event;
    info.event.event_release_context = counts;
    info.order = count_order;
    return info;
}

static HurrayBuffer *make(const HurrayBufferInfo *info) {
    HurrayBuffer *buffer = NULL;
    assert_int_equal(hurray_buffer_new(info, NULL, &buffer, NULL), HURRAY_OK);
    return buffer;
}

static void a_buffer_says_what_it_was_made_of(void **state) {
    (void)state;
    Counts counts = {0};
    HurrayBufferInfo info = device_info(&counts, HURRAY_SYNC_PRODUCER_SYNCED);
    info.flags = HURRAY_BUFFER_READ_ONLY;
    info.memory_class = HURRAY_MEMORY_PEER;
    HurrayBuffer *buffer = make(&info);
    void *data;
    uint64_t size;
    uint32_t u32;
    uint8_t u8;
    int32_t index;
    assert_int_equal(hurray_buffer_data_ptr(buffer, &data), HURRAY_OK);
    assert_ptr_equal(data, memory);
    assert_int_equal(hurray_buffer_byte_size(buffer, &size), HURRAY_OK);
    assert_int_equal(size, 100);
    assert_int_equal(hurray_buffer_alignment(buffer, &u32), HURRAY_OK);
    assert_int_equal(u32, 4096);
    assert_int_equal(hurray_buffer_flags(buffer, &u32), HURRAY_OK);
    assert_int_equal(u32, HURRAY_BUFFER_READ_ONLY);
    assert_int_equal(hurray_buffer_device_tag(buffer, &u8), HURRAY_OK);
    assert_int_equal(u8, HURRAY_DEVICE_CUDA);
    assert_int_equal(hurray_buffer_sync_mode(buffer, &u8), HURRAY_OK);
    assert_int_equal(u8, HURRAY_SYNC_PRODUCER_SYNCED);
    assert_int_equal(hurray_buffer_memory_class(buffer, &u8), HURRAY_OK);
    assert_int_equal(u8, HURRAY_MEMORY_PEER);
    assert_int_equal(hurray_buffer_device_index(buffer, &index), HURRAY_OK);
    assert_int_equal(index, 3);
    assert_int_equal(hurray_buffer_data_ptr(NULL, &data), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_buffer_data_ptr(buffer, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_buffer_destroy(buffer), HURRAY_OK);
    assert_int_equal(counts.memory, 1);
    assert_int_equal(hurray_buffer_destroy(NULL), HURRAY_ERR_NULL_POINTER);
}

static void an_empty_buffer_may_have_no_memory(void **state) {
    (void)state;
    Counts counts = {0};
    HurrayBuffer *buffer = NULL;
    assert_int_equal(hurray_buffer_from_ptr(NULL, 0, 1, 0, 0, 0, count_release, &counts, &buffer), HURRAY_OK);
    assert_int_equal(hurray_buffer_destroy(buffer), HURRAY_OK);
    assert_int_equal(counts.memory, 1);
    assert_int_equal(hurray_buffer_from_ptr(NULL, 1, 64, 0, 0, 0, count_release, &counts, &buffer), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(counts.memory, 1);
}

static void a_buffer_that_breaks_a_rule_is_refused_and_stays_with_the_caller(void **state) {
    (void)state;
    static const struct {
        size_t shift;
        uint32_t alignment;
        uint8_t device, mode, memory_class;
        HurrayStatus status;
    } cases[] = {
        {0, 0, 0, 0, 0, HURRAY_ERR_INVALID_LAYOUT},     {0, 48, 0, 0, 0, HURRAY_ERR_INVALID_LAYOUT},
        {0, 32, 0, 0, 0, HURRAY_ERR_INVALID_LAYOUT},    {64, 128, 0, 0, 0, HURRAY_ERR_INVALID_LAYOUT},
        {0, 64, 9, 0, 0, HURRAY_ERR_INVALID_TYPE},      {0, 64, 0xFF, 0, 0, HURRAY_ERR_INVALID_TYPE},
        {0, 64, 0, 0, 3, HURRAY_ERR_INVALID_TYPE},      {0, 64, 5, 0, 1, HURRAY_ERR_INVALID_TYPE},
        {0, 64, 0xF0, 0, 1, HURRAY_ERR_INVALID_TYPE},   {0, 64, 1, 3, 0, HURRAY_ERR_INVALID_SYNC_MODE},
        {0, 64, 0, 1, 0, HURRAY_ERR_INVALID_SYNC_MODE}, {0, 64, 0, 2, 0, HURRAY_ERR_INVALID_SYNC_MODE},
    };
    Counts counts = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        HurrayBuffer *buffer = NULL;
        HurrayStatus status = hurray_buffer_from_ptr(memory + cases[i].shift, 10, cases[i].alignment, cases[i].device, cases[i].mode,
                                                     cases[i].memory_class, count_release, &counts, &buffer);
        assert_int_equal(status, cases[i].status);
        assert_null(buffer);
    }
    HurrayBuffer *buffer = NULL;
    assert_int_equal(hurray_buffer_from_ptr(memory, 10, 64, 0xF0, 0, 0xF1, count_release, &counts, &buffer), HURRAY_OK);
    assert_int_equal(counts.memory, 0);
    hurray_buffer_destroy(buffer);
    assert_int_equal(hurray_buffer_from_ptr(memory, 10, 64, 0, 0, 0, NULL, NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_buffer_from_ptr(memory, UINT64_MAX, 64, 0, 0, 0, NULL, NULL, &buffer), HURRAY_ERR_INVALID_LAYOUT);
}

static void a_buffer_info_of_another_release_is_told_apart(void **state) {
    (void)state;
    Counts counts = {0};
    struct {
        HurrayBufferInfo info;
        uint64_t tail;
    } longer;
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayBuffer *buffer = NULL;
    memset(&longer, 0, sizeof longer);
    longer.info = device_info(&counts, 0);
    longer.info.struct_size = sizeof longer;
    assert_int_equal(hurray_buffer_new(&longer.info, NULL, &buffer, &error), HURRAY_OK);
    hurray_buffer_destroy(buffer);
    longer.tail = 1;
    assert_int_equal(hurray_buffer_new(&longer.info, NULL, &buffer, &error), HURRAY_ERR_UNSUPPORTED);
    assert_true(error.message[0]);
    longer.info.struct_size = 0;
    assert_int_equal(hurray_buffer_new(&longer.info, NULL, &buffer, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_buffer_new(NULL, NULL, &buffer, &error), HURRAY_ERR_NULL_POINTER);
    HurrayAllocator half = HURRAY_ALLOCATOR_INIT;
    longer.info = device_info(&counts, 0);
    assert_int_equal(hurray_buffer_new(&longer.info, &half, &buffer, &error), HURRAY_ERR_INVALID_ARGUMENT);
}

static void a_hand_off_that_contradicts_the_mode_is_a_mismatch(void **state) {
    (void)state;
    Counts counts = {0};
    for (uint8_t mode = 0; mode < 3; mode++) {
        HurrayBufferInfo info = device_info(&counts, mode);
        HurrayBuffer *buffer = make(&info);
        HurraySyncEventPayload event = info.event;
        HurraySyncConsumerStreamPayload stream = {&counts, HURRAY_DEVICE_CUDA};
        assert_int_equal(hurray_buffer_handoff_producer_synced(buffer), mode == 0 ? HURRAY_OK : HURRAY_ERR_SYNC_MODE_MISMATCH);
        assert_int_equal(hurray_buffer_handoff_event(buffer, &event), mode == 1 ? HURRAY_OK : HURRAY_ERR_SYNC_MODE_MISMATCH);
        assert_int_equal(hurray_buffer_handoff_consumer_stream(buffer, &stream), mode == 2 ? HURRAY_OK : HURRAY_ERR_SYNC_MODE_MISMATCH);
        event.sync_handle_device_tag = stream.consumer_stream_device_tag = HURRAY_DEVICE_ROCM;
        assert_int_equal(hurray_buffer_handoff_event(buffer, &event), HURRAY_ERR_SYNC_MODE_MISMATCH);
        assert_int_equal(hurray_buffer_handoff_consumer_stream(buffer, &stream), HURRAY_ERR_SYNC_MODE_MISMATCH);
        event.sync_handle = NULL;
        stream.consumer_stream = NULL;
        if (mode == 1) assert_int_equal(hurray_buffer_handoff_event(buffer, &event), HURRAY_ERR_NULL_POINTER);
        if (mode == 2) assert_int_equal(hurray_buffer_handoff_consumer_stream(buffer, &stream), HURRAY_ERR_NULL_POINTER);
        assert_int_equal(hurray_buffer_handoff_event(buffer, NULL), HURRAY_ERR_NULL_POINTER);
        assert_int_equal(hurray_buffer_handoff_consumer_stream(NULL, &stream), HURRAY_ERR_NULL_POINTER);
        assert_int_equal(hurray_buffer_handoff_producer_synced(NULL), HURRAY_ERR_NULL_POINTER);
        hurray_buffer_destroy(buffer);
    }
}

static void an_event_goes_with_the_buffer_unless_it_was_taken(void **state) {
    (void)state;
    Counts counts = {0};
    HurrayBufferInfo info = device_info(&counts, HURRAY_SYNC_EVENT);
    HurrayBuffer *buffer = make(&info);
    hurray_buffer_destroy(buffer);
    assert_int_equal(counts.event, 1);
    HurraySyncEventPayload event;
    buffer = make(&info);
    assert_false(hry_buffer_is_ordered(buffer));
    assert_int_equal(hurray_buffer_take_event(buffer, &event), HURRAY_OK);
    assert_true(hry_buffer_is_ordered(buffer));
    assert_ptr_equal(event.sync_handle, &counts);
    assert_int_equal(hurray_buffer_take_event(buffer, &event), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_buffer_order(buffer, NULL), HURRAY_ERR_WRONG_STATE);
    hurray_buffer_destroy(buffer);
    assert_int_equal(counts.event, 1);
    event.event_release_fn(event.sync_handle, event.event_release_context);
    assert_int_equal(counts.event, 2);
    assert_int_equal(counts.memory, 2);
    info = device_info(&counts, HURRAY_SYNC_PRODUCER_SYNCED);
    buffer = make(&info);
    assert_int_equal(hurray_buffer_take_event(buffer, &event), HURRAY_ERR_SYNC_MODE_MISMATCH);
    assert_int_equal(hurray_buffer_take_event(NULL, &event), HURRAY_ERR_NULL_POINTER);
    hurray_buffer_destroy(buffer);
    buffer = NULL;
    assert_int_equal(hurray_buffer_from_ptr(memory, 10, 64, 1, HURRAY_SYNC_EVENT, 0, NULL, NULL, &buffer), HURRAY_OK);
    assert_int_equal(hurray_buffer_take_event(buffer, &event), HURRAY_ERR_NOT_FOUND);
    assert_int_equal(hurray_buffer_order(buffer, NULL), HURRAY_ERR_UNSUPPORTED);
    hurray_buffer_destroy(buffer);
}

static void order_makes_a_stream_wait_by_the_buffers_own_means(void **state) {
    (void)state;
    Counts counts = {0};
    int stream;
    HurrayBufferInfo info = device_info(&counts, HURRAY_SYNC_EVENT);
    HurrayBuffer *buffer = make(&info);
    assert_int_equal(hurray_buffer_order(buffer, &stream), HURRAY_OK);
    assert_ptr_equal(counts.stream, &stream);
    assert_true(hry_buffer_is_ordered(buffer));
    assert_int_equal(hurray_buffer_order(buffer, NULL), HURRAY_OK);
    assert_int_equal(counts.order, 2);
    counts.answer = HURRAY_ERR_DEVICE;
    assert_int_equal(hurray_buffer_order(buffer, NULL), HURRAY_ERR_DEVICE);
    counts.answer = 5;
    assert_int_equal(hurray_buffer_order(buffer, NULL), HURRAY_ERR_DEVICE);
    hurray_buffer_destroy(buffer);
    info = device_info(&counts, HURRAY_SYNC_CONSUMER_STREAM);
    buffer = make(&info);
    assert_int_equal(hurray_buffer_order(buffer, &counts), HURRAY_OK); /* the stream that was ordered already */
    assert_int_equal(hurray_buffer_order(buffer, &stream), HURRAY_ERR_SYNC_MODE_MISMATCH);
    hurray_buffer_destroy(buffer);
    info = device_info(&counts, HURRAY_SYNC_PRODUCER_SYNCED);
    buffer = make(&info);
    assert_int_equal(hurray_buffer_order(buffer, &stream), HURRAY_OK);
    hurray_buffer_destroy(buffer);
    assert_int_equal(hurray_buffer_order(NULL, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(counts.order, 4);
}

static void a_list_owns_what_was_pushed(void **state) {
    (void)state;
    Counts counts = {0};
    HurrayBufferList *list = NULL;
    HurrayBuffer *buffer = NULL, *got = NULL;
    uint64_t len;
    assert_int_equal(hurray_buffer_list_new(0, &list), HURRAY_OK);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hurray_buffer_from_ptr(memory, 10, 64, 0, 0, 0, count_release, &counts, &buffer), HURRAY_OK);
        assert_int_equal(hurray_buffer_list_push(list, buffer), HURRAY_OK);
    }
    assert_int_equal(hurray_buffer_list_len(list, &len), HURRAY_OK);
    assert_int_equal(len, 20);
    assert_int_equal(hurray_buffer_list_get(list, 19, &got), HURRAY_OK);
    assert_ptr_equal(got, buffer);
    assert_int_equal(hurray_buffer_list_get(list, 20, &got), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_buffer_list_push(list, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_buffer_list_get(NULL, 0, &got), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_buffer_list_len(list, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_buffer_list_destroy(&list), HURRAY_OK);
    assert_null(list);
    assert_int_equal(counts.memory, 20);
    assert_int_equal(hurray_buffer_list_destroy(&list), HURRAY_OK);
    assert_int_equal(hurray_buffer_list_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_buffer_list_new(3, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_buffer_list_new(UINT64_MAX, &list), HURRAY_ERR_NO_MEMORY);
    assert_int_equal(hurray_buffer_list_new(3, &list), HURRAY_OK);
    hurray_buffer_list_destroy(&list);
}

static HurrayBufferList *list_of(const HurrayBufferInfo *info) {
    HurrayBufferList *list = NULL;
    assert_int_equal(hurray_buffer_list_new(1, &list), HURRAY_OK);
    if (info) assert_int_equal(hurray_buffer_list_push(list, make(info)), HURRAY_OK);
    return list;
}

static void a_tensor_takes_descriptor_and_list_and_frees_both(void **state) {
    (void)state;
    Counts counts = {0};
    HurrayBufferInfo info = device_info(&counts, HURRAY_SYNC_EVENT);
    HurrayBufferList *list = list_of(&info), *own = NULL;
    HurrayDescriptor *descriptor = make_plain(100, 64);
    const HurrayDescriptor *said = NULL;
    HurrayBufferHandle handle;
    HurrayTensor *tensor = NULL;
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_tensor_new(descriptor, list, NULL, &tensor, &error), HURRAY_OK);
    assert_int_equal(hurray_tensor_descriptor(tensor, &said), HURRAY_OK);
    /* It says where the tensor is, with the alignment that was declared. */
    assert_int_equal(hurray_descriptor_buffer(said, 0, &handle), HURRAY_OK);
    assert_int_equal(handle.device_tag, HURRAY_DEVICE_CUDA);
    assert_int_equal(handle.sync_mode, HURRAY_SYNC_EVENT);
    assert_int_equal(handle.alignment, 64);
    assert_int_equal(hurray_tensor_buffers(tensor, &own), HURRAY_OK);
    HurrayBuffer *extra = make(&info);
    assert_int_equal(hurray_buffer_list_push(own, extra), HURRAY_ERR_WRONG_STATE);
    hurray_buffer_destroy(extra);
    HurrayBufferList *borrowed = own;
    assert_int_equal(hurray_buffer_list_destroy(&borrowed), HURRAY_OK); /* a borrowed list is not freed */
    assert_int_equal(counts.memory, 1);
    HurrayTensor *view = hry_tensor_ref(tensor);
    assert_int_equal(hurray_tensor_destroy(&tensor), HURRAY_OK);
    assert_null(tensor);
    assert_int_equal(counts.memory, 1);
    hurray_tensor_destroy(&view);
    assert_int_equal(counts.memory, 2);
    assert_int_equal(counts.event, 2);
    assert_int_equal(hurray_tensor_destroy(&tensor), HURRAY_OK);
    assert_int_equal(hurray_tensor_destroy(NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_tensor_descriptor(NULL, &said), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_tensor_buffers(NULL, &own), HURRAY_ERR_NULL_POINTER);
}

static void a_tensor_is_refused_when_buffers_and_descriptor_disagree(void **state) {
    (void)state;
    Counts counts = {0};
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayTensor *tensor = NULL;
    HurrayDescriptor *plain = make_plain(100, 4096), *longer = make_plain(101, 64);
    HurrayBufferHandle two[2] = {{.byte_size = 100, .alignment = 64}, {.byte_size = 100, .alignment = 64}};
    HurrayDescriptor *many = make_many(two, 2);
    HurrayBufferInfo info = device_info(&counts, 0);
    HurrayBufferList *list = list_of(&info), *none = list_of(NULL);
    assert_int_equal(hurray_tensor_new(plain, none, NULL, &tensor, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hurray_tensor_new(longer, list, NULL, &tensor, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(error.buffer_index, 0);
    info.device_tag = HURRAY_DEVICE_ROCM;
    hurray_buffer_list_push(list, make(&info));
    assert_int_equal(hurray_tensor_new(many, list, NULL, &tensor, &error), HURRAY_ERR_INVALID_TYPE);
    assert_int_equal(error.buffer_index, 1);
    info = device_info(&counts, 0);
    info.data = memory + 64;
    info.alignment = 64;
    HurrayBufferList *shifted = list_of(&info);
    assert_int_equal(hurray_tensor_new(plain, shifted, NULL, &tensor, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hurray_tensor_new(NULL, list, NULL, &tensor, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(counts.memory, 0); /* all of it is still the caller's */
    assert_null(tensor);
    hurray_buffer_list_destroy(&shifted);
    hurray_buffer_list_destroy(&list);
    hurray_buffer_list_destroy(&none);
    hurray_descriptor_destroy(plain);
    hurray_descriptor_destroy(longer);
    hurray_descriptor_destroy(many);
    assert_int_equal(counts.memory, 3);
}

static void without_memory_a_tensor_is_not_made_and_nothing_is_lost(void **state) {
    (void)state;
    Counts counts = {0};
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    HurrayBufferInfo info = device_info(&counts, HURRAY_SYNC_EVENT);
    for (uint64_t k = 1;; k++) {
        HurrayBufferList *list = list_of(&info);
        HurrayDescriptor *descriptor = make_plain(100, 64);
        HurrayTensor *tensor = NULL;
        HurrayError error = HURRAY_ERROR_INIT;
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hurray_tensor_new(descriptor, list, &alloc.allocator, &tensor, &error);
        if (status == HURRAY_OK) {
            hurray_tensor_destroy(&tensor);
            fail_alloc_assert_empty(&alloc);
            assert_true(k > 1);
            break;
        }
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        fail_alloc_assert_empty(&alloc);
        hurray_buffer_list_destroy(&list);
        hurray_descriptor_destroy(descriptor);
    }
    fail_alloc_arm(&alloc, 1, 0);
    HurrayBuffer *buffer = NULL;
    assert_int_equal(hurray_buffer_new(&info, &alloc.allocator, &buffer, NULL), HURRAY_ERR_NO_MEMORY);
    fail_alloc_assert_empty(&alloc);
}

static HurrayTensor *small_tensor(Counts *counts) {
    HurrayBufferInfo info = device_info(counts, 0);
    HurrayTensor *tensor = NULL;
    assert_int_equal(hurray_tensor_new(make_plain(100, 64), list_of(&info), NULL, &tensor, NULL), HURRAY_OK);
    return tensor;
}

static void an_item_is_nodes_in_preorder_whose_tensors_can_be_taken(void **state) {
    (void)state;
    Counts counts = {0};
    HurrayAllocator allocator = hry_alloc_default();
    HurrayError error;
    HurrayItem *item = NULL;
    hry_error_clear(&error);
    assert_int_equal(hry_item_new(&allocator, &item, &error), HURRAY_OK);
    for (uint64_t i = 0; i < 20; i++) {
        char name[8] = "node.00";
        name[6] = (char)('0' + i % 10);
        HryItemNodeIn node = {i ? HURRAY_NODE_TENSOR : HURRAY_NODE_COMPOSITE,
                              i ? 0 : 19,
                              (const uint8_t *)name,
                              7,
                              small_tensor(&counts),
                              i ? 0 : HURRAY_NONE};
        assert_int_equal(hry_item_push(item, &node, &error), HURRAY_OK);
    }
    uint64_t count;
    HurrayItemNode node;
    HurrayTensor *tensor = NULL;
    assert_int_equal(hurray_item_node_count(item, &count), HURRAY_OK);
    assert_int_equal(count, 20);
    assert_int_equal(hurray_item_node(item, 0, &node), HURRAY_OK);
    assert_int_equal(node.kind, HURRAY_NODE_COMPOSITE);
    assert_int_equal(node.member_count, 19);
    assert_int_equal(node.parent, HURRAY_NONE);
    assert_int_equal(hurray_item_node(item, 3, &node), HURRAY_OK);
    assert_memory_equal(node.name, "node.03", 7);
    assert_int_equal(hurray_item_take_tensor(item, 3, &tensor), HURRAY_OK);
    assert_ptr_equal(tensor, node.tensor);
    assert_int_equal(hurray_item_take_tensor(item, 3, &tensor), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(hurray_item_node(item, 3, &node), HURRAY_OK);
    assert_null(node.tensor);
    assert_int_equal(hurray_item_take_tensor(item, 20, &tensor), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_item_node(item, 20, &node), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_item_node(NULL, 0, &node), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_item_node_count(item, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_item_take_tensor(item, 0, NULL), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_item_destroy(&item), HURRAY_OK);
    assert_int_equal(counts.memory, 19);
    hurray_tensor_destroy(&tensor);
    assert_int_equal(counts.memory, 20);
    assert_int_equal(hurray_item_destroy(&item), HURRAY_OK);
    assert_int_equal(hurray_item_destroy(NULL), HURRAY_ERR_NULL_POINTER);
}

static void without_memory_an_item_keeps_what_it_has(void **state) {
    (void)state;
    Counts counts = {0};
    FailAlloc alloc;
    fail_alloc_init(&alloc);
    for (uint64_t k = 1;; k++) {
        HurrayItem *item = NULL;
        HurrayError error;
        hry_error_clear(&error);
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = hry_item_new(&alloc.allocator, &item, &error);
        HurrayTensor *tensor = small_tensor(&counts);
        HryItemNodeIn node = {HURRAY_NODE_TENSOR, 0, (const uint8_t *)"x", 1, tensor, HURRAY_NONE};
        if (status == HURRAY_OK) status = hry_item_push(item, &node, &error);
        if (status != HURRAY_OK) {
            assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
            hurray_tensor_destroy(&tensor);
        }
        hurray_item_destroy(&item);
        fail_alloc_assert_empty(&alloc);
        if (status == HURRAY_OK) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_says_what_it_was_made_of),
        cmocka_unit_test(an_empty_buffer_may_have_no_memory),
        cmocka_unit_test(a_buffer_that_breaks_a_rule_is_refused_and_stays_with_the_caller),
        cmocka_unit_test(a_buffer_info_of_another_release_is_told_apart),
        cmocka_unit_test(a_hand_off_that_contradicts_the_mode_is_a_mismatch),
        cmocka_unit_test(an_event_goes_with_the_buffer_unless_it_was_taken),
        cmocka_unit_test(order_makes_a_stream_wait_by_the_buffers_own_means),
        cmocka_unit_test(a_list_owns_what_was_pushed),
        cmocka_unit_test(a_tensor_takes_descriptor_and_list_and_frees_both),
        cmocka_unit_test(a_tensor_is_refused_when_buffers_and_descriptor_disagree),
        cmocka_unit_test(without_memory_a_tensor_is_not_made_and_nothing_is_lost),
        cmocka_unit_test(an_item_is_nodes_in_preorder_whose_tensors_can_be_taken),
        cmocka_unit_test(without_memory_an_item_keeps_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
