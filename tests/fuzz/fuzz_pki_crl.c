/* Lists of revoked certificates, PEM and DER, several in one. */

#include <string.h>

#include "libfl/pki/trust_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_trust trust = {.store = X509_STORE_new()};
    struct fl_err err = {0};
    int rv;

    FL_REQUIRE(trust.store != NULL);
    rv = fl__lists_parse(&trust, data, size, "x.crl", &err);
    FL_REQUIRE((rv == FL_OK) == (trust.n_lists > 0) || strstr(err.msg, "x.crl") != NULL);
    fl__lists_free(&trust);
    X509_STORE_free(trust.store);
    return 0;
}
