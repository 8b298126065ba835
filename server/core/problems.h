#ifndef FL_SERVER_CORE_PROBLEMS_H
#define FL_SERVER_CORE_PROBLEMS_H

/*
 * What is wrong with a federation, by kind: each problem in one phrase that names cause and
 * subject. `flctl why`, the status page, the STATUS of systemd and the metric `fl_problem`, from
 * which alerts take their text, all show these phrases (docs/operating.md#problems).
 *
 * The coordinator finds those below the line by itself (fl_coord_problems()), the daemon the
 * others.
 */

/* X(KIND, word): the word is the label `kind` of the metric. In the order in which they are shown.
 */
#define FL_PROBLEMS(X)              \
    X(DISK_STALLED, "disk_stalled") \
    X(WORK_FAILED, "work_failed")   \
    X(CLOCK, "clock")               \
    X(CERTIFICATE, "certificate")   \
    X(CLONE, "clone")               \
    X(UNFIT, "cannot_take_part")    \
    /* --- */                       \
    X(DIVERGED, "diverged")         \
    X(LOSS_RISES, "loss_rises")     \
    X(RESTARTED, "restarted")       \
    X(UNREACHABLE, "unreachable")   \
    X(DISCONNECTED, "disconnected") \
    X(SLOW, "slow")                 \
    X(QUARANTINED, "quarantined")

enum fl_problem_kind {
#define X(kind, word) FL_PROBLEM_##kind,
    FL_PROBLEMS(X)
#undef X
        FL_PROBLEM_N
};

/* Longest phrase, with its NUL. */
#define FL_PROBLEM_TEXT 256

struct fl_problem {
    char text[FL_PROBLEM_TEXT]; /* "": there is no such problem; no figures that run */
    char more[96];              /* what follows it in a sentence: how long, until when; or "" */
};

struct fl_problems {
    struct fl_problem of[FL_PROBLEM_N];
};

extern const char *const fl_problem_words[FL_PROBLEM_N];

#endif
