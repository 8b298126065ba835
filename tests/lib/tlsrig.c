#include "tests/lib/tlsrig.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static unsigned serial;

static struct fl_issue issue_of(const char *federation, int64_t not_before, int64_t not_after)
{
    struct fl_issue issue = {
        .federation = federation, .not_before = not_before, .not_after = not_after};

    serial++;
    (void)memcpy(issue.serial + sizeof(issue.serial) - sizeof(serial), &serial, sizeof(serial));
    return issue;
}

void tlsrig_make_ca(struct tlsrig_ca *ca, const char *federation)
{
    struct fl_issue issue =
        issue_of(federation, TLSRIG_NOW - 1800 * TLSRIG_DAY, TLSRIG_NOW + 1800 * TLSRIG_DAY);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_key_make(&ca->root_key), FL_OK);
    ck_assert_int_eq(fl_key_make(&ca->key), FL_OK);
    ck_assert_msg(fl_issue_root(ca->root_key, &issue, &ca->root, &err) == FL_OK, "%s", err.msg);
    issue = issue_of(federation, issue.not_before, issue.not_after);
    ck_assert_msg(
        fl_issue_intermediate(ca->root, ca->root_key, ca->key, &issue, &ca->chain, &err) == FL_OK,
        "%s", err.msg);
    ca->trust = tlsrig_trust(ca->root, 0);
}

void tlsrig_free_ca(struct tlsrig_ca *ca)
{
    fl_key_unref(ca->root_key);
    fl_key_unref(ca->key);
    fl_chain_unref(ca->root);
    fl_chain_unref(ca->chain);
    fl_trust_unref(ca->trust);
}

struct fl_trust *tlsrig_trust(const struct fl_chain *root, int64_t grace_s)
{
    struct fl_trust_setup setup = {.roots = root, .federation = "fed", .grace_s = grace_s};
    struct fl_trust *trust = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_trust_create(&setup, &trust, &err) == FL_OK, "%s", err.msg);
    return trust;
}

struct fl_chain *tlsrig_leaf(const struct tlsrig_ca *ca, const struct fl_key *key,
                             const struct tlsrig_leaf *leaf)
{
    struct fl_issue issue = issue_of(leaf->federation != NULL ? leaf->federation : "fed",
                                     leaf->not_before, leaf->not_after);
    const char *hosts[] = {leaf->host, "127.0.0.1"};
    struct fl_chain *chain = NULL;
    struct fl_err err = {0};

    issue.role = leaf->role;
    issue.name = leaf->name;
    if (leaf->role == FL_ROLE_SERVER) {
        issue.hosts = hosts;
        issue.n_hosts = 2;
        issue.with_root = true;
    }
    ck_assert_msg(fl_issue_leaf(ca->chain, ca->key, key, &issue, &chain, &err) == FL_OK, "%s",
                  err.msg);
    return chain;
}

static int64_t now(void *ctx)
{
    return *(const int64_t *)ctx;
}

static void note(struct tlsrig *rig, int side, const char *peer, const char *reason,
                 const char *text)
{
    rig->notices[side]++;
    ck_assert_ptr_nonnull(reason);
    rig->reason[side] = reason;
    (void)snprintf(rig->notice[side], sizeof(rig->notice[side]), "%s", text);
    (void)snprintf(rig->notice_peer[side], sizeof(rig->notice_peer[side]), "%s", peer);
    ck_assert_ptr_null(strchr(text, '\n'));
}

static void note_client(void *ctx, const char *peer, const char *reason, const char *text)
{
    note(ctx, TLSRIG_CLIENT, peer, reason, text);
}

static void note_server(void *ctx, const char *peer, const char *reason, const char *text)
{
    note(ctx, TLSRIG_SERVER, peer, reason, text);
}

struct fl_tls_setup tlsrig_setup(struct tlsrig *rig, int side)
{
    return (struct fl_tls_setup){.server = side == TLSRIG_SERVER,
                                 .chain = rig->chain[side],
                                 .key = rig->key[side],
                                 .trust = rig->ca.trust,
                                 .ask = side == TLSRIG_SERVER,
                                 .host = side == TLSRIG_CLIENT ? TLSRIG_HOST : NULL,
                                 .now = now,
                                 .now_ctx = &rig->now,
                                 .notice = side == TLSRIG_SERVER ? note_server : note_client,
                                 .notice_ctx = rig};
}

void tlsrig_replace(struct tlsrig *rig, int side, const struct fl_tls_setup *setup)
{
    struct fl_err err = {0};

    fl_tls_unref(rig->tls[side]);
    rig->tls[side] = NULL;
    ck_assert_msg(fl_tls_create(setup, &rig->tls[side], &err) == FL_OK, "%s", err.msg);
    rig->filter[side] = fl_tls_filter(rig->tls[side]);
}

void tlsrig_begin(struct tlsrig *rig)
{
    const struct tlsrig_leaf leaf[2] = {
        {FL_ROLE_CLIENT, "edge-001", NULL, TLSRIG_NOW - TLSRIG_DAY, TLSRIG_NOW + 30 * TLSRIG_DAY,
         NULL},
        {FL_ROLE_SERVER, "main", TLSRIG_HOST, TLSRIG_NOW - TLSRIG_DAY, TLSRIG_NOW + 30 * TLSRIG_DAY,
         NULL},
    };
    int i;

    *rig = (struct tlsrig){.now = TLSRIG_NOW};
    tlsrig_make_ca(&rig->ca, "fed");
    for (i = 0; i < 2; i++) {
        struct fl_tls_setup setup;

        ck_assert_int_eq(fl_key_make(&rig->key[i]), FL_OK);
        rig->chain[i] = tlsrig_leaf(&rig->ca, rig->key[i], &leaf[i]);
        setup = tlsrig_setup(rig, i);
        tlsrig_replace(rig, i, &setup);
    }
}

void tlsrig_renew(struct tlsrig *rig, int side, struct fl_chain *chain, struct fl_trust *trust)
{
    struct fl_err err = {0};

    if (chain != NULL) {
        fl_chain_unref(rig->chain[side]);
        rig->chain[side] = fl_chain_ref(chain);
    }
    ck_assert_msg(fl_tls_renew(rig->tls[side], rig->chain[side], rig->key[side],
                               trust != NULL ? trust : rig->ca.trust, &err) == FL_OK,
                  "%s", err.msg);
}

void tlsrig_end(struct tlsrig *rig)
{
    int i;

    for (i = 0; i < 2; i++) {
        fl_tls_unref(rig->tls[i]);
        fl_chain_unref(rig->chain[i]);
        fl_key_unref(rig->key[i]);
    }
    tlsrig_free_ca(&rig->ca);
}
