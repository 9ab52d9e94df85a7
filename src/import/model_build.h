/* Putting a model together, source by source. */
#ifndef HRY_IMPORT_MODEL_BUILD_H
#define HRY_IMPORT_MODEL_BUILD_H

#include "import/model.h"

/* An opened file that no model owns yet. */
typedef struct HryOpened {
    HurrayTransport transport;
    uint64_t size;
    uint32_t format; /* HURRAY_FORMAT_... or HRY_FORMAT_INDEX */
} HryOpened;

/* Opens and recognises; on failure nothing is open and the error has the source. */
HurrayStatus hry_model_open_file(const char *path, const HurrayAllocator *allocator, HryOpened *out, HurrayError *error);

/* Takes over transport and catalogue on OK. path NULL: a caller's transport. label: raw bytes. */
HurrayStatus hry_model_add(HryModel *model, const HurrayTransport *transport, HryCatalogue *catalogue, const char *path, const void *label,
                           size_t label_len, HurrayError *error);
HurrayStatus hry_model_note(HryModel *model, const HurrayError *note, HurrayError *error);

/* The sources that an index file (its content in opened) or the first part of a GGUF set (its catalogue, both taken over on OK)
 * stands for. */
HurrayStatus hry_model_add_index(HryModel *model, const char *path, const HryOpened *opened, const HryLimits *limits, HurrayError *error);
HurrayStatus hry_model_add_gguf(HryModel *model, const char *path, const void *label, size_t label_len, const HryOpened *opened,
                                const HryLimits *limits, HurrayError *error);
/* Keys that an earlier one of the sources from `first` on has are taken out of the later ones; another value is noted. */
HurrayStatus hry_model_join_kv(HryModel *model, size_t first, HurrayError *error);

/* FOLDER/name, NUL-terminated; NULL: no memory. *size: of the block. */
char *hry_path_join(const HurrayAllocator *allocator, const char *folder, size_t folder_len, const void *name, size_t name_len,
                    size_t *size);
/* Length of the path up to its last slash, that included; 0: none. */
size_t hry_path_folder(const char *path);

#endif
