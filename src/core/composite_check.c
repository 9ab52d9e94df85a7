#include "core/composite_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_DIMENSIONS 6u

typedef struct BoxText {
    char text[SHOWN_DIMENSIONS * 43 + 16];
} BoxText;

/* "[a:b, c:d]"; at high rank the first few dimensions. */
static const char *box_text(BoxText *out, const uint64_t *start, const uint64_t *end, uint32_t rank) {
    size_t at = 0, room = sizeof out->text;
    at += (size_t)snprintf(out->text + at, room - at, "[");
    for (uint32_t k = 0; k < rank && k < SHOWN_DIMENSIONS; k++)
        at += (size_t)snprintf(out->text + at, room - at, "%s%" PRIu64 ":%" PRIu64, k ? ", " : "", start[k], end[k]);
    snprintf(out->text + at, room - at, rank > SHOWN_DIMENSIONS ? ", ...]" : "]");
    return out->text;
}

static bool is_float_type(const HurrayDescriptor *descriptor) {
    switch (descriptor->element_type) {
    case HURRAY_TYPE_FLOAT16:
    case HURRAY_TYPE_BFLOAT16:
    case HURRAY_TYPE_FLOAT32:
    case HURRAY_TYPE_FLOAT64:
    case HURRAY_TYPE_FLOAT8_E4M3:
    case HURRAY_TYPE_FLOAT8_E5M2:
    case HURRAY_TYPE_FLOAT8_E8M0:
    case HURRAY_TYPE_FLOAT4_E2M1:
    case HURRAY_TYPE_FLOAT6_E2M3:
    case HURRAY_TYPE_FLOAT6_E3M2:
    case HURRAY_TYPE_FLOAT128: return true;
    default: return descriptor->has_extension_type && descriptor->extension_type.is_float;
    }
}

static const char *rule_name(uint8_t rule) {
    return rule == HURRAY_RULE_PARTITION ? "partition" : rule == HURRAY_RULE_OVERLAY ? "overlay" : "group";
}

static HurrayStatus fail_layout(HurrayError *error, const char *field, const HryCompositeCheck *check, const char *found, const char *wanted) {
    return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, field, HRY_NO_OFFSET, "member %" PRIu32 " of the %s %s; %s", check->seen,
                    rule_name(check->rule), found, wanted);
}

HurrayStatus hry_fail_torn(HurrayError *error, uint64_t seen, uint64_t promised) {
    return hry_fail(error, HURRAY_ERR_TORN_COMPOSITE, "layout.member_count", HRY_NO_OFFSET,
                    "the composite ends after %" PRIu64 " of the %" PRIu64 " members that its head promises; the input is cut short or "
                    "the count is wrong",
                    seen, promised);
}

/* What the whole of a partition must satisfy, seen when its last member stands (or at once without members). */
static HurrayStatus test_cover(const HryCompositeCheck *check, HurrayError *error) {
    const HryCover *cover = &check->cover;
    uint64_t start[HURRAY_MAX_RANK], end[HURRAY_MAX_RANK];
    size_t a = 0, b = 0;
    BoxText where;
    if (!hry_cover_is_exact(cover)) {
        HryCoverFault fault = hry_cover_locate(cover, start, end, &a, &b);
        box_text(&where, start, end, check->rank);
        const char *wanted = "the members' boxes must cover the head exactly: correct shard offsets, shapes or the member count";
        if (fault == HRY_COVER_GAP)
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard", HRY_NO_OFFSET,
                            "no member of the partition covers %s; %s", where.text, wanted);
        if (fault == HRY_COVER_OVERLAP)
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard", HRY_NO_OFFSET,
                            "members %zu and %zu of the partition both cover %s; %s", a, b, where.text, wanted);
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard", HRY_NO_OFFSET,
                        "the partition has a gap or an overlap inside %s; %s", where.text, wanted);
    }
    if ((check->flags & HRY_CHECK_WRITING) && hry_cover_empty_inside(cover, &a, &b)) {
        HryBox box = hry_cover_box(cover, a);
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard", HRY_NO_OFFSET,
                        "the empty member %zu of the partition lies at %s, inside member %zu, which other readers refuse; move it to an "
                        "edge or leave it out",
                        a, box_text(&where, box.start, box.end, check->rank), b);
    }
    return HURRAY_OK;
}

HurrayStatus hry_composite_check_begin(HryCompositeCheck *check, const HurrayDescriptor *head, uint32_t flags,
                                       const HurrayAllocator *allocator, HurrayError *error) {
    memset(check, 0, sizeof *check);
    if (!hry_descriptor_is_head(head))
        return hry_fail(error, HURRAY_ERR_NOT_COMPOSITE, "layout", HRY_NO_OFFSET,
                        "the tensor has layout 0x%02x, not the head of a composite (0x0b); read or write it as a plain tensor",
                        head->layout_tag);
    check->flags = flags;
    check->rule = head->layout.rule;
    check->promised = head->layout.member_count;
    check->rank = head->rank;
    check->element_type = head->element_type;
    check->is_float = is_float_type(head);
    if (head->has_composite_member)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "composite_member", HRY_NO_OFFSET,
                        "a composite head has a composite-member section, which no head may have; leave it out");
    if (check->rule == HURRAY_RULE_GROUP) return HURRAY_OK;
    if (hry_descriptor_is_dynamic(head))
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shape", HRY_NO_OFFSET,
                        "the head of the %s has a dynamic dimension, which only a group's may have; give it its size",
                        rule_name(check->rule));
    if (check->rule == HURRAY_RULE_OVERLAY && check->promised == 0)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout.member_count", HRY_NO_OFFSET,
                        "the overlay has no members; it needs at least its base");
    if (!hry_cover_init(&check->cover, head->shape, head->rank, allocator))
        return hry_fail_memory(error, "a composite head", (5 * (uint64_t)head->rank + 1) * sizeof(uint64_t));
    if (check->rule != HURRAY_RULE_PARTITION || check->promised != 0) return HURRAY_OK;
    HurrayStatus status = test_cover(check, error);
    if (status != HURRAY_OK) hry_composite_check_clear(check);
    return status;
}

/* Rules that partition and overlay members share: a place in the head, a decoded type that is the head's. */
static HurrayStatus test_place_and_type(const HryCompositeCheck *check, const HurrayDescriptor *member, HurrayError *error) {
    const uint64_t *shape = check->cover.head + check->rank;
    if (member->rank != check->rank) return fail_layout(error, "rank", check, "has another rank than the head", "its rank must be the head's");
    if (!member->has_shard)
        return fail_layout(error, "shard", check, "has no shard section", "it needs one that gives its place in the head");
    for (uint32_t k = 0; k < check->rank; k++) {
        if (member->shard.parent_shape[k] != shape[k])
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard.parent_shape", HRY_NO_OFFSET,
                            "member %" PRIu32 " of the %s has parent_shape[%" PRIu32 "] = %" PRIu64 ", but the head's dimension is %" PRIu64
                            "; they must be equal",
                            check->seen, rule_name(check->rule), k, member->shard.parent_shape[k], shape[k]);
        if (member->shard.offset[k] > shape[k] || member->shape[k] > shape[k] - member->shard.offset[k])
            return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "shard.offset", HRY_NO_OFFSET,
                            "member %" PRIu32 " of the %s reaches past the head in dimension %" PRIu32 ": offset %" PRIu64 ", size %" PRIu64
                            ", head %" PRIu64 "; it must lie inside",
                            check->seen, rule_name(check->rule), k, member->shard.offset[k], member->shape[k], shape[k]);
    }
    if (member->has_quantization && !check->is_float)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "element_type", HRY_NO_OFFSET,
                        "member %" PRIu32 " of the %s is quantized, so its values are floats, but the head has type 0x%02x; give the head a "
                        "float type",
                        check->seen, rule_name(check->rule), check->element_type);
    if (!member->has_quantization && member->element_type != check->element_type)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "element_type", HRY_NO_OFFSET,
                        "member %" PRIu32 " of the %s has type 0x%02x, the head 0x%02x; unquantized members have the head's type",
                        check->seen, rule_name(check->rule), member->element_type, check->element_type);
    return HURRAY_OK;
}

static HurrayStatus test_overlay_role(const HryCompositeCheck *check, const HurrayDescriptor *member, HurrayError *error) {
    const uint64_t *shape = check->cover.head + check->rank;
    if (!member->has_composite_member)
        return fail_layout(error, "composite_member", check, "has no composite-member section",
                           "every overlay member states its role, so a composite head cannot be one");
    bool is_base = member->composite_member.role == HURRAY_ROLE_BASE;
    if (check->seen == 0 && !is_base)
        return fail_layout(error, "composite_member.role", check, "is a correction", "the first member must be the base");
    if (check->seen != 0 && is_base)
        return fail_layout(error, "composite_member.role", check, "is a base", "only the first member is the base, all others are corrections");
    HurrayStatus status = test_place_and_type(check, member, error);
    if (status != HURRAY_OK || !is_base) return status;
    for (uint32_t k = 0; k < check->rank; k++)
        if (member->shard.offset[k] != 0 || member->shape[k] != shape[k])
            return fail_layout(error, "shard.offset", check, "does not span the whole head",
                               "the base must lie at offset 0 and have the head's shape");
    return HURRAY_OK;
}

HurrayStatus hry_composite_check_test(HryCompositeCheck *check, const HurrayDescriptor *member, HurrayError *error) {
    if (check->tested) {
        check->tested = false;
        if (check->rule == HURRAY_RULE_PARTITION) hry_cover_drop(&check->cover);
    }
    if (check->seen == check->promised)
        return hry_fail(error, HURRAY_ERR_INVALID_LAYOUT, "layout.member_count", HRY_NO_OFFSET,
                        "the composite has all %" PRIu32 " members already; the count in its head is too small", check->promised);
    HurrayStatus status;
    if (check->rule == HURRAY_RULE_OVERLAY) {
        status = test_overlay_role(check, member, error);
        check->tested = status == HURRAY_OK;
        return status;
    }
    if (member->has_composite_member)
        return fail_layout(error, "composite_member", check, "has a composite-member section", "only members of an overlay may");
    if (check->rule == HURRAY_RULE_GROUP) {
        check->tested = true;
        return HURRAY_OK;
    }
    status = test_place_and_type(check, member, error);
    if (status != HURRAY_OK) return status;
    if (!hry_cover_reserve(&check->cover))
        return hry_fail_memory(error, "the boxes of a partition", ((uint64_t)check->seen + 1) * 2 * check->rank * sizeof(uint64_t));
    hry_cover_add(&check->cover, member->shard.offset, member->shape);
    if (hry_composite_check_missing(check) == 1) status = test_cover(check, error);
    if (status != HURRAY_OK) hry_cover_drop(&check->cover);
    check->tested = status == HURRAY_OK;
    return status;
}

void hry_composite_check_commit(HryCompositeCheck *check) {
    check->tested = false;
    check->seen++;
}

HurrayStatus hry_composite_check_end(const HryCompositeCheck *check, HurrayError *error) {
    if (check->seen == check->promised) return HURRAY_OK;
    return hry_fail_torn(error, check->seen, check->promised);
}

void hry_composite_check_clear(HryCompositeCheck *check) {
    hry_cover_clear(&check->cover);
    memset(check, 0, sizeof *check);
}
