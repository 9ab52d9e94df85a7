#include "core/composite_assembler.h"

#include <string.h>

#include "base/handle.h"
#include "base/options.h"
#include "hurray/core.h"

void hry_assembler_init(HryAssembler *assembler, const HurrayAllocator *allocator, uint32_t max_depth) {
    hry_tree_init(&assembler->tree, allocator, max_depth, 0);
    assembler->item = NULL;
}

void hry_assembler_restart(HryAssembler *assembler) {
    hry_tree_restart(&assembler->tree);
    hurray_item_destroy(&assembler->item);
}

void hry_assembler_clear(HryAssembler *assembler) {
    hurray_item_destroy(&assembler->item);
    hry_tree_clear(&assembler->tree);
}

HurrayStatus hry_assembler_test(HryAssembler *assembler, const HurrayDescriptor *descriptor, HurrayError *error) {
    return hry_tree_test(&assembler->tree, descriptor, false, error);
}

static HurrayStatus add_node(HryAssembler *assembler, HurrayTensor *tensor, const uint8_t *name, size_t name_len, HurrayError *error) {
    const HurrayDescriptor *descriptor = hry_tensor_descriptor(tensor);
    HurrayStatus status = hry_tree_test(&assembler->tree, descriptor, false, error);
    if (status == HURRAY_OK && !assembler->item) status = hry_item_new(&assembler->tree.allocator, &assembler->item, error);
    if (status != HURRAY_OK) return status;
    bool is_head = hry_descriptor_is_head(descriptor);
    HryItemNodeIn node = {.kind = is_head ? HURRAY_NODE_COMPOSITE : HURRAY_NODE_TENSOR,
                          .member_count = is_head ? descriptor->layout.member_count : 0,
                          .name = name,
                          .name_len = name_len,
                          .tensor = tensor,
                          .parent = hry_tree_parent(&assembler->tree)};
    return hry_item_push(assembler->item, &node, error);
}

HurrayStatus hry_assembler_push(HryAssembler *assembler, HurrayTensor **tensor, const uint8_t *name, size_t name_len, HurrayItem **out,
                                HurrayError *error) {
    HurrayStatus status = add_node(assembler, *tensor, name, name_len, error);
    if (status != HURRAY_OK) {
        if (status != HURRAY_ERR_NO_MEMORY) hry_assembler_restart(assembler);
        return status;
    }
    *tensor = NULL;
    *out = NULL;
    if (hry_tree_commit(&assembler->tree)) {
        *out = assembler->item;
        assembler->item = NULL;
    }
    return HURRAY_OK;
}

HurrayStatus hry_assembler_end(HryAssembler *assembler, HurrayError *error) {
    HurrayStatus status = hry_tree_end(&assembler->tree, error);
    if (status != HURRAY_OK) hry_assembler_restart(assembler);
    return status;
}

/* ---- public ---- */

struct HurrayCompositeAssembler {
    HurrayAllocator allocator;
    HryHandle handle;
    HryAssembler assembler;
};

HurrayStatus hurray_composite_assembler_new(const HurrayReaderOptions *options, HurrayCompositeAssembler **out, HurrayError *error) {
    if (!out) return hry_fail_null(error, "out");
    HurrayReaderOptions latest = HURRAY_READER_OPTIONS_INIT;
    HurrayAllocator allocator;
    HurrayError local;
    uint32_t max_depth = 0;
    HurrayStatus status = hry_options_read(&latest, sizeof latest, sizeof latest, options, "HurrayReaderOptions", &local);
    if (status == HURRAY_OK) status = hry_alloc_resolve(latest.allocator, &allocator, &local);
    if (status == HURRAY_OK) status = hry_tree_depth_option(latest.max_composite_depth, &max_depth, &local);
    if (status != HURRAY_OK) return hry_error_export(error, &local);
    HurrayCompositeAssembler *assembler = hry_alloc(&allocator, sizeof *assembler);
    if (!assembler) {
        hry_fail_memory(&local, "an assembler", sizeof *assembler);
        return hry_error_export(error, &local);
    }
    assembler->allocator = allocator;
    hry_handle_init(&assembler->handle);
    hry_assembler_init(&assembler->assembler, &allocator, max_depth);
    *out = assembler;
    return HURRAY_OK;
}

HurrayStatus hurray_composite_assembler_push(HurrayCompositeAssembler *assembler, HurrayTensor **tensor, HurrayItem **out) {
    if (!assembler || !tensor || !*tensor || !out) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&assembler->handle);
    if (status != HURRAY_OK) return status;
    status = hry_assembler_push(&assembler->assembler, tensor, NULL, 0, out, &assembler->handle.error);
    return hry_handle_leave(&assembler->handle, status);
}

HurrayStatus hurray_composite_assembler_end(HurrayCompositeAssembler *assembler) {
    if (!assembler) return HURRAY_ERR_NULL_POINTER;
    HurrayStatus status = hry_handle_enter(&assembler->handle);
    if (status != HURRAY_OK) return status;
    status = hry_assembler_end(&assembler->assembler, &assembler->handle.error);
    return hry_handle_leave(&assembler->handle, status);
}

const HurrayError *hurray_composite_assembler_last_error(const HurrayCompositeAssembler *assembler) {
    return assembler ? &assembler->handle.error : NULL;
}

HurrayStatus hurray_composite_assembler_destroy(HurrayCompositeAssembler **assembler) {
    if (!assembler) return HURRAY_ERR_NULL_POINTER;
    HurrayCompositeAssembler *gone = *assembler;
    *assembler = NULL;
    if (!gone) return HURRAY_OK;
    hry_assembler_clear(&gone->assembler);
    HurrayAllocator allocator = gone->allocator;
    hry_free(&allocator, gone, sizeof *gone);
    return HURRAY_OK;
}
