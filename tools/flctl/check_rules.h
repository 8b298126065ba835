#ifndef FL_FLCTL_CHECK_RULES_H
#define FL_FLCTL_CHECK_RULES_H

/*
 * The rules of `flctl check`: what is measured of a federation, from which bound on a measure is a
 * warning or critical, and how bounds are written on the command line. check_cmd.c asks the server
 * and prints the result. docs/operating.md#monitoring lists the measures.
 *
 * Pure: no I/O, the time is an argument.
 */

#include "libfl/base/err.h"
#include "libfl/wire/wire_admin.h"

/* Also the exit codes, as monitoring plugins have them. */
enum fl_check_level { FL_CHECK_OK, FL_CHECK_WARNING, FL_CHECK_CRITICAL, FL_CHECK_UNKNOWN };

/* X(id, name, kind, side, warning, critical, meaning); a bound NULL: none by default. */
/* clang-format off */
#define FL_CHECK_MEASURES(X)                                                                       \
    X(AGE, "age", SPAN, ABOVE, NULL, NULL,                                                         \
      "time since the newest round was committed, or since the start while there is none")         \
    X(LATE, "late", TIMES, ABOVE, "3x", "10x",                                                     \
      "that time, relative to the usual time between two commits, at least a minute")              \
    X(FAILED, "failed", COUNT, ABOVE, "2", "5",                                                    \
      "attempts of the open round that failed, in a row")                                          \
    X(PAUSED, "paused", COUNT, ABOVE, "1", NULL,                                                   \
      "1 while the federation is paused")                                                          \
    X(MISSING, "missing", PERCENT, ABOVE, "20%", "50%",                                            \
      "known clients that are not connected")                                                      \
    X(QUARANTINED, "quarantined", COUNT, ABOVE, "1", NULL,                                         \
      "quarantined clients")                                                                       \
    X(DISK, "disk", PERCENT, BELOW, "10%", "5%",                                                   \
      "free space of the file system of the state folder")                                         \
    X(CERTIFICATE, "certificate", SPAN, BELOW, "7d", "2d",                                         \
      "time until the certificate of the server expires")
/* clang-format on */

#define FL__CHECK_ID(id, ...) FL_CHECK_##id,
enum fl_check_id { FL_CHECK_MEASURES(FL__CHECK_ID) FL_CHECK_N };
#undef FL__CHECK_ID

enum fl_check_kind { FL_CHECK_SPAN, FL_CHECK_TIMES, FL_CHECK_COUNT, FL_CHECK_PERCENT };
enum fl_check_side { FL_CHECK_ABOVE, FL_CHECK_BELOW }; /* the side on which values are bad */

struct fl_check_measure {
    const char *name;
    enum fl_check_kind kind;
    enum fl_check_side side;
    const char *warning, *critical; /* defaults as text */
    const char *meaning;
};

extern const struct fl_check_measure fl_check_measures[FL_CHECK_N];

/* Bounds, or values; seconds for a SPAN. NAN: none, or not measured. */
struct fl_check_values {
    double of[FL_CHECK_N];
};

/* What a check asks the server; borrowed. */
struct fl_check_seen {
    const struct fl_wire_status *status;
    const struct fl_wire_round *rounds; /* the newest ones, oldest first */
    size_t n_rounds;
    const struct fl_wire_client *clients;
    size_t n_clients;
    uint64_t now_ms; /* since 1970 */
};

void fl_check_defaults(struct fl_check_values *warning, struct fl_check_values *critical);
/*
 * Change the bounds that `text` names: "late=5x,disk=20%,paused=off". FL_EINVAL, with what was
 * expected.
 */
FL_MUST_CHECK int fl_check_read(const char *text, struct fl_check_values *bounds,
                                struct fl_err *err);
void fl_check_measure(const struct fl_check_seen *seen, struct fl_check_values *ret);
/* A value on the bad side of a bound, or equal to it, reaches it. */
enum fl_check_level fl_check_judge(enum fl_check_id id, const struct fl_check_values *values,
                                   const struct fl_check_values *warning,
                                   const struct fl_check_values *critical);
/* The usual time between two commits (ms), the median; 0: not known yet. */
uint64_t fl_check_usual_ms(const struct fl_wire_round *rounds, size_t n);
/* A known client that is not connected; names of which only an error is left do not count. */
bool fl_check_is_missing(const struct fl_wire_client *client);

#endif
