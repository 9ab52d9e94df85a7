/* The memory cap: host memory that a load uses beyond what it delivers, reserved before it is taken. */
#ifndef HRY_LOADER_BUDGET_H
#define HRY_LOADER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

typedef struct HryBudget {
    uint64_t cap, used, peak;
} HryBudget;

static inline HryBudget hry_budget(uint64_t cap) { return (HryBudget){.cap = cap}; }

/* False: it does not fit now; somebody must release first, or the cap is too small for it at all. */
static inline bool hry_budget_take(HryBudget *budget, uint64_t bytes) {
    if (bytes > budget->cap || budget->used > budget->cap - bytes) return false;
    budget->used += bytes;
    if (budget->used > budget->peak) budget->peak = budget->used;
    return true;
}
static inline void hry_budget_give(HryBudget *budget, uint64_t bytes) { budget->used -= bytes < budget->used ? bytes : budget->used; }

#endif
