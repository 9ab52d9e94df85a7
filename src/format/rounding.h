/* Float arithmetic whose results do not depend on the caller's modes: nearest even, subnormals kept. The functions between begin and
 * end must not be inlined into the one that calls these. */
#ifndef HRY_FORMAT_ROUNDING_H
#define HRY_FORMAT_ROUNDING_H

#include <fenv.h>

typedef struct HryRounding {
    fenv_t saved;
} HryRounding;

static inline void hry_rounding_begin(HryRounding *rounding) {
    fegetenv(&rounding->saved);
    fesetenv(FE_DFL_ENV);
}

/* Exception flags raised meanwhile are dropped. */
static inline void hry_rounding_end(const HryRounding *rounding) { fesetenv(&rounding->saved); }

#endif
