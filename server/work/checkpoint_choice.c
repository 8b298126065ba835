/*
 * Decides whether the federation can resume from a checkpoint that was read, which missing vectors
 * may be zero, and opens its personal models. Runs at the start, on the caller's thread; it does
 * not search for checkpoints (opening.c).
 */
#include "server/work/checkpoint_choice.h"

#include <inttypes.h>
#include <string.h>

/* Client state and the server's part of it restarted after `round`, so the checkpoint's part is
   not needed. */
static bool state_was_reset(const struct fl_federation *federation, uint64_t round)
{
    return federation->generation.kept_since >= round;
}

/* "NUMBER DIGEST": were both made with the same meaning of an update? */
static bool same_meaning(const char *a, const char *b)
{
    const char *x = strchr(a, ' ');
    const char *y = strchr(b, ' ');

    return x != NULL && y != NULL && strcmp(x, y) == 0;
}

bool fl_judge_same_settings(const struct fl_federation *federation,
                            const struct fl_models_found *found)
{
    return same_meaning(found->made, federation->generation.made);
}

/* Does the vector belong to client state (SCAFFOLD: s = sum c_k)? */
static bool goes_with_clients(const struct fl_strategy *s, size_t i)
{
    return i >= fl_strategy_own_states(s) && fl_solver_keeps(s->solver->keeps) > 0;
}

size_t fl_judge_misses(const struct fl_federation *federation, uint64_t round,
                       const struct fl_models_found *found, bool restart)
{
    const struct fl_strategy *s = federation->strategy;
    size_t i;

    for (i = 0; round > 0 && i < federation->n_state; i++) {
        bool needed = goes_with_clients(s, i)
                          ? !restart && !state_was_reset(federation, round)
                          : same_meaning(found->made, federation->generation.made);

        if (needed && (found->lacks >> i & 1u) != 0) {
            return i;
        }
    }
    return federation->n_state;
}

int fl_judge_checkpoint(const struct fl_federation *federation, uint64_t round,
                        const struct fl_models_found *found, bool restart, struct fl_err *err)
{
    const struct fl_strategy *s = federation->strategy;
    bool known = found->made[0] != '\0';
    size_t i = fl_judge_misses(federation, round, found, restart);

    if (i < federation->n_state) {
        return fl_err_set(
            err, FL_EVERSION,
            "checkpoint of round %" PRIu64
            ": vector '%s' is missing, which '%s' resumes from; another version of the "
            "server wrote it. %s another algorithm can resume from the model alone, "
            "another state_dir starts from scratch",
            round, federation->state_names[i], s->algorithm,
            goes_with_clients(s, i) ? "'fl-serverd --recover CONFIG' resumes from the "
                                      "model with the state of server and clients reset;"
                                    : "Nothing was changed;");
    }
    for (i = 0; round > 0 && i < federation->n_state; i++) {
        if ((found->lacks >> i & 1u) != 0) {
            bool reset = goes_with_clients(s, i);

            fl_log(federation->log, known || reset ? FL_LOG_NOTICE : FL_LOG_WARNING, "server",
                   "checkpoint of round %" PRIu64 ": vector '%s' is missing and starts at zero: %s",
                   round, federation->state_names[i],
                   reset   ? "the state of server and clients is reset there"
                   : known ? "it was made under other settings"
                           : "it does not record the settings it was made under");
        }
    }
    return FL_OK;
}

void fl_judge_begin_anew(const struct fl_federation *federation, uint64_t round,
                         struct fl_outcome *committed)
{
    size_t i = fl_strategy_own_states(federation->strategy);

    if (!state_was_reset(federation, round)) {
        return;
    }
    for (; i < federation->n_state; i++) {
        (void)memset(fl_blob_fill(committed->model.state[i]), 0,
                     fl_blob_len(committed->model.state[i]));
    }
    fl_personal_models_close(committed->personal_models);
    committed->personal_models = NULL;
}

/* --- personal models --- */

int fl_judge_personal_models(const struct fl_federation *federation, uint64_t round,
                             const struct fl_models_found *found, struct fl_personal_models **ret,
                             struct fl_err *err)
{
    const struct fl_strategy *s = federation->strategy;

    if (!s->aggregate->mixes || state_was_reset(federation, round)) {
        return FL_OK;
    }
    if (found->personal_models[0] == '\0') {
        fl_log(federation->log, FL_LOG_NOTICE, "server",
               "checkpoint of round %" PRIu64
               ": it names no personal models, clients resume from their own",
               round);
        return FL_OK;
    }
    return fl_personal_models_open_sealed(federation->state_dir, round,
                                          fl_federation_floats(federation) * sizeof(float),
                                          found->personal_models, ret, err);
}
