#ifndef FL_WIRE_BAD_H
#define FL_WIRE_BAD_H

/* Texts and bytes that decoders reject, and encoding by protobuf-c itself. */

#include <protobuf-c/protobuf-c.h>

#include "libfl/wire/messages.h"

extern char text_ok[], text_slash[], text_dot[], text_option[], text_empty[];
extern char text_latin[], text_surrogate[], text_overlong[]; /* no UTF-8 */
extern char text_long_name[FL_NAME_MAX + 1];
extern char text_long[FL_WIRE_MAX_TEXT + 2];

void bad_setup(void);
/* Up to 1024 bytes. */
ProtobufCBinaryData run_of(size_t len);
/* The encoding of any message; free() it. */
uint8_t *packed(const ProtobufCMessage *msg, size_t *ret_len);

#endif
