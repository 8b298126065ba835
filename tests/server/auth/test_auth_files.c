/*
 * Files of an operator's own PKI that change under a running server. A client finds out over TLS
 * which certificate it presents.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/clock.h"
#include "tests/lib/auth_rig.h"
#include "tests/lib/pki_rig.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlstalk.h"

static char path[3][FOLDER_PATH + 16]; /* certificate, key, roots */
enum { CERTIFICATE, KEY, ROOTS };

static struct auth_rig rig;
static struct rig_pki pki;
static struct fl_key *second_key;
static struct fl_chain *second;
static struct tlsrig tls; /* only the filters of both sides are used */

static int64_t now_s(void *ctx)
{
    (void)ctx;
    return (int64_t)(fl_clock_wall_ms() / 1000);
}

/* A file of another inode each time, as operators' tools and our own write theirs. */
static void put(int which, const char *text, size_t len)
{
    char other[FOLDER_PATH + 32];
    FILE *file;

    (void)snprintf(other, sizeof(other), "%s.new", path[which]);
    file = fopen(other, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(other, 0600), 0);
    ck_assert_int_eq(rename(other, path[which]), 0);
}

static void put_pair(const struct fl_chain *chain, const struct fl_key *key)
{
    ck_assert_int_eq(fl_key_save(key, path[KEY], /* sync= */ false, NULL), FL_OK);
    ck_assert_int_eq(fl_chain_save(chain, path[CERTIFICATE], /* sync= */ false, NULL), FL_OK);
}

static void make_files(void)
{
    static const char *const names[] = {"server.pem", "server.key", "roots.pem"};
    static const char *hosts[] = {"localhost"};
    struct fl_issue issue;
    size_t i;

    for (i = 0; i < 3; i++) {
        (void)snprintf(path[i], sizeof(path[i]), "%s/%s", rig.dir, names[i]);
    }
    rig_pki_make(&pki, "guarded", now_s(NULL));
    second_key = rig_pki_key();
    issue = rig_pki_issue("guarded", FL_ROLE_SERVER, "second", now_s(NULL), 30);
    issue.hosts = hosts;
    issue.n_hosts = 1;
    second = rig_pki_leaf(&pki, second_key, &issue);
    put_pair(pki.server, pki.server_key);
    ck_assert_int_eq(fl_chain_save(pki.root, path[ROOTS], /* sync= */ false, NULL), FL_OK);
}

static void setup(void)
{
    char line[4 * sizeof(path[0])];

    auth_rig_folder(&rig);
    make_files();
    (void)snprintf(line, sizeof(line), "tls: {certificate: %s, key: %s, ca: [%s]}",
                   path[CERTIFICATE], path[KEY], path[ROOTS]);
    auth_rig_conf(&rig, line);
    ck_assert_int_eq(mkdir(rig.conf->state_dir, 0700), 0);
    auth_rig_open(&rig, NULL);
    rig.lines[0] = '\0';
    tls.filter[TLSRIG_SERVER] = *fl_auth_filter(rig.auth);
}

static void teardown(void)
{
    auth_rig_done(&rig);
    fl_chain_unref(second);
    fl_key_unref(second_key);
    rig_pki_free(&pki);
}

static bool is_presented(const struct fl_chain *chain)
{
    const struct fl_tls_setup setup = {.trust = pki.trust,
                                       .chain = pki.client,
                                       .key = pki.client_key,
                                       .host = "localhost",
                                       .now = now_s};
    struct fl_tls *client = NULL; /* A new one each time: it resumes no session. */
    struct tlstalk talk;
    struct fl_cert_info info;
    int found;

    ck_assert_int_eq(fl_tls_create(&setup, &client, NULL), FL_OK);
    tls.filter[TLSRIG_CLIENT] = fl_tls_filter(client);
    fl_chain_info(chain, 0, &info);
    tlstalk_begin(&talk, &tls, true, true);
    tlstalk_run(&talk);
    ck_assert_msg(talk.client->stream != NULL, "%s", talk.client->text);
    found = fl_chain_find_key(fl_tls_peer_chain(talk.client->stream), 0, info.key);
    tlstalk_end(&talk);
    fl_tls_unref(client);
    return found == 0;
}

static const char reloaded[] = "certificates reloaded for new connections";

TEST_CASE("files", setup, teardown);

TEST(a_new_certificate_is_presented_after_a_look)
{
    ck_assert(is_presented(pki.server));
    put_pair(second, second_key);
    ck_assert(is_presented(pki.server));
    auth_rig_look(&rig, false);
    ck_assert(is_presented(second));
    ck_assert_ptr_nonnull(strstr(rig.lines, reloaded));
}

TEST(unchanged_files_are_reloaded_only_when_all_are_requested)
{
    auth_rig_look(&rig, false);
    ck_assert_str_eq(rig.lines, "");
    auth_rig_look(&rig, true);
    ck_assert_ptr_nonnull(strstr(rig.lines, reloaded));
    ck_assert(is_presented(pki.server));
}

static void break_it(int how)
{
    struct fl_buf pem;

    fl_buf_init(&pem, FL_CHAIN_FILE_MAX);
    ck_assert_int_eq(fl_chain_pem(second, &pem), FL_OK);
    if (how == 0) {
        put(CERTIFICATE, "no certificate\n", 15);
    } else if (how == 1) {
        put(CERTIFICATE, (const char *)pem.data, 300); /* cut */
    } else if (how == 2) {
        put(CERTIFICATE, (const char *)pem.data, pem.len); /* of another key */
    } else {
        ck_assert_int_eq(remove(path[how - 3]), 0);
    }
    fl_buf_done(&pem);
}

/* A failure is logged once for each change, not at every look. */
TEST_EACH(a_broken_or_missing_file_keeps_the_previous_certificates, 6)
{
    static const int names[] = {CERTIFICATE, CERTIFICATE, CERTIFICATE, CERTIFICATE, KEY, ROOTS};

    break_it(_i);
    auth_rig_look(&rig, false);
    ck_assert(is_presented(pki.server));
    ck_assert_msg(strstr(rig.lines, "reading certificates failed, keeping the previous ones") !=
                      NULL,
                  "%s", rig.lines);
    ck_assert_msg(strstr(rig.lines, path[names[_i]]) != NULL, "%s", rig.lines);
    auth_rig_look(&rig, false);
    ck_assert_str_eq(rig.lines, "");
    put_pair(second, second_key);
    ck_assert_int_eq(fl_chain_save(pki.root, path[ROOTS], /* sync= */ false, NULL), FL_OK);
    auth_rig_look(&rig, false);
    ck_assert_ptr_nonnull(strstr(rig.lines, reloaded));
    ck_assert(is_presented(second));
}
