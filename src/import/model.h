/* What a path or a list of sources stands for: one or more opened sources with their catalogues, whatever their format.
 * The loader and nobody else opens models. */
#ifndef HRY_IMPORT_MODEL_H
#define HRY_IMPORT_MODEL_H

#include "core/catalogue.h"
#include "hurray/loader.h"

typedef struct HryLimits { /* resolved: no zeros */
    uint64_t max_tensors, max_index_bytes, max_kv_bytes, max_descriptor_bytes, max_tensor_bytes;
    uint32_t max_composite_depth;
} HryLimits;

typedef struct HryModelSource {
    HurrayTransport transport; /* owned by the model */
    char *path;                /* NULL when the caller gave a transport */
    char *label;               /* how messages call the source, escaped already */
    size_t path_size, label_size;
    HryCatalogue *catalogue; /* one reference; entries that an index file does not map are already left out */
} HryModelSource;

typedef struct HryModel {
    HurrayAllocator allocator;
    HryModelSource *sources;
    size_t source_count, source_capacity;
    bool named_by_index; /* a safetensors index decides which file a name comes from */
    HurrayError *notes;  /* of the set as a whole; each catalogue has its own too */
    size_t note_count, note_capacity;
} HryModel;

/* path: a file, an index file or a folder; recognised by content. On failure nothing is held. */
HurrayStatus hry_model_open_path(const char *path, const HryLimits *limits, const HurrayAllocator *allocator, HryModel *out,
                                 HurrayError *error);
/* On OK the transports belong to the model; on failure they stay with the caller (release not called). */
HurrayStatus hry_model_open_sources(const HurraySource *sources, size_t count, const HryLimits *limits, const HurrayAllocator *allocator,
                                    HryModel *out, HurrayError *error);
void hry_model_close(HryModel *model);

/* One opened source, format already known. stem: a lone NPY array's name. size: of the source. */
HurrayStatus hry_import_safetensors(const HurrayTransport *transport, uint64_t size, const HryLimits *limits,
                                    const HurrayAllocator *allocator, HryCatalogue **out, HurrayError *error);
HurrayStatus hry_import_gguf(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                             HryCatalogue **out, HurrayError *error);
HurrayStatus hry_import_npz(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                            HryCatalogue **out, HurrayError *error);
HurrayStatus hry_import_npy(const HurrayTransport *transport, uint64_t size, const char *stem, const HryLimits *limits,
                            const HurrayAllocator *allocator, HryCatalogue **out, HurrayError *error);
/* .hrry: drives a HurrayFileReaderCore to READY and keeps its catalogue. Descriptors stay unread. */
HurrayStatus hry_import_hrry(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                             HryCatalogue **out, HurrayError *error);
/* A seekable stream: walks the descriptors; entries have no names. */
HurrayStatus hry_import_stream(const HurrayTransport *transport, uint64_t size, const HryLimits *limits, const HurrayAllocator *allocator,
                               HryCatalogue **out, HurrayError *error);

#endif
