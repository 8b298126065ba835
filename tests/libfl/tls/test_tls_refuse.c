#include <check.h>
#include <string.h>

#include "libfl/tls/tls_impl.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlstalk.h"

static struct tlsrig rig;
static struct tlsrig_ca other;
static struct tlstalk talk;

static void begin(void)
{
    tlsrig_begin(&rig);
    tlsrig_make_ca(&other, "other");
}

static void end(void)
{
    tlsrig_free_ca(&other);
    tlsrig_end(&rig);
}

/* --- certificates --- */

struct refusal {
    const char *what;
    int refused; /* whose certificate */
    struct tlsrig_leaf leaf;
    bool other_ca;
    int64_t clock;     /* seconds that both clocks differ from the rig's */
    const char *found; /* in the text of the side that refuses */
    const char *told;  /* in the text of the other */
};

#define CLIENT_LEAF(from, to)                                                          \
    {                                                                                  \
        FL_ROLE_CLIENT, "edge-001", NULL, TLSRIG_NOW + (from), TLSRIG_NOW + (to), NULL \
    }
#define SERVER_LEAF(host, from, to)                                                \
    {                                                                              \
        FL_ROLE_SERVER, "main", host, TLSRIG_NOW + (from), TLSRIG_NOW + (to), NULL \
    }

static const struct refusal refusals[] = {
    {"a client of another federation", TLSRIG_CLIENT, CLIENT_LEAF(-100, 100), true, 0, "edge-001",
     "does not trust the issuer of our certificate"},
    {"a client whose certificate is over", TLSRIG_CLIENT, CLIENT_LEAF(-100, -10), false, 0,
     "2027-01-15", "certificate has expired or is not valid yet"},
    {"a client from the future", TLSRIG_CLIENT, CLIENT_LEAF(1000, 2000), false, 0, "2027-01-15",
     "compare the clocks"},
    {"a server's certificate used by a client", TLSRIG_CLIENT, SERVER_LEAF("a.b", -100, 100), false,
     0, "client", "a client's certificate is needed"},
    {"a server of another federation", TLSRIG_SERVER, SERVER_LEAF(TLSRIG_HOST, -100, 100), true, 0,
     "main", "does not trust the issuer of our certificate"},
    {"a server whose certificate is over", TLSRIG_SERVER, SERVER_LEAF(TLSRIG_HOST, -100, -10),
     false, 0, "2027-01-15", "certificate has expired or is not valid yet"},
    {"a server from the future", TLSRIG_SERVER, SERVER_LEAF(TLSRIG_HOST, 1000, 2000), false, 0,
     "2027-01-15", "compare the clocks"},
    {"a server of another name", TLSRIG_SERVER, SERVER_LEAF("elsewhere.example.org", -100, 100),
     false, 0, TLSRIG_HOST, "not the one it expected"},
    {"a client's certificate used by a server", TLSRIG_SERVER, CLIENT_LEAF(-100, 100), false, 0,
     "server", "a server's certificate is needed"},
    {"clocks that are years off", TLSRIG_SERVER, SERVER_LEAF(TLSRIG_HOST, -100, 100), false,
     -5 * 365 * TLSRIG_DAY, "2022-01", "compare the clocks"},
};

TEST_CASE("certificates", begin, end);

TEST_EACH(a_refused_certificate_is_named_with_its_reason_on_both_sides, ARRAY_LEN(refusals))
{
    const struct refusal *r = &refusals[_i];
    int side = r->refused;
    struct fl_chain *chain = tlsrig_leaf(r->other_ca ? &other : &rig.ca, rig.key[side], &r->leaf);
    struct end *refuser;
    struct end *refused;
    char peer[80];

    tlsrig_renew(&rig, side, chain, NULL);
    rig.now += r->clock;
    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_run(&talk);
    refuser = side == TLSRIG_CLIENT ? talk.server : talk.client;
    refused = side == TLSRIG_CLIENT ? talk.client : talk.server;
    ck_assert_uint_eq(refuser->closed, 1);
    ck_assert_uint_eq(refused->closed, 1);
    ck_assert_msg(refuser->code == FL_EPERM, "%s: %d %s", r->what, refuser->code, refuser->text);
    ck_assert_msg(refused->code == FL_EPERM, "%s: %d %s", r->what, refused->code, refused->text);
    ck_assert_msg(strstr(refuser->text, r->found) != NULL, "%s: %s", r->what, refuser->text);
    ck_assert_msg(strstr(refused->text, r->told) != NULL, "%s: %s", r->what, refused->text);
    /* One line on each side, the same as the text but for the peer, which stands in front there. */
    ck_assert_uint_eq(rig.notices[0], 1);
    ck_assert_uint_eq(rig.notices[1], 1);
    (void)snprintf(peer, sizeof(peer), "%s: ", rig.notice_peer[!side]);
    ck_assert_int_eq(strncmp(refuser->text, peer, strlen(peer)), 0);
    ck_assert_int_eq(strncmp(refuser->text + strlen(peer), rig.notice[!side], 200), 0);
    ck_assert_uint_eq(talk.server->in_len, 0);
    tlstalk_end(&talk);
    fl_chain_unref(chain);
}

TEST(a_client_without_a_certificate_is_let_in_as_nobody)
{
    struct fl_tls_setup setup = tlsrig_setup(&rig, TLSRIG_CLIENT);

    setup.chain = NULL;
    setup.key = NULL;
    tlsrig_replace(&rig, TLSRIG_CLIENT, &setup);
    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_send(talk.client, "hello", 5);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.server->in_len, 5);
    ck_assert_int_eq((int)fl_stream_identity(talk.server->stream)->kind, (int)FL_IDENTITY_NONE);
    ck_assert_ptr_null(fl_tls_peer_chain(talk.server->stream));
    tlstalk_end(&talk);
}

TEST(a_client_within_the_grace_is_lapsed)
{
    struct fl_trust *trust = tlsrig_trust(rig.ca.root, 60 * TLSRIG_DAY);
    struct fl_tls_setup setup = tlsrig_setup(&rig, TLSRIG_SERVER);
    struct fl_chain *chain =
        tlsrig_leaf(&rig.ca, rig.key[TLSRIG_SERVER],
                    &(struct tlsrig_leaf){FL_ROLE_SERVER, "main", TLSRIG_HOST, TLSRIG_NOW - 1,
                                          TLSRIG_NOW + 100 * TLSRIG_DAY, NULL});

    setup.trust = trust;
    tlsrig_replace(&rig, TLSRIG_SERVER, &setup);
    tlsrig_renew(&rig, TLSRIG_SERVER, chain, trust);
    rig.now += 31 * TLSRIG_DAY;
    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_run(&talk);
    tlstalk_check_up(&talk);
    ck_assert(fl_stream_identity(talk.server->stream)->lapsed);
    tlstalk_end(&talk);
    fl_trust_unref(trust);
    fl_chain_unref(chain);
}

static void set_pin(const struct tlsrig_ca *ca, const char *federation)
{
    struct fl_tls_setup setup = tlsrig_setup(&rig, TLSRIG_CLIENT);
    uint8_t pin[FL_KEY_HASH];

    fl_key_hash(ca->root_key, pin);
    setup.chain = NULL;
    setup.key = NULL;
    setup.trust = NULL;
    setup.pin = pin;
    setup.federation = federation;
    tlsrig_replace(&rig, TLSRIG_CLIENT, &setup);
}

TEST_EACH(who_joins_believes_the_root_of_the_invitation_alone, 2)
{
    set_pin(_i == 0 ? &rig.ca : &other, _i == 0 ? "fed" : "other");
    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_run(&talk);
    if (_i == 0) {
        const struct fl_chain *chain = fl_tls_peer_chain(talk.client->stream);
        uint8_t pin[FL_KEY_HASH];

        fl_key_hash(rig.ca.root_key, pin);
        ck_assert_int_gt(fl_chain_find_key(chain, 0, pin), 0);
    } else {
        ck_assert_int_eq(talk.client->code, FL_EPERM);
        ck_assert_int_eq(talk.server->code, FL_EPERM);
    }
    tlstalk_end(&talk);
}

/* --- who speaks no TLS --- */

static const struct {
    int to;
    const char *bytes;
    size_t len;
    const char *text;
    bool lasting; /* until somebody changes a configuration */
} strangers[] = {
    {MEMLINK_SERVER, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24, "speaks HTTP/2 without TLS", false},
    {MEMLINK_SERVER, "GET / HTTP/1.1\r\n\r\n", 18, "HTTP/1 without TLS", false},
    {MEMLINK_SERVER, "SSH-2.0-OpenSSH\r\n", 17, "speaks no TLS", false},
    {MEMLINK_SERVER, "\x80\x2e\x01\x03\x01", 5, "speaks no TLS", false},
    {MEMLINK_CLIENT, "\0\0\x12\x04\0\0\0\0\0", 9, "`insecure`", true},
    {MEMLINK_CLIENT, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, "another service", false},
    {MEMLINK_CLIENT, "SSH-2.0-OpenSSH\r\n", 17, "another service", false},
    {MEMLINK_CLIENT, "\x15\x03\x03\0\x02\x02\x46", 7, "does not support TLS 1.3", false},
    {MEMLINK_CLIENT, "\x15\x03\x03\0\x02\x02\x78", 7, "not HTTP/2", false},
    {MEMLINK_CLIENT, "\x15\x03\x03\0\x02\x02\x74", 7, "fl-clientd --join", true},
};

TEST_CASE("strangers", begin, end);

TEST_EACH(who_speaks_no_tls_is_recognised, ARRAY_LEN(strangers))
{
    static const uint8_t alert[] = {0x15, 3, 3, 0, 2, 2, 70};
    bool to_server = strangers[_i].to == MEMLINK_SERVER;
    struct end *end;

    tlstalk_begin(&talk, &rig, !to_server, to_server);
    memlink_inject(&talk.link, strangers[_i].to, strangers[_i].bytes, strangers[_i].len);
    tlstalk_run(&talk);
    end = to_server ? talk.server : talk.client;
    talk.link.end[!strangers[_i].to].finished = true;
    if (to_server) {
        /* It is told so, in the only words that TLS has. */
        ck_assert_uint_eq(talk.link.end[MEMLINK_SERVER].sent, sizeof(alert));
        ck_assert_mem_eq(talk.link.end[MEMLINK_SERVER].wire, alert, sizeof(alert));
    }
    tlstalk_run(&talk);
    ck_assert_uint_eq(end->closed, 1);
    ck_assert_int_eq(end->code, strangers[_i].lasting ? FL_EPERM : FL_EPROTO);
    ck_assert_msg(strstr(end->text, strangers[_i].text) != NULL, "%s", end->text);
    tlstalk_end(&talk);
}

TEST(a_server_that_heard_nothing_says_nothing)
{
    tlstalk_begin(&talk, &rig, false, true);
    tlstalk_run(&talk);
    talk.link.end[MEMLINK_CLIENT].finished = true;
    tlstalk_run(&talk);
    ck_assert_int_eq(talk.server->code, FL_OK);
    tlstalk_end(&talk);
}

/* --- another TLS than ours, spoken by the library itself --- */

struct foreigner {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out;
};

static void foreign(struct foreigner *f, int version, const char *alpn)
{
    f->ctx = SSL_CTX_new(TLS_client_method());
    ck_assert_ptr_nonnull(f->ctx);
    ck_assert_int_eq(SSL_CTX_set_max_proto_version(f->ctx, version), 1);
    if (alpn != NULL) {
        ck_assert_int_eq(
            SSL_CTX_set_alpn_protos(f->ctx, (const unsigned char *)alpn, (unsigned)strlen(alpn)),
            0);
    }
    f->ssl = SSL_new(f->ctx);
    f->in = BIO_new(BIO_s_mem());
    f->out = BIO_new(BIO_s_mem());
    (void)BIO_set_mem_eof_return(f->in, -1);
    (void)BIO_set_mem_eof_return(f->out, -1);
    SSL_set_bio(f->ssl, f->in, f->out);
    SSL_set_connect_state(f->ssl);
}

/* Both ways, until nothing moves. */
static void foreign_run(struct foreigner *f)
{
    struct memend *from = &talk.link.end[MEMLINK_SERVER];
    bool moved = true;

    while (moved) {
        char bytes[4096];
        int n;

        moved = false;
        tlstalk_run(&talk);
        if (from->len > from->start) {
            (void)BIO_write(f->in, from->wire + from->start, (int)(from->len - from->start));
            from->start = from->len = 0;
            moved = true;
        }
        (void)SSL_read(f->ssl, bytes, sizeof(bytes));
        while ((n = BIO_read(f->out, bytes, sizeof(bytes))) > 0) {
            memlink_inject(&talk.link, MEMLINK_SERVER, bytes, (size_t)n);
            moved = true;
        }
    }
}

static void foreign_end(struct foreigner *f)
{
    SSL_free(f->ssl);
    SSL_CTX_free(f->ctx);
    talk.link.end[MEMLINK_CLIENT].finished = true;
    tlstalk_end(&talk);
}

static const struct {
    int version;
    const char *alpn;
    const char *text; /* NULL: it is let in */
} foreigners[] = {
    {TLS1_3_VERSION, "\2h2", NULL},
    {TLS1_3_VERSION, "\x08http/1.1\2h2", NULL},
    {TLS1_2_VERSION, "\2h2", "does not support TLS 1.3"},
    {TLS1_3_VERSION, NULL, "not HTTP/2"},
    {TLS1_3_VERSION, "\x08http/1.1", "not HTTP/2"},
    {TLS1_3_VERSION, "\3h2c", "not HTTP/2"},
};

TEST_EACH(only_tls_1_3_with_http_2_is_spoken, ARRAY_LEN(foreigners))
{
    struct foreigner f;

    tlstalk_begin(&talk, &rig, false, true);
    foreign(&f, foreigners[_i].version, foreigners[_i].alpn);
    foreign_run(&f);
    ck_assert_int_eq(SSL_is_init_finished(f.ssl), foreigners[_i].text == NULL);
    talk.link.end[MEMLINK_CLIENT].finished = true;
    tlstalk_run(&talk);
    ck_assert_int_eq(talk.server->code, foreigners[_i].text == NULL ? FL_OK : FL_EPROTO);
    if (foreigners[_i].text != NULL) {
        ck_assert_msg(strstr(talk.server->text, foreigners[_i].text) != NULL, "%s",
                      talk.server->text);
    }
    foreign_end(&f);
}

TEST(who_changes_keys_all_the_time_is_ended)
{
    struct foreigner f;
    unsigned i;

    tlstalk_begin(&talk, &rig, false, true);
    foreign(&f, TLS1_3_VERSION, "\2h2");
    foreign_run(&f);
    for (i = 0; i < 1000; i++) {
        ck_assert_int_eq(SSL_key_update(f.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        ck_assert_int_eq(SSL_do_handshake(f.ssl), 1);
    }
    ck_assert_int_eq(SSL_write(f.ssl, "hello", 5), 5);
    foreign_run(&f);
    ck_assert_uint_eq(talk.server->in_len, 5);
    ck_assert_uint_eq(talk.server->closed, 0);
    ck_assert_int_eq(SSL_key_update(f.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    ck_assert_int_eq(SSL_do_handshake(f.ssl), 1);
    foreign_run(&f);
    talk.link.end[MEMLINK_CLIENT].finished = true;
    tlstalk_run(&talk);
    ck_assert_int_eq(talk.server->code, FL_ELIMIT);
    foreign_end(&f);
}

/* --- names --- */

static const struct {
    const char *address;
    const char *host; /* NULL: none */
} addresses[] = {
    {"fl.example.org:7443", "fl.example.org"},
    {"10.0.0.1:1", "10.0.0.1"},
    {"[2001:db8::1]:7443", "2001:db8::1"},
    {"unix:/run/fl.sock", "localhost"},
    {"*:7443", NULL},
    {"fl.example.org", NULL},
};

TEST_EACH(the_name_of_a_server_is_that_of_its_address, ARRAY_LEN(addresses))
{
    struct fl_err err = {0};
    char host[64];

    if (addresses[_i].host == NULL) {
        ck_assert_int_eq(fl_tls_host(addresses[_i].address, host, sizeof(host), &err), FL_EINVAL);
        ck_assert_ptr_nonnull(strstr(err.msg, addresses[_i].address));
        return;
    }
    ck_assert_int_eq(fl_tls_host(addresses[_i].address, host, sizeof(host), &err), FL_OK);
    ck_assert_str_eq(host, addresses[_i].host);
    ck_assert_int_eq(fl_tls_host(addresses[_i].address, host, 4, &err), FL_EINVAL);
}

TEST_EACH(a_server_is_known_by_its_address_too, 2)
{
    struct fl_tls_setup setup = tlsrig_setup(&rig, TLSRIG_CLIENT);

    setup.host = _i == 0 ? "127.0.0.1" : "127.0.0.2";
    tlsrig_replace(&rig, TLSRIG_CLIENT, &setup);
    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_run(&talk);
    if (_i == 0) {
        tlstalk_check_up(&talk);
    } else {
        ck_assert_int_eq(talk.client->code, FL_EPERM);
    }
    tlstalk_end(&talk);
}

TEST(a_key_of_another_certificate_is_refused_at_once)
{
    struct fl_tls_setup setup = tlsrig_setup(&rig, TLSRIG_SERVER);
    struct fl_tls *tls = NULL;
    struct fl_err err = {0};

    setup.key = other.key;
    ck_assert_int_eq(fl_tls_create(&setup, &tls, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "key"));
    ck_assert_int_eq(fl_tls_renew(rig.tls[TLSRIG_SERVER], rig.chain[TLSRIG_SERVER], other.key,
                                  rig.ca.trust, &err),
                     FL_ECONF);
    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_run(&talk);
    tlstalk_check_up(&talk);
    tlstalk_end(&talk);
}
