/**
 * @file
 * The four state machines behind readers and writers, without I/O: for event loops, io_uring, transports of any kind.
 *
 * A core never blocks, never waits, knows no transport. It says what it needs next (step); the driver answers and reports how many
 * bytes moved; only a report moves the position. One request is outstanding at a time, and the same step is answered until
 * something is reported. Transfer and report must be one step for the driver: await readiness, not transfers.
 *
 * Reading a file, one tensor:
 *
 *     hurray_file_reader_core_new(file_size, NULL, &core, NULL);
 *     for (;;) {
 *         HurrayStep step;
 *         if (hurray_file_reader_core_step(core, &step) != HURRAY_OK) break;      // last_error says why, is_unusable what is left
 *         if (step.kind == HURRAY_STEP_RANGE) {
 *             uint8_t *dst; size_t len;
 *             hurray_file_reader_core_input_dst(core, &dst, &len);
 *             ssize_t n = pread(fd, dst, len, step.offset);                       // short is normal; failed: just step again
 *             if (n >= 0) hurray_file_reader_core_report_filled(core, n);         // 0: the file is shorter than it claims
 *         } else if (step.kind == HURRAY_STEP_READY) hurray_file_reader_core_begin_tensor(core, "w", 1);
 *         else if (step.kind == HURRAY_STEP_TENSOR) { hurray_file_reader_core_take_tensor(core, &tensor); break; }
 *     }
 *
 * What a failure costs. Reading a file: a failed job leaves the core usable, a failed open is terminal, a lost count costs nothing
 * (the same absolute range is offered again). Reading a stream: a lost count must be reported by poison. Writing: an item commits
 * when its last byte is accepted; abandoned before its first it never happened; after that the core is unusable for good.
 *
 * Threads: one core, one thread at a time; forks are independent. Errors: UNUSABLE once a core is; WRONG_STATE for a call that does
 * not fit the step; INVALID_REPORT (more than offered, or 0 written) changes nothing.
 */
#ifndef HURRAY_CORE_H
#define HURRAY_CORE_H

#include "hurray.h"
#include "hurray/destination.h"

HURRAY_BEGIN

typedef struct HurrayFileReaderCore HurrayFileReaderCore;
typedef struct HurrayFileWriterCore HurrayFileWriterCore;
typedef struct HurrayStreamReaderCore HurrayStreamReaderCore;
typedef struct HurrayStreamWriterCore HurrayStreamWriterCore;
typedef struct HurrayCompositeAssembler HurrayCompositeAssembler;

/* HurrayStep.kind */
#define HURRAY_STEP_RANGE 1u         /**< file: read len bytes at offset into input_dst */
#define HURRAY_STEP_INPUT 2u         /**< stream: read the next bytes, at most len, into input_dst */
#define HURRAY_STEP_OUTPUT 3u        /**< write output_src (len bytes), or output_slices */
#define HURRAY_STEP_WAIT 4u          /**< the destination has nothing free; reason: HURRAY_WAIT_...; step again when it may have */
#define HURRAY_STEP_READY 5u         /**< nothing under way: begin something */
#define HURRAY_STEP_DESCRIPTOR 6u    /**< take_descriptor */
#define HURRAY_STEP_TENSOR 7u        /**< take_tensor */
#define HURRAY_STEP_COMPOSITE 8u     /**< take_composite */
#define HURRAY_STEP_ITEM_WRITTEN 9u  /**< committed; slices are needed no more; begin the next */
#define HURRAY_STEP_FINISHED 10u     /**< reading: clean end; writing: the file is complete */
#define HURRAY_STEP_PAYLOAD 11u      /**< a tensor begun without slices: supply bytes of buffer `reason`, from `offset`, at most len */
/* HurrayStep.reason of a WAIT */
#define HURRAY_WAIT_ALLOCATE 1u
#define HURRAY_WAIT_WINDOW 2u
#define HURRAY_WAIT_FREEZE 3u
/** What a core needs next. Never grows. */
typedef struct HurrayStep { uint32_t kind, reason; uint64_t offset, len, reserved[5]; } HurrayStep;

/* Why a core is unusable */
#define HURRAY_USABLE 0u
#define HURRAY_UNUSABLE_LOST_READ_COUNT 1u  /**< bytes moved that were not reported (stream) */
#define HURRAY_UNUSABLE_LOST_WRITE_COUNT 2u
#define HURRAY_UNUSABLE_TORN_ITEM 3u /**< an item emitted some of its bytes; while it is under way, its own steps and reports go on */
#define HURRAY_UNUSABLE_FAILED_OPEN 4u
#define HURRAY_UNUSABLE_BAD_INPUT 5u /**< a stream that cannot be read on */
#define HURRAY_UNUSABLE_POISONED 6u

/* ---- reading a file ---- */

/** Over a file of file_size bytes; opening is the first job: at most four ranges, then READY. LIMIT, INVALID_ARGUMENT, NO_MEMORY. */
HURRAY_API HurrayStatus hurray_file_reader_core_new(uint64_t file_size, const HurrayFileReaderOptions *options, HurrayFileReaderCore **out, HurrayError *error);
/** After READY: another job over the same opened index, for any thread. Many forks keep many reads in flight. */
HURRAY_API HurrayStatus hurray_file_reader_core_fork(const HurrayFileReaderCore *core, HurrayFileReaderCore **out, HurrayError *error);
/** What is needed next. A step that fails ended the job (or the open); the next says what is possible. */
HURRAY_API HurrayStatus hurray_file_reader_core_step(HurrayFileReaderCore *core, HurrayStep *step);
/**
 * Memory for exactly the range of the step, at an address that stays until it is reported. The memory is the core's: while a transfer
 * into it is in flight, no report, begin, abandon, destroy. The range may be split among transfers; report complete prefixes.
 */
HURRAY_API HurrayStatus hurray_file_reader_core_input_dst(HurrayFileReaderCore *core, uint8_t **dst, size_t *len);
/** The same with the bytes around it that may be overwritten (direct I/O). */
HURRAY_API HurrayStatus hurray_file_reader_core_input_window(HurrayFileReaderCore *core, HurrayWindow *window);
/** n bytes arrived. Fewer than offered: the rest is offered next. 0: the file is shorter than it claims (TRUNCATED). */
HURRAY_API HurrayStatus hurray_file_reader_core_report_filled(HurrayFileReaderCore *core, size_t n);
/* Jobs; beginning over another one abandons it. NOT_FOUND; INVALID_* and NOT_COMPOSITE come from step once the bytes are there. */
HURRAY_API HurrayStatus hurray_file_reader_core_begin_descriptor(HurrayFileReaderCore *core, const void *name, size_t len);
HURRAY_API HurrayStatus hurray_file_reader_core_begin_tensor(HurrayFileReaderCore *core, const void *name, size_t len);
HURRAY_API HurrayStatus hurray_file_reader_core_begin_composite(HurrayFileReaderCore *core, const void *name, size_t len);
/* What a job made: the caller's, once; then READY. */
HURRAY_API HurrayStatus hurray_file_reader_core_take_descriptor(HurrayFileReaderCore *core, HurrayDescriptor **out);
HURRAY_API HurrayStatus hurray_file_reader_core_take_tensor(HurrayFileReaderCore *core, HurrayTensor **out);
HURRAY_API HurrayStatus hurray_file_reader_core_take_composite(HurrayFileReaderCore *core, HurrayItem **out);
/** Drops the job under way, if any; the core is READY again (during the open: WRONG_STATE). */
HURRAY_API HurrayStatus hurray_file_reader_core_abandon(HurrayFileReaderCore *core);
/* The opened index, as the hurray_file_reader_ calls of the same name; WRONG_STATE before READY. tensor_info knows the descriptor of a
 * tensor only after a job has read it; descriptor is NULL before. */
HURRAY_API HurrayStatus hurray_file_reader_core_tensor_count(const HurrayFileReaderCore *core, uint64_t *out);
HURRAY_API HurrayStatus hurray_file_reader_core_tensor_name(const HurrayFileReaderCore *core, uint64_t i, const uint8_t **name, size_t *len);
HURRAY_API HurrayStatus hurray_file_reader_core_find(const HurrayFileReaderCore *core, const void *name, size_t len, uint64_t *i);
HURRAY_API HurrayStatus hurray_file_reader_core_tensor_info(HurrayFileReaderCore *core, uint64_t i, HurrayTensorInfo *out);
HURRAY_API HurrayStatus hurray_file_reader_core_kv_count(const HurrayFileReaderCore *core, uint64_t *out);
HURRAY_API HurrayStatus hurray_file_reader_core_kv_entry(const HurrayFileReaderCore *core, uint64_t i, HurrayKvEntry *out);
HURRAY_API HurrayStatus hurray_file_reader_core_kv_find(const HurrayFileReaderCore *core, const void *key, size_t len, HurrayKvEntry *out);
HURRAY_API HurrayStatus hurray_file_reader_core_info(const HurrayFileReaderCore *core, HurraySourceInfo *out);
/** HURRAY_USABLE or why not. */
HURRAY_API HurrayStatus hurray_file_reader_core_is_unusable(const HurrayFileReaderCore *core, uint32_t *reason);
HURRAY_API HurrayStatus hurray_file_reader_core_poison(HurrayFileReaderCore *core, uint32_t reason);
HURRAY_API const HurrayError *hurray_file_reader_core_last_error(const HurrayFileReaderCore *core);
HURRAY_API HurrayStatus hurray_file_reader_core_destroy(HurrayFileReaderCore **core);

/* ---- writing a file: header, tensors and composites, finish, each an item ---- */

HURRAY_API HurrayStatus hurray_file_writer_core_new(const HurrayFileWriterOptions *options, HurrayFileWriterCore **out, HurrayError *error);
/** First of all. An abandoned header that emitted nothing may be begun again; so may any item. */
HURRAY_API HurrayStatus hurray_file_writer_core_begin_header(HurrayFileWriterCore *core);
/** slices NULL, count 0: the payload is asked for by PAYLOAD. Slices stay valid until ITEM_WRITTEN. DUPLICATE_NAME, INVALID_NAME, INVALID_ARGUMENT. */
HURRAY_API HurrayStatus hurray_file_writer_core_begin_tensor(HurrayFileWriterCore *core, const void *name, size_t len, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count);
/** A whole tree, checked first; nodes, names and slices stay valid until ITEM_WRITTEN. */
HURRAY_API HurrayStatus hurray_file_writer_core_begin_composite(HurrayFileWriterCore *core, const HurrayCompositeNode *nodes, size_t count);
/** Metadata, index, trailer; then FINISHED. The entries stay valid until then. INVALID_KV, TORN_COMPOSITE. */
HURRAY_API HurrayStatus hurray_file_writer_core_begin_finish(HurrayFileWriterCore *core, const HurrayKvEntry *kv, size_t count);
HURRAY_API HurrayStatus hurray_file_writer_core_step(HurrayFileWriterCore *core, HurrayStep *step);
/** The next stretch, in place: the core's few bytes, or the caller's slice. */
HURRAY_API HurrayStatus hurray_file_writer_core_output_src(const HurrayFileWriterCore *core, const uint8_t **src, size_t *len);
/** Several stretches for a vectored write; *count in, room; out, how many. */
HURRAY_API HurrayStatus hurray_file_writer_core_output_slices(const HurrayFileWriterCore *core, HurrayIoSlice *slices, size_t *count);
/** Answers PAYLOAD: lends memory until the next PAYLOAD or ITEM_WRITTEN. */
HURRAY_API HurrayStatus hurray_file_writer_core_supply(HurrayFileWriterCore *core, const void *ptr, size_t len);
/** n bytes were accepted, across slices. Never 0 (INVALID_REPORT): a closed sink has its own report. */
HURRAY_API HurrayStatus hurray_file_writer_core_report_written(HurrayFileWriterCore *core, size_t n);
/** The sink takes no more: SINK_CLOSED. */
HURRAY_API HurrayStatus hurray_file_writer_core_report_sink_closed(HurrayFileWriterCore *core);
/** Drops the item under way: as if it never happened when it emitted nothing, else the core is unusable. */
HURRAY_API HurrayStatus hurray_file_writer_core_abandon(HurrayFileWriterCore *core);
HURRAY_API HurrayStatus hurray_file_writer_core_poison(HurrayFileWriterCore *core, uint32_t reason);
HURRAY_API HurrayStatus hurray_file_writer_core_is_unusable(const HurrayFileWriterCore *core, uint32_t *reason);
HURRAY_API const HurrayError *hurray_file_writer_core_last_error(const HurrayFileWriterCore *core);
HURRAY_API HurrayStatus hurray_file_writer_core_destroy(HurrayFileWriterCore **core);

/* ---- reading a stream: tensor after tensor; composites through the assembler below ---- */

HURRAY_API HurrayStatus hurray_stream_reader_core_new(const HurrayReaderOptions *options, HurrayStreamReaderCore **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_stream_reader_core_step(HurrayStreamReaderCore *core, HurrayStep *step);
HURRAY_API HurrayStatus hurray_stream_reader_core_input_dst(HurrayStreamReaderCore *core, uint8_t **dst, size_t *len);
HURRAY_API HurrayStatus hurray_stream_reader_core_input_window(HurrayStreamReaderCore *core, HurrayWindow *window);
/** 0 is the end of input: FINISHED between two tensors, TRUNCATED inside one. */
HURRAY_API HurrayStatus hurray_stream_reader_core_report_filled(HurrayStreamReaderCore *core, size_t n);
HURRAY_API HurrayStatus hurray_stream_reader_core_take_tensor(HurrayStreamReaderCore *core, HurrayTensor **out);
/** Gives up: between two tensors nothing happens, inside one the position is lost and the core unusable. */
HURRAY_API HurrayStatus hurray_stream_reader_core_abandon(HurrayStreamReaderCore *core);
/** For a driver that lost a count: HURRAY_UNUSABLE_LOST_READ_COUNT. */
HURRAY_API HurrayStatus hurray_stream_reader_core_poison(HurrayStreamReaderCore *core, uint32_t reason);
HURRAY_API HurrayStatus hurray_stream_reader_core_is_unusable(const HurrayStreamReaderCore *core, uint32_t *reason);
HURRAY_API const HurrayError *hurray_stream_reader_core_last_error(const HurrayStreamReaderCore *core);
HURRAY_API HurrayStatus hurray_stream_reader_core_destroy(HurrayStreamReaderCore **core);

/* ---- writing a stream: as the file writer core, without names, header and finish ---- */

HURRAY_API HurrayStatus hurray_stream_writer_core_new(const HurrayWriterOptions *options, HurrayStreamWriterCore **out, HurrayError *error);
HURRAY_API HurrayStatus hurray_stream_writer_core_begin_tensor(HurrayStreamWriterCore *core, const HurrayDescriptor *descriptor, const HurrayIoSlice *slices, size_t count);
/** One item, whatever its size. */
HURRAY_API HurrayStatus hurray_stream_writer_core_begin_composite(HurrayStreamWriterCore *core, const HurrayCompositeNode *nodes, size_t count);
HURRAY_API HurrayStatus hurray_stream_writer_core_step(HurrayStreamWriterCore *core, HurrayStep *step);
HURRAY_API HurrayStatus hurray_stream_writer_core_output_src(const HurrayStreamWriterCore *core, const uint8_t **src, size_t *len);
HURRAY_API HurrayStatus hurray_stream_writer_core_output_slices(const HurrayStreamWriterCore *core, HurrayIoSlice *slices, size_t *count);
HURRAY_API HurrayStatus hurray_stream_writer_core_supply(HurrayStreamWriterCore *core, const void *ptr, size_t len);
HURRAY_API HurrayStatus hurray_stream_writer_core_report_written(HurrayStreamWriterCore *core, size_t n);
HURRAY_API HurrayStatus hurray_stream_writer_core_report_sink_closed(HurrayStreamWriterCore *core);
HURRAY_API HurrayStatus hurray_stream_writer_core_abandon(HurrayStreamWriterCore *core);
HURRAY_API HurrayStatus hurray_stream_writer_core_is_unusable(const HurrayStreamWriterCore *core, uint32_t *reason);
/** For a driver that lost a count: HURRAY_UNUSABLE_LOST_WRITE_COUNT. */
HURRAY_API HurrayStatus hurray_stream_writer_core_poison(HurrayStreamWriterCore *core, uint32_t reason);
HURRAY_API const HurrayError *hurray_stream_writer_core_last_error(const HurrayStreamWriterCore *core);
HURRAY_API HurrayStatus hurray_stream_writer_core_destroy(HurrayStreamWriterCore **core);

/* ---- composites from the tensors of a stream ---- */

/** Of the options, max_composite_depth and allocator count. */
HURRAY_API HurrayStatus hurray_composite_assembler_new(const HurrayReaderOptions *options, HurrayCompositeAssembler **out, HurrayError *error);
/**
 * The next tensor of the stream. On OK it belongs to the assembler and *tensor is NULL; *out is the item that it completed, or NULL.
 * A tree that is wrong (INVALID_LAYOUT, TOO_DEEP) is dropped; the tensor stays the caller's and the next push begins anew.
 */
HURRAY_API HurrayStatus hurray_composite_assembler_push(HurrayCompositeAssembler *assembler, HurrayTensor **tensor, HurrayItem **out);
/** The stream ended: TORN_COMPOSITE when members are outstanding. */
HURRAY_API HurrayStatus hurray_composite_assembler_end(HurrayCompositeAssembler *assembler);
/** Of the last call. */
HURRAY_API const HurrayError *hurray_composite_assembler_last_error(const HurrayCompositeAssembler *assembler);
HURRAY_API HurrayStatus hurray_composite_assembler_destroy(HurrayCompositeAssembler **assembler);

HURRAY_END
#endif
