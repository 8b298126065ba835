/*
 * The checkpoints of a federation: lists them with the reasons why they are kept, prunes, pins,
 * unpins and reads them. On the store's thread. Which rule keeps a checkpoint is decided in
 * server/core/retain.c.
 */
#include "server/work/checkpoints.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "server/store/store_rollback.h"

struct list {
    struct fl_checkpoint *list; /* oldest first */
    size_t n;
};

static int mark_pinned(void *ctx, const struct fl_pin_rec *pin)
{
    struct list *l = ctx;
    size_t i;

    for (i = 0; i < l->n; i++) {
        l->list[i].pinned = l->list[i].pinned || l->list[i].round == pin->round;
    }
    return FL_OK;
}

/* The checkpoints up to `committed`, with the reasons to keep each. */
static int checkpoints_collect(const struct fl_federation *federation, uint64_t committed,
                               uint64_t wall_ms, struct list *ret, struct fl_err *err)
{
    struct list l = {.n = 0};
    uint64_t *rounds = NULL;
    size_t n = 0;
    int rv = fl_models_list(federation->state_dir, &rounds, &n, err);

    if (rv != FL_OK) {
        return rv;
    }
    l.list = calloc(n + 1, sizeof(*l.list));
    if (l.list == NULL) {
        rv = FL_ENOMEM;
        goto fail;
    }
    while (n-- > 0) {
        struct fl_round_rec rec = {.accuracy = -1.0};

        if (rounds[n] > committed) {
            continue; /* Its round is not committed. */
        }
        rv = fl_store_round(federation->store, rounds[n], &rec, err);
        if (rv != FL_OK && rv != FL_ENOENT) { /* The first model has no record. */
            goto fail;
        }
        l.list[l.n++] = (struct fl_checkpoint){
            .round = rounds[n], .made_ms = rec.ended_ms, .accuracy = rec.accuracy};
    }
    rv = fl_store_pins(federation->store, mark_pinned, &l, err);
    if (rv != FL_OK) {
        goto fail;
    }
    free(rounds);
    fl_retain(&federation->retention, wall_ms, l.list, l.n);
    *ret = l;
    return FL_OK;
fail:
    free(rounds);
    free(l.list);
    return rv;
}

int fl_checkpoints_prune(const struct fl_federation *federation, uint64_t committed,
                         uint64_t wall_ms, struct fl_err *err)
{
    struct fl_models_tag tag = fl_federation_tag(federation);
    struct list l;
    uint64_t *stay;
    size_t n = 0;
    size_t i;
    int rv = checkpoints_collect(federation, committed, wall_ms, &l, err);

    if (rv != FL_OK) {
        return rv;
    }
    stay = calloc(l.n + 1, sizeof(*stay));
    if (stay == NULL) {
        free(l.list);
        return FL_ENOMEM;
    }
    for (i = 0; i < l.n; i++) {
        if (l.list[i].reasons != 0) {
            stay[n++] = l.list[i].round;
        }
    }
    tag.held = stay;
    tag.n_held = n;
    rv = fl_models_prune(federation->state_dir, &tag, committed, 1, 0, err);
    free(stay);
    free(l.list);
    return rv;
}

static const char *checkpoint_reasons(const struct fl_checkpoint *c, char *out, size_t size)
{
    static const struct {
        unsigned bit;
        const char *text;
    } names[] = {{FL_RETAIN_NEWEST, "newest"},
                 {FL_RETAIN_SPAN, "keep_for"},
                 {FL_RETAIN_BEST, "best"},
                 {FL_RETAIN_EVERY, "every"},
                 {FL_RETAIN_PINNED, "pinned"}};
    size_t i;

    out[0] = '\0';
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((c->reasons & names[i].bit) != 0) {
            size_t used = strlen(out);

            (void)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", names[i].text);
        }
    }
    return out[0] != '\0' ? out : "removed with the next round";
}

struct naming {
    uint64_t round;
    char *out;
    size_t size;
};

static int add_reason(void *ctx, const struct fl_pin_rec *pin)
{
    const struct naming *n = ctx;
    size_t used = strlen(n->out);

    if (pin->round == n->round) {
        (void)snprintf(n->out + used, n->size - used, ": %s", pin->reason);
    }
    return FL_OK;
}

/* Checkpoints abandoned by a rollback: their file names end with the number of the generation. */
static int each_abandoned(const struct fl_federation *federation, fl_checkpoints_cb cb, void *ctx,
                          struct fl_err *err)
{
    struct fl_abandoned *list = NULL;
    size_t n = 0;
    size_t i;
    int rv = fl_models_abandoned(federation->state_dir, &list, &n, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        const struct fl_checkpoint c = {.round = list[i].round, .accuracy = -1.0};
        char why[160];

        (void)snprintf(why, sizeof(why),
                       "abandoned: models/round-%06llu.safetensors.generation-%llu, until unpinned",
                       (unsigned long long)list[i].round, (unsigned long long)list[i].generation);
        rv = cb(ctx, &c, why);
        if (rv != FL_OK) {
            break;
        }
    }
    free(list);
    return rv;
}

int fl_checkpoints_each(const struct fl_federation *federation, uint64_t wall_ms,
                        fl_checkpoints_cb cb, void *ctx, struct fl_err *err)
{
    struct list l;
    size_t i;
    int rv = checkpoints_collect(federation, UINT64_MAX, wall_ms, &l, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < l.n; i++) {
        char why[512];
        struct naming naming = {l.list[i].round, why, sizeof(why)};
        const char *text = checkpoint_reasons(&l.list[i], why, sizeof(why));

        if (l.list[i].pinned) {
            rv = fl_store_pins(federation->store, add_reason, &naming, err);
            if (rv != FL_OK) {
                goto done;
            }
        }
        rv = cb(ctx, &l.list[i], text);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = each_abandoned(federation, cb, ctx, err);
done:
    free(l.list);
    return rv;
}

int fl_checkpoints_pin(const struct fl_federation *federation, uint64_t round, uint64_t wall_ms,
                       struct fl_err *err)
{
    uint64_t *rounds = NULL;
    size_t n = 0;
    size_t i = 0;
    int rv = fl_models_list(federation->state_dir, &rounds, &n, err);

    if (rv != FL_OK) {
        return rv;
    }
    while (i < n && rounds[i] != round) {
        i++;
    }
    free(rounds);
    if (i == n) {
        return fl_err_set(err, FL_ENOENT,
                          "round %llu has no checkpoint; 'flctl checkpoints' lists them",
                          (unsigned long long)round);
    }
    return fl_store_pin(federation->store, round, "by the operator", wall_ms, err);
}

int fl_checkpoints_unpin(const struct fl_federation *federation, uint64_t round, struct fl_err *err)
{
    struct fl_err other = {0};
    int rv = fl_store_unpin(federation->store, round, err);
    int code;

    if (rv != FL_ENOENT) {
        return rv;
    }
    code = fl_models_release_abandoned(federation->state_dir, round, &other);
    if (code == FL_OK || code == FL_ENOENT) {
        return code; /* FL_ENOENT: it was not pinned either. */
    }
    return fl_err_set(err, code, "%s", fl_err_text(&other, code));
}

int fl_checkpoints_read(const struct fl_federation *federation, uint64_t round,
                        struct fl_blob **ret, struct fl_err *err)
{
    const struct fl_models_tag tag = fl_federation_tag(federation);
    const struct fl_models_checkpoint c = {
        .dir = federation->state_dir, .round = round, .tag = &tag, .layout = federation->layout};
    struct fl_blob *blob = NULL;
    struct fl_models_found found;
    int rv = fl_blob_create(fl_federation_floats(federation) * sizeof(float), &blob);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_models_load(&c, fl_blob_fill_floats(blob), NULL, &found, err);
    if (rv != FL_OK) {
        fl_blob_unref(blob);
        return rv;
    }
    *ret = blob;
    return FL_OK;
}

/* Personal models of the round before are needed only for a rollback to its checkpoint. */
int fl_checkpoints_prune_personal_models(const struct fl_federation *federation, uint64_t last,
                                         struct fl_err *err)
{
    const char *dir = federation->state_dir;
    uint64_t before = last > 0 ? last - 1 : 0;
    char path[PATH_MAX];
    bool kept =
        fl_models_path(dir, before, NULL, path, sizeof(path)) == FL_OK && fl_fs_exists(path);

    return fl_personal_models_clean(dir, kept ? before : last, last, err);
}
