#include "core/composite_view.h"

#include <inttypes.h>
#include <string.h>

#include "base/endian.h"
#include "core/composite_merge.h"
#include "core/dense_view.h"
#include "format/codes.h"
#include "format/element.h"
#include "format/rounding.h"
#include "hurray/dense.h"

#define CHUNK 1024u

/* What a view works on: the whole that `node` stands for. */
typedef struct View {
    const HurrayItem *item;
    uint64_t node;
    const HurrayDescriptor *head; /* of node: a tensor's or a head's */
    HryForm form;
    uint64_t elements, bytes; /* of what comes out */
    bool decodes;             /* float32 comes out, of another type */
} View;

static HurrayStatus node_descriptor(const HurrayItem *item, uint64_t i, const HurrayDescriptor **out, HurrayError *error) {
    const HurrayItemNode *node = hry_item_at(item, i);
    if (!node->tensor) {
        hry_fail(error, HURRAY_ERR_WRONG_STATE, NULL, HRY_NO_OFFSET,
                 "the tensor of node %" PRIu64 " was taken out of the item; look at the composite before taking its parts", i);
        hry_error_set_tensor(error, node->name, node->name_len, i);
        return error->code;
    }
    *out = hry_tensor_descriptor(node->tensor);
    return HURRAY_OK;
}

static HurrayStatus open_view(View *view, const HurrayItem *item, uint64_t node, uint8_t type, HurrayError *error) {
    if (node >= hry_item_count(item))
        return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "node", HRY_NO_OFFSET, "node %" PRIu64 " was asked for, the item has %" PRIu64,
                        node, hry_item_count(item));
    view->item = item;
    view->node = node;
    HurrayStatus status = node_descriptor(item, node, &view->head, error);
    if (status == HURRAY_OK) status = hry_dense_plan(view->head, type, &view->elements, &view->bytes, error);
    if (status != HURRAY_OK) return status;
    view->form = hry_form_of(view->head);
    view->decodes = type == HURRAY_TYPE_FLOAT32 && !(view->form.kind == HRY_FORM_FLOAT && view->form.bits == 32);
    return HURRAY_OK;
}

/* Does node i belong to the tree below `root`? Nodes stand in preorder, so the first that does not ends it. */
static bool is_below(const HurrayItem *item, uint64_t i, uint64_t root) {
    uint64_t parent = hry_item_at(item, i)->parent;
    return i > root && parent != HURRAY_NONE && parent >= root;
}

/* A member's place in its parent, added to origin. An item comes from an assembler, which checked it; what an address follows
 * from is looked at again all the same. */
static HurrayStatus add_place(const HurrayDescriptor *member, const HurrayDescriptor *parent, uint64_t *origin, HurrayError *error) {
    bool good = member->has_shard && member->rank == parent->rank;
    for (uint32_t k = 0; good && k < member->rank; k++) {
        good = member->shard.offset[k] <= parent->shape[k] && member->shape[k] <= parent->shape[k] - member->shard.offset[k];
        origin[k] += member->shard.offset[k];
    }
    return good ? HURRAY_OK
                : hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard", HRY_NO_OFFSET, "a member has no place in its head; assemble the item anew");
}

static HurrayStatus refuse_group(const HurrayDescriptor *head, HurrayError *error) {
    if (!hry_descriptor_is_head(head) || head->layout.rule != HURRAY_RULE_GROUP) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "layout", HRY_NO_OFFSET, "a group has no elements of its own; read its members one by one");
}

/* How elements of `member` get into those of its parent. */
static HryMergeHow how_merged(const HurrayDescriptor *parent, const HurrayDescriptor *member) {
    if (parent->layout.rule != HURRAY_RULE_OVERLAY || member->composite_member.role == HURRAY_ROLE_BASE) return HRY_MERGE_PLACE;
    return parent->layout.combine_op == HURRAY_COMBINE_ADD ? HRY_MERGE_ADD : HRY_MERGE_REPLACE;
}

/* One node of the tree: a tensor is merged at the sum of all offsets up to the root of the view. *placed counts the elements that
 * were laid down, not those that correct others. */
static HurrayStatus merge_node(const View *view, const HryMergeInto *into, uint64_t i, uint64_t *placed, HurrayError *error) {
    HryBytes buffers[HRY_MAX_BUFFERS];
    uint64_t origin[HURRAY_MAX_RANK] = {0};
    const HurrayDescriptor *member = NULL, *inner, *outer = NULL;
    HryMergeHow how = HRY_MERGE_PLACE;
    uint64_t elements = 0;
    HurrayStatus status = node_descriptor(view->item, i, &member, error);
    if (status == HURRAY_OK) status = refuse_group(member, error);
    if (status != HURRAY_OK || hry_descriptor_is_head(member)) return status;
    inner = member;
    for (uint64_t at = i; at != view->node; inner = outer) {
        at = hry_item_at(view->item, at)->parent;
        status = node_descriptor(view->item, at, &outer, error);
        if (status == HURRAY_OK) status = add_place(inner, outer, origin, error);
        if (status != HURRAY_OK) return status;
        if (inner == member) how = how_merged(outer, member);
    }
    hry_descriptor_elements(member, &elements); /* lies inside the whole, so it fits */
    if (how == HRY_MERGE_PLACE) *placed += elements;
    status = hry_tensor_host_bytes(hry_item_at(view->item, i)->tensor, buffers, error);
    return status == HURRAY_OK ? hry_merge_tensor(into, member, buffers, origin, how, error) : status;
}

static HurrayStatus merge_all(const View *view, uint8_t *codes, HurrayError *error) {
    HryMergeInto into = {.head = view->head, .form = view->form, .dst = codes};
    uint64_t count = hry_item_count(view->item), placed = 0;
    for (uint64_t i = view->node + 1; i < count && is_below(view->item, i, view->node); i++) {
        HurrayStatus status = merge_node(view, &into, i, &placed, error);
        if (status != HURRAY_OK) {
            hry_error_set_tensor(error, hry_item_at(view->item, i)->name, hry_item_at(view->item, i)->name_len, i);
            return status;
        }
    }
    if (placed == view->elements) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard", HRY_NO_OFFSET,
                    "the members hold %" PRIu64 " of the composite's %" PRIu64 " elements; were only slices of them loaded?", placed, view->elements);
}

/* All codes to float32. The codes may lie at the very end of dst: a float is at least as wide as a code, so none is overwritten
 * before it is read. */
static HurrayStatus decode_all(const View *view, const uint8_t *codes, uint8_t *dst, HurrayError *error) {
    float table[256], values[CHUNK];
    uint8_t some[CHUNK * HRY_MAX_CODE];
    size_t bad;
    if (view->form.bits <= 8) hry_value_table(&view->form, table);
    for (uint64_t first = 0; first < view->elements;) {
        size_t count = view->elements - first < CHUNK ? (size_t)(view->elements - first) : CHUNK;
        hry_codes_get(codes, view->form.bits, (int64_t)first, 1, count, some);
        if (!hry_values_f32(&view->form, table, some, count, values, &bad))
            return hry_fail(error, HURRAY_ERR_INVALID_DATA, "element_type", HRY_NO_OFFSET,
                            "element %" PRIu64 " of the composite has no value in the head's type", first + bad);
        for (size_t i = 0; i < count; i++) hry_store_f32(dst + 4 * (first + i), values[i]);
        first += count;
    }
    return HURRAY_OK;
}

/* In the default float modes. */
static __attribute__((noinline)) HurrayStatus view_dense(const View *view, uint8_t *dst, HurrayError *error) {
    uint64_t code_bytes = view->bytes;
    if (view->decodes) hry_bits_bytes(view->elements, view->form.bits, &code_bytes); /* planned: fits */
    HurrayAllocator allocator = hry_alloc_default();
    bool beside = code_bytes > view->bytes; /* types wider than float32 */
    uint8_t *codes = beside ? hry_alloc_raw(&allocator, (size_t)code_bytes) : dst + (view->bytes - code_bytes);
    if (!codes) return hry_fail_memory(error, "a composite in its head's type", code_bytes);
    if (view->form.bits < 8) memset(codes, 0, (size_t)code_bytes); /* unused bits at the end */
    HurrayStatus status = merge_all(view, codes, error);
    if (status == HURRAY_OK && view->decodes) status = decode_all(view, codes, dst, error);
    if (beside) hry_free(&allocator, codes, (size_t)code_bytes);
    return status;
}

static HurrayStatus check_room(uint64_t need, size_t len, HurrayError *error) {
    if (len >= need) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_BUFFER_TOO_SMALL, "len", HRY_NO_OFFSET, "%zu bytes were given, %" PRIu64 " are needed", len, need);
}

HurrayStatus hry_item_view_dense(const HurrayItem *item, uint64_t node, uint8_t type, void *dst, size_t len, HurrayError *error) {
    View view;
    HurrayStatus status = open_view(&view, item, node, type, error);
    if (status == HURRAY_OK) status = check_room(view.bytes, len, error);
    if (status != HURRAY_OK || view.elements == 0) return status;
    if (!hry_descriptor_is_head(view.head)) return hurray_tensor_dense(hry_item_at(item, node)->tensor, type, dst, len, error);
    HryRounding rounding;
    hry_rounding_begin(&rounding);
    status = view_dense(&view, dst, error);
    hry_rounding_end(&rounding);
    return status;
}

/* Is index inside the member's box? Then it becomes the index in the member. */
static bool enter_box(const HurrayDescriptor *member, const uint64_t *index, uint64_t *inside) {
    for (uint32_t k = 0; k < member->rank; k++) {
        uint64_t at = member->shard.offset[k];
        if (index[k] < at || index[k] - at >= member->shape[k]) return false;
        inside[k] = index[k] - at;
    }
    return true;
}

/* One code of the head's type, going down from head to member. */
static HurrayStatus find_element(const View *view, const uint64_t *wanted, uint8_t *code, HurrayError *error) {
    HryBytes buffers[HRY_MAX_BUFFERS];
    uint64_t index[HURRAY_MAX_RANK], inside[HURRAY_MAX_RANK], unused[HURRAY_MAX_RANK] = {0};
    uint64_t head = view->node, count = hry_item_count(view->item);
    const HurrayDescriptor *parent = view->head, *member = NULL;
    bool found = false;
    HurrayStatus status = HURRAY_OK;
    memcpy(index, wanted, view->head->rank * sizeof *index);
    for (uint64_t i = head + 1; i < count && is_below(view->item, i, head); i++) {
        if (hry_item_at(view->item, i)->parent != head) continue;
        status = node_descriptor(view->item, i, &member, error);
        if (status == HURRAY_OK) status = add_place(member, parent, unused, error);
        if (status != HURRAY_OK) return status;
        if (!enter_box(member, index, inside)) continue;
        found = true;
        if (hry_descriptor_is_head(member)) { /* the only member that holds it: look at its members, which follow at once */
            status = refuse_group(member, error);
            if (status != HURRAY_OK) return status;
            memcpy(index, inside, member->rank * sizeof *index);
            head = i;
            parent = member;
            found = false;
            continue;
        }
        status = hry_tensor_host_bytes(hry_item_at(view->item, i)->tensor, buffers, error);
        if (status == HURRAY_OK) status = hry_merge_element(&view->form, member, buffers, inside, how_merged(parent, member), code, error);
        if (status != HURRAY_OK || parent->layout.rule == HURRAY_RULE_PARTITION) return status;
    }
    return found ? HURRAY_OK : hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard", HRY_NO_OFFSET, "no member holds the element; assemble the item anew");
}

static __attribute__((noinline)) HurrayStatus view_element(const View *view, const uint64_t *index, uint8_t *dst, HurrayError *error) {
    uint8_t code[HRY_MAX_CODE] = {0};
    float table[256], value;
    size_t bad;
    if (!view->decodes) return find_element(view, index, dst, error);
    HurrayStatus status = find_element(view, index, code, error);
    if (status != HURRAY_OK) return status;
    if (view->form.bits <= 8) hry_value_table(&view->form, table);
    if (!hry_values_f32(&view->form, table, code, 1, &value, &bad))
        return hry_fail(error, HURRAY_ERR_INVALID_DATA, "element_type", HRY_NO_OFFSET, "the element has no value in the head's type");
    hry_store_f32(dst, value);
    return HURRAY_OK;
}

HurrayStatus hry_item_view_element(const HurrayItem *item, uint64_t node, const uint64_t *index, uint32_t rank, uint8_t type, void *dst,
                                   size_t len, HurrayError *error) {
    View view;
    HurrayStatus status = open_view(&view, item, node, type, error);
    if (status != HURRAY_OK) return status;
    if (!hry_descriptor_is_head(view.head)) return hurray_tensor_element(hry_item_at(item, node)->tensor, index, rank, type, dst, len, error);
    if (rank != view.head->rank)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "rank", HRY_NO_OFFSET, "an index of rank %" PRIu32 " was given, the composite has rank %" PRIu32,
                        rank, view.head->rank);
    for (uint32_t k = 0; k < rank; k++)
        if (index[k] >= view.head->shape[k])
            return hry_fail(error, HURRAY_ERR_INDEX_OUT_OF_BOUNDS, "index", HRY_NO_OFFSET,
                            "index[%" PRIu32 "] is %" PRIu64 ", the dimension is %" PRIu64, k, index[k], view.head->shape[k]);
    status = check_room(view.decodes ? sizeof(float) : hry_code_bytes(view.form.bits), len, error);
    if (status != HURRAY_OK) return status;
    HryRounding rounding;
    hry_rounding_begin(&rounding);
    status = view_element(&view, index, dst, error);
    hry_rounding_end(&rounding);
    return status;
}

/* ---- public ---- */

HurrayStatus hurray_item_dense(const HurrayItem *item, uint64_t node, uint8_t type, void *dst, size_t len, HurrayError *error) {
    HurrayError local;
    if (!item || (!dst && len != 0)) return hry_fail_null(error, "item or dst");
    hry_error_clear(&local);
    HurrayStatus status = hry_item_view_dense(item, node, type, dst, len, &local);
    return status == HURRAY_OK ? status : hry_error_export(error, &local);
}

HurrayStatus hurray_item_element(const HurrayItem *item, uint64_t node, const uint64_t *index, uint32_t rank, uint8_t type, void *dst,
                                 size_t len, HurrayError *error) {
    HurrayError local;
    if (!item || (!index && rank != 0) || !dst) return hry_fail_null(error, "item or index or dst");
    hry_error_clear(&local);
    HurrayStatus status = hry_item_view_element(item, node, index, rank, type, dst, len, &local);
    return status == HURRAY_OK ? status : hry_error_export(error, &local);
}
