#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static int finish_file(FILE *file, const char *path) {
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0) failed = true;
    return failed ? report_failure(EXIT_SYSTEM, path, "%s", strerror(errno)) : EXIT_DONE;
}

int trace_write_json(const Trace *trace, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return report_failure(EXIT_SYSTEM, path, "%s", strerror(errno));
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", file);
    for (size_t i = 0; i < trace->count; i++) {
        const HurrayTraceEvent *event = &trace->events[i];
        fprintf(file, "%s\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"bytes\":%" PRIu64,
                i ? "," : "", stage_names[event->stage % STAGES], (unsigned)event->stage, (unsigned)event->lane,
                (double)event->begin_ns / 1e3, (double)(event->end_ns - event->begin_ns) / 1e3, event->bytes);
        if (event->tensor_index != HURRAY_NONE) fprintf(file, ",\"tensor\":%" PRIu64, event->tensor_index);
        fputs("}}", file);
    }
    fputs("\n]}\n", file);
    return finish_file(file, path);
}

#define LEFT 90.0
#define PICTURE_WIDTH 1100.0
#define LANE_HEIGHT 16.0

/* Rows of the picture: a row for each (stage, lane) that occurs. */
static size_t row_of(const HurrayTraceEvent *event, const uint32_t *lanes) {
    size_t row = 0;
    for (uint32_t stage = 0; stage < event->stage % STAGES; stage++) row += lanes[stage];
    return row + event->lane;
}

static void draw_event(FILE *file, const HurrayTraceEvent *event, const uint32_t *lanes, uint64_t begin, double scale) {
    double x = LEFT + (double)(event->begin_ns - begin) * scale, width = (double)(event->end_ns - event->begin_ns) * scale;
    fprintf(file,
            "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"><title>%s %" PRIu64 " bytes, %.3f ms</title></rect>\n",
            x, 50 + (double)row_of(event, lanes) * LANE_HEIGHT, width < 0.4 ? 0.4 : width, LANE_HEIGHT - 3,
            stage_colours[event->stage % STAGES], stage_names[event->stage % STAGES], event->bytes,
            (double)(event->end_ns - event->begin_ns) / 1e6);
}

static void draw_axis(FILE *file, double height, double span_ms) {
    for (int i = 0; i <= 10; i++) {
        double x = LEFT + PICTURE_WIDTH * i / 10.0;
        fprintf(file,
                "<line x1=\"%.1f\" y1=\"46\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e4e4e4\"/><text x=\"%.1f\" y=\"42\" "
                "text-anchor=\"middle\">%.4g ms</text>\n",
                x, x, height - 24, x, span_ms * i / 10.0);
    }
}

int trace_write_svg(const Trace *trace, const char *path, const char *title) {
    uint32_t lanes[STAGES] = {0};
    uint64_t begin = UINT64_MAX, end = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const HurrayTraceEvent *event = &trace->events[i];
        uint32_t *count = &lanes[event->stage % STAGES];
        if (event->lane >= *count) *count = event->lane + 1;
        if (event->begin_ns < begin) begin = event->begin_ns;
        if (event->end_ns > end) end = event->end_ns;
    }
    if (trace->count == 0) begin = 0;
    size_t rows = 0;
    for (uint32_t stage = 0; stage < STAGES; stage++) rows += lanes[stage];
    double height = 90 + (double)rows * LANE_HEIGHT, span = end > begin ? (double)(end - begin) : 1;
    FILE *file = fopen(path, "w");
    if (!file) return report_failure(EXIT_SYSTEM, path, "%s", strerror(errno));
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%.0f\" y=\"20\" font-size=\"14\">",
            LEFT + PICTURE_WIDTH + 30, height, LEFT);
    char *shown = escape_text(title, strlen(title)); /* control characters are no XML */
    for (const char *c = shown ? shown : ""; *c; c++) {
        if (*c == '&')
            fputs("&amp;", file);
        else if (*c == '<')
            fputs("&lt;", file);
        else if (*c == '>')
            fputs("&gt;", file);
        else
            fputc(*c, file);
    }
    free(shown);
    fputs("</text>\n", file);
    draw_axis(file, height, span / 1e6);
    size_t row = 0;
    for (uint32_t stage = 0; stage < STAGES; stage++)
        for (uint32_t lane = 0; lane < lanes[stage]; lane++, row++)
            fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s %u</text>\n", LEFT - 6, 60 + (double)row * LANE_HEIGHT,
                    stage_names[stage], (unsigned)lane);
    for (size_t i = 0; i < trace->count; i++) draw_event(file, &trace->events[i], lanes, begin, PICTURE_WIDTH / span);
    fputs("</svg>\n", file);
    return finish_file(file, path);
}
