#ifndef FL_DATA_FL_DATA_H
#define FL_DATA_FL_DATA_H

/*
 * Shared by the commands of fl-data: options, the output folder, parts written as NPY, the
 * manifest.
 *
 * Exit codes: 0 done, 1 failed (the reason is on stderr), 2 wrong usage.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/data/dataset.h"

#define EXIT_USAGE 2
#define PATH_SIZE  4096

/* args.c */

/* An option; its value goes to `text` or `flag`. */
struct arg {
    const char *name;  /* without dashes */
    const char *value; /* name of its value in the help; NULL: a flag */
    const char *help;
    const char **text;
    bool *flag;
};

/*
 * Parse argv[1 …]; up to `n_words` words without dashes go to `words`. Returns false when the
 * command ends here with *ret_status: help was printed (0), or the usage was wrong (2, reported on
 * stderr).
 */
bool args_parse(int argc, char **argv, const char *summary, const struct arg *args, size_t n_args,
                const char **words, size_t n_words, int *ret_status);
/* Print "fl-data COMMAND: ", the reason and how to get help on stderr; returns EXIT_USAGE. */
FL_PRINTF(2, 3) int usage_error(const char *command, const char *fmt, ...);
/* Parse the text of an option if it was given. False after a usage error. */
bool arg_count(const char *command, const char *name, const char *text, uint64_t min, uint64_t max,
               uint64_t *ret);
bool arg_real(const char *command, const char *name, const char *text, double min, double max,
              double *ret);

/* data_output.c */

/* A folder that appears whole or not at all: written beside its destination, then renamed. */
struct output {
    char path[PATH_SIZE]; /* destination */
    char tmp[PATH_SIZE];  /* folder being written; "" when there is none */
    bool exists;          /* the destination exists and is replaced */
};

/*
 * FL_EEXIST when `path` exists and is not empty, unless `force`. `input` may be NULL; an output
 * that would replace the folder with the input is refused in any case.
 */
FL_MUST_CHECK int output_begin(struct output *out, const char *path, const char *input, bool force,
                               struct fl_err *err);
/*
 * Move the finished folder to its destination. Previous contents are removed if fl-data made them;
 * anything else is renamed and reported to the user.
 */
FL_MUST_CHECK int output_commit(struct output *out, struct fl_err *err);
/* Remove the unfinished folder. */
void output_abort(struct output *out);
/* Create the folder `name` in the output; returns its path. */
FL_MUST_CHECK int output_folder(const struct output *out, const char *name, char path[PATH_SIZE],
                                struct fl_err *err);
/* Write the manifest split.json. Borrows `root`. */
FL_MUST_CHECK int output_manifest(const struct output *out, const json_t *root, struct fl_err *err);

/* SIGINT and SIGTERM stop the work at the next client; then nothing is left behind. */
void catch_signals(void);
FL_MUST_CHECK int check_interrupted(struct fl_err *err);

/* A progress line on stderr, if it is a terminal. */
void show_progress(const char *what, size_t done, size_t total);

/* part.c: <part>-x.npy and <part>-y.npy, sample by sample. */

struct part;

/* A part of `n` samples with the shape and type of those of `like`. */
FL_MUST_CHECK int part_open(const char *folder, const char *name, const struct fl_dataset *like,
                            size_t n, struct part **ret, struct fl_err *err);
FL_MUST_CHECK int part_add(struct part *part, const struct fl_dataset *ds, size_t i,
                           struct fl_err *err);
/* Frees the part, also on error. */
FL_MUST_CHECK int part_close(struct part *part, struct fl_err *err);
void part_abort(struct part *part); /* NULL is allowed. */

/* norm.npy with the standardisation of `ds`; no file when it has none. */
FL_MUST_CHECK int write_norm(const char *folder, const struct fl_dataset *ds, struct fl_err *err);

/* One client's folder. */
struct client_job {
    const struct output *out;
    const char *name;
    const struct fl_dataset *ds;
    const uint32_t *items; /* indices of the client's samples, those of its test part last */
    size_t n, n_test;
    struct part *pool; /* also gets the test samples; may be NULL */
};

/*
 * Write the client's train part, and its test part if it has samples. `manifest` gets an entry with
 * the counts.
 */
FL_MUST_CHECK int write_client(const struct client_job *job, json_t *manifest, struct fl_err *err);

/* Granularity of the mean and deviation: "none", "all", "channel" or "value". */
const char *norm_name(const struct fl_dataset *ds);
/* The shape of a sample. */
json_t *shape_json(const struct fl_dataset *ds);

/* The commands. */
int cmd_split(int argc, char **argv);
int cmd_synthetic(int argc, char **argv);
int cmd_inspect(int argc, char **argv);

#endif
