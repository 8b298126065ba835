/* What an authority has on its disk: made, renewed, changed, and whatever stops it half way. */
#include <check.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "server/identity/authority_impl.h"
#include "tests/lib/authority_rig.h"
#include "tests/lib/suites.h"

static struct rig r;

/* --- death at the n-th rename: files of an authority come into their place by these only --- */

static int renames_left = -1; /* -1: no end */

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
    if (renames_left == 0) {
        errno = EIO;
        return -1;
    }
    renames_left -= renames_left > 0;
    return __real_rename(from, to);
}

static void setup(void)
{
    rig_begin(&r, 2);
}

static void teardown(void)
{
    renames_left = -1;
    rig_end(&r);
}

/* --- files --- */

static void read_file(const char *name, struct fl_buf *ret)
{
    char path[256];

    ck_assert_int_eq(fl_fs_read(authority_rig_path(&r, name, path), 1 << 20, ret, NULL), FL_OK);
}

static bool same_file(const char *name, const struct fl_buf *before)
{
    struct fl_buf now;
    bool same;

    read_file(name, &now);
    same = now.len == before->len && memcmp(now.data, before->data, now.len) == 0;
    fl_buf_done(&now);
    return same;
}

static const char *const all[] = {"root.pem",         "root.key",   "intermediate.pem",
                                  "intermediate.key", "server.pem", "server.key"};

static void keep_files(struct fl_buf kept[6])
{
    size_t i;

    for (i = 0; i < 6; i++) {
        read_file(all[i], &kept[i]);
    }
}

/* Which of them changed, as bits; and forget them. */
static unsigned changed(struct fl_buf kept[6])
{
    unsigned bits = 0;
    size_t i;

    for (i = 0; i < 6; i++) {
        bits |= same_file(all[i], &kept[i]) ? 0 : 1u << i;
        fl_buf_done(&kept[i]);
    }
    return bits;
}

static void move(const char *from, const char *to)
{
    char a[256];
    char b[256];

    ck_assert_int_eq(__real_rename(authority_rig_path(&r, from, a), authority_rig_path(&r, to, b)),
                     0);
}

static struct fl_cert_info first_of(const char *name)
{
    struct fl_cert_info info;
    struct fl_chain *chain = NULL;
    char path[256];

    ck_assert_int_eq(fl_chain_load(authority_rig_path(&r, name, path), &chain, NULL), FL_OK);
    fl_chain_info(chain, 0, &info);
    fl_chain_unref(chain);
    return info;
}

static bool there(const char *name)
{
    char path[256];

    return fl_fs_exists(authority_rig_path(&r, name, path));
}

TEST_CASE("files", setup, teardown);

TEST(init_makes_what_is_missing_for_its_user_alone_and_is_as_good_twice_as_once)
{
    struct fl_buf kept[6];
    struct stat st;
    char path[256];
    size_t i;

    ck_assert_int_eq(fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err), FL_ENOENT);
    rig_says(&r, "fl-serverd --init");
    authority_rig_init(&r);
    ck_assert_int_eq(stat(authority_rig_path(&r, "", path), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    for (i = 0; i < 6; i++) {
        ck_assert_int_eq(stat(authority_rig_path(&r, all[i], path), &st), 0);
        ck_assert_uint_eq(st.st_mode & (fl_str_ends_with(path, ".key") ? 0177 : 022), 0);
    }
    ck_assert_int_eq(stat(authority_rig_path(&r, "identity.db", path), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    rig_close(&r);
    keep_files(kept);
    r.now_ms += 60 * 1000;
    authority_rig_init(&r);
    ck_assert_uint_eq(changed(kept), 0);
}

TEST(a_server_that_runs_does_not_keep_the_roots_key_in_memory)
{
    authority_rig_init(&r);
    ck_assert_ptr_null(r.a->files.root_key);
    ck_assert_ptr_nonnull(r.a->files.intermediate_key);
    r.now_ms += 2 * 3600 * 1000;
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    ck_assert_ptr_null(r.a->files.root_key);
}

TEST(another_name_of_the_server_makes_its_certificate_anew_and_nothing_else)
{
    static const char *const more[] = {"fl.example.org", "10.77.0.1", "fl2.example.org"};
    struct fl_buf kept[6];
    bool did = false;

    authority_rig_init(&r);
    keep_files(kept);
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, &did, &r.err), FL_OK);
    ck_assert(!did);
    r.conf.hosts = more;
    r.conf.n_hosts = 3;
    ck_assert_int_eq(fl_authority_init(&r.conf, r.now_ms, &r.err), FL_OK);
    ck_assert_uint_eq(changed(kept), 1u << 4);
}

TEST(the_servers_certificate_is_renewed_by_itself_at_two_thirds)
{
    struct fl_cert_info before;
    struct fl_cert_info after;
    bool did = false;
    int day;

    authority_rig_init(&r);
    before = first_of("server.pem");
    ck_assert(fl_authority_due(r.a, r.now_ms + 3600 * 1000));
    for (day = 0; day < 21 && !did; day++) {
        r.now_ms += RIG_DAY_MS;
        ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, &did, &r.err), FL_OK);
    }
    ck_assert_int_eq(day, 20);
    after = first_of("server.pem");
    ck_assert_str_ne(before.serial_text, after.serial_text);
    ck_assert_mem_eq(before.key, after.key, sizeof(before.key));
    ck_assert_int_eq(after.not_after, r.now_ms / 1000 + 30 * 86400);
}

TEST(a_folder_of_somebody_else_is_refused_with_both_names)
{
    char path[256];

    if (geteuid() != 0) {
        return; /* only root can give a folder away */
    }
    authority_rig_init(&r);
    rig_close(&r);
    ck_assert_int_eq(chown(authority_rig_path(&r, "", path), 65534, 65534), 0);
    ck_assert_int_eq(fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err), FL_EPERM);
    rig_says(&r, "belongs to 'nobody'");
    rig_says(&r, "this process runs as 'root'");
    ck_assert_int_eq(fl_authority_init(&r.conf, r.now_ms, &r.err), FL_EPERM);
    ck_assert_int_eq(chown(path, 0, 0), 0);
    ck_assert_int_eq(chown(r.dir, 65534, 65534), 0);
    ck_assert_int_eq(fl_authority_init(&r.conf, r.now_ms, &r.err), FL_EPERM);
    rig_says(&r, "belongs to 'nobody'");
}

TEST(a_folder_or_a_key_that_others_may_read_is_refused)
{
    char path[256];

    authority_rig_init(&r);
    rig_close(&r);
    ck_assert_int_eq(chmod(authority_rig_path(&r, "", path), 0750), 0);
    ck_assert_int_eq(fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err), FL_EPERM);
    rig_says(&r, "chmod 700");
    ck_assert_int_eq(chmod(path, 0700), 0);
    ck_assert_int_eq(chmod(authority_rig_path(&r, "intermediate.key", path), 0640), 0);
    ck_assert_int_eq(fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err), FL_EPERM);
    rig_says(&r, "intermediate.key");
}

TEST(the_folder_of_another_federation_is_refused_with_both_names)
{
    authority_rig_init(&r);
    rig_close(&r);
    r.conf.federation = "letters";
    ck_assert_int_eq(fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err), FL_ESTATE);
    rig_says(&r, "'digits'");
    rig_says(&r, "'letters'");
}

TEST(a_federation_has_no_name_that_programs_take_for_an_option)
{
    r.conf.federation = "-digits";
    ck_assert_int_eq(fl_authority_init(&r.conf, r.now_ms, &r.err), FL_ECONF);
    rig_says(&r, "not starting with a dot or '-'");
}

TEST(a_database_of_a_newer_program_is_refused_with_both_versions)
{
    char path[256];
    sqlite3 *db = NULL;

    authority_rig_init(&r);
    rig_close(&r);
    ck_assert_int_eq(sqlite3_open(authority_rig_path(&r, "identity.db", path), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "INSERT INTO migration (version, applied_ms) VALUES (77, 1)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_int_eq(fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err), FL_EVERSION);
    rig_says(&r, "schema version 77, this program knows up to 1");
}

TEST(a_revocation_that_a_bit_was_turned_in_stops_the_start)
{
    struct fl_revoked whom = {.name = "edge-001"};
    char path[256];
    sqlite3 *db = NULL;

    authority_rig_init(&r);
    ck_assert_int_eq(fl_authority_revoke(r.a, &whom, "", "root", r.now_ms, NULL, &r.err), FL_OK);
    rig_close(&r);
    ck_assert_int_eq(sqlite3_open(authority_rig_path(&r, "identity.db", path), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "UPDATE revocation SET verb = 4", NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_int_eq(fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err), FL_EFORMAT);
    rig_says(&r, "'revocation' is not what was written");
}

TEST(while_another_process_changes_the_files_what_is_in_use_stays_and_is_looked_at_soon)
{
    struct fl_chain *shown;
    char path[256];
    int lock = -1;

    authority_rig_init(&r);
    shown = fl_authority_chain(r.a);
    r.now_ms += 25 * RIG_DAY_MS;
    ck_assert_int_eq(fl_fs_lock_dir(authority_rig_path(&r, "", path), &lock, &r.err), FL_OK);
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_EINUSE);
    ck_assert_ptr_eq(fl_authority_chain(r.a), shown);
    ck_assert(fl_authority_due(r.a, r.now_ms + 300 * 1000));
    ck_assert_int_eq(close(lock), 0);
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    ck_assert_ptr_ne(fl_authority_chain(r.a), shown);
}

static void *give_lock_up(void *lock)
{
    const struct timespec moment = {.tv_nsec = 200 * 1000000L};

    (void)nanosleep(&moment, NULL);
    (void)close(*(int *)lock);
    return NULL;
}

TEST(init_waits_for_a_server_that_is_looking_at_the_files)
{
    pthread_t server;
    char path[256];
    int lock = -1;

    authority_rig_init(&r);
    ck_assert_int_eq(fl_fs_lock_dir(authority_rig_path(&r, "", path), &lock, &r.err), FL_OK);
    ck_assert_int_eq(pthread_create(&server, NULL, give_lock_up, &lock), 0);
    ck_assert_int_eq(fl_authority_renew_root(&r.conf, r.now_ms, &r.err), FL_OK);
    ck_assert_int_eq(pthread_join(server, NULL), 0);
}

TEST(what_a_clock_made_that_was_years_ahead_is_mended_by_init)
{
    int64_t right = r.now_ms;

    r.now_ms += 1000 * RIG_DAY_MS;
    authority_rig_init(&r);
    rig_close(&r);
    r.now_ms = right;
    ck_assert_int_ne(fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err), FL_OK);
    rig_says(&r, "2026-11-22");
    rig_says(&r, "2029-08-18");
    authority_rig_init(&r);
    ck_assert_int_eq(first_of("server.pem").not_before, right / 1000 - 600);
    rig_close(&r);
    /* The server's own certificate by itself, as the one above it vouches for the clock. */
    r.now_ms = right + 100 * RIG_DAY_MS;
    rig_open(&r);
    rig_close(&r);
    r.now_ms = right + 3600 * 1000;
    rig_open(&r);
    ck_assert_int_eq(first_of("server.pem").not_before, r.now_ms / 1000 - 600);
}

TEST(a_server_that_ran_with_a_clock_ahead_looks_again_when_it_is_set_back)
{
    int64_t right = r.now_ms;

    authority_rig_init(&r);
    ck_assert(!fl_authority_due(r.a, r.now_ms));
    r.now_ms += 300 * RIG_DAY_MS;
    ck_assert(fl_authority_due(r.a, r.now_ms));
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    ck_assert(!fl_authority_due(r.a, r.now_ms));
    r.now_ms = right + 60 * 1000;
    ck_assert(fl_authority_due(r.a, r.now_ms));
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    ck_assert_int_eq(first_of("server.pem").not_before, r.now_ms / 1000 - 600);
    ck_assert(!fl_authority_due(r.a, r.now_ms));
}

/* --- the root --- */

static struct fl_chain *joined_chain(const char *name, struct fl_key **ret)
{
    struct fl_invite in;

    *ret = rig_key();
    rig_invite(&r, name, 0, &in);
    ck_assert_msg(rig_join(&r, &in, *ret, "", NULL) == FL_OK, "%s", r.err.msg);
    return fl_chain_ref(r.joined.chain);
}

static bool believed(const struct fl_chain *chain, struct fl_identity *who)
{
    return fl_trust_verify(fl_authority_trust(r.a),
                           &(struct fl_claim){
                               .chain = chain, .purpose = FL_ROLE_CLIENT, .now = r.now_ms / 1000},
                           who, NULL, &r.err) == FL_OK;
}

/* A client that knows these roots only: does it believe the server? */
static bool believes(const struct fl_chain *roots)
{
    struct fl_trust_setup setup = {.roots = roots, .federation = "digits"};
    struct fl_trust *trust = NULL;
    struct fl_identity who;
    int rv;

    ck_assert_int_eq(fl_trust_create(&setup, &trust, &r.err), FL_OK);
    rv = fl_trust_verify(trust,
                         &(struct fl_claim){.chain = fl_authority_chain(r.a),
                                            .purpose = FL_ROLE_SERVER,
                                            .host = "10.77.0.1",
                                            .now = r.now_ms / 1000},
                         &who, NULL, &r.err);
    fl_trust_unref(trust);
    return rv == FL_OK;
}

TEST_CASE("root", setup, teardown);

TEST(without_the_roots_key_all_goes_on_and_weeks_before_the_end_it_is_said_what_to_do)
{
    struct fl_key *key = NULL;
    struct fl_chain *chain;
    struct fl_cert_info before;
    struct fl_cert_info after;
    int day;

    authority_rig_init(&r);
    rig_close(&r);
    move("root.key", "../stick.key");
    authority_rig_init(&r);
    fl_chain_unref(joined_chain("edge-001", &key));
    fl_key_unref(key);
    before = first_of("intermediate.pem");
    rig_quiet(&r);
    for (day = 0; day < 486; day++) {
        r.now_ms += RIG_DAY_MS;
        ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    }
    ck_assert_ptr_null(strstr(r.said, "key of the root"));
    r.now_ms += RIG_DAY_MS;
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    rig_said(&r, "the intermediate certificate of federation 'digits' expires: valid until 2028-");
    rig_said(&r, "root.key'");
    rig_said(&r, "fl-serverd --init");
    /* Once a day. */
    rig_quiet(&r);
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms + 3600 * 1000, NULL, &r.err), FL_OK);
    ck_assert_str_eq(r.said, "");
    chain = joined_chain("edge-002", &key);
    move("../stick.key", "root.key");
    rig_quiet(&r);
    ck_assert_int_eq(fl_authority_init(&r.conf, r.now_ms, &r.err), FL_OK);
    rig_said(&r, "created an intermediate certificate");
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    after = first_of("intermediate.pem");
    ck_assert_mem_eq(before.key, after.key, sizeof(before.key));
    ck_assert(after.not_after > before.not_after);
    ck_assert(believed(chain, &(struct fl_identity){0}));
    fl_chain_unref(chain);
    fl_key_unref(key);
}

TEST(a_missing_intermediate_without_the_roots_key_says_what_is_needed)
{
    authority_rig_init(&r);
    rig_close(&r);
    move("root.key", "../stick.key");
    move("intermediate.pem", "../i.pem");
    ck_assert_int_eq(fl_authority_init(&r.conf, r.now_ms, &r.err), FL_ENOENT);
    rig_says(&r, "root.key' does not exist");
    rig_says(&r, "identity.root_key");
    ck_assert_int_eq(fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err), FL_ENOENT);
    rig_says(&r, "intermediate.pem");
    /* No second root beside what the first one signed. */
    move("root.pem", "../root.pem");
    move("../i.pem", "intermediate.pem");
    ck_assert_int_eq(fl_authority_init(&r.conf, r.now_ms, &r.err), FL_EFORMAT);
    rig_says(&r, "from a backup");
}

TEST(a_root_that_is_renewed_keeps_its_key_and_so_the_pin)
{
    struct fl_key *key = NULL;
    struct fl_invite in;
    struct fl_chain *old_roots;
    struct fl_chain *chain;
    struct fl_cert_info before;
    struct fl_cert_info after;

    r.conf.spans = (struct fl_authority_spans){.root = 90 * 86400,
                                               .intermediate = 60 * 86400,
                                               .leaf = 10 * 86400,
                                               .grace = 20 * 86400,
                                               .token = 86400,
                                               .back_date = 600};
    authority_rig_init(&r);
    before = first_of("root.pem");
    chain = joined_chain("edge-001", &key);
    old_roots = fl_chain_ref(r.joined.roots);
    r.now_ms += 61 * RIG_DAY_MS;
    rig_close(&r);
    rig_open(&r);
    after = first_of("root.pem");
    ck_assert_mem_eq(before.key, after.key, sizeof(before.key));
    ck_assert_str_ne(before.serial_text, after.serial_text);
    ck_assert(believes(old_roots));
    rig_invite(&r, "edge-002", 0, &in);
    ck_assert_mem_eq(in.pin, before.key, sizeof(in.pin));
    fl_chain_unref(chain);
    fl_chain_unref(old_roots);
    fl_key_unref(key);
}

TEST(with_another_root_nobody_is_lost_who_was_there_in_time)
{
    struct fl_cert_info old = {0};
    struct fl_cert_info now;
    struct fl_key *key = NULL;
    struct fl_key *next = NULL;
    struct fl_chain *chain;
    struct fl_chain *roots;
    struct fl_chain *before; /* what a client knew that was not there since */
    struct fl_identity who;
    struct fl_invite in;
    int day;

    authority_rig_init(&r);
    rig_close(&r);
    move("root.key", "../lost.key"); /* not needed */
    rig_open(&r);
    old = first_of("root.pem");
    chain = joined_chain("edge-001", &key);
    before = fl_chain_ref(r.joined.roots);
    ck_assert_uint_eq(fl_chain_len(before), 1);
    ck_assert_int_eq(fl_authority_renew_root(&r.conf, r.now_ms, &r.err), FL_OK);
    ck_assert_int_eq(fl_authority_renew_root(&r.conf, r.now_ms + 1000, &r.err), FL_OK);
    move("next-root.key", "../next.key"); /* the new one may go offline at once */
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    /* A year; renewed every 20 days: who is there sees no gap. */
    roots = fl_chain_ref(before);
    for (day = 0; day < 365; day++) {
        r.now_ms += RIG_DAY_MS;
        ck_assert_msg(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err) == FL_OK, "day %d: %s", day,
                      r.err.msg);
        ck_assert_msg(believes(roots), "day %d: %s", day, r.err.msg);
        ck_assert_msg(believed(chain, &who), "day %d: %s", day, r.err.msg);
        if (day < 89) {
            ck_assert(believes(before)); /* even who was off for all of the time */
        }
        if (day % 20 == 19) {
            ck_assert(believed(chain, &who));
            next = rig_key();
            ck_assert_msg(rig_renew(&r, &who, next) == FL_OK, "day %d: %s", day, r.err.msg);
            fl_key_unref(key);
            key = next;
            fl_chain_unref(chain);
            fl_chain_unref(roots);
            chain = fl_chain_ref(r.joined.chain);
            roots = fl_chain_ref(r.joined.roots);
        }
    }
    now = first_of("root.pem");
    ck_assert_mem_ne(old.key, now.key, sizeof(old.key));
    ck_assert_uint_eq(fl_chain_len(roots), 1);
    ck_assert(!believes(before));
    rig_invite(&r, "edge-002", 0, &in);
    ck_assert_mem_eq(in.pin, now.key, sizeof(in.pin));
    ck_assert(!there("next-root.pem") && !there("next-intermediate.pem"));
    fl_chain_unref(chain);
    fl_chain_unref(roots);
    fl_chain_unref(before);
    fl_key_unref(key);
}

static int ends_at(void *ctx, size_t i, const struct fl_invited *invited)
{
    (void)i;
    *(int64_t *)ctx = invited->ends_ms;
    return FL_OK;
}

TEST(an_invitation_ends_with_the_pin_that_it_names)
{
    struct fl_invitation in = {.name = "edge-001", .valid_ms = 200 * RIG_DAY_MS};
    const struct fl_invitations one = {.list = &in, .n = 1, .by = "ops"};
    int64_t ends = 0;

    authority_rig_init(&r);
    ck_assert_int_eq(fl_authority_invite(r.a, &one, r.now_ms, ends_at, &ends, &r.err), FL_OK);
    ck_assert_int_eq(ends, r.now_ms + 200 * RIG_DAY_MS);
    ck_assert_int_eq(fl_authority_renew_root(&r.conf, r.now_ms, &r.err), FL_OK);
    ck_assert_int_eq(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err), FL_OK);
    in.name = "edge-002";
    ck_assert_int_eq(fl_authority_invite(r.a, &one, r.now_ms, ends_at, &ends, &r.err), FL_OK);
    ck_assert_int_eq(ends, r.now_ms + 90 * RIG_DAY_MS);
}

/* --- what stops it half way --- */

TEST_CASE("halfway", setup, teardown);

TEST(whoever_is_killed_at_any_file_goes_on_at_the_next_call)
{
    int n;
    bool done = false;

    for (n = 0; !done; n++) {
        struct fl_key *key = NULL;

        ck_assert_int_lt(n, 30);
        renames_left = n;
        done = fl_authority_init(&r.conf, r.now_ms, &r.err) == FL_OK;
        renames_left = -1;
        authority_rig_init(&r);
        fl_chain_unref(joined_chain("edge-001", &key));
        fl_key_unref(key);
        rig_end(&r);
        rig_begin(&r, (uint64_t)n);
    }
    ck_assert_int_eq(n, 7); /* six files, and the run that makes all */
}

TEST(whoever_is_killed_while_the_root_changes_goes_on_at_the_next_call)
{
    int n;
    bool begun = false;
    bool done = false;

    for (n = 0; !done; n++) {
        struct fl_key *key = NULL;
        struct fl_chain *chain;
        struct fl_chain *known;

        ck_assert_int_lt(n, 30);
        authority_rig_init(&r);
        chain = joined_chain("edge-001", &key);
        known = fl_chain_ref(r.joined.roots);
        renames_left = begun ? -1 : n;
        begun = fl_authority_renew_root(&r.conf, r.now_ms, &r.err) == FL_OK;
        renames_left = -1;
        ck_assert_int_eq(fl_authority_renew_root(&r.conf, r.now_ms, &r.err), FL_OK);
        rig_close(&r);
        rig_open(&r);
        ck_assert(believes(known) && believed(chain, &(struct fl_identity){0}));
        /* The day of the change, and a death at one of its steps. */
        r.now_ms += 90 * RIG_DAY_MS + 1000;
        renames_left = n;
        done = fl_authority_refresh(r.a, r.now_ms, NULL, &r.err) == FL_OK && begun;
        renames_left = -1;
        rig_close(&r);
        rig_open(&r);
        ck_assert_uint_eq(fl_chain_len(fl_trust_roots(fl_authority_trust(r.a))), 2);
        ck_assert(!there("next-root.pem") && !there("next-root.key") && there("root.key"));
        ck_assert(!believed(chain, &(struct fl_identity){0})); /* over, and its grace with it */
        fl_chain_unref(chain);
        fl_key_unref(key);
        chain = joined_chain("edge-002", &key);
        ck_assert(believed(chain, &(struct fl_identity){0}));
        ck_assert(believes(r.joined.roots));
        fl_chain_unref(chain);
        fl_chain_unref(known);
        fl_key_unref(key);
        rig_end(&r);
        rig_begin(&r, (uint64_t)n);
    }
}

/* In a process of its own, in which no file may be larger than `limit`. */
static int limited(rlim_t limit, int (*what)(void))
{
    int status = 0;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct rlimit rl = {limit, limit};

        (void)sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
        (void)setrlimit(RLIMIT_FSIZE, &rl);
        _exit(-what());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static int init_once(void)
{
    return fl_authority_init(&r.conf, r.now_ms, &r.err);
}

/* Of a file of shared memory that cannot be made, SQLite says no more than FL_EIO. */
static bool is_full(int rv)
{
    return rv == FL_ENOSPC || rv == FL_EIO;
}

static struct fl_invite join_line;
static struct fl_key *join_key;

static int join_once(void)
{
    struct rig own = r;

    own.conf.random_ctx = &own;
    own.conf.say_ctx = &own;
    if (fl_authority_open(&own.conf, own.now_ms, &own.a, &own.err) != FL_OK) {
        return own.err.code;
    }
    return rig_join(&own, &join_line, join_key, "", NULL);
}

TEST(a_full_disk_leaves_nothing_half)
{
    static const rlim_t limits[] = {0, 100, 250, 700, 900, 1300, 1800, 4096, 20000, 60000};
    size_t failed = 0;
    size_t i;

    for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        int rv = limited(limits[i], init_once);

        ck_assert_msg(rv == FL_OK || is_full(rv), "limit %lu: %s", (unsigned long)limits[i],
                      fl_strerror(rv));
        failed += rv != FL_OK;
        authority_rig_init(&r);
        rig_invite(&r, "edge-001", 0, &join_line);
        rig_close(&r);
        join_key = rig_key();
        rv = limited(limits[i], join_once);
        ck_assert_msg(rv == FL_OK || is_full(rv), "limit %lu: %s", (unsigned long)limits[i],
                      fl_strerror(rv));
        failed += rv != FL_OK;
        rig_open(&r);
        ck_assert_int_eq(rig_join(&r, &join_line, join_key, "", NULL), FL_OK);
        ck_assert_int_eq(r.joined.again, rv == FL_OK);
        fl_key_unref(join_key);
        rig_end(&r);
        rig_begin(&r, i);
    }
    ck_assert_uint_ge(failed, 10);
}
