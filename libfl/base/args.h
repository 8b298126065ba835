#ifndef FL_BASE_ARGS_H
#define FL_BASE_ARGS_H

/*
 * Command line parsing from a table of options: parsing, --help and the message for an unknown
 * option are generated from the rows. Options and operands may come in any order; "--" ends the
 * options. "--name=value", "--name value", "-n value", "-nvalue" and letters together ("-jl 3").
 */

#include <stdbool.h>
#include <stdio.h>

#include "libfl/base/err.h"

/* One option; the table ends with a row without name. */
struct fl_arg {
    const char *name;  /* without dashes */
    const char *value; /* name of its value in the help; NULL: a flag */
    const char *help;
    const char **text; /* NULL until it is given; a second time is an error */
    bool *flag;
    int id;      /* returned by fl_args_next(); 0: stored in `text` or `flag` instead */
    char letter; /* '\0': none */
};

/* A row whose id fl_args_next() returns. */
#define FL_ARG(name_, letter_, value_, id_, help_)                                            \
    {                                                                                         \
        .name = (name_), .letter = (letter_), .value = (value_), .id = (id_), .help = (help_) \
    }

struct fl_args {
    const char *program; /* for messages: "fl-sim run" */
    const struct fl_arg *rows;
    int argc;
    char **argv; /* [0] is ignored; operands are moved to the front */
    /* The last option. */
    const struct fl_arg *row;
    const char *value;
    /* Operands from argv[1] on; complete after FL_ARGS_END. */
    int n_operands;
    /* Private. */
    int at;
    const char *letters; /* the remaining letters of a combined option */
    bool only_operands;
};

#define FL_ARGS_END   (-1)
#define FL_ARGS_WRONG (-2) /* wrong usage, reported on stderr */

/* The id of the next option that has one. Values are borrowed from argv. */
int fl_args_next(struct fl_args *args);
/* "PROGRAM: what is wrong, try PROGRAM --help" on stderr; returns FL_ARGS_WRONG. */
FL_PRINTF(2, 3) int fl_args_wrong(const struct fl_args *args, const char *fmt, ...);
/* The options, a row or more each, their descriptions in one column. */
void fl_args_help(const struct fl_arg *rows, FILE *out);

#endif
