/*
 * Getting the first and the next certificate: whoever is killed at any call of the disk, or finds
 * it full, has the identity before or the new one, whole, and the same again leads to the new one.
 */

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "tests/lib/identity_rig.h"
#include "tests/lib/suites.h"
#include "tests/lib/wrap_pwrite.h"

/* --- a disk that ends: at the n-th call, for good (a kill) or once (no space) --- */

static long until_end = -1; /* calls that still succeed; -1: all */
static bool for_good;
static long calls;

static bool ends(void)
{
    calls++;
    if (until_end < 0) {
        return false;
    }
    if (until_end > 0) {
        until_end--;
        return false;
    }
    until_end = for_good ? 0 : -1;
    errno = ENOSPC;
    return true;
}

static void end_after(long n, bool kill)
{
    until_end = n;
    for_good = kill;
    calls = 0;
}

static void disk_is_whole(void)
{
    until_end = -1;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t offset);

int __wrap_rename(const char *from, const char *to)
{
    return ends() ? -1 : __real_rename(from, to);
}

int __wrap_unlink(const char *path)
{
    return ends() ? -1 : __real_unlink(path);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    if (access(path, F_OK) == 0) {
        errno = EEXIST;
        return -1;
    }
    return ends() ? -1 : __real_mkdir(path, mode);
}

int __wrap_fsync(int fd)
{
    return ends() ? -1 : __real_fsync(fd);
}

/* Half of it is there. */
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t offset)
{
    if (!ends()) {
        return __real_pwrite(fd, data, len, offset);
    }
    (void)__real_pwrite(fd, data, len / 2, offset);
    errno = ENOSPC;
    return -1;
}

/* --- */

static struct rig_identity rig;

static void setup(void)
{
    rig_identity_setup(&rig);
}

static void teardown(void)
{
    disk_is_whole();
    rig_identity_teardown(&rig);
}

static void joins(void)
{
    struct fl_err err = {0};

    ck_assert_msg(rig_identity_join(&rig, &err) == FL_OK, "%s", err.msg);
}

/* How many roots belong to what is in place. */
static size_t roots_in_place;

/* Serial number and key of what is in place; false: nothing is. Anything else fails the test. */
static bool in_place(struct fl_identity *ret)
{
    struct fl_client_identity identity = {.chain = NULL};
    struct fl_err err = {0};
    int rv = fl_client_identity_load(&rig.files, &identity, &err);

    ck_assert_msg(rv == FL_OK || rv == FL_ENOENT, "%s", err.msg);
    if (rv == FL_OK) {
        *ret = identity.who;
        roots_in_place = fl_chain_len(fl_trust_roots(identity.trust));
    }
    fl_client_identity_done(&identity);
    return rv == FL_OK;
}

static bool same(const struct fl_identity *a, const struct fl_identity *b)
{
    return memcmp(a->key, b->key, sizeof(a->key)) == 0 && a->serial_len == b->serial_len &&
           memcmp(a->serial, b->serial, a->serial_len) == 0;
}

/* --- the invitation --- */

/* Does any file of the folder hold these bytes? */
struct wanted {
    const void *bytes;
    size_t len;
    unsigned files;
    bool found;
};

static int look_for(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct wanted *w = ctx;
    char path[512];
    struct fl_buf file;
    size_t i;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (name[0] == '.' || fl_fs_read(path, 1u << 20, &file, err) != FL_OK) {
        return FL_OK;
    }
    w->files++;
    for (i = 0; i + w->len <= file.len; i++) {
        w->found = w->found || memcmp(file.data + i, w->bytes, w->len) == 0;
    }
    fl_buf_done(&file);
    return FL_OK;
}

static bool is_on_disk(const void *bytes, size_t len)
{
    struct wanted w = {.bytes = bytes, .len = len};

    ck_assert_int_eq(fl_fs_each(rig.dir, look_for, &w, NULL), FL_OK);
    ck_assert_uint_ge(w.files, 2);
    return w.found;
}

static void token_is_nowhere(void)
{
    char line[FL_INVITE_MAX];
    const char *text;

    ck_assert_int_eq(fl_invite_write(line, sizeof(line), &rig.invite, NULL), FL_OK);
    text = strrchr(line, ':') + 1;
    ck_assert(!is_on_disk(rig.invite.token, sizeof(rig.invite.token)));
    ck_assert(!is_on_disk(text, strlen(text)));
    ck_assert(!is_on_disk(text + 4, 8)); /* nor a part of what is secret of it */
}

TEST_CASE("all", setup, teardown);

TEST(the_invitation_is_nowhere_on_the_disk)
{
    struct fl_enrolling *enrolling = NULL;

    ck_assert_int_eq(fl_enrolling_join(rig.dir, &rig.invite, "", &enrolling, NULL), FL_OK);
    token_is_nowhere();
    fl_enrolling_free(enrolling);
    joins();
    token_is_nowhere();
}

static void request_key(struct fl_enrolling *enrolling, uint8_t out[FL_KEY_HASH])
{
    struct fl_key *key = NULL;

    fl_enrolling_free(enrolling);
    ck_assert_int_eq(fl_key_load(rig_identity_path(&rig, "next.key"), &key, NULL), FL_OK);
    fl_key_hash(key, out);
    fl_key_unref(key);
}

TEST(an_invitation_is_used_with_one_key_and_another_with_another)
{
    struct fl_enrolling *enrolling = NULL;
    uint8_t first[FL_KEY_HASH];
    uint8_t again[FL_KEY_HASH];
    uint8_t other[FL_KEY_HASH];

    ck_assert_int_eq(fl_enrolling_join(rig.dir, &rig.invite, "", &enrolling, NULL), FL_OK);
    request_key(enrolling, first);
    ck_assert_int_eq(fl_enrolling_join(rig.dir, &rig.invite, "", &enrolling, NULL), FL_OK);
    request_key(enrolling, again);
    rig_identity_invite(&rig);
    ck_assert_int_eq(fl_enrolling_join(rig.dir, &rig.invite, "", &enrolling, NULL), FL_OK);
    request_key(enrolling, other);
    ck_assert_mem_eq(first, again, sizeof(first));
    ck_assert_mem_ne(first, other, sizeof(first));
}

TEST(a_line_that_was_used_brings_the_same_certificate_again)
{
    struct fl_identity before;
    struct fl_identity after;

    joins();
    ck_assert(in_place(&before));
    joins();
    ck_assert(in_place(&after));
    ck_assert(same(&before, &after));
    ck_assert_uint_eq(rig.issued, 1);
}

TEST(a_new_invitation_takes_the_place_of_an_identity_with_a_new_key)
{
    struct fl_identity before;
    struct fl_identity after;

    joins();
    ck_assert(in_place(&before));
    rig_identity_invite(&rig);
    joins();
    ck_assert(in_place(&after));
    ck_assert_mem_ne(before.key, after.key, sizeof(before.key));
}

TEST(two_processes_do_not_join_at_once)
{
    struct fl_enrolling *first = NULL;
    struct fl_enrolling *second = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_enrolling_join(rig.dir, &rig.invite, "", &first, NULL), FL_OK);
    ck_assert_int_eq(fl_enrolling_join(rig.dir, &rig.invite, "", &second, &err), FL_EINUSE);
    ck_assert_ptr_nonnull(strstr(err.msg, rig.dir));
    fl_enrolling_free(first);
}

/* --- replies --- */

static struct fl_enrolling *begin(const char *name)
{
    struct fl_enrolling *enrolling = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_enrolling_join(rig.dir, &rig.invite, name, &enrolling, &err) == FL_OK, "%s",
                  err.msg);
    return enrolling;
}

/* The reply is refused, says why, and changes nothing. */
static void refuses(struct fl_enrolling *enrolling, const char *why)
{
    struct fl_identity before;
    struct fl_identity after;
    struct fl_err err = {0};
    bool had = in_place(&before);

    ck_assert_int_eq(fl_enrolling_done(enrolling,
                                       &(struct fl_enrolling_reply){&rig.chain, &rig.roots, 0},
                                       RIG_PKI_NOW, NULL, &err),
                     FL_EPROTO);
    ck_assert_msg(strstr(err.msg, why) != NULL, "no '%s' in: %s", why, err.msg);
    ck_assert_int_eq(in_place(&after), had);
    ck_assert(!had || same(&before, &after));
    fl_enrolling_free(enrolling);
}

TEST(a_reply_for_another_name_is_refused)
{
    struct fl_enrolling *enrolling = begin("edge-002");
    struct fl_issue issue = rig_identity_issue(&rig);

    rig_identity_answer(&rig, enrolling, &issue, rig.pki.root);
    refuses(enrolling, "expected a certificate for 'edge-002', found one for 'edge-001'");
}

TEST(a_certificate_that_has_not_begun_does_not_take_the_place_of_the_one_before)
{
    static const int64_t ahead = INT64_C(40) * 86400;
    struct fl_issue issue = rig_identity_issue(&rig);
    struct fl_client_identity identity = {.chain = NULL};
    struct fl_enrolling *enrolling = NULL;
    struct fl_enrolling_reply reply = {&rig.chain, &rig.roots, RIG_PKI_NOW + ahead};
    struct fl_identity before;
    struct fl_identity after;
    struct fl_err err = {0};

    joins();
    ck_assert(in_place(&before));
    issue.not_before += ahead;
    issue.not_after += ahead;
    ck_assert_int_eq(fl_client_identity_load(&rig.files, &identity, NULL), FL_OK);
    ck_assert_int_eq(fl_enrolling_renew(rig.dir, &identity, &enrolling, NULL), FL_OK);
    rig_identity_answer(&rig, enrolling, &issue, rig.pki.root);
    ck_assert_int_eq(fl_enrolling_done(enrolling, &reply, RIG_PKI_NOW, NULL, &err), FL_EAGAIN);
    ck_assert_msg(
        strstr(err.msg, "is not valid before 2026-12-30 18:05:00Z, 39 days from now (this host's "
                        "clock: 2026-11-20 18:15:00Z, the server's: 2026-12-30 18:15:00Z)") != NULL,
        "%s", err.msg);
    ck_assert(in_place(&after));
    ck_assert(same(&before, &after));
    /* From its first second on it is good. */
    ck_assert_int_eq(fl_enrolling_done(enrolling, &reply, issue.not_before, NULL, &err), FL_OK);
    fl_enrolling_free(enrolling);
    fl_client_identity_done(&identity);
}

TEST(a_reply_for_another_key_is_refused)
{
    struct fl_enrolling *enrolling;

    joins(); /* whose reply lies in the rig */
    rig_identity_invite(&rig);
    enrolling = begin("");
    refuses(enrolling, "key");
}

TEST(a_reply_of_another_federation_is_refused)
{
    struct fl_enrolling *enrolling = begin("");
    struct fl_issue issue =
        rig_pki_issue("other", FL_ROLE_CLIENT, "edge-001", RIG_PKI_NOW, /* days= */ 30);

    rig_identity_answer(&rig, enrolling, &issue, rig.pki.root);
    refuses(enrolling, "fl://demo/client/NAME");
}

TEST(a_reply_for_another_role_is_refused)
{
    struct fl_enrolling *enrolling = begin("");
    struct fl_issue issue = rig_pki_issue("demo", FL_ROLE_ADMIN, "edge-001", RIG_PKI_NOW, 30);

    rig_identity_answer(&rig, enrolling, &issue, rig.pki.root);
    refuses(enrolling, "role");
}

TEST(roots_without_the_one_of_the_invitation_are_refused)
{
    struct fl_enrolling *enrolling = begin("");
    struct fl_issue issue = rig_identity_issue(&rig);
    struct rig_pki other;

    rig_pki_make(&other, "demo", RIG_PKI_NOW);
    rig_identity_answer(&rig, enrolling, &issue, other.root);
    refuses(enrolling, "the root named in the invitation");
    rig_pki_free(&other);
}

TEST(an_empty_reply_is_refused)
{
    struct fl_enrolling *enrolling = begin("");

    refuses(enrolling, "found 0");
}

/* --- renewing --- */

TEST(every_certificate_has_a_key_of_its_own)
{
    struct fl_identity before;
    struct fl_identity after;
    struct fl_err err = {0};

    joins();
    ck_assert(in_place(&before));
    ck_assert_msg(rig_identity_renew(&rig, &err) == FL_OK, "%s", err.msg);
    ck_assert(in_place(&after));
    ck_assert_mem_ne(before.key, after.key, sizeof(before.key));
    ck_assert(!fl_fs_exists(rig_identity_path(&rig, "next.key")));
    ck_assert(!fl_fs_exists(rig_identity_path(&rig, "next-roots.pem")));
}

TEST(a_renewal_does_not_use_the_key_of_an_invitation_that_was_never_answered)
{
    struct fl_enrolling *enrolling = NULL;
    uint8_t of_invitation[FL_KEY_HASH];
    struct fl_identity after;
    struct fl_err err = {0};

    joins();
    rig_identity_invite(&rig);
    ck_assert_int_eq(fl_enrolling_join(rig.dir, &rig.invite, "", &enrolling, NULL), FL_OK);
    request_key(enrolling, of_invitation);
    ck_assert_msg(rig_identity_renew(&rig, &err) == FL_OK, "%s", err.msg);
    ck_assert(in_place(&after));
    ck_assert_mem_ne(after.key, of_invitation, sizeof(of_invitation));
}

TEST(roots_come_with_the_certificate)
{
    struct fl_client_identity identity = {.chain = NULL};
    struct fl_enrolling *enrolling = NULL;
    struct fl_issue issue = rig_identity_issue(&rig);
    struct fl_chain *both = NULL;
    struct rig_pki other;

    joins();
    rig_pki_make(&other, "demo", RIG_PKI_NOW);
    ck_assert_int_eq(fl_chain_join(rig.pki.root, other.root, &both), FL_OK);
    ck_assert_int_eq(fl_client_identity_load(&rig.files, &identity, NULL), FL_OK);
    ck_assert_int_eq(fl_enrolling_renew(rig.dir, &identity, &enrolling, NULL), FL_OK);
    rig_identity_answer(&rig, enrolling, &issue, both);
    ck_assert_int_eq(fl_enrolling_done(enrolling,
                                       &(struct fl_enrolling_reply){&rig.chain, &rig.roots, 0},
                                       RIG_PKI_NOW, NULL, NULL),
                     FL_OK);
    fl_enrolling_free(enrolling);
    fl_client_identity_done(&identity);
    ck_assert_int_eq(fl_client_identity_load(&rig.files, &identity, NULL), FL_OK);
    ck_assert_uint_eq(fl_chain_len(fl_trust_roots(identity.trust)), 2);
    ck_assert_int_eq(fl_trust_verify(identity.trust,
                                     &(struct fl_claim){.chain = other.server,
                                                        .purpose = FL_ROLE_SERVER,
                                                        .host = "localhost",
                                                        .now = RIG_PKI_NOW},
                                     &identity.who, NULL, NULL),
                     FL_OK);
    fl_client_identity_done(&identity);
    fl_chain_unref(both);
    rig_pki_free(&other);
}

/* --- kills and full disks --- */

/* How many calls of the disk `act` makes. */
static long count_calls(int (*act)(struct rig_identity *, struct fl_err *))
{
    struct fl_err err = {0};

    calls = 0;
    ck_assert_msg(act(&rig, &err) == FL_OK, "%s", err.msg);
    return calls;
}

/* The server's next reply brings another root too. */
static void tell_two_roots(void)
{
    struct fl_issue issue = rig_pki_issue("demo", FL_ROLE_NONE, NULL, RIG_PKI_NOW, 3650);
    struct fl_key *key = rig_pki_key();
    struct fl_chain *other = NULL;

    ck_assert_int_eq(fl_issue_root(key, &issue, &other, NULL), FL_OK);
    ck_assert_int_eq(fl_chain_join(rig.pki.root, other, &rig.told), FL_OK);
    fl_chain_unref(other);
    fl_key_unref(key);
}

static void again(bool have_first)
{
    rig_identity_teardown(&rig);
    rig_identity_setup(&rig);
    if (have_first) {
        joins();
        rig_identity_invite(&rig);
    }
    tell_two_roots();
}

/*
 * `act` ends at each of its calls. What is in place then is what was before or what came; the same
 * once more leads to the new one. `joins_again`: with the same invitation and the one key.
 */
static void ends_anywhere(int (*act)(struct rig_identity *, struct fl_err *), bool have_first,
                          bool kill, bool joins_again)
{
    unsigned old_ones = 0;
    unsigned new_ones = 0;
    long n;
    long i;

    again(have_first);
    n = count_calls(act);
    ck_assert_int_gt(n, 10);
    for (i = 0; i < n; i++) {
        struct fl_identity before;
        struct fl_identity between;
        struct fl_identity after;
        struct fl_err err = {0};
        bool had;
        bool has;

        again(have_first);
        had = in_place(&before);
        end_after(i, kill);
        (void)act(&rig, &err);
        disk_is_whole();
        has = in_place(&between);
        ck_assert_msg(has || !had, "call %ld left nothing", i);
        if (!has || (had && same(&before, &between))) {
            old_ones++;
            ck_assert(!has || roots_in_place == 1);
        } else {
            new_ones++;
            ck_assert_uint_eq(roots_in_place, 2);
        }
        ck_assert_int_eq(fl_client_identity_settle(rig.dir, NULL), FL_OK);
        ck_assert_int_eq(in_place(&after), has);
        ck_assert(!has || same(&between, &after));

        err = (struct fl_err){0};
        ck_assert_msg(act(&rig, &err) == FL_OK, "after call %ld: %s", i, err.msg);
        ck_assert(in_place(&after));
        ck_assert(!had || !same(&before, &after));
        ck_assert_uint_eq(roots_in_place, 2);
        ck_assert(!fl_fs_exists(rig_identity_path(&rig, "next.key")));
        if (joins_again) {
            ck_assert_uint_eq(rig.issued, have_first ? 2 : 1);
        }
    }
    ck_assert_uint_gt(old_ones, 3);
    ck_assert_uint_gt(new_ones, 3);
}

TEST(a_kill_anywhere_while_joining_leaves_none_or_the_whole)
{
    ends_anywhere(rig_identity_join, /* have_first= */ false, /* kill= */ true, true);
}

TEST(a_kill_anywhere_while_joining_again_leaves_the_old_or_the_new_one)
{
    ends_anywhere(rig_identity_join, /* have_first= */ true, /* kill= */ true, true);
}

TEST(a_kill_anywhere_while_renewing_leaves_the_old_or_the_new_one)
{
    ends_anywhere(rig_identity_renew, /* have_first= */ true, /* kill= */ true, false);
}

TEST(a_full_disk_anywhere_while_joining_leaves_none_or_the_whole)
{
    ends_anywhere(rig_identity_join, /* have_first= */ false, /* kill= */ false, true);
}

TEST(a_full_disk_anywhere_while_renewing_leaves_the_old_or_the_new_one)
{
    ends_anywhere(rig_identity_renew, /* have_first= */ true, /* kill= */ false, false);
}

TEST(a_full_disk_is_named)
{
    struct fl_err err = {0};

    ck_assert_int_eq(mkdir(rig.dir, 0700), 0);
    end_after(1, /* kill= */ true); /* After the lock. */
    ck_assert_int_eq(rig_identity_join(&rig, &err), FL_ENOSPC);
    ck_assert_msg(strstr(err.msg, rig.dir) != NULL && strstr(err.msg, "space") != NULL, "%s",
                  err.msg);
}
