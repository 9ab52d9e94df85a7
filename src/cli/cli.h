/* What all commands of `hurray` share: exit codes, messages, words, sizes. Public headers of the library only. */
#ifndef HRY_CLI_CLI_H
#define HRY_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "hurray.h"
#include "hurray/loader.h"

/* Exit codes, fixed for scripts. */
enum { EXIT_DONE = 0, EXIT_BAD_INPUT = 1, EXIT_USAGE = 2, EXIT_SYSTEM = 3, EXIT_NOT_FOUND = 4, EXIT_DEVICE = 5, EXIT_INTERRUPTED = 130 };

int exit_code_of(HurrayStatus status);

typedef struct Output {
    bool quiet, json, terminal; /* terminal: standard error is one */
} Output;

/* One line to standard error: hurray: FILE: WHERE: message. Returns the exit code of error->code. */
int report_error(const char *file, const HurrayError *error);
/* Says which tensor, where the error does not yet. */
void name_tensor(HurrayError *error, const void *name, size_t len);
/* The same for what the command itself found. */
int report_failure(int exit_code, const char *file, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "hurray: ...; see hurray COMMAND --help", exit code 2. */
int report_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line to standard error unless quiet. */
void note(const Output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* To standard output; false: the rest need not be made, finish_output reports why. */
bool write_output(const void *bytes, size_t len);
/* Standard output is a pipe that nobody reads any more. */
bool output_reader_left(void);
/* Flushes standard output; a broken pipe is no error, anything else is exit code 3. */
int finish_output(int exit_code);

bool text_is_utf8(const void *text, size_t len);
/* Untrusted text, escaped: printable characters stay, others become \xNN. */
void print_text(FILE *to, const void *text, size_t len);
/* The same into memory that the caller frees; NULL: no memory. */
char *escape_text(const void *text, size_t len);

/* Words for the bytes of the format; never NULL. */
const char *type_word(uint8_t tag);
const char *layout_word(uint8_t tag);
const char *device_word(uint8_t tag);
const char *sync_word(uint8_t mode);
const char *memory_class_word(uint8_t memory_class);
const char *format_word(uint32_t format);
const char *kv_kind_word(uint32_t kind);
uint8_t type_tag_of(const char *word); /* 0: unknown */
/* Bits of an element of a listed type, 0 for others. */
uint32_t type_bits(uint8_t tag);

/* Columns that printable text takes on a terminal. */
size_t text_width(const char *text);
/* "1.3 ms" into the same ring as bytes_word. */
const char *seconds_word(double seconds);
/* "4 KiB", "2 MiB", in the same ring. */
const char *binary_word(uint64_t bytes);
/* "1.25 GB" (decimal units) into a static ring of buffers, for messages. */
const char *bytes_word(uint64_t bytes);
/* A number with an optional suffix K, M, G, T (powers of 1024). */
bool parse_bytes(const char *text, uint64_t *out);
bool parse_number(const char *text, uint64_t max, uint64_t *out);

/* Set by SIGINT and SIGTERM, once install_signals has been called; the loader given (may be NULL) is cancelled. */
extern volatile int interrupted;
void install_signals(HurrayLoader *loader);
/* They end the process again: nothing is left to undo. */
void default_signals(void);

double now_seconds(void);

#endif
