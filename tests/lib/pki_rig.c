#include "tests/lib/pki_rig.h"

#include <check.h>
#include <string.h>

static const char *const hosts[] = {"localhost", "127.0.0.1", "::1"};

struct fl_key *rig_pki_key(void)
{
    struct fl_key *key = NULL;

    ck_assert_int_eq(fl_key_make(&key), FL_OK);
    return key;
}

struct fl_issue rig_pki_issue(const char *federation, enum fl_role role, const char *name,
                              int64_t now, int64_t days)
{
    static uint32_t serial;
    struct fl_issue issue = {.federation = federation,
                             .role = role,
                             .name = name,
                             .not_before = now - 600,
                             .not_after = now + days * RIG_DAY};

    serial++;
    issue.serial[FL_ISSUE_SERIAL - 1] = (uint8_t)serial;
    issue.serial[FL_ISSUE_SERIAL - 2] = (uint8_t)(serial >> 8);
    return issue;
}

struct fl_chain *rig_pki_leaf(const struct rig_pki *pki, const struct fl_key *key,
                              const struct fl_issue *issue)
{
    struct fl_chain *chain = NULL;
    struct fl_err err = {0};

    ck_assert_msg(
        fl_issue_leaf(pki->intermediate, pki->intermediate_key, key, issue, &chain, &err) == FL_OK,
        "%s", err.msg);
    return chain;
}

void rig_pki_make(struct rig_pki *pki, const char *federation, int64_t now)
{
    struct fl_issue root = rig_pki_issue(federation, FL_ROLE_NONE, NULL, now, 3650);
    struct fl_issue intermediate = rig_pki_issue(federation, FL_ROLE_NONE, NULL, now, 730);
    struct fl_issue server = rig_pki_issue(federation, FL_ROLE_SERVER, "server", now, 30);
    struct fl_issue client = rig_pki_issue(federation, FL_ROLE_CLIENT, "edge-001", now, 30);
    struct fl_issue admin = rig_pki_issue(federation, FL_ROLE_ADMIN, "jane", now, 30);
    struct fl_trust_setup setup = {.federation = federation};
    struct fl_err err = {0};

    (void)memset(pki, 0, sizeof(*pki));
    pki->root_key = rig_pki_key();
    pki->intermediate_key = rig_pki_key();
    pki->server_key = rig_pki_key();
    pki->client_key = rig_pki_key();
    pki->admin_key = rig_pki_key();
    ck_assert_msg(fl_issue_root(pki->root_key, &root, &pki->root, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_issue_intermediate(pki->root, pki->root_key, pki->intermediate_key,
                                        &intermediate, &pki->intermediate, &err) == FL_OK,
                  "%s", err.msg);
    server.hosts = hosts;
    server.n_hosts = sizeof(hosts) / sizeof(hosts[0]);
    server.with_root = true;
    pki->server = rig_pki_leaf(pki, pki->server_key, &server);
    pki->client = rig_pki_leaf(pki, pki->client_key, &client);
    pki->admin = rig_pki_leaf(pki, pki->admin_key, &admin);
    setup.roots = pki->root;
    ck_assert_msg(fl_trust_create(&setup, &pki->trust, &err) == FL_OK, "%s", err.msg);
}

void rig_pki_free(struct rig_pki *pki)
{
    fl_key_unref(pki->root_key);
    fl_key_unref(pki->intermediate_key);
    fl_key_unref(pki->server_key);
    fl_key_unref(pki->client_key);
    fl_key_unref(pki->admin_key);
    fl_chain_unref(pki->root);
    fl_chain_unref(pki->intermediate);
    fl_chain_unref(pki->server);
    fl_chain_unref(pki->client);
    fl_chain_unref(pki->admin);
    fl_trust_unref(pki->trust);
    (void)memset(pki, 0, sizeof(*pki));
}
