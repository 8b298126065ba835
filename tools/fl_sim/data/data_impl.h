#ifndef FL_SIM_DATA_IMPL_H
#define FL_SIM_DATA_IMPL_H

/* Shared by the files of this folder: configured and open data. */

#include "libfl/base/str.h"
#include "libfl/base/writer.h"
#include "libfl/data/split.h"
#include "libfl/data/synthetic.h"
#include "libfl/import/import.h"
#include "tools/fl_sim/data/sim_data.h"

#define FL__DATA_PATH 4096
/* Digits of a SHA-256, and the NUL. */
#define FL__DATA_HASH 65

enum fl__data_kind {
    FL__DATA_FOLDER, /* made by fl-data */
    FL__DATA_SET,    /* with a partition */
    FL__DATA_SYNTHETIC,
    FL__DATA_PROGRAM /* a program's, of which only the counts are known */
};

/* Texts of struct fl_import_conf: characters, target, category, drop. */
#define FL__DATA_TEXTS 4

struct fl_sim_data_conf {
    const struct fl_conf_node *map; /* for messages */
    enum fl__data_kind kind;
    char path[FL__DATA_PATH];     /* FOLDER, SET: path of it */
    bool by_trial;                /* the seeds below are replaced by that of the trial */
    struct fl_split_conf split;   /* SET; test_share of SYNTHETIC too */
    struct fl_import_conf import; /* SET: how texts and pictures become numbers */
    char *texts[FL__DATA_TEXTS];  /* owned; what `import` borrows */
    struct fl_synthetic_conf synthetic;
    size_t n_clients; /* PROGRAM */
    fl_sim_data_count_cb *count;
    void *ctx;
};

/* Samples in memory. */
struct fl__samples {
    size_t refs;              /* of open data; under the lock of the cache */
    struct fl__samples *next; /* in the cache */
    char *key;                /* description of their origin */
    struct fl_split_set set;
    size_t skipped;             /* rows of a table without a value, which are left out */
    uint64_t *sums, *test_sums; /* a checksum for each sample of set.train and set.test */
};

struct fl_sim_data {
    size_t refs;
    struct fl_sim_data_cache *cache;
    struct fl_sim_data *next; /* in the cache */
    char *key;
    struct fl__samples *samples;
    /* indices into samples->set.train; each list ends with the test samples */
    struct fl_partition part;
    uint32_t *n_test; /* [clients] */
    int32_t *labels;  /* of all samples of the set, with label noise; NULL: those of the set */
    char *names;      /* [clients][name_size] */
    size_t name_size;
    uint32_t *server_items;          /* of `server`, if that is a view */
    struct fl_dataset *server_view;  /* owned; the clients' test samples */
    const struct fl_dataset *server; /* NULL: none */
    char hash[FL__DATA_HASH];
};

/* find.c: the folder of a data set that a file in `base` names. FL_ENOENT with the places that were
   searched. */
FL_MUST_CHECK int fl__data_find(const char *base, const char *name, char path[FL__DATA_PATH],
                                struct fl_err *err);
/* Resolves `path` relative to the folder `base`. FL_ELIMIT. */
FL_MUST_CHECK int fl__data_resolve(const char *base, const char *path, char out[FL__DATA_PATH],
                                   struct fl_err *err);

/*
 * The functions below fill new data, zeroed except for `samples`, which is new and empty too unless
 * stated otherwise. On an error the caller frees it with fl__data_free().
 */

/* sim_folder.c: data in folders that fl-data made. */
FL_MUST_CHECK int fl__data_open_folder(const char *path, struct fl_sim_data *data,
                                       struct fl_err *err);
/* made.c: a generated federation; a partition of a loaded data set. */
FL_MUST_CHECK int fl__data_open_synthetic(const struct fl_synthetic_conf *conf, double test_share,
                                          struct fl_sim_data *data, struct fl_err *err);
FL_MUST_CHECK int fl__data_share(const struct fl_split_conf *conf, const char *keep,
                                 struct fl_sim_data *data, struct fl_err *err);
/* The samples of a data set in any format, as fl-data split has them before it divides them. */
FL_MUST_CHECK int fl__data_open_set(const struct fl_sim_data_conf *conf, struct fl__samples *ret,
                                    struct fl_err *err);
FL_MUST_CHECK int fl__data_open_program(const struct fl_sim_data_conf *conf,
                                        struct fl_sim_data *data, struct fl_err *err);
/* Allocates names and test counts of `n` clients. FL_ENOMEM. */
FL_MUST_CHECK int fl__data_take_clients(struct fl_sim_data *data, size_t n, size_t name_size,
                                        struct fl_err *err);

/* data_cache.c: partitions in files. Reading returns FL_ENOENT, without a message, when the file
   does not exist, is damaged, or has another partition. */
struct fl__data_key {
    uint8_t sha[32];
};
/* Appends method, options, clients, seed and test share as text. */
void fl__data_describe_partition(const struct fl_split_conf *conf, struct fl_writer *w);
FL_MUST_CHECK int fl__data_partition_key(const struct fl_dataset *train,
                                         const struct fl_split_conf *conf, struct fl__data_key *ret,
                                         struct fl_err *err);
FL_MUST_CHECK int fl__data_read_partition(const char *folder, const struct fl__data_key *key,
                                          size_t n_clients, size_t n_samples,
                                          struct fl_partition *ret, struct fl_err *err);
FL_MUST_CHECK int fl__data_write_partition(const char *folder, const struct fl__data_key *key,
                                           const struct fl_partition *part, struct fl_err *err);

/* hash.c */
FL_MUST_CHECK int fl__data_sum_samples(const struct fl_dataset *ds, uint64_t **ret,
                                       struct fl_err *err);
FL_MUST_CHECK int fl__data_hash(struct fl_sim_data *data, struct fl_err *err);

#endif
