/**
 * @file
 * The main job: a model, from a path, its shards, or transports, into memory: host memory, pinned memory, GPUs, or memory of the
 * caller's. Any format that the library reads: .hrry, Hurray streams that can seek, safetensors (sharded too), GGUF, NPZ, NPY.
 *
 *     HurrayLoaderOptions options = HURRAY_LOADER_OPTIONS_INIT;
 *     HurrayLoader *loader = NULL;
 *     HurrayTensorSet *set = NULL;
 *     HurrayError error = HURRAY_ERROR_INIT;
 *     if (hurray_loader_open("model.safetensors", &options, &loader, &error) == HURRAY_OK &&
 *         hurray_loader_load(loader, &set) == HURRAY_OK) { ... }
 *     hurray_tensor_set_destroy(&set);
 *     hurray_loader_destroy(&loader);
 *
 * Opening reads headers, indices and metadata; loading reads payload, with worker threads or io_uring, in file order. Callbacks
 * (place, deliver, progress, trace) run on the thread that called hurray_loader_load, with no lock held; one that returns a failing
 * code stops the load with that code. Worker threads call transports (one at a time unless they are concurrent), concurrent
 * destinations, and the allocator; they have ended when hurray_loader_load returns.
 *
 * What a failure costs: the first failing tensor in file order is reported; a failed or cancelled load makes no set and frees what
 * was not delivered; the loader can load again.
 */
#ifndef HURRAY_LOADER_H
#define HURRAY_LOADER_H

#include "hurray.h"
#include "hurray/destination.h"

HURRAY_BEGIN

typedef struct HurrayLoader HurrayLoader;
typedef struct HurrayTensorSet HurrayTensorSet;

/* HurrayLoaderOptions.target */
#define HURRAY_TARGET_HOST 0u     /**< host memory, whatever the file declares */
#define HURRAY_TARGET_DEVICE 1u   /**< device_tag, device_index */
#define HURRAY_TARGET_BEST 2u     /**< a device that holds the whole selection, else the host */
#define HURRAY_TARGET_DECLARED 3u /**< what the file says; the host where that cannot be had, and HurrayPathStats.reason says so */

/* HurrayLoaderOptions.flags */
#define HURRAY_LOAD_ARENA 1u     /**< one allocation per device */
#define HURRAY_LOAD_READ_ONLY 2u /**< the caller will not write: a warm file's mapping itself may be handed out */

/* HurrayPlacement.action */
#define HURRAY_PLACE_LOAD 0u
#define HURRAY_PLACE_SKIP 1u

/** Where one tensor goes; filled from the options before `place` is called. Pointers are borrowed until the load returns. */
typedef struct HurrayPlacement {
    uint32_t struct_size, action;
    int32_t device_index; /**< -1: the first with room */
    uint8_t device_tag, sync_mode, memory_class, reserved;
    void *consumer_stream, *copy_stream;
    const HurrayMemory *into; size_t into_count; /**< the caller's own memory there, one per buffer; undefined after a failure */
    void *user; /**< reaches the destination's request */
} HurrayPlacement;

typedef struct HurrayProgress {
    uint32_t struct_size, reserved;
    uint64_t bytes_done, bytes_total, tensors_done, tensors_total, elapsed_ns;
    const uint8_t *name; size_t name_len; /**< of the tensor completed last */
} HurrayProgress;

/* HurrayTraceEvent.stage */
#define HURRAY_STAGE_READ 0u
#define HURRAY_STAGE_COPY 1u
#define HURRAY_STAGE_CHECK 2u
#define HURRAY_STAGE_WAIT 3u
/** One read, copy, check or wait. Times from the load's begin. lane: thread or stream. */
typedef struct HurrayTraceEvent {
    uint32_t struct_size, stage;
    uint64_t begin_ns, end_ns, bytes, tensor_index; uint32_t source_index, lane;
} HurrayTraceEvent;

/* HurrayLoaderOptions.io, HurrayPathStats.io */
#define HURRAY_IO_AUTO 0u
#define HURRAY_IO_URING 1u
#define HURRAY_IO_THREADS 2u
#define HURRAY_IO_MMAP 3u /**< host only; never chosen unasked but with HURRAY_LOAD_READ_ONLY: a file that shrinks raises SIGBUS */

/**
 * io, direct and huge_pages are wishes: what is refused or does not fit goes another way and HurrayPathStats.reason says why. Of the
 * switches only pinned ON fails. threads, queue_depth and chunk_bytes beyond their limits become the nearest, with a reason, too.
 */
typedef struct HurrayLoaderOptions {
    uint32_t struct_size, flags; /**< HURRAY_LOAD_... */
    uint32_t target; int32_t device_index;
    uint8_t device_tag, sync_mode, memory_class, reserved[5];
    void *consumer_stream, *copy_stream;
    /** Once per selected tensor and selection, before payload is read. */
    HurrayStatus (*place)(void *ctx, const HurrayTensorInfo *tensor, HurrayPlacement *placement);
    /** Each tensor when it is whole; on OK it is the callback's and its place in the set is empty. */
    HurrayStatus (*deliver)(void *ctx, uint64_t index, HurrayTensor *tensor);
    /** At 0, at most once per interval, at the end. */
    HurrayStatus (*progress)(void *ctx, const HurrayProgress *progress);
    void (*trace)(void *ctx, const HurrayTraceEvent *event);
    void *ctx; /**< of the four callbacks */
    uint32_t progress_interval_ms; /**< default 100 */
    uint32_t io;          /**< HURRAY_IO_... */
    uint32_t direct;      /**< past the page cache; AUTO: by what it holds */
    uint32_t huge_pages;  /**< ON: reserved huge pages; AUTO: advice */
    uint32_t pinned;      /**< staging; AUTO: less, then pageable where pinning is refused; ON: else fail */
    uint32_t verify_data; /**< HURRAY_VERIFY_... */
    uint32_t threads;     /**< readers, up to 256; 0: by the machine; 1: only the caller's thread */
    uint32_t queue_depth; /**< reads in flight, up to 1024 with io_uring */
    uint64_t chunk_bytes; /**< of a read, 4 KiB to 1 GiB */
    uint64_t pinned_cap;  /**< most pinned staging, default 256 MiB */
    uint64_t memory_cap;  /**< host memory of a load beyond what is delivered, catalogue apart; default pinned_cap + 32 MiB */
    const HurrayDestinationAlloc *destination; /**< the caller's own */
    const HurrayDeviceMemory *device_memory; uint64_t device_alignment; /**< 4096, down to 256 */
    const HurrayAllocator *allocator;
    uint64_t max_tensors, max_index_bytes, max_kv_bytes, max_descriptor_bytes, max_tensor_bytes; /**< as HurrayFileReaderOptions */
    uint32_t max_composite_depth, reserved2; /**< reserved2: 0 */
} HurrayLoaderOptions;
#define HURRAY_LOADER_OPTIONS_INIT { .struct_size = sizeof(HurrayLoaderOptions), .device_index = -1 }

/* ---- devices ---- */

/** sync_modes, memory_classes: bit n is set when mode or class n can be had. numa_node -1: unknown. */
typedef struct HurrayDeviceInfo { uint32_t struct_size; int32_t numa_node; uint64_t total_bytes, free_bytes; uint32_t sync_modes, memory_classes; char name[128], pci[32], uuid[48]; } HurrayDeviceInfo;
#define HURRAY_DEVICE_INFO_INIT { .struct_size = sizeof(HurrayDeviceInfo) }
/** pinned_limit HURRAY_NONE: no limit. uring: 1 when io_uring can be used, else uring_reason says why not. */
typedef struct HurrayHostInfo { uint32_t struct_size, cores, numa_nodes, uring; uint64_t memory_bytes, pinned_limit, page_size, huge_page_size; char uring_reason[128]; } HurrayHostInfo;
#define HURRAY_HOST_INFO_INIT { .struct_size = sizeof(HurrayHostInfo) }

/** Devices of a kind. No driver, or a library built without: 0, no error. */
HURRAY_API HurrayStatus hurray_device_count(uint8_t device_tag, uint32_t *out, HurrayError *error);
/** By ordinal, UUID or bus id. NO_DEVICE: none such, and the message says why. */
HURRAY_API HurrayStatus hurray_device_find(uint8_t device_tag, const void *text, size_t len, int32_t *index, HurrayError *error);
/** hurray_device_info flags: free_bytes too (this makes a context on the device). */
#define HURRAY_DEVICE_FREE_BYTES 1u
/** NO_DEVICE: no such device, and the message says why there is none. */
HURRAY_API HurrayStatus hurray_device_info(uint8_t device_tag, int32_t device_index, uint32_t flags, HurrayDeviceInfo *out, HurrayError *error);
HURRAY_API HurrayStatus hurray_host_info(HurrayHostInfo *out, HurrayError *error);

/* ---- opening ---- */

/** A path or a transport, not both; label: how messages call it. Never grows. */
typedef struct HurraySource { const char *path; const HurrayTransport *transport; const void *label; size_t label_len; uint64_t reserved[2]; } HurraySource;
/**
 * A file, a safetensors index, or the folder that holds a sharded model; recognised by content. UNSUPPORTED names a kind of file that
 * is not read and what to do; else as hurray_file_reader_new, and DUPLICATE_NAME across shards.
 */
HURRAY_API HurrayStatus hurray_loader_open(const char *path, const HurrayLoaderOptions *options, HurrayLoader **out, HurrayError *error);
/** Several sources as one model. On OK the transports belong to the loader. */
HURRAY_API HurrayStatus hurray_loader_open_sources(const HurraySource *sources, size_t count, const HurrayLoaderOptions *options, HurrayLoader **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_loader_source_count(const HurrayLoader *loader, uint32_t *out);
/** INDEX_OUT_OF_BOUNDS. */
HURRAY_API HurrayStatus hurray_loader_source_info(const HurrayLoader *loader, uint32_t source, HurraySourceInfo *out);
/** Tensors of all sources, in write order, sources as given. */
HURRAY_API HurrayStatus hurray_loader_tensor_count(const HurrayLoader *loader, uint64_t *out);
/** May read the descriptor; parent and member_count are set. A spoiled tensor is no failure of this call: info->fault says what is wrong. */
HURRAY_API HurrayStatus hurray_loader_tensor_info(HurrayLoader *loader, uint64_t i, HurrayTensorInfo *out);
/** NOT_FOUND. Tensors of a stream have no names. */
HURRAY_API HurrayStatus hurray_loader_find(const HurrayLoader *loader, const void *name, size_t len, uint64_t *i);
/* Metadata, joined over sources (the first of a key wins; a note says so). Borrowed until the loader is destroyed. */
HURRAY_API HurrayStatus hurray_loader_kv_count(const HurrayLoader *loader, uint64_t *out);
HURRAY_API HurrayStatus hurray_loader_kv_entry(const HurrayLoader *loader, uint64_t i, HurrayKvEntry *out);
HURRAY_API HurrayStatus hurray_loader_kv_find(const HurrayLoader *loader, const void *key, size_t len, HurrayKvEntry *out);
/* What was noticed at open and is no error. Borrowed until the loader is destroyed. */
HURRAY_API HurrayStatus hurray_loader_note_count(const HurrayLoader *loader, uint64_t *out);
HURRAY_API HurrayStatus hurray_loader_note(const HurrayLoader *loader, uint64_t i, const HurrayError **out);

/* ---- choosing; nothing chosen is everything; a head brings its members ---- */

/** NOT_FOUND. */
HURRAY_API HurrayStatus hurray_loader_select_name(HurrayLoader *loader, const void *name, size_t len);
/** * ? [..] and \ over the whole name. NOT_FOUND: nothing matches. */
HURRAY_API HurrayStatus hurray_loader_select_glob(HurrayLoader *loader, const void *pattern, size_t len);
/** INDEX_OUT_OF_BOUNDS. */
HURRAY_API HurrayStatus hurray_loader_select_index(HurrayLoader *loader, uint64_t i);
HURRAY_API HurrayStatus hurray_loader_select_clear(HurrayLoader *loader);

/* ---- loading ---- */

/** What will land on a device, padding included, and in how many buffers; no payload is read. */
HURRAY_API HurrayStatus hurray_loader_plan(HurrayLoader *loader, uint8_t device_tag, int32_t device_index, uint64_t *bytes, uint64_t *buffers);
/**
 * Loads the selection; may be called again. Checked before a payload byte is read: names, sizes, placement, devices (NO_DEVICE),
 * spoiled tensors, limits. Then TRUNCATED, CHECKSUM, INVALID_DATA, TRANSPORT, DEVICE, NO_MEMORY, CANCELLED, a callback's own.
 */
HURRAY_API HurrayStatus hurray_loader_load(HurrayLoader *loader, HurrayTensorSet **out);
/** From any thread, a signal handler too, but not during destroy; sticks until a load has returned CANCELLED (within one chunk's time). */
HURRAY_API HurrayStatus hurray_loader_cancel(HurrayLoader *loader);
/** len bytes of one buffer as it will be loaded (unpacked, swapped, packed). In order from first to last they are verified as options say. */
HURRAY_API HurrayStatus hurray_loader_read_bytes(HurrayLoader *loader, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len);
/**
 * count elements of tensor i from row-major number `first` on, in `type` (0, HURRAY_TYPE_FLOAT32: hurray/dense.h), as the tensor's dense
 * view has them, from only as much of the file as they need, a little at a time. Pieces of a multiple of 8 elements (of GGML blocks: of
 * 256) join to the whole; in order from first to last they are verified as options say. For row-major tensors and GGML blocks;
 * UNSUPPORTED: other layouts, composites, quantization blocks along a dimension that others follow; load those. INDEX_OUT_OF_BOUNDS,
 * BUFFER_TOO_SMALL; INVALID_DATA: an element or scale without a value.
 */
HURRAY_API HurrayStatus hurray_loader_read_dense(HurrayLoader *loader, uint64_t i, uint8_t type, uint64_t first, uint64_t count, void *dst, size_t len);
/**
 * len bytes of one buffer of what hurray_tensor_from_ggml makes of tensor i (hurray/import.h), from its blocks, a few at a time. Pieces of
 * a multiple of 256 bytes, in order from first to last, are verified as options say. INVALID_DATA (field "scale"): a scale that cannot be
 * held, met in buffers 0 and 1. UNSUPPORTED as there, INDEX_OUT_OF_BOUNDS.
 */
HURRAY_API HurrayStatus hurray_loader_read_native(HurrayLoader *loader, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len);

/* hurray_loader_verify: what */
#define HURRAY_CHECK_PADDING 1u /**< between sections and buffers */
#define HURRAY_CHECK_DATA 2u    /**< rules that need data, statistics' ranges */
#define HURRAY_CHECK_SUMS 4u    /**< stored checksums */
/**
 * Checks everything, whatever is selected. Each finding is handed to found (a failing code stops); returns the first finding's code, or OK.
 */
HURRAY_API HurrayStatus hurray_loader_verify(HurrayLoader *loader, uint32_t what, HurrayStatus (*found)(void *ctx, const HurrayError *finding), void *ctx);

/**
 * Of the last load. Times are sums over threads, but for total_ns and overlap_ns (reads and copies under way at once). bytes_copied: in
 * copies to devices, gaps between buffers included; with event or consumer-stream sync some of these may still be under way.
 */
typedef struct HurrayLoadStats {
    uint32_t struct_size, path_count;
    uint64_t tensors, payload_bytes, bytes_read, bytes_copied, bytes_in_place, bytes_verified;
    uint64_t ranges, peak_pinned, peak_host, total_ns, read_ns, copy_ns, verify_ns, wait_ns, overlap_ns;
} HurrayLoadStats;
#define HURRAY_LOAD_STATS_INIT { .struct_size = sizeof(HurrayLoadStats) }

#define HURRAY_STAGING_NONE 0u
#define HURRAY_STAGING_PINNED 1u
#define HURRAY_STAGING_PAGEABLE 2u
/**
 * What was really used for one source and device; of a source that was mapped in part there are two, the mapped bytes and those that were
 * read. direct: HURRAY_ON or _OFF. reason: NULL, or why it is not what was asked, one sentence or several.
 */
typedef struct HurrayPathStats {
    uint32_t struct_size, source_index;
    uint32_t io, direct, staging; int32_t device_index, numa_node; uint8_t device_tag, sync_mode, memory_class, reserved;
    uint32_t threads, queue_depth;
    uint64_t bytes, ranges, busy_ns;
    const char *reason; /**< valid until the next load */
} HurrayPathStats;
#define HURRAY_PATH_STATS_INIT { .struct_size = sizeof(HurrayPathStats) }
HURRAY_API HurrayStatus hurray_loader_stats(const HurrayLoader *loader, HurrayLoadStats *out);
/** INDEX_OUT_OF_BOUNDS. */
HURRAY_API HurrayStatus hurray_loader_path_stats(const HurrayLoader *loader, uint32_t i, HurrayPathStats *out);
HURRAY_API const HurrayError *hurray_loader_last_error(const HurrayLoader *loader);
HURRAY_API HurrayStatus hurray_loader_destroy(HurrayLoader **loader);

/* ---- what was loaded: in file order, sources as given ---- */

HURRAY_API HurrayStatus hurray_tensor_set_count(const HurrayTensorSet *set, uint64_t *out);
/** Borrowed until the set is destroyed; NULL for tensors of a stream. INDEX_OUT_OF_BOUNDS. */
HURRAY_API HurrayStatus hurray_tensor_set_name(const HurrayTensorSet *set, uint64_t i, const uint8_t **name, size_t *len);
/** NOT_FOUND. */
HURRAY_API HurrayStatus hurray_tensor_set_find(const HurrayTensorSet *set, const void *name, size_t len, uint64_t *i);
/** Borrows; WRONG_STATE: taken or delivered already. */
HURRAY_API HurrayStatus hurray_tensor_set_get(const HurrayTensorSet *set, uint64_t i, HurrayTensor **borrowed);
/** Moves one out: it is the caller's. */
HURRAY_API HurrayStatus hurray_tensor_set_take(HurrayTensorSet *set, uint64_t i, HurrayTensor **out);
/** Moves a head and its members out as an item. NOT_COMPOSITE. */
HURRAY_API HurrayStatus hurray_tensor_set_take_item(HurrayTensorSet *set, uint64_t i, HurrayItem **out);
HURRAY_API HurrayStatus hurray_tensor_set_destroy(HurrayTensorSet **set);

HURRAY_END
#endif
