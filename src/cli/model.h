/* An opened model as the commands see it: a loader, and a name for every tensor (items of a stream have none of their own:
 * they are called 0, 1, ..., members {head}.{i}). */
#ifndef HRY_CLI_MODEL_H
#define HRY_CLI_MODEL_H

#include "cli.h"

typedef struct Model {
    const char *path;
    HurrayLoader *loader;
    uint64_t count;
    HurraySourceInfo source;  /* of the first source */
    uint64_t bytes;           /* of all sources */
    char **names;             /* streams: count of them, made up; NULL otherwise */
    struct Transfer *loading; /* whose bar shows a load */
    HurrayError error;        /* why it does not open */
} Model;

/* Reports a failure and returns its exit code. options may be NULL; prefix (may be NULL) goes before the names of a stream's items. */
int model_open(Model *model, const char *path, const HurrayLoaderOptions *options, const char *prefix);
void model_close(Model *model);

/* Information on tensor i, with its made-up name if it has none of its own; reports a failure (not a fault). */
int model_info(Model *model, uint64_t i, HurrayTensorInfo *info);
/* The number of a tensor by name. False: there is none. */
bool model_find(Model *model, const char *name, size_t len, uint64_t *i);
/* Information on a tensor that must be there and not be spoiled; reports what is not so. */
int model_sound(Model *model, const char *name, uint64_t *i, HurrayTensorInfo *info);
/* Notes of the loader, to standard error. */
void model_print_notes(Model *model, const Output *output);

#endif
