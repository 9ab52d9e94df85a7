#include "cli.h"

#include <errno.h>
#include <poll.h>
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
    if (error->system_error && !strstr(error->message, strerror(error->system_error)))
        fprintf(stderr, " (%s)", strerror(error->system_error));
    fputc('\n', stderr);
    return exit_code_of(error->code);
}

void name_tensor(HurrayError *error, const void *name, size_t len) {
    if (error->tensor[0]) return;
    char *shown = escape_text(name, len);
    size_t n = shown ? strlen(shown) : 0, most = sizeof error->tensor - 4;
    if (n < sizeof error->tensor) {
        if (n) memcpy(error->tensor, shown, n + 1);
    } else {
        while (most && ((unsigned char)shown[most] & 0xC0) == 0x80) most--;
        memcpy(error->tensor, shown, most);
        memcpy(error->tensor + most, "...", 4);
    }
    free(shown);
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
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fputs("hurray: ", stderr);
    print_text(stderr, text, strlen(text)); /* it quotes arguments */
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

/* An error of an earlier write may be all that is known: then the descriptor says whether its reader went away. */
bool output_reader_left(void) {
    struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

static int output_error; /* of the first write_output that failed */

bool write_output(const void *bytes, size_t len) {
    errno = 0;
    if (fwrite(bytes, 1, len, stdout) == len) return true;
    if (!output_error) output_error = errno;
    return false;
}

int finish_output(int exit_code) {
    bool earlier = ferror(stdout) != 0;
    errno = 0;
    bool failed = fflush(stdout) != 0;
    int why = output_error ? output_error : failed ? errno : 0;
    if ((!failed && !earlier) || why == EPIPE || (why == 0 && output_reader_left())) return exit_code;
    fprintf(stderr, "hurray: standard output: %s\n", why ? strerror(why) : "writing failed; is there space left?");
    return exit_code == EXIT_DONE ? EXIT_SYSTEM : exit_code;
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

void default_signals(void) {
    loader_to_cancel = NULL;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
