#ifndef FL_NET_PROXY_ANSWER_H
#define FL_NET_PROXY_ANSWER_H

/*
 * The answer of an HTTP proxy to CONNECT (RFC 9112, section 4; RFC 9110, section 9.3.6), read byte
 * by byte as it arrives. Only the status and the offered authentication schemes are kept. Pure; a
 * struct belongs to its caller.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* Longest answer, interim answers (1xx) included; proxies send some hundred bytes. */
#define FL_PROXY_ANSWER_MAX 16384u
/* As much of a line is looked at. */
#define FL_PROXY_LINE_MAX 512

/* Zero-initialized before the first byte. */
struct fl_proxy_answer {
    bool done;
    unsigned status;  /* 100 to 599, 0: not known yet */
    char reason[64];  /* phrase of the status line, made safe to print; may be empty */
    char schemes[64]; /* offered by Proxy-Authenticate, "Negotiate, NTLM"; may be empty */
    bool basic;       /* Basic is one of them */
    size_t bytes;     /* read so far */
    size_t line_len;  /* of the current line, which may be longer than `line` */
    char line[FL_PROXY_LINE_MAX];
};

/*
 * Reads up to `len` bytes; `*ret_used` of them belong to the answer, the rest to the tunnel. FL_OK:
 * `done`, or all bytes are used and more are needed. FL_EPROTO: this is no answer in HTTP/1.
 * FL_ELIMIT: longer than FL_PROXY_ANSWER_MAX.
 */
FL_MUST_CHECK int fl_proxy_answer_take(struct fl_proxy_answer *answer, const uint8_t *data,
                                       size_t len, size_t *ret_used);

#endif
