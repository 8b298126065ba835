/* Reads the answer of an HTTP proxy to CONNECT. Pure functions, any thread. */
#include "libfl/net/proxy_answer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libfl/base/str.h"

static const char version[] = "HTTP/1.";
static const char authenticate[] = "Proxy-Authenticate:";

static bool answer_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 Connection established"; the phrase may be missing. */
static int answer_status_line(struct fl_proxy_answer *a)
{
    const char *at = a->line + sizeof(version) - 1;
    unsigned status = 0;
    int i;

    if (strncmp(a->line, version, sizeof(version) - 1) != 0 || !answer_is_digit(at[0]) ||
        at[1] != ' ') {
        return FL_EPROTO;
    }
    at += 2;
    for (i = 0; i < 3; i++) {
        if (!answer_is_digit(at[i])) {
            return FL_EPROTO;
        }
        status = status * 10 + (unsigned)(at[i] - '0');
    }
    if ((at[3] != ' ' && at[3] != '\0') || status < 100 || status > 599) {
        return FL_EPROTO;
    }
    a->status = status;
    (void)snprintf(a->reason, sizeof(a->reason), "%s", at[3] == ' ' ? at + 4 : "");
    (void)fl_str_clean(a->reason);
    return FL_OK;
}

/*
 * The first word of each Proxy-Authenticate field is a scheme; further ones in the same field are
 * not told apart from parameters, and no proxy that we know sends them.
 */
static void answer_header_line(struct fl_proxy_answer *a)
{
    const char *scheme = a->line + sizeof(authenticate) - 1;
    size_t used = strlen(a->schemes);
    size_t len;

    if (strncasecmp(a->line, authenticate, sizeof(authenticate) - 1) != 0) {
        return;
    }
    scheme += strspn(scheme, " \t");
    len = strcspn(scheme, " \t,");
    if (len == 0) {
        return;
    }
    a->basic = a->basic || (len == 5 && strncasecmp(scheme, "Basic", len) == 0);
    (void)snprintf(a->schemes + used, sizeof(a->schemes) - used, "%s%.*s", used > 0 ? ", " : "",
                   (int)len, scheme);
    (void)fl_str_clean(a->schemes);
}

/* A line without its end. The empty line ends the answer, or an interim one before it. */
static int answer_line(struct fl_proxy_answer *a)
{
    if (a->line_len < sizeof(a->line) && a->line_len > 0 && a->line[a->line_len - 1] == '\r') {
        a->line_len--;
    }
    a->line[a->line_len < sizeof(a->line) ? a->line_len : sizeof(a->line) - 1] = '\0';
    if (a->status == 0) {
        return answer_status_line(a);
    }
    if (a->line_len > 0) {
        answer_header_line(a);
    } else if (a->status < 200) {
        a->status = 0;
    } else {
        a->done = true;
    }
    return FL_OK;
}

int fl_proxy_answer_take(struct fl_proxy_answer *a, const uint8_t *data, size_t len,
                         size_t *ret_used)
{
    size_t i;
    int rv;

    for (i = 0; i < len && !a->done; i++) {
        if (a->bytes == FL_PROXY_ANSWER_MAX) {
            return FL_ELIMIT;
        }
        a->bytes++;
        if (data[i] == '\n') {
            rv = answer_line(a);
            if (rv != FL_OK) {
                return rv;
            }
            a->line_len = 0;
            continue;
        }
        /* Another protocol may never send the end of a line. */
        if (a->status == 0 && a->line_len < sizeof(version) - 1 && data[i] != version[a->line_len])
        {
            return FL_EPROTO;
        }
        if (a->line_len < sizeof(a->line)) {
            a->line[a->line_len] = (char)data[i];
        }
        a->line_len++;
    }
    *ret_used = i;
    return FL_OK;
}
