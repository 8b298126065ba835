/* The command line of the commands of fl-data: option values, help and usage errors. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/args.h"
#include "libfl/base/str.h"
#include "tools/fl_data/fl_data.h"

#define MAX_ARGS 64

int fl_data_usage_error(const char *command, const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "fl-data%s%s: ", command[0] != '\0' ? " " : "", command);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "\ntry 'fl-data%s%s --help'\n", command[0] != '\0' ? " " : "", command);
    return EXIT_USAGE;
}

bool args_parse(int argc, char **argv, const char *summary, const struct fl_arg *args,
                size_t n_args, const char **word, int *ret_status)
{
    struct fl_arg rows[MAX_ARGS + 2] = {{.name = NULL}};
    char program[64];
    struct fl_args line = {.program = program, .rows = rows, .argc = argc, .argv = argv};
    int most = word != NULL ? 1 : 0;
    int got;

    FL_REQUIRE(n_args <= MAX_ARGS);
    (void)memcpy(rows, args, n_args * sizeof(*rows));
    rows[n_args] =
        (struct fl_arg){.name = "help", .letter = 'h', .id = 'h', .help = "print this and exit"};
    (void)snprintf(program, sizeof(program), "fl-data %s", argv[0]);
    *ret_status = EXIT_USAGE;
    got = fl_args_next(&line);
    if (got == 'h') {
        (void)printf("%s\nOptions:\n", summary);
        fl_args_help(rows, stdout);
        (void)puts("\nExit status: 0 done, 1 failed, 2 wrong usage.");
        *ret_status = 0;
        return false;
    }
    if (got != FL_ARGS_END) {
        return false;
    }
    if (line.n_operands > most) {
        (void)fl_data_usage_error(argv[0], "unexpected word '%s'", argv[1 + most]);
        return false;
    }
    if (line.n_operands == 1) {
        *word = argv[1];
    }
    return true;
}

bool arg_count(const char *command, const char *name, const char *text, uint64_t min, uint64_t max,
               uint64_t *ret)
{
    uint64_t value = 0;

    if (text == NULL) {
        return true;
    }
    if (fl_str_to_u64(text, &value) != FL_OK || value < min || value > max) {
        (void)fl_data_usage_error(
            command, "--%s: expected a whole number from %" PRIu64 " to %" PRIu64 ", found '%s'",
            name, min, max, text);
        return false;
    }
    *ret = value;
    return true;
}

bool arg_real(const char *command, const char *name, const char *text, double min, double max,
              double *ret)
{
    double value = 0.0;

    if (text == NULL) {
        return true;
    }
    if (fl_str_to_double(text, &value) != FL_OK || value < min || value > max) {
        (void)fl_data_usage_error(command, "--%s: expected a number from %g to %g, found '%s'",
                                  name, min, max, text);
        return false;
    }
    *ret = value;
    return true;
}
