/* What the bits of an element mean (docs/format.md section 2), and back. Codes are those of codes.h: whole-byte types as in memory
 * (little-endian), types below 8 bits one byte each. */
#ifndef HRY_FORMAT_VALUE_H
#define HRY_FORMAT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/descriptor.h"

typedef enum HryFormKind {
    HRY_FORM_NONE, /* a private type that is not ours: width only */
    HRY_FORM_FLOAT,
    HRY_FORM_SIGNED,
    HRY_FORM_UNSIGNED, /* bool too */
    HRY_FORM_SCALE,    /* e8m0 */
    HRY_FORM_COMPLEX
} HryFormKind;

typedef enum HryFloatRule {
    HRY_FLOAT_IEEE,   /* all-ones exponents: infinity, NaN */
    HRY_FLOAT_E4M3,   /* all ones: NaN; no infinity */
    HRY_FLOAT_FINITE, /* neither */
    HRY_FLOAT_FNUZ    /* only sign: NaN; neither infinity nor -0 */
} HryFloatRule;

typedef struct HryForm {
    HryFormKind kind;
    HryFloatRule rule;
    uint32_t bits;
    int32_t exponent_bits, mantissa_bits, bias;
} HryForm;

/* The form of a listed type (kind NONE and bits 0 for any other tag), or of a tensor's elements (private types: kind NONE with their
 * width, but for the two FNUZ types of our importers). */
HryForm hry_form_of_type(uint8_t tag);
HryForm hry_form_of(const HurrayDescriptor *descriptor);

/* float32 values of types of at most 8 bits, by code. e8m0's two invalid codes give NaN. */
void hry_value_table(const HryForm *form, float table[256]);

/* count codes to float32, rounded to nearest even where float32 is narrower. *bad (when false is returned): which code has no
 * value (e8m0 0x00, 0xFF). Not for kinds NONE and COMPLEX. table: of hry_value_table; may be NULL for types wider than 8 bits. */
bool hry_values_f32(const HryForm *form, const float *table, const uint8_t *codes, size_t count, float *out, size_t *bad);

/* One integer of at most 64 bits; uint64 above INT64_MAX wraps. */
int64_t hry_value_integer(const HryForm *form, const uint8_t *code);

/* Both for the element type of composite heads. False: some element has no code (NaN in a type without it; zero, negative or too
 * great for e8m0; its number is in *bad). Rounds to nearest even; beyond the largest: infinity where there is one, else NaN where
 * there is one, else the largest. Only for kinds FLOAT and SCALE. */
bool hry_values_from_f32(const HryForm *form, const float *values, size_t count, uint8_t *codes, size_t *bad);

/* sums[i] += codes[i] in the type itself: floats rounded to nearest even, integers (bool) wrapped, complex by halves. False as
 * above; UNSUPPORTED kinds (NONE) give false too, with *bad 0. */
bool hry_values_add(const HryForm *form, uint8_t *sums, const uint8_t *codes, size_t count, size_t *bad);

#endif
