#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int exit_code_of(HurrayStatus status) {
    switch (status) {
    case HURRAY_OK: return EXIT_DONE;
    case HURRAY_ERR_INVALID_ARGUMENT: return EXIT_USAGE;
    case HURRAY_ERR_TRANSPORT:
    case HURRAY_ERR_SINK_CLOSED:
    case HURRAY_ERR_NO_MEMORY:
    case HURRAY_ERR_INTERNAL: return EXIT_SYSTEM;
    case HURRAY_ERR_NOT_FOUND:
    case HURRAY_ERR_INDEX_OUT_OF_BOUNDS: return EXIT_NOT_FOUND;
    case HURRAY_ERR_NO_DEVICE:
    case HURRAY_ERR_DEVICE: return EXIT_DEVICE;
    case HURRAY_ERR_CANCELLED: return EXIT_INTERRUPTED;
    case HURRAY_ERR_UNSUPPORTED: return EXIT_BAD_INPUT;
    default: return status <= -1 && status >= -30 ? EXIT_BAD_INPUT : EXIT_SYSTEM;
    }
}

int report_error(const char *file, const HurrayError *error) {
    const char *comma = "";
    bool place = error->tensor[0] || error->field[0] || error->offset != HURRAY_NONE;
    if (error->source[0]) {
        fprintf(stderr, "hurray: %s: ", error->source);
    } else {
        fputs("hurray: ", stderr);
        print_text(stderr, file, strlen(file));
        fputs(": ", stderr);
    }
    if (error->tensor[0]) {
        fprintf(stderr, "tensor \"%s\"", error->tensor);
        comma = ", ";
    }
    if (error->field[0]) {
        fprintf(stderr, "%s%s", comma, error->field);
        comma = ", ";
    }
    if (error->offset != HURRAY_NONE) fprintf(stderr, "%sbyte %llu", comma, (unsigned long long)error->offset);
    fprintf(stderr, "%s%s", place ? ": " : "", error->message[0] ? error->message : hurray_status_name(error->code));
    if (error->system_error) fprintf(stderr, " (%s)", strerror(error->system_error));
    fputc('\n', stderr);
    return exit_code_of(error->code);
}

int report_failure(int exit_code, const char *file, const char *format, ...) {
    va_list args;
    fputs("hurray: ", stderr);
    print_text(stderr, file, strlen(file));
    fputs(": ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return exit_code;
}

int report_usage(const char *command, const char *format, ...) {
    va_list args;
    fputs("hurray: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "; see `hurray%s%s --help`\n", command ? " " : "", command ? command : "");
    return EXIT_USAGE;
}

void note(const Output *output, const char *format, ...) {
    va_list args;
    if (output->quiet) return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int finish_output(int exit_code) {
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    if (failed && errno != EPIPE && errno != 0) {
        fprintf(stderr, "hurray: standard output: %s\n", strerror(errno));
        return exit_code == EXIT_DONE ? EXIT_SYSTEM : exit_code;
    }
    return exit_code;
}

volatile int interrupted;
static HurrayLoader *volatile loader_to_cancel;

static void on_signal(int signal_number) {
    interrupted = signal_number;
    if (loader_to_cancel) hurray_loader_cancel(loader_to_cancel);
}

void install_signals(HurrayLoader *loader) {
    struct sigaction action;
    loader_to_cancel = loader;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
