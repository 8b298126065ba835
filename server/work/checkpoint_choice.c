#include "server/work/checkpoint_choice.h"

#include <inttypes.h>
#include <string.h>

/* Both sides begin with nothing behind `round`, so what the server had then is of no use. */
static bool began_anew(const struct fl_federation *federation, uint64_t round)
{
    return federation->line.kept_since >= round;
}

/* "NUMBER MEANING": were they made while an update meant the same? */
static bool same_meaning(const char *a, const char *b)
{
    const char *x = strchr(a, ' ');
    const char *y = strchr(b, ' ');

    return x != NULL && y != NULL && strcmp(x, y) == 0;
}

/* Is the vector a part of what clients keep (SCAFFOLD: s = sum c_k)? */
static bool goes_with_clients(const struct fl_strategy *s, size_t i)
{
    return i >= s->aggregate->n_state && fl_solver_keeps(s->solver->keeps) > 0;
}

static int refuse(const struct fl_federation *federation, uint64_t round, size_t i,
                  struct fl_err *err)
{
    const struct fl_strategy *s = federation->strategy;
    const char *name = federation->state_names[i];

    return fl_err_set(
        err, FL_EVERSION,
        "the checkpoint of round %" PRIu64 " holds no '%s', which '%s' goes on from: another "
        "version of the server wrote it. %s another algorithm goes on from the model alone, "
        "another "
        "state_dir begins at the beginning",
        round, name, s->algorithm,
        goes_with_clients(s, i)
            ? "'fl-serverd --recover CONFIG' goes on from the model, and what the server and "
              "clients keep begins anew;"
            : "Nothing was changed;");
}

static void tell_zero(const struct fl_federation *federation, uint64_t round, size_t i, bool known)
{
    const struct fl_strategy *s = federation->strategy;
    const char *why = goes_with_clients(s, i) ? "what the server and clients keep begins anew there"
                      : known                 ? "it was made under other settings"
                                              : "it does not say under which settings it was made";

    fl_log(federation->log, known || goes_with_clients(s, i) ? FL_LOG_NOTICE : FL_LOG_WARNING,
           "server", "the checkpoint of round %" PRIu64 " holds no '%s', which is zero: %s", round,
           federation->state_names[i], why);
}

size_t fl_judge_misses(const struct fl_federation *federation, uint64_t round,
                       const struct fl_models_found *found, bool anew)
{
    const struct fl_strategy *s = federation->strategy;
    size_t i;

    for (i = 0; round > 0 && i < federation->n_state; i++) {
        bool needed = goes_with_clients(s, i) ? !anew && !began_anew(federation, round)
                                              : same_meaning(found->made, federation->line.made);

        if (needed && (found->lacks >> i & 1u) != 0) {
            return i;
        }
    }
    return federation->n_state;
}

int fl_judge_checkpoint(const struct fl_federation *federation, uint64_t round,
                        const struct fl_models_found *found, bool anew, struct fl_err *err)
{
    size_t i = fl_judge_misses(federation, round, found, anew);

    if (i < federation->n_state) {
        return refuse(federation, round, i, err);
    }
    for (i = 0; round > 0 && i < federation->n_state; i++) {
        if ((found->lacks >> i & 1u) != 0) {
            tell_zero(federation, round, i, found->made[0] != '\0');
        }
    }
    return FL_OK;
}

void fl_judge_begin_anew(const struct fl_federation *federation, uint64_t round,
                         struct fl_outcome *committed)
{
    size_t i = federation->strategy->aggregate->n_state;

    if (!began_anew(federation, round)) {
        return;
    }
    for (; i < federation->n_state; i++) {
        (void)memset(fl_blob_fill(committed->model.state[i]), 0,
                     fl_blob_len(committed->model.state[i]));
    }
    fl_personal_models_close(committed->mixtures);
    committed->mixtures = NULL;
}

/* --- mixtures --- */

int fl_judge_personal_models(const struct fl_federation *federation, uint64_t round,
                             const struct fl_models_found *found, struct fl_personal_models **ret,
                             struct fl_err *err)
{
    const struct fl_strategy *s = federation->strategy;

    if (!s->aggregate->mixes || began_anew(federation, round)) {
        return FL_OK;
    }
    if (found->mixtures[0] == '\0') {
        fl_log(federation->log, FL_LOG_NOTICE, "server",
               "the checkpoint of round %" PRIu64
               " names no mixtures: clients go on from their own models",
               round);
        return FL_OK;
    }
    return fl_personal_models_open_sealed(federation->state_dir, round,
                                          fl_federation_floats(federation) * sizeof(float),
                                          found->mixtures, ret, err);
}
