/* fl-sim: simulates whole federations in one process, in virtual time. Selects the command. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "tools/fl_sim/engine/heap.h"
#include "tools/fl_sim/experiment/experiment.h"
#include "tools/fl_sim/fl_sim.h"
#include "tools/fl_sim/results/result_columns.h"

struct command {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
};

/* Ended by a row without a name. */
static const struct command commands[] = {
    {"new", "write an experiment to start from", cmd_new},
    {"run", "run an experiment", cmd_run},
    {"plot", "plot results", cmd_plot},
    {"compare", "compare two results, paired by seed", cmd_compare},
    {"table", "print results as a table", cmd_table},
    {"world", "list network and device models, and show their clients", cmd_world},
    {NULL, NULL, NULL},
};

int usage_error(const char *command, const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "fl-sim%s%s: ", command[0] != '\0' ? " " : "", command);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "\nTry 'fl-sim%s%s --help'.\n", command[0] != '\0' ? " " : "", command);
    return EXIT_USAGE;
}

/* A write error of stdout, such as a full disk, is an error of the command. */
static int sim_main_exit(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)fputs("fl-sim: cannot write to standard output\n", stderr);
        return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
    }
    return status;
}

int command_next(struct fl_args *args, const char *before, const char *after)
{
    int opt = fl_args_next(args);

    if (opt == 'h') {
        (void)puts(before);
        fl_args_help(args->rows, stdout);
        (void)puts(after);
        exit(sim_main_exit(EXIT_SUCCESS));
    }
    if (opt == FL_ARGS_WRONG) {
        exit(EXIT_USAGE);
    }
    return opt;
}

int command_end(const char *command, int rv, const struct fl_err *err)
{
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-sim %s: %s\n", command, fl_err_text(err, rv));
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int print_text(struct fl_buf *text, int rv, struct fl_err *err)
{
    if (rv != FL_OK) {
        fl_buf_done(text);
        return fl_err_set(err, rv, "%s", fl_strerror(rv));
    }
    (void)fwrite(text->data, 1, text->len, stdout);
    fl_buf_done(text);
    return FL_OK;
}

static int print_reference(const char *what)
{
    struct fl_buf buf;
    int rv;

    if (strcmp(what, "results") == 0) {
        fl_sim_print_reference();
        return EXIT_SUCCESS;
    }
    if (strcmp(what, "experiment") != 0) {
        return usage_error("", "unknown reference '%s': expected results or experiment", what);
    }
    fl_buf_init(&buf, 1u << 20);
    rv = fl_experiment_reference(&buf);
    return print_text(&buf, rv, NULL) == FL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    /* Without SIGXFSZ a file over the size limit is a write error that is reported. */
    static const struct sigaction ignore = {.sa_handler = SIG_IGN};
    const char *names[sizeof(commands) / sizeof(commands[0])] = {NULL};
    const struct command *c;
    const char *near;
    size_t n = 0;

    (void)sigaction(SIGXFSZ, &ignore, NULL);
    fl_sim_keep_heap();
    if (argc < 2) {
        return usage_error("", "expected a command");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)puts("Usage: fl-sim COMMAND [OPTION]...\n\nCommands:");
        for (c = commands; c->name != NULL; c++) {
            (void)printf("  %-12s %s\n", c->name, c->help);
        }
        (void)puts(
            "\n'fl-sim COMMAND --help' lists the options of a command, 'fl-sim --reference' the\n"
            "figures of the results and 'fl-sim --reference experiment' the keys of the file\n"
            "(Markdown).\n"
            "Exit status: 0 done, 1 failed, 2 wrong usage.");
        return sim_main_exit(EXIT_SUCCESS);
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)puts("fl-sim " PACKAGE_VERSION);
        return sim_main_exit(EXIT_SUCCESS);
    }
    if (strcmp(argv[1], "--reference") == 0) {
        return sim_main_exit(print_reference(argc > 2 ? argv[2] : "results"));
    }
    for (c = commands; c->name != NULL; c++) {
        names[n++] = c->name;
        if (strcmp(argv[1], c->name) == 0) {
            return sim_main_exit(c->run(argc - 1, argv + 1));
        }
    }
    near = fl_str_nearest(argv[1], names, n);
    return usage_error("", "unknown command '%s'%s%s%s", argv[1],
                       near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                       near != NULL ? "'?" : "");
}
