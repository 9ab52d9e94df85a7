/* Options of a command: a table that both parsing and --help come from. */
#ifndef HRY_CLI_ARGS_H
#define HRY_CLI_ARGS_H

#include "cli.h"

typedef struct Option {
    int id;            /* > 0 */
    const char *name;  /* without the dashes */
    const char *value; /* what the value is called, or NULL when it takes none */
    const char *help;
} Option;

typedef struct Command {
    const char *name;
    const char *usage;   /* after "hurray " */
    const char *summary; /* one line */
    const char *more;    /* paragraphs for --help, or NULL */
    const Option *options;
    size_t option_count;
    bool has_json;
    int (*run)(const struct Command *command, int argc, char **argv); /* argv[0] is the command's name */
} Command;

enum { ARG_END = 0, ARG_ERROR = -1, ARG_HELP = -2 };
/* Ids of options that every command has. */
enum { OPTION_HELP = 1000, OPTION_QUIET, OPTION_JSON };

typedef struct Args {
    const Command *command;
    int argc;
    char **argv;
    void *table; /* of getopt */
    const char *value;
    Output output;
} Args;

/* ids come one by one; OPTION_QUIET and OPTION_JSON are taken in here. ARG_HELP: help was printed. ARG_ERROR: a usage
 * error was reported. ARG_END: positional arguments follow. */
void args_begin(Args *args, const Command *command, int argc, char **argv);
int args_next(Args *args);
/* After ARG_END: the positional arguments. */
char **args_rest(const Args *args, int *count);
void args_end(Args *args);

void print_help(const Command *command);

extern const Command command_inspect, command_verify, command_load, command_convert, command_cat, command_stream, command_devices;

#endif
