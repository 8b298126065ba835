/* Whatever allocation fails: an error is said, nothing is half done, and the same works afterwards.
 */
#include <check.h>
#include <stdint.h>

#include "libfl/pki/request.h"
#include "server/identity/certificates.h"
#include "tests/lib/authority_rig.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"

static struct rig r;
static struct fl_key *key, *other;
static struct fl_invite line;
static struct fl_identity who;
static struct fl_buf first, second; /* their requests, made before anything fails */

static void setup(void)
{
    rig_begin(&r, 5);
    authority_rig_init(&r);
    key = rig_key();
    other = rig_key();
    rig_invite(&r, "edge-001", 0, &line);
    fl_buf_init(&first, FL_CSR_MAX);
    fl_buf_init(&second, FL_CSR_MAX);
    ck_assert_int_eq(fl_csr_make(key, "edge-001", &first), FL_OK);
    ck_assert_int_eq(fl_csr_make(other, "edge-001", &second), FL_OK);
}

static void teardown(void)
{
    fl_buf_done(&first);
    fl_buf_done(&second);
    fl_key_unref(key);
    fl_key_unref(other);
    rig_end(&r);
}

/* With the i-th allocation failing, until there is no such: `what` fails or succeeds, then
 * succeeds. */
static void try_each(int (*what)(void))
{
    size_t failed = 0;
    size_t i = 0;
    size_t n;

    do {
        int rv;

        failmalloc_start(i, false);
        rv = what();
        n = failmalloc_stop();
        ck_assert_msg(rv == FL_OK || rv == FL_ENOMEM, "allocation %zu: %d %s", i, rv, r.err.msg);
        failed += rv != FL_OK;
    } while (i++ < n);
    ck_assert_uint_ge(failed, 1);
    ck_assert_int_eq(what(), FL_OK);
}

static int ignore(void *ctx, size_t i, const struct fl_invited *invited)
{
    (void)ctx;
    (void)i;
    (void)invited;
    return FL_OK;
}

static int reopen(void)
{
    rig_close(&r);
    return fl_authority_open(&r.conf, r.now_ms, &r.a, &r.err);
}

static int init(void)
{
    return fl_authority_init(&r.conf, r.now_ms, &r.err);
}

static int refresh(void)
{
    return fl_authority_refresh(r.a, r.now_ms, NULL, &r.err);
}

static int invite(void)
{
    struct fl_pair labels[] = {{(char *)(uintptr_t) "site", (char *)(uintptr_t) "kiel"}};
    struct fl_invitation in = {.name = "*", .uses = 2, .labels = labels, .n_labels = 1};

    return fl_authority_invite(r.a, &(struct fl_invitations){.list = &in, .n = 1, .by = "ops"},
                               r.now_ms, ignore, NULL, &r.err);
}

static int join(void)
{
    struct fl_joining join = {.token = line.token,
                              .name = "",
                              .request = first.data,
                              .request_len = first.len,
                              .address = "10.0.0.1:1000"};

    fl_joined_done(&r.joined);
    return fl_authority_join(r.a, &join, r.now_ms, &r.joined, &r.err);
}

static int renew(void)
{
    fl_joined_done(&r.joined);
    return fl_authority_renew(r.a, &who, &(struct fl_der){.data = second.data, .len = second.len},
                              "10.0.0.1:1000", r.now_ms, &r.joined, &r.err);
}

static int revocations(void)
{
    struct fl_revoked whom = {.name = "edge-001"};
    struct fl_revocations *list = NULL;
    int rv = fl_authority_disable(r.a, &whom, "", "ops", r.now_ms, NULL, &r.err);

    rv = rv == FL_OK ? fl_authority_revocations(r.a, &list, &r.err) : rv;
    fl_revocations_unref(list);
    return rv;
}

static int wire(void)
{
    struct fl_wire_chain chain = {0};
    int rv = fl_joined_wire(r.joined.chain, &chain);

    fl_wire_chain_done(&chain);
    return rv;
}

static int count(void *ctx, const struct fl_certificate *c)
{
    (void)c;
    ++*(size_t *)ctx;
    return FL_OK;
}

static size_t certificates(void)
{
    size_t n = 0;

    ck_assert_int_eq(fl_authority_certificates(r.a, "", r.now_ms, count, &n, &r.err), FL_OK);
    return n;
}

TEST_CASE("all", setup, teardown);

TEST(opening_and_making)
{
    try_each(reopen);
    try_each(init);
    r.now_ms += 25 * RIG_DAY_MS; /* the server's certificate is due */
    try_each(refresh);
}

TEST(inviting_joining_and_renewing)
{
    try_each(invite);
    try_each(join);
    ck_assert_uint_eq(certificates(), 1);
    ck_assert(r.joined.again);
    try_each(wire);
    who = rig_who(&r);
    r.now_ms += 20 * RIG_DAY_MS;
    try_each(renew);
    ck_assert_uint_eq(certificates(), 2);
}

TEST(revoking)
{
    ck_assert_int_eq(join(), FL_OK);
    try_each(revocations);
}
