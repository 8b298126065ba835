#ifndef FL_STORE_FILES_H
#define FL_STORE_FILES_H

/*
 * Data for clients that is stored in files, not in memory.
 *
 *   <dir>/personal_models/NNNNNN.mix    the personalized models of all clients of round N
 *   <dir>/summaries/<client>.summary  the data summary of a client
 *   <dir>/summaries/fixed           the collection of all data summaries, fixed when the first
 * round starts and rebuilt when one is removed
 *
 * Every file is written under a temporary name, synced and renamed: after a crash it is complete or
 * absent. The valid personalized models are those of the last committed round, as recorded in the
 * database; those of the round before are kept with its checkpoint until the next round is
 * aggregated, for a rollback. The checkpoint of a round names its personalized models by their
 * seal. Reads are checked against checksums in the files.
 *
 * Threading: fl_file from any thread, reads included; every other object belongs to the thread that
 * created it. Errors: as store.h.
 */

#include "libfl/model/layout.h"
#include "server/store/store.h"

/* A section of a file, open for reading, reference counted. */
struct fl_file;

/* The whole file. FL_ENOENT: no such file. */ FL_MUST_CHECK int fl_file_open(const char *path,
                                                                              struct fl_file **ret,
                                                                              struct fl_err *err);
struct fl_file *fl_file_ref(struct fl_file *file);
void fl_file_unref(struct fl_file *file); /* NULL is allowed. */
uint64_t fl_file_size(const struct fl_file *file);
/* Exactly `len` bytes at `offset`. FL_EFORMAT: the file was truncated or is damaged. */
FL_MUST_CHECK int fl_file_read(const struct fl_file *file, uint64_t offset, void *out, size_t len);
/* Read the whole file once and check its checksums. */
FL_MUST_CHECK int fl_file_verify(const struct fl_file *file);

/* --- personalized models (folder "personal_models") --- */

struct fl_personal_models_writer;

/*
 * Create the file of `round`: `bytes` for each of n clients, in client order. Removes an existing
 * file of this round. Copies the names.
 */
FL_MUST_CHECK int fl_personal_models_create(const char *dir, uint64_t round,
                                            const char *const *names, size_t n, uint64_t bytes,
                                            struct fl_personal_models_writer **ret,
                                            struct fl_err *err);
/* The bytes of one client must be written in ascending order, without gaps (FL_ERANGE). */
FL_MUST_CHECK int fl_personal_models_write(struct fl_personal_models_writer *w, size_t client,
                                           uint64_t offset, const void *data, size_t len,
                                           struct fl_err *err);
/* Do not sync the file: it survives a crash of the process, not of the machine. */
void fl_personal_models_scratch(struct fl_personal_models_writer *w);
/* Sync and publish the file. FL_ESTATE: bytes are missing. Takes `w`. */
FL_MUST_CHECK int fl_personal_models_publish(struct fl_personal_models_writer *w,
                                             struct fl_err *err);
/* Remove the unfinished file. Takes `w`; NULL is allowed. */
void fl_personal_models_abandon(struct fl_personal_models_writer *w);

struct fl_personal_models;

/* FL_ENOENT: the round has none; FL_EFORMAT: damaged, or of models of another size. */
FL_MUST_CHECK int fl_personal_models_open(const char *dir, uint64_t round, uint64_t bytes,
                                          struct fl_personal_models **ret, struct fl_err *err);
size_t fl_personal_models_count(const struct fl_personal_models *m);
const char *fl_personal_models_name(const struct fl_personal_models *m, size_t i);
/* The model of the i-th client; returned owned, release with fl_file_unref(). NULL: out of memory.
 */
struct fl_file *fl_personal_models_file(const struct fl_personal_models *m, size_t i);
/* Read all models once and check their checksums. FL_EFORMAT: damaged. */
FL_MUST_CHECK int fl_personal_models_verify(const struct fl_personal_models *m, struct fl_err *err);
/* A digest of the whole file, for fl_models_tag.personal_models. */
#define FL_PERSONAL_MODELS_SEAL 48
void fl_personal_models_seal(const struct fl_personal_models *m, char out[FL_PERSONAL_MODELS_SEAL]);
/*
 * Open and verify the personalized models that a checkpoint names by `seal`. FL_ENOENT: missing;
 * FL_EFORMAT: damaged, or another file; the message says which. Other errors do not mean that the
 * file is bad.
 */
FL_MUST_CHECK int fl_personal_models_open_sealed(const char *dir, uint64_t round, uint64_t bytes,
                                                 const char *seal, struct fl_personal_models **ret,
                                                 struct fl_err *err);
/* Index of the client `name`, or fl_personal_models_count() when it has no model. */
size_t fl_personal_models_find(const struct fl_personal_models *m, const char *name);
void fl_personal_models_close(struct fl_personal_models *m); /* NULL is allowed. */
/* Remove all files except those of the rounds `oldest` to `newest` (0: all) and the quarantined
 * one. */
FL_MUST_CHECK int fl_personal_models_clean(const char *dir, uint64_t oldest, uint64_t newest,
                                           struct fl_err *err);
/*
 * Rename the file of `round`, if it exists, to "….mix.bad", so that nothing reads or removes it.
 * Only the newest such file is kept, as they are large.
 */
FL_MUST_CHECK int fl_personal_models_quarantine(const char *dir, uint64_t round,
                                                struct fl_err *err);

/* --- data summaries ("summaries") --- */

/* Replace the data summary of `client`, durably. FL_EEXIST: the collection is fixed already. */
FL_MUST_CHECK int fl_summaries_put(const char *dir, const char *client, const void *data,
                                   size_t len, struct fl_err *err);
/* false: no file, or a damaged one. */
bool fl_summaries_has(const char *dir, const char *client);
/* Was it removed by fl_summaries_remove() with `stays`? */
bool fl_summaries_dropped(const char *dir, const char *client);
/* Does the collection exist, damaged or not? */
bool fl_summaries_fixed(const char *dir);
/*
 * Remove the data summary of `client`, durably; fl_summaries_renew() removes it from the
 * collection. With `stays` a marker is kept, so that the client is not asked for a summary again.
 * FL_ENOENT: no summary, or dropped already.
 */
FL_MUST_CHECK int fl_summaries_remove(const char *dir, const char *client, bool stays,
                                      struct fl_err *err);
/* Remove all data summaries and the collection; the markers of dropped ones stay. */
FL_MUST_CHECK int fl_summaries_clear(const char *dir, struct fl_err *err);

enum fl_data_summary_state {
    FL_SUMMARY_TAKEN = 1,   /* it is in the collection, or will be */
    FL_SUMMARY_EMPTY,       /* the client has none */
    FL_SUMMARY_DROPPED,     /* an operator removed it */
    FL_SUMMARY_UNFIT,       /* damaged, or made for another configuration */
    FL_SUMMARY_OUT_OF_RANGE /* largest > bound */
};
struct fl_data_summary_info {
    char client[FL_NAME_MAX];
    enum fl_data_summary_state state;
    uint64_t bytes;
    double largest, bound; /* fl_summary_bounds(); for states TAKEN and OUT_OF_RANGE */
};
/* The rule by which summaries are accepted. */
struct fl_summaries_rule {
    size_t max;   /* bytes of one */
    double range; /* fl_summary_bounds(), 0: none */
    void *ctx;
    /* Check a summary and return its largest magnitude. FL_EFORMAT with the reason. */
    int (*check)(void *ctx, const void *data, size_t len, double *ret_largest, struct fl_err *err);
    /* Called for each summary that is UNFIT, with the reason, or OUT_OF_RANGE (`why` NULL). May be
     * NULL. */
    void (*left_out)(void *ctx, const struct fl_data_summary_info *info, const char *why);
};
/*
 * Write the collection of all accepted summaries, in client order. Does nothing when it exists
 * already.
 */
FL_MUST_CHECK int fl_summaries_fix(const char *dir, const struct fl_summaries_rule *rule,
                                   struct fl_err *err);
/*
 * Rebuild an existing collection unless it was made from the current files with this `range`;
 * `*ret_new`: it was rebuilt. Open readers keep the old collection. On an error the old one stays,
 * and a later call retries.
 */
FL_MUST_CHECK int fl_summaries_renew(const char *dir, const struct fl_summaries_rule *rule,
                                     bool *ret_new, struct fl_err *err);
/* Calls `cb` for the file of each client, in client order; an error of `cb` ends the loop. Does not
 * call left_out(). */
typedef int fl_summaries_list_cb(void *ctx, const struct fl_data_summary_info *info);
FL_MUST_CHECK int fl_summaries_list(const char *dir, const struct fl_summaries_rule *rule,
                                    fl_summaries_list_cb *cb, void *ctx, struct fl_err *err);
/*
 * The collection is damaged: rename it, so that it is rebuilt from the clients' files. The result
 * is the same, as no summary is added once the collection is fixed.
 */
FL_MUST_CHECK int fl_summaries_quarantine(const char *dir, struct fl_err *err);
/* Open the collection, with its SHA-256. FL_ENOENT: not fixed yet; FL_EFORMAT: damaged. */
FL_MUST_CHECK int fl_summaries_open(const char *dir, struct fl_file **ret,
                                    uint8_t digest[FL_DIGEST_SIZE], struct fl_err *err);

#endif
