#include "libfl/http/token.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "libfl/base/fs.h"

int fl_http_token_read(const char *path, struct fl_http_token *ret, struct fl_err *err)
{
    struct fl_buf buf;
    struct fl_err inner = {0};
    size_t n;
    int rv;

    memset(ret, 0, sizeof(*ret));
    if (path[0] == '\0') {
        return FL_OK;
    }
    rv = fl_fs_read(path, 4096, &buf, &inner);
    if (rv != FL_OK) {
        return fl_err_set(err, rv == FL_ENOMEM ? rv : FL_ECONF,
                          "cannot read '%s': %s: expected a file with one line, "
                          "the token, that the daemon's user may read",
                          path, fl_err_text(&inner, rv));
    }
    for (n = 0; n < buf.len && buf.data[n] > ' ' && buf.data[n] < 0x7f; n++) {
    }
    if (n < FL_HTTP_TOKEN_MIN || n > FL_HTTP_TOKEN_MAX || (n < buf.len && buf.data[n] != '\n')) {
        rv = fl_err_set(err, FL_ECONF,
                        "the first line of '%s' is no token: expected %d to %d "
                        "printable ASCII characters without a blank and a line end (openssl rand "
                        "-hex 32 makes one)",
                        path, FL_HTTP_TOKEN_MIN, FL_HTTP_TOKEN_MAX);
    } else {
        memcpy(ret->text, buf.data, n);
    }
    buf.secret = true;
    fl_buf_done(&buf);
    return rv;
}

bool fl_http_token_shown(const struct fl_http_token *token, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    size_t length = strlen(token->text);
    unsigned differs;
    size_t shown, i;

    if (length == 0) {
        return true;
    }
    if (authorization == NULL || strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0) {
        return false;
    }
    authorization += sizeof(scheme) - 1;
    shown = strlen(authorization);
    differs = shown != length;
    for (i = 0; i < shown; i++) { /* Every character is compared, whatever came before. */
        differs |= (unsigned char)authorization[i] ^ (unsigned char)token->text[i % length];
    }
    return differs == 0;
}
