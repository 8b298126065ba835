#ifndef FL_BASE_ARGS_H
#define FL_BASE_ARGS_H

/*
 * The command line of a program from a table of its options: reading it, --help and what is said
 * of an unknown option follow from the rows. Options and operands may come in any order; "--" ends
 * the options. "--name=value", "--name value", "-n value", "-nvalue" and letters together ("-jl
 * 3").
 */

#include <stdbool.h>
#include <stdio.h>

#include "libfl/base/err.h"

/* One option; ended by a row without name. */
struct fl_arg {
    const char *name;  /* without dashes */
    const char *value; /* what the help calls its value; NULL: a flag */
    const char *help;
    const char **text; /* NULL before it is given, and it may be given once */
    bool *flag;
    int id;      /* what fl_args_next() gives; 0: it goes to `text` or `flag` instead */
    char letter; /* '\0': none */
};

/* A row that fl_args_next() gives. */
#define FL_ARG(name_, letter_, value_, id_, help_)                                            \
    {                                                                                         \
        .name = (name_), .letter = (letter_), .value = (value_), .id = (id_), .help = (help_) \
    }

struct fl_args {
    const char *program; /* of messages: "fl-sim run" */
    const struct fl_arg *rows;
    int argc;
    char **argv; /* [0] is not looked at; operands are moved to the front */
    /* Of the option that came last. */
    const struct fl_arg *row;
    const char *value;
    /* From argv[1] on; all of them when FL_ARGS_END came. */
    int n_operands;
    /* Private. */
    int at;
    const char *letters; /* the rest of letters together */
    bool only_operands;
};

#define FL_ARGS_END   (-1)
#define FL_ARGS_WRONG (-2) /* wrong usage, said on stderr */

/* The id of the next option that has one. Values are borrowed from argv. */
int fl_args_next(struct fl_args *args);
/* "PROGRAM: what is wrong, try PROGRAM --help" on stderr; returns FL_ARGS_WRONG. */
FL_PRINTF(2, 3) int fl_args_wrong(const struct fl_args *args, const char *fmt, ...);
/* The options, a row or more each, their descriptions in one column. */
void fl_args_help(const struct fl_arg *rows, FILE *out);

#endif
