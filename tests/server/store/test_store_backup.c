/* Backups of a folder whose server goes on, and what the first start of a restored one does. */

#include <dirent.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/store/moved.h"
#include "tests/lib/suites.h"
#include "tests/server/store/store_change_fixture.h"

/* --- a server that goes on just when the backup looks for its files --- */

static struct fl_store *server;
static unsigned goes_on; /* so many times */
static uint64_t last;

static void save_model(uint64_t round)
{
    static const float theta[4096];
    static const float state[4096];
    const float *states[] = {state};
    const char *names[] = {"velocity"};
    const struct fl_models_tag tag = {.database = fl_store_id(server)};

    ck_assert_uint_le(fl_layout_count(layout), 4096);
    ck_assert_int_eq(
        fl_models_save(&(struct fl_models_checkpoint){dir, round, &tag, layout, names, 1}, theta,
                       states, false, NULL),
        FL_OK);
}

static void next_round(void)
{
    const struct fl_models_tag tag = {.database = fl_store_id(server)};

    save_model(++last);
    commit(server, last, 1);
    ck_assert_int_eq(fl_models_prune(dir, &tag, last, 1, 0, NULL), FL_OK);
}

/* The records are read, the files are not open yet. */
DIR *opendir(const char *name)
{
    DIR *(*real)(const char *) = (DIR * (*)(const char *))(uintptr_t)dlsym(RTLD_NEXT, "opendir");
    size_t n = strlen(name);

    if (goes_on > 0 && n > 7 && strcmp(name + n - 7, "/models") == 0) {
        unsigned left = goes_on - 1;

        goes_on = 0; /* What it does looks there too. */
        next_round();
        goes_on = left;
    }
    return real(name);
}

static void open_server(void)
{
    struct fl_store_entered e;

    last = 0;
    goes_on = 0;
    server = open_store();
    e = enter(server, "fedavgm", "0.1");
    ck_assert(e.first);
    put_clients(server);
    next_round();
}

static int make(const char *target, struct fl_backup *ret, struct fl_err *err)
{
    static char path[RIG_PATH_MAX];

    *ret = (struct fl_backup){.dir = dir, .target = rig_path(path, target), .program = "a test"};
    return fl_backup_make(ret, err);
}

TEST_CASE("rules", setup, teardown);

TEST_EACH(a_backup_is_of_one_instant_however_often_the_server_goes_on_meanwhile, 3)
{
    struct fl_backup b;
    struct fl_err err = {0};

    open_server();
    goes_on = (unsigned)_i;
    ck_assert_msg(make("backup", &b, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(goes_on, 0);
    ck_assert_uint_eq(b.committed, 1 + (uint64_t)_i);
    ck_assert_str_eq(b.federation, "fed");
    ck_assert_uint_eq(b.files, 4); /* database, model, vector, BACKUP */
    fl_store_close(server);
}

TEST(a_checkpoint_that_is_gone_for_good_is_named)
{
    struct fl_backup b;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    open_server();
    ck_assert_int_eq(fl_models_path(dir, 1, "velocity", path, sizeof(path)), FL_OK);
    ck_assert_int_eq(fl_fs_remove(path), FL_OK);
    ck_assert_int_eq(make("backup", &b, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "round-000001.velocity.safetensors"));
    ck_assert(!fl_fs_exists(rig_path(path, "backup/SHA256SUMS")));
    fl_store_close(server);
}

/* --- the mark of a folder that was moved --- */

#define KILLED 9

static unsigned killed_at; /* this rename, counted from 1, kills the process; 0: none */
static bool killed_before; /* it is made */

/* What is durable becomes so by a rename (fl_fs_replace()). */
int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) =
        (int (*)(const char *, const char *))(uintptr_t)dlsym(RTLD_NEXT, "rename");
    int rv;

    if (killed_at == 0 || --killed_at > 0) {
        return real(from, to);
    }
    rv = killed_before ? 0 : real(from, to);
    _exit(rv == 0 ? KILLED : 1);
}

static int move(const char *target, struct fl_err *err)
{
    char path[RIG_PATH_MAX];
    struct fl_backup b = {.dir = dir,
                          .target = rig_path(path, target),
                          .program = "a test",
                          .wall_ms = 1796000000000};

    return fl_moved_make(&b, err);
}

TEST(a_folder_that_was_moved_is_refused_until_that_is_undone)
{
    struct fl_err err = {0};

    open_server();
    fl_store_close(server);
    ck_assert_int_eq(fl_moved_check(dir, &err), FL_OK);
    ck_assert_int_eq(fl_moved_undo(dir, &err), FL_ENOENT);
    ck_assert_msg(move("backup", &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_moved_check(dir, &err), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "moved at 2026-11-30T00:53:20Z after round 1"));
    ck_assert_ptr_nonnull(strstr(err.msg, "/backup'"));
    ck_assert_ptr_nonnull(strstr(err.msg, "unmove"));
    ck_assert_int_eq(move("again", &err), FL_ESTATE);
    ck_assert_int_eq(fl_moved_undo(dir, &err), FL_OK);
    ck_assert_int_eq(fl_moved_check(dir, &err), FL_OK);
}

TEST(a_folder_in_use_or_without_a_whole_backup_is_not_marked)
{
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];
    int lock = -1;

    open_server();
    fl_store_close(server);
    ck_assert_int_eq(fl_fs_lock_dir(dir, &lock, NULL), FL_OK);
    ck_assert_int_eq(move("used", &err), FL_EINUSE);
    ck_assert_int_eq(fl_moved_undo(dir, &err), FL_EINUSE);
    (void)close(lock);
    ck_assert(!fl_fs_exists(rig_path(path, "used")));
    ck_assert_int_eq(fl_models_path(dir, 1, "velocity", path, sizeof(path)), FL_OK);
    ck_assert_int_eq(fl_fs_remove(path), FL_OK);
    ck_assert_int_eq(move("damaged", &err), FL_EFORMAT);
    ck_assert_int_eq(fl_moved_check(dir, &err), FL_OK);
}

/* Returns whether the process was killed, and not done. */
static bool move_killed(unsigned at, bool before, const char *target)
{
    int status = 0;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        killed_at = at;
        killed_before = before;
        _exit(move(target, NULL) == FL_OK ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_ne(WEXITSTATUS(status), 1);
    return WEXITSTATUS(status) == KILLED;
}

TEST_EACH(a_kill_at_any_step_leaves_no_mark_without_a_whole_backup, 2)
{
    char target[16];
    char sums[RIG_PATH_MAX];
    unsigned n_marked = 0;
    unsigned at;
    bool killed = true;

    open_server();
    fl_store_close(server);
    for (at = 1; killed; at++) {
        char name[32];
        bool marked;

        (void)snprintf(target, sizeof(target), "backup-%u", at);
        killed = move_killed(at, _i == 0, target);
        marked = fl_moved_check(dir, NULL) != FL_OK;
        (void)snprintf(name, sizeof(name), "%s/SHA256SUMS", target);
        ck_assert_msg(!marked || fl_fs_exists(rig_path(sums, name)), "killed at %u", at);
        ck_assert_msg(killed || marked, "done at %u without a mark", at);
        n_marked += killed && marked;
        if (marked) {
            ck_assert_int_eq(fl_moved_undo(dir, NULL), FL_OK);
        }
    }
    ck_assert_uint_eq(at - 2, 3); /* BACKUP, SHA256SUMS, moved */
    ck_assert_uint_eq(n_marked, _i == 0 ? 0 : 1);
}

/* --- the first start --- */

static void put_note(const char *words)
{
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(fl_fs_replace(rig_path(path, "restored"), words, strlen(words), false, NULL),
                     FL_OK);
}

/* Each of another restore. */
static void note(void)
{
    static unsigned n;
    char words[128];

    (void)snprintf(words, sizeof(words), "restored from a backup of round 1\n%032u\n", ++n);
    put_note(words);
}

static void carry_out(struct fl_store *store, bool restart_state, struct fl_restored *ret)
{
    struct fl_err err = {0};
    int rv = fl_store_carry_restored(store, restart_state, 3000, ret, &err);

    ck_assert_msg(rv == FL_OK, "%s", err.msg);
}

static struct fl_generation generation_of(struct fl_store *store)
{
    struct fl_generation generation;

    ck_assert_int_eq(fl_store_generation(store, &generation, NULL), FL_OK);
    return generation;
}

TEST(a_restored_folder_has_another_line_whatever_the_other_one_comes_to)
{
    struct fl_store *store;
    struct fl_generation before;
    struct fl_generation here;
    struct fl_generation there;
    struct fl_restored r;

    left_by("fedavg");
    store = open_store();
    before = generation_of(store);
    fl_store_close(store);
    save_folder();
    note();
    store = open_store();
    carry_out(store, false, &r);
    here = generation_of(store);
    fl_store_close(store);
    restore_folder(); /* The same again: numbers alone would be the same too. */
    note();
    store = open_store();
    carry_out(store, false, &r);
    there = generation_of(store);
    fl_store_close(store);
    ck_assert_uint_eq(here.number, before.number + 1);
    ck_assert_int_ne(memcmp(here.tag, before.tag, sizeof(here.tag)), 0);
    ck_assert_int_ne(memcmp(here.tag, there.tag, sizeof(here.tag)), 0);
    ck_assert_int_eq(memcmp(here.kept_tag, before.kept_tag, sizeof(here.kept_tag)), 0);
    free(saved.data);
}

TEST(a_restored_folder_has_the_quarantines_of_its_backup)
{
    struct fl_client_rec c = {.id = 0, .name = "a", .quarantine = "3 offences"};
    struct fl_store *store;
    struct fl_coord_resume resume;
    struct fl_restored r;

    left_by("fedavg");
    store = open_store();
    ck_assert_int_eq(fl_store_put_quarantine(store, &c, 1, NULL), FL_OK);
    fl_store_close(store);
    save_folder();
    store = open_store();
    c.quarantine[0] = '\0';
    ck_assert_int_eq(fl_store_put_quarantine(store, &c, 1, NULL), FL_OK);
    fl_store_close(store);
    restore_folder();
    note();
    store = open_store();
    carry_out(store, false, &r);
    ck_assert_int_eq(fl_store_load(store, &resume, NULL), FL_OK);
    ck_assert_str_eq(resume.clients[0].quarantine, "3 offences");
    fl_store_resume_done(&resume);
    fl_store_close(store);
    free(saved.data);
}

TEST(the_open_attempt_of_a_restored_folder_goes_on_with_what_was_accepted)
{
    struct fl_store *store;
    struct fl_store_entered e;
    struct fl_coord_resume resume;
    struct fl_restored r;

    left_by("fedavg");
    note();
    store = open_store();
    carry_out(store, false, &r);
    ck_assert_str_eq(r.note, "restored from a backup of round 1");
    ck_assert_uint_eq(r.committed, 1);
    ck_assert_uint_eq(r.dropped_round, 0);
    e = enter(store, "fedavg", "0.1");
    ck_assert(!e.new_generation && e.dropped_round == 0);
    ck_assert_int_eq(fl_store_load(store, &resume, NULL), FL_OK);
    ck_assert_uint_eq(resume.open_round, 2);
    ck_assert_uint_eq(resume.open_attempt, 1);
    ck_assert_int_eq((int)resume.parts[0].state, FL_PARTICIPANT_ACCEPTED);
    fl_store_resume_done(&resume);
    ck_assert_str_eq(record(store),
                     "2/2 the state folder: as it was -> restored from a backup of round 1\n");
    fl_store_close(store);
}

TEST(what_server_and_clients_keep_together_begins_anew_in_a_restored_folder)
{
    struct fl_store *store;
    struct fl_generation before;
    struct fl_generation generation;
    struct fl_coord_resume resume;
    struct fl_restored r;

    left_by("scaffold");
    note();
    store = open_store();
    before = generation_of(store);
    carry_out(store, true, &r);
    ck_assert_uint_eq(r.dropped_round, 2);
    ck_assert_uint_eq(r.dropped_updates, 1);
    generation = generation_of(store);
    ck_assert_uint_eq(generation.kept_since, 1);
    ck_assert_int_ne(memcmp(generation.tag, before.tag, sizeof(generation.tag)), 0);
    ck_assert_int_ne(memcmp(generation.kept_tag, before.kept_tag, sizeof(generation.kept_tag)), 0);
    ck_assert_int_eq(fl_store_load(store, &resume, NULL), FL_OK);
    ck_assert_uint_eq(resume.open_round, 0);
    fl_store_resume_done(&resume);
    fl_store_close(store);
}

TEST(a_note_is_carried_out_once)
{
    struct fl_store *store;
    struct fl_restored r;
    struct fl_err err = {0};

    left_by("fedavg");
    store = open_store();
    ck_assert_int_eq(fl_store_carry_restored(store, false, 3000, &r, &err), FL_ENOENT);
    note();
    carry_out(store, false, &r);
    ck_assert_int_eq(fl_store_carry_restored(store, false, 3000, &r, &err), FL_ENOENT);
    fl_store_close(store);
}

/* A kill before the note is removed, or a power loss before that is on the disk. */
TEST_EACH(a_note_that_is_still_there_after_it_was_carried_out_changes_nothing, 2)
{
    static const char once[] =
        "restored from a backup of round 1\n0123456789abcdef0123456789abcdef\n";
    static const char twice[] =
        "restored from a backup of round 1\nf123456789abcdef0123456789abcdef\n";
    struct fl_store *store;
    struct fl_restored r;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];
    struct fl_generation first;
    struct fl_generation generation;

    left_by(_i == 0 ? "fedavg" : "scaffold");
    put_note(once);
    store = open_store();
    carry_out(store, _i == 1, &r);
    first = generation_of(store);
    put_note(once);
    fl_store_close(store);
    store = open_store();
    ck_assert_int_eq(fl_store_carry_restored(store, _i == 1, 4000, &r, &err), FL_ENOENT);
    ck_assert(!fl_fs_exists(rig_path(path, "restored")));
    generation = generation_of(store);
    ck_assert_mem_eq(&generation, &first, sizeof(generation));
    put_note(twice); /* That is another restore. */
    carry_out(store, _i == 1, &r);
    generation = generation_of(store);
    ck_assert_int_ne(memcmp(generation.tag, first.tag, sizeof(generation.tag)), 0);
    fl_store_close(store);
}
