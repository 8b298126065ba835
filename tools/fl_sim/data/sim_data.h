#ifndef FL_SIM_DATA_H
#define FL_SIM_DATA_H

/*
 * The data of an experiment: its clients and the samples of each (docs/simulation.md#data). The
 * samples are in memory once; a client is a list of indices, and its training data is a view
 * (fl_dataset_view()), made on demand.
 *
 * The clients have, bit for bit and in the same order, the data of the folders that fl-data makes
 * with the same options.
 *
 * Threading: a cache may be used by several threads at once; open data is read-only, for any number
 * of threads.
 */

#include "libfl/conf/yaml.h"
#include "libfl/data/dataset.h"

/* --- the mapping `data:` of an experiment --- */

struct fl_sim_data_conf;

/* The keys of every data set; the options of a partition come from its method. */
extern const struct fl_opt_spec fl_sim_data_options[];

/*
 * Read `map` of `doc`; paths are relative to `base`, the folder of the experiment's file. FL_ECONF
 * with file and line: an unknown key or method (and the nearest one), an option of another method,
 * both path and set, no number of clients, a folder or data set that does not exist. Borrows `doc`,
 * which outlives the conf. Returns owned: fl_sim_data_conf_free().
 */
FL_MUST_CHECK int fl_sim_data_conf_read(const struct fl_conf_doc *doc,
                                        const struct fl_conf_node *map, const char *base,
                                        struct fl_sim_data_conf **ret, struct fl_err *err);
void fl_sim_data_conf_free(struct fl_sim_data_conf *conf);
/* The data is that of a program (`clients` only), which says how many samples each client has. */
bool fl_sim_data_conf_of_program(const struct fl_sim_data_conf *conf);
/*
 * Asks it: fl_sim_data_get() calls `count(ctx, client, name, clients, …)` for each client in order,
 * from 0 on, and for the server's test samples at the end with client = clients and name NULL. An
 * error ends the opening. Only of such data, before it is opened.
 */
typedef int fl_sim_data_count_cb(void *ctx, size_t client, const char *name, size_t clients,
                                 uint64_t *ret_train, uint64_t *ret_test, struct fl_err *err);
void fl_sim_data_conf_ask(struct fl_sim_data_conf *conf, fl_sim_data_count_cb *count, void *ctx);
/*
 * Where a program finds the samples of a client, or those of the server when `name` is NULL: into
 * `out`, "" where it knows itself. `*ret_whole`: all samples of that folder; false: of a data set,
 * those with the indices of fl_sim_data_client(). FL_ELIMIT: the path is too long; FL_ECONF: the
 * samples are generated, or their labels have noise, so that they are in no folder.
 */
FL_MUST_CHECK int fl_sim_data_conf_folder(const struct fl_sim_data_conf *conf, const char *name,
                                          char *out, size_t size, bool *ret_whole,
                                          struct fl_err *err);
/* Does the data depend on the seed of the trial (`seed: trial`)? Otherwise all trials share it. */
bool fl_sim_data_conf_by_trial(const struct fl_sim_data_conf *conf);

/* --- open data --- */

struct fl_sim_data_cache;
struct fl_sim_data;

/*
 * `keep`: a folder for partitions, created when it is needed; NULL: partitions are not stored.
 * Copied. Returns owned: fl_sim_data_cache_free(), after all of its data were put back.
 */
FL_MUST_CHECK int fl_sim_data_cache_new(const char *keep, struct fl_sim_data_cache **ret,
                                        struct fl_err *err);
void fl_sim_data_cache_free(struct fl_sim_data_cache *cache);

/*
 * The data of a trial with that seed. Callers that request the same data while it is open share it;
 * data that differs only in its partition shares the samples. The data that was put back last stays
 * in memory for the next caller, until other data is put back or other samples are read. Errors
 * (FL_ECONF with file and line): files that cannot be read or do not match, a method that needs
 * more samples, a folder that fl-data did not make; FL_ENOMEM; of the folder for partitions, FL_EIO
 * and the like. Returns a reference: fl_sim_data_put().
 */
FL_MUST_CHECK int fl_sim_data_get(struct fl_sim_data_cache *cache,
                                  const struct fl_sim_data_conf *conf, uint64_t trial_seed,
                                  const struct fl_sim_data **ret, struct fl_err *err);
void fl_sim_data_put(const struct fl_sim_data *data); /* NULL is allowed. */

/* Clients are numbered from 0 on, in the order of their names. */
size_t fl_sim_data_clients(const struct fl_sim_data *data);
const char *fl_sim_data_name(const struct fl_sim_data *data, size_t client);
/*
 * The data for training and evaluation of a client whose configuration has `validation` as
 * data.validation: the number of samples, and the samples. `*ret_test` is NULL when it has none.
 * Both are owned (fl_dataset_free()) and borrow `data`. FL_ESHAPE: augmentation needs pictures;
 * FL_ENOMEM.
 */
void fl_sim_data_counts(const struct fl_sim_data *data, size_t client, double validation,
                        uint64_t *ret_train, uint64_t *ret_test);
FL_MUST_CHECK int fl_sim_data_client(const struct fl_sim_data *data, size_t client,
                                     double validation, enum fl_data_augment augment,
                                     struct fl_dataset **ret_train, struct fl_dataset **ret_test,
                                     struct fl_err *err);
/* The server's evaluation data; NULL when there is none. */
const struct fl_dataset *fl_sim_data_server(const struct fl_sim_data *data);
/* All samples of all clients: shape and classes. */
const struct fl_dataset *fl_sim_data_samples(const struct fl_sim_data *data);
/*
 * SHA-256 in hex over the clients' names, their samples and labels in order, the standardisation
 * and the server's test set. Equal for equal data, from a folder that fl-data made or from a data
 * set.
 */
const char *fl_sim_data_hash(const struct fl_sim_data *data);
/* Rows of a table that `missing: skip` left out. */
size_t fl_sim_data_skipped(const struct fl_sim_data *data);
/* Bytes in memory, including samples that are shared with other data. */
uint64_t fl_sim_data_bytes(const struct fl_sim_data *data);

#endif
