/*
 * Attackers that know the honest updates of their round (docs/simulation.md#attackers): their
 * trainings start when the last honest training of the attempt has ended in simulated time, and get
 * the update that all of them send. One thread, that of the federation; results depend on simulated
 * time only, not on the threads and processes that train.
 */
#include <stdlib.h>

#include "tools/fl_sim/engine/attacker.h"
#include "tools/fl_sim/engine/sim_federation_impl.h"

struct fl__shared_update {
    uint32_t client;
    struct fl_blob *update; /* a reference */
};

static const struct fl_attack *collusion_attack(const struct fl_fed *fed, uint32_t client)
{
    struct fl_sim_client sim_client;

    fed->conf.sim_clients->sim_client(fed->conf.sim_clients->ctx, client, &sim_client);
    return sim_client.attack != NULL &&
                   (fl_attack_effects(sim_client.attack->kind) & FL_ATTACK_COLLUDES) != 0
               ? sim_client.attack
               : NULL;
}

void fl__collusion_end(struct fl_fed *fed)
{
    struct fl__collusion *c = &fed->collusion;

    while (c->n_shared > 0) {
        fl_blob_unref(c->shared[--c->n_shared].update);
    }
    free(c->shared);
    fl_blob_unref(c->malicious);
    *c = (struct fl__collusion){.attack = NULL};
}

/* The open attempt; NULL: it is another one than that of `key`, or no participant colludes. */
static struct fl__collusion *collusion_open(struct fl_fed *fed, struct fl_round_key key)
{
    struct fl__collusion *c = &fed->collusion;
    const struct fl_fed_part *parts = fed->account.parts;
    size_t i;

    if (fed->account.n_parts == 0 || parts[0].round != key.round || parts[0].attempt != key.attempt)
    {
        return NULL;
    }
    if (c->key.round != key.round || c->key.attempt != key.attempt) {
        fl__collusion_end(fed);
        c->key = key;
        for (i = 0; i < fed->account.n_parts; i++) {
            const struct fl_attack *attack = collusion_attack(fed, (uint32_t)parts[i].client);

            c->n_attackers += attack != NULL;
            c->attack = attack != NULL ? attack : c->attack;
        }
    }
    return c->attack != NULL ? c : NULL;
}

/* --- what is known of the honest clients --- */

static int collusion_by_client(const void *a, const void *b)
{
    uint32_t x = ((const struct fl__shared_update *)a)->client;
    uint32_t y = ((const struct fl__shared_update *)b)->client;

    return (x > y) - (x < y);
}

/* A client that trains again after a disconnect shares the same update. */
static int collusion_add(struct fl__collusion *c, uint32_t client, struct fl_blob *update)
{
    size_t i;

    for (i = 0; i < c->n_shared; i++) {
        if (c->shared[i].client == client) {
            return FL_OK;
        }
    }
    if (c->n_shared == c->cap_shared) {
        size_t cap = c->cap_shared == 0 ? 16 : 2 * c->cap_shared;
        struct fl__shared_update *more = realloc(c->shared, cap * sizeof(*more));

        if (more == NULL) {
            return FL_ENOMEM;
        }
        c->shared = more;
        c->cap_shared = cap;
    }
    c->shared[c->n_shared++] = (struct fl__shared_update){client, fl_blob_ref(update)};
    return FL_OK;
}

/* What the server does with updates; `*ret_centre`, a reference, has the centre of the rule. */
static int collusion_rule(const struct fl_fed *fed, struct fl_attack_rule *ret,
                          struct fl_blob **ret_centre)
{
    const struct fl_strategy *s = fed->federation.strategy;
    const struct fl_blob *centre = NULL;
    int rv;

    *ret = (struct fl_attack_rule){.ops = s->robust, .options = s->options[FL_COMPONENT_ROBUST]};
    if (fl_robust_centred(s->robust, s->options[FL_COMPONENT_ROBUST])) {
        centre = fed->progress.committed.model.state[s->aggregate->n_state];
    }
    if (centre == NULL) {
        return FL_OK;
    }
    rv = fl_attacker_share(fed->federation.layout, fl_blob_floats(centre), ret_centre);
    if (rv != FL_OK) {
        return rv;
    }
    ret->centre = fl_blob_floats(*ret_centre);
    return FL_OK;
}

/* Sums run in the order of the clients, not in that in which their trainings ended. */
static int collusion_make(const struct fl_fed *fed, struct fl__collusion *c)
{
    struct fl_attack_view view = {.n_honest = c->n_shared,
                                  .n_attackers = c->n_attackers,
                                  .n = fl_layout_trainable(fed->federation.layout)};
    const float **honest;
    struct fl_blob *centre = NULL;
    struct fl_blob *made = NULL;
    size_t i;
    int rv;

    if (c->n_shared == 0) {
        return FL_OK;
    }
    honest = calloc(c->n_shared, sizeof(*honest));
    rv = honest != NULL ? fl_blob_create(view.n * sizeof(float), &made) : FL_ENOMEM;
    if (rv != FL_OK) {
        goto done;
    }
    qsort(c->shared, c->n_shared, sizeof(*c->shared), collusion_by_client);
    for (i = 0; i < c->n_shared; i++) {
        honest[i] = (const float *)(const void *)fl_blob_data(c->shared[i].update);
    }
    view.honest = honest;
    rv = collusion_rule(fed, &view.rule, &centre);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_attack_collude(c->attack, &view, (float *)(void *)fl_blob_fill(made));
    if (rv != FL_OK) {
        goto done;
    }
    c->malicious = fl_blob_ref(made);
done:
    fl_blob_unref(made);
    fl_blob_unref(centre);
    free(honest);
    return rv;
}

/* --- the attackers --- */

/* Have all honest participants trained, or left? */
static bool collusion_is_complete(const struct fl_fed *fed)
{
    size_t i;

    for (i = 0; i < fed->account.n_parts; i++) {
        const struct fl_fed_part *p = &fed->account.parts[i];

        if (!p->training_ended && !p->dropped && fed->clients[p->client].up &&
            collusion_attack(fed, (uint32_t)p->client) == NULL)
        {
            return false;
        }
    }
    return true;
}

/* Starts the trainings of the attackers, on all threads; those whose time has passed end now. */
static void collusion_release(struct fl_fed *fed, const struct fl__collusion *c)
{
    size_t i;

    for (i = 0; i < fed->account.n_parts; i++) {
        uint32_t client = (uint32_t)fed->account.parts[i].client;
        struct fl__active *a = fed->clients[client].active;

        if (collusion_attack(fed, client) == NULL || a == NULL || a->awaits_training == 0 ||
            a->lacks_memory || a->training_key.round != c->key.round ||
            a->training_key.attempt != c->key.attempt)
        {
            continue;
        }
        fl__train_submit(fed, a);
        if (a->waits) {
            a->waits = false;
            fl__fed_at(fed, fed->now_us, FL__AT_TRAINED, client, a->awaits_training, NULL);
        }
    }
}

static void collusion_check(struct fl_fed *fed, struct fl__collusion *c)
{
    int rv;

    if (c->ready || !collusion_is_complete(fed)) {
        return;
    }
    c->ready = true;
    rv = collusion_make(fed, c);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, NULL, "the update of the attackers");
        return;
    }
    collusion_release(fed, c);
}

void fl__collusion_trained(struct fl_fed *fed, uint32_t client, struct fl_round_key key,
                           struct fl_blob *update)
{
    struct fl__collusion *c = collusion_open(fed, key);
    struct fl_fed_part *part = fl_sim_account_part(&fed->account, client);

    if (c == NULL || part == NULL) {
        return;
    }
    part->training_ended = true;
    if (update != NULL && !c->ready && collusion_add(c, client, update) != FL_OK) {
        fl__fed_fail(fed, FL_ENOMEM, NULL, "the update of the attackers");
        return;
    }
    collusion_check(fed, c);
}

void fl__collusion_dropped(struct fl_fed *fed)
{
    const struct fl_fed_part *parts = fed->account.parts;
    struct fl__collusion *c = NULL;

    if (fed->account.n_parts > 0) {
        c = collusion_open(
            fed, (struct fl_round_key){.round = parts[0].round, .attempt = parts[0].attempt});
    }
    if (c != NULL) {
        collusion_check(fed, c);
    }
}

bool fl__collusion_waits(struct fl_fed *fed, uint32_t client, struct fl_round_key key)
{
    struct fl__collusion *c = collusion_open(fed, key);

    if (c == NULL || collusion_attack(fed, client) == NULL) {
        return false;
    }
    collusion_check(fed, c); /* There may be no honest participant. */
    return !c->ready;
}

struct fl_pool_collusion fl__collusion_part(struct fl_fed *fed, uint32_t client,
                                            struct fl_round_key key)
{
    const struct fl__collusion *c = collusion_open(fed, key);
    bool attacks = collusion_attack(fed, client) != NULL;

    return (struct fl_pool_collusion){.shares = c != NULL && !attacks,
                                      .malicious = c != NULL && attacks ? c->malicious : NULL};
}
