#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const stage_names[] = {"read", "copy", "check", "wait"};
static const char *const stage_colours[] = {"#3b78b8", "#d98324", "#4f9d5d", "#bbbbbb"};
#define STAGES 4u

void trace_add(Trace *trace, const HurrayTraceEvent *event) {
    if (trace->count == trace->capacity) {
        size_t capacity = trace->capacity ? trace->capacity * 2 : 1024;
        HurrayTraceEvent *bigger = realloc(trace->events, capacity * sizeof *bigger);
        if (!bigger) {
            trace->lost = true;
            return;
        }
        trace->events = bigger;
        trace->capacity = capacity;
    }
    trace->events[trace->count++] = *event;
}

void trace_clear(Trace *trace) {
    free(trace->events);
    memset(trace, 0, sizeof *trace);
}

int trace_open(TraceFile *out, const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    *out = (TraceFile){path, NULL, fd >= 0};
    if (fd < 0) fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0) out->file = fdopen(fd, "w");
    if (out->file) return EXIT_DONE;
    int code = report_failure(EXIT_SYSTEM, path, "%s", strerror(errno));
    if (fd >= 0) close(fd);
    return code;
}

void trace_drop(TraceFile *file) {
    if (!file->file) return;
    fclose(file->file);
    file->file = NULL;
    if (file->created) unlink(file->path);
}

/* What the file had before goes only now. */
static FILE *begin_file(const TraceFile *file) {
    struct stat info;
    if (fstat(fileno(file->file), &info) == 0 && S_ISREG(info.st_mode) && ftruncate(fileno(file->file), 0) != 0) return NULL;
    return file->file;
}

static int finish_file(TraceFile *file) {
    bool failed = ferror(file->file) != 0;
    if (fclose(file->file) != 0) failed = true;
    file->file = NULL;
    return failed ? report_failure(EXIT_SYSTEM, file->path, "%s", strerror(errno)) : EXIT_DONE;
}

/* A name as people may see it: no control characters, always UTF-8. NULL: it has none, or no memory. */
static char *event_name(Model *model, const HurrayTraceEvent *event) {
    HurrayTensorInfo info;
    if (event->tensor_index == HURRAY_NONE || model_info(model, event->tensor_index, &info) != EXIT_DONE) return NULL;
    return escape_text(info.name, info.name_len);
}

static void put_json(FILE *file, const char *text) {
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') fputc('\\', file);
        fputc(*c, file);
    }
}

static void put_xml(FILE *file, const char *text) {
    for (const char *c = text; *c; c++) {
        if (*c == '&')
            fputs("&amp;", file);
        else if (*c == '<')
            fputs("&lt;", file);
        else if (*c == '>')
            fputs("&gt;", file);
        else
            fputc(*c, file);
    }
}

/* An event and its row. Reads in flight at once share a lane; in a picture none may cover another, so a lane has as many rows as it needs.
 */
typedef struct Placed {
    const HurrayTraceEvent *event;
    uint32_t row;
} Placed;

typedef struct Row {
    uint32_t stage, lane, part; /* part: rows of the same lane before it */
    uint64_t end_ns;
} Row;

typedef struct Rows {
    Placed *events; /* by stage, lane, begin */
    Row *rows;
    uint32_t count;
} Rows;

static int by_lane(const void *left, const void *right) {
    const HurrayTraceEvent *a = ((const Placed *)left)->event, *b = ((const Placed *)right)->event;
    if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
    if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

static void rows_clear(Rows *rows) {
    free(rows->events);
    free(rows->rows);
}

static bool rows_make(const Trace *trace, Rows *out) {
    uint32_t first = 0; /* row of the lane at hand */
    out->events = malloc((trace->count + 1) * sizeof *out->events);
    out->rows = malloc((trace->count + 1) * sizeof *out->rows);
    out->count = 0;
    if (!out->events || !out->rows) return false;
    for (size_t i = 0; i < trace->count; i++) out->events[i] = (Placed){&trace->events[i], 0};
    qsort(out->events, trace->count, sizeof *out->events, by_lane);
    for (size_t i = 0; i < trace->count; i++) {
        const HurrayTraceEvent *event = out->events[i].event;
        uint32_t stage = event->stage % STAGES, row = first;
        if (row == out->count || out->rows[row].stage != stage || out->rows[row].lane != event->lane) row = first = out->count;
        while (row < out->count && out->rows[row].end_ns > event->begin_ns) row++;
        if (row == out->count) out->rows[out->count++] = (Row){stage, event->lane, row - first, 0};
        out->rows[row].end_ns = event->end_ns;
        out->events[i].row = row;
    }
    return true;
}

static int no_rows(Rows *rows, const char *path) {
    rows_clear(rows);
    return report_failure(EXIT_SYSTEM, path, "no memory for the trace");
}

int trace_write_json(const Trace *trace, TraceFile *out, Model *model) {
    Rows rows;
    if (!rows_make(trace, &rows)) return no_rows(&rows, out->path);
    FILE *file = begin_file(out);
    if (!file) {
        rows_clear(&rows);
        return report_failure(EXIT_SYSTEM, out->path, "%s", strerror(errno));
    }
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", file);
    for (uint32_t i = 0; i < rows.count; i++) {
        const Row *row = &rows.rows[i];
        if (i == 0 || row->stage != row[-1].stage)
            fprintf(file, "%s\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s\"}}", i ? "," : "",
                    (unsigned)row->stage, (unsigned)i, stage_names[row->stage]);
        fprintf(file, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s %u.%u\"}}",
                (unsigned)row->stage, (unsigned)i, stage_names[row->stage], (unsigned)row->lane, (unsigned)row->part);
    }
    for (size_t i = 0; i < trace->count; i++) {
        const HurrayTraceEvent *event = rows.events[i].event;
        fprintf(file, ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"bytes\":%" PRIu64,
                stage_names[event->stage % STAGES], (unsigned)(event->stage % STAGES), (unsigned)rows.events[i].row,
                (double)event->begin_ns / 1e3, (double)(event->end_ns - event->begin_ns) / 1e3, event->bytes);
        char *name = event_name(model, event);
        if (event->tensor_index != HURRAY_NONE) fprintf(file, ",\"tensor\":%" PRIu64, event->tensor_index);
        if (name) {
            fputs(",\"name\":\"", file);
            put_json(file, name);
            fputc('"', file);
        }
        free(name);
        fputs("}}", file);
    }
    fputs("\n]}\n", file);
    rows_clear(&rows);
    return finish_file(out);
}

#define LEFT 90.0
#define PICTURE_WIDTH 1100.0
#define ROW_HEIGHT 16.0

static void draw_event(FILE *file, Model *model, const Placed *placed, uint64_t begin, double scale) {
    const HurrayTraceEvent *event = placed->event;
    char *name = event_name(model, event);
    double x = LEFT + (double)(event->begin_ns - begin) * scale, width = (double)(event->end_ns - event->begin_ns) * scale;
    fprintf(file, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"><title>%s ", x,
            50 + (double)placed->row * ROW_HEIGHT, width < 0.4 ? 0.4 : width, ROW_HEIGHT - 3, stage_colours[event->stage % STAGES],
            stage_names[event->stage % STAGES]);
    if (name) {
        put_xml(file, name);
        fputs(": ", file);
    }
    free(name);
    fprintf(file, "%" PRIu64 " bytes, %.3f ms</title></rect>\n", event->bytes, (double)(event->end_ns - event->begin_ns) / 1e6);
}

/* At most ten round steps: 1, 2, 5, 10, ... */
static void draw_axis(FILE *file, double height, double span_ms) {
    static const double next[] = {2, 2.5, 2};
    double step = 1e-6;
    for (size_t i = 0; span_ms / step > 10; i++) step *= next[i % 3];
    for (int i = 0; i * step <= span_ms; i++) {
        double x = LEFT + PICTURE_WIDTH * i * step / span_ms;
        fprintf(file,
                "<line x1=\"%.1f\" y1=\"46\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e4e4e4\"/><text x=\"%.1f\" y=\"42\" "
                "text-anchor=\"middle\">%.6g ms</text>\n",
                x, x, height - 24, x, i * step);
    }
}

int trace_write_svg(const Trace *trace, TraceFile *out, Model *model) {
    uint64_t begin = UINT64_MAX, end = 0;
    Rows rows;
    if (!rows_make(trace, &rows)) return no_rows(&rows, out->path);
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->events[i].begin_ns < begin) begin = trace->events[i].begin_ns;
        if (trace->events[i].end_ns > end) end = trace->events[i].end_ns;
    }
    if (trace->count == 0) begin = 0;
    double height = 90 + (double)rows.count * ROW_HEIGHT, span = end > begin ? (double)(end - begin) : 1;
    FILE *file = begin_file(out);
    if (!file) {
        rows_clear(&rows);
        return report_failure(EXIT_SYSTEM, out->path, "%s", strerror(errno));
    }
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%.0f\" y=\"20\" font-size=\"14\">",
            LEFT + PICTURE_WIDTH + 30, height, LEFT);
    char *shown = escape_text(model->path, strlen(model->path)); /* control characters are no XML */
    put_xml(file, shown ? shown : "");
    free(shown);
    fputs("</text>\n", file);
    draw_axis(file, height, span / 1e6);
    for (uint32_t i = 0; i < rows.count; i++)
        if (rows.rows[i].part == 0)
            fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s %u</text>\n", LEFT - 6, 60 + (double)i * ROW_HEIGHT,
                    stage_names[rows.rows[i].stage], (unsigned)rows.rows[i].lane);
    for (size_t i = 0; i < trace->count; i++) draw_event(file, model, &rows.events[i], begin, PICTURE_WIDTH / span);
    fputs("</svg>\n", file);
    rows_clear(&rows);
    return finish_file(out);
}
