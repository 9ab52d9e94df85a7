/* One opened source, in the format that HRY_FUZZ_TARGET names; the recognition of formats. */
#include "fuzz.h"
#include "import/sniff.h"

HurrayStatus fuzz_parse(const HurrayTransport *transport, const FuzzInput *input, const HurrayAllocator *allocator, HryCatalogue **out,
                        HurrayError *error) {
#if defined(HRY_FUZZ_SNIFF)
    uint32_t format;
    (void)out;
    return hry_sniff(transport, input->size, NULL, allocator, &format, error);
#elif defined(HRY_FUZZ_NPY)
    return hry_import_npy(transport, input->size, "array", &fuzz_limits, allocator, out, error);
#else
    return HRY_FUZZ_TARGET(transport, input->size, &fuzz_limits, allocator, out, error);
#endif
}
