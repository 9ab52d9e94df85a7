#include "core/composite_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/composites.h"
#include "support/fail_alloc.h"

#define F32 HURRAY_TYPE_FLOAT32
#define DIMS(...) ((const uint64_t[]){__VA_ARGS__})

/* Adds the members (consumed) in order; returns the first status that is not OK, or that of end. */
static HurrayStatus check_all(HurrayDescriptor *head, HurrayDescriptor **members, size_t count, uint32_t flags, HurrayError *error) {
    FailAlloc alloc;
    HryCompositeCheck check;
    fail_alloc_init(&alloc);
    HurrayStatus status = hry_composite_check_begin(&check, head, flags, &alloc.allocator, error);
    hurray_descriptor_destroy(head);
    for (size_t i = 0; i < count; i++) {
        if (status == HURRAY_OK) status = hry_composite_check_add(&check, members[i], error);
        hurray_descriptor_destroy(members[i]);
    }
    if (status == HURRAY_OK) status = hry_composite_check_end(&check, error);
    hry_composite_check_clear(&check);
    fail_alloc_assert_empty(&alloc);
    return status;
}

#define CHECK(head, status, says, flags, ...)                                                                                              \
    do {                                                                                                                                   \
        HurrayError error_;                                                                                                                \
        HurrayDescriptor *members_[] = {__VA_ARGS__};                                                                                      \
        hry_error_clear(&error_);                                                                                                          \
        assert_int_equal(check_all(head, members_, sizeof members_ / sizeof *members_, flags, &error_), status);                          \
        if (status != HURRAY_OK && !strstr(error_.message, says)) fail_msg("\"%s\" does not say \"%s\"", error_.message, says);             \
    } while (0)

static HurrayDescriptor *partition(uint32_t members) { return make_head(HURRAY_RULE_PARTITION, 0, F32, 2, DIMS(8, 8), members, NULL, NULL); }
static HurrayDescriptor *overlay(uint32_t members) {
    return make_head(HURRAY_RULE_OVERLAY, HURRAY_COMBINE_ADD, F32, 2, DIMS(8, 8), members, NULL, NULL);
}
static HurrayDescriptor *part(uint64_t r, uint64_t c, uint64_t rows, uint64_t columns) {
    return make_member(F32, 2, DIMS(rows, columns), DIMS(8, 8), DIMS(r, c), NO_ROLE);
}
static HurrayDescriptor *layer(uint64_t r, uint64_t c, uint64_t rows, uint64_t columns, int role) {
    return make_member(F32, 2, DIMS(rows, columns), DIMS(8, 8), DIMS(r, c), role);
}
static HurrayDescriptor *quantized(const uint64_t *offset, int role) {
    HurrayDescriptorSpec spec = HURRAY_DESCRIPTOR_SPEC_INIT;
    HurrayShard shard = HURRAY_SHARD_INIT;
    HurrayCompositeMember member = HURRAY_COMPOSITE_MEMBER_INIT;
    HurrayQuantization quantization = HURRAY_QUANTIZATION_INIT;
    shard.parent_shape = DIMS(8, 8);
    shard.offset = offset;
    member.role = (uint8_t)role;
    quantization.scheme = HURRAY_QUANT_PER_TENSOR_AFFINE;
    quantization.scale = 0.5f;
    spec.rank = 2;
    spec.shape = DIMS(8, 8);
    spec.element_type = HURRAY_TYPE_INT8;
    spec.shard = &shard;
    spec.quantization = &quantization;
    if (role != NO_ROLE) spec.composite_member = &member;
    return make_from_spec(&spec);
}

static void a_partition_is_covered_exactly_in_any_order(void **state) {
    (void)state;
    CHECK(partition(2), HURRAY_OK, "", 0, part(0, 4, 8, 4), part(0, 0, 8, 4));
    CHECK(partition(3), HURRAY_OK, "", HRY_CHECK_WRITING, part(0, 4, 8, 4), part(0, 0, 3, 4), part(3, 0, 5, 4));
    CHECK(partition(1), HURRAY_OK, "", 0, part(0, 0, 8, 8));
    CHECK(partition(2), HURRAY_ERR_INVALID_LAYOUT, "no member of the partition covers [0:8, 4:5]", 0, part(0, 5, 8, 3), part(0, 0, 8, 4));
    CHECK(partition(2), HURRAY_ERR_INVALID_LAYOUT, "members 0 and 1 of the partition both cover [0:8, 3:4]", 0, part(0, 3, 8, 5), part(0, 0, 8, 4));
    CHECK(partition(3), HURRAY_ERR_TORN_COMPOSITE, "after 2 of the 3 members", 0, part(0, 4, 8, 4), part(0, 0, 8, 4));
    CHECK(partition(1), HURRAY_ERR_INVALID_LAYOUT, "all 1 members already", 0, part(0, 0, 8, 8), part(0, 0, 8, 8));
}

static void only_an_empty_head_has_a_partition_without_members(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    HryCompositeCheck check;
    fail_alloc_init(&alloc);
    HurrayDescriptor *full = partition(0), *empty = make_head(HURRAY_RULE_PARTITION, 0, F32, 2, DIMS(0, 8), 0, NULL, NULL);
    assert_int_equal(hry_composite_check_begin(&check, full, 0, &alloc.allocator, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_non_null(strstr(error.message, "covers [0:8, 0:8]"));
    assert_int_equal(hry_composite_check_begin(&check, empty, 0, &alloc.allocator, &error), HURRAY_OK);
    assert_int_equal(hry_composite_check_end(&check, &error), HURRAY_OK);
    hry_composite_check_clear(&check);
    hurray_descriptor_destroy(full);
    hurray_descriptor_destroy(empty);
    fail_alloc_assert_empty(&alloc);
}

static void scalars_are_covered_by_exactly_one_member(void **state) {
    (void)state;
    HurrayDescriptor *(*head)(uint8_t, uint8_t, uint8_t, uint32_t, const uint64_t *, uint32_t, const uint64_t *, const uint64_t *) = make_head;
    static const uint64_t none[1];
    CHECK(head(1, 0, F32, 0, none, 1, NULL, NULL), HURRAY_OK, "", 0, make_member(F32, 0, none, none, none, NO_ROLE));
    CHECK(head(1, 0, F32, 0, none, 2, NULL, NULL), HURRAY_ERR_INVALID_LAYOUT, "members 0 and 1", 0, make_member(F32, 0, none, none, none, NO_ROLE),
          make_member(F32, 0, none, none, none, NO_ROLE));
}

static void a_member_states_its_place_in_this_head(void **state) {
    (void)state;
    CHECK(partition(1), HURRAY_ERR_INVALID_LAYOUT, "no shard section", 0, make_member(F32, 2, DIMS(8, 8), NULL, NULL, NO_ROLE));
    CHECK(partition(1), HURRAY_ERR_INVALID_LAYOUT, "parent_shape[1] = 9", 0, make_member(F32, 2, DIMS(8, 8), DIMS(8, 9), DIMS(0, 0), NO_ROLE));
    CHECK(partition(1), HURRAY_ERR_INVALID_LAYOUT, "another rank", 0, make_member(F32, 1, DIMS(8), DIMS(8), DIMS(0), NO_ROLE));
    CHECK(overlay(1), HURRAY_ERR_INVALID_LAYOUT, "no shard section", 0, make_member(F32, 2, DIMS(8, 8), NULL, NULL, HURRAY_ROLE_BASE));
}

static void an_overlay_begins_with_its_base_and_has_one_only(void **state) {
    (void)state;
    CHECK(overlay(3), HURRAY_OK, "", HRY_CHECK_WRITING, layer(0, 0, 8, 8, HURRAY_ROLE_BASE), layer(2, 2, 2, 2, HURRAY_ROLE_CORRECTION),
          layer(1, 1, 4, 4, HURRAY_ROLE_CORRECTION));
    CHECK(overlay(1), HURRAY_ERR_INVALID_LAYOUT, "first member must be the base", 0, layer(0, 0, 8, 8, HURRAY_ROLE_CORRECTION));
    CHECK(overlay(2), HURRAY_ERR_INVALID_LAYOUT, "only the first", 0, layer(0, 0, 8, 8, HURRAY_ROLE_BASE), layer(0, 0, 8, 8, HURRAY_ROLE_BASE));
    CHECK(overlay(1), HURRAY_ERR_INVALID_LAYOUT, "span the whole head", 0, layer(1, 0, 7, 8, HURRAY_ROLE_BASE));
    CHECK(overlay(1), HURRAY_ERR_INVALID_LAYOUT, "no composite-member section", 0, layer(0, 0, 8, 8, NO_ROLE));
    CHECK(overlay(1), HURRAY_ERR_INVALID_LAYOUT, "cannot be one", 0,
          make_head(HURRAY_RULE_PARTITION, 0, F32, 2, DIMS(8, 8), 1, DIMS(8, 8), DIMS(0, 0)));
    CHECK(overlay(2), HURRAY_ERR_TORN_COMPOSITE, "after 1 of the 2", 0, layer(0, 0, 8, 8, HURRAY_ROLE_BASE));
}

static void a_group_takes_anything_but_roles(void **state) {
    (void)state;
    HurrayDescriptor *(*head)(uint8_t, uint8_t, uint8_t, uint32_t, const uint64_t *, uint32_t, const uint64_t *, const uint64_t *) = make_head;
    CHECK(head(3, 0, F32, 1, DIMS(HURRAY_DYNAMIC_DIMENSION), 3, NULL, NULL), HURRAY_OK, "", HRY_CHECK_WRITING,
          make_member(HURRAY_TYPE_INT8, 3, DIMS(1, 2, 3), NULL, NULL, NO_ROLE), part(0, 0, 1, 1), head(3, 0, F32, 1, DIMS(4), 0, NULL, NULL));
    CHECK(head(3, 0, F32, 1, DIMS(4), 1, NULL, NULL), HURRAY_ERR_INVALID_LAYOUT, "only members of an overlay", 0,
          make_member(F32, 1, DIMS(4), NULL, NULL, HURRAY_ROLE_BASE));
    CHECK(partition(1), HURRAY_ERR_INVALID_LAYOUT, "only members of an overlay", 0, layer(0, 0, 8, 8, HURRAY_ROLE_BASE));
}

static void decoded_types_are_the_heads(void **state) {
    (void)state;
    CHECK(partition(1), HURRAY_OK, "", 0, quantized(DIMS(0, 0), NO_ROLE));
    CHECK(overlay(1), HURRAY_OK, "", 0, quantized(DIMS(0, 0), HURRAY_ROLE_BASE));
    CHECK(make_head(1, 0, HURRAY_TYPE_BFLOAT16, 2, DIMS(8, 8), 1, NULL, NULL), HURRAY_OK, "", 0, quantized(DIMS(0, 0), NO_ROLE));
    CHECK(make_head(1, 0, HURRAY_TYPE_INT8, 2, DIMS(8, 8), 1, NULL, NULL), HURRAY_ERR_INVALID_LAYOUT, "is quantized", 0,
          quantized(DIMS(0, 0), NO_ROLE));
    CHECK(make_head(1, 0, HURRAY_TYPE_COMPLEX64, 2, DIMS(8, 8), 1, NULL, NULL), HURRAY_ERR_INVALID_LAYOUT, "is quantized", 0,
          quantized(DIMS(0, 0), NO_ROLE));
    CHECK(partition(1), HURRAY_ERR_INVALID_LAYOUT, "has type 0x10, the head 0x03", 0,
          make_member(HURRAY_TYPE_INT8, 2, DIMS(8, 8), DIMS(8, 8), DIMS(0, 0), NO_ROLE));
    CHECK(partition(1), HURRAY_OK, "", 0, make_head(2, 1, F32, 2, DIMS(8, 8), 1, DIMS(8, 8), DIMS(0, 0)));
    CHECK(partition(1), HURRAY_ERR_INVALID_LAYOUT, "has type 0x04", 0,
          make_head(1, 0, HURRAY_TYPE_FLOAT64, 2, DIMS(8, 8), 1, DIMS(8, 8), DIMS(0, 0)));
}

static void an_empty_member_inside_another_is_read_but_not_written(void **state) {
    (void)state;
    CHECK(partition(2), HURRAY_OK, "", 0, part(0, 0, 8, 8), part(3, 0, 0, 8));
    CHECK(partition(2), HURRAY_ERR_INVALID_LAYOUT, "empty member 1", HRY_CHECK_WRITING, part(0, 0, 8, 8), part(3, 0, 0, 8));
    CHECK(partition(2), HURRAY_OK, "", HRY_CHECK_WRITING, part(0, 0, 8, 8), part(8, 0, 0, 8));
}

static void a_plain_tensor_is_no_head(void **state) {
    (void)state;
    HryCompositeCheck check;
    HurrayError error;
    HurrayAllocator allocator = hry_alloc_default();
    HurrayDescriptor *plain = part(0, 0, 8, 8);
    assert_int_equal(hry_composite_check_begin(&check, plain, 0, &allocator, &error), HURRAY_ERR_NOT_COMPOSITE);
    hurray_descriptor_destroy(plain);
}

static void a_refused_member_may_be_replaced_by_another(void **state) {
    (void)state;
    HurrayError error;
    HryCompositeCheck check;
    HurrayAllocator allocator = hry_alloc_default();
    HurrayDescriptor *head = partition(2), *left = part(0, 0, 8, 4), *wrong = part(0, 3, 8, 5), *right = part(0, 4, 8, 4);
    assert_int_equal(hry_composite_check_begin(&check, head, 0, &allocator, &error), HURRAY_OK);
    assert_int_equal(hry_composite_check_test(&check, wrong, &error), HURRAY_OK);
    assert_int_equal(hry_composite_check_test(&check, left, &error), HURRAY_OK); /* the first test is forgotten */
    hry_composite_check_commit(&check);
    for (int i = 0; i < 3; i++) assert_int_equal(hry_composite_check_add(&check, wrong, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hry_composite_check_missing(&check), 1);
    assert_int_equal(hry_composite_check_add(&check, right, &error), HURRAY_OK);
    assert_int_equal(hry_composite_check_end(&check, &error), HURRAY_OK);
    hry_composite_check_clear(&check);
    HurrayDescriptor *all[] = {head, left, wrong, right};
    for (int i = 0; i < 4; i++) hurray_descriptor_destroy(all[i]);
}

static void a_promised_count_is_never_allocated_for(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    HryCompositeCheck check;
    fail_alloc_init(&alloc);
    HurrayDescriptor *head = partition(UINT32_MAX - 1), *one = part(0, 0, 1, 1);
    assert_int_equal(hry_composite_check_begin(&check, head, 0, &alloc.allocator, &error), HURRAY_OK);
    assert_int_equal(hry_composite_check_add(&check, one, &error), HURRAY_OK);
    assert_true(alloc.peak_bytes < 4096);
    assert_int_equal(hry_composite_check_end(&check, &error), HURRAY_ERR_TORN_COMPOSITE);
    hry_composite_check_clear(&check);
    hurray_descriptor_destroy(head);
    hurray_descriptor_destroy(one);
    fail_alloc_assert_empty(&alloc);
}

static void a_failing_allocation_is_no_memory_and_leaks_nothing(void **state) {
    (void)state;
    for (uint64_t k = 1; k <= 2; k++) {
        FailAlloc alloc;
        HurrayError error;
        HryCompositeCheck check;
        fail_alloc_init(&alloc);
        fail_alloc_arm(&alloc, k, 1);
        HurrayDescriptor *head = partition(2), *one = part(0, 0, 8, 4);
        HurrayStatus status = hry_composite_check_begin(&check, head, 0, &alloc.allocator, &error);
        if (status == HURRAY_OK) status = hry_composite_check_add(&check, one, &error);
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        hry_composite_check_clear(&check);
        hurray_descriptor_destroy(head);
        hurray_descriptor_destroy(one);
        fail_alloc_assert_empty(&alloc);
    }
}

/* What no decoded descriptor can say is refused here all the same: addresses follow from it. */
static void what_a_descriptor_cannot_say_is_refused_too(void **state) {
    (void)state;
    HurrayError error;
    HryCompositeCheck check;
    HurrayAllocator allocator = hry_alloc_default();
    HurrayDescriptor *head = overlay(1), *member = layer(0, 0, 8, 8, HURRAY_ROLE_BASE);
    HurrayDescriptor fake = *head;
    uint64_t dynamic[2] = {8, HURRAY_DYNAMIC_DIMENSION};
    fake.has_composite_member = true;
    assert_int_equal(hry_composite_check_begin(&check, &fake, 0, &allocator, &error), HURRAY_ERR_INVALID_LAYOUT);
    fake = *head;
    fake.layout.member_count = 0;
    assert_int_equal(hry_composite_check_begin(&check, &fake, 0, &allocator, &error), HURRAY_ERR_INVALID_LAYOUT);
    fake = *head;
    fake.shape = dynamic;
    assert_int_equal(hry_composite_check_begin(&check, &fake, 0, &allocator, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_int_equal(hry_composite_check_begin(&check, head, 0, &allocator, &error), HURRAY_OK);
    uint64_t beyond[2] = {1, 0};
    fake = *member;
    fake.shard.offset = beyond;
    assert_int_equal(hry_composite_check_add(&check, &fake, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_string_equal(error.field, "shard.offset");
    hry_composite_check_clear(&check);
    hurray_descriptor_destroy(head);
    hurray_descriptor_destroy(member);
}

static void without_memory_to_look_closer_the_region_is_named(void **state) {
    (void)state;
    FailAlloc alloc;
    HurrayError error;
    HryCompositeCheck check;
    fail_alloc_init(&alloc);
    fail_alloc_arm(&alloc, 3, 1); /* after the head and the box */
    HurrayDescriptor *head = partition(1), *one = part(0, 0, 8, 4);
    assert_int_equal(hry_composite_check_begin(&check, head, 0, &alloc.allocator, &error), HURRAY_OK);
    assert_int_equal(hry_composite_check_add(&check, one, &error), HURRAY_ERR_INVALID_LAYOUT);
    assert_non_null(strstr(error.message, "inside [0:8, 0:8]"));
    hry_composite_check_clear(&check);
    hurray_descriptor_destroy(head);
    hurray_descriptor_destroy(one);
    fail_alloc_assert_empty(&alloc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_is_covered_exactly_in_any_order),
        cmocka_unit_test(only_an_empty_head_has_a_partition_without_members),
        cmocka_unit_test(scalars_are_covered_by_exactly_one_member),
        cmocka_unit_test(a_member_states_its_place_in_this_head),
        cmocka_unit_test(an_overlay_begins_with_its_base_and_has_one_only),
        cmocka_unit_test(a_group_takes_anything_but_roles),
        cmocka_unit_test(decoded_types_are_the_heads),
        cmocka_unit_test(an_empty_member_inside_another_is_read_but_not_written),
        cmocka_unit_test(a_plain_tensor_is_no_head),
        cmocka_unit_test(what_a_descriptor_cannot_say_is_refused_too),
        cmocka_unit_test(without_memory_to_look_closer_the_region_is_named),
        cmocka_unit_test(a_refused_member_may_be_replaced_by_another),
        cmocka_unit_test(a_promised_count_is_never_allocated_for),
        cmocka_unit_test(a_failing_allocation_is_no_memory_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
