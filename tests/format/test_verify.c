#include "format/verify.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "format/codes.h"
#include "format/value.h"
#include "support/contents.h"
#include "support/fail_alloc.h"

#define FINDINGS 8

typedef struct Found {
    unsigned count;
    HurrayError findings[FINDINGS];
    HurrayStatus answer;
} Found;

static HurrayStatus note(void *ctx, const HurrayError *finding) {
    Found *found = ctx;
    assert_true(found->count < FINDINGS);
    assert_int_equal(finding->code, HURRAY_ERR_INVALID_DATA);
    assert_true(finding->message[0] != 0);
    found->findings[found->count++] = *finding;
    return found->answer;
}

/* Only the ranges the rules ask for, each in a heap block of exactly its size. */
static HurrayStatus verify_with(const Contents *contents, Found *found, const HurrayAllocator *allocator, HurrayError *error) {
    HryBytes ranges[CONTENTS_MAX] = {{0}};
    const HurrayDescriptor *d = contents->descriptor;
    for (uint32_t i = 0; i < d->buffer_count; i++) {
        uint64_t offset, len;
        hry_verify_range(d, i, &offset, &len);
        assert_true(offset <= d->buffers[i].byte_size && len <= d->buffers[i].byte_size - offset);
        if (len == 0) continue;
        uint8_t *exact = malloc(len);
        assert_non_null(exact);
        memcpy(exact, contents->bytes[i].data + offset, len);
        ranges[i] = (HryBytes){exact, len};
    }
    hry_error_clear(error);
    HurrayStatus status = hry_verify_tensor(d, ranges, allocator, note, found, error);
    for (uint32_t i = 0; i < d->buffer_count; i++) free((void *)(uintptr_t)ranges[i].data);
    return status;
}

static Found verify(const Contents *contents) {
    FailAlloc alloc;
    Found found = {0};
    HurrayError error;
    fail_alloc_init(&alloc);
    assert_int_equal(verify_with(contents, &found, &alloc.allocator, &error), HURRAY_OK);
    fail_alloc_assert_empty(&alloc);
    return found;
}

static void assert_clean(const Contents *contents) {
    Found found = verify(contents);
    if (found.count) fail_msg("%s: %s", found.findings[0].field, found.findings[0].message);
}

static void assert_found(const Contents *contents, const char *field, uint32_t buffer, uint64_t offset, const char *says) {
    Found found = verify(contents);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.findings[0].field, field);
    assert_int_equal(found.findings[0].buffer_index, buffer);
    assert_int_equal(found.findings[0].offset, offset);
    if (!strstr(found.findings[0].message, says)) fail_msg("\"%s\" does not say \"%s\"", found.findings[0].message, says);
}

/* ---- elements ---- */

static void unused_bits_behind_the_last_element_are_zero(void **state) {
    (void)state;
    static const struct {
        uint8_t type;
        uint64_t count, size, at; /* the byte to spoil, counted from byte_offset */
        uint8_t good, bad;
    } cases[] = {{HURRAY_TYPE_BOOL, 13, 2, 1, 0x1F, 0x20},
                 {HURRAY_TYPE_INT2, 5, 2, 1, 3, 4},
                 {HURRAY_TYPE_UINT4, 3, 2, 1, 15, 16},
                 {HURRAY_TYPE_FLOAT6_E2M3, 5, 6, 3, 0x3F, 0x40},
                 {HURRAY_TYPE_FLOAT6_E2M3, 7, 6, 5, 0x03, 0x04}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (uint8_t tag = HURRAY_LAYOUT_ROW_MAJOR; tag <= HURRAY_LAYOUT_COLUMN_MAJOR; tag++) {
            const uint64_t shape[] = {cases[c].count, 1};
            HurrayLayout layout = contents_layout(tag);
            Contents contents;
            contents_make(
                &contents,
                &(ContentsSpec){
                    .type = cases[c].type, .rank = 2, .shape = shape, .layout = &layout, .byte_offset = 3, .sizes = {cases[c].size + 5}});
            uint8_t *base = contents_buffer(&contents, 0);
            memset(base, 0xFF, 3);
            memset(base + 3 + cases[c].size, 0xFF, 2); /* slack */
            base[3 + cases[c].at] = cases[c].good;
            assert_clean(&contents);
            base[3 + cases[c].at] = cases[c].bad;
            uint64_t group = cases[c].type == HURRAY_TYPE_FLOAT6_E2M3 ? 3 : 1;
            assert_found(&contents, "values", 0, 3 + cases[c].size - group, "unused bits");
            contents_free(&contents);
        }
}

static void whole_groups_and_whole_bytes_have_no_unused_bits(void **state) {
    (void)state;
    const uint64_t shape[] = {8};
    static const uint8_t types[] = {HURRAY_TYPE_BOOL, HURRAY_TYPE_INT2, HURRAY_TYPE_INT4, HURRAY_TYPE_FLOAT6_E3M2, HURRAY_TYPE_FLOAT32};
    for (size_t t = 0; t < sizeof types; t++) {
        uint64_t offset, len;
        Contents contents;
        contents_make(&contents, &(ContentsSpec){.type = types[t], .rank = 1, .shape = shape, .sizes = {64}});
        memset(contents_buffer(&contents, 0), 0xFF, 64);
        hry_verify_range(contents.descriptor, 0, &offset, &len);
        assert_int_equal(len, 0); /* nothing has to be read */
        assert_clean(&contents);
        contents_free(&contents);
    }
}

static void padding_of_tiles_curves_and_pools_is_checked_behind_their_storage(void **state) {
    (void)state;
    const uint64_t shape[] = {3, 3}, tile[] = {1, 5}, two[] = {2, 2}, paged[] = {3, 1, 1};
    HurrayTileLevel level = {.tile_shape = tile, .outer = 1, .inner = 1};
    const int64_t strides[] = {5, 1};
    Contents contents;
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_TILED);
    layout.tiles = &level;
    layout.tile_count = 1;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT4, .rank = 2, .shape = shape, .layout = &layout, .sizes = {8}});
    contents_buffer(&contents, 0)[7] = 0x0F; /* element 14, padding of the last tile: may be anything */
    assert_clean(&contents);
    contents_buffer(&contents, 0)[7] = 0x1F;
    assert_found(&contents, "values", 0, 7, "unused bits");
    contents_free(&contents);
    level.inner = 3;
    level.inner_strides = strides;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT4, .rank = 2, .shape = shape, .layout = &layout, .sizes = {8}});
    memset(contents_buffer(&contents, 0), 0xFF, 8);
    assert_clean(&contents); /* strides: no last element */
    contents_free(&contents);
    layout = contents_layout(HURRAY_LAYOUT_HILBERT);
    layout.order = 1;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_BOOL, .rank = 2, .shape = two, .layout = &layout, .sizes = {1}});
    contents_buffer(&contents, 0)[0] = 0x8F;
    assert_found(&contents, "values", 0, 0, "0x08");
    contents_free(&contents);
    layout = contents_layout(HURRAY_LAYOUT_BLOCK_PAGED);
    layout.page_size = 3;
    layout.num_pages = 1;
    layout.num_seqs = 1;
    layout.layer_index = HURRAY_NO_LAYER;
    contents_make(
        &contents,
        &(ContentsSpec){.type = HURRAY_TYPE_UINT4, .rank = 3, .shape = paged, .layout = &layout, .buffer_count = 3, .sizes = {2, 4, 8}});
    contents_buffer(&contents, 0)[1] = 0xF0;
    assert_found(&contents, "values", 0, 1, "unused bits");
    contents_free(&contents);
    layout = contents_layout(HURRAY_LAYOUT_STRIDED);
    layout.strides = strides;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT4, .rank = 2, .shape = shape, .layout = &layout, .sizes = {8}});
    memset(contents_buffer(&contents, 0), 0xFF, 8);
    assert_clean(&contents);
    contents_free(&contents);
}

static void e8m0_elements_are_checked_in_every_layout(void **state) {
    (void)state;
    const uint64_t shape[] = {90, 70};
    const int64_t strides[] = {100, 1};
    Contents contents;
    for (uint8_t tag = HURRAY_LAYOUT_ROW_MAJOR; tag <= HURRAY_LAYOUT_STRIDED; tag++) {
        HurrayLayout layout = contents_layout(tag);
        if (tag == HURRAY_LAYOUT_STRIDED) layout.strides = strides;
        contents_make(&contents,
                      &(ContentsSpec){.type = HURRAY_TYPE_FLOAT8_E8M0, .rank = 2, .shape = shape, .layout = &layout, .sizes = {9000}});
        memset(contents_buffer(&contents, 0), 127, 9000);
        contents_buffer(&contents, 0)[tag == HURRAY_LAYOUT_STRIDED ? 80 : 8999] = 0; /* no element lies there */
        assert_clean(&contents);
        contents_buffer(&contents, 0)[6000] = 0xFF;
        assert_found(&contents, "values", 0, HRY_NO_OFFSET, "0xFF");
        contents_free(&contents);
    }
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COO);
    layout.nnz = 2;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT8_E8M0,
                                             .rank = 2,
                                             .shape = shape,
                                             .layout = &layout,
                                             .buffer_count = 2,
                                             .sizes = {3, 32},
                                             .data = {"\x01\x00\x00"}});
    contents_put_u64(&contents, 1, 0, 1);
    assert_found(&contents, "values", 0, 1, "stored element 1");
    contents_free(&contents);
}

/* ---- sparse ---- */

static void make_coo(Contents *contents, uint64_t nnz, bool sorted, const uint64_t *indices) {
    static const uint64_t shape[] = {4, 5};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_COO);
    layout.nnz = nnz;
    layout.is_sorted = sorted;
    contents_make(contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8,
                                            .rank = 2,
                                            .shape = shape,
                                            .layout = &layout,
                                            .buffer_count = 2,
                                            .sizes = {nnz, 16 * nnz},
                                            .data = {NULL, indices}});
}

static void coo_tuples_are_in_bounds_in_order_and_unique(void **state) {
    (void)state;
    static const uint64_t good[] = {0, 1, 0, 4, 2, 0, 3, 3}, shuffled[] = {3, 3, 0, 1, 2, 0, 0, 4}, twice[] = {3, 3, 0, 1, 2, 0, 3, 3},
                          far[] = {0, 1, 0, 5, 2, 0, 3, 3}, repeated[] = {0, 1, 0, 1, 2, 0, 3, 3};
    Contents contents;
    for (int sorted = 0; sorted < 2; sorted++) {
        make_coo(&contents, 4, sorted, good);
        assert_clean(&contents);
        contents_free(&contents);
        make_coo(&contents, 4, sorted, far);
        assert_found(&contents, "indices", 1, 24, "coordinate 5 in dimension 1 of 5");
        contents_free(&contents);
    }
    make_coo(&contents, 4, false, shuffled);
    assert_clean(&contents);
    contents_free(&contents);
    make_coo(&contents, 4, true, shuffled);
    assert_found(&contents, "indices", 1, 16, "sorted");
    contents_free(&contents);
    make_coo(&contents, 4, false, twice);
    assert_found(&contents, "indices", 1, 48, "0 and 3");
    contents_free(&contents);
    make_coo(&contents, 4, true, repeated);
    assert_found(&contents, "indices", 1, 16, "sorted");
    contents_free(&contents);
    make_coo(&contents, 0, false, good);
    assert_clean(&contents);
    contents_free(&contents);
}

static void no_memory_for_duplicates_is_an_error_and_leaks_nothing(void **state) {
    (void)state;
    static const uint64_t twice[] = {3, 3, 0, 1, 2, 0, 3, 3};
    FailAlloc alloc;
    HurrayError error;
    Contents contents;
    make_coo(&contents, 4, false, twice);
    fail_alloc_init(&alloc);
    for (uint64_t k = 1;; k++) {
        Found found = {0};
        fail_alloc_arm(&alloc, k, 0);
        HurrayStatus status = verify_with(&contents, &found, &alloc.allocator, &error);
        fail_alloc_assert_empty(&alloc);
        if (status == HURRAY_OK) {
            assert_true(k > 1);
            break;
        }
        assert_int_equal(status, HURRAY_ERR_NO_MEMORY);
        assert_int_equal(error.code, HURRAY_ERR_NO_MEMORY);
    }
    contents_free(&contents);
}

static void make_compressed(Contents *contents, uint8_t tag, const uint64_t *indices, const uint64_t *pointers) {
    static const uint64_t rows[] = {3, 5}, columns[] = {5, 3};
    HurrayLayout layout = contents_layout(tag);
    layout.nnz = 4;
    contents_make(contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8,
                                            .rank = 2,
                                            .shape = tag == HURRAY_LAYOUT_CSR ? rows : columns,
                                            .layout = &layout,
                                            .buffer_count = 3,
                                            .sizes = {4, 32, 32},
                                            .data = {NULL, indices, pointers}});
}

static void csr_and_csc_pointers_and_indices_keep_their_rules(void **state) {
    (void)state;
    static const uint64_t good[] = {1, 4, 0, 3}, far[] = {1, 5, 0, 3}, same[] = {1, 1, 0, 3}, falls[] = {4, 1, 0, 3},
                          pointers[] = {0, 2, 2, 4}, late[] = {1, 2, 2, 4}, falling[] = {0, 3, 2, 4}, short_end[] = {0, 2, 2, 3},
                          beyond[] = {0, 2, 2, 5}, huge[] = {0, 2, UINT64_MAX, 4};
    static const struct {
        const uint64_t *indices, *pointers;
        int which; /* 0: clean, 1: index array, 2: pointers */
        uint64_t offset;
        const char *says;
    } cases[] = {{good, pointers, 0, 0, ""},
                 {far, pointers, 1, 8, "less than 5"},
                 {same, pointers, 1, 8, "does not come after"},
                 {falls, pointers, 1, 8, "(1)"},
                 {good, late, 2, 0, "the first entry is 1"},
                 {good, falling, 2, 16, "falls from 3 to 2"},
                 {good, short_end, 2, 24, "ends at 3"},
                 {good, beyond, 2, 24, "ends at 5"},
                 {good, huge, 2, 24, "falls"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (uint8_t tag = HURRAY_LAYOUT_CSR; tag <= HURRAY_LAYOUT_CSC; tag++) {
            bool csr = tag == HURRAY_LAYOUT_CSR;
            Contents contents;
            make_compressed(&contents, tag, cases[c].indices, cases[c].pointers);
            if (cases[c].which == 0)
                assert_clean(&contents);
            else if (cases[c].which == 1)
                assert_found(&contents, csr ? "col_indices" : "row_indices", 1, cases[c].offset, cases[c].says);
            else
                assert_found(&contents, csr ? "row_ptr" : "col_ptr", 2, cases[c].offset, cases[c].says);
            contents_free(&contents);
        }
}

static void several_broken_rules_are_all_told(void **state) {
    (void)state;
    static const uint64_t far[] = {1, 5, 0, 9}, late[] = {1, 2, 2, 4};
    Contents contents;
    make_compressed(&contents, HURRAY_LAYOUT_CSR, far, late);
    Found found = verify(&contents);
    assert_int_equal(found.count, 2);
    assert_string_equal(found.findings[0].field, "row_ptr");
    assert_string_equal(found.findings[1].field, "col_indices");
    Found stopped = {.answer = HURRAY_ERR_CANCELLED};
    FailAlloc alloc;
    HurrayError error;
    fail_alloc_init(&alloc);
    assert_int_equal(verify_with(&contents, &stopped, &alloc.allocator, &error), HURRAY_ERR_CANCELLED);
    assert_int_equal(stopped.count, 1);
    contents_free(&contents);
}

/* shape [3,4,5], two roots, three nodes, four leaves */
static void make_csf(Contents *contents) {
    static const uint64_t shape[] = {3, 4, 5}, pos0[] = {0, 2}, crd0[] = {0, 2}, pos1[] = {0, 1, 3}, crd1[] = {3, 0, 1},
                          pos2[] = {0, 2, 3, 4}, crd2[] = {1, 4, 0, 2};
    static const uint32_t order[] = {0, 1, 2};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_CSF);
    layout.nnz = 4;
    layout.mode_order = order;
    contents_make(contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8,
                                            .rank = 3,
                                            .shape = shape,
                                            .layout = &layout,
                                            .buffer_count = 7,
                                            .sizes = {4, 16, 16, 24, 24, 32, 32},
                                            .data = {NULL, pos0, crd0, pos1, crd1, pos2, crd2}});
}

static void csf_levels_keep_their_rules(void **state) {
    (void)state;
    static const struct {
        uint32_t buffer;
        uint64_t entry, value;
        const char *field;
        uint32_t found_in;
        uint64_t offset;
        const char *says;
    } cases[] = {{1, 0, 1, "pos", 1, 0, "the first entry is 1"},
                 {1, 1, 3, "crd", 2, HRY_NO_OFFSET, "lead to 3"},
                 {2, 1, 3, "crd", 2, 8, "less than 3"},
                 {2, 1, 0, "crd", 2, 8, "does not come after"},
                 {3, 1, 4, "pos", 3, 16, "falls"},
                 {4, 2, 0, "crd", 4, 16, "does not come after"},
                 {4, 0, 4, "crd", 4, 0, "less than 4"},
                 {5, 3, 3, "pos", 5, 24, "expected nnz 4"},
                 {6, 1, 1, "crd", 6, 8, "does not come after"},
                 {6, 3, 5, "crd", 6, 24, "less than 5"},
                 {5, 3, UINT64_MAX, "crd", 6, HRY_NO_OFFSET, "lead to"}};
    Contents contents;
    make_csf(&contents);
    assert_clean(&contents);
    contents_free(&contents);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        make_csf(&contents);
        contents_put_u64(&contents, cases[c].buffer, cases[c].entry, cases[c].value);
        assert_found(&contents, cases[c].field, cases[c].found_in, cases[c].offset, cases[c].says);
        contents_free(&contents);
    }
    make_csf(&contents);
    HurrayBufferHandle *declared = (HurrayBufferHandle *)(uintptr_t)contents.descriptor->buffers;
    declared[3].byte_size = 16; /* one pointer fewer than there are nodes */
    assert_found(&contents, "pos", 3, HRY_NO_OFFSET, "2 pointers, expected 3");
    contents_free(&contents);
}

/* ---- block-paged ---- */

static void page_tables_keep_their_rules(void **state) {
    (void)state;
    static const uint64_t shape[] = {6, 1, 1};
    static const struct {
        uint32_t buffer;
        uint32_t entry, value, found_at;
        const char *field;
        const char *says;
    } cases[] = {{2, 0, 1, 0, "seq_ptr", "the first entry is 1"},
                 {2, 1, 4, 2, "seq_ptr", "falls"},
                 {2, 2, 5, 2, "seq_ptr", "ends at 5"},
                 {1, 2, 7, 2, "block_table", "page 7"}};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_BLOCK_PAGED);
    layout.page_size = 2;
    layout.num_pages = 7;
    layout.num_seqs = 2;
    layout.layer_index = HURRAY_NO_LAYER;
    for (uint8_t wide = 0; wide < 2; wide++)
        for (size_t c = 0; c <= sizeof cases / sizeof *cases; c++) {
            uint64_t width = wide ? 8 : 4;
            Contents contents;
            layout.index_type = wide;
            contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8,
                                                     .rank = 3,
                                                     .shape = shape,
                                                     .layout = &layout,
                                                     .buffer_count = 3,
                                                     .sizes = {14, 4 * width, 3 * width}});
            uint8_t *table = contents_buffer(&contents, 1), *pointers = contents_buffer(&contents, 2);
            hry_store_u32(table + 3 * width, 99); /* behind the last sequence: slack */
            hry_store_u32(pointers + width, 1);
            hry_store_u32(pointers + 2 * width, 3);
            if (c < sizeof cases / sizeof *cases) {
                hry_store_u32((cases[c].buffer == 1 ? table : pointers) + cases[c].entry * width, cases[c].value);
                assert_found(&contents, cases[c].field, cases[c].buffer, cases[c].found_at * width, cases[c].says);
            } else {
                assert_clean(&contents);
            }
            contents_free(&contents);
        }
}

static void e8m0_pages_are_checked_where_tokens_are_known(void **state) {
    (void)state;
    static const uint64_t shape[] = {2, 1, 1};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_BLOCK_PAGED);
    Contents contents;
    layout.page_size = 2;
    layout.num_pages = 2;
    layout.num_seqs = 1;
    layout.layer_index = HURRAY_NO_LAYER;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_FLOAT8_E8M0,
                                             .rank = 3,
                                             .shape = shape,
                                             .layout = &layout,
                                             .buffer_count = 3,
                                             .sizes = {4, 4, 8},
                                             .data = {"\x00\x00\x01\x02"}});
    hry_store_u32(contents_buffer(&contents, 2) + 4, 1);
    hry_store_u32(contents_buffer(&contents, 1), 1);
    assert_clean(&contents);
    hry_store_u32(contents_buffer(&contents, 1), 0);
    assert_found(&contents, "values", 0, HRY_NO_OFFSET, "element 0");
    hry_store_u32(contents_buffer(&contents, 1), 2);
    assert_found(&contents, "block_table", 1, 0, "page 2");
    contents_free(&contents);
}

/* ---- parameters ---- */

static void affine_scales_are_finite_and_not_zero_and_zero_points_in_range(void **state) {
    (void)state;
    const uint64_t shape[] = {4, 2};
    static const float bad[] = {0, -0.0f, INFINITY, NAN};
    HurrayQuantization q = contents_scheme(HURRAY_QUANT_PER_CHANNEL_AFFINE);
    q.scale_type = HURRAY_TYPE_FLOAT32;
    q.scale_buffer = 1;
    for (uint32_t zeros = 1; zeros <= 2; zeros++)
        for (size_t b = 0; b < 6; b++) {
            Contents contents;
            uint64_t at = zeros == 1 ? 16 : 0;
            q.zero_point_buffer = zeros;
            contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8,
                                                     .rank = 2,
                                                     .shape = shape,
                                                     .quantization = &q,
                                                     .buffer_count = zeros + 1,
                                                     .sizes = {8, zeros == 1 ? 32 : 16, zeros == 1 ? 0 : 16}});
            uint8_t *scales = contents_buffer(&contents, 1), *points = contents_buffer(&contents, zeros) + at;
            for (int k = 0; k < 4; k++) hry_store_f32(scales + 4 * k, (float)(k - 5));
            hry_store_u32(points, (uint32_t)-128);
            hry_store_u32(points + 4, 127);
            assert_clean(&contents);
            if (b < 4) {
                hry_store_f32(scales + 8, bad[b]);
                assert_found(&contents, "scale", 1, 8, "scale 2");
            } else {
                hry_store_u32(points + 12, b == 4 ? 128u : (uint32_t)-129);
                assert_found(&contents, "zero_point", zeros, at + 12, "-128 to 127 (int8)");
            }
            contents_free(&contents);
        }
}

static void block_scales_of_every_type_are_checked(void **state) {
    (void)state;
    const uint64_t shape[] = {2, 16};
    static const struct {
        uint8_t scheme, storage, scale_type;
        uint32_t block_size, width;
        uint32_t good, bad, also_bad;
    } cases[] = {{HURRAY_QUANT_PER_BLOCK_AFFINE, HURRAY_TYPE_INT4, HURRAY_TYPE_FLOAT16, 4, 2, 0x3C00, 0x7C00, 0x8000},
                 {HURRAY_QUANT_PER_BLOCK_AFFINE, HURRAY_TYPE_INT4, HURRAY_TYPE_BFLOAT16, 4, 2, 0xBF80, 0x7FC0, 0x0000},
                 {HURRAY_QUANT_PER_BLOCK_AFFINE, HURRAY_TYPE_UINT8, HURRAY_TYPE_FLOAT32, 4, 4, 0x3F800000, 0xFF800000, 0},
                 {HURRAY_QUANT_NF4, HURRAY_TYPE_UINT4, 0, 8, 4, 0, 0xBF800000, 0x7F800000},
                 {HURRAY_QUANT_MXFP, HURRAY_TYPE_FLOAT4_E2M1, 0, 16, 1, 0xFE, 0xFF, 0x00}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        HurrayQuantization q = contents_scheme(cases[c].scheme);
        uint64_t count = 2 * (16 / cases[c].block_size), width = cases[c].width;
        q.axis = 1;
        q.block_size = cases[c].block_size;
        q.scale_buffer = 1;
        q.scale_type = cases[c].scale_type;
        q.zero_point_buffer = HURRAY_QUANT_NO_ZERO_POINTS;
        if (cases[c].scheme == HURRAY_QUANT_PER_BLOCK_AFFINE) q.flags = HURRAY_QUANT_SYMMETRIC;
        Contents contents;
        contents_make(
            &contents,
            &(ContentsSpec){
                .type = cases[c].storage, .rank = 2, .shape = shape, .quantization = &q, .buffer_count = 2, .sizes = {32, count * width}});
        uint8_t *scales = contents_buffer(&contents, 1), word[4];
        for (uint64_t k = 0; k < count; k++) {
            hry_store_u32(word, cases[c].good);
            memcpy(scales + k * width, word, width);
        }
        assert_clean(&contents);
        for (int which = 0; which < 2; which++) {
            hry_store_u32(word, which ? cases[c].also_bad : cases[c].bad);
            memcpy(scales + (count - 1) * width, word, width);
            assert_found(&contents, "scale", 1, (count - 1) * width, "scale");
        }
        contents_free(&contents);
    }
}

/* ---- statistics ---- */

static void statistics_outside_their_range_are_told_when_set(void **state) {
    (void)state;
    const uint64_t shape[] = {4};
    static const struct {
        uint32_t bit;
        const char *field;
    } cases[] = {{HURRAY_STATISTICS_SPARSITY, "sparsity_ratio"},
                 {HURRAY_STATISTICS_MOMENTS, "value_stddev"},
                 {HURRAY_STATISTICS_NM, "nm_n"},
                 {HURRAY_STATISTICS_SPECIALS, "has_nan"}};
    Contents contents;
    contents_make(
        &contents,
        &(ContentsSpec){
            .type = HURRAY_TYPE_INT8, .rank = 1, .shape = shape, .statistics = &(HurrayStatistics)HURRAY_STATISTICS_INIT, .sizes = {4}});
    HurrayStatistics *s = &contents.descriptor->statistics; /* what a reader accepts and a writer would refuse */
    s->nnz = 99;
    s->sparsity_ratio = NAN;
    s->stddev = -1;
    s->nm_n = 3;
    s->nm_m = 2;
    s->has_nan = 2;
    s->computed_mask = HURRAY_STATISTICS_NNZ;
    assert_clean(&contents); /* nnz of a dense tensor is anybody's guess */
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        s->computed_mask = cases[c].bit;
        assert_found(&contents, cases[c].field, UINT32_MAX, HRY_NO_OFFSET, "statistics say");
    }
    s->has_nan = 1;
    s->has_inf = 255;
    assert_found(&contents, "has_inf", UINT32_MAX, HRY_NO_OFFSET, "255");
    s->computed_mask = 63;
    Found found = verify(&contents);
    assert_int_equal(found.count, 4);
    contents_free(&contents);
}

static void statistics_nnz_equals_that_of_a_sparse_layout(void **state) {
    (void)state;
    static const uint64_t indices[] = {0, 1, 0, 4};
    Contents contents;
    make_coo(&contents, 2, true, indices);
    contents.descriptor->has_statistics = true;
    contents.descriptor->statistics.computed_mask = HURRAY_STATISTICS_NNZ;
    contents.descriptor->statistics.nnz = 2;
    assert_clean(&contents);
    contents.descriptor->statistics.nnz = 3;
    assert_found(&contents, "nnz", UINT32_MAX, HRY_NO_OFFSET, "the layout 2");
    contents_free(&contents);
}

/* ---- damage ---- */

static void random_contents_never_lead_outside(void **state) {
    (void)state;
    static const uint64_t good[] = {0, 1, 0, 4, 2, 0, 3, 3}, columns[] = {1, 4, 0, 3}, pointers[] = {0, 2, 2, 4};
    uint64_t seed = 47;
    for (int round = 0; round < 3000; round++) {
        Contents contents;
        switch (round % 4) {
        case 0: make_coo(&contents, 4, round % 8 == 0, good); break;
        case 1: make_compressed(&contents, HURRAY_LAYOUT_CSR, columns, pointers); break;
        case 2: make_compressed(&contents, HURRAY_LAYOUT_CSC, columns, pointers); break;
        default: make_csf(&contents); break;
        }
        for (int change = 0; change < 1 + round % 3; change++) {
            uint32_t buffer = (uint32_t)(1 + contents_random(&seed) % (contents.descriptor->buffer_count - 1));
            uint64_t value = contents_random(&seed);
            contents_put_u64(&contents, buffer, contents_random(&seed) % (contents.bytes[buffer].size / 8), round % 5 ? value % 8 : value);
        }
        verify(&contents);
        contents_free(&contents);
    }
}

static void dynamic_dimensions_skip_what_needs_them(void **state) {
    (void)state;
    static const uint64_t rows[] = {HURRAY_DYNAMIC_DIMENSION, 5}, both[] = {HURRAY_DYNAMIC_DIMENSION, HURRAY_DYNAMIC_DIMENSION},
                          list[] = {HURRAY_DYNAMIC_DIMENSION};
    static const uint64_t columns[] = {1, 5};
    HurrayLayout layout = contents_layout(HURRAY_LAYOUT_CSR);
    Contents contents;
    layout.nnz = 2;
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8,
                                             .rank = 2,
                                             .shape = rows,
                                             .layout = &layout,
                                             .buffer_count = 3,
                                             .sizes = {2, 16, 64},
                                             .data = {NULL, columns}});
    assert_found(&contents, "col_indices", 1, 8, "less than 5");
    contents_free(&contents);
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT8,
                                             .rank = 2,
                                             .shape = both,
                                             .layout = &layout,
                                             .buffer_count = 3,
                                             .sizes = {2, 16, 64},
                                             .data = {NULL, columns}});
    assert_clean(&contents);
    contents_free(&contents);
    contents_make(&contents, &(ContentsSpec){.type = HURRAY_TYPE_INT4, .rank = 1, .shape = list, .sizes = {3}, .data = {"\xFF\xFF\xFF"}});
    assert_clean(&contents);
    contents_free(&contents);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_bits_behind_the_last_element_are_zero),
        cmocka_unit_test(whole_groups_and_whole_bytes_have_no_unused_bits),
        cmocka_unit_test(padding_of_tiles_curves_and_pools_is_checked_behind_their_storage),
        cmocka_unit_test(e8m0_elements_are_checked_in_every_layout),
        cmocka_unit_test(coo_tuples_are_in_bounds_in_order_and_unique),
        cmocka_unit_test(no_memory_for_duplicates_is_an_error_and_leaks_nothing),
        cmocka_unit_test(csr_and_csc_pointers_and_indices_keep_their_rules),
        cmocka_unit_test(several_broken_rules_are_all_told),
        cmocka_unit_test(csf_levels_keep_their_rules),
        cmocka_unit_test(page_tables_keep_their_rules),
        cmocka_unit_test(e8m0_pages_are_checked_where_tokens_are_known),
        cmocka_unit_test(affine_scales_are_finite_and_not_zero_and_zero_points_in_range),
        cmocka_unit_test(block_scales_of_every_type_are_checked),
        cmocka_unit_test(statistics_outside_their_range_are_told_when_set),
        cmocka_unit_test(statistics_nnz_equals_that_of_a_sparse_layout),
        cmocka_unit_test(random_contents_never_lead_outside),
        cmocka_unit_test(dynamic_dimensions_skip_what_needs_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
