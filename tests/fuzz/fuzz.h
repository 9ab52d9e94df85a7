/* What a fuzz target is made of: fuzz.c runs the one fuzz_parse that is linked with it, from parse_....c. */
#ifndef HRY_TESTS_FUZZ_H
#define HRY_TESTS_FUZZ_H

#include <stdbool.h>
#include <stdlib.h>

#include "core/catalogue.h"
#include "import/model.h"

typedef struct FuzzInput {
    const uint8_t *data;
    size_t size, position;
} FuzzInput;

/* Whatever these bytes are, OK or an error that is filled; out may stay NULL. The transport reads the input. */
HurrayStatus fuzz_parse(const HurrayTransport *transport, const FuzzInput *input, const HurrayAllocator *allocator, HryCatalogue **out,
                        HurrayError *error);

static const HryLimits fuzz_limits = {1u << 20, 1u << 30, 1u << 28, 1u << 24, UINT64_MAX, 64};

#define FUZZ_MOST_BYTES (1u << 18) /* of a tensor and of a dense view that is looked at */

/* What can be asked of a tensor or an item in memory. */
void fuzz_see_tensor(const HurrayTensor *tensor, const HurrayAllocator *allocator);
void fuzz_see_item(const HurrayItem *item, const HurrayAllocator *allocator);

/* A failure has a code and a text. */
static inline HurrayStatus fuzz_checked(HurrayStatus status, const HurrayError *error) {
    if (status != HURRAY_OK && (error->code != status || error->message[0] == 0)) abort();
    return status;
}

#endif
