#ifndef FL_HTTP_TOKEN_H
#define FL_HTTP_TOKEN_H

/* The bearer token that a reader shows: one line of a file. */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"

#define FL_HTTP_TOKEN_MIN 16
#define FL_HTTP_TOKEN_MAX 512

struct fl_http_token {
    char text[FL_HTTP_TOKEN_MAX + 1]; /* "": none, everything is answered */
};

/*
 * Read the first line of `path`: 16 to 512 printable characters without a blank. FL_ECONF with the
 * file and what is expected. `path` "": no token.
 */
FL_MUST_CHECK int fl_http_token_read(const char *path, struct fl_http_token *ret,
                                     struct fl_err *err);
/*
 * Does the field `authorization` ("Bearer TOKEN", NULL: not there) show the token? The time depends
 * on the length of what was sent only.
 */
bool fl_http_token_shown(const struct fl_http_token *token, const char *authorization);

#endif
