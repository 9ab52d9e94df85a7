/* The loader's own state, shared by the files of this room. A loader is: sources with their catalogues (the model), the list of
 * tensors joined over them in file order, a selection, and what was prepared for it (placements). */
#ifndef HRY_LOADER_LOADER_H
#define HRY_LOADER_LOADER_H

#include <stdatomic.h>

#include "base/devices.h"
#include "base/handle.h"
#include "core/window.h"
#include "hurray/loader.h"
#include "import/byte_source.h"
#include "import/model.h"

#define HRY_MIB (UINT64_C(1) << 20)
#define HRY_OTHER_MEMORY (32 * HRY_MIB) /* what a load may use beside staging, when memory_cap is not given */

/* Where a selected tensor goes, shared by all that go the same way. */
typedef struct HryWay {
    uint8_t device_tag, sync_mode, memory_class; /* !placed: where the buffers go, which may be the host in place of what the file says */
    bool placed;                                 /* the caller, not the file, chose */
    bool displaced;                              /* the host in place of this, which the file says: */
    uint8_t declared_tag, declared_class;
    int32_t device_index;
    void *consumer_stream, *copy_stream;
} HryWay;

/* One tensor of the selection that is to be loaded. */
typedef struct HryPlaced {
    uint64_t index; /* in the loader */
    uint32_t way;   /* place in the plan's ways */
    uint32_t into;  /* 1 + place of its first memory in the plan's into[], 0: none */
    void *user;
} HryPlaced;

/* A selection, prepared: descriptors read, everything checked that can be before a payload byte is read. */
typedef struct HryPrepared {
    bool ready;
    HryPlaced *tensors; /* in file order */
    size_t count, capacity;
    HryWay *ways;
    size_t way_count, way_capacity;
    HurrayMemory *into;
    size_t into_count, into_capacity;
    uint64_t payload_bytes;
} HryPrepared;

/* Who is whose member, for sources that have composites. */
typedef struct HryFamily {
    bool known;
    uint64_t *parent; /* loader index of the head, or HURRAY_NONE; one per entry of the source; NULL: no heads */
    uint64_t *torn;   /* heads with members missing at the end of the source */
    size_t torn_count, torn_capacity;
} HryFamily;

typedef struct HryLoaderSource {
    HryModelSource *model; /* in the loader's model */
    uint64_t first, count; /* its tensors in the loader */
    HryFamily family;
} HryLoaderSource;

/* read_bytes keeps what a following piece can go on with. */
typedef struct HryReadState {
    HryByteSource *bytes; /* open for `tensor`, or NULL */
    uint64_t tensor, sum_tensor;
    uint32_t sum_buffer, sum;
    uint64_t sum_at; /* where the next piece must begin for the sum to go on */
    bool summing;
} HryReadState;

/* A destination made for one target, kept for the loader's life so that several loads share its staging. */
typedef enum HryTargetKind { HRY_TARGET_CALLERS, HRY_TARGET_HOST, HRY_TARGET_MAPPED, HRY_TARGET_INTO, HRY_TARGET_CUDA } HryTargetKind;
typedef struct HryTarget {
    HryTargetKind kind;
    HurrayDestinationAlloc destination; /* the loader's hold */
    int32_t device_index;
    uint32_t source;        /* MAPPED: whose file */
    HurrayTransport mapped; /* MAPPED: what the destination draws from */
    bool waits;             /* during a load: a window or an allocation has to wait */
    bool holds;             /* during a load: a freeze has to wait */
    HryCudaStats before;    /* CUDA: what earlier loads had done */
} HryTarget;

#define HRY_REASON_BYTES 160u
typedef struct HryPath {
    HurrayPathStats stats;
    size_t target;
    bool mapped;        /* of a target that maps: those that it did map; the others were read */
    uint32_t alignment; /* what the others would have needed in the file */
    bool displaced;     /* reason says of what */
    char reason[4 * HRY_REASON_BYTES];
} HryPath;

struct HurrayLoader {
    HurrayLoader *self; /* so that calls that only look may keep the last error too */
    HryHandle handle;
    HurrayAllocator allocator;
    HurrayLoaderOptions options;        /* latest form; pointers lead to the copies below or are NULL */
    HurrayDestinationAlloc destination; /* the caller's, held; struct_size 0: none */
    HurrayDeviceMemory device_memory;
    HryLimits limits;
    HryModel model;
    HryLoaderSource *sources;
    uint32_t source_count;
    uint64_t tensor_count;
    HryNames names; /* only when there are several sources */
    bool has_names;
    HurrayKvEntry *kv; /* joined; only when there are several sources */
    size_t kv_count, kv_capacity;
    HryNames kv_names;
    bool has_kv_names;
    HurrayError *notes;
    size_t note_count, note_capacity;
    HurrayDescriptor **descriptors; /* those read so far; NULL until one is */
    uint8_t *selected;              /* one a tensor; NULL: nothing selected */
    HryPrepared prepared;
    HurrayError fault; /* of the tensor last asked about */
    uint64_t *info_offsets;
    size_t info_offsets_capacity;
    HryReadState reading;
    HryTarget *targets;
    size_t target_count, target_capacity;
    HurrayLoadStats stats;
    HryPath *paths;
    size_t path_count, path_capacity;
    atomic_bool cancelled;
    bool unusable; /* a transport reported more than it was offered */
};

/* ---- the joined list (loader.c) ---- */
HryLoaderSource *hry_loader_source_of(HurrayLoader *loader, uint64_t i);
const HryEntry *hry_loader_entry(HurrayLoader *loader, uint64_t i, HryLoaderSource **source);
bool hry_loader_find(const HurrayLoader *loader, const void *name, size_t len, uint64_t *i);
/* Adds tensor and source to a filled record; returns its code. */
HurrayStatus hry_loader_blame(HurrayLoader *loader, uint64_t i, HurrayError *error);
void hry_loader_blame_source(HurrayLoader *loader, uint32_t source, HurrayError *error);
HurrayStatus hry_loader_note(HurrayLoader *loader, const HurrayError *note, HurrayError *error);

/* ---- descriptors and families (describe.c, family.c) ---- */
/* Borrowed; read when not known yet. A spoiled tensor fails with what is wrong with it. */
HurrayStatus hry_loader_describe(HurrayLoader *loader, uint64_t i, HurrayDescriptor **out, HurrayError *error);
/* All that chosen[] marks (NULL: all of [first, first + count)), nearby ones by one read; stops at the first that fails
 * unless `tolerant`: then spoiled tensors are passed over and stay unknown. */
HurrayStatus hry_loader_describe_many(HurrayLoader *loader, uint64_t first, uint64_t count, const uint8_t *chosen, bool tolerant,
                                      HurrayError *error);
/* File offset of buffer k; HURRAY_NONE where bytes change on the way. */
uint64_t hry_loader_buffer_offset(HurrayLoader *loader, uint64_t i, const HurrayDescriptor *descriptor, uint32_t k);
/* Finds parents in a source; reads the descriptors of whatever may be a head. */
HurrayStatus hry_loader_know_family(HurrayLoader *loader, HryLoaderSource *source, HurrayError *error);
uint64_t hry_loader_parent(HurrayLoader *loader, uint64_t i);        /* after know_family */
uint64_t hry_loader_family_end(HurrayLoader *loader, uint64_t head); /* one past the last descendant */
/* Are the members that a head promises there, and not nested too deep? */
HurrayStatus hry_loader_check_family(HurrayLoader *loader, uint64_t head, HurrayError *error);
/* The rules of a whole composite: members there, not too deep, cover. Descriptors must be known. */
HurrayStatus hry_loader_check_composite(HurrayLoader *loader, uint64_t head, HurrayError *error);

/* ---- selection and placement (select.c, prepare.c) ---- */
HurrayStatus hry_loader_prepare(HurrayLoader *loader, HurrayError *error);
void hry_loader_forget_prepared(HurrayLoader *loader);
/* What a destination will be asked for. */
static inline uint64_t hry_place_alignment(const HurrayLoader *loader, uint8_t device_tag, const HurrayBufferHandle *handle) {
    bool raised = device_tag != HURRAY_DEVICE_CPU && handle->alignment < loader->options.device_alignment;
    return raised ? loader->options.device_alignment : handle->alignment;
}

/* ---- the rest ---- */
HurrayStatus hry_loader_fill_info(HurrayLoader *loader, uint64_t i, HurrayTensorInfo *info, HurrayError *error); /* info.c */
void hry_loader_close_reading(HurrayLoader *loader);                                                             /* read_bytes.c */
HurrayStatus hry_loader_read_piece(HurrayLoader *loader, uint64_t i, HurrayDescriptor *descriptor, uint32_t buffer, uint64_t offset,
                                   void *dst, size_t len, HurrayError *error);
/* The same with every argument checked; check: going on with the buffer's sum as hurray_loader_read_bytes does. */
HurrayStatus hry_loader_read_part(HurrayLoader *loader, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len, bool check,
                                  HurrayError *error);
bool hry_glob_match(const uint8_t *pattern, size_t pattern_len, const uint8_t *text, size_t len); /* glob.c */
bool hry_glob_valid(const uint8_t *pattern, size_t len);

static inline HurrayStatus hry_loader_enter(const HurrayLoader *loader) {
    return loader ? hry_handle_enter(&loader->self->handle) : HURRAY_ERR_NULL_POINTER;
}
HurrayStatus hry_loader_leave(const HurrayLoader *loader, HurrayStatus status);
/* UNUSABLE after a transport has reported more than it was offered. For calls that read. */
HurrayStatus hry_loader_check_usable(HurrayLoader *loader);
static inline bool hry_loader_is_cancelled(const HurrayLoader *loader) {
    return atomic_load_explicit(&loader->cancelled, memory_order_relaxed);
}
HurrayStatus hry_fail_cancelled(HurrayError *error);

/* Does the failure say something about the tensor? Not memory, a failed read or cancel, which say nothing about it. */
static inline bool hry_is_fault(HurrayStatus status) {
    return status != HURRAY_ERR_NO_MEMORY && status != HURRAY_ERR_CANCELLED && status != HURRAY_ERR_INVALID_REPORT &&
           status != HURRAY_ERR_TRANSPORT && status > -1000;
}

#endif
