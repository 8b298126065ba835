/*
 * A year of certificates, with the real rooms of both sides and a clock that is an argument:
 * clients renew when they are due, the server's names change, the root gets another key, the
 * intermediate is renewed, clients are off for 67 and for 200 days, one boots in 1970. Who is there
 * and has not been away for longer than the grace is believed, and believes, on every day.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "client/identity/cert_renewal.h"
#include "client/identity/client_identity.h"
#include "client/identity/enrolling.h"
#include "libfl/base/fs.h"
#include "tests/lib/authority_rig.h"
#include "tests/lib/suites.h"

#define N_CLIENTS 6
#define DAYS      365
/* The first is off for as long as grace and rest of the validity allow, the second for longer. */
#define SHORT_AWAY 0
#define LONG_AWAY  1

#define NAMES_CHANGE 60
#define ROOT_CHANGES 100

static struct rig r;

static struct client {
    char state[FOLDER_PATH];
    char dir[FOLDER_PATH + 16];
    struct fl_client_identity_files files;
    char name[32];
    unsigned renewed;
} clients[N_CLIENTS];

/* A reply as a message carries it. */
static void take(struct fl_enrolling *e)
{
    struct fl_wire_chain chain = {0};
    struct fl_wire_chain roots = {0};

    ck_assert_int_eq(fl_joined_wire(r.joined.chain, &chain), FL_OK);
    ck_assert_int_eq(fl_joined_wire(r.joined.roots, &roots), FL_OK);
    ck_assert_msg(fl_enrolling_done(e, &(struct fl_enrolling_reply){&chain, &roots, 0},
                                    r.now_ms / 1000, NULL, &r.err) == FL_OK,
                  "%s", r.err.msg);
    fl_wire_chain_done(&chain);
    fl_wire_chain_done(&roots);
    fl_enrolling_free(e);
}

static void join(struct client *c)
{
    struct fl_joining join = {.name = "", .address = "10.0.0.1:1"};
    struct fl_enrolling *e = NULL;
    struct fl_invite line;

    rig_invite(&r, c->name, 0, &line);
    ck_assert_msg(fl_enrolling_join(c->dir, &line, "", &e, &r.err) == FL_OK, "%s", r.err.msg);
    join.token = line.token;
    join.request = fl_enrolling_request(e, &join.request_len);
    fl_joined_done(&r.joined);
    ck_assert_msg(fl_authority_join(r.a, &join, r.now_ms, &r.joined, &r.err) == FL_OK, "%s",
                  r.err.msg);
    take(e);
}

static void load(struct client *c, struct fl_client_identity *ret)
{
    ck_assert_msg(fl_client_identity_load(&c->files, ret, &r.err) == FL_OK, "%s", r.err.msg);
}

/* Who the server says this client is; FL_EPERM: nobody it believes. */
static int asked(const struct fl_client_identity *mine, struct fl_identity *ret)
{
    return fl_trust_verify(
        fl_authority_trust(r.a),
        &(struct fl_claim){.chain = mine->chain, .purpose = FL_ROLE_CLIENT, .now = r.now_ms / 1000},
        ret, NULL, &r.err);
}

static int believes(const struct fl_client_identity *mine, const char *host)
{
    struct fl_identity server;

    return fl_trust_verify(mine->trust,
                           &(struct fl_claim){.chain = fl_authority_chain(r.a),
                                              .purpose = FL_ROLE_SERVER,
                                              .host = host,
                                              .now = r.now_ms / 1000},
                           &server, NULL, &r.err);
}

static void renew(struct client *c, const struct fl_client_identity *mine,
                  const struct fl_identity *who)
{
    struct fl_enrolling *e = NULL;
    const uint8_t *request;
    size_t len = 0;

    ck_assert_msg(fl_enrolling_renew(c->dir, mine, &e, &r.err) == FL_OK, "%s", r.err.msg);
    request = fl_enrolling_request(e, &len);
    fl_joined_done(&r.joined);
    ck_assert_msg(fl_authority_renew(r.a, who, &(struct fl_der){.data = request, .len = len},
                                     "10.0.0.1:1", r.now_ms, &r.joined, &r.err) == FL_OK,
                  "%s", r.err.msg);
    take(e);
    c->renewed++;
}

/* A day on which this client is there. */
static void live(struct client *c, int day)
{
    struct fl_client_identity mine;
    struct fl_identity who;

    load(c, &mine);
    ck_assert_msg(believes(&mine, "10.77.0.1") == FL_OK, "%s on day %d: %s", c->name, day,
                  r.err.msg);
    ck_assert_msg(day < NAMES_CHANGE || believes(&mine, "fl2.example.org") == FL_OK,
                  "%s on day %d: %s", c->name, day, r.err.msg);
    ck_assert_msg(asked(&mine, &who) == FL_OK, "%s on day %d: %s", c->name, day, r.err.msg);
    ck_assert_int_eq(fl_renewing_clock(r.now_ms / 1000, 0, &who, &r.err), FL_OK);
    ck_assert(!who.lapsed || c == &clients[SHORT_AWAY]);
    if (fl_renewing_due_ms(&mine.who) <= r.now_ms) {
        renew(c, &mine, &who);
    }
    fl_client_identity_done(&mine);
}

/* Off for longer than validity and grace: refused with the reason, and back by two commands. */
static void come_back(struct client *c)
{
    struct fl_client_identity mine;
    struct fl_identity who = {0};

    load(c, &mine);
    ck_assert_int_eq(asked(&mine, &who), FL_EPERM);
    rig_says(&r, c->name);
    ck_assert_int_eq(believes(&mine, "10.77.0.1"), FL_EPERM); /* of a root that it never heard of */
    who = mine.who;
    fl_joined_done(&r.joined);
    ck_assert_int_eq(fl_authority_renew(r.a, &who, &(struct fl_der){.data = NULL}, "10.0.0.1:1",
                                        r.now_ms, &r.joined, &r.err),
                     FL_EPERM);
    rig_says(&r, "flctl invite edge-1");
    fl_client_identity_done(&mine);
    join(c);
}

static bool away(int i, int day)
{
    return (i == SHORT_AWAY && day >= 75 && day < 142) ||
           (i == LONG_AWAY && day >= 20 && day < 220);
}

static void setup(void)
{
    int i;

    rig_begin(&r, 4);
    /* So that the intermediate is renewed within the year, too. */
    r.conf.spans = fl_authority_default_spans;
    r.conf.spans.intermediate = INT64_C(365) * 86400;
    authority_rig_init(&r);
    for (i = 0; i < N_CLIENTS; i++) {
        struct client *c = &clients[i];

        *c = (struct client){.state = ""};
        ck_assert(folder_make("fl-client", c->state));
        ck_assert_int_eq(fl_fs_join(c->dir, sizeof(c->dir), c->state, "identity"), FL_OK);
        c->files = (struct fl_client_identity_files){
            .dir = c->dir, .certificate = "", .key = "", .ca = ""};
        (void)snprintf(c->name, sizeof(c->name), "edge-%d", i);
        join(c);
    }
}

static void teardown(void)
{
    int i;

    for (i = 0; i < N_CLIENTS; i++) {
        folder_remove(clients[i].state);
    }
    rig_end(&r);
}

static void happen(int day)
{
    static const char *const more[] = {"fl.example.org", "10.77.0.1", "fl2.example.org"};

    if (day == NAMES_CHANGE) {
        rig_close(&r);
        r.conf.hosts = more;
        r.conf.n_hosts = 3;
        rig_open(&r);
    }
    if (day == ROOT_CHANGES) {
        ck_assert_msg(fl_authority_renew_root(&r.conf, r.now_ms, &r.err) == FL_OK, "%s", r.err.msg);
    }
    rig_quiet(&r);
    ck_assert_msg(fl_authority_refresh(r.a, r.now_ms, NULL, &r.err) == FL_OK, "%s", r.err.msg);
}

TEST_CASE("all", setup, teardown);

TEST(for_a_year_nobody_touches_it_and_whoever_is_there_is_believed)
{
    struct fl_cert_info before;
    struct fl_cert_info after;
    unsigned intermediates = 0;
    int day;
    int i;

    fl_chain_info(fl_authority_chain(r.a), 2, &before);
    for (day = 1; day <= DAYS; day++) {
        r.now_ms += RIG_DAY_MS;
        happen(day);
        intermediates += strstr(r.said, "created an intermediate certificate") != NULL;
        for (i = 0; i < N_CLIENTS; i++) {
            if (i == LONG_AWAY && day == 220) {
                come_back(&clients[i]);
            }
            if (!away(i, day)) {
                live(&clients[i], day);
            }
        }
    }
    fl_chain_info(fl_authority_chain(r.a), 2, &after);
    ck_assert_mem_ne(before.key, after.key, sizeof(before.key));
    /* The next one's was made with the next root. */
    ck_assert_uint_eq(intermediates, 1);
    for (i = 2; i < N_CLIENTS; i++) {
        /* Each 20 days or so, at a point of its own. */
        ck_assert_uint_ge(clients[i].renewed, 15);
        ck_assert_uint_le(clients[i].renewed, 20);
    }
    ck_assert_uint_eq(fl_chain_len(fl_trust_roots(fl_authority_trust(r.a))), 1);
}

TEST(a_host_that_boots_in_1970_waits_and_says_so)
{
    struct fl_client_identity mine;

    load(&clients[2], &mine);
    ck_assert_int_eq(fl_renewing_clock(86400, 0, &mine.who, &r.err), FL_EAGAIN);
    rig_says(&r, "1970-01-02");
    rig_says(&r, "2026-11-22");
    fl_client_identity_done(&mine);
}

TEST(a_server_whose_clock_is_years_off_says_both_times_and_gives_nobody_a_certificate)
{
    struct fl_client_identity mine;

    load(&clients[2], &mine);
    r.now_ms -= 3 * 365 * RIG_DAY_MS;
    ck_assert_int_eq(fl_authority_renew(r.a, &mine.who, &(struct fl_der){.data = NULL},
                                        "10.0.0.1:1", r.now_ms, &r.joined, &r.err) == FL_OK,
                     0);
    rig_close(&r);
    ck_assert_int_ne(fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err), FL_OK);
    rig_says(&r, "2023-11-23");
    rig_says(&r, "2026-11-22");
    fl_client_identity_done(&mine);
}
