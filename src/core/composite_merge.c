#include "core/composite_merge.h"

#include <inttypes.h>
#include <string.h>

#include "base/endian.h"
#include "format/codes.h"
#include "format/sparse.h"

#define CHUNK 1024u       /* elements at a time; a multiple of every packing group */
#define DIRECT_RUN 256u   /* elements side by side from which on the dense view may write straight into the whole */

/* A member being read as codes of the head's type. */
typedef struct Source {
    HryDense dense;
    HryForm form;  /* the head's */
    bool converts; /* float32 comes out of the dense view and is not the head's type */
} Source;

static HurrayStatus open_source(Source *source, const HryForm *form, const HurrayDescriptor *member, const HryBytes *buffers,
                                HurrayError *error) {
    source->form = *form;
    HurrayStatus status =
        hry_dense_open(&source->dense, member, buffers, member->has_quantization ? HURRAY_TYPE_FLOAT32 : HRY_DENSE_OWN, error);
    if (status != HURRAY_OK) return status;
    source->converts = member->has_quantization && !(form->kind == HRY_FORM_FLOAT && form->bits == 32);
    if (!source->converts && source->dense.bits != form->bits)
        return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "extension_type", HRY_NO_OFFSET,
                        "a member's elements have %" PRIu32 " bits, those of the head %" PRIu32 "; such a composite has no dense view",
                        source->dense.bits, form->bits);
    return HURRAY_OK;
}

/* Nothing can be added in, or converted to, a type without known values; and only those may be wider than HRY_MAX_CODE. */
static HurrayStatus check_values(const Source *source, HryMergeHow how, HurrayError *error) {
    HryFormKind kind = source->form.kind;
    if (how == HRY_MERGE_ADD ? kind != HRY_FORM_NONE : !source->converts || kind == HRY_FORM_FLOAT || kind == HRY_FORM_SCALE) return HURRAY_OK;
    return hry_fail(error, HURRAY_ERR_UNSUPPORTED, "element_type", HRY_NO_OFFSET,
                    "the head has a type in which nothing can be added or converted; read the members one by one");
}

static HurrayStatus fail_code(HurrayError *error, bool adds) {
    return hry_fail(error, HURRAY_ERR_INVALID_DATA, "element_type", HRY_NO_OFFSET,
                    "%s is no value of the head's type (a NaN, or for float8_e8m0 zero, a negative or too great a number)",
                    adds ? "a sum of elements" : "a dequantized element");
}

static HurrayStatus convert(const Source *source, const uint8_t *floats, size_t count, uint8_t *codes, HurrayError *error) {
    float values[CHUNK];
    size_t bad;
    for (size_t i = 0; i < count; i++) values[i] = hry_load_f32(floats + 4 * i);
    return hry_values_from_f32(&source->form, values, count, codes, &bad) ? HURRAY_OK : fail_code(error, false);
}

/* Elements first .. first + count - 1 (at most CHUNK) of the member. */
static HurrayStatus get_codes(const Source *source, uint64_t first, size_t count, uint8_t *codes, HurrayError *error) {
    uint8_t room[CHUNK * sizeof(float)];
    bool packed = !source->converts && source->form.bits < 8;
    HurrayStatus status = hry_dense_stretch(&source->dense, first, count, source->converts || packed ? room : codes, error);
    if (status != HURRAY_OK) return status;
    if (source->converts) return convert(source, room, count, codes, error);
    if (packed) hry_codes_get(room, source->form.bits, 0, 1, count, codes);
    return HURRAY_OK;
}

/* codes over or onto elements at, at + 1, ... of the whole. */
static HurrayStatus apply(const HryMergeInto *into, uint64_t at, size_t count, const uint8_t *codes, HryMergeHow how, HurrayError *error) {
    const HryForm *form = &into->form;
    size_t bad;
    if (how != HRY_MERGE_ADD) {
        hry_codes_put(into->dst, form->bits, at, count, codes);
        return HURRAY_OK;
    }
    if (form->bits >= 8)
        return hry_values_add(form, into->dst + at * (form->bits / 8), codes, count, &bad) ? HURRAY_OK : fail_code(error, true);
    uint8_t sums[CHUNK];
    hry_codes_get(into->dst, form->bits, (int64_t)at, 1, count, sums);
    if (!hry_values_add(form, sums, codes, count, &bad)) return fail_code(error, true);
    hry_codes_put(into->dst, form->bits, at, count, sums);
    return HURRAY_OK;
}

/* The member's box in the whole as runs of elements that lie side by side in both. */
typedef struct Runs {
    const HurrayDescriptor *member;
    uint64_t strides[HURRAY_MAX_RANK]; /* of the whole, in elements */
    uint64_t origin, length;
    uint32_t outer; /* dimensions before those that a run spans */
} Runs;

static void find_runs(Runs *runs, const HurrayDescriptor *head, const HurrayDescriptor *member, const uint64_t *origin) {
    uint64_t stride = 1;
    runs->member = member;
    runs->origin = 0;
    runs->length = 1;
    runs->outer = head->rank;
    bool spans = true;
    for (uint32_t k = head->rank; k-- > 0;) {
        runs->strides[k] = stride;
        runs->origin += origin[k] * stride;
        stride *= head->shape[k];
        if (!spans) continue;
        runs->length *= member->shape[k];
        runs->outer = k;
        spans = member->shape[k] == head->shape[k];
    }
}

static uint64_t run_at(const Runs *runs, uint64_t run) {
    uint64_t at = runs->origin;
    for (uint32_t k = runs->outer; k-- > 0;) {
        at += run % runs->member->shape[k] * runs->strides[k];
        run /= runs->member->shape[k];
    }
    return at;
}

/* May each run be written where it belongs by the dense view itself? */
static bool is_direct(const HryMergeInto *into, const Source *source, const Runs *runs, HryMergeHow how) {
    if (how == HRY_MERGE_ADD || source->converts) return false;
    if (hry_code_bytes(into->form.bits) > HRY_MAX_CODE) return true;
    if (runs->length < DIRECT_RUN) return false;
    if (into->form.bits >= 8) return true;
    if (runs->length % 8 != 0 || runs->origin % 8 != 0) return false;
    for (uint32_t k = 0; k < runs->outer; k++)
        if (runs->strides[k] % 8 != 0) return false;
    return true;
}

static HurrayStatus merge_direct(const HryMergeInto *into, const Source *source, const Runs *runs, HurrayError *error) {
    HurrayStatus status = HURRAY_OK;
    uint64_t unit = into->form.bits < 8 ? 8 : 1, unit_bytes = into->form.bits < 8 ? into->form.bits : into->form.bits / 8;
    for (uint64_t run = 0, first = 0; first < source->dense.elements && status == HURRAY_OK; run++, first += runs->length)
        status = hry_dense_stretch(&source->dense, first, runs->length, into->dst + run_at(runs, run) / unit * unit_bytes, error);
    return status;
}

static HurrayStatus merge_chunks(const HryMergeInto *into, const Source *source, const Runs *runs, HryMergeHow how, HurrayError *error) {
    uint8_t codes[CHUNK * HRY_MAX_CODE];
    uint32_t width = hry_code_bytes(into->form.bits);
    uint64_t elements = source->dense.elements, run = 0, inside = 0, at = run_at(runs, 0);
    for (uint64_t first = 0; first < elements;) {
        size_t count = elements - first < CHUNK ? (size_t)(elements - first) : CHUNK;
        HurrayStatus status = get_codes(source, first, count, codes, error);
        for (size_t done = 0; done < count && status == HURRAY_OK;) {
            size_t side = runs->length - inside < count - done ? (size_t)(runs->length - inside) : count - done;
            status = apply(into, at + inside, side, codes + done * width, how, error);
            done += side;
            inside += side;
            if (inside < runs->length) continue;
            inside = 0;
            at = run_at(runs, ++run);
        }
        if (status != HURRAY_OK) return status;
        first += count;
    }
    return HURRAY_OK;
}

static void clear_box(const HryMergeInto *into, const Source *source, const Runs *runs) {
    static const uint8_t zeros[CHUNK];
    uint32_t bits = into->form.bits;
    for (uint64_t run = 0; run < source->dense.elements / runs->length; run++) {
        uint64_t at = run_at(runs, run), count;
        if (bits >= 8) memset(into->dst + at * (bits / 8), 0, runs->length * (bits / 8));
        for (uint64_t done = 0; bits < 8 && done < runs->length; done += count) {
            count = runs->length - done < CHUNK ? runs->length - done : CHUNK;
            hry_codes_put(into->dst, bits, at + done, count, zeros);
        }
    }
}

static HurrayStatus merge_stored_one(const HryMergeInto *into, const Source *source, const uint64_t *index, uint64_t position, uint64_t at,
                                     HryMergeHow how, HurrayError *error) {
    uint8_t value[HRY_MAX_CODE], code[HRY_MAX_CODE];
    if (how != HRY_MERGE_ADD && !source->converts && into->form.bits >= 8)
        return hry_dense_stored(&source->dense, index, position, into->dst + at * (into->form.bits / 8), error);
    HurrayStatus status = hry_dense_stored(&source->dense, index, position, source->converts ? value : code, error);
    if (status == HURRAY_OK && source->converts) status = convert(source, value, 1, code, error);
    return status == HURRAY_OK ? apply(into, at, 1, code, how, error) : status;
}

static HurrayStatus merge_stored(const HryMergeInto *into, const Source *source, const Runs *runs, HryMergeHow how, HurrayError *error) {
    const HurrayDescriptor *member = source->dense.descriptor;
    uint64_t index[HURRAY_MAX_RANK], position;
    HryStored stored;
    HurrayStatus status;
    if (how == HRY_MERGE_PLACE) clear_box(into, source, runs);
    hry_stored_open(&stored, member, source->dense.buffers);
    while ((status = hry_stored_next(&stored, index, &position, error)) == HURRAY_OK) {
        uint64_t at = runs->origin;
        for (uint32_t k = 0; k < member->rank; k++) at += index[k] * runs->strides[k];
        status = merge_stored_one(into, source, index, position, at, how, error);
        if (status != HURRAY_OK) return status;
    }
    return status == HURRAY_END_OF_STREAM ? HURRAY_OK : status;
}

HurrayStatus hry_merge_tensor(const HryMergeInto *into, const HurrayDescriptor *member, const HryBytes *buffers, const uint64_t *origin,
                              HryMergeHow how, HurrayError *error) {
    Source source;
    Runs runs;
    HurrayStatus status = open_source(&source, &into->form, member, buffers, error);
    if (status == HURRAY_OK) status = check_values(&source, how, error);
    if (status != HURRAY_OK || source.dense.elements == 0) return status;
    find_runs(&runs, into->head, member, origin);
    if (hry_sparse_is(member)) return merge_stored(into, &source, &runs, how, error);
    if (is_direct(into, &source, &runs, how)) return merge_direct(into, &source, &runs, error);
    return merge_chunks(into, &source, &runs, how, error);
}

HurrayStatus hry_merge_element(const HryForm *form, const HurrayDescriptor *member, const HryBytes *buffers, const uint64_t *index,
                               HryMergeHow how, uint8_t *code, HurrayError *error) {
    Source source;
    uint8_t value[HRY_MAX_CODE], own[HRY_MAX_CODE];
    size_t bad;
    HurrayStatus status = open_source(&source, form, member, buffers, error);
    if (status == HURRAY_OK) status = check_values(&source, how, error);
    if (status != HURRAY_OK) return status;
    if (how != HRY_MERGE_PLACE && hry_sparse_is(member)) {
        bool found = false;
        uint64_t position;
        status = hry_sparse_find(member, buffers, index, &found, &position, error);
        if (status != HURRAY_OK || !found) return status;
    }
    if (how != HRY_MERGE_ADD && !source.converts) return hry_dense_element(&source.dense, index, code, error);
    status = hry_dense_element(&source.dense, index, source.converts ? value : own, error);
    if (status == HURRAY_OK && source.converts) status = convert(&source, value, 1, own, error);
    if (status != HURRAY_OK) return status;
    if (how == HRY_MERGE_ADD && !hry_values_add(form, code, own, 1, &bad)) return fail_code(error, true);
    if (how != HRY_MERGE_ADD) memcpy(code, own, hry_code_bytes(form->bits));
    return HURRAY_OK;
}
