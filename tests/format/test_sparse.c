#include "format/sparse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/address.h"
#include "format/codes.h"
#include "format/dense.h"
#include "support/contents.h"

#define MOST 64 /* elements of the tensors here */

/* A set of stored elements, by row-major number, in each layout. */
typedef struct Stored {
    uint32_t rank;
    uint64_t shape[4], count;
    uint64_t linear[MOST]; /* rising */
} Stored;

static uint64_t elements_of(const Stored *s) {
    uint64_t all = 1;
    for (uint32_t k = 0; k < s->rank; k++) all *= s->shape[k];
    return all;
}

static void index_of(const Stored *s, uint64_t linear, uint64_t *index) { hry_index_of_linear(linear, s->shape, s->rank, index); }

static int compare_order(const Stored *s, const uint32_t *order, uint64_t a, uint64_t b) {
    uint64_t x[4], y[4];
    index_of(s, a, x);
    index_of(s, b, y);
    for (uint32_t k = 0; k < s->rank; k++)
        if (x[order[k]] != y[order[k]]) return x[order[k]] < y[order[k]] ? -1 : 1;
    return 0;
}

static void sort_by(const Stored *s, const uint32_t *order, uint64_t *linear) {
    memcpy(linear, s->linear, s->count * sizeof *linear);
    for (uint64_t i = 1; i < s->count; i++)
        for (uint64_t j = i; j > 0 && compare_order(s, order, linear[j - 1], linear[j]) > 0; j--) {
            uint64_t t = linear[j];
            linear[j] = linear[j - 1];
            linear[j - 1] = t;
        }
}

static void make_coo(Contents *contents, const Stored *s, uint8_t type, const HurrayQuantization *q, uint64_t parameters, bool sorted) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    uint32_t bits = hry_form_of_type(type).bits;
    layout.tag = HURRAY_LAYOUT_COO;
    layout.nnz = s->count;
    layout.is_sorted = sorted;
    contents_make(contents, &(ContentsSpec){.type = type,
                                            .rank = s->rank,
                                            .shape = s->shape,
                                            .layout = &layout,
                                            .quantization = q,
                                            .buffer_count = q && parameters ? 3 : 2,
                                            .sizes = {(s->count * bits + 7) / 8, 8 * s->count * s->rank, parameters}});
    for (uint64_t i = 0; i < s->count; i++) {
        uint64_t index[4];
        index_of(s, s->linear[sorted ? i : s->count - 1 - i], index);
        for (uint32_t k = 0; k < s->rank; k++) contents_put_u64(contents, 1, i * s->rank + k, index[k]);
    }
}

static void make_compressed(Contents *contents, const Stored *s, uint8_t type, uint8_t tag) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    uint32_t outer = tag == HURRAY_LAYOUT_CSR ? 0 : 1, bits = hry_form_of_type(type).bits;
    uint32_t order[] = {outer, 1 - outer};
    uint64_t linear[MOST], index[4], at = 0;
    layout.tag = tag;
    layout.nnz = s->count;
    contents_make(contents, &(ContentsSpec){.type = type,
                                            .rank = 2,
                                            .shape = s->shape,
                                            .layout = &layout,
                                            .buffer_count = 3,
                                            .sizes = {(s->count * bits + 7) / 8, 8 * s->count, 8 * (s->shape[outer] + 1)}});
    sort_by(s, order, linear);
    for (uint64_t row = 0; row < s->shape[outer]; row++) {
        contents_put_u64(contents, 2, row, at);
        for (; at < s->count; at++) {
            index_of(s, linear[at], index);
            if (index[outer] != row) break;
            contents_put_u64(contents, 1, at, index[1 - outer]);
        }
    }
    contents_put_u64(contents, 2, s->shape[outer], at);
}

static void make_csf(Contents *contents, const Stored *s, uint8_t type, const uint32_t *order) {
    HurrayLayout layout = HURRAY_LAYOUT_INIT;
    uint64_t linear[MOST], pos[4][MOST + 2] = {{0}}, crd[4][MOST], counts[4] = {0}, index[4], before[4] = {0};
    uint32_t bits = hry_form_of_type(type).bits, rank = s->rank;
    ContentsSpec spec = {.type = type, .rank = rank, .shape = s->shape, .layout = &layout, .buffer_count = 2 * rank + 1};
    sort_by(s, order, linear);
    for (uint64_t i = 0; i < s->count; i++) {
        bool fresh = i == 0;
        index_of(s, linear[i], index);
        for (uint32_t k = 0; k < rank; k++) {
            uint64_t coordinate = index[order[k]];
            if (!fresh && coordinate == before[k]) continue;
            fresh = true; /* everything below a new node is new */
            if (k + 1 < rank) pos[k + 1][counts[k]] = counts[k + 1];
            crd[k][counts[k]++] = before[k] = coordinate;
        }
    }
    pos[0][1] = counts[0];
    for (uint32_t k = 1; k < rank; k++) pos[k][counts[k - 1]] = counts[k];
    layout.tag = HURRAY_LAYOUT_CSF;
    layout.nnz = s->count;
    layout.mode_order = order;
    spec.sizes[0] = (s->count * bits + 7) / 8;
    for (uint32_t k = 0; k < rank; k++) {
        spec.sizes[1 + 2 * k] = 8 * ((k ? counts[k - 1] : 1) + 1);
        spec.data[1 + 2 * k] = pos[k];
        spec.sizes[2 + 2 * k] = 8 * counts[k];
        spec.data[2 + 2 * k] = crd[k];
    }
    contents_make(contents, &spec);
}

/* Values are 1, 2, ... in their own order (mod the type). Walk, dense view whole and in pieces, and every element must agree. */
static void compare_views(const Contents *contents, const Stored *s) {
    const HurrayDescriptor *d = contents->descriptor;
    uint64_t all = elements_of(s), index[HURRAY_MAX_RANK], position, walked = 0, bytes;
    uint32_t bits = hry_form_of_type(d->element_type).bits;
    uint8_t codes[8], want[MOST] = {0};
    HurrayError error;
    HurrayStatus status;
    HryStored stored;
    for (uint64_t i = 0; i < s->count; i++) {
        hry_store_u64(codes, i % 15 + 1);
        hry_codes_put(contents_buffer(contents, 0), bits, i, 1, codes);
    }
    hry_stored_open(&stored, d, contents->bytes);
    while ((status = hry_stored_next(&stored, index, &position, &error)) == HURRAY_OK) {
        uint64_t linear = hry_index_linear(index, s->shape, s->rank);
        assert_int_equal(position, walked);
        assert_true(linear < all);
        assert_int_equal(want[linear], 0);
        want[linear] = (uint8_t)(position % 15 + 1);
        walked++;
    }
    assert_int_equal(status, HURRAY_END_OF_STREAM);
    assert_int_equal(hry_stored_next(&stored, index, &position, &error), HURRAY_END_OF_STREAM);
    assert_int_equal(walked, s->count);
    for (uint64_t i = 0; i < s->count; i++) assert_int_not_equal(want[s->linear[i]], 0);
    HryDense own, values;
    assert_int_equal(hry_dense_open(&own, d, contents->bytes, HRY_DENSE_OWN, &error), HURRAY_OK);
    assert_int_equal(hry_dense_open(&values, d, contents->bytes, HURRAY_TYPE_FLOAT32, &error), HURRAY_OK);
    assert_true(hry_dense_bytes(&own, all, &bytes));
    uint8_t *packed = malloc(bytes ? bytes : 1), *floats = malloc(4 * all + 4), *pieces = malloc(4 * all + 4);
    assert_non_null(packed);
    assert_non_null(floats);
    assert_non_null(pieces);
    assert_int_equal(hry_dense_stretch(&own, 0, all, packed, &error), HURRAY_OK);
    assert_int_equal(hry_dense_stretch(&values, 0, all, floats, &error), HURRAY_OK);
    for (uint64_t at = 0, n; at < all; at += n) {
        n = at % 5 + 1 < all - at ? at % 5 + 1 : all - at;
        assert_int_equal(hry_dense_stretch(&values, at, n, pieces + 4 * at, &error), HURRAY_OK);
    }
    assert_memory_equal(floats, pieces, 4 * all);
    for (uint64_t k = 0; k < all; k++) {
        hry_codes_get(packed, bits, (int64_t)k, 1, 1, codes);
        assert_int_equal(codes[0], want[k]);
        assert_true(hry_load_f32(floats + 4 * k) == (float)want[k]);
        hry_index_of_linear(k, s->shape, s->rank, index);
        assert_int_equal(hry_dense_element(&own, index, codes, &error), HURRAY_OK);
        assert_int_equal(codes[0], want[k]);
        assert_int_equal(hry_dense_element(&values, index, codes, &error), HURRAY_OK);
        assert_true(hry_load_f32(codes) == (float)want[k]);
    }
    free(packed);
    free(floats);
    free(pieces);
}

static Stored random_set(uint32_t rank, const uint64_t *shape, uint64_t per_mille, uint64_t *seed) {
    Stored s = {.rank = rank};
    memcpy(s.shape, shape, rank * sizeof *shape);
    for (uint64_t k = 0; k < elements_of(&s); k++)
        if (contents_random(seed) % 1000 < per_mille) s.linear[s.count++] = k;
    return s;
}

static void every_sparse_layout_gives_the_elements_it_stores_and_zeros(void **state) {
    (void)state;
    static const uint64_t flat[] = {7, 9}, deep[] = {3, 4, 5};
    static const uint32_t orders[][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}};
    static const uint8_t types[] = {HURRAY_TYPE_UINT16, HURRAY_TYPE_UINT4};
    static const uint64_t densities[] = {0, 150, 500, 1000};
    uint64_t seed = 41;
    for (size_t t = 0; t < 2; t++)
        for (size_t density = 0; density < 4; density++)
            for (int round = 0; round < 4; round++) {
                Contents contents;
                Stored s = random_set(2, flat, densities[density], &seed), c = random_set(3, deep, densities[density], &seed);
                for (int sorted = 0; sorted < 2; sorted++) {
                    make_coo(&contents, sorted ? &s : &c, types[t], NULL, 0, sorted);
                    compare_views(&contents, sorted ? &s : &c);
                    contents_free(&contents);
                }
                for (uint8_t tag = HURRAY_LAYOUT_CSR; tag <= HURRAY_LAYOUT_CSC; tag++) {
                    make_compressed(&contents, &s, types[t], tag);
                    compare_views(&contents, &s);
                    contents_free(&contents);
                }
                for (size_t o = 0; o < 3; o++) {
                    make_csf(&contents, &c, types[t], orders[o]);
                    compare_views(&contents, &c);
                    contents_free(&contents);
                }
            }
}

static void sparse_values_dequantize_by_their_coordinates(void **state) {
    (void)state;
    Stored s = {.rank = 2, .shape = {4, 3}, .count = 2, .linear = {1, 11}};
    HurrayQuantization q = HURRAY_QUANTIZATION_INIT;
    q.scheme = HURRAY_QUANT_PER_CHANNEL_AFFINE;
    q.axis = 1;
    q.scale_type = HURRAY_TYPE_FLOAT32;
    q.scale_buffer = 2;
    q.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    q.flags = HURRAY_QUANT_SYMMETRIC;
    Contents contents;
    HryDense dense;
    HurrayError error;
    uint8_t out[48];
    make_coo(&contents, &s, HURRAY_TYPE_INT8, &q, 12, true);
    contents_buffer(&contents, 0)[0] = 5;
    contents_buffer(&contents, 0)[1] = 0xFF;
    for (int k = 0; k < 3; k++) hry_store_f32(contents_buffer(&contents, 2) + 4 * k, (float)(10 * (k + 1)));
    assert_int_equal(hry_dense_open(&dense, contents.descriptor, contents.bytes, HURRAY_TYPE_FLOAT32, &error), HURRAY_OK);
    assert_int_equal(hry_dense_stretch(&dense, 0, 12, out, &error), HURRAY_OK);
    for (int k = 0; k < 12; k++) assert_true(hry_load_f32(out + 4 * k) == (k == 1 ? 100 : k == 11 ? -30 : 0));
    const uint64_t index[] = {3, 2};
    assert_int_equal(hry_dense_stored(&dense, index, 1, out, &error), HURRAY_OK);
    assert_true(hry_load_f32(out) == -30);
    contents_free(&contents);
}

/* ---- damage ---- */

static HurrayStatus walk(const Contents *contents, HurrayError *error) {
    HryStored stored;
    uint64_t index[HURRAY_MAX_RANK], position;
    HurrayStatus status;
    hry_error_clear(error);
    hry_stored_open(&stored, contents->descriptor, contents->bytes);
    do status = hry_stored_next(&stored, index, &position, error);
    while (status == HURRAY_OK);
    return status;
}

static void coordinates_outside_their_dimension_are_found_when_used(void **state) {
    (void)state;
    Stored s = {.rank = 2, .shape = {7, 9}, .count = 3, .linear = {3, 20, 60}},
           c = {.rank = 3, .shape = {3, 4, 5}, .count = 3, .linear = {3, 20, 50}};
    static const uint32_t order[] = {0, 1, 2};
    HurrayError error;
    Contents contents;
    make_coo(&contents, &s, HURRAY_TYPE_INT8, NULL, 0, true);
    contents_put_u64(&contents, 1, 3, 9);
    assert_int_equal(walk(&contents, &error), HURRAY_ERR_INVALID_DATA);
    assert_string_equal(error.field, "indices");
    assert_int_equal(error.buffer_index, 1);
    contents_free(&contents);
    make_compressed(&contents, &s, HURRAY_TYPE_INT8, HURRAY_LAYOUT_CSR);
    contents_put_u64(&contents, 1, 1, UINT64_MAX);
    assert_int_equal(walk(&contents, &error), HURRAY_ERR_INVALID_DATA);
    assert_string_equal(error.field, "col_indices");
    contents_free(&contents);
    make_compressed(&contents, &s, HURRAY_TYPE_INT8, HURRAY_LAYOUT_CSC);
    contents_put_u64(&contents, 1, 1, 7);
    assert_int_equal(walk(&contents, &error), HURRAY_ERR_INVALID_DATA);
    assert_string_equal(error.field, "row_indices");
    contents_free(&contents);
    make_csf(&contents, &c, HURRAY_TYPE_INT8, order);
    contents_put_u64(&contents, 4, 1, 4);
    assert_int_equal(walk(&contents, &error), HURRAY_ERR_INVALID_DATA);
    assert_string_equal(error.field, "crd");
    assert_int_equal(error.buffer_index, 4);
    contents_free(&contents);
}

static void pointers_that_fall_or_lead_outside_are_found_when_used(void **state) {
    (void)state;
    Stored s = {.rank = 2, .shape = {7, 9}, .count = 3, .linear = {3, 20, 60}},
           c = {.rank = 3, .shape = {3, 4, 5}, .count = 3, .linear = {3, 20, 50}};
    static const uint32_t order[] = {0, 1, 2};
    static const uint64_t bad[] = {4, UINT64_MAX};
    HurrayError error;
    Contents contents;
    bool found;
    uint64_t position;
    for (size_t b = 0; b < 2; b++)
        for (uint8_t tag = HURRAY_LAYOUT_CSR; tag <= HURRAY_LAYOUT_CSC; tag++) {
            const uint64_t index[] = {0, 0};
            make_compressed(&contents, &s, HURRAY_TYPE_INT8, tag);
            contents_put_u64(&contents, 2, 1, bad[b]);
            assert_int_equal(walk(&contents, &error), HURRAY_ERR_INVALID_DATA);
            assert_string_equal(error.field, tag == HURRAY_LAYOUT_CSR ? "row_ptr" : "col_ptr");
            assert_int_equal(hry_sparse_find(contents.descriptor, contents.bytes, index, &found, &position, &error),
                             HURRAY_ERR_INVALID_DATA);
            contents_free(&contents);
        }
    for (uint32_t buffer = 1; buffer <= 5; buffer += 2)
        for (size_t b = 0; b < 2; b++) {
            const uint64_t index[] = {0, 0, 3};
            make_csf(&contents, &c, HURRAY_TYPE_INT8, order);
            contents_put_u64(&contents, buffer, 1, bad[b]);
            assert_int_equal(walk(&contents, &error), HURRAY_ERR_INVALID_DATA);
            assert_string_equal(error.field, "pos");
            assert_int_equal(error.buffer_index, buffer);
            assert_int_equal(hry_sparse_find(contents.descriptor, contents.bytes, index, &found, &position, &error),
                             HURRAY_ERR_INVALID_DATA);
            contents_free(&contents);
        }
}

static void csf_buffers_too_short_for_their_nodes_are_found(void **state) {
    (void)state;
    Stored c = {.rank = 3, .shape = {3, 4, 5}, .count = 3, .linear = {3, 20, 50}};
    static const uint32_t order[] = {0, 1, 2};
    HurrayError error;
    Contents contents;
    make_csf(&contents, &c, HURRAY_TYPE_INT8, order);
    contents.bytes[3].size = 16; /* pos of level 1, for two nodes more */
    assert_int_equal(walk(&contents, &error), HURRAY_ERR_INVALID_DATA);
    assert_int_equal(error.buffer_index, 3);
    contents.bytes[3].size = 32;
    contents.bytes[4].size = 8;
    assert_int_equal(walk(&contents, &error), HURRAY_ERR_INVALID_DATA);
    contents_free(&contents);
}

/* Anything at all in buffers of the declared size: an answer, and never a byte outside. */
static void random_contents_never_lead_outside(void **state) {
    (void)state;
    static const uint64_t flat[] = {7, 9}, deep[] = {3, 4, 5};
    static const uint32_t order[] = {1, 0, 2};
    uint64_t seed = 43;
    unsigned failed = 0, worked = 0;
    for (int round = 0; round < 4000; round++) {
        Stored s = random_set(2, flat, 300, &seed), c = random_set(3, deep, 300, &seed);
        Contents contents;
        HurrayError error;
        HryDense dense;
        switch (round % 5) {
        case 0: make_coo(&contents, &s, HURRAY_TYPE_INT8, NULL, 0, true); break;
        case 1: make_coo(&contents, &c, HURRAY_TYPE_INT4, NULL, 0, false); break;
        case 2: make_compressed(&contents, &s, HURRAY_TYPE_INT8, HURRAY_LAYOUT_CSR); break;
        case 3: make_compressed(&contents, &s, HURRAY_TYPE_INT8, HURRAY_LAYOUT_CSC); break;
        default: make_csf(&contents, &c, HURRAY_TYPE_INT8, order); break;
        }
        for (int change = 0; change < 1 + round % 3; change++) { /* small numbers go further before they are noticed */
            uint32_t buffer = (uint32_t)(1 + contents_random(&seed) % (contents.descriptor->buffer_count - 1));
            uint64_t entries = contents.bytes[buffer].size / 8, value = contents_random(&seed);
            if (entries) contents_put_u64(&contents, buffer, contents_random(&seed) % entries, round % 7 ? value % 24 : value);
        }
        uint8_t *out = malloc(4 * 63);
        assert_non_null(out);
        assert_int_equal(hry_dense_open(&dense, contents.descriptor, contents.bytes, HURRAY_TYPE_FLOAT32, &error), HURRAY_OK);
        HurrayStatus status = hry_dense_stretch(&dense, 0, dense.elements, out, &error);
        assert_true(status == HURRAY_OK || status == HURRAY_ERR_INVALID_DATA);
        failed += status != HURRAY_OK;
        worked += status == HURRAY_OK;
        for (uint64_t k = 0; k < dense.elements; k++) {
            uint64_t index[3];
            hry_index_of_linear(k, contents.descriptor->shape, contents.descriptor->rank, index);
            status = hry_dense_element(&dense, index, out, &error);
            assert_true(status == HURRAY_OK || status == HURRAY_ERR_INVALID_DATA);
        }
        free(out);
        contents_free(&contents);
    }
    assert_true(failed > 100 && worked > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sparse_layout_gives_the_elements_it_stores_and_zeros),
        cmocka_unit_test(sparse_values_dequantize_by_their_coordinates),
        cmocka_unit_test(coordinates_outside_their_dimension_are_found_when_used),
        cmocka_unit_test(pointers_that_fall_or_lead_outside_are_found_when_used),
        cmocka_unit_test(csf_buffers_too_short_for_their_nodes_are_found),
        cmocka_unit_test(random_contents_never_lead_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
