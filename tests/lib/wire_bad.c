#include "tests/lib/wire_bad.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

char text_ok[] = "ok";
char text_slash[] = "a/b";
char text_dot[] = ".hidden";
char text_option[] = "-x";
char text_empty[] = "";
char text_latin[] = "caf\xe9";
char text_surrogate[] = "\xed\xa0\x80";
char text_overlong[] = "\xc0\xaf";
char text_long_name[FL_NAME_MAX + 1];
char text_long[FL_WIRE_MAX_TEXT + 2];
static uint8_t bytes[1024];

void bad_setup(void)
{
    (void)memset(text_long_name, 'n', FL_NAME_MAX);
    (void)memset(text_long, 'x', FL_WIRE_MAX_TEXT + 1);
}

ProtobufCBinaryData run_of(size_t len)
{
    return (ProtobufCBinaryData){len, bytes};
}

uint8_t *packed(const ProtobufCMessage *msg, size_t *ret_len)
{
    uint8_t *data = malloc(protobuf_c_message_get_packed_size(msg) + 1);

    ck_assert_ptr_nonnull(data);
    *ret_len = protobuf_c_message_pack(msg, data);
    return data;
}
