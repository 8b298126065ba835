/* Signing requests from whoever has a token, and keys from files. */

#include <string.h>

#include "libfl/pki/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_key *key = NULL;
    struct fl_err err = {0};

    if (fl_csr_check(data, size, &key, &err) == FL_OK) {
        FL_REQUIRE(!fl_key_is_private(key));
        fl_key_unref(key);
    } else {
        FL_REQUIRE(err.msg[0] != '\0');
    }
    if (fl_key_parse(data, size, "x.key", &key, &err) == FL_OK) {
        FL_REQUIRE(fl_key_is_private(key));
        fl_key_unref(key);
    }
    return 0;
}
