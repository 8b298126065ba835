#ifndef FL_SIM_FL_SIM_H
#define FL_SIM_FL_SIM_H

/*
 * The commands of fl-sim. Each takes argv with its own name first and returns an exit code: 0 done,
 * 1 failed (the reason is on stderr), 2 wrong usage.
 */

#include "libfl/base/args.h"
#include "libfl/base/buf.h"
#include "libfl/base/err.h"

#define EXIT_USAGE       2
#define EXIT_INTERRUPTED 3

/* Prints "fl-sim COMMAND: ", the reason and how to get help on stderr; returns EXIT_USAGE. */
FL_PRINTF(2, 3) int usage_error(const char *command, const char *fmt, ...);
/* The next option, or FL_ARGS_END. Ends the program after --help, which prints the options between
 * two texts, and after a wrong option. */
int command_next(struct fl_args *args, const char *before, const char *after);
/* The exit code of a command that ended with `rv`; prints "fl-sim COMMAND: " and the error. */
int command_end(const char *command, int rv, const struct fl_err *err);
/* Prints the text unless `rv`, the result of making it, is an error, and frees it. */
FL_MUST_CHECK int print_text(struct fl_buf *text, int rv, struct fl_err *err);

/* The commands. */
int cmd_new(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_table(int argc, char **argv);
int cmd_world(int argc, char **argv);

#endif
