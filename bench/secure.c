#include "bench/secure.h"

#include "bench/peers.h"
#include "libfl/base/clock.h"
#include "libfl/pki/issue.h"

#define DAY_S INT64_C(86400)
#define HOST  "127.0.0.1"

static struct fl_key *root_key, *ca_key, *server_key, *client_key;
static struct fl_chain *root, *ca, *server_chain, *client_chain;
static struct fl_trust *trust;

static int64_t now(void *ctx)
{
    (void)ctx;
    return (int64_t)(fl_clock_wall_ms() / 1000);
}

static struct fl_issue issue(uint8_t serial)
{
    return (struct fl_issue){.federation = "bench",
                             .not_before = now(NULL) - DAY_S,
                             .not_after = now(NULL) + 30 * DAY_S,
                             .serial = {serial}};
}

static void make_leaf(enum fl_role role, const char *name, uint8_t serial, struct fl_key **key,
                      struct fl_chain **chain)
{
    const char *hosts[] = {HOST};
    struct fl_issue leaf = issue(serial);
    struct fl_err err = {0};

    must(fl_key_make(key), "key");
    leaf.role = role;
    leaf.name = name;
    if (role == FL_ROLE_SERVER) {
        leaf.hosts = hosts;
        leaf.n_hosts = 1;
        leaf.with_root = true;
    }
    must_err(fl_issue_leaf(ca, ca_key, *key, &leaf, chain, &err), &err);
}

static struct fl_tls *make_client(bool nameless)
{
    const struct fl_tls_setup setup = {.chain = nameless ? NULL : client_chain,
                                       .key = nameless ? NULL : client_key,
                                       .trust = trust,
                                       .host = HOST,
                                       .now = now};
    struct fl_tls *tls = NULL;
    struct fl_err err = {0};

    must_err(fl_tls_create(&setup, &tls, &err), &err);
    return tls;
}

void secure_make(struct secure *secure)
{
    struct fl_tls_setup server = {.server = true, .ask = true, .now = now};
    struct fl_trust_setup believe = {.federation = "bench"};
    struct fl_issue of = issue(1);
    struct fl_err err = {0};

    must(fl_key_make(&root_key), "key");
    must(fl_key_make(&ca_key), "key");
    must_err(fl_issue_root(root_key, &of, &root, &err), &err);
    of = issue(2);
    must_err(fl_issue_intermediate(root, root_key, ca_key, &of, &ca, &err), &err);
    make_leaf(FL_ROLE_SERVER, "server", 3, &server_key, &server_chain);
    make_leaf(FL_ROLE_CLIENT, "edge-001", 4, &client_key, &client_chain);
    believe.roots = root;
    must_err(fl_trust_create(&believe, &trust, &err), &err);
    server.chain = server_chain;
    server.key = server_key;
    server.trust = trust;
    must_err(fl_tls_create(&server, &secure->server, &err), &err);
    secure->client = make_client(false);
    secure->nameless = make_client(true);
    secure->server_filter = fl_tls_filter(secure->server);
    secure->client_filter = fl_tls_filter(secure->client);
}

void secure_free(struct secure *secure)
{
    fl_tls_unref(secure->server);
    fl_tls_unref(secure->client);
    fl_tls_unref(secure->nameless);
    fl_trust_unref(trust);
    fl_chain_unref(client_chain);
    fl_chain_unref(server_chain);
    fl_chain_unref(ca);
    fl_chain_unref(root);
    fl_key_unref(client_key);
    fl_key_unref(server_key);
    fl_key_unref(ca_key);
    fl_key_unref(root_key);
}
