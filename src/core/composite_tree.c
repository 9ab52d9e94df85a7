#include "core/composite_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

#define MAX_NAME 65535u

HurrayStatus hry_tree_depth_option(uint32_t asked, uint32_t *out, HurrayError *error) {
    if (asked > HRY_MAX_COMPOSITE_DEPTH)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "max_composite_depth", HRY_NO_OFFSET,
                        "max_composite_depth is %" PRIu32 "; at most %u nested heads are read, 0 means that many", asked,
                        HRY_MAX_COMPOSITE_DEPTH);
    *out = asked ? asked : HRY_MAX_COMPOSITE_DEPTH;
    return HURRAY_OK;
}

void hry_tree_init(HryTree *tree, const HurrayAllocator *allocator, uint32_t max_depth, uint32_t flags) {
    memset(tree, 0, sizeof *tree);
    tree->allocator = *allocator;
    tree->max_depth = max_depth;
    tree->flags = flags;
}

/* What a test prepared and no commit took: the level of a head. */
static void drop_opening(HryTree *tree) {
    if (tree->opening) hry_composite_check_clear(&tree->levels[tree->depth].check);
    tree->opening = tree->tested = false;
}

void hry_tree_restart(HryTree *tree) {
    drop_opening(tree);
    while (tree->depth > 0) hry_composite_check_clear(&tree->levels[--tree->depth].check);
    tree->nodes = 0;
}

void hry_tree_clear(HryTree *tree) {
    if (!tree->levels) return;
    hry_tree_restart(tree);
    hry_free_array(&tree->allocator, tree->levels, tree->capacity, sizeof *tree->levels);
    tree->levels = NULL;
    tree->capacity = 0;
}

static const HryTreeLevel *top(const HryTree *tree) { return &tree->levels[tree->depth - 1]; }

uint64_t hry_tree_parent(const HryTree *tree) { return tree->depth ? top(tree)->node : HURRAY_NONE; }
uint32_t hry_tree_place(const HryTree *tree) { return tree->depth ? top(tree)->check.seen : 0; }

static HurrayStatus prepare_level(HryTree *tree, const HurrayDescriptor *head, HurrayError *error) {
    if (tree->depth >= tree->max_depth)
        return hry_fail(error, HURRAY_ERR_TOO_DEEP, "layout", HRY_NO_OFFSET,
                        "composites are nested deeper than %" PRIu32 " heads, the limit; raise max_composite_depth (at most %u) or flatten "
                        "the composite",
                        tree->max_depth, HRY_MAX_COMPOSITE_DEPTH);
    void *memory = tree->levels;
    if (!hry_grow(&tree->allocator, &memory, &tree->capacity, (size_t)tree->depth + 1, sizeof *tree->levels))
        return hry_fail_memory(error, "the levels of a composite", ((uint64_t)tree->depth + 1) * sizeof *tree->levels);
    tree->levels = memory;
    return hry_composite_check_begin(&tree->levels[tree->depth].check, head, tree->flags, &tree->allocator, error);
}

HurrayStatus hry_tree_test(HryTree *tree, const HurrayDescriptor *descriptor, bool whole, HurrayError *error) {
    drop_opening(tree);
    bool opens = hry_descriptor_is_head(descriptor) && !whole;
    if (opens) {
        HurrayStatus status = prepare_level(tree, descriptor, error);
        if (status != HURRAY_OK) return status;
        tree->opening = true;
    }
    if (tree->depth > 0) {
        HurrayStatus status = hry_composite_check_test(&tree->levels[tree->depth - 1].check, descriptor, error);
        if (status != HURRAY_OK) {
            drop_opening(tree);
            return status;
        }
    }
    tree->tested = true;
    return HURRAY_OK;
}

bool hry_tree_commit(HryTree *tree) {
    if (tree->depth > 0) hry_composite_check_commit(&tree->levels[tree->depth - 1].check);
    if (tree->opening) tree->levels[tree->depth++].node = tree->nodes;
    tree->opening = tree->tested = false;
    tree->nodes++;
    while (tree->depth > 0 && hry_composite_check_missing(&top(tree)->check) == 0)
        hry_composite_check_clear(&tree->levels[--tree->depth].check);
    if (tree->depth > 0) return false;
    tree->nodes = 0;
    return true;
}

HurrayStatus hry_tree_end(const HryTree *tree, HurrayError *error) {
    return tree->depth ? hry_composite_check_end(&top(tree)->check, error) : HURRAY_OK;
}

HurrayStatus hry_slices_check(const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count, HurrayError *error) {
    if (count != descriptor->buffer_count)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "buffers", HRY_NO_OFFSET,
                        "%zu slices were given for %" PRIu32 " buffers; one slice per buffer is needed", count, descriptor->buffer_count);
    if (count != 0 && !slices)
        return hry_fail(error, HURRAY_ERR_NULL_POINTER, "slices", HRY_NO_OFFSET, "the %zu slices are NULL", count);
    for (size_t i = 0; i < count; i++) {
        uint64_t want = descriptor->buffers[i].byte_size;
        HurrayStatus status = HURRAY_OK;
        if (slices[i].len != want)
            status = hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "buffers.byte_size", HRY_NO_OFFSET,
                              "the slice for buffer %zu has %zu bytes, its descriptor says %" PRIu64 "; they must be equal", i, slices[i].len,
                              want);
        else if (want != 0 && !slices[i].ptr)
            status = hry_fail(error, HURRAY_ERR_NULL_POINTER, "slices", HRY_NO_OFFSET, "the slice for buffer %zu is NULL", i);
        if (status != HURRAY_OK) {
            error->buffer_index = (uint32_t)i;
            return status;
        }
    }
    return HURRAY_OK;
}

/* What one node says about itself. */
static HurrayStatus check_node(const HurrayCompositeNode *node, size_t i, HurrayError *error) {
    const HurrayDescriptor *descriptor = node->descriptor;
    if (!descriptor) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "descriptor", HRY_NO_OFFSET, "the descriptor of node %zu is NULL", i);
    if (node->name_len != 0 && !node->name)
        return hry_fail(error, HURRAY_ERR_NULL_POINTER, "name", HRY_NO_OFFSET, "the name of node %zu is NULL but has a length", i);
    if (node->reserved[0] != 0 || node->reserved[1] != 0 || node->kind > HURRAY_NODE_COMPOSITE)
        return hry_fail(error, HURRAY_ERR_INVALID_ARGUMENT, "kind", HRY_NO_OFFSET,
                        "node %zu has kind %" PRIu32 " or reserved members that are not zero; use HURRAY_NODE_TENSOR or _COMPOSITE and zero "
                        "the rest",
                        i, node->kind);
    bool is_head = hry_descriptor_is_head(descriptor);
    if (is_head != (node->kind == HURRAY_NODE_COMPOSITE))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "kind", HRY_NO_OFFSET, "node %zu is called a %s but its descriptor is %s", i,
                        is_head ? "tensor" : "composite", is_head ? "a composite head" : "that of a tensor");
    uint32_t want = is_head ? descriptor->layout.member_count : 0;
    if (node->member_count != want)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "member_count", HRY_NO_OFFSET,
                        "node %zu has member_count %" PRIu32 ", its descriptor says %" PRIu32 "; they must be equal", i, node->member_count,
                        want);
    if (i == 0 && !is_head)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "kind", HRY_NO_OFFSET,
                        "the first node is a plain tensor; a composite begins with its head");
    HurrayStatus status = hry_descriptor_check_writable(descriptor, error);
    return status == HURRAY_OK ? hry_slices_check(descriptor, node->slices, node->slice_count, error) : status;
}

HurrayStatus hry_tree_check_nodes(const HurrayCompositeNode *nodes, size_t count, uint32_t max_depth, const HurrayAllocator *allocator,
                                  HurrayError *error) {
    if (!nodes) return hry_fail(error, HURRAY_ERR_NULL_POINTER, "nodes", HRY_NO_OFFSET, "the node array is NULL");
    if (count == 0)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "nodes", HRY_NO_OFFSET, "the node array is empty; a composite begins with its head");
    HryTree tree;
    HurrayStatus status = HURRAY_OK;
    bool whole = false;
    hry_tree_init(&tree, allocator, max_depth, HRY_CHECK_WRITING);
    for (size_t i = 0; i < count; i++) {
        if (whole) {
            status = hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "nodes", HRY_NO_OFFSET,
                              "the composite is whole after %zu of %zu nodes; the array must be one composite, its counts right", i, count);
            break;
        }
        status = check_node(&nodes[i], i, error);
        if (status == HURRAY_OK) status = hry_tree_test(&tree, nodes[i].descriptor, false, error);
        if (status != HURRAY_OK) {
            hry_error_set_tensor(error, nodes[i].name, nodes[i].name ? nodes[i].name_len : 0, i);
            break;
        }
        whole = hry_tree_commit(&tree);
    }
    if (status == HURRAY_OK && !whole)
        status = hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "member_count", HRY_NO_OFFSET,
                          "the node array ends after %zu nodes, but node %" PRIu64 " has only %" PRIu32 " of its %" PRIu32 " members", count,
                          top(&tree)->node, top(&tree)->check.seen, top(&tree)->check.promised);
    hry_tree_clear(&tree);
    return status;
}

/* A walk over a checked array that only counts. */
typedef struct Walk {
    struct {
        size_t node;
        uint32_t seen, promised;
    } open[HRY_MAX_COMPOSITE_DEPTH];
    uint32_t depth;
} Walk;

static void walk_past(Walk *walk, const HurrayCompositeNode *node, size_t i) {
    if (walk->depth > 0) walk->open[walk->depth - 1].seen++;
    if (node->kind == HURRAY_NODE_COMPOSITE) {
        walk->open[walk->depth].node = i;
        walk->open[walk->depth].seen = 0;
        walk->open[walk->depth++].promised = node->member_count;
    }
    while (walk->depth > 0 && walk->open[walk->depth - 1].seen == walk->open[walk->depth - 1].promised) walk->depth--;
}

static size_t digits(uint32_t number) {
    size_t count = 1;
    for (; number >= 10; number /= 10) count++;
    return count;
}

/* The length of every name, and in *made of those that are made here. */
static HurrayStatus measure_names(HryTreeNames *names, const HurrayCompositeNode *nodes, HurrayError *error) {
    Walk walk = {.depth = 0};
    for (size_t i = 0; i < names->count; i++) {
        size_t len = nodes[i].name_len;
        if (!nodes[i].name && i == 0)
            return hry_fail(error, HURRAY_ERR_INVALID_NAME, "name", HRY_NO_OFFSET, "the composite has no name; in a file its head needs one");
        if (!nodes[i].name) {
            len = names->names[walk.open[walk.depth - 1].node].len + 1 + digits(walk.open[walk.depth - 1].seen);
            if (len > MAX_NAME)
                return hry_fail(error, HURRAY_ERR_INVALID_NAME, "name", HRY_NO_OFFSET,
                                "the name made for node %zu would have %zu bytes, at most %u are possible; give it a name or shorten its "
                                "head's",
                                i, len, MAX_NAME);
            if (!hry_add_size(names->made_size, len + 1, &names->made_size)) return hry_fail_memory(error, "names of members", UINT64_MAX);
        } else if (len > MAX_NAME) {
            return hry_fail(error, HURRAY_ERR_INVALID_NAME, "name", HRY_NO_OFFSET, "the name of node %zu has %zu bytes, at most %u are possible",
                            i, len, MAX_NAME);
        }
        names->names[i] = (HurrayIoSlice){nodes[i].name, len};
        walk_past(&walk, &nodes[i], i);
    }
    return HURRAY_OK;
}

static void make_names(HryTreeNames *names, const HurrayCompositeNode *nodes) {
    Walk walk = {.depth = 0};
    char *at = names->made;
    for (size_t i = 0; i < names->count; i++) {
        if (!nodes[i].name) {
            const HurrayIoSlice *head = &names->names[walk.open[walk.depth - 1].node];
            if (head->len != 0) memcpy(at, head->ptr, head->len);
            snprintf(at + head->len, names->names[i].len + 1 - head->len, ".%" PRIu32, walk.open[walk.depth - 1].seen);
            names->names[i].ptr = at;
            at += names->names[i].len + 1;
        }
        walk_past(&walk, &nodes[i], i);
    }
}

HurrayStatus hry_tree_names_init(HryTreeNames *names, const HurrayCompositeNode *nodes, size_t count, const HurrayAllocator *allocator,
                                 HurrayError *error) {
    memset(names, 0, sizeof *names);
    names->allocator = *allocator;
    names->names = hry_alloc_array(allocator, count, sizeof *names->names);
    if (!names->names) return hry_fail_memory(error, "the names of a composite", (uint64_t)count * sizeof *names->names);
    names->count = count;
    HurrayStatus status = measure_names(names, nodes, error);
    if (status == HURRAY_OK && names->made_size != 0) {
        names->made = hry_alloc_raw(allocator, names->made_size);
        if (!names->made) status = hry_fail_memory(error, "the names of a composite", names->made_size);
    }
    if (status == HURRAY_OK)
        make_names(names, nodes);
    else
        hry_tree_names_clear(names);
    return status;
}

void hry_tree_names_clear(HryTreeNames *names) {
    if (!names->names) return;
    if (names->made) hry_free(&names->allocator, names->made, names->made_size);
    hry_free_array(&names->allocator, names->names, names->count, sizeof *names->names);
    memset(names, 0, sizeof *names);
}
