/*
 * Parses the command line of a command of fl-data, and prints its help. Pure functions except the
 * output.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "tools/fl_data/fl_data.h"

#define MAX_ARGS 64

int usage_error(const char *command, const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "fl-data%s%s: ", command[0] != '\0' ? " " : "", command);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "\ntry 'fl-data%s%s --help'\n", command[0] != '\0' ? " " : "", command);
    return EXIT_USAGE;
}

static void args_print_help(const char *summary, const struct arg *args, size_t n_args)
{
    char left[64];
    size_t i;

    (void)fputs(summary, stdout);
    (void)puts("\nOptions:");
    for (i = 0; i < n_args; i++) {
        (void)snprintf(left, sizeof(left), "--%s%s%s", args[i].name,
                       args[i].value != NULL ? " " : "",
                       args[i].value != NULL ? args[i].value : "");
        (void)printf("  %-24s %s\n", left, args[i].help);
    }
    (void)printf("  %-24s %s\n", "--help", "print this and exit");
    (void)puts("\nExit status: 0 done, 1 failed, 2 wrong usage.");
}

static const struct arg *args_find(const struct arg *args, size_t n_args, const char *name,
                                   size_t len)
{
    size_t i;

    for (i = 0; i < n_args; i++) {
        if (strlen(args[i].name) == len && memcmp(args[i].name, name, len) == 0) {
            return &args[i];
        }
    }
    return NULL;
}

static int args_unknown_option(const char *command, const char *word, const struct arg *args,
                               size_t n_args)
{
    const char *names[MAX_ARGS];
    const char *near;
    size_t i;

    for (i = 0; i < n_args && i < MAX_ARGS; i++) {
        names[i] = args[i].name;
    }
    near = fl_str_nearest(word + strspn(word, "-"), names, i);
    return usage_error(command, "unknown option '%s'%s%s%s", word,
                       near != NULL ? "; did you mean '--" : "", near != NULL ? near : "",
                       near != NULL ? "'?" : "");
}

/* Parses the option at argv[*i]; its value may be the next word. False after a usage error. */
static bool args_take_option(int argc, char **argv, int *i, const struct arg *args, size_t n_args)
{
    const char *word = argv[*i];
    const char *equals = strchr(word, '=');
    size_t len = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const struct arg *arg =
        len > 2 && word[1] == '-' ? args_find(args, n_args, word + 2, len - 2) : NULL;

    if (arg == NULL) {
        (void)args_unknown_option(argv[0], word, args, n_args);
        return false;
    }
    if (arg->value == NULL) {
        if (equals != NULL) {
            (void)usage_error(argv[0], "--%s takes no value", arg->name);
            return false;
        }
        *arg->flag = true;
        return true;
    }
    if (*arg->text != NULL) {
        (void)usage_error(argv[0], "--%s is given twice", arg->name);
        return false;
    }
    if (equals == NULL && *i + 1 == argc) {
        (void)usage_error(argv[0], "--%s needs a value (%s)", arg->name, arg->value);
        return false;
    }
    *arg->text = equals != NULL ? equals + 1 : argv[++*i];
    return true;
}

bool args_parse(int argc, char **argv, const char *summary, const struct arg *args, size_t n_args,
                const char **words, size_t n_words, int *ret_status)
{
    size_t used = 0;
    int i;

    FL_REQUIRE(n_args <= MAX_ARGS);
    *ret_status = EXIT_USAGE;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            args_print_help(summary, args, n_args);
            *ret_status = 0;
            return false;
        }
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!args_take_option(argc, argv, &i, args, n_args)) {
                return false;
            }
        } else if (used == n_words) {
            (void)usage_error(argv[0], "unexpected argument '%s'", argv[i]);
            return false;
        } else {
            words[used++] = argv[i];
        }
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
        (void)usage_error(
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
        (void)usage_error(command, "--%s: expected a number from %g to %g, found '%s'", name, min,
                          max, text);
        return false;
    }
    *ret = value;
    return true;
}
