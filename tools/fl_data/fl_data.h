#ifndef FL_DATA_FL_DATA_H
#define FL_DATA_FL_DATA_H

/*
 * Shared by the commands of fl-data: options, the output folder, data parts written as NPY files,
 * the manifest.
 *
 * Exit codes: 0 done, 1 failed (the reason is on stderr), 2 wrong usage.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/args.h"
#include "libfl/base/err.h"
#include "libfl/data/npy_part.h"
#include "libfl/import/schema.h"

#define EXIT_USAGE 2
#define PATH_SIZE  4096

/* data_args.c */

/*
 * Parses argv[1 …]; a word without dashes goes to `word`, when that is not NULL. Returns false when
 * the command ends here with *ret_status: help was printed (0), or the usage was wrong (2, with a
 * message on stderr).
 */
bool args_parse(int argc, char **argv, const char *summary, const struct fl_arg *args,
                size_t n_args, const char **word, int *ret_status);
/* Prints "fl-data COMMAND: ", the message and how to get help on stderr; returns EXIT_USAGE. */
FL_PRINTF(2, 3) int fl_data_usage_error(const char *command, const char *fmt, ...);
/* Parse the text of an option; NULL (not given) leaves *ret. False after a usage error. */
bool arg_count(const char *command, const char *name, const char *text, uint64_t min, uint64_t max,
               uint64_t *ret);
bool arg_real(const char *command, const char *name, const char *text, double min, double max,
              double *ret);

/* data_output.c */

/* An output folder, created atomically: written under a temporary name, then renamed. */
struct output {
    char path[PATH_SIZE]; /* the final path */
    char tmp[PATH_SIZE];  /* the temporary path; "": no output is being made */
    bool exists;          /* `path` exists and is replaced */
};

/*
 * FL_EEXIST when `path` exists and is not empty, unless `force`. `input` may be NULL; an output
 * that would replace the folder with the input is always refused.
 */
FL_MUST_CHECK int output_begin(struct output *out, const char *path, const char *input, bool force,
                               struct fl_err *err);
/*
 * Renames the finished folder to its final path. An old folder there is deleted if fl-data made it;
 * anything else is renamed and kept, with a message to the user.
 */
FL_MUST_CHECK int output_commit(struct output *out, struct fl_err *err);
/* Removes the unfinished output. */
void output_abort(struct output *out);
/* Creates the folder `name` in the output and returns its path. */
FL_MUST_CHECK int output_folder(const struct output *out, const char *name, char path[PATH_SIZE],
                                struct fl_err *err);
/* Writes the manifest split.json. Borrows `root`. */
FL_MUST_CHECK int output_manifest(const struct output *out, const json_t *root, struct fl_err *err);

/* SIGINT and SIGTERM cancel the command at the next client; the unfinished output is removed. */
void catch_signals(void);
FL_MUST_CHECK int check_interrupted(struct fl_err *err);

/* A progress line on stderr, if it is a terminal. */
void show_progress(const char *what, size_t done, size_t total);

/* data_input.c: a data set in any format, and how its texts became numbers. */

/* The options of reading, for the commands that have them; rows of struct fl_arg. */
#define N_INPUT_ARGS 11
struct input_args {
    const char *schema, *channels, *window, *stride, *characters, *target, *category, *drop;
    const char *encode, *missing;
    bool regression;
};
void input_rows(struct input_args *args, struct fl_arg rows[N_INPUT_ARGS]);

struct input {
    struct fl_dataset *train, *test; /* owned; NULL: none (not both), or taken */
    bool has_schema;
    struct fl_schema schema; /* owned */
};
/* False after a usage error of `command`. */
struct fl_import_conf;
bool input_conf(const char *command, const struct input_args *args, struct fl_import_conf *ret);
/*
 * Reads both parts of `folder`: pictures, text and tables through libfl/import, everything else
 * through fl_dataset_open(). Prints warnings on stderr. `conf` borrows from `args`. On success the
 * caller calls input_done().
 */
FL_MUST_CHECK int input_open(const char *command, const char *folder, const struct input_args *args,
                             const struct fl_import_conf *conf, struct input *ret,
                             struct fl_err *err);
void input_done(struct input *input);

/* schema_json.c: schema.json, how the texts of a data set became numbers. */

#define SCHEMA_FILE "schema.json"
json_t *schema_json(const struct fl_schema *schema);
/* Writes schema.json into `folder`; nothing without a schema. */
FL_MUST_CHECK int write_schema(const char *folder, const struct input *input, struct fl_err *err);
/* FL_EFORMAT names the file and the member. On success the caller calls fl_schema_done(). */
FL_MUST_CHECK int read_schema(const char *path, struct fl_schema *ret, struct fl_err *err);

/* part.c: the folder of one client. */
struct client_job {
    const struct output *out;
    const char *name;
    const struct fl_dataset *ds;
    const uint32_t *items; /* the client's samples, those of its test part last */
    size_t n, n_test;
    size_t n_noisy;            /* training samples whose label was replaced */
    struct fl_npy_part *pool;  /* also gets the test samples; may be NULL */
    const struct input *input; /* of the schema; may be NULL */
};

/*
 * Writes the client's train part, and its test part when it has samples. Adds an entry with the
 * counts to `manifest`.
 */
FL_MUST_CHECK int write_client(const struct client_job *job, json_t *manifest, struct fl_err *err);

/* What each mean and deviation is computed over: "none", "all", "channel" or "value". */
const char *norm_name(const struct fl_dataset *ds);
/* The shape of a sample. */
json_t *shape_json(const struct fl_dataset *ds);

/* The commands. */
int cmd_split(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_synthetic(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
/* `inspect` of a file instead of a folder; returns the exit code. */
int inspect_file(const char *path, bool as_json);

#endif
