#ifndef FL_STORE_STORE_H
#define FL_STORE_STORE_H

/*
 * State on disk: SQLite for records, safetensors checkpoints, spool files.
 *
 *   <dir>/federation.db          records, version of the folder (WAL)
 *   <dir>/models/round-NNNNNN.safetensors, round-NNNNNN.<state>.safetensors
 *   <dir>/spool/<client>.upload
 *
 * `dir` is the state folder in every function here. The caller holds its lock
 * (fl_fs_lock_dir()).
 *
 * A round is committed by: checkpoint (write, fsync, rename, fsync folder), then one
 * transaction, which is synced whatever the durability (but FL_DURABLE_SCRATCH); only then older
 * checkpoints go. So the newest record that any crash or power cut can leave has its checkpoint
 * beside it. A crash anywhere resumes at the last persisted point; a checkpoint newer than the last
 * record is left alone until its round is run again. A database has a random id, which stands in
 * its checkpoints: what another one wrote is neither taken for its own nor removed.
 *
 * Threading: a store belongs to one thread (the database lane); spool and model
 * functions take only paths and may run on any lane.
 * Errors: FL_EIO and others with file and reason. FL_EVERSION: written by a newer
 * version; FL_ESTATE: the folder belongs to another federation or model.
 */

#include "libfl/base/log.h"
#include "libfl/model/layout.h"
#include "server/core/coord.h"

enum fl_durability {
    FL_DURABLE_PROCESS, /* survives a kill -9 */
    FL_DURABLE_POWER,   /* survives the machine: fsync before "accepted" */
    /* A simulation: survives a kill -9, commits too; nothing is ever synced. Not for a daemon. */
    FL_DURABLE_SCRATCH
};

struct fl_store;

/*
 * May a federation begin or go on in this folder, which need not be there? FL_ESTATE as
 * fl_store_open(), for a database that is missing or empty. Touches nothing.
 */
FL_MUST_CHECK int fl_store_check(const char *dir, struct fl_err *err);

/*
 * Is the folder that of `federation`, as far as it says whose it is? FL_ESTATE: of another one. A
 * database that is missing, or cannot be read, says nothing here: fl_store_open() says why.
 */
FL_MUST_CHECK int fl_store_check_name(const char *dir, const char *federation, struct fl_err *err);

/*
 * Is the folder that of a model of these units, tensors and shapes, as far as it says so?
 * FL_ESTATE: of another one, with the message of fl_store_open(). Nothing is changed.
 */
FL_MUST_CHECK int fl_store_check_model(const char *dir, const struct fl_layout *layout,
                                       struct fl_err *err);

/*
 * Has the folder a record of a client of this name, which is a valid one? A database that cannot be
 * read has none. Any thread; also while the store is open.
 */
bool fl_store_knows_client(const char *dir, const char *name);

/*
 * Open or create. `federation` and the layout digest must match what is there
 * (FL_ESTATE). FL_EFORMAT: a damaged database; FL_EPERM: not writable. A folder with
 * checkpoints or uploads whose database is missing, empty or without a federation is
 * FL_ESTATE and stays as it is: that is not where a federation begins.
 */
FL_MUST_CHECK int fl_store_open(const char *dir, const char *federation,
                                const struct fl_layout *layout, enum fl_durability durability,
                                struct fl_store **ret, struct fl_err *err);
void fl_store_close(struct fl_store *store);
/* 32 hex digits, as long as the store. */
const char *fl_store_id(const struct fl_store *store);
#define FL_STORE_ID_TEXT 33

/* Everything to continue from; owned by the caller, free with fl_store_resume_done(). */
FL_MUST_CHECK int fl_store_load(struct fl_store *store, struct fl_coord_resume *ret,
                                struct fl_err *err);
void fl_store_resume_done(struct fl_coord_resume *resume);

/*
 * Each of these is one transaction: on an error nothing of it is there. A client's record comes
 * with or before the first round that it takes part in; a name may have one number only. A plan or
 * update that is not of the open round, and a round that is committed already, are
 * FL_ESTATE. A selection replaces the open round; a plan or update replaces the records
 * of its parts and leaves the others as they are.
 */
FL_MUST_CHECK int fl_store_put_clients(struct fl_store *store, const struct fl_client_rec *clients,
                                       size_t n, struct fl_err *err);

struct fl_selection {
    uint64_t round;
    uint32_t attempt;
    const struct fl_participant_rec *parts;
    size_t n_parts;
    const struct fl_client_rec *clients; /* records that are new or newer */
    size_t n_clients;
    struct fl_round_size size;
    uint64_t expected; /* fl_coord_resume.expected */
};

FL_MUST_CHECK int fl_store_put_selection(struct fl_store *store,
                                         const struct fl_selection *selection, struct fl_err *err);
/* Remove the records with the numbers of these clients, or mark those that are `forgotten`.
   Durable. FL_ESTATE: one to be removed is in the open round. */
FL_MUST_CHECK int fl_store_forget(struct fl_store *store, const struct fl_client_rec *clients,
                                  size_t n, struct fl_err *err);
/* The epoch of what a solver's part sums up, for the next round (fl_coord_resume); 0: as it is.
   Durable, before whatever was decided with it. */
FL_MUST_CHECK int fl_store_put_epoch(struct fl_store *store, uint64_t epoch, struct fl_err *err);
/* Why the federation is paused; NULL: it is not. Durable. */
FL_MUST_CHECK int fl_store_put_pause(struct fl_store *store, const char *reason,
                                     struct fl_err *err);
FL_MUST_CHECK int fl_store_put_plan(struct fl_store *store, uint64_t round, uint32_t attempt,
                                    const struct fl_participant_rec *parts, size_t n,
                                    struct fl_err *err);
FL_MUST_CHECK int fl_store_put_update(struct fl_store *store, uint64_t round, uint32_t attempt,
                                      const struct fl_participant_rec *part, struct fl_err *err);
/* Round record, the clients' records that changed; closes the open round. One transaction. */
FL_MUST_CHECK int fl_store_commit(struct fl_store *store, const struct fl_round_rec *round,
                                  const struct fl_client_rec *clients, size_t n_clients,
                                  struct fl_err *err);

/* Is there a record of `round`? 0 is the beginning, and always there. */
FL_MUST_CHECK int fl_store_has_round(struct fl_store *store, uint64_t round, bool *ret,
                                     struct fl_err *err);
/* The record of one round. FL_ENOENT: there is none. */
FL_MUST_CHECK int fl_store_round(struct fl_store *store, uint64_t round, struct fl_round_rec *ret,
                                 struct fl_err *err);
/* Newest `last` rounds (0: all) in rising order, one call each. */
typedef int (*fl_store_round_cb)(void *ctx, const struct fl_round_rec *round);
FL_MUST_CHECK int fl_store_rounds(struct fl_store *store, uint32_t last, fl_store_round_cb cb,
                                  void *ctx, struct fl_err *err);
/*
 * Sums over all committed rounds, in a record whose `round` is the last one, `attempt`
 * the number of rounds, accuracy and loss those of the last evaluation (negative: none),
 * personal, received and attention figures likewise the last ones, train_loss that of the
 * last round, times the first start and the last end.
 */
FL_MUST_CHECK int fl_store_totals(struct fl_store *store, struct fl_round_rec *ret,
                                  struct fl_err *err);

/* --- what went wrong with clients --- */

/* Replaces the one that the client had; the oldest of more than FL_ERRORS_MAX goes. */
FL_MUST_CHECK int fl_store_put_error(struct fl_store *store, const struct fl_client_error *error,
                                     struct fl_err *err);
/* Nothing is known of what went wrong with these names any more. Durable. */
FL_MUST_CHECK int fl_store_drop_errors(struct fl_store *store, const struct fl_client_error *errors,
                                       size_t n, struct fl_err *err);
/* In the order in which they were put; an error of `cb` ends it. The record is borrowed for the
 * call. */
typedef int (*fl_store_error_cb)(void *ctx, const struct fl_client_error *error);
FL_MUST_CHECK int fl_store_errors(struct fl_store *store, fl_store_error_cb cb, void *ctx,
                                  struct fl_err *err);

/* --- models --- */

/* Who wrote a checkpoint, in its metadata. */
struct fl_models_tag {
    const char *database; /* fl_store_id() */
    const char *made;     /* under which line and settings (fl_generation.made); NULL: not said */
    const char *mixtures; /* fl_personal_models_seal() of what the round mixed; NULL: nothing */
    /* Rounds whose checkpoints stay whatever the rules of pruning say. */
    const uint64_t *held;
    size_t n_held;
};

/*
 * Save theta and `n_state` state vectors (names in state_names) of a round. Theta is
 * published last, with the names and checksums of its vectors: where it is, they are too.
 */
FL_MUST_CHECK int fl_models_save(const char *dir, uint64_t round, const struct fl_models_tag *tag,
                                 const struct fl_layout *layout, const float *theta,
                                 const float *const *state, const char *const *state_names,
                                 size_t n_state, bool sync, struct fl_err *err);
/*
 * The same in parts, from any one thread at a time. `tag` and the names are as long as those that
 * sealing is given, and `dir`, `layout` and the names outlive the draft. Writing adds entries
 * offset … offset + n - 1 of all vectors; pieces follow each other from 0 to the end, and what goes
 * wrong with one makes sealing fail. Sealing ends as fl_models_save(), or fails, and then that is
 * to be called in its place. Freed without, nothing of it is left.
 */
struct fl_models_draft;
FL_MUST_CHECK int fl_models_draft_begin(const char *dir, uint64_t round,
                                        const struct fl_models_tag *tag,
                                        const struct fl_layout *layout,
                                        const char *const *state_names, size_t n_state, bool sync,
                                        struct fl_models_draft **ret, struct fl_err *err);
void fl_models_draft_write(struct fl_models_draft *draft, const float *theta,
                           const float *const *state, size_t offset, size_t n);
FL_MUST_CHECK int fl_models_draft_seal(struct fl_models_draft *draft, uint64_t round,
                                       const struct fl_models_tag *tag, const float *theta,
                                       const float *const *state, struct fl_err *err);
void fl_models_draft_free(struct fl_models_draft *draft); /* NULL is allowed. */
/* What a checkpoint says beside its numbers. Whether it can be gone on from is for the caller. */
struct fl_models_found {
    uint32_t lacks;    /* bit i: state vector i is no part of it, and was made zero */
    char made[96];     /* tag.made; "": not said */
    char mixtures[48]; /* tag.mixtures; "": none */
};
/*
 * Load the checkpoint of `round` (0: the initial model). A state vector that is no part of it is
 * zero, and `ret->lacks` says so: the policy was changed, or it is the initial model.
 * FL_ENOENT: it is not there. Provably not to be used (fl_models_is_bad()): FL_EFORMAT, damaged:
 * header, metadata, checksum, a value that is not finite, or a vector that belongs to it is missing
 * or another; FL_ESHAPE: of another model; FL_ESTATE: written by another database. Anything else
 * (FL_EPERM, FL_EIO, FL_ENOMEM …) says nothing about the file.
 */
FL_MUST_CHECK int fl_models_load(const char *dir, uint64_t round, const struct fl_models_tag *tag,
                                 const struct fl_layout *layout, float *theta, float *const *state,
                                 const char *const *state_names, size_t n_state,
                                 struct fl_models_found *ret, struct fl_err *err);
static inline bool fl_models_is_bad(int code)
{
    return code == FL_EFORMAT || code == FL_ESHAPE || code == FL_ESTATE;
}
/*
 * Remove checkpoints up to `committed` but for the newest `keep` and every `every`-th (0: none),
 * and temporary files. What another database wrote stays. Not while a save runs.
 */
FL_MUST_CHECK int fl_models_prune(const char *dir, const struct fl_models_tag *tag,
                                  uint64_t committed, uint32_t keep, uint32_t every,
                                  struct fl_err *err);
/* Rounds that have a model, newest first; free() the list. */
FL_MUST_CHECK int fl_models_list(const char *dir, uint64_t **ret, size_t *ret_n,
                                 struct fl_err *err);
/*
 * The layout of the newest model that is whole enough to say it. Free with fl_layout_free().
 * FL_ENOENT: there is none.
 */
FL_MUST_CHECK int fl_models_layout(const char *dir, struct fl_layout **ret, struct fl_err *err);
/* Files that are set aside, at most; the oldest goes. */
#define FL_MODELS_QUARANTINED 16
/*
 * Rename the files of `round` to "….bad-N", so that nothing reads or replaces them: for a
 * person to look at.
 */
FL_MUST_CHECK int fl_models_quarantine(const char *dir, uint64_t round, struct fl_err *err);
/* Path of a checkpoint. */
FL_MUST_CHECK int fl_models_path(const char *dir, uint64_t round, const char *state_name, char *out,
                                 size_t size);

/* --- rebuilding --- */

/* What there is to rebuild from, and what became of it. */
struct fl_store_rebuild {
    const char *dir, *federation;
    const struct fl_layout *layout;
    const char *const
        *state_names; /* vectors that a good checkpoint brings along, if it has them */
    size_t n_state;
    size_t
        n_own;  /* the first of them are the aggregate's; the others begin anew with the clients */
    bool mixes; /* the last round may need its mixtures */
    const struct fl_log *log;
    /* out */
    uint64_t round; /* the last committed one from now on */
    uint64_t had;   /* the last one that the database knew; 0: it was lost, or at the beginning */
    bool fresh;     /* the database was lost and has been made anew */
    bool unchanged; /* the newest record had its good checkpoint: nothing was done */
};
/*
 * Make the newest good checkpoint the last committed round. A database that is missing, empty or
 * damaged is set aside (federation.db.bad-N) and made anew, under the id that stands in
 * the checkpoint; one that is whole keeps its clients and the rounds before. Bad checkpoints on
 * the way are set aside. A good one that lacks what only goes on together with the clients (a
 * solver's vector, mixtures) is good enough: both sides begin that anew. FL_ENOENT: there is no
 * good one; FL_ESTATE: of another federation or model. The caller holds the lock of the folder and
 * has no store open.
 */
FL_MUST_CHECK int fl_store_rebuild(struct fl_store_rebuild *r, struct fl_err *err);

/* --- spool: one file per client, which holds one upload of its: that of (round, attempt) --- */

struct fl_spool_part {
    uint32_t unit;
    uint32_t bundle; /* 0: the update, then what the solver sends, in its order */
    uint32_t codec;  /* enum fl_codec_id; float32 for all but the update */
    bool masked;     /* begins with a mask of neurons (codec_masked.h) */
    uint64_t bytes;
};

/* What the parts of an upload have to be. */
struct fl_spool_form {
    uint32_t codec;
    size_t n_bundles; /* 1 + what the solver sends */
    bool masked;      /* the update's units */
};

/* Bundles of an upload at most, the update included. */
#define FL_SPOOL_MAX_BUNDLES 4

/*
 * What a peer announces, before a byte of it is stored: exactly the granted units
 * (grant[n_units]) in rising order, of each the update and then the other bundles, all in
 * the codec they have to be in, none longer than that codec can make it. FL_ESHAPE says
 * what differs.
 */
FL_MUST_CHECK int fl_spool_check(const struct fl_layout *layout, const uint8_t *grant,
                                 const struct fl_spool_form *form,
                                 const struct fl_spool_part *parts, size_t n_parts,
                                 struct fl_err *err);

struct fl_spool;

/*
 * Open for writing: create, or continue one whose manifest is equal (then
 * `*ret_received` says how much is there). A different manifest starts over, in the place of
 * whatever was there before, and so does an upload that was not finished when the machine went
 * down. A new one is not there before its first bytes.
 * FL_EINUSE: somebody has it open for writing; FL_EINVAL: no valid name, or parts that do not rise
 * (by unit, then by bundle). FL_EIO, here and below: the file cannot be read, cut or written; it is
 * renamed to "….upload.bad", and the next call makes a new one.
 */
FL_MUST_CHECK int fl_spool_open(const char *dir, uint64_t round, uint32_t attempt,
                                const char *client, const struct fl_spool_part *parts,
                                size_t n_parts, struct fl_spool **ret, uint64_t *ret_received,
                                struct fl_err *err);
/* Append at exactly the received offset (FL_ERANGE otherwise), never past the manifest (FL_ELIMIT).
 */
FL_MUST_CHECK int fl_spool_write(struct fl_spool *spool, uint64_t offset, const void *data,
                                 size_t len, struct fl_err *err);
/*
 * All bytes are there: decode every unit to its end (shapes, counts, finite), check the
 * norm bound of the update (0: none), sync when `durability` asks. FL_EFORMAT, FL_ENUMERIC,
 * FL_ERANGE (norm) with the unit's name: the upload is bad (fl_spool_is_bad()), and the file
 * removed. FL_ESTATE: bytes are missing. Anything else is ours and says nothing about the upload;
 * FL_EIO also when the disk does not hold what was received. After FL_EIO, and after a sync that
 * failed, the upload is not there any more: it starts over in a new file.
 * From then on the file carries checksums of its coded bytes.
 */
FL_MUST_CHECK int fl_spool_finish(struct fl_spool *spool, const struct fl_layout *layout,
                                  double norm_bound, enum fl_durability durability,
                                  struct fl_err *err);
/* Of a file that is finished; `unit` is the caller's. */
struct fl_norms fl_spool_take_norms(struct fl_spool *spool);
static inline bool fl_spool_is_bad(int code)
{
    return code == FL_EFORMAT || code == FL_ENUMERIC || code == FL_ERANGE;
}
uint64_t fl_spool_received(const struct fl_spool *spool);
/* Close without removing. */
void fl_spool_close(struct fl_spool *spool);
/* Received bytes of a file that nobody has open; 0 when there is none. */
uint64_t fl_spool_peek(const char *dir, uint64_t round, uint32_t attempt, const char *client);
/* Remove every spool file but those of (round, attempt); round 0: all. */
FL_MUST_CHECK int fl_spool_clean(const char *dir, uint64_t round, uint32_t attempt,
                                 struct fl_err *err);

/*
 * A finished spool file for reading; `units[n_units]` says of which units it holds the
 * update. No descriptor stays open between calls, and the buffers (64 KiB a bundle) are
 * taken at the first read, or by an upload of up to 16 KiB, with all of it, at once.
 * Keeps a reference to `layout`. FL_EFORMAT: not complete or damaged; FL_ESHAPE: of
 * another model. What is read is checked against its checksum first: what a decoder then
 * reads is FL_EFORMAT when it changed, FL_ENOENT when the file is gone (fl_spool_is_lost()); other
 * errors of reading may pass. After FL_EIO the file is renamed to "….upload.bad" and still found by
 * fl_spool_reader_open(), so that it can be tried again but holds no further upload.
 */
struct fl_spool_reader;
FL_MUST_CHECK int fl_spool_reader_open(const char *dir, uint64_t round, uint32_t attempt,
                                       const char *client, const struct fl_layout *layout,
                                       struct fl_spool_reader **ret, struct fl_err *err);
/* All buffers of readers that are open at once, when each was told how many they are. */
#define FL_SPOOL_READ_AHEAD ((size_t)4 << 20)
/* An update that was accepted cannot be had any more. */
static inline bool fl_spool_is_lost(int code)
{
    return code == FL_EFORMAT || code == FL_ESHAPE || code == FL_ENOENT;
}
/* Before the first decoder: this reader is one of `n_readers`. 16 KiB to 256 KiB each; none where
   the upload lies in memory (uploads.h). */
void fl_spool_reader_share(struct fl_spool_reader *reader, size_t n_readers);
/* After a decoder failed with `code`: where reading itself failed, `err` names the file and why. */
void fl_spool_reader_explain(const struct fl_spool_reader *reader, int code, struct fl_err *err);
const uint8_t *fl_spool_reader_units(const struct fl_spool_reader *reader);
/*
 * A decoder over one unit of a bundle, reading ahead into the reader's own buffer for that
 * bundle. FL_ENOENT when the file does not hold it. The reader must outlive the decoder.
 */
FL_MUST_CHECK int fl_spool_reader_unit(struct fl_spool_reader *reader, size_t bundle, size_t unit,
                                       struct fl_codec_decoder *ret);
void fl_spool_reader_close(struct fl_spool_reader *reader);

#endif
