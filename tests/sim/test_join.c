/*
 * Joining and renewing while everything breaks: the real rooms of both sides (server/identity,
 * client/identity) in a world that a seed draws. Requests and replies are lost, both sides are
 * killed at their writes and start again from what was on their disks at that moment, a second
 * machine tries the same line, others try wrong tokens. At the end there is one certificate,
 * whoever had the line first has it, and the same line still works. A failure prints its seed, to
 * be run again as
 *
 *     FL_SIM_SEED=<seed> tests/sim/test_join
 *
 * More seeds: FL_SIM_SEEDS=1000 tests/sim/test_join
 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/identity/client_identity.h"
#include "client/identity/enrolling.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/db/db.h"
#include "server/identity/certificates.h"
#include "tests/lib/authority_rig.h"
#include "tests/lib/suites.h"

#define SEEDS 300
#define TESTS 10 /* in each, SEEDS / TESTS of them, so that they run in processes of their own */

enum side { NOBODY, SERVER, CLIENT };

/* --- death --- */

/* Whose writes are counted, how many are left to it, and whether it is dead. */
static enum side running;
static int left; /* -1: no end */
static bool dead;
static bool after;             /* it dies behind its last write, not before it */
static char kept[FOLDER_PATH]; /* the server's disk at that moment; "": it lives */
static struct rig server;

static void copy_file(const char *from, const char *to)
{
    struct fl_buf buf;

    if (fl_fs_exists(from)) {
        ck_assert_int_eq(fl_fs_read(from, 1 << 26, &buf, NULL), FL_OK);
        ck_assert_int_eq(fl_fs_replace(to, buf.data, buf.len, false, NULL), FL_OK);
        fl_buf_done(&buf);
    }
}

/* What a kill would leave of the database; other files are only changed by a rename. */
static void keep_disk(void)
{
    static const char *const names[] = {"identity.db", "identity.db-wal", "identity.db-shm"};
    char from[256];
    char to[256];
    size_t i;

    ck_assert(folder_make("fl-killed", kept));
    for (i = 0; i < 3; i++) {
        (void)snprintf(to, sizeof(to), "%s/%s", kept, names[i]);
        copy_file(authority_rig_path(&server, names[i], from), to);
    }
}

/* May it write? Else it dies, or has died. */
static bool write_begins(enum side side)
{
    if (side != running || left < 0) {
        return true;
    }
    if (!dead && left == 0 && !after) {
        dead = true;
        if (side == SERVER) {
            keep_disk();
        }
    }
    return !dead;
}

static void write_ended(enum side side)
{
    if (side != running || left < 0) {
        return;
    }
    if (left == 0 && !dead) {
        dead = true;
        if (side == SERVER) {
            keep_disk();
        }
        return;
    }
    left--;
}

int __real_fl_db_end(struct fl_db *db, int rv, struct fl_err *err);
int __wrap_fl_db_end(struct fl_db *db, int rv, struct fl_err *err);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);

int __wrap_fl_db_end(struct fl_db *db, int rv, struct fl_err *err)
{
    if (!write_begins(SERVER)) {
        return __real_fl_db_end(db, FL_EIO, err); /* rolled back, as the next start does it */
    }
    rv = __real_fl_db_end(db, rv, err);
    write_ended(SERVER);
    return dead && running == SERVER ? FL_EIO : rv;
}

int __wrap_rename(const char *from, const char *to)
{
    int rv;

    if (!write_begins(CLIENT)) {
        errno = EIO;
        return -1;
    }
    rv = __real_rename(from, to);
    write_ended(CLIENT);
    if (dead && running == CLIENT) {
        errno = EIO;
        return -1;
    }
    return rv;
}

int __wrap_unlink(const char *path)
{
    if (dead && running == CLIENT) {
        errno = EIO;
        return -1;
    }
    return __real_unlink(path);
}

/* --- the world --- */

struct machine {
    char dir[FOLDER_PATH];
    char identity[FOLDER_PATH + 16]; /* in it */
    struct fl_client_identity_files files;
};

static struct fl_rng rng;
static struct machine machines[2];
static struct fl_invite line;
static bool calm;            /* nothing breaks any more */
static unsigned n_refused;   /* of the machine that came second */
static unsigned n_deaths[3]; /* of each side */

static bool happens(unsigned percent)
{
    return !calm && fl_rng_below(&rng, 100) < percent;
}

/* From here on `side` works, and dies at one of its next writes or does not. */
static void begin(enum side side)
{
    running = side;
    dead = false;
    /* A call makes one transaction; a client writes six files on its way. */
    left =
        side == SERVER ? (happens(60) ? 0 : -1) : (happens(40) ? (int)fl_rng_below(&rng, 5) : -1);
    after = fl_rng_below(&rng, 2) == 0;
}

/* Did it die? */
static bool end(void)
{
    bool died = dead;

    n_deaths[running] += died;
    running = NOBODY;
    dead = false;
    left = -1;
    return died;
}

static void restart_server(void)
{
    rig_close(&server);
    if (kept[0] != '\0') {
        static const char *const names[] = {"identity.db", "identity.db-wal", "identity.db-shm"};
        char from[256];
        char to[256];
        size_t i;

        for (i = 0; i < 3; i++) {
            (void)snprintf(from, sizeof(from), "%s/%s", kept, names[i]);
            ck_assert_int_eq(fl_fs_remove(authority_rig_path(&server, names[i], to)), FL_OK);
            copy_file(from, to);
        }
        folder_remove(kept);
        kept[0] = '\0';
    }
    rig_open(&server);
}

static void restart_client(struct machine *m)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_client_identity_settle(m->identity, &err) == FL_OK, "%s", err.msg);
}

static bool load(struct machine *m, struct fl_client_identity *ret)
{
    struct fl_err err = {0};
    int rv = fl_client_identity_load(&m->files, ret, &err);

    ck_assert_msg(rv == FL_OK || rv == FL_ENOENT, "%s", err.msg);
    return rv == FL_OK;
}

/* --- one call --- */

/* The server's part: FL_OK with what it answers, unless it dies. */
static int ask_join(const uint8_t *request, size_t len, const char *name, const char *address,
                    bool *ret_died)
{
    struct fl_joining join = {.token = line.token,
                              .name = name,
                              .request = request,
                              .request_len = len,
                              .address = address};
    int rv;

    begin(SERVER);
    fl_joined_done(&server.joined);
    rv = fl_authority_join(server.a, &join, server.now_ms, &server.joined, &server.err);
    *ret_died = end();
    return rv;
}

static int ask_renew(const struct fl_identity *who, const uint8_t *request, size_t len,
                     bool *ret_died)
{
    int rv;

    begin(SERVER);
    fl_joined_done(&server.joined);
    rv = fl_authority_renew(server.a, who, &(struct fl_der){.data = request, .len = len},
                            "10.0.0.1:1", server.now_ms, &server.joined, &server.err);
    *ret_died = end();
    return rv;
}

/* What was answered arrives and is put in place, unless the client dies. */
static void take(struct machine *m, struct fl_enrolling *e)
{
    struct fl_wire_chain chain = {0};
    struct fl_wire_chain roots = {0};
    struct fl_err err = {0};
    bool died;
    int rv;

    ck_assert_int_eq(fl_joined_wire(server.joined.chain, &chain), FL_OK);
    ck_assert_int_eq(fl_joined_wire(server.joined.roots, &roots), FL_OK);
    begin(CLIENT);
    rv = fl_enrolling_done(e, &(struct fl_enrolling_reply){&chain, &roots, 0}, server.now_ms / 1000,
                           NULL, &err);
    died = end();
    ck_assert_msg(died || rv == FL_OK, "%s", err.msg);
    fl_wire_chain_done(&chain);
    fl_wire_chain_done(&roots);
    fl_enrolling_free(e);
    if (died) {
        restart_client(m);
    }
}

/* One try, which anything may end. `who`: the certificate that is renewed, NULL: by the line. */
static void try_once(struct machine *m, const struct fl_client_identity *mine)
{
    struct fl_enrolling *e = NULL;
    const uint8_t *request;
    size_t len = 0;
    bool died;
    int rv;

    begin(CLIENT);
    rv = mine != NULL ? fl_enrolling_renew(m->identity, mine, &e, &server.err)
                      : fl_enrolling_join(m->identity, &line, "", &e, &server.err);
    died = end();
    ck_assert_msg(died || rv == FL_OK, "%s", server.err.msg);
    if (died) {
        fl_enrolling_free(rv == FL_OK ? e : NULL);
        restart_client(m);
        return;
    }
    request = fl_enrolling_request(e, &len);
    if (happens(20)) {
        fl_enrolling_free(e); /* the request is lost */
        return;
    }
    rv = mine != NULL
             ? ask_renew(&mine->who, request, len, &died)
             : ask_join(request, len, "", m == &machines[0] ? "10.0.0.1:1" : "10.0.0.2:1", &died);
    if (died || happens(10)) {
        restart_server();
        rv = died ? FL_EIO : rv;
    }
    if (rv == FL_OK && !happens(20)) {
        take(m, e);
        return;
    }
    fl_enrolling_free(e); /* the reply is lost, or there is none */
    if (rv == FL_EREFUSED) {
        rig_says(&server, "used by another key, for 'edge-001'");
        n_refused++;
    } else {
        ck_assert_msg(rv == FL_OK || died, "%s", server.err.msg);
    }
}

static void wrong_tokens(void)
{
    static const uint8_t nothing[4];
    struct fl_joining join = {
        .name = "", .request = nothing, .request_len = sizeof(nothing), .address = "10.9.9.9:5"};
    uint8_t token[FL_TOKEN_SIZE];
    int n = (int)fl_rng_below(&rng, 30);

    while (n-- > 0) {
        int rv;

        (void)memcpy(token, line.token, sizeof(token));
        token[fl_rng_below(&rng, sizeof(token))] ^= (uint8_t)(1 + fl_rng_below(&rng, 255));
        join.token = token;
        rv = fl_authority_join(server.a, &join, server.now_ms, &server.joined, &server.err);
        ck_assert(rv == FL_ENOENT || rv == FL_EAGAIN);
    }
}

/* --- what has to be true --- */

struct seen {
    size_t n;
    uint8_t key[FL_KEY_HASH];
    uint8_t serial[FL_SERIAL_MAX];
};

static int see(void *ctx, const struct fl_certificate *c)
{
    struct seen *s = ctx;

    s->n++;
    (void)memcpy(s->key, c->key, sizeof(s->key));
    (void)memcpy(s->serial, c->serial, sizeof(s->serial));
    return FL_OK;
}

static struct seen certificates(void)
{
    struct seen s = {0};

    ck_assert_int_eq(fl_authority_certificates(server.a, "", server.now_ms, see, &s, &server.err),
                     FL_OK);
    return s;
}

/* Both sides believe each other by what is on their disks. */
static void check_identity(const struct fl_client_identity *mine)
{
    struct fl_identity who;

    ck_assert_msg(fl_trust_verify(mine->trust,
                                  &(struct fl_claim){.chain = fl_authority_chain(server.a),
                                                     .purpose = FL_ROLE_SERVER,
                                                     .host = "10.77.0.1",
                                                     .now = server.now_ms / 1000},
                                  &who, NULL, &server.err) == FL_OK,
                  "%s", server.err.msg);
    ck_assert_msg(fl_trust_verify(fl_authority_trust(server.a),
                                  &(struct fl_claim){.chain = mine->chain,
                                                     .purpose = FL_ROLE_CLIENT,
                                                     .now = server.now_ms / 1000},
                                  &who, NULL, &server.err) == FL_OK,
                  "%s", server.err.msg);
    ck_assert_str_eq(who.name, "edge-001");
}

/* --- a run --- */

static void make_machine(struct machine *m)
{
    *m = (struct machine){.dir = ""};
    ck_assert(folder_make("fl-machine", m->dir));
    ck_assert_int_eq(fl_fs_join(m->identity, sizeof(m->identity), m->dir, "identity"), FL_OK);
    m->files = (struct fl_client_identity_files){
        .dir = m->identity, .certificate = "", .key = "", .ca = ""};
}

/* Tries of both until `m` has it, while everything breaks for a while. */
static void join_all(void)
{
    unsigned steps = 3 + (unsigned)fl_rng_below(&rng, 25);
    unsigned second = (unsigned)fl_rng_below(&rng, 100);
    unsigned i;

    for (i = 0; i < steps; i++) {
        struct machine *m = &machines[fl_rng_below(&rng, 100) < second / 3 ? 1 : 0];
        struct fl_client_identity mine;

        server.now_ms += (int64_t)fl_rng_below(&rng, 60000);
        if (happens(10)) {
            wrong_tokens();
        }
        ck_assert_uint_le(certificates().n, 1);
        if (load(m, &mine)) {
            check_identity(&mine);
            fl_client_identity_done(&mine);
        } else {
            try_once(m, NULL);
        }
    }
}

/* The one that the server knows has it now by the same line, and the other one is told whose it is.
 */
static struct machine *settle_joining(void)
{
    struct fl_client_identity mine;
    struct machine *winner = NULL;
    struct seen seen;
    size_t i;

    calm = true;
    for (i = 0; i < 4; i++) {
        struct machine *m = &machines[i % 2];

        if (load(m, &mine)) {
            fl_client_identity_done(&mine);
        } else {
            try_once(m, NULL);
        }
    }
    seen = certificates();
    ck_assert_uint_eq(seen.n, 1);
    for (i = 0; i < 2; i++) {
        if (load(&machines[i], &mine)) {
            ck_assert_msg(winner == NULL, "both have an identity");
            winner = &machines[i];
            ck_assert_mem_eq(mine.who.key, seen.key, sizeof(seen.key));
            ck_assert_mem_eq(mine.who.serial, seen.serial, mine.who.serial_len);
            check_identity(&mine);
            fl_client_identity_done(&mine);
        }
    }
    ck_assert_msg(winner != NULL, "nobody has an identity");
    ck_assert_uint_ge(n_refused, 1);
    calm = false;
    return winner;
}

/* One renewal, however often it takes; one certificate more at the end. */
static void renew_all(struct machine *m)
{
    unsigned steps = (unsigned)fl_rng_below(&rng, 10);
    struct fl_client_identity mine;
    struct fl_identity first;
    bool renewed = false;
    unsigned i;

    ck_assert(load(m, &mine));
    first = mine.who;
    fl_client_identity_done(&mine);
    server.now_ms += 20 * RIG_DAY_MS;
    restart_server();
    for (i = 0; !renewed; i++) {
        ck_assert_uint_lt(i, 100);
        calm = i >= steps;
        server.now_ms += (int64_t)fl_rng_below(&rng, 600000);
        ck_assert(load(m, &mine));
        check_identity(&mine);
        renewed = memcmp(mine.who.serial, first.serial, first.serial_len) != 0;
        if (!renewed) {
            try_once(m, &mine);
        }
        fl_client_identity_done(&mine);
    }
    ck_assert_uint_eq(certificates().n, 2);
    calm = false;
}

static void run(uint64_t seed)
{
    size_t i;

    fl_rng_key(&rng, seed, FL_RNG_TEST, 0, 0);
    calm = false;
    n_refused = 0;
    rig_begin(&server, seed);
    authority_rig_init(&server);
    for (i = 0; i < 2; i++) {
        make_machine(&machines[i]);
    }
    rig_invite(&server, "edge-001", 0, &line);
    join_all();
    renew_all(settle_joining());
    for (i = 0; i < 2; i++) {
        folder_remove(machines[i].dir);
    }
    rig_end(&server);
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value = otherwise;

    if (text != NULL && fl_str_to_u64(text, &value) != FL_OK) {
        value = otherwise;
    }
    return value;
}

static uint64_t seed_now; /* 0: none runs */

static void print_seed(void)
{
    if (seed_now != 0) {
        (void)fprintf(stderr, "FL_SIM_SEED=%" PRIu64 "\n", seed_now);
    }
}

TEST_EACH(whatever_breaks_a_line_ends_with_one_certificate_and_works_again, TESTS)
{
    uint64_t only = env_number("FL_SIM_SEED", 0);
    uint64_t each = env_number("FL_SIM_SEEDS", SEEDS) / TESTS;
    uint64_t seed = only != 0 ? only : 1 + (uint64_t)_i * each;
    uint64_t last = only != 0 ? only : ((uint64_t)_i + 1) * each;

    ck_assert_int_eq(atexit(print_seed), 0);
    for (; seed <= last; seed++) {
        seed_now = seed;
        run(seed);
        seed_now = 0;
    }
    /* The faults are there: else the rest says nothing. */
    if (only == 0 && each >= 10) {
        ck_assert_uint_ge(n_deaths[SERVER], 10);
        ck_assert_uint_ge(n_deaths[CLIENT], 10);
    }
}
