/*
 * What a power cut leaves: of the database what was synced last, beside checkpoints that are synced
 * as they are saved. And what is done about a state folder whose database is gone.
 */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/store/generation.h"
#include "server/store/store.h"
#include "server/store/store_files.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

TESTS_APART("a test leaves the disk of its own as the power cut left it");

static const char *const names[] = {"control"};

static struct fl_layout *layout;
static const char *dir;
static float *theta;
static float *control;

static void setup(void)
{
    dir = rig_dir();
    layout = rig_layout();
    theta = calloc(fl_layout_count(layout), sizeof(*theta));
    control = calloc(fl_layout_count(layout), sizeof(*control));
    ck_assert(theta != NULL && control != NULL);
}

static void teardown(void)
{
    free(theta);
    free(control);
    fl_layout_free(layout);
    rig_remove();
}

static void copy(const char *from, const char *to)
{
    struct fl_buf buf;

    if (!fl_fs_exists(from)) {
        ck_assert_int_eq(fl_fs_remove(to), FL_OK);
        return;
    }
    ck_assert_int_eq(fl_fs_read(from, 1 << 28, &buf, NULL), FL_OK);
    ck_assert_int_eq(fl_fs_replace(to, buf.data, buf.len, false, NULL), FL_OK);
    fl_buf_done(&buf);
}

/* --- the disk: what SQLite syncs is what a power cut leaves --- */

static bool watching;
static char folders[4096]; /* that were synced, a line each */

static void note_folder(int fd)
{
    char link[64];
    char path[RIG_PATH_MAX] = "";
    size_t len = strlen(folders);
    struct stat st;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && readlink(link, path, sizeof(path) - 1) > 0) {
        (void)snprintf(folders + len, sizeof(folders) - len, "%s\n", path);
    }
}

static bool was_synced(const char *folder)
{
    char path[RIG_PATH_MAX];
    char line[RIG_PATH_MAX + 1];

    (void)snprintf(line, sizeof(line), "%s\n", folder[0] != '\0' ? rig_path(path, folder) : dir);
    return strstr(folders, line) != NULL;
}

static void keep_synced(int fd)
{
    char link[64];
    char path[RIG_PATH_MAX] = "";
    char to[RIG_PATH_MAX];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (!watching || readlink(link, path, sizeof(path) - 1) <= 0) {
        return;
    }
    watching = false; /* Copying syncs nothing. */
    if (strstr(path, "/federation.db-wal") != NULL) {
        copy(path, rig_path(to, "cut/federation.db-wal"));
    } else if (strstr(path, "/federation.db") != NULL) {
        copy(path, rig_path(to, "cut/federation.db"));
    }
    watching = true;
}

int fsync(int fd);
int fdatasync(int fd);

/* In place of libc's for the whole process, SQLite included. */
int fsync(int fd)
{
    note_folder(fd);
    keep_synced(fd);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    keep_synced(fd);
    return (int)syscall(SYS_fdatasync, fd);
}

static const char *unreadable; /* reading this file ends with an error; NULL: none */

ssize_t pread(int fd, void *data, size_t len, off_t offset);

ssize_t pread(int fd, void *data, size_t len, off_t offset)
{
    char link[64];
    char path[RIG_PATH_MAX] = "";
    char bad[RIG_PATH_MAX];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (unreadable != NULL && readlink(link, path, sizeof(path) - 1) > 0 &&
        strcmp(path, rig_path(bad, unreadable)) == 0)
    {
        errno = EIO;
        return -1;
    }
    return (ssize_t)syscall(SYS_pread64, fd, data, len, offset);
}

/* --- a federation --- */

static struct fl_store *open_store(const char *where, enum fl_durability durability)
{
    struct fl_store *s = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_store_open(where, "fed", layout, durability, &s, &err) == FL_OK, "%s",
                  err.msg);
    return s;
}

static void save(struct fl_store *s, uint64_t round)
{
    const float *const state[] = {control};
    struct fl_models_tag tag = {.database = fl_store_id(s)};
    size_t i;

    for (i = 0; i < fl_layout_count(layout); i++) {
        theta[i] = (float)round;
        control[i] = (float)round + 0.5f;
    }
    ck_assert_int_eq(fl_models_save(&(struct fl_models_checkpoint){dir, round, &tag, layout, names,
                                                                   round > 0 ? 1 : 0},
                                    theta, state, true, NULL),
                     FL_OK);
}

static void commit(struct fl_store *s, uint64_t round)
{
    struct fl_round_rec r = {.round = round, .attempt = 1, .accuracy = -1.0};

    ck_assert_int_eq(fl_store_commit(s, &r, NULL, 0, NULL, NULL), FL_OK);
}

static void prune(struct fl_store *s, uint64_t round, uint32_t keep)
{
    struct fl_models_tag tag = {.database = fl_store_id(s)};

    ck_assert_int_eq(fl_models_prune(dir, &tag, round, keep, 0, NULL), FL_OK);
}

/* A federation of `rounds` rounds with all its checkpoints. */
static void run(uint64_t rounds)
{
    struct fl_store *s = open_store(dir, FL_DURABLE_PROCESS);
    uint64_t t;

    save(s, 0);
    for (t = 1; t <= rounds; t++) {
        save(s, t);
        commit(s, t);
    }
    fl_store_close(s);
}

static uint64_t committed(struct fl_store *s)
{
    struct fl_coord_resume r;
    uint64_t round;

    ck_assert_int_eq(fl_store_load(s, &r, NULL), FL_OK);
    round = r.committed;
    fl_store_resume_done(&r);
    return round;
}

static int load(struct fl_store *s, uint64_t round, struct fl_err *err)
{
    struct fl_models_tag tag = {.database = fl_store_id(s)};
    float *const state[] = {control};
    struct fl_models_found found;

    return fl_models_load(&(struct fl_models_checkpoint){dir, round, &tag, layout, names, 1}, theta,
                          state, &found, err);
}

static bool there(uint64_t round)
{
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(fl_models_path(dir, round, NULL, path, sizeof(path)), FL_OK);
    return fl_fs_exists(path);
}

/* --- power cuts --- */

/* The database as it was synced last has the checkpoint of its last round beside it. */
static void check_cut(uint64_t at_least)
{
    char cut[RIG_PATH_MAX];
    struct fl_store *s;
    struct fl_err err = {0};
    uint64_t last;

    watching = false;
    s = open_store(rig_path(cut, "cut"), FL_DURABLE_PROCESS);
    last = committed(s);
    ck_assert_uint_ge(last, at_least);
    ck_assert_msg(load(s, last, &err) == FL_OK, "%s", err.msg);
    fl_store_close(s);
    watching = true;
}

TEST_CASE("power", setup, teardown);

TEST_EACH(a_power_cut_leaves_the_newest_record_with_its_checkpoint, 2)
{
    enum fl_durability durability = _i == 0 ? FL_DURABLE_PROCESS : FL_DURABLE_POWER;
    struct fl_store *s;
    char cut[RIG_PATH_MAX];
    uint64_t t;

    ck_assert_int_eq(fl_fs_mkdirs(rig_path(cut, "cut"), NULL), FL_OK);
    watching = true;
    s = open_store(dir, durability);
    save(s, 0);
    check_cut(0);
    for (t = 1; t <= 25; t++) {
        save(s, t);
        check_cut(t - 1);
        commit(s, t);
        check_cut(t);
        prune(s, t, 1 + (uint32_t)(t % 3));
        check_cut(t);
    }
    watching = false;
    fl_store_close(s);
}

/* --- a folder without its database --- */

static void lose_database(int how)
{
    static const char *const files[] = {"federation.db", "federation.db-wal", "federation.db-shm"};
    char path[RIG_PATH_MAX];
    size_t i;

    for (i = 1; i < 3; i++) {
        ck_assert_int_eq(fl_fs_remove(rig_path(path, files[i])), FL_OK);
    }
    (void)rig_path(path, files[0]);
    if (how == 0) {
        ck_assert_int_eq(unlink(path), 0);
    } else if (how == 1) {
        rig_cut(path, 0);
    } else {
        rig_damage(path, 0, (size_t)rig_size(path));
    }
}

TEST_EACH(a_database_that_is_gone_does_not_begin_a_federation_over_its_checkpoints, 3)
{
    struct fl_store *s = NULL;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];
    int rv;

    run(4);
    lose_database(_i);
    rv = fl_store_open(dir, "fed", layout, FL_DURABLE_PROCESS, &s, &err);
    ck_assert_int_eq(rv, _i < 2 ? FL_ESTATE : FL_EFORMAT);
    ck_assert_msg(strstr(err.msg, "fl-serverd --recover CONFIG") != NULL, "%s", err.msg);
    ck_assert(_i != 0 || strstr(err.msg, "is missing") != NULL);
    ck_assert(_i != 1 || strstr(err.msg, "is empty") != NULL);
    ck_assert(_i == 2 || strstr(err.msg, "checkpoints up to round 4") != NULL);
    ck_assert(there(0) && there(4));
    ck_assert(fl_fs_exists(rig_path(path, "federation.db")) == (_i != 0));
}

TEST(uploads_without_a_database_are_not_begun_over_either)
{
    const struct fl_spool_part part = {
        .unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = RIG_FC3 * sizeof(float)};
    struct fl_spool *spool = NULL;
    struct fl_store *s = NULL;
    struct fl_err err = {0};
    uint64_t received = 0;

    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 1, 1, "edge", &part, 1, NULL},
                                   &spool, &received, NULL),
                     FL_OK);
    fl_spool_close(spool);
    ck_assert_int_eq(fl_store_open(dir, "fed", layout, FL_DURABLE_PROCESS, &s, &err), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "holds uploads of a federation; nothing was touched"));
    ck_assert_uint_eq(fl_spool_peek(dir, 1, 1, "edge"), 0);
}

static struct fl_log quiet = {.level = FL_LOG_ERROR};

static int rebuild(struct fl_store_rebuild *r, struct fl_err *err)
{
    *r = (struct fl_store_rebuild){.dir = dir,
                                   .federation = "fed",
                                   .layout = layout,
                                   .state_names = names,
                                   .n_state = 1,
                                   .log = &quiet};
    return fl_store_rebuild(r, err);
}

static void check_goes_on(uint64_t round)
{
    struct fl_store *s = open_store(dir, FL_DURABLE_PROCESS);

    ck_assert_uint_eq(committed(s), round);
    ck_assert_int_eq(load(s, round, NULL), FL_OK);
    save(s, round + 1);
    commit(s, round + 1);
    prune(s, round + 1, 1);
    ck_assert(there(round + 1) && !there(round));
    fl_store_close(s);
}

TEST_EACH(a_lost_database_is_rebuilt_at_the_newest_good_checkpoint, 3)
{
    struct fl_store_rebuild r;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    run(5);
    lose_database(_i);
    rig_damage(rig_path(path, "models/round-000005.safetensors"), 2000, 1);
    ck_assert_int_eq(unlink(rig_path(path, "models/round-000004.control.safetensors")), 0);
    ck_assert_msg(rebuild(&r, &err) == FL_OK, "%s", err.msg);
    ck_assert(r.fresh && !r.unchanged);
    ck_assert_uint_eq(r.round, 3);
    ck_assert(!there(5) && !there(4) && there(3));
    ck_assert(fl_fs_exists(rig_path(path, "models/round-000005.safetensors.bad-1")) ||
              fl_fs_exists(rig_path(path, "models/round-000005.safetensors.bad-2")));
    ck_assert(fl_fs_exists(rig_path(path, "federation.db.bad-1")) == (_i != 0));
    rig_check_db();
    check_goes_on(3);
}

TEST(a_database_older_than_all_checkpoints_goes_on_from_the_newest)
{
    struct fl_store_rebuild r;
    struct fl_store *s;
    char cut[RIG_PATH_MAX];
    char path[RIG_PATH_MAX];
    uint64_t t;

    run(2);
    ck_assert_int_eq(fl_fs_mkdirs(rig_path(cut, "cut"), NULL), FL_OK);
    copy(rig_path(path, "federation.db"), rig_path(cut, "cut/federation.db"));
    s = open_store(dir, FL_DURABLE_PROCESS);
    for (t = 3; t <= 7; t++) {
        save(s, t);
        commit(s, t);
    }
    prune(s, 7, 2);
    fl_store_close(s);
    copy(cut, path);
    ck_assert_int_eq(rebuild(&r, NULL), FL_OK);
    ck_assert(!r.fresh && !r.unchanged);
    ck_assert_uint_eq(r.had, 2);
    ck_assert_uint_eq(r.round, 7);
    check_goes_on(7);
}

TEST(a_folder_that_is_whole_is_left_as_it_is)
{
    struct fl_store_rebuild r;

    run(3);
    ck_assert_int_eq(rebuild(&r, NULL), FL_OK);
    ck_assert(r.unchanged && !r.fresh);
    ck_assert_uint_eq(r.round, 3);
    check_goes_on(3);
}

/* --- a checkpoint without what goes with the clients --- */

/* Two clients' personalized models; the seal that names them. */
static void save_personal_models(uint64_t round, char seal[FL_PERSONAL_MODELS_SEAL])
{
    static const char *const clients[] = {"a", "b"};
    size_t bytes = fl_layout_count(layout) * sizeof(float);
    struct fl_personal_models_writer *w = NULL;
    struct fl_personal_models *m = NULL;
    size_t i;

    ck_assert_int_eq(fl_personal_models_create(dir, round, clients, 2, bytes, &w, NULL), FL_OK);
    for (i = 0; i < 2; i++) {
        ck_assert_int_eq(fl_personal_models_write(w, i, 0, theta, bytes, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_personal_models_publish(w, NULL), FL_OK);
    ck_assert_int_eq(fl_personal_models_open(dir, round, bytes, &m, NULL), FL_OK);
    fl_personal_models_seal(m, seal);
    fl_personal_models_close(m);
}

/* The model of one more round, with neither vector nor personalized models, or with a name of
 * these. */
static void add_round(uint64_t round, const char *seal)
{
    struct fl_store *s = open_store(dir, FL_DURABLE_PROCESS);
    const struct fl_models_tag tag = {.database = fl_store_id(s), .personal_models = seal};

    ck_assert_int_eq(
        fl_models_save(&(struct fl_models_checkpoint){dir, round, &tag, layout, NULL, 0}, theta,
                       NULL, true, NULL),
        FL_OK);
    commit(s, round);
    fl_store_close(s);
}

static uint64_t anew_since(void)
{
    struct fl_store *s = open_store(dir, FL_DURABLE_PROCESS);
    struct fl_generation line;

    ck_assert_int_eq(fl_store_generation(s, &line, NULL), FL_OK);
    fl_store_close(s);
    return line.kept_since;
}

static int rebuild_of(bool mixes, size_t n_state, size_t n_own, struct fl_store_rebuild *r)
{
    *r = (struct fl_store_rebuild){.dir = dir,
                                   .federation = "fed",
                                   .layout = layout,
                                   .state_names = names,
                                   .n_state = n_state,
                                   .n_own = n_own,
                                   .mixes = mixes,
                                   .log = &quiet};
    return fl_store_rebuild(r, NULL);
}

TEST(a_good_model_without_the_solvers_vector_is_gone_on_from_once)
{
    struct fl_store_rebuild r;

    run(3);
    add_round(4, NULL);
    ck_assert_int_eq(rebuild_of(false, 1, 0, &r), FL_OK);
    ck_assert(!r.unchanged && !r.fresh && r.round == 4);
    ck_assert_uint_eq(anew_since(), 4);
    ck_assert(there(4) && there(3));
    /* Nothing is lacking any more, and an open round is not lost a second time. */
    ck_assert_int_eq(rebuild_of(false, 1, 0, &r), FL_OK);
    ck_assert(r.unchanged && r.round == 4);
    check_goes_on(4);
    ck_assert_int_eq(rebuild_of(false, 1, 0, &r), FL_OK);
    ck_assert(r.unchanged && r.round == 5);
}

TEST(a_vector_of_the_server_alone_is_not_made_zero_by_recovering)
{
    struct fl_store_rebuild r;

    run(3);
    add_round(4, NULL);
    ck_assert_int_eq(rebuild_of(false, 1, 1, &r), FL_OK);
    ck_assert(r.unchanged && r.round == 4);
    ck_assert_uint_eq(anew_since(), 0);
}

/* _i: 0 they are there, 1 they are gone, 2 one is damaged, 3 others are in their place. */
TEST_EACH(a_good_model_whose_personal_models_cannot_be_used_is_gone_on_from_once, 4)
{
    struct fl_store_rebuild r;
    char seal[FL_PERSONAL_MODELS_SEAL];
    char path[RIG_PATH_MAX];

    run(3);
    save_personal_models(4, seal);
    add_round(4, seal);
    (void)rig_path(path, "personal_models/000004.mix");
    if (_i == 1) {
        ck_assert_int_eq(unlink(path), 0);
    } else if (_i == 2) {
        rig_damage(path, rig_size(path) - 1, 1);
    } else if (_i == 3) {
        theta[0]++;
        save_personal_models(4, seal);
    }
    ck_assert_int_eq(rebuild_of(true, 0, 0, &r), FL_OK);
    ck_assert_uint_eq(r.round, 4);
    ck_assert_int_eq(r.unchanged, _i == 0);
    ck_assert_uint_eq(anew_since(), _i == 0 ? 0 : 4);
    ck_assert_int_eq(rebuild_of(true, 0, 0, &r), FL_OK);
    ck_assert(r.unchanged);
    ck_assert_int_eq(rebuild_of(false, 0, 0, &r), FL_OK); /* Nobody asks for them. */
    ck_assert(r.unchanged);
}

TEST(without_a_good_checkpoint_nothing_is_rebuilt)
{
    struct fl_store_rebuild r;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    run(1);
    lose_database(0);
    rig_cut(rig_path(path, "models/round-000000.safetensors"), 10);
    rig_cut(rig_path(path, "models/round-000001.safetensors"), 10);
    ck_assert_int_eq(rebuild(&r, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "can be used (2 were tried)"));
    ck_assert(there(0) && there(1));
    ck_assert(!fl_fs_exists(rig_path(path, "federation.db")));
}

TEST(the_database_is_as_private_as_the_models)
{
    static const char *const files[] = {"federation.db", "federation.db-wal", "federation.db-shm"};
    struct fl_store *s;
    char path[RIG_PATH_MAX];
    struct stat st;
    size_t i;

    (void)umask(0);
    s = open_store(dir, FL_DURABLE_PROCESS);
    for (i = 0; i < 3; i++) {
        ck_assert_int_eq(stat(rig_path(path, files[i]), &st), 0);
        ck_assert_int_eq((int)(st.st_mode & 0777), 0640);
    }
    fl_store_close(s);
    /* One that was copied here. */
    ck_assert_int_eq(chmod(rig_path(path, files[0]), 0644), 0);
    s = open_store(dir, FL_DURABLE_PROCESS);
    for (i = 0; i < 3; i++) {
        ck_assert_int_eq(stat(rig_path(path, files[i]), &st), 0);
        ck_assert_int_eq((int)(st.st_mode & 0777), 0640);
    }
    fl_store_close(s);
}

TEST(an_id_stays)
{
    char id[FL_STORE_ID_TEXT];
    struct fl_store *s = open_store(dir, FL_DURABLE_PROCESS);

    (void)memcpy(id, fl_store_id(s), sizeof(id));
    ck_assert_uint_eq(strlen(id), FL_STORE_ID_TEXT - 1);
    fl_store_close(s);
    s = open_store(dir, FL_DURABLE_PROCESS);
    ck_assert_str_eq(fl_store_id(s), id);
    fl_store_close(s);
}

/* With its database, and with one that is lost; its model, and what goes with it. */
TEST_EACH(recovering_passes_a_checkpoint_that_cannot_be_read, 4)
{
    static const char *const files[] = {"models/round-000004.safetensors",
                                        "models/round-000004.control.safetensors"};
    struct fl_store_rebuild r;
    char path[RIG_PATH_MAX];
    char bad[RIG_PATH_MAX];
    unsigned i;
    unsigned n = 0;

    run(4);
    unreadable = files[_i % 2];
    if (_i >= 2) {
        ck_assert_int_eq(fl_fs_remove(rig_path(path, "federation.db")), FL_OK);
    }
    ck_assert_int_eq(rebuild_of(false, 1, 0, &r), FL_OK);
    ck_assert_uint_eq(r.round, 3);
    ck_assert(!fl_fs_exists(rig_path(path, files[_i % 2])));
    for (i = 1; i <= 2; i++) { /* The two are numbered in the order of the folder. */
        (void)snprintf(bad, sizeof(bad), "%s.bad-%u", files[_i % 2], i);
        n += fl_fs_exists(rig_path(path, bad));
    }
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(rebuild_of(false, 1, 0, &r), FL_OK);
    ck_assert(r.unchanged);
}

/* --- what has to be on the disk beside the files --- */

TEST(the_parents_of_new_folders_are_synced)
{
    char path[RIG_PATH_MAX];

    folders[0] = '\0';
    ck_assert_int_eq(fl_fs_mkdirs(rig_path(path, "one/two/three"), NULL), FL_OK);
    ck_assert(was_synced(""));
    ck_assert(was_synced("one"));
    ck_assert(was_synced("one/two"));
    folders[0] = '\0';
    ck_assert_int_eq(fl_fs_mkdirs(path, NULL), FL_OK);
    ck_assert_str_eq(folders, "");
}

TEST(the_renames_of_quarantined_files_are_synced)
{
    char path[RIG_PATH_MAX];

    run(2);
    folders[0] = '\0';
    ck_assert_int_eq(fl_models_quarantine(dir, 2, NULL), FL_OK);
    ck_assert(was_synced("models"));
    ck_assert_int_eq(
        fl_fs_replace(rig_path(path, "personal_models/000001.mix"), "x", 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_personal_models_quarantine(dir, 1, NULL), FL_OK);
    ck_assert(!fl_fs_exists(path));
    ck_assert(was_synced("personal_models"));
    ck_assert_int_eq(fl_fs_replace(rig_path(path, "summaries/fixed"), "x", 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_summaries_quarantine(dir, NULL), FL_OK);
    ck_assert(!fl_fs_exists(path));
    ck_assert(was_synced("summaries"));
}

/* A backup that reads, or one large commit, makes it long: it does not stay so. */
TEST(the_log_of_the_database_gives_its_room_back)
{
    enum { MANY = 300000, LIMIT = 16 << 20 };
    struct fl_client_rec *recs = calloc(MANY, sizeof(*recs));
    struct fl_round_rec r = {.round = 1, .attempt = 1, .accuracy = -1.0};
    struct fl_store *s = open_store(dir, FL_DURABLE_PROCESS);
    char path[RIG_PATH_MAX];
    uint32_t i;

    ck_assert_ptr_nonnull(recs);
    for (i = 0; i < MANY; i++) {
        recs[i] = (struct fl_client_rec){.id = i, .agent = "fl-clientd/0.1.0"};
        (void)snprintf(recs[i].name, sizeof(recs[i].name), "edge-%u", (unsigned)i);
    }
    ck_assert_int_eq(fl_store_commit(s, &r, recs, MANY, NULL, NULL), FL_OK);
    ck_assert_uint_gt(rig_size(rig_path(path, "federation.db-wal")), LIMIT);
    for (r.round = 2; r.round < 5; r.round++) {
        ck_assert_int_eq(fl_store_commit(s, &r, NULL, 0, NULL, NULL), FL_OK);
    }
    ck_assert_uint_le(rig_size(path), LIMIT);
    fl_store_close(s);
    free(recs);
}
