#ifndef FL_PKI_INVITATION_H
#define FL_PKI_INVITATION_H

/*
 * The invitation line: fl1:HOST:PORT,HOST:PORT…:FEDERATION:PIN:TOKEN, one word with one address of
 * the server or more. Pure. The holder of the line may join, so it is a secret until it is used: it
 * is never logged, and fl_invite_done() wipes it.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/identity.h"
#include "libfl/pki/key.h"

#define FL_TOKEN_PREFIX      3 /* public bytes: they identify it in lists */
#define FL_TOKEN_PREFIX_TEXT 5 /* the same in text, with its NUL */
#define FL_TOKEN_SECRET      18
#define FL_TOKEN_SIZE        (FL_TOKEN_PREFIX + FL_TOKEN_SECRET)
#define FL_INVITE_HOST_MAX   256
#define FL_INVITE_ADDRESSES  8
/* A whole line, with its NUL; a terminal takes 4096 bytes. */
#define FL_INVITE_MAX 2560

struct fl_invite_address {
    char host[FL_INVITE_HOST_MAX]; /* a DNS name or an address, v6 without brackets */
    uint16_t port;
};

struct fl_invite {
    struct fl_invite_address addresses[FL_INVITE_ADDRESSES]; /* in the order of trying */
    size_t n_addresses;
    char federation[FL_IDENTITY_NAME_MAX];
    uint8_t pin[FL_KEY_HASH]; /* of the root's public key */
    uint8_t token[FL_TOKEN_SIZE];
};

/* FL_REQUIRE: size of FL_INVITE_MAX or more. FL_EINVAL: which member of `invite` is invalid. */
FL_MUST_CHECK int fl_invite_write(char *out, size_t size, const struct fl_invite *invite,
                                  struct fl_err *err);
/*
 * Blanks and line ends around it are allowed. FL_EFORMAT with what is wrong and what to do; the
 * message never contains the token.
 */
FL_MUST_CHECK int fl_invite_parse(const char *text, size_t len, struct fl_invite *ret,
                                  struct fl_err *err);
void fl_invite_done(struct fl_invite *invite);
/* The stored hash of a token; FL_ENOMEM. */
FL_MUST_CHECK int fl_token_hash(const uint8_t token[FL_TOKEN_SIZE], uint8_t out[32]);
/* The public part as text; returns `out`. */
const char *fl_token_prefix(const uint8_t token[FL_TOKEN_SIZE], char out[FL_TOKEN_PREFIX_TEXT]);

#endif
