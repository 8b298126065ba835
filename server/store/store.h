#ifndef FL_STORE_STORE_H
#define FL_STORE_STORE_H

/*
 * State on disk: SQLite for records, safetensors checkpoints, spool files.
 *
 *   <dir>/federation.db          records, version of the folder (WAL)
 *   <dir>/models/round-NNNNNN.safetensors, round-NNNNNN.<state>.safetensors
 *   <dir>/spool/<client>.upload
 *
 * `dir` is the state folder in every function here. The caller holds the lock of the folder
 * (fl_fs_lock_dir()).
 *
 * A round is committed by: checkpoint (write, fsync, rename, fsync folder), then one
 * transaction, which is synced for every durability except FL_DURABLE_SCRATCH; older checkpoints
 * are removed only after that. So after any crash or power failure the checkpoint of the newest
 * record is on disk. The server resumes at the last persisted point; a checkpoint newer than the
 * last record is kept until its round is run again. A database has a random id, which is stored in
 * its checkpoints: checkpoints of another database are neither loaded nor removed.
 *
 * Threading: a store belongs to one thread (the `db` worker); spool and model functions take only
 * paths and may run on any worker thread. Errors: FL_EIO and others with file and reason.
 * FL_EVERSION: written by a newer version; FL_ESTATE: the folder belongs to another federation or
 * model.
 */

#include "libfl/base/log.h"
#include "libfl/model/layout.h"
#include "server/core/coord.h"

enum fl_durability {
    FL_DURABLE_PROCESS, /* survives a kill -9 */
    FL_DURABLE_POWER,   /* survives the machine: fsync before "accepted" */
    /* For simulations: updates and commits survive a kill -9, but nothing is ever synced. Not for a
       daemon. */
    FL_DURABLE_SCRATCH
};

struct fl_store;

/*
 * Check that a federation may start or continue in this folder, which may be missing. FL_ESTATE as
 * fl_store_open(), for a database that is missing or empty. Changes nothing.
 */
FL_MUST_CHECK int fl_store_check(const char *dir, struct fl_err *err);

/*
 * Check the name of the federation, as far as the folder records one. FL_ESTATE: the folder belongs
 * to another federation. FL_OK also when the database is missing or unreadable; fl_store_open()
 * reports that.
 */
FL_MUST_CHECK int fl_store_check_name(const char *dir, const char *federation, struct fl_err *err);

/*
 * Check the units, tensors and shapes of the model, as far as the folder records them. FL_ESTATE:
 * the folder belongs to another model, with the message of fl_store_open(). Changes nothing.
 */
FL_MUST_CHECK int fl_store_check_model(const char *dir, const struct fl_layout *layout,
                                       struct fl_err *err);
/*
 * May the options of the broadcast take the place of those that the folder records? FL_ECONF with
 * the reason. Changes nothing.
 */
FL_MUST_CHECK int fl_store_check_broadcast(const char *dir, const struct fl_strategy *strategy,
                                           struct fl_err *err);

/*
 * Does the folder have a record of the client `name` (a valid name)? false when the database cannot
 * be read. Any thread; also while the store is open.
 */
bool fl_store_knows_client(const char *dir, const char *name);

/*
 * Open or create. `federation` and the layout digest must match the stored ones (FL_ESTATE).
 * FL_EFORMAT: a damaged database; FL_EPERM: not writable. A folder with checkpoints or uploads
 * whose database is missing, empty or without a federation is FL_ESTATE and is not changed: no new
 * federation starts over the files of an old one.
 */
FL_MUST_CHECK int fl_store_open(const char *dir, const char *federation,
                                const struct fl_layout *layout, enum fl_durability durability,
                                struct fl_store **ret, struct fl_err *err);
void fl_store_close(struct fl_store *store);
/* 32 hex digits, as long as the store. */
const char *fl_store_id(const struct fl_store *store);
#define FL_STORE_ID_TEXT 33

/* Load the state to resume from; returned owned, free with fl_store_resume_done(). */
FL_MUST_CHECK int fl_store_load(struct fl_store *store, struct fl_coord_resume *ret,
                                struct fl_err *err);
void fl_store_resume_done(struct fl_coord_resume *resume);

/*
 * Each of these is one transaction: on an error nothing is written. A client's record is written
 * with or before the first round that the client takes part in; a name has exactly one number.
 * FL_ESTATE: a plan or update that is not of the open round, or a round that is committed already.
 * A selection replaces the open round; a plan or update replaces the records of its participants
 * and leaves the others unchanged.
 */
FL_MUST_CHECK int fl_store_put_clients(struct fl_store *store, const struct fl_client_rec *clients,
                                       size_t n, struct fl_err *err);

/* Who took part in an attempt of a round. Borrows everything. */
struct fl_participations {
    const struct fl_participant_rec *parts; /* [n] */
    size_t n;
    const struct fl_client_rec *clients; /* [n] of them */
    /* Of those among them that evaluated, in the same order, then of other clients, each of which
       gets a record of its own. */
    const struct fl_client_eval *evals;
    size_t n_evals;
    uint32_t attempt;
    const char *aborted;  /* why the attempt was aborted; NULL: it is committed */
    const double *mixing; /* [n_mixing * n_mixing], of the first accepted ones */
    size_t n_mixing;
    const double *attention; /* [n_attention] of the accepted ones; 0: none */
    size_t n_attention;
};

struct fl_selection {
    uint64_t round;
    uint32_t attempt;
    const struct fl_participant_rec *parts;
    size_t n_parts;
    const struct fl_client_rec *clients; /* records that are new or newer */
    size_t n_clients;
    struct fl_round_size size;
    uint64_t expected; /* fl_coord_resume.expected */
    /* Who took part in the attempt before it, which was aborted; NULL: there was none. */
    const struct fl_participations *ended;
};

FL_MUST_CHECK int fl_store_put_selection(struct fl_store *store,
                                         const struct fl_selection *selection, struct fl_err *err);
/* Remove the records with the numbers of these clients; records with `forgotten` set are only
 * marked. Durable. FL_ESTATE: a client to be removed is in the open round. */
FL_MUST_CHECK int fl_store_forget(struct fl_store *store, const struct fl_client_rec *clients,
                                  size_t n, struct fl_err *err);
/* Update the offences and the quarantine of these clients, and nothing else of their records; a
 * client without a record gets one. Durable. */
FL_MUST_CHECK int fl_store_put_quarantine(struct fl_store *store,
                                          const struct fl_client_rec *clients, size_t n,
                                          struct fl_err *err);
/* Store the epoch of the sum over client states that a solver keeps on the server, for the next
 * round (fl_coord_resume); 0: unchanged. Durable before any decision that depends on it. */
FL_MUST_CHECK int fl_store_put_epoch(struct fl_store *store, uint64_t epoch, struct fl_err *err);
/* Store the reason of a pause; NULL: not paused. Durable. */
FL_MUST_CHECK int fl_store_put_pause(struct fl_store *store, const char *reason,
                                     struct fl_err *err);
FL_MUST_CHECK int fl_store_put_plan(struct fl_store *store, uint64_t round, uint32_t attempt,
                                    const struct fl_participant_rec *parts, size_t n,
                                    struct fl_err *err);
FL_MUST_CHECK int fl_store_put_update(struct fl_store *store, uint64_t round, uint32_t attempt,
                                      const struct fl_participant_rec *part, struct fl_err *err);
/* Participations that are kept, the newest ones; older ones are removed when others are added. */
#define FL_PARTICIPATIONS_MAX 20000
/* Of these, so many of clients that only evaluated. */
#define FL_PARTICIPATIONS_EVALUATED (FL_PARTICIPATIONS_MAX / 2)
/* Aborted attempts of a round whose participations are kept, the newest ones. */
#define FL_PARTICIPATIONS_ABORTED 8
/*
 * Write the round record, who took part (NULL: no client), and the changed client records, and
 * close the open round. One transaction.
 */
FL_MUST_CHECK int fl_store_commit(struct fl_store *store, const struct fl_round_rec *round,
                                  const struct fl_client_rec *clients, size_t n_clients,
                                  const struct fl_participations *taken, struct fl_err *err);

/* Which participations: of one client or of one round, or all; the newest first. */
struct fl_participation_query {
    char client[FL_NAME_MAX]; /* "": any; not with `round` */
    uint64_t round;           /* 0: any; in client order */
    uint64_t before;          /* fl_participation.id below it; 0: any */
    uint32_t most;
    bool selected; /* without clients that only evaluated */
};
typedef int (*fl_store_participation_cb)(void *ctx, const struct fl_participation *participation);
/* Calls `cb` for each; an error of it ends the loop and is returned. */
FL_MUST_CHECK int fl_store_participations(struct fl_store *store,
                                          const struct fl_participation_query *query,
                                          fl_store_participation_cb cb, void *ctx,
                                          struct fl_err *err);

/* Is there a record of `round`? Round 0 is the initial model and always exists. */
FL_MUST_CHECK int fl_store_has_round(struct fl_store *store, uint64_t round, bool *ret,
                                     struct fl_err *err);
/* The record of one round. FL_ENOENT: there is none, `*ret` is unchanged. */
FL_MUST_CHECK int fl_store_round(struct fl_store *store, uint64_t round, struct fl_round_rec *ret,
                                 struct fl_err *err);
/* The newest `last` rounds (0: all) in ascending order, one call each. */
typedef int (*fl_store_round_cb)(void *ctx, const struct fl_round_rec *round);
FL_MUST_CHECK int fl_store_rounds(struct fl_store *store, uint32_t last, fl_store_round_cb cb,
                                  void *ctx, struct fl_err *err);
/* The newest `most` of the rounds below `before`, in descending order. */
FL_MUST_CHECK int fl_store_rounds_before(struct fl_store *store, uint64_t before, uint32_t most,
                                         fl_store_round_cb cb, void *ctx, struct fl_err *err);
/*
 * Sums over all committed rounds, in a record whose `round` is the last one, `attempt`
 * the number of rounds, accuracy and loss those of the last evaluation (negative: none),
 * personal, received and attention figures likewise the last ones, train_loss that of the
 * last round, times the first start and the last end.
 */
FL_MUST_CHECK int fl_store_totals(struct fl_store *store, struct fl_round_rec *ret,
                                  struct fl_err *err);

/* --- last error of each client --- */

/* Replaces the client's previous error; above FL_ERRORS_MAX errors the oldest is removed. */
FL_MUST_CHECK int fl_store_put_error(struct fl_store *store, const struct fl_client_error *error,
                                     struct fl_err *err);
/* Remove the errors of these clients. Durable. */
FL_MUST_CHECK int fl_store_drop_errors(struct fl_store *store, const struct fl_client_error *errors,
                                       size_t n, struct fl_err *err);
/* Calls `cb` in insertion order; an error of `cb` ends the loop and is returned. The record is
 * borrowed for the call. */
typedef int (*fl_store_error_cb)(void *ctx, const struct fl_client_error *error);
FL_MUST_CHECK int fl_store_errors(struct fl_store *store, fl_store_error_cb cb, void *ctx,
                                  struct fl_err *err);

/* --- labels of clients, and what operators set for them --- */

/* What a client announced, in the caller's encoding; borrowed. */
struct fl_labels_row {
    char name[FL_NAME_MAX];
    const void *data;
    size_t len;
};
/* Replaces those of before. Names without a record are left out: their clients are not known after
   a restart. Deleted with the record. */
FL_MUST_CHECK int fl_store_put_labels(struct fl_store *store, const struct fl_labels_row *rows,
                                      size_t n, struct fl_err *err);
/* Calls `cb` for each client by its number; an error of `cb` ends the loop and is returned. */
typedef int (*fl_store_labels_cb)(void *ctx, uint32_t client, const void *data, size_t len);
FL_MUST_CHECK int fl_store_labels(struct fl_store *store, fl_store_labels_cb cb, void *ctx,
                                  struct fl_err *err);
/* Store the central settings of a name, which need no record; without bytes: delete them. Durable.
 */
FL_MUST_CHECK int fl_store_put_central(struct fl_store *store, const char *name, const void *data,
                                       size_t len, struct fl_err *err);
typedef int (*fl_store_central_cb)(void *ctx, const char *name, const void *data, size_t len);
FL_MUST_CHECK int fl_store_central(struct fl_store *store, fl_store_central_cb cb, void *ctx,
                                   struct fl_err *err);

/* --- models --- */

/* Origin of a checkpoint, stored in its metadata. */
struct fl_models_tag {
    const char *database; /* fl_store_id() */
    const char *made;     /* generation and settings (fl_generation.made); NULL: not recorded */
    const char *personal_models; /* fl_personal_models_seal() of the round's personalized models;
                                    NULL: none */
    /* The checkpoint has bytes beside its vectors (fl_aggregate_ops.program); read when it is saved
       or sealed, NULL: there are none yet. */
    bool keeps;
    const struct fl_blob *kept;
    /* Rounds whose checkpoints are pinned: pruning keeps them. */
    const uint64_t *held;
    size_t n_held;
};

/* A checkpoint: of which model and round, and its state vectors. Borrows everything. */
struct fl_models_checkpoint {
    const char *dir;
    uint64_t round;
    const struct fl_models_tag *tag;
    const struct fl_layout *layout;
    const char *const *state_names; /* [n_state] */
    size_t n_state;
};

/*
 * Save theta and the state vectors (`state[n_state]`) of a round. Theta is published last, with the
 * names and checksums of the state vectors: where theta exists, the vectors exist too.
 */
FL_MUST_CHECK int fl_models_save(const struct fl_models_checkpoint *c, const float *theta,
                                 const float *const *state, bool sync, struct fl_err *err);
/*
 * The same in pieces, from any one thread at a time. The strings of the tag must have the length of
 * those passed to fl_models_draft_seal(), and `keeps` its value; borrows `dir`, `layout` and the
 * names for the life of the draft. Writing adds entries offset … offset + n - 1 of all vectors; the
 * pieces must be contiguous from 0 to the end, and an error in one makes sealing fail. Sealing has
 * the result of fl_models_save(), or fails; then the caller calls fl_models_save() instead. Freeing
 * an unsealed draft removes its files.
 */
struct fl_models_draft;
FL_MUST_CHECK int fl_models_draft_begin(const struct fl_models_checkpoint *c, bool sync,
                                        struct fl_models_draft **ret, struct fl_err *err);
void fl_models_draft_write(struct fl_models_draft *draft, const float *theta,
                           const float *const *state, size_t offset, size_t n);
FL_MUST_CHECK int fl_models_draft_seal(struct fl_models_draft *draft, uint64_t round,
                                       const struct fl_models_tag *tag, const float *theta,
                                       const float *const *state, struct fl_err *err);
void fl_models_draft_free(struct fl_models_draft *draft); /* NULL is allowed. */
/* Metadata of a checkpoint. The caller decides whether training can resume from it. */
struct fl_models_found {
    uint32_t lacks; /* bit i: state vector i is not in the checkpoint and was set to zero */
    char made[96];  /* tag.made; "": not recorded */
    char personal_models[48]; /* tag.personal_models; "": none */
};
/*
 * Load the checkpoint of `c->round` (0: the initial model). A state vector that the checkpoint does
 * not contain is zero and has its bit set in `ret->lacks`: the policy was changed, or this is the
 * initial model. FL_ENOENT: no such file. The checkpoint is unusable (fl_models_is_bad()) with
 * FL_EFORMAT, damaged: header, metadata, checksum, a value that is not finite, or one of its state
 * vectors is missing or of another save; FL_ESHAPE: of another model; FL_ESTATE: written by another
 * database. Any other error (FL_EPERM, FL_EIO, FL_ENOMEM …) does not mean that the file is bad.
 */
FL_MUST_CHECK int fl_models_load(const struct fl_models_checkpoint *c, float *theta,
                                 float *const *state, struct fl_models_found *ret,
                                 struct fl_err *err);
/*
 * The bytes of the checkpoint of `c->round`, returned owned; NULL: it has none. Errors as
 * fl_models_load(); FL_ELIMIT: more than `max`.
 */
FL_MUST_CHECK int fl_models_load_kept(const struct fl_models_checkpoint *c, size_t max,
                                      struct fl_blob **ret, struct fl_err *err);
static inline bool fl_models_is_bad(int code)
{
    return code == FL_EFORMAT || code == FL_ESHAPE || code == FL_ESTATE;
}
/*
 * Remove checkpoints up to `committed` except the newest `keep` and every `every`-th (0: none), and
 * temporary files. Checkpoints of another database are kept. Not while a save runs.
 */
FL_MUST_CHECK int fl_models_prune(const char *dir, const struct fl_models_tag *tag,
                                  uint64_t committed, uint32_t keep, uint32_t every,
                                  struct fl_err *err);
/* Rounds that have a model, newest first; free() the list. */
FL_MUST_CHECK int fl_models_list(const char *dir, uint64_t **ret, size_t *ret_n,
                                 struct fl_err *err);
/*
 * The layout of the newest model whose header can be read. Free with fl_layout_free().
 * FL_ENOENT: there is none.
 */
FL_MUST_CHECK int fl_models_layout(const char *dir, struct fl_layout **ret, struct fl_err *err);
/* Most files in quarantine; the oldest is removed. */
#define FL_MODELS_QUARANTINED 16
/*
 * Rename the files of `round` to "….bad-N", so that nothing reads or replaces them; an operator can
 * inspect them.
 */
FL_MUST_CHECK int fl_models_quarantine(const char *dir, uint64_t round, struct fl_err *err);
/* Path of a checkpoint. */
FL_MUST_CHECK int fl_models_path(const char *dir, uint64_t round, const char *state_name, char *out,
                                 size_t size);

/* --- rebuilding --- */

/* Arguments and results of fl_store_rebuild(). */
struct fl_store_rebuild {
    const char *dir, *federation;
    const struct fl_layout *layout;
    const char *const *state_names; /* state vectors to load from a checkpoint that has them */
    size_t n_state;
    size_t n_own; /* the first n_own belong to the aggregator; the others restart together with the
                     client states */
    bool mixes;   /* the last round may need its personalized models */
    const struct fl_log *log;
    /* out */
    uint64_t round; /* the last committed one from now on */
    uint64_t had; /* the last one in the old database; 0: the database was lost, or had no round */
    bool fresh;   /* the database was lost and has been created again */
    bool unchanged; /* the newest record has a usable checkpoint: nothing was done */
};
/*
 * Make the newest usable checkpoint the last committed round. A database that is missing, empty or
 * damaged is quarantined (federation.db.bad-N) and created again, with the id stored in the
 * checkpoint; an intact one keeps its clients and the earlier rounds. Newer checkpoints that are
 * unusable are quarantined. A checkpoint that lacks only state shared with the clients (a solver's
 * vector, personalized models) is usable: server and clients restart that state. FL_ENOENT: no
 * usable checkpoint; FL_ESTATE: of another federation or model. The caller holds the lock of the
 * folder and has no store open.
 */
FL_MUST_CHECK int fl_store_rebuild(struct fl_store_rebuild *r, struct fl_err *err);

/* --- spool: one file per client, with its upload for one (round, attempt) --- */

struct fl_spool_part {
    uint32_t unit;
    uint32_t
        payload;    /* payload: 0 is the update, then the solver's payloads in the solver's order */
    uint32_t codec; /* enum fl_codec_id; float32 for all but the update */
    bool masked;    /* begins with a mask of neurons (codec_masked.h) */
    uint64_t bytes;
};

/* The required form of an upload. */
struct fl_spool_form {
    uint32_t codec;
    size_t n_payloads; /* payloads: 1 + those of the solver */
    bool masked;       /* the update's units */
};

/* Most payloads of an upload, the update included. */
#define FL_SPOOL_MAX_PAYLOADS 4

/*
 * Check the manifest of an upload before any byte is stored: exactly the units of the upload mask
 * (grant[n_units]) in ascending order, for each the update and then the other payloads, all in the
 * required codec, none longer than that codec can produce. FL_ESHAPE, with the difference in the
 * message.
 */
FL_MUST_CHECK int fl_spool_check(const struct fl_layout *layout, const uint8_t *grant,
                                 const struct fl_spool_form *form,
                                 const struct fl_spool_part *parts, size_t n_parts,
                                 struct fl_err *err);

struct fl_spool;

struct fl_recycled;
/* Which upload to write, and its manifest. Borrows everything. */
struct fl_spool_opening {
    const char *dir;
    uint64_t round;
    uint32_t attempt;
    const char *client;
    const struct fl_spool_part *parts; /* [n_parts] */
    size_t n_parts;
    struct fl_recycled *recycled; /* of `dir`: where a new file comes from when it can; or NULL */
};

/*
 * Open for writing: create, or resume an upload whose manifest is equal (`*ret_received`: bytes
 * received so far). A different manifest restarts at 0 and replaces the old file; so does an upload
 * that was not finished when the machine went down. A new file has no header before its first
 * bytes. FL_EINUSE: the file is open for writing already; FL_EINVAL: no valid name, or sections out
 * of order (by unit, then by payload). FL_EIO, here and below: the file cannot be read, truncated
 * or written; it is renamed to "….upload.bad", and the next call makes a new one.
 */
FL_MUST_CHECK int fl_spool_open(const struct fl_spool_opening *o, struct fl_spool **ret,
                                uint64_t *ret_received, struct fl_err *err);
/* Append at exactly the received offset (FL_ERANGE otherwise), never past the manifest (FL_ELIMIT).
 */
FL_MUST_CHECK int fl_spool_write(struct fl_spool *spool, uint64_t offset, const void *data,
                                 size_t len, struct fl_err *err);
/*
 * Complete an upload: decode every unit to its end (shapes, counts, finite), check the norm bound
 * of the update (0: none), sync when `durability` requires it. FL_EFORMAT, FL_ENUMERIC, FL_ERANGE
 * (norm) with the unit's name: the upload is bad (fl_spool_is_bad()), and the file removed.
 * FL_ESTATE: bytes are missing. Any other error is a local fault and does not mean that the upload
 * is bad; FL_EIO also when the disk returns other bytes than were received. After FL_EIO, and after
 * a failed sync, the upload is lost and restarts in a new file. A finished file carries checksums
 * of its coded bytes.
 */
FL_MUST_CHECK int fl_spool_finish(struct fl_spool *spool, const struct fl_layout *layout,
                                  double norm_bound, enum fl_durability durability,
                                  struct fl_err *err);
/* Norms of a finished file; returned owned (`unit`). */
struct fl_norms fl_spool_take_norms(struct fl_spool *spool);
static inline bool fl_spool_is_bad(int code)
{
    return code == FL_EFORMAT || code == FL_ENUMERIC || code == FL_ERANGE;
}
uint64_t fl_spool_received(const struct fl_spool *spool);
/* Close without removing. */
void fl_spool_close(struct fl_spool *spool);
/* Received bytes of a file that is not open; 0 when there is none. */
uint64_t fl_spool_peek(const char *dir, uint64_t round, uint32_t attempt, const char *client);
/* Remove every spool file except those of (round, attempt); round 0: all. */
FL_MUST_CHECK int fl_spool_clean(const char *dir, uint64_t round, uint32_t attempt,
                                 struct fl_err *err);

/*
 * A finished spool file for reading; `units[n_units]` marks the units whose update it holds. No
 * descriptor stays open between calls, and the buffers (64 KiB for each payload) are allocated at
 * the first read; an upload of up to 16 KiB is read completely when it is opened. Keeps a reference
 * to `layout`. FL_EFORMAT: not complete or damaged; FL_ESHAPE: of another model. Every block is
 * checked against its checksum before use: a decoder gets FL_EFORMAT when the bytes changed,
 * FL_ENOENT when the file was removed (fl_spool_is_lost()); other read errors may be temporary.
 * After FL_EIO the file is renamed to "….upload.bad" and still found by fl_spool_reader_open(), so
 * that reading can be retried, but it is not reused for another upload.
 */
struct fl_spool_reader;
FL_MUST_CHECK int fl_spool_reader_open(const char *dir, uint64_t round, uint32_t attempt,
                                       const char *client, const struct fl_layout *layout,
                                       struct fl_spool_reader **ret, struct fl_err *err);
/* Total buffer size of all open readers, after fl_spool_reader_share() on each. */
#define FL_SPOOL_READ_AHEAD ((size_t)4 << 20)
/* The accepted update is lost. */
static inline bool fl_spool_is_lost(int code)
{
    return code == FL_EFORMAT || code == FL_ESHAPE || code == FL_ENOENT;
}
/* Before the first decoder: this reader is one of `n_readers`. Its buffers get 16 KiB to 256 KiB
 * each; an upload in memory (uploads.h) has none. */
void fl_spool_reader_share(struct fl_spool_reader *reader, size_t n_readers);
/* After a decoder failed with `code`: when the read itself failed, `err` gets the file and the
 * reason. */
void fl_spool_reader_explain(const struct fl_spool_reader *reader, int code, struct fl_err *err);
const uint8_t *fl_spool_reader_units(const struct fl_spool_reader *reader);
/*
 * A decoder over one unit of a payload, with read-ahead into the reader's buffer for that payload.
 * FL_ENOENT: the file does not contain it. The reader must outlive the decoder.
 */
FL_MUST_CHECK int fl_spool_reader_unit(struct fl_spool_reader *reader, size_t payload, size_t unit,
                                       struct fl_codec_decoder *ret);
/*
 * Decodes the update of a unit to `out` [entries of the unit]. False: it was not sent, not whole (a
 * mask of neurons), or cannot be read.
 */
bool fl_spool_reader_floats(struct fl_spool_reader *reader, size_t unit, float *out);
void fl_spool_reader_close(struct fl_spool_reader *reader);

#endif
