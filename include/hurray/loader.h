#ifndef HURRAY_LOADER_H
#define HURRAY_LOADER_H
#include "hurray.h"
#include "hurray/destination.h"
HURRAY_BEGIN
typedef struct HurrayLoader HurrayLoader;
typedef struct HurrayTensorSet HurrayTensorSet;
#define HURRAY_TARGET_HOST 0u
#define HURRAY_TARGET_DEVICE 1u
#define HURRAY_TARGET_BEST 2u
#define HURRAY_TARGET_DECLARED 3u
#define HURRAY_LOAD_ARENA 1u
#define HURRAY_LOAD_READ_ONLY 2u
#define HURRAY_PLACE_LOAD 0u
#define HURRAY_PLACE_SKIP 1u
typedef struct HurrayPlacement {
    uint32_t struct_size, action;
    int32_t device_index;
    uint8_t device_tag, sync_mode, memory_class, reserved;
    void *consumer_stream, *copy_stream;
    const HurrayMemory *into; size_t into_count;
    void *user;
} HurrayPlacement;
typedef struct HurrayProgress {
    uint32_t struct_size, reserved;
    uint64_t bytes_done, bytes_total, tensors_done, tensors_total, elapsed_ns;
    const uint8_t *name; size_t name_len;
} HurrayProgress;
#define HURRAY_STAGE_READ 0u
#define HURRAY_STAGE_COPY 1u
#define HURRAY_STAGE_CHECK 2u
#define HURRAY_STAGE_WAIT 3u
typedef struct HurrayTraceEvent {
    uint32_t struct_size, stage;
    uint64_t begin_ns, end_ns, bytes, tensor_index; uint32_t source_index, lane;
} HurrayTraceEvent;
#define HURRAY_IO_AUTO 0u
#define HURRAY_IO_URING 1u
#define HURRAY_IO_THREADS 2u
#define HURRAY_IO_MMAP 3u
typedef struct HurrayLoaderOptions {
    uint32_t struct_size, flags;
    uint32_t target; int32_t device_index;
    uint8_t device_tag, sync_mode, memory_class, reserved[5];
    void *consumer_stream, *copy_stream;
    HurrayStatus (*place)(void *ctx, const HurrayTensorInfo *tensor, HurrayPlacement *placement);
    HurrayStatus (*deliver)(void *ctx, uint64_t index, HurrayTensor *tensor);
    HurrayStatus (*progress)(void *ctx, const HurrayProgress *progress);
    void (*trace)(void *ctx, const HurrayTraceEvent *event);
    void *ctx;
    uint32_t progress_interval_ms;
    /* how */
    uint32_t io, direct, huge_pages, pinned, verify_data, threads, queue_depth;
    uint64_t chunk_bytes, pinned_cap, memory_cap;
    const HurrayDestinationAlloc *destination;
    const HurrayDeviceMemory *device_memory; uint64_t device_alignment;
    const HurrayAllocator *allocator;
    /* limits */
    uint64_t max_tensors, max_index_bytes, max_kv_bytes, max_descriptor_bytes, max_tensor_bytes;
    uint32_t max_composite_depth;
} HurrayLoaderOptions;
#define HURRAY_LOADER_OPTIONS_INIT { .struct_size = sizeof(HurrayLoaderOptions), .device_index = -1 }
typedef struct HurrayDeviceInfo { uint32_t struct_size; int32_t numa_node; uint64_t total_bytes, free_bytes; uint32_t sync_modes, memory_classes; char name[128], pci[32], uuid[48]; } HurrayDeviceInfo;
#define HURRAY_DEVICE_INFO_INIT { .struct_size = sizeof(HurrayDeviceInfo) }
typedef struct HurrayHostInfo { uint32_t struct_size, cores, numa_nodes, uring; uint64_t memory_bytes, pinned_limit, page_size, huge_page_size; char uring_reason[128]; } HurrayHostInfo;
#define HURRAY_HOST_INFO_INIT { .struct_size = sizeof(HurrayHostInfo) }
HURRAY_API HurrayStatus hurray_device_count(uint8_t device_tag, uint32_t *out, HurrayError *);
#define HURRAY_DEVICE_FREE_BYTES 1u
HURRAY_API HurrayStatus hurray_device_find(uint8_t device_tag, const void *text, size_t len, int32_t *index, HurrayError *);
HURRAY_API HurrayStatus hurray_device_info(uint8_t device_tag, int32_t device_index, uint32_t flags, HurrayDeviceInfo *, HurrayError *);
HURRAY_API HurrayStatus hurray_host_info(HurrayHostInfo *, HurrayError *);
typedef struct HurraySource { const char *path; const HurrayTransport *transport; const void *label; size_t label_len; uint64_t reserved[2]; } HurraySource;
HURRAY_API HurrayStatus hurray_loader_open(const char *path, const HurrayLoaderOptions *, HurrayLoader **, HurrayError *);
HURRAY_API HurrayStatus hurray_loader_open_sources(const HurraySource *, size_t count, const HurrayLoaderOptions *, HurrayLoader **, HurrayError *);
HURRAY_API HurrayStatus hurray_loader_source_count(const HurrayLoader *, uint32_t *);
HURRAY_API HurrayStatus hurray_loader_tensor_count(const HurrayLoader *, uint64_t *);
HURRAY_API HurrayStatus hurray_loader_tensor_info(HurrayLoader *, uint64_t i, HurrayTensorInfo *);   /* may read the descriptor */
HURRAY_API HurrayStatus hurray_loader_find(const HurrayLoader *, const void *name, size_t len, uint64_t *);
HURRAY_API HurrayStatus hurray_loader_kv_count(const HurrayLoader *, uint64_t *);
HURRAY_API HurrayStatus hurray_loader_kv_entry(const HurrayLoader *, uint64_t i, HurrayKvEntry *);
HURRAY_API HurrayStatus hurray_loader_kv_find(const HurrayLoader *, const void *key, size_t len, HurrayKvEntry *);
HURRAY_API HurrayStatus hurray_loader_select_name(HurrayLoader *, const void *name, size_t len);
HURRAY_API HurrayStatus hurray_loader_select_glob(HurrayLoader *, const void *pattern, size_t len);
HURRAY_API HurrayStatus hurray_loader_select_index(HurrayLoader *, uint64_t i);
HURRAY_API HurrayStatus hurray_loader_select_clear(HurrayLoader *);
HURRAY_API HurrayStatus hurray_loader_plan(HurrayLoader *, uint8_t device_tag, int32_t device_index, uint64_t *bytes, uint64_t *buffers);
HURRAY_API HurrayStatus hurray_loader_load(HurrayLoader *, HurrayTensorSet **);
HURRAY_API HurrayStatus hurray_loader_cancel(HurrayLoader *);
HURRAY_API HurrayStatus hurray_loader_read_bytes(HurrayLoader *, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len);
#define HURRAY_CHECK_PADDING 1u
#define HURRAY_CHECK_DATA 2u
#define HURRAY_CHECK_SUMS 4u
HURRAY_API HurrayStatus hurray_loader_verify(HurrayLoader *, uint32_t what, HurrayStatus (*found)(void *ctx, const HurrayError *finding), void *ctx);
HURRAY_API HurrayStatus hurray_loader_source_info(const HurrayLoader *, uint32_t source, HurraySourceInfo *);
HURRAY_API HurrayStatus hurray_loader_note_count(const HurrayLoader *, uint64_t *);
HURRAY_API HurrayStatus hurray_loader_note(const HurrayLoader *, uint64_t i, const HurrayError **);
typedef struct HurrayLoadStats {
    uint32_t struct_size, path_count;
    uint64_t tensors, payload_bytes, bytes_read, bytes_copied, bytes_in_place, bytes_verified;
    uint64_t ranges, peak_pinned, peak_host, total_ns, read_ns, copy_ns, verify_ns, wait_ns, overlap_ns;
} HurrayLoadStats;
#define HURRAY_LOAD_STATS_INIT { .struct_size = sizeof(HurrayLoadStats) }
#define HURRAY_STAGING_NONE 0u
#define HURRAY_STAGING_PINNED 1u
#define HURRAY_STAGING_PAGEABLE 2u
typedef struct HurrayPathStats {
    uint32_t struct_size, source_index;
    uint32_t io, direct, staging; int32_t device_index, numa_node; uint8_t device_tag, sync_mode, memory_class, reserved;
    uint32_t threads, queue_depth;
    uint64_t bytes, ranges, busy_ns;
    const char *reason;
} HurrayPathStats;
#define HURRAY_PATH_STATS_INIT { .struct_size = sizeof(HurrayPathStats) }
HURRAY_API HurrayStatus hurray_loader_stats(const HurrayLoader *, HurrayLoadStats *);
HURRAY_API HurrayStatus hurray_loader_path_stats(const HurrayLoader *, uint32_t i, HurrayPathStats *);
HURRAY_API const HurrayError *hurray_loader_last_error(const HurrayLoader *);
HURRAY_API HurrayStatus hurray_loader_destroy(HurrayLoader **);
HURRAY_API HurrayStatus hurray_tensor_set_count(const HurrayTensorSet *, uint64_t *);
HURRAY_API HurrayStatus hurray_tensor_set_name(const HurrayTensorSet *, uint64_t i, const uint8_t **, size_t *);
HURRAY_API HurrayStatus hurray_tensor_set_find(const HurrayTensorSet *, const void *name, size_t len, uint64_t *i);
HURRAY_API HurrayStatus hurray_tensor_set_get(const HurrayTensorSet *, uint64_t i, HurrayTensor **borrowed);
HURRAY_API HurrayStatus hurray_tensor_set_take(HurrayTensorSet *, uint64_t i, HurrayTensor **out);
HURRAY_API HurrayStatus hurray_tensor_set_take_item(HurrayTensorSet *, uint64_t i, HurrayItem **out);
HURRAY_API HurrayStatus hurray_tensor_set_destroy(HurrayTensorSet **);
HURRAY_END
#endif
