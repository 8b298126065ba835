#ifndef FL_SIM_DATA_H
#define FL_SIM_DATA_H

/*
 * The data of an experiment: who its clients are and which samples each of them has
 * (docs/simulation.md#data). The samples lie in memory once; a client is a list of numbers, and
 * what it trains on is a view (fl_dataset_view()), made when it is asked for.
 *
 * The clients have, bit for bit and in the same order, what they would read from the folders that
 * fl-data makes with the same options.
 *
 * Threading: a cache may be used by several threads at once; open data is read-only, for any
 * number of threads.
 */

#include "libfl/conf/yaml.h"
#include "libfl/data/dataset.h"

/* --- the mapping `data:` of an experiment --- */

struct fl_sim_data_conf;

/* The keys that every data set has; a partition's own options come from its method. */
extern const struct fl_opt_spec fl_sim_data_options[];

/*
 * Read `map` of `doc`; paths are relative to the folder `base`, that of the experiment's file.
 * FL_ECONF with file and line: an unknown key or method (and the nearest one), an option of
 * another method, both path and set, no number of clients, a folder or a data set that is not
 * there. Borrows `doc`, which outlives the conf. Returns owned: fl_sim_data_conf_free().
 */
FL_MUST_CHECK int fl_sim_data_conf_read(const struct fl_conf_doc *doc,
                                        const struct fl_conf_node *map, const char *base,
                                        struct fl_sim_data_conf **ret, struct fl_err *err);
void fl_sim_data_conf_free(struct fl_sim_data_conf *conf);
/* Whether the seed of the trial decides (`seed: trial`); otherwise all trials share the data. */
bool fl_sim_data_conf_by_trial(const struct fl_sim_data_conf *conf);

/* --- open data --- */

struct fl_sim_data_cache;
struct fl_sim_data;

/*
 * `keep`: a folder for partitions, which is made when it is needed; NULL: none are kept. Copied.
 * Returns owned: fl_sim_data_cache_free(), after all of its data were put back.
 */
FL_MUST_CHECK int fl_sim_data_cache_new(const char *keep, struct fl_sim_data_cache **ret,
                                        struct fl_err *err);
void fl_sim_data_cache_free(struct fl_sim_data_cache *cache);

/*
 * The data of a trial with that seed. Who asks for the same data while it is open gets the same;
 * data that differs in its partition only shares its samples. Errors (FL_ECONF with file and
 * line): files that cannot be read or do not fit, a method that needs more samples, a folder that
 * fl-data did not make; FL_ENOMEM; of the folder for partitions, FL_EIO and the like. The caller
 * has a reference: fl_sim_data_put().
 */
FL_MUST_CHECK int fl_sim_data_get(struct fl_sim_data_cache *cache,
                                  const struct fl_sim_data_conf *conf, uint64_t trial_seed,
                                  const struct fl_sim_data **ret, struct fl_err *err);
void fl_sim_data_put(const struct fl_sim_data *data); /* NULL is allowed. */

/* Clients are numbers from 0 on, in the order of their names. */
size_t fl_sim_data_clients(const struct fl_sim_data *data);
const char *fl_sim_data_name(const struct fl_sim_data *data, size_t client);
/*
 * What a client trains and evaluates on when data.validation of its configuration is
 * `validation`: how many samples, and the samples. `*ret_test` is NULL when it has none. Both are
 * owned (fl_dataset_free()) and borrow `data`. FL_ESHAPE: no pictures to augment; FL_ENOMEM.
 */
void fl_sim_data_counts(const struct fl_sim_data *data, size_t client, double validation,
                        uint64_t *ret_train, uint64_t *ret_test);
FL_MUST_CHECK int fl_sim_data_client(const struct fl_sim_data *data, size_t client,
                                     double validation, enum fl_data_augment augment,
                                     struct fl_dataset **ret_train, struct fl_dataset **ret_test,
                                     struct fl_err *err);
/* What the server evaluates on; NULL when there is nothing. */
const struct fl_dataset *fl_sim_data_server(const struct fl_sim_data *data);
/* All samples of all clients: shape and classes. */
const struct fl_dataset *fl_sim_data_samples(const struct fl_sim_data *data);
/*
 * SHA-256 in hex over the clients' names, their samples and labels in their order, the
 * standardisation and the server's test set. The same for the same data however it came: out of
 * a folder that fl-data made, or out of a data set.
 */
const char *fl_sim_data_hash(const struct fl_sim_data *data);
/* Bytes in memory, samples that are shared with other data included. */
uint64_t fl_sim_data_bytes(const struct fl_sim_data *data);

#endif
