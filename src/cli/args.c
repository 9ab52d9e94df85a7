#include "args.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --json comes last: commands without a JSON form leave it out. */
static const Option common[] = {
    {OPTION_HELP, "help", NULL, "print this help (-h)"},
    {OPTION_QUIET, "quiet", NULL, "no progress and no notes on standard error (-q)"},
    {OPTION_JSON, "json", NULL, "print one JSON object"},
};

static size_t common_count(const Command *command) { return sizeof common / sizeof *common - (command->has_json ? 0u : 1u); }

void print_help(const Command *command) {
    printf("usage: hurray %s\n\n%s\n\noptions:\n", command->usage, command->summary);
    for (size_t i = 0; i < command->option_count + common_count(command); i++) {
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
    struct option *table = calloc(command->option_count + common_count(command) + 1, sizeof *table);
    for (size_t i = 0; table && i < command->option_count + common_count(command); i++) {
        const Option *option = i < command->option_count ? &command->options[i] : &common[i - command->option_count];
        table[i].name = option->name;
        table[i].has_arg = option->value ? required_argument : no_argument;
        table[i].val = option->id;
    }
    args->table = table;
    optind = 0;
    opterr = 0;
}

/* What getopt refused: a letter, a word that is none or begins several, or a value for an option that takes none. */
static int unknown_option(const Args *args) {
    const char *word = args->argv[optind - 1], *name = args->command->name;
    if (optopt >= OPTION_HELP || (optopt > 0 && optopt < ' '))
        report_usage(name, "option %s takes no value", word);
    else if (optopt)
        report_usage(name, "there is no option -%c", optopt);
    else
        report_usage(name, "there is no option %s, or it is short for several", word);
    return ARG_ERROR;
}

int args_next(Args *args) {
    if (!args->table) {
        report_failure(EXIT_SYSTEM, args->command->name, "no memory");
        return ARG_ERROR;
    }
    for (;;) {
        int id = getopt_long(args->argc, args->argv, ":qh", args->table, NULL);
        args->value = optarg;
        switch (id) {
        case -1: return ARG_END;
        case 'h':
        case OPTION_HELP: print_help(args->command); return ARG_HELP;
        case 'q':
        case OPTION_QUIET: args->output.quiet = true; break;
        case OPTION_JSON: args->output.json = true; break;
        case ':': report_usage(args->command->name, "option %s needs a value", args->argv[optind - 1]); return ARG_ERROR;
        case '?': return unknown_option(args);
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
