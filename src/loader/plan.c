#include "loader/plan.h"

bool hry_run_takes(const HryRun *run, uint64_t offset, uint64_t len, uint64_t chunk, uint64_t gap) {
    uint64_t end = run->offset + run->len, most = chunk < HRY_SMALL_BYTES ? chunk : HRY_SMALL_BYTES;
    if (run->count == 0) return true;
    if (run->count == HRY_RUN_PIECES || offset < end || offset - end > gap) return false;
    return len <= most && offset - run->offset <= most - len;
}

void hry_run_add(HryRun *run, const HryPlanPiece *piece) {
    if (run->count == 0) run->offset = piece->offset, run->len = 0, run->payload = 0;
    run->pieces[run->count++] = *piece;
    run->len = piece->offset - run->offset + piece->len;
    run->payload += piece->len;
}

uint64_t hry_cut(uint64_t offset, uint64_t len, uint64_t chunk, uint64_t alignment) {
    uint64_t most = len <= chunk + chunk / 4 ? len : chunk, end = (offset + most) & ~(alignment - 1);
    return end > offset ? end - offset : most;
}
