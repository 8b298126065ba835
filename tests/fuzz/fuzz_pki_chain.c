/*
 * Certificates from a file or a peer. What is taken comes back from its own PEM, and can be
 * verified under its own last certificate, or refused with a message, whatever is in it.
 */

#include <stdlib.h>
#include <string.h>

#include "libfl/pki/trust.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void verify(const struct fl_chain *chain, const struct fl_trust_setup *setup)
{
    static const enum fl_role purposes[] = {FL_ROLE_CLIENT, FL_ROLE_SERVER};
    struct fl_trust *trust = NULL;
    size_t i;

    if (fl_trust_create(setup, &trust, NULL) != FL_OK) {
        return;
    }
    for (i = 0; i < 2; i++) {
        struct fl_refusal refusal = {.reason = FL_REFUSED_NOT};
        struct fl_identity who;
        struct fl_err err = {0};
        int rv = fl_trust_verify(trust,
                                 &(struct fl_claim){.chain = chain,
                                                    .purpose = purposes[i],
                                                    .host = "localhost",
                                                    .now = INT64_C(1795198500)},
                                 &who, &refusal, &err);

        FL_REQUIRE(rv == FL_OK ||
                   (rv == FL_EPERM && refusal.reason != FL_REFUSED_NOT && err.msg[0] != '\0'));
        FL_REQUIRE(rv != FL_OK || (who.name[0] != '\0' && who.serial_len > 0));
    }
    fl_trust_unref(trust);
}

static void check(const struct fl_chain *chain)
{
    static const char *const texts[] = {"client dns:{name}.example.org", "client cn:{name}"};
    struct fl_trust_setup setup = {.federation = "fed-a", .grace_s = 86400};
    struct fl_chain *again = NULL;
    struct fl_chain *last = NULL;
    struct fl_buf pem;

    fl_buf_init(&pem, 2 * FL_CHAIN_MAX * FL_CERT_MAX);
    FL_REQUIRE(fl_chain_pem(chain, &pem) == FL_OK);
    FL_REQUIRE(pem.len > FL_CHAIN_FILE_MAX ||
               (fl_chain_parse(pem.data, pem.len, "again", &again, NULL) == FL_OK &&
                fl_chain_len(again) == fl_chain_len(chain)));
    fl_chain_unref(again);
    fl_buf_done(&pem);
    FL_REQUIRE(fl_chain_part(chain, fl_chain_len(chain) - 1, 1, &last) == FL_OK);
    setup.roots = last;
    verify(chain, &setup);
    FL_REQUIRE(fl_rules_create(texts, 2, &setup.rules, NULL, NULL) == FL_OK);
    verify(chain, &setup);
    fl_rules_unref(setup.rules);
    fl_chain_unref(last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_chain *chain = NULL;
    struct fl_err err = {0};
    int rv = fl_chain_parse(data, size, "x.pem", &chain, &err);

    if (rv == FL_OK) {
        check(chain);
        fl_chain_unref(chain);
    } else {
        FL_REQUIRE(strstr(err.msg, "x.pem") != NULL);
    }
    return 0;
}
