/* Opening the state folder, and the checks before it: that the folder belongs to this federation,
 * and whether a new federation may start in it. On the thread that owns the store, the checks on
 * any. Records are written in store.c and read in store_load.c. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/digest.h"
#include "server/store/generation_impl.h"
#include "server/store/store_impl.h"

/* --- files of an existing federation --- */

struct found {
    const char *suffix;
    bool any;
};

static int look_for_suffix(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct found *found = ctx;

    (void)folder;
    (void)err;
    found->any = found->any || fl_str_ends_with(name, found->suffix);
    return FL_OK;
}

/*
 * FL_ESTATE when the folder holds files of a federation whose database `what` ("is missing"): a new
 * federation must not start over them.
 */
static int check_new(const char *dir, const char *what, struct fl_err *err)
{
    static const struct {
        const char *folder, *suffix, *what;
    } left[] = {{"spool", ".upload", "uploads"},
                {"personal_models", ".mix", "personal models"},
                {"summaries", ".summary", "data summaries"}};
    char path[FL__STORE_PATH_MAX];
    uint64_t *rounds = NULL;
    uint64_t newest = 0;
    size_t n = 0;
    size_t i;
    int rv = fl_models_list(dir, &rounds, &n, err);

    if (rv != FL_OK) {
        return rv;
    }
    newest = n > 0 ? rounds[0] : 0;
    free(rounds);
    if (n > 0) {
        return fl_err_set(
            err, FL_ESTATE,
            "'%s/federation.db' %s, but '%s/models' holds checkpoints up to round "
            "%" PRIu64 "; nothing was touched. 'fl-serverd --recover CONFIG' goes on "
            "from the newest good one; to start a new federation, move the folder away or choose "
            "another state_dir",
            dir, what, dir, newest);
    }
    for (i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        struct found found = {.suffix = left[i].suffix};

        rv = fl__store_join(path, dir, left[i].folder, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_fs_each(path, look_for_suffix, &found, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (found.any) {
            return fl_err_set(err, FL_ESTATE,
                              "'%s/federation.db' %s, but '%s/%s' holds %s of a federation; "
                              "nothing was touched. To start over, move the folder away or choose "
                              "another state_dir",
                              dir, what, dir, left[i].folder, left[i].what);
        }
    }
    return FL_OK;
}

/* --- the owner of the folder --- */

static void describe_model(const struct fl_layout *layout, char *out, size_t size)
{
    const uint8_t *d = fl_layout_shape_digest(layout);

    (void)snprintf(out, size, "%zu units, %zu values, digest %02x%02x%02x%02x%02x%02x",
                   fl_layout_units(layout), fl_layout_count(layout), d[0], d[1], d[2], d[3], d[4],
                   d[5]);
}

static const enum fl_db_sync sync_of[] = {[FL_DURABLE_PROCESS] = FL_DB_SYNC_NORMAL,
                                          [FL_DURABLE_POWER] = FL_DB_SYNC_FULL,
                                          [FL_DURABLE_SCRATCH] = FL_DB_SYNC_NEVER};

static int claim_folder(struct fl_store *store, const struct fl__store_opening *o,
                        struct fl__folder *ret, struct fl_err *err)
{
    struct fl__folder folder = {.generation = 1, .state_generation = 1};
    int rv;

    if (o->rebuild != NULL) {
        (void)memcpy(folder.id, o->rebuild, sizeof(folder.id));
    } else {
        rv = check_new(o->dir, "holds no federation", err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_random_bytes(folder.id, sizeof(folder.id));
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl_random_bytes(folder.identity, sizeof(folder.identity));
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "no random bytes for the state folder");
    }
    (void)memcpy(folder.kept_identity, folder.identity, sizeof(folder.kept_identity));
    (void)memcpy(folder.layout, fl_layout_shape_digest(o->layout), sizeof(folder.layout));
    describe_model(o->layout, folder.model, sizeof(folder.model));
    if (fl_str_copy(folder.name, sizeof(folder.name), o->federation) != FL_OK) {
        return fl_err_set(err, FL_EINVAL, "federation '%s': the name is too long", o->federation);
    }
    /* The federation row must be as durable as the records that depend on it. */
    rv = fl_db_begin_durable(&store->db, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = folder;
    return fl_db_end(&store->db, fl__folder_put(&store->db, FL__DB_PUT_FEDERATION, &folder, err),
                     err);
}

static int other_federation(const char *dir, const char *name, const char *federation, bool empty,
                            struct fl_err *err)
{
    return fl_err_set(
        err, FL_ESTATE,
        "state folder '%s' belongs to federation '%s', not '%s': use another folder, or the name "
        "it had%s",
        dir, name, federation,
        empty ? "; no round is committed in it: to begin again under the new name remove "
                "federation.db*, models and spool there"
              : "");
}

int fl_store_check_name(const char *dir, const char *federation, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char name[FL_NAME_MAX];
    uint64_t rounds = 0;

    if (fl_fs_join(path, sizeof(path), dir, "federation.db") != FL_OK || !fl_fs_exists(path) ||
        fl_db_first_row(&fl__store_db, path,
                        "SELECT name, (SELECT COUNT(*) FROM round) FROM federation", name,
                        sizeof(name), &rounds, NULL) != FL_OK ||
        strcmp(name, federation) == 0)
    {
        return FL_OK;
    }
    return other_federation(dir, name, federation, rounds == 0, err);
}

bool fl_store_knows_client(const char *dir, const char *name)
{
    char path[FL__STORE_PATH_MAX];
    char sql[64 + FL_NAME_MAX];
    char found[FL_NAME_MAX];
    uint64_t id;

    FL_REQUIRE(fl_name_allowed(name)); /* so it has no quote */
    (void)snprintf(sql, sizeof(sql), "SELECT name, id FROM client WHERE name = '%s'", name);
    return fl_fs_join(path, sizeof(path), dir, "federation.db") == FL_OK && fl_fs_exists(path) &&
           fl_db_first_row(&fl__store_db, path, sql, found, sizeof(found), &id, NULL) == FL_OK;
}

static int other_model(const char *dir, const char *had, const char *makes, struct fl_err *err)
{
    return fl_err_set(
        err, FL_ESTATE,
        "state folder '%s' belongs to another model (%s), the configuration makes %s: "
        "use another folder, or the model it had",
        dir, had, makes);
}

int fl_store_check_model(const char *dir, const struct fl_layout *layout, struct fl_err *err)
{
    char digest[2 * FL_DIGEST_SIZE + 1];
    char sql[64 + sizeof(digest)];
    char path[FL__STORE_PATH_MAX];
    char had[128];
    char makes[128];
    uint64_t same = 0;

    (void)snprintf(sql, sizeof(sql), "SELECT model, layout = x'%s' FROM federation",
                   fl_hex(digest, fl_layout_shape_digest(layout), FL_DIGEST_SIZE));
    if (fl_fs_join(path, sizeof(path), dir, "federation.db") != FL_OK || !fl_fs_exists(path) ||
        fl_db_first_row(&fl__store_db, path, sql, had, sizeof(had), &same, NULL) != FL_OK ||
        same != 0)
    {
        return FL_OK;
    }
    describe_model(layout, makes, sizeof(makes));
    return other_model(dir, had, makes, err);
}

int fl_store_check_broadcast(const char *dir, const struct fl_strategy *strategy,
                             struct fl_err *err)
{
    const struct fl_broadcast_ops *broadcast = strategy->broadcast;
    char path[FL__STORE_PATH_MAX];
    char before[1024];
    uint64_t committed = 0;

    if (broadcast->check_change == NULL ||
        fl_fs_join(path, sizeof(path), dir, "federation.db") != FL_OK || !fl_fs_exists(path) ||
        fl_db_first_row(&fl__store_db, path,
                        "SELECT value, (SELECT COALESCE(MAX(round), 0) FROM round) FROM setting "
                        "WHERE name = 'strategy.broadcast'",
                        before, sizeof(before), &committed, NULL) != FL_OK)
    {
        return FL_OK; /* The settings are not known, too, after a rebuild. */
    }
    return broadcast->check_change(strategy->options[FL_COMPONENT_BROADCAST], before, committed,
                                   err);
}

const char *fl_store_id(const struct fl_store *store)
{
    return store->id;
}

static int make_folders(const char *dir, struct fl_err *err)
{
    static const char *const names[] = {"models", "spool", "personal_models", "summaries"};
    char path[FL__STORE_PATH_MAX];
    size_t i;
    int rv = fl_fs_mkdirs(dir, err);

    if (rv != FL_OK) {
        return rv;
    }
    /* SQLite's own message would name a file that does not exist. */
    if (faccessat(AT_FDCWD, dir, R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
        return fl_fs_denied(err, errno, "use state folder", dir);
    }
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        rv = fl__store_join(path, dir, names[i], err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_fs_mkdirs(path, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    /* Make the new folders durable, so that files synced in them survive a power failure. */
    return fl_fs_sync_dir(dir, err);
}

int fl__store_open_path(const struct fl__store_opening *o, struct fl_store **ret,
                        struct fl_err *err)
{
    struct fl_store *store = calloc(1, sizeof(*store));
    struct fl__folder folder;
    char model[sizeof(folder.model)];
    struct fl_query q;
    int rv;

    if (store == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    store->n_units = fl_layout_units(o->layout);
    (void)memcpy(store->layout, fl_layout_digest(o->layout), sizeof(store->layout));
    if (fl_str_copy(store->dir, sizeof(store->dir), o->dir) != FL_OK) {
        rv = fl_err_set(err, FL_ELIMIT, "path '%s' is too long", o->dir);
        goto fail;
    }
    rv = fl_db_open(&store->db, &fl__store_db, o->path, sync_of[o->durability], err);
    if (rv != FL_OK) {
        goto fail;
    }
    /* The folder must belong to this federation and model; an empty folder is claimed for them. */
    q = fl_db_query(&store->db, FL__DB_GET_FEDERATION);
    rv = fl__folder_one(&q, &folder, err);
    if (rv == FL_ENOENT) {
        rv = claim_folder(store, o, &folder, err);
    }
    if (rv != FL_OK) {
        goto fail;
    }
    if (strcmp(folder.name, o->federation) != 0) {
        rv = other_federation(o->dir, folder.name, o->federation, /* empty= */ false, err);
        goto fail;
    }
    if (memcmp(folder.layout, fl_layout_shape_digest(o->layout), sizeof(folder.layout)) != 0) {
        describe_model(o->layout, model, sizeof(model));
        rv = other_model(o->dir, folder.model, model, err);
        goto fail;
    }
    (void)fl_hex(store->id, folder.id, sizeof(folder.id));
    *ret = store;
    return FL_OK;
fail:
    fl_store_close(store);
    return rv;
}

int fl_store_check(const char *dir, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct stat st;
    int rv = fl__store_join(path, dir, "federation.db", err);

    if (rv != FL_OK) {
        return rv;
    }
    if (stat(path, &st) != 0) {
        return errno == ENOENT ? check_new(dir, "is missing", err) : FL_OK;
    }
    return st.st_size == 0 ? check_new(dir, "is empty", err) : FL_OK;
}

int fl_store_open(const char *dir, const char *federation, const struct fl_layout *layout,
                  enum fl_durability durability, struct fl_store **ret, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    const struct fl__store_opening o = {.dir = dir,
                                        .path = path,
                                        .federation = federation,
                                        .layout = layout,
                                        .durability = durability};
    int rv = make_folders(dir, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_join(path, dir, "federation.db", err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_store_check(dir, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_open_path(&o, ret, err);
    if (rv == FL_EFORMAT && err != NULL) {
        struct fl_err inner = *err;

        (void)fl_err_set(err, rv,
                         "%.300s; 'fl-serverd --recover CONFIG' sets it aside and begins again at "
                         "the newest good checkpoint",
                         fl_err_text(&inner, rv));
    }
    return rv;
}

void fl_store_close(struct fl_store *store)
{
    if (store == NULL) {
        return;
    }
    fl_db_close(&store->db);
    free(store);
}
