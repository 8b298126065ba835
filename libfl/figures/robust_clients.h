#ifndef FL_FIGURES_ROBUST_CLIENTS_H
#define FL_FIGURES_ROBUST_CLIENTS_H

/*
 * The clients whose updates a robust rule left out of a round, or would have with `report`, as one
 * text of bounded length: "NAME USED SCORE, NAME USED SCORE", the largest score first. The text is
 * a member of the record of a round, a column of the database and a field of RoundInfo; JSON has it
 * as a list of objects (libfl/json). Names of clients have no blanks and no commas.
 *
 * Threading: pure functions.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/str.h"

/* Bounds of the list: clients with smaller scores are not in it. */
#define FL_ROBUST_CLIENTS      16
#define FL_ROBUST_CLIENTS_TEXT 1024

struct fl_robust_client {
    char name[FL_NAME_MAX];
    double used;  /* share of an equal share of the update that the rule used */
    double score; /* how far it is from the others, 1: as far as the median */
};

/* Append a client, numbers with 3 digits; false: there is no place for it. */
bool fl_robust_clients_add(char text[FL_ROBUST_CLIENTS_TEXT], const char *name, double used,
                           double score);
/* Take the first client of *text and move *text behind it; false: there is none, or the text is
   not of fl_robust_clients_add(). */
bool fl_robust_clients_next(const char **text, struct fl_robust_client *ret);

#endif
