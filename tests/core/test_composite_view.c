#include "core/composite_view.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hurray/core.h"
#include "hurray/dense.h"
#include "support/composites.h"

#define F32 HURRAY_TYPE_FLOAT32
#define DIMS(...) ((const uint64_t[]){__VA_ARGS__})

static uint64_t random_state = 0x2545F4914F6CDD1D;
static uint64_t next_random(uint64_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

/* An item of tensors in preorder, which it takes over. */
static HurrayItem *assemble(HurrayTensor **tensors, size_t count) {
    HurrayCompositeAssembler *assembler = NULL;
    HurrayItem *item = NULL;
    assert_int_equal(hurray_composite_assembler_new(NULL, &assembler, NULL), HURRAY_OK);
    for (size_t i = 0; i < count; i++)
        if (hurray_composite_assembler_push(assembler, &tensors[i], &item) != HURRAY_OK)
            fail_msg("%s", hurray_composite_assembler_last_error(assembler)->message);
    hurray_composite_assembler_destroy(&assembler);
    assert_non_null(item);
    return item;
}
#define ITEM(...) assemble((HurrayTensor *[]){__VA_ARGS__}, sizeof((HurrayTensor *[]){__VA_ARGS__}) / sizeof(HurrayTensor *))

static HurrayTensor *head(uint8_t rule, uint8_t op, uint8_t type, uint64_t rows, uint64_t columns, uint32_t members) {
    return make_tensor(make_head(rule, op, type, 2, DIMS(rows, columns), members, NULL, NULL), NULL);
}

/* A row-major float32 member of a 4 x 4 whole. */
static HurrayTensor *floats(uint64_t r, uint64_t c, uint64_t rows, uint64_t columns, int role, const float *values) {
    return make_tensor(make_member(F32, 2, DIMS(rows, columns), DIMS(4, 4), DIMS(r, c), role), (const void *const[]){values});
}

static HurrayTensor *spec_tensor(uint8_t type, const uint64_t *shape, const uint64_t *parent, const uint64_t *offset, int role,
                                 const HurrayLayout *layout, const HurrayQuantization *quantization, const void *const *data) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    shard.parent_shape = parent;
    shard.offset = offset;
    member.role = (uint8_t)role;
    spec.element_type = type;
    spec.rank = 2;
    spec.shape = shape;
    spec.layout = layout;
    spec.quantization = quantization;
    if (parent) spec.shard = &shard;
    if (role != NO_ROLE) spec.composite_member = &member;
    return make_tensor(make_from_spec(&spec), data);
}

/* Both views, and every element, against the numbers wanted. */
static void expect(const HurrayItem *item, uint64_t node, uint64_t rows, uint64_t columns, const float *want) {
    HurrayError error = HURRAY_ERROR_INIT;
    size_t count = rows * columns;
    float *got = malloc(count * sizeof *got); /* exactly: one byte too far is seen */
    assert_non_null(got);
    if (hurray_item_dense(item, node, F32, got, count * sizeof *got, &error) != HURRAY_OK) fail_msg("%s", error.message);
    for (size_t i = 0; i < count; i++)
        if (got[i] != want[i]) fail_msg("element %zu is %g, wanted %g", i, (double)got[i], (double)want[i]);
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++) {
            float one = NAN;
            if (hurray_item_element(item, node, DIMS(r, c), 2, F32, &one, sizeof one, &error) != HURRAY_OK) fail_msg("%s", error.message);
            assert_true(one == want[r * columns + c]);
        }
    free(got);
}

static const float quarter[4][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}, {13, 14, 15, 16}};

static void a_partition_is_put_together_from_its_boxes(void **state) {
    (void)state;
    static const float want[16] = {1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 13, 14, 11, 12, 15, 16};
    HurrayItem *item = ITEM(head(HURRAY_RULE_PARTITION, 0, F32, 4, 4, 4), floats(2, 2, 2, 2, NO_ROLE, quarter[3]), floats(0, 0, 2, 2, NO_ROLE, quarter[0]),
                            floats(0, 2, 2, 2, NO_ROLE, quarter[1]), floats(2, 0, 2, 2, NO_ROLE, quarter[2]));
    expect(item, 0, 4, 4, want);
    float own[16];
    assert_int_equal(hurray_item_dense(item, 0, 0, own, sizeof own, NULL), HURRAY_OK);
    assert_memory_equal(own, want, sizeof own);
    expect(item, 2, 2, 2, quarter[0]); /* a member by itself */
    hurray_item_destroy(&item);
}

static const float base[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void an_overlay_replaces_or_adds_in_order(void **state) {
    (void)state;
    static const float first[4] = {100, 200, 300, 400}, second[2] = {0.5f, 0.25f};
    static const float replaced[16] = {0, 1, 2, 3, 4, 0.5f, 0.25f, 7, 8, 300, 400, 11, 12, 13, 14, 15};
    static const float added[16] = {0, 1, 2, 3, 4, 105.5f, 206.25f, 7, 8, 309, 410, 11, 12, 13, 14, 15};
    for (uint8_t op = HURRAY_COMBINE_REPLACE; op <= HURRAY_COMBINE_ADD; op++) {
        HurrayItem *item = ITEM(head(HURRAY_RULE_OVERLAY, op, F32, 4, 4, 3), floats(0, 0, 4, 4, HURRAY_ROLE_BASE, base),
                                floats(1, 1, 2, 2, HURRAY_ROLE_CORRECTION, first), floats(1, 1, 1, 2, HURRAY_ROLE_CORRECTION, second));
        expect(item, 0, 4, 4, op == HURRAY_COMBINE_ADD ? added : replaced);
        hurray_item_destroy(&item);
    }
}

static void a_sparse_correction_touches_only_what_it_stores(void **state) {
    (void)state;
    static const float values[2] = {70, 80};
    static const uint64_t indices[4] = {0, 1, 1, 0};
    static const float replaced[16] = {0, 1, 2, 3, 4, 5, 70, 7, 8, 80, 10, 11, 12, 13, 14, 15};
    static const float added[16] = {0, 1, 2, 3, 4, 5, 76, 7, 8, 89, 10, 11, 12, 13, 14, 15};
    for (uint8_t op = HURRAY_COMBINE_REPLACE; op <= HURRAY_COMBINE_ADD; op++) {
        HurrayLayout layout = HURRAY_LAYOUT_INIT;
        layout.tag = HURRAY_LAYOUT_COO;
        layout.nnz = 2;
        layout.is_sorted = 1;
        HurrayTensor *sparse = spec_tensor(F32, DIMS(2, 2), DIMS(4, 4), DIMS(1, 1), HURRAY_ROLE_CORRECTION, &layout, NULL,
                                           (const void *const[]){values, indices});
        HurrayItem *item = ITEM(head(HURRAY_RULE_OVERLAY, op, F32, 4, 4, 2), floats(0, 0, 4, 4, HURRAY_ROLE_BASE, base), sparse);
        expect(item, 0, 4, 4, op == HURRAY_COMBINE_ADD ? added : replaced);
        hurray_item_destroy(&item);
    }
}

static void a_sparse_base_or_part_is_zero_where_nothing_is_stored(void **state) {
    (void)state;
    static const float values[1] = {7};
    static const uint64_t indices[2] = {3, 2};
    static const float want[16] = {[14] = 7};
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    layout.tag = HURRAY_LAYOUT_COO;
    layout.nnz = 1;
    HurrayItem *item = ITEM(head(HURRAY_RULE_PARTITION, 0, F32, 4, 4, 1), spec_tensor(F32, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), NO_ROLE, &layout, NULL,
                                                                                 (const void *const[]){values, indices}));
    expect(item, 0, 4, 4, want);
    hurray_item_destroy(&item);
}

static void nested_heads_lie_at_the_sum_of_their_offsets(void **state) {
    (void)state;
    /* 4 x 4 in two halves; the right one is an overlay, the left one two quarters. */
    static const float upper[4] = {1, 2, 3, 4}, lower[4] = {5, 6, 7, 8}, right[8] = {10, 11, 12, 13, 14, 15, 16, 17}, spot[1] = {99};
    static const float want[16] = {1, 2, 10, 11, 3, 4, 12, 13, 5, 6, 99, 15, 7, 8, 16, 17};
    HurrayItem *item = ITEM(
        head(HURRAY_RULE_PARTITION, 0, F32, 4, 4, 2),
        make_tensor(make_head(HURRAY_RULE_PARTITION, 0, F32, 2, DIMS(4, 2), 2, DIMS(4, 4), DIMS(0, 0)), NULL),
        make_tensor(make_member(F32, 2, DIMS(2, 2), DIMS(4, 2), DIMS(2, 0), NO_ROLE), (const void *const[]){lower}),
        make_tensor(make_member(F32, 2, DIMS(2, 2), DIMS(4, 2), DIMS(0, 0), NO_ROLE), (const void *const[]){upper}),
        make_tensor(make_head(HURRAY_RULE_OVERLAY, HURRAY_COMBINE_REPLACE, F32, 2, DIMS(4, 2), 2, DIMS(4, 4), DIMS(0, 2)), NULL),
        make_tensor(make_member(F32, 2, DIMS(4, 2), DIMS(4, 2), DIMS(0, 0), HURRAY_ROLE_BASE), (const void *const[]){right}),
        make_tensor(make_member(F32, 2, DIMS(1, 1), DIMS(4, 2), DIMS(2, 0), HURRAY_ROLE_CORRECTION), (const void *const[]){spot}));
    expect(item, 0, 4, 4, want);
    static const float left_want[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    expect(item, 1, 4, 2, left_want);
    hurray_item_destroy(&item);
}

static void quantized_members_take_the_heads_type(void **state) {
    (void)state;
    static const int8_t codes[16] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, 127};
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    quantization.scheme = HURRAY_QUANT_PER_TENSOR_AFFINE;
    quantization.scale = 1.01f;
    for (int type = 0; type < 2; type++) {
        uint8_t tag = type ? HURRAY_TYPE_BFLOAT16 : F32;
        float want[16];
        for (int i = 0; i < 16; i++) {
            want[i] = 1.01f * (float)codes[i];
            uint32_t bits;
            memcpy(&bits, &want[i], 4);
            if (type) bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
            memcpy(&want[i], &bits, 4);
        }
        HurrayItem *item = ITEM(head(HURRAY_RULE_PARTITION, 0, tag, 4, 4, 1), spec_tensor(HURRAY_TYPE_INT8, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), NO_ROLE, NULL,
                                                                                     &quantization, (const void *const[]){codes}));
        expect(item, 0, 4, 4, want);
        uint8_t own[64];
        HurrayError error = HURRAY_ERROR_INIT;
        assert_int_equal(hurray_item_dense(item, 0, 0, own, type ? 32 : 64, &error), HURRAY_OK);
        assert_int_equal(hurray_item_dense(item, 0, 0, own, type ? 31 : 63, &error), HURRAY_ERR_BUFFER_TOO_SMALL);
        hurray_item_destroy(&item);
    }
}

static void integers_wrap_and_narrow_floats_round_after_each_member(void **state) {
    (void)state;
    static const int8_t ints[16] = {127, -128, 5}, more[16] = {1, -1, 6};
    HurrayItem *item =
        ITEM(head(HURRAY_RULE_OVERLAY, HURRAY_COMBINE_ADD, HURRAY_TYPE_INT8, 4, 4, 2),
             make_tensor(make_member(HURRAY_TYPE_INT8, 2, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), HURRAY_ROLE_BASE), (const void *const[]){ints}),
             make_tensor(make_member(HURRAY_TYPE_INT8, 2, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), HURRAY_ROLE_CORRECTION), (const void *const[]){more}));
    static const float want[16] = {-128, 127, 11};
    expect(item, 0, 4, 4, want);
    hurray_item_destroy(&item);
    /* 256 + 1 + 1 in bfloat16 is 256 (each sum is rounded to even), not 258. */
    static const uint16_t big[16] = {0x4380}, one[16] = {0x3F80};
    item = ITEM(head(HURRAY_RULE_OVERLAY, HURRAY_COMBINE_ADD, HURRAY_TYPE_BFLOAT16, 4, 4, 3),
                make_tensor(make_member(HURRAY_TYPE_BFLOAT16, 2, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), HURRAY_ROLE_BASE), (const void *const[]){big}),
                make_tensor(make_member(HURRAY_TYPE_BFLOAT16, 2, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), HURRAY_ROLE_CORRECTION), (const void *const[]){one}),
                make_tensor(make_member(HURRAY_TYPE_BFLOAT16, 2, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), HURRAY_ROLE_CORRECTION), (const void *const[]){one}));
    static const float sums[16] = {256};
    expect(item, 0, 4, 4, sums);
    hurray_item_destroy(&item);
}

/* Splits [0, rows) x [0, columns) by random cuts into boxes. */
static size_t random_boxes(uint64_t rows, uint64_t columns, size_t wanted, uint64_t boxes[][4]) {
    size_t count = 1;
    memcpy(boxes[0], DIMS(0, 0, rows, columns), sizeof boxes[0]);
    for (int tries = 0; tries < 100 && count < wanted; tries++) {
        size_t i = next_random(count), k = next_random(2);
        if (boxes[i][2 + k] < 2) continue;
        uint64_t cut = 1 + next_random(boxes[i][2 + k] - 1);
        memcpy(boxes[count], boxes[i], sizeof boxes[i]);
        boxes[count][k] += cut;
        boxes[count][2 + k] -= cut;
        boxes[i][2 + k] = cut;
        count++;
    }
    return count;
}

/* Every width of element, boxes at odd places: the whole must be what one tensor of the same codes would be. */
static void any_width_and_any_boxes_give_the_same_whole(void **state) {
    (void)state;
    static const struct {
        uint8_t type;
        unsigned bits;
    } types[] = {{HURRAY_TYPE_BOOL, 1},    {HURRAY_TYPE_UINT2, 2},   {HURRAY_TYPE_UINT4, 4},   {HURRAY_TYPE_FLOAT6_E3M2, 6}, {HURRAY_TYPE_UINT8, 8},
                 {HURRAY_TYPE_FLOAT16, 16}, {HURRAY_TYPE_INT32, 32}, {HURRAY_TYPE_FLOAT64, 64}, {HURRAY_TYPE_COMPLEX128, 128}};
    for (int round = 0; round < 400; round++) {
        unsigned bits = types[round % 9].bits, width = bits < 8 ? 1 : bits / 8;
        bool wide = next_random(6) == 0; /* runs that are moved without unpacking */
        uint64_t rows = 1 + next_random(9), columns = wide ? 512 : 1 + next_random(40), boxes[12][4];
        if (wide && next_random(2)) rows = 3;
        size_t members = random_boxes(rows, columns, 1 + next_random(12), boxes);
        uint8_t *whole = malloc(rows * columns * width); /* codes */
        assert_non_null(whole);
        for (uint64_t i = 0; i < rows * columns * width; i++) whole[i] = (uint8_t)next_random(bits < 8 ? 1u << bits : 256);
        HurrayTensor *tensors[13];
        tensors[0] = head(HURRAY_RULE_PARTITION, 0, types[round % 9].type, rows, columns, (uint32_t)members);
        for (size_t m = 0; m < members; m++) {
            const uint64_t *box = boxes[m], elements = box[2] * box[3];
            uint8_t *packed = calloc(1, elements * width + 8);
            assert_non_null(packed);
            for (uint64_t e = 0; e < elements; e++) {
                const uint8_t *code = whole + ((box[0] + e / box[3]) * columns + box[1] + e % box[3]) * width;
                if (bits >= 8) memcpy(packed + e * width, code, width);
                else for (unsigned b = 0; b < bits; b++) packed[(e * bits + b) / 8] |= (uint8_t)((*code >> b & 1) << (e * bits + b) % 8);
            }
            tensors[m + 1] = make_tensor(make_member(types[round % 9].type, 2, box + 2, DIMS(rows, columns), box, NO_ROLE), (const void *const[]){packed});
            free(packed);
        }
        HurrayItem *item = assemble(tensors, members + 1);
        uint64_t bytes = 0;
        const HurrayDescriptor *descriptor = NULL;
        HurrayItemNode node;
        hurray_item_node(item, 0, &node);
        hurray_tensor_descriptor(node.tensor, &descriptor);
        assert_int_equal(hurray_dense_size(descriptor, 0, &bytes, NULL), HURRAY_OK);
        uint8_t *got = malloc(bytes);
        assert_non_null(got);
        memset(got, 0xFF, bytes);
        assert_int_equal(hurray_item_dense(item, 0, 0, got, bytes, NULL), HURRAY_OK);
        for (uint64_t e = 0; e < rows * columns; e++) {
            uint8_t code[16] = {0}, one[16] = {0};
            if (bits >= 8) memcpy(code, got + e * width, width);
            else for (unsigned b = 0; b < bits; b++) code[0] |= (uint8_t)((got[(e * bits + b) / 8] >> (e * bits + b) % 8 & 1) << b);
            assert_memory_equal(code, whole + e * width, width);
            if (e % 7) continue;
            assert_int_equal(hurray_item_element(item, 0, DIMS(e / columns, e % columns), 2, 0, one, sizeof one, NULL), HURRAY_OK);
            assert_memory_equal(one, whole + e * width, width);
        }
        if (bits < 8 && rows * columns * bits % 8) assert_int_equal(got[bytes - 1] >> rows * columns * bits % 8 & (bits == 6 ? 0 : 255), 0);
        free(got);
        free(whole);
        hurray_item_destroy(&item);
    }
}

/* Narrow codes lie at the end of the caller's memory while they become floats, chunk by chunk. */
static void thousands_of_narrow_elements_widen_in_place(void **state) {
    (void)state;
    enum { ROWS = 61, COLUMNS = 97 };
    static const struct {
        uint8_t type;
        unsigned bits;
    } types[] = {{HURRAY_TYPE_UINT2, 2}, {HURRAY_TYPE_FLOAT6_E2M3, 6}, {HURRAY_TYPE_INT8, 8}, {HURRAY_TYPE_BFLOAT16, 16}, {HURRAY_TYPE_INT32, 32}};
    static float from_item[ROWS * COLUMNS], from_tensor[ROWS * COLUMNS];
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        static uint8_t bytes[ROWS * COLUMNS * 4 + 8];
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(next_random(256) & 0x7F); /* no NaN */
        HurrayError error = HURRAY_ERROR_INIT;
        HurrayTensor *alone = make_tensor(make_member(types[t].type, 2, DIMS(ROWS, COLUMNS), NULL, NULL, NO_ROLE), (const void *const[]){bytes});
        HurrayItem *item = ITEM(head(HURRAY_RULE_PARTITION, 0, types[t].type, ROWS, COLUMNS, 1),
                                make_tensor(make_member(types[t].type, 2, DIMS(ROWS, COLUMNS), DIMS(ROWS, COLUMNS), DIMS(0, 0), NO_ROLE),
                                            (const void *const[]){bytes}));
        if (hurray_item_dense(item, 0, F32, from_item, sizeof from_item, &error) != HURRAY_OK) fail_msg("%s", error.message);
        assert_int_equal(hurray_tensor_dense(alone, F32, from_tensor, sizeof from_tensor, &error), HURRAY_OK);
        assert_memory_equal(from_item, from_tensor, sizeof from_item);
        hurray_item_destroy(&item);
        hurray_tensor_destroy(&alone);
    }
}

static void what_has_no_view_says_so(void **state) {
    (void)state;
    HurrayError error = HURRAY_ERROR_INIT;
    float out[16];
    HurrayItem *item = ITEM(head(HURRAY_RULE_GROUP, 0, F32, 4, 4, 1), floats(0, 0, 4, 4, NO_ROLE, base));
    assert_int_equal(hurray_item_dense(item, 0, 0, out, sizeof out, &error), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(hurray_item_element(item, 0, DIMS(0, 0), 2, 0, out, sizeof out, &error), HURRAY_ERR_UNSUPPORTED);
    expect(item, 1, 4, 4, base);
    assert_int_equal(hurray_item_dense(item, 2, 0, out, sizeof out, &error), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    hurray_item_destroy(&item);

    item = ITEM(head(HURRAY_RULE_PARTITION, 0, F32, 4, 4, 1),
                make_tensor(make_head(HURRAY_RULE_GROUP, 0, F32, 2, DIMS(4, 4), 0, DIMS(4, 4), DIMS(0, 0)), NULL));
    assert_int_equal(hurray_item_dense(item, 0, 0, out, sizeof out, &error), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(hurray_item_element(item, 0, DIMS(0, 0), 2, 0, out, sizeof out, &error), HURRAY_ERR_UNSUPPORTED);
    hurray_item_destroy(&item);

    item = ITEM(head(HURRAY_RULE_PARTITION, 0, F32, 4, 4, 1), floats(0, 0, 4, 4, NO_ROLE, base));
    assert_int_equal(hurray_item_dense(item, 0, HURRAY_TYPE_FLOAT16, out, sizeof out, &error), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(hurray_item_dense(item, 0, 0, out, sizeof out - 1, &error), HURRAY_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(hurray_item_dense(NULL, 0, 0, out, sizeof out, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_item_dense(item, 0, 0, NULL, sizeof out, &error), HURRAY_ERR_NULL_POINTER);
    assert_int_equal(hurray_item_element(item, 0, DIMS(4, 0), 2, 0, out, sizeof out, &error), HURRAY_ERR_INDEX_OUT_OF_BOUNDS);
    assert_int_equal(hurray_item_element(item, 0, DIMS(0), 1, 0, out, sizeof out, &error), HURRAY_ERR_INVALID_ARGUMENT);
    assert_int_equal(hurray_item_element(item, 0, DIMS(0, 0), 2, 0, out, 3, &error), HURRAY_ERR_BUFFER_TOO_SMALL);
    assert_int_equal(hurray_item_element(item, 0, NULL, 2, 0, out, 4, &error), HURRAY_ERR_NULL_POINTER);
    HurrayTensor *taken = NULL;
    assert_int_equal(hurray_item_take_tensor(item, 1, &taken), HURRAY_OK);
    assert_int_equal(hurray_item_dense(item, 0, 0, out, sizeof out, &error), HURRAY_ERR_WRONG_STATE);
    assert_int_equal(error.tensor_index, 1);
    assert_int_equal(hurray_item_element(item, 0, DIMS(0, 0), 2, 0, out, sizeof out, &error), HURRAY_ERR_WRONG_STATE);
    hurray_tensor_destroy(&taken);
    hurray_item_destroy(&item);
}

static void an_empty_composite_has_an_empty_view(void **state) {
    (void)state;
    HurrayItem *item = ITEM(head(HURRAY_RULE_PARTITION, 0, F32, 0, 4, 0));
    assert_int_equal(hurray_item_dense(item, 0, 0, NULL, 0, NULL), HURRAY_OK);
    hurray_item_destroy(&item);
}

static void a_sum_that_the_type_cannot_hold_is_invalid_data(void **state) {
    (void)state;
    /* e8m0 has no code for a sum beyond its range; 0xFE is its largest. */
    static const uint8_t most[16] = {0xFE, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127};
    HurrayItem *item =
        ITEM(head(HURRAY_RULE_OVERLAY, HURRAY_COMBINE_ADD, HURRAY_TYPE_FLOAT8_E8M0, 4, 4, 2),
             make_tensor(make_member(HURRAY_TYPE_FLOAT8_E8M0, 2, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), HURRAY_ROLE_BASE), (const void *const[]){most}),
             make_tensor(make_member(HURRAY_TYPE_FLOAT8_E8M0, 2, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), HURRAY_ROLE_CORRECTION), (const void *const[]){most}));
    float out[16];
    HurrayError error = HURRAY_ERROR_INIT;
    assert_int_equal(hurray_item_dense(item, 0, F32, out, sizeof out, &error), HURRAY_ERR_INVALID_DATA);
    assert_int_equal(error.tensor_index, 2);
    assert_int_equal(hurray_item_element(item, 0, DIMS(0, 0), 2, F32, out, sizeof out, &error), HURRAY_ERR_INVALID_DATA);
    hurray_item_destroy(&item);
}

/* Integers of 4 and 8 bits: dense and sparse corrections in random boxes, counted by hand. */
static void random_overlays_agree_with_doing_it_element_by_element(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++) {
        unsigned bits = round % 2 ? 4 : 8;
        uint8_t type = bits == 4 ? HURRAY_TYPE_UINT4 : HURRAY_TYPE_UINT8, op = (uint8_t)(1 + next_random(2));
        uint64_t rows = 1 + next_random(5), columns = 1 + next_random(9), whole[2] = {rows, columns};
        uint32_t members = 1 + (uint32_t)next_random(4);
        unsigned want[64];
        HurrayTensor *tensors[6];
        tensors[0] = head(HURRAY_RULE_OVERLAY, op, type, rows, columns, members);
        for (uint32_t m = 0; m < members; m++) {
            uint64_t at[2] = {m ? next_random(rows) : 0, m ? next_random(columns) : 0};
            uint64_t shape[2] = {m ? 1 + next_random(rows - at[0]) : rows, m ? 1 + next_random(columns - at[1]) : columns};
            bool sparse = next_random(2);
            uint8_t packed[64] = {0};
            uint64_t indices[128], stored = 0;
            for (uint64_t e = 0; e < shape[0] * shape[1]; e++) {
                unsigned code = (unsigned)next_random(1u << bits), *to = &want[(at[0] + e / shape[1]) * columns + at[1] + e % shape[1]];
                bool is_there = !sparse || next_random(3) == 0;
                if (!is_there) {
                    if (m == 0) *to = 0;
                    continue;
                }
                uint64_t place = sparse ? stored : e;
                packed[place * bits / 8] |= (uint8_t)(code << place * bits % 8);
                indices[2 * stored] = e / shape[1];
                indices[2 * stored++ + 1] = e % shape[1];
                *to = m && op == HURRAY_COMBINE_ADD ? (*to + code) % (1u << bits) : code;
            }
            HurrayLayout layout = HURRAY_LAYOUT_INIT;
            layout.tag = sparse ? HURRAY_LAYOUT_COO : HURRAY_LAYOUT_ROW_MAJOR;
            layout.nnz = sparse ? stored : 0;
            tensors[m + 1] = spec_tensor(type, shape, whole, at, m ? (int)HURRAY_ROLE_CORRECTION : (int)HURRAY_ROLE_BASE, &layout, NULL,
                                         (const void *const[]){packed, indices});
        }
        HurrayItem *item = assemble(tensors, members + 1);
        float numbers[64];
        for (uint64_t e = 0; e < rows * columns; e++) numbers[e] = (float)want[e];
        expect(item, 0, rows, columns, numbers);
        hurray_item_destroy(&item);
    }
}

/* A 256-bit private type: moved, never interpreted. */
static HurrayTensor *wide(const HurrayLayout *layout, uint32_t width, const uint64_t *shape, const uint64_t *at, int role, const void *const *data) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayExtensionType extension = HURRAY_EXTENSION_TYPE_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    extension.bit_width = width;
    extension.packing_factor = 1;
    shard.parent_shape = DIMS(2, 3);
    shard.offset = at;
    member.role = (uint8_t)role;
    spec.element_type = 0xF7;
    spec.extension_type = &extension;
    spec.rank = 2;
    spec.shape = shape;
    spec.layout = layout;
    if (at) spec.shard = &shard;
    if (role != NO_ROLE) spec.composite_member = &member;
    return make_tensor(make_from_spec(&spec), data);
}

static void elements_of_private_types_are_moved_but_not_added(void **state) {
    (void)state;
    uint8_t bytes[6 * 32], got[6 * 32], one[32];
    static const uint64_t indices[2] = {0, 1};
    HurrayError error = HURRAY_ERROR_INIT;
    HurrayLayout composite = HURRAY_LAYOUT_INIT, coo = HURRAY_LAYOUT_INIT;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 5 + 1);
    composite.tag = HURRAY_LAYOUT_COMPOSITE;
    composite.rule = HURRAY_RULE_PARTITION;
    composite.member_count = 2;
    coo.tag = HURRAY_LAYOUT_COO;
    coo.nnz = 1;
    HurrayItem *item = ITEM(wide(&composite, 256, DIMS(2, 3), NULL, NO_ROLE, NULL), wide(NULL, 256, DIMS(2, 1), DIMS(0, 0), NO_ROLE, (const void *const[]){bytes}),
                            wide(&coo, 256, DIMS(2, 2), DIMS(0, 1), NO_ROLE, (const void *const[]){bytes + 64, indices}));
    memset(got, 0xEE, sizeof got);
    if (hurray_item_dense(item, 0, 0, got, sizeof got, &error) != HURRAY_OK) fail_msg("%s", error.message);
    static const uint8_t zeros[32];
    assert_memory_equal(got, bytes, 32);
    assert_memory_equal(got + 32, zeros, 32);
    assert_memory_equal(got + 64, bytes + 64, 32);
    assert_memory_equal(got + 96, bytes + 32, 32);
    assert_memory_equal(got + 128, zeros, 32);
    assert_int_equal(hurray_item_element(item, 0, DIMS(0, 2), 2, 0, one, sizeof one, &error), HURRAY_OK);
    assert_memory_equal(one, bytes + 64, 32);
    assert_int_equal(hurray_item_dense(item, 0, F32, got, sizeof got, &error), HURRAY_ERR_UNSUPPORTED);
    hurray_item_destroy(&item);
    composite.rule = HURRAY_RULE_OVERLAY;
    composite.combine_op = HURRAY_COMBINE_ADD;
    item = ITEM(wide(&composite, 256, DIMS(2, 3), NULL, NO_ROLE, NULL), wide(NULL, 256, DIMS(2, 3), DIMS(0, 0), HURRAY_ROLE_BASE, (const void *const[]){bytes}),
                wide(NULL, 256, DIMS(1, 1), DIMS(0, 0), HURRAY_ROLE_CORRECTION, (const void *const[]){bytes}));
    assert_int_equal(hurray_item_dense(item, 0, 0, got, sizeof got, &error), HURRAY_ERR_UNSUPPORTED);
    assert_int_equal(hurray_item_element(item, 0, DIMS(0, 0), 2, 0, one, sizeof one, &error), HURRAY_ERR_UNSUPPORTED);
    hurray_item_destroy(&item);
    composite.rule = HURRAY_RULE_PARTITION; /* the same tag, another width */
    composite.combine_op = 0;
    composite.member_count = 1;
    item = ITEM(wide(&composite, 256, DIMS(2, 3), NULL, NO_ROLE, NULL), wide(NULL, 128, DIMS(2, 3), DIMS(0, 0), NO_ROLE, NULL));
    assert_int_equal(hurray_item_dense(item, 0, 0, got, sizeof got, &error), HURRAY_ERR_UNSUPPORTED);
    hurray_item_destroy(&item);
}

/* 64-bit heads: float32 comes out by way of the head's type. */
static void wide_heads_add_in_their_own_type_before_they_are_narrowed(void **state) {
    (void)state;
    static const double big[16] = {1e9, 16777216}, small[16] = {0.25, 1};
    static const double less[16] = {-1e9, -16777216};
    static const float want[16] = {0.25f, 1};
    HurrayItem *item =
        ITEM(head(HURRAY_RULE_OVERLAY, HURRAY_COMBINE_ADD, HURRAY_TYPE_FLOAT64, 4, 4, 3),
             make_tensor(make_member(HURRAY_TYPE_FLOAT64, 2, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), HURRAY_ROLE_BASE), (const void *const[]){big}),
             make_tensor(make_member(HURRAY_TYPE_FLOAT64, 2, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), HURRAY_ROLE_CORRECTION), (const void *const[]){small}),
             make_tensor(make_member(HURRAY_TYPE_FLOAT64, 2, DIMS(4, 4), DIMS(4, 4), DIMS(0, 0), HURRAY_ROLE_CORRECTION), (const void *const[]){less}));
    expect(item, 0, 4, 4, want);
    hurray_item_destroy(&item);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_is_put_together_from_its_boxes),
        cmocka_unit_test(an_overlay_replaces_or_adds_in_order),
        cmocka_unit_test(a_sparse_correction_touches_only_what_it_stores),
        cmocka_unit_test(a_sparse_base_or_part_is_zero_where_nothing_is_stored),
        cmocka_unit_test(nested_heads_lie_at_the_sum_of_their_offsets),
        cmocka_unit_test(quantized_members_take_the_heads_type),
        cmocka_unit_test(integers_wrap_and_narrow_floats_round_after_each_member),
        cmocka_unit_test(any_width_and_any_boxes_give_the_same_whole),
        cmocka_unit_test(random_overlays_agree_with_doing_it_element_by_element),
        cmocka_unit_test(elements_of_private_types_are_moved_but_not_added),
        cmocka_unit_test(wide_heads_add_in_their_own_type_before_they_are_narrowed),
        cmocka_unit_test(thousands_of_narrow_elements_widen_in_place),
        cmocka_unit_test(what_has_no_view_says_so),
        cmocka_unit_test(an_empty_composite_has_an_empty_view),
        cmocka_unit_test(a_sum_that_the_type_cannot_hold_is_invalid_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
