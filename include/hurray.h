/**
 * @file
 * libhurray: model weights from where they lie into the memory where an engine needs them.
 *
 * The simplest use, a named tensor of a .hrry file (samples/own_transport_read.c runs it):
 *
 *     HurrayTransport transport = { .ctx = &fd, .read_at = my_read_at, .size = my_size };
 *     HurrayFileReader *reader = NULL;
 *     hurray_file_reader_new(&transport, &reader);
 *     HurrayTensor *tensor = NULL;
 *     hurray_file_reader_read_tensor(reader, "embeddings", 10, &tensor);
 *     ...
 *     hurray_tensor_destroy(&tensor);
 *     hurray_file_reader_destroy(&reader);
 *
 * Ready-made transports are in hurray/transport.h; the loader, which opens any format, reads in parallel and reaches GPUs, is in
 * hurray/loader.h; destinations for a buffer's bytes in hurray/destination.h; the state machines without I/O in hurray/core.h.
 *
 * Conventions that hold everywhere and are not repeated:
 *
 * - Every call that can fail returns a HurrayStatus: HURRAY_OK or a code of hurray/error.h, where each is explained. Results go
 *   through out-pointers, written only on success (an in/out length also with HURRAY_ERR_BUFFER_TOO_SMALL).
 * - A NULL pointer where one is needed is HURRAY_ERR_NULL_POINTER. NULL with length 0 is empty text or an empty array.
 * - Handles are opaque. `hurray_..._destroy(&handle)` frees the handle and sets the variable to NULL; a pointer to NULL is fine;
 *   it never fails. hurray_buffer_destroy and hurray_descriptor_destroy take the handle itself.
 * - Text is a pointer and a length, UTF-8, no NUL needed. What comes out is borrowed until the handle it came from is destroyed,
 *   unless said otherwise. Slices, names, specs and options that go in are borrowed for the call only.
 * - "On OK X belongs to Y" means that on failure it stays with the caller.
 * - Option structs, vtables and results begin with struct_size: use their _INIT macro (in C++: zero the struct, set struct_size).
 *   NULL options are the defaults, and so is a zero in an option. A struct_size below the first release's is
 *   HURRAY_ERR_INVALID_ARGUMENT; a member of a newer release that is not zero is HURRAY_ERR_UNSUPPORTED.
 * - A last argument `HurrayError *error` may be NULL; it is written only on failure. Handles keep their own record:
 *   `hurray_..._last_error(handle)`, of the handle's last call, valid until its next one. Where it is not needed to understand the
 *   code, after HURRAY_ERR_NULL_POINTER and HURRAY_ERR_BUSY, it may be the one of the call before.
 * - Sizes and offsets are bytes unless said otherwise.
 * - Threads: one handle, one thread at a time (HURRAY_ERR_BUSY as far as it is noticed); different handles are independent. Reading
 *   accessors of descriptors, tensors, buffers and items may run on several threads at once. Anything may be destroyed on any
 *   thread. Objects outlive those they came from: a tensor its reader, a buffer its destination.
 * - A callback never calls the handle that called it. It may return any negative code, which the caller gets back; codes of
 *   one's own are below -1000.
 * - The library prints nothing, installs no signal handler, has no global state, and has no thread but the loader's.
 */
#ifndef HURRAY_H
#define HURRAY_H

#include "hurray/error.h"
#include "hurray/tags.h"

HURRAY_BEGIN

/** 1000 x the shared library's major version + additions since. Compatible: same thousands, run time >= compile time. */
#define HURRAY_C_ABI_VERSION 1000
/** The number that the library was built with. */
HURRAY_API uint32_t hurray_c_abi_version(void);

/* Three-way switches in options: the library decides; must; must not. */
#define HURRAY_AUTO 0u
#define HURRAY_ON 1u
#define HURRAY_OFF 2u

typedef struct HurrayBuffer HurrayBuffer;
typedef struct HurrayBufferList HurrayBufferList;
typedef struct HurrayDescriptor HurrayDescriptor;
typedef struct HurrayTensor HurrayTensor;
typedef struct HurrayItem HurrayItem;
typedef struct HurrayReader HurrayReader;
typedef struct HurrayWriter HurrayWriter;
typedef struct HurrayFileReader HurrayFileReader;
typedef struct HurrayFileWriter HurrayFileWriter;
typedef struct HurrayDestinationAlloc HurrayDestinationAlloc;

/**
 * Host memory for bookkeeping: a handle takes all of it from here, and so does what comes from the handle (tensors, items,
 * descriptors). Payload is the destination's. The struct is copied; ctx must live until the last object from it is gone. Must be
 * thread-safe when a loader has threads or objects are destroyed on several. Both callbacks are required.
 */
typedef struct HurrayAllocator {
    uint32_t struct_size;
    uint32_t reserved; /**< 0 */
    void *ctx;
    void *(*allocate)(void *ctx, size_t size, size_t alignment); /**< size > 0, alignment a power of two; NULL is NO_MEMORY */
    void (*deallocate)(void *ctx, void *memory, size_t size, size_t alignment); /**< size and alignment as they were allocated */
} HurrayAllocator;
#define HURRAY_ALLOCATOR_INIT { .struct_size = sizeof(HurrayAllocator) }

/**
 * Where bytes come from and go to. Blocking by contract. Fill by member name; callbacks that are not needed stay NULL, numbers 0.
 *
 * For read, write and read_at: len is 1 to 2^30; *out is 0 before the call; fewer bytes than asked for are normal; a failing call
 * moved nothing; a count above len is HURRAY_ERR_INVALID_REPORT and makes the handle unusable. Interrupted calls (EINTR) are the
 * callback's to repeat. A callback that returns HURRAY_ERR_TRANSPORT may leave errno set: the error record's system_error.
 * HURRAY_ERR_CANCELLED from a callback cancels the blocking call.
 *
 * The struct is copied by whoever takes it. On OK from a `_new` the transport belongs to the handle (and its clones); release is
 * called once, when the last of them is destroyed. On failure release was not called.
 */
typedef struct HurrayTransport {
    void *ctx; /**< the caller's, handed to each callback */
    HurrayStatus (*read)(void *ctx, uint8_t *dst, size_t len, size_t *out_filled);         /**< the next bytes; 0: end of input */
    HurrayStatus (*write)(void *ctx, const uint8_t *src, size_t len, size_t *out_written); /**< 0: the sink is closed */
    /** Bytes from an absolute offset, no cursor kept; 0: the file is shorter than it claims. */
    HurrayStatus (*read_at)(void *ctx, uint64_t offset, uint8_t *dst, size_t len, size_t *out_filled);
    HurrayStatus (*size)(void *ctx, uint64_t *out_size); /**< of the whole file; asked once, at open */
    void (*release)(void *ctx);                          /**< optional: ctx is needed no more */
    HurrayStatus (*finish)(void *ctx); /**< optional: after a writer's last byte (flush, fsync, rename); repeated when finish is */
    uint32_t struct_size;              /**< 0: the first release */
    uint32_t flags;                    /**< HURRAY_TRANSPORT_... */
    uint32_t io_alignment; /**< 0 or 1: none. Else offset, length and address of each read_at are multiples; the last may pass the end */
    uint32_t reserved;     /**< 0 */
} HurrayTransport;
/** HurrayTransport.flags: read_at may run on several threads at once. */
#define HURRAY_TRANSPORT_CONCURRENT 1u

/** Bytes to write, borrowed. */
typedef struct HurrayIoSlice { const void *ptr; size_t len; } HurrayIoSlice;
/** Memory to fill, the caller's. */
typedef struct HurrayMemory { void *ptr; size_t len; } HurrayMemory;

/* ---- key-value metadata (docs/format.md 9.3) ---- */

#define HURRAY_KV_STRING 1u
#define HURRAY_KV_INT64 2u
#define HURRAY_KV_UINT64 3u
#define HURRAY_KV_FLOAT64 4u
#define HURRAY_KV_BOOL 5u
#define HURRAY_KV_BYTES 6u
#define HURRAY_KV_ARRAY 7u

/**
 * A value, the same struct in both directions. STRING, BYTES: data, data_len bytes. Numbers and BOOL (0, 1): the union. ARRAY:
 * data_len elements of kind `element` as int64_t, uint64_t, double, uint8_t (BOOL), HurrayIoSlice (STRING, BYTES); importers of
 * foreign formats also hand out arrays of HurrayKvValue (ARRAY of ARRAY), which cannot be written to a Hurray file.
 */
typedef struct HurrayKvValue {
    uint32_t kind;
    uint32_t element;
    const void *data;
    size_t data_len;
    union { int64_t i64; uint64_t u64; double f64; uint64_t boolean; };
} HurrayKvValue;
/** Keys are unique, UTF-8, 1 to 65,535 bytes. */
typedef struct HurrayKvEntry { const void *key; size_t key_len; HurrayKvValue value; } HurrayKvEntry;

/* ---- buffers ---- */

/** Frees a buffer's memory: called exactly once, on any thread, calls nothing of this library. */
typedef void (*HurrayReleaseCallback)(void *data, void *context);
/** Releases an event: exactly once, on any thread. */
typedef void (*HurrayEventReleaseFn)(void *sync_handle, void *context);

/** An event to wait on before the buffer is used; whoever holds it calls event_release_fn once. */
typedef struct HurraySyncEventPayload {
    void *sync_handle;              /**< a cudaEvent_t for CUDA */
    uint8_t sync_handle_device_tag; /**< HURRAY_DEVICE_... */
    HurrayEventReleaseFn event_release_fn;
    void *event_release_context;
} HurraySyncEventPayload;
/** The stream that was made to wait for the buffer's bytes. */
typedef struct HurraySyncConsumerStreamPayload {
    void *consumer_stream; /**< a cudaStream_t for CUDA, never NULL */
    uint8_t consumer_stream_device_tag;
} HurraySyncConsumerStreamPayload;

/* HurrayBufferInfo.flags */
#define HURRAY_BUFFER_READ_ONLY 1u /**< must not be written: a mapping of the file */
#define HURRAY_BUFFER_IN_PLACE 2u  /**< the bytes were not copied: they lie in the source's own memory */

/** All that a buffer is. */
typedef struct HurrayBufferInfo {
    uint32_t struct_size;
    uint32_t flags;
    void *data;         /**< host or device address, by device_tag; may be NULL when byte_size is 0 */
    uint64_t byte_size;
    uint32_t alignment; /**< of data, a power of two, at least 64 unless empty */
    int32_t device_index; /**< which device of that tag; -1: unknown, or the host */
    uint8_t device_tag, sync_mode, memory_class, reserved[5];
    HurrayReleaseCallback release; /**< NULL: the memory is not the buffer's to free */
    void *release_context;
    HurraySyncEventPayload event; /**< sync_mode event: recorded after the last copy; else zero */
    /** Makes `stream` (NULL: the calling host thread) wait for the event; NULL where there is nothing to wait for. */
    HurrayStatus (*order)(void *sync_handle, void *event_release_context, void *stream);
} HurrayBufferInfo;
#define HURRAY_BUFFER_INFO_INIT { .struct_size = sizeof(HurrayBufferInfo) }

/**
 * A buffer over memory that is there already. On OK the memory belongs to the buffer.
 * Errors: INVALID_TYPE (device tag, class, or their pair), INVALID_SYNC_MODE (CPU memory is producer-synced), INVALID_LAYOUT
 * (alignment no power of two, below 64 for a buffer that is not empty, or not kept by data), NO_MEMORY. docs/format.md 1.2.
 */
HURRAY_API HurrayStatus hurray_buffer_from_ptr(void *data, uint64_t byte_size, uint32_t alignment, uint8_t device_tag,
    uint8_t sync_mode, uint8_t memory_class, HurrayReleaseCallback release, void *release_context, HurrayBuffer **out_handle);
/** The same with everything that a buffer can have: device index, flags, event. allocator NULL: the C library's memory. */
HURRAY_API HurrayStatus hurray_buffer_new(const HurrayBufferInfo *info, const HurrayAllocator *allocator, HurrayBuffer **out, HurrayError *error);
/** Releases the event if it was never taken, then the memory. Device work of the caller on the buffer must be done. */
HURRAY_API HurrayStatus hurray_buffer_destroy(HurrayBuffer *buffer);
/** Host or device address, by the device tag. */
HURRAY_API HurrayStatus hurray_buffer_data_ptr(const HurrayBuffer *buffer, void **out_data);
HURRAY_API HurrayStatus hurray_buffer_byte_size(const HurrayBuffer *buffer, uint64_t *out);
/** What the address keeps: at least what the descriptor's handle declares. */
HURRAY_API HurrayStatus hurray_buffer_alignment(const HurrayBuffer *buffer, uint32_t *out);
HURRAY_API HurrayStatus hurray_buffer_device_tag(const HurrayBuffer *buffer, uint8_t *out);
HURRAY_API HurrayStatus hurray_buffer_device_index(const HurrayBuffer *buffer, int32_t *out);
HURRAY_API HurrayStatus hurray_buffer_sync_mode(const HurrayBuffer *buffer, uint8_t *out);
HURRAY_API HurrayStatus hurray_buffer_memory_class(const HurrayBuffer *buffer, uint8_t *out);
/** HURRAY_BUFFER_READ_ONLY, HURRAY_BUFFER_IN_PLACE. */
HURRAY_API HurrayStatus hurray_buffer_flags(const HurrayBuffer *buffer, uint32_t *out);
/**
 * Makes a stream (NULL: the calling thread) wait until the buffer's bytes are there, as often as needed, without any device
 * header. Producer-synced: nothing to do. Consumer-stream: only its own stream, else SYNC_MODE_MISMATCH. DEVICE: the runtime refused.
 */
HURRAY_API HurrayStatus hurray_buffer_order(const HurrayBuffer *buffer, void *stream);
/** Moves the event out: it belongs to the caller now. SYNC_MODE_MISMATCH: not an event buffer; WRONG_STATE: taken already. */
HURRAY_API HurrayStatus hurray_buffer_take_event(HurrayBuffer *buffer, HurraySyncEventPayload *out);
/* Checks before a buffer is handed to a consumer: its mode is the one asked for, and the payload (event: a handle and its release
 * function; stream: never NULL) is of the buffer's device. SYNC_MODE_MISMATCH otherwise. Nothing is waited for. */
HURRAY_API HurrayStatus hurray_buffer_handoff_producer_synced(const HurrayBuffer *buffer);
HURRAY_API HurrayStatus hurray_buffer_handoff_event(const HurrayBuffer *buffer, const HurraySyncEventPayload *payload);
HURRAY_API HurrayStatus hurray_buffer_handoff_consumer_stream(const HurrayBuffer *buffer, const HurraySyncConsumerStreamPayload *payload);

/** A list of buffers, for hurray_tensor_new. capacity: room made at once, it grows. */
HURRAY_API HurrayStatus hurray_buffer_list_new(uint64_t capacity, HurrayBufferList **out_list);
/** On OK the buffer belongs to the list. */
HURRAY_API HurrayStatus hurray_buffer_list_push(HurrayBufferList *list, HurrayBuffer *buffer);
HURRAY_API HurrayStatus hurray_buffer_list_len(const HurrayBufferList *list, uint64_t *out_len);
/** Borrows; INDEX_OUT_OF_BOUNDS. */
HURRAY_API HurrayStatus hurray_buffer_list_get(const HurrayBufferList *list, uint64_t index, HurrayBuffer **out_buffer);
HURRAY_API HurrayStatus hurray_buffer_list_destroy(HurrayBufferList **list);

/* ---- descriptors (docs/format.md 1 to 7) ---- */

/**
 * Decodes the descriptor at bytes[0]; bytes behind it are ignored. Every rule that needs no data is checked. Errors: INVALID_MAGIC,
 * VERSION_MISMATCH, INVALID_TYPE, INVALID_LAYOUT, INVALID_SYNC_MODE, TRUNCATED (fewer than descriptor_length bytes), NO_MEMORY.
 */
HURRAY_API HurrayStatus hurray_descriptor_decode(const void *bytes, size_t len, HurrayDescriptor **out_handle);
/** The same with an allocator, the bytes used (out_used, may be NULL) and an error record that names field and byte. */
HURRAY_API HurrayStatus hurray_descriptor_decode_ex(const void *bytes, size_t len, const HurrayAllocator *allocator, size_t *out_used, HurrayDescriptor **out_handle, HurrayError *error);
/** The canonical bytes. *len: in, room at dst; out, bytes written or needed (BUFFER_TOO_SMALL; dst may then be NULL). */
HURRAY_API HurrayStatus hurray_descriptor_encode(const HurrayDescriptor *handle, void *dst, size_t *len);
HURRAY_API HurrayStatus hurray_descriptor_destroy(HurrayDescriptor *handle);
HURRAY_API HurrayStatus hurray_descriptor_rank(const HurrayDescriptor *handle, uint32_t *out_rank);
/** Dimensions in elements. *out_rank: in, room at out_dims; out, the rank (BUFFER_TOO_SMALL when the room is less). */
HURRAY_API HurrayStatus hurray_descriptor_shape(const HurrayDescriptor *handle, uint64_t *out_dims, size_t *out_rank);
/** Where element [0, ..., 0] begins in buffer 0. */
HURRAY_API HurrayStatus hurray_descriptor_byte_offset(const HurrayDescriptor *handle, uint64_t *out);
HURRAY_API HurrayStatus hurray_descriptor_element_type_tag(const HurrayDescriptor *handle, uint8_t *out);
HURRAY_API HurrayStatus hurray_descriptor_layout_tag(const HurrayDescriptor *handle, uint8_t *out);
/** 0 for a composite head. */
HURRAY_API HurrayStatus hurray_descriptor_buffer_count(const HurrayDescriptor *handle, uint32_t *out);
/* One field by number. NOT_FOUND: the descriptor has no such section; INVALID_ARGUMENT: no such field, or not of this kind. Arrays:
 * *len in, room in elements; out, elements written or needed (BUFFER_TOO_SMALL). */
HURRAY_API HurrayStatus hurray_descriptor_field_u64(const HurrayDescriptor *descriptor, HurrayDescriptorField field, uint64_t *value);
HURRAY_API HurrayStatus hurray_descriptor_field_i64(const HurrayDescriptor *descriptor, HurrayDescriptorField field, int64_t *value);
HURRAY_API HurrayStatus hurray_descriptor_field_f64(const HurrayDescriptor *descriptor, HurrayDescriptorField field, double *value);
HURRAY_API HurrayStatus hurray_descriptor_field_u64_array(const HurrayDescriptor *descriptor, HurrayDescriptorField field, uint64_t *array, size_t *len);
HURRAY_API HurrayStatus hurray_descriptor_field_i64_array(const HurrayDescriptor *descriptor, HurrayDescriptorField field, int64_t *array, size_t *len);

/** The 16 bytes of a buffer handle in host order (1.2). Never grows; reserved is 0. */
typedef struct HurrayBufferHandle {
    uint64_t byte_size; uint32_t alignment; uint8_t device_tag, sync_mode, memory_class, reserved;
} HurrayBufferHandle;
/** A level of a tiled layout (3.1): rank entries in each array; strides only where the order is STRIDED. Never grows. */
typedef struct HurrayTileLevel {
    const uint64_t *tile_shape; const int64_t *outer_strides, *inner_strides; uint8_t outer, inner, reserved[6];
} HurrayTileLevel;
/** A layout (3.1): tag says which members mean something; arrays have rank entries. Out: pointers are borrowed from the descriptor. */
typedef struct HurrayLayout {
    uint32_t struct_size; uint8_t tag, is_sorted, rule, combine_op;
    uint64_t nnz;
    const int64_t *strides;
    const HurrayTileLevel *tiles; uint32_t tile_count;
    uint32_t order;
    const uint32_t *bits, *mode_order;
    uint64_t num_pages; uint32_t page_size, paged_axis, num_seqs, layer_index; uint8_t kv_role, index_type, reserved[2];
    uint32_t member_count;
    uint64_t private_id; const void *private_data; uint32_t private_len, reserved2;
} HurrayLayout;
#define HURRAY_LAYOUT_INIT { .struct_size = sizeof(HurrayLayout) }
/** A quantization section (4): scheme says which members mean something. */
typedef struct HurrayQuantization {
    uint32_t struct_size; uint8_t scheme, scale_type; uint16_t flags;
    uint32_t axis, block_size, scale_buffer, zero_point_buffer;
    float scale; int32_t zero_point;
} HurrayQuantization;
#define HURRAY_QUANTIZATION_INIT { .struct_size = sizeof(HurrayQuantization) }
/** Statistics (6), advisory: computed_mask says which members are set. */
typedef struct HurrayStatistics {
    uint32_t struct_size, computed_mask;
    uint64_t nnz; double sparsity_ratio, min, max, abs_max, mean, stddev; uint8_t nm_n, nm_m, has_nan, has_inf, reserved[4];
} HurrayStatistics;
#define HURRAY_STATISTICS_INIT { .struct_size = sizeof(HurrayStatistics) }
/** What a private element type is (2.1). */
typedef struct HurrayExtensionType {
    uint32_t struct_size, bit_width; uint8_t packing_factor, is_float, is_signed, sign_bits, exponent_bits, mantissa_bits, has_nan, has_inf; uint32_t exponent_bias;
} HurrayExtensionType;
#define HURRAY_EXTENSION_TYPE_INIT { .struct_size = sizeof(HurrayExtensionType) }
/** Which box of a larger tensor this is (5): rank entries each. */
typedef struct HurrayShard { uint32_t struct_size, reserved; const uint64_t *parent_shape, *offset; } HurrayShard;
#define HURRAY_SHARD_INIT { .struct_size = sizeof(HurrayShard) }
/** A member of an overlay (7). */
typedef struct HurrayCompositeMember { uint32_t struct_size; uint8_t role, reserved[3]; } HurrayCompositeMember;
#define HURRAY_COMPOSITE_MEMBER_INIT { .struct_size = sizeof(HurrayCompositeMember) }

/** What a descriptor is made from. Sections are pointers, NULL is none; layout NULL is row-major. */
typedef struct HurrayDescriptorSpec {
    uint32_t struct_size;
    uint32_t rank;         /**< at most 64 */
    const uint64_t *shape; /**< rank entries, in elements */
    uint64_t byte_offset;
    uint8_t element_type, reserved[3];
    uint32_t buffer_count;
    const HurrayBufferHandle *buffers; /**< NULL: those of hurray_descriptor_plan_buffers */
    const HurrayLayout *layout;
    const HurrayQuantization *quantization;
    const HurrayShard *shard;
    const HurrayStatistics *statistics;
    const HurrayExtensionType *extension_type;
    const HurrayCompositeMember *composite_member;
} HurrayDescriptorSpec;
#define HURRAY_DESCRIPTOR_SPEC_INIT { .struct_size = sizeof(HurrayDescriptorSpec) }

/** Makes a descriptor; every rule of the format is checked and the error names the field. Errors as hurray_descriptor_decode. */
HURRAY_API HurrayStatus hurray_descriptor_new(const HurrayDescriptorSpec *spec, const HurrayAllocator *allocator, HurrayDescriptor **out, HurrayError *error);
/**
 * The buffers that a spec implies, with their least sizes (CPU, alignment 64): *count in, room at out; out, how many.
 * INVALID_ARGUMENT where sizes depend on data (CSF coordinates, block tables). BUFFER_TOO_SMALL.
 */
HURRAY_API HurrayStatus hurray_descriptor_plan_buffers(const HurrayDescriptorSpec *spec, HurrayBufferHandle *out, size_t *count, HurrayError *error);
/* One section each; the struct is the one that builds it, its struct_size set by the caller, its pointers borrowed from the
 * descriptor. NOT_FOUND: the descriptor has no such section; INDEX_OUT_OF_BOUNDS: no buffer i. */
HURRAY_API HurrayStatus hurray_descriptor_buffer(const HurrayDescriptor *descriptor, uint32_t i, HurrayBufferHandle *out);
HURRAY_API HurrayStatus hurray_descriptor_layout(const HurrayDescriptor *descriptor, HurrayLayout *out);
HURRAY_API HurrayStatus hurray_descriptor_quantization(const HurrayDescriptor *descriptor, HurrayQuantization *out);
HURRAY_API HurrayStatus hurray_descriptor_shard(const HurrayDescriptor *descriptor, HurrayShard *out);
HURRAY_API HurrayStatus hurray_descriptor_statistics(const HurrayDescriptor *descriptor, HurrayStatistics *out);
HURRAY_API HurrayStatus hurray_descriptor_extension_type(const HurrayDescriptor *descriptor, HurrayExtensionType *out);
HURRAY_API HurrayStatus hurray_descriptor_composite_member(const HurrayDescriptor *descriptor, HurrayCompositeMember *out);

/* ---- tensors, items ---- */

/**
 * A tensor from its parts: on OK it takes over both. The list's buffers are those of the descriptor, in order: INVALID_LAYOUT when
 * their number or sizes differ, INVALID_TYPE, SYNC_MODE_MISMATCH when device, class or mode do.
 */
HURRAY_API HurrayStatus hurray_tensor_new(HurrayDescriptor *descriptor, HurrayBufferList *buffers, const HurrayAllocator *allocator, HurrayTensor **out, HurrayError *error);
/**
 * Borrowed until the tensor is destroyed. Device tag, sync mode and memory class say where the tensor is now; the rest, declared
 * alignment too, is as it was read (the file's own: hurray_file_reader_read_descriptor).
 */
HURRAY_API HurrayStatus hurray_tensor_descriptor(const HurrayTensor *tensor, const HurrayDescriptor **out);
/** Borrowed until the tensor is destroyed. */
HURRAY_API HurrayStatus hurray_tensor_buffers(const HurrayTensor *tensor, HurrayBufferList **out);
/** Frees descriptor and buffers. */
HURRAY_API HurrayStatus hurray_tensor_destroy(HurrayTensor **tensor);

#define HURRAY_NODE_TENSOR 0u
#define HURRAY_NODE_COMPOSITE 1u /**< a head; its members follow, and may be none */

/** A node of a composite to write; the array is one whole tree in preorder. Never grows. docs/format.md 7. */
typedef struct HurrayCompositeNode {
    uint32_t kind, member_count; /**< direct members, as the descriptor says */
    const void *name; size_t name_len; /**< file: NULL becomes {head}.{i}, the root needs one; stream: ignored */
    const HurrayDescriptor *descriptor;
    const HurrayIoSlice *slices; size_t slice_count; /**< one per buffer, of exactly its size; none for a head */
    uint64_t reserved[2];
} HurrayCompositeNode;
/** A node of an item that was read, borrowed from it. Never grows. */
typedef struct HurrayItemNode {
    uint32_t kind, member_count;
    const uint8_t *name; size_t name_len; /**< NULL in streams */
    HurrayTensor *tensor; /**< a head has one too, without buffers; NULL when it was taken */
    uint64_t parent;      /**< number of the head's node; HURRAY_NONE for node 0 */
    uint64_t reserved[2];
} HurrayItemNode;
/** Nodes of an item, in preorder: a plain tensor has one. */
HURRAY_API HurrayStatus hurray_item_node_count(const HurrayItem *item, uint64_t *out);
/** INDEX_OUT_OF_BOUNDS. */
HURRAY_API HurrayStatus hurray_item_node(const HurrayItem *item, uint64_t i, HurrayItemNode *out);
/** Moves one tensor out: it belongs to the caller. INDEX_OUT_OF_BOUNDS; WRONG_STATE: taken already. */
HURRAY_API HurrayStatus hurray_item_take_tensor(HurrayItem *item, uint64_t i, HurrayTensor **out);
HURRAY_API HurrayStatus hurray_item_destroy(HurrayItem **item);

/* ---- reading files (docs/format.md 9) ---- */

/* Readers' flags */
#define HURRAY_READ_CROSS_MACHINE 2u /**< streams: refuse buffers that are not producer-synced (INVALID_SYNC_MODE) */
#define HURRAY_READ_NO_PRIVATE 4u    /**< refuse private tags (INVALID_TYPE, INVALID_LAYOUT) */

/* verify_data: checksums stored with a file (docs/format.md 9.7), checked piece by piece right after each was read */
#define HURRAY_VERIFY_NONE 0u
#define HURRAY_VERIFY_STORED 1u   /**< where a sum is stored; a mismatch is CHECKSUM */
#define HURRAY_VERIFY_REQUIRED 2u /**< a buffer that cannot be checked is CHECKSUM too */

/** Limits against hostile input are checked before anything is allocated for what they bound; LIMIT says which and by how much. */
typedef struct HurrayFileReaderOptions {
    uint32_t struct_size, flags; /**< HURRAY_READ_NO_PRIVATE */
    uint32_t verify_data;
    uint32_t max_composite_depth;  /**< nested heads, the outermost counted; default and most 64 */
    uint64_t max_tensors;          /**< default none */
    uint64_t max_index_bytes;      /**< default 1 GiB */
    uint64_t max_kv_bytes;         /**< default 256 MiB */
    uint64_t max_descriptor_bytes; /**< default 16 MiB */
    uint64_t max_tensor_bytes;     /**< default none: the file's size bounds it */
    const HurrayAllocator *allocator;
    const HurrayDestinationAlloc *destination; /**< NULL: aligned host memory, whatever device a buffer declares */
    const void *label; size_t label_len;       /**< how messages call the source */
} HurrayFileReaderOptions;
#define HURRAY_FILE_READER_OPTIONS_INIT { .struct_size = sizeof(HurrayFileReaderOptions) }

#define HURRAY_FORMAT_UNKNOWN 0u
#define HURRAY_FORMAT_HRRY 1u
#define HURRAY_FORMAT_STREAM 2u
#define HURRAY_FORMAT_SAFETENSORS 3u
#define HURRAY_FORMAT_GGUF 4u
#define HURRAY_FORMAT_NPZ 5u
#define HURRAY_FORMAT_NPY 6u

/** A source as it was opened. major, minor, flags, data_buffer_alignment: of a .hrry file's header (9.1). */
typedef struct HurraySourceInfo {
    uint32_t struct_size, format; uint8_t major, minor, reserved[2]; uint32_t flags, data_buffer_alignment; uint64_t byte_size; const uint8_t *label; size_t label_len;
} HurraySourceInfo;
#define HURRAY_SOURCE_INFO_INIT { .struct_size = sizeof(HurraySourceInfo) }
/** A tensor of a source. Borrowed pointers are valid until the next call on the handle. */
typedef struct HurrayTensorInfo {
    uint32_t struct_size, source_index;
    uint64_t index;
    uint64_t parent;                 /**< index of the head whose member it is (loader only), else HURRAY_NONE */
    const uint8_t *name; size_t name_len; /**< NULL for tensors of a stream */
    const HurrayDescriptor *descriptor;   /**< NULL when it is spoiled */
    uint64_t descriptor_offset;      /**< HURRAY_NONE where the format has none */
    uint64_t data_offset, data_length;
    const uint64_t *buffer_offsets;  /**< in the source, one per buffer; HURRAY_NONE where bytes change on the way (inflated) */
    uint32_t buffer_count, member_count; /**< member_count: direct members of a head */
    const HurrayError *fault;        /**< why it is spoiled: it is listed, but cannot be loaded; else NULL */
} HurrayTensorInfo;
#define HURRAY_TENSOR_INFO_INIT { .struct_size = sizeof(HurrayTensorInfo) }

/**
 * Opens a file: size, then at most four ranges are read (header, trailer, index, KV), no payload. The transport needs read_at and
 * size (INVALID_ARGUMENT). Errors: INVALID_MAGIC, VERSION_MISMATCH, INVALID_CONTAINER, TRUNCATED, CHECKSUM (of the index),
 * DUPLICATE_NAME, INVALID_NAME, INVALID_KV, LIMIT, NO_MEMORY, a callback's own. A failed open makes no reader.
 */
HURRAY_API HurrayStatus hurray_file_reader_new(const HurrayTransport *transport, HurrayFileReader **out);
HURRAY_API HurrayStatus hurray_file_reader_new_ex(const HurrayTransport *transport, const HurrayFileReaderOptions *options, HurrayFileReader **out, HurrayError *error);
/** Another handle over the same opened index, for another thread. UNSUPPORTED unless the transport is HURRAY_TRANSPORT_CONCURRENT. */
HURRAY_API HurrayStatus hurray_file_reader_clone(HurrayFileReader *reader, HurrayFileReader **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_file_reader_tensor_count(const HurrayFileReader *reader, uint64_t *out);
/** Name of tensor i in the order of the index; nothing is read. INDEX_OUT_OF_BOUNDS. */
HURRAY_API HurrayStatus hurray_file_reader_tensor_name(const HurrayFileReader *reader, uint64_t i, const uint8_t **name, size_t *len);
/** By hash or bisection, never by scanning. NOT_FOUND. */
HURRAY_API HurrayStatus hurray_file_reader_find(const HurrayFileReader *reader, const void *name, size_t len, uint64_t *i);
/** Reads the descriptor. Errors as hurray_descriptor_decode, INVALID_CONTAINER (index and descriptor disagree), INDEX_OUT_OF_BOUNDS. */
HURRAY_API HurrayStatus hurray_file_reader_tensor_info(HurrayFileReader *reader, uint64_t i, HurrayTensorInfo *out);
HURRAY_API HurrayStatus hurray_file_reader_info(const HurrayFileReader *reader, HurraySourceInfo *out);
/** len bytes of one buffer into dst. Pieces in order from first to last are verified like a whole buffer; the last one reports. INDEX_OUT_OF_BOUNDS. */
HURRAY_API HurrayStatus hurray_file_reader_read_bytes(HurrayFileReader *reader, uint64_t i, uint32_t buffer, uint64_t offset, void *dst, size_t len);
/** The file's own descriptor of a tensor, one range. NOT_FOUND; the file stays usable after any failure. */
HURRAY_API HurrayStatus hurray_file_reader_read_descriptor(HurrayFileReader *reader, const void *name, size_t len, HurrayDescriptor **out);
/** A whole tensor: one range for the descriptor, one per buffer. NOT_FOUND; nothing partial is ever handed out. */
HURRAY_API HurrayStatus hurray_file_reader_read_tensor(HurrayFileReader *reader, const void *name, size_t len, HurrayTensor **out);
/** Into the caller's memory, one per buffer, of at least its size (BUFFER_TOO_SMALL); makes nothing. After a failure the contents are undefined. */
HURRAY_API HurrayStatus hurray_file_reader_read_into(HurrayFileReader *reader, const void *name, size_t len, const HurrayMemory *dst, size_t count);
/** A head with all its members, validated. NOT_FOUND, NOT_COMPOSITE, TORN_COMPOSITE, TOO_DEEP, INVALID_LAYOUT. */
HURRAY_API HurrayStatus hurray_file_reader_read_composite(HurrayFileReader *reader, const void *name, size_t len, HurrayItem **out);
HURRAY_API HurrayStatus hurray_file_reader_kv_count(const HurrayFileReader *reader, uint64_t *out);
/** Borrowed until the reader (and its clones) are destroyed. INDEX_OUT_OF_BOUNDS. */
HURRAY_API HurrayStatus hurray_file_reader_kv_entry(const HurrayFileReader *reader, uint64_t i, HurrayKvEntry *out);
/** NOT_FOUND. */
HURRAY_API HurrayStatus hurray_file_reader_kv_find(const HurrayFileReader *reader, const void *key, size_t len, HurrayKvEntry *out);
HURRAY_API const HurrayError *hurray_file_reader_last_error(const HurrayFileReader *reader);
HURRAY_API HurrayStatus hurray_file_reader_destroy(HurrayFileReader **reader);

/* ---- writing files ---- */

/* Writers' flags */
#define HURRAY_WRITE_SORTED_INDEX 1u  /**< files: index by name, for lookup by bisection */
#define HURRAY_WRITE_NO_CHECKSUMS 2u  /**< files: store no CRC-32C of the buffers (docs/format.md 9.7) */
#define HURRAY_WRITE_CROSS_MACHINE 4u /**< streams: refuse buffers that are not producer-synced */

typedef struct HurrayFileWriterOptions {
    uint32_t struct_size, flags;
    uint32_t data_buffer_alignment; /**< of buffers in the file: a power of two, 4096 (default) to 2097152 */
    uint32_t reserved;
    const HurrayAllocator *allocator;
    const void *label; size_t label_len;
} HurrayFileWriterOptions;
#define HURRAY_FILE_WRITER_OPTIONS_INIT { .struct_size = sizeof(HurrayFileWriterOptions) }
/**
 * A file is written in one forward pass: header (in this call), tensors, then metadata and index by finish.
 *
 * Failure before an item's first byte was accepted (header and finish are items too): the callback's own code, nothing happened,
 * repeat the call; the result is byte for byte that of a write without failure. After its first byte: HURRAY_ERR_SINK_CLOSED, now and
 * from every later call: this file cannot be completed (the record's cause holds the callback's code).
 */
HURRAY_API HurrayStatus hurray_file_writer_new(const HurrayTransport *transport, const HurrayFileWriterOptions *options, HurrayFileWriter **out);
HURRAY_API HurrayStatus hurray_file_writer_new_ex(const HurrayTransport *transport, const HurrayFileWriterOptions *options, HurrayFileWriter **out, HurrayError *error);
/**
 * A slice per buffer, host memory whatever the device tag, of exactly the buffers' sizes (INVALID_ARGUMENT). A head written so opens a
 * group: the next tensors are its members, checked as they come. Errors: DUPLICATE_NAME, INVALID_NAME, INVALID_LAYOUT.
 */
HURRAY_API HurrayStatus hurray_file_writer_write_tensor(HurrayFileWriter *writer, const void *name, size_t name_len, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count);
/** A whole tree, checked before a byte goes out (INVALID_LAYOUT, TOO_DEEP). A failure after its head is out is SINK_CLOSED. */
HURRAY_API HurrayStatus hurray_file_writer_write_composite(HurrayFileWriter *writer, const HurrayCompositeNode *nodes, size_t count);
/* One tensor larger than memory: begin, its buffers' bytes in order in any pieces, end. WRONG_STATE out of order; INVALID_ARGUMENT when
 * more bytes come than the buffers have, or fewer at the end. */
HURRAY_API HurrayStatus hurray_file_writer_begin_tensor(HurrayFileWriter *writer, const void *name, size_t name_len, const HurrayDescriptor *descriptor);
HURRAY_API HurrayStatus hurray_file_writer_append(HurrayFileWriter *writer, const void *bytes, size_t len);
HURRAY_API HurrayStatus hurray_file_writer_end_tensor(HurrayFileWriter *writer);
/**
 * Metadata, index, trailer, then the transport's finish. An entry `libhurray.crc32c` handed in is dropped; the writer's own is the last.
 * INVALID_KV; TORN_COMPOSITE when members of a head are missing. When only the transport's finish failed, calling again repeats only that.
 */
HURRAY_API HurrayStatus hurray_file_writer_finish(HurrayFileWriter *writer, const HurrayKvEntry *kv, size_t kv_count);
HURRAY_API const HurrayError *hurray_file_writer_last_error(const HurrayFileWriter *writer);
/** Without a finish before it, what was written is no container. */
HURRAY_API HurrayStatus hurray_file_writer_destroy(HurrayFileWriter **writer);

/* ---- streams (docs/format.md 8) ---- */

typedef struct HurrayReaderOptions {
    uint32_t struct_size, flags;   /**< HURRAY_READ_CROSS_MACHINE, HURRAY_READ_NO_PRIVATE */
    uint32_t max_composite_depth;  /**< of hurray_reader_next_item only; default and most 64 */
    uint32_t reserved;
    uint64_t max_descriptor_bytes; /**< default 16 MiB */
    uint64_t max_buffer_bytes;     /**< default 64 GiB: nothing else bounds what a stream promises */
    uint64_t max_tensor_bytes;     /**< default 64 GiB */
    const HurrayAllocator *allocator;
    const HurrayDestinationAlloc *destination;
    const void *label; size_t label_len;
} HurrayReaderOptions;
#define HURRAY_READER_OPTIONS_INIT { .struct_size = sizeof(HurrayReaderOptions) }
typedef struct HurrayWriterOptions {
    uint32_t struct_size, flags; /**< HURRAY_WRITE_CROSS_MACHINE */
    const HurrayAllocator *allocator;
    const void *label; size_t label_len;
} HurrayWriterOptions;
#define HURRAY_WRITER_OPTIONS_INIT { .struct_size = sizeof(HurrayWriterOptions) }

/** A stream reader over transport.read; nothing is read yet. */
HURRAY_API HurrayStatus hurray_reader_new(const HurrayTransport *transport, const HurrayReaderOptions *options, HurrayReader **out);
HURRAY_API HurrayStatus hurray_reader_new_ex(const HurrayTransport *transport, const HurrayReaderOptions *options, HurrayReader **out, HurrayError *error);
/**
 * The next tensor; a head comes alone, without buffers. END_OF_STREAM between two tensors, TRUNCATED inside one, TRANSPORT (or the
 * callback's own code) when reading failed: three things. After a callback's failure, NO_MEMORY or CANCELLED the call may be
 * repeated and goes on where it was; any other failure loses the position, and then every call is UNUSABLE.
 */
HURRAY_API HurrayStatus hurray_reader_next_tensor(HurrayReader *reader, HurrayTensor **out);
/** The next tensor or whole composite. TORN_COMPOSITE, TOO_DEEP, INVALID_LAYOUT: the tree was wrong; the reader stands at the next frame. */
HURRAY_API HurrayStatus hurray_reader_next_item(HurrayReader *reader, HurrayItem **out);
HURRAY_API const HurrayError *hurray_reader_last_error(const HurrayReader *reader);
HURRAY_API HurrayStatus hurray_reader_destroy(HurrayReader **reader);

/** A stream writer over transport.write. Items fail as those of the file writer do; a composite is one item. */
HURRAY_API HurrayStatus hurray_writer_new(const HurrayTransport *transport, const HurrayWriterOptions *options, HurrayWriter **out);
HURRAY_API HurrayStatus hurray_writer_new_ex(const HurrayTransport *transport, const HurrayWriterOptions *options, HurrayWriter **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_writer_write_tensor(HurrayWriter *writer, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count);
HURRAY_API HurrayStatus hurray_writer_write_composite(HurrayWriter *writer, const HurrayCompositeNode *nodes, size_t count);
HURRAY_API HurrayStatus hurray_writer_begin_tensor(HurrayWriter *writer, const HurrayDescriptor *descriptor);
HURRAY_API HurrayStatus hurray_writer_append(HurrayWriter *writer, const void *bytes, size_t len);
HURRAY_API HurrayStatus hurray_writer_end_tensor(HurrayWriter *writer);
/** Writes nothing (a stream has no terminator); TORN_COMPOSITE when members are missing; calls the transport's finish. */
HURRAY_API HurrayStatus hurray_writer_finish(HurrayWriter *writer);
HURRAY_API const HurrayError *hurray_writer_last_error(const HurrayWriter *writer);
HURRAY_API HurrayStatus hurray_writer_destroy(HurrayWriter **writer);

HURRAY_END
#endif
