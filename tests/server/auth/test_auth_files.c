/*
 * Files of an operator's own PKI that change under a running server. A client finds out over TLS
 * which certificate it presents.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/clock.h"
#include "server/auth/auth.h"
#include "server/daemon/serverd_conf.h"
#include "tests/lib/folder.h"
#include "tests/lib/pki_rig.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlstalk.h"

static char dir[FOLDER_PATH];
static char path[3][FOLDER_PATH + 16]; /* certificate, key, roots */
enum { CERTIFICATE, KEY, ROOTS };

static struct rig_pki pki;
static struct fl_key *second_key;
static struct fl_chain *second;
static struct fl_serverd_conf *own;
static struct fl_loop *net;
static struct fl_auth *guard;
static struct fl_log log_of_it;
static struct tlsrig rig; /* the filters of both sides, no more */
static char said[2000];

static void on_line(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    size_t len = strlen(said);

    (void)ctx;
    (void)level;
    (void)component;
    (void)snprintf(said + len, sizeof(said) - len, "%s\n", text);
}

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

    ck_assert(folder_make("fl-look", dir));
    for (i = 0; i < 3; i++) {
        (void)snprintf(path[i], sizeof(path[i]), "%s/%s", dir, names[i]);
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

static void load_conf(void)
{
    struct fl_err err = {0};
    char name[FOLDER_PATH + 16];
    FILE *yaml;

    (void)snprintf(name, sizeof(name), "%s/server.yaml", dir);
    yaml = fopen(name, "w");
    ck_assert_ptr_nonnull(yaml);
    (void)fprintf(yaml,
                  "federation: guarded\nstate_dir: %s/state\nlisten: [\"127.0.0.1:7443\"]\n"
                  "rounds: 1\nmodel: {preset: mlr60}\n"
                  "tls: {certificate: %s, key: %s, ca: [%s]}\n",
                  dir, path[CERTIFICATE], path[KEY], path[ROOTS]);
    ck_assert_int_eq(fclose(yaml), 0);
    ck_assert_msg(fl_serverd_conf_load(name, NULL, &own, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(mkdir(own->state_dir, 0700), 0);
}

static void setup(void)
{
    struct fl_err err = {0};
    struct fl_auth_setup auth;

    make_files();
    load_conf();
    log_of_it = (struct fl_log){.level = FL_LOG_NOTICE, .sink = on_line};
    auth =
        (struct fl_auth_setup){.conf = own->conf, .state_dir = own->state_dir, .log = &log_of_it};
    said[0] = '\0';
    ck_assert_int_eq(fl_loop_create(&net, NULL), FL_OK);
    ck_assert_msg(fl_auth_create(&auth, net, NULL, NULL, &guard, &err) == FL_OK, "%s", err.msg);
    rig.filter[TLSRIG_SERVER] = *fl_auth_filter(guard);
}

static void teardown(void)
{
    fl_auth_close(guard);
    fl_loop_free(net);
    fl_auth_free(guard);
    fl_serverd_conf_free(own);
    fl_chain_unref(second);
    fl_key_unref(second_key);
    rig_pki_free(&pki);
    folder_remove(dir);
}

static void stop_loop(void *arg)
{
    fl_loop_stop(arg);
}

static void nothing(struct fl_authority *authority, void *arg)
{
    (void)authority;
    (void)arg;
}

static void look(bool all)
{
    said[0] = '\0';
    fl_auth_look(guard, all);
    ck_assert_int_eq(fl_auth_submit(guard, nothing, stop_loop, net), FL_OK);
    fl_loop_run(net);
}

static bool is_shown(const struct fl_chain *chain)
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
    rig.filter[TLSRIG_CLIENT] = fl_tls_filter(client);
    fl_chain_info(chain, 0, &info);
    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_run(&talk);
    ck_assert_msg(talk.client->stream != NULL, "%s", talk.client->text);
    found = fl_chain_find_key(fl_tls_peer_chain(talk.client->stream), 0, info.key);
    tlstalk_end(&talk);
    fl_tls_unref(client);
    return found == 0;
}

static const char taken_up[] = "certificates reloaded for new connections";

TEST_CASE("files", setup, teardown);

TEST(a_new_certificate_is_shown_after_a_look)
{
    ck_assert(is_shown(pki.server));
    put_pair(second, second_key);
    ck_assert(is_shown(pki.server));
    look(false);
    ck_assert(is_shown(second));
    ck_assert_ptr_nonnull(strstr(said, taken_up));
}

TEST(files_that_are_as_they_were_are_read_only_when_all_are_wanted)
{
    look(false);
    ck_assert_str_eq(said, "");
    look(true);
    ck_assert_ptr_nonnull(strstr(said, taken_up));
    ck_assert(is_shown(pki.server));
}

static void break_it(int how)
{
    struct fl_buf pem;

    fl_buf_init(&pem, FL_CHAIN_FILE_MAX);
    ck_assert_int_eq(fl_chain_pem(second, &pem), FL_OK);
    if (how == 0) {
        put(CERTIFICATE, "no certificate\n", 15);
    } else if (how == 1) {
        put(CERTIFICATE, (const char *)pem.data, 300); /* in the middle of it */
    } else if (how == 2) {
        put(CERTIFICATE, (const char *)pem.data, pem.len); /* whose key is another */
    } else {
        ck_assert_int_eq(remove(path[how - 3]), 0);
    }
    fl_buf_done(&pem);
}

/* And it is said once for each change, not at every look. */
TEST_EACH(a_file_that_is_broken_or_gone_leaves_what_was_in_force, 6)
{
    static const int names[] = {CERTIFICATE, CERTIFICATE, CERTIFICATE, CERTIFICATE, KEY, ROOTS};

    break_it(_i);
    look(false);
    ck_assert(is_shown(pki.server));
    ck_assert_msg(strstr(said, "reading certificates failed, keeping the previous ones") != NULL,
                  "%s", said);
    ck_assert_msg(strstr(said, path[names[_i]]) != NULL, "%s", said);
    look(false);
    ck_assert_str_eq(said, "");
    put_pair(second, second_key);
    ck_assert_int_eq(fl_chain_save(pki.root, path[ROOTS], /* sync= */ false, NULL), FL_OK);
    look(false);
    ck_assert_ptr_nonnull(strstr(said, taken_up));
    ck_assert(is_shown(second));
}
