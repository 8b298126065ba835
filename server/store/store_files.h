#ifndef FL_STORE_FILES_H
#define FL_STORE_FILES_H

/*
 * Byte strings for clients that lie in files, not in memory.
 *
 *   <dir>/mixtures/NNNNNN.mix    the personal models that round N mixed, of all clients
 *   <dir>/offers/<client>.offer  the data summary of a client
 *   <dir>/offers/fixed           those of all clients, fixed when the first round began, and made
 *                                again without one that was removed
 *
 * Everything is written beside, synced and renamed: a file is there as a whole or not at
 * all, whatever dies when. Which mixtures count is said by the database: those of the last
 * committed round; the round before keeps its own with its checkpoint until the next one is
 * aggregated, so that there is something to go back to. The checkpoint of a round names its
 * mixtures by their seal. What is read of them is checked against checksums that they carry.
 *
 * Threading: fl_file from any thread, reads included; the rest belongs to whoever made it.
 * Errors: as store.h.
 */

#include "libfl/model/layout.h"
#include "server/store/store.h"

/* A part of a file, open for reading, counted. */
struct fl_file;

/* The whole file. FL_ENOENT when it is not there. */
FL_MUST_CHECK int fl_file_open(const char *path, struct fl_file **ret, struct fl_err *err);
struct fl_file *fl_file_ref(struct fl_file *file);
void fl_file_unref(struct fl_file *file); /* NULL is allowed. */
uint64_t fl_file_size(const struct fl_file *file);
/* Exactly `len` bytes at `offset`. FL_EFORMAT: the file is shorter than it was, or damaged. */
FL_MUST_CHECK int fl_file_read(const struct fl_file *file, uint64_t offset, void *out, size_t len);
/* Read all of it once, for its checksums. */
FL_MUST_CHECK int fl_file_verify(const struct fl_file *file);

/* --- mixtures --- */

struct fl_personal_models_writer;

/*
 * Begin the file of `round`: `bytes` for each of n clients, in client order. Removes the
 * mixtures of this round that may be there from before. Copies the names.
 */
FL_MUST_CHECK int fl_personal_models_create(const char *dir, uint64_t round,
                                            const char *const *names, size_t n, uint64_t bytes,
                                            struct fl_personal_models_writer **ret,
                                            struct fl_err *err);
/* The bytes of one client come in rising order, without gaps (FL_ERANGE). */
FL_MUST_CHECK int fl_personal_models_write(struct fl_personal_models_writer *w, size_t client,
                                           uint64_t offset, const void *data, size_t len,
                                           struct fl_err *err);
/* It will not be synced: it survives the process. */
void fl_personal_models_scratch(struct fl_personal_models_writer *w);
/* Sync and put in place. FL_ESTATE: bytes are missing. Takes `w`. */
FL_MUST_CHECK int fl_personal_models_publish(struct fl_personal_models_writer *w,
                                             struct fl_err *err);
/* Remove what was written. Takes `w`; NULL is allowed. */
void fl_personal_models_abandon(struct fl_personal_models_writer *w);

struct fl_personal_models;

/* FL_ENOENT: the round made none; FL_EFORMAT: damaged, or of models of another size. */
FL_MUST_CHECK int fl_personal_models_open(const char *dir, uint64_t round, uint64_t bytes,
                                          struct fl_personal_models **ret, struct fl_err *err);
size_t fl_personal_models_count(const struct fl_personal_models *m);
const char *fl_personal_models_name(const struct fl_personal_models *m, size_t i);
/* The bytes of the i-th client, to be given back with fl_file_unref(); NULL without memory. */
struct fl_file *fl_personal_models_file(const struct fl_personal_models *m, size_t i);
/* Read all models once, for their checksums. FL_EFORMAT: damaged. */
FL_MUST_CHECK int fl_personal_models_verify(const struct fl_personal_models *m, struct fl_err *err);
/* Stands for all that is in the file, for fl_models_tag.mixtures. */
#define FL_PERSONAL_MODELS_SEAL 48
void fl_personal_models_seal(const struct fl_personal_models *m, char out[FL_PERSONAL_MODELS_SEAL]);
/*
 * Open and verify what a checkpoint names by `seal`. FL_ENOENT: it is gone; FL_EFORMAT: damaged, or
 * others; the message says which. Other errors say nothing about the file.
 */
FL_MUST_CHECK int fl_personal_models_open_sealed(const char *dir, uint64_t round, uint64_t bytes,
                                                 const char *seal, struct fl_personal_models **ret,
                                                 struct fl_err *err);
/* By name: its place, or fl_personal_models_count() when it has none. */
size_t fl_personal_models_find(const struct fl_personal_models *m, const char *name);
void fl_personal_models_close(struct fl_personal_models *m); /* NULL is allowed. */
/* Remove all but those of the rounds `oldest` to `newest` (0: all) and what was set aside. */
FL_MUST_CHECK int fl_personal_models_clean(const char *dir, uint64_t oldest, uint64_t newest,
                                           struct fl_err *err);
/*
 * Rename those of `round`, if there are any, to "….mix.bad", so that nothing reads or removes them.
 * One such file stays, the last: they are large.
 */
FL_MUST_CHECK int fl_personal_models_quarantine(const char *dir, uint64_t round,
                                                struct fl_err *err);

/* --- data summaries ("offers") --- */

/* Replace the data summary of `client`, durably. FL_EEXIST: they are fixed, it is too late. */
FL_MUST_CHECK int fl_offers_put(const char *dir, const char *client, const void *data, size_t len,
                                struct fl_err *err);
/* false: none, or one that is not whole. */
bool fl_offers_has(const char *dir, const char *client);
/* Was it removed by fl_offers_remove(), and the client stays? */
bool fl_offers_dropped(const char *dir, const char *client);
/* Is there a collection, whole or not? */
bool fl_offers_fixed(const char *dir);
/*
 * Remove the data summary of `client`, durably; fl_offers_renew() takes it out of the collection.
 * With `stays` it is remembered that it was dropped, and the client is not asked for one again.
 * FL_ENOENT: there is none, or it was dropped before.
 */
FL_MUST_CHECK int fl_offers_remove(const char *dir, const char *client, bool stays,
                                   struct fl_err *err);
/* Forget all of them, fixed or not. */
FL_MUST_CHECK int fl_offers_clear(const char *dir, struct fl_err *err);

enum fl_offer_state {
    FL_OFFER_TAKEN = 1,   /* it is, or will be, in the collection */
    FL_OFFER_EMPTY,       /* the client has none */
    FL_OFFER_DROPPED,     /* an operator removed it */
    FL_OFFER_UNFIT,       /* damaged, or none for this configuration */
    FL_OFFER_OUT_OF_RANGE /* largest > bound */
};
struct fl_offer_info {
    char client[FL_NAME_MAX];
    enum fl_offer_state state;
    uint64_t bytes;
    double largest, bound; /* fl_summary_bounds(); of those that are taken or out of range */
};
/* Which summaries are taken. */
struct fl_offers_rule {
    size_t max;   /* bytes of one */
    double range; /* fl_summary_bounds(), 0: none */
    void *ctx;
    /* Is this a summary, and what is its largest magnitude? FL_EFORMAT with the reason. */
    int (*check)(void *ctx, const void *data, size_t len, double *ret_largest, struct fl_err *err);
    /* It is UNFIT for this reason, or OUT_OF_RANGE (`why` NULL). May be NULL. */
    void (*left_out)(void *ctx, const struct fl_offer_info *info, const char *why);
};
/*
 * Fix the summaries of all clients that are taken, one after the other in client order. Nothing to
 * do when they are fixed already.
 */
FL_MUST_CHECK int fl_offers_fix(const char *dir, const struct fl_offers_rule *rule,
                                struct fl_err *err);
/*
 * Make the collection, if there is one, again unless it is made of the files that are there now,
 * with this `range`; `*ret_new` tells. Readers of the old one keep it. On an error the old one is
 * there, and a later call makes it again.
 */
FL_MUST_CHECK int fl_offers_renew(const char *dir, const struct fl_offers_rule *rule, bool *ret_new,
                                  struct fl_err *err);
/* All files of clients, in client order; an error of `cb` ends it. Calls no left_out(). */
typedef int fl_offers_list_cb(void *ctx, const struct fl_offer_info *info);
FL_MUST_CHECK int fl_offers_list(const char *dir, const struct fl_offers_rule *rule,
                                 fl_offers_list_cb *cb, void *ctx, struct fl_err *err);
/*
 * What was fixed is damaged: rename it, so that it is made again of the clients' files. As nothing
 * is put once it is fixed, the same comes out of it.
 */
FL_MUST_CHECK int fl_offers_quarantine(const char *dir, struct fl_err *err);
/* What was fixed, with its SHA-256. FL_ENOENT: it is not yet; FL_EFORMAT: damaged. */
FL_MUST_CHECK int fl_offers_open(const char *dir, struct fl_file **ret,
                                 uint8_t digest[FL_DIGEST_SIZE], struct fl_err *err);

#endif
