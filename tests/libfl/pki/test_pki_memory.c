/* Without memory nobody is taken for somebody else, and nothing is lost: each allocation fails
 * once. */

#include <check.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/pki/request.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/pki_rig.h"
#include "tests/lib/suites.h"

#define NOW RIG_PKI_NOW

static struct rig_pki a;
static struct fl_buf pem;
static struct fl_buf csr;

/* So that OpenSSL's allocations are those of this program, and fail too. */
static void *get(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return malloc(size);
}

static void *resize(void *p, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return realloc(p, size);
}

static void put(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    free(p);
}

static int step_verify(void)
{
    struct fl_refusal refusal = {.alert = 0};
    struct fl_identity who = {.kind = FL_IDENTITY_NONE};
    struct fl_err err = {0};
    int rv = fl_trust_verify(
        a.trust, &(struct fl_claim){.chain = a.client, .purpose = FL_ROLE_CLIENT, .now = NOW}, &who,
        &refusal, &err);

    failmalloc_pause(true);
    if (rv == FL_OK) {
        ck_assert_str_eq(who.name, "edge-001");
        ck_assert_int_eq(who.role, FL_ROLE_CLIENT);
        ck_assert_mem_ne(who.key, (uint8_t[FL_KEY_HASH]){0}, FL_KEY_HASH);
    } else {
        ck_assert_int_eq(who.kind, FL_IDENTITY_NONE);
        ck_assert_int_ne(err.msg[0], '\0');
    }
    failmalloc_pause(false);
    return rv;
}

/* Of another purpose: that must not come to be believed. */
static int step_refuse(void)
{
    struct fl_identity who;
    int rv = fl_trust_verify(
        a.trust,
        &(struct fl_claim){
            .chain = a.client, .purpose = FL_ROLE_SERVER, .host = "localhost", .now = NOW},
        &who, NULL, NULL);

    failmalloc_pause(true);
    ck_assert_int_ne(rv, FL_OK);
    failmalloc_pause(false);
    return rv == FL_EPERM ? FL_OK : rv;
}

static int step_pin(void)
{
    struct fl_chain *roots = NULL;
    struct fl_identity who;
    uint8_t pin[FL_KEY_HASH];
    int rv;

    fl_key_hash(a.root_key, pin);
    rv = fl_pin_verify(
        &(struct fl_pin){.key = pin, .federation = "fed-a"},
        &(struct fl_claim){
            .chain = a.server, .purpose = FL_ROLE_SERVER, .host = "localhost", .now = NOW},
        &who, &roots, NULL, NULL);
    fl_chain_unref(roots);
    return rv;
}

static int step_chain(void)
{
    struct fl_chain *chain = NULL;
    int rv = fl_chain_parse(pem.data, pem.len, "x", &chain, NULL);

    fl_chain_unref(chain);
    return rv;
}

static int step_issue(void)
{
    static const char *const hosts[] = {"localhost", "::1"};
    struct fl_issue issue = {.federation = "fed-a",
                             .role = FL_ROLE_SERVER,
                             .name = "server",
                             .not_before = NOW,
                             .not_after = NOW + RIG_DAY,
                             .hosts = hosts,
                             .n_hosts = 2};
    struct fl_chain *chain = NULL;
    struct fl_key *key = NULL;
    int rv = fl_csr_check(csr.data, csr.len, &key, NULL);

    rv = rv == FL_OK ? fl_issue_leaf(a.intermediate, a.intermediate_key, key, &issue, &chain, NULL)
                     : rv;
    failmalloc_pause(true);
    ck_assert(rv != FL_OK || fl_chain_has_hosts(chain, hosts, 2));
    failmalloc_pause(false);
    fl_chain_unref(chain);
    fl_key_unref(key);
    return rv;
}

/*
 * Until nothing fails any more. Of the thousands that signing takes, most for its arithmetic, only
 * one in 13.
 */
static size_t without_memory(int (*step)(void))
{
    size_t n;
    int rv = FL_ENOMEM;

    ck_assert_int_eq(step(), FL_OK); /* what OpenSSL makes once is there */
    for (n = 0; n < 100000; n += n < 400 ? 1 : 13) {
        size_t asked;

        failmalloc_start(n, false);
        rv = step();
        asked = failmalloc_stop();
        if (asked <= n) {
            break;
        }
    }
    ck_assert_int_eq(rv, FL_OK);
    return n;
}

TEST(each_failed_allocation_is_an_error_and_no_verdict)
{
    static int (*const steps[])(void) = {step_verify, step_refuse, step_pin, step_chain,
                                         step_issue};
    size_t i;

    rig_pki_make(&a, "fed-a", NOW);
    fl_buf_init(&pem, FL_CHAIN_FILE_MAX);
    fl_buf_init(&csr, FL_CSR_MAX);
    ck_assert_int_eq(fl_chain_pem(a.server, &pem), FL_OK);
    ck_assert_int_eq(fl_csr_make(a.server_key, "server", &csr), FL_OK);
    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        ck_assert_uint_gt(without_memory(steps[i]), 10);
    }
    fl_buf_done(&pem);
    fl_buf_done(&csr);
    rig_pki_free(&a);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (CRYPTO_set_mem_functions(get, resize, put) != 1) {
        return EXIT_FAILURE;
    }
    return suites_run(argv[0]);
}
