#ifndef FL_STORE_ROWS_IMPL_H
#define FL_STORE_ROWS_IMPL_H

/*
 * The rows of federation.db: each table has one list of its columns (libfl/db/db_row.h) and one
 * record. Private to server/store. A text in a record is borrowed until the next row.
 */

#include "libfl/db/db_row.h"
#include "server/core/coord.h"
#include "server/core/settings.h"
#include "server/store/generation.h"
#include "server/store/store_rollback.h"

#define FL__STORE_ID_SIZE ((FL_STORE_ID_TEXT - 1) / 2)
/* Length of the random identity of a state folder. */
#define FL__IDENTITY 16

/* Figures are rows X(kind, member, …) of libfl/figures: their column has the name of the member. */
#define FL__FIGURE_FL_ROW_NAME(kind, member, ...)      FL_ROW_NAME(kind, member, member)
#define FL__FIGURE_FL_ROW_PARAM(kind, member, ...)     FL_ROW_PARAM(kind, member, member)
#define FL__FIGURE_FL_ROW_ASSIGN(kind, member, ...)    FL_ROW_ASSIGN(kind, member, member)
#define FL__FIGURE_FL_ROW_DECLARE(kind, member, ...)   FL_ROW_DECLARE(kind, member, member)
#define FL__FIGURE_FL_ROW_MEMBER(kind, member, ...)    FL_ROW_MEMBER(kind, member, member)
#define FL__OF_REC_FL_ROW_NAME(kind, member, ...)      FL_ROW_NAME(kind, member, member)
#define FL__OF_REC_FL_ROW_PARAM(kind, member, ...)     FL_ROW_PARAM(kind, member, member)
#define FL__OF_REC_FL_ROW_ASSIGN(kind, member, ...)    FL_ROW_ASSIGN(kind, member, member)
#define FL__OF_REC_FL_ROW_DECLARE(kind, member, ...)   FL_ROW_DECLARE(kind, member, member)
#define FL__OF_REC_FL_ROW_MEMBER(kind, member, ...)    FL_ROW_MEMBER(kind, member, rec.member)
#define FL__ABANDONED_FL_ROW_NAME(kind, member, ...)   FL_ROW_NAME(kind, member, member)
#define FL__ABANDONED_FL_ROW_MEMBER(kind, member, ...) FL_ROW_MEMBER(kind, member, round.member)

/* --- federation: one row --- */

struct fl__folder {
    char name[FL_NAME_MAX];
    uint8_t layout[FL_DIGEST_SIZE];
    char model[128];               /* description for messages */
    uint8_t id[FL__STORE_ID_SIZE]; /* names the folder in its checkpoints */
    uint64_t expected;             /* clients at the last selection, also those without a record */
    uint64_t epoch;                /* first round whose client states are in a solver's sum */
    /* The current generation. Client state has an identity of its own: a restored folder gets a new
     * `identity`, while `kept_identity`, and so the client states, may stay valid
     * (restored_folder.c). */
    uint8_t identity[FL__IDENTITY], kept_identity[FL__IDENTITY];
    uint8_t meaning[FL_DIGEST_SIZE]; /* compatibility digest of the settings */
    size_t meaning_len;              /* 0: none recorded yet */
    uint64_t generation, state_generation, kept_since;
    uint64_t used_round, used_attempt; /* highest after the last rollback */
};

#define FL__GENERATION_ROWS(X)                 \
    X(U64, generation, generation)             \
    X(U64, state_generation, state_generation) \
    X(U64, kept_since, kept_since)             \
    X(U64, used_round, used_round)             \
    X(U64, used_attempt, used_attempt)         \
    X(BYTES, identity, identity)               \
    X(BYTES, kept_identity, kept_identity)     \
    X(OPTIONAL_SHORT, meaning, meaning)

#define FL__OWNER_ROWS(X)    \
    X(CHARS, name, name)     \
    X(BYTES, layout, layout) \
    X(CHARS, model, model)   \
    X(BYTES, id, id)

#define FL__FOLDER_ROWS(X)     \
    FL__OWNER_ROWS(X)          \
    FL__GENERATION_ROWS(X)     \
    X(U64, expected, expected) \
    X(U64, epoch, epoch)

FL_ROW_TYPE(fl__folder, struct fl__folder)

/* --- client --- */

struct fl__client_row {
    struct fl_client_rec rec;
    uint8_t offences[sizeof(((struct fl_client_rec *)0)->offences)]; /* those that are set */
    size_t offences_len;
};

/* `id` may have gaps, and is reused after a record is removed. */
#define FL__CLIENT_KEY(X)                            \
    X(U32, id, rec.id, .max = FL_CLIENT_NUMBERS - 1) \
    X(CHARS, name, rec.name)

#define FL__QUARANTINE_ROWS(X)                 \
    X(OPTIONAL_SHORT, offences, offences)      \
    X(CHARS, quarantine, rec.quarantine)       \
    X(U64, quarantined_ms, rec.quarantined_ms) \
    X(U64, quarantined_up_ms, rec.quarantined_up_ms)

#define FL__CLIENT_FIGURES(X)  \
    X(CHARS, agent, rec.agent) \
    FL_CLIENT_FIGURES(FL__OF_REC_##X) FL_CLIENT_STATE(FL__OF_REC_##X) FL__QUARANTINE_ROWS(X)

#define FL__CLIENT_ROWS(X) FL__CLIENT_KEY(X) FL__CLIENT_FIGURES(X)

FL_ROW_TYPE(fl__client, struct fl__client_row)

/* --- round, and the rounds that a rollback abandoned (store_rollback.h) --- */

#define FL__ROUND_ROWS(X)                    \
    FL_ROUND_FIGURES(FL__FIGURE_##X)         \
    X(CHARS, robust_clients, robust_clients) \
    X(CHARS, metrics, metrics)

FL_ROW_TYPE(fl__round, struct fl_round_rec)

#define FL__ABANDONED_ROWS(X)                      \
    FL_ROUND_FIGURES(FL__ABANDONED_##X)            \
    X(CHARS, robust_clients, round.robust_clients) \
    X(CHARS, metrics, round.metrics)               \
    X(U64, generation, generation)                 \
    X(U64, at_ms, at_ms)                           \
    X(TEXT, reason, by)

FL_ROW_TYPE(fl__abandoned, struct fl_abandoned_round)

/* --- open_round: none or one row --- */

struct fl__open_round {
    uint64_t round;
    uint32_t attempt;
    bool planned;
    struct fl_round_size size;
    /* Read only: */
    bool same;        /* opened under the current compatibility digest */
    uint64_t updates; /* accepted ones */
};

#define FL__OPEN_ROWS(X)                \
    X(U64, round, round)                \
    X(U32, attempt, attempt)            \
    X(BOOL, planned, planned)           \
    X(U32, n_selected, size.selected)   \
    X(U32, population, size.population) \
    X(U32, members, size.members)       \
    X(U64, epoch, size.epoch)           \
    X(U32, capped, size.capped)

#define FL__OPEN_READ(X) \
    FL__OPEN_ROWS(X)     \
    X(BOOL, same, same)  \
    X(U64, updates, updates)

FL_ROW_TYPE(fl__open_round, struct fl__open_round)

/* --- part: the participants of the open round --- */

struct fl__part {
    struct fl_participant_rec rec;
    const void *divergence; /* float32 little-endian, one a unit; or NULL */
    size_t divergence_len;
    const void *units; /* one byte a unit, or NULL */
    size_t units_len;
    uint8_t rms[sizeof(((struct fl_participant_rec *)0)->rms)];
};

#define FL__PART_KEY(X) X(U32, client, rec.client, .max = FL_CLIENT_NUMBERS - 1)

#define FL__PART_FIGURES(X)                                                               \
    X(ENUM, state, rec.state, .min = FL_PARTICIPANT_SELECTED, .max = FL_PARTICIPANT_LOST) \
    X(U32, capped, rec.capped)                                                            \
    X(U64, samples, rec.samples)                                                          \
    X(U64, steps, rec.steps)                                                              \
    X(F64, train_loss, rec.train_loss)                                                    \
    X(U64, upload_bytes, rec.upload_bytes)                                                \
    X(F64, previous_dot, rec.previous_dot)                                                \
    X(U64, received_samples, rec.received.samples)                                        \
    X(U64, received_correct, rec.received.correct)                                        \
    X(F64, received_loss, rec.received.loss_sum)                                          \
    X(TEXT, received_metrics, rec.received.metrics, .max = FL_EVAL_METRICS_TEXT - 1)      \
    X(U64, trained_samples, rec.trained.samples)                                          \
    X(U64, trained_correct, rec.trained.correct)                                          \
    X(F64, trained_loss, rec.trained.loss_sum)                                            \
    X(TEXT, trained_metrics, rec.trained.metrics, .max = FL_EVAL_METRICS_TEXT - 1)        \
    X(OPTIONAL_DATA, divergence, divergence)                                              \
    X(OPTIONAL_DATA, units, units)                                                        \
    X(BYTES, rms, rms)

#define FL__PART_ROWS(X) FL__PART_KEY(X) FL__PART_FIGURES(X)

FL_ROW_TYPE(fl__part, struct fl__part)

/* --- participation: of clients in attempts of the newest rounds --- */

#define FL__OF_FIGURES_FL_ROW_NAME(kind, member, ...)    FL_ROW_NAME(kind, member, member)
#define FL__OF_FIGURES_FL_ROW_PARAM(kind, member, ...)   FL_ROW_PARAM(kind, member, member)
#define FL__OF_FIGURES_FL_ROW_DECLARE(kind, member, ...) FL_ROW_DECLARE(kind, member, member)
#define FL__OF_FIGURES_FL_ROW_MEMBER(kind, member, ...)  FL_ROW_MEMBER(kind, member, figures.member)

#define FL__PARTICIPATION_ROWS(X)                                                            \
    X(ID, id, id)                                                                            \
    FL_PART_FIGURES(FL__OF_FIGURES_##X)                                                      \
    X(TEXT, client, client)                                                                  \
    X(ENUM, state, state, .min = FL_PARTICIPANT_SELECTED, .max = FL_PARTICIPATION_EVALUATED) \
    X(TEXT, asked, asked, .max = FL_PART_LAYERS)                                             \
    X(TEXT, remark, remark, .max = FL_PART_REMARK)                                           \
    X(TEXT, aborted, aborted, .max = FL_PART_REMARK)                                         \
    X(TEXT, metrics, metrics, .max = FL_EVAL_METRICS_TEXT - 1)                               \
    X(OPTIONAL_DATA, mixing, mixing, .max = FL_PART_MIXED * sizeof(float))

FL_ROW_TYPE(fl__participation, struct fl_participation)

/* --- setting --- */

struct fl__setting_rec {
    const char *name, *value;
    enum fl_setting_kind kind;
};

#define FL__SETTING_ROWS(X) \
    X(TEXT, name, name)     \
    X(TEXT, value, value)   \
    X(ENUM, kind, kind)

FL_ROW_TYPE(fl__setting, struct fl__setting_rec)

/* --- change: of settings and of the model; `round` is the first that it affects --- */

#define FL__CHANGE_ROWS(X)         \
    X(U64, round, round)           \
    X(U64, generation, generation) \
    X(U64, at_ms, at_ms)           \
    X(TEXT, name, name)            \
    X(TEXT, before, before)        \
    X(TEXT, after, after)

FL_ROW_TYPE(fl__change, struct fl_change_rec)

/* --- pin: pinned checkpoints --- */

#define FL__PIN_ROWS(X)     \
    X(U64, round, round)    \
    X(TEXT, reason, reason) \
    X(U64, at_ms, at_ms)

FL_ROW_TYPE(fl__pin, struct fl_pin_rec)

/* --- client_error: the last error of each client --- */

#define FL__CLIENT_ERROR_ROWS(X) \
    X(CHARS, name, name)         \
    X(U64, at_ms, at_ms)         \
    X(U64, up_ms, up_ms)         \
    X(CHARS, text, text)

FL_ROW_TYPE(fl__client_error, struct fl_client_error)

/* --- client_labels: what a client with a record announced --- */

struct fl__client_labels {
    uint32_t client;
    const void *labels;
    size_t labels_len;
};

#define FL__CLIENT_LABELS_ROWS(X)                        \
    X(U32, client, client, .max = FL_CLIENT_NUMBERS - 1) \
    X(DATA, labels, labels)

FL_ROW_TYPE(fl__client_labels, struct fl__client_labels)

/* --- central: what operators set for a client --- */

struct fl__central {
    char name[FL_NAME_MAX];
    const void *settings;
    size_t settings_len;
};

#define FL__CENTRAL_ROWS(X) \
    X(CHARS, name, name)    \
    X(DATA, settings, settings)

FL_ROW_TYPE(fl__central, struct fl__central)

/* --- rollback: none or one row, what an operator requested --- */

struct fl__rollback {
    uint64_t round, at_ms;
    uint64_t last;       /* the last round that was abandoned */
    uint64_t generation; /* the abandoned generation; 0: not carried out yet */
};

#define FL__ROLLBACK_ROWS(X) \
    X(U64, round, round)     \
    X(U64, at_ms, at_ms)     \
    X(U64, last, last)       \
    X(U64, generation, generation)

FL_ROW_TYPE(fl__rollback, struct fl__rollback)

#endif
