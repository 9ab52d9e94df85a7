#include "args.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const Option common[] = {
    {OPTION_QUIET, "quiet", NULL, "no progress and no notes on standard error"},
    {OPTION_JSON, "json", NULL, "print one JSON object"},
    {OPTION_HELP, "help", NULL, "print this help"},
};
#define COMMON_COUNT (sizeof common / sizeof *common)

void print_help(const Command *command) {
    printf("usage: hurray %s\n\n%s\n\noptions:\n", command->usage, command->summary);
    for (size_t i = 0; i < command->option_count + COMMON_COUNT; i++) {
        const Option *option = i < command->option_count ? &command->options[i] : &common[i - command->option_count];
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", option->name, option->value ? " " : "", option->value ? option->value : "");
        printf("  %-28s %s\n", left, option->help);
    }
    if (command->more) printf("\n%s\n", command->more);
}

void args_begin(Args *args, const Command *command, int argc, char **argv) {
    memset(args, 0, sizeof *args);
    args->command = command;
    args->argc = argc;
    args->argv = argv;
    args->output.terminal = isatty(STDERR_FILENO) == 1;
    struct option *table = calloc(command->option_count + COMMON_COUNT + 1, sizeof *table);
    for (size_t i = 0; table && i < command->option_count + COMMON_COUNT; i++) {
        const Option *option = i < command->option_count ? &command->options[i] : &common[i - command->option_count];
        table[i].name = option->name;
        table[i].has_arg = option->value ? required_argument : no_argument;
        table[i].val = option->id;
    }
    args->table = table;
    optind = 0;
    opterr = 0;
}

int args_next(Args *args) {
    if (!args->table) {
        report_failure(EXIT_SYSTEM, args->command->name, "no memory");
        return ARG_ERROR;
    }
    for (;;) {
        int id = getopt_long(args->argc, args->argv, ":q", args->table, NULL);
        args->value = optarg;
        switch (id) {
        case -1: return ARG_END;
        case OPTION_HELP: print_help(args->command); return ARG_HELP;
        case 'q':
        case OPTION_QUIET: args->output.quiet = true; break;
        case OPTION_JSON: args->output.json = true; break;
        case ':': report_usage(args->command->name, "option %s needs a value", args->argv[optind - 1]); return ARG_ERROR;
        case '?': report_usage(args->command->name, "option %s is not known, or not alone", args->argv[optind - 1]); return ARG_ERROR;
        default: return id;
        }
    }
}

char **args_rest(const Args *args, int *count) {
    *count = args->argc - optind;
    return args->argv + optind;
}

void args_end(Args *args) {
    free(args->table);
    args->table = NULL;
}
