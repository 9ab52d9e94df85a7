/* Driving a file writer core in tests, and looking at the file it made. */
#ifndef HRY_TESTS_FILE_CORE_H
#define HRY_TESTS_FILE_CORE_H

#include <stdbool.h>

#include "core/file_writer.h"
#include "format/container.h"
#include "format/index.h"
#include "format/kv.h"
#include "support/write_scenario.h"

#define FILE_TABLE_ROWS 256u

/* Item 0 is the header, the last one the footer. */
#define FILE_ITEMS (SCENARIO_ITEMS + 2)

typedef struct FileSink {
    uint8_t bytes[1 << 17];
    size_t len;
    size_t most; /* bytes taken at once; 0: all */
    bool vectored;
    size_t lend;                  /* bytes supplied at once; 0: all that is asked */
    const HurrayIoSlice *payload; /* of the tensor begun without slices */
} FileSink;

typedef struct FileTable {
    HryIndexRow rows[FILE_TABLE_ROWS];
    uint64_t count;
    HryHeader header;
    HryTrailer trailer;
    HryKv kv;
} FileTable;

void file_core_take(FileSink *sink, const void *ptr, size_t len);
HurrayStatus file_core_some(HurrayFileWriterCore *core, const HurrayStep *step, FileSink *sink);
void file_core_drain(HurrayFileWriterCore *core, FileSink *sink);
HurrayStatus file_core_begin(HurrayFileWriterCore *core, const Scenario *s, size_t i, bool ask);
HurrayFileWriterCore *file_core_make(uint32_t flags, uint32_t alignment, const HurrayAllocator *allocator);
uint32_t file_core_unusable(const HurrayFileWriterCore *core);
void file_core_items(HurrayFileWriterCore *core, const Scenario *s, FileSink *sink, size_t first, size_t end, bool ask);
FileSink *file_core_all(const Scenario *s, uint32_t flags, uint32_t alignment);
void file_core_same(const FileSink *a, const FileSink *b);
void file_table_row(const void *ctx, uint64_t i, HryIndexRow *out);
void file_table_open(const uint8_t *bytes, size_t len, FileTable *table);
int file_table_name_is(const HryIndexRow *row, const char *name);

#endif
