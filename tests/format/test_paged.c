#include "format/paged.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/dense.h"
#include "support/contents.h"

typedef struct Paged {
    uint64_t shape[3], pages;
    uint32_t page_size, sequences;
    uint8_t index_type;
    uint64_t table_entries;
} Paged;

static void make_paged(Contents *contents, const Paged *p, uint8_t type, const HurrayQuantization *q, uint64_t parameters) {
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_BLOCK_PAGED);
    uint64_t width = p->index_type ? 8 : 4, bits = hry_form_of_type(type).bits;
    layout.page_size = p->page_size;
    layout.num_pages = p->pages;
    layout.num_seqs = p->sequences;
    layout.index_type = p->index_type;
    layout.layer_index = HURRAY_NO_LAYER;
    contents_make(contents, &(ContentsSpec){.type = type,
                                            .rank = 3,
                                            .shape = p->shape,
                                            .layout = &layout,
                                            .quantization = q,
                                            .buffer_count = q ? 4 : 3,
                                            .sizes = {(p->pages * p->page_size * p->shape[1] * p->shape[2] * bits + 7) / 8,
                                                      p->table_entries * width, (p->sequences + 1) * width, parameters}});
}

static void put_entry(const Contents *contents, uint32_t buffer, uint64_t i, uint64_t value) {
    if (contents->descriptor->layout.index_type)
        hry_store_u64(contents_buffer(contents, buffer) + 8 * i, value);
    else
        hry_store_u32(contents_buffer(contents, buffer) + 4 * i, (uint32_t)value);
}

static void paged_tokens_are_found_through_the_block_table(void **state) {
    (void)state;
    for (uint8_t index_type = 0; index_type < 2; index_type++)
        for (int one_sequence = 0; one_sequence < 2; one_sequence++) {
            Paged p = {{one_sequence ? 5 : 6, 2, 3}, 5, 2, one_sequence ? 1 : 2, index_type, 4};
            static const uint64_t table[] = {4, 1, 4};
            Contents contents;
            make_paged(&contents, &p, HURRAY_TYPE_UINT16, NULL, 0);
            for (uint64_t k = 0; k < 3; k++) put_entry(&contents, 1, k, table[k]);
            put_entry(&contents, 1, 3, 99); /* slack of the table */
            put_entry(&contents, 2, 1, one_sequence ? 3 : 1);
            if (!one_sequence) put_entry(&contents, 2, 2, 3);
            for (uint64_t k = 0; k < contents.bytes[0].size / 2; k++) hry_store_u16(contents_buffer(&contents, 0) + 2 * k, (uint16_t)k);
            uint8_t *own = contents_dense(&contents, HRY_DENSE_OWN), *values = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
            for (uint64_t k = 0; k < p.shape[0] * 6; k++) {
                uint64_t token = k / 6, want = (table[token / 2] * 2 + token % 2) * 6 + k % 6;
                assert_int_equal(hry_load_u16(own + 2 * k), want);
                assert_true(hry_load_f32(values + 4 * k) == (float)want);
            }
            free(own);
            free(values);
            contents_free(&contents);
        }
}

static void paged_scales_belong_to_page_slots(void **state) {
    (void)state;
    Paged p = {{4, 1, 2}, 3, 2, 1, 0, 2};
    HurrayQuantization q = contents_scheme(HURRAY_QUANT_PER_BLOCK_AFFINE);
    q.block_size = 2;
    q.scale_buffer = 3;
    q.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
    q.flags = HURRAY_QUANT_SYMMETRIC;
    q.scale_type = HURRAY_TYPE_FLOAT32;
    Contents contents;
    make_paged(&contents, &p, HURRAY_TYPE_INT8, &q, 4 * 6);
    put_entry(&contents, 1, 0, 2);
    put_entry(&contents, 1, 1, 0);
    put_entry(&contents, 2, 1, 2);
    for (int k = 0; k < 12; k++) contents_buffer(&contents, 0)[k] = 1;
    for (int k = 0; k < 6; k++) hry_store_f32(contents_buffer(&contents, 3) + 4 * k, (float)(k + 1));
    uint8_t *values = contents_dense(&contents, HURRAY_TYPE_FLOAT32);
    static const float want[] = {5, 5, 6, 6, 1, 1, 2, 2};
    for (int k = 0; k < 8; k++) assert_true(hry_load_f32(values + 4 * k) == want[k]);
    free(values);
    contents_free(&contents);
}

static void paged_tensors_without_known_sequence_lengths_are_refused(void **state) {
    (void)state;
    Paged p = {{5, 1, 1}, 4, 2, 2, 0, 3};
    Contents contents;
    HurrayError error;
    make_paged(&contents, &p, HURRAY_TYPE_INT8, NULL, 0);
    put_entry(&contents, 2, 2, 3);
    assert_int_equal(contents_open_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "5 tokens in 2 sequences"));
    contents_free(&contents);
    p.sequences = 1;
    p.shape[0] = 7;
    make_paged(&contents, &p, HURRAY_TYPE_INT8, NULL, 0);
    put_entry(&contents, 2, 1, 3);
    assert_int_equal(contents_open_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_UNSUPPORTED);
    contents_free(&contents);
}

static void paged_contents_that_lead_outside_are_found(void **state) {
    (void)state;
    Paged p = {{4, 1, 1}, 4, 2, 1, 1, 2};
    Contents contents;
    HurrayError error;
    make_paged(&contents, &p, HURRAY_TYPE_INT8, NULL, 0);
    put_entry(&contents, 2, 1, 3);
    assert_int_equal(contents_open_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_INVALID_DATA);
    assert_string_equal(error.field, "seq_ptr");
    put_entry(&contents, 2, 1, 2);
    put_entry(&contents, 2, 0, 1);
    assert_int_equal(contents_open_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_INVALID_DATA);
    put_entry(&contents, 2, 0, 0);
    put_entry(&contents, 1, 1, 4);
    assert_int_equal(contents_dense_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_INVALID_DATA);
    assert_string_equal(error.field, "block_table");
    assert_int_equal(contents_dense_status(&contents, HURRAY_TYPE_FLOAT32, &error), HURRAY_ERR_INVALID_DATA);
    put_entry(&contents, 1, 1, UINT64_MAX);
    assert_int_equal(contents_dense_status(&contents, HRY_DENSE_OWN, &error), HURRAY_ERR_INVALID_DATA);
    contents_free(&contents);
}

static void paged_schemes_without_meaning_have_codes_but_no_values(void **state) {
    (void)state;
    Paged p = {{4, 1, 16}, 4, 2, 1, 0, 2};
    HurrayQuantization q = contents_scheme(HURRAY_QUANT_NF4);
    q.axis = 2;
    q.block_size = 8;
    q.scale_buffer = 3;
    Contents contents;
    HurrayError error;
    make_paged(&contents, &p, HURRAY_TYPE_UINT4, &q, 4);
    put_entry(&contents, 2, 1, 2);
    assert_int_equal(contents_open_status(&contents, HURRAY_TYPE_FLOAT32, &error), HURRAY_ERR_UNSUPPORTED);
    assert_string_equal(error.field, "quantization");
    free(contents_dense(&contents, HRY_DENSE_OWN));
    contents_free(&contents);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paged_tokens_are_found_through_the_block_table),
        cmocka_unit_test(paged_scales_belong_to_page_slots),
        cmocka_unit_test(paged_tensors_without_known_sequence_lengths_are_refused),
        cmocka_unit_test(paged_contents_that_lead_outside_are_found),
        cmocka_unit_test(paged_schemes_without_meaning_have_codes_but_no_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
