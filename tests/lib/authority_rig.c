#include "tests/lib/authority_rig.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "libfl/pki/request.h"

static int seeded(void *ctx, void *out, size_t len)
{
    struct rig *r = ctx;
    uint8_t *p = out;
    size_t i;

    for (i = 0; i < len; i++) {
        p[i] = (uint8_t)fl_rng_u64(&r->rng);
    }
    return FL_OK;
}

static void say(void *ctx, enum fl_log_level level, const char *text)
{
    struct rig *r = ctx;
    size_t at = strlen(r->said);

    (void)level;
    (void)snprintf(r->said + at, sizeof(r->said) - at, "%s\n", text);
}

void rig_begin(struct rig *r, uint64_t seed)
{
    static const char *const hosts[] = {"fl.example.org", "10.77.0.1"};

    *r = (struct rig){.now_ms = RIG_NOW_MS};
    ck_assert(folder_make("fl-authority", r->dir));
    fl_rng_seed(&r->rng, seed);
    r->conf = (struct fl_authority_conf){.state_dir = r->dir,
                                         .federation = "digits",
                                         .hosts = hosts,
                                         .n_hosts = 2,
                                         .port = 7443,
                                         .random = seeded,
                                         .random_ctx = r,
                                         .say = say,
                                         .say_ctx = r};
}

void rig_open(struct rig *r)
{
    ck_assert_msg(fl_authority_open(&r->conf, r->now_ms, &r->a, &r->err) == FL_OK, "%s",
                  r->err.msg);
}

void authority_rig_init(struct rig *r)
{
    ck_assert_msg(fl_authority_init(&r->conf, r->now_ms, &r->err) == FL_OK, "%s", r->err.msg);
    rig_open(r);
}

void rig_close(struct rig *r)
{
    fl_authority_close(r->a);
    r->a = NULL;
}

void rig_end(struct rig *r)
{
    fl_joined_done(&r->joined);
    rig_close(r);
    folder_remove(r->dir);
}

void rig_quiet(struct rig *r)
{
    r->said[0] = '\0';
}

void rig_says(const struct rig *r, const char *part)
{
    ck_assert_msg(strstr(r->err.msg, part) != NULL, "'%s' is not in: %s", part, r->err.msg);
}

void rig_said(const struct rig *r, const char *part)
{
    ck_assert_msg(strstr(r->said, part) != NULL, "'%s' is not in: %s", part, r->said);
}

const char *authority_rig_path(const struct rig *r, const char *name, char out[256])
{
    (void)snprintf(out, 256, "%s/identity/%s", r->dir, name);
    return out;
}

static int keep_line(void *ctx, size_t i, const struct fl_invited *invited)
{
    ck_assert_uint_eq(i, 0);
    ck_assert_int_eq(fl_invite_parse(invited->line, strlen(invited->line), ctx, NULL), FL_OK);
    return FL_OK;
}

void rig_invite(struct rig *r, const char *name, uint32_t uses, struct fl_invite *ret)
{
    struct fl_invitation in = {.name = name, .uses = uses};

    ck_assert_msg(fl_authority_invite(
                      r->a, &(struct fl_invitations){.list = &in, .n = 1, .by = "uid 0 (root)"},
                      r->now_ms, keep_line, ret, &r->err) == FL_OK,
                  "%s", r->err.msg);
}

struct fl_key *rig_key(void)
{
    struct fl_key *key = NULL;

    ck_assert_int_eq(fl_key_make(&key), FL_OK);
    return key;
}

static void request(const struct fl_key *key, struct fl_buf *der)
{
    fl_buf_init(der, FL_CSR_MAX);
    ck_assert_int_eq(fl_csr_make(key, "whoever", der), FL_OK);
}

int rig_join(struct rig *r, const struct fl_invite *invite, const struct fl_key *key,
             const char *name, const char *address)
{
    struct fl_buf der;
    struct fl_joining join = {.token = invite->token,
                              .name = name,
                              .address = address != NULL ? address : "10.0.0.1:1000"};
    int rv;

    request(key, &der);
    join.request = der.data;
    join.request_len = der.len;
    fl_joined_done(&r->joined);
    rv = fl_authority_join(r->a, &join, r->now_ms, &r->joined, &r->err);
    fl_buf_done(&der);
    return rv;
}

struct fl_identity rig_who(struct rig *r)
{
    struct fl_identity who;

    ck_assert_ptr_nonnull(r->joined.chain);
    ck_assert_msg(fl_trust_verify(fl_authority_trust(r->a),
                                  &(struct fl_claim){.chain = r->joined.chain,
                                                     .purpose = FL_ROLE_CLIENT,
                                                     .now = r->now_ms / 1000},
                                  &who, NULL, &r->err) == FL_OK,
                  "%s", r->err.msg);
    return who;
}

int rig_renew(struct rig *r, const struct fl_identity *who, const struct fl_key *key)
{
    struct fl_buf der;
    int rv;

    request(key, &der);
    fl_joined_done(&r->joined);
    rv = fl_authority_renew(r->a, who, &(struct fl_der){.data = der.data, .len = der.len},
                            "10.0.0.1:1000", r->now_ms, &r->joined, &r->err);
    fl_buf_done(&der);
    return rv;
}

bool rig_revoked(struct rig *r, const struct fl_identity *who, char *why, size_t size)
{
    struct fl_revocations *revocations = NULL;
    bool has;

    ck_assert_int_eq(fl_authority_revocations(r->a, &revocations, &r->err), FL_OK);
    has = fl_revocations_has(revocations, who, why, size);
    fl_revocations_unref(revocations);
    return has;
}
