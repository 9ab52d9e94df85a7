#include "import/model.h"

#include "core/file_open.h"
#include "driver/transport_call.h"

HurrayStatus hry_import_hrry(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                             HryCatalogue **out, HurrayError *error) {
    HryOpenLimits open_limits = {
        .max_tensors = limits->max_tensors, .max_index_bytes = limits->max_index_bytes, .max_kv_bytes = limits->max_kv_bytes};
    HryFileOpen open;
    HurrayStep step;
    hry_file_open_begin(&open, size, &open_limits, allocator);
    for (;;) {
        uint8_t *dst = NULL;
        size_t len = 0;
        HurrayStatus status = hry_file_open_step(&open, &step, out, error);
        if (status == HURRAY_OK && step.kind == HURRAY_STEP_READY) return HURRAY_OK;
        if (status == HURRAY_OK && hry_file_open_rest(&open, &dst, &len))
            status = hry_transport_read_exactly(transport, step.offset, dst, len, error);
        if (status == HURRAY_OK) status = hry_file_open_report(&open, len, error);
        if (status != HURRAY_OK) {
            hry_file_open_clear(&open);
            return status;
        }
    }
}
