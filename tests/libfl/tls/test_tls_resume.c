#include <check.h>
#include <string.h>

#include "libfl/tls/tls_impl.h"
#include "tests/lib/suites.h"
#include "tests/lib/tlstalk.h"

static struct tlsrig rig;
static struct tlsrig_ca other;

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

enum outcome { FULL, RESUMED, REFUSED };

/* A connection from its beginning to its end, and what it was. */
static enum outcome connect_once(void)
{
    struct tlstalk talk;
    enum outcome outcome = REFUSED;

    tlstalk_begin(&talk, &rig, true, true);
    tlstalk_send(talk.client, "hello", 5);
    tlstalk_run(&talk);
    if (talk.server->in_len > 0) {
        tlstalk_check_up(&talk);
        ck_assert_int_eq(tlstalk_resumed(talk.client), tlstalk_resumed(talk.server));
        outcome = tlstalk_resumed(talk.server) ? RESUMED : FULL;
    } else {
        ck_assert_uint_eq(talk.client->closed, 1);
        ck_assert_uint_eq(talk.server->closed, 1);
    }
    tlstalk_end(&talk);
    return outcome;
}

/* --- resuming --- */

TEST_CASE("resume", begin, end);

TEST(a_client_resumes_as_often_as_it_comes_and_is_who_it_is)
{
    int i;

    ck_assert_int_eq((int)connect_once(), (int)FULL);
    for (i = 0; i < 5; i++) {
        ck_assert_int_eq((int)connect_once(), (int)RESUMED);
    }
}

TEST(a_ticket_is_used_once)
{
    struct tlstalk talk;

    ck_assert_int_eq((int)connect_once(), (int)FULL);
    ck_assert_ptr_nonnull(rig.tls[TLSRIG_CLIENT]->session);
    tlstalk_begin(&talk, &rig, true, true);
    (void)memlink_turn(&talk.link);
    (void)memlink_turn(&talk.link);
    ck_assert_ptr_null(rig.tls[TLSRIG_CLIENT]->session);
    tlstalk_end(&talk);
}

TEST(a_client_that_is_not_believed_any_more_is_not_resumed)
{
    struct fl_trust *trust = tlsrig_trust(other.root, 0);

    ck_assert_int_eq((int)connect_once(), (int)FULL);
    ck_assert_int_eq((int)connect_once(), (int)RESUMED);
    tlsrig_renew(&rig, TLSRIG_SERVER, NULL, trust);
    ck_assert_int_eq((int)connect_once(), (int)REFUSED);
    ck_assert_str_eq(rig.reason[TLSRIG_SERVER], "unknown");
    ck_assert_uint_eq(rig.notices[TLSRIG_SERVER], 1);
    fl_trust_unref(trust);
}

TEST(a_server_that_is_not_believed_any_more_is_not_resumed)
{
    struct fl_trust *trust = tlsrig_trust(other.root, 0);
    struct fl_tls *tls = rig.tls[TLSRIG_CLIENT];
    struct fl_trust *old = tls->trust;

    ck_assert_int_eq((int)connect_once(), (int)FULL);
    /* Without fl_tls_renew(), which would forget the session. */
    tls->trust = trust;
    ck_assert_int_eq((int)connect_once(), (int)REFUSED);
    ck_assert_str_eq(rig.reason[TLSRIG_CLIENT], "unknown");
    tls->trust = old;
    fl_trust_unref(trust);
}

/* One side's certificate is over after an hour, the other's is not. */
static void short_lived(int side)
{
    const struct tlsrig_leaf leaf[2] = {
        {FL_ROLE_CLIENT, "edge-001", NULL, TLSRIG_NOW - 1, TLSRIG_NOW + 3600, NULL},
        {FL_ROLE_SERVER, "main", TLSRIG_HOST, TLSRIG_NOW - 1, TLSRIG_NOW + 3600, NULL},
    };
    struct fl_chain *chain = tlsrig_leaf(&rig.ca, rig.key[side], &leaf[side]);

    tlsrig_renew(&rig, side, chain, NULL);
    fl_chain_unref(chain);
}

TEST_EACH(a_session_does_not_outlive_a_certificate, 2)
{
    short_lived(_i);
    ck_assert_int_eq((int)connect_once(), (int)FULL);
    rig.now += 3599;
    ck_assert_int_eq((int)connect_once(), (int)RESUMED);
    rig.now += 2;
    ck_assert_int_eq((int)connect_once(), (int)REFUSED);
    ck_assert_str_eq(rig.reason[!_i], "expired");
}

TEST(new_credentials_of_a_client_are_shown_at_once)
{
    ck_assert_int_eq((int)connect_once(), (int)FULL);
    tlsrig_renew(&rig, TLSRIG_CLIENT, NULL, NULL);
    ck_assert_int_eq((int)connect_once(), (int)FULL);
    ck_assert_int_eq((int)connect_once(), (int)RESUMED);
}

TEST(a_session_of_old_credentials_that_comes_late_is_not_kept)
{
    struct tlstalk talk;

    tlstalk_begin(&talk, &rig, true, true);
    while (talk.client->opened == 0) {
        ck_assert(memlink_turn(&talk.link));
    }
    ck_assert_ptr_null(rig.tls[TLSRIG_CLIENT]->session);
    tlsrig_renew(&rig, TLSRIG_CLIENT, NULL, NULL);
    tlstalk_run(&talk);
    ck_assert_ptr_null(rig.tls[TLSRIG_CLIENT]->session);
    tlstalk_end(&talk);
}

TEST(new_credentials_of_a_server_resume_old_sessions)
{
    ck_assert_int_eq((int)connect_once(), (int)FULL);
    tlsrig_renew(&rig, TLSRIG_SERVER, NULL, NULL);
    ck_assert_int_eq((int)connect_once(), (int)RESUMED);
}

TEST(the_key_of_tickets_changes_and_old_ones_end)
{
    struct fl__tls_ticket_key *keys = rig.tls[TLSRIG_SERVER]->ticket_keys;
    uint8_t name[16];
    int i;

    ck_assert_int_eq((int)connect_once(), (int)FULL);
    (void)memcpy(name, keys[0].name, sizeof(name));
    for (i = 0; i < 3; i++) { /* a key is a day old at most when it is used */
        rig.now += 11 * 3600;
        ck_assert_int_eq((int)connect_once(), (int)RESUMED);
    }
    ck_assert_mem_ne(keys[0].name, name, sizeof(name));
    rig.now += 25 * 3600;
    ck_assert_int_eq((int)connect_once(), (int)FULL);
    ck_assert_int_eq((int)connect_once(), (int)RESUMED);
    /* A clock that was set back. */
    rig.now -= 100;
    ck_assert_int_eq((int)connect_once(), (int)FULL);
}

TEST(a_ticket_of_another_server_is_nothing)
{
    struct fl_tls_setup setup = tlsrig_setup(&rig, TLSRIG_SERVER);

    ck_assert_int_eq((int)connect_once(), (int)FULL);
    tlsrig_replace(&rig, TLSRIG_SERVER, &setup);
    ck_assert_int_eq((int)connect_once(), (int)FULL);
}

TEST(a_ticket_without_its_secret_is_nothing)
{
    SSL_SESSION *session;
    unsigned char secret[48];
    size_t len;

    ck_assert_int_eq((int)connect_once(), (int)FULL);
    session = SSL_SESSION_dup(rig.tls[TLSRIG_CLIENT]->session);
    len = SSL_SESSION_get_master_key(session, secret, sizeof(secret));
    secret[0] ^= 1;
    ck_assert_int_eq(SSL_SESSION_set1_master_key(session, secret, len), 1);
    SSL_SESSION_free(rig.tls[TLSRIG_CLIENT]->session);
    rig.tls[TLSRIG_CLIENT]->session = session;
    ck_assert_int_eq((int)connect_once(), (int)REFUSED);
}

TEST(a_session_without_a_certificate_resumes_as_nobody)
{
    struct fl_tls_setup setup = tlsrig_setup(&rig, TLSRIG_CLIENT);
    int i;

    setup.chain = NULL;
    setup.key = NULL;
    tlsrig_replace(&rig, TLSRIG_CLIENT, &setup);
    for (i = 0; i < 2; i++) {
        struct tlstalk talk;

        tlstalk_begin(&talk, &rig, true, true);
        tlstalk_run(&talk);
        ck_assert_int_eq(tlstalk_resumed(talk.server), i == 1);
        ck_assert_int_eq((int)fl_stream_identity(talk.server->stream)->kind, (int)FL_IDENTITY_NONE);
        tlstalk_end(&talk);
    }
}

/* --- many at once --- */

#define MANY 60

static void turn_of(struct tlstalk *talks, unsigned n)
{
    struct memlink *links[MANY];
    unsigned i;

    for (i = 0; i < n; i++) {
        links[i] = &talks[i].link;
    }
    (void)memlink_turn_all(links, n);
}

static unsigned up_of(const struct tlstalk *talks, unsigned n)
{
    unsigned up = 0;
    unsigned i;

    for (i = 0; i < n; i++) {
        up += fl_stream_identity(talks[i].server->stream) != NULL;
    }
    return up;
}

TEST_CASE("many", begin, end);

TEST(a_storm_of_handshakes_is_served_in_order_and_leaves_others_their_turn)
{
    static struct tlstalk talks[MANY];
    struct fl_tls *tls = rig.tls[TLSRIG_SERVER];
    struct tlstalk calm;
    unsigned turns = 0;
    unsigned i;

    tlstalk_begin(&calm, &rig, true, true);
    tlstalk_run(&calm);
    calm.server->echo = true;
    tlstalk_expect(calm.server, 100000);
    for (i = 0; i < MANY; i++) {
        tlstalk_begin(&talks[i], &rig, true, true);
    }
    while (up_of(talks, MANY) < MANY) {
        unsigned before = up_of(talks, MANY);

        turn_of(talks, MANY);
        ck_assert_uint_le(tls->n_active, 4);
        ck_assert_uint_le(up_of(talks, MANY), before + 4);
        /* First come, first served: nobody is up before one that came four earlier. */
        for (i = 4; i < MANY; i++) {
            ck_assert(fl_stream_identity(talks[i].server->stream) == NULL ||
                      fl_stream_identity(talks[i - 4].server->stream) != NULL);
        }
        /* Who stands has an answer in three turns, all the time. */
        tlstalk_send(calm.client, "x", 1);
        calm.client->in_len = 0;
        (void)memlink_turn(&calm.link);
        (void)memlink_turn(&calm.link);
        (void)memlink_turn(&calm.link);
        ck_assert_uint_eq(calm.client->in_len, 1);
        ck_assert_uint_lt(++turns, 10 * MANY);
    }
    ck_assert_uint_eq(tls->n_active, 0);
    ck_assert(fl_list_is_empty(&tls->waiting));
    for (i = 0; i < MANY; i++) {
        tlstalk_end(&talks[i]);
    }
    tlstalk_end(&calm);
}

TEST(who_goes_while_it_waits_gives_its_place_back)
{
    static struct tlstalk talks[MANY];
    struct fl_tls *tls = rig.tls[TLSRIG_SERVER];
    unsigned i;
    unsigned n;

    for (i = 0; i < MANY; i++) {
        tlstalk_begin(&talks[i], &rig, true, true);
    }
    for (n = 0; n < 25; n++) {
        turn_of(talks, MANY);
    }
    ck_assert(!fl_list_is_empty(&tls->waiting));
    for (i = 0; i < MANY; i += 2) {
        fl_stream_close(talks[i].server->stream);
    }
    for (n = 0; n < 10 * MANY; n++) {
        turn_of(talks, MANY);
    }
    for (i = 1; i < MANY; i += 2) {
        tlstalk_check_up(&talks[i]);
    }
    ck_assert_uint_eq(tls->n_active, 0);
    ck_assert(fl_list_is_empty(&tls->waiting));
    for (i = 0; i < MANY; i++) {
        tlstalk_end(&talks[i]);
    }
}

TEST(who_waits_is_not_read_from)
{
    struct tlstalk talk;

    tlstalk_begin(&talk, &rig, false, true);
    rig.tls[TLSRIG_SERVER]->n_active = 4; /* Others have them. */
    memlink_inject(&talk.link, MEMLINK_SERVER, "\x16\x03\x01", 3);
    tlstalk_run(&talk);
    memlink_inject(&talk.link, MEMLINK_SERVER, "\x16\x03\x01", 3);
    tlstalk_run(&talk);
    ck_assert_uint_eq(talk.link.end[MEMLINK_CLIENT].arrived, 3);
    rig.tls[TLSRIG_SERVER]->n_active = 0;
    fl_stream_close(talk.server->stream);
    talk.link.end[MEMLINK_CLIENT].finished = true;
    tlstalk_end(&talk);
}
