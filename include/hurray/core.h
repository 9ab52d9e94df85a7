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
#define HURRAY_STEP_RANGE 1u
#define HURRAY_STEP_INPUT 2u
#define HURRAY_STEP_OUTPUT 3u
#define HURRAY_STEP_WAIT 4u
#define HURRAY_STEP_READY 5u
#define HURRAY_STEP_DESCRIPTOR 6u
#define HURRAY_STEP_TENSOR 7u
#define HURRAY_STEP_COMPOSITE 8u
#define HURRAY_STEP_ITEM_WRITTEN 9u
#define HURRAY_STEP_FINISHED 10u
#define HURRAY_STEP_PAYLOAD 11u
#define HURRAY_WAIT_ALLOCATE 1u
#define HURRAY_WAIT_WINDOW 2u
#define HURRAY_WAIT_FREEZE 3u
typedef struct HurrayStep { uint32_t kind, reason; uint64_t offset, len, reserved[5]; } HurrayStep;
#define HURRAY_USABLE 0u
#define HURRAY_UNUSABLE_LOST_READ_COUNT 1u
#define HURRAY_UNUSABLE_LOST_WRITE_COUNT 2u
#define HURRAY_UNUSABLE_TORN_ITEM 3u
#define HURRAY_UNUSABLE_FAILED_OPEN 4u
#define HURRAY_UNUSABLE_BAD_INPUT 5u
#define HURRAY_UNUSABLE_POISONED 6u

HURRAY_API HurrayStatus hurray_file_reader_core_new(uint64_t file_size, const HurrayFileReaderOptions *, HurrayFileReaderCore **, HurrayError *);
HURRAY_API HurrayStatus hurray_file_reader_core_fork(const HurrayFileReaderCore *, HurrayFileReaderCore **, HurrayError *);
HURRAY_API HurrayStatus hurray_file_reader_core_step(HurrayFileReaderCore *, HurrayStep *);
HURRAY_API HurrayStatus hurray_file_reader_core_input_dst(HurrayFileReaderCore *, uint8_t **, size_t *);
HURRAY_API HurrayStatus hurray_file_reader_core_input_window(HurrayFileReaderCore *, HurrayWindow *);
HURRAY_API HurrayStatus hurray_file_reader_core_report_filled(HurrayFileReaderCore *, size_t);
HURRAY_API HurrayStatus hurray_file_reader_core_begin_descriptor(HurrayFileReaderCore *, const void *name, size_t len);
HURRAY_API HurrayStatus hurray_file_reader_core_begin_tensor(HurrayFileReaderCore *, const void *name, size_t len);
HURRAY_API HurrayStatus hurray_file_reader_core_begin_composite(HurrayFileReaderCore *, const void *name, size_t len);
HURRAY_API HurrayStatus hurray_file_reader_core_take_descriptor(HurrayFileReaderCore *, HurrayDescriptor **);
HURRAY_API HurrayStatus hurray_file_reader_core_take_tensor(HurrayFileReaderCore *, HurrayTensor **);
HURRAY_API HurrayStatus hurray_file_reader_core_take_composite(HurrayFileReaderCore *, HurrayItem **);
HURRAY_API HurrayStatus hurray_file_reader_core_abandon(HurrayFileReaderCore *);
HURRAY_API HurrayStatus hurray_file_reader_core_tensor_count(const HurrayFileReaderCore *, uint64_t *);
HURRAY_API HurrayStatus hurray_file_reader_core_tensor_name(const HurrayFileReaderCore *, uint64_t, const uint8_t **, size_t *);
HURRAY_API HurrayStatus hurray_file_reader_core_find(const HurrayFileReaderCore *, const void *, size_t, uint64_t *);
HURRAY_API HurrayStatus hurray_file_reader_core_is_unusable(const HurrayFileReaderCore *, uint32_t *reason);
HURRAY_API const HurrayError *hurray_file_reader_core_last_error(const HurrayFileReaderCore *);
HURRAY_API HurrayStatus hurray_file_reader_core_destroy(HurrayFileReaderCore **);

HURRAY_API HurrayStatus hurray_file_writer_core_new(const HurrayFileWriterOptions *, HurrayFileWriterCore **, HurrayError *);
HURRAY_API HurrayStatus hurray_file_writer_core_begin_header(HurrayFileWriterCore *);
HURRAY_API HurrayStatus hurray_file_writer_core_begin_tensor(HurrayFileWriterCore *, const void *name, size_t len, const HurrayDescriptor *, const HurrayIoSlice *, size_t);
HURRAY_API HurrayStatus hurray_file_writer_core_begin_composite(HurrayFileWriterCore *, const HurrayCompositeNode *, size_t);
HURRAY_API HurrayStatus hurray_file_writer_core_begin_finish(HurrayFileWriterCore *, const HurrayKvEntry *, size_t);
HURRAY_API HurrayStatus hurray_file_writer_core_step(HurrayFileWriterCore *, HurrayStep *);
HURRAY_API HurrayStatus hurray_file_writer_core_output_src(const HurrayFileWriterCore *, const uint8_t **, size_t *);
HURRAY_API HurrayStatus hurray_file_writer_core_output_slices(const HurrayFileWriterCore *, HurrayIoSlice *, size_t *);
HURRAY_API HurrayStatus hurray_file_writer_core_supply(HurrayFileWriterCore *, const void *ptr, size_t len);
HURRAY_API HurrayStatus hurray_file_writer_core_report_written(HurrayFileWriterCore *, size_t);
HURRAY_API HurrayStatus hurray_file_writer_core_report_sink_closed(HurrayFileWriterCore *);
HURRAY_API HurrayStatus hurray_file_writer_core_abandon(HurrayFileWriterCore *);
HURRAY_API HurrayStatus hurray_file_writer_core_poison(HurrayFileWriterCore *, uint32_t reason);
HURRAY_API HurrayStatus hurray_file_writer_core_is_unusable(const HurrayFileWriterCore *, uint32_t *reason);
HURRAY_API HurrayStatus hurray_file_writer_core_destroy(HurrayFileWriterCore **);

HURRAY_API HurrayStatus hurray_stream_reader_core_new(const HurrayReaderOptions *, HurrayStreamReaderCore **, HurrayError *);
HURRAY_API HurrayStatus hurray_stream_reader_core_step(HurrayStreamReaderCore *, HurrayStep *);
HURRAY_API HurrayStatus hurray_stream_reader_core_input_dst(HurrayStreamReaderCore *, uint8_t **, size_t *);
HURRAY_API HurrayStatus hurray_stream_reader_core_report_filled(HurrayStreamReaderCore *, size_t);
HURRAY_API HurrayStatus hurray_stream_reader_core_take_tensor(HurrayStreamReaderCore *, HurrayTensor **);
HURRAY_API HurrayStatus hurray_stream_reader_core_poison(HurrayStreamReaderCore *, uint32_t reason);
HURRAY_API HurrayStatus hurray_stream_reader_core_destroy(HurrayStreamReaderCore **);
HURRAY_API HurrayStatus hurray_composite_assembler_new(const HurrayReaderOptions *, HurrayCompositeAssembler **, HurrayError *);
HURRAY_API HurrayStatus hurray_composite_assembler_push(HurrayCompositeAssembler *, HurrayTensor **tensor, HurrayItem **out);
HURRAY_API HurrayStatus hurray_composite_assembler_end(HurrayCompositeAssembler *);
HURRAY_API const HurrayError *hurray_composite_assembler_last_error(const HurrayCompositeAssembler *);
HURRAY_API HurrayStatus hurray_composite_assembler_destroy(HurrayCompositeAssembler **);
HURRAY_API HurrayStatus hurray_file_reader_core_tensor_info(HurrayFileReaderCore *, uint64_t, HurrayTensorInfo *);
HURRAY_API HurrayStatus hurray_file_reader_core_kv_count(const HurrayFileReaderCore *, uint64_t *);
HURRAY_API HurrayStatus hurray_file_reader_core_kv_entry(const HurrayFileReaderCore *, uint64_t, HurrayKvEntry *);
HURRAY_API HurrayStatus hurray_file_reader_core_kv_find(const HurrayFileReaderCore *, const void *, size_t, HurrayKvEntry *);
HURRAY_API HurrayStatus hurray_file_reader_core_info(const HurrayFileReaderCore *, HurraySourceInfo *);
HURRAY_API HurrayStatus hurray_file_reader_core_poison(HurrayFileReaderCore *, uint32_t reason);
HURRAY_API const HurrayError *hurray_file_writer_core_last_error(const HurrayFileWriterCore *);
HURRAY_API HurrayStatus hurray_stream_reader_core_input_window(HurrayStreamReaderCore *, HurrayWindow *);
HURRAY_API HurrayStatus hurray_stream_reader_core_abandon(HurrayStreamReaderCore *);
HURRAY_API HurrayStatus hurray_stream_reader_core_is_unusable(const HurrayStreamReaderCore *, uint32_t *reason);
HURRAY_API const HurrayError *hurray_stream_reader_core_last_error(const HurrayStreamReaderCore *);
HURRAY_API HurrayStatus hurray_stream_writer_core_new(const HurrayWriterOptions *, HurrayStreamWriterCore **, HurrayError *);
HURRAY_API HurrayStatus hurray_stream_writer_core_begin_tensor(HurrayStreamWriterCore *, const HurrayDescriptor *, const HurrayIoSlice *, size_t);
HURRAY_API HurrayStatus hurray_stream_writer_core_begin_composite(HurrayStreamWriterCore *, const HurrayCompositeNode *, size_t);
HURRAY_API HurrayStatus hurray_stream_writer_core_step(HurrayStreamWriterCore *, HurrayStep *);
HURRAY_API HurrayStatus hurray_stream_writer_core_output_src(const HurrayStreamWriterCore *, const uint8_t **, size_t *);
HURRAY_API HurrayStatus hurray_stream_writer_core_output_slices(const HurrayStreamWriterCore *, HurrayIoSlice *, size_t *);
HURRAY_API HurrayStatus hurray_stream_writer_core_supply(HurrayStreamWriterCore *, const void *ptr, size_t len);
HURRAY_API HurrayStatus hurray_stream_writer_core_report_written(HurrayStreamWriterCore *, size_t);
HURRAY_API HurrayStatus hurray_stream_writer_core_report_sink_closed(HurrayStreamWriterCore *);
HURRAY_API HurrayStatus hurray_stream_writer_core_abandon(HurrayStreamWriterCore *);
HURRAY_API HurrayStatus hurray_stream_writer_core_is_unusable(const HurrayStreamWriterCore *, uint32_t *reason);
HURRAY_API HurrayStatus hurray_stream_writer_core_poison(HurrayStreamWriterCore *, uint32_t reason);
HURRAY_API const HurrayError *hurray_stream_writer_core_last_error(const HurrayStreamWriterCore *);
HURRAY_API HurrayStatus hurray_stream_writer_core_destroy(HurrayStreamWriterCore **);
HURRAY_END
#endif
