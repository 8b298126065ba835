#ifndef FL_DATA_FL_DATA_H
#define FL_DATA_FL_DATA_H

/*
 * What the commands of fl-data share: options, the output folder, parts written as NPY,
 * the manifest.
 *
 * Exit codes: 0 done, 1 it could not be done (the reason is on stderr), 2 wrong usage.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/args.h"
#include "libfl/base/err.h"
#include "libfl/data/dataset.h"

#define EXIT_USAGE 2
#define PATH_SIZE  4096

/* args.c */

/*
 * Parse argv[1 …]; up to `n_words` words without dashes go to `words`. Returns false when the
 * command ends here with *ret_status: help was printed (0), or the usage was wrong (2, said
 * on stderr).
 */
bool args_parse(int argc, char **argv, const char *summary, const struct fl_arg *args,
                size_t n_args, const char **words, size_t n_words, int *ret_status);
/* "fl-data COMMAND: " + what + how to get help, on stderr; returns EXIT_USAGE. */
FL_PRINTF(2, 3) int fl_data_usage_error(const char *command, const char *fmt, ...);
/* Parse the text of an option when it was given. False after a usage error. */
bool arg_count(const char *command, const char *name, const char *text, uint64_t min, uint64_t max,
               uint64_t *ret);
bool arg_real(const char *command, const char *name, const char *text, double min, double max,
              double *ret);

/* output.c */

/* A folder that appears whole or not at all: written beside its place, then renamed. */
struct output {
    char path[PATH_SIZE]; /* where it will be */
    char tmp[PATH_SIZE];  /* where it is being made; "" when nothing is */
    bool exists;          /* there is something to replace */
};

/*
 * FL_EEXIST when `path` is there and not empty, unless `force`. `input` may be NULL; an output
 * that would replace the folder with the input is refused in any case.
 */
FL_MUST_CHECK int output_begin(struct output *out, const char *path, const char *input, bool force,
                               struct fl_err *err);
/*
 * Put the finished folder in its place. What was there goes, if fl-data made it; anything else is
 * kept beside, and the user is told.
 */
FL_MUST_CHECK int output_commit(struct output *out, struct fl_err *err);
/* Remove what was made. */
void output_abort(struct output *out);
/* Make the folder `name` in the output, and its path. */
FL_MUST_CHECK int output_folder(const struct output *out, const char *name, char path[PATH_SIZE],
                                struct fl_err *err);
/* Write the manifest split.json. Borrows `root`. */
FL_MUST_CHECK int output_manifest(const struct output *out, const json_t *root, struct fl_err *err);

/* SIGINT and SIGTERM end the work at the next client; then nothing is left behind. */
void catch_signals(void);
FL_MUST_CHECK int check_interrupted(struct fl_err *err);

/* A line on stderr that counts up, when a person is looking. */
void show_progress(const char *what, size_t done, size_t total);

/* part.c: <part>-x.npy and <part>-y.npy, sample by sample. */

struct part;

/* A part of `n` samples shaped and typed like those of `like`. */
FL_MUST_CHECK int part_open(const char *folder, const char *name, const struct fl_dataset *like,
                            size_t n, struct part **ret, struct fl_err *err);
FL_MUST_CHECK int part_add(struct part *part, const struct fl_dataset *ds, size_t i,
                           struct fl_err *err);
/* The part is gone afterwards, also on error. */
FL_MUST_CHECK int part_close(struct part *part, struct fl_err *err);
void part_abort(struct part *part); /* NULL is allowed. */

/* norm.npy with the standardisation of `ds`; nothing when it has none. */
FL_MUST_CHECK int write_norm(const char *folder, const struct fl_dataset *ds, struct fl_err *err);

/* One client's folder. */
struct client_job {
    const struct output *out;
    const char *name;
    const struct fl_dataset *ds;
    const uint32_t *items; /* the client's samples, those of its test part last */
    size_t n, n_test;
    struct part *pool; /* also gets the test samples; may be NULL */
};

/*
 * Write the client's train part, and its test part when that gets samples. `manifest` gets an
 * entry with the counts.
 */
FL_MUST_CHECK int write_client(const struct client_job *job, json_t *manifest, struct fl_err *err);

/* What has a mean and a deviation of its own: "none", "all", "channel" or "value". */
const char *norm_name(const struct fl_dataset *ds);
/* The shape of a sample. */
json_t *shape_json(const struct fl_dataset *ds);

/* The commands. */
int cmd_split(int argc, char **argv);
int cmd_synthetic(int argc, char **argv);
int cmd_inspect(int argc, char **argv);

#endif
