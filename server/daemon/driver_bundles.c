/* What clients may fetch in a round: the model, vectors beside it, offers, mixtures. */

#include <stdlib.h>
#include <string.h>

#include "server/daemon/driver_impl.h"

static struct fl_down *bundle_down(struct fl_driver *driver, const char *name, uint64_t round)
{
    struct fl_down *down = fl_down_new(driver, FL_DOWN_BUNDLE);

    down->text = fl_str_dup(name);
    down->client = FL_EVERYBODY;
    down->round = round;
    return down;
}

void fl_driver_bundle(struct fl_driver *driver, const char *name, uint64_t round,
                      struct fl_blob *blob)
{
    struct fl_down *down = bundle_down(driver, name, round);

    down->bytes.blob = blob != NULL ? fl_blob_ref(blob) : NULL;
    fl_driver_down(driver, down);
}

/* What clients are told of the i-th state vector, with a reference of its own. */
static struct fl_blob *told_of(struct fl_driver *driver, size_t i, size_t members)
{
    const struct fl_strategy *strategy = driver->srv->conf->strategy;
    struct fl_blob *state = driver->progress.committed.model.state[i];
    struct fl_blob *told = NULL;

    if (fl_strategy_tells_state(strategy, i)) {
        return fl_blob_ref(state);
    }
    if (fl_blob_create(fl_blob_len(state), &told) != FL_OK) {
        fl_log(driver->srv->log, FL_LOG_ERROR, "server", "out of memory, stopping");
        abort(); /* The state on disk is whole, systemd starts us again. */
    }
    fl_strategy_tell(strategy, i, fl_blob_floats(state), members, fl_blob_fill_floats(told),
                     fl_federation_floats(&driver->federation));
    return told;
}

static void open_offered(struct fl_driver *driver, const char *name, uint64_t round)
{
    struct fl_down *down;

    if (driver->offered == NULL) {
        return;
    }
    down = bundle_down(driver, name, round);
    down->bytes.file = fl_file_ref(driver->offered);
    down->has_digest = true;
    (void)memcpy(down->digest, driver->offered_digest, sizeof(down->digest));
    fl_driver_down(driver, down);
}

static void open_mixtures(struct fl_driver *driver, uint64_t round)
{
    size_t n = driver->progress.committed.mixtures != NULL
                   ? fl_mixtures_count(driver->progress.committed.mixtures)
                   : 0;
    size_t i;

    for (i = 0; i < n; i++) {
        uint32_t id =
            fl_coord_find(driver->coord, fl_mixtures_name(driver->progress.committed.mixtures, i));
        struct fl_down *down;

        if (id == UINT32_MAX) {
            continue; /* It was forgotten since. */
        }
        down = bundle_down(driver, FL_BUNDLE_MIXTURE, round);
        down->client = id;
        down->bytes.file = fl_mixtures_file(driver->progress.committed.mixtures, i);
        fl_driver_down(driver, down);
    }
}

void fl_driver_round_open(struct fl_driver *driver, const struct fl_effect *e)
{
    const struct fl_strategy *strategy = driver->srv->conf->strategy;
    const char *const *name;
    uint64_t round = e->round;

    fl_driver_bundle(driver, "model", round, driver->progress.committed.model.theta);
    for (name = strategy->solver->inputs; name != NULL && *name != NULL; name++) {
        size_t i = fl_strategy_told_from(strategy, *name);

        if (i < driver->federation.n_state) {
            struct fl_blob *told = told_of(driver, i, e->size.members);

            fl_driver_bundle(driver, *name, round, told);
            fl_blob_unref(told);
        } else {
            open_offered(driver, *name, round);
        }
    }
    open_mixtures(driver, round);
}

void fl_driver_round_bundles_closed(struct fl_driver *driver, uint64_t round)
{
    const struct fl_solver_ops *solver = driver->srv->conf->strategy->solver;
    const char *const *name;

    fl_driver_bundle(driver, "model", round, NULL);
    fl_driver_bundle(driver, "candidate", round, NULL);
    for (name = solver->inputs; name != NULL && *name != NULL; name++) {
        fl_driver_bundle(driver, *name, round, NULL);
    }
}

bool fl_driver_has_mixture(const struct fl_driver *driver, uint32_t client)
{
    return driver->progress.committed.mixtures != NULL &&
           fl_mixtures_find(driver->progress.committed.mixtures,
                            fl_coord_client(driver->coord, client)->name) <
               fl_mixtures_count(driver->progress.committed.mixtures);
}
