/* hurray: lists, checks, loads, converts and prints model weights. */
#include "args.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hurray/version.h"

static const Command *const commands[] = {
    &command_inspect, &command_verify, &command_load, &command_convert, &command_cat, &command_stream, &command_devices,
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static const Command *find_command(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static void print_overview(FILE *to) {
    fputs("usage: hurray COMMAND [arguments]\n\n"
          "Model weights from where they lie into the memory where an engine needs them: .hrry files, Hurray streams,\n"
          "safetensors (one file, sharded, or a folder), GGUF, NPZ and NPY, recognised by content.\n\ncommands:\n",
          to);
    for (size_t i = 0; i < COMMAND_COUNT; i++) fprintf(to, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n`hurray COMMAND --help` says more; `hurray --version` prints the version.\n\n"
          "exit codes: 0 done; 1 the input is bad; 2 wrong usage; 3 the system refused; 4 no such tensor, buffer or key;\n"
          "5 no such device, or it failed; 130 interrupted\n",
          to);
}

/* A closed standard descriptor would be given to the first file opened, and messages would go into that file. The stand-in for
 * the input is not readable, that for an output not writable, so that reading and writing still fail. */
static void hold_standard_descriptors(void) {
    int fd;
    do fd = open("/dev/null", fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

/* A model may have more files than descriptors are allowed at first: as many as may be had. */
static void allow_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is then an error of the write */
    hold_standard_descriptors();
    allow_descriptors();
    setlocale(LC_CTYPE, "C.UTF-8"); /* a ? in a pattern is a character, here as in the library */
    unsetenv("POSIXLY_CORRECT");    /* options may stand anywhere */
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        const Command *about = argc > 2 ? find_command(argv[2]) : NULL;
        if (argc > 2 && !about) return report_usage(NULL, "there is no command `%s`", argv[2]);
        if (about)
            print_help(about);
        else
            print_overview(stdout);
        return finish_output(EXIT_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("hurray %s (C ABI %u)\n", HURRAY_VERSION_STRING, (unsigned)hurray_c_abi_version());
        return finish_output(EXIT_DONE);
    }
    const Command *command = find_command(argv[1]);
    if (!command && argv[1][0] == '-') return report_usage(NULL, "a command comes first; `%s` is none", argv[1]);
    if (!command) return report_usage(NULL, "there is no command `%s`", argv[1]);
    return finish_output(command->run(command, argc - 1, argv + 1));
}
