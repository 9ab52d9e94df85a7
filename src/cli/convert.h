/* What the parts of `hurray convert` share: the plan (which tensors, called what) and one function for each format written. */
#ifndef HRY_CLI_CONVERT_H
#define HRY_CLI_CONVERT_H

#include "transfer.h"

typedef struct ConvertOptions {
    uint32_t format;    /* HURRAY_FORMAT_HRRY or _SAFETENSORS */
    uint32_t alignment; /* 0: as the input, or 4096 */
    bool sorted, no_checksums, dense, kv_text, native;
    uint64_t shard_size; /* 0: one file */
    char **patterns, **renames;
    size_t pattern_count, rename_count;
} ConvertOptions;

typedef struct Conversion {
    Model *model;
    const ConvertOptions *options;
    const Output *output;
    const char *out;
    Selection selection;
    char **names; /* of the output, by place in the selection; NULL entries: the tensor's own name */
    size_t *name_lens;
    Bar bar;
    const char *kept[64]; /* kinds of GGML blocks that were noted as staying */
    size_t kept_count;
} Conversion;

/* The name under which the n-th selected tensor goes out; info is that tensor's. */
const void *conversion_name(const Conversion *conversion, uint64_t n, const HurrayTensorInfo *info, size_t *len);

/* What tensor i becomes in the format's own quantization, the caller's, a third of its bytes done; *out NULL: it stays as it is, with a
 * note if it has blocks. */
int convert_native(Conversion *conversion, Transfer *transfer, uint64_t i, HurrayDescriptor **out);
/* Its buffers to the transfer's sink, the rest of the bytes that were read. */
int append_native(Transfer *transfer, uint64_t i, const HurrayDescriptor *native, uint64_t bytes_read);

int convert_to_hrry(Conversion *conversion);
int convert_to_safetensors(Conversion *conversion);

#endif
